/* An ensemble of three that loses its leader, a follower or its majority while locks are held. */
#include "live/zk_faults.h"

#include <sched.h>

/* Two clients, each with the servers that a test names. */
struct group {
	struct test_zookeeper *zookeeper;
	struct zk_raw *eye;
	struct seen seen;
	hf_client *one;
	hf_client *two;
	hf_lock *mine;
	hf_lock *theirs;
	int leader, follower;
};

/* Whether the first client talks to the follower only, or to all servers. */
static void group_begin(struct group *group, bool can_cut, bool on_follower, int64_t session_ms)
{
	char url[200];
	memset(group, 0, sizeof(*group));
	group->zookeeper = test_zookeeper_start(
		&(struct test_zookeeper_options){.servers = 3, .can_cut = can_cut});
	group->leader = test_zookeeper_leader(group->zookeeper);
	group->follower = test_zookeeper_follower(group->zookeeper);
	group->eye = zk_raw_open(test_zookeeper_host(group->zookeeper, group->leader), 0);
	snprintf(url, sizeof url, "zk://%s", test_zookeeper_hosts(group->zookeeper));
	group->one =
		open_url(on_follower ? test_zookeeper_url(group->zookeeper, group->follower) : url,
	                 HF_CLIENT(.watchdog_ms = session_ms, EVENTS_TO(&group->seen)));
	group->two =
		open_url(on_follower ? test_zookeeper_url(group->zookeeper, group->leader) : url,
	                 HF_CLIENT(.watchdog_ms = session_ms));
	group->mine = open_lock(group->one, "orders");
	group->theirs = open_lock(group->two, "orders");
}

static void group_end(struct group *group)
{
	hf_lock_close(group->mine);
	hf_lock_close(group->theirs);
	ASSERT_OK(hf_client_close(group->one));
	ASSERT_OK(hf_client_close(group->two));
	zk_raw_close(group->eye);
	test_zookeeper_stop(group->zookeeper);
}

static void inspect_lock(struct group *group, int server)
{
	zk_raw_drop(group->eye);
	group->eye = zk_raw_open(test_zookeeper_host(group->zookeeper, server), 0);
	assert_int_equal(zk_raw_sync(group->eye, "/"), 0);
}

static void killed_leader_costs_nothing(void **state)
{
	struct group group;

	(void)state;
	group_begin(&group, false, false, 12000);
	ASSERT_OK(hf_lock_acquire(group.mine, NULL));
	int64_t token = token_of(group.mine, NULL);
	struct waiter *waiter = waiter_start(group.theirs, NULL);
	WAIT_UNTIL(count_children(group.eye, "/orders") == 2, SOON_MS);
	test_zookeeper_kill(group.zookeeper, group.leader);
	inspect_lock(&group, test_zookeeper_leader(group.zookeeper));
	uint64_t renewals = stats_of(group.one).renewals;
	WAIT_UNTIL(stats_of(group.one).renewals > renewals, 10000);
	assert_int_equal(hf_lock_state(group.mine, NULL), HF_HELD);
	assert_int_equal(count_children(group.eye, "/orders"), 2);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(group.mine));
	waiter_expect(waiter, 0);
	assert_true(token_of(group.theirs, waiter->options.owner) > token);
	token = token_of(group.theirs, waiter->options.owner);
	ASSERT_OK(waiter_release(waiter));
	/* The token grows with the new leader's grants too. */
	ASSERT_OK(hf_lock_acquire(group.mine, HF_ACQUIRE(.wait_ms = 8000)));
	assert_true(token_of(group.mine, NULL) > token);
	ASSERT_OK(hf_lock_release(group.mine));
	assert_int_equal(stats_of(group.one).losses + stats_of(group.two).losses, 0);
	waiter_free(waiter);
	group_end(&group);
}

/* The followers do without it for four ticks, of which this is half. */
static void leader_that_is_stopped_and_continues_costs_nothing(void **state)
{
	struct group group;

	(void)state;
	group_begin(&group, false, false, 12000);
	ASSERT_OK(hf_lock_acquire(group.mine, NULL));
	struct waiter *waiter = waiter_start(group.theirs, NULL);
	WAIT_UNTIL(count_children(group.eye, "/orders") == 2, SOON_MS);
	test_zookeeper_freeze(group.zookeeper, group.leader);
	long long frozen_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() > frozen_at + 1000, SOON_MS);
	assert_int_equal(hf_lock_state(group.mine, NULL), HF_HELD);
	test_zookeeper_thaw(group.zookeeper, group.leader);
	inspect_lock(&group, test_zookeeper_leader(group.zookeeper));
	uint64_t renewals = stats_of(group.one).renewals;
	WAIT_UNTIL(stats_of(group.one).renewals > renewals, 10000);
	assert_int_equal(hf_lock_state(group.mine, NULL), HF_HELD);
	assert_int_equal(count_children(group.eye, "/orders"), 2);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(group.mine));
	waiter_finish(waiter);
	assert_int_equal(stats_of(group.one).losses + stats_of(group.two).losses, 0);
	group_end(&group);
}

static void follower_without_its_leader_costs_the_lock_in_time(void **state)
{
	struct group group;
	struct zk_raw_stat stat;
	char path[700];

	(void)state;
	group_begin(&group, true, true, 6000);
	ASSERT_OK(hf_lock_acquire(group.mine, NULL));
	WAIT_UNTIL(count_children(group.eye, "/orders") == 1, SOON_MS);
	read_only_child(group.eye, "/orders", path, sizeof path, &stat);
	struct waiter *waiter = waiter_start(group.theirs, NULL);
	WAIT_UNTIL(stats_of(group.one).renewals >= 1, 8000);
	test_zookeeper_isolate(group.zookeeper, group.follower, true);
	expect_lost_in_time(group.eye, path, group.mine, NULL, 10000);
	waiter_expect(waiter, 0);
	assert_true(token_of(group.theirs, waiter->options.owner) > stat.czxid);
	assert_true(seen_count(&group.seen, HF_AT_RISK) >= 1);
	ASSERT_OK(waiter_release(waiter));
	test_zookeeper_isolate(group.zookeeper, group.follower, false);
	ASSERT_RC(hf_lock_release(group.mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(group.mine, HF_ACQUIRE(.wait_ms = 15000)));
	ASSERT_OK(hf_lock_release(group.mine));
	waiter_free(waiter);
	group_end(&group);
}

/* The follower reports its clients' signs of life to the leader only from time to time. */
static void follower_cut_off_right_after_a_renewal_costs_the_lock_in_time(void **state)
{
	struct group group;
	char path[700];

	(void)state;
	group_begin(&group, true, true, 6000);
	ASSERT_OK(hf_lock_acquire(group.mine, NULL));
	WAIT_UNTIL(count_children(group.eye, "/orders") == 1, SOON_MS);
	read_only_child(group.eye, "/orders", path, sizeof path, NULL);
	uint64_t renewals = stats_of(group.one).renewals;
	WAIT_UNTIL(stats_of(group.one).renewals >= renewals + 2, 12000);
	test_zookeeper_isolate(group.zookeeper, group.follower, true);
	expect_lost_in_time(group.eye, path, group.mine, NULL, 10000);
	test_zookeeper_isolate(group.zookeeper, group.follower, false);
	group_end(&group);
}

static void follower_cut_off_right_after_a_grant_costs_the_lock_in_time(void **state)
{
	struct group group;
	struct zk_raw_names names;
	struct zk_raw_stat stat;
	char path[700] = "";

	(void)state;
	group_begin(&group, true, true, 6000);
	ASSERT_OK(hf_lock_acquire(group.theirs, NULL));
	struct waiter *waiter = waiter_start(group.mine, NULL);
	WAIT_UNTIL(count_children(group.eye, "/orders") == 2, SOON_MS);
	int64_t token = token_of(group.theirs, NULL);
	assert_int_equal(zk_raw_children(group.eye, "/orders", &names, NULL), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "/orders/%s", names.name[i]);
		assert_int_equal(zk_raw_exists(group.eye, path, &stat), 0);
		if (stat.czxid != token)
			break;
	}
	zk_raw_names_clear(&names);
	/* A third of the session may pass without a sign of life. */
	long long queued_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - queued_at > 1700, 3000);
	ASSERT_OK(hf_lock_release(group.theirs));
	waiter_expect(waiter, 0);
	test_zookeeper_isolate(group.zookeeper, group.follower, true);
	expect_lost_in_time(group.eye, path, group.mine, waiter->options.owner, 10000);
	test_zookeeper_isolate(group.zookeeper, group.follower, false);
	waiter_free(waiter);
	group_end(&group);
}

static void ensemble_without_majority_costs_the_lock_in_time(void **state)
{
	struct group group;

	(void)state;
	group_begin(&group, false, false, 4000);
	ASSERT_OK(hf_lock_acquire(group.mine, NULL));
	int64_t token = token_of(group.mine, NULL);
	int last = 3 - group.leader - group.follower;
	long long killed_at = test_now_ms();
	test_zookeeper_kill(group.zookeeper, group.leader);
	test_zookeeper_kill(group.zookeeper, group.follower);
	WAIT_UNTIL(hf_lock_state(group.mine, NULL) == HF_LOST, 5000);
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, 4300);
	int rc = hf_lock_acquire(group.theirs, HF_ACQUIRE(.wait_ms = 500));
	assert_true(rc == HF_EUNREACHABLE || rc == HF_EUNKNOWN);
	test_zookeeper_restart(group.zookeeper, group.leader);
	test_zookeeper_restart(group.zookeeper, group.follower);
	inspect_lock(&group, last);
	ASSERT_OK(hf_lock_acquire(group.theirs, HF_ACQUIRE(.wait_ms = 15000)));
	assert_true(token_of(group.theirs, NULL) > token);
	assert_int_equal(hf_lock_state(group.mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(group.mine), HF_ELOST);
	ASSERT_OK(hf_lock_release(group.theirs));
	group_end(&group);
}

/* ---- counting while leaders come and go ---- */

struct counter {
	pthread_t thread;
	hf_lock *lock;
	atomic_bool *over;
	int64_t *last; /* protected by the lock alone; also the next field */
	long *sum;
	long done;
	char *wrong;
};

static void *count_up(void *arg)
{
	struct counter *counter = arg;
	while (!atomic_load(counter->over)) {
		hf_owner *owner = NULL;
		int64_t token = 0;
		if (hf_owner_new(&owner))
			return NULL;
		int rc = hf_lock_acquire(counter->lock, HF_ACQUIRE(.owner = owner));
		if (rc == 0) {
			(void)hf_lock_token(counter->lock, owner, &token);
			if (token <= *counter->last)
				counter->wrong = "a token did not grow";
			*counter->last = token;
			long seen = *counter->sum;
			sched_yield();
			*counter->sum = seen + 1;
			counter->done++;
			rc = hf_lock_release_with(counter->lock,
			                          HF_RELEASE(.owner = owner, .wait_ms = 15000));
		}
		if (rc)
			counter->wrong = check_format("%d: %s", rc, hf_error_detail());
		hf_owner_free(owner);
	}
	return NULL;
}

static void no_count_is_lost_while_leaders_are_killed(void **state)
{
	struct group group;
	struct counter counters[6] = {0};
	atomic_bool over = false;
	int64_t last = 0;
	long sum = 0, done = 0;

	(void)state;
	group_begin(&group, false, false, 20000);
	for (int i = 0; i < 6; i++) {
		counters[i] = (struct counter){.lock = i % 2 ? group.mine : group.theirs,
		                               .over = &over,
		                               .last = &last,
		                               .sum = &sum};
		assert_int_equal(pthread_create(&counters[i].thread, NULL, count_up, &counters[i]),
		                 0);
	}
	for (int i = 0; i < 2; i++) {
		uint64_t grants = stats_of(group.one).grants;
		WAIT_UNTIL(stats_of(group.one).grants > grants + 20, 15000);
		int leader = test_zookeeper_leader(group.zookeeper);
		test_zookeeper_kill(group.zookeeper, leader);
		test_zookeeper_restart(group.zookeeper, leader);
	}
	uint64_t grants = stats_of(group.one).grants;
	WAIT_UNTIL(stats_of(group.one).grants > grants + 20, 15000);
	atomic_store(&over, true);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(counters[i].thread, NULL), 0);
		if (counters[i].wrong)
			fail_msg("%s", counters[i].wrong);
		done += counters[i].done;
	}
	assert_int_equal(sum, done);
	inspect_lock(&group, test_zookeeper_leader(group.zookeeper));
	WAIT_UNTIL(count_children(group.eye, "/orders") == 0, SOON_MS);
	group_end(&group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_leader_costs_nothing),
		cmocka_unit_test(leader_that_is_stopped_and_continues_costs_nothing),
		cmocka_unit_test(follower_without_its_leader_costs_the_lock_in_time),
		cmocka_unit_test(follower_cut_off_right_after_a_renewal_costs_the_lock_in_time),
		cmocka_unit_test(follower_cut_off_right_after_a_grant_costs_the_lock_in_time),
		cmocka_unit_test(ensemble_without_majority_costs_the_lock_in_time),
		cmocka_unit_test(no_count_is_lost_while_leaders_are_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
