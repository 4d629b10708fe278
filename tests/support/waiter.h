/* A blocking call of the library in a thread of its own. */
#ifndef TESTS_SUPPORT_WAITER_H
#define TESTS_SUPPORT_WAITER_H

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/check.h"

/* The object, or the function, that is set says which call it is. */
struct waiter {
	hf_lock *lock;     /* the lock that it acquires, */
	hf_lock *releases; /* or releases */
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
	hf_barrier *barrier;
	hf_double_barrier *enters; /* the double barrier that it enters, */
	hf_double_barrier *leaves; /* or leaves */
	int (*run)(void *arg);     /* any other call */
	void *arg;
	hf_acquire_options options; /* of an acquire; the rest are for the other calls */
	hf_owner *owner;            /* of a release */
	int64_t wait_ms;
	int64_t lease_ms;
	hf_cancel *cancel;
	int n; /* how many permits */

	hf_permit_id ids[4]; /* of the permits that it got */
	pthread_t thread;
	atomic_bool over; /* the ids, and what follows, can be read once it is set */
	int result;
	long long started_at;
	long long ended_at;
	char detail[400];
};

/*
 * Starts an acquire. It gets an owner of its own unless one is given, so that any thread can
 * release it.
 */
struct waiter *waiter_start(hf_lock *lock, const hf_acquire_options *options);

/* Starts the call that is described. */
struct waiter *waiter_start_call(const struct waiter *wanted);
#define WAITER(...) waiter_start_call(&(struct waiter){__VA_ARGS__})

bool waiter_is_over(struct waiter *waiter);

/* Waits until the call has returned, and checks its result. */
void waiter_expect(struct waiter *waiter, int result);

/* Releases the lock that the waiter has acquired. */
int waiter_release(struct waiter *waiter);

/* Waits until the waiter has the lock, releases it, and frees the waiter. */
void waiter_finish(struct waiter *waiter);

/* Waits for the thread; frees the waiter, and the owner of an acquire. */
void waiter_free(struct waiter *waiter);

/* Waits until the call has returned, checks its result, and frees the waiter. */
void waiter_join(struct waiter *waiter, int result);

#endif
