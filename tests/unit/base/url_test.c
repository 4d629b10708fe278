/* Checks how URLs are taken apart, and the errors about wrong ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/holdfast.h>

#include "base/url.h"
#include "support/check.h"

static struct hf__url url;
static char why[256];

static void take(const char *text)
{
	why[0] = '\0';
	if (hf__url_init(&url, text, why, sizeof(why)) != 0)
		fail_msg("%s: %s", text, why);
}

static void check_refused(const char *text, const char *expected)
{
	strcpy(why, "nothing said");
	assert_int_equal(hf__url_init(&url, text, why, sizeof(why)), HF_EINVAL);
	assert_string_equal(why, expected);
	assert_null(url.block);
	hf__url_done(&url);
}

static void all_parts_are_found(void **state)
{
	(void)state;
	take("redis://me:secret@cache1:6380/3?lazy=yes&client_name=a=b");
	assert_string_equal(url.scheme, "redis");
	assert_string_equal(url.user, "me");
	assert_string_equal(url.password, "secret");
	assert_string_equal(url.host, "cache1");
	assert_int_equal(url.port, 6380);
	assert_string_equal(url.authority, "cache1:6380");
	assert_string_equal(url.path, "/3");
	assert_int_equal(url.pair_count, 2);
	assert_string_equal(url.pairs[0].key, "lazy");
	assert_string_equal(url.pairs[0].value, "yes");
	assert_string_equal(url.pairs[1].key, "client_name");
	assert_string_equal(url.pairs[1].value, "a=b");
	hf__url_done(&url);
}

static void absent_parts_are_null_or_empty(void **state)
{
	(void)state;
	take("redis+unix://host");
	assert_string_equal(url.scheme, "redis+unix");
	assert_null(url.user);
	assert_null(url.password);
	assert_int_equal(url.port, 0);
	assert_string_equal(url.path, "");
	assert_int_equal(url.pair_count, 0);
	hf__url_done(&url);
}

static void empty_user_and_password_are_not_absent(void **state)
{
	(void)state;
	take("redis://:@h");
	assert_string_equal(url.user, "");
	assert_string_equal(url.password, "");
	hf__url_done(&url);
	take("redis://u@h");
	assert_string_equal(url.user, "u");
	assert_null(url.password);
	hf__url_done(&url);
}

static void escapes_are_resolved_after_splitting(void **state)
{
	(void)state;
	take("redis://a%3Ab:c%40%2f%25@h%2d1/x%3Fy?k%3D=v%26w");
	assert_string_equal(url.user, "a:b");
	assert_string_equal(url.password, "c@/%");
	assert_string_equal(url.host, "h-1");
	assert_string_equal(url.path, "/x?y");
	assert_string_equal(url.pairs[0].key, "k=");
	assert_string_equal(url.pairs[0].value, "v&w");
	assert_string_equal(url.authority, "h%2d1");
	hf__url_done(&url);
}

static void last_at_sign_ends_the_user_part(void **state)
{
	(void)state;
	take("redis://u:a@b:c@h");
	assert_string_equal(url.password, "a@b:c");
	assert_string_equal(url.host, "h");
	hf__url_done(&url);
}

static void brackets_of_ip6_are_removed(void **state)
{
	(void)state;
	take("redis://[2001:db8::1]:7000/1");
	assert_string_equal(url.host, "2001:db8::1");
	assert_int_equal(url.port, 7000);
	hf__url_done(&url);
	take("redis://[fe80::1%25eth0]");
	assert_string_equal(url.host, "fe80::1%eth0");
	assert_int_equal(url.port, 0);
	hf__url_done(&url);
}

static void several_hosts_are_left_to_the_caller(void **state)
{
	(void)state;
	take("zk://u:p@h1:2181,[::1]:2182/chroot");
	assert_string_equal(url.authority, "h1:2181,[::1]:2182");
	assert_string_equal(url.host, "h1:2181,[::1]:2182");
	assert_int_equal(url.port, 0);
	assert_string_equal(url.path, "/chroot");
	hf__url_done(&url);
}

static void host_can_be_empty_before_a_path(void **state)
{
	(void)state;
	take("redis+unix:///run/@redis.sock?db=2");
	assert_string_equal(url.host, "");
	assert_string_equal(url.path, "/run/@redis.sock");
	assert_string_equal(url.pairs[0].value, "2");
	hf__url_done(&url);
}

static void scheme_alone_has_no_host(void **state)
{
	(void)state;
	take("embedded:?lazy&&db=");
	assert_string_equal(url.scheme, "embedded");
	assert_null(url.host);
	assert_null(url.authority);
	assert_string_equal(url.path, "");
	assert_int_equal(url.pair_count, 2);
	assert_string_equal(url.pairs[0].key, "lazy");
	assert_string_equal(url.pairs[0].value, "");
	assert_string_equal(url.pairs[1].value, "");
	hf__url_done(&url);
}

#define HINT "; a password needs '@' and the host after it"

static void wrong_parts_are_named(void **state)
{
	(void)state;
	check_refused("", "scheme: missing; a URL begins like redis://host");
	check_refused("localhost", "scheme: missing; a URL begins like redis://host");
	check_refused("6redis://h", "scheme: missing; a URL begins like redis://host");
	check_refused("://h", "scheme: missing; a URL begins like redis://host");
	check_refused("redis:localhost", "scheme: '//' must follow the ':'");
	check_refused("redis:/localhost", "scheme: '//' must follow the ':'");
	check_refused("localhost:6379", "scheme: missing; write redis://localhost:6379");
	check_refused("redis:6379", "scheme: missing; write redis://redis:6379");
	check_refused("10.0.0.1:7000", "scheme: missing; write redis://10.0.0.1:7000");
	check_refused("zk_1.local:2181", "scheme: missing; write zk://zk_1.local:2181");
	/* These may be passwords. */
	check_refused("default:123456", "scheme: '//' must follow the ':'");
	check_refused("default:1234@h", "scheme: '//' must follow the ':'");
	check_refused("redis://", "host: missing");
	check_refused("redis://u:p@", "host: missing");
	check_refused("redis://:6379", "host: missing");
	check_refused("redis://?a=b", "host: missing");
	check_refused("redis://h:70000", "port: not between 1 and 65535" HINT);
	check_refused("redis://h:99999999999999999999999", "port: not between 1 and 65535" HINT);
	check_refused("redis://h:0", "port: not between 1 and 65535" HINT);
	check_refused("redis://h:", "port: missing after the ':'");
	check_refused("redis://h:-1", "port: not a number" HINT);
	check_refused("zk://h:1,i:x", "port: not a number" HINT);
	check_refused("zk://[::1]:1,[::2]:70000,k", "port: not between 1 and 65535" HINT);
	check_refused("redis://u:secret],h", "port: not a number" HINT);
	check_refused("redis://[u:secret],h",
	              "host: expected an IPv6 address between the brackets");
	check_refused("redis://h,[::1", "host: '[' without ']'");
	check_refused("redis://h,[::1]x", "host: only a port may follow the ']'");
	check_refused("redis://u%3Asecret,h",
	              "host: contains an escaped ':'; escape it in users and passwords only");
	check_refused("redis://[::1", "host: '[' without ']'");
	check_refused("redis://[::1]6379", "host: only a port may follow the ']'");
	check_refused("redis://[cache]", "host: expected an IPv6 address between the brackets");
	check_refused("redis://[]", "host: expected an IPv6 address between the brackets");
	check_refused("redis://::1", "host: missing");
	check_refused("redis://fe80::1", "host: more than one ':'; an IPv6 address needs brackets");
	check_refused("redis://a%20b", "host: contains a space, a control character or an '@'");
	check_refused("redis://a%40b", "host: contains a space, a control character or an '@'");
	check_refused("redis://a%3Ab",
	              "host: contains an escaped ':'; escape it in users and passwords only");
	check_refused("redis://h?=v", "query: '=' without a name at byte 11");
}

static void wrong_bytes_are_counted(void **state)
{
	(void)state;
	check_refused("redis://h/a%2",
	              "URL: the percent escape at byte 12 lacks its two hexadecimal digits");
	check_refused("redis://u%zz@h",
	              "URL: the percent escape at byte 10 lacks its two hexadecimal digits");
	check_refused("redis://u%4@0h",
	              "URL: the percent escape at byte 10 lacks its two hexadecimal digits");
	check_refused("redis://h/%00", "URL: the percent escape at byte 11 is a NUL");
	check_refused("redis://h /",
	              "URL: byte 10 is a space or control character; write it as a percent escape");
	check_refused("redis://h\n",
	              "URL: byte 10 is a space or control character; write it as a percent escape");
	check_refused("redis://h/#a", "URL: byte 11 is a '#'; write it as %23");
}

static void misplaced_password_is_never_shown(void **state)
{
	static const char *const texts[] = {
		"redis://u:hunter2",
		"redis://u:12hunter2@h:x",
		"redis://u:hunter2/3@h",
		"redis://u:1/hunter2@h",
		"redis://u:1?hunter2@h",
		"redis://u:1@h/hunter2@h",
		"redis://u:hunter2#x@h",
		"redis://u:hunter2%@h",
		"redis://u:hunter2@h:70000",
		"redis://u:hunter2@[h",
		"u:hunter2@h",
		"redis://u:hunter2 @h",
		"redis://:hunter2@",
		"redis://u:hunter2@h:1:2",
		"redis:u:hunter2@h",
		"redis://u:8642013579",
		"redis://u%3Ahunter2",
		"redis://u%3Ahunter2%40h",
		"redis://u%3Ahunter2%40h:1",
		"zk://u:hunter2,h",
		"zk://h,u:hunter2",
		"zk://u:8642013579,h",
		"zk://u%3Ahunter2%40h,i",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		why[0] = '\0';
		assert_int_equal(hf__url_init(&url, texts[i], why, sizeof(why)), HF_EINVAL);
		assert_true(why[0]);
		assert_null(strstr(why, "hunter2"));
		assert_null(strstr(why, "8642013579"));
	}
}

static void longest_url_is_accepted_and_a_longer_one_is_not(void **state)
{
	char text[HF__URL_MAX + 2] = "redis://";

	(void)state;
	memset(text + 8, 'h', sizeof(text) - 8);
	text[HF__URL_MAX + 1] = '\0';
	check_refused(text, "URL: longer than the 4096 bytes that are allowed");
	text[HF__URL_MAX] = '\0';
	take(text);
	assert_int_equal(strlen(url.host), HF__URL_MAX - 8);
	hf__url_done(&url);
}

static void thirty_two_options_are_accepted_and_no_more(void **state)
{
	char text[256] = "embedded:?";

	(void)state;
	for (int i = 0; i < HF__URL_PAIRS_MAX; i++)
		strcat(text, "a&");
	take(text);
	assert_int_equal(url.pair_count, HF__URL_PAIRS_MAX);
	hf__url_done(&url);
	strcat(text, "a&");
	check_refused(text, "query: more than 32 options");
}

static void short_message_buffer_is_not_overrun(void **state)
{
	char small[8] = "1234567";

	(void)state;
	assert_int_equal(hf__url_init(&url, "redis://", small, 4), HF_EINVAL);
	assert_memory_equal(small, "hos\000567", 8);
	assert_int_equal(hf__url_init(&url, "redis://", NULL, 0), HF_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_parts_are_found),
		cmocka_unit_test(absent_parts_are_null_or_empty),
		cmocka_unit_test(empty_user_and_password_are_not_absent),
		cmocka_unit_test(escapes_are_resolved_after_splitting),
		cmocka_unit_test(last_at_sign_ends_the_user_part),
		cmocka_unit_test(brackets_of_ip6_are_removed),
		cmocka_unit_test(several_hosts_are_left_to_the_caller),
		cmocka_unit_test(host_can_be_empty_before_a_path),
		cmocka_unit_test(scheme_alone_has_no_host),
		cmocka_unit_test(wrong_parts_are_named),
		cmocka_unit_test(wrong_bytes_are_counted),
		cmocka_unit_test(misplaced_password_is_never_shown),
		cmocka_unit_test(longest_url_is_accepted_and_a_longer_one_is_not),
		cmocka_unit_test(thirty_two_options_are_accepted_and_no_more),
		cmocka_unit_test(short_message_buffer_is_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
