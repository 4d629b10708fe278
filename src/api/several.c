/*
 * Several locks as one: multi locks, which want all of their members, and red locks, which want the
 * majority. A multi lock is one that needs as many members as it has.
 *
 * A call on it goes in rounds: a plan says what is asked of which members next, all of that is asked
 * at once, and when the last answer is there the plan goes on. A waiting thread runs the rounds itself;
 * an asynchronous call runs them where its members' completions run.
 */
#include "api/several.h"

#include "engine/sleep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

struct hf__several *hf__several_ref(struct hf__several *several)
{
	atomic_fetch_add(&several->refs, 1);
	return several;
}

void hf__several_unref(struct hf__several *several)
{
	if (atomic_fetch_sub(&several->refs, 1) != 1)
		return;
	for (size_t i = 0; i < several->n; i++)
		hf__handle_close(&several->member[i].lock.at);
	while (!hf__list_empty(&several->wholes)) {
		struct hf__list *link = several->wholes.next;
		hf__list_remove(link);
		free(hf__list_item(link, struct hf__whole, link));
	}
	pthread_mutex_destroy(&several->mutex);
	free(several);
}

/* The same order for everybody who names the same locks, whatever order they name them in. */
static int compare_members(const void *a, const void *b)
{
	const struct hf_lock *x = &((const struct hf__member *)a)->lock;
	const struct hf_lock *y = &((const struct hf__member *)b)->lock;
	int order = strcmp(x->at.record->name, y->at.record->name);
	if (order == 0)
		order = (int)x->at.record->kind - (int)y->at.record->kind;
	return order ? order : strcmp(x->at.client->config.shown, y->at.client->config.shown);
}

static int check_members(hf_lock *const *members, size_t n, size_t least, size_t most)
{
	if (n < least || n > most)
		return hf__error(HF_EINVAL, "n: %zu is not between %zu and %zu", n, least, most);
	for (size_t i = 0; i < n; i++) {
		if (!members[i])
			return hf__error(HF_EINVAL, "members[%zu]: NULL", i);
		if (hf__lock_many(members[i]))
			return hf__error(HF_EINVAL, "members[%zu]: is itself a combination", i);
		int rc = hf__client_check(members[i]->at.client);
		if (rc)
			return rc;
		for (size_t j = 0; j < i; j++)
			if (members[j]->at.record == members[i]->at.record)
				return hf__error(HF_EINVAL, "members[%zu] and [%zu]: the same lock",
				                 j, i);
	}
	return 0;
}

static struct hf__several *make(hf_lock *const *members, size_t n, size_t need)
{
	struct hf__several *several = calloc(1, sizeof(*several) + n * sizeof(struct hf__member));
	if (!several)
		return NULL;
	atomic_init(&several->refs, 1);
	pthread_mutex_init(&several->mutex, NULL);
	hf__list_init(&several->retakes);
	hf__list_init(&several->wholes);
	several->n = n;
	several->need = need;
	for (size_t i = 0; i < n; i++) {
		struct hf__member *member = &several->member[i];
		member->lock.spin = members[i]->spin;
		hf__handle_copy(&member->lock.at, &members[i]->at);
	}
	qsort(several->member, n, sizeof(struct hf__member), compare_members);
	for (size_t i = 0; i < n; i++) {
		several->member[i].several = several;
		hf__list_init(&several->member[i].link);
	}
	return several;
}

static int open_several(hf_lock *const *members, size_t n, size_t need, hf_lock **ret_lock)
{
	hf_lock *lock = calloc(1, sizeof(*lock));
	struct hf__several *several = lock ? make(members, n, need) : NULL;
	if (!several) {
		free(lock);
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	}
	int rc = need < n ? hf__red_begin(several) : 0;
	if (rc) {
		hf__several_unref(several);
		free(lock);
		return rc;
	}
	lock->several = several;
	lock->at.client = several->member[0].lock.at.client;
	*ret_lock = lock;
	return 0;
}

int hf_lock_open_multi(hf_lock *const *members, size_t n, hf_lock **ret_lock)
{
	if (!members || !ret_lock)
		return hf__error(HF_EINVAL, "members or ret_lock: NULL");
	int rc = check_members(members, n, 1, HF__MEMBERS_MAX);
	return rc ? rc : open_several(members, n, n, ret_lock);
}

int hf_lock_open_red(hf_lock *const *members, size_t n, hf_lock **ret_lock)
{
	if (!members || !ret_lock)
		return hf__error(HF_EINVAL, "members or ret_lock: NULL");
	int rc = check_members(members, n, 3, 15);
	for (size_t i = 0; !rc && i < n; i++)
		if (hf__kind_of(members[i]->at.record)->session)
			rc = hf__error(
				HF_ENOTSUP,
				"members[%zu]: on ZooKeeper, where every lock is a majority's "
				"already",
				i);
	return rc ? rc : open_several(members, n, n / 2 + 1, ret_lock);
}

void hf__several_close(struct hf__several *several)
{
	if (hf__client_check(several->member[0].lock.at.client))
		return;
	if (several->need < several->n)
		hf__red_end(several);
	hf__several_unref(several);
}

/* ---- what enough members say ---- */

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? 1 : x > y ? -1 : 0;
}

/* As much as `need` of them have at least. */
static int64_t enough(const struct hf__several *several, int64_t *number)
{
	qsort(number, several->n, sizeof(*number), compare_numbers);
	return number[several->need - 1];
}

struct hf__whole *hf__several_whole(struct hf__several *several, uint64_t owner)
{
	struct hf__list *link;
	hf__list_each (link, &several->wholes) {
		struct hf__whole *whole = hf__list_item(link, struct hf__whole, link);
		if (whole->owner == owner)
			return whole;
	}
	return NULL;
}

int64_t hf__several_left(struct hf__several *several, struct hf__whole *whole, int64_t now,
                         hf_state *ret_state)
{
	int64_t left[HF__MEMBERS_MAX] = {0};
	int64_t calm[HF__MEMBERS_MAX] = {0}; /* held and not at risk */
	for (size_t i = 0; i < several->n; i++) {
		hf_state one = HF_FREE;
		const struct hf__lock *record = several->member[i].lock.at.record;
		bool counts = !(whole->left_out >> i & 1);
		left[i] = counts ? hf__lock_remaining(record, whole->owner, now, &one) : 0;
		calm[i] = one == HF_HELD;
	}
	int64_t least = whole->lost ? 0 : enough(several, left);
	whole->lost = least == 0;
	*ret_state = whole->lost ? HF_LOST : enough(several, calm) ? HF_HELD : HF_AT_RISK;
	return least;
}

int64_t hf__several_remaining(struct hf__several *several, uint64_t owner, int64_t now,
                              hf_state *ret_state)
{
	hf_state state = HF_FREE;
	/* A hold may have been taken through another handle, which had the memory of it. */
	struct hf__whole elsewhere = {.owner = owner};
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__several_whole(several, owner);
	int64_t left = hf__several_left(several, whole ? whole : &elsewhere, now, &state);
	if (!whole && left == 0)
		state = HF_FREE;
	pthread_mutex_unlock(&several->mutex);
	if (ret_state)
		*ret_state = state;
	return left;
}

/* ---- what the owner has of the whole ---- */

/* All that is needed was taken: one more level, if it is still there. */
bool hf__several_take(struct hf__work *work, int64_t now)
{
	struct hf__several *several = work->several;
	hf_state state;
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__several_whole(several, work->wish.owner);
	bool fresh = !whole;
	if (fresh) {
		whole = work->spare;
		whole->owner = work->wish.owner;
	}
	bool held = hf__several_left(several, whole, now, &state) > 0;
	if (fresh)
		whole->lost = false; /* it may be used for the next attempt */
	if (held && fresh) {
		hf__list_add(&several->wholes, &whole->link);
		work->spare = NULL;
	}
	whole->levels += held;
	for (size_t i = 0; held && i < several->n; i++)
		whole->level[i] += work->got >> i & 1;
	pthread_mutex_unlock(&several->mutex);
	return held;
}

/* How many levels of a lost hold are to be given back before a new one is taken. */
static int32_t lost_levels(struct hf__several *several, uint64_t owner, int64_t now)
{
	int32_t levels = 0;
	hf_state state;
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__several_whole(several, owner);
	if (whole && hf__several_left(several, whole, now, &state) == 0) {
		levels = whole->levels;
		hf__list_remove(&whole->link);
		free(whole);
	}
	pthread_mutex_unlock(&several->mutex);
	return levels;
}

/* Members that have more levels than are left give one up. */
static uint64_t lower(const struct hf__several *several, struct hf__whole *whole)
{
	uint64_t members = 0;
	whole->levels--;
	for (size_t i = 0; i < several->n; i++) {
		if (whole->level[i] <= whole->levels)
			continue;
		whole->level[i]--;
		members |= UINT64_C(1) << i;
	}
	return members;
}

/* Gives up one level: HF_ENOTHELD, HF_ELOST, or 0. */
static int leave_whole(struct hf__work *work, int64_t now)
{
	struct hf__several *several = work->several;
	uint64_t owner = work->wish.owner;
	hf_state state;
	struct hf__whole elsewhere = {.owner = owner};
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__several_whole(several, owner);
	int64_t left = hf__several_left(several, whole ? whole : &elsewhere, now, &state);
	int rc = left > 0 ? 0 : whole ? HF_ELOST : HF_ENOTHELD;
	work->leaving = whole ? lower(several, whole) : UINT64_MAX;
	bool gone = !whole || whole->levels == 0;
	if (whole && gone) {
		hf__list_remove(&whole->link);
		free(whole);
	}
	pthread_mutex_unlock(&several->mutex);
	if (gone)
		hf__red_forget(several, owner);
	return rc;
}

/* The owner has it already, so this can only be one more level. */
static bool is_nested(struct hf__several *several, uint64_t owner)
{
	pthread_mutex_lock(&several->mutex);
	bool nested = hf__several_whole(several, owner);
	pthread_mutex_unlock(&several->mutex);
	return nested;
}

/* The error of a round in which too few succeeded: the one that tells most. */
static int worst(const struct hf__work *work)
{
	static const int order[] = {HF_ELOST, HF_EUNKNOWN};
	for (size_t o = 0; o < sizeof order / sizeof *order; o++)
		for (size_t i = 0; i < work->parts; i++)
			if (work->part[i].result == order[o])
				return (int)i;
	for (size_t i = 0; i < work->parts; i++)
		if (work->part[i].result)
			return (int)i;
	return -1;
}

void hf__several_fail(struct hf__work *work, const struct hf__part *part)
{
	work->result = part->result;
	snprintf(work->detail, sizeof work->detail, "%s", part->detail);
}

/* ---- plans ---- */

static int64_t left_of(const struct hf__work *work, int64_t now)
{
	return work->deadline == HF__NEVER ? HF__NEVER : work->deadline - now;
}

/* Asks this of a member in the next round. */
void hf__several_ask(struct hf__work *work, size_t member, const struct hf__wish *wish)
{
	struct hf__part *part = &work->part[work->parts++];
	*part = (struct hf__part){.work = work, .member = member, .wish = *wish};
	part->wish.owner = work->wish.owner;
	part->wish.by_thread = work->wish.by_thread && wish->verb == HF__OP_ACQUIRE;
}

void hf__several_ask_of(struct hf__work *work, uint64_t members, const struct hf__wish *wish)
{
	for (size_t i = 0; i < work->several->n; i++)
		if (members >> i & 1)
			hf__several_ask(work, i, wish);
}

static void ask_to_take(struct hf__work *work, int64_t now)
{
	struct hf__wish wish = work->wish;
	int64_t left = left_of(work, now);
	if (wish.wait_ms > 0)
		wish.wait_ms = left > 0 ? left : 1;
	/* A fixed lease must not run out while the next member is waited for. */
	int64_t slice = wish.lease_ms / 3 > 50 ? wish.lease_ms / 3 : 50;
	if (wish.lease_ms && work->got && wish.wait_ms != HF_NOWAIT &&
	    (wish.wait_ms == 0 || wish.wait_ms > slice))
		wish.wait_ms = slice;
	work->phase = HF__PHASE_TAKE;
	hf__several_ask(work, work->at, &wish);
}

static void ask_to_extend(struct hf__work *work, enum hf__phase phase)
{
	struct hf__wish wish = {.verb = HF__OP_EXTEND, .lease_ms = work->wish.lease_ms};
	work->phase = phase;
	hf__several_ask_of(work, work->got, &wish);
}

void hf__several_undo(struct hf__work *work, enum hf__phase phase)
{
	struct hf__wish wish = {.verb = HF__OP_RELEASE};
	work->phase = phase;
	hf__several_ask_of(work, work->got, &wish);
	work->got = 0;
}

/* One of those taken first was lost before the last was taken: from the beginning, if there is time. */
static void lost_meanwhile(struct hf__work *work, int64_t now)
{
	bool again =
		!work->wish.nested && work->wish.wait_ms != HF_NOWAIT && left_of(work, now) > 0;
	work->result = HF_ELOST;
	snprintf(work->detail, sizeof work->detail,
	         "lost: a member was lost before the others were taken");
	hf__several_undo(work, again ? HF__PHASE_AGAIN : HF__PHASE_UNDO);
}

static void took(struct hf__work *work, const struct hf__part *part, int64_t now)
{
	struct hf__several *several = work->several;
	bool in_vain = part->result == HF_ETIMEDOUT || part->result == HF_EUNKNOWN;
	bool sliced = in_vain && part->wish.wait_ms > 0 && left_of(work, now) > 0;
	if (part->result == 0) {
		work->got |= UINT64_C(1) << work->at++;
		if (work->at < several->n)
			ask_to_take(work, now);
		else if (work->wish.lease_ms && several->n > 1)
			ask_to_extend(work, HF__PHASE_EVEN);
		else if (!hf__several_take(work, now))
			lost_meanwhile(work, now);
	} else if (sliced && work->got) {
		ask_to_extend(work, HF__PHASE_KEEP);
	} else if (work->wish.nested && part->result == HF_ENOTHELD) {
		lost_meanwhile(work, now);
	} else {
		hf__several_fail(work, part);
		hf__several_undo(work, HF__PHASE_UNDO);
	}
}

/* Those taken first have the whole lease again, unless one of them was lost meanwhile. */
static void evened(struct hf__work *work, int64_t now)
{
	int failed = worst(work);
	work->parts = 0;
	if (failed < 0) {
		if (work->phase == HF__PHASE_KEEP)
			ask_to_take(work, now);
		else if (!hf__several_take(work, now))
			lost_meanwhile(work, now);
		return;
	}
	if (work->part[failed].result == HF_ELOST) {
		lost_meanwhile(work, now);
		return;
	}
	hf__several_fail(work, &work->part[failed]);
	hf__several_undo(work, HF__PHASE_UNDO);
}

/* The next round of an acquire of all members; none is the end. */
static void plan_all(struct hf__work *work, int64_t now)
{
	struct hf__part part = work->part[0];
	switch (work->phase) {
	case HF__PHASE_TAKE:
		work->parts = 0;
		took(work, &part, now);
		break;
	case HF__PHASE_KEEP:
	case HF__PHASE_EVEN: evened(work, now); break;
	case HF__PHASE_UNDO: work->parts = 0; break;
	default:
		work->parts = 0;
		work->at = 0;
		work->result = 0;
		ask_to_take(work, now);
	}
}

/* A verb that all members get at once, or those that it is about. */
static void plan_once(struct hf__work *work)
{
	struct hf__several *several = work->several;
	int64_t number[HF__MEMBERS_MAX] = {0};
	bool release = work->wish.verb == HF__OP_RELEASE;
	size_t good = several->n - work->parts, yes = 0;
	if (work->phase == HF__PHASE_BEGIN) {
		work->phase = HF__PHASE_ONCE;
		hf__several_ask_of(work, release ? work->leaving : UINT64_MAX, &work->wish);
		return;
	}
	for (size_t i = 0; i < work->parts; i++) {
		const struct hf__part *part = &work->part[i];
		good += part->result == 0;
		yes += part->result == 0 && part->number;
		number[i] = part->result ? INT64_MIN : part->number;
	}
	bool known = release && work->result; /* since before the first round */
	if (!known && good < several->need)
		hf__several_fail(work, &work->part[worst(work)]);
	else if (work->wish.verb == HF__OP_FORCE)
		work->number = yes > 0;
	else if (work->wish.verb == HF__OP_IS_LOCKED)
		work->number = yes > several->n - several->need;
	else
		work->number = enough(several, number);
	work->parts = 0;
}

/* What is left of a hold that was lost goes first, a level each round. */
static bool plan_clearing(struct hf__work *work)
{
	struct hf__wish wish = {.verb = HF__OP_RELEASE};
	work->parts = 0;
	if (work->clearing == 0)
		return false;
	work->clearing--;
	work->phase = HF__PHASE_CLEAR;
	hf__several_ask_of(work, UINT64_MAX, &wish);
	return true;
}

static void plan(struct hf__work *work)
{
	int64_t now = hf__clock_ms();
	if (work->phase == HF__PHASE_CLEAR || (work->phase == HF__PHASE_BEGIN && work->clearing)) {
		if (plan_clearing(work))
			return;
		work->phase = HF__PHASE_BEGIN;
	}
	if (work->wish.verb != HF__OP_ACQUIRE)
		plan_once(work);
	else if (work->several->need == work->several->n)
		plan_all(work, now);
	else
		hf__red_plan(work, now);
}

static bool needs_a_hold(enum hf__op_verb verb)
{
	return verb == HF__OP_EXTEND || verb == HF__OP_IS_HELD || verb == HF__OP_COUNT;
}

/* Makes the call ready; it may be at its end already, with its result. 0 or HF_ENOMEM. */
static int begin(struct hf__work *work, struct hf__several *several, const struct hf__wish *wish)
{
	int64_t now = hf__clock_ms();
	hf_state state;
	memset(work, 0, offsetof(struct hf__work, part));
	work->several = several;
	work->wish = *wish;
	work->deadline = wish->wait_ms > 0 ? hf__clock_after(now, wish->wait_ms) : HF__NEVER;
	if (wish->verb == HF__OP_ACQUIRE) {
		work->spare = calloc(1, sizeof(*work->spare) +
		                                several->n * sizeof(work->spare->level[0]));
		if (!work->spare)
			return hf__error(HF_ENOMEM, "no memory for a hold");
		hf__list_init(&work->spare->link);
		work->clearing = lost_levels(several, wish->owner, now);
		work->wish.nested = is_nested(several, wish->owner);
	} else if (wish->verb == HF__OP_RELEASE) {
		work->result = leave_whole(work, now);
	} else if (needs_a_hold(wish->verb)) {
		(void)hf__several_remaining(several, wish->owner, now, &state);
		bool asks = wish->verb != HF__OP_EXTEND;
		work->result = state == HF_FREE && !asks ? HF_ENOTHELD : 0;
		if (state == HF_FREE && asks)
			return 0; /* the answer is none */
	}
	if (work->result)
		snprintf(work->detail, sizeof work->detail, "%s",
		         work->result == HF_ELOST ? "lost: too few members hold it" : "not held");
	if (work->result != HF_ENOTHELD)
		plan(work);
	return 0;
}

static void end(struct hf__work *work)
{
	free(work->spare);
	free(work);
}

/* ---- rounds ---- */

static void prepare(struct hf__part *part, struct hf__call *call)
{
	const struct hf__member *member = &part->work->several->member[part->member];
	hf__lock_prepare(call, &member->lock, &part->wish);
}

static void note(struct hf__part *part, int result, int64_t number)
{
	part->result = result;
	part->number = number;
	if (result)
		snprintf(part->detail, sizeof part->detail, "%s", hf_error_detail());
}

/* Under the member's mutex: nothing but the note, and a sign to the thread that waits. */
static void part_finished(struct hf__call *call)
{
	struct hf__part *part = call->arg;
	struct hf__work *work = part->work;
	part->result = call->op.result;
	part->number = call->op.number;
	if (part->result)
		memcpy(part->detail, call->op.detail, sizeof part->detail);
	free(call);
	if (atomic_fetch_sub(&work->pending, 1) == 1)
		hf__sleep_wake_word(&work->pending);
}

static void run_round(struct hf__work *work)
{
	struct hf__call call;
	if (work->parts == 1) {
		prepare(&work->part[0], &call);
		int rc = hf__call_run(&call);
		note(&work->part[0], rc, call.op.number);
		return;
	}
	atomic_store(&work->pending, (uint32_t)work->parts);
	for (size_t i = 0; i < work->parts; i++) {
		struct hf__part *part = &work->part[i];
		prepare(part, &call);
		call.cancel = NULL;
		int rc = hf__call_start_inner(&call, part_finished, part);
		if (rc) {
			note(part, rc, 0);
			atomic_fetch_sub(&work->pending, 1);
		}
	}
	uint32_t pending;
	while ((pending = atomic_load(&work->pending)) > 0)
		hf__sleep_on(&work->pending, pending);
}

int hf__several_run(struct hf__several *several, const struct hf__wish *wish, int64_t *ret_number)
{
	struct hf__work *work = malloc(sizeof(*work));
	if (!work)
		return hf__error(HF_ENOMEM, "no memory for a call");
	int before = hf__call_guard();
	int rc = begin(work, several, wish);
	while (!rc && work->parts > 0) {
		run_round(work);
		plan(work);
	}
	hf__call_unguard(before);
	if (!rc) {
		rc = work->result;
		if (rc)
			(void)hf__error(rc, "%s", work->detail);
		else
			hf__error_clear();
	}
	if (!rc && ret_number)
		*ret_number = work->number;
	end(work);
	return rc;
}

static void advance(struct hf__work *work);

static void part_completed(void *arg, int result, int64_t number, const char *text)
{
	struct hf__part *part = arg;
	(void)text;
	note(part, result, number);
	if (atomic_fetch_sub(&part->work->pending, 1) != 1)
		return;
	plan(part->work);
	advance(part->work);
}

static void complete(struct hf__work *work)
{
	if (work->result)
		(void)hf__error(work->result, "%s", work->detail);
	else
		hf__error_clear();
	work->done(work->arg, work->result, work->number, NULL);
	hf__several_unref(work->several);
	end(work);
}

/* Starts rounds until one is under way, or there are no more. */
static void advance(struct hf__work *work)
{
	struct hf__call call;
	while (work->parts > 0) {
		/* One more than parts, so that the last of them cannot end the round meanwhile. */
		atomic_store(&work->pending, (uint32_t)work->parts + 1);
		for (size_t i = 0; i < work->parts; i++) {
			struct hf__part *part = &work->part[i];
			prepare(part, &call);
			int rc = hf__call_start(&call, part_completed, part);
			if (rc) {
				note(part, rc, 0);
				atomic_fetch_sub(&work->pending, 1);
			}
		}
		if (atomic_fetch_sub(&work->pending, 1) != 1)
			return;
		plan(work);
	}
	complete(work);
}

static void nothing(void *arg, int result, int64_t number, const char *text)
{
	(void)result, (void)number, (void)text;
	advance(arg);
}

int hf__several_start(struct hf__several *several, const struct hf__wish *wish, hf_done_fn *done,
                      void *arg)
{
	struct hf__call first;
	if (!done)
		return hf__error(HF_EINVAL, "done: NULL");
	struct hf__work *work = malloc(sizeof(*work));
	if (!work)
		return hf__error(HF_ENOMEM, "no memory for a call");
	int rc = begin(work, hf__several_ref(several), wish);
	work->done = done;
	work->arg = arg;
	/* The first round too runs on the dispatcher, so that a completion never runs in this call. */
	hf__call_init(&first, several->member[0].lock.at.client, HF__OP_NOTHING);
	if (!rc)
		rc = hf__call_start(&first, nothing, work);
	if (rc) {
		hf__several_unref(several);
		end(work);
	}
	return rc;
}
