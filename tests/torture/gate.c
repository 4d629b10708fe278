/* Latches that open, and barriers: one thread shuts and opens a gate, and all others wait at it. */
#include "torture/gate.h"

#include "torture/cancel.h"

/*
 * A gate is mostly shut or open for a short time. Now and then it stays open for a long time, in
 * which the checker notices a waiter that was not woken.
 */
#define SHORT_TURN_MS 60
#define LONG_SHUT_MS  2000
#define LONG_OPEN_MS  1600

/* How often a latch is counted down before it opens, at most. */
#define MOST_COUNTS 3

/* A request that a fault kept back has arrived by this time after the fault. */
#define LATE_MS 500

/* ---- the keeper ---- */

/* HF_EBUSY: it is shut already, because its former keeper was killed. */
static int shut(const struct use *use, int count)
{
	const struct handle *handle = use->handle;
	int is_done = 1;
	int rc = handle->latch ? hf_latch_try_set(handle->latch, count, &is_done)
	                       : hf_barrier_set(handle->barrier);
	return rc || is_done ? rc : HF_EBUSY;
}

static int force_open(const struct use *use)
{
	const struct handle *handle = use->handle;
	return handle->latch ? hf_latch_delete(handle->latch, NULL)
	                     : hf_barrier_remove(handle->barrier);
}

/*
 * Nobody else opens it, so this is repeated until it succeeds. Returns whether an outcome was
 * unknown.
 */
static bool open_gate(const struct use *use, bool by_count)
{
	ADD(use, .moment = RELEASING);
	int rc = by_count ? hf_latch_count_down(use->handle->latch) : force_open(use);
	bool is_doubtful = rc == HF_EUNKNOWN;
	int64_t ends_at = record_now() + LEFT_MS * MS;
	while (rc && (!hand_is_over(use->hand) || record_now() < ends_at)) {
		hand_pause_ms(5);
		rc = force_open(use);
		is_doubtful |= rc == HF_EUNKNOWN;
	}
	ADD(use, .moment = RELEASED, .code = (int16_t)rc);
	return is_doubtful;
}

/* Counts down until one is left, so that the latch is still shut. */
static int count_down(const struct use *use, int count)
{
	int rc = 0;
	for (int i = 1; i < count && !rc; i++) {
		rc = hf_latch_count_down(use->handle->latch);
		hand_pause_ms(hand_below(use->hand, 10));
	}
	return rc;
}

/* A request whose outcome is unknown may run late, when the gate must not be shut again yet. */
static void await_late_requests(struct hand *hand)
{
	while (hand_is_faulty(hand) && !hand_is_over(hand))
		hand_pause_ms(5);
	hand_pause_ms(LATE_MS);
}

void gate_keep(struct hand *hand)
{
	const struct handle *handle = hand->gate;
	struct use use = {
		.hand = hand, .handle = handle, .number = record_new_hold(&hand->worker->record)};
	int count = 1 + hand_below(hand, MOST_COUNTS);
	ADD(&use, .moment = ASKED, .until = record_now() + use_allowance(&use),
	    .covers = handle->thing->covers, .share = 1, .flags = SHUTS);
	int rc = shut(&use, count);
	if (rc) {
		ADD(&use, .moment = REFUSED, .code = (int16_t)rc);
		if (open_gate(&use, false) || rc == HF_EUNKNOWN)
			await_late_requests(hand);
		return;
	}
	ADD(&use, .moment = GRANTED, .until = FOREVER);
	hand_pause_ms(1 + hand_below(hand, hand_chance(hand, 8) ? LONG_SHUT_MS : SHORT_TURN_MS));
	bool by_count = handle->latch && !hand_chance(hand, 4);
	int counted = by_count ? count_down(&use, count) : 0;
	if (open_gate(&use, by_count && !counted) || counted == HF_EUNKNOWN)
		await_late_requests(hand);
	hand_pause_ms(hand_chance(hand, 6) ? LONG_OPEN_MS : hand_below(hand, SHORT_TURN_MS));
}

/* ---- waiters ---- */

static int wait_at(struct use *use)
{
	const struct handle *handle = use->handle;
	hf_cancel *cancel = cancel_begin(use);
	const hf_wait_options *options = HF_WAIT(.wait_ms = use->wait_ms, .cancel = cancel);
	struct answer answer;
	int rc = !handle->latch ? hf_barrier_wait(handle->barrier, options)
	         : hand_chance(use->hand, 4)
	                 ? ANSWER(&answer, hf_latch_wait_async(handle->latch, options,
	                                                       answer_deliver, &answer))
	                 : hf_latch_wait(handle->latch, options);
	if (cancel)
		cancel_end(use->hand);
	return rc;
}

void gate_wait(struct hand *hand, const struct handle *handle)
{
	struct use use;
	use_draw(&use, hand, handle);
	ADD(&use, .moment = ASKED, .until = use_deadline(&use), .covers = handle->thing->covers,
	    .flags = PASSES);
	int rc = wait_at(&use);
	int64_t now = record_now();
	if (rc)
		ADD(&use, .moment = REFUSED, .code = (int16_t)rc);
	else
		ADD(&use, .moment = GRANTED, .at = now, .until = now);
	hand_pause_ms(1 + hand_below(hand, 5));
}
