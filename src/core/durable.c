/*
 * Durable grants: those that count only once enough replicas have acknowledged them.
 *
 * Until then the hold is in doubt, as after a lost answer: the server knows the hold, but its owner
 * does not, and if the call ends without success, the hold is removed from the server. After a sync
 * without a result the call asks again, which shows whether the hold still exists, and syncs again.
 */
#include "core/durable.h"
#include "core/cmd.h"
#include "core/core.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

int hf__durable_replicas(const struct hf__core *core, const struct hf__op *op)
{
	if (op->want.replicas < 0 || op->lock->traits->trace == HF__TRACE_NONE)
		return 0;
	return op->want.replicas ? op->want.replicas : core->config.replicas;
}

bool hf__durable_is_expected(const struct hf__core *core, const struct hf__op *op)
{
	const struct hf__lock *lock = op->lock;
	bool is_fresh = op->hold->state == HF__HOLD_ASKING && !op->hold->doubtful;
	return is_fresh && !op->waited && !lock->contended && !lock->traits->several &&
	       lock->traits->trace == HF__TRACE_LEASE && hf__durable_replicas(core, op) > 0;
}

/* A sync may have to wait for the previous one, and then has a time limit of its own. */
static int64_t limit_of(const struct hf__core *core)
{
	return 2 * core->config.sync_timeout_ms + core->config.command_timeout_ms;
}

void hf__durable_start(struct hf__core *core, struct hf__op *op, int64_t token,
                       hf__answer_fn *on_answer, int64_t now)
{
	struct hf__cmd *cmd = &op->hold->cmd;
	assert(op->hold->doubtful && !cmd->in_flight);
	if (!op->sync) {
		int64_t by = hf__clock_after(now, limit_of(core));
		op->refusal = 0;
		op->detail[0] = 0;
		if (by > op->deadline.at)
			hf__wheel_start(&core->wheel, &op->deadline, by);
	}
	op->granted_at = cmd->sent_at;
	op->token = token;
	op->sync = HF__OP_SYNCING;
	if (!cmd->lock->link->up)
		return; /* the next connection asks again */
	cmd->verb = HF__SYNC;
	cmd->count = hf__durable_replicas(core, op);
	cmd->on_answer = on_answer;
	core->stats.syncs++;
	hf__cmd_submit(core, cmd->lock->link, cmd, now, limit_of(core));
}

void hf__durable_stop(struct hf__core *core, struct hf__op *op)
{
	assert(op->sync);
	op->sync = HF__OP_UNSYNCED;
	hf__wheel_start(&core->wheel, &op->deadline, hf__op_deadline(core, op));
}

void hf__durable_finish(struct hf__core *core, struct hf__op *op, int64_t acknowledged, int64_t now)
{
	const char *name = op->lock->name;
	int wanted = hf__durable_replicas(core, op);
	char why[200];
	if (acknowledged >= 0) {
		hf__op_finish(core, op, HF_ENOREPLICAS,
		              "%s: acknowledged by %" PRId64 " of %d replicas within %" PRId64
		              " ms; released",
		              name, acknowledged, wanted, core->config.sync_timeout_ms);
		return;
	}
	snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, op->detail);
	hf__op_finish(
		core, op, op->refusal ? op->refusal : HF_EUNKNOWN,
		"%s: granted, but after %" PRId64
		" ms it is not known whether enough replicas (%d) have acknowledged that%s%s; "
		"it is released in the background",
		name, now - op->granted_at, wanted, why[0] ? ": " : "", why);
}
