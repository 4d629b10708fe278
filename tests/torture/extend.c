/* Extensions of holds, and what they promise. */
#include "torture/extend.h"

/*
 * What is left of a lease after the drift of clocks, the skew of peers, which is 1 ms here, and the
 * rounding of times.
 */
static int64_t promised_ns(int64_t lease_ms)
{
	return (lease_ms - lease_ms / 100 - 5) * MS;
}

static int extend_permit(const struct use *use, int64_t lease_ms)
{
	struct answer answer;
	if (!hand_chance(use->hand, 2))
		return hf_permits_extend(use->handle->permits, use->id[0], lease_ms);
	return ANSWER(&answer, hf_permits_extend_async(use->handle->permits, use->id[0], lease_ms,
	                                               answer_deliver, &answer));
}

static int extend_lock(const struct use *use, int64_t lease_ms)
{
	struct answer answer;
	if (!use->owner || !hand_chance(use->hand, 2))
		return hf_lock_extend(use->handle->lock, use->owner, lease_ms);
	return ANSWER(&answer, hf_lock_extend_async(use->handle->lock, use->owner, lease_ms,
	                                            answer_deliver, &answer));
}

/*
 * When the hold has to be valid until, if the extension succeeds; 0: nothing is promised. A lock is
 * never shortened, but a red one may lose members meanwhile. On ZooKeeper no hold outlasts what is
 * known of its session.
 */
static int64_t least_until(const struct use *use, int64_t asked_at, int64_t before,
                           int64_t lease_ms)
{
	int64_t least = use->hand->worker->is_zk ? 0 : asked_at + promised_ns(lease_ms);
	bool may_shrink = use->handle->permits || use->handle->thing->sort == THING_RED;
	return may_shrink || least > before ? least : before;
}

static void extend(struct use *use, int64_t lease_ms)
{
	int64_t now = record_now();
	int64_t before = use_until(now, use_remaining_ns(use));
	int64_t least = least_until(use, now, before, lease_ms);
	ADD(use, .moment = EXTENDING, .at = now, .until = now + (CONNECT_MS + COMMAND_MS) * MS);
	int rc = use->handle->permits ? extend_permit(use, lease_ms) : extend_lock(use, lease_ms);
	int64_t returned_at = record_now();
	int64_t remaining = use_read_remaining(use, &now);
	ADD(use, .moment = EXTENDED, .at = returned_at, .code = (int16_t)rc, .token = least,
	    .until = remaining > 0 ? use_until(now, remaining) : 0);
	/* Whether the permit is renewed afterwards shows only when it would have been. */
	if (use->handle->permits && remaining > 0 && hand_chance(use->hand, 4))
		use_hold_for(use, WATCHDOG_MS / 2);
}

void extend_some(struct use *use)
{
	struct hand *hand = use->hand;
	bool is_one_permit = use->handle->permits && use->permits == 1;
	if (use->is_over || (!use->handle->lock && !is_one_permit))
		return;
	if (hand_chance(hand, use->lease_ms || is_one_permit ? 12 : 60))
		extend(use, 300 + hand_below(hand, LONGEST_MS - 300));
}
