/* Clients of a cluster that hold a lock and wait for it, and what they notice of its failures. */
#ifndef TESTS_LIVE_CLUSTER_PAIR_H
#define TESTS_LIVE_CLUSTER_PAIR_H

#include "live/cluster.h"

/* A client with a lock, and what it noticed. */
struct side {
	struct seen seen;
	hf_client *client;
	hf_lock *lock;
};

static inline struct side *open_side(const char *name, int64_t watchdog_ms)
{
	struct side *side = check_alloc(sizeof(*side));
	side->client = open_cluster(HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&side->seen)));
	side->lock = open_lock(side->client, name);
	return side;
}

static inline void close_side(struct side *side)
{
	close_both(side->lock, side->client);
	free(side);
}

/* A lock that one client holds and another one waits for. */
struct pair {
	char *name;
	struct side *holder;
	struct side *other;
	struct waiter *waiter;
};

static inline void begin_pair(struct pair *pair, int node, const char *prefix, int64_t watchdog_ms)
{
	pair->name = test_cluster_name(cluster, node, prefix);
	pair->holder = open_side(pair->name, watchdog_ms);
	pair->other = open_side(pair->name, watchdog_ms);
	ASSERT_OK(hf_lock_acquire(pair->holder->lock, NULL));
	pair->waiter = waiter_start(pair->other->lock, HF_ACQUIRE(.wait_ms = 60000));
	WAIT_UNTIL(is_awaited(&matches[REENTRANT], pair->name, node), SOON_MS);
	ASSERT_OK(hf_client_ping(pair->other->client, NULL));
}

/* The release wakes the waiter soon, and nobody noticed anything before. */
static inline void end_pair(struct pair *pair)
{
	assert_int_equal(hf_lock_state(pair->holder->lock, NULL), HF_HELD);
	assert_false(waiter_is_over(pair->waiter));
	ASSERT_OK(hf_lock_release(pair->holder->lock));
	long long released_at = test_now_ms();
	waiter_expect(pair->waiter, 0);
	assert_true(pair->waiter->ended_at - released_at < 1000);
	waiter_finish(pair->waiter);
	assert_int_equal(seen_count(&pair->holder->seen, HF_AT_RISK), 0);
	assert_int_equal(seen_count(&pair->holder->seen, HF_LOST), 0);
	close_side(pair->holder);
	close_side(pair->other);
	free(pair->name);
}

#endif
