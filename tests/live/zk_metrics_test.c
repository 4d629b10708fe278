/* Metrics of a client of ZooKeeper. */
#include "live/metrics.h"
#include "live/zk.h"

static void a_pair_is_counted(void **state)
{
	hf_client *client = open_zk("?metrics=yes");
	(void)state;
	check_counted_pair(client, "holdfast_client_info{version=\"0.1.0\",backend=\"zookeeper\"}");
	ASSERT_OK(hf_client_close(client));
}

/* Somebody deletes the node of a hold. */
static void a_deleted_node_is_a_loss(void **state)
{
	hf_client *client = open_zk("?metrics=yes");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");
	char path[700];
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	assert_int_equal(zk_raw_delete_tree(zk_eye, path), 0);
	WAIT_UNTIL(stats_of(client).losses == 1, SOON_MS);
	ASSERT_SAMPLE(client, "holdfast_losses_total{reason=\"gone\"}", 1);
	ASSERT_SAMPLE(client, "holdfast_hold_seconds_count{kind=\"reentrant\",end=\"lost\"}", 1);
	close_both(lock, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(a_pair_is_counted),
		ZK_STORY(a_deleted_node_is_a_loss),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
