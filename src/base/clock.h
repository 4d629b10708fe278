/* The library's only clock: monotonic, and it counts the time the system is suspended. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdint.h>

/* Later than any point in time. */
#define HF__NEVER INT64_MAX

/* Milliseconds of CLOCK_BOOTTIME, rounded down. */
int64_t hf__clock_ms(void);
int64_t hf__clock_us(void);

/* The point in time that is `ms` after `at`; HF__NEVER instead of an overflow. */
static inline int64_t hf__clock_after(int64_t at, int64_t ms)
{
	return ms > HF__NEVER - at ? HF__NEVER : at + ms;
}

/* The time from `now` to `at` as a timeout for poll(2): -1 for HF__NEVER, 0 for the past. */
int hf__clock_poll_timeout(int64_t now, int64_t at);

#endif
