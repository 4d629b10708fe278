/* The states of an acquisition's node: which there are, and what each event makes of them. */
#include "zk/node_state.h"
#include "base/complete.h"

#include <assert.h>
#include <stdint.h>

/* Every state ends this way: with its session, its command, or its client. */
#define BURIED [HF__ON_BURIED] = HF__ZNODE_DEAD

/* clang-format off */

#define STATE_ROWS(ROW)                                                                            \
	ROW(HF__ZNODE_ABSENT, {                                                                    \
		BURIED,                                                                            \
		[HF__ON_CREATE] = HF__ZNODE_CREATING,                                              \
		[HF__ON_CREATE_LONE] = HF__ZNODE_CREATING_LONE,                                    \
		[HF__ON_BUSY] = HF__ZNODE_OUTSIDE,                                                 \
		[HF__ON_GONE] = HF__ZNODE_ABSENT})                                                 \
	ROW(HF__ZNODE_BLOCKED, {                                                                   \
		BURIED,                                                                            \
		[HF__ON_CREATE] = HF__ZNODE_CREATING,                                              \
		[HF__ON_CREATE_LONE] = HF__ZNODE_CREATING_LONE,                                    \
		[HF__ON_BUSY] = HF__ZNODE_OUTSIDE})                                                \
	ROW(HF__ZNODE_OUTSIDE, {                                                                   \
		BURIED,                                                                            \
		[HF__ON_RESUMED] = HF__ZNODE_ABSENT})                                              \
	ROW(HF__ZNODE_CREATING, {                                                                  \
		BURIED,                                                                            \
		[HF__ON_CREATED] = HF__ZNODE_QUEUED,                                               \
		[HF__ON_REFUSED] = HF__ZNODE_ABSENT,                                               \
		[HF__ON_BLOCKED] = HF__ZNODE_BLOCKED,                                              \
		[HF__ON_LOST] = HF__ZNODE_UNKNOWN})                                                \
	ROW(HF__ZNODE_CREATING_LONE, {                                                             \
		BURIED,                                                                            \
		[HF__ON_CREATED] = HF__ZNODE_QUEUED,                                               \
		[HF__ON_REFUSED] = HF__ZNODE_ABSENT,                                               \
		[HF__ON_BLOCKED] = HF__ZNODE_BLOCKED,                                              \
		[HF__ON_LOST] = HF__ZNODE_UNKNOWN})                                                \
	ROW(HF__ZNODE_UNKNOWN, {                                                                   \
		BURIED,                                                                            \
		[HF__ON_FOUND] = HF__ZNODE_QUEUED,                                                 \
		[HF__ON_MISSED] = HF__ZNODE_ABSENT,                                                \
		[HF__ON_GONE] = HF__ZNODE_ABSENT})                                                 \
	ROW(HF__ZNODE_QUEUED, {                                                                    \
		BURIED,                                                                            \
		[HF__ON_MISSED] = HF__ZNODE_ABSENT,                                                \
		[HF__ON_BUSY] = HF__ZNODE_WAITING,                                                 \
		[HF__ON_GATE_PASSED] = HF__ZNODE_LEASE_ABSENT,                                     \
		[HF__ON_GRANTED] = HF__ZNODE_HELD,                                                 \
		[HF__ON_DELETE] = HF__ZNODE_DELETING,                                              \
		[HF__ON_GONE] = HF__ZNODE_ABSENT})                                                 \
	ROW(HF__ZNODE_WAITING, {                                                                   \
		BURIED,                                                                            \
		[HF__ON_RESUMED] = HF__ZNODE_QUEUED})                                              \
	ROW(HF__ZNODE_DELETING, {                                                                  \
		BURIED,                                                                            \
		[HF__ON_DELETE] = HF__ZNODE_DELETING})                                             \
	ROW(HF__ZNODE_LEASE_ABSENT, {                                                              \
		BURIED,                                                                            \
		[HF__ON_CREATE] = HF__ZNODE_LEASE_CREATING,                                        \
		[HF__ON_LEASE_UNDONE] = HF__ZNODE_QUEUED})                                         \
	ROW(HF__ZNODE_LEASE_CREATING, {                                                            \
		BURIED,                                                                            \
		[HF__ON_CREATED] = HF__ZNODE_LEASE_QUEUED,                                         \
		[HF__ON_REFUSED] = HF__ZNODE_LEASE_ABSENT,                                         \
		[HF__ON_LOST] = HF__ZNODE_LEASE_UNKNOWN})                                          \
	ROW(HF__ZNODE_LEASE_UNKNOWN, {                                                             \
		BURIED,                                                                            \
		[HF__ON_FOUND] = HF__ZNODE_LEASE_QUEUED,                                           \
		[HF__ON_MISSED] = HF__ZNODE_LEASE_ABSENT})                                         \
	ROW(HF__ZNODE_LEASE_QUEUED, {                                                              \
		BURIED,                                                                            \
		[HF__ON_MISSED] = HF__ZNODE_LEASE_ABSENT,                                          \
		[HF__ON_BUSY] = HF__ZNODE_LEASE_WAITING,                                           \
		[HF__ON_COUNTED] = HF__ZNODE_LEASE_COUNTED,                                        \
		[HF__ON_DELETE] = HF__ZNODE_LEASE_DELETING})                                       \
	ROW(HF__ZNODE_LEASE_WAITING, {                                                             \
		BURIED,                                                                            \
		[HF__ON_RESUMED] = HF__ZNODE_LEASE_QUEUED})                                        \
	ROW(HF__ZNODE_LEASE_COUNTED, {                                                             \
		BURIED,                                                                            \
		[HF__ON_GATE_OPENED] = HF__ZNODE_LEASE_TAKEN,                                      \
		[HF__ON_DELETE] = HF__ZNODE_LEASE_DELETING})                                       \
	ROW(HF__ZNODE_LEASE_TAKEN, {                                                               \
		BURIED,                                                                            \
		[HF__ON_GRANTED] = HF__ZNODE_HELD,                                                 \
		[HF__ON_DELETE] = HF__ZNODE_LEASE_DELETING,                                        \
		[HF__ON_GONE] = HF__ZNODE_ABSENT})                                                 \
	ROW(HF__ZNODE_LEASE_DELETING, {                                                            \
		BURIED,                                                                            \
		[HF__ON_DELETE] = HF__ZNODE_LEASE_DELETING,                                        \
		[HF__ON_LEASE_UNDONE] = HF__ZNODE_QUEUED})                                         \
	ROW(HF__ZNODE_HELD, {                                                                      \
		BURIED,                                                                            \
		[HF__ON_GRANTED] = HF__ZNODE_HELD, /* with other permits of its acquisition */     \
		[HF__ON_RETRY] = HF__ZNODE_QUEUED,                                                 \
		[HF__ON_RETRY_PLAIN] = HF__ZNODE_UNKNOWN,                                          \
		[HF__ON_RETRY_LEASE] = HF__ZNODE_LEASE_TAKEN,                                      \
		[HF__ON_DELETE] = HF__ZNODE_RELEASING,                                             \
		[HF__ON_GONE] = HF__ZNODE_TAKEN_AWAY})                                             \
	ROW(HF__ZNODE_RELEASING, {                                                                 \
		BURIED,                                                                            \
		[HF__ON_DELETE] = HF__ZNODE_RELEASING,                                             \
		[HF__ON_GONE] = HF__ZNODE_TAKEN_AWAY})                                             \
	ROW(HF__ZNODE_TAKEN_AWAY, {                                                                \
		BURIED,                                                                            \
		[HF__ON_DELETE] = HF__ZNODE_TAKEN_AWAY,                                            \
		[HF__ON_GONE] = HF__ZNODE_TAKEN_AWAY})

/* clang-format on */

static const uint8_t after[HF__ZNODE_STATES][HF__ON_EVENTS] = {STATE_ROWS(HF__ROW)};

/* Nothing happens to a dead node. */
HF__ROWS_ARE(STATE_ROWS, HF__BITS_BEFORE(HF__ZNODE_DEAD) & ~HF__BIT(HF__ZNODE_NONE));

enum hf__node_state hf__node_state_find(enum hf__node_state state, enum hf__node_event event)
{
	assert(state > HF__ZNODE_NONE && state < HF__ZNODE_STATES && event < HF__ON_EVENTS);
	return (enum hf__node_state)after[state][event];
}

enum hf__node_state hf__node_state_after(enum hf__node_state state, enum hf__node_event event)
{
	enum hf__node_state next = hf__node_state_find(state, event);
	assert(next != HF__ZNODE_NONE);
	return next;
}

bool hf__node_state_is_granted(enum hf__node_state state)
{
	return state == HF__ZNODE_HELD || state == HF__ZNODE_RELEASING;
}

bool hf__node_state_is_waiting(enum hf__node_state state)
{
	return state == HF__ZNODE_OUTSIDE || state == HF__ZNODE_WAITING ||
	       state == HF__ZNODE_LEASE_WAITING;
}

bool hf__node_state_exists(enum hf__node_state state)
{
	switch (state) {
	case HF__ZNODE_QUEUED:
	case HF__ZNODE_WAITING:
	case HF__ZNODE_DELETING:
	case HF__ZNODE_LEASE_QUEUED:
	case HF__ZNODE_LEASE_WAITING:
	case HF__ZNODE_LEASE_COUNTED:
	case HF__ZNODE_LEASE_TAKEN:
	case HF__ZNODE_LEASE_DELETING:
	case HF__ZNODE_HELD:
	case HF__ZNODE_RELEASING: return true;
	default: return false;
	}
}

bool hf__node_state_is_lease(enum hf__node_state state)
{
	return state >= HF__ZNODE_LEASE_ABSENT && state <= HF__ZNODE_TAKEN_AWAY;
}

bool hf__node_state_has_gate(enum hf__node_state state)
{
	return state >= HF__ZNODE_LEASE_ABSENT && state <= HF__ZNODE_LEASE_COUNTED;
}
