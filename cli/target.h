/* What a name is on the server, and how its holders are reached: to unlock it, or to revoke it. */
#ifndef HF_CLI_TARGET_H
#define HF_CLI_TARGET_H

#include <holdfast/holdfast.h>

#include <stdbool.h>

struct target {
	hf_kind kind;
	bool zookeeper;
	bool found; /* somebody holds it */
	bool other; /* something that cannot be unlocked or revoked as a whole */
};

/* Returns 0 or HF_E…. */
int target_find(hf_client *client, bool zookeeper, const char *name, struct target *ret_target);
/* Calls hf_lock_force_release() or hf_lock_revoke() on the lock. Returns 0 or HF_E…. */
int target_reach(hf_client *client, const char *name, hf_kind kind,
                 int (*reach)(hf_lock *lock, int *ret_was_held), int *ret_was_held);

#endif
