/* holdfast revoke, and what run --revocable does when its lock is asked for. */
#include "cli/zk.h"

#include <signal.h>

#define JAVA    "_c_0f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a"
#define MESSAGE "__REVOKE__"

/* Tells that it got SIGTERM, and ends well. */
#define UNTIL_TERM "trap 'echo term; exit 0' TERM; echo $$; cat >/dev/null"

static void ask_for(const char *name)
{
	struct cli *cli = cli_start(zk_url(), "revoke", name, NULL);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "");
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

/* ---- who is told ---- */

static void command_gets_term_and_the_lock_is_given_up(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	(void)command_of(cli);
	struct cli *next = cli_start(zk_url(), "run", "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	ask_for("x");
	CLI_EXPECT(cli, 80);
	expect_in(cli_output(cli), "term\n");
	expect_in(cli_errors(cli),
	          "holdfast: x: somebody asked for the lock; what ran under it was stopped\n");
	CLI_EXPECT(next, 0);
	assert_string_equal(cli_output(next), "mine\n");
	assert_int_equal(zk_count("/x"), 0);
	cli_free(next);
	cli_free(cli);
}

static void command_that_ignores_term_is_killed_after_the_grace(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--revocable", "--grace", "1s", "x", "--",
	                            "sh", "-c", UNTIL_INPUT_ENDS, NULL);
	pid_t pid = command_of(cli);
	long long begun = test_now_ms();
	ask_for("x");
	(void)time_to_death(pid);
	assert_in_range(test_now_ms() - begun, 1000, 6000);
	CLI_EXPECT(cli, 80);
	assert_int_equal(zk_count("/x"), 0);
	cli_free(cli);
}

static void every_kind_can_be_asked_for(void **state)
{
	(void)state;
	const char *const ways[][2] = {{"run", "--kind=reentrant"}, {"run", "--kind=read"},
	                               {"run", "--kind=write"},     {"run", "--kind=fenced"},
	                               {"run", "--kind=plain"},     {"run", "--kind=simple"},
	                               {"elect", "--id=one"}};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct cli *cli = cli_start(zk_url(), ways[i][0], ways[i][1], "--revocable", "x",
		                            "--", "sh", "-c", UNTIL_TERM, NULL);
		(void)command_of(cli);
		ask_for("x");
		CLI_EXPECT(cli, 80);
		expect_in(cli_output(cli), "term\n");
		cli_free(cli);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

static void all_readers_are_asked(void **state)
{
	(void)state;
	struct cli *cli[2];
	for (int i = 0; i < 2; i++) {
		cli[i] = cli_start(zk_url(), "run", "-s", "--revocable", "x", "--", "sh", "-c",
		                   UNTIL_TERM, NULL);
		(void)command_of(cli[i]);
	}
	ask_for("x");
	for (int i = 0; i < 2; i++) {
		CLI_EXPECT(cli[i], 80);
		cli_free(cli[i]);
	}
	assert_int_equal(zk_count("/x"), 0);
}

/* As Curator's Revoker does it. */
static void message_of_java_is_heard(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	(void)command_of(cli);
	char *node = zk_only_child("/x");
	assert_int_equal(zk_raw_set(zk_eye, node, "something else", -1), 0);
	assert_int_equal(zk_raw_set(zk_eye, node, MESSAGE, -1), 0);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
	free(node);
}

static void other_words_in_the_node_are_no_request(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c",
	                            UNTIL_INPUT_ENDS, NULL);
	pid_t pid = command_of(cli);
	char *node = zk_only_child("/x");
	assert_int_equal(zk_raw_set(zk_eye, node, "something else", -1), 0);
	let_live(cli, pid, 1000);
	finish(cli);
	free(node);
}

static void requests_are_ignored_by_who_is_not_revocable(void **state)
{
	(void)state;
	const char *const ways[][2] = {
		{"run", "--kind=reentrant"}, {"run", "--permits=1"}, {"elect", "--id=one"}};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct cli *cli = cli_start(zk_url(), ways[i][0], ways[i][1], "x", "--", "sh", "-c",
		                            UNTIL_INPUT_ENDS, NULL);
		pid_t pid = command_of(cli);
		ask_for("x");
		let_live(cli, pid, 1000);
		assert_string_equal(cli_errors(cli), "");
		finish(cli);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

/* Asked for while it waited, it is given up as soon as it is had. */
static void request_before_the_grant_is_heard_after_it(void **state)
{
	(void)state;
	struct zk_raw_names names = {0};
	struct cli *holder = cli_start(zk_url(), "run", "x", NULL);
	WAIT_UNTIL(zk_count("/x") == 1, CLI_SOON_MS);
	char *held = zk_only_child("/x");
	struct cli *cli =
		cli_start(zk_url(), "run", "--revocable", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	assert_int_equal(zk_raw_children(zk_eye, "/x", &names, NULL), 0);
	int other = strcmp(names.name[0], strrchr(held, '/') + 1) == 0;
	char *node = check_format("/x/%s", names.name[other]);
	assert_int_equal(zk_raw_set(zk_eye, node, MESSAGE, -1), 0);
	finish(holder);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
	free(node);
	free(held);
	zk_raw_names_clear(&names);
}

static void hold_without_a_command_ends(void **state)
{
	(void)state;
	struct cli *cli = cli_start(zk_url(), "run", "--revocable", "x", NULL);
	WAIT_UNTIL(zk_count("/x") == 1, CLI_SOON_MS);
	ask_for("x");
	CLI_EXPECT(cli, 80);
	assert_string_equal(cli_errors(cli), "holdfast: x: somebody asked for the lock\n");
	assert_int_equal(zk_count("/x"), 0);
	cli_free(cli);
}

static void events_tell_of_the_request(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(zk_url(), "run", "--json", "--revocable", "--on-lost",
	                  "echo $HOLDFAST_NAME is gone", "x", "--", "sh", "-c", UNTIL_TERM, NULL);
	(void)command_of(cli);
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
		expect_in(at, wanted[i]);
		at = strstr(at, wanted[i]);
	}
	assert_null(strstr(cli_errors(cli), "at-risk"));
	assert_null(strstr(cli_errors(cli), "\"lost\""));
	expect_in(cli_output(cli), "term\nx is gone\n");
	cli_free(cli);
}

/* What was held on to for --at-least is given up, and the command has its own status. */
static void request_ends_at_least(void **state)
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

static void message_is_written_into_the_holders_node(void **state)
{
	(void)state;
	char *first, *second;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	assert_int_equal(zk_raw_create(zk_eye, "/x/" JAVA "-lock-", "10.0.0.1",
	                               ZK_RAW_EPHEMERAL_SEQUENTIAL, &first, NULL),
	                 0);
	assert_int_equal(zk_raw_create(zk_eye, "/x/" JAVA "-lock-", "10.0.0.2",
	                               ZK_RAW_EPHEMERAL_SEQUENTIAL, &second, NULL),
	                 0);
	ask_for("x");
	expect_data(first, MESSAGE);
	expect_data(second, "10.0.0.2");
	free(first);
	free(second);
}

static void all_leases_and_plain_nodes_are_asked(void **state)
{
	(void)state;
	char *leases[2];
	zk_make("/x", "", ZK_RAW_CONTAINER);
	zk_make("/x/leases", "", ZK_RAW_CONTAINER);
	zk_make("/x/locks", "", ZK_RAW_CONTAINER);
	for (int i = 0; i < 2; i++)
		assert_int_equal(zk_raw_create(zk_eye, "/x/leases/" JAVA "-lease-", "",
		                               ZK_RAW_EPHEMERAL_SEQUENTIAL, &leases[i], NULL),
		                 0);
	ask_for("x");
	for (int i = 0; i < 2; i++) {
		expect_data(leases[i], MESSAGE);
		free(leases[i]);
	}
	zk_make("/p", "by hand", ZK_RAW_EPHEMERAL);
	ask_for("p");
	expect_data("/p", MESSAGE);
}

static void free_lock_is_1(void **state)
{
	(void)state;
	const char *const made[] = {"/folder", "/sem", "/sem/leases", "/sem/locks"};
	EXPECT_REFUSAL(zk_url(), 1, "holdfast: x: nobody holds it\n", "revoke", "x");
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		zk_make(made[i], "", ZK_RAW_CONTAINER);
	EXPECT_REFUSAL(zk_url(), 1, "nobody holds it", "revoke", "folder");
	EXPECT_REFUSAL(zk_url(), 1, "nobody holds it", "revoke", "sem");
}

static void wrong_uses_have_their_status(void **state)
{
	(void)state;
	const char *const away = "redis://127.0.0.1:1";
	EXPECT_REFUSAL(zk_url(), 64, "one NAME is needed", "revoke");
	EXPECT_REFUSAL(zk_url(), 64, "one NAME is needed", "revoke", "x", "y");
	EXPECT_REFUSAL(zk_url(), 64, "see holdfast revoke --help", "revoke", "--force", "x");
	EXPECT_REFUSAL(zk_url(), 64, "name: a path", "revoke", "a//b");
	EXPECT_REFUSAL("zk://127.0.0.1:1", 69, "is the server running", "revoke", "x");
	/* Whether there is a server matters to nobody who cannot ask it. */
	EXPECT_REFUSAL(away, 64, "revoke: only on ZooKeeper", "revoke", "x");
	EXPECT_REFUSAL(away, 64, "--revocable: only on ZooKeeper", "run", "--revocable", "x",
	               "true");
	EXPECT_REFUSAL(away, 64, "--revocable: only on ZooKeeper", "elect", "--revocable", "x",
	               "true");
	EXPECT_REFUSAL(zk_url(), 64, "--revocable: not for permits", "run", "--revocable",
	               "--permits", "2", "x", "true");
	EXPECT_REFUSAL(zk_url(), 64, "-F excludes --revocable", "run", "-F", "--lease", "3s",
	               "--revocable", "x", "true");
}

static void node_that_may_not_be_written_is_77(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	zk_raw_use_acl(zk_eye, "world:anyone:r");
	assert_int_equal(zk_raw_create(zk_eye, "/x/" JAVA "-lock-", "", ZK_RAW_EPHEMERAL_SEQUENTIAL,
	                               NULL, NULL),
	                 0);
	EXPECT_REFUSAL(zk_url(), 77, "cannot write to the holder's node", "revoke", "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(command_gets_term_and_the_lock_is_given_up),
		ZK_STORY(command_that_ignores_term_is_killed_after_the_grace),
		ZK_STORY(every_kind_can_be_asked_for),
		ZK_STORY(all_readers_are_asked),
		ZK_STORY(message_of_java_is_heard),
		ZK_STORY(other_words_in_the_node_are_no_request),
		ZK_STORY(requests_are_ignored_by_who_is_not_revocable),
		ZK_STORY(request_before_the_grant_is_heard_after_it),
		ZK_STORY(hold_without_a_command_ends),
		ZK_STORY(events_tell_of_the_request),
		ZK_STORY(request_ends_at_least),
		ZK_STORY(message_is_written_into_the_holders_node),
		ZK_STORY(all_leases_and_plain_nodes_are_asked),
		ZK_STORY(free_lock_is_1),
		ZK_STORY(wrong_uses_have_their_status),
		ZK_STORY(node_that_may_not_be_written_is_77),
	};
	return cmocka_run_group_tests_name("cli_zk_revoke", tests, zk_start, zk_stop);
}
