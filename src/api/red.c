/* Red locks: a majority of independent servers, asked all at once, and taken again where one lost it. */
#include "api/several.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_LIMIT_MS 50
#define MOST_LIMIT_MS  1000
#define FIRST_PAUSE_MS 8
#define MOST_PAUSE_MS  256

/* A member that is being taken again for an owner that holds the rest. */
struct retake {
	struct hf__list link; /* in several->retakes */
	struct hf__several *several;
	struct hf__member *member;
	struct hf_cancel *cancel;
	uint64_t owner;
	bool unwanted;            /* the owner has given the lock up */
	_Atomic uint32_t pending; /* members that are asked whether they hold */
	_Atomic uint32_t yes;     /* of these */
};

/* ---- opening ---- */

/* The words that name a server; empty if it cannot be asked now. */
static int identify(const struct hf__member *member, char *ret_words, size_t size)
{
	struct hf__call call;
	struct hf__wish wish = {
		.verb = HF__OP_REQUEST, .request = HF__IDENTIFY, .wait_ms = MOST_LIMIT_MS};
	hf__lock_prepare(&call, &member->lock, &wish);
	int rc = hf__call_run(&call);
	ret_words[0] = 0;
	if (rc == HF_EDENIED)
		return hf__error(rc,
		                 "%s: its user may not run INFO, which is needed to see whether "
		                 "the servers are independent",
		                 member->lock.at.client->config.shown);
	if (!rc)
		snprintf(ret_words, size, "%s", call.op.text);
	return 0;
}

static bool share_a_word(const char *a, const char *b)
{
	while (*a) {
		size_t length = strcspn(a, " ");
		const char *found = length ? b : NULL;
		while (found && *found) {
			size_t other = strcspn(found, " ");
			if (other == length && memcmp(a, found, length) == 0)
				return true;
			found += other + (found[other] != 0);
		}
		a += length + (a[length] != 0);
	}
	return false;
}

static int check_independent(const struct hf__several *several)
{
	char words[15][128];
	assert(several->n <= sizeof words / sizeof *words);
	for (size_t i = 0; i < several->n; i++) {
		const struct hf_client *client = several->member[i].lock.at.client;
		int rc = identify(&several->member[i], words[i], sizeof words[i]);
		if (rc)
			return rc;
		for (size_t j = 0; j < i; j++) {
			const struct hf_client *other = several->member[j].lock.at.client;
			if (client == other || share_a_word(words[i], words[j]))
				return hf__error(
					HF_EINVAL,
					"members: %s and %s are one server, or one is the "
					"other's replica; a majority of them proves nothing",
					other->config.shown, client->config.shown);
		}
	}
	return 0;
}

/* Losses are told on the dispatcher, so there must be one. */
static int join(struct hf__member *member)
{
	struct hf_client *client = member->lock.at.client;
	int before = hf__call_guard();
	hf__engine_lock(&client->engine);
	int rc = hf__engine_need_dispatcher(&client->engine);
	if (!rc)
		hf__list_add(&client->members, &member->link);
	hf__engine_unlock(&client->engine);
	hf__call_unguard(before);
	return rc ? hf__error(rc, "cannot start a thread") : 0;
}

static void part(struct hf__member *member)
{
	struct hf_client *client = member->lock.at.client;
	int before = hf__call_guard();
	hf__engine_lock(&client->engine);
	hf__list_remove(&member->link);
	hf__engine_unlock(&client->engine);
	hf__call_unguard(before);
}

int hf__red_begin(struct hf__several *several)
{
	int rc = check_independent(several);
	size_t joined = 0;
	while (!rc && joined < several->n) {
		rc = join(&several->member[joined]);
		joined += !rc;
	}
	while (rc && joined > 0)
		part(&several->member[--joined]);
	return rc;
}

/* Ends the attempts of one owner, or (0) of all. */
static void cancel_retakes(struct hf__several *several, uint64_t owner)
{
	struct hf__list *link;
	pthread_mutex_lock(&several->mutex);
	hf__list_each (link, &several->retakes) {
		struct retake *retake = hf__list_item(link, struct retake, link);
		if (owner && retake->owner != owner)
			continue;
		retake->unwanted = true;
		hf_cancel_fire(retake->cancel);
	}
	pthread_mutex_unlock(&several->mutex);
}

void hf__red_end(struct hf__several *several)
{
	for (size_t i = 0; i < several->n; i++)
		part(&several->member[i]);
	cancel_retakes(several, 0);
}

void hf__red_forget(struct hf__several *several, uint64_t owner)
{
	cancel_retakes(several, owner);
}

/* ---- taking a member again ---- */

static void ignore(void *arg, int result, int64_t number, const char *text)
{
	(void)arg, (void)result, (void)number, (void)text;
}

static void free_retake(struct retake *retake)
{
	pthread_mutex_lock(&retake->several->mutex);
	hf__list_remove(&retake->link);
	pthread_mutex_unlock(&retake->several->mutex);
	hf_cancel_free(retake->cancel);
	hf__several_unref(retake->several);
	free(retake);
}

/* The member counts again, if the others have held the lock without a gap until now. */
static bool count_again(struct retake *retake)
{
	struct hf__several *several = retake->several;
	hf_state state;
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__several_whole(several, retake->owner);
	bool held = !retake->unwanted && whole &&
	            hf__several_left(several, whole, hf__clock_ms(), &state) > 0;
	if (held) {
		size_t at = (size_t)(retake->member - several->member);
		whole->left_out &= ~(UINT64_C(1) << at);
		whole->level[at] = 1;
	}
	pthread_mutex_unlock(&several->mutex);
	return held;
}

static void give_back(struct retake *retake)
{
	struct hf__call call;
	struct hf__wish wish = {.verb = HF__OP_RELEASE, .owner = retake->owner};
	hf__lock_prepare(&call, &retake->member->lock, &wish);
	(void)hf__call_start(&call, ignore, NULL);
}

/* The last of the others has answered: were they enough, at a time when this one was held too? */
static void one_less(struct retake *retake)
{
	if (atomic_fetch_sub(&retake->pending, 1) != 1)
		return;
	if (atomic_load(&retake->yes) < retake->several->need || !count_again(retake))
		give_back(retake);
	free_retake(retake);
}

static void other_answered(void *arg, int result, int64_t number, const char *text)
{
	struct retake *retake = arg;
	(void)text;
	if (!result && number)
		atomic_fetch_add(&retake->yes, 1);
	one_less(retake);
}

/* What the others believe may be as old as their last renewal, so their servers are asked. */
static void retaken(void *arg, int result, int64_t number, const char *text)
{
	struct retake *retake = arg;
	struct hf__several *several = retake->several;
	struct hf__call call;
	struct hf__wish wish = {.verb = HF__OP_IS_HELD, .owner = retake->owner};
	(void)number, (void)text;
	if (result) {
		free_retake(retake);
		return;
	}
	atomic_store(&retake->pending, (uint32_t)several->n);
	for (size_t i = 0; i < several->n; i++) {
		if (&several->member[i] == retake->member)
			continue;
		hf__lock_prepare(&call, &several->member[i].lock, &wish);
		if (hf__call_start(&call, other_answered, retake))
			one_less(retake);
	}
	one_less(retake);
}

/* Waits for the member as long as the lock is held without it; until then it does not count. */
static void take_again(struct hf__member *member, uint64_t owner)
{
	struct hf__call call;
	struct hf__wish wish = {.verb = HF__OP_ACQUIRE, .owner = owner};
	struct retake *retake = calloc(1, sizeof(*retake));
	if (!retake || hf_cancel_new(&retake->cancel)) {
		free(retake);
		return;
	}
	retake->several = hf__several_ref(member->several);
	retake->member = member;
	retake->owner = owner;
	wish.cancel = retake->cancel;
	hf_state state;
	pthread_mutex_lock(&member->several->mutex);
	struct hf__whole *whole = hf__several_whole(member->several, owner);
	bool held = whole && hf__several_left(member->several, whole, hf__clock_ms(), &state) > 0;
	if (held) {
		whole->left_out |= UINT64_C(1) << (member - member->several->member);
		whole->level[member - member->several->member] = 0;
	}
	hf__list_add(&member->several->retakes, &retake->link);
	pthread_mutex_unlock(&member->several->mutex);
	if (!held) {
		free_retake(retake);
		return;
	}
	hf__lock_prepare(&call, &member->lock, &wish);
	if (hf__call_start(&call, retaken, retake))
		free_retake(retake);
}

void hf__several_lost(struct hf_client *client, const struct hf__lock *record, uint64_t owner)
{
	struct hf__member *member[8];
	struct hf__list *link;
	size_t n = 0;
	hf__engine_lock(&client->engine);
	hf__list_each (link, &client->members) {
		struct hf__member *one = hf__list_item(link, struct hf__member, link);
		if (one->lock.at.record == record && n < sizeof member / sizeof *member) {
			hf__several_ref(one->several);
			member[n++] = one;
		}
	}
	hf__engine_unlock(&client->engine);
	while (n > 0) {
		struct hf__several *several = member[--n]->several;
		hf_state state;
		int64_t now = hf__clock_ms();
		bool taken = hf__lock_remaining(record, owner, now, NULL) > 0; /* by a newer call */
		if (hf__several_remaining(several, owner, now, &state) > 0 && !taken)
			take_again(member[n], owner);
		else if (state == HF_LOST)
			cancel_retakes(several, owner);
		hf__several_unref(several);
	}
}

/* ---- the plan of an acquire ---- */

static int64_t pause_of(const struct hf__work *work, int64_t now)
{
	int64_t longest = FIRST_PAUSE_MS << (work->rounds < 5 ? work->rounds : 5);
	uint64_t chance;
	if (longest > MOST_PAUSE_MS)
		longest = MOST_PAUSE_MS;
	if (hf__random_bytes(&chance, sizeof chance))
		chance = (uint64_t)now;
	int64_t pause = 1 + (int64_t)(chance % (uint64_t)longest);
	int64_t left = work->deadline - now;
	return pause < left ? pause : left;
}

static void ask_all(struct hf__work *work, int64_t now)
{
	struct hf__wish wish = work->wish;
	const struct hf_client *client = work->several->member[0].lock.at.client;
	int64_t lease_ms = wish.lease_ms ? wish.lease_ms : client->config.watchdog_ms;
	int64_t limit = lease_ms / 30;
	limit = limit < LEAST_LIMIT_MS  ? LEAST_LIMIT_MS
	        : limit > MOST_LIMIT_MS ? MOST_LIMIT_MS
	                                : limit;
	work->cut = work->deadline != HF__NEVER && work->rounds > 0 && limit > work->deadline - now;
	if (work->cut)
		limit = work->deadline - now > 1 ? work->deadline - now : 1;
	wish.wait_ms = HF_NOWAIT;
	wish.limit_ms = limit;
	work->phase = HF__PHASE_ASK;
	hf__several_ask_of(work, UINT64_MAX, &wish);
}

/* Too few: what was taken is given back before the next attempt, or the end. */
static void too_few(struct hf__work *work, size_t heard, size_t got)
{
	const struct hf__several *several = work->several;
	/* That a round at the very end was not answered says nothing. */
	work->heard = heard >= several->need || (work->cut && work->heard);
	work->result = work->heard ? HF_EBUSY : HF_ENOQUORUM;
	snprintf(work->detail, sizeof work->detail,
	         "%s: %zu of %zu servers granted it and %zu answered; %zu are needed",
	         several->member[0].lock.at.record->name, got, several->n, heard, several->need);
	work->parts = 0;
	hf__several_undo(work, HF__PHASE_AGAIN);
}

/* Servers that could not be reached join as soon as they can. */
static void take_the_rest(struct hf__work *work)
{
	for (size_t i = 0; i < work->several->n; i++) {
		int result = work->part[i].result;
		bool away = result == HF_EUNREACHABLE || result == HF_EUNKNOWN ||
		            result == HF_ETIMEDOUT || result == HF_ENOTNOW;
		if (away && !work->wish.lease_ms)
			take_again(&work->several->member[i], work->wish.owner);
	}
}

/* Answers that another attempt would not change. */
static bool is_final(int result)
{
	switch (result) {
	case 0:
	case HF_EBUSY:
	case HF_ETIMEDOUT:
	case HF_EUNREACHABLE:
	case HF_EUNKNOWN:
	case HF_ENOTNOW: return false;
	default: return true;
	}
}

static void asked(struct hf__work *work, int64_t now)
{
	size_t heard = 0, got = 0, final = 0;
	const struct hf__part *last = NULL;
	for (size_t i = 0; i < work->parts; i++) {
		int result = work->part[i].result;
		heard += result == 0 || result == HF_EBUSY;
		got += result == 0;
		if (result == 0)
			work->got |= UINT64_C(1) << work->part[i].member;
		if (is_final(result)) {
			last = &work->part[i];
			final++;
		}
	}
	if (work->several->n - final < work->several->need) {
		hf__several_fail(work, last);
		if (work->wish.nested && work->result == HF_ENOTHELD)
			work->result = HF_ELOST;
		work->parts = 0;
		hf__several_undo(work, HF__PHASE_UNDO);
		return;
	}
	if (got < work->several->need || !hf__several_take(work, now)) {
		too_few(work, heard, got);
		return;
	}
	take_the_rest(work);
	work->parts = 0;
	work->result = 0;
}

static void next_attempt(struct hf__work *work, int64_t now)
{
	struct hf__wish pause = {.verb = HF__OP_PAUSE, .cancel = work->wish.cancel};
	bool fired = work->wish.cancel && atomic_load(&work->wish.cancel->fired);
	if (fired) {
		work->result = HF_ECANCELLED;
		snprintf(work->detail, sizeof work->detail, "cancelled");
	} else if (work->wish.wait_ms != HF_NOWAIT && now < work->deadline) {
		pause.wait_ms = pause_of(work, now);
		/* With less time than an answer takes there is no attempt any more. */
		work->over = work->deadline - now - pause.wait_ms < LEAST_LIMIT_MS;
		if (work->over)
			pause.wait_ms = work->deadline - now;
		work->rounds++;
		work->phase = HF__PHASE_PAUSE;
		hf__several_ask(work, 0, &pause);
	} else if (work->wish.wait_ms != HF_NOWAIT && work->result == HF_EBUSY) {
		work->result = HF_ETIMEDOUT;
	}
}

void hf__red_plan(struct hf__work *work, int64_t now)
{
	int result = work->part[0].result;
	switch (work->phase) {
	case HF__PHASE_ASK:
		asked(work, now);
		if (work->parts == 0 && work->result && work->phase == HF__PHASE_AGAIN)
			next_attempt(work, now); /* there was nothing to give back */
		break;
	case HF__PHASE_UNDO: work->parts = 0; break;
	case HF__PHASE_AGAIN:
		work->parts = 0;
		next_attempt(work, now);
		break;
	case HF__PHASE_PAUSE:
		work->parts = 0;
		if (result)
			hf__several_fail(work, &work->part[0]);
		else if (!work->over)
			ask_all(work, now);
		else if (work->result == HF_EBUSY)
			work->result = HF_ETIMEDOUT;
		break;
	default: ask_all(work, now);
	}
}
