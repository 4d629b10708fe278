/* The command on a master with replicas, found by Sentinels or among the servers of the URL. */
#include "cli/json.h"
#include "cli/nodes.h"

static void everything_works(const char *url)
{
	CLI_CALL(url, 0, "ping");
	struct cli *holder = cli_start(url, "run", "orders", "--", "sleep", "60", NULL);
	struct cli *pool = cli_start(url, "run", "--permits", "2", "pool", "--", "cat", NULL);
	WAIT_UNTIL(is_on(group->node[0], "orders") && is_on(group->node[0], "{pool}:timeout"),
	           CLI_SOON_MS);
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

/* A command starts only when as many replicas as were asked for have its lock. */
static void a_run_waits_for_its_replicas(void **state)
{
	(void)state;
	struct cli *run = cli_start(group->url, "run", "--replicas", "2", "safe", "--", "sh", "-c",
	                            "echo runs; cat", NULL);
	CLI_WAIT_OUTPUT(run, "runs");
	assert_true(is_on(group->node[1], "safe") && is_on(group->node[2], "safe"));
	cli_finish(run);
	run = cli_start(group->url, "run", "--replicas", "3", "safe", "--", "echo", "runs", NULL);
	assert_int_not_equal(cli_wait(run, CLI_SOON_MS), 0);
	cli_expect_in(cli_errors(run), "2 of 3 replicas");
	assert_string_equal(cli_output(run), "");
	cli_free(run);
	WAIT_UNTIL(!is_on(group->node[0], "safe"), CLI_SOON_MS);
}

static void the_next_candidate_becomes_the_leader(void **state)
{
	(void)state;
	struct cli *first =
		cli_start(group->url, "elect", "office", "--", "sh", "-c", "echo led; cat", NULL);
	CLI_WAIT_OUTPUT(first, "led");
	struct cli *second = cli_start(group->url, "elect", "--replicas", "1", "office", "--", "sh",
	                               "-c", "echo led", NULL);
	struct raw *raw = raw_connect(group->node[0]);
	WAIT_UNTIL(raw_integer(raw, "LLEN", "redisson_lock_queue:{office}", NULL) == 1,
	           CLI_SOON_MS);
	raw_close(raw);
	struct cli *who = cli_show_json(group->url, "who", "office");
	cli_expect_in(cli_output(who), "\"command\":\"sh\"");
	cli_free(who);
	assert_string_equal(cli_output(second), "");
	cli_finish(first);
	CLI_EXPECT(second, 0);
	cli_expect_in(cli_output(second), "led");
	cli_free(second);
}

/* The waiter is woken by the master that the Sentinels name. */
static void a_waiter_enters_when_a_lock_is_forced(void **state)
{
	(void)state;
	struct cli *holder = cli_start(group->url, "run", "stuck", "--", "sleep", "60", NULL);
	WAIT_UNTIL(is_on(group->node[0], "stuck"), CLI_SOON_MS);
	struct cli *waiter =
		cli_start(group->url, "run", "-w", "60", "stuck", "--", "echo", "entered", NULL);
	CLI_CALL(group->url, 0, "unlock", "--force", "--yes", "stuck");
	CLI_EXPECT(waiter, 0);
	cli_expect_in(cli_output(waiter), "entered");
	cli_free(waiter);
	cli_free(holder);
	CLI_CALL(group->url, 1, "unlock", "--force", "--yes", "stuck");
}

static struct cli *examine(const char *url)
{
	struct cli *cli = cli_examine(url, 0);
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
	char *several =
		check_format("redis://%s,%s,%s", strstr(test_server_url(group->node[1]), "//") + 2,
	                     strstr(test_server_url(group->node[2]), "//") + 2,
	                     strstr(test_server_url(group->node[0]), "//") + 2);
	everything_works(several);
	struct cli *cli = examine(several);
	free(several);
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
		cmocka_unit_test(a_run_waits_for_its_replicas),
		cmocka_unit_test(the_next_candidate_becomes_the_leader),
		cmocka_unit_test(a_waiter_enters_when_a_lock_is_forced),
	};
	return cmocka_run_group_tests(tests, start_group, stop_group);
}
