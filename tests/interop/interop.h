/* What the interop tests share: a server, a client in C, a peer in Java, and the kinds of locks. */
#ifndef TESTS_INTEROP_INTEROP_H
#define TESTS_INTEROP_INTEROP_H

#include "live/live.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interop/peer.h"
#include "support/process.h"

/*
 * Holds that are released before they expire have this lease, and their waiters are woken by a
 * message far sooner.
 */
#define LONG_MS  30000
#define WOKEN_MS 3000

/* The watchdog's lease on both sides, and how late on a crowded machine its end may be noticed. */
#define WATCHDOG_MS 3000
#define LATE_MS     3000

/* The values of a group where they do not matter to a test. */
#define GROUP_VALUES "one", "two"

/* ---- both sides, one for all tests of a program ---- */

static hf_client *interop_client;
static struct peer *interop_peer;

/* Both sides are on one host, so their clocks agree. */
static inline hf_client *open_interop_client(const char *url)
{
	return open_url(url, HF_CLIENT(.watchdog_ms = WATCHDOG_MS, .peer_skew_ms = 1));
}

static inline struct peer *start_interop_peer(void)
{
	return peer_start(test_server_url(live_server),
	                  &(struct peer_options){.watchdog_ms = WATCHDOG_MS});
}

static inline int interop_start(void **state)
{
	(void)state;
	live_server = test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	live_raw = raw_connect(live_server);
	interop_peer = start_interop_peer();
	interop_client = open_interop_client(test_server_url(live_server));
	return 0;
}

static inline int interop_stop(void **state)
{
	peer_kill(interop_peer);
	ASSERT_OK(hf_client_close(interop_client));
	return live_stop(state);
}

/* A test that failed may have left threads in Java that wait for ever. */
static inline int interop_begin(void **state)
{
	if (!peer_is_idle(interop_peer)) {
		peer_kill(interop_peer);
		interop_peer = start_interop_peer();
	}
	return live_flush(state);
}

/* ---- kinds ---- */

enum shape { ONE_KEY, GROUP, MULTI };

struct kind {
	const char *name; /* as the peer knows it */
	enum shape shape;
	hf_kind kind;       /* of ONE_KEY */
	bool does_not_nest; /* its owner is refused if it asks again */
};

static const struct kind reentrant_kind = {"reentrant", ONE_KEY, HF_REENTRANT, false};
static const struct kind fair_kind = {"fair", ONE_KEY, HF_FAIR, false};
static const struct kind read_kind = {"read", ONE_KEY, HF_READ, false};
static const struct kind write_kind = {"write", ONE_KEY, HF_WRITE, false};
static const struct kind fenced_kind = {"fenced", ONE_KEY, HF_FENCED, false};
static const struct kind spin_kind = {"spin", ONE_KEY, HF_SPIN, false};
static const struct kind simple_kind = {"simple", ONE_KEY, HF_SIMPLE, true};
static const struct kind simple_fair_kind = {"simple_fair", ONE_KEY, HF_SIMPLE_FAIR, true};
static const struct kind group_kind = {"group", GROUP, 0, false};
static const struct kind multi_kind = {"multi", MULTI, 0, false};

/* All that exclude. */
static const struct kind *const exclusive_kinds[] = {
	&reentrant_kind, &fair_kind,        &write_kind, &fenced_kind, &spin_kind,
	&simple_kind,    &simple_fair_kind, &group_kind, &multi_kind,
};
#define EXCLUSIVE_KINDS (sizeof(exclusive_kinds) / sizeof(exclusive_kinds[0]))

/* One lock, as both sides name it. */
struct subject {
	const struct kind *kind;
	char name[64];
	char java[160];
	hf_lock *lock; /* of the client in C */
};

static inline void name_in_java(const struct kind *kind, const char *name, char *ret_java,
                                size_t size)
{
	switch (kind->shape) {
	case ONE_KEY: snprintf(ret_java, size, "%s", name); break;
	case GROUP: snprintf(ret_java, size, "%s/one,two", name); break;
	case MULTI: snprintf(ret_java, size, "%s:a,%s:b", name, name); break;
	}
}

static inline hf_lock *open_members(hf_client *client, const char *name)
{
	char a[80];
	char b[80];
	hf_lock *lock = NULL;
	snprintf(a, sizeof a, "%s:a", name);
	snprintf(b, sizeof b, "%s:b", name);
	hf_lock *members[] = {open_lock(client, a), open_lock(client, b)};
	ASSERT_OK(hf_lock_open_multi(members, 2, &lock));
	hf_lock_close(members[0]);
	hf_lock_close(members[1]);
	return lock;
}

static inline hf_lock *open_kind(hf_client *client, const struct kind *kind, const char *name)
{
	const char *const values[] = {GROUP_VALUES};
	hf_lock *lock = NULL;
	switch (kind->shape) {
	case ONE_KEY: ASSERT_OK(hf_lock_open(client, kind->kind, name, &lock)); break;
	case GROUP: ASSERT_OK(hf_lock_open_group(client, name, values, 2, &lock)); break;
	case MULTI: lock = open_members(client, name); break;
	}
	return lock;
}

/* A name that no other test has, and that is not part of another. */
static inline void make_name(char *ret_name, size_t size, const char *kind)
{
	static int made;
	snprintf(ret_name, size, "%s-%04d-", kind, ++made);
}

/* Skips the test where this Redisson lacks the kind. */
static inline void require_kind(const struct kind *kind)
{
	if (!peer_supports(interop_peer, kind->name)) {
		print_message("this Redisson has no %s lock\n", kind->name);
		skip();
	}
}

static inline struct subject *subject_open_named(const struct kind *kind, const char *name)
{
	require_kind(kind);
	struct subject *subject = check_alloc(sizeof(*subject));
	subject->kind = kind;
	snprintf(subject->name, sizeof subject->name, "%s", name);
	name_in_java(kind, name, subject->java, sizeof subject->java);
	subject->lock = open_kind(interop_client, kind, name);
	return subject;
}

static inline struct subject *subject_open(const struct kind *kind)
{
	char name[64];
	make_name(name, sizeof name, kind->name);
	return subject_open_named(kind, name);
}

/* Whether a value of the group is held. Java leaves more in the hash of holds that have ended. */
static inline bool has_held_value(const char *group)
{
	bool found = false;
	struct raw_reply *fields = raw_command(live_raw, "HKEYS", group, NULL);
	for (size_t i = 0; i < fields->length; i++)
		found = found || !strchr(fields->children[i]->text, ':');
	raw_reply_free(fields);
	return found;
}

/*
 * Whether a key may stay for a while: Java's memory of its unlocks, tokens, groups without holds.
 */
static inline bool may_stay(const char *key, const char *name, bool is_group)
{
	return strstr(key, "redisson_unlock_latch") || strstr(key, "redisson_lock_token") ||
	       (is_group && strcmp(key, name) == 0 && !has_held_value(name));
}

/* How many other keys with the name in theirs are on the server. */
static inline int leftovers(const char *name, bool is_group)
{
	char pattern[96];
	int count = 0;
	snprintf(pattern, sizeof pattern, "*%s*", name);
	struct raw_reply *keys = raw_command(live_raw, "KEYS", pattern, NULL);
	for (size_t i = 0; i < keys->length; i++)
		count += !may_stay(keys->children[i]->text, name, is_group);
	raw_reply_free(keys);
	return count;
}

/* Finishes a story: nobody holds the lock, and nobody waits for it. */
static inline void subject_close(struct subject *subject)
{
	WAIT_UNTIL(leftovers(subject->name, subject->kind->shape == GROUP) == 0, SOON_MS);
	hf_lock_close(subject->lock);
	free(subject);
}

/* ---- the two sides of a lock ---- */

static inline void c_takes(struct subject *subject, int64_t lease_ms)
{
	ASSERT_OK(hf_lock_acquire(subject->lock,
	                          HF_ACQUIRE(.wait_ms = SOON_MS, .lease_ms = lease_ms)));
}

static inline void c_is_kept_out(struct subject *subject)
{
	ASSERT_RC(hf_lock_acquire(subject->lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
}

static inline void c_releases(struct subject *subject)
{
	ASSERT_OK(hf_lock_release(subject->lock));
}

static inline struct waiter *c_starts_waiting(struct subject *subject)
{
	struct waiter *waiter = waiter_start(subject->lock, NULL);
	WAIT_UNTIL(stats_of(interop_client).waiting > 0, SOON_MS);
	return waiter;
}

static inline void java_takes(struct subject *subject, const char *thread, long long lease_ms)
{
	(void)peer_ok(interop_peer, "%s lock %s %s %lld", thread, subject->kind->name,
	              subject->java, lease_ms);
}

static inline bool java_tries(struct subject *subject, const char *thread, long long wait_ms)
{
	return peer_is_true(interop_peer, "%s try %s %s %lld %d", thread, subject->kind->name,
	                    subject->java, wait_ms, LONG_MS);
}

static inline void java_releases(struct subject *subject, const char *thread)
{
	(void)peer_ok(interop_peer, "%s unlock %s %s", thread, subject->kind->name, subject->java);
}

static inline void java_does_not_hold(struct subject *subject, const char *thread)
{
	peer_throws(interop_peer, "IllegalMonitorStateException", "%s unlock %s %s", thread,
	            subject->kind->name, subject->java);
}

static inline long long script_calls(void)
{
	return command_calls(live_raw, "evalsha") + command_calls(live_raw, "eval");
}

/* A number that both sides count in; a missing one is 0. */
static inline long long read_counter(struct raw *raw, const char *counter)
{
	char *text = raw_text(raw, "GET", counter, NULL);
	long long number = text ? atoll(text) : 0;
	free(text);
	return number;
}

static inline void write_counter(struct raw *raw, const char *counter, long long number)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", number);
	raw_ok(raw, "SET", counter, text, NULL);
}

static inline bool has_subscribers(const char *name)
{
	char pattern[96];
	snprintf(pattern, sizeof pattern, "*%s*", name);
	struct raw_reply *found = raw_command(live_raw, "PUBSUB", "CHANNELS", pattern, NULL);
	bool any = found->length > 0;
	raw_reply_free(found);
	return any;
}

/*
 * A waiter asks once more after it has subscribed. Only when it has gone to sleep is it the message
 * that wakes it. Waits until no script has run for this long; but waiters that never sleep are not
 * waited for longer than a second.
 */
static inline void let_all_settle(long long (*count_calls)(void), long long quiet_ms)
{
	long long calls = count_calls();
	long long quiet_at = test_now_ms();
	long long ends_at = quiet_at + 1000;
	while (test_now_ms() < quiet_at + quiet_ms && test_now_ms() < ends_at) {
		test_pause();
		long long now = count_calls();
		if (now != calls)
			quiet_at = test_now_ms();
		calls = now;
	}
}

static inline void let_settle(void)
{
	let_all_settle(script_calls, 40);
}

/* The Java thread has to wait for something, and does. */
static inline void java_waits(const char *thread, const char *name)
{
	WAIT_UNTIL(has_subscribers(name), SOON_MS);
	let_settle();
	assert_false(peer_has_answered(interop_peer, thread));
}

static inline void java_starts_waiting(struct subject *subject, const char *thread)
{
	long long calls = script_calls();
	peer_send(interop_peer, "%s lock %s %s %d", thread, subject->kind->name, subject->java,
	          LONG_MS);
	if (subject->kind == &spin_kind) {
		WAIT_UNTIL(script_calls() > calls + 3, SOON_MS);
		assert_false(peer_has_answered(interop_peer, thread));
	} else {
		java_waits(thread, subject->name);
	}
}

/* The thread got what it waited for, soon after that time. */
static inline void java_is_woken(const char *thread, long long since)
{
	struct answer answer = peer_wait(interop_peer, thread, 2LL * LONG_MS);
	if (!answer.ok)
		fail_msg("Java threw while it waited: %s", answer.text);
	ASSERT_BETWEEN(test_now_ms() - since, 0, WOKEN_MS);
}

static inline void c_is_woken(struct waiter *waiter, long long since)
{
	WAIT_UNTIL(atomic_load(&waiter->over), 2LL * LONG_MS);
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - since, -1, WOKEN_MS);
}

/* ---- processes in C that are killed ---- */

/* Starts this program again with other arguments, and returns when it calls victim_is_ready. */
static inline pid_t victim_start(const char *const *argv)
{
	int pipes[2];
	char byte = 0;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid_t pid = process_start(argv, pipes[1]);
	assert_true(pid > 0);
	(void)close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(byte, '!');
	(void)close(pipes[0]);
	return pid;
}

static inline void victim_is_ready(void)
{
	dprintf(STDOUT_FILENO, "!");
}

static inline void victim_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- programs ---- */

/* A test of one kind; its name says both. */
#define STORY(story, kind)                                                                         \
	{                                                                                          \
#kind ": " #story, story, interop_begin, NULL, (void *)(uintptr_t)&kind##_kind     \
	}

#define TEST(story) cmocka_unit_test_setup(story, interop_begin)

/* A first argument chooses tests by name: "fair: *". */
#define INTEROP_RUN(tests, argc, argv)                                                             \
	(cmocka_set_test_filter((argc) > 1 ? (argv)[1] : NULL),                                    \
	 cmocka_run_group_tests(tests, interop_start, interop_stop))

#endif
