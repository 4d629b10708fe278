/* Names of keys and channels are those of Redisson. */
#include <string.h>

#include "redis/keys.h"
#include "support/check.h"

static void check_key(const char *prefix, const char *name, const char *wanted)
{
	char key[HF__KEYS_MAX];
	size_t length = hf__keys_prefixed(key, sizeof key, prefix, name);
	assert_string_equal(key, wanted);
	assert_int_equal(length, strlen(wanted));
}

static void name_without_braces_becomes_the_tag(void **state)
{
	(void)state;
	check_key("p", "orders", "p:{orders}");
	check_key("redisson_fencing", "a b:c", "redisson_fencing:{a b:c}");
	check_key("p", "\xc3\xbc", "p:{\xc3\xbc}");
}

static void name_with_a_tag_keeps_it(void **state)
{
	(void)state;
	check_key("p", "{orders}:42", "p:{orders}:42");
	check_key("p", "a{b}c", "p:a{b}c");
	check_key("p", "{a}{b}", "p:{a}{b}");
}

static void percent_signs_mean_nothing(void **state)
{
	(void)state;
	check_key("p", "%s%n%d", "p:{%s%n%d}");
}

static void channel_is_that_of_the_lock(void **state)
{
	(void)state;
	char key[HF__KEYS_MAX];
	assert_int_equal(hf__keys_channel(key, sizeof key, "orders"), 31);
	assert_string_equal(key, "redisson_lock__channel:{orders}");
	assert_int_equal(hf__keys_channel(key, sizeof key, "{shop}:7"), 31);
	assert_string_equal(key, "redisson_lock__channel:{shop}:7");
}

static void longest_name_has_room(void **state)
{
	(void)state;
	char name[513], key[HF__KEYS_MAX];
	memset(name, 'n', 512);
	name[512] = 0;
	assert_int_equal(hf__keys_channel(key, sizeof key, name),
	                 512 + strlen("redisson_lock__channel:{}"));
	assert_int_equal(key[strlen(key) - 1], '}');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_without_braces_becomes_the_tag),
		cmocka_unit_test(name_with_a_tag_keeps_it),
		cmocka_unit_test(percent_signs_mean_nothing),
		cmocka_unit_test(channel_is_that_of_the_lock),
		cmocka_unit_test(longest_name_has_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
