/* Requests are arrays of bulk strings, byte by byte, and never need more room than was reserved. */
#include <string.h>

#include "redis/request.h"
#include "support/check.h"

#define UUID "5c1e5f60-0000-4000-8000-0123456789ab"

static char out[4096];

static void check_out(const char *end, const char *bytes, size_t length)
{
	assert_int_equal(end - out, length);
	assert_memory_equal(out, bytes, length);
}

#define CHECK_OUT(end, literal) check_out(end, literal, sizeof(literal) - 1)

static void request_is_an_array_of_bulk_strings(void **state)
{
	(void)state;
	char *at = hf__request_begin(out, 3);
	at = hf__request_text(at, "SET");
	at = hf__request_bytes(at, "k", 1);
	at = hf__request_number(at, 42);
	CHECK_OUT(at, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n42\r\n");
}

static void any_bytes_can_be_sent(void **state)
{
	(void)state;
	CHECK_OUT(hf__request_bytes(out, "a\0\r\n$5", 6), "$6\r\na\0\r\n$5\r\n");
}

static void argument_can_be_empty(void **state)
{
	(void)state;
	CHECK_OUT(hf__request_text(hf__request_begin(out, 1), ""), "*1\r\n$0\r\n\r\n");
}

static void lengths_have_as_many_digits_as_they_need(void **state)
{
	(void)state;
	char text[1001];
	memset(text, 'x', 1000);
	text[1000] = 0;
	CHECK_OUT(hf__request_begin(out, 9), "*9\r\n");
	CHECK_OUT(hf__request_begin(out, 10), "*10\r\n");
	CHECK_OUT(hf__request_begin(out, 301), "*301\r\n");
	char *at = hf__request_text(out, text);
	assert_int_equal(at - out, 7 + 1000 + 2);
	assert_memory_equal(out, "$1000\r\nx", 8);
}

static void numbers_from_the_smallest_to_the_largest(void **state)
{
	(void)state;
	char *at = hf__request_number(out, 0);
	at = hf__request_number(at, -1);
	at = hf__request_number(at, 9);
	at = hf__request_number(at, 10);
	at = hf__request_number(at, INT64_MAX);
	at = hf__request_number(at, INT64_MIN);
	CHECK_OUT(at, "$1\r\n0\r\n$2\r\n-1\r\n$1\r\n9\r\n$2\r\n10\r\n"
	              "$19\r\n9223372036854775807\r\n$20\r\n-9223372036854775808\r\n");
}

static void owner_is_uuid_and_number(void **state)
{
	(void)state;
	CHECK_OUT(hf__request_owner(out, UUID, 7, false), "$38\r\n" UUID ":7\r\n");
	CHECK_OUT(hf__request_owner(out, UUID, 0, false), "$38\r\n" UUID ":0\r\n");
	CHECK_OUT(hf__request_owner(out, UUID, UINT64_MAX, false),
	          "$57\r\n" UUID ":18446744073709551615\r\n");
	CHECK_OUT(hf__request_owner(out, UUID, 7, true), "$44\r\n" UUID ":7:write\r\n");
}

static void size_is_enough_for_any_request(void **state)
{
	(void)state;
	for (size_t arguments = 1; arguments <= 20; arguments++) {
		char *at = hf__request_begin(out, arguments);
		for (size_t i = 0; i < arguments; i++)
			at = hf__request_number(at, INT64_MIN);
		assert_true((size_t)(at - out) <= hf__request_size(arguments, 20 * arguments));
	}
	char *at = hf__request_text(hf__request_begin(out, 1), "");
	assert_true((size_t)(at - out) <= hf__request_size(1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_is_an_array_of_bulk_strings),
		cmocka_unit_test(any_bytes_can_be_sent),
		cmocka_unit_test(argument_can_be_empty),
		cmocka_unit_test(lengths_have_as_many_digits_as_they_need),
		cmocka_unit_test(numbers_from_the_smallest_to_the_largest),
		cmocka_unit_test(owner_is_uuid_and_number),
		cmocka_unit_test(size_is_enough_for_any_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
