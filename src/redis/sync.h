/* Replicas: which of them have acknowledged a grant. */
#ifndef HF_REDIS_SYNC_H
#define HF_REDIS_SYNC_H

#include "redis/redis.h"

struct hf__sync;

/* Takes a SYNC of a name whose master this is; 0 or HF_ENOMEM. Any thread. */
int hf__sync_submit(struct hf__conn *master, struct hf__cmd *cmd);
/*
 * This ask was sent to the master. If it is likely to be granted, replicas are asked at once
 * whether they have its grant. Any thread.
 */
void hf__sync_expect(struct hf__conn *master, const struct hf__cmd *ask);
/* Nobody waits for the SYNC any more; true if it is the core's again. Any thread. */
bool hf__sync_withdraw(struct hf__cmd *cmd);
/* The master is not connected any more: another one may come, and nothing is known about this. */
void hf__sync_drop(struct hf__sync *sync, const char *why, int64_t now);

/* All of these allow NULL: nothing was ever synced. */
int64_t hf__sync_due(const struct hf__sync *sync);
void hf__sync_turn(struct hf__sync *sync, int64_t now);
bool hf__sync_is_busy(const struct hf__sync *sync);
void hf__sync_close(struct hf__sync *sync);
void hf__sync_free(struct hf__sync *sync);

#endif
