/*
 * Repairs: background work that brings a member to the number of levels that it should have, one
 * step at a time for each member and owner. A member that was lost or could not be reached is
 * acquired again while the others hold the lock; it counts once their servers have confirmed
 * that they do. Excess levels are released.
 *
 * After each step the next one is chosen from what the owner holds by then. So whatever happens
 * in between (releases, nested acquires, the loss of the whole, the closing of the handle) is
 * only noted.
 */
#include "api/several.h"
#include "api/red_mutants.h"

#define FIRST_PAUSE_MS 50
#define MOST_PAUSE_MS  2000

static size_t index_of(const struct hf__stake *stake)
{
	return (size_t)(stake - stake->whole->stake);
}

static const struct hf__member *member_of(const struct hf__stake *stake)
{
	return &stake->whole->several->member[index_of(stake)];
}

/* ---- the token that ends an acquire or a pause. Mutex held. ---- */

static void make_token(struct hf__stake *stake)
{
	/* No call uses it now, and it is only fired with the mutex held. */
	if (!stake->has_token)
		hf__cancel_init(&stake->cancel);
	stake->has_token = true;
	atomic_store(&stake->cancel.fired, false);
}

/* ---- what to do next. Mutex held. ---- */

/* The member is to count, the others still hold the lock, and nobody is taking it away. */
static bool is_wanted(const struct hf__stake *stake, int64_t now)
{
	struct hf__whole *whole = stake->whole;
	hf_state state;
	return stake->wanted && whole->levels > 0 && whole->several->handles > 0 &&
	       !whole->several->forcing && hf__whole_remaining(whole, now, &state) > 0;
}

static enum hf__repair choose(const struct hf__stake *stake, int64_t now)
{
	bool wanted = is_wanted(stake, now); /* may be what notices the loss of the whole */
	if (stake->levels > hf__whole_most_levels(stake) && !HF__RED_MUTANT(KEPT))
		return HF__REPAIR_GIVE;
	if (!wanted)
		return HF__REPAIR_NONE;
	return hf__whole_has(stake) ? HF__REPAIR_CHECK : HF__REPAIR_TAKE;
}

static void begin(struct hf__stake *stake, enum hf__repair step)
{
	stake->repair = (uint8_t)step;
	stake->subject = step == HF__REPAIR_TAKE ? 0 : stake->wire;
	stake->era = stake->whole->era;
	if (step == HF__REPAIR_GIVE)
		stake->levels--;
	if (step == HF__REPAIR_TAKE || step == HF__REPAIR_PAUSE)
		make_token(stake);
}

/* Counts the member if enough of the others held the lock while it was held too. */
static bool count_member(struct hf__stake *stake, int64_t now)
{
	struct hf__whole *whole = stake->whole;
	bool enough = atomic_load(&stake->yes) >= whole->several->need;
	if ((!enough && !HF__RED_MUTANT(UNCHECKED)) || stake->era != whole->era ||
	    stake->subject != stake->wire || !hf__whole_has(stake) || !is_wanted(stake, now))
		return false;
	stake->counts = true;
	stake->wanted = false;
	return true;
}

/* Notes the result of the step; true if it is to be tried again after a pause. */
static bool note(struct hf__stake *stake, enum hf__repair step, int result, int64_t now)
{
	if (step == HF__REPAIR_TAKE && !result) {
		hf__whole_add(stake, stake->subject);
		stake->retaken = stake->retaken || stake->levels == 1;
		stake->wanted = !stake->counts && stake->whole->renewed_from > 0;
	}
	if (step == HF__REPAIR_TAKE)
		return result && result != HF_ECANCELLED;
	if (step == HF__REPAIR_CHECK)
		return !count_member(stake, now);
	/* Another call of the owner was in progress all the time. */
	if (step == HF__REPAIR_GIVE && result == HF_EBUSY && !HF__RED_MUTANT(BUSY_RELEASE)) {
		hf__whole_add(stake, stake->subject);
		return true;
	}
	return false;
}

/* Ends the step; true if another one was begun. */
static bool choose_next(struct hf__stake *stake, int result, int64_t now)
{
	enum hf__repair done = stake->repair;
	bool again = note(stake, done, result, now);
	stake->repair = HF__REPAIR_NONE;
	if (result == HF_ECLOSED) { /* all holds ended with the client */
		stake->levels = 0;
		stake->counts = stake->wanted = false;
	}
	enum hf__repair next = choose(stake, now);
	bool stuck = done == HF__REPAIR_PAUSE && result && result != HF_ECANCELLED;
	if (next == HF__REPAIR_NONE || (stuck && next != HF__REPAIR_GIVE))
		return false;
	if (again)
		stake->pauses += stake->pauses < UINT8_MAX;
	else if (done != HF__REPAIR_PAUSE)
		stake->pauses = 0;
	bool waits = again && (next != HF__REPAIR_GIVE || done == HF__REPAIR_GIVE);
	begin(stake, waits ? HF__REPAIR_PAUSE : next);
	return true;
}

/* ---- doing it, without the mutex ---- */

/* The same, taking the mutex. After the last step the stake may be freed. */
static bool end_step(struct hf__stake *stake, int result)
{
	struct hf__several *several = stake->whole->several;
	pthread_mutex_lock(&several->mutex);
	bool more = choose_next(stake, result, hf__clock_ms());
	if (!more)
		hf__whole_leave(stake->whole);
	pthread_mutex_unlock(&several->mutex);
	if (!more)
		hf__members_unref(several);
	return more;
}

static void carry_on(struct hf__stake *stake);

static void on_step_done(void *arg, int result, int64_t number, const char *text)
{
	(void)number, (void)text;
	if (end_step(arg, result))
		carry_on(arg);
}

static void on_other_answered(void *arg, int result, int64_t number, const char *text)
{
	struct hf__stake *stake = arg;
	if (!result && number)
		atomic_fetch_add(&stake->yes, 1);
	if (atomic_fetch_sub(&stake->pending, 1) == 1)
		on_step_done(stake, 0, 0, text);
}

/* The members that count, other than this one, and their holds. */
static uint64_t find_others(const struct hf__stake *stake, uint64_t *ret_wire)
{
	const struct hf__whole *whole = stake->whole;
	uint64_t members = 0;
	for (size_t i = 0; i < whole->several->n; i++) {
		ret_wire[i] = whole->stake[i].wire;
		if (&whole->stake[i] != stake && whole->stake[i].counts)
			members |= UINT64_C(1) << i;
	}
	return members;
}

/* What is known of the others may be as old as their last renewal, so their servers are asked. */
static bool launch_check(struct hf__stake *stake)
{
	struct hf__several *several = stake->whole->several;
	struct hf__want want = {.action = HF__OP_QUERY,
	                        .question = HF__QUERY_IS_HELD,
	                        .owner = stake->whole->owner};
	uint64_t wire[HF__MEMBERS_MAX];
	pthread_mutex_lock(&several->mutex);
	uint64_t members = find_others(stake, wire);
	pthread_mutex_unlock(&several->mutex);
	atomic_store(&stake->yes, 0);
	atomic_store(&stake->pending, 1);
	for (size_t i = 0; i < several->n; i++) {
		if (!(members >> i & 1))
			continue;
		struct hf__spec spec = hf__members_describe(&several->member[i], &want);
		spec.only = wire[i];
		atomic_fetch_add(&stake->pending, 1);
		if (hf__call_start(spec, on_other_answered, stake))
			atomic_fetch_sub(&stake->pending, 1);
	}
	return atomic_fetch_sub(&stake->pending, 1) != 1;
}

static int64_t pause_of(const struct hf__stake *stake)
{
	int64_t most = member_of(stake)->lock.at.client->settings.watchdog_ms / 12;
	int64_t pause = FIRST_PAUSE_MS << (stake->pauses < 6 ? stake->pauses : 6);
	most = most > MOST_PAUSE_MS ? MOST_PAUSE_MS : most > FIRST_PAUSE_MS ? most : FIRST_PAUSE_MS;
	return pause < most ? pause : most;
}

static struct hf__spec describe(struct hf__stake *stake)
{
	struct hf__want want = {.owner = stake->whole->owner, .cancel = &stake->cancel};
	switch (stake->repair) {
	case HF__REPAIR_TAKE:
		want.action = HF__OP_ACQUIRE;
		want.replicas = -1;
		/* If the owner has a hold already, one answer decides, or that hold ends soon. */
		if (hf__lock_remaining(member_of(stake)->lock.at.lock, want.owner, hf__clock_ms(),
		                       NULL) > 0)
			want.wait_ms = HF__MOST_LIMIT_MS;
		break;
	case HF__REPAIR_PAUSE:
		want.action = HF__OP_PAUSE;
		want.wait_ms = pause_of(stake);
		break;
	default: want.action = HF__OP_RELEASE; want.cancel = NULL;
	}
	struct hf__spec spec = hf__members_describe(member_of(stake), &want);
	if (stake->repair == HF__REPAIR_TAKE)
		spec.ret_wire = &stake->subject;
	if (stake->repair == HF__REPAIR_GIVE)
		spec.only = stake->subject;
	return spec;
}

/* True if the step was started (it may even be finished); false, with its result, if not. */
static bool launch(struct hf__stake *stake, int *ret_result)
{
	bool gives = stake->repair == HF__REPAIR_GIVE;
	*ret_result = 0;
	if (stake->repair == HF__REPAIR_CHECK)
		return launch_check(stake);
	struct hf__spec spec = describe(stake);
	*ret_result = hf__call_start(spec, on_step_done, stake);
	/* An unreleased level is renewed for ever: without memory to do it later, do it now. */
	if (gives && (*ret_result == HF_ENOMEM || *ret_result == HF_ESYSTEM))
		*ret_result = hf__call_number(spec, NULL);
	else if (!*ret_result)
		return true;
	return false;
}

/* Launches steps until one has to be waited for, or none is left. */
static void carry_on(struct hf__stake *stake)
{
	int result;
	while (!launch(stake, &result))
		if (!end_step(stake, result))
			return;
}

/* Starts what is to be done for the member, if anything. */
static void start(struct hf__stake *stake)
{
	struct hf__several *several = stake->whole->several;
	pthread_mutex_lock(&several->mutex);
	enum hf__repair step = stake->repair ? HF__REPAIR_NONE : choose(stake, hf__clock_ms());
	if (step) {
		stake->whole->users++;
		hf__members_ref(several);
		stake->pauses = 0;
		begin(stake, step);
	}
	pthread_mutex_unlock(&several->mutex);
	if (step)
		carry_on(stake);
}

void hf__repair_start(struct hf__whole *whole)
{
	for (size_t i = 0; i < whole->several->n; i++)
		start(&whole->stake[i]);
}

/* The next owner in the list, or the first one after NULL, that holds the whole. Mutex held. */
static struct hf__whole *next_held(struct hf__several *several, struct hf__whole *after)
{
	struct hf__list *link = after ? after->link.next : several->wholes.next;
	while (link != &several->wholes && hf__list_item(link, struct hf__whole, link)->levels == 0)
		link = link->next;
	return link == &several->wholes ? NULL : hf__list_item(link, struct hf__whole, link);
}

void hf__repair_review(struct hf__several *several)
{
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = next_held(several, NULL);
	while (whole) {
		whole->users++; /* so it stays in the list */
		hf__whole_review(whole, hf__clock_ms());
		pthread_mutex_unlock(&several->mutex);
		hf__repair_start(whole);
		pthread_mutex_lock(&several->mutex);
		struct hf__whole *next = next_held(several, whole);
		hf__whole_leave(whole);
		whole = next;
	}
	pthread_mutex_unlock(&several->mutex);
}
