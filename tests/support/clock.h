/* The clock of the tests, and waiting for something to become true. */
#ifndef TESTS_SUPPORT_CLOCK_H
#define TESTS_SUPPORT_CLOCK_H

#include <stdbool.h>

#include "support/check.h"

/* CLOCK_BOOTTIME in milliseconds, the clock the library lives by. */
long long test_now_ms(void);

/* Lets 2 ms pass. */
void test_pause(void);

/* The pause of a polling wait: 2 ms at first, and a twentieth of a longer wait, up to 10 ms. */
void test_pause_after(long long waited_ms);

/* Polls until condition(arg) holds. Returns whether it did within the time. */
bool wait_until(bool (*condition)(void *arg), void *arg, long long timeout_ms);

/*
 * Fails the test at this line when the expression does not become true in time. The clock is read
 * before the expression, so a test that was not scheduled for a while checks once more.
 */
#define WAIT_UNTIL(expression, timeout_ms)                                                         \
	do {                                                                                       \
		long long wait_began_ = test_now_ms();                                             \
		for (;;) {                                                                         \
			long long waited_ms_ = test_now_ms() - wait_began_;                        \
			if (expression)                                                            \
				break;                                                             \
			if (waited_ms_ >= (timeout_ms))                                            \
				fail_msg("not true within %lld ms: %s", (long long)(timeout_ms),   \
				         #expression);                                             \
			test_pause_after(waited_ms_);                                              \
		}                                                                                  \
	} while (0)

#endif
