/* holdfast web on a Cluster, and on a master that Sentinels watch. */
#include "cli/json.h"
#include "cli/nodes.h"
#include "cli/web.h"

/* ---- a Cluster ---- */

/* Each name has a history of its own there. It says who took the lock away. */
static void expect_history(const char *name)
{
	char *path = check_format("/api/history?name=%s", name);
	char *answer = web_get_until(path, "\"end\":\"forced\"");
	assert_true(json_is_valid(web_body(answer)));
	assert_int_equal(cli_count(answer, "\"owner\":"), 1);
	char *pid = check_format("\"forced_by_pid\":%d}", (int)web->pid);
	cli_expect_in(answer, pid);
	free(pid);
	free(answer);
	free(path);
}

static void locks_of_all_masters_are_shown_and_taken_away(void **state)
{
	char *url = check_format("%s?history=yes", cluster->url), *name[MASTERS];
	struct cli *run[MASTERS];
	(void)state;
	WEB_START_AT(url, "--allow-unlock");
	for (int i = 0; i < MASTERS; i++) {
		name[i] = test_cluster_name(cluster, i, "shown-");
		run[i] = cli_start(url, "run", name[i], "--", "sleep", "60", NULL);
		WAIT_UNTIL(is_on(cluster->node[i], name[i]), CLI_SOON_MS);
	}
	char *answer = web_get_until("/api/locks", "\"held\":3,");
	assert_true(json_is_valid(web_body(answer)));
	cli_expect_in(answer, "\"address\":\"3 masters\"");
	for (int i = 0; i < MASTERS; i++)
		cli_expect_in(answer, name[i]);
	free(answer);
	for (int i = 0; i < MASTERS; i++) {
		web_expect_unlocked(name[i]);
		assert_false(is_on(cluster->node[i], name[i]));
		expect_history(name[i]);
		cli_free(run[i]);
		free(name[i]);
	}
	free(web_get_until("/api/locks", "\"held\":0,"));
	free(web_expect(web_get("/api/doctor"), 200));
	free(url);
	web_stop();
}

static void freeze_a_master(void)
{
	test_server_freeze(cluster->node[1]);
}

static void thaw_a_master(void)
{
	test_server_thaw(cluster->node[1]);
}

static void a_master_that_does_not_answer_is_said(void **state)
{
	(void)state;
	WEB_START_AT(cluster->url);
	web_expect_lost_and_back("\"lost\":\"1 of 3 masters\"", freeze_a_master, thaw_a_master);
	web_stop();
}

/* ---- Sentinels ---- */

/* As long as the replicas do not answer, no Sentinel can replace the master. */
static void lose_the_master(void)
{
	test_server_freeze(group->node[1]);
	test_server_freeze(group->node[2]);
	test_server_kill(group->node[0]);
}

static void thaw_the_replicas(void)
{
	test_server_thaw(group->node[1]);
	test_server_thaw(group->node[2]);
}

static void a_failover_is_waited_for_and_shown(void **state)
{
	(void)state;
	struct cli *run = cli_start(group->url, "run", "--lease", "120", "orders", "--", "sleep",
	                            "600", NULL);
	WAIT_UNTIL(is_on(group->node[0], "orders"), CLI_SOON_MS);
	test_sentinels_sync(group, 0, SENTINELS_NODES - 1);
	WEB_START_AT(group->url, "--allow-unlock");
	char *answer = web_get_until("/api/locks", "\"held\":1,");
	char *before = check_format("127.0.0.1:%d", test_server_port(group->node[0]));
	cli_expect_in(answer, before);
	free(answer);
	web_expect_lost_and_back("\"lost\":\"server\"", lose_the_master, thaw_the_replicas);
	int master = test_sentinels_next(group, 0);
	char *after = check_format("127.0.0.1:%d", test_server_port(group->node[master]));
	answer = web_get_until("/api/locks", after);
	cli_expect_in(answer, "\"held\":1,");
	free(answer);
	web_expect_unlocked("orders");
	cli_free(run);
	free(before);
	free(after);
	web_stop();
}

#define STORY(name) cmocka_unit_test_teardown(name, web_clean_up)

int main(void)
{
	const struct CMUnitTest on_cluster[] = {
		STORY(locks_of_all_masters_are_shown_and_taken_away),
		STORY(a_master_that_does_not_answer_is_said),
	};
	const struct CMUnitTest on_sentinels[] = {
		STORY(a_failover_is_waited_for_and_shown),
	};
	int failed = cmocka_run_group_tests(on_cluster, start_cluster, stop_cluster);
	return failed + cmocka_run_group_tests(on_sentinels, start_group, stop_group);
}
