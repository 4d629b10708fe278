/* What must be true after every step, whatever went wrong before. */
#include "red.h"

#include "sim/runner.h"

#include <stdarg.h>
#include <stdio.h>

void watch_fail(const char *check, const char *format, ...)
{
	char text[300];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	runner_fail(red.seed, check, text);
}

void check_fail(struct world *world, const char *check, const char *format, ...)
{
	(void)world, (void)format;
	runner_fail(red.seed, check, "see tests/sim");
}

/* ---- belief ---- */

static bool is_true(const struct actor *actor, int server, const struct hf__stake *stake)
{
	const struct entry *entry = &red.world[server].entry[0];
	return stake->levels > 0 && entry->there && entry->client == actor->process->index &&
	       entry->wire == stake->wire;
}

/* A request of a connection that was given up may bring a hold back which was taken away. */
static bool is_haunted(int set, const struct hf__whole *whole)
{
	for (int i = 0; i < red.set[set].n; i++)
		if (red.world[red.set[set].first + i].wire[whole->stake[i].wire].tainted)
			return true;
	return false;
}

/* How many members the owner really has: all of them, and those that count. */
static int count_true(const struct actor *actor, int set, const struct hf__whole *whole,
                      int *ret_counting)
{
	int all = 0;
	*ret_counting = 0;
	for (int i = 0; i < red.set[set].n; i++) {
		const struct hf__stake *stake = &whole->stake[i];
		bool there = is_true(actor, red.set[set].first + i, stake);
		all += there;
		*ret_counting += there && stake->counts;
	}
	return all;
}

/*
 * The owner took the server's lock alone, and that the hold before was lost is about to be
 * reported.
 */
static bool has_another_hold(const struct actor *actor, int server, const struct hf__stake *stake)
{
	const struct client *client = actor->process->node[server].client;
	const struct hf__hold *hold = hf__call_hold(client->lock[0], actor->owner.number);
	return hold && hold->cmd.wire != stake->wire && !hf__list_empty(&client->news);
}

/* Only what a server has forgotten, or was made to forget, may be believed without being true. */
static void check_excuse(const struct actor *actor, int set, const struct hf__whole *whole)
{
	for (int i = 0; i < red.set[set].n; i++) {
		int server = red.set[set].first + i;
		const struct hf__stake *stake = &whole->stake[i];
		const struct hf__lock *lock = actor->process->node[server].client->lock[0];
		bool believed =
			stake->counts && hf__lock_remaining(lock, actor->owner.number,
		                                            actor_now(actor->process), NULL) > 0;
		if (believed && !is_true(actor, server, stake) &&
		    !has_another_hold(actor, server, stake) &&
		    !red.world[server].wire[stake->wire].revoked)
			watch_fail("belief",
			           "process %d: server %d counts, and does not have wire %llu",
			           actor->process->index, server, (unsigned long long)stake->wire);
	}
}

/* The owner says that it holds the lock. */
static void check_believer(struct actor *actor, int set, const struct hf__whole *whole,
                           int *holders)
{
	struct belief *belief = &actor->belief[set];
	int need = red.set[set].n / 2 + 1, counting;
	int all = count_true(actor, set, whole, &counting);
	if (belief->was_lost)
		watch_fail("forgiven", "process %d: lock %d was lost, and is trusted again",
		           actor->process->index, set);
	belief->had_gap = belief->had_gap || all < need;
	if (counting >= need) {
		belief->doubt_since = HF__NEVER;
		if (belief->had_gap && !is_haunted(set, whole))
			watch_fail("gap", "process %d: lock %d is held again after a gap",
			           actor->process->index, set);
		if (++*holders > 1)
			watch_fail("exclusion", "lock %d is held by %d owners", set, *holders);
		return;
	}
	check_excuse(actor, set, whole);
	if (belief->doubt_since == HF__NEVER)
		belief->doubt_since = red.now;
	if (red.now - belief->doubt_since > LEASE_MAX * 1050)
		watch_fail("unnoticed", "process %d: the majority of lock %d has long been lost",
		           actor->process->index, set);
}

/* How often that happens is worth knowing. */
static void count_joined(struct belief *belief, int set, const struct hf__whole *whole)
{
	unsigned joined = 0;
	for (int i = 0; i < red.set[set].n; i++)
		joined |= (unsigned)(whole->stake[i].counts && whole->stake[i].retaken) << i;
	for (unsigned fresh = joined & ~belief->joined; fresh; fresh &= fresh - 1)
		red.totals.retaken++;
	belief->joined = joined;
}

static void check_belief(struct actor *actor, int set, int *holders)
{
	struct belief *belief = &actor->belief[set];
	struct hf__several *several = actor_several(actor->process, set);
	const struct hf__whole *whole = actor_whole(actor, set);
	hf_state state;
	if (!whole || whole->levels == 0) {
		belief->era = 0;
		return;
	}
	if (belief->era != whole->era) {
		belief->era = whole->era;
		belief->was_lost = belief->had_gap = false;
		belief->doubt_since = HF__NEVER;
	}
	count_joined(belief, set, whole);
	red.current = actor->process;
	if (hf__several_remaining(several, actor->owner.number, actor_now(actor->process), &state))
		check_believer(actor, set, whole, holders);
	else if (state == HF_LOST)
		belief->was_lost = true;
	else
		watch_fail("state", "process %d: lock %d has levels and is free",
		           actor->process->index, set);
}

/* ---- counts ---- */

/* No call and no repair of this owner is in progress. */
static bool is_quiet(const struct actor *actor)
{
	bool quiet = actor_is_idle(actor);
	for (int i = 0; quiet && i < red.sets; i++) {
		const struct hf__whole *whole = actor_whole(actor, i);
		quiet = !whole || whole->users == 0;
	}
	return quiet;
}

/* What the owner's hold on a server counts is what its locks will give up. */
static void check_count(const struct actor *actor, int server)
{
	const struct client *client = actor->process->node[server].client;
	const struct hf__hold *hold = hf__hold_find(client->lock[0], actor->owner.number);
	if (!hold || hold->state != HF__HOLD_HELD)
		return;
	bool same = actor->direct_wire[server] == hold->cmd.wire;
	int32_t owed = same ? actor->direct[server] : 0;
	for (int i = 0; i < red.sets; i++) {
		int at = server - red.set[i].first;
		const struct hf__whole *whole = actor_whole(actor, i);
		if (whole && at >= 0 && at < red.set[i].n &&
		    whole->stake[at].wire == hold->cmd.wire)
			owed += whole->stake[at].levels;
	}
	if (hold->count != owed)
		watch_fail("count",
		           "process %d: server %d counts %d levels of wire %llu, %d are owed",
		           actor->process->index, server, hold->count,
		           (unsigned long long)hold->cmd.wire, owed);
}

static void check_levels(struct actor *actor, int set)
{
	const struct hf__whole *whole = actor_whole(actor, set);
	int levels = whole ? whole->levels : 0;
	if (!actor->mixed && levels != actor->belief[set].open)
		watch_fail("levels", "process %d: %d levels of lock %d are open, it counts %d",
		           actor->process->index, actor->belief[set].open, set, levels);
	actor->belief[set].open = levels;
}

/* Without a handle, what it counts exists but cannot be reached. */
static bool has_handles(const struct process *process)
{
	for (int i = 0; i < red.sets; i++)
		if (!actor_several(process, i))
			return false;
	return true;
}

static void check_counts(struct actor *actor)
{
	if (!is_quiet(actor) || !has_handles(actor->process))
		return;
	for (int i = 0; i < red.servers; i++)
		if (!actor->process->node[i].closing)
			check_count(actor, i);
	for (int i = 0; i < red.sets; i++)
		check_levels(actor, i);
	actor->mixed = false;
}

void watch_all(void)
{
	int holders[SETS] = {0};
	for (int i = 0; i < red.processes; i++) {
		struct process *process = &red.process[i];
		for (int j = 0; j < process->actors && !process->over && !process->paused_until;
		     j++) {
			for (int k = 0; k < red.sets; k++)
				check_belief(&process->actor[j], k, &holders[k]);
			check_counts(&process->actor[j]);
		}
	}
}

/* ---- single events ---- */

void watch_done(struct actor *actor, const struct ask *ask, int result)
{
	int process = actor->process->index;
	if (result > 0)
		watch_fail("result", "a call ended with %d", result);
	if (ask->action != HF__OP_ACQUIRE)
		return;
	if (result == HF_EBUSY && ask->wait_ms != HF_NOWAIT)
		watch_fail("result", "process %d: busy, although it waited", process);
	if (result == HF_ETIMEDOUT && ask->wait_ms == 0)
		watch_fail("result", "process %d: timed out without a time limit", process);
	if (result == HF_ECANCELLED && !ask->cancel && ask->cancel_at == HF__NEVER && red.ending)
		return;
	if (actor->asked && ask->set == 0 && result && result != HF_ECLOSED)
		watch_fail("liveness", "process %d: does not get the lock: %d", process, result);
}

/* ---- the end ---- */

static bool is_node_empty(const struct node *node)
{
	const struct hf__core *core = &node->client->core;
	const struct entry *entry = &node->client->world->entry[0];
	const struct hf__lock *lock = node->client->lock[0];
	return node->closing ||
	       (core->holds == 0 && hf__list_empty(&lock->queue) && !host_is_waiting(node) &&
	        hf__list_empty(&core->parked) && hf__list_empty(&core->pauses) &&
	        !(entry->there && entry->client == node->process->index));
}

bool watch_is_empty(const struct process *process)
{
	for (int i = 0; i < red.servers; i++)
		if (!is_node_empty(&process->node[i]))
			return false;
	for (int i = 0; i < red.sets; i++) {
		const struct hf__several *several = actor_several(process, i);
		if (several && !hf__list_empty(&several->wholes))
			return false;
	}
	return true;
}

void watch_end(void)
{
	for (int i = 0; i < red.servers; i++) {
		red.world[i].now = red.now;
		model_expire(&red.world[i]);
		if (red.world[i].entry[0].there)
			watch_fail("leftover", "server %d is locked for ever", i);
	}
}
