/* Checks the hash table: finding, removing, visiting, growing, and members whose hashes collide. */
#include "base/table.h"
#include "support/check.h"

#define MEMBERS 5000

struct member {
	int number;
	int visits;
	struct hf__table_link link;
};

static struct member members[MEMBERS];

static bool same_number(const struct hf__table_link *link, const void *key)
{
	return hf__table_item(link, struct member, link)->number == *(const int *)key;
}

/* With a mask of 0 all hashes are the same. */
static uint32_t hash_of(const struct hf__table *table, int number, uint32_t mask)
{
	return hf__table_hash(table, &number, sizeof number) & mask;
}

static struct member *find(const struct hf__table *table, int number, uint32_t mask)
{
	struct hf__table_link *link =
		hf__table_find(table, hash_of(table, number, mask), same_number, &number);
	return link ? hf__table_item(link, struct member, link) : NULL;
}

static void fill(struct hf__table *table, int count, uint32_t mask)
{
	hf__table_init(table, 42);
	for (int i = 0; i < count; i++) {
		members[i].number = i;
		members[i].visits = 0;
		hf__table_add(table, &members[i].link, hash_of(table, i, mask));
	}
}

static void check_all_visited_once(const struct hf__table *table, int count)
{
	int visits = 0;
	for (struct hf__table_link *at = NULL; (at = hf__table_next(table, at)); visits++)
		hf__table_item(at, struct member, link)->visits++;
	assert_int_equal(visits, table->entries);
	for (int i = 0; i < count; i++)
		assert_in_range(members[i].visits, 0, 1);
}

static void empty_table_has_nothing(void **state)
{
	struct hf__table table;

	(void)state;
	hf__table_init(&table, 1);
	assert_null(find(&table, 7, UINT32_MAX));
	assert_null(hf__table_next(&table, NULL));
	hf__table_done(&table);
}

static void all_members_are_found_while_it_grows(void **state)
{
	struct hf__table table;

	(void)state;
	fill(&table, 0, UINT32_MAX);
	for (int i = 0; i < MEMBERS; i++) {
		members[i].number = i;
		hf__table_add(&table, &members[i].link, hash_of(&table, i, UINT32_MAX));
		assert_ptr_equal(find(&table, i, UINT32_MAX), &members[i]);
		assert_ptr_equal(find(&table, i / 2, UINT32_MAX), &members[i / 2]);
		assert_null(find(&table, i + 1, UINT32_MAX));
	}
	assert_int_equal(table.entries, MEMBERS);
	assert_true(table.buckets >= MEMBERS / 2);
	hf__table_done(&table);
}

static void removed_members_are_gone_and_the_others_are_not(void **state)
{
	struct hf__table table;

	(void)state;
	fill(&table, MEMBERS, UINT32_MAX);
	for (int i = 0; i < MEMBERS; i += 3)
		hf__table_remove(&table, &members[i].link);
	for (int i = 0; i < MEMBERS; i++)
		assert_ptr_equal(find(&table, i, UINT32_MAX), i % 3 ? &members[i] : NULL);
	hf__table_add(&table, &members[0].link, hash_of(&table, 0, UINT32_MAX));
	assert_ptr_equal(find(&table, 0, UINT32_MAX), &members[0]);
	hf__table_done(&table);
}

static void colliding_members_are_distinguished(void **state)
{
	struct hf__table table;

	(void)state;
	fill(&table, 200, 0);
	for (int i = 0; i < 200; i++)
		assert_ptr_equal(find(&table, i, 0), &members[i]);
	assert_null(find(&table, 200, 0));
	for (int i = 0; i < 200; i += 2)
		hf__table_remove(&table, &members[i].link);
	for (int i = 0; i < 200; i++)
		assert_ptr_equal(find(&table, i, 0), i % 2 ? &members[i] : NULL);
	check_all_visited_once(&table, 200);
	hf__table_done(&table);
}

static void member_with_another_hash_is_not_compared(void **state)
{
	struct hf__table table;
	int number = 1;

	(void)state;
	hf__table_init(&table, 1);
	members[0].number = 1;
	hf__table_add(&table, &members[0].link, 0x10);
	assert_null(hf__table_find(&table, 0x20, same_number, &number));
	assert_ptr_equal(hf__table_find(&table, 0x10, same_number, &number), &members[0].link);
	hf__table_done(&table);
}

static bool has_same_parity(const struct hf__table_link *link, const void *key)
{
	return hf__table_item(link, struct member, link)->number % 2 == *(const int *)key % 2;
}

static void all_members_that_match_are_found_one_after_the_other(void **state)
{
	struct hf__table table;
	int odd = 1, found = 0;

	(void)state;
	fill(&table, 100, 0);
	struct hf__table_link *link = hf__table_find(&table, 0, has_same_parity, &odd);
	for (; link; link = hf__table_find_next(link, has_same_parity, &odd), found++)
		hf__table_item(link, struct member, link)->visits++;
	assert_int_equal(found, 50);
	for (int i = 0; i < 100; i++)
		assert_int_equal(members[i].visits, i % 2);
	hf__table_done(&table);
}

static void every_member_is_visited_once(void **state)
{
	struct hf__table table;

	(void)state;
	fill(&table, MEMBERS, UINT32_MAX);
	check_all_visited_once(&table, MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(members[i].visits, 1);
	hf__table_done(&table);
}

static void remove_while_visiting(uint32_t mask, int count, int every)
{
	struct hf__table table;

	fill(&table, count, mask);
	struct hf__table_link *at = hf__table_next(&table, NULL);
	while (at) {
		struct member *member = hf__table_item(at, struct member, link);
		at = hf__table_next(&table, at);
		member->visits++;
		if (member->number % every == 0)
			hf__table_remove(&table, &member->link);
	}
	for (int i = 0; i < count; i++) {
		assert_int_equal(members[i].visits, 1);
		assert_ptr_equal(find(&table, i, mask), i % every ? &members[i] : NULL);
	}
	hf__table_done(&table);
}

static void visited_member_can_be_removed(void **state)
{
	(void)state;
	remove_while_visiting(UINT32_MAX, MEMBERS, 3);
	remove_while_visiting(UINT32_MAX, MEMBERS, 1);
	remove_while_visiting(0, 100, 2);
	remove_while_visiting(0, 100, 1);
}

static void hash_depends_on_every_byte_and_on_the_seed(void **state)
{
	struct hf__table one, two;
	char text[] = "orders";

	(void)state;
	hf__table_init(&one, 1);
	hf__table_init(&two, 2);
	uint32_t hash = hf__table_hash(&one, text, 6);
	assert_int_equal(hf__table_hash(&one, "orders!", 6), hash);
	assert_int_not_equal(hf__table_hash(&two, text, 6), hash);
	assert_int_not_equal(hf__table_hash(&one, text, 5), hash);
	for (int i = 0; i < 6; i++) {
		text[i] ^= 1;
		assert_int_not_equal(hf__table_hash(&one, text, 6), hash);
		text[i] ^= 1;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_table_has_nothing),
		cmocka_unit_test(all_members_are_found_while_it_grows),
		cmocka_unit_test(removed_members_are_gone_and_the_others_are_not),
		cmocka_unit_test(colliding_members_are_distinguished),
		cmocka_unit_test(member_with_another_hash_is_not_compared),
		cmocka_unit_test(all_members_that_match_are_found_one_after_the_other),
		cmocka_unit_test(every_member_is_visited_once),
		cmocka_unit_test(visited_member_can_be_removed),
		cmocka_unit_test(hash_depends_on_every_byte_and_on_the_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
