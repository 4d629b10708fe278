/* Holds: how long one is valid, what its owner learns, and how it ends. */
#include "core/hold.h"
#include "core/cmd.h"
#include "core/core.h"
#include "core/mutants.h"
#include "core/policy.h"
#include "core/record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t hf__hold_lease(const struct hf__hold *hold)
{
	return hf__policy_of(hold->cmd.lock)->lease_of(hold);
}

int64_t hf__hold_renew_lease(const struct hf__core *core, const struct hf__hold *hold)
{
	return hold->renew_ms ? hold->renew_ms : core->config.watchdog_ms;
}

static int64_t risk_at(const struct hf__hold *hold)
{
	return hold->valid_until - hf__hold_lease(hold) / 3;
}

/* The owner is stored last, so that a reader that finds it also finds the rest. */
static void publish(struct hf__hold *hold)
{
	struct hf__cell *cell = hold->cell;
	atomic_store_explicit(&cell->valid_until, hold->valid_until, memory_order_release);
	atomic_store_explicit(&cell->risk_at, risk_at(hold), memory_order_release);
	atomic_store_explicit(&cell->owner, hold->owner, memory_order_release);
}

/* If four states are pending, a risk that passed before it was reported is dropped. */
static void add_news(struct hf__core *core, struct hf__hold *hold, hf_state state)
{
	if (hold->pending_n == 4) {
		hold->pending >>= 4;
		hold->pending_n = 2;
	}
	hold->pending |= (uint8_t)(((unsigned)state & 3u) << (2 * hold->pending_n));
	hold->pending_n++;
	core->host_ops->on_news(core->host, hold);
}

void hf__hold_want_renewal(struct hf__core *core, struct hf__hold *hold)
{
	if (hf__list_empty(&hold->renew) && !hold->renewal)
		hf__list_add(&core->renew, &hold->renew);
}

void hf__hold_drop_renewal(struct hf__core *core, struct hf__hold *hold)
{
	hf__list_remove(&hold->renew);
	if (hold->renewal)
		core->renewal[hold->renewal - 1].hold[hold->slot] = NULL;
	hold->renewal = 0;
}

static void count_hold(struct hf__core *core, const struct hf__lock *lock, int change)
{
	core->holds += (uint32_t)change;
	lock->link->holds += (uint32_t)change;
}

static void unlink_hold(struct hf__core *core, struct hf__hold *hold)
{
	assert(!hold->cmd.in_flight);
	hf__wheel_stop(&core->wheel, &hold->timer);
	hf__hold_drop_renewal(core, hold);
	if (hold->cmd.lock->held == hold)
		hold->cmd.lock->held = NULL;
	if (hold->cmd.lock->traits->ordered)
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
		count_hold(core, hold->cmd.lock, -1);
	if (hold->recorded)
		hf__record_free(core, hold->cmd.record, 0);
}

struct hf__hold *hf__hold_find(struct hf__lock *lock, uint64_t owner)
{
	if (lock->held && lock->held->owner == owner)
		return lock->held;
	/*
	 * While its owner acquires again, a lost hold is kept until there is a grant, and the
	 * remains of an earlier one may not have been removed yet.
	 */
	struct hf__hold *lost = NULL, *cleaning = NULL;
	struct hf__list *link;
	hf__list_each (link, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->owner != owner)
			continue;
		if (hold->state == HF__HOLD_LOST)
			lost = hold;
		else if (hold->state == HF__HOLD_CLEANING)
			cleaning = hold;
		else
			return hold;
	}
	return lost ? lost : cleaning;
}

struct hf__hold *hf__hold_find_granted(struct hf__lock *lock, uint64_t owner)
{
	struct hf__hold *lost = NULL, *held = lock->held;
	struct hf__list *link;
	if (held && held->owner == owner && held->state == HF__HOLD_HELD)
		return held;
	hf__list_each (link, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->owner == owner && hold->state == HF__HOLD_HELD)
			return hold;
		if (hold->owner == owner && hold->state == HF__HOLD_LOST)
			lost = hold;
	}
	return lost;
}

static struct hf__hold *make_hold(struct hf__lock *lock)
{
	/* Unlike malloc(), glibc's calloc() does not reuse memory that was freed just before. */
	struct hf__hold *hold = malloc(sizeof(*hold));
	if (!hold)
		return NULL;
	*hold = (struct hf__hold){
		.state = HF__HOLD_ASKING,
		.renew_at = HF__NEVER,
		.end_at = HF__NEVER,
		.cmd.lock = lock,
	};
	/* A grant must not fail for lack of memory, so the cell that it needs is allocated now. */
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
	return hold;
}

uint64_t hf__hold_writer(struct hf__core *core, const struct hf__lock *lock, uint64_t owner)
{
	const struct hf__traits *traits = lock->traits;
	struct hf__lock *other = traits->half && !traits->writes
	                                 ? hf__lock_find(core, traits->half, lock->name)
	                                 : NULL;
	struct hf__hold *writes = other ? hf__hold_find(other, owner) : NULL;
	return writes && writes->state == HF__HOLD_HELD ? writes->cmd.wire : 0;
}

static uint64_t new_wire(struct hf__core *core, const struct hf__lock *lock, uint64_t owner)
{
	if (lock->traits->nesting == HF__NEST_APART || HF__MUTANT(REUSED_WIRE))
		return owner;
	return core->host_ops->new_numbers(core->host, 1);
}

struct hf__hold *hf__hold_new(struct hf__core *core, struct hf__lock *lock, uint64_t owner)
{
	struct hf__hold *hold = make_hold(lock);
	if (!hold)
		return NULL;
	hold->cmd.wire = new_wire(core, lock, owner);
	hold->owner = owner;
	hf__list_add(&lock->holds, &hold->link);
	count_hold(core, lock, 1);
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

static void free_memory(struct hf__hold *hold)
{
	free(hold->blame);
	free(hold);
}

static void free_hold(struct hf__core *core, struct hf__hold *hold)
{
	unlink_hold(core, hold);
	if (hold->pending_n > 0) {
		hold->dead = true;
		hold->cmd.lock->refs++;
	} else {
		hf__list_remove(&hold->news);
		free_memory(hold);
	}
}

/* The owner has released it, or the client is closed. A loss was counted before. */
static void count_end(struct hf__core *core, struct hf__hold *hold)
{
	if (core->metrics)
		hf__measure_count_hold(core, hold,
		                       core->closed ? HF__END_CLOSED : HF__END_RELEASED);
}

void hf__hold_end(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__lock *lock = hold->cmd.lock;
	uint64_t owner = hold->owner;
	bool was_held = hold->state != HF__HOLD_ASKING && hold->owner;
	count_end(core, hold);
	lock->refs++;
	free_hold(core, hold);
	hf__lock_unpark(core, lock, owner, now);
	if (was_held || !hf__lock_is_waiting(lock))
		hf__lock_let_next(core, lock, now);
	hf__lock_unref(core, lock);
	if (core->closing && core->holds == 0)
		hf__op_succeed(core, core->closing);
}

void hf__hold_forget(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (!hold->stays && !hold->cmd.in_flight) {
		hf__hold_end(core, hold, now);
		return;
	}
	count_hold(core, hold->cmd.lock, 1);
	hf__hold_hide(core, hold); /* its owner may acquire again meanwhile */
	hold->doubtful = true;
	hold->state = HF__HOLD_RELEASING;
	hf__hold_abandon(core, hold, now);
}

void hf__hold_forget_lost(struct hf__core *core, const struct hf__hold *hold, int64_t now)
{
	struct hf__list *link;
	hf__list_each (link, &hold->cmd.lock->holds) {
		struct hf__hold *lost = hf__list_item(link, struct hf__hold, link);
		if (lost->owner != hold->owner || lost->state != HF__HOLD_LOST || lost->op)
			continue;
		hf__hold_forget(core, lost, now);
		return;
	}
}

void hf__hold_detach_op(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->op = NULL;
	if (hold->state == HF__HOLD_LOST && hold->stays)
		core->events->resume(core, hold, now);
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
			assert(next); /* allocated with the hold */
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

void hf__hold_shorten(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms)
{
	int64_t until = hf__policy_of(hold->cmd.lock)->valid_until(core, hold, sent_at, lease_ms);
	if (until < hold->valid_until)
		hold->valid_until = until;
	publish(hold);
	hf__hold_arm(core, hold);
}

void hf__hold_set_lease(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                        int64_t lease_ms)
{
	bool was_at_risk = hold->at_risk;
	hf__policy_of(hold->cmd.lock)->set_lease(core, hold, sent_at, lease_ms);
	core->recovered += was_at_risk && !hold->at_risk;
	publish(hold);
	hf__hold_arm(core, hold);
}

/* The hold of another owner of this client that a new one rules out, or NULL. */
static struct hf__hold *find_outdated(struct hf__core *core, const struct hf__hold *hold)
{
	const struct hf__lock *lock = hold->cmd.lock;
	if (lock->traits->half && !lock->traits->writes)
		lock = hf__lock_find(core, lock->traits->half, lock->name);
	struct hf__hold *other = lock ? lock->held : NULL;
	return other && other->owner != hold->owner && other->state == HF__HOLD_HELD ? other : NULL;
}

void hf__hold_outdate_syncs(struct hf__core *core, const struct hf__lock *lock, uint64_t except)
{
	const struct hf__list *link;
	if (core->stats.syncs == 0)
		return; /* there are none, and the lock may have many waiters */
	hf__list_each (link, &lock->holds) {
		const struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->op && hold->op->sync && hold->owner != except)
			hold->op->sync = HF__OP_OUTDATED;
	}
}

/* After this grant, grants of other owners that wait for replicas are known to have ended. */
static void outdate_others(struct hf__core *core, const struct hf__hold *hold)
{
	const struct hf__lock *lock = hold->cmd.lock;
	const struct hf__traits *traits = lock->traits;
	const struct hf__lock *half =
		traits->half ? hf__lock_find(core, traits->half, lock->name) : NULL;
	if (traits->queues || traits->ordered || traits->writes)
		hf__hold_outdate_syncs(core, lock, hold->owner);
	if (half)
		hf__hold_outdate_syncs(core, half, hold->owner);
}

bool hf__hold_confirm(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms, int64_t now)
{
	int64_t until =
		hf__policy_of(hold->cmd.lock)
			->valid_until(core, hold, HF__MUTANT(REPLY_TIME) ? now : sent_at, lease_ms);
	bool fresh = hold->state == HF__HOLD_ASKING;
	if (now >= (fresh ? until : hold->valid_until))
		return false;
	struct hf__hold *outdated = fresh ? find_outdated(core, hold) : NULL;
	if (fresh) {
		outdate_others(core, hold);
		hold->state = HF__HOLD_HELD;
		hold->granted_us = core->metrics ? core->metrics->now_us : now * 1000;
		hold->measured = core->metrics != NULL;
		hold->placed = false;
		if (hold->cmd.lock->traits->queues || hold->cmd.lock->traits->ordered)
			hold->cmd.lock->held = hold;
	}
	if (fresh || until > hold->valid_until || HF__MUTANT(NESTED_SHORTENS)) {
		hold->valid_until = until;
		hold->lease_ms = lease_ms;
	}
	if (hold->at_risk && now < risk_at(hold)) {
		hold->at_risk = false;
		core->recovered++;
		add_news(core, hold, HF_HELD);
	}
	publish(hold);
	/* The grant proves that another owner of this client does not hold the lock any more. */
	if (outdated)
		hf__hold_lose(core, outdated, HF__LOST_GONE, now);
	return true;
}

void hf__hold_join(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *first)
{
	hf__list_add(&first->cmd.lock->holds, &hold->link);
	count_hold(core, first->cmd.lock, 1);
	hf__hold_take_cell(hold);
	hold->cmd.items = 1;
	hold->count = 1;
	hold->state = HF__HOLD_HELD;
	hold->lease_ms = first->lease_ms;
	hold->valid_until = first->valid_until;
	hold->end_at = first->end_at;
	hold->leased_until = first->leased_until;
	hold->leased_ms = first->leased_ms;
	hold->granted_us = first->granted_us;
	hold->measured = first->measured;
	hold->cmd.kept = first->cmd.kept;
	hold->renew_at = first->renew_at;
	hold->renewed_from = first->renewed_from;
	hold->was_renewed = first->was_renewed;
	publish(hold);
	hf__hold_arm(core, hold);
}

/* It was lost because no renewal was confirmed, not because its fixed lease had expired. */
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

void hf__hold_show_blame(const struct hf__hold *hold, char *ret_text, size_t size)
{
	const struct hf__link *link = hold->cmd.lock->link;
	bool is_known = !link->up || link->server[0];
	snprintf(ret_text, size, "%s%s",
	         !is_known  ? ""
	         : link->up ? " by "
	                    : ": ",
	         link->up ? link->server : link->why);
}

/* By the time its owner asks, the lock may have another master, or be connected again. */
static void keep_blame(struct hf__hold *hold)
{
	char text[HF__LINK_WHY_SIZE + 8] = "";
	const struct hf__link *link = hold->cmd.lock->link;
	if (hold->reason == HF__LOST_UNREACHABLE)
		hf__hold_show_blame(hold, text, sizeof text);
	else if (hold->reason == HF__LOST_GONE && link->up && link->server[0])
		snprintf(text, sizeof text, ": %s", link->server);
	if (text[0])
		hold->blame = strdup(text);
}

static enum hf__measure_end end_of(enum hf__lost_reason reason)
{
	return reason == HF__LOST_FORCED    ? HF__END_FORCED
	       : reason == HF__LOST_EXPIRED ? HF__END_EXPIRED
	                                    : HF__END_LOST;
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
	if (core->metrics)
		hf__measure_count_hold(core, hold, end_of(reason));
	hold->held_ms = hold->ended_at - hold->granted_us / 1000;
	keep_blame(hold);
	hold->valid_until = 0;
	hf__wheel_stop(&core->wheel, &hold->timer);
	hf__hold_drop_renewal(core, hold);
	atomic_store(&hold->cell->valid_until, 0);
	if (hold->cmd.lock->held == hold)
		hold->cmd.lock->held = NULL;
	count_hold(core, hold->cmd.lock, -1);
	core->stats.losses++;
	core->losses[reason]++;
	char why[HF__DETAIL_SIZE];
	hf__hold_explain(hold, now, why, sizeof why);
	hf__log_write(core, HF_LOG_WARN, "%s: %s", hold->cmd.lock->name, why);
	add_news(core, hold, HF_LOST);
	/*
	 * The server may still have the hold: its session lasts, or the forced release removed the
	 * hold of another owner. If there is a history, the same command enters the loss there; a
	 * forced release has an entry of its own.
	 */
	hold->stays = ((timed || reason == HF__LOST_FORCED) &&
	               !hf__policy_of(hold->cmd.lock)->server_ends) ||
	              (core->config.history && reason != HF__LOST_FORCED);
	if (hold->stays && !hold->op)
		core->events->resume(core, hold, now);
	hf__lock_let_next(core, hold->cmd.lock, now);
}

void hf__hold_hide(struct hf__core *core, struct hf__hold *hold)
{
	atomic_store(&hold->cell->owner, 0);
	if (HF__MUTANT(RENEW_RELEASED))
		return;
	hf__wheel_stop(&core->wheel, &hold->timer);
	hf__hold_drop_renewal(core, hold);
	hold->renew_at = HF__NEVER;
}

void hf__hold_arm(struct hf__core *core, struct hf__hold *hold)
{
	int64_t at = hold->valid_until;
	if (!hold->at_risk && risk_at(hold) < at)
		at = risk_at(hold);
	bool renewing = hold->renewal || !hf__list_empty(&hold->renew);
	if (hf__hold_is_renewed(hold) && !renewing && hold->renew_at < at)
		at = hold->renew_at;
	hf__wheel_start(&core->wheel, &hold->timer, at);
}

void hf__hold_on_timer(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hf__hold_check(core, hold, now))
		return;
	if (!hold->at_risk && now >= risk_at(hold)) {
		hold->at_risk = true;
		core->stats.at_risk++;
		add_news(core, hold, HF_AT_RISK);
	}
	if (hf__hold_is_renewed(hold) && now >= hold->renew_at)
		hf__hold_want_renewal(core, hold);
	hf__hold_arm(core, hold);
}

void hf__hold_end_traceless(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__lock *lock = hold->cmd.lock;
	uint64_t owner = hold->owner;
	if (!hold->gave_up || !lock->link->up) {
		hf__hold_end(core, hold, now);
		return;
	}
	/* Its owner need not wait for the answer before it acquires again. */
	hold->owner = 0;
	hold->state = HF__HOLD_CLEANING;
	hold->ended_at = hf__clock_after(now, core->config.command_timeout_ms);
	if (lock->held == hold)
		lock->held = NULL;
	lock->refs++;
	core->events->resume(core, hold, now);
	hf__lock_unpark(core, lock, owner, now);
	if (!hf__lock_is_waiting(lock))
		hf__lock_let_next(core, lock, now);
	hf__lock_unref(core, lock);
}

void hf__hold_abandon(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->op = NULL;
	hf__cmd_withdraw(core, &hold->cmd);
	if (!hold->cmd.in_flight && !hf__hold_leaves_traces(hold)) {
		hf__hold_end_traceless(core, hold, now);
		return;
	}
	count_end(core, hold);
	struct hf__lock *lock = hold->cmd.lock;
	if (lock->held == hold)
		lock->held = NULL;
	hold->state = HF__HOLD_CLEANING;
	hold->count = 0;
	/* Nothing renews the hold any more, so it expires on the server by then. */
	int64_t lease_ms = hold->lease_ms;
	if (lease_ms < hold->cmd.lease_ms)
		lease_ms = hold->cmd.lease_ms; /* an extension may have run unanswered */
	if (hold->was_renewed && lease_ms < core->config.watchdog_ms)
		lease_ms = core->config.watchdog_ms;
	if (hold->placed || hold->cmd.place_ms > 0 || !hf__policy_of(lock)->server_ends)
		lease_ms = HF__PLACE_MS; /* a place may last long, and it keeps others waiting */
	hold->ended_at = hf__clock_after(now, core->closed ? HF__CLOSE_MS : lease_ms);
	core->events->resume(core, hold, now);
	hf__lock_let_next(core, lock, now);
}

void hf__hold_explain(const struct hf__hold *hold, int64_t now, char *ret_text, size_t size)
{
	int64_t ago = now - hold->ended_at;
	const char *blame = hold->blame ? hold->blame : "";
	switch (hold->reason) {
	case HF__LOST_EXPIRED:
		snprintf(ret_text, size, "lost: lease of %" PRId64 " ms ended %" PRId64 " ms ago",
		         hf__hold_lease(hold), ago);
		break;
	case HF__LOST_UNREACHABLE:
		snprintf(ret_text, size,
		         "lost: lease of %" PRId64 " ms ended %" PRId64
		         " ms ago, no renewal was confirmed in time%s",
		         hold->lease_ms, ago, blame);
		break;
	case HF__LOST_FORCED:
		snprintf(ret_text, size, "lost: released by force %" PRId64 " ms ago", ago);
		break;
	default:
		snprintf(ret_text, size,
		         "lost: the server no longer had the hold %" PRId64
		         " ms ago (expired, deleted, or released by force)%s",
		         ago, blame);
	}
}

void hf__hold_finish_lost(struct hf__core *core, struct hf__op *op, const struct hf__hold *hold,
                          const char *holder, size_t length, int64_t now)
{
	char why[HF__DETAIL_SIZE];
	hf__hold_explain(hold, now, why, sizeof why);
	if (length > 0)
		hf__op_finish(core, op, HF_ELOST, "%s; now held by %.*s", why,
		              (int)(length < 100 ? length : 100), holder);
	else
		hf__op_finish(core, op, HF_ELOST, "%s", why);
}

void hf__hold_revoke(struct hf__core *core, struct hf__hold *hold)
{
	if (hold->state == HF__HOLD_HELD)
		add_news(core, hold, HF_REVOKED);
}

bool hf__hold_next_news(struct hf__hold *hold, hf_state *ret_state)
{
	if (hold->pending_n == 0)
		return false;
	/* HF_FREE is never reported, so its code (0) stands for HF_REVOKED. */
	*ret_state = hold->pending & 3 ? (hf_state)(hold->pending & 3) : HF_REVOKED;
	hold->pending >>= 2;
	hold->pending_n--;
	return true;
}

void hf__hold_end_news(struct hf__core *core, struct hf__hold *hold)
{
	if (!hold->dead)
		return;
	struct hf__lock *lock = hold->cmd.lock;
	free_memory(hold);
	hf__lock_unref(core, lock);
}
