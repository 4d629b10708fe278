/*
 * Fixed leases, which expire here and not on the server: at the very moment, and with the right
 * length.
 */
#include "live/zk.h"

#define ROUNDS 40

static void spin_until(long long moment)
{
	while (test_now_ms() < moment)
		continue;
}

/* A hold that expires in the same millisecond is released or lost, once. */
static void release_in_the_moment_of_the_end_is_answered(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");
	int released = 0, lost = 0;
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		int taken = hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 30));
		assert_true(taken == 0 || taken == HF_ELOST); /* it may have expired at once */
		spin_until(test_now_ms() + hf_lock_remaining(lock, NULL) - i % 3);
		int rc = hf_lock_release(lock);
		released += rc == 0;
		lost += rc == HF_ELOST;
	}
	assert_int_equal(released + lost, ROUNDS);
	assert_true(lost > 0);
	WAIT_UNTIL(count_children(zk_eye, "/orders") <= 0, SOON_MS);
	close_both(lock, client);
}

static void permit_given_back_in_the_moment_of_its_end_is_answered(void **state)
{
	hf_client *client = open_zk("");
	hf_permits *permits = NULL;
	hf_permit_id id;
	int released = 0, lost = 0;
	(void)state;
	ASSERT_OK(hf_permits_open(client, "orders", &permits));
	ASSERT_OK(hf_permits_set(permits, 1));
	for (int i = 0; i < ROUNDS; i++) {
		ASSERT_OK(hf_permits_acquire(permits, 1, HF_PERMITS(.lease_ms = 50), &id));
		spin_until(test_now_ms() + hf_permits_remaining(permits, id) - i % 3);
		int rc = hf_permits_release(permits, (const hf_permit_id *)&id, 1);
		released += rc == 0;
		lost += rc == HF_ELOST;
	}
	assert_int_equal(released + lost, ROUNDS);
	assert_true(lost > 0);
	WAIT_UNTIL(count_children(zk_eye, "/orders/leases") <= 0, SOON_MS);
	hf_permits_close(permits);
	ASSERT_OK(hf_client_close(client));
}

/* A third of the lease, not of the longer session. */
static void short_lease_is_at_risk_in_its_last_third(void **state)
{
	hf_client *client = open_zk("?session=10s");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 1500)));
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_AT_RISK, 1500);
	assert_true(hf_lock_remaining(lock, NULL) <= 500);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, 1500);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "lease of 1500 ms");
	close_both(lock, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(release_in_the_moment_of_the_end_is_answered),
		ZK_STORY(permit_given_back_in_the_moment_of_its_end_is_answered),
		ZK_STORY(short_lease_is_at_risk_in_its_last_third),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
