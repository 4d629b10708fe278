/*
 * The manual pages: each example can be copied from a narrow terminal as it stands, and no heading
 * or line is cut.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <glob.h>

#define MOST    64
#define LONGEST 256

static const int widths[] = {72, 80};

/* Each formats a page from its standard input for a terminal of $W columns. */
static const struct {
	const char *program, *line;
	bool drops_title; /* at the right of the first line, where there is no room for it */
} formatters[] = {
	{"groff", "groff -wbreak -mdoc -Tutf8 -rLL=${W}n -rLT=${W}n -P-cbou", false},
	{"mandoc", "mandoc -Tutf8 -Owidth=$W | sed 's/.\\x08//g'", true},
};

struct examples {
	char lines[MOST][LONGEST];
	bool is_last[MOST]; /* of its example */
	size_t n;
};

typedef void page_fn(const char *path);

/* Visits every page, or every one of a section. */
static void each_page(const char *section, page_fn *visit)
{
	char *pattern = check_format(HF_MAN "/*.%s", section);
	glob_t pages;
	assert_int_equal(glob(pattern, 0, NULL, &pages), 0);
	for (size_t i = 0; i < pages.gl_pathc; i++)
		visit(pages.gl_pathv[i]);
	globfree(&pages);
	free(pattern);
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

/* Reads the section of examples, and with `all` also what other sections show as it stands. */
static void read_examples(const char *path, bool all, struct examples *ret_examples)
{
	char source[LONGEST];
	bool in_section = false, in_example = false, has_section = false;
	FILE *file = fopen(path, "re");
	if (!file)
		fail_msg("cannot open %s", path);
	ret_examples->n = 0;
	while (fgets(source, sizeof source, file)) {
		if (strncmp(source, ".Sh ", 4) == 0)
			in_section = strcmp(source, ".Sh EXAMPLES\n") == 0;
		has_section |= in_section;
		if (in_section && strncmp(source, ".Dl", 3) == 0)
			fail_msg("%s: .Dl is filled, and so broken into lines: %s", path, source);
		bool is_end = strcmp(source, ".Ed\n") == 0;
		if (in_example && is_end)
			ret_examples->is_last[ret_examples->n - 1] = true;
		else if (in_example && ret_examples->n < MOST) {
			ret_examples->is_last[ret_examples->n] = false;
			unescape(source, ret_examples->lines[ret_examples->n++]);
		}
		in_example = !is_end && (in_example ||
		                         ((in_section || all) && strncmp(source, ".Bd", 3) == 0));
	}
	assert_int_equal(fclose(file), 0);
	assert_true(ret_examples->n > 3 || !has_section);
}

static struct cli *format_page(const char *path, size_t formatter, int width)
{
	char *script = check_format("W=%d; <%s %s", width, path, formatters[formatter].line);
	struct cli *cli = cli_start_program(NULL, (const char *const[]){"sh", "-c", script, NULL});
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_errors(cli), "");
	free(script);
	return cli;
}

/* How many columns the first bytes of a text have. */
static int count_columns(const char *text, size_t length)
{
	int columns = 0;
	for (size_t i = 0; i < length; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

static void expect_no_wide_line(const char *text, int width)
{
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		if (count_columns(line, strcspn(line, "\n")) > width)
			fail_msg("wider than %d columns: %.*s", width, (int)strcspn(line, "\n"),
			         line);
}

/* Words at both ends of a line, and something between them. */
static void expect_ends(const char *line, const char *word)
{
	size_t length = strcspn(line, "\n"), size = strlen(word);
	if (length < 2 * size + 2 || strncmp(line, word, size) != 0 ||
	    strncmp(line + length - size, word, size) != 0 || line[size] != ' ' ||
	    line[length - size - 1] != ' ')
		fail_msg("not from %s to %s: %.*s", word, word, (int)length, line);
}

/* The first line is "NAME(1)  ...  NAME(1)", and the last one "Holdfast  DATE  Holdfast". */
static void expect_headings(const char *text, const char *path, bool drops_title)
{
	const char *page = strrchr(path, '/') + 1;
	char *title =
		check_format("%.*s(%s)", (int)strcspn(page, "."), page, strchr(page, '.') + 1);
	for (char *at = title; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	text += strspn(text, "\n");
	bool has_both = strstr(text + 1, title) != NULL;
	if (has_both || !drops_title)
		expect_ends(text, title);
	else
		assert_int_equal(strncmp(text, title, strlen(title)), 0);
	size_t end = strlen(text);
	while (end > 0 && text[end - 1] == '\n')
		end--;
	while (end > 0 && text[end - 1] != '\n')
		end--;
	expect_ends(text + end, "Holdfast");
	free(title);
}

static void expect_whole_line(const char *text, const char *wanted)
{
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		const char *at = line + strspn(line, " ");
		size_t length = strcspn(at, "\n");
		if (length != strlen(wanted) - strspn(wanted, " ") ||
		    strncmp(at, wanted + strspn(wanted, " "), length) != 0)
			continue;
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

static void expect_backslashes(const char *path)
{
	static struct examples examples;
	read_examples(path, false, &examples);
	for (size_t i = 0; i < examples.n; i++) {
		const char *line = examples.lines[i];
		bool continued = line[strlen(line) - 1] == '\\';
		if (continued == examples.is_last[i])
			fail_msg("%s: %s", path, line);
	}
}

/* A line that a shell treats as a whole command must not be the first half of one. */
static void a_continued_line_ends_in_a_backslash(void **state)
{
	(void)state;
	each_page("1", expect_backslashes);
}

static void expect_page(const char *path)
{
	static struct examples examples;
	read_examples(path, true, &examples);
	for (size_t f = 0; f < sizeof formatters / sizeof *formatters; f++) {
		if (!has_program(formatters[f].program))
			continue;
		for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
			struct cli *cli = format_page(path, f, widths[w]);
			expect_headings(cli_output(cli), path, formatters[f].drops_title);
			expect_no_wide_line(cli_output(cli), widths[w]);
			for (size_t i = 0; i < examples.n; i++)
				expect_whole_line(cli_output(cli), examples.lines[i]);
			cli_free(cli);
		}
	}
}

static void a_page_stays_whole_on_a_narrow_terminal(void **state)
{
	(void)state;
	if (!has_program("groff") && !has_program("mandoc")) {
		print_message("Left out: neither groff nor mandoc is installed\n");
		skip();
	}
	each_page("*", expect_page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_continued_line_ends_in_a_backslash),
		cmocka_unit_test(a_page_stays_whole_on_a_narrow_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
