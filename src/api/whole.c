/*
 * What an owner holds of several locks as one: levels of the whole, and levels of each member's
 * hold.
 *
 * A member may have fewer levels than the whole, because a nested acquire did not reach it, or
 * because it was lost and acquired again. A level is counted when a server has granted it, and
 * no longer when its release is started; so the count is always what is left to release. Levels
 * belong to one hold, whose wire owner is never used again: levels of a lost hold are never
 * mistaken for those of the next.
 */
#include "api/several.h"
#include "api/red_mutants.h"

#include <assert.h>
#include <stdlib.h>

#ifdef HF_MUTANTS
enum hf__red_mutant hf__red_mutant;
#endif

/* ---- life ---- */

struct hf__whole *hf__whole_find(struct hf__several *several, uint64_t owner)
{
	struct hf__list *link;
	hf__list_each (link, &several->wholes) {
		struct hf__whole *whole = hf__list_item(link, struct hf__whole, link);
		if (whole->owner == owner)
			return whole;
	}
	return NULL;
}

static struct hf__whole *make(struct hf__several *several, uint64_t owner)
{
	struct hf__whole *whole = calloc(1, sizeof(*whole) + several->n * sizeof(whole->stake[0]));
	if (!whole)
		return NULL;
	whole->several = several;
	whole->owner = owner;
	for (size_t i = 0; i < several->n; i++)
		whole->stake[i].whole = whole;
	hf__list_add(&several->wholes, &whole->link);
	return whole;
}

struct hf__whole *hf__whole_use(struct hf__several *several, uint64_t owner)
{
	struct hf__whole *whole = hf__whole_find(several, owner);
	if (!whole)
		whole = make(several, owner);
	if (whole)
		whole->users++;
	return whole;
}

static bool is_empty(const struct hf__whole *whole)
{
	bool empty = whole->levels == 0;
	for (size_t i = 0; empty && i < whole->several->n; i++)
		empty = whole->stake[i].levels == 0;
	return empty;
}

void hf__whole_keep(struct hf__whole *whole, struct hf__work *work)
{
	work->next = whole->spare;
	whole->spare = work;
}

struct hf__work *hf__whole_take_spare(struct hf__whole *whole)
{
	struct hf__work *work = whole->spare;
	if (work)
		whole->spare = work->next;
	return work;
}

static void free_spares(struct hf__whole *whole)
{
	struct hf__work *work;
	while ((work = hf__whole_take_spare(whole)))
		free(work);
}

void hf__whole_free(struct hf__whole *whole)
{
	hf__list_remove(&whole->link);
	free_spares(whole);
	for (size_t i = 0; i < whole->several->n; i++)
		if (whole->stake[i].has_token)
			hf__cancel_done(&whole->stake[i].cancel);
	free(whole);
}

void hf__whole_leave(struct hf__whole *whole)
{
	assert(whole->users > 0);
	if (--whole->users == 0 && is_empty(whole))
		hf__whole_free(whole);
}

/* ---- what enough members have ---- */

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? 1 : x > y ? -1 : 0;
}

int64_t hf__whole_pick_needed(const struct hf__several *several, int64_t *number)
{
	qsort(number, several->n, sizeof(*number), compare_numbers);
	return number[several->need - 1];
}

/* What enough members guarantee. Without a whole all members count. */
static int64_t measure(const struct hf__several *several, const struct hf__whole *whole,
                       uint64_t owner, int64_t now, hf_state *ret_state)
{
	int64_t left[HF__MEMBERS_MAX] = {0};
	int64_t calm[HF__MEMBERS_MAX] = {0}; /* held and not at risk */
	for (size_t i = 0; i < several->n; i++) {
		hf_state one = HF_FREE;
		const struct hf__lock *lock = several->member[i].lock.at.lock;
		bool counts = !whole || whole->stake[i].counts;
		left[i] = counts ? hf__lock_remaining(lock, owner, now, &one) : 0;
		calm[i] = one == HF_HELD;
	}
	int64_t least = hf__whole_pick_needed(several, left);
	bool is_calm = hf__whole_pick_needed(several, calm);
	*ret_state = least == 0 ? HF_LOST : is_calm ? HF_HELD : HF_AT_RISK;
	return least;
}

void hf__whole_stop_repairs(struct hf__whole *whole)
{
	for (size_t i = 0; i < whole->several->n; i++) {
		struct hf__stake *stake = &whole->stake[i];
		bool waits = stake->repair == HF__REPAIR_TAKE || stake->repair == HF__REPAIR_PAUSE;
		bool wanted = stake->wanted && whole->levels > 0 && !whole->lost &&
		              whole->several->handles > 0;
		if (waits && !wanted)
			hf_cancel_fire(&stake->cancel);
	}
}

int64_t hf__whole_remaining(struct hf__whole *whole, int64_t now, hf_state *ret_state)
{
	assert(whole->levels > 0);
	int64_t least = measure(whole->several, whole, whole->owner, now, ret_state);
	if (least == 0 && !whole->lost) {
		whole->lost = true;
		hf__whole_stop_repairs(whole);
	}
	if (HF__RED_MUTANT(FORGIVEN))
		whole->lost = least == 0;
	if (whole->lost)
		*ret_state = HF_LOST;
	return whole->lost ? 0 : least;
}

int64_t hf__whole_remaining_elsewhere(const struct hf__several *several, uint64_t owner,
                                      int64_t now, hf_state *ret_state)
{
	int64_t least = measure(several, NULL, owner, now, ret_state);
	if (least == 0)
		*ret_state = HF_FREE;
	return least;
}

/* ---- more levels ---- */

void hf__whole_add(struct hf__stake *stake, uint64_t wire)
{
	if (wire > stake->wire) {
		stake->wire = wire;
		if (!HF__RED_MUTANT(OLD_LEVELS))
			stake->levels = 0;
	}
	if (stake->levels == 0)
		stake->retaken = false;
	/* A hold with a lower number has ended, and nothing is left of it. */
	if (wire == stake->wire)
		stake->levels++;
}

static void remove_level(struct hf__stake *stake, uint64_t wire)
{
	if (wire == stake->wire)
		stake->levels--;
}

/* The member counted, and is not held any more. */
static void miss(struct hf__stake *stake)
{
	stake->counts = false;
	stake->wanted = stake->whole->renewed_from > 0;
}

static void begin_era(struct hf__whole *whole)
{
	whole->era++;
	whole->lost = false;
	whole->renewed_from = 0;
	for (size_t i = 0; i < whole->several->n; i++) {
		struct hf__stake *stake = &whole->stake[i];
		stake->counts = stake->wanted = stake->retaken = false;
	}
}

bool hf__whole_has(const struct hf__stake *stake)
{
	const struct hf__whole *whole = stake->whole;
	const struct hf__handle *at = &whole->several->member[stake - whole->stake].lock.at;
	hf__engine_lock(&at->client->engine);
	const struct hf__hold *hold = hf__call_hold(at->lock, whole->owner);
	bool has = stake->levels > 0 && hold && hold->state == HF__HOLD_HELD &&
	           hold->cmd.wire == stake->wire;
	hf__engine_unlock(&at->client->engine);
	return has;
}

/* Notes members that were lost after they were acquired and before the level was counted. */
static void find_missing(struct hf__whole *whole)
{
	for (size_t i = 0; i < whole->several->n; i++)
		if (whole->stake[i].counts && !hf__whole_has(&whole->stake[i]))
			miss(&whole->stake[i]);
}

static void add_all(struct hf__whole *whole, const struct hf__work *work, bool fresh)
{
	for (size_t i = 0; i < whole->several->n; i++) {
		struct hf__stake *stake = &whole->stake[i];
		if (!(work->got >> i & 1))
			continue;
		/* The level belongs to a later hold, so the earlier one was lost in between. */
		if (stake->counts && work->wire[i] > stake->wire)
			miss(stake);
		hf__whole_add(stake, work->wire[i]);
		if (fresh)
			stake->counts = true;
	}
}

int hf__whole_take(struct hf__whole *whole, const struct hf__work *work, int64_t now)
{
	bool fresh = whole->levels == 0;
	hf_state state;
	if (fresh)
		begin_era(whole);
	add_all(whole, work, fresh);
	int64_t left = fresh ? measure(whole->several, whole, whole->owner, now, &state)
	                     : hf__whole_remaining(whole, now, &state);
	if (left == 0) {
		for (size_t i = 0; i < whole->several->n; i++)
			if (work->got >> i & 1)
				remove_level(&whole->stake[i], work->wire[i]);
		if (fresh)
			begin_era(whole);
		return fresh ? HF_ETIMEDOUT : HF_ELOST;
	}
	whole->levels++;
	if (!work->want.lease_ms && !whole->renewed_from)
		whole->renewed_from = whole->levels;
	find_missing(whole);
	return 0;
}

void hf__whole_want(struct hf__whole *whole, size_t member)
{
	struct hf__stake *stake = &whole->stake[member];
	if (HF__RED_MUTANT(EXTRA_RETAKE)) {
		stake->counts = false;
		stake->levels = 0;
	}
	if (whole->levels > 0 && !stake->counts && whole->renewed_from)
		stake->wanted = true;
}

/* ---- fewer levels ---- */

int32_t hf__whole_most_levels(const struct hf__stake *stake)
{
	const struct hf__whole *whole = stake->whole;
	bool has_use = stake->counts || (!whole->lost && whole->several->handles > 0);
	/* If no other level is renewed, this one must not be renewed either. */
	if (stake->retaken && !whole->renewed_from)
		has_use = false;
	return has_use ? whole->levels : 0;
}

uint64_t hf__whole_give(struct hf__whole *whole, uint64_t *ret_wire)
{
	uint64_t members = 0;
	for (size_t i = 0; i < whole->several->n; i++) {
		struct hf__stake *stake = &whole->stake[i];
		if (stake->levels <= hf__whole_most_levels(stake))
			continue;
		stake->levels--;
		ret_wire[i] = stake->wire;
		members |= UINT64_C(1) << i;
	}
	return members;
}

/* No level is renewed any more: no member is acquired again, and those that were are released. */
static void stop_watching(struct hf__whole *whole)
{
	whole->renewed_from = 0;
	for (size_t i = 0; i < whole->several->n; i++) {
		struct hf__stake *stake = &whole->stake[i];
		stake->wanted = false;
		if (stake->retaken)
			stake->counts = false;
	}
	hf__whole_stop_repairs(whole);
}

uint64_t hf__whole_lower(struct hf__whole *whole, uint64_t *ret_wire)
{
	whole->levels--;
	if (whole->levels == 0)
		hf__whole_clear(whole);
	else if (whole->renewed_from > whole->levels)
		stop_watching(whole);
	return hf__whole_give(whole, ret_wire);
}

void hf__whole_clear(struct hf__whole *whole)
{
	whole->levels = 0;
	free_spares(whole);
	begin_era(whole);
	hf__whole_stop_repairs(whole);
}

void hf__whole_review(struct hf__whole *whole, int64_t now)
{
	hf_state state;
	find_missing(whole);
	if (whole->levels > 0)
		(void)hf__whole_remaining(whole, now, &state);
}

void hf__whole_lose(struct hf__whole *whole, size_t member, uint64_t wire, int64_t now)
{
	struct hf__stake *stake = &whole->stake[member];
	hf_state state;
	if (stake->wire != wire || whole->levels == 0)
		return;
	miss(stake);
	(void)hf__whole_remaining(whole, now, &state);
}
