/*
 * Servers that reply wrongly: a clear error or a new connection, never a crash, a hang or a leak.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "wire/wire.h"

/* The connection is given up, and the next one works as usual. */
static const char *const garbage[] = {
	"hello?\r\n",
	"\r\n",
	"*2\r\n",                   /* never complete, but the server closes */
	"$99999999999999\r\n",      /* a bulk string larger than any reply can be */
	"$65537\r\n",               /* just above the cap */
	"*1025\r\n",                /* too many elements */
	"%9223372036854775807\r\n", /* overflow when doubled */
	"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	"$-2\r\n",
	":12x\r\n",
	":99999999999999999999\r\n",
	"_x\r\n",
	"$3\r\nabcd\r\n",
	"+OK\n",
	"$?\r\n",
	"*?\r\n",
	"\xff\xfe\xfd\r\n",
	"*1\r\n>1\r\n+x\r\n",
};

static void invalid_bytes_cost_only_the_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
		size_t length = strlen(garbage[i]);
		const struct script_step steps[] = {
			S_HELLO,
			S_EXPECT_ASK,
			S_SEND_BYTES(garbage[i], length),
			S_CLOSE,
			S_RECONNECTED,
			S_GRANT,
			S_EXPECT_RELEASE,
			S_SEND_BYTES(garbage[i], length),
			S_CLOSE,
			S_RECONNECTED,
			S_EXPECT_RELEASE,
			S_SEND(GONE),
			S_END,
		};
		wire_play(steps, NULL, 1);
	}
}

static void reply_without_a_request_costs_only_the_connection(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,       S_EXPECT_ASK,     S_SEND(GRANTED ":1\r\n"), S_EXPECT_CLOSE,
		S_RECONNECTED, S_EXPECT_RENEWAL, S_SEND("*1\r\n:1\r\n"),   S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	wire_acquire(&wire);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	wire_release(&wire);
	wire_finish(&wire);
}

static void confirmation_without_a_request_costs_only_the_connection(void **state)
{
	(void)state;
	static const char *const pushes[] = {SUBSCRIBED, UNSUBSCRIBED};
	for (int i = 0; i < 2; i++) {
		const struct script_step steps[] = {
			S_HELLO,        S_EXPECT_ASK,  S_SEND_BYTES(pushes[i], strlen(pushes[i])),
			S_EXPECT_CLOSE, S_RECONNECTED, S_GRANT,
			S_RELEASE,      S_END,
		};
		wire_play(steps, NULL, 1);
	}
}

static void unconfirmed_subscription_costs_only_the_connection(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_BUSY,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND("+OK\r\n"),
		S_EXPECT_CLOSE,
		S_RECONNECTED,
		S_EXPECT_SUBSCRIBE,
		S_EXPECT_ASK,
		S_SEND(SUBSCRIBED GRANTED),
		S_RELEASE,
		S_END,
	};
	wire_play(steps, NULL, 1);
}

/*
 * Valid RESP that does not fit the request. The command may have been executed, so it is repeated.
 */
static void wrong_type_of_reply_to_an_ask_costs_only_the_connection(void **state)
{
	(void)state;
	static const char *const answers[] = {
		"+OK\r\n",
		"$2\r\nOK\r\n",
		"$0\r\n\r\n",
		"$1\r\n7\r\n", /* a token, which was not wanted */
		"*0\r\n",
		"*2\r\n$4\r\ngone\r\n:1\r\n",
		"*2\r\n$5\r\nother\r\n$0\r\n\r\n",
		"*3\r\n$4\r\ngone\r\n$0\r\n\r\n$0\r\n\r\n",
		"%1\r\n+a\r\n+b\r\n",
		"#t\r\n",
		",1.5\r\n",
		"(123\r\n",
		"~1\r\n:1\r\n",
	};
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		const struct script_step steps[] = {
			S_HELLO,        S_EXPECT_ASK,  S_SEND_BYTES(answers[i], strlen(answers[i])),
			S_EXPECT_CLOSE, S_RECONNECTED, S_GRANT,
			S_RELEASE,      S_END,
		};
		wire_play(steps, NULL, 1);
	}
}

static void wrong_type_of_reply_to_a_query_costs_only_the_connection(void **state)
{
	(void)state;
	static const char *const answers[] = {
		"*0\r\n",
		":5\r\n",
		"*3\r\n:1\r\n:1\r\n:1\r\n",
		"*3\r\n$1\r\n1\r\n:1\r\n$1\r\na\r\n",
		"*4\r\n:1\r\n:1\r\n$1\r\na\r\n:1\r\n",
		"_\r\n",
		"*2\r\n+gone\r\n+x\r\n",
	};
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		const struct script_step steps[] = {
			S_HELLO,
			S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
			S_SEND_BYTES(answers[i], strlen(answers[i])),
			S_EXPECT_CLOSE,
			S_RECONNECTED,
			S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
			S_SEND("*3\r\n:77\r\n:0\r\n$3\r\na:1\r\n"),
			S_END,
		};
		struct wire wire = wire_start(steps, NULL);
		int64_t ttl = -7;
		int rc = hf_lock_ttl(wire.lock, &ttl);
		if (rc)
			print_error("case %zu: %s\n", i, answers[i]);
		EXPECT_RC(&wire, 0, rc);
		assert_int_equal(ttl, 77);
		wire_finish(&wire);
	}
}

/* Plays the steps of one connection 12 times, and refuses further ones. */
static void repeat_steps(struct script_step *steps, struct script_step expected, const char *answer)
{
	int n = 0;
	for (int i = 0; i < 12; i++) {
		if (i > 0)
			steps[n++] = (struct script_step)S_ACCEPT;
		steps[n++] = (struct script_step)S_HELLO;
		steps[n++] = expected;
		steps[n++] = (struct script_step)S_SEND_BYTES(answer, strlen(answer));
	}
	steps[n] = (struct script_step)S_END;
}

static void server_that_always_replies_wrongly_is_reported(void **state)
{
	(void)state;
	struct script_step steps[64];
	repeat_steps(steps, (struct script_step)S_EXPECT("PING"), ":1\r\n");
	struct wire wire = wire_start(steps, HF_CLIENT(.command_timeout_ms = 500));
	EXPECT_RC(&wire, HF_EPROTOCOL, hf_client_ping(wire.client, NULL));
	EXPECT_DETAIL("does not fit");
	free(script_join(wire.script, 0));
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
}

/* An ask with a wrong reply may have been granted. */
static void acquire_from_a_server_that_always_replies_wrongly_is_unknown(void **state)
{
	(void)state;
	struct script_step steps[64];
	repeat_steps(steps, (struct script_step)S_EXPECT_ASK, "+OK\r\n");
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 500)));
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_FREE);
	/* The pauses grow, so that a broken server is not flooded with connections. */
	assert_in_range(stats_of(wire.client).reconnects, 2, 8);
	free(script_join(wire.script, 0));
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
}

/* A reply to a renewal that does not mention a hold neither confirms nor loses it. */
static void wrong_type_of_reply_to_a_renewal_is_a_miss(void **state)
{
	(void)state;
	static const char *const answers[] = {"*0\r\n",       "*2\r\n:1\r\n:1\r\n",
	                                      "*1\r\n+1\r\n", ":1\r\n",
	                                      "_\r\n",        "*2\r\n+gone\r\n+\r\n"};
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		const struct script_step steps[] = {
			S_HELLO,
			S_GRANT,
			S_EXPECT_RENEWAL,
			S_SEND_BYTES(answers[i], strlen(answers[i])),
			S_END,
		};
		struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 1800));
		EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
		WAIT_UNTIL(stats_of(wire.client).renewal_failures == 1, PATIENCE_MS);
		assert_int_equal(stats_of(wire.client).renewals, 0);
		assert_int_equal(stats_of(wire.client).losses, 0);
		script_finish(wire.script);
		hf_lock_close(wire.lock);
		assert_int_equal(hf_client_close(wire.client), 0);
	}
}

/* ---- cut and joined ---- */

static void replies_can_arrive_byte_by_byte(void **state)
{
	(void)state;
	static const char *const replies[] = {HELD, SUBSCRIBED HELD, MESSAGE, GRANTED, RELEASED};
	struct script_step steps[256] = {S_HELLO};
	int n = 1;
	for (int i = 0; i < 5; i++) {
		if (i == 1)
			steps[n++] = (struct script_step)S_EXPECT_SUBSCRIBE;
		if (i == 4)
			steps[n++] = (struct script_step)S_EXPECT_RELEASE;
		else if (i != 2)
			steps[n++] = (struct script_step)S_EXPECT_ASK;
		for (const char *at = replies[i]; *at; at++) {
			steps[n++] = (struct script_step)S_SEND_BYTES(at, 1);
			if (n % 4 == 0)
				steps[n++] = (struct script_step)S_DELAY(1);
		}
	}
	assert_true(n < 256);
	steps[n] = (struct script_step)S_END;
	wire_play(steps, NULL, 1);
}

/* Two calls whose replies arrive in one segment. */
static void replies_can_arrive_together(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "a", "*"),
		S_EXPECT("EVALSHA", "*", "1", "b", "*"),
		S_SEND("*3\r\n:1\r\n:0\r\n+x:1\r\n" MESSAGE "*3\r\n:2\r\n:0\r\n+y:1\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	hf_lock *locks[2];
	struct done done[2] = {0};
	for (int i = 0; i < 2; i++) {
		EXPECT_RC(&wire, 0,
		          hf_lock_open(wire.client, HF_REENTRANT, i ? "b" : "a", &locks[i]));
		EXPECT_RC(&wire, 0, hf_lock_ttl_async(locks[i], note_done, &done[i]));
	}
	for (int i = 0; i < 2; i++) {
		WAIT_DONE(&wire, 0, &done[i]);
		assert_int_equal(done[i].number, i + 1);
		hf_lock_close(locks[i]);
	}
	wire_finish(&wire);
}

/*
 * The connection is cut at every byte of both replies; each time the next one settles the outcome.
 */
static void exchange_cut_at_every_byte_succeeds(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < sizeof(GRANTED) - 1; cut++) {
		const struct script_step steps[] = {
			S_HELLO,   S_EXPECT_ASK,  S_SEND_BYTES(GRANTED, cut),
			S_CLOSE,   S_RECONNECTED, S_GRANT,
			S_RELEASE, S_END,
		};
		wire_play(steps, NULL, 1);
	}
	for (size_t cut = 0; cut < sizeof(RELEASED) - 1; cut++) {
		const struct script_step steps[] = {
			S_HELLO, S_GRANT,       S_EXPECT_RELEASE, S_SEND_BYTES(RELEASED, cut),
			S_CLOSE, S_RECONNECTED, S_EXPECT_RELEASE, S_SEND(GONE),
			S_END,
		};
		wire_play(steps, NULL, 1);
	}
}

/* The same for a wait: the connection is cut anywhere, and the next one brings the grant. */
static void wait_cut_at_every_byte_succeeds(void **state)
{
	(void)state;
	static const char replies[] = SUBSCRIBED HELD MESSAGE;
	for (size_t cut = 0; cut < sizeof replies - 1; cut += 3) {
		const struct script_step steps[] = {
			S_HELLO,
			S_BUSY,
			S_EXPECT_SUBSCRIBE,
			S_EXPECT_ASK,
			S_SEND_BYTES(replies, cut),
			S_CLOSE,
			S_RECONNECTED,
			S_EXPECT_SUBSCRIBE,
			S_EXPECT_ASK,
			S_SEND(SUBSCRIBED GRANTED),
			S_RELEASE,
			S_END,
		};
		wire_play(steps, NULL, 1);
	}
}

/* ---- too much ---- */

/* The sanitizers keep freed memory, so nothing can be measured with them. */
static long memory_kb(void)
{
	struct rusage usage;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return 0;
#endif
	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* 15 MB of messages on other channels arrive while a call waits for the lock. */
static void flood_of_messages_is_read_in_bounded_memory(void **state)
{
	(void)state;
	enum { MANY = 4096, TIMES = 32 };
	static const char other[] = ">3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$80\r\n"
				    "0123456789012345678901234567890123456789"
				    "0123456789012345678901234567890123456789\r\n";
	size_t size = sizeof other - 1;
	char *flood = check_alloc(MANY * size);
	for (size_t i = 0; i < MANY; i++)
		memcpy(flood + i * size, other, size);
	struct script_step steps[TIMES + 16] = {S_HELLO, S_MAKE_WAIT};
	int n = 6;
	for (int i = 0; i < TIMES; i++)
		steps[n++] = (struct script_step)S_SEND_BYTES(flood, MANY * size);
	const struct script_step rest[] = {S_SEND(MESSAGE), S_GRANT, S_RELEASE, S_END};
	memcpy(steps + n, rest, sizeof rest);
	struct wire wire = wire_start(steps, NULL);
	long before = memory_kb();
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 30000)));
	wire_release(&wire);
	assert_true(memory_kb() - before < 8192);
	wire_finish(&wire);
	free(flood);
}

/* However many release messages arrive, one ask is in flight at a time. */
static void flood_of_releases_asks_once_at_a_time(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_MAKE_WAIT,
		S_SEND(MESSAGE MESSAGE MESSAGE MESSAGE MESSAGE MESSAGE MESSAGE MESSAGE),
		S_EXPECT_ASK,
		S_QUIET(50),
		S_SEND(MESSAGE MESSAGE GRANTED),
		S_RELEASE,
		S_END,
	};
	wire_play(steps, NULL, 1);
}

/* A flood of pushes does not delay the deadline. */
static void flood_of_pushes_does_not_hold_up_the_deadline(void **state)
{
	(void)state;
	enum { MANY = 20000 };
	size_t size = sizeof(MESSAGE) - 1;
	char *flood = check_alloc(MANY * size);
	for (size_t i = 0; i < MANY; i++)
		memcpy(flood + i * size, MESSAGE, size);
	const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_SEND_BYTES(flood, MANY * size),
		S_SEND_BYTES(flood, MANY * size),
		S_SEND_BYTES(flood, MANY * size),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_EUNKNOWN, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 200)));
	assert_true(test_now_ms() - began_at < 2000);
	wire_finish(&wire);
	free(flood);
}

static void largest_reply_is_read(void **state)
{
	(void)state;
	char *large = check_alloc(65536 + 64);
	int n = sprintf(large, "-ERR ");
	memset(large + n, 'x', 65000);
	strcpy(large + n + 65000, "\r\n");
	const struct script_step steps[] = {
		S_HELLO,          S_EXPECT_ASK, S_SEND_BYTES(large, strlen(large)),
		S_EXPECT_RELEASE, S_SEND(GONE), S_GRANT,
		S_RELEASE,        S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EREFUSED, hf_lock_acquire(wire.lock, NULL));
	EXPECT_DETAIL("ERR xxxx");
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	wire_release(&wire);
	wire_finish(&wire);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_bytes_cost_only_the_connection),
		cmocka_unit_test(reply_without_a_request_costs_only_the_connection),
		cmocka_unit_test(confirmation_without_a_request_costs_only_the_connection),
		cmocka_unit_test(unconfirmed_subscription_costs_only_the_connection),
		cmocka_unit_test(wrong_type_of_reply_to_an_ask_costs_only_the_connection),
		cmocka_unit_test(wrong_type_of_reply_to_a_query_costs_only_the_connection),
		cmocka_unit_test(server_that_always_replies_wrongly_is_reported),
		cmocka_unit_test(acquire_from_a_server_that_always_replies_wrongly_is_unknown),
		cmocka_unit_test(wrong_type_of_reply_to_a_renewal_is_a_miss),
		cmocka_unit_test(replies_can_arrive_byte_by_byte),
		cmocka_unit_test(replies_can_arrive_together),
		cmocka_unit_test(exchange_cut_at_every_byte_succeeds),
		cmocka_unit_test(wait_cut_at_every_byte_succeeds),
		cmocka_unit_test(flood_of_messages_is_read_in_bounded_memory),
		cmocka_unit_test(flood_of_releases_asks_once_at_a_time),
		cmocka_unit_test(flood_of_pushes_does_not_hold_up_the_deadline),
		cmocka_unit_test(largest_reply_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
