/* What the tests of ZooKeeper's faults share: a holder on a proxy, a waiter, and an eye. */
#ifndef TESTS_LIVE_ZK_FAULTS_H
#define TESTS_LIVE_ZK_FAULTS_H

#include "live/zk.h"

#include "support/proxy.h"

struct world {
	struct test_zookeeper *zookeeper;
	struct zk_raw *eye;
	struct proxy *proxy; /* between the first client and the server */
	struct seen seen;    /* by the first client */
	hf_client *one;
	hf_client *two;
	hf_lock *mine;
	hf_lock *theirs;
};

static inline void world_begin(struct world *world, const struct test_zookeeper_options *options,
                               int64_t session_ms)
{
	memset(world, 0, sizeof(*world));
	world->zookeeper = test_zookeeper_start(options);
	world->eye = zk_raw_open(test_zookeeper_host(world->zookeeper, 0), 0);
	world->proxy = proxy_start(test_zookeeper_url(world->zookeeper, 0));
	world->one = open_url(proxy_url(world->proxy),
	                      HF_CLIENT(.watchdog_ms = session_ms, EVENTS_TO(&world->seen)));
	world->two = open_url(test_zookeeper_url(world->zookeeper, 0),
	                      HF_CLIENT(.watchdog_ms = session_ms));
	world->mine = open_lock(world->one, "orders");
	world->theirs = open_lock(world->two, "orders");
}

static inline void world_end(struct world *world)
{
	hf_lock_close(world->mine);
	hf_lock_close(world->theirs);
	ASSERT_OK(hf_client_close(world->one));
	ASSERT_OK(hf_client_close(world->two));
	zk_raw_close(world->eye);
	proxy_stop(world->proxy);
	test_zookeeper_stop(world->zookeeper);
}

/* The dead network: nothing passes, and nobody is notified. */
static inline void world_part(struct world *world, bool on)
{
	proxy_hold_requests(world->proxy, on);
	proxy_hold_replies(world->proxy, on);
}

/*
 * Waits until the hold is lost, and checks all the time that the client did not believe in it once
 * its node was gone. The eye must query the server on which nodes are deleted first.
 */
static inline void expect_lost_in_time(struct zk_raw *eye, const char *node, hf_lock *lock,
                                       hf_owner *owner, long long timeout_ms)
{
	long long ends_at = test_now_ms() + timeout_ms;
	while (hf_lock_state(lock, owner) != HF_LOST) {
		bool gone = zk_raw_exists(eye, node, NULL) == ZK_RAW_NO_NODE;
		int64_t remaining = hf_lock_remaining(lock, owner);
		if (gone && remaining > 0)
			fail_msg("the server has given it away, and %lld ms remain",
			         (long long)remaining);
		if (test_now_ms() > ends_at)
			fail_msg("not lost within %lld ms", timeout_ms);
		test_pause();
	}
}

/* So that an acquire has nothing but its node to make. */
static inline void make_folder(struct world *world)
{
	assert_int_equal(zk_raw_create(world->eye, "/orders", "", ZK_RAW_PERSISTENT, NULL, NULL),
	                 0);
}

#endif
