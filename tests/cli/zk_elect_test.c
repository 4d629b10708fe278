/*
 * holdfast elect on ZooKeeper: the leader, its successors, what others read, and what is refused.
 */
#include "cli/json.h"
#include "cli/zk.h"

#include <signal.h>

static struct cli *start_candidate(const char *option, const char *value)
{
	return cli_start(zk_url(), "elect", option, value, "x", "--", "sh", "-c",
	                 CLI_UNTIL_INPUT_ENDS, NULL);
}

/* ---- what runs ---- */

static void the_leader_has_a_latch_node_with_its_description(void **state)
{
	(void)state;
	struct zk_raw_data data;
	struct zk_raw_stat stat;
	struct cli *cli = cli_start(zk_url(), "elect", "a/b", "--", "sh", "-c",
	                            "echo $HOLDFAST_OWNER $HOLDFAST_NAME; cat", NULL);
	WAIT_UNTIL(strchr(cli_output(cli), '\n') != NULL, CLI_SOON_MS);
	char *node = zk_only_child("/a/b");
	cli_expect_in(node, "-latch-0000000000");
	char *said = check_format("%s a/b\n", strrchr(node, '/') + 1);
	assert_string_equal(cli_output(cli), said);
	assert_int_equal(zk_raw_get(zk_eye, node, &data, &stat), 0);
	char *wanted = check_format("\n%d\nsh", (int)cli->pid);
	cli_expect_in(data.bytes, wanted);
	assert_true(stat.owner != 0);
	cli_finish(cli);
	assert_int_equal(zk_count("/a/b"), 0);
	free(wanted);
	free(data.bytes);
	free(said);
	free(node);
}

static void the_id_is_stored_in_the_node(void **state)
{
	(void)state;
	const char *const ids[] = {"node-7", "käse \"7\"", ""};
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		struct cli *cli = start_candidate("--id", ids[i]);
		(void)cli_command_pid(cli);
		char *node = zk_only_child("/x");
		expect_data(node, ids[i]);
		free(node);
		cli_finish(cli);
	}
}

static void the_longest_id_is_1000_bytes(void **state)
{
	(void)state;
	char id[1002];
	memset(id, 'i', sizeof id);
	id[1001] = 0;
	CLI_EXPECT_REFUSAL(zk_url(), 64, "--id must be one line of at most 1000 bytes", "elect",
	                   "--id", id, "x", "--", "true");
	id[1000] = 0;
	struct cli *cli = start_candidate("--id", id);
	(void)cli_command_pid(cli);
	char *node = zk_only_child("/x");
	expect_data(node, id);
	free(node);
	cli_finish(cli);
}

static void exit_statuses_are_those_of_run(void **state)
{
	(void)state;
	CLI_CALL(zk_url(), 0, "elect", "x", "--", "true");
	CLI_CALL(zk_url(), 7, "elect", "x", "--", "sh", "-c", "exit 7");
	CLI_CALL(zk_url(), 6, "elect", "x", "-c", "exit 6");
	CLI_CALL(zk_url(), 5, "elect", "-c", "exit 5", "x");
	CLI_CALL(zk_url(), 128 + 15, "elect", "x", "--", "sh", "-c", "kill -TERM $$");
	CLI_CALL(zk_url(), 127, "elect", "x", "--", "/nonexistent/program");
	CLI_CALL(zk_url(), 126, "elect", "x", "--", "/");
	CLI_CALL(zk_url(), 124, "elect", "--max-hold", "0.2", "x", "--", "sleep", "60");
	CLI_CALL(zk_url(), 0, "elect", "-F", "--lease", "3s", "y", "--", "true");
	CLI_CALL("zk://127.0.0.1:1", 69, "elect", "x", "--", "true");
	assert_int_equal(zk_count("/x"), 0);
}

static void a_candidate_that_gives_up_leaves_nothing(void **state)
{
	(void)state;
	struct cli *leader = start_candidate("--id", "first");
	(void)cli_command_pid(leader);
	CLI_CALL(zk_url(), 1, "elect", "-n", "x", "--", "true");
	CLI_CALL(zk_url(), 9, "elect", "-n", "-E", "9", "x", "--", "true");
	CLI_CALL(zk_url(), 1, "elect", "-w", "1", "x", "--", "true");
	struct cli *cli = cli_start(zk_url(), "elect", "x", "--", "true", NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	assert_int_equal(kill(cli->pid, SIGINT), 0);
	CLI_EXPECT(cli, 128 + SIGINT);
	cli_free(cli);
	assert_int_equal(zk_count("/x"), 1);
	cli_finish(leader);
}

static void candidates_lead_in_the_order_of_arrival(void **state)
{
	(void)state;
	struct cli *one = start_candidate("--id", "one");
	pid_t first = cli_command_pid(one);
	struct cli *two = start_candidate("--id", "two");
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	struct cli *three = start_candidate("--id", "three");
	WAIT_UNTIL(zk_count("/x") == 3, CLI_SOON_MS);
	assert_string_equal(cli_output(two), "");
	cli_finish(one);
	assert_false(cli_is_alive(first));
	(void)cli_command_pid(two);
	assert_string_equal(cli_output(three), "");
	cli_finish(two);
	(void)cli_command_pid(three);
	cli_finish(three);
	assert_int_equal(zk_count("/x"), 0);
}

static void elect_waits_for_a_java_candidate(void **state)
{
	(void)state;
	zk_expect_wait_for_java("elect", "-latch-");
}

static void without_a_command_it_leads_until_the_end_of_input(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "elect", "x", NULL);
	WAIT_UNTIL(zk_count("/x") == 1, CLI_SOON_MS);
	CLI_CALL(zk_url(), 1, "elect", "-n", "x", "--", "true");
	cli_finish(cli);
	assert_int_equal(zk_count("/x"), 0);
}

static void the_token_is_the_czxid_of_the_leader(void **state)
{
	(void)state;
	zk_expect_token("elect", "--token");
}

static void events_are_those_of_run(void **state)
{
	(void)state;
	struct cli *cli = cli_call(zk_url(), 0, "elect", "--json", "x", "--", "true", NULL);
	cli_expect_in(cli_errors(cli), "{\"event\":\"acquired\"");
	cli_expect_in(cli_errors(cli), "-latch-0000000000\",\"remaining_ms\":");
	cli_expect_in(cli_errors(cli), "\"status\":0}");
	cli_expect_in(cli_errors(cli), "{\"event\":\"released\"");
	cli_free(cli);
}

/* ---- the command who ---- */

static void who_shows_the_leader_and_the_candidates_in_order(void **state)
{
	(void)state;
	struct cli *one = start_candidate("--id", "one");
	(void)cli_command_pid(one);
	struct cli *two = start_candidate("--grace", "100ms");
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	struct cli *three = start_candidate("--id", "three");
	WAIT_UNTIL(zk_count("/x") == 3, CLI_SOON_MS);
	struct cli *who = cli_show_json(zk_url(), "who", "x");
	const char *text = cli_output(who);
	cli_expect_in(text, "\"kind\":\"leader\"");
	const char *list = strstr(text, "\"participants\":[");
	assert_non_null(list);
	cli_expect_in(list, "-latch-0000000000\",\"text\":\"one\",\"leader\":true},");
	cli_expect_in(list, "-latch-0000000001\",\"text\":\"sh\",\"leader\":false},");
	cli_expect_in(list, "-latch-0000000002\",\"text\":\"three\",\"leader\":false}]");
	cli_free(who);
	struct cli *ls = cli_call(zk_url(), 0, "ls", NULL);
	cli_expect_in(cli_output(ls), " leader ");
	cli_expect_in(cli_output(ls), " one ");
	cli_expect_in(strstr(cli_output(ls), "waiter-2"), " three ");
	cli_free(ls);
	cli_free(three);
	cli_free(two);
	cli_free(one);
}

/* ---- what ends it ---- */

static void a_leader_whose_node_is_deleted_is_stopped_within_2_s(void **state)
{
	(void)state;
	struct cli *cli = start_candidate("--id", "one");
	pid_t pid = cli_command_pid(cli);
	char *node = zk_only_child("/x");
	assert_int_equal(zk_raw_delete(zk_eye, node, -1), 0);
	assert_in_range(cli_time_to_death(pid), 0, 2000);
	CLI_EXPECT(cli, 80);
	cli_expect_in(cli_errors(cli), "the lock was lost; the command was stopped");
	cli_free(cli);
	free(node);
}

static void a_fixed_lease_ends_the_leadership(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "elect", "--lease", "1s", "x", "--", "sh", "-c",
	                            CLI_UNTIL_INPUT_ENDS, NULL);
	pid_t pid = cli_command_pid(cli);
	assert_in_range(cli_time_to_death(pid), 0, 2000);
	CLI_EXPECT(cli, 80);
	cli_expect_in(cli_errors(cli), "x: the lease of 1.0s ended; the command was stopped\n");
	assert_int_equal(zk_count("/x"), 0);
	cli_free(cli);
}

/* The servers notice only when the session expires, and then the next one leads. */
static void a_killed_leader_is_replaced_after_its_session(void **state)
{
	(void)state;
	struct cli *cli = start_candidate("--watchdog", "5s");
	pid_t pid = cli_command_pid(cli);
	char *node = zk_only_child("/x");
	struct cli *next = start_candidate("--id", "two");
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	assert_int_equal(kill(cli->pid, SIGKILL), 0);
	while (zk_raw_exists(zk_eye, node, NULL) == 0) {
		/* Checked again after the output: the session may have expired in between. */
		bool runs = *cli_output(next);
		assert_true(!runs || zk_raw_exists(zk_eye, node, NULL) == ZK_RAW_NO_NODE);
		test_pause();
	}
	assert_false(cli_is_alive(pid));
	(void)cli_command_pid(next);
	cli_finish(next);
	cli_free(cli);
	free(node);
}

static void a_lost_leadership_is_reported(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(zk_url(), "elect", "--json", "--on-lost", "echo $HOLDFAST_NAME is lost",
	                  "x", "--", "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
	(void)cli_command_pid(cli);
	CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "x");
	CLI_EXPECT(cli, 80);
	cli_expect_in(cli_output(cli), "x is lost\n");
	cli_expect_in(cli_errors(cli), "{\"event\":\"lost\"");
	cli_expect_in(cli_errors(cli), "\"status\":80}");
	cli_free(cli);
}

/* ---- what is refused ---- */

static void elect_has_no_options_for_kinds_of_locks(void **state)
{
	(void)state;
	const char *const options[][2] = {
		{"-s", NULL},       {"--shared", NULL},      {"-x", NULL},
		{"-e", NULL},       {"--fair", NULL},        {"--kind", "reentrant"},
		{"--kind", "read"}, {"--kind", "semaphore"}, {"--permits", "2"}};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		const char *const words[] = {
			"elect", options[i][0], options[i][1] ? options[i][1] : "--json", "x", "--",
			"true",  NULL};
		cli_expect_refusal(zk_url(), 64,
		                   "are not options of elect; see holdfast elect --help", words);
	}
	assert_int_equal(zk_raw_exists(zk_eye, "/x", NULL), ZK_RAW_NO_NODE);
}

static void wrong_arguments_of_elect_are_64(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(zk_url(), 64, "no NAME given; see holdfast elect --help", "elect");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "see holdfast elect --help", "elect", "--nosuch", "x",
	                   "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "needs a value", "elect", "--id");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "--id must be one line", "elect", "--id", "a\nb", "x",
	                   "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "--id is an option of elect only", "run", "--id", "a", "x",
	                   "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "-F excludes --revocable", "elect", "-F", "--lease", "3s",
	                   "--revocable", "x", "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "--lease and --watchdog", "elect", "--lease", "3s",
	                   "--watchdog", "3s", "x", "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "name: ", "elect", "a//b", "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "is too short: renewal", "elect", "--grace", "16s", "x",
	                   "true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(the_leader_has_a_latch_node_with_its_description),
		ZK_STORY(the_id_is_stored_in_the_node),
		ZK_STORY(the_longest_id_is_1000_bytes),
		ZK_STORY(exit_statuses_are_those_of_run),
		ZK_STORY(a_candidate_that_gives_up_leaves_nothing),
		ZK_STORY(candidates_lead_in_the_order_of_arrival),
		ZK_STORY(elect_waits_for_a_java_candidate),
		ZK_STORY(without_a_command_it_leads_until_the_end_of_input),
		ZK_STORY(the_token_is_the_czxid_of_the_leader),
		ZK_STORY(events_are_those_of_run),
		ZK_STORY(who_shows_the_leader_and_the_candidates_in_order),
		ZK_STORY(a_leader_whose_node_is_deleted_is_stopped_within_2_s),
		ZK_STORY(a_fixed_lease_ends_the_leadership),
		ZK_STORY(a_killed_leader_is_replaced_after_its_session),
		ZK_STORY(a_lost_leadership_is_reported),
		ZK_STORY(elect_has_no_options_for_kinds_of_locks),
		ZK_STORY(wrong_arguments_of_elect_are_64),
	};
	return cmocka_run_group_tests_name("cli_zk_elect", tests, zk_start, zk_stop);
}
