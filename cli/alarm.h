/*
 * A timer for poll() that counts the time during which the host was suspended.
 *
 * The timeout of poll() does not count it: after a suspend the rest of the timeout has to pass
 * first, although the lock may have expired long ago.
 */
#ifndef HF_CLI_ALARM_H
#define HF_CLI_ALARM_H

#include <stdint.h>

/* Returns a descriptor; -1 if there is none left, and then the timeout of poll() has to do. */
int alarm_open(void);

/*
 * The descriptor is readable from this moment of guard_clock() on, until it is set again; 0: never.
 * Takes -1 for the descriptor.
 */
void alarm_set(int fd, int64_t at);

#endif
