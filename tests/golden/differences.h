/* Where we differ from Java on purpose: the stories as they must go with our library. */
#ifndef TESTS_GOLDEN_DIFFERENCES_H
#define TESTS_GOLDEN_DIFFERENCES_H

#include "golden/story.h"

/* How many differences there are, and what each is. */
int differences_count(void);
const char *differences_name(int i);

/* Changes the stories. ret_met gets how many steps each difference has changed. */
void differences_apply(struct stories *stories, int *ret_met);

#endif
