/* Double barriers: one thread of each process comes to a meeting, and all leave it together. */
#ifndef TESTS_TORTURE_MEETING_H
#define TESTS_TORTURE_MEETING_H

#include "torture/use.h"

/* Attends the present meeting, where there are double barriers. False if it has done so before. */
bool meeting_attend(struct hand *hand);

#endif
