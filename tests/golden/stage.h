/* Where a story is played: the servers, how its processes reach them, and what is said there. */
#ifndef TESTS_GOLDEN_STAGE_H
#define TESTS_GOLDEN_STAGE_H

#include <stdbool.h>

#include "golden/story.h"
#include "support/raw.h"

#define STAGE_MAX_NODES 3

struct test_cluster;
struct test_sentinels;
struct test_server;

/* The player owns it. A node is named by its index. */
struct stage {
	int nodes;
	struct test_server *server[STAGE_MAX_NODES];
	const char *name[STAGE_MAX_NODES]; /* in stories; NULL: they do not name it */
	struct raw *raw[STAGE_MAX_NODES];  /* of a master: for its keys; else NULL */
	struct raw *ear[STAGE_MAX_NODES];  /* NULL: nothing is said there */
	bool monitors;                     /* the ears hear commands, not just messages */
	int new_master;  /* its ear was opened late, so subscriptions may exist; -1: none */
	bool is_sharded; /* the server knows sharded channels */
	int urls;        /* a process has a client for each */
	char *url[STAGE_MAX_NODES];
	struct test_cluster *cluster; /* these two are the owners of the servers if they exist */
	struct test_sentinels *sentinels;
};

/* A file's name chooses what is started: a cluster, Sentinels, replicas, or plain servers. */
void stage_open(struct stage *stage, const char *title);
void stage_close(struct stage *stage);

/* Does "(MIGRATE)" and the like. Returns false if it is not such a thing. */
bool stage_act(struct stage *stage, const char *what);

/* The payload is NULL if the command publishes nothing, the command NULL if it is not known. */
typedef void stage_heard_fn(void *arg, int node, const char *command, const char *channel,
                            const char *payload);

/*
 * Waits for one thing that is said at this node. Returns whether anything was, of interest or not.
 */
bool stage_listen(struct stage *stage, int node, int patience_ms, stage_heard_fn *heard, void *arg);

#endif
