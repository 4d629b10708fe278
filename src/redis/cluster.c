/* A cluster: which master a command is for, and what redirections and answers say about the map. */
#include "redis/cluster.h"
#include "redis/refusal.h"
#include "redis/scout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REDIRECTIONS 5    /* of one request in a row */
#define MISSING_MS        150  /* between questions for the map while a master is missing */
#define MOVED_MS          1000 /* and after a redirection, which has said what matters most */

static struct hf__shard *shard_of(const struct hf__link *link)
{
	return hf__list_item(link, struct hf__shard, link);
}

/* ---- redirections ---- */

static void answer(struct hf__cluster *cluster, struct hf__cmd *cmd, enum hf__outcome outcome,
                   const char *text, size_t length, int64_t now)
{
	struct hf__answer refused = {
		.outcome = outcome, .error = HF_ENOTNOW, .text = text, .length = length};
	hf__core_answer(cluster->redis->core, cmd, &refused, now);
}

/* The lock that a command is about; of several, the first. */
static const struct hf__lock *lock_of(const struct hf__cmd *cmd)
{
	return cmd->verb == HF__RENEW ? hf__backend_item(cmd, 0).lock : cmd->lock;
}

/*
 * The other node is not connected. If the command's own link is down as well, the core sends it
 * again as soon as that is up; otherwise after a pause.
 */
static void put_off(struct hf__cluster *cluster, struct hf__cmd *cmd, struct hf__shard *shard,
                    const char *text, size_t length, int64_t now)
{
	const struct hf__lock *lock = lock_of(cmd);
	bool is_up = !lock || hf__lock_link(lock)->up;
	hf__conn_want(&shard->conn, now);
	answer(cluster, cmd, is_up ? HF__NOT_NOW : HF__UNSENT, text, length, now);
}

static bool read_redirection(struct hf__cluster *cluster, const struct hf__conn *conn,
                             const char *text, size_t length,
                             struct hf__slots_redirection *ret_read, struct hf__shard **ret_shard)
{
	if (!hf__slots_read_redirection(text, length, ret_read))
		return false;
	*ret_shard = hf__map_take_shard(cluster, &ret_read->to, conn->host);
	return *ret_shard != NULL;
}

/* Channels first: a waiter that asks again must be listening at the node that it asks. */
static void set_owner(struct hf__cluster *cluster, uint16_t slot, struct hf__shard *shard,
                      int64_t now)
{
	hf__scout_want(cluster->scout, MOVED_MS, now);
	if (!hf__map_set_owner(cluster, slot, shard))
		return;
	hf__subs_reroute_slot(cluster->redis, slot);
	hf__core_reroute_slot(cluster->redis->core, slot, now);
}

/*
 * A script met a key that is at another node by now, so it may have stopped half way. What was done
 * is found out as after a lost reply.
 */
static bool has_stopped(const char *text, size_t length)
{
	return memmem(text, length, "non local key", 13) != NULL;
}

bool hf__cluster_redirect(struct hf__conn *conn, struct hf__cmd *cmd, const char *text,
                          size_t length, int64_t now, struct hf__conn **ret_again)
{
	struct hf__cluster *cluster = conn->redis->cluster;
	struct hf__slots_redirection redirection;
	struct hf__shard *shard;
	if (has_stopped(text, length)) {
		hf__conn_drop(conn, HF_EPROTOCOL, "a script met a key that has moved", now);
		*ret_again = NULL;
		return true;
	}
	if (!read_redirection(cluster, conn, text, length, &redirection, &shard))
		return false;
	hf__input_finish_cmd(conn, cmd);
	cmd->backend.asks = redirection.asks;
	cmd->backend.whole_text = false;
	if (!redirection.asks)
		set_owner(cluster, redirection.slot, shard, now);
	*ret_again = NULL;
	if (++cmd->backend.redirections > MOST_REDIRECTIONS)
		answer(cluster, cmd, HF__NOT_NOW, text, length, now);
	else if (shard->conn.state == HF__CONN_UP)
		*ret_again = &shard->conn;
	else
		put_off(cluster, cmd, shard, text, length, now);
	return true;
}

void hf__cluster_note_refusal(struct hf__conn *conn, const char *text, size_t length, int64_t now)
{
	struct hf__cluster *cluster = conn->redis->cluster;
	struct hf__slots_redirection redirection;
	struct hf__shard *shard;
	if (!read_redirection(cluster, conn, text, length, &redirection, &shard)) {
		hf__cluster_want(cluster, now);
	} else if (!redirection.asks) {
		hf__conn_want(&shard->conn, now);
		set_owner(cluster, redirection.slot, shard, now);
	}
}

/* ---- answers ---- */

static const char *list_row(const struct hf__answer *answer, size_t i, size_t *ret_length)
{
	const struct hf__cluster *cluster = answer->source;
	if (i > 0)
		return cluster->listed.row(&cluster->listed, i, ret_length);
	*ret_length = strlen(cluster->cursor);
	return cluster->cursor;
}

/* The next shard that has slots, or NULL. */
static const struct hf__shard *next_shard(const struct hf__cluster *cluster, int after)
{
	for (int i = after; i < cluster->shards; i++)
		if (cluster->shard[i]->slots > 0)
			return cluster->shard[i];
	return NULL;
}

/* The list continues at the same master or at the next one, or is complete. */
static void set_cursor(struct hf__cluster *cluster, const struct hf__conn *conn,
                       struct hf__answer *answer)
{
	size_t length;
	const struct hf__shard *shard = shard_of(conn->link);
	const char *own = answer->row(answer, 0, &length);
	if (length == 1 && *own == '0')
		shard = next_shard(cluster, hf__map_number(cluster, shard));
	if (shard)
		snprintf(cluster->cursor, sizeof cluster->cursor, "%d:%.*s",
		         hf__map_number(cluster, shard), (int)length, own);
	else
		snprintf(cluster->cursor, sizeof cluster->cursor, "0");
	cluster->listed = *answer;
	answer->row = list_row;
	answer->source = cluster;
}

/* The master says how many slots it owns. If the map has another number, it is outdated. */
static void compare_slots(struct hf__cluster *cluster, const struct hf__conn *conn,
                          const struct hf__answer *answer, int64_t now)
{
	size_t length = 0, i = 0;
	const char *text = answer->rows > 1 ? answer->row(answer, 1, &length) : "";
	int slots = 0;
	for (; i < length && text[i] >= '0' && text[i] <= '9' && slots <= HF__SLOTS; i++)
		slots = 10 * slots + (text[i] - '0');
	if (slots != shard_of(conn->link)->slots)
		hf__cluster_want(cluster, now);
}

void hf__cluster_note_answer(struct hf__conn *conn, const struct hf__cmd *cmd,
                             struct hf__answer *answer, int64_t now)
{
	static const char down[] = "CLUSTERDOWN";
	struct hf__cluster *cluster = conn->redis->cluster;
	shard_of(conn->link)->is_down = answer->outcome == HF__NOT_NOW &&
	                                answer->length >= sizeof down - 1 &&
	                                memcmp(answer->text, down, sizeof down - 1) == 0;
	if (answer->outcome == HF__FAILED &&
	    hf__refusal_is_redirection(answer->text, answer->length)) {
		/* The refusal does not name the other node, but the map may. */
		answer->outcome = HF__NOT_NOW;
		answer->error = HF_ENOTNOW;
	}
	if (answer->outcome == HF__NOT_NOW) {
		hf__cluster_want(cluster, now);
		if (cmd->verb == HF__RENEW && cmd->items > 1)
			hf__map_note_torn(cluster, lock_of(cmd), now);
	} else if (hf__backend_is_walk(cmd) && answer->rows > 0) {
		if (cmd->verb == HF__HISTORY_STREAMS)
			compare_slots(cluster, conn, answer, now);
		set_cursor(cluster, conn, answer);
	} else if (cmd->verb == HF__SETTLE && answer->outcome == HF__DONE) {
		answer->uncounted = true; /* the server counts only those at its own node */
	}
}

/* ---- what the core calls ---- */

/*
 * For requests about no name: a master that is connected, or else the one that is most likely to
 * work, which is the one that has sent the map.
 */
static struct hf__shard *find_any(const struct hf__cluster *cluster)
{
	struct hf__shard *best = NULL;
	for (int i = 0; i < cluster->shards; i++) {
		struct hf__shard *shard = cluster->shard[i];
		if (!shard->slots)
			continue;
		if (shard->link.up)
			return shard;
		if (!best || shard->conn.failures < best->conn.failures ||
		    (!shard->conn.failures && hf__scout_is_at(cluster->scout, &shard->conn)))
			best = shard;
	}
	return best;
}

struct hf__link *hf__cluster_route(struct hf__cluster *cluster, const char *name, size_t length)
{
	struct hf__shard *shard =
		name ? hf__map_owner(cluster, hf__slots_of(name, length)) : find_any(cluster);
	return shard ? &shard->link : hf__core_link(cluster->redis->core);
}

/* A node without slots counts as long as this client is connected to it or holds locks there. */
const struct hf__link *hf__cluster_link_at(const struct hf__cluster *cluster, int i,
                                           const char **ret_shown)
{
	for (int at = 0; at < cluster->shards; at++) {
		const struct hf__shard *shard = cluster->shard[at];
		bool counts = shard->slots > 0 || shard->link.up || shard->link.holds > 0;
		if (!counts || i-- > 0)
			continue;
		*ret_shown = shard->shown;
		return &shard->link;
	}
	return NULL;
}

void hf__cluster_want(struct hf__cluster *cluster, int64_t now)
{
	hf__scout_want(cluster->scout, MISSING_MS, now);
}

void hf__cluster_want_link(struct hf__cluster *cluster, struct hf__link *link, int64_t now)
{
	if (link == hf__core_link(cluster->redis->core))
		hf__cluster_want(cluster, now);
	else
		hf__conn_want(&shard_of(link)->conn, now);
}

/*
 * The master that the cursor names, or the first; NULL if there is none. The locks of a master that
 * has lost all its slots are at other masters, which may have been listed already. So the list
 * starts over then.
 */
static struct hf__conn *find_listed(const struct hf__cluster *cluster, struct hf__cmd *cmd)
{
	int number = strchr(cmd->words, ':') ? (int)strtol(cmd->words, NULL, 10) : 0;
	bool is_known = number >= 1 && number <= cluster->shards;
	cmd->backend.starts_over = number && !(is_known && cluster->shard[number - 1]->slots > 0);
	if (number && !cmd->backend.starts_over)
		return &cluster->shard[number - 1]->conn;
	const struct hf__shard *shard = next_shard(cluster, 0);
	return shard ? &cluster->shard[hf__map_number(cluster, shard) - 1]->conn : NULL;
}

/* The master with this address; NULL if it is no longer a master. */
static struct hf__conn *find_addressed(const struct hf__cluster *cluster, const char *address)
{
	for (int i = 0; i < cluster->shards; i++) {
		const char *space = strrchr(cluster->shard[i]->shown, ' ');
		if (cluster->shard[i]->slots > 0 && space && strcmp(space + 1, address) == 0)
			return &cluster->shard[i]->conn;
	}
	return NULL;
}

/* Whether the command is for one master, which it names. */
static bool is_addressed(const struct hf__cmd *cmd)
{
	return cmd->verb == HF__FACTS && cmd->items > 0;
}

/*
 * A list names the master to ask. All members of a red lock identify the same master if they are in
 * one cluster, so that this is noticed.
 */
static struct hf__conn *find_named(const struct hf__cluster *cluster, struct hf__cmd *cmd)
{
	struct hf__shard *first = hf__map_owner(cluster, 0);
	switch (cmd->verb) {
	case HF__LIST:
	case HF__LIST_WAITED:
	case HF__HISTORY_STREAMS: return find_listed(cluster, cmd);
	case HF__IDENTIFY: return first ? &first->conn : NULL;
	case HF__FACTS: return is_addressed(cmd) ? find_addressed(cluster, cmd->words) : NULL;
	default: return NULL;
	}
}

/*
 * Redisson puts the name of a latch into braces even if it contains some. Then its channel and its
 * key have different slots, and the master of the key cannot publish on the channel.
 */
static bool is_mute_latch(const struct hf__cluster *cluster, const struct hf__cmd *cmd)
{
	int kind = cmd->lock ? hf__lock_kind(cmd->lock) : 0;
	return (kind == HF__LATCH || kind == HF__BARRIER) && cluster->redis->is_sharded &&
	       strchr(hf__lock_name(cmd->lock), '{');
}

struct hf__conn *hf__cluster_choose(struct hf__cluster *cluster, struct hf__link *link,
                                    struct hf__cmd *cmd)
{
	assert(link != hf__core_link(cluster->redis->core));
	struct hf__conn *named = find_named(cluster, cmd);
	struct hf__conn *conn = named || is_addressed(cmd) ? named : &shard_of(link)->conn;
	bool is_mute = is_mute_latch(cluster, cmd);
	if (conn && conn->state == HF__CONN_UP && !is_mute)
		return conn;
	if (conn && !is_mute)
		hf__conn_want(conn, hf__clock_ms());
	hf__list_add(&cluster->late, &cmd->link);
	return NULL;
}

const struct hf__list *hf__cluster_list_waiting(const struct hf__cluster *cluster)
{
	for (int i = 0; i < cluster->shards; i++)
		if (!hf__list_empty(&cluster->shard[i]->conn.waiting))
			return &cluster->shard[i]->conn.waiting;
	return &cluster->redis->master.waiting;
}

int64_t hf__cluster_due(const struct hf__cluster *cluster)
{
	return hf__list_empty(&cluster->late) ? hf__scout_due(cluster->scout) : 0;
}

bool hf__cluster_is_busy(const struct hf__cluster *cluster)
{
	return hf__scout_is_busy(cluster->scout);
}

static const char mute_text[] =
	"name: with braces in its name, a latch or barrier cannot wake its waiters on a cluster "
	"that uses sharded pub/sub; leave them out";

static void answer_late(struct hf__cluster *cluster, int64_t now)
{
	static const char text[] = "a master of the cluster is not connected";
	struct hf__answer mute = {.outcome = HF__FAILED,
	                          .error = HF_EINVAL,
	                          .text = mute_text,
	                          .length = sizeof mute_text - 1};
	struct hf__list late;
	hf__list_init(&late);
	hf__list_move(&late, &cluster->late);
	while (!hf__list_empty(&late)) {
		struct hf__cmd *cmd = hf__list_item(late.next, struct hf__cmd, link);
		hf__list_remove(&cmd->link);
		if (is_mute_latch(cluster, cmd))
			hf__core_answer(cluster->redis->core, cmd, &mute, now);
		else
			answer(cluster, cmd, HF__NOT_NOW, text, sizeof text - 1, now);
	}
}

void hf__cluster_turn(struct hf__cluster *cluster, int64_t now)
{
	answer_late(cluster, now);
	hf__scout_turn(cluster->scout, now);
}

/* ---- beginning and end ---- */

static struct hf__cluster *new_cluster(struct hf__redis *redis, const struct hf__host *seeds,
                                       int count)
{
	struct hf__cluster *cluster = calloc(1, sizeof(*cluster));
	if (!cluster)
		return NULL;
	cluster->redis = redis;
	cluster->torn_until = HF__NEVER;
	hf__list_init(&cluster->late);
	cluster->scout = hf__scout_new(redis, seeds, count);
	if (!cluster->scout) {
		free(cluster);
		return NULL;
	}
	redis->is_sharded = redis->config->sharded == HF__SHARDED_ON;
	return cluster;
}

struct hf__cluster *hf__cluster_new(struct hf__redis *redis)
{
	return new_cluster(redis, redis->config->hosts, redis->config->host_count);
}

int hf__cluster_adopt(struct hf__redis *redis, int64_t now)
{
	struct hf__host seed = {.name = redis->config->host, .port = redis->config->port};
	assert(!redis->cluster && seed.name);
	redis->cluster = new_cluster(redis, &seed, 1);
	if (!redis->cluster)
		return HF_ENOMEM;
	hf__log_write(redis->core, HF_LOG_INFO,
	              "%s is a node of a cluster, and its other nodes are used as well",
	              redis->config->shown);
	hf__cluster_want(redis->cluster, now);
	return 0;
}

void hf__cluster_close(struct hf__cluster *cluster)
{
	hf__scout_close(cluster->scout);
}

void hf__cluster_free(struct hf__cluster *cluster)
{
	if (!cluster)
		return;
	hf__scout_free(cluster->scout);
	for (int i = 0; i < cluster->shards; i++)
		free(cluster->shard[i]);
	free(cluster);
}
