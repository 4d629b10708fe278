/* Waiting for a lock: the subscription, the asks around it, and the messages that end the wait. */
#include "wire/wire.h"

static void subscription_and_second_ask_travel_together(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,   S_BUSY, S_EXPECT_SUBSCRIBE, S_EXPECT_ASK, S_SEND(SUBSCRIBED GRANTED),
		S_RELEASE, S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	wire_release(&wire);
	assert_int_equal(stats_of(wire.client).attempts, 2);
	wire_finish(&wire);
}

static void message_leads_to_a_third_ask(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_MAKE_WAIT, S_QUIET(30), S_SEND(MESSAGE), S_GRANT, S_RELEASE, S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	wire_release(&wire);
	assert_int_equal(stats_of(wire.client).wakeups, 1);
	wire_finish(&wire);
}

static void message_is_only_a_hint(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_MAKE_WAIT, S_SEND(MESSAGE), S_BUSY, S_QUIET(30), S_SEND(MESSAGE MESSAGE),
		S_GRANT, S_RELEASE,   S_END,
	};
	wire_play(steps, NULL, 1);
}

static void expiry_of_the_lease_leads_to_an_ask(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_BUSY,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND(SUBSCRIBED ":60\r\n"),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	long long began_at = test_now_ms();
	wire_acquire(&wire);
	assert_true(test_now_ms() - began_at >= 60);
	wire_release(&wire);
	wire_finish(&wire);
}

static void unknown_pushes_are_ignored(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_MAKE_WAIT,
		S_SEND(">3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\n0\r\n"),
		S_SEND(">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$31\r\n" CHANNEL "\r\n$1\r\n0\r\n"),
		S_SEND(">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\norders\r\n"),
		S_SEND(">2\r\n$6\r\nfuture\r\n_\r\n"),
		S_SEND(">1\r\n$7\r\nmessage\r\n"),
		S_SEND(">3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n"),
		S_SEND(">0\r\n"),
		S_QUIET(50),
		S_SEND(MESSAGE),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	wire_play(steps, NULL, 1);
}

/* Redis sends our own message before the script's reply, Valkey after it. */
static void own_message_does_no_harm(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_MAKE_WAIT,      S_SEND(MESSAGE),
		S_GRANT, S_EXPECT_RELEASE, S_SEND(MESSAGE RELEASED),
		S_GRANT, S_EXPECT_RELEASE, S_SEND(RELEASED MESSAGE),
		S_GRANT, S_RELEASE,        S_END,
	};
	wire_play(steps, NULL, 3);
}

static void subscription_ends_a_moment_after_the_last_waiter(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_MAKE_WAIT,
		S_SEND(MESSAGE),
		S_GRANT,
		S_RELEASE,
		S_QUIET(500),
		S_EXPECT_UNSUBSCRIBE,
		S_SEND(UNSUBSCRIBED),
		S_QUIET(50),
		S_STALL,
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	wire_release(&wire);
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	script_continue(wire.script);
	wire_acquire(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

static void next_waiter_uses_the_existing_subscription(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,   S_MAKE_WAIT, S_SEND(MESSAGE),      S_GRANT,
		S_RELEASE, S_BUSY,      S_QUIET(30),          S_SEND(MESSAGE),
		S_GRANT,   S_RELEASE,   S_EXPECT_UNSUBSCRIBE, S_SEND(UNSUBSCRIBED),
		S_END,
	};
	wire_play(steps, NULL, 2);
}

static void waiter_during_the_unsubscribe_subscribes_again(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_MAKE_WAIT,
		S_SEND(MESSAGE),
		S_GRANT,
		S_RELEASE,
		S_EXPECT_UNSUBSCRIBE,
		S_STALL,
		S_EXPECT_ASK,
		S_SEND(UNSUBSCRIBED HELD),
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND(SUBSCRIBED HELD MESSAGE),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct done done = {0};
	hf_owner *owner = new_owner();
	wire_acquire(&wire);
	wire_release(&wire);
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	EXPECT_RC(&wire, 0,
	          hf_lock_acquire_async(wire.lock,
	                                HF_ACQUIRE(.owner = owner, .wait_ms = PATIENCE_MS),
	                                note_done, &done));
	script_continue(wire.script);
	WAIT_DONE(&wire, 0, &done);
	EXPECT_RC(&wire, 0, hf_lock_release_with(wire.lock, HF_RELEASE(.owner = owner)));
	wire_finish(&wire);
	hf_owner_free(owner);
}

/* A lock that was held for 50 ms is not handed over to the next waiter. */
static void waiters_of_one_process_ask_one_at_a_time(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_MAKE_WAIT,  S_STALL, S_QUIET(50),      S_SEND(MESSAGE),
		S_GRANT, S_QUIET(200), S_STALL, S_EXPECT_RELEASE, S_SEND(MESSAGE RELEASED),
		S_GRANT, S_RELEASE,    S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct done done[2] = {0};
	hf_owner *owners[2] = {new_owner(), new_owner()};
	for (int i = 0; i < 2; i++) {
		EXPECT_RC(&wire, 0,
		          hf_lock_acquire_async(
				  wire.lock, HF_ACQUIRE(.owner = owners[i], .wait_ms = PATIENCE_MS),
				  note_done, &done[i]));
		WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	}
	script_continue(wire.script);
	for (int i = 0; i < 2; i++) {
		WAIT_DONE(&wire, 0, &done[i]);
		if (i == 0)
			WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
		script_continue(wire.script);
		EXPECT_RC(&wire, 0,
		          hf_lock_release_with(wire.lock, HF_RELEASE(.owner = owners[i])));
	}
	wire_finish(&wire);
	hf_owner_free(owners[0]);
	hf_owner_free(owners[1]);
}

static void refused_subscription_ends_the_wait(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_BUSY,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND("-NOPERM No permissions to access a channel\r\n" HELD),
		S_QUIET(50),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EDENIED,
	          hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	EXPECT_DETAIL("orders");
	EXPECT_DETAIL("NOPERM No permissions to access a channel");
	wire_finish(&wire);
}

static void grant_after_a_refused_subscription_is_given_back(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_BUSY,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND("-NOPERM No permissions to access a channel\r\n" GRANTED),
		S_RELEASE,
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EDENIED,
	          hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	wire_acquire(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

static void subscription_not_possible_now_is_tried_again(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_BUSY,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND("-BUSY Redis is busy running a script.\r\n" HELD),
		S_EXPECT_SUBSCRIBE,
		S_SEND("-BUSY Redis is busy running a script.\r\n"),
		S_EXPECT_SUBSCRIBE,
		S_SEND(SUBSCRIBED),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	wire_play(steps, NULL, 1);
}

static void reconnect_subscribes_again_and_asks_again(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_MAKE_WAIT,
		S_CLOSE,
		S_RECONNECTED,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND(SUBSCRIBED HELD),
		S_QUIET(30),
		S_SEND(MESSAGE),
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	wire_release(&wire);
	assert_int_equal(stats_of(wire.client).reconnects, 1);
	wire_finish(&wire);
}

static void timeout_is_followed_only_by_an_unsubscribe(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,     S_MAKE_WAIT, S_QUIET(600), S_EXPECT_UNSUBSCRIBE, S_SEND(UNSUBSCRIBED),
		S_QUIET(50), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_ETIMEDOUT, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 100)));
	EXPECT_DETAIL("orders");
	wire_finish(&wire);
}

static void attempt_without_wait_does_not_subscribe(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_BUSY, S_QUIET(50), S_END};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EBUSY, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	EXPECT_DETAIL("30000 ms left");
	wire_finish(&wire);
}

static void cancel_ends_the_wait(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_MAKE_WAIT, S_STALL, S_QUIET(50), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	struct done done = {0};
	hf_owner *owner = new_owner();
	hf_cancel *cancel = NULL;
	EXPECT_RC(&wire, 0, hf_cancel_new(&cancel));
	EXPECT_RC(&wire, 0,
	          hf_lock_acquire_async(wire.lock, HF_ACQUIRE(.owner = owner, .cancel = cancel),
	                                note_done, &done));
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	hf_cancel_fire(cancel);
	WAIT_UNTIL(done.calls == 1, PATIENCE_MS);
	assert_int_equal(done.result, HF_ECANCELLED);
	script_continue(wire.script);
	wire_finish(&wire);
	hf_cancel_free(cancel);
	hf_owner_free(owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subscription_and_second_ask_travel_together),
		cmocka_unit_test(message_leads_to_a_third_ask),
		cmocka_unit_test(message_is_only_a_hint),
		cmocka_unit_test(expiry_of_the_lease_leads_to_an_ask),
		cmocka_unit_test(unknown_pushes_are_ignored),
		cmocka_unit_test(own_message_does_no_harm),
		cmocka_unit_test(subscription_ends_a_moment_after_the_last_waiter),
		cmocka_unit_test(next_waiter_uses_the_existing_subscription),
		cmocka_unit_test(waiter_during_the_unsubscribe_subscribes_again),
		cmocka_unit_test(waiters_of_one_process_ask_one_at_a_time),
		cmocka_unit_test(refused_subscription_ends_the_wait),
		cmocka_unit_test(grant_after_a_refused_subscription_is_given_back),
		cmocka_unit_test(subscription_not_possible_now_is_tried_again),
		cmocka_unit_test(reconnect_subscribes_again_and_asks_again),
		cmocka_unit_test(timeout_is_followed_only_by_an_unsubscribe),
		cmocka_unit_test(attempt_without_wait_does_not_subscribe),
		cmocka_unit_test(cancel_ends_the_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
