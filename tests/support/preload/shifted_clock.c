/*
 * A wall clock that is wrong by $HF_TEST_CLOCK_MS milliseconds, for servers that run with
 * LD_PRELOAD. Other clocks are right. Nothing here allocates, because a server's allocator may ask
 * for the time while it begins.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/preload/wall_clock.h"

static long shift_ms(void)
{
	const char *text = getenv("HF_TEST_CLOCK_MS");
	return text ? strtol(text, NULL, 10) : 0;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
	if (rc || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return rc;
	long ms = shift_ms();
	ret_time->tv_sec += ms / 1000;
	ret_time->tv_nsec += ms % 1000 * 1000000;
	if (ret_time->tv_nsec < 0) {
		ret_time->tv_sec--;
		ret_time->tv_nsec += 1000000000;
	} else if (ret_time->tv_nsec >= 1000000000) {
		ret_time->tv_sec++;
		ret_time->tv_nsec -= 1000000000;
	}
	return 0;
}
