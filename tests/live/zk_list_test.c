/*
 * Lists of locks on ZooKeeper: many steps, several lists at once, and what is known about each
 * lock.
 */
#include "live/notes.h"
#include "live/zk.h"

#define NODES   700 /* more than one step visits */
#define LISTERS 12

#define SESSION_MS 15000

static void make_locks(void)
{
	char path[40];
	for (int i = 0; i < NODES; i++) {
		snprintf(path, sizeof path, "/lock-%04d", i);
		assert_int_equal(zk_raw_create(zk_eye, path, "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	}
}

struct lister {
	hf_client *client;
	atomic_bool *go_on;
	atomic_int seen;
};

/* Nobody asks for the second step of a list before all of them have finished their first one. */
static int count_slowly(void *arg, const hf_info *info)
{
	struct lister *lister = arg;
	(void)info;
	atomic_fetch_add(&lister->seen, 1);
	while (!atomic_load(lister->go_on))
		test_pause();
	return 0;
}

static int list_slowly(void *arg)
{
	struct lister *lister = arg;
	return hf_client_list(lister->client, "lock-*", count_slowly, lister);
}

static void many_lists_at_once_are_all_complete(void **state)
{
	struct lister lister[LISTERS];
	struct waiter *waiter[LISTERS];
	atomic_bool go_on = false;
	hf_client *client = open_zk("");

	(void)state;
	make_locks();
	for (int i = 0; i < LISTERS; i++) {
		lister[i] = (struct lister){.client = client, .go_on = &go_on};
		waiter[i] = WAITER(.run = list_slowly, .arg = &lister[i]);
		WAIT_UNTIL(atomic_load(&lister[i].seen) > 0, SOON_MS);
	}
	atomic_store(&go_on, true);
	for (int i = 0; i < LISTERS; i++) {
		waiter_expect(waiter[i], 0);
		waiter_free(waiter[i]);
		assert_int_equal(lister[i].seen, NODES);
	}
	ASSERT_OK(hf_client_close(client));
}

/* ---- holders and waiters ---- */

static hf_client *open_described(const char *text)
{
	return open_at(test_zookeeper_url(zk_server, 0), "",
	               HF_CLIENT(.describe = text, .session_ms = SESSION_MS));
}

/* When the node was created, by the clock of the server. */
static int64_t created_at(const char *folder, const char *node)
{
	struct zk_raw_stat stat;
	char path[200];
	snprintf(path, sizeof path, "%s/%s", folder, node);
	assert_int_equal(zk_raw_exists(zk_eye, path, &stat), 0);
	return stat.ctime;
}

static void since_and_lease_are_those_of_node_and_session(void **state)
{
	hf_client *client = open_described("nightly"), *other = open_described("other");
	hf_client *third = open_described("third");
	hf_lock *mine = open_named(client, HF_REENTRANT, "orders");
	hf_lock *theirs = open_named(other, HF_REENTRANT, "orders");
	hf_lock *thirds = open_named(third, HF_REENTRANT, "orders");
	char path[700];
	struct zk_raw_stat stat;

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, &stat);
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	struct waiter *last = waiter_start(thirds, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 3, SOON_MS);
	struct facts facts = inspect(client, "orders"), seen = inspect(other, "orders");
	assert_int_equal(facts.since[0], stat.ctime);
	assert_int_equal(facts.lease[0], SESSION_MS);
	assert_int_equal(seen.since[0], stat.ctime);
	assert_int_equal(seen.lease[0], 0);
	assert_int_equal(facts.server_time, 0);
	assert_int_equal(facts.waiters, 2);
	assert_int_equal(facts.clients, 2);
	assert_string_equal(facts.waiter_text[0], "other");
	assert_string_equal(facts.waiter_text[1], "third");
	assert_int_equal(facts.waiter_pid[0], getpid());
	assert_int_equal(facts.waiter_since[1], created_at("/orders", facts.waiter[1]));
	ASSERT_OK(hf_lock_release(mine));
	waiter_finish(waiter);
	waiter_finish(last);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	hf_lock_close(thirds);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
	ASSERT_OK(hf_client_close(third));
}

/* Java's data, data of other programs, and what only resembles a note. */
static void since_does_not_depend_on_the_data_of_the_node(void **state)
{
	static const struct {
		const char *data, *host, *text;
		int64_t pid;
	} list[] = {
		{"", "", "", 0},
		{"10.0.0.7", "", "10.0.0.7", 0},
		{"db-1\n12\njob", "db-1", "job", 12},
		{"db-1\n-1\njob", "db-1", "job", 0},
		{"db-1\n12 99 30000\njob", "db-1", "job", 0},
		{"db-1\n 99\njob", "db-1", "job", 0},
		{"db-1\n99999999999999999999\njob", "db-1", "job", 0},
		{"\n\n\n\n\n\n\n\n\n", "", "\n\n\n\n\n\n\n", 0},
	};
	hf_client *client = open_zk("");
	char name[16], folder[20], path[40];

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "data-%zu", i);
		snprintf(folder, sizeof folder, "/%s", name);
		snprintf(path, sizeof path, "%s/lock-", folder);
		assert_int_equal(zk_raw_create(zk_eye, folder, "", ZK_RAW_CONTAINER, NULL, NULL),
		                 0);
		assert_int_equal(zk_raw_create(zk_eye, path, list[i].data,
		                               ZK_RAW_EPHEMERAL_SEQUENTIAL, NULL, NULL),
		                 0);
		struct facts facts = inspect(client, name);
		assert_int_equal(facts.since[0], created_at(folder, "lock-0000000000"));
		assert_int_equal(facts.lease[0], 0);
		assert_int_equal(facts.pid[0], list[i].pid);
		assert_string_equal(facts.host[0], list[i].host);
		assert_string_equal(facts.text[0], list[i].text);
	}
	ASSERT_OK(hf_client_close(client));
}

static int note_name(void *arg, const hf_info *info)
{
	char *names = arg;
	strcat(names, hf_info_name(info, NULL));
	return strcmp(names, "ac") == 0 ? 7 : 0;
}

static void several_names_are_inspected_in_their_order(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *locks[] = {open_named(client, HF_REENTRANT, "a"),
	                    open_named(client, HF_PLAIN, "c"), open_named(client, HF_READ, "d")};
	char names[8] = "";

	(void)state;
	for (size_t i = 0; i < 3; i++)
		ASSERT_OK(hf_lock_acquire(locks[i], NULL));
	ASSERT_OK(hf_client_inspect_many(client, (const char *const[]){"d", "b", "a"}, 3, note_name,
	                                 names));
	assert_string_equal(names, "da");
	names[0] = 0;
	ASSERT_RC(hf_client_inspect_many(client, (const char *const[]){"a", "c", "d"}, 3, note_name,
	                                 names),
	          7);
	for (size_t i = 0; i < 3; i++) {
		ASSERT_OK(hf_lock_release(locks[i]));
		hf_lock_close(locks[i]);
	}
	ASSERT_OK(hf_client_close(client));
}

static int note_only(void *arg, const hf_info *info)
{
	char *names = arg;
	strcat(names, hf_info_name(info, NULL));
	return 0;
}

/* There are no channels: the walk finds the queue of each lock. */
static void only_locks_that_are_waited_for_are_listed(void **state)
{
	hf_client *client = open_zk(""), *other = open_zk("");
	hf_lock *quiet = open_lock(client, "quiet"), *held = open_lock(client, "wanted");
	hf_lock *wanted = open_lock(other, "wanted");
	char names[200] = "";

	(void)state;
	ASSERT_OK(hf_lock_acquire(quiet, NULL));
	ASSERT_OK(hf_lock_acquire(held, NULL));
	struct waiter *waiter = waiter_start(wanted, NULL);
	WAIT_UNTIL(inspect(client, "wanted").waiters == 1, SOON_MS);
	ASSERT_OK(hf_client_list_with(client, HF_LIST(.waited = 1, .duty_percent = 50), note_only,
	                              names));
	assert_string_equal(names, "wanted");
	ASSERT_OK(hf_lock_release(held));
	waiter_finish(waiter);
	ASSERT_OK(hf_lock_release(quiet));
	hf_lock_close(quiet);
	hf_lock_close(held);
	hf_lock_close(wanted);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
}

static int see_row(void *arg, const hf_history_row *row)
{
	(void)arg;
	(void)row;
	return 7;
}

static void there_is_no_history(void **state)
{
	hf_client *client = open_zk("");
	hf_history *history = NULL;

	(void)state;
	ASSERT_RC(hf_history_open(client, HF_HISTORY(.name = "a"), &history), HF_ENOTSUP);
	ASSERT_CONTAINS(hf_error_detail(), "on_event");
	ASSERT_RC(hf_history_open(client, NULL, &history), HF_ENOTSUP);
	ASSERT_RC(hf_client_clear_history(client, NULL, NULL), HF_ENOTSUP);
	assert_null(history);
	ASSERT_RC(hf_history_read(history, see_row, NULL), HF_EINVAL);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(there_is_no_history),
		ZK_STORY(since_and_lease_are_those_of_node_and_session),
		ZK_STORY(since_does_not_depend_on_the_data_of_the_node),
		ZK_STORY(several_names_are_inspected_in_their_order),
		ZK_STORY(many_lists_at_once_are_all_complete),
		ZK_STORY(only_locks_that_are_waited_for_are_listed),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
