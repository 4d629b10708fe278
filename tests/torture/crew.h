/* The processes of torture: they are started, stopped, killed and replaced. */
#ifndef TESTS_TORTURE_CREW_H
#define TESTS_TORTURE_CREW_H

#include <sys/types.h>

#include "torture/record.h"
#include "torture/site.h"
#include "torture/worker.h"

#define CREW_MAX 8

struct member {
	pid_t pid; /* 0: none runs */
	int number;
	bool is_java;
};

struct crew {
	const struct site *site;
	struct record *record;
	const char *path; /* of the record */
	int threads;
	int mutant, red_mutant;
	uint64_t seed;
	int started; /* processes so far, which are numbered from 1 */
	int count;
	struct member member[CREW_MAX];
	int failures; /* processes that ended in another way than they should */
};

/* Starts one more process: workers of the library, or one that drives Java. */
void crew_add(struct crew *crew, bool is_java);

/* A member that is not Java's, by chance. */
int crew_pick(const struct crew *crew, uint64_t chance);

/* SIGKILL, and another process in its place. */
void crew_replace(struct crew *crew, int member);

void crew_suspend(const struct crew *crew, int member, bool on);

/* Notes processes that have ended before their time. */
void crew_watch(struct crew *crew);

/*
 * Waits until all have ended, after the record said so. Those that do not end are killed, which the
 * record shows.
 */
void crew_finish(struct crew *crew);

#endif
