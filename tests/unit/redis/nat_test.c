/* Rules of address translation. */
#include "redis/nat.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

static void rules_are_checked(void **state)
{
	static const char *const good[] = {
		"a:b",         "a:b,c:d",         "10.0.0.1:7001:h:1",
		"[fe80::1]:b", "a:[::1]",         "[::1]:7001:[::2]:7002",
		"a:1:b:65535", "a:b,c:7001:d:80", "7:8"};
	static const char *const bad[] = {
		"",       ",",        "a",           "a:",      ":b",      "a:b,",      ",a:b",
		"a:b:c",  "a:x:b:1",  "a:1:b:y",     "a:0:b:1", "a:1:b:0", "a:1:b:2:3", "[a:b",
		"[a]x:b", "a:b,,c:d", "a:1:b:65536", "a:1:b:",  "[]:b"};
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!hf__nat_is_valid(good[i]))
			fail_msg("'%s' is refused", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (hf__nat_is_valid(bad[i]))
			fail_msg("'%s' is accepted", bad[i]);
}

/* Checks what becomes of the address. */
static void check_mapped(const char *rules, const char *host, int port, const char *to)
{
	char mapped[64], text[80];
	snprintf(mapped, sizeof mapped, "%s", host);
	hf__nat_apply(rules, mapped, sizeof mapped, &port);
	snprintf(text, sizeof text, "%s %d", mapped, port);
	assert_string_equal(text, to);
}

static void the_first_rule_that_fits_counts(void **state)
{
	(void)state;
	check_mapped(NULL, "a", 1, "a 1");
	check_mapped("a:b", "a", 1, "b 1");
	check_mapped("a:b", "aa", 1, "aa 1");
	check_mapped("a:7001:x:1,a:7002:y:2,a:z", "a", 7002, "y 2");
	check_mapped("a:7001:x:1,a:7002:y:2,a:z", "a", 7003, "z 7003");
	check_mapped("[::1]:7001:[::2]:7002", "::1", 7001, "::2 7002");
	check_mapped("a:b,b:c", "a", 1, "b 1");
}

static void a_host_that_is_too_long_is_not_taken_over(void **state)
{
	char host[4] = "abc";
	int port = 1;
	(void)state;
	hf__nat_apply("abc:wxyz", host, sizeof host, &port);
	assert_string_equal(host, "abc");
	hf__nat_apply("abc:xyz", host, sizeof host, &port);
	assert_string_equal(host, "xyz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_checked),
		cmocka_unit_test(the_first_rule_that_fits_counts),
		cmocka_unit_test(a_host_that_is_too_long_is_not_taken_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
