/* The names of keys and channels on the server, as Redisson makes them. */
#ifndef HF_REDIS_KEYS_H
#define HF_REDIS_KEYS_H

#include "core/backend.h"

#include <stddef.h>
#include <stdint.h>

#define HF__KEYS_MAX 640 /* longer than any name made here */

enum hf__keys_name {
	HF__KEYS_CHANNEL,    /* where releases are published */
	HF__KEYS_RW_CHANNEL, /* the same of read-write locks */
	HF__KEYS_QUEUE,      /* of a fair lock: its waiters, in order */
	HF__KEYS_ENDS,       /* and until when each keeps its place */
	HF__KEYS_ALIVE,      /* and until when those of Holdfast count as alive */
	HF__KEYS_TOKEN,      /* the latest token */
	HF__KEYS_HOLD,       /* of one read hold */
	HF__KEYS_HOLDS,      /* what those begin with */
	HF__KEYS_PERMITS_CHANNEL,
	HF__KEYS_PERMITS, /* of a semaphore whose permits expire: who has one until when */
	HF__KEYS_LATCH_CHANNEL,
	HF__KEYS_HOLDERS, /* what the descriptions of its holders begin with */
	HF__KEYS_RECORD,  /* of a request without an owner, and its answer */
};

/*
 * Writes the key or channel that belongs to the lock of this name; uuid and wire are needed for those
 * of one hold or request. Returns the length; ends in NUL.
 */
size_t hf__keys_make(char ret_key[HF__KEYS_MAX], enum hf__keys_name which, const char *name,
                     const char *uuid, uint64_t wire);

/* The channel to watch. */
size_t hf__keys_watched(char ret_key[HF__KEYS_MAX], const struct hf__watch *watch,
                        const char *uuid);

#endif
