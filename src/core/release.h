/* Releasing a level, and removing what a call that has left may have left on the server. */
#ifndef HF_CORE_RELEASE_H
#define HF_CORE_RELEASE_H

#include "core/backend.h"

#define HF__REST_MS      5   /* how long others may ask first after a series of hand-overs */
#define HF__UNCOUNTED_MS 100 /* how often waiters that may not exist are given that head start */

struct hf__op;

/* Returns the hold if the server has to be asked, else NULL. */
struct hf__hold *hf__release_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__release_settle(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Finishes the release of a hold that is lost if there is no connection; true if it did. */
bool hf__release_end_lost(struct hf__core *core, struct hf__hold *hold, int64_t now);
void hf__release_on_deadline(struct hf__core *core, struct hf__op *op, int64_t now);
/* The server may count a level that nobody owns: sets its count right if that is possible now. */
void hf__release_correct(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* The hold of this wire owner was handed over, or it was not. */
void hf__release_on_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
void hf__release_on_not_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire,
                              enum hf__outcome outcome, int64_t now);

#endif
