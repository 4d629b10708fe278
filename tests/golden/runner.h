/* Plays many stories, each in its own process with its own servers, and reports them as tests. */
#ifndef TESTS_GOLDEN_RUNNER_H
#define TESTS_GOLDEN_RUNNER_H

#include <stdbool.h>

/* What one program plays. */
struct runner_plan {
	bool deploys; /* the stories of golden-deploy/, not those of golden/ */
	int stories;  /* how many there are, and their steps */
	int steps;
	int at_once; /* how many are played at the same time; they mostly wait */
};

/*
 * Returns the exit status of the program. With a part, plays the stories with that in their title.
 */
int runner_main(const struct runner_plan *new_plan, const char *part);

#endif
