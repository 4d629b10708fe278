/* holdfast history: what it shows, how it is followed, and how it is removed. */
#include "cli/history.h"
#include "cli/json.h"

#include <signal.h>

static struct cli *show(const char *option, const char *word)
{
	struct cli *cli =
		cli_start(cli_url(), "history", option ? option : word, option ? word : NULL, NULL);
	CLI_EXPECT(cli, 0);
	return cli;
}

/* ---- showing it ---- */

static void each_hold_is_a_row(void **state)
{
	(void)state;
	run_once("x");
	run_once("y");
	struct cli *cli = show(NULL, NULL);
	cli_expect_in(cli_output(cli), "BEGAN");
	assert_int_equal(cli_count(cli_output(cli), "\n"), 3);
	assert_int_equal(cli_count(cli_output(cli), " released "), 2);
	assert_int_equal(cli_count(cli_output(cli), " true "), 2);
	cli_free(cli);
	cli = show(NULL, "x");
	assert_int_equal(cli_count(cli_output(cli), "\n"), 2);
	cli_free(cli);
	cli = show("--since=1h", NULL);
	assert_int_equal(cli_count(cli_output(cli), "\n"), 3);
	cli_free(cli);
}

static void a_hold_that_was_taken_away_says_by_whom(void **state)
{
	(void)state;
	char *url = history_url();
	struct cli *holder = cli_start(url, "run", "x", "--", "sleep", "60", NULL);
	cli_wait_held("x");
	struct cli *cli = show("--json", "x");
	cli_expect_in(cli_output(cli), "\"end\":\"held\"");
	cli_expect_in(cli_output(cli), "\"ended_ms\":null");
	cli_free(cli);
	CLI_CALL(url, 0, "unlock", "--force", "--yes", "x");
	cli = show("--json", "x");
	cli_expect_in(cli_output(cli), "\"end\":\"forced\"");
	assert_int_equal(cli_count(cli_output(cli), "\"forced_by_pid\":null"), 0);
	assert_true(json_is_valid(cli_output(cli)));
	cli_free(cli);
	cli_free(holder);
	free(url);
}

/* A process that was killed enters nothing. */
static void an_end_that_nobody_entered_is_inferred(void **state)
{
	(void)state;
	char *url = history_url();
	struct cli *holder = cli_start(url, "run", "--lease", "1", "x", "--", "sleep", "60", NULL);
	cli_wait_held("x");
	cli_free(holder);
	assert_true(raw_integer(cli_raw, "DEL", "x", NULL) <= 1);
	struct cli *cli = show(NULL, "x");
	cli_expect_in(cli_output(cli), " inferred ");
	cli_expect_in(cli_output(cli), "<=");
	cli_free(cli);
	free(url);
}

/* Channels without a listener are not in the list. */
static bool is_waited_for(const char *channel)
{
	struct raw_reply *reply = raw_command(cli_raw, "PUBSUB", "CHANNELS", channel, NULL);
	bool is = reply->length == 1;
	raw_reply_free(reply);
	return is;
}

static void a_wait_in_vain_is_a_row_without_a_hold(void **state)
{
	(void)state;
	char *url = history_url();
	struct cli *holder = cli_start(cli_url(), "run", "x", "--", "sleep", "60", NULL);
	cli_wait_held("x");
	CLI_CALL(url, 1, "run", "-n", "x", "--", "true");
	CLI_CALL(url, 1, "run", "-w", "1.3", "x", "--", "true");
	struct cli *cli = show(NULL, "x");
	assert_int_equal(cli_count(cli_output(cli), "\n"), 2);
	cli_expect_in(cli_output(cli), " timeout ");
	cli_expect_in(cli_output(cli), " true ");
	cli_free(cli);
	struct cli *waiter = cli_start(url, "run", "x", "--", "true", NULL);
	WAIT_UNTIL(is_waited_for("redisson_lock__channel:{x}"), CLI_SOON_MS);
	assert_int_equal(kill(waiter->pid, SIGTERM), 0);
	assert_int_equal(cli_wait(waiter, CLI_SOON_MS), 128 + SIGTERM);
	cli_free(waiter);
	cli = show("--json", "x");
	cli_expect_in(cli_output(cli), "\"end\":\"timeout\"");
	cli_expect_in(cli_output(cli), "\"end\":\"cancelled\"");
	assert_int_equal(cli_count(cli_output(cli), "\"began_ms\":null"), 2);
	assert_int_equal(cli_count(cli_output(cli), "\"held_ms\":null"), 2);
	assert_int_equal(cli_count(cli_output(cli), "\"waited_ms\":null"), 0);
	assert_true(json_is_valid(cli_output(cli)));
	cli_free(cli);
	cli_free(holder);
	free(url);
}

static void without_a_history_it_says_how_to_keep_one(void **state)
{
	(void)state;
	struct cli *cli = show(NULL, NULL);
	assert_string_equal(cli_output(cli), "");
	cli_expect_in(cli_errors(cli), "history=yes");
	cli_free(cli);
	cli = show("--json", NULL);
	assert_string_equal(cli_output(cli), "[]\n");
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

/* Names and texts of others reach the terminal only as text. */
static void hostile_entries_are_harmless(void **state)
{
	(void)state;
	free(raw_text(cli_raw, "XADD", STREAM, "*", "e", "r", "n", "\033[31m</script>\r\n\"\\", "o",
	              "\033c", "k", "\x9b", "d", "5", "h", "\xff\xfe", "p", "1", "x", "a\tb",
	              NULL));
	struct cli *cli = show(NULL, NULL);
	assert_int_equal(cli_count(cli_output(cli), "\n"), 2);
	assert_int_equal(cli_count(cli_output(cli), "\033"), 0);
	assert_int_equal(cli_count(cli_output(cli), "\r"), 0);
	cli_free(cli);
	cli = show("--json", NULL);
	assert_true(json_is_valid(cli_output(cli)));
	assert_int_equal(cli_count(cli_output(cli), "\033"), 0);
	cli_free(cli);
}

static void the_history_is_followed(void **state)
{
	(void)state;
	char *url = history_url();
	run_once("old");
	struct cli *cli = cli_start(cli_url(), "history", "--follow", "--json", NULL);
	CLI_WAIT_OUTPUT(cli, "\"old\"");
	struct cli *holder = cli_start(url, "run", "new", NULL);
	CLI_WAIT_OUTPUT(cli, "\"new\"");
	assert_int_equal(cli_count(cli_output(cli), "\"held\""), 1);
	cli_finish(holder);
	WAIT_UNTIL(cli_count(cli_output(cli), "\"released\"") == 2, CLI_SOON_MS);
	assert_int_equal(cli_count(cli_output(cli), "\n"), 3);
	cli_free(cli);
	free(url);
}

/* ---- removing it ---- */

static void the_history_is_removed_for_the_name_of_its_stream(void **state)
{
	(void)state;
	run_once("x");
	CLI_CALL(cli_url(), 64, "history", "--clear");
	const char *const argv[] = {cli_path(), "history", "--clear", NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, STREAM ": ");
	cli_terminal_type(terminal, "y\n");
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 1);
	cli_terminal_free(terminal);
	assert_int_equal(raw_integer(cli_raw, "XLEN", STREAM, NULL), 2);
	terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, STREAM ": ");
	cli_terminal_type(terminal, STREAM "\n");
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
	cli_expect_in(cli_terminal_text(terminal), "2 entries removed");
	cli_terminal_free(terminal);
	assert_int_equal(raw_integer(cli_raw, "EXISTS", STREAM, NULL), 0);
	run_once("x");
	CLI_CALL(cli_url(), 0, "history", "--clear", "--yes");
	assert_int_equal(raw_integer(cli_raw, "EXISTS", STREAM, NULL), 0);
}

/* ---- mistakes ---- */

static void mistakes_are_refused(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(cli_url(), 64, "at most one NAME", "history", "x", "y");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "not a time", "history", "--since", "yesterday");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "--clear", "history", "--clear", "--json", "--yes");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "--yes", "history", "--yes");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "must be left out", "history", "--clear", "--yes", "x");
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 69, "", "history");
	raw_ok(cli_raw, "SET", STREAM, "precious", NULL);
	CLI_CALL(cli_url(), 65, "history");
	CLI_CALL(cli_url(), 65, "history", "--clear", "--yes");
	assert_int_equal(raw_integer(cli_raw, "STRLEN", STREAM, NULL), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(each_hold_is_a_row),
		CLI_STORY(a_hold_that_was_taken_away_says_by_whom),
		CLI_STORY(an_end_that_nobody_entered_is_inferred),
		CLI_STORY(a_wait_in_vain_is_a_row_without_a_hold),
		CLI_STORY(without_a_history_it_says_how_to_keep_one),
		CLI_STORY(hostile_entries_are_harmless),
		CLI_STORY(the_history_is_followed),
		CLI_STORY(the_history_is_removed_for_the_name_of_its_stream),
		CLI_STORY(mistakes_are_refused),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
