/* How each kind of lock behaves on ZooKeeper. */
#include "zk/zk_kinds.h"

#include <assert.h>

/*
 * The nodes of a queue are the children of a path, whatever their kinds, and they wait for a plain
 * node at that path. Leases have a folder of their own below it.
 */
enum family { QUEUE = 1, LEASES };

/* A node that lasts as long as the session of its maker. */
#define NODE .session = true, .tokens = true, .channel = HF__CHANNEL_WAITER
/* Nothing is left on the server by a call that waits for this to change. */
#define TRACELESS .nesting = HF__NEST_APART, .trace = HF__TRACE_NONE, .channel = HF__CHANNEL_WAITER

_Static_assert(HF__KINDS == 18, "every kind has a row here or a reason why it has none");

static const struct hf__traits traits[HF__KINDS] = {
	[HF_REENTRANT] = {NODE, .family = QUEUE, .kind = HF_REENTRANT, .nesting = HF__NEST_HERE},
	[HF_READ] = {NODE, .family = QUEUE, .kind = HF_READ, .nesting = HF__NEST_HERE,
                     .half = HF_WRITE},
	[HF_WRITE] = {NODE, .family = QUEUE, .kind = HF_WRITE, .nesting = HF__NEST_HERE,
                      .half = HF_READ, .writes = true},
	[HF_SIMPLE] = {NODE, .family = LEASES, .kind = HF_SIMPLE, .nesting = HF__NEST_NEVER},
	[HF_PLAIN] = {NODE, .family = QUEUE, .kind = HF_PLAIN, .nesting = HF__NEST_NEVER},
	[HF_LEADER] = {NODE, .family = QUEUE, .kind = HF_LEADER, .nesting = HF__NEST_HERE},
	[HF__PERMITS] = {NODE, .family = LEASES, .kind = HF__PERMITS, .nesting = HF__NEST_APART,
                         .several = true},
	[HF__MEMBER] = {NODE, .kind = HF__MEMBER, .nesting = HF__NEST_APART},
	[HF__BARRIER] = {TRACELESS, .kind = HF__BARRIER, .unrecorded = true},
	[HF__EXIT] = {TRACELESS, .kind = HF__EXIT},
};

const struct hf__traits *hf__zk_kinds_traits(int kind, const char **ret_why)
{
	assert(kind >= HF_REENTRANT && kind < HF__KINDS);
	switch (kind) {
	case HF_FAIR: /* waiters of all kinds are served in order, and every hold has a token */
	case HF_FENCED: return &traits[HF_REENTRANT];
	case HF_SIMPLE_FAIR: return &traits[HF_SIMPLE];
	case HF_SPIN:
		*ret_why =
			"ZooKeeper notifies each waiter when it is its turn, so there are no spin "
			"locks; use a reentrant lock";
		return NULL;
	case HF__SEMAPHORE:
		*ret_why = "permits on ZooKeeper always have a holder; use hf_permits";
		return NULL;
	case HF__LATCH: *ret_why = "Curator has no latch that counts; use hf_barrier"; return NULL;
	case HF__GROUP: *ret_why = "a group is one key on Redis; use a multi lock"; return NULL;
	default: assert(traits[kind].kind == kind); return &traits[kind];
	}
}
