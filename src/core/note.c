/* Notes of waiters: when a waiting call leaves a note on the server, which others can read. */
#include "core/note.h"
#include "core/core.h"

/* Only an acquisition that has not been granted yet is a waiter; a nested level is not. */
static bool is_noted(const struct hf__core *core, const struct hf__op *op)
{
	return core->config.description[0] && op->waited && op->lock->traits->notes &&
	       op->hold->state == HF__HOLD_ASKING;
}

uint32_t hf__note_wait_ms(const struct hf__core *core, const struct hf__op *op, int64_t now)
{
	int64_t waited_ms = now - op->started_at;
	if (!is_noted(core, op) || waited_ms < HF__NOTE_AFTER_MS)
		return 0;
	return waited_ms < UINT32_MAX ? (uint32_t)waited_ms : UINT32_MAX;
}

int64_t hf__note_pause(const struct hf__core *core, const struct hf__op *op, int64_t pause_ms,
                       int64_t now)
{
	int64_t due_ms = op->started_at + HF__NOTE_AFTER_MS - now;
	return is_noted(core, op) && due_ms > 0 && due_ms < pause_ms ? due_ms : pause_ms;
}
