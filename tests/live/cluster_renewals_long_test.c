/* Very many holds in different slots of a Cluster that is far away. */
#include "live/live.h"

#include "support/cluster.h"
#include "support/proxy.h"

#define MASTERS  3
#define HOLDS    10000
#define DELAY_MS 20 /* each way */

static struct test_cluster *cluster;
static struct proxy *proxy[MASTERS];

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .node_timeout_ms = 20000});
	for (int i = 0; i < MASTERS; i++)
		proxy[i] = proxy_start(test_server_url(cluster->node[i]));
	return 0;
}

static int stop_all(void **state)
{
	(void)state;
	for (int i = 0; i < MASTERS; i++)
		proxy_stop(proxy[i]);
	test_cluster_stop(cluster);
	return 0;
}

/* A client that reaches each node by its proxy only. */
static hf_client *open_far(struct seen *seen)
{
	char nat[200] = "";
	for (int i = 0; i < MASTERS; i++) {
		size_t used = strlen(nat);
		const char *to = strrchr(proxy_url(proxy[i]), ':') + 1;
		snprintf(nat + used, sizeof nat - used, "%s127.0.0.1:%d:127.0.0.1:%s", i ? "," : "",
		         test_server_port(cluster->node[i]), to);
	}
	char *url = check_format("%s?nat=%s", cluster->url, nat);
	hf_client *client = open_url(url, HF_CLIENT(EVENTS_TO(seen)));
	free(url);
	return client;
}

static void note_grant(void *arg, int result, int64_t token, const char *text)
{
	atomic_int *granted = arg;
	(void)token, (void)text;
	if (result == 0)
		atomic_fetch_add(granted, 1);
}

/* One in each of the first slots, so that no script renews two of them. */
static void hold_all(hf_client *client, hf_lock **locks, hf_owner *owner)
{
	atomic_int granted = 0;
	bool is_used[CLUSTER_SLOTS] = {false};
	int count = 0;
	for (int i = 0; count < HOLDS; i++) {
		char name[32];
		snprintf(name, sizeof name, "far-%d", i);
		int slot = test_slot(name);
		if (is_used[slot])
			continue;
		is_used[slot] = true;
		locks[count] = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire_async(locks[count++],
		                                HF_ACQUIRE(.wait_ms = 60000, .owner = owner),
		                                note_grant, &granted));
	}
	WAIT_UNTIL(atomic_load(&granted) == HOLDS, 60000);
}

/* Waits until all were renewed twice, and returns how long a round trip takes meanwhile. */
static long long await_renewals(hf_client *client)
{
	long long total_us = 0, pings = 0;
	while (stats_of(client).renewals < 2L * HOLDS) {
		int64_t us = 0;
		ASSERT_OK(hf_client_ping(client, &us));
		total_us += us;
		pings++;
	}
	return total_us / pings / 1000;
}

static void holds_in_ten_thousand_slots_are_renewed_in_time(void **state)
{
	hf_lock **locks = check_alloc(HOLDS * sizeof(hf_lock *));
	struct seen seen = {0};
	hf_owner *owner = new_owner();
	(void)state;
	hf_client *client = open_far(&seen);
	hold_all(client, locks, owner);
	for (int i = 0; i < MASTERS; i++)
		proxy_delay(proxy[i], DELAY_MS);
	assert_true(stats_of(client).renewals < HOLDS);
	long long trip_ms = await_renewals(client);
	hf_stats stats = stats_of(client);
	print_message("the latest renewal was answered %llu ms after it was due, with %lld ms for "
	              "a round trip\n",
	              (unsigned long long)stats.renewal_lag_ms, trip_ms);
	assert_true(stats.renewal_scripts >= 2L * HOLDS);
	/* On a busy machine a round trip takes longer than the network does. */
	assert_true(stats.renewal_lag_ms < (uint64_t)(trip_ms * HOLDS / 40));
	if (trip_ms <= 2 * DELAY_MS + 10) {
		assert_int_equal(stats.at_risk, 0);
		assert_int_equal(stats.losses, 0);
	}
	for (int i = 0; i < MASTERS; i++)
		proxy_delay(proxy[i], 0);
	for (int i = 0; i < HOLDS; i++)
		hf_lock_close(locks[i]);
	ASSERT_OK(hf_client_close(client));
	hf_owner_free(owner);
	free(locks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_in_ten_thousand_slots_are_renewed_in_time),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_all);
}
