/* holdfast run --metrics-file: when the file is written, what it says, and what if it cannot be. */
#include "cli/cli.h"

#include <dirent.h>
#include <sys/stat.h>

static char *path;

static int make_path(void **state)
{
	int rc = cli_flush_server(state);
	(void)cli_make_dir(state);
	path = check_format("%s/nightly.prom", cli_dir);
	return rc;
}

static int drop_path(void **state)
{
	free(path);
	return cli_remove_dir(state);
}

/* What the file says, or "" if there is none; valid until the next call. */
static const char *read_file(void)
{
	static char text[256 * 1024];
	FILE *file = fopen(path, "r");
	size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
	text[length] = 0;
	if (file)
		fclose(file);
	return text;
}

#define GRANTED  "_acquire_wait_seconds_count{lock=\"x\",kind=\"reentrant\",result=\"granted\"} 1\n"
#define RELEASED "_hold_seconds_count{lock=\"x\",kind=\"reentrant\",end=\"released\"} 1\n"

static void the_file_is_written_at_the_start_and_at_the_end(void **state)
{
	struct stat seen;
	(void)state;
	char *line = check_format("grep -c ^holdfast_held %s && grep 'holdfast_connected{' %s",
	                          path, path);
	struct cli *cli = cli_call(cli_url(), 0, "run", "--metrics-file", path, "x", "--", "sh",
	                           "-c", line, NULL);
	/* Before the lock was asked for, there was no connection. */
	assert_string_equal(cli_output(cli), "1\nholdfast_connected{lock=\"x\"} 0\n");
	cli_free(cli);
	free(line);
	cli_expect_in(read_file(), GRANTED);
	cli_expect_in(read_file(), RELEASED);
	cli_expect_in(read_file(), "holdfast_connected{lock=\"x\"} 1\n");
	cli_expect_in(read_file(), "holdfast_held{lock=\"x\"} 0\n");
	assert_int_equal(stat(path, &seen), 0);
	assert_int_equal(seen.st_mode & 07777, 0644);
}

static void the_file_is_written_while_the_command_runs(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "--metrics-file", path, "x", "--", "cat", NULL);
	WAIT_UNTIL(strstr(read_file(), "holdfast_held{lock=\"x\"} 1\n") != NULL, 20000);
	assert_null(strstr(read_file(), RELEASED));
	cli_finish(cli);
	cli_expect_in(read_file(), RELEASED);
}

static void a_run_without_the_lock_is_counted_as_well(void **state)
{
	(void)state;
	struct cli *holder =
		cli_start(cli_url(), "run", "x", "--", "sh", "-c", "echo up; cat", NULL);
	CLI_WAIT_OUTPUT(holder, "up");
	CLI_CALL(cli_url(), 1, "run", "-n", "--metrics-file", path, "x", "true");
	cli_expect_in(read_file(), "{lock=\"x\",kind=\"reentrant\",result=\"busy\"} 1\n");
	cli_finish(holder);
}

static void a_loss_is_counted(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--watchdog", "2s", "--metrics-file", path,
	                            "x", "--", "sh", "-c", "echo up; exec sleep 60", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	assert_int_equal(raw_integer(cli_raw, "DEL", "x", NULL), 1);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
	cli_expect_in(read_file(), "holdfast_losses_total{lock=\"x\",reason=\"gone\"} 1\n");
}

static void a_name_with_quotes_stays_one_label(void **state)
{
	char longest[513];
	(void)state;
	memset(longest, '"', 512);
	longest[512] = 0;
	CLI_CALL(cli_url(), 0, "run", "--metrics-file", path, "a\"\\b", "true");
	cli_expect_in(read_file(), "holdfast_held{lock=\"a\\\"\\\\b\"} 0\n");
	CLI_CALL(cli_url(), 0, "run", "--metrics-file", path, longest, "true");
	assert_int_equal(cli_count(read_file(), "\nholdfast_held{"), 1);
}

static void a_file_that_cannot_be_written_is_an_error_before_the_lock(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(cli_url(), 71, "No such file or directory", "run", "--metrics-file",
	                   "/nonexistent/x.prom", "x", "--", "echo", "ran");
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void a_file_that_can_no_longer_be_written_does_not_stop_the_command(void **state)
{
	(void)state;
	char *line = check_format("rm -r %s; exit 7", cli_dir);
	struct cli *cli = cli_call(cli_url(), 7, "run", "--metrics-file", path, "x", "--", "sh",
	                           "-c", line, NULL);
	assert_int_equal(cli_count(cli_errors(cli), "--metrics-file: cannot write"), 1);
	cli_free(cli);
	free(line);
	assert_int_equal(mkdir(cli_dir, 0700), 0);
}

/* ---- a disk that hangs once the file has been written for the first time ---- */

static struct cli *start_with_hung_disk(const char *const *words)
{
	/* The address sanitizer wants to be the first library, though it works as the second. */
	static const char *const variables[] = {"LD_PRELOAD=" HF_HUNG_DISK,
	                                        "ASAN_OPTIONS=verify_asan_link_order=0", NULL};
	return cli_start_env(cli_url(), variables, words);
}

#define START_WITH_HUNG_DISK(...)                                                                  \
	start_with_hung_disk(                                                                      \
		(const char *const[]){"run", "--metrics-file", path, __VA_ARGS__, NULL})

/* How many files are in the folder. */
static int count_files(void)
{
	DIR *folder = opendir(cli_dir);
	int count = 0;
	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

static void a_disk_that_hangs_does_not_delay_the_end(void **state)
{
	(void)state;
	long long begun = test_now_ms();
	struct cli *cli = START_WITH_HUNG_DISK("x", "--", "sh", "-c", "exit 7");
	CLI_EXPECT(cli, 7);
	assert_true(test_now_ms() - begun < 10000);
	cli_free(cli);
	assert_int_equal(count_files(), 2);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

/* The lock is renewed meanwhile, and the command is stopped in time when it is lost. */
static void a_disk_that_hangs_keeps_no_lock_from_being_renewed_or_lost(void **state)
{
	(void)state;
	struct cli *cli = START_WITH_HUNG_DISK("--watchdog", "2s", "x", "--", "sh", "-c",
	                                       "echo $$; exec sleep 60");
	pid_t pid = cli_command_pid(cli);
	WAIT_UNTIL(count_files() == 2, 20000);
	cli_let_live(cli, pid, 4000);
	assert_int_equal(raw_integer(cli_raw, "DEL", "x", NULL), 1);
	long long begun = test_now_ms();
	CLI_EXPECT(cli, 80);
	assert_true(test_now_ms() - begun < 10000);
	cli_free(cli);
}

#define FILE_STORY(name) cmocka_unit_test_setup_teardown(name, make_path, drop_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_STORY(the_file_is_written_at_the_start_and_at_the_end),
		FILE_STORY(the_file_is_written_while_the_command_runs),
		FILE_STORY(a_run_without_the_lock_is_counted_as_well),
		FILE_STORY(a_loss_is_counted),
		FILE_STORY(a_name_with_quotes_stays_one_label),
		FILE_STORY(a_file_that_cannot_be_written_is_an_error_before_the_lock),
		FILE_STORY(a_file_that_can_no_longer_be_written_does_not_stop_the_command),
		FILE_STORY(a_disk_that_hangs_does_not_delay_the_end),
		FILE_STORY(a_disk_that_hangs_keeps_no_lock_from_being_renewed_or_lost),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
