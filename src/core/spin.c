/* How a spin lock waits: it asks again after a pause that grows. */
#include "core/spin.h"
#include "core/core.h"

static const struct hf__spin default_spin = {.first_ms = 1, .most_ms = 128, .factor = 2};

/* The longer the pause, the more of it is random, so that two waiters that collide drift apart. */
int64_t hf__spin_pause(struct hf__core *core, struct hf__op *op)
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
