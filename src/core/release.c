/* Giving a level up, and removing what a call that has left may have left behind. */
#include "core/core.h"

#include <inttypes.h>

static void released(struct hf__core *core, struct hf__op *op, struct hf__hold *hold, int64_t now)
{
	core->stats.releases++;
	op->number = hold->count;
	hf__core_succeed(core, op);
	if (hold->count == 0)
		hf__hold_end(core, hold, now);
	else
		hf__hold_idle(core, hold, now);
}

static void was_lost(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                     const char *holder, size_t length, int64_t now)
{
	if (hold->state != HF__HOLD_LOST)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_finish_lost(core, op, hold, holder, length, now);
	if (hold->count == 0)
		hf__hold_end(core, hold, now);
	else
		hf__hold_idle(core, hold, now);
}

/* The call leaves without a word from the server; the last level goes on being removed. */
static void leave(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_RELEASING) {
		hold->doubtful = true;
		hf__hold_abandon(core, hold, now);
	} else if (hold->count == 0 && !hold->cmd.in_flight) {
		hf__hold_end(core, hold, now);
	} else {
		hf__hold_idle(core, hold, now);
	}
}

static void refused(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                    const struct hf__answer *answer, int64_t now)
{
	hf__core_finish(core, op, answer->error, "%s: %.*s; the lease ends in %" PRId64 " ms",
	                op->lock->name, (int)answer->length, answer->text,
	                hold->valid_until > now ? hold->valid_until - now : 0);
	leave(core, hold, now);
}

/* Answers for a hold that is nobody's any more. */
static void cleaned(struct hf__core *core, struct hf__hold *hold, const struct hf__answer *answer,
                    int64_t now)
{
	int64_t pause =
		hold->lease_ms / 12 < HF__SLOW_POLL_MS ? hold->lease_ms / 12 + 1 : HF__SLOW_POLL_MS;
	int64_t at = now + hf__random_jitter(&core->random, pause);
	bool wait = !core->linked || at > hold->ended_at;
	if (answer->outcome == HF__GONE || (answer->outcome == HF__DONE && hold->cmd.count == 0))
		hf__hold_end(core, hold, now);
	else if (answer->outcome == HF__DONE)
		hf__hold_resume(core, hold, now); /* that was a level; now the rest */
	else
		hf__wheel_start(&core->wheel, &hold->timer, wait ? hold->ended_at : at);
}

/* Nobody waits for it: the hold goes on, unless the server has it no more. */
static void level_settled(struct hf__core *core, struct hf__hold *hold, enum hf__outcome outcome,
                          int64_t now)
{
	if (outcome == HF__UNKNOWN)
		hold->doubtful = true;
	else if (outcome == HF__GONE && hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_idle(core, hold, now);
}

static void answered(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__op *op = hold->op;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (!op) {
		if (hold->state == HF__HOLD_CLEANING)
			cleaned(core, hold, answer, now);
		else if (hold->state == HF__HOLD_LOST && hold->count == 0)
			hf__hold_end(core, hold, now);
		else
			level_settled(core, hold, answer->outcome, now);
		return;
	}
	switch (answer->outcome) {
	case HF__DONE:
		if (hold->state == HF__HOLD_LOST)
			was_lost(core, op, hold, NULL, 0, now);
		else
			released(core, op, hold, now);
		break;
	case HF__GONE:
		/* A repeat finds what the first one did; and what was given up in time may end. */
		if (hold->state == HF__HOLD_RELEASING &&
		    (hold->doubtful || now >= hold->valid_until))
			released(core, op, hold, now);
		else
			was_lost(core, op, hold, answer->text, answer->length, now);
		break;
	case HF__UNKNOWN: hold->doubtful = true; break;
	case HF__UNSENT:
		if (core->linked)
			hf__core_not_now(core, op, answer, now);
		break;
	case HF__NOT_NOW:
		if (hold->state == HF__HOLD_LOST)
			was_lost(core, op, hold, NULL, 0, now);
		else
			hf__core_not_now(core, op, answer, now);
		break;
	default:
		if (hold->state == HF__HOLD_LOST)
			was_lost(core, op, hold, NULL, 0, now);
		else
			refused(core, op, hold, answer, now);
	}
}

void hf__release_settle(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->op)
		hf__wheel_stop(&core->wheel, &hold->op->retry);
	if (!core->linked) {
		core->backend_ops->want_link(core->backend);
		return;
	}
	hold->cmd.verb = HF__SETTLE;
	hold->cmd.user = HF__CMD_OF_HOLD;
	if (hold->cmd.lease_ms < hold->lease_ms)
		hold->cmd.lease_ms =
			hold->lease_ms; /* an unanswered extension may have made it longer */
	hold->cmd.count = HF__MUTANT(DOUBLE_RELEASE) ? -1 : hold->count;
	hold->cmd.answered = answered;
	hf__core_submit(core, &hold->cmd, now, core->config.command_timeout_ms);
}

void hf__release_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = hf__hold_find(op->lock, op->owner);
	if (!hold || (hold->state != HF__HOLD_HELD && hold->state != HF__HOLD_LOST)) {
		hf__core_finish(core, op, HF_ENOTHELD, "%s: not held by this owner",
		                op->lock->name);
		return;
	}
	if (hf__hold_busy(hold)) {
		hf__lock_park(core, op);
		return;
	}
	hf__hold_check(core, hold, now);
	hold->op = op;
	op->hold = hold;
	hold->count--;
	hold->doubtful = false;
	bool here = hf__kind_of(op->lock)->nesting == HF__NEST_HERE && hold->count > 0;
	if (hold->watched_from > hold->count && !HF__MUTANT(RENEW_RELEASED)) {
		hold->watched_from = 0;
		hf__list_remove(&hold->renew);
	}
	if (hold->state == HF__HOLD_HELD && hold->count == 0) {
		hold->state = HF__HOLD_RELEASING;
		hf__hold_hide(core, hold);
	}
	if (!here)
		hf__release_settle(core, hold, now);
	else if (hold->state == HF__HOLD_LOST)
		was_lost(core, op, hold, NULL, 0, now);
	else
		released(core, op, hold, now);
}

void hf__release_deadline(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = op->hold;
	if (!hold)
		hf__core_finish(core, op, HF_EBUSY,
		                "%s: another call of this owner is under way; nothing was released",
		                op->lock->name);
	else if (hold->state == HF__HOLD_LOST)
		hf__hold_finish_lost(core, op, hold, NULL, 0, now);
	else
		hf__core_finish(core, op, HF_EUNKNOWN,
		                "%s: release not confirmed in %" PRId64
		                " ms%s%s; it is tried until "
		                "the lease ends in %" PRId64 " ms",
		                op->lock->name, now - op->started_at, core->linked ? "" : ": ",
		                core->linked ? "" : core->link_why,
		                hold->valid_until > now ? hold->valid_until - now : 0);
	if (hold)
		leave(core, hold, now);
}
