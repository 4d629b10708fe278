/* The cluster helpers in tests/support do what the other tests rely on, against real servers. */
#include <stdlib.h>
#include <string.h>

#include "support/certs.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/server.h"

static struct test_cluster *cluster;

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(NULL);
	return 0;
}

static int stop_cluster(void **state)
{
	(void)state;
	test_cluster_stop(cluster);
	return 0;
}

static bool has(int node, const char *name)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	struct raw_reply *reply = raw_command(raw, "EXISTS", name, NULL);
	bool exists = reply->type == RAW_INTEGER && reply->integer == 1;
	raw_reply_free(reply);
	raw_close(raw);
	return exists;
}

static void put(int node, const char *name)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	raw_ok(raw, "SET", name, "1", NULL);
	raw_close(raw);
}

static void slots_are_those_of_the_server(void **state)
{
	static const char *const names[] = {"orders", "123456789", "{app}:l1", "x{app}y",
	                                    "{}x",    "{a}b{c}d",  "a}b{c",    "{a",
	                                    "{{a}}",  "naïve"};
	struct raw *raw = test_cluster_connect(cluster, 0);
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(test_slot(names[i]),
		                 raw_integer(raw, "CLUSTER", "KEYSLOT", names[i], NULL));
	raw_close(raw);
}

static void names_lie_where_they_are_wanted(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		char *name = test_cluster_name(cluster, test_cluster_master(cluster, i), "orders-");
		put(test_cluster_master(cluster, i), name);
		assert_int_equal(test_cluster_owner_of(cluster, name), i);
		free(name);
	}
	char *name = test_slot_name(12345, "orders-");
	assert_int_equal(test_slot(name), 12345);
	free(name);
	assert_int_equal(test_cluster_master(cluster, 3), -1);
	assert_int_equal(test_cluster_replica(cluster, 1), 4);
	assert_int_equal(test_cluster_replica(cluster, 4), -1);
}

static void a_slot_moves_with_its_keys(void **state)
{
	char *name = test_cluster_name(cluster, 0, "moved-");
	int slot = test_slot(name);
	(void)state;
	put(0, name);
	test_cluster_open_slot(cluster, slot, 0, 1);
	assert_true(has(0, name));
	test_cluster_move_keys(cluster, slot, 0, 1);
	assert_int_equal(test_cluster_owner(cluster, slot), 0);
	test_cluster_close_slot(cluster, slot, 0, 1);
	assert_int_equal(test_cluster_owner(cluster, slot), 1);
	assert_true(has(1, name));
	test_cluster_move_slot(cluster, slot, 0);
	assert_true(has(0, name));
	free(name);
}

static void slots_migrate_where_the_server_can(void **state)
{
	char *name = test_cluster_name(cluster, 0, "migrated-");
	int slot = test_slot(name);
	(void)state;
	if (!test_cluster_can_migrate(cluster)) {
		print_message("Left out: CLUSTER MIGRATESLOTS, which this server does not know\n");
		free(name);
		return;
	}
	put(0, name);
	test_cluster_migrate(cluster, slot, slot, 2);
	assert_true(has(2, name));
	test_cluster_migrate(cluster, slot, slot, 0);
	free(name);
}

static void replicas_become_masters(void **state)
{
	(void)state;
	test_cluster_promote(cluster, 3);
	assert_int_equal(test_cluster_owner(cluster, 0), 3);
	test_cluster_wait_ok(cluster);
	assert_int_equal(test_cluster_replica(cluster, 3), 0);
	test_cluster_sync(cluster, 3, 1);
	test_server_kill(cluster->node[3]);
	assert_int_equal(test_cluster_next_owner(cluster, 0, 3), 0);
	test_cluster_bring_back(cluster, 3);
	assert_int_equal(test_cluster_replica(cluster, 0), 3);
}

static void a_reset_undoes_everything(void **state)
{
	char *name = test_cluster_name(cluster, 1, "left-");
	(void)state;
	put(1, name);
	test_cluster_open_slot(cluster, test_slot(name), 1, 2);
	test_server_kill(cluster->node[5]);
	test_server_freeze(cluster->node[4]);
	test_cluster_reset(cluster);
	assert_false(has(1, name));
	/* An open slot would answer ASK. */
	put(1, name);
	test_cluster_sync(cluster, 2, 1);
	free(name);
}

static void clusters_can_have_passwords_and_tls(void **state)
{
	struct test_cluster_options options = {
		.masters = 1, .replicas = NO_REPLICAS, .password = "secret"};
	(void)state;
	struct test_cluster *locked = test_cluster_start(&options);
	assert_int_equal(test_cluster_owner(locked, 1), 0);
	test_cluster_stop(locked);
	if (!test_server_has_tls()) {
		print_message("Left out: a cluster with TLS, which this server does not know\n");
		return;
	}
	struct certs *certs = certs_make();
	options = (struct test_cluster_options){.masters = 2, .certs = certs};
	struct test_cluster *hidden = test_cluster_start(&options);
	assert_non_null(strstr(hidden->url, "rediss+cluster://127.0.0.1:"));
	test_cluster_stop(hidden);
	certs_free(certs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_those_of_the_server),
		cmocka_unit_test(names_lie_where_they_are_wanted),
		cmocka_unit_test(a_slot_moves_with_its_keys),
		cmocka_unit_test(slots_migrate_where_the_server_can),
		cmocka_unit_test(replicas_become_masters),
		cmocka_unit_test(a_reset_undoes_everything),
		cmocka_unit_test(clusters_can_have_passwords_and_tls),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
