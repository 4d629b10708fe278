/* Checks what a client assumes about a hold: how long it lasts, its levels, and how it ends. */
#include "fake.h"

static struct hf__op *extend(struct fake *fake, uint64_t owner, int64_t lease_ms)
{
	return fake_start(fake, .action = HF__OP_EXTEND, .owner = owner, .lease_ms = lease_ms);
}

/* Asks for one more level and is granted it. */
static void nest(struct fake *fake, uint64_t owner, int64_t lease_ms, int32_t count)
{
	struct hf__op *op = fake_acquire_for(fake, owner, lease_ms);
	(void)check_sent(fake, HF__ASK, count);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

/* ---- valid-until ---- */

static void validity_ends_a_hundredth_and_2_ms_before_the_lease(void **state)
{
	(void)state;
	assert_int_equal(hf__policy_valid_until(5000, 30000), 5000 + 30000 - 300 - 2);
	assert_int_equal(hf__policy_valid_until(5000, 10), 5000 + 10 - 2);
	assert_int_equal(hf__policy_valid_until(5000, 199), 5000 + 199 - 1 - 2);
	assert_int_equal(hf__policy_valid_until(0, HF__LONGEST_MS),
	                 HF__LONGEST_MS - HF__LONGEST_MS / 100 - 2);
}

static void validity_counts_from_before_the_ask_was_sent(void **state)
{
	struct fake *fake = *state;
	(void)fake_acquire_for(fake, 1, 5000);
	fake_advance(fake, 300);
	fake_answer(fake, HF__GRANTED);
	assert_int_equal(fake_remaining(fake, 1), 5000 - 50 - 2 - 300);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
}

static void grant_that_arrives_too_late_is_not_believed_and_asked_for_again(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_for(fake, 1, 1000);
	uint64_t wire = fake_sent(fake, HF__ASK)->wire;
	fake_advance(fake, 1000 - 10 - 2);
	fake_answer(fake, HF__GRANTED);
	check_waits(op);
	assert_int_equal(fake_remaining(fake, 1), 0);
	struct hf__cmd *cmd = check_sent(fake, HF__ASK, 1);
	assert_true(cmd->wire == wire);
	assert_int_equal(cmd->sent_at, fake->now);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake_remaining(fake, 1), 988);
}

static void grant_in_the_last_millisecond_is_believed(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_for(fake, 1, 1000);
	fake_advance(fake, 1000 - 10 - 3);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake_remaining(fake, 1), 1);
}

static void late_grant_of_a_cancelled_call_is_settled(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_for(fake, 1, 1000);
	hf__core_cancel(&fake->core, op, fake->now);
	fake_advance(fake, 990);
	fake_answer(fake, HF__GRANTED);
	check_result(op, HF_ECANCELLED);
	(void)check_sent(fake, HF__SETTLE, 0);
}

static void remaining_is_the_owners_own(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	assert_int_equal(fake_remaining(fake, 1), 988);
	assert_int_equal(fake_remaining(fake, 2), 0);
	assert_int_equal(fake_state(fake, 2), HF_FREE);
	fake_advance(fake, 400);
	assert_int_equal(fake_remaining(fake, 1), 588);
	fake_release_done(fake, 1, 0);
	assert_int_equal(fake_state(fake, 1), HF_FREE);
}

/* ---- the end of a lease ---- */

static void fixed_lease_is_lost_at_valid_until_with_one_piece_of_news(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake_advance(fake, 987);
	assert_int_equal(fake_state(fake, 1), HF_AT_RISK);
	CHECK_REPORTED(fake, HF_AT_RISK);
	fake_advance(fake, 1);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	assert_int_equal(fake_remaining(fake, 1), 0);
	CHECK_REPORTED(fake, HF_LOST);
	fake_advance(fake, 100000);
	check_nothing_reported(fake);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.stats.losses, 1);
	assert_int_equal(fake->core.stats.at_risk, 1);
}

/* The clock alone decides: no turn has run. */
static void remaining_ends_without_a_turn(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake->now += 988;
	assert_int_equal(fake_remaining(fake, 1), 0);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
}

static void hold_is_at_risk_with_less_than_a_third_left(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 3000);
	fake_advance(fake, 3000 - 32 - 1000 - 1);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	check_nothing_reported(fake);
	fake_advance(fake, 1);
	assert_int_equal(fake_state(fake, 1), HF_AT_RISK);
	CHECK_REPORTED(fake, HF_AT_RISK);
}

static void release_of_a_lost_hold_says_why_and_names_the_holder(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake_advance(fake, 988 + 250);
	struct hf__op *op = fake_release(fake, 1);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_reply(fake, (struct hf__answer){.outcome = HF__GONE, .text = "other:7", .length = 7});
	check_result(op, HF_ELOST);
	assert_string_equal(op->detail,
	                    "lost: lease of 1000 ms ended 250 ms ago; now held by other:7");
	CHECK_REPORTED(fake, HF_AT_RISK, HF_LOST);
	check_result(fake_release(fake, 1), HF_ENOTHELD);
}

/* What is left of the lost hold is still being removed when its owner has the lock again. */
static void lost_hold_that_is_cleaned_up_does_not_hide_the_next_one(void **state)
{
	struct fake *fake = *state;
	fake->core.config.history = 1000;
	(void)fake_hold(fake, 1, 1000);
	fake_advance(fake, 1000);
	(void)fake_sent(fake, HF__SETTLE);
	fake_link_down(fake);
	struct hf__op *op = fake_acquire_for(fake, 1, 1000);
	fake_link_up(fake);
	fake_answer(fake, HF__NOT_NOW);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	assert_int_equal(fake_remaining(fake, 1), 988);
}

/* Only a grant starts over: an owner that fails to acquire again still learns of the loss. */
static void failed_acquire_does_not_end_a_lost_hold(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake_advance(fake, 1000);
	struct hf__op *op = fake_acquire_within(fake, 1, HF_NOWAIT);
	(void)check_sent(fake, HF__ASK, 1);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	fake_answer_busy(fake, 5000);
	check_result(op, HF_EBUSY);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	op = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ELOST);
	check_result(fake_release(fake, 1), HF_ENOTHELD);
}

/* The levels stay lost until there is a grant. */
static void release_during_the_next_acquire_reports_the_loss(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake_advance(fake, 1000);
	struct hf__op *op = fake_acquire_for(fake, 1, 1000);
	(void)check_sent(fake, HF__ASK, 1);
	check_result(extend(fake, 1, 5000), HF_ELOST);
	check_result(fake_release(fake, 1), HF_ELOST);
	check_result(fake_release(fake, 1), HF_ENOTHELD);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	op = fake_release(fake, 1);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
}

static void grant_after_a_loss_starts_over(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake_advance(fake, 1000);
	struct hf__op *op = fake_acquire_for(fake, 1, 1000);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	op = fake_release(fake, 1);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
	check_result(fake_release(fake, 1), HF_ENOTHELD);
}

static void release_of_a_lost_hold_does_not_wait_for_a_connection(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake_link_down(fake);
	fake_advance(fake, 1000);
	struct hf__op *op = fake_release(fake, 1);
	check_result(op, HF_ELOST);
	check_detail(op, "lease of 1000 ms ended");
	check_result(fake_release(fake, 1), HF_ENOTHELD);
}

static void release_of_a_lost_hold_ends_with_its_connection(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	fake_advance(fake, 1000);
	for (int outcome = HF__UNSENT; outcome <= HF__UNKNOWN; outcome++) {
		struct hf__op *op = fake_release(fake, 1);
		(void)fake_sent(fake, HF__SETTLE);
		hf__core_on_link_down(&fake->core, &fake->core.link, HF_EUNREACHABLE,
		                      "reset by peer", fake->now);
		check_waits(op);
		fake_answer(fake, (enum hf__outcome)outcome);
		check_result(op, HF_ELOST);
		fake_link_up(fake);
		(void)fake_hold(fake, 1, 1000);
		fake_advance(fake, 1000);
	}
}

static void release_of_a_level_ends_when_the_hold_is_lost_without_a_connection(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	(void)fake_hold(fake, 1, 1000);
	fake_link_down(fake);
	struct hf__op *op = fake_release(fake, 1);
	fake_advance(fake, 900);
	check_waits(op);
	fake_advance(fake, 100);
	check_result(op, HF_ELOST);
	check_result(fake_release(fake, 1), HF_ELOST);
}

static void acquire_after_a_loss_is_a_new_acquisition(void **state)
{
	struct fake *fake = *state;
	uint64_t wire = fake_hold(fake, 1, 1000)->cmd.wire;
	fake_advance(fake, 1000);
	struct hf__op *op = fake_acquire_for(fake, 1, 1000);
	assert_true(check_sent(fake, HF__ASK, 1)->wire != wire);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	CHECK_REPORTED(fake, HF_AT_RISK, HF_LOST);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
}

/* The lease ends between two turns, and the call comes first. */
static void acquire_that_finds_the_lease_ended_is_not_nested(void **state)
{
	struct fake *fake = *state;
	uint64_t wire = fake_hold(fake, 1, 1000)->cmd.wire;
	fake->now += 988;
	(void)fake_acquire_for(fake, 1, 1000);
	assert_true(check_sent(fake, HF__ASK, 1)->wire != wire);
	CHECK_REPORTED(fake, HF_LOST);
}

static void news_that_nobody_fetched_end_with_the_latest(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 3000);
	for (int i = 0; i < 10; i++) {
		fake_advance(fake, 2000);
		struct hf__op *op = extend(fake, 1, 3000);
		fake_answer_renewal(fake, true);
		check_result(op, 0);
	}
	fake_advance(fake, 3000);
	fake_report(fake);
	assert_in_range(fake->reported_count, 2, 4);
	assert_int_equal(fake->reported[fake->reported_count - 1], HF_LOST);
	assert_int_equal(fake->reported[fake->reported_count - 2], HF_AT_RISK);
}

/* ---- levels ---- */

static void levels_are_counted_up_and_down_on_the_server(void **state)
{
	struct fake *fake = *state;
	uint64_t wire = fake_hold(fake, 1, 0)->cmd.wire;
	nest(fake, 1, 0, 2);
	nest(fake, 1, 0, 3);
	fake_release_done(fake, 1, 2);
	nest(fake, 1, 0, 3);
	fake_release_done(fake, 1, 2);
	fake_release_done(fake, 1, 1);
	assert_true(fake_remaining(fake, 1) > 0);
	struct hf__op *op = fake_release(fake, 1);
	assert_true(check_sent(fake, HF__SETTLE, 0)->wire == wire);
	assert_int_equal(fake_remaining(fake, 1), 0);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
	assert_int_equal(fake->core.holds, 0);
	check_nothing_reported(fake);
}

static void nested_level_never_shortens(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 60000);
	int64_t before = fake_remaining(fake, 1);
	nest(fake, 1, 1000, 2);
	assert_int_equal(fake_remaining(fake, 1), before);
	nest(fake, 1, 0, 3);
	assert_int_equal(fake_remaining(fake, 1), before);
	fake_release_done(fake, 1, 2);
	assert_int_equal(fake_remaining(fake, 1), before);
}

static void nested_level_with_a_longer_lease_lengthens(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	nest(fake, 1, 60000, 2);
	assert_int_equal(fake_remaining(fake, 1), 60000 - 600 - 2);
	fake_release_done(fake, 1, 1);
	assert_int_equal(fake_remaining(fake, 1), 60000 - 600 - 2);
}

static void nested_acquire_that_finds_the_hold_gone_is_lost(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = fake_acquire(fake, 1);
	(void)check_sent(fake, HF__ASK, 2);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ELOST);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	CHECK_REPORTED(fake, HF_LOST);
}

static void nested_grant_after_the_outer_hold_ended_is_lost(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	struct hf__op *op = fake_acquire_for(fake, 1, 60000);
	fake_advance(fake, 988);
	CHECK_REPORTED(fake, HF_AT_RISK, HF_LOST);
	fake_answer(fake, HF__GRANTED);
	check_result(op, HF_ELOST);
	assert_int_equal(fake_remaining(fake, 1), 0);
	check_nothing_reported(fake);
}

/* The server may count a level that was never granted; the next release sets it right. */
/* The level that belongs to nobody is taken back from the server's count. */
static void nested_ask_without_an_answer_is_unknown_and_the_hold_lasts(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = fake_acquire_within(fake, 1, 500);
	(void)check_sent(fake, HF__ASK, 2);
	fake_advance(fake, 500);
	check_result(op, HF_EUNKNOWN);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	fake_answer(fake, HF__GRANTED);
	(void)check_sent(fake, HF__SETTLE, 1);
	fake_answer(fake, HF__DONE);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	fake_release_done(fake, 1, 0);
}

/* ---- extend ---- */

static void extend_lengthens_and_never_shortens(void **state)
{
	struct fake *fake = *state;
	struct hf__hold *hold = fake_hold(fake, 1, 1000);
	struct hf__op *op = extend(fake, 1, 5000);
	struct hf__cmd *cmd = fake_sent(fake, HF__RENEW);
	assert_int_equal(cmd->items, 1);
	assert_true(hf__backend_item(cmd, 0).wire == hold->cmd.wire);
	assert_int_equal(hf__backend_item(cmd, 0).lease_ms, 5000);
	fake_answer_renewal(fake, true);
	check_result(op, 0);
	assert_int_equal(fake_remaining(fake, 1), 4948);
	op = extend(fake, 1, 100);
	fake_answer_renewal(fake, true);
	check_result(op, 0);
	assert_int_equal(fake_remaining(fake, 1), 4948);
	fake_release_done(fake, 1, 0);
}

static void extend_of_what_is_not_held_says_so(void **state)
{
	struct fake *fake = *state;
	check_result(extend(fake, 1, 1000), HF_ENOTHELD);
	(void)fake_hold(fake, 1, 1000);
	check_result(extend(fake, 2, 1000), HF_ENOTHELD);
	fake_advance(fake, 1000);
	check_result(extend(fake, 1, 1000), HF_ELOST);
	check_nothing_sent(fake);
}

/* An ask would silently take the lock again, and hide that others may have held it. */
static void extend_of_a_hold_the_server_no_longer_has_is_lost(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	struct hf__op *op = extend(fake, 1, 1000);
	fake_answer_renewal(fake, false);
	check_result(op, HF_ELOST);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	CHECK_REPORTED(fake, HF_LOST);
	check_nothing_sent(fake);
}

static void extend_confirmed_after_the_hold_ended_is_lost(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	struct hf__op *op = extend(fake, 1, 60000);
	fake->now += 988;
	fake_answer_renewal(fake, true);
	check_result(op, HF_ELOST);
	CHECK_REPORTED(fake, HF_LOST);
}

static void unknown_extend_is_repeated_and_the_hold_lasts(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 60000);
	struct hf__op *op = extend(fake, 1, 90000);
	fake_link_down(fake);
	check_waits(op);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	fake_link_up(fake);
	while (hf__op_is_active(op))
		fake_answer_renewal(fake, true);
	check_result(op, 0);
	assert_int_equal(fake_remaining(fake, 1), 90000 - 902);
}

static void unanswered_extend_is_unknown_and_the_hold_lasts(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 60000);
	struct hf__op *op = extend(fake, 1, 90000);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNKNOWN);
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	fake_release_done(fake, 1, 0);
}

/* ---- release ---- */

static void release_of_what_is_not_held_says_so(void **state)
{
	struct fake *fake = *state;
	check_result(fake_release(fake, 1), HF_ENOTHELD);
	(void)fake_hold(fake, 1, 0);
	check_result(fake_release(fake, 2), HF_ENOTHELD);
	check_nothing_sent(fake);
}

static void release_hides_the_hold_before_the_answer(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	(void)fake_release(fake, 1);
	assert_int_equal(fake_state(fake, 1), HF_FREE);
	assert_int_equal(fake_remaining(fake, 1), 0);
}

static void release_that_finds_the_hold_gone_is_lost(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = fake_release(fake, 1);
	fake_reply(fake, (struct hf__answer){.outcome = HF__GONE, .text = "other:7", .length = 7});
	check_result(op, HF_ELOST);
	check_detail(op, "the server no longer had the hold");
	check_detail(op, "now held by other:7");
	CHECK_REPORTED(fake, HF_LOST);
	assert_int_equal(fake->core.holds, 0);
}

static void repeated_release_that_finds_the_hold_gone_has_succeeded(void **state)
{
	struct fake *fake = *state;
	uint64_t wire = fake_hold(fake, 1, 0)->cmd.wire;
	struct hf__op *op = fake_release(fake, 1);
	fake_link_down(fake);
	check_waits(op);
	fake_link_up(fake);
	assert_true(check_sent(fake, HF__SETTLE, 0)->wire == wire);
	fake_answer(fake, HF__GONE);
	check_result(op, 0);
	check_nothing_reported(fake);
	assert_int_equal(fake->core.holds, 0);
}

static void repeated_release_of_one_level_sets_the_same_count(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	nest(fake, 1, 0, 2);
	struct hf__op *op = fake_release(fake, 1);
	(void)check_sent(fake, HF__SETTLE, 1);
	fake_link_down(fake);
	fake_link_up(fake);
	(void)check_sent(fake, HF__SETTLE, 1);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
	assert_int_equal(op->number, 1);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
}

static void unanswered_release_is_unknown_and_continues_in_the_background(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = fake_release(fake, 1);
	fake_link_down(fake);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNKNOWN);
	check_detail(op, "reset by peer");
	check_result(fake_release(fake, 1), HF_ENOTHELD);
	fake_link_up(fake);
	(void)check_sent(fake, HF__SETTLE, 0);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer(fake, HF__DONE);
	assert_int_equal(fake->core.holds, 0);
	check_nothing_reported(fake);
}

static void refused_release_is_reported_and_tried_once_more(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 6000);
	struct hf__op *op = fake_release(fake, 1);
	fake_answer(fake, HF__FAILED);
	check_result(op, HF_EREFUSED);
	check_detail(op, "ERR no");
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__FAILED);
	fake_advance(fake, 700);
	assert_true(hf__list_empty(&fake->sent));
	assert_int_equal(fake->core.holds, 0);
}

static void forced_release_is_a_loss_for_our_own_holder(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = fake_start(fake, .action = HF__OP_FORCE);
	(void)fake_sent(fake, HF__FORCE);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 1});
	check_result(op, 0);
	assert_int_equal(op->number, 1);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	CHECK_REPORTED(fake, HF_LOST);
	op = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ELOST);
	check_detail(op, "released by force");
}

/* ---- close ---- */

static void close_finishes_all_calls_and_releases_all_holds(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *other = fake_lock(fake, "invoices");
	(void)fake_hold(fake, 1, 0);
	struct hf__op *waiter = fake_acquire(fake, 2);
	struct hf__op *asker = fake_start_on(fake, other, .action = HF__OP_ACQUIRE, .owner = 3);
	struct hf__op *parked = fake_start_on(fake, other, .action = HF__OP_ACQUIRE, .owner = 3);
	struct hf__op *ping = fake_start(fake, .action = HF__OP_PING);
	struct hf__op *closing = fake_start(fake, .action = HF__OP_CLOSE);
	check_result(waiter, HF_ECLOSED);
	check_result(asker, HF_ECLOSED);
	check_result(parked, HF_ECLOSED);
	check_result(ping, HF_ECLOSED);
	assert_int_equal(fake_remaining(fake, 1), 0);
	check_waits(closing);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	(void)fake_sent(fake, HF__PING);
	fake_answer(fake, HF__DONE);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	check_waits(closing);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	check_result(closing, 0);
	check_nothing_sent(fake);
	check_nothing_reported(fake);
}

static void close_during_an_extension_releases_the_hold(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	struct hf__op *op = extend(fake, 1, 1000);
	struct hf__op *closing = fake_start(fake, .action = HF__OP_CLOSE);
	check_result(op, HF_ECLOSED);
	fake_answer_renewal(fake, true);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	check_result(closing, 0);
}

static void close_during_a_nested_ask_releases_the_hold(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	struct hf__op *op = fake_acquire(fake, 1);
	struct hf__op *closing = fake_start(fake, .action = HF__OP_CLOSE);
	check_result(op, HF_ECLOSED);
	fake_answer(fake, HF__NOT_NOW);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	check_result(closing, 0);
}

static void close_during_a_release_repeats_nothing_that_was_done(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 1000);
	struct hf__op *op = fake_release(fake, 1);
	struct hf__op *closing = fake_start(fake, .action = HF__OP_CLOSE);
	check_result(op, HF_ECLOSED);
	fake_answer(fake, HF__DONE);
	check_result(closing, 0);
	check_nothing_sent(fake);
}

static void close_without_holds_is_done_at_once(void **state)
{
	struct fake *fake = *state;
	check_result(fake_start(fake, .action = HF__OP_CLOSE), 0);
	check_result(fake_acquire(fake, 1), HF_ECLOSED);
	check_result(fake_release(fake, 1), HF_ECLOSED);
}

static void close_waits_no_longer_than_a_second(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *closing = fake_start(fake, .action = HF__OP_CLOSE);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_advance(fake, HF__CLOSE_MS - 1);
	check_waits(closing);
	fake_advance(fake, 1);
	check_result(closing, 0);
}

static void close_without_a_connection_waits_for_nothing(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_link_down(fake);
	check_result(fake_start(fake, .action = HF__OP_CLOSE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(validity_ends_a_hundredth_and_2_ms_before_the_lease),
		fake_test(validity_counts_from_before_the_ask_was_sent),
		fake_test(grant_that_arrives_too_late_is_not_believed_and_asked_for_again),
		fake_test(grant_in_the_last_millisecond_is_believed),
		fake_test(late_grant_of_a_cancelled_call_is_settled),
		fake_test(remaining_is_the_owners_own),
		fake_test(fixed_lease_is_lost_at_valid_until_with_one_piece_of_news),
		fake_test(remaining_ends_without_a_turn),
		fake_test(hold_is_at_risk_with_less_than_a_third_left),
		fake_test(release_of_a_lost_hold_says_why_and_names_the_holder),
		fake_test(lost_hold_that_is_cleaned_up_does_not_hide_the_next_one),
		fake_test(failed_acquire_does_not_end_a_lost_hold),
		fake_test(release_during_the_next_acquire_reports_the_loss),
		fake_test(grant_after_a_loss_starts_over),
		fake_test(release_of_a_lost_hold_does_not_wait_for_a_connection),
		fake_test(release_of_a_lost_hold_ends_with_its_connection),
		fake_test(release_of_a_level_ends_when_the_hold_is_lost_without_a_connection),
		fake_test(acquire_after_a_loss_is_a_new_acquisition),
		fake_test(acquire_that_finds_the_lease_ended_is_not_nested),
		fake_test(news_that_nobody_fetched_end_with_the_latest),
		fake_test(levels_are_counted_up_and_down_on_the_server),
		fake_test(nested_level_never_shortens),
		fake_test(nested_level_with_a_longer_lease_lengthens),
		fake_test(nested_acquire_that_finds_the_hold_gone_is_lost),
		fake_test(nested_grant_after_the_outer_hold_ended_is_lost),
		fake_test(nested_ask_without_an_answer_is_unknown_and_the_hold_lasts),
		fake_test(extend_lengthens_and_never_shortens),
		fake_test(extend_of_what_is_not_held_says_so),
		fake_test(extend_of_a_hold_the_server_no_longer_has_is_lost),
		fake_test(extend_confirmed_after_the_hold_ended_is_lost),
		fake_test(unknown_extend_is_repeated_and_the_hold_lasts),
		fake_test(unanswered_extend_is_unknown_and_the_hold_lasts),
		fake_test(release_of_what_is_not_held_says_so),
		fake_test(release_hides_the_hold_before_the_answer),
		fake_test(release_that_finds_the_hold_gone_is_lost),
		fake_test(repeated_release_that_finds_the_hold_gone_has_succeeded),
		fake_test(repeated_release_of_one_level_sets_the_same_count),
		fake_test(unanswered_release_is_unknown_and_continues_in_the_background),
		fake_test(refused_release_is_reported_and_tried_once_more),
		fake_test(forced_release_is_a_loss_for_our_own_holder),
		fake_test(close_finishes_all_calls_and_releases_all_holds),
		fake_test(close_during_an_extension_releases_the_hold),
		fake_test(close_during_a_nested_ask_releases_the_hold),
		fake_test(close_during_a_release_repeats_nothing_that_was_done),
		fake_test(close_without_holds_is_done_at_once),
		fake_test(close_waits_no_longer_than_a_second),
		fake_test(close_without_a_connection_waits_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
