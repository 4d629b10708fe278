/* Two servers that both consider themselves the master, and clients that are on different sides. */
#include "live/live.h"

#include "support/proxy.h"
#include "support/replica.h"

#define LEASE_MS 3000

/* A client, and a lock that it shares with the other side by name only. */
struct side {
	struct seen seen;
	hf_client *client;
	hf_lock *lock;
};

static void open_side(struct side *side, const char *url)
{
	memset(side, 0, sizeof(*side));
	side->client = open_url(url, HF_CLIENT(.watchdog_ms = LEASE_MS, EVENTS_TO(&side->seen)));
	side->lock = open_lock(side->client, "orders");
}

static void close_side(struct side *side)
{
	close_both(side->lock, side->client);
}

static struct test_server *start_server(void)
{
	static const char *const extra[] = {"--repl-diskless-sync-delay", "0", NULL};
	return test_server_start(
		&(struct test_server_options){.kind = TEST_SERVER_TCP, .extra = extra});
}

static struct test_server *start_sentinel(struct test_server *master)
{
	char *lines = check_format("sentinel monitor mymaster 127.0.0.1 %d 1\n"
	                           "sentinel down-after-milliseconds mymaster 60000\n",
	                           test_server_port(master));
	struct test_server *sentinel = test_server_start(
		&(struct test_server_options){.kind = TEST_SERVER_TCP, .sentinel = lines});
	free(lines);
	return sentinel;
}

static bool has_hold(struct test_server *server, hf_client *client)
{
	struct raw *raw = raw_connect(server);
	bool is_held = is_held_by(raw, "orders", client);
	raw_close(raw);
	return is_held;
}

/* Each renews its hold twice from now on. */
static void await_renewals(struct side *side)
{
	uint64_t renewals = stats_of(side->client).renewals;
	WAIT_UNTIL(stats_of(side->client).renewals >= renewals + 2, 2 * LEASE_MS);
}

/* ---- Sentinels that do not agree ---- */

static char *url_of(struct test_server *first, struct test_server *second)
{
	return check_format("redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/mymaster",
	                    test_server_port(first), test_server_port(second));
}

/*
 * A client does not compare what they say: it listens to one of them for as long as that one works.
 */
static void of_sentinels_that_disagree_the_one_in_use_is_followed(void **state)
{
	struct test_server *master[2], *sentinel[2];
	struct side side[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		master[i] = start_server();
		sentinel[i] = start_sentinel(master[i]);
	}
	for (int i = 0; i < 2; i++) {
		char *url = url_of(sentinel[i], sentinel[!i]);
		open_side(&side[i], url);
		free(url);
		ASSERT_OK(hf_lock_acquire(side[i].lock, NULL));
	}
	/* The Sentinel in use is asked every second meanwhile. */
	for (int i = 0; i < 2; i++) {
		await_renewals(&side[i]);
		assert_int_equal(stats_of(side[i].client).reconnects, 0);
		assert_true(has_hold(master[i], side[i].client));
	}
	/* The next Sentinel names the other master, where somebody else has the lock. */
	test_server_kill(sentinel[0]);
	WAIT_UNTIL(seen_count(&side[0].seen, HF_LOST) == 1, 10000);
	ASSERT_RC(hf_lock_release(side[0].lock), HF_ELOST);
	ASSERT_RC(hf_lock_acquire(side[0].lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(hf_lock_state(side[1].lock, NULL), HF_HELD);
	assert_true(has_hold(master[1], side[1].client));
	ASSERT_OK(hf_lock_release(side[1].lock));
	for (int i = 0; i < 2; i++)
		close_side(&side[i]);
	for (int i = 0; i < 2; i++) {
		test_server_stop(sentinel[i]);
		test_server_stop(master[i]);
	}
}

/* ---- a client that is cut off together with the old master ---- */

/*
 * The old master and its client on one side; the new master, the Sentinel and another client on the
 * other side.
 */
struct parted {
	struct test_server *old, *new, *sentinel;
	struct proxy *replication; /* from the old master to the new one, while that is a replica */
	struct proxy *questions;   /* from the first client to the Sentinel */
	struct side here, there;
};

#define COMMAND(server, ...)                                                                       \
	do {                                                                                       \
		struct raw *raw_ = raw_connect(server);                                            \
		raw_ok(raw_, __VA_ARGS__, NULL);                                                   \
		raw_close(raw_);                                                                   \
	} while (0)

/* The old master wants this many replicas. */
static void begin_parted(struct parted *parted, const char *replicas)
{
	parted->old = start_server();
	parted->new = start_server();
	parted->sentinel = start_sentinel(parted->old);
	parted->replication = proxy_start(test_server_url(parted->old));
	COMMAND(parted->new, "REPLICAOF", "127.0.0.1",
	        strrchr(proxy_url(parted->replication), ':') + 1);
	test_replica_settle(parted->old, 1);
	COMMAND(parted->old, "CONFIG", "SET", "min-replicas-max-lag", "1");
	COMMAND(parted->old, "CONFIG", "SET", "min-replicas-to-write", replicas);
	parted->questions = proxy_start(test_server_url(parted->sentinel));
	char *url = check_format("redis+sentinel://127.0.0.1%s/mymaster",
	                         strrchr(proxy_url(parted->questions), ':'));
	open_side(&parted->here, url);
	free(url);
	ASSERT_OK(hf_lock_acquire(parted->here.lock, HF_ACQUIRE(.wait_ms = 10000)));
	WAIT_UNTIL(has_hold(parted->new, parted->here.client), SOON_MS);
}

/* From now on the other side has a master of its own, and the Sentinel names it. */
static void part(struct parted *parted)
{
	char port[8];
	snprintf(port, sizeof port, "%d", test_server_port(parted->new));
	proxy_hold_requests(parted->questions, true);
	proxy_hold_replies(parted->questions, true);
	proxy_hold_requests(parted->replication, true);
	proxy_hold_replies(parted->replication, true);
	COMMAND(parted->new, "REPLICAOF", "NO", "ONE");
	COMMAND(parted->sentinel, "SENTINEL", "REMOVE", "mymaster");
	COMMAND(parted->sentinel, "SENTINEL", "MONITOR", "mymaster", "127.0.0.1", port, "1");
	char *url = check_format("redis+sentinel://127.0.0.1:%d/mymaster",
	                         test_server_port(parted->sentinel));
	open_side(&parted->there, url);
	free(url);
}

static void heal(struct parted *parted)
{
	proxy_hold_requests(parted->questions, false);
	proxy_hold_replies(parted->questions, false);
}

static void end_parted(struct parted *parted)
{
	close_side(&parted->here);
	close_side(&parted->there);
	proxy_stop(parted->questions);
	proxy_stop(parted->replication);
	test_server_stop(parted->sentinel);
	test_server_stop(parted->new);
	test_server_stop(parted->old);
}

/* Both are on the new master, where the other client has the lock. */
static void expect_reunited(struct parted *parted)
{
	assert_int_equal(seen_count(&parted->here.seen, HF_LOST), 1);
	ASSERT_RC(hf_lock_release(parted->here.lock), HF_ELOST);
	struct waiter *waiter = waiter_start(parted->here.lock, NULL);
	WAIT_UNTIL(stats_of(parted->here.client).waits >= 1, 10000);
	assert_int_equal(hf_lock_state(parted->there.lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(parted->there.lock));
	waiter_expect(waiter, 0);
	assert_true(has_hold(parted->new, parted->here.client));
	waiter_finish(waiter);
}

static void old_master_that_wants_replicas_costs_the_hold_of_a_client_cut_off_with_it(void **state)
{
	struct parted parted;

	(void)state;
	begin_parted(&parted, "1");
	part(&parted);
	/*
	 * A lease after the last renewal that the old master has accepted, without any message from
	 * the other side.
	 */
	WAIT_UNTIL(seen_count(&parted.here.seen, HF_LOST) == 1, 20000);
	hf_lock *other = open_lock(parted.here.client, "other");
	ASSERT_RC(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 300)), HF_ENOTNOW);
	ASSERT_CONTAINS(hf_error_detail(), "NOREPLICAS");
	hf_lock_close(other);
	ASSERT_OK(hf_lock_acquire(parted.there.lock, HF_ACQUIRE(.wait_ms = 20000)));
	heal(&parted);
	expect_reunited(&parted);
	end_parted(&parted);
}

/* docs/guarantees.md excludes this: both hold the lock until the client hears of the new master. */
static void without_that_the_hold_lasts_until_the_new_master_is_named(void **state)
{
	struct parted parted;

	(void)state;
	begin_parted(&parted, "0");
	part(&parted);
	ASSERT_OK(hf_lock_acquire(parted.there.lock, HF_ACQUIRE(.wait_ms = 20000)));
	await_renewals(&parted.here);
	assert_int_equal(hf_lock_state(parted.here.lock, NULL), HF_HELD);
	heal(&parted);
	WAIT_UNTIL(seen_count(&parted.here.seen, HF_LOST) == 1, 10000);
	expect_reunited(&parted);
	end_parted(&parted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_sentinels_that_disagree_the_one_in_use_is_followed),
		cmocka_unit_test(
			old_master_that_wants_replicas_costs_the_hold_of_a_client_cut_off_with_it),
		cmocka_unit_test(without_that_the_hold_lasts_until_the_new_master_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
