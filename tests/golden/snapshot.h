/* Reads everything in the servers, and compares it with what a step expects. */
#ifndef TESTS_GOLDEN_SNAPSHOT_H
#define TESTS_GOLDEN_SNAPSHOT_H

#include "golden/names.h"
#include "golden/stage.h"
#include "golden/story.h"

/* Stories with longer waits are played this much faster, with a watchdog that is faster too. */
#define LOOK_FAST 3

/* How far a time may be from the recorded one. */
#define LOOK_TOLERANCE_MS 1500

#define LOOK_MAX_KEYS 24

/* How the names of our records of requests begin, by which a repeated request is known. */
#define LOOK_REQUESTS "holdfast_request:"
/* And those of the signs of life of our fair waiters. */
#define LOOK_ALIVE "holdfast_alive:"

/* The time of a story, and what it knows of the tokens. */
struct snapshot_scale {
	int scale;              /* the recorded times are divided by this */
	long long origin_epoch; /* milliseconds of the wall clock when the story began */
	long long token;        /* the last one in the server, 0 before the first */
};

/*
 * Compares the whole keyspace. Returns NULL and takes over what was learned, or both sides as a
 * text for people.
 */
char *snapshot_compare(const struct stage *stage, struct story_step *step, struct names *names,
                       struct snapshot_scale *scale);

/* Whether a time is near enough to the recorded one. */
bool snapshot_is_near(long long ms, long long recorded_ms, const struct snapshot_scale *scale);

#endif
