/* Names of keys and channels are those of Redisson. */
#include <string.h>

#include "core/backend.h"
#include "redis/keys.h"
#include "support/check.h"

#define UUID "8743c9c0-0795-4907-87fd-6c719a6b4586"

static void check_key(enum hf__keys_name which, const char *name, const char *wanted)
{
	char key[HF__KEYS_MAX];
	size_t length = hf__keys_make(key, which, name, UUID, 57);
	assert_string_equal(key, wanted);
	assert_int_equal(length, strlen(wanted));
}

static void name_without_braces_becomes_the_tag(void **state)
{
	(void)state;
	check_key(KEY_CHANNEL, "orders", "redisson_lock__channel:{orders}");
	check_key(KEY_QUEUE, "a b:c", "redisson_lock_queue:{a b:c}");
	check_key(KEY_TOKEN, "\xc3\xbc", "redisson_lock_token:{\xc3\xbc}");
	check_key(KEY_QUEUE_EXPIRY, "%s%n%d", "redisson_lock_timeout:{%s%n%d}");
}

static void name_with_a_tag_keeps_it(void **state)
{
	(void)state;
	check_key(KEY_CHANNEL, "{orders}:42", "redisson_lock__channel:{orders}:42");
	check_key(KEY_RW_CHANNEL, "a{b}c", "redisson_rwlock:a{b}c");
	check_key(KEY_PERMITS_CHANNEL, "{a}{b}", "redisson_sc:{a}{b}");
	check_key(KEY_READ_HOLDS, "{a}:b", "{a}:b");
	check_key(KEY_PERMIT_EXPIRY, "{a}:b", "{a}:b:timeout");
}

static void suffixed_names_put_the_tag_first(void **state)
{
	(void)state;
	check_key(KEY_PERMIT_EXPIRY, "orders", "{orders}:timeout");
	check_key(KEY_READ_HOLDS, "orders", "{orders}");
	check_key(KEY_READ_HOLD, "orders", "{orders}:" UUID ":57:rwlock_timeout:1");
	check_key(KEY_READ_HOLD, "{a}:b", "{a}:b:" UUID ":57:rwlock_timeout:1");
}

static void latch_channel_is_always_braced(void **state)
{
	(void)state;
	check_key(KEY_LATCH_CHANNEL, "gate", "redisson_countdownlatch__channel__{gate}");
	check_key(KEY_LATCH_CHANNEL, "{a}:b", "redisson_countdownlatch__channel__{{a}:b}");
}

static void record_is_named_by_its_number(void **state)
{
	(void)state;
	check_key(KEY_RECORD, "gate", "holdfast_request:{gate}:" UUID ":57");
}

static void longest_name_has_room(void **state)
{
	(void)state;
	char name[513], key[HF__KEYS_MAX];
	memset(name, 'n', 512);
	name[512] = 0;
	for (int which = KEY_NAME; which <= KEY_DESCRIPTIONS; which++)
		assert_true(hf__keys_make(key, (enum hf__keys_name)which, name, UUID, UINT64_MAX) <
		            HF__KEYS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_without_braces_becomes_the_tag),
		cmocka_unit_test(name_with_a_tag_keeps_it),
		cmocka_unit_test(suffixed_names_put_the_tag_first),
		cmocka_unit_test(latch_channel_is_always_braced),
		cmocka_unit_test(record_is_named_by_its_number),
		cmocka_unit_test(longest_name_has_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
