/* Many threads, many clients, many locks: nothing is lost, nothing grows, nothing is left. */
#include "live/live.h"

#include "support/counting.h"

#define THREADS 500
#define ROUNDS  4
#define CLIENTS 16
#define EACH    4
#define HOLDS   10000

/* Clients with a handle each to one lock. */
struct crowd {
	hf_client *client[CLIENTS];
	hf_lock *lock[CLIENTS];
	int clients;
};

static void run_crowd(struct crowd *crowd, int threads, int rounds)
{
	for (int i = 0; i < crowd->clients; i++) {
		crowd->client[i] = open_client(NULL);
		crowd->lock[i] = open_lock(crowd->client[i], "crowd");
	}
	COUNT_TOGETHER(.locks = crowd->lock, .n = crowd->clients, .threads = threads,
	               .rounds = rounds);
}

static void end_crowd(struct crowd *crowd)
{
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	for (int i = 0; i < crowd->clients; i++) {
		close_both(crowd->lock[i], crowd->client[i]);
	}
}

static long long commands_of_clients(void)
{
	return command_calls(live_raw, "evalsha") + command_calls(live_raw, "eval") +
	       command_calls(live_raw, "subscribe") + command_calls(live_raw, "unsubscribe");
}

static void five_hundred_threads_of_one_client_lose_no_update(void **state)
{
	struct crowd crowd = {.clients = 1};

	(void)state;
	long long before = commands_of_clients();
	run_crowd(&crowd, THREADS, ROUNDS);
	hf_stats stats = stats_of(crowd.client[0]);
	assert_int_equal(stats.grants, THREADS * ROUNDS);
	assert_true(stats.handovers > 0);
	/* One to take the lock and one to give it up, but only one to hand it over. */
	long long least = 2 * THREADS * ROUNDS - (long long)stats.handovers;
	ASSERT_BETWEEN(commands_of_clients() - before, least, least * 11 / 10 + 10);
	/*
	 * The threads of one process do not compete on the wire: hardly an ask finds the lock busy.
	 */
	ASSERT_BETWEEN(stats.attempts, THREADS * ROUNDS, THREADS * ROUNDS * 11 / 10 + 10);
	end_crowd(&crowd);
}

static void many_clients_with_many_threads_lose_no_update(void **state)
{
	struct crowd crowd = {.clients = CLIENTS};
	uint64_t attempts = 0;
	uint64_t grants = 0;

	(void)state;
	run_crowd(&crowd, CLIENTS * EACH, 10);
	for (int i = 0; i < CLIENTS; i++) {
		attempts += stats_of(crowd.client[i]).attempts;
		grants += stats_of(crowd.client[i]).grants;
	}
	assert_int_equal(grants, CLIENTS * EACH * 10);
	/* A release wakes one waiter per process, so this is a few asks per client and grant. */
	ASSERT_BETWEEN(attempts, grants, grants * CLIENTS * 2);
	end_crowd(&crowd);
}

/* ---- many holds ---- */

static void take_all(hf_client *client)
{
	for (int i = 0; i < HOLDS; i++) {
		char name[32];
		snprintf(name, sizeof name, "hold-%d", i);
		hf_lock *lock = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		hf_lock_close(lock);
	}
}

static void give_all_back(hf_client *client)
{
	for (int i = 0; i < HOLDS; i++) {
		char name[32];
		snprintf(name, sizeof name, "hold-%d", i);
		hf_lock *lock = open_lock(client, name);
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
}

static void ten_thousand_holds_are_renewed_in_batches(void **state)
{
	const int64_t watchdog_ms = 3000;
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = watchdog_ms));

	(void)state;
	take_all(client);
	assert_int_equal(stats_of(client).held, HOLDS);
	hf_stats before = stats_of(client);
	long long started_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - started_at >= 2 * watchdog_ms, 4 * watchdog_ms);
	hf_stats after = stats_of(client);
	assert_int_equal(after.losses, 0);
	assert_int_equal(after.held, HOLDS);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), HOLDS);
	/* Six intervals passed, and a script renews a hundred; half-filled ones are few. */
	ASSERT_BETWEEN(after.renewals - before.renewals, 5 * HOLDS, 8 * HOLDS);
	ASSERT_BETWEEN(after.renewal_scripts - before.renewal_scripts, 5 * HOLDS / 100,
	               8 * HOLDS / 100 * 3 / 2 + 60);
	give_all_back(client);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	ASSERT_OK(hf_client_close(client));
}

static void renewals_do_not_grow_with_earlier_use(void **state)
{
	const int64_t watchdog_ms = 600;
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = watchdog_ms));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	for (int i = 0; i < 1000; i++) {
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
	}
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	hf_stats before = stats_of(client);
	/* The first renewal of a connection is sent with its script. */
	long long calls = command_calls(live_raw, "evalsha") + command_calls(live_raw, "eval");
	long long started_at = test_now_ms();
	WAIT_UNTIL(stats_of(client).renewals >= before.renewals + 5, SOON_MS);
	hf_stats after = stats_of(client);
	long long elapsed_ms = test_now_ms() - started_at;
	/* Once per interval of a third of the lease, which may begin up to a thirtieth earlier. */
	ASSERT_BETWEEN(after.renewals - before.renewals, 5, 6);
	ASSERT_BETWEEN(after.renewal_scripts - before.renewal_scripts, 5, 7);
	ASSERT_BETWEEN(after.commands - before.commands, 5, 7);
	ASSERT_BETWEEN(command_calls(live_raw, "evalsha") + command_calls(live_raw, "eval") - calls,
	               5, 8);
	ASSERT_BETWEEN(elapsed_ms, 5 * (watchdog_ms / 3 - watchdog_ms / 30) - 20, SOON_MS);
	ASSERT_OK(hf_lock_release(lock));
	/* And a lock that was given up is not renewed any more. */
	before = stats_of(client);
	started_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - started_at >= watchdog_ms, SOON_MS);
	assert_int_equal(stats_of(client).commands, before.commands);
	close_both(lock, client);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	assert_int_equal(channels(live_raw), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(five_hundred_threads_of_one_client_lose_no_update),
		LIVE_STORY(many_clients_with_many_threads_lose_no_update),
		LIVE_STORY(ten_thousand_holds_are_renewed_in_batches),
		LIVE_STORY(renewals_do_not_grow_with_earlier_use),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
