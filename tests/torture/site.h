/* The servers of one deployment, and the lines over which the processes of torture reach them. */
#ifndef TESTS_TORTURE_SITE_H
#define TESTS_TORTURE_SITE_H

#include "support/cluster.h"
#include "support/host.h"
#include "support/proxy.h"
#include "support/sentinels.h"
#include "support/server.h"
#include "support/zookeeper.h"

enum site_kind { SINGLE, SENTINEL, CLUSTER, REPLICAS, RED, ZK_ALONE, ZK_ENSEMBLE, SITES };

extern const char *const site_names[SITES];

/* Each process is on one of the lines, so that the network can fail for some of them. */
#define SITE_LINES 2
#define SITE_NODES 6

struct site {
	enum site_kind kind;
	int nodes;
	struct test_server *node[SITE_NODES]; /* of Redis; those of a group belong to it */
	struct test_sentinels *sentinels;
	struct test_cluster *cluster;
	struct test_zookeeper *zookeeper;
	struct test_host *host[SITE_NODES]; /* of each server that is not in a group */
	int master;                         /* of a site whose servers are replicated by hand */
	struct proxy *proxy[SITE_LINES][SITE_NODES];
	char *urls[SITE_LINES]; /* for a process of the line, separated by spaces */
	char *direct;           /* the same without proxies */
	const char *user;       /* of the processes; empty: the default one */
	int replicas;           /* that acknowledge grants */
};

bool site_is_zk(const struct site *site);

/* The servers die with the calling thread. */
struct site *site_start(enum site_kind kind);
void site_stop(struct site *site);

/* The node that serves writes, where there is one; of a Cluster the first. */
int site_master(const struct site *site);

/* Waits until everything runs again as it did at the start, except which node is the master. */
void site_settle(struct site *site);

/* Removes all that is on the servers. */
void site_clear(struct site *site);

/*
 * Whether something is on the servers that should not be when nobody holds anything; ret_text
 * receives it in words.
 */
bool site_has_leftover(struct site *site, char *ret_text, size_t size);

/* Makes the replica the master, and the others follow it. */
void site_promote(struct site *site, int node);

#endif
