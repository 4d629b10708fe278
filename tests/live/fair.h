/* What the tests of fair locks share: both kinds, two clients, and queries of the queue. */
#ifndef TESTS_LIVE_FAIR_H
#define TESTS_LIVE_FAIR_H

#include "live/rivals.h"

#define QUEUE   "redisson_lock_queue:{orders}"
#define ENDS    "redisson_lock_timeout:{orders}"
#define CHANNEL "redisson_lock__channel:{orders}"

/* A test gets one of these as its state. */
static hf_kind fair = HF_FAIR;
static hf_kind simple_fair = HF_SIMPLE_FAIR;

/* Each test has a server of its own, so that waiters of a failed test do not get in the way. */
/* clang-format off */
#define FAIR_STORY(story)        {#story " (fair)", story, live_start, live_stop, &fair}
#define SIMPLE_FAIR_STORY(story) {#story " (simple fair)", story, live_start, live_stop, &simple_fair}
/* clang-format on */
#define BOTH_STORIES(story) FAIR_STORY(story), SIMPLE_FAIR_STORY(story)

static inline hf_kind kind_of(void **state)
{
	return *(hf_kind *)*state;
}

/* The watchdog of the first client may be short. */
static inline struct rivals *begin_at(const char *url, void **state, int64_t watchdog_ms,
                                      int64_t fair_wait_ms)
{
	struct rivals *rivals = open_clients(
		url, HF_CLIENT(.watchdog_ms = watchdog_ms, .fair_wait_ms = fair_wait_ms), url,
		HF_CLIENT(.fair_wait_ms = fair_wait_ms));
	take_handles(rivals, kind_of(state), "orders");
	return rivals;
}

static inline struct rivals *begin(void **state, int64_t watchdog_ms)
{
	return begin_at(test_server_url(live_server), state, watchdog_ms, 0);
}

/* How many waiters listen to channels of their own, which end with the owner's name. */
static inline long long listening(struct raw *raw)
{
	struct raw_reply *reply = raw_command(raw, "PUBSUB", "CHANNELS", "*:*-*-*-*-*:*", NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	long long count = (long long)reply->length;
	raw_reply_free(reply);
	return count;
}

/* Nothing is left: no key, no place in a queue, no waiter's channel. */
static inline void expect_nothing_left(struct raw *raw)
{
	WAIT_UNTIL(raw_integer(raw, "DBSIZE", NULL) == 0, SOON_MS);
	WAIT_UNTIL(listening(raw) == 0, SOON_MS);
}

static inline void end(struct rivals *rivals)
{
	expect_nothing_left(live_raw);
	close_rivals(rivals);
}

static inline long long queued(struct raw *raw)
{
	return raw_integer(raw, "LLEN", QUEUE, NULL);
}

/* The owner of the i-th place. */
static inline void read_place(int i, char *ret_owner, size_t size)
{
	char index[16];
	snprintf(index, sizeof index, "%d", i);
	char *owner = raw_text(live_raw, "LINDEX", QUEUE, index, NULL);
	assert_non_null(owner);
	snprintf(ret_owner, size, "%s", owner);
	free(owner);
}

/* Starts a waiter and waits until it is the n-th in the queue. */
static inline struct waiter *queue_up(hf_lock *lock, const hf_acquire_options *options, long long n)
{
	struct waiter *waiter = waiter_start(lock, options);
	WAIT_UNTIL(queued(live_raw) == n, SOON_MS);
	return waiter;
}

#endif
