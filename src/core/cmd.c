/* Commands: how they go down to the backend. */
#include "core/cmd.h"
#include "core/core.h"
#include "core/query.h"

#include <assert.h>
#include <string.h>

void hf__cmd_submit(struct hf__core *core, struct hf__link *link, struct hf__cmd *cmd, int64_t now,
                    int64_t limit_ms)
{
	assert(link->up && !cmd->in_flight);
	if (limit_ms > core->config.command_timeout_ms)
		limit_ms = core->config.command_timeout_ms;
	cmd->sent_at = now;
	cmd->answer_by = hf__clock_after(now, limit_ms);
	cmd->in_flight = true;
	if (core->metrics)
		cmd->sent_us = (uint32_t)core->metrics->now_us;
	memset(&cmd->backend, 0, sizeof cmd->backend);
	core->stats.commands++;
	link->commands++;
	if (core->backend_ops->submit(core->backend, link, cmd))
		hf__list_add(&core->unsent, &cmd->link);
}

bool hf__cmd_is_retried(const struct hf__answer *answer, const struct hf__link *link)
{
	bool is_open = answer->outcome == HF__UNKNOWN || answer->outcome == HF__UNSENT;
	return answer->outcome == HF__NOT_NOW || (is_open && link->up);
}

bool hf__cmd_lacks_memory(const struct hf__answer *answer, const struct hf__link *link)
{
	return answer->outcome == HF__UNSENT && answer->error == HF_ENOMEM && link->up;
}

void hf__cmd_withdraw(struct hf__core *core, struct hf__cmd *cmd)
{
	const struct hf__backend_ops *ops = core->backend_ops;
	if (cmd->in_flight && cmd->verb == HF__SYNC && ops->withdraw &&
	    ops->withdraw(core->backend, cmd))
		cmd->in_flight = false;
}

struct hf__op *hf__cmd_op(const struct hf__cmd *cmd)
{
	if (cmd->user == HF__CMD_OF_HOLD)
		return hf__list_item(cmd, struct hf__hold, cmd)->op;
	if (cmd->user == HF__CMD_OF_QUERY)
		return hf__list_item(cmd, struct hf__query, cmd)->op;
	return NULL;
}
