/* Subscriptions: one for each channel at each node, shared by all watches of the client. */
#include "redis/cluster.h"
#include "redis/keys.h"
#include "redis/redis.h"
#include "redis/refusal.h"
#include "redis/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct channel_key {
	const struct hf__conn *conn;
	const char *text;
	size_t length;
};

static bool is_same_channel(const struct hf__table_link *link, const void *key)
{
	const struct hf__sub *sub = hf__table_item(link, struct hf__sub, by_channel);
	const struct channel_key *want = key;
	return sub->conn == want->conn && sub->length == want->length &&
	       memcmp(sub->channel, want->text, want->length) == 0;
}

static struct hf__sub *find_sub(struct hf__redis *redis, const struct hf__conn *conn,
                                const char *channel, size_t length)
{
	struct channel_key key = {.conn = conn, .text = channel, .length = length};
	uint32_t hash = hf__table_hash(&redis->subs, channel, length);
	struct hf__table_link *link = hf__table_find(&redis->subs, hash, is_same_channel, &key);
	return link ? hf__table_item(link, struct hf__sub, by_channel) : NULL;
}

static struct hf__sub *new_sub(struct hf__redis *redis, struct hf__conn *conn, const char *channel,
                               size_t length)
{
	struct hf__sub *sub = calloc(1, sizeof(*sub) + length + 1);
	if (!sub)
		return NULL;
	hf__list_init(&sub->watches);
	hf__list_init(&sub->moved);
	hf__list_init(&sub->start.link);
	hf__list_init(&sub->stop.link);
	sub->start.verb = HF__REDIS_SUBSCRIBE;
	sub->stop.verb = HF__REDIS_UNSUBSCRIBE;
	sub->conn = conn;
	sub->length = length;
	memcpy(sub->channel, channel, length + 1);
	hf__table_add(&redis->subs, &sub->by_channel,
	              hf__table_hash(&redis->subs, channel, length));
	return sub;
}

/* The connection for the channels of this lock; NULL if the master of its slot is not known. */
static struct hf__conn *conn_of(struct hf__redis *redis, const struct hf__watch *watch)
{
	return redis->cluster ? hf__map_conn_of(redis->cluster, watch->lock) : &redis->master;
}

static void free_if_unused(struct hf__redis *redis, struct hf__sub *sub)
{
	if (!hf__list_empty(&sub->watches) || sub->subscribed || sub->start.in_flight ||
	    sub->stop.in_flight)
		return;
	hf__table_remove(&redis->subs, &sub->by_channel);
	free(sub);
}

static const char *word_of(const struct hf__redis *redis, const struct hf__cmd *cmd)
{
	if (cmd->verb == HF__REDIS_SUBSCRIBE)
		return redis->is_sharded ? "SSUBSCRIBE" : "SUBSCRIBE";
	return redis->is_sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE";
}

static int send_request(struct hf__redis *redis, struct hf__sub *sub, struct hf__cmd *cmd)
{
	char *at = hf__conn_room(sub->conn, hf__request_size(4, 24 + sub->length));
	if (!at)
		return HF_ENOMEM;
	at = hf__request_begin(at, 2);
	at = hf__request_text(at, word_of(redis, cmd));
	at = hf__request_bytes(at, sub->channel, sub->length);
	if (redis->is_sharded && cmd->verb == HF__REDIS_UNSUBSCRIBE) {
		at = hf__request_begin(at, 1);
		at = hf__request_text(at, "HELLO");
		cmd->backend.is_refused = false;
	}
	cmd->in_flight = true;
	cmd->sent_at = hf__clock_ms();
	cmd->answer_by = hf__clock_after(cmd->sent_at, redis->config->subscribe_timeout_ms);
	hf__conn_commit(sub->conn, cmd, at);
	return 0;
}

/*
 * Subscribes or unsubscribes as the watches need it. A SUBSCRIBE can follow an UNSUBSCRIBE that is
 * still in flight, since the connection keeps their order; an UNSUBSCRIBE waits until nothing is in
 * flight.
 */
static int update(struct hf__redis *redis, struct hf__sub *sub)
{
	bool wanted = !hf__list_empty(&sub->watches);
	if (!sub->conn || sub->conn->state != HF__CONN_UP)
		return 0;
	if (wanted && !sub->start.in_flight && (!sub->subscribed || sub->stop.in_flight))
		return send_request(redis, sub, &sub->start);
	if (!wanted && sub->subscribed && !sub->start.in_flight && !sub->stop.in_flight)
		return send_request(redis, sub, &sub->stop);
	return 0;
}

/* The subscription to this channel at this node, perhaps a new one; NULL without memory. */
static struct hf__sub *take_sub(struct hf__redis *redis, struct hf__conn *conn, const char *channel,
                                size_t length)
{
	struct hf__sub *sub = find_sub(redis, conn, channel, length);
	return sub ? sub : new_sub(redis, conn, channel, length);
}

int hf__subs_watch(struct hf__redis *redis, struct hf__watch *watch)
{
	char channel[HF__KEYS_MAX];
	assert(watch && watch->lock);
	size_t length = hf__keys_make_channel(channel, watch, hf__core_settings(redis->core)->uuid);
	struct hf__sub *sub = take_sub(redis, conn_of(redis, watch), channel, length);
	if (!sub)
		return HF_ENOMEM;
	watch->sub = sub;
	hf__list_add(&sub->watches, &watch->link);
	int rc = update(redis, sub);
	if (rc)
		hf__subs_unwatch(redis, watch);
	return rc;
}

void hf__subs_unwatch(struct hf__redis *redis, struct hf__watch *watch)
{
	struct hf__sub *sub = watch->sub;
	assert(sub);
	hf__list_remove(&watch->link);
	/* Without memory for the request the server keeps sending messages, which does no harm. */
	(void)update(redis, sub);
	free_if_unused(redis, sub);
}

typedef void each_sub_fn(struct hf__redis *redis, struct hf__sub *sub);

/* Visits the subscriptions of one connection, or all of them if it is NULL. */
static void each_sub(struct hf__redis *redis, const struct hf__conn *conn, each_sub_fn *visit)
{
	struct hf__table_link *link = hf__table_next(&redis->subs, NULL);
	while (link) {
		struct hf__sub *sub = hf__table_item(link, struct hf__sub, by_channel);
		link = hf__table_next(&redis->subs, link);
		if (!conn || sub->conn == conn)
			visit(redis, sub);
	}
}

static void renew_sub(struct hf__redis *redis, struct hf__sub *sub)
{
	/* Without memory for the request the waiters still ask from time to time. */
	(void)update(redis, sub);
}

static void lose_sub(struct hf__redis *redis, struct hf__sub *sub)
{
	hf__list_remove(&sub->start.link);
	hf__list_remove(&sub->stop.link);
	sub->subscribed = false;
	sub->start.in_flight = false;
	sub->stop.in_flight = false;
	free_if_unused(redis, sub);
}

static void free_sub(struct hf__redis *redis, struct hf__sub *sub)
{
	hf__table_remove(&redis->subs, &sub->by_channel);
	free(sub);
}

void hf__subs_renew(struct hf__conn *conn)
{
	each_sub(conn->redis, conn, renew_sub);
}

void hf__subs_turn(struct hf__conn *conn, int64_t now)
{
	if (conn->state != HF__CONN_UP || now < conn->subscribe_at)
		return;
	conn->subscribe_at = HF__NEVER;
	hf__subs_renew(conn);
}

void hf__subs_lose(struct hf__conn *conn)
{
	each_sub(conn->redis, conn, lose_sub);
}

/* The connection that the channel's watches need now. */
static struct hf__conn *needed_conn(struct hf__redis *redis, const struct hf__sub *sub)
{
	return hf__list_empty(&sub->watches)
	               ? sub->conn
	               : conn_of(redis, hf__list_item(sub->watches.next, struct hf__watch, link));
}

/*
 * Moves the watches to the node that owns their slot now. A message may be missed until that node
 * confirms the subscription, so the waiters ask again then.
 */
static void move_watches(struct hf__redis *redis, struct hf__sub *sub)
{
	struct hf__sub *new = take_sub(redis, needed_conn(redis, sub), sub->channel, sub->length);
	if (!new)
		return; /* without memory the waiters still ask from time to time */
	while (!hf__list_empty(&sub->watches)) {
		struct hf__watch *watch = hf__list_item(sub->watches.next, struct hf__watch, link);
		watch->sub = new;
		hf__list_remove(&watch->link);
		hf__list_add(&new->watches, &watch->link);
	}
	new->is_late = true;
	(void)update(redis, new);
	(void)update(redis, sub);
	free_if_unused(redis, sub);
}

/* Those to move are collected first, since moving adds to the table. */
struct moving {
	struct hf__redis *redis;
	struct hf__list subs;
};

static void note_moved(struct moving *moving, struct hf__sub *sub)
{
	if (hf__list_empty(&sub->moved) && needed_conn(moving->redis, sub) != sub->conn)
		hf__list_add(&moving->subs, &sub->moved);
}

static void note_moved_watch(void *arg, struct hf__watch *watch)
{
	if (watch->sub)
		note_moved(arg, watch->sub);
}

static void move_all(struct moving *moving)
{
	while (!hf__list_empty(&moving->subs)) {
		struct hf__sub *sub = hf__list_item(moving->subs.next, struct hf__sub, moved);
		hf__list_remove(&sub->moved);
		move_watches(moving->redis, sub);
	}
}

void hf__subs_reroute(struct hf__redis *redis)
{
	struct moving moving = {.redis = redis};
	struct hf__table_link *at = NULL;
	hf__list_init(&moving.subs);
	while ((at = hf__table_next(&redis->subs, at)))
		note_moved(&moving, hf__table_item(at, struct hf__sub, by_channel));
	move_all(&moving);
}

void hf__subs_reroute_slot(struct hf__redis *redis, uint16_t slot)
{
	struct moving moving = {.redis = redis};
	hf__list_init(&moving.subs);
	hf__core_each_watch(redis->core, slot, note_moved_watch, &moving);
	move_all(&moving);
}

void hf__subs_on_ended(struct hf__conn *conn, const char *channel, size_t length, int64_t now)
{
	struct hf__sub *sub = find_sub(conn->redis, conn, channel, length);
	if (!sub || !sub->subscribed)
		return;
	sub->subscribed = false;
	if (sub->stop.in_flight)
		return; /* we have asked for it */
	/* The slot has moved. The refusal of a new subscription says where to. */
	bool is_first = now - sub->ended_at >= HF__NOT_NOW_MS;
	sub->is_late = true;
	sub->ended_at = now;
	if (is_first)
		(void)update(conn->redis, sub);
	else
		conn->subscribe_at = hf__clock_after(now, HF__NOT_NOW_MS);
	free_if_unused(conn->redis, sub);
}

void hf__subs_done(struct hf__redis *redis)
{
	each_sub(redis, NULL, free_sub);
	hf__table_done(&redis->subs);
}

static void wake_all(struct hf__redis *redis, struct hf__sub *sub, int64_t number, int64_t now)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &sub->watches)
		hf__core_wake(redis->core, hf__list_item(link, struct hf__watch, link), number,
		              now);
}

void hf__subs_on_message(struct hf__conn *conn, const char *channel, size_t length, int64_t number,
                         int64_t now)
{
	struct hf__sub *sub = find_sub(conn->redis, conn, channel, length);
	if (sub)
		wake_all(conn->redis, sub, number, now);
}

/*
 * True: it is refused for now, and is tried again; until then the waiters ask from time to time.
 */
static bool handle_refusal(struct hf__redis *redis, struct hf__sub *sub, const char *error,
                           size_t length, int64_t now)
{
	int number;
	if (hf__refusal_read(error, length, &number) == HF__NOT_NOW ||
	    (redis->cluster && hf__refusal_is_redirection(error, length))) {
		sub->is_late = true;
		sub->conn->subscribe_at = hf__clock_after(now, HF__NOT_NOW_MS);
		return true;
	}
	while (!hf__list_empty(&sub->watches)) {
		struct hf__watch *watch = hf__list_item(sub->watches.next, struct hf__watch, link);
		hf__list_remove(&watch->link);
		hf__core_on_watch_failed(redis->core, watch, number, error, length, now);
	}
	return false;
}

static void note_confirmation(struct hf__redis *redis, struct hf__sub *sub, bool started,
                              int64_t now)
{
	sub->subscribed = started;
	/* A message may have been missed since the waiters last asked. */
	if (started && sub->is_late)
		wake_all(redis, sub, INT64_MAX, now);
	sub->is_late = false;
}

static struct hf__sub *sub_of(const struct hf__cmd *cmd)
{
	assert(cmd->in_flight);
	assert(cmd->verb == HF__REDIS_SUBSCRIBE || cmd->verb == HF__REDIS_UNSUBSCRIBE);
	return cmd->verb == HF__REDIS_SUBSCRIBE ? hf__list_item(cmd, struct hf__sub, start)
	                                        : hf__list_item(cmd, struct hf__sub, stop);
}

/* What the watches need may have changed while the request was in flight. */
static void end_request(struct hf__redis *redis, struct hf__sub *sub)
{
	if (!sub->is_late)
		(void)update(redis, sub);
	free_if_unused(redis, sub);
}

void hf__subs_confirm(struct hf__conn *conn, struct hf__cmd *cmd, int64_t now)
{
	struct hf__sub *sub = sub_of(cmd);
	cmd->in_flight = false;
	note_confirmation(conn->redis, sub, cmd->verb == HF__REDIS_SUBSCRIBE, now);
	end_request(conn->redis, sub);
}

bool hf__subs_refuse(struct hf__conn *conn, struct hf__cmd *cmd, const char *error, size_t length,
                     int64_t now)
{
	struct hf__sub *sub = sub_of(cmd);
	if (cmd->verb == HF__REDIS_UNSUBSCRIBE) {
		/* Messages that still arrive do no harm. */
		hf__subs_confirm(conn, cmd, now);
		return false;
	}
	bool is_late = handle_refusal(conn->redis, sub, error, length, now);
	cmd->in_flight = false; /* it was in flight until now, so nothing has freed it */
	end_request(conn->redis, sub);
	return is_late;
}
