/*
 * A Cluster of one running node, whose slot of "orders" can be opened. Scripts are run there
 * without the library, so that every key can be placed by hand.
 */
#ifndef TESTS_LIVE_OPEN_SLOT_H
#define TESTS_LIVE_OPEN_SLOT_H

#include "live/live.h"
#include "redis/recipe.h"
#include "support/net.h"
#include "support/temp.h"

#define SELF  "1111111111111111111111111111111111111111"
#define OTHER "2222222222222222222222222222222222222222" /* is never started */

static char *folder;
static char slot[16];

/* ---- the node ---- */

static inline void write_nodes(const char *path, int port)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s 127.0.0.1:%d@%d myself,master - 0 0 1 connected 0-16383\n", SELF, port,
	        port + 10000);
	fprintf(file, "%s 127.0.0.1:1@10001 master - 0 0 2 connected\n", OTHER);
	fprintf(file, "vars currentEpoch 2 lastVoteEpoch 0\n");
	assert_int_equal(fclose(file), 0);
}

static inline bool is_serving(void)
{
	char *info = raw_text(live_raw, "CLUSTER", "INFO", NULL);
	bool serving = strstr(info, "cluster_state:ok");
	free(info);
	return serving;
}

static inline int start(void **state)
{
	int port = net_free_bus_port();
	char path[300], number[16];
	(void)state;
	folder = temp_dir_make();
	snprintf(path, sizeof path, "%s/nodes.conf", folder);
	snprintf(number, sizeof number, "%d", port);
	write_nodes(path, port);
	const char *const extra[] = {"--port", number, "--cluster-enabled", "yes",
	                             "--cluster-config-file", path,
	                             /* The other node is never found to be missing. */
	                             "--cluster-node-timeout", "86400000", NULL};
	live_server = test_server_start(&(struct test_server_options){.extra = extra});
	live_raw = raw_connect(live_server);
	snprintf(slot, sizeof slot, "%lld",
	         raw_integer(live_raw, "CLUSTER", "KEYSLOT", "orders", NULL));
	WAIT_UNTIL(is_serving(), 10000);
	return 0;
}

static inline int stop(void **state)
{
	(void)live_stop(state);
	temp_dir_remove(folder);
	return 0;
}

static inline int close_slot(void **state)
{
	(void)live_flush(state);
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "STABLE", NULL);
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "NODE", SELF, NULL);
	return 0;
}

/* Keys that do not exist here may be at the other node, which the slot is moved to. */
static inline void open_slot(void)
{
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "MIGRATING", OTHER, NULL);
}

/* Keys that do not exist here may be at the other node, which the slot is moved from. */
static inline void open_slot_as_target(void)
{
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "NODE", OTHER, NULL);
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "IMPORTING", OTHER, NULL);
}

static inline void ask(void)
{
	raw_ok(live_raw, "ASKING", NULL);
}

/* The slot belongs to the other node, and is not being moved. */
static inline void give_slot_away(void)
{
	raw_ok(live_raw, "CLUSTER", "SETSLOT", slot, "NODE", OTHER, NULL);
}

#endif
