/* Waiting for the permits of a semaphore: which waiters are woken, and what breaks meanwhile. */
#include "live/semaphore.h"

#include <sched.h>

/* ---- waiting ---- */

static void every_way_to_give_wakes_and_says_the_total(void **state)
{
	struct pair pair;
	struct raw *listener = listen_to(CHANNEL);

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 3, 0, NULL));
	expect_message(listener, "3");
	ASSERT_OK(hf_semaphore_release(pair.mine, 2));
	expect_message(listener, "5");
	ASSERT_OK(hf_semaphore_add(pair.mine, 4));
	expect_message(listener, "9");
	ASSERT_OK(hf_semaphore_add(pair.mine, -10));
	expect_message(listener, "-1");
	ASSERT_OK(hf_semaphore_release_if_exists(pair.mine, 2, NULL));
	expect_message(listener, "1");
	ASSERT_OK(take(pair.mine, 1));
	ASSERT_OK(hf_semaphore_drain(pair.mine, NULL));
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 3, 0, NULL));
	expect_silence(listener);
	raw_close(listener);
	end(&pair);
}

static void waiter_for_two_waits_on_after_one(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	struct waiter *call = sleeper(&pair, 2);
	uint64_t attempts = stats_of(pair.two).attempts;
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	WAIT_UNTIL(stats_of(pair.two).attempts > attempts, SOON_MS);
	ASSERT_OK(hf_semaphore_acquire(pair.mine, 1, NULL));
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	assert_false(waiter_is_over(call));
	assert_int_equal(number_at(live_raw, "orders"), 1);
	ASSERT_WAKES(hf_semaphore_add(pair.mine, 1), call, WOKEN_MS);
	assert_int_equal(number_at(live_raw, "orders"), 0);
	waiter_free(call);
	end(&pair);
}

/*
 * A message wakes as many as it counts, and a waiter that cannot be served must not block the
 * others.
 */
static void small_request_after_a_large_one_is_woken(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	struct waiter *large = sleeper(&pair, 4);
	struct waiter *small = sleeper(&pair, 1);
	WAIT_UNTIL(stats_of(pair.two).waiting == 2, SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	waiter_expect(small, 0);
	assert_false(waiter_is_over(large));
	long long took_ms = small->ended_at - released_at;
	ASSERT_OK(hf_semaphore_release(pair.mine, 4));
	waiter_expect(large, 0);
	ASSERT_BETWEEN(took_ms, 0, WOKEN_MS);
	waiter_free(large);
	waiter_free(small);
	end(&pair);
}

static void all_waiters_go_when_there_is_enough_for_all(void **state)
{
	struct waiter *calls[6];
	struct pair pair;

	(void)state;
	begin(&pair);
	for (int i = 0; i < 6; i++)
		calls[i] = WAITER(.semaphore = i % 2 ? pair.mine : pair.theirs, .n = 1);
	WAIT_UNTIL(stats_of(pair.one).waiting + stats_of(pair.two).waiting == 6 &&
	                   subscribers(live_raw, CHANNEL) == 2,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	long long released_at = test_now_ms();
	ASSERT_OK(hf_semaphore_release(pair.mine, MOST));
	for (int i = 0; i < 6; i++) {
		waiter_expect(calls[i], 0);
		ASSERT_BETWEEN(calls[i]->ended_at - released_at, 0, WOKEN_MS);
		waiter_free(calls[i]);
	}
	assert_int_equal(number_at(live_raw, "orders"), MOST - 6);
	end(&pair);
}

static void try_of_too_many_is_busy_at_once(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 1, 0, NULL));
	ASSERT_RC(take(pair.theirs, 2), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(pair.two).attempts, 1);
	assert_int_equal(channels(live_raw), 0);
	assert_int_equal(number_at(live_raw, "orders"), 1);
	ASSERT_OK(take(pair.theirs, 1));
	end(&pair);
}

static void wait_for_a_semaphore_that_does_not_exist_leaves_no_key(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_TIMES_OUT(100, hf_semaphore_acquire(pair.theirs, 1, HF_WAIT(.wait_ms = within_ms)));
	assert_int_equal(count_keys(live_raw), 0);
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	assert_int_equal(number_at(live_raw, "orders"), 1);
	end(&pair);
}

static void close_answers_the_waiters_and_gives_nothing_back(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 3, 0, NULL));
	ASSERT_OK(hf_semaphore_acquire(pair.theirs, 3, NULL));
	struct waiter *call = sleeper(&pair, 1);
	long long closed_at = test_now_ms();
	ASSERT_OK(sync_close(pair.two));
	waiter_expect(call, HF_ECLOSED);
	ASSERT_BETWEEN(test_now_ms() - closed_at, 0, 900);
	ASSERT_RC(hf_semaphore_acquire(pair.theirs, 1, NULL), HF_ECLOSED);
	ASSERT_RC(hf_semaphore_acquire(pair.theirs, 0, NULL), HF_ECLOSED);
	ASSERT_RC(hf_semaphore_release(pair.theirs, 1), HF_ECLOSED);
	ASSERT_RC(hf_semaphore_available_async(pair.theirs, fail_on_done, NULL), HF_ECLOSED);
	assert_int_equal(number_at(live_raw, "orders"), 0);
	waiter_free(call);
	pair.two = NULL;
	end(&pair);
}

/* ---- processes ---- */

static void take_one(hf_client *client)
{
	hf_semaphore *semaphore;
	if (hf_semaphore_open(client, "orders", &semaphore) ||
	    hf_semaphore_acquire(semaphore, 1, NULL))
		_exit(1);
}

static void permits_of_a_killed_process_are_gone(void **state)
{
	struct pair pair;

	(void)state;
	raw_ok(live_raw, "SET", "orders", "1", NULL);
	pid_t holder = start_child(take_one, 600);
	WAIT_UNTIL(number_at(live_raw, "orders") == 0, SOON_MS);
	pid_t waiter = start_child(take_one, 600);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	kill_child(holder);
	kill_child(waiter);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	assert_int_equal(number_at(live_raw, "orders"), 0);
	begin(&pair);
	/* The dead waiter takes nothing any more. */
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	assert_int_equal(number_at(live_raw, "orders"), 1);
	ASSERT_OK(take(pair.mine, 1));
	end(&pair);
}

/* ---- many at once ---- */

#define THREADS 6
#define ROUNDS  15

struct crowd {
	hf_semaphore *semaphore;
	int64_t permits;
	int *counter; /* protected by the permits only */
	int result;
};

/* The holder of all permits, or of the only one, is alone inside. */
static void *count_alone(void *arg)
{
	struct crowd *crowd = arg;
	for (int i = 0; i < ROUNDS && !crowd->result; i++) {
		crowd->result = hf_semaphore_acquire(crowd->semaphore, crowd->permits, NULL);
		if (crowd->result)
			break;
		int before = *(volatile int *)crowd->counter;
		if (crowd->permits != 1 || i % 4 == 0)
			sched_yield();
		*(volatile int *)crowd->counter = before + 1;
		crowd->result = hf_semaphore_release(crowd->semaphore, crowd->permits);
	}
	return NULL;
}

static void run_crowd(int64_t permits)
{
	struct crowd crowd[THREADS];
	pthread_t threads[THREADS];
	struct pair pair;
	int counter = 0;

	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, permits, 0, NULL));
	for (int i = 0; i < THREADS; i++) {
		crowd[i] = (struct crowd){i % 2 ? pair.mine : pair.theirs, permits, &counter, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, count_alone, &crowd[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(crowd[i].result, 0);
	}
	assert_int_equal(counter, THREADS * ROUNDS);
	assert_int_equal(number_at(live_raw, "orders"), permits);
	assert_int_equal(stats_of(pair.one).unknowns + stats_of(pair.two).unknowns, 0);
	end(&pair);
}

static void one_permit_excludes(void **state)
{
	(void)state;
	run_crowd(1);
}

static void all_permits_exclude_however_many(void **state)
{
	(void)state;
	run_crowd(MOST);
}

static void *pass_through(void *arg)
{
	struct crowd *crowd = arg;
	for (int i = 0; i < ROUNDS && !crowd->result; i++) {
		crowd->result = hf_semaphore_acquire(crowd->semaphore, crowd->permits, NULL);
		if (!crowd->result)
			crowd->result = hf_semaphore_release(crowd->semaphore, crowd->permits);
	}
	return NULL;
}

static void one_and_very_many_pass_through_together(void **state)
{
	struct crowd crowd[4];
	pthread_t threads[4];
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, MOST, 0, NULL));
	for (int i = 0; i < 4; i++) {
		crowd[i] =
			(struct crowd){i % 2 ? pair.mine : pair.theirs, i < 2 ? 1 : MOST, NULL, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, pass_through, &crowd[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(crowd[i].result, 0);
	}
	assert_int_equal(number_at(live_raw, "orders"), MOST);
	end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(every_way_to_give_wakes_and_says_the_total),
		SYNC_STORY(waiter_for_two_waits_on_after_one),
		SYNC_STORY(small_request_after_a_large_one_is_woken),
		SYNC_STORY(all_waiters_go_when_there_is_enough_for_all),
		SYNC_STORY(try_of_too_many_is_busy_at_once),
		SYNC_STORY(wait_for_a_semaphore_that_does_not_exist_leaves_no_key),
		SYNC_STORY(close_answers_the_waiters_and_gives_nothing_back),
		SYNC_STORY(permits_of_a_killed_process_are_gone),
		SYNC_STORY(one_permit_excludes),
		SYNC_STORY(all_permits_exclude_however_many),
		SYNC_STORY(one_and_very_many_pass_through_together),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
