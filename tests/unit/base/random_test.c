/* Checks random numbers: the form of UUIDs, the bounds of ranges, and repeatable seeds. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "support/check.h"

static void bytes_fill_all_of_the_buffer_and_no_more(void **state)
{
	unsigned char bytes[66] = {0};
	unsigned char seen[64] = {0};

	(void)state;
	bytes[64] = 0xa5;
	for (int round = 0; round < 64; round++) {
		assert_int_equal(hf__random_bytes(bytes, 64), 0);
		for (int i = 0; i < 64; i++)
			seen[i] |= bytes[i];
	}
	/* A byte that stays 0 in 64 rounds was not written. */
	for (int i = 0; i < 64; i++)
		assert_int_not_equal(seen[i], 0);
	assert_int_equal(bytes[64], 0xa5);
	assert_int_equal(hf__random_bytes(bytes, 0), 0);
}

static void more_bytes_than_the_kernel_gives_at_once_are_filled(void **state)
{
	size_t length = 40u << 20; /* one call of getrandom() returns 32 MiB less one byte */
	unsigned char *bytes = calloc(1, length);

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(hf__random_bytes(bytes, length), 0);
	unsigned char last = 0;
	for (int i = 1; i <= 64; i++)
		last |= bytes[length - (size_t)i];
	assert_int_not_equal(last, 0);
	free(bytes);
}

static void uuid_is_of_version_4(void **state)
{
	char uuid[37];

	(void)state;
	for (int round = 0; round < 1000; round++) {
		memset(uuid, 'x', sizeof uuid);
		assert_int_equal(hf__random_uuid(uuid), 0);
		assert_int_equal(strlen(uuid), 36);
		for (int i = 0; i < 36; i++) {
			if (i == 8 || i == 13 || i == 18 || i == 23)
				assert_int_equal(uuid[i], '-');
			else
				assert_non_null(strchr("0123456789abcdef", uuid[i]));
		}
		assert_int_equal(uuid[14], '4');
		assert_non_null(strchr("89ab", uuid[19]));
	}
}

static int compare_uuids(const void *a, const void *b)
{
	return memcmp(a, b, 37);
}

static void uuids_differ(void **state)
{
	static char uuids[5000][37];

	(void)state;
	for (int i = 0; i < 5000; i++)
		assert_int_equal(hf__random_uuid(uuids[i]), 0);
	qsort(uuids, 5000, sizeof uuids[0], compare_uuids);
	for (int i = 1; i < 5000; i++)
		assert_string_not_equal(uuids[i - 1], uuids[i]);
}

static void same_seed_gives_the_same_numbers(void **state)
{
	struct hf__random one = {.state = 7}, two = {.state = 7}, other = {.state = 8};
	int equal = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t n = hf__random_next(&one);
		assert_true(n == hf__random_next(&two));
		equal += n == hf__random_next(&other);
	}
	assert_int_equal(equal, 0);
}

static void seed_0_works_like_any_other(void **state)
{
	struct hf__random random = {.state = 0};
	uint64_t ones = 0, zeros = 0;

	(void)state;
	for (int i = 0; i < 64; i++) {
		uint64_t n = hf__random_next(&random);
		ones |= n;
		zeros |= ~n;
	}
	assert_true(ones == UINT64_MAX && zeros == UINT64_MAX);
}

static void between_reaches_both_ends_and_never_leaves(void **state)
{
	struct hf__random random = {.state = 1};
	int seen[7] = {0};

	(void)state;
	for (int i = 0; i < 7000; i++) {
		int64_t n = hf__random_between(&random, -3, 3);
		assert_true(n >= -3 && n <= 3);
		seen[n + 3]++;
	}
	/* They are uniform: each of the seven is seen about 1000 times. */
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 800, 1200);
}

static void between_one_number_and_itself_is_that_number(void **state)
{
	struct hf__random random = {.state = 1};

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(hf__random_between(&random, 5, 5) == 5);
}

static void between_the_ends_of_all_numbers_gives_both_signs(void **state)
{
	struct hf__random random = {.state = 1};
	int negative = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		negative += hf__random_between(&random, INT64_MIN, INT64_MAX) < 0;
	assert_in_range(negative, 400, 600);
	for (int i = 0; i < 1000; i++)
		assert_true(hf__random_between(&random, -2, INT64_MAX) >= -2);
}

static void jitter_stays_within_a_fifth_and_uses_all_of_it(void **state)
{
	struct hf__random random = {.state = 1};
	int64_t lowest = INT64_MAX, highest = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		int64_t ms = hf__random_jitter(&random, 3000);
		lowest = ms < lowest ? ms : lowest;
		highest = ms > highest ? ms : highest;
	}
	assert_in_range(lowest, 2400, 2410);
	assert_in_range(highest, 3590, 3600);
}

static void jitter_of_little_is_little(void **state)
{
	struct hf__random random = {.state = 1};

	(void)state;
	for (int64_t ms = 0; ms < 5; ms++)
		assert_true(hf__random_jitter(&random, ms) == ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_fill_all_of_the_buffer_and_no_more),
		cmocka_unit_test(more_bytes_than_the_kernel_gives_at_once_are_filled),
		cmocka_unit_test(uuid_is_of_version_4),
		cmocka_unit_test(uuids_differ),
		cmocka_unit_test(same_seed_gives_the_same_numbers),
		cmocka_unit_test(seed_0_works_like_any_other),
		cmocka_unit_test(between_reaches_both_ends_and_never_leaves),
		cmocka_unit_test(between_one_number_and_itself_is_that_number),
		cmocka_unit_test(between_the_ends_of_all_numbers_gives_both_signs),
		cmocka_unit_test(jitter_stays_within_a_fifth_and_uses_all_of_it),
		cmocka_unit_test(jitter_of_little_is_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
