/* Waits that another thread cancels. */
#ifndef TESTS_TORTURE_CANCEL_H
#define TESTS_TORTURE_CANCEL_H

#include "torture/use.h"

/* Draws whether and when the call is to be cancelled; that call waits for long. */
void cancel_draw(struct use *use);

/* Brackets the call. begin() returns its token, or NULL if it is not to be cancelled. */
hf_cancel *cancel_begin(const struct use *use);
void cancel_end(struct hand *hand);

/* Fires the tokens that are due. */
void cancel_fire_due(struct worker *worker);

#endif
