/* Every timeout is kept. */
#include "wire/wire.h"

#define SLACK_MS 500 /* on a busy machine; a timeout that passed twice would take longer */

#define EXPECT_LASTED(began_at, wanted_ms)                                                         \
	do {                                                                                       \
		long long lasted_ = test_now_ms() - (began_at);                                    \
		if (lasted_ < (wanted_ms)-1 || lasted_ > (wanted_ms) + SLACK_MS)                   \
			fail_msg("lasted %lld ms, expected %d", lasted_, wanted_ms);               \
	} while (0)

static void expect_no_greeting(const struct script_step *steps)
{
	struct wire wire = {.script = script_start(steps)};
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_EUNREACHABLE,
	          hf_client_open(script_url(wire.script), HF_CLIENT(.connect_timeout_ms = 600),
	                         &wire.client));
	EXPECT_LASTED(began_at, 600);
	EXPECT_DETAIL("no answer in 600 ms");
	script_finish(wire.script);
}

static void silent_server_costs_the_connect_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_EXPECT("HELLO", "..."), S_EXPECT_INFO,
	                                           S_EXPECT_CLOSE, S_END};
	expect_no_greeting(steps);
}

static void server_that_stops_in_the_greeting_costs_the_connect_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "..."), S_EXPECT_INFO, S_SEND("%7\r\n$6\r\nserver\r\n$5\r\nred"),
		S_EXPECT_CLOSE,           S_END,
	};
	expect_no_greeting(steps);
}

static void server_that_drips_costs_the_connect_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_SEND("%7\r\n"),
		S_DELAY(100),
		S_SEND("+a\r\n"),
		S_DELAY(100),
		S_SEND("+b\r\n"),
		S_EXPECT_CLOSE,
		S_END,
	};
	expect_no_greeting(steps);
}

static void server_that_does_not_select_costs_the_connect_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_EXPECT("SELECT", "3"), S_EXPECT_CLOSE,
	                                           S_END};
	struct wire wire = {.script = script_start(steps)};
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_EUNREACHABLE,
	          hf_client_open(script_url(wire.script),
	                         HF_CLIENT(.database = 3, .connect_timeout_ms = 600),
	                         &wire.client));
	EXPECT_LASTED(began_at, 600);
	script_finish(wire.script);
}

static void unanswered_query_costs_the_command_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_EXPECT("PING"), S_END};
	struct wire wire = wire_start(steps, HF_CLIENT(.command_timeout_ms = 600));
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_EUNREACHABLE, hf_client_ping(wire.client, NULL));
	EXPECT_LASTED(began_at, 600);
	wire_finish(&wire);
}

/* There is no pause before the first attempt after a connection that worked. */
static void unanswered_command_costs_the_connection_at_its_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_PING, S_EXPECT_ASK, S_RECONNECTED, S_GRANT, S_RELEASE, S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.command_timeout_ms = 600));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	long long began_at = test_now_ms();
	wire_acquire(&wire);
	EXPECT_LASTED(began_at, 600);
	wire_release(&wire);
	wire_finish(&wire);
}

/* A ninth of the lease, if that is less than the command timeout. */
static void short_lease_shortens_the_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_PING, S_EXPECT_ASK, S_RECONNECTED, S_GRANT, S_RELEASE, S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, 0,
	          hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS, .lease_ms = 5400)));
	EXPECT_LASTED(began_at, 600);
	wire_release(&wire);
	wire_finish(&wire);
}

static void unconfirmed_subscription_costs_the_connection_at_its_timeout(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_BUSY,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_RECONNECTED,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND(SUBSCRIBED GRANTED),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.subscribe_timeout_ms = 600));
	long long began_at = test_now_ms();
	wire_acquire(&wire);
	EXPECT_LASTED(began_at, 600);
	wire_release(&wire);
	wire_finish(&wire);
}

static void wait_returns_on_time_while_an_ask_is_unanswered(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_EXPECT_ASK, S_STALL, S_SEND(GRANTED), S_RELEASE, S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 600)));
	EXPECT_LASTED(began_at, 600);
	script_continue(wire.script);
	wire_finish(&wire);
}

static void wait_returns_on_time_while_the_lock_is_held(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_MAKE_WAIT, S_END};
	struct wire wire = wire_start(steps, NULL);
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_ETIMEDOUT, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 600)));
	EXPECT_LASTED(began_at, 600);
	wire_finish(&wire);
}

static void wait_returns_on_time_without_a_server(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_MAKE_WAIT, S_CLOSE, S_STALL, S_END};
	struct wire wire = wire_start(steps, NULL);
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_EUNREACHABLE, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 600)));
	EXPECT_LASTED(began_at, 600);
	script_continue(wire.script);
	wire_finish(&wire);
}

static void release_returns_on_time_without_an_answer(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_GRANT, S_EXPECT_RELEASE, S_STALL, S_SEND(RELEASED), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_release_with(wire.lock, HF_RELEASE(.wait_ms = 600)));
	EXPECT_LASTED(began_at, 600);
	script_continue(wire.script);
	wire_finish(&wire);
}

static void close_takes_a_second_at_most(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_GRANT, S_EXPECT_RELEASE, S_EXPECT_CLOSE, S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	long long began_at = test_now_ms();
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
	EXPECT_LASTED(began_at, 1000);
	script_finish(wire.script);
}

static void renewals_are_sent_at_a_third_of_the_lease(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT_RENEWAL,
		S_SEND("*1\r\n:1\r\n"),
		S_EXPECT_NEXT_RENEWAL,
		S_SEND("*1\r\n:1\r\n"),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 1800));
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	for (uint64_t i = 1; i <= 2; i++) {
		WAIT_UNTIL(stats_of(wire.client).renewals == i, PATIENCE_MS);
		assert_in_range(test_now_ms() - began_at, 600 * i - 80 * i, 600 * i + SLACK_MS);
	}
	wire_release(&wire);
	wire_finish(&wire);
}

static void hold_for_two_renewals(const struct script_step *steps)
{
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 4000));
	wire_acquire(&wire);
	WAIT_UNTIL(stats_of(wire.client).renewals == 2, PATIENCE_MS);
	assert_int_equal(stats_of(wire.client).renewal_failures, 0);
	wire_release(&wire);
	wire_finish(&wire);
}

/* A try is limited to a ninth of the lease: one slow round trip fits, two do not. */
static void first_renewal_of_a_connection_takes_one_slow_round_trip(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT_RENEWAL,
		S_DELAY(250),
		S_SEND("*1\r\n:1\r\n"),
		S_EXPECT_NEXT_RENEWAL,
		S_DELAY(250),
		S_SEND("*1\r\n:1\r\n"),
		S_RELEASE,
		S_END,
	};
	hold_for_two_renewals(steps);
}

/* The server has answered and executed nothing, so the repeat gets the full time. */
static void script_that_is_sent_again_has_its_full_time(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_DELAY(250),
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "4000", "*", "1"),
		S_DELAY(250),
		S_SEND(GRANTED),
		S_EXPECT_RENEWAL,
		S_SEND("*1\r\n:1\r\n"),
		S_EXPECT_NEXT_RENEWAL,
		S_DELAY(250),
		S_SEND(NOSCRIPT),
		S_EXPECT_RENEWAL,
		S_DELAY(250),
		S_SEND("*1\r\n:1\r\n"),
		S_RELEASE,
		S_END,
	};
	hold_for_two_renewals(steps);
}

/* The first attempt after a connection that worked is short, and each failure doubles the limit. */
static void attempts_to_reconnect_grow_until_one_is_long_enough(void **state)
{
	(void)state;
	static const char hello[] = "%1\r\n+version\r\n+7.0.0\r\n";
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_CLOSE,
		S_ACCEPT,
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_EXPECT_CLOSE,
		S_ACCEPT,
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_DELAY(350),
		S_SEND(hello),
		S_SEND(INFO),
		S_EXPECT_RENEWAL,
		S_SEND("*1\r\n:1\r\n"),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 2000));
	wire_acquire(&wire);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	wire_release(&wire);
	wire_finish(&wire);
}

#define S_ATTEMPT S_ACCEPT, S_EXPECT("HELLO", "..."), S_EXPECT_INFO, S_EXPECT_CLOSE

/* No attempt takes more than half of the time that is left, so there is time for a third. */
static void attempts_to_reconnect_leave_a_holder_time_for_further_ones(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,   S_GRANT,   S_CLOSE,       S_ATTEMPT,        S_ATTEMPT,
		S_ATTEMPT, S_ATTEMPT, S_RECONNECTED, S_EXPECT_RENEWAL, S_SEND("*1\r\n:1\r\n"),
		S_RELEASE, S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 2000));
	wire_acquire(&wire);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	assert_int_equal(stats_of(wire.client).losses, 0);
	wire_release(&wire);
	wire_finish(&wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_server_costs_the_connect_timeout),
		cmocka_unit_test(server_that_stops_in_the_greeting_costs_the_connect_timeout),
		cmocka_unit_test(server_that_drips_costs_the_connect_timeout),
		cmocka_unit_test(server_that_does_not_select_costs_the_connect_timeout),
		cmocka_unit_test(unanswered_query_costs_the_command_timeout),
		cmocka_unit_test(unanswered_command_costs_the_connection_at_its_timeout),
		cmocka_unit_test(short_lease_shortens_the_timeout),
		cmocka_unit_test(unconfirmed_subscription_costs_the_connection_at_its_timeout),
		cmocka_unit_test(wait_returns_on_time_while_an_ask_is_unanswered),
		cmocka_unit_test(wait_returns_on_time_while_the_lock_is_held),
		cmocka_unit_test(wait_returns_on_time_without_a_server),
		cmocka_unit_test(release_returns_on_time_without_an_answer),
		cmocka_unit_test(close_takes_a_second_at_most),
		cmocka_unit_test(renewals_are_sent_at_a_third_of_the_lease),
		cmocka_unit_test(first_renewal_of_a_connection_takes_one_slow_round_trip),
		cmocka_unit_test(script_that_is_sent_again_has_its_full_time),
		cmocka_unit_test(attempts_to_reconnect_grow_until_one_is_long_enough),
		cmocka_unit_test(attempts_to_reconnect_leave_a_holder_time_for_further_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
