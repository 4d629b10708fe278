/* Checks the clock: it only goes forward, its units agree, and points in time never overflow. */
#include <limits.h>
#include <time.h>

#include "base/clock.h"
#include "support/check.h"

static int64_t boottime_us(void)
{
	struct timespec ts;
	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &ts), 0);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void clock_counts_suspend(void **state)
{
	(void)state;
	int64_t before = boottime_us();
	int64_t us = hf__clock_us();
	int64_t after = boottime_us();
	assert_true(before <= us && us <= after);
}

static void milliseconds_are_microseconds_rounded_down(void **state)
{
	(void)state;
	int64_t before = hf__clock_us();
	int64_t ms = hf__clock_ms();
	int64_t after = hf__clock_us();
	assert_true(before / 1000 <= ms && ms <= after / 1000);
}

static void time_never_goes_back(void **state)
{
	(void)state;
	int64_t last = hf__clock_us();
	for (int i = 0; i < 10000; i++) {
		int64_t us = hf__clock_us();
		assert_true(us >= last);
		last = us;
	}
}

static void point_after_is_that_much_later(void **state)
{
	(void)state;
	assert_true(hf__clock_after(1000, 500) == 1500);
	assert_true(hf__clock_after(1000, 0) == 1000);
	assert_true(hf__clock_after(1000, -10) == 990);
}

static void point_beyond_all_time_is_never(void **state)
{
	(void)state;
	assert_true(hf__clock_after(1000, INT64_MAX) == HF__NEVER);
	assert_true(hf__clock_after(1000, INT64_MAX - 1000) == HF__NEVER);
	assert_true(hf__clock_after(1000, INT64_MAX - 1001) == HF__NEVER - 1);
	assert_true(hf__clock_after(HF__NEVER, 0) == HF__NEVER);
	assert_true(hf__clock_after(HF__NEVER, 1) == HF__NEVER);
}

static void poll_timeout_is_what_is_left(void **state)
{
	(void)state;
	assert_int_equal(hf__clock_poll_timeout(1000, 1001), 1);
	assert_int_equal(hf__clock_poll_timeout(1000, 4000), 3000);
	assert_int_equal(hf__clock_poll_timeout(1000, 1000), 0);
	assert_int_equal(hf__clock_poll_timeout(1000, 999), 0);
	assert_int_equal(hf__clock_poll_timeout(1000, 0), 0);
}

static void poll_timeout_of_never_is_endless(void **state)
{
	(void)state;
	assert_int_equal(hf__clock_poll_timeout(1000, HF__NEVER), -1);
}

static void poll_timeout_is_cut_to_what_poll_takes(void **state)
{
	(void)state;
	assert_int_equal(hf__clock_poll_timeout(0, (int64_t)INT_MAX), INT_MAX);
	assert_int_equal(hf__clock_poll_timeout(0, (int64_t)INT_MAX + 1), INT_MAX);
	assert_int_equal(hf__clock_poll_timeout(1000, HF__NEVER - 1), INT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock_counts_suspend),
		cmocka_unit_test(milliseconds_are_microseconds_rounded_down),
		cmocka_unit_test(time_never_goes_back),
		cmocka_unit_test(point_after_is_that_much_later),
		cmocka_unit_test(point_beyond_all_time_is_never),
		cmocka_unit_test(poll_timeout_is_what_is_left),
		cmocka_unit_test(poll_timeout_of_never_is_endless),
		cmocka_unit_test(poll_timeout_is_cut_to_what_poll_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
