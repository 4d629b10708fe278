/* The stories of the fair lock and the simple fair one that the table of kinds does not have. */
#include "core/lock.h"
#include "live/fair.h"

/* ---- taking and giving up ---- */

static void lock_is_a_hash_with_the_owner_until_it_is_released(void **state)
{
	char field[128];
	char uuid[37];
	long long count;

	struct rivals *rivals = begin(state, 0);
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
		read_hold(live_raw, "orders", field, sizeof field, &count);
		assert_int_equal(count, 1);
		ASSERT_OK(hf_client_uuid(rivals->one, uuid));
		assert_memory_equal(field, uuid, 36);
		assert_int_equal(field[36], ':');
		ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 28000, 30000);
		/* An owner that finds the lock free needs no place and no channel. */
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
		assert_int_equal(channels(live_raw), 0);
		assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(rivals->mine));
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
		assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	}
	assert_int_equal(stats_of(rivals->one).attempts, 3);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	end(rivals);
}

static void holder_reenters_past_the_queue_and_counts(void **state)
{

	struct rivals *rivals = begin(state, 0);
	hf_lock *again = open_named(rivals->one, HF_FAIR, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 2000)));
	assert_int_equal(held_count(live_raw, "orders"), 3);
	assert_int_equal(queued(live_raw), 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_release(again));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_false(waiter_is_over(waiter));
	assert_int_equal(stats_of(rivals->two).wakeups, 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_finish(waiter);
	hf_lock_close(again);
	end(rivals);
}

/*
 * The release is answered with whose turn it is: each asks twice, and nobody listens. They do
 * listen after a while, so on a slow machine only the result is checked.
 */
static void waiters_of_the_holders_client_need_no_messages(void **state)
{
	struct waiter *waiters[3];

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	long long began_at = test_now_ms();
	for (int i = 0; i < 3; i++)
		waiters[i] = queue_up(rivals->mine, NULL, i + 1);
	long long listeners = listening(live_raw);
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < 3; i++) {
		waiter_finish(waiters[i]);
	}
	long long took_ms = test_now_ms() - began_at;
	if (took_ms < HF__LISTEN_MS) {
		assert_int_equal(listeners, 0);
		assert_int_equal(stats_of(rivals->one).attempts, 1 + 3 * 2);
		assert_int_equal(stats_of(rivals->one).wakeups, 0);
	} else {
		print_message("the commands were not counted: that took %lld ms\n", took_ms);
	}
	end(rivals);
}

/* ---- waiting ---- */

static void waiter_is_woken_by_the_message_on_a_channel_of_its_own(void **state)
{
	char owner[128];
	char channel[256];

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	read_place(0, owner, sizeof owner);
	snprintf(channel, sizeof channel, CHANNEL ":%s", owner);
	assert_int_equal(subscribers(live_raw, channel), 1);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 1500);
	assert_int_equal(stats_of(rivals->two).wakeups, 1);
	assert_int_equal(stats_of(rivals->two).attempts, 3);
	assert_true(is_held_by(live_raw, "orders", rivals->two));
	assert_false(key_exists(live_raw, QUEUE));
	assert_false(key_exists(live_raw, ENDS));
	waiter_finish(waiter);
	end(rivals);
}

/* ---- leases ---- */

static void late_release_of_a_free_lock_is_reported_too(void **state)
{

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 100)));
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 2000)));
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

static void watchdog_keeps_the_hold_and_lets_waiters_wait(void **state)
{

	struct rivals *rivals = begin(state, 900);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_RC(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 1300)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(stats_of(rivals->one).renewals, 2, 7);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_int_equal(stats_of(rivals->one).losses, 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	/* A lock that was given up is not renewed any more. */
	hf_stats before = stats_of(rivals->one);
	long long released_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - released_at >= 450, SOON_MS);
	assert_int_equal(stats_of(rivals->one).commands, before.commands);
	end(rivals);
}

static void release_by_force_lets_the_first_waiter_in_and_the_holder_learns_of_it(void **state)
{
	int was_held = -7;

	struct rivals *rivals = begin(state, 3000);
	hf_client *opener = open_client(NULL);
	hf_lock *forced = open_named(opener, kind_of(state), "orders");
	ASSERT_OK(hf_lock_force_release(forced, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *first = queue_up(rivals->theirs, NULL, 1);
	struct waiter *second = queue_up(rivals->theirs, NULL, 2);
	WAIT_UNTIL(stats_of(rivals->two).attempts >= 4, SOON_MS);
	ASSERT_WAKES(hf_lock_force_release(forced, &was_held), first, 1500);
	assert_int_equal(was_held, 1);
	assert_false(waiter_is_over(second));
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, SOON_MS);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "now held by");
	ASSERT_OK(waiter_release(first));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	close_both(forced, opener);
	end(rivals);
}

/* ---- tokens, and two waits of one owner ---- */

static void token_grows_with_every_grant(void **state)
{
	int64_t first = -7;
	int64_t second = -7;
	int64_t last = -7;

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.token = 1)));
	ASSERT_OK(hf_lock_token(rivals->mine, NULL, &first));
	assert_true(first > 0);
	struct waiter *waiter = queue_up(rivals->theirs, HF_ACQUIRE(.token = 1), 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(waiter, 0);
	ASSERT_OK(hf_lock_token(rivals->theirs, waiter->options.owner, &second));
	assert_true(second > first);
	ASSERT_OK(hf_lock_last_token(rivals->mine, &last));
	assert_int_equal(last, second);
	waiter_finish(waiter);
	/* The number stays for good, and nothing else does. */
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	assert_int_equal(key_pttl(live_raw, "redisson_lock_token:{orders}"), -1);
	raw_ok(live_raw, "FLUSHALL", NULL);
	end(rivals);
}

static void second_wait_of_one_owner_for_a_simple_lock_ends_as_a_deadlock(void **state)
{
	struct done first = {0};
	struct done second = {0};
	hf_owner *owner = new_owner();

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire_async(rivals->theirs, HF_ACQUIRE(.owner = owner), note_done,
	                                &first));
	ASSERT_OK(hf_lock_acquire_async(rivals->theirs, HF_ACQUIRE(.owner = owner), note_done,
	                                &second));
	WAIT_UNTIL(listening(live_raw) == 1, SOON_MS);
	/* One owner has one place. */
	assert_int_equal(queued(live_raw), 1);
	assert_int_equal(atomic_load(&second.calls), 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	await_done(&first, 0);
	await_done(&second, HF_EDEADLOCK);
	ASSERT_OK(hf_lock_release_with(rivals->theirs, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	end(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_STORIES(lock_is_a_hash_with_the_owner_until_it_is_released),
		FAIR_STORY(holder_reenters_past_the_queue_and_counts),
		SIMPLE_FAIR_STORY(second_wait_of_one_owner_for_a_simple_lock_ends_as_a_deadlock),
		BOTH_STORIES(waiters_of_the_holders_client_need_no_messages),
		BOTH_STORIES(waiter_is_woken_by_the_message_on_a_channel_of_its_own),
		BOTH_STORIES(late_release_of_a_free_lock_is_reported_too),
		BOTH_STORIES(watchdog_keeps_the_hold_and_lets_waiters_wait),
		BOTH_STORIES(release_by_force_lets_the_first_waiter_in_and_the_holder_learns_of_it),
		BOTH_STORIES(token_grows_with_every_grant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
