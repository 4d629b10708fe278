/* Locks on a master that Sentinels watch: it is found, lost, and replaced by another one. */
#include "live/rivals.h"

#include "support/sentinels.h"

#include <unistd.h>

static struct test_sentinels *group;
static int master; /* index of the node that is the master */

static int start_group(void **state)
{
	(void)state;
	group = test_sentinels_start(NULL);
	master = 0;
	return 0;
}

static int stop_group(void **state)
{
	(void)state;
	test_sentinels_stop(group);
	return 0;
}

static struct raw *connect_node(int node)
{
	return raw_connect(group->node[node]);
}

/* A text that a server answers, or NULL: a Sentinel that demotes it closes its connections. */
static char *read_text(struct test_server *server, const char *verb, const char *what)
{
	struct raw *raw = raw_try_connect_url(test_server_unix_url(server));
	struct raw_reply *reply = raw ? raw_try_command(raw, verb, what, NULL) : NULL;
	char *text =
		reply && reply->type == RAW_TEXT ? check_copy(reply->text, reply->length) : NULL;
	raw_reply_free(reply);
	raw_close(raw);
	return text;
}

/* How many connections of ours the server has; -1 if it does not say. */
static int count_clients(struct test_server *server)
{
	char *list = read_text(server, "CLIENT", "LIST");
	int count = list ? 0 : -1;
	for (const char *at = list; at && (at = strstr(at, "name=holdfast ")); at++)
		count++;
	free(list);
	return count;
}

static int count_connections(int node)
{
	return count_clients(group->node[node]);
}

static bool exists_on(int node, const char *key)
{
	struct raw *raw = connect_node(node);
	bool exists = raw_integer(raw, "EXISTS", key, NULL) == 1;
	raw_close(raw);
	return exists;
}

/* Whether a node follows the master, and is connected to it. */
static bool follows(int node)
{
	char *info = read_text(group->node[node], "INFO", "replication");
	char *port = check_format("master_port:%d\r", test_server_port(group->node[master]));
	bool follows = info && strstr(info, port) && strstr(info, "master_link_status:up");
	free(port);
	free(info);
	return follows;
}

static void wait_for_replicas(void)
{
	test_sentinels_settle(group);
	for (int i = 0; i < SENTINELS_NODES; i++)
		if (i != master)
			WAIT_UNTIL(follows(i), 30000);
}

/* Brings back a node that was killed, and waits until the Sentinels have made it a replica. */
static void bring_back(int node)
{
	test_server_restart(group->node[node]);
	wait_for_replicas();
}

/* ---- the search for the master ---- */

static void expect_refusal(const char *url, const hf_client_options *options, int rc,
                           const char *part)
{
	hf_client *client = NULL;
	long long before = test_now_ms();
	assert_int_equal(hf_client_open(url, options, &client), rc);
	ASSERT_CONTAINS(hf_error_detail(), part);
	assert_true(test_now_ms() - before < SOON_MS);
}

static void dead_sentinels_do_not_hide_the_master(void **state)
{
	char url[200];
	(void)state;
	snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:1,localhost:%d/mymaster",
	         test_server_port(group->sentinel[0]));
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "found");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_true(exists_on(master, "found"));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void wrong_addresses_are_explained(void **state)
{
	char url[200];
	(void)state;
	snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/other",
	         test_server_port(group->sentinel[0]));
	expect_refusal(url, NULL, HF_EREFUSED, "does not know this name");
	ASSERT_CONTAINS(hf_error_detail(), "'other'");
	snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster",
	         test_server_port(group->node[0]));
	expect_refusal(url, NULL, HF_EREFUSED, "this is not a Sentinel");
	snprintf(url, sizeof url, "redis://127.0.0.1:%d", test_server_port(group->sentinel[0]));
	expect_refusal(url, NULL, HF_EREFUSED, "redis+sentinel://");
	expect_refusal("redis+sentinel://127.0.0.1:1,127.0.0.1:2/mymaster", NULL, HF_EUNREACHABLE,
	               "Sentinel 127.0.0.1:2");
}

static void a_database_is_selected(void **state)
{
	char url[300];
	(void)state;
	snprintf(url, sizeof url, "%s/3", group->url);
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "third");
	struct raw *raw = connect_node(master);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	raw_ok(raw, "SELECT", "3", NULL);
	assert_int_equal(raw_integer(raw, "EXISTS", "third", NULL), 1);
	ASSERT_OK(hf_lock_release(lock));
	raw_close(raw);
	close_both(lock, client);
}

/* ---- failovers ---- */

static _Atomic long long lost_at;
static char lost_detail[600]; /* written before lost_at */

static void note_loss(void *arg, const hf_event *event)
{
	(void)arg;
	if (hf_event_state(event) != HF_LOST)
		return;
	snprintf(lost_detail, sizeof lost_detail, "%s", hf_event_detail(event));
	atomic_store(&lost_at, test_now_ms());
}

/* The master is killed. The hold was replicated, so it lasts, and the release wakes the waiter. */
static void a_replicated_hold_survives_a_killed_master(void **state)
{
	struct rivals *rivals = open_rivals_at(group->url, HF_REENTRANT, NULL);
	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.wait_ms = 60000));
	test_sentinels_sync(group, master, 2);
	int before = master;
	test_server_kill(group->node[before]);
	master = test_sentinels_next(group, before);
	WAIT_UNTIL(count_connections(master) == 2, SOON_MS);
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(rivals->mine));
	long long released_at = test_now_ms();
	waiter_expect(waiter, 0);
	assert_true(test_now_ms() - released_at < 1000);
	waiter_finish(waiter);
	close_rivals(rivals);
	bring_back(before);
}

/* All replicas have acknowledged the hold, so the master may die the moment it is granted. */
static void a_durable_hold_survives_a_killed_master(void **state)
{
	hf_client *client =
		open_url(group->url, HF_CLIENT(.watchdog_ms = 60000, .sync_timeout_ms = 20000));
	hf_lock *lock = open_lock(client, "durable"), *other = open_lock(client, "other");
	int before = master, replicas = 0;
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 2)));
	test_server_kill(group->node[before]);
	master = test_sentinels_next(group, before);
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.replicas = 1, .wait_ms = 60000)));
	ASSERT_OK(hf_lock_durability(other, NULL, &replicas));
	assert_int_equal(replicas, 1);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	assert_true(exists_on(master, "durable"));
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(client));
	bring_back(before);
}

/* The replicas never had the hold: it is reported lost, and a waiter gets the lock. */
static void a_hold_that_was_not_replicated_is_reported_lost(void **state)
{
	static struct seen seen;
	hf_client *client = open_url(group->url, HF_CLIENT(.on_event = note_loss, LINES_TO(&seen)));
	hf_lock *lock = open_lock(client, "unknown there");
	int before = master;
	(void)state;
	atomic_store(&lost_at, 0);
	for (int i = 0; i < SENTINELS_NODES; i++)
		if (i != master)
			test_server_freeze(group->node[i]);
	/* What is sent to a stopped replica would still be in its socket later. */
	struct raw *raw = connect_node(before);
	assert_int_equal(raw_integer(raw, "CLIENT", "KILL", "TYPE", "replica", NULL), 2);
	raw_close(raw);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	long long granted_at = test_now_ms();
	test_server_kill(group->node[before]);
	for (int i = 0; i < SENTINELS_NODES; i++)
		if (i != before)
			test_server_thaw(group->node[i]);
	master = test_sentinels_next(group, before);
	WAIT_UNTIL(atomic_load(&lost_at), 30000);
	assert_true(atomic_load(&lost_at) - granted_at < 30000);
	assert_int_equal(hf_lock_state(lock, NULL), HF_LOST);
	/*
	 * Which server was lost is in the log, and which one does not know the hold in the event.
	 */
	char *old = check_format("127.0.0.1:%d: the server closed the connection",
	                         test_server_port(group->node[before]));
	char *new = check_format("server 127.0.0.1:%d", test_server_port(group->node[master]));
	assert_true(seen_in_log(&seen, old));
	ASSERT_CONTAINS(lost_detail, new);
	free(old);
	free(new);
	close_both(lock, client);
	bring_back(before);
}

/* A replica does not learn the scripts that its master runs, except on Redis 6.2. */
static void let_replicas_forget_scripts(void)
{
	for (int i = 0; i < SENTINELS_NODES; i++) {
		if (i == master)
			continue;
		struct raw *raw = connect_node(i);
		raw_ok(raw, "SCRIPT", "FLUSH", NULL);
		assert_int_equal(info_number(raw, "memory", "number_of_cached_scripts"), 0);
		raw_close(raw);
	}
}

/*
 * The old master still works, for seconds: nothing more may be sent to it. The new one has no
 * scripts, which nobody notices.
 */
static void a_master_that_was_replaced_is_left_at_once(void **state)
{
	hf_client *client = open_url(group->url, NULL);
	hf_lock *lock = open_lock(client, "moved");
	int before = master;
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	test_sentinels_sync(group, master, 2);
	assert_int_equal(count_connections(before), 1);
	let_replicas_forget_scripts();
	test_sentinels_replace(group, before);
	long long named_at = test_now_ms();
	WAIT_UNTIL(count_connections(before) == 0, SOON_MS);
	ASSERT_BETWEEN(test_now_ms() - named_at, 0, 500);
	master = test_sentinels_next(group, before);
	WAIT_UNTIL(count_connections(master) == 1, SOON_MS);
	hf_lock *other = open_lock(client, "other");
	ASSERT_OK(hf_lock_acquire(other, NULL));
	ASSERT_OK(hf_lock_release(other));
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(stats_of(client).unknowns, 0);
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(client));
	wait_for_replicas();
}

/* An idle client, which no thread drives, hears of the new master as well. */
static void an_idle_client_follows_the_master(void **state)
{
	hf_client *client = open_url(group->url, NULL);
	int before = master;
	(void)state;
	assert_int_equal(count_connections(before), 1);
	test_sentinels_replace(group, before);
	master = test_sentinels_next(group, before);
	WAIT_UNTIL(count_connections(before) == 0, SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	assert_int_equal(count_connections(master), 1);
	ASSERT_OK(hf_client_close(client));
	wait_for_replicas();
}

/* The Sentinel in use goes away: another one is asked, and nobody who holds a lock notices. */
static void a_dead_sentinel_is_replaced(void **state)
{
	hf_client *client = open_url(group->url, NULL);
	hf_lock *lock = open_lock(client, "kept");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	test_server_kill(group->sentinel[0]);
	WAIT_UNTIL(count_clients(group->sentinel[1]) == 1, SOON_MS);
	hf_stats stats = {.size = sizeof stats};
	ASSERT_OK(hf_client_stats(client, &stats));
	assert_int_equal(stats.reconnects, 0);
	ASSERT_OK(hf_lock_release(lock));
	test_server_restart(group->sentinel[0]);
	close_both(lock, client);
}

/* ---- passwords ---- */

/* Servers and Sentinels have passwords of their own, and each gets only its own. */
static void each_password_goes_where_it_belongs(void **state)
{
	const struct test_sentinels_options options = {.password = "of-the-servers",
	                                               .sentinel_password = "of-the-sentinels"};
	struct test_sentinels *locked = test_sentinels_start(&options);
	(void)state;
	hf_client *client =
		open_url(locked->url, HF_CLIENT(.password = "of-the-servers",
	                                        .sentinel_password = "of-the-sentinels"));
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
	expect_refusal(locked->url, HF_CLIENT(.password = "of-the-servers"), HF_EAUTH,
	               "sentinel_password");
	expect_refusal(locked->url, HF_CLIENT(.sentinel_password = "of-the-servers"), HF_EAUTH,
	               "WRONGPASS: the Sentinel");
	expect_refusal(locked->url, HF_CLIENT(.sentinel_password = "of-the-sentinels"), HF_EAUTH,
	               "NOAUTH: the server requires a password");
	assert_null(strstr(hf_error_detail(), "of-the"));
	test_sentinels_stop(locked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead_sentinels_do_not_hide_the_master),
		cmocka_unit_test(wrong_addresses_are_explained),
		cmocka_unit_test(a_database_is_selected),
		cmocka_unit_test(a_dead_sentinel_is_replaced),
		cmocka_unit_test(a_replicated_hold_survives_a_killed_master),
		cmocka_unit_test(a_durable_hold_survives_a_killed_master),
		cmocka_unit_test(a_hold_that_was_not_replicated_is_reported_lost),
		cmocka_unit_test(a_master_that_was_replaced_is_left_at_once),
		cmocka_unit_test(an_idle_client_follows_the_master),
		cmocka_unit_test(each_password_goes_where_it_belongs),
	};
	return cmocka_run_group_tests(tests, start_group, stop_group);
}
