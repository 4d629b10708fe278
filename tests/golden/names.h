/* Identities and permits as they are on the server, and as the stories name them. */
#ifndef TESTS_GOLDEN_NAMES_H
#define TESTS_GOLDEN_NAMES_H

#include "golden/story.h"

#define NAMES_MAX_CLIENTS 9
#define NAMES_MAX_HOLDS   64
#define NAMES_MAX_PERMITS 12

/*
 * A story calls an owner <A.t1>: thread t1 of process A. On the server, ours is "<uuid>:<number>"
 * with a number of its own for every acquisition of every lock. A number gets its owner when it is
 * first seen where the story expects that owner, and keeps it as long as the story names the owner
 * there; the owner's next number must be higher. A writer, "<A.t1>:write" in a story, has a number
 * of its own for that, besides the one with which it reads.
 *
 * The struct can be copied, so that names can be assigned on trial.
 */
struct names {
	int clients;
	struct names_client {
		char letter;
		char uuid[37];
	} client[NAMES_MAX_CLIENTS];
	int holds;
	struct names_hold {
		char who[8];
		char tag[32];     /* of the keys that the lock has */
		bool writes;      /* its number stands before ":write" */
		long long number; /* 0 before the first */
		long long last;   /* the highest number it had before */
		int order;        /* of its call among all calls */
	} hold[NAMES_MAX_HOLDS];
	int calls;
	int permits;
	struct names_permit {
		char name[16];
		char id[33];
	} permit[NAMES_MAX_PERMITS];
};

void names_add_client(struct names *names, char letter, const char *uuid);

/*
 * Notes that the owner calls for the lock, so that its number is higher than those of earlier
 * calls.
 */
void names_call(struct names *names, const char *who, const char *lock);

/* The real id of "<permit1>", or NULL. */
const char *names_find_permit(const struct names *names, const char *name);

/* Notes that a permit of that id was granted. */
void names_add_permit(struct names *names, const char *name, const char *id);

/* Finds the owners of those numbers in the keys that the step expects there. */
void names_learn(struct names *names, struct story_step *step, const struct story_key *keys,
                 int count);

/* The text as the stories write it, malloc'ed. near is the key or channel in which it was seen. */
char *names_translate(const struct names *names, const char *near, const char *text);

/* Forgets the numbers of all owners that the step does not name any more. */
void names_forget(struct names *names, struct story_step *step);

#endif
