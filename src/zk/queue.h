/* Names of lock nodes: how they are made, what order they stand in, and whose turn it is. */
#ifndef HF_ZK_QUEUE_H
#define HF_ZK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__QUEUE_GUID 37 /* text of a UUID with its NUL */
#define HF__QUEUE_NAME 96 /* of a child that we make, with its NUL */

/* Suffixes are 31 bits, and stick at their end: shortly before that nobody is let in any more. */
#define HF__QUEUE_LAST ((INT64_C(1) << 31) - (INT64_C(1) << 20))

enum hf__queue_role {
	HF__QUEUE_MUTEX,
	HF__QUEUE_READ,
	HF__QUEUE_WRITE,
	HF__QUEUE_LATCH, /* of leaders */
	HF__QUEUE_LEASE, /* of semaphores; they have no order, so in a queue one is a stranger */
	HF__QUEUE_STRANGER,
};

/* "_c_<guid>-lock-" and the like, to which the server adds the number. */
void hf__queue_name(char ret_name[HF__QUEUE_NAME], const char *guid, enum hf__queue_role role);
/*
 * What a child is in the queue. Whatever ends in a marker and a number takes part, also with a prefix of its
 * own, as an operator may give it; all else is a stranger.
 */
enum hf__queue_role hf__queue_role(const char *name);
/* The same of names exactly as recipes give them, leases included: these tell a lock from a folder of locks. */
enum hf__queue_role hf__queue_form(const char *name);
/* The number after the marker as text, which decides the order. Of a stranger the whole name. */
const char *hf__queue_suffix(const char *name);
/* As a number; false if it is not one. */
bool hf__queue_number(const char *name, int64_t *ret_number);
/* Whether the child was made by whoever has this GUID. */
bool hf__queue_is_of(const char *name, const char *guid);

enum hf__queue_turn { HF__QUEUE_FIRST, HF__QUEUE_NOT_FIRST, HF__QUEUE_MISSING };

/*
 * Whose turn it is. Strangers hold nothing and are passed over. WAIT: *ret_before is the node to wait
 * for, the nearest that stands in the way.
 */
enum hf__queue_turn hf__queue_turn(char *const *names, size_t n, const char *own,
                                   size_t *ret_before);

/* Those that hold now, in order: one, or all readers before the first other. Returns how many. */
size_t hf__queue_holders(char **names, size_t n);
/* In the order of the queue, strangers last. */
void hf__queue_sort(char **names, size_t n);

#endif
