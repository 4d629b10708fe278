/* What the parts of holdfast demo share: a narrator that checks what it says. */
#ifndef HF_CLI_TOUR_H
#define HF_CLI_TOUR_H

#include <stdint.h>

void tour_begin(void);
/* Milliseconds since the beginning. */
int64_t tour_ms(void);
/* Prints a line: when, who, and what. */
__attribute__((format(printf, 2, 3))) void tour_say(const char *who, const char *format, ...);
/* Checks something that the demo promises; a broken promise makes the exit status 1. */
void tour_expect(int holds, const char *promise);
/* Narrates a failed call; returns 1 if it succeeded. */
int tour_check(int rc, const char *who, const char *what);
/* The same for a call that must succeed. */
void tour_succeed(int rc, const char *who, const char *what);
/* Sleeps. */
void tour_work(int64_t ms);
int tour_failures(void);
/*
 * Runs the story in a process of its own, and returns its exit status when it has ended or was
 * killed.
 */
int tour_run(int (*story)(void));
/* Removes a folder with everything in it. */
void tour_remove(const char *dir);

/* holdfast demo --failover; the exit status. */
int tour_failover(void);

#endif
