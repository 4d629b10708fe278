/*
 * Checks which calls that waited in vain are entered in the history, and that none is entered
 * twice.
 */
#include <stdio.h>

#include "fake.h"

#define WAIT_MS 500

static int setup_kept(void **state)
{
	(void)fake_setup_linked(state);
	((struct fake *)*state)->core.config.history = 1000;
	return 0;
}

#define kept_test(name) cmocka_unit_test_setup_teardown(name, setup_kept, fake_teardown)

/* Two asks are answered, and it listens in between. */
static void find_busy(struct fake *fake)
{
	for (int i = 0; i < 2; i++) {
		(void)check_sent(fake, HF__ASK, 1);
		fake_answer_busy(fake, 500000);
	}
	check_nothing_sent(fake);
}

/* The entry of the oldest command, which settles. */
static struct hf__entry sent_entry(struct fake *fake)
{
	struct hf__entry entry;
	assert_true(hf__entry_make(&fake->core, check_sent(fake, HF__SETTLE, 0), &entry));
	return entry;
}

static struct hf__op *wait_in_vain(struct fake *fake)
{
	struct hf__op *op = fake_acquire_within(fake, 1, WAIT_MS);
	find_busy(fake);
	fake_advance(fake, WAIT_MS);
	check_result(op, HF_ETIMEDOUT);
	return op;
}

/* The call ends while its last ask is in flight. */
static void wait_for_the_last_answer(struct fake *fake)
{
	struct hf__op *op = fake_acquire_within(fake, 1, WAIT_MS);
	find_busy(fake);
	fake_advance(fake, WAIT_MS / 2);
	fake_wake(fake, fake->lock[0]);
	(void)check_sent(fake, HF__ASK, 1);
	fake_advance(fake, WAIT_MS);
	check_result(op, HF_EUNKNOWN);
}

static void a_wait_in_vain_is_entered(void **state)
{
	struct fake *fake = *state;
	(void)wait_in_vain(fake);
	struct hf__entry entry = sent_entry(fake);
	assert_int_equal(entry.gave_up, HF__GAVE_UP_TIMED_OUT);
	assert_int_equal(entry.waited_ms, WAIT_MS);
	assert_int_equal(entry.ago_ms, 0);
	assert_int_equal(entry.ms, -1);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer(fake, HF__GONE);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 0);
}

static void a_cancelled_wait_is_entered(void **state)
{
	struct fake *fake = *state;
	fake->core.config.history_contended = true;
	struct hf__op *op = fake_acquire(fake, 1);
	find_busy(fake);
	fake_advance(fake, 300);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	struct hf__entry entry = sent_entry(fake);
	assert_int_equal(entry.gave_up, HF__GAVE_UP_CANCELLED);
	assert_int_equal(entry.waited_ms, 300);
	fake_answer(fake, HF__GONE);
	assert_int_equal(fake->core.holds, 0);
}

/* A call that waits for another one of its process has not sent anything yet. */
static void a_wait_inside_the_process_is_entered(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 7, 0);
	struct hf__op *op = fake_acquire_within(fake, 1, 50);
	fake_advance(fake, 50);
	check_result(op, HF_ETIMEDOUT);
	assert_int_equal(sent_entry(fake).waited_ms, 50);
	fake_answer(fake, HF__GONE);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 1);
}

static void nobody_who_did_not_wait_is_entered(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op =
		fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 1, .wait_ms = HF_NOWAIT);
	fake_answer_busy(fake, 500000);
	check_result(op, HF_EBUSY);
	check_nothing_sent(fake);
	op = fake_acquire_within(fake, 1, WAIT_MS);
	fake_answer(fake, HF__FAILED);
	check_result(op, HF_EREFUSED);
	(void)check_sent(fake, HF__SETTLE, 0);
	struct hf__entry entry;
	assert_true(hf__entry_make(&fake->core, fake_sent(fake, HF__SETTLE), &entry));
	assert_int_equal(entry.gave_up, HF__GAVE_UP_NOT);
	fake_answer(fake, HF__GONE);
}

static void without_a_history_nothing_is_sent(void **state)
{
	struct fake *fake = *state;
	(void)wait_in_vain(fake);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 0);
}

static void semaphores_have_no_entries(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__SEMAPHORE, "permits");
	struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .owner = 1,
	                                  .amount = 1, .wait_ms = WAIT_MS);
	find_busy(fake);
	fake_advance(fake, WAIT_MS);
	check_result(op, HF_ETIMEDOUT);
	check_nothing_sent(fake);
	hf__lock_unref(&fake->core, lock);
}

/* The first command may have entered it, and there is no other reason for a second one. */
static void an_entry_that_was_not_answered_is_not_repeated(void **state)
{
	struct fake *fake = *state;
	(void)wait_in_vain(fake);
	(void)sent_entry(fake);
	fake_link_down(fake);
	assert_int_equal(fake->core.holds, 0);
	fake_link_up(fake);
	check_nothing_sent(fake);
}

/* The last ask is answered after its call has ended, so nothing is left to be removed. */
static void a_wait_whose_last_answer_is_late_is_entered(void **state)
{
	struct fake *fake = *state;
	wait_for_the_last_answer(fake);
	fake_answer_busy(fake, 500000);
	assert_int_equal(sent_entry(fake).gave_up, HF__GAVE_UP_TIMED_OUT);
	fake_answer(fake, HF__GONE);
	assert_int_equal(fake->core.holds, 0);
}

/* What an unanswered ask may have left is removed, but the entry is sent only once. */
static void a_repeated_removal_has_no_entry(void **state)
{
	struct fake *fake = *state;
	wait_for_the_last_answer(fake);
	fake_link_down(fake);
	fake_link_up(fake);
	struct hf__entry entry = sent_entry(fake);
	assert_int_equal(entry.gave_up, HF__GAVE_UP_TIMED_OUT);
	assert_true(entry.waited_ms >= WAIT_MS);
	fake_link_down(fake);
	fake_link_up(fake);
	entry = sent_entry(fake);
	assert_int_equal(entry.gave_up, HF__GAVE_UP_NOT);
	assert_int_equal(entry.ms, -1);
	fake_answer(fake, HF__GONE);
	assert_int_equal(fake->core.holds, 0);
}

static void a_server_that_is_not_ready_is_asked_again_for_a_while(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 1,
	                               .lease_ms = 12000, .wait_ms = WAIT_MS);
	find_busy(fake);
	fake_advance(fake, WAIT_MS);
	check_result(op, HF_ETIMEDOUT);
	int64_t gave_up_at = fake->now, last = 0;
	while (fake->core.holds > 0) {
		struct hf__entry entry = sent_entry(fake);
		assert_int_equal(entry.gave_up, HF__GAVE_UP_TIMED_OUT);
		assert_int_equal(entry.waited_ms, WAIT_MS);
		assert_int_equal(entry.ago_ms, fake->now - gave_up_at);
		last = entry.ago_ms;
		fake_answer(fake, HF__NOT_NOW);
		while (fake_pending(fake) == 0 && fake->core.holds > 0)
			fake_advance(fake, 1);
	}
	assert_true(last > 0);
	assert_int_equal(fake->now - gave_up_at, FAKE_TIMEOUT);
	check_nothing_sent(fake);
}

/* Its next acquire neither waits for the entry, nor is it mistaken for the one that gave up. */
static void the_owner_can_acquire_again_at_once(void **state)
{
	struct fake *fake = *state;
	(void)wait_in_vain(fake);
	(void)sent_entry(fake);
	struct hf__op *op = fake_acquire_within(fake, 1, WAIT_MS);
	assert_int_equal(fake_pending(fake), 2);
	fake_answer(fake, HF__GONE);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
}

/* A second call of the same owner was parked meanwhile. */
static void a_call_that_waited_for_the_first_one_begins_at_once(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, WAIT_MS);
	find_busy(fake);
	struct hf__op *second = fake_acquire(fake, 1);
	check_nothing_sent(fake);
	fake_advance(fake, WAIT_MS);
	check_result(op, HF_ETIMEDOUT);
	(void)sent_entry(fake);
	assert_int_equal(fake_pending(fake), 2);
	fake_answer(fake, HF__GONE);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(second, 0);
}

static void without_a_connection_nothing_is_entered_later(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, WAIT_MS);
	find_busy(fake);
	fake_link_down(fake);
	fake_advance(fake, WAIT_MS);
	check_result(op, HF_EUNREACHABLE);
	assert_int_equal(fake->core.holds, 0);
	fake_link_up(fake);
	check_nothing_sent(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(a_wait_in_vain_is_entered),
		kept_test(a_cancelled_wait_is_entered),
		kept_test(a_wait_inside_the_process_is_entered),
		kept_test(nobody_who_did_not_wait_is_entered),
		fake_test(without_a_history_nothing_is_sent),
		kept_test(semaphores_have_no_entries),
		kept_test(an_entry_that_was_not_answered_is_not_repeated),
		kept_test(a_wait_whose_last_answer_is_late_is_entered),
		kept_test(a_repeated_removal_has_no_entry),
		kept_test(a_server_that_is_not_ready_is_asked_again_for_a_while),
		kept_test(the_owner_can_acquire_again_at_once),
		kept_test(a_call_that_waited_for_the_first_one_begins_at_once),
		kept_test(without_a_connection_nothing_is_entered_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
