/* Checks names of lock nodes, their order and which is the first, by Curator's rules. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "zk/queue.h"

#define GUID_A "11111111-1111-4111-8111-111111111111"
#define GUID_B "22222222-2222-4222-8222-222222222222"
#define GUID_C "33333333-3333-4333-8333-333333333333"

#define LOCK(guid, number)  "_c_" guid "-lock-" number
#define READ(guid, number)  "_c_" guid "-__READ__" number
#define WRITE(guid, number) "_c_" guid "-__WRIT__" number
#define LATCH(guid, number) "_c_" guid "-latch-" number
#define LEASE(guid, number) "_c_" guid "-lease-" number

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void check_position(const char *const *names, size_t n, const char *own, const char *before)
{
	size_t at = 99;
	enum hf__queue_position position =
		hf__queue_position((char *const *)(uintptr_t)names, n, own, &at);
	if (!before) {
		assert_int_equal(position, HF__QUEUE_FIRST);
		return;
	}
	assert_int_equal(position, HF__QUEUE_NOT_FIRST);
	assert_true(at < n);
	assert_string_equal(names[at], before);
}

/* ---- names ---- */

static void name_is_that_of_curators_protected_nodes(void **state)
{
	char name[HF__QUEUE_NAME];
	(void)state;
	hf__queue_name(name, GUID_A, HF__QUEUE_MUTEX);
	assert_string_equal(name, "_c_" GUID_A "-lock-");
	hf__queue_name(name, GUID_A, HF__QUEUE_READ);
	assert_string_equal(name, "_c_" GUID_A "-__READ__");
	hf__queue_name(name, GUID_A, HF__QUEUE_WRITE);
	assert_string_equal(name, "_c_" GUID_A "-__WRIT__");
	hf__queue_name(name, GUID_A, HF__QUEUE_LATCH);
	assert_string_equal(name, "_c_" GUID_A "-latch-");
	hf__queue_name(name, GUID_A, HF__QUEUE_LEASE);
	assert_string_equal(name, "_c_" GUID_A "-lease-");
	/* The server adds up to eleven characters. */
	assert_true(strlen(name) + 11 < HF__QUEUE_NAME);
}

static void node_is_known_by_its_guid(void **state)
{
	(void)state;
	assert_true(hf__queue_is_of(LOCK(GUID_A, "0000000001"), GUID_A));
	assert_true(hf__queue_is_of(WRITE(GUID_A, "0000000001"), GUID_A));
	assert_true(hf__queue_is_of(LATCH(GUID_A, "0000000001"), GUID_A));
	assert_true(hf__queue_is_of(LEASE(GUID_A, "0000000001"), GUID_A));
	assert_false(hf__queue_is_of(LEASE(GUID_B, "0000000001"), GUID_A));
	assert_false(hf__queue_is_of(LOCK(GUID_B, "0000000001"), GUID_A));
	assert_false(hf__queue_is_of(GUID_A "-lock-0000000001", GUID_A));
	assert_false(hf__queue_is_of("_c_" GUID_A, GUID_A));
	assert_false(hf__queue_is_of("_c_" GUID_A "_lock-0000000001", GUID_A));
	assert_false(hf__queue_is_of("_c_", GUID_A));
	assert_false(hf__queue_is_of("", GUID_A));
}

static void role_is_what_the_name_ends_in(void **state)
{
	(void)state;
	assert_int_equal(hf__queue_role(LOCK(GUID_A, "0000000001")), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_role(READ(GUID_A, "0000000001")), HF__QUEUE_READ);
	assert_int_equal(hf__queue_role(WRITE(GUID_A, "0000000001")), HF__QUEUE_WRITE);
	assert_int_equal(hf__queue_role("lock-0000000007"), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_role("anything-lock-0000000007"), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_role("0000000000"), HF__QUEUE_STRANGER);
	assert_int_equal(hf__queue_role("orders"), HF__QUEUE_STRANGER);
	assert_int_equal(hf__queue_role(LATCH(GUID_A, "0000000001")), HF__QUEUE_LATCH);
	assert_int_equal(hf__queue_role("latch-0000000001"), HF__QUEUE_LATCH);
	/* In a queue a lease is a stranger: it holds a permit, but not because of its number. */
	assert_int_equal(hf__queue_role(LEASE(GUID_A, "0000000001")), HF__QUEUE_STRANGER);
	assert_int_equal(hf__queue_role(""), HF__QUEUE_STRANGER);
	/* A folder has used up its numbers. */
	assert_int_equal(hf__queue_role(LOCK(GUID_A, "-2147483648")), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_role("latch--000000001"), HF__QUEUE_LATCH);
}

/* Locks may have such names, and then these are their folders. */
static void name_that_only_contains_a_marker_is_a_stranger(void **state)
{
	static const char *const names[] = {
		"clock-sync", "clock-0000000001",    "block-0000000001", "lock-",
		"lock-1",     "lock-000000001",      "lock-000000000x",  "lock-0000000001x",
		"my-lock-2",  "lock-0000000001-a",   "lock--",           "lock-----------",
		"release-17", "release-0000000017",  "snatch-latch-it",  "nlatch-0000000001",
		"a__READ__b", "x__WRIT__0000000001", "__READ__1",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(hf__queue_role(names[i]), HF__QUEUE_STRANGER);
		assert_int_equal(hf__queue_form(names[i]), HF__QUEUE_STRANGER);
		assert_string_equal(hf__queue_suffix(names[i]), names[i]);
	}
}

static void form_is_that_of_the_recipes(void **state)
{
	(void)state;
	assert_int_equal(hf__queue_form(LOCK(GUID_A, "0000000001")), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_form(LOCK(GUID_A, "-2147483648")), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_form(READ(GUID_A, "0000000001")), HF__QUEUE_READ);
	assert_int_equal(hf__queue_form(WRITE(GUID_A, "0000000001")), HF__QUEUE_WRITE);
	assert_int_equal(hf__queue_form(LATCH(GUID_A, "0000000001")), HF__QUEUE_LATCH);
	assert_int_equal(hf__queue_form(LEASE(GUID_A, "0000000001")), HF__QUEUE_LEASE);
	assert_int_equal(hf__queue_form("lock-0000000001"), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_form("lease-0000000001"), HF__QUEUE_LEASE);
	assert_int_equal(hf__queue_form(GUID_A "-lock-0000000001"), HF__QUEUE_MUTEX);
	/* As Go's client names them. */
	assert_int_equal(hf__queue_form("_c_0123456789abcdef0123456789abcdef-lock-0000000001"),
	                 HF__QUEUE_MUTEX);
	/* These take part in a queue, but do not make a folder one. */
	assert_int_equal(hf__queue_form("backup-lock-2024010112"), HF__QUEUE_STRANGER);
	assert_int_equal(hf__queue_role("backup-lock-2024010112"), HF__QUEUE_MUTEX);
	assert_int_equal(hf__queue_form("_c_-lock-0000000001"), HF__QUEUE_STRANGER);
	assert_int_equal(hf__queue_form("_c_1234-lock-0000000001"), HF__QUEUE_STRANGER);
	assert_int_equal(hf__queue_form("_c_11111111x1111-4111-8111-111111111111-lock-0000000001"),
	                 HF__QUEUE_STRANGER);
	assert_int_equal(hf__queue_form("re-lease-0000000017"), HF__QUEUE_STRANGER);
}

static void suffix_follows_the_last_marker(void **state)
{
	(void)state;
	assert_string_equal(hf__queue_suffix(LOCK(GUID_A, "0000000042")), "0000000042");
	assert_string_equal(hf__queue_suffix("lock-lock-0000000042"), "0000000042");
	assert_string_equal(hf__queue_suffix("__READ__-__READ__0000000042"), "0000000042");
	assert_string_equal(hf__queue_suffix("__WRIT__-__WRIT__0000000042"), "0000000042");
	assert_string_equal(hf__queue_suffix(LATCH(GUID_A, "0000000042")), "0000000042");
	assert_string_equal(hf__queue_suffix(LEASE(GUID_A, "0000000042")), "0000000042");
	assert_string_equal(hf__queue_suffix("lease-lease-0000000042"), "0000000042");
	assert_string_equal(hf__queue_suffix("orders"), "orders");
}

static void number_is_signed_and_whole(void **state)
{
	int64_t number;
	(void)state;
	assert_true(hf__queue_number(LOCK(GUID_A, "0000000042"), &number));
	assert_int_equal(number, 42);
	assert_true(hf__queue_number(LOCK(GUID_A, "2147483647"), &number));
	assert_int_equal(number, INT64_C(2147483647));
	assert_true(number >= HF__QUEUE_LAST);
	assert_true(hf__queue_number(LOCK(GUID_A, "-2147483648"), &number));
	assert_int_equal(number, INT64_C(-2147483648));
	assert_true(hf__queue_number(LOCK(GUID_A, "2146435071"), &number));
	assert_true(number < HF__QUEUE_LAST);
	assert_true(hf__queue_number(LEASE(GUID_A, "0000000043"), &number));
	assert_int_equal(number, 43);
	assert_true(hf__queue_number(LATCH(GUID_A, "0000000044"), &number));
	assert_int_equal(number, 44);
	assert_false(hf__queue_number(LEASE(GUID_A, "x"), &number));
	assert_false(hf__queue_number(LOCK(GUID_A, ""), &number));
	assert_false(hf__queue_number(LOCK(GUID_A, "0000000042x"), &number));
	assert_false(hf__queue_number("orders", &number));
}

/* ---- the mutex ---- */

static void lowest_number_is_the_first_whatever_its_guid(void **state)
{
	static const char *const names[] = {LOCK(GUID_A, "0000000003"), LOCK(GUID_C, "0000000001"),
	                                    LOCK(GUID_B, "0000000002")};
	(void)state;
	check_position(names, COUNT(names), names[1], NULL);
	check_position(names, COUNT(names), names[2], names[1]);
	check_position(names, COUNT(names), names[0], names[2]);
}

static void node_that_is_not_listed_is_missing(void **state)
{
	static const char *const names[] = {LOCK(GUID_A, "0000000003")};
	size_t before;
	(void)state;
	assert_int_equal(hf__queue_position((char *const *)(uintptr_t)names, 1,
	                                    LOCK(GUID_B, "0000000003"), &before),
	                 HF__QUEUE_MISSING);
	assert_int_equal(hf__queue_position(NULL, 0, names[0], &before), HF__QUEUE_MISSING);
	/* Even if another node comes before it. */
	assert_int_equal(hf__queue_position((char *const *)(uintptr_t)names, 1,
	                                    LOCK(GUID_B, "0000000004"), &before),
	                 HF__QUEUE_MISSING);
}

static void strangers_hold_nothing(void **state)
{
	static const char *const names[] = {"0",
	                                    "00",
	                                    "0000000000",
	                                    "orders",
	                                    LOCK(GUID_A, "0000000001"),
	                                    "_c_" GUID_B "-lease-0000000000",
	                                    LOCK(GUID_C, "0000000002")};
	(void)state;
	check_position(names, COUNT(names), names[4], NULL);
	check_position(names, COUNT(names), names[6], names[4]);
}

static void node_made_by_hand_takes_part(void **state)
{
	static const char *const names[] = {"lock-0000000001", LOCK(GUID_A, "0000000002")};
	(void)state;
	check_position(names, COUNT(names), names[1], names[0]);
}

static void gaps_in_the_numbers_do_not_matter(void **state)
{
	static const char *const names[] = {LOCK(GUID_A, "0000000007"), LOCK(GUID_B, "0000000100"),
	                                    LOCK(GUID_C, "0000001000")};
	(void)state;
	check_position(names, COUNT(names), names[0], NULL);
	check_position(names, COUNT(names), names[1], names[0]);
	check_position(names, COUNT(names), names[2], names[1]);
}

/* ---- leaders ---- */

static void candidates_are_ordered_like_waiters_of_a_mutex(void **state)
{
	static const char *const names[] = {
		LATCH(GUID_C, "0000000003"), LATCH(GUID_B, "0000000001"),
		LEASE(GUID_A, "0000000000"), LATCH(GUID_A, "0000000002")};
	(void)state;
	check_position(names, COUNT(names), names[1], NULL);
	check_position(names, COUNT(names), names[3], names[1]);
	check_position(names, COUNT(names), names[0], names[3]);
}

/* ---- the read-write lock ---- */

static void readers_do_not_wait_for_each_other(void **state)
{
	static const char *const names[] = {READ(GUID_A, "0000000001"), READ(GUID_B, "0000000002")};
	(void)state;
	check_position(names, COUNT(names), names[0], NULL);
	check_position(names, COUNT(names), names[1], NULL);
}

static void writer_waits_for_the_nearest_of_any_kind(void **state)
{
	static const char *const names[] = {READ(GUID_A, "0000000001"), READ(GUID_B, "0000000002"),
	                                    WRITE(GUID_C, "0000000003")};
	(void)state;
	check_position(names, COUNT(names), names[2], names[1]);
}

static void reader_waits_for_the_nearest_writer_before_it(void **state)
{
	static const char *const names[] = {
		WRITE(GUID_A, "0000000001"), READ(GUID_B, "0000000002"),
		WRITE(GUID_C, "0000000003"), READ(GUID_A, "0000000004"),
		WRITE(GUID_B, "0000000005"),
	};
	(void)state;
	check_position(names, COUNT(names), names[0], NULL);
	check_position(names, COUNT(names), names[1], names[0]);
	check_position(names, COUNT(names), names[3], names[2]);
}

static void mutex_and_read_write_lock_exclude_each_other(void **state)
{
	static const char *const names[] = {LOCK(GUID_A, "0000000001"), READ(GUID_B, "0000000002"),
	                                    WRITE(GUID_C, "0000000003")};
	(void)state;
	check_position(names, COUNT(names), names[1], names[0]);
	check_position(names, COUNT(names), names[2], names[1]);
}

static void reader_with_its_writers_number_does_not_wait(void **state)
{
	static const char *const names[] = {READ(GUID_B, "0000000001"), WRITE(GUID_A, "0000000001"),
	                                    WRITE(GUID_C, "0000000002"),
	                                    READ(GUID_A, "0000000003")};
	(void)state;
	check_position(names, COUNT(names), names[0], NULL);
	check_position(names, COUNT(names), names[1], NULL);
	/* With the write node gone, the next writer waits for the reader that kept its place. */
	check_position((const char *const[]){names[0], names[2], names[3]}, 3, names[2], names[0]);
	check_position((const char *const[]){names[0], names[2], names[3]}, 3, names[3], names[2]);
}

/* ---- order and holders ---- */

static void check_holders(char **names, size_t n, size_t holders, const char *first)
{
	assert_int_equal(hf__queue_holders(names, n), holders);
	if (holders > 0)
		assert_string_equal(names[0], first);
}

static void order_is_that_of_the_numbers_with_strangers_last(void **state)
{
	char *names[] = {"0", LOCK(GUID_A, "0000000010"), "orders", LOCK(GUID_B, "0000000009"),
	                 LOCK(GUID_C, "0000000011")};
	(void)state;
	hf__queue_sort(names, COUNT(names));
	assert_string_equal(names[0], LOCK(GUID_B, "0000000009"));
	assert_string_equal(names[1], LOCK(GUID_A, "0000000010"));
	assert_string_equal(names[2], LOCK(GUID_C, "0000000011"));
	assert_string_equal(names[3], "0");
	assert_string_equal(names[4], "orders");
}

static void leases_are_in_the_order_of_their_numbers(void **state)
{
	char *names[] = {LEASE(GUID_A, "0000000010"), "orders", LEASE(GUID_C, "0000000009"),
	                 LEASE(GUID_B, "0000000011")};
	(void)state;
	hf__queue_sort(names, COUNT(names));
	assert_string_equal(names[0], LEASE(GUID_C, "0000000009"));
	assert_string_equal(names[1], LEASE(GUID_A, "0000000010"));
	assert_string_equal(names[2], LEASE(GUID_B, "0000000011"));
	assert_string_equal(names[3], "orders");
}

static void holders_are_one_writer_or_the_first_readers(void **state)
{
	char *leaders[] = {LATCH(GUID_A, "0000000002"), LATCH(GUID_B, "0000000001")};
	char *leased[] = {LEASE(GUID_A, "0000000002"), LEASE(GUID_B, "0000000001")};
	char *mutex[] = {LOCK(GUID_B, "0000000002"), LOCK(GUID_A, "0000000001")};
	char *readers[] = {WRITE(GUID_C, "0000000003"), READ(GUID_B, "0000000002"),
	                   READ(GUID_A, "0000000001"), READ(GUID_A, "0000000004")};
	char *writer[] = {WRITE(GUID_A, "0000000001"), READ(GUID_B, "0000000002")};
	char *both[] = {READ(GUID_B, "0000000001"), WRITE(GUID_A, "0000000001"),
	                READ(GUID_C, "0000000002")};
	char *strangers[] = {"0", "orders"};
	(void)state;
	check_holders(mutex, COUNT(mutex), 1, LOCK(GUID_A, "0000000001"));
	check_holders(readers, COUNT(readers), 2, READ(GUID_A, "0000000001"));
	check_holders(writer, COUNT(writer), 1, WRITE(GUID_A, "0000000001"));
	check_holders(both, COUNT(both), 2, WRITE(GUID_A, "0000000001"));
	check_holders(leaders, COUNT(leaders), 1, LATCH(GUID_B, "0000000001"));
	check_holders(leased, COUNT(leased), 0, NULL);
	check_holders(strangers, COUNT(strangers), 0, NULL);
	check_holders(NULL, 0, 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_is_that_of_curators_protected_nodes),
		cmocka_unit_test(node_is_known_by_its_guid),
		cmocka_unit_test(role_is_what_the_name_ends_in),
		cmocka_unit_test(name_that_only_contains_a_marker_is_a_stranger),
		cmocka_unit_test(form_is_that_of_the_recipes),
		cmocka_unit_test(suffix_follows_the_last_marker),
		cmocka_unit_test(number_is_signed_and_whole),
		cmocka_unit_test(lowest_number_is_the_first_whatever_its_guid),
		cmocka_unit_test(node_that_is_not_listed_is_missing),
		cmocka_unit_test(strangers_hold_nothing),
		cmocka_unit_test(node_made_by_hand_takes_part),
		cmocka_unit_test(gaps_in_the_numbers_do_not_matter),
		cmocka_unit_test(candidates_are_ordered_like_waiters_of_a_mutex),
		cmocka_unit_test(readers_do_not_wait_for_each_other),
		cmocka_unit_test(writer_waits_for_the_nearest_of_any_kind),
		cmocka_unit_test(reader_waits_for_the_nearest_writer_before_it),
		cmocka_unit_test(mutex_and_read_write_lock_exclude_each_other),
		cmocka_unit_test(reader_with_its_writers_number_does_not_wait),
		cmocka_unit_test(order_is_that_of_the_numbers_with_strangers_last),
		cmocka_unit_test(leases_are_in_the_order_of_their_numbers),
		cmocka_unit_test(holders_are_one_writer_or_the_first_readers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
