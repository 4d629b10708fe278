/* holdfast revoke, and what run --revocable does when its lock is revoked. */
#include "cli/zk.h"

#include <signal.h>

#define JAVA    "_c_" CLI_JAVA
#define MESSAGE "__REVOKE__"

/* Prints that it got SIGTERM, and succeeds. */
#define UNTIL_TERM "trap 'echo term; exit 0' TERM; echo $$; cat >/dev/null"

static void ask_for(const char *name)
{
	struct cli *cli = cli_call(zk_url(), 0, "revoke", name, NULL);
	assert_string_equal(cli_output(cli), "");
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

/* ---- the holders ---- */

static void the_command_gets_sigterm_and_the_lock_is_released(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	(void)cli_command_pid(cli);
	struct cli *next = cli_start(zk_url(), "run", "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	ask_for("x");
	CLI_EXPECT(cli, 80);
	cli_expect_in(cli_output(cli), "term\n");
	cli_expect_in(cli_errors(cli),
	              "holdfast: x: someone asked for the lock; the command was stopped\n");
	CLI_EXPECT(next, 0);
	assert_string_equal(cli_output(next), "mine\n");
	assert_int_equal(zk_count("/x"), 0);
	cli_free(next);
	cli_free(cli);
}

static void a_command_that_ignores_sigterm_is_killed_after_the_grace(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--revocable", "--grace", "1s", "x", "--",
	                            "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
	pid_t pid = cli_command_pid(cli);
	long long begun = test_now_ms();
	ask_for("x");
	(void)cli_time_to_death(pid);
	assert_in_range(test_now_ms() - begun, 1000, 6000);
	CLI_EXPECT(cli, 80);
	assert_int_equal(zk_count("/x"), 0);
	cli_free(cli);
}

static void every_kind_can_be_revoked(void **state)
{
	(void)state;
	const char *const ways[][2] = {{"run", "--kind=reentrant"}, {"run", "--kind=read"},
	                               {"run", "--kind=write"},     {"run", "--kind=fenced"},
	                               {"run", "--kind=plain"},     {"run", "--kind=simple"},
	                               {"elect", "--id=one"}};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct cli *cli = cli_start(zk_url(), ways[i][0], ways[i][1], "--revocable", "x",
		                            "--", "sh", "-c", UNTIL_TERM, NULL);
		(void)cli_command_pid(cli);
		ask_for("x");
		CLI_EXPECT(cli, 80);
		cli_expect_in(cli_output(cli), "term\n");
		cli_free(cli);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

static void revoke_asks_all_readers(void **state)
{
	(void)state;
	struct cli *cli[2];
	for (int i = 0; i < 2; i++) {
		cli[i] = cli_start(zk_url(), "run", "-s", "--revocable", "x", "--", "sh", "-c",
		                   UNTIL_TERM, NULL);
		(void)cli_command_pid(cli[i]);
	}
	ask_for("x");
	for (int i = 0; i < 2; i++) {
		CLI_EXPECT(cli[i], 80);
		cli_free(cli[i]);
	}
	assert_int_equal(zk_count("/x"), 0);
}

/* It writes what Curator's Revoker writes. */
static void a_java_revoker_is_obeyed(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	(void)cli_command_pid(cli);
	char *node = zk_only_child("/x");
	assert_int_equal(zk_raw_set(zk_eye, node, "something else", -1), 0);
	assert_int_equal(zk_raw_set(zk_eye, node, MESSAGE, -1), 0);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
	free(node);
}

static void other_data_in_the_node_is_not_a_revocation(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c",
	                            CLI_UNTIL_INPUT_ENDS, NULL);
	pid_t pid = cli_command_pid(cli);
	char *node = zk_only_child("/x");
	assert_int_equal(zk_raw_set(zk_eye, node, "something else", -1), 0);
	cli_let_live(cli, pid, 1000);
	cli_finish(cli);
	free(node);
}

static void a_holder_that_is_not_revocable_ignores_revocations(void **state)
{
	(void)state;
	const char *const ways[][2] = {
		{"run", "--kind=reentrant"}, {"run", "--permits=1"}, {"elect", "--id=one"}};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct cli *cli = cli_start(zk_url(), ways[i][0], ways[i][1], "x", "--", "sh", "-c",
		                            CLI_UNTIL_INPUT_ENDS, NULL);
		pid_t pid = cli_command_pid(cli);
		ask_for("x");
		cli_let_live(cli, pid, 1000);
		assert_string_equal(cli_errors(cli), "");
		cli_finish(cli);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

/* If it is revoked while it waits, it releases the lock as soon as it was granted. */
static void a_revocation_before_the_grant_counts_after_it(void **state)
{
	(void)state;
	struct cli *holder = zk_hold("x");
	char *held = zk_only_child("/x");
	struct cli *cli =
		cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	char *node = zk_other_child("/x", held);
	assert_int_equal(zk_raw_set(zk_eye, node, MESSAGE, -1), 0);
	cli_finish(holder);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
	free(node);
	free(held);
}

static void a_hold_without_a_command_is_released(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--revocable", "x", NULL);
	WAIT_UNTIL(zk_count("/x") == 1, CLI_SOON_MS);
	ask_for("x");
	CLI_EXPECT(cli, 80);
	assert_string_equal(cli_errors(cli), "holdfast: x: someone asked for the lock\n");
	assert_int_equal(zk_count("/x"), 0);
	cli_free(cli);
}

static void events_report_the_revocation(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(zk_url(), "run", "--json", "--revocable", "--on-lost",
	                  "echo $HOLDFAST_NAME is gone", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	(void)cli_command_pid(cli);
	ask_for("x");
	CLI_EXPECT(cli, 80);
	const char *at = cli_errors(cli);
	const char *const wanted[] = {"{\"event\":\"acquired\"",
	                              "{\"event\":\"revoked\"",
	                              "-lock-0000000000\",\"remaining_ms\":",
	                              "{\"event\":\"exit\"",
	                              "\"status\":80}",
	                              "{\"event\":\"released\""};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		cli_expect_in(at, wanted[i]);
		at = strstr(at, wanted[i]);
	}
	assert_null(strstr(cli_errors(cli), "at-risk"));
	assert_null(strstr(cli_errors(cli), "\"lost\""));
	cli_expect_in(cli_output(cli), "term\nx is gone\n");
	cli_free(cli);
}

/* The lock is released although --at-least would keep it, and the command keeps its own status. */
static void a_revocation_ends_at_least(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--revocable", "--at-least", "60", "x", "--",
	                            "sh", "-c", "echo up; exit 3", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	WAIT_UNTIL(!cli_guard(cli), CLI_SOON_MS);
	assert_int_equal(zk_count("/x"), 1);
	ask_for("x");
	CLI_EXPECT(cli, 3);
	assert_int_equal(zk_count("/x"), 0);
	cli_free(cli);
}

/* ---- revoke ---- */

static void revoke_writes_into_the_node_of_the_holder(void **state)
{
	(void)state;
	char *first, *second;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	first = zk_make_numbered("/x/" JAVA "-lock-", "10.0.0.1");
	second = zk_make_numbered("/x/" JAVA "-lock-", "10.0.0.2");
	ask_for("x");
	expect_data(first, MESSAGE);
	expect_data(second, "10.0.0.2");
	free(first);
	free(second);
}

static void revoke_asks_all_leases_and_plain_nodes(void **state)
{
	(void)state;
	char *leases[2];
	zk_make("/x", "", ZK_RAW_CONTAINER);
	zk_make("/x/leases", "", ZK_RAW_CONTAINER);
	zk_make("/x/locks", "", ZK_RAW_CONTAINER);
	for (int i = 0; i < 2; i++)
		leases[i] = zk_make_numbered("/x/leases/" JAVA "-lease-", "");
	ask_for("x");
	for (int i = 0; i < 2; i++) {
		expect_data(leases[i], MESSAGE);
		free(leases[i]);
	}
	zk_make("/p", "by hand", ZK_RAW_EPHEMERAL);
	ask_for("p");
	expect_data("/p", MESSAGE);
}

static void a_free_lock_is_1(void **state)
{
	(void)state;
	const char *const made[] = {"/folder", "/sem", "/sem/leases", "/sem/locks"};
	CLI_EXPECT_REFUSAL(zk_url(), 1, "holdfast: x: nobody holds this lock\n", "revoke", "x");
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		zk_make(made[i], "", ZK_RAW_CONTAINER);
	CLI_EXPECT_REFUSAL(zk_url(), 1, "nobody holds this lock", "revoke", "folder");
	CLI_EXPECT_REFUSAL(zk_url(), 1, "nobody holds this lock", "revoke", "sem");
}

static void wrong_uses_have_their_own_status(void **state)
{
	(void)state;
	const char *const away = CLI_NOWHERE;
	CLI_EXPECT_REFUSAL(zk_url(), 64, "give exactly one NAME", "revoke");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "give exactly one NAME", "revoke", "x", "y");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "see holdfast revoke --help", "revoke", "--force", "x");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "name: ", "revoke", "a//b");
	CLI_EXPECT_REFUSAL("zk://127.0.0.1:1", 69, "is the server running", "revoke", "x");
	/* The server does not matter where a revocation is impossible. */
	CLI_EXPECT_REFUSAL(away, 64, "revoke: available on ZooKeeper only", "revoke", "x");
	CLI_EXPECT_REFUSAL(away, 64, "--revocable is available on ZooKeeper only", "run",
	                   "--revocable", "x", "true");
	CLI_EXPECT_REFUSAL(away, 64, "--revocable is available on ZooKeeper only", "elect",
	                   "--revocable", "x", "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "--revocable is not available for permits", "run",
	                   "--revocable", "--permits", "2", "x", "true");
	CLI_EXPECT_REFUSAL(zk_url(), 64, "-F excludes --revocable", "run", "-F", "--lease", "3s",
	                   "--revocable", "x", "true");
}

static void a_node_that_must_not_be_written_is_77(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	zk_raw_use_acl(zk_eye, "world:anyone:r");
	assert_int_equal(zk_raw_create(zk_eye, "/x/" JAVA "-lock-", "", ZK_RAW_EPHEMERAL_SEQUENTIAL,
	                               NULL, NULL),
	                 0);
	CLI_EXPECT_REFUSAL(zk_url(), 77, "cannot write to the holder's node", "revoke", "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(the_command_gets_sigterm_and_the_lock_is_released),
		ZK_STORY(a_command_that_ignores_sigterm_is_killed_after_the_grace),
		ZK_STORY(every_kind_can_be_revoked),
		ZK_STORY(revoke_asks_all_readers),
		ZK_STORY(a_java_revoker_is_obeyed),
		ZK_STORY(other_data_in_the_node_is_not_a_revocation),
		ZK_STORY(a_holder_that_is_not_revocable_ignores_revocations),
		ZK_STORY(a_revocation_before_the_grant_counts_after_it),
		ZK_STORY(a_hold_without_a_command_is_released),
		ZK_STORY(events_report_the_revocation),
		ZK_STORY(a_revocation_ends_at_least),
		ZK_STORY(revoke_writes_into_the_node_of_the_holder),
		ZK_STORY(revoke_asks_all_leases_and_plain_nodes),
		ZK_STORY(a_free_lock_is_1),
		ZK_STORY(wrong_uses_have_their_own_status),
		ZK_STORY(a_node_that_must_not_be_written_is_77),
	};
	return cmocka_run_group_tests_name("cli_zk_revoke", tests, zk_start, zk_stop);
}
