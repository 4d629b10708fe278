/* The replies to a hand-over, and how the release and the waiter continue after each. */
#include <stdio.h>

#include "wire/wire.h"

#define TOKEN "redisson_lock_token:{orders}"

/* clang-format off */

/* The lease, the new owner and the old one, where an ask has a number. */
#define S_EXPECT_MOVE S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "*")
#define S_TAKE        S_EXPECT_ASK, S_STALL, S_SEND(GRANTED)
#define TOKEN_GRANT   "$1\r\n7\r\n"

/* clang-format on */

/* A little longer than hand-overs in a row can last. */
#define ROW_MS 60

/* How long others then have to ask first. */
#define REST_MS 5

/* One owner acquires the lock. Another one waits for it, and does not ask on its own. */
struct pair {
	struct wire wire;
	hf_lock *lock;
	hf_owner *owners[2];
	bool keeps; /* does not release at once */
	struct done taken;
	struct done acquired;
	struct done released;
};

static int pair_release(struct pair *pair)
{
	return hf_lock_release_async(pair->lock,
	                             HF_RELEASE(.owner = pair->owners[0], .wait_ms = PATIENCE_MS),
	                             note_done, &pair->released);
}

/* Releases as soon as it holds the lock, since the time for a hand-over is short. */
static void taken(void *arg, int result, int64_t number, const char *text)
{
	struct pair *pair = arg;
	int rc = pair->keeps ? 0 : pair_release(pair);
	note_done(&pair->taken, result ? result : rc, number, text);
}

static struct pair *pair_open(const struct script_step *steps, hf_kind kind,
                              const hf_client_options *options)
{
	struct pair *pair = check_alloc(sizeof(*pair));
	pair->wire = wire_start(steps, options);
	EXPECT_RC(&pair->wire, 0, hf_lock_open(pair->wire.client, kind, "orders", &pair->lock));
	for (int i = 0; i < 2; i++)
		pair->owners[i] = new_owner();
	return pair;
}

/* Both wait, and then the server grants the first one's ask. */
static void pair_run(struct pair *pair)
{
	for (int i = 0; i < 2; i++)
		EXPECT_RC(&pair->wire, 0,
		          hf_lock_acquire_async(
				  pair->lock,
				  HF_ACQUIRE(.owner = pair->owners[i], .wait_ms = PATIENCE_MS),
				  i == 0 ? taken : note_done,
				  i == 0 ? (void *)pair : &pair->acquired));
	WAIT_UNTIL(stats_of(pair->wire.client).waiting == 2, PATIENCE_MS);
	script_continue(pair->wire.script);
	WAIT_DONE(&pair->wire, 0, &pair->taken);
}

static void pair_free(struct pair *pair)
{
	hf_lock_close(pair->lock);
	for (int i = 0; i < 2; i++)
		hf_owner_free(pair->owners[i]);
	free(pair);
}

/* Whether the release was a hand-over, which counts as an ask. */
static bool pair_hands_over(struct pair *pair)
{
	WAIT_UNTIL(stats_of(pair->wire.client).commands >= 2, PATIENCE_MS);
	return stats_of(pair->wire.client).attempts >= 2;
}

/* Abandons a pair whose script did not match. */
static void pair_drop(struct pair *pair)
{
	free(script_join(pair->wire.script, SCRIPT_TIMEOUT_MS));
	hf_lock_close(pair->wire.lock);
	assert_int_equal(hf_client_close(pair->wire.client), 0);
	pair_free(pair);
}

/* On a busy machine the time may have passed before the release; then the test tries again. */
static struct pair *pair_start_kind(const struct script_step *steps, hf_kind kind,
                                    const hf_client_options *options)
{
	for (int i = 0; i < 20; i++) {
		struct pair *pair = pair_open(steps, kind, options);
		pair_run(pair);
		if (pair_hands_over(pair))
			return pair;
		pair_drop(pair);
	}
	fail_msg("never a hand-over");
	return NULL;
}

static struct pair *pair_start(const struct script_step *steps)
{
	return pair_start_kind(steps, HF_REENTRANT, NULL);
}

static void pair_end(struct pair *pair)
{
	wire_finish(&pair->wire);
	pair_free(pair);
}

#define EXPECT_PAIR(pair, release, acquire)                                                        \
	do {                                                                                       \
		WAIT_DONE(&(pair)->wire, release, &(pair)->released);                              \
		WAIT_DONE(&(pair)->wire, acquire, &(pair)->acquired);                              \
	} while (0)

static void pair_release_second(struct pair *pair)
{
	EXPECT_RC(&pair->wire, 0,
	          hf_lock_release_with(pair->lock, HF_RELEASE(.owner = pair->owners[1])));
}

static void pair_finish(struct pair *pair)
{
	pair_release_second(pair);
	pair_end(pair);
}

/* ---- what is sent ---- */

static void hand_over_is_one_command_that_names_both_owners(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,         S_EXPECT_ASK,
		S_CAPTURE(0, 5), S_STALL,
		S_SEND(GRANTED), S_EXPECT("EVALSHA", "*", "1", "orders", "30000", "*", "*"),
		S_CAPTURE(1, 5), S_CAPTURE(2, 6),
		S_SEND(GRANTED), S_EXPECT_RELEASE,
		S_CAPTURE(3, 4), S_SEND("-ERR <${0}> <${1}> <${2}> <${3}>\r\n"),
		S_END,
	};
	char first[64], to[64], from[64], last[64];
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, 0);
	assert_int_equal(hf_lock_state(pair->lock, pair->owners[0]), HF_FREE);
	assert_int_equal(hf_lock_state(pair->lock, pair->owners[1]), HF_HELD);
	assert_int_equal(stats_of(pair->wire.client).handovers, 1);
	EXPECT_RC(&pair->wire, HF_EREFUSED,
	          hf_lock_release_with(pair->lock, HF_RELEASE(.owner = pair->owners[1])));
	const char *echo = strchr(hf_error_detail(), '<');
	assert_non_null(echo);
	assert_int_equal(
		sscanf(echo, "<%63[^>]> <%63[^>]> <%63[^>]> <%63[^>]>", first, to, from, last), 4);
	assert_string_equal(from, first);
	assert_string_equal(to, last);
	assert_string_not_equal(from, to);
	pair_end(pair);
}

static void hand_over_of_a_fenced_lock_brings_a_token(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "2", "orders", TOKEN, "30000", "*", "1"),
		S_STALL,
		S_SEND("$1\r\n6\r\n"),
		S_EXPECT("EVALSHA", "*", "2", "orders", TOKEN, "30000", "*", "*"),
		S_SEND(TOKEN_GRANT),
		S_RELEASE,
		S_END,
	};
	struct pair *pair = pair_start_kind(steps, HF_FENCED, NULL);
	EXPECT_PAIR(pair, 0, 0);
	assert_int_equal(pair->acquired.number, 7);
	pair_finish(pair);
}

static void hand_over_of_a_described_hold_names_its_description(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "30000", "*", "1",
	                 "holdfast_holder:{orders}", "*", "nightly"),
		S_STALL,
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "30000", "*", "*",
	                 "holdfast_holder:{orders}", "*", "nightly"),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "0", "0", "PUBLISH", CHANNEL,
	                 "holdfast_holder:{orders}"),
		S_SEND(RELEASED),
		S_END,
	};
	struct pair *pair = pair_start_kind(steps, HF_REENTRANT, HF_CLIENT(.describe = "nightly"));
	EXPECT_PAIR(pair, 0, 0);
	pair_finish(pair);
}

static void unknown_script_is_sent_whole(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_TAKE,
		S_EXPECT_MOVE,
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "30000", "*", "*"),
		S_SEND(GRANTED),
		S_RELEASE,
		S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, 0);
	pair_release_second(pair);
	assert_int_equal(stats_of(pair->wire.client).handovers, 1);
	pair_end(pair);
}

/* ---- errors ---- */

static void script_refused_twice_is_reported_to_the_waiter_only(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_TAKE,
		S_EXPECT_MOVE,
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "..."),
		S_SEND(NOSCRIPT),
		S_RELEASE,
		S_QUIET(30),
		S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, HF_EREFUSED);
	EXPECT_TEXT(pair->acquired.detail, "NOSCRIPT");
	pair_end(pair);
}

static void temporary_error_leads_to_a_release_and_an_ask(void **state)
{
	(void)state;
	static const char *const errors[] = {TEMPORARY_ERRORS};
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		const struct script_step steps[] = {
			S_HELLO,       S_TAKE,
			S_EXPECT_MOVE, S_SEND_BYTES(errors[i], strlen(errors[i])),
			S_RELEASE,     S_GRANT,
			S_RELEASE,     S_END,
		};
		struct pair *pair = pair_start(steps);
		EXPECT_PAIR(pair, 0, 0);
		pair_release_second(pair);
		assert_int_equal(stats_of(pair->wire.client).handovers, 0);
		assert_int_equal(stats_of(pair->wire.client).losses, 0);
		pair_end(pair);
	}
}

static const struct {
	const char *text;
	int error;
} refusals[] = {
	{"OOM command not allowed when used memory > 'maxmemory'.", HF_EFULL},
	{"READONLY You can't write against a read only replica.", HF_EREADONLY},
	{"MISCONF Redis is configured to save RDB snapshots", HF_EREADONLY},
	{"NOPERM this user has no permissions to run the 'evalsha' command", HF_EDENIED},
	{"WRONGTYPE Operation against a key holding the wrong kind of value", HF_ECONFLICT},
	{"MOVED 3999 127.0.0.1:6381", HF_EREFUSED},
	{"NOAUTH Authentication required.", HF_EAUTH},
	{"ERR something nobody knows", HF_EREFUSED},
};

static void refused_hand_over_is_an_ordinary_release_and_a_refused_ask(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		char reply[200];
		(void)snprintf(reply, sizeof reply, "-%s\r\n", refusals[i].text);
		const struct script_step steps[] = {
			S_HELLO,   S_TAKE,      S_EXPECT_MOVE, S_SEND_BYTES(reply, strlen(reply)),
			S_RELEASE, S_QUIET(10), S_END,
		};
		struct pair *pair = pair_start(steps);
		EXPECT_PAIR(pair, 0, refusals[i].error);
		EXPECT_TEXT(pair->acquired.detail, refusals[i].text);
		assert_int_equal(stats_of(pair->wire.client).held, 0);
		assert_int_equal(stats_of(pair->wire.client).losses, 0);
		pair_end(pair);
	}
}

static void release_and_ask_can_both_be_refused(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "6000", "*", "1"),
		S_STALL,
		S_SEND(GRANTED),
		S_EXPECT_MOVE,
		S_SEND("-READONLY You can't write against a read only replica.\r\n"),
		S_EXPECT_RELEASE,
		S_SEND("-READONLY You can't write against a read only replica.\r\n"),
		S_RELEASE, /* in the background */
		S_QUIET(30),
		S_END,
	};
	struct pair *pair = pair_start_kind(steps, HF_REENTRANT, HF_CLIENT(.watchdog_ms = 6000));
	EXPECT_PAIR(pair, HF_EREADONLY, HF_EREADONLY);
	pair_end(pair);
}

static void conflict_of_the_script_is_reported_to_the_waiter(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_TAKE,
		S_EXPECT_MOVE, S_SEND("*2\r\n$8\r\nconflict\r\n$12\r\nno number 12\r\n"),
		S_RELEASE,     S_QUIET(30),
		S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, HF_ECONFLICT);
	EXPECT_TEXT(pair->acquired.detail, "no number 12");
	pair_end(pair);
}

/* The release finds out on its own who holds the lock now. */
static void hold_that_is_gone_is_lost_and_the_waiter_asks(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_TAKE,
		S_EXPECT_MOVE,
		S_SEND(GONE),
		S_EXPECT_RELEASE,
		S_EXPECT_ASK,
		S_SEND("*2\r\n$4\r\ngone\r\n$6\r\nother7\r\n" GRANTED),
		S_RELEASE,
		S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, HF_ELOST, 0);
	EXPECT_TEXT(pair->released.detail, "other7");
	pair_finish(pair);
}

/* ---- connections that are cut, and invalid bytes ---- */

/* The hand-over was done, which the next connection shows. */
static void unanswered_hand_over_that_was_done_is_found_done(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_TAKE,       S_EXPECT_MOVE,        S_CLOSE,   S_RECONNECTED,
		S_EXPECT_RELEASE, S_EXPECT_ASK, S_SEND(GONE GRANTED), S_RELEASE, S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, 0);
	assert_int_equal(stats_of(pair->wire.client).losses, 0);
	pair_finish(pair);
}

static void unanswered_hand_over_that_was_not_done_is_done(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_TAKE,
		S_EXPECT_MOVE, S_CLOSE,
		S_RECONNECTED, S_EXPECT_RELEASE,
		S_EXPECT_ASK,  S_SEND(":0\r\n" GRANTED),
		S_RELEASE,     S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, 0);
	pair_finish(pair);
}

/* Another owner was faster. */
static void another_owner_can_hold_the_lock_after_an_unanswered_hand_over(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_TAKE,
		S_EXPECT_MOVE,
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT_RELEASE,
		S_EXPECT_ASK,
		S_SEND(GONE HELD),
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND(SUBSCRIBED HELD MESSAGE),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, 0);
	pair_finish(pair);
}

static void reply_of_invalid_bytes_costs_only_the_connection(void **state)
{
	(void)state;
	static const char *const garbage[] = {
		"hello?\r\n", "*2\r\n",     "$65537\r\n",      "$-2\r\n",     ":12x\r\n",
		"_x\r\n",     "+MOVED\r\n", "$5\r\nhello\r\n", "*1\r\n_\r\n", "*0\r\n",
	};
	for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
		const struct script_step steps[] = {
			S_HELLO,
			S_TAKE,
			S_EXPECT_MOVE,
			S_SEND_BYTES(garbage[i], strlen(garbage[i])),
			S_CLOSE,
			S_RECONNECTED,
			S_EXPECT_RELEASE,
			S_EXPECT_ASK,
			S_SEND(GONE GRANTED),
			S_RELEASE,
			S_END,
		};
		struct pair *pair = pair_start(steps);
		EXPECT_PAIR(pair, 0, 0);
		pair_release_second(pair);
		assert_int_equal(stats_of(pair->wire.client).losses, 0);
		pair_end(pair);
	}
}

/* The script never returns a number; reading it as "held by another owner" does no harm. */
static void number_is_not_a_grant(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_TAKE,
		S_EXPECT_MOVE,
		S_SEND(HELD),
		S_EXPECT_RELEASE,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND(RELEASED SUBSCRIBED GRANTED),
		S_RELEASE,
		S_EXPECT_UNSUBSCRIBE,
		S_SEND(UNSUBSCRIBED),
		S_END,
	};
	struct pair *pair = pair_start(steps);
	EXPECT_PAIR(pair, 0, 0);
	assert_int_equal(stats_of(pair->wire.client).handovers, 0);
	pair_finish(pair);
}

/* ---- the end of a series ---- */

/* Starts a pair whose first hold is too old for a hand-over. */
static struct pair *pair_start_old(const struct script_step *steps)
{
	struct pair *pair = pair_open(steps, HF_REENTRANT, NULL);
	pair->keeps = true;
	pair_run(pair);
	long long started_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - started_at >= ROW_MS, PATIENCE_MS);
	EXPECT_RC(&pair->wire, 0, pair_release(pair));
	return pair;
}

static void notified_waiters_elsewhere_can_ask_first(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_TAKE,  S_EXPECT_RELEASE, S_STALL,
		S_SEND(":1\r\n"), S_GRANT, S_RELEASE,        S_END,
	};
	struct pair *pair = pair_start_old(steps);
	WAIT_UNTIL(script_is_stalled(pair->wire.script), PATIENCE_MS);
	long long told_at = test_now_ms();
	script_continue(pair->wire.script);
	EXPECT_PAIR(pair, 0, 0);
	assert_true(test_now_ms() - told_at >= REST_MS - 1);
	pair_release_second(pair);
	assert_int_equal(stats_of(pair->wire.client).handovers, 0);
	pair_end(pair);
}

static void release_without_a_listener_is_followed_by_the_ask_at_once(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_TAKE, S_EXPECT_RELEASE, S_SEND(":0\r\n"), S_GRANT, S_RELEASE, S_END,
	};
	struct pair *pair = pair_start_old(steps);
	EXPECT_PAIR(pair, 0, 0);
	pair_finish(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hand_over_is_one_command_that_names_both_owners),
		cmocka_unit_test(hand_over_of_a_fenced_lock_brings_a_token),
		cmocka_unit_test(hand_over_of_a_described_hold_names_its_description),
		cmocka_unit_test(unknown_script_is_sent_whole),
		cmocka_unit_test(script_refused_twice_is_reported_to_the_waiter_only),
		cmocka_unit_test(temporary_error_leads_to_a_release_and_an_ask),
		cmocka_unit_test(refused_hand_over_is_an_ordinary_release_and_a_refused_ask),
		cmocka_unit_test(release_and_ask_can_both_be_refused),
		cmocka_unit_test(conflict_of_the_script_is_reported_to_the_waiter),
		cmocka_unit_test(hold_that_is_gone_is_lost_and_the_waiter_asks),
		cmocka_unit_test(unanswered_hand_over_that_was_done_is_found_done),
		cmocka_unit_test(unanswered_hand_over_that_was_not_done_is_done),
		cmocka_unit_test(another_owner_can_hold_the_lock_after_an_unanswered_hand_over),
		cmocka_unit_test(reply_of_invalid_bytes_costs_only_the_connection),
		cmocka_unit_test(number_is_not_a_grant),
		cmocka_unit_test(notified_waiters_elsewhere_can_ask_first),
		cmocka_unit_test(release_without_a_listener_is_followed_by_the_ask_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
