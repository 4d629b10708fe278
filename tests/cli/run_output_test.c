/*
 * Nobody takes what run prints: the lock is released and the command killed in time all the same.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>

#include "support/stuck.h"

/* A lease of 2 s is renewed every 667 ms. */
#define WATCHDOG    "4s"
#define LEASE_MS    4000
#define INTERVAL_MS 1333

/* A generous limit for what takes next to no time. Blocked output would last forever. */
#define AT_ONCE_MS 3000

#define CTRL_S "\023"

/* Descriptors with one digit, which a shell can name; also in the processes that we start. */
enum { FULL_ERRORS = 8, FULL_STATUS = 9 };

static struct stuck errors, status;

/* Makes sure that nothing else gets these numbers. */
static void reserve_descriptors(void)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(nowhere >= 0);
	assert_int_equal(dup2(nowhere, FULL_ERRORS), FULL_ERRORS);
	assert_int_equal(dup2(nowhere, FULL_STATUS), FULL_STATUS);
	if (nowhere != FULL_ERRORS && nowhere != FULL_STATUS)
		(void)close(nowhere);
}

static int fill_pipes(void **state)
{
	errors = stuck_pipe();
	status = stuck_pipe();
	if (dup2(errors.fd, FULL_ERRORS) < 0 || dup2(status.fd, FULL_STATUS) < 0)
		return -1;
	return cli_flush_server(state);
}

static int close_pipes(void **state)
{
	(void)state;
	reserve_descriptors();
	stuck_close(&errors);
	stuck_close(&status);
	return 0;
}

/* The outputs that nobody reads. */
static const struct full {
	const char *redirect;
	const char *options;
} fulls[] = {
	{"2>&8", "--json --verbose"},
	{"", "--json --verbose --status-fd 9"},
	{"2>&8", "--json --verbose --status-fd 9"},
	{"2>&8", "--verbose"},
};
#define FULLS (sizeof fulls / sizeof *fulls)

/* Starts a run with such outputs; `rest` is the rest of its command line. */
static struct cli *start(const struct full *full, const char *rest)
{
	char *script = check_format("exec %s run --watchdog " WATCHDOG " %s %s %s", cli_path(),
	                            full->options, rest, full->redirect);
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct cli *cli = cli_start_program(cli_url(), argv);
	free(script);
	return cli;
}

#define UNTIL_KILLED "x -- sh -c 'trap \"\" TERM; echo $$; while :; do sleep 60; done'"

static void expect_end(struct cli *cli, int wanted, long long limit_ms)
{
	long long begun = test_now_ms();
	CLI_EXPECT(cli, wanted);
	assert_in_range(test_now_ms() - begun, 0, limit_ms);
	cli_free(cli);
}

static void a_signal_ends_the_run_and_releases_the_lock(void **state)
{
	(void)state;
	for (size_t i = 0; i < FULLS; i++) {
		struct cli *cli = start(&fulls[i], "x -- sh -c 'echo $$; exec sleep 60'");
		(void)cli_command_pid(cli);
		assert_int_equal(raw_integer(cli_raw, "EXISTS", "x", NULL), 1);
		assert_int_equal(kill(cli->pid, SIGTERM), 0);
		expect_end(cli, 143, AT_ONCE_MS);
		assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	}
}

static void the_lock_is_free_when_the_command_has_ended(void **state)
{
	(void)state;
	for (size_t i = 0; i < FULLS; i++) {
		expect_end(start(&fulls[i], "x -- sh -c 'exit 7'"), 7, AT_ONCE_MS);
		expect_end(start(&fulls[i], "x -- no-such-program"), 127, AT_ONCE_MS);
		assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	}
}

static void a_lost_lock_kills_the_command_in_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < FULLS; i++) {
		struct cli *cli = start(&fulls[i], UNTIL_KILLED);
		pid_t pid = cli_command_pid(cli);
		raw_ok(cli_raw, "FLUSHALL", NULL);
		WAIT_UNTIL(!cli_is_alive(pid), INTERVAL_MS + AT_ONCE_MS);
		expect_end(cli, 80, AT_ONCE_MS);
	}
}

static void the_command_is_dead_before_the_lock_expires(void **state)
{
	(void)state;
	for (size_t i = 0; i < FULLS; i++) {
		struct cli *cli = start(&fulls[i], UNTIL_KILLED);
		pid_t pid = cli_command_pid(cli);
		test_server_freeze(cli_server);
		long long frozen_at = test_now_ms();
		long long alive_at = cli_last_alive(pid);
		test_server_thaw(cli_server);
		assert_in_range(alive_at - frozen_at, 0, LEASE_MS);
		expect_end(cli, 80, CLI_SOON_MS);
	}
}

static void a_signal_ends_a_waiter(void **state)
{
	(void)state;
	struct cli *holder = cli_hold("x");
	for (size_t i = 0; i < FULLS; i++) {
		struct cli *cli = start(&fulls[i], "x -- true");
		WAIT_UNTIL(cli_guard(cli) > 0, CLI_SOON_MS);
		/* By then it has printed the event "waiting". */
		cli_let_pass(300);
		assert_int_equal(kill(cli->pid, SIGTERM), 0);
		expect_end(cli, 143, AT_ONCE_MS);
	}
	cli_free(holder);
}

static void no_fork_becomes_the_command(void **state)
{
	(void)state;
	const char *const argv[] = {"sh", "-c",
	                            "exec $0 run -F --lease 5s --json --verbose x -- sh -c 'exit "
	                            "7' 2>&8",
	                            cli_path(), NULL};
	expect_end(cli_start_program(cli_url(), argv), 7, AT_ONCE_MS);
}

static void events_arrive_when_someone_reads_again(void **state)
{
	char text[4096];
	(void)state;
	struct cli *cli = start(&fulls[1], "x -- sh -c 'echo $$; cat'");
	(void)cli_command_pid(cli);
	stuck_drain(&status);
	WAIT_UNTIL((stuck_read(&status, text, sizeof text),
	            strstr(text, "{\"event\":\"acquired\"") != NULL),
	           CLI_SOON_MS); /* maybe after "waiting", on a busy machine */
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	stuck_read(&status, text, sizeof text);
	assert_non_null(strstr(text, "\"event\":\"exit\""));
	assert_non_null(strstr(text, "\"event\":\"released\""));
	assert_null(strstr(text, "dropped"));
	cli_free(cli);
}

/* Other processes share the file, and rely on its flags. */
static void shared_output_does_not_become_nonblocking(void **state)
{
	(void)state;
	for (size_t i = 0; i < FULLS; i++)
		expect_end(start(&fulls[i], "x -- true"), 0, AT_ONCE_MS);
	assert_int_equal(fcntl(FULL_ERRORS, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(FULL_STATUS, F_GETFL) & O_NONBLOCK, 0);
}

/* ---- a terminal that was stopped with Ctrl-S ---- */

static void a_stopped_terminal_does_not_delay_the_end(void **state)
{
	(void)state;
	const char *const argv[] = {cli_path(),  "run", "--json",
	                            "--verbose", "x",   "--",
	                            "sh",        "-c",  "echo up; while :; do sleep 60; done",
	                            NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, "up");
	cli_terminal_type(terminal, CTRL_S);
	assert_int_equal(kill(terminal->pid, SIGTERM), 0);
	assert_int_equal(cli_terminal_wait(terminal, AT_ONCE_MS), 143);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	cli_terminal_free(terminal);
}

static void a_stopped_terminal_does_not_delay_a_waiter(void **state)
{
	(void)state;
	struct cli *holder = cli_hold("x");
	const char *const argv[] = {cli_path(), "run", "x", "--", "sh", "-c", "exit 7", NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, "waiting for x");
	cli_terminal_type(terminal, CTRL_S);
	/* Two more lines would be drawn in this time. */
	cli_let_pass(2500);
	cli_close_input(holder);
	CLI_EXPECT(holder, 0);
	assert_int_equal(cli_terminal_wait(terminal, AT_ONCE_MS), 7);
	cli_terminal_free(terminal);
	cli_free(holder);
}

#define FULL_STORY(name) cmocka_unit_test_setup_teardown(name, fill_pipes, close_pipes)

int main(void)
{
	reserve_descriptors();
	const struct CMUnitTest tests[] = {
		FULL_STORY(a_signal_ends_the_run_and_releases_the_lock),
		FULL_STORY(the_lock_is_free_when_the_command_has_ended),
		FULL_STORY(a_lost_lock_kills_the_command_in_time),
		FULL_STORY(the_command_is_dead_before_the_lock_expires),
		FULL_STORY(a_signal_ends_a_waiter),
		FULL_STORY(no_fork_becomes_the_command),
		FULL_STORY(events_arrive_when_someone_reads_again),
		FULL_STORY(shared_output_does_not_become_nonblocking),
		CLI_STORY(a_stopped_terminal_does_not_delay_the_end),
		CLI_STORY(a_stopped_terminal_does_not_delay_a_waiter),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
