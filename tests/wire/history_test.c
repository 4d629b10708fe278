/* The history on the wire: requests without one are as they were, and what one adds to them. */
#include "wire/wire.h"

/* clang-format off */
#define HISTORY(ms, ending, also) "holdfast_history", "10000", "0", "reentrant", ms, ending, also
#define S_EXPECT_KEPT_ASK         S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "1", HISTORY("*", "r", "0"))
#define S_EXPECT_KEPT_RELEASE     S_EXPECT("EVALSHA", "*", "1", "orders", "*", "0", "0", "PUBLISH", CHANNEL, \
					   HISTORY("*", "r", "0"))
#define S_EXPECT_LOSS(also)       S_EXPECT("EVALSHA", "*", "1", "orders", "*", "0", "0", "PUBLISH", CHANNEL, \
					   HISTORY("*", "l", also))
/* clang-format on */

/* Exactly these words, and none after them. */
static void without_a_history_nothing_is_added(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_GRANT, S_RELEASE, S_END};
	wire_play(steps, HF_CLIENT(.history = "no"), 1);
}

static void a_history_adds_its_arguments(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_EXPECT_KEPT_ASK,
		S_SEND(GRANTED),  S_EXPECT_KEPT_RELEASE,
		S_SEND(RELEASED), S_END,
	};
	wire_play(steps, HF_CLIENT(.history = "yes"), 1);
}

/* A nested level is part of its hold. */
static void a_nested_level_has_no_entry(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_KEPT_ASK,
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "2"),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "1", "0", "PUBLISH", CHANNEL),
		S_SEND(":0\r\n"),
		S_EXPECT_KEPT_RELEASE,
		S_SEND(RELEASED),
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.history = "yes"));
	wire_acquire(&wire);
	wire_acquire(&wire);
	wire_release(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

/* Until it is answered that the lock is busy, nobody has waited. */
static void a_contended_history_begins_with_the_wait(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_BUSY,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_KEPT_ASK,
		S_SEND(SUBSCRIBED),
		S_SEND(GRANTED),
		S_EXPECT_KEPT_RELEASE,
		S_SEND(RELEASED),
		S_END,
	};
	wire_play(steps, HF_CLIENT(.history = "contended"), 1);
}

static void a_contended_history_leaves_other_holds_out(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_GRANT, S_RELEASE, S_END};
	wire_play(steps, HF_CLIENT(.history = "contended"), 1);
}

/* The first answer is lost, so the loss may have been entered: the repeat does not enter it. */
static void a_loss_is_not_entered_twice(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_KEPT_ASK,
		S_SEND(GRANTED),
		S_EXPECT_KEPT_RELEASE,
		S_SEND(GONE),
		S_EXPECT_LOSS("1"),
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT_LOSS("0"),
		S_SEND(GONE),
		S_PING,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.history = "yes"));
	wire_acquire(&wire);
	EXPECT_RC(&wire, HF_ELOST, hf_lock_release(wire.lock));
	WAIT_UNTIL(script_position(wire.script) >= 10, PATIENCE_MS);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	wire_finish(&wire);
}

/* The answer to the entry is lost, and nothing else is left to be removed: no request follows. */
static void a_wait_in_vain_is_entered_by_one_request(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_KEPT_ASK,
		S_SEND(HELD),
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_KEPT_ASK,
		S_SEND(SUBSCRIBED HELD),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "0", "0", "PUBLISH", CHANNEL,
	                 HISTORY("", "r", "*")),
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT_SUBSCRIBE,
		S_SEND(SUBSCRIBED),
		S_PING,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.history = "yes"));
	EXPECT_RC(&wire, HF_ETIMEDOUT, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 100)));
	WAIT_UNTIL(script_position(wire.script) >= 8, PATIENCE_MS);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	wire_finish(&wire);
}

/* The answer says that the entry failed, and is an answer all the same. */
static void a_warning_is_not_a_failure(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_KEPT_ASK,
		S_SEND("*4\r\n$7\r\nwarning\r\n$4\r\nxadd\r\n$5\r\nNOPE!\r\n_\r\n"),
		S_EXPECT_KEPT_RELEASE,
		S_SEND("*4\r\n$7\r\nwarning\r\n$4\r\nxadd\r\n$5\r\nNOPE!\r\n:1\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.history = "yes"));
	wire_acquire(&wire);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	wire_release(&wire);
	wire_finish(&wire);
}

/* ---- nonsense to a reader ---- */

static int see_row(void *arg, const hf_history_row *row)
{
	(void)row;
	++*(int *)arg;
	return 0;
}

static void read_nonsense(const struct script_step *steps)
{
	struct wire wire = wire_start(steps, NULL);
	hf_history *history = NULL;
	int rows = 0;
	EXPECT_RC(&wire, 0, hf_history_open(wire.client, NULL, &history));
	EXPECT_RC(&wire, HF_EPROTOCOL, hf_history_read(history, see_row, &rows));
	assert_int_equal(rows, 0);
	hf_history_close(history);
	wire_finish(&wire);
}

#define S_EXPECT_PAGE S_EXPECT("EVALSHA", "*", "0", "holdfast_history", "0-0", "")

static void nonsense_is_not_a_history(void **state)
{
	(void)state;
	static const struct script_step empty[] = {S_HELLO, S_PING, S_EXPECT_PAGE, S_SEND("*0\r\n"),
	                                           S_END};
	static const struct script_step odd[] = {
		S_HELLO, S_PING, S_EXPECT_PAGE, S_SEND("*3\r\n$3\r\nend\r\n$1\r\n0\r\n$1\r\n5\r\n"),
		S_END};
	static const struct script_step torn[] = {
		S_HELLO, S_PING, S_EXPECT_PAGE,
		S_SEND("*4\r\n$3\r\n1-1\r\n$1\r\n0\r\n$1\r\n5\r\n$10\r\n3:1-11:g9:\r\n"), S_END};
	read_nonsense(empty);
	read_nonsense(odd);
	read_nonsense(torn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_history_nothing_is_added),
		cmocka_unit_test(a_history_adds_its_arguments),
		cmocka_unit_test(a_nested_level_has_no_entry),
		cmocka_unit_test(a_contended_history_begins_with_the_wait),
		cmocka_unit_test(a_contended_history_leaves_other_holds_out),
		cmocka_unit_test(a_loss_is_not_entered_twice),
		cmocka_unit_test(a_wait_in_vain_is_entered_by_one_request),
		cmocka_unit_test(a_warning_is_not_a_failure),
		cmocka_unit_test(nonsense_is_not_a_history),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
