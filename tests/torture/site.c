/* The servers of one deployment, and the lines over which the processes of torture reach them. */
#include "torture/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/raw.h"
#include "support/replica.h"
#include "support/zk_raw.h"
#include "torture/things.h"

#define SETTLE_MS 60000

const char *const site_names[SITES] = {"single", "sentinel", "cluster",    "replicas",
                                       "red",    "zk",       "zk-ensemble"};

bool site_is_zk(const struct site *site)
{
	return site->zookeeper;
}

/* ---- lines ---- */

static const char *node_url(const struct site *site, int node)
{
	return site->zookeeper ? test_zookeeper_url(site->zookeeper, node)
	                       : test_server_url(site->node[node]);
}

static void start_proxies(struct site *site)
{
	for (int line = 0; line < SITE_LINES; line++)
		for (int i = 0; i < site->nodes; i++)
			site->proxy[line][i] = proxy_start(node_url(site, i));
}

/* The host and port of redis://host:port and zk://host:port. */
static const char *skip_scheme(const char *url)
{
	return strstr(url, "://") + 3;
}

static char *append(char *text, const char *separator, const char *more)
{
	char *longer = check_format("%s%s%s", text, *text ? separator : "", more);
	free(text);
	return longer;
}

/* Hosts that the client is given are those of the proxies; a line of -1 is without. */
static char *list_hosts(const struct site *site, int line, const char *separator, bool with_scheme)
{
	char *list = check_format("%s", "");
	for (int i = 0; i < site->nodes; i++) {
		const char *url = line < 0 ? node_url(site, i) : proxy_url(site->proxy[line][i]);
		list = append(list, separator, with_scheme ? url : skip_scheme(url));
	}
	return list;
}

/* Nodes whose addresses the client learns from others are replaced by their proxies. */
static char *add_translation(const struct site *site, int line, const char *url)
{
	char *list = check_format("%s", "");
	for (int i = 0; i < site->nodes; i++) {
		char *pair = check_format("%s:%s", skip_scheme(node_url(site, i)),
		                          skip_scheme(proxy_url(site->proxy[line][i])));
		list = append(list, ",", pair);
		free(pair);
	}
	char *whole = check_format("%s?nat=%s", url, list);
	free(list);
	return whole;
}

static char *make_url(const struct site *site, int line)
{
	const char *group = site->sentinels ? site->sentinels->url
	                    : site->cluster ? site->cluster->url
	                                    : NULL;
	if (group)
		return line < 0 ? check_format("%s", group) : add_translation(site, line, group);
	if (site->kind == RED || site->kind == SINGLE)
		return list_hosts(site, line, " ", true);
	char *hosts = list_hosts(site, line, ",", false);
	char *url = check_format("%s://%s", site->zookeeper ? "zk" : "redis", hosts);
	free(hosts);
	return url;
}

/* ---- start and stop ---- */

#define USER "worker"

/*
 * The disk counts, and a user's rights can be taken away. The port of a node that was killed stays
 * free.
 */
static struct test_server *start_node(bool appendonly, const struct test_host *host)
{
	static const char *const extra[] = {"--user", USER,
	                                    "on",     ">" USER,
	                                    "~*",     "&*",
	                                    "+@all",  "--appendfsync",
	                                    "always", "--repl-diskless-sync-delay",
	                                    "0",      NULL};
	return test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP,
	                                                       .appendonly = appendonly,
	                                                       .extra = extra,
	                                                       .has_bus = true,
	                                                       .host_file = test_host_file(host)});
}

static void start_nodes(struct site *site)
{
	site->user = USER;
	site->nodes = site->kind == SINGLE ? 1 : site->kind == RED ? RED_SERVERS : 3;
	for (int i = 0; i < site->nodes; i++) {
		site->host[i] = test_host_new();
		site->node[i] = start_node(site->kind != REPLICAS, site->host[i]);
	}
	if (site->kind != REPLICAS)
		return;
	site->replicas = 1;
	site_promote(site, 0);
}

static void start_group(struct site *site)
{
	if (site->kind == SENTINEL) {
		site->sentinels = test_sentinels_start(NULL);
		site->nodes = SENTINELS_NODES;
		memcpy(site->node, site->sentinels->node, sizeof(site->sentinels->node));
	} else {
		site->cluster = test_cluster_start(NULL);
		site->nodes = site->cluster->count;
		for (int i = 0; i < site->nodes; i++)
			site->node[i] = site->cluster->node[i];
	}
}

struct site *site_start(enum site_kind kind)
{
	struct site *site = check_alloc(sizeof(*site));
	site->kind = kind;
	site->user = "";
	if (kind == ZK_ALONE || kind == ZK_ENSEMBLE) {
		site->nodes = kind == ZK_ALONE ? 1 : 3;
		site->zookeeper = test_zookeeper_start(&(struct test_zookeeper_options){
			.servers = site->nodes, .can_cut = kind == ZK_ENSEMBLE});
	} else if (kind == SENTINEL || kind == CLUSTER) {
		start_group(site);
	} else {
		start_nodes(site);
	}
	start_proxies(site);
	for (int line = 0; line < SITE_LINES; line++)
		site->urls[line] = make_url(site, line);
	site->direct = make_url(site, -1);
	return site;
}

void site_stop(struct site *site)
{
	for (int line = 0; line < SITE_LINES; line++) {
		for (int i = 0; i < site->nodes; i++)
			proxy_stop(site->proxy[line][i]);
		free(site->urls[line]);
	}
	for (int i = 0; i < site->nodes && !site->sentinels && !site->cluster; i++)
		test_server_stop(site->node[i]);
	if (site->sentinels)
		test_sentinels_stop(site->sentinels);
	if (site->cluster)
		test_cluster_stop(site->cluster);
	test_zookeeper_stop(site->zookeeper);
	for (int i = 0; i < site->nodes; i++)
		test_host_free(site->host[i]);
	free(site->direct);
	free(site);
}

/* ---- masters ---- */

static bool is_agreed(void *arg)
{
	return test_sentinels_master(arg) >= 0;
}

int site_master(const struct site *site)
{
	if (site->cluster)
		return test_cluster_master(site->cluster, 0);
	if (!site->sentinels)
		return site->master;
	if (!wait_until(is_agreed, site->sentinels, SETTLE_MS))
		check_fail("the Sentinels do not agree on a master");
	return test_sentinels_master(site->sentinels);
}

void site_promote(struct site *site, int node)
{
	struct raw *raw = raw_connect(site->node[node]);
	raw_ok(raw, "REPLICAOF", "NO", "ONE", NULL);
	raw_close(raw);
	site->master = node;
	for (int i = 0; i < site->nodes; i++)
		if (i != node)
			test_replica_follow(site->node[i], site->node[node]);
	test_replica_settle(site->node[node], site->nodes - 1);
}

static bool has_replicas(void *arg)
{
	struct site *site = arg;
	struct raw *raw = raw_try_connect_url(test_server_unix_url(site->node[site_master(site)]));
	struct raw_reply *reply = raw ? raw_try_command(raw, "INFO", "replication", NULL) : NULL;
	bool has = reply && reply->type == RAW_TEXT && strstr(reply->text, "connected_slaves:2") &&
	           !strstr(reply->text, "state=wait_bgsave") &&
	           !strstr(reply->text, "state=send_bulk");
	raw_reply_free(reply);
	raw_close(raw);
	return has;
}

void site_settle(struct site *site)
{
	if (site->zookeeper)
		(void)test_zookeeper_leader(site->zookeeper);
	if (site->sentinels) {
		(void)site_master(site);
		test_sentinels_settle(site->sentinels);
		if (!wait_until(has_replicas, site, SETTLE_MS))
			check_fail("the replicas do not follow the new master");
	}
	if (site->cluster)
		test_cluster_wait_ok(site->cluster);
}

/* ---- what is on the servers ---- */

static bool is_master(struct raw *raw)
{
	char *info = raw_text(raw, "INFO", "replication", NULL);
	bool is = strstr(info, "role:master");
	free(info);
	return is;
}

static void clear_zookeeper(struct site *site)
{
	struct zk_raw *raw = zk_raw_open(
		test_zookeeper_host(site->zookeeper, test_zookeeper_leader(site->zookeeper)), 0);
	struct zk_raw_names names;
	if (zk_raw_children(raw, "/", &names, NULL))
		check_fail("the tree cannot be listed");
	for (int i = 0; i < names.count; i++) {
		char *path = check_format("/%s", names.name[i]);
		if (strcmp(names.name[i], "zookeeper") != 0)
			(void)zk_raw_delete_tree(raw, path);
		free(path);
	}
	zk_raw_names_clear(&names);
	zk_raw_close(raw);
}

void site_clear(struct site *site)
{
	if (site->zookeeper) {
		clear_zookeeper(site);
		return;
	}
	for (int i = 0; i < site->nodes; i++) {
		struct raw *raw = raw_connect(site->node[i]);
		if (is_master(raw))
			raw_ok(raw, "FLUSHALL", NULL);
		raw_close(raw);
	}
}

/* Tokens stay, as do counts, gates, and what expires soon. */
static bool may_stay(struct raw *raw, const char *key)
{
	if (strncmp(key, "redisson_lock_token:", 20) == 0)
		return true;
	bool is_request = strncmp(key, "holdfast_request:", 17) == 0 ||
	                  strncmp(key, "redisson_unlock_latch:", 22) == 0; /* Java's */
	if (is_request)
		return raw_integer(raw, "PTTL", key, NULL) != -1;
	return strncmp(key, "gate-", 5) == 0 || strcmp(key, "semaphore-0") == 0 ||
	       strcmp(key, "permits-0") == 0 || strcmp(key, "latch-0") == 0;
}

static bool node_has_leftover(struct raw *raw, char *ret_text, size_t size)
{
	bool found = false;
	struct raw_reply *keys = raw_command(raw, "KEYS", "*", NULL);
	for (size_t i = 0; keys->type == RAW_ARRAY && i < keys->length && !found; i++) {
		const char *key = keys->children[i]->text;
		found = !may_stay(raw, key);
		if (found)
			(void)snprintf(ret_text, size, "%s, for %lld ms", key,
			               raw_integer(raw, "PTTL", key, NULL));
	}
	raw_reply_free(keys);
	return found;
}

static bool zk_has_leftover(struct site *site, char *ret_text, size_t size)
{
	int leader = test_zookeeper_leader(site->zookeeper);
	long long nodes = test_zookeeper_value(site->zookeeper, leader, "zk_ephemerals_count");
	(void)snprintf(ret_text, size, "%lld ephemeral nodes", nodes);
	return nodes > 0;
}

bool site_has_leftover(struct site *site, char *ret_text, size_t size)
{
	if (site->zookeeper)
		return zk_has_leftover(site, ret_text, size);
	for (int i = 0; i < site->nodes; i++) {
		struct raw *raw = raw_connect(site->node[i]);
		bool found = is_master(raw) && node_has_leftover(raw, ret_text, size);
		raw_close(raw);
		if (found)
			return true;
	}
	return false;
}
