/* Verbs to requests, and replies to answers. */
#include "redis/keys.h"
#include "redis/recipe.h"
#include "redis/redis.h"
#include "redis/refusal.h"
#include "redis/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* At least as long as a wire owner with its suffix, and as any number or word. */
#define OWNER_SIZE 64
/* Longer than the key of any history, with its NUL. */
#define STREAM_SIZE (HF__KEYS_MAX + sizeof "holdfast_history")

/* ---- requests ---- */

/* One command, and the hold that the next keys and arguments are about: a renewal has several. */
struct maker {
	const struct hf__core *core;
	const struct hf__redis *redis;
	const char *publish;
	const struct hf__cmd *cmd;
	struct hf__renew_item item;
};

/* Which script a request runs, and the arguments of the history if it is the one that keeps it. */
struct choice {
	const struct hf__recipe *recipe;
	const struct hf__script *script;
	bool has_entry;
	struct hf__entry entry;
};

/* Inline, because every command passes here, and on its own the compiler would call it. */
static inline struct hf__renew_item item_of(const struct hf__cmd *cmd, uint16_t i)
{
	struct hf__renew_item own = {
		.lock = cmd->lock, .wire = cmd->wire, .lease_ms = cmd->lease_ms};
	return cmd->verb == HF__RENEW ? hf__backend_item(cmd, i) : own;
}

/*
 * While a slot is open, the note about the holder may still be at the node that the slot is moved
 * from. An ask that may find the hold there already does not write the note again at this one: the
 * two could not be brought together, and the slot would stay open.
 */
static bool may_write_again(const struct hf__cmd *cmd)
{
	if (cmd->verb != HF__ASK || !cmd->backend.asks)
		return true;
	bool is_nested = cmd->count > 1 && hf__lock_traits(cmd->lock)->nesting != HF__NEST_APART;
	return !cmd->again && !is_nested;
}

static bool has_description(const struct maker *maker)
{
	return hf__core_settings(maker->core)->description[0] != 0 && may_write_again(maker->cmd);
}

static bool has_waited(const struct maker *maker)
{
	return maker->cmd->waited_ms > 0 && may_write_again(maker->cmd);
}

/* The same is true of the set of those that wait, which the scripts do not write after 0 ms. */
static int64_t waited_to_note(const struct hf__cmd *cmd)
{
	return cmd->backend.asks ? 0 : cmd->waited_ms;
}

static size_t values_of(const struct maker *maker)
{
	size_t n;
	(void)hf__lock_values(maker->item.lock, &n);
	return n;
}

/* A renewal names one permit; an ask names all that it asks for, and so does what undoes it. */
static size_t permits_of(const struct hf__cmd *cmd)
{
	return cmd->verb == HF__RENEW ? 1 : cmd->items;
}

/* ---- keys ---- */

/* A reader of the history needs a key only on a cluster, whose nodes redirect a request by it. */
static bool has_key(enum hf__keys_name key, const struct maker *maker)
{
	int verb = maker->cmd->verb;
	if (verb == HF__HISTORY || verb == HF__HISTORY_HELD || verb == HF__HISTORY_CLEAR)
		return maker->redis->cluster && maker->cmd->lock;
	return key != KEY_TOKEN || maker->cmd->token || maker->cmd->verb == HF__TOKEN;
}

static char *put_key(char *at, enum hf__keys_name which, const struct maker *maker)
{
	const struct hf__lock *lock = maker->item.lock;
	char key[HF__KEYS_MAX];
	if (which == KEY_NAME)
		return hf__request_bytes(at, hf__lock_name(lock), hf__lock_name_length(lock));
	uint64_t number = which == KEY_RECORD ? maker->cmd->record : maker->item.wire;
	size_t length = hf__keys_make(key, which, hf__lock_name(lock),
	                              hf__core_settings(maker->core)->uuid, number);
	return hf__request_bytes(at, key, length);
}

static char *put_keys(char *at, const struct hf__recipe *recipe, const struct maker *maker)
{
	for (const enum hf__keys_name *key = recipe->keys; *key != KEY_END; key++)
		if (has_key(*key, maker))
			at = put_key(at, *key, maker);
	return at;
}

/* ---- arguments ---- */

static size_t count_arg(enum hf__recipe_arg arg, const struct maker *maker)
{
	switch (arg) {
	case ARG_DESCRIPTION: return has_description(maker) ? 2 : 0;
	case ARG_DESCRIPTION_OR_EMPTY: return 2;
	case ARG_DESCRIPTIONS: return has_description(maker);
	case ARG_WAITED: return has_waited(maker);
	case ARG_VALUES: return values_of(maker);
	case ARG_PERMITS: return permits_of(maker->cmd);
	case ARG_GIVEN_PERMITS:
	case ARG_TEXTS: return maker->cmd->items;
	default: return 1;
	}
}

/* Whether the argument contains the lock's name, as a key does. */
static bool is_named(enum hf__recipe_arg arg)
{
	switch (arg) {
	case ARG_CHANNEL:
	case ARG_RW_CHANNEL:
	case ARG_PERMITS_CHANNEL:
	case ARG_LATCH_CHANNEL:
	case ARG_RECORD:
	case ARG_READ_HOLDS:
	case ARG_DESCRIPTIONS:
	case ARG_DESCRIPTIONS_OR_EMPTY: return true;
	default: return false;
	}
}

static char *put_owner(char *at, const struct maker *maker, uint64_t wire)
{
	bool writes = hf__lock_kind(maker->item.lock) == HF_WRITE;
	return hf__request_owner(at, hf__core_settings(maker->core)->uuid, wire, writes);
}

static char *put_writer(char *at, const struct maker *maker)
{
	uint64_t writer = maker->cmd->from;
	return writer ? hf__request_owner(at, hf__core_settings(maker->core)->uuid, writer, true)
	              : hf__request_text(at, "");
}

static char *put_values(char *at, const struct maker *maker)
{
	size_t n;
	const char *values = hf__lock_values(maker->item.lock, &n);
	for (size_t i = 0; i < n; i++)
		at = hf__request_bytes(at, values + i * HF__VALUE_SIZE, HF__VALUE_SIZE);
	return at;
}

static char *put_permits(char *at, const struct maker *maker)
{
	unsigned char id[HF__PERMIT_SIZE];
	for (size_t i = 0; i < permits_of(maker->cmd); i++) {
		hf__permit_id(maker->core, maker->item.wire + i, id);
		at = hf__request_bytes(at, id, sizeof id);
	}
	return at;
}

static char *put_given_permits(char *at, const struct hf__cmd *cmd)
{
	for (uint16_t i = 0; i < cmd->items; i++)
		at = hf__request_bytes(at, cmd->permit[i], HF__PERMIT_SIZE);
	return at;
}

/*
 * On a cluster, the cursor of a list begins with the number of the master, as in "2:hash:17". The
 * server's own cursors are "0", or begin with a letter.
 */
static const char *own_cursor(const struct hf__cmd *cmd)
{
	size_t digits = strspn(cmd->words, "0123456789");
	bool is_numbered = hf__backend_is_walk(cmd) && cmd->words[digits] == ':';
	return is_numbered ? cmd->words + digits + 1 : cmd->words;
}

static char *put_texts(char *at, const struct hf__cmd *cmd)
{
	const char *text = own_cursor(cmd);
	for (uint16_t i = 0; i < cmd->items; i++) {
		bool is_useless = i == 0 && cmd->backend.starts_over;
		at = hf__request_text(at, is_useless ? "0" : text);
		text += strlen(text) + 1;
	}
	return at;
}

/*
 * What a list of locks shows about this holder, as two arguments, between which the script puts the
 * time: the kind, the host and the process id; and the text.
 */
static char *put_description(char *at, const struct maker *maker)
{
	char about[HF__DESCRIPTION_SIZE + 24] = "";
	const char *client = hf__core_settings(maker->core)->description;
	const char *value = hf__core_value(maker->cmd);
	const char *text = strchr(client, '\n') ? strchr(strchr(client, '\n') + 1, '\n') : NULL;
	if (text)
		snprintf(about, sizeof about, "%s\n%.*s",
		         hf__kind_word(hf__lock_kind(maker->item.lock)), (int)(text - client),
		         client);
	at = hf__request_text(at, about);
	/* A caller that has a value of its own to publish replaces the client's text. */
	return hf__request_text(at, !text ? "" : value ? value : text + 1);
}

/* On a Cluster each name has a stream of its own, since a script can write only to its own slot. */
static char *put_stream(char *at, const struct hf__redis *redis, const struct hf__cmd *cmd)
{
	char stream[STREAM_SIZE];
	const char *prefix = redis->config->name_prefix;
	if (redis->cluster && cmd->lock)
		hf__keys_make(stream, KEY_HISTORY, hf__lock_name(cmd->lock), "", 0);
	else
		snprintf(stream, sizeof stream, "%sholdfast_history", prefix ? prefix : "");
	return hf__request_text(at, stream);
}

static char *put_arg(char *at, enum hf__recipe_arg arg, const struct maker *maker)
{
	const struct hf__cmd *cmd = maker->cmd;
	switch (arg) {
	case ARG_LEASE: return hf__request_number(at, maker->item.lease_ms);
	case ARG_OWNER: return put_owner(at, maker, maker->item.wire);
	case ARG_FROM: return put_owner(at, maker, cmd->from);
	case ARG_WRITER: return put_writer(at, maker);
	case ARG_COUNT: return hf__request_number(at, cmd->count);
	case ARG_AGAIN: return hf__request_text(at, cmd->again ? "1" : "0");
	case ARG_RECORD: return put_key(at, KEY_RECORD, maker);
	case ARG_RECORD_MS: return hf__request_number(at, HF__RECORD_MS);
	case ARG_PLACE_MS: return hf__request_number(at, cmd->place_ms);
	case ARG_ALIVE_MS:
		return hf__request_number(at, hf__core_settings(maker->core)->watchdog_ms);
	case ARG_PUBLISH: return hf__request_text(at, maker->publish);
	case ARG_CHANNEL: return put_key(at, KEY_CHANNEL, maker);
	case ARG_RW_CHANNEL: return put_key(at, KEY_RW_CHANNEL, maker);
	case ARG_PERMITS_CHANNEL: return put_key(at, KEY_PERMITS_CHANNEL, maker);
	case ARG_LATCH_CHANNEL: return put_key(at, KEY_LATCH_CHANNEL, maker);
	case ARG_UNLOCK_MESSAGE: return hf__request_text(at, "0");
	case ARG_READ_UNLOCK_MESSAGE: return hf__request_text(at, "1");
	case ARG_NO_MESSAGE: return hf__request_text(at, "");
	case ARG_READ_HOLDS: return put_key(at, KEY_READ_HOLDS, maker);
	case ARG_DESCRIPTION: return has_description(maker) ? put_description(at, maker) : at;
	case ARG_DESCRIPTION_OR_EMPTY: return put_description(at, maker);
	case ARG_DESCRIPTIONS:
		return has_description(maker) ? put_key(at, KEY_DESCRIPTIONS, maker) : at;
	case ARG_DESCRIPTIONS_OR_EMPTY:
		return has_description(maker) ? put_key(at, KEY_DESCRIPTIONS, maker)
		                              : hf__request_text(at, "");
	case ARG_WAITED:
		return has_waited(maker) ? hf__request_number(at, waited_to_note(cmd)) : at;
	case ARG_WAITED_OR_EMPTY:
		return has_waited(maker) ? hf__request_number(at, waited_to_note(cmd))
		                         : hf__request_text(at, "");
	case ARG_VALUES: return put_values(at, maker);
	case ARG_PERMITS: return put_permits(at, maker);
	case ARG_GIVEN_PERMITS: return put_given_permits(at, cmd);
	case ARG_TEXTS: return put_texts(at, cmd);
	case ARG_STREAM: return put_stream(at, maker->redis, cmd);
	case ARG_VALUES_COUNT: return hf__request_number(at, (int64_t)values_of(maker));
	case ARG_NAMES: return hf__request_text(at, "names");
	case ARG_READ: return hf__request_text(at, "read");
	case ARG_WRITE: return hf__request_text(at, "write");
	case ARG_MAY_CREATE: return hf__request_text(at, "0");
	case ARG_MUST_EXIST: return hf__request_text(at, "1");
	case ARG_AVAILABLE: return hf__request_text(at, "available");
	case ARG_ACQUIRED: return hf__request_text(at, "acquired");
	case ARG_TOTAL: return hf__request_text(at, "total");
	case ARG_END: break;
	}
	return at;
}

static char *put_args(char *at, const struct hf__recipe *recipe, const struct maker *maker)
{
	for (const enum hf__recipe_arg *arg = recipe->args; *arg != ARG_END; arg++)
		at = put_arg(at, *arg, maker);
	return at;
}

/* ---- the history ---- */

#define HISTORY_ARGS    7      /* as shared/history.lua has them */
#define HISTORY_LASTS_S 604800 /* of a stream on a Cluster, where each name has one */

/* Sets the entry only if there is one: most clients keep no history. */
static void choose(const struct hf__core *core, const struct hf__cmd *cmd,
                   const struct hf__recipe *recipe, struct choice *ret_choice)
{
	ret_choice->recipe = recipe;
	ret_choice->has_entry = hf__core_settings(core)->history > 0 &&
	                        recipe->history.text != recipe->script.text &&
	                        hf__entry_make(core, cmd, &ret_choice->entry);
	ret_choice->script = ret_choice->has_entry ? &recipe->history : &recipe->script;
}

static char *put_known(char *at, int64_t ms)
{
	return ms < 0 ? hf__request_text(at, "") : hf__request_number(at, ms);
}

/* The host and process id of the client that forces, between which there is a line feed. */
static char *put_client(char *at, const struct hf__core *core)
{
	const char *client = hf__core_settings(core)->description;
	const char *pid = strchr(client, '\n');
	const char *end = pid ? strchr(pid + 1, '\n') : NULL;
	return hf__request_bytes(at, client, end ? (size_t)(end - client) : 0);
}

/*
 * How a call gave up, for how long it had waited, how long ago that was, and the lines of the
 * client's description.
 */
static char *put_wait(char *at, const struct hf__core *core, const struct hf__entry *entry)
{
	char text[HF__DESCRIPTION_SIZE + OWNER_SIZE];
	int length = snprintf(text, sizeof text, "%c %" PRIu32 " %" PRId64 "\n%s",
	                      entry->gave_up == HF__GAVE_UP_CANCELLED ? 'c' : 't', entry->waited_ms,
	                      entry->ago_ms, hf__core_settings(core)->description);
	return hf__request_bytes(at, text, (size_t)length);
}

static char *put_entry(char *at, const struct hf__redis *redis, const struct hf__cmd *cmd,
                       const struct hf__entry *entry)
{
	at = put_stream(at, redis, cmd);
	at = hf__request_number(at, hf__core_settings(redis->core)->history);
	at = hf__request_number(at, redis->cluster ? HISTORY_LASTS_S : 0);
	at = hf__request_text(at, hf__kind_word(hf__lock_kind(cmd->lock)));
	at = put_known(at, entry->ms);
	at = hf__request_text(at, entry->is_lost ? "l" : "r");
	if (cmd->verb == HF__FORCE)
		return put_client(at, redis->core);
	if (cmd->verb == HF__MOVE)
		return put_known(at, entry->from_ms);
	if (entry->gave_up)
		return put_wait(at, redis->core, entry);
	return hf__request_text(at, entry->says_gone ? "1" : "0");
}

/* ---- the whole request ---- */

/* Puts the command word: EVALSHA, or EVAL with the script's text, and the number of keys. */
static char *put_start(char *at, const struct choice *choice, const struct hf__cmd *cmd,
                       size_t keys, size_t args)
{
	if (choice->recipe->word) {
		at = hf__request_begin(at, 1 + keys + args);
		return hf__request_text(at, choice->recipe->word);
	}
	at = hf__request_begin(at, 3 + keys + args);
	if (cmd->backend.whole_text) {
		at = hf__request_text(at, "EVAL");
		at = hf__request_bytes(at, choice->script->text, choice->script->length);
	} else {
		at = hf__request_text(at, "EVALSHA");
		at = hf__request_bytes(at, choice->script->sha, 40);
	}
	return hf__request_number(at, (int64_t)keys);
}

static uint16_t items_of(const struct hf__cmd *cmd)
{
	return cmd->verb == HF__RENEW ? cmd->items : 1;
}

static size_t measure_texts(const struct hf__cmd *cmd)
{
	bool has_texts = hf__backend_is_walk(cmd) || cmd->verb == HF__INSPECT_MANY ||
	                 cmd->verb == HF__HISTORY || cmd->verb == HF__HISTORY_HELD ||
	                 cmd->verb == HF__DROP_WAITER;
	const char *text = has_texts ? cmd->words : NULL;
	size_t bytes = 0;
	for (uint16_t i = 0; text && i < cmd->items; i++) {
		size_t length = strlen(text);
		bytes += length;
		text += length + 1;
	}
	return bytes;
}

/* How many keys and arguments a request has, and how many bytes they take at most. */
struct size {
	size_t keys, args, bytes;
};

static void add_item(struct size *size, const struct hf__recipe *recipe, const struct maker *maker)
{
	const struct hf__lock *lock = maker->item.lock;
	size_t named = (lock ? hf__lock_name_length(lock) : 0) + 2 * OWNER_SIZE;
	for (const enum hf__keys_name *key = recipe->keys; *key != KEY_END; key++) {
		if (!has_key(*key, maker))
			continue;
		size->keys++;
		size->bytes += named;
	}
	for (const enum hf__recipe_arg *arg = recipe->args; *arg != ARG_END; arg++) {
		size_t n = count_arg(*arg, maker);
		size->args += n;
		size->bytes += n * OWNER_SIZE + (is_named(*arg) ? named : 0);
	}
	size->bytes += strlen(hf__core_settings(maker->core)->description);
}

static struct size measure(struct maker *maker, uint16_t items, const struct choice *choice)
{
	const struct hf__cmd *cmd = maker->cmd;
	const char *value = hf__core_value(cmd);
	struct size size = {.bytes = 128 + measure_texts(cmd)};
	for (uint16_t i = 0; i < items; i++) {
		maker->item = item_of(cmd, i);
		add_item(&size, choice->recipe, maker);
	}
	if (value)
		size.bytes += strlen(value);
	if (cmd->backend.whole_text)
		size.bytes += choice->script->length;
	if (cmd->verb == HF__HISTORY || cmd->verb == HF__HISTORY_CLEAR)
		size.bytes += STREAM_SIZE;
	if (choice->has_entry) {
		size.bytes += STREAM_SIZE + HISTORY_ARGS * OWNER_SIZE + HF__DESCRIPTION_SIZE;
		size.args += HISTORY_ARGS;
	}
	size.bytes = hf__request_size(3 + size.keys + size.args, size.bytes);
	return size;
}

int hf__verbs_encode(struct hf__conn *conn, struct hf__cmd *cmd)
{
	uint16_t items = items_of(cmd);
	assert(cmd->verb < HF__VERBS && items > 0);
	const char *publish = conn->redis->is_sharded ? "SPUBLISH" : "PUBLISH";
	struct maker maker = {conn->redis->core, conn->redis, publish, cmd, item_of(cmd, 0)};
	const struct hf__lock *lock = maker.item.lock;
	const struct hf__recipe *recipe = hf__recipe_of(lock ? hf__lock_kind(lock) : 0, cmd->verb);
	struct choice choice;
	choose(maker.core, cmd, recipe, &choice);
	struct size size = measure(&maker, items, &choice);
	char *at = hf__conn_room(conn, size.bytes);
	if (!at)
		return HF_ENOMEM;
	const char *start = at;
	if (cmd->backend.asks) {
		at = hf__request_begin(at, 1);
		at = hf__request_text(at, "ASKING");
		cmd->backend.has_asked = false;
	}
	at = put_start(at, &choice, cmd, size.keys, size.args);
	for (uint16_t i = 0; i < items; i++) {
		maker.item = item_of(cmd, i);
		at = put_keys(at, recipe, &maker);
	}
	for (uint16_t i = 0; i < items; i++) {
		maker.item = item_of(cmd, i);
		at = put_args(at, recipe, &maker);
	}
	if (choice.has_entry)
		at = put_entry(at, conn->redis, cmd, &choice.entry);
	assert((size_t)(at - start) <= size.bytes);
	hf__conn_commit(conn, cmd, at);
	return 0;
}

/* ---- replies ---- */

static void set_text(struct hf__answer *answer, const char *text, size_t length)
{
	answer->text = text;
	answer->length = length;
}

static bool may_be_gone(const struct hf__cmd *cmd)
{
	switch (cmd->verb) {
	case HF__ASK:
	case HF__SETTLE:
	case HF__MOVE:
	case HF__PERMITS_RELEASE:
	case HF__PERMITS_EXTEND:
	case HF__PERMITS_LEASE: return true;
	default: return false;
	}
}

/* Reads {'gone', holder} or {'conflict', why}, if the verb's script can return that. */
static bool read_special(const struct hf__resp *resp, const struct hf__cmd *cmd, const char *bytes,
                         struct hf__answer *answer)
{
	const struct hf__resp_node *text = &resp->node[2];
	bool may_conflict = cmd->verb != HF__RENEW && cmd->verb != HF__PING &&
	                    (cmd->verb < HF__LIST || cmd->verb > HF__FACTS);
	if (resp->node[0].type != HF__RESP_ARRAY || resp->node[0].length != 2 ||
	    resp->node[1].type != HF__RESP_STRING || text->type != HF__RESP_STRING)
		return false;
	if (may_be_gone(cmd) && hf__resp_text_is(resp, bytes, 1, "gone")) {
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

static bool read_digits(const char *text, size_t length, int64_t *ret_number)
{
	int64_t number = 0;
	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';
		if (!digit || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, text[i] - '0', &number))
			return false;
	}
	*ret_number = number;
	return true;
}

/*
 * Reads nil, the token, PTTL or {'busy', PTTL, 'rw' or 'lock'}. A token is in no table, because the
 * server looks up several names in each table that a script returns.
 */
static bool read_ask(const struct hf__resp *resp, const struct hf__cmd *cmd, const char *bytes,
                     struct hf__answer *answer)
{
	const struct hf__resp_node *node = resp->node;
	answer->outcome = HF__BUSY;
	answer->channel = hf__lock_traits(cmd->lock)->channel;
	if (node[0].type == HF__RESP_NULL) {
		answer->outcome = HF__GRANTED;
		return true;
	}
	if (node[0].type == HF__RESP_INTEGER) {
		answer->ttl_ms = node[0].integer;
		return true;
	}
	if (node[0].type == HF__RESP_STRING && cmd->token) {
		answer->outcome = HF__GRANTED;
		return read_digits(bytes + node[0].start, node[0].length, &answer->token);
	}
	if (node[0].type != HF__RESP_ARRAY || node[0].length != 3 ||
	    node[1].type != HF__RESP_STRING || !hf__resp_text_is(resp, bytes, 1, "busy") ||
	    node[2].type != HF__RESP_INTEGER || node[3].type != HF__RESP_STRING)
		return false;
	answer->ttl_ms = node[2].integer;
	answer->channel =
		hf__resp_text_is(resp, bytes, 3, "rw") ? HF__CHANNEL_RW : HF__CHANNEL_LOCK;
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

/* The wire owner if it is one of this client, else 0. */
static uint64_t own_wire(const struct hf__core *core, const char *owner, size_t length)
{
	size_t prefix = strlen(hf__core_settings(core)->uuid);
	int64_t wire;
	if (length <= prefix + 1 || memcmp(owner, hf__core_settings(core)->uuid, prefix) != 0 ||
	    !read_digits(owner + prefix + 1, length - prefix - 1, &wire))
		return 0;
	return (uint64_t)wire;
}

/* Reads a number, or {'next', waiter}. */
static bool read_settled(const struct hf__conn *conn, const char *bytes, struct hf__answer *answer)
{
	const struct hf__resp_node *node = conn->resp.node;
	answer->count = node[0].integer;
	if (node[0].type == HF__RESP_INTEGER)
		return true;
	if (node[0].type != HF__RESP_ARRAY || node[0].length != 2 ||
	    node[2].type != HF__RESP_STRING || !hf__resp_text_is(&conn->resp, bytes, 1, "next"))
		return false;
	answer->next = own_wire(conn->redis->core, bytes + node[2].start, node[2].length);
	return true;
}

/* Reads {PTTL, count, holder}; for a semaphore or latch just the number. */
static bool read_state(const struct hf__resp *resp, const struct hf__cmd *cmd, const char *bytes,
                       struct hf__answer *answer)
{
	const struct hf__resp_node *node = resp->node;
	int kind = hf__lock_kind(cmd->lock);
	if (node[0].type == HF__RESP_INTEGER && (kind == HF__SEMAPHORE || kind == HF__LATCH)) {
		answer->count = node[0].integer;
		return true;
	}
	if (node[0].type != HF__RESP_ARRAY || node[0].length != 3 ||
	    node[1].type != HF__RESP_INTEGER || node[2].type != HF__RESP_INTEGER ||
	    node[3].type != HF__RESP_STRING)
		return false;
	answer->ttl_ms = node[1].integer;
	answer->count = node[2].integer;
	set_text(answer, bytes + node[3].start, node[3].length);
	return true;
}

static const char *row_of(const struct hf__answer *answer, size_t i, size_t *ret_length)
{
	const struct hf__resp *resp = answer->source;
	const struct hf__resp_node *node = &resp->node[i + 1];
	*ret_length = node->length;
	return answer->text + node->start;
}

/* Reads an array of texts. */
static bool read_rows(const struct hf__resp *resp, const char *bytes, struct hf__answer *answer)
{
	const struct hf__resp_node *node = resp->node;
	if (node[0].type != HF__RESP_ARRAY || resp->nodes != node[0].length + 1)
		return false;
	for (size_t i = 1; i < resp->nodes; i++)
		if (node[i].type != HF__RESP_STRING)
			return false;
	answer->rows = node[0].length;
	answer->row = row_of;
	answer->source = resp;
	answer->text = bytes;
	return true;
}

static const char not_a_token[] = "the key of its token does not hold a number";

static bool read_verb(const struct hf__conn *conn, const struct hf__cmd *cmd, const char *bytes,
                      struct hf__answer *answer, bool *there)
{
	const struct hf__resp *resp = &conn->resp;
	const struct hf__resp_node *root = &resp->node[0];
	answer->outcome = HF__DONE;
	if (read_special(resp, cmd, bytes, answer))
		return true;
	switch (cmd->verb) {
	case HF__ASK:
	case HF__MOVE: return read_ask(resp, cmd, bytes, answer);
	case HF__SETTLE: return read_settled(conn, bytes, answer);
	case HF__RENEW: return read_renewals(resp, cmd, there, answer);
	case HF__SYNC:
		answer->outcome = root->integer == 1 ? HF__DONE : HF__GONE;
		return root->type == HF__RESP_INTEGER;
	case HF__LOOK: return read_state(resp, cmd, bytes, answer);
	case HF__PING: return hf__resp_text_is(resp, bytes, 0, "PONG");
	case HF__LIST:
	case HF__LIST_WAITED:
	case HF__INSPECT:
	case HF__INSPECT_MANY:
	case HF__HISTORY:
	case HF__HISTORY_HELD:
	case HF__HISTORY_STREAMS:
	case HF__FACTS: return read_rows(resp, bytes, answer);
	case HF__IDENTIFY:
		set_text(answer, bytes + root->start, root->length);
		return root->type == HF__RESP_STRING;
	case HF__TOKEN:
		if (root->type == HF__RESP_STRING &&
		    !read_digits(bytes + root->start, root->length, &answer->count)) {
			answer->outcome = HF__FAILED;
			answer->error = HF_ECONFLICT;
			set_text(answer, not_a_token, sizeof not_a_token - 1);
		}
		return root->type == HF__RESP_NULL || root->type == HF__RESP_STRING;
	default: answer->count = root->integer; return root->type == HF__RESP_INTEGER;
	}
}

/* What it means for the user that this part of a script failed. */
static const char *consequence_of(const struct hf__resp *resp, const char *bytes)
{
	if (hf__resp_text_is(resp, bytes, 2, "publish"))
		return "waiters were not notified and will notice only when they ask again; the "
		       "user needs +publish and a pattern for the lock's channels";
	if (hf__resp_text_is(resp, bytes, 2, "spublish"))
		return "waiters were not notified and will notice only when they ask again; the "
		       "user needs +spublish and a pattern for the lock's channels";
	if (hf__resp_text_is(resp, bytes, 2, "queue"))
		return "the lock was released, but its queue could not be cleaned up";
	if (hf__resp_text_is(resp, bytes, 2, "xadd"))
		return "the call is not affected, but the history lacks an entry; it needs "
		       "+xadd, a pattern for its stream, and a key that holds nothing else";
	return "the call is not affected, but the lock's description or time to live may be "
	       "wrong; the user needs the rights that holdfast doctor prints";
}

/* Logs the warning, unless it is the same as the last one. */
static void log_warning(struct hf__conn *conn, const struct hf__cmd *cmd, const char *bytes)
{
	const struct hf__resp_node *what = &conn->resp.node[2], *why = &conn->resp.node[3];
	char line[sizeof conn->redis->warned];
	snprintf(line, sizeof line, "%.*s: %.*s", (int)what->length, bytes + what->start,
	         (int)why->length, bytes + why->start);
	if (strcmp(line, conn->redis->warned) == 0)
		return;
	memcpy(conn->redis->warned, line, sizeof line);
	hf__log_write(conn->redis->core, HF_LOG_WARN, "%s: %s (%s)", hf__lock_name(cmd->lock), line,
	              consequence_of(&conn->resp, bytes));
}

/* {'warning', command, error, reply}: the verb was done, but something around it failed. */
static void take_warning(struct hf__conn *conn, const struct hf__cmd *cmd, const char *bytes)
{
	const struct hf__resp_node *node = conn->resp.node;
	if (!cmd->lock || node[0].type != HF__RESP_ARRAY || node[0].length != 4 ||
	    !hf__resp_text_is(&conn->resp, bytes, 1, "warning") ||
	    node[2].type != HF__RESP_STRING || node[3].type != HF__RESP_STRING)
		return;
	log_warning(conn, cmd, bytes);
	hf__resp_keep(&conn->resp, 4);
}

bool hf__verbs_decode(struct hf__conn *conn, const struct hf__cmd *cmd, const char *bytes,
                      struct hf__answer *ret_answer, bool *there)
{
	const struct hf__resp *resp = &conn->resp;
	const struct hf__resp_node *root = &resp->node[0];
	assert(resp->nodes > 0 && (cmd->verb != HF__RENEW || cmd->items <= HF__RENEW_MAX));
	take_warning(conn, cmd, bytes);
	*ret_answer = (struct hf__answer){.text = ""};
	if (root->type != HF__RESP_ERROR)
		return read_verb(conn, cmd, bytes, ret_answer, there);
	ret_answer->outcome =
		hf__refusal_read(bytes + root->start, root->length, &ret_answer->error);
	set_text(ret_answer, bytes + root->start, root->length);
	return true;
}
