/* What the traits of every backend have in common. */
#ifndef TESTS_UNIT_CORE_TRAITS_STORIES_H
#define TESTS_UNIT_CORE_TRAITS_STORIES_H

#include <string.h>

#include "core/backend.h"
#include "support/check.h"

typedef const struct hf__traits *find_traits_fn(int kind, const char **ret_why);

static find_traits_fn *find_traits;

static void every_kind_has_traits_or_a_reason(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++) {
		const char *why = "";
		const struct hf__traits *traits = find_traits(kind, &why);
		assert_int_equal(traits == NULL, strlen(why) > 0);
	}
}

/* A lock is found by the kind that its traits name, so looking that kind up must lead back. */
static void traits_name_a_kind_with_the_same_traits(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++) {
		const char *why = "";
		const struct hf__traits *traits = find_traits(kind, &why);
		if (traits)
			assert_ptr_equal(find_traits(traits->kind, &why), traits);
	}
}

static void the_halves_of_a_read_write_lock_name_each_other(void **state)
{
	const char *why = "";
	const struct hf__traits *reads = find_traits(HF_READ, &why);
	const struct hf__traits *writes = find_traits(HF_WRITE, &why);
	(void)state;
	assert_int_equal(reads->half, writes->kind);
	assert_int_equal(writes->half, reads->kind);
	assert_true(writes->writes && !reads->writes);
}

/* Runs the stories over the traits of one backend. */
static int run_traits_stories(find_traits_fn *find)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_traits_or_a_reason),
		cmocka_unit_test(traits_name_a_kind_with_the_same_traits),
		cmocka_unit_test(the_halves_of_a_read_write_lock_name_each_other),
	};
	find_traits = find;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
