/* Checks which names a lock may have, and the errors for all others. */
#include <stdio.h>
#include <string.h>

#include "core/name.h"
#include "support/check.h"

#define CONTROL "name: contains a control character"
#define UTF8    "name: not valid UTF-8"

static void check_good(const char *name)
{
	const char *why = hf__name_check(name);
	if (why)
		fail_msg("\"%s\": %s", name, why);
}

static void check_bad(const char *name, const char *expected)
{
	const char *why = hf__name_check(name);
	if (!why)
		fail_msg("\"%s\" was taken", name);
	assert_string_equal(why, expected);
}

static void ordinary_names_are_good(void **state)
{
	(void)state;
	check_good("orders");
	check_good("orders:42");
	check_good("with a space");
	check_good(" ");
	check_good("~!@#$%^&*()[]|\\\"'");
}

static void length_is_between_1_and_512_bytes(void **state)
{
	char name[514];

	(void)state;
	check_bad("", "name: must not be empty");
	check_good("a");
	memset(name, 'a', sizeof name);
	name[512] = 0;
	check_good(name);
	name[512] = 'a';
	name[513] = 0;
	check_bad(name, "name: longer than 512 bytes");
}

/* 171 characters of three bytes are 513 bytes. */
static void length_counts_bytes_and_not_characters(void **state)
{
	char name[3 * 171 + 1];

	(void)state;
	for (int i = 0; i < 171; i++)
		memcpy(name + 3 * i, "\xe2\x82\xac", 3);
	name[3 * 171] = 0;
	check_bad(name, "name: longer than 512 bytes");
	name[3 * 170] = 0;
	check_good(name);
}

static void control_characters_are_refused_everywhere(void **state)
{
	char name[8];

	(void)state;
	for (int c = 1; c < 0x20; c++) {
		snprintf(name, sizeof name, "a%cb", c);
		check_bad(name, CONTROL);
		snprintf(name, sizeof name, "%c", c);
		check_bad(name, CONTROL);
	}
	check_bad("a\x7f", CONTROL);
	for (int c = 0x80; c < 0xa0; c++) {
		snprintf(name, sizeof name, "a\xc2%cb", c);
		check_bad(name, CONTROL);
	}
	check_good("a\xc2\xa0z");
	check_good("\xc3\x80");
}

static void first_and_last_character_of_each_length_are_good(void **state)
{
	(void)state;
	check_good("\xc2\xa1");
	check_good("\xdf\xbf");
	check_good("\xe0\xa0\x80");
	check_good("\xed\x9f\xbf");
	check_good("\xee\x80\x80");
	check_good("\xef\xbf\xbf");
	check_good("\xf0\x90\x80\x80");
	check_good("\xf4\x8f\xbf\xbf");
	check_good("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92z");
}

static void overlong_characters_are_refused(void **state)
{
	(void)state;
	check_bad("\xc0\xaf", UTF8);
	check_bad("\xc1\xbf", UTF8);
	check_bad("\xe0\x80\xaf", UTF8);
	check_bad("\xe0\x9f\xbf", UTF8);
	check_bad("\xf0\x80\x80\xaf", UTF8);
	check_bad("\xf0\x8f\xbf\xbf", UTF8);
}

static void surrogates_are_refused(void **state)
{
	(void)state;
	check_bad("\xed\xa0\x80", UTF8);
	check_bad("\xed\xbf\xbf", UTF8);
	check_bad("\xed\xa0\xbd\xed\xb4\x92", UTF8);
}

static void what_is_beyond_unicode_is_refused(void **state)
{
	(void)state;
	check_bad("\xf4\x90\x80\x80", UTF8);
	check_bad("\xf5\x80\x80\x80", UTF8);
	check_bad("\xf8\x88\x80\x80\x80", UTF8);
	check_bad("\xfe", UTF8);
	check_bad("\xff", UTF8);
}

static void truncated_characters_are_refused(void **state)
{
	(void)state;
	check_bad("a\xc3", UTF8);
	check_bad("a\xe2", UTF8);
	check_bad("a\xe2\x82", UTF8);
	check_bad("a\xf0", UTF8);
	check_bad("a\xf0\x9f", UTF8);
	check_bad("a\xf0\x9f\x94", UTF8);
	check_bad("\xe2\x82"
	          "a",
	          UTF8);
	check_bad("\xc3\xc3\xa4", UTF8);
}

static void stray_continuations_are_refused(void **state)
{
	(void)state;
	check_bad("\x80", UTF8);
	check_bad("a\xbf", UTF8);
	check_bad("\xc3\xa4\xa4", UTF8);
}

static void closed_tags_are_good(void **state)
{
	(void)state;
	check_good("a{b}");
	check_good("{a}{b}");
	check_good("{orders}:42");
	check_good("{a}");
	check_good("x{a}y{b}z");
}

static void wrong_braces_are_refused_with_the_reason(void **state)
{
	(void)state;
	check_bad("{a", "name: '{' without '}' after it");
	check_bad("{", "name: '{' without '}' after it");
	check_bad("{a}{", "name: '{' without '}' after it");
	check_bad("a}", "name: '}' without '{' before it");
	check_bad("}{", "name: '}' without '{' before it");
	check_bad("{a}}", "name: '}' without '{' before it");
	check_bad("{}", "name: '{}' must not be empty");
	check_bad("{a}{}", "name: '{}' must not be empty");
	check_bad("{{a}}", "name: '{' inside '{'");
	check_bad("{a{b}", "name: '{' inside '{'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_names_are_good),
		cmocka_unit_test(length_is_between_1_and_512_bytes),
		cmocka_unit_test(length_counts_bytes_and_not_characters),
		cmocka_unit_test(control_characters_are_refused_everywhere),
		cmocka_unit_test(first_and_last_character_of_each_length_are_good),
		cmocka_unit_test(overlong_characters_are_refused),
		cmocka_unit_test(surrogates_are_refused),
		cmocka_unit_test(what_is_beyond_unicode_is_refused),
		cmocka_unit_test(truncated_characters_are_refused),
		cmocka_unit_test(stray_continuations_are_refused),
		cmocka_unit_test(closed_tags_are_good),
		cmocka_unit_test(wrong_braces_are_refused_with_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
