/* The private server of the command: started once, shown, stopped, and started again. */
#include "cli/cli.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#define CROWD 12

static char *folder; /* where the server lives */

static int make_folder(void **state)
{
	(void)cli_make_dir(state);
	folder = check_format("%s/state", cli_dir);
	return 0;
}

static struct cli *start_in(const char *dir, const char *const *words)
{
	char *variable = check_format("HOLDFAST_EMBEDDED_DIR=%s", dir);
	struct cli *cli = cli_start_env(NULL, (const char *const[]){variable, NULL}, words);
	free(variable);
	return cli;
}
#define START(...) start_in(folder, (const char *const[]){__VA_ARGS__, NULL})

#define CALL(status, ...)                                                                          \
	do {                                                                                       \
		struct cli *call_ = START(__VA_ARGS__);                                            \
		CLI_EXPECT(call_, status);                                                         \
		cli_free(call_);                                                                   \
	} while (0)

static int stop_server(void **state)
{
	struct cli *cli = START("embedded", "stop");
	(void)cli_wait(cli, CLI_SOON_MS);
	cli_free(cli);
	free(folder);
	return cli_remove_dir(state);
}

/* The process of the server, or 0. */
static pid_t server_pid(void)
{
	int pid = 0;
	struct cli *cli = START("embedded", "status");
	int status = cli_wait(cli, CLI_SOON_MS);
	if (status == 0)
		assert_int_equal(sscanf(cli_output(cli), "running, pid %d, in ", &pid), 1);
	else
		assert_int_equal(status, 1);
	cli_free(cli);
	return pid;
}

static void the_first_use_starts_the_server_and_stop_ends_it(void **state)
{
	(void)state;
	CALL(1, "embedded", "status");
	CALL(0, "ping", "--url", "embedded:");
	pid_t pid = server_pid();
	assert_true(pid > 0 && cli_is_alive(pid));
	CALL(0, "embedded", "stop");
	assert_false(cli_is_alive(pid));
	CALL(1, "embedded", "status");
	struct cli *cli = START("embedded", "stop");
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "was not running\n");
	cli_free(cli);
}

static void using_the_private_server_is_announced_in_one_line(void **state)
{
	(void)state;
	struct cli *cli = START("run", "x", "--", "echo", "hello");
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "hello\n");
	const char *text = cli_errors(cli);
	assert_non_null(strstr(text, "no server is configured"));
	assert_non_null(strstr(text, "this host only"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	cli_free(cli);
	cli = START("run", "--url", "embedded:", "x", "--", "echo", "hello");
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

/* A reader of the README compares what it shows with what the terminal shows. */
static void the_readme_shows_what_the_first_use_prints(void **state)
{
	static char readme[64 * 1024];
	(void)state;
	FILE *file = fopen(HF_SOURCE_DIR "/README.md", "re");
	assert_non_null(file);
	readme[fread(readme, 1, sizeof readme - 1, file)] = 0;
	(void)fclose(file);
	struct cli *cli = START("run", "hello", "--", "echo", "the lock is mine");
	CLI_EXPECT(cli, 0);
	char *shown = check_format("$ holdfast run hello -- echo \"the lock is mine\"\n%s%s",
	                           cli_errors(cli), cli_output(cli));
	assert_non_null(strstr(readme, shown));
	free(shown);
	cli_free(cli);
}

static void the_directory_is_for_the_user_only(void **state)
{
	(void)state;
	struct stat info;
	CALL(0, "ping", "--url", "embedded:");
	assert_int_equal(stat(folder, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0700);
	CALL(0, "embedded", "stop");
	assert_int_equal(chmod(folder, 0755), 0);
	CALL(78, "ping", "--url", "embedded:");
	assert_int_equal(chmod(folder, 0700), 0);
}

static void simultaneous_first_uses_start_one_server(void **state)
{
	(void)state;
	struct cli *crowd[CROWD];
	for (int i = 0; i < CROWD; i++)
		crowd[i] = START("run", "--url", "embedded:", "x", "--", "true");
	for (int i = 0; i < CROWD; i++) {
		CLI_EXPECT(crowd[i], 0);
		cli_free(crowd[i]);
	}
	/* Two servers would have logged two starts in one file. */
	char *line =
		check_format("grep -c 'Ready to accept\\|ready to accept' %s/server.log", folder);
	struct cli *cli = cli_start_program(NULL, (const char *const[]){"sh", "-c", line, NULL});
	CLI_EXPECT(cli, 0);
	assert_int_equal(atoi(cli_output(cli)), 1);
	cli_free(cli);
	free(line);
}

/* With -F the lock stays until its lease expires, and no process is left to restart the server. */
static void leave_a_lock(void)
{
	CALL(0, "run", "--url", "embedded:", "-F", "--lease", "60", "x", "--", "true");
}

static void a_killed_server_is_started_again_with_its_locks(void **state)
{
	(void)state;
	leave_a_lock();
	pid_t pid = server_pid();
	assert_int_equal(kill(pid, SIGKILL), 0);
	WAIT_UNTIL(!cli_is_alive(pid), CLI_SOON_MS);
	CALL(1, "embedded", "status");
	/* The socket of the dead server still exists. */
	char *socket = check_format("%s/redis.sock", folder);
	assert_int_equal(access(socket, F_OK), 0);
	free(socket);
	CALL(0, "who", "--url", "embedded:", "x");
	assert_true(server_pid() != pid);
}

static void locks_survive_a_stop(void **state)
{
	(void)state;
	leave_a_lock();
	CALL(0, "embedded", "stop");
	CALL(0, "who", "--url", "embedded:", "x");
}

static void the_server_has_its_own_session_and_descriptors(void **state)
{
	(void)state;
	struct cli *cli = START("ping", "--url", "embedded:");
	CLI_EXPECT(cli, 0);
	pid_t pid = server_pid();
	assert_int_not_equal(getsid(pid), getsid(0));
	assert_int_not_equal(getsid(pid), cli->pid);
	cli_free(cli);
	char *path = check_format("/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		char *link = check_format("%s/%s", path, entry->d_name);
		char target[256] = "";
		(void)!readlink(link, target, sizeof target - 1);
		if (strstr(target, "memfd:") || strncmp(target, "/dev/pts", 8) == 0)
			fail_msg("the server has our %s", target);
		free(link);
	}
	closedir(dir);
	free(path);
}

static void a_path_too_long_for_a_socket_works(void **state)
{
	(void)state;
	char *wide = check_format("%s-%0120d", folder, 0);
	free(folder);
	folder = wide;
	CALL(0, "run", "--url", "embedded:", "x", "--", "true");
	assert_true(server_pid() > 0);
}

static void other_arguments_are_64(void **state)
{
	(void)state;
	CALL(64, "embedded");
	CALL(64, "embedded", "start");
	CALL(64, "embedded", "status", "stop");
	CALL(64, "embedded", "--url", "embedded:", "status");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, make_folder, stop_server)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(the_first_use_starts_the_server_and_stop_ends_it),
		STORY(using_the_private_server_is_announced_in_one_line),
		STORY(the_readme_shows_what_the_first_use_prints),
		STORY(the_directory_is_for_the_user_only),
		STORY(simultaneous_first_uses_start_one_server),
		STORY(a_killed_server_is_started_again_with_its_locks),
		STORY(locks_survive_a_stop),
		STORY(the_server_has_its_own_session_and_descriptors),
		STORY(a_path_too_long_for_a_socket_works),
		STORY(other_arguments_are_64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
