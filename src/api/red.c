/* Red locks: a majority of independent servers, asked all at once, and taken again where one lost it. */
#include "api/several.h"

#include "engine/sleep.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PAUSE_MS 8
#define MOST_PAUSE_MS  256

/* ---- opening ---- */

/* What a server is asked when a lock is opened; the words that name it are empty if it does not answer. */
struct question {
	_Atomic uint32_t *pending;
	int result;
	char words[128];
};

/* Under the member's mutex: nothing but the note, and a sign to the thread that waits. */
static void on_identified(struct hf__call *call)
{
	struct question *question = call->arg;
	_Atomic uint32_t *pending = question->pending;
	question->result = call->op.result;
	if (!question->result)
		memcpy(question->words, call->op.text, sizeof question->words);
	hf__call_free(call);
	if (atomic_fetch_sub(pending, 1) == 1)
		hf__sleep_wake_word(pending);
}

/* Asks all servers at once, so that those that hang take no longer than one of them. */
static void identify(const struct hf__several *several, struct question *question)
{
	_Atomic uint32_t pending = (uint32_t)several->n;
	struct hf__want want = {
		.verb = HF__OP_REQUEST, .request = HF__IDENTIFY, .wait_ms = HF__MOST_LIMIT_MS};
	for (size_t i = 0; i < several->n; i++) {
		struct hf__call call;
		struct hf__spec spec = hf__locks_describe(&several->member[i].lock, &want);
		question[i] = (struct question){.pending = &pending};
		int rc = hf__call_start_inner(spec, on_identified, &question[i]);
		if (!rc)
			continue;
		if (rc == HF_ENOMEM && !(rc = hf__call_run(&call, spec)))
			memcpy(question[i].words, call.op.text, sizeof question[i].words);
		question[i].result = rc;
		atomic_fetch_sub(&pending, 1);
	}
	uint32_t left;
	while ((left = atomic_load(&pending)) > 0)
		hf__sleep_on(&pending, left);
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

static int one_server(const struct hf__several *several, size_t one, size_t other)
{
	return hf__error(HF_EINVAL,
	                 "members: %s and %s are one server, or one is a replica of the other; "
	                 "a majority needs independent servers",
	                 several->member[one].lock.at.client->config.shown,
	                 several->member[other].lock.at.client->config.shown);
}

static int check_answers(const struct hf__several *several, const struct question *question)
{
	for (size_t i = 0; i < several->n; i++) {
		const char *shown = several->member[i].lock.at.client->config.shown;
		if (question[i].result == HF_EDENIED)
			return hf__error(HF_EDENIED,
			                 "%s: the user lacks the right to run INFO, which shows "
			                 "whether the servers are independent",
			                 shown);
		for (size_t j = 0; j < i; j++)
			if (share_a_word(question[i].words, question[j].words))
				return one_server(several, j, i);
	}
	return 0;
}

int hf__red_check(const struct hf__several *several)
{
	struct question question[15];
	assert(several->n <= sizeof question / sizeof *question);
	for (size_t i = 0; i < several->n; i++)
		for (size_t j = 0; j < i; j++)
			if (several->member[i].lock.at.client == several->member[j].lock.at.client)
				return one_server(several, j, i);
	int before = hf__call_guard();
	identify(several, question);
	hf__call_unguard(before);
	return check_answers(several, question);
}

/* Losses are reported on the dispatcher, so there must be one. */
static int join(struct hf__member *member)
{
	struct hf_client *client = member->lock.at.client;
	hf__engine_lock(&client->engine);
	int rc = hf__engine_need_dispatcher(&client->engine);
	if (!rc) {
		const struct hf__list *last = client->members.prev;
		member->place = last == &client->members
		                        ? 1
		                        : hf__list_item(last, struct hf__member, link)->place + 1;
		hf__list_add(&client->members, &member->link);
	}
	hf__engine_unlock(&client->engine);
	return rc ? hf__error(rc, "cannot start a thread") : 0;
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

/* The next member of a red lock, after this place, that is this lock; its reference is the caller's. */
static struct hf__member *next_listener(struct hf_client *client, const struct hf__lock *record,
                                        uint64_t place)
{
	struct hf__member *found = NULL;
	struct hf__list *link;
	hf__engine_lock(&client->engine);
	hf__list_each (link, &client->members) {
		struct hf__member *one = hf__list_item(link, struct hf__member, link);
		if (one->lock.at.record != record || one->place <= place)
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
	hf__repair_start_all(whole);
	pthread_mutex_lock(&several->mutex);
	hf__whole_leave(whole);
	pthread_mutex_unlock(&several->mutex);
}

void hf__several_lost(struct hf_client *client, const struct hf__lock *record, uint64_t owner,
                      uint64_t wire)
{
	uint64_t place = 0;
	struct hf__member *member;
	while ((member = next_listener(client, record, place))) {
		place = member->place;
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

static void ask_all(struct hf__work *work, int64_t now)
{
	struct hf__want want = work->want;
	int64_t limit = hf__several_limit(work);
	work->cut = work->deadline != HF__NEVER && work->rounds > 0 && limit > work->deadline - now;
	if (work->cut)
		limit = work->deadline - now > 1 ? work->deadline - now : 1;
	want.wait_ms = HF_NOWAIT;
	want.limit_ms = limit;
	work->phase = HF__PHASE_ASK;
	hf__several_ask_of(work, UINT64_MAX, &want);
}

/* Too few: what was taken is given back before the next attempt, or the end. */
static void too_few(struct hf__work *work, size_t heard, size_t got)
{
	const struct hf__several *several = work->several;
	/* That a round at the very end was not answered says nothing. */
	work->heard = heard >= several->need || (work->cut && work->heard);
	work->result = work->heard ? HF_EBUSY : HF_ENOQUORUM;
	snprintf(work->detail, sizeof work->detail,
	         "%s: %zu of %zu servers granted the lock and %zu answered; %zu must grant it",
	         several->member[0].lock.at.record->name, got, several->n, heard, several->need);
	work->subs = 0;
	hf__several_undo(work, HF__PHASE_AGAIN);
}

/* One more level, and servers that could not be reached join as soon as they can. */
static int take(struct hf__work *work, int64_t now)
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
		hf__several_fail(work, last);
		if (work->want.nested && work->result == HF_ENOTHELD)
			work->result = HF_ELOST;
		work->subs = 0;
		hf__several_undo(work, HF__PHASE_UNDO);
		return;
	}
	int rc = got < work->several->need ? HF_ETIMEDOUT : take(work, now);
	if (rc == HF_ETIMEDOUT) {
		too_few(work, heard, got);
		return;
	}
	work->subs = 0;
	work->result = rc;
	if (!rc)
		return;
	snprintf(work->detail, sizeof work->detail, "lost: too few members are still held");
	hf__several_undo(work, HF__PHASE_UNDO);
}

/* A member whose client can wait for the rest. */
static size_t first_open(const struct hf__work *work)
{
	size_t i = 0;
	while (i + 1 < work->several->n && work->closed >> i & 1)
		i++;
	return i;
}

static void next_attempt(struct hf__work *work, int64_t now)
{
	struct hf__want pause = {.verb = HF__OP_PAUSE, .cancel = work->want.cancel};
	bool fired = work->want.cancel && atomic_load(&work->want.cancel->fired);
	if (fired) {
		work->result = HF_ECANCELLED;
		snprintf(work->detail, sizeof work->detail, "cancelled");
	} else if (work->want.wait_ms != HF_NOWAIT && now < work->deadline) {
		pause.wait_ms = pause_of(work, now);
		/* With less time than an answer takes there is no attempt any more. */
		work->over = work->deadline - now - pause.wait_ms < HF__LEAST_LIMIT_MS;
		if (work->over)
			pause.wait_ms = work->deadline - now;
		work->rounds++;
		work->phase = HF__PHASE_PAUSE;
		hf__several_ask(work, first_open(work), &pause);
	} else if (work->want.wait_ms != HF_NOWAIT && work->result == HF_EBUSY) {
		work->result = HF_ETIMEDOUT;
	}
}

void hf__red_plan(struct hf__work *work, int64_t now)
{
	int result = work->sub[0].result;
	switch (work->phase) {
	case HF__PHASE_ASK:
		asked(work, now);
		if (work->subs == 0 && work->result && work->phase == HF__PHASE_AGAIN)
			next_attempt(work, now); /* there was nothing to give back */
		break;
	case HF__PHASE_UNDO: work->subs = 0; break;
	case HF__PHASE_AGAIN:
		work->subs = 0;
		next_attempt(work, now);
		break;
	case HF__PHASE_PAUSE:
		work->subs = 0;
		if (result &&
		    result != HF_ECLOSED) /* without that client there may still be enough */
			hf__several_fail(work, &work->sub[0]);
		else if (!work->over || result)
			ask_all(work, now);
		else if (work->result == HF_EBUSY)
			work->result = HF_ETIMEDOUT;
		break;
	default: ask_all(work, now);
	}
}
