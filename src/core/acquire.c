/* Acquiring a lock or one more level of it, and extending a lease: every command that asks. */
#include "core/acquire.h"
#include "core/cmd.h"
#include "core/core.h"
#include "core/durable.h"
#include "core/entry.h"
#include "core/mutants.h"
#include "core/note.h"
#include "core/record.h"
#include "core/release.h"
#include "core/spin.h"

#include <assert.h>
#include <inttypes.h>

int64_t hf__acquire_lease(const struct hf__core *core, const struct hf__op *op)
{
	return op->want.lease_ms ? op->want.lease_ms : core->config.watchdog_ms;
}

static void ask_later(struct hf__core *core, struct hf__op *op, int64_t at)
{
	hf__wheel_start(&core->wheel, &op->retry, at);
}

/* Nothing has changed on the server, so the next waiter asks when this one would have asked. */
static void pass_retry_on(struct hf__core *core, const struct hf__op *op)
{
	struct hf__op *next = hf__lock_first_waiter(op->lock);
	if (!next || !hf__wheel_is_running(&op->retry))
		return;
	if (op->phase == HF__OP_RESTING)
		next->phase = HF__OP_RESTING;
	if (!next->hold->cmd.in_flight && !hf__wheel_is_running(&next->retry))
		ask_later(core, next, op->retry.at);
}

static void leave_queue(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__lock *lock = op->lock;
	if (hf__list_empty(&op->link))
		return;
	bool first = lock->queue.next == &op->link;
	hf__list_remove(&op->link);
	hf__lock_end_watches_soon(core, lock, now);
	if (!first)
		return;
	pass_retry_on(core, op);
	hf__lock_listen_soon(core, lock, now);
}

static void let_idle(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->op = NULL;
	hf__cmd_withdraw(core, &hold->cmd);
	if (hold->state == HF__HOLD_HELD)
		hf__release_correct(core, hold, now);
	if (!hold->cmd.in_flight)
		hf__hold_detach_op(core, hold, now);
}

/* The call has left. An acquisition that was not granted ends with it; a hold continues. */
static void let_go(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_ASKING)
		hf__hold_abandon(core, hold, now);
	else
		let_idle(core, hold, now);
}

void hf__acquire_give_up(struct hf__core *core, struct hf__op *op, int result, int64_t now)
{
	struct hf__lock *lock = op->lock;
	struct hf__hold *hold = op->hold;
	int64_t waited = now - op->started_at;
	leave_queue(core, op, now);
	hf__entry_give_up(core, op, result, now);
	if (result && result == op->refusal)
		hf__op_finish_refused(core, op);
	else if (result == HF_EUNKNOWN)
		hf__op_finish(core, op, result,
		              "%s: an attempt was sent and not answered in %" PRId64
		              " ms; what it may have left is removed in the background",
		              lock->name, waited);
	else if (result == HF_EUNREACHABLE)
		hf__op_finish(core, op, lock->link->up ? result : lock->link->error,
		              "%s: tried for %" PRId64 " ms: %s", lock->name, waited,
		              lock->link->why);
	else if ((result == HF_EBUSY || result == HF_ETIMEDOUT) && op->number == HF__TTL_UNSET)
		hf__op_finish(core, op, result,
		              "%s: waited %" PRId64
		              " ms; the number of permits was not set at the last attempt",
		              lock->name, waited);
	else if ((result == HF_EBUSY || (result == HF_ETIMEDOUT && op->waited)) && op->number >= 0)
		hf__op_finish(core, op, result,
		              "%s: waited %" PRId64 " ms; the holder's lease had %" PRId64
		              " ms left at the last attempt",
		              lock->name, waited, op->number);
	else if (result == HF_EBUSY || result == HF_ETIMEDOUT)
		hf__op_finish(core, op, result, "%s: waited %" PRId64 " ms", lock->name, waited);
	else
		hf__op_finish(core, op, result, "%s: %s after %" PRId64 " ms", lock->name,
		              result == HF_ECANCELLED ? "cancelled" : "gave up", waited);
	if (hold)
		let_go(core, hold, now);
}

/* Permits that were acquired together are separate holds from now on. */
static void part_siblings(struct hf__core *core, struct hf__op *op, struct hf__hold *first)
{
	if (op->lock->traits->nesting == HF__NEST_APART)
		first->cmd.items = 1;
	while (!hf__list_empty(&op->siblings)) {
		struct hf__hold *hold = hf__list_item(op->siblings.next, struct hf__hold, link);
		hf__list_remove(&hold->link);
		hf__hold_join(core, hold, first);
	}
}

/* The grant is not a hold: nothing has to be renewed or released. */
static void finish_taken(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                         int64_t now)
{
	hold->doubtful = false;
	core->stats.grants++;
	leave_queue(core, op, now);
	op->number = 0;
	hf__op_succeed(core, op);
	hf__hold_end(core, hold, now);
}

static void finish_granted(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                           int64_t token, int64_t now)
{
	hold->doubtful = false;
	hold->cmd.waited_ms = 0;
	if (hold->count++ == 0) {
		hf__hold_forget_lost(core, hold, now);
		hold->token = token;
		if (hold->moves == 0 && op->lock->traits->moves)
			hold->moving_since = (uint32_t)now;
	}
	if (!op->want.lease_ms && !hold->renewed_from) {
		hold->renewed_from = hold->count;
		hold->was_renewed = true;
	}
	if (hf__hold_is_renewed(hold) && hold->renew_at == HF__NEVER)
		hold->renew_at = hf__watchdog_next(hold->cmd.sent_at, core->config.watchdog_ms);
	hf__hold_arm(core, hold);
	core->stats.grants += op->lock->traits->several ? (uint64_t)op->want.amount : 1;
	leave_queue(core, op, now);
	part_siblings(core, op, hold);
	op->number = hold->token;
	op->owner = hold->owner;
	op->lock->contended = op->waited;
	if (hold->cmd.lock->traits->ordered)
		hf__lock_unwatch(core, hold->cmd.lock, hold);
	hf__op_succeed(core, op);
	hf__lock_let_next(core, hold->cmd.lock, now); /* the next waiter polls from now on */
	hf__hold_detach_op(core, hold, now);
}

/* The grant arrived too late to be valid. The server knows the hold, so another ask renews it. */
static void on_late_grant(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                          int64_t now)
{
	hold->doubtful = true;
	if (op->cancelled)
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
	else if (op->want.wait_ms == HF_NOWAIT)
		hf__acquire_give_up(core, op, HF_ETIMEDOUT, now);
	else
		hf__acquire_ask(core, hold, now);
}

/* How long to wait if nothing wakes the call up. */
static int64_t pause_of(struct hf__core *core, const struct hf__op *op, int64_t ttl_ms, int64_t now)
{
	if (op->lock->traits->ordered && ttl_ms <= 0)
		/* Another waiter is next in the queue, and it may never take the lock. */
		return hf__random_jitter(&core->random, HF__OTHERS_MS);
	int64_t poll = HF__SLOW_POLL_MS;
	/* A waiter that does not ask for as long as the watchdog's lease counts as dead. */
	if (op->lock->traits->ordered && core->config.watchdog_ms / 4 < poll)
		poll = core->config.watchdog_ms / 4 + 1;
	/* Without a deadline, only another ask keeps the place for longer than place_ms. */
	if (op->want.wait_ms == 0 && op->hold->cmd.place_ms > 0 &&
	    op->hold->cmd.place_ms / 3 < poll)
		poll = op->hold->cmd.place_ms / 3 + 1;
	int64_t pause = hf__random_jitter(&core->random, poll);
	return hf__note_pause(core, op, ttl_ms >= 0 && ttl_ms < pause ? ttl_ms + 1 : pause, now);
}

static void sleep_on(struct hf__core *core, struct hf__op *op, int64_t pause_ms, int64_t now)
{
	ask_later(core, op, now + pause_ms);
	core->host_ops->on_listen(core->host, op);
}

/* Listens for the release and waits; asks once more first if it did not listen before. */
static void listen_to(struct hf__core *core, struct hf__op *op, enum hf__channel channel,
                      int64_t ttl_ms, int64_t now)
{
	bool ordered = channel == HF__CHANNEL_WAITER;
	struct hf__hold *own = ordered ? op->hold : NULL;
	bool watched = hf__lock_is_watched(op->lock, channel, own);
	/* A holder of an unordered kind announces its release on the lock's own channel. */
	if ((ordered && hf__lock_watch(core, op->lock, HF__CHANNEL_LOCK, NULL)) ||
	    hf__lock_watch(core, op->lock, channel, own))
		hf__acquire_give_up(core, op, HF_ENOMEM, now);
	else if (!watched && !HF__MUTANT(NO_SECOND_ASK))
		hf__acquire_ask(core, op->hold, now);
	else
		sleep_on(core, op, pause_of(core, op, ttl_ms, now), now);
}

void hf__acquire_listen(struct hf__core *core, struct hf__op *op, int64_t now)
{
	assert(!op->listens && !op->hold->cmd.in_flight);
	op->listens = true;
	listen_to(core, op, op->lock->traits->channel, -1, now);
}

static void wait_for(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                     int64_t now)
{
	if (op->lock->traits->ordered && !op->listens && hf__lock_is_held_here(op->lock, now)) {
		/* This client holds the lock, and its release will say which waiter is next. */
		op->phase = HF__OP_LOCAL;
		ask_later(core, op, now + pause_of(core, op, answer->ttl_ms, now));
		hf__lock_listen_soon(core, op->lock, now);
		core->host_ops->on_idle(core->host, op);
	} else if (answer->watched) {
		sleep_on(core, op, HF__WATCHED_POLL_MS, now);
	} else {
		listen_to(core, op, answer->channel, answer->ttl_ms, now);
	}
}

/* An ask that was answered BUSY has a place in the server's queue. */
static bool leaves_place(const struct hf__hold *hold)
{
	return hold->cmd.place_ms > 0 || hf__policy_of(hold->cmd.lock)->keeps_place;
}

static void on_busy(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                    int64_t now)
{
	core->false_wakeups += op->woken;
	op->woken = false;
	op->hold->doubtful = false;
	op->hold->placed = leaves_place(op->hold);
	if (op->lock->held == op->hold) {
		op->lock->held = NULL; /* it was not the next after all */
		hf__lock_let_next(core, op->lock, now);
	}
	op->refusal = 0;
	op->number = answer->ttl_ms;
	if (op->sync)
		hf__durable_stop(core, op); /* the grant is gone */
	if (op->cancelled) {
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
		return;
	}
	if (op->want.wait_ms == HF_NOWAIT) {
		hf__acquire_give_up(core, op, HF_EBUSY, now);
		return;
	}
	hf__op_count_wait(core, op);
	if (op->late) {
		core->stats.timeouts++;
		hf__acquire_give_up(core, op, HF_ETIMEDOUT, now);
		return;
	}
	if (op->lock->traits->spins)
		ask_later(core, op, now + hf__spin_pause(core, op));
	else
		wait_for(core, op, answer, now);
}

static void on_refused(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                       int64_t now)
{
	struct hf__hold *hold = op->hold;
	leave_queue(core, op, now);
	hf__op_finish(core, op, answer->error, "%s: %.*s", op->lock->name, (int)answer->length,
	              answer->text);
	/* Without the right to one of its commands, a request may have been executed half way. */
	if (hold->cmd.verb == HF__ASK &&
	    (answer->error == HF_EDENIED || answer->error == HF_EREFUSED))
		hold->doubtful = true;
	let_go(core, hold, now);
}

/* The ask may have run. The server remembers only for a while what it took without a lease. */
static void doubt(struct hf__hold *hold)
{
	if (!hold->doubtful && hold->cmd.lock->traits->trace == HF__TRACE_TAKEN)
		hold->valid_until = hold->cmd.sent_at + HF__TAKEN_MS * 9 / 10;
	hold->doubtful = true;
}

/* The outcome is not known, or not final: the next connection or the next retry asks again. */
static void on_no_answer(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                         int64_t now)
{
	if (answer->outcome == HF__UNKNOWN)
		doubt(op->hold);
	if (op->cancelled)
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
	else if (hf__cmd_lacks_memory(answer, op->lock->link))
		hf__acquire_give_up(core, op, HF_ENOMEM, now);
	else if (hf__cmd_is_retried(answer, op->lock->link))
		hf__op_retry_later(core, op, answer, now);
}

static void on_gone(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                    const struct hf__answer *answer, int64_t now)
{
	if (hold->state == HF__HOLD_ASKING) {
		/* An unanswered ask took several permits and one of them is gone: none counts. */
		hold->doubtful = true;
		hf__acquire_give_up(core, op, HF_EUNKNOWN, now);
		return;
	}
	if (hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_finish_lost(core, op, hold, answer->text, answer->length, now);
	hf__hold_detach_op(core, hold, now);
}

/* The answer to an ask whose call has left. */
static void on_cleaning_answer(struct hf__core *core, struct hf__hold *hold,
                               const struct hf__answer *answer, int64_t now)
{
	if (answer->outcome == HF__BUSY)
		hold->placed = leaves_place(hold);
	if (hf__hold_leaves_traces(hold))
		core->events->resume(core, hold, now);
	else
		hf__hold_end_traceless(core, hold, now);
}

/* When the requested level expires, which is noted if it has a lease of its own. */
static int64_t end_of(const struct hf__op *op, struct hf__hold *hold, int64_t sent_at)
{
	if (!op->want.lease_ms)
		return HF__NEVER;
	int64_t end = hf__policy_valid_until(sent_at, op->want.lease_ms);
	if (end > hold->leased_until)
		hf__policy_of(hold->cmd.lock)->note_end(hold, end, op->want.lease_ms);
	return end;
}

/* The lease of a level counts from the ask, or from now if only this client counts it. */
static bool confirm_ask(struct hf__core *core, const struct hf__op *op, struct hf__hold *hold,
                        int64_t now)
{
	bool counted_there = hf__policy_of(hold->cmd.lock)->server_ends;
	int64_t before = hold->end_at;
	int64_t end = end_of(op, hold, counted_there ? hold->cmd.sent_at : now);
	if (hold->count == 0 || end > hold->end_at)
		hold->end_at = end;
	if (hf__hold_confirm(core, hold, hold->cmd.sent_at, hold->cmd.lease_ms, now))
		return true;
	hold->end_at = before;
	return false;
}

/* No call waits for the answer. */
static void on_late_answer(struct hf__core *core, struct hf__hold *hold,
                           const struct hf__answer *answer, int64_t now)
{
	if (answer->outcome == HF__GRANTED || answer->outcome == HF__UNKNOWN)
		hold->doubtful = true;
	else if (answer->outcome == HF__BUSY)
		hold->doubtful = false;
	if (answer->outcome == HF__GONE && hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	if (hold->state == HF__HOLD_CLEANING)
		on_cleaning_answer(core, hold, answer, now);
	else
		let_idle(core, hold, now);
}

/* The grant counts, if it is still valid. */
static void take_grant(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                       const struct hf__answer *answer, int64_t token, int64_t now)
{
	if (hold->cmd.lock->traits->trace != HF__TRACE_LEASE)
		finish_taken(core, op, hold, now);
	else if (hold->state == HF__HOLD_LOST)
		on_gone(core, op, hold, answer, now);
	else if (confirm_ask(core, op, hold, now))
		finish_granted(core, op, hold, token, now);
	else if (hold->state == HF__HOLD_ASKING)
		on_late_grant(core, op, hold, now);
	else if (hf__hold_check(core, hold, now))
		on_gone(core, op, hold, answer, now);
}

/* ---- durable grants ---- */

/* Enough replicas have the grant, whose lease counts from the ask and not from the sync. */
static void on_synced(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                      const struct hf__answer *answer, int64_t now)
{
	hold->replicas = answer->count < UINT8_MAX ? (uint8_t)answer->count : UINT8_MAX;
	hold->cmd.sent_at = op->granted_at;
	take_grant(core, op, hold, answer, op->token, now);
}

/* The call fails although its hold, or its level, was granted: that is released. */
static void release_grant(struct hf__core *core, struct hf__op *op, int64_t acknowledged,
                          int64_t now)
{
	struct hf__hold *hold = op->hold;
	leave_queue(core, op, now);
	hf__durable_finish(core, op, acknowledged, now);
	let_go(core, hold, now);
}

/* It is not known which replicas have the grant: another ask finds out whether it still exists. */
static void on_sync_lost(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                         int64_t now)
{
	if (answer->outcome == HF__UNSENT && answer->error == HF_ENOMEM) {
		hf__acquire_give_up(core, op, HF_ENOMEM, now);
		return;
	}
	hf__op_retry_later(core, op, answer, now);
	if (answer->outcome == HF__UNKNOWN)
		op->refusal = 0;
}

static void on_sync_answer(struct hf__core *core, struct hf__cmd *cmd,
                           const struct hf__answer *answer, int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__op *op = hold->op;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (!op) {
		on_late_answer(core, hold, answer, now);
		return;
	}
	switch (answer->outcome) {
	case HF__DONE:
		if (op->sync == HF__OP_OUTDATED && hold->state == HF__HOLD_ASKING)
			hf__acquire_ask(core, hold, now);
		else if (answer->count >= cmd->count || HF__MUTANT(FEW_REPLICAS))
			on_synced(core, op, hold, answer, now);
		else
			release_grant(core, op, answer->count, now);
		break;
	case HF__GONE:
		if (hold->state == HF__HOLD_ASKING)
			hf__acquire_ask(core, hold, now);
		else
			on_gone(core, op, hold, answer, now);
		break;
	case HF__FAILED: on_refused(core, op, answer, now); break;
	default:
		if (HF__MUTANT(BLIND_SYNC) && answer->outcome == HF__UNKNOWN)
			on_synced(core, op, hold, answer, now);
		else
			on_sync_lost(core, op, answer, now);
	}
}

static void on_grant(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                     const struct hf__answer *answer, int64_t now)
{
	if (hf__durable_replicas(core, op) == 0 || hold->state == HF__HOLD_LOST) {
		take_grant(core, op, hold, answer, answer->token, now);
		return;
	}
	doubt(hold); /* the server has a grant that does not count yet */
	if (op->cancelled)
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
	else
		hf__durable_start(core, op, answer->token, on_sync_answer, now);
}

void hf__acquire_on_answer(struct hf__core *core, struct hf__cmd *cmd,
                           const struct hf__answer *answer, int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__op *op = hold->op;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (!op) {
		on_late_answer(core, hold, answer, now);
		return;
	}
	switch (answer->outcome) {
	case HF__GRANTED: on_grant(core, op, hold, answer, now); break;
	case HF__BUSY: on_busy(core, op, answer, now); break;
	case HF__GONE: on_gone(core, op, hold, answer, now); break;
	case HF__DONE:
	case HF__FAILED: on_refused(core, op, answer, now); break;
	default: on_no_answer(core, op, answer, now);
	}
}

static void on_extend_answer(struct hf__core *core, struct hf__cmd *cmd,
                             const struct hf__answer *answer, int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__op *op = hold->op;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (!op) {
		if (hold->state == HF__HOLD_CLEANING)
			core->events->resume(core, hold, now);
		else
			hf__hold_detach_op(core, hold, now);
		return;
	}
	if (answer->outcome == HF__FAILED) {
		on_refused(core, op, answer, now);
	} else if (answer->outcome != HF__DONE) {
		on_no_answer(core, op, answer, now);
	} else if (hold->state == HF__HOLD_LOST || !answer->there[0]) {
		on_gone(core, op, hold, answer, now);
	} else if (confirm_ask(core, op, hold, now)) {
		hf__hold_arm(core, hold);
		hf__op_succeed(core, op);
		hf__hold_detach_op(core, hold, now);
	} else if (hf__hold_check(core, hold, now)) {
		on_gone(core, op, hold, answer, now);
	}
}

static uint32_t place_of(const struct hf__core *core, const struct hf__op *op)
{
	int64_t wait_ms = op->want.wait_ms ? op->want.wait_ms : core->config.fair_wait_ms;
	if (op->want.wait_ms == HF_NOWAIT)
		return 0;
	if (!op->lock->traits->ordered)
		return hf__policy_of(op->lock)->keeps_place; /* for as long as the call waits */
	return wait_ms < INT32_MAX ? (uint32_t)wait_ms : INT32_MAX;
}

void hf__acquire_prepare(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	const struct hf__op *op = hold->op;
	const struct hf__traits *traits = op->lock->traits;
	struct hf__cmd *cmd = &hold->cmd;
	bool takes = traits->trace != HF__TRACE_LEASE;
	if (takes && !hold->doubtful)
		cmd->wire = ++core->last_number;
	if (traits->trace == HF__TRACE_TAKEN && !hold->recorded) {
		cmd->record = hf__record_take(core, cmd->wire, now);
		hold->recorded = true;
	}
	cmd->verb = HF__ASK;
	cmd->lease_ms =
		takes ? HF__TAKEN_MS
		      : hf__policy_of(op->lock)->lease_to_send(core, hf__acquire_lease(core, op));
	cmd->count = traits->nesting == HF__NEST_APART ? op->want.amount : hold->count + 1;
	cmd->items = traits->several ? (uint16_t)op->want.amount : 0;
	cmd->from = op->want.from ? op->want.from : hf__hold_writer(core, op->lock, op->want.owner);
	cmd->place_ms = place_of(core, op);
	cmd->waited_ms = hf__note_wait_ms(core, op, now);
	cmd->token = op->want.token || op->lock->kind == HF_FENCED;
	cmd->revocable = op->want.revocable;
	cmd->again = hold->doubtful;
	cmd->on_answer = hf__acquire_on_answer;
	cmd->synced = hf__durable_is_expected(core, op);
	if (hold->state == HF__HOLD_ASKING) {
		hold->lease_ms = cmd->lease_ms;
		cmd->kept = hf__entry_keeps(core, op);
	}
	core->stats.attempts++;
}

/* An extension never takes a free lock: it renews an existing hold. */
static void prepare_extend(const struct hf__core *core, struct hf__hold *hold)
{
	hold->cmd.verb = HF__RENEW;
	hold->cmd.lease_ms =
		hf__policy_of(hold->cmd.lock)->lease_to_send(core, hold->op->want.lease_ms);
	hold->cmd.item = NULL;
	hold->cmd.items = 1;
	hold->cmd.on_answer = on_extend_answer;
}

void hf__acquire_submit(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	int64_t limit_ms = hold->cmd.lease_ms / 9;
	hold->cmd.user = HF__CMD_OF_HOLD;
	hf__cmd_submit(core, hold->cmd.lock->link, &hold->cmd, now, limit_ms > 50 ? limit_ms : 50);
}

void hf__acquire_ask(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__op *op = hold->op;
	hf__wheel_stop(&core->wheel, &op->retry);
	op->phase = HF__OP_RUNNING;
	if (op->deadline.at <= now)
		return; /* its deadline is due in this turn */
	if (!op->lock->link->up) {
		core->backend_ops->want_link(core->backend, op->lock->link);
		return;
	}
	if (hold->doubtful && op->lock->traits->trace == HF__TRACE_TAKEN &&
	    now >= hold->valid_until) {
		hf__acquire_give_up(core, op, HF_EUNKNOWN, now);
		return;
	}
	hf__hold_take_cell(hold);
	if (op->want.action == HF__OP_EXTEND)
		prepare_extend(core, hold);
	else
		hf__acquire_prepare(core, hold, now);
	hf__acquire_submit(core, hold, now);
}

/* Creates the holds of all permits except the first before the ask; false without memory. */
static bool make_siblings(struct hf__op *op, const struct hf__hold *first)
{
	for (int32_t i = 1; op->lock->traits->several && i < op->want.amount; i++) {
		struct hf__hold *hold = hf__hold_new_sibling(first, (uint32_t)i);
		if (!hold)
			return false;
		hf__list_add(&op->siblings, &hold->link);
	}
	return true;
}

/* Other calls of this lock may ask first and take the first cell, so it takes its own now. */
static void keep_back(struct hf__core *core, struct hf__op *op, int64_t until)
{
	op->phase = HF__OP_LOCAL;
	hf__hold_take_cell(op->hold);
	ask_later(core, op, until);
}

static void start_fresh(struct hf__core *core, struct hf__op *op, int64_t now)
{
	const struct hf__traits *traits = op->lock->traits;
	uint64_t owner = op->want.owner;
	if (traits->nesting == HF__NEST_APART)
		owner = core->host_ops->new_numbers(
			core->host, traits->several ? (uint32_t)op->want.amount : 1);
	struct hf__hold *hold = hf__hold_new(core, op->lock, owner);
	if (!hold || !make_siblings(op, hold)) {
		hf__acquire_give_up(core, op, HF_ENOMEM, now);
		if (hold)
			hf__hold_end(core, hold, now);
		return;
	}
	hold->op = op;
	hold->thread = op->thread;
	op->thread = NULL;
	op->hold = hold;
	if (op->want.wait_ms == HF_NOWAIT) {
		hf__acquire_ask(core, hold, now);
		return;
	}
	hf__list_add(&op->lock->queue, &op->link);
	hf__lock_keep_watches(core, op->lock);
	const struct hf__hold *held = op->lock->held;
	op->number = held && held->valid_until > now ? held->valid_until - now : 0;
	int64_t yields_until = hf__lock_yield_until(core, op, now);
	if (yields_until > now && op->lock->link->up)
		keep_back(core, op, yields_until);
	else if (!traits->queues)
		hf__acquire_ask(core, hold, now);
	else if (op->lock->queue.next == &op->link)
		hf__lock_let_next(core, op->lock, now);
	if (op->lock->link->up && !hold->cmd.in_flight)
		hf__op_count_wait(core, op);
}

/* The server need not know of the level. If it extends the hold, a renewal confirms that. */
static void nest_here(struct hf__core *core, struct hf__op *op, struct hf__hold *hold, int64_t now)
{
	int64_t end = end_of(op, hold, now);
	if (end > hold->end_at) {
		hold->end_at = end;
		hold->renew_at = now;
	}
	finish_granted(core, op, hold, hold->token, now);
}

static void start_nested(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                         int64_t now)
{
	if (op->lock->traits->nesting == HF__NEST_NEVER) {
		hf__op_finish(core, op, HF_EDEADLOCK,
		              "%s: this owner holds it already, and it does not nest",
		              op->lock->name);
		return;
	}
	if (hold->count == INT32_MAX) {
		hf__op_finish(core, op, HF_EINVAL, "%s: this owner holds too many levels",
		              op->lock->name);
		return;
	}
	hold->op = op;
	op->hold = hold;
	if (hf__policy_of(op->lock)->nests_here)
		nest_here(core, op, hold, now);
	else
		hf__acquire_ask(core, hold, now);
}

/*
 * The lock of another kind for which the call would wait for ever, since its own owner holds it;
 * NULL if there is none. Only a writer may also read.
 */
static const struct hf__lock *find_own_rival(struct hf__core *core, const struct hf__op *op,
                                             int64_t now)
{
	struct hf__lock *rival = NULL;
	while ((rival = hf__lock_rival(core, op->lock, rival))) {
		const struct hf__hold *hold = hf__hold_find(rival, op->want.owner);
		bool reads_inside = rival->traits->writes && rival->traits->half == op->lock->kind;
		if (hold && hold->state == HF__HOLD_HELD && now < hold->valid_until &&
		    !reads_inside)
			return rival;
	}
	return NULL;
}

void hf__acquire_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	bool apart = op->lock->traits->nesting == HF__NEST_APART;
	struct hf__hold *hold = apart ? NULL : hf__hold_find(op->lock, op->want.owner);
	/* This is a new acquisition, which does not bring the lost hold back. */
	if (hold && !hf__hold_is_busy(hold) && hf__hold_check(core, hold, now))
		hold = NULL;
	const struct hf__lock *rival = hold || apart ? NULL : find_own_rival(core, op, now);
	if (!hold && op->want.nested)
		hf__op_finish(core, op, HF_ENOTHELD, "%s: no longer held", op->lock->name);
	else if (rival)
		hf__op_finish(core, op, HF_EDEADLOCK,
		              "%s: this owner holds it as a %s lock, and would wait for itself; "
		              "release that first",
		              op->lock->name, hf__kind_word(rival->kind));
	else if (!hold)
		start_fresh(core, op, now);
	else if (hf__hold_is_busy(hold) || hold->state != HF__HOLD_HELD)
		hf__lock_park(core, op);
	else
		start_nested(core, op, hold, now);
}

void hf__acquire_extend(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = hf__hold_find_granted(op->lock, op->want.owner);
	if (!hold) {
		hf__op_finish(core, op, HF_ENOTHELD, "%s: not held by this owner", op->lock->name);
	} else if (hf__hold_is_busy(hold)) {
		hf__lock_park(core, op);
	} else if (hf__hold_check(core, hold, now)) {
		hf__hold_finish_lost(core, op, hold, NULL, 0, now);
	} else {
		hold->op = op;
		op->hold = hold;
		hf__acquire_ask(core, hold, now);
	}
}

void hf__acquire_on_deadline(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = op->hold;
	bool traceless = op->lock->traits->trace == HF__TRACE_NONE;
	if (op->sync) {
		release_grant(core, op, -1, now);
		return;
	}
	/* The answer is about to arrive, so it is worth waiting a moment past the deadline. */
	bool fresh = hold && hold->cmd.in_flight && now - hold->cmd.sent_at < HF__LATE_MS;
	if (fresh && !op->late && !traceless && op->waited) {
		op->late = true;
		hf__wheel_start(&core->wheel, &op->deadline, hold->cmd.sent_at + HF__LATE_MS);
		return;
	}
	bool unknown = hold && !traceless && (hold->cmd.in_flight || hold->doubtful);
	int result = unknown               ? HF_EUNKNOWN
	             : !op->lock->link->up ? HF_EUNREACHABLE
	             : op->refusal         ? op->refusal
	                                   : HF_ETIMEDOUT;
	if (result == HF_ETIMEDOUT)
		core->stats.timeouts++;
	hf__acquire_give_up(core, op, result, now);
}

void hf__acquire_cancel(struct hf__core *core, struct hf__op *op, int64_t now)
{
	op->cancelled = true;
	if (!op->hold || !op->hold->cmd.in_flight || op->sync)
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
}
