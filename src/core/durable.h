/* Durable grants: those that count only once enough replicas have acknowledged them. */
#ifndef HF_CORE_DURABLE_H
#define HF_CORE_DURABLE_H

#include "core/backend.h"

struct hf__op;

/* How many replicas must acknowledge a grant to this call; 0: none. */
int hf__durable_replicas(const struct hf__core *core, const struct hf__op *op);
/* The ask of this call is likely to be granted at once, and a SYNC follows the grant. */
bool hf__durable_is_expected(const struct hf__core *core, const struct hf__op *op);
/* The call was granted with this token, and waits for the replicas; `answered` takes the answer. */
void hf__durable_start(struct hf__core *core, struct hf__op *op, int64_t token,
                       hf__answer_fn *on_answer, int64_t now);
/* The grant is gone: the call waits for the lock again, with its own deadline. */
void hf__durable_stop(struct hf__core *core, struct hf__op *op);
/* Finishes the call: this many replicas are too few; -1: their number could not be found out. */
void hf__durable_finish(struct hf__core *core, struct hf__op *op, int64_t acknowledged,
                        int64_t now);

#endif
