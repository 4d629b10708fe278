/* The clock of the tests, and waiting for something to become true. */
#include "support/clock.h"

#include <time.h>

long long test_now_ms(void)
{
	struct timespec now;
	if (clock_gettime(CLOCK_BOOTTIME, &now))
		check_fail("CLOCK_BOOTTIME cannot be read");
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void test_pause(void)
{
	struct timespec beat = {.tv_nsec = 2000000};
	(void)nanosleep(&beat, NULL);
}

bool wait_until(bool (*condition)(void *arg), void *arg, long long timeout_ms)
{
	long long ends_at = test_now_ms() + timeout_ms;
	for (;;) {
		bool is_over = test_now_ms() >= ends_at;
		if (condition(arg))
			return true;
		if (is_over)
			return false;
		test_pause();
	}
}
