/* Help, the version, and which command the first word means. */
#include "cli/cli.h"
#include "support/temp.h"

#include <holdfast/holdfast.h>

static void expect_help(struct cli *cli, const char *command)
{
	CLI_EXPECT(cli, 0);
	char *usage = check_format("Usage: holdfast %s", command);
	assert_memory_equal(cli_output(cli), usage, strlen(usage));
	assert_string_equal(cli_errors(cli), "");
	free(usage);
	cli_free(cli);
}

static void every_command_has_help(void **state)
{
	(void)state;
	for (size_t i = 0; i < CLI_COMMANDS; i++) {
		expect_help(cli_start(CLI_NOWHERE, cli_commands[i], "--help", NULL),
		            cli_commands[i]);
		expect_help(cli_start(CLI_NOWHERE, cli_commands[i], "-h", NULL), cli_commands[i]);
		expect_help(cli_start(CLI_NOWHERE, "help", cli_commands[i], NULL), cli_commands[i]);
	}
	expect_help(cli_start(CLI_NOWHERE, "--help", NULL), "run|elect");
	expect_help(cli_start(CLI_NOWHERE, "help", NULL), "run|elect");
}

/* No line is wider than 80 columns. */
static void help_fits_on_a_terminal(void **state)
{
	(void)state;
	for (size_t i = 0; i < CLI_COMMANDS; i++) {
		struct cli *cli = cli_call(CLI_NOWHERE, 0, cli_commands[i], "--help", NULL);
		for (const char *line = cli_output(cli); *line; line += strcspn(line, "\n") + 1)
			if (strcspn(line, "\n") > 80)
				fail_msg("too long: %.*s", (int)strcspn(line, "\n"), line);
		cli_free(cli);
	}
}

static void the_version_is_that_of_the_library(void **state)
{
	(void)state;
	char *wanted = check_format("holdfast %s\n", hf_version());
	CLI_EXPECT_OUTPUT(CLI_NOWHERE, 0, wanted, "--version");
	free(wanted);
}

static void a_single_unknown_word_is_64(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "unknown command", "backup");
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "unknown command", "lss");
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "unknown command", "");
	cli_expect_refusal(CLI_NOWHERE, 64, "no command given", (const char *const[]){NULL});
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "NAME", "run");
}

static void a_wrong_option_prints_one_line_with_a_remedy(void **state)
{
	(void)state;
	for (size_t i = 1; i < CLI_COMMANDS - 1; i++) {
		char *wanted = check_format("see holdfast %s --help", cli_commands[i]);
		CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, wanted, cli_commands[i], "--nonsense");
		CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, wanted, cli_commands[i], "-Z");
		free(wanted);
	}
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "needs a value", "ls", "--url");
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "--json", "ls", "--json=yes");
}

static void help_for_an_unknown_command_is_64(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "unknown command", "help", "backup");
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "unknown command", "help", "run", "it");
}

static void the_first_word_is_the_command_if_it_is_one(void **state)
{
	(void)state;
	for (size_t i = 1; i < CLI_COMMANDS; i++) {
		/* As the name of a lock it would need the server, which does not exist: 69. */
		if (strcmp(cli_commands[i], "ls") == 0)
			CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "PATTERN", "ls", "echo", "hello");
		else if (strcmp(cli_commands[i], "elect") == 0)
			CLI_EXPECT_REFUSAL(CLI_NOWHERE, 64, "are not options of elect", "elect",
			                   "-s", "echo", "hello");
		else
			CLI_CALL(CLI_NOWHERE, 64, cli_commands[i], "echo", "hello");
	}
	CLI_CALL(CLI_NOWHERE, 64, "--", "ls", "echo", "hello");
	CLI_CALL(CLI_NOWHERE, 69, "run", "ls", "echo", "hello");
	CLI_CALL(CLI_NOWHERE, 69, "backup", "echo", "hello");
}

/* ---- the manual ---- */

/* A fake man that has the pages or not, and prints its arguments. */
static void make_man(const char *status)
{
	char *script = check_format("#!/bin/sh\necho \"manual: $*\"\nexit %s\n", status);
	free(cli_write("man", script, 0755));
	free(script);
}

static struct cli_terminal *help_on_terminal(const char *command)
{
	char *path = check_format("PATH=%s:/usr/bin:/bin", cli_dir);
	const char *const argv[] = {"env", path, cli_path(), "help", command, NULL};
	struct cli_terminal *terminal = cli_terminal_start(CLI_NOWHERE, argv);
	assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
	free(path);
	return terminal;
}

static void help_opens_the_manual_on_a_terminal(void **state)
{
	(void)state;
	make_man("0");
	struct cli_terminal *terminal = help_on_terminal("run");
	CLI_WAIT_TERMINAL(terminal, "manual: 1 holdfast-run");
	cli_terminal_free(terminal);
	terminal = help_on_terminal("elect");
	CLI_WAIT_TERMINAL(terminal, "manual: 1 holdfast-run");
	cli_terminal_free(terminal);
	terminal = help_on_terminal("doctor");
	CLI_WAIT_TERMINAL(terminal, "manual: 1 holdfast\r\n");
	assert_null(strstr(cli_terminal_text(terminal), "-w"));
	cli_terminal_free(terminal);
}

static void help_without_a_manual_prints_the_short_text(void **state)
{
	(void)state;
	make_man("16");
	struct cli_terminal *terminal = help_on_terminal("ping");
	CLI_WAIT_TERMINAL(terminal, "Usage: holdfast ping");
	assert_null(strstr(cli_terminal_text(terminal), "manual"));
	cli_terminal_free(terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_has_help),
		cmocka_unit_test(help_fits_on_a_terminal),
		cmocka_unit_test(the_version_is_that_of_the_library),
		cmocka_unit_test(a_single_unknown_word_is_64),
		cmocka_unit_test(a_wrong_option_prints_one_line_with_a_remedy),
		cmocka_unit_test(help_for_an_unknown_command_is_64),
		cmocka_unit_test(the_first_word_is_the_command_if_it_is_one),
		CLI_DIR_STORY(help_opens_the_manual_on_a_terminal),
		CLI_DIR_STORY(help_without_a_manual_prints_the_short_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
