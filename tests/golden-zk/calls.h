/* The calls of a story, made with this library. */
#ifndef TESTS_GOLDEN_ZK_CALLS_H
#define TESTS_GOLDEN_ZK_CALLS_H

#include "golden-zk/story.h"

/* What a call of the library returned, as the stories write it. */
struct calls_answer {
	char gives[200];  /* empty: nothing */
	char detail[200]; /* for messages */
	int rows;
	char row[ZK_STORY_MAX_ROWS][128];
};

/* Makes the call of a step. Fails the test if it is not known. */
void calls_do(const struct zk_story_step *step, struct calls_answer *ret_answer);

/* Waits for all calls that nothing has waited for yet. */
void calls_end(void);

#endif
