/* Where an asynchronous call of the library completes, and waiting for it. */
#ifndef TESTS_SUPPORT_DONE_H
#define TESTS_SUPPORT_DONE_H

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/check.h"

/* Zeroed before its first use. Once calls is 1, the other fields can be read from any thread. */
struct done {
	atomic_int calls; /* how many times the completion has run since the last await_done() */
	int result;
	int64_t number;
	bool had_text;
	char text[200];
	char detail[400];
	pthread_t thread; /* the one that ran the completion */
	long long at;     /* when it ran */
};

/* The completion to pass with a struct done. */
void note_done(void *arg, int result, int64_t number, const char *text);

/* The completion to pass to a call that must not complete: it fails the test. */
void fail_on_done(void *arg, int result, int64_t number, const char *text);

/*
 * Waits for the one completion and checks its result. Returns its number; the struct can be used
 * again.
 */
int64_t await_done(struct done *done, int result);

/*
 * Waits for the one completion, which must have run in another thread, and checks its result and,
 * if that is 0, its number.
 */
void expect_done(struct done *done, int result, int64_t number);

#endif
