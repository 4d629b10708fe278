/* Names of lock nodes: how they are built, how they are ordered, and which is the first. */
#ifndef HF_ZK_QUEUE_H
#define HF_ZK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__QUEUE_GUID 37 /* text of a UUID with its NUL */
#define HF__QUEUE_NAME 96 /* a child that we create, with its NUL */

/* Numbers have 31 bits and stop at the last one. Shortly before that, no lock is granted. */
#define HF__QUEUE_LAST ((INT64_C(1) << 31) - (INT64_C(1) << 20))

enum hf__queue_role {
	HF__QUEUE_MUTEX,
	HF__QUEUE_READ,
	HF__QUEUE_WRITE,
	HF__QUEUE_LATCH, /* of leaders */
	HF__QUEUE_LEASE, /* of semaphores; leases have no order, so in a queue one is a stranger */
	HF__QUEUE_STRANGER,
};

/* "_c_<guid>-lock-" and the like, to which the server adds the number. */
void hf__queue_name(char ret_name[HF__QUEUE_NAME], const char *guid, enum hf__queue_role role);
/*
 * What a child is in the queue. Every name that ends in a marker and a number takes part, whatever
 * its prefix, since an operator may have created it by hand. All other names are strangers.
 */
enum hf__queue_role hf__queue_role(const char *name);
/*
 * The same for names exactly as recipes give them, leases included: they distinguish a lock from a
 * folder of locks.
 */
enum hf__queue_role hf__queue_form(const char *name);
/* The number after the marker as text, which decides the order; for a stranger the whole name. */
const char *hf__queue_suffix(const char *name);
/* The same as a number; false if it is not one. */
bool hf__queue_number(const char *name, int64_t *ret_number);
/* The child was created with this GUID. */
bool hf__queue_is_of(const char *name, const char *guid);

enum hf__queue_position { HF__QUEUE_FIRST, HF__QUEUE_NOT_FIRST, HF__QUEUE_MISSING };

/*
 * Whether ours is the first. Strangers hold nothing and are ignored. NOT_FIRST: *ret_before is the
 * node to wait for, the nearest one before ours that excludes it.
 */
enum hf__queue_position hf__queue_position(char *const *names, size_t n, const char *own,
                                           size_t *ret_before);

/*
 * Sorts the names so that the holders come first: one, or all readers before the first writer.
 * Returns their number.
 */
size_t hf__queue_holders(char **names, size_t n);
/* Sorts the names in the order of the queue, strangers last. */
void hf__queue_sort(char **names, size_t n);

#endif
