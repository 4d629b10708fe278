/* Readers that let a writer of their own process go first. */
#include "fake.h"

enum { WRITER = 1, READER = 2, ANOTHER = 3 };

static struct hf__lock *open_half(struct fake *fake, int kind)
{
	struct hf__lock *lock = hf__lock_ref(&fake->core, kind, "orders");
	assert_non_null(lock);
	fake->lock[fake->locks++] = lock;
	return lock;
}

/* The writer's ask found the lock busy, and the writer waits. */
static struct hf__op *wait_to_write(struct fake *fake, struct hf__lock *lock)
{
	struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .owner = WRITER);
	fake_answer_busy(fake, 20000);
	fake_answer_busy(fake, 20000);
	check_waits(op);
	check_nothing_sent(fake);
	return op;
}

static struct hf__op *read_as(struct fake *fake, struct hf__lock *lock, uint64_t owner)
{
	return fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .owner = owner);
}

static void reader_keeps_back_for_a_moment_while_a_writer_waits(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	(void)wait_to_write(fake, write);
	struct hf__op *reader = read_as(fake, read, READER);
	fake_advance(fake, HF__YIELD_MS - 1);
	check_nothing_sent(fake);
	fake_advance(fake, 1);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(reader, 0);
}

static void readers_ask_before_the_next_writer_when_one_has_had_its_turn(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	struct hf__op *writer = wait_to_write(fake, write);
	struct hf__op *next =
		fake_start_on(fake, write, .action = HF__OP_ACQUIRE, .owner = ANOTHER);
	fake_wake(fake, write);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(writer, 0);
	struct hf__op *reader = read_as(fake, read, READER);
	check_nothing_sent(fake);
	struct hf__op *release =
		fake_start_on(fake, write, .action = HF__OP_RELEASE, .owner = WRITER);
	fake_answer(fake, HF__DONE);
	check_result(release, 0);
	assert_ptr_equal(check_sent(fake, HF__ASK, 1)->lock, read);
	fake_answer(fake, HF__GRANTED);
	check_result(reader, 0);
	assert_ptr_equal(check_sent(fake, HF__ASK, 1)->lock, write);
	fake_answer(fake, HF__GRANTED);
	check_result(next, 0);
}

static void writer_reads_inside_its_own_hold_at_once(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	(void)fake_start_on(fake, write, .action = HF__OP_ACQUIRE, .owner = WRITER);
	fake_answer(fake, HF__GRANTED);
	struct hf__op *reader = read_as(fake, read, WRITER);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(reader, 0);
}

static void reader_that_does_not_wait_asks_at_once(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	(void)wait_to_write(fake, write);
	struct hf__op *reader = fake_start_on(fake, read, .action = HF__OP_ACQUIRE, .owner = READER,
	                                      .wait_ms = HF_NOWAIT);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(reader, 0);
}

static void reader_that_came_later_may_ask_before_one_that_keeps_back(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	(void)wait_to_write(fake, write);
	struct hf__op *first = read_as(fake, read, READER);
	struct hf__op *second = fake_start_on(fake, read, .action = HF__OP_ACQUIRE,
	                                      .owner = ANOTHER, .wait_ms = HF_NOWAIT);
	fake_answer(fake, HF__GRANTED);
	check_result(second, 0);
	fake_advance(fake, HF__YIELD_MS);
	fake_answer(fake, HF__GRANTED);
	check_result(first, 0);
}

static void writer_that_gives_up_lets_readers_go(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	struct hf__op *writer = wait_to_write(fake, write);
	struct hf__op *reader = read_as(fake, read, READER);
	hf__core_cancel(&fake->core, writer, fake->now);
	check_result(writer, HF_ECANCELLED);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(reader, 0);
}

static void hold_to_write(struct fake *fake, struct hf__lock *lock)
{
	struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .owner = WRITER);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

static void first_reader_listens_if_the_writer_stays(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	hold_to_write(fake, write);
	struct hf__op *first = read_as(fake, read, READER), *next = read_as(fake, read, ANOTHER);
	fake_advance(fake, HF__LISTEN_MS);
	assert_int_equal(fake->watches, 1);
	assert_int_equal(fake_pending(fake), 1);
	fake_reply(fake, (struct hf__answer){
				 .outcome = HF__BUSY, .ttl_ms = 20000, .channel = HF__CHANNEL_RW});
	check_nothing_sent(fake);
	fake_wake(fake, read);
	for (int i = 0; i < 2; i++)
		fake_answer(fake, HF__GRANTED);
	check_result(first, 0);
	check_result(next, 0);
}

static void grant_to_a_reader_is_a_loss_for_the_writer(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *write = open_half(fake, HF_WRITE), *read = open_half(fake, HF_READ);
	hold_to_write(fake, write);
	struct hf__op *first = read_as(fake, read, READER), *next = read_as(fake, read, ANOTHER);
	fake_advance(fake, HF__LISTEN_MS);
	fake_answer(fake, HF__GRANTED);
	check_result(first, 0);
	CHECK_REPORTED(fake, HF_LOST);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(next, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(reader_keeps_back_for_a_moment_while_a_writer_waits),
		fake_test(first_reader_listens_if_the_writer_stays),
		fake_test(grant_to_a_reader_is_a_loss_for_the_writer),
		fake_test(readers_ask_before_the_next_writer_when_one_has_had_its_turn),
		fake_test(writer_reads_inside_its_own_hold_at_once),
		fake_test(reader_that_does_not_wait_asks_at_once),
		fake_test(reader_that_came_later_may_ask_before_one_that_keeps_back),
		fake_test(writer_that_gives_up_lets_readers_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
