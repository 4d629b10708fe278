/* A Redis Cluster: which master serves which slot, and the connections to those in use. */
#ifndef HF_REDIS_CLUSTER_H
#define HF_REDIS_CLUSTER_H

#include "redis/redis.h"
#include "redis/slots.h"

/* NULL without memory. */
struct hf__cluster *hf__cluster_new(struct hf__redis *redis);
/* A single server turned out to be a node of a cluster, whose first known node it is. */
int hf__cluster_adopt(struct hf__redis *redis, int64_t now);
/* Closes all connections for good. */
void hf__cluster_close(struct hf__cluster *cluster);
void hf__cluster_free(struct hf__cluster *cluster);

/* ---- for the core ---- */

/* As route(), link_at(), batch() and want_link() of the backend. */
struct hf__link *hf__cluster_route(struct hf__cluster *cluster, const char *name, size_t length);
const struct hf__link *hf__cluster_link_at(const struct hf__cluster *cluster, int i,
                                           const char **ret_shown);
uint32_t hf__cluster_batch(const struct hf__cluster *cluster, const struct hf__lock *lock);
void hf__cluster_want_link(struct hf__cluster *cluster, struct hf__link *link, int64_t now);
int hf__cluster_submit(struct hf__cluster *cluster, struct hf__link *link, struct hf__cmd *cmd);
/* The commands in flight at one of the nodes. */
const struct hf__list *hf__cluster_waiting(const struct hf__cluster *cluster);

int64_t hf__cluster_due(const struct hf__cluster *cluster);
bool hf__cluster_is_busy(const struct hf__cluster *cluster);
void hf__cluster_turn(struct hf__cluster *cluster, int64_t now);

/* ---- for the connections to masters ---- */

/* The connection to the master of the lock's slot; NULL if that is not known. */
struct hf__conn *hf__cluster_conn_of(struct hf__cluster *cluster, const struct hf__lock *lock);
/* The map may be out of date: asks for it soon. */
void hf__cluster_want(struct hf__cluster *cluster, int64_t now);
/*
 * Handles the error reply if it is a redirection: the command is sent to the other node, or is
 * answered. False: it is another error.
 */
bool hf__cluster_redirect(struct hf__conn *conn, struct hf__cmd *cmd, const char *text,
                          size_t length, int64_t now);
/* The same for the reply to a subscription: only notes what it says about the map. */
void hf__cluster_note_refusal(struct hf__conn *conn, const char *text, size_t length, int64_t now);
/* Handles what an answer says about the cluster, before the core is given it. */
void hf__cluster_note_answer(struct hf__conn *conn, const struct hf__cmd *cmd,
                             struct hf__answer *answer, int64_t now);

/* ---- for the scout ---- */

/*
 * Takes over the reply to CLUSTER NODES of this host. Returns HF_EPROTOCOL if it names no master or
 * too many of them, or HF_ENOMEM.
 */
int hf__cluster_take_map(struct hf__cluster *cluster, const char *text, size_t length,
                         const char *host, int64_t now);
/* How many masters are known, and one of them. */
int hf__cluster_masters(const struct hf__cluster *cluster);
struct hf__host hf__cluster_master(const struct hf__cluster *cluster, int i);
/* Something waits for a master that is not connected. */
bool hf__cluster_lacks_master(const struct hf__cluster *cluster);
/* A master is connected. */
bool hf__cluster_is_used(const struct hf__cluster *cluster);

#endif
