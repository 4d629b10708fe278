/* Acquiring and extending: every command that asks. */
#ifndef HF_CORE_ACQUIRE_H
#define HF_CORE_ACQUIRE_H

#include "core/backend.h"

#define HF__WATCHED_POLL_MS 60000   /* how often a waiter asks that the server notifies itself */
#define HF__LATE_MS         30      /* an ask younger than this is waited for past the deadline */
#define HF__OTHERS_MS       100     /* how often to ask for a free lock while another is next */
#define HF__TAKEN_MS        3600000 /* how long the server keeps the record of taken permits */

struct hf__op;

void hf__acquire_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__acquire_extend(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__acquire_ask(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* The call has waited for its own client for a while, and listens to the server from now on. */
void hf__acquire_listen(struct hf__core *core, struct hf__op *op, int64_t now);
/* The lease that the call wants. */
int64_t hf__acquire_lease(const struct hf__core *core, const struct hf__op *op);
/* Fills the command in: one more level, or the first. */
void hf__acquire_prepare(struct hf__core *core, struct hf__hold *hold, int64_t now);
void hf__acquire_submit(struct hf__core *core, struct hf__hold *hold, int64_t now);
void hf__acquire_on_answer(struct hf__core *core, struct hf__cmd *cmd,
                           const struct hf__answer *answer, int64_t now);
void hf__acquire_on_deadline(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__acquire_cancel(struct hf__core *core, struct hf__op *op, int64_t now);
/* Finishes the call without the lock. */
void hf__acquire_give_up(struct hf__core *core, struct hf__op *op, int result, int64_t now);

#endif
