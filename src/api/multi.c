/* Multi locks: all members, taken one after the other in one order, and given back if one fails. */
#include "api/several.h"

#include <stdio.h>

static void ask_to_take(struct hf__work *work, int64_t now)
{
	struct hf__want want = work->want;
	int64_t left = hf__several_time_left(work, now);
	if (want.wait_ms > 0)
		want.wait_ms = left > 0 ? left : 1;
	/* A fixed lease must not run out while the next member is waited for. */
	int64_t slice = want.lease_ms / 3 > 50 ? want.lease_ms / 3 : 50;
	if (want.lease_ms && work->got && want.wait_ms != HF_NOWAIT &&
	    (want.wait_ms == 0 || want.wait_ms > slice))
		want.wait_ms = slice;
	work->phase = HF__PHASE_TAKE;
	hf__several_ask(work, work->at, &want);
}

static void ask_to_extend(struct hf__work *work, enum hf__phase phase)
{
	struct hf__want want = {.verb = HF__OP_EXTEND, .lease_ms = work->want.lease_ms};
	work->phase = phase;
	hf__several_ask_of(work, work->got, &want);
}

/*
 * One of those taken first was lost before the last was taken: from the beginning, if there is time. Not if the
 * whole is lost, of which this was to be one more level.
 */
static void lost_meanwhile(struct hf__work *work, int64_t now, bool whole)
{
	bool again = !whole && !work->want.nested && work->want.wait_ms != HF_NOWAIT &&
	             hf__several_time_left(work, now) > 0;
	work->result = HF_ELOST;
	snprintf(work->detail, sizeof work->detail,
	         "lost: a member was lost before all others were acquired");
	hf__several_undo(work, again ? HF__PHASE_AGAIN : HF__PHASE_UNDO);
}

/* All members were taken. */
static void take(struct hf__work *work, int64_t now)
{
	pthread_mutex_lock(&work->several->mutex);
	int rc = hf__whole_take(work->whole, work, now);
	pthread_mutex_unlock(&work->several->mutex);
	if (rc)
		lost_meanwhile(work, now, rc == HF_ELOST);
}

static void took(struct hf__work *work, const struct hf__subcall *sub, int64_t now)
{
	struct hf__several *several = work->several;
	bool in_vain = sub->result == HF_ETIMEDOUT || sub->result == HF_EUNKNOWN;
	bool sliced = in_vain && sub->want.wait_ms > 0 && hf__several_time_left(work, now) > 0;
	if (sub->result == 0) {
		work->at++;
		if (work->at < several->n)
			ask_to_take(work, now);
		else if (work->want.lease_ms && several->n > 1)
			ask_to_extend(work, HF__PHASE_EVEN);
		else
			take(work, now);
	} else if (sliced && work->got) {
		ask_to_extend(work, HF__PHASE_KEEP);
	} else if (work->want.nested && sub->result == HF_ENOTHELD) {
		lost_meanwhile(work, now, false);
	} else {
		hf__several_fail(work, sub);
		hf__several_undo(work, HF__PHASE_UNDO);
	}
}

/* Those taken first have the whole lease again, unless one of them was lost meanwhile. */
static void evened(struct hf__work *work, int64_t now)
{
	int failed = hf__several_worst(work);
	work->subs = 0;
	if (failed < 0) {
		if (work->phase == HF__PHASE_KEEP)
			ask_to_take(work, now);
		else
			take(work, now);
		return;
	}
	if (work->sub[failed].result == HF_ELOST) {
		lost_meanwhile(work, now, false);
		return;
	}
	hf__several_fail(work, &work->sub[failed]);
	hf__several_undo(work, HF__PHASE_UNDO);
}

void hf__multi_plan(struct hf__work *work, int64_t now)
{
	struct hf__subcall sub = work->sub[0];
	switch (work->phase) {
	case HF__PHASE_TAKE:
		work->subs = 0;
		took(work, &sub, now);
		break;
	case HF__PHASE_KEEP:
	case HF__PHASE_EVEN: evened(work, now); break;
	case HF__PHASE_UNDO: work->subs = 0; break;
	default:
		work->subs = 0;
		work->at = 0;
		work->result = 0;
		ask_to_take(work, now);
	}
}
