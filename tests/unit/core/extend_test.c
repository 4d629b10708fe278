/* Permits that are extended, one call at a time; answers that are late or missing; lost permits. */
#include "fake.h"

#define SHORT INT64_C(9000)  /* a lease shorter than the watchdog's */
#define LONG  INT64_C(90000) /* a longer one */

struct permit {
	struct hf__lock *lock;
	struct hf__hold *hold;
	hf_permit_id id;
};

static struct hf__lock *open_permits(struct fake *fake)
{
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__PERMITS, "seats");
	assert_non_null(lock);
	fake->lock[fake->locks++] = lock;
	return lock;
}

static struct hf__op *ask(struct fake *fake, struct hf__lock *lock, int64_t lease_ms)
{
	return fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .amount = 1,
	                     .lease_ms = lease_ms);
}

/* A permit that is held; lease 0 is the watchdog's. */
static struct permit take(struct fake *fake, int64_t lease_ms)
{
	struct permit permit = {.lock = open_permits(fake)};
	struct hf__op *op = ask(fake, permit.lock, lease_ms);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	permit.hold = hf__hold_find(permit.lock, op->owner);
	assert_non_null(permit.hold);
	unsigned char id[HF__PERMIT_SIZE];
	hf__permit_id(&fake->core, op->owner, id);
	hf__permit_write(id, permit.id);
	return permit;
}

static struct hf__op *extend(struct fake *fake, const struct permit *permit, int64_t lease_ms)
{
	return fake_start_on(fake, permit->lock, .action = HF__OP_COMMAND,
	                     .command = HF__PERMITS_EXTEND, .amount = 1, .lease_ms = lease_ms,
	                     .permit = &permit->id);
}

static int64_t left_of(struct fake *fake, const struct permit *permit)
{
	return hf__lock_remaining(permit->lock, permit->hold->owner, fake->now, NULL);
}

/* The first command renews the permit, with this lease; it is confirmed. */
static void check_renewed(struct fake *fake, int64_t lease_ms)
{
	const struct hf__cmd *cmd = fake_sent(fake, HF__RENEW);
	assert_int_equal(cmd->items, 1);
	assert_int_equal(cmd->item[0].lease_ms, lease_ms);
	fake_answer_renewal(fake, true);
	check_nothing_sent(fake);
}

static void one_extension_of_a_permit_at_a_time(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, 0), other = take(fake, 0);
	struct hf__op *first = extend(fake, &permit, LONG);
	struct hf__op *second = extend(fake, &permit, SHORT);
	assert_int_equal(fake_pending(fake), 1);
	struct hf__op *elsewhere = extend(fake, &other, SHORT);
	assert_int_equal(fake_pending(fake), 2);
	assert_int_equal(fake_sent(fake, HF__PERMITS_EXTEND)->lease_ms, LONG);
	fake_answer(fake, HF__DONE);
	check_result(first, 0);
	fake_answer(fake, HF__DONE);
	check_result(elsewhere, 0);
	check_waits(second);
	fake_turn(fake);
	assert_int_equal(fake_sent(fake, HF__PERMITS_EXTEND)->lease_ms, SHORT);
	fake_answer(fake, HF__DONE);
	check_result(second, 0);
	assert_in_range(left_of(fake, &permit), 1, SHORT);
}

static void extension_that_waits_for_another_ends_in_time(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, 0);
	(void)extend(fake, &permit, LONG);
	struct hf__op *second = extend(fake, &permit, SHORT);
	struct hf__op *third = extend(fake, &permit, SHORT);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(second, HF_EUNREACHABLE);
	check_result(third, HF_EUNREACHABLE);
}

static void extended_permit_is_not_renewed_by_an_earlier_failure(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, 0);
	struct hf__op *first = extend(fake, &permit, LONG);
	struct hf__op *second = extend(fake, &permit, SHORT);
	fake_answer(fake, HF__FAILED);
	check_result(first, HF_EREFUSED);
	fake_turn(fake);
	fake_answer(fake, HF__DONE);
	check_result(second, 0);
	fake_advance(fake, SHORT / 2);
	check_nothing_sent(fake);
	fake_advance(fake, SHORT / 2);
	assert_int_equal(permit.hold->state, HF__HOLD_LOST);
}

static void unanswered_extension_does_not_end_the_watchdog(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, 0);
	struct hf__op *op = extend(fake, &permit, LONG);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNKNOWN);
	(void)fake_sent(fake, HF__PERMITS_EXTEND);
	fake_link_down(fake);
	fake_link_up(fake);
	check_renewed(fake, FAKE_WATCHDOG);
	fake_advance(fake, FAKE_WATCHDOG / 3);
	check_renewed(fake, FAKE_WATCHDOG);
	assert_true(left_of(fake, &permit) > FAKE_WATCHDOG * 9 / 10);
}

static void unanswered_shorter_lease_is_what_the_watchdog_renews_with(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, 0);
	struct hf__op *op = extend(fake, &permit, SHORT);
	fake_link_down(fake);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNKNOWN);
	fake_link_up(fake);
	for (int i = 0; i < 9; i++) {
		check_renewed(fake, SHORT);
		assert_in_range(left_of(fake, &permit), SHORT / 2, SHORT);
		fake_advance(fake, SHORT / 3);
	}
}

static void late_answer_to_an_extension_gives_the_watchdog_its_lease_back(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, 0);
	struct hf__op *op = extend(fake, &permit, SHORT);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNKNOWN);
	fake_turn(fake);
	assert_int_equal(fake_pending(fake), 2);
	(void)fake_sent(fake, HF__PERMITS_EXTEND);
	fake_answer(fake, HF__DONE);
	check_renewed(fake, SHORT);
	fake_advance(fake, SHORT / 3);
	check_renewed(fake, FAKE_WATCHDOG);
}

static void unanswered_extension_does_not_start_a_watchdog(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, SHORT);
	struct hf__op *op = extend(fake, &permit, LONG);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNKNOWN);
	fake_answer(fake, HF__DONE);
	fake_advance(fake, SHORT);
	assert_int_equal(permit.hold->state, HF__HOLD_LOST);
	check_nothing_sent(fake);
}

static void extension_notices_a_dead_connection_as_soon_as_a_renewal(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, 0);
	fake->core.config.watchdog_ms = 900;
	struct hf__op *op = extend(fake, &permit, LONG);
	assert_int_equal(fake_sent(fake, HF__PERMITS_EXTEND)->answer_by - fake->now, 100);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
}

static void extension_that_was_answered_too_late_is_lost(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, SHORT);
	struct hf__op *op = fake_start_on(fake, permit.lock, .action = HF__OP_COMMAND,
	                                  .command = HF__PERMITS_EXTEND, .amount = 1,
	                                  .lease_ms = LONG, .wait_ms = LONG, .permit = &permit.id);
	fake->now += SHORT; /* no turn: the timer has not fired */
	assert_int_equal(left_of(fake, &permit), 0);
	fake_answer(fake, HF__DONE);
	check_result(op, HF_ELOST);
	assert_int_equal(left_of(fake, &permit), 0);
	CHECK_REPORTED(fake, HF_LOST);
}

static void extension_of_a_lost_permit_is_lost_and_not_sent(void **state)
{
	struct fake *fake = *state;
	struct permit permit = take(fake, SHORT);
	fake->now += SHORT;
	check_result(extend(fake, &permit, LONG), HF_ELOST);
	check_nothing_sent(fake);
	fake_link_down(fake);
	check_result(extend(fake, &permit, LONG), HF_ELOST);
}

static struct hf__op *release(struct fake *fake, const struct permit *permit)
{
	return fake_start_on(fake, permit->lock, .action = HF__OP_COMMAND,
	                     .command = HF__PERMITS_RELEASE, .amount = 1, .permit = &permit->id);
}

static void release_of_a_lost_permit_does_not_wait_for_a_connection(void **state)
{
	struct fake *fake = *state;
	struct permit lost = take(fake, SHORT), held = take(fake, LONG);
	fake_link_down(fake);
	fake_advance(fake, SHORT);
	struct hf__op *op = release(fake, &lost);
	check_result(op, HF_ELOST);
	check_detail(op, "lease of 9000 ms ended");
	op = release(fake, &held);
	check_waits(op);
	fake_link_up(fake);
	while (!hf__list_empty(&fake->sent))
		if (hf__list_item(fake->sent.next, struct hf__cmd, link)->verb == HF__RENEW)
			fake_answer_renewal(fake, true);
		else
			fake_answer(fake, HF__DONE);
	check_result(op, 0);
}

/* The server expires it a moment later, so it still has the permit. */
static void release_of_a_lost_permit_frees_it_and_is_lost(void **state)
{
	struct fake *fake = *state;
	struct permit lost = take(fake, SHORT);
	fake_advance(fake, SHORT);
	CHECK_REPORTED(fake, HF_AT_RISK, HF_LOST);
	struct hf__op *op = release(fake, &lost);
	(void)fake_sent(fake, HF__PERMITS_RELEASE);
	fake_answer(fake, HF__DONE);
	check_result(op, HF_ELOST);
	check_detail(op, "lease of 9000 ms ended");
	op = release(fake, &lost);
	fake_answer(fake, HF__GONE);
	check_result(op, HF_ENOTHELD);
}

static void permits_that_were_granted_too_late_are_asked_for_again(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = open_permits(fake);
	struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .amount = 2,
	                                  .lease_ms = SHORT, .wait_ms = LONG);
	(void)check_sent(fake, HF__ASK, 2);
	fake->now += SHORT;
	fake_answer(fake, HF__GRANTED);
	check_waits(op);
	(void)check_sent(fake, HF__ASK, 2);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	for (uint64_t i = 0; i < 2; i++)
		assert_in_range(hf__lock_remaining(lock, op->owner + i, fake->now, NULL), 1, SHORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(one_extension_of_a_permit_at_a_time),
		fake_test(extension_that_waits_for_another_ends_in_time),
		fake_test(extended_permit_is_not_renewed_by_an_earlier_failure),
		fake_test(unanswered_extension_does_not_end_the_watchdog),
		fake_test(unanswered_shorter_lease_is_what_the_watchdog_renews_with),
		fake_test(late_answer_to_an_extension_gives_the_watchdog_its_lease_back),
		fake_test(unanswered_extension_does_not_start_a_watchdog),
		fake_test(extension_notices_a_dead_connection_as_soon_as_a_renewal),
		fake_test(extension_that_was_answered_too_late_is_lost),
		fake_test(extension_of_a_lost_permit_is_lost_and_not_sent),
		fake_test(release_of_a_lost_permit_does_not_wait_for_a_connection),
		fake_test(release_of_a_lost_permit_frees_it_and_is_lost),
		fake_test(permits_that_were_granted_too_late_are_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
