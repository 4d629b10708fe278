/* One name as several kinds of lock: which of them stand in each other's way in one client. */
#include "fake.h"

#include "support/kinds.h"

enum { ME = 1, OTHER = 2 };

/* clang-format off */
/* The kinds that share a key on Redis. */
#define KIND_ROWS(ROW)                                                                             \
	ROW(HF_REENTRANT) ROW(HF_FAIR) ROW(HF_READ) ROW(HF_WRITE)                                  \
	ROW(HF_FENCED) ROW(HF_SPIN) ROW(HF_SIMPLE) ROW(HF_SIMPLE_FAIR)
/* clang-format on */

#define KIND_OF(kind) kind,
static const int kinds[] = {KIND_ROWS(KIND_OF)};
HF__ROWS_ARE(KIND_ROWS, KINDS_ON_REDIS);
#define KINDS (sizeof kinds / sizeof kinds[0])

static struct hf__lock *open_kind(struct fake *fake, int kind, const char *name)
{
	struct hf__lock *lock = hf__lock_ref(&fake->core, kind, name);
	assert_non_null(lock);
	assert_true(fake->locks < FAKE_LOCKS);
	fake->lock[fake->locks++] = lock;
	return lock;
}

static struct hf__lock *open_group(struct fake *fake, const char *letters)
{
	char values[4 * HF__VALUE_SIZE];
	size_t n = strlen(letters);
	for (size_t i = 0; i < n; i++)
		memset(values + i * HF__VALUE_SIZE, letters[i], HF__VALUE_SIZE);
	struct hf__lock *lock = hf__lock_ref_group(&fake->core, "orders", values, n);
	assert_non_null(lock);
	fake->lock[fake->locks++] = lock;
	return lock;
}

static struct hf__op *start(struct fake *fake, struct hf__lock *lock, uint64_t owner)
{
	return fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .owner = owner, .amount = 1);
}

static void hold(struct fake *fake, struct hf__lock *lock, uint64_t owner)
{
	struct hf__op *op = start(fake, lock, owner);
	(void)fake_sent(fake, HF__ASK);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

static void release(struct fake *fake, struct hf__lock *lock, uint64_t owner)
{
	struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_RELEASE, .owner = owner);
	if (!hf__list_empty(&fake->sent))
		fake_answer(fake, HF__DONE);
	assert_false(hf__op_is_active(op));
}

static void force(struct fake *fake, struct hf__lock *lock)
{
	struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_FORCE);
	(void)fake_sent(fake, HF__FORCE);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = 1});
	check_result(op, 0);
}

static hf_state state_of(struct fake *fake, const struct hf__lock *lock, uint64_t owner)
{
	hf_state found;
	(void)hf__lock_remaining(lock, owner, fake->now, &found);
	return found;
}

/* ---- release by force ---- */

static void force_as_one_kind_is_a_loss_for_every_other(void **state)
{
	struct fake *fake = *state;
	for (size_t i = 0; i < KINDS; i++) {
		for (size_t k = 0; k < KINDS; k++) {
			struct hf__lock *mine = open_kind(fake, kinds[i], "orders");
			struct hf__lock *forced = open_kind(fake, kinds[k], "orders");
			hold(fake, mine, ME);
			force(fake, forced);
			assert_int_equal(state_of(fake, mine, ME), HF_LOST);
			CHECK_REPORTED(fake, HF_LOST);
			release(fake, mine, ME);
		}
	}
}

static void force_of_a_writer_ends_its_own_reading(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_kind(fake, HF_WRITE, "orders");
	struct hf__lock *read = open_kind(fake, HF_READ, "orders");
	hold(fake, write, ME);
	hold(fake, read, ME);
	force(fake, write);
	assert_int_equal(state_of(fake, write, ME), HF_LOST);
	assert_int_equal(state_of(fake, read, ME), HF_LOST);
}

static void force_leaves_other_names_and_other_structures_alone(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *name = open_kind(fake, HF_FENCED, "bills");
	struct hf__lock *permits = open_kind(fake, HF__PERMITS, "orders");
	struct hf__lock *group = open_group(fake, "a");
	hold(fake, name, ME);
	hold(fake, permits, 0);
	hold(fake, group, ME);
	force(fake, fake->lock[0]);
	assert_int_equal(state_of(fake, name, ME), HF_HELD);
	assert_int_equal(state_of(fake, group, ME), HF_HELD);
	check_nothing_reported(fake);
}

static void force_of_a_group_ends_the_groups_with_a_common_value(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *ab = open_group(fake, "ab"), *cd = open_group(fake, "cd");
	hold(fake, ab, ME);
	hold(fake, cd, ME);
	force(fake, open_group(fake, "bx"));
	assert_int_equal(state_of(fake, ab, ME), HF_LOST);
	assert_int_equal(state_of(fake, cd, ME), HF_HELD);
}

/* ---- an owner in its own way ---- */

static void owner_that_asks_as_another_kind_would_wait_for_itself(void **state)
{
	struct fake *fake = *state;
	for (size_t i = 0; i < KINDS; i++) {
		for (size_t k = 0; k < KINDS; k++) {
			struct hf__lock *mine = open_kind(fake, kinds[i], "orders");
			struct hf__lock *wanted = open_kind(fake, kinds[k], "orders");
			if (i == k || (kinds[i] == HF_WRITE && kinds[k] == HF_READ))
				continue;
			hold(fake, mine, ME);
			struct hf__op *op = start(fake, wanted, ME);
			check_nothing_sent(fake);
			check_result(op, HF_EDEADLOCK);
			check_detail(op, hf__kind_word(kinds[i]));
			release(fake, mine, ME);
			hold(fake, wanted, ME);
			release(fake, wanted, ME);
		}
	}
}

static void writer_may_still_read(void **state)
{
	struct fake *fake = *state;
	hold(fake, open_kind(fake, HF_WRITE, "orders"), ME);
	hold(fake, open_kind(fake, HF_READ, "orders"), ME);
}

static void other_owners_wait_as_before(void **state)
{
	struct fake *fake = *state;
	hold(fake, fake->lock[0], ME);
	struct hf__op *op = start(fake, open_kind(fake, HF_FENCED, "orders"), OTHER);
	(void)fake_sent(fake, HF__ASK);
	fake_answer_busy(fake, 20000);
	check_waits(op);
}

static void hold_that_has_expired_is_not_in_the_way(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, ME, 100);
	fake->now += 200;
	hold(fake, open_kind(fake, HF_FENCED, "orders"), ME);
}

static void groups_are_in_each_others_way_if_they_share_a_value(void **state)
{
	struct fake *fake = *state;
	hold(fake, open_group(fake, "ab"), ME);
	struct hf__op *op = start(fake, open_group(fake, "bc"), ME);
	check_result(op, HF_EDEADLOCK);
	check_nothing_sent(fake);
	hold(fake, open_group(fake, "cd"), ME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(force_as_one_kind_is_a_loss_for_every_other),
		fake_test(force_of_a_writer_ends_its_own_reading),
		fake_test(force_leaves_other_names_and_other_structures_alone),
		fake_test(force_of_a_group_ends_the_groups_with_a_common_value),
		fake_test(owner_that_asks_as_another_kind_would_wait_for_itself),
		fake_test(writer_may_still_read),
		fake_test(other_owners_wait_as_before),
		fake_test(hold_that_has_expired_is_not_in_the_way),
		fake_test(groups_are_in_each_others_way_if_they_share_a_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
