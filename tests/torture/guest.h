/* Clients that are closed in the middle of a round, with what their threads hold and wait for. */
#ifndef TESTS_TORTURE_GUEST_H
#define TESTS_TORTURE_GUEST_H

#include "torture/hand.h"

/* Starts the thread that has guests, one after the other, and ends it after the round. */
void guest_start(struct worker *worker);
void guest_end(struct worker *worker);

#endif
