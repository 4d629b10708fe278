/* Locks on a cluster: each name at the master of its slot, whichever node the client was given. */
#include "live/cluster_crowd.h"

#include <unistd.h>

#include "support/certs.h"
#include "support/process.h"
#include "support/proxy.h"

/* ---- every kind on every master ---- */

static void contend(const struct match *match, hf_client *one, hf_client *two, const char *name)
{
	int node = test_cluster_owner_of(cluster, name);
	hf_lock *mine = open_named(one, match->mine, name);
	hf_lock *theirs = open_named(two, match->theirs, name);
	uint64_t wakeups = stats_of(two).wakeups;
	int64_t ttl;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	assert_true(node_has(node, name));
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	uint64_t attempts = stats_of(two).attempts;
	struct waiter *waiter = waiter_start(theirs, HF_ACQUIRE(.wait_ms = 60000));
	/* It has asked once more after it subscribed; a query is answered after that. */
	WAIT_UNTIL(stats_of(two).attempts >= attempts + 2 && is_awaited(match, name, node),
	           SOON_MS);
	ASSERT_OK(hf_lock_ttl(theirs, &ttl));
	ASSERT_OK(hf_lock_release(mine));
	long long released_at = test_now_ms();
	waiter_expect(waiter, 0);
	assert_true(waiter->ended_at - released_at < SOON_MS);
	/* It was woken, and did not just ask again. */
	assert_true(match->mine == HF_SPIN || stats_of(two).wakeups > wakeups);
	assert_true(node_has(node, name));
	waiter_finish(waiter);
	assert_false(node_has(node, name));
	hf_lock_close(mine);
	hf_lock_close(theirs);
}

static void a_lock_is_contended_on_each_master(void **state)
{
	hf_client *one = open_cluster(NULL);
	hf_client *two = open_cluster(NULL);
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "contended-");
		contend(*state, one, two, name);
		free(name);
	}
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

/* Waits until the client has one call that waits. */
static void expect_waiting(hf_client *client, uint64_t attempts)
{
	WAIT_UNTIL(stats_of(client).waiting == 1 && stats_of(client).attempts > attempts, SOON_MS);
}

/* Waits until it listens to this channel of the name, and has asked once more since. */
static void expect_sleeping(hf_client *client, uint64_t attempts, const char *prefix,
                            const char *name)
{
	char channel[200];
	snprintf(channel, sizeof channel, "%s{%s}", prefix, name);
	int node = test_cluster_owner_of(cluster, name);
	WAIT_UNTIL(stats_of(client).attempts >= attempts + 2 && listeners(node, channel) == 1,
	           SOON_MS);
}

static void contend_for_semaphore(hf_client *one, hf_client *two, const char *name)
{
	hf_semaphore *mine, *theirs;
	uint64_t attempts = stats_of(two).attempts;
	int64_t number;
	ASSERT_OK(hf_semaphore_open(one, name, &mine));
	ASSERT_OK(hf_semaphore_open(two, name, &theirs));
	ASSERT_OK(hf_semaphore_try_set(mine, 2, 0, NULL));
	ASSERT_OK(hf_semaphore_acquire(mine, 2, HF_WAIT(.wait_ms = HF_NOWAIT)));
	struct waiter *waiter = WAITER(.semaphore = theirs, .n = 1);
	expect_sleeping(two, attempts, "redisson_sc:", name);
	ASSERT_OK(hf_semaphore_available(theirs, &number));
	ASSERT_OK(hf_semaphore_release(mine, 1));
	waiter_join(waiter, 0);
	hf_semaphore_close(mine);
	hf_semaphore_close(theirs);
}

static void contend_for_permits(hf_client *one, hf_client *two, const char *name)
{
	hf_permits *mine, *theirs;
	uint64_t attempts = stats_of(two).attempts;
	int64_t number;
	hf_permit_id id[1];
	ASSERT_OK(hf_permits_open(one, name, &mine));
	ASSERT_OK(hf_permits_open(two, name, &theirs));
	ASSERT_OK(hf_permits_try_set(mine, 1, NULL));
	ASSERT_OK(hf_permits_acquire(mine, 1, HF_PERMITS(.wait_ms = HF_NOWAIT), id));
	struct waiter *waiter = WAITER(.permits = theirs, .n = 1);
	expect_sleeping(two, attempts, "redisson_sc:", name);
	ASSERT_OK(hf_permits_total(theirs, &number));
	ASSERT_OK(hf_permits_release(mine, (const hf_permit_id *)id, 1));
	waiter_expect(waiter, 0);
	ASSERT_OK(hf_permits_release(theirs, (const hf_permit_id *)waiter->ids, 1));
	waiter_free(waiter);
	hf_permits_close(mine);
	hf_permits_close(theirs);
}

static void wait_for_latch(hf_client *one, hf_client *two, const char *name)
{
	hf_latch *mine, *theirs;
	uint64_t attempts = stats_of(two).attempts;
	int64_t number;
	ASSERT_OK(hf_latch_open(one, name, &mine));
	ASSERT_OK(hf_latch_open(two, name, &theirs));
	ASSERT_OK(hf_latch_try_set(mine, 1, NULL));
	struct waiter *waiter = WAITER(.latch = theirs);
	expect_sleeping(two, attempts, "redisson_countdownlatch__channel__", name);
	ASSERT_OK(hf_latch_count(theirs, &number));
	ASSERT_OK(hf_latch_count_down(mine));
	waiter_join(waiter, 0);
	hf_latch_close(mine);
	hf_latch_close(theirs);
}

static void contend_for_group(hf_client *one, hf_client *two, const char *name)
{
	static const char *const ours[] = {"a", "b"};
	static const char *const others[] = {"b", "c"};
	hf_lock *mine, *theirs;
	uint64_t attempts = stats_of(two).attempts;
	int64_t number;
	ASSERT_OK(hf_lock_open_group(one, name, ours, 2, &mine));
	ASSERT_OK(hf_lock_open_group(two, name, others, 2, &theirs));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(theirs, NULL);
	expect_sleeping(two, attempts, "redisson_lock__channel:", name);
	ASSERT_OK(hf_lock_ttl(theirs, &number));
	ASSERT_OK(hf_lock_release(mine));
	waiter_finish(waiter);
	hf_lock_close(mine);
	hf_lock_close(theirs);
}

typedef void contend_fn(hf_client *one, hf_client *two, const char *name);

static void synchronizers_are_contended_on_each_master(void **state)
{
	static contend_fn *const all[] = {contend_for_semaphore, contend_for_permits,
	                                  wait_for_latch, contend_for_group};
	hf_client *one = open_cluster(NULL);
	hf_client *two = open_cluster(NULL);
	(void)state;
	for (size_t kind = 0; kind < sizeof all / sizeof *all; kind++)
		for (int i = 0; i < MASTERS; i++) {
			char *prefix = check_format("sync-%zu-", kind);
			char *name = name_on(i, prefix);
			uint64_t wakeups = stats_of(two).wakeups;
			all[kind](one, two, name);
			assert_true(stats_of(two).wakeups > wakeups);
			free(name);
			free(prefix);
		}
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

/* Its channel is in another slot than its key, which matters to sharded channels only. */
static void a_latch_with_braces_in_its_name_wakes_its_waiters_or_is_refused(void **state)
{
	hf_client *one = open_cluster(NULL);
	hf_client *two = open_cluster(NULL);
	hf_latch *latch;
	hf_barrier *barrier;
	(void)state;
	if (!is_sharded()) {
		wait_for_latch(one, two, "{app}:latch");
	} else {
		ASSERT_OK(hf_latch_open(one, "{app}:latch", &latch));
		ASSERT_RC(hf_latch_try_set(latch, 1, NULL), HF_EINVAL);
		ASSERT_CONTAINS(hf_error_detail(), "braces");
		ASSERT_RC(hf_latch_count_down(latch), HF_EINVAL);
		ASSERT_RC(hf_latch_wait(latch, NULL), HF_EINVAL);
		hf_latch_close(latch);
		ASSERT_OK(hf_barrier_open(one, "{app}:barrier", &barrier));
		ASSERT_RC(hf_barrier_set(barrier), HF_EINVAL);
		hf_barrier_close(barrier);
	}
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void nested_levels_and_queries_work_on_each_master(void **state)
{
	hf_client *client = open_cluster(NULL);
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "nested-");
		hf_lock *lock = open_named(client, HF_FENCED, name);
		int64_t count = 0, ttl = 0, token = 0;
		int yes = 0;
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_hold_count(lock, NULL, &count));
		assert_int_equal(count, 2);
		ASSERT_OK(hf_lock_ttl(lock, &ttl));
		ASSERT_BETWEEN(ttl, 20000, 30000);
		ASSERT_OK(hf_lock_last_token(lock, &token));
		assert_true(token > 0);
		ASSERT_OK(hf_lock_extend(lock, NULL, 50000));
		ASSERT_OK(hf_lock_force_release(lock, &yes));
		assert_int_equal(yes, 1);
		ASSERT_OK(hf_lock_is_locked(lock, &yes));
		assert_int_equal(yes, 0);
		ASSERT_RC(hf_lock_release(lock), HF_ELOST);
		hf_lock_close(lock);
		free(name);
	}
	ASSERT_OK(hf_client_close(client));
}

/*
 * The other stories about slots that move measure time; this one is for the servers that can do it.
 */
static void waiters_follow_a_slot_that_the_server_migrates(void **state)
{
	(void)state;
	if (test_cluster_can_migrate(cluster))
		move_under_waiters(move_by_server, SOON_MS);
	else
		print_message("Left out: CLUSTER MIGRATESLOTS, which the server does not know\n");
}

/* ---- names ---- */

/* All keys of a tag are in its slot, and a colon alone makes no tag. */
static void tags_decide_about_the_slot(void **state)
{
	static const char *const names[] = {"{app}:l1", "{app}:l2", "a:b", "naïve"};
	hf_client *one = open_cluster(NULL);
	hf_client *two = open_cluster(NULL);
	(void)state;
	assert_int_equal(test_slot("{app}:l1"), test_slot("{app}:l2"));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		hf_lock *mine = open_named(one, HF_FAIR, names[i]);
		hf_lock *theirs = open_named(two, HF_FAIR, names[i]);
		uint64_t attempts = stats_of(two).attempts;
		ASSERT_OK(hf_lock_acquire(mine, NULL));
		assert_true(node_has(test_cluster_owner_of(cluster, names[i]), names[i]));
		struct waiter *waiter = waiter_start(theirs, NULL);
		expect_waiting(two, attempts);
		ASSERT_OK(hf_lock_release(mine));
		waiter_finish(waiter);
		hf_lock_close(mine);
		hf_lock_close(theirs);
	}
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void names_without_a_clear_slot_are_refused(void **state)
{
	static const char *const names[] = {"a}b", "a{b", "{}x"};
	hf_client *client = open_cluster(NULL);
	hf_lock *lock = NULL;
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		ASSERT_RC(hf_lock_open(client, HF_REENTRANT, names[i], &lock), HF_EINVAL);
	ASSERT_OK(hf_client_close(client));
}

/* ---- several locks as one ---- */

static hf_lock *open_multi(hf_client *client)
{
	hf_lock *members[MASTERS], *multi;
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "member-");
		members[i] = open_lock(client, name);
		free(name);
	}
	ASSERT_OK(hf_lock_open_multi(members, MASTERS, &multi));
	for (int i = 0; i < MASTERS; i++)
		hf_lock_close(members[i]);
	return multi;
}

static int count_members(void)
{
	int count = 0;
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "member-");
		count += node_has(test_cluster_master(cluster, i), name);
		free(name);
	}
	return count;
}

static void a_multi_lock_spans_the_masters(void **state)
{
	hf_client *one = open_cluster(NULL);
	hf_client *two = open_cluster(NULL);
	hf_lock *mine = open_multi(one);
	hf_lock *theirs = open_multi(two);
	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	assert_int_equal(count_members(), MASTERS);
	struct waiter *waiter = waiter_start(theirs, HF_ACQUIRE(.wait_ms = 60000));
	expect_waiting(two, 0);
	ASSERT_OK(hf_lock_release(mine));
	waiter_expect(waiter, 0);
	assert_int_equal(count_members(), MASTERS);
	waiter_finish(waiter);
	assert_int_equal(count_members(), 0);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

/* The masters of one cluster are not independent, whichever way they are named. */
static void a_red_lock_over_one_cluster_is_refused(void **state)
{
	hf_client *client[MASTERS];
	hf_lock *member[MASTERS], *red = NULL;
	(void)state;
	for (int form = 0; form < 2; form++) {
		for (int i = 0; i < MASTERS; i++) {
			char *name = name_on(i, "red-");
			int node = test_cluster_master(cluster, i);
			client[i] = open_url(
				form ? cluster->url : test_server_url(cluster->node[node]), NULL);
			member[i] = open_lock(client[i], name);
			free(name);
		}
		ASSERT_RC(hf_lock_open_red(member, MASTERS, &red), HF_EINVAL);
		ASSERT_CONTAINS(hf_error_detail(), "cluster");
		for (int i = 0; i < MASTERS; i++) {
			close_both(member[i], client[i]);
		}
	}
}

/* ---- addresses ---- */

/* Takes and releases a lock on each master. */
static void expect_works(const char *url, const hf_client_options *options)
{
	hf_client *client = open_url(url, options);
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "reached-");
		hf_lock *lock = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
		assert_true(node_has(test_cluster_master(cluster, i), name));
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
		free(name);
	}
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
}

static int port_of_replica(void)
{
	int node = test_cluster_replica(cluster, test_cluster_master(cluster, 0));
	return test_server_port(cluster->node[node]);
}

static void dead_seeds_do_not_hide_the_cluster(void **state)
{
	char url[200];
	(void)state;
	snprintf(url, sizeof url, "redis+cluster://127.0.0.1:1,127.0.0.1:2,localhost:%d",
	         test_server_port(cluster->node[1]));
	expect_works(url, NULL);
	snprintf(url, sizeof url, "valkey+cluster://127.0.0.1:%d",
	         test_server_port(cluster->node[2]));
	expect_works(url, NULL);
	expect_works(url, HF_CLIENT(.lazy = 1));
}

static void a_replica_leads_to_the_masters(void **state)
{
	char url[200];
	(void)state;
	snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", port_of_replica());
	expect_works(url, NULL);
}

static void a_single_address_of_a_node_works(void **state)
{
	char url[200];
	(void)state;
	snprintf(url, sizeof url, "redis://127.0.0.1:%d", test_server_port(cluster->node[0]));
	expect_works(url, NULL);
	expect_works(url, HF_CLIENT(.lazy = 1));
	snprintf(url, sizeof url, "redis://127.0.0.1:%d", port_of_replica());
	expect_works(url, NULL);
}

/*
 * Nodes name addresses that this host cannot use: here those of the servers, in place of the
 * proxy's.
 */
static void addresses_are_translated(void **state)
{
	int node = test_cluster_master(cluster, 1);
	struct proxy *proxy = proxy_start(test_server_url(cluster->node[node]));
	char nat[80];
	(void)state;
	snprintf(nat, sizeof nat, "127.0.0.1:%d:127.0.0.1:%s",
	         test_server_port(cluster->node[node]), strrchr(proxy_url(proxy), ':') + 1);
	hf_client *client = open_cluster(HF_CLIENT(.nat = nat));
	char *name = test_cluster_name(cluster, node, "translated-");
	hf_lock *lock = open_lock(client, name);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_true(node_has(node, name));
	assert_int_equal(proxy_connections(proxy), 1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	proxy_stop(proxy);
	free(name);
}

static void dead_seeds_are_named(void **state)
{
	hf_client *client = NULL;
	long long before = test_now_ms();
	(void)state;
	ASSERT_RC(hf_client_open("redis+cluster://127.0.0.1:1,127.0.0.1:2", NULL, &client),
	          HF_EUNREACHABLE);
	assert_true(test_now_ms() - before < 2 * SOON_MS);
	ASSERT_CONTAINS(hf_error_detail(), "127.0.0.1:");
}

static void a_server_outside_a_cluster_is_refused(void **state)
{
	char url[200];
	hf_client *client = NULL;
	struct test_server *alone =
		test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	(void)state;
	snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", test_server_port(alone));
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "cluster");
	test_server_stop(alone);
}

static void another_database_is_refused(void **state)
{
	char url[300];
	hf_client *client = NULL;
	(void)state;
	snprintf(url, sizeof url, "%s/1", cluster->url);
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "only database 0");
	ASSERT_RC(hf_client_open(cluster->url, HF_CLIENT(.database = 1), &client), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "only database 0");
	snprintf(url, sizeof url, "redis://127.0.0.1:%d/1", test_server_port(cluster->node[0]));
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "only database 0");
	snprintf(url, sizeof url, "%s/0", cluster->url);
	expect_works(url, NULL);
}

/* ---- messages ---- */

static struct raw *listen_to(int node, const char *command, const char *channel)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	struct raw_reply *reply = raw_command(raw, command, channel, NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	raw_reply_free(reply);
	return raw;
}

/* Whether the listener gets the message of a release within this time. */
static bool hears(struct raw *raw, int timeout_ms)
{
	struct raw_reply *message = raw_next_message(raw, timeout_ms);
	bool heard = message;
	if (message)
		assert_string_equal(message->children[2]->text, "0");
	raw_reply_free(message);
	return heard;
}

/* Releases a lock of a client with this setting: which of the two kinds of channels hears of it? */
static void expect_message(const char *setting, bool sharded)
{
	char *name = name_on(1, "published-");
	char *channel = check_format("redisson_lock__channel:{%s}", name);
	char *url = check_format("%s%s", cluster->url, setting);
	int node = test_cluster_owner_of(cluster, name);
	hf_client *client = open_url(url, NULL);
	hf_client *other = open_url(url, NULL);
	hf_lock *lock = open_lock(client, name);
	hf_lock *theirs = open_lock(other, name);
	struct raw *plain = listen_to(another_master(node), "SUBSCRIBE", channel);
	struct raw *shard = is_sharded() ? listen_to(node, "SSUBSCRIBE", channel) : NULL;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct waiter *waiter = waiter_start(theirs, NULL);
	expect_waiting(other, 0);
	ASSERT_OK(hf_lock_release(lock));
	assert_true(hears(sharded ? shard : plain, SOON_MS));
	waiter_expect(waiter, 0);
	if (shard)
		assert_false(hears(sharded ? plain : shard, 100));
	waiter_finish(waiter);
	raw_close(plain);
	raw_close(shard);
	hf_lock_close(lock);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
	free(url);
	free(channel);
	free(name);
}

static void releases_are_published_as_configured(void **state)
{
	hf_client *client = NULL;
	char *url = check_format("%s?sharded=perhaps", cluster->url);
	(void)state;
	expect_message("", is_sharded());
	expect_message("?sharded=auto", is_sharded());
	expect_message("?sharded=off", false);
	if (is_sharded())
		expect_message("?sharded=on", true);
	else
		print_message("Left out: sharded=on, because the server is older than 7.0\n");
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "sharded");
	free(url);
}

/* ---- scripts, connections ---- */

static void a_node_that_forgot_its_scripts_gets_them_again(void **state)
{
	hf_client *client = open_cluster(NULL);
	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < MASTERS; i++) {
			char *name = name_on(i, "flushed-");
			hf_lock *lock = open_lock(client, name);
			ASSERT_OK(hf_lock_acquire(lock, NULL));
			struct raw *raw =
				test_cluster_connect(cluster, test_cluster_master(cluster, i));
			raw_ok(raw, "SCRIPT", "FLUSH", NULL);
			raw_close(raw);
			ASSERT_OK(hf_lock_release(lock));
			hf_lock_close(lock);
			free(name);
		}
	assert_int_equal(stats_of(client).unknowns, 0);
	ASSERT_OK(hf_client_close(client));
}

static hf_client *forked_client;
static hf_lock *forked_lock[MASTERS];

static void use_inherited_handles(int pipe_fd)
{
	EXPECT_FORKED(hf_client_ping(forked_client, NULL));
	for (int i = 0; i < MASTERS; i++) {
		EXPECT_FORKED(hf_lock_acquire(forked_lock[i], NULL));
		EXPECT_FORKED(hf_lock_release(forked_lock[i]));
		hf_lock_close(forked_lock[i]);
	}
	if (hf_client_close(forked_client))
		_exit(3);
	dprintf(pipe_fd, "all forked");
	_exit(0);
}

static void a_forked_child_leaves_all_connections_alone(void **state)
{
	char output[256];
	(void)state;
	forked_client = open_cluster(NULL);
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "forked-");
		forked_lock[i] = open_lock(forked_client, name);
		ASSERT_OK(hf_lock_acquire(forked_lock[i], NULL));
		free(name);
	}
	int connections = count_all_connections();
	int status = process_fork(use_inherited_handles, output, sizeof output);
	assert_string_equal(output, "all forked");
	assert_int_equal(status, 0);
	assert_int_equal(count_all_connections(), connections);
	for (int i = 0; i < MASTERS; i++) {
		assert_int_equal(hf_lock_state(forked_lock[i], NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(forked_lock[i]));
		hf_lock_close(forked_lock[i]);
	}
	assert_int_equal(stats_of(forked_client).reconnects, 0);
	ASSERT_OK(hf_client_close(forked_client));
}

/* The holds of all masters are released, and no connection stays. */
static void closing_gives_back_what_is_held_everywhere(void **state)
{
	int before = count_all_connections();
	hf_client *client = open_cluster(NULL);
	char *name[MASTERS];
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		name[i] = name_on(i, "closed-");
		hf_lock *lock = open_lock(client, name[i]);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		hf_lock_close(lock);
	}
	assert_true(count_all_connections() >= before + MASTERS);
	ASSERT_OK(hf_client_close(client));
	for (int i = 0; i < MASTERS; i++) {
		assert_false(node_has(test_cluster_master(cluster, i), name[i]));
		free(name[i]);
	}
	WAIT_UNTIL(count_all_connections() == before, SOON_MS);
}

/* ---- passwords and certificates ---- */

/* Every node wants the password, also those that the client was not given. */
static void nodes_with_a_password_are_all_logged_in_to(void **state)
{
	struct test_cluster *whole = cluster;
	char url[100];
	hf_client *client = NULL;
	(void)state;
	cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .password = "secret"});
	snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d",
	         test_server_port(cluster->node[0]));
	expect_works(url, HF_CLIENT(.password = "secret"));
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EAUTH);
	test_cluster_stop(cluster);
	cluster = whole;
}

static void nodes_with_tls_are_all_checked(void **state)
{
	struct test_cluster *whole = cluster;
	char url[100];
	hf_client *client = NULL;
	(void)state;
	if (!test_server_has_tls()) {
		print_message("Left out: a cluster with TLS, which the server does not know\n");
		return;
	}
	struct certs *certs = certs_make();
	cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .certs = certs});
	snprintf(url, sizeof url, "rediss+cluster://localhost:%d",
	         test_server_port(cluster->node[0]));
	int rc = hf_client_open(url, HF_CLIENT(.tls_ca_file = certs->other_ca), &client);
	if (rc == HF_ENOTSUP) {
		print_message("Left out: a cluster with TLS, which the library does not know\n");
	} else {
		assert_int_equal(rc, HF_ETLS);
		expect_works(url, HF_CLIENT(.tls_ca_file = certs->ca));
	}
	test_cluster_stop(cluster);
	certs_free(certs);
	cluster = whole;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_KINDS(a_lock_is_contended_on_each_master),
		CLUSTER_STORY(synchronizers_are_contended_on_each_master),
		CLUSTER_STORY(a_latch_with_braces_in_its_name_wakes_its_waiters_or_is_refused),
		CLUSTER_STORY(nested_levels_and_queries_work_on_each_master),
		CLUSTER_STORY(waiters_follow_a_slot_that_the_server_migrates),
		CLUSTER_STORY(tags_decide_about_the_slot),
		CLUSTER_STORY(names_without_a_clear_slot_are_refused),
		CLUSTER_STORY(a_multi_lock_spans_the_masters),
		CLUSTER_STORY(a_red_lock_over_one_cluster_is_refused),
		CLUSTER_STORY(dead_seeds_do_not_hide_the_cluster),
		CLUSTER_STORY(a_replica_leads_to_the_masters),
		CLUSTER_STORY(a_single_address_of_a_node_works),
		CLUSTER_STORY(addresses_are_translated),
		CLUSTER_STORY(dead_seeds_are_named),
		CLUSTER_STORY(a_server_outside_a_cluster_is_refused),
		CLUSTER_STORY(another_database_is_refused),
		CLUSTER_STORY(releases_are_published_as_configured),
		CLUSTER_STORY(a_node_that_forgot_its_scripts_gets_them_again),
		CLUSTER_STORY(a_forked_child_leaves_all_connections_alone),
		CLUSTER_STORY(closing_gives_back_what_is_held_everywhere),
		CLUSTER_STORY(nodes_with_a_password_are_all_logged_in_to),
		CLUSTER_STORY(nodes_with_tls_are_all_checked),
	};
	return cmocka_run_group_tests(tests, start_patient_cluster, stop_cluster);
}
