/* Random sequences of calls: each follows from its seed, and so does who can play it. */
#ifndef TESTS_DIFFERENTIAL_SEQUENCE_H
#define TESTS_DIFFERENTIAL_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEQUENCE_CLIENTS 2
#define SEQUENCE_OWNERS  2 /* of each client */
#define SEQUENCE_NAMES   2
#define SEQUENCE_MAX     48

/*
 * A short lease has expired after a pause and not before, unless the player is late: between two
 * pauses it has to be faster than SEQUENCE_STRETCH_MS. The hash of a group lasts half a second
 * longer than its holds.
 */
#define SEQUENCE_SHORT_MS   600
#define SEQUENCE_PAUSE_MS   1200
#define SEQUENCE_STRETCH_MS 500
/* Longer than all leases, so that a renewal in Java cannot be noticed, whenever it happens. */
#define SEQUENCE_WATCHDOG_MS 60000

enum sequence_kind {
	KIND_REENTRANT,
	KIND_FENCED,
	KIND_SPIN,
	KIND_SIMPLE,
	KIND_FAIR,
	KIND_SIMPLE_FAIR,
	KIND_READ,
	KIND_WRITE,
	KIND_GROUP, /* these two share one of their values */
	KIND_OTHER_GROUP,
	KIND_SEMAPHORE,
	KIND_PERMITS,
	KIND_LATCH,
	KINDS
};

enum sequence_verb {
	VERB_ACQUIRE, /* of a latch: wait */
	VERB_RELEASE,
	VERB_EXTEND,
	VERB_FORCE,
	VERB_LOCKED,
	VERB_HELD,
	VERB_COUNT,
	VERB_TTL, /* of a lock or a permit */
	VERB_TOKEN,
	VERB_SET,
	VERB_RESET,
	VERB_ADD,
	VERB_DRAIN,
	VERB_AVAILABLE, /* of a latch: its count */
	VERB_ACQUIRED,
	VERB_TOTAL,
	VERB_DOWN,
	VERB_DELETE,
	VERB_PAUSE, /* all short leases expire */
	VERBS
};

struct sequence_call {
	enum sequence_verb verb;
	enum sequence_kind kind;
	int client;
	int owner;
	int name;
	int64_t wait_ms;
	int64_t lease_ms;
	int amount; /* of permits; for a permit itself, how many grants ago it was granted */
};

/* What a sequence is for. */
enum sequence_flavour {
	FLAVOUR_MODEL,    /* kinds that the simulator's model has, also mixed on one name */
	FLAVOUR_REDISSON, /* verbs that Redisson has, each name with one kind */
	FLAVOUR_SERVERS,  /* everything */
	FLAVOURS
};

struct sequence {
	uint64_t seed;
	enum sequence_flavour flavour;
	bool is_timed; /* it has pauses and short leases */
	int calls;
	struct sequence_call call[SEQUENCE_MAX];
};

void sequence_make(struct sequence *ret_sequence, uint64_t seed);

/* A kind as the Java process names it, and a verb; both are also for people. */
const char *sequence_kind_name(enum sequence_kind kind);
const char *sequence_verb_name(enum sequence_verb verb);

/* The kinds that are locks come first, and groups are the last of them. */
static inline bool sequence_is_lock(enum sequence_kind kind)
{
	return kind <= KIND_OTHER_GROUP;
}

/*
 * A wait after which nobody knows which of the short leases have expired, until the pause that
 * follows.
 */
static inline bool sequence_outlasts(const struct sequence_call *call)
{
	return call->verb == VERB_ACQUIRE && call->wait_ms > SEQUENCE_SHORT_MS;
}

/* "A.1 acquire fair orders0 wait 30 lease 600" */
void sequence_describe(const struct sequence_call *call, char *ret_text, size_t size);

#endif
