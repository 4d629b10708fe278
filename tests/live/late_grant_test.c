/* A grant whose lease expires before the thread that waits for it runs again. */
#include "live/sync.h"

#include "api/client.h"

#define LEASE_MS INT64_C(60000)

int64_t __real_hf__clock_ms(void);
int64_t __wrap_hf__clock_ms(void);

/* The clock jumps as soon as this client has granted something; NULL: it does not. */
static _Atomic(const struct hf_client *) jumps_with;
static _Thread_local bool is_caller;
static _Atomic int64_t jumped_ms;

/* Only the thread that makes the call reads the client, with its mutex held or after its call. */
int64_t __wrap_hf__clock_ms(void)
{
	const struct hf_client *client = is_caller ? atomic_load(&jumps_with) : NULL;
	if (client && client->core.stats.grants > 0) {
		atomic_store(&jumps_with, NULL);
		atomic_fetch_add(&jumped_ms, LEASE_MS);
	}
	return __real_hf__clock_ms() + atomic_load(&jumped_ms);
}

static void permits_that_expired_on_the_way_are_lost_and_given_back(void **state)
{
	hf_client *client = sync_open(NULL);
	hf_permits *permits = NULL;
	hf_permit_id ids[3] = {"untouched"};
	int64_t available = 0;

	(void)state;
	ASSERT_OK(hf_permits_open(client, "orders", &permits));
	ASSERT_OK(hf_permits_try_set(permits, 5, NULL));
	is_caller = true;
	atomic_store(&jumps_with, client);
	ASSERT_RC(hf_permits_acquire(permits, 3, HF_PERMITS(.lease_ms = LEASE_MS), ids), HF_ELOST);
	is_caller = false;
	ASSERT_CONTAINS(hf_error_detail(), "before this thread ran again");
	assert_string_equal(ids[0], "untouched");
	ASSERT_OK(hf_permits_available(permits, &available));
	assert_int_equal(available, 5);
	ASSERT_OK(hf_permits_acquire(permits, 3, HF_PERMITS(.lease_ms = LEASE_MS), ids));
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)ids, 3));
	hf_permits_close(permits);
	ASSERT_OK(sync_close(client));
}

static void lock_that_expired_on_the_way_is_lost(void **state)
{
	hf_client *client = sync_open(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	is_caller = true;
	atomic_store(&jumps_with, client);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = LEASE_MS)), HF_ELOST);
	is_caller = false;
	ASSERT_CONTAINS(hf_error_detail(), "before this thread ran again");
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(permits_that_expired_on_the_way_are_lost_and_given_back),
		SYNC_STORY(lock_that_expired_on_the_way_is_lost),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
