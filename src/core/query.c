/* Questions to the server, and release by force: calls that hold nothing. */
#include "core/core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t verb_of[HF__OP_VERBS] = {
	[HF__OP_FORCE] = HF__FORCE,
	[HF__OP_QUERY] = HF__LOOK,
	[HF__OP_PING] = HF__PING,
	[HF__OP_LINK] = HF__PING,
};

/*
 * What may be repeated: it changes nothing, or the same again, or knows a repeat. The rest would hit whoever
 * came after the first time; so would the removal of a barrier, where the server keeps no record of it.
 */
static bool may_repeat(const struct hf__cmd *cmd)
{
	bool barrier = cmd->verb == HF__LATCH_DELETE && cmd->lock->kind == HF__NODE_BARRIER;
	return cmd->verb != HF__FORCE && cmd->verb != HF__REVOKE && !barrier;
}

/* Verbs after which something may have changed. */
static bool changes(uint8_t verb)
{
	switch (verb) {
	case HF__LOOK:
	case HF__PING:
	case HF__IDENTIFY:
	case HF__LIST:
	case HF__INSPECT:
	case HF__FACTS:
	case HF__TOKEN:
	case HF__PERMITS_LEASE:
	case HF__PERMITS_AVAILABLE:
	case HF__PERMITS_ACQUIRED:
	case HF__PERMITS_TOTAL: return false;
	default: return true;
	}
}

/* ---- permits by their ids ---- */

void hf__query_permit_id(const struct hf__core *core, uint64_t wire,
                         unsigned char ret_id[HF__PERMIT_SIZE])
{
	memcpy(ret_id, core->permit_prefix, 8);
	for (int i = 0; i < 8; i++)
		ret_id[8 + i] = (unsigned char)(wire >> (56 - 8 * i));
}

uint64_t hf__query_permit_wire(const struct hf__core *core, const unsigned char id[HF__PERMIT_SIZE])
{
	uint64_t wire = 0;
	if (memcmp(id, core->permit_prefix, 8) != 0)
		return 0;
	for (int i = 0; i < 8; i++)
		wire = wire << 8 | id[8 + i];
	return wire;
}

/* A repeat would be taken for a new request, since the server has forgotten the first one. */
static bool is_forgotten(const struct hf__look *look, int64_t now)
{
	return look->cmd.again && changes(look->cmd.verb) && now >= look->known_until;
}

static struct hf__hold *own_permit(struct hf__core *core, struct hf__look *look, uint16_t i)
{
	uint64_t wire = hf__query_permit_wire(core, look->given[i].permit);
	return wire ? hf__hold_find(look->cmd.lock, wire) : NULL;
}

typedef void each_permit_fn(struct hf__core *core, struct hf__hold *hold, int64_t now);

/* Those of the request's permits that this client has. */
static void each_permit(struct hf__core *core, struct hf__look *look, each_permit_fn *visit,
                        int64_t now)
{
	for (uint16_t i = 0; i < look->cmd.items; i++) {
		struct hf__hold *hold = own_permit(core, look, i);
		if (hold)
			visit(core, hold, now);
	}
}

/* Given up from now on, whatever the answer will be. */
static void begin_release(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	/* Of a session only we know that its time is over. */
	if (hf__kind_of(hold->cmd.lock)->session)
		(void)hf__hold_check(core, hold, now);
	if (hold->state != HF__HOLD_HELD)
		return;
	hf__hold_hide(core, hold);
	hold->watched_from = 0;
	hold->state = HF__HOLD_RELEASING;
}

static void end_release(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_RELEASING)
		hf__hold_end(core, hold, now);
	else if (hold->state == HF__HOLD_LOST)
		hf__hold_forget(core, hold, now); /* what is left of it may be on its way out */
}

/* The request was refused, or nobody knows: what is ours is given back in the background. */
static void leave_release(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state != HF__HOLD_RELEASING)
		return;
	hold->doubtful = true;
	hf__hold_abandon(core, hold, now);
}

/* It may be executed from now on, and what it makes shorter must not be believed longer. */
static void begin_extend(struct hf__core *core, struct hf__look *look, int64_t now)
{
	struct hf__hold *hold = own_permit(core, look, 0);
	if (!hold || hold->state != HF__HOLD_HELD)
		return;
	look->was_watched = hold->watched_from;
	hold->watched_from = 0;
	hf__watchdog_drop(core, hold);
	hf__hold_shorten(core, hold, now, look->cmd.lease_ms);
}

/* It was not executed: the watchdog goes on. */
static void undo_extend(struct hf__core *core, struct hf__look *look, int64_t now)
{
	struct hf__hold *hold = own_permit(core, look, 0);
	if (!hold || hold->state != HF__HOLD_HELD || !look->was_watched)
		return;
	hold->watched_from = 1;
	hold->renew_at = now;
	hf__hold_arm(core, hold);
}

/* The new end is the caller's, no more the watchdog's. */
static void extended(struct hf__core *core, const struct hf__look *look, struct hf__hold *hold,
                     int64_t now)
{
	if (hold->state != HF__HOLD_HELD)
		return;
	hf__hold_set_lease(core, hold, look->cmd.sent_at, look->cmd.lease_ms);
	(void)hf__hold_check(core, hold, now);
}

/* ---- answers ---- */

static void drop_look(struct hf__core *core, struct hf__look *look)
{
	struct hf__lock *lock = look->cmd.lock;
	hf__list_remove(&look->link);
	if (look->recorded)
		hf__record_free(core, look->cmd.record, look->known_until);
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

/* Copies the rows out; false without memory. */
static bool take_rows(struct hf__op *op, const struct hf__answer *answer)
{
	for (size_t i = 0; op->want.rows && i < answer->rows; i++) {
		size_t length;
		const char *row = answer->row(answer, i, &length);
		if (hf__buffer_reserve(op->want.rows, sizeof length + length))
			return false;
		memcpy(op->want.rows->data + op->want.rows->length, &length, sizeof length);
		memcpy(op->want.rows->data + op->want.rows->length + sizeof length, row, length);
		op->want.rows->length += sizeof length + length;
	}
	return true;
}

/* The number that answers the question. */
static int64_t read_number(const struct hf__op *op, const struct hf__answer *answer)
{
	bool counted_here = hf__kind_of(op->lock)->nesting == HF__NEST_HERE;
	switch (op->want.question) {
	case HF__QUERY_IS_LOCKED: return answer->ttl_ms != -2;
	case HF__QUERY_IS_HELD: return answer->count > 0;
	case HF__QUERY_COUNT:
		/* Where the server knows one level only, the count of our own hold stands. */
		return counted_here && answer->count != 0 ? op->number : answer->count;
	case HF__QUERY_TTL: return answer->ttl_ms;
	default: return op->number;
	}
}

static void done(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                 int64_t now)
{
	size_t length = answer->length < sizeof op->text ? answer->length : sizeof op->text - 1;
	switch (op->want.verb) {
	case HF__OP_FORCE:
		op->number = answer->count;
		if (answer->count)
			lose_all(core, op->lock, now);
		break;
	case HF__OP_QUERY: op->number = read_number(op, answer); break;
	case HF__OP_REQUEST: op->number = answer->count; break;
	default: break;
	}
	if (length > 0)
		memcpy(op->text, answer->text, length);
	op->text[length] = 0;
	if (take_rows(op, answer))
		hf__core_succeed(core, op);
	else
		hf__core_finish(core, op, HF_ENOMEM, "no memory for an answer");
}

/* What was said about permits; true if one that this client held was not there any more. */
static bool settle_permits(struct hf__core *core, struct hf__look *look,
                           const struct hf__answer *answer, enum hf__outcome outcome, int64_t now)
{
	bool ours = false;
	for (uint16_t i = 0; outcome == HF__GONE && i < look->cmd.items; i++) {
		bool named = answer->length == HF__PERMIT_SIZE &&
		             memcmp(answer->text, look->given[i].permit, HF__PERMIT_SIZE) == 0;
		ours = ours || ((named || look->cmd.items == 1) && own_permit(core, look, i));
	}
	if (look->cmd.verb == HF__PERMITS_RELEASE) {
		bool over = outcome == HF__DONE || (look->cmd.items == 1 && outcome == HF__GONE);
		each_permit(core, look, over ? end_release : leave_release, now);
		core->stats.releases += outcome == HF__DONE ? look->cmd.items : 0;
	}
	struct hf__hold *hold =
		look->cmd.verb == HF__PERMITS_EXTEND ? own_permit(core, look, 0) : NULL;
	if (hold && outcome == HF__DONE)
		extended(core, look, hold, now);
	else if (hold && outcome == HF__GONE && hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	else if (hold && outcome != HF__UNKNOWN && !look->cmd.again)
		undo_extend(core, look, now);
	return ours;
}

/* All permits of the request were held by this client when it began. */
static bool were_all_ours(struct hf__core *core, struct hf__look *look)
{
	for (uint16_t i = 0; i < look->cmd.items; i++) {
		const struct hf__hold *hold = own_permit(core, look, i);
		if (!hold || hold->state != HF__HOLD_RELEASING)
			return false;
	}
	return true;
}

static void finish(struct hf__core *core, struct hf__look *look, struct hf__op *op,
                   const struct hf__answer *answer, int64_t now)
{
	enum hf__outcome outcome = answer->outcome;
	/* A repeat finds what the first one did, if that had to succeed; else nobody knows. */
	if (outcome == HF__GONE && look->cmd.verb == HF__PERMITS_RELEASE && look->cmd.again)
		outcome = were_all_ours(core, look) ? HF__DONE : HF__UNKNOWN;
	bool ours = settle_permits(core, look, answer, outcome, now);
	if (outcome == HF__DONE)
		done(core, op, answer, now);
	else if (outcome == HF__GONE)
		hf__core_finish(
			core, op, ours ? HF_ELOST : HF_ENOTHELD,
			"%s: the permit is not there: expired, given back, or never granted",
			op->lock->name);
	else if (outcome == HF__UNKNOWN)
		hf__core_finish(core, op, HF_EUNKNOWN, "not answered in time: %s", core->link_why);
	else
		hf__core_finish(core, op, answer->error, "%.*s", (int)answer->length, answer->text);
}

static void answered(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now)
{
	struct hf__look *look = hf__list_item(cmd, struct hf__look, cmd);
	struct hf__op *op = look->op;
	/* What may have been done by force is not done again: another may hold the lock by now. */
	bool unknown = answer->outcome == HF__UNKNOWN && may_repeat(cmd);
	bool again = unknown || answer->outcome == HF__UNSENT || answer->outcome == HF__NOT_NOW;
	if (answer->outcome == HF__UNKNOWN) {
		core->stats.unknowns++;
		if (!look->known_until)
			look->known_until = cmd->sent_at + HF__RECORD_MS * 9 / 10;
	} else if (!again) {
		look->known_until = 0; /* its record has served its purpose */
	}
	if (op && again && !(answer->outcome == HF__UNSENT && core->linked)) {
		cmd->again = cmd->again || unknown;
		if (answer->outcome == HF__NOT_NOW)
			hf__core_not_now(core, op, answer, now);
		return;
	}
	if (op) {
		op->look = NULL;
		look->op = NULL;
		finish(core, look, op, answer, now);
	}
	drop_look(core, look);
}

void hf__query_resume(struct hf__core *core, struct hf__look *look, int64_t now)
{
	struct hf__op *op = look->op;
	if (!core->linked) {
		core->backend_ops->want_link(core->backend);
	} else if (op->want.verb == HF__OP_LINK) {
		op->look = NULL;
		drop_look(core, look);
		hf__core_succeed(core, op);
	} else if (is_forgotten(look, now)) {
		hf__query_leave(core, op, HF_EUNKNOWN, now);
	} else if (!look->cmd.in_flight)
		hf__core_submit(core, &look->cmd, now, core->config.command_timeout_ms);
}

void hf__query_leave(struct hf__core *core, struct hf__op *op, int result, int64_t now)
{
	struct hf__look *look = op->look;
	bool sent = look->cmd.in_flight || look->cmd.again;
	op->look = NULL;
	look->op = NULL;
	if (look->cmd.verb == HF__PERMITS_RELEASE)
		each_permit(core, look, leave_release, now);
	else if (look->cmd.verb == HF__PERMITS_EXTEND && !sent)
		undo_extend(core, look, now);
	if (sent && changes(look->cmd.verb) && result != HF_ECLOSED)
		result = HF_EUNKNOWN;
	if (!look->cmd.in_flight)
		drop_look(core, look);
	if (result == op->refusal)
		hf__core_finish_refused(core, op);
	else if (op->want.verb == HF__OP_LINK)
		hf__core_finish(core, op, result, "%s", core->link_why);
	else
		hf__core_finish(core, op, result, "no answer in %" PRId64 " ms%s%s",
		                now - op->started_at, core->linked ? "" : ": ",
		                core->linked ? "" : core->link_why);
}

/* What the caller gave beside numbers: ids of permits, or words. */
static size_t given_size(const struct hf__op *op)
{
	if (op->want.permit)
		return (size_t)op->want.amount * HF__PERMIT_SIZE;
	size_t size = 0;
	for (int32_t i = 0; op->want.words && i < op->want.amount; i++)
		size += strlen(op->want.words + size) + 1;
	return size;
}

static struct hf__look *new_look(struct hf__core *core, struct hf__op *op)
{
	size_t given = given_size(op);
	struct hf__look *look = calloc(1, sizeof(*look) + given);
	if (!look)
		return NULL;
	look->op = op;
	op->look = look;
	look->cmd.verb =
		op->want.verb == HF__OP_REQUEST ? op->want.request : verb_of[op->want.verb];
	look->cmd.user = HF__CMD_OF_LOOK;
	look->cmd.lock = op->lock;
	if (op->lock)
		op->lock->refs++;
	look->cmd.count = op->want.amount;
	look->cmd.lease_ms = op->want.lease_ms;
	if (given > 0) {
		memcpy(look->given,
		       op->want.permit ? (const void *)op->want.permit : op->want.words, given);
		look->cmd.words = look->given[0].words;
		look->cmd.items = (uint16_t)op->want.amount;
	}
	look->cmd.answered = answered;
	hf__list_init(&look->cmd.link);
	hf__list_add(&core->looks, &look->link);
	return look;
}

void hf__query_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	bool about_owner = hf__want_is_about_owner(&op->want);
	struct hf__hold *hold = about_owner ? hf__hold_find(op->lock, op->want.owner) : NULL;
	if (about_owner && (!hold || hold->state != HF__HOLD_HELD)) {
		op->number = 0;
		hf__core_succeed(core, op);
		return;
	}
	struct hf__look *look = new_look(core, op);
	if (!look) {
		hf__core_finish(core, op, HF_ENOMEM, "no memory for a command");
		return;
	}
	if (hold) {
		look->cmd.wire = hold->cmd.wire;
		op->number = hold->count;
	} else if (changes(look->cmd.verb)) {
		look->cmd.wire = ++core->last_request;
		look->cmd.record = hf__record_take(core, look->cmd.wire, now);
		look->recorded = true;
	}
	if (look->cmd.verb == HF__PERMITS_RELEASE)
		each_permit(core, look, begin_release, now);
	else if (look->cmd.verb == HF__PERMITS_EXTEND)
		begin_extend(core, look, now);
	hf__query_resume(core, look, now);
}
