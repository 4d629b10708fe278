/* Servers that replicate another one. */
#include "support/replica.h"

#include <stdbool.h>
#include <stdio.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/raw.h"
#include "support/server.h"

#define IN_A_ROW 5

void test_replica_follow(struct test_server *server, struct test_server *master)
{
	char port[16];
	struct raw *raw = raw_connect(server);
	snprintf(port, sizeof port, "%d", test_server_port(master));
	raw_ok(raw, "REPLICAOF", "127.0.0.1", port, NULL);
	raw_close(raw);
}

void test_replica_lead(struct test_server *server)
{
	struct raw *raw = raw_connect(server);
	raw_ok(raw, "REPLICAOF", "NO", "ONE", NULL);
	raw_close(raw);
}

static bool acknowledge(struct raw *master, int replicas)
{
	char number[16];
	snprintf(number, sizeof number, "%d", replicas);
	for (int i = 0; i < IN_A_ROW; i++) {
		raw_ok(master, "SET", "test_replica", "1", NULL);
		raw_integer(master, "DEL", "test_replica", NULL);
		if (raw_integer(master, "WAIT", number, "50", NULL) < replicas)
			return false;
	}
	return true;
}

void test_replica_settle(struct test_server *master, int replicas)
{
	struct raw *raw = raw_connect(master);
	WAIT_UNTIL(acknowledge(raw, replicas), 30000);
	raw_close(raw);
}
