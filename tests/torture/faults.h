/* The faults of torture, by name. */
#ifndef TESTS_TORTURE_FAULTS_H
#define TESTS_TORTURE_FAULTS_H

#include "torture/crew.h"

/* What a fault is done to. */
struct scene_of_fault {
	struct site *site;
	struct crew *crew;
	struct record *record;
	uint64_t random;
	uint64_t kinds;         /* which faults may happen, one bit each */
	int line, node, member; /* the victims, drawn before each fault */
	uint32_t number;        /* of the fault in the record */
	int lasts_ms;           /* how long it is to last */
};

struct fault_kind {
	const char *name;
	unsigned sites;   /* where it is possible, by the bits of enum site_kind */
	unsigned data_at; /* where grants may be forgotten by it */
	uint16_t effects; /* everywhere */
	int least_ms, most_ms;
	void (*begin)(struct scene_of_fault *scene);
	void (*end)(struct scene_of_fault *scene); /* or NULL */
};

/* The last one is not injected: the machine itself stood still. */
#define FAULTS      31
#define FAULT_STALL (FAULTS - 1)
extern const struct fault_kind faults[FAULTS];

/* Draws a fault that is possible here, and lets it happen. Does nothing if none is. */
void fault_play(struct scene_of_fault *scene);

/* The same for one of them, if it is possible here. */
void fault_play_kind(struct scene_of_fault *scene, int kind);

/* Those by which servers of this site may forget grants, by their bits. */
uint64_t fault_losing(enum site_kind site);

#endif
