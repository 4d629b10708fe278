/* The Redis backend as the core and the engine see it: takes commands, and handles all input. */
#include "redis/redis.h"
#include "redis/redis_kinds.h"
#include "redis/refusal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Holds of one group are renewed by one script. */
static uint32_t renewal_bit(const struct hf__cmd *cmd)
{
	return UINT32_C(1) << hf__lock_traits(hf__backend_item(cmd, 0).lock)->renew_group;
}

/*
 * The watchdog's first renewal on a connection carries its script, so that it takes one round trip
 * whatever is in the server's script cache.
 */
static int submit(void *backend, struct hf__cmd *cmd)
{
	struct hf__redis *redis = backend;
	bool is_watchdogs = cmd->verb == HF__RENEW && cmd->item;
	if (is_watchdogs && !(redis->renewals & renewal_bit(cmd))) {
		cmd->backend.whole_text = true;
		if (!hf__verbs_encode(redis, cmd))
			return 0;
		cmd->backend.whole_text = false; /* the hash may still fit */
	}
	return hf__verbs_encode(redis, cmd);
}

static int watch(void *backend, struct hf__watch *watched)
{
	return hf__subs_watch(backend, watched);
}

static void unwatch(void *backend, struct hf__watch *watched)
{
	hf__subs_unwatch(backend, watched);
}

static void want_link(void *backend)
{
	hf__conn_want(backend, hf__clock_ms());
}

static void init_cmd(struct hf__cmd *cmd, enum hf__redis_verb verb)
{
	cmd->verb = (uint8_t)verb;
	hf__list_init(&cmd->link);
}

static void init(struct hf__redis *redis, struct hf__core *core, struct hf__engine *engine,
                 const struct hf__redis_settings *config)
{
	redis->core = core;
	redis->engine = engine;
	redis->config = config;
	redis->random.state = hf__core_random(core);
	redis->answer_by = HF__NEVER;
	redis->subscribe_at = HF__NEVER;
	redis->embedded.dir_fd = -1;
	hf__list_init(&redis->waiting);
	hf__table_init(&redis->subs, (uint32_t)hf__random_next(&redis->random));
	hf__resp_init(&redis->resp);
	init_cmd(&redis->hello, HF__REDIS_HELLO);
	init_cmd(&redis->info, HF__REDIS_INFO);
	init_cmd(&redis->select, HF__REDIS_SELECT);
	init_cmd(&redis->kill, HF__REDIS_KILL);
}

static void write_identity(void *backend, const struct hf__lock *lock, uint64_t wire,
                           char *ret_text, size_t size)
{
	const struct hf__redis *redis = backend;
	(void)lock;
	snprintf(ret_text, size, "%s:%" PRIu64, hf__core_settings(redis->core)->uuid, wire);
}

static void close_link(void *backend)
{
	struct hf__redis *redis = backend;
	hf__engine_lock(redis->engine);
	redis->state = HF__CONN_IDLE;
	hf__port_close(&redis->engine->port, false);
	hf__engine_unlock(redis->engine);
}

static void close_forked(void *backend)
{
	struct hf__redis *redis = backend;
	if (redis->embedded.dir_fd >= 0)
		close(redis->embedded.dir_fd);
	redis->embedded.dir_fd = -1;
}

static void free_redis(void *backend)
{
	struct hf__redis *redis = backend;
	hf__resolve_drop(redis);
	hf__subs_done(redis);
	hf__tls_free(redis->tls);
	hf__embedded_done(&redis->embedded);
	free(redis);
}

static int64_t next_due(void *backend)
{
	const struct hf__redis *redis = backend;
	int64_t due = hf__conn_due(redis);
	if (redis->answer_by < due)
		due = redis->answer_by;
	if (redis->state == HF__CONN_UP && redis->subscribe_at < due)
		due = redis->subscribe_at;
	return due;
}

static bool is_busy(void *backend)
{
	const struct hf__redis *redis = backend;
	return hf__conn_is_attempting(redis) || !hf__list_empty(&redis->waiting);
}

static const struct hf__list *list_waiting(void *backend)
{
	return &((const struct hf__redis *)backend)->waiting;
}

char *hf__redis_room(struct hf__redis *redis, size_t bytes)
{
	struct hf__buffer *out = &redis->engine->port.out;
	assert(bytes > 0);
	return hf__buffer_reserve(out, bytes) ? NULL : out->data + out->length;
}

void hf__redis_commit(struct hf__redis *redis, struct hf__cmd *cmd, const char *end)
{
	struct hf__port *port = &redis->engine->port;
	size_t length = (size_t)(end - port->out.data);
	assert(length > port->out.length && length <= port->out.capacity);
	cmd->backend.offset = port->appended;
	port->appended += length - port->out.length;
	port->out.length = length;
	port->unwritten++;
	port->unanswered++;
	hf__list_add(&redis->waiting, &cmd->link);
	if (redis->state == HF__CONN_UP && cmd->answer_by < redis->answer_by)
		redis->answer_by = cmd->answer_by;
}

/* ---- input ---- */

/* The command that the next reply is for, or NULL. */
static struct hf__cmd *first_waiting(const struct hf__redis *redis)
{
	return hf__list_empty(&redis->waiting)
	               ? NULL
	               : hf__list_item(redis->waiting.next, struct hf__cmd, link);
}

static void stop_waiting(struct hf__redis *redis, struct hf__cmd *cmd)
{
	hf__list_remove(&cmd->link);
	redis->engine->port.unanswered--;
}

static bool is_noscript(const struct hf__redis *redis, const struct hf__cmd *cmd, const char *bytes)
{
	const struct hf__resp_node *root = &redis->resp.node[0];
	return root->type == HF__RESP_ERROR && cmd->verb != HF__PING && !cmd->backend.whole_text &&
	       hf__refusal_is_noscript(bytes + root->start, root->length);
}

/*
 * Sends the script again, now with its text. It was not executed, and the server has answered, so
 * the second request has as much time as the first one had.
 */
static void resend(struct hf__redis *redis, struct hf__cmd *cmd, int64_t now)
{
	struct hf__answer no_room = {
		.outcome = HF__UNSENT, .error = HF_ENOMEM, .text = "no memory for a command"};
	int64_t limit_ms = cmd->answer_by - cmd->sent_at;
	no_room.length = strlen(no_room.text);
	cmd->sent_at = now;
	cmd->answer_by = hf__clock_after(now, limit_ms);
	cmd->backend.whole_text = true;
	if (hf__verbs_encode(redis, cmd))
		hf__core_answer(redis->core, cmd, &no_room, now);
}

/* The server has the script now, or the user may not send it: from now on the hash is sent. */
static void note_renewal(struct hf__redis *redis, const struct hf__cmd *cmd,
                         const struct hf__answer *answer)
{
	if (cmd->verb == HF__RENEW && answer->outcome != HF__NOT_NOW)
		redis->renewals |= renewal_bit(cmd);
}

static void answer_core(struct hf__redis *redis, struct hf__cmd *cmd, const char *bytes,
                        int64_t now)
{
	bool there[HF__RENEW_MAX];
	struct hf__answer answer;
	if (is_noscript(redis, cmd, bytes)) {
		stop_waiting(redis, cmd);
		resend(redis, cmd, now);
	} else if (hf__verbs_decode(redis, cmd, bytes, &answer, there)) {
		stop_waiting(redis, cmd);
		redis->answered = true;
		redis->failures = 0;
		note_renewal(redis, cmd, &answer);
		hf__core_answer(redis->core, cmd, &answer, now);
	} else {
		/* The command may have been executed, and the next reply may be for any command. */
		hf__conn_drop(redis, HF_EPROTOCOL, "the reply does not fit the request", now);
	}
}

static void handle_reply(struct hf__redis *redis, const char *bytes, int64_t now)
{
	const struct hf__resp_node *root = &redis->resp.node[0];
	struct hf__cmd *cmd = first_waiting(redis);
	if (!cmd) {
		hf__conn_drop(redis, HF_EPROTOCOL, "the server sent a reply without a request",
		              now);
	} else if (cmd->verb < HF__REDIS_HELLO) {
		answer_core(redis, cmd, bytes, now);
	} else if (cmd->verb < HF__REDIS_SUBSCRIBE) {
		stop_waiting(redis, cmd);
		hf__greet_handle_reply(redis, cmd, now);
	} else if (root->type == HF__RESP_ERROR) {
		stop_waiting(redis, cmd);
		hf__subs_handle_reply(redis, cmd, bytes + root->start, root->length, now);
	} else {
		hf__conn_drop(redis, HF_EPROTOCOL,
		              "the reply to a subscription does not confirm it", now);
	}
}

/* SUBSCRIBE and UNSUBSCRIBE are confirmed by a push, in order with the replies. */
static void handle_confirmation(struct hf__redis *redis, enum hf__redis_verb verb, int64_t now)
{
	struct hf__cmd *cmd = first_waiting(redis);
	if (!cmd || cmd->verb != verb) {
		hf__conn_drop(redis, HF_EPROTOCOL,
		              "the server confirmed a subscription without a request", now);
		return;
	}
	stop_waiting(redis, cmd);
	hf__subs_handle_reply(redis, cmd, NULL, 0, now);
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

static void handle_message(struct hf__redis *redis, const char *bytes, int64_t now)
{
	const struct hf__resp_node *channel = &redis->resp.node[2];
	const struct hf__resp_node *text = &redis->resp.node[3];
	if (redis->resp.nodes >= 4 && text->type == HF__RESP_STRING)
		hf__subs_message(redis, bytes + channel->start, channel->length,
		                 number_in(bytes + text->start, text->length), now);
}

static void handle_push(struct hf__redis *redis, const char *bytes, int64_t now)
{
	const struct hf__resp *resp = &redis->resp;
	if (resp->nodes < 3 || resp->node[2].type != HF__RESP_STRING)
		return;
	if (hf__resp_text_is(resp, bytes, 1, "message"))
		handle_message(redis, bytes, now);
	else if (hf__resp_text_is(resp, bytes, 1, "subscribe"))
		handle_confirmation(redis, HF__REDIS_SUBSCRIBE, now);
	else if (hf__resp_text_is(resp, bytes, 1, "unsubscribe"))
		handle_confirmation(redis, HF__REDIS_UNSUBSCRIBE, now);
}

/* Handles every complete reply in the input, unless the connection is given up before. */
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
			snprintf(redis->why, sizeof redis->why, "not a valid reply: %s",
			         redis->resp.why);
			hf__conn_drop(redis, HF_EPROTOCOL, redis->why, now);
			return;
		}
		if (redis->resp.node[0].type == HF__RESP_PUSH)
			handle_push(redis, bytes, now);
		else
			handle_reply(redis, bytes, now);
		if (in->length == 0)
			return; /* the connection was given up */
		redis->consumed += redis->resp.size;
		hf__resp_init(&redis->resp);
	}
	hf__buffer_drop(in, redis->consumed);
}

/* ---- time ---- */

/* The first command whose answer is overdue, or NULL; sets when to check next. */
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
	/* The answer may be in the input that was not read yet. */
	if (redis->state != HF__CONN_UP || now < redis->answer_by || redis->engine->port.has_more)
		return;
	const struct hf__cmd *cmd = find_overdue(redis, now);
	if (!cmd)
		return;
	snprintf(redis->why, sizeof redis->why,
	         "no answer in %" PRId64 " ms, so the connection was given up", now - cmd->sent_at);
	hf__conn_drop(redis, HF_EUNREACHABLE, redis->why, now);
}

static void check_errors(struct hf__redis *redis, int64_t now)
{
	const struct hf__port *port = &redis->engine->port;
	int error = port->recv_error ? port->recv_error : port->send_error;
	if (port->fd < 0 || !error)
		return;
	if (error == EPROTO && redis->tls)
		hf__tls_reason(redis->tls, redis->why, sizeof redis->why);
	else
		snprintf(redis->why, sizeof redis->why, "%s",
		         error == ECONNRESET ? "the server closed the connection"
		                             : strerror(error));
	hf__conn_drop(redis, error == EPROTO ? HF_ETLS : HF_EUNREACHABLE, redis->why, now);
}

static void turn(void *backend, int64_t now)
{
	struct hf__redis *redis = backend;
	if (redis->state >= HF__CONN_GREETING)
		read_input(redis, now);
	check_errors(redis, now);
	check_overdue(redis, now);
	if (redis->state == HF__CONN_UP && now >= redis->subscribe_at) {
		redis->subscribe_at = HF__NEVER;
		hf__subs_renew(redis);
	}
	hf__conn_step(redis, now);
}

static const struct hf__backend_ops ops = {
	.submit = submit,
	.watch = watch,
	.unwatch = unwatch,
	.want_link = want_link,
	.traits = hf__redis_kinds_traits,
	.identity = write_identity,
	.due = next_due,
	.turn = turn,
	.busy = is_busy,
	.waiting = list_waiting,
	.close = close_link,
	.forked = close_forked,
	.free = free_redis,
};

int hf__redis_new(struct hf__core *core, struct hf__engine *engine,
                  const struct hf__redis_settings *config, char *why, size_t size)
{
	assert(core && engine && config && why);
	struct hf__redis *redis = calloc(1, sizeof(*redis));
	if (!redis)
		return HF_ENOMEM;
	init(redis, core, engine, config);
	int rc = 0;
	if (config->embedded)
		rc = hf__embedded_start(&redis->embedded, config->connect_timeout_ms, why, size);
	else if (config->tls)
		rc = hf__tls_new(config, &redis->tls, why, size);
	if (!rc)
		rc = hf__conn_init(redis, why, size);
	if (rc) {
		free_redis(redis);
		return rc;
	}
	hf__core_set_backend(core, &ops, redis);
	return 0;
}
