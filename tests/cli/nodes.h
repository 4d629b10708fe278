/* A Cluster, and a master that Sentinels watch, for a test program of the command. */
#ifndef TESTS_CLI_NODES_H
#define TESTS_CLI_NODES_H

#include "cli/cli.h"
#include "support/cluster.h"
#include "support/sentinels.h"

#define MASTERS 3

static struct test_cluster *cluster;
static struct test_sentinels *group;

/* No node may be given up on a busy machine. */
static inline int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .node_timeout_ms = 15000});
	return 0;
}

static inline int stop_cluster(void **state)
{
	(void)state;
	test_cluster_stop(cluster);
	return 0;
}

static inline int start_group(void **state)
{
	(void)state;
	group = test_sentinels_start(NULL);
	test_sentinels_sync(group, 0, SENTINELS_NODES - 1);
	return 0;
}

static inline int stop_group(void **state)
{
	(void)state;
	test_sentinels_stop(group);
	return 0;
}

/* Whether a lock of this name exists on a node. */
static inline bool is_on(struct test_server *node, const char *name)
{
	struct raw *raw = raw_connect(node);
	bool is = raw_integer(raw, "EXISTS", name, NULL) == 1;
	raw_close(raw);
	return is;
}

#endif
