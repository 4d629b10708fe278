/* Where we differ from Curator on purpose: the stories as they must go with our library. */
#ifndef TESTS_GOLDEN_ZK_DIFFERENCES_H
#define TESTS_GOLDEN_ZK_DIFFERENCES_H

#include "golden-zk/story.h"

#define DIFFERENCES_MAX 32

/* How many differences there are, what each is, and why Java's processes get along with it. */
int differences_count(void);
const char *differences_name(int i);
const char *differences_harmless(int i);

/*
 * Changes the stories. ret_met gets how many steps each difference has changed; a change that finds
 * the story to be so already, or not to be as it was recorded, fails the test.
 */
void differences_apply(struct zk_stories *stories, int ret_met[DIFFERENCES_MAX]);

/* Why the story is not played, or NULL. */
const char *differences_why_not(const struct zk_story *story);

#endif
