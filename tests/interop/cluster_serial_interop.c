/* C and Java share a Redis Cluster: all masters, slots that move, sharded and plain channels. */
#include "interop/pairs.h"

#include "support/cluster.h"

#define MASTERS 3

/* The lease of a hold that a deaf waiter in Java sees expire. */
#define SHORT_MS 8000

/* The first kinds of the table are locks, whose waiters in Java do not wait longer than a lease. */
#define DEAF_KINDS 3

/* How often a C client may ask while Java waits in vain: far below what a busy loop would ask. */
#define MOST_SCRIPTS 60

static struct test_cluster *cluster;

/* ---- setting up ---- */

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(NULL);
	pair_nodes = cluster->node;
	pair_node_count = cluster->count;
	return 0;
}

static int stop_cluster(void **state)
{
	(void)state;
	stop_sides();
	test_cluster_stop(cluster);
	return 0;
}

static void begin_with(const char *setting)
{
	char *url = check_format("%s%s", cluster->url, setting);
	start_sides(url);
	free(url);
}

/* Channels are sharded if the server can do that. */
static int begin_auto(void **state)
{
	(void)state;
	begin_with("");
	uses_sharded_channels = test_server_version(cluster->node[0]) >= 70000;
	return 0;
}

static int begin_off(void **state)
{
	(void)state;
	begin_with("?sharded=off");
	uses_sharded_channels = false;
	return 0;
}

/* As auto on servers that have sharded channels; the others refuse it. */
static int begin_on(void **state)
{
	(void)state;
	begin_with(test_server_version(cluster->node[0]) >= 70000 ? "?sharded=on" : "");
	uses_sharded_channels = test_server_version(cluster->node[0]) >= 70000;
	return 0;
}

#define AUTO(story) cmocka_unit_test_setup(story, begin_auto)
#define OFF(story)                                                                                 \
	{                                                                                          \
#story " [off]", story, begin_off, NULL, NULL                                      \
	}
#define ON(story)                                                                                  \
	{                                                                                          \
#story " [on]", story, begin_on, NULL, NULL                                        \
	}

/* ---- names ---- */

/* One name of each kind on this master. */
static void add_kinds(struct pairs *pairs, int master, size_t kinds)
{
	for (size_t i = 0; i < kinds; i++) {
		char prefix[64];
		make_name(prefix, sizeof prefix, pair_kinds[i].name);
		char *name = test_cluster_name(cluster, master, prefix);
		pairs_add(pairs, &pair_kinds[i], name);
		free(name);
	}
}

static void add_kinds_on_all_masters(struct pairs *pairs)
{
	for (int i = 0; i < MASTERS; i++)
		add_kinds(pairs, test_cluster_master(cluster, i), PAIR_KINDS);
}

/* Moves each name to this master, with the means that the server has. */
static void move_all(const struct pairs *pairs, int to)
{
	for (int i = 0; i < pairs->count; i++) {
		int slot = test_slot(pairs->pair[i]->name);
		if (i % 2 && test_cluster_can_migrate(cluster))
			test_cluster_migrate(cluster, slot, slot, to);
		else
			test_cluster_move_slot(cluster, slot, to);
	}
}

/* ---- stories ---- */

static void java_is_woken_by_c_on_all_masters(void **state)
{
	struct pairs pairs = {0};
	(void)state;
	add_kinds_on_all_masters(&pairs);
	java_enters_when_c_releases(&pairs);
}

static void c_is_woken_by_java_on_all_masters(void **state)
{
	struct pairs pairs = {0};
	(void)state;
	add_kinds_on_all_masters(&pairs);
	c_enters_when_java_releases(&pairs);
}

/* Java releases at the new owner. */
static void c_waits_across_a_move_and_is_woken_by_java(void **state)
{
	struct pairs pairs = {0};
	int to = test_cluster_master(cluster, 1);
	(void)state;
	add_kinds(&pairs, test_cluster_master(cluster, 0), PAIR_KINDS);
	c_waits_for_all(&pairs);
	move_all(&pairs, to);
	pairs_are_awaited_at(to, &pairs, SOON_MS);
	for (int i = 0; i < pairs.count; i++)
		assert_false(waiter_is_over(pairs.pair[i]->waiter));
	java_releases_all(&pairs);
	c_enters_all(&pairs, test_now_ms());
	pairs_close(&pairs);
}

/*
 * Redisson does not subscribe to a sharded channel again after its slot has moved, so no message
 * reaches it; it asks again when the lease that it has seen has expired. C has no part in that
 * wait.
 */
static void java_that_became_deaf_by_a_move_enters_at_the_ttl(void **state)
{
	struct pairs pairs = {0};
	(void)state;
	add_kinds(&pairs, test_cluster_master(cluster, 1), DEAF_KINDS);
	long long taken_at = test_now_ms();
	java_waits_for_all(&pairs, SHORT_MS);
	move_all(&pairs, test_cluster_master(cluster, 2));
	long long scripts = count_scripts();
	long long released_at = test_now_ms();
	c_releases_all(&pairs);
	ASSERT_BETWEEN(test_now_ms() - released_at, 0, WOKEN_MS);
	java_enters_all(&pairs, taken_at, SHORT_MS + 2LL * LATE_MS);
	ASSERT_BETWEEN(count_scripts() - scripts, pairs.count, MOST_SCRIPTS);
	pairs_close(&pairs);
}

/* Redisson's next scan finds the new owner, and it subscribes to a plain channel there. */
static void java_waits_across_a_move_and_is_woken_by_c(void **state)
{
	struct pairs pairs = {0};
	int to = test_cluster_master(cluster, 2);
	(void)state;
	add_kinds(&pairs, test_cluster_master(cluster, 0), PAIR_KINDS);
	java_waits_for_all(&pairs, HOLD_MS);
	move_all(&pairs, to);
	pairs_are_awaited_at(to, &pairs, SCAN_MS);
	long long released_at = test_now_ms();
	c_releases_all(&pairs);
	java_enters_all(&pairs, released_at, ENTER_MS);
	pairs_close(&pairs);
}

/* One failover serves both directions. */
static void holds_and_waiters_of_both_sides_survive_a_failover(void **state)
{
	struct pairs of_c = {0};
	struct pairs of_java = {0};
	int old = test_cluster_master(cluster, 0);
	(void)state;
	add_kinds(&of_c, old, PAIR_KINDS);
	add_kinds(&of_java, old, PAIR_KINDS);
	java_waits_for_all(&of_c, HOLD_MS);
	c_waits_for_all(&of_java);
	test_cluster_sync(cluster, old, 1);
	test_server_kill(cluster->node[old]);
	both_enter_after_a_failover(
		&of_c, &of_java,
		test_cluster_next_owner(cluster, test_slot(of_c.pair[0]->name), old));
	test_cluster_bring_back(cluster, old);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON(java_is_woken_by_c_on_all_masters),
		ON(c_is_woken_by_java_on_all_masters),
		AUTO(java_is_woken_by_c_on_all_masters),
		AUTO(c_is_woken_by_java_on_all_masters),
		AUTO(c_waits_across_a_move_and_is_woken_by_java),
		AUTO(holds_and_waiters_of_both_sides_survive_a_failover),
		AUTO(java_that_became_deaf_by_a_move_enters_at_the_ttl),
		OFF(java_is_woken_by_c_on_all_masters),
		OFF(c_is_woken_by_java_on_all_masters),
		OFF(c_waits_across_a_move_and_is_woken_by_java),
		OFF(java_waits_across_a_move_and_is_woken_by_c),
	};
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
