/* Every kind of lock in holdfast.h has its name wherever kinds are listed. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/kinds.h"

#define SIZE (1 << 17)

/* Kinds that holdfast run does not offer: one is for elect, the other has no name there. */
#define OTHER_KINDS (HF__BIT(HF_LEADER) | HF__BIT(HF_SIMPLE_FAIR))

static char *identifier[HF__GROUP]; /* as the header has them, by number */

static char *read_file(const char *name)
{
	char *path = check_format("%s/%s", HF_SOURCE_DIR, name);
	FILE *file = fopen(path, "r");
	char *text = check_alloc(SIZE);
	if (!file)
		fail_msg("%s cannot be read", path);
	size_t length = fread(text, 1, SIZE - 1, file);
	assert_true(length > 0 && feof(file));
	text[length] = 0;
	assert_int_equal(fclose(file), 0);
	free(path);
	return text;
}

/* What stands between two marks, the first of which must exist. */
static char *cut(const char *name, const char *from, const char *to)
{
	char *text = read_file(name);
	const char *begin = strstr(text, from);
	if (!begin)
		fail_msg("%s does not contain %s", name, from);
	begin += strlen(from);
	const char *end = strstr(begin, to);
	assert_non_null(end);
	char *part = check_copy(begin, (size_t)(end - begin));
	free(text);
	return part;
}

/* Whether the word stands there on its own: simple is not in simple-fair. */
static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = text; (at = strstr(at, word)); at += length) {
		char before = at == text ? ' ' : at[-1], after = at[length];
		bool begins = !isalnum((unsigned char)before) && before != '_' && before != '-';
		bool ends = !isalnum((unsigned char)after) && after != '_' && after != '-';
		if (begins && ends)
			return true;
	}
	return false;
}

static void expect_word(const char *name, const char *text, const char *word)
{
	if (!has_word(text, word))
		fail_msg("%s: %s is missing", name, word);
}

static int read_header(void **state)
{
	char *text = cut("include/holdfast/holdfast.h", "typedef enum hf_kind {", "} hf_kind;");
	char name[32];
	int number;
	(void)state;
	for (const char *at = text; (at = strstr(at, "\tHF_")); at++) {
		if (sscanf(at, "\t%31[A-Z_] = %d", name, &number) != 2)
			continue;
		if (number < HF_REENTRANT || number >= HF__GROUP)
			fail_msg("%s = %d: enum hf__kind begins with %d", name, number, HF__GROUP);
		identifier[number] = check_copy(name, strlen(name));
	}
	free(text);
	return 0;
}

static int free_names(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__GROUP; kind++)
		free(identifier[kind]);
	return 0;
}

/* ---- the library ---- */

static void every_kind_is_called_like_its_number(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__GROUP; kind++) {
		char word[32] = "";
		assert_non_null(identifier[kind]);
		for (size_t i = 0; identifier[kind][3 + i]; i++) {
			char c = identifier[kind][3 + i];
			word[i] = c == '_' ? '-' : (char)tolower((unsigned char)c);
		}
		assert_string_equal(hf__kind_word(kind), word);
	}
}

static void documents_have_every_kind(void **state)
{
	static const char *const names[] = {"include/holdfast/holdfast.hpp", "docs/kinds.md",
	                                    "docs/man/holdfast.3"};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *text = read_file(names[i]);
		for (int kind = HF_REENTRANT; kind < HF__GROUP; kind++)
			expect_word(names[i], text, identifier[kind]);
		free(text);
	}
}

static void metrics_have_every_kind(void **state)
{
	char *text = cut("docs/metrics.md", "\n- `kind` is the kind of lock:", ". ");
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++)
		expect_word("docs/metrics.md", text, hf__kind_word(kind));
	free(text);
}

/* ---- the command ---- */

static void expect_kinds_of_run(const char *name, const char *from, const char *to)
{
	char *text = cut(name, from, to);
	expect_word(name, text, "semaphore");
	for (int kind = HF_REENTRANT; kind < HF__GROUP; kind++)
		if (!(OTHER_KINDS & HF__BIT(kind)))
			expect_word(name, text, hf__kind_word(kind));
	free(text);
}

static void run_knows_every_kind(void **state)
{
	char *text = cut("cli/run_options.c", "kinds[] = {", "};");
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__GROUP; kind++) {
		char *row = check_format("{\"%s\", %s}", hf__kind_word(kind), identifier[kind]);
		bool is_there = strstr(text, row);
		if (is_there == !!(OTHER_KINDS & HF__BIT(kind)))
			fail_msg("cli/run_options.c: %s", row);
		free(row);
	}
	free(text);
	expect_kinds_of_run("cli/run_options.c", "\"--kind must be ", ");");
}

static void help_and_manual_have_the_kinds_of_run(void **state)
{
	(void)state;
	expect_kinds_of_run("cli/help.c", "--kind KIND ", "--permits");
	expect_kinds_of_run("docs/man/holdfast-run.1", "\n.It Fl -kind Ar kind\n", "\n.It Fl ");
}

static void completions_have_the_kinds_of_run(void **state)
{
	(void)state;
	expect_kinds_of_run("completions/_holdfast", "'--kind=[kind of lock]:kind:(", ")'");
	expect_kinds_of_run("completions/holdfast.bash", "else\n\t\t\t_holdfast_reply -W '",
	                    "' --");
	expect_kinds_of_run("completions/holdfast.fish", "$lock -l kind -x -a '", "' -d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_called_like_its_number),
		cmocka_unit_test(documents_have_every_kind),
		cmocka_unit_test(metrics_have_every_kind),
		cmocka_unit_test(run_knows_every_kind),
		cmocka_unit_test(help_and_manual_have_the_kinds_of_run),
		cmocka_unit_test(completions_have_the_kinds_of_run),
	};
	return cmocka_run_group_tests(tests, read_header, free_names);
}
