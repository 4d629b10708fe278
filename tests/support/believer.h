/* Processes that take locks again and again, and record when they believe that they hold them. */
#ifndef TESTS_SUPPORT_BELIEVER_H
#define TESTS_SUPPORT_BELIEVER_H

#include <stdbool.h>
#include <sys/types.h>

/* Two threads of a process take each name, so that holds are also handed over within it. */
#define BELIEVER_PARTIES 2

/*
 * Starts the running program again as a process with one client, and these parties for each name of
 * the file; the first of them has this number. The program's main() must begin with
 * believer_is_wanted().
 */
pid_t believer_start(const char *path, const char *url, int first_party, int watchdog_ms);

/* Whether the arguments of main() are those of such a process, which then is believer_run(). */
bool believer_is_wanted(int argc, char **argv);
int believer_run(char **argv);

/* Waits for the process after the file says that it is over; fails the test if it failed. */
void believer_join(pid_t pid);

#endif
