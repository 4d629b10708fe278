/* What a name is on the server, and how its holders are reached: to unlock it, or to revoke it. */
#include "target.h"

#include <string.h>

/* On ZooKeeper all leases are in one folder, so one simple lock reaches every holder. */
static int note_kind(void *arg, const hf_info *info)
{
	static const struct {
		const char *word;
		hf_kind kind;
	} kinds[] = {{"read", HF_READ},
	             {"write", HF_WRITE},
	             {"plain", HF_PLAIN},
	             {"leader", HF_LEADER},
	             {"permits", HF_SIMPLE}};
	struct target *target = arg;
	const char *kind = hf_info_kind(info);
	target->found = hf_info_holders(info) > 0;
	target->other = strcmp(kind, "group") == 0 || strcmp(kind, "double-barrier") == 0 ||
	                (strcmp(kind, "permits") == 0 && !target->zookeeper);
	target->kind = HF_FAIR; /* wakes fair waiters and others */
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kind, kinds[i].word) == 0)
			target->kind = kinds[i].kind;
	return 0;
}

int target_find(hf_client *client, bool zookeeper, const char *name, struct target *ret_target)
{
	*ret_target = (struct target){.kind = HF_FAIR, .zookeeper = zookeeper};
	return hf_client_inspect(client, name, note_kind, ret_target);
}

int target_reach(hf_client *client, const char *name, hf_kind kind,
                 int (*reach)(hf_lock *lock, int *ret_was_held), int *ret_was_held)
{
	hf_lock *lock;
	int rc = hf_lock_open(client, kind, name, &lock);
	if (rc)
		return rc;
	*ret_was_held = 0;
	rc = reach(lock, ret_was_held);
	hf_lock_close(lock);
	return rc;
}
