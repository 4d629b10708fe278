/*
 * C and Java share a master and its replicas, found by a list of servers or by Sentinels, and a
 * failover.
 */
#include "interop/pairs.h"

#include "support/sentinels.h"

static struct test_sentinels *group;
static char *replicated_url;
static int master; /* index of the node that is the master */

/* ---- setting up ---- */

static int start_group(void **state)
{
	(void)state;
	group = test_sentinels_start(NULL);
	replicated_url = check_format(
		"redis://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", test_server_port(group->node[0]),
		test_server_port(group->node[1]), test_server_port(group->node[2]));
	pair_nodes = group->node;
	pair_node_count = SENTINELS_NODES;
	return 0;
}

static int stop_group(void **state)
{
	(void)state;
	stop_sides();
	test_sentinels_stop(group);
	free(replicated_url);
	return 0;
}

static int begin_replicated(void **state)
{
	(void)state;
	start_sides(replicated_url);
	return 0;
}

/* Whether a node follows the master, and is connected to it. */
static bool follows(int node)
{
	struct raw *raw = raw_connect(group->node[node]);
	char *info = raw_text(raw, "INFO", "replication", NULL);
	char *port = check_format("master_port:%d\r", test_server_port(group->node[master]));
	bool follows = strstr(info, port) && strstr(info, "master_link_status:up");
	free(port);
	free(info);
	raw_close(raw);
	return follows;
}

/* Starts a node again that was killed. It is made a replica at once, before Sentinel does it. */
static void bring_back(int node)
{
	char *port = check_format("%d", test_server_port(group->node[master]));
	test_server_restart(group->node[node]);
	struct raw *raw = raw_connect(group->node[node]);
	raw_ok(raw, "REPLICAOF", "127.0.0.1", port, NULL);
	raw_close(raw);
	free(port);
}

/* The clients of the previous stories must not mistake a node that comes back for the master. */
static int begin_sentinel(void **state)
{
	(void)state;
	if (sides_url && strcmp(sides_url, group->url) != 0)
		stop_sides();
	for (int i = 0; i < SENTINELS_NODES; i++) {
		struct raw *raw = try_node(i);
		if (!raw)
			bring_back(i);
		raw_close(raw);
	}
	start_sides(group->url);
	return 0;
}

#define REPLICATED(story)                                                                          \
	{                                                                                          \
#story " [replicated]", story, begin_replicated, NULL, NULL                        \
	}
#define SENTINEL(story)                                                                            \
	{                                                                                          \
#story " [sentinel]", story, begin_sentinel, NULL, NULL                            \
	}

static void add_kinds(struct pairs *pairs)
{
	for (size_t i = 0; i < PAIR_KINDS; i++) {
		char name[64];
		make_name(name, sizeof name, pair_kinds[i].name);
		pairs_add(pairs, &pair_kinds[i], name);
	}
}

/* ---- stories ---- */

static void java_is_woken_by_c(void **state)
{
	struct pairs pairs = {0};
	(void)state;
	add_kinds(&pairs);
	java_enters_when_c_releases(&pairs);
}

static void c_is_woken_by_java(void **state)
{
	struct pairs pairs = {0};
	(void)state;
	add_kinds(&pairs);
	c_enters_when_java_releases(&pairs);
}

/*
 * Kills the master when its replicas have everything, and waits until another one has taken over.
 */
static void replace_master(void)
{
	for (int i = 0; i < SENTINELS_NODES; i++)
		if (i != master)
			WAIT_UNTIL(follows(i), 6 * SOON_MS);
	test_sentinels_sync(group, master, SENTINELS_NODES - 1);
	test_server_kill(group->node[master]);
	master = test_sentinels_next(group, master);
}

/* One failover serves both directions. */
static void holds_and_waiters_of_both_sides_survive_a_failover(void **state)
{
	struct pairs of_c = {0};
	struct pairs of_java = {0};
	(void)state;
	add_kinds(&of_c);
	add_kinds(&of_java);
	java_waits_for_all(&of_c, HOLD_MS);
	c_waits_for_all(&of_java);
	replace_master();
	both_enter_after_a_failover(&of_c, &of_java, master);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		REPLICATED(java_is_woken_by_c),
		REPLICATED(c_is_woken_by_java),
		REPLICATED(holds_and_waiters_of_both_sides_survive_a_failover),
		SENTINEL(java_is_woken_by_c),
		SENTINEL(c_is_woken_by_java),
		SENTINEL(holds_and_waiters_of_both_sides_survive_a_failover),
	};
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, start_group, stop_group);
}
