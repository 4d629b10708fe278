/*
 * The stories of the read-write lock: readers that share, writers that exclude, and owners that do
 * both.
 */
#include "live/rw.h"

#define CHANNEL "redisson_rwlock:{orders}"
#define MANY    20
#define LOCKS   3
#define THREADS 9
#define ROUNDS  15

static void expect_field(const char *field, const char *value)
{
	char *text = raw_text(live_raw, "HGET", "orders", field, NULL);
	if (!text || strcmp(text, value) != 0)
		fail_msg("field %s is %s, not %s", field, text ? text : "missing", value);
	free(text);
}

static long long fields(void)
{
	return raw_integer(live_raw, "HLEN", "orders", NULL);
}

static long long keys(void)
{
	return raw_integer(live_raw, "DBSIZE", NULL);
}

/* ---- what is on the server ---- */

static void read_hold_is_a_field_and_a_key_of_its_own(void **state)
{
	char holder[128];
	char key[200];
	struct halves me = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	ASSERT_OK(hf_lock_holder(me.read, holder, sizeof holder));
	expect_field("mode", "read");
	expect_field(holder, "1");
	assert_int_equal(fields(), 2);
	own_key(me.read, key, sizeof key);
	char *text = raw_text(live_raw, "GET", key, NULL);
	assert_non_null(text);
	assert_string_equal(text, "1");
	free(text);
	ASSERT_BETWEEN(key_pttl(live_raw, key), 20000, 30000);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 20000, 30000);
	assert_int_equal(keys(), 2);
	/* Levels are counted here; the server has one hold. */
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	expect_field(holder, "1");
	assert_int_equal(keys(), 2);
	ASSERT_OK(hf_lock_release(me.read));
	assert_int_equal(keys(), 2);
	ASSERT_OK(hf_lock_release(me.read));
	assert_int_equal(keys(), 0);
	close_halves(&me);
}

static void write_hold_is_a_field_with_its_levels(void **state)
{
	char holder[128];
	char field[140];
	struct halves me = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_holder(me.write, holder, sizeof holder));
	snprintf(field, sizeof field, "%s:write", holder);
	expect_field("mode", "write");
	expect_field(field, "2");
	assert_int_equal(fields(), 2);
	assert_int_equal(keys(), 1);
	ASSERT_OK(hf_lock_release(me.write));
	expect_field(field, "1");
	ASSERT_OK(hf_lock_release(me.write));
	assert_int_equal(keys(), 0);
	close_halves(&me);
}

static void names_with_braces_keep_their_own(void **state)
{
	char holder[128];
	char key[200];
	hf_lock *lock = NULL;
	hf_client *client = open_client(NULL);

	(void)state;
	ASSERT_OK(hf_lock_open(client, HF_READ, "{test}:abc:key", &lock));
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_holder(lock, holder, sizeof holder));
	snprintf(key, sizeof key, "{test}:abc:key:%s:rwlock_timeout:1", holder);
	assert_true(key_exists(live_raw, key));
	assert_true(key_exists(live_raw, "{test}:abc:key"));
	struct raw *ear = raw_connect(live_server);
	raw_subscribe(ear, "redisson_rwlock:{test}:abc:key");
	ASSERT_OK(hf_lock_release(lock));
	struct raw_reply *message = raw_next_message(ear, SOON_MS);
	assert_non_null(message);
	raw_reply_free(message);
	raw_close(ear);
	assert_int_equal(keys(), 0);
	close_both(lock, client);
}

/* Expects exactly one message. */
static void expect_message(struct raw *ear, const char *payload)
{
	struct raw_reply *message = raw_next_message(ear, SOON_MS);
	assert_non_null(message);
	assert_string_equal(message->children[2]->text, payload);
	raw_reply_free(message);
	assert_null(raw_next_message(ear, 30));
}

static void last_reader_says_0_and_writers_say_1(void **state)
{
	struct halves me = open_halves(NULL);
	struct halves other = open_halves(NULL);
	struct raw *ear = raw_connect(live_server);

	(void)state;
	raw_subscribe(ear, CHANNEL);
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	ASSERT_OK(hf_lock_acquire(other.read, NULL));
	ASSERT_OK(hf_lock_release(me.read));
	ASSERT_OK(hf_lock_release(me.read));
	assert_null(raw_next_message(ear, 30));
	ASSERT_OK(hf_lock_release(other.read));
	expect_message(ear, "0");
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_release(me.write));
	assert_null(raw_next_message(ear, 30));
	ASSERT_OK(hf_lock_release(me.write));
	expect_message(ear, "1");
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	ASSERT_OK(hf_lock_force_release(me.read, NULL));
	expect_message(ear, "0");
	ASSERT_OK(hf_lock_acquire(other.write, NULL));
	ASSERT_OK(hf_lock_force_release(other.write, NULL));
	expect_message(ear, "1");
	raw_close(ear);
	close_halves(&me);
	close_halves(&other);
}

/* ---- readers ---- */

static void readers_share_and_the_last_one_lets_the_writer_in(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);
	hf_owner *third = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(one.read, NULL));
	ASSERT_OK(hf_lock_acquire(two.read, try_once()));
	ASSERT_OK(hf_lock_acquire(one.read, HF_ACQUIRE(.owner = third, .wait_ms = HF_NOWAIT)));
	assert_int_equal(fields(), 4);
	assert_int_equal(keys(), 4);
	assert_int_equal(stats_of(one.client).held, 2);
	struct waiter *writer = waiter_start(two.write, NULL);
	WAIT_UNTIL(stats_of(two.client).attempts == 3, SOON_MS);
	ASSERT_OK(hf_lock_release(one.read));
	ASSERT_OK(hf_lock_release(two.read));
	assert_int_equal(keys(), 2);
	assert_false(waiter_is_over(writer));
	ASSERT_RC(hf_lock_acquire(one.write, try_once()), HF_EBUSY);
	ASSERT_WAKES(hf_lock_release_with(one.read, HF_RELEASE(.owner = third)), writer, 1500);
	expect_field("mode", "write");
	waiter_finish(writer);
	assert_int_equal(keys(), 0);
	hf_owner_free(third);
	close_halves(&one);
	close_halves(&two);
}

static void all_waiting_readers_enter_together_when_the_writer_leaves(void **state)
{
	struct waiter *reader[MANY];
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);
	struct halves three = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(one.write, NULL));
	for (int i = 0; i < MANY; i++)
		reader[i] = waiter_start(i % 2 ? two.read : three.read, NULL);
	WAIT_UNTIL(stats_of(two.client).waiting + stats_of(three.client).waiting == MANY &&
	                   subscribers(live_raw, CHANNEL) == 2,
	           SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release(one.write));
	for (int i = 0; i < MANY; i++) {
		waiter_expect(reader[i], 0);
		ASSERT_BETWEEN(reader[i]->ended_at - released_at, 0, 1500);
	}
	/* None of them had to leave for the next to enter. */
	assert_int_equal(fields(), MANY + 1);
	assert_int_equal(keys(), MANY + 1);
	assert_int_equal(stats_of(two.client).held, MANY / 2);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(hf_lock_state(two.read, reader[i]->options.owner),
		                 i % 2 ? HF_HELD : HF_FREE);
		waiter_finish(reader[i]);
	}
	assert_int_equal(keys(), 0);
	close_halves(&one);
	close_halves(&two);
	close_halves(&three);
}

static void reader_that_is_cancelled_leaves_the_others_waiting(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);
	hf_cancel *cancel = new_cancel();

	(void)state;
	ASSERT_OK(hf_lock_acquire(one.write, NULL));
	struct waiter *leaves = waiter_start(two.read, HF_ACQUIRE(.cancel = cancel));
	struct waiter *stays = waiter_start(two.read, NULL);
	WAIT_UNTIL(stats_of(two.client).waiting == 2, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_expect(leaves, HF_ECANCELLED);
	assert_int_equal(keys(), 1);
	ASSERT_OK(hf_lock_release(one.write));
	waiter_expect(stays, 0);
	assert_int_equal(keys(), 2);
	ASSERT_OK(waiter_release(stays));
	waiter_free(leaves);
	waiter_free(stays);
	hf_cancel_free(cancel);
	assert_int_equal(keys(), 0);
	close_halves(&one);
	close_halves(&two);
}

static void reader_of_java_with_two_holds_counts_by_its_longest(void **state)
{
	struct halves me = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	/* As a Java process nests. */
	(void)raw_integer(live_raw, "HSET", "orders", JAVA, "2", NULL);
	raw_ok(live_raw, "SET", "{orders}:" JAVA ":rwlock_timeout:1", "1", "PX", "4000", NULL);
	raw_ok(live_raw, "SET", "{orders}:" JAVA ":rwlock_timeout:2", "1", "PX", "15000", NULL);
	ASSERT_OK(hf_lock_release(me.read));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 10000, 15000);
	expect_field(JAVA, "2");
	expect_field("mode", "read");
	assert_int_equal(fields(), 2);
	ASSERT_RC(hf_lock_acquire(me.write, try_once()), HF_EBUSY);
	ASSERT_OK(hf_lock_acquire(me.read, try_once()));
	expect_field(JAVA, "2");
	ASSERT_OK(hf_lock_release(me.read));
	close_halves(&me);
}

static void readers_without_a_living_key_do_not_keep_the_lock(void **state)
{
	struct halves me = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	(void)raw_integer(live_raw, "HSET", "orders", JAVA, "1", NULL);
	ASSERT_OK(hf_lock_release(me.read));
	assert_int_equal(keys(), 0);
	ASSERT_OK(hf_lock_acquire(me.write, try_once()));
	ASSERT_OK(hf_lock_release(me.write));
	close_halves(&me);
}

static void read_lock_has_no_token(void **state)
{
	int64_t token;
	struct halves me = open_halves(NULL);

	(void)state;
	ASSERT_RC(hf_lock_acquire(me.read, HF_ACQUIRE(.token = 1)), HF_EINVAL);
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	ASSERT_RC(hf_lock_token(me.read, NULL, &token), HF_EINVAL);
	ASSERT_OK(hf_lock_release(me.read));
	close_halves(&me);
}

/* ---- one owner, both halves ---- */

static void writer_may_read_and_others_may_not(void **state)
{
	char writer[128];
	char reader[128];
	struct halves me = open_halves(NULL);
	struct halves other = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_acquire(me.read, try_once()));
	ASSERT_OK(hf_lock_holder(me.write, writer, sizeof writer));
	ASSERT_OK(hf_lock_holder(me.read, reader, sizeof reader));
	/*
	 * Each acquisition has a number of its own, so that nothing late of one touches the other.
	 */
	assert_string_not_equal(writer, reader);
	assert_int_equal(fields(), 3);
	ASSERT_RC(hf_lock_acquire(other.read, try_once()), HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(other.write, try_once()), HF_EBUSY);
	struct waiter *stranger = waiter_start(me.read, try_once());
	waiter_join(stranger, HF_EBUSY);
	/* Nested writing continues while it also reads. */
	ASSERT_OK(hf_lock_acquire(me.write, try_once()));
	ASSERT_OK(hf_lock_release(me.write));
	/* The read hold ends; the write hold is as it was. */
	ASSERT_OK(hf_lock_release(me.read));
	expect_field("mode", "write");
	assert_int_equal(fields(), 2);
	assert_int_equal(keys(), 1);
	assert_int_equal(hf_lock_state(me.write, NULL), HF_HELD);
	ASSERT_RC(hf_lock_acquire(other.read, try_once()), HF_EBUSY);
	ASSERT_OK(hf_lock_release(me.write));
	assert_int_equal(keys(), 0);
	close_halves(&me);
	close_halves(&other);
}

static void writer_that_keeps_reading_lets_readers_in(void **state)
{
	struct halves me = open_halves(NULL);
	struct halves other = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_acquire(me.read, try_once()));
	struct waiter *reader = waiter_start(other.read, NULL);
	WAIT_UNTIL(stats_of(other.client).attempts == 2, SOON_MS);
	ASSERT_WAKES(hf_lock_release(me.write), reader, 1500);
	expect_field("mode", "read");
	assert_int_equal(fields(), 3);
	assert_int_equal(hf_lock_state(me.write, NULL), HF_FREE);
	assert_int_equal(hf_lock_state(me.read, NULL), HF_HELD);
	ASSERT_RC(hf_lock_release(me.write), HF_ENOTHELD);
	/* It cannot write again before it has left, and nobody else can either. */
	ASSERT_RC(hf_lock_acquire(me.write, HF_ACQUIRE(.wait_ms = 2000)), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(other.write, try_once()), HF_EBUSY);
	ASSERT_OK(hf_lock_release(me.read));
	ASSERT_RC(hf_lock_acquire(me.write, try_once()), HF_EBUSY);
	ASSERT_OK(waiter_release(reader));
	ASSERT_OK(hf_lock_acquire(me.write, try_once()));
	ASSERT_OK(hf_lock_release(me.write));
	waiter_free(reader);
	assert_int_equal(keys(), 0);
	close_halves(&me);
	close_halves(&other);
}

static void reader_that_wants_to_write_is_a_deadlock(void **state)
{
	struct halves me = open_halves(NULL);
	hf_owner *owner = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, HF_ACQUIRE(.owner = owner)));
	long long started_at = test_now_ms();
	uint64_t commands = stats_of(me.client).commands;
	ASSERT_RC(hf_lock_acquire(me.write, HF_ACQUIRE(.owner = owner, .wait_ms = 9000)),
	          HF_EDEADLOCK);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	ASSERT_RC(hf_lock_acquire(me.write, HF_ACQUIRE(.owner = owner)), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(me.write, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT)),
	          HF_EDEADLOCK);
	EXPECT_DONE(hf_lock_acquire_async(me.write, HF_ACQUIRE(.owner = owner), DONE), HF_EDEADLOCK,
	            0);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 2000);
	assert_int_equal(stats_of(me.client).commands, commands);
	assert_int_equal(hf_lock_state(me.read, owner), HF_HELD);
	/* Another owner would wait for a reader, not for itself. */
	ASSERT_RC(hf_lock_acquire(me.write, try_once()), HF_EBUSY);
	ASSERT_OK(hf_lock_release_with(me.read, HF_RELEASE(.owner = owner)));
	ASSERT_OK(hf_lock_acquire(me.write, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release_with(me.write, HF_RELEASE(.owner = owner)));
	assert_int_equal(keys(), 0);
	hf_owner_free(owner);
	close_halves(&me);
}

static void lost_read_hold_does_not_keep_its_owner_from_writing(void **state)
{
	struct halves me = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, HF_ACQUIRE(.lease_ms = 100)));
	WAIT_UNTIL(hf_lock_state(me.read, NULL) == HF_LOST, SOON_MS);
	ASSERT_OK(hf_lock_acquire(me.write, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_RC(hf_lock_release(me.read), HF_ELOST);
	assert_int_equal(hf_lock_state(me.write, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(me.write));
	close_halves(&me);
}

static void nested_read_leaves_the_time_of_the_write_hold_alone(void **state)
{
	struct halves me = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.write, HF_ACQUIRE(.lease_ms = 40000)));
	ASSERT_OK(hf_lock_acquire(me.read, HF_ACQUIRE(.wait_ms = 2000, .lease_ms = 3000)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 30000, 40000);
	ASSERT_BETWEEN(hf_lock_remaining(me.read, NULL), 1, 3000);
	ASSERT_OK(hf_lock_release(me.read));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 30000, 40000);
	ASSERT_BETWEEN(hf_lock_remaining(me.write, NULL), 30000, 40000);
	ASSERT_OK(hf_lock_release(me.write));
	assert_int_equal(keys(), 0);
	close_halves(&me);
}

/* ---- questions and force ---- */

static void expect_state(struct halves *me, int read_locked, int write_locked, int64_t reads,
                         int64_t writes)
{
	int yes = -7;
	int64_t count = -7;
	ASSERT_OK(hf_lock_is_locked(me->read, &yes));
	assert_int_equal(yes, read_locked);
	ASSERT_OK(hf_lock_is_locked(me->write, &yes));
	assert_int_equal(yes, write_locked);
	ASSERT_OK(hf_lock_hold_count(me->read, NULL, &count));
	assert_int_equal(count, reads);
	ASSERT_OK(hf_lock_hold_count(me->write, NULL, &count));
	assert_int_equal(count, writes);
	ASSERT_OK(hf_lock_is_held(me->read, NULL, &yes));
	assert_int_equal(yes, reads > 0);
	ASSERT_OK(hf_lock_is_held(me->write, NULL, &yes));
	assert_int_equal(yes, writes > 0);
}

static void each_half_answers_for_itself(void **state)
{
	char holder[128];
	struct halves me = open_halves(NULL);
	struct halves other = open_halves(NULL);

	(void)state;
	expect_state(&me, 0, 0, 0, 0);
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	expect_state(&me, 0, 1, 0, 1);
	expect_state(&other, 0, 1, 0, 0);
	ASSERT_OK(hf_lock_holder(other.read, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_acquire(me.read, try_once()));
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	expect_state(&me, 1, 1, 2, 2);
	expect_state(&other, 1, 1, 0, 0);
	ASSERT_OK(hf_lock_release(me.write));
	ASSERT_OK(hf_lock_release(me.write));
	expect_state(&me, 1, 0, 2, 0);
	ASSERT_OK(hf_lock_release(me.read));
	expect_state(&me, 1, 0, 1, 0);
	expect_state(&other, 1, 0, 0, 0);
	ASSERT_OK(hf_lock_release(me.read));
	expect_state(&me, 0, 0, 0, 0);
	close_halves(&me);
	close_halves(&other);
}

static void force_on_one_half_leaves_the_other_alone(void **state)
{
	int was_held = -7;
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_force_release(two.read, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(one.write, NULL));
	ASSERT_OK(hf_lock_force_release(two.read, &was_held));
	assert_int_equal(was_held, 0);
	assert_true(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_lock_release(one.write));
	ASSERT_OK(hf_lock_acquire(one.read, NULL));
	ASSERT_OK(hf_lock_acquire(two.read, NULL));
	ASSERT_OK(hf_lock_force_release(two.write, &was_held));
	assert_int_equal(was_held, 0);
	assert_int_equal(fields(), 3);
	/* Readers go all together. */
	ASSERT_OK(hf_lock_force_release(two.read, &was_held));
	assert_int_equal(was_held, 1);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_lock_acquire(two.write, try_once()));
	ASSERT_RC(hf_lock_release(one.read), HF_ELOST);
	ASSERT_RC(hf_lock_release(two.read), HF_ELOST);
	assert_int_equal(hf_lock_state(two.write, NULL), HF_HELD);
	expect_field("mode", "write");
	ASSERT_OK(hf_lock_release(two.write));
	close_halves(&one);
	close_halves(&two);
}

static void nested_reader_that_was_taken_away_is_reported_at_every_level(void **state)
{
	struct halves me = open_halves(NULL);

	(void)state;
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_lock_acquire(me.read, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_RC(hf_lock_acquire(me.read, NULL), HF_ELOST);
	for (int i = 0; i < 3; i++)
		ASSERT_RC(hf_lock_release(me.read), HF_ELOST);
	ASSERT_RC(hf_lock_release(me.read), HF_ENOTHELD);
	assert_int_equal(stats_of(me.client).losses, 1);
	assert_int_equal(keys(), 0);
	close_halves(&me);
}

static void client_that_closes_gives_up_both_halves(void **state)
{
	struct halves me = open_halves(NULL);
	struct halves other = open_halves(NULL);
	hf_owner *owner = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.write, HF_ACQUIRE(.owner = owner)));
	ASSERT_OK(hf_lock_acquire(me.write, HF_ACQUIRE(.owner = owner)));
	ASSERT_OK(hf_lock_acquire(me.read, HF_ACQUIRE(.owner = owner, .wait_ms = 2000)));
	struct waiter *reader = waiter_start(other.read, NULL);
	WAIT_UNTIL(stats_of(other.client).attempts == 2, SOON_MS);
	long long closed_at = test_now_ms();
	close_halves(&me);
	waiter_expect(reader, 0);
	ASSERT_BETWEEN(reader->ended_at - closed_at, 0, 1500);
	assert_int_equal(fields(), 2);
	waiter_finish(reader);
	assert_int_equal(keys(), 0);
	hf_owner_free(owner);
	close_halves(&other);
}

/* ---- crowds ---- */

/* Two numbers that are equal unless somebody writes; unprotected on purpose. */
struct crowd {
	struct halves halves[LOCKS];
	long long left, right;
	atomic_int next;
	atomic_int failed;
	atomic_int torn;
	char detail[400];
};

static int take_a_turn(struct crowd *crowd, struct halves *halves, bool writes)
{
	hf_lock *lock = writes ? halves->write : halves->read;
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000));
	if (rc)
		return rc;
	if (crowd->left != crowd->right)
		atomic_fetch_add(&crowd->torn, 1);
	if (writes) {
		crowd->left++;
		test_pause();
		crowd->right++;
	}
	return hf_lock_release(lock);
}

static void *mix(void *arg)
{
	struct crowd *crowd = arg;
	int me = atomic_fetch_add(&crowd->next, 1);
	for (int i = 0; i < ROUNDS; i++) {
		int rc = take_a_turn(crowd, &crowd->halves[me % LOCKS], (me + i) % 3 == 0);
		if (rc && atomic_fetch_add(&crowd->failed, 1) == 0)
			snprintf(crowd->detail, sizeof crowd->detail, "%d: %s", rc,
			         hf_error_detail());
	}
	return NULL;
}

static void readers_and_writers_of_several_clients_see_no_torn_value(void **state)
{
	struct crowd crowd = {.left = 0};
	pthread_t thread[THREADS];

	(void)state;
	for (int i = 0; i < LOCKS; i++)
		crowd.halves[i] = open_halves(NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, mix, &crowd), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	if (atomic_load(&crowd.failed))
		fail_msg("%d calls failed, the first with %s", atomic_load(&crowd.failed),
		         crowd.detail);
	assert_int_equal(atomic_load(&crowd.torn), 0);
	assert_int_equal(crowd.left, THREADS * ROUNDS / 3);
	assert_int_equal(crowd.right, THREADS * ROUNDS / 3);
	assert_int_equal(keys(), 0);
	for (int i = 0; i < LOCKS; i++)
		close_halves(&crowd.halves[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(read_hold_is_a_field_and_a_key_of_its_own),
		LIVE_STORY(write_hold_is_a_field_with_its_levels),
		LIVE_STORY(names_with_braces_keep_their_own),
		LIVE_STORY(last_reader_says_0_and_writers_say_1),
		LIVE_STORY(readers_share_and_the_last_one_lets_the_writer_in),
		LIVE_STORY(all_waiting_readers_enter_together_when_the_writer_leaves),
		LIVE_STORY(reader_that_is_cancelled_leaves_the_others_waiting),
		LIVE_STORY(reader_of_java_with_two_holds_counts_by_its_longest),
		LIVE_STORY(readers_without_a_living_key_do_not_keep_the_lock),
		LIVE_STORY(read_lock_has_no_token),
		LIVE_STORY(writer_may_read_and_others_may_not),
		LIVE_STORY(writer_that_keeps_reading_lets_readers_in),
		LIVE_STORY(reader_that_wants_to_write_is_a_deadlock),
		LIVE_STORY(lost_read_hold_does_not_keep_its_owner_from_writing),
		LIVE_STORY(nested_read_leaves_the_time_of_the_write_hold_alone),
		LIVE_STORY(each_half_answers_for_itself),
		LIVE_STORY(force_on_one_half_leaves_the_other_alone),
		LIVE_STORY(nested_reader_that_was_taken_away_is_reported_at_every_level),
		LIVE_STORY(client_that_closes_gives_up_both_halves),
		LIVE_STORY(readers_and_writers_of_several_clients_see_no_torn_value),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
