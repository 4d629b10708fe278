/*
 * Checks notes of waiters: when a call that waits leaves one, renews it, and asks for its removal.
 */
#include <stdio.h>

#include "core/note.h"
#include "fake.h"

static int setup_described(void **state)
{
	(void)fake_setup_linked(state);
	struct fake *fake = *state;
	snprintf(fake->core.config.description, sizeof fake->core.config.description,
	         "host\n12\ntext");
	return 0;
}

#define described_test(name) cmocka_unit_test_setup_teardown(name, setup_described, fake_teardown)

/* Two asks are answered, and it listens in between. */
static struct hf__op *begin_wait(struct fake *fake, struct hf__op *op)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fake_sent(fake, HF__ASK)->waited_ms, 0);
		fake_answer_busy(fake, 500000);
	}
	check_nothing_sent(fake);
	check_waits(op);
	return op;
}

/* The ask that leaves the first note is in flight. */
static struct hf__op *wait_a_second(struct fake *fake)
{
	struct hf__op *op = begin_wait(fake, fake_acquire(fake, 1));
	fake_advance(fake, HF__NOTE_AFTER_MS - 1);
	check_nothing_sent(fake);
	fake_advance(fake, 1);
	assert_int_equal(check_sent(fake, HF__ASK, 1)->waited_ms, HF__NOTE_AFTER_MS);
	return op;
}

static void a_note_is_left_after_a_second_and_renewed_by_each_poll(void **state)
{
	struct fake *fake = *state;
	int64_t before = fake->now;
	(void)wait_a_second(fake);
	for (int i = 0; i < 5; i++) {
		int64_t last = fake->now;
		fake_answer_busy(fake, 500000);
		check_nothing_sent(fake);
		while (fake_pending(fake) == 0)
			fake_advance(fake, 1);
		/* The note lasts for 9 s. */
		assert_true(fake->now - last <= 4000);
		assert_int_equal(check_sent(fake, HF__ASK, 1)->waited_ms, fake->now - before);
	}
}

static void a_wait_that_left_a_note_is_settled(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = wait_a_second(fake);
	fake_answer_busy(fake, 500000);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	assert_true(check_sent(fake, HF__SETTLE, 0)->waited_ms > 0);
	fake_answer(fake, HF__GONE);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 0);
}

/* Its call is over before the ask is answered. */
static void a_note_that_arrives_late_is_settled(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin_wait(fake, fake_acquire_within(fake, 1, HF__NOTE_AFTER_MS + 500));
	fake_advance(fake, HF__NOTE_AFTER_MS + 500);
	check_result(op, HF_EUNKNOWN);
	assert_true(fake_sent(fake, HF__ASK)->waited_ms > 0);
	fake_answer_busy(fake, 500000);
	assert_true(check_sent(fake, HF__SETTLE, 0)->waited_ms > 0);
	fake_answer(fake, HF__GONE);
	assert_int_equal(fake->core.holds, 0);
}

/* The script that grants the lock removes the note, so nothing is left for the release. */
static void a_grant_needs_no_further_removal(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = wait_a_second(fake);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	struct hf__op *level = fake_acquire(fake, 1);
	assert_int_equal(check_sent(fake, HF__ASK, 2)->waited_ms, 0);
	fake_answer(fake, HF__GRANTED);
	check_result(level, 0);
	fake_release_done(fake, 1, 1);
	(void)fake_release(fake, 1);
	assert_int_equal(check_sent(fake, HF__SETTLE, 0)->waited_ms, 0);
	fake_answer(fake, HF__DONE);
}

static void a_hand_over_removes_the_note_of_the_next_holder(void **state)
{
	struct fake *fake = *state;
	struct hf__op *waiter = wait_a_second(fake);
	fake_answer_busy(fake, 500000);
	struct hf__op *op =
		fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 2, .wait_ms = HF_NOWAIT);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	(void)fake_release(fake, 2);
	assert_true(fake_sent(fake, HF__MOVE)->waited_ms > 0);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
}

static void a_client_without_a_description_leaves_no_note(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = begin_wait(fake, fake_acquire(fake, 1));
	while (fake_pending(fake) == 0)
		fake_advance(fake, 1);
	assert_int_equal(fake_sent(fake, HF__ASK)->waited_ms, 0);
	fake_answer_busy(fake, 500000);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	check_nothing_sent(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		described_test(a_note_is_left_after_a_second_and_renewed_by_each_poll),
		described_test(a_wait_that_left_a_note_is_settled),
		described_test(a_note_that_arrives_late_is_settled),
		described_test(a_grant_needs_no_further_removal),
		described_test(a_hand_over_removes_the_note_of_the_next_holder),
		fake_test(a_client_without_a_description_leaves_no_note),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
