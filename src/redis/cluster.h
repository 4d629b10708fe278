/* A Redis Cluster: which master serves which slot, and the connections to those in use. */
#ifndef HF_REDIS_CLUSTER_H
#define HF_REDIS_CLUSTER_H

#include "redis/redis.h"
#include "redis/slots.h"

#define HF__SHARDS_MAX  128
#define HF__LIST_CURSOR 48 /* bytes of a cursor: the shard's number and the server's own */

/* A master, or a node that was one. */
struct hf__shard {
	struct hf__conn conn;
	struct hf__link link;
	int slots;        /* how many it owns */
	int slots_next;   /* and in the map that is being read */
	bool is_replaced; /* it owned some until the latest map */
	bool is_down;     /* it says that the cluster is down, but may only be cut off itself */
	char host[HF__SLOTS_HOST];
	int port;
	char shown[HF__SLOTS_HOST + 40];
};

struct hf__cluster {
	struct hf__redis *redis;
	struct hf__scout *scout;
	/* The map. */
	struct hf__shard *shard[HF__SHARDS_MAX];
	int shards;
	uint16_t owner[HF__SLOTS]; /* which shard owns each slot, counted from 1; 0: none */
	uint16_t next[HF__SLOTS];  /* the same in the map that is being read */
	const char *asked_host;    /* of the node that has sent that map */
	/* Slots that are being moved: none of their renewals is for two keys. */
	uint8_t torn[HF__SLOTS / 8];
	int64_t torn_until; /* when to forget them */
	char gone[300];     /* masters whose slots have had no master since; or empty */
	/* Commands to answer next turn, because they cannot be sent. */
	struct hf__list late;
	struct hf__answer listed;     /* the reply to the latest step of a list */
	char cursor[HF__LIST_CURSOR]; /* where the next step begins */
};

/* ---- map.c ---- */
/* The owner of a slot, or NULL. */
struct hf__shard *hf__map_owner(const struct hf__cluster *cluster, uint16_t slot);
/* The number of a shard, counted from 1. */
int hf__map_number(const struct hf__cluster *cluster, const struct hf__shard *shard);
/*
 * The shard that a node names, perhaps a new one; NULL without memory, or if there are too many. A
 * name without a host means the node that was asked.
 */
struct hf__shard *hf__map_take_shard(struct hf__cluster *cluster,
                                     const struct hf__slots_master *named, const char *asked);
/* The connection to the master of the lock's slot; NULL if that is not known. */
struct hf__conn *hf__map_conn_of(struct hf__cluster *cluster, const struct hf__lock *lock);
/* How many masters are known, and one of them. */
int hf__map_masters(const struct hf__cluster *cluster);
struct hf__host hf__map_master(const struct hf__cluster *cluster, int i);
/* Something waits for a master that is not connected. */
bool hf__map_lacks_master(const struct hf__cluster *cluster);
/* A master is connected. */
bool hf__map_is_used(const struct hf__cluster *cluster);
/*
 * Takes over the reply to CLUSTER NODES of this host. Returns HF_EPROTOCOL if it names no master or
 * too many of them, or HF_ENOMEM.
 */
int hf__map_take(struct hf__cluster *cluster, const char *text, size_t length, const char *host,
                 int64_t now, bool *ret_changed);
/* Requests that are still in flight to a master that was replaced may never be answered. */
void hf__map_leave_replaced(struct hf__cluster *cluster, int64_t now);
/* The slot has this owner from now on; false if that changes nothing. */
bool hf__map_set_owner(struct hf__cluster *cluster, uint16_t slot, struct hf__shard *shard);
/* The slot of this lock is being moved. */
void hf__map_note_torn(struct hf__cluster *cluster, const struct hf__lock *lock, int64_t now);
/*
 * As batch() of the backend. Keys of a slot that is being moved are at either node, so each needs
 * its own renewal.
 */
uint32_t hf__map_batch(const struct hf__cluster *cluster, const struct hf__lock *lock);

/* ---- cluster.c ---- */
/* NULL without memory. */
struct hf__cluster *hf__cluster_new(struct hf__redis *redis);
/* A single server turned out to be a node of a cluster, whose first known node it is. */
int hf__cluster_adopt(struct hf__redis *redis, int64_t now);
/* The connections to masters are done already. */
void hf__cluster_free(struct hf__cluster *cluster);

/* As route(), link_at() and want_link() of the backend. */
struct hf__link *hf__cluster_route(struct hf__cluster *cluster, const char *name, size_t length);
const struct hf__link *hf__cluster_link_at(const struct hf__cluster *cluster, int i,
                                           const char **ret_shown);
void hf__cluster_want_link(struct hf__cluster *cluster, struct hf__link *link, int64_t now);
/* Which connection is to send the command; NULL: none can, and the next turn answers it. */
struct hf__conn *hf__cluster_choose(struct hf__cluster *cluster, struct hf__link *link,
                                    struct hf__cmd *cmd);
/* The commands in flight at one of the nodes. */
const struct hf__list *hf__cluster_list_waiting(const struct hf__cluster *cluster);

/* These leave out the connections to masters. */
int64_t hf__cluster_due(const struct hf__cluster *cluster);
bool hf__cluster_is_busy(const struct hf__cluster *cluster);
void hf__cluster_turn(struct hf__cluster *cluster, int64_t now);
void hf__cluster_close(struct hf__cluster *cluster);

/* The map may be out of date: asks for it soon. */
void hf__cluster_want(struct hf__cluster *cluster, int64_t now);
/*
 * Handles the error reply if it is a redirection: the command is to be sent again over *ret_again,
 * or was answered if that is NULL. False: it is another error.
 */
bool hf__cluster_redirect(struct hf__conn *conn, struct hf__cmd *cmd, const char *text,
                          size_t length, int64_t now, struct hf__conn **ret_again);
/* The same for the reply to a subscription: only notes what it says about the map. */
void hf__cluster_note_refusal(struct hf__conn *conn, const char *text, size_t length, int64_t now);
/* Handles what an answer says about the cluster, before the core is given it. */
void hf__cluster_note_answer(struct hf__conn *conn, const struct hf__cmd *cmd,
                             struct hf__answer *answer, int64_t now);

#endif
