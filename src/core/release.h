/* Releasing a level, and removing what a call that has left may have left on the server. */
#ifndef HF_CORE_RELEASE_H
#define HF_CORE_RELEASE_H

#include "core/backend.h"

#define HF__MOVES_MAX     64   /* hand-overs in a row inside this client */
#define HF__MOVES_MS      50   /* how long such a row may last, */
#define HF__MOVES_TRIPS   32   /* or this many round trips if that is longer, */
#define HF__MOVES_MOST_MS 1000 /* but never longer than this */
#define HF__REST_MS       5    /* how long others may ask first after such a row */

struct hf__op;

void hf__release_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__release_settle(struct hf__core *core, struct hf__hold *hold, int64_t now);
void hf__release_deadline(struct hf__core *core, struct hf__op *op, int64_t now);
/* The hold of this wire owner was handed over, or it was not. */
void hf__release_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
void hf__release_not_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire,
                           enum hf__outcome outcome, int64_t now);

#endif
