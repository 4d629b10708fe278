/* run and elect with --replicas. */
#include "cli/cli.h"

#include "support/replica.h"

static struct test_server *master, *replica;
static char url[100], url_by_default[120];

static int start_servers(void **state)
{
	const char *extra[] = {"--repl-diskless-sync-delay", "0", NULL};
	const struct test_server_options options = {.kind = TEST_SERVER_TCP, .extra = extra};
	(void)state;
	master = test_server_start(&options);
	replica = test_server_start(&options);
	snprintf(url, sizeof url, "%s?sync_timeout=300", test_server_url(master));
	snprintf(url_by_default, sizeof url_by_default, "%s&replicas=2", url);
	test_replica_follow(replica, master);
	test_replica_settle(master, 1);
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	test_server_stop(replica);
	test_server_stop(master);
	return 0;
}

static void the_command_runs_if_enough_replicas_have_the_lock(void **state)
{
	(void)state;
	CLI_CALL(url, 7, "run", "--replicas", "1", "x", "--", "sh", "-c", "exit 7");
	CLI_CALL(url, 7, "run", "--replicas=1", "--permits", "2", "p", "--", "sh", "-c", "exit 7");
	CLI_CALL(url, 7, "elect", "--replicas", "1", "y", "--", "sh", "-c", "exit 7");
}

static void too_few_replicas_are_77(void **state)
{
	static const char text[] = "acknowledged by 1 of 2 replicas within 300 ms; released; are";
	(void)state;
	CLI_EXPECT_REFUSAL(url, 77, text, "run", "--replicas", "2", "x", "true");
	CLI_EXPECT_REFUSAL(url, 77, text, "elect", "--replicas", "2", "x", "true");
	CLI_EXPECT_REFUSAL(url, 77, text, "run", "--replicas", "2", "--permits", "1", "q", "true");
	CLI_CALL(url, 0, "run", "-n", "x", "true");
}

static void the_option_wins_over_the_url(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(url_by_default, 77, "acknowledged by 1 of 2", "run", "x", "true");
	CLI_CALL(url_by_default, 0, "run", "--replicas", "1", "x", "true");
	CLI_CALL(url_by_default, 0, "run", "--replicas", "0", "x", "true");
}

static void wrong_numbers_are_64(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(url, 64, "--replicas: 'all' is not a number from 0 to 100", "run",
	                   "--replicas", "all", "x", "true");
	CLI_EXPECT_REFUSAL(url, 64, "is not a number from 0 to 100", "run", "--replicas=101", "x",
	                   "true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_command_runs_if_enough_replicas_have_the_lock),
		cmocka_unit_test(too_few_replicas_are_77),
		cmocka_unit_test(the_option_wins_over_the_url),
		cmocka_unit_test(wrong_numbers_are_64),
	};
	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
