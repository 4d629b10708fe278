/* Multi locks: several locks as one, all of them or none. */
#include "live/multi.h"

/* ---- taking ---- */

static void all_members_are_held_until_the_release(void **state)
{
	struct world world;
	int yes = -7;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.lease_ms = 10000)));
	assert_true(is_held_by(live_raw, "a", world.one));
	assert_true(is_held_by(live_raw, "c", world.one));
	assert_true(is_held_by(other_raw, "b", world.far_one));
	assert_true(is_held_by(other_raw, "c", world.far_one));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 2);
	assert_int_equal(raw_integer(other_raw, "DBSIZE", NULL), 2);
	ASSERT_BETWEEN(key_pttl(live_raw, "a"), 5000, 10000);
	ASSERT_BETWEEN(key_pttl(other_raw, "b"), 5000, 10000);
	ASSERT_BETWEEN(hf_lock_remaining(multi, NULL), 5000, 10000 - 102);
	ASSERT_OK(hf_lock_is_held(multi, NULL, &yes));
	assert_int_equal(yes, 1);
	assert_int_equal(hf_lock_state(multi, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(multi));
	expect_no_keys();
	ASSERT_OK(hf_lock_is_held(multi, NULL, &yes));
	assert_int_equal(yes, 0);
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	ASSERT_RC(hf_lock_release(multi), HF_ENOTHELD);
	hf_lock_close(multi);
	end(&world);
}

static void reentering_counts_in_every_member(void **state)
{
	struct world world;
	int64_t count = -7;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	hf_lock *again = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(held_count(live_raw, "a"), 2);
	assert_int_equal(held_count(live_raw, "c"), 2);
	ASSERT_OK(hf_lock_hold_count(multi, NULL, &count));
	assert_int_equal(count, 2);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(held_count(live_raw, "b"), 1);
	assert_int_equal(hf_lock_state(multi, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(again));
	expect_no_keys();
	ASSERT_RC(hf_lock_release(multi), HF_ENOTHELD);
	hf_lock_close(multi);
	hf_lock_close(again);
	end(&world);
}

static void one_of_ten_tries_is_granted(void **state)
{
	struct world world;
	struct waiter *waiter[10];
	int winners = 0;

	(void)state;
	begin(&world, 30000);
	hf_lock *mine = open_spread(world.one, world.far_one, false);
	hf_lock *theirs = open_spread(world.two, world.far_two, true);
	for (int i = 0; i < 10; i++)
		waiter[i] = waiter_start(i % 2 ? mine : theirs,
		                         HF_ACQUIRE(.wait_ms = HF_NOWAIT, .lease_ms = 10000));
	for (int i = 0; i < 10; i++) {
		WAIT_UNTIL(waiter_is_over(waiter[i]), SOON_MS);
		assert_true(waiter[i]->result == 0 || waiter[i]->result == HF_EBUSY);
		winners += waiter[i]->result == 0;
	}
	/* The owner of the first member gets all, because everybody begins with the same one. */
	assert_int_equal(winners, 1);
	for (int i = 0; i < 10; i++) {
		if (waiter[i]->result == 0)
			ASSERT_OK(waiter_release(waiter[i]));
		waiter_free(waiter[i]);
	}
	expect_no_keys();
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_RC(hf_lock_acquire(mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(theirs));
	hf_lock_close(mine);
	hf_lock_close(theirs);
	end(&world);
}

static void waiter_is_woken_by_the_messages_of_the_members(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *mine = open_spread(world.one, world.far_one, false);
	hf_lock *theirs = open_spread(world.two, world.far_two, true);
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, "redisson_lock__channel:{a}") == 1, SOON_MS);
	/* The leases had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_WAKES(hf_lock_release(mine), waiter, 1500);
	assert_true(is_held_by(live_raw, "a", world.two));
	assert_true(is_held_by(other_raw, "c", world.far_two));
	waiter_finish(waiter);
	expect_nothing_left();
	hf_lock_close(mine);
	hf_lock_close(theirs);
	end(&world);
}

static void owners_of_one_client_exclude_each_other(void **state)
{
	struct world world;
	hf_owner *owner = new_owner();

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.owner = owner)));
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_release(multi), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	assert_int_equal(hf_lock_state(multi, owner), HF_HELD);
	struct waiter *waiter = waiter_start(multi, NULL);
	WAIT_UNTIL(stats_of(world.one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_release_with(multi, HF_RELEASE(.owner = owner)));
	waiter_finish(waiter);
	hf_owner_free(owner);
	expect_no_keys();
	hf_lock_close(multi);
	end(&world);
}

/* ---- all or nothing ---- */

static void busy_member_leaves_nothing_held(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	hf_lock *taken = open_lock(world.two, "c");
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "c:");
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	long long started_at = test_now_ms();
	ASSERT_TIMES_OUT(300, hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = within_ms)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 300, 1300);
	ASSERT_CONTAINS(hf_error_detail(), "c:");
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	ASSERT_TIMES_OUT(350,
	                 hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = within_ms, .lease_ms = 400)));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	assert_int_equal(stats_of(world.one).held, 0);
	ASSERT_OK(hf_lock_release(taken));
	expect_nothing_left();
	hf_lock_close(taken);
	hf_lock_close(multi);
	end(&world);
}

static void failed_level_takes_nothing_from_the_outer_one(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *inner = open_lock(world.one, "a");
	hf_lock *multi = open_three(world.one);
	hf_lock *taken = open_lock(world.two, "b");
	ASSERT_OK(hf_lock_acquire(inner, NULL));
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	ASSERT_TIMES_OUT(100, hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = within_ms)));
	assert_int_equal(held_count(live_raw, "a"), 1);
	assert_int_equal(hf_lock_state(inner, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(taken));
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 1000)));
	assert_int_equal(held_count(live_raw, "a"), 2);
	assert_int_equal(held_count(live_raw, "b"), 1);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(held_count(live_raw, "a"), 1);
	ASSERT_OK(hf_lock_release(inner));
	expect_no_keys();
	hf_lock_close(inner);
	hf_lock_close(taken);
	hf_lock_close(multi);
	end(&world);
}

static void cancelled_wait_releases_the_members_it_held(void **state)
{
	struct world world;
	hf_cancel *cancel = new_cancel();

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	hf_lock *taken = open_lock(world.two, "b");
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	struct waiter *waiter = waiter_start(multi, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(is_held_by(live_raw, "a", world.one) &&
	                   subscribers(live_raw, "redisson_lock__channel:{b}") == 1,
	           SOON_MS);
	assert_false(key_exists(live_raw, "c"));
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 1000);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	assert_int_equal(stats_of(world.one).held, 0);
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.cancel = cancel)), HF_ECANCELLED);
	ASSERT_OK(hf_lock_release(taken));
	expect_nothing_left();
	waiter_free(waiter);
	hf_cancel_free(cancel);
	hf_lock_close(taken);
	hf_lock_close(multi);
	end(&world);
}

static void one_deadline_is_for_all_members(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	hf_lock *first = open_lock(world.two, "a");
	hf_lock *last = open_lock(world.two, "c");
	ASSERT_OK(hf_lock_acquire(last, NULL));
	ASSERT_OK(hf_lock_acquire(first, HF_ACQUIRE(.lease_ms = 900)));
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 1200)), HF_ETIMEDOUT);
	/* Not 1200 ms more after the first was free. */
	ASSERT_BETWEEN(test_now_ms() - started_at, 1200, 2000);
	ASSERT_CONTAINS(hf_error_detail(), "c:");
	ASSERT_RC(hf_lock_release(first), HF_ELOST);
	ASSERT_OK(hf_lock_release(last));
	expect_no_keys();
	hf_lock_close(first);
	hf_lock_close(last);
	hf_lock_close(multi);
	end(&world);
}

/* ---- leases ---- */

static void wait_longer_than_the_lease_ends_with_the_whole_lease(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	hf_lock *first = open_lock(world.two, "a");
	hf_lock *taken = open_lock(world.two, "b");
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	struct waiter *waiter = waiter_start(multi, HF_ACQUIRE(.wait_ms = 15000, .lease_ms = 1500));
	WAIT_UNTIL(is_held_by(live_raw, "a", world.one), SOON_MS);
	/* The members that it holds meanwhile do not expire. */
	long long seen_at = test_now_ms();
	while (test_now_ms() - seen_at < 2500) {
		ASSERT_RC(hf_lock_acquire(first, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
		test_pause();
	}
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(taken));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(hf_lock_remaining(multi, waiter->options.owner), 1, 1500 - 17);
	assert_true(holds_three(world.one));
	long long least = key_pttl(live_raw, "a");
	long long most = key_pttl(live_raw, "c");
	ASSERT_BETWEEN(least, most - 300, 1500);
	waiter_finish(waiter);
	expect_no_keys();
	hf_lock_close(first);
	hf_lock_close(taken);
	hf_lock_close(multi);
	end(&world);
}

static void given_lease_expires_and_is_reported(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 300);
	hf_lock *mine = open_three(world.one);
	hf_lock *theirs = open_three(world.two);
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(mine, HF_ACQUIRE(.lease_ms = 600)));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = 6000)));
	ASSERT_BETWEEN(test_now_ms() - before, 600, 2500);
	assert_int_equal(hf_lock_state(mine, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(mine, NULL), 0);
	ASSERT_RC(hf_lock_release(mine), HF_ELOST);
	assert_true(holds_three(world.two));
	assert_int_equal(stats_of(world.one).renewals, 0);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 3, SOON_MS);
	ASSERT_OK(hf_lock_release(theirs));
	expect_no_keys();
	hf_lock_close(mine);
	hf_lock_close(theirs);
	end(&world);
}

static void members_are_renewed_until_they_are_released(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 1500);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	WAIT_UNTIL(stats_of(world.one).renewals >= 6 && stats_of(world.far_one).renewals >= 6,
	           SOON_MS);
	assert_int_equal(hf_lock_state(multi, NULL), HF_HELD);
	assert_int_equal(held_count(live_raw, "a"), 1);
	assert_int_equal(held_count(other_raw, "b"), 1);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(stats_of(world.one).losses, 0);
	expect_no_keys();
	hf_lock_close(multi);
	end(&world);
}

/* ---- losing ---- */

static void lost_member_is_the_loss_of_the_whole(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 900);
	hf_lock *multi = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "b", NULL), 1);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(world.seen.name, "b");
	assert_int_equal(hf_lock_state(multi, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(multi, NULL), 0);
	ASSERT_RC(hf_lock_extend(multi, NULL, 5000), HF_ELOST);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	expect_no_keys();
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	/* And it can be taken again. */
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_true(holds_three(world.one));
	ASSERT_OK(hf_lock_release(multi));
	expect_no_keys();
	hf_lock_close(multi);
	end(&world);
}

static void nested_acquire_that_finds_a_loss_is_undone(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "b", NULL), 1);
	ASSERT_RC(hf_lock_acquire(multi, NULL), HF_ELOST);
	assert_int_equal(held_count(live_raw, "a"), 1);
	assert_false(key_exists(live_raw, "b"));
	assert_int_equal(held_count(live_raw, "c"), 1);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	expect_no_keys();
	hf_lock_close(multi);
	end(&world);
}

static void acquire_after_a_loss_starts_over(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 900);
	hf_lock *multi = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "b", NULL), 1);
	WAIT_UNTIL(hf_lock_state(multi, NULL) == HF_LOST, SOON_MS);
	/* As with every lock, a lost hold has ended, and one release ends what is taken now. */
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 1000)));
	assert_int_equal(hf_lock_state(multi, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	expect_no_keys();
	hf_lock_close(multi);
	end(&world);
}

/* Waits for b while it holds a, loses a, and is granted b after that was noticed. */
static void lose_one_while_waiting(int64_t lease_ms)
{
	struct world world;

	begin(&world, 900);
	hf_lock *multi = open_three(world.one);
	hf_lock *taken = open_lock(world.two, "b");
	hf_lock *thief = open_lock(world.two, "a");
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	struct waiter *waiter =
		waiter_start(multi, HF_ACQUIRE(.wait_ms = 15000, .lease_ms = lease_ms));
	WAIT_UNTIL(is_held_by(live_raw, "a", world.one), SOON_MS);
	ASSERT_OK(hf_lock_force_release(thief, NULL));
	ASSERT_OK(hf_lock_acquire(thief, HF_ACQUIRE(.wait_ms = 2000)));
	WAIT_UNTIL(stats_of(world.one).losses == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(taken));
	ASSERT_OK(hf_lock_release(thief));
	waiter_expect(waiter, 0);
	assert_true(holds_three(world.one));
	assert_int_equal(hf_lock_state(multi, waiter->options.owner), HF_HELD);
	waiter_finish(waiter);
	expect_no_keys();
	hf_lock_close(taken);
	hf_lock_close(thief);
	hf_lock_close(multi);
	end(&world);
}

static void fixed_member_lost_while_waiting_is_taken_again(void **state)
{
	(void)state;
	lose_one_while_waiting(1200);
}

static void renewed_member_lost_while_waiting_is_taken_again(void **state)
{
	(void)state;
	lose_one_while_waiting(0);
}

/* ---- questions ---- */

static void queries_return_the_least_of_the_members(void **state)
{
	struct world world;
	char holder[64];
	int64_t number = -7;
	int yes = -7;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	hf_lock *theirs = open_three(world.two);
	hf_lock *member = open_lock(world.one, "b");
	ASSERT_OK(hf_lock_is_locked(multi, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_ttl(multi, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_acquire(member, HF_ACQUIRE(.lease_ms = 60000)));
	ASSERT_OK(hf_lock_is_locked(theirs, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(multi, NULL, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.lease_ms = 20000)));
	ASSERT_OK(hf_lock_hold_count(multi, NULL, &number));
	assert_int_equal(number, 1);
	ASSERT_OK(hf_lock_ttl(theirs, &number));
	ASSERT_BETWEEN(number, 15000, 20000);
	ASSERT_BETWEEN(hf_lock_remaining(multi, NULL), 15000, 20000 - 202);
	ASSERT_OK(hf_lock_extend(multi, NULL, 40000));
	ASSERT_OK(hf_lock_ttl(multi, &number));
	ASSERT_BETWEEN(number, 35000, 40000);
	ASSERT_RC(hf_lock_holder(multi, holder, sizeof holder), HF_ENOTSUP);
	ASSERT_RC(hf_lock_token(multi, NULL, &number), HF_EINVAL);
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.token = 1)), HF_EINVAL);
	ASSERT_RC(hf_lock_extend(theirs, NULL, 1000), HF_ENOTHELD);
	ASSERT_OK(hf_lock_force_release(theirs, &yes));
	assert_int_equal(yes, 1);
	expect_no_keys();
	ASSERT_OK(hf_lock_force_release(theirs, &yes));
	assert_int_equal(yes, 0);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	ASSERT_RC(hf_lock_release(member), HF_ELOST);
	hf_lock_close(member);
	hf_lock_close(multi);
	hf_lock_close(theirs);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MULTI_STORY(all_members_are_held_until_the_release),
		MULTI_STORY(reentering_counts_in_every_member),
		MULTI_STORY(one_of_ten_tries_is_granted),
		MULTI_STORY(waiter_is_woken_by_the_messages_of_the_members),
		MULTI_STORY(owners_of_one_client_exclude_each_other),
		MULTI_STORY(busy_member_leaves_nothing_held),
		MULTI_STORY(failed_level_takes_nothing_from_the_outer_one),
		MULTI_STORY(cancelled_wait_releases_the_members_it_held),
		MULTI_STORY(one_deadline_is_for_all_members),
		MULTI_STORY(wait_longer_than_the_lease_ends_with_the_whole_lease),
		MULTI_STORY(given_lease_expires_and_is_reported),
		MULTI_STORY(members_are_renewed_until_they_are_released),
		MULTI_STORY(lost_member_is_the_loss_of_the_whole),
		MULTI_STORY(nested_acquire_that_finds_a_loss_is_undone),
		MULTI_STORY(acquire_after_a_loss_starts_over),
		MULTI_STORY(fixed_member_lost_while_waiting_is_taken_again),
		MULTI_STORY(renewed_member_lost_while_waiting_is_taken_again),
		MULTI_STORY(queries_return_the_least_of_the_members),
	};

	return cmocka_run_group_tests(tests, start_both, stop_both);
}
