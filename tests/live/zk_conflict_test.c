/* Locks on a real ZooKeeper whose folders are nodes of plain locks, which cannot have children. */
#include "live/zk.h"

static void plain_lock_below_a_plain_lock_is_a_conflict(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *upper = open_named(client, HF_PLAIN, "a");
	hf_lock *lower = open_named(client, HF_PLAIN, "a/b");

	(void)state;
	ASSERT_OK(hf_lock_acquire(upper, NULL));
	ASSERT_RC(hf_lock_acquire(lower, HF_ACQUIRE(.wait_ms = 3000)), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), "plain lock");
	ASSERT_OK(hf_lock_release(upper));
	ASSERT_OK(hf_lock_acquire(lower, HF_ACQUIRE(.wait_ms = 3000)));
	ASSERT_OK(hf_lock_release(lower));
	hf_lock_close(lower);
	hf_lock_close(upper);
	ASSERT_OK(hf_client_close(client));
}

static void semaphore_waits_for_a_plain_lock_on_the_path_of_its_gate(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *plain = open_named(client, HF_PLAIN, "orders/locks");
	hf_lock *simple = open_named(client, HF_SIMPLE, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(plain, NULL));
	ASSERT_RC(hf_lock_acquire(simple, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	struct waiter *waiter = waiter_start(simple, NULL);
	WAIT_UNTIL(stats_of(client).waits == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(plain));
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_lock_close(simple);
	hf_lock_close(plain);
	ASSERT_OK(hf_client_close(client));
}

static void semaphore_fails_if_a_plain_lock_is_on_the_path_of_its_leases(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *plain = open_named(client, HF_PLAIN, "bills/leases");
	hf_lock *simple = open_named(client, HF_SIMPLE, "bills");

	(void)state;
	ASSERT_OK(hf_lock_acquire(plain, NULL));
	ASSERT_RC(hf_lock_acquire(simple, HF_ACQUIRE(.wait_ms = 3000)), HF_ECONFLICT);
	assert_int_equal(count_children(zk_eye, "/bills/locks"), 0);
	ASSERT_OK(hf_lock_release(plain));
	ASSERT_OK(hf_lock_acquire(simple, HF_ACQUIRE(.wait_ms = 3000)));
	ASSERT_OK(hf_lock_release(simple));
	hf_lock_close(simple);
	hf_lock_close(plain);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(plain_lock_below_a_plain_lock_is_a_conflict),
		ZK_STORY(semaphore_waits_for_a_plain_lock_on_the_path_of_its_gate),
		ZK_STORY(semaphore_fails_if_a_plain_lock_is_on_the_path_of_its_leases),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
