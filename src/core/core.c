/* The core itself: it starts calls, and receives the events of the seam and of time. */
#include "core/core.h"
#include "core/acquire.h"
#include "core/cmd.h"
#include "core/handover.h"
#include "core/mutants.h"
#include "core/query.h"
#include "core/release.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HF_MUTANTS
enum hf__mutant hf__mutant;
#endif

static void resume(struct hf__core *core, struct hf__hold *hold, int64_t now);

static const struct hf__core_events events = {.start = hf__core_start, .resume = resume};

void hf__core_init(struct hf__core *core, const struct hf__core_config *config, uint64_t seed,
                   int64_t now)
{
	memset(core, 0, sizeof(*core));
	core->config = *config;
	core->events = &events;
	core->random.state = seed;
	hf__core_link_init(&core->link);
	hf__wheel_init(&core->wheel, now);
	hf__table_init(&core->locks, (uint32_t)hf__random_next(&core->random));
	for (int i = 0; i < HF__SLOT_LISTS; i++)
		hf__list_init(&core->slots[i]);
	hf__list_init(&core->queries);
	hf__list_init(&core->parked);
	hf__list_init(&core->pauses);
	hf__list_init(&core->starved);
	hf__list_init(&core->renew);
	hf__list_init(&core->unsent);
	hf__watchdog_init(core);
	for (int i = 0; i < 8; i++)
		core->permit_prefix[i] = (unsigned char)(hf__random_next(&core->random) >> 32);
}

void hf__core_set_backend(struct hf__core *core, const struct hf__backend_ops *ops, void *backend)
{
	assert(core && !core->backend_ops && ops && backend);
	core->backend_ops = ops;
	core->backend = backend;
}

const struct hf__core_config *hf__core_settings(const struct hf__core *core)
{
	assert(core);
	return &core->config;
}

uint64_t hf__core_random(struct hf__core *core)
{
	assert(core);
	return hf__random_next(&core->random);
}

struct hf__link *hf__core_link(struct hf__core *core)
{
	assert(core);
	return &core->link;
}

void hf__core_link_init(struct hf__link *link)
{
	assert(link);
	*link = (struct hf__link){.error = HF_EUNREACHABLE, .why = "not connected"};
}

static void answer_unsent(struct hf__core *core, int64_t now)
{
	static const char text[] = "no memory for a command";
	struct hf__answer answer = {
		.outcome = HF__UNSENT, .error = HF_ENOMEM, .text = text, .length = sizeof text - 1};
	struct hf__list unsent;
	hf__list_init(&unsent);
	hf__list_move(&unsent, &core->unsent);
	while (!hf__list_empty(&unsent)) {
		struct hf__cmd *cmd = hf__list_item(unsent.next, struct hf__cmd, link);
		hf__list_remove(&cmd->link);
		hf__core_answer(core, cmd, &answer, now);
	}
}

void hf__core_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now)
{
	assert(core && cmd && cmd->in_flight && cmd->on_answer && answer);
	cmd->in_flight = false;
	if (core->metrics)
		hf__measure_count_answer(core, cmd, answer->outcome, now);
	cmd->on_answer(core, cmd, answer, now);
}

/* ---- how a hold continues ---- */

/* Cleaning ends when the server confirms it, or when the lease has expired there on its own. */
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

/* The call is in the wait queue, but not the first. */
static bool has_others_ahead(const struct hf__hold *hold)
{
	return hold->cmd.lock->traits->queues && !hf__list_empty(&hold->op->link) &&
	       hold->cmd.lock->queue.next != &hold->op->link;
}

static void resume(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->cmd.in_flight)
		return;
	if (hold->state == HF__HOLD_CLEANING)
		clean(core, hold, now);
	else if (!hold->op && hold->state == HF__HOLD_HELD)
		hf__release_correct(core, hold, now);
	else if (!hold->op && hold->state == HF__HOLD_LOST && hold->stays)
		hf__release_settle(core, hold, now);
	else if (hold->op && hold->op->want.action == HF__OP_RELEASE)
		hf__release_settle(core, hold, now);
	else if (hold->op && !has_others_ahead(hold))
		hf__acquire_ask(core, hold, now);
}

/* ---- calls ---- */

static void close_all(struct hf__core *core, struct hf__op *closing, int64_t now);

static void release(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = hf__release_start(core, op, now);
	if (hold && !hf__handover_start(core, hold, now))
		hf__release_settle(core, hold, now);
}

void hf__core_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	if (!hf__op_is_active(op))
		hf__op_begin(core, op, now);
	if (core->closed) {
		hf__op_finish(core, op, HF_ECLOSED, "the client is closed");
		return;
	}
	switch (op->want.action) {
	case HF__OP_ACQUIRE: hf__acquire_start(core, op, now); break;
	case HF__OP_RELEASE: release(core, op, now); break;
	case HF__OP_EXTEND: hf__acquire_extend(core, op, now); break;
	case HF__OP_CLOSE: close_all(core, op, now); break;
	case HF__OP_NOTHING: hf__op_succeed(core, op); break;
	case HF__OP_PAUSE: hf__list_add(&core->pauses, &op->link); break;
	default: hf__query_start(core, op, now);
	}
}

/* Finishes a call whose time has run out. */
static void leave(struct hf__core *core, struct hf__op *op, int result, int64_t now)
{
	if (op->want.action == HF__OP_CLOSE || op->want.action == HF__OP_PAUSE)
		hf__op_succeed(core, op);
	else if (op->query)
		hf__query_leave(core, op, result, now);
	else if (op->want.action == HF__OP_COMMAND)
		hf__op_finish_refused(core, op); /* it never had the memory for a query */
	else if (op->want.action == HF__OP_RELEASE)
		hf__release_on_deadline(core, op, now);
	else
		hf__acquire_give_up(core, op, result, now);
}

/* The link that a call waits for, or NULL if it waits for none. */
static const struct hf__link *link_of(const struct hf__op *op)
{
	return op->query ? hf__query_link(op->query) : op->lock ? op->lock->link : NULL;
}

static void on_deadline(struct hf__core *core, struct hf__op *op, int64_t now)
{
	const struct hf__link *link = link_of(op);
	int result = link && !link->up ? link->error : op->refusal ? op->refusal : HF_EUNREACHABLE;
	if (op->want.action == HF__OP_ACQUIRE || op->want.action == HF__OP_EXTEND)
		hf__acquire_on_deadline(core, op, now);
	else if (op->want.action == HF__OP_FORCE)
		leave(core, op, HF_EUNKNOWN, now);
	else
		leave(core, op, result, now);
}

void hf__core_cancel(struct hf__core *core, struct hf__op *op, int64_t now)
{
	if (!hf__op_is_active(op))
		return;
	if (op->want.action == HF__OP_PAUSE)
		hf__op_finish(core, op, HF_ECANCELLED, "cancelled");
	else if (op->want.action == HF__OP_ACQUIRE && !op->cancelled)
		hf__acquire_cancel(core, op, now);
}

/* ---- time ---- */

static void retry(struct hf__core *core, struct hf__op *op, int64_t now)
{
	bool listens = op->lock && op->lock->link->up && !op->lock->traits->spins;
	if (op->query)
		hf__query_resume(core, op->query, now);
	else if (op->want.action == HF__OP_COMMAND)
		hf__query_start(core, op, now);
	else if (listens && hf__lock_may_listen(core, op, now))
		hf__acquire_listen(core, op, now);
	else if (op->hold)
		resume(core, op->hold, now);
}

static void on_hold_timer(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_HELD || HF__MUTANT(RENEW_RELEASED)) {
		hf__hold_on_timer(core, hold, now);
		(void)hf__release_end_lost(core, hold, now);
	} else if (hold->state == HF__HOLD_CLEANING) {
		clean(core, hold, now);
	}
}

static void fire(struct hf__core *core, struct hf__timer *timer, int64_t now)
{
	switch (timer->tag) {
	case HF__TIMER_DEADLINE:
		on_deadline(core, hf__list_item(timer, struct hf__op, deadline), now);
		break;
	case HF__TIMER_RETRY: retry(core, hf__list_item(timer, struct hf__op, retry), now); break;
	case HF__TIMER_HOLD:
		on_hold_timer(core, hf__list_item(timer, struct hf__hold, timer), now);
		break;
	default: hf__lock_on_timer(core, hf__list_item(timer, struct hf__watch, timer));
	}
}

void hf__core_turn(struct hf__core *core, int64_t now)
{
	answer_unsent(core, now);
	hf__wheel_advance(&core->wheel, now);
	struct hf__timer *timer;
	while ((timer = hf__wheel_take(&core->wheel)))
		fire(core, timer, now);
	hf__watchdog_flush(core, now);
}

int64_t hf__core_due(const struct hf__core *core)
{
	return hf__list_empty(&core->unsent) ? hf__wheel_next(&core->wheel) : 0;
}

/* ---- all holds, all queries ---- */

typedef void each_hold_fn(struct hf__core *core, struct hf__hold *hold, int64_t now);

static void each_hold_of(struct hf__core *core, struct hf__lock *lock, each_hold_fn *visit,
                         int64_t now)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &lock->holds)
		visit(core, hf__list_item(link, struct hf__hold, link), now);
}

/* Visits the holds of one link, or of all links if it is NULL. */
static void each_hold(struct hf__core *core, const struct hf__link *link, each_hold_fn *visit,
                      int64_t now)
{
	struct hf__table_link *at = hf__table_next(&core->locks, NULL);
	while (at) {
		struct hf__lock *lock = hf__table_item(at, struct hf__lock, by_key);
		lock->refs++;
		if (!link || lock->link == link)
			each_hold_of(core, lock, visit, now);
		at = hf__table_next(&core->locks, at);
		hf__lock_unref(core, lock);
	}
}

/* The same for queries. */
static void each_query(struct hf__core *core, const struct hf__link *link,
                       void (*visit)(struct hf__core *, struct hf__op *, int64_t), int64_t now)
{
	struct hf__list *at, *after;
	hf__list_each_safe (at, after, &core->queries) {
		struct hf__query *query = hf__list_item(at, struct hf__query, link_in_core);
		if (query->op && (!link || hf__query_link(query) == link))
			visit(core, query->op, now);
	}
}

bool hf__core_needs_link(const struct hf__core *core, const struct hf__link *link)
{
	assert(core && link);
	const struct hf__list *at;
	if (link->holds > 0)
		return true;
	hf__list_each (at, &core->queries)
		if (hf__query_link(hf__list_item(at, struct hf__query, link_in_core)) == link)
			return true;
	return false;
}

/* When the first of the lock's renewed holds ends. */
static int64_t nearest_end_of(const struct hf__lock *lock)
{
	const struct hf__list *at;
	int64_t nearest = HF__NEVER;
	hf__list_each (at, &lock->holds) {
		const struct hf__hold *hold = hf__list_item(at, struct hf__hold, link);
		if (hold->state == HF__HOLD_HELD && hf__hold_is_renewed(hold) &&
		    hold->valid_until < nearest)
			nearest = hold->valid_until;
	}
	return nearest;
}

int64_t hf__core_nearest_end(const struct hf__core *core, const struct hf__link *link)
{
	assert(core && link);
	struct hf__table_link *at = NULL;
	int64_t nearest = HF__NEVER;
	while ((at = hf__table_next(&core->locks, at))) {
		const struct hf__lock *lock = hf__table_item(at, struct hf__lock, by_key);
		int64_t end = lock->link == link ? nearest_end_of(lock) : HF__NEVER;
		if (end < nearest)
			nearest = end;
	}
	return nearest;
}

/* ---- links ---- */

static void resume_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_HELD && !hf__hold_check(core, hold, now))
		hf__hold_want_renewal(core, hold);
	resume(core, hold, now);
}

void hf__core_on_link_up(struct hf__core *core, struct hf__link *link, int64_t now)
{
	assert(core && link && !link->up);
	if (link->was_up) {
		core->stats.reconnects++;
		link->reconnects++;
	}
	link->up_at = now;
	link->up = true;
	link->was_up = true;
	core->links_up++;
	each_hold(core, link, resume_hold, now);
	each_query(core, link, retry, now);
	hf__watchdog_flush(core, now);
}

void hf__core_on_link_down(struct hf__core *core, struct hf__link *link, int error, const char *why,
                           int64_t now)
{
	assert(core && link && link->up && error && why);
	(void)now;
	link->up = false;
	core->links_up--;
	link->error = error;
	snprintf(link->why, sizeof link->why, "%s", why);
	hf__log_write(core, HF_LOG_WARN, "connection lost: %s", why);
}

/* The first connection failed: no call waits for a server that may not exist. */
static void fail_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->op)
		leave(core, hold->op, HF_EUNREACHABLE, now);
}

static void fail_query(struct hf__core *core, struct hf__op *op, int64_t now)
{
	hf__query_leave(core, op, hf__query_link(op->query)->error, now);
}

void hf__core_on_link_failed(struct hf__core *core, struct hf__link *link, int error,
                             const char *why, int64_t now)
{
	assert(core && link && !link->up && error && why);
	link->error = error;
	/* An outage has many attempts, and most of them fail for the same reason. */
	if (strcmp(link->why, why) != 0)
		hf__log_write(core, HF_LOG_INFO, "cannot connect: %s", why);
	snprintf(link->why, sizeof link->why, "%s", why);
	if (link->was_up || link->is_awaited)
		return;
	each_hold(core, link, fail_hold, now);
	each_query(core, link, fail_query, now);
}

static uint32_t count_holds(const struct hf__lock *lock)
{
	const struct hf__list *at;
	uint32_t n = 0;
	hf__list_each (at, &lock->holds)
		n += hf__list_item(at, struct hf__hold, link)->state != HF__HOLD_LOST;
	return n;
}

/* The lock continues on another link. */
static void move_lock(struct hf__core *core, struct hf__lock *lock, struct hf__link *link,
                      int64_t now)
{
	uint32_t holds = count_holds(lock);
	lock->link->holds -= holds;
	link->holds += holds;
	lock->link = link;
	each_hold_of(core, lock, resume_hold, now);
	if (holds > 0 && !link->up)
		core->backend_ops->want_link(core->backend, link);
}

static void move_query(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__query *query = op->query;
	struct hf__link *link = query->cmd.lock ? NULL : hf__lock_route(core, NULL, 0);
	if (link)
		query->any_link = link;
	if (!query->cmd.in_flight)
		retry(core, op, now);
	else if (!hf__query_link(query)->up)
		core->backend_ops->want_link(core->backend, hf__query_link(query));
}

static void reroute_lock(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__link *link = hf__lock_route(core, lock->name, lock->length);
	if (link && link != lock->link)
		move_lock(core, lock, link, now);
}

void hf__core_reroute(struct hf__core *core, int64_t now)
{
	assert(core);
	struct hf__table_link *at = hf__table_next(&core->locks, NULL);
	while (at) {
		struct hf__lock *lock = hf__table_item(at, struct hf__lock, by_key);
		lock->refs++;
		hf__lock_set_slot(core, lock);
		reroute_lock(core, lock, now);
		at = hf__table_next(&core->locks, at);
		hf__lock_unref(core, lock);
	}
	each_query(core, NULL, move_query, now);
	hf__watchdog_flush(core, now);
}

void hf__core_reroute_slot(struct hf__core *core, uint16_t slot, int64_t now)
{
	assert(core);
	struct hf__list *head = &core->slots[slot % HF__SLOT_LISTS];
	struct hf__list *at = head->next, *after;
	for (; at != head; at = after) {
		struct hf__lock *lock = hf__list_item(at, struct hf__lock, in_slot);
		lock->refs++;
		if (lock->slot == slot)
			reroute_lock(core, lock, now);
		after = at->next;
		hf__lock_unref(core, lock);
	}
	hf__list_each_safe (at, after, &core->queries) {
		struct hf__query *query = hf__list_item(at, struct hf__query, link_in_core);
		if (query->op && (!query->cmd.lock || query->cmd.lock->slot == slot))
			move_query(core, query->op, now);
	}
	hf__watchdog_flush(core, now);
}

void hf__core_each_watch(struct hf__core *core, uint16_t slot,
                         void (*visit)(void *arg, struct hf__watch *watch), void *arg)
{
	assert(core && visit);
	struct hf__list *at;
	hf__list_each (at, &core->slots[slot % HF__SLOT_LISTS]) {
		const struct hf__lock *lock = hf__list_item(at, struct hf__lock, in_slot);
		struct hf__watch *watch = lock->slot == slot ? lock->watches : NULL;
		for (; watch; watch = watch->next)
			visit(arg, watch);
	}
}

/* A deliberate fault. */
static void grant_without_asking(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__answer answer = {.outcome = HF__GRANTED};
	hold->cmd.sent_at = now;
	hold->cmd.on_answer(core, &hold->cmd, &answer, now);
}

void hf__core_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                   int64_t now)
{
	assert(core && watch && watch->lock);
	const struct hf__op *first = hf__lock_first_waiter(watch->lock);
	core->stats.wakeups++;
	if (!first)
		return;
	if (HF__MUTANT(WAKE_IS_GRANT) && !first->hold->cmd.in_flight && first->hold->cell)
		grant_without_asking(core, first->hold, now);
	else
		hf__lock_wake(core, watch, number, now);
}

static struct hf__hold *find_wire(struct hf__lock *lock, uint64_t wire)
{
	struct hf__list *link;
	hf__list_each (link, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->cmd.wire == wire)
			return hold;
	}
	return NULL;
}

void hf__core_wake_owner(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	assert(core && lock && wire);
	struct hf__hold *hold = find_wire(lock, wire);
	core->stats.wakeups++;
	if (hold && hold->op) {
		hold->op->woken = !hold->cmd.in_flight;
		resume(core, hold, now);
	}
}

void hf__core_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	assert(core && lock);
	core->stats.wakeups++;
	hf__lock_wake_all(core, lock, now);
}

void hf__core_revoke(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	assert(core && lock && wire);
	struct hf__hold *hold = find_wire(lock, wire);
	(void)now;
	if (hold)
		hf__hold_revoke(core, hold);
}

const char *hf__core_value(const struct hf__cmd *cmd)
{
	assert(cmd);
	const struct hf__op *op = hf__cmd_op(cmd);
	return op ? op->want.value : NULL;
}

bool hf__core_is_wanted(const struct hf__cmd *cmd)
{
	assert(cmd && cmd->in_flight);
	const struct hf__op *op = hf__cmd_op(cmd);
	return op && !op->cancelled;
}

void hf__core_lose(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	assert(core && lock && wire);
	struct hf__hold *hold = find_wire(lock, wire);
	if (hold && hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	if (hold)
		hold->stays = false;
}

void hf__core_set_watchdog(struct hf__core *core, int64_t watchdog_ms)
{
	assert(core && watchdog_ms > 0);
	core->config.watchdog_ms = watchdog_ms;
}

/* Frees a watch that the backend has let go of. */
static struct hf__lock *forget_watch(struct hf__core *core, struct hf__watch *watch)
{
	struct hf__lock *lock = watch->lock;
	struct hf__watch **at = &lock->watches;
	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
	hf__wheel_stop(&core->wheel, &watch->timer);
	free(watch);
	return lock;
}

void hf__core_on_watch_failed(struct hf__core *core, struct hf__watch *watch, int error,
                              const char *text, size_t length, int64_t now)
{
	assert(core && watch && watch->lock && error && (text || length == 0));
	struct hf__list refused;
	bool one = watch->hold;
	struct hf__op *only = one ? watch->hold->op : NULL;
	struct hf__lock *lock = forget_watch(core, watch);
	lock->refs++;
	hf__list_init(&refused);
	if (only) {
		hf__list_remove(&only->link);
		hf__list_add(&refused, &only->link);
	} else if (!one) {
		hf__list_move(&refused, &lock->queue);
	}
	while (!hf__list_empty(&refused)) {
		struct hf__op *op = hf__list_item(refused.next, struct hf__op, link);
		struct hf__hold *hold = op->hold;
		hf__op_finish(core, op, error, "%s: cannot wait: %.*s", lock->name, (int)length,
		              text);
		hf__hold_abandon(core, hold, now);
	}
	hf__lock_end_watches_soon(core, lock, now);
	hf__lock_unref(core, lock);
}

/* ---- closing ---- */

static void close_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__op *op = hold->op;
	if (op) {
		hf__op_finish(core, op, HF_ECLOSED, "the client was closed meanwhile");
		hold->op = NULL;
	}
	if (hold->state == HF__HOLD_LOST) {
		if (!hold->cmd.in_flight)
			hf__hold_end(core, hold, now);
		return;
	}
	if (hold->state == HF__HOLD_HELD)
		hf__hold_hide(core, hold);
	if (hold->state != HF__HOLD_ASKING)
		hold->doubtful = true;
	hf__hold_abandon(core, hold, now);
}

static void close_calls(struct hf__core *core, struct hf__list *calls)
{
	while (!hf__list_empty(calls))
		hf__op_finish(core, hf__list_item(calls->next, struct hf__op, link), HF_ECLOSED,
		              "the client was closed meanwhile");
}

static void close_query(struct hf__core *core, struct hf__op *op, int64_t now)
{
	hf__query_leave(core, op, HF_ECLOSED, now);
}

static void close_all(struct hf__core *core, struct hf__op *closing, int64_t now)
{
	core->closed = true;
	core->closing = closing;
	close_calls(core, &core->parked);
	close_calls(core, &core->pauses);
	close_calls(core, &core->starved);
	each_query(core, NULL, close_query, now);
	each_hold(core, NULL, close_hold, now);
	if (!core->closing)
		return;
	if (core->holds == 0 || core->links_up == 0)
		hf__op_succeed(core, closing);
	else
		hf__wheel_start(&core->wheel, &closing->deadline, now + HF__CLOSE_MS);
}

static void forget_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->cmd.in_flight = false;
	hold->pending_n = 0;
	hf__hold_end(core, hold, now);
}

void hf__core_done(struct hf__core *core)
{
	for (int i = 0; i < HF__RENEWALS; i++) {
		struct hf__renewal *renewal = &core->renewal[i];
		while (renewal->holds > 0)
			hf__lock_unref(core, renewal->item[--renewal->holds].lock);
	}
	each_hold(core, NULL, forget_hold, 0);
	hf__query_done(core);
	hf__table_done(&core->locks);
}
