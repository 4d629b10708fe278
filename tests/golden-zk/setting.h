/*
 * The steps of a story that no lock takes part in: what is opened, what an operator does, and
 * faults.
 */
#ifndef TESTS_GOLDEN_ZK_SETTING_H
#define TESTS_GOLDEN_ZK_SETTING_H

#include "golden-zk/story.h"

/* Fails the test if the step is not known. ret_gives gets the answer, or stays as it is. */
void setting_do(const struct zk_story_step *step, char *ret_gives, size_t size);

#endif
