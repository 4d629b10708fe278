/* Handing a hold over: a release that gives it straight to the next waiter of the same client. */
#ifndef HF_CORE_HANDOVER_H
#define HF_CORE_HANDOVER_H

#include "core/backend.h"

#define HF__MOVES_MAX     64   /* hand-overs in a row */
#define HF__MOVES_MS      50   /* how long such a series may last, */
#define HF__MOVES_TRIPS   32   /* or this many round trips if that is longer, */
#define HF__MOVES_MOST_MS 1000 /* but never longer than this */

/* Hands the hold over; false if it has to be released the usual way. */
bool hf__handover_start(struct hf__core *core, const struct hf__hold *hold, int64_t now);

#endif
