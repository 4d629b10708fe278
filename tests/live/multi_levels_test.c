/*
 * Multi locks give up what they took, and nothing else: lost holds, other handles, members that
 * were busy.
 */
#include "live/multi.h"

#include "support/proxy.h"

/* A member is lost, and taken again alone, by the same owner. */
static void check_release_after_loss(bool noticed)
{
	struct world world;

	begin(&world, 30000);
	hf_lock *alone = open_lock(world.one, "b");
	hf_lock *multi = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	/* Known at once, as it is our own client. */
	ASSERT_OK(hf_lock_force_release(alone, NULL));
	if (noticed)
		assert_int_equal(hf_lock_state(multi, NULL), HF_LOST);
	ASSERT_OK(hf_lock_acquire(alone, NULL));
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	assert_int_equal(hf_lock_state(alone, NULL), HF_HELD);
	assert_int_equal(held_count(live_raw, "b"), 1);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	ASSERT_OK(hf_lock_release(alone));
	expect_no_keys();
	hf_lock_close(alone);
	hf_lock_close(multi);
	end(&world);
}

static void release_of_a_lost_hold_leaves_what_was_taken_since(void **state)
{
	(void)state;
	check_release_after_loss(true);
	check_release_after_loss(false);
}

static void acquire_after_a_loss_leaves_what_was_taken_since(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *alone = open_lock(world.one, "b");
	hf_lock *multi = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_lock_force_release(alone, NULL));
	assert_int_equal(hf_lock_state(multi, NULL), HF_LOST);
	ASSERT_OK(hf_lock_acquire(alone, NULL));
	/* Both levels of the lost hold are dropped, on the members that still have them. */
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 3000)));
	assert_int_equal(held_count(live_raw, "a"), 1);
	assert_int_equal(held_count(live_raw, "b"), 2);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(held_count(live_raw, "b"), 1);
	ASSERT_OK(hf_lock_release(alone));
	expect_no_keys();
	hf_lock_close(alone);
	hf_lock_close(multi);
	end(&world);
}

static void nested_acquire_notices_a_member_that_was_lost_in_between(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *alone = open_lock(world.one, "b");
	hf_lock *multi = open_three(world.one);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_lock_force_release(alone, NULL));
	ASSERT_OK(hf_lock_acquire(alone, NULL));
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 3000)), HF_ELOST);
	assert_int_equal(held_count(live_raw, "a"), 1);
	assert_int_equal(held_count(live_raw, "b"), 1);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	ASSERT_OK(hf_lock_release(alone));
	expect_no_keys();
	hf_lock_close(alone);
	hf_lock_close(multi);
	end(&world);
}

static void handles_of_the_same_members_are_one_lock(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *one = open_spread(world.one, world.far_one, false);
	hf_lock *other = open_spread(world.one, world.far_one, true);
	ASSERT_OK(hf_lock_acquire(one, NULL));
	ASSERT_OK(hf_lock_acquire(one, NULL));
	ASSERT_OK(hf_lock_release(other));
	assert_int_equal(held_count(live_raw, "a"), 1);
	/* What is known of the hold does not depend on the handles. */
	hf_lock_close(one);
	hf_lock_close(other);
	one = open_spread(world.one, world.far_one, true);
	assert_int_equal(hf_lock_state(one, NULL), HF_HELD);
	assert_int_equal(raw_integer(other_raw, "DEL", "b", NULL), 1);
	hf_lock *b = open_lock(world.far_one, "b");
	ASSERT_RC(hf_lock_extend(b, NULL, 30000), HF_ELOST);
	ASSERT_RC(hf_lock_release(one), HF_ELOST);
	ASSERT_RC(hf_lock_release(one), HF_ENOTHELD);
	expect_no_keys();
	hf_lock_close(b);
	hf_lock_close(one);
	end(&world);
}

static void member_that_was_busy_is_given_back_later(void **state)
{
	struct world world;
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), NULL);
	hf_owner *owner = new_owner();
	hf_lock *members[] = {open_lock(client, "a"), open_lock(client, "b")};
	hf_lock *multi = combine(members, 2);
	hf_lock *alone = open_lock(client, "a");

	(void)state;
	begin(&world, 30000);
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.owner = owner)));
	proxy_delay(proxy, 400);
	uint64_t attempts = stats_of(client).attempts;
	struct waiter *waiter = waiter_start(alone, HF_ACQUIRE(.owner = owner, .wait_ms = 20000));
	WAIT_UNTIL(stats_of(client).attempts > attempts, SOON_MS);
	/* Another call of the owner is in the way of the release all this time. */
	ASSERT_RC(hf_lock_release_with(multi, HF_RELEASE(.owner = owner, .wait_ms = 100)),
	          HF_EUNKNOWN);
	assert_int_equal(hf_lock_state(multi, owner), HF_FREE);
	proxy_delay(proxy, 0);
	waiter_expect(waiter, 0);
	WAIT_UNTIL(!key_exists(live_raw, "b") && held_count(live_raw, "a") == 1, SOON_MS);
	waiter_finish(waiter);
	expect_no_keys();
	assert_int_equal(stats_of(client).held, 0);
	hf_lock_close(alone);
	hf_lock_close(multi);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MULTI_STORY(release_of_a_lost_hold_leaves_what_was_taken_since),
		MULTI_STORY(acquire_after_a_loss_leaves_what_was_taken_since),
		MULTI_STORY(nested_acquire_notices_a_member_that_was_lost_in_between),
		MULTI_STORY(handles_of_the_same_members_are_one_lock),
		MULTI_STORY(member_that_was_busy_is_given_back_later),
	};

	return cmocka_run_group_tests(tests, start_both, stop_both);
}
