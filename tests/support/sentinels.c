/* A master, its replicas, and the Sentinels that watch them. */
#include "support/sentinels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/raw.h"
#include "support/server.h"

#define READY_MS 30000
/* An election can fail, and is then repeated after twice the failover timeout. */
#define SWITCH_MS 60000

/* ---- questions ------------------------------------------------------------------------------ */

static struct raw *connect_sentinel(const struct test_sentinels *group, int sentinel)
{
	return raw_try_connect_url(test_server_unix_url(group->sentinel[sentinel]));
}

static int node_at(const struct test_sentinels *group, const char *port)
{
	for (int i = 0; i < SENTINELS_NODES; i++)
		if (test_server_port(group->node[i]) == atoi(port))
			return i;
	return -1;
}

int test_sentinels_named(const struct test_sentinels *group, int sentinel)
{
	struct raw *raw = connect_sentinel(group, sentinel);
	struct raw_reply *reply =
		raw ? raw_try_command(raw, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster", NULL)
		    : NULL;
	int node = reply && reply->type == RAW_ARRAY && reply->length == 2
	                   ? node_at(group, reply->children[1]->text)
	                   : -1;
	raw_reply_free(reply);
	raw_close(raw);
	return node;
}

int test_sentinels_master(const struct test_sentinels *group)
{
	int agreed = -1;
	for (int i = 0; i < SENTINELS_COUNT; i++) {
		int named = test_sentinels_named(group, i);
		if (named >= 0 && agreed >= 0 && named != agreed)
			return -1;
		if (named >= 0)
			agreed = named;
	}
	return agreed;
}

struct switched {
	const struct test_sentinels *group;
	int before;
	int now;
};

static bool has_switched(void *arg)
{
	struct switched *switched = arg;
	switched->now = test_sentinels_master(switched->group);
	return switched->now >= 0 && switched->now != switched->before;
}

int test_sentinels_next(const struct test_sentinels *group, int before)
{
	struct switched switched = {.group = group, .before = before};
	if (!wait_until(has_switched, &switched, SWITCH_MS))
		check_fail("the Sentinels named no other master");
	return switched.now;
}

bool test_sentinels_begin(const struct test_sentinels *group)
{
	struct raw *raw = raw_connect(group->sentinel[0]);
	struct raw_reply *reply = raw_command(raw, "SENTINEL", "FAILOVER", "mymaster", NULL);
	bool begun = reply->type == RAW_STATUS;
	raw_reply_free(reply);
	raw_close(raw);
	return begun;
}

void test_sentinels_replace(const struct test_sentinels *group, int before)
{
	long long ends_at = test_now_ms() + SWITCH_MS;
	for (;;) {
		int named = test_sentinels_named(group, 0);
		if (named >= 0 && named != before)
			return;
		if (test_now_ms() >= ends_at)
			check_fail("the Sentinels did not replace the master");
		(void)test_sentinels_begin(group);
		test_pause();
	}
}

void test_sentinels_sync(const struct test_sentinels *group, int master, int replicas)
{
	char count[8];
	struct raw *raw = raw_connect(group->node[master]);
	(void)snprintf(count, sizeof(count), "%d", replicas);
	/* WAIT is about the writes of its own connection. */
	raw_ok(raw, "SET", "hf:test:sync", "1", "EX", "1", NULL);
	if (raw_integer(raw, "WAIT", count, "4000", NULL) < replicas)
		check_fail("the replicas do not have what the master has");
	raw_close(raw);
}

/* Whether the Sentinel has switched to the master that it names. */
static bool has_finished(const struct test_sentinels *group, int sentinel)
{
	struct raw *raw = connect_sentinel(group, sentinel);
	struct raw_reply *reply =
		raw ? raw_try_command(raw, "SENTINEL", "MASTER", "mymaster", NULL) : NULL;
	bool is_array = reply && reply->type == RAW_ARRAY, busy = !is_array;
	for (size_t i = 0; is_array && i + 1 < reply->length; i += 2)
		if (strcmp(reply->children[i]->text, "flags") == 0 &&
		    strcmp(reply->children[i + 1]->text, "master") != 0)
			busy = true;
	raw_reply_free(reply);
	raw_close(raw);
	return !busy;
}

static bool is_settled(void *arg)
{
	const struct test_sentinels *group = arg;
	for (int i = 0; i < SENTINELS_COUNT; i++)
		if (!has_finished(group, i))
			return false;
	return test_sentinels_master(group) >= 0;
}

void test_sentinels_settle(const struct test_sentinels *group)
{
	if (!wait_until(is_settled, (void *)(uintptr_t)group, SWITCH_MS))
		check_fail("the Sentinels did not finish the failover");
}

/* ---- nodes that come back ------------------------------------------------------------------- */

/* What INFO says about the replication of a node; malloc'ed, empty if the node does not answer. */
static char *read_replication(const struct test_sentinels *group, int node)
{
	struct raw *raw = raw_try_connect_url(test_server_unix_url(group->node[node]));
	struct raw_reply *reply = raw ? raw_try_command(raw, "INFO", "replication", NULL) : NULL;
	char *info = reply && reply->type == RAW_TEXT ? check_copy(reply->text, reply->length)
	                                              : check_copy("", 0);
	raw_reply_free(reply);
	raw_close(raw);
	return info;
}

static int count_replicas(const struct test_sentinels *group, int master)
{
	char *info = read_replication(group, master);
	int count = 0;
	for (const char *at = info; (at = strstr(at, "state=online")); at++)
		count++;
	free(info);
	return count;
}

/* Unless it is a replica of this master. A Sentinel that does the same closes the connection. */
static void follow(const struct test_sentinels *group, int node, int master)
{
	char port[16];
	char *wanted = check_format("master_port:%d\r", test_server_port(group->node[master]));
	char *info = read_replication(group, node);
	struct raw *raw = raw_try_connect_url(test_server_unix_url(group->node[node]));
	(void)snprintf(port, sizeof(port), "%d", test_server_port(group->node[master]));
	if (raw && !strstr(info, wanted))
		raw_reply_free(raw_try_command(raw, "REPLICAOF", "127.0.0.1", port, NULL));
	raw_close(raw);
	free(info);
	free(wanted);
}

static bool is_united(void *arg)
{
	const struct test_sentinels *group = arg;
	int master = is_settled(arg) ? test_sentinels_master(group) : -1;
	for (int i = 0; master >= 0 && i < SENTINELS_NODES; i++)
		if (i != master)
			follow(group, i, master);
	return master >= 0 && count_replicas(group, master) == SENTINELS_NODES - 1;
}

int test_sentinels_reunite(const struct test_sentinels *group)
{
	if (!wait_until(is_united, (void *)(uintptr_t)group, SWITCH_MS))
		check_fail("the master does not have all replicas");
	return test_sentinels_master(group);
}

/* ---- starting ------------------------------------------------------------------------------- */

static long long field_of(struct raw_reply *reply, const char *name)
{
	for (size_t i = 0; reply && reply->type == RAW_ARRAY && i + 1 < reply->length; i += 2)
		if (strcmp(reply->children[i]->text, name) == 0)
			return atoll(reply->children[i + 1]->text);
	return -1;
}

static bool knows_all(const struct test_sentinels *group, int sentinel, const char *password)
{
	struct raw *raw = connect_sentinel(group, sentinel);
	if (raw && password)
		raw_reply_free(raw_try_command(raw, "AUTH", password, NULL));
	struct raw_reply *reply =
		raw ? raw_try_command(raw, "SENTINEL", "MASTER", "mymaster", NULL) : NULL;
	bool all = field_of(reply, "num-slaves") == SENTINELS_NODES - 1 &&
	           field_of(reply, "num-other-sentinels") == SENTINELS_COUNT - 1;
	raw_reply_free(reply);
	raw_close(raw);
	return all;
}

struct readiness {
	const struct test_sentinels *group;
	const char *password;
};

static bool is_ready(void *arg)
{
	const struct readiness *readiness = arg;
	for (int i = 0; i < SENTINELS_COUNT; i++)
		if (!knows_all(readiness->group, i, readiness->password))
			return false;
	return true;
}

static struct test_server *start_node(const char *password, const struct test_server *master)
{
	char port[16] = "";
	const char *extra[16] = {"--repl-diskless-sync-delay", "0"};
	size_t n = 2;
	if (password) {
		extra[n++] = "--requirepass";
		extra[n++] = password;
		extra[n++] = "--masterauth";
		extra[n++] = password;
	}
	if (master) {
		(void)snprintf(port, sizeof(port), "%d", test_server_port(master));
		extra[n++] = "--replicaof";
		extra[n++] = "127.0.0.1";
		extra[n++] = port;
	}
	return test_server_start(
		&(struct test_server_options){.kind = TEST_SERVER_TCP, .extra = extra});
}

static struct test_server *start_sentinel(const struct test_sentinels_options *options, int master)
{
	char lines[1000];
	int used = snprintf(lines, sizeof(lines),
	                    "sentinel monitor mymaster 127.0.0.1 %d 2\n"
	                    "sentinel down-after-milliseconds mymaster 1500\n"
	                    "sentinel failover-timeout mymaster 4000\n",
	                    master);
	if (options->password)
		used += snprintf(lines + used, sizeof(lines) - (size_t)used,
		                 "sentinel auth-pass mymaster %s\n", options->password);
	if (options->sentinel_password)
		(void)snprintf(lines + used, sizeof(lines) - (size_t)used,
		               "requirepass %s\nsentinel sentinel-pass %s\n",
		               options->sentinel_password, options->sentinel_password);
	return test_server_start(
		&(struct test_server_options){.kind = TEST_SERVER_TCP, .sentinel = lines});
}

static bool has_replicas(void *arg)
{
	const struct test_sentinels *group = arg;
	struct raw *raw = group->password ? raw_connect_as(group->node[0], NULL, group->password)
	                                  : raw_connect(group->node[0]);
	char *info = raw_text(raw, "INFO", "replication", NULL);
	bool all = strstr(info, "slave0:") && strstr(info, "slave1:");
	free(info);
	raw_close(raw);
	return all;
}

struct test_sentinels *test_sentinels_start(const struct test_sentinels_options *options)
{
	static const struct test_sentinels_options defaults;
	if (!options)
		options = &defaults;
	struct test_sentinels *group = check_alloc(sizeof(*group));
	group->password = options->password;
	for (int i = 0; i < SENTINELS_NODES; i++)
		group->node[i] = start_node(options->password, group->node[0]);
	/* A Sentinel that does not find the replicas at once looks again after ten seconds. */
	if (!wait_until(has_replicas, group, READY_MS))
		check_fail("the replicas did not find their master");
	for (int i = 0; i < SENTINELS_COUNT; i++)
		group->sentinel[i] = start_sentinel(options, test_server_port(group->node[0]));
	group->url = check_format(
		"redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster",
		test_server_port(group->sentinel[0]), test_server_port(group->sentinel[1]),
		test_server_port(group->sentinel[2]));
	struct readiness readiness = {group, options->sentinel_password};
	if (!wait_until(is_ready, &readiness, READY_MS))
		check_fail("the Sentinels did not find each other");
	return group;
}

void test_sentinels_stop(struct test_sentinels *group)
{
	if (!group)
		return;
	for (int i = 0; i < SENTINELS_COUNT; i++)
		test_server_stop(group->sentinel[i]);
	for (int i = 0; i < SENTINELS_NODES; i++)
		test_server_stop(group->node[i]);
	free(group->url);
	free(group);
}
