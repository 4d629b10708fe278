/*
 * Servers that die, freeze, forget, fill up and are not ready, while locks are held and waited for.
 */
#include "live/rivals.h"

#include "support/talk.h"

#include <unistd.h>

#define CHANNEL "redisson_lock__channel:{orders}"

/* Each test has a server of its own. */
static struct rivals *begin(const struct test_server_options *options, int64_t watchdog_ms)
{
	live_server = test_server_start(options);
	live_raw = raw_connect(live_server);
	return open_rivals(HF_REENTRANT, HF_CLIENT(.watchdog_ms = watchdog_ms));
}

static void end(struct rivals *rivals)
{
	close_rivals(rivals);
	(void)live_stop(NULL);
}

/* ---- servers that die ---- */

static void hold_survives_a_server_that_comes_back_with_its_data(void **state)
{
	(void)state;
	struct rivals *rivals = begin(&(struct test_server_options){.appendonly = true}, 6000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	restart_server(live_server, &live_raw);
	WAIT_UNTIL(stats_of(rivals->one).reconnects >= 1 && stats_of(rivals->one).renewals >= 1,
	           6000);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_int_equal(held_count(live_raw, "orders"), 2);
	assert_true(is_held_by(live_raw, "orders", rivals->one));
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(stats_of(rivals->one).losses, 0);
	end(rivals);
}

static void waiter_survives_a_restart_and_is_woken_by_the_release(void **state)
{
	(void)state;
	struct rivals *rivals = begin(&(struct test_server_options){.appendonly = true}, 6000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	restart_server(live_server, &live_raw);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, 6000);
	WAIT_UNTIL(stats_of(rivals->one).reconnects >= 1, 6000);
	assert_false(waiter_is_over(waiter));
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 1500);
	waiter_finish(waiter);
	end(rivals);
}

static void server_that_comes_back_empty_is_noticed_at_once(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 9000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	restart_server(live_server, &live_raw);
	WAIT_UNTIL(stats_of(rivals->one).reconnects >= 1, 6000);
	/* The next renewal would be due after 3 s. */
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, 1000);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

/* ---- servers that do not answer ---- */

/*
 * Watches the hold until it is lost, and checks that it was never trusted past the time at which
 * the server may give it away: the lease counts from a request sent before not_after.
 */
static void expect_lost_in_time(struct rivals *rivals, long long not_after, int64_t lease_ms)
{
	for (;;) {
		long long now = test_now_ms();
		if (hf_lock_state(rivals->mine, NULL) == HF_LOST)
			break;
		if (now >= not_after + lease_ms)
			fail_msg("held %lld ms after the lease began", now - not_after);
		assert_true(hf_lock_remaining(rivals->mine, NULL) <= lease_ms);
		test_pause();
	}
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, 1000);
	assert_true(seen_count(&rivals->seen, HF_AT_RISK) >= 1);
	assert_true(seen_at(&rivals->seen, HF_AT_RISK) <= seen_at(&rivals->seen, HF_LOST));
}

static void frozen_server_costs_the_lock_before_it_can_be_given_away(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 1200);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	WAIT_UNTIL(stats_of(rivals->one).renewals >= 1, SOON_MS);
	test_server_freeze(live_server);
	expect_lost_in_time(rivals, test_now_ms(), 1200);
	test_server_thaw(live_server);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_true(is_held_by(live_raw, "orders", rivals->two));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	assert_false(key_exists(live_raw, "orders"));
	end(rivals);
}

/* Its lease is a point in time in the server's file, and has passed when the server reads it. */
static void lease_that_expires_while_the_server_is_down_is_lost(void **state)
{
	(void)state;
	struct rivals *rivals = begin(&(struct test_server_options){.appendonly = true}, 1200);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	WAIT_UNTIL(stats_of(rivals->one).renewals >= 1, SOON_MS);
	raw_close(live_raw);
	test_server_kill(live_server);
	long long killed_at = test_now_ms();
	expect_lost_in_time(rivals, killed_at, 1200);
	WAIT_UNTIL(test_now_ms() > killed_at + 1200, SOON_MS);
	test_server_restart(live_server);
	live_raw = raw_connect(live_server);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 8000)));
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_true(is_held_by(live_raw, "orders", rivals->two));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	assert_int_equal(seen_count(&rivals->seen, HF_LOST), 1);
	end(rivals);
}

static void short_freeze_costs_nothing(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 3000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	test_server_freeze(live_server);
	WAIT_UNTIL(seen_count(&rivals->seen, HF_AT_RISK) == 1, SOON_MS);
	test_server_thaw(live_server);
	WAIT_UNTIL(seen_count(&rivals->seen, HF_HELD) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(waiter, 0);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_int_equal(stats_of(rivals->one).losses, 0);
	ASSERT_OK(waiter_release(waiter));
	assert_false(key_exists(live_raw, "orders"));
	waiter_free(waiter);
	end(rivals);
}

static void check_short_pause(const char *which)
{

	struct rivals *rivals = begin(NULL, 2700);
	raw_ok(live_raw, "CLIENT", "PAUSE", "900", which, NULL);
	long long started_at = test_now_ms();
	/* An ask may take a ninth of the lease, so several connections are given up meanwhile. */
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 8000)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 700, 8000);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	end(rivals);
}

static void paused_server_delays_calls_and_leaves_one_hold(void **state)
{
	(void)state;
	check_short_pause("ALL");
}

static void pause_of_writes_delays_calls_and_leaves_one_hold(void **state)
{
	(void)state;
	check_short_pause("WRITE");
}

/* Leases do not expire during a pause, but the holder cannot know that it is one. */
static void check_long_pause(const char *which)
{

	struct rivals *rivals = begin(NULL, 1200);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	WAIT_UNTIL(stats_of(rivals->one).renewals >= 1, SOON_MS);
	raw_ok(live_raw, "CLIENT", "PAUSE", "2500", which, NULL);
	expect_lost_in_time(rivals, test_now_ms(), 1200);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 8000)));
	/* The renewals that the server has kept meanwhile do not bring the hold back. */
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_true(is_held_by(live_raw, "orders", rivals->two));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(seen_count(&rivals->seen, HF_LOST), 1);
	end(rivals);
}

static void pause_that_outlasts_the_lease_costs_the_lock_in_time(void **state)
{
	(void)state;
	check_long_pause("ALL");
	check_long_pause("WRITE");
}

static void close_does_not_wait_for_a_frozen_server(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 30000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	test_server_freeze(live_server);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_client_close(rivals->one));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 2000);
	ASSERT_OK(hf_client_close(rivals->two));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 4000);
	waiter_join(waiter, HF_ECLOSED);
	hf_client *client = NULL;
	started_at = test_now_ms();
	ASSERT_RC(hf_client_open(test_server_url(live_server), HF_CLIENT(.connect_timeout_ms = 500),
	                         &client),
	          HF_EUNREACHABLE);
	ASSERT_BETWEEN(test_now_ms() - started_at, 500, 1500);
	rivals->one = rivals->two = NULL;
	end(rivals);
}

/* ---- connections that are killed ---- */

static void killed_connection_of_a_holder_is_made_again(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 3000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	kill_connections(live_raw);
	/* There is no waiter: the keeper notices the end and renews at once. */
	WAIT_UNTIL(stats_of(rivals->one).reconnects == 1 && stats_of(rivals->one).renewals == 1,
	           900);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	kill_connections(live_raw);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_false(key_exists(live_raw, "orders"));
	kill_connections(live_raw);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(stats_of(rivals->one).losses, 0);
	end(rivals);
}

static void killed_connection_of_a_waiter_is_made_again(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 3000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	for (uint64_t i = 1; i <= 3; i++) {
		kill_connections(live_raw);
		WAIT_UNTIL(stats_of(rivals->two).reconnects == i, SOON_MS);
		WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	}
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 1500);
	waiter_finish(waiter);
	end(rivals);
}

static void lock_freed_while_the_waiters_connection_is_dead_is_found_at_once(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 3000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	/* In one step, so that no client reconnects in between: the waiter asks after it did. */
	raw_ok(live_raw, "MULTI", NULL);
	raw_reply_free(raw_command(live_raw, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
	raw_reply_free(raw_command(live_raw, "DEL", "orders", NULL));
	long long deleted_at = test_now_ms();
	raw_reply_free(raw_command(live_raw, "EXEC", NULL));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - deleted_at, 0, 1500);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	waiter_finish(waiter);
	end(rivals);
}

/*
 * The message of a release is lost with the buffer in which it would have waited for the
 * subscriber.
 */
static void subscriber_whose_buffer_overflows_asks_again(void **state)
{
	static char message[100000];

	(void)state;
	struct rivals *rivals = begin(NULL, 30000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	raw_ok(live_raw, "CONFIG", "SET", "client-output-buffer-limit", "pubsub 50000 0 0", NULL);
	memset(message, 'x', sizeof message - 1);
	raw_ok(live_raw, "MULTI", NULL);
	raw_reply_free(raw_command(live_raw, "PUBLISH", CHANNEL, message, NULL));
	raw_reply_free(raw_command(live_raw, "DEL", "orders", NULL));
	raw_reply_free(raw_command(live_raw, "PUBLISH", CHANNEL, "0", NULL));
	raw_reply_free(raw_command(live_raw, "EXEC", NULL));
	waiter_expect(waiter, 0);
	assert_true(test_server_logged(live_server, "overcoming of output buffer limits"));
	assert_int_equal(stats_of(rivals->two).reconnects, 1);
	assert_int_equal(stats_of(rivals->two).wakeups, 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	waiter_finish(waiter);
	end(rivals);
}

/* ---- data that is taken away ---- */

static void evicted_hold_is_lost_at_its_next_renewal(void **state)
{
	int64_t first = 0, next = 0;

	(void)state;
	struct rivals *rivals = begin(NULL, 3000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.token = 1)));
	ASSERT_OK(hf_lock_token(rivals->mine, NULL, &first));
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory-policy", "allkeys-random", NULL);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == 0, SOON_MS);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	assert_true(info_number(live_raw, "stats", "evicted_keys") >= 1);
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, SOON_MS);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "the server no longer had the hold");
	/* The last token was evicted too. */
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.token = 1)));
	ASSERT_OK(hf_lock_token(rivals->theirs, NULL, &next));
	assert_true(next > first);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	end(rivals);
}

static void flushed_server_is_noticed_by_the_next_renewal(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 900);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	raw_ok(live_raw, "FLUSHALL", NULL);
	long long flushed_at = test_now_ms();
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, SOON_MS);
	ASSERT_BETWEEN(seen_at(&rivals->seen, HF_LOST) - flushed_at, 0, 800);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	end(rivals);
}

static void lock_deleted_by_hand_is_found_by_the_slow_poll(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 30000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	long long deleted_at = test_now_ms();
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - deleted_at, 0, 4500);
	assert_int_equal(stats_of(rivals->two).wakeups, 0);
	waiter_finish(waiter);
	end(rivals);
}

/* ---- servers that refuse ---- */

static void full_server_refuses_new_locks_and_lets_old_ones_go(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 900);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	hf_lock *other = open_lock(rivals->two, "other");
	ASSERT_RC(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 2000)), HF_EFULL);
	ASSERT_CONTAINS(hf_error_detail(), "other");
	assert_false(key_exists(live_raw, "other"));
	/* What is held is still renewed. */
	uint64_t renewals = stats_of(rivals->one).renewals;
	WAIT_UNTIL(stats_of(rivals->one).renewals >= renewals + 2, SOON_MS);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_false(key_exists(live_raw, "orders"));
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	ASSERT_OK(hf_lock_acquire(other, NULL));
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(other);
	end(rivals);
}

static void nested_hold_of_a_full_server_can_be_given_up(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 3000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	/* The server may refuse to write the lower count; the level is given up all the same. */
	int rc = hf_lock_release(rivals->mine);
	assert_true(rc == 0 || rc == HF_EFULL);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	end(rivals);
}

static const char loop[] = "*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n";

static bool is_answered_by(const char *code)
{
	struct raw_reply *reply = raw_command(live_raw, "PING", NULL);
	bool answered = reply->type == RAW_ERROR && strncmp(reply->text, code, strlen(code)) == 0;
	raw_reply_free(reply);
	return answered;
}

static void busy_server_is_waited_for(void **state)
{
	static const char *const options[] = {"--lua-time-limit", "20", NULL};

	(void)state;
	struct rivals *rivals = begin(&(struct test_server_options){.extra = options}, 6000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	hf_lock *other = open_lock(rivals->two, "other");
	int fd = talk_open(test_server_unix_url(live_server));
	talk_say(fd, loop);
	WAIT_UNTIL(is_answered_by("BUSY"), SOON_MS);
	long long started_at;
	int rc;
	/* On a busy machine an ask may be in flight when the time is over. */
	do {
		started_at = test_now_ms();
		rc = hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 400));
	} while (rc == HF_EUNKNOWN);
	ASSERT_RC(rc, HF_ENOTNOW);
	ASSERT_BETWEEN(test_now_ms() - started_at, 400, 900);
	ASSERT_CONTAINS(hf_error_detail(), "BUSY");
	struct waiter *waiter = waiter_start(other, HF_ACQUIRE(.wait_ms = 8000));
	uint64_t attempts = stats_of(rivals->two).attempts;
	WAIT_UNTIL(stats_of(rivals->two).attempts > attempts + 1, SOON_MS);
	raw_ok(live_raw, "SCRIPT", "KILL", NULL);
	waiter_finish(waiter);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	close(fd);
	hf_lock_close(other);
	end(rivals);
}

static void loading_server_is_waited_for(void **state)
{
	static const char *const options[] = {"--rdbcompression", "no", NULL};

	(void)state;
	struct rivals *rivals = begin(&(struct test_server_options){.extra = options}, 9000);
	/* A reload takes about a second, and answers others after each 2 MB, which are 50 keys. */
	raw_reply_free(raw_command(live_raw, "DEBUG", "POPULATE", "1000", "key", "40000", NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	raw_ok(live_raw, "CONFIG", "SET", "key-load-delay", "1000", NULL);
	int fd = talk_open(test_server_unix_url(live_server));
	talk_say(fd, "*2\r\n$5\r\nDEBUG\r\n$6\r\nRELOAD\r\n");
	WAIT_UNTIL(is_answered_by("LOADING"), SOON_MS);
	hf_lock *other = open_lock(rivals->two, "other");
	/*
	 * The server answers only at times, so that an ask may be in flight when the time has run
	 * out.
	 */
	int rc = hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 250));
	if (rc != HF_EUNKNOWN) {
		ASSERT_RC(rc, HF_ENOTNOW);
		ASSERT_CONTAINS(hf_error_detail(), "LOADING");
	}
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 30000)));
	talk_hear(fd, "+OK\r\n");
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(other));
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1000);
	close(fd);
	hf_lock_close(other);
	end(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold_survives_a_server_that_comes_back_with_its_data),
		cmocka_unit_test(waiter_survives_a_restart_and_is_woken_by_the_release),
		cmocka_unit_test(server_that_comes_back_empty_is_noticed_at_once),
		cmocka_unit_test(frozen_server_costs_the_lock_before_it_can_be_given_away),
		cmocka_unit_test(short_freeze_costs_nothing),
		cmocka_unit_test(lease_that_expires_while_the_server_is_down_is_lost),
		cmocka_unit_test(paused_server_delays_calls_and_leaves_one_hold),
		cmocka_unit_test(pause_of_writes_delays_calls_and_leaves_one_hold),
		cmocka_unit_test(pause_that_outlasts_the_lease_costs_the_lock_in_time),
		cmocka_unit_test(close_does_not_wait_for_a_frozen_server),
		cmocka_unit_test(killed_connection_of_a_holder_is_made_again),
		cmocka_unit_test(killed_connection_of_a_waiter_is_made_again),
		cmocka_unit_test(lock_freed_while_the_waiters_connection_is_dead_is_found_at_once),
		cmocka_unit_test(subscriber_whose_buffer_overflows_asks_again),
		cmocka_unit_test(evicted_hold_is_lost_at_its_next_renewal),
		cmocka_unit_test(flushed_server_is_noticed_by_the_next_renewal),
		cmocka_unit_test(lock_deleted_by_hand_is_found_by_the_slow_poll),
		cmocka_unit_test(full_server_refuses_new_locks_and_lets_old_ones_go),
		cmocka_unit_test(nested_hold_of_a_full_server_can_be_given_up),
		cmocka_unit_test(busy_server_is_waited_for),
		cmocka_unit_test(loading_server_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
