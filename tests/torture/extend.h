/* Extensions of holds, and what they promise. */
#ifndef TESTS_TORTURE_EXTEND_H
#define TESTS_TORTURE_EXTEND_H

#include "torture/use.h"

/* Extends the hold now and then. */
void extend_some(struct use *use);

#endif
