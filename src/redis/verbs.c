/* Verbs to requests, and replies to answers. */
#include "redis/redis.h"
#include "redis/lua_scripts.h"
#include "redis/refusal.h"
#include "redis/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OWNER_SIZE 64

static const char released[] = "0"; /* the message: wake one waiter per process */

struct script {
	const char *text;
	size_t length;
	const char *sha;
};

#define SCRIPT(name)                                                                               \
	{                                                                                          \
		hf__lua_##name, sizeof hf__lua_##name - 1, hf__lua_##name##_sha                    \
	}

static const struct script scripts[] = {
	[HF__ASK] = SCRIPT(acquire), [HF__SETTLE] = SCRIPT(release), [HF__RENEW] = SCRIPT(renew),
	[HF__FORCE] = SCRIPT(force), [HF__LOOK] = SCRIPT(look),
};

static size_t owner_text(const struct hf__redis *redis, uint64_t wire, char ret_owner[OWNER_SIZE])
{
	return (size_t)snprintf(ret_owner, OWNER_SIZE, "%s:%" PRIu64, redis->core->config.uuid,
	                        wire);
}

/* EVALSHA, or EVAL with the text itself, and the number of keys. */
static void begin_script(struct hf__buffer *out, const struct hf__cmd *cmd, size_t keys,
                         size_t args)
{
	const struct script *script = &scripts[cmd->verb];
	hf__request_begin(out, 3 + keys + args);
	hf__request_text(out, cmd->whole_text ? "EVAL" : "EVALSHA");
	if (cmd->whole_text)
		hf__request_bytes(out, script->text, script->length);
	else
		hf__request_bytes(out, script->sha, 40);
	hf__request_number(out, (int64_t)keys);
}

static void add_name(struct hf__buffer *out, const struct hf__lock *lock)
{
	hf__request_bytes(out, hf__lock_name(lock), hf__lock_name_length(lock));
}

static void add_owner(struct hf__buffer *out, const struct hf__redis *redis, uint64_t wire)
{
	char owner[OWNER_SIZE];
	size_t length = owner_text(redis, wire, owner);
	hf__request_bytes(out, owner, length);
}

static void add_channel(struct hf__buffer *out, const struct hf__lock *lock)
{
	char channel[HF__KEYS_MAX];
	hf__request_bytes(out, channel,
	                  hf__keys_channel(channel, sizeof channel, hf__lock_name(lock)));
}

static void add_renewals(struct hf__buffer *out, const struct hf__redis *redis,
                         const struct hf__cmd *cmd)
{
	begin_script(out, cmd, cmd->items, 2u * cmd->items);
	for (uint16_t i = 0; i < cmd->items; i++)
		add_name(out, cmd->item[i].lock);
	for (uint16_t i = 0; i < cmd->items; i++) {
		hf__request_number(out, cmd->item[i].lease_ms);
		add_owner(out, redis, cmd->item[i].wire);
	}
}

static size_t room_for(const struct hf__cmd *cmd)
{
	size_t bytes = 64 + (cmd->whole_text ? scripts[cmd->verb].length : 0);
	if (cmd->verb != HF__RENEW)
		return hf__request_size(8, bytes + OWNER_SIZE + 2 * HF__KEYS_MAX);
	for (uint16_t i = 0; i < cmd->items; i++)
		bytes += hf__lock_name_length(cmd->item[i].lock) + OWNER_SIZE + 24;
	return hf__request_size(3 + 3u * cmd->items, bytes);
}

int hf__verbs_encode(struct hf__redis *redis, struct hf__cmd *cmd)
{
	struct hf__port *port = &redis->engine->port;
	struct hf__buffer *out = &port->out;
	if (hf__buffer_reserve(out, room_for(cmd)))
		return HF_ENOMEM;
	size_t before = out->length;
	switch (cmd->verb) {
	case HF__ASK:
		begin_script(out, cmd, 1, 3);
		add_name(out, cmd->lock);
		hf__request_number(out, cmd->lease_ms);
		add_owner(out, redis, cmd->wire);
		hf__request_number(out, cmd->count);
		break;
	case HF__SETTLE:
		begin_script(out, cmd, 2, 3);
		add_name(out, cmd->lock);
		add_channel(out, cmd->lock);
		add_owner(out, redis, cmd->wire);
		hf__request_number(out, cmd->count);
		hf__request_text(out, released);
		break;
	case HF__RENEW: add_renewals(out, redis, cmd); break;
	case HF__FORCE:
		begin_script(out, cmd, 2, 1);
		add_name(out, cmd->lock);
		add_channel(out, cmd->lock);
		hf__request_text(out, released);
		break;
	case HF__LOOK:
		begin_script(out, cmd, 1, 1);
		add_name(out, cmd->lock);
		add_owner(out, redis, cmd->wire);
		break;
	default: hf__request_begin(out, 1); hf__request_text(out, "PING");
	}
	uint64_t place = port->appended;
	port->appended += out->length - before;
	hf__redis_sent(redis, cmd, place);
	return 0;
}

/* ---- replies ---- */

static void set_text(struct hf__answer *answer, const char *text, size_t length)
{
	answer->text = text;
	answer->length = length;
}

static void fail(struct hf__answer *answer, int error, const char *text)
{
	answer->outcome = HF__FAILED;
	answer->error = error;
	set_text(answer, text, strlen(text));
}

/* {'gone', holder} or {'conflict', why}. */
static bool read_special(const struct hf__resp *resp, const char *bytes, struct hf__answer *answer)
{
	const struct hf__resp_node *text = &resp->node[2];
	if (resp->node[0].type != HF__RESP_ARRAY || resp->node[0].length != 2 ||
	    resp->node[1].type != HF__RESP_STRING || text->type != HF__RESP_STRING)
		return false;
	if (hf__resp_text_is(resp, bytes, 1, "gone")) {
		answer->outcome = HF__GONE;
	} else if (hf__resp_text_is(resp, bytes, 1, "conflict")) {
		answer->outcome = HF__FAILED;
		answer->error = HF_ECONFLICT;
	} else {
		return false;
	}
	set_text(answer, bytes + text->start, text->length);
	return true;
}

static bool read_renewals(const struct hf__resp *resp, const struct hf__cmd *cmd, bool *there,
                          struct hf__answer *answer)
{
	if (resp->node[0].type != HF__RESP_ARRAY || resp->node[0].length != cmd->items ||
	    resp->nodes != cmd->items + 1u)
		return false;
	for (uint16_t i = 0; i < cmd->items; i++) {
		if (resp->node[i + 1].type != HF__RESP_INTEGER)
			return false;
		there[i] = resp->node[i + 1].integer == 1;
	}
	answer->there = there;
	return true;
}

static bool read_look(const struct hf__resp *resp, const char *bytes, struct hf__answer *answer)
{
	const struct hf__resp_node *node = resp->node;
	if (node[0].type != HF__RESP_ARRAY || node[0].length != 3 ||
	    node[1].type != HF__RESP_INTEGER || node[2].type != HF__RESP_INTEGER ||
	    node[3].type != HF__RESP_STRING)
		return false;
	answer->ttl_ms = node[1].integer;
	answer->count = node[2].integer;
	set_text(answer, bytes + node[3].start, node[3].length);
	return true;
}

static bool read_verb(const struct hf__resp *resp, const struct hf__cmd *cmd, const char *bytes,
                      struct hf__answer *answer, bool *there)
{
	const struct hf__resp_node *root = &resp->node[0];
	answer->outcome = HF__DONE;
	if (read_special(resp, bytes, answer))
		return true;
	switch (cmd->verb) {
	case HF__ASK:
		answer->outcome = root->type == HF__RESP_NULL ? HF__GRANTED : HF__BUSY;
		answer->ttl_ms = root->integer;
		return root->type == HF__RESP_NULL || root->type == HF__RESP_INTEGER;
	case HF__SETTLE:
	case HF__FORCE: answer->count = root->integer; return root->type == HF__RESP_INTEGER;
	case HF__RENEW: return read_renewals(resp, cmd, there, answer);
	case HF__LOOK: return read_look(resp, bytes, answer);
	default: return hf__resp_text_is(resp, bytes, 0, "PONG");
	}
}

void hf__verbs_decode(const struct hf__redis *redis, const struct hf__cmd *cmd, const char *bytes,
                      struct hf__answer *ret_answer, bool *there)
{
	const struct hf__resp *resp = &redis->resp;
	const struct hf__resp_node *root = &resp->node[0];
	*ret_answer = (struct hf__answer){.text = ""};
	if (root->type == HF__RESP_ERROR) {
		ret_answer->outcome =
			hf__refusal_read(bytes + root->start, root->length, &ret_answer->error);
		set_text(ret_answer, bytes + root->start, root->length);
	} else if (!read_verb(resp, cmd, bytes, ret_answer, there)) {
		fail(ret_answer, HF_EPROTOCOL, "the server answered something else than was asked");
	}
}
