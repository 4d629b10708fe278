/* Every option of run, and every exit status that needs no fault of the server. */
#include "cli/cli.h"

#include <signal.h>

static const char *owner_of(const char *key)
{
	static char owner[128];
	struct raw_reply *reply = raw_command(cli_raw, "HKEYS", key, NULL);
	owner[0] = 0;
	for (size_t i = 0; i < reply->length; i++)
		if (strcmp(reply->children[i]->text, "mode") != 0)
			snprintf(owner, sizeof owner, "%s", reply->children[i]->text);
	raw_reply_free(reply);
	return owner;
}

/* A run that holds until its input ends. */
static struct cli *hold_with(const char *option, const char *name)
{
	struct cli *cli = option ? cli_start(cli_url(), "run", option, name, "--", "sh", "-c",
	                                     "echo up; cat >/dev/null", NULL)
	                         : cli_start(cli_url(), "run", name, "--", "sh", "-c",
	                                     "echo up; cat >/dev/null", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	return cli;
}

/* ---- the command line ---- */

static void the_exit_status_is_that_of_the_command(void **state)
{
	(void)state;
	CLI_CALL(cli_url(), 0, "run", "x", "--", "true");
	CLI_CALL(cli_url(), 7, "run", "x", "--", "sh", "-c", "exit 7");
	CLI_CALL(cli_url(), 255, "run", "x", "--", "sh", "-c", "exit 255");
	CLI_CALL(cli_url(), 137, "run", "x", "--", "sh", "-c", "kill -9 $$");
	CLI_CALL(cli_url(), 143, "run", "x", "--", "sh", "-c", "kill $$");
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void options_end_at_the_name(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "x", "printf", "%s|", "-n", "--json", "--", "-c", NULL);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "-n|--json|--|-c|");
	cli_free(cli);
	CLI_EXPECT_OUTPUT(cli_url(), 0, "--|", "run", "--", "x", "--", "printf", "%s|", "--");
}

static void the_short_form_runs_the_command(void **state)
{
	(void)state;
	CLI_EXPECT_OUTPUT(cli_url(), 0, "-n|a|", "x", "printf", "%s|", "-n", "a");
	CLI_CALL(cli_url(), 3, "-n", "x", "--", "sh", "-c", "exit 3");
	CLI_CALL(cli_url(), 4, "x", "-c", "exit 4");
	CLI_CALL(cli_url(), 64, "x");
}

static void a_shell_string_may_precede_or_follow_the_name(void **state)
{
	(void)state;
	CLI_CALL(cli_url(), 5, "run", "-c", "exit 5", "x");
	CLI_CALL(cli_url(), 6, "run", "x", "-c", "exit 6");
	CLI_CALL(cli_url(), 7, "run", "--command", "exit 7", "x");
	CLI_CALL(cli_url(), 8, "run", "x", "--command", "exit 8");
	CLI_CALL(cli_url(), 64, "run", "x", "-c", "exit 6", "more");
	CLI_CALL(cli_url(), 64, "run", "x", "-c");
	CLI_CALL(cli_url(), 64, "run", "-c", "exit 5", "x", "true");
}

/* Each is a wrong list of arguments after "run". */
static void wrong_options_are_64(void **state)
{
	static const char *const lines[][8] = {
		{"", "true"},
		{"-Q", "x", "true"},
		{"--nosuch", "x", "true"},
		{"--nosuch=secret", "x", "true"},
		{"-sQ", "x", "true"},
		{"-w"},
		{"--lease"},
		{"-w", "abc", "x", "true"},
		{"-w", "-1", "x", "true"},
		{"-E", "256", "x", "true"},
		{"-E", "-1", "x", "true"},
		{"-E", "x", "x", "true"},
		{"--watchdog", "1e3", "x", "true"},
		{"--watchdog", "nan", "x", "true"},
		{"--watchdog", "inf", "x", "true"},
		{"--watchdog", "+3", "x", "true"},
		{"--watchdog", "-3", "x", "true"},
		{"--watchdog", "0x10", "x", "true"},
		{"--watchdog", "3y", "x", "true"},
		{"--watchdog", "3 s", "x", "true"},
		{"--watchdog", "", "x", "true"},
		{"--watchdog", "0", "x", "true"},
		{"--watchdog", "4000d", "x", "true"},
		{"--watchdog", "300ms", "--grace", "200ms", "x", "true"},
		{"--watchdog", "10", "--grace", "5", "x", "true"},
		{"--lease", "10", "--grace", "9.5", "x", "true"},
		{"--lease", "0", "x", "true"},
		{"--lease", "5", "--watchdog", "5", "x", "true"},
		{"-F", "x", "true"},
		{"-F", "--lease", "5", "x"},
		{"-F", "--lease", "5", "--on-lost", "true", "x", "true"},
		{"-s", "--fair", "x", "true"},
		{"-s", "--permits", "2", "x", "true"},
		{"-s", "-x", "x", "true"},
		{"-s", "--token", "x", "true"},
		{"--kind", "read", "--token", "x", "true"},
		{"--permits", "2", "--token", "x", "true"},
		{"--kind", "odd", "x", "true"},
		{"--kind", "spin", "--fair", "x", "true"},
		{"--permits", "0", "x", "true"},
		{"--permits", "many", "x", "true"},
		{"--status-fd", "99", "--json", "x", "true"},
		{"--status-fd", "1", "x", "true"},
		{"--metrics-file", "", "x", "true"},
		{"-F", "--lease", "5", "--metrics-file", "x.prom", "x", "true"},
	};
	(void)state;
	CLI_CALL(cli_url(), 64, "run");
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		const char *words[10] = {"run"};
		memcpy(words + 1, lines[i], sizeof lines[i]);
		struct cli *cli = cli_start_words(cli_url(), words);
		int status = cli_wait(cli, CLI_SOON_MS);
		assert_null(strstr(cli_errors(cli), "secret"));
		if (status != 64 || !strstr(cli_errors(cli), "holdfast: ") ||
		    strchr(cli_errors(cli), '\n')[1])
			fail_msg("%s %s: %d: %s", words[1], words[2] ? words[2] : "", status,
			         cli_errors(cli));
		cli_free(cli);
	}
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void status_fd_without_json_says_what_is_missing(void **state)
{
	(void)state;
	struct cli *cli = cli_call(cli_url(), 64, "run", "--status-fd", "1", "x", "true", NULL);
	assert_non_null(strstr(cli_errors(cli), "--status-fd requires --json"));
	cli_free(cli);
}

static void times_that_leave_no_room_are_refused_with_the_numbers(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "--watchdog", "10", "--grace", "5", "x", "true", NULL);
	CLI_EXPECT(cli, 64);
	assert_non_null(strstr(cli_errors(cli), "10000"));
	assert_non_null(strstr(cli_errors(cli), "3333"));
	assert_non_null(strstr(cli_errors(cli), "1111"));
	assert_non_null(strstr(cli_errors(cli), "5000"));
	cli_free(cli);
	CLI_CALL(cli_url(), 0, "run", "--watchdog", "10", "--grace", "4.9", "x", "true");
	CLI_CALL(cli_url(), 0, "run", "--lease", "10", "--grace", "9", "x", "true");
}

static void times_have_units(void **state)
{
	static const char *const times[] = {"5",  "5s",        "5000ms", "0.5m",
	                                    "1h", "1d",        "5.25",   "3650d",
	                                    ".5", "315576000", "0.001d", "2500ms"};
	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		CLI_CALL(cli_url(), 0, "run", "--lease", times[i], "x", "--", "true");
}

static void invalid_names_are_64(void **state)
{
	char longest[514], too_long[514];
	(void)state;
	memset(longest, 'a', sizeof longest);
	memcpy(too_long, longest, sizeof longest);
	longest[512] = too_long[513] = 0;
	CLI_CALL(cli_url(), 0, "run", longest, "true");
	CLI_CALL(cli_url(), 64, "run", too_long, "true");
	CLI_CALL(cli_url(), 64, "run", "a\tb", "true");
	CLI_CALL(cli_url(), 64, "run", "a\xff", "true");
	CLI_CALL(cli_url(), 64, "run", "{}", "true");
	CLI_CALL(cli_url(), 64, "run", "a{b", "true");
	CLI_CALL(cli_url(), 64, "run", "--permits", "2", "a{b", "true");
	CLI_CALL(cli_url(), 0, "run", "{a}b", "true");
	CLI_CALL("redis+unix:///nonexistent/socket", 64, "run", "a{b", "true");
}

/* ---- waiting ---- */

static void a_busy_lock_is_1_or_the_given_code(void **state)
{
	(void)state;
	struct cli *holder = hold_with(NULL, "x");
	CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "--nonblock", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "--nb", "x", "--", "true");
	CLI_CALL(cli_url(), 42, "run", "-nE", "42", "x", "--", "true");
	CLI_CALL(cli_url(), 0, "run", "-n", "--conflict-exit-code", "0", "x", "--", "false");
	CLI_CALL(cli_url(), 43, "run", "-xnE43", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "-w", "0", "x", "--", "true");
	long long begun = test_now_ms();
	CLI_CALL(cli_url(), 44, "run", "-w", "1.3", "-E44", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "--timeout", ".9", "x", "--", "true");
	assert_in_range(test_now_ms() - begun, 2200, 10000);
	cli_finish(holder);
}

static void a_waiter_gets_the_lock_when_it_is_free(void **state)
{
	static const char *const waits[] = {"10", "99999999999999999999"};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct cli *holder = hold_with(NULL, "x");
		struct cli *waiter = cli_start(cli_url(), "run", "--wait", waits[i], "x", "--",
		                               "echo", "mine", NULL);
		test_pause();
		assert_string_equal(cli_output(waiter), "");
		cli_finish(holder);
		CLI_EXPECT(waiter, 0);
		assert_string_equal(cli_output(waiter), "mine\n");
		assert_string_equal(cli_errors(waiter), "");
		cli_free(waiter);
	}
}

static void a_signal_ends_a_waiter_and_nothing_is_left(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	(void)state;
	struct cli *holder = hold_with("--fair", "x");
	long long keys = raw_integer(cli_raw, "DBSIZE", NULL);
	for (size_t i = 0; i < 4; i++) {
		struct cli *waiter =
			cli_start(cli_url(), "run", "--fair", "x", "--", "echo", "mine", NULL);
		WAIT_UNTIL(raw_integer(cli_raw, "DBSIZE", NULL) > keys, CLI_SOON_MS);
		assert_int_equal(kill(waiter->pid, signals[i]), 0);
		CLI_EXPECT(waiter, 128 + signals[i]);
		assert_string_equal(cli_output(waiter), "");
		WAIT_UNTIL(raw_integer(cli_raw, "DBSIZE", NULL) == keys, CLI_SOON_MS);
		cli_free(waiter);
	}
	cli_finish(holder);
}

static void a_signal_ends_the_splay(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--splay", "1d", "x", "--", "true", NULL);
	WAIT_UNTIL(cli_guard(cli) > 0, CLI_SOON_MS);
	assert_int_equal(kill(cli->pid, SIGTERM), 0);
	CLI_EXPECT(cli, 143);
	cli_free(cli);
	CLI_CALL(cli_url(), 0, "run", "--splay", "50ms", "x", "--", "true");
}

/* ---- kinds ---- */

static void readers_share_and_exclude_writers(void **state)
{
	(void)state;
	struct cli *reader = hold_with("-s", "x");
	CLI_CALL(cli_url(), 0, "run", "-n", "--shared", "x", "--", "true");
	CLI_CALL(cli_url(), 0, "run", "-n", "--kind", "read", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "-n", "-x", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
	struct cli *writer =
		cli_start(cli_url(), "run", "--exclusive", "x", "--", "echo", "mine", NULL);
	struct cli *plain = cli_start(cli_url(), "run", "x", "--", "echo", "mine", NULL);
	cli_finish(reader);
	CLI_EXPECT(writer, 0);
	CLI_EXPECT(plain, 0);
	cli_free(writer);
	cli_free(plain);
	struct cli *holder = hold_with("-e", "x");
	CLI_CALL(cli_url(), 1, "run", "-n", "-s", "x", "--", "true");
	CLI_CALL(cli_url(), 1, "run", "-n", "-x", "x", "--", "true");
	cli_finish(holder);
}

static void every_exclusive_kind_excludes_others(void **state)
{
	static const char *const kinds[] = {"reentrant", "fair", "write", "fenced", "spin"};
	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct cli *holder = cli_start(cli_url(), "run", "--kind", kinds[i], "x", "--",
		                               "sh", "-c", "echo up; cat", NULL);
		CLI_WAIT_OUTPUT(holder, "up");
		CLI_CALL(cli_url(), 1, "run", "-n", "--kind", kinds[i], "x", "--", "true");
		CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
		cli_finish(holder);
	}
}

static void permits_limit_the_number_of_holders(void **state)
{
	(void)state;
	CLI_CALL(cli_url(), 78, "run", "-n", "--kind", "semaphore", "x", "--", "true");
	struct cli *one = cli_start(cli_url(), "run", "--permits", "2", "x", "--", "sh", "-c",
	                            "echo up; cat", NULL);
	CLI_WAIT_OUTPUT(one, "up");
	struct cli *two = cli_start(cli_url(), "run", "--kind", "semaphore", "x", "--", "sh", "-c",
	                            "echo up; cat", NULL);
	CLI_WAIT_OUTPUT(two, "up");
	CLI_CALL(cli_url(), 1, "run", "-n", "--permits", "2", "x", "--", "true");
	CLI_CALL(cli_url(), 78, "run", "-n", "--permits", "3", "x", "--", "true");
	struct cli *three =
		cli_start(cli_url(), "run", "--permits", "2", "x", "--", "echo", "mine", NULL);
	cli_finish(one);
	CLI_EXPECT(three, 0);
	cli_free(three);
	CLI_CALL(cli_url(), 0, "run", "-n", "--permits", "2", "x", "--", "true");
	cli_finish(two);
}

static void the_token_grows_with_every_grant_of_any_exclusive_kind(void **state)
{
	static const char *const kinds[] = {"reentrant", "fair", "write", "spin", "fenced"};
	long long last = 0;
	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct cli *cli = cli_call(cli_url(), 0, "run", "--kind", kinds[i],
		                           i < 4 ? "--token" : "--verbose", "x", "--", "sh", "-c",
		                           "echo $HOLDFAST_TOKEN", NULL);
		long long token = atoll(cli_output(cli));
		if (token <= last)
			fail_msg("%s: %lld after %lld", kinds[i], token, last);
		last = token;
		cli_free(cli);
	}
}

/* ---- what the command sees ---- */

static const char *line_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	if (!at)
		fail_msg("there is no %s in %s", name, text);
	return at + strlen(name);
}

static void the_command_finds_its_lock_in_the_environment(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "a name", "--", "sh", "-c", "env; echo up; cat", NULL);
	CLI_WAIT_OUTPUT(cli, "up\n");
	const char *text = cli_output(cli);
	double deadline = atof(line_of(text, "HOLDFAST_DEADLINE="));
	double now = (double)test_now_ms() / 1000;
	assert_true(strncmp(line_of(text, "HOLDFAST_NAME="), "a name\n", 7) == 0);
	assert_true(strncmp(line_of(text, "HOLDFAST_OWNER="), owner_of("a name"), 38) == 0);
	assert_true(strlen(owner_of("a name")) >= 38);
	assert_true(deadline > now + 25 && deadline < now + 30);
	assert_null(strstr(text, "HOLDFAST_TOKEN"));
	cli_finish(cli);
}

static void the_token_of_an_outer_lock_is_not_inherited(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "--token", "outer", "--", cli_path(), "run", "inner",
	                  "--", "sh", "-c", "echo [$HOLDFAST_NAME$HOLDFAST_TOKEN]", NULL);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "[inner]\n");
	cli_free(cli);
}

static void only_the_name_of_the_program_is_stored(void **state)
{
	char key[256];
	(void)state;
	for (int all = 0; all < 2; all++) {
		struct cli *cli =
			cli_start(cli_url(), "run", all ? "--show-args" : "--verbose", "x", "--",
		                  "/bin/sh", "-c", "echo up; cat", "secret", NULL);
		CLI_WAIT_OUTPUT(cli, "up");
		snprintf(key, sizeof key, "holdfast_holder:{x}:%s", owner_of("x"));
		char *note = raw_text(cli_raw, "GET", key, NULL);
		assert_non_null(note);
		assert_true((strstr(note, "secret") != NULL) == all);
		assert_non_null(strstr(note, "sh"));
		free(note);
		cli_finish(cli);
		assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	}
}

/* ---- what ends it ---- */

static void a_command_that_cannot_run_is_126_and_a_missing_one_127(void **state)
{
	(void)state;
	CLI_CALL(cli_url(), 127, "run", "x", "--", "no-such-program");
	CLI_CALL(cli_url(), 127, "run", "x", "--", "/no/such/program");
	CLI_CALL(cli_url(), 126, "run", "x", "--", "/etc/passwd");
	CLI_CALL(cli_url(), 126, "run", "x", "--", "/");
	CLI_CALL(cli_url(), 127, "run", "-F", "--lease", "9", "x", "--", "no-such-program");
	CLI_CALL(cli_url(), 126, "run", "-F", "--lease", "9", "x", "--", "/etc/passwd");
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void a_key_that_is_not_a_lock_is_65_and_not_changed(void **state)
{
	static const char *const options[] = {"--verbose", "-s", "-x", "--fair", "--permits=2"};
	(void)state;
	raw_ok(cli_raw, "SET", "x", "precious", NULL);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		if (i == 4)
			raw_integer(cli_raw, "RPUSH", "y", "precious", NULL);
		CLI_CALL(cli_url(), 65, "run", options[i], i == 4 ? "y" : "x", "--", "true");
	}
	char *value = raw_text(cli_raw, "GET", "x", NULL);
	assert_string_equal(value, "precious");
	free(value);
	assert_int_equal(raw_integer(cli_raw, "PTTL", "x", NULL), -1);
	/* The two keys, and the record of the request that found no permits. */
	struct raw_reply *records = raw_command(cli_raw, "KEYS", "holdfast_request:*", NULL);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 2 + (long long)records->length);
	raw_reply_free(records);
}

static void max_hold_is_124(void **state)
{
	(void)state;
	long long begun = test_now_ms();
	CLI_CALL(cli_url(), 124, "run", "--max-hold", "200ms", "x", "--", "sleep", "60");
	CLI_CALL(cli_url(), 124, "run", "--max-hold", "200ms", "--grace", "200ms", "x", "--", "sh",
	         "-c", "trap '' TERM; while :; do sleep 1; done");
	assert_in_range(test_now_ms() - begun, 600, 5000);
	CLI_CALL(cli_url(), 3, "run", "--max-hold", "30", "x", "--", "sh", "-c", "exit 3");
	struct cli *holder = cli_start(cli_url(), "run", "--max-hold", "200ms", "x", NULL);
	CLI_EXPECT(holder, 124);
	cli_free(holder);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void at_least_holds_the_lock_longer_than_the_command(void **state)
{
	(void)state;
	long long begun = test_now_ms();
	struct cli *cli = cli_start(cli_url(), "run", "--at-least", "500ms", "x", "--", "sh", "-c",
	                            "echo up; exit 9", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
	CLI_EXPECT(cli, 9);
	assert_in_range(test_now_ms() - begun, 500, 5000);
	cli_free(cli);
}

static void a_fixed_lease_is_not_renewed_and_outlives_the_command(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--lease", "600ms", "x", "--", "sh", "-c",
	                            "trap '' TERM; echo up; while :; do sleep 1; done", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	CLI_EXPECT(cli, 80);
	/* The lock lasts for the rest of its lease: what is no longer held cannot be released. */
	WAIT_UNTIL(raw_integer(cli_raw, "DBSIZE", NULL) == 0, 1000);
	cli_free(cli);
}

static void no_fork_becomes_the_command_and_keeps_the_lock(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "-F", "--lease", "30", "x", "--", "sh", "-c",
	                            "echo $$ $HOLDFAST_NAME; exit 5", NULL);
	CLI_EXPECT(cli, 5);
	assert_int_equal(atoi(cli_output(cli)), cli->pid);
	assert_non_null(strstr(cli_output(cli), " x\n"));
	assert_in_range(raw_integer(cli_raw, "PTTL", "x", NULL), 20000, 30000);
	cli_free(cli);
}

static void without_a_command_the_lock_is_held_until_the_end_of_input(void **state)
{
	(void)state;
	struct cli *cli = cli_hold("x");
	assert_int_equal(write(cli->in, "ignored\n", 8), 8);
	CLI_CALL(cli_url(), 1, "run", "-n", "x", "--", "true");
	assert_false(cli_has_ended(cli));
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	cli_free(cli);
}

static void without_a_command_a_signal_releases_the_lock(void **state)
{
	(void)state;
	struct cli *cli = cli_hold("x");
	assert_int_equal(kill(cli->pid, SIGTERM), 0);
	CLI_EXPECT(cli, 143);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	cli_free(cli);
}

static void without_a_command_a_lost_lock_is_80(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--watchdog", "1s", "x", NULL);
	cli_wait_held("x");
	raw_ok(cli_raw, "FLUSHALL", NULL);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

/* ---- reports ---- */

static void verbose_prints_what_flock_prints(void **state)
{
	(void)state;
	struct cli *cli = cli_call(cli_url(), 0, "run", "--verbose", "x", "--", "true", NULL);
	assert_non_null(strstr(cli_errors(cli), "getting lock took "));
	assert_non_null(strstr(cli_errors(cli), "executing true"));
	assert_string_equal(cli_output(cli), "");
	cli_free(cli);
	cli = cli_call(cli_url(), 0, "run", "x", "--", "true", NULL);
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

/* The events in order, separated by blanks. */
static const char *events_in(const char *text)
{
	static char events[1024];
	events[0] = 0;
	for (const char *at = text; (at = strstr(at, "{\"event\":\"")); at++) {
		size_t used = strlen(events);
		const char *word = at + strlen("{\"event\":\"");
		snprintf(events + used, sizeof events - used, "%.*s ", (int)strcspn(word, "\""),
		         word);
	}
	return events;
}

/* The same from the grant on: on a busy machine even a free lock is waited for. */
static const char *events_of_hold(const char *text)
{
	const char *events = events_in(text);
	size_t length = strlen("waiting ");
	return strncmp(events, "waiting ", length) == 0 ? events + length : events;
}

static void events_are_printed_as_json(void **state)
{
	(void)state;
	struct cli *holder = hold_with(NULL, "a\"b");
	struct cli *cli =
		cli_start(cli_url(), "run", "--json", "a\"b", "--", "sh", "-c", "exit 4", NULL);
	CLI_WAIT_ERRORS(cli, "waiting");
	cli_finish(holder);
	CLI_EXPECT(cli, 4);
	const char *text = cli_errors(cli);
	assert_string_equal(events_in(text), "waiting acquired exit released ");
	assert_non_null(strstr(text, "\"name\":\"a\\\"b\""));
	assert_non_null(strstr(text, "\"owner\":\""));
	assert_non_null(strstr(text, "\"status\":4"));
	cli_free(cli);
}

/* Runs with --json until it fails: the last event must say why, and with which status. */
static void expect_not_acquired(const char *url, int status, const char *events, const char *reason,
                                const char *option, const char *value)
{
	struct cli *cli =
		cli_start(url, "run", "--json", option, value, "x", "--", "echo", "no", NULL);
	CLI_EXPECT(cli, status);
	char *wanted =
		check_format("\"name\":\"x\",\"reason\":\"%s\",\"status\":%d}\n", reason, status);
	assert_string_equal(events_in(cli_errors(cli)), events);
	cli_expect_in(cli_errors(cli), wanted);
	assert_string_equal(cli_output(cli), "");
	free(wanted);
	cli_free(cli);
}

static void the_last_event_says_why_the_lock_was_not_acquired(void **state)
{
	(void)state;
	struct cli *holder = hold_with(NULL, "x");
	expect_not_acquired(cli_url(), 1, "not-acquired ", "busy", "-w", "0");
	expect_not_acquired(cli_url(), 1, "waiting not-acquired ", "timed-out", "-w", "1");
	expect_not_acquired(cli_url(), 7, "waiting not-acquired ", "timed-out", "-w1", "-E7");
	struct cli *cli = cli_start(cli_url(), "run", "--json", "x", "--", "true", NULL);
	CLI_WAIT_ERRORS(cli, "waiting");
	assert_int_equal(kill(cli->pid, SIGTERM), 0);
	CLI_EXPECT(cli, 143);
	cli_expect_in(cli_errors(cli), "\"reason\":\"signal\",\"status\":143}\n");
	cli_free(cli);
	cli_finish(holder);
	raw_ok(cli_raw, "SET", "x", "y", NULL);
	expect_not_acquired(cli_url(), 65, "not-acquired ", "not-a-lock", "-w", "0");
	expect_not_acquired(CLI_NOWHERE, 69, "not-acquired ", "unreachable", "-w", "0");
	expect_not_acquired("nonsense://", 78, "not-acquired ", "configuration", "-w", "0");
}

static void the_events_of_a_loss_are_printed_once_each(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--json", "--status-fd", "1", "--watchdog",
	                            "6s", "x", "--", "sh", "-c", "trap '' TERM; sleep 60", NULL);
	CLI_WAIT_OUTPUT(cli, "acquired");
	raw_ok(cli_raw, "FLUSHALL", NULL);
	CLI_EXPECT(cli, 80);
	assert_string_equal(events_of_hold(cli_output(cli)), "acquired lost exit ");
	cli_free(cli);
}

/* A lease that runs out as planned is not a fault that anybody has to look for. */
static void the_end_of_a_lease_is_reported_as_such(void **state)
{
	(void)state;
	struct cli *cli = cli_call(cli_url(), 80, "run", "--json", "--lease", "3s", "--grace", "2s",
	                           "x", "--", "sleep", "60", NULL);
	const char *text = cli_errors(cli);
	cli_expect_in(text, "holdfast: x: the lease of 3.0s ended; the command was stopped\n");
	assert_string_equal(events_of_hold(text), "acquired lease-ended exit released ");
	cli_free(cli);
	cli = cli_start(cli_url(), "run", "--json", "--lease", "1s", "x", NULL);
	CLI_EXPECT(cli, 80);
	cli_expect_in(cli_errors(cli), "holdfast: x: the lease of 1.0s ended\n");
	assert_string_equal(events_of_hold(cli_errors(cli)), "acquired at-risk lease-ended exit ");
	cli_free(cli);
}

static void a_loss_during_a_fixed_lease_is_a_loss(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--json", "--lease", "60s", "x", NULL);
	CLI_WAIT_ERRORS(cli, "acquired");
	/* A fixed lease is looked up when there is a new connection. */
	raw_ok(cli_raw, "FLUSHALL", NULL);
	(void)raw_integer(cli_raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
	CLI_EXPECT(cli, 80);
	cli_expect_in(cli_errors(cli), "holdfast: x: the lock was lost\n");
	assert_null(strstr(cli_errors(cli), "lease-ended"));
	cli_free(cli);
}

static void on_lost_runs_after_the_command_is_dead(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--watchdog", "1s", "--on-lost",
	                            "echo lost $HOLDFAST_NAME; kill -0 $(cat $0 2>/dev/null) "
	                            "2>/dev/null && echo alive",
	                            "x", "--", "sh", "-c", "echo up; exec sleep 60", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	raw_ok(cli_raw, "FLUSHALL", NULL);
	CLI_EXPECT(cli, 80);
	assert_string_equal(cli_output(cli), "up\nlost x\n");
	cli_free(cli);
	CLI_EXPECT_OUTPUT(cli_url(), 0, "", "run", "--on-lost", "echo lost", "x", "--", "true");
}

/* Without a signal it would end after ten seconds. */
static void a_signal_ends_the_command_of_on_lost(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "--watchdog", "1s", "--on-lost", "echo begun; sleep 60",
	                  "x", "--", "sh", "-c", "echo up; exec sleep 60", NULL);
	CLI_WAIT_OUTPUT(cli, "up");
	raw_ok(cli_raw, "FLUSHALL", NULL);
	CLI_WAIT_OUTPUT(cli, "begun");
	long long begun = test_now_ms();
	assert_int_equal(kill(cli->pid, SIGTERM), 0);
	CLI_EXPECT(cli, 80);
	assert_in_range(test_now_ms() - begun, 0, 3000);
	cli_free(cli);
}

static void a_command_of_on_lost_that_does_not_end_is_killed(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--watchdog", "1s", "--on-lost",
	                            "trap '' TERM; echo $$; while :; do sleep 60; done", "x", "--",
	                            "sleep", "60", NULL);
	cli_wait_held("x");
	raw_ok(cli_raw, "FLUSHALL", NULL);
	WAIT_UNTIL(strchr(cli_output(cli), '\n') != NULL, CLI_SOON_MS);
	long long begun = test_now_ms();
	pid_t pid = atoi(cli_output(cli));
	CLI_EXPECT(cli, 80);
	assert_in_range(test_now_ms() - begun, 9000, 13000);
	assert_false(cli_is_alive(pid));
	cli_free(cli);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(the_exit_status_is_that_of_the_command),
		CLI_STORY(options_end_at_the_name),
		CLI_STORY(the_short_form_runs_the_command),
		CLI_STORY(a_shell_string_may_precede_or_follow_the_name),
		CLI_STORY(wrong_options_are_64),
		CLI_STORY(status_fd_without_json_says_what_is_missing),
		CLI_STORY(times_that_leave_no_room_are_refused_with_the_numbers),
		CLI_STORY(times_have_units),
		CLI_STORY(invalid_names_are_64),
		CLI_STORY(a_busy_lock_is_1_or_the_given_code),
		CLI_STORY(a_waiter_gets_the_lock_when_it_is_free),
		CLI_STORY(a_signal_ends_a_waiter_and_nothing_is_left),
		CLI_STORY(a_signal_ends_the_splay),
		CLI_STORY(readers_share_and_exclude_writers),
		CLI_STORY(every_exclusive_kind_excludes_others),
		CLI_STORY(permits_limit_the_number_of_holders),
		CLI_STORY(the_token_grows_with_every_grant_of_any_exclusive_kind),
		CLI_STORY(the_command_finds_its_lock_in_the_environment),
		CLI_STORY(the_token_of_an_outer_lock_is_not_inherited),
		CLI_STORY(only_the_name_of_the_program_is_stored),
		CLI_STORY(a_command_that_cannot_run_is_126_and_a_missing_one_127),
		CLI_STORY(a_key_that_is_not_a_lock_is_65_and_not_changed),
		CLI_STORY(max_hold_is_124),
		CLI_STORY(at_least_holds_the_lock_longer_than_the_command),
		CLI_STORY(a_fixed_lease_is_not_renewed_and_outlives_the_command),
		CLI_STORY(no_fork_becomes_the_command_and_keeps_the_lock),
		CLI_STORY(without_a_command_the_lock_is_held_until_the_end_of_input),
		CLI_STORY(without_a_command_a_signal_releases_the_lock),
		CLI_STORY(without_a_command_a_lost_lock_is_80),
		CLI_STORY(verbose_prints_what_flock_prints),
		CLI_STORY(events_are_printed_as_json),
		CLI_STORY(the_last_event_says_why_the_lock_was_not_acquired),
		CLI_STORY(the_events_of_a_loss_are_printed_once_each),
		CLI_STORY(the_end_of_a_lease_is_reported_as_such),
		CLI_STORY(a_loss_during_a_fixed_lease_is_a_loss),
		CLI_STORY(on_lost_runs_after_the_command_is_dead),
		CLI_STORY(a_signal_ends_the_command_of_on_lost),
		CLI_STORY(a_command_of_on_lost_that_does_not_end_is_killed),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
