/*
 * The read-write lock on a real ZooKeeper: its nodes, the order of its waiters, and the downgrade.
 */
#include "live/zk.h"

/* Two clients with both halves of one lock. */
struct pair {
	hf_client *one, *two;
	hf_lock *read, *write;             /* of the first */
	hf_lock *their_read, *their_write; /* of the second */
};

static void pair_begin(struct pair *pair)
{
	pair->one = open_zk("");
	pair->two = open_zk("");
	pair->read = open_named(pair->one, HF_READ, "orders");
	pair->write = open_named(pair->one, HF_WRITE, "orders");
	pair->their_read = open_named(pair->two, HF_READ, "orders");
	pair->their_write = open_named(pair->two, HF_WRITE, "orders");
}

static void pair_end(struct pair *pair)
{
	hf_lock_close(pair->read);
	hf_lock_close(pair->write);
	hf_lock_close(pair->their_read);
	hf_lock_close(pair->their_write);
	ASSERT_OK(hf_client_close(pair->one));
	ASSERT_OK(hf_client_close(pair->two));
	WAIT_UNTIL(count_children(zk_eye, "/orders") <= 0, SOON_MS);
}

/* The number of the folder's only child that has the marker. */
static void read_number(const char *marker, char ret_number[11], struct zk_raw_stat *ret_stat)
{
	struct zk_raw_names names;
	int found = 0;
	char path[700];
	assert_int_equal(zk_raw_children(zk_eye, "/orders", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		const char *at = strstr(names.name[i], marker);
		if (!at)
			continue;
		found++;
		snprintf(ret_number, 11, "%s", at + strlen(marker));
		snprintf(path, sizeof path, "/orders/%s", names.name[i]);
		assert_int_equal(zk_raw_exists(zk_eye, path, ret_stat), 0);
	}
	zk_raw_names_clear(&names);
	assert_int_equal(found, 1);
}

static void readers_share_and_keep_writers_out(void **state)
{
	struct pair pair;
	struct zk_raw_stat stat;
	char path[700];

	(void)state;
	pair_begin(&pair);
	ASSERT_OK(hf_lock_acquire(pair.read, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, &stat);
	ASSERT_CONTAINS(path, "-__READ__0000000000");
	assert_int_equal(strncmp(path, "/orders/_c_", 11), 0);
	ASSERT_OK(hf_lock_acquire(pair.their_read, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(count_children(zk_eye, "/orders"), 2);
	struct waiter *writer = waiter_start(pair.write, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 3, SOON_MS);
	ASSERT_OK(hf_lock_release(pair.read));
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	assert_false(waiter_is_over(writer));
	ASSERT_OK(hf_lock_release(pair.their_read));
	waiter_expect(writer, 0);
	read_only_child(zk_eye, "/orders", path, sizeof path, &stat);
	ASSERT_CONTAINS(path, "-__WRIT__0000000002");
	assert_int_equal(token_of(pair.write, writer->options.owner), stat.czxid);
	ASSERT_RC(hf_lock_acquire(pair.their_read, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(pair.their_write, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	waiter_finish(writer);
	pair_end(&pair);
}

static void reader_after_a_waiting_writer_waits_too(void **state)
{
	struct pair pair;

	(void)state;
	pair_begin(&pair);
	ASSERT_OK(hf_lock_acquire(pair.read, NULL));
	struct waiter *writer = waiter_start(pair.their_write, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	struct waiter *reader = waiter_start(pair.their_read, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 3, SOON_MS);
	struct waiter *another = waiter_start(pair.read, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 4, SOON_MS);
	assert_false(waiter_is_over(reader));
	ASSERT_OK(hf_lock_release(pair.read));
	waiter_expect(writer, 0);
	assert_false(waiter_is_over(reader) || waiter_is_over(another));
	ASSERT_OK(waiter_release(writer));
	/* Both waited for the same writer, and enter together. */
	waiter_expect(reader, 0);
	waiter_expect(another, 0);
	ASSERT_OK(waiter_release(reader));
	ASSERT_OK(waiter_release(another));
	waiter_free(writer);
	waiter_free(reader);
	waiter_free(another);
	pair_end(&pair);
}

static void writer_that_gives_up_lets_the_readers_after_it_in(void **state)
{
	struct pair pair;

	(void)state;
	pair_begin(&pair);
	ASSERT_OK(hf_lock_acquire(pair.read, NULL));
	struct waiter *writer = waiter_start(pair.their_write, HF_ACQUIRE(.wait_ms = 1500));
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	struct waiter *reader = waiter_start(pair.their_read, NULL);
	waiter_expect(writer, HF_ETIMEDOUT);
	waiter_expect(reader, 0);
	ASSERT_OK(waiter_release(reader));
	ASSERT_OK(hf_lock_release(pair.read));
	waiter_free(writer);
	waiter_free(reader);
	pair_end(&pair);
}

static void writer_that_keeps_reading_keeps_its_place(void **state)
{
	struct pair pair;
	struct zk_raw_stat stat;
	char of_write[11], of_read[11];

	(void)state;
	pair_begin(&pair);
	ASSERT_OK(hf_lock_acquire(pair.write, NULL));
	read_number("__WRIT__", of_write, &stat);
	struct waiter *writer = waiter_start(pair.their_write, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	ASSERT_OK(hf_lock_acquire(pair.read, HF_ACQUIRE(.wait_ms = SOON_MS)));
	assert_int_equal(count_children(zk_eye, "/orders"), 3);
	read_number("__READ__", of_read, &stat);
	assert_string_equal(of_read, of_write);
	assert_true(stat.owner != 0);
	ASSERT_OK(hf_lock_release(pair.write));
	/* The waiting writer checks again, and waits for the reader from now on. */
	WAIT_UNTIL(stats_of(pair.two).wakeups >= 1, SOON_MS);
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	assert_false(waiter_is_over(writer));
	assert_int_equal(count_children(zk_eye, "/orders"), 2);
	ASSERT_OK(hf_lock_release(pair.read));
	waiter_finish(writer);
	pair_end(&pair);
}

static void reader_of_another_owner_waits_for_the_writer(void **state)
{
	struct pair pair;
	hf_owner *owner = new_owner();

	(void)state;
	pair_begin(&pair);
	ASSERT_OK(hf_lock_acquire(pair.write, NULL));
	ASSERT_RC(hf_lock_acquire(pair.read, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT)),
	          HF_EBUSY);
	ASSERT_TIMES_OUT(
		300, hf_lock_acquire(pair.read, HF_ACQUIRE(.owner = owner, .wait_ms = within_ms)));
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(pair.write));
	hf_owner_free(owner);
	pair_end(&pair);
}

static void reader_that_wants_to_write_is_a_deadlock(void **state)
{
	struct pair pair;

	(void)state;
	pair_begin(&pair);
	ASSERT_OK(hf_lock_acquire(pair.read, NULL));
	ASSERT_RC(hf_lock_acquire(pair.write, NULL), HF_EDEADLOCK);
	assert_int_equal(count_children(zk_eye, "/orders"), 1);
	ASSERT_OK(hf_lock_release(pair.read));
	pair_end(&pair);
}

/* The kinds that wait in one queue, and a plain node, which the others wait for. */
static const hf_kind in_one_place[] = {HF_REENTRANT, HF_READ, HF_WRITE, HF_LEADER, HF_PLAIN};
#define IN_ONE_PLACE (sizeof in_one_place / sizeof in_one_place[0])

static void owner_of_another_kind_is_a_deadlock_too(void **state)
{
	hf_client *client = open_zk("");

	(void)state;
	for (size_t i = 0; i < IN_ONE_PLACE; i++) {
		char name[32];
		snprintf(name, sizeof name, "owned-%zu", i);
		hf_lock *mine = open_named(client, in_one_place[i], name);
		ASSERT_OK(hf_lock_acquire(mine, NULL));
		for (size_t k = 0; k < IN_ONE_PLACE; k++) {
			bool inside = in_one_place[i] == HF_WRITE && in_one_place[k] == HF_READ;
			hf_lock *wanted = open_named(client, in_one_place[k], name);
			if (i != k)
				ASSERT_RC(hf_lock_acquire(wanted, NULL), inside ? 0 : HF_EDEADLOCK);
			if (inside)
				ASSERT_OK(hf_lock_release(wanted));
			hf_lock_close(wanted);
		}
		ASSERT_OK(hf_lock_release(mine));
		hf_lock_close(mine);
	}
	ASSERT_OK(hf_client_close(client));
}

static void force_as_another_kind_is_a_loss_at_once(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *leader = open_named(client, HF_LEADER, "orders");
	hf_lock *write = open_named(client, HF_WRITE, "orders");
	hf_lock *simple = open_named(client, HF_SIMPLE, "orders");
	int was_held = 0;

	(void)state;
	ASSERT_OK(hf_lock_acquire(leader, NULL));
	ASSERT_OK(hf_lock_acquire(simple, NULL));
	ASSERT_OK(hf_lock_force_release(write, &was_held));
	assert_int_equal(was_held, 1);
	assert_int_equal(hf_lock_state(leader, NULL), HF_LOST);
	assert_int_equal(hf_lock_state(simple, NULL), HF_HELD);
	ASSERT_RC(hf_lock_release(leader), HF_ELOST);
	ASSERT_OK(hf_lock_release(simple));
	hf_lock_close(leader);
	hf_lock_close(write);
	hf_lock_close(simple);
	ASSERT_OK(hf_client_close(client));
}

static void both_halves_nest(void **state)
{
	struct pair pair;

	(void)state;
	pair_begin(&pair);
	ASSERT_OK(hf_lock_acquire(pair.write, NULL));
	ASSERT_OK(hf_lock_acquire(pair.write, NULL));
	ASSERT_OK(hf_lock_acquire(pair.read, NULL));
	ASSERT_OK(hf_lock_acquire(pair.read, NULL));
	assert_int_equal(count_children(zk_eye, "/orders"), 2);
	ASSERT_OK(hf_lock_release(pair.write));
	ASSERT_OK(hf_lock_release(pair.read));
	assert_int_equal(count_children(zk_eye, "/orders"), 2);
	ASSERT_OK(hf_lock_release(pair.write));
	assert_int_equal(count_children(zk_eye, "/orders"), 1);
	ASSERT_OK(hf_lock_release(pair.read));
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	pair_end(&pair);
}

static void mutex_on_the_same_path_is_busy(void **state)
{
	struct pair pair;

	(void)state;
	pair_begin(&pair);
	hf_lock *mutex = open_named(pair.two, HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(pair.read, NULL));
	ASSERT_RC(hf_lock_acquire(mutex, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(pair.read));
	ASSERT_OK(hf_lock_acquire(mutex, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_RC(hf_lock_acquire(pair.read, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(pair.write, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(mutex));
	hf_lock_close(mutex);
	pair_end(&pair);
}

/* ---- a mix of both ---- */

struct mixer {
	pthread_t thread;
	hf_lock *read, *write;
	unsigned seed;
	char *wrong;
};

static atomic_int readers_in, writers_in;
static atomic_bool readers_met;

static void *mix(void *arg)
{
	struct mixer *mixer = arg;
	for (int i = 0; i < 40; i++) {
		bool writes = rand_r(&mixer->seed) % 4 == 0;
		hf_lock *lock = writes ? mixer->write : mixer->read;
		int rc = hf_lock_acquire(lock, NULL);
		if (rc) {
			mixer->wrong = check_format("%d: %s", rc, hf_error_detail());
			break;
		}
		atomic_int *in = writes ? &writers_in : &readers_in;
		int same = atomic_fetch_add(in, 1);
		if (writes ? same > 0 || readers_in > 0 : writers_in > 0)
			mixer->wrong = "a writer was not alone";
		if (!writes && same > 0)
			readers_met = true;
		test_pause();
		atomic_fetch_sub(in, 1);
		rc = hf_lock_release(lock);
		if (rc)
			mixer->wrong = check_format("%d: %s", rc, hf_error_detail());
	}
	return NULL;
}

static void writers_are_alone_and_readers_meet(void **state)
{
	struct pair pair;
	struct mixer mixers[8];

	(void)state;
	pair_begin(&pair);
	for (int i = 0; i < 8; i++) {
		mixers[i] = (struct mixer){.read = i % 2 ? pair.read : pair.their_read,
		                           .write = i % 2 ? pair.write : pair.their_write,
		                           .seed = (unsigned)i};
		assert_int_equal(pthread_create(&mixers[i].thread, NULL, mix, &mixers[i]), 0);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(mixers[i].thread, NULL), 0);
		if (mixers[i].wrong)
			fail_msg("%s", mixers[i].wrong);
	}
	assert_true(readers_met);
	pair_end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(readers_share_and_keep_writers_out),
		ZK_STORY(reader_after_a_waiting_writer_waits_too),
		ZK_STORY(writer_that_gives_up_lets_the_readers_after_it_in),
		ZK_STORY(writer_that_keeps_reading_keeps_its_place),
		ZK_STORY(reader_of_another_owner_waits_for_the_writer),
		ZK_STORY(reader_that_wants_to_write_is_a_deadlock),
		ZK_STORY(owner_of_another_kind_is_a_deadlock_too),
		ZK_STORY(force_as_another_kind_is_a_loss_at_once),
		ZK_STORY(both_halves_nest),
		ZK_STORY(mutex_on_the_same_path_is_busy),
		ZK_STORY(writers_are_alone_and_readers_meet),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
