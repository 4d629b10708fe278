/* Corners of the lock: calls of one owner at once, interrupted threads, levels of a lost hold. */
#include "live/rivals.h"

#include <signal.h>
#include <unistd.h>

#define CHANNEL "redisson_lock__channel:{orders}"
#define MANY    50

static atomic_int completed;
static atomic_int failed;

static void count_done(void *arg, int result, int64_t number, const char *text)
{
	(void)arg;
	(void)number;
	(void)text;
	if (result)
		atomic_fetch_add(&failed, 1);
	atomic_fetch_add(&completed, 1);
}

static void calls_of_one_owner_at_once_are_levels_of_one_hold(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_owner *owner = new_owner();

	(void)state;
	atomic_store(&completed, 0);
	atomic_store(&failed, 0);
	for (int i = 0; i < MANY; i++)
		ASSERT_OK(
			hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner), count_done, NULL));
	WAIT_UNTIL(atomic_load(&completed) == MANY, SOON_MS);
	assert_int_equal(held_count(live_raw, "orders"), MANY);
	for (int i = 0; i < MANY; i++)
		ASSERT_OK(
			hf_lock_release_async(lock, HF_RELEASE(.owner = owner), count_done, NULL));
	WAIT_UNTIL(atomic_load(&completed) == 2 * MANY, SOON_MS);
	assert_int_equal(atomic_load(&failed), 0);
	assert_false(key_exists(live_raw, "orders"));
	hf_owner_free(owner);
	close_both(lock, client);
}

static void every_level_of_a_lost_hold_is_reported(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	for (int i = 0; i < 3; i++)
		ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	assert_int_equal(stats_of(client).losses, 1);
	close_both(lock, client);
}

static void hold_that_another_process_took_over_is_left_alone(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	/* As a Java process would leave it. */
	(void)raw_integer(live_raw, "HSET", "orders", "0f2d1a7c-0000-4000-8000-0123456789ab:51",
	                  "1", NULL);
	assert_int_equal(raw_integer(live_raw, "PEXPIRE", "orders", "20000", NULL), 1);
	ASSERT_RC(hf_lock_extend(lock, NULL, 60000), HF_ELOST);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "0f2d1a7c-0000-4000-8000-0123456789ab:51");
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 10000, 20000);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	close_both(lock, client);
}

static void many_waiters_leave_together_and_nothing_stays(void **state)
{
	struct waiter *waiters[MANY];
	struct rivals *rivals = open_rivals(HF_REENTRANT, NULL);
	hf_cancel *cancel = new_cancel();

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	for (int i = 0; i < MANY; i++)
		waiters[i] = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(rivals->two).waiting == MANY, SOON_MS);
	/* Only the first of them asks. */
	ASSERT_BETWEEN(stats_of(rivals->two).attempts, 1, 4);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	hf_cancel_fire(cancel);
	for (int i = 0; i < MANY; i++) {
		waiter_join(waiters[i], HF_ECANCELLED);
	}
	assert_int_equal(stats_of(rivals->two).waiting, 0);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	hf_cancel_free(cancel);
	close_rivals(rivals);
}

static void first_waiter_that_leaves_passes_its_place_on(void **state)
{
	struct rivals *rivals = open_rivals(HF_REENTRANT, NULL);
	hf_cancel *cancel = new_cancel();

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *first = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(rivals->two).waiting == 1, SOON_MS);
	struct waiter *second = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->two).waiting == 2, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_expect(first, HF_ECANCELLED);
	ASSERT_WAKES(hf_lock_release(rivals->mine), second, 1500);
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	hf_cancel_free(cancel);
	close_rivals(rivals);
}

/* ---- threads that are disturbed ---- */

static void ignore(int number)
{
	(void)number;
}

static void signals_and_thread_cancellation_do_not_end_a_wait(void **state)
{
	struct sigaction action = {.sa_handler = ignore};
	struct sigaction before;
	struct rivals *rivals = open_rivals(HF_REENTRANT, NULL);

	(void)state;
	sigaction(SIGUSR1, &action, &before);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pthread_kill(waiter->thread, SIGUSR1), 0);
		test_pause();
	}
	assert_int_equal(pthread_cancel(waiter->thread), 0);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(rivals->mine));
	/* The thread may end right after its call, but the call was answered. */
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	assert_int_equal(waiter->result, 0);
	assert_int_equal(hf_lock_state(rivals->theirs, waiter->options.owner), HF_HELD);
	ASSERT_OK(waiter_release(waiter));
	hf_owner_free(waiter->options.owner);
	free(waiter);
	sigaction(SIGUSR1, &before, NULL);
	close_rivals(rivals);
}

/* ---- clients that cannot be opened ---- */

static void client_of_no_server_is_refused_with_the_address(void **state)
{
	hf_client *client = NULL;

	(void)state;
	ASSERT_RC(hf_client_open("redis+unix:///nowhere/at/all", NULL, &client), HF_EUNREACHABLE);
	ASSERT_CONTAINS(hf_error_detail(), "/nowhere/at/all");
	ASSERT_RC(hf_client_open("http://localhost", NULL, &client), HF_EINVAL);
	ASSERT_RC(hf_client_open("redis://localhost:70000", NULL, &client), HF_EINVAL);
	ASSERT_RC(
		hf_client_open(test_server_url(live_server), HF_CLIENT(.watchdog_ms = -1), &client),
		HF_EINVAL);
	assert_null(client);
	ASSERT_OK(hf_client_close(NULL));
}

static void lazy_client_of_no_server_says_so_when_used(void **state)
{
	hf_client *client =
		open_url("redis+unix:///nowhere/at/all",
	                 HF_CLIENT(.lazy = 1, .connect_timeout_ms = 500, .watchdog_ms = 900));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)), HF_EUNREACHABLE);
	ASSERT_CONTAINS(hf_error_detail(), "/nowhere/at/all");
	ASSERT_RC(hf_client_ping(client, NULL), HF_EUNREACHABLE);
	close_both(lock, client);
}

static void *take_and_leave(void *lock)
{
	return hf_lock_acquire(lock, NULL) ? "not acquired" : NULL;
}

static void thread_that_ends_while_it_holds_is_mentioned(void **state)
{
	struct seen seen = {0};
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 900, LINES_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");
	pthread_t thread;
	void *said;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, take_and_leave, lock), 0);
	assert_int_equal(pthread_join(thread, &said), 0);
	assert_null(said);
	WAIT_UNTIL(seen_in_log(&seen, "orders: the thread that acquired it has ended"), SOON_MS);
	assert_true(key_exists(live_raw, "orders"));
	close_both(lock, client);
	assert_false(key_exists(live_raw, "orders"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(calls_of_one_owner_at_once_are_levels_of_one_hold),
		LIVE_STORY(every_level_of_a_lost_hold_is_reported),
		LIVE_STORY(hold_that_another_process_took_over_is_left_alone),
		LIVE_STORY(many_waiters_leave_together_and_nothing_stays),
		LIVE_STORY(first_waiter_that_leaves_passes_its_place_on),
		LIVE_STORY(signals_and_thread_cancellation_do_not_end_a_wait),
		LIVE_STORY(client_of_no_server_is_refused_with_the_address),
		LIVE_STORY(lazy_client_of_no_server_says_so_when_used),
		LIVE_STORY(thread_that_ends_while_it_holds_is_mentioned),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
