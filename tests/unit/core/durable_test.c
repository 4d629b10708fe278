/* Grants that count only once replicas have acknowledged them. */
#include <stdio.h>

#include "fake.h"

/* The longest that a sync can take: the previous one, its own time, and the answer. */
#define LIMIT (2 * FAKE_SYNC + FAKE_TIMEOUT)

static struct hf__op *ask(struct fake *fake, uint64_t owner, int64_t wait_ms, int16_t replicas)
{
	return fake_start(fake, .action = HF__OP_ACQUIRE, .owner = owner, .wait_ms = wait_ms,
	                  .replicas = replicas);
}

/* The replicas have this number of copies. */
static void acknowledge(struct fake *fake, int64_t count)
{
	(void)fake_sent(fake, HF__SYNC);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = count, .text = ""});
}

/* Granted by the server, and waiting for two replicas. */
static struct hf__op *begin(struct fake *fake, uint64_t owner, int64_t wait_ms)
{
	struct hf__op *op = ask(fake, owner, wait_ms, 2);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	(void)check_sent(fake, HF__SYNC, 2);
	check_waits(op);
	return op;
}

static struct hf__hold *hold_durably(struct fake *fake, uint64_t owner)
{
	struct hf__op *op = begin(fake, owner, 0);
	acknowledge(fake, 2);
	check_result(op, 0);
	return hf__hold_find(fake->lock[0], owner);
}

/* The server answers that the hold is removed. */
static void settle(struct fake *fake)
{
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 0);
}

/* ---- enough ---- */

static void grant_counts_when_enough_replicas_have_it(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	assert_int_equal(fake_state(fake, 1), HF_FREE);
	assert_int_equal(fake->core.stats.grants, 0);
	acknowledge(fake, 3);
	check_result(op, 0);
	check_nothing_sent(fake);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	assert_int_equal(hf__hold_find(fake->lock[0], 1)->replicas, 3);
	assert_int_equal(fake->core.stats.grants, 1);
	assert_int_equal(fake->core.stats.syncs, 1);
	fake_release_done(fake, 1, 0);
}

static void sync_is_about_the_hold_and_its_lease(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 1, .lease_ms = 5000,
	                               .replicas = 1);
	uint64_t wire = fake_sent(fake, HF__ASK)->wire;
	fake_answer(fake, HF__GRANTED);
	struct hf__cmd *cmd = check_sent(fake, HF__SYNC, 1);
	assert_true(cmd->wire == wire);
	assert_int_equal(cmd->lease_ms, 5000);
	acknowledge(fake, 1);
	check_result(op, 0);
}

static void validity_counts_from_the_ask_and_not_from_the_sync(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	fake_advance(fake, 700);
	acknowledge(fake, 2);
	check_result(op, 0);
	const struct hf__hold *hold = hf__hold_find(fake->lock[0], 1);
	assert_int_equal(hold->valid_until, hf__policy_valid_until(FAKE_START, FAKE_WATCHDOG));
	assert_true(hold->renew_at <= FAKE_START + FAKE_WATCHDOG / 3);
}

static void token_of_the_grant_is_kept_for_the_call(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, 1, 0, 1);
	fake_reply(fake, (struct hf__answer){.outcome = HF__GRANTED, .token = 77});
	acknowledge(fake, 1);
	check_result(op, 0);
	assert_int_equal(op->number, 77);
	assert_int_equal(hf__hold_find(fake->lock[0], 1)->token, 77);
}

static void call_without_the_wish_sends_no_sync(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.stats.syncs, 0);
	assert_int_equal(fake->core.stats.commands, 1);
}

static void default_is_for_calls_that_do_not_say_otherwise(void **state)
{
	struct fake *fake = *state;
	fake->core.config.replicas = 1;
	struct hf__op *op = ask(fake, 1, 0, 0);
	fake_answer(fake, HF__GRANTED);
	(void)check_sent(fake, HF__SYNC, 1);
	acknowledge(fake, 1);
	check_result(op, 0);
	fake_release_done(fake, 1, 0);
	op = ask(fake, 1, 0, 3);
	fake_answer(fake, HF__GRANTED);
	(void)check_sent(fake, HF__SYNC, 3);
	acknowledge(fake, 3);
	check_result(op, 0);
	fake_release_done(fake, 1, 0);
	op = ask(fake, 1, 0, -1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	check_nothing_sent(fake);
}

static void handed_over_hold_is_synced_too(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *waiter = ask(fake, 2, 0, 2);
	struct hf__op *release = fake_release(fake, 1);
	(void)check_sent(fake, HF__MOVE, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(release, 0);
	check_waits(waiter);
	(void)check_sent(fake, HF__SYNC, 2);
	acknowledge(fake, 2);
	check_result(waiter, 0);
	assert_int_equal(fake_state(fake, 2), HF_HELD);
}

static void semaphore_is_granted_after_the_sync(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__SEMAPHORE, "pool");
	fake->lock[fake->locks++] = lock;
	struct hf__op *op =
		fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .amount = 3, .replicas = 1);
	uint64_t wire = check_sent(fake, HF__ASK, 3)->wire;
	fake_answer(fake, HF__GRANTED);
	assert_true(check_sent(fake, HF__SYNC, 1)->wire == wire);
	check_waits(op);
	acknowledge(fake, 1);
	check_result(op, 0);
	check_nothing_sent(fake);
}

static void permits_are_granted_together_after_the_sync(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__PERMITS, "pool");
	fake->lock[fake->locks++] = lock;
	struct hf__op *op =
		fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .amount = 3, .replicas = 1);
	fake_answer(fake, HF__GRANTED);
	assert_int_equal(check_sent(fake, HF__SYNC, 1)->items, 3);
	assert_int_equal(fake->core.holds, 1);
	acknowledge(fake, 1);
	check_result(op, 0);
	assert_int_equal(fake->core.holds, 3);
}

static void latch_has_no_grant_to_sync(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__LATCH, "go");
	fake->lock[fake->locks++] = lock;
	struct hf__op *op =
		fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .amount = 1, .replicas = 5);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	check_nothing_sent(fake);
}

/* ---- too few ---- */

static void grant_that_too_few_replicas_have_is_released(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	acknowledge(fake, 1);
	check_result(op, HF_ENOREPLICAS);
	check_detail(op, "acknowledged by 1 of 2 replicas within 1000 ms; released");
	assert_int_equal(fake_state(fake, 1), HF_FREE);
	settle(fake);
	check_nothing_reported(fake);
}

static void next_waiter_asks_after_the_release(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	struct hf__op *next = fake_acquire(fake, 2);
	assert_int_equal(fake_pending(fake), 1);
	acknowledge(fake, 0);
	check_result(op, HF_ENOREPLICAS);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(next, 0);
}

static void semaphore_gives_its_permits_back(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__SEMAPHORE, "pool");
	fake->lock[fake->locks++] = lock;
	struct hf__op *op =
		fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .amount = 3, .replicas = 1);
	uint64_t wire = fake_sent(fake, HF__ASK)->wire;
	fake_answer(fake, HF__GRANTED);
	acknowledge(fake, 0);
	check_result(op, HF_ENOREPLICAS);
	assert_true(fake_sent(fake, HF__SETTLE)->wire == wire);
	settle(fake);
}

static void nested_level_is_released_alone(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = ask(fake, 1, 0, 2);
	(void)check_sent(fake, HF__ASK, 2);
	fake_answer(fake, HF__GRANTED);
	(void)check_sent(fake, HF__SYNC, 2);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	acknowledge(fake, 1);
	check_result(op, HF_ENOREPLICAS);
	(void)check_sent(fake, HF__SETTLE, 1);
	fake_answer(fake, HF__DONE);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	fake_release_done(fake, 1, 0);
}

static void nested_level_that_is_acknowledged_counts(void **state)
{
	struct fake *fake = *state;
	const struct hf__hold *hold = fake_hold(fake, 1, 0);
	assert_int_equal(hold->replicas, 0);
	struct hf__op *op = ask(fake, 1, 0, 2);
	fake_answer(fake, HF__GRANTED);
	acknowledge(fake, 2);
	check_result(op, 0);
	assert_int_equal(hold->count, 2);
	assert_int_equal(hold->replicas, 2);
	fake_release_done(fake, 1, 1);
	fake_release_done(fake, 1, 0);
}

static void refused_sync_releases_the_hold(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	fake_answer(fake, HF__FAILED);
	check_result(op, HF_EREFUSED);
	check_detail(op, "ERR no");
	settle(fake);
}

/* ---- gone ---- */

static void hold_that_is_gone_is_asked_for_again(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	fake_answer(fake, HF__GONE);
	check_waits(op);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer_busy(fake, 10000);
	fake_answer_busy(fake, 10000);
	check_nothing_sent(fake);
	fake_wake(fake, fake->lock[0]);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	acknowledge(fake, 2);
	check_result(op, 0);
	check_nothing_reported(fake);
}

/* The time that a sync may take is not for waiting. */
static void call_whose_grant_is_gone_has_its_own_deadline_again(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 200);
	fake_advance(fake, 150);
	fake_answer(fake, HF__GONE);
	fake_answer_busy(fake, 10000);
	fake_answer_busy(fake, 10000);
	fake_advance(fake, 49);
	check_waits(op);
	fake_advance(fake, 1);
	check_result(op, HF_ETIMEDOUT);
	check_nothing_sent(fake);
}

static void nested_level_of_a_hold_that_is_gone_is_lost(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = ask(fake, 1, 0, 2);
	fake_answer(fake, HF__GRANTED);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ELOST);
	CHECK_REPORTED(fake, HF_LOST);
}

/* ---- unknown ---- */

static void unanswered_sync_is_repeated_after_another_ask(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	fake_answer(fake, HF__UNKNOWN);
	check_waits(op);
	check_nothing_sent(fake);
	fake_advance(fake, 2 * HF__NOT_NOW_MS);
	assert_true(check_sent(fake, HF__ASK, 1)->again);
	fake_answer(fake, HF__GRANTED);
	acknowledge(fake, 2);
	check_result(op, 0);
}

static void sync_waits_for_the_next_connection(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	fake_link_down(fake);
	fake_advance(fake, 500);
	check_waits(op);
	check_nothing_sent(fake);
	fake_link_up(fake);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	acknowledge(fake, 2);
	check_result(op, 0);
}

/* Asks are granted, and syncs are not answered. */
static void answer_unknown(struct fake *fake)
{
	const struct hf__cmd *cmd = hf__list_item(fake->sent.next, struct hf__cmd, link);
	fake_answer(fake, cmd->verb == HF__ASK ? HF__GRANTED : HF__UNKNOWN);
}

static void grant_that_stays_unknown_is_given_up_and_released(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 50);
	int64_t end = fake->now + LIMIT;
	while (fake->now < end) {
		check_waits(op);
		answer_unknown(fake);
		while (!fake_pending(fake) && fake->now < end)
			fake_advance(fake, 1);
	}
	check_result(op, HF_EUNKNOWN);
	check_detail(op, "whether enough replicas (2) have acknowledged that");
	settle(fake);
}

/* The lock has another link by then, which is down. */
static void grant_without_a_link_has_its_time(void **state)
{
	struct fake *fake = *state;
	char expected[40];
	struct hf__op *op = ask(fake, 1, 50, 2);
	(void)check_sent(fake, HF__ASK, 1);
	hf__core_on_link_down(&fake->core, &fake->core.link, HF_EUNREACHABLE, "reset by peer",
	                      fake->now);
	fake_answer(fake, HF__GRANTED);
	check_waits(op);
	fake_advance(fake, LIMIT);
	check_result(op, HF_EUNKNOWN);
	snprintf(expected, sizeof expected, "after %ld ms", (long)LIMIT);
	check_detail(op, expected);
	fake_link_up(fake);
	settle(fake);
}

static void reason_why_it_cannot_be_known_is_the_error(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 50);
	fake_reply(fake, (struct hf__answer){.outcome = HF__UNSENT,
	                                     .error = HF_EUNREACHABLE,
	                                     .text = "connection refused",
	                                     .length = 18});
	check_waits(op);
	fake_link_down(fake);
	fake_advance(fake, LIMIT);
	check_result(op, HF_EUNREACHABLE);
	check_detail(op, "connection refused");
	fake_link_up(fake);
	settle(fake);
}

static void sync_without_memory_fails_the_call(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, 1, 0, 2);
	fake->full = true;
	fake_answer(fake, HF__GRANTED);
	fake_turn(fake);
	check_result(op, HF_ENOMEM);
	fake->full = false;
	fake_advance(fake, FAKE_WATCHDOG / 12 + 1);
	settle(fake);
}

/* ---- leaving ---- */

static void call_may_sync_for_longer_than_it_may_wait(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 50);
	fake_advance(fake, LIMIT - 1);
	check_waits(op);
	acknowledge(fake, 2);
	check_result(op, 0);
}

static void call_that_tries_once_syncs_as_well(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, HF_NOWAIT);
	fake_advance(fake, FAKE_TIMEOUT + 1);
	acknowledge(fake, 2);
	check_result(op, 0);
}

static void sync_without_an_answer_is_withdrawn_and_the_hold_released(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 50);
	fake_advance(fake, LIMIT);
	check_result(op, HF_EUNKNOWN);
	settle(fake);
}

static void cancelled_sync_leaves_nothing(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	settle(fake);
}

/* The backend cannot give the command back at this moment. */
static void cancelled_sync_that_is_answered_later_leaves_nothing(void **state)
{
	struct fake *fake = *state;
	fake->holds_on = true;
	struct hf__op *op = begin(fake, 1, 0);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	assert_int_equal(fake_pending(fake), 1);
	acknowledge(fake, 2);
	assert_int_equal(fake_state(fake, 1), HF_FREE);
	settle(fake);
}

static void ask_that_was_cancelled_before_its_grant_leaves_nothing(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, 1, 0, 2);
	hf__core_cancel(&fake->core, op, fake->now);
	check_waits(op);
	fake_answer(fake, HF__GRANTED);
	check_result(op, HF_ECANCELLED);
	settle(fake);
}

static void cancelled_sync_of_a_nested_level_leaves_the_others(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = ask(fake, 1, 0, 2);
	fake_answer(fake, HF__GRANTED);
	(void)fake_sent(fake, HF__SYNC);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	(void)check_sent(fake, HF__SETTLE, 1);
	fake_answer(fake, HF__DONE);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	fake_release_done(fake, 1, 0);
}

static void cancelled_sync_of_a_nested_level_that_is_answered_later(void **state)
{
	struct fake *fake = *state;
	fake->holds_on = true;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = ask(fake, 1, 0, 2);
	fake_answer(fake, HF__GRANTED);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	acknowledge(fake, 0);
	(void)check_sent(fake, HF__SETTLE, 1);
	fake_answer(fake, HF__DONE);
	fake_release_done(fake, 1, 0);
}

static void closing_releases_a_hold_that_is_synced(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin(fake, 1, 0);
	struct hf__op *close = fake_start(fake, .action = HF__OP_CLOSE);
	check_result(op, HF_ECLOSED);
	settle(fake);
	check_result(close, 0);
}

/* The lease may have expired when the replicas answer: the next ask renews it. */
static void grant_whose_lease_is_over_is_asked_for_again(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 1, .lease_ms = 500,
	                               .replicas = 1);
	fake_answer(fake, HF__GRANTED);
	fake_advance(fake, 600);
	acknowledge(fake, 1);
	check_waits(op);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	acknowledge(fake, 1);
	check_result(op, 0);
	assert_true(fake_remaining(fake, 1) > 0);
}

static void hold_knows_how_durable_its_latest_grant_was(void **state)
{
	struct fake *fake = *state;
	const struct hf__hold *hold = hold_durably(fake, 1);
	struct hf__op *op = ask(fake, 1, 0, -1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(hold->replicas, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(grant_counts_when_enough_replicas_have_it),
		fake_test(sync_is_about_the_hold_and_its_lease),
		fake_test(validity_counts_from_the_ask_and_not_from_the_sync),
		fake_test(token_of_the_grant_is_kept_for_the_call),
		fake_test(call_without_the_wish_sends_no_sync),
		fake_test(default_is_for_calls_that_do_not_say_otherwise),
		fake_test(handed_over_hold_is_synced_too),
		fake_test(semaphore_is_granted_after_the_sync),
		fake_test(permits_are_granted_together_after_the_sync),
		fake_test(latch_has_no_grant_to_sync),
		fake_test(grant_that_too_few_replicas_have_is_released),
		fake_test(next_waiter_asks_after_the_release),
		fake_test(semaphore_gives_its_permits_back),
		fake_test(nested_level_is_released_alone),
		fake_test(nested_level_that_is_acknowledged_counts),
		fake_test(refused_sync_releases_the_hold),
		fake_test(hold_that_is_gone_is_asked_for_again),
		fake_test(call_whose_grant_is_gone_has_its_own_deadline_again),
		fake_test(nested_level_of_a_hold_that_is_gone_is_lost),
		fake_test(unanswered_sync_is_repeated_after_another_ask),
		fake_test(sync_waits_for_the_next_connection),
		fake_test(grant_that_stays_unknown_is_given_up_and_released),
		fake_test(grant_without_a_link_has_its_time),
		fake_test(reason_why_it_cannot_be_known_is_the_error),
		fake_test(sync_without_memory_fails_the_call),
		fake_test(call_may_sync_for_longer_than_it_may_wait),
		fake_test(call_that_tries_once_syncs_as_well),
		fake_test(sync_without_an_answer_is_withdrawn_and_the_hold_released),
		fake_test(cancelled_sync_leaves_nothing),
		fake_test(cancelled_sync_that_is_answered_later_leaves_nothing),
		fake_test(ask_that_was_cancelled_before_its_grant_leaves_nothing),
		fake_test(cancelled_sync_of_a_nested_level_leaves_the_others),
		fake_test(cancelled_sync_of_a_nested_level_that_is_answered_later),
		fake_test(closing_releases_a_hold_that_is_synced),
		fake_test(grant_whose_lease_is_over_is_asked_for_again),
		fake_test(hold_knows_how_durable_its_latest_grant_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
