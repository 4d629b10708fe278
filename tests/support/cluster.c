/* A Redis Cluster of masters and replicas, whose slots can be moved and whose nodes can fail. */
#include "support/cluster.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/certs.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/raw.h"
#include "support/server.h"

#define READY_MS   30000
#define PROMOTE_MS 6000 /* a server gives up after five seconds */

/* ---- names and slots ------------------------------------------------------------------------ */

/* CRC-16/XMODEM, one bit after the other: slow, but easy to compare with its definition. */
static unsigned compute_crc(const char *bytes, size_t length)
{
	unsigned crc = 0;
	for (size_t i = 0; i < length; i++) {
		crc ^= (unsigned)(unsigned char)bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000) ? (crc << 1) ^ 0x1021 : crc << 1;
	}
	return crc & 0xffff;
}

/* Only the first closed, non-empty tag counts, if there is one. */
int test_slot(const char *name)
{
	const char *open = strchr(name, '{');
	const char *close = open ? strchr(open, '}') : NULL;
	if (close && close > open + 1)
		return (int)(compute_crc(open + 1, (size_t)(close - open - 1)) % CLUSTER_SLOTS);
	return (int)(compute_crc(name, strlen(name)) % CLUSTER_SLOTS);
}

char *test_slot_name(int slot, const char *prefix)
{
	for (unsigned i = 0;; i++) {
		char *name = check_format("%s%u", prefix, i);
		if (test_slot(name) == slot)
			return name;
		free(name);
	}
}

/* ---- questions ------------------------------------------------------------------------------ */

struct raw *test_cluster_connect(const struct test_cluster *cluster, int node)
{
	return cluster->password ? raw_connect_as(cluster->node[node], NULL, cluster->password)
	                         : raw_connect(cluster->node[node]);
}

/* NULL if the node does not run. */
static struct raw *try_connect(const struct test_cluster *cluster, int node)
{
	if (test_server_is_frozen(cluster->node[node]))
		return NULL;
	struct raw *raw = raw_try_connect_url(test_server_unix_url(cluster->node[node]));
	if (raw && cluster->password)
		raw_reply_free(raw_try_command(raw, "AUTH", cluster->password, NULL));
	return raw;
}

static int node_with_id(const struct test_cluster *cluster, const char *id)
{
	for (int i = 0; i < cluster->count; i++)
		if (strcmp(cluster->id[i], id) == 0)
			return i;
	return -1;
}

/* The owner of each slot, -1 for none. */
struct map {
	int8_t owner[CLUSTER_SLOTS];
};

/* Reads the map of one node. False if it does not run. */
static bool read_map(const struct test_cluster *cluster, int node, struct map *ret_map)
{
	memset(ret_map, -1, sizeof(*ret_map));
	struct raw *raw = try_connect(cluster, node);
	struct raw_reply *ranges = raw ? raw_try_command(raw, "CLUSTER", "SLOTS", NULL) : NULL;
	bool is_read = ranges && ranges->type == RAW_ARRAY;
	for (size_t i = 0; is_read && i < ranges->length; i++) {
		struct raw_reply **range = ranges->children[i]->children;
		int owner = node_with_id(cluster, range[2]->children[2]->text);
		for (long long slot = range[0]->integer; slot <= range[1]->integer; slot++)
			ret_map->owner[slot] = (int8_t)owner;
	}
	raw_reply_free(ranges);
	raw_close(raw);
	return is_read;
}

/* Reads what the running nodes agree on; where they do not agree, it is -1. */
static void read_agreed_map(const struct test_cluster *cluster, struct map *ret_map)
{
	bool is_first = true;
	memset(ret_map, -1, sizeof(*ret_map));
	for (int i = 0; i < cluster->count; i++) {
		struct map map;
		if (!read_map(cluster, i, &map))
			continue;
		for (int slot = 0; slot < CLUSTER_SLOTS; slot++) {
			if (is_first)
				ret_map->owner[slot] = map.owner[slot];
			else if (ret_map->owner[slot] != map.owner[slot])
				ret_map->owner[slot] = -1;
		}
		is_first = false;
	}
}

int test_cluster_owner(const struct test_cluster *cluster, int slot)
{
	struct map map;
	read_agreed_map(cluster, &map);
	return map.owner[slot];
}

int test_cluster_owner_of(const struct test_cluster *cluster, const char *name)
{
	return test_cluster_owner(cluster, test_slot(name));
}

char *test_cluster_name(const struct test_cluster *cluster, int node, const char *prefix)
{
	struct map map;
	read_agreed_map(cluster, &map);
	if (!memchr(map.owner, node, sizeof(map.owner)))
		check_fail("node %d owns no slots", node);
	for (unsigned i = 0;; i++) {
		char *name = check_format("%s%u", prefix, i);
		if (map.owner[test_slot(name)] == node)
			return name;
		free(name);
	}
}

int test_cluster_master(const struct test_cluster *cluster, int i)
{
	struct map map;
	bool is_owner[CLUSTER_MAX] = {false};
	read_agreed_map(cluster, &map);
	for (int slot = 0; slot < CLUSTER_SLOTS; slot++)
		if (map.owner[slot] >= 0)
			is_owner[map.owner[slot]] = true;
	for (int node = 0; node < cluster->count; node++)
		if (is_owner[node] && i-- == 0)
			return node;
	return -1;
}

/* The text of INFO, or of CLUSTER INFO or CLUSTER NODES; NULL if the node does not run. */
static char *read_facts(const struct test_cluster *cluster, int node, const char *command,
                        const char *section)
{
	struct raw *raw = try_connect(cluster, node);
	struct raw_reply *reply = raw ? raw_try_command(raw, command, section, NULL) : NULL;
	char *text =
		reply && reply->type == RAW_TEXT ? check_copy(reply->text, reply->length) : NULL;
	raw_reply_free(reply);
	raw_close(raw);
	return text;
}

int test_cluster_replica(const struct test_cluster *cluster, int master)
{
	char *wanted = check_format("master_port:%d\r", test_server_port(cluster->node[master]));
	int replica = -1;
	for (int i = 0; i < cluster->count && replica < 0; i++) {
		char *info = read_facts(cluster, i, "INFO", "replication");
		if (info && strstr(info, "role:slave") && strstr(info, wanted))
			replica = i;
		free(info);
	}
	free(wanted);
	return replica;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Whether the node, if it runs, says that all is well as far as it knows. */
static bool is_content(const struct test_cluster *cluster, int node)
{
	char *state = read_facts(cluster, node, "CLUSTER", "INFO");
	char *info = read_facts(cluster, node, "INFO", "replication");
	bool is = (!state || strstr(state, "cluster_state:ok")) &&
	          (!info || !strstr(info, "master_link_status:down"));
	free(state);
	free(info);
	return is;
}

/* Whether a running node is connected to all nodes that run. */
static bool sees_all(const struct test_cluster *cluster, int node)
{
	char *nodes = read_facts(cluster, node, "CLUSTER", "NODES");
	bool sees = true;
	for (int i = 0; nodes && sees && i < cluster->count; i++) {
		struct raw *raw = try_connect(cluster, i);
		char *line = strstr(nodes, cluster->id[i]);
		char *end = line ? strchr(line, '\n') : NULL;
		if (end)
			*end = 0;
		sees = !raw || (line && !strstr(line, "fail") && !strstr(line, "disconnected") &&
		                !strstr(line, "handshake"));
		if (end)
			*end = '\n';
		raw_close(raw);
	}
	free(nodes);
	return sees;
}

static bool agrees(const struct test_cluster *cluster)
{
	struct map map;
	read_agreed_map(cluster, &map);
	return !memchr(map.owner, 0xff, sizeof(map.owner));
}

static bool is_ok(void *arg)
{
	const struct test_cluster *cluster = arg;
	for (int i = 0; i < cluster->count; i++)
		if (!is_content(cluster, i) || !sees_all(cluster, i))
			return false;
	return agrees(cluster);
}

void test_cluster_wait_ok(const struct test_cluster *cluster)
{
	struct test_cluster *asked = (struct test_cluster *)(uintptr_t)cluster;
	if (!wait_until(is_ok, asked, READY_MS))
		check_fail("the cluster does not work");
}

struct change {
	const struct test_cluster *cluster;
	int slot;
	int before; /* the owner that it must not be, or -1 */
	int after;  /* the owner that it must be, or -1 */
	int now;
};

static bool has_changed(void *arg)
{
	struct change *change = arg;
	change->now = test_cluster_owner(change->cluster, change->slot);
	return change->now >= 0 && change->now != change->before &&
	       (change->after < 0 || change->now == change->after);
}

int test_cluster_next_owner(const struct test_cluster *cluster, int slot, int before)
{
	struct change change = {.cluster = cluster, .slot = slot, .before = before, .after = -1};
	if (!wait_until(has_changed, &change, READY_MS))
		check_fail("slot %d did not get another owner", slot);
	return change.now;
}

static void wait_for_owner(const struct test_cluster *cluster, int slot, int owner)
{
	struct change change = {.cluster = cluster, .slot = slot, .before = -1, .after = owner};
	if (!wait_until(has_changed, &change, READY_MS))
		check_fail("slot %d did not go to node %d, but to %d", slot, owner, change.now);
}

void test_cluster_sync(const struct test_cluster *cluster, int master, int replicas)
{
	char count[8];
	char *name = test_cluster_name(cluster, master, "hf:test:sync:");
	struct raw *raw = test_cluster_connect(cluster, master);
	(void)snprintf(count, sizeof(count), "%d", replicas);
	/* WAIT is about the writes of its own connection. */
	raw_ok(raw, "SET", name, "1", "EX", "1", NULL);
	if (raw_integer(raw, "WAIT", count, "4000", NULL) < replicas)
		check_fail("the replicas do not have what the master has");
	raw_close(raw);
	free(name);
}

/* ---- slots that move ------------------------------------------------------------------------ */

static void set_slot(const struct test_cluster *cluster, int node, int slot, const char *state,
                     int peer)
{
	char number[8];
	struct raw *raw = test_cluster_connect(cluster, node);
	(void)snprintf(number, sizeof(number), "%d", slot);
	raw_ok(raw, "CLUSTER", "SETSLOT", number, state, cluster->id[peer], NULL);
	raw_close(raw);
}

void test_cluster_open_slot(const struct test_cluster *cluster, int slot, int from, int to)
{
	set_slot(cluster, to, slot, "IMPORTING", from);
	set_slot(cluster, from, slot, "MIGRATING", to);
}

static void move_key(const struct test_cluster *cluster, struct raw *raw, const char *key, int to)
{
	char port[8];
	(void)snprintf(port, sizeof(port), "%d", test_server_port(cluster->node[to]));
	struct raw_reply *reply =
		cluster->password
			? raw_command(raw, "MIGRATE", "127.0.0.1", port, key, "0", "4000", "AUTH",
	                              cluster->password, NULL)
			: raw_command(raw, "MIGRATE", "127.0.0.1", port, key, "0", "4000", NULL);
	/* NOKEY: it has expired meanwhile. */
	if (reply->type != RAW_STATUS)
		check_fail("MIGRATE %s: %s", key, reply->text);
	raw_reply_free(reply);
}

void test_cluster_move_key(const struct test_cluster *cluster, const char *key, int from, int to)
{
	struct raw *raw = test_cluster_connect(cluster, from);
	move_key(cluster, raw, key, to);
	raw_close(raw);
}

void test_cluster_move_keys(const struct test_cluster *cluster, int slot, int from, int to)
{
	char number[8];
	size_t left = 0;
	struct raw *raw = test_cluster_connect(cluster, from);
	(void)snprintf(number, sizeof(number), "%d", slot);
	do {
		struct raw_reply *keys =
			raw_command(raw, "CLUSTER", "GETKEYSINSLOT", number, "100", NULL);
		assert_int_equal(keys->type, RAW_ARRAY);
		left = keys->length;
		for (size_t i = 0; i < left; i++)
			move_key(cluster, raw, keys->children[i]->text, to);
		raw_reply_free(keys);
	} while (left);
	raw_close(raw);
}

/* The new owner first: if it fails then, nobody believes that it owns the slot. */
static void give_slot(const struct test_cluster *cluster, int slot, int from, int to)
{
	set_slot(cluster, to, slot, "NODE", to);
	set_slot(cluster, from, slot, "NODE", to);
}

static void announce_slot(const struct test_cluster *cluster, int slot, int from, int to)
{
	for (int i = 0; i < cluster->masters; i++) {
		int master = test_cluster_master(cluster, i);
		if (master >= 0 && master != from && master != to)
			set_slot(cluster, master, slot, "NODE", to);
	}
	wait_for_owner(cluster, slot, to);
}

void test_cluster_close_slot(const struct test_cluster *cluster, int slot, int from, int to)
{
	give_slot(cluster, slot, from, to);
	announce_slot(cluster, slot, from, to);
}

void test_cluster_move_slots(const struct test_cluster *cluster, int first, int last, int to)
{
	int from = test_cluster_owner(cluster, first);
	if (from == to)
		return;
	for (int slot = first; slot <= last; slot++) {
		test_cluster_open_slot(cluster, slot, from, to);
		test_cluster_move_keys(cluster, slot, from, to);
		give_slot(cluster, slot, from, to);
	}
	for (int slot = first; slot <= last; slot++)
		announce_slot(cluster, slot, from, to);
}

void test_cluster_move_slot(const struct test_cluster *cluster, int slot, int to)
{
	test_cluster_move_slots(cluster, slot, slot, to);
}

bool test_cluster_can_migrate(const struct test_cluster *cluster)
{
	return test_server_is_valkey(cluster->node[0]) &&
	       test_server_version(cluster->node[0]) >= 90000;
}

void test_cluster_migrate(const struct test_cluster *cluster, int first, int last, int to)
{
	char begin[8], end[8];
	struct raw *raw = test_cluster_connect(cluster, test_cluster_owner(cluster, first));
	(void)snprintf(begin, sizeof(begin), "%d", first);
	(void)snprintf(end, sizeof(end), "%d", last);
	raw_ok(raw, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", begin, end, "NODE", cluster->id[to],
	       NULL);
	raw_close(raw);
	wait_for_owner(cluster, last, to);
}

/* ---- nodes that fail ------------------------------------------------------------------------ */

/* The master of a node that is a replica. */
static int master_of(const struct test_cluster *cluster, int replica)
{
	char *info = read_facts(cluster, replica, "INFO", "replication");
	char *port = info ? strstr(info, "master_port:") : NULL;
	int master = -1;
	for (int i = 0; port && i < cluster->count; i++)
		if (test_server_port(cluster->node[i]) == atoi(port + strlen("master_port:")))
			master = i;
	free(info);
	if (master < 0)
		check_fail("node %d is not a replica", replica);
	return master;
}

/*
 * The masters do not vote twice about the same one within four seconds, and then it fails silently.
 */
void test_cluster_promote(const struct test_cluster *cluster, int replica)
{
	char *name = test_cluster_name(cluster, master_of(cluster, replica), "hf:test:promote:");
	struct change change = {
		.cluster = cluster, .slot = test_slot(name), .before = -1, .after = replica};
	struct raw *raw = test_cluster_connect(cluster, replica);
	for (int attempt = 0;; attempt++) {
		struct raw_reply *reply = raw_command(raw, "CLUSTER", "FAILOVER", NULL);
		raw_reply_free(reply);
		if (wait_until(has_changed, &change, PROMOTE_MS))
			break;
		if (attempt == 4)
			check_fail("node %d was not promoted", replica);
	}
	raw_close(raw);
	free(name);
}

void test_cluster_set_timeout(const struct test_cluster *cluster, int timeout_ms)
{
	char *text = check_format("%d", timeout_ms);
	for (int i = 0; i < cluster->count; i++) {
		struct raw *raw = test_cluster_connect(cluster, i);
		raw_ok(raw, "CONFIG", "SET", "cluster-node-timeout", text, NULL);
		raw_close(raw);
	}
	free(text);
}

void test_cluster_bring_back(const struct test_cluster *cluster, int node)
{
	test_server_restart(cluster->node[node]);
	test_cluster_wait_ok(cluster);
}

/*
 * A node ends its own line of CLUSTER NODES with its open slots, as [slot->-target] or
 * [slot-<-source].
 */
static void close_open_slots(const struct test_cluster *cluster, int node)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	char *nodes = raw_text(raw, "CLUSTER", "NODES", NULL);
	char *rest = nodes;
	for (char *open; (open = strchr(rest, '[')); rest = open + 1) {
		char slot[8];
		(void)snprintf(slot, sizeof(slot), "%d", atoi(open + 1));
		raw_reply_free(raw_command(raw, "CLUSTER", "SETSLOT", slot, "STABLE", NULL));
	}
	free(nodes);
	raw_close(raw);
}

void test_cluster_reset(const struct test_cluster *cluster)
{
	for (int i = 0; i < cluster->count; i++) {
		test_server_thaw(cluster->node[i]);
		struct raw *raw = try_connect(cluster, i);
		raw_close(raw);
		if (!raw)
			test_server_restart(cluster->node[i]);
	}
	test_cluster_set_timeout(cluster, cluster->node_timeout_ms);
	test_cluster_wait_ok(cluster);
	for (int i = 0; i < cluster->count; i++) {
		close_open_slots(cluster, i);
		struct raw *raw = test_cluster_connect(cluster, i);
		/* A replica refuses, and follows its master. */
		raw_reply_free(raw_command(raw, "FLUSHALL", NULL));
		raw_close(raw);
	}
}

/* ---- starting ------------------------------------------------------------------------------- */

static struct test_server *start_node(const struct test_cluster_options *options)
{
	const char *extra[32] = {
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		/* A replica stays with its master, and is good enough after any pause. */
		"--cluster-migration-barrier", "100", "--cluster-slave-validity-factor", "0",
		"--cluster-node-timeout", "2000"};
	size_t n = 14;
	if (options->password) {
		extra[n++] = "--requirepass";
		extra[n++] = options->password;
		extra[n++] = "--masterauth";
		extra[n++] = options->password;
	}
	if (options->certs) {
		extra[n++] = "--tls-cluster";
		extra[n++] = "yes";
		extra[n++] = "--tls-replication";
		extra[n++] = "yes";
		/* Nodes are clients of each other, and the server's certificate is not for that. */
		extra[n++] = "--tls-client-cert-file";
		extra[n++] = options->certs->client_cert;
		extra[n++] = "--tls-client-key-file";
		extra[n++] = options->certs->client_key;
	}
	struct test_server_options server = {
		.kind = TEST_SERVER_TCP, .has_bus = true, .extra = extra};
	if (options->certs) {
		server.kind = TEST_SERVER_TLS;
		server.tls_cert = options->certs->server_cert;
		server.tls_key = options->certs->server_key;
		server.tls_ca = options->certs->ca;
	}
	return test_server_start(&server);
}

static void add_slots_in_chunks(struct raw *raw, int begin, int end)
{
	enum { CHUNK = 1000 };
	static char text[CHUNK][8];
	const char *words[CHUNK + 2] = {"CLUSTER", "ADDSLOTS"};
	size_t lengths[CHUNK + 2] = {7, 8};
	while (begin < end) {
		size_t n = 0;
		for (; n < CHUNK && begin < end; n++, begin++) {
			lengths[n + 2] = (size_t)snprintf(text[n], sizeof(text[n]), "%d", begin);
			words[n + 2] = text[n];
		}
		struct raw_reply *reply = raw_command_words(raw, n + 2, words, lengths);
		if (reply->type != RAW_STATUS)
			check_fail("CLUSTER ADDSLOTS: %s", reply->text);
		raw_reply_free(reply);
	}
}

/* Each master claims its share. Epochs of their own prevent conflicts among the masters. */
static void claim_slots(const struct test_cluster *cluster, int node)
{
	char first[12], last[12], epoch[12];
	int begin = CLUSTER_SLOTS * node / cluster->masters;
	int end = CLUSTER_SLOTS * (node + 1) / cluster->masters;
	struct raw *raw = test_cluster_connect(cluster, node);
	(void)snprintf(epoch, sizeof(epoch), "%d", node + 1);
	raw_ok(raw, "CLUSTER", "SET-CONFIG-EPOCH", epoch, NULL);
	(void)snprintf(first, sizeof(first), "%d", begin);
	(void)snprintf(last, sizeof(last), "%d", end - 1);
	if (test_server_version(cluster->node[node]) >= 70000)
		raw_ok(raw, "CLUSTER", "ADDSLOTSRANGE", first, last, NULL);
	else
		add_slots_in_chunks(raw, begin, end);
	raw_close(raw);
}

/*
 * Every node meets every other, which is faster than waiting until they have heard of each other.
 */
static void meet_all(const struct test_cluster *cluster)
{
	for (int i = 0; i < cluster->count; i++) {
		struct raw *raw = test_cluster_connect(cluster, i);
		for (int j = i + 1; j < cluster->count; j++) {
			char port[8];
			(void)snprintf(port, sizeof(port), "%d",
			               test_server_port(cluster->node[j]));
			raw_ok(raw, "CLUSTER", "MEET", "127.0.0.1", port, NULL);
		}
		raw_close(raw);
	}
}

struct following {
	const struct test_cluster *cluster;
	int replica;
	int master;
};

/* A node that does not know its master yet refuses. */
static bool begin_following(void *arg)
{
	const struct following *following = arg;
	struct raw *raw = test_cluster_connect(following->cluster, following->replica);
	struct raw_reply *reply = raw_command(raw, "CLUSTER", "REPLICATE",
	                                      following->cluster->id[following->master], NULL);
	bool has_begun = reply->type == RAW_STATUS;
	raw_reply_free(reply);
	raw_close(raw);
	return has_begun;
}

static void form_cluster(const struct test_cluster *cluster)
{
	for (int i = 0; i < cluster->masters; i++)
		claim_slots(cluster, i);
	meet_all(cluster);
	for (int i = cluster->masters; i < cluster->count; i++) {
		struct following following = {cluster, i, i % cluster->masters};
		if (!wait_until(begin_following, &following, READY_MS))
			check_fail("node %d does not learn of its master", i);
	}
	test_cluster_wait_ok(cluster);
}

static char *make_url(const struct test_cluster *cluster, bool has_tls)
{
	char hosts[CLUSTER_MAX * 24] = "";
	size_t used = 0;
	for (int i = 0; i < cluster->count; i++)
		used += (size_t)snprintf(hosts + used, sizeof(hosts) - used, "%s127.0.0.1:%d",
		                         i ? "," : "", test_server_port(cluster->node[i]));
	return check_format("%s+cluster://%s", has_tls ? "rediss" : "redis", hosts);
}

struct test_cluster *test_cluster_start(const struct test_cluster_options *options)
{
	static const struct test_cluster_options defaults;
	if (!options)
		options = &defaults;
	struct test_cluster *cluster = check_alloc(sizeof(*cluster));
	int replicas = options->replicas ? options->replicas : 1;
	cluster->password = options->password;
	cluster->node_timeout_ms = options->node_timeout_ms ? options->node_timeout_ms : 2000;
	cluster->masters = options->masters ? options->masters : 3;
	cluster->count = cluster->masters * (replicas == NO_REPLICAS ? 1 : replicas + 1);
	if (cluster->count > CLUSTER_MAX)
		check_fail("a cluster has at most %d nodes", CLUSTER_MAX);
	for (int i = 0; i < cluster->count; i++) {
		cluster->node[i] = start_node(options);
		struct raw *raw = test_cluster_connect(cluster, i);
		char *id = raw_text(raw, "CLUSTER", "MYID", NULL);
		(void)snprintf(cluster->id[i], sizeof(cluster->id[i]), "%s", id);
		free(id);
		raw_close(raw);
	}
	cluster->url = make_url(cluster, options->certs);
	form_cluster(cluster);
	/*
	 * Nodes that have more time take more of it to get to know each other, so they get it only
	 * now.
	 */
	test_cluster_set_timeout(cluster, cluster->node_timeout_ms);
	return cluster;
}

void test_cluster_stop(struct test_cluster *cluster)
{
	if (!cluster)
		return;
	for (int i = 0; i < cluster->count; i++)
		test_server_stop(cluster->node[i]);
	free(cluster->url);
	free(cluster);
}
