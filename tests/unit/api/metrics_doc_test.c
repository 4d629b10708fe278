/* Compares the documents about metrics with the text: each family exists, and each is described. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/exposition.h"
#include "support/check.h"
#include "support/check.h"

#define MOST 64

struct metric_family {
	char name[80];
	char type[20];
};

static struct metric_family families[MOST];
static size_t family_count;

static void read_types(char *text)
{
	char *rest = NULL;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct metric_family *family = &families[family_count];
		if (sscanf(line, "# TYPE %79s %19s", family->name, family->type) != 2)
			continue;
		family_count++;
		assert_true(family_count < MOST);
	}
}

struct text {
	char bytes[65536];
	size_t length;
};

static int keep(void *arg, const char *bytes, size_t length)
{
	struct text *text = arg;
	assert_true(text->length + length < sizeof text->bytes);
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	return 0;
}

/* In the older format the name of a family is that of its samples, except for histograms. */
static int read_families(void **state)
{
	struct hf__snapshot *snapshot = check_alloc(sizeof *snapshot);
	struct text *text = check_alloc(sizeof *text);
	(void)state;
	*snapshot = (struct hf__snapshot){.backend = "redis", .all.since_us = HF__NEVER};
	memset(text, 0, sizeof *text);
	assert_int_equal(
		hf__exposition_write(snapshot, HF_METRICS(.format = HF_PROMETHEUS), keep, text), 0);
	read_types(text->bytes);
	assert_int_equal(family_count, 22);
	free(snapshot);
	free(text);
	return 0;
}

static char *read_document(const char *name)
{
	char *path = check_format("%s/%s", HF_SOURCE_DIR, name);
	FILE *file = fopen(path, "r");
	char *text = check_alloc(65536);
	if (!file)
		fail_msg("%s cannot be read", path);
	size_t length = fread(text, 1, 65535, file);
	assert_true(length > 0 && length < 65535);
	text[length] = 0;
	assert_int_equal(fclose(file), 0);
	free(path);
	return text;
}

static size_t word_length(const char *at)
{
	return strspn(at, "abcdefghijklmnopqrstuvwxyz_");
}

static bool is_sample(const char *word, size_t length)
{
	static const char *const suffixes[] = {"", "_bucket", "_count", "_sum"};
	for (size_t i = 0; i < family_count; i++)
		for (size_t s = 0; s < 4; s++) {
			size_t own = strlen(families[i].name), more = strlen(suffixes[s]);
			bool has = s == 0 || strcmp(families[i].type, "histogram") == 0;
			if (has && own + more == length &&
			    strncmp(word, families[i].name, own) == 0 &&
			    strncmp(word + own, suffixes[s], more) == 0)
				return true;
		}
	return false;
}

/* Whatever begins with our prefix is a metric. Returns how many there are. */
static size_t check_words(const char *document)
{
	char *text = read_document(document);
	size_t words = 0;
	for (const char *at = text; (at = strstr(at, "holdfast_")); words++) {
		size_t length = word_length(at);
		if (!is_sample(at, length))
			fail_msg("%s: there is no metric %.*s", document, (int)length, at);
		at += length;
	}
	free(text);
	return words;
}

static void expressions_name_families_that_exist(void **state)
{
	(void)state;
	assert_true(check_words("docs/grafana.json") >= 15);
	assert_true(check_words("docs/alerts.yml") >= 6);
	assert_true(check_words("docs/metrics.md") >= 22);
}

static void the_page_describes_every_family(void **state)
{
	char *text = read_document("docs/metrics.md");
	(void)state;
	for (size_t i = 0; i < family_count; i++) {
		const char *type = strstr(families[i].name, "_info") ? "info" : families[i].type;
		char *row = check_format("\n| `%s` | %s |", families[i].name, type);
		if (!strstr(text, row))
			fail_msg("docs/metrics.md has no row that begins with%s", row);
		free(row);
	}
	free(text);
}

static void the_page_explains_every_alert(void **state)
{
	char *alerts = read_document("docs/alerts.yml");
	char *page = read_document("docs/metrics.md");
	size_t found = 0;
	(void)state;
	for (const char *at = alerts; (at = strstr(at, "- alert: ")); found++) {
		at += strlen("- alert: ");
		char *row = check_format("\n| `%.*s` |", (int)strcspn(at, "\n"), at);
		if (!strstr(page, row))
			fail_msg("docs/metrics.md has no row that begins with%s", row);
		free(row);
	}
	assert_true(found > 0);
	free(alerts);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_name_families_that_exist),
		cmocka_unit_test(the_page_describes_every_family),
		cmocka_unit_test(the_page_explains_every_alert),
	};
	return cmocka_run_group_tests(tests, read_families, NULL);
}
