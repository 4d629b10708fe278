/* How each kind of lock behaves on ZooKeeper. */
#include "zk/zk_kinds.h"
#include "base/complete.h"

#include <assert.h>

/*
 * The nodes of a queue are the children of a path, whatever their kinds, and they wait for a plain
 * node at that path. Leases have a folder of their own below it.
 */
enum kind_family { QUEUE = 1, LEASES };

/* A node that lasts as long as the session of its maker. */
#define NODE .session = true, .tokens = true, .channel = HF__CHANNEL_WAITER
/* Nothing is left on the server by a call that waits for this to change. */
#define TRACELESS .nesting = HF__NEST_APART, .trace = HF__TRACE_NONE, .channel = HF__CHANNEL_WAITER

/* clang-format off */

#define TRAITS_ROWS(ROW)                                                                           \
	ROW(HF_REENTRANT, {NODE, .family = QUEUE, .kind = HF_REENTRANT,                            \
		.nesting = HF__NEST_HERE})                                                         \
	ROW(HF_READ, {NODE, .family = QUEUE, .kind = HF_READ, .nesting = HF__NEST_HERE,            \
		.half = HF_WRITE})                                                                 \
	ROW(HF_WRITE, {NODE, .family = QUEUE, .kind = HF_WRITE, .nesting = HF__NEST_HERE,          \
		.half = HF_READ, .writes = true})                                                  \
	ROW(HF_SIMPLE, {NODE, .family = LEASES, .kind = HF_SIMPLE,                                 \
		.nesting = HF__NEST_NEVER})                                                        \
	ROW(HF_PLAIN, {NODE, .family = QUEUE, .kind = HF_PLAIN, .nesting = HF__NEST_NEVER})        \
	ROW(HF_LEADER, {NODE, .family = QUEUE, .kind = HF_LEADER, .nesting = HF__NEST_HERE})       \
	ROW(HF__PERMITS, {NODE, .family = LEASES, .kind = HF__PERMITS,                             \
		.nesting = HF__NEST_APART, .several = true})                                       \
	ROW(HF__MEMBER, {NODE, .kind = HF__MEMBER, .nesting = HF__NEST_APART})                     \
	ROW(HF__BARRIER, {TRACELESS, .kind = HF__BARRIER, .unrecorded = true})                     \
	ROW(HF__EXIT, {TRACELESS, .kind = HF__EXIT})

/* clang-format on */

static const struct hf__traits traits[HF__KINDS] = {TRAITS_ROWS(HF__ROW)};

/* The function below says what these seven are here, or why they are missing. */
HF__ROWS_ARE(TRAITS_ROWS, HF__BITS_BEFORE(HF__KINDS) & ~HF__BIT(0) & ~HF__BIT(HF_FAIR) &
                                  ~HF__BIT(HF_FENCED) & ~HF__BIT(HF_SIMPLE_FAIR) &
                                  ~HF__BIT(HF_SPIN) & ~HF__BIT(HF__SEMAPHORE) &
                                  ~HF__BIT(HF__LATCH) & ~HF__BIT(HF__GROUP));

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
