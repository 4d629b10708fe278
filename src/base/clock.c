/* The library's only clock: monotonic, and it counts the time the system is suspended. */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

int64_t hf__clock_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t hf__clock_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int hf__clock_poll_timeout(int64_t now, int64_t at)
{
	if (at == HF__NEVER)
		return -1;
	if (at <= now)
		return 0;
	return at - now > INT_MAX ? INT_MAX : (int)(at - now);
}
