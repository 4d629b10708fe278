/*
 * Red locks: a majority of independent servers. All are tried at once, and a member that is lost
 * while the majority holds is acquired again.
 */
#include "api/several.h"

#include "engine/sleep.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PAUSE_MS 8
#define MOST_PAUSE_MS  256

/* ---- opening ---- */

/* What a server says about itself when a red lock is opened. */
struct identity {
	_Atomic uint32_t *pending;
	int result;
	char words[128]; /* that name the server; empty if it did not answer */
};

/* Under the member's mutex: notes the result and wakes the waiting thread, and nothing else. */
static void on_identified(struct hf__call *call)
{
	struct identity *identity = call->arg;
	_Atomic uint32_t *pending = identity->pending;
	identity->result = call->op.result;
	if (!identity->result)
		memcpy(identity->words, call->op.text, sizeof identity->words);
	hf__call_free(call);
	hf__sleep_count_down(pending);
}

/* Asks all servers at once, so that several that hang take no longer than one. */
static void identify(const struct hf__several *several, struct identity *identity)
{
	_Atomic uint32_t pending = (uint32_t)several->n;
	struct hf__want want = {
		.action = HF__OP_COMMAND, .command = HF__IDENTIFY, .wait_ms = HF__MOST_LIMIT_MS};
	for (size_t i = 0; i < several->n; i++) {
		struct hf__call call;
		struct hf__spec spec = hf__members_describe(&several->member[i], &want);
		identity[i] = (struct identity){.pending = &pending};
		int rc = hf__call_start_inner(spec, on_identified, &identity[i]);
		if (!rc)
			continue;
		if (rc == HF_ENOMEM && !(rc = hf__call_run(&call, &spec)))
			memcpy(identity[i].words, call.op.text, sizeof identity[i].words);
		identity[i].result = rc;
		atomic_fetch_sub(&pending, 1);
	}
	hf__sleep_until_zero(&pending);
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

static int refuse_shared_server(const struct hf__several *several, size_t one, size_t other)
{
	return hf__error(HF_EINVAL,
	                 "members: %s and %s are one server or one cluster, or one is a replica of "
	                 "the other; a majority needs independent servers",
	                 several->member[one].lock.at.client->settings.shown,
	                 several->member[other].lock.at.client->settings.shown);
}

static int check_answers(const struct hf__several *several, const struct identity *identity)
{
	for (size_t i = 0; i < several->n; i++) {
		const char *shown = several->member[i].lock.at.client->settings.shown;
		if (identity[i].result == HF_EDENIED)
			return hf__error(HF_EDENIED,
			                 "%s: the user lacks the right to run INFO, which shows "
			                 "whether the servers are independent",
			                 shown);
		for (size_t j = 0; j < i; j++)
			if (share_a_word(identity[i].words, identity[j].words))
				return refuse_shared_server(several, j, i);
	}
	return 0;
}

int hf__red_check(const struct hf__several *several)
{
	struct identity identity[HF__RED_MOST];
	assert(several->n <= HF__RED_MOST);
	for (size_t i = 0; i < several->n; i++)
		for (size_t j = 0; j < i; j++)
			if (several->member[i].lock.at.client == several->member[j].lock.at.client)
				return refuse_shared_server(several, j, i);
	int before = hf__thread_defer_cancel();
	identify(several, identity);
	hf__thread_restore_cancel(before);
	return check_answers(several, identity);
}

/* Losses are reported by the dispatcher, so there must be one. */
static int join(struct hf__member *member)
{
	struct hf_client *client = member->lock.at.client;
	hf__engine_lock(&client->engine);
	int rc = hf__engine_need_dispatcher(&client->engine);
	if (!rc) {
		const struct hf__list *last = client->members.prev;
		member->number = last == &client->members
		                         ? 1
		                         : hf__list_item(last, struct hf__member, link)->number + 1;
		hf__list_add(&client->members, &member->link);
	}
	if (rc)
		hf__error_explain("cannot start a thread: %m");
	hf__engine_unlock(&client->engine);
	return rc;
}

static void leave(struct hf__member *member)
{
	struct hf_client *client = member->lock.at.client;
	hf__engine_lock(&client->engine);
	hf__list_remove(&member->link);
	hf__engine_unlock(&client->engine);
}

int hf__red_join(struct hf__several *several)
{
	int rc = 0;
	size_t joined = 0;
	while (!rc && joined < several->n) {
		rc = join(&several->member[joined]);
		joined += !rc;
	}
	while (rc && joined > 0)
		leave(&several->member[--joined]);
	return rc;
}

void hf__red_leave(struct hf__several *several)
{
	for (size_t i = 0; i < several->n; i++)
		leave(&several->member[i]);
}

/* ---- losses ---- */

/* The next member, after this number, that is this lock. The caller gets a reference. */
static struct hf__member *next_listener(struct hf_client *client, const struct hf__lock *lock,
                                        uint64_t number)
{
	struct hf__member *found = NULL;
	struct hf__list *link;
	hf__engine_lock(&client->engine);
	hf__list_each (link, &client->members) {
		struct hf__member *one = hf__list_item(link, struct hf__member, link);
		if (one->lock.at.lock != lock || one->number <= number)
			continue;
		hf__members_ref(one->several);
		found = one;
		break;
	}
	hf__engine_unlock(&client->engine);
	return found;
}

static void lose(struct hf__member *member, uint64_t owner, uint64_t wire)
{
	struct hf__several *several = member->several;
	pthread_mutex_lock(&several->mutex);
	struct hf__whole *whole = hf__whole_find(several, owner);
	if (whole) {
		whole->users++;
		hf__whole_lose(whole, (size_t)(member - several->member), wire, hf__clock_ms());
	}
	pthread_mutex_unlock(&several->mutex);
	if (!whole)
		return;
	hf__repair_start(whole);
	pthread_mutex_lock(&several->mutex);
	hf__whole_leave(whole);
	pthread_mutex_unlock(&several->mutex);
}

void hf__red_handle_loss(struct hf_client *client, const struct hf__lock *lock, uint64_t owner,
                         uint64_t wire)
{
	uint64_t number = 0;
	struct hf__member *member;
	while ((member = next_listener(client, lock, number))) {
		number = member->number;
		lose(member, owner, wire);
		hf__members_unref(member->several);
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

static void acquire_all(struct hf__work *work, int64_t now)
{
	struct hf__want want = work->want;
	int64_t limit = hf__plan_limit(work);
	work->cut = work->deadline != HF__NEVER && work->rounds > 0 && limit > work->deadline - now;
	if (work->cut)
		limit = work->deadline - now > 1 ? work->deadline - now : 1;
	want.wait_ms = HF_NOWAIT;
	want.limit_ms = limit;
	want.replicas = -1; /* the majority is what makes the lock last */
	work->phase = HF__PHASE_ASK;
	hf__plan_add_each(work, UINT64_MAX, &want);
}

/* Too few servers granted the lock: releases it on those before the next attempt, or the end. */
static void retreat(struct hf__work *work, size_t heard, size_t got)
{
	const struct hf__several *several = work->several;
	/* A round that the deadline cut short says nothing if it was not answered. */
	work->heard = heard >= several->need || (work->cut && work->heard);
	work->result = work->heard ? HF_EBUSY : HF_ENOQUORUM;
	snprintf(work->detail, sizeof work->detail,
	         "%s: %zu of %zu servers granted the lock and %zu answered; %zu must grant it",
	         several->member[0].lock.at.lock->name, got, several->n, heard, several->need);
	work->subs = 0;
	hf__plan_undo(work, HF__PHASE_AGAIN);
}

/* Counts one more level. Servers that could not be reached join as soon as they can. */
static int count_level(struct hf__work *work, int64_t now)
{
	struct hf__several *several = work->several;
	pthread_mutex_lock(&several->mutex);
	int rc = hf__whole_take(work->whole, work, now);
	for (size_t i = 0; !rc && i < work->subs; i++) {
		int result = work->sub[i].result;
		if (result == HF_EUNREACHABLE || result == HF_EUNKNOWN || result == HF_ETIMEDOUT ||
		    result == HF_ENOTNOW)
			hf__whole_want(work->whole, work->sub[i].member);
	}
	pthread_mutex_unlock(&several->mutex);
	return rc;
}

/* Results that another attempt would not change. */
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

static void handle_answers(struct hf__work *work, int64_t now)
{
	size_t heard = 0, got = 0, final = 0;
	const struct hf__subcall *last = NULL;
	for (size_t i = 0; i < work->subs; i++) {
		int result = work->sub[i].result;
		heard += result == 0 || result == HF_EBUSY;
		got += result == 0;
		if (is_final(result)) {
			last = &work->sub[i];
			final++;
		}
	}
	if (work->several->n - final < work->several->need) {
		hf__plan_fail(work, last);
		if (work->want.nested && work->result == HF_ENOTHELD)
			work->result = HF_ELOST;
		work->subs = 0;
		hf__plan_undo(work, HF__PHASE_UNDO);
		return;
	}
	int rc = got < work->several->need ? HF_ETIMEDOUT : count_level(work, now);
	if (rc == HF_ETIMEDOUT) {
		retreat(work, heard, got);
		return;
	}
	work->subs = 0;
	work->result = rc;
	if (!rc)
		return;
	snprintf(work->detail, sizeof work->detail, "lost: too few members are still held");
	hf__plan_undo(work, HF__PHASE_UNDO);
}

/* The first member whose client is open, which can run the pause. */
static size_t first_open(const struct hf__work *work)
{
	size_t i = 0;
	while (i + 1 < work->several->n && work->closed >> i & 1)
		i++;
	return i;
}

static void plan_attempt(struct hf__work *work, int64_t now)
{
	struct hf__want pause = {.action = HF__OP_PAUSE, .cancel = work->want.cancel};
	bool fired = work->want.cancel && atomic_load(&work->want.cancel->fired);
	if (fired) {
		work->result = HF_ECANCELLED;
		snprintf(work->detail, sizeof work->detail, "cancelled");
	} else if (work->want.wait_ms != HF_NOWAIT && now < work->deadline) {
		pause.wait_ms = pause_of(work, now);
		/* There is no further attempt in less time than an answer takes. */
		work->over = work->deadline - now - pause.wait_ms < HF__LEAST_LIMIT_MS;
		if (work->over)
			pause.wait_ms = work->deadline - now;
		work->rounds++;
		work->phase = HF__PHASE_PAUSE;
		hf__plan_add(work, first_open(work), &pause);
	} else if (work->want.wait_ms != HF_NOWAIT && work->result == HF_EBUSY) {
		work->result = HF_ETIMEDOUT;
	}
}

void hf__red_plan(struct hf__work *work, int64_t now)
{
	int result = work->sub[0].result;
	switch (work->phase) {
	case HF__PHASE_ASK:
		handle_answers(work, now);
		if (work->subs == 0 && work->result && work->phase == HF__PHASE_AGAIN)
			plan_attempt(work, now); /* there was nothing to release */
		break;
	case HF__PHASE_UNDO: work->subs = 0; break;
	case HF__PHASE_AGAIN:
		work->subs = 0;
		plan_attempt(work, now);
		break;
	case HF__PHASE_PAUSE:
		work->subs = 0;
		if (result && result != HF_ECLOSED) /* the other members may still be enough */
			hf__plan_fail(work, &work->sub[0]);
		else if (!work->over || result)
			acquire_all(work, now);
		else if (work->result == HF_EBUSY)
			work->result = HF_ETIMEDOUT;
		break;
	default: acquire_all(work, now);
	}
}
