/*
 * The calls of a story, made with this library: each of those that may block in a thread of its
 * own.
 */
#include "golden-zk/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden-zk/cast.h"
#include "golden-zk/setting.h"
#include "live/live.h"

#define MAX_PERMITS 4

/* Waits are longer than Java's, so that a request is answered in that time on a loaded machine. */
#define WAIT_FACTOR 5

/* One call in progress. It belongs to its actor. */
struct call {
	pthread_t thread;
	int (*run)(struct call *call);
	struct cast_object *object;
	hf_lock *lock;
	hf_permits *permits;
	hf_owner *owner;
	hf_cancel *cancel;
	int64_t wait_ms;
	int count; /* of permits */
	hf_permit_id ids[MAX_PERMITS];
	bool is_revocable;
	atomic_bool over;
	int result;
	char detail[200];
};

/* ---- what runs in the thread ---- */

static int run_acquire(struct call *call)
{
	const struct cast_object *object = call->object;
	int rc = hf_lock_acquire(call->lock,
	                         HF_ACQUIRE(.wait_ms = call->wait_ms, .owner = call->owner,
	                                    .cancel = call->cancel, .value = object->value,
	                                    .revocable = call->is_revocable));
	if (!rc && (object->kind == CAST_LATCH || object->kind == CAST_SELECTOR))
		cast_report("leader %s yes", object->name);
	return rc;
}

static int run_release(struct call *call)
{
	return hf_lock_release_with(call->lock,
	                            HF_RELEASE(.owner = call->owner, .wait_ms = CAST_PATIENCE_MS));
}

static int run_take(struct call *call)
{
	return hf_permits_acquire(call->permits, call->count,
	                          HF_PERMITS(.wait_ms = call->wait_ms, .cancel = call->cancel),
	                          call->ids);
}

static int run_give(struct call *call)
{
	return hf_permits_release(call->permits, (const hf_permit_id *)call->ids, call->count);
}

static int run_wait(struct call *call)
{
	return hf_barrier_wait(call->object->barrier,
	                       HF_WAIT(.wait_ms = call->wait_ms, .cancel = call->cancel));
}

static int run_enter(struct call *call)
{
	return hf_double_barrier_enter(call->object->member,
	                               HF_WAIT(.wait_ms = call->wait_ms, .cancel = call->cancel));
}

static int run_leave(struct call *call)
{
	return hf_double_barrier_leave(call->object->member,
	                               HF_WAIT(.wait_ms = call->wait_ms, .cancel = call->cancel));
}

static void *run_call(void *arg)
{
	struct call *call = arg;
	call->result = call->run(call);
	snprintf(call->detail, sizeof call->detail, "%s", hf_error_detail());
	atomic_store(&call->over, true);
	return NULL;
}

/* ---- beginning and end of a call ---- */

static struct call *start_call(struct cast_actor *actor, const struct call *wish, const char *tag)
{
	struct call *call = check_alloc(sizeof(*call));
	*call = *wish;
	call->owner = actor->owner;
	call->cancel = actor->cancel;
	assert_null(actor->call);
	actor->call = call;
	actor->tag = tag;
	assert_int_equal(pthread_create(&call->thread, NULL, run_call, call), 0);
	return call;
}

static void free_call(struct cast_actor *actor)
{
	assert_int_equal(pthread_join(actor->call->thread, NULL), 0);
	free(actor->call);
	actor->call = NULL;
	actor->tag = NULL;
}

void calls_end(void)
{
	for (int i = 0; i < CAST_MAX; i++)
		if (cast.actors[i].call)
			free_call(&cast.actors[i]);
}

static const char *word_for(int result)
{
	switch (result) {
	case 0: return "true";
	case HF_EBUSY:
	case HF_ETIMEDOUT: return "false";
	case HF_ECANCELLED: return "cancelled";
	case HF_EDEADLOCK: return "deadlock";
	case HF_ELOST: return "lost";
	default: return hf_strerror(result);
	}
}

/* The names that the story has for what was taken: "L5=node L6=node". */
static void name_permits(const struct call *call, const char *leases)
{
	struct cast_permit *permit = cast.permits;
	for (int i = 0; i < call->count; i++) {
		size_t length = strcspn(leases, "=");
		while (permit->name[0])
			permit++;
		assert_true(permit < cast.permits + CAST_MAX - 1 && length < sizeof permit->name);
		snprintf(permit->name, sizeof permit->name, "%.*s", (int)length, leases);
		permit->permits = call->permits;
		memcpy(permit->id, call->ids[i], sizeof permit->id);
		leases += strcspn(leases, " ");
		leases += *leases == ' ';
	}
}

/* Waits for the end of an actor's call. */
static void finish_call(struct cast_actor *actor, const char *leases, struct calls_answer *answer)
{
	struct call *call = actor->call;
	assert_non_null(call);
	WAIT_UNTIL(atomic_load(&call->over), CAST_PATIENCE_MS);
	snprintf(answer->gives, sizeof answer->gives, "%s", word_for(call->result));
	snprintf(answer->detail, sizeof answer->detail, "%s", call->result ? call->detail : "");
	if (!call->result && call->run == run_take && leases)
		name_permits(call, leases);
	free_call(actor);
}

/* ---- an answer that is lost ---- */

/* How many nodes the lock has now. */
static int count_nodes(const struct cast_object *object)
{
	struct zk_raw_names names = {0};
	char path[72];
	snprintf(path, sizeof path, "/%s", object->path);
	(void)zk_raw_children(cast.eye, path, &names, NULL);
	int count = names.count;
	zk_raw_names_clear(&names);
	return count;
}

/* The server does what is asked, but its answer never arrives. */
static void start_losing(struct cast_actor *actor, const struct call *wish, const char *tag,
                         int more)
{
	struct cast_client *client = wish->object->client;
	int nodes = count_nodes(wish->object), made = tap_count(client->tap);
	if (client->loses)
		proxy_drop_replies(client->proxy, true);
	(void)start_call(actor, wish, tag);
	if (!client->loses)
		return;
	WAIT_UNTIL(count_nodes(wish->object) == nodes + more, CAST_PATIENCE_MS);
	WAIT_UNTIL(tap_count(client->tap) == made + (more > 0), CAST_PATIENCE_MS);
	proxy_drop_replies(client->proxy, false);
	proxy_cut(client->proxy);
	client->loses = false;
}

/* ---- locks and permits ---- */

static hf_lock *lock_of(const char *word)
{
	const struct cast_object *object = cast_object(word);
	const char *dot = strchr(word, '.');
	return !dot ? object->lock : dot[1] == 'r' ? object->read : object->write;
}

/* A wait of 0 is one attempt; without one it waits for ever. */
static int64_t wait_of(const struct zk_story_step *step)
{
	if (step->words < 3 || strcmp(step->word[2], "-") == 0)
		return 0;
	int64_t wait_ms = atoll(step->word[2]);
	return wait_ms ? wait_ms * WAIT_FACTOR : HF_NOWAIT;
}

/* acquire la [300], acquire sa [300 or -] [permits] */
static void do_acquire(const struct zk_story_step *step, struct calls_answer *answer)
{
	struct cast_actor *actor = cast_actor(step->thread);
	struct cast_object *object = cast_object(step->word[1]);
	struct call wish = {.run = object->permits ? run_take : run_acquire,
	                    .object = object,
	                    .lock = lock_of(step->word[1]),
	                    .permits = object->permits,
	                    .wait_ms = wait_of(step),
	                    .count = step->words > 3 ? atoi(step->word[3]) : 1,
	                    .is_revocable = object->is_revocable};
	assert_true(wish.count <= MAX_PERMITS);
	start_losing(actor, &wish, step->tag, 1);
	if (!step->tag)
		finish_call(actor, step->leases, answer);
}

/* Prints nothing if all went well. */
static void finish_silent(struct cast_actor *actor, struct calls_answer *answer)
{
	finish_call(actor, NULL, answer);
	if (strcmp(answer->gives, "true") == 0)
		answer->gives[0] = 0;
}

/* release L5 L6 */
static void release_permits(const struct zk_story_step *step, struct calls_answer *answer)
{
	struct cast_actor *actor = cast_actor(step->thread);
	struct call wish = {.run = run_give, .count = step->words - 1};
	assert_true(wish.count <= MAX_PERMITS);
	for (int i = 0; i < wish.count; i++) {
		const struct cast_permit *permit = cast_permit(step->word[1 + i]);
		wish.permits = permit->permits;
		memcpy(wish.ids[i], permit->id, sizeof permit->id);
	}
	(void)start_call(actor, &wish, NULL);
	finish_silent(actor, answer);
}

static void do_release(const struct zk_story_step *step, struct calls_answer *answer)
{
	struct cast_actor *actor = cast_actor(step->thread);
	if (*step->word[1] == 'L') {
		release_permits(step, answer);
		return;
	}
	struct cast_object *object = cast_object(step->word[1]);
	struct call wish = {.run = run_release, .object = object, .lock = lock_of(step->word[1])};
	object->is_revocable = false;
	start_losing(actor, &wish, NULL, -1);
	finish_silent(actor, answer);
}

/* Of several locks Java does not know the thread. */
static void do_owned(const struct zk_story_step *step, struct calls_answer *answer)
{
	bool several = cast_object(step->word[1])->kind == CAST_MULTI;
	hf_state state = hf_lock_state(lock_of(step->word[1]), cast_actor(step->thread)->owner);
	if (state == HF_LOST)
		snprintf(answer->gives, sizeof answer->gives, "lost");
	else
		snprintf(answer->gives, sizeof answer->gives, "thread=%s process=%s",
		         several            ? "-"
		         : state == HF_HELD ? "true"
		                            : "false",
		         state == HF_HELD ? "true" : "false");
}

/* path ra.r: of the node that it has */
static void do_path(const struct zk_story_step *step, struct calls_answer *answer)
{
	char name[128];
	int rc = hf_lock_identity(lock_of(step->word[1]), cast_actor(step->thread)->owner, name,
	                          sizeof name);
	if (rc == HF_ENOTHELD)
		snprintf(answer->gives, sizeof answer->gives, "null");
	else
		ASSERT_OK(rc);
	if (!rc)
		snprintf(answer->gives, sizeof answer->gives, "/%s/%s",
		         cast_object(step->word[1])->path, name);
}

/* revoke b $la: b asks by a lock of its own, of the same name */
static void do_revoke(const struct zk_story_step *step)
{
	int asked = 0;
	const struct cast_object *object = cast_object(step->word[2] + 1);
	for (int i = 0; i < CAST_MAX && cast.objects[i].name; i++)
		if (cast.objects[i].client == cast_client(step->word[1]) &&
		    strcmp(cast.objects[i].path, object->path) == 0)
			ASSERT_OK(hf_lock_revoke(cast.objects[i].lock, &asked));
	assert_int_equal(asked, 1);
}

/* ---- participants ---- */

struct rows {
	const struct cast_object *object;
	const char *marker; /* what its nodes have in their names, or NULL */
	struct calls_answer *answer;
};

static void add_row(const struct rows *rows, const char *name, const char *text, bool leads)
{
	struct calls_answer *answer = rows->answer;
	bool elects = rows->object->kind == CAST_LATCH || rows->object->kind == CAST_SELECTOR;
	if (rows->marker && !strstr(name, rows->marker))
		return;
	assert_true(answer->rows < ZK_STORY_MAX_ROWS);
	if (elects)
		snprintf(answer->row[answer->rows++], sizeof answer->row[0], "\"%s\" leader=%s",
		         text, leads ? "true" : "false");
	else
		snprintf(answer->row[answer->rows++], sizeof answer->row[0], "%s", name);
}

static int report_rows(void *arg, const hf_info *info)
{
	for (size_t i = 0; i < hf_info_holders(info); i++)
		add_row(arg, hf_info_owner(info, i), hf_info_text(info, i), true);
	for (size_t i = 0; i < hf_info_waiters(info); i++)
		add_row(arg, hf_info_waiter(info, i), hf_info_waiter_text(info, i), false);
	return 0;
}

static void do_participants(const struct zk_story_step *step, struct calls_answer *answer)
{
	const struct cast_object *object = cast_object(step->word[1]);
	const char *dot = strchr(step->word[1], '.');
	struct rows rows = {object, !dot ? NULL : dot[1] == 'r' ? "__READ__" : "__WRIT__", answer};
	ASSERT_OK(hf_client_inspect(object->client->client, object->path, report_rows, &rows));
	snprintf(answer->gives, sizeof answer->gives, "%d", answer->rows);
	if (object->permits) {
		int64_t acquired = 0;
		ASSERT_OK(hf_permits_acquired(object->permits, &acquired));
		assert_int_equal(acquired, answer->rows);
	}
}

static void do_leader(const struct zk_story_step *step, struct calls_answer *answer)
{
	do_participants(step, answer);
	assert_true(answer->rows > 0);
	snprintf(answer->gives, sizeof answer->gives, "%s", answer->row[0]);
	answer->rows = 0;
}

/* ---- elections: a candidate has the name of its handle ---- */

static void start_candidate(struct cast_object *object)
{
	const struct call wish = {.run = run_acquire, .object = object, .lock = object->lock};
	(void)start_call(cast_actor(object->name), &wish, NULL);
}

/* Java's latch reports nothing when it is stopped. */
static void resign(struct cast_object *object, struct calls_answer *answer)
{
	struct cast_actor *actor = cast_actor(object->name);
	const struct call wish = {.run = run_release, .object = object, .lock = object->lock};
	if (actor->call)
		finish_call(actor, NULL, answer);
	(void)start_call(actor, &wish, NULL);
	finish_silent(actor, answer);
	if (!answer->gives[0] && object->kind == CAST_SELECTOR)
		cast_report("leader %s no", object->name);
}

static void do_election(const struct zk_story_step *step, struct calls_answer *answer)
{
	const char *verb = step->word[0];
	struct cast_object *object = cast_object(step->word[1]);
	struct cast_actor *actor = cast_actor(object->name);
	if (strcmp(verb, "start") == 0 || strcmp(verb, "requeue") == 0)
		start_candidate(object);
	else if (strcmp(verb, "await") == 0)
		finish_call(actor, NULL, answer);
	else if (strcmp(verb, "leads") == 0)
		snprintf(answer->gives, sizeof answer->gives, "%s",
		         hf_lock_state(object->lock, actor->owner) == HF_HELD ? "true" : "false");
	else
		resign(object, answer);
	if (strcmp(verb, "requeue") == 0)
		snprintf(answer->gives, sizeof answer->gives, "true");
	if (strcmp(verb, "yield") == 0 && object->requeues)
		start_candidate(object);
}

/* ---- barriers and counts ---- */

static void do_barrier(const struct zk_story_step *step, struct calls_answer *answer)
{
	const char *verb = step->word[0];
	struct cast_actor *actor = cast_actor(step->thread);
	struct call wish = {.object = cast_object(step->word[1]), .wait_ms = wait_of(step)};
	wish.run = strcmp(verb, "wait") == 0 ? run_wait : *verb == 'e' ? run_enter : run_leave;
	(void)start_call(actor, &wish, step->tag);
	if (!step->tag)
		finish_call(actor, NULL, answer);
}

/* A barrier is set; a count is set to something. */
static void do_set(const struct zk_story_step *step, struct calls_answer *answer)
{
	const struct cast_object *object = cast_object(step->word[1]);
	int rc = object->barrier ? hf_barrier_set(object->barrier)
	                         : hf_permits_set(object->permits, atoll(step->word[2]));
	if (rc)
		snprintf(answer->gives, sizeof answer->gives, "%s", word_for(rc));
}

/* tryset cb 258: adds the difference, which is written only if nobody has written meanwhile */
static void do_tryset(const struct zk_story_step *step, struct calls_answer *answer)
{
	int64_t total = 0;
	hf_permits *permits = cast_object(step->word[1])->permits;
	ASSERT_OK(hf_permits_total(permits, &total));
	int rc = hf_permits_add(permits, atoll(step->word[2]) - total);
	snprintf(answer->gives, sizeof answer->gives, "%s", word_for(rc));
}

static void do_get(const struct zk_story_step *step, struct calls_answer *answer)
{
	int64_t total = 0;
	ASSERT_OK(hf_permits_total(cast_object(step->word[1])->permits, &total));
	snprintf(answer->gives, sizeof answer->gives, "%lld", (long long)total);
}

/* ---- all of them ---- */

static bool is_one_of(const char *verb, const char *const *verbs)
{
	while (*verbs && strcmp(*verbs, verb) != 0)
		verbs++;
	return *verbs;
}

void calls_do(const struct zk_story_step *step, struct calls_answer *ret_answer)
{
	static const char *const elections[] = {"start",   "await", "leads", "yield",
	                                        "requeue", "stop",  NULL};
	static const char *const barriers[] = {"wait", "enter", "leave", NULL};
	static const struct {
		const char *verb;
		void (*run)(const struct zk_story_step *step, struct calls_answer *answer);
	} verbs[] = {
		{"acquire", do_acquire}, {"release", do_release}, {"owned", do_owned},
		{"path", do_path},       {"leader", do_leader},   {"participants", do_participants},
		{"set", do_set},         {"tryset", do_tryset},   {"get", do_get},
	};
	const char *verb = step->word[0];
	memset(ret_answer, 0, sizeof(*ret_answer));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (strcmp(verbs[i].verb, verb) == 0) {
			verbs[i].run(step, ret_answer);
			return;
		}
	}
	if (strncmp(verb, "join", 4) == 0)
		finish_call(cast_tagged(step->word[1]), step->leases, ret_answer);
	else if (is_one_of(verb, barriers))
		do_barrier(step, ret_answer);
	else if (strcmp(verb, "unset") == 0)
		ASSERT_OK(hf_barrier_remove(cast_object(step->word[1])->barrier));
	else if (strcmp(verb, "revoke") == 0)
		do_revoke(step);
	else if (is_one_of(verb, elections) && cast_object(step->word[1])->lock)
		do_election(step, ret_answer);
	else
		setting_do(step, ret_answer->gives, sizeof ret_answer->gives);
}
