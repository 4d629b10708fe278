/* The plain lock on a real ZooKeeper: the node itself, shared with people at the shell. */
#include "live/zk.h"

static void lock_is_the_ephemeral_node_itself(void **state)
{
	struct zk_raw_stat stat;
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_PLAIN, "a/b/lock");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(zk_raw_exists(zk_eye, "/a/b/lock", &stat), 0);
	assert_true(stat.owner != 0);
	assert_int_equal(stat.children, 0);
	assert_int_equal(token_of(lock, NULL), stat.czxid);
	assert_int_equal(count_children(zk_eye, "/a/b"), 1);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(zk_raw_exists(zk_eye, "/a/b/lock", NULL), ZK_RAW_NO_NODE);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	close_both(lock, client);
}

static void person_at_the_shell_is_waited_for(void **state)
{
	int flag;
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_PLAIN, "lock");

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/lock", NULL, ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	ASSERT_OK(hf_lock_is_locked(lock, &flag));
	assert_int_equal(flag, 1);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_TIMES_OUT(200, hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = within_ms)));
	assert_int_equal(zk_raw_exists(zk_eye, "/lock", NULL), 0);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == 1, SOON_MS);
	WAIT_UNTIL(stats_of(client).waiting == 1, SOON_MS);
	/* A change of the data is not a release. */
	assert_int_equal(zk_raw_set(zk_eye, "/lock", "still mine", -1), 0);
	WAIT_UNTIL(stats_of(client).wakeups >= 1, SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	assert_false(waiter_is_over(waiter));
	assert_int_equal(zk_raw_delete(zk_eye, "/lock", -1), 0);
	waiter_expect(waiter, 0);
	assert_int_equal(zk_raw_create(zk_eye, "/lock", NULL, ZK_RAW_EPHEMERAL, NULL, NULL),
	                 ZK_RAW_NODE_EXISTS);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(zk_raw_create(zk_eye, "/lock", NULL, ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	assert_int_equal(zk_raw_delete(zk_eye, "/lock", -1), 0);
	waiter_free(waiter);
	close_both(lock, client);
}

static void node_that_stays_for_good_is_busy_too(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_PLAIN, "lock");

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/lock", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(zk_raw_exists(zk_eye, "/lock", NULL), 0);
	close_both(lock, client);
}

static void node_deleted_and_made_by_another_is_lost_and_left_alone(void **state)
{
	struct zk_raw_stat stat;
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_PLAIN, "lock");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(zk_raw_delete(zk_eye, "/lock", -1), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/lock", "theirs", ZK_RAW_EPHEMERAL, NULL, &stat),
	                 0);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, 2000);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	assert_int_equal(zk_raw_exists(zk_eye, "/lock", &stat), 0);
	assert_int_equal(stat.owner, zk_raw_session(zk_eye));
	assert_int_equal(zk_raw_delete(zk_eye, "/lock", -1), 0);
	close_both(lock, client);
}

static void release_leaves_what_another_has_made_alone(void **state)
{
	struct zk_raw_stat stat;
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_PLAIN, "lock");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(zk_raw_delete(zk_eye, "/lock", -1), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/lock", "theirs", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	assert_int_equal(zk_raw_exists(zk_eye, "/lock", &stat), 0);
	assert_int_equal(stat.owner, zk_raw_session(zk_eye));
	assert_int_equal(zk_raw_delete(zk_eye, "/lock", -1), 0);
	close_both(lock, client);
}

static void mutex_waits_for_a_plain_lock_on_its_path(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *plain = open_named(client, HF_PLAIN, "lock");
	hf_lock *mutex = open_named(client, HF_REENTRANT, "lock");

	(void)state;
	hf_owner *other = NULL;
	ASSERT_OK(hf_owner_new(&other));
	ASSERT_OK(hf_lock_acquire(plain, NULL));
	ASSERT_RC(hf_lock_acquire(mutex, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(mutex, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .owner = other)),
	          HF_EBUSY);
	hf_owner_free(other);
	struct waiter *waiter = waiter_start(mutex, NULL);
	WAIT_UNTIL(stats_of(client).waits == 1, SOON_MS);
	assert_int_equal(hf_lock_state(plain, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(plain));
	waiter_join(waiter, 0);
	hf_lock_close(plain);
	hf_lock_close(mutex);
	ASSERT_OK(hf_client_close(client));
}

static void waiters_of_two_clients_all_get_it_once(void **state)
{
	struct waiter *waiters[10];
	struct rivals *rivals = open_zk_rivals(HF_PLAIN, "lock");
	int served = 0;

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	for (int i = 0; i < 10; i++)
		waiters[i] = waiter_start(i % 2 ? rivals->mine : rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->one).waiting == 5 && stats_of(rivals->two).waiting == 5,
	           SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	while (served < 10) {
		int holder = -1, over = 0;
		WAIT_UNTIL(stats_of(rivals->one).held + stats_of(rivals->two).held == 1, SOON_MS);
		for (int i = 0; i < 10; i++)
			if (waiters[i] && waiter_is_over(waiters[i]))
				holder = i, over++;
		if (holder < 0)
			continue;
		assert_int_equal(over, 1);
		waiter_finish(waiters[holder]);
		waiters[holder] = NULL;
		served++;
		if (served < 10)
			WAIT_UNTIL(zk_raw_exists(zk_eye, "/lock", NULL) == 0, SOON_MS);
	}
	assert_int_equal(zk_raw_exists(zk_eye, "/lock", NULL), ZK_RAW_NO_NODE);
	close_rivals(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(lock_is_the_ephemeral_node_itself),
		ZK_STORY(person_at_the_shell_is_waited_for),
		ZK_STORY(node_that_stays_for_good_is_busy_too),
		ZK_STORY(node_deleted_and_made_by_another_is_lost_and_left_alone),
		ZK_STORY(release_leaves_what_another_has_made_alone),
		ZK_STORY(mutex_waits_for_a_plain_lock_on_its_path),
		ZK_STORY(waiters_of_two_clients_all_get_it_once),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
