/* A timer for poll() that counts the time during which the host was suspended. */
#include "alarm.h"

#include <assert.h>
#include <sys/timerfd.h>
#include <time.h>

int alarm_open(void)
{
	return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void alarm_set(int fd, int64_t at)
{
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / 1000),
	                                       .tv_nsec = (long)(at % 1000) * 1000000}};
	assert(at >= 0);
	if (fd >= 0)
		(void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}
