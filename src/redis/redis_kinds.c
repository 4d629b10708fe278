/* How each kind of lock behaves on Redis and Valkey. */
#include "redis/redis_kinds.h"
#include "base/complete.h"

#include <assert.h>

/* Each group of kinds has a renewal script of its own. */
enum renew_group { PLAIN, READERS, GROUPS, PERMITS };

/* Locks are a hash under their name, and so are groups, which are conflicts for locks. */
enum kind_family { LOCK = 1, GROUP };

/* One holder at a time; waiters are not served in order. */
#define ALONE .queues = true, .tokens = true, .notes = true, .renew_group = PLAIN, .family = LOCK
/* One holder at a time; waiters stand in a queue on the server. */
#define INLINE                                                                                     \
	.ordered = true, .tokens = true, .notes = true, .channel = HF__CHANNEL_WAITER,             \
	.renew_group = PLAIN, .family = LOCK

/* clang-format off */

#define TRAITS_ROWS(ROW)                                                                           \
	ROW(HF_REENTRANT, {ALONE, .kind = HF_REENTRANT, .moves = true})                            \
	ROW(HF_FENCED, {ALONE, .kind = HF_FENCED, .moves = true})                                  \
	ROW(HF_SPIN, {ALONE, .kind = HF_SPIN, .spins = true})                                      \
	ROW(HF_SIMPLE, {ALONE, .kind = HF_SIMPLE, .moves = true, .nesting = HF__NEST_NEVER})       \
	ROW(HF_WRITE, {ALONE, .kind = HF_WRITE, .channel = HF__CHANNEL_RW, .half = HF_READ,        \
		.writes = true, .yields = true})                                                   \
	ROW(HF_READ, {.kind = HF_READ, .nesting = HF__NEST_HERE, .channel = HF__CHANNEL_RW,        \
		.half = HF_WRITE, .notes = true, .yields = true, .renew_group = READERS,           \
		.family = LOCK})                                                                   \
	ROW(HF_FAIR, {INLINE, .kind = HF_FAIR})                                                    \
	ROW(HF_SIMPLE_FAIR, {INLINE, .kind = HF_SIMPLE_FAIR, .nesting = HF__NEST_NEVER})           \
	ROW(HF__GROUP, {.kind = HF__GROUP, .queues = true, .skewed = true,                         \
		.renew_group = GROUPS, .family = GROUP})                                           \
	ROW(HF__SEMAPHORE, {.kind = HF__SEMAPHORE, .nesting = HF__NEST_APART,                      \
		.trace = HF__TRACE_TAKEN, .channel = HF__CHANNEL_PERMITS})                         \
	ROW(HF__PERMITS, {.kind = HF__PERMITS, .nesting = HF__NEST_APART,                          \
		.channel = HF__CHANNEL_PERMITS, .skewed = true, .several = true,                   \
		.notes = true, .renew_group = PERMITS})                                            \
	ROW(HF__LATCH, {.kind = HF__LATCH, .nesting = HF__NEST_APART,                              \
		.trace = HF__TRACE_NONE, .channel = HF__CHANNEL_LATCH})

/* clang-format on */

static const struct hf__traits traits[HF__KINDS] = {TRAITS_ROWS(HF__ROW)};

/* The function below says what these five are here, or why they are missing. */
HF__ROWS_ARE(TRAITS_ROWS, HF__BITS_BEFORE(HF__KINDS) & ~HF__BIT(0) & ~HF__BIT(HF_PLAIN) &
                                  ~HF__BIT(HF__MEMBER) & ~HF__BIT(HF__EXIT) & ~HF__BIT(HF_LEADER) &
                                  ~HF__BIT(HF__BARRIER));

const struct hf__traits *hf__redis_kinds_traits(int kind, const char **ret_why)
{
	assert(kind >= HF_REENTRANT && kind < HF__KINDS);
	switch (kind) {
	case HF_PLAIN:
		*ret_why =
			"only ZooKeeper has plain nodes; on Redis and Valkey use a reentrant lock";
		return NULL;
	case HF__MEMBER:
	case HF__EXIT:
		*ret_why = "a double barrier needs the sessions of ZooKeeper, which remove the "
			   "members of a process that ends";
		return NULL;
	case HF_LEADER: return &traits[HF_FAIR]; /* the first candidate leads, the others queue */
	case HF__BARRIER: return &traits[HF__LATCH]; /* a latch of one count */
	default: assert(traits[kind].kind == kind); return &traits[kind];
	}
}
