/*
 * Scripts at a node of a Cluster while a slot is open: some keys of a lock are already at the other
 * node. Whatever a script cannot see is neither taken for gone nor required.
 */
#include "live/open_slot.h"

#define ME           "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
#define THEY         "8743c9c0-0795-4907-87fd-6c719a6b4586:2"
#define CHANNEL      "redisson_lock__channel:{orders}"
#define RW_CHANNEL   "redisson_rwlock:{orders}"
#define DESCRIPTIONS "holdfast_holder:{orders}"
#define HOLD(owner)  "{orders}:" owner ":rwlock_timeout:1"
#define ELSEWHERE    "non local key"

#define EVAL(kind, verb, ...)                                                                      \
	raw_command(live_raw, "EVAL", hf__recipe_of(kind, verb)->script.text, __VA_ARGS__, NULL)

/* ---- replies ---- */

static void expect_integer(struct raw_reply *reply, long long wanted)
{
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_int_equal(reply->type, RAW_INTEGER);
	assert_int_equal(reply->integer, wanted);
	raw_reply_free(reply);
}

/* {'warning', command, why, integer}: the verb was done, although a key could not be used. */
static void expect_done_except(struct raw_reply *reply, const char *command, long long wanted)
{
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_int_equal(reply->length, 4);
	assert_string_equal(reply->children[1]->text, command);
	ASSERT_CONTAINS(reply->children[2]->text, ELSEWHERE);
	assert_int_equal(reply->children[3]->integer, wanted);
	raw_reply_free(reply);
}

static void put_lock(const char *mode, const char *owner)
{
	if (mode)
		(void)raw_integer(live_raw, "HSET", "orders", "mode", mode, NULL);
	(void)raw_integer(live_raw, "HSET", "orders", owner, "1", NULL);
	(void)raw_integer(live_raw, "PEXPIRE", "orders", "30000", NULL);
}

/* ---- locks ---- */

static void a_release_needs_the_lock_alone(void **state)
{
	(void)state;
	put_lock(NULL, ME);
	open_slot();
	struct raw *ear = raw_connect(live_server);
	raw_subscribe(ear, CHANNEL);
	expect_done_except(EVAL(HF_REENTRANT, HF__SETTLE, "1", "orders", ME, "0", "0", "PUBLISH",
	                        CHANNEL, DESCRIPTIONS),
	                   "del", 1);
	struct raw_reply *message = raw_next_message(ear, SOON_MS);
	assert_non_null(message);
	assert_string_equal(message->children[2]->text, "0");
	raw_reply_free(message);
	raw_close(ear);
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "STABLE", NULL);
	assert_int_equal(raw_integer(live_raw, "EXISTS", "orders", NULL), 0);
}

/* The stream may be at the other node, or not exist yet. */
static void a_release_needs_no_history(void **state)
{
	(void)state;
	put_lock(NULL, ME);
	open_slot();
	expect_integer(raw_command(live_raw, "EVAL",
	                           hf__recipe_of(HF_REENTRANT, HF__SETTLE)->history.text, "1",
	                           "orders", ME, "0", "0", "PUBLISH", CHANNEL,
	                           "holdfast_history:{orders}", "100", "604800", "reentrant", "5",
	                           "r", "0", NULL),
	               0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

static void a_nested_acquire_needs_no_description(void **state)
{
	(void)state;
	put_lock(NULL, ME);
	open_slot();
	struct raw_reply *reply = EVAL(HF_REENTRANT, HF__ASK, "1", "orders", "60000", ME, "2",
	                               DESCRIPTIONS, "about", "a job");
	assert_int_equal(reply->type, RAW_NULL);
	raw_reply_free(reply);
	char *count = raw_text(live_raw, "HGET", "orders", ME, NULL);
	assert_string_equal(count, "2");
	free(count);
	ASSERT_BETWEEN(raw_integer(live_raw, "PTTL", "orders", NULL), 30001, 60000);
}

/* What the waiter leaves goes to the other node, and so do its commands. */
static void a_waiter_needs_no_note(void **state)
{
	(void)state;
	put_lock(NULL, THEY);
	open_slot();
	struct raw_reply *reply = EVAL(HF_REENTRANT, HF__ASK, "1", "orders", "60000", ME, "1",
	                               DESCRIPTIONS, "about", "a job", "1500");
	assert_int_equal(reply->type, RAW_INTEGER);
	raw_reply_free(reply);
	reply = EVAL(HF_REENTRANT, HF__SETTLE, "1", "orders", ME, "0", "0", "PUBLISH", CHANNEL,
	             DESCRIPTIONS, "1500");
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_string_equal(reply->children[0]->text, "gone");
	raw_reply_free(reply);
}

static void a_renewal_needs_no_description(void **state)
{
	(void)state;
	put_lock(NULL, ME);
	open_slot();
	struct raw_reply *reply =
		EVAL(HF_REENTRANT, HF__RENEW, "1", "orders", "60000", ME, DESCRIPTIONS);
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	expect_integer(reply->children[0], 1);
	reply->length = 0;
	raw_reply_free(reply);
	ASSERT_BETWEEN(raw_integer(live_raw, "PTTL", "orders", NULL), 30001, 60000);
}

static void a_forced_release_needs_the_lock_alone(void **state)
{
	(void)state;
	put_lock(NULL, ME);
	open_slot();
	expect_integer(EVAL(HF_REENTRANT, HF__FORCE, "1", "orders", "0", "PUBLISH", CHANNEL), 1);
}

static void a_hand_over_never_removes_the_lock(void **state)
{
	(void)state;
	put_lock(NULL, ME);
	open_slot();
	struct raw_reply *reply = EVAL(HF_REENTRANT, HF__MOVE, "1", "orders", "60000", THEY, ME);
	assert_int_equal(reply->type, RAW_NULL);
	raw_reply_free(reply);
	assert_int_equal(raw_integer(live_raw, "HLEN", "orders", NULL), 1);
	assert_int_equal(raw_integer(live_raw, "HEXISTS", "orders", THEY, NULL), 1);
	ASSERT_BETWEEN(raw_integer(live_raw, "PTTL", "orders", NULL), 30001, 60000);
}

/* ---- groups ---- */

#define VALUE_A "aaaaaaaaaaaaaaaaaaaaaa"
#define VALUE_B "bbbbbbbbbbbbbbbbbbbbbb"

/* One value is held, and nothing else is in the group. */
static void put_group(void)
{
	(void)raw_integer(live_raw, "HSET", "orders", VALUE_A, ME, VALUE_A ":" ME ":expire_time",
	                  "9999999999999", VALUE_A ":" ME ":lock_count", "1", NULL);
}

static void a_group_that_becomes_empty_is_released(void **state)
{
	(void)state;
	put_group();
	open_slot();
	struct raw_reply *reply = EVAL(HF__GROUP, HF__SETTLE, "1", "orders", ME, "0", "0",
	                               "PUBLISH", CHANNEL, VALUE_A, VALUE_B);
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_string_equal(reply->children[0]->text, "gone"); /* it held one of two */
	raw_reply_free(reply);
}

static void a_group_that_becomes_empty_is_freed_by_force(void **state)
{
	(void)state;
	put_group();
	open_slot();
	expect_integer(EVAL(HF__GROUP, HF__FORCE, "1", "orders", "0", "PUBLISH", CHANNEL, VALUE_A,
	                    VALUE_B),
	               1);
}

/* ---- queues ---- */

#define QUEUE  "redisson_lock_queue:{orders}"
#define EXPIRY "redisson_lock_timeout:{orders}"
#define ALIVE  "holdfast_alive:{orders}"
#define JAVA   "8743c9c0-0795-4907-87fd-6c719a6b4586:9"

#define RELEASE_FAIR                                                                               \
	EVAL(HF_FAIR, HF__SETTLE, "4", "orders", QUEUE, EXPIRY, ALIVE, ME, "0", "0", "PUBLISH",    \
	     CHANNEL, "5000")

/* A lock with a waiter of Holdfast's that has died, and one of Java's after it if wanted. */
static void put_queue(bool has_next)
{
	put_lock(NULL, ME);
	(void)raw_integer(live_raw, "RPUSH", QUEUE, THEY, NULL);
	(void)raw_integer(live_raw, "ZADD", EXPIRY, "9999999999999", THEY, NULL);
	(void)raw_integer(live_raw, "ZADD", ALIVE, "1", THEY, NULL);
	if (has_next) {
		(void)raw_integer(live_raw, "RPUSH", QUEUE, JAVA, NULL);
		(void)raw_integer(live_raw, "ZADD", EXPIRY, "9999999999999", JAVA, NULL);
	}
	open_slot();
}

static void the_waiter_after_a_dead_one_has_its_turn(void **state)
{
	(void)state;
	put_queue(true);
	struct raw_reply *reply = RELEASE_FAIR;
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_int_equal(reply->length, 2);
	assert_string_equal(reply->children[0]->text, "next");
	assert_string_equal(reply->children[1]->text, JAVA);
	raw_reply_free(reply);
}

static void a_queue_that_becomes_empty_fails_no_script(void **state)
{
	(void)state;
	put_queue(false);
	expect_integer(RELEASE_FAIR, 1);
	(void)close_slot(state);
	put_queue(false);
	expect_integer(EVAL(HF_FAIR, HF__FORCE, "4", "orders", QUEUE, EXPIRY, ALIVE, "0", "PUBLISH",
	                    CHANNEL),
	               1);
	(void)close_slot(state);
	put_queue(false);
	expect_integer(EVAL(0, HF__DROP_WAITER, "4", "orders", QUEUE, EXPIRY, ALIVE, "0", "PUBLISH",
	                    CHANNEL, THEY),
	               1);
}

/* A key that does not exist cannot be created either, until the slot has moved. */
static void expect_try_again(struct raw_reply *reply)
{
	assert_int_equal(reply->type, RAW_ERROR);
	ASSERT_CONTAINS(reply->text, "TRYAGAIN");
	raw_reply_free(reply);
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "STABLE", NULL);
}

static void an_empty_queue_cannot_be_joined(void **state)
{
	(void)state;
	put_queue(false);
	expect_try_again(EVAL(HF_FAIR, HF__ASK, "4", "orders", QUEUE, EXPIRY, ALIVE, "30000", JAVA,
	                      "1", "5000", "30000"));
	assert_int_equal(raw_integer(live_raw, "EXISTS", QUEUE, EXPIRY, ALIVE, NULL), 0);
}

/* Without a note that it is alive a waiter keeps its place like one of Java's. */
static void a_queue_can_be_joined_without_a_note(void **state)
{
	(void)state;
	put_queue(true);
	struct raw_reply *reply = EVAL(HF_FAIR, HF__ASK, "4", "orders", QUEUE, EXPIRY, ALIVE,
	                               "30000", THEY "0", "1", "5000", "30000");
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_int_equal(reply->type, RAW_INTEGER);
	raw_reply_free(reply);
	assert_int_equal(raw_integer(live_raw, "LLEN", QUEUE, NULL), 2);
	assert_int_equal(raw_integer(live_raw, "ZCARD", EXPIRY, NULL), 2);
}

/* ---- permits ---- */

#define PERMIT  "0123456789abcdef"
#define FOREVER "922337203685477"
#define RECORD  "holdfast_request:{orders}:8743c9c0-0795-4907-87fd-6c719a6b4586:0"

static void put_expired_permit(void)
{
	raw_ok(live_raw, "SET", "orders", "4", NULL);
	(void)raw_integer(live_raw, "ZADD", "{orders}:timeout", "1", PERMIT, NULL);
	open_slot();
}

static void expect_gone(struct raw_reply *reply)
{
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_string_equal(reply->children[0]->text, "gone");
	raw_reply_free(reply);
}

static void the_last_permit_can_expire(void **state)
{
	put_expired_permit();
	expect_integer(EVAL(0, HF__PERMITS_TOTAL, "2", "orders", "{orders}:timeout", "total",
	                    "PUBLISH", "redisson_sc:{orders}"),
	               5);
	(void)close_slot(state);
	put_expired_permit();
	expect_gone(EVAL(0, HF__PERMITS_LEASE, "2", "orders", "{orders}:timeout", PERMIT, "PUBLISH",
	                 "redisson_sc:{orders}"));
	(void)close_slot(state);
	put_expired_permit();
	expect_gone(EVAL(0, HF__PERMITS_EXTEND, "2", "orders", "{orders}:timeout", PERMIT, "9000",
	                 "PUBLISH", "redisson_sc:{orders}", RECORD, ME, "20000"));
}

/* Its record cannot be read or written there, and is not needed. */
static void a_permit_is_extended_without_a_record(void **state)
{
	(void)state;
	raw_ok(live_raw, "SET", "orders", "5", NULL);
	(void)raw_integer(live_raw, "ZADD", "{orders}:timeout", FOREVER, PERMIT, NULL);
	open_slot();
	expect_integer(EVAL(0, HF__PERMITS_EXTEND, "2", "orders", "{orders}:timeout", PERMIT,
	                    "9000", "PUBLISH", "redisson_sc:{orders}", RECORD, ME, "20000"),
	               1);
	char *score = raw_text(live_raw, "ZSCORE", "{orders}:timeout", PERMIT, NULL);
	assert_string_not_equal(score, FOREVER);
	free(score);
}

static void no_permit_is_taken_without_its_expiry(void **state)
{
	(void)state;
	put_expired_permit();
	expect_try_again(EVAL(HF__PERMITS, HF__ASK, "2", "orders", "{orders}:timeout", "2", "30000",
	                      "PUBLISH", "redisson_sc:{orders}", "", "", "", "", "one", "two"));
	assert_int_equal(raw_integer(live_raw, "INCRBY", "orders", "0", NULL), 5);
}

/* ---- readers ---- */

#define RELEASE_READ                                                                               \
	EVAL(HF_READ, HF__SETTLE, "2", "orders", HOLD(ME), ME, "0", "PUBLISH", RW_CHANNEL,         \
	     "{orders}")

/* Two readers, of which one has its key here, and a third whose hold is about to expire. */
static void put_readers(void (*before)(void))
{
	static const char third[] = "8743c9c0-0795-4907-87fd-6c719a6b4586:3";
	static const char *const fields[] = {"mode", "read", ME, "1", THEY, "1", third, "1"};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i += 2) {
		before();
		(void)raw_integer(live_raw, "HSET", "orders", fields[i], fields[i + 1], NULL);
	}
	before();
	(void)raw_integer(live_raw, "PEXPIRE", "orders", "30000", NULL);
	before();
	raw_ok(live_raw, "SET", HOLD(ME), "1", "PX", "30000", NULL);
	before();
	raw_ok(live_raw, "SET", HOLD("8743c9c0-0795-4907-87fd-6c719a6b4586:3"), "1", "PX", "5000",
	       NULL);
}

static void do_nothing(void)
{
}

/* The key of the other reader is not here, and the lock must last as long as that reader does. */
static void expect_kept(const char *command, void (*before)(void))
{
	before();
	expect_done_except(RELEASE_READ, command, 1);
	before();
	assert_int_equal(raw_integer(live_raw, "HEXISTS", "orders", ME, NULL), 0);
	before();
	assert_int_equal(raw_integer(live_raw, "HEXISTS", "orders", THEY, NULL), 1);
	before();
	ASSERT_BETWEEN(raw_integer(live_raw, "PTTL", "orders", NULL), 5001, 30000);
}

static void a_reader_that_has_moved_on_keeps_the_lock(void **state)
{
	(void)state;
	put_readers(do_nothing);
	open_slot();
	expect_kept("pttl", do_nothing);
}

static void a_reader_that_has_not_arrived_keeps_the_lock(void **state)
{
	(void)state;
	open_slot_as_target();
	put_readers(ask);
	expect_kept("exists", ask);
}

static void a_reader_that_has_expired_does_not_keep_the_lock(void **state)
{
	(void)state;
	put_readers(do_nothing);
	expect_integer(RELEASE_READ, 1);
	ASSERT_BETWEEN(raw_integer(live_raw, "PTTL", "orders", NULL), 1, 5000);
}

/* ---- lists ---- */

/* A list continues in several replies, and the first one has all the hashes of a small server. */
static void a_list_leaves_out_what_is_not_served_yet(void **state)
{
	(void)state;
	open_slot_as_target();
	ask();
	(void)raw_integer(live_raw, "HSET", "orders", ME, "1", NULL);
	(void)raw_integer(live_raw, "HSET", "stock", ME, "1", NULL);
	struct raw_reply *reply = EVAL(0, HF__LIST, "0", "PUBLISH", "0", "*");
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_int_equal(reply->length, 2);
	ASSERT_CONTAINS(reply->children[1]->text, "5:stock");
	raw_reply_free(reply);
	(void)raw_integer(live_raw, "DEL", "stock", NULL);
}

static void an_inspection_needs_the_key_alone(void **state)
{
	(void)state;
	raw_ok(live_raw, "SET", "orders", "5", NULL);
	open_slot();
	struct raw_reply *reply = EVAL(0, HF__INSPECT, "1", "orders");
	if (reply->type == RAW_ERROR)
		fail_msg("%s", reply->text);
	assert_int_equal(reply->length, 1);
	raw_reply_free(reply);
}

#define STORY(name) cmocka_unit_test_setup(name, close_slot)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_release_needs_the_lock_alone),
		STORY(a_release_needs_no_history),
		STORY(a_nested_acquire_needs_no_description),
		STORY(a_waiter_needs_no_note),
		STORY(a_renewal_needs_no_description),
		STORY(a_forced_release_needs_the_lock_alone),
		STORY(a_hand_over_never_removes_the_lock),
		STORY(a_group_that_becomes_empty_is_released),
		STORY(a_group_that_becomes_empty_is_freed_by_force),
		STORY(the_waiter_after_a_dead_one_has_its_turn),
		STORY(a_queue_that_becomes_empty_fails_no_script),
		STORY(an_empty_queue_cannot_be_joined),
		STORY(a_queue_can_be_joined_without_a_note),
		STORY(the_last_permit_can_expire),
		STORY(a_permit_is_extended_without_a_record),
		STORY(no_permit_is_taken_without_its_expiry),
		STORY(a_reader_that_has_moved_on_keeps_the_lock),
		STORY(a_reader_that_has_not_arrived_keeps_the_lock),
		STORY(a_reader_that_has_expired_does_not_keep_the_lock),
		STORY(a_list_leaves_out_what_is_not_served_yet),
		STORY(an_inspection_needs_the_key_alone),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
