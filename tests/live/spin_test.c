/* The stories of the spin lock: it asks again and again, and publishes nothing. */
#include "live/spin.h"

#define CHANNEL "redisson_lock__channel:{orders}"

static hf_lock *open_spin(hf_client *client, const hf_lock_options *options)
{
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open_with(client, HF_SPIN, "orders", options, &lock));
	return lock;
}

/* ---- what is on the server ---- */

static void spin_lock_is_a_hash_with_the_owner(void **state)
{
	char field[128];
	char holder[128];
	long long count;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_spin(client, NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_hold(live_raw, "orders", field, sizeof field, &count);
	assert_int_equal(count, 1);
	ASSERT_OK(hf_lock_holder(lock, holder, sizeof holder));
	assert_string_equal(holder, field);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 20000, 30000);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(held_count(live_raw, "orders"), 2);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	close_both(lock, client);
}

static void nobody_subscribes_and_nothing_is_published(void **state)
{
	struct rivals *rivals = open_rivals(HF_SPIN, NULL);
	struct raw *ear = raw_connect(live_server);

	(void)state;
	long long published = command_calls(live_raw, "publish");
	raw_subscribe(ear, CHANNEL);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->two).attempts >= 5, SOON_MS);
	/* Only our own listener is subscribed. */
	assert_int_equal(channels(live_raw), 1);
	assert_int_equal(subscribers(live_raw, CHANNEL), 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_force_release(rivals->theirs, NULL));
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_null(raw_next_message(ear, 50));
	assert_int_equal(command_calls(live_raw, "publish"), published);
	assert_int_equal(stats_of(rivals->two).wakeups, 0);
	raw_close(ear);
	waiter_free(waiter);
	close_rivals(rivals);
}

/* ---- asking ---- */

static void only_the_first_waiter_of_a_client_asks(void **state)
{
	struct waiter *waiter[8];
	/* The pause is so long that no waiter asks twice meanwhile. */
	struct rivals *rivals = begin(HF_LOCK(.spin_factor = 1, .spin_ms = 60000));

	(void)state;
	hf_cancel *cancel = new_cancel();
	for (int i = 0; i < 8; i++)
		waiter[i] = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(rivals->two).waiting == 8, SOON_MS);
	WAIT_UNTIL(stats_of(rivals->two).attempts >= 1, SOON_MS);
	assert_int_equal(stats_of(rivals->two).attempts, 1);
	hf_cancel_fire(cancel);
	for (int i = 0; i < 8; i++) {
		waiter_join(waiter[i], HF_ECANCELLED);
	}
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	hf_cancel_free(cancel);
	close_rivals(rivals);
}

static void release_inside_the_client_is_seen_without_asking(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_spin(client, HF_LOCK(.spin_factor = 1, .spin_ms = 60000));

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(stats_of(client).waiting == 1, SOON_MS);
	ASSERT_WAKES(hf_lock_release(lock), waiter, 1500);
	waiter_finish(waiter);
	close_both(lock, client);
}

static void wait_ends_on_time_in_the_middle_of_a_pause(void **state)
{
	struct rivals *rivals = begin(HF_LOCK(.spin_factor = 1, .spin_ms = 60000));

	(void)state;
	long long started_at = test_now_ms();
	ASSERT_TIMES_OUT(200, hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = within_ms)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 200, 1200);
	assert_int_equal(stats_of(rivals->two).attempts, 1);
	end(rivals);
}

static void pause_starts_over_with_every_call(void **state)
{
	/* The second ask comes soon, the third not before 20 s. */
	struct rivals *rivals =
		begin(HF_LOCK(.spin_ms = 20, .spin_factor = 1000, .spin_max_ms = 60000));

	(void)state;
	for (uint64_t i = 1; i <= 2; i++) {
		hf_cancel *cancel = new_cancel();
		struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
		WAIT_UNTIL(stats_of(rivals->two).attempts == 2 * i, SOON_MS);
		hf_cancel_fire(cancel);
		waiter_join(waiter, HF_ECANCELLED);
		hf_cancel_free(cancel);
	}
	end(rivals);
}

static void handles_of_one_lock_may_spin_differently(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_spin(one, NULL);
	hf_lock *slow = open_spin(two, HF_LOCK(.spin_factor = 1, .spin_ms = 60000));
	hf_lock *fast = open_spin(two, HF_LOCK(.spin_factor = 1, .spin_ms = 5));

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_TIMES_OUT(100, hf_lock_acquire(slow, HF_ACQUIRE(.wait_ms = within_ms)));
	assert_int_equal(stats_of(two).attempts, 1);
	struct waiter *waiter = waiter_start(fast, NULL);
	WAIT_UNTIL(stats_of(two).attempts >= 5, SOON_MS);
	ASSERT_OK(hf_lock_release(mine));
	waiter_expect(waiter, 0);
	/* They are the same lock. */
	ASSERT_OK(hf_lock_release_with(slow, HF_RELEASE(.owner = waiter->options.owner)));
	waiter_free(waiter);
	hf_lock_close(mine);
	hf_lock_close(slow);
	hf_lock_close(fast);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

/* ---- asynchronous forms ---- */

static void pending_acquire_completes_soon_after_the_release(void **state)
{
	struct done done = {0};
	struct rivals *rivals = open_rivals(HF_SPIN, NULL);
	hf_owner *owner = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire_async(rivals->theirs, HF_ACQUIRE(.owner = owner), note_done,
	                                &done));
	WAIT_UNTIL(stats_of(rivals->two).attempts >= 5, SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release(rivals->mine));
	await_done(&done, 0);
	/* The longest pause is 128 ms. */
	ASSERT_BETWEEN(done.at - released_at, 0, 1000);
	ASSERT_OK(hf_lock_release_with(rivals->theirs, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	close_rivals(rivals);
}

static void timed_and_single_tries_complete_as_they_should(void **state)
{
	struct done done = {0};
	struct rivals *rivals = open_rivals(HF_SPIN, NULL);
	hf_owner *owner = new_owner();
	hf_acquire_options *options = HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT);

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire_async(rivals->theirs, options, note_done, &done));
	await_done(&done, HF_EBUSY);
	assert_int_equal(stats_of(rivals->two).attempts, 1);
	/* It asks only once, so that no ask is in flight when the time has run out. */
	hf_lock *patient = open_spin(rivals->two, HF_LOCK(.spin_factor = 1, .spin_ms = 60000));
	options->wait_ms = 300;
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire_async(patient, options, note_done, &done));
	await_done(&done, HF_ETIMEDOUT);
	ASSERT_BETWEEN(done.at - started_at, 300, 1300);
	options->wait_ms = 9000;
	ASSERT_OK(hf_lock_acquire_async(rivals->theirs, options, note_done, &done));
	WAIT_UNTIL(stats_of(rivals->two).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	await_done(&done, 0);
	ASSERT_OK(hf_lock_release_with(rivals->theirs, HF_RELEASE(.owner = owner)));
	options->wait_ms = HF_NOWAIT;
	ASSERT_OK(hf_lock_acquire_async(rivals->theirs, options, note_done, &done));
	await_done(&done, 0);
	ASSERT_OK(hf_lock_release_with(rivals->theirs, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	hf_lock_close(patient);
	close_rivals(rivals);
}

/* ---- options ---- */

static void expect_refused(hf_client *client, hf_kind kind, const hf_lock_options *options)
{
	hf_lock *lock = NULL;
	ASSERT_RC(hf_lock_open_with(client, kind, "orders", options, &lock), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "spin");
	assert_null(lock);
}

static void options_that_make_no_sense_are_refused(void **state)
{
	hf_client *client = open_client(NULL);

	(void)state;
	expect_refused(client, HF_SPIN, HF_LOCK(.spin_ms = -1));
	expect_refused(client, HF_SPIN, HF_LOCK(.spin_ms = 60001));
	expect_refused(client, HF_SPIN, HF_LOCK(.spin_max_ms = -1));
	expect_refused(client, HF_SPIN, HF_LOCK(.spin_max_ms = 60001));
	expect_refused(client, HF_SPIN, HF_LOCK(.spin_factor = -1));
	expect_refused(client, HF_SPIN, HF_LOCK(.spin_factor = 1001));
	expect_refused(client, HF_REENTRANT, HF_LOCK(.spin_ms = 5));
	expect_refused(client, HF_FENCED, HF_LOCK(.spin_factor = 2));
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open_with(client, HF_FENCED, "orders", HF_LOCK(.spin_ms = 0), &lock));
	hf_lock_close(lock);
	/* Options of a caller that knows fewer of them. */
	hf_lock_options older = {.size = offsetof(hf_lock_options, spin_max_ms), .spin_ms = 7};
	ASSERT_OK(hf_lock_open_with(client, HF_SPIN, "orders", &older, &lock));
	close_both(lock, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(spin_lock_is_a_hash_with_the_owner),
		LIVE_STORY(nobody_subscribes_and_nothing_is_published),
		LIVE_STORY(only_the_first_waiter_of_a_client_asks),
		LIVE_STORY(release_inside_the_client_is_seen_without_asking),
		LIVE_STORY(wait_ends_on_time_in_the_middle_of_a_pause),
		LIVE_STORY(pause_starts_over_with_every_call),
		LIVE_STORY(handles_of_one_lock_may_spin_differently),
		LIVE_STORY(pending_acquire_completes_soon_after_the_release),
		LIVE_STORY(timed_and_single_tries_complete_as_they_should),
		LIVE_STORY(options_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
