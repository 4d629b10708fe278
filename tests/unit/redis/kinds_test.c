/* Every kind has traits on Redis, or a reason why it has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redis/redis_kinds.h"

static void every_kind_has_traits_or_a_reason(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++) {
		const char *why = "";
		const struct hf__traits *traits = hf__redis_kinds_traits(kind, &why);
		assert_int_equal(traits == NULL, strlen(why) > 0);
	}
}

/* A record is found by the kind that its traits name, so looking that kind up must lead back. */
static void traits_name_a_kind_with_the_same_traits(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++) {
		const char *why = "";
		const struct hf__traits *traits = hf__redis_kinds_traits(kind, &why);
		if (traits)
			assert_ptr_equal(hf__redis_kinds_traits(traits->kind, &why), traits);
	}
}

static void the_halves_of_a_read_write_lock_name_each_other(void **state)
{
	const char *why = "";
	const struct hf__traits *reads = hf__redis_kinds_traits(HF_READ, &why);
	const struct hf__traits *writes = hf__redis_kinds_traits(HF_WRITE, &why);
	(void)state;
	assert_int_equal(reads->half, writes->kind);
	assert_int_equal(writes->half, reads->kind);
	assert_true(writes->writes && !reads->writes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_traits_or_a_reason),
		cmocka_unit_test(traits_name_a_kind_with_the_same_traits),
		cmocka_unit_test(the_halves_of_a_read_write_lock_name_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
