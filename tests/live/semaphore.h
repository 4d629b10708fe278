/* What the tests of semaphores share: two clients at one semaphore, and a waiter that sleeps. */
#ifndef TESTS_LIVE_SEMAPHORE_H
#define TESTS_LIVE_SEMAPHORE_H

#include "live/sync.h"

#define CHANNEL "redisson_sc:{orders}"
#define MOST    INT64_C(2147483647)

/* Two clients at one semaphore. */
struct pair {
	hf_client *one;
	hf_client *two;
	hf_semaphore *mine;
	hf_semaphore *theirs;
};

static inline hf_semaphore *open_semaphore(hf_client *client, const char *name)
{
	hf_semaphore *semaphore = NULL;
	ASSERT_OK(hf_semaphore_open(client, name, &semaphore));
	return semaphore;
}

static inline void begin(struct pair *pair)
{
	pair->one = sync_open(NULL);
	pair->two = sync_open(NULL);
	pair->mine = open_semaphore(pair->one, "orders");
	pair->theirs = open_semaphore(pair->two, "orders");
}

static inline void end(struct pair *pair)
{
	hf_semaphore_close(pair->mine);
	hf_semaphore_close(pair->theirs);
	sync_close_two(pair->one, pair->two);
}

static inline int take(hf_semaphore *semaphore, int64_t permits)
{
	return hf_semaphore_acquire(semaphore, permits, HF_WAIT(.wait_ms = HF_NOWAIT));
}

/* Starts a waiter and returns when it sleeps until it is woken. */
static inline struct waiter *sleeper(struct pair *pair, int permits)
{
	uint64_t attempts = stats_of(pair->two).attempts;
	struct waiter *call = WAITER(.semaphore = pair->theirs, .n = permits);
	await_sleep(pair->two, CHANNEL, attempts);
	return call;
}

#endif
