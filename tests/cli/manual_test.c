/*
 * The manual pages of the command: each example can be copied from a narrow terminal as it stands.
 */
#include "cli/cli.h"

#define WIDTH    72
#define MOST     64
#define LONGEST  256
#define TEST_DIR "tests/cli/manual_test.c"

static const char *const pages[] = {"holdfast.1", "holdfast-run.1", "holdfast-top.1",
                                    "holdfast-history.1", "holdfast-web.1"};

/* Each formats a page from its standard input for a terminal of WIDTH columns. */
static const struct {
	const char *program, *line;
} formatters[] = {
	{"groff", "groff -mdoc -Tutf8 -rLL=72n -rLT=72n -P-cbou"},
	{"mandoc", "mandoc -Tutf8 -Owidth=72 | sed 's/.\\x08//g'"},
};

struct examples {
	char lines[MOST][LONGEST];
	bool is_last[MOST]; /* of its example */
	size_t n;
};

static char *page_path(const char *page)
{
	return check_format("%.*sdocs/man/%s", (int)(strlen(__FILE__) - strlen(TEST_DIR)), __FILE__,
	                    page);
}

/* Writes a source line as a reader sees it: \e is a backslash, \(aq a quote, \- a dash. */
static void unescape(const char *source, char *ret_line)
{
	for (; *source && *source != '\n'; source++) {
		if (strncmp(source, "\\(aq", 4) == 0) {
			*ret_line++ = '\'';
			source += 3;
		} else if (*source == '\\') {
			source++;
			*ret_line++ = *source == 'e' ? '\\' : *source;
		} else {
			*ret_line++ = *source;
		}
	}
	*ret_line = 0;
}

static void read_examples(const char *path, struct examples *ret_examples)
{
	char source[LONGEST];
	bool in_section = false, in_example = false;
	FILE *file = fopen(path, "re");
	if (!file)
		fail_msg("cannot open %s", path);
	ret_examples->n = 0;
	while (fgets(source, sizeof source, file)) {
		if (strncmp(source, ".Sh ", 4) == 0)
			in_section = strcmp(source, ".Sh EXAMPLES\n") == 0;
		if (in_section && strncmp(source, ".Dl", 3) == 0)
			fail_msg("%s: .Dl is filled, and so broken into lines: %s", path, source);
		bool is_end = strcmp(source, ".Ed\n") == 0;
		if (in_example && is_end)
			ret_examples->is_last[ret_examples->n - 1] = true;
		else if (in_example && ret_examples->n < MOST) {
			ret_examples->is_last[ret_examples->n] = false;
			unescape(source, ret_examples->lines[ret_examples->n++]);
		}
		in_example =
			!is_end && (in_example || (in_section && strncmp(source, ".Bd", 3) == 0));
	}
	assert_int_equal(fclose(file), 0);
	assert_true(ret_examples->n > 3);
}

static struct cli *format_page(const char *path, const char *formatter)
{
	char *script = check_format("<%s %s", path, formatter);
	struct cli *cli = cli_start_program(NULL, (const char *const[]){"sh", "-c", script, NULL});
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_errors(cli), "");
	free(script);
	return cli;
}

static void expect_whole_line(const char *text, const char *wanted)
{
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		const char *at = line + strspn(line, " ");
		size_t length = strcspn(at, "\n");
		if (length != strlen(wanted) - strspn(wanted, " ") ||
		    strncmp(at, wanted + strspn(wanted, " "), length) != 0)
			continue;
		if (strcspn(line, "\n") > WIDTH)
			fail_msg("wider than %d columns: %s", WIDTH, wanted);
		return;
	}
	fail_msg("not one line: %s", wanted);
}

static bool has_program(const char *program)
{
	char *script = check_format("command -v %s >/dev/null", program);
	struct cli *cli = cli_start_program(NULL, (const char *const[]){"sh", "-c", script, NULL});
	bool found = cli_wait(cli, CLI_SOON_MS) == 0;
	cli_free(cli);
	free(script);
	return found;
}

/* A line that a shell takes for a whole command must not be the first half of one. */
static void a_continued_line_ends_in_a_backslash(void **state)
{
	static struct examples examples;
	(void)state;
	for (size_t p = 0; p < sizeof pages / sizeof *pages; p++) {
		char *path = page_path(pages[p]);
		read_examples(path, &examples);
		for (size_t i = 0; i < examples.n; i++) {
			const char *line = examples.lines[i];
			bool continued = line[strlen(line) - 1] == '\\';
			if (continued == examples.is_last[i])
				fail_msg("%s: %s", path, line);
		}
		free(path);
	}
}

static void an_example_stays_whole_on_a_narrow_terminal(void **state)
{
	static struct examples examples;
	size_t formatted = 0;
	(void)state;
	for (size_t f = 0; f < sizeof formatters / sizeof *formatters; f++) {
		if (!has_program(formatters[f].program))
			continue;
		formatted++;
		for (size_t p = 0; p < sizeof pages / sizeof *pages; p++) {
			char *path = page_path(pages[p]);
			read_examples(path, &examples);
			struct cli *cli = format_page(path, formatters[f].line);
			for (size_t i = 0; i < examples.n; i++)
				expect_whole_line(cli_output(cli), examples.lines[i]);
			cli_free(cli);
			free(path);
		}
	}
	if (formatted == 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_continued_line_ends_in_a_backslash),
		cmocka_unit_test(an_example_stays_whole_on_a_narrow_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
