/* Queries, release by force, and commands about permits, semaphores and latches. */
#include "core/query.h"
#include "base/buffer.h"
#include "core/cmd.h"
#include "core/core.h"
#include "core/mutants.h"
#include "core/record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t verb_of(const struct hf__want *want)
{
	switch ((enum hf__op_action)want->action) {
	case HF__OP_FORCE: return HF__FORCE;
	case HF__OP_QUERY: return HF__LOOK;
	case HF__OP_PING:
	case HF__OP_LINK: return HF__PING;
	case HF__OP_COMMAND: return want->command;
	case HF__OP_ACQUIRE:
	case HF__OP_RELEASE:
	case HF__OP_EXTEND:
	case HF__OP_NOTHING:
	case HF__OP_PAUSE:
	case HF__OP_CLOSE:
	case HF__OP_ACTIONS: break;
	}
	assert(!"a query's verb");
	return HF__PING;
}

/*
 * A command can be repeated if it changes nothing, has the same effect twice, or is recognised as a
 * repeat. The second execution of any other command would hit the next holder; so would the removal
 * of a barrier if the server keeps no record of it.
 */
static bool may_repeat(const struct hf__cmd *cmd)
{
	bool barrier = cmd->verb == HF__LATCH_DELETE && cmd->lock->traits->unrecorded;
	return cmd->verb != HF__FORCE && cmd->verb != HF__REVOKE && !barrier;
}

/* Whether the command may change something on the server. */
static bool changes(uint8_t verb)
{
	switch ((enum hf__verb)verb) {
	case HF__LOOK:
	case HF__PING:
	case HF__IDENTIFY:
	case HF__LIST:
	case HF__LIST_WAITED:
	case HF__INSPECT:
	case HF__INSPECT_MANY:
	case HF__HISTORY:
	case HF__HISTORY_HELD:
	case HF__HISTORY_STREAMS:
	case HF__FACTS:
	case HF__TOKEN:
	case HF__PERMITS_LEASE:
	case HF__PERMITS_AVAILABLE:
	case HF__PERMITS_ACQUIRED:
	case HF__PERMITS_TOTAL: return false;
	case HF__ASK:
	case HF__SETTLE:
	case HF__MOVE:
	case HF__RENEW:
	case HF__SYNC:
	case HF__FORCE:
	case HF__REVOKE:
	case HF__HISTORY_CLEAR:
	case HF__DROP_WAITER:
	case HF__SEMAPHORE_RELEASE:
	case HF__SEMAPHORE_RELEASE_IF:
	case HF__SEMAPHORE_ADD:
	case HF__SEMAPHORE_SET:
	case HF__SEMAPHORE_DRAIN:
	case HF__PERMITS_RELEASE:
	case HF__PERMITS_EXTEND:
	case HF__PERMITS_TRY_SET:
	case HF__PERMITS_SET:
	case HF__PERMITS_ADD:
	case HF__PERMITS_FROM:
	case HF__LATCH_SET:
	case HF__LATCH_DOWN:
	case HF__LATCH_DELETE:
	case HF__VERBS: break;
	}
	return true;
}

/* ---- memory ---- */

/* Others wait for what the call gives back, so it must not fail for lack of memory. */
static bool gives_back(const struct hf__op *op)
{
	if (op->want.action != HF__OP_COMMAND)
		return false;
	return op->want.command == HF__PERMITS_RELEASE ||
	       op->want.command == HF__SEMAPHORE_RELEASE ||
	       op->want.command == HF__SEMAPHORE_RELEASE_IF || op->want.command == HF__LATCH_DOWN;
}

bool hf__query_reserve(struct hf__core *core, const struct hf__lock *lock)
{
	if (!core->spare && lock->traits->nesting == HF__NEST_APART)
		core->spare = malloc(sizeof(*core->spare) + HF__PERMITS_MAX * HF__PERMIT_SIZE);
	return core->spare || lock->traits->nesting != HF__NEST_APART;
}

/*
 * Returns it zeroed. Without memory, calls that give something back use the spare one in order.
 */
static struct hf__query *take_memory(struct hf__core *core, const struct hf__op *op, size_t given)
{
	struct hf__query *query = calloc(1, sizeof(*query) + given);
	if (query || !core->spare || core->spare_is_used || !gives_back(op))
		return query;
	core->spare_is_used = true;
	return memset(core->spare, 0, sizeof(*query) + given);
}

static void give_memory(struct hf__core *core, struct hf__query *query, int64_t now)
{
	struct hf__list *link;
	if (query != core->spare) {
		free(query);
		return;
	}
	core->spare_is_used = false;
	hf__list_each (link, &core->starved)
		hf__wheel_start(&core->wheel, &hf__list_item(link, struct hf__op, link)->retry,
		                now);
}

/* The call waits for the spare query, or fails. */
static void lack_memory(struct hf__core *core, struct hf__op *op)
{
	if (!core->spare || !gives_back(op)) {
		hf__op_finish(core, op, HF_ENOMEM, "no memory for a command");
		return;
	}
	op->refusal = HF_ENOMEM;
	snprintf(op->detail, sizeof op->detail, "no memory for a command; nothing was released");
	hf__list_add(&core->starved, &op->link);
}

/* ---- permits by their ids ---- */

/* The server has forgotten the first execution, so it would treat a repeat as a new command. */
static bool is_forgotten(const struct hf__query *query, int64_t now)
{
	return query->cmd.again && changes(query->cmd.verb) && now >= query->known_until;
}

static struct hf__hold *own_permit(struct hf__core *core, const struct hf__query *query, uint16_t i)
{
	uint64_t wire = hf__permit_wire(core, query->given[i].permit);
	return wire ? hf__hold_find(query->cmd.lock, wire) : NULL;
}

static bool is_about_same_permit(const struct hf__query *one, const struct hf__query *other)
{
	return one != other && one->cmd.verb == HF__PERMITS_EXTEND &&
	       other->cmd.verb == HF__PERMITS_EXTEND && one->cmd.lock == other->cmd.lock &&
	       memcmp(one->given[0].permit, other->given[0].permit, HF__PERMIT_SIZE) == 0;
}

typedef void each_permit_fn(struct hf__core *core, struct hf__hold *hold, int64_t now);

/* Visits the command's permits that this client holds. */
static void each_permit(struct hf__core *core, struct hf__query *query, each_permit_fn *visit,
                        int64_t now)
{
	for (uint16_t i = 0; i < query->cmd.items; i++) {
		struct hf__hold *hold = own_permit(core, query, i);
		if (hold)
			visit(core, hold, now);
	}
}

/* The permit counts as released from now on, even if the command fails. */
static void begin_release(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	/* Only this client knows whether the lease has expired. */
	if (!hf__policy_of(hold->cmd.lock)->server_ends)
		(void)hf__hold_check(core, hold, now);
	if (hold->state != HF__HOLD_HELD)
		return;
	hf__hold_hide(core, hold);
	hold->renewed_from = 0;
	hold->state = HF__HOLD_RELEASING;
}

static void end_release(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state == HF__HOLD_RELEASING)
		hf__hold_end(core, hold, now);
	else if (hold->state == HF__HOLD_LOST)
		hf__hold_forget(core, hold, now); /* its removal may be in progress */
}

/* The command was refused or its outcome is unknown: releases our permits in the background. */
static void leave_release(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state != HF__HOLD_RELEASING)
		return;
	hold->doubtful = true;
	hf__hold_abandon(core, hold, now);
}

/* Another extension of the same permit is in progress. */
static bool waits_for_another(const struct hf__core *core, const struct hf__query *query)
{
	const struct hf__list *link;
	hf__list_each (link, &core->queries) {
		const struct hf__query *other = hf__list_item(link, struct hf__query, link_in_core);
		if (is_about_same_permit(other, query) && other->has_begun)
			return true;
	}
	return false;
}

/* The command may run from now on, so valid-until must not be later than the new lease allows. */
static void begin_extend(struct hf__core *core, struct hf__query *query, int64_t now)
{
	struct hf__hold *hold = own_permit(core, query, 0);
	query->has_begun = true;
	if (!hold)
		return;
	query->was_renewed = hold->renewed_from;
	hold->renewed_from = 0;
	hf__hold_drop_renewal(core, hold);
	hf__hold_shorten(core, hold, now, query->cmd.lease_ms);
}

/*
 * The command failed, or nobody waits for its answer any more: the watchdog continues. A command
 * that may still run would shorten the lease, so it renews with the shorter one of the two.
 */
static void undo_extend(struct hf__core *core, const struct hf__query *query, bool may_run,
                        int64_t now)
{
	struct hf__hold *hold = own_permit(core, query, 0);
	if (!query->has_begun || !hold || hold->state != HF__HOLD_HELD || !query->was_renewed)
		return;
	if (may_run && hf__policy_of(hold->cmd.lock)->server_ends &&
	    query->cmd.lease_ms < hf__hold_renew_lease(core, hold))
		hold->renew_ms = query->cmd.lease_ms;
	hold->renewed_from = 1;
	hold->renew_at = now;
	hf__hold_arm(core, hold);
}

/* The lease is the caller's from now on, not the watchdog's, unless the answer came too late. */
static void on_extended(struct hf__core *core, const struct hf__query *query, struct hf__hold *hold,
                        int64_t now)
{
	if (hf__hold_check(core, hold, now) || hold->state != HF__HOLD_HELD)
		return;
	hold->renew_ms = 0;
	hf__hold_set_lease(core, hold, query->cmd.sent_at, query->cmd.lease_ms);
	(void)hf__hold_check(core, hold, now);
}

/* Lets the next extension of the same permit begin. */
static void let_next_extend(struct hf__core *core, const struct hf__query *query, int64_t now)
{
	struct hf__list *link;
	hf__list_each (link, &core->queries) {
		struct hf__query *next = hf__list_item(link, struct hf__query, link_in_core);
		if (!is_about_same_permit(next, query) || !next->op)
			continue;
		hf__wheel_start(&core->wheel, &next->op->retry, now);
		return;
	}
}

/* ---- answers ---- */

static void drop_query(struct hf__core *core, struct hf__query *query, int64_t now)
{
	struct hf__lock *lock = query->cmd.lock;
	hf__list_remove(&query->link_in_core);
	if (query->has_begun)
		let_next_extend(core, query, now);
	if (query->recorded)
		hf__record_free(core, query->cmd.record, query->known_until);
	give_memory(core, query, now);
	if (lock)
		hf__lock_unref(core, lock);
}

static void lose_holds(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__list *link, *after;
	hf__hold_outdate_syncs(core, lock, 0);
	hf__list_each_safe (link, after, &lock->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->state == HF__HOLD_HELD)
			hf__hold_lose(core, hold, HF__LOST_FORCED, now);
	}
}

/* The holds of this client are lost, of whatever kind, and their owners are notified. */
static void lose_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	lose_holds(core, lock, now);
	struct hf__lock *next, *rival = hf__lock_rival(core, lock, NULL);
	while (rival && !HF__MUTANT(FORCE_ONE_KIND)) {
		rival->refs++;
		lose_holds(core, rival, now);
		next = hf__lock_rival(core, lock, rival);
		hf__lock_unref(core, rival);
		rival = next;
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
	bool counted_here = op->lock->traits->nesting == HF__NEST_HERE;
	switch (op->want.question) {
	case HF__QUERY_IS_LOCKED: return answer->ttl_ms != -2;
	case HF__QUERY_IS_HELD:
	case HF__QUERY_IS_SET: return answer->count > 0;
	case HF__QUERY_COUNT:
		/* If the server counts only one level, the answer is the count of our own hold. */
		return counted_here && answer->count != 0 ? op->number : answer->count;
	case HF__QUERY_TTL: return answer->ttl_ms;
	default: return op->number;
	}
}

static void finish_done(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer)
{
	size_t length = answer->length < sizeof op->text ? answer->length : sizeof op->text - 1;
	switch (op->want.action) {
	case HF__OP_QUERY: op->number = read_number(op, answer); break;
	case HF__OP_FORCE:
	case HF__OP_COMMAND: op->number = answer->count; break;
	default: break;
	}
	if (length > 0)
		memcpy(op->text, answer->text, length);
	op->text[length] = 0;
	if (take_rows(op, answer))
		hf__op_succeed(core, op);
	else
		hf__op_finish(core, op, HF_ENOMEM, "no memory for an answer");
}

/* The permit of this client that the command extends, or NULL. */
static struct hf__hold *extended_permit(struct hf__core *core, const struct hf__query *query)
{
	return query->cmd.verb == HF__PERMITS_EXTEND ? own_permit(core, query, 0) : NULL;
}

/* The server did not have the permit that was to be released; its owner is notified of that. */
static void lose_released(struct hf__core *core, struct hf__hold *hold, int64_t now)
{
	if (hold->state != HF__HOLD_RELEASING)
		return;
	hf__hold_lose(core, hold, HF__LOST_GONE, now);
	hf__hold_forget(core, hold, now);
}

/* Settles the permits of the command; true if a permit that this client held was gone. */
static bool settle_permits(struct hf__core *core, struct hf__query *query,
                           const struct hf__answer *answer, enum hf__outcome outcome, int64_t now)
{
	bool ours = false;
	for (uint16_t i = 0; outcome == HF__GONE && i < query->cmd.items; i++) {
		bool named = answer->length == HF__PERMIT_SIZE &&
		             memcmp(answer->text, query->given[i].permit, HF__PERMIT_SIZE) == 0;
		struct hf__hold *gone =
			named || query->cmd.items == 1 ? own_permit(core, query, i) : NULL;
		ours = ours || gone;
		if (gone && query->cmd.verb == HF__PERMITS_RELEASE)
			lose_released(core, gone, now);
	}
	if (query->cmd.verb == HF__PERMITS_RELEASE) {
		bool over = outcome == HF__DONE || (query->cmd.items == 1 && outcome == HF__GONE);
		each_permit(core, query, over ? end_release : leave_release, now);
		core->stats.releases += outcome == HF__DONE ? query->cmd.items : 0;
	}
	struct hf__hold *hold = extended_permit(core, query);
	if (hold && outcome == HF__DONE)
		on_extended(core, query, hold, now);
	else if (hold && outcome == HF__GONE && hold->state == HF__HOLD_HELD)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	else if (hold)
		undo_extend(core, query, query->cmd.again || outcome == HF__UNKNOWN, now);
	return ours;
}

/*
 * Describes the loss of a permit that is to be released, if its owner was notified of one. The
 * server may still have such a permit; the release frees it there, but it stays lost.
 */
static void explain_loss(struct hf__core *core, const struct hf__query *query, int64_t now,
                         char *ret_text, size_t size)
{
	*ret_text = 0;
	for (uint16_t i = 0; query->cmd.verb == HF__PERMITS_RELEASE && i < query->cmd.items; i++) {
		const struct hf__hold *hold = own_permit(core, query, i);
		if (hold && hold->state == HF__HOLD_LOST) {
			hf__hold_explain(hold, now, ret_text, size);
			return;
		}
	}
}

/* This client held all permits of the command when it began. */
static bool were_all_ours(struct hf__core *core, struct hf__query *query)
{
	for (uint16_t i = 0; i < query->cmd.items; i++) {
		const struct hf__hold *hold = own_permit(core, query, i);
		if (!hold || hold->state != HF__HOLD_RELEASING)
			return false;
	}
	return true;
}

static void finish(struct hf__core *core, struct hf__query *query, struct hf__op *op,
                   const struct hf__answer *answer, int64_t now)
{
	enum hf__outcome outcome = answer->outcome;
	char loss[HF__DETAIL_SIZE];
	explain_loss(core, query, now, loss, sizeof loss);
	/* A repeat finds nothing if the first one ran, as it must have if all permits were ours. */
	if (outcome == HF__GONE && query->cmd.verb == HF__PERMITS_RELEASE && query->cmd.again)
		outcome = were_all_ours(core, query) ? HF__DONE : HF__UNKNOWN;
	bool failed = outcome == HF__UNSENT || outcome == HF__FAILED;
	bool may_have_run = failed && query->cmd.again && changes(query->cmd.verb);
	bool ours = settle_permits(core, query, answer, may_have_run ? HF__UNKNOWN : outcome, now);
	const struct hf__hold *extended = extended_permit(core, query);
	if (outcome == HF__DONE && extended && extended->state == HF__HOLD_LOST)
		hf__hold_finish_lost(core, op, extended, NULL, 0, now);
	else if (outcome == HF__DONE && *loss)
		hf__op_finish(core, op, HF_ELOST, "%s", loss);
	else if (outcome == HF__DONE)
		finish_done(core, op, answer);
	else if (outcome == HF__GONE)
		hf__op_finish(core, op, ours ? HF_ELOST : HF_ENOTHELD,
		              "%s: there is no such permit: it expired, was released, or was never "
		              "granted",
		              op->lock->name);
	else if (outcome == HF__UNKNOWN)
		hf__op_finish(core, op, HF_EUNKNOWN, "not answered in time: %s",
		              hf__query_link(query)->why);
	else if (may_have_run)
		hf__op_finish(core, op, HF_EUNKNOWN,
		              "not answered at first; then the repeat failed: %.*s",
		              (int)answer->length, answer->text);
	else
		hf__op_finish(core, op, answer->error, "%.*s", (int)answer->length, answer->text);
}

/* No call waits for the answer. A command that was answered and not sent twice cannot run later. */
static void on_late_extend(struct hf__core *core, const struct hf__query *query,
                           enum hf__outcome outcome, int64_t now)
{
	struct hf__hold *hold = extended_permit(core, query);
	if (hold->state != HF__HOLD_HELD)
		return;
	if (outcome == HF__GONE)
		hf__hold_lose(core, hold, HF__LOST_GONE, now);
	else if (outcome != HF__UNKNOWN && !query->cmd.again)
		hold->renew_ms = 0;
}

static void on_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                      int64_t now)
{
	struct hf__query *query = hf__list_item(cmd, struct hf__query, cmd);
	struct hf__op *op = query->op;
	/* A release by force is not repeated: another client may hold the lock by now. */
	bool unknown = answer->outcome == HF__UNKNOWN && may_repeat(cmd);
	bool again = unknown || answer->outcome == HF__UNSENT || answer->outcome == HF__NOT_NOW;
	if (answer->outcome == HF__UNKNOWN) {
		core->stats.unknowns++;
		if (!query->known_until)
			query->known_until = cmd->sent_at + HF__RECORD_MS * 9 / 10;
	} else if (!again) {
		query->known_until = 0; /* its record can be used again at once */
	}
	if (cmd->verb == HF__FORCE && answer->outcome == HF__DONE && answer->count)
		lose_all(core, cmd->lock, now);
	bool fails = op && !gives_back(op) && hf__cmd_lacks_memory(answer, hf__query_link(query));
	if (op && again && !fails) {
		cmd->again = cmd->again || unknown;
		if (hf__cmd_is_retried(answer, hf__query_link(query)))
			hf__op_retry_later(core, op, answer, now);
		return;
	}
	if (op) {
		op->query = NULL;
		query->op = NULL;
		finish(core, query, op, answer, now);
	} else if (extended_permit(core, query))
		on_late_extend(core, query, answer->outcome, now);
	drop_query(core, query, now);
}

/* Finishes the extension of a permit of this client that is not held; true if it did. */
static bool refuse_extend(struct hf__core *core, struct hf__query *query, int64_t now)
{
	struct hf__op *op = query->op;
	struct hf__hold *hold = extended_permit(core, query);
	if (!hold || query->has_begun)
		return false;
	bool lost = hf__hold_check(core, hold, now);
	if (hold->state == HF__HOLD_HELD)
		return false;
	op->query = NULL;
	if (lost)
		hf__hold_finish_lost(core, op, hold, NULL, 0, now);
	else
		hf__op_finish(core, op, HF_ENOTHELD, "%s: the permit is being released",
		              op->lock->name);
	drop_query(core, query, now);
	return true;
}

static bool are_all_lost(struct hf__core *core, const struct hf__query *query, int64_t now)
{
	for (uint16_t i = 0; i < query->cmd.items; i++) {
		struct hf__hold *hold = own_permit(core, query, i);
		if (!hold || !hf__hold_check(core, hold, now))
			return false;
	}
	return true;
}

/* The release of permits that are known to be lost needs no connection; true if it was one. */
static bool end_lost_release(struct hf__core *core, struct hf__query *query, int64_t now)
{
	struct hf__op *op = query->op;
	if (query->cmd.verb != HF__PERMITS_RELEASE || hf__query_link(query)->up ||
	    !are_all_lost(core, query, now))
		return false;
	op->query = NULL;
	hf__hold_finish_lost(core, op, own_permit(core, query, 0), NULL, 0, now);
	each_permit(core, query, end_release, now);
	drop_query(core, query, now);
	return true;
}

/* One extension of a permit at a time: the next one begins when the one before is answered. */
static bool may_submit(struct hf__core *core, struct hf__query *query, int64_t now)
{
	if (query->cmd.verb != HF__PERMITS_EXTEND || query->has_begun)
		return true;
	if (waits_for_another(core, query) || refuse_extend(core, query, now))
		return false;
	begin_extend(core, query, now);
	return true;
}

/*
 * Nothing renews a permit that is being extended, so this command has the time limit of a renewal:
 * a dead connection must be noticed as soon as by a renewal.
 */
static int64_t limit_of(struct hf__core *core, const struct hf__query *query)
{
	struct hf__hold *hold = extended_permit(core, query);
	if (!hold)
		return core->config.command_timeout_ms;
	int64_t lease_ms = hf__hold_renew_lease(core, hold);
	if (query->cmd.lease_ms < lease_ms)
		lease_ms = query->cmd.lease_ms;
	return lease_ms / 9 > 50 ? lease_ms / 9 : 50;
}

void hf__query_resume(struct hf__core *core, struct hf__query *query, int64_t now)
{
	struct hf__op *op = query->op;
	if (!hf__query_link(query)->up) {
		core->backend_ops->want_link(core->backend, hf__query_link(query));
	} else if (op->want.action == HF__OP_LINK) {
		op->query = NULL;
		drop_query(core, query, now);
		hf__op_succeed(core, op);
	} else if (is_forgotten(query, now)) {
		hf__query_leave(core, op, HF_EUNKNOWN, now);
	} else if (!query->cmd.in_flight && may_submit(core, query, now)) {
		hf__cmd_submit(core, hf__query_link(query), &query->cmd, now,
		               limit_of(core, query));
	}
}

void hf__query_leave(struct hf__core *core, struct hf__op *op, int result, int64_t now)
{
	struct hf__query *query = op->query;
	const struct hf__link *link = hf__query_link(query);
	bool sent = query->cmd.in_flight || query->cmd.again;
	op->query = NULL;
	query->op = NULL;
	if (query->cmd.verb == HF__PERMITS_RELEASE)
		each_permit(core, query, leave_release, now);
	else if (query->cmd.verb == HF__PERMITS_EXTEND)
		undo_extend(core, query, sent, now);
	if (sent && changes(query->cmd.verb) && result != HF_ECLOSED)
		result = HF_EUNKNOWN;
	if (!query->cmd.in_flight)
		drop_query(core, query, now);
	if (result == op->refusal)
		hf__op_finish_refused(core, op);
	else if (op->want.action == HF__OP_LINK)
		hf__op_finish(core, op, result, "%s", link->why);
	else
		hf__op_finish(core, op, result, "no answer in %" PRId64 " ms%s%s",
		              now - op->started_at, link->up ? "" : ": ",
		              link->up ? "" : link->why);
}

/* The size of the ids of permits, or of the texts, that the caller gave. */
static size_t given_size(const struct hf__op *op)
{
	if (op->want.permit)
		return (size_t)op->want.amount * HF__PERMIT_SIZE;
	size_t size = 0;
	for (int32_t i = 0; op->want.words && i < op->want.amount; i++)
		size += strlen(op->want.words + size) + 1;
	return size;
}

static struct hf__query *new_query(struct hf__core *core, struct hf__op *op)
{
	size_t given = given_size(op);
	struct hf__link *link = op->lock ? op->lock->link : hf__lock_route(core, NULL, 0);
	struct hf__query *query = link ? take_memory(core, op, given) : NULL;
	if (!query)
		return NULL;
	query->any_link = link;
	query->op = op;
	op->query = query;
	query->cmd.verb = verb_of(&op->want);
	query->cmd.user = HF__CMD_OF_QUERY;
	query->cmd.lock = op->lock;
	if (op->lock)
		op->lock->refs++;
	query->cmd.count = op->want.amount;
	query->cmd.lease_ms = op->want.lease_ms;
	if (given > 0) {
		for (int32_t i = 0; op->want.permit && i < op->want.amount; i++)
			(void)hf__permit_read(op->want.permit[i], query->given[i].permit);
		if (!op->want.permit)
			memcpy(query->given, op->want.words, given);
		query->cmd.words = query->given[0].words;
		query->cmd.items = (uint16_t)op->want.amount;
	}
	query->cmd.on_answer = on_answer;
	hf__list_init(&query->cmd.link);
	hf__list_add(&core->queries, &query->link_in_core);
	return query;
}

void hf__query_start(struct hf__core *core, struct hf__op *op, int64_t now)
{
	hf__list_remove(&op->link); /* it may have waited for memory */
	bool about_owner = hf__want_is_about_owner(&op->want);
	struct hf__hold *hold = about_owner ? hf__hold_find(op->lock, op->want.owner) : NULL;
	if (about_owner && (!hold || hold->state != HF__HOLD_HELD)) {
		op->number = 0;
		hf__op_succeed(core, op);
		return;
	}
	struct hf__query *query = new_query(core, op);
	if (!query) {
		lack_memory(core, op);
		return;
	}
	if (hold) {
		query->cmd.wire = hold->cmd.wire;
		op->number = hold->count;
	} else if (changes(query->cmd.verb)) {
		query->cmd.wire = ++core->last_number;
		query->cmd.record = hf__record_take(core, query->cmd.wire, now);
		query->recorded = true;
	}
	if (end_lost_release(core, query, now) || refuse_extend(core, query, now))
		return;
	if (query->cmd.verb == HF__PERMITS_RELEASE)
		each_permit(core, query, begin_release, now);
	hf__query_resume(core, query, now);
}

void hf__query_done(struct hf__core *core)
{
	while (!hf__list_empty(&core->queries)) {
		struct hf__query *query =
			hf__list_item(core->queries.next, struct hf__query, link_in_core);
		hf__list_remove(&query->link_in_core);
		if (query->cmd.lock)
			hf__lock_unref(core, query->cmd.lock);
		if (query != core->spare)
			free(query);
	}
	free(core->spare);
	core->spare = NULL;
}
