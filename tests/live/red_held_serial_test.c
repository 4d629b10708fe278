/* Red locks whose servers die, freeze and forget while they are held. */
#include "live/red.h"

static void release_reaches_a_frozen_server_later(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	take_everywhere(&side);
	test_server_freeze(server[2]);
	ASSERT_OK(hf_lock_release_with(side.red, HF_RELEASE(.wait_ms = 300)));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	assert_int_equal(raw_integer(raw[0], "DBSIZE", NULL), 0);
	assert_int_equal(raw_integer(raw[1], "DBSIZE", NULL), 0);
	long long thawed_at = test_now_ms();
	test_server_thaw(server[2]);
	WAIT_UNTIL(keys_left() == 0, SOON_MS);
	ASSERT_BETWEEN(test_now_ms() - thawed_at, 0, 3000 + 500);
	expect_nothing_left(&side);
	close_side(&side);
}

static void member_that_came_back_empty_is_taken_again(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	take_everywhere(&side);
	for (int i = 0; i < 3; i++) {
		restart_server(server[i], &raw[i]);
		/* It is held all the time, by the other two. */
		long long ends_at = test_now_ms() + 10000;
		while (servers_held(&side) < 3) {
			assert_true(hf_lock_remaining(side.red, NULL) > 0);
			assert_int_not_equal(hf_lock_state(side.red, NULL), HF_LOST);
			assert_true(test_now_ms() < ends_at);
			test_pause();
		}
		WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == i + 1, SOON_MS);
		WAIT_UNTIL(stats_of(side.client[i]).held == 1, SOON_MS);
		/*
		 * It counts as soon as the others have confirmed that they hold: before it is
		 * renewed.
		 */
		uint64_t before = stats_of(side.client[i]).renewals;
		WAIT_UNTIL(stats_of(side.client[i]).renewals > before, SOON_MS);
	}
	uint64_t renewals = stats_of(side.client[0]).renewals;
	WAIT_UNTIL(stats_of(side.client[0]).renewals >= renewals + 2, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

static void member_that_was_forced_away_is_taken_again_when_it_is_free(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	take_everywhere(&side);
	give_away(0);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 1, SOON_MS);
	WAIT_UNTIL(subscribers(raw[0], CHANNEL) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	assert_int_equal(servers_held(&side), 2);
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	assert_int_equal(raw_integer(raw[0], "PUBLISH", CHANNEL, "0", NULL), 1);
	WAIT_UNTIL(servers_held(&side) == 3, SOON_MS);
	/* The release ends an attempt that is still in progress. */
	give_away(1);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 2, SOON_MS);
	WAIT_UNTIL(subscribers(raw[1], CHANNEL) == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(side.red));
	WAIT_UNTIL(waiting_of(&side) == 0, SOON_MS);
	assert_int_equal(raw_integer(raw[1], "DEL", NAME, NULL), 1);
	(void)raw_integer(raw[1], "PUBLISH", CHANNEL, "0", NULL);
	expect_nothing_left(&side);
	close_side(&side);
}

static void lost_majority_is_reported(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	take_everywhere(&side);
	give_away(0);
	give_away(2);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, SOON_MS);
	assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) >= 2, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	assert_int_equal(raw_integer(raw[1], "DBSIZE", NULL), 0);
	assert_int_equal(servers_held(&side), 0);
	/* What others hold is theirs, and is not taken when they release it. */
	assert_int_equal(keys_left(), 2);
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	assert_int_equal(raw_integer(raw[2], "DEL", NAME, NULL), 1);
	(void)raw_integer(raw[0], "PUBLISH", CHANNEL, "0", NULL);
	(void)raw_integer(raw[2], "PUBLISH", CHANNEL, "0", NULL);
	expect_nothing_left(&side);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

static void lost_majority_stays_lost_until_the_release(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	take_everywhere(&side);
	give_away(0);
	WAIT_UNTIL(subscribers(raw[0], CHANNEL) == 1, SOON_MS);
	give_away(2);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, SOON_MS);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 2, SOON_MS);
	/* Another had the majority. That it is done does not give the lock back. */
	for (int i = 0; i < 3; i += 2) {
		assert_int_equal(raw_integer(raw[i], "DEL", NAME, NULL), 1);
		(void)raw_integer(raw[i], "PUBLISH", CHANNEL, "0", NULL);
	}
	uint64_t renewals = stats_of(side.client[1]).renewals;
	while (stats_of(side.client[1]).renewals < renewals + 2) {
		assert_int_equal(hf_lock_state(side.red, NULL), HF_LOST);
		assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
		test_pause();
	}
	assert_false(is_ours(&side, 0));
	assert_false(is_ours(&side, 2));
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

static void majority_that_was_gone_at_once_is_lost(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	take_everywhere(&side);
	/* Anybody could have held it, and released it, before the next renewal. */
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	assert_int_equal(raw_integer(raw[1], "DEL", NAME, NULL), 1);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, 3000);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

static void majority_that_was_gone_is_lost_also_if_it_is_noticed_late(void **state)
{
	struct side side;

	(void)state;
	memset(&side, 0, sizeof side);
	side.n = 3;
	for (int i = 0; i < 3; i++) {
		side.client[i] = open_url(test_server_url(server[i]),
		                          HF_CLIENT(.watchdog_ms = i == 0 ? 900 : 6000));
		side.member[i] = open_lock(side.client[i], NAME);
	}
	ASSERT_OK(hf_lock_open_red(side.member, 3, &side.red));
	take_everywhere(&side);
	/* The first is noticed long before the second, which is as free as the first by then. */
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	assert_int_equal(raw_integer(raw[1], "DEL", NAME, NULL), 1);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

static void frozen_minority_costs_nothing(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1200);
	take_everywhere(&side);
	test_server_freeze(server[0]);
	/* Until that member's own lease has ended, and longer. */
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 1, SOON_MS);
	uint64_t renewals = stats_of(side.client[1]).renewals;
	WAIT_UNTIL(stats_of(side.client[1]).renewals >= renewals + 2, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	test_server_thaw(server[0]);
	WAIT_UNTIL(servers_held(&side) == 3, 10000);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

static void frozen_majority_costs_the_lock_before_it_can_be_given_away(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1200);
	take_everywhere(&side);
	WAIT_UNTIL(stats_of(side.client[0]).renewals >= 1, SOON_MS);
	test_server_freeze(server[0]);
	test_server_freeze(server[1]);
	long long frozen_at = test_now_ms();
	for (;;) {
		long long now = test_now_ms();
		if (hf_lock_state(side.red, NULL) == HF_LOST)
			break;
		if (now >= frozen_at + 1200)
			fail_msg("held %lld ms after the last renewal", now - frozen_at);
		test_pause();
	}
	test_server_thaw(server[0]);
	test_server_thaw(server[1]);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

static void fixed_lease_is_never_renewed_by_taking_again(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 600);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000, .lease_ms = 1500)));
	/*
	 * It is reported at once, as it is our own client; the other two last to the end of their
	 * lease.
	 */
	ASSERT_OK(hf_lock_force_release(side.member[0], NULL));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, SOON_MS);
	WAIT_UNTIL(keys_left() == 0, 1500);
	for (int i = 0; i < 3; i++)
		assert_int_equal(stats_of(side.client[i]).renewals, 0);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

static void close_does_not_wait_for_frozen_servers(void **state)
{
	struct side side;
	int before = process_threads();

	(void)state;
	open_side(&side, 3, 6000);
	take_everywhere(&side);
	give_away(0);
	test_server_freeze(server[1]);
	long long started_at = test_now_ms();
	close_side(&side);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 4000);
	WAIT_UNTIL(process_threads() == before, SOON_MS);
	test_server_thaw(server[1]);
	WAIT_UNTIL(!key_exists(raw[1], NAME) && !key_exists(raw[2], NAME), 7000);
}

static void killed_connections_are_made_again(void **state)
{
	struct side side;
	struct side other;

	(void)state;
	open_side(&side, 3, 6000);
	open_side(&other, 3, 6000);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	struct waiter *waiter = waiter_start(other.red, HF_ACQUIRE(.wait_ms = 20000));
	for (int i = 0; i < 3; i++)
		kill_connections(raw[i]);
	WAIT_UNTIL(stats_of(side.client[0]).reconnects >= 1 &&
	                   stats_of(side.client[2]).reconnects >= 1,
	           SOON_MS);
	WAIT_UNTIL(stats_of(other.client[1]).reconnects >= 1, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(side.red));
	waiter_expect(waiter, 0);
	assert_int_equal(hf_lock_state(other.red, waiter->options.owner), HF_HELD);
	waiter_finish(waiter);
	expect_nothing_left(&side);
	expect_nothing_left(&other);
	close_side(&side);
	close_side(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RED_STORY(release_reaches_a_frozen_server_later),
		RED_STORY(member_that_came_back_empty_is_taken_again),
		RED_STORY(member_that_was_forced_away_is_taken_again_when_it_is_free),
		RED_STORY(lost_majority_is_reported),
		RED_STORY(lost_majority_stays_lost_until_the_release),
		RED_STORY(majority_that_was_gone_at_once_is_lost),
		RED_STORY(majority_that_was_gone_is_lost_also_if_it_is_noticed_late),
		RED_STORY(frozen_minority_costs_nothing),
		RED_STORY(frozen_majority_costs_the_lock_before_it_can_be_given_away),
		RED_STORY(fixed_lease_is_never_renewed_by_taking_again),
		RED_STORY(close_does_not_wait_for_frozen_servers),
		RED_STORY(killed_connections_are_made_again),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
