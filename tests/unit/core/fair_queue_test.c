/* Fair waiters for a hold of their own process: which of them ask, and which have to listen. */
#include "fake.h"

enum { HOLDER = 1, FIRST = 2, SECOND = 3 };

struct row {
	struct hf__lock *lock;
	struct hf__op *first, *second;
};

static struct hf__op *call_on(struct fake *fake, struct hf__lock *lock, int action, uint64_t owner)
{
	return fake_start_on(fake, lock, .action = (uint8_t)action, .owner = owner);
}

/* One owner holds the lock, two more are in the server's queue. */
static struct row line_up(struct fake *fake)
{
	struct row row = {.lock = hf__lock_ref(&fake->core, HF_FAIR, "orders")};
	assert_non_null(row.lock);
	fake->lock[fake->locks++] = row.lock;
	(void)call_on(fake, row.lock, HF__OP_ACQUIRE, HOLDER);
	fake_answer(fake, HF__GRANTED);
	row.first = call_on(fake, row.lock, HF__OP_ACQUIRE, FIRST);
	row.second = call_on(fake, row.lock, HF__OP_ACQUIRE, SECOND);
	for (int i = 0; i < 2; i++)
		fake_reply(fake, (struct hf__answer){.outcome = HF__BUSY,
		                                     .ttl_ms = 20000,
		                                     .channel = HF__CHANNEL_WAITER});
	check_nothing_sent(fake);
	return row;
}

/* The holder releases it, and learns whose turn it is; 0: it is nobody's turn in this process. */
static void give_up(struct fake *fake, const struct row *row, uint64_t next)
{
	struct hf__op *release = call_on(fake, row->lock, HF__OP_RELEASE, HOLDER);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .next = next});
	check_result(release, 0);
}

static void waiter_for_a_hold_of_its_process_neither_listens_nor_asks_again(void **state)
{
	struct fake *fake = *state;
	struct row row = line_up(fake);
	assert_int_equal(fake->watches, 0);
	check_waits(row.first);
	check_waits(row.second);
}

static void answer_busy(struct fake *fake)
{
	fake_reply(fake, (struct hf__answer){.outcome = HF__BUSY,
	                                     .ttl_ms = 20000,
	                                     .channel = HF__CHANNEL_WAITER});
}

static void first_waiter_listens_if_the_hold_lasts(void **state)
{
	struct fake *fake = *state;
	struct row row = line_up(fake);
	fake_advance(fake, HF__LISTEN_MS);
	/* The channel of its own, and that of waiters without an order. */
	assert_int_equal(fake->watches, 2);
	assert_int_equal(fake_pending(fake), 1);
	assert_int_equal(check_sent(fake, HF__ASK, 1)->wire, row.first->hold->cmd.wire);
	answer_busy(fake);
	check_nothing_sent(fake);
	give_up(fake, &row, row.first->hold->cmd.wire);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer(fake, HF__GRANTED);
	check_result(row.first, 0);
	check_nothing_sent(fake);
	fake_advance(fake, HF__LISTEN_MS);
	assert_int_equal(check_sent(fake, HF__ASK, 1)->wire, row.second->hold->cmd.wire);
	answer_busy(fake);
	check_waits(row.second);
}

static void only_the_one_whose_turn_it_is_asks(void **state)
{
	struct fake *fake = *state;
	struct row row = line_up(fake);
	uint64_t wire = row.first->hold->cmd.wire;
	give_up(fake, &row, wire);
	assert_int_equal(fake_pending(fake), 1);
	assert_int_equal(check_sent(fake, HF__ASK, 1)->wire, wire);
	fake_answer(fake, HF__GRANTED);
	check_result(row.first, 0);
	check_nothing_sent(fake);
	check_waits(row.second);
	assert_int_equal(fake->watches, 0);
}

static void all_listen_and_ask_when_it_goes_to_another_process(void **state)
{
	struct fake *fake = *state;
	struct row row = line_up(fake);
	give_up(fake, &row, 0);
	assert_int_equal(fake_pending(fake), 2);
	/* One channel each, and that of waiters without an order. */
	assert_int_equal(fake->watches, 3);
	for (int i = 0; i < 2; i++)
		fake_reply(fake, (struct hf__answer){.outcome = HF__BUSY,
		                                     .ttl_ms = 20000,
		                                     .channel = HF__CHANNEL_WAITER});
	/* They listened before they asked, so once was enough. */
	check_nothing_sent(fake);
	check_waits(row.first);
	check_waits(row.second);
}

static void others_ask_when_it_was_not_its_turn_after_all(void **state)
{
	struct fake *fake = *state;
	struct row row = line_up(fake);
	give_up(fake, &row, row.first->hold->cmd.wire);
	fake_reply(fake, (struct hf__answer){.outcome = HF__BUSY,
	                                     .ttl_ms = 20000,
	                                     .channel = HF__CHANNEL_WAITER});
	assert_int_equal(fake_pending(fake), 2);
	fake_answer(fake, HF__GRANTED);
	fake_answer(fake, HF__GRANTED);
}

static void others_ask_when_the_one_whose_turn_it_is_leaves(void **state)
{
	struct fake *fake = *state;
	struct row row = line_up(fake);
	give_up(fake, &row, row.first->hold->cmd.wire);
	hf__core_cancel(&fake->core, row.first, fake->now);
	fake_reply(fake, (struct hf__answer){.outcome = HF__BUSY,
	                                     .ttl_ms = 20000,
	                                     .channel = HF__CHANNEL_WAITER});
	check_result(row.first, HF_ECANCELLED);
	assert_true(row.second->hold->cmd.in_flight);
	while (fake_pending(fake) > 0)
		fake_answer(fake, HF__GRANTED);
	check_result(row.second, 0);
}

static void all_ask_again_when_the_hold_is_lost(void **state)
{
	struct fake *fake = *state;
	struct row row = line_up(fake);
	hf__hold_lose(&fake->core, hf__hold_find(row.lock, HOLDER), HF__LOST_FORCED, fake->now);
	assert_int_equal(fake_pending(fake), 2);
	fake_report(fake);
	fake->reported_count = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(waiter_for_a_hold_of_its_process_neither_listens_nor_asks_again),
		fake_test(first_waiter_listens_if_the_hold_lasts),
		fake_test(only_the_one_whose_turn_it_is_asks),
		fake_test(all_listen_and_ask_when_it_goes_to_another_process),
		fake_test(others_ask_when_it_was_not_its_turn_after_all),
		fake_test(others_ask_when_the_one_whose_turn_it_is_leaves),
		fake_test(all_ask_again_when_the_hold_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
