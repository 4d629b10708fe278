/* Groups: values of one hash that are taken, waited for and lost together. */
#include "live/group.h"

/* ---- taking and nesting ---- */

static void group_is_one_hash_with_three_fields_for_each_value(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	long long before = server_now();
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	long long after = server_now();
	assert_int_equal(fields(), 6);
	assert_true(value_is_of(TEST1, rivals->one));
	assert_true(value_is_of(TEST2, rivals->one));
	char *first = field_of(TEST1);
	char *second = field_of(TEST2);
	assert_string_equal(first, second);
	free(first);
	free(second);
	assert_int_equal(number_of(TEST1, "lock_count"), 1);
	assert_int_equal(number_of(TEST2, "lock_count"), 1);
	ASSERT_BETWEEN(number_of(TEST1, "expire_time"), before + 30000, after + 30000);
	ASSERT_BETWEEN(number_of(TEST2, "expire_time"), before + 30000, after + 30000);
	ASSERT_BETWEEN(key_pttl(live_raw, "students"), 25000, 30500);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	expect_no_keys();
	close_rivals(rivals);
}

static void reentering_counts_every_value(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	/* Another order, and one of them twice: the same lock. */
	hf_lock *again = GROUP(rivals->one, "test2", "test1", "test2");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(fields(), 6);
	assert_int_equal(number_of(TEST1, "lock_count"), 2);
	assert_int_equal(number_of(TEST2, "lock_count"), 2);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(number_of(TEST1, "lock_count"), 1);
	assert_int_equal(number_of(TEST2, "lock_count"), 1);
	ASSERT_RC(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(again));
	assert_false(key_exists(live_raw, "students"));
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	hf_lock_close(again);
	close_rivals(rivals);
}

static void only_shared_values_exclude_and_none_is_taken_alone(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	hf_lock *apart = GROUP(rivals->two, "a", "b");
	hf_lock *shared = GROUP(rivals->two, "c", "test2");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(apart, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_true(value_is_of(A, rivals->two));
	assert_int_equal(fields(), 12);
	ASSERT_RC(hf_lock_acquire(shared, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "students");
	ASSERT_TIMES_OUT(150, hf_lock_acquire(shared, HF_ACQUIRE(.wait_ms = within_ms)));
	assert_int_equal(fields(), 12);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_acquire(shared, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(shared));
	ASSERT_OK(hf_lock_release(apart));
	expect_no_keys();
	hf_lock_close(apart);
	hf_lock_close(shared);
	close_rivals(rivals);
}

static void every_value_needs_to_be_one(void **state)
{
	static const char *const none[] = {"a", NULL};
	char text[101][16];
	const char *many[101];
	hf_lock *lock = NULL;
	hf_client *client = open_client(NULL);

	(void)state;
	for (int i = 0; i < 101; i++) {
		snprintf(text[i], sizeof text[i], "%d", i);
		many[i] = text[i];
	}
	ASSERT_RC(hf_lock_open_group(client, "students", many, 0, &lock), HF_EINVAL);
	ASSERT_RC(hf_lock_open_group(client, "students", many, 101, &lock), HF_EINVAL);
	ASSERT_RC(hf_lock_open_group(client, "students", none, 2, &lock), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "values[1]");
	ASSERT_RC(hf_lock_open_group(client, "students", NULL, 1, &lock), HF_EINVAL);
	ASSERT_RC(hf_lock_open_group(NULL, "students", many, 1, &lock), HF_EINVAL);
	ASSERT_RC(hf_lock_open_group(client, "stu{dents", many, 1, &lock), HF_EINVAL);
	assert_null(lock);
	ASSERT_OK(hf_lock_open_group(client, "students", many, 100, &lock));
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.token = 1)), HF_EINVAL);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(fields(), 300);
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	/* Empty and odd values are values. */
	lock = GROUP(client, "", "\xc3\xa9t\xc3\xa9");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_true(value_is_of("t6rZwibGo2uy1OSmNVe8pg", client));
	assert_true(value_is_of("4KIPJaphtmVIfVFFOBnyUQ", client));
	ASSERT_OK(hf_lock_release(lock));
	expect_no_keys();
	close_both(lock, client);
}

/* ---- waiting ---- */

static void release_wakes_the_waiters_of_every_value(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	hf_lock *first = GROUP(rivals->two, "test1");
	hf_lock *second = GROUP(rivals->two, "test2");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *one = waiter_start(first, NULL);
	struct waiter *two = waiter_start(second, NULL);
	WAIT_UNTIL(stats_of(rivals->two).attempts == 4 && subscribers(live_raw, CHANNEL) == 1,
	           SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(one, 0);
	waiter_expect(two, 0);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_BETWEEN(one->ended_at - released_at, 0, 1500);
	ASSERT_BETWEEN(two->ended_at - released_at, 0, 1500);
	assert_true(stats_of(rivals->two).wakeups >= 1);
	ASSERT_OK(waiter_release(one));
	ASSERT_OK(waiter_release(two));
	waiter_free(one);
	waiter_free(two);
	expect_nothing_left();
	hf_lock_close(first);
	hf_lock_close(second);
	close_rivals(rivals);
}

static void waiter_gets_its_values_when_the_last_of_them_is_free(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	hf_lock *first = GROUP(rivals->one, "test1");
	hf_lock *second = GROUP(rivals->one, "test2");
	ASSERT_OK(hf_lock_acquire(first, NULL));
	ASSERT_OK(hf_lock_acquire(second, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	ASSERT_OK(hf_lock_release(first));
	WAIT_UNTIL(stats_of(rivals->two).attempts >= 3, SOON_MS);
	/* It holds nothing while it waits for the other. */
	assert_int_equal(fields(), 3);
	assert_false(waiter_is_over(waiter));
	ASSERT_WAKES(hf_lock_release(second), waiter, 1500);
	waiter_finish(waiter);
	hf_lock_close(first);
	hf_lock_close(second);
	close_rivals(rivals);
}

static void wait_that_fails_leaves_nothing(void **state)
{
	hf_cancel *cancel = new_cancel();

	(void)state;
	struct rivals *rivals = begin(30000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	long long started_at = test_now_ms();
	ASSERT_TIMES_OUT(300, hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = within_ms)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 300, 1300);
	assert_int_equal(stats_of(rivals->two).timeouts, 1);
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(rivals->two).waiting == 1 && subscribers(live_raw, CHANNEL) == 1,
	           SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 1000);
	assert_int_equal(fields(), 6);
	assert_true(value_is_of(TEST1, rivals->one));
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	expect_nothing_left();
	waiter_free(waiter);
	hf_cancel_free(cancel);
	close_rivals(rivals);
}

/* ---- leases ---- */

static void lease_that_expires_lets_the_next_one_in_and_is_reported(void **state)
{
	(void)state;
	struct rivals *rivals = begin(1500);
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 800)));
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 6000)));
	ASSERT_BETWEEN(test_now_ms() - before, 800, 2500);
	assert_int_equal(stats_of(rivals->one).renewals, 0);
	assert_int_equal(hf_lock_remaining(rivals->mine, NULL), 0);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_LOST);
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(rivals->seen.name, "students");
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_true(value_is_of(TEST1, rivals->two));
	assert_true(value_is_of(TEST2, rivals->two));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	expect_no_keys();
	close_rivals(rivals);
}

static void lapsed_value_in_a_living_hash_is_free(void **state)
{
	int yes = -7;

	(void)state;
	struct rivals *rivals = begin(30000);
	hf_lock *long_lived = GROUP(rivals->one, "a");
	ASSERT_OK(hf_lock_acquire(long_lived, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 300)));
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 6000)));
	/* What the expired hold had left is gone with it. */
	assert_int_equal(fields(), 9);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_int_equal(number_of(TEST1, "lock_count"), 1);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	assert_int_equal(fields(), 3);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 100)));
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, SOON_MS);
	long long lapsed_at = number_of(TEST1, "expire_time");
	WAIT_UNTIL(server_now() > lapsed_at, SOON_MS);
	assert_int_equal(fields(), 9);
	ASSERT_OK(hf_lock_is_locked(rivals->theirs, &yes));
	assert_int_equal(yes, 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_lock_release(long_lived));
	hf_lock_close(long_lived);
	close_rivals(rivals);
}

static void holds_are_renewed_and_all_ends_grow(void **state)
{
	(void)state;
	struct rivals *rivals = begin(1500);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	long long first = number_of(TEST1, "expire_time");
	long long second = number_of(TEST2, "expire_time");
	WAIT_UNTIL(stats_of(rivals->one).renewals >= 3, SOON_MS);
	assert_true(number_of(TEST1, "expire_time") > first);
	assert_true(number_of(TEST2, "expire_time") > second);
	ASSERT_BETWEEN(key_pttl(live_raw, "students"), 1, 2000);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_int_equal(number_of(TEST1, "lock_count"), 1);
	assert_int_equal(stats_of(rivals->one).losses, 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	uint64_t renewals = stats_of(rivals->one).renewals;
	long long released_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - released_at >= 700, SOON_MS);
	assert_int_equal(stats_of(rivals->one).renewals, renewals);
	expect_no_keys();
	close_rivals(rivals);
}

static void ends_that_others_read_are_believed_shorter(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 20000)));
	ASSERT_BETWEEN(hf_lock_remaining(rivals->mine, NULL), 12000, 20000 - 1000 - 202);
	ASSERT_OK(hf_lock_extend(rivals->mine, NULL, 40000));
	ASSERT_BETWEEN(hf_lock_remaining(rivals->mine, NULL), 32000, 40000 - 1000 - 402);
	ASSERT_BETWEEN(number_of(TEST2, "expire_time") - server_now(), 35000, 40000);
	/* Never shorter. */
	ASSERT_OK(hf_lock_extend(rivals->mine, NULL, 1000));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 1000)));
	ASSERT_BETWEEN(hf_lock_remaining(rivals->mine, NULL), 32000, 40000 - 1000 - 402);
	ASSERT_BETWEEN(number_of(TEST1, "expire_time") - server_now(), 35000, 40000);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_release(rivals->mine));
	/* Of a short lease a quarter at most. */
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 2000)));
	ASSERT_BETWEEN(hf_lock_remaining(rivals->mine, NULL), 1, 2000 - 500 - 22);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_RC(hf_lock_extend(rivals->mine, NULL, 1000), HF_ENOTHELD);
	expect_no_keys();
	close_rivals(rivals);
}

/* ---- losing ---- */

static void expect_lost(struct rivals *rivals, int losses)
{
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == losses, SOON_MS);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(rivals->mine, NULL), 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
}

static void hold_that_was_taken_away_is_reported(void **state)
{
	int was_held = -7;

	(void)state;
	struct rivals *rivals = begin(900);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "students", NULL), 1);
	expect_lost(rivals, 1);
	/* One value is enough, and the release gives the other back. */
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	assert_int_equal(raw_integer(live_raw, "HDEL", "students", TEST2, NULL), 1);
	expect_lost(rivals, 2);
	expect_no_keys();
	/* A nested acquire learns it first, and takes nothing. */
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 30000)));
	assert_int_equal(raw_integer(live_raw, "DEL", "students", NULL), 1);
	ASSERT_RC(hf_lock_acquire(rivals->mine, NULL), HF_ELOST);
	assert_false(key_exists(live_raw, "students"));
	expect_lost(rivals, 3);
	/* By force, through another client and by one of the values only. */
	hf_lock *part = GROUP(rivals->two, "test2", "a");
	ASSERT_OK(hf_lock_force_release(part, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(part, NULL);
	WAIT_UNTIL(stats_of(rivals->two).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_force_release(part, &was_held));
	assert_int_equal(was_held, 1);
	waiter_expect(waiter, 0);
	expect_lost(rivals, 4);
	assert_int_equal(fields(), 6);
	assert_true(value_is_of(TEST2, rivals->two));
	waiter_finish(waiter);
	expect_no_keys();
	hf_lock_close(part);
	close_rivals(rivals);
}

static void server_that_comes_back_empty_is_noticed_at_once(void **state)
{
	struct test_server *server = test_server_start(NULL);

	(void)state;
	struct rivals *rivals = begin_at(test_server_url(server), 9000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	test_server_restart(server);
	WAIT_UNTIL(stats_of(rivals->one).reconnects >= 1, 6000);
	/* The next renewal would be due after 3 s. */
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, 1500);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	close_rivals(rivals);
	test_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(group_is_one_hash_with_three_fields_for_each_value),
		LIVE_STORY(reentering_counts_every_value),
		LIVE_STORY(only_shared_values_exclude_and_none_is_taken_alone),
		LIVE_STORY(every_value_needs_to_be_one),
		LIVE_STORY(release_wakes_the_waiters_of_every_value),
		LIVE_STORY(waiter_gets_its_values_when_the_last_of_them_is_free),
		LIVE_STORY(wait_that_fails_leaves_nothing),
		LIVE_STORY(lease_that_expires_lets_the_next_one_in_and_is_reported),
		LIVE_STORY(lapsed_value_in_a_living_hash_is_free),
		LIVE_STORY(holds_are_renewed_and_all_ends_grow),
		LIVE_STORY(ends_that_others_read_are_believed_shorter),
		LIVE_STORY(hold_that_was_taken_away_is_reported),
		LIVE_STORY(server_that_comes_back_empty_is_noticed_at_once),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
