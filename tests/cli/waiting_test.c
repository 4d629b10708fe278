/*
 * holdfast ls, who and doctor: for how long a lock is held, who waits for it, and who waits for
 * whom.
 */
#include "cli/cli.h"
#include "cli/json.h"

#include <signal.h>

#define JAVA CLI_JAVA
#define HOUR "3600000"

/* The number that follows this member's name; -1 if there is none. */
static long long number_after(const char *text, const char *member)
{
	const char *at = strstr(text, member);
	return at ? strtoll(at + strlen(member), NULL, 10) : -1;
}

/* ---- held ---- */

/* A client whose clock is slow by an hour, as seen by the server. */
static void held_does_not_depend_on_the_clock_of_the_host(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(
		&(struct test_server_options){.kind = TEST_SERVER_TCP, .clock_ms = atoi(HOUR)});
	const char *url = test_server_url(server);
	long long begun = test_now_ms();
	struct cli *holder =
		cli_start(url, "run", "x", "--", "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
	(void)cli_command_pid(holder);
	long long held = test_now_ms();
	cli_let_pass(300);
	long long before = test_now_ms();
	struct cli *cli = cli_show_json(url, "who", "x");
	long long after = test_now_ms();
	long long age = number_after(cli_output(cli), "\"server_time_ms\":") -
	                number_after(cli_output(cli), "\"since_ms\":");
	/* Each clock is read in whole milliseconds. */
	assert_true(age >= before - held - 2);
	assert_true(age <= after - begun + 2);
	cli_free(cli);
	cli = cli_call(url, 0, "who", "x", NULL);
	char shown[32] = "";
	assert_int_equal(sscanf(cli_output(cli), "%*[^\n]\nx reentrant %31s", shown), 1);
	assert_true(strspn(shown, "0123456789") > 0 && !strchr(shown, 'h'));
	cli_free(cli);
	cli_finish(holder);
	test_server_stop(server);
}

static void held_is_not_known_of_java(void **state)
{
	(void)state;
	raw_integer(cli_raw, "HSET", "x", JAVA ":1", "1", NULL);
	struct cli *cli = cli_call(cli_url(), 0, "who", "x", NULL);
	char held[32] = "", ttl[32] = "", waiting[32] = "";
	assert_int_equal(
		sscanf(cli_output(cli), "%*[^\n]\nx reentrant %31s %31s %31s", held, ttl, waiting),
		3);
	assert_string_equal(held, "-");
	assert_string_equal(ttl, "-");
	assert_string_equal(waiting, "0");
	cli_free(cli);
}

/* ---- waiting ---- */

#define CROWD 3

static int count_waiters(void)
{
	struct cli *cli = cli_call(cli_url(), 0, "who", "x", NULL);
	int count = cli_count(cli_output(cli), " waiter-");
	cli_free(cli);
	return count;
}

static void waiting_processes_have_a_row_each_until_they_give_up(void **state)
{
	(void)state;
	struct cli *holder = cli_hold("x"), *waiter[CROWD];
	for (int i = 0; i < CROWD; i++)
		waiter[i] = cli_start(cli_url(), "run", "x", "--", "true", NULL);
	WAIT_UNTIL(count_waiters() == CROWD, CLI_SOON_MS);
	struct cli *cli = cli_show_json(cli_url(), "who", "x");
	cli_expect_in(cli_output(cli), "\"waiting_clients\":3,");
	const char *waiters = strstr(cli_output(cli), "\"waiters\":");
	for (int i = 0; i < CROWD; i++) {
		char *wanted = check_format("\"pid\":%d,\"command\":\"true\",\"since_ms\":",
		                            (int)waiter[i]->pid);
		cli_expect_in(waiters, wanted);
		free(wanted);
	}
	cli_free(cli);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(kill(waiter[i]->pid, SIGTERM), 0);
		CLI_EXPECT(waiter[i], 128 + SIGTERM);
		cli_free(waiter[i]);
	}
	WAIT_UNTIL(count_waiters() == 0, 3000);
	cli_finish(holder);
}

/* ---- cycles ---- */

/* For each lock and its holder: the note, and the lock that the holder waits for. */
static const char make_cycle[] =
	"local now = redis.call('time')[1] * 1000 "
	"for i = 1, #ARGV, 3 do local name, host, wanted = ARGV[i], ARGV[i + 1], ARGV[i + 2] "
	"local owner = '" JAVA ":' .. i "
	"local note = 'reentrant\\n' .. host .. '\\n12 ' .. string.format('%.0f', now) .. ' "
	"30000\\njob' "
	"redis.call('hset', name, owner, 1) "
	"redis.call('set', 'holdfast_holder:{' .. name .. '}:' .. owner, note) "
	"redis.call('zadd', 'holdfast_waiter:{' .. wanted .. '}', string.format('%.0f', now + "
	"60000), owner) "
	"redis.call('set', 'holdfast_waiter:{' .. wanted .. '}:' .. owner, note) end return 1";

static void expect_cycle(const char *wanted)
{
	struct cli *cli = cli_call(cli_url(), 0, "who", "a", NULL);
	cli_expect_in(cli_errors(cli), wanted);
	assert_null(strchr(cli_errors(cli), '\033'));
	cli_free(cli);
	cli = cli_examine(cli_url(), 0);
	cli_expect_in(cli_output(cli), "waits for 'a', which");
	assert_null(strchr(cli_output(cli), '\033'));
	cli_free(cli);
	cli = cli_show_json(cli_url(), "who", "a");
	cli_expect_in(cli_output(cli), "\"cycle\":\"");
	cli_free(cli);
}

static void a_cycle_of_three_is_found(void **state)
{
	(void)state;
	assert_int_equal(raw_integer(cli_raw, "EVAL", make_cycle, "0", "a", "one", "b", "b", "two",
	                             "c", "c", "three", "a", NULL),
	                 1);
	expect_cycle("possible deadlock: ");
	expect_cycle("pid 12 on one waits for 'b', which pid 12 on two holds");
	expect_cycle("pid 12 on three waits for 'a', which pid 12 on one holds");
}

static void waiting_in_a_row_is_not_a_cycle(void **state)
{
	(void)state;
	assert_int_equal(raw_integer(cli_raw, "EVAL", make_cycle, "0", "a", "one", "b", "b", "two",
	                             "c", "c", "three", "d", NULL),
	                 1);
	struct cli *cli = cli_call(cli_url(), 0, "who", "b", NULL);
	cli_expect_in(cli_output(cli), " waiter-1 ");
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
	CLI_EXPECT_IN_OUTPUT(cli_url(), 0, "no holders wait for each other", "doctor");
}

/* Whatever others wrote into notes and names, it does not reach the terminal as it is. */
static void a_cycle_is_safe_to_print(void **state)
{
	(void)state;
	assert_int_equal(raw_integer(cli_raw, "EVAL", make_cycle, "0", "a",
	                             "\033[31mred\"\\</script>", "b\033\\c", "b\033\\c", "\xff\r%s",
	                             "a", NULL),
	                 1);
	expect_cycle("waits for 'b\\x1b\\c', which pid 12 on \\xff\\x0d%s holds");
	expect_cycle("pid 12 on \\x1b[31mred\"\\</script>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(held_does_not_depend_on_the_clock_of_the_host),
		CLI_STORY(held_is_not_known_of_java),
		CLI_STORY(waiting_processes_have_a_row_each_until_they_give_up),
		CLI_STORY(a_cycle_of_three_is_found),
		CLI_STORY(waiting_in_a_row_is_not_a_cycle),
		CLI_STORY(a_cycle_is_safe_to_print),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
