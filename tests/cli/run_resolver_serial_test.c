/*
 * A resolver that hangs: signals end run at once, and other commands end with their
 * connect_timeout.
 */
#include "cli/cli.h"

#include <signal.h>

#include "support/slow_resolver.h"

#define HANGS_S  "20"
#define MOST_MS  5000 /* on a busy machine */
#define LIMIT_MS 500  /* for the best of all attempts */
#define ATTEMPTS 3

#define CTRL_C "\003"

static struct test_server *server; /* reachable by a host name */
static char *by_name;

static int start_server(void **state)
{
	(void)state;
	server = test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	by_name = check_format("redis://localhost%s", strrchr(test_server_url(server), ':'));
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	test_server_stop(server);
	free(by_name);
	return 0;
}

static int restore_resolver(void **state)
{
	(void)state;
	resolver_restore();
	return 0;
}

/* Sends the signal, and returns how long it took to end. */
static long long time_to_end(struct cli *cli, int signal)
{
	long long begun = test_now_ms();
	assert_int_equal(kill(cli->pid, signal), 0);
	CLI_EXPECT(cli, 128 + signal);
	return test_now_ms() - begun;
}

static void expect_quick(const char *what, const long long took[ATTEMPTS])
{
	long long best = took[0];
	for (int i = 0; i < ATTEMPTS; i++) {
		best = took[i] < best ? took[i] : best;
		if (took[i] > MOST_MS)
			fail_msg("%s: took %lld ms", what, took[i]);
	}
	if (best > LIMIT_MS && !cli_is_slow())
		fail_msg("%s: took %lld ms at best", what, best);
}

/* ---- the first connection ---- */

static void a_signal_ends_a_run_that_waits_for_the_resolver(void **state)
{
	static const char *const lines[][3] = {{"run", "--verbose"}, {"run", "--fair"},
	                                       {"run", "-n"},        {"run", "--permits=2"},
	                                       {"run", "-s"},        {"elect", "--verbose"}};
	static const int signals[ATTEMPTS] = {SIGTERM, SIGINT, SIGHUP};
	(void)state;
	resolver_slow_down(HANGS_S);
	for (int zookeeper = 0; zookeeper < 2; zookeeper++) {
		for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
			long long took[ATTEMPTS];
			for (int n = 0; n < ATTEMPTS; n++) {
				struct cli *cli = cli_start(
					zookeeper ? "zk://localhost:1" : by_name, lines[i][0],
					lines[i][1], "x", "--", "echo", "ran", NULL);
				WAIT_UNTIL(cli_guard(cli) > 0, CLI_SOON_MS);
				cli_let_pass(100);
				took[n] = time_to_end(cli, signals[n]);
				assert_string_equal(cli_output(cli), "");
				cli_free(cli);
			}
			expect_quick(lines[i][1], took);
		}
	}
}

/* On a terminal a thread queries the holder. */
static void ctrl_c_ends_a_run_on_a_terminal(void **state)
{
	(void)state;
	resolver_slow_down(HANGS_S);
	for (int zookeeper = 0; zookeeper < 2; zookeeper++) {
		long long took[ATTEMPTS];
		for (int n = 0; n < ATTEMPTS; n++) {
			const char *const argv[] = {cli_path(), "run", "x", "--", "true", NULL};
			struct cli_terminal *terminal =
				cli_terminal_start(zookeeper ? "zk://localhost:1" : by_name, argv);
			CLI_WAIT_TERMINAL(terminal, "waiting for x");
			long long begun = test_now_ms();
			cli_terminal_type(terminal, CTRL_C);
			assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 130);
			took[n] = test_now_ms() - begun;
			cli_terminal_free(terminal);
		}
		expect_quick("terminal", took);
	}
}

static void other_commands_end_with_the_connect_timeout(void **state)
{
	static const char *const lines[][4] = {{"ls"},
	                                       {"ping"},
	                                       {"who", "x"},
	                                       {"doctor"},
	                                       {"unlock", "--force", "--yes", "x"},
	                                       {"run", "x", "true"}};
	enum { LINES = sizeof lines / sizeof *lines };
	struct cli *cli[LINES];
	(void)state;
	resolver_slow_down(HANGS_S);
	long long begun = test_now_ms();
	for (int i = 0; i < LINES; i++) {
		const char *words[5] = {NULL};
		memcpy(words, lines[i], sizeof lines[i]);
		cli[i] = cli_start_words(by_name, words);
	}
	for (int i = 0; i < LINES; i++) {
		CLI_EXPECT(cli[i], 69);
		assert_non_null(strstr(cli_errors(cli[i]), "cannot be reached"));
		cli_free(cli[i]);
	}
	/* They run at the same time: 5 s, and what six programs need to start and to end. */
	assert_in_range(test_now_ms() - begun, 0, 5000 + MOST_MS);
}

/* ---- a connection that was lost ---- */

static void a_signal_ends_a_waiter_that_cannot_reconnect(void **state)
{
	static const char *const kinds[] = {"--verbose", "--fair", "-s"};
	(void)state;
	resolver_slow_down_later(HANGS_S);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		long long took[ATTEMPTS];
		for (int n = 0; n < ATTEMPTS; n++) {
			struct cli *holder =
				cli_start(test_server_unix_url(server), "run", "x", NULL);
			struct raw *raw = raw_connect(server);
			WAIT_UNTIL(raw_integer(raw, "EXISTS", "x", NULL) == 1, CLI_SOON_MS);
			struct cli *cli = cli_start(by_name, "run", kinds[i], "--json", "x", "--",
			                            "true", NULL);
			CLI_WAIT_ERRORS(cli, "waiting");
			raw_close(raw);
			test_server_kill(server);
			cli_let_pass(500);
			took[n] = time_to_end(cli, SIGTERM);
			cli_free(cli);
			cli_free(holder);
			test_server_restart(server);
		}
		expect_quick(kinds[i], took);
	}
}

#define RESOLVER_STORY(name) cmocka_unit_test_teardown(name, restore_resolver)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESOLVER_STORY(a_signal_ends_a_run_that_waits_for_the_resolver),
		RESOLVER_STORY(ctrl_c_ends_a_run_on_a_terminal),
		RESOLVER_STORY(other_commands_end_with_the_connect_timeout),
		RESOLVER_STORY(a_signal_ends_a_waiter_that_cannot_reconnect),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
