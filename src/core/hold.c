/* One acquisition: what may be believed of it, its end, and what its owner is told. */
#include "core/core.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Clocks may run this much apart over a lease, and both are read in whole milliseconds. */
static int64_t drift_of(int64_t lease_ms)
{
	return HF__MUTANT(NO_DRIFT) ? 0 : lease_ms / 100 + 2;
}

int64_t hf__hold_lease(const struct hf__hold *hold)
{
	bool fixed = hf__kind_of(hold->cmd.lock)->session &&
	             hold->valid_until == hold->leased_until && hold->end_at == hold->leased_until;
	return fixed ? hold->leased_ms : hold->lease_ms;
}

void hf__hold_note_end(struct hf__hold *hold, int64_t end, int64_t lease_ms)
{
	hold->leased_until = end;
	if (hf__kind_of(hold->cmd.lock)->session)
		hold->leased_ms = lease_ms < UINT32_MAX ? (uint32_t)lease_ms : UINT32_MAX;
}

static int64_t risk_at(const struct hf__hold *hold)
{
	return hold->valid_until - hf__hold_lease(hold) / 3;
}

/* The owner comes last: who finds it finds the rest. */
static void publish(struct hf__hold *hold)
{
	struct hf__cell *cell = hold->cell;
	atomic_store_explicit(&cell->valid_until, hold->valid_until, memory_order_release);
	atomic_store_explicit(&cell->risk_at, risk_at(hold), memory_order_release);
	atomic_store_explicit(&cell->owner, hold->owner, memory_order_release);
}

/* Two bits per state; a risk that passed before it was told makes room for what follows. */
static void add_news(struct hf__core *core, struct hf__hold *hold, hf_state state)
{
	if (hold->untold_n == 4) {
		hold->untold >>= 4;
		hold->untold_n = 2;
	}
	hold->untold |= (uint8_t)(((unsigned)state & 3u) << (2 * hold->untold_n));
	hold->untold_n++;
	core->host_ops->news(core->host, hold);
}

static void unlink_hold(struct hf__core *core, struct hf__hold *hold)
{
	assert(!hold->cmd.in_flight);
	hf__wheel_stop(&core->wheel, &hold->timer);
	hf__watchdog_drop(core, hold);
	if (hold->cmd.lock->held == hold)
		hold->cmd.lock->held = NULL;
	if (hf__kind_of(hold->cmd.lock)->ordered)
		hf__lock_unwatch(core, hold->cmd.lock, hold);
	hf__thread_unref(hold->thread);
	hold->thread = NULL;
	if (hold->has_cell) {
		atomic_store(&hold->cell->owner, 0);
		hold->cell->hold = NULL;
	} else {
		free(hold->cell);
	}
	hold->cell = NULL;
	hf__list_remove(&hold->link);
	if (hold->state != HF__HOLD_LOST)
		core->holds--;
	if (hold->recorded)
		hf__record_free(core, hold->cmd.record, 0);
}

struct hf__hold *hf__hold_find(struct hf__lock *lock, uint64_t owner)
{
	if (lock->held && lock->held->owner == owner)
		return lock->held;
	struct hf__list *link;
	hf__list_each (link, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->owner == owner)
			return hold;
	}
	return NULL;
}

static struct hf__hold *make_hold(struct hf__lock *lock)
{
	struct hf__hold *hold = calloc(1, sizeof(*hold));
	if (!hold)
		return NULL;
	/* Whoever asks must not fail for lack of memory, so what a grant needs is there before. */
	bool first = hf__list_empty(&lock->holds);
	if (!first && !(hold->cell = calloc(1, sizeof(*hold->cell)))) {
		free(hold);
		return NULL;
	}
	hf__list_init(&hold->link);
	hf__list_init(&hold->renew);
	hf__list_init(&hold->news);
	hf__list_init(&hold->cmd.link);
	hf__wheel_timer_init(&hold->timer, HF__TIMER_HOLD);
	hold->cmd.lock = lock;
	hold->state = HF__HOLD_ASKING;
	hold->renew_at = HF__NEVER;
	hold->end_at = HF__NEVER;
	return hold;
}

uint64_t hf__hold_writer(struct hf__core *core, const struct hf__lock *lock, uint64_t owner)
{
	const struct hf__traits *traits = hf__kind_of(lock);
	struct hf__lock *other = traits->half && !traits->writes
	                                 ? hf__lock_find(core, traits->half, lock->name)
	                                 : NULL;
	struct hf__hold *writes = other ? hf__hold_find(other, owner) : NULL;
	return writes && writes->state == HF__HOLD_HELD ? writes->cmd.wire : 0;
}

static uint64_t new_wire(struct hf__core *core, const struct hf__lock *lock, uint64_t owner)
{
	if (hf__kind_of(lock)->nesting == HF__NEST_APART || HF__MUTANT(REUSED_WIRE))
		return owner;
	return core->host_ops->number(core->host, 1);
}

struct hf__hold *hf__hold_new(struct hf__core *core, struct hf__lock *lock, uint64_t owner)
{
	struct hf__hold *hold = make_hold(lock);
	if (!hold)
		return NULL;
	hold->cmd.wire = new_wire(core, lock, owner);
	hold->owner = owner;
	hf__list_add(&lock->holds, &hold->link);
	core->holds++;
	return hold;
}

struct hf__hold *hf__hold_new_sibling(const struct hf__hold *first, uint32_t number)
{
	struct hf__hold *hold = make_hold(first->cmd.lock);
	if (!hold)
		return NULL;
	hold->cmd.wire = first->cmd.wire + number;
	hold->owner = hold->cmd.wire;
	return hold;
}

void hf__hold_drop_sibling(struct hf__hold *hold)
{
	free(hold->cell);
	free(hold);
}

static void free_hold(struct hf__core *core, struct hf__hold *hold)
{
	unlink_hold(core, hold);
	if (hold->untold_n > 0) {
		hold->dead = true;
		hold->cmd.lock->refs++;
	} else {
		hf__list_remove(&hold->news);
		free(hold);
	}
}

void hf__hold_end(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__lock *lock = hold->cmd.lock;
	uint64_t owner = hold->owner;
	bool was_held = hold->state != HF__HOLD_ASKING;
	lock->refs++;
	free_hold(core, hold);
	hf__lock_unpark(core, lock, owner, now);
	if (was_held || !hf__lock_is_waiting(lock))
		hf__lock_next(core, lock, now);
	hf__lock_unref(core, lock);
	if (core->closing && core->holds == 0)
		hf__core_succeed(core, core->closing);
}

void hf__hold_forget(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (!hold->stays && !hold->cmd.in_flight) {
		hf__hold_end(core, hold, now);
		return;
	}
	core->holds++;
	hold->doubtful = true;
	hold->state = HF__HOLD_RELEASING;
	hf__hold_abandon(core, hold, now);
}

void hf__hold_idle(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->op = NULL;
	if (hold->state == HF__HOLD_LOST && hold->stays)
		hf__hold_resume(core, hold, now);
	hf__lock_unpark(core, hold->cmd.lock, hold->owner, now);
}

void hf__hold_take_cell(struct hf__hold *hold)
{
	struct hf__cell *cell = &hold->cmd.lock->cell;
	if (hold->has_cell)
		return;
	while (cell->hold) {
		struct hf__cell *next = atomic_load(&cell->next);
		if (!next) {
			next = hold->cell;
			assert(next); /* taken along since the hold began */
			hold->cell = NULL;
			atomic_store(&cell->next, next);
		}
		cell = next;
	}
	free(hold->cell);
	cell->hold = hold;
	hold->cell = cell;
	hold->has_cell = true;
}

int64_t hf__hold_valid_until(int64_t sent_at, int64_t lease_ms)
{
	return hf__clock_after(sent_at, lease_ms - drift_of(lease_ms));
}

/* Some ends are read by others on clocks of their own; of a short lease enough must be left. */
static int64_t until_of(const struct hf__core *core, const struct hf__hold *hold, int64_t sent_at,
                        int64_t lease_ms)
{
	int64_t until = hf__hold_valid_until(sent_at, lease_ms);
	int64_t skew = core->config.peer_skew_ms;
	if (hf__kind_of(hold->cmd.lock)->session)
		return until < hold->end_at ? until : hold->end_at;
	if (!hf__kind_of(hold->cmd.lock)->skewed)
		return until;
	return until - (skew < lease_ms / 4 ? skew : lease_ms / 4);
}

void hf__hold_shorten(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms)
{
	int64_t until = until_of(core, hold, sent_at, lease_ms);
	if (until < hold->valid_until)
		hold->valid_until = until;
	publish(hold);
	hf__hold_arm(core, hold);
}

void hf__hold_set_lease(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                        int64_t lease_ms)
{
	/* A session goes on; that the hold ends is for us to know. */
	if (hf__kind_of(hold->cmd.lock)->session) {
		hold->end_at = hf__hold_valid_until(sent_at, lease_ms);
		hf__hold_note_end(hold, hold->end_at, lease_ms);
		if (hold->valid_until > hold->end_at)
			hold->valid_until = hold->end_at;
		hold->renew_at = sent_at;
		publish(hold);
		hf__hold_arm(core, hold);
		return;
	}
	hold->lease_ms = lease_ms;
	hold->valid_until = until_of(core, hold, sent_at, lease_ms);
	hold->at_risk = false;
	publish(hold);
	hf__hold_arm(core, hold);
}

bool hf__hold_confirm(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms, int64_t now)
{
	int64_t until = until_of(core, hold, HF__MUTANT(REPLY_TIME) ? now : sent_at, lease_ms);
	bool fresh = hold->state == HF__HOLD_ASKING;
	if (now >= (fresh ? until : hold->valid_until))
		return false;
	struct hf__hold *before = hold->cmd.lock->held;
	if (fresh) {
		hold->state = HF__HOLD_HELD;
		hold->placed = false;
		if (hf__kind_of(hold->cmd.lock)->queues || hf__kind_of(hold->cmd.lock)->ordered)
			hold->cmd.lock->held = hold;
	}
	if (fresh || until > hold->valid_until || HF__MUTANT(NESTED_SHORTENS)) {
		hold->valid_until = until;
		hold->lease_ms = lease_ms;
	}
	if (hold->at_risk && now < risk_at(hold)) {
		hold->at_risk = false;
		add_news(core, hold, HF_HELD);
	}
	publish(hold);
	/* That we got it proves that another owner of this process has it no more. */
	if (fresh && before && before != hold && before->state == HF__HOLD_HELD)
		hf__hold_lose(core, before, HF__LOST_GONE, now);
	return true;
}

void hf__hold_join(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *first)
{
	hf__list_add(&first->cmd.lock->holds, &hold->link);
	core->holds++;
	hf__hold_take_cell(hold);
	hold->cmd.items = 1;
	hold->count = 1;
	hold->state = HF__HOLD_HELD;
	hold->lease_ms = first->lease_ms;
	hold->valid_until = first->valid_until;
	hold->end_at = first->end_at;
	hold->leased_until = first->leased_until;
	hold->leased_ms = first->leased_ms;
	hold->renew_at = first->renew_at;
	hold->watched_from = first->watched_from;
	hold->was_watched = first->was_watched;
	publish(hold);
	hf__hold_arm(core, hold);
}

/* It ended because nobody confirmed it, not because it was to end. */
static bool outran_renewal(const struct hf__hold *hold)
{
	return hf__hold_is_renewed(hold) && hold->valid_until < hold->end_at;
}

bool hf__hold_check(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_HELD && now >= hold->valid_until)
		hf__hold_lose(core, hold,
		              outran_renewal(hold) ? HF__LOST_UNREACHABLE : HF__LOST_EXPIRED, now);
	return hold->state == HF__HOLD_LOST;
}

void hf__hold_lose(struct hf__core *core, struct hf__hold *hold, enum hf__lost_reason reason,
                   int64_t now)
{
	assert(hold->state == HF__HOLD_HELD || hold->state == HF__HOLD_RELEASING);
	hold->state = HF__HOLD_LOST;
	hold->reason = (uint8_t)reason;
	bool timed = reason == HF__LOST_EXPIRED || reason == HF__LOST_UNREACHABLE;
	hold->lease_ms = hf__hold_lease(hold);
	hold->ended_at = timed ? hold->valid_until : now;
	hold->valid_until = 0;
	hf__wheel_stop(&core->wheel, &hold->timer);
	hf__watchdog_drop(core, hold);
	atomic_store(&hold->cell->valid_until, 0);
	if (hold->cmd.lock->held == hold)
		hold->cmd.lock->held = NULL;
	core->holds--;
	core->stats.losses++;
	char why[HF__DETAIL_SIZE];
	hf__hold_explain(hold, now, why, sizeof why);
	hf__core_log(core, HF_LOG_WARN, "%s: %s", hold->cmd.lock->name, why);
	add_news(core, hold, HF_LOST);
	/* The session may go on, and with it what this hold is on the server; force may have hit another's. */
	hold->stays = (timed || reason == HF__LOST_FORCED) && hf__kind_of(hold->cmd.lock)->session;
	if (hold->stays && !hold->op)
		hf__hold_resume(core, hold, now);
	hf__lock_next(core, hold->cmd.lock, now);
}

void hf__hold_hide(struct hf__core *core, struct hf__hold *hold)
{
	atomic_store(&hold->cell->owner, 0);
	if (HF__MUTANT(RENEW_RELEASED))
		return;
	hf__wheel_stop(&core->wheel, &hold->timer);
	hf__watchdog_drop(core, hold);
	hold->renew_at = HF__NEVER;
}

void hf__hold_arm(struct hf__core *core, struct hf__hold *hold)
{
	int64_t at = hold->valid_until;
	if (!hold->at_risk && risk_at(hold) < at)
		at = risk_at(hold);
	bool renewing = hold->script || !hf__list_empty(&hold->renew);
	if (hf__hold_is_renewed(hold) && !renewing && hold->renew_at < at)
		at = hold->renew_at;
	hf__wheel_start(&core->wheel, &hold->timer, at);
}

static void held_timer(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hf__hold_check(core, hold, now))
		return;
	if (!hold->at_risk && now >= risk_at(hold)) {
		hold->at_risk = true;
		core->stats.at_risk++;
		add_news(core, hold, HF_AT_RISK);
	}
	if (hf__hold_is_renewed(hold) && now >= hold->renew_at)
		hf__watchdog_want(core, hold);
	hf__hold_arm(core, hold);
}

/* Cleaning ends when the server confirmed it, or when the lease has ended there by itself. */
static void clean(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->cmd.in_flight)
		return;
	if (now >= hold->ended_at) {
		hf__hold_end(core, hold, now);
		return;
	}
	hf__wheel_start(&core->wheel, &hold->timer, hold->ended_at);
	hf__release_settle(core, hold, now);
}

void hf__hold_timer(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_HELD || HF__MUTANT(RENEW_RELEASED))
		held_timer(core, hold, now);
	else if (hold->state == HF__HOLD_CLEANING)
		clean(core, hold, now);
}

void hf__hold_abandon(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->op = NULL;
	bool clean = hf__kind_of(hold->cmd.lock)->trace == HF__TRACE_NONE ||
	             (!hold->doubtful && !hold->placed);
	if (!hold->cmd.in_flight && clean) {
		hf__hold_end(core, hold, now);
		return;
	}
	struct hf__lock *lock = hold->cmd.lock;
	if (lock->held == hold)
		lock->held = NULL;
	hold->state = HF__HOLD_CLEANING;
	hold->count = 0;
	/* Nothing more is sent for it, so by then the server has let it go. */
	int64_t lease_ms = hold->lease_ms;
	if (lease_ms < hold->cmd.lease_ms)
		lease_ms = hold->cmd.lease_ms; /* an extension may have run unanswered */
	if (hold->was_watched && lease_ms < core->config.watchdog_ms)
		lease_ms = core->config.watchdog_ms;
	if (hold->placed || hold->cmd.place_ms > 0 || hf__kind_of(lock)->session)
		lease_ms = HF__PLACE_MS; /* which may last long, and keeps others waiting */
	hold->ended_at = hf__clock_after(now, core->closed ? HF__CLOSE_MS : lease_ms);
	hf__hold_resume(core, hold, now);
	hf__lock_next(core, lock, now);
}

/* The call stands in the queue, but not first. */
static bool waits_its_turn(const struct hf__hold *hold)
{
	return hf__kind_of(hold->cmd.lock)->queues && !hf__list_empty(&hold->op->link) &&
	       hold->cmd.lock->queue.next != &hold->op->link;
}

void hf__hold_resume(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->cmd.in_flight)
		return;
	if (hold->state == HF__HOLD_CLEANING)
		clean(core, hold, now);
	else if (!hold->op && hold->state == HF__HOLD_HELD)
		hf__acquire_correct(core, hold, now);
	else if (!hold->op && hold->state == HF__HOLD_LOST && hold->stays)
		hf__release_settle(core, hold, now);
	else if (hold->op && hold->op->want.verb == HF__OP_RELEASE)
		hf__release_settle(core, hold, now);
	else if (hold->op && !waits_its_turn(hold))
		hf__acquire_ask(core, hold, now);
}

void hf__hold_explain(const struct hf__hold *hold, int64_t now, char *ret_text, size_t size)
{
	int64_t ago = now - hold->ended_at;
	switch (hold->reason) {
	case HF__LOST_EXPIRED:
		snprintf(ret_text, size, "lost: lease of %" PRId64 " ms ended %" PRId64 " ms ago",
		         hf__hold_lease(hold), ago);
		break;
	case HF__LOST_UNREACHABLE:
		snprintf(ret_text, size,
		         "lost: lease of %" PRId64 " ms ended %" PRId64
		         " ms ago, no renewal was confirmed in time",
		         hold->lease_ms, ago);
		break;
	case HF__LOST_FORCED:
		snprintf(ret_text, size, "lost: released by force %" PRId64 " ms ago", ago);
		break;
	default:
		snprintf(ret_text, size,
		         "lost: the server no longer had the hold %" PRId64
		         " ms ago (expired, deleted, or released by force)",
		         ago);
	}
}

void hf__hold_finish_lost(struct hf__core *core, struct hf__op *op, const struct hf__hold *hold,
                          const char *holder, size_t length, int64_t now)
{
	char why[HF__DETAIL_SIZE];
	hf__hold_explain(hold, now, why, sizeof why);
	if (length > 0)
		hf__core_finish(core, op, HF_ELOST, "%s; now held by %.*s", why,
		                (int)(length < 100 ? length : 100), holder);
	else
		hf__core_finish(core, op, HF_ELOST, "%s", why);
}

void hf__hold_asked(struct hf__core *core, struct hf__hold *hold)
{
	if (hold->state == HF__HOLD_HELD)
		add_news(core, hold, HF_REVOKED);
}

bool hf__hold_next_news(struct hf__hold *hold, hf_state *ret_state)
{
	if (hold->untold_n == 0)
		return false;
	/* None is told that it is free, so nothing stands for being asked. */
	*ret_state = hold->untold & 3 ? (hf_state)(hold->untold & 3) : HF_REVOKED;
	hold->untold >>= 2;
	hold->untold_n--;
	return true;
}

void hf__hold_told(struct hf__core *core, struct hf__hold *hold)
{
	if (!hold->dead)
		return;
	struct hf__lock *lock = hold->cmd.lock;
	free(hold);
	hf__lock_unref(core, lock);
}
