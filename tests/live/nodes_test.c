/* What a client has at each of its servers. */
#include "live/live.h"

#include "support/cluster.h"

#define MASTERS 3

static hf_node read_node(hf_client *client, int i, int count)
{
	hf_node node = {.size = sizeof node};
	assert_int_equal(hf_client_node(client, i, &node), count);
	return node;
}

/* The node of this port; the client has three. */
static hf_node find_node(hf_client *client, int port)
{
	char *address = check_format("127.0.0.1:%d", port);
	hf_node node = {.size = sizeof node};
	for (int i = 0; i < MASTERS; i++) {
		node = read_node(client, i, MASTERS);
		if (strcmp(node.address, address) == 0)
			break;
	}
	assert_string_equal(node.address, address);
	free(address);
	return node;
}

static void one_server_is_one_node(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_node node = {.size = sizeof node};
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	node = read_node(client, 0, 1);
	ASSERT_CONTAINS(node.address, "redis");
	assert_int_equal(node.connected, 1);
	assert_int_equal(node.held, 1);
	assert_int_equal(node.waiting, 0);
	assert_int_equal(node.reconnects, 0);
	assert_true(node.commands >= 1);
	ASSERT_BETWEEN(node.connected_ms, 0, 60000);
	raw_reply_free(
		raw_command(live_raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
	WAIT_UNTIL(read_node(client, 0, 1).reconnects == 1, SOON_MS);
	close_both(lock, client);
}

static void wrong_arguments_are_refused(void **state)
{
	hf_client *client = open_client(NULL);
	hf_node node = {.size = sizeof node, .held = 7};
	(void)state;
	ASSERT_RC(hf_client_node(NULL, 0, &node), HF_EINVAL);
	ASSERT_RC(hf_client_node(client, 0, NULL), HF_EINVAL);
	ASSERT_RC(hf_client_node(client, -1, &node), HF_EINVAL);
	assert_int_equal(hf_client_node(client, 1, &node), 1);
	assert_int_equal(node.held, 7); /* not touched */
	node.size = 0;
	ASSERT_RC(hf_client_node(client, 0, &node), HF_EINVAL);
	/* A program of an older release has fewer fields. */
	node.size = offsetof(hf_node, held);
	assert_int_equal(hf_client_node(client, 0, &node), 1);
	assert_int_equal(node.held, 7);
	ASSERT_OK(hf_client_close(client));
}

static void only_the_node_that_stopped_is_not_connected(void **state)
{
	hf_lock *lock[MASTERS];
	(void)state;
	struct test_cluster *cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .node_timeout_ms = 20000});
	hf_client *client = open_url(cluster->url, NULL);
	for (int i = 0; i < MASTERS; i++) {
		char *name = test_cluster_name(cluster, i, "orders");
		lock[i] = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire(lock[i], NULL));
		free(name);
	}
	test_server_kill(cluster->node[1]);
	WAIT_UNTIL(!find_node(client, test_server_port(cluster->node[1])).connected, SOON_MS);
	for (int i = 0; i < MASTERS; i++) {
		hf_node node = find_node(client, test_server_port(cluster->node[i]));
		assert_int_equal(node.connected, i != 1);
		assert_true(i != 1 || node.connected_ms == 0);
		assert_int_equal(node.held, 1);
		assert_int_equal(node.reconnects, 0);
		assert_true(node.commands >= 1);
		hf_lock_close(lock[i]);
	}
	ASSERT_OK(hf_client_close(client));
	test_cluster_stop(cluster);
}

/* ---- facts ---- */

struct facts {
	int count;
	char node[64]; /* which one says so */
	char role[16];
};

static void note_fact(void *arg, const char *name, const char *value)
{
	struct facts *facts = arg;
	facts->count++;
	if (strcmp(name, "cluster_node") == 0)
		(void)snprintf(facts->node, sizeof facts->node, "%s", value);
	if (strcmp(name, "role") == 0)
		(void)snprintf(facts->role, sizeof facts->role, "%s", value);
}

/* Whichever of them the client is connected to already. */
static void each_node_reports_its_own_facts(void **state)
{
	struct facts facts = {0};
	(void)state;
	struct test_cluster *cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .node_timeout_ms = 20000});
	hf_client *client = open_url(cluster->url, HF_CLIENT(.command_timeout_ms = 1000));
	for (int round = 0; round < 2; round++)
		for (int i = MASTERS - 1; i >= 0; i--) {
			hf_node node = read_node(client, i, MASTERS);
			facts = (struct facts){0};
			ASSERT_OK(hf_client_facts_of(client, node.address, note_fact, &facts));
			assert_string_equal(facts.node, node.address);
			assert_string_equal(facts.role, "master");
		}
	hf_node stopped = read_node(client, 1, MASTERS);
	for (int i = 0; i < MASTERS; i++)
		if (strstr(test_server_url(cluster->node[i]), strrchr(stopped.address, ':')))
			test_server_kill(cluster->node[i]);
	facts = (struct facts){0};
	assert_true(hf_client_facts_of(client, stopped.address, note_fact, &facts) < 0);
	assert_int_equal(facts.count, 0);
	ASSERT_OK(hf_client_facts_of(client, read_node(client, 0, MASTERS).address, note_fact,
	                             &facts));
	ASSERT_OK(hf_client_close(client));
	test_cluster_stop(cluster);
}

static void only_servers_of_the_client_are_asked_for_facts(void **state)
{
	hf_client *client = open_client(NULL);
	struct facts facts = {0};
	(void)state;
	ASSERT_OK(hf_client_facts_of(client, read_node(client, 0, 1).address, note_fact, &facts));
	assert_string_equal(facts.role, "master");
	ASSERT_RC(hf_client_facts_of(client, "10.0.0.1:6379", note_fact, &facts), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "10.0.0.1:6379");
	ASSERT_RC(hf_client_facts_of(NULL, "a", note_fact, &facts), HF_EINVAL);
	ASSERT_RC(hf_client_facts_of(client, NULL, note_fact, &facts), HF_EINVAL);
	ASSERT_RC(hf_client_facts_of(client, "a", NULL, &facts), HF_EINVAL);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_server_is_one_node, live_flush),
		cmocka_unit_test_setup(wrong_arguments_are_refused, live_flush),
		cmocka_unit_test(only_the_node_that_stopped_is_not_connected),
		cmocka_unit_test(each_node_reports_its_own_facts),
		cmocka_unit_test_setup(only_servers_of_the_client_are_asked_for_facts, live_flush),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
