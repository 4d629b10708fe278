/* Latches that open, and barriers: one thread shuts and opens a gate, and all others wait at it. */
#ifndef TESTS_TORTURE_GATE_H
#define TESTS_TORTURE_GATE_H

#include "torture/use.h"

/* Shuts the gate of this process, and opens it again. */
void gate_keep(struct hand *hand);

/* Waits until the gate is open. */
void gate_wait(struct hand *hand, const struct handle *handle);

#endif
