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

void test_pause_after(long long waited_ms)
{
	long long pause_ms = waited_ms < 40 ? 2 : waited_ms > 200 ? 10 : waited_ms / 20;
	struct timespec pause = {.tv_nsec = (long)(pause_ms * 1000000)};
	(void)nanosleep(&pause, NULL);
}

bool wait_until(bool (*condition)(void *arg), void *arg, long long timeout_ms)
{
	long long began = test_now_ms();
	for (;;) {
		long long waited_ms = test_now_ms() - began;
		bool is_over = waited_ms >= timeout_ms;
		if (condition(arg))
			return true;
		if (is_over)
			return false;
		test_pause_after(waited_ms);
	}
}
