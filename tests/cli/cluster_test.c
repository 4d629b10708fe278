/* The command on a cluster: locks on every master, whichever node it was given. */
#include "cli/json.h"
#include "cli/nodes.h"

static void locks_of_all_masters_are_taken_and_listed(void **state)
{
	struct cli *run[MASTERS];
	char *name[MASTERS];
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		name[i] = test_cluster_name(cluster, i, "listed-");
		run[i] = cli_start(cluster->url, "run", name[i], "--", "cat", NULL);
		WAIT_UNTIL(is_on(cluster->node[i], name[i]), CLI_SOON_MS);
	}
	struct cli *list = cli_show_json(cluster->url, "ls", NULL);
	for (int i = 0; i < MASTERS; i++)
		cli_expect_in(json_about(cli_output(list), name[i]), "\"kind\":\"reentrant\"");
	cli_free(list);
	for (int i = 0; i < MASTERS; i++) {
		struct cli *about = cli_show_json(cluster->url, "who", name[i]);
		cli_expect_in(cli_output(about), "\"command\":\"cat\"");
		cli_free(about);
		cli_finish(run[i]);
		assert_false(is_on(cluster->node[i], name[i]));
		free(name[i]);
	}
}

static void the_address_of_one_node_is_enough(void **state)
{
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		char *name = test_cluster_name(cluster, i, "single-");
		CLI_CALL(test_server_url(cluster->node[0]), 0, "run", name, "--", "true");
		free(name);
	}
}

static void a_lock_of_any_master_is_waited_for_and_forced(void **state)
{
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		char *name = test_cluster_name(cluster, i, "forced-");
		struct cli *holder =
			cli_start(cluster->url, "run", name, "--", "sleep", "60", NULL);
		WAIT_UNTIL(is_on(cluster->node[i], name), CLI_SOON_MS);
		struct cli *waiter =
			cli_start(cluster->url, "run", "-w", "60", name, "--", "true", NULL);
		CLI_CALL(cluster->url, 1, "run", "-n", name, "--", "true");
		CLI_CALL(cluster->url, 0, "unlock", "--force", "--yes", name);
		CLI_EXPECT(waiter, 0);
		cli_free(waiter);
		cli_free(holder);
		CLI_CALL(cluster->url, 1, "who", name);
		CLI_CALL(cluster->url, 1, "unlock", "--force", "--yes", name);
		free(name);
	}
}

static void any_node_answers_a_ping(void **state)
{
	(void)state;
	CLI_CALL(cluster->url, 0, "ping");
	for (int i = 0; i < MASTERS; i++)
		CLI_CALL(test_server_url(cluster->node[i]), 0, "ping");
}

static void the_next_candidate_becomes_the_leader(void **state)
{
	(void)state;
	struct cli *first = cli_start(cluster->url, "elect", "service", "--", "sh", "-c",
	                              "echo led; cat", NULL);
	CLI_WAIT_OUTPUT(first, "led");
	struct cli *second =
		cli_start(cluster->url, "elect", "service", "--", "sh", "-c", "echo led", NULL);
	cli_finish(first);
	CLI_EXPECT(second, 0);
	cli_expect_in(cli_output(second), "led");
	cli_free(second);
}

/* ---- doctor ---- */

/* The finding names this master. */
static void expect_about(struct cli *cli, const char *verdict, const char *subject, int node,
                         const char *wanted)
{
	char *line = check_format("%-4s  %-12s 127.0.0.1:%d: ", verdict, subject,
	                          test_server_port(cluster->node[node]));
	const char *found = strstr(cli_output(cli), line);
	if (!found || !memmem(found, strcspn(found, "\n"), wanted, strlen(wanted)))
		fail_msg("'%s%s' was not printed, but: %s", line, wanted, cli_output(cli));
	free(line);
}

static void configure(int node, const char *name, const char *value)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	raw_ok(raw, "CONFIG", "SET", name, value, NULL);
	raw_close(raw);
}

static bool is_sharded(void)
{
	struct raw *raw = test_cluster_connect(cluster, 0);
	struct raw_reply *reply = raw_command(raw, "PUBSUB", "SHARDNUMSUB", "0", NULL);
	bool is = reply->type != RAW_ERROR;
	raw_reply_free(reply);
	raw_close(raw);
	return is;
}

static void a_cluster_is_examined(void **state)
{
	(void)state;
	struct cli *cli = cli_examine(cluster->url, 0);
	cli_expect_finding(cli, "note", "cluster", "3 of 3 masters have no replica");
	for (int i = 0; i < MASTERS; i++)
		expect_about(cli, "note", "persistence", i, "no append-only file");
	cli_expect_finding(cli, "ok ", "messages", is_sharded() ? "sharded" : "plain");
	cli_expect_finding(cli, "ok ", "rights", "locks were taken and released");
	cli_free(cli);
	cli = cli_examine(test_server_url(cluster->node[1]), 0);
	cli_expect_finding(cli, "note", "cluster", "3 of 3 masters have no replica");
	cli_free(cli);
}

/* Whichever master it is that evicts, or has no file. */
static void each_master_is_examined(void **state)
{
	(void)state;
	for (int i = 0; i < MASTERS; i++)
		configure(i, "appendonly", "yes");
	for (int i = 0; i < MASTERS; i++) {
		configure(i, "maxmemory-policy", "allkeys-lru");
		configure(i, "maxmemory", "1gb");
		struct cli *cli = cli_examine(cluster->url, 1);
		expect_about(cli, "BAD", "eviction", i, "; set maxmemory-policy noeviction");
		assert_int_equal(cli_count(cli_output(cli), "BAD "), 1);
		assert_int_equal(cli_count(cli_output(cli), " was examined"), MASTERS - 1);
		cli_free(cli);
		configure(i, "maxmemory", "0");
		configure(i, "maxmemory-policy", "noeviction");
	}
	struct cli *cli = cli_examine(cluster->url, 0);
	assert_int_equal(cli_count(cli_output(cli), " was examined, and no problem was found"),
	                 MASTERS);
	cli_free(cli);
	for (int i = 0; i < MASTERS; i++)
		configure(i, "appendonly", "no");
}

/* It is found to be silent, and the others are examined. */
static void a_master_that_does_not_answer_is_a_finding(void **state)
{
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		test_server_freeze(cluster->node[i]);
		char *url = check_format("%s?command_timeout=300ms", cluster->url);
		struct cli *cli = cli_start(url, "doctor", NULL);
		int status = cli_wait(cli, CLI_SOON_MS);
		test_server_thaw(cluster->node[i]);
		assert_int_equal(status, 1);
		expect_about(cli, "BAD", "node", i, "it could not be examined");
		for (int other = 0; other < MASTERS; other++)
			if (other != i)
				expect_about(cli, "note", "persistence", other, "append-only");
		cli_free(cli);
		free(url);
	}
	test_cluster_wait_ok(cluster);
}

static void messages_that_java_does_not_hear_are_noticed(void **state)
{
	char *url = check_format("%s?sharded=off", cluster->url);
	(void)state;
	struct cli *cli = cli_examine(url, 0);
	if (is_sharded())
		cli_expect_finding(cli, "note", "messages", "; leave out sharded=off");
	else
		cli_expect_finding(cli, "ok ", "messages", "plain");
	cli_free(cli);
	free(url);
}

static void send_to_all(const char *line)
{
	for (int i = 0; i < MASTERS; i++) {
		const char *words[128];
		size_t lengths[128], n = 0;
		struct raw *raw = test_cluster_connect(cluster, i);
		char *copy = check_copy(line, strlen(line));
		char *rest = copy;
		for (char *word; n < 128 && (word = strtok_r(rest, " \n", &rest)); n++) {
			words[n] = word;
			lengths[n] = strlen(word);
		}
		struct raw_reply *reply = raw_command_words(raw, n, words, lengths);
		if (reply->type != RAW_STATUS)
			fail_msg("%s: %s", line, reply->text ? reply->text : "no status");
		raw_reply_free(reply);
		raw_close(raw);
		free(copy);
	}
}

/* A user of a single server has no reason to have these rights. */
static void the_acl_line_has_the_rights_of_a_cluster(void **state)
{
	(void)state;
	char *url = check_format("redis+cluster://few:pw@%s",
	                         strstr(test_server_url(cluster->node[0]), "//") + 2);
	send_to_all("ACL SETUSER few reset on >pw");
	struct cli *cli = cli_examine(url, 1);
	const char *line = strstr(cli_output(cli), "ACL SETUSER few ");
	assert_non_null(line);
	cli_expect_in(line, " +cluster|nodes +xrevrange +pubsub|shardnumsub "
	                    "+pubsub|shardchannels +asking +ssubscribe");
	/* Without any right the version of the server is not known. */
	char *copy = check_copy(line, strlen(line));
	if (!is_sharded())
		*strstr(copy, " +ssubscribe") = 0;
	send_to_all(copy);
	free(copy);
	cli_free(cli);
	cli = cli_examine(url, 0);
	cli_expect_finding(cli, "ok ", "messages", is_sharded() ? "sharded" : "plain");
	cli_expect_finding(cli, "ok ", "rights", "locks were taken and released");
	cli_free(cli);
	CLI_CALL(url, 0, "ls");
	CLI_CALL(url, 0, "history");
	send_to_all("ACL SETUSER few -scan");
	CLI_CALL(url, 77, "history");
	send_to_all("ACL SETUSER few reset");
	free(url);
}

static void ask_all(const char *word, const char *slot)
{
	for (int i = 0; i < MASTERS; i++) {
		struct raw *raw = test_cluster_connect(cluster, i);
		raw_ok(raw, "CLUSTER", word, slot, NULL);
		raw_close(raw);
	}
}

static void a_slot_without_a_master_is_bad(void **state)
{
	(void)state;
	ask_all("DELSLOTS", "0");
	struct cli *cli = cli_examine(cluster->url, 1);
	cli_expect_finding(cli, "BAD ", "cluster", "1 of 16384 slots have no master");
	cli_free(cli);
	CLI_EXPECT_REFUSAL(cluster->url, 77, "1 of the cluster's 16384 slots", "history");
	struct raw *raw = test_cluster_connect(cluster, 0);
	raw_ok(raw, "CLUSTER", "ADDSLOTS", "0", NULL);
	raw_close(raw);
	test_cluster_wait_ok(cluster);
}

static void remove_history(const char *name)
{
	CLI_CALL(cluster->url, 0, "history", "--clear", "--yes", name);
}

/* The rows of all masters are sorted by time, whichever master has them. */
static void the_history_of_all_names_is_shown(void **state)
{
	char *url = check_format("%s?history=yes", cluster->url);
	char *names[2 * MASTERS];
	(void)state;
	for (int i = 0; i < 2 * MASTERS; i++) {
		names[i] = test_cluster_name(cluster, i % MASTERS, i < MASTERS ? "a-" : "b-");
		CLI_CALL(url, 0, "run", names[i], "--", "true");
	}
	struct cli *cli = cli_call(url, 0, "history", "--json", NULL);
	assert_true(json_is_valid(cli_output(cli)));
	const char *at = cli_output(cli);
	for (int i = 0; i < 2 * MASTERS; i++) {
		at = strstr(at, names[i]);
		assert_non_null(at);
	}
	cli_free(cli);
	cli = cli_call(url, 0, "history", "--since", "1h", NULL);
	assert_int_equal(cli_count(cli_output(cli), "\n"), 2 * MASTERS + 1);
	cli_free(cli);
	CLI_EXPECT_REFUSAL(url, 64, "required on a cluster", "history", "--clear", "--yes");
	for (int i = 0; i < 2 * MASTERS; i++) {
		remove_history(names[i]);
		free(names[i]);
	}
	free(url);
}

static void a_history_that_begins_later_is_followed(void **state)
{
	char *url = check_format("%s?history=yes", cluster->url);
	char *names[MASTERS];
	(void)state;
	struct cli *cli = cli_start(url, "history", "--follow", "--json", NULL);
	for (int i = 0; i < MASTERS; i++) {
		names[i] = test_cluster_name(cluster, i, "later-");
		CLI_CALL(url, 0, "run", names[i], "--", "true");
		CLI_WAIT_OUTPUT(cli, names[i]);
	}
	WAIT_UNTIL(cli_count(cli_output(cli), "\"released\"") == MASTERS, CLI_SOON_MS);
	cli_free(cli);
	for (int i = 0; i < MASTERS; i++) {
		remove_history(names[i]);
		free(names[i]);
	}
	free(url);
}

static void another_database_is_refused(void **state)
{
	char *url = check_format("%s/1", cluster->url);
	(void)state;
	CLI_EXPECT_REFUSAL(url, 78, "cluster", "run", "orders", "--", "true");
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_of_all_masters_are_taken_and_listed),
		cmocka_unit_test(the_address_of_one_node_is_enough),
		cmocka_unit_test(a_lock_of_any_master_is_waited_for_and_forced),
		cmocka_unit_test(any_node_answers_a_ping),
		cmocka_unit_test(the_next_candidate_becomes_the_leader),
		cmocka_unit_test(a_cluster_is_examined),
		cmocka_unit_test(each_master_is_examined),
		cmocka_unit_test(a_master_that_does_not_answer_is_a_finding),
		cmocka_unit_test(messages_that_java_does_not_hear_are_noticed),
		cmocka_unit_test(the_acl_line_has_the_rights_of_a_cluster),
		cmocka_unit_test(the_history_of_all_names_is_shown),
		cmocka_unit_test(a_history_that_begins_later_is_followed),
		cmocka_unit_test(another_database_is_refused),
		cmocka_unit_test(a_slot_without_a_master_is_bad),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
