/* The connection to a server that holds locks: a link of the core's, its commands and messages. */
#include "redis/cluster.h"
#include "redis/redis.h"
#include "redis/refusal.h"
#include "redis/sentinel.h"
#include "redis/sync.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the link ---- */

static void on_up(struct hf__conn *conn, int64_t now)
{
	conn->redis->hosts_failed = 0;
	conn->redis->hosts_why[0] = 0;
	hf__conn_show_server(conn, conn->link->server, sizeof conn->link->server);
	hf__subs_renew(conn);
	hf__core_on_link_up(conn->redis->core, conn->link, now);
	if (conn->redis->sentinel)
		hf__sentinel_want(conn->redis->sentinel, now); /* and is polled from now on */
}

/* Another server may be the master by now. */
static void find_again(struct hf__redis *redis, int64_t now)
{
	if (redis->sentinel)
		hf__sentinel_want(redis->sentinel, now);
	if (redis->cluster)
		hf__cluster_want(redis->cluster, now);
}

static void on_down(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	hf__core_on_link_down(conn->redis->core, conn->link, error, why, now);
	hf__subs_lose(conn);
	hf__sync_drop(conn->sync, why, now);
	find_again(conn->redis, now);
}

/* Of several servers the next one is used for the next attempt. */
static void select_next_host(struct hf__conn *conn)
{
	struct hf__redis *redis = conn->redis;
	const struct hf__redis_settings *config = redis->config;
	redis->host = (redis->host + 1) % config->host_count;
	conn->given_up = 0; /* the number belongs to the other server */
	hf__conn_set_host(conn, config->hosts[redis->host].name, config->hosts[redis->host].port);
}

/* Of several servers the next one is tried; false if all of them have failed. */
static bool try_next_host(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	struct hf__redis *redis = conn->redis;
	size_t used = strlen(redis->hosts_why);
	/* A refusal says more than that another server is down, or a replica. */
	if (redis->hosts_failed == 0 || redis->hosts_error == HF_EUNREACHABLE)
		redis->hosts_error = error;
	snprintf(redis->hosts_why + used, sizeof redis->hosts_why - used, "%s%s", used ? "; " : "",
	         why);
	select_next_host(conn);
	if (++redis->hosts_failed == redis->config->host_count)
		return false;
	hf__conn_start(conn, now);
	return true;
}

static void on_failed(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	struct hf__redis *redis = conn->redis;
	char reason[sizeof redis->hosts_why + 100];
	if (redis->is_clustered && !redis->cluster && hf__cluster_adopt(redis, now) == 0)
		return;
	if (redis->config->deployment == HF__REPLICATED) {
		if (try_next_host(conn, error, conn->round.why, now))
			return;
		snprintf(reason, sizeof reason, "%s: no server is the master: %s", conn->shown,
		         redis->hosts_why);
		redis->hosts_failed = 0;
		redis->hosts_why[0] = 0;
		error = redis->hosts_error;
		why = reason;
	}
	hf__core_on_link_failed(redis->core, conn->link, error, why, now);
	find_again(redis, now);
	if (redis->cluster)
		hf__core_reroute(redis->core, now); /* for requests that any node can answer */
}

/* With Sentinels, the one that is asked says where to connect to; with a cluster, the scout. */
static bool is_wanted(const struct hf__conn *conn)
{
	const struct hf__redis *redis = conn->redis;
	return !redis->sentinel && !(redis->cluster && conn == &redis->master) &&
	       hf__core_needs_link(redis->core, conn->link);
}

/* ---- commands ---- */

/* Holds of one group are renewed by one script. */
static uint32_t renewal_bit(const struct hf__cmd *cmd)
{
	return UINT32_C(1) << hf__lock_traits(hf__backend_item(cmd, 0).lock)->renew_group;
}

/*
 * The watchdog's first renewal on a connection carries its script, so that it takes one round trip
 * whatever is in the server's script cache.
 */
int hf__master_submit(struct hf__conn *conn, struct hf__cmd *cmd)
{
	bool is_watchdogs = cmd->verb == HF__RENEW && cmd->item;
	if (cmd->verb == HF__SYNC)
		return hf__sync_submit(conn, cmd);
	if (is_watchdogs && !(conn->renewals & renewal_bit(cmd))) {
		cmd->backend.whole_text = true;
		if (!hf__verbs_encode(conn, cmd))
			return 0;
		cmd->backend.whole_text = false; /* the hash may still fit */
	}
	if (hf__verbs_encode(conn, cmd))
		return HF_ENOMEM;
	if (cmd->verb == HF__ASK && cmd->synced)
		hf__sync_expect(conn, cmd);
	return 0;
}

static bool is_noscript(const struct hf__conn *conn, const struct hf__cmd *cmd, const char *bytes)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	return root->type == HF__RESP_ERROR && cmd->verb != HF__PING && !cmd->backend.whole_text &&
	       hf__refusal_is_noscript(bytes + root->start, root->length);
}

/*
 * Sends a command again that the server has refused without executing it, now over this connection
 * and with as much time as it had.
 */
static void resend(struct hf__conn *conn, struct hf__cmd *cmd, int64_t now)
{
	struct hf__answer no_room = {
		.outcome = HF__UNSENT, .error = HF_ENOMEM, .text = "no memory for a command"};
	int64_t limit_ms = cmd->answer_by - cmd->sent_at;
	no_room.length = strlen(no_room.text);
	cmd->sent_at = now;
	cmd->answer_by = hf__clock_after(now, limit_ms);
	if (hf__verbs_encode(conn, cmd))
		hf__core_answer(conn->redis->core, cmd, &no_room, now);
}

/* The server has the script now, or the user may not send it: from now on the hash is sent. */
static void note_renewal(struct hf__conn *conn, const struct hf__cmd *cmd,
                         const struct hf__answer *answer)
{
	if (cmd->verb == HF__RENEW && answer->outcome != HF__NOT_NOW)
		conn->renewals |= renewal_bit(cmd);
}

/*
 * Whether another server is the master now. Nothing was executed, so the command can be sent again,
 * to that one.
 */
static bool is_demoted(const struct hf__conn *conn, const char *bytes, struct hf__answer *answer)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	bool has_others = conn->redis->cluster || conn->redis->config->deployment != HF__SINGLE;
	if (!has_others || root->type != HF__RESP_ERROR ||
	    !hf__refusal_is_demotion(bytes + root->start, root->length))
		return false;
	answer->outcome = HF__NOT_NOW;
	answer->error = HF_ENOTNOW;
	return true;
}

/*
 * The next connection is to another server, even if this one still calls itself the master. In a
 * cluster the map says when that is so; until then the connection would be to the same node.
 */
static void leave_demoted(struct hf__conn *conn, int64_t now)
{
	if (conn->redis->cluster)
		return;
	hf__conn_drop(conn, HF_EUNREACHABLE, "it is not the master any more", now);
	if (conn->redis->config->deployment == HF__REPLICATED)
		select_next_host(conn);
}

static bool is_redirected(struct hf__conn *conn, struct hf__cmd *cmd, const char *bytes,
                          int64_t now)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	struct hf__conn *again;
	if (!conn->redis->cluster || root->type != HF__RESP_ERROR ||
	    !hf__cluster_redirect(conn, cmd, bytes + root->start, root->length, now, &again))
		return false;
	if (again)
		resend(again, cmd, now);
	return true;
}

static void answer_core(struct hf__conn *conn, struct hf__cmd *cmd, const char *bytes, int64_t now)
{
	bool there[HF__RENEW_MAX];
	struct hf__answer answer;
	if (is_noscript(conn, cmd, bytes)) {
		hf__input_finish_cmd(conn, cmd);
		cmd->backend.whole_text = true;
		resend(conn, cmd, now);
	} else if (is_redirected(conn, cmd, bytes, now)) {
		return;
	} else if (hf__verbs_decode(conn, cmd, bytes, &answer, there)) {
		hf__input_finish_cmd(conn, cmd);
		conn->answered = true;
		conn->failures = 0;
		note_renewal(conn, cmd, &answer);
		bool demoted = is_demoted(conn, bytes, &answer);
		if (conn->redis->cluster)
			hf__cluster_note_answer(conn, cmd, &answer, now);
		hf__core_answer(conn->redis->core, cmd, &answer, now);
		if (demoted && conn->state == HF__CONN_UP)
			leave_demoted(conn, now);
	} else {
		/* The command may have been executed, and the next reply may be for any command. */
		hf__conn_drop(conn, HF_EPROTOCOL, "the reply does not fit the request", now);
	}
}

/*
 * SUNSUBSCRIBE is confirmed by a push that the server also sends unasked when the slot moves away,
 * and is refused afterwards. So a HELLO follows it, which needs no right, and which even a busy or
 * failing server does not refuse: once HELLO is answered, so is the command.
 */
static void pass_fence(struct hf__conn *conn, struct hf__cmd *cmd, int64_t now)
{
	enum hf__resp_type type = conn->resp.node[0].type;
	if (type == HF__RESP_MAP) {
		hf__input_finish_cmd(conn, cmd);
		hf__subs_confirm(conn, cmd, now);
	} else if (type == HF__RESP_ERROR && !cmd->backend.is_refused) {
		cmd->backend.is_refused = true; /* the SUNSUBSCRIBE */
	} else {
		/* From here on, no reply would be that of its request. */
		hf__conn_drop(conn, HF_EPROTOCOL, "the reply to HELLO does not fit the request",
		              now);
	}
}

/* In a cluster a refusal may say which node has the slot. */
static void refuse_subscription(struct hf__conn *conn, struct hf__cmd *cmd, const char *error,
                                size_t length, int64_t now)
{
	hf__input_finish_cmd(conn, cmd);
	bool is_late = hf__subs_refuse(conn, cmd, error, length, now);
	if (is_late && conn->redis->cluster)
		hf__cluster_note_refusal(conn, error, length, now);
}

static void on_reply(struct hf__conn *conn, struct hf__cmd *cmd, const char *bytes, int64_t now)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	if (cmd->verb < HF__REDIS_HELLO && cmd->backend.asks && !cmd->backend.has_asked) {
		cmd->backend.has_asked = true; /* whatever ASKING was answered */
	} else if (cmd->verb < HF__REDIS_HELLO) {
		answer_core(conn, cmd, bytes, now);
	} else if (cmd->verb == HF__REDIS_UNSUBSCRIBE && conn->redis->is_sharded) {
		pass_fence(conn, cmd, now);
	} else if (root->type == HF__RESP_ERROR) {
		refuse_subscription(conn, cmd, bytes + root->start, root->length, now);
	} else {
		hf__conn_drop(conn, HF_EPROTOCOL, "the reply to a subscription does not confirm it",
		              now);
	}
}

/* ---- messages ---- */

/* SUBSCRIBE and UNSUBSCRIBE are confirmed by a push, in order with the replies. */
static void handle_confirmation(struct hf__conn *conn, enum hf__redis_verb verb, int64_t now)
{
	struct hf__cmd *cmd = hf__input_first_cmd(conn);
	if (!cmd || cmd->verb != verb) {
		hf__conn_drop(conn, HF_EPROTOCOL,
		              "the server confirmed a subscription without a request", now);
		return;
	}
	hf__input_finish_cmd(conn, cmd);
	hf__subs_confirm(conn, cmd, now);
}

/* The number in a message; a message that is not a number wakes up all waiters. */
static int64_t number_in(const char *text, size_t length)
{
	char digits[24];
	char *end;
	if (length == 0 || length >= sizeof digits)
		return INT64_MAX;
	memcpy(digits, text, length);
	digits[length] = 0;
	long long number = strtoll(digits, &end, 10);
	return *end ? INT64_MAX : number;
}

static void handle_message(struct hf__conn *conn, const char *bytes, int64_t now)
{
	const struct hf__resp_node *channel = &conn->resp.node[2];
	const struct hf__resp_node *text = &conn->resp.node[3];
	if (conn->resp.nodes >= 4 && text->type == HF__RESP_STRING)
		hf__subs_on_message(conn, bytes + channel->start, channel->length,
		                    number_in(bytes + text->start, text->length), now);
}

static void on_push(struct hf__conn *conn, const char *bytes, int64_t now)
{
	const struct hf__resp *resp = &conn->resp;
	if (resp->nodes < 3 || resp->node[2].type != HF__RESP_STRING)
		return;
	if (hf__resp_text_is(resp, bytes, 1, "message") ||
	    hf__resp_text_is(resp, bytes, 1, "smessage"))
		handle_message(conn, bytes, now);
	else if (hf__resp_text_is(resp, bytes, 1, "subscribe") ||
	         hf__resp_text_is(resp, bytes, 1, "ssubscribe"))
		handle_confirmation(conn, HF__REDIS_SUBSCRIBE, now);
	else if (hf__resp_text_is(resp, bytes, 1, "sunsubscribe"))
		hf__subs_on_ended(conn, bytes + resp->node[2].start, resp->node[2].length, now);
	else if (hf__resp_text_is(resp, bytes, 1, "unsubscribe"))
		handle_confirmation(conn, HF__REDIS_UNSUBSCRIBE, now);
}

const struct hf__conn_user hf__master = {.on_up = on_up,
                                         .on_down = on_down,
                                         .on_failed = on_failed,
                                         .is_wanted = is_wanted,
                                         .on_reply = on_reply,
                                         .on_push = on_push};

/* ---- what the backend calls ---- */

int64_t hf__master_due(const struct hf__conn *conn)
{
	int64_t due = hf__conn_due(conn);
	int64_t sync = hf__sync_due(conn->sync);
	return sync < due ? sync : due;
}

void hf__master_turn(struct hf__conn *conn, int64_t now)
{
	hf__input_turn(conn, now);
	hf__subs_turn(conn, now);
	hf__sync_turn(conn->sync, now); /* after the grants of this turn */
}

bool hf__master_is_busy(const struct hf__conn *conn)
{
	return hf__conn_is_attempting(conn) || !hf__list_empty(&conn->waiting) ||
	       hf__sync_is_busy(conn->sync);
}

void hf__master_close(struct hf__conn *conn)
{
	hf__conn_close(conn);
	hf__sync_close(conn->sync);
}

void hf__master_done(struct hf__conn *conn)
{
	hf__sync_free(conn->sync);
	hf__conn_done(conn);
}
