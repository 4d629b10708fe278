/* Commands: how they go down to the backend. */
#ifndef HF_CORE_CMD_H
#define HF_CORE_CMD_H

#include "core/backend.h"

struct hf__op;

/* What a command is part of. */
enum hf__cmd_user { HF__CMD_OF_HOLD = 1, HF__CMD_OF_QUERY, HF__CMD_OF_RENEWAL };

/* Submits the command. If there is no room for it, it is answered next turn as never sent. */
void hf__cmd_submit(struct hf__core *core, struct hf__link *link, struct hf__cmd *cmd, int64_t now,
                    int64_t limit_ms);
/*
 * Whether the command is sent again after a pause. If its link is down, it is sent again as soon as
 * the link is up. A command can be unsent, or its outcome unknown, while its link is up: then it
 * was on another link.
 */
bool hf__cmd_is_retried(const struct hf__answer *answer, const struct hf__link *link);
/* Whether the command could not be sent for lack of memory. */
bool hf__cmd_lacks_memory(const struct hf__answer *answer, const struct hf__link *link);
/* Nobody waits for the command any more: takes it back if it only waits for replicas. */
void hf__cmd_withdraw(struct hf__core *core, struct hf__cmd *cmd);
/* The call that a command works for, or NULL. */
struct hf__op *hf__cmd_op(const struct hf__cmd *cmd);

#endif
