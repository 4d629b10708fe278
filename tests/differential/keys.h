/* What is on a server, with owners, permits, tokens and times in a form that can be compared. */
#ifndef TESTS_DIFFERENTIAL_KEYS_H
#define TESTS_DIFFERENTIAL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "differential/sequence.h"
#include "support/raw.h"

#define KEYS_MAX_OWNERS  64
#define KEYS_MAX_PERMITS 128

/*
 * An owner, "<uuid>:<number>" on the server, is named after the caller of the call after which it
 * was first seen: "A.1". A permit is named by the order of grants. Zeroed before its first use.
 */
struct keys {
	struct raw *raw;
	char prefix[32]; /* of all names on the server */
	const char *uuid[SEQUENCE_CLIENTS];
	bool in_request; /* the numbers of requests are not those of owners */
	int owners;
	struct keys_owner {
		int client;
		long long number;
		char label[16];
	} owner[KEYS_MAX_OWNERS];
	int permits;
	char permit[KEYS_MAX_PERMITS][33];
	long long token[SEQUENCE_NAMES];
};

/* Notes ids that were granted, separated by spaces. */
void keys_add_permits(struct keys *keys, const char *ids);

/* The permit that was granted this many grants ago, or one that does not exist. */
const char *keys_find_permit(const struct keys *keys, int ago);

/* All keys after a call, malloc'ed: a line for each, sorted. */
char *keys_read(struct keys *keys, const struct sequence_call *call);

/*
 * A time to live as a text: rounded up to ten seconds, because calls take a while; negative numbers
 * are kept.
 */
long long keys_round_ms(long long ms);

#endif
