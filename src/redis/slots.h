/* Slots of a Redis Cluster: which one a key belongs to, and which master serves each of them. */
#ifndef HF_REDIS_SLOTS_H
#define HF_REDIS_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__SLOTS      16384
#define HF__SLOTS_HOST 256 /* bytes of a host's name, with its NUL */

/* The slot of a key: that of the text between its first '{' and the next '}', if there is any. */
uint16_t hf__slots_of(const char *key, size_t length);

/* A master, as a node describes it. */
struct hf__slots_master {
	char host[HF__SLOTS_HOST]; /* empty: the host that was asked */
	int port;
};

/* "MOVED 3999 10.0.0.2:7001" or "ASK 3999 10.0.0.2:7001". */
struct hf__slots_redirection {
	struct hf__slots_master to;
	uint16_t slot;
	bool asks; /* for this request only: the slot is being moved */
};

/* Reads the text of an error; false if it is not a redirection. */
bool hf__slots_read_redirection(const char *text, size_t length,
                                struct hf__slots_redirection *ret_redirection);

/* Called with each range of slots, its last slot included. Any result but 0, an HF_E…, ends it. */
typedef int hf__slots_fn(void *arg, const struct hf__slots_master *master, uint16_t first,
                         uint16_t last);

/*
 * Reads the reply to CLUSTER NODES, which is one text with a line for each node. Slots that are
 * being moved are still those of their master. Returns how many slots were named, HF_EPROTOCOL if
 * the text is not such a reply, HF_ENOMEM, or what the function has returned.
 */
int hf__slots_read(const char *text, size_t length, hf__slots_fn *on_range, void *arg);

/* Whether it can be a host's name. Names come from the network and are shown in messages. */
bool hf__slots_is_printable(const char *text, size_t length);

#endif
