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

/* A name without a brace of its own is put into braces, so that all its keys are placed together. */
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

size_t hf__keys_make(char ret_key[HF__KEYS_MAX], enum hf__keys_name which, const char *name,
                     const char *uuid, uint64_t wire)
{
	static const char *const prefix[] = {
		[HF__KEYS_CHANNEL] = "redisson_lock__channel",
		[HF__KEYS_RW_CHANNEL] = "redisson_rwlock",
		[HF__KEYS_QUEUE] = "redisson_lock_queue",
		[HF__KEYS_ENDS] = "redisson_lock_timeout",
		[HF__KEYS_ALIVE] = "holdfast_alive",
		[HF__KEYS_TOKEN] = "redisson_lock_token",
		[HF__KEYS_PERMITS_CHANNEL] = "redisson_sc",
		[HF__KEYS_RECORD] = "holdfast_request",
		[HF__KEYS_HOLDERS] = "holdfast_holder",
	};
	char *at = ret_key;
	switch (which) {
	case HF__KEYS_HOLD:
		at = put_number(put_tagged(at, name, false), uuid, wire);
		at = put(at, ":rwlock_timeout:1");
		break;
	case HF__KEYS_HOLDS: at = put_tagged(at, name, false); break;
	case HF__KEYS_PERMITS: at = put(put_tagged(at, name, false), ":timeout"); break;
	case HF__KEYS_LATCH_CHANNEL:
		at = put_tagged(put(at, "redisson_countdownlatch__channel__"), name, true);
		break;
	case HF__KEYS_RECORD:
		at = put_number(put_prefixed(at, prefix[which], name), uuid, wire);
		break;
	default: at = put_prefixed(at, prefix[which], name);
	}
	assert(at < ret_key + HF__KEYS_MAX);
	return (size_t)(at - ret_key);
}

size_t hf__keys_watched(char ret_key[HF__KEYS_MAX], const struct hf__watch *watch, const char *uuid)
{
	static const enum hf__keys_name which[] = {
		[HF__CHANNEL_LOCK] = HF__KEYS_CHANNEL,
		[HF__CHANNEL_RW] = HF__KEYS_RW_CHANNEL,
		[HF__CHANNEL_WAITER] = HF__KEYS_CHANNEL,
		[HF__CHANNEL_PERMITS] = HF__KEYS_PERMITS_CHANNEL,
		[HF__CHANNEL_LATCH] = HF__KEYS_LATCH_CHANNEL,
	};
	const char *name = hf__lock_name(watch->lock);
	size_t length = hf__keys_make(ret_key, which[watch->channel], name, uuid, 0);
	if (watch->channel == HF__CHANNEL_WAITER)
		length = (size_t)(put_number(ret_key + length, uuid, watch->wire) - ret_key);
	return length;
}
