/* Sentinels: which server is the master, and when another one becomes it. */
#ifndef HF_REDIS_SENTINEL_H
#define HF_REDIS_SENTINEL_H

#include "redis/redis.h"

struct hf__sentinel;

/* NULL without memory. */
struct hf__sentinel *hf__sentinel_new(struct hf__redis *redis);
void hf__sentinel_free(struct hf__sentinel *sentinel);
void hf__sentinel_close(struct hf__sentinel *sentinel);

/* The master is needed, or was lost: asks who it is, and connects to it. */
void hf__sentinel_want(struct hf__sentinel *sentinel, int64_t now);
int64_t hf__sentinel_due(const struct hf__sentinel *sentinel);
void hf__sentinel_turn(struct hf__sentinel *sentinel, int64_t now);
/* A Sentinel is being asked. */
bool hf__sentinel_is_busy(const struct hf__sentinel *sentinel);

#endif
