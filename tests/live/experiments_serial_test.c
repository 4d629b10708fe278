/*
 * The three experiments with leases and the watchdog that new users tend to make. All times are
 * divided by five: a lease of 3 s is 600 ms here, work of 5 s is 1 s.
 */
#include "live/child.h"

#define LEASE_MS    600
#define WORK_MS     1000
#define WAIT_MS     1200
#define WATCHDOG_MS 3000

/* Works for a while; work is time, and nothing else happens in it. */
static void work(long long ms)
{
	long long started_at = test_now_ms();
	while (test_now_ms() - started_at < ms)
		test_pause();
}

/* ---- 1: the watchdog, and a lock that is never released ---- */

static void lock_never_released_is_held_as_long_as_its_process_lives(void **state)
{
	pid_t holder = start_holder(HF_REENTRANT, "orders", WATCHDOG_MS);
	long long lowest = WATCHDOG_MS;

	(void)state;
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	long long started_at = test_now_ms();
	while (test_now_ms() - started_at < WATCHDOG_MS * 3 / 2) {
		long long pttl = key_pttl(live_raw, "orders");
		lowest = pttl < lowest ? pttl : lowest;
		test_pause();
	}
	/* Renewed at every third of the lease, it never comes near its end. */
	ASSERT_BETWEEN(lowest, WATCHDOG_MS / 3, WATCHDOG_MS);
	kill_child(holder);
	long long killed_at = test_now_ms();
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 10000)));
	/*
	 * It lasted at least two thirds of a lease, less the delay of a late renewal, and one lease
	 * at most.
	 */
	ASSERT_BETWEEN(test_now_ms() - killed_at, WATCHDOG_MS / 3, WATCHDOG_MS + 500);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* ---- 2 and 3: two threads that take turns ---- */

struct worker {
	pthread_t thread;
	hf_lock *lock;
	int64_t wait_ms;
	int64_t lease_ms;
	int acquired;
	int released;
	hf_state state_after_work;
	long long got_in_at;
	long long out_at;
	char detail[400];
};

static void *run_worker(void *arg)
{
	struct worker *worker = arg;
	worker->acquired = hf_lock_acquire(
		worker->lock, HF_ACQUIRE(.wait_ms = worker->wait_ms, .lease_ms = worker->lease_ms));
	worker->got_in_at = test_now_ms();
	if (worker->acquired)
		return NULL;
	work(WORK_MS);
	worker->state_after_work = hf_lock_state(worker->lock, NULL);
	worker->out_at = test_now_ms();
	worker->released = hf_lock_release(worker->lock);
	snprintf(worker->detail, sizeof worker->detail, "%s", hf_error_detail());
	return NULL;
}

static void run_two(struct worker workers[2], hf_lock *lock, int64_t wait_ms, int64_t lease_ms)
{
	for (int i = 0; i < 2; i++) {
		workers[i] =
			(struct worker){.lock = lock, .wait_ms = wait_ms, .lease_ms = lease_ms};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]),
		                 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(workers[i].thread, NULL);
	/* The first is the one that got in first. */
	if (workers[0].got_in_at > workers[1].got_in_at) {
		struct worker first = workers[1];
		workers[1] = workers[0];
		workers[0] = first;
	}
}

static void work_longer_than_the_lease_is_reported_to_both(void **state)
{
	struct worker workers[2];
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	run_two(workers, lock, 0, LEASE_MS);
	assert_int_equal(workers[0].acquired, 0);
	assert_int_equal(workers[1].acquired, 0);
	ASSERT_BETWEEN(workers[1].got_in_at - workers[0].got_in_at, LEASE_MS - 50, LEASE_MS + 350);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(workers[i].state_after_work, HF_LOST);
		assert_int_equal(workers[i].released, HF_ELOST);
		ASSERT_CONTAINS(workers[i].detail, "lease of 600 ms ended");
	}
	/* When the first was notified, the second held the lock. */
	ASSERT_CONTAINS(workers[0].detail, "now held by");
	assert_null(strstr(workers[1].detail, "now held by"));
	/* Nothing else is broken. */
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(stats_of(client).losses, 2);
	close_both(lock, client);
}

static void watchdog_lets_both_in_one_after_the_other(void **state)
{
	struct worker workers[2];
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = WORK_MS - 100));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	run_two(workers, lock, WAIT_MS, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(workers[i].acquired, 0);
		assert_int_equal(workers[i].state_after_work, HF_HELD);
		assert_int_equal(workers[i].released, 0);
	}
	/* The second entered right when the first had left. */
	ASSERT_BETWEEN(workers[1].got_in_at - workers[0].out_at, 0, 500);
	assert_int_equal(stats_of(client).losses, 0);
	assert_false(key_exists(live_raw, "orders"));
	close_both(lock, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(lock_never_released_is_held_as_long_as_its_process_lives),
		LIVE_STORY(work_longer_than_the_lease_is_reported_to_both),
		LIVE_STORY(watchdog_lets_both_in_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
