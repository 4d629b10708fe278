/* The Redis backend as core and engine see it: commands go in, replies and messages come out. */
#include "redis/redis.h"
#include "redis/refusal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int submit(void *backend, struct hf__cmd *cmd)
{
	return hf__verbs_encode(backend, cmd);
}

static int watch(void *backend, struct hf__lock *lock)
{
	return hf__subs_watch(backend, lock);
}

static void unwatch(void *backend, struct hf__lock *lock)
{
	hf__subs_unwatch(backend, lock);
}

static void want_link(void *backend)
{
	hf__conn_want(backend, hf__clock_ms());
}

const struct hf__backend_ops hf__redis_ops = {
	.submit = submit,
	.watch = watch,
	.unwatch = unwatch,
	.want_link = want_link,
};

static void init_own(struct hf__cmd *cmd, enum hf__redis_verb verb)
{
	cmd->verb = (uint8_t)verb;
	hf__list_init(&cmd->link);
}

int hf__redis_init(struct hf__redis *redis, struct hf__core *core, struct hf__engine *engine,
                   struct hf__config *config, uint64_t seed, char *why, size_t size)
{
	memset(redis, 0, sizeof(*redis));
	redis->core = core;
	redis->engine = engine;
	redis->config = config;
	redis->random.state = seed;
	redis->answer_by = HF__NEVER;
	redis->embedded.dir_fd = -1;
	hf__list_init(&redis->waiting);
	hf__table_init(&redis->subs, (uint32_t)hf__random_next(&redis->random));
	hf__resp_init(&redis->resp);
	init_own(&redis->hello, HF__REDIS_HELLO);
	init_own(&redis->select, HF__REDIS_SELECT);
	init_own(&redis->kill, HF__REDIS_KILL);
	if (config->embedded)
		return hf__embedded_start(&redis->embedded, config->connect_timeout_ms, why, size);
	return config->tls ? hf__tls_new(config, &redis->tls, why, size) : 0;
}

void hf__redis_close(struct hf__redis *redis)
{
	redis->state = HF__CONN_IDLE;
	hf__port_close(&redis->engine->port, false);
}

void hf__redis_done(struct hf__redis *redis)
{
	hf__resolve_drop(redis->resolve);
	hf__subs_done(redis);
	hf__tls_free(redis->tls);
	hf__embedded_done(&redis->embedded);
}

int64_t hf__redis_due(const struct hf__redis *redis)
{
	int64_t due = redis->answer_by;
	if (redis->state == HF__CONN_WAITING && redis->retry_at < due)
		due = redis->retry_at;
	bool attempt = redis->state >= HF__CONN_RESOLVING && redis->state < HF__CONN_UP;
	if (attempt && redis->attempt_by < due)
		due = redis->attempt_by;
	return due;
}

bool hf__redis_busy(const struct hf__redis *redis)
{
	bool attempt = redis->state >= HF__CONN_RESOLVING && redis->state < HF__CONN_UP;
	return attempt || !hf__list_empty(&redis->waiting);
}

void hf__redis_sent(struct hf__redis *redis, struct hf__cmd *cmd, uint64_t place)
{
	struct hf__port *port = &redis->engine->port;
	cmd->place = place;
	hf__list_add(&redis->waiting, &cmd->link);
	port->unwritten++;
	port->unanswered++;
	if (redis->state == HF__CONN_UP && cmd->answer_by < redis->answer_by)
		redis->answer_by = cmd->answer_by;
}

/* ---- input ---- */

static struct hf__cmd *take_first(struct hf__redis *redis)
{
	if (hf__list_empty(&redis->waiting))
		return NULL;
	struct hf__cmd *cmd = hf__list_item(redis->waiting.next, struct hf__cmd, link);
	hf__list_remove(&cmd->link);
	redis->engine->port.unanswered--;
	if (hf__list_empty(&redis->waiting))
		redis->answer_by = HF__NEVER;
	return cmd;
}

/* The script is sent once more, now with its text; it was not executed. */
static bool resend(struct hf__redis *redis, struct hf__cmd *cmd, const char *bytes)
{
	const struct hf__resp_node *root = &redis->resp.node[0];
	if (root->type != HF__RESP_ERROR || cmd->whole_text ||
	    !hf__refusal_is_noscript(bytes + root->start, root->length))
		return false;
	cmd->whole_text = true;
	return hf__verbs_encode(redis, cmd) == 0;
}

static void reply(struct hf__redis *redis, const char *bytes, int64_t now)
{
	const struct hf__resp_node *root = &redis->resp.node[0];
	bool there[HF__RENEW_MAX];
	struct hf__answer answer;
	struct hf__cmd *cmd = take_first(redis);
	if (!cmd) {
		hf__conn_drop(redis, HF_EPROTOCOL, "an answer came that nobody asked for", now);
	} else if (cmd->verb == HF__REDIS_SUBSCRIBE || cmd->verb == HF__REDIS_UNSUBSCRIBE) {
		if (root->type == HF__RESP_ERROR)
			hf__subs_answered(redis, cmd, bytes + root->start, root->length, now);
		else
			hf__conn_drop(redis, HF_EPROTOCOL, "a subscription was not confirmed", now);
	} else if (cmd->verb >= HF__REDIS_HELLO) {
		hf__conn_answered(redis, cmd, now);
	} else if (!resend(redis, cmd, bytes)) {
		hf__verbs_decode(redis, cmd, bytes, &answer, there);
		cmd->in_flight = false;
		cmd->answered(redis->core, cmd, &answer, now);
	}
}

/* A subscription or its end is confirmed, in order with the replies. */
static void confirmed(struct hf__redis *redis, enum hf__redis_verb verb, int64_t now)
{
	struct hf__cmd *cmd = take_first(redis);
	if (cmd && cmd->verb == verb)
		hf__subs_answered(redis, cmd, NULL, 0, now);
	else
		hf__conn_drop(redis, HF_EPROTOCOL, "a confirmation came out of order", now);
}

static void pushed(struct hf__redis *redis, const char *bytes, int64_t now)
{
	const struct hf__resp *resp = &redis->resp;
	if (resp->nodes < 3 || resp->node[2].type != HF__RESP_STRING)
		return;
	if (hf__resp_text_is(resp, bytes, 1, "message"))
		hf__subs_message(redis, bytes + resp->node[2].start, resp->node[2].length, now);
	else if (hf__resp_text_is(resp, bytes, 1, "subscribe"))
		confirmed(redis, HF__REDIS_SUBSCRIBE, now);
	else if (hf__resp_text_is(resp, bytes, 1, "unsubscribe"))
		confirmed(redis, HF__REDIS_UNSUBSCRIBE, now);
}

/* Everything complete in the input, until there is no more or the connection is given up. */
static void read_input(struct hf__redis *redis, int64_t now)
{
	struct hf__buffer *in = &redis->engine->port.in;
	redis->consumed = 0;
	while (redis->consumed < in->length) {
		const char *bytes = in->data + redis->consumed;
		int rc = hf__resp_feed(&redis->resp, bytes, in->length - redis->consumed);
		if (rc == 0)
			break;
		if (rc < 0) {
			snprintf(redis->why, sizeof redis->why, "not a valid answer: %s",
			         redis->resp.why);
			hf__conn_drop(redis, HF_EPROTOCOL, redis->why, now);
			return;
		}
		if (redis->resp.node[0].type == HF__RESP_PUSH)
			pushed(redis, bytes, now);
		else
			reply(redis, bytes, now);
		if (in->length == 0)
			return; /* given up meanwhile */
		redis->consumed += redis->resp.size;
		hf__resp_init(&redis->resp);
	}
	hf__buffer_drop(in, redis->consumed);
}

/* ---- time ---- */

/* The first command that is overdue, or NULL; finds out when to look next. */
static const struct hf__cmd *find_overdue(struct hf__redis *redis, int64_t now)
{
	const struct hf__list *link;
	redis->answer_by = HF__NEVER;
	hf__list_each (link, &redis->waiting) {
		const struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->answer_by <= now)
			return cmd;
		if (cmd->answer_by < redis->answer_by)
			redis->answer_by = cmd->answer_by;
	}
	return NULL;
}

static void check_overdue(struct hf__redis *redis, int64_t now)
{
	if (redis->state != HF__CONN_UP || now < redis->answer_by)
		return;
	const struct hf__cmd *cmd = find_overdue(redis, now);
	if (!cmd)
		return;
	snprintf(redis->why, sizeof redis->why,
	         "no answer in %" PRId64 " ms, the connection is given up", now - cmd->sent_at);
	hf__conn_drop(redis, HF_EUNREACHABLE, redis->why, now);
}

static void check_trouble(struct hf__redis *redis, int64_t now)
{
	const struct hf__port *port = &redis->engine->port;
	int trouble = port->in_trouble ? port->in_trouble : port->trouble;
	if (port->fd < 0 || !trouble)
		return;
	if (trouble == EPROTO && redis->tls)
		hf__tls_reason(redis->tls, redis->why, sizeof redis->why);
	else
		snprintf(redis->why, sizeof redis->why, "%s",
		         trouble == ECONNRESET ? "the server closed the connection"
		                               : strerror(trouble));
	hf__conn_drop(redis, trouble == EPROTO ? HF_ETLS : HF_EUNREACHABLE, redis->why, now);
}

void hf__redis_turn(struct hf__redis *redis, int64_t now)
{
	if (redis->state >= HF__CONN_GREETING)
		read_input(redis, now);
	check_trouble(redis, now);
	check_overdue(redis, now);
	hf__conn_step(redis, now);
}
