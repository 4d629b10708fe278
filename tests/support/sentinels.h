/* A master, its replicas, and the Sentinels that watch them. */
#ifndef TESTS_SUPPORT_SENTINELS_H
#define TESTS_SUPPORT_SENTINELS_H

#include <stdbool.h>

#define SENTINELS_NODES 3
#define SENTINELS_COUNT 3

struct test_server;

struct test_sentinels {
	struct test_server *node[SENTINELS_NODES]; /* the first is the master at the start */
	struct test_server *sentinel[SENTINELS_COUNT];
	const char *password; /* of the servers, or NULL */
	char *url;            /* redis+sentinel://…/mymaster, with all Sentinels */
};

/* All fields are optional. */
struct test_sentinels_options {
	const char *password;          /* of the servers */
	const char *sentinel_password; /* of the Sentinels */
};

/* Starts all of them, and waits until they know each other. NULL is all defaults. */
struct test_sentinels *test_sentinels_start(const struct test_sentinels_options *options);
void test_sentinels_stop(struct test_sentinels *group);

/* Which node this Sentinel names; -1 if it names none of them or does not answer. */
int test_sentinels_named(const struct test_sentinels *group, int sentinel);

/* Which node every Sentinel names that answers; -1 while they do not agree. */
int test_sentinels_master(const struct test_sentinels *group);

/* Makes the first Sentinel replace the master; false while the previous failover is not over. */
bool test_sentinels_begin(const struct test_sentinels *group);

/*
 * Begins that, and waits until the first Sentinel names a node other than this one. It begins again
 * if the Sentinels give up, which they do if they are too slow to agree.
 */
void test_sentinels_replace(const struct test_sentinels *group, int before);

/* Waits until a node other than this one is the master everywhere, and returns it. */
int test_sentinels_next(const struct test_sentinels *group, int before);

/*
 * Waits until the failover is over at every Sentinel. If the new master dies before that, the one
 * that leads the failover never finishes it.
 */
void test_sentinels_settle(const struct test_sentinels *group);

/*
 * Makes nodes that consider themselves masters replicas again at once, which Sentinels do only
 * after some seconds. Waits until the Sentinels have finished and both other nodes are replicas of
 * the master, and returns that.
 */
int test_sentinels_reunite(const struct test_sentinels *group);

/* Waits until every replica that runs has what the master has. */
void test_sentinels_sync(const struct test_sentinels *group, int master, int replicas);

#endif
