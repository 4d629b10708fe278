/*
 * Asks the nodes of a cluster who serves which slot: one after the other until one of them answers.
 * That one is asked again from time to time, and often while a master is missing.
 */
#include "redis/scout.h"
#include "redis/cluster.h"
#include "redis/refusal.h"
#include "redis/seek.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS      30000 /* between questions while nothing is missing */
#define ASK_AGAIN_MS 150   /* between questions while a master is missing */
#define MOST_ASKED   10    /* questions to one node while a master is missing */

struct hf__scout {
	struct hf__redis *redis;
	struct hf__seek seek;  /* first among the seeds, then the masters of the map */
	struct hf__cmd ask;    /* for the map */
	struct hf__cmd probe;  /* for what the servers can do */
	struct hf__host *seed; /* the nodes that are known without a map */
	int seeds;
	int asked; /* questions to the node in use while a master is missing */
	int64_t asked_at;
	bool has_probed;
	char host[HF__SLOTS_HOST]; /* of the node in use */
	int port;
};

/* ---- the search ---- */

static int count_nodes(const struct hf__scout *scout)
{
	return scout->seeds + hf__map_masters(scout->redis->cluster);
}

/* There may be fewer servers than when the current one was chosen. */
static void choose_node(struct hf__scout *scout)
{
	int current = scout->seek.current %= count_nodes(scout);
	int known = current - scout->seeds;
	struct hf__host server =
		known < 0 ? scout->seed[current] : hf__map_master(scout->redis->cluster, known);
	snprintf(scout->host, sizeof scout->host, "%s", server.name);
	scout->port = server.port;
}

static void contact(struct hf__scout *scout, int64_t now)
{
	choose_node(scout);
	scout->asked = 0;
	hf__seek_contact(&scout->seek, "node", scout->host, scout->port, now);
}

/* No node has answered. Calls that wait for the first map fail with the reason. */
static void give_up(struct hf__scout *scout, int64_t now)
{
	struct hf__core *core = scout->redis->core;
	char reason[sizeof scout->seek.why + 200];
	snprintf(reason, sizeof reason, "%s: no node of the cluster answers: %s",
	         scout->redis->config->shown, scout->seek.why);
	hf__seek_rest(&scout->seek, now);
	hf__core_on_link_failed(core, hf__core_link(core), scout->seek.error, reason, now);
}

/* The node in use cannot help, so the next one is asked. */
static void try_next(struct hf__scout *scout, int error, const char *why, int64_t now)
{
	enum hf__seek_step step = hf__seek_fail(&scout->seek, count_nodes(scout), error, why, now);
	if (step == HF__SEEK_GIVE_UP)
		give_up(scout, now);
	else if (step == HF__SEEK_CONTACT)
		contact(scout, now);
}

/* ---- questions ---- */

/*
 * A node that is cut off from the others has an old map for ever, so others are asked if a master
 * stays missing.
 */
static bool is_of_no_use(struct hf__scout *scout)
{
	if (!hf__map_lacks_master(scout->redis->cluster)) {
		scout->asked = 0;
		return false;
	}
	return ++scout->asked > MOST_ASKED && count_nodes(scout) > 1;
}

static void ask(struct hf__scout *scout, int64_t now)
{
	static const char *const words[] = {"CLUSTER", "NODES"};
	if (is_of_no_use(scout)) {
		hf__conn_abandon(&scout->seek.conn, "it does not know the missing master", now);
		scout->seek.current = (scout->seek.current + 1) % count_nodes(scout);
		contact(scout, now);
		return;
	}
	hf__seek_ask(&scout->seek, &scout->ask, words, 2);
	scout->asked_at = now;
	scout->seek.ask_at = now + (scout->asked ? ASK_AGAIN_MS : POLL_MS);
}

/* ---- the connection ---- */

static struct hf__scout *scout_of(const struct hf__conn *conn)
{
	return hf__list_item(conn, struct hf__scout, seek.conn);
}

/* The probe is that of Redisson: both sides must decide alike. */
static void on_up(struct hf__conn *conn, int64_t now)
{
	static const char *const words[] = {"PUBSUB", "SHARDNUMSUB", "0"};
	struct hf__scout *scout = scout_of(conn);
	if (!scout->has_probed && scout->redis->config->sharded == HF__SHARDED_AUTO)
		hf__seek_ask(&scout->seek, &scout->probe, words, 3);
	ask(scout, now);
}

static void on_down(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	struct hf__scout *scout = scout_of(conn);
	scout->ask.in_flight = false;
	scout->probe.in_flight = false;
	if (!conn->abandoned)
		try_next(scout, error, why, now);
}

static void on_failed(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	try_next(scout_of(conn), error, why, now);
}

static void refuse(struct hf__scout *scout, const char *text, size_t length, int64_t now)
{
	char why[160];
	int error;
	(void)hf__refusal_read(text, length, &error);
	int code = (int)hf__refusal_code(text, length, scout->redis->config->password);
	snprintf(why, sizeof why, "CLUSTER NODES was refused (%.*s); the user needs +cluster|nodes",
	         code ? code : 7, code ? text : "no code");
	hf__conn_drop(&scout->seek.conn, error, why, now);
}

/* Channels first: a waiter that asks again must be listening at the node that it asks. */
int hf__scout_take_map(struct hf__redis *redis, const char *text, size_t length, const char *host,
                       int64_t now)
{
	bool changed;
	int rc = hf__map_take(redis->cluster, text, length, host, now, &changed);
	if (rc || !changed)
		return rc;
	hf__subs_reroute(redis);
	hf__core_reroute(redis->core, now);
	hf__map_leave_replaced(redis->cluster, now);
	return 0;
}

static void handle_map(struct hf__scout *scout, const char *bytes, int64_t now)
{
	const struct hf__resp_node *root = &scout->seek.conn.resp.node[0];
	if (root->type == HF__RESP_ERROR) {
		refuse(scout, bytes + root->start, root->length, now);
		return;
	}
	int rc = HF_EPROTOCOL;
	if (root->type == HF__RESP_STRING)
		rc = hf__scout_take_map(scout->redis, bytes + root->start, root->length,
		                        scout->host, now);
	if (rc) {
		hf__conn_drop(&scout->seek.conn, rc,
		              rc == HF_ENOMEM ? "no memory for the reply to CLUSTER NODES"
		                              : "the reply to CLUSTER NODES names no master, or "
		                                "more than 128",
		              now);
		return;
	}
	hf__seek_succeed(&scout->seek);
}

/*
 * Any lasting refusal means plain pub/sub, as with Redisson. Only old servers lack the command. If
 * our user may not run it, Redisson's user probably may, and then neither side hears the other.
 */
static void handle_probe(struct hf__scout *scout, const char *bytes, int64_t now)
{
	const struct hf__resp_node *root = &scout->seek.conn.resp.node[0];
	bool is_refused = root->type == HF__RESP_ERROR;
	int error = 0;
	if (is_refused &&
	    hf__refusal_read(bytes + root->start, root->length, &error) == HF__NOT_NOW) {
		hf__conn_drop(&scout->seek.conn, error, "PUBSUB SHARDNUMSUB was refused for now",
		              now);
		return;
	}
	scout->has_probed = true;
	scout->redis->is_sharded = !is_refused;
	if (error == HF_EDENIED)
		hf__log_write(scout->redis->core, HF_LOG_WARN,
		              "the user may not run PUBSUB SHARDNUMSUB, so plain pub/sub is used, "
		              "and clients with sharded pub/sub are not woken; grant "
		              "+pubsub|shardnumsub, or set sharded=on or sharded=off");
}

static void on_reply(struct hf__conn *conn, struct hf__cmd *cmd, const char *bytes, int64_t now)
{
	struct hf__scout *scout = scout_of(conn);
	hf__input_finish_cmd(conn, cmd);
	cmd->in_flight = false;
	conn->failures = 0;
	conn->answered = true;
	if (cmd == &scout->ask)
		handle_map(scout, bytes, now);
	else
		handle_probe(scout, bytes, now);
}

static void on_push(struct hf__conn *conn, const char *bytes, int64_t now)
{
	(void)conn;
	(void)bytes;
	(void)now;
}

static const struct hf__conn_user user = {.on_up = on_up,
                                          .on_down = on_down,
                                          .on_failed = on_failed,
                                          .is_wanted = hf__seek_is_wanted,
                                          .on_reply = on_reply,
                                          .on_push = on_push};

/* ---- what the cluster calls ---- */

void hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now)
{
	int64_t at = scout->asked_at + pause_ms > now ? scout->asked_at + pause_ms : now;
	bool is_idle = scout->seek.conn.state == HF__CONN_IDLE && scout->seek.ask_at == HF__NEVER;
	bool is_late = scout->seek.conn.state == HF__CONN_UP && scout->seek.ask_at > at;
	if (is_idle || is_late)
		scout->seek.ask_at = at;
}

int64_t hf__scout_due(const struct hf__scout *scout)
{
	return hf__seek_due(&scout->seek);
}

/* The seed may have another name than the node has in the map. */
bool hf__scout_is_at(const struct hf__scout *scout, const struct hf__conn *conn)
{
	if (scout->seek.conn.state != HF__CONN_UP)
		return false;
	for (int i = 0; i < conn->addresses; i++)
		if (hf__resolve_is_same(&scout->seek.conn.worked, &conn->address[i]))
			return true;
	return scout->port == conn->port_number && strcmp(scout->host, conn->host) == 0;
}

bool hf__scout_is_busy(const struct hf__scout *scout)
{
	return hf__conn_is_attempting(&scout->seek.conn) || scout->ask.in_flight;
}

void hf__scout_turn(struct hf__scout *scout, int64_t now)
{
	if (!hf__seek_turn(&scout->seek, now))
		return;
	if (scout->seek.conn.state == HF__CONN_UP)
		ask(scout, now);
	else if (scout->seek.conn.state == HF__CONN_IDLE &&
	         (hf__map_lacks_master(scout->redis->cluster) ||
	          hf__map_is_used(scout->redis->cluster)))
		contact(scout, now);
}

static void init_cmd(struct hf__cmd *cmd)
{
	cmd->verb = HF__REDIS_CLUSTER;
	hf__list_init(&cmd->link);
}

struct hf__scout *hf__scout_new(struct hf__redis *redis, const struct hf__host *seeds, int count)
{
	const struct hf__login login = {.user = redis->config->user,
	                                .password = redis->config->password,
	                                .is_clustered = true};
	assert(count > 0);
	struct hf__scout *scout = calloc(1, sizeof(*scout));
	if (!scout)
		return NULL;
	scout->redis = redis;
	scout->seeds = count;
	scout->seed = calloc((size_t)count, sizeof(*scout->seed));
	if (!scout->seed || hf__seek_init(&scout->seek, redis, &user, &login)) {
		free(scout->seed);
		free(scout);
		return NULL;
	}
	memcpy(scout->seed, seeds, (size_t)count * sizeof(*seeds));
	init_cmd(&scout->ask);
	init_cmd(&scout->probe);
	return scout;
}

void hf__scout_close(struct hf__scout *scout)
{
	hf__conn_close(&scout->seek.conn);
}

void hf__scout_free(struct hf__scout *scout)
{
	if (!scout)
		return;
	hf__conn_done(&scout->seek.conn);
	free(scout->seed);
	free(scout);
}
