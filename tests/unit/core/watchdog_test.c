/* Checks the watchdog: what is renewed, when, in which batches, and what a miss leads to. */
#include "fake.h"

#include <stdio.h>

#define THIRD (FAKE_WATCHDOG / 3)

/* Time passes until a renewal goes out, the given time at most. */
static int64_t time_to_renew(struct fake *fake, int64_t limit_ms)
{
	int64_t from = fake->now;
	while (fake_pending(fake) == 0 && fake->now - from < limit_ms)
		fake_advance(fake, 1);
	return fake->now - from;
}

static void nest(struct fake *fake, uint64_t owner, int64_t lease_ms)
{
	struct hf__op *op = fake_acquire_for(fake, owner, lease_ms);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

/* ---- when ---- */

static void renewal_goes_out_at_a_third_of_the_lease(void **state)
{
	struct fake *fake = *state;
	struct hf__hold *hold = fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD - 1);
	check_nothing_sent(fake);
	fake_advance(fake, 1);
	struct hf__cmd *cmd = fake_sent(fake, HF__RENEW);
	assert_int_equal(cmd->items, 1);
	assert_ptr_equal(hf__backend_item(cmd, 0).lock, fake->lock[0]);
	assert_true(hf__backend_item(cmd, 0).wire == hold->cmd.wire);
	assert_int_equal(hf__backend_item(cmd, 0).lease_ms, FAKE_WATCHDOG);
	assert_int_equal(cmd->sent_at, FAKE_START + THIRD);
	assert_int_equal(cmd->answer_by, fake->now + FAKE_TIMEOUT);
	assert_int_equal(fake_pending(fake), 1);
}

/* The time is rounded down, so that holds of about the same time share a script. */
static void renewal_is_never_later_than_a_third_and_hardly_earlier(void **state)
{
	(void)state;
	for (int64_t sent_at = 5000; sent_at < 7100; sent_at += 7) {
		int64_t at = hf__watchdog_next(sent_at, FAKE_WATCHDOG);
		assert_true(at <= sent_at + THIRD);
		assert_true(at > sent_at + THIRD - FAKE_WATCHDOG / 30);
		assert_int_equal(at % (FAKE_WATCHDOG / 30), 0);
	}
	assert_int_equal(hf__watchdog_next(5001, 30), 5011);
}

static void renewed_hold_lasts_from_the_time_the_renewal_was_sent(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD + 400);
	assert_int_equal(fake_remaining(fake, 1), FAKE_WATCHDOG - 302 - THIRD - 400);
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_remaining(fake, 1), FAKE_WATCHDOG - 302 - 400);
	assert_int_equal(fake->core.stats.renewals, 1);
	assert_int_equal(fake->core.stats.renewal_lag_ms, 400);
	fake_advance(fake, THIRD - 400);
	(void)fake_sent(fake, HF__RENEW);
}

static void hold_is_renewed_for_hours(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	for (int i = 0; i < 1000; i++) {
		fake_advance(fake, THIRD);
		assert_int_equal(fake_pending(fake), 1);
		fake_answer_renewal(fake, true);
		assert_int_equal(fake_state(fake, 1), HF_HELD);
	}
	check_nothing_reported(fake);
}

static void fixed_lease_is_never_renewed(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, FAKE_WATCHDOG);
	fake_advance(fake, 2 * FAKE_WATCHDOG);
	assert_int_equal(fake->core.stats.renewal_scripts, 0);
	CHECK_REPORTED(fake, HF_AT_RISK, HF_LOST);
}

/* A hold that has ended anyway must not make anything hurry. */
static void nearest_end_is_that_of_a_hold_that_is_renewed(void **state)
{
	struct fake *fake = *state;
	assert_true(hf__core_nearest_end(&fake->core, hf__core_link(&fake->core)) == HF__NEVER);
	(void)fake_acquire_for(fake, 1, 500);
	assert_true(hf__core_nearest_end(&fake->core, hf__core_link(&fake->core)) == HF__NEVER);
	fake_answer(fake, HF__GRANTED);
	assert_true(hf__core_nearest_end(&fake->core, hf__core_link(&fake->core)) == HF__NEVER);
	fake_release_done(fake, 1, 0);
	struct hf__hold *hold = fake_hold(fake, 1, 0);
	assert_true(hf__core_nearest_end(&fake->core, hf__core_link(&fake->core)) ==
	            hold->valid_until);
	(void)fake_release(fake, 1);
	assert_true(hf__core_nearest_end(&fake->core, hf__core_link(&fake->core)) == HF__NEVER);
}

static void released_hold_is_not_renewed_any_more(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	(void)fake_release(fake, 1);
	fake_advance(fake, THIRD);
	assert_int_equal(fake->core.stats.renewal_scripts, 0);
}

static void answer_for_a_hold_released_meanwhile_is_ignored(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	struct hf__cmd *renewal = fake_sent(fake, HF__RENEW);
	struct hf__op *op = fake_release(fake, 1);
	hf__list_remove(&renewal->link);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
	hf__list_add(&fake->sent, &renewal->link);
	fake_answer_renewal(fake, false);
	check_nothing_reported(fake);
	fake_advance(fake, FAKE_WATCHDOG);
	check_nothing_sent(fake);
}

/* ---- batches ---- */

static void hold_many(struct fake *fake, int count)
{
	char name[32];
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof name, "many:%d", i);
		struct hf__lock *lock = fake_lock(fake, name);
		(void)fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .owner = 1);
		fake_answer(fake, HF__GRANTED);
	}
}

static void renewals_of_250_holds_go_out_in_three_scripts(void **state)
{
	static const int expected[] = {100, 100, 50};
	struct fake *fake = *state;
	hold_many(fake, 250);
	fake_advance(fake, THIRD);
	assert_int_equal(fake_pending(fake), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fake_sent(fake, HF__RENEW)->items, expected[i]);
		fake_answer_renewal(fake, true);
	}
	check_nothing_sent(fake);
	assert_int_equal(fake->core.stats.renewals, 250);
	assert_int_equal(fake->core.stats.renewal_scripts, 3);
}

/* As on a Cluster, if every name is in a slot of its own. */
static uint32_t batch_alone(void *backend, const struct hf__lock *lock)
{
	(void)backend;
	return (uint32_t)atoi(hf__lock_name(lock) + strlen("many:"));
}

static void holds_that_cannot_share_a_script_are_renewed_at_once(void **state)
{
	struct fake *fake = *state;
	static struct hf__backend_ops ops;
	const struct hf__backend_ops *before = fake->core.backend_ops;
	ops = *before;
	ops.batch = batch_alone;
	fake->core.backend_ops = &ops;
	hold_many(fake, 200);
	fake_advance(fake, THIRD);
	assert_int_equal(fake_pending(fake), HF__RENEWALS);
	for (int left = 200; left > 0; left--) {
		assert_int_equal(fake_sent(fake, HF__RENEW)->items, 1);
		fake_answer_renewal(fake, true);
	}
	check_nothing_sent(fake);
	assert_int_equal(fake->core.stats.renewals, 200);
	fake->core.backend_ops = before;
}

static uint32_t batch_by_ten(void *backend, const struct hf__lock *lock)
{
	(void)backend;
	return (uint32_t)atoi(hf__lock_name(lock) + strlen("many:")) / 10;
}

/* Ten holds go together: the large renewals take them all, the small ones in three parts. */
static void holds_of_one_slot_are_renewed_together(void **state)
{
	struct fake *fake = *state;
	static struct hf__backend_ops ops;
	const struct hf__backend_ops *before = fake->core.backend_ops;
	ops = *before;
	ops.batch = batch_by_ten;
	fake->core.backend_ops = &ops;
	hold_many(fake, 60);
	fake_advance(fake, THIRD);
	assert_int_equal(fake_pending(fake), HF__RENEWALS_LARGE + 2 * 3);
	for (int i = 0; i < HF__RENEWALS_LARGE; i++) {
		assert_int_equal(fake_sent(fake, HF__RENEW)->items, 10);
		fake_answer_renewal(fake, true);
	}
	for (int i = 0; i < 2 * 3; i++)
		fake_answer_renewal(fake, true);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.stats.renewals, 60);
	fake->core.backend_ops = before;
}

static void batch_may_be_smaller_and_four_scripts_are_the_most_at_once(void **state)
{
	struct fake *fake = *state;
	fake->core.config.watchdog_batch = 10;
	hold_many(fake, 55);
	fake_advance(fake, THIRD);
	assert_int_equal(fake_pending(fake), HF__RENEWALS_LARGE);
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_pending(fake), HF__RENEWALS_LARGE);
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_pending(fake), HF__RENEWALS_LARGE);
	for (int i = 0; i < 4; i++)
		fake_answer_renewal(fake, true);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.stats.renewals, 55);
	assert_int_equal(fake->core.stats.renewal_scripts, 6);
}

static void only_the_holds_that_are_gone_are_lost(void **state)
{
	struct fake *fake = *state;
	bool there[] = {true, false, true};
	hold_many(fake, 3);
	fake_advance(fake, THIRD);
	struct hf__cmd *cmd = fake_sent(fake, HF__RENEW);
	struct hf__lock *gone = hf__backend_item(cmd, 1).lock,
			*kept = hf__backend_item(cmd, 2).lock;
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .there = there});
	CHECK_REPORTED(fake, HF_LOST);
	assert_int_equal(hf__lock_remaining(gone, 1, fake->now, NULL), 0);
	assert_true(hf__lock_remaining(kept, 1, fake->now, NULL) > 0);
}

/* ---- misses ---- */

static void gone_is_lost_at_once(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	fake_answer_renewal(fake, false);
	CHECK_REPORTED(fake, HF_LOST);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	fake_advance(fake, FAKE_WATCHDOG);
	check_nothing_sent(fake);
	check_nothing_reported(fake);
	struct hf__op *op = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ELOST);
	check_detail(op, "the server no longer had the hold");
}

static void missed_renewal_is_tried_again_every_twelfth(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	unsigned lines = fake->lines;
	for (int i = 0; i < 5; i++) {
		fake_answer(fake, i % 2 ? HF__NOT_NOW : HF__FAILED);
		check_nothing_sent(fake);
		assert_in_range(time_to_renew(fake, 5000), 2000, 3002);
		struct hf__cmd *cmd = fake_sent(fake, HF__RENEW);
		assert_int_equal(cmd->answer_by - cmd->sent_at, FAKE_WATCHDOG / 12);
	}
	assert_int_equal(fake->lines - lines, 1); /* that the first one was refused */
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	assert_int_equal(fake->core.stats.renewal_failures, 5);
}

static void renewals_that_all_miss_lose_the_hold_at_valid_until(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	int64_t until = fake->now + FAKE_WATCHDOG - 302;
	while (fake->now < until - 1) {
		if (fake_pending(fake))
			fake_answer(fake, HF__NOT_NOW);
		fake_advance(fake, 1);
	}
	CHECK_REPORTED(fake, HF_AT_RISK);
	fake_advance(fake, 1);
	CHECK_REPORTED(fake, HF_LOST);
	fake_advance(fake, FAKE_WATCHDOG);
	check_nothing_reported(fake);
	struct hf__op *op = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ELOST);
	check_detail(op, "no renewal was confirmed in time");
}

/*
 * The connection to the server still seems to work, and leads to another one when the owner asks.
 */
static void a_loss_names_the_server_that_did_not_answer(void **state)
{
	struct fake *fake = *state;
	struct hf__link *link = hf__core_link(&fake->core);
	snprintf(link->server, sizeof link->server, "node a:1");
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, FAKE_WATCHDOG);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	fake_answer_renewal(fake, false);
	snprintf(link->server, sizeof link->server, "node b:2");
	struct hf__op *op = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ELOST);
	check_detail(op, "no renewal was confirmed in time by node a:1");
}

static void a_loss_names_the_server_that_lacks_the_hold(void **state)
{
	struct fake *fake = *state;
	struct hf__link *link = hf__core_link(&fake->core);
	snprintf(link->server, sizeof link->server, "node a:1");
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	fake_answer_renewal(fake, false);
	struct hf__op *op = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	check_detail(op, "released by force): node a:1");
}

static void renewal_confirmed_after_valid_until_is_not_believed(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	(void)fake_sent(fake, HF__RENEW);
	/* The answer is read before the timers of this turn have run. */
	fake->now = FAKE_START + FAKE_WATCHDOG - 302;
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
	fake_turn(fake);
	CHECK_REPORTED(fake, HF_LOST);
}

static void renewal_at_risk_reports_risk_and_held(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	(void)fake_sent(fake, HF__RENEW);
	fake_advance(fake, THIRD - 302 - 1);
	check_nothing_reported(fake);
	fake_advance(fake, 1);
	assert_int_equal(fake_state(fake, 1), HF_AT_RISK);
	CHECK_REPORTED(fake, HF_AT_RISK);
	fake_answer(fake, HF__NOT_NOW);
	(void)time_to_renew(fake, 5000);
	fake_answer_renewal(fake, true);
	CHECK_REPORTED(fake, HF_HELD);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
}

static void renewal_without_room_is_tried_again(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake->full = true;
	fake_advance(fake, THIRD + 1);
	check_nothing_sent(fake);
	fake->full = false;
	assert_in_range(time_to_renew(fake, 5000), 1990, 3002);
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
}

/* ---- connections ---- */

static void all_holds_are_renewed_at_once_after_a_reconnect(void **state)
{
	struct fake *fake = *state;
	hold_many(fake, 5);
	struct hf__hold *fixed = fake_hold(fake, 1, 60000);
	fake_link_down(fake);
	fake_advance(fake, 10);
	check_nothing_sent(fake);
	fake_link_up(fake);
	struct hf__cmd *cmd = fake_sent(fake, HF__RENEW);
	assert_int_equal(fake_pending(fake), 1);
	assert_int_equal(cmd->items, 6);
	for (int i = 0; i < 6; i++) {
		bool only_asked = hf__backend_item(cmd, i).lock == fixed->cmd.lock;
		assert_int_equal(hf__backend_item(cmd, i).lease_ms, only_asked ? 0 : FAKE_WATCHDOG);
	}
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_remaining(fake, 1), 60000 - 602 - 10);
	check_nothing_reported(fake);
}

static void server_that_came_back_empty_is_noticed_at_once(void **state)
{
	struct fake *fake = *state;
	hold_many(fake, 1);
	(void)fake_hold(fake, 1, 60000);
	fake_link_down(fake);
	fake_link_up(fake);
	fake_answer_renewal(fake, false);
	CHECK_REPORTED(fake, HF_LOST, HF_LOST);
}

static void renewal_cut_off_is_repeated_by_the_next_connection(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	(void)fake_sent(fake, HF__RENEW);
	fake_link_down(fake);
	fake_advance(fake, 100);
	check_nothing_sent(fake);
	fake_link_up(fake);
	assert_int_equal(fake_sent(fake, HF__RENEW)->items, 1);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer_renewal(fake, true);
	assert_int_equal(fake_remaining(fake, 1), FAKE_WATCHDOG - 302);
}

static void hold_that_ended_without_a_connection_is_not_renewed_by_the_next(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_link_down(fake);
	fake->now += FAKE_WATCHDOG;
	fake_link_up(fake);
	check_nothing_sent(fake);
	CHECK_REPORTED(fake, HF_LOST);
}

/* A driver that learns again and again that something is due burns a processor. */
static void renewal_that_cannot_go_out_lets_the_driver_sleep(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	fake_link_down(fake);
	for (int turns = 0; fake_state(fake, 1) != HF_LOST; turns++) {
		assert_true(turns < 20);
		int64_t due = hf__core_due(&fake->core);
		fake->now = due > fake->now ? due : fake->now;
		fake_turn(fake);
	}
	assert_int_equal(fake->now, FAKE_START + FAKE_WATCHDOG - 302);
}

/* ---- levels with and without a lease ---- */

static void level_without_a_lease_inside_a_fixed_one_is_renewed_until_it_closes(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 5000);
	nest(fake, 1, 0);
	nest(fake, 1, 2000);
	for (int i = 0; i < 5; i++) {
		fake_advance(fake, THIRD);
		assert_int_equal(hf__backend_item(fake_sent(fake, HF__RENEW), 0).lease_ms,
		                 FAKE_WATCHDOG);
		fake_answer_renewal(fake, true);
	}
	fake_release_done(fake, 1, 2);
	fake_advance(fake, THIRD);
	fake_answer_renewal(fake, true);
	fake_release_done(fake, 1, 1);
	assert_int_equal(fake_remaining(fake, 1), FAKE_WATCHDOG - 302);
	fake_advance(fake, FAKE_WATCHDOG - 303);
	check_nothing_sent(fake);
	assert_int_equal(fake_state(fake, 1), HF_AT_RISK);
	fake_advance(fake, 1);
	check_nothing_sent(fake);
	CHECK_REPORTED(fake, HF_AT_RISK, HF_LOST);
}

static void fixed_level_inside_one_without_a_lease_ends_no_renewal(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	nest(fake, 1, 5000);
	fake_advance(fake, THIRD);
	fake_answer_renewal(fake, true);
	fake_release_done(fake, 1, 1);
	for (int i = 0; i < 5; i++) {
		fake_advance(fake, THIRD);
		(void)fake_sent(fake, HF__RENEW);
		fake_answer_renewal(fake, true);
	}
	check_nothing_reported(fake);
}

static void renewal_wanted_before_the_level_closed_is_not_sent(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 60000);
	nest(fake, 1, 0);
	fake_link_down(fake);
	fake_advance(fake, THIRD);
	struct hf__op *op = fake_release(fake, 1);
	fake_link_up(fake);
	(void)check_sent(fake, HF__SETTLE, 1);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
	assert_int_equal(hf__backend_item(fake_sent(fake, HF__RENEW), 0).lease_ms, 0);
	fake_answer_renewal(fake, true);
	fake_advance(fake, THIRD);
	check_nothing_sent(fake);
}

/* The pause after a miss must not grow with a long lease taken inside. */
static void missed_renewal_under_a_long_fixed_level_is_tried_again_soon(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	nest(fake, 1, 3600000);
	fake_advance(fake, THIRD);
	fake_answer(fake, HF__NOT_NOW);
	assert_in_range(time_to_renew(fake, 20000), 2000, 3002);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(renewal_goes_out_at_a_third_of_the_lease),
		fake_test(renewal_is_never_later_than_a_third_and_hardly_earlier),
		fake_test(renewed_hold_lasts_from_the_time_the_renewal_was_sent),
		fake_test(hold_is_renewed_for_hours),
		fake_test(fixed_lease_is_never_renewed),
		fake_test(nearest_end_is_that_of_a_hold_that_is_renewed),
		fake_test(released_hold_is_not_renewed_any_more),
		fake_test(answer_for_a_hold_released_meanwhile_is_ignored),
		fake_test(renewals_of_250_holds_go_out_in_three_scripts),
		fake_test(holds_that_cannot_share_a_script_are_renewed_at_once),
		fake_test(holds_of_one_slot_are_renewed_together),
		fake_test(batch_may_be_smaller_and_four_scripts_are_the_most_at_once),
		fake_test(only_the_holds_that_are_gone_are_lost),
		fake_test(gone_is_lost_at_once),
		fake_test(missed_renewal_is_tried_again_every_twelfth),
		fake_test(renewals_that_all_miss_lose_the_hold_at_valid_until),
		fake_test(renewal_confirmed_after_valid_until_is_not_believed),
		fake_test(renewal_at_risk_reports_risk_and_held),
		fake_test(renewal_without_room_is_tried_again),
		fake_test(all_holds_are_renewed_at_once_after_a_reconnect),
		fake_test(a_loss_names_the_server_that_did_not_answer),
		fake_test(a_loss_names_the_server_that_lacks_the_hold),
		fake_test(server_that_came_back_empty_is_noticed_at_once),
		fake_test(renewal_cut_off_is_repeated_by_the_next_connection),
		fake_test(hold_that_ended_without_a_connection_is_not_renewed_by_the_next),
		fake_test(renewal_that_cannot_go_out_lets_the_driver_sleep),
		fake_test(level_without_a_lease_inside_a_fixed_one_is_renewed_until_it_closes),
		fake_test(fixed_level_inside_one_without_a_lease_ends_no_renewal),
		fake_test(renewal_wanted_before_the_level_closed_is_not_sent),
		fake_test(missed_renewal_under_a_long_fixed_level_is_tried_again_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
