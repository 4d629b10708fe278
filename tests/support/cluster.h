/* A Redis Cluster of masters and replicas, whose slots can be moved and whose nodes can fail. */
#ifndef TESTS_SUPPORT_CLUSTER_H
#define TESTS_SUPPORT_CLUSTER_H

#include <stdbool.h>

#define CLUSTER_SLOTS 16384
#define CLUSTER_MAX   12

struct certs;
struct raw;
struct test_server;

/*
 * A node is named by its index. At the start the masters come first; roles change with failovers.
 */
struct test_cluster {
	int masters;
	int count; /* of all nodes */
	struct test_server *node[CLUSTER_MAX];
	char id[CLUSTER_MAX][41]; /* what the nodes call each other */
	int node_timeout_ms;
	const char *password; /* or NULL */
	char *url;            /* redis+cluster:// or rediss+cluster://, with all nodes */
};

/* All fields are optional. */
struct test_cluster_options {
	int masters;         /* 3 */
	int replicas;        /* of each master: 1; NO_REPLICAS for none */
	int node_timeout_ms; /* after which a node counts as failed: 2000 */
	const char *password;
	const struct certs *certs; /* the nodes speak TLS only */
};

#define NO_REPLICAS (-1)

/* Starts all nodes, and waits until the cluster works. NULL is all defaults. */
struct test_cluster *test_cluster_start(const struct test_cluster_options *options);
void test_cluster_stop(struct test_cluster *cluster);

/* Connects to one node, and logs in. */
struct raw *test_cluster_connect(const struct test_cluster *cluster, int node);

/* ---- owners ---- */

/* The slot of a name, computed here so that it checks what the library computes. */
int test_slot(const char *name);

/* A name in this slot, with this prefix; malloc'ed. */
char *test_slot_name(int slot, const char *prefix);

/* A name in a slot of this master, with this prefix; malloc'ed. */
char *test_cluster_name(const struct test_cluster *cluster, int node, const char *prefix);

/* The master of the slot, or of a name's slot; -1 while the running nodes do not agree. */
int test_cluster_owner(const struct test_cluster *cluster, int slot);
int test_cluster_owner_of(const struct test_cluster *cluster, const char *name);

/* A running replica of this master; -1: none. */
int test_cluster_replica(const struct test_cluster *cluster, int master);

/* The i-th of the nodes that are masters with slots, in the order of their indexes; -1: none. */
int test_cluster_master(const struct test_cluster *cluster, int i);

/* ---- slots that move ---- */

/* Marks the slot as moving: it is open from now on, and its keys are where they were. */
void test_cluster_open_slot(const struct test_cluster *cluster, int slot, int from, int to);

/* Moves the keys of an open slot. */
void test_cluster_move_key(const struct test_cluster *cluster, const char *key, int from, int to);
void test_cluster_move_keys(const struct test_cluster *cluster, int slot, int from, int to);

/* Gives an open slot whose keys were moved to its new owner, and waits until all nodes know. */
void test_cluster_close_slot(const struct test_cluster *cluster, int slot, int from, int to);

/* The three in a row, from the present owner. */
void test_cluster_move_slot(const struct test_cluster *cluster, int slot, int to);

/* Moves the slots from first to last, which have one owner, one after the other. */
void test_cluster_move_slots(const struct test_cluster *cluster, int first, int last, int to);

/* Valkey 9 moves slots with their keys at once. Waits until all nodes know. */
bool test_cluster_can_migrate(const struct test_cluster *cluster);
void test_cluster_migrate(const struct test_cluster *cluster, int first, int last, int to);

/* ---- nodes that fail ---- */

/*
 * Makes a replica the master, with the consent of the present one, and waits until all nodes know.
 */
void test_cluster_promote(const struct test_cluster *cluster, int replica);

/* Waits until a node other than this one owns the slot for all running nodes, and returns it. */
int test_cluster_next_owner(const struct test_cluster *cluster, int slot, int before);

/* Sets after which time a node counts as failed, until the next reset. */
void test_cluster_set_timeout(const struct test_cluster *cluster, int timeout_ms);

/* Waits until this many replicas have all that the master has now. */
void test_cluster_sync(const struct test_cluster *cluster, int master, int replicas);

/* Whatever was done to it: all nodes run, no slot is open, the cluster works, and it is empty. */
void test_cluster_reset(const struct test_cluster *cluster);

/* Starts a node that was killed again, without its data, and waits until the cluster works. */
void test_cluster_bring_back(const struct test_cluster *cluster, int node);

/*
 * Waits until all running nodes are connected to each other and say that the cluster works, agree
 * on all slots, and every replica has caught up with its master.
 */
void test_cluster_wait_ok(const struct test_cluster *cluster);

#endif
