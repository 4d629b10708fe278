/*
 * Multi locks: all members are acquired one after the other, always in the same order, and
 * released again if one of them fails.
 */
#include "api/several.h"

#include <stdio.h>

static void acquire_next(struct hf__work *work, int64_t now)
{
	struct hf__want want = work->want;
	int64_t left = hf__plan_time_left(work, now);
	if (want.wait_ms > 0)
		want.wait_ms = left > 0 ? left : 1;
	/* A fixed lease must not expire during the wait for the next member. */
	int64_t slice = want.lease_ms / 3 > 50 ? want.lease_ms / 3 : 50;
	if (want.lease_ms && work->got && want.wait_ms != HF_NOWAIT &&
	    (want.wait_ms == 0 || want.wait_ms > slice))
		want.wait_ms = slice;
	work->phase = HF__PHASE_TAKE;
	hf__plan_add(work, work->at, &want);
}

static void extend_acquired(struct hf__work *work, enum hf__phase phase)
{
	struct hf__want want = {.action = HF__OP_EXTEND, .lease_ms = work->want.lease_ms};
	work->phase = phase;
	hf__plan_add_each(work, work->got, &want);
}

/*
 * A member was lost before the last one was acquired. The call starts over if there is time, but
 * not if it was to nest in a hold that is lost.
 */
static void handle_loss(struct hf__work *work, int64_t now, bool whole)
{
	bool again = !whole && !work->want.nested && work->want.wait_ms != HF_NOWAIT &&
	             hf__plan_time_left(work, now) > 0;
	work->result = HF_ELOST;
	snprintf(work->detail, sizeof work->detail,
	         "lost: a member was lost before all others were acquired");
	hf__plan_undo(work, again ? HF__PHASE_AGAIN : HF__PHASE_UNDO);
}

/* All members were acquired: counts the level. */
static void count_level(struct hf__work *work, int64_t now)
{
	pthread_mutex_lock(&work->several->mutex);
	int rc = hf__whole_take(work->whole, work, now);
	pthread_mutex_unlock(&work->several->mutex);
	if (rc)
		handle_loss(work, now, rc == HF_ELOST);
}

static void handle_acquire(struct hf__work *work, const struct hf__subcall *sub, int64_t now)
{
	struct hf__several *several = work->several;
	bool in_vain = sub->result == HF_ETIMEDOUT || sub->result == HF_EUNKNOWN;
	bool sliced = in_vain && sub->want.wait_ms > 0 && hf__plan_time_left(work, now) > 0;
	if (sub->result == 0) {
		work->at++;
		if (work->at < several->n)
			acquire_next(work, now);
		else if (work->want.lease_ms && several->n > 1)
			extend_acquired(work, HF__PHASE_EVEN);
		else
			count_level(work, now);
	} else if (sliced && work->got) {
		extend_acquired(work, HF__PHASE_KEEP);
	} else if (work->want.nested && sub->result == HF_ENOTHELD) {
		handle_loss(work, now, false);
	} else {
		hf__plan_fail(work, sub);
		hf__plan_undo(work, HF__PHASE_UNDO);
	}
}

/* The acquired members have their full lease again, unless one was lost meanwhile. */
static void handle_extend(struct hf__work *work, int64_t now)
{
	int failed = hf__plan_worst(work);
	work->subs = 0;
	if (failed < 0) {
		if (work->phase == HF__PHASE_KEEP)
			acquire_next(work, now);
		else
			count_level(work, now);
		return;
	}
	if (work->sub[failed].result == HF_ELOST) {
		handle_loss(work, now, false);
		return;
	}
	hf__plan_fail(work, &work->sub[failed]);
	hf__plan_undo(work, HF__PHASE_UNDO);
}

void hf__multi_plan(struct hf__work *work, int64_t now)
{
	struct hf__subcall sub = work->sub[0];
	switch (work->phase) {
	case HF__PHASE_TAKE:
		work->subs = 0;
		handle_acquire(work, &sub, now);
		break;
	case HF__PHASE_KEEP:
	case HF__PHASE_EVEN: handle_extend(work, now); break;
	case HF__PHASE_UNDO: work->subs = 0; break;
	default:
		work->subs = 0;
		work->at = 0;
		work->result = 0;
		acquire_next(work, now);
	}
}
