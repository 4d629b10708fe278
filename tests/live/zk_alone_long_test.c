/* The quick way to a free lock, and creations whose answer is lost, on an ensemble of three. */
#include "live/zk_requests.h"

#include "support/proxy.h"

enum { QUICK = 2, LISTED = 3 }; /* requests for an acquire and its release */

/* ---- leaders that come and go ---- */

static void ensemble_begin(struct taker *taker)
{
	char url[200];
	memset(taker, 0, sizeof(*taker));
	taker->zookeeper = test_zookeeper_start(&(struct test_zookeeper_options){.servers = 3});
	snprintf(url, sizeof url, "zk://%s", test_zookeeper_hosts(taker->zookeeper));
	taker->client = open_url(url, HF_CLIENT(.watchdog_ms = 30000));
	taker->lock = open_lock(taker->client, "orders");
}

/* Queries the leader, which knows everything. */
static struct zk_raw *open_eye(struct test_zookeeper *zookeeper)
{
	return zk_raw_open(test_zookeeper_host(zookeeper, test_zookeeper_leader(zookeeper)), 0);
}

/* Until the client is connected again, and the server it is connected to has caught up. */
static void settle(struct taker *taker)
{
	WAIT_UNTIL(hf_client_ping(taker->client, NULL) == 0, 20000);
	(void)requests_of(taker->zookeeper, taker->session);
}

static void new_leader_is_a_new_beginning(void **state)
{
	struct taker taker;

	(void)state;
	ensemble_begin(&taker);
	struct zk_raw *eye = open_eye(taker.zookeeper);
	for (int i = 0; i < 10; i++) {
		ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
		ASSERT_OK(hf_lock_release(taker.lock));
	}
	ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
	assert_int_equal(zk_raw_sync(eye, "/"), 0);
	taker.session = first_owner(eye, "/orders");
	ASSERT_OK(hf_lock_release(taker.lock));
	taker.granted_at = test_now_ms();
	assert_int_equal(taker_cost(&taker), QUICK);
	for (int i = 0; i < 2; i++) {
		zk_raw_drop(eye);
		int killed = test_zookeeper_leader(taker.zookeeper);
		test_zookeeper_kill(taker.zookeeper, killed);
		eye = open_eye(taker.zookeeper);
		settle(&taker);
		/* The counter of the folder continues, but transactions are counted from zero. */
		assert_int_equal(taker_cost(&taker), LISTED);
		assert_int_equal(taker_cost(&taker), QUICK);
		assert_int_equal(stats_of(taker.client).losses, 0);
		test_zookeeper_restart(taker.zookeeper, killed);
		settle(&taker);
	}
	zk_raw_close(eye);
	taker_end(&taker);
	test_zookeeper_stop(taker.zookeeper);
}

/* What another has taken while the client was away is not overlooked. */
static void holder_from_another_epoch_is_waited_for(void **state)
{
	struct taker taker;
	char *path = NULL;

	(void)state;
	ensemble_begin(&taker);
	for (int i = 0; i < 5; i++) {
		ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
		ASSERT_OK(hf_lock_release(taker.lock));
	}
	int killed = test_zookeeper_leader(taker.zookeeper);
	test_zookeeper_kill(taker.zookeeper, killed);
	struct zk_raw *eye = open_eye(taker.zookeeper);
	/* The folder again, up to the number that the client waits for, in few transactions. */
	assert_int_equal(zk_raw_delete(eye, "/orders", -1), 0);
	assert_int_equal(zk_raw_create(eye, "/orders", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	assert_int_equal(
		zk_raw_create(eye, "/orders/lock-", "", ZK_RAW_EPHEMERAL_SEQUENTIAL, &path, NULL),
		0);
	for (int i = 1; i < 5; i++)
		assert_int_equal(zk_raw_create(eye, "/orders/x-", "", ZK_RAW_EPHEMERAL_SEQUENTIAL,
		                               NULL, NULL),
		                 0);
	WAIT_UNTIL(hf_client_ping(taker.client, NULL) == 0, 20000);
	ASSERT_RC(hf_lock_acquire(taker.lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(zk_raw_delete(eye, path, -1), 0);
	ASSERT_OK(hf_lock_acquire(taker.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(taker.lock));
	free(path);
	zk_raw_close(eye);
	taker_end(&taker);
	test_zookeeper_stop(taker.zookeeper);
}

/* ---- servers that lag ---- */

/* A client of two followers, each on a proxy, and an eye at the leader. */
struct split {
	struct test_zookeeper *zookeeper;
	struct zk_raw *eye;
	struct proxy *proxies[2];
	int servers[2];
	int connected; /* which of the two the client talks to */
	hf_client *client;
	hf_lock *lock;
};

static void split_begin(struct split *split)
{
	char url[200];
	memset(split, 0, sizeof(*split));
	split->zookeeper = test_zookeeper_start(
		&(struct test_zookeeper_options){.servers = 3, .can_cut = true});
	int leader = test_zookeeper_leader(split->zookeeper);
	for (int i = 0, n = 0; i < 3; i++)
		if (i != leader)
			split->servers[n++] = i;
	for (int i = 0; i < 2; i++)
		split->proxies[i] =
			proxy_start(test_zookeeper_url(split->zookeeper, split->servers[i]));
	snprintf(url, sizeof url, "%s,%s", proxy_url(split->proxies[0]),
	         proxy_url(split->proxies[1]) + strlen("zk://"));
	split->eye = zk_raw_open(test_zookeeper_host(split->zookeeper, leader), 0);
	split->client = open_url(url, HF_CLIENT(.watchdog_ms = 20000));
	split->lock = open_lock(split->client, "orders");
	split->connected = proxy_reply_bytes(split->proxies[0]) > 0 ? 0 : 1;
}

static void split_end(struct split *split)
{
	close_both(split->lock, split->client);
	zk_raw_close(split->eye);
	for (int i = 0; i < 2; i++)
		proxy_stop(split->proxies[i]);
	test_zookeeper_stop(split->zookeeper);
}

/*
 * The creation is done, its answer lost, and the only server in reach has not heard of it yet. It
 * is cut off from the leader until the client connects to it.
 */
static void lose_answer_and_move(struct split *split)
{
	struct proxy *here = split->proxies[split->connected];
	struct proxy *there = split->proxies[!split->connected];
	int lagging = split->servers[!split->connected];
	WAIT_UNTIL(count_children(split->eye, "/orders") == 1, SOON_MS);
	int connections = proxy_connections(there);
	proxy_refuse(here, true);
	proxy_cut(here);
	WAIT_UNTIL(proxy_connections(there) > connections, 10000);
	test_zookeeper_isolate(split->zookeeper, lagging, false);
	proxy_drop_replies(here, false);
}

static void lost_creation_is_found_again_at_a_server_that_lagged(void **state)
{
	struct split split;
	struct zk_raw_stat stat;
	char path[700];

	(void)state;
	split_begin(&split);
	/* The folder is known to all before anything is cut. */
	ASSERT_OK(hf_lock_acquire(split.lock, NULL));
	ASSERT_OK(hf_lock_release(split.lock));
	test_zookeeper_isolate(split.zookeeper, split.servers[!split.connected], true);
	proxy_drop_replies(split.proxies[split.connected], true);
	struct waiter *waiter = waiter_start(split.lock, NULL);
	lose_answer_and_move(&split);
	waiter_expect(waiter, 0);
	read_only_child(split.eye, "/orders", path, sizeof path, &stat);
	ASSERT_CONTAINS(path, "-lock-0000000001");
	assert_int_equal(token_of(split.lock, waiter->options.owner), stat.czxid);
	assert_true(proxy_reply_bytes(split.proxies[!split.connected]) > 0);
	ASSERT_OK(waiter_release(waiter));
	WAIT_UNTIL(count_children(split.eye, "/orders") == 0, SOON_MS);
	assert_int_equal(stats_of(split.client).losses, 0);
	waiter_free(waiter);
	split_end(&split);
}

static void lost_creation_that_nobody_waits_for_is_removed_by_a_server_that_lagged(void **state)
{
	struct split split;

	(void)state;
	split_begin(&split);
	ASSERT_OK(hf_lock_acquire(split.lock, NULL));
	ASSERT_OK(hf_lock_release(split.lock));
	test_zookeeper_isolate(split.zookeeper, split.servers[!split.connected], true);
	proxy_drop_replies(split.proxies[split.connected], true);
	struct waiter *waiter = waiter_start(split.lock, HF_ACQUIRE(.wait_ms = 300));
	lose_answer_and_move(&split);
	/* In time it may still have got the lock. */
	WAIT_UNTIL(waiter_is_over(waiter), 20000);
	if (waiter->result == 0)
		ASSERT_OK(waiter_release(waiter));
	else
		waiter_expect(waiter, HF_EUNKNOWN);
	WAIT_UNTIL(count_children(split.eye, "/orders") == 0, 10000);
	ASSERT_OK(hf_lock_acquire(split.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(split.lock));
	waiter_free(waiter);
	split_end(&split);
}

/* A semaphore makes two nodes; each may be the one whose answer is lost. */
static void lost_creation_of_a_lease_is_found_again_at_a_server_that_lagged(void **state)
{
	struct split split;
	hf_lock *simple = NULL;

	(void)state;
	split_begin(&split);
	ASSERT_OK(hf_lock_open(split.client, HF_SIMPLE, "gated", &simple));
	ASSERT_OK(hf_lock_acquire(simple, NULL));
	ASSERT_OK(hf_lock_release(simple));
	assert_int_equal(zk_raw_create(split.eye, "/orders", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	assert_int_equal(zk_raw_sync(split.eye, "/"), 0);
	test_zookeeper_isolate(split.zookeeper, split.servers[!split.connected], true);
	proxy_drop_replies(split.proxies[split.connected], true);
	struct waiter *waiter = waiter_start(simple, NULL);
	WAIT_UNTIL(count_children(split.eye, "/gated/locks") == 1, SOON_MS);
	struct proxy *there = split.proxies[!split.connected];
	int connections = proxy_connections(there);
	proxy_refuse(split.proxies[split.connected], true);
	proxy_cut(split.proxies[split.connected]);
	WAIT_UNTIL(proxy_connections(there) > connections, 10000);
	test_zookeeper_isolate(split.zookeeper, split.servers[!split.connected], false);
	waiter_expect(waiter, 0);
	WAIT_UNTIL(count_children(split.eye, "/gated/locks") == 0, SOON_MS);
	assert_int_equal(count_children(split.eye, "/gated/leases"), 1);
	ASSERT_OK(waiter_release(waiter));
	WAIT_UNTIL(count_children(split.eye, "/gated/leases") == 0, SOON_MS);
	waiter_free(waiter);
	hf_lock_close(simple);
	split_end(&split);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_leader_is_a_new_beginning),
		cmocka_unit_test(holder_from_another_epoch_is_waited_for),
		cmocka_unit_test(lost_creation_is_found_again_at_a_server_that_lagged),
		cmocka_unit_test(
			lost_creation_that_nobody_waits_for_is_removed_by_a_server_that_lagged),
		cmocka_unit_test(lost_creation_of_a_lease_is_found_again_at_a_server_that_lagged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
