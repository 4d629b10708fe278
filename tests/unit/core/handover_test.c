/* A release that gives the lock straight to the next waiter of the same process. */
#include "fake.h"

/* Owner 1 holds the lock and these others wait for it. */
static void hold_and_wait(struct fake *fake, struct hf__op **waiter, uint64_t count)
{
	(void)fake_hold(fake, 1, 0);
	for (uint64_t i = 0; i < count; i++)
		waiter[i] = fake_acquire(fake, i + 2);
	check_nothing_sent(fake);
}

static void release_goes_to_the_next_waiter_in_one_command(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter[3];
	hold_and_wait(fake, waiter, 3);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t wire = hf__hold_find(fake->lock[0], i + 1)->cmd.wire;
		struct hf__op *release = fake_release(fake, i + 1);
		assert_int_equal(check_sent(fake, HF__MOVE, 1)->from, wire);
		assert_int_equal(fake_pending(fake), 1);
		fake_answer(fake, HF__GRANTED);
		check_result(release, 0);
		check_result(waiter[i], 0);
		check_nothing_sent(fake);
		assert_int_equal(fake_state(fake, i + 1), HF_FREE);
		assert_int_equal(fake_state(fake, i + 2), HF_HELD);
	}
	assert_int_equal(fake->core.stats.handovers, 3);
	fake_release_done(fake, 4, 0);
}

static void nested_level_is_not_handed_over(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter;
	hold_and_wait(fake, &waiter, 1);
	(void)fake_acquire(fake, 1);
	fake_answer(fake, HF__GRANTED);
	fake_release_done(fake, 1, 1);
	check_waits(waiter);
	(void)fake_release(fake, 1);
	(void)check_sent(fake, HF__MOVE, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
}

static void hold_that_is_gone_is_reported_lost_and_the_waiter_asks(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter;
	hold_and_wait(fake, &waiter, 1);
	struct hf__op *release = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__GONE);
	check_result(release, HF_ELOST);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
	CHECK_REPORTED(fake, HF_LOST);
}

/* It may have run: then the old hold does not exist and the new one does. */
static void unanswered_hand_over_is_settled_for_both(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter;
	hold_and_wait(fake, &waiter, 1);
	struct hf__op *release = fake_release(fake, 1);
	fake_link_down(fake);
	check_waits(release);
	check_waits(waiter);
	fake_link_up(fake);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__GONE);
	check_result(release, 0);
	assert_true(check_sent(fake, HF__ASK, 1)->again);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
	check_nothing_reported(fake);
}

static void refused_hand_over_goes_the_usual_way(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter;
	hold_and_wait(fake, &waiter, 1);
	struct hf__op *release = fake_release(fake, 1);
	fake_answer(fake, HF__NOT_NOW);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	check_result(release, 0);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
}

static void waiter_that_left_meanwhile_leaves_nothing(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *waiter = fake_acquire_within(fake, 2, 200);
	struct hf__op *release = fake_release(fake, 1);
	uint64_t wire = check_sent(fake, HF__MOVE, 1)->wire;
	fake_advance(fake, 200 + HF__LATE_MS);
	check_result(waiter, HF_EUNKNOWN);
	fake_answer(fake, HF__GRANTED);
	check_result(release, 0);
	assert_int_equal(check_sent(fake, HF__SETTLE, 0)->wire, wire);
	fake_answer(fake, HF__DONE);
	check_nothing_sent(fake);
}

static void release_that_left_meanwhile_does_not_take_the_lock_from_the_waiter(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter;
	hold_and_wait(fake, &waiter, 1);
	struct hf__op *release =
		fake_start(fake, .action = HF__OP_RELEASE, .owner = 1, .wait_ms = 20);
	uint64_t wire = check_sent(fake, HF__MOVE, 1)->from;
	fake_advance(fake, 20);
	check_result(release, HF_EUNKNOWN);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
	assert_int_equal(check_sent(fake, HF__SETTLE, 0)->wire, wire);
	fake_answer(fake, HF__GONE);
	assert_int_equal(fake_state(fake, 2), HF_HELD);
}

/* Waiters in other processes know how long it lasts. */
static void waiter_with_a_shorter_lease_asks_on_its_own(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *waiter = fake_acquire_for(fake, 2, FAKE_WATCHDOG / 2);
	(void)fake_release(fake, 1);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
}

/*
 * Hands the lock over until a release is a plain one; returns the last waiter, which is first now.
 */
static struct hf__op *hand_on_slowly(struct fake *fake, int64_t trip_ms, uint64_t *ret_moves)
{
	(void)fake_hold(fake, 1, 0);
	for (*ret_moves = 0;; ++*ret_moves) {
		struct hf__op *waiter = fake_acquire(fake, *ret_moves + 2);
		(void)fake_release(fake, *ret_moves + 1);
		struct hf__cmd *cmd = hf__list_item(fake->sent.next, struct hf__cmd, link);
		if (cmd->verb == HF__SETTLE)
			return waiter;
		fake_advance(fake, trip_ms);
		fake_answer(fake, HF__GRANTED);
		check_result(waiter, 0);
	}
}

static struct hf__op *hand_on(struct fake *fake, uint64_t *ret_moves)
{
	return hand_on_slowly(fake, 0, ret_moves);
}

static void after_many_in_a_row_other_listeners_ask_first(void **state)
{
	struct fake *fake = *state;
	uint64_t moves;
	struct hf__op *waiter = hand_on(fake, &moves);
	assert_int_equal(moves, HF__MOVES_MAX);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 1});
	fake_advance(fake, HF__REST_MS - 1);
	check_nothing_sent(fake);
	fake_advance(fake, 1);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
}

static void nobody_rests_where_nobody_listens(void **state)
{
	struct fake *fake = *state;
	uint64_t moves;
	struct hf__op *waiter = hand_on(fake, &moves);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 0});
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
	assert_true(waiter->hold == NULL);
}

/*
 * One series of hand-overs, whose release may have notified clients that the server does not count.
 */
static struct hf__op *release_uncounted(struct fake *fake)
{
	uint64_t moves;
	struct hf__op *waiter = hand_on(fake, &moves);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .uncounted = true});
	return waiter;
}

/* The waiter asks now, is granted, and releases. */
static void ask_and_release(struct fake *fake, struct hf__op *waiter)
{
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
	(void)fake_release(fake, HF__MOVES_MAX + 2);
	fake_answer(fake, HF__DONE);
}

static void listeners_that_are_not_counted_ask_first_now_and_then(void **state)
{
	struct fake *fake = *state;
	fake_advance(fake, HF__UNCOUNTED_MS);
	struct hf__op *waiter = release_uncounted(fake);
	check_nothing_sent(fake);
	fake_advance(fake, HF__REST_MS);
	ask_and_release(fake, waiter);
	ask_and_release(fake, release_uncounted(fake));
	fake_advance(fake, HF__UNCOUNTED_MS - HF__REST_MS - 1);
	ask_and_release(fake, release_uncounted(fake));
	fake_advance(fake, 1);
	waiter = release_uncounted(fake);
	check_nothing_sent(fake);
	fake_advance(fake, HF__REST_MS);
	ask_and_release(fake, waiter);
}

static void own_message_does_not_end_the_rest(void **state)
{
	struct fake *fake = *state;
	uint64_t moves;
	assert_int_equal(hf__lock_watch(&fake->core, fake->lock[0], HF__CHANNEL_LOCK, NULL), 0);
	(void)hand_on(fake, &moves);
	fake_wake(fake, fake->lock[0]);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 2});
	fake_wake(fake, fake->lock[0]);
	check_nothing_sent(fake);
	fake_advance(fake, HF__REST_MS);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
}

/* That one listens is ourselves. */
static void own_subscription_is_nobody_else(void **state)
{
	struct fake *fake = *state;
	uint64_t moves;
	assert_int_equal(hf__lock_watch(&fake->core, fake->lock[0], HF__CHANNEL_LOCK, NULL), 0);
	(void)hand_on(fake, &moves);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 1});
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
}

static void hold_kept_for_long_is_released_to_all(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter;
	hold_and_wait(fake, &waiter, 1);
	fake_advance(fake, HF__MOVES_MS);
	(void)fake_release(fake, 1);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 3});
	check_waits(waiter);
	fake_advance(fake, HF__REST_MS);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
}

static void where_a_round_trip_is_long_so_is_a_row(void **state)
{
	uint64_t moves;
	(void)hand_on_slowly(*state, 10, &moves);
	assert_int_equal(moves, HF__MOVES_TRIPS);
	fake_answer(*state, HF__DONE);
	fake_answer(*state, HF__GRANTED);
}

static void no_row_is_longer_than_a_second(void **state)
{
	uint64_t moves;
	(void)hand_on_slowly(*state, 100, &moves);
	assert_int_equal(moves, HF__MOVES_MOST_MS / 100);
	fake_answer(*state, HF__DONE);
	fake_answer(*state, HF__GRANTED);
}

static void rest_passes_to_the_next_when_its_waiter_leaves(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter[2];
	hold_and_wait(fake, waiter, 2);
	fake_advance(fake, HF__MOVES_MS);
	(void)fake_release(fake, 1);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 3});
	hf__core_cancel(&fake->core, waiter[0], fake->now);
	check_nothing_sent(fake);
	fake_advance(fake, HF__REST_MS);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter[1], 0);
}

static void closing_while_it_is_handed_over_removes_both(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter;
	hold_and_wait(fake, &waiter, 1);
	struct hf__op *release = fake_release(fake, 1);
	struct hf__op *closing = fake_start(fake, .action = HF__OP_CLOSE);
	check_result(release, HF_ECLOSED);
	check_result(waiter, HF_ECLOSED);
	fake_answer(fake, HF__GRANTED);
	while (fake_pending(fake) > 0)
		fake_answer(fake, HF__DONE);
	check_result(closing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(release_goes_to_the_next_waiter_in_one_command),
		fake_test(nested_level_is_not_handed_over),
		fake_test(hold_that_is_gone_is_reported_lost_and_the_waiter_asks),
		fake_test(unanswered_hand_over_is_settled_for_both),
		fake_test(refused_hand_over_goes_the_usual_way),
		fake_test(waiter_that_left_meanwhile_leaves_nothing),
		fake_test(release_that_left_meanwhile_does_not_take_the_lock_from_the_waiter),
		fake_test(waiter_with_a_shorter_lease_asks_on_its_own),
		fake_test(after_many_in_a_row_other_listeners_ask_first),
		fake_test(nobody_rests_where_nobody_listens),
		fake_test(listeners_that_are_not_counted_ask_first_now_and_then),
		fake_test(own_message_does_not_end_the_rest),
		fake_test(own_subscription_is_nobody_else),
		fake_test(hold_kept_for_long_is_released_to_all),
		fake_test(where_a_round_trip_is_long_so_is_a_row),
		fake_test(no_row_is_longer_than_a_second),
		fake_test(rest_passes_to_the_next_when_its_waiter_leaves),
		fake_test(closing_while_it_is_handed_over_removes_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
