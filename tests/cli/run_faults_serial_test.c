/* Faults of the server and of the way to it: when the command is stopped, and when it is not. */
#include "cli/cli.h"

#include <signal.h>

#include "support/proxy.h"
#include "support/script.h"

/*
 * A lease of 2 s: renewed every 667 ms, 222 ms for an attempt, 22 ms drift, 200 ms grace, 100 ms to
 * kill. The rest is the longest fault that must do no harm.
 */
#define WATCHDOG    "2s"
#define LEASE_MS    2000
#define INTERVAL_MS 667
#define SLACK_MS    789

/* Within an interval, plus what a busy machine takes. */
#define LOST_MS (INTERVAL_MS + 4000)

static struct cli *start_for(const char *watchdog, const char *url)
{
	return cli_start(url, "run", "--watchdog", watchdog, "x", "--", "sh", "-c",
	                 CLI_UNTIL_INPUT_ENDS, NULL);
}

static struct cli *start_at(const char *url)
{
	return start_for(WATCHDOG, url);
}

static void end_well(struct cli *cli)
{
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

static int restore_server(void **state)
{
	(void)state;
	raw_close(cli_raw);
	test_server_restart(cli_server);
	cli_raw = raw_connect(cli_server);
	raw_ok(cli_raw, "FLUSHALL", NULL);
	return 0;
}

/* ---- the server has given the lock away ---- */

/* If only the end of the lease had been noticed, the lock would have been at risk. */
static void expect_lost(struct cli *cli)
{
	CLI_EXPECT(cli, 80);
	assert_non_null(strstr(cli_errors(cli), "the lock was lost"));
	cli_free(cli);
}

static void a_flushed_server_stops_the_command_within_an_interval(void **state)
{
	(void)state;
	struct cli *cli = start_at(cli_url());
	pid_t pid = cli_command_pid(cli);
	cli_let_live(cli, pid, INTERVAL_MS + 100);
	raw_ok(cli_raw, "FLUSHALL", NULL);
	assert_in_range(cli_time_to_death(pid), 0, LOST_MS);
	expect_lost(cli);
}

static void a_stolen_lock_stops_the_command_and_stays_with_the_thief(void **state)
{
	(void)state;
	struct cli *cli = start_at(cli_url());
	pid_t pid = cli_command_pid(cli);
	raw_integer(cli_raw, "DEL", "x", NULL);
	raw_integer(cli_raw, "HSET", "x", "4dd1c7f6-0f4b-4a3c-8c0e-8f1b1f3b1a11:5", "1", NULL);
	assert_in_range(cli_time_to_death(pid), 0, LOST_MS);
	expect_lost(cli);
	assert_int_equal(raw_integer(cli_raw, "HLEN", "x", NULL), 1);
	assert_int_equal(raw_integer(cli_raw, "PTTL", "x", NULL), -1);
}

static void a_stolen_permit_stops_the_command(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--watchdog", WATCHDOG, "--permits", "2", "x",
	                            "--", "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
	pid_t pid = cli_command_pid(cli);
	raw_ok(cli_raw, "FLUSHALL", NULL);
	assert_in_range(cli_time_to_death(pid), 0, LOST_MS);
	expect_lost(cli);
}

static void releasing_a_lost_lock_is_80(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "x", "--", "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
	(void)cli_command_pid(cli);
	raw_ok(cli_raw, "FLUSHALL", NULL);
	cli_close_input(cli);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

static bool is_connected(struct raw *raw)
{
	char *list = raw_text(raw, "CLIENT", "LIST", NULL);
	bool found = strstr(list, "name=holdfast") != NULL;
	free(list);
	return found;
}

/* After a reconnect all holds are renewed at once, however long the lease is. */
static void a_restart_without_data_stops_the_command_at_the_reconnect(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	struct cli *cli = cli_start(test_server_url(server), "run", "--watchdog", "60s", "x", "--",
	                            "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
	pid_t pid = cli_command_pid(cli);
	test_server_restart(server);
	struct raw *raw = raw_connect(server);
	WAIT_UNTIL(is_connected(raw) || !cli_is_alive(pid), CLI_SOON_MS);
	assert_in_range(cli_time_to_death(pid), 0, 5000); /* otherwise renewed after 20 s */
	expect_lost(cli);
	raw_close(raw);
	test_server_stop(server);
}

/* ---- faults that last ---- */

/* Twice as long as the others, for a machine on which a kill comes some tenths of a second late. */
static struct cli *start_long(const char *url)
{
	return start_for("4s", url);
}

/* The command is dead before the server can give the lock away, and not long before. */
static void expect_death_in_time(struct cli *cli, pid_t pid, long long fault_at)
{
	long long alive_at = cli_last_alive(pid);
	assert_in_range(alive_at - fault_at, 0, 2 * LEASE_MS);
	assert_true(test_now_ms() >= fault_at + 2 * SLACK_MS);
	CLI_EXPECT(cli, 80);
	assert_non_null(strstr(cli_errors(cli), "the command was stopped"));
	cli_free(cli);
}

static void a_stopped_server_stops_the_command_in_time(void **state)
{
	(void)state;
	struct cli *cli = start_long(cli_url());
	pid_t pid = cli_command_pid(cli);
	test_server_freeze(cli_server);
	expect_death_in_time(cli, pid, test_now_ms());
	test_server_thaw(cli_server);
}

static void a_killed_server_stops_the_command_in_time(void **state)
{
	(void)state;
	struct cli *cli = start_long(cli_url());
	pid_t pid = cli_command_pid(cli);
	test_server_kill(cli_server);
	expect_death_in_time(cli, pid, test_now_ms());
}

static void expect_death_after(void (*fault)(struct proxy *proxy, bool on))
{
	struct proxy *proxy = proxy_start(cli_url());
	struct cli *cli = start_long(proxy_url(proxy));
	pid_t pid = cli_command_pid(cli);
	fault(proxy, true);
	expect_death_in_time(cli, pid, test_now_ms());
	proxy_stop(proxy);
}

/* The server receives every renewal and keeps the lock, but the holder cannot know. */
static void lost_replies_stop_the_command_in_time(void **state)
{
	(void)state;
	expect_death_after(proxy_drop_replies);
}

static void lost_requests_stop_the_command_in_time(void **state)
{
	(void)state;
	expect_death_after(proxy_drop_requests);
}

/* ---- faults that pass ---- */

static void short_faults_never_stop_the_command(void **state)
{
	const long long fault = SLACK_MS * 2 / 3;
	(void)state;
	struct proxy *proxy = proxy_start(cli_url());
	struct cli *cli = start_at(proxy_url(proxy));
	pid_t pid = cli_command_pid(cli);
	test_server_freeze(cli_server);
	cli_let_live(cli, pid, fault);
	test_server_thaw(cli_server);
	cli_let_live(cli, pid, INTERVAL_MS);
	proxy_drop_replies(proxy, true);
	cli_let_live(cli, pid, fault);
	proxy_drop_replies(proxy, false);
	cli_let_live(cli, pid, INTERVAL_MS);
	proxy_drop_requests(proxy, true);
	proxy_cut(proxy);
	proxy_refuse(proxy, true);
	cli_let_live(cli, pid, fault);
	proxy_refuse(proxy, false);
	proxy_drop_requests(proxy, false);
	cli_let_live(cli, pid, INTERVAL_MS);
	end_well(cli);
	proxy_stop(proxy);
}

static void a_restart_with_data_does_not_stop_the_command(void **state)
{
	(void)state;
	struct cli *cli = start_at(cli_url());
	pid_t pid = cli_command_pid(cli);
	test_server_kill(cli_server);
	cli_let_live(cli, pid, SLACK_MS / 3);
	test_server_restart(cli_server);
	raw_close(cli_raw);
	cli_raw = raw_connect(cli_server);
	cli_let_live(cli, pid, LEASE_MS);
	end_well(cli);
}

static void killing_connections_does_not_stop_the_command(void **state)
{
	(void)state;
	struct cli *cli = start_at(cli_url());
	pid_t pid = cli_command_pid(cli);
	for (long long until = test_now_ms() + 2 * LEASE_MS; test_now_ms() < until;) {
		raw_integer(cli_raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
		raw_integer(cli_raw, "CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes", NULL);
		cli_let_live(cli, pid, 20);
	}
	end_well(cli);
}

/* ---- release ---- */

static void an_unconfirmed_release_is_81(void **state)
{
	(void)state;
	for (int permits = 0; permits < 2; permits++) {
		struct cli *cli =
			cli_start(cli_url(), "run", "--json", "--watchdog", WATCHDOG,
		                  permits ? "--permits=1" : "--kind=reentrant", permits ? "p" : "x",
		                  "--", "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
		(void)cli_command_pid(cli);
		test_server_freeze(cli_server);
		long long begun = test_now_ms();
		cli_close_input(cli);
		CLI_EXPECT(cli, 81);
		assert_in_range(test_now_ms() - begun, SLACK_MS, LEASE_MS + 4000);
		assert_non_null(strstr(cli_errors(cli), "release-unconfirmed"));
		test_server_thaw(cli_server);
		cli_free(cli);
	}
}

static void a_signal_ends_an_unconfirmed_release(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--json", "x", "--", "sh", "-c",
	                            CLI_UNTIL_INPUT_ENDS, NULL);
	(void)cli_command_pid(cli);
	test_server_freeze(cli_server);
	cli_close_input(cli);
	CLI_WAIT_ERRORS(cli, "exit");
	assert_int_equal(kill(cli->pid, SIGINT), 0);
	CLI_EXPECT(cli, 81);
	test_server_thaw(cli_server);
	cli_free(cli);
}

/* The reply to the release is lost; the retry finds no lock, which is the desired result. */
static void a_release_whose_reply_was_lost_is_confirmed_later(void **state)
{
	(void)state;
	for (int permits = 0; permits < 2; permits++) {
		const char *kind = permits ? "--permits=1" : "--kind=reentrant";
		const char *name = permits ? "p" : "x";
		const char *key = permits ? "{p}:timeout" : "x";
		struct proxy *proxy = proxy_start(cli_url());
		CLI_CALL(cli_url(), 0, "run", kind, name, "--", "true"); /* loads the scripts */
		struct cli *cli = cli_start(proxy_url(proxy), "run", kind, name, "--", "sh", "-c",
		                            CLI_UNTIL_INPUT_ENDS, NULL);
		(void)cli_command_pid(cli);
		assert_int_equal(raw_integer(cli_raw, "EXISTS", key, NULL), 1);
		proxy_drop_replies(proxy, true);
		cli_close_input(cli);
		WAIT_UNTIL(raw_integer(cli_raw, "EXISTS", key, NULL) == 0, CLI_SOON_MS);
		proxy_drop_replies(proxy, false);
		CLI_EXPECT(cli, 0);
		cli_free(cli);
		proxy_stop(proxy);
	}
}

/* ---- no connection ---- */

/*
 * Run at the same time, because each takes five seconds. The last two send an ask, but get no
 * reply.
 */
static void a_silent_or_missing_server_is_69_within_five_seconds(void **state)
{
	static const struct script_step silent[] = {S_STALL, S_END};
	static const struct script_step deaf[] = {S_HANDSHAKE, S_STALL, S_END};
	static const char *const nobody = "redis+unix:///nonexistent/socket";
	(void)state;
	struct script *scripts[] = {script_start(silent), script_start(deaf), script_start(deaf)};
	long long begun = test_now_ms();
	struct cli *runs[] = {
		cli_start(nobody, "run", "x", "--", "true", NULL),
		cli_start(nobody, "run", "-n", "x", "--", "true", NULL),
		cli_start(nobody, "run", "--permits", "2", "x", "--", "true", NULL),
		cli_start(nobody, "run", "-w", "1000", "x", "--", "true", NULL),
		cli_start(script_url(scripts[0]), "run", "x", "--", "true", NULL),
		cli_start(script_url(scripts[1]), "run", "-n", "x", "--", "true", NULL),
		cli_start(script_url(scripts[2]), "run", "-w", "1", "x", "--", "true", NULL),
	};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		CLI_EXPECT(runs[i], 69);
		assert_non_null(strstr(cli_errors(runs[i]), "holdfast: "));
		cli_free(runs[i]);
	}
	assert_in_range(test_now_ms() - begun, 0, 8000);
	for (size_t i = 0; i < 3; i++) {
		script_continue(scripts[i]);
		free(script_join(scripts[i], CLI_SOON_MS));
	}
}

static void a_server_that_requires_a_password_is_77(void **state)
{
	static const char *const extra[] = {"--requirepass", "secret", NULL};
	(void)state;
	struct test_server *server =
		test_server_start(&(struct test_server_options){.extra = extra});
	CLI_CALL(test_server_url(server), 77, "run", "x", "--", "true");
	struct raw *raw = raw_connect_as(server, NULL, "secret");
	raw_ok(raw, "ACL", "SETUSER", "default", "nopass", "-@all", "+hello", "+client", NULL);
	CLI_CALL(test_server_url(server), 77, "run", "x", "--", "true");
	raw_close(raw);
	test_server_stop(server);
}

static void a_wrong_address_is_78(void **state)
{
	(void)state;
	CLI_CALL("gopher://localhost", 78, "run", "x", "--", "true");
	CLI_CALL("redis://localhost:notaport", 78, "run", "x", "--", "true");
}

static void a_waiter_that_lost_its_connection_keeps_trying(void **state)
{
	(void)state;
	struct proxy *proxy = proxy_start(cli_url());
	struct cli *holder = start_at(cli_url());
	(void)cli_command_pid(holder);
	struct cli *waiter =
		cli_start(proxy_url(proxy), "run", "-w", "60", "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(proxy_reply_bytes(proxy) > 0, CLI_SOON_MS);
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	int connections = proxy_connections(proxy);
	WAIT_UNTIL(proxy_connections(proxy) > connections + 2, CLI_SOON_MS);
	assert_false(cli_has_ended(waiter));
	end_well(holder);
	proxy_refuse(proxy, false);
	CLI_EXPECT(waiter, 0);
	assert_string_equal(cli_output(waiter), "mine\n");
	cli_free(waiter);
	proxy_stop(proxy);
}

#define FAULT_STORY(name) cmocka_unit_test_setup(name, restore_server)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAULT_STORY(a_flushed_server_stops_the_command_within_an_interval),
		FAULT_STORY(a_stolen_lock_stops_the_command_and_stays_with_the_thief),
		FAULT_STORY(a_stolen_permit_stops_the_command),
		FAULT_STORY(releasing_a_lost_lock_is_80),
		FAULT_STORY(a_restart_without_data_stops_the_command_at_the_reconnect),
		FAULT_STORY(a_stopped_server_stops_the_command_in_time),
		FAULT_STORY(a_killed_server_stops_the_command_in_time),
		FAULT_STORY(lost_replies_stop_the_command_in_time),
		FAULT_STORY(lost_requests_stop_the_command_in_time),
		FAULT_STORY(short_faults_never_stop_the_command),
		FAULT_STORY(a_restart_with_data_does_not_stop_the_command),
		FAULT_STORY(killing_connections_does_not_stop_the_command),
		FAULT_STORY(an_unconfirmed_release_is_81),
		FAULT_STORY(a_signal_ends_an_unconfirmed_release),
		FAULT_STORY(a_release_whose_reply_was_lost_is_confirmed_later),
		FAULT_STORY(a_silent_or_missing_server_is_69_within_five_seconds),
		FAULT_STORY(a_server_that_requires_a_password_is_77),
		FAULT_STORY(a_wrong_address_is_78),
		FAULT_STORY(a_waiter_that_lost_its_connection_keeps_trying),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
