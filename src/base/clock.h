/* The one clock: monotonic, and it counts suspend. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdint.h>

/* Later than any point in time. */
#define HF__NEVER INT64_MAX

/* Milliseconds of CLOCK_BOOTTIME, rounded down. */
int64_t hf__clock_ms(void);
int64_t hf__clock_us(void);

/* A point in time, some milliseconds on; never overflows. */
static inline int64_t hf__clock_after(int64_t at, int64_t ms)
{
	return ms > HF__NEVER - at ? HF__NEVER : at + ms;
}

/* The milliseconds from now to a point as a timeout for poll(2): -1 for never. */
int hf__clock_poll_timeout(int64_t now, int64_t at);

#endif
