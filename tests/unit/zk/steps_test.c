/*
 * Checks the steps of a node's command against a library that only notes its requests: each test
 * answers them itself, in the order and as late as it wants.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "support/check.h"
#include "zk/zk.h"

#define WIRE       7
#define CALLS      16
#define SESSION_ID 99

/* A request that the library has, and the test has to answer. */
struct call {
	char path[HF__ZK_PATH];
	struct hf__zk_request *request;
};

struct bench {
	struct hf__core core;
	struct hf__zk_settings config;
	struct hf__session session;
	struct hf__zk zk;
	struct hf__lock *lock;
	struct hf__cmd ask, settle;
	struct call calls[CALLS]; /* in the order in which they were made */
	size_t first, count;
	int outcome; /* of the last answer, or -1 */
};

static struct bench *bench;

/* ---- the library ---- */

static int note_call(const char *path, const void *arg)
{
	assert_true(bench->count < CALLS);
	struct call *call = &bench->calls[bench->count++];
	(void)snprintf(call->path, sizeof call->path, "%s", path);
	call->request = (struct hf__zk_request *)(uintptr_t)arg;
	return ZOK;
}

static int fake_create(zhandle_t *handle, const char *path, const char *value, int length,
                       const struct ACL_vector *acl, int mode, string_stat_completion_t done,
                       const void *arg)
{
	(void)handle, (void)value, (void)length, (void)acl, (void)mode, (void)done;
	return note_call(path, arg);
}

static int fake_remove(zhandle_t *handle, const char *path, int version, void_completion_t done,
                       const void *arg)
{
	(void)handle, (void)version, (void)done;
	return note_call(path, arg);
}

static int fake_exists(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                       stat_completion_t done, const void *arg)
{
	(void)handle, (void)watcher, (void)context, (void)done;
	return note_call(path, arg);
}

static int fake_get(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                    data_completion_t done, const void *arg)
{
	(void)handle, (void)watcher, (void)context, (void)done;
	return note_call(path, arg);
}

static int fake_set(zhandle_t *handle, const char *path, const char *value, int length, int version,
                    stat_completion_t done, const void *arg)
{
	(void)handle, (void)value, (void)length, (void)version, (void)done;
	return note_call(path, arg);
}

static int fake_list(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                     strings_completion_t done, const void *arg)
{
	(void)handle, (void)watcher, (void)context, (void)done;
	return note_call(path, arg);
}

static const char *fake_error(int rc)
{
	(void)rc;
	return "error";
}

/* ---- the bench ---- */

static void note_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                        int64_t now)
{
	(void)core, (void)cmd, (void)now;
	bench->outcome = (int)answer->outcome;
}

static void init_cmd(struct hf__cmd *cmd, enum hf__verb verb)
{
	cmd->lock = bench->lock;
	cmd->wire = WIRE;
	cmd->verb = (uint8_t)verb;
	cmd->count = 1;
	cmd->place_ms = 1000;
	cmd->on_answer = note_answer;
}

static void init_zk(struct hf__zk *zk)
{
	zk->core = &bench->core;
	zk->config = &bench->config;
	zk->session = &bench->session;
	zk->session_id = SESSION_ID;
	zk->sessions = 1;
	zk->state = HF__SESSION_UP;
	zk->watch_held_at = zk->wake_at = zk->leftovers_at = zk->answer_by = HF__NEVER;
	zk->library.create = fake_create;
	zk->library.remove = fake_remove;
	zk->library.exists = fake_exists;
	zk->library.get = fake_get;
	zk->library.set = fake_set;
	zk->library.list = fake_list;
	zk->library.error = fake_error;
	hf__list_init(&zk->waiting);
	hf__list_init(&zk->ready);
	hf__list_init(&zk->inbox);
	hf__list_init(&zk->notices);
	hf__list_init(&zk->requests);
	hf__list_init(&zk->held);
	hf__list_init(&zk->unwatched);
	hf__table_init(&zk->nodes, 1);
	hf__table_init(&zk->locks, 2);
	hf__table_init(&zk->watchers, 3);
}

static void begin(int kind)
{
	static char chroot[] = "";
	bench = check_alloc(sizeof(*bench));
	bench->lock = check_alloc(sizeof(*bench->lock) + 8);
	memcpy(bench->lock->name, "x", 2);
	bench->lock->length = 1;
	bench->lock->kind = (uint8_t)kind;
	bench->lock->refs = 1;
	hf__list_init(&bench->lock->holds);
	hf__list_init(&bench->lock->queue);
	bench->config.chroot = chroot;
	bench->session.zk = &bench->zk;
	bench->session.handle = (zhandle_t *)&bench->session;
	hf__list_init(&bench->session.watchers);
	init_zk(&bench->zk);
	hf__core_set_watchdog(&bench->core, 30000);
	init_cmd(&bench->ask, HF__ASK);
	init_cmd(&bench->settle, HF__SETTLE);
	bench->outcome = -1;
}

static int tear_down(void **state)
{
	struct hf__zk *zk = &bench->zk;
	(void)state;
	while (!hf__list_empty(&zk->requests))
		hf__zk_request_free(hf__list_item(zk->requests.next, struct hf__zk_request, link));
	hf__watcher_drop_all(zk);
	hf__node_free_all(zk);
	hf__zk_lock_free_all(zk);
	hf__watcher_free_all(&bench->session);
	hf__table_done(&zk->nodes);
	hf__table_done(&zk->locks);
	hf__table_done(&zk->watchers);
	free(bench->lock);
	free(bench);
	return 0;
}

static struct hf__node *node(void)
{
	return hf__node_find(&bench->zk, bench->lock, WIRE);
}

static void submit(struct hf__cmd *cmd)
{
	cmd->in_flight = true;
	hf__list_add(&bench->zk.waiting, &cmd->link);
	assert_int_equal(hf__steps_submit(&bench->zk, cmd), 0);
}

/*
 * The link went down and is up again: the commands are answered, and the requests still in flight.
 */
static void interrupt(void)
{
	node()->cmd = NULL;
	hf__list_remove(&bench->ask.link);
	bench->ask.in_flight = false;
	bench->zk.doubted = false;
}

/* The oldest request in flight, which must be for this path if one is given. */
static struct hf__zk_request *next_call(const char *path)
{
	assert_true(bench->first < bench->count);
	const struct call *call = &bench->calls[bench->first++];
	if (path)
		assert_string_equal(call->path, path);
	return call->request;
}

/* Hands the request back, as a turn of the backend does it. */
static void answer(struct hf__zk_request *request, int rc)
{
	struct hf__zk *zk = &bench->zk;
	request->rc = rc;
	hf__list_remove(&request->link);
	if (request->watcher)
		request->watcher->requests--;
	if (!request->node || !hf__node_is_dead(request->node))
		request->done(zk, request, 1);
	if (request->watcher)
		hf__watcher_tidy(zk, request->watcher);
	if (request->node)
		hf__steps_end_request(zk, request->node, 1);
	hf__zk_request_free(request);
}

static void answer_created(const char *suffix)
{
	struct hf__zk_request *request = next_call(NULL);
	char path[HF__ZK_PATH];
	(void)snprintf(path, sizeof path, "%s%s", bench->calls[bench->first - 1].path, suffix);
	request->text = strdup(path);
	request->stat.czxid = 5;
	assert_non_null(request->text);
	answer(request, ZOK);
}

/* The list has this one child, or none. */
static void answer_list(const char *path, const char *child)
{
	struct hf__zk_request *request = next_call(path);
	request->names = check_alloc(2 * sizeof *request->names);
	if (child) {
		request->names[0] = strdup(child);
		assert_non_null(request->names[0]);
		request->count = 1;
	}
	answer(request, ZOK);
}

/* The list has our node and another one. */
static void answer_list_of_two(const char *path, const char *other)
{
	struct hf__zk_request *request = next_call(path);
	request->names = check_alloc(3 * sizeof *request->names);
	request->names[0] = strdup(node()->name);
	request->names[1] = strdup(other);
	assert_true(request->names[0] && request->names[1]);
	request->count = 2;
	answer(request, ZOK);
}

static int in_flight(void)
{
	return (int)(bench->count - bench->first);
}

/* The outcome of a command that is answered in the next turn. */
static int ready_outcome(void)
{
	if (hf__list_empty(&bench->zk.ready))
		return -1;
	return (int)hf__list_item(bench->zk.ready.next, struct hf__cmd, link)->backend.outcome;
}

static void take_lock(void)
{
	submit(&bench->ask);
	answer_created("0000000000");
	answer_list("/x", node()->name);
	assert_int_equal(ready_outcome(), HF__GRANTED);
	assert_int_equal(node()->state, HF__ZNODE_HELD);
	hf__list_remove(&bench->ask.link);
}

/* ---- stories ---- */

static void creation_and_list_are_sent_together(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	submit(&bench->ask);
	assert_int_equal(in_flight(), 2);
	answer_created("0000000000");
	assert_int_equal(node()->state, HF__ZNODE_QUEUED);
	assert_int_equal(ready_outcome(), -1);
	answer_list("/x", node()->name);
	assert_int_equal(ready_outcome(), HF__GRANTED);
	assert_int_equal(in_flight(), 0);
}

static void node_that_is_given_up_while_it_is_created_is_deleted(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	submit(&bench->ask);
	interrupt();
	submit(&bench->settle);
	assert_int_equal(in_flight(), 2);
	answer_created("0000000000");
	answer_list("/x", node()->name);
	assert_int_equal(node()->state, HF__ZNODE_DELETING);
	answer(next_call(NULL), ZOK);
	assert_null(node());
	assert_int_equal(ready_outcome(), HF__DONE);
}

static void creation_without_an_answer_is_searched_for_before_the_next(void **state)
{
	char name[2 * HF__QUEUE_NAME];
	(void)state;
	begin(HF_REENTRANT);
	submit(&bench->ask);
	(void)snprintf(name, sizeof name, "%s0000000003", node()->name);
	answer(next_call(NULL), ZCONNECTIONLOSS);
	answer(next_call(NULL), ZCONNECTIONLOSS);
	assert_true(bench->zk.doubted);
	assert_int_equal(node()->state, HF__ZNODE_UNKNOWN);
	interrupt();
	submit(&bench->ask);
	answer(next_call("/x"), ZBADVERSION);
	answer_list("/x", name);
	struct hf__zk_request *request = next_call(NULL);
	request->stat.ephemeralOwner = SESSION_ID;
	answer(request, ZOK);
	assert_int_equal(node()->state, HF__ZNODE_QUEUED);
	answer_list("/x", name);
	assert_int_equal(ready_outcome(), HF__GRANTED);
}

static void late_answer_about_ready_does_not_grant_what_is_given_up(void **state)
{
	(void)state;
	begin(HF__MEMBER);
	submit(&bench->ask);
	answer_created("");
	answer_list("/x", node()->name);
	struct hf__zk_request *ready = next_call("/x/ready");
	interrupt();
	submit(&bench->settle);
	answer(ready, ZOK);
	assert_int_equal(ready_outcome(), -1);
	assert_int_equal(node()->state, HF__ZNODE_DELETING);
	answer(next_call(NULL), ZOK);
	assert_int_equal(ready_outcome(), HF__DONE);
}

static void release_reports_a_node_that_was_seen_gone_twice(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	take_lock();
	submit(&bench->settle);
	assert_int_equal(node()->state, HF__ZNODE_RELEASING);
	hf__node_lose(&bench->zk, node(), 1);
	hf__node_lose(&bench->zk, node(), 1);
	answer(next_call(NULL), ZNONODE);
	assert_null(node());
	assert_int_equal(ready_outcome(), HF__GONE);
}

static void release_that_is_not_answered_is_sent_again(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	take_lock();
	submit(&bench->settle);
	answer(next_call(NULL), ZCONNECTIONLOSS);
	node()->cmd = NULL;
	bench->zk.doubted = false;
	hf__list_remove(&bench->settle.link);
	assert_int_equal(node()->state, HF__ZNODE_RELEASING);
	submit(&bench->settle);
	answer(next_call(NULL), ZNONODE);
	assert_int_equal(ready_outcome(), HF__GONE);
}

static void permit_that_is_given_up_leaves_neither_lease_nor_gate(void **state)
{
	(void)state;
	begin(HF_SIMPLE);
	submit(&bench->ask);
	answer_created("0000000000");
	answer_list("/x/locks", node()->name);
	assert_int_equal(node()->state, HF__ZNODE_LEASE_CREATING);
	interrupt();
	submit(&bench->settle);
	answer_created("0000000000");
	answer_list("/x/leases", node()->name);
	assert_int_equal(node()->state, HF__ZNODE_LEASE_DELETING);
	struct hf__zk_request *request = next_call(NULL);
	assert_non_null(strstr(bench->calls[bench->first - 1].path, "/x/leases/"));
	answer(request, ZOK);
	assert_int_equal(node()->state, HF__ZNODE_DELETING);
	request = next_call(NULL);
	assert_non_null(strstr(bench->calls[bench->first - 1].path, "/x/locks/"));
	answer(request, ZOK);
	assert_null(node());
	assert_int_equal(ready_outcome(), HF__DONE);
}

static void opened_gate_is_granted_without_counting_again(void **state)
{
	(void)state;
	begin(HF_SIMPLE);
	submit(&bench->ask);
	answer_created("0000000000");
	answer_list("/x/locks", node()->name);
	answer_created("0000000000");
	answer_list("/x/leases", node()->name);
	assert_int_equal(node()->state, HF__ZNODE_LEASE_COUNTED);
	answer(next_call(NULL), ZCONNECTIONLOSS);
	interrupt();
	submit(&bench->ask);
	answer(next_call(NULL), ZNONODE);
	assert_int_equal(ready_outcome(), HF__GRANTED);
	assert_int_equal(node()->state, HF__ZNODE_HELD);
	assert_int_equal(in_flight(), 0);
}

static void refused_creation_fails_the_ask(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	submit(&bench->ask);
	answer(next_call(NULL), ZNOAUTH);
	answer_list("/x", NULL);
	assert_int_equal(bench->outcome, HF__FAILED);
	assert_null(node());
}

/* Loses the answers to the creation and to the list, and asks again. */
static void lose_creation(void)
{
	submit(&bench->ask);
	while (in_flight() > 0)
		answer(next_call(NULL), ZCONNECTIONLOSS);
	assert_int_equal(node()->state, HF__ZNODE_UNKNOWN);
	interrupt();
}

/* The command has to find the node first, and may not; it fails. */
static void refuse_search_for(struct hf__cmd *cmd)
{
	submit(cmd);
	answer(next_call("/x"), ZBADVERSION);
	answer(next_call("/x"), ZNOAUTH);
	assert_int_equal(bench->outcome, HF__FAILED);
	assert_int_equal(in_flight(), 0);
}

static void search_that_is_refused_fails_the_ask(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	lose_creation();
	refuse_search_for(&bench->ask);
	assert_int_equal(node()->state, HF__ZNODE_UNKNOWN);
}

static void search_that_is_refused_fails_the_clean_up(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	lose_creation();
	refuse_search_for(&bench->settle);
}

/* Newer servers refuse to say whether a node exists; it must not be considered gone. */
static void found_node_that_may_not_be_read_fails_the_ask(void **state)
{
	char name[2 * HF__QUEUE_NAME];
	(void)state;
	begin(HF_REENTRANT);
	submit(&bench->ask);
	(void)snprintf(name, sizeof name, "%s0000000003", node()->name);
	while (in_flight() > 0)
		answer(next_call(NULL), ZCONNECTIONLOSS);
	interrupt();
	submit(&bench->ask);
	answer(next_call("/x"), ZBADVERSION);
	answer_list("/x", name);
	answer(next_call(NULL), ZNOAUTH);
	assert_int_equal(bench->outcome, HF__FAILED);
	assert_int_equal(in_flight(), 0);
	assert_int_equal(node()->state, HF__ZNODE_UNKNOWN);
}

static void plain_node_that_may_not_be_read_fails_the_ask(void **state)
{
	(void)state;
	begin(HF_PLAIN);
	lose_creation();
	refuse_search_for(&bench->ask);
}

/* As if the library had as many watches as it can list after a reconnect. */
static void use_up_watches(void)
{
	bench->zk.watched_bytes = 1024 * 1024;
}

static void expect_unwatched_wait(enum hf__node_state in)
{
	assert_int_equal(bench->outcome, HF__BUSY);
	assert_int_equal(node()->state, in);
	assert_int_equal(in_flight(), 0);
	assert_null(node()->watcher);
	assert_false(hf__list_empty(&bench->zk.unwatched));
	assert_true(bench->zk.wake_at != HF__NEVER);
	hf__node_wake_unwatched(&bench->zk, bench->zk.wake_at);
	assert_true(hf__list_empty(&bench->zk.unwatched));
	assert_true(bench->zk.wake_at == HF__NEVER);
}

static void waiter_without_room_for_a_watch_waits_without(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	use_up_watches();
	submit(&bench->ask);
	answer_created("0000000001");
	answer_list_of_two("/x", "lock-0000000000");
	expect_unwatched_wait(HF__ZNODE_QUEUED);
	submit(&bench->ask);
	answer_list("/x", node()->name);
	assert_int_equal(ready_outcome(), HF__GRANTED);
}

static void lease_without_room_for_a_watch_waits_without(void **state)
{
	(void)state;
	begin(HF_SIMPLE);
	use_up_watches();
	submit(&bench->ask);
	answer_created("0000000000");
	answer_list("/x/locks", node()->name);
	answer_created("0000000001");
	answer_list_of_two("/x/leases", "lease-0000000000");
	expect_unwatched_wait(HF__ZNODE_LEASE_QUEUED);
	submit(&bench->settle);
	assert_true(hf__list_empty(&bench->zk.unwatched));
	assert_int_equal(node()->state, HF__ZNODE_LEASE_DELETING);
}

static void waiter_that_leaves_is_not_woken_up(void **state)
{
	(void)state;
	begin(HF_REENTRANT);
	use_up_watches();
	submit(&bench->ask);
	answer_created("0000000001");
	answer_list_of_two("/x", "lock-0000000000");
	assert_false(hf__list_empty(&bench->zk.unwatched));
	submit(&bench->settle);
	assert_true(hf__list_empty(&bench->zk.unwatched));
	answer(next_call(NULL), ZOK);
	assert_null(node());
}

#define STORY(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(creation_and_list_are_sent_together),
		STORY(node_that_is_given_up_while_it_is_created_is_deleted),
		STORY(creation_without_an_answer_is_searched_for_before_the_next),
		STORY(late_answer_about_ready_does_not_grant_what_is_given_up),
		STORY(release_reports_a_node_that_was_seen_gone_twice),
		STORY(release_that_is_not_answered_is_sent_again),
		STORY(permit_that_is_given_up_leaves_neither_lease_nor_gate),
		STORY(opened_gate_is_granted_without_counting_again),
		STORY(refused_creation_fails_the_ask),
		STORY(search_that_is_refused_fails_the_ask),
		STORY(search_that_is_refused_fails_the_clean_up),
		STORY(found_node_that_may_not_be_read_fails_the_ask),
		STORY(plain_node_that_may_not_be_read_fails_the_ask),
		STORY(waiter_without_room_for_a_watch_waits_without),
		STORY(lease_without_room_for_a_watch_waits_without),
		STORY(waiter_that_leaves_is_not_woken_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
