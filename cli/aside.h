/* A call that may block, made by a thread of its own: whoever needs it does not wait for ever. */
#ifndef HF_CLI_ASIDE_H
#define HF_CLI_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes the call, and waits for its end no longer than that. False: it still goes on, with all it uses, and
 * the program must end with _exit(). Where there can be no thread the call is made here.
 */
bool aside_call(void (*call)(void *arg), void *arg, int64_t timeout_ms);

/* Whether a call was left behind that way. */
bool aside_any_left(void);

#endif
