/* Releasing a level, and removing what a call that has left may have left on the server. */
#include "core/release.h"
#include "core/cmd.h"
#include "core/core.h"
#include "core/mutants.h"

#include <inttypes.h>

/*
 * Whether other clients were notified of the release. If the server cannot count all of them, this
 * is assumed from time to time, to let them ask first. The answer is NULL if nothing was released.
 */
static bool may_have_notified(const struct hf__lock *lock, const struct hf__answer *answer,
                              int64_t now)
{
	int ourselves = hf__lock_is_watched(lock, HF__CHANNEL_LOCK, NULL) ? 1 : 0;
	if (!answer || answer->count > ourselves)
		return answer != NULL;
	return answer->uncounted && (uint32_t)now - lock->rested_at >= HF__UNCOUNTED_MS;
}

/*
 * Clients that were notified of the release ask first. If there are none, our waiter need not
 * pause.
 */
static void end_rest(struct hf__core *core, struct hf__lock *lock, const struct hf__answer *answer,
                     int64_t now)
{
	struct hf__op *next = hf__lock_first_waiter(lock);
	if (!next || next->phase != HF__OP_RESTING)
		return;
	if (may_have_notified(lock, answer, now)) {
		lock->rested_at = (uint32_t)now;
		hf__wheel_start(&core->wheel, &next->retry, now + HF__REST_MS);
	} else {
		next->phase = HF__OP_RUNNING;
	}
}

/* A waiter of this client is next, so its other waiters stay here. */
static void pass_to(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	struct hf__list *link;
	hf__list_each (link, &lock->queue) {
		struct hf__op *op = hf__list_item(link, struct hf__op, link);
		if (op->hold->cmd.wire != wire)
			continue;
		lock->held = op->hold;
		core->events->resume(core, op->hold, now);
		return;
	}
}

static void finish_released(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                            const struct hf__answer *answer, int64_t now)
{
	core->stats.releases++;
	end_rest(core, hold->cmd.lock, answer, now);
	op->number = hold->count;
	hf__op_succeed(core, op);
	if (hold->count == 0)
		hf__hold_end(core, hold, now);
	else
		hf__hold_detach_op(core, hold, now);
}

static void finish_lost(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                        const char *holder, size_t length, int64_t now)
{
	end_rest(core, hold->cmd.lock, NULL, now);
	if (hold->state != HF__HOLD_LOST)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_finish_lost(core, op, hold, holder, length, now);
	if (hold->count == 0)
		hf__hold_forget(core, hold, now);
	else
		hf__hold_detach_op(core, hold, now);
}

/* The call leaves without an answer; the last level is removed in the background. */
static void leave(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	end_rest(core, hold->cmd.lock, NULL, now);
	if (hold->state == HF__HOLD_RELEASING) {
		hold->doubtful = true;
		hf__hold_abandon(core, hold, now);
	} else if (hold->count == 0 && !hold->cmd.in_flight) {
		hf__hold_forget(core, hold, now);
	} else {
		hf__hold_detach_op(core, hold, now);
	}
}

static void finish_refused(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                           const struct hf__answer *answer, int64_t now)
{
	hf__op_finish(core, op, answer->error, "%s: %.*s; the lease ends in %" PRId64 " ms",
	              op->lock->name, (int)answer->length, answer->text,
	              hold->valid_until > now ? hold->valid_until - now : 0);
	leave(core, hold, now);
}

/* The answer for a hold that nobody owns any more. */
static void on_cleaning_answer(struct hf__core *core, struct hf__hold *hold,
                               const struct hf__answer *answer, int64_t now)
{
	int64_t pause =
		hold->lease_ms / 12 < HF__SLOW_POLL_MS ? hold->lease_ms / 12 + 1 : HF__SLOW_POLL_MS;
	int64_t at = now + hf__random_jitter(&core->random, pause);
	bool wait = !hold->cmd.lock->link->up || at > hold->ended_at;
	/* A refusal is final, unless the server becomes writable in time. */
	bool over = answer->outcome == HF__GONE || (!hold->owner && !hold->gave_up) ||
	            (answer->outcome == HF__FAILED && answer->error != HF_EREADONLY);
	if (over || (answer->outcome == HF__DONE && hold->cmd.count == 0))
		hf__hold_end(core, hold, now);
	else if (answer->outcome == HF__DONE)
		core->events->resume(core, hold, now); /* that released a level; now the rest */
	else
		hf__wheel_start(&core->wheel, &hold->timer, wait ? hold->ended_at : at);
}

/* No call waits for the answer. The hold continues, unless the server has lost it. */
static void on_level_answer(struct hf__core *core, struct hf__hold *hold, enum hf__outcome outcome,
                            int64_t now)
{
	if (outcome == HF__UNKNOWN)
		hold->doubtful = true;
	else if (outcome == HF__GONE && hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_detach_op(core, hold, now);
}

/* No call waits for the answer. */
static void on_late_answer(struct hf__core *core, struct hf__hold *hold,
                           const struct hf__answer *answer, int64_t now)
{
	if (hold->state == HF__HOLD_CLEANING)
		on_cleaning_answer(core, hold, answer, now);
	else if (hold->state == HF__HOLD_LOST && hold->count == 0)
		hf__hold_forget(core, hold, now);
	else
		on_level_answer(core, hold, answer->outcome, now);
}

static void on_done(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                    const struct hf__answer *answer, int64_t now)
{
	if (answer->next)
		pass_to(core, hold->cmd.lock, answer->next, now);
	if (hold->state == HF__HOLD_LOST)
		finish_lost(core, op, hold, NULL, 0, now);
	else
		finish_released(core, op, hold, answer, now);
}

static void on_gone(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                    const struct hf__answer *answer, int64_t now)
{
	/* The first execution did it, or the lease expired while the release waited. */
	bool expected = hold->doubtful || now >= hold->valid_until;
	if (hold->state == HF__HOLD_RELEASING && expected)
		finish_released(core, op, hold, NULL, now);
	else
		finish_lost(core, op, hold, answer->text, answer->length, now);
}

static void on_refused(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                       const struct hf__answer *answer, int64_t now)
{
	if (hold->state == HF__HOLD_LOST)
		finish_lost(core, op, hold, NULL, 0, now);
	else if (answer->outcome == HF__NOT_NOW)
		hf__op_retry_later(core, op, answer, now);
	else
		finish_refused(core, op, hold, answer, now);
}

/*
 * Ends the release of a lost hold at once if there is no connection: the server could only report
 * the present holder, which is not worth waiting for. It also does so while the owner acquires the
 * lock again, so that no release is in flight when that is granted.
 */
bool hf__release_end_lost(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__lock *lock = hold->cmd.lock;
	bool releases = hold->op && hold->op->want.action == HF__OP_RELEASE;
	if (hold->state != HF__HOLD_LOST || !releases || hold->cmd.in_flight)
		return false;
	if (lock->link->up && hf__hold_find(lock, hold->owner) == hold)
		return false;
	finish_lost(core, hold->op, hold, NULL, 0, now);
	return true;
}

/* The server may have recorded the loss, so no later command does. */
static void note_said(struct hf__hold *hold)
{
	if (hold->reason)
		hold->loss_said = true;
	if (!hold->gave_up || HF__MUTANT(ENTER_TWICE))
		return;
	hold->gave_up = false;
	hold->gave_up_at = 0;
}

static void on_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                      int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__op *op = hold->op;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (answer->outcome != HF__UNSENT && answer->outcome != HF__NOT_NOW)
		note_said(hold);
	/* A refusal is final: repeating the command would not help. */
	if (hold->state == HF__HOLD_LOST &&
	    (answer->outcome == HF__DONE || answer->outcome == HF__GONE ||
	     answer->outcome == HF__FAILED))
		hold->stays = false;
	if (!op) {
		on_late_answer(core, hold, answer, now);
		return;
	}
	switch (answer->outcome) {
	case HF__DONE: on_done(core, op, hold, answer, now); break;
	case HF__GONE: on_gone(core, op, hold, answer, now); break;
	case HF__UNKNOWN:
	case HF__UNSENT:
		hold->doubtful = hold->doubtful || answer->outcome == HF__UNKNOWN;
		if (op->lock->link->up)
			hf__op_retry_later(core, op, answer, now);
		else
			hf__release_end_lost(core, hold, now);
		break;
	default: on_refused(core, op, hold, answer, now);
	}
}

void hf__release_settle(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->op)
		hf__wheel_stop(&core->wheel, &hold->op->retry);
	struct hf__link *link = hold->cmd.lock->link;
	if (!link->up) {
		core->backend_ops->want_link(core->backend, link);
		return;
	}
	hold->cmd.verb = HF__SETTLE;
	hold->cmd.user = HF__CMD_OF_HOLD;
	if (hold->cmd.lease_ms < hold->lease_ms)
		hold->cmd.lease_ms = hold->lease_ms;
	hold->cmd.count = HF__MUTANT(DOUBLE_RELEASE) ? -1 : hold->stays ? 0 : hold->count;
	hold->cmd.on_answer = on_answer;
	hf__cmd_submit(core, link, &hold->cmd, now, core->config.command_timeout_ms);
}

void hf__release_correct(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	bool counted = hold->cmd.lock->traits->nesting == HF__NEST_COUNTED;
	if (!hold->doubtful || !hold->cmd.lock->link->up || hold->cmd.in_flight)
		return;
	hold->doubtful = false;
	if (counted)
		hf__release_settle(core, hold, now);
}

/*
 * The hold of this wire owner if its release waits for a hand-over, else NULL. If the lock got
 * another link meanwhile, the release was sent there: it may find the hold gone because it was
 * handed over.
 */
static struct hf__hold *find_moving(struct hf__lock *lock, uint64_t wire, bool may_be_gone)
{
	struct hf__list *link;
	hf__list_each (link, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->cmd.wire != wire)
			continue;
		if (hold->op && hold->cmd.in_flight && may_be_gone)
			hold->doubtful = true;
		return hold->op && !hold->cmd.in_flight ? hold : NULL;
	}
	return NULL;
}

void hf__release_on_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	struct hf__hold *hold = find_moving(lock, wire, true);
	if (hold && hold->state == HF__HOLD_LOST)
		finish_lost(core, hold->op, hold, NULL, 0, now);
	else if (hold)
		finish_released(core, hold->op, hold, NULL, now);
}

/* The release continues without a hand-over. */
void hf__release_on_not_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire,
                              enum hf__outcome outcome, int64_t now)
{
	struct hf__hold *hold = find_moving(lock, wire, outcome == HF__UNKNOWN);
	if (!hold)
		return;
	if (outcome == HF__UNKNOWN)
		hold->doubtful = true;
	hf__release_settle(core, hold, now);
}

struct hf__hold *hf__release_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = hf__hold_find_granted(op->lock, op->want.owner);
	if (!hold) {
		hf__op_finish(core, op, HF_ENOTHELD, "%s: not held by this owner", op->lock->name);
		return NULL;
	}
	if (hf__hold_is_busy(hold)) {
		hf__lock_park(core, op);
		return NULL;
	}
	/* If the hold turns out to be lost now, this call removes what is left of it. */
	hold->op = op;
	op->hold = hold;
	hf__hold_check(core, hold, now);
	hold->count--;
	hold->doubtful = false;
	bool here = op->lock->traits->nesting == HF__NEST_HERE && hold->count > 0;
	if (hold->renewed_from > hold->count && !HF__MUTANT(RENEW_RELEASED)) {
		hold->renewed_from = 0;
		hold->end_at = hold->valid_until > hold->leased_until ? hold->valid_until
		                                                      : hold->leased_until;
		hf__list_remove(&hold->renew);
	}
	if (hold->state == HF__HOLD_HELD && hold->count == 0) {
		hold->state = HF__HOLD_RELEASING;
		hf__hold_hide(core, hold);
	}
	if (hf__release_end_lost(core, hold, now))
		return NULL;
	if (!here)
		return hold;
	if (hold->state == HF__HOLD_LOST)
		finish_lost(core, op, hold, NULL, 0, now);
	else
		finish_released(core, op, hold, NULL, now);
	return NULL;
}

void hf__release_on_deadline(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = op->hold;
	if (!hold)
		hf__op_finish(core, op, HF_EBUSY,
		              "%s: another call of this owner is in progress; nothing was released",
		              op->lock->name);
	else if (hold->state == HF__HOLD_LOST)
		hf__hold_finish_lost(core, op, hold, NULL, 0, now);
	else
		hf__op_finish(core, op, HF_EUNKNOWN,
		              "%s: release not confirmed in %" PRId64
		              " ms%s%s; it is retried until "
		              "the lease ends in %" PRId64 " ms",
		              op->lock->name, now - op->started_at, op->lock->link->up ? "" : ": ",
		              op->lock->link->up ? "" : op->lock->link->why,
		              hold->valid_until > now ? hold->valid_until - now : 0);
	if (hold)
		leave(core, hold, now);
}
