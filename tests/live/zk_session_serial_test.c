/* Nodes that are deleted by hand, sessions and leases that expire, folders that are reaped. */
#include "live/zk_faults.h"

#include <dirent.h>
#include <sched.h>

/* ---- nodes that are deleted by hand ---- */

static void node_deleted_by_somebody_is_noticed(void **state)
{
	struct world world;
	char path[700];
	hf_lock *locks[3];

	(void)state;
	world_begin(&world, NULL, 30000);
	/* The renewal asks about one of them only. */
	for (int i = 0; i < 3; i++) {
		locks[i] = open_lock(world.one, (const char *[]){"a", "b", "c"}[i]);
		ASSERT_OK(hf_lock_acquire(locks[i], NULL));
	}
	for (int i = 2; i >= 0; i--) {
		const char *folder = (const char *[]){"/a", "/b", "/c"}[i];
		read_only_child(world.eye, folder, path, sizeof path, NULL);
		assert_int_equal(hf_lock_state(locks[i], NULL), HF_HELD);
		assert_int_equal(zk_raw_delete(world.eye, path, -1), 0);
		WAIT_UNTIL(hf_lock_state(locks[i], NULL) == HF_LOST, 2000);
		assert_int_equal(hf_lock_remaining(locks[i], NULL), 0);
		WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 3 - i, 1000);
		ASSERT_RC(hf_lock_release(locks[i]), HF_ELOST);
		ASSERT_OK(hf_lock_acquire(locks[i], NULL));
		ASSERT_OK(hf_lock_release(locks[i]));
		hf_lock_close(locks[i]);
	}
	world_end(&world);
}

static void node_deleted_right_after_the_grant_is_noticed(void **state)
{
	struct world world;
	char path[700];

	(void)state;
	world_begin(&world, NULL, 30000);
	for (int i = 0; i < 5; i++) {
		ASSERT_OK(hf_lock_acquire(world.mine, NULL));
		read_only_child(world.eye, "/orders", path, sizeof path, NULL);
		assert_int_equal(zk_raw_delete(world.eye, path, -1), 0);
		WAIT_UNTIL(hf_lock_state(world.mine, NULL) == HF_LOST, 2000);
		ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	}
	world_end(&world);
}

/*
 * The answer to a renewal comes when its node is known to be gone; the next renewals depend on it.
 */
static void node_deleted_while_it_is_renewed_costs_that_hold_alone(void **state)
{
	struct world world;
	char path[700];

	(void)state;
	world_begin(&world, NULL, 6000);
	hf_lock *other = open_lock(world.one, "other");
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	read_only_child(world.eye, "/orders", path, sizeof path, NULL);
	/* By the third the node is watched. */
	uint64_t renewals = stats_of(world.one).renewals;
	WAIT_UNTIL(stats_of(world.one).renewals >= renewals + 3, SOON_MS);
	proxy_hold_requests(world.proxy, true);
	long long sent = proxy_request_bytes(world.proxy);
	WAIT_UNTIL(proxy_request_bytes(world.proxy) > sent, SOON_MS);
	assert_int_equal(zk_raw_delete(world.eye, path, -1), 0);
	WAIT_UNTIL(hf_lock_state(world.mine, NULL) == HF_LOST, 1000);
	proxy_hold_requests(world.proxy, false);
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = SOON_MS)));
	renewals = stats_of(world.one).renewals;
	WAIT_UNTIL(stats_of(world.one).renewals >= renewals + 4, 10000);
	assert_int_equal(hf_lock_state(other, NULL), HF_HELD);
	assert_int_equal(seen_count(&world.seen, HF_LOST), 1);
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(other);
	world_end(&world);
}

static void node_of_a_waiter_deleted_by_somebody_is_made_again(void **state)
{
	struct world world;
	struct zk_raw_names names;
	char path[700];

	(void)state;
	world_begin(&world, NULL, 30000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	int64_t holder = first_owner(world.eye, "/orders");
	struct waiter *waiter = waiter_start(world.theirs, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, SOON_MS);
	assert_int_equal(zk_raw_children(world.eye, "/orders", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		struct zk_raw_stat stat;
		snprintf(path, sizeof path, "/orders/%s", names.name[i]);
		assert_int_equal(zk_raw_exists(world.eye, path, &stat), 0);
		if (stat.owner != holder)
			assert_int_equal(zk_raw_delete(world.eye, path, -1), 0);
	}
	zk_raw_names_clear(&names);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_expect(waiter, 0);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	waiter_finish(waiter);
	world_end(&world);
}

/* ---- sessions that end ---- */

static void session_expired_while_held_is_lost_and_replaced(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 3000);
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = SOON_MS)));
		int64_t session = first_owner(world.eye, "/orders");
		zk_raw_expire(test_zookeeper_host(world.zookeeper, 0), session);
		WAIT_UNTIL(hf_lock_state(world.mine, NULL) == HF_LOST, 3000);
		ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
		ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = SOON_MS)));
		assert_true(first_owner(world.eye, "/orders") != session);
		/* The new session is kept alive like the old one was. */
		uint64_t renewals = stats_of(world.one).renewals;
		WAIT_UNTIL(stats_of(world.one).renewals >= renewals + 4, 10000);
		assert_int_equal(hf_lock_state(world.mine, NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(world.mine));
	}
	world_end(&world);
}

static void session_expired_while_waiting_costs_only_the_place(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 6000);
	ASSERT_OK(hf_lock_acquire(world.theirs, NULL));
	hf_lock *probe = open_lock(world.one, "probe");
	ASSERT_OK(hf_lock_acquire(probe, NULL));
	int64_t session = first_owner(world.eye, "/probe");
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, SOON_MS);
	zk_raw_expire(test_zookeeper_host(world.zookeeper, 0), session);
	WAIT_UNTIL(hf_lock_state(probe, NULL) == HF_LOST, SOON_MS);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, SOON_MS);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(world.theirs));
	waiter_expect(waiter, 0);
	assert_true(first_owner(world.eye, "/orders") != session);
	assert_int_equal(hf_lock_state(world.mine, waiter->options.owner), HF_HELD);
	waiter_finish(waiter);
	hf_lock_close(probe);
	world_end(&world);
}

static void session_expired_while_creating_leaves_one_node_of_the_next(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 6000);
	make_folder(&world);
	proxy_hold_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 1, SOON_MS);
	int64_t session = first_owner(world.eye, "/orders");
	proxy_cut(world.proxy);
	proxy_refuse(world.proxy, true);
	proxy_hold_replies(world.proxy, false);
	zk_raw_expire(test_zookeeper_host(world.zookeeper, 0), session);
	assert_int_equal(count_children(world.eye, "/orders"), 0);
	proxy_refuse(world.proxy, false);
	waiter_expect(waiter, 0);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	assert_true(first_owner(world.eye, "/orders") != session);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(count_children(world.eye, "/orders"), 0);
	waiter_free(waiter);
	world_end(&world);
}

struct traffic {
	pthread_t thread;
	hf_lock *lock;
	atomic_bool *over;
	int wrong;
};

static void *keep_busy(void *arg)
{
	struct traffic *traffic = arg;
	while (!atomic_load(traffic->over)) {
		int rc = hf_lock_acquire(traffic->lock, HF_ACQUIRE(.wait_ms = 2000));
		if (rc == 0)
			rc = hf_lock_release(traffic->lock);
		if (rc && rc != HF_ELOST && rc != HF_ETIMEDOUT && rc != HF_EUNREACHABLE &&
		    rc != HF_EUNKNOWN)
			traffic->wrong = rc;
	}
	return NULL;
}

static void sessions_that_expire_again_and_again_are_survived(void **state)
{
	struct world world;
	struct traffic traffic[6] = {0};
	atomic_bool over = false;

	(void)state;
	world_begin(&world, NULL, 6000);
	for (int i = 0; i < 6; i++) {
		char name[20];
		snprintf(name, sizeof name, "t%d", i / 2);
		traffic[i].lock = open_lock(world.one, name);
		traffic[i].over = &over;
		assert_int_equal(pthread_create(&traffic[i].thread, NULL, keep_busy, &traffic[i]),
		                 0);
	}
	for (int i = 0; i < 8; i++) {
		int64_t session = 0;
		WAIT_UNTIL((session = first_owner(world.eye, "/t0")) != 0, 10000);
		zk_raw_expire(test_zookeeper_host(world.zookeeper, 0), session);
	}
	atomic_store(&over, true);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(traffic[i].thread, NULL), 0);
		assert_int_equal(traffic[i].wrong, 0);
	}
	/* Everything is as before, and nothing was left. */
	for (int i = 0; i < 6; i++) {
		ASSERT_OK(hf_lock_acquire(traffic[i].lock, HF_ACQUIRE(.wait_ms = 10000)));
		ASSERT_OK(hf_lock_release(traffic[i].lock));
		hf_lock_close(traffic[i].lock);
	}
	for (int i = 0; i < 3; i++)
		WAIT_UNTIL(count_children(world.eye, (const char *[]){"/t0", "/t1", "/t2"}[i]) == 0,
		           SOON_MS);
	world_end(&world);
}

/* ---- leases ---- */

static void fixed_lease_expires_with_its_node(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 10000);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 1200)));
	ASSERT_BETWEEN(hf_lock_remaining(world.mine, NULL), 1, 1200);
	struct waiter *waiter = waiter_start(world.theirs, NULL);
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - started_at, 1100, 4000);
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_LOST);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 1, 1000);
	assert_int_equal(seen_count(&world.seen, HF_AT_RISK), 1);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	waiter_finish(waiter);
	world_end(&world);
}

static void lease_longer_than_the_session_lasts_as_long_as_it_says(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 2000);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 5000)));
	while (test_now_ms() - started_at < 4500) {
		assert_int_not_equal(hf_lock_state(world.mine, NULL), HF_LOST);
		assert_int_equal(count_children(world.eye, "/orders"), 1);
		assert_true(hf_lock_remaining(world.mine, NULL) <= 2000);
		test_pause();
	}
	WAIT_UNTIL(hf_lock_state(world.mine, NULL) == HF_LOST, 2000);
	ASSERT_BETWEEN(test_now_ms() - started_at, 4800, 6500);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 0, SOON_MS);
	world_end(&world);
}

static void extension_carries_on_beyond_the_first_lease(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 10000);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 1500)));
	ASSERT_OK(hf_lock_extend(world.mine, NULL, 4000));
	WAIT_UNTIL(test_now_ms() - started_at > 2500, 4000);
	assert_int_not_equal(hf_lock_state(world.mine, NULL), HF_LOST);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	WAIT_UNTIL(hf_lock_state(world.mine, NULL) == HF_LOST, 4000);
	ASSERT_BETWEEN(test_now_ms() - started_at, 3800, 6500);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 0, SOON_MS);
	world_end(&world);
}

/* ---- folders that are deleted when they are empty ---- */

static void folder_reaped_while_in_use_is_made_again(void **state)
{
	struct world world;
	int made = 0;
	bool was_there = false;

	(void)state;
	world_begin(&world, &(struct test_zookeeper_options){.reaper_ms = 100}, 6000);
	hf_lock *deep = open_lock(world.one, "a/b/c");
	long long ends_at = test_now_ms() + 8000;
	while (made < 4 && test_now_ms() < ends_at) {
		bool there = count_children(world.eye, "/a/b/c") >= 0;
		if (!there) {
			ASSERT_OK(hf_lock_acquire(deep, HF_ACQUIRE(.wait_ms = SOON_MS)));
			made++;
			assert_int_equal(count_children(world.eye, "/a/b/c"), 1);
			ASSERT_OK(hf_lock_release(deep));
		}
		was_there = was_there || there;
		ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = SOON_MS)));
		struct waiter *waiter = waiter_start(world.theirs, NULL);
		ASSERT_OK(hf_lock_release(world.mine));
		waiter_finish(waiter);
	}
	assert_int_equal(made, 4);
	assert_true(was_there);
	/* Nothing but containers was made, so nothing stays. */
	WAIT_UNTIL(count_children(world.eye, "/a") < 0 && count_children(world.eye, "/orders") < 0,
	           10000);
	hf_lock_close(deep);
	world_end(&world);
}

/* ---- threads ---- */

static int count_patient_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			count += sched_getscheduler(atoi(entry->d_name)) == SCHED_BATCH;
	closedir(tasks);
	return count;
}

static void only_the_librarys_threads_are_patient(void **state)
{
	struct world world;
	int policy = sched_getscheduler(0);

	(void)state;
	world_begin(&world, NULL, 30000);
	/* Two for each session; a thread with another scheduling policy keeps it. */
	assert_int_equal(count_patient_threads(), policy == SCHED_OTHER ? 4 : 0);
	assert_int_equal(sched_getscheduler(0), policy);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_deleted_by_somebody_is_noticed),
		cmocka_unit_test(node_deleted_right_after_the_grant_is_noticed),
		cmocka_unit_test(node_deleted_while_it_is_renewed_costs_that_hold_alone),
		cmocka_unit_test(node_of_a_waiter_deleted_by_somebody_is_made_again),
		cmocka_unit_test(session_expired_while_held_is_lost_and_replaced),
		cmocka_unit_test(session_expired_while_waiting_costs_only_the_place),
		cmocka_unit_test(session_expired_while_creating_leaves_one_node_of_the_next),
		cmocka_unit_test(sessions_that_expire_again_and_again_are_survived),
		cmocka_unit_test(fixed_lease_expires_with_its_node),
		cmocka_unit_test(lease_longer_than_the_session_lasts_as_long_as_it_says),
		cmocka_unit_test(extension_carries_on_beyond_the_first_lease),
		cmocka_unit_test(folder_reaped_while_in_use_is_made_again),
		cmocka_unit_test(only_the_librarys_threads_are_patient),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
