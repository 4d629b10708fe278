/* The streams that are the history of a whole cluster: one for each name that was locked. */
#ifndef HF_API_STREAMS_H
#define HF_API_STREAMS_H

#include "base/buffer.h"
#include "base/table.h"
#include "redis/keys.h"

#include <stdbool.h>

#define HF__POSITION_SIZE 48 /* of two numbers of 64 bits, with the NUL */

struct hf_client;

/* One stream. */
struct hf__stream {
	struct hf__table_link by_key;
	char position[HF__POSITION_SIZE]; /* everything up to here was read */
	char last[HF__POSITION_SIZE];     /* the id of its last entry when it was found; or "-" */
	int64_t found;                    /* the number of the walk that found it last */
	bool asked_gone; /* one of its holds was gone, so its end may have been entered since */
	char key[];
};

struct hf__streams {
	struct hf__table table;
	char start[HF__POSITION_SIZE]; /* where each of them is read from */
	const char *prefix;            /* of the names on the server; "" for all */
	uint64_t digest;               /* of what the masters said last about their slots */
	int64_t walks;
};

void hf__streams_init(struct hf__streams *streams, const char *prefix, const char *start);
void hf__streams_done(struct hf__streams *streams);

/*
 * Finds the streams of all masters; those that were found before are kept. HF_ENOTNOW: slots are
 * being moved, or have no master, so streams can be missing.
 */
int hf__streams_find(struct hf__streams *streams, struct hf_client *client,
                     struct hf__buffer *rows);

/* Visits all streams: NULL returns the first, and after the last one NULL is returned. */
struct hf__stream *hf__streams_next(const struct hf__streams *streams,
                                    const struct hf__stream *stream);
/* The stream that has the entries of this name on the server, or NULL. */
struct hf__stream *hf__streams_of(const struct hf__streams *streams, const char *name);
/* A name whose entries are in the stream. */
void hf__streams_name(const struct hf__stream *stream, char ret_name[HF__KEYS_MAX]);

#endif
