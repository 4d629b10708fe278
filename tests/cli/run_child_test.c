/* What the command is given, and what becomes of all that it started. */
#include "cli/cli.h"
#include "cli/family.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/temp.h"

/* ---- nothing of ours leaks into it ---- */

/* What a program prints when the shell starts it, directly or under a lock. */
static char *printed_by(const char *line, bool under_lock)
{
	char text[1024];
	const char *const argv[] = {"sh", "-c", text, NULL};
	snprintf(text, sizeof text, line, under_lock ? cli_path() : "",
	         under_lock ? "run x --" : "");
	struct cli *cli = cli_start_program(cli_url(), argv);
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	char *copy = check_format("%s", cli_output(cli));
	cli_free(cli);
	return copy;
}

static void expect_same(const char *line)
{
	char *plain = printed_by(line, false);
	char *locked = printed_by(line, true);
	assert_true(strlen(plain) > 2);
	assert_string_equal(plain, locked);
	free(plain);
	free(locked);
}

static void the_command_inherits_the_callers_signals(void **state)
{
	(void)state;
	expect_same("exec %s %s grep -E '^Sig(Blk|Ign|Cgt)|^ShdPnd' /proc/self/status");
	expect_same("trap '' HUP INT USR1 PIPE; exec %s %s grep -E '^Sig[PBIC]' /proc/self/status");
	expect_same("trap '' CHLD; exec %s %s grep -E '^Sig[PBIC]' /proc/self/status");
}

/* The caller may have signals blocked, such as a daemon that forked in a signal handler. */
static void blocked_signals_stay_blocked(void **state)
{
	sigset_t set;
	(void)state;
	const char *const argv[] = {cli_path(),          "run", "x", "grep", "SigBlk",
	                            "/proc/self/status", NULL};
	int pipes[2];
	char text[128] = "";
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		/*
		 * If it ended in a group with stopped servers of other tests, all would get SIGHUP.
		 */
		(void)setsid();
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		sigaddset(&set, SIGTERM);
		(void)sigprocmask(SIG_SETMASK, &set, NULL);
		(void)dup2(pipes[1], 1);
		(void)setenv("HOLDFAST_URL", cli_url(), 1);
		(void)execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(99);
	}
	(void)close(pipes[1]);
	assert_true(read(pipes[0], text, sizeof text - 1) > 0);
	(void)close(pipes[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_string_equal(text, "SigBlk:\t0000000000004800\n");
}

static void the_command_inherits_descriptors_umask_and_directory(void **state)
{
	(void)state;
	expect_same("exec 5</dev/null 7>/dev/null; cd /usr; umask 31; exec %s %s sh -c "
	            "'ls /proc/$$/fd; umask; pwd; ulimit -n'");
}

static void closed_descriptors_stay_closed(void **state)
{
	(void)state;
	expect_same("exec 3>&1 <&- 1>&- 2>&-; %s %s sh -c 'ls /proc/$$/fd >&3'; echo $? >&3");
	const char *const argv[] = {"sh", "-c",
	                            "exec 3>&1 <&- 1>&- 2>&-; $0 run --json --verbose x -- sh -c "
	                            "'sleep 0.1; exit 3'; echo $? >&3",
	                            cli_path(), NULL};
	struct cli *cli = cli_start_program(cli_url(), argv);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "3\n");
	cli_free(cli);
}

static void the_command_inherits_the_environment_except_for_the_lock(void **state)
{
	(void)state;
	expect_same("exec %s %s sh -c 'env | grep -v -E \"^(HOLDFAST_|_=)\" | sort'");
}

static void the_command_inherits_group_and_session_in_a_pipeline(void **state)
{
	(void)state;
	struct cli *cli = cli_call(cli_url(), 0, "run", "x", "--", "sh", "-c",
	                           "cut -d' ' -f5,6 /proc/self/stat", NULL);
	char *wanted = check_format("%d %d\n", (int)cli->pid, (int)cli->pid);
	assert_string_equal(cli_output(cli), wanted);
	free(wanted);
	cli_free(cli);
}

static void fifty_megabytes_pass_through(void **state)
{
	(void)state;
	const char *const argv[] = {"sh", "-c",
	                            "head -c 52428800 /dev/zero | $0 run x -- cat | md5sum; "
	                            "head -c 52428800 /dev/zero | md5sum",
	                            cli_path(), NULL};
	struct cli *cli = cli_start_program(cli_url(), argv);
	CLI_EXPECT(cli, 0);
	const char *text = cli_output(cli);
	const char *second = strchr(text, '\n') + 1;
	assert_memory_equal(text, second, (size_t)(second - text));
	cli_free(cli);
}

/* ---- signals are passed on ---- */

static void a_signal_is_passed_on_once(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGQUIT};
	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct cli *cli = cli_start(
			cli_url(), "run", "x", "--", "sh", "-c",
			"n=0; trap 'n=$((n+1)); echo got $n' TERM INT HUP USR1 QUIT; echo up; "
			"while ! read line; do :; done; echo $n; exit 9",
			NULL);
		CLI_WAIT_OUTPUT(cli, "up");
		assert_int_equal(kill(cli->pid, signals[i]), 0);
		CLI_WAIT_OUTPUT(cli, "got 1");
		assert_int_equal(write(cli->in, "end\n", 4), 4);
		CLI_EXPECT(cli, 9);
		assert_string_equal(cli_output(cli), "up\ngot 1\n1\n");
		cli_free(cli);
	}
}

static void ignored_signals_stay_ignored_while_waiting(void **state)
{
	(void)state;
	const char *const argv[] = {"sh", "-c", "trap '' HUP; exec $0 run x -- echo mine",
	                            cli_path(), NULL};
	struct cli *holder =
		cli_start(cli_url(), "run", "x", "--", "sh", "-c", "echo up; cat", NULL);
	CLI_WAIT_OUTPUT(holder, "up");
	struct cli *waiter = cli_start_program(cli_url(), argv);
	WAIT_UNTIL(cli_guard(waiter) > 0, CLI_SOON_MS);
	assert_int_equal(kill(waiter->pid, SIGHUP), 0);
	cli_close_input(holder);
	CLI_EXPECT(holder, 0);
	CLI_EXPECT(waiter, 0);
	assert_string_equal(cli_output(waiter), "mine\n");
	cli_free(holder);
	cli_free(waiter);
}

/* Not even to a command that would handle it: the caller said that it has no effect. */
static void ignored_signals_are_not_passed_on(void **state)
{
	(void)state;
	const char *const argv[] = {"sh", "-c",
	                            "trap '' HUP; exec $0 run x -- env --default-signal=HUP sh -c "
	                            "'trap \"echo got\" USR1; echo up; while ! read line; do :; "
	                            "done; exit 7'",
	                            cli_path(), NULL};
	struct cli *cli = cli_start_program(cli_url(), argv);
	CLI_WAIT_OUTPUT(cli, "up");
	assert_int_equal(kill(cli->pid, SIGHUP), 0);
	assert_int_equal(kill(cli->pid, SIGUSR1), 0);
	CLI_WAIT_OUTPUT(cli, "got"); /* so the earlier signal would have arrived too */
	assert_int_equal(write(cli->in, "end\n", 4), 4);
	CLI_EXPECT(cli, 7);
	cli_free(cli);
}

static void closed_outputs_do_not_disturb_the_command(void **state)
{
	(void)state;
	const char *const argv[] = {"sh", "-c",
	                            "exec 3>&1; { sleep 0.1; $0 run --json x -- sh -c 'exit 6' "
	                            "2>&1; echo $? >&3; } | true",
	                            cli_path(), NULL};
	struct cli *cli = cli_start_program(cli_url(), argv);
	CLI_EXPECT(cli, 0);
	WAIT_UNTIL(strcmp(cli_output(cli), "6\n") == 0, CLI_SOON_MS);
	cli_free(cli);
}

/* ---- the tree ---- */

static struct cli *start_family(const char *watchdog)
{
	return cli_start(cli_url(), "run", "--watchdog", watchdog, "x", "--", "sh", "-c", FAMILY,
	                 NULL);
}

static void all_descendants_are_killed_when_the_lock_is_lost(void **state)
{
	(void)state;
	struct cli *cli = start_family("2s");
	struct family family = read_family(cli);
	raw_ok(cli_raw, "FLUSHALL", NULL);
	CLI_EXPECT(cli, 80);
	assert_true(is_family_dead(&family));
	assert_null(strstr(cli_output(cli), "awake"));
	cli_free(cli);
}

static void all_descendants_are_killed_when_holdfast_is_killed(void **state)
{
	(void)state;
	struct cli *cli = start_family("30s");
	struct family family = read_family(cli);
	assert_int_equal(kill(cli->pid, SIGKILL), 0);
	WAIT_UNTIL(is_family_dead(&family), 2000);
	CLI_EXPECT(cli, 137);
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "x", NULL), 1);
	cli_free(cli);
}

static void all_descendants_are_killed_when_the_guard_is_killed(void **state)
{
	(void)state;
	struct cli *cli = start_family("30s");
	struct family family = read_family(cli);
	assert_int_equal(kill(cli_guard(cli), SIGKILL), 0);
	CLI_EXPECT(cli, 80);
	assert_true(is_family_dead(&family));
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "x", NULL), 0);
	assert_non_null(strstr(cli_errors(cli), "guard"));
	cli_free(cli);
}

/*
 * Both are stopped first, so that neither reacts to the death of the other. The guard dies first:
 * if its parent died, the kernel would continue it.
 */
static void the_command_dies_with_holdfast_and_the_guard(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "x", "--", "sh", "-c",
	                            "trap '' TERM HUP; echo $$; exec sleep 60", NULL);
	pid_t pid = cli_command_pid(cli), guard = cli_guard(cli);
	assert_int_equal(kill(cli->pid, SIGSTOP), 0);
	assert_int_equal(kill(guard, SIGSTOP), 0);
	WAIT_UNTIL(cli_process_state(cli->pid) == 'T' && cli_process_state(guard) == 'T',
	           CLI_SOON_MS);
	assert_true(cli_is_alive(pid));
	assert_int_equal(kill(guard, SIGKILL), 0);
	assert_int_equal(kill(cli->pid, SIGKILL), 0);
	CLI_EXPECT(cli, 137);
	WAIT_UNTIL(!cli_is_alive(pid), CLI_SOON_MS);
	cli_free(cli);
}

/* The time that the guard has for killing is a part of the lease, and must suffice under load. */
static void the_guard_kills_in_time_while_holdfast_is_stopped(void **state)
{
	(void)state;
	struct cli *cli = start_family("6s");
	struct family family = read_family(cli);
	assert_int_equal(kill(cli->pid, SIGSTOP), 0);
	bool was_held = true;
	while (!is_family_dead(&family)) {
		was_held = raw_integer(cli_raw, "EXISTS", "x", NULL) == 1;
		if (!was_held && !is_family_dead(&family))
			fail_msg("the lock is free, and the command runs");
		test_pause();
	}
	assert_true(was_held);
	assert_int_equal(kill(cli->pid, SIGCONT), 0);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

static void a_stopped_guard_does_not_save_the_command(void **state)
{
	(void)state;
	struct cli *cli = start_family("2s");
	struct family family = read_family(cli);
	pid_t guard = cli_guard(cli);
	assert_int_equal(kill(guard, SIGSTOP), 0);
	raw_ok(cli_raw, "FLUSHALL", NULL);
	WAIT_UNTIL(is_family_dead(&family), 5000);
	assert_int_equal(kill(guard, SIGCONT), 0);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

static void a_command_that_handles_sigterm_gets_its_grace(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "--lease", "3s", "--grace", "2s", "x", "--", "sh", "-c",
	                  "trap 'echo tidied; exit 0' TERM; echo up; "
	                  "while :; do sleep 0.05; done",
	                  NULL);
	CLI_EXPECT(cli, 80);
	assert_string_equal(cli_output(cli), "up\ntidied\n");
	cli_free(cli);
}

/* An embedded server is our descendant like the command, but does not belong to it. */
static void the_embedded_server_is_not_killed(void **state)
{
	(void)state;
	char *dir = temp_dir_make();
	char *variable = check_format("HOLDFAST_EMBEDDED_DIR=%s/e", dir);
	const char *const variables[] = {variable, NULL};
	const char *const run[] = {"run", "--url", "embedded:",         "x", "--",
	                           "sh",  "-c",    "echo up; sleep 60", NULL};
	for (int kill_guard = 0; kill_guard < 2; kill_guard++) {
		struct cli *cli = cli_start_env(NULL, variables, run);
		CLI_WAIT_OUTPUT(cli, "up");
		assert_int_equal(kill(kill_guard ? cli_guard(cli) : cli->pid,
		                      kill_guard ? SIGKILL : SIGTERM),
		                 0);
		CLI_EXPECT(cli, kill_guard ? 80 : 143);
		cli_free(cli);
		cli = cli_start_env(NULL, variables,
		                    (const char *const[]){"embedded", "status", NULL});
		CLI_EXPECT(cli, 0);
		assert_null(strstr(cli_output(cli), "not running"));
		cli_free(cli);
		cli = cli_start_env(NULL, variables,
		                    (const char *const[]){"embedded", "stop", NULL});
		CLI_EXPECT(cli, 0);
		cli_free(cli);
	}
	free(variable);
	temp_dir_remove(dir);
}

/* ---- after the command has ended ---- */

static void the_lock_is_held_until_the_last_process_has_ended(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "x", "--", "sh", "-c",
	                            "(trap '' TERM; while [ ! -e /proc/$$/nothing ] && kill -0 $$ "
	                            "2>/dev/null; do sleep 0.02; done; echo alone; sleep 0.5) & "
	                            "exit 4",
	                            NULL);
	CLI_WAIT_OUTPUT(cli, "alone");
	CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
	CLI_EXPECT(cli, 4);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	cli_free(cli);
}

static void close_releases_at_once_and_lets_children_continue(void **state)
{
	static const char *const names[] = {"-o", "--close"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cli *cli = cli_start(cli_url(), "run", names[i], "x", "--", "sh", "-c",
		                            "sleep 60 & echo $!; exit 4", NULL);
		CLI_EXPECT(cli, 4);
		assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
		pid_t pid = atoi(cli_output(cli));
		assert_true(cli_is_alive(pid));
		assert_int_equal(kill(pid, SIGKILL), 0);
		cli_free(cli);
	}
}

static void no_process_is_left_at_the_end(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "x", "--", "sh", "-c", "echo up; cat", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	pid_t guard = cli_guard(cli);
	assert_true(guard > 0);
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	WAIT_UNTIL(!cli_is_alive(guard), 1000);
	cli_free(cli);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(the_command_inherits_the_callers_signals),
		CLI_STORY(blocked_signals_stay_blocked),
		CLI_STORY(the_command_inherits_descriptors_umask_and_directory),
		CLI_STORY(closed_descriptors_stay_closed),
		CLI_STORY(the_command_inherits_the_environment_except_for_the_lock),
		CLI_STORY(the_command_inherits_group_and_session_in_a_pipeline),
		CLI_STORY(fifty_megabytes_pass_through),
		CLI_STORY(a_signal_is_passed_on_once),
		CLI_STORY(ignored_signals_stay_ignored_while_waiting),
		CLI_STORY(ignored_signals_are_not_passed_on),
		CLI_STORY(closed_outputs_do_not_disturb_the_command),
		CLI_STORY(all_descendants_are_killed_when_the_lock_is_lost),
		CLI_STORY(all_descendants_are_killed_when_holdfast_is_killed),
		CLI_STORY(all_descendants_are_killed_when_the_guard_is_killed),
		CLI_STORY(the_command_dies_with_holdfast_and_the_guard),
		CLI_STORY(the_guard_kills_in_time_while_holdfast_is_stopped),
		CLI_STORY(a_stopped_guard_does_not_save_the_command),
		CLI_STORY(a_command_that_handles_sigterm_gets_its_grace),
		CLI_STORY(the_embedded_server_is_not_killed),
		CLI_STORY(the_lock_is_held_until_the_last_process_has_ended),
		CLI_STORY(close_releases_at_once_and_lets_children_continue),
		CLI_STORY(no_process_is_left_at_the_end),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
