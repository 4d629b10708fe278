/*
 * What the tests of clusters share: the cluster, names on each of its masters, and queries of its
 * nodes.
 */
#ifndef TESTS_LIVE_CLUSTER_H
#define TESTS_LIVE_CLUSTER_H

#include "live/kinds.h"

#include "support/cluster.h"

#define MASTERS 3

static struct test_cluster *cluster;
static const char *cluster_setting = ""; /* what open_cluster() adds to the URL */

/* No node may be given up on a busy machine. */
static inline int start_patient_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(&(struct test_cluster_options){.node_timeout_ms = 15000});
	return 0;
}

static inline int start_hasty_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(NULL);
	return 0;
}

static inline int stop_cluster(void **state)
{
	(void)state;
	test_cluster_stop(cluster);
	return 0;
}

static inline int reset_cluster(void **state)
{
	(void)state;
	cluster_setting = "";
	test_cluster_reset(cluster);
	return 0;
}

#define CLUSTER_STORY(name) cmocka_unit_test_setup(name, reset_cluster)

/* A story about one row of the table of kinds, and about all rows. */
#define CLUSTER_KIND(story, row)                                                                   \
	{                                                                                          \
#story " [" #row "]", story, reset_cluster, NULL, &matches[row]                    \
	}
#define CLUSTER_KINDS(story)                                                                       \
	CLUSTER_KIND(story, REENTRANT), CLUSTER_KIND(story, WRITERS),                              \
		CLUSTER_KIND(story, WRITER_AFTER_READER),                                          \
		CLUSTER_KIND(story, READER_AFTER_WRITER), CLUSTER_KIND(story, FENCED),             \
		CLUSTER_KIND(story, SIMPLE), CLUSTER_KIND(story, SPIN), CLUSTER_KIND(story, FAIR), \
		CLUSTER_KIND(story, SIMPLE_FAIR)

/* ---- clients and names ---- */

static inline hf_client *open_cluster(const hf_client_options *options)
{
	char *url = check_format("%s%s", cluster->url, cluster_setting);
	hf_client *client = open_url(url, options);
	free(url);
	return client;
}

/* A name on the i-th master; malloc'ed. */
static inline char *name_on(int i, const char *prefix)
{
	return test_cluster_name(cluster, test_cluster_master(cluster, i), prefix);
}

/* The master that is as far as possible from this one in the order of nodes. */
static inline int another_master(int node)
{
	int first = test_cluster_master(cluster, 0);
	return first != node ? first : test_cluster_master(cluster, 1);
}

/* ---- queries of one node ---- */

static inline bool node_has(int node, const char *key)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	struct raw_reply *reply = raw_command(raw, "EXISTS", key, NULL);
	bool exists = reply->type == RAW_INTEGER && reply->integer == 1;
	raw_reply_free(reply);
	raw_close(raw);
	return exists;
}

/* How many connections of the library the node has. */
static inline int count_connections(int node)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	char *list = raw_text(raw, "CLIENT", "LIST", NULL);
	int count = 0;
	for (const char *at = list; (at = strstr(at, "name=holdfast ")); at++)
		count++;
	free(list);
	raw_close(raw);
	return count;
}

static inline int count_all_connections(void)
{
	int count = 0;
	for (int i = 0; i < cluster->count; i++)
		count += count_connections(i);
	return count;
}

/* Whether clients of open_cluster() use sharded channels. */
static inline bool is_sharded(void)
{
	return test_server_version(cluster->node[0]) >= 70000 && !strstr(cluster_setting, "=off");
}

/* How many subscribers the channel has at this node. */
static inline long long listeners(int node, const char *channel)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	struct raw_reply *reply =
		raw_command(raw, "PUBSUB", is_sharded() ? "SHARDNUMSUB" : "NUMSUB", channel, NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_int_equal(reply->length, 2);
	long long count = reply->children[1]->integer;
	raw_reply_free(reply);
	raw_close(raw);
	return count;
}

/* How many channels have subscribers, at all nodes. */
static inline size_t count_channels(void)
{
	size_t count = 0;
	for (int i = 0; i < cluster->count; i++) {
		struct raw *raw = test_cluster_connect(cluster, i);
		struct raw_reply *reply = raw_command(
			raw, "PUBSUB", is_sharded() ? "SHARDCHANNELS" : "CHANNELS", NULL);
		assert_int_equal(reply->type, RAW_ARRAY);
		count += reply->length;
		raw_reply_free(reply);
		raw_close(raw);
	}
	return count;
}

static inline long long queued(int node, const char *name)
{
	char *queue = check_format("redisson_lock_queue:{%s}", name);
	struct raw *raw = test_cluster_connect(cluster, node);
	long long length = raw_integer(raw, "LLEN", queue, NULL);
	raw_close(raw);
	free(queue);
	return length;
}

/*
 * Whether somebody waits for the lock at this node; a waiter for a spin lock leaves no trace there.
 */
static inline bool is_awaited(const struct match *match, const char *name, int node)
{
	if (match->queues)
		return queued(node, name) == 1;
	if (!match->channel)
		return true;
	bool is_half = strncmp(match->channel, "redisson_rwlock:", 16) == 0;
	char *channel = check_format(
		is_half ? "redisson_rwlock:{%s}" : "redisson_lock__channel:{%s}", name);
	bool is = listeners(node, channel) == 1;
	free(channel);
	return is;
}

#endif
