/* The clock of the tests, and waiting for something to become true. */
#ifndef TESTS_SUPPORT_CLOCK_H
#define TESTS_SUPPORT_CLOCK_H

#include <stdbool.h>

#include "support/check.h"

/* CLOCK_BOOTTIME in milliseconds, the clock the library lives by. */
long long test_now_ms(void);

/* Lets 2 ms pass; the beat of every polling wait. */
void test_pause(void);

/* Polls until condition(arg) holds. Returns whether it did within the time. */
bool wait_until(bool (*condition)(void *arg), void *arg, long long timeout_ms);

/*
 * Fails the test at this line when the expression does not become true in time. The clock is read
 * before the expression, so a test that was not scheduled for a while checks once more.
 */
#define WAIT_UNTIL(expression, timeout_ms)                                                         \
	do {                                                                                       \
		long long wait_ends_at_ = test_now_ms() + (timeout_ms);                            \
		for (;;) {                                                                         \
			bool wait_is_over_ = test_now_ms() >= wait_ends_at_;                       \
			if (expression)                                                            \
				break;                                                             \
			if (wait_is_over_)                                                         \
				fail_msg("not true within %lld ms: %s", (long long)(timeout_ms),   \
				         #expression);                                             \
			test_pause();                                                              \
		}                                                                                  \
	} while (0)

#endif
