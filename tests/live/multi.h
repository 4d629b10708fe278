/* What the tests of multi locks share: two servers, two clients on each, and queries of both. */
#ifndef TESTS_LIVE_MULTI_H
#define TESTS_LIVE_MULTI_H

#include "live/live.h"

static struct test_server *other_server;
static struct raw *other_raw;

static inline int start_both(void **state)
{
	(void)live_start(state);
	other_server = test_server_start(NULL);
	other_raw = raw_connect(other_server);
	return 0;
}

static inline int stop_both(void **state)
{
	raw_close(other_raw);
	test_server_stop(other_server);
	return live_stop(state);
}

static inline int flush_both(void **state)
{
	raw_ok(other_raw, "FLUSHALL", NULL);
	return live_flush(state);
}

#define MULTI_STORY(name) cmocka_unit_test_setup(name, flush_both)

/* The equivalent of two processes, each with a client for each server. */
struct world {
	struct seen seen; /* by one and far_one */
	hf_client *one;
	hf_client *two;
	hf_client *far_one;
	hf_client *far_two;
};

static inline void begin(struct world *world, int64_t watchdog_ms)
{
	const char *far = test_server_url(other_server);
	memset(world, 0, sizeof(*world));
	hf_client_options *options = HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&world->seen));
	world->one = open_client(options);
	world->far_one = open_url(far, options);
	options->on_event = NULL;
	world->two = open_client(options);
	world->far_two = open_url(far, options);
}

static inline void end(struct world *world)
{
	hf_client *clients[] = {world->one, world->far_one, world->two, world->far_two};
	for (int i = 0; i < 4; i++) {
		hf_stats stats = stats_of(clients[i]);
		assert_int_equal(stats.held, 0);
		assert_int_equal(stats.waiting, 0);
		ASSERT_OK(hf_client_close(clients[i]));
	}
}

/* Makes one lock of the members, and closes their handles, of which the multi lock has copies. */
static inline hf_lock *combine(hf_lock **members, size_t n)
{
	hf_lock *multi = NULL;
	ASSERT_OK(hf_lock_open_multi(members, n, &multi));
	for (size_t i = 0; i < n; i++)
		hf_lock_close(members[i]);
	return multi;
}

/* Three names of one client. */
static inline hf_lock *open_three(hf_client *client)
{
	hf_lock *members[] = {open_lock(client, "a"), open_lock(client, "b"),
	                      open_lock(client, "c")};
	return combine(members, 3);
}

/* A name here, a name there, and one that both servers have; in this order or the opposite. */
static inline hf_lock *open_spread(hf_client *here, hf_client *there, bool reversed)
{
	hf_lock *members[] = {open_lock(here, "a"), open_lock(there, "b"), open_lock(here, "c"),
	                      open_lock(there, "c")};
	for (int i = 0; reversed && i < 2; i++) {
		hf_lock *swap = members[i];
		members[i] = members[3 - i];
		members[3 - i] = swap;
	}
	return combine(members, 4);
}

/* Whether all three of open_three are held by the client. */
static inline bool holds_three(hf_client *client)
{
	return is_held_by(live_raw, "a", client) && is_held_by(live_raw, "b", client) &&
	       is_held_by(live_raw, "c", client);
}

static inline void expect_no_keys(void)
{
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	assert_int_equal(raw_integer(other_raw, "DBSIZE", NULL), 0);
}

/* And no subscription, which outlives its last waiter by a second. */
static inline void expect_nothing_left(void)
{
	expect_no_keys();
	WAIT_UNTIL(channels(live_raw) == 0 && channels(other_raw) == 0, SOON_MS);
}

#endif
