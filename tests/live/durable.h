/*
 * What the tests of durable grants share: a master, its two replicas, and a client of the master.
 */
#ifndef TESTS_LIVE_DURABLE_H
#define TESTS_LIVE_DURABLE_H

#include "live/live.h"

#include "support/replica.h"

#define REPLICAS 2
#define SYNC_MS  400

static struct test_server *replica[REPLICAS]; /* of live_server */

static inline bool has(struct test_server *server, const char *key)
{
	struct raw *raw = raw_connect(server);
	bool exists = raw_integer(raw, "EXISTS", key, NULL) == 1;
	raw_close(raw);
	return exists;
}

static inline int durable_start(void **state)
{
	const char *extra[] = {"--repl-diskless-sync-delay", "0", "--repl-timeout", "3600", NULL};
	const struct test_server_options options = {.kind = TEST_SERVER_TCP, .extra = extra};
	(void)state;
	live_server = test_server_start(&options);
	live_raw = raw_connect(live_server);
	for (int i = 0; i < REPLICAS; i++) {
		replica[i] = test_server_start(&options);
		test_replica_follow(replica[i], live_server);
	}
	test_replica_settle(live_server, REPLICAS);
	return 0;
}

static inline int durable_stop(void **state)
{
	for (int i = 0; i < REPLICAS; i++)
		test_server_stop(replica[i]);
	return live_stop(state);
}

static inline void freeze(int replicas)
{
	for (int i = 0; i < replicas; i++)
		test_server_freeze(replica[i]);
}

static inline void thaw(int replicas)
{
	for (int i = 0; i < replicas; i++)
		test_server_thaw(replica[i]);
	test_replica_settle(live_server, REPLICAS);
}

/* A test that failed may have left replicas stopped, or followers elsewhere. */
static inline int durable_reset(void **state)
{
	(void)state;
	raw_ok(live_raw, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
	thaw(REPLICAS);
	raw_ok(live_raw, "FLUSHALL", NULL);
	return 0;
}

#define DURABLE_STORY(name) cmocka_unit_test_setup_teardown(name, live_flush, durable_reset)

static inline hf_client *open_durable(void)
{
	return open_client(HF_CLIENT(.sync_timeout_ms = SYNC_MS));
}

static inline int durability(hf_lock *lock)
{
	int replicas = -1;
	ASSERT_OK(hf_lock_durability(lock, NULL, &replicas));
	return replicas;
}

/* Connections of the library whose last command was this one. */
static inline int count_connections(const char *command)
{
	char wanted[64];
	char *list = raw_text(live_raw, "CLIENT", "LIST", NULL);
	int count = 0;
	snprintf(wanted, sizeof wanted, " cmd=%s ", command);
	for (char *rest = NULL, *line = strtok_r(list, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		count += strstr(line, " name=holdfast ") && (!*command || strstr(line, wanted));
	free(list);
	return count;
}

/*
 * A line of MONITOR: time [database address] "COMMAND" "argument"…; false if no connection of ours
 * sent it.
 */
static inline bool read_monitored(const char *line, char *ret_address, char *ret_command)
{
	return sscanf(line, "%*s [%*d %63[^]]] \"%31[^\"]", ret_address, ret_command) == 2 &&
	       strcmp(ret_address, "lua") != 0;
}

/*
 * Counts the scripts and the WAITs of two connections: the one that sent the first WAIT, and all
 * others.
 */
static inline void count_monitored(struct raw *monitor, int ret_scripts[2], int ret_waits[2])
{
	struct monitored {
		char address[64], command[32];
	} *seen = check_alloc(20000 * sizeof *seen);
	const char *waiting = NULL;
	int count = 0;
	for (struct raw_reply *line; (line = raw_next_message(monitor, 200)); raw_reply_free(line))
		if (count < 20000 &&
		    read_monitored(line->text, seen[count].address, seen[count].command))
			count++;
	for (int i = 0; i < count && !waiting; i++)
		waiting = strcasecmp(seen[i].command, "wait") == 0 ? seen[i].address : NULL;
	for (int i = 0; i < count; i++) {
		int other = !waiting || strcmp(seen[i].address, waiting) != 0;
		ret_scripts[other] += strncasecmp(seen[i].command, "eval", 4) == 0;
		ret_waits[other] += strcasecmp(seen[i].command, "wait") == 0;
	}
	free(seen);
}

#endif
