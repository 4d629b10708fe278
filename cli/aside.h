/* Runs a call that may block on a thread of its own, so that its caller need not wait forever. */
#ifndef HF_CLI_ASIDE_H
#define HF_CLI_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Runs the call and waits at most this long until it has finished. False: it is still running, with
 * all it uses, and the program must end with _exit(). If no thread can be started, the call runs on
 * this one.
 */
bool aside_call(void (*call)(void *arg), void *arg, int64_t timeout_ms);

/* Whether a call was left running. */
bool aside_has_running(void);

#endif
