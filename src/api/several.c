/*
 * Several locks as one: multi locks, which need all of their members, and red locks, which need
 * the majority. For this file a multi lock is one that needs as many members as it has.
 *
 * A call on several locks runs in rounds. A plan decides which members get which subcall; all
 * subcalls of a round start at once; when the last one has finished, the plan decides on the
 * next round. A waiting thread runs the rounds itself; an asynchronous call runs them in the
 * completions of its subcalls.
 */
#include "api/several.h"
#include "api/red_mutants.h"

#include "engine/sleep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the owner holds ---- */

int64_t hf__several_remaining(struct hf__several *several, uint64_t owner, int64_t now,
                              hf_state *ret_state)
{
	hf_state state = HF_FREE;
	int64_t left = 0;
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__whole_find(several, owner);
	if (whole && whole->levels > 0)
		left = hf__whole_remaining(whole, now, &state);
	else if (!whole) /* the owner may have acquired the members elsewhere */
		left = hf__whole_remaining_elsewhere(several, owner, now, &state);
	pthread_mutex_unlock(&several->mutex);
	if (ret_state)
		*ret_state = state;
	return left;
}

/* 0 or HF_ENOMEM. What is left of a lost hold must be released first. */
static int begin_acquire(struct hf__work *work, int64_t now)
{
	struct hf__several *several = work->several;
	hf_state state;
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__whole_use(several, work->want.owner);
	work->whole = whole;
	if (whole && whole->levels > 0 && hf__whole_remaining(whole, now, &state) == 0) {
		hf__whole_clear(whole);
		for (size_t i = 0; i < several->n; i++)
			if (whole->stake[i].levels > work->clearing)
				work->clearing = whole->stake[i].levels;
	}
	work->want.nested = whole && whole->levels > 0;
	pthread_mutex_unlock(&several->mutex);
	return whole ? 0 : hf__error(HF_ENOMEM, "no memory for a hold");
}

/*
 * The owner acquired the members by other handles, or one by one. Those that have at least as
 * many levels as the whole give one up.
 */
static uint64_t leave_elsewhere(struct hf__work *work)
{
	const struct hf__several *several = work->several;
	int64_t count[HF__MEMBERS_MAX] = {0}, sorted[HF__MEMBERS_MAX];
	uint64_t members = 0;
	for (size_t i = 0; i < several->n; i++) {
		const struct hf__handle *at = &several->member[i].lock.at;
		hf__engine_lock(&at->client->engine);
		const struct hf__hold *hold = hf__call_hold(at->lock, work->want.owner);
		if (hold) {
			count[i] = hold->count;
			work->wire[i] = hold->cmd.wire;
		}
		hf__engine_unlock(&at->client->engine);
	}
	memcpy(sorted, count, sizeof sorted);
	int64_t levels = hf__whole_pick_needed(several, sorted);
	for (size_t i = 0; i < several->n; i++)
		if (count[i] > 0 && count[i] >= levels)
			members |= UINT64_C(1) << i;
	return members;
}

/* Gives up one level; work->result is HF_ENOTHELD, HF_ELOST or 0. Returns 0 or HF_ENOMEM. */
static int begin_release(struct hf__work *work, int64_t now)
{
	struct hf__several *several = work->several;
	uint64_t owner = work->want.owner;
	hf_state state;
	int rc = 0;
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__whole_find(several, owner);
	if (whole && whole->levels > 0) {
		work->whole = hf__whole_use(several, owner);
		work->result = hf__whole_remaining(whole, now, &state) > 0 ? 0 : HF_ELOST;
		work->leaving = hf__whole_lower(whole, work->wire);
	} else if (whole || hf__whole_remaining_elsewhere(several, owner, now, &state) == 0) {
		work->result = HF_ENOTHELD;
	} else if ((work->whole = hf__whole_use(several, owner))) {
		work->leaving = leave_elsewhere(work);
	} else {
		rc = hf__error(HF_ENOMEM, "no memory for a release");
	}
	pthread_mutex_unlock(&several->mutex);
	return rc;
}

/* The member did not release the level, so it is counted again and released in the background. */
static void count_again(const struct hf__work *work, const struct hf__subcall *sub)
{
	pthread_mutex_lock(&work->several->mutex);
	hf__whole_add(&work->whole->stake[sub->member], sub->wire);
	pthread_mutex_unlock(&work->several->mutex);
}

static void note_releases(struct hf__work *work)
{
	for (size_t i = 0; i < work->subs; i++) {
		struct hf__subcall *sub = &work->sub[i];
		if (sub->want.action != HF__OP_RELEASE || sub->result != HF_EBUSY)
			continue;
		if (!HF__RED_MUTANT(BUSY_RELEASE))
			count_again(work, sub);
		sub->result = HF_EUNKNOWN;
		snprintf(sub->detail, sizeof sub->detail,
		         "%s: another call of this owner is in progress; the member is "
		         "released when that has finished",
		         work->several->member[sub->member].lock.at.lock->name);
	}
}

/* Meanwhile no member was acquired again. */
static void end_force(struct hf__several *several)
{
	pthread_mutex_lock(&several->mutex);
	several->forcing--;
	pthread_mutex_unlock(&several->mutex);
	hf__repair_review(several);
}

/* The call finishes. What is left to do continues in the background. */
static void leave(struct hf__work *work)
{
	struct hf__whole *whole = work->whole;
	if (work->want.action == HF__OP_FORCE)
		end_force(work->several);
	if (!whole)
		return;
	hf__repair_start(whole);
	pthread_mutex_lock(&work->several->mutex);
	hf__members_keep(work->several);
	hf__whole_leave(whole);
	pthread_mutex_unlock(&work->several->mutex);
	work->whole = NULL;
}

/* ---- plans ---- */

/* An action of all members at once; a release goes to those that give up a level. */
static void plan_once(struct hf__work *work)
{
	struct hf__several *several = work->several;
	int64_t number[HF__MEMBERS_MAX] = {0};
	bool release = work->want.action == HF__OP_RELEASE;
	size_t good = several->n - work->subs, yes = 0;
	if (work->phase == HF__PHASE_BEGIN) {
		work->phase = HF__PHASE_ONCE;
		hf__plan_add_each(work, release ? work->leaving : UINT64_MAX, &work->want);
		return;
	}
	for (size_t i = 0; i < work->subs; i++) {
		const struct hf__subcall *sub = &work->sub[i];
		good += sub->result == 0;
		yes += sub->result == 0 && sub->number;
		number[i] = sub->result ? INT64_MIN : sub->number;
	}
	bool known = release && work->result; /* decided before the first round */
	if (!known && good < several->need)
		hf__plan_fail(work, &work->sub[hf__plan_worst(work)]);
	else if (work->want.action == HF__OP_FORCE)
		work->number = yes > 0;
	else if (work->want.action == HF__OP_QUERY && work->want.question == HF__QUERY_IS_LOCKED)
		work->number = yes > several->n - several->need;
	else
		work->number = hf__whole_pick_needed(several, number);
	work->subs = 0;
}

/* Releases what is left of a lost hold: in each round one level of each member that has one. */
static bool plan_clearing(struct hf__work *work, int64_t now)
{
	int64_t limit = hf__plan_limit(work), left = hf__plan_time_left(work, now);
	struct hf__want want = {.action = HF__OP_RELEASE,
	                        .wait_ms = limit < left ? limit
	                                   : left > 1   ? left
	                                                : 1};
	work->subs = 0;
	while (work->clearing > 0 && work->subs == 0) {
		work->clearing--;
		work->phase = HF__PHASE_CLEAR;
		pthread_mutex_lock(&work->several->mutex);
		uint64_t members = hf__whole_give(work->whole, work->wire);
		pthread_mutex_unlock(&work->several->mutex);
		hf__plan_add_each(work, members, &want);
	}
	return work->subs > 0;
}

/* Notes what was granted in this round. */
static void note_grants(struct hf__work *work)
{
	for (size_t i = 0; i < work->subs; i++) {
		const struct hf__subcall *sub = &work->sub[i];
		if (sub->result == HF_ECLOSED)
			work->closed |= UINT64_C(1) << sub->member;
		if (sub->want.action != HF__OP_ACQUIRE || sub->result)
			continue;
		work->got |= UINT64_C(1) << sub->member;
		work->wire[sub->member] = sub->wire;
	}
}

static void plan(struct hf__work *work)
{
	int64_t now = hf__clock_ms();
	note_grants(work);
	note_releases(work);
	if (work->phase == HF__PHASE_CLEAR || (work->phase == HF__PHASE_BEGIN && work->clearing)) {
		if (plan_clearing(work, now))
			return;
		work->phase = HF__PHASE_BEGIN;
	}
	if (work->want.action != HF__OP_ACQUIRE)
		plan_once(work);
	else if (work->several->need == work->several->n)
		hf__multi_plan(work, now);
	else
		hf__red_plan(work, now);
}

/* ---- memory ---- */

/* NULL without memory. A release uses what its level was acquired with, so it does not lack any. */
static struct hf__work *take_work(struct hf__several *several, const struct hf__want *want)
{
	struct hf__work *work = NULL;
	if (want->action == HF__OP_RELEASE) {
		pthread_mutex_lock(&several->mutex);
		struct hf__whole *whole = hf__whole_find(several, want->owner);
		work = whole ? hf__whole_take_spare(whole) : NULL;
		pthread_mutex_unlock(&several->mutex);
	}
	if (!work)
		work = malloc(sizeof(*work) + several->n * sizeof(work->sub[0]));
	if (!work)
		(void)hf__error(HF_ENOMEM, "no memory for a call");
	return work;
}

/* The call has finished. If it acquired a level, its memory is kept for the release of that. */
static void give_work(struct hf__several *several, struct hf__work *work)
{
	bool is_kept = false;
	if (work->want.action == HF__OP_ACQUIRE && work->result == 0) {
		pthread_mutex_lock(&several->mutex);
		struct hf__whole *whole = hf__whole_find(several, work->want.owner);
		is_kept = whole && whole->levels > 0;
		if (is_kept)
			hf__whole_keep(whole, work);
		pthread_mutex_unlock(&several->mutex);
	}
	if (!is_kept)
		free(work);
}

/* ---- begin ---- */

/* Prepares the call, which may have its result already. 0 or HF_ENOMEM. */
static int begin(struct hf__work *work, struct hf__several *several, const struct hf__want *want)
{
	int64_t now = hf__clock_ms();
	hf_state state;
	int rc = 0;
	memset(work, 0, offsetof(struct hf__work, sub));
	work->several = several;
	work->want = *want;
	work->deadline = want->wait_ms > 0 ? hf__clock_after(now, want->wait_ms) : HF__NEVER;
	if (want->action == HF__OP_ACQUIRE) {
		rc = begin_acquire(work, now);
	} else if (want->action == HF__OP_RELEASE) {
		rc = begin_release(work, now);
	} else if (want->action == HF__OP_FORCE) {
		pthread_mutex_lock(&several->mutex);
		several->forcing++;
		pthread_mutex_unlock(&several->mutex);
	} else if (want->action == HF__OP_EXTEND || hf__want_is_about_owner(want)) {
		(void)hf__several_remaining(several, want->owner, now, &state);
		bool asks = want->action != HF__OP_EXTEND;
		work->result = state == HF_FREE && !asks ? HF_ENOTHELD : 0;
		if (state == HF_FREE && asks)
			return 0; /* the answer is 0 */
	}
	if (rc)
		return rc;
	if (work->result)
		snprintf(work->detail, sizeof work->detail, "%s",
		         work->result == HF_ELOST ? "lost: too few members are still held"
		                                  : "not held by this owner, which is the "
		                                    "calling thread or the hf_owner");
	if (work->result != HF_ENOTHELD)
		plan(work);
	return 0;
}

/* ---- rounds ---- */

static struct hf__spec describe(struct hf__subcall *sub)
{
	const struct hf__member *member = &sub->work->several->member[sub->member];
	struct hf__spec spec = hf__members_describe(member, &sub->want);
	if (sub->want.action == HF__OP_ACQUIRE)
		spec.ret_wire = &sub->wire;
	if (sub->want.action == HF__OP_RELEASE && !HF__RED_MUTANT(FOREIGN_RELEASE))
		spec.only = sub->wire;
	return spec;
}

static void note(struct hf__subcall *sub, int result, int64_t number)
{
	sub->result = result;
	sub->number = number;
	if (result)
		snprintf(sub->detail, sizeof sub->detail, "%s", hf_error_detail());
}

/* Under the member's mutex: notes the result and wakes the waiting thread, and nothing else. */
static void finish_subcall(struct hf__call *call)
{
	struct hf__subcall *sub = call->arg;
	struct hf__work *work = sub->work;
	sub->result = call->op.result;
	sub->number = call->op.number;
	if (sub->result)
		memcpy(sub->detail, call->op.detail, sizeof sub->detail);
	hf__call_free(call);
	hf__sleep_count_down(&work->pending);
}

/* Returns the result and sets its detail for this thread. */
static int report(const struct hf__work *work)
{
	if (work->result)
		return hf__error(work->result, "%s", work->detail);
	hf__error_clear();
	return 0;
}

/*
 * Notes why a subcall was not started. A level must be released: where there is no memory to do
 * it later, this thread does it now.
 */
static void note_failure(struct hf__subcall *sub, int rc)
{
	int64_t number = 0;
	if (sub->want.action == HF__OP_RELEASE && (rc == HF_ENOMEM || rc == HF_ESYSTEM))
		rc = hf__call_number(describe(sub), &number);
	note(sub, rc, number);
	atomic_fetch_sub(&sub->work->pending, 1);
}

static void run_round(struct hf__work *work)
{
	if (work->subs == 1) {
		int64_t number = 0;
		int rc = hf__call_number(describe(&work->sub[0]), &number);
		note(&work->sub[0], rc, number);
		return;
	}
	atomic_store(&work->pending, (uint32_t)work->subs);
	for (size_t i = 0; i < work->subs; i++) {
		struct hf__subcall *sub = &work->sub[i];
		int rc = hf__call_start_inner(describe(sub), finish_subcall, sub);
		if (rc)
			note_failure(sub, rc);
	}
	hf__sleep_until_zero(&work->pending);
}

int hf__several_check_replicas(const struct hf__several *several, int64_t replicas)
{
	int rc = 0;
	if (replicas > 0 && several->need < several->n)
		return hf__error(HF_ENOTSUP, "replicas: a red lock counts servers, not replicas");
	for (size_t i = 0; !rc && i < several->n; i++)
		rc = hf__options_check_replicas(several->member[i].lock.at.client, replicas);
	return rc;
}

int hf__several_run(struct hf__several *several, const struct hf__want *want, int64_t *ret_number)
{
	struct hf__work *work = take_work(several, want);
	if (!work)
		return HF_ENOMEM;
	int before = hf__thread_defer_cancel();
	int rc = begin(work, several, want);
	while (!rc && work->subs > 0) {
		run_round(work);
		plan(work);
	}
	leave(work);
	hf__thread_restore_cancel(before);
	if (!rc)
		rc = report(work);
	if (!rc && ret_number)
		*ret_number = work->number;
	give_work(several, work);
	return rc;
}

static void advance(struct hf__work *work);

static void complete_subcall(void *arg, int result, int64_t number, const char *text)
{
	struct hf__subcall *sub = arg;
	(void)text;
	note(sub, result, number);
	if (atomic_fetch_sub(&sub->work->pending, 1) != 1)
		return;
	plan(sub->work);
	advance(sub->work);
}

static void complete(struct hf__work *work)
{
	struct hf__several *several = work->several;
	hf_done_fn *done = work->done;
	void *arg = work->arg;
	int result = work->result;
	int64_t number = work->number;
	leave(work);
	(void)report(work);
	give_work(several, work);
	done(arg, result, number, NULL);
	hf__members_unref(several);
}

/* Starts rounds until one has to be waited for, or there are no more. */
static void advance(struct hf__work *work)
{
	while (work->subs > 0) {
		/* One more than subcalls, so that none of them ends the round before this loop. */
		atomic_store(&work->pending, (uint32_t)work->subs + 1);
		for (size_t i = 0; i < work->subs; i++) {
			struct hf__subcall *sub = &work->sub[i];
			int rc = hf__call_start(describe(sub), complete_subcall, sub);
			if (rc)
				note_failure(sub, rc);
		}
		if (atomic_fetch_sub(&work->pending, 1) != 1)
			return;
		plan(work);
	}
	complete(work);
}

static void begin_rounds(void *arg, int result, int64_t number, const char *text)
{
	(void)result, (void)number, (void)text;
	advance(arg);
}

/* The first round also runs on a dispatcher: no completion runs in the call that starts it. */
static int start_first(const struct hf__several *several, struct hf__work *work)
{
	int rc = HF_ECLOSED;
	for (size_t i = 0; rc == HF_ECLOSED && i < several->n; i++) {
		struct hf__spec spec = {.client = several->member[i].lock.at.client,
		                        .want = {.action = HF__OP_NOTHING}};
		rc = hf__call_start(spec, begin_rounds, work);
	}
	return rc;
}

/* The call could not be started. The levels that it was to release are released all the same. */
static void drop(struct hf__work *work)
{
	for (size_t i = 0; i < work->subs; i++)
		if (work->sub[i].want.action == HF__OP_RELEASE)
			count_again(work, &work->sub[i]);
	leave(work);
	hf__members_unref(work->several);
	free(work);
}

int hf__several_start(struct hf__several *several, const struct hf__want *want, hf_done_fn *done,
                      void *arg)
{
	if (!done)
		return hf__error_null("done");
	struct hf__work *work = take_work(several, want);
	if (!work)
		return HF_ENOMEM;
	int before = hf__thread_defer_cancel();
	int rc = begin(work, hf__members_ref(several), want);
	work->done = done;
	work->arg = arg;
	if (!rc)
		rc = start_first(several, work);
	if (rc) {
		char why[HF__DETAIL_SIZE];
		snprintf(why, sizeof why, "%s", hf_error_detail());
		drop(work);
		(void)hf__error(rc, "%s", why);
	}
	hf__thread_restore_cancel(before);
	return rc;
}
