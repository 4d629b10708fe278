/* Where the model and Redisson differ from the library on purpose. */
#ifndef TESTS_DIFFERENTIAL_DIFFERENCES_H
#define TESTS_DIFFERENTIAL_DIFFERENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "differential/sequence.h"

#define DIFFERENCES_MAX 32

/* What the library is compared with. */
enum differences_with { WITH_SERVER, WITH_MODEL, WITH_REDISSON };

/* What one side has after a call. */
struct moment {
	char *answer;
	char *keys;
};

/* A comparison of one sequence. Zeroed before its first call, except for the first two. */
struct comparison {
	enum differences_with with;
	uint64_t *met; /* how many times each difference applied */
	const struct sequence_call *call;
	struct moment ours;
	struct moment theirs;
	bool was_nested[SEQUENCE_NAMES]; /* its present hold has or had several levels */
	bool had_levels[SEQUENCE_NAMES]; /* the same of any hold */
	bool was_forced[SEQUENCE_NAMES]; /* somebody has forced a release */
	bool diverged; /* different on purpose, and from now on the two go their own ways */
};

int differences_count(void);
const char *differences_name(int i);
enum differences_with differences_of(int i);

/* Whether both sides have the same after the call, or what differs is meant. */
bool differences_accept(struct comparison *comparison, const struct sequence_call *call,
                        const struct moment *ours, const struct moment *theirs);

#endif
