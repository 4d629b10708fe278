/* Handing a hold over: a release that gives it straight to the next waiter of the same client. */
#include "core/handover.h"
#include "core/acquire.h"
#include "core/core.h"
#include "core/mutants.h"
#include "core/release.h"

/* The answer is for two calls: it finishes the release, and it may be a grant. */
static void on_move(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                    int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__lock *lock = cmd->lock;
	uint64_t from = cmd->from;
	lock->refs++;
	if (answer->outcome == HF__GRANTED) {
		core->stats.handovers++;
		core->move_ms = now - cmd->sent_at;
		hf__acquire_on_answer(core, cmd, answer, now);
		hf__release_on_moved(core, lock, from, now);
	} else {
		hold->moves = 0;
		if (HF__MUTANT(BLIND_MOVE) && answer->outcome == HF__UNKNOWN)
			hf__release_on_moved(core, lock, from, now);
		else
			hf__release_on_not_moved(core, lock, from, answer->outcome, now);
		if (answer->outcome == HF__GONE && hold->op)
			hf__acquire_ask(core, hold, now);
		else
			hf__acquire_on_answer(core, cmd, answer, now);
	}
	hf__lock_unref(core, lock);
}

static void prepare_move(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *from,
                         int64_t now)
{
	hf__acquire_prepare(core, hold, now);
	hold->moves = from->moves + 1;
	hold->moving_since = from->moving_since;
	hold->cmd.verb = HF__MOVE;
	hold->cmd.from = from->cmd.wire;
	hold->cmd.kept = core->config.history > 0;
	hold->cmd.on_answer = on_move;
}

static void take_from(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *from,
                      int64_t now)
{
	hf__wheel_stop(&core->wheel, &hold->op->retry);
	hf__hold_take_cell(hold);
	prepare_move(core, hold, from, now);
	hf__acquire_submit(core, hold, now);
}

/* How long a series of hand-overs may last: longer if round trips are slow. */
static uint32_t series_ms(const struct hf__core *core)
{
	int64_t ms = core->move_ms * HF__MOVES_TRIPS;
	return ms < HF__MOVES_MS        ? HF__MOVES_MS
	       : ms > HF__MOVES_MOST_MS ? HF__MOVES_MOST_MS
	                                : (uint32_t)ms;
}

/*
 * One round trip gives the hold to the first waiter of this client, so that the lock is never free
 * in between. A series of hand-overs is limited: other clients wait too, and only a release wakes
 * them up.
 */
bool hf__handover_start(struct hf__core *core, const struct hf__hold *hold, int64_t now)
{
	struct hf__op *next = hf__lock_first_waiter(hold->cmd.lock);
	if (!hold->cmd.lock->traits->moves || hold->state != HF__HOLD_RELEASING ||
	    !hold->cmd.lock->link->up || !next || next->hold->cmd.in_flight ||
	    next->deadline.at <= now)
		return false;
	/* Waiters elsewhere sleep until the lease that they saw expires: keep it that long. */
	int64_t lease_ms = hf__acquire_lease(core, next);
	if (lease_ms < hold->lease_ms || lease_ms < hold->cmd.lease_ms)
		return false;
	if (hold->moves >= HF__MOVES_MAX || (uint32_t)now - hold->moving_since >= series_ms(core)) {
		next->phase = HF__OP_RESTING;
		return false;
	}
	take_from(core, next->hold, hold, now);
	return true;
}
