/* Answers to commands: at once, or in the next turn. */
#include "zk/zk.h"

#include <stdio.h>
#include <string.h>

void hf__zk_answer(struct hf__zk *zk, struct hf__cmd *cmd, const struct hf__answer *answer,
                   int64_t now)
{
	hf__list_remove(&cmd->link);
	hf__core_answer(zk->core, cmd, answer, now);
}

void hf__zk_answer_soon(struct hf__zk *zk, struct hf__cmd *cmd, enum hf__outcome outcome)
{
	hf__list_remove(&cmd->link);
	cmd->backend.outcome = (uint8_t)outcome;
	hf__list_add(&zk->ready, &cmd->link);
}

void hf__zk_answer_extend(struct hf__zk *zk, struct hf__cmd *cmd)
{
	cmd->answer_by =
		hf__clock_after(hf__clock_ms(), hf__core_settings(zk->core)->command_timeout_ms);
}

void hf__zk_answer_count(struct hf__zk *zk, struct hf__cmd *cmd, int64_t count, int64_t now)
{
	hf__zk_answer(zk, cmd, &(struct hf__answer){.outcome = HF__DONE, .count = count}, now);
}

void hf__zk_answer_error(struct hf__zk *zk, struct hf__cmd *cmd, int error, const char *text,
                         int64_t now)
{
	hf__zk_answer(zk, cmd,
	              &(struct hf__answer){.outcome = HF__FAILED,
	                                   .error = error,
	                                   .text = text,
	                                   .length = strlen(text)},
	              now);
}

void hf__zk_answer_rc(struct hf__zk *zk, struct hf__cmd *cmd, int rc, const char *what, int64_t now)
{
	char text[200];
	snprintf(text, sizeof text, "%s: %s", what, zk->library.error(rc));
	hf__zk_answer_error(zk, cmd, HF_EREFUSED, text, now);
}
