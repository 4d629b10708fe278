/* The scout: a connection of its own to one node of a cluster, which is asked for the map. */
#ifndef HF_REDIS_SCOUT_H
#define HF_REDIS_SCOUT_H

#include "redis/redis.h"

struct hf__scout;

/* Begins with these nodes. NULL without memory. */
struct hf__scout *hf__scout_new(struct hf__redis *redis, const struct hf__host *seeds, int count);
void hf__scout_close(struct hf__scout *scout);
void hf__scout_free(struct hf__scout *scout);

/* Asks for the map, but not sooner than this time after the last request. */
void hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now);
int64_t hf__scout_due(const struct hf__scout *scout);
void hf__scout_turn(struct hf__scout *scout, int64_t now);
/* Whether the node in use is the one of this connection, and has answered. */
bool hf__scout_is_at(const struct hf__scout *scout, const struct hf__conn *conn);
/* A node is being asked. */
bool hf__scout_is_busy(const struct hf__scout *scout);
/* Takes over the map that this host has sent, as hf__map_take(), and whatever follows from it. */
int hf__scout_take_map(struct hf__redis *redis, const char *text, size_t length, const char *host,
                       int64_t now);

#endif
