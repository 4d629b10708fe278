/* Taking a lock, taking it once more, and making it last longer: everything that asks. */
#include "core/core.h"

#include <inttypes.h>

int64_t hf__acquire_lease(const struct hf__core *core, const struct hf__op *op)
{
	return op->want.lease_ms ? op->want.lease_ms : core->config.watchdog_ms;
}

static void ask_later(struct hf__core *core, struct hf__op *op, int64_t at)
{
	hf__wheel_start(&core->wheel, &op->retry, at);
}

static void leave_queue(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__lock *lock = op->lock;
	if (hf__list_empty(&op->link))
		return;
	bool first = lock->queue.next == &op->link;
	hf__list_remove(&op->link);
	hf__lock_left(core, lock, now);
	if (!first || hf__list_empty(&lock->queue) || !hf__wheel_running(&op->retry))
		return;
	/* Nothing has changed on the server, so who is first now asks when this one would have. */
	struct hf__op *next = hf__list_item(lock->queue.next, struct hf__op, link);
	next->rests = op->rests;
	if (!next->hold->cmd.in_flight && !hf__wheel_running(&next->retry))
		ask_later(core, next, op->retry.at);
}

void hf__acquire_correct(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	bool counted = hf__kind_of(hold->cmd.lock)->nesting == HF__NEST_COUNTED;
	if (!hold->doubtful || !core->linked || hold->cmd.in_flight)
		return;
	hold->doubtful = false;
	if (counted)
		hf__release_settle(core, hold, now);
}

static void let_idle(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->op = NULL;
	if (hold->state == HF__HOLD_HELD)
		hf__acquire_correct(core, hold, now);
	if (!hold->cmd.in_flight)
		hf__hold_idle(core, hold, now);
}

/* The call has left: an attempt ends with it, a hold goes on. */
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
	if (result && result == op->refusal)
		hf__core_finish_refused(core, op);
	else if (result == HF_EUNKNOWN)
		hf__core_finish(core, op, result,
		                "%s: an attempt was sent and not answered in %" PRId64
		                " ms; what it may have left is removed in the background",
		                lock->name, waited);
	else if (result == HF_EUNREACHABLE)
		hf__core_finish(core, op, core->linked ? result : core->link_error,
		                "%s: tried for %" PRId64 " ms: %s", lock->name, waited,
		                core->link_why);
	else if ((result == HF_EBUSY || (result == HF_ETIMEDOUT && op->waited)) && op->number >= 0)
		hf__core_finish(core, op, result,
		                "%s: waited %" PRId64 " ms; the holder's lease had %" PRId64
		                " ms left when last asked",
		                lock->name, waited, op->number);
	else if (result == HF_EBUSY || result == HF_ETIMEDOUT)
		hf__core_finish(core, op, result, "%s: waited %" PRId64 " ms", lock->name, waited);
	else
		hf__core_finish(core, op, result, "%s: after %" PRId64 " ms", lock->name, waited);
	if (hold)
		let_go(core, hold, now);
}

/* Permits taken together are holds of their own from now on. */
static void part_siblings(struct hf__core *core, struct hf__op *op, struct hf__hold *first)
{
	if (hf__kind_of(op->lock)->nesting == HF__NEST_APART)
		first->cmd.items = 1;
	while (!hf__list_empty(&op->siblings)) {
		struct hf__hold *hold = hf__list_item(op->siblings.next, struct hf__hold, link);
		hf__list_remove(&hold->link);
		hf__hold_join(core, hold, first);
	}
}

void hf__acquire_drop_siblings(struct hf__op *op)
{
	while (!hf__list_empty(&op->siblings)) {
		struct hf__hold *hold = hf__list_item(op->siblings.next, struct hf__hold, link);
		hf__list_remove(&hold->link);
		hf__hold_drop_sibling(hold);
	}
}

/* A grant that is no hold: the call has what it wanted, and nothing is left to look after. */
static void taken(struct hf__core *core, struct hf__op *op, struct hf__hold *hold, int64_t now)
{
	hold->doubtful = false;
	core->stats.grants++;
	leave_queue(core, op, now);
	op->number = 0;
	hf__core_succeed(core, op);
	hf__hold_end(core, hold, now);
}

static void granted(struct hf__core *core, struct hf__op *op, struct hf__hold *hold, int64_t token,
                    int64_t now)
{
	hold->doubtful = false;
	if (hold->count++ == 0) {
		hold->token = token;
		if (hold->moves == 0 && hf__kind_of(op->lock)->moves)
			hold->moving_since = (uint32_t)now;
	}
	if (!op->want.lease_ms && !hold->watched_from) {
		hold->watched_from = hold->count;
		hold->was_watched = true;
	}
	if (hf__hold_is_renewed(hold) && hold->renew_at == HF__NEVER)
		hold->renew_at = hf__watchdog_next(hold->cmd.sent_at, core->config.watchdog_ms);
	hf__hold_arm(core, hold);
	core->stats.grants += hf__kind_of(op->lock)->several ? (uint64_t)op->want.amount : 1;
	leave_queue(core, op, now);
	part_siblings(core, op, hold);
	op->number = hold->token;
	op->owner = hold->owner;
	if (hf__kind_of(hold->cmd.lock)->ordered)
		hf__lock_unwatch(core, hold->cmd.lock, hold);
	hf__core_succeed(core, op);
	hf__lock_next(core, hold->cmd.lock, now); /* the next one polls from now on */
	hf__hold_idle(core, hold, now);
}

/* A grant that came too late to be believed; the server has it, so asking again settles it. */
static void granted_late(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
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

static void count_wait(struct hf__core *core, struct hf__op *op)
{
	if (!op->waited)
		core->stats.waits++;
	op->waited = true;
}

/* How long to sleep if nothing wakes us. */
static int64_t pause_of(struct hf__core *core, const struct hf__op *op, int64_t ttl_ms)
{
	if (hf__kind_of(op->lock)->ordered && ttl_ms <= 0)
		return hf__random_jitter(&core->random,
		                         HF__TURN_MS); /* another's turn: it may be late */
	int64_t poll = HF__SLOW_POLL_MS;
	/* A waiter that does not ask for the watchdog's lease counts as dead. */
	if (hf__kind_of(op->lock)->ordered && core->config.watchdog_ms / 4 < poll)
		poll = core->config.watchdog_ms / 4 + 1;
	/* A place lasts as long as we ask, or as the whole of a wait that has an end. */
	if (op->want.wait_ms == 0 && op->hold->cmd.place_ms > 0 &&
	    op->hold->cmd.place_ms / 3 < poll)
		poll = op->hold->cmd.place_ms / 3 + 1;
	int64_t pause = hf__random_jitter(&core->random, poll);
	return ttl_ms >= 0 && ttl_ms < pause ? ttl_ms + 1 : pause;
}

static void sleep_on(struct hf__core *core, struct hf__op *op, int64_t pause_ms, int64_t now)
{
	ask_later(core, op, now + pause_ms);
	core->host_ops->listens(core->host, op);
}

/* Listens for the release, asks once more where that is new, and sleeps. */
static void wait_for(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                     int64_t now)
{
	bool ordered = answer->channel == HF__CHANNEL_WAITER;
	if (hf__kind_of(op->lock)->ordered && hf__lock_held_here(op->lock, now)) {
		/* Who releases it is of this process, and hears whose turn it is then. */
		op->here = true;
		ask_later(core, op, now + pause_of(core, op, answer->ttl_ms));
		core->host_ops->idles(core->host, op);
		return;
	}
	if (answer->watched) {
		sleep_on(core, op, HF__WATCHED_POLL_MS, now);
		return;
	}
	struct hf__hold *own = ordered ? op->hold : NULL;
	bool watched = hf__lock_is_watched(op->lock, answer->channel, own);
	/* Who holds it as a lock without order tells nobody in particular. */
	if ((ordered && hf__lock_watch(core, op->lock, HF__CHANNEL_LOCK, NULL)) ||
	    hf__lock_watch(core, op->lock, answer->channel, own))
		hf__acquire_give_up(core, op, HF_ENOMEM, now);
	else if (!watched && !HF__MUTANT(NO_SECOND_ASK))
		hf__acquire_ask(core, op->hold, now);
	else
		sleep_on(core, op, pause_of(core, op, answer->ttl_ms), now);
}

/* Whoever asked in vain stands in a queue on the server. */
static bool leaves_place(const struct hf__hold *hold)
{
	return hold->cmd.place_ms > 0 || hf__kind_of(hold->cmd.lock)->session;
}

static void busy(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                 int64_t now)
{
	op->hold->doubtful = false;
	op->hold->placed = leaves_place(op->hold);
	if (op->lock->held == op->hold) {
		op->lock->held = NULL; /* so it was not its turn after all */
		hf__lock_next(core, op->lock, now);
	}
	op->refusal = 0;
	op->number = answer->ttl_ms;
	if (op->cancelled) {
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
		return;
	}
	if (op->want.wait_ms == HF_NOWAIT) {
		hf__acquire_give_up(core, op, HF_EBUSY, now);
		return;
	}
	count_wait(core, op);
	if (op->late) {
		core->stats.timeouts++;
		hf__acquire_give_up(core, op, HF_ETIMEDOUT, now);
		return;
	}
	if (hf__kind_of(op->lock)->spins)
		ask_later(core, op, now + hf__kind_pause(core, op));
	else
		wait_for(core, op, answer, now);
}

static void refused(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                    int64_t now)
{
	struct hf__hold *hold = op->hold;
	leave_queue(core, op, now);
	hf__core_finish(core, op, answer->error, "%s: %.*s", op->lock->name, (int)answer->length,
	                answer->text);
	/* A right that is missing may have stopped it half way. */
	if (hold->cmd.verb == HF__ASK &&
	    (answer->error == HF_EDENIED || answer->error == HF_EREFUSED))
		hold->doubtful = true;
	let_go(core, hold, now);
}

/* It may have run. What it took without a lease the server remembers only for a while. */
static void doubt(struct hf__hold *hold)
{
	if (!hold->doubtful && hf__kind_of(hold->cmd.lock)->trace == HF__TRACE_TAKEN)
		hold->valid_until = hold->cmd.sent_at + HF__TAKEN_MS * 9 / 10;
	hold->doubtful = true;
}

/* No answer, or none that helps: the next connection or the next try goes on. */
static void unanswered(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                       int64_t now)
{
	if (answer->outcome == HF__UNKNOWN)
		doubt(op->hold);
	if (op->cancelled)
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
	else if (answer->outcome == HF__UNSENT && core->linked)
		hf__acquire_give_up(core, op, HF_ENOMEM, now);
	else if (answer->outcome == HF__NOT_NOW)
		hf__core_not_now(core, op, answer, now);
}

static void gone(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                 const struct hf__answer *answer, int64_t now)
{
	if (hold->state == HF__HOLD_ASKING) {
		/* Of several permits that an unanswered ask had taken, one is gone: so are all. */
		hold->doubtful = true;
		hf__acquire_give_up(core, op, HF_EUNKNOWN, now);
		return;
	}
	if (hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_finish_lost(core, op, hold, answer->text, answer->length, now);
	hf__hold_idle(core, hold, now);
}

/* The answer to an ask whose call has left. */
static void cleaned(struct hf__core *core, struct hf__hold *hold, const struct hf__answer *answer,
                    int64_t now)
{
	if (answer->outcome == HF__BUSY)
		hold->placed = leaves_place(hold);
	bool traceless = hf__kind_of(hold->cmd.lock)->trace == HF__TRACE_NONE;
	if ((hold->doubtful || hold->placed) && !traceless)
		hf__hold_resume(core, hold, now);
	else
		hf__hold_end(core, hold, now);
}

/* When the level that is asked for ends by itself; noted if it has a lease of its own. */
static int64_t end_of(const struct hf__op *op, struct hf__hold *hold, int64_t sent_at)
{
	if (!op->want.lease_ms)
		return HF__NEVER;
	int64_t end = hf__hold_valid_until(sent_at, op->want.lease_ms);
	if (end > hold->leased_until)
		hf__hold_note_end(hold, end, op->want.lease_ms);
	return end;
}

/* A session knows no leases: when a level of one is over is for us to know, and it begins now. */
static bool confirm_ask(struct hf__core *core, const struct hf__op *op, struct hf__hold *hold,
                        int64_t now)
{
	bool session = hf__kind_of(hold->cmd.lock)->session;
	int64_t before = hold->end_at;
	int64_t end = end_of(op, hold, session ? now : hold->cmd.sent_at);
	if (hold->count == 0 || end > hold->end_at)
		hold->end_at = end;
	if (hf__hold_confirm(core, hold, hold->cmd.sent_at, hold->cmd.lease_ms, now))
		return true;
	hold->end_at = before;
	return false;
}

static void answered(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__op *op = hold->op;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (!op) {
		if (answer->outcome == HF__GRANTED || answer->outcome == HF__UNKNOWN)
			hold->doubtful = true;
		else if (answer->outcome == HF__BUSY)
			hold->doubtful = false;
		if (answer->outcome == HF__GONE && hold->state == HF__HOLD_HELD)
			hf__hold_lose(core, hold, HF__LOST_GONE, now);
		if (hold->state == HF__HOLD_CLEANING)
			cleaned(core, hold, answer, now);
		else
			let_idle(core, hold, now);
		return;
	}
	switch (answer->outcome) {
	case HF__GRANTED:
		if (hf__kind_of(cmd->lock)->trace != HF__TRACE_LEASE)
			taken(core, op, hold, now);
		else if (hold->state == HF__HOLD_LOST)
			gone(core, op, hold, answer, now);
		else if (confirm_ask(core, op, hold, now))
			granted(core, op, hold, answer->token, now);
		else if (hold->state == HF__HOLD_ASKING)
			granted_late(core, op, hold, now);
		else if (hf__hold_check(core, hold, now))
			gone(core, op, hold, answer, now);
		break;
	case HF__BUSY: busy(core, op, answer, now); break;
	case HF__GONE: gone(core, op, hold, answer, now); break;
	case HF__DONE:
	case HF__FAILED: refused(core, op, answer, now); break;
	default: unanswered(core, op, answer, now);
	}
}

/* One of this process gave it to us: that ends its release, whatever becomes of ours. */
static void moved(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                  int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__lock *lock = cmd->lock;
	uint64_t from = cmd->from;
	lock->refs++;
	if (answer->outcome == HF__GRANTED) {
		core->stats.handovers++;
		core->move_ms = now - cmd->sent_at;
		answered(core, cmd, answer, now);
		hf__release_moved(core, lock, from, now);
	} else {
		hold->moves = 0;
		if (HF__MUTANT(BLIND_MOVE) && answer->outcome == HF__UNKNOWN)
			hf__release_moved(core, lock, from, now);
		else
			hf__release_not_moved(core, lock, from, answer->outcome, now);
		if (answer->outcome != HF__GONE)
			answered(core, cmd, answer, now);
		else if (hold->op)
			hf__acquire_ask(core, hold, now);
		else
			cleaned(core, hold, answer, now);
	}
	hf__lock_unref(core, lock);
}

static void extended(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now)
{
	struct hf__hold *hold = hf__list_item(cmd, struct hf__hold, cmd);
	struct hf__op *op = hold->op;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (!op) {
		if (hold->state == HF__HOLD_CLEANING)
			hf__hold_resume(core, hold, now);
		else
			hf__hold_idle(core, hold, now);
		return;
	}
	if (answer->outcome == HF__FAILED) {
		refused(core, op, answer, now);
	} else if (answer->outcome != HF__DONE) {
		unanswered(core, op, answer, now);
	} else if (hold->state == HF__HOLD_LOST || !answer->there[0]) {
		gone(core, op, hold, answer, now);
	} else if (confirm_ask(core, op, hold, now)) {
		hf__hold_arm(core, hold);
		hf__core_succeed(core, op);
		hf__hold_idle(core, hold, now);
	} else if (hf__hold_check(core, hold, now)) {
		gone(core, op, hold, answer, now);
	}
}

static uint32_t place_of(const struct hf__core *core, const struct hf__op *op)
{
	int64_t wait_ms = op->want.wait_ms ? op->want.wait_ms : core->config.fair_wait_ms;
	if (op->want.wait_ms == HF_NOWAIT)
		return 0;
	if (!hf__kind_of(op->lock)->ordered)
		return hf__kind_of(op->lock)
		        ->session; /* any time: it is told when its turn comes */
	return wait_ms < INT32_MAX ? (uint32_t)wait_ms : INT32_MAX;
}

/* One more level, or a first one. */
static void prepare_ask(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	const struct hf__op *op = hold->op;
	const struct hf__traits *traits = hf__kind_of(op->lock);
	struct hf__cmd *cmd = &hold->cmd;
	bool takes = traits->trace != HF__TRACE_LEASE;
	if (takes && !hold->doubtful)
		cmd->wire = ++core->last_request;
	if (traits->trace == HF__TRACE_TAKEN && !hold->recorded) {
		cmd->record = hf__record_take(core, cmd->wire, now);
		hold->recorded = true;
	}
	cmd->verb = HF__ASK;
	cmd->lease_ms = takes             ? HF__TAKEN_MS
	                : traits->session ? core->config.watchdog_ms
	                                  : hf__acquire_lease(core, op);
	cmd->count = traits->nesting == HF__NEST_APART ? op->want.amount : hold->count + 1;
	cmd->items = traits->several ? (uint16_t)op->want.amount : 0;
	cmd->from = op->want.from ? op->want.from : hf__hold_writer(core, op->lock, op->want.owner);
	cmd->place_ms = place_of(core, op);
	cmd->token = op->want.token || op->lock->kind == HF_FENCED;
	cmd->revocable = op->want.revocable;
	cmd->again = hold->doubtful;
	cmd->answered = answered;
	if (hold->state == HF__HOLD_ASKING)
		hold->lease_ms = cmd->lease_ms;
	core->stats.attempts++;
}

static void prepare_move(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *from,
                         int64_t now)
{
	prepare_ask(core, hold, now);
	hold->moves = from->moves + 1;
	hold->moving_since = from->moving_since;
	hold->cmd.verb = HF__MOVE;
	hold->cmd.from = from->cmd.wire;
	hold->cmd.answered = moved;
}

/* An extension never takes a lock that is free: it renews what is there. */
static void prepare_extend(const struct hf__core *core, struct hf__hold *hold)
{
	bool session = hf__kind_of(hold->cmd.lock)->session;
	hold->cmd.verb = HF__RENEW;
	hold->cmd.lease_ms = session ? core->config.watchdog_ms : hold->op->want.lease_ms;
	hold->cmd.item = NULL;
	hold->cmd.items = 1;
	hold->cmd.answered = extended;
}

static void submit(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	int64_t limit_ms = hold->cmd.lease_ms / 9;
	hold->cmd.user = HF__CMD_OF_HOLD;
	hf__core_submit(core, &hold->cmd, now, limit_ms > 50 ? limit_ms : 50);
}

void hf__acquire_from(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *from,
                      int64_t now)
{
	hf__wheel_stop(&core->wheel, &hold->op->retry);
	hf__hold_take_cell(hold);
	prepare_move(core, hold, from, now);
	submit(core, hold, now);
}

void hf__acquire_ask(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__op *op = hold->op;
	hf__wheel_stop(&core->wheel, &op->retry);
	op->rests = op->here = false;
	if (op->deadline.at <= now)
		return; /* its time is over, and it will be told so in this turn */
	if (!core->linked) {
		core->backend_ops->want_link(core->backend);
		return;
	}
	if (hold->doubtful && hf__kind_of(op->lock)->trace == HF__TRACE_TAKEN &&
	    now >= hold->valid_until) {
		hf__acquire_give_up(core, op, HF_EUNKNOWN, now);
		return;
	}
	hf__hold_take_cell(hold);
	if (op->want.verb == HF__OP_EXTEND)
		prepare_extend(core, hold);
	else
		prepare_ask(core, hold, now);
	submit(core, hold, now);
}

/* The holds of all permits but the first, before they are asked for; false without memory. */
static bool make_siblings(struct hf__op *op, const struct hf__hold *first)
{
	for (int32_t i = 1; hf__kind_of(op->lock)->several && i < op->want.amount; i++) {
		struct hf__hold *hold = hf__hold_new_sibling(first, (uint32_t)i);
		if (!hold)
			return false;
		hf__list_add(&op->siblings, &hold->link);
	}
	return true;
}

/* Others of this lock may ask before it, so it takes its cell now. */
static void keep_back(struct hf__core *core, struct hf__op *op, int64_t until)
{
	hf__hold_take_cell(op->hold);
	ask_later(core, op, until);
}

static void start_fresh(struct hf__core *core, struct hf__op *op, int64_t now)
{
	const struct hf__traits *traits = hf__kind_of(op->lock);
	uint64_t owner = op->want.owner;
	if (traits->nesting == HF__NEST_APART)
		owner = core->host_ops->number(core->host,
		                               traits->several ? (uint32_t)op->want.amount : 1);
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
	hf__lock_joined(core, op->lock);
	const struct hf__hold *held = op->lock->held;
	op->number = held && held->valid_until > now ? held->valid_until - now : 0;
	int64_t yields_until = hf__lock_yields(core, op, now);
	op->here = yields_until > now && core->linked;
	if (op->here)
		keep_back(core, op, yields_until);
	else if (!traits->queues)
		hf__acquire_ask(core, hold, now);
	else if (op->lock->queue.next == &op->link)
		hf__lock_next(core, op->lock, now);
	if (core->linked && !hold->cmd.in_flight)
		count_wait(core, op);
}

/* The session carries all levels, so the server need not know. A later end is soon confirmed. */
static void nest_here(struct hf__core *core, struct hf__op *op, struct hf__hold *hold, int64_t now)
{
	int64_t end = end_of(op, hold, now);
	if (end > hold->end_at) {
		hold->end_at = end;
		hold->renew_at = now;
	}
	granted(core, op, hold, hold->token, now);
}

static void start_nested(struct hf__core *core, struct hf__op *op, struct hf__hold *hold,
                         int64_t now)
{
	if (hf__kind_of(op->lock)->nesting == HF__NEST_NEVER) {
		hf__core_finish(core, op, HF_EDEADLOCK,
		                "%s: this owner holds it already, and it does not nest",
		                op->lock->name);
		return;
	}
	if (hold->count == INT32_MAX) {
		hf__core_finish(core, op, HF_EINVAL, "%s: nested too deep", op->lock->name);
		return;
	}
	hold->op = op;
	op->hold = hold;
	if (hf__kind_of(op->lock)->session)
		nest_here(core, op, hold, now);
	else
		hf__acquire_ask(core, hold, now);
}

/* The owner reads what it asks to write: it would wait for its own read hold to end. */
static bool waits_for_itself(struct hf__core *core, const struct hf__op *op, int64_t now)
{
	struct hf__lock *other =
		hf__kind_of(op->lock)->writes
			? hf__lock_find(core, hf__kind_of(op->lock)->half, op->lock->name)
			: NULL;
	struct hf__hold *reads = other ? hf__hold_find(other, op->want.owner) : NULL;
	return reads && reads->state == HF__HOLD_HELD && now < reads->valid_until;
}

void hf__acquire_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	bool apart = hf__kind_of(op->lock)->nesting == HF__NEST_APART;
	struct hf__hold *hold = apart ? NULL : hf__hold_find(op->lock, op->want.owner);
	if (hold && !hf__hold_busy(hold) && hf__hold_check(core, hold, now)) {
		/* What was lost is lost; this is a new acquisition. */
		hf__hold_forget(core, hold, now);
		hold = NULL;
	}
	if (!hold && op->want.nested)
		hf__core_finish(core, op, HF_ENOTHELD, "%s: not held any more", op->lock->name);
	else if (!hold && waits_for_itself(core, op, now))
		hf__core_finish(core, op, HF_EDEADLOCK,
		                "%s: this owner holds it for reading, and would wait for itself; "
		                "release that first",
		                op->lock->name);
	else if (!hold)
		start_fresh(core, op, now);
	else if (hf__hold_busy(hold) || hold->state != HF__HOLD_HELD)
		hf__lock_park(core, op);
	else
		start_nested(core, op, hold, now);
}

void hf__extend_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = hf__hold_find(op->lock, op->want.owner);
	if (!hold || (hold->state != HF__HOLD_HELD && hold->state != HF__HOLD_LOST)) {
		hf__core_finish(core, op, HF_ENOTHELD, "%s: not held by this owner",
		                op->lock->name);
	} else if (hf__hold_busy(hold)) {
		hf__lock_park(core, op);
	} else if (hf__hold_check(core, hold, now)) {
		hf__hold_finish_lost(core, op, hold, NULL, 0, now);
	} else {
		hold->op = op;
		op->hold = hold;
		hf__acquire_ask(core, hold, now);
	}
}

void hf__acquire_deadline(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = op->hold;
	bool traceless = hf__kind_of(op->lock)->trace == HF__TRACE_NONE;
	/* An answer that is about to come tells more than that there is none. */
	bool fresh = hold && hold->cmd.in_flight && now - hold->cmd.sent_at < HF__LATE_MS;
	if (fresh && !op->late && !traceless && op->waited) {
		op->late = true;
		hf__wheel_start(&core->wheel, &op->deadline, hold->cmd.sent_at + HF__LATE_MS);
		return;
	}
	bool unknown = hold && !traceless && (hold->cmd.in_flight || hold->doubtful);
	int result = unknown         ? HF_EUNKNOWN
	             : !core->linked ? HF_EUNREACHABLE
	             : op->refusal   ? op->refusal
	                             : HF_ETIMEDOUT;
	if (result == HF_ETIMEDOUT)
		core->stats.timeouts++;
	hf__acquire_give_up(core, op, result, now);
}

void hf__acquire_cancel(struct hf__core *core, struct hf__op *op, int64_t now)
{
	op->cancelled = true;
	if (!op->hold || !op->hold->cmd.in_flight)
		hf__acquire_give_up(core, op, HF_ECANCELLED, now);
}

void hf__acquire_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__list *link, *after;
	lock->refs++;
	hf__list_each_safe (link, after, &lock->queue)
		hf__hold_resume(core, hf__list_item(link, struct hf__op, link)->hold, now);
	hf__lock_unref(core, lock);
}

void hf__acquire_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                      int64_t now)
{
	struct hf__lock *lock = watch->lock;
	struct hf__list *link, *after;
	if (watch->hold) {
		if (watch->hold->op)
			hf__hold_resume(core, watch->hold, now);
		return;
	}
	/* Readers and those who wait for a latch may all go; of permits there are so many. */
	bool counted = watch->channel == HF__CHANNEL_PERMITS;
	int64_t left = hf__kind_of(lock)->queues ? 1 : counted ? number : INT64_MAX;
	lock->refs++;
	hf__list_each_safe (link, after, &lock->queue) {
		struct hf__op *op = hf__list_item(link, struct hf__op, link);
		if (left <= 0 || op->rests)
			break;
		/* Who wants more than there is must not stand in the way of the others. */
		if (!counted || op->want.amount <= number)
			left--;
		hf__hold_resume(core, op->hold, now);
	}
	hf__lock_unref(core, lock);
}
