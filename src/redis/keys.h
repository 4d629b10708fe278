/* The names of keys and channels on the server, as Redisson makes them. */
#ifndef HF_REDIS_KEYS_H
#define HF_REDIS_KEYS_H

#include "core/backend.h"

#include <stddef.h>
#include <stdint.h>

/* Longer than any key or channel that is made here, with its NUL. */
#define HF__KEYS_MAX 640

/* The keys and channels of one lock. The names are short, because recipe.c consists of them. */
enum hf__keys_name {
	KEY_END,     /* ends a list of keys */
	KEY_NAME,    /* the lock itself, under its own name */
	KEY_TOKEN,   /* the latest token */
	KEY_RECORD,  /* what a request without an owner answered */
	KEY_CHANNEL, /* where the releases of a lock are published */
	KEY_RW_CHANNEL,
	KEY_PERMITS_CHANNEL,
	KEY_LATCH_CHANNEL,
	KEY_QUEUE,         /* a fair lock's waiters, in order */
	KEY_QUEUE_EXPIRY,  /* until when each of them keeps its place */
	KEY_QUEUE_ALIVE,   /* until when those of Holdfast count as alive */
	KEY_READ_HOLD,     /* exists as long as one read hold */
	KEY_READ_HOLDS,    /* what the keys of all read holds begin with */
	KEY_PERMIT_EXPIRY, /* the permits in use, and until when each is */
	KEY_DESCRIPTIONS,  /* what the descriptions of all holders begin with */
	KEY_HISTORY,       /* on a Cluster: the stream of its history */
};

/*
 * Writes the key or channel of the lock with this name, ends it with NUL and returns its length.
 * KEY_READ_HOLD and KEY_RECORD are also named by the client's UUID and a number: that of the wire
 * owner or of the record.
 */
size_t hf__keys_make(char ret_key[HF__KEYS_MAX], enum hf__keys_name which, const char *name,
                     const char *uuid, uint64_t number);

/* Writes the channel that the watch listens to, as hf__keys_make() does. */
size_t hf__keys_make_channel(char ret_key[HF__KEYS_MAX], const struct hf__watch *watch,
                             const char *uuid);

#endif
