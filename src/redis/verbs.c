/* Verbs to requests, and replies to answers. */
#include "redis/redis.h"
#include "redis/lua_scripts.h"
#include "redis/refusal.h"
#include "redis/request.h"

#include <string.h>

#define OWNER_SIZE 64 /* at most */

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

/* EVALSHA, or EVAL with the text itself, and the number of keys. */
static char *put_script(char *at, const struct hf__cmd *cmd, size_t keys, size_t args)
{
	const struct script *script = &scripts[cmd->verb];
	at = hf__request_begin(at, 3 + keys + args);
	if (cmd->whole_text) {
		at = hf__request_text(at, "EVAL");
		at = hf__request_bytes(at, script->text, script->length);
	} else {
		at = hf__request_text(at, "EVALSHA");
		at = hf__request_bytes(at, script->sha, 40);
	}
	return hf__request_number(at, (int64_t)keys);
}

static char *put_name(char *at, const struct hf__lock *lock)
{
	return hf__request_bytes(at, hf__lock_name(lock), hf__lock_name_length(lock));
}

static char *put_channel(char *at, const struct hf__lock *lock)
{
	char channel[HF__KEYS_MAX];
	size_t length = hf__keys_channel(channel, sizeof channel, hf__lock_name(lock));
	return hf__request_bytes(at, channel, length);
}

static char *put_renewals(char *at, const struct hf__cmd *cmd, const char *uuid)
{
	at = put_script(at, cmd, cmd->items, 2u * cmd->items);
	for (uint16_t i = 0; i < cmd->items; i++)
		at = put_name(at, hf__backend_item(cmd, i).lock);
	for (uint16_t i = 0; i < cmd->items; i++) {
		struct hf__renew_item item = hf__backend_item(cmd, i);
		at = hf__request_number(at, item.lease_ms);
		at = hf__request_owner(at, uuid, item.wire);
	}
	return at;
}

static char *put_verb(char *at, const struct hf__cmd *cmd, const char *uuid)
{
	switch (cmd->verb) {
	case HF__ASK:
		at = put_script(at, cmd, 1, 3);
		at = put_name(at, cmd->lock);
		at = hf__request_number(at, cmd->lease_ms);
		at = hf__request_owner(at, uuid, cmd->wire);
		return hf__request_number(at, cmd->count);
	case HF__SETTLE:
		at = put_script(at, cmd, 2, 3);
		at = put_name(at, cmd->lock);
		at = put_channel(at, cmd->lock);
		at = hf__request_owner(at, uuid, cmd->wire);
		at = hf__request_number(at, cmd->count);
		return hf__request_text(at, released);
	case HF__RENEW: return put_renewals(at, cmd, uuid);
	case HF__FORCE:
		at = put_script(at, cmd, 2, 1);
		at = put_name(at, cmd->lock);
		at = put_channel(at, cmd->lock);
		return hf__request_text(at, released);
	case HF__LOOK:
		at = put_script(at, cmd, 1, 1);
		at = put_name(at, cmd->lock);
		return hf__request_owner(at, uuid, cmd->wire);
	default: at = hf__request_begin(at, 1); return hf__request_text(at, "PING");
	}
}

static size_t room_for(const struct hf__cmd *cmd)
{
	size_t bytes = 64 + (cmd->whole_text ? scripts[cmd->verb].length : 0);
	if (cmd->verb != HF__RENEW)
		return hf__request_size(8, bytes + OWNER_SIZE + 2 * HF__KEYS_MAX);
	for (uint16_t i = 0; i < cmd->items; i++)
		bytes += hf__lock_name_length(hf__backend_item(cmd, i).lock) + OWNER_SIZE + 24;
	return hf__request_size(3 + 3u * cmd->items, bytes);
}

int hf__verbs_encode(struct hf__redis *redis, struct hf__cmd *cmd)
{
	char *at = hf__redis_room(redis, room_for(cmd));
	if (!at)
		return HF_ENOMEM;
	hf__redis_sent(redis, cmd, put_verb(at, cmd, redis->core->config.uuid));
	return 0;
}

/* ---- replies ---- */

static void set_text(struct hf__answer *answer, const char *text, size_t length)
{
	answer->text = text;
	answer->length = length;
}

/* {'gone', holder} or {'conflict', why}, where the verb's script can answer that. */
static bool read_special(const struct hf__resp *resp, const struct hf__cmd *cmd, const char *bytes,
                         struct hf__answer *answer)
{
	const struct hf__resp_node *text = &resp->node[2];
	bool may_be_gone = (cmd->verb == HF__ASK && cmd->count > 1) || cmd->verb == HF__SETTLE;
	bool may_conflict = cmd->verb == HF__ASK || cmd->verb == HF__FORCE || cmd->verb == HF__LOOK;
	if (resp->node[0].type != HF__RESP_ARRAY || resp->node[0].length != 2 ||
	    resp->node[1].type != HF__RESP_STRING || text->type != HF__RESP_STRING)
		return false;
	if (may_be_gone && hf__resp_text_is(resp, bytes, 1, "gone")) {
		answer->outcome = HF__GONE;
	} else if (may_conflict && hf__resp_text_is(resp, bytes, 1, "conflict")) {
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
	if (read_special(resp, cmd, bytes, answer))
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

bool hf__verbs_decode(const struct hf__redis *redis, const struct hf__cmd *cmd, const char *bytes,
                      struct hf__answer *ret_answer, bool *there)
{
	const struct hf__resp *resp = &redis->resp;
	const struct hf__resp_node *root = &resp->node[0];
	*ret_answer = (struct hf__answer){.text = ""};
	if (root->type != HF__RESP_ERROR)
		return read_verb(resp, cmd, bytes, ret_answer, there);
	ret_answer->outcome =
		hf__refusal_read(bytes + root->start, root->length, &ret_answer->error);
	set_text(ret_answer, bytes + root->start, root->length);
	return true;
}
