/*
 * A table of calls that make one request each, on the scripted cluster of nodes.h, and stories
 * about each of them.
 */
#ifndef TESTS_WIRE_CALLS_H
#define TESTS_WIRE_CALLS_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/nodes.h"

/* ---- locks ---- */

/* The lock of the kind that the call is about. */
static inline hf_lock *subject(void)
{
	return scene.subject ? scene.subject : scene.lock;
}

static inline int call_acquire(void)
{
	return hf_lock_acquire(subject(), HF_ACQUIRE(.wait_ms = PATIENCE_MS));
}

static inline int call_release(void)
{
	return hf_lock_release(subject());
}

static inline int call_extend(void)
{
	return hf_lock_extend(subject(), NULL, 60000);
}

static inline int call_force(void)
{
	int was_held = -1;
	return hf_lock_force_release(subject(), &was_held);
}

static inline int call_is_locked(void)
{
	int locked = -1;
	return hf_lock_is_locked(subject(), &locked);
}

static inline int call_last_token(void)
{
	int64_t token = 0;
	return hf_lock_last_token(scene.fenced, &token);
}

static inline int call_remove_waiter(void)
{
	int removed = -1;
	return hf_lock_remove_waiter(subject(), "11111111-1111-1111-1111-111111111111:1", &removed);
}

/* ---- semaphores, permits, latches ---- */

static inline int call_semaphore_acquire(void)
{
	return hf_semaphore_acquire(scene.semaphore, 2, HF_WAIT(.wait_ms = PATIENCE_MS));
}

static inline int call_semaphore_release(void)
{
	return hf_semaphore_release(scene.semaphore, 2);
}

static inline int call_semaphore_release_if(void)
{
	int done = -1;
	return hf_semaphore_release_if_exists(scene.semaphore, 2, &done);
}

static inline int call_semaphore_add(void)
{
	return hf_semaphore_add(scene.semaphore, 2);
}

static inline int call_semaphore_set(void)
{
	int done = -1;
	return hf_semaphore_try_set(scene.semaphore, 2, 0, &done);
}

static inline int call_semaphore_drain(void)
{
	int64_t permits = 0;
	return hf_semaphore_drain(scene.semaphore, &permits);
}

static inline int call_available(void)
{
	int64_t permits = 0;
	return hf_semaphore_available(scene.semaphore, &permits);
}

static inline int call_permits_acquire(void)
{
	return hf_permits_acquire(scene.permits, 1, HF_PERMITS(.wait_ms = PATIENCE_MS), &scene.id);
}

static inline int call_permits_release(void)
{
	return hf_permits_release(scene.permits, &scene.id, 1);
}

static inline int call_permits_extend(void)
{
	return hf_permits_extend(scene.permits, scene.id, 60000);
}

static inline int call_permits_lease(void)
{
	int64_t lease_ms = 0;
	return hf_permits_lease(scene.permits, scene.id, &lease_ms);
}

static inline int call_permits_available(void)
{
	int64_t permits = 0;
	return hf_permits_available(scene.permits, &permits);
}

static inline int call_permits_acquired(void)
{
	int64_t permits = 0;
	return hf_permits_acquired(scene.permits, &permits);
}

static inline int call_permits_total(void)
{
	int64_t permits = 0;
	return hf_permits_total(scene.permits, &permits);
}

static inline int call_permits_try_set(void)
{
	int done = -1;
	return hf_permits_try_set(scene.permits, 5, &done);
}

static inline int call_permits_set(void)
{
	return hf_permits_set(scene.permits, 5);
}

static inline int call_permits_add(void)
{
	return hf_permits_add(scene.permits, 5);
}

static inline int call_latch_wait(void)
{
	return hf_latch_wait(scene.latch, HF_WAIT(.wait_ms = PATIENCE_MS));
}

static inline int call_count_down(void)
{
	return hf_latch_count_down(scene.latch);
}

static inline int call_latch_set(void)
{
	int done = -1;
	return hf_latch_try_set(scene.latch, 5, &done);
}

static inline int call_latch_delete(void)
{
	int done = -1;
	return hf_latch_delete(scene.latch, &done);
}

static inline int call_latch_count(void)
{
	int64_t count = 0;
	return hf_latch_count(scene.latch, &count);
}

/* ---- lists, facts and the history ---- */

static inline int ignore_info(void *arg, const hf_info *info)
{
	(void)arg;
	(void)info;
	return 0;
}

static inline void ignore_fact(void *arg, const char *name, const char *value)
{
	(void)arg;
	(void)name;
	(void)value;
}

static inline int ignore_row(void *arg, const hf_history_row *row)
{
	(void)arg;
	(void)row;
	return 0;
}

static inline int call_inspect(void)
{
	return hf_client_inspect(scene.client, "orders", ignore_info, NULL);
}

static inline int call_inspect_many(void)
{
	static const char *const names[] = {"orders"};
	return hf_client_inspect_many(scene.client, names, 1, ignore_info, NULL);
}

static inline int call_list(void)
{
	return hf_client_list(scene.client, NULL, ignore_info, NULL);
}

static inline int call_list_waited(void)
{
	return hf_client_list_with(scene.client, HF_LIST(.waited = 1), ignore_info, NULL);
}

static inline int call_facts(void)
{
	return hf_client_facts(scene.client, ignore_fact, NULL);
}

static inline int call_history(void)
{
	hf_history *history = NULL;
	int rc = hf_history_open(scene.client, HF_HISTORY(.name = "orders"), &history);
	if (!rc)
		rc = hf_history_read(history, ignore_row, NULL);
	hf_history_close(history);
	return rc;
}

static inline int call_clear_history(void)
{
	int64_t entries = 0;
	return hf_client_clear_history(scene.client, "orders", &entries);
}

/* ---- the table ---- */

struct call {
	const char *name;
	int rule; /* of its request */
	int (*run)(void);
	int (*before)(void); /* a call that it needs before it; NULL: none */
	int traits;          /* IS_… */
	int kind;            /* of the lock; 0: reentrant, or none; GROUP */
};

#define IS_GRANT 1
#define IS_ONCE  2 /* it is not repeated when its outcome is unknown */
#define IS_BROAD 4 /* it names no key, so any master can execute it, or each has to */

#define GROUP (-1)

static const struct call calls[] = {
	{"acquire", ACQUIRE, call_acquire, NULL, IS_GRANT, HF_REENTRANT},
	{"nested acquire", ACQUIRE, call_acquire, call_acquire, IS_GRANT, HF_REENTRANT},
	{"release", RELEASE, call_release, call_acquire, 0, HF_REENTRANT},
	{"extend", RENEW, call_extend, call_acquire, 0, HF_REENTRANT},
	{"force", FORCE, call_force, NULL, IS_ONCE, HF_REENTRANT},
	{"is_locked", STATE, call_is_locked, NULL, 0, HF_REENTRANT},
	{"fenced acquire", ACQUIRE, call_acquire, NULL, IS_GRANT, HF_FENCED},
	{"fenced release", RELEASE, call_release, call_acquire, 0, HF_FENCED},
	{"simple acquire", ACQUIRE, call_acquire, NULL, IS_GRANT, HF_SIMPLE},
	{"simple release", RELEASE, call_release, call_acquire, 0, HF_SIMPLE},
	{"spin acquire", ACQUIRE, call_acquire, NULL, IS_GRANT, HF_SPIN},
	{"spin release", RELEASE, call_release, call_acquire, 0, HF_SPIN},
	{"spin extend", RENEW, call_extend, call_acquire, 0, HF_SPIN},
	{"spin force", FORCE, call_force, NULL, IS_ONCE, HF_SPIN},
	{"spin is_locked", STATE, call_is_locked, NULL, 0, HF_SPIN},
	{"fair acquire", FAIR_ACQUIRE, call_acquire, NULL, IS_GRANT, HF_FAIR},
	{"fair nested acquire", FAIR_ACQUIRE, call_acquire, call_acquire, IS_GRANT, HF_FAIR},
	{"fair release", FAIR_RELEASE, call_release, call_acquire, 0, HF_FAIR},
	{"fair extend", RENEW, call_extend, call_acquire, 0, HF_FAIR},
	{"fair force", FAIR_FORCE, call_force, NULL, IS_ONCE, HF_FAIR},
	{"fair is_locked", STATE, call_is_locked, NULL, 0, HF_FAIR},
	{"simple fair acquire", FAIR_ACQUIRE, call_acquire, NULL, IS_GRANT, HF_SIMPLE_FAIR},
	{"simple fair release", FAIR_RELEASE, call_release, call_acquire, 0, HF_SIMPLE_FAIR},
	{"leader acquire", FAIR_ACQUIRE, call_acquire, NULL, IS_GRANT, HF_LEADER},
	{"leader release", FAIR_RELEASE, call_release, call_acquire, 0, HF_LEADER},
	{"read acquire", READ_ACQUIRE, call_acquire, NULL, IS_GRANT, HF_READ},
	{"read release", READ_RELEASE, call_release, call_acquire, 0, HF_READ},
	{"read extend", READ_RENEW, call_extend, call_acquire, 0, HF_READ},
	{"read force", RW_FORCE, call_force, NULL, IS_ONCE, HF_READ},
	{"read is_locked", RW_STATE, call_is_locked, NULL, 0, HF_READ},
	{"write acquire", WRITE_ACQUIRE, call_acquire, NULL, IS_GRANT, HF_WRITE},
	{"write nested acquire", WRITE_ACQUIRE, call_acquire, call_acquire, IS_GRANT, HF_WRITE},
	{"write release", WRITE_RELEASE, call_release, call_acquire, 0, HF_WRITE},
	{"write extend", RENEW, call_extend, call_acquire, 0, HF_WRITE},
	{"write force", RW_FORCE, call_force, NULL, IS_ONCE, HF_WRITE},
	{"write is_locked", RW_STATE, call_is_locked, NULL, 0, HF_WRITE},
	{"group acquire", GROUP_ACQUIRE, call_acquire, NULL, IS_GRANT, GROUP},
	{"group release", GROUP_RELEASE, call_release, call_acquire, 0, GROUP},
	{"group extend", GROUP_RENEW, call_extend, call_acquire, 0, GROUP},
	{"group force", GROUP_FORCE, call_force, NULL, IS_ONCE, GROUP},
	{"group is_locked", GROUP_STATE, call_is_locked, NULL, 0, GROUP},
	{"remove_waiter", FAIR_DROP, call_remove_waiter, NULL, 0, HF_FAIR},
	{"last_token", TOKEN, call_last_token, NULL, 0, 0},
	{"semaphore acquire", SEMAPHORE_ACQUIRE, call_semaphore_acquire, NULL, 0, 0},
	{"semaphore release", SEMAPHORE_RELEASE, call_semaphore_release, NULL, 0, 0},
	{"semaphore release_if_exists", SEMAPHORE_RELEASE, call_semaphore_release_if, NULL, 0, 0},
	{"semaphore add", SEMAPHORE_ADD, call_semaphore_add, NULL, 0, 0},
	{"semaphore try_set", SEMAPHORE_SET, call_semaphore_set, NULL, 0, 0},
	{"semaphore drain", SEMAPHORE_DRAIN, call_semaphore_drain, NULL, 0, 0},
	{"semaphore available", NUMBER, call_available, NULL, 0, 0},
	{"permits acquire", PERMITS_ACQUIRE, call_permits_acquire, NULL, IS_GRANT, 0},
	{"permits release", PERMITS_RELEASE, call_permits_release, call_permits_acquire, 0, 0},
	{"permits extend", PERMITS_EXTEND, call_permits_extend, call_permits_acquire, 0, 0},
	{"permits lease", PERMITS_LEASE, call_permits_lease, call_permits_acquire, 0, 0},
	{"permits available", PERMITS_COUNT, call_permits_available, NULL, 0, 0},
	{"permits acquired", PERMITS_COUNT, call_permits_acquired, NULL, 0, 0},
	{"permits total", PERMITS_COUNT, call_permits_total, NULL, 0, 0},
	{"permits try_set", SEMAPHORE_SET, call_permits_try_set, NULL, 0, 0},
	{"permits set", PERMITS_SET, call_permits_set, NULL, 0, 0},
	{"permits add", PERMITS_ADD, call_permits_add, NULL, 0, 0},
	{"latch wait", LATCH_WAIT, call_latch_wait, NULL, 0, 0},
	{"latch count_down", LATCH_DOWN, call_count_down, NULL, 0, 0},
	{"latch try_set", LATCH_SET, call_latch_set, NULL, 0, 0},
	{"latch delete", LATCH_DELETE, call_latch_delete, NULL, 0, 0},
	{"latch count", NUMBER, call_latch_count, NULL, 0, 0},
	{"inspect", INSPECT, call_inspect, NULL, 0, 0},
	{"inspect_many", INSPECT, call_inspect_many, NULL, 0, 0},
	{"list", INSPECT, call_list, NULL, IS_BROAD, 0},
	{"list of what is waited for", WAITED, call_list_waited, NULL, IS_BROAD, 0},
	{"facts", FACTS, call_facts, NULL, IS_BROAD, 0},
	{"history", HISTORY_READ, call_history, NULL, 0, 0},
	{"clear_history", HISTORY_CLEAR, call_clear_history, NULL, 0, 0},
};

#define CALLS (sizeof calls / sizeof *calls)

/* The rule of its request after ASKING. */
static inline int asked_rule(const struct call *call)
{
	return call->rule == TOKEN ? ASKED_TOKEN : call->rule - 2;
}

static inline bool is_grant(const struct call *call)
{
	return call->traits & IS_GRANT;
}

static inline bool is_once(const struct call *call)
{
	return call->traits & IS_ONCE;
}

static inline bool is_renewal(const struct call *call)
{
	return call->rule == RENEW || call->rule == READ_RENEW || call->rule == GROUP_RENEW;
}

/* Whether the request names a key, so that a node can refuse it for the key's slot. */
static inline bool has_slot(const struct call *call)
{
	return !(call->traits & IS_BROAD);
}

/* Opens the lock of the call's kind. */
static inline void open_subject(const struct call *call)
{
	static const char *const values[] = {"one", "two"};
	struct wire wire = {0};
	hf_lock_close(scene.subject);
	scene.subject = NULL;
	if (call->kind == GROUP)
		EXPECT_RC(&wire, 0,
		          hf_lock_open_group(scene.client, "orders", values, 2, &scene.subject));
	else if (call->kind)
		EXPECT_RC(
			&wire, 0,
			hf_lock_open(scene.client, (hf_kind)call->kind, "orders", &scene.subject));
}

/* How many requests like its own the first node has had so far. */
static inline int sent_before(const struct call *call)
{
	return count_all(0, call->rule);
}

/* Opens a client and makes the calls that this one needs. */
static inline void prepare_call(const struct call *call)
{
	struct wire wire = {0};
	open_scene(scene.url);
	open_subject(call);
	if (call->before)
		EXPECT_RC(&wire, 0, call->before());
}

/* Makes the call, and says which one it was if the result is not the one that was expected. */
static inline void expect_call(const struct call *call, int wanted)
{
	int rc = call->run();
	if (rc != wanted)
		fail_msg("%s: got %d (%s: %s), expected %d", call->name, rc, hf_strerror(rc),
		         hf_error_detail(), wanted);
}

static inline void expect_count(const char *call, int node, int rule, int wanted)
{
	int count = responder_count(scene.node[node], rule);
	if (count != wanted)
		fail_msg("%s: rule %d of node %d matched %d times, not %d", call, rule, node, count,
		         wanted);
}

/* Nothing was executed twice, and nothing was in doubt. */
static inline void expect_no_doubt(const struct call *call)
{
	hf_stats stats = stats_of(scene.client);
	if (stats.unknowns || stats.losses || losses)
		fail_msg("%s: %d outcomes were unknown and %d holds were lost", call->name,
		         (int)stats.unknowns, (int)stats.losses);
}

/* ---- stories about every call ---- */

typedef void call_story(const struct call *call);

static const char *node_refusal; /* what the story is about, if it is played with several */

/* Most of a story's time is waiting, so this many processes play them. */
#define PLAYERS 24

struct playing {
	call_story *story;
	const char *const *refusals;
	size_t count;    /* of the refusals */
	bool only_keyed; /* calls */
};

/* Plays the stories whose number has this remainder, each on a cluster of its own. */
_Noreturn static inline void play_stories(const struct playing *playing, size_t first)
{
	for (size_t i = first; i < playing->count * CALLS; i += PLAYERS) {
		const struct call *call = &calls[i % CALLS];
		if (playing->only_keyed && !has_slot(call))
			continue;
		node_refusal = playing->refusals[i / CALLS];
		(void)set_scene(NULL);
		playing->story(call);
		(void)clear_scene(NULL);
	}
	exit(0);
}

/*
 * A story that fails ends its process, after it has printed why. This process must not have any
 * threads, and so no scene.
 */
static inline void play_all(const struct playing *playing)
{
	int failed = 0;
	assert_int_equal(setenv("CMOCKA_TEST_ABORT", "1", 1), 0);
	(void)fflush(NULL);
	for (size_t i = 0; i < PLAYERS; i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			play_stories(playing, i);
		}
	}
	for (int i = 0, status; i < PLAYERS; i++) {
		assert_true(wait(&status) > 0);
		failed += status != 0;
	}
	assert_int_equal(unsetenv("CMOCKA_TEST_ABORT"), 0);
	if (failed)
		fail_msg("%d of %d processes failed", failed, PLAYERS);
}

/* Plays the story about every call with each of these refusals. */
static inline void for_each_call_and(const char *const *refusals, size_t count, call_story *story)
{
	play_all(&(struct playing){story, refusals, count, false});
}

static const char *const no_refusal[] = {NULL};

static inline void for_each_call(call_story *story)
{
	play_all(&(struct playing){story, no_refusal, 1, false});
}

static inline void for_each_keyed_call(call_story *story)
{
	play_all(&(struct playing){story, no_refusal, 1, true});
}

/* A test that calls one of these; it has no scene of its own. */
#define EVERY_CALL(name) cmocka_unit_test(name)

#endif
