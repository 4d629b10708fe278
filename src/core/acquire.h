/* Acquiring and extending: every command that asks. */
#ifndef HF_CORE_ACQUIRE_H
#define HF_CORE_ACQUIRE_H

#include "core/backend.h"

#define HF__WATCHED_POLL_MS 60000   /* how often a waiter asks that the server notifies itself */
#define HF__LATE_MS         30      /* an ask younger than this is waited for past the deadline */
#define HF__TURN_MS         100     /* how often to ask for a free lock that is another's turn */
#define HF__TAKEN_MS        3600000 /* how long the server keeps the record of taken permits */

struct hf__op;

void hf__acquire_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__extend_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__acquire_ask(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* The lease that the call wants. */
int64_t hf__acquire_lease(const struct hf__core *core, const struct hf__op *op);
/* Takes the lock over from a hold of this client that is being released. */
void hf__acquire_from(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *from,
                      int64_t now);
void hf__acquire_deadline(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__acquire_cancel(struct hf__core *core, struct hf__op *op, int64_t now);
/* Finishes the call without the lock. */
void hf__acquire_give_up(struct hf__core *core, struct hf__op *op, int result, int64_t now);
/* The server may count a level that nobody owns: sets its count right if that is possible now. */
void hf__acquire_correct(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Frees the holds of permits that were not granted. */
void hf__acquire_drop_siblings(struct hf__op *op);
/* Lets every waiter ask. */
void hf__acquire_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* Lets as many waiters ask as the message on this watch is for. */
void hf__acquire_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                      int64_t now);

#endif
