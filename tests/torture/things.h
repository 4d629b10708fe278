/* What the processes of torture use: locks of every kind, and what counts. */
#ifndef TESTS_TORTURE_THINGS_H
#define TESTS_TORTURE_THINGS_H

#include <holdfast/holdfast.h>

#include "torture/record.h"

enum sort {
	THING_LOCK,
	THING_GROUP,
	THING_MULTI,
	THING_RED,
	THING_SEMAPHORE,
	THING_PERMITS,
	THING_LATCH,
	THING_GATE /* a latch that opens, or a barrier */
};

/* Processes that are given this many URLs use red locks, and nothing else. */
#define RED_SERVERS 5

/* Resources by their bits. Writers take a read-write lock as a whole, readers one part. */
enum {
	REENTRANT_0,
	REENTRANT_1,
	FAIR_0,
	RW_0,
	FENCED_0,
	SPIN_0,
	SIMPLE_0,
	SIMPLE_FAIR_0,
	LEADER_0,
	PLAIN_0,
	GROUP_A,
	GROUP_B,
	GROUP_C,
	SEMAPHORE_0,
	PERMITS_0,
	LATCH_0,
	RED_0,
	RED_1,
	LONG_0,
	LONG_1,
	LONG_2,
	SHARED_0, /* of several kinds; its releases are forced now and then */
	SPARSE_0,
	MOVED_0, /* all calls wait for it, so that it is handed over within each process */
	RED_2,
	MEMBER_0,
	MEMBER_1,
	MEMBER_2,
	MEMBER_3,
	MEMBER_4,
	GATE_0,
	GATE_1,
	GATE_2,
	MEETING_0,
	RESOURCES
};

#define BIT(resource) (UINT64_C(1) << (resource))

#define READERS     1000
#define PERMITS     3
#define LATCH_COUNT 1000000000

extern const struct resource resources[RESOURCES];

struct thing {
	enum sort sort;
	const char *name;
	hf_kind kind; /* of a lock */
	uint64_t covers;
	uint16_t share;
	bool has_token;
	bool nests;
	const char *redisson; /* its kind in Java, or NULL */
	const char *curator;
};

#define THINGS 26
extern const struct thing things[THINGS];

/* Locks that are held for many renewals, by one thread of each process. */
#define LONG_THINGS 3
extern const struct thing long_things[LONG_THINGS];

/* The same where there are red locks only; all threads want it. */
extern const struct thing *const long_red;

/* One thread of each process asks for it now and then, all at the same time. */
extern const struct thing sparse_thing;

/* The members of this red lock are acquired alone as well. */
#define MIXED_NAME "red-0"
extern const struct thing member_things[RED_SERVERS];

/* Each process shuts one of these. */
#define GATES 3

/* A handle of whichever sort. */
struct handle {
	const struct thing *thing;
	hf_lock *lock;
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
	hf_barrier *barrier;
};

/* Opens it on the client, a red lock on all clients. Returns 0, or HF_ENOTSUP. */
int thing_open(const struct thing *thing, hf_client *const *clients, int count,
               struct handle *ret_handle);
void thing_close(struct handle *handle);

#endif
