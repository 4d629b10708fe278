/* Giving a level up, and removing what a call that has left may have left behind. */
#include "core/core.h"

#include <inttypes.h>

static struct hf__op *first_waiter(const struct hf__lock *lock)
{
	return hf__list_empty(&lock->queue) ? NULL
	                                    : hf__list_item(lock->queue.next, struct hf__op, link);
}

/* Those of other processes who were told ask first. If there are none, nobody waits for them. */
static void end_rest(struct hf__core *core, struct hf__lock *lock, int64_t told, int64_t now)
{
	struct hf__op *next = first_waiter(lock);
	if (!next || !next->rests)
		return;
	int ourselves = hf__lock_is_watched(lock, HF__CHANNEL_LOCK, NULL) ? 1 : 0;
	if (told > ourselves)
		hf__wheel_start(&core->wheel, &next->retry, now + HF__REST_MS);
	else
		next->rests = false;
}

/* It is the turn of one of this process, so the others go on waiting here. */
static void pass_to(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	struct hf__list *link;
	hf__list_each (link, &lock->queue) {
		struct hf__op *op = hf__list_item(link, struct hf__op, link);
		if (!op->here || op->hold->cmd.wire != wire)
			continue;
		lock->held = op->hold;
		hf__hold_resume(core, op->hold, now);
		return;
	}
}

static void released(struct hf__core *core, struct hf__op *op, struct hf__hold *hold, int64_t told,
                     int64_t now)
{
	core->stats.releases++;
	end_rest(core, hold->cmd.lock, told, now);
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
	end_rest(core, hold->cmd.lock, 0, now);
	if (hold->state != HF__HOLD_LOST)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_finish_lost(core, op, hold, holder, length, now);
	if (hold->count == 0)
		hf__hold_forget(core, hold, now);
	else
		hf__hold_idle(core, hold, now);
}

/* The call leaves without a word from the server; the last level goes on being removed. */
static void leave(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	end_rest(core, hold->cmd.lock, 0, now);
	if (hold->state == HF__HOLD_RELEASING) {
		hold->doubtful = true;
		hf__hold_abandon(core, hold, now);
	} else if (hold->count == 0 && !hold->cmd.in_flight) {
		hf__hold_forget(core, hold, now);
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
	/* What was refused will be refused again, unless the server becomes writable in time. */
	bool over = answer->outcome == HF__GONE ||
	            (answer->outcome == HF__FAILED && answer->error != HF_EREADONLY);
	if (over || (answer->outcome == HF__DONE && hold->cmd.count == 0))
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
	if (hold->state == HF__HOLD_LOST &&
	    (answer->outcome == HF__DONE || answer->outcome == HF__GONE))
		hold->stays = false;
	if (!op) {
		if (hold->state == HF__HOLD_CLEANING)
			cleaned(core, hold, answer, now);
		else if (hold->state == HF__HOLD_LOST && hold->count == 0)
			hf__hold_forget(core, hold, now);
		else
			level_settled(core, hold, answer->outcome, now);
		return;
	}
	switch (answer->outcome) {
	case HF__DONE:
		if (answer->next)
			pass_to(core, hold->cmd.lock, answer->next, now);
		if (hold->state == HF__HOLD_LOST)
			was_lost(core, op, hold, NULL, 0, now);
		else
			released(core, op, hold, answer->count, now);
		break;
	case HF__GONE:
		/* A repeat finds what the first one did; and what was given up in time may end. */
		if (hold->state == HF__HOLD_RELEASING &&
		    (hold->doubtful || now >= hold->valid_until))
			released(core, op, hold, 0, now);
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
	hold->cmd.count = HF__MUTANT(DOUBLE_RELEASE) ? -1 : hold->stays ? 0 : hold->count;
	hold->cmd.answered = answered;
	hf__core_submit(core, &hold->cmd, now, core->config.command_timeout_ms);
}

/* How long a row of hand-overs may last. Where a round trip takes long, so does everybody's turn. */
static uint32_t row_ms(const struct hf__core *core)
{
	int64_t ms = core->move_ms * HF__MOVES_TRIPS;
	return ms < HF__MOVES_MS        ? HF__MOVES_MS
	       : ms > HF__MOVES_MOST_MS ? HF__MOVES_MOST_MS
	                                : (uint32_t)ms;
}

/*
 * Gives the hold straight to the first who waits for it here, in one round trip, so that the lock is
 * never free in between. Not for ever: others wait too, and they only hear of a release.
 */
static bool hand_over(struct hf__core *core, const struct hf__hold *hold, int64_t now)
{
	struct hf__op *next = first_waiter(hold->cmd.lock);
	if (!hf__kind_of(hold->cmd.lock)->moves || hold->state != HF__HOLD_RELEASING ||
	    !core->linked || !next || next->hold->cmd.in_flight || next->deadline.at <= now)
		return false;
	/* Waiters elsewhere sleep as long as it seemed to last: it must not end sooner unheard. */
	int64_t lease_ms = hf__acquire_lease(core, next);
	if (lease_ms < hold->lease_ms || lease_ms < hold->cmd.lease_ms)
		return false;
	if (hold->moves >= HF__MOVES_MAX || (uint32_t)now - hold->moving_since >= row_ms(core)) {
		next->rests = true;
		return false;
	}
	hf__acquire_from(core, next->hold, hold, now);
	return true;
}

/* The hold of this wire owner whose release waits for a hand-over, or NULL. */
static struct hf__hold *find_moving(struct hf__lock *lock, uint64_t wire)
{
	struct hf__list *link;
	hf__list_each (link, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->cmd.wire == wire)
			return hold->op && !hold->cmd.in_flight ? hold : NULL;
	}
	return NULL;
}

void hf__release_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	struct hf__hold *hold = find_moving(lock, wire);
	if (hold && hold->state == HF__HOLD_LOST)
		was_lost(core, hold->op, hold, NULL, 0, now);
	else if (hold)
		released(core, hold->op, hold, 0, now);
}

/* It goes the usual way. */
void hf__release_not_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire,
                           enum hf__outcome outcome, int64_t now)
{
	struct hf__hold *hold = find_moving(lock, wire);
	if (!hold)
		return;
	if (outcome == HF__UNKNOWN)
		hold->doubtful = true;
	hf__release_settle(core, hold, now);
}

void hf__release_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = hf__hold_find(op->lock, op->want.owner);
	if (!hold || (hold->state != HF__HOLD_HELD && hold->state != HF__HOLD_LOST)) {
		hf__core_finish(core, op, HF_ENOTHELD, "%s: not held by this owner",
		                op->lock->name);
		return;
	}
	if (hf__hold_busy(hold)) {
		hf__lock_park(core, op);
		return;
	}
	/* Ours from here on: if its time is over just now, nobody but us removes what is left of it. */
	hold->op = op;
	op->hold = hold;
	hf__hold_check(core, hold, now);
	hold->count--;
	hold->doubtful = false;
	bool here = hf__kind_of(op->lock)->nesting == HF__NEST_HERE && hold->count > 0;
	if (hold->watched_from > hold->count && !HF__MUTANT(RENEW_RELEASED)) {
		hold->watched_from = 0;
		hold->end_at = hold->valid_until > hold->leased_until ? hold->valid_until
		                                                      : hold->leased_until;
		hf__list_remove(&hold->renew);
	}
	if (hold->state == HF__HOLD_HELD && hold->count == 0) {
		hold->state = HF__HOLD_RELEASING;
		hf__hold_hide(core, hold);
	}
	if (!here && !hand_over(core, hold, now))
		hf__release_settle(core, hold, now);
	else if (here && hold->state == HF__HOLD_LOST)
		was_lost(core, op, hold, NULL, 0, now);
	else if (here)
		released(core, op, hold, 0, now);
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
