/*
 * Compares the documents with the table of settings: each of them has every row, and says the same.
 */
#include "api/setting.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* ---- what the documents have to say ---- */

static const char *default_of(const struct hf__setting *setting)
{
	static char number[40];
	switch (setting->type) {
	case HF__SETTING_FLAG:
	case HF__SETTING_WIDE_FLAG: return setting->preset ? "yes" : "no";
	case HF__SETTING_COUNT:
	case HF__SETTING_DURATION:
		snprintf(number, sizeof number, "%lld%s", (long long)setting->preset,
		         setting->type == HF__SETTING_DURATION ? " ms" : "");
		return number;
	default: return setting->text ? setting->text : setting->no_text;
	}
}

static const char *range_of(const struct hf__setting *setting)
{
	static char range[80];
	switch (setting->type) {
	case HF__SETTING_FLAG:
	case HF__SETTING_WIDE_FLAG: return "yes, no";
	case HF__SETTING_COUNT:
	case HF__SETTING_DURATION:
		snprintf(range, sizeof range, "%lld to %lld%s", (long long)setting->low,
		         (long long)setting->high,
		         setting->type == HF__SETTING_DURATION ? " ms" : "");
		return range;
	default: return setting->values ? setting->values : "text";
	}
}

static const char *server_of(const struct hf__setting *setting)
{
	switch (setting->backend) {
	case HF__SETTING_REDIS: return setting->tls ? "Redis with TLS" : "Redis";
	case HF__SETTING_SENTINEL: return "Sentinel";
	case HF__SETTING_ZK: return "ZooKeeper";
	default: return setting->tls ? "TLS" : "any";
	}
}

static const char *limits_of(const struct hf__setting *setting)
{
	switch (setting->backend) {
	case HF__SETTING_REDIS:
		return setting->tls ? " Only with TLS to Redis." : " Only for Redis.";
	case HF__SETTING_SENTINEL: return " Only for Sentinel.";
	case HF__SETTING_ZK: return " Only for ZooKeeper.";
	default: return setting->tls ? " Only with TLS." : "";
	}
}

/* All of it in sentences. The mark goes before a name that must not be hyphenated. */
static char *describe(const struct hf__setting *setting, const char *mark)
{
	char *variable = setting->variable
	                         ? check_format(" Environment: %s%s.", mark, setting->variable)
	                         : check_copy("", 0);
	char *text = check_format("%s Default: %s.%s%s", setting->about, default_of(setting),
	                          variable, limits_of(setting));
	free(variable);
	return text;
}

/* ---- the documents ---- */

static char *read_document(const char *name)
{
	char *path = check_format("%s/%s", HF_SOURCE_DIR, name);
	char *text = check_alloc(1 << 18);
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("%s cannot be opened", path);
	size_t length = fread(text, 1, (1 << 18) - 1, file);
	assert_true(feof(file));
	assert_true(length > 0);
	fclose(file);
	free(path);
	return text;
}

static void expect_block(const char *document, const char *block)
{
	char *text = read_document(document);
	if (!strstr(text, block)) {
		fputs(block, stderr);
		fail_msg("%s differs from the table of settings; it must have the lines above",
		         document);
	}
	free(text);
}

static char *append(char *text, char *more)
{
	char *both = check_format("%s%s", text, more);
	free(text);
	free(more);
	return both;
}

static void the_page_of_settings_has_the_table(void **state)
{
	(void)state;
	char *table = check_format("| option | default | values | for | environment | meaning |\n"
	                           "|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < HF__SETTING_ROWS; i++) {
		const struct hf__setting *setting = &hf__setting_table[i];
		const char *variable = setting->variable;
		table = append(table, check_format("| `%s` | %s | %s | %s | %s%s%s | %s |\n",
		                                   setting->key, default_of(setting),
		                                   range_of(setting), server_of(setting),
		                                   variable ? "`" : "", variable ? variable : "",
		                                   variable ? "`" : "", setting->about));
	}
	table = append(table, check_copy("\n", 1));
	expect_block("docs/settings.md", table);
	free(table);
}

/* A sentence of a manual page begins on a line of its own. */
static char *break_sentences(char *text)
{
	for (char *at = text; (at = strstr(at, ". ")); at++)
		at[1] = '\n';
	return text;
}

static void the_manual_has_every_setting(void **state)
{
	(void)state;
	char *list = check_format(".Bl -tag -width Ds\n");
	for (size_t i = 0; i < HF__SETTING_ROWS; i++) {
		const struct hf__setting *setting = &hf__setting_table[i];
		list = append(list, check_format(".It Li %s\n", setting->key));
		list = append(list, break_sentences(describe(setting, "\\%")));
		list = append(list, check_copy("\n", 1));
	}
	list = append(list, check_copy(".El\n", 4));
	expect_block("docs/man/holdfast.3", list);
	free(list);
}

/* From one text to the next one after it. */
static char *cut(const char *document, const char *from, const char *to)
{
	char *text = read_document(document);
	const char *begin = strstr(text, from);
	const char *end = begin ? strstr(begin + strlen(from), to) : NULL;
	if (!end)
		fail_msg("%s: nothing from '%s' to '%s'", document, from, to);
	char *part = check_copy(begin, (size_t)(end - begin));
	free(text);
	return part;
}

/* In place: a comment as one line, without its stars and slashes. */
static void flatten(char *text)
{
	char *out = text;
	for (const char *at = text; *at; at++) {
		bool is_blank = isspace((unsigned char)*at) || *at == '*' || *at == '/';
		if (!is_blank)
			*out++ = *at;
		else if (out > text && out[-1] != ' ')
			*out++ = ' ';
	}
	while (out > text && out[-1] == ' ')
		out--;
	*out = 0;
}

static const struct hf__setting *find_field(const char *name)
{
	for (size_t i = 0; i < HF__SETTING_ROWS; i++)
		if (strcmp(hf__setting_table[i].field, name) == 0)
			return &hf__setting_table[i];
	return NULL;
}

/* Callbacks and what goes with them: no URL and no variable can give these. */
static bool is_for_programs(const char *name)
{
	static const char *const names[] = {"size",    "on_event", "event_arg", "on_log",
	                                    "log_arg", "describe", "map_name",  "map_arg"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static char *find_last(char *text, const char *part)
{
	char *last = NULL;
	for (char *at = text; (at = strstr(at, part)); at++)
		last = at;
	return last;
}

static void check_comment(const struct hf__setting *setting, char *comment)
{
	if (!comment)
		fail_msg("%s: has no comment above it", setting->field);
	char *description = describe(setting, "");
	char *wanted = check_format("%s: %s", setting->key, description);
	flatten(comment);
	assert_string_equal(comment, wanted);
	free(description);
	free(wanted);
}

static void the_header_describes_every_option(void **state)
{
	(void)state;
	char *text = cut("include/holdfast/holdfast.h", "typedef struct hf_client_options {", "}");
	size_t found = 0;
	char *at = text;
	for (char *end; (end = strstr(at, ";\n")); at = end + 2) {
		*end = 0;
		char *line = strrchr(at, '\n');
		char *name = end;
		while (name > at && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
			name--;
		const struct hf__setting *setting = find_field(name);
		if (!setting && !is_for_programs(name))
			fail_msg("%s: no row of the table is for it", name);
		if (!setting)
			continue;
		assert_non_null(line);
		*line = 0;
		check_comment(setting, find_last(at, "/*"));
		found++;
	}
	assert_int_equal(found, HF__SETTING_ROWS);
	free(text);
}

/* ---- the environment, and the command ---- */

/* A whole word: HOLDFAST_PASSWORD is not found in HOLDFAST_PASSWORD_FILE. */
static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = text; (at = strstr(at, word)); at += length)
		if (!isalnum((unsigned char)at[length]) && at[length] != '_')
			return true;
	return false;
}

static void expect_variables(const char *document, const char *from, const char *to)
{
	static const char *const others[] = {"HOLDFAST_URL", "HOLDFAST_EMBEDDED_DIR",
	                                     "HOLDFAST_SERVER"};
	char *part = cut(document, from, to);
	for (size_t i = 0; i < HF__SETTING_ROWS; i++) {
		const char *variable = hf__setting_table[i].variable;
		if (variable && !has_word(part, variable))
			fail_msg("%s does not describe %s", document, variable);
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!has_word(part, others[i]))
			fail_msg("%s does not describe %s", document, others[i]);
	free(part);
}

static void the_manuals_describe_every_variable(void **state)
{
	(void)state;
	expect_variables("docs/man/holdfast.1", ".Sh ENVIRONMENT\n", "\n.Sh ");
	expect_variables("docs/man/holdfast.3", ".Sh ENVIRONMENT\n", "\n.Sh ");
	expect_variables("docs/settings.md", "## Environment\n", "\n## ");
}

/* The command has options of its own for some settings, and says their defaults in its help. */
static void the_help_has_the_default_of_the_watchdog(void **state)
{
	(void)state;
	const struct hf__setting *setting = find_field("watchdog_ms");
	char *line = cut("cli/help.c", "--watchdog TIME", "\n");
	char *wanted = check_format("%llds", (long long)setting->preset / 1000);
	if (!has_word(line, wanted))
		fail_msg("cli/help.c: the default is %s: %s", wanted, line);
	free(wanted);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_of_settings_has_the_table),
		cmocka_unit_test(the_manual_has_every_setting),
		cmocka_unit_test(the_header_describes_every_option),
		cmocka_unit_test(the_manuals_describe_every_variable),
		cmocka_unit_test(the_help_has_the_default_of_the_watchdog),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
