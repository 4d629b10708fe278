/* Questions to the server, and release by force: calls that hold nothing. */
#include "core/core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t verb_of[] = {
	[HF__OP_FORCE] = HF__FORCE, [HF__OP_IS_LOCKED] = HF__LOOK, [HF__OP_IS_HELD] = HF__LOOK,
	[HF__OP_COUNT] = HF__LOOK,  [HF__OP_TTL] = HF__LOOK,       [HF__OP_HOLDER] = HF__LOOK,
	[HF__OP_PING] = HF__PING,   [HF__OP_LINK] = HF__PING,
};

static void drop_look(struct hf__core *core, struct hf__look *look)
{
	struct hf__lock *lock = look->cmd.lock;
	hf__list_remove(&look->link);
	free(look);
	if (lock)
		hf__lock_unref(core, lock);
}

/* What our own owners held is lost now, and they are told so. */
static void lose_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->state == HF__HOLD_HELD)
			hf__hold_lose(core, hold, HF__LOST_FORCED, now);
	}
}

static void done(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                 int64_t now)
{
	size_t length = answer->length < sizeof op->text ? answer->length : sizeof op->text - 1;
	switch (op->verb) {
	case HF__OP_FORCE:
		op->number = answer->count;
		if (answer->count)
			lose_all(core, op->lock, now);
		break;
	case HF__OP_IS_LOCKED: op->number = answer->ttl_ms != -2; break;
	case HF__OP_IS_HELD: op->number = answer->count > 0; break;
	case HF__OP_COUNT: op->number = answer->count; break;
	case HF__OP_TTL: op->number = answer->ttl_ms; break;
	default:
		if (length > 0)
			memcpy(op->text, answer->text, length);
		op->text[length] = 0;
	}
	hf__core_succeed(core, op);
}

static void answered(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now)
{
	struct hf__look *look = hf__list_item(cmd, struct hf__look, cmd);
	struct hf__op *op = look->op;
	/* What may have been done by force is not done again: another may hold the lock by now. */
	bool unknown = answer->outcome == HF__UNKNOWN && look->cmd.verb != HF__FORCE;
	bool again = unknown || answer->outcome == HF__UNSENT || answer->outcome == HF__NOT_NOW;
	if (answer->outcome == HF__UNKNOWN)
		core->stats.unknowns++;
	if (op && again && !(answer->outcome == HF__UNSENT && core->linked)) {
		if (answer->outcome == HF__NOT_NOW)
			hf__core_not_now(core, op, answer, now);
		return;
	}
	if (!op) {
		drop_look(core, look);
		return;
	}
	op->look = NULL;
	look->op = NULL;
	if (answer->outcome == HF__DONE)
		done(core, op, answer, now);
	else if (answer->outcome == HF__UNKNOWN)
		hf__core_finish(core, op, HF_EUNKNOWN, "not answered: %s", core->link_why);
	else
		hf__core_finish(core, op, answer->error, "%.*s", (int)answer->length, answer->text);
	drop_look(core, look);
}

void hf__query_resume(struct hf__core *core, struct hf__look *look, int64_t now)
{
	struct hf__op *op = look->op;
	if (!core->linked) {
		core->backend_ops->want_link(core->backend);
	} else if (op->verb == HF__OP_LINK) {
		op->look = NULL;
		drop_look(core, look);
		hf__core_succeed(core, op);
	} else if (!look->cmd.in_flight)
		hf__core_submit(core, &look->cmd, now, core->config.command_timeout_ms);
}

void hf__query_leave(struct hf__core *core, struct hf__op *op, int result, int64_t now)
{
	struct hf__look *look = op->look;
	op->look = NULL;
	look->op = NULL;
	if (!look->cmd.in_flight)
		drop_look(core, look);
	if (result == op->refusal)
		hf__core_finish_refused(core, op);
	else if (op->verb == HF__OP_LINK)
		hf__core_finish(core, op, result, "%s", core->link_why);
	else
		hf__core_finish(core, op, result, "no answer in %" PRId64 " ms%s%s",
		                now - op->started_at, core->linked ? "" : ": ",
		                core->linked ? "" : core->link_why);
}

void hf__query_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	struct hf__hold *hold = op->lock ? hf__hold_find(op->lock, op->owner) : NULL;
	bool about_owner = op->verb == HF__OP_IS_HELD || op->verb == HF__OP_COUNT;
	if (about_owner && (!hold || hold->state != HF__HOLD_HELD)) {
		op->number = 0;
		hf__core_succeed(core, op);
		return;
	}
	struct hf__look *look = calloc(1, sizeof(*look));
	if (!look) {
		hf__core_finish(core, op, HF_ENOMEM, "no memory for a command");
		return;
	}
	look->op = op;
	op->look = look;
	look->cmd.verb = verb_of[op->verb];
	look->cmd.user = HF__CMD_OF_LOOK;
	look->cmd.lock = op->lock;
	if (op->lock)
		op->lock->refs++;
	look->cmd.wire = hold ? hold->cmd.wire : 0;
	look->cmd.answered = answered;
	hf__list_init(&look->cmd.link);
	hf__list_add(&core->looks, &look->link);
	hf__query_resume(core, look, now);
}
