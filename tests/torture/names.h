/* What the library's events call a hold. */
#ifndef TESTS_TORTURE_NAMES_H
#define TESTS_TORTURE_NAMES_H

#include <holdfast/holdfast.h>

#include <stdint.h>

/* A red lock can have lost a hold of each member, and have another one. */
#define NAMES_MAX 10

/*
 * Hashes of what events call the holds that this owner has of the lock: one, or those of the
 * members of a multi or red lock. Returns how many there are. The public names of holds on
 * ZooKeeper are others, and wholes have none, so this looks inside the library.
 */
int names_of_lock(const hf_lock *lock, const hf_owner *owner, uint64_t ret_names[NAMES_MAX]);

#endif
