/* holdfast unlock and ping. */
#include "cli/cli.h"

#define JAVA CLI_JAVA

static bool exists(const char *key)
{
	return raw_integer(cli_raw, "EXISTS", key, NULL) == 1;
}

static void make_lock(const char *name)
{
	assert_int_equal(raw_integer(cli_raw, "HSET", name, JAVA ":1", "1", NULL), 1);
}

/* ---- unlock ---- */

static void unlock_takes_a_java_lock_away(void **state)
{
	(void)state;
	struct raw *ear = raw_connect(cli_server);
	raw_subscribe(ear, "redisson_lock__channel:{x}");
	make_lock("x");
	CLI_CALL(cli_url(), 0, "unlock", "--force", "--yes", "x");
	assert_false(exists("x"));
	struct raw_reply *message = raw_next_message(ear, CLI_SOON_MS);
	assert_non_null(message);
	assert_string_equal(message->children[2]->text, "0");
	raw_reply_free(message);
	raw_close(ear);
}

static void a_waiter_gets_the_lock_after_unlock(void **state)
{
	(void)state;
	make_lock("x");
	struct cli *waiter = cli_start(cli_url(), "run", "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(raw_integer(cli_raw, "EVAL", "return #redis.call('pubsub', 'channels', '*{x}')",
	                       "0", NULL) == 1,
	           CLI_SOON_MS);
	CLI_CALL(cli_url(), 0, "unlock", "x", "--force", "--yes");
	CLI_EXPECT(waiter, 0);
	assert_string_equal(cli_output(waiter), "mine\n");
	cli_free(waiter);
}

#define QUEUE "redisson_lock_queue:{x}"
#define ENDS  "redisson_lock_timeout:{x}"

/* A Java process that died while it waited keeps its place in the queue for minutes. */
static void a_dead_java_waiter_can_be_removed(void **state)
{
	(void)state;
	assert_int_equal(raw_integer(cli_raw, "RPUSH", QUEUE, JAVA ":7", NULL), 1);
	assert_int_equal(raw_integer(cli_raw, "EVAL",
	                             "return redis.call('zadd', KEYS[1], (redis.call('time')[1] + "
	                             "300) * 1000, ARGV[1])",
	                             "1", ENDS, JAVA ":7", NULL),
	                 1);
	struct cli *waiter = cli_start(cli_url(), "run", "--fair", "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(raw_integer(cli_raw, "LLEN", QUEUE, NULL) == 2, CLI_SOON_MS);
	struct cli *who = cli_call(cli_url(), 1, "who", "x", NULL);
	assert_non_null(strstr(cli_output(who), JAVA ":7"));
	cli_free(who);
	CLI_CALL(cli_url(), 1, "unlock", "--force", "--yes", "--waiter", "nobody:1", "x");
	CLI_CALL(cli_url(), 64, "unlock", "--yes", "--waiter", JAVA ":7", "x");
	CLI_CALL(cli_url(), 0, "unlock", "--force", "--yes", "--waiter", JAVA ":7", "x");
	CLI_EXPECT(waiter, 0);
	assert_string_equal(cli_output(waiter), "mine\n");
	cli_free(waiter);
}

static void every_kind_can_be_unlocked(void **state)
{
	(void)state;
	const char *const kinds[] = {"reentrant", "fair", "read", "write", "fenced", "spin"};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct cli *holder = cli_start(cli_url(), "run", "--kind", kinds[i], kinds[i], "--",
		                               "sleep", "60", NULL);
		WAIT_UNTIL(exists(kinds[i]), CLI_SOON_MS);
		CLI_CALL(cli_url(), 0, "unlock", "--force", "--yes", kinds[i]);
		assert_false(exists(kinds[i]));
		cli_free(holder);
	}
}

static void a_free_lock_cannot_be_unlocked(void **state)
{
	(void)state;
	struct cli *cli = cli_call(cli_url(), 1, "unlock", "--force", "--yes", "x", NULL);
	assert_string_equal(cli_errors(cli), "holdfast: x: nobody holds this lock\n");
	cli_free(cli);
}

static void unlock_leaves_other_keys_alone(void **state)
{
	(void)state;
	raw_ok(cli_raw, "SET", "text", "hello", NULL);
	raw_integer(cli_raw, "HSET", "hash", "colour", "red", NULL);
	raw_integer(cli_raw, "HSET", "odd", "mode", "odd", JAVA ":1", "1", NULL);
	raw_ok(cli_raw, "SET", "permits", "1", NULL);
	raw_integer(cli_raw, "ZADD", "{permits}:timeout", "922337203685477", "0123456789abcdef",
	            NULL);
	CLI_CALL(cli_url(), 65, "unlock", "--force", "--yes", "text");
	CLI_CALL(cli_url(), 65, "unlock", "--force", "--yes", "hash");
	CLI_CALL(cli_url(), 65, "unlock", "--force", "--yes", "odd");
	CLI_CALL(cli_url(), 65, "unlock", "--force", "--yes", "permits");
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 5);
}

static void unlock_requires_force(void **state)
{
	(void)state;
	make_lock("x");
	CLI_CALL(cli_url(), 64, "unlock", "x");
	CLI_CALL(cli_url(), 64, "unlock", "--yes", "x");
	CLI_CALL(cli_url(), 64, "unlock", "--force", "--yes");
	CLI_CALL(cli_url(), 64, "unlock", "--force", "--yes", "x", "y");
	assert_true(exists("x"));
}

static void unlock_requires_yes_without_a_terminal(void **state)
{
	(void)state;
	make_lock("x");
	struct cli *cli = cli_call(cli_url(), 64, "unlock", "--force", "x", NULL);
	assert_non_null(strstr(cli_errors(cli), "--yes"));
	assert_true(exists("x"));
	cli_free(cli);
}

static int answer(const char *typed)
{
	const char *const argv[] = {cli_path(), "unlock", "--force", "x", NULL};
	struct cli_terminal *terminal = cli_terminal_start(cli_url(), argv);
	CLI_WAIT_TERMINAL(terminal, "Take the lock x away");
	CLI_WAIT_TERMINAL(terminal, "[y/N] ");
	assert_true(exists("x"));
	cli_terminal_type(terminal, typed);
	int status = cli_terminal_wait(terminal, CLI_SOON_MS);
	cli_terminal_free(terminal);
	return status;
}

static void unlock_asks_for_confirmation_on_a_terminal(void **state)
{
	(void)state;
	make_lock("x");
	assert_int_equal(answer("n\n"), 1);
	assert_true(exists("x"));
	assert_int_equal(answer("\n"), 1);
	assert_true(exists("x"));
	assert_int_equal(answer("\x04"), 1); /* end of input */
	assert_true(exists("x"));
	assert_int_equal(answer("y\n"), 0);
	assert_false(exists("x"));
}

/* ---- ping ---- */

static void ping_prints_a_time(void **state)
{
	(void)state;
	struct cli *cli = cli_call(cli_url(), 0, "ping", NULL);
	char *rest;
	assert_true(strtod(cli_output(cli), &rest) > 0);
	assert_string_equal(rest, " ms\n");
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

static void an_unreachable_server_is_69(void **state)
{
	(void)state;
	const char *const commands[] = {"ping", "ls", "doctor"};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		struct cli *cli = cli_call(CLI_NOWHERE, 69, commands[i], NULL);
		const char *text = cli_errors(cli);
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		assert_non_null(strstr(text, "is the server running"));
		cli_free(cli);
	}
	CLI_CALL(CLI_NOWHERE, 69, "who", "x");
	CLI_CALL(CLI_NOWHERE, 69, "unlock", "--force", "--yes", "x");
}

static void a_stopped_server_is_69_in_time(void **state)
{
	(void)state;
	test_server_freeze(cli_server);
	long long begun = test_now_ms();
	struct cli *cli = cli_start(cli_url(), "ping", NULL);
	int status = cli_wait(cli, CLI_SOON_MS);
	test_server_thaw(cli_server);
	assert_int_equal(status, 69);
	assert_in_range(test_now_ms() - begun, 1000, 10000);
	cli_free(cli);
}

static void ping_takes_no_arguments(void **state)
{
	(void)state;
	CLI_CALL(cli_url(), 64, "ping", "x");
	CLI_CALL(cli_url(), 64, "ping", "--force");
	CLI_CALL(cli_url(), 64, "doctor", "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(unlock_takes_a_java_lock_away),
		CLI_STORY(a_waiter_gets_the_lock_after_unlock),
		CLI_STORY(a_dead_java_waiter_can_be_removed),
		CLI_STORY(every_kind_can_be_unlocked),
		CLI_STORY(a_free_lock_cannot_be_unlocked),
		CLI_STORY(unlock_leaves_other_keys_alone),
		CLI_STORY(unlock_requires_force),
		CLI_STORY(unlock_requires_yes_without_a_terminal),
		CLI_STORY(unlock_asks_for_confirmation_on_a_terminal),
		CLI_STORY(ping_prints_a_time),
		CLI_STORY(an_unreachable_server_is_69),
		CLI_STORY(a_stopped_server_is_69_in_time),
		CLI_STORY(ping_takes_no_arguments),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
