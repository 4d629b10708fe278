/* Permits as holds: leases, the watchdog, losses, and waiting for them. */
#include "live/permits.h"

#include "support/proxy.h"

/* ---- leases ---- */

static void permit_without_lease_is_renewed(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;

	(void)state;
	begin(&pair, 2, 1500);
	take(pair.mine, 2, 0, ids);
	long long first = end_of(ids[0]);
	WAIT_UNTIL(stats_of(pair.one).renewals >= 4, SOON_MS);
	assert_true(end_of(ids[0]) > first);
	assert_true(end_of(ids[1]) > first);
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_HELD);
	ASSERT_BETWEEN(hf_permits_remaining(pair.mine, ids[1]), 1, 1500);
	assert_int_equal(available(pair.theirs), 0);
	/* Both by one script. */
	assert_true(stats_of(pair.one).renewal_scripts < stats_of(pair.one).renewals);
	ASSERT_OK(give(pair.mine, ids[0]));
	uint64_t renewals = stats_of(pair.one).renewals;
	WAIT_UNTIL(stats_of(pair.one).renewals >= renewals + 2, SOON_MS);
	assert_int_equal(end_of(ids[0]), NO_NUMBER);
	assert_int_equal(available(pair.theirs), 1);
	ASSERT_OK(give(pair.mine, ids[1]));
	assert_int_equal(stats_of(pair.one).losses, 0);
	assert_int_equal(seen_count(&pair.seen, HF_LOST), 0);
	end(&pair);
}

static void very_many_permits_are_renewed_in_batches(void **state)
{
	hf_permit_id *ids = check_alloc(250 * sizeof(*ids));
	struct pair pair;

	(void)state;
	begin(&pair, 250, 3000);
	take(pair.mine, 250, 0, ids);
	WAIT_UNTIL(stats_of(pair.one).renewals >= 250, SOON_MS);
	assert_int_equal(acquired(pair.theirs), 250);
	assert_int_equal(stats_of(pair.one).losses, 0);
	assert_true(stats_of(pair.one).renewal_scripts * 50 <= stats_of(pair.one).renewals);
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 250));
	assert_int_equal(available(pair.theirs), 250);
	free(ids);
	end(&pair);
}

static void fixed_lease_is_at_risk_and_then_lost(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 600);
	long long before = test_now_ms();
	take(pair.mine, 1, 800, &id);
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(seen_count(&pair.seen, HF_AT_RISK), 1);
	assert_true(seen_at(&pair.seen, HF_AT_RISK) <= seen_at(&pair.seen, HF_LOST));
	/* Java may use its own clock, so the permit counts as lost a little before its end. */
	ASSERT_BETWEEN(seen_at(&pair.seen, HF_LOST) - before, 500, 1500);
	assert_string_equal(pair.seen.name, "orders");
	assert_string_equal(pair.seen.owner, id);
	ASSERT_CONTAINS(pair.seen.detail, "lost");
	assert_int_equal(hf_permits_state(pair.mine, id), HF_LOST);
	assert_int_equal(hf_permits_remaining(pair.mine, id), 0);
	assert_int_equal(stats_of(pair.one).renewals, 0);
	WAIT_UNTIL(available(pair.theirs) == 1, SOON_MS);
	ASSERT_RC(hf_permits_extend(pair.mine, id, 1000), HF_ELOST);
	ASSERT_RC(give(pair.mine, id), HF_ELOST);
	ASSERT_RC(give(pair.mine, id), HF_ENOTHELD);
	end(&pair);
}

static void permit_is_never_believed_past_its_end(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 0);
	take(pair.mine, 1, 500, &id);
	for (;;) {
		/* They are read in this order, so that a pause in between does no harm. */
		bool held = hf_permits_state(pair.mine, id) != HF_LOST;
		int64_t left = hf_permits_remaining(pair.mine, id);
		if (!held)
			break;
		assert_true(left <= 500);
		if (ends() == 1 && server_now() > end_of(id))
			assert_int_equal(hf_permits_state(pair.mine, id), HF_LOST);
		test_pause();
	}
	end(&pair);
}

/* A permit of a client whose requests can be held back. */
struct stray {
	struct proxy *proxy;
	hf_client *client;
	hf_permits *permits;
	hf_permit_id id;
};

static int extend_stray(void *arg)
{
	const struct stray *stray = arg;
	return hf_permits_extend(stray->permits, stray->id, 20000);
}

static void begin_stray(struct stray *stray)
{
	stray->proxy = proxy_start(test_server_url(live_server));
	stray->client = open_url(proxy_url(stray->proxy), NULL);
	stray->permits = open_permits(stray->client, "orders");
	ASSERT_OK(hf_permits_try_set(stray->permits, 1, NULL));
	take(stray->permits, 1, 10000, &stray->id);
	ASSERT_OK(extend_stray(stray)); /* so that the script is known */
}

static void end_stray(struct stray *stray)
{
	hf_permits_close(stray->permits);
	ASSERT_OK(hf_client_close(stray->client));
	proxy_stop(stray->proxy);
}

/* Its repeat was answered, and a later request has set another expiry since. */
static void an_extend_that_arrives_late_does_not_shorten_the_next(void **state)
{
	struct stray stray;
	(void)state;
	begin_stray(&stray);
	long long bytes = proxy_request_bytes(stray.proxy);
	proxy_hold_requests(stray.proxy, true);
	struct waiter *extend = WAITER(.run = extend_stray, .arg = &stray);
	WAIT_UNTIL(proxy_request_bytes(stray.proxy) > bytes, SOON_MS);
	proxy_strand(stray.proxy, true);
	proxy_hold_requests(stray.proxy, false);
	waiter_join(extend, 0);
	ASSERT_OK(hf_permits_extend(stray.permits, stray.id, 60000));
	long long calls = command_calls(live_raw, "evalsha");
	proxy_deliver_stranded(stray.proxy);
	assert_true(command_calls(live_raw, "evalsha") > calls);
	assert_true(end_of(stray.id) > server_now() + 30000);
	end_stray(&stray);
}

static void extend_makes_it_longer_and_shorter(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 0);
	take(pair.mine, 1, 3000, &id);
	ASSERT_OK(hf_permits_extend(pair.mine, id, 40000));
	ASSERT_BETWEEN(end_of(id) - server_now(), 30000, 40000);
	ASSERT_BETWEEN(hf_permits_remaining(pair.mine, id), 30000, 40000);
	ASSERT_OK(hf_permits_extend(pair.mine, id, 500));
	assert_true(hf_permits_remaining(pair.mine, id) <= 500);
	assert_true(end_of(id) - server_now() <= 500);
	WAIT_UNTIL(available(pair.theirs) == 1, SOON_MS);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_LOST);
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 1, SOON_MS);
	ASSERT_RC(hf_permits_extend(pair.mine, id, 1000), HF_ELOST);
	end(&pair);
}

static void extended_permit_is_no_longer_renewed_by_the_watchdog(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 1500);
	take(pair.mine, 1, 0, &id);
	WAIT_UNTIL(stats_of(pair.one).renewals >= 1, SOON_MS);
	ASSERT_OK(hf_permits_extend(pair.mine, id, 1800));
	uint64_t renewals = stats_of(pair.one).renewals;
	long long end_at = end_of(id);
	WAIT_UNTIL(hf_permits_state(pair.mine, id) == HF_LOST, SOON_MS);
	assert_int_equal(stats_of(pair.one).renewals, renewals);
	assert_true(end_of(id) == end_at || end_of(id) == NO_NUMBER);
	WAIT_UNTIL(available(pair.theirs) == 1, SOON_MS);
	end(&pair);
}

static void another_client_may_extend_by_the_id(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 0);
	take(pair.mine, 1, 3000, &id);
	ASSERT_OK(hf_permits_extend(pair.theirs, id, 60000));
	ASSERT_BETWEEN(end_of(id) - server_now(), 50000, 60000);
	/* The holder does not know, and relies on what it learned before. */
	ASSERT_BETWEEN(hf_permits_remaining(pair.mine, id), 0, 3000);
	assert_int_equal(hf_permits_state(pair.theirs, id), HF_FREE);
	ASSERT_OK(give(pair.mine, id));
	assert_int_equal(available(pair.theirs), 1);
	end(&pair);
}

/* ---- losses ---- */

static void deleted_permits_are_reported_by_the_next_renewal(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;

	(void)state;
	begin(&pair, 2, 1500);
	take(pair.mine, 2, 0, ids);
	long long deleted_at = test_now_ms();
	assert_int_equal(raw_integer(live_raw, "DEL", ENDS, NULL), 1);
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 2, SOON_MS);
	ASSERT_BETWEEN(seen_at(&pair.seen, HF_LOST) - deleted_at, 0, 2000);
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_LOST);
	assert_int_equal(hf_permits_state(pair.mine, ids[1]), HF_LOST);
	assert_int_equal(stats_of(pair.one).losses, 2);
	ASSERT_RC(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 2), HF_ELOST);
	/* A permit that did not exist does not change the number. */
	assert_int_equal(number_at(live_raw, "orders"), 0);
	end(&pair);
}

static void permits_of_a_flushed_server_are_lost(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 1500);
	take(pair.mine, 1, 0, &id);
	raw_ok(live_raw, "FLUSHALL", NULL);
	ASSERT_RC(give(pair.mine, id), HF_ELOST);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	/* The release found out, and there is an event as for every other loss. */
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(stats_of(pair.one).losses, 1);
	ASSERT_OK(hf_permits_try_set(pair.mine, 1, NULL));
	take(pair.mine, 1, 0, &id);
	ASSERT_OK(give(pair.mine, id));
	end(&pair);
}

static void holder_renews_at_once_on_its_new_connection(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 6000);
	take(pair.mine, 1, 0, &id);
	raw_reply_free(raw_command(live_raw, "CLIENT", "KILL", "TYPE", "normal", NULL));
	/* The next renewal would be due after two seconds. */
	WAIT_UNTIL(stats_of(pair.one).reconnects == 1 && stats_of(pair.one).renewals == 1, 1500);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_HELD);
	ASSERT_OK(give(pair.mine, id));
	end(&pair);
}

/* ---- waiting ---- */

static void waiter_of_another_client_is_woken_by_the_message(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 0);
	take(pair.mine, 1, 0, &id);
	struct waiter *call = sleeper(&pair, 1);
	ASSERT_WAKES(give(pair.mine, id), call, WOKEN_MS);
	assert_int_equal(strlen(call->ids[0]), 32);
	assert_int_equal(hf_permits_state(pair.theirs, call->ids[0]), HF_HELD);
	ASSERT_OK(give(pair.theirs, call->ids[0]));
	waiter_free(call);
	end(&pair);
}

static void waiter_for_several_continues_when_all_are_free(void **state)
{
	hf_permit_id ids[3];
	struct pair pair;

	(void)state;
	begin(&pair, 3, 0);
	take(pair.mine, 3, 0, ids);
	struct waiter *call = sleeper(&pair, 2);
	uint64_t attempts = stats_of(pair.two).attempts;
	ASSERT_OK(give(pair.mine, ids[0]));
	WAIT_UNTIL(stats_of(pair.two).attempts > attempts, SOON_MS);
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	assert_false(waiter_is_over(call));
	assert_int_equal(number_at(live_raw, "orders"), 1);
	ASSERT_WAKES(give(pair.mine, ids[1]), call, WOKEN_MS);
	assert_string_not_equal(call->ids[0], call->ids[1]);
	ASSERT_OK(hf_permits_release(pair.theirs, (const hf_permit_id *)call->ids, 2));
	ASSERT_OK(give(pair.mine, ids[2]));
	assert_int_equal(available(pair.mine), 3);
	waiter_free(call);
	end(&pair);
}

/*
 * Permits that are given back together are announced as their number, which is less than what is
 * available.
 */
static void waiter_for_more_than_were_given_back_together_is_woken(void **state)
{
	hf_permit_id ids[3];
	struct pair pair;

	(void)state;
	begin(&pair, 4, 0);
	take(pair.mine, 3, 0, ids);
	struct waiter *call = sleeper(&pair, 3);
	ASSERT_WAKES(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 2), call, WOKEN_MS);
	ASSERT_OK(give(pair.mine, ids[2]));
	waiter_free(call);
	end(&pair);
}

static void small_request_after_a_large_one_is_woken(void **state)
{
	hf_permit_id ids[4];
	struct pair pair;

	(void)state;
	begin(&pair, 4, 0);
	take(pair.mine, 4, 0, ids);
	struct waiter *large = sleeper(&pair, 4);
	struct waiter *small = sleeper(&pair, 1);
	WAIT_UNTIL(stats_of(pair.two).waiting == 2, SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(give(pair.mine, ids[0]));
	waiter_expect(small, 0);
	long long took_ms = small->ended_at - released_at;
	assert_false(waiter_is_over(large));
	ASSERT_OK(give(pair.theirs, small->ids[0]));
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)(ids + 1), 3));
	waiter_expect(large, 0);
	ASSERT_BETWEEN(took_ms, 0, WOKEN_MS);
	waiter_free(large);
	waiter_free(small);
	end(&pair);
}

static void waiter_wakes_when_the_lease_of_a_permit_expires(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 0);
	long long before = test_now_ms();
	take(pair.mine, 1, 700, &id);
	struct waiter *call = sleeper(&pair, 1);
	waiter_expect(call, 0);
	/* Not before the end, and far below the slow poll after it. */
	ASSERT_BETWEEN(call->ended_at - before, 700, 700 + WOKEN_MS);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_LOST);
	ASSERT_RC(give(pair.mine, id), HF_ELOST);
	assert_int_equal(acquired(pair.theirs), 1);
	ASSERT_OK(give(pair.theirs, call->ids[0]));
	assert_int_equal(available(pair.theirs), 1);
	waiter_free(call);
	end(&pair);
}

static void permits_added_or_set_wake_the_waiter(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 0, 0);
	for (int i = 0; i < 2; i++) {
		struct waiter *call = sleeper(&pair, 1);
		ASSERT_WAKES(i ? hf_permits_set(pair.mine, 2) : hf_permits_add(pair.mine, 1), call,
		             WOKEN_MS);
		waiter_free(call);
	}
	assert_int_equal(acquired(pair.mine), 2);
	end(&pair);
}

static void close_gives_permits_back_and_answers_the_waiters(void **state)
{
	hf_permit_id ids[3], held;
	struct pair pair;

	(void)state;
	begin(&pair, 4, 0);
	take(pair.mine, 1, 0, &held);
	take(pair.theirs, 2, 0, ids);
	take(pair.theirs, 1, 20000, ids + 2);
	struct waiter *call = sleeper(&pair, 4);
	long long closed_at = test_now_ms();
	ASSERT_OK(sync_close(pair.two));
	ASSERT_BETWEEN(test_now_ms() - closed_at, 0, 900);
	waiter_expect(call, HF_ECLOSED);
	ASSERT_RC(hf_permits_acquire(pair.theirs, 1, NULL, ids), HF_ECLOSED);
	ASSERT_RC(give(pair.theirs, ids[0]), HF_ECLOSED);
	assert_int_equal(hf_permits_state(pair.theirs, ids[0]), HF_FREE);
	assert_int_equal(available(pair.mine), 3);
	assert_int_equal(ends(), 1);
	ASSERT_OK(give(pair.mine, held));
	waiter_free(call);
	pair.two = NULL;
	end(&pair);
}

/* ---- servers that are full ---- */

static void full_server_lets_permits_go(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;

	(void)state;
	begin(&pair, 2, 0);
	take(pair.mine, 2, 20000, ids);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	int single = give(pair.mine, ids[0]);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	ASSERT_RC(single, 0);
	assert_int_equal(available(pair.mine), 1);
	ASSERT_OK(give(pair.mine, ids[1]));
	end(&pair);
}

static void full_server_lets_permits_go_while_others_have_expired(void **state)
{
	hf_permit_id alive, dead;
	struct pair pair;

	(void)state;
	begin(&pair, 2, 0);
	take(pair.mine, 1, 20000, &alive);
	take(pair.mine, 1, 200, &dead);
	WAIT_UNTIL(server_now() > end_of(dead), SOON_MS);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	int result = give(pair.mine, alive);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	ASSERT_RC(result, 0);
	assert_int_equal(available(pair.mine), 2);
	end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(permit_without_lease_is_renewed),
		SYNC_STORY(very_many_permits_are_renewed_in_batches),
		SYNC_STORY(fixed_lease_is_at_risk_and_then_lost),
		SYNC_STORY(permit_is_never_believed_past_its_end),
		SYNC_STORY(extend_makes_it_longer_and_shorter),
		SYNC_STORY(an_extend_that_arrives_late_does_not_shorten_the_next),
		SYNC_STORY(extended_permit_is_no_longer_renewed_by_the_watchdog),
		SYNC_STORY(another_client_may_extend_by_the_id),
		SYNC_STORY(deleted_permits_are_reported_by_the_next_renewal),
		SYNC_STORY(permits_of_a_flushed_server_are_lost),
		SYNC_STORY(holder_renews_at_once_on_its_new_connection),
		SYNC_STORY(waiter_of_another_client_is_woken_by_the_message),
		SYNC_STORY(waiter_for_several_continues_when_all_are_free),
		SYNC_STORY(waiter_for_more_than_were_given_back_together_is_woken),
		SYNC_STORY(small_request_after_a_large_one_is_woken),
		SYNC_STORY(waiter_wakes_when_the_lease_of_a_permit_expires),
		SYNC_STORY(permits_added_or_set_wake_the_waiter),
		SYNC_STORY(close_gives_permits_back_and_answers_the_waiters),
		SYNC_STORY(full_server_lets_permits_go),
		SYNC_STORY(full_server_lets_permits_go_while_others_have_expired),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
