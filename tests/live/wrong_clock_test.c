/* Failovers to a server whose wall clock is wrong: what becomes of tokens and leases. */
#include "live/live.h"

#include "support/replica.h"

#define BEHIND_MS 10000

/* A master whose clock is right, and a replica of it whose clock is not. */
struct couple {
	struct test_server *master, *replica;
	hf_client *client;
	hf_lock *lock;
	_Atomic long long lost_at;
};

static void note_loss(void *arg, const hf_event *event)
{
	struct couple *couple = arg;
	if (hf_event_state(event) == HF_LOST)
		atomic_store(&couple->lost_at, test_now_ms());
}

/* The server's wall clock in microseconds. */
static int64_t time_at(struct test_server *server)
{
	struct raw *raw = raw_connect(server);
	struct raw_reply *reply = raw_command(raw, "TIME", NULL);
	assert_int_equal(reply->length, 2);
	int64_t time = atoll(reply->children[0]->text) * 1000000 + atoll(reply->children[1]->text);
	raw_reply_free(reply);
	raw_close(raw);
	return time;
}

static struct couple *begin_couple(int clock_ms)
{
	static const char *const extra[] = {"--repl-diskless-sync-delay", "0", NULL};
	struct test_server_options options = {.kind = TEST_SERVER_TCP, .extra = extra};
	struct couple *couple = check_alloc(sizeof(*couple));
	couple->master = test_server_start(&options);
	options.clock_ms = clock_ms;
	couple->replica = test_server_start(&options);
	int64_t master_us = time_at(couple->master);
	int64_t ahead_us = time_at(couple->replica) - master_us; /* and the time of asking it */
	ASSERT_BETWEEN(ahead_us / 1000, clock_ms - 1, clock_ms + 5000);
	test_replica_follow(couple->replica, couple->master);
	test_replica_settle(couple->master, 1);
	char *url =
		check_format("redis://127.0.0.1:%d,127.0.0.1:%d", test_server_port(couple->master),
	                     test_server_port(couple->replica));
	couple->client = open_url(url, HF_CLIENT(.on_event = note_loss, .event_arg = couple));
	couple->lock = open_lock(couple->client, "orders");
	free(url);
	return couple;
}

static void end_couple(struct couple *couple)
{
	close_both(couple->lock, couple->client);
	test_server_stop(couple->master);
	test_server_stop(couple->replica);
	free(couple);
}

/* The replica does not get what the master writes from now on. */
static void part(struct couple *couple)
{
	struct raw *raw = raw_connect(couple->replica);
	raw_ok(raw, "REPLICAOF", "NO", "ONE", NULL);
	raw_close(raw);
}

static int64_t take_token(struct couple *couple)
{
	int64_t token = 0;
	ASSERT_OK(hf_lock_acquire(couple->lock, HF_ACQUIRE(.token = 1, .wait_ms = 30000)));
	ASSERT_OK(hf_lock_token(couple->lock, NULL, &token));
	ASSERT_OK(hf_lock_release(couple->lock));
	return token;
}

/* ---- tokens ---- */

/* The new master counts on from the last token, which is ahead of its own clock. */
static void a_master_that_has_the_last_grant_gives_the_next_token(void **state)
{
	struct couple *couple = begin_couple(-BEHIND_MS);
	(void)state;
	int64_t last = take_token(couple);
	test_replica_settle(couple->master, 1);
	part(couple);
	test_server_kill(couple->master);
	assert_true(last > time_at(couple->replica));
	assert_true(take_token(couple) == last + 1);
	end_couple(couple);
}

/* docs/guarantees.md excludes this case: the token is only the time of the new master. */
static void a_slow_master_that_lacks_the_last_grant_gives_a_smaller_token(void **state)
{
	struct couple *couple = begin_couple(-BEHIND_MS);
	(void)state;
	int64_t first = take_token(couple);
	test_replica_settle(couple->master, 1);
	part(couple);
	int64_t last = take_token(couple);
	assert_true(last > first);
	test_server_kill(couple->master);
	long long killed_at = test_now_ms();
	int64_t next = take_token(couple);
	if (test_now_ms() - killed_at > BEHIND_MS / 2)
		skip(); /* the machine is so slow that the new master's clock has caught up */
	assert_true(next < last);
	/* It still follows the last token that the new master knows. */
	assert_true(next == first + 1);
	end_couple(couple);
}

/* The clock is slow by less than the time since the last grant, so it does not matter. */
static void a_clock_that_has_caught_up_gives_a_greater_token(void **state)
{
	struct couple *couple = begin_couple(-1000);
	(void)state;
	(void)take_token(couple);
	test_replica_settle(couple->master, 1);
	part(couple);
	int64_t last = take_token(couple);
	test_server_kill(couple->master);
	WAIT_UNTIL(time_at(couple->replica) > last, SOON_MS);
	int64_t before = time_at(couple->replica);
	assert_true(take_token(couple) >= before);
	end_couple(couple);
}

/* ---- leases ---- */

/*
 * From Redis 7.0 on, leases are replicated as points in time: on a clock that is ahead, they expire
 * early.
 */
static void a_lease_that_has_expired_at_a_fast_master_is_reported_lost(void **state)
{
	struct couple *couple = begin_couple(60000);
	(void)state;
	if (test_server_version(couple->master) < 70000) {
		print_message("left out: this server replicates leases as durations\n");
		end_couple(couple);
		return;
	}
	ASSERT_OK(hf_lock_acquire(couple->lock, NULL));
	long long granted_at = test_now_ms();
	test_replica_settle(couple->master, 1);
	part(couple);
	test_server_kill(couple->master);
	WAIT_UNTIL(atomic_load(&couple->lost_at), 30000);
	/* Not at valid-until, but when the hold is renewed at the new master. */
	ASSERT_BETWEEN(atomic_load(&couple->lost_at) - granted_at, 0, 20000);
	assert_int_equal(hf_lock_release(couple->lock), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "the server no longer had the hold");
	end_couple(couple);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_master_that_has_the_last_grant_gives_the_next_token),
		cmocka_unit_test(a_slow_master_that_lacks_the_last_grant_gives_a_smaller_token),
		cmocka_unit_test(a_clock_that_has_caught_up_gives_a_greater_token),
		cmocka_unit_test(a_lease_that_has_expired_at_a_fast_master_is_reported_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
