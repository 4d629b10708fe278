/* The command on a master with replicas, found by Sentinels or among the servers of the URL. */
#include "cli/cli.h"
#include "cli/json.h"

#include "support/sentinels.h"

static struct test_sentinels *group;
static char *several; /* the URL with all servers */

static int start_group(void **state)
{
	(void)state;
	group = test_sentinels_start(NULL);
	several =
		check_format("redis://%s,%s,%s", strstr(test_server_url(group->node[1]), "//") + 2,
	                     strstr(test_server_url(group->node[2]), "//") + 2,
	                     strstr(test_server_url(group->node[0]), "//") + 2);
	test_sentinels_sync(group, 0, SENTINELS_NODES - 1);
	return 0;
}

static int stop_group(void **state)
{
	(void)state;
	free(several);
	test_sentinels_stop(group);
	return 0;
}

static bool is_locked(const char *name)
{
	struct raw *raw = raw_connect(group->node[0]);
	bool is = raw_integer(raw, "EXISTS", name, NULL) == 1;
	raw_close(raw);
	return is;
}

static void everything_works(const char *url)
{
	CLI_CALL(url, 0, "ping");
	struct cli *holder = cli_start(url, "run", "orders", "--", "sleep", "60", NULL);
	struct cli *pool = cli_start(url, "run", "--permits", "2", "pool", "--", "cat", NULL);
	WAIT_UNTIL(is_locked("orders") && is_locked("{pool}:timeout"), CLI_SOON_MS);
	struct cli *list = cli_show_json(url, "ls", NULL);
	cli_expect_in(json_about(cli_output(list), "orders"), "\"kind\":\"reentrant\"");
	cli_expect_in(json_about(cli_output(list), "pool"), "\"kind\":\"permits\"");
	cli_free(list);
	CLI_CALL(url, 0, "who", "orders");
	CLI_CALL(url, 1, "run", "-n", "orders", "--", "true");
	CLI_CALL(url, 0, "unlock", "--force", "--yes", "orders");
	CLI_CALL(url, 1, "who", "orders");
	CLI_CALL(url, 0, "elect", "service", "--", "true");
	cli_finish(pool);
	cli_free(holder);
}

static struct cli *examine(const char *url)
{
	struct cli *cli = cli_start(url, "doctor", NULL);
	CLI_EXPECT(cli, 0);
	cli_expect_finding(cli, "ok ", "replicas", "2 connected; the slowest");
	cli_expect_finding(cli, "note", "failover", "may lack the latest locks");
	cli_expect_finding(cli, "ok ", "rights", "locks were taken and released");
	return cli;
}

static void sentinels_lead_to_the_master(void **state)
{
	(void)state;
	everything_works(group->url);
	struct cli *cli = examine(group->url);
	cli_expect_finding(cli, "ok ", "master", "the Sentinels name it");
	cli_free(cli);
}

static void the_master_is_found_among_several_servers(void **state)
{
	(void)state;
	everything_works(several);
	struct cli *cli = examine(several);
	cli_expect_finding(cli, "note", "master", "among the servers in the URL");
	cli_free(cli);
}

static void the_least_number_of_replicas_is_noticed(void **state)
{
	(void)state;
	struct raw *raw = raw_connect(group->node[0]);
	struct cli *cli = examine(group->url);
	cli_expect_finding(cli, "note", "old master", "; set min-replicas-to-write 1");
	cli_free(cli);
	raw_ok(raw, "CONFIG", "SET", "min-replicas-to-write", "1", NULL);
	cli = examine(group->url);
	cli_expect_finding(cli, "ok ", "old master", "min-replicas-to-write is set");
	cli_free(cli);
	raw_ok(raw, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
	raw_close(raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentinels_lead_to_the_master),
		cmocka_unit_test(the_master_is_found_among_several_servers),
		cmocka_unit_test(the_least_number_of_replicas_is_noticed),
	};
	return cmocka_run_group_tests(tests, start_group, stop_group);
}
