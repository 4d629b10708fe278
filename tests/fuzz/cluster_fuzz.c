/* Fuzz target of a cluster's map: maps and redirections in any order lead to the node they name. */
#include <string.h>

#include "fuzz/client.h"
#include "redis/cluster.h"
#include "redis/scout.h"

#define ASKED      "asked.host"
#define MOST_NODES 300

/* What the target has understood on its own. */
static struct hf__slots_master node[MOST_NODES];
static int nodes;

/* Which node has which slot, counted from 1, and how many slots each node has; 0 is none. */
struct view {
	uint16_t owner[HF__SLOTS];
	int slots[MOST_NODES + 1];
};
static struct view view;
static struct view next; /* the same in a map that is being read */
static enum hf__outcome outcome;
static int answers;

void __wrap_hf__conn_want(struct hf__conn *conn, int64_t now);
void __wrap_hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now);
int __wrap_hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum);
int __real_hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum);

/* Nothing is connected. */
void __wrap_hf__conn_want(struct hf__conn *conn, int64_t now)
{
	CHECK(conn && now >= 0);
}

void __wrap_hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now)
{
	CHECK(scout && pause_ms >= 0 && now >= 0);
}

/* The buffers of connections stay empty, and large ones would take most of the time. */
int __wrap_hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum)
{
	return __real_hf__buffer_init(buffer, capacity < 64 ? capacity : 64, maximum);
}

/* ---- what is expected ---- */

/* The number of a node; one without a host is the node that was asked. */
static uint16_t find_node(const struct hf__slots_master *master, const char *asked)
{
	const char *host = master->host[0] ? master->host : asked;

	for (int i = 0; i < nodes; i++)
		if (node[i].port == master->port && strcmp(node[i].host, host) == 0)
			return (uint16_t)(i + 1);
	CHECK(nodes < MOST_NODES);
	snprintf(node[nodes].host, sizeof node[nodes].host, "%s", host);
	node[nodes].port = master->port;
	return (uint16_t)++nodes;
}

/* It runs for each slot, and the fuzzer learns nothing from the model. */
#ifdef __clang__
__attribute__((no_sanitize("coverage")))
#endif
static void
give(struct view *of, int first, int last, uint16_t number)
{
	for (int slot = first; slot <= last; slot++) {
		of->slots[of->owner[slot]]--;
		of->slots[number]++;
		of->owner[slot] = number;
	}
}

static int expect_range(void *arg, const struct hf__slots_master *master, uint16_t first,
                        uint16_t last)
{
	(void)arg;
	if (nodes == MOST_NODES)
		return HF_EPROTOCOL;
	give(&next, first, last, find_node(master, ASKED));
	return 0;
}

/* The counts spare a walk over all slots after each item, which is slow where it is traced. */
static int count_owners(void)
{
	int n = 0;

	for (int i = 1; i <= nodes; i++)
		n += view.slots[i] > 0;
	return n;
}

/* ---- the cluster ---- */

static void check_lock(struct hf__redis *redis, struct hf__lock *lock)
{
	const char *name = hf__lock_name(lock);
	uint16_t expected = view.owner[hf__slots_of(name, strlen(name))];
	const struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock);

	CHECK((conn != NULL) == (expected != 0));
	CHECK(hf__lock_link(lock) == (conn ? conn->link : hf__core_link(redis->core)));
	if (conn)
		CHECK(conn->port_number == node[expected - 1].port &&
		      strcmp(conn->host, node[expected - 1].host) == 0);
}

static void take_map(struct hf__redis *redis, const char *text, size_t length)
{
	memset(&next, 0, sizeof next);
	int count = hf__slots_read(text, length, expect_range, NULL);

	if (hf__scout_take_map(redis, text, length, ASKED, 0))
		return; /* also if it names too many masters, which is not modelled here */
	CHECK(count > 0);
	memcpy(&view, &next, sizeof view);
}

static void take_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                        int64_t now)
{
	(void)core, (void)cmd, (void)now;
	outcome = answer->outcome;
	answers++;
}

static void note_owner(const char *text, size_t length, const char *asked)
{
	struct hf__slots_redirection read;

	if (hf__slots_read_redirection(text, length, &read) && !read.asks && nodes < MOST_NODES)
		give(&view, read.slot, read.slot, find_node(&read.to, asked));
}

/* The reply to a command in flight: it is answered exactly once, unless it is another error. */
static void redirect(struct hf__redis *redis, struct hf__lock *lock, const char *text,
                     size_t length)
{
	struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock), *again;
	struct hf__cmd cmd = {
		.verb = HF__ASK, .lock = lock, .in_flight = true, .on_answer = take_answer};

	/* A script that stopped half way ends the connection, and there is none here. */
	if (!conn || memmem(text, length, "non local key", 13))
		return;
	answers = 0;
	hf__list_add(&conn->waiting, &cmd.link);
	conn->port.unanswered++;
	if (hf__cluster_redirect(conn, &cmd, text, length, 0, &again)) {
		CHECK(!again && answers == 1 && (outcome == HF__NOT_NOW || outcome == HF__UNSENT));
		note_owner(text, length, conn->host);
	} else {
		CHECK(answers == 0);
		hf__input_finish_cmd(conn, &cmd);
	}
}

static void refuse(struct hf__redis *redis, struct hf__lock *lock, const char *text, size_t length)
{
	struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock);

	if (!conn)
		return;
	hf__cluster_note_refusal(conn, text, length, 0);
	if (hf__map_masters(redis->cluster) > 0)
		note_owner(text, length, conn->host);
}

/* The first byte of an item chooses what it is: a map, a redirection or a refusal. */
static void take_item(struct hf__redis *redis, struct hf__lock *const *lock, const char *item,
                      size_t length)
{
	char *copy = malloc(length);

	CHECK(copy);
	memcpy(copy, item, length);
	if (*copy == 'M')
		take_map(redis, copy + 1, length - 1);
	else if (*copy == 'r' || *copy == 's')
		refuse(redis, lock[*copy == 's'], copy + 1, length - 1);
	else
		redirect(redis, lock[*copy & 1], copy + 1, length - 1);
	free(copy);
	CHECK(hf__map_masters(redis->cluster) == count_owners());
	check_lock(redis, lock[0]);
	check_lock(redis, lock[1]);
}

/* Items end with NUL. More nodes than a cluster has room for are not modelled. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_client *client = get_client("redis+cluster://127.0.0.1:1");
	struct hf__redis *redis = client->core.backend;
	const char *at = (const char *)data, *end = at + size;
	static struct hf__lock *lock[2];

	hf__engine_lock(&client->engine);
	struct hf__cluster *before = redis->cluster;
	hf__engine_unlock(&client->engine);
	if (!lock[0]) {
		lock[0] = get_lock(client, HF_REENTRANT, "a");
		lock[1] = get_lock(client, HF_REENTRANT, "b");
	}
	hf__engine_lock(&client->engine);
	redis->cluster = hf__cluster_new(redis);
	CHECK(redis->cluster);
	hf__core_reroute(redis->core, 0);
	nodes = 0;
	memset(&view, 0, sizeof view);
	for (size_t length; at < end && nodes < 100; at += length + 1) {
		length = strnlen(at, (size_t)(end - at));
		if (length > 0)
			take_item(redis, lock, at, length);
	}
	struct hf__cluster *used = redis->cluster;
	redis->cluster = before;
	hf__core_reroute(redis->core, 0);
	for (int i = 0; i < used->shards; i++)
		hf__master_done(&used->shard[i]->conn);
	hf__cluster_free(used);
	hf__engine_unlock(&client->engine);
	return 0;
}
