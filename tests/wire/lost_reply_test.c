/* Replies that never arrive: the outcome is settled with the server, and never guessed. */
#include <stdio.h>

#include "wire/wire.h"

static void owners_are_equal(const char *detail)
{
	char first[64], second[64];
	const char *echo = strchr(detail, '<');
	assert_non_null(echo);
	assert_int_equal(sscanf(echo, "<%63[^>]> <%63[^>]>", first, second), 2);
	assert_string_equal(first, second);
}

static void unanswered_ask_is_repeated_for_the_same_owner(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_EXPECT_ASK, S_CAPTURE(0, 5), S_CLOSE,
		S_RECONNECTED, S_EXPECT_ASK, S_CAPTURE(1, 5), S_SEND("-ERR <${0}> <${1}>\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EREFUSED,
	          hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	owners_are_equal(hf_error_detail());
	assert_int_equal(stats_of(wire.client).unknowns, 1);
	script_finish(wire.script);
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
}

static void unanswered_ask_that_was_granted_is_a_grant(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_EXPECT_ASK, S_CLOSE, S_RECONNECTED, S_GRANT, S_RELEASE, S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	wire_release(&wire);
	assert_int_equal(stats_of(wire.client).grants, 1);
	wire_finish(&wire);
}

static void unanswered_attempt_without_wait_asks_again(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_EXPECT_ASK, S_CLOSE, S_RECONNECTED, S_BUSY, S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EBUSY, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	wire_finish(&wire);
}

static void unanswered_nested_ask_is_repeated_with_the_same_count(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "2"),
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "2"),
		S_EXPECT_RENEWAL,
		S_SEND(GRANTED "*1\r\n:1\r\n"),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "1", "0", "PUBLISH", CHANNEL),
		S_SEND(":0\r\n"),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	wire_acquire(&wire);
	wire_release(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

static void unanswered_release_is_repeated_and_gone_is_success(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_GRANT,          S_EXPECT_RELEASE, S_CLOSE,
		S_RECONNECTED, S_EXPECT_RELEASE, S_SEND(GONE),     S_END,
	};
	wire_play(steps, NULL, 1);
}

static void gone_without_a_loss_of_replies_is_lost(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_GRANT, S_EXPECT_RELEASE, S_SEND("*2\r\n$4\r\ngone\r\n$6\r\nother7\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	EXPECT_RC(&wire, HF_ELOST, hf_lock_release(wire.lock));
	EXPECT_DETAIL("other7");
	EXPECT_RC(&wire, HF_ENOTHELD, hf_lock_release(wire.lock));
	wire_finish(&wire);
}

static void gone_to_a_nested_ask_is_lost(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,      S_GRANT, S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "2"),
		S_SEND(GONE), S_GRANT, S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	EXPECT_RC(&wire, HF_ELOST, hf_lock_acquire(wire.lock, NULL));
	assert_int_equal(hf_lock_remaining(wire.lock, NULL), 0);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_LOST);
	wire_acquire(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

static void unanswered_release_of_one_level_is_repeated_with_the_same_count(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "2"),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "1", "0", "PUBLISH", CHANNEL),
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "1", "0", "PUBLISH", CHANNEL),
		S_EXPECT_RENEWAL,
		S_SEND(":0\r\n*1\r\n:1\r\n"),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	wire_acquire(&wire);
	wire_release(&wire);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	wire_release(&wire);
	wire_finish(&wire);
}

static void all_holds_are_renewed_at_once_after_a_reconnect(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT("EVALSHA", "*", "1", "stock", "*", "*", "1"),
		S_SEND(GRANTED),
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT("EVAL", "*", "2", "*", "*", "30000", "*", "30000", "*"),
		S_SEND("*2\r\n:1\r\n:1\r\n"),
		S_QUIET(50),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	hf_lock *stock = NULL;
	EXPECT_RC(&wire, 0, hf_lock_open(wire.client, HF_REENTRANT, "stock", &stock));
	wire_acquire(&wire);
	EXPECT_RC(&wire, 0, hf_lock_acquire(stock, NULL));
	WAIT_UNTIL(stats_of(wire.client).renewals == 2, PATIENCE_MS);
	assert_int_equal(stats_of(wire.client).renewal_scripts, 1);
	script_finish(wire.script);
	hf_lock_close(stock);
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
}

static void unanswered_renewal_is_repeated_on_the_next_connection(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_GRANT,          S_EXPECT_RENEWAL,       S_CLOSE,
		S_RECONNECTED, S_EXPECT_RENEWAL, S_SEND("*1\r\n:1\r\n"), S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 3000));
	wire_acquire(&wire);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	wire_release(&wire);
	assert_int_equal(stats_of(wire.client).renewal_failures, 1);
	wire_finish(&wire);
}

static void count_lost(void *arg, const hf_event *event)
{
	if (hf_event_state(event) == HF_LOST)
		++*(atomic_int *)arg;
}

static void server_that_came_back_empty_is_noticed_at_once(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_GRANT, S_CLOSE, S_RECONNECTED, S_EXPECT_RENEWAL, S_SEND("*1\r\n:0\r\n"),
		S_END,
	};
	atomic_int losses = 0;
	struct wire wire =
		wire_start(steps, HF_CLIENT(.on_event = count_lost, .event_arg = &losses));
	int rc = hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
	assert_true(rc == 0 ||
	            rc == HF_ELOST); /* the loss may come before this thread runs again */
	WAIT_UNTIL(losses == 1, PATIENCE_MS);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_LOST);
	wire_finish(&wire);
}

static void connection_is_given_up_at_the_command_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,        S_EXPECT_ASK, S_RECONNECTED,   S_EXPECT_ASK, S_ON(0),
		S_EXPECT_CLOSE, S_ON(1),      S_SEND(GRANTED), S_RELEASE,    S_END,
	};
	wire_play(steps, HF_CLIENT(.command_timeout_ms = 150), 1);
}

/* Half of the reply was read before the connection was given up. */
static void late_bytes_do_not_answer_the_next_command(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_EXPECT_ASK,     S_SEND("_\r"),    S_RECONNECTED,
		S_EXPECT_ASK,  S_SEND(GRANTED),  S_EXPECT_RELEASE, S_SEND(":"),
		S_RECONNECTED, S_EXPECT_RELEASE, S_SEND(GONE),     S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.command_timeout_ms = 150));
	wire_acquire(&wire);
	EXPECT_RC(&wire, 0, hf_lock_release_with(wire.lock, HF_RELEASE(.wait_ms = PATIENCE_MS)));
	wire_finish(&wire);
}

static void unanswered_ask_at_the_deadline_is_unknown_and_settled(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,         S_EXPECT_ASK,
		S_CAPTURE(0, 5), S_STALL,
		S_SEND(GRANTED), S_EXPECT_RELEASE,
		S_CAPTURE(1, 4), S_SEND(RELEASED),
		S_EXPECT_ASK,    S_SEND("-ERR <${0}> <${1}>\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 100)));
	EXPECT_DETAIL("not answered in 1"); /* 100 ms or somewhat more */
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_FREE);
	script_continue(wire.script);
	EXPECT_RC(&wire, HF_EREFUSED,
	          hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	owners_are_equal(hf_error_detail());
	wire_finish(&wire);
}

static void play_after_a_vain_ask(const struct script_step *steps)
{
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 100)));
	script_continue(wire.script);
	wire_acquire(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

static void unanswered_ask_that_was_turned_down_needs_no_settling(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_EXPECT_ASK, S_STALL, S_SEND(HELD), S_GRANT, S_RELEASE, S_END,
	};
	play_after_a_vain_ask(steps);
}

static void unanswered_ask_is_settled_on_the_next_connection(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_EXPECT_ASK, S_STALL, S_CLOSE,   S_RECONNECTED,
		S_EXPECT_RELEASE, S_SEND(GONE), S_GRANT, S_RELEASE, S_END,
	};
	play_after_a_vain_ask(steps);
}

static void release_without_a_server_continues_in_the_background(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_GRANT,          S_CLOSE,     S_STALL, S_RECONNECTED,
		S_EXPECT_RELEASE, S_SEND(RELEASED), S_QUIET(50), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_release_with(wire.lock, HF_RELEASE(.wait_ms = 100)));
	assert_int_equal(hf_lock_remaining(wire.lock, NULL), 0);
	EXPECT_RC(&wire, HF_ENOTHELD, hf_lock_release(wire.lock));
	script_continue(wire.script);
	wire_finish(&wire);
}

/* ---- the old connection ---- */

#define S_EXPECT_KILL S_EXPECT("CLIENT", "KILL", "ID", "1", "ADDR", "*")

/* Requests may still be in flight on it, and must not be executed later. */
static void connection_that_was_given_up_is_killed_first(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_EXPECT_ASK, S_RECONNECTED, S_EXPECT_KILL,
		S_SEND(":1\r\n"), S_GRANT,      S_RELEASE,     S_END,
	};
	wire_play_on(script_start_tcp(steps), HF_CLIENT(.command_timeout_ms = 150), 1);
}

static void refused_kill_does_no_harm(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_RECONNECTED,
		S_EXPECT_KILL,
		S_SEND("-NOPERM this user has no permissions to run the 'client|kill' command\r\n"),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	wire_play_on(script_start_tcp(steps), HF_CLIENT(.command_timeout_ms = 150), 1);
}

static void old_connection_is_killed_even_if_an_attempt_fails_in_between(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_EXPECT_ASK,     S_ACCEPT, S_CLOSE,   S_RECONNECTED,
		S_EXPECT_KILL, S_SEND(":1\r\n"), S_GRANT,  S_RELEASE, S_END,
	};
	wire_play_on(script_start_tcp(steps), HF_CLIENT(.command_timeout_ms = 150), 1);
}

/* Checks what the next greeting kills after this reply to CLIENT INFO; NULL: nothing. */
static void check_killed(const char *info, const char *id, const char *address, bool tcp)
{
	static const char hello[] = "%2\r\n+version\r\n+7.0.0\r\n+id\r\n:7\r\n";
	const struct script_step killed[] = {
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_SEND(hello),
		S_SEND_BYTES(info, strlen(info)),
		S_EXPECT_ASK,
		S_RECONNECTED,
		S_EXPECT("CLIENT", "KILL", "ID", id, "ADDR", address),
		S_SEND(":1\r\n"),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	const struct script_step left_alone[] = {
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_SEND(hello),
		S_SEND_BYTES(info, strlen(info)),
		S_EXPECT_ASK,
		S_RECONNECTED,
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	const struct script_step *steps = id ? killed : left_alone;
	wire_play_on(tcp ? script_start_tcp(steps) : script_start(steps),
	             HF_CLIENT(.command_timeout_ms = 150), 1);
}

/*
 * With a proxy in between it is not our own address, and over a unix socket it identifies nothing.
 */
static void old_connection_is_killed_by_the_address_that_the_server_sees(void **state)
{
	(void)state;
	check_killed(INFO, "7", "10.0.0.9:41234", true);
	check_killed(INFO, "7", "10.0.0.9:41234", false);
	check_killed("$31\r\nid=7 addr=[2001:db8::7]:50 db=0\r\n", "7", "[2001:db8::7]:50", true);
	check_killed("=27\r\ntxt:addr=10.0.0.9:5 id=7 x=\r\n", "7", "10.0.0.9:5", true);
	check_killed("$27\r\nid=7 addr=/run/redis.sock:0\r\n", NULL, NULL, false);
	check_killed("$27\r\nid=7 addr=/run/redis.sock:0\r\n", NULL, NULL, true);
	check_killed("$20\r\nid=7 addr=redis.s:0 \r\n", NULL, NULL, true);
	/* A number that is not that of HELLO means that connections are shared. */
	check_killed("$20\r\nid=8 addr=10.0.0.9:5\r\n", NULL, NULL, true);
}

/* The reply to HELLO has the number, and our own address is used. */
static void old_connection_is_killed_without_the_right_to_ask_for_its_address(void **state)
{
	(void)state;
	static const char *const answers[] = {
		"-NOPERM this user has no permissions to run the 'client|info' command\r\n",
		"-ERR unknown subcommand 'INFO'. Try CLIENT HELP.\r\n",
		"+OK\r\n",
		"_\r\n",
		":7\r\n",
		"$0\r\n\r\n",
		"$4\r\nid=7\r\n",
		"$15\r\naddr=10.0.0.9:5\r\n",
		"$12\r\nid=7 addr= x\r\n",
		"*1\r\n$15\r\naddr=10.0.0.9:5\r\n",
	};
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		check_killed(answers[i], "7", "*", true);
		check_killed(answers[i], NULL, NULL, false);
	}
}

/* A proxy in between may have closed it. */
static void connection_that_was_closed_at_the_other_end_is_killed_too(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_EXPECT_ASK, S_CLOSE,   S_RECONNECTED, S_EXPECT_KILL,
		S_SEND(":0\r\n"), S_GRANT,      S_RELEASE, S_END,
	};
	wire_play_on(script_start_tcp(steps), NULL, 1);
}

static void reset_is_like_a_close(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_GRANT,          S_EXPECT_RELEASE, S_RESET,      S_RECONNECTED,
		S_EXPECT_KILL, S_SEND(":0\r\n"), S_EXPECT_RELEASE, S_SEND(GONE), S_END,
	};
	wire_play_on(script_start_tcp(steps), NULL, 1);
}

/* ---- queries ---- */

static void unanswered_query_is_repeated(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
		S_SEND("*3\r\n:77\r\n:0\r\n$3\r\na:1\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	int64_t ttl = 0;
	EXPECT_RC(&wire, 0, hf_lock_ttl(wire.lock, &ttl));
	assert_int_equal(ttl, 77);
	wire_finish(&wire);
}

/* A repeat could remove the lock of a later holder. */
static void force_is_not_repeated(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_EXPECT("EVALSHA", "*", "1", "orders", "0", "PUBLISH", CHANNEL),
		S_CLOSE, S_RECONNECTED,
		S_PING,  S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_force_release(wire.lock, NULL));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	wire_finish(&wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unanswered_ask_is_repeated_for_the_same_owner),
		cmocka_unit_test(unanswered_ask_that_was_granted_is_a_grant),
		cmocka_unit_test(unanswered_attempt_without_wait_asks_again),
		cmocka_unit_test(unanswered_nested_ask_is_repeated_with_the_same_count),
		cmocka_unit_test(unanswered_release_is_repeated_and_gone_is_success),
		cmocka_unit_test(gone_without_a_loss_of_replies_is_lost),
		cmocka_unit_test(gone_to_a_nested_ask_is_lost),
		cmocka_unit_test(unanswered_release_of_one_level_is_repeated_with_the_same_count),
		cmocka_unit_test(all_holds_are_renewed_at_once_after_a_reconnect),
		cmocka_unit_test(unanswered_renewal_is_repeated_on_the_next_connection),
		cmocka_unit_test(server_that_came_back_empty_is_noticed_at_once),
		cmocka_unit_test(connection_is_given_up_at_the_command_timeout),
		cmocka_unit_test(late_bytes_do_not_answer_the_next_command),
		cmocka_unit_test(unanswered_ask_at_the_deadline_is_unknown_and_settled),
		cmocka_unit_test(unanswered_ask_that_was_turned_down_needs_no_settling),
		cmocka_unit_test(unanswered_ask_is_settled_on_the_next_connection),
		cmocka_unit_test(release_without_a_server_continues_in_the_background),
		cmocka_unit_test(connection_that_was_given_up_is_killed_first),
		cmocka_unit_test(refused_kill_does_no_harm),
		cmocka_unit_test(old_connection_is_killed_even_if_an_attempt_fails_in_between),
		cmocka_unit_test(old_connection_is_killed_by_the_address_that_the_server_sees),
		cmocka_unit_test(old_connection_is_killed_without_the_right_to_ask_for_its_address),
		cmocka_unit_test(connection_that_was_closed_at_the_other_end_is_killed_too),
		cmocka_unit_test(reset_is_like_a_close),
		cmocka_unit_test(unanswered_query_is_repeated),
		cmocka_unit_test(force_is_not_repeated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
