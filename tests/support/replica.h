/* Servers that replicate another one. */
#ifndef TESTS_SUPPORT_REPLICA_H
#define TESTS_SUPPORT_REPLICA_H

struct test_server;

/* Makes the server a replica of the master, which is not on a unix socket. */
void test_replica_follow(struct test_server *server, struct test_server *master);

/* Makes the server a master. */
void test_replica_lead(struct test_server *server);

/*
 * Waits until this many replicas acknowledge each write at once. One that has just connected counts
 * before it gets any, and then takes a moment to begin.
 */
void test_replica_settle(struct test_server *master, int replicas);

#endif
