/* Faults of ZooKeeper and of the way to it: the command is gone before anyone else gets in. */
#include "cli/zk.h"

#include <signal.h>

#include "support/proxy.h"

/*
 * A session of 6 s, of which 3.6 s can be relied on: renewed every 1200 ms, 400 ms for an attempt,
 * 38 ms drift, 360 ms grace, 180 ms to kill. The rest is the longest fault that must do no harm.
 */
#define SESSION    "6s"
#define SESSION_MS 6000
#define SLACK_MS   1400

static struct cli *start_at(const char *url, const char *kind)
{
	return cli_start(url, "run", "--watchdog", SESSION, "--kind", kind, "x", "--", "sh", "-c",
	                 CLI_UNTIL_INPUT_ENDS, NULL);
}

/* ---- the server has given the lock away ---- */

static void deleting_the_node_stops_the_command_within_2_s(void **state)
{
	(void)state;
	const char *const kinds[] = {"reentrant", "write", "read", "plain"};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct cli *cli = start_at(zk_url(), kinds[i]);
		pid_t pid = cli_command_pid(cli);
		bool plain = strcmp(kinds[i], "plain") == 0;
		char *node = plain ? check_format("/x") : zk_only_child("/x");
		assert_int_equal(zk_raw_delete(zk_eye, node, -1), 0);
		assert_in_range(cli_time_to_death(pid), 0, 2000);
		CLI_EXPECT(cli, 80);
		cli_expect_in(cli_errors(cli), "the lock was lost");
		cli_free(cli);
		free(node);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

static void unlock_stops_the_command_within_3_s(void **state)
{
	(void)state;
	struct cli *cli = start_at(zk_url(), "reentrant");
	pid_t pid = cli_command_pid(cli);
	CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "x");
	assert_in_range(cli_time_to_death(pid), 0, 3000);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

static void an_expired_session_stops_the_command_within_3_s(void **state)
{
	(void)state;
	struct zk_raw_stat stat;
	struct cli *cli = start_at(zk_url(), "reentrant");
	pid_t pid = cli_command_pid(cli);
	char *node = zk_only_child("/x");
	assert_int_equal(zk_raw_exists(zk_eye, node, &stat), 0);
	zk_raw_expire(test_zookeeper_host(zk, 0), stat.owner);
	assert_in_range(cli_time_to_death(pid), 0, 3000);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
	free(node);
}

static void a_waiter_whose_session_expires_keeps_waiting_and_runs(void **state)
{
	(void)state;
	struct zk_raw_stat stat;
	struct cli *holder = zk_hold("x");
	char *held = zk_only_child("/x");
	/*
	 * A short session: a client that reconnects before it has expired hears nothing for 2/3 of
	 * it.
	 */
	struct cli *cli =
		cli_start(zk_url(), "run", "--watchdog", SESSION, "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	char *node = zk_other_child("/x", held);
	assert_int_equal(zk_raw_exists(zk_eye, node, &stat), 0);
	zk_raw_expire(test_zookeeper_host(zk, 0), stat.owner);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	cli_close_input(holder);
	CLI_EXPECT(holder, 0);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "mine\n");
	cli_free(holder);
	cli_free(cli);
	free(held);
	free(node);
}

/* ---- faults that last ---- */

/* The command is dead before the server can give the lock away, and not long before. */
static void expect_death_in_time(struct cli *cli, pid_t pid, long long fault_at)
{
	long long alive_at = cli_last_alive(pid);
	assert_in_range(alive_at - fault_at, 0, SESSION_MS);
	assert_true(test_now_ms() >= fault_at + SLACK_MS);
	assert_int_equal(cli_wait(cli, CLI_SOON_MS), 80);
	cli_expect_in(cli_errors(cli), "the command was stopped");
	cli_free(cli);
}

static void a_frozen_server_stops_the_command_before_valid_until(void **state)
{
	(void)state;
	struct cli *cli = start_at(zk_url(), "reentrant");
	pid_t pid = cli_command_pid(cli);
	test_zookeeper_freeze(zk, 0);
	long long fault_at = test_now_ms();
	long long alive_at = cli_last_alive(pid);
	test_zookeeper_thaw(zk, 0);
	assert_in_range(alive_at - fault_at, 0, SESSION_MS);
	assert_true(test_now_ms() >= fault_at + SLACK_MS);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

static void a_killed_server_stops_the_command_before_valid_until(void **state)
{
	(void)state;
	struct cli *cli = start_at(zk_url(), "reentrant");
	pid_t pid = cli_command_pid(cli);
	test_zookeeper_kill(zk, 0);
	long long fault_at = test_now_ms();
	expect_death_in_time(cli, pid, fault_at);
	test_zookeeper_restart(zk, 0);
}

static void lost_replies_stop_the_command_before_the_next_runs(void **state)
{
	(void)state;
	struct proxy *proxy = proxy_start(zk_url());
	char *url = check_format("zk%s", strstr(proxy_url(proxy), "://"));
	struct cli *cli = start_at(url, "reentrant");
	pid_t pid = cli_command_pid(cli);
	struct cli *next = cli_start(zk_url(), "run", "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	proxy_drop_replies(proxy, true);
	long long fault_at = test_now_ms();
	while (cli_is_alive(pid)) {
		assert_string_equal(cli_output(next), "");
		assert_true(test_now_ms() - fault_at < CLI_SOON_MS);
		test_pause();
	}
	CLI_EXPECT(next, 0);
	assert_string_equal(cli_output(next), "mine\n");
	cli_free(next);
	assert_int_equal(cli_wait(cli, CLI_SOON_MS), 80);
	cli_free(cli);
	free(url);
	proxy_stop(proxy);
}

/* ---- faults that do no harm ---- */

static void a_short_freeze_does_no_harm(void **state)
{
	(void)state;
	struct cli *cli = start_at(zk_url(), "reentrant");
	pid_t pid = cli_command_pid(cli);
	test_zookeeper_freeze(zk, 0);
	cli_let_live(cli, pid, SLACK_MS / 2);
	test_zookeeper_thaw(zk, 0);
	cli_let_live(cli, pid, SESSION_MS);
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_errors(cli), "");
	cli_free(cli);
}

static void killing_holdfast_kills_the_command_and_frees_the_lock(void **state)
{
	(void)state;
	struct cli *cli = start_at(zk_url(), "reentrant");
	pid_t pid = cli_command_pid(cli);
	assert_int_equal(kill(cli->pid, SIGKILL), 0);
	assert_in_range(cli_time_to_death(pid), 0, 1000);
	CLI_CALL(zk_url(), 0, "run", "-w", "10", "x", "--", "true");
	cli_free(cli);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(deleting_the_node_stops_the_command_within_2_s),
		ZK_STORY(unlock_stops_the_command_within_3_s),
		ZK_STORY(an_expired_session_stops_the_command_within_3_s),
		ZK_STORY(a_waiter_whose_session_expires_keeps_waiting_and_runs),
		ZK_STORY(a_frozen_server_stops_the_command_before_valid_until),
		ZK_STORY(a_killed_server_stops_the_command_before_valid_until),
		ZK_STORY(lost_replies_stop_the_command_before_the_next_runs),
		ZK_STORY(a_short_freeze_does_no_harm),
		ZK_STORY(killing_holdfast_kills_the_command_and_frees_the_lock),
	};
	return cmocka_run_group_tests_name("cli_zk_faults", tests, zk_start, zk_stop);
}
