/* Error replies: which are retried, which end the call, and what is reported to the caller. */
#include <stdio.h>

#include "wire/wire.h"

#include <stdatomic.h>

#define WRAPPED(error)                                                                             \
	"ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): "          \
	"@user_script:3: " error

static void temporary_error_is_retried(void **state)
{
	(void)state;
	static const char *const errors[] = {
		TEMPORARY_ERRORS,
		"-" WRAPPED("-NOREPLICAS Not enough good replicas to write.") "\r\n",
	};
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		size_t length = strlen(errors[i]);
		const struct script_step steps[] = {
			S_HELLO,
			S_EXPECT_ASK,
			S_SEND_BYTES(errors[i], length),
			S_EXPECT_ASK,
			S_SEND_BYTES(errors[i], length),
			S_GRANT,
			S_EXPECT_RELEASE,
			S_SEND_BYTES(errors[i], length),
			S_RELEASE,
			S_EXPECT("PING"),
			S_SEND_BYTES(errors[i], length),
			S_EXPECT("PING"),
			S_SEND("+PONG\r\n"),
			S_END,
		};
		struct wire wire = wire_start(steps, NULL);
		wire_acquire(&wire);
		wire_release(&wire);
		EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
		wire_finish(&wire);
	}
}

static void temporary_error_is_reported_at_the_deadline(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_SEND("-LOADING Redis is loading the dataset in memory\r\n"),
		S_EXPECT_ASK,
		S_SEND("-LOADING Redis is loading the dataset in memory\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_ENOTNOW, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 150)));
	EXPECT_DETAIL("LOADING Redis is loading");
	wire_finish(&wire);
}

static const struct {
	const char *text; /* NULL: end of the list */
	int error;
} refusals[] = {
	{"READONLY You can't write against a read only replica.", HF_EREADONLY},
	{"MISCONF Redis is configured to save RDB snapshots", HF_EREADONLY},
	{"OOM command not allowed when used memory > 'maxmemory'.", HF_EFULL},
	{"NOPERM this user has no permissions to run the 'evalsha' command", HF_EDENIED},
	{"NOPERM No permissions to access a key", HF_EDENIED},
	{"WRONGTYPE Operation against a key holding the wrong kind of value", HF_ECONFLICT},
	{"MOVED 3999 127.0.0.1:6381", HF_EREFUSED},
	{"ASK 3999 127.0.0.1:6381", HF_EREFUSED},
	{"CROSSSLOT Keys in request don't hash to the same slot", HF_EREFUSED},
	{"NOAUTH Authentication required.", HF_EAUTH},
	{"ERR something nobody knows", HF_EREFUSED},
	{"ERR", HF_EREFUSED},
	{"NEWCODE of a later release", HF_EREFUSED},
	{"WRONGTYPES is another code", HF_EREFUSED},
	{WRAPPED("WRONGTYPE Operation against a key holding"), HF_ECONFLICT},
	{WRAPPED("-READONLY You can't write against a read only replica."), HF_EREADONLY},
	{WRAPPED("-OOM command not allowed when used memory > 'maxmemory'."), HF_EFULL},
	{WRAPPED("-MISCONF Redis is configured to save RDB snapshots"), HF_EREADONLY},
	{WRAPPED("The user executing the script can't run this command or subcommand"), HF_EDENIED},
	{WRAPPED("The user executing the script can't access at least one of the keys"),
         HF_EDENIED},
	{WRAPPED("Script attempted to access a non local key in a cluster node"), HF_EREFUSED},
	{"OOM command not allowed when used memory > 'maxmemory'. script: f_01, on "
         "@user_script:3.",
         HF_EFULL},
};

static void refused_acquire_reports_the_servers_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		char reply[512], said[100];
		(void)snprintf(reply, sizeof reply, "-%s\r\n", refusals[i].text);
		(void)snprintf(said, sizeof said, "%s", refusals[i].text);
		/*
		 * A missing right may have stopped the script half-way, so the hold is removed
		 * once.
		 */
		bool settles = refusals[i].error == HF_EDENIED || refusals[i].error == HF_EREFUSED;
		const struct script_step steps[] = {
			S_HELLO,
			S_EXPECT_ASK,
			S_SEND_BYTES(reply, strlen(reply)),
			S_EXPECT_RELEASE,
			S_SEND(GONE),
			S_QUIET(10),
			S_END,
		};
		const struct script_step quiet[] = {
			S_HELLO,     S_EXPECT_ASK, S_SEND_BYTES(reply, strlen(reply)),
			S_QUIET(10), S_END,
		};
		struct wire wire = wire_start(settles ? steps : quiet, NULL);
		int rc = hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
		if (rc != refusals[i].error)
			print_error("case %zu: %s\n", i, refusals[i].text);
		EXPECT_RC(&wire, refusals[i].error, rc);
		EXPECT_DETAIL(said);
		EXPECT_DETAIL("orders");
		assert_int_equal(hf_lock_state(wire.lock, NULL), HF_FREE);
		wire_finish(&wire);
	}
}

static void bulk_error_is_an_error_too(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_SEND("!18\r\nREADONLY sorry \r\n \r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EREADONLY, hf_lock_acquire(wire.lock, NULL));
	wire_finish(&wire);
}

static void conflict_of_the_script_is_reported(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_SEND("*2\r\n$8\r\nconflict\r\n$39\r\nthe key holds a hash that is not a "
	               "lock\r\n"),
		S_QUIET(30),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_ECONFLICT, hf_lock_acquire(wire.lock, NULL));
	EXPECT_DETAIL("the key holds a hash that is not a lock");
	wire_finish(&wire);
}

static void refused_release_is_retried_in_the_background(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "1200", "*", "1"),
		S_SEND(GRANTED),
		S_EXPECT_RELEASE,
		S_SEND("-READONLY You can't write against a read only replica.\r\n"),
		S_EXPECT_RELEASE,
		S_SEND("-READONLY You can't write against a read only replica.\r\n"),
		S_RELEASE,
		S_QUIET(50),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, HF_ACQUIRE(.lease_ms = 1200)));
	EXPECT_RC(&wire, HF_EREADONLY, hf_lock_release(wire.lock));
	EXPECT_DETAIL("READONLY");
	assert_int_equal(hf_lock_remaining(wire.lock, NULL), 0);
	wire_finish(&wire);
}

/* Unless the server is read-only, what was refused once will be refused again. */
static void refused_clean_up_is_not_repeated(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT_RELEASE,
		S_SEND("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
		S_EXPECT_RELEASE,
		S_SEND("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
		S_GRANT,
		S_RELEASE,
		S_QUIET(50),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	EXPECT_RC(&wire, HF_ECONFLICT, hf_lock_release(wire.lock));
	wire_acquire(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

/* Counts the log lines about the message. */
static void count_publisher(void *arg, hf_log_level level, const char *line)
{
	(void)level;
	if (strstr(line, "publish: NOPERM of the publisher"))
		atomic_fetch_add((atomic_int *)arg, 1);
}

/* The lock is released, but its message could not be published. */
static void warning_of_a_script_is_logged_once_and_the_verb_is_done(void **state)
{
	(void)state;
	static const char warning[] = "*4\r\n$7\r\nwarning\r\n$7\r\npublish\r\n$23\r\n"
				      "NOPERM of the publisher\r\n:0\r\n";
	atomic_int lines = 0;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT_RELEASE,
		S_SEND_BYTES(warning, sizeof warning - 1),
		S_GRANT,
		S_EXPECT_RELEASE,
		S_SEND_BYTES(warning, sizeof warning - 1),
		S_END,
	};
	struct wire wire =
		wire_start(steps, HF_CLIENT(.on_log = count_publisher, .log_arg = &lines));
	for (int i = 0; i < 2; i++) {
		EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
		wire_release(&wire);
	}
	wire_finish(&wire);
	assert_int_equal(lines, 1);
}

static void refused_renewal_is_tried_again_until_it_is_confirmed(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT_RENEWAL,
		S_SEND("-OOM command not allowed\r\n"),
		S_EXPECT_NEXT_RENEWAL,
		S_SEND("-LOADING\r\n"),
		S_EXPECT_NEXT_RENEWAL,
		S_SEND("*1\r\n:1\r\n"),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 3000));
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	assert_int_equal(stats_of(wire.client).renewal_failures, 2);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	wire_release(&wire);
	wire_finish(&wire);
}

static void refused_query_is_reported(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
		S_SEND("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
		S_EXPECT("EVALSHA", "*", "1", "orders", "0", "PUBLISH", CHANNEL),
		S_SEND("-NOPERM no\r\n"),
		S_EXPECT("PING"),
		S_SEND("-NOAUTH Authentication required.\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	int locked = -7, was_held = -7;
	EXPECT_RC(&wire, HF_ECONFLICT, hf_lock_is_locked(wire.lock, &locked));
	EXPECT_DETAIL("WRONGTYPE");
	EXPECT_RC(&wire, HF_EDENIED, hf_lock_force_release(wire.lock, &was_held));
	EXPECT_RC(&wire, HF_EAUTH, hf_client_ping(wire.client, NULL));
	assert_int_equal(locked, -7);
	assert_int_equal(was_held, -7);
	wire_finish(&wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(temporary_error_is_retried),
		cmocka_unit_test(temporary_error_is_reported_at_the_deadline),
		cmocka_unit_test(refused_acquire_reports_the_servers_text),
		cmocka_unit_test(bulk_error_is_an_error_too),
		cmocka_unit_test(conflict_of_the_script_is_reported),
		cmocka_unit_test(refused_release_is_retried_in_the_background),
		cmocka_unit_test(refused_clean_up_is_not_repeated),
		cmocka_unit_test(warning_of_a_script_is_logged_once_and_the_verb_is_done),
		cmocka_unit_test(refused_renewal_is_tried_again_until_it_is_confirmed),
		cmocka_unit_test(refused_query_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
