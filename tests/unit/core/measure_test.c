/* What the core measures: exact sums of short stories on the virtual clock. */
#include "fake.h"

#define THIRD (FAKE_WATCHDOG / 3)

static int setup(void **state)
{
	(void)fake_setup(state);
	struct fake *fake = *state;
	fake->core.metrics = check_alloc(sizeof *fake->core.metrics);
	fake_link_up(fake);
	return 0;
}

static int teardown(void **state)
{
	struct hf__metrics *metrics = ((struct fake *)*state)->core.metrics;
	int rc = fake_teardown(state);
	free(metrics);
	return rc;
}

#define metrics_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Without a turn: nothing is due meanwhile. */
static void pass_us(struct fake *fake, int64_t us)
{
	fake->us += us;
	fake->now += fake->us / 1000;
	fake->us %= 1000;
}

static uint64_t count_of(const struct hf__histogram *histogram)
{
	uint64_t count = 0;
	for (size_t i = 0; i < HF__METRICS_BUCKETS; i++)
		count += histogram->count[i];
	return count;
}

static void check_histogram(const struct hf__histogram *histogram, uint64_t count, uint64_t sum)
{
	assert_int_equal(count_of(histogram), count);
	assert_int_equal(histogram->sum, sum);
}

static struct hf__histogram *waits(struct fake *fake, enum hf__measure_result result)
{
	return &fake->core.metrics->kind[HF_REENTRANT].wait[result];
}

static struct hf__histogram *holds(struct fake *fake, enum hf__measure_end end)
{
	return &fake->core.metrics->kind[HF_REENTRANT].hold[end];
}

/* No acquire, and no end of a hold, was counted except for these. */
static void check_totals(struct fake *fake, uint64_t acquires, uint64_t ended)
{
	uint64_t found = 0, over = 0;
	for (int kind = 0; kind < HF__KINDS; kind++) {
		for (int i = 0; i < HF__RESULTS; i++)
			found += count_of(&fake->core.metrics->kind[kind].wait[i]);
		for (int i = 0; i < HF__ENDS; i++)
			over += count_of(&fake->core.metrics->kind[kind].hold[i]);
	}
	assert_int_equal(found, acquires);
	assert_int_equal(over, ended);
}

static void acquire(struct fake *fake, uint64_t owner, int64_t us)
{
	struct hf__op *op = fake_acquire(fake, owner);
	pass_us(fake, us);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

static void release(struct fake *fake, uint64_t owner, int64_t us)
{
	struct hf__op *op = fake_release(fake, owner);
	pass_us(fake, us);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
}

/* ---- buckets ---- */

static void value_on_a_bound_belongs_to_its_bucket(void **state)
{
	struct fake *fake = *state;
	size_t bounds;
	const uint64_t *bound = hf__measure_durations(&bounds);
	assert_int_equal(bounds, HF__METRICS_BUCKETS - 1);
	assert_int_equal(bound[0], 100);
	assert_int_equal(bound[bounds - 1], 600 * 1000000);
	struct hf__histogram *trips = &fake->core.metrics->round_trip;
	for (size_t i = 0; i < bounds; i++) {
		for (uint64_t more = 0; more < 2; more++) {
			struct hf__op *op =
				fake_start(fake, .action = HF__OP_PING, .wait_ms = HF__LONGEST_MS);
			uint64_t before = trips->count[i + more];
			pass_us(fake, (int64_t)(bound[i] + more));
			fake_answer(fake, HF__DONE);
			check_result(op, 0);
			assert_int_equal(trips->count[i + more], before + 1);
		}
	}
	assert_int_equal(trips->count[bounds], 1);
}

/* The search begins at a bucket that depends on the number of bits. */
static void every_number_of_bits_finds_its_bucket(void **state)
{
	struct fake *fake = *state;
	size_t bounds;
	const uint64_t *bound = hf__measure_durations(&bounds);
	struct hf__histogram *trips = &fake->core.metrics->round_trip;
	for (int bits = 0; bits < 40; bits++)
		for (int64_t us = (INT64_C(1) << bits) - 1; us <= (INT64_C(1) << bits); us++) {
			size_t right = 0;
			while ((uint64_t)us > bound[right])
				right++;
			struct hf__op *op =
				fake_start(fake, .action = HF__OP_PING, .wait_ms = HF__LONGEST_MS);
			uint64_t before = trips->count[right];
			pass_us(fake, us);
			fake_answer(fake, HF__DONE);
			check_result(op, 0);
			assert_int_equal(trips->count[right], before + 1);
		}
}

static void answer_after_hours_is_counted_as_that(void **state)
{
	struct fake *fake = *state;
	int64_t us = INT64_C(5) * 3600 * 1000000;
	struct hf__op *op = fake_start(fake, .action = HF__OP_PING, .wait_ms = HF__LONGEST_MS);
	pass_us(fake, us);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
	check_histogram(&fake->core.metrics->round_trip, 1, (uint64_t)us);
}

/* ---- waits and holds ---- */

static void pair_is_one_wait_one_hold_and_two_round_trips(void **state)
{
	struct fake *fake = *state;
	acquire(fake, 1, 1500);
	check_histogram(waits(fake, HF__RESULT_GRANTED), 1, 1500);
	check_totals(fake, 1, 0);
	pass_us(fake, 40000);
	release(fake, 1, 700);
	check_histogram(holds(fake, HF__END_RELEASED), 1, 40700);
	check_histogram(&fake->core.metrics->round_trip, 2, 2200);
	check_totals(fake, 1, 1);
}

static void nested_level_waits_and_is_the_same_hold(void **state)
{
	struct fake *fake = *state;
	acquire(fake, 1, 100);
	acquire(fake, 1, 200);
	release(fake, 1, 300);
	check_totals(fake, 2, 0);
	release(fake, 1, 400);
	check_histogram(waits(fake, HF__RESULT_GRANTED), 2, 300);
	check_histogram(holds(fake, HF__END_RELEASED), 1, 900);
	check_totals(fake, 2, 1);
}

static void wait_is_counted_by_its_result(void **state)
{
	struct fake *fake = *state;
	(void)fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 1, .wait_ms = HF_NOWAIT);
	pass_us(fake, 250);
	fake_answer_busy(fake, 5000);
	check_histogram(waits(fake, HF__RESULT_BUSY), 1, 250);

	(void)fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 1, .wait_ms = HF_NOWAIT);
	pass_us(fake, 350);
	fake_answer(fake, HF__FAILED);
	check_histogram(waits(fake, HF__RESULT_ERROR), 1, 350);
	while (fake_pending(fake))
		fake_answer(fake, HF__DONE); /* what the refused one may have left */

	struct hf__op *op = fake_acquire_within(fake, 1, 50);
	fake_answer_busy(fake, 5000);
	fake_answer_busy(fake, 5000);
	fake_advance(fake, 60);
	check_result(op, HF_ETIMEDOUT);
	assert_int_equal(count_of(waits(fake, HF__RESULT_TIMEOUT)), 1);
	assert_in_range(waits(fake, HF__RESULT_TIMEOUT)->sum, 50000, 61000);

	op = fake_acquire(fake, 2);
	fake_answer_busy(fake, 5000);
	pass_us(fake, 7000);
	fake_set_time(fake);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	check_histogram(waits(fake, HF__RESULT_CANCELLED), 1, 7000);
	check_totals(fake, 4, 0);
}

static void wait_without_an_answer_is_unknown(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, 50);
	fake_link_down(fake);
	fake_advance(fake, 60);
	check_result(op, HF_EUNKNOWN);
	assert_int_equal(count_of(waits(fake, HF__RESULT_UNKNOWN)), 1);
	check_histogram(&fake->core.metrics->round_trip, 0, 0);
	check_totals(fake, 1, 0);
}

static void handed_over_hold_ends_and_the_next_begins(void **state)
{
	struct fake *fake = *state;
	acquire(fake, 1, 0);
	struct hf__op *waiter = fake_acquire(fake, 2);
	pass_us(fake, 3000);
	(void)fake_release(fake, 1);
	pass_us(fake, 500);
	fake_answer(fake, HF__GRANTED);
	check_result(waiter, 0);
	check_histogram(holds(fake, HF__END_RELEASED), 1, 3500);
	check_histogram(waits(fake, HF__RESULT_GRANTED), 2, 3500);
	pass_us(fake, 1000);
	release(fake, 2, 0);
	check_histogram(holds(fake, HF__END_RELEASED), 2, 4500);
	assert_int_equal(fake->core.stats.handovers, 1);
}

/* The owner has given it up, though nobody knows when the server did. */
static void release_without_an_answer_ends_the_hold_once(void **state)
{
	struct fake *fake = *state;
	acquire(fake, 1, 0);
	struct hf__op *op = fake_release(fake, 1);
	fake_link_down(fake);
	fake_advance(fake, FAKE_TIMEOUT + 10);
	check_result(op, HF_EUNKNOWN);
	assert_int_equal(count_of(holds(fake, HF__END_RELEASED)), 1);
	fake_link_up(fake);
	while (fake_pending(fake))
		fake_answer(fake, HF__DONE);
	check_totals(fake, 1, 1);
}

static void holds_of_a_closed_client_end_with_it(void **state)
{
	struct fake *fake = *state;
	acquire(fake, 1, 0);
	pass_us(fake, 9000);
	(void)fake_start(fake, .action = HF__OP_CLOSE);
	check_histogram(holds(fake, HF__END_CLOSED), 1, 9000);
	fake_answer(fake, HF__DONE);
	check_totals(fake, 1, 1);
}

/* ---- losses ---- */

static void lost_hold_is_counted_by_its_reason(void **state)
{
	struct fake *fake = *state;
	const uint64_t *losses = fake->core.losses;
	acquire(fake, 1, 0);
	fake_advance(fake, THIRD);
	fake_answer_renewal(fake, false);
	assert_int_equal(losses[HF__LOST_GONE], 1);
	assert_int_equal(count_of(holds(fake, HF__END_LOST)), 1);
	fake_report(fake);

	(void)fake_hold(fake, 2, 1000);
	fake_advance(fake, 1000);
	assert_int_equal(losses[HF__LOST_EXPIRED], 1);
	assert_int_equal(count_of(holds(fake, HF__END_EXPIRED)), 1);
	fake_report(fake);

	(void)fake_hold(fake, 3, 0);
	(void)fake_start(fake, .action = HF__OP_FORCE);
	pass_us(fake, 2000);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 1});
	assert_int_equal(losses[HF__LOST_FORCED], 1);
	check_histogram(holds(fake, HF__END_FORCED), 1, 2000);
	fake_report(fake);

	(void)fake_hold(fake, 4, 0);
	fake_link_down(fake);
	fake_advance(fake, FAKE_WATCHDOG);
	assert_int_equal(losses[HF__LOST_UNREACHABLE], 1);
	assert_int_equal(count_of(holds(fake, HF__END_LOST)), 2);
	fake_report(fake);
	assert_int_equal(fake->core.stats.losses, 4);
	assert_int_equal(fake->core.stats.at_risk, 2);
	assert_int_equal(fake->core.recovered, 0);
}

/* ---- renewals ---- */

static void renewal_has_a_lag_and_a_margin(void **state)
{
	struct fake *fake = *state;
	struct hf__hold *hold = fake_hold(fake, 1, 0);
	fake_advance(fake, THIRD);
	pass_us(fake, 3000);
	int64_t left_ms = hold->valid_until - fake->now;
	fake_answer_renewal(fake, true);
	check_histogram(&fake->core.metrics->renewal_lag, 1, 3000);
	check_histogram(&fake->core.metrics->renewal_margin, 1,
	                (uint64_t)(left_ms * 1000000 / FAKE_WATCHDOG));
	/* About two thirds are left: above 0.5, and not above 0.66. */
	assert_int_equal(fake->core.metrics->renewal_margin.count[5], 1);
}

static void late_renewal_has_a_small_margin_and_recovers_the_hold(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	fake_link_down(fake);
	fake_advance(fake, FAKE_WATCHDOG - 3000);
	assert_int_equal(fake->core.stats.at_risk, 1);
	fake_link_up(fake);
	fake_answer_renewal(fake, true);
	assert_int_equal(fake->core.recovered, 1);
	/* 3000 ms are left, less the drift of 302 ms: a near miss. */
	check_histogram(&fake->core.metrics->renewal_margin, 1, 89933);
	assert_int_equal(fake->core.metrics->renewal_margin.count[1], 1);
	check_histogram(&fake->core.metrics->renewal_lag, 1, (27000 - THIRD) * 1000);
}

static void waiter_that_is_woken_in_vain_is_counted(void **state)
{
	struct fake *fake = *state;
	(void)fake_acquire(fake, 1);
	fake_answer_busy(fake, 5000);
	fake_answer_busy(fake, 5000); /* it listens, and asks once more */
	assert_int_equal(fake->core.false_wakeups, 0);
	fake_wake(fake, fake->lock[0]);
	fake_answer_busy(fake, 5000);
	assert_int_equal(fake->core.stats.wakeups, 1);
	assert_int_equal(fake->core.false_wakeups, 1);
	/* It also asks without being woken. */
	fake_advance(fake, 2 * HF__SLOW_POLL_MS);
	fake_answer_busy(fake, 5000);
	assert_int_equal(fake->core.false_wakeups, 1);
	fake_wake(fake, fake->lock[0]);
	fake_answer(fake, HF__GRANTED);
	assert_int_equal(fake->core.stats.wakeups, 2);
	assert_int_equal(fake->core.false_wakeups, 1);
}

/* ---- several holds, and none ---- */

static void permits_of_one_acquire_are_holds_of_their_own(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *permits = hf__lock_ref(&fake->core, HF__PERMITS, "seats");
	assert_non_null(permits);
	fake->lock[fake->locks++] = permits;
	struct hf__op *op = fake_start_on(fake, permits, .action = HF__OP_ACQUIRE, .amount = 3);
	pass_us(fake, 800);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	pass_us(fake, 5000);
	(void)fake_start(fake, .action = HF__OP_CLOSE);
	const struct hf__measure_kind *kind = &fake->core.metrics->kind[HF__PERMITS];
	check_histogram(&kind->wait[HF__RESULT_GRANTED], 1, 800);
	check_histogram(&kind->hold[HF__END_CLOSED], 3, 15000);
}

static void nothing_is_noted_without_metrics(void **state)
{
	struct fake *fake = *state;
	const struct hf__hold *hold = fake_hold(fake, 1, 0);
	assert_null(fake->core.metrics);
	assert_false(hold->measured);
	assert_int_equal(hold->cmd.sent_us, 0);
	fake_release_done(fake, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		metrics_test(value_on_a_bound_belongs_to_its_bucket),
		metrics_test(every_number_of_bits_finds_its_bucket),
		metrics_test(answer_after_hours_is_counted_as_that),
		metrics_test(pair_is_one_wait_one_hold_and_two_round_trips),
		metrics_test(nested_level_waits_and_is_the_same_hold),
		metrics_test(wait_is_counted_by_its_result),
		metrics_test(wait_without_an_answer_is_unknown),
		metrics_test(handed_over_hold_ends_and_the_next_begins),
		metrics_test(release_without_an_answer_ends_the_hold_once),
		metrics_test(holds_of_a_closed_client_end_with_it),
		metrics_test(lost_hold_is_counted_by_its_reason),
		metrics_test(renewal_has_a_lag_and_a_margin),
		metrics_test(late_renewal_has_a_small_margin_and_recovers_the_hold),
		metrics_test(waiter_that_is_woken_in_vain_is_counted),
		metrics_test(permits_of_one_acquire_are_holds_of_their_own),
		fake_test(nothing_is_noted_without_metrics),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
