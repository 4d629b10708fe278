/*
 * The command on a real terminal: Ctrl-C, Ctrl-Z, job control of a shell, and the line while
 * waiting.
 */
#include "cli/cli.h"

#include <signal.h>

#define CTRL_C "\003"
#define CTRL_D "\004"
#define CTRL_Z "\032"

/* Starts a shell with job control and a unique prompt. */
static struct cli_terminal *start_shell(void)
{
	static const char *const argv[] = {"bash",        "--norc", "--noprofile",
	                                   "--noediting", "-i",     NULL};
	if (access("/bin/bash", X_OK))
		check_skip("there is no bash");
	struct cli_terminal *shell = cli_terminal_start(cli_url(), argv);
	char line[512];
	snprintf(line, sizeof line, "PS1='ready''> '; H='%s'\n", cli_path());
	cli_terminal_type(shell, line);
	CLI_WAIT_TERMINAL(shell, "ready> ");
	return shell;
}

static void type_line(struct cli_terminal *shell, const char *line)
{
	cli_terminal_clear(shell);
	cli_terminal_type(shell, line);
	cli_terminal_type(shell, "\n");
}

/* Waits for the prompt that follows what was typed last. */
static void wait_prompt(struct cli_terminal *shell)
{
	CLI_WAIT_TERMINAL(shell, "ready> ");
}

/*
 * Waits for a line that begins with this word, and returns the number that follows. Where the lock
 * was waited for, the line begins after the sequence that has erased the message about it.
 */
static pid_t shown_after(struct cli_terminal *shell, const char *word)
{
	char *first = check_format("\n%s", word);
	char *erased = check_format("\033[K%s", word);
	const char *at = NULL;
	WAIT_UNTIL(((at = strstr(cli_terminal_text(shell), first)) ||
	            (at = strstr(cli_terminal_text(shell), erased))) &&
	                   strchr(at + 1, '\n'),
	           CLI_SOON_MS);
	free(first);
	free(erased);
	return atoi(strstr(at, word) + strlen(word));
}

static void end_shell(struct cli_terminal *shell)
{
	type_line(shell, "exit 0");
	assert_int_equal(cli_terminal_wait(shell, CLI_SOON_MS), 0);
	cli_terminal_free(shell);
}

/* ---- Ctrl-C ---- */

static void ctrl_c_ends_the_command(void **state)
{
	(void)state;
	struct cli_terminal *shell = start_shell();
	type_line(shell, "$H run x -- sh -c 'echo pid=$$; exec sleep 60'; echo status=$?");
	pid_t pid = shown_after(shell, "pid=");
	WAIT_UNTIL(cli_terminal_foreground(shell) == pid, CLI_SOON_MS);
	cli_terminal_type(shell, CTRL_C);
	CLI_WAIT_TERMINAL(shell, "status=130");
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	end_shell(shell);
}

static void ctrl_c_reaches_the_command_once(void **state)
{
	static const char *const lines[] = {
		/* in a group of its own, and in that of a pipeline */
		"$H run x -- sh -c 'trap \"echo in\"t INT; echo pid=$$; while ! read l; do :; "
		"done; "
		"exit 7'; echo status=$?",
		"$H run x -- sh -c 'trap \"echo in\"t INT; echo pid=$$; while ! read l; do :; "
		"done; "
		"exit 7' | sh -c 'trap \"\" INT; exec cat'; echo status=${PIPESTATUS[0]}",
	};
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct cli_terminal *shell = start_shell();
		type_line(shell, lines[i % 2]);
		(void)shown_after(shell, "pid=");
		cli_terminal_type(shell, CTRL_C);
		CLI_WAIT_TERMINAL(shell, "int\r\n");
		cli_terminal_type(shell, "go\n");
		CLI_WAIT_TERMINAL(shell, "status=7");
		assert_int_equal(cli_count(cli_terminal_text(shell), "int\r\n"), 1);
		end_shell(shell);
	}
}

static void ctrl_c_ends_a_waiter(void **state)
{
	(void)state;
	struct cli *holder = cli_hold("x");
	struct cli_terminal *shell = start_shell();
	type_line(shell, "$H run x -- true; echo status=$?");
	CLI_WAIT_TERMINAL(shell, "waiting for x");
	cli_terminal_type(shell, CTRL_C);
	CLI_WAIT_TERMINAL(shell, "status=130");
	end_shell(shell);
	cli_free(holder);
}

/* ---- job control ---- */

static void a_stopped_job_continues_in_the_foreground(void **state)
{
	(void)state;
	struct cli_terminal *shell = start_shell();
	type_line(shell, "$H run x -- sh -c 'echo pid=$$; exec cat'; echo status=$?");
	pid_t pid = shown_after(shell, "pid=");
	for (int i = 0; i < 2; i++) {
		cli_terminal_clear(shell);
		cli_terminal_type(shell, CTRL_Z);
		CLI_WAIT_TERMINAL(shell, "Stopped");
		wait_prompt(shell);
		assert_int_equal(cli_process_state(pid), 'T');
		assert_int_equal(cli_terminal_foreground(shell), shell->pid);
		type_line(shell, "fg");
		WAIT_UNTIL(cli_terminal_foreground(shell) == pid, CLI_SOON_MS);
		type_line(shell, "hello");
		CLI_WAIT_TERMINAL(shell, "hello\r\nhello\r\n");
	}
	cli_terminal_type(shell, CTRL_D);
	wait_prompt(shell);
	assert_int_equal(cli_terminal_foreground(shell), shell->pid);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	end_shell(shell);
}

/*
 * The command is not a shell, because a shell that waits for its child to execute cannot be
 * stopped.
 */
static void a_background_job_leaves_the_terminal_alone(void **state)
{
	(void)state;
	struct cli_terminal *shell = start_shell();
	type_line(shell, "$H run x -- sh -c 'echo pid=$$; exec sleep 60'");
	pid_t pid = shown_after(shell, "pid=");
	cli_terminal_type(shell, CTRL_Z);
	CLI_WAIT_TERMINAL(shell, "Stopped");
	type_line(shell, "bg");
	WAIT_UNTIL(cli_process_state(pid) == 'S', CLI_SOON_MS);
	assert_int_equal(cli_terminal_foreground(shell), shell->pid);
	type_line(shell, "fg");
	WAIT_UNTIL(cli_terminal_foreground(shell) == pid, CLI_SOON_MS);
	cli_terminal_type(shell, CTRL_Z);
	CLI_WAIT_TERMINAL(shell, "Stopped");
	type_line(shell, "bg; kill %1; wait; echo over");
	CLI_WAIT_TERMINAL(shell, "\nover");
	assert_int_equal(cli_terminal_foreground(shell), shell->pid);
	end_shell(shell);
}

static void a_job_stopped_for_longer_than_its_lock_is_killed(void **state)
{
	(void)state;
	struct cli_terminal *shell = start_shell();
	type_line(shell, "$H run --watchdog 1s x -- sh -c 'echo pid=$$; exec cat'");
	pid_t pid = shown_after(shell, "pid=");
	cli_terminal_type(shell, CTRL_Z);
	CLI_WAIT_TERMINAL(shell, "Stopped");
	WAIT_UNTIL(!cli_is_alive(pid), CLI_SOON_MS);
	type_line(shell, "fg; echo status=$?");
	CLI_WAIT_TERMINAL(shell, "status=80");
	assert_int_equal(cli_terminal_foreground(shell), shell->pid);
	end_shell(shell);
}

static void a_pipeline_stays_one_group_in_the_foreground(void **state)
{
	(void)state;
	struct cli_terminal *shell = start_shell();
	type_line(shell, "$H run x -- sh -c 'echo group=$(cut -d\" \" -f5 /proc/self/stat); "
	                 "exec sleep 60' | cat; echo status=${PIPESTATUS[0]}");
	pid_t group = shown_after(shell, "group=");
	assert_int_equal(cli_terminal_foreground(shell), group);
	assert_int_equal(getpgid(group), group);
	cli_terminal_type(shell, CTRL_Z);
	CLI_WAIT_TERMINAL(shell, "Stopped");
	type_line(shell, "fg");
	WAIT_UNTIL(cli_terminal_foreground(shell) == group, CLI_SOON_MS);
	WAIT_UNTIL(cli_process_state(group) == 'S', CLI_SOON_MS);
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "x", NULL), 1);
	cli_terminal_type(shell, CTRL_C);
	wait_prompt(shell);
	WAIT_UNTIL(raw_integer(cli_raw, "DBSIZE", NULL) == 0, CLI_SOON_MS);
	end_shell(shell);
}

/* Without a shell with job control in the session, nobody could continue them. */
static void ctrl_z_does_nothing_without_job_control(void **state)
{
	(void)state;
	const char *const argv[] = {cli_path(), "run", "x", "--", "cat", NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	cli_terminal_type(terminal, "one\n");
	CLI_WAIT_TERMINAL(terminal, "one\r\none\r\n");
	cli_terminal_type(terminal, CTRL_Z);
	CLI_WAIT_TERMINAL(terminal, "^Z");
	cli_terminal_type(terminal, "two\n");
	CLI_WAIT_TERMINAL(terminal, "two\r\ntwo\r\n");
	cli_terminal_type(terminal, CTRL_D);
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
	cli_terminal_free(terminal);
}

static void a_script_is_stopped_with_its_command(void **state)
{
	(void)state;
	struct cli_terminal *shell = start_shell();
	type_line(shell, "sh -c \"$H run x -- sh -c 'echo pid=\\$\\$; exec cat'; echo over=\\$?\"");
	pid_t pid = shown_after(shell, "pid=");
	cli_terminal_type(shell, CTRL_Z);
	CLI_WAIT_TERMINAL(shell, "Stopped");
	assert_int_equal(cli_process_state(pid), 'T');
	type_line(shell, "fg");
	WAIT_UNTIL(cli_terminal_foreground(shell) == pid, CLI_SOON_MS);
	cli_terminal_type(shell, CTRL_C);
	CLI_WAIT_TERMINAL(shell, "over=130");
	end_shell(shell);
}

static void ctrl_c_reaches_the_orphans_of_the_command(void **state)
{
	(void)state;
	struct cli_terminal *shell = start_shell();
	type_line(shell, "$H run x -- bash -mc 'sleep 60 & echo pid=$$; exit 5'; echo status=$?");
	pid_t pid = shown_after(shell, "pid=");
	WAIT_UNTIL(!cli_process_state(pid), CLI_SOON_MS);
	WAIT_UNTIL(cli_terminal_foreground(shell) != pid, CLI_SOON_MS);
	CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
	cli_terminal_type(shell, CTRL_C);
	CLI_WAIT_TERMINAL(shell, "status=5");
	end_shell(shell);
}

/* A script has no job control, so holdfast must give the terminal back. */
static void a_script_gets_its_terminal_back(void **state)
{
	static const char *const commands[] = {"true", "no-such-program", "sh -c 'kill -9 $$'"};
	(void)state;
	for (int i = 0; i < 3; i++) {
		char script[512];
		snprintf(script, sizeof script, "%s run x -- %s; read line; echo [$line]",
		         cli_path(), commands[i]);
		const char *const argv[] = {"sh", "-c", script, NULL};
		struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
		cli_terminal_type(terminal, "typed\n");
		CLI_WAIT_TERMINAL(terminal, "[typed]");
		assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
		cli_terminal_free(terminal);
	}
}

static void without_a_command_ctrl_d_releases(void **state)
{
	(void)state;
	const char *const argv[] = {cli_path(), "run", "x", NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	cli_wait_held("x");
	cli_terminal_type(terminal, CTRL_D);
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	cli_terminal_free(terminal);
}

/* ---- the line while waiting ---- */

static void the_line_shows_the_holder_and_is_redrawn_in_place(void **state)
{
	(void)state;
	struct cli *holder =
		cli_start(cli_url(), "run", "x", "--", "sh", "-c", "echo up; cat", NULL);
	CLI_WAIT_OUTPUT(holder, "up");
	char *wanted = check_format("held by sh (pid %d on ", (int)holder->pid);
	const char *const argv[] = {cli_path(), "run", "x", "--", "echo", "mine", NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, wanted);
	CLI_WAIT_TERMINAL(terminal, "waiting for x, 2 s");
	const char *text = cli_terminal_text(terminal);
	assert_null(strchr(text, '\n'));
	assert_true(cli_count(text, "\r\033[K") >= 3);
	assert_non_null(strstr(text, "\033[2m"));
	cli_terminal_clear(terminal);
	cli_close_input(holder);
	CLI_WAIT_TERMINAL(terminal, "mine");
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
	assert_non_null(strstr(cli_terminal_text(terminal), "\r\033[Kmine"));
	CLI_EXPECT(holder, 0);
	cli_terminal_free(terminal);
	cli_free(holder);
	free(wanted);
}

static void the_line_fits_the_terminal_and_respects_no_color(void **state)
{
	char name[201];
	(void)state;
	memset(name, 'n', 200);
	name[200] = 0;
	struct cli *holder = cli_hold(name);
	const char *const argv[] = {"env", "NO_COLOR=1", cli_path(), "run", name,
	                            "--",  "echo",       "mine",     NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, "waiting for nnn");
	cli_close_input(holder);
	CLI_WAIT_TERMINAL(terminal, "mine");
	const char *text = cli_terminal_text(terminal);
	assert_null(strstr(text, "\033[2m"));
	assert_int_equal(strspn(strstr(text, "nnn"), "n"), 79 - strlen("holdfast: waiting for "));
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
	cli_terminal_free(terminal);
	CLI_EXPECT(holder, 0);
	cli_free(holder);
}

static void a_stopped_server_does_not_delay_ctrl_c(void **state)
{
	(void)state;
	struct cli *holder = cli_hold("x");
	const char *const argv[] = {cli_path(), "run", "x", "--", "true", NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, "held by");
	test_server_freeze(cli_server);
	CLI_WAIT_TERMINAL(terminal, ", 2 s");
	long long begun = test_now_ms();
	cli_terminal_type(terminal, CTRL_C);
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 130);
	/* A query in flight is not waited for, but an ask for the lock is, for at most 3 s. */
	assert_in_range(test_now_ms() - begun, 0, 4500);
	test_server_thaw(cli_server);
	cli_terminal_free(terminal);
	cli_free(holder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(ctrl_c_ends_the_command),
		CLI_STORY(ctrl_c_reaches_the_command_once),
		CLI_STORY(ctrl_c_ends_a_waiter),
		CLI_STORY(a_stopped_job_continues_in_the_foreground),
		CLI_STORY(a_background_job_leaves_the_terminal_alone),
		CLI_STORY(a_job_stopped_for_longer_than_its_lock_is_killed),
		CLI_STORY(a_pipeline_stays_one_group_in_the_foreground),
		CLI_STORY(ctrl_z_does_nothing_without_job_control),
		CLI_STORY(a_script_is_stopped_with_its_command),
		CLI_STORY(ctrl_c_reaches_the_orphans_of_the_command),
		CLI_STORY(a_script_gets_its_terminal_back),
		CLI_STORY(without_a_command_ctrl_d_releases),
		CLI_STORY(the_line_shows_the_holder_and_is_redrawn_in_place),
		CLI_STORY(the_line_fits_the_terminal_and_respects_no_color),
		CLI_STORY(a_stopped_server_does_not_delay_ctrl_c),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
