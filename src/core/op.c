/* Calls of the program: how they begin and finish. */
#include "core/op.h"
#include "core/core.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Frees the holds of permits that were not granted. */
static void drop_siblings(struct hf__op *op)
{
	while (!hf__list_empty(&op->siblings)) {
		struct hf__hold *hold = hf__list_item(op->siblings.next, struct hf__hold, link);
		hf__list_remove(&hold->link);
		free(hold->cell);
		free(hold);
	}
}

static void finish(struct hf__core *core, struct hf__op *op)
{
	assert(hf__op_is_active(op));
	bool was_parked = op->phase == HF__OP_PARKED;
	op->phase = HF__OP_IDLE;
	op->hold = NULL;
	drop_siblings(op);
	hf__thread_unref(op->thread);
	op->thread = NULL;
	hf__list_remove(&op->link);
	if (was_parked)
		hf__lock_unref(core, op->lock);
	hf__wheel_stop(&core->wheel, &op->deadline);
	hf__wheel_stop(&core->wheel, &op->retry);
	if (op == core->closing)
		core->closing = NULL;
	if (core->metrics && op->want.action == HF__OP_ACQUIRE)
		hf__measure_count_acquire(core, op);
	core->host_ops->on_finish(core->host, op);
}

void hf__op_count_wait(struct hf__core *core, struct hf__op *op)
{
	if (!op->waited)
		core->stats.waits++;
	op->waited = true;
}

void hf__op_succeed(struct hf__core *core, struct hf__op *op)
{
	op->result = 0;
	op->detail[0] = 0;
	finish(core, op);
}

void hf__op_finish(struct hf__core *core, struct hf__op *op, int result, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(op->detail, sizeof op->detail, format, args);
	va_end(args);
	op->result = result;
	finish(core, op);
}

void hf__op_finish_refused(struct hf__core *core, struct hf__op *op)
{
	op->result = op->refusal;
	finish(core, op);
}

void hf__op_retry_later(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                        int64_t now)
{
	op->refusal = answer->error;
	snprintf(op->detail, sizeof op->detail, "%.*s", (int)answer->length, answer->text);
	hf__wheel_start(&core->wheel, &op->retry,
	                now + hf__random_jitter(&core->random, HF__NOT_NOW_MS));
}

int64_t hf__op_deadline(const struct hf__core *core, const struct hf__op *op)
{
	bool patient = op->want.action == HF__OP_ACQUIRE && op->want.wait_ms == 0;
	int64_t wait_ms = op->want.wait_ms > 0    ? op->want.wait_ms
	                  : op->want.limit_ms > 0 ? op->want.limit_ms
	                                          : core->config.command_timeout_ms;
	return patient ? HF__NEVER : hf__clock_after(op->started_at, wait_ms);
}

void hf__op_begin(struct hf__core *core, struct hf__op *op, int64_t now)
{
	hf__list_init(&op->link);
	hf__list_init(&op->siblings);
	hf__wheel_timer_init(&op->deadline, HF__TIMER_DEADLINE);
	hf__wheel_timer_init(&op->retry, HF__TIMER_RETRY);
	assert(!hf__op_is_active(op));
	op->phase = HF__OP_RUNNING;
	op->started_at = now;
	if (core->metrics)
		op->started_us = core->metrics->now_us;
	op->detail[0] = 0;
	hf__wheel_start(&core->wheel, &op->deadline, hf__op_deadline(core, op));
}
