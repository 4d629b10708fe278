/* Networks that lose, hold, cut and slice what goes over them, between a client and its server. */
#include "live/live.h"

#include "redis/lua_scripts.h"
#include "support/proxy.h"

#define CHANNEL   "redisson_lock__channel:{orders}"
#define STRANGERS 100

/* A client on a proxy. */
struct world {
	struct proxy *proxy;
	struct seen seen;
	hf_client *client;
	hf_lock *lock;
};

static void begin(struct world *world, int64_t watchdog_ms)
{
	memset(world, 0, sizeof(*world));
	world->proxy = proxy_start(test_server_url(live_server));
	world->client = open_url(proxy_url(world->proxy),
	                         HF_CLIENT(.watchdog_ms = watchdog_ms, ALL_TO(&world->seen)));
	world->lock = open_lock(world->client, "orders");
}

static void end(struct world *world)
{
	close_both(world->lock, world->client);
	proxy_stop(world->proxy);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
}

/* Lets replies through again, on new connections. */
static void cut_and_heal(struct world *world)
{
	proxy_drop_replies(world->proxy, false);
	proxy_cut(world->proxy);
}

/* ---- replies that are lost ---- */

static void lost_reply_to_an_acquire_leaves_one_hold(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 9000);
	proxy_drop_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(world.lock, NULL);
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	cut_and_heal(&world);
	waiter_expect(waiter, 0);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_BETWEEN(stats_of(world.client).unknowns, 1, 2);
	waiter_finish(waiter);
	end(&world);
}

static void lost_reply_to_a_nested_acquire_counts_once(void **state)
{
	struct world world;
	hf_owner *owner = new_owner();

	(void)state;
	begin(&world, 9000);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.owner = owner)));
	proxy_drop_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(world.lock, HF_ACQUIRE(.owner = owner));
	WAIT_UNTIL(held_count(live_raw, "orders") == 2, SOON_MS);
	cut_and_heal(&world);
	waiter_expect(waiter, 0);
	assert_int_equal(held_count(live_raw, "orders"), 2);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	waiter_finish(waiter);
	end(&world);
}

static void lost_reply_to_a_release_is_settled(void **state)
{
	struct world world;
	hf_owner *owner = new_owner();

	(void)state;
	begin(&world, 9000);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.owner = owner)));
	proxy_drop_replies(world.proxy, true);
	struct waiter *release = WAITER(.releases = world.lock, .owner = owner);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	cut_and_heal(&world);
	waiter_join(release, 0);
	ASSERT_RC(hf_lock_release_with(world.lock, HF_RELEASE(.owner = owner)), HF_ENOTHELD);
	hf_owner_free(owner);
	end(&world);
}

static void lost_reply_to_a_nested_release_gives_up_one_level(void **state)
{
	struct world world;
	hf_owner *owner = new_owner();

	(void)state;
	begin(&world, 9000);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.owner = owner)));
	proxy_drop_replies(world.proxy, true);
	struct waiter *release = WAITER(.releases = world.lock, .owner = owner);
	WAIT_UNTIL(held_count(live_raw, "orders") == 2, SOON_MS);
	cut_and_heal(&world);
	waiter_join(release, 0);
	assert_int_equal(held_count(live_raw, "orders"), 2);
	ASSERT_OK(hf_lock_release_with(world.lock, HF_RELEASE(.owner = owner)));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release_with(world.lock, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	end(&world);
}

static void lost_reply_to_a_renewal_costs_nothing(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 3000);
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	proxy_drop_replies(world.proxy, true);
	uint64_t scripts = stats_of(world.client).renewal_scripts;
	long long bytes = proxy_reply_bytes(world.proxy);
	WAIT_UNTIL(stats_of(world.client).renewal_scripts > scripts &&
	                   proxy_reply_bytes(world.proxy) > bytes,
	           SOON_MS);
	cut_and_heal(&world);
	WAIT_UNTIL(stats_of(world.client).renewals >= 1, SOON_MS);
	assert_int_equal(hf_lock_state(world.lock, NULL), HF_HELD);
	assert_int_equal(seen_count(&world.seen, HF_LOST), 0);
	assert_true(stats_of(world.client).renewal_failures >= 1);
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

/* ---- answers that come too late ---- */

static void unanswered_acquire_is_unknown_and_cleaned_up(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	proxy_hold_replies(world.proxy, true);
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = 300)), HF_EUNKNOWN);
	ASSERT_BETWEEN(test_now_ms() - started_at, 300, 900);
	assert_int_equal(hf_lock_state(world.lock, NULL), HF_FREE);
	assert_true(key_exists(live_raw, "orders"));
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

static void unanswered_release_is_unknown_and_continues_in_the_background(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	proxy_hold_requests(world.proxy, true);
	ASSERT_RC(hf_lock_release_with(world.lock, HF_RELEASE(.wait_ms = 200)), HF_EUNKNOWN);
	assert_int_equal(hf_lock_state(world.lock, NULL), HF_FREE);
	ASSERT_RC(hf_lock_release(world.lock), HF_ENOTHELD);
	assert_true(key_exists(live_raw, "orders"));
	proxy_hold_requests(world.proxy, false);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	end(&world);
}

/* ---- black holes ---- */

static void black_hole_costs_the_lock_before_it_can_be_given_away(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 1200);
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	WAIT_UNTIL(stats_of(world.client).renewals >= 1, SOON_MS);
	proxy_drop_requests(world.proxy, true);
	proxy_drop_replies(world.proxy, true);
	bool is_held = true;
	while (is_held) {
		/* The server is asked last: while it still has the lock, no other client can. */
		bool is_believed = hf_lock_state(world.lock, NULL) != HF_LOST;
		is_held = key_exists(live_raw, "orders");
		if (!is_held && is_believed)
			assert_int_equal(hf_lock_remaining(world.lock, NULL), 0);
	}
	assert_int_equal(hf_lock_state(world.lock, NULL), HF_LOST);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 1, SOON_MS);
	proxy_drop_requests(world.proxy, false);
	proxy_drop_replies(world.proxy, false);
	ASSERT_RC(hf_lock_release(world.lock), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(world.lock));
	assert_int_equal(stats_of(world.client).losses, 1);
	end(&world);
}

/*
 * A device on the way that drops packets of this shape. Other requests get through, on other
 * connections.
 */
static void network_that_filters_renewals_costs_the_lock_in_time(void **state)
{
	/* By name, and whole after a reconnect. */
	static const char *const filter[] = {hf__lua_renew_sha, hf__lua_renew, NULL};
	struct world world;

	(void)state;
	begin(&world, 2400);
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	WAIT_UNTIL(stats_of(world.client).renewals >= 1, SOON_MS);
	proxy_filter_requests(world.proxy, filter);
	hf_lock *other = open_lock(world.client, "other");
	int others = 0;
	for (bool is_there = true; is_there; test_pause()) {
		is_there = key_exists(live_raw, "orders");
		if (!is_there)
			assert_int_equal(hf_lock_remaining(world.lock, NULL), 0);
		if (hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 300)) == 0) {
			others++;
			(void)hf_lock_release_with(other, HF_RELEASE(.wait_ms = 300));
		}
	}
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 1, SOON_MS);
	assert_true(others > 0);
	/* The first one, and the next ones on other connections. */
	assert_true(stats_of(world.client).renewal_failures >= 2);
	ASSERT_RC(hf_lock_release(world.lock), HF_ELOST);
	proxy_filter_requests(world.proxy, NULL);
	WAIT_UNTIL(!key_exists(live_raw, "other"), SOON_MS);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = 5000)));
	uint64_t renewals = stats_of(world.client).renewals;
	WAIT_UNTIL(stats_of(world.client).renewals > renewals, SOON_MS);
	ASSERT_OK(hf_lock_release(world.lock));
	hf_lock_close(other);
	end(&world);
}

static void network_that_is_back_before_the_lease_ends_costs_nothing(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 3000);
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	long long acquired_at = test_now_ms();
	proxy_refuse(world.proxy, true);
	proxy_cut(world.proxy);
	WAIT_UNTIL(test_now_ms() - acquired_at >= 1900, SOON_MS);
	proxy_refuse(world.proxy, false);
	/* A holder tries every twelfth of its lease, however often it failed before. */
	WAIT_UNTIL(stats_of(world.client).renewals == 1, 800);
	assert_int_equal(hf_lock_state(world.lock, NULL), HF_HELD);
	assert_int_equal(seen_count(&world.seen, HF_LOST), 0);
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

static void unreachable_server_is_reported_when_the_time_is_over(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 3000);
	proxy_refuse(world.proxy, true);
	proxy_cut(world.proxy);
	/* Until then an attempt could be on its way. */
	WAIT_UNTIL(seen_in_log(&world.seen, "connection lost"), SOON_MS);
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = 400)), HF_EUNREACHABLE);
	ASSERT_BETWEEN(test_now_ms() - started_at, 400, 900);
	proxy_refuse(world.proxy, false);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

static void release_of_a_lost_hold_does_not_wait_for_the_server(void **state)
{
	static struct world world; /* its client may report something after a failed test */

	(void)state;
	begin(&world, 600);
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	proxy_refuse(world.proxy, true);
	proxy_cut(world.proxy);
	WAIT_UNTIL(hf_lock_state(world.lock, NULL) == HF_LOST, SOON_MS);
	for (int i = 0; i < 2; i++) {
		long long started_at = test_now_ms();
		ASSERT_RC(hf_lock_release(world.lock), HF_ELOST);
		/* A request that waits for an answer takes 3 s. */
		ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1500);
	}
	ASSERT_RC(hf_lock_release(world.lock), HF_ENOTHELD);
	proxy_refuse(world.proxy, false);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	end(&world);
}

/* ---- waiters ---- */

static void message_lost_in_the_gap_does_not_hang_the_waiter(void **state)
{
	struct world world;
	hf_client *other = open_client(NULL);
	hf_lock *theirs = open_lock(other, "orders");

	(void)state;
	begin(&world, 30000);
	ASSERT_OK(hf_lock_acquire(theirs, NULL));
	struct waiter *waiter = waiter_start(world.lock, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	proxy_refuse(world.proxy, true);
	proxy_cut(world.proxy);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 0, SOON_MS);
	ASSERT_OK(hf_lock_release(theirs));
	proxy_refuse(world.proxy, false);
	waiter_expect(waiter, 0);
	assert_int_equal(stats_of(world.client).wakeups, 0);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	waiter_finish(waiter);
	close_both(theirs, other);
	end(&world);
}

static void reconnected_waiter_is_subscribed_again(void **state)
{
	struct world world;
	hf_client *other = open_client(NULL);
	hf_lock *theirs = open_lock(other, "orders");

	(void)state;
	begin(&world, 30000);
	ASSERT_OK(hf_lock_acquire(theirs, NULL));
	struct waiter *waiter = waiter_start(world.lock, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	proxy_cut(world.proxy);
	WAIT_UNTIL(stats_of(world.client).reconnects == 1, SOON_MS);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	uint64_t attempts = stats_of(world.client).attempts;
	WAIT_UNTIL(stats_of(world.client).attempts >= attempts && attempts >= 3, SOON_MS);
	ASSERT_WAKES(hf_lock_release(theirs), waiter, 1500);
	waiter_finish(waiter);
	close_both(theirs, other);
	end(&world);
}

static void answers_may_come_in_small_pieces(void **state)
{
	struct world world;
	char holder[64];
	hf_client *other = open_client(NULL);
	hf_lock *theirs = open_lock(other, "orders");

	(void)state;
	begin(&world, 9000);
	/*
	 * The first renewal carries its script. Even in pieces that takes less than a ninth of the
	 * lease, so a connection that breaks on a busy machine can be replaced.
	 */
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(stats_of(world.client).renewals >= 1, SOON_MS);
	ASSERT_OK(hf_lock_release(world.lock));
	proxy_slice(world.proxy, 3);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_holder(world.lock, holder, sizeof holder));
	WAIT_UNTIL(stats_of(world.client).renewals >= 2, SOON_MS);
	ASSERT_OK(hf_lock_release(world.lock));
	ASSERT_OK(hf_lock_release(world.lock));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = SOON_MS)));
	struct waiter *waiter = waiter_start(world.lock, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(theirs));
	waiter_finish(waiter);
	close_both(theirs, other);
	proxy_slice(world.proxy, 0);
	end(&world);
}

static void slow_network_is_only_slow(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 6000);
	proxy_delay(world.proxy, 60);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(world.lock, NULL));
	ASSERT_BETWEEN(test_now_ms() - started_at, 120, SOON_MS);
	/* The lease counts from before the request was sent. */
	ASSERT_BETWEEN(hf_lock_remaining(world.lock, NULL), 1, 6000 - 120);
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

/* ---- strangers ---- */

/*
 * A restarted server numbers connections from the start again, so the old number belongs to another
 * client.
 */
static void reconnect_kills_no_stranger_after_a_restart(void **state)
{
	struct raw *strangers[STRANGERS];
	struct test_server *server =
		test_server_start(&(struct test_server_options){.appendonly = true});
	struct proxy *proxy = proxy_start(test_server_url(server));
	int count = 0;

	(void)state;
	/*
	 * A high number, which the restarted server has not reached when the other clients connect.
	 */
	for (int i = 0; i < STRANGERS / 2; i++)
		raw_close(raw_connect(server));
	struct raw *raw = raw_connect(server);
	hf_client *client = open_url(proxy_url(proxy), HF_CLIENT(.watchdog_ms = 9000));
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	char *list = raw_text(raw, "CLIENT", "LIST", NULL);
	char *name = strstr(list, "name=holdfast");
	assert_non_null(name);
	while (name > list && name[-1] != '\n')
		name--;
	long long old_id = atoll(name + strlen("id="));
	free(list);
	raw_close(raw);
	proxy_refuse(proxy, true);
	test_server_restart(server);
	do {
		assert_true(count < STRANGERS);
		strangers[count] = raw_connect(server);
	} while (raw_integer(strangers[count++], "CLIENT", "ID", NULL) < old_id);
	proxy_refuse(proxy, false);
	WAIT_UNTIL(stats_of(client).reconnects == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	for (int i = 0; i < count; i++) {
		char *pong = raw_text(strangers[i], "PING", NULL);
		assert_string_equal(pong, "PONG");
		free(pong);
		raw_close(strangers[i]);
	}
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	proxy_stop(proxy);
	test_server_stop(server);
}

/* The server knows the scripts before the tests begin, so that a lost reply is never a NOSCRIPT. */
static int start_warm(void **state)
{
	int rc = live_start(state);
	int64_t ttl_ms;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_extend(lock, NULL, 60000));
	ASSERT_OK(hf_lock_ttl(lock, &ttl_ms));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(lost_reply_to_an_acquire_leaves_one_hold),
		LIVE_STORY(lost_reply_to_a_nested_acquire_counts_once),
		LIVE_STORY(lost_reply_to_a_release_is_settled),
		LIVE_STORY(lost_reply_to_a_nested_release_gives_up_one_level),
		LIVE_STORY(lost_reply_to_a_renewal_costs_nothing),
		LIVE_STORY(unanswered_acquire_is_unknown_and_cleaned_up),
		LIVE_STORY(unanswered_release_is_unknown_and_continues_in_the_background),
		LIVE_STORY(black_hole_costs_the_lock_before_it_can_be_given_away),
		LIVE_STORY(network_that_filters_renewals_costs_the_lock_in_time),
		LIVE_STORY(network_that_is_back_before_the_lease_ends_costs_nothing),
		LIVE_STORY(unreachable_server_is_reported_when_the_time_is_over),
		LIVE_STORY(release_of_a_lost_hold_does_not_wait_for_the_server),
		LIVE_STORY(message_lost_in_the_gap_does_not_hang_the_waiter),
		LIVE_STORY(reconnected_waiter_is_subscribed_again),
		LIVE_STORY(answers_may_come_in_small_pieces),
		LIVE_STORY(slow_network_is_only_slow),
		LIVE_STORY(reconnect_kills_no_stranger_after_a_restart),
	};

	return cmocka_run_group_tests(tests, start_warm, live_stop);
}
