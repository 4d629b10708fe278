/*
 * A deployment of servers for tests that are not written in C:
 *
 *     deployment cluster|sentinel|zookeeper
 *
 * It prints the URL, and then obeys lines: "freeze" stops all servers, "kill" kills the first
 * master, and "thaw" lets the others continue. It answers each with a line "done". At the end of
 * its input it removes everything. It ends as skipped if the servers cannot be started or used.
 */
#include "support/check.h"
#include "support/cluster.h"
#include "support/sentinels.h"
#include "support/server.h"
#include "support/zookeeper.h"

#include <stdio.h>
#include <string.h>

#define MOST_SERVERS CLUSTER_MAX

static struct test_cluster *cluster;
static struct test_sentinels *group;
static struct test_zookeeper *zookeeper;

/* The servers that hold locks; the first one is a master. ZooKeeper has functions of its own. */
static struct test_server *servers[MOST_SERVERS];
static size_t n_servers, first_alive;

static void start(const char *kind)
{
	if (strcmp(kind, "cluster") == 0) {
		cluster = test_cluster_start(&(struct test_cluster_options){
			.replicas = NO_REPLICAS, .node_timeout_ms = 15000});
		for (int i = 0; i < cluster->count; i++)
			servers[n_servers++] = cluster->node[i];
		puts(cluster->url);
	} else if (strcmp(kind, "sentinel") == 0) {
		group = test_sentinels_start(NULL);
		test_sentinels_sync(group, 0, SENTINELS_NODES - 1);
		for (int i = 0; i < SENTINELS_NODES; i++)
			servers[n_servers++] = group->node[i];
		puts(group->url);
	} else if (strcmp(kind, "zookeeper") == 0) {
#ifndef HF_HAVE_ZOOKEEPER
		check_skip("the library is built without ZooKeeper");
#endif
		zookeeper = test_zookeeper_start(NULL);
		puts(test_zookeeper_url(zookeeper, 0));
	} else {
		check_fail("there is no deployment '%s'", kind);
	}
}

static void freeze(bool on)
{
	for (size_t i = first_alive; i < n_servers; i++)
		if (on)
			test_server_freeze(servers[i]);
		else
			test_server_thaw(servers[i]);
	if (zookeeper && on)
		test_zookeeper_freeze(zookeeper, 0);
	else if (zookeeper)
		test_zookeeper_thaw(zookeeper, 0);
}

static void obey(const char *order)
{
	if (strcmp(order, "kill\n") == 0 && n_servers > 0)
		test_server_kill(servers[first_alive++]);
	else if (strcmp(order, "freeze\n") == 0)
		freeze(true);
	else if (strcmp(order, "thaw\n") == 0)
		freeze(false);
	else
		check_fail("there is no order '%s'", order);
	puts("done");
}

int main(int argc, char **argv)
{
	char order[32];
	setvbuf(stdout, NULL, _IOLBF, 0);
	start(argc > 1 ? argv[1] : "");
	while (fgets(order, sizeof order, stdin))
		obey(order);
	test_cluster_stop(cluster);
	test_sentinels_stop(group);
	test_zookeeper_stop(zookeeper);
	return 0;
}
