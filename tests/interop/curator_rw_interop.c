/* Read-write locks that C shares with Curator, in both directions. */
#include "interop/curator.h"

/* Both halves of one lock. */
struct pair {
	struct shared_lock read;
	struct shared_lock write;
};

static struct pair open_pair(void)
{
	struct pair pair = {.write = shared_open(HF_WRITE, "write")};
	pair.read = shared_other(&pair.write, HF_READ, "read");
	return pair;
}

static void close_pair(struct pair *pair)
{
	shared_close(&pair->write);
	hf_lock_close(pair->read.lock);
}

/* A read lock of another owner in this process, who holds it when this returns. */
static struct waiter *another_reads(const struct pair *pair)
{
	struct waiter *waiter = waiter_start(pair->read.lock, NULL);
	c_got_it(waiter);
	return waiter;
}

/* ---- readers and writers ---- */

static void readers_of_both_share_and_keep_writers_out(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	c_takes_node(&pair.read);
	assert_true(j_tries(&pair.read, "t", 0));
	struct waiter *third = another_reads(&pair);
	assert_false(j_tries(&pair.write, "u", 50));
	struct waiter *writer = waiter_start(pair.write.lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	waiter_expect(writer, HF_EBUSY);
	waiter_free(writer);
	WAIT_UNTIL(count_nodes(&pair.read) == 3, SOON_MS);
	c_gives(&pair.read);
	j_gives(&pair.read, "t");
	waiter_finish(third);
	close_pair(&pair);
}

static void writer_in_c_keeps_all_of_java_out(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	c_takes_node(&pair.write);
	assert_false(j_tries(&pair.read, "t", 50));
	assert_false(j_tries(&pair.write, "t", 50));
	WAIT_UNTIL(count_nodes(&pair.write) == 1, SOON_MS);
	c_gives(&pair.write);
	assert_true(j_tries(&pair.read, "t", SOON_MS));
	j_gives(&pair.read, "t");
	close_pair(&pair);
}

static void writer_in_java_keeps_all_of_c_out(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	j_takes(&pair.write, "t");
	c_cannot_take(&pair.read);
	c_cannot_take(&pair.write);
	ASSERT_RC(hf_lock_acquire(pair.read.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	ASSERT_RC(hf_lock_acquire(pair.write.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	WAIT_UNTIL(count_nodes(&pair.write) == 1, SOON_MS);
	j_gives(&pair.write, "t");
	c_takes_node(&pair.read);
	c_gives(&pair.read);
	close_pair(&pair);
}

static void waiting_writer_in_c_lets_no_later_reader_past(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	j_takes(&pair.read, "t");
	struct waiter *writer = c_queues(&pair.write);
	assert_false(j_tries(&pair.read, "u", 50));
	j_queues(&pair.read, "u");
	j_gives(&pair.read, "t");
	c_got_it(writer);
	assert_false(peer_has_answered(curator_peer, "u"));
	waiter_finish(writer);
	j_got_it("u");
	j_gives(&pair.read, "u");
	close_pair(&pair);
}

static void waiting_writer_in_java_lets_no_later_reader_past(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	c_takes_node(&pair.read);
	j_queues(&pair.write, "t");
	struct waiter *reader = c_queues(&pair.read);
	c_gives(&pair.read);
	j_got_it("t");
	assert_false(atomic_load(&reader->over));
	j_gives(&pair.write, "t");
	c_got_it(reader);
	waiter_finish(reader);
	close_pair(&pair);
}

/* Readers after one writer enter together, and the next writer after all of them. */
static void queue_of_both_goes_in_order(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	j_takes(&pair.write, "t");
	struct waiter *first = c_queues(&pair.read);
	j_queues(&pair.read, "r");
	struct waiter *second = c_queues(&pair.read);
	j_queues(&pair.write, "w");
	struct waiter *last = c_queues(&pair.write);
	j_gives(&pair.write, "t");
	c_got_it(first);
	j_got_it("r");
	c_got_it(second);
	assert_false(peer_has_answered(curator_peer, "w"));
	waiter_finish(second);
	waiter_finish(first);
	assert_false(peer_has_answered(curator_peer, "w"));
	j_gives(&pair.read, "r");
	j_got_it("w");
	assert_false(atomic_load(&last->over));
	j_gives(&pair.write, "w");
	c_got_it(last);
	waiter_finish(last);
	close_pair(&pair);
}

/* ---- from write to read ---- */

static void writer_of_java_waits_for_a_downgraded_reader_in_c(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	c_takes_node(&pair.write);
	j_queues(&pair.write, "w");
	c_takes_node(&pair.read);
	c_gives(&pair.write);
	assert_false(j_tries(&pair.write, "v", 300));
	assert_false(peer_has_answered(curator_peer, "w"));
	assert_int_equal(hf_lock_state(pair.read.lock, NULL), HF_HELD);
	c_gives(&pair.read);
	j_got_it("w");
	j_gives(&pair.write, "w");
	close_pair(&pair);
}

static void writer_of_c_waits_for_a_downgraded_reader_in_java(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	j_takes(&pair.write, "t");
	struct waiter *writer = c_queues(&pair.write);
	j_takes(&pair.read, "t");
	j_gives(&pair.write, "t");
	ASSERT_RC(hf_lock_acquire(pair.write.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	assert_false(atomic_load(&writer->over));
	j_gives(&pair.read, "t");
	c_got_it(writer);
	waiter_finish(writer);
	close_pair(&pair);
}

static void reader_of_java_joins_a_downgraded_one_in_c(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	c_takes_node(&pair.write);
	j_queues(&pair.read, "r");
	c_takes_node(&pair.read);
	assert_false(peer_has_answered(curator_peer, "r"));
	c_gives(&pair.write);
	j_got_it("r");
	c_gives(&pair.read);
	j_gives(&pair.read, "r");
	close_pair(&pair);
}

static void reader_of_c_joins_a_downgraded_one_in_java(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	j_takes(&pair.write, "t");
	struct waiter *reader = c_queues(&pair.read);
	j_takes(&pair.read, "t");
	assert_false(atomic_load(&reader->over));
	j_gives(&pair.write, "t");
	c_got_it(reader);
	waiter_finish(reader);
	j_gives(&pair.read, "t");
	close_pair(&pair);
}

static void read_first_given_back_leaves_the_write(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	c_takes_node(&pair.write);
	c_takes_node(&pair.read);
	c_gives(&pair.read);
	assert_false(j_tries(&pair.read, "t", 50));
	c_gives(&pair.write);
	assert_true(j_tries(&pair.write, "t", SOON_MS));
	j_gives(&pair.write, "t");
	close_pair(&pair);
}

/* C reports it at once; Java waits for itself. Neither is in the other's way afterwards. */
static void reader_cannot_become_a_writer(void **state)
{
	struct pair pair = open_pair();
	(void)state;
	c_takes_node(&pair.read);
	ASSERT_RC(hf_lock_acquire(pair.write.lock, HF_ACQUIRE(.wait_ms = 100)), HF_EDEADLOCK);
	assert_true(j_tries(&pair.read, "t", 0));
	c_gives(&pair.read);
	assert_false(j_tries(&pair.write, "t", 100));
	c_takes_node(&pair.read);
	c_gives(&pair.read);
	j_gives(&pair.read, "t");
	close_pair(&pair);
}

/* ---- what each sees of the other ---- */

static void take_names(struct answer answer, char ret_names[8][160], int *ret_count)
{
	char *rest;
	*ret_count = 0;
	for (char *name = strtok_r(answer.text, " ", &rest); name && *ret_count < 8;
	     name = strtok_r(NULL, " ", &rest))
		snprintf(ret_names[(*ret_count)++], 160, "%s", name);
}

static void java_lists_the_readers_and_writers_of_c(void **state)
{
	struct pair pair = open_pair();
	char reads[8][160];
	char writes[8][160];
	int read_count, write_count;
	(void)state;
	c_takes_node(&pair.read);
	j_takes(&pair.read, "t");
	struct waiter *writer = c_queues(&pair.write);
	j_queues(&pair.write, "w");
	take_names(peer_ok(curator_peer, "t nodes read %s", pair.read.path), reads, &read_count);
	take_names(peer_ok(curator_peer, "t nodes write %s", pair.read.path), writes, &write_count);
	assert_int_equal(read_count, 2);
	assert_int_equal(write_count, 2);
	assert_string_equal(peer_ok(curator_peer, "t node read %s", pair.read.path).text, reads[1]);
	ASSERT_CONTAINS(reads[0], "-__READ__0000000000");
	ASSERT_CONTAINS(writes[0], "-__WRIT__0000000002");
	ASSERT_CONTAINS(writes[1], "-__WRIT__0000000003");
	c_gives(&pair.read);
	j_gives(&pair.read, "t");
	c_got_it(writer);
	waiter_finish(writer);
	j_got_it("w");
	j_gives(&pair.write, "w");
	close_pair(&pair);
}

static void downgraded_reader_of_c_has_the_writers_number(void **state)
{
	struct pair pair = open_pair();
	char names[8][160];
	int count;
	(void)state;
	assert_true(j_tries(&pair.read, "t", SOON_MS));
	j_gives(&pair.read, "t");
	c_takes_node(&pair.write);
	c_takes_node(&pair.read);
	take_names(peer_ok(curator_peer, "t nodes read %s", pair.read.path), names, &count);
	assert_int_equal(count, 1);
	ASSERT_CONTAINS(names[0], "-__READ__0000000001");
	take_names(peer_ok(curator_peer, "t nodes write %s", pair.read.path), names, &count);
	assert_int_equal(count, 1);
	ASSERT_CONTAINS(names[0], "-__WRIT__0000000001");
	c_gives(&pair.write);
	c_gives(&pair.read);
	close_pair(&pair);
}

static void token_of_a_writer_grows_on_both_sides(void **state)
{
	struct pair pair = open_pair();
	int64_t token = 0;
	(void)state;
	j_takes(&pair.write, "t");
	long long first = peer_number(curator_peer, "t token write %s", pair.write.path);
	j_gives(&pair.write, "t");
	ASSERT_OK(hf_lock_acquire(pair.write.lock, HF_ACQUIRE(.token = 1)));
	ASSERT_OK(hf_lock_token(pair.write.lock, NULL, &token));
	assert_true(token > first);
	c_gives(&pair.write);
	j_takes(&pair.write, "t");
	assert_true(peer_number(curator_peer, "t token write %s", pair.write.path) > token);
	j_gives(&pair.write, "t");
	close_pair(&pair);
}

/* ---- holders that die ---- */

static void writer_in_c_inherits_from_a_reader_that_died_in_java(void **state)
{
	struct pair pair = open_pair();
	struct peer *victim = start_curator_peer();
	(void)state;
	(void)peer_ok(victim, "t lock read %s", pair.read.path);
	struct waiter *writer = c_queues(&pair.write);
	peer_send(victim, "t die client any");
	c_got_it(writer);
	peer_kill(victim);
	waiter_finish(writer);
	close_pair(&pair);
}

static void java_inherits_from_processes_in_c_that_were_killed(void **state)
{
	static const hf_kind kinds[] = {HF_READ, HF_WRITE};
	struct pair pairs[2] = {open_pair(), open_pair()};
	pid_t victims[2];
	(void)state;
	for (int i = 0; i < 2; i++) {
		victims[i] = start_c_holder(&pairs[i].write, kinds[i]);
		j_queues(&pairs[i].write, i ? "u" : "t");
	}
	for (int i = 0; i < 2; i++)
		victim_kill(victims[i]);
	for (int i = 0; i < 2; i++) {
		j_got_it(i ? "u" : "t");
		j_gives(&pairs[i].write, i ? "u" : "t");
		close_pair(&pairs[i]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CURATOR_TEST(readers_of_both_share_and_keep_writers_out),
		CURATOR_TEST(writer_in_c_keeps_all_of_java_out),
		CURATOR_TEST(writer_in_java_keeps_all_of_c_out),
		CURATOR_TEST(waiting_writer_in_c_lets_no_later_reader_past),
		CURATOR_TEST(waiting_writer_in_java_lets_no_later_reader_past),
		CURATOR_TEST(queue_of_both_goes_in_order),
		CURATOR_TEST(writer_of_java_waits_for_a_downgraded_reader_in_c),
		CURATOR_TEST(writer_of_c_waits_for_a_downgraded_reader_in_java),
		CURATOR_TEST(reader_of_java_joins_a_downgraded_one_in_c),
		CURATOR_TEST(reader_of_c_joins_a_downgraded_one_in_java),
		CURATOR_TEST(read_first_given_back_leaves_the_write),
		CURATOR_TEST(reader_cannot_become_a_writer),
		CURATOR_TEST(java_lists_the_readers_and_writers_of_c),
		CURATOR_TEST(downgraded_reader_of_c_has_the_writers_number),
		CURATOR_TEST(token_of_a_writer_grows_on_both_sides),
		CURATOR_TEST(writer_in_c_inherits_from_a_reader_that_died_in_java),
		CURATOR_TEST(java_inherits_from_processes_in_c_that_were_killed),
	};
	return CURATOR_RUN(tests, argc, argv);
}
