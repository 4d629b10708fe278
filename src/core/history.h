/* The history: which commands leave an entry in it, and what the entry says. */
#ifndef HF_CORE_HISTORY_H
#define HF_CORE_HISTORY_H

#include "core/hold.h"
#include "core/op.h"

/* Whether the hold that the call asks for goes into the history. */
bool hf__history_keeps(const struct hf__core *core, const struct hf__op *op);

#endif
