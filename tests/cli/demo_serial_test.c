/* holdfast demo: it succeeds, and leaves no server running. */
#include "cli/cli.h"

#include <dirent.h>
#include <signal.h>

static struct cli *start_demo(const char *option)
{
	char *variable =
		check_format("%s=%s", option ? "TMPDIR" : "HOLDFAST_EMBEDDED_DIR", cli_dir);
	/*
	 * The demo forks while it has threads, which the thread sanitizer accepts only with this.
	 */
	const char *const variables[] = {variable, "TSAN_OPTIONS=die_after_fork=0", NULL};
	struct cli *cli =
		cli_start_env(NULL, variables, (const char *const[]){"demo", option, NULL});
	free(variable);
	return cli;
}

/* Its server has a directory of its own in that of the story. */
static size_t count_leftovers(void)
{
	size_t n = 0;
	DIR *dir = opendir(cli_dir);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void expect_success(struct cli *cli)
{
	int status = cli_wait(cli, 6 * CLI_SOON_MS);
	if (status != 0)
		fail_msg("status %d: %s%s", status, cli_output(cli), cli_errors(cli));
	assert_non_null(strstr(cli_output(cli), "Everything behaved as described."));
	assert_null(strstr(cli_output(cli), "FAILED"));
	assert_string_equal(cli_errors(cli), "");
	assert_int_equal(count_leftovers(), 0);
	cli_free(cli);
}

static void the_demo_succeeds_and_cleans_up(void **state)
{
	(void)state;
	expect_success(start_demo(NULL));
}

static void the_demo_of_a_failover_succeeds_and_cleans_up(void **state)
{
	(void)state;
	expect_success(start_demo("--failover"));
}

static void an_interrupted_demo_cleans_up(void **state)
{
	(void)state;
	struct cli *cli = start_demo(NULL);
	CLI_WAIT_OUTPUT(cli, "holds the lock and works for a second");
	assert_int_equal(count_leftovers(), 1);
	assert_int_equal(kill(cli->pid, SIGTERM), 0);
	CLI_EXPECT(cli, 128 + SIGTERM);
	assert_int_equal(count_leftovers(), 0);
	cli_free(cli);
}

static void the_demo_fails_on_an_unreachable_server(void **state)
{
	(void)state;
	CLI_CALL(NULL, 1, "demo", CLI_NOWHERE);
	CLI_CALL(NULL, 1, "demo", "--url", CLI_NOWHERE);
	CLI_CALL(NULL, 64, "demo", "--url", CLI_NOWHERE, CLI_NOWHERE);
	CLI_CALL(NULL, 64, "demo", "--failover", CLI_NOWHERE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_DIR_STORY(the_demo_succeeds_and_cleans_up),
		CLI_DIR_STORY(the_demo_of_a_failover_succeeds_and_cleans_up),
		CLI_DIR_STORY(an_interrupted_demo_cleans_up),
		CLI_DIR_STORY(the_demo_fails_on_an_unreachable_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
