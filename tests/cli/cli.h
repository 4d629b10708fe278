/* Drives the real command: starts it, signals it, and checks its output and its exit status. */
#ifndef TESTS_CLI_CLI_H
#define TESTS_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/raw.h"
#include "support/server.h"

/* Only a broken test waits that long. */
#define CLI_SOON_MS 30000

/* A server that does not exist. */
#define CLI_NOWHERE "redis://127.0.0.1:1"

/* The id of a Java client, as Redisson and Curator make them. */
#define CLI_JAVA "0f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a"

/* A command that ignores SIGTERM, prints its pid, and lasts until its input ends. */
#define CLI_UNTIL_INPUT_ENDS "trap '' TERM; echo $$; cat >/dev/null"

/* All commands of holdfast. */
#define CLI_COMMANDS 14
extern const char *const cli_commands[CLI_COMMANDS];

/* The path of the command under test. */
const char *cli_path(void);

/* Whether the command is built with a sanitizer, which costs it time and memory. */
bool cli_is_slow(void);

/* ---- one run of the command ---- */

/* It runs in a session of its own, and is killed when the test program ends. */
struct cli {
	pid_t pid;
	int in;           /* a pipe to its input; -1 once it is closed */
	int out, err;     /* files without a name, with all it printed so far */
	bool ended;       /* and then: */
	int status;       /* its exit status, 128+n if it died of a signal */
	long long rss_kb; /* the most memory it had */
	long long cpu_ms; /* the time it used, its children's not counted */
};

/*
 * Starts holdfast with these arguments. url becomes HOLDFAST_URL; NULL: not set. Configuration
 * files of the machine and other HOLDFAST_ variables are hidden from it.
 */
struct cli *cli_start(const char *url, ...) __attribute__((sentinel));
struct cli *cli_start_words(const char *url, const char *const *words);

/* The same with further environment variables, each of the form NAME=VALUE. */
struct cli *cli_start_env(const char *url, const char *const *variables, const char *const *words);

/* The same for any program, found in PATH. */
struct cli *cli_start_program(const char *url, const char *const *argv);

/* Closes its input. */
void cli_close_input(struct cli *cli);

/* Whether it has ended; then its status is known. */
bool cli_has_ended(struct cli *cli);

/* Waits until it ends and returns the status; fails the test if it takes too long. */
int cli_wait(struct cli *cli, long long timeout_ms);

/* What it has printed so far; valid for the next few calls. */
const char *cli_output(struct cli *cli);
const char *cli_errors(struct cli *cli);

/* Kills it if it is still running, and frees it. Takes NULL. */
void cli_free(struct cli *cli);

/* Waits and checks the status; a wrong one is reported together with the output. */
#define CLI_EXPECT(cli, wanted)                                                                    \
	do {                                                                                       \
		int cli_status_ = cli_wait(cli, CLI_SOON_MS);                                      \
		if (cli_status_ != (wanted))                                                       \
			fail_msg("status %d, not %d; it printed: %s%s", cli_status_, (wanted),     \
			         cli_output(cli), cli_errors(cli));                                \
	} while (0)

/* Runs holdfast to its end with an empty input, checks the status, and frees it. */
#define CLI_CALL(url, wanted, ...)                                                                 \
	do {                                                                                       \
		struct cli *cli_run_ = cli_start(url, __VA_ARGS__, NULL);                          \
		cli_close_input(cli_run_);                                                         \
		CLI_EXPECT(cli_run_, wanted);                                                      \
		cli_free(cli_run_);                                                                \
	} while (0)

/* The same, but it is not freed, so that its output can be read. */
struct cli *cli_call(const char *url, int status, ...) __attribute__((sentinel));

/* The same, and it must have printed this, or something with this in it. */
#define CLI_EXPECT_OUTPUT(url, status, wanted, ...)                                                \
	do {                                                                                       \
		struct cli *cli_run_ = cli_call(url, status, __VA_ARGS__, NULL);                   \
		assert_string_equal(cli_output(cli_run_), wanted);                                 \
		cli_free(cli_run_);                                                                \
	} while (0)
#define CLI_EXPECT_IN_OUTPUT(url, status, wanted, ...)                                             \
	do {                                                                                       \
		struct cli *cli_run_ = cli_call(url, status, __VA_ARGS__, NULL);                   \
		cli_expect_in(cli_output(cli_run_), wanted);                                       \
		cli_free(cli_run_);                                                                \
	} while (0)

/* Waits until one of the outputs contains this text. */
#define CLI_WAIT_OUTPUT(cli, text) WAIT_UNTIL(strstr(cli_output(cli), text) != NULL, CLI_SOON_MS)
#define CLI_WAIT_ERRORS(cli, text) WAIT_UNTIL(strstr(cli_errors(cli), text) != NULL, CLI_SOON_MS)

/* Closes its input, expects status 0, and frees it. */
void cli_finish(struct cli *cli);

/* ---- what it printed ---- */

/* Fails the test unless the text contains this. */
void cli_expect_in(const char *text, const char *wanted);

/* How many times a text contains a part. */
int cli_count(const char *text, const char *part);

/*
 * Runs holdfast with an empty input: it must exit with this status, and print exactly one line, on
 * stderr, that contains the text.
 */
void cli_expect_refusal(const char *url, int status, const char *wanted, const char *const *words);
#define CLI_EXPECT_REFUSAL(url, status, wanted, ...)                                               \
	cli_expect_refusal(url, status, wanted, (const char *const[]){__VA_ARGS__, NULL})

/* Runs ls or who with --json; what it prints must be valid. */
struct cli *cli_show_json(const char *url, const char *command, const char *word);

/* Runs doctor, which must print no errors. */
struct cli *cli_examine(const char *url, int status);

/* Expects a line of doctor with this verdict on this subject, which contains the text. */
void cli_expect_finding(struct cli *cli, const char *verdict, const char *subject,
                        const char *wanted);

/* ---- processes ---- */

/* Waits until the command of a run has printed its pid, and returns that. */
pid_t cli_command_pid(struct cli *cli);

/*
 * Waits until the process is dead. Returns when it was certainly alive for the last time: a test
 * that had no processor when the process died must not blame it for that.
 */
long long cli_last_alive(pid_t pid);

/* The same, but returns how many milliseconds that took. */
long long cli_time_to_death(pid_t pid);

/* Lets a time pass in which the command of a run must not be stopped. */
void cli_let_live(struct cli *cli, pid_t pid, long long ms);

/* Lets a time pass. */
void cli_let_pass(long long ms);

/* Whether there is such a process, and it is not a zombie. */
bool cli_is_alive(pid_t pid);

/* Its state as in ps: R, S, T, …; 0 if there is none. */
char cli_process_state(pid_t pid);

/* The first child with this name (as in ps -o comm), or 0. */
pid_t cli_child_named(pid_t parent, const char *name);

/* The guard of a run that has a command. */
pid_t cli_guard(const struct cli *cli);

/* Processor time that a process has used so far. */
long long cli_cpu_ms(pid_t pid);

/* ---- a terminal ---- */

/* A program on a terminal of its own, on which the test types and from which it reads. */
struct cli_terminal {
	pid_t pid;
	int fd;
	char *text; /* all that was shown so far */
	size_t length, room;
};

/* Starts argv as the leader of the terminal's session, in its foreground. */
struct cli_terminal *cli_terminal_start(const char *url, const char *const *argv);
void cli_terminal_type(struct cli_terminal *terminal, const char *text);
/* Everything that was shown so far. */
const char *cli_terminal_text(struct cli_terminal *terminal);
/* Forgets what was shown so far. */
void cli_terminal_clear(struct cli_terminal *terminal);
/* The terminal's foreground group. */
pid_t cli_terminal_foreground(const struct cli_terminal *terminal);
int cli_terminal_wait(struct cli_terminal *terminal, long long timeout_ms);
void cli_terminal_free(struct cli_terminal *terminal);

#define CLI_WAIT_TERMINAL(terminal, shown)                                                         \
	do {                                                                                       \
		long long cli_ends_at_ = test_now_ms() + CLI_SOON_MS;                              \
		while (!strstr(cli_terminal_text(terminal), shown)) {                              \
			if (test_now_ms() > cli_ends_at_)                                          \
				fail_msg("the terminal does not show '%s' but '%s'", shown,        \
				         cli_terminal_text(terminal));                             \
			test_pause();                                                              \
		}                                                                                  \
	} while (0)

/* ---- one server for a test program ---- */

extern struct test_server *cli_server;
extern struct raw *cli_raw; /* looks into it */

/* Group setup and teardown of cmocka: the server. */
int cli_start_server(void **state);
int cli_stop_server(void **state);
/* Setup of each story: the server is running and empty. */
int cli_flush_server(void **state);

/* The address of that server. */
const char *cli_url(void);

/* Waits until a lock of this name exists on it. */
void cli_wait_held(const char *name);

/* Starts a run without a command, and waits until it holds the lock. cli_finish() releases it. */
struct cli *cli_hold(const char *name);

/* A story that begins on an empty server. */
#define CLI_STORY(name) cmocka_unit_test_setup(name, cli_flush_server)

/* ---- one directory for a story ---- */

extern char *cli_dir;

/* Setup and teardown: it is empty at the start. */
int cli_make_dir(void **state);
int cli_remove_dir(void **state);

/* Writes a file in it, with these rights whatever the umask is; the caller frees its path. */
char *cli_write(const char *name, const char *text, mode_t mode);

#define CLI_DIR_STORY(name) cmocka_unit_test_setup_teardown(name, cli_make_dir, cli_remove_dir)

#endif
