/* The history: which commands leave an entry in it, and what the entry says. */
#ifndef HF_CORE_ENTRY_H
#define HF_CORE_ENTRY_H

#include "core/hold.h"
#include "core/op.h"

/* Whether the hold that the call asks for goes into the history. */
bool hf__entry_keeps(const struct hf__core *core, const struct hf__op *op);
/* The call finishes without the lock: notes in its hold what the history is to say about that. */
void hf__entry_give_up(const struct hf__core *core, const struct hf__op *op, int result,
                       int64_t now);

#endif
