/* Checks the linked list: order, removal, and moving members between lists. */
#include "base/list.h"
#include "support/check.h"

struct member {
	int number;
	struct hf__list link;
};

static struct member members[6];

static void fill(struct hf__list *list, int first, int last)
{
	hf__list_init(list);
	for (int i = first; i <= last; i++) {
		members[i].number = i;
		hf__list_add(list, &members[i].link);
	}
}

/* Walks in both directions, so that a wrong back link is found too. */
static void check_members(const struct hf__list *list, const int *expected, size_t count)
{
	const struct hf__list *link = list;
	for (size_t i = 0; i < count; i++) {
		link = link->next;
		assert_int_equal(hf__list_item(link, struct member, link)->number, expected[i]);
	}
	assert_ptr_equal(link->next, list);
	for (size_t i = count; i > 0; i--) {
		assert_int_equal(hf__list_item(link, struct member, link)->number, expected[i - 1]);
		link = link->prev;
	}
	assert_ptr_equal(link, list);
}

#define CHECK_MEMBERS(list, ...)                                                                   \
	check_members((list), (const int[]){__VA_ARGS__},                                          \
	              sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void new_list_is_empty(void **state)
{
	struct hf__list list;

	(void)state;
	hf__list_init(&list);
	assert_true(hf__list_empty(&list));
	check_members(&list, NULL, 0);
}

static void members_keep_the_order_in_which_they_were_added(void **state)
{
	struct hf__list list;

	(void)state;
	fill(&list, 0, 3);
	assert_false(hf__list_empty(&list));
	CHECK_MEMBERS(&list, 0, 1, 2, 3);
}

static void removed_member_is_on_no_list_and_can_be_added_again(void **state)
{
	struct hf__list list;

	(void)state;
	fill(&list, 0, 2);
	hf__list_remove(&members[1].link);
	CHECK_MEMBERS(&list, 0, 2);
	assert_true(hf__list_empty(&members[1].link));
	hf__list_remove(&members[1].link);
	CHECK_MEMBERS(&list, 0, 2);
	hf__list_add(&list, &members[1].link);
	CHECK_MEMBERS(&list, 0, 2, 1);
}

static void each_visits_all(void **state)
{
	struct hf__list list, *link;
	int sum = 0;

	(void)state;
	fill(&list, 0, 4);
	hf__list_each (link, &list)
		sum += hf__list_item(link, struct member, link)->number;
	assert_int_equal(sum, 10);
}

static void visited_member_can_be_removed(void **state)
{
	struct hf__list list, *link, *after;
	int visited = 0;

	(void)state;
	fill(&list, 0, 4);
	hf__list_each_safe (link, after, &list) {
		visited++;
		if (hf__list_item(link, struct member, link)->number % 2 == 0)
			hf__list_remove(link);
	}
	assert_int_equal(visited, 5);
	CHECK_MEMBERS(&list, 1, 3);
}

static void moved_members_follow_the_existing_ones(void **state)
{
	struct hf__list from, to;

	(void)state;
	fill(&to, 0, 1);
	fill(&from, 2, 4);
	hf__list_move(&to, &from);
	CHECK_MEMBERS(&to, 0, 1, 2, 3, 4);
	assert_true(hf__list_empty(&from));
	hf__list_init(&from);
	hf__list_move(&from, &to);
	CHECK_MEMBERS(&from, 0, 1, 2, 3, 4);
	assert_true(hf__list_empty(&to));
}

static void moving_an_empty_list_changes_nothing(void **state)
{
	struct hf__list from, to;

	(void)state;
	fill(&to, 0, 1);
	hf__list_init(&from);
	hf__list_move(&to, &from);
	CHECK_MEMBERS(&to, 0, 1);
	assert_true(hf__list_empty(&from));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_list_is_empty),
		cmocka_unit_test(members_keep_the_order_in_which_they_were_added),
		cmocka_unit_test(removed_member_is_on_no_list_and_can_be_added_again),
		cmocka_unit_test(each_visits_all),
		cmocka_unit_test(visited_member_can_be_removed),
		cmocka_unit_test(moved_members_follow_the_existing_ones),
		cmocka_unit_test(moving_an_empty_list_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
