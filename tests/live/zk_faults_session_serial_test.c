/* One ZooKeeper that loses answers, its network and itself while locks are held and waited for. */
#include "live/zk_faults.h"

/* ---- answers that are lost ---- */

static void lost_answer_to_a_creation_leaves_one_node(void **state)
{
	struct world world;
	struct zk_raw_stat stat;
	char path[700];

	(void)state;
	world_begin(&world, NULL, 6000);
	make_folder(&world);
	proxy_drop_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 1, SOON_MS);
	proxy_cut(world.proxy);
	proxy_drop_replies(world.proxy, false);
	waiter_expect(waiter, 0);
	read_only_child(world.eye, "/orders", path, sizeof path, &stat);
	ASSERT_CONTAINS(path, "-lock-0000000000");
	assert_int_equal(token_of(world.mine, waiter->options.owner), stat.czxid);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(count_children(world.eye, "/orders"), 0);
	waiter_free(waiter);
	world_end(&world);
}

static void lost_answer_to_a_creation_nobody_waits_for_leaves_none(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 6000);
	make_folder(&world);
	proxy_drop_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(world.mine, HF_ACQUIRE(.wait_ms = 500));
	WAIT_UNTIL(count_children(world.eye, "/orders") == 1, SOON_MS);
	waiter_expect(waiter, HF_EUNKNOWN);
	ASSERT_BETWEEN(waiter->ended_at - waiter->started_at, 495, 2000);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	proxy_cut(world.proxy);
	proxy_drop_replies(world.proxy, false);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 0, SOON_MS);
	waiter_free(waiter);
	world_end(&world);
}

static void lost_creation_is_made_once(void **state)
{
	struct world world;
	struct zk_raw_stat stat;
	char path[700];

	(void)state;
	world_begin(&world, NULL, 6000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_OK(hf_lock_release(world.mine));
	proxy_drop_requests(world.proxy, true);
	long long bytes = proxy_request_bytes(world.proxy);
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(proxy_request_bytes(world.proxy) > bytes, SOON_MS);
	proxy_cut(world.proxy);
	proxy_drop_requests(world.proxy, false);
	waiter_expect(waiter, 0);
	read_only_child(world.eye, "/orders", path, sizeof path, &stat);
	assert_int_equal(token_of(world.mine, waiter->options.owner), stat.czxid);
	waiter_finish(waiter);
	world_end(&world);
}

static void lost_answer_to_a_release_is_a_release(void **state)
{
	struct world world;
	hf_owner *owner = new_owner();

	(void)state;
	world_begin(&world, NULL, 6000);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.owner = owner)));
	proxy_drop_replies(world.proxy, true);
	struct waiter *release = WAITER(.releases = world.mine, .owner = owner, .wait_ms = 10000);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 0, SOON_MS);
	proxy_cut(world.proxy);
	proxy_drop_replies(world.proxy, false);
	waiter_join(release, 0);
	assert_int_equal(stats_of(world.one).losses, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_OK(hf_lock_release(world.mine));
	hf_owner_free(owner);
	world_end(&world);
}

static void release_that_cannot_be_sent_is_done_later(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 10000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	world_part(&world, true);
	ASSERT_RC(hf_lock_release_with(world.mine, HF_RELEASE(.wait_ms = 300)), HF_EUNKNOWN);
	assert_int_equal(hf_lock_remaining(world.mine, NULL), 0);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	world_part(&world, false);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 0, SOON_MS);
	world_end(&world);
}

/* ---- networks that are dead for a while ---- */

static void short_partition_costs_nothing(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 9000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	struct waiter *waiter = waiter_start(world.theirs, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, SOON_MS);
	long long parted_at = test_now_ms();
	world_part(&world, true);
	WAIT_UNTIL(test_now_ms() - parted_at > 2500, 4000);
	world_part(&world, false);
	uint64_t renewals = stats_of(world.one).renewals;
	WAIT_UNTIL(stats_of(world.one).renewals > renewals, 6000);
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_HELD);
	assert_int_equal(stats_of(world.one).losses, 0);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_finish(waiter);
	world_end(&world);
}

static void long_partition_costs_the_lock_before_it_is_given_away(void **state)
{
	struct world world;
	struct zk_raw_stat stat;
	char path[700];

	(void)state;
	world_begin(&world, NULL, 4000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	read_only_child(world.eye, "/orders", path, sizeof path, &stat);
	struct waiter *waiter = waiter_start(world.theirs, NULL);
	WAIT_UNTIL(stats_of(world.one).renewals >= 1, SOON_MS);
	world_part(&world, true);
	expect_lost_in_time(world.eye, path, world.mine, NULL, 6000);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 1, 1000);
	assert_true(seen_count(&world.seen, HF_AT_RISK) >= 1);
	assert_true(seen_at(&world.seen, HF_AT_RISK) < seen_at(&world.seen, HF_LOST));
	waiter_expect(waiter, 0);
	assert_true(token_of(world.theirs, waiter->options.owner) > stat.czxid);
	world_part(&world, false);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	ASSERT_RC(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = 1500)), HF_ETIMEDOUT);
	ASSERT_OK(waiter_release(waiter));
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_free(waiter);
	world_end(&world);
}

static void calls_keep_their_time_without_a_server(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 6000);
	world_part(&world, true);
	long long started_at = test_now_ms();
	int rc = hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = 500));
	ASSERT_BETWEEN(test_now_ms() - started_at, 495, 1500);
	assert_true(rc == HF_EUNKNOWN || rc == HF_EUNREACHABLE);
	started_at = test_now_ms();
	hf_lock_close(world.mine);
	world.mine = NULL;
	ASSERT_OK(hf_client_close(world.one));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 8000);
	world_part(&world, false);
	world.one = open_url(proxy_url(world.proxy), NULL);
	world_end(&world);
}

static void connection_that_breaks_is_made_again(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 6000);
	ASSERT_OK(hf_lock_acquire(world.theirs, NULL));
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, SOON_MS);
	hf_lock *other = open_lock(world.one, "other");
	ASSERT_OK(hf_lock_acquire(other, NULL));
	for (int i = 0; i < 5; i++) {
		uint64_t reconnects = stats_of(world.one).reconnects;
		proxy_cut(world.proxy);
		WAIT_UNTIL(stats_of(world.one).reconnects > reconnects, 10000);
		assert_int_equal(hf_lock_state(other, NULL), HF_HELD);
		assert_false(waiter_is_over(waiter));
		assert_int_equal(count_children(world.eye, "/orders"), 2);
	}
	ASSERT_OK(hf_lock_release(world.theirs));
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	ASSERT_OK(hf_lock_release(other));
	waiter_free(waiter);
	hf_lock_close(other);
	world_end(&world);
}

static void release_during_a_broken_connection_is_heard_after_it(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 10000);
	ASSERT_OK(hf_lock_acquire(world.theirs, NULL));
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, SOON_MS);
	proxy_refuse(world.proxy, true);
	proxy_cut(world.proxy);
	ASSERT_OK(hf_lock_release(world.theirs));
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	assert_false(waiter_is_over(waiter));
	proxy_refuse(world.proxy, false);
	waiter_finish(waiter);
	world_end(&world);
}

/* ---- servers that stop ---- */

static void server_that_is_restarted_keeps_hold_and_waiter(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 40000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	int64_t token = token_of(world.mine, NULL);
	struct waiter *waiter = waiter_start(world.theirs, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, SOON_MS);
	zk_raw_drop(world.eye);
	test_zookeeper_kill(world.zookeeper, 0);
	test_zookeeper_restart(world.zookeeper, 0);
	world.eye = zk_raw_open(test_zookeeper_host(world.zookeeper, 0), 0);
	WAIT_UNTIL(stats_of(world.one).reconnects >= 1 && stats_of(world.two).reconnects >= 1,
	           22000);
	WAIT_UNTIL(hf_lock_state(world.mine, NULL) == HF_HELD, SOON_MS);
	assert_int_equal(count_children(world.eye, "/orders"), 2);
	assert_false(waiter_is_over(waiter));
	assert_int_equal(token_of(world.mine, NULL), token);
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_expect(waiter, 0);
	assert_true(token_of(world.theirs, waiter->options.owner) > token);
	waiter_finish(waiter);
	world_end(&world);
}

static void frozen_server_costs_the_lock_in_time_and_no_more(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 3000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	long long frozen_at = test_now_ms();
	test_zookeeper_freeze(world.zookeeper, 0);
	WAIT_UNTIL(hf_lock_remaining(world.mine, NULL) == 0, 4000);
	ASSERT_BETWEEN(test_now_ms() - frozen_at, 0, 3200);
	WAIT_UNTIL(hf_lock_state(world.mine, NULL) == HF_LOST, 500);
	test_zookeeper_thaw(world.zookeeper, 0);
	/* A lost hold does not come back, and is not in the way of others. */
	ASSERT_OK(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = 8000)));
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	ASSERT_OK(hf_lock_release(world.theirs));
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = 8000)));
	ASSERT_OK(hf_lock_release(world.mine));
	WAIT_UNTIL(count_children(world.eye, "/orders") == 0, SOON_MS);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_answer_to_a_creation_leaves_one_node),
		cmocka_unit_test(lost_answer_to_a_creation_nobody_waits_for_leaves_none),
		cmocka_unit_test(lost_creation_is_made_once),
		cmocka_unit_test(lost_answer_to_a_release_is_a_release),
		cmocka_unit_test(release_that_cannot_be_sent_is_done_later),
		cmocka_unit_test(short_partition_costs_nothing),
		cmocka_unit_test(long_partition_costs_the_lock_before_it_is_given_away),
		cmocka_unit_test(calls_keep_their_time_without_a_server),
		cmocka_unit_test(connection_that_breaks_is_made_again),
		cmocka_unit_test(release_during_a_broken_connection_is_heard_after_it),
		cmocka_unit_test(server_that_is_restarted_keeps_hold_and_waiter),
		cmocka_unit_test(frozen_server_costs_the_lock_in_time_and_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
