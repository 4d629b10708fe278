/* Many held locks: one session, and one heartbeat for all of them. */
#include "live/zk.h"

#include "support/proxy.h"

#define MANY      3000
#define MANY_LONG 2500 /* names of LONG characters, more than a megabyte in all */
#define LONG      450

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

static void take_all(hf_client *client, int count, int length)
{
	granted = ended = 0;
	for (int i = 0; i < count; i++) {
		char name[LONG + 40];
		snprintf(name, sizeof name, "held%d/%0*d", length, length, i);
		owners[i] = new_owner();
		locks[i] = open_named(client, HF_REENTRANT, name);
		ASSERT_OK(hf_lock_acquire_async(locks[i], HF_ACQUIRE(.owner = owners[i]),
		                                note_grant, NULL));
		/* No more at once than the server answers in time. */
		WAIT_UNTIL(i - ended < 200, 30000);
	}
	WAIT_UNTIL(ended == count, 30000);
	assert_int_equal(granted, count);
}

static void check_all_held(hf_client *client, int count)
{
	assert_int_equal(stats_of(client).losses, 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(hf_lock_state(locks[i], owners[i]), HF_HELD);
}

static void close_all(hf_client *client, int count)
{
	ASSERT_OK(hf_client_close(client));
	for (int i = 0; i < count; i++) {
		hf_lock_close(locks[i]);
		hf_owner_free(owners[i]);
	}
}

static void held_locks_need_one_heartbeat(void **state)
{
	hf_client *client = open_zk("?session=9s");
	int64_t lease_ms;
	(void)state;
	ASSERT_OK(hf_client_lease(client, &lease_ms));
	take_all(client, MANY, 1);
	/* Each is watched once, for its deletion by others. */
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") >= MANY, 30000);

	uint64_t renewals = stats_of(client).renewals, at_risk = stats_of(client).at_risk;
	long long packets = test_zookeeper_value(zk_server, 0, "zk_packets_received");
	WAIT_UNTIL(stats_of(client).renewals - renewals >= 3 * MANY, 4 * lease_ms);
	packets = test_zookeeper_value(zk_server, 0, "zk_packets_received") - packets;
	print_message("%d locks renewed three times: %lld packets\n", MANY, packets);
	/*
	 * A beat for all that is due within a twelfth of the lease, and the signs of life of two
	 * sessions.
	 */
	assert_true(packets <= 30);
	assert_int_equal(stats_of(client).at_risk, at_risk);
	check_all_held(client, MANY);
	close_all(client, MANY);
}

/* All watches are named in one packet then, and a server takes a megabyte. */
static void many_held_locks_with_long_names_survive_a_reconnect(void **state)
{
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	hf_client *client = open_url(proxy_url(proxy), HF_CLIENT(.watchdog_ms = 30000));
	(void)state;
	long long watches = test_zookeeper_value(zk_server, 0, "zk_watch_count");
	take_all(client, MANY_LONG, LONG);
	/* Until those that are watched at all are. */
	for (long long before = -1, now = 0; now == 0 || now != before;) {
		long long looked_at = test_now_ms();
		before = now;
		WAIT_UNTIL(test_now_ms() - looked_at > 700, SOON_MS);
		now = test_zookeeper_value(zk_server, 0, "zk_watch_count") - watches;
	}
	proxy_cut(proxy);
	WAIT_UNTIL(stats_of(client).reconnects == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	check_all_held(client, MANY_LONG);
	ASSERT_OK(hf_lock_release_with(locks[0], HF_RELEASE(.owner = owners[0])));
	close_all(client, MANY_LONG);
	proxy_stop(proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(held_locks_need_one_heartbeat),
		ZK_STORY(many_held_locks_with_long_names_survive_a_reconnect),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
