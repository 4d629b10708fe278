/* Checks when the number and the transaction of a node prove that it is alone in its folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "support/check.h"
#include "zk/zk.h"

#define EPOCH(n) ((int64_t)(n) << 32)

/* The part of a backend that is needed here, and two locks. */
struct bench {
	struct hf__zk zk;
	struct hf__lock *orders, *bills;
};

static struct hf__lock *new_lock(void)
{
	struct hf__lock *lock = check_alloc(sizeof(*lock) + 8);
	lock->kind = HF_REENTRANT;
	return lock;
}

static int set_up(void **state)
{
	struct bench *bench = check_alloc(sizeof(*bench));
	hf__table_init(&bench->zk.nodes, 1);
	hf__table_init(&bench->zk.locks, 2);
	hf__table_init(&bench->zk.watchers, 3);
	bench->zk.sessions = 1;
	bench->orders = new_lock();
	bench->bills = new_lock();
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;
	hf__zk_lock_free_all(&bench->zk);
	hf__table_done(&bench->zk.nodes);
	hf__table_done(&bench->zk.locks);
	hf__table_done(&bench->zk.watchers);
	free(bench->orders);
	free(bench->bills);
	free(bench);
	return 0;
}

/* The server writes numbers with at least ten characters. */
static struct hf__node node_at(struct hf__lock *lock, int number, int64_t czxid)
{
	struct hf__node node = {.lock = lock, .czxid = czxid};
	(void)snprintf(node.name, sizeof node.name,
	               "_c_11111111-1111-4111-8111-111111111111-lock-%010d", number);
	return node;
}

/* A node was alone, and was deleted. */
static void leave_alone(struct bench *bench, int number, int64_t czxid)
{
	struct hf__node node = node_at(bench->orders, number, czxid);
	hf__alone_set(&bench->zk, &node, true);
	hf__alone_note_removed(&bench->zk, &node);
}

static bool is_alone(struct bench *bench, int number, int64_t czxid)
{
	struct hf__node node = node_at(bench->orders, number, czxid);
	return hf__alone_is_certain(&bench->zk, &node);
}

static void next_number_is_alone(void **state)
{
	struct bench *bench = *state;
	leave_alone(bench, 0, EPOCH(1) + 7);
	assert_true(hf__alone_is_likely(&bench->zk, bench->orders));
	assert_true(is_alone(bench, 1, EPOCH(1) + 9));
	leave_alone(bench, 41, EPOCH(1) + 100);
	assert_true(is_alone(bench, 42, EPOCH(1) + 102));
}

static void nothing_is_known_of_a_folder_before_its_first_node(void **state)
{
	struct bench *bench = *state;
	assert_false(hf__alone_is_likely(&bench->zk, bench->orders));
	assert_false(is_alone(bench, 0, EPOCH(1) + 1));
	assert_false(is_alone(bench, 1, EPOCH(1) + 1));
	leave_alone(bench, 0, EPOCH(1) + 7);
	assert_false(hf__alone_is_likely(&bench->zk, bench->bills));
	struct hf__node other = node_at(bench->bills, 1, EPOCH(1) + 9);
	assert_false(hf__alone_is_certain(&bench->zk, &other));
}

static void node_is_not_alone_while_the_one_before_it_exists(void **state)
{
	struct bench *bench = *state;
	struct hf__node first = node_at(bench->orders, 5, EPOCH(1) + 50);
	hf__alone_set(&bench->zk, &first, true);
	assert_false(hf__alone_is_likely(&bench->zk, bench->orders));
	assert_false(is_alone(bench, 6, EPOCH(1) + 51));
	/* The deletion of another node proves nothing. */
	struct hf__node other = node_at(bench->orders, 4, EPOCH(1) + 48);
	hf__alone_note_removed(&bench->zk, &other);
	assert_false(is_alone(bench, 6, EPOCH(1) + 51));
	hf__alone_note_removed(&bench->zk, &first);
	assert_true(is_alone(bench, 6, EPOCH(1) + 52));
}

static void next_node_has_to_go_before_the_one_after_it_is_alone(void **state)
{
	struct bench *bench = *state;
	leave_alone(bench, 5, EPOCH(1) + 50);
	struct hf__node next = node_at(bench->orders, 6, EPOCH(1) + 52);
	assert_true(hf__alone_is_certain(&bench->zk, &next));
	hf__alone_set(&bench->zk, &next, true);
	/* Another owner of this process created it at the same time. */
	assert_false(is_alone(bench, 7, EPOCH(1) + 53));
}

static void any_other_number_is_not_alone(void **state)
{
	static const int numbers[] = {0, 1, 9, 10, 12, 13, 1000, 2147483647, -2147483647 - 1, -1};
	struct bench *bench = *state;
	leave_alone(bench, 10, EPOCH(3) + 20);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		assert_false(is_alone(bench, numbers[i], EPOCH(3) + 22));
	assert_true(is_alone(bench, 11, EPOCH(3) + 22));
}

static void more_transactions_than_numbers_mean_that_the_folder_was_created_again(void **state)
{
	struct bench *bench = *state;
	for (int number = 0; number < 300; number += 37) {
		leave_alone(bench, number, EPOCH(1) + 1000);
		assert_true(is_alone(bench, number + 1, EPOCH(1) + 1000 + 2));
		/*
		 * The least that it takes: the old node and the folder are removed, the folder is
		 * created again, and in it as many nodes as there were, and ours.
		 */
		int64_t again = 1 + 1 + 1 + (number + 1) + 1;
		assert_false(is_alone(bench, number + 1, EPOCH(1) + 1000 + again));
		/* The bound is exact. */
		assert_true(is_alone(bench, number + 1, EPOCH(1) + 1000 + number + 2));
		assert_false(is_alone(bench, number + 1, EPOCH(1) + 1000 + number + 3));
		assert_false(is_alone(bench, number + 1, EPOCH(1) + 0x7fffffff));
	}
}

static void transaction_that_is_not_later_is_not_alone(void **state)
{
	struct bench *bench = *state;
	leave_alone(bench, 10, EPOCH(1) + 100);
	assert_true(is_alone(bench, 11, EPOCH(1) + 101));
	assert_false(is_alone(bench, 11, EPOCH(1) + 100));
	assert_false(is_alone(bench, 11, EPOCH(1) + 99));
	assert_false(is_alone(bench, 11, 0));
	assert_false(is_alone(bench, 11, -1));
}

static void other_epoch_is_not_alone(void **state)
{
	struct bench *bench = *state;
	leave_alone(bench, 10, EPOCH(1) + 0xffffffff);
	assert_false(is_alone(bench, 11, EPOCH(2)));
	assert_false(is_alone(bench, 11, EPOCH(2) + 1));
	leave_alone(bench, 10, EPOCH(2) + 5);
	assert_false(is_alone(bench, 11, EPOCH(3) + 7));
	assert_false(is_alone(bench, 11, EPOCH(1) + 7));
	assert_true(is_alone(bench, 11, EPOCH(2) + 7));
	/* The highest epochs: they are signed numbers of 32 bits. */
	leave_alone(bench, 10, EPOCH(0x7fffffff) + 0xfffffff0);
	assert_true(is_alone(bench, 11, EPOCH(0x7fffffff) + 0xfffffff2));
	assert_true(is_alone(bench, 11, INT64_MAX - 10));
	assert_false(is_alone(bench, 11, INT64_MAX));
}

static void other_session_knows_nothing(void **state)
{
	struct bench *bench = *state;
	leave_alone(bench, 10, EPOCH(1) + 100);
	bench->zk.sessions++;
	assert_false(hf__alone_is_likely(&bench->zk, bench->orders));
	assert_false(is_alone(bench, 11, EPOCH(1) + 102));
	leave_alone(bench, 11, EPOCH(1) + 102);
	assert_true(is_alone(bench, 12, EPOCH(1) + 104));
}

static void node_that_was_not_alone_proves_nothing_for_the_next(void **state)
{
	struct bench *bench = *state;
	struct hf__node waits = node_at(bench->orders, 11, EPOCH(1) + 102);
	leave_alone(bench, 10, EPOCH(1) + 100);
	hf__alone_set(&bench->zk, &waits, false);
	assert_false(hf__alone_is_likely(&bench->zk, bench->orders));
	hf__alone_note_removed(&bench->zk, &waits);
	assert_false(is_alone(bench, 11, EPOCH(1) + 102));
	assert_false(is_alone(bench, 12, EPOCH(1) + 104));
}

/* The server counts with 32 bits and a sign. */
static void number_that_wraps_around_is_not_alone(void **state)
{
	struct bench *bench = *state;
	leave_alone(bench, 2147483646, EPOCH(1) + 100);
	assert_true(is_alone(bench, 2147483647, EPOCH(1) + 102));
	leave_alone(bench, 2147483647, EPOCH(1) + 102);
	assert_false(is_alone(bench, -2147483647 - 1, EPOCH(1) + 104));
	assert_false(is_alone(bench, 2147483647, EPOCH(1) + 104));
	leave_alone(bench, -2147483647 - 1, EPOCH(1) + 104);
	assert_false(is_alone(bench, -2147483647, EPOCH(1) + 106));
	leave_alone(bench, -1, EPOCH(1) + 200);
	assert_false(is_alone(bench, 0, EPOCH(1) + 202));
}

static void name_without_a_number_is_not_alone(void **state)
{
	static const char *const names[] = {"", "_c_x-lock-", "_c_x-lock-12a", "lease",
	                                    "_c_x-lock-0x1"};
	struct bench *bench = *state;
	struct hf__node node = {.lock = bench->orders, .czxid = EPOCH(1) + 102};
	leave_alone(bench, 0, EPOCH(1) + 100);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		(void)snprintf(node.name, sizeof node.name, "%s", names[i]);
		assert_false(hf__alone_is_certain(&bench->zk, &node));
	}
	hf__alone_set(&bench->zk, &node, true);
	hf__alone_note_removed(&bench->zk, &node);
	assert_false(hf__alone_is_likely(&bench->zk, bench->orders));
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(next_number_is_alone),
		PLACE_TEST(nothing_is_known_of_a_folder_before_its_first_node),
		PLACE_TEST(node_is_not_alone_while_the_one_before_it_exists),
		PLACE_TEST(next_node_has_to_go_before_the_one_after_it_is_alone),
		PLACE_TEST(any_other_number_is_not_alone),
		PLACE_TEST(more_transactions_than_numbers_mean_that_the_folder_was_created_again),
		PLACE_TEST(transaction_that_is_not_later_is_not_alone),
		PLACE_TEST(other_epoch_is_not_alone),
		PLACE_TEST(other_session_knows_nothing),
		PLACE_TEST(node_that_was_not_alone_proves_nothing_for_the_next),
		PLACE_TEST(number_that_wraps_around_is_not_alone),
		PLACE_TEST(name_without_a_number_is_not_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
