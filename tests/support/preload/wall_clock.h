/*
 * The other ways to read the wall clock, by the clock_gettime() of the library that includes this.
 */
#ifndef TESTS_SUPPORT_PRELOAD_WALL_CLOCK_H
#define TESTS_SUPPORT_PRELOAD_WALL_CLOCK_H

#include <sys/time.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec now;
	(void)zone;
	int rc = clock_gettime(CLOCK_REALTIME, &now);
	*ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	return rc;
}

EXPORT time_t time(time_t *ret_time)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

#endif
