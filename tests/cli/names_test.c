/* Names: which are valid, and how those made by others are shown. */
#include "cli/cli.h"
#include "cli/json.h"

#define JAVA CLI_JAVA

/* 512 and 513 letters. */
static char longest[513], too_long[514];

static int make_long_names(void **state)
{
	memset(longest, 'n', sizeof longest - 1);
	memset(too_long, 'n', sizeof too_long - 1);
	return cli_start_server(state);
}

static void valid_names_are_accepted(void **state)
{
	(void)state;
	const char *const good[] = {"x",         "a b", longest,  "{tag}rest",   "käse/鎖",
	                            "a:{b}:{c}", "-",   "日本語", "100%s\\n'\"", "a=b"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		CLI_CALL(cli_url(), 0, "run", "--", good[i], "true");
		CLI_CALL(cli_url(), 1, "who", "--", good[i]);
		CLI_CALL(cli_url(), 1, "unlock", "--force", "--yes", "--", good[i]);
	}
}

static void invalid_names_are_64_for_every_command(void **state)
{
	(void)state;
	const char *const bad[] = {"",         too_long,   "a\nb",         "a\tb",    "\x7f",
	                           "a{b",      "a}b",      "a{}b",         "}{",      "\xff",
	                           "\x1b[31m", "\xc0\xaf", "\xed\xa0\x80", "\xc2\x9b"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CLI_CALL(cli_url(), 64, "run", "--", bad[i], "true");
		CLI_CALL(cli_url(), 64, "who", "--", bad[i]);
		CLI_CALL(cli_url(), 64, "unlock", "--force", "--yes", "--", bad[i]);
	}
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void an_invalid_name_is_reported_without_a_server(void **state)
{
	(void)state;
	CLI_CALL(CLI_NOWHERE, 64, "who", "a{");
	CLI_CALL(CLI_NOWHERE, 64, "unlock", "--force", "--yes", "a{");
	CLI_CALL(CLI_NOWHERE, 64, "run", "a{", "true");
}

/* An error about a name must not send its bytes to the terminal. */
static void an_invalid_name_is_escaped_in_the_error(void **state)
{
	(void)state;
	struct cli *cli = cli_call(cli_url(), 64, "help", "\x1b[31mred\nnext", NULL);
	const char *text = cli_errors(cli);
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "\\x1b[31mred\\x0anext"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	cli_free(cli);
}

/* ---- names made by others ---- */

static void make_lock(const char *name, size_t length)
{
	const char *const words[] = {"HSET", name, JAVA ":1", "1"};
	const size_t lengths[] = {4, length, strlen(JAVA ":1"), 1};
	raw_reply_free(raw_command_words(cli_raw, 4, words, lengths));
}

static struct cli *list(const char *option)
{
	struct cli *cli = cli_call(cli_url(), 0, "ls", option, NULL);
	return cli;
}

static void any_bytes_are_shown_safely(void **state)
{
	(void)state;
	make_lock("esc\x1b]0;title\x07", 13);
	make_lock("nul\0behind", 10);
	make_lock("c1\xc2\x9b"
	          "31m",
	          7);
	make_lock("turn\xe2\x80\xae", 7);
	make_lock("bytes\xff\xfe", 7);
	make_lock("line\nline", 9);
	make_lock("back\\slash", 10);
	make_lock("好", 3);
	struct cli *cli = list(NULL);
	const char *text = cli_output(cli);
	const char *const wanted[] = {"esc\\x1b]0;title\\x07 ", "nul\\x00behind ",
	                              "c1\\xc2\\x9b31m ",       "turn\\xe2\\x80\\xae ",
	                              "bytes\\xff\\xfe ",       "line\\x0aline ",
	                              "back\\\\slash ",         "好 "};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (!strstr(text, wanted[i]))
			fail_msg("no '%s' in '%s'", wanted[i], text);
	for (const char *at = text; *at; at++)
		assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
	cli_free(cli);
}

static void any_bytes_are_valid_json(void **state)
{
	(void)state;
	char name[2] = "n";
	for (int byte = 0; byte < 256; byte++) {
		name[1] = (char)byte;
		make_lock(name, 2);
	}
	make_lock("tag\xf3\xa0\x81\x81", 7);
	struct cli *cli = list("--json");
	const char *text = cli_output(cli);
	assert_true(json_is_valid(text));
	assert_non_null(strstr(text, "\"n\\u0000\""));
	assert_non_null(strstr(text, "\"n\\\"\""));
	assert_non_null(strstr(text, "\"n\\\\\""));
	assert_non_null(strstr(text, "\"n\\u007f\""));
	assert_non_null(strstr(text, "\"n\xef\xbf\xbd\""));
	assert_non_null(strstr(text, "\"tag\\udb40\\udc41\""));
	cli_free(cli);
}

/* The same checked by another parser, if it is installed. */
static void python_accepts_the_json(void **state)
{
	(void)state;
	char *line = check_format("command -v python3 >/dev/null || exit 77; "
	                          "%s ls --json | python3 -m json.tool",
	                          cli_path());
	make_lock("c1\xc2\x9b\xff\x01\"\\/", 9);
	make_lock("tag\xf3\xa0\x81\x81", 7);
	struct cli *cli =
		cli_start_program(cli_url(), (const char *const[]){"sh", "-c", line, NULL});
	free(line);
	int status = cli_wait(cli, CLI_SOON_MS);
	if (status != 77) {
		assert_int_equal(status, 0);
		assert_non_null(strstr(cli_output(cli), "c1\\u009b\\ufffd\\u0001\\\"\\\\/"));
	}
	cli_free(cli);
	if (status == 77)
		skip();
}

/* A hash with any mode is listed, so its mode is text from others too. */
static void a_kind_from_others_is_escaped(void **state)
{
	(void)state;
	raw_integer(cli_raw, "HSET", "x", "mode", "\x1b[2J", JAVA ":1", "1", NULL);
	struct cli *cli = list(NULL);
	assert_null(strchr(cli_output(cli), '\x1b'));
	cli_free(cli);
	cli = list("--json");
	assert_null(strchr(cli_output(cli), '\x1b'));
	assert_true(json_is_valid(cli_output(cli)));
	cli_free(cli);
}

static void a_description_from_others_is_escaped(void **state)
{
	(void)state;
	raw_integer(cli_raw, "HSET", "x", JAVA ":1", "1", NULL);
	raw_ok(cli_raw, "SET", "holdfast_holder:{x}:" JAVA ":1",
	       "reentrant\nho\x1b[31mst\n12\nrm\x1b[0m\nx", NULL);
	struct cli *cli = list(NULL);
	assert_null(strchr(cli_output(cli), '\x1b'));
	assert_non_null(strstr(cli_output(cli), "ho\\x1b[31mst"));
	cli_free(cli);
	cli = list("--json");
	assert_null(strchr(cli_output(cli), '\x1b'));
	assert_true(json_is_valid(cli_output(cli)));
	assert_non_null(strstr(cli_output(cli), "\"command\":\"rm\\u001b[0m\\u000ax\""));
	cli_free(cli);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(valid_names_are_accepted),
		CLI_STORY(invalid_names_are_64_for_every_command),
		CLI_STORY(an_invalid_name_is_reported_without_a_server),
		CLI_STORY(an_invalid_name_is_escaped_in_the_error),
		CLI_STORY(any_bytes_are_shown_safely),
		CLI_STORY(any_bytes_are_valid_json),
		CLI_STORY(python_accepts_the_json),
		CLI_STORY(a_kind_from_others_is_escaped),
		CLI_STORY(a_description_from_others_is_escaped),
	};
	return cmocka_run_group_tests(tests, make_long_names, cli_stop_server);
}
