/* The core's life: calls start and finish here, links come and go, time passes. */
#include "core/core.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HF_MUTANTS
enum hf__mutant hf__mutant;
#endif

void hf__core_init(struct hf__core *core, const struct hf__core_config *config, uint64_t seed,
                   int64_t now)
{
	memset(core, 0, sizeof(*core));
	core->config = *config;
	core->random.state = seed;
	core->link_error = HF_EUNREACHABLE;
	snprintf(core->link_why, sizeof core->link_why, "not connected");
	hf__wheel_init(&core->wheel, now);
	hf__table_init(&core->locks, (uint32_t)hf__random_next(&core->random));
	hf__list_init(&core->looks);
	hf__list_init(&core->parked);
	hf__list_init(&core->pauses);
	hf__list_init(&core->renew);
	hf__list_init(&core->unsent);
	for (int i = 0; i < HF__RENEWALS; i++)
		hf__list_init(&core->renewal[i].cmd.link);
	for (int i = 0; i < 8; i++)
		core->permit_prefix[i] = (unsigned char)(hf__random_next(&core->random) >> 32);
}

void hf__core_log(struct hf__core *core, hf_log_level level, const char *format, ...)
{
	char line[HF__DETAIL_SIZE + 512];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	core->host_ops->log(core->host, level, line);
}

static void finish(struct hf__core *core, struct hf__op *op)
{
	assert(op->active);
	op->active = false;
	op->hold = NULL;
	hf__acquire_drop_siblings(op);
	hf__thread_unref(op->thread);
	op->thread = NULL;
	hf__list_remove(&op->link);
	if (op->is_parked)
		hf__lock_unref(core, op->lock);
	hf__wheel_stop(&core->wheel, &op->deadline);
	hf__wheel_stop(&core->wheel, &op->retry);
	if (op == core->closing)
		core->closing = NULL;
	core->host_ops->finish(core->host, op);
}

void hf__core_succeed(struct hf__core *core, struct hf__op *op)
{
	op->result = 0;
	op->detail[0] = 0;
	finish(core, op);
}

void hf__core_finish(struct hf__core *core, struct hf__op *op, int result, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(op->detail, sizeof op->detail, format, args);
	va_end(args);
	op->result = result;
	finish(core, op);
}

void hf__core_submit(struct hf__core *core, struct hf__cmd *cmd, int64_t now, int64_t limit_ms)
{
	assert(core->linked && !cmd->in_flight);
	if (limit_ms > core->config.command_timeout_ms)
		limit_ms = core->config.command_timeout_ms;
	cmd->sent_at = now;
	cmd->answer_by = hf__clock_after(now, limit_ms);
	cmd->in_flight = true;
	cmd->whole_text = false;
	core->stats.commands++;
	if (core->backend_ops->submit(core->backend, cmd))
		hf__list_add(&core->unsent, &cmd->link);
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
	assert(cmd->in_flight);
	cmd->in_flight = false;
	cmd->answered(core, cmd, answer, now);
}

void hf__core_finish_refused(struct hf__core *core, struct hf__op *op)
{
	op->result = op->refusal;
	finish(core, op);
}

void hf__core_not_now(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                      int64_t now)
{
	op->refusal = answer->error;
	snprintf(op->detail, sizeof op->detail, "%.*s", (int)answer->length, answer->text);
	hf__wheel_start(&core->wheel, &op->retry,
	                now + hf__random_jitter(&core->random, HF__NOT_NOW_MS));
}

/* ---- calls ---- */

static int64_t deadline_of(const struct hf__core *core, const struct hf__op *op)
{
	bool patient = op->want.verb == HF__OP_ACQUIRE && op->want.wait_ms == 0;
	int64_t wait_ms = op->want.wait_ms > 0    ? op->want.wait_ms
	                  : op->want.limit_ms > 0 ? op->want.limit_ms
	                                          : core->config.command_timeout_ms;
	return patient ? HF__NEVER : hf__clock_after(op->started_at, wait_ms);
}

static void begin(struct hf__core *core, struct hf__op *op, int64_t now)
{
	hf__list_init(&op->link);
	hf__list_init(&op->siblings);
	hf__wheel_timer_init(&op->deadline, HF__TIMER_DEADLINE);
	hf__wheel_timer_init(&op->retry, HF__TIMER_RETRY);
	op->active = true;
	op->started_at = now;
	op->detail[0] = 0;
	hf__wheel_start(&core->wheel, &op->deadline, deadline_of(core, op));
}

static void close_all(struct hf__core *core, struct hf__op *closing, int64_t now);

void hf__core_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	if (!op->active)
		begin(core, op, now);
	if (core->closed) {
		hf__core_finish(core, op, HF_ECLOSED, "the client is closed");
		return;
	}
	switch (op->want.verb) {
	case HF__OP_ACQUIRE: hf__acquire_start(core, op, now); break;
	case HF__OP_RELEASE: hf__release_start(core, op, now); break;
	case HF__OP_EXTEND: hf__extend_start(core, op, now); break;
	case HF__OP_CLOSE: close_all(core, op, now); break;
	case HF__OP_NOTHING: hf__core_succeed(core, op); break;
	case HF__OP_PAUSE: hf__list_add(&core->pauses, &op->link); break;
	default: hf__query_start(core, op, now);
	}
}

/* Ends a call that gets no more time. */
static void leave(struct hf__core *core, struct hf__op *op, int result, int64_t now)
{
	if (op->want.verb == HF__OP_CLOSE || op->want.verb == HF__OP_PAUSE)
		hf__core_succeed(core, op);
	else if (op->look)
		hf__query_leave(core, op, result, now);
	else if (op->want.verb == HF__OP_RELEASE)
		hf__release_deadline(core, op, now);
	else
		hf__acquire_give_up(core, op, result, now);
}

static void deadline(struct hf__core *core, struct hf__op *op, int64_t now)
{
	int result = !core->linked ? core->link_error : op->refusal ? op->refusal : HF_EUNREACHABLE;
	if (op->want.verb == HF__OP_ACQUIRE || op->want.verb == HF__OP_EXTEND)
		hf__acquire_deadline(core, op, now);
	else if (op->want.verb == HF__OP_FORCE)
		leave(core, op, HF_EUNKNOWN, now);
	else
		leave(core, op, result, now);
}

void hf__core_cancel(struct hf__core *core, struct hf__op *op, int64_t now)
{
	if (op->active && op->want.verb == HF__OP_PAUSE)
		hf__core_finish(core, op, HF_ECANCELLED, "cancelled");
	else if (op->active && op->want.verb == HF__OP_ACQUIRE && !op->cancelled)
		hf__acquire_cancel(core, op, now);
}

/* ---- time ---- */

static void retry(struct hf__core *core, struct hf__op *op, int64_t now)
{
	if (op->look)
		hf__query_resume(core, op->look, now);
	else if (op->hold)
		hf__hold_resume(core, op->hold, now);
}

static void fire(struct hf__core *core, struct hf__timer *timer, int64_t now)
{
	switch (timer->tag) {
	case HF__TIMER_DEADLINE:
		deadline(core, hf__list_item(timer, struct hf__op, deadline), now);
		break;
	case HF__TIMER_RETRY: retry(core, hf__list_item(timer, struct hf__op, retry), now); break;
	case HF__TIMER_HOLD:
		hf__hold_timer(core, hf__list_item(timer, struct hf__hold, timer), now);
		break;
	default: hf__lock_timer(core, hf__list_item(timer, struct hf__watch, timer));
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

/* ---- every lock, every query ---- */

typedef void each_hold_fn(struct hf__core *core, struct hf__hold *hold, int64_t now);

static void each_hold(struct hf__core *core, each_hold_fn *visit, int64_t now)
{
	struct hf__table_link *at = hf__table_next(&core->locks, NULL);
	while (at) {
		struct hf__lock *lock = hf__table_item(at, struct hf__lock, by_key);
		struct hf__list *link, *after;
		lock->refs++;
		hf__list_each_safe (link, after, &lock->holds)
			visit(core, hf__list_item(link, struct hf__hold, link), now);
		at = hf__table_next(&core->locks, at);
		hf__lock_unref(core, lock);
	}
}

static void each_look(struct hf__core *core,
                      void (*visit)(struct hf__core *, struct hf__op *, int64_t), int64_t now)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &core->looks) {
		struct hf__look *look = hf__list_item(link, struct hf__look, link);
		if (look->op)
			visit(core, look->op, now);
	}
}

bool hf__core_needs_link(const struct hf__core *core)
{
	return core->holds > 0 || !hf__list_empty(&core->looks);
}

int64_t hf__core_nearest_end(const struct hf__core *core)
{
	struct hf__table_link *at = NULL;
	int64_t nearest = HF__NEVER;
	while ((at = hf__table_next(&core->locks, at))) {
		const struct hf__lock *lock = hf__table_item(at, struct hf__lock, by_key);
		const struct hf__list *link;
		hf__list_each (link, &lock->holds) {
			const struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
			if (hold->state == HF__HOLD_HELD && hf__hold_is_renewed(hold) &&
			    hold->valid_until < nearest)
				nearest = hold->valid_until;
		}
	}
	return nearest;
}

struct hf__op *hf__core_op_of(const struct hf__cmd *cmd)
{
	if (cmd->user == HF__CMD_OF_HOLD)
		return hf__list_item(cmd, struct hf__hold, cmd)->op;
	if (cmd->user == HF__CMD_OF_LOOK)
		return hf__list_item(cmd, struct hf__look, cmd)->op;
	return NULL;
}

/* ---- links ---- */

static void resume_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_HELD && !hf__hold_check(core, hold, now))
		hf__watchdog_want(core, hold);
	hf__hold_resume(core, hold, now);
}

void hf__core_link_up(struct hf__core *core, int64_t now)
{
	if (core->was_linked)
		core->stats.reconnects++;
	core->linked = true;
	core->was_linked = true;
	each_hold(core, resume_hold, now);
	each_look(core, retry, now);
	hf__watchdog_flush(core, now);
}

void hf__core_link_down(struct hf__core *core, int error, const char *why, int64_t now)
{
	(void)now;
	core->linked = false;
	core->link_error = error;
	snprintf(core->link_why, sizeof core->link_why, "%s", why);
	hf__core_log(core, HF_LOG_WARN, "connection lost: %s", why);
}

/* First contact failed: nobody waits for a server that was never there. */
static void fail_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->op)
		leave(core, hold->op, HF_EUNREACHABLE, now);
}

static void fail_look(struct hf__core *core, struct hf__op *op, int64_t now)
{
	hf__query_leave(core, op, core->link_error, now);
}

void hf__core_link_failed(struct hf__core *core, int error, const char *why, int64_t now)
{
	core->link_error = error;
	snprintf(core->link_why, sizeof core->link_why, "%s", why);
	hf__core_log(core, HF_LOG_INFO, "cannot connect: %s", why);
	if (core->was_linked)
		return;
	each_hold(core, fail_hold, now);
	each_look(core, fail_look, now);
}

void hf__core_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                   int64_t now)
{
	const struct hf__lock *lock = watch->lock;
	core->stats.wakeups++;
	if (hf__list_empty(&lock->queue))
		return;
#ifdef HF_MUTANTS
	struct hf__hold *hold = hf__list_item(lock->queue.next, struct hf__op, link)->hold;
	if (HF__MUTANT(WAKE_IS_GRANT) && !hold->cmd.in_flight && hold->cell) {
		struct hf__answer answer = {.outcome = HF__GRANTED};
		hold->cmd.sent_at = now;
		hold->cmd.answered(core, &hold->cmd, &answer, now);
		return;
	}
#endif
	hf__acquire_wake(core, watch, number, now);
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
	struct hf__hold *hold = find_wire(lock, wire);
	core->stats.wakeups++;
	if (hold && hold->op)
		hf__hold_resume(core, hold, now);
}

void hf__core_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	core->stats.wakeups++;
	hf__acquire_wake_all(core, lock, now);
}

void hf__core_asked(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	struct hf__hold *hold = find_wire(lock, wire);
	(void)now;
	if (hold)
		hf__hold_asked(core, hold);
}

const char *hf__core_value(const struct hf__cmd *cmd)
{
	const struct hf__op *op = hf__core_op_of(cmd);
	return op ? op->want.value : NULL;
}

void hf__core_gone(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now)
{
	struct hf__hold *hold = find_wire(lock, wire);
	if (hold && hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	if (hold)
		hold->stays = false;
}

void hf__core_set_watchdog(struct hf__core *core, int64_t watchdog_ms)
{
	core->config.watchdog_ms = watchdog_ms;
}

/* Takes it out of the lock's list; the backend has let it go already. */
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

void hf__core_watch_failed(struct hf__core *core, struct hf__watch *watch, int error,
                           const char *text, size_t length, int64_t now)
{
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
		hf__core_finish(core, op, error, "%s: cannot wait: %.*s", lock->name, (int)length,
		                text);
		hf__hold_abandon(core, hold, now);
	}
	hf__lock_left(core, lock, now);
	hf__lock_unref(core, lock);
}

/* ---- the end ---- */

static void close_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	struct hf__op *op = hold->op;
	if (op) {
		hf__core_finish(core, op, HF_ECLOSED, "the client was closed meanwhile");
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
		hf__core_finish(core, hf__list_item(calls->next, struct hf__op, link), HF_ECLOSED,
		                "the client was closed meanwhile");
}

static void close_look(struct hf__core *core, struct hf__op *op, int64_t now)
{
	hf__query_leave(core, op, HF_ECLOSED, now);
}

static void close_all(struct hf__core *core, struct hf__op *closing, int64_t now)
{
	core->closed = true;
	core->closing = closing;
	close_calls(core, &core->parked);
	close_calls(core, &core->pauses);
	each_look(core, close_look, now);
	each_hold(core, close_hold, now);
	if (!core->closing)
		return;
	if (core->holds == 0 || !core->linked)
		hf__core_succeed(core, closing);
	else
		hf__wheel_start(&core->wheel, &closing->deadline, now + HF__CLOSE_MS);
}

static void forget_hold(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	hold->cmd.in_flight = false;
	hold->untold_n = 0;
	hf__hold_end(core, hold, now);
}

void hf__core_done(struct hf__core *core)
{
	for (int i = 0; i < HF__RENEWALS; i++) {
		struct hf__renewal *renewal = &core->renewal[i];
		while (renewal->holds > 0)
			hf__lock_unref(core, renewal->item[--renewal->holds].lock);
	}
	each_hold(core, forget_hold, 0);
	while (!hf__list_empty(&core->looks)) {
		struct hf__look *look = hf__list_item(core->looks.next, struct hf__look, link);
		hf__list_remove(&look->link);
		if (look->cmd.lock)
			hf__lock_unref(core, look->cmd.lock);
		free(look);
	}
	hf__table_done(&core->locks);
}
