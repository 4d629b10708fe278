/* Many held locks: one session, and one heartbeat for all of them. */
#include "live/zk.h"

#define MANY 10000

static hf_owner *owners[MANY];
static hf_lock *locks[MANY];
static atomic_int granted, ended;

static void note_grant(void *arg, int result, int64_t number, const char *text)
{
	(void)arg;
	(void)number;
	(void)text;
	granted += result == 0;
	ended++;
}

static void take_all(hf_client *client)
{
	for (int i = 0; i < MANY; i++) {
		char name[40];
		snprintf(name, sizeof name, "held/%d", i);
		owners[i] = new_owner();
		locks[i] = open_kind(client, HF_REENTRANT, name);
		ASSERT_OK(hf_lock_acquire_async(locks[i], HF_ACQUIRE(.owner = owners[i]),
		                                note_grant, NULL));
		/* No more at once than the server answers in time. */
		WAIT_UNTIL(i - ended < 200, 30000);
	}
	WAIT_UNTIL(ended == MANY, 30000);
	assert_int_equal(granted, MANY);
}

static void held_locks_need_one_heartbeat(void **state)
{
	hf_client *client = open_zk("?session=9s");
	int64_t lease_ms;
	(void)state;
	ASSERT_OK(hf_client_lease(client, &lease_ms));
	take_all(client);
	/* Each is watched once, for its deletion by others. */
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") >= MANY, 30000);

	uint64_t renewals = stats_of(client).renewals;
	long long packets = test_zookeeper_value(zk_server, 0, "zk_packets_received");
	WAIT_UNTIL(stats_of(client).renewals - renewals >= 3 * MANY, 4 * lease_ms);
	packets = test_zookeeper_value(zk_server, 0, "zk_packets_received") - packets;
	print_message("%d locks renewed three times: %lld packets\n", MANY, packets);
	/* At most two beats for each renewal of all, and the signs of life of two sessions. */
	assert_true(packets <= 20);
	assert_int_equal(stats_of(client).losses, 0);
	assert_int_equal(stats_of(client).at_risk, 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(hf_lock_state(locks[i], owners[i]), HF_HELD);

	ASSERT_OK(hf_client_close(client));
	for (int i = 0; i < MANY; i++) {
		hf_lock_close(locks[i]);
		hf_owner_free(owners[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(held_locks_need_one_heartbeat),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
