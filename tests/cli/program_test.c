/* Commands that are programs of their own: how they are found, and what they are given. */
#include "cli/cli.h"

#define SECRET_URL "redis://me:s3cr3t@127.0.0.1:1"

static void run_shell(const char *format, const char *word)
{
	char *command = check_format(format, cli_dir, word);
	assert_int_equal(system(command), 0);
	free(command);
}

/* Each story has a copy of the command in bin/. */
static int copy_command(void **state)
{
	(void)cli_make_dir(state);
	run_shell("mkdir -p %1$s/bin %1$s/libexec/holdfast && cp %2$s %1$s/bin/", cli_path());
	return 0;
}

/* A program that prints what it was given. */
static void make_program(const char *folder)
{
	char *name = check_format("%s/holdfast-top", folder);
	free(cli_write(name,
	               "#!/bin/sh\necho \"in $0\"\nfor word; do echo \"word $word\"; done\n"
	               "echo \"url $HOLDFAST_URL\"\n",
	               0755));
	free(name);
}

static struct cli *start_copy(const char *const *words)
{
	char *path = check_format("%s/bin/holdfast", cli_dir);
	const char *argv[16] = {path};
	for (int i = 0; words[i]; i++)
		argv[i + 1] = words[i];
	struct cli *cli = cli_start_program(CLI_NOWHERE, argv);
	(void)cli_wait(cli, CLI_SOON_MS);
	free(path);
	return cli;
}

#define START_COPY(...) start_copy((const char *const[]){__VA_ARGS__, NULL})

static void missing_program_is_69_with_a_remedy(void **state)
{
	(void)state;
	struct cli *cli = START_COPY("top");
	CLI_EXPECT(cli, 69);
	assert_string_equal(cli_output(cli), "");
	assert_int_equal(cli_count(cli_errors(cli), "\n"), 1);
	cli_expect_in(cli_errors(cli), "holdfast-top is not installed; install the package");
	cli_free(cli);
}

static void usage_errors_need_no_program(void **state)
{
	(void)state;
	const char *const wrong[][3] = {{"top", "-d", "0"},  {"top", "-d", "x"},
	                                {"top", "a", "b"},   {"top", "-s", "size"},
	                                {"top", "-d", "2h"}, {"top", "--once", "--nonsense"}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct cli *cli = START_COPY(wrong[i][0], wrong[i][1], wrong[i][2]);
		CLI_EXPECT(cli, 64);
		cli_expect_in(cli_errors(cli), "holdfast: top: ");
		cli_free(cli);
	}
}

static void installed_program_comes_before_one_next_to_the_command(void **state)
{
	(void)state;
	make_program("bin");
	struct cli *cli = START_COPY("top");
	CLI_EXPECT(cli, 0);
	cli_expect_in(cli_output(cli), "/bin/holdfast-top\n");
	cli_free(cli);
	make_program("libexec/holdfast");
	cli = START_COPY("top");
	CLI_EXPECT(cli, 0);
	cli_expect_in(cli_output(cli), "/libexec/holdfast/holdfast-top\n");
	cli_free(cli);
}

/* Everybody on the host can read the arguments of a process. */
static void no_password_is_among_the_arguments(void **state)
{
	(void)state;
	make_program("libexec/holdfast");
	struct cli *runs[] = {
		START_COPY("--url", SECRET_URL, "top", "-s", "held", "some*"),
		START_COPY("top", "-s", "held", "--url", SECRET_URL, "some*"),
		START_COPY("top", "--url=" SECRET_URL, "-s", "held", "some*"),
		START_COPY("top", "some*", "-s", "held", "--ur=" SECRET_URL),
	};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		CLI_EXPECT(runs[i], 0);
		assert_int_equal(cli_count(cli_output(runs[i]), "s3cr3t"), 1);
		assert_int_equal(cli_count(cli_output(runs[i]), "word "), 3);
		cli_expect_in(cli_output(runs[i]), "word -s\nword held\nword some*\n");
		cli_expect_in(cli_output(runs[i]), "url " SECRET_URL "\n");
		cli_free(runs[i]);
	}
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, copy_command, cli_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(missing_program_is_69_with_a_remedy),
		STORY(usage_errors_need_no_program),
		STORY(installed_program_comes_before_one_next_to_the_command),
		STORY(no_password_is_among_the_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
