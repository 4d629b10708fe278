/* The wall clock of the client's host may be set at any time: nobody asks for it. */
#include "live/rivals.h"

#include <sys/time.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_gettimeofday(struct timeval *ret_time, void *zone);
time_t __wrap_time(time_t *ret_time);

static _Atomic int questions;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)
		atomic_fetch_add(&questions, 1);
	return __real_clock_gettime(clock, ret_time);
}

int __wrap_gettimeofday(struct timeval *ret_time, void *zone)
{
	struct timespec now;
	int rc = __wrap_clock_gettime(CLOCK_REALTIME, &now);
	(void)zone;
	*ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	return rc;
}

time_t __wrap_time(time_t *ret_time)
{
	struct timespec now;
	(void)__wrap_clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

/* A grant, a level, renewals, a wait that times out and one that is served, and a loss. */
static void life_of_a_lock_needs_no_wall_clock(void **state)
{
	(void)state;
	atomic_store(&questions, 0);
	struct rivals *rivals = open_rivals(HF_REENTRANT, HF_CLIENT(.watchdog_ms = 300));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_TIMES_OUT(50, hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = within_ms)));
	WAIT_UNTIL(stats_of(rivals->one).renewals >= 2, SOON_MS);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_finish(waiter);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 50, .wait_ms = SOON_MS)));
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, SOON_MS);
	close_rivals(rivals);
	assert_int_equal(atomic_load(&questions), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(life_of_a_lock_needs_no_wall_clock),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
