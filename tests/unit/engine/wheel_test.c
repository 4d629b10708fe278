/* Checks the timer wheel: nothing early, nothing lost, nothing that was stopped. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/wheel.h"
#include "support/check.h"

#define START     INT64_C(1234567)
#define HOUR      INT64_C(3600000)
#define TEN_YEARS INT64_C(315576000000)
#define MANY      100000
#define MODELLED  300

static struct hf__wheel wheel;
static struct hf__timer timers[MANY];
static int64_t expected_at[MANY]; /* HF__NEVER: stopped */

static void begin(size_t count)
{
	hf__wheel_init(&wheel, START);
	for (size_t i = 0; i < count; i++) {
		hf__wheel_timer_init(&timers[i], (uint8_t)i);
		expected_at[i] = HF__NEVER;
	}
}

static void start(size_t i, int64_t at)
{
	hf__wheel_start(&wheel, &timers[i], at);
	expected_at[i] = at;
}

static void stop(size_t i)
{
	hf__wheel_stop(&wheel, &timers[i]);
	expected_at[i] = HF__NEVER;
}

/* Takes the timers that are due, each of which must be expected, and returns how many. */
static size_t take_all(int64_t now)
{
	size_t count = 0;
	struct hf__timer *timer;
	while ((timer = hf__wheel_take(&wheel))) {
		size_t i = (size_t)(timer - timers);
		assert_true(expected_at[i] <= now);
		assert_false(hf__wheel_is_running(timer));
		expected_at[i] = HF__NEVER;
		count++;
	}
	return count;
}

static size_t advance(int64_t now)
{
	hf__wheel_advance(&wheel, now);
	return take_all(now);
}

static int64_t earliest(size_t count)
{
	int64_t at = HF__NEVER;
	for (size_t i = 0; i < count; i++)
		at = expected_at[i] < at ? expected_at[i] : at;
	return at;
}

static void new_wheel_has_nothing_due(void **state)
{
	(void)state;
	begin(0);
	assert_true(hf__wheel_next(&wheel) == HF__NEVER);
	assert_null(hf__wheel_take(&wheel));
	assert_int_equal(advance(START + HOUR), 0);
}

static void timer_fires_at_its_time_and_not_before(void **state)
{
	(void)state;
	begin(1);
	start(0, START + 100);
	assert_true(hf__wheel_is_running(&timers[0]));
	assert_int_equal(advance(START), 0);
	assert_int_equal(advance(START + 99), 0);
	assert_true(hf__wheel_next(&wheel) == START + 100);
	assert_int_equal(advance(START + 100), 1);
	assert_int_equal(advance(START + 100 + HF__WHEEL_SLOTS), 0);
	assert_true(hf__wheel_next(&wheel) == HF__NEVER);
}

static void timer_of_a_later_revolution_waits_for_it(void **state)
{
	(void)state;
	begin(1);
	start(0, START + 5 * HF__WHEEL_SLOTS + 3);
	for (int turn = 0; turn <= 5; turn++)
		assert_int_equal(advance(START + turn * HF__WHEEL_SLOTS + 2), 0);
	assert_int_equal(advance(START + 5 * HF__WHEEL_SLOTS + 3), 1);
}

static void past_and_present_times_are_due_at_once(void **state)
{
	(void)state;
	begin(4);
	start(0, START);
	start(1, START - 1);
	start(2, START - HOUR);
	start(3, 0);
	assert_true(hf__wheel_next(&wheel) <= START);
	assert_int_equal(advance(START), 4);
}

static void time_of_never_is_a_stop(void **state)
{
	(void)state;
	begin(1);
	start(0, START + 1);
	start(0, HF__NEVER);
	assert_false(hf__wheel_is_running(&timers[0]));
	assert_int_equal(wheel.entries, 0);
	assert_int_equal(advance(START + HOUR), 0);
}

static void stopped_timer_does_not_fire(void **state)
{
	(void)state;
	begin(2);
	start(0, START + 10);
	start(1, START + 10);
	stop(0);
	stop(0);
	assert_false(hf__wheel_is_running(&timers[0]));
	assert_int_equal(wheel.entries, 1);
	assert_int_equal(advance(START + 10), 1);
	assert_int_equal(wheel.entries, 0);
}

static void moved_timer_fires_once_at_its_new_time(void **state)
{
	(void)state;
	begin(2);
	start(0, START + 10);
	start(0, START + 20);
	start(1, START + 2000);
	start(1, START + 15);
	assert_int_equal(wheel.entries, 2);
	assert_int_equal(advance(START + 14), 0);
	assert_int_equal(advance(START + 15), 1);
	assert_int_equal(advance(START + 19), 0);
	assert_int_equal(advance(START + 20), 1);
	assert_int_equal(advance(START + HOUR), 0);
}

static void stop_in_a_handler_holds_back_another_due_timer(void **state)
{
	(void)state;
	begin(3);
	for (size_t i = 0; i < 3; i++)
		start(i, START + 5);
	hf__wheel_advance(&wheel, START + 5);
	size_t first = (size_t)(hf__wheel_take(&wheel) - timers);
	expected_at[first] = HF__NEVER;
	stop((first + 1) % 3);
	assert_int_equal(take_all(START + 5), 1);
	assert_int_equal(wheel.entries, 0);
	assert_int_equal(advance(START + HOUR), 0);
}

static void due_timer_moved_in_a_handler_fires_later_only(void **state)
{
	(void)state;
	begin(2);
	start(0, START + 5);
	start(1, START + 5);
	hf__wheel_advance(&wheel, START + 5);
	size_t first = (size_t)(hf__wheel_take(&wheel) - timers);
	expected_at[first] = HF__NEVER;
	start(1 - first, START + 9);
	assert_null(hf__wheel_take(&wheel));
	assert_int_equal(advance(START + 8), 0);
	assert_int_equal(advance(START + 9), 1);
}

static void timer_restarted_in_its_handler_fires_again(void **state)
{
	(void)state;
	begin(1);
	start(0, START + 1);
	for (int64_t now = START + 1; now < START + 3000; now++) {
		hf__wheel_advance(&wheel, now);
		assert_ptr_equal(hf__wheel_take(&wheel), &timers[0]);
		start(0, now + 1);
		assert_null(hf__wheel_take(&wheel));
		assert_true(hf__wheel_next(&wheel) == now + 1);
	}
}

/* Otherwise a handler that starts a timer in the past would keep the loop running for ever. */
static void past_timer_started_in_a_handler_waits_for_the_next_advance(void **state)
{
	(void)state;
	begin(2);
	start(0, START + 1);
	hf__wheel_advance(&wheel, START + 1);
	assert_ptr_equal(hf__wheel_take(&wheel), &timers[0]);
	start(0, START);
	start(1, START + 1);
	assert_null(hf__wheel_take(&wheel));
	assert_true(hf__wheel_next(&wheel) <= START + 1);
	assert_int_equal(advance(START + 1), 2);
}

static void next_is_exact_after_an_advance(void **state)
{
	(void)state;
	begin(3);
	start(0, START + 50);
	start(1, START + 7000);
	start(2, START + TEN_YEARS);
	assert_true(hf__wheel_next(&wheel) == START + 50);
	stop(0);
	assert_true(hf__wheel_next(&wheel) <= START + 7000);
	assert_int_equal(advance(START + 50), 0);
	assert_true(hf__wheel_next(&wheel) == START + 7000);
	assert_int_equal(advance(START + 7000), 1);
	assert_true(hf__wheel_next(&wheel) == START + TEN_YEARS);
}

static void next_is_now_until_all_due_timers_are_taken(void **state)
{
	(void)state;
	begin(3);
	start(0, START + 5);
	start(1, START + 5);
	start(2, START + 40);
	hf__wheel_advance(&wheel, START + 5);
	assert_true(hf__wheel_next(&wheel) <= START + 5);
	expected_at[hf__wheel_take(&wheel) - timers] = HF__NEVER;
	assert_true(hf__wheel_next(&wheel) <= START + 5);
	assert_int_equal(take_all(START + 5), 1);
	assert_true(hf__wheel_next(&wheel) == START + 40);
}

/* Two timers of one slot, the one of the later revolution first: the earlier one counts. */
static void next_skips_later_revolutions_in_near_slots(void **state)
{
	(void)state;
	begin(3);
	start(0, START + HF__WHEEL_SLOTS + 2);
	start(1, START + HF__WHEEL_SLOTS - 1);
	start(2, START + 1);
	assert_int_equal(advance(START + 1), 1);
	assert_true(hf__wheel_next(&wheel) == START + HF__WHEEL_SLOTS - 1);
	assert_int_equal(advance(START + HF__WHEEL_SLOTS - 1), 1);
	assert_true(hf__wheel_next(&wheel) == START + HF__WHEEL_SLOTS + 2);
}

static void jump_of_an_hour_loses_nothing(void **state)
{
	(void)state;
	begin(MANY);
	for (size_t i = 0; i < MANY; i++)
		start(i, START + (int64_t)i * 73);
	size_t within = (size_t)(HOUR / 73) + 1;
	assert_int_equal(advance(START + HOUR), within);
	assert_true(hf__wheel_next(&wheel) == START + (int64_t)within * 73);
	assert_int_equal(advance(START + 3 * HOUR), MANY - within);
}

static void jump_of_nothing_does_nothing(void **state)
{
	(void)state;
	begin(1);
	start(0, START + 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(advance(START), 0);
	assert_int_equal(advance(START + 1), 1);
	assert_int_equal(advance(START + 1), 0);
}

static void time_that_goes_back_stands_still(void **state)
{
	(void)state;
	begin(2);
	start(0, START + 10);
	assert_int_equal(advance(START + 9), 0);
	assert_int_equal(advance(START - HOUR), 0);
	start(1, START + 5);
	hf__wheel_advance(&wheel, START);
	assert_int_equal(take_all(START + 9), 1);
	assert_int_equal(advance(START + 10), 1);
}

static void ten_years_are_waited_for(void **state)
{
	(void)state;
	begin(2);
	start(0, START + TEN_YEARS);
	start(1, HF__NEVER - 1);
	assert_int_equal(advance(START + TEN_YEARS - 1), 0);
	assert_true(hf__wheel_next(&wheel) == START + TEN_YEARS);
	assert_int_equal(advance(START + TEN_YEARS), 1);
	assert_true(hf__wheel_next(&wheel) == HF__NEVER - 1);
	assert_true(hf__wheel_is_running(&timers[1]));
}

static void many_timers_of_one_slot_fire_each_in_its_revolution(void **state)
{
	(void)state;
	begin(1000);
	for (size_t i = 0; i < 1000; i++)
		start(i, START + 7 + (int64_t)(i % 10) * HF__WHEEL_SLOTS);
	for (int turn = 0; turn < 10; turn++) {
		assert_int_equal(advance(START + 6 + turn * HF__WHEEL_SLOTS), 0);
		assert_int_equal(advance(START + 7 + turn * HF__WHEEL_SLOTS), 100);
	}
	assert_int_equal(wheel.entries, 0);
}

static void hundred_thousand_start_and_stop(void **state)
{
	(void)state;
	begin(MANY);
	for (size_t i = 0; i < MANY; i++)
		start(i, START + 30000);
	assert_int_equal(wheel.entries, MANY);
	for (size_t i = 0; i < MANY; i++)
		if (i % 4)
			stop(i);
	assert_int_equal(wheel.entries, MANY / 4);
	assert_int_equal(advance(START + 29999), 0);
	assert_int_equal(advance(START + 30000), MANY / 4);
	assert_int_equal(wheel.entries, 0);
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Advances from one due time to the next, and compares with the sorted times. */
static void hundred_thousand_random_times_come_out_like_sorted(void **state)
{
	static int64_t sorted[MANY];
	struct hf__random random = {.state = 11};
	size_t done = 0;

	(void)state;
	begin(MANY);
	for (size_t i = 0; i < MANY; i++) {
		sorted[i] = START + hf__random_between(&random, 1, 5000);
		start(i, sorted[i]);
	}
	qsort(sorted, MANY, sizeof sorted[0], compare_times);
	while (done < MANY) {
		int64_t now = hf__wheel_next(&wheel);
		size_t due = done;
		while (due < MANY && sorted[due] <= now)
			due++;
		assert_true(now == sorted[done]);
		assert_int_equal(advance(now), due - done);
		done = due;
	}
	assert_true(hf__wheel_next(&wheel) == HF__NEVER);
}

static int64_t random_time(struct hf__random *random, int64_t now)
{
	switch (hf__random_between(random, 0, 5)) {
	case 0: return now - hf__random_between(random, 0, 2000);
	case 1: return now + hf__random_between(random, 0, 3);
	case 2: return now + HF__WHEEL_SLOTS * hf__random_between(random, 0, 4);
	case 3: return now + hf__random_between(random, 0, HOUR);
	case 4: return now + hf__random_between(random, 0, TEN_YEARS);
	default: return now + hf__random_between(random, 0, 2 * HF__WHEEL_SLOTS);
	}
}

static int64_t random_step(struct hf__random *random)
{
	static const int64_t most[] = {0, 1, 5, 100, HF__WHEEL_SLOTS, 5 * HF__WHEEL_SLOTS, HOUR};
	return hf__random_between(random, 0, most[hf__random_between(random, 0, 6)]);
}

static void change_some(struct hf__random *random, int64_t now)
{
	for (int64_t n = hf__random_between(random, 0, 20); n > 0; n--) {
		size_t i = (size_t)hf__random_between(random, 0, MODELLED - 1);
		if (hf__random_between(random, 0, 3))
			start(i, random_time(random, now));
		else
			stop(i);
	}
}

/* Takes the due timers while handlers change others, and checks that none was missed. */
static void take_and_change(struct hf__random *random, int64_t now)
{
	static bool due[MODELLED];
	for (size_t i = 0; i < MODELLED; i++)
		due[i] = expected_at[i] <= now;
	struct hf__timer *timer;
	while ((timer = hf__wheel_take(&wheel))) {
		size_t i = (size_t)(timer - timers);
		assert_true(due[i]);
		due[i] = false;
		expected_at[i] = HF__NEVER;
		size_t other = (size_t)hf__random_between(random, 0, MODELLED - 1);
		int64_t what = hf__random_between(random, 0, 5);
		if (what > 1)
			continue;
		due[other] = false;
		if (what == 0)
			start(other, random_time(random, now));
		else
			stop(other);
	}
	for (size_t i = 0; i < MODELLED; i++)
		assert_false(due[i]);
}

static void random_changes_match_a_naive_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct hf__random random = {.state = seed};
		int64_t now = START;
		begin(MODELLED);
		for (int round = 0; round < 1000; round++) {
			change_some(&random, now);
			assert_true(hf__wheel_next(&wheel) <= earliest(MODELLED));
			now += random_step(&random);
			hf__wheel_advance(&wheel, now);
			take_and_change(&random, now);
			assert_true(hf__wheel_next(&wheel) <= earliest(MODELLED));
		}
		assert_int_equal(advance(now + 2 * TEN_YEARS) > 0, 1);
		assert_int_equal(wheel.entries, 0);
		assert_true(earliest(MODELLED) == HF__NEVER);
	}
}

/* Without changes in between the next time is exact and not only a lower bound. */
static void next_matches_a_naive_model_after_each_advance(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed <= 110; seed++) {
		struct hf__random random = {.state = seed};
		int64_t now = START;
		begin(MODELLED);
		for (int round = 0; round < 500; round++) {
			change_some(&random, now);
			/*
			 * After a stop next() may be too early; an advance up to it makes it exact.
			 */
			now = hf__wheel_next(&wheel) < HF__NEVER && hf__wheel_next(&wheel) > now
			              ? hf__wheel_next(&wheel)
			              : now + random_step(&random);
			bool is_exact = hf__wheel_next(&wheel) <= now;
			advance(now);
			if (is_exact)
				assert_true(hf__wheel_next(&wheel) == earliest(MODELLED));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_wheel_has_nothing_due),
		cmocka_unit_test(timer_fires_at_its_time_and_not_before),
		cmocka_unit_test(timer_of_a_later_revolution_waits_for_it),
		cmocka_unit_test(past_and_present_times_are_due_at_once),
		cmocka_unit_test(time_of_never_is_a_stop),
		cmocka_unit_test(stopped_timer_does_not_fire),
		cmocka_unit_test(moved_timer_fires_once_at_its_new_time),
		cmocka_unit_test(stop_in_a_handler_holds_back_another_due_timer),
		cmocka_unit_test(due_timer_moved_in_a_handler_fires_later_only),
		cmocka_unit_test(timer_restarted_in_its_handler_fires_again),
		cmocka_unit_test(past_timer_started_in_a_handler_waits_for_the_next_advance),
		cmocka_unit_test(next_is_exact_after_an_advance),
		cmocka_unit_test(next_is_now_until_all_due_timers_are_taken),
		cmocka_unit_test(next_skips_later_revolutions_in_near_slots),
		cmocka_unit_test(jump_of_an_hour_loses_nothing),
		cmocka_unit_test(jump_of_nothing_does_nothing),
		cmocka_unit_test(time_that_goes_back_stands_still),
		cmocka_unit_test(ten_years_are_waited_for),
		cmocka_unit_test(many_timers_of_one_slot_fire_each_in_its_revolution),
		cmocka_unit_test(hundred_thousand_start_and_stop),
		cmocka_unit_test(hundred_thousand_random_times_come_out_like_sorted),
		cmocka_unit_test(random_changes_match_a_naive_model),
		cmocka_unit_test(next_matches_a_naive_model_after_each_advance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
