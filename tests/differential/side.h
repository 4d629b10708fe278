/* What a sequence is played on, and what it leaves there after each call. */
#ifndef TESTS_DIFFERENTIAL_SIDE_H
#define TESTS_DIFFERENTIAL_SIDE_H

#include <stdbool.h>

#include "differential/sequence.h"

/* The texts are malloc'ed. */
struct record {
	bool is_late; /* a short lease may have expired outside of a pause */
	char *answer[SEQUENCE_MAX];
	char *keys[SEQUENCE_MAX]; /* a line for each, sorted; owners are named by their calls */
};

void record_clear(struct record *record);

/* What call i answered, as a text: "0", "0 2" with a number, "HF_EBUSY". */
void record_answer(struct record *record, int i, int rc, const long long *number);

/* The keys after call i, whose text is malloc'ed; none if they are not known for certain. */
void record_keys(struct record *record, int i, const struct sequence_call *call, char *keys);

struct side {
	char name[64];
	bool (*can_play)(struct side *side, const struct sequence *sequence);
	void (*play)(struct side *side, const struct sequence *sequence, struct record *ret_record);
	void (*close)(struct side *side);
};

/* The library on a server of its own, started from this binary. */
struct side *library_open(const char *server);

/* The core on the simulator's model of a server and its clock. */
struct side *model_open(void);

/*
 * Real Redisson, with the classes of $HF_INTEROP_CLASSPATH and a process for each client. Prints
 * which kinds it lacks if wanted.
 */
struct side *redisson_open(const char *server, bool prints);

#endif
