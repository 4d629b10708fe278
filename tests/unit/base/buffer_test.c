/* Checks the byte buffer: growth, its maximum, dropping at the front, and secrets. */
#include <stdbool.h>
#include <string.h>

#include <holdfast/holdfast.h>

#include "base/buffer.h"
#include "support/check.h"

void __real_free(void *block);
void __wrap_free(void *block);

/* The block that is about to be freed, and whether its first bytes were zero when it was. */
static const char *awaited;
static size_t awaited_length;
static bool was_wiped;

static bool is_zero(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i])
			return false;
	return true;
}

void __wrap_free(void *block)
{
	if (block && block == awaited) {
		was_wiped = is_zero(awaited, awaited_length);
		awaited = NULL;
	}
	__real_free(block);
}

static void await_free(const struct hf__buffer *buffer)
{
	awaited = buffer->data;
	awaited_length = buffer->length;
	was_wiped = false;
}

static void add_text(struct hf__buffer *buffer, const char *text)
{
	assert_int_equal(hf__buffer_reserve(buffer, strlen(text)), 0);
	hf__buffer_add(buffer, text, strlen(text));
}

static void check_text(const struct hf__buffer *buffer, const char *text)
{
	assert_int_equal(buffer->length, strlen(text));
	assert_memory_equal(buffer->data, text, strlen(text));
}

static void new_buffer_is_empty_and_has_its_capacity(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 16, 64), 0);
	assert_int_equal(buffer.length, 0);
	assert_int_equal(buffer.capacity, 16);
	memset(buffer.data, 'x', 16);
	hf__buffer_done(&buffer);
	assert_null(buffer.data);
	assert_int_equal(buffer.capacity, 0);
}

static void added_bytes_follow_each_other(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 16, 64), 0);
	add_text(&buffer, "hold");
	hf__buffer_add(&buffer, NULL, 0);
	add_text(&buffer, "fast");
	check_text(&buffer, "holdfast");
	hf__buffer_done(&buffer);
}

static void buffer_grows_and_keeps_its_bytes(void **state)
{
	struct hf__buffer buffer;
	char expected[1000];

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 1, 1000), 0);
	for (int i = 0; i < 1000; i++) {
		expected[i] = (char)(i % 251);
		assert_int_equal(hf__buffer_reserve(&buffer, 1), 0);
		hf__buffer_add(&buffer, &expected[i], 1);
	}
	assert_int_equal(buffer.length, 1000);
	assert_int_equal(buffer.capacity, 1000);
	assert_memory_equal(buffer.data, expected, 1000);
	hf__buffer_done(&buffer);
}

static void reserve_makes_room_for_all_of_it_at_once(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 4, 4096), 0);
	add_text(&buffer, "abc");
	assert_int_equal(hf__buffer_reserve(&buffer, 4000), 0);
	assert_true(buffer.capacity - buffer.length >= 4000);
	memset(buffer.data + buffer.length, 'x', 4000);
	check_text(&buffer, "abc");
	hf__buffer_done(&buffer);
}

static void nothing_grows_beyond_the_maximum(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 4, 10), 0);
	add_text(&buffer, "abc");
	assert_int_equal(hf__buffer_reserve(&buffer, 8), HF_ENOMEM);
	assert_int_equal(hf__buffer_reserve(&buffer, SIZE_MAX), HF_ENOMEM);
	check_text(&buffer, "abc");
	assert_int_equal(buffer.capacity, 4);
	assert_int_equal(hf__buffer_reserve(&buffer, 7), 0);
	add_text(&buffer, "defghij");
	assert_int_equal(hf__buffer_reserve(&buffer, 1), HF_ENOMEM);
	assert_int_equal(hf__buffer_reserve(&buffer, 0), 0);
	check_text(&buffer, "abcdefghij");
	hf__buffer_done(&buffer);
}

static void dropped_bytes_leave_at_the_front_and_make_room(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 8, 8), 0);
	add_text(&buffer, "abcdefgh");
	hf__buffer_drop(&buffer, 3);
	check_text(&buffer, "defgh");
	hf__buffer_drop(&buffer, 0);
	check_text(&buffer, "defgh");
	add_text(&buffer, "ijk");
	check_text(&buffer, "defghijk");
	hf__buffer_drop(&buffer, 8);
	check_text(&buffer, "");
	hf__buffer_done(&buffer);
}

static void secret_is_wiped_when_it_is_dropped(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 8, 8), 0);
	add_text(&buffer, "secret");
	buffer.secret = true;
	hf__buffer_drop(&buffer, 4);
	check_text(&buffer, "et");
	assert_true(is_zero(buffer.data + 2, 4));
	assert_true(buffer.secret);
	hf__buffer_drop(&buffer, 2);
	assert_true(is_zero(buffer.data, 6));
	assert_false(buffer.secret);
	hf__buffer_done(&buffer);
}

static void empty_buffer_stays_secret_until_something_was_in_it(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 8, 8), 0);
	buffer.secret = true;
	hf__buffer_drop(&buffer, 0);
	assert_true(buffer.secret);
	add_text(&buffer, "secret");
	hf__buffer_clear(&buffer);
	assert_true(is_zero(buffer.data, 6));
	assert_false(buffer.secret);
	hf__buffer_done(&buffer);
}

static void secret_is_wiped_in_the_block_that_a_buffer_outgrows(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 8, 4096), 0);
	add_text(&buffer, "secret");
	buffer.secret = true;
	await_free(&buffer);
	assert_int_equal(hf__buffer_reserve(&buffer, 4000), 0);
	assert_true(was_wiped);
	check_text(&buffer, "secret");
	hf__buffer_done(&buffer);
}

static void secret_is_wiped_before_it_is_freed(void **state)
{
	struct hf__buffer buffer;

	(void)state;
	assert_int_equal(hf__buffer_init(&buffer, 8, 8), 0);
	add_text(&buffer, "secret");
	buffer.secret = true;
	await_free(&buffer);
	hf__buffer_done(&buffer);
	assert_true(was_wiped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_buffer_is_empty_and_has_its_capacity),
		cmocka_unit_test(added_bytes_follow_each_other),
		cmocka_unit_test(buffer_grows_and_keeps_its_bytes),
		cmocka_unit_test(reserve_makes_room_for_all_of_it_at_once),
		cmocka_unit_test(nothing_grows_beyond_the_maximum),
		cmocka_unit_test(dropped_bytes_leave_at_the_front_and_make_room),
		cmocka_unit_test(secret_is_wiped_when_it_is_dropped),
		cmocka_unit_test(empty_buffer_stays_secret_until_something_was_in_it),
		cmocka_unit_test(secret_is_wiped_in_the_block_that_a_buffer_outgrows),
		cmocka_unit_test(secret_is_wiped_before_it_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
