/* Which script does what: for each verb and kind its keys and arguments. */
#ifndef HF_REDIS_RECIPE_H
#define HF_REDIS_RECIPE_H

#include "core/backend.h"

#include <stddef.h>

/*
 * How a command is made of pieces, a letter each.
 *
 * Keys: N the lock's name, C its channel, W that of read-write locks, Q a fair lock's queue, E the ends
 * of its places, A until when its waiters count as alive, K the token, k the token if one is wanted, H a read hold's own key, P what those begin
 * with, S the permits' channel, Z the permits given, L the latch's channel, R the request's record, d
 * what the holders' descriptions begin with if this client describes itself.
 *
 * Arguments: l lease, m owner, f the owner it is moved from, r the owner that writes if the same one reads inside, or nothing, n count, p place, h how long a waiter counts as alive, 0 and 1 messages, x number of values, v the values,
 * i ids of permits asked for, g ids of permits given, a whether it is a repeat, t time to live of the record, w the caller's words, Y the client's description or nothing, y the description if there is one. In brackets: a word
 * as it is.
 */
struct hf__recipe {
	const char *word; /* a command without a script */
	const char *text; /* the script */
	size_t length;
	const char *sha;
	const char *keys;
	const char *arguments;
};

const struct hf__recipe *hf__recipe_of(int kind, int verb);

#endif
