/*
 * What the tests of red locks share: five independent servers, and sides that lock on all of them.
 */
#ifndef TESTS_LIVE_RED_H
#define TESTS_LIVE_RED_H

#include "live/live.h"

#include "support/process.h"

#define SERVERS 5
#define NAME    "orders"
#define CHANNEL "redisson_lock__channel:{orders}"

static struct test_server *server[SERVERS];
static struct raw *raw[SERVERS];

static inline int start_servers(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		server[i] = test_server_start(NULL);
		raw[i] = raw_connect(server[i]);
	}
	return 0;
}

static inline int stop_servers(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		raw_close(raw[i]);
		test_server_stop(server[i]);
	}
	return 0;
}

/* Whatever the test before has left: all servers run, and are empty. */
static inline int flush_servers(void **state)
{
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		test_server_thaw(server[i]);
		struct raw *up = raw_try_connect_url(test_server_unix_url(server[i]));
		raw_close(up);
		if (!up)
			restart_server(server[i], &raw[i]);
		raw_ok(raw[i], "FLUSHALL", NULL);
	}
	return 0;
}

#define RED_STORY(name) cmocka_unit_test_setup(name, flush_servers)

/* The equivalent of one process: a client for each server, and the red lock over them. */
struct side {
	struct seen seen;
	int n;
	hf_client *client[SERVERS];
	hf_lock *member[SERVERS];
	hf_lock *red;
};

static inline void open_side(struct side *side, int n, int64_t watchdog_ms)
{
	memset(side, 0, sizeof(*side));
	side->n = n;
	for (int i = 0; i < n; i++) {
		side->client[i] =
			open_url(test_server_url(server[i]),
		                 HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&side->seen)));
		side->member[i] = open_lock(side->client[i], NAME);
	}
	ASSERT_OK(hf_lock_open_red(side->member, (size_t)n, &side->red));
}

static inline void close_side(struct side *side)
{
	hf_lock_close(side->red);
	for (int i = 0; i < side->n; i++) {
		close_both(side->member[i], side->client[i]);
	}
}

/* How many calls and holds the side's clients have. */
static inline int waiting_of(struct side *side)
{
	int waiting = 0;
	for (int i = 0; i < side->n; i++)
		waiting += (int)stats_of(side->client[i]).waiting;
	return waiting;
}

static inline int holds_of(struct side *side)
{
	int holds = 0;
	for (int i = 0; i < side->n; i++)
		holds += (int)stats_of(side->client[i]).held;
	return holds;
}

/* Whether the side holds the lock on this server, in one query: it may change meanwhile. */
static inline bool is_ours(struct side *side, int i)
{
	char uuid[37];
	struct raw_reply *reply = raw_command(raw[i], "HKEYS", NAME, NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_int_equal(hf_client_uuid(side->client[i], uuid), 0);
	bool is = reply->length == 1 && strncmp(reply->children[0]->text, uuid, 36) == 0;
	raw_reply_free(reply);
	return is;
}

/* On how many servers the side holds the lock; all of them must answer. */
static inline int servers_held(struct side *side)
{
	int held = 0;
	for (int i = 0; i < side->n; i++)
		held += is_ours(side, i);
	return held;
}

/* Takes the lock on all servers. On a busy machine one may have been too slow: once more, then. */
static inline void take_everywhere(struct side *side)
{
	for (int i = 0; i < 20; i++) {
		ASSERT_OK(hf_lock_acquire(side->red, HF_ACQUIRE(.wait_ms = 10000)));
		if (servers_held(side) == side->n && holds_of(side) == side->n)
			return;
		ASSERT_OK(hf_lock_release(side->red));
	}
	fail_msg("never taken on all servers");
}

static inline long long keys_left(void)
{
	long long keys = 0;
	for (int i = 0; i < SERVERS; i++)
		keys += raw_integer(raw[i], "DBSIZE", NULL);
	return keys;
}

static inline long long channels_left(void)
{
	long long count = 0;
	for (int i = 0; i < SERVERS; i++)
		count += channels(raw[i]);
	return count;
}

/*
 * No key, no hold and no call. What a frozen server was asked for may stay for a lease, of 6 s at
 * most in these tests, and a subscription outlives its last waiter by a second.
 */
static inline void expect_nothing_left(struct side *side)
{
	WAIT_UNTIL(keys_left() == 0 && holds_of(side) == 0 && waiting_of(side) == 0, 8000);
	WAIT_UNTIL(channels_left() == 0, SOON_MS);
	assert_int_equal(keys_left(), 0);
}

/* Another owner takes the lock on this server from its holder, if there is one. */
static inline void give_away(int i)
{
	raw_ok(raw[i], "MULTI", NULL);
	raw_reply_free(raw_command(raw[i], "DEL", NAME, NULL));
	raw_reply_free(raw_command(raw[i], "HSET", NAME, "somebody:1", "1", NULL));
	raw_reply_free(raw_command(raw[i], "PEXPIRE", NAME, "60000", NULL));
	struct raw_reply *reply = raw_command(raw[i], "EXEC", NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	raw_reply_free(reply);
}

#endif
