/* Red locks whose servers die, freeze and forget, while they are taken, held and given up. */
#define _GNU_SOURCE
#include "live/red.h"

/* ---- servers that are away when the lock is taken ---- */

static void frozen_minority_is_not_waited_for(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 6000);
	test_server_freeze(server[1]);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	/* A thirtieth of the lease, and some time for a loaded machine. */
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1500);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_BETWEEN(hf_lock_remaining(side.red, NULL), 1, 6000 - 62);
	/* As soon as it can it joins. */
	test_server_thaw(server[1]);
	WAIT_UNTIL(servers_held(&side) == 3, 10000);
	WAIT_UNTIL(waiting_of(&side) == 0, SOON_MS);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

static void dead_minority_is_not_waited_for(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 5, 6000);
	test_server_kill(server[0]);
	test_server_freeze(server[3]);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1500);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	assert_true(is_ours(&side, 1));
	assert_true(is_ours(&side, 2));
	assert_true(is_ours(&side, 4));
	restart_server(0);
	test_server_thaw(server[3]);
	WAIT_UNTIL(servers_held(&side) == 5, 10000);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

static void released_while_a_server_is_away_it_is_not_taken_there(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	test_server_freeze(server[1]);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_OK(hf_lock_release_with(side.red, HF_RELEASE(.wait_ms = 300)));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	long long thawed_at = test_now_ms();
	test_server_thaw(server[1]);
	expect_nothing_left(&side);
	/* What the frozen server was asked for ends with its lease at the latest. */
	ASSERT_BETWEEN(test_now_ms() - thawed_at, 0, 3000 + 1500);
	close_side(&side);
}

static void away_majority_is_no_quorum(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	test_server_freeze(server[0]);
	test_server_kill(server[2]);
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ENOQUORUM);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1000);
	ASSERT_CONTAINS(hf_error_detail(), NAME);
	assert_int_equal(raw_integer(raw[1], "DBSIZE", NULL), 0);
	started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 600)), HF_ENOQUORUM);
	ASSERT_BETWEEN(test_now_ms() - started_at, 550, 1600);
	assert_int_equal(raw_integer(raw[1], "DBSIZE", NULL), 0);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
	restart_server(2);
	test_server_thaw(server[0]);
	/* A lease at most after that, nothing of the attempts is left. */
	WAIT_UNTIL(keys_left() == 0 && holds_of(&side) == 0, 6000);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

static void on_done(void *arg, int result, int64_t number, const char *text)
{
	(void)number;
	(void)text;
	atomic_store((atomic_int *)arg, result);
}

/* One attempt with a lease that is shorter than a frozen server is waited for. */
static int try_short_lease(struct side *side, hf_owner *owner)
{
	atomic_int result = 1;
	ASSERT_OK(hf_lock_acquire_async(
		side->red, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT, .lease_ms = 15),
		on_done, &result));
	WAIT_UNTIL(atomic_load(&result) != 1, SOON_MS);
	if (atomic_load(&result) == 0)
		(void)hf_lock_release_with(side->red, HF_RELEASE(.owner = owner, .wait_ms = 500));
	return atomic_load(&result);
}

static void lease_that_ends_before_all_were_asked_is_refused(void **state)
{
	struct side side;
	hf_owner *owner = new_owner();
	int result = 0;

	(void)state;
	open_side(&side, 3, 6000);
	/* So that the scripts are known. */
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(side.red));
	test_server_freeze(server[2]);
	/* A thread that does not run for a while may ask the others later, and be right. */
	for (int i = 0; i < 5 && result == 0; i++)
		result = try_short_lease(&side, owner);
	assert_int_not_equal(result, 0);
	assert_int_equal(hf_lock_state(side.red, owner), HF_FREE);
	test_server_thaw(server[2]);
	expect_nothing_left(&side);
	hf_owner_free(owner);
	close_side(&side);
}

static void waiter_goes_on_when_the_majority_is_back(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 6000);
	test_server_kill(server[0]);
	test_server_kill(server[1]);
	struct waiter *waiter = waiter_start(side.red, HF_ACQUIRE(.wait_ms = 20000));
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= 3, SOON_MS);
	restart_server(1);
	waiter_expect(waiter, 0);
	assert_true(is_ours(&side, 1));
	assert_true(is_ours(&side, 2));
	restart_server(0);
	WAIT_UNTIL(servers_held(&side) == 3, 10000);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	expect_nothing_left(&side);
	close_side(&side);
}

static void cancel_does_not_wait_for_frozen_servers(void **state)
{
	struct side side;
	hf_cancel *cancel = new_cancel();

	(void)state;
	open_side(&side, 3, 6000);
	test_server_freeze(server[0]);
	test_server_freeze(server[1]);
	struct waiter *waiter = waiter_start(side.red, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= 2, SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 1500);
	test_server_thaw(server[0]);
	test_server_thaw(server[1]);
	WAIT_UNTIL(keys_left() == 0 && holds_of(&side) == 0, 8000);
	waiter_free(waiter);
	hf_cancel_free(cancel);
	close_side(&side);
}

static void server_that_was_never_there_costs_nothing(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 30000);
	hf_lock_close(side.red);
	hf_lock_close(side.member[0]);
	ASSERT_OK(hf_client_close(side.client[0]));
	test_server_kill(server[0]);
	side.client[0] = open_url(test_server_url(server[0]), HF_CLIENT(.lazy = 1));
	side.member[0] = open_lock(side.client[0], NAME);
	ASSERT_OK(hf_lock_open_red(side.member, 3, &side.red));
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	assert_true(is_ours(&side, 1));
	assert_true(is_ours(&side, 2));
	ASSERT_OK(hf_lock_release_with(side.red, HF_RELEASE(.wait_ms = 500)));
	restart_server(0);
	expect_nothing_left(&side);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

/* ---- servers that go while the lock is held ---- */

static void release_reaches_a_frozen_server_later(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
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
	open_side(&side, 3, 1500);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	assert_int_equal(servers_held(&side), 3);
	for (int i = 0; i < 3; i++) {
		restart_server(i);
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
	open_side(&side, 3, 1500);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	give_away(0);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 1, SOON_MS);
	WAIT_UNTIL(subscribers(raw[0], CHANNEL) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	assert_int_equal(servers_held(&side), 2);
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	assert_int_equal(raw_integer(raw[0], "PUBLISH", CHANNEL, "0", NULL), 1);
	WAIT_UNTIL(servers_held(&side) == 3, SOON_MS);
	/* The release ends an attempt that is still under way. */
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

static void lost_majority_is_told(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	give_away(0);
	give_away(2);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, SOON_MS);
	assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) >= 2, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	assert_int_equal(raw_integer(raw[1], "DBSIZE", NULL), 0);
	assert_int_equal(servers_held(&side), 0);
	/* What others hold is theirs, and is not taken when they are done. */
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
	open_side(&side, 3, 1500);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
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
	while (stats_of(side.client[1]).renewals < renewals + 3) {
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
	open_side(&side, 3, 1500);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	assert_int_equal(servers_held(&side), 3);
	/* Anybody could have had it, and given it back, before the next renewal. */
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	assert_int_equal(raw_integer(raw[1], "DEL", NAME, NULL), 1);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, 3000);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

static void frozen_minority_costs_nothing(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1200);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	test_server_freeze(server[0]);
	/* Until that member's own lease has ended, and longer. */
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 1, SOON_MS);
	uint64_t renewals = stats_of(side.client[1]).renewals;
	WAIT_UNTIL(stats_of(side.client[1]).renewals >= renewals + 3, SOON_MS);
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
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
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
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000, .lease_ms = 2500)));
	/* Told at once, as it is our own client; the other two go on to the end of their lease. */
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
	int before = threads();

	(void)state;
	open_side(&side, 3, 6000);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	give_away(0);
	test_server_freeze(server[1]);
	long long started_at = test_now_ms();
	close_side(&side);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 4000);
	WAIT_UNTIL(threads() == before, SOON_MS);
	test_server_thaw(server[1]);
	WAIT_UNTIL(!key_exists(raw[1], NAME) && !key_exists(raw[2], NAME), 7000);
}

static void kill_connections(int i)
{
	raw_reply_free(raw_command(raw[i], "CLIENT", "KILL", "TYPE", "normal", NULL));
	raw_reply_free(raw_command(raw[i], "CLIENT", "KILL", "TYPE", "pubsub", NULL));
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
		kill_connections(i);
	WAIT_UNTIL(stats_of(side.client[0]).reconnects >= 1 &&
	                   stats_of(side.client[2]).reconnects >= 1,
	           SOON_MS);
	WAIT_UNTIL(stats_of(other.client[1]).reconnects >= 1, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	assert_false(atomic_load(&waiter->over));
	ASSERT_OK(hf_lock_release(side.red));
	waiter_expect(waiter, 0);
	assert_int_equal(hf_lock_state(other.red, waiter->options.owner), HF_HELD);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	expect_nothing_left(&side);
	expect_nothing_left(&other);
	close_side(&side);
	close_side(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RED_STORY(frozen_minority_is_not_waited_for),
		RED_STORY(dead_minority_is_not_waited_for),
		RED_STORY(released_while_a_server_is_away_it_is_not_taken_there),
		RED_STORY(away_majority_is_no_quorum),
		RED_STORY(lease_that_ends_before_all_were_asked_is_refused),
		RED_STORY(waiter_goes_on_when_the_majority_is_back),
		RED_STORY(cancel_does_not_wait_for_frozen_servers),
		RED_STORY(server_that_was_never_there_costs_nothing),
		RED_STORY(release_reaches_a_frozen_server_later),
		RED_STORY(member_that_came_back_empty_is_taken_again),
		RED_STORY(member_that_was_forced_away_is_taken_again_when_it_is_free),
		RED_STORY(lost_majority_is_told),
		RED_STORY(lost_majority_stays_lost_until_the_release),
		RED_STORY(majority_that_was_gone_at_once_is_lost),
		RED_STORY(frozen_minority_costs_nothing),
		RED_STORY(frozen_majority_costs_the_lock_before_it_can_be_given_away),
		RED_STORY(fixed_lease_is_never_renewed_by_taking_again),
		RED_STORY(close_does_not_wait_for_frozen_servers),
		RED_STORY(killed_connections_are_made_again),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
