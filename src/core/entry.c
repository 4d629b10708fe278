/* The history: which commands leave an entry in it, and what the entry says. */
#include "core/entry.h"
#include "core/cmd.h"
#include "core/core.h"

#include <assert.h>

bool hf__entry_keeps(const struct hf__core *core, const struct hf__op *op)
{
	return core->config.history && (!core->config.history_contended || op->waited);
}

void hf__entry_give_up(const struct hf__core *core, const struct hf__op *op, int result,
                       int64_t now)
{
	struct hf__hold *hold = op->hold;
	if (!core->config.history || !op->waited || !hold || hold->state != HF__HOLD_ASKING ||
	    op->lock->traits->trace != HF__TRACE_LEASE || result == HF_ENOMEM)
		return;
	int64_t waited_ms = now - op->started_at;
	hold->gave_up = true;
	hold->cancelled = result == HF_ECANCELLED;
	hold->gave_up_at = now;
	hold->waited_ms = waited_ms < UINT32_MAX ? (uint32_t)waited_ms : UINT32_MAX;
}

/* How long the hold has been held by then; -1 if it never was, as far as this client knows. */
static int64_t held_ms(const struct hf__hold *hold, int64_t now)
{
	if (hold && hold->reason)
		return hold->held_ms;
	return hold && hold->granted_us ? now - hold->granted_us / 1000 : -1;
}

static const struct hf__hold *find_wire(const struct hf__lock *lock, uint64_t wire)
{
	const struct hf__list *link;
	hf__list_each (link, &lock->holds) {
		const struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->cmd.wire == wire)
			return hold;
	}
	return NULL;
}

/* A nested level leaves no entry. */
static bool enter_grant(const struct hf__cmd *cmd, struct hf__entry *entry)
{
	const struct hf__hold *hold = hf__list_item(cmd, const struct hf__hold, cmd);
	if (!cmd->kept || hold->state != HF__HOLD_ASKING)
		return false;
	if (hold->op)
		entry->ms = cmd->sent_at - hold->op->started_at;
	if (cmd->verb == HF__MOVE)
		entry->from_ms = held_ms(find_wire(cmd->lock, cmd->from), cmd->sent_at);
	return true;
}

/* Losses go into every history, even if their grants did not. */
static bool enter_end(const struct hf__cmd *cmd, struct hf__entry *entry)
{
	const struct hf__hold *hold = hf__list_item(cmd, const struct hf__hold, cmd);
	if (cmd->count != 0 || !(cmd->kept || hold->reason || hold->gave_up))
		return false;
	if (hold->gave_up) {
		entry->gave_up = hold->cancelled ? HF__GAVE_UP_CANCELLED : HF__GAVE_UP_TIMED_OUT;
		entry->waited_ms = hold->waited_ms;
		entry->ago_ms = cmd->sent_at - hold->gave_up_at;
		return true;
	}
	entry->ms = held_ms(hold, cmd->sent_at);
	entry->is_lost = hold->reason != 0;
	entry->says_gone = hold->reason && !hold->loss_said;
	return true;
}

/* Permits are named by their ids, and need not belong to this client. */
static bool enter_return(const struct hf__core *core, const struct hf__cmd *cmd,
                         struct hf__entry *entry)
{
	bool kept = !core->config.history_contended;
	for (uint16_t i = 0; i < cmd->items; i++) {
		uint64_t wire = hf__permit_wire(core, cmd->permit[i]);
		const struct hf__hold *hold = wire ? find_wire(cmd->lock, wire) : NULL;
		kept = kept || (hold && hold->cmd.kept);
		if (cmd->items == 1)
			entry->ms = held_ms(hold, cmd->sent_at);
	}
	return kept;
}

bool hf__entry_make(const struct hf__core *core, const struct hf__cmd *cmd,
                    struct hf__entry *ret_entry)
{
	assert(core && cmd && cmd->verb < HF__VERBS && ret_entry);
	*ret_entry = (struct hf__entry){.ms = -1, .from_ms = -1};
	if (!core->config.history)
		return false;
	switch (cmd->verb) {
	case HF__ASK:
	case HF__MOVE: return enter_grant(cmd, ret_entry);
	case HF__SETTLE: return enter_end(cmd, ret_entry);
	case HF__PERMITS_RELEASE: return enter_return(core, cmd, ret_entry);
	case HF__FORCE: return true;
	default: return false;
	}
}
