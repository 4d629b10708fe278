/* holdfast run on ZooKeeper: nodes, statuses, variables, and what is refused. */
#include "cli/zk.h"

#include <signal.h>

#include "support/programs.h"

static char *url_with(const char *rest)
{
	return check_format("%s%s", zk_url(), rest);
}

/* ---- what runs ---- */

static void the_name_is_the_path_and_the_node_describes_the_holder(void **state)
{
	(void)state;
	struct zk_raw_data data;
	struct zk_raw_stat stat;
	struct cli *cli =
		cli_start(zk_url(), "run", "a/b", "--", "sh", "-c",
	                  "echo $HOLDFAST_OWNER $HOLDFAST_NAME $HOLDFAST_TOKEN; cat", NULL);
	WAIT_UNTIL(strchr(cli_output(cli), '\n') != NULL, CLI_SOON_MS);
	char *node = zk_only_child("/a/b");
	assert_int_equal(zk_raw_get(zk_eye, node, &data, &stat), 0);
	char *said = check_format("%s a/b\n", strrchr(node, '/') + 1);
	assert_string_equal(cli_output(cli), said);
	char *wanted = check_format("\n%d\nsh", (int)cli->pid);
	cli_expect_in(data.bytes, wanted);
	assert_true(stat.owner != 0);
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_errors(cli), "");
	assert_int_equal(zk_count("/a/b"), 0);
	cli_free(cli);
	free(wanted);
	free(said);
	free(node);
	free(data.bytes);
}

static void the_exit_status_of_the_command_is_passed_on(void **state)
{
	(void)state;
	CLI_CALL(zk_url(), 0, "run", "x", "--", "true");
	CLI_CALL(zk_url(), 7, "run", "x", "--", "sh", "-c", "exit 7");
	CLI_CALL(zk_url(), 128 + 15, "run", "x", "--", "sh", "-c", "kill -TERM $$");
	CLI_CALL(zk_url(), 127, "run", "x", "--", "/nonexistent/program");
	assert_int_equal(zk_count("/x"), 0);
}

static void a_busy_lock_is_1_and_leaves_nothing(void **state)
{
	(void)state;
	struct cli *cli = zk_hold("x");
	CLI_CALL(zk_url(), 1, "run", "-n", "x", "--", "true");
	CLI_CALL(zk_url(), 9, "run", "-n", "-E", "9", "x", "--", "true");
	CLI_CALL(zk_url(), 1, "run", "-w", "1", "x", "--", "true");
	CLI_CALL(zk_url(), 1, "run", "-n", "-x", "x", "--", "true");
	CLI_CALL(zk_url(), 1, "run", "-n", "-s", "x", "--", "true");
	assert_int_equal(zk_count("/x"), 1);
	cli_finish(cli);
}

static void run_waits_for_a_java_node(void **state)
{
	(void)state;
	zk_expect_wait_for_java("run", "-lock-");
}

static void a_signal_while_waiting_leaves_nothing(void **state)
{
	(void)state;
	struct cli *holder = zk_hold("x");
	struct cli *cli = cli_start(zk_url(), "run", "x", "--", "true", NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	assert_int_equal(kill(cli->pid, SIGINT), 0);
	CLI_EXPECT(cli, 128 + SIGINT);
	assert_int_equal(zk_count("/x"), 1);
	cli_free(cli);
	cli_finish(holder);
}

static void readers_share_and_writers_do_not(void **state)
{
	(void)state;
	struct cli *reader = cli_start(zk_url(), "run", "-s", "x", NULL);
	WAIT_UNTIL(zk_count("/x") == 1, CLI_SOON_MS);
	char *node = zk_only_child("/x");
	cli_expect_in(node, "-__READ__");
	free(node);
	CLI_CALL(zk_url(), 0, "run", "-n", "-s", "x", "--", "true");
	CLI_CALL(zk_url(), 1, "run", "-n", "-x", "x", "--", "true");
	cli_finish(reader);
	struct cli *writer = cli_start(zk_url(), "run", "-x", "x", NULL);
	WAIT_UNTIL(zk_count("/x") == 1, CLI_SOON_MS);
	node = zk_only_child("/x");
	cli_expect_in(node, "-__WRIT__");
	free(node);
	CLI_CALL(zk_url(), 1, "run", "-n", "-s", "x", "--", "true");
	cli_finish(writer);
}

/* With several readers, each knows its own node. */
static void each_reader_knows_its_own_node(void **state)
{
	(void)state;
	const char *const says = "echo $HOLDFAST_OWNER; cat";
	struct cli *one = cli_start(zk_url(), "run", "-s", "x", "--", "sh", "-c", says, NULL);
	WAIT_UNTIL(strchr(cli_output(one), '\n') != NULL, CLI_SOON_MS);
	struct cli *two = cli_start(zk_url(), "run", "-s", "x", "--", "sh", "-c", says, NULL);
	WAIT_UNTIL(strchr(cli_output(two), '\n') != NULL, CLI_SOON_MS);
	cli_expect_in(cli_output(one), "__READ__0000000000\n");
	cli_expect_in(cli_output(two), "__READ__0000000001\n");
	cli_free(one);
	cli_free(two);
}

static void a_plain_lock_is_the_node_itself(void **state)
{
	(void)state;
	struct zk_raw_stat stat;
	struct cli *cli = cli_start(zk_url(), "run", "--kind", "plain", "a/p", NULL);
	WAIT_UNTIL(zk_raw_exists(zk_eye, "/a/p", &stat) == 0, CLI_SOON_MS);
	assert_true(stat.owner != 0);
	CLI_CALL(zk_url(), 1, "run", "-n", "--kind", "plain", "a/p", "--", "true");
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	assert_int_equal(zk_raw_exists(zk_eye, "/a/p", NULL), ZK_RAW_NO_NODE);
	cli_free(cli);
}

static void run_waits_for_a_plain_lock_made_by_hand(void **state)
{
	(void)state;
	zk_make("/p", "", ZK_RAW_EPHEMERAL);
	struct cli *cli =
		cli_start(zk_url(), "run", "--kind", "plain", "p", "--", "echo", "mine", NULL);
	WAIT_UNTIL(test_zookeeper_value(zk, 0, "zk_watch_count") > 0, CLI_SOON_MS);
	assert_string_equal(cli_output(cli), "");
	assert_int_equal(zk_raw_delete(zk_eye, "/p", -1), 0);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "mine\n");
	cli_free(cli);
}

static void the_token_is_the_czxid(void **state)
{
	(void)state;
	zk_expect_token("run", "--token");
	zk_expect_token("run", "--kind=fenced");
}

/* Holdfast enforces the lease, not the server: the command is stopped, and the node removed. */
static void a_fixed_lease_stops_the_command_and_removes_the_node(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--lease", "1s", "x", "--", "sh", "-c",
	                            CLI_UNTIL_INPUT_ENDS, NULL);
	pid_t pid = cli_command_pid(cli);
	long long begun = test_now_ms();
	WAIT_UNTIL(!cli_is_alive(pid), CLI_SOON_MS);
	/* Far less than the session; how soon a dead process is noticed depends on the machine. */
	assert_in_range(test_now_ms() - begun, 0, 2000);
	CLI_EXPECT(cli, 80);
	assert_int_equal(zk_count("/x"), 0);
	cli_free(cli);
}

/* Its lease begins with the grant, however long it has waited. */
static void a_waiter_with_a_short_lease_gets_its_turn_at_once(void **state)
{
	(void)state;
	const char *const kinds[] = {"reentrant", "plain"};
	for (size_t i = 0; i < 2; i++) {
		struct cli *holder = cli_start(zk_url(), "run", "--kind", kinds[i], "x", "--", "sh",
		                               "-c", CLI_UNTIL_INPUT_ENDS, NULL);
		pid_t pid = cli_command_pid(holder);
		struct cli *cli = cli_start(zk_url(), "run", "--kind", kinds[i], "--lease", "1s",
		                            "x", "--", "true", NULL);
		cli_let_live(holder, pid, 1500);
		assert_false(cli_has_ended(cli));
		cli_finish(holder);
		long long begun = test_now_ms();
		CLI_EXPECT(cli, 0);
		assert_in_range(test_now_ms() - begun, 0, 2500);
		cli_free(cli);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

/* ---- permits ---- */

static struct cli *start_permit(const char *number)
{
	struct cli *cli = cli_start(zk_url(), "run", "--permits", number, "x", "--", "sh", "-c",
	                            CLI_UNTIL_INPUT_ENDS, NULL);
	(void)cli_command_pid(cli);
	return cli;
}

static void permits_are_leases_up_to_the_given_number(void **state)
{
	(void)state;
	struct cli *one = start_permit("2"), *two = start_permit("2");
	assert_int_equal(zk_count("/x/leases"), 2);
	assert_int_equal(zk_count("/x/locks"), 0);
	CLI_CALL(zk_url(), 1, "run", "-n", "--permits", "2", "x", "--", "true");
	CLI_CALL(zk_url(), 1, "run", "-w", "1", "--permits", "2", "x", "--", "true");
	assert_int_equal(zk_count("/x/leases"), 2);
	assert_int_equal(zk_count("/x/locks"), 0);
	cli_finish(one);
	CLI_CALL(zk_url(), 0, "run", "-n", "--permits", "2", "x", "--", "true");
	cli_finish(two);
	assert_int_equal(zk_count("/x/leases"), 0);
}

/* The number is not stored, so different numbers are not noticed. */
static void the_number_of_permits_is_a_convention(void **state)
{
	(void)state;
	struct cli *one = start_permit("1");
	CLI_CALL(zk_url(), 1, "run", "-n", "--permits", "1", "x", "--", "true");
	CLI_CALL(zk_url(), 0, "run", "-n", "--permits", "2", "x", "--", "true");
	CLI_CALL(zk_url(), 0, "run", "-n", "--kind", "semaphore", "--permits", "2", "x", "--",
	         "true");
	cli_finish(one);
}

static void a_released_permit_goes_to_the_next_waiter(void **state)
{
	(void)state;
	struct cli *one = start_permit("1");
	struct cli *next =
		cli_start(zk_url(), "run", "--permits", "1", "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(zk_count("/x/leases") == 2, CLI_SOON_MS);
	assert_string_equal(cli_output(next), "");
	cli_finish(one);
	CLI_EXPECT(next, 0);
	assert_string_equal(cli_output(next), "mine\n");
	cli_free(next);
}

static void a_signal_while_waiting_for_a_permit_leaves_nothing(void **state)
{
	(void)state;
	struct cli *one = start_permit("1");
	struct cli *next = cli_start(zk_url(), "run", "--permits", "1", "x", "--", "true", NULL);
	WAIT_UNTIL(zk_count("/x/leases") == 2, CLI_SOON_MS);
	assert_int_equal(kill(next->pid, SIGINT), 0);
	CLI_EXPECT(next, 128 + SIGINT);
	assert_int_equal(zk_count("/x/leases"), 1);
	assert_int_equal(zk_count("/x/locks"), 0);
	cli_free(next);
	cli_finish(one);
}

static void deleting_the_lease_stops_the_command_within_2_s(void **state)
{
	(void)state;
	const char *const ways[] = {"--permits=1", "--kind=simple"};
	for (size_t i = 0; i < 2; i++) {
		struct cli *cli = cli_start(zk_url(), "run", ways[i], "x", "--", "sh", "-c",
		                            CLI_UNTIL_INPUT_ENDS, NULL);
		pid_t pid = cli_command_pid(cli);
		char *lease = zk_only_child("/x/leases");
		assert_int_equal(zk_raw_delete(zk_eye, lease, -1), 0);
		assert_in_range(cli_time_to_death(pid), 0, 2000);
		CLI_EXPECT(cli, 80);
		cli_free(cli);
		free(lease);
	}
}

/* Only on Redis is a second subtracted for the clocks of Java peers. */
static void the_times_of_permits_are_those_of_the_session(void **state)
{
	(void)state;
	CLI_CALL(zk_url(), 0, "run", "--permits", "1", "--watchdog", "10s", "--grace", "2500ms",
	         "x", "--", "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "is too short: renewal", "run", "--permits", "1",
	                   "--watchdog", "10s", "--grace", "3500ms", "x", "--", "true");
	CLI_CALL(zk_url(), 0, "run", "--permits", "1", "--lease", "4s", "--grace", "3500ms", "x",
	         "--", "true");
}

static void a_simple_lock_excludes_others_and_knows_its_lease(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--kind", "simple", "x", "--", "sh", "-c",
	                            "echo $HOLDFAST_OWNER; cat", NULL);
	WAIT_UNTIL(strchr(cli_output(cli), '\n') != NULL, CLI_SOON_MS);
	char *lease = zk_only_child("/x/leases");
	char *said = check_format("%s\n", strrchr(lease, '/') + 1);
	assert_string_equal(cli_output(cli), said);
	CLI_CALL(zk_url(), 1, "run", "-n", "--kind", "simple", "x", "--", "true");
	CLI_CALL(zk_url(), 1, "run", "-n", "--permits", "1", "x", "--", "true");
	cli_finish(cli);
	assert_int_equal(zk_count("/x/leases"), 0);
	free(said);
	free(lease);
}

/* ---- what is refused ---- */

static void options_for_redis_are_64_on_zookeeper(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(zk_url(), 64, "spin lock", "run", "--kind", "spin", "x", "--", "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "--permits N", "run", "--kind", "semaphore", "x", "--",
	                   "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "not needed on ZooKeeper", "who", "--kind", "semaphore",
	                   "x");
}

static void a_name_that_is_not_a_path_is_64(void **state)
{
	(void)state;
	const char *const names[] = {"/x", "x/", "a//b", ".", "a/..", "a/./b", "/"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *const run[] = {"run", names[i], "--", "true", NULL};
		const char *const who[] = {"who", names[i], NULL};
		cli_expect_refusal(zk_url(), 64, "name: ", run);
		cli_expect_refusal(zk_url(), 64, "name: ", who);
	}
	CLI_CALL(zk_url(), 0, "run", ".a/..b/...", "--", "true");
}

static void a_missing_chroot_is_78_and_is_not_created(void **state)
{
	(void)state;
	char *url = url_with("/no/such");
	const char *const run[] = {"run", "x", "--", "true", NULL};
	const char *const ls[] = {"ls", NULL};
	const char *const who[] = {"who", "x", NULL};
	const char *const permits[] = {"run", "--permits", "2", "x", "--", "true", NULL};
	const char *const elect[] = {"elect", "x", "--", "true", NULL};
	const char *const unlock[] = {"unlock", "--force", "--yes", "x", NULL};
	const char *const revoke[] = {"revoke", "x", NULL};
	const char *const ping[] = {"ping", NULL};
	const char *const doctor[] = {"doctor", NULL};
	const char *const *const all[] = {run,    permits, elect, ls,    who,
	                                  unlock, revoke,  ping,  doctor};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		cli_expect_refusal(url, 78, "node /no/such does not exist", all[i]);
	assert_int_equal(zk_raw_exists(zk_eye, "/no", NULL), ZK_RAW_NO_NODE);
	free(url);
}

static void the_chroot_precedes_the_name(void **state)
{
	(void)state;
	char *url = url_with("/base");
	zk_make("/base", "", ZK_RAW_PERSISTENT);
	struct cli *cli = cli_start(url, "run", "a/b", NULL);
	WAIT_UNTIL(zk_count("/base/a/b") == 1, CLI_SOON_MS);
	CLI_EXPECT_IN_OUTPUT(url, 0, "\na/b ", "ls");
	cli_free(cli);
	free(url);
}

static void invalid_urls_are_78(void **state)
{
	(void)state;
	const char *const rests[] = {"?session=abc", "?session=-1", "?db=1", "?auth=secret",
	                             "?acl=some"};
	const char *const run[] = {"run", "x", "--", "true", NULL};
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		char *url = url_with(rests[i]);
		cli_expect_refusal(url, 78, "holdfast: ", run);
		free(url);
	}
}

static void a_missing_server_is_69(void **state)
{
	(void)state;
	CLI_CALL("zk://127.0.0.1:1", 69, "run", "x", "--", "true");
}

/* ---- the session is the lease ---- */

static void a_session_too_short_for_the_grace_is_64(void **state)
{
	(void)state;
	char *shorter = url_with("?session=4s");
	const char *const by_default[] = {"run", "--grace", "16s", "x", "--", "true", NULL};
	const char *const by_url[] = {"run", "--grace", "2200ms", "x", "--", "true", NULL};
	const char *const longer[] = {"run", "--grace", "16s",  "--watchdog", "60s",
	                              "x",   "--",      "true", NULL};
	const char *const granted[] = {"run", "--watchdog", "200s", "--grace", "40s",
	                               "x",   "--",         "true", NULL};
	cli_expect_refusal(zk_url(), 64, "is too short: renewal", by_default);
	cli_expect_refusal(shorter, 64, "is too short: renewal", by_url);
	CLI_CALL(shorter, 0, "run", "x", "--", "true");
	struct cli *cli = cli_start_words(shorter, longer);
	CLI_EXPECT(cli, 0);
	cli_free(cli);
	/* The servers grant at most 60 s. */
	cli_expect_refusal(zk_url(), 64, "is too short: renewal", granted);
	assert_int_equal(zk_count("/x"), 0);
	free(shorter);
}

static void a_busy_lock_does_not_hide_a_short_session(void **state)
{
	(void)state;
	struct cli *holder = zk_hold("x");
	const char *const words[] = {"run", "--watchdog", "200s", "--grace", "40s",
	                             "x",   "--",         "true", NULL};
	cli_expect_refusal(zk_url(), 64, "is too short: renewal", words);
	assert_int_equal(zk_count("/x"), 1);
	cli_free(holder);
}

static void the_session_of_no_fork_must_outlast_the_lease(void **state)
{
	(void)state;
	const char *const words[] = {"run", "-F", "--lease", "50s", "x", "--", "true", NULL};
	cli_expect_refusal(zk_url(), 64, "-F leaves no process to keep the session", words);
	CLI_CALL(zk_url(), 0, "run", "-F", "--lease", "3s", "x", "--", "true");
}

/* ---- descriptors, of which ZooKeeper's library leaves some open for other programs ---- */

#define LIST_DESCRIPTORS "ls /proc/$$/fd"

/* What a shell prints that has opened two descriptors before it runs this. */
static char *descriptors_in(const char *line)
{
	char *script = check_format("exec 5</dev/null 7>/dev/null; %s", line);
	const char *const argv[] = {"sh", "-c", script, cli_path(), program_deny(), NULL};
	struct cli *cli = cli_start_program(zk_url(), argv);
	(void)cli_wait(cli, CLI_SOON_MS);
	char *text = check_format("%s", cli_output(cli));
	cli_free(cli);
	free(script);
	return text;
}

static void only_descriptors_of_the_caller_are_passed_on(void **state)
{
	static const char *const lines[] = {
		"$0 run -F --lease 3s x -- sh -c '" LIST_DESCRIPTORS "'",
		"$0 run --lease 1s --on-lost '" LIST_DESCRIPTORS "' y -- sleep 60",
		"$0 run --lease 1s --on-lost '" LIST_DESCRIPTORS "' y",
		/* Older kernels do not know the call, or not its flag. */
		"$1 close_range=38 -- $0 run -F --lease 3s x2 -- sh -c '" LIST_DESCRIPTORS "'",
		"$1 close_range=22 -- $0 run -F --lease 3s x3 -- sh -c '" LIST_DESCRIPTORS "'",
	};
	(void)state;
	char *wanted = descriptors_in("sh -c '" LIST_DESCRIPTORS "'");
	assert_non_null(strstr(wanted, "5\n7\n"));
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		char *text = descriptors_in(lines[i]);
		if (strcmp(text, wanted) != 0)
			fail_msg("%s: '%s', not '%s'", lines[i], text, wanted);
		free(text);
	}
	free(wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(the_name_is_the_path_and_the_node_describes_the_holder),
		ZK_STORY(the_exit_status_of_the_command_is_passed_on),
		ZK_STORY(a_busy_lock_is_1_and_leaves_nothing),
		ZK_STORY(run_waits_for_a_java_node),
		ZK_STORY(a_signal_while_waiting_leaves_nothing),
		ZK_STORY(readers_share_and_writers_do_not),
		ZK_STORY(each_reader_knows_its_own_node),
		ZK_STORY(a_plain_lock_is_the_node_itself),
		ZK_STORY(run_waits_for_a_plain_lock_made_by_hand),
		ZK_STORY(the_token_is_the_czxid),
		ZK_STORY(a_fixed_lease_stops_the_command_and_removes_the_node),
		ZK_STORY(a_waiter_with_a_short_lease_gets_its_turn_at_once),
		ZK_STORY(permits_are_leases_up_to_the_given_number),
		ZK_STORY(the_number_of_permits_is_a_convention),
		ZK_STORY(a_released_permit_goes_to_the_next_waiter),
		ZK_STORY(a_signal_while_waiting_for_a_permit_leaves_nothing),
		ZK_STORY(deleting_the_lease_stops_the_command_within_2_s),
		ZK_STORY(the_times_of_permits_are_those_of_the_session),
		ZK_STORY(a_simple_lock_excludes_others_and_knows_its_lease),
		ZK_STORY(options_for_redis_are_64_on_zookeeper),
		ZK_STORY(a_name_that_is_not_a_path_is_64),
		ZK_STORY(a_missing_chroot_is_78_and_is_not_created),
		ZK_STORY(the_chroot_precedes_the_name),
		ZK_STORY(invalid_urls_are_78),
		ZK_STORY(a_missing_server_is_69),
		ZK_STORY(a_session_too_short_for_the_grace_is_64),
		ZK_STORY(a_busy_lock_does_not_hide_a_short_session),
		ZK_STORY(the_session_of_no_fork_must_outlast_the_lease),
		ZK_STORY(only_descriptors_of_the_caller_are_passed_on),
	};
	return cmocka_run_group_tests_name("cli_zk_run", tests, zk_start, zk_stop);
}
