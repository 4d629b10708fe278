/* Lost replies of every kind: what is sent again, for which owner, and what is undone. */
#include <stdio.h>

#include "support/kinds.h"
#include "wire/wire.h"

#define PERMITS_CHANNEL "redisson_sc:{orders}"
#define PERMIT_EXPIRY   "{orders}:timeout"
#define LATCH_CHANNEL   "redisson_countdownlatch__channel__{orders}"
#define TOKEN           "redisson_lock_token:{orders}"
#define QUEUE           "redisson_lock_queue:{orders}"
#define QUEUE_EXPIRY    "redisson_lock_timeout:{orders}"
#define ID              "00112233445566778899aabbccddeeff"

/* clang-format off */
#define TOO_FEW ":-1\r\n"
#define DONE    ":1\r\n"
#define ECHO    S_SEND("-ERR <${0}> <${1}> <${2}> <${3}>\r\n")

/* Any script. */
#define S_ANY S_EXPECT("EVALSHA", "*", "*", "orders", "...")
/* The first renewal of a connection. */
#define S_WHOLE S_EXPECT("EVAL", "*", "*", "orders", "...")
/* clang-format on */

/* One object of each kind, on the client of the script. */
struct objects {
	hf_lock *lock; /* of the kind under test */
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
	int64_t number;
	int done;
};

static struct objects open_objects(struct wire *wire)
{
	struct objects objects = {0};
	EXPECT_RC(wire, 0, hf_semaphore_open(wire->client, "orders", &objects.semaphore));
	EXPECT_RC(wire, 0, hf_permits_open(wire->client, "orders", &objects.permits));
	EXPECT_RC(wire, 0, hf_latch_open(wire->client, "orders", &objects.latch));
	return objects;
}

static void close_objects(struct objects *objects)
{
	hf_lock_close(objects->lock);
	hf_semaphore_close(objects->semaphore);
	hf_permits_close(objects->permits);
	hf_latch_close(objects->latch);
}

static hf_lock *open_kind(struct wire *wire, hf_kind kind)
{
	hf_lock *lock = NULL;
	EXPECT_RC(wire, 0, hf_lock_open(wire->client, kind, "orders", &lock));
	return lock;
}

/* Checks that what was captured from the first request is the same in the second. */
static void expect_same_twice(const char *detail)
{
	char first[2][128], second[2][128];
	const char *echo = strchr(detail, '<');
	if (!echo || sscanf(echo, "<%127[^>]> <%127[^>]> <%127[^>]> <%127[^>]>", first[0], first[1],
	                    second[0], second[1]) != 4)
		fail_msg("no four words in '%s'", detail);
	assert_string_equal(first[0], second[0]);
	assert_string_equal(first[1], second[1]);
}

/* ---- requests with an id of their own ---- */

static int take_some(struct objects *objects)
{
	return hf_semaphore_acquire(objects->semaphore, 2, HF_WAIT(.wait_ms = PATIENCE_MS));
}

static int try_some(struct objects *objects)
{
	return hf_semaphore_acquire(objects->semaphore, 2, HF_WAIT(.wait_ms = HF_NOWAIT));
}

static int give_some(struct objects *objects)
{
	return hf_semaphore_release(objects->semaphore, 2);
}

static int give_if_there(struct objects *objects)
{
	return hf_semaphore_release_if_exists(objects->semaphore, 2, &objects->done);
}

static int add_some(struct objects *objects)
{
	return hf_semaphore_add(objects->semaphore, -3);
}

static int set_some(struct objects *objects)
{
	return hf_semaphore_try_set(objects->semaphore, 5, 7000, &objects->done);
}

static int drain(struct objects *objects)
{
	return hf_semaphore_drain(objects->semaphore, &objects->number);
}

static int set_permits(struct objects *objects)
{
	return hf_permits_try_set(objects->permits, 5, &objects->done);
}

static int set_total(struct objects *objects)
{
	return hf_permits_set(objects->permits, 9);
}

static int add_permits(struct objects *objects)
{
	return hf_permits_add(objects->permits, 4);
}

static int set_latch(struct objects *objects)
{
	return hf_latch_try_set(objects->latch, 3, &objects->done);
}

static int count_down(struct objects *objects)
{
	return hf_latch_count_down(objects->latch);
}

static int delete_latch(struct objects *objects)
{
	return hf_latch_delete(objects->latch, &objects->done);
}

/* clang-format off */

/* A request with a record: keys, arguments, id. An acquire also says whether it is a repeat. */
#define TAKE(again)     S_EXPECT("EVALSHA", "*", "2", "orders", "*", "2", "*", "3600000", again)
#define GIVE(must)      S_EXPECT("EVALSHA", "*", "2", "orders", "*", "2", "*", "20000", must, "PUBLISH", PERMITS_CHANNEL)
#define ADD(n)          S_EXPECT("EVALSHA", "*", "2", "orders", "*", n, "*", "20000", "PUBLISH", PERMITS_CHANNEL)
#define SET(ttl)        S_EXPECT("EVALSHA", "*", "2", "orders", "*", "5", "*", "20000", ttl, "PUBLISH", PERMITS_CHANNEL)
#define SET_TOTAL       S_EXPECT("EVALSHA", "*", "3", "orders", "*", "{orders}:timeout", "9", "*", "20000", "PUBLISH", PERMITS_CHANNEL)
#define DRAIN           S_EXPECT("EVALSHA", "*", "2", "orders", "*", "*", "20000")
#define LATCH_SET       S_EXPECT("EVALSHA", "*", "2", "orders", "*", "3", "*", "20000", "PUBLISH", LATCH_CHANNEL)
#define LATCH           S_EXPECT("EVALSHA", "*", "2", "orders", "*", "*", "20000", "PUBLISH", LATCH_CHANNEL)

/* The reply to the first is lost; the reply to the second repeats the ids and records of both. */
#define LOST(first, second, id, record)                                                            \
	{                                                                                          \
		S_HELLO, first, S_CAPTURE(0, id), S_CAPTURE(1, record), S_CLOSE,                   \
		S_RECONNECTED, second, S_CAPTURE(2, id), S_CAPTURE(3, record), ECHO, S_END,        \
	}
/* clang-format on */

struct repeat {
	int (*run)(struct objects *objects);
	struct script_step steps[13];
	int rc; /* if the repeat is refused: the first request may have run */
};

static const struct repeat repeats[] = {
	{take_some, LOST(TAKE("0"), TAKE("1"), 6, 4), HF_EREFUSED},
	{try_some, LOST(TAKE("0"), TAKE("1"), 6, 4), HF_EREFUSED},
	{give_some, LOST(GIVE("0"), GIVE("0"), 6, 4), HF_EUNKNOWN},
	{give_if_there, LOST(GIVE("1"), GIVE("1"), 6, 4), HF_EUNKNOWN},
	{add_some, LOST(ADD("-3"), ADD("-3"), 6, 4), HF_EUNKNOWN},
	{set_some, LOST(SET("7000"), SET("7000"), 6, 4), HF_EUNKNOWN},
	{drain, LOST(DRAIN, DRAIN, 5, 4), HF_EUNKNOWN},
	{set_permits, LOST(SET("0"), SET("0"), 6, 4), HF_EUNKNOWN},
	{set_total, LOST(SET_TOTAL, SET_TOTAL, 7, 4), HF_EUNKNOWN},
	{add_permits, LOST(ADD("4"), ADD("4"), 6, 4), HF_EUNKNOWN},
	{set_latch, LOST(LATCH_SET, LATCH_SET, 6, 4), HF_EUNKNOWN},
	{count_down, LOST(LATCH, LATCH, 5, 4), HF_EUNKNOWN},
	{delete_latch, LOST(LATCH, LATCH, 5, 4), HF_EUNKNOWN},
};

static void repeat_names_the_same_request_and_record(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++) {
		struct wire wire = wire_start(repeats[i].steps, NULL);
		struct objects objects = open_objects(&wire);
		EXPECT_RC(&wire, repeats[i].rc, repeats[i].run(&objects));
		expect_same_twice(hf_error_detail());
		close_objects(&objects);
		wire_finish(&wire);
	}
}

static void answered_repeat_is_the_result(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,           GIVE("1"), S_CLOSE, S_RECONNECTED, GIVE("1"),
		S_SEND(DONE),      DRAIN,     S_CLOSE, S_RECONNECTED, DRAIN,
		S_SEND(":42\r\n"), LATCH,     S_CLOSE, S_RECONNECTED, LATCH,
		S_SEND(":0\r\n"),  S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, 0, give_if_there(&objects));
	assert_int_equal(objects.done, 1);
	EXPECT_RC(&wire, 0, drain(&objects));
	assert_int_equal(objects.number, 42);
	EXPECT_RC(&wire, 0, delete_latch(&objects));
	assert_int_equal(objects.done, 0);
	assert_int_equal(stats_of(wire.client).unknowns, 3);
	close_objects(&objects);
	wire_finish(&wire);
}

static void next_request_has_a_new_id_and_reuses_the_record(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,      GIVE("0"), S_CAPTURE(0, 6), S_CAPTURE(1, 4),
		S_SEND(DONE), GIVE("0"), S_CAPTURE(2, 6), S_CAPTURE(3, 4),
		ECHO,         S_END,
	};
	char first[2][128], second[2][128];
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, 0, give_some(&objects));
	EXPECT_RC(&wire, HF_EREFUSED, give_some(&objects));
	assert_int_equal(sscanf(strchr(hf_error_detail(), '<'),
	                        "<%127[^>]> <%127[^>]> <%127[^>]> <%127[^>]>", first[0], first[1],
	                        second[0], second[1]),
	                 4);
	assert_string_not_equal(first[0], second[0]);
	assert_string_equal(first[1], second[1]);
	close_objects(&objects);
	wire_finish(&wire);
}

/* It cannot be known in time whether the request was done. */
static void request_without_an_answer_is_unknown_and_not_sent_again(void **state)
{
	(void)state;
	static int (*const runs[])(struct objects *) = {
		give_some, add_some, drain, set_some, set_latch, count_down, delete_latch};
	static const struct script_step steps[] = {
		S_HELLO, S_ANY, S_RECONNECTED, S_PING, S_QUIET(30), S_END,
	};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		struct wire wire = wire_start(steps, HF_CLIENT(.command_timeout_ms = 400));
		struct objects objects = open_objects(&wire);
		EXPECT_RC(&wire, HF_EUNKNOWN, runs[i](&objects));
		EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
		close_objects(&objects);
		wire_finish(&wire);
	}
}

/* ---- permits that were taken and that nobody waits for ---- */

/* The first command is the ask, and the second one undoes it. */
static void wait_for_undo(struct wire *wire)
{
	WAIT_UNTIL(stats_of(wire->client).commands == 2, PATIENCE_MS);
}

/* The script captures what the ask and its undoing said, and echoes it to the next ask. */
static void expect_undone(const struct script_step *steps)
{
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, HF_EUNKNOWN,
	          hf_semaphore_acquire(objects.semaphore, 2, HF_WAIT(.wait_ms = 100)));
	script_continue(wire.script);
	wait_for_undo(&wire);
	EXPECT_RC(&wire, HF_EREFUSED, take_some(&objects));
	expect_same_twice(hf_error_detail());
	close_objects(&objects);
	wire_finish(&wire);
}

static void unknown_permits_of_a_semaphore_are_given_back_by_the_same_id(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		TAKE("0"),
		S_CAPTURE(0, 6),
		S_CAPTURE(1, 4),
		S_STALL,
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "2", "orders", "*", "*", "3600000", "PUBLISH",
	                 PERMITS_CHANNEL),
		S_CAPTURE(2, 5),
		S_CAPTURE(3, 4),
		S_SEND(DONE),
		TAKE("0"),
		ECHO,
		S_END,
	};
	expect_undone(steps);
}

static void unknown_permits_are_given_back_on_the_next_connection(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		TAKE("0"),
		S_CAPTURE(0, 6),
		S_CAPTURE(1, 4),
		S_STALL,
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT("EVALSHA", "*", "2", "orders", "*", "*", "3600000", "PUBLISH",
	                 PERMITS_CHANNEL),
		S_CAPTURE(2, 5),
		S_CAPTURE(3, 4),
		S_SEND(GONE),
		TAKE("0"),
		ECHO,
		S_END,
	};
	expect_undone(steps);
}

static void attempt_without_a_grant_needs_no_undo(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, TAKE("0"), S_STALL, S_SEND(TOO_FEW), TAKE("0"), S_SEND(GRANTED), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, HF_EUNKNOWN,
	          hf_semaphore_acquire(objects.semaphore, 2, HF_WAIT(.wait_ms = 100)));
	script_continue(wire.script);
	EXPECT_RC(&wire, 0, take_some(&objects));
	close_objects(&objects);
	wire_finish(&wire);
}

static void unanswered_attempt_asks_again_and_can_find_too_few_permits(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,   TAKE("0"),       S_CLOSE, S_RECONNECTED,
		TAKE("1"), S_SEND(TOO_FEW), S_PING,  S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, HF_EBUSY, try_some(&objects));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	close_objects(&objects);
	wire_finish(&wire);
}

/* clang-format off */
#define ASK_PERMITS  S_EXPECT("EVALSHA", "*", "2", "orders", PERMIT_EXPIRY, "2", "30000", "PUBLISH", PERMITS_CHANNEL, "", "", "", "", "*", "*")
#define DROP_PERMITS S_EXPECT("EVALSHA", "*", "2", "orders", PERMIT_EXPIRY, "PUBLISH", PERMITS_CHANNEL, "", "", "*", "*")
/* clang-format on */

static void unanswered_acquire_of_permits_is_repeated(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,         ASK_PERMITS, S_CLOSE,          S_RECONNECTED, ASK_PERMITS,
		S_SEND(GRANTED), S_ANY,       S_SEND(":2\r\n"), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	hf_permit_id ids[2];
	EXPECT_RC(&wire, 0,
	          hf_permits_acquire(objects.permits, 2, HF_PERMITS(.wait_ms = PATIENCE_MS), ids));
	assert_int_equal(hf_permits_state(objects.permits, ids[1]), HF_HELD);
	EXPECT_RC(&wire, 0, hf_permits_release(objects.permits, (const hf_permit_id *)ids, 2));
	close_objects(&objects);
	wire_finish(&wire);
}

static void unknown_permits_are_dropped(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,      ASK_PERMITS,      S_STALL,     S_SEND(GRANTED),
		DROP_PERMITS, S_SEND(":2\r\n"), ASK_PERMITS, S_SEND("-ERR no more\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	hf_permit_id ids[2];
	EXPECT_RC(&wire, HF_EUNKNOWN,
	          hf_permits_acquire(objects.permits, 2, HF_PERMITS(.wait_ms = 100), ids));
	script_continue(wire.script);
	wait_for_undo(&wire);
	EXPECT_RC(&wire, HF_EREFUSED,
	          hf_permits_acquire(objects.permits, 2, HF_PERMITS(.wait_ms = PATIENCE_MS), ids));
	close_objects(&objects);
	wire_finish(&wire);
}

static void permits_of_which_some_are_gone_are_dropped(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,      ASK_PERMITS,  S_CLOSE,          S_RECONNECTED, ASK_PERMITS,
		S_SEND(GONE), DROP_PERMITS, S_SEND(":1\r\n"), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	hf_permit_id ids[2];
	int rc = hf_permits_acquire(objects.permits, 2, HF_PERMITS(.wait_ms = PATIENCE_MS), ids);
	assert_int_not_equal(rc, 0);
	close_objects(&objects);
	wire_finish(&wire);
}

/* clang-format off */
#define RELEASE_PERMIT S_EXPECT("EVALSHA", "*", "2", "orders", PERMIT_EXPIRY, "PUBLISH", PERMITS_CHANNEL, "", "*")
#define DROP_PERMIT    S_EXPECT("EVALSHA", "*", "2", "orders", PERMIT_EXPIRY, "PUBLISH", PERMITS_CHANNEL, "", "", "*")
#define EXTEND_PERMIT  S_EXPECT("EVALSHA", "*", "2", "orders", PERMIT_EXPIRY, "*", "9000", "PUBLISH", PERMITS_CHANNEL, "*", "*", "*")
#define GRANT_PERMIT   S_EXPECT("EVALSHA", "*", "2", "orders", PERMIT_EXPIRY, "1", "30000", "PUBLISH", PERMITS_CHANNEL, "", "", "", "", "*"), S_SEND(GRANTED)
/* clang-format on */

static void unanswered_release_of_a_permit_is_repeated_and_gone_is_success(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       GRANT_PERMIT,   RELEASE_PERMIT, S_CLOSE,
		S_RECONNECTED, RELEASE_PERMIT, S_SEND(GONE),   S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	hf_permit_id id;
	EXPECT_RC(&wire, 0,
	          hf_permits_acquire(objects.permits, 1, HF_PERMITS(.wait_ms = PATIENCE_MS), &id));
	EXPECT_RC(&wire, 0, hf_permits_release(objects.permits, (const hf_permit_id *)&id, 1));
	assert_int_equal(stats_of(wire.client).held, 0);
	close_objects(&objects);
	wire_finish(&wire);
}

static void gone_without_a_loss_of_replies_is_not_success(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,        GRANT_PERMIT, RELEASE_PERMIT, S_SEND(GONE),
		RELEASE_PERMIT, S_SEND(GONE), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	hf_permit_id id;
	EXPECT_RC(&wire, 0,
	          hf_permits_acquire(objects.permits, 1, HF_PERMITS(.wait_ms = PATIENCE_MS), &id));
	EXPECT_RC(&wire, HF_ELOST,
	          hf_permits_release(objects.permits, (const hf_permit_id *)&id, 1));
	EXPECT_RC(&wire, HF_ENOTHELD,
	          hf_permits_release(objects.permits, (const hf_permit_id *)&id, 1));
	close_objects(&objects);
	wire_finish(&wire);
}

static void release_of_a_permit_without_a_server_continues_in_the_background(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,     GRANT_PERMIT,     S_CLOSE,     S_STALL, S_RECONNECTED,
		DROP_PERMIT, S_SEND(":1\r\n"), S_QUIET(50), S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.command_timeout_ms = 300));
	struct objects objects = open_objects(&wire);
	hf_permit_id id;
	EXPECT_RC(&wire, 0,
	          hf_permits_acquire(objects.permits, 1, HF_PERMITS(.wait_ms = PATIENCE_MS), &id));
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	int rc = hf_permits_release(objects.permits, (const hf_permit_id *)&id, 1);
	/* The release was never sent, but the permit counts as released from the call on. */
	assert_true(rc == HF_EUNKNOWN || rc == HF_EUNREACHABLE);
	assert_int_equal(hf_permits_remaining(objects.permits, id), 0);
	script_continue(wire.script);
	close_objects(&objects);
	wire_finish(&wire);
}

static void unanswered_extension_of_a_permit_is_repeated(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, EXTEND_PERMIT, S_CLOSE, S_RECONNECTED, EXTEND_PERMIT, S_SEND(DONE), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, 0, hf_permits_extend(objects.permits, ID, 9000));
	close_objects(&objects);
	wire_finish(&wire);
}

static void unanswered_total_is_set_again(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "3", "orders", "*", PERMIT_EXPIRY, "7", "*", "20000",
	                 "PUBLISH", PERMITS_CHANNEL),
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT("EVALSHA", "*", "3", "orders", "*", PERMIT_EXPIRY, "7", "*", "20000",
	                 "PUBLISH", PERMITS_CHANNEL),
		S_SEND(DONE),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, 0, hf_permits_set(objects.permits, 7));
	close_objects(&objects);
	wire_finish(&wire);
}

/* ---- queries, and a wait that changes nothing ---- */

static int ask_semaphore(struct objects *objects)
{
	return hf_semaphore_available(objects->semaphore, &objects->number);
}

static int ask_available(struct objects *objects)
{
	return hf_permits_available(objects->permits, &objects->number);
}

static int ask_acquired(struct objects *objects)
{
	return hf_permits_acquired(objects->permits, &objects->number);
}

static int ask_total(struct objects *objects)
{
	return hf_permits_total(objects->permits, &objects->number);
}

static int ask_lease(struct objects *objects)
{
	return hf_permits_lease(objects->permits, ID, &objects->number);
}

static int ask_latch(struct objects *objects)
{
	return hf_latch_count(objects->latch, &objects->number);
}

static void queries_are_repeated(void **state)
{
	(void)state;
	static int (*const runs[])(struct objects *) = {ask_semaphore, ask_available, ask_acquired,
	                                                ask_total,     ask_lease,     ask_latch};
	static const struct script_step steps[] = {
		S_HELLO, S_ANY, S_CLOSE, S_RECONNECTED, S_ANY, S_SEND(":77\r\n"), S_END,
	};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		struct wire wire = wire_start(steps, NULL);
		struct objects objects = open_objects(&wire);
		EXPECT_RC(&wire, 0, runs[i](&objects));
		assert_int_equal(objects.number, 77);
		close_objects(&objects);
		wire_finish(&wire);
	}
}

static void unanswered_wait_for_a_latch_asks_again(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_EXPECT("EVALSHA", "*", "1", "orders"), S_CLOSE,
		S_RECONNECTED, S_EXPECT("EVALSHA", "*", "1", "orders"), S_SEND(GRANTED),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, 0, hf_latch_wait(objects.latch, HF_WAIT(.wait_ms = PATIENCE_MS)));
	close_objects(&objects);
	wire_finish(&wire);
}

static void wait_for_a_latch_leaves_nothing_to_undo(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_EXPECT("EVALSHA", "*", "1", "orders"),
		S_STALL, S_SEND(GRANTED),
		S_PING,  S_QUIET(30),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct objects objects = open_objects(&wire);
	EXPECT_RC(&wire, HF_ETIMEDOUT, hf_latch_wait(objects.latch, HF_WAIT(.wait_ms = 100)));
	script_continue(wire.script);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	close_objects(&objects);
	wire_finish(&wire);
}

/* ---- locks of every kind ---- */

/* clang-format off */
#define FAIR_ASK    S_EXPECT("EVALSHA", "*", "4", "orders", QUEUE, QUEUE_EXPIRY, "holdfast_alive:{orders}", "30000", "*", "1", "8000", "30000")
#define READ_ASK    S_EXPECT("EVALSHA", "*", "2", "orders", "*", "30000", "*", "1", "")
#define FENCED_ASK  S_EXPECT("EVALSHA", "*", "2", "orders", TOKEN, "30000", "*", "1")
/* clang-format on */

struct lock_story {
	hf_kind kind;
	struct script_step steps[13];
};

/* clang-format off */
#define STORY_ROWS(ROW)                                                                            \
	ROW(HF_REENTRANT, LOST(S_EXPECT_ASK, S_EXPECT_ASK, 5, 3))                                  \
	ROW(HF_FAIR, LOST(FAIR_ASK, FAIR_ASK, 8, 3))                                               \
	ROW(HF_READ, LOST(READ_ASK, READ_ASK, 6, 4))                                               \
	ROW(HF_WRITE, LOST(S_EXPECT_ASK, S_EXPECT_ASK, 5, 3))                                      \
	ROW(HF_FENCED, LOST(FENCED_ASK, FENCED_ASK, 6, 3))                                         \
	ROW(HF_SPIN, LOST(S_EXPECT_ASK, S_EXPECT_ASK, 5, 3))                                       \
	ROW(HF_SIMPLE, LOST(S_EXPECT_ASK, S_EXPECT_ASK, 5, 3))                                     \
	ROW(HF_SIMPLE_FAIR, LOST(FAIR_ASK, FAIR_ASK, 8, 3))
/* clang-format on */

#define LOCK_STORY(kind, ...) {kind, __VA_ARGS__},
static const struct lock_story lock_stories[] = {STORY_ROWS(LOCK_STORY)};
HF__ROWS_ARE(STORY_ROWS, KINDS_ON_REDIS);

static void unanswered_ask_of_every_kind_is_repeated_for_the_same_owner(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof lock_stories / sizeof *lock_stories; i++) {
		struct wire wire = wire_start(lock_stories[i].steps, NULL);
		hf_lock *lock = open_kind(&wire, lock_stories[i].kind);
		EXPECT_RC(&wire, HF_EREFUSED,
		          hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
		expect_same_twice(hf_error_detail());
		hf_lock_close(lock);
		wire_finish(&wire);
	}
}

/* Runs the script once for each kind of lock. */
static void for_each_kind(const struct script_step *steps,
                          void (*run)(struct wire *wire, hf_lock *lock))
{
	for (size_t i = 0; i < sizeof lock_stories / sizeof *lock_stories; i++) {
		struct wire wire = wire_start(steps, NULL);
		hf_lock *lock = open_kind(&wire, lock_stories[i].kind);
		run(&wire, lock);
		hf_lock_close(lock);
		wire_finish(&wire);
	}
}

static void lock_and_unlock(struct wire *wire, hf_lock *lock)
{
	EXPECT_RC(wire, 0, hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	EXPECT_RC(wire, 0, hf_lock_release(lock));
	assert_int_equal(stats_of(wire->client).held, 0);
}

static void unanswered_release_of_every_kind_is_repeated_and_gone_is_success(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_ANY, S_SEND(GRANTED), S_ANY, S_CLOSE,
		S_RECONNECTED, S_ANY, S_SEND(GONE),    S_END,
	};
	for_each_kind(steps, lock_and_unlock);
}

static void give_up_in_time(struct wire *wire, hf_lock *lock)
{
	EXPECT_RC(wire, HF_EUNKNOWN, hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60)));
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	script_continue(wire->script);
	wait_for_undo(wire);
}

static void unknown_ask_of_every_kind_is_settled(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_ANY,       S_STALL, S_SEND(GRANTED), S_ANY,
		S_SEND(RELEASED), S_QUIET(30), S_END,
	};
	for_each_kind(steps, give_up_in_time);
}

static void lock_and_extend(struct wire *wire, hf_lock *lock)
{
	EXPECT_RC(wire, 0, hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	EXPECT_RC(wire, 0, hf_lock_extend(lock, NULL, 60000));
	assert_true(hf_lock_remaining(lock, NULL) > 31000);
}

static void unanswered_extension_of_every_kind_is_repeated(void **state)
{
	(void)state;
	/* On the new connection all holds are renewed too. */
	static const struct script_step steps[] = {
		S_HELLO, S_ANY,   S_SEND(GRANTED),
		S_ANY,   S_CLOSE, S_RECONNECTED,
		S_ANY,   S_WHOLE, S_SEND("*1\r\n:1\r\n*1\r\n:1\r\n"),
		S_END,
	};
	for_each_kind(steps, lock_and_extend);
}

static void ask_for_the_ttl(struct wire *wire, hf_lock *lock)
{
	int64_t ttl = 0;
	EXPECT_RC(wire, 0, hf_lock_ttl(lock, &ttl));
	assert_int_equal(ttl, 77);
}

static void query_of_every_kind_is_repeated(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_ANY, S_CLOSE,
		S_RECONNECTED, S_ANY, S_SEND("*3\r\n:77\r\n:0\r\n$3\r\na:1\r\n"),
		S_END,
	};
	for_each_kind(steps, ask_for_the_ttl);
}

static void force(struct wire *wire, hf_lock *lock)
{
	EXPECT_RC(wire, HF_EUNKNOWN, hf_lock_force_release(lock, NULL));
	EXPECT_RC(wire, 0, hf_client_ping(wire->client, NULL));
}

static void force_is_not_repeated_for_any_kind(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_ANY, S_CLOSE, S_RECONNECTED, S_PING, S_END,
	};
	for_each_kind(steps, force);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeat_names_the_same_request_and_record),
		cmocka_unit_test(answered_repeat_is_the_result),
		cmocka_unit_test(next_request_has_a_new_id_and_reuses_the_record),
		cmocka_unit_test(request_without_an_answer_is_unknown_and_not_sent_again),
		cmocka_unit_test(unknown_permits_of_a_semaphore_are_given_back_by_the_same_id),
		cmocka_unit_test(unknown_permits_are_given_back_on_the_next_connection),
		cmocka_unit_test(attempt_without_a_grant_needs_no_undo),
		cmocka_unit_test(unanswered_attempt_asks_again_and_can_find_too_few_permits),
		cmocka_unit_test(unanswered_acquire_of_permits_is_repeated),
		cmocka_unit_test(unknown_permits_are_dropped),
		cmocka_unit_test(permits_of_which_some_are_gone_are_dropped),
		cmocka_unit_test(unanswered_release_of_a_permit_is_repeated_and_gone_is_success),
		cmocka_unit_test(gone_without_a_loss_of_replies_is_not_success),
		cmocka_unit_test(release_of_a_permit_without_a_server_continues_in_the_background),
		cmocka_unit_test(unanswered_extension_of_a_permit_is_repeated),
		cmocka_unit_test(unanswered_total_is_set_again),
		cmocka_unit_test(queries_are_repeated),
		cmocka_unit_test(unanswered_wait_for_a_latch_asks_again),
		cmocka_unit_test(wait_for_a_latch_leaves_nothing_to_undo),
		cmocka_unit_test(unanswered_ask_of_every_kind_is_repeated_for_the_same_owner),
		cmocka_unit_test(unanswered_release_of_every_kind_is_repeated_and_gone_is_success),
		cmocka_unit_test(unknown_ask_of_every_kind_is_settled),
		cmocka_unit_test(unanswered_extension_of_every_kind_is_repeated),
		cmocka_unit_test(query_of_every_kind_is_repeated),
		cmocka_unit_test(force_is_not_repeated_for_any_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
