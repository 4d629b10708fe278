/*
 * Jobs: calls that wait for the lock server run on a thread of their own, one after the other, so
 * that the event loop never waits.
 */
#ifndef HF_CLI_WEB_JOBS_H
#define HF_CLI_WEB_JOBS_H

#include "web.h"

#define JOBS_MOST 16 /* that wait */

struct jobs;

/* NULL: out of memory or threads. */
struct jobs *jobs_new(struct event_base *base);

/* Lets the job that is running finish and drops the others; their on_done() is not called. */
void jobs_free(struct jobs *jobs);

/* Runs work() on the thread, and then on_done() in the event loop. False: too many are waiting. */
bool jobs_add(struct jobs *jobs, void (*work)(void *arg), void (*on_done)(void *arg), void *arg);

#endif
