/* The handles that calls work on, opened when first used. */
#ifndef TESTS_GOLDEN_HANDLES_H
#define TESTS_GOLDEN_HANDLES_H

#include "golden/calls.h"

/* Opens the lock that the call names. Returns the library's result. */
int handle_open_lock(struct cast *cast, struct call *call, hf_lock **ret_lock);

/* These fail the test where the library refuses. */
hf_semaphore *handle_open_semaphore(struct cast *cast, struct call *call);
hf_permits *handle_open_permits(struct cast *cast, struct call *call);
hf_latch *handle_open_latch(struct cast *cast, struct call *call);

void handles_close(struct cast *cast);

#endif
