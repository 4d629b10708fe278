/* The command on a cluster: locks on every master, whichever node it was given. */
#include "cli/cli.h"
#include "cli/json.h"

#include "support/cluster.h"

#define MASTERS 3

static struct test_cluster *cluster;

/* No node may be given up on a busy machine. */
static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .node_timeout_ms = 15000});
	return 0;
}

static int stop_cluster(void **state)
{
	(void)state;
	test_cluster_stop(cluster);
	return 0;
}

static bool is_locked(int node, const char *name)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	bool is = raw_integer(raw, "EXISTS", name, NULL) == 1;
	raw_close(raw);
	return is;
}

static void locks_of_all_masters_are_taken_and_listed(void **state)
{
	struct cli *run[MASTERS];
	char *name[MASTERS];
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		name[i] = test_cluster_name(cluster, i, "listed-");
		run[i] = cli_start(cluster->url, "run", name[i], "--", "cat", NULL);
		WAIT_UNTIL(is_locked(i, name[i]), CLI_SOON_MS);
	}
	struct cli *list = cli_show_json(cluster->url, "ls", NULL);
	for (int i = 0; i < MASTERS; i++)
		cli_expect_in(json_about(cli_output(list), name[i]), "\"kind\":\"reentrant\"");
	cli_free(list);
	for (int i = 0; i < MASTERS; i++) {
		struct cli *about = cli_show_json(cluster->url, "who", name[i]);
		cli_expect_in(cli_output(about), "\"command\":\"cat\"");
		cli_free(about);
		cli_finish(run[i]);
		assert_false(is_locked(i, name[i]));
		free(name[i]);
	}
}

static void the_address_of_one_node_is_enough(void **state)
{
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		char *name = test_cluster_name(cluster, i, "single-");
		CLI_CALL(test_server_url(cluster->node[0]), 0, "run", name, "--", "true");
		free(name);
	}
}

static void a_cluster_is_examined(void **state)
{
	(void)state;
	CLI_CALL(cluster->url, 0, "doctor");
}

static void another_database_is_refused(void **state)
{
	char *url = check_format("%s/1", cluster->url);
	(void)state;
	CLI_EXPECT_REFUSAL(url, 78, "cluster", "run", "orders", "--", "true");
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_of_all_masters_are_taken_and_listed),
		cmocka_unit_test(the_address_of_one_node_is_enough),
		cmocka_unit_test(a_cluster_is_examined),
		cmocka_unit_test(another_database_is_refused),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
