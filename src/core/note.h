/* Notes of waiters: when a waiting call leaves a note on the server, which others can read. */
#ifndef HF_CORE_NOTE_H
#define HF_CORE_NOTE_H

#include "core/op.h"

/* How long a call waits before it leaves a note. */
#define HF__NOTE_AFTER_MS 1000

/* For how long the call has waited if its next ask is to leave a note, or to renew it; else 0. */
uint32_t hf__note_wait_ms(const struct hf__core *core, const struct hf__op *op, int64_t now);
/* Shortens the pause before the next ask if that ask would leave the first note too late. */
int64_t hf__note_pause(const struct hf__core *core, const struct hf__op *op, int64_t pause_ms,
                       int64_t now);

#endif
