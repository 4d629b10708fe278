/* What the kinds differ in, as far as waiting, holding and nesting go. */
#include "core/core.h"

enum family { PLAIN, READERS, GROUPS, PERMITS, NODES };

#define ALONE  .queues = true, .family = PLAIN /* one holder, no order */
#define INLINE .ordered = true, .channel = HF__CHANNEL_WAITER, .family = PLAIN
#define NODE                                                                                       \
	.session = true, .channel = HF__CHANNEL_WAITER, .nesting = HF__NEST_HERE, .family = NODES

const struct hf__traits hf__kind_traits[HF__KINDS] = {
	[HF_REENTRANT] = {ALONE, .moves = true},
	[HF_FENCED] = {ALONE, .moves = true},
	[HF_SPIN] = {ALONE, .spins = true},
	[HF_SIMPLE] = {ALONE, .moves = true, .nesting = HF__NEST_NEVER},
	[HF_WRITE] = {ALONE, .channel = HF__CHANNEL_RW, .half = HF_READ, .writes = true},
	[HF_READ] = {.nesting = HF__NEST_HERE,
                     .channel = HF__CHANNEL_RW,
                     .half = HF_WRITE,
                     .family = READERS},
	[HF_FAIR] = {INLINE},
	[HF_SIMPLE_FAIR] = {INLINE, .nesting = HF__NEST_NEVER},
	[HF__GROUP] = {.queues = true, .skewed = true, .family = GROUPS},
	[HF__SEMAPHORE] = {.nesting = HF__NEST_APART,
                           .trace = HF__TRACE_TAKEN,
                           .channel = HF__CHANNEL_PERMITS},
	[HF__PERMITS] = {.nesting = HF__NEST_APART,
                         .channel = HF__CHANNEL_PERMITS,
                         .skewed = true,
                         .several = true,
                         .family = PERMITS},
	[HF__LATCH] = {.nesting = HF__NEST_APART,
                       .trace = HF__TRACE_NONE,
                       .channel = HF__CHANNEL_LATCH},
	[HF__NODE_MUTEX] = {NODE},
	[HF__NODE_READ] = {NODE, .half = HF__NODE_WRITE},
	[HF__NODE_WRITE] = {NODE, .half = HF__NODE_READ, .writes = true},
	[HF__NODE_SIMPLE] = {.session = true,
                             .channel = HF__CHANNEL_WAITER,
                             .nesting = HF__NEST_NEVER,
                             .family = NODES},
	[HF__NODE_PLAIN] = {.session = true,
                            .channel = HF__CHANNEL_WAITER,
                            .nesting = HF__NEST_NEVER,
                            .family = NODES},
	[HF__NODE_LEADER] = {NODE},
	[HF__NODE_PERMITS] = {.session = true,
                              .several = true,
                              .channel = HF__CHANNEL_WAITER,
                              .nesting = HF__NEST_APART,
                              .family = NODES},
	[HF__NODE_MEMBER] = {.session = true,
                             .channel = HF__CHANNEL_WAITER,
                             .nesting = HF__NEST_APART,
                             .family = NODES},
	[HF__NODE_BARRIER] = {.nesting = HF__NEST_APART,
                              .trace = HF__TRACE_NONE,
                              .channel = HF__CHANNEL_WAITER},
	[HF__NODE_EXIT] = {.nesting = HF__NEST_APART,
                           .trace = HF__TRACE_NONE,
                           .channel = HF__CHANNEL_WAITER},
};

const char *hf__kind_word(int kind)
{
	static const char *const word[HF__KINDS] = {
		[HF_REENTRANT] = "reentrant",
		[HF_FAIR] = "fair",
		[HF_READ] = "read",
		[HF_WRITE] = "write",
		[HF_FENCED] = "fenced",
		[HF_SPIN] = "spin",
		[HF_SIMPLE] = "simple",
		[HF_SIMPLE_FAIR] = "simple-fair",
		[HF__GROUP] = "group",
		[HF__SEMAPHORE] = "semaphore",
		[HF__PERMITS] = "permits",
		[HF__LATCH] = "latch",
		[HF_PLAIN] = "plain",
		[HF__NODE_MUTEX] = "reentrant",
		[HF__NODE_READ] = "read",
		[HF__NODE_WRITE] = "write",
		[HF__NODE_SIMPLE] = "simple",
		[HF__NODE_PLAIN] = "plain",
		[HF_LEADER] = "leader",
		[HF__NODE_LEADER] = "leader",
		[HF__BARRIER] = "barrier",
		[HF__NODE_BARRIER] = "barrier",
		[HF__MEMBER] = "member",
		[HF__NODE_MEMBER] = "member",
		[HF__EXIT] = "exit",
		[HF__NODE_EXIT] = "exit",
		[HF__NODE_PERMITS] = "permits",
	};
	return word[kind];
}

static const struct hf__spin default_spin = {.first_ms = 1, .most_ms = 128, .factor = 2};

/* A growing pause has more and more chance in it, so that two who collide drift apart. */
int64_t hf__kind_pause(struct hf__core *core, struct hf__op *op)
{
	const struct hf__spin *spin = op->want.spin.factor ? &op->want.spin : &default_spin;
	uint32_t pause = op->pauses == 0 ? spin->first_ms : op->pause_ms;
	op->pauses++;
	if (spin->factor == 1 || pause >= spin->most_ms) {
		op->pause_ms = pause;
		return pause;
	}
	uint64_t next =
		(uint64_t)pause * spin->factor + hf__random_next(&core->random) % op->pauses;
	op->pause_ms = next < spin->most_ms ? (uint32_t)next : spin->most_ms;
	return pause;
}
