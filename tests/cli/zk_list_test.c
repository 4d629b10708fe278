/* holdfast ls, who, unlock, ping and doctor on ZooKeeper. */
#include "cli/json.h"
#include "cli/zk.h"

#include <signal.h>

#include "support/proxy.h"

#define JAVA "_c_" CLI_JAVA

/* Makes a numbered node; its name is valid until the next call. */
static const char *make_node(const char *path, const char *data)
{
	static char name[128];
	char *made;
	assert_int_equal(
		zk_raw_create(zk_eye, path, data, ZK_RAW_EPHEMERAL_SEQUENTIAL, &made, NULL), 0);
	snprintf(name, sizeof name, "%s", strrchr(made, '/') + 1);
	free(made);
	return name;
}

/* ---- ls and who ---- */

static void make_locks_of_others(void)
{
	zk_make("/j", "", ZK_RAW_CONTAINER);
	zk_make("/j/mutex", "", ZK_RAW_CONTAINER);
	(void)make_node("/j/mutex/" JAVA "-lock-", "10.0.0.1");
	(void)make_node("/j/mutex/" JAVA "-lock-", "10.0.0.2");
	zk_make("/j/rw", "", ZK_RAW_CONTAINER);
	(void)make_node("/j/rw/" JAVA "-__READ__", "");
	(void)make_node("/j/rw/" JAVA "-__READ__", "");
	(void)make_node("/j/rw/" JAVA "-__WRIT__", "");
	zk_make("/j/rw/below", "", ZK_RAW_CONTAINER);
	(void)make_node("/j/rw/below/" JAVA "-__WRIT__", "");
	zk_make("/j/plain", "by hand", ZK_RAW_EPHEMERAL);
	zk_make("/j/empty", "", ZK_RAW_CONTAINER);
	zk_make("/j/config", "not a lock", ZK_RAW_PERSISTENT);
	zk_make("/j/config/child", "neither", ZK_RAW_PERSISTENT);
	zk_make("/j/sem", "", ZK_RAW_CONTAINER);
	zk_make("/j/sem/leases", "", ZK_RAW_CONTAINER);
	zk_make("/j/sem/locks", "", ZK_RAW_CONTAINER);
	(void)make_node("/j/sem/leases/" JAVA "-lease-", "");
	(void)make_node("/j/sem/leases/" JAVA "-lease-", "");
	(void)make_node("/j/sem/locks/" JAVA "-lock-", "");
	zk_make("/j/latch", "", ZK_RAW_CONTAINER);
	(void)make_node("/j/latch/" JAVA "-latch-", "node-7");
	(void)make_node("/j/latch/" JAVA "-latch-", "");
	(void)make_node("/j/latch/" JAVA "-latch-", "the \"third\"");
}

static void java_locks_and_plain_nodes_are_listed(void **state)
{
	(void)state;
	make_locks_of_others();
	struct cli *cli = cli_show_json(zk_url(), "ls", NULL);
	const char *all = cli_output(cli);
	cli_expect_in(json_about(all, "j/mutex"),
	              "\"kind\":\"reentrant\",\"ttl_ms\":null,\"holders\":[{\"owner\":\"" JAVA
	              "-lock-0000000000\",\"count\":1,\"host\":null,\"pid\":null,\"command\":null,"
	              "\"since_ms\":");
	cli_expect_in(json_about(all, "j/mutex"),
	              "\"waiters\":[{\"owner\":\"" JAVA "-lock-0000000001\"");
	cli_expect_in(json_about(all, "j/rw"), "\"kind\":\"read\"");
	cli_expect_in(json_about(all, "j/rw"), JAVA "-__READ__0000000001\",\"count\":1");
	cli_expect_in(json_about(all, "j/rw"),
	              "\"waiters\":[{\"owner\":\"" JAVA "-__WRIT__0000000002\"");
	cli_expect_in(json_about(all, "j/rw/below"), "\"kind\":\"write\"");
	cli_expect_in(json_about(all, "j/plain"), "\"kind\":\"plain\"");
	cli_expect_in(json_about(all, "j/plain"), "\"owner\":\"j/plain\"");
	cli_expect_in(json_about(all, "j/sem"), "\"kind\":\"permits\"");
	cli_expect_in(json_about(all, "j/sem"), "-lease-0000000001");
	cli_expect_in(json_about(all, "j/latch"), "\"kind\":\"leader\"");
	cli_expect_in(json_about(all, "j/latch"),
	              "\"waiters\":[{\"owner\":\"" JAVA "-latch-0000000001\"");
	cli_expect_in(json_about(all, "j/latch"),
	              "\"participants\":[{\"owner\":\"" JAVA
	              "-latch-0000000000\",\"text\":\"node-7\",\"leader\":true},{\"owner\":\"" JAVA
	              "-latch-0000000001\",\"text\":\"\",\"leader\":false},{\"owner\":\"" JAVA
	              "-latch-0000000002\",\"text\":\"the \\\"third\\\"\",\"leader\":false}]");
	assert_null(strstr(json_about(all, "j/mutex"), "participants"));
	assert_string_equal(json_about(all, "j/sem/locks"), "");
	assert_string_equal(json_about(all, "j/empty"), "");
	assert_string_equal(json_about(all, "j/config"), "");
	assert_string_equal(json_about(all, "zookeeper"), "");
	cli_free(cli);
	struct cli *one = cli_show_json(zk_url(), "who", "j/sem");
	cli_expect_in(json_about(cli_output(one), "j/sem"), "\"kind\":\"permits\"");
	cli_free(one);
}

/* Folders of locks whose names look like nodes of a lock, of a semaphore or of a barrier. */
static void a_folder_of_locks_is_not_mistaken_for_a_lock(void **state)
{
	static const char guid[] = "0f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a";
	static const char *const names[] = {
		"apps/clock-sync",   "apps/backup-lock-2024010112", "apps/unlatch-all",
		"builds/release-17", "builds/release-18",           "tasks/ready",
		"apps/a__READ__b",
	};
	char path[200];
	(void)state;
	zk_make("/apps", "", ZK_RAW_CONTAINER);
	zk_make("/builds", "", ZK_RAW_CONTAINER);
	zk_make("/tasks", "", ZK_RAW_CONTAINER);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "/%s", names[i]);
		zk_make(path, "", ZK_RAW_CONTAINER);
		snprintf(path, sizeof path, "/%s/" JAVA "-lock-", names[i]);
		(void)make_node(path, "");
	}
	snprintf(path, sizeof path, "/tasks/%s", guid);
	zk_make(path, "", ZK_RAW_CONTAINER);
	snprintf(path, sizeof path, "/tasks/%s/lock-", guid);
	(void)make_node(path, "");
	struct cli *cli = cli_show_json(zk_url(), "ls", NULL);
	const char *all = cli_output(cli);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		cli_expect_in(json_about(all, names[i]), "\"kind\":\"reentrant\"");
	snprintf(path, sizeof path, "tasks/%s", guid);
	cli_expect_in(json_about(all, path), "\"owner\":\"lock-0000000000\"");
	assert_string_equal(json_about(all, "apps"), "");
	assert_string_equal(json_about(all, "builds"), "");
	assert_string_equal(json_about(all, "tasks"), "");
	/* Each of them is listed once. */
	const char *first = strstr(all, "\"tasks/ready\"");
	assert_null(strstr(first + 1, "\"tasks/ready\""));
	cli_free(cli);
	CLI_CALL(zk_url(), 1, "who", "apps");
	CLI_CALL(zk_url(), 1, "who", "tasks");
}

static void a_pattern_selects_paths(void **state)
{
	(void)state;
	make_locks_of_others();
	struct cli *cli = cli_show_json(zk_url(), "ls", "*m?tex");
	cli_expect_in(json_about(cli_output(cli), "j/mutex"), "reentrant");
	assert_string_equal(json_about(cli_output(cli), "j/rw"), "");
	cli_free(cli);
}

static void an_empty_tree_has_an_empty_list(void **state)
{
	(void)state;
	struct cli *cli = cli_show_json(zk_url(), "ls", NULL);
	assert_string_equal(cli_output(cli), "[]\n");
	cli_free(cli);
	CLI_CALL(zk_url(), 1, "who", "x");
}

static void the_token_is_that_of_the_holder(void **state)
{
	(void)state;
	struct zk_raw_stat stat;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	char *path = check_format("/x/%s", make_node("/x/" JAVA "-lock-", ""));
	(void)make_node("/x/" JAVA "-lock-", "");
	assert_int_equal(zk_raw_exists(zk_eye, path, &stat), 0);
	char *wanted = check_format("\"token\":%lld}", (long long)stat.czxid);
	struct cli *cli = cli_show_json(zk_url(), "who", "x");
	cli_expect_in(cli_output(cli), wanted);
	cli_free(cli);
	free(wanted);
	free(path);
}

static void host_process_and_program_of_run_are_shown(void **state)
{
	(void)state;
	const char *const kinds[] = {"reentrant", "read", "write", "fenced", "plain"};
	char host[256] = "";
	assert_int_equal(gethostname(host, sizeof host - 1), 0);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct cli *holder = cli_start(zk_url(), "run", "--kind", kinds[i], "x", "--", "sh",
		                               "-c", CLI_UNTIL_INPUT_ENDS, NULL);
		(void)cli_command_pid(holder);
		char *wanted = check_format(
			"\"host\":\"%.64s\",\"pid\":%d,\"command\":\"sh\",\"since_ms\":", host,
			(int)holder->pid);
		struct cli *cli = cli_show_json(zk_url(), "who", "x");
		cli_expect_in(cli_output(cli), wanted);
		cli_free(cli);
		cli_finish(holder);
		free(wanted);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

static void the_columns_show_waiters_in_order(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	for (int i = 0; i < 3; i++)
		(void)make_node("/x/" JAVA "-lock-", "");
	struct cli *cli = cli_call(zk_url(), 0, "who", "x", NULL);
	cli_expect_in(cli_output(cli), "NAME KIND");
	const char *first = strstr(cli_output(cli), "waiter-1");
	assert_non_null(first);
	cli_expect_in(first, "lock-0000000001\n");
	cli_expect_in(first, "waiter-2");
	cli_expect_in(strstr(first, "waiter-2"), "lock-0000000002\n");
	cli_free(cli);
}

static void the_columns_show_the_text_of_candidates(void **state)
{
	(void)state;
	make_locks_of_others();
	struct cli *cli = cli_call(zk_url(), 0, "who", "j/latch", NULL);
	cli_expect_in(cli_output(cli), " node-7 ");
	cli_expect_in(cli_output(cli), " the \"third\" ");
	const char *last = strstr(cli_output(cli), "waiter-2");
	assert_non_null(last);
	cli_expect_in(last, " the \"third\" ");
	cli_free(cli);
}

/* The gate of a semaphore is a container, which the server removes once nobody waits there. */
static void a_semaphore_without_its_gate_is_found(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	zk_make("/x/leases", "", ZK_RAW_CONTAINER);
	(void)make_node("/x/leases/" JAVA "-lease-", "");
	struct cli *cli = cli_show_json(zk_url(), "who", "x");
	cli_expect_in(json_about(cli_output(cli), "x"), "\"kind\":\"permits\"");
	cli_free(cli);
	CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "x");
	assert_int_equal(zk_count("/x/leases"), 0);
}

/* A lock named leases below it is a different lock. */
static void a_lock_named_leases_is_not_mistaken_for_a_semaphore(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	zk_make("/x/leases", "", ZK_RAW_CONTAINER);
	(void)make_node("/x/leases/" JAVA "-lock-", "");
	CLI_CALL(zk_url(), 1, "who", "x");
	CLI_CALL(zk_url(), 0, "who", "x/leases");
	CLI_CALL(zk_url(), 1, "unlock", "--force", "--yes", "x");
	assert_int_equal(zk_count("/x/leases"), 1);
}

static void a_double_barrier_is_one_row_and_not_a_lock(void **state)
{
	(void)state;
	zk_make("/b", "", ZK_RAW_CONTAINER);
	zk_make("/b/0f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a", "", ZK_RAW_EPHEMERAL);
	zk_make("/b/1f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a", "", ZK_RAW_EPHEMERAL);
	zk_make("/b/ready", "", ZK_RAW_PERSISTENT);
	struct cli *cli = cli_show_json(zk_url(), "ls", NULL);
	cli_expect_in(json_about(cli_output(cli), "b"), "\"kind\":\"double-barrier\"");
	assert_null(strstr(cli_output(cli), "\"name\":\"b/"));
	cli_free(cli);
	CLI_EXPECT_REFUSAL(zk_url(), 65, "cannot be unlocked", "unlock", "--force", "--yes", "b");
	CLI_EXPECT_REFUSAL(zk_url(), 65, "cannot be revoked", "revoke", "b");
	assert_int_equal(zk_count("/b"), 3);
}

static void readers_beyond_200_are_counted(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	for (int i = 0; i < 230; i++)
		(void)make_node("/x/" JAVA "-__READ__", "");
	for (int i = 0; i < 210; i++)
		(void)make_node("/x/" JAVA "-__WRIT__", "");
	struct cli *cli = cli_show_json(zk_url(), "ls", NULL);
	cli_expect_in(cli_output(cli), "],\"more_holders\":30,\"waiters\":[");
	cli_expect_in(cli_output(cli), "],\"more_waiters\":10,");
	cli_free(cli);
}

/* With more nodes than one step visits there are several steps, but each lock is listed once. */
static void a_large_tree_is_read_in_steps(void **state)
{
	(void)state;
	char path[64];
	for (int i = 0; i < 700; i++) {
		snprintf(path, sizeof path, "/t%03d", i);
		zk_make(path, "", ZK_RAW_CONTAINER);
		if (i % 7 == 0) {
			snprintf(path, sizeof path, "/t%03d/" JAVA "-lock-", i);
			(void)make_node(path, "");
		}
	}
	struct cli *cli = cli_show_json(zk_url(), "ls", NULL);
	int locks = 0;
	for (const char *at = cli_output(cli); (at = strstr(at, "{\"name\"")); at++)
		locks++;
	assert_int_equal(locks, 100);
	cli_expect_in(json_about(cli_output(cli), "t693"), "reentrant");
	cli_free(cli);
}

static void data_from_others_is_escaped(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	(void)make_node("/x/" JAVA "-lock-", "\033[2J\n12x\n\"quoted\"\nmore");
	struct cli *cli = cli_show_json(zk_url(), "who", "x");
	cli_free(cli);
	cli = cli_call(zk_url(), 0, "who", "x", NULL);
	assert_null(strchr(cli_output(cli), '\033'));
	cli_free(cli);
}

/* ---- unlock ---- */

static void unlock_removes_only_the_holder(void **state)
{
	(void)state;
	zk_make("/x", "", ZK_RAW_CONTAINER);
	(void)make_node("/x/" JAVA "-lock-", "");
	(void)make_node("/x/" JAVA "-lock-", "");
	CLI_CALL(zk_url(), 64, "unlock", "x");
	CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "x");
	char *left = zk_only_child("/x");
	cli_expect_in(left, "lock-0000000001");
	free(left);
	zk_make("/p", "", ZK_RAW_EPHEMERAL);
	CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "p");
	assert_int_equal(zk_raw_exists(zk_eye, "/p", NULL), ZK_RAW_NO_NODE);
	CLI_CALL(zk_url(), 1, "unlock", "--force", "--yes", "p");
}

static void unlock_removes_all_leases_of_a_semaphore(void **state)
{
	(void)state;
	make_locks_of_others();
	CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "j/sem");
	assert_int_equal(zk_count("/j/sem/leases"), 0);
	assert_int_equal(zk_count("/j/sem/locks"), 1);
	CLI_CALL(zk_url(), 1, "unlock", "--force", "--yes", "j/sem");
}

static void unlock_removes_only_the_leader(void **state)
{
	(void)state;
	make_locks_of_others();
	CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "j/latch");
	assert_int_equal(zk_count("/j/latch"), 2);
	struct cli *cli = cli_show_json(zk_url(), "who", "j/latch");
	cli_expect_in(cli_output(cli), "\"participants\":[{\"owner\":\"" JAVA
	                               "-latch-0000000001\",\"text\":\"\",\"leader\":true}");
	cli_free(cli);
}

/* A holder of any of our own kinds is stopped when its lock is unlocked. */
static void unlock_stops_permits_simple_locks_and_leaders(void **state)
{
	(void)state;
	const char *const ways[][2] = {
		{"run", "--permits=2"}, {"run", "--kind=simple"}, {"elect", "--show-args"}};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct cli *cli = cli_start(zk_url(), ways[i][0], ways[i][1], "x", "--", "sh", "-c",
		                            CLI_UNTIL_INPUT_ENDS, NULL);
		pid_t pid = cli_command_pid(cli);
		CLI_CALL(zk_url(), 0, "unlock", "--force", "--yes", "x");
		assert_in_range(cli_time_to_death(pid), 0, 3000);
		CLI_EXPECT(cli, 80);
		cli_free(cli);
		(void)zk_raw_delete_tree(zk_eye, "/x");
	}
}

/* ---- ping and doctor ---- */

static void ping_prints_a_time(void **state)
{
	(void)state;
	CLI_EXPECT_IN_OUTPUT(zk_url(), 0, " ms\n", "ping");
	CLI_CALL("zk://127.0.0.1:1", 69, "ping");
}

static void doctor_checks_a_single_server(void **state)
{
	(void)state;
	struct cli *cli = cli_examine(zk_url(), 0);
	cli_expect_finding(cli, "ok", "words", "srvr and conf");
	cli_expect_finding(cli, "ok", "version", "ZooKeeper 3.");
	cli_expect_finding(cli, "note", "ensemble", "a single server");
	cli_expect_finding(cli, "ok", "quorum", "all 1 are up");
	cli_expect_finding(cli, "ok", "tick", "500 ms; sessions last 1000 to 60000 ms");
	cli_expect_finding(cli, "ok", "session", "30000 ms, as requested");
	cli_expect_finding(cli, "ok", "clock", " ms from this host's");
	cli_expect_finding(cli, "ok", "rights", "taken, waited for and released");
	cli_free(cli);
	char *url = check_format("%s?session=100s", zk_url());
	cli = cli_examine(url, 0);
	cli_expect_finding(cli, "note", "session", "60000 ms instead of 100000 ms");
	cli_free(cli);
	free(url);
}

static void doctor_reports_missing_rights(void **state)
{
	(void)state;
	char *url = check_format("%s/shut", zk_url());
	zk_raw_use_acl(zk_eye, "world:anyone:r");
	zk_make("/shut", "", ZK_RAW_PERSISTENT);
	struct cli *cli = cli_examine(url, 1);
	cli_expect_finding(cli, "BAD", "rights", "not authorized");
	cli_free(cli);
	CLI_CALL(url, 77, "run", "x", "--", "true");
	free(url);
}

static void doctor_warns_of_sessions_below_two_ticks(void **state)
{
	(void)state;
	struct test_zookeeper *three = test_zookeeper_start(&(struct test_zookeeper_options){
		.servers = 3, .tick_ms = 2000, .min_session_ms = 1000});
	char *url = check_format("zk://%s", test_zookeeper_hosts(three));
	struct cli *cli = cli_examine(url, 0);
	cli_expect_finding(cli, "note", "tick",
	                   "2000 ms; sessions last 1000 to 60000 ms, but locks need");
	cli_expect_finding(cli, "note", "tick", "set minSessionTimeout to two ticks");
	cli_expect_finding(cli, "ok", "session", "30000 ms");
	cli_free(cli);
	free(url);
	url = check_format("zk://%s?session=3900ms", test_zookeeper_hosts(three));
	cli = cli_examine(url, 1);
	cli_expect_finding(cli, "BAD", "session", "3900 ms is less than two ticks of 2000 ms");
	cli_free(cli);
	free(url);
	test_zookeeper_stop(three);
}

/* A node needs more than one round trip, and these take longer than the first contest here. */
static void a_slow_network_is_not_a_fault(void **state)
{
	(void)state;
	struct proxy *proxy = proxy_start(zk_url());
	proxy_delay(proxy, 100);
	struct cli *cli = cli_examine(proxy_url(proxy), 0);
	cli_expect_finding(cli, "ok", "rights", "locks were taken, waited for and released");
	cli_free(cli);
	proxy_stop(proxy);
}

static void doctor_counts_the_ensemble(void **state)
{
	(void)state;
	struct test_zookeeper *three =
		test_zookeeper_start(&(struct test_zookeeper_options){.servers = 3});
	char *all = check_format("zk://%s", test_zookeeper_hosts(three));
	struct cli *cli = cli_examine(all, 0);
	cli_expect_finding(cli, "ok", "ensemble", "3 voting servers, 0 observers");
	cli_expect_finding(cli, "ok", "quorum", "all 3 are up, 2 are needed");
	cli_free(cli);
	cli = cli_examine(test_zookeeper_url(three, 0), 0);
	cli_expect_finding(cli, "note", "URL", "names 1 of 3 servers");
	cli_free(cli);
	test_zookeeper_kill(three, test_zookeeper_follower(three));
	cli = cli_examine(all, 0);
	cli_expect_finding(cli, "note", "quorum",
	                   "2 of the 3 named in the URL are up, of 3 in all");
	cli_free(cli);
	free(all);
	test_zookeeper_stop(three);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(java_locks_and_plain_nodes_are_listed),
		ZK_STORY(a_folder_of_locks_is_not_mistaken_for_a_lock),
		ZK_STORY(a_pattern_selects_paths),
		ZK_STORY(an_empty_tree_has_an_empty_list),
		ZK_STORY(the_token_is_that_of_the_holder),
		ZK_STORY(host_process_and_program_of_run_are_shown),
		ZK_STORY(the_columns_show_waiters_in_order),
		ZK_STORY(the_columns_show_the_text_of_candidates),
		ZK_STORY(a_semaphore_without_its_gate_is_found),
		ZK_STORY(a_lock_named_leases_is_not_mistaken_for_a_semaphore),
		ZK_STORY(a_double_barrier_is_one_row_and_not_a_lock),
		ZK_STORY(readers_beyond_200_are_counted),
		ZK_STORY(a_large_tree_is_read_in_steps),
		ZK_STORY(data_from_others_is_escaped),
		ZK_STORY(unlock_removes_only_the_holder),
		ZK_STORY(unlock_removes_all_leases_of_a_semaphore),
		ZK_STORY(unlock_removes_only_the_leader),
		ZK_STORY(unlock_stops_permits_simple_locks_and_leaders),
		ZK_STORY(ping_prints_a_time),
		ZK_STORY(doctor_checks_a_single_server),
		ZK_STORY(doctor_reports_missing_rights),
		ZK_STORY(doctor_warns_of_sessions_below_two_ticks),
		ZK_STORY(a_slow_network_is_not_a_fault),
		ZK_STORY(doctor_counts_the_ensemble),
	};
	return cmocka_run_group_tests_name("cli_zk_list", tests, zk_start, zk_stop);
}
