/*
 * holdfast elect on Redis, where the leader holds a fair lock, and the options that only ZooKeeper
 * has.
 */
#include "cli/cli.h"

#include <signal.h>

static struct cli *start_candidate(const char *id)
{
	return cli_start(cli_url(), "elect", "--id", id, "x", "--", "sh", "-c",
	                 "echo up; cat >/dev/null", NULL);
}

static int candidates(void)
{
	return (int)raw_integer(cli_raw, "LLEN", "redisson_lock_queue:{x}", NULL);
}

static void exit_statuses_are_those_of_run(void **state)
{
	(void)state;
	CLI_CALL(cli_url(), 0, "elect", "x", "--", "true");
	CLI_CALL(cli_url(), 7, "elect", "x", "--", "sh", "-c", "exit 7");
	CLI_CALL(cli_url(), 6, "elect", "x", "-c", "exit 6");
	CLI_CALL(cli_url(), 128 + 15, "elect", "x", "--", "sh", "-c", "kill -TERM $$");
	CLI_CALL(cli_url(), 127, "elect", "x", "--", "/nonexistent/program");
	CLI_CALL(cli_url(), 124, "elect", "--max-hold", "0.2", "x", "--", "sleep", "60");
	CLI_CALL(CLI_NOWHERE, 69, "elect", "x", "--", "true");
	raw_ok(cli_raw, "SET", "text", "hello", NULL);
	CLI_CALL(cli_url(), 65, "elect", "text", "--", "true");
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "x", NULL), 0);
}

static void candidates_become_the_leader_in_order(void **state)
{
	(void)state;
	struct cli *one = start_candidate("one");
	CLI_WAIT_OUTPUT(one, "up");
	CLI_CALL(cli_url(), 1, "elect", "-n", "x", "--", "true");
	CLI_CALL(cli_url(), 9, "elect", "-w", "1", "-E", "9", "x", "--", "true");
	struct cli *two = start_candidate("two");
	WAIT_UNTIL(candidates() == 1, CLI_SOON_MS);
	struct cli *three = start_candidate("three");
	WAIT_UNTIL(candidates() == 2, CLI_SOON_MS);
	assert_string_equal(cli_output(two), "");
	cli_finish(one);
	CLI_WAIT_OUTPUT(two, "up");
	assert_string_equal(cli_output(three), "");
	cli_finish(two);
	CLI_WAIT_OUTPUT(three, "up");
	cli_finish(three);
}

static void the_id_is_shown_instead_of_the_program(void **state)
{
	(void)state;
	struct cli *cli = start_candidate("node-7");
	CLI_WAIT_OUTPUT(cli, "up");
	struct cli *who = cli_call(cli_url(), 0, "who", "--json", "x", NULL);
	char *wanted =
		check_format("\"pid\":%d,\"command\":\"node-7\",\"since_ms\":", (int)cli->pid);
	if (!strstr(cli_output(who), wanted))
		fail_msg("no '%s' in '%s'", wanted, cli_output(who));
	free(wanted);
	cli_free(who);
	cli_finish(cli);
}

static void unlock_stops_the_leader(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "elect", "--watchdog", "1s", "x", "--", "sh", "-c",
	                            "trap '' TERM; echo up; cat >/dev/null", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	CLI_CALL(cli_url(), 0, "unlock", "--force", "--yes", "x");
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

static void a_killed_leader_is_replaced_after_its_lease(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "elect", "--watchdog", "2s", "x", "--", "sh", "-c",
	                            "echo up; cat >/dev/null", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	struct cli *next = start_candidate("two");
	WAIT_UNTIL(candidates() == 1, CLI_SOON_MS);
	assert_int_equal(kill(cli->pid, SIGKILL), 0);
	CLI_WAIT_OUTPUT(next, "up");
	cli_finish(next);
	cli_free(cli);
}

static void options_for_zookeeper_are_64_on_redis(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(cli_url(), 64, "revoke: available on ZooKeeper only", "revoke", "x");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "--revocable is available on ZooKeeper only", "run",
	                   "--revocable", "x", "true");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "--revocable is available on ZooKeeper only", "elect",
	                   "--revocable", "x", "true");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "are not options of elect", "elect", "-s", "x", "true");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "are not options of elect", "elect", "--permits", "2",
	                   "x", "true");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "--id is an option of elect only", "run", "--id", "one",
	                   "x", "true");
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void a_simple_lock_excludes_others_and_can_be_unlocked(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--kind", "simple", "x", "--", "sh", "-c",
	                            "echo up; cat >/dev/null", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	CLI_CALL(cli_url(), 1, "run", "-n", "--kind", "simple", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
	CLI_CALL(cli_url(), 0, "unlock", "--force", "--yes", "x");
	CLI_CALL(cli_url(), 0, "run", "-n", "--kind", "simple", "x", "--", "true");
	cli_free(cli);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(exit_statuses_are_those_of_run),
		CLI_STORY(candidates_become_the_leader_in_order),
		CLI_STORY(the_id_is_shown_instead_of_the_program),
		CLI_STORY(unlock_stops_the_leader),
		CLI_STORY(a_killed_leader_is_replaced_after_its_lease),
		CLI_STORY(options_for_zookeeper_are_64_on_redis),
		CLI_STORY(a_simple_lock_excludes_others_and_can_be_unlocked),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
