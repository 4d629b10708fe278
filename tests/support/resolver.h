/*
 * Stands in for the system's look-up of host names.
 *
 * Programs that use it are linked with --wrap=getaddrinfo and --wrap=freeaddrinfo. Hosts that are
 * numbers are left to the system. All functions may be called from any thread.
 */
#ifndef TESTS_SUPPORT_RESOLVER_H
#define TESTS_SUPPORT_RESOLVER_H

#include <stdbool.h>

/*
 * What every name resolves to from now on: addresses and ports, as in "127.0.0.1:7000 [::1]:7001",
 * in this order, whatever port was asked for. NULL: look-ups fail for the time being.
 */
void resolver_answer(const char *addresses);

/* Look-ups of names wait from now on, or continue. */
void resolver_hang(bool on);

/* How many names were looked up so far, and how many of these look-ups wait. */
int resolver_lookups(void);
int resolver_waiting(void);

/* The highest number of look-ups that were in progress at once. */
int resolver_most(void);

/* Resets everything; waits for the look-ups in progress. */
void resolver_reset(void);

#endif
