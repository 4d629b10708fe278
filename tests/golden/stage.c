/* Where a story is played: the servers, how its processes reach them, and what is said there. */
#include "golden/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "support/check.h"
#include "support/cluster.h"
#include "support/replica.h"
#include "support/sentinels.h"
#include "support/server.h"

#define MAX_WORDS 8

/* The slot that moves in a story, as its recording names it. */
#define MOVING_SLOT 14604

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* ---- what is said ---- */

/* "1700000000.1 [0 lua] "PUBLISH" "channel" "0"": returns the words in quotes, in place. */
static int split_words(char *line, char **words)
{
	int count = 0;
	for (char *at = strchr(line, '"'); at && count < MAX_WORDS; at = strchr(at, '"')) {
		words[count++] = ++at;
		at = strchr(at, '"');
		if (!at)
			return 0;
		*at++ = 0;
	}
	return count;
}

/* What scripts publish counts, but not what a Sentinel does. */
static void report_command(int node, char *line, stage_heard_fn *heard, void *arg)
{
	bool is_script = strstr(line, " lua] ");
	char *words[MAX_WORDS];
	int count = split_words(line, words);
	if (count == 0)
		return;
	bool publishes =
		strcasecmp(words[0], "PUBLISH") == 0 || strcasecmp(words[0], "SPUBLISH") == 0;
	if (publishes && is_script && count == 3)
		heard(arg, node, words[0], words[1], words[2]);
	else if (strcmp(words[0], "WAIT") == 0)
		heard(arg, node, words[0], "", NULL);
	else if (strcmp(words[0], "SUBSCRIBE") == 0 || strcmp(words[0], "SSUBSCRIBE") == 0)
		for (int i = 1; i < count && !begins(words[i], "__sentinel__"); i++)
			heard(arg, node, words[0], words[i], NULL);
}

/* Those that were made before the ear was opened. */
static void report_subscriptions(struct raw *raw, int node, stage_heard_fn *heard, void *arg)
{
	struct raw_reply *channels = raw_command(raw, "PUBSUB", "CHANNELS", "redisson*", NULL);
	for (size_t i = 0; i < channels->length; i++)
		heard(arg, node, "SUBSCRIBE", channels->children[i]->text, NULL);
	raw_reply_free(channels);
}

bool stage_listen(struct stage *stage, int node, int patience_ms, stage_heard_fn *heard, void *arg)
{
	if (!stage->ear[node])
		return false;
	if (stage->new_master == node) {
		stage->new_master = -1;
		report_subscriptions(stage->raw[node], node, heard, arg);
	}
	struct raw_reply *reply = raw_next_message(stage->ear[node], patience_ms);
	if (!reply)
		return false;
	if (stage->monitors)
		report_command(node, reply->text, heard, arg);
	else
		heard(arg, node, NULL, reply->children[2]->text, reply->children[3]->text);
	raw_reply_free(reply);
	return true;
}

static void open_ear(struct stage *stage, int node)
{
	stage->ear[node] = raw_connect(stage->server[node]);
	if (stage->monitors)
		raw_ok(stage->ear[node], "MONITOR", NULL);
	else
		raw_reply_free(raw_command(stage->ear[node], "PSUBSCRIBE", "*", NULL));
}

static void open_raw(struct stage *stage, int node)
{
	stage->raw[node] = raw_connect(stage->server[node]);
}

/* ---- what is started ---- */

static void add_node(struct stage *stage, const char *name, struct test_server *server)
{
	stage->name[stage->nodes] = name;
	stage->server[stage->nodes++] = server;
}

static void add_url(struct stage *stage, const char *url, const char *setting)
{
	stage->url[stage->urls++] = check_format("%s%s", url, setting);
}

static void open_plain(struct stage *stage, const char *title)
{
	int servers = begins(title, "redlock:") ? STAGE_MAX_NODES : 1;
	for (int i = 0; i < servers; i++) {
		add_node(stage, NULL, test_server_start(NULL));
		add_url(stage, test_server_url(stage->server[i]), "");
		open_raw(stage, i);
		open_ear(stage, i);
	}
}

/* Replicas would have nothing to do: no story reads from them with this library. */
static void open_cluster(struct stage *stage, const char *title)
{
	static const char *const names[] = {"n1", "n2", "n3"};
	stage->cluster = test_cluster_start(
		&(struct test_cluster_options){.masters = 3, .replicas = NO_REPLICAS});
	add_url(stage, stage->cluster->url, strstr(title, "sharded-off") ? "?sharded=off" : "");
	for (int i = 0; i < stage->cluster->masters; i++) {
		add_node(stage, names[i], stage->cluster->node[i]);
		open_raw(stage, i);
		open_ear(stage, i);
	}
}

static void open_sentinels(struct stage *stage)
{
	stage->sentinels = test_sentinels_start(NULL);
	add_url(stage, stage->sentinels->url, "");
	for (int i = 0; i < SENTINELS_NODES; i++)
		add_node(stage, i == 0 ? "m" : NULL, stage->sentinels->node[i]);
	open_raw(stage, 0);
	open_ear(stage, 0);
}

/* One replica is enough for a grant, since one is all that a story leaves running. */
static void open_replicas(struct stage *stage)
{
	static const char *const names[] = {"m", "r1", "r2"};
	static const char *const extra[] = {"--repl-diskless-sync-delay", "0", NULL};
	for (int i = 0; i < STAGE_MAX_NODES; i++)
		add_node(stage, names[i],
		         test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP,
		                                                         .extra = extra}));
	for (int i = 1; i < stage->nodes; i++)
		test_replica_follow(stage->server[i], stage->server[0]);
	test_replica_settle(stage->server[0], stage->nodes - 1);
	add_url(stage, test_server_url(stage->server[0]), "?replicas=1");
	open_raw(stage, 0);
	open_ear(stage, 0);
}

void stage_open(struct stage *stage, const char *title)
{
	*stage = (struct stage){.monitors = true, .new_master = -1};
	if (begins(title, "cluster-")) {
		open_cluster(stage, title);
	} else if (begins(title, "sentinel-")) {
		open_sentinels(stage);
	} else if (begins(title, "wait-")) {
		open_replicas(stage);
	} else {
		stage->monitors = false;
		open_plain(stage, title);
	}
	stage->is_sharded = test_server_version(stage->server[0]) >= 70000;
}

static void close_node(struct stage *stage, int node)
{
	raw_close(stage->raw[node]);
	raw_close(stage->ear[node]);
	stage->raw[node] = stage->ear[node] = NULL;
}

void stage_close(struct stage *stage)
{
	for (int i = 0; i < stage->nodes; i++) {
		close_node(stage, i);
		if (!stage->cluster && !stage->sentinels)
			test_server_stop(stage->server[i]);
	}
	if (stage->cluster)
		test_cluster_stop(stage->cluster);
	test_sentinels_stop(stage->sentinels);
	for (int i = 0; i < stage->urls; i++)
		free(stage->url[i]);
}

/* ---- what an operator does, or a fault ---- */

/* Whichever replica takes over is the one that the stories call r1. */
static void kill_master(struct stage *stage)
{
	test_sentinels_sync(stage->sentinels, 0, SENTINELS_NODES - 1);
	close_node(stage, 0);
	test_server_kill(stage->server[0]);
	int master = test_sentinels_next(stage->sentinels, 0);
	stage->name[master] = "r1";
	stage->name[SENTINELS_NODES - master] = "r2";
	stage->new_master = master;
	open_raw(stage, master);
	open_ear(stage, master);
}

/* "(SIGSTOP r1, r2)" */
static void signal_nodes(struct stage *stage, const char *what,
                         void (*signal)(struct test_server *))
{
	for (int i = 0; i < stage->nodes; i++)
		if (strstr(what, stage->name[i]))
			signal(stage->server[i]);
}

bool stage_act(struct stage *stage, const char *what)
{
	if (begins(what, "(SETSLOT IMPORTING"))
		test_cluster_open_slot(stage->cluster, MOVING_SLOT, 2, 0);
	else if (begins(what, "(MIGRATE)"))
		test_cluster_move_keys(stage->cluster, MOVING_SLOT, 2, 0);
	else if (begins(what, "(SETSLOT NODE)"))
		test_cluster_close_slot(stage->cluster, MOVING_SLOT, 2, 0);
	else if (begins(what, "(kill -9 m"))
		kill_master(stage);
	else if (begins(what, "(SIGSTOP"))
		signal_nodes(stage, what, test_server_freeze);
	else if (begins(what, "(SIGCONT"))
		signal_nodes(stage, what, test_server_thaw);
	else
		return false;
	return true;
}
