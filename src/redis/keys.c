/* The names of keys and channels on the server, as Redisson makes them. */
#include "redis/keys.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static char *put(char *at, const char *text)
{
	size_t length = strlen(text);
	memcpy(at, text, length + 1);
	return at + length;
}

/* A name without a brace is put into braces, so that Redis Cluster keeps all its keys together. */
static char *put_tagged(char *at, const char *name, bool always)
{
	bool braced = always || !strchr(name, '{');
	if (braced)
		*at++ = '{';
	at = put(at, name);
	if (braced)
		at = put(at, "}");
	return at;
}

static char *put_number(char *at, const char *uuid, uint64_t number)
{
	return at + sprintf(at, ":%s:%" PRIu64, uuid, number);
}

static char *put_prefixed(char *at, const char *prefix, const char *name)
{
	at = put(at, prefix);
	*at++ = ':';
	return put_tagged(at, name, false);
}

/* What precedes the name in braces; NULL for keys of another form. */
static const char *prefix_of(enum hf__keys_name which)
{
	switch (which) {
	case KEY_TOKEN: return "redisson_lock_token";
	case KEY_RECORD: return "holdfast_request";
	case KEY_CHANNEL: return "redisson_lock__channel";
	case KEY_RW_CHANNEL: return "redisson_rwlock";
	case KEY_PERMITS_CHANNEL: return "redisson_sc";
	case KEY_QUEUE: return "redisson_lock_queue";
	case KEY_QUEUE_EXPIRY: return "redisson_lock_timeout";
	case KEY_QUEUE_ALIVE: return "holdfast_alive";
	case KEY_DESCRIPTIONS: return "holdfast_holder";
	case KEY_HISTORY: return "holdfast_history";
	case KEY_END:
	case KEY_NAME:
	case KEY_LATCH_CHANNEL:
	case KEY_READ_HOLD:
	case KEY_READ_HOLDS:
	case KEY_PERMIT_EXPIRY: break;
	}
	return NULL;
}

size_t hf__keys_make(char ret_key[HF__KEYS_MAX], enum hf__keys_name which, const char *name,
                     const char *uuid, uint64_t number)
{
	assert(which != KEY_END && name);
	char *at = ret_key;
	switch (which) {
	case KEY_NAME: at = put(at, name); break;
	case KEY_READ_HOLD:
		at = put_number(put_tagged(at, name, false), uuid, number);
		at = put(at, ":rwlock_timeout:1");
		break;
	case KEY_READ_HOLDS: at = put_tagged(at, name, false); break;
	case KEY_PERMIT_EXPIRY: at = put(put_tagged(at, name, false), ":timeout"); break;
	case KEY_LATCH_CHANNEL:
		at = put_tagged(put(at, "redisson_countdownlatch__channel__"), name, true);
		break;
	case KEY_RECORD:
		at = put_number(put_prefixed(at, prefix_of(which), name), uuid, number);
		break;
	default: at = put_prefixed(at, prefix_of(which), name);
	}
	assert(at < ret_key + HF__KEYS_MAX);
	return (size_t)(at - ret_key);
}

static enum hf__keys_name key_of(enum hf__channel channel)
{
	switch (channel) {
	case HF__CHANNEL_LOCK:
	case HF__CHANNEL_WAITER: return KEY_CHANNEL;
	case HF__CHANNEL_RW: return KEY_RW_CHANNEL;
	case HF__CHANNEL_PERMITS: return KEY_PERMITS_CHANNEL;
	case HF__CHANNEL_LATCH: return KEY_LATCH_CHANNEL;
	}
	return KEY_END;
}

size_t hf__keys_make_channel(char ret_key[HF__KEYS_MAX], const struct hf__watch *watch,
                             const char *uuid)
{
	assert(watch && watch->lock && uuid);
	enum hf__channel channel = (enum hf__channel)watch->channel;
	const char *name = hf__lock_name(watch->lock);
	size_t length = hf__keys_make(ret_key, key_of(channel), name, uuid, 0);
	if (channel == HF__CHANNEL_WAITER)
		length = (size_t)(put_number(ret_key + length, uuid, watch->wire) - ret_key);
	return length;
}
