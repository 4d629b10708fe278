/* Metrics of clients of a Cluster and of Sentinels. */
#include "live/metrics.h"

#include "support/cluster.h"
#include "support/sentinels.h"

#define INFO(backend) "holdfast_client_info{version=\"0.1.0\",backend=\"" backend "\"}"

/* Names enough for all masters. */
static void pairs_on_a_cluster_are_counted(void **state)
{
	struct test_cluster *cluster =
		test_cluster_start(&(struct test_cluster_options){.node_timeout_ms = 15000});
	hf_client *client = open_url(cluster->url, HF_CLIENT(.metrics = 1));
	(void)state;
	check_counted_pair(client, INFO("cluster"));
	for (char name[] = "measured-a"; name[9] <= 'p'; name[9]++) {
		hf_lock *lock = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
	ASSERT_SAMPLE(client, GRANTED("reentrant"), 17);
	ASSERT_SAMPLE(client, RELEASED("reentrant"), 17);
	ASSERT_OK(hf_client_close(client));
	test_cluster_stop(cluster);
}

static void a_pair_on_the_master_of_sentinels_is_counted(void **state)
{
	struct test_sentinels *group = test_sentinels_start(NULL);
	hf_client *client = open_url(group->url, HF_CLIENT(.metrics = 1));
	(void)state;
	check_counted_pair(client, INFO("sentinel"));
	ASSERT_OK(hf_client_close(client));
	test_sentinels_stop(group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_on_a_cluster_are_counted),
		cmocka_unit_test(a_pair_on_the_master_of_sentinels_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
