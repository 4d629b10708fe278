/*
 * Owners: each takes red locks, and now and then one server's lock alone, works, nests, extends and
 * gives up.
 */
#include "red.h"

#include <stdlib.h>
#include <string.h>

#define DEEPEST 4

/* ---- handles ---- */

static struct hf_lock *some_handle(const struct process *process, int set)
{
	int first = (int)universe_between(0, HANDLES - 1);
	for (int i = 0; i < HANDLES; i++)
		if (process->handle[set][(first + i) % HANDLES])
			return process->handle[set][(first + i) % HANDLES];
	return NULL;
}

struct hf__several *actor_several(const struct process *process, int set)
{
	for (int i = 0; i < HANDLES; i++)
		if (process->handle[set][i])
			return process->handle[set][i]->several;
	return NULL;
}

struct hf__whole *actor_whole(const struct actor *actor, int set)
{
	struct hf__several *several = actor_several(actor->process, set);
	return several ? hf__whole_find(several, actor->owner.number) : NULL;
}

static void open_handle(struct process *process, int set, int handle)
{
	struct hf_lock *member[SERVERS];
	for (int i = 0; i < red.set[set].n; i++)
		member[i] = &process->node[red.set[set].first + i].member;
	if (hf_lock_open_red(member, (size_t)red.set[set].n, &process->handle[set][handle]))
		watch_fail("open", "a red lock cannot be opened: %s", hf_error_detail());
}

static void close_handle(struct process *process, int set, int handle)
{
	hf_lock_close(process->handle[set][handle]);
	process->handle[set][handle] = NULL;
}

/* What is open stays open without a handle, and the next one finds it. */
void actor_change_handles(struct process *process)
{
	int set = (int)universe_between(0, red.sets - 1);
	int handle = (int)universe_between(0, HANDLES - 1);
	process->handle_at = red.now + universe_between(10000, 2000000);
	universe_note("process %lld opens or closes handle %lld of lock %lld", process->index,
	              handle, set, 0);
	if (process->handle[set][handle])
		close_handle(process, set, handle);
	else
		open_handle(process, set, handle);
}

void actor_close_handles(struct process *process)
{
	for (int i = 0; i < red.sets; i++)
		for (int j = 0; j < HANDLES; j++)
			if (process->handle[i][j])
				close_handle(process, i, j);
}

/* ---- completions ---- */

static int64_t think_us(void)
{
	static const int64_t most[] = {0, 3000, 50000, 300000, 1500000};
	return universe_between(0, most[universe_between(0, 4)]);
}

static void count_direct(struct actor *actor, const struct ask *ask, int result)
{
	int server = ask->server;
	if (ask->action == HF__OP_ACQUIRE && result == 0) {
		if (actor->direct_wire[server] != red.last_wire)
			actor->direct[server] = 0;
		actor->direct_wire[server] = red.last_wire;
		actor->direct[server]++;
	}
	if (ask->action == HF__OP_RELEASE && result == HF_EBUSY)
		actor->direct[server]++; /* nothing was given up */
}

static void count_red(struct actor *actor, const struct ask *ask, int result)
{
	struct belief *belief = &actor->belief[ask->set];
	if (ask->action == HF__OP_ACQUIRE && ask->was_lost)
		belief->open = 0;
	if (ask->action == HF__OP_ACQUIRE && result == 0)
		belief->open++;
	if (ask->action == HF__OP_RELEASE && result != HF_ENOTHELD && belief->open > 0)
		belief->open--;
}

static void on_done(void *arg, int result, int64_t number, const char *text)
{
	struct ask *ask = arg;
	struct actor *actor = ask->actor;
	(void)number, (void)text;
	universe_note("process %lld: action %lld of lock %lld ends with %lld",
	              actor->process->index, ask->action, ask->set, result);
	if (!ask->busy)
		watch_fail("finish", "a call is completed twice");
	ask->busy = false;
	hf_cancel_free(ask->cancel);
	ask->cancel = NULL;
	if (ask->set < 0)
		count_direct(actor, ask, result);
	else
		count_red(actor, ask, result);
	if (actor->process->over)
		return;
	watch_done(actor, ask, result);
	actor->act_at = red.now + (red.ending ? 0 : think_us());
}

/* ---- calls ---- */

static int count_busy(const struct actor *actor)
{
	int busy = 0;
	for (int i = 0; i < ASKS; i++)
		busy += actor->ask[i].busy;
	return busy;
}

bool actor_is_idle(const struct actor *actor)
{
	return count_busy(actor) == 0;
}

static struct ask *new_ask(struct actor *actor, enum hf__op_action action, int set, int server)
{
	struct ask *ask = NULL;
	actor->mixed = actor->mixed || !actor_is_idle(actor);
	for (int i = 0; i < ASKS && !ask; i++)
		ask = actor->ask[i].busy ? NULL : &actor->ask[i];
	*ask = (struct ask){.actor = actor,
	                    .busy = true,
	                    .action = action,
	                    .set = set,
	                    .server = server,
	                    .started_at = red.now,
	                    .cancel_at = HF__NEVER};
	bool twice = !red.ending && universe_between(0, 9) == 0;
	actor->act_at = twice ? red.now + universe_between(0, 100000) : HF__NEVER;
	return ask;
}

/* A call that could not even be started is over at once. */
static void check_started(struct ask *ask, int rc)
{
	if (rc)
		on_done(ask, rc, 0, NULL);
}

static void acquire(struct actor *actor, struct hf_lock *lock, int set, int server, int64_t wait_ms,
                    int64_t lease_ms)
{
	struct ask *ask = new_ask(actor, HF__OP_ACQUIRE, set, server);
	ask->wait_ms = wait_ms;
	ask->was_lost = set >= 0 && hf_lock_state(lock, &actor->owner) == HF_LOST;
	if (!red.ending && universe_between(0, 9) == 0) {
		if (hf_cancel_new(&ask->cancel))
			abort();
		ask->cancel_at = red.now + universe_between(0, 500000);
	}
	universe_note("process %lld acquires lock %lld, waits %lld, lease %lld",
	              actor->process->index, set, wait_ms, lease_ms);
	check_started(ask, hf_lock_acquire_async(
				   lock,
				   HF_ACQUIRE(.wait_ms = wait_ms, .lease_ms = lease_ms,
	                                      .owner = &actor->owner, .cancel = ask->cancel),
				   on_done, ask));
}

static void release(struct actor *actor, struct hf_lock *lock, int set, int server)
{
	struct ask *ask = new_ask(actor, HF__OP_RELEASE, set, server);
	int64_t wait_ms = universe_between(0, 4) ? 0 : universe_between(1, 200);
	universe_note("process %lld releases lock %lld of server %lld", actor->process->index, set,
	              server, 0);
	check_started(ask, hf_lock_release_async(
				   lock, HF_RELEASE(.owner = &actor->owner, .wait_ms = wait_ms),
				   on_done, ask));
}

static void query(struct actor *actor, struct hf_lock *lock, int set)
{
	struct ask *ask = new_ask(actor, HF__OP_QUERY, set, -1);
	if (universe_between(0, 1))
		check_started(ask, hf_lock_hold_count_async(lock, &actor->owner, on_done, ask));
	else
		check_started(ask, hf_lock_is_locked_async(lock, on_done, ask));
}

static void extend(struct actor *actor, struct hf_lock *lock, int set)
{
	struct ask *ask = new_ask(actor, HF__OP_EXTEND, set, -1);
	int64_t lease_ms = universe_between(HF__LEAST_LEASE, LEASE_MAX);
	check_started(ask, hf_lock_extend_async(lock, &actor->owner, lease_ms, on_done, ask));
}

/* ---- what to do ---- */

static bool has_something(const struct actor *actor)
{
	bool has = false;
	for (int i = 0; i < SERVERS; i++)
		has = has || actor->direct[i] > 0;
	for (int i = 0; i < red.sets; i++)
		has = has || actor_whole(actor, i);
	return has;
}

/*
 * An owner that holds something, or asks for it, never waits for ever for something else: that
 * could be a deadlock.
 */
static int64_t some_wait(const struct actor *actor)
{
	int64_t choice = universe_between(0, 9);
	if (choice < 3)
		return HF_NOWAIT;
	if (choice < 5 && !has_something(actor) && actor_is_idle(actor))
		return 0;
	return universe_between(1, 2000);
}

static int64_t some_lease(void)
{
	static const int64_t most[] = {0, 0, 0, 0, 1000, LEASE_MAX};
	int64_t choice = universe_between(0, 5);
	return most[choice] ? universe_between(200, most[choice]) : 0;
}

/* Gives a level of the server's lock up, if it is still of the hold that it was taken of. */
static bool leave_direct(struct actor *actor, int server)
{
	const struct node *node = &actor->process->node[server];
	const struct hf__hold *hold = hf__hold_find(node->client->lock[0], actor->owner.number);
	if (actor->direct[server] == 0)
		return false;
	if (!hold || hold->state != HF__HOLD_HELD || node->closing ||
	    hold->cmd.wire != actor->direct_wire[server]) {
		actor->direct[server] = 0;
		return false;
	}
	actor->direct[server]--;
	release(actor, &actor->process->node[server].member, -1, server);
	return true;
}

static void act_directly(struct actor *actor)
{
	int server = (int)universe_between(0, red.servers - 1);
	if (actor->direct[server] > 0 && universe_between(0, 2))
		(void)(leave_direct(actor, server) || (actor->act_at = red.now + think_us()));
	else if (actor->direct[server] < 2)
		acquire(actor, &actor->process->node[server].member, -1, server,
		        universe_between(0, 1) ? HF_NOWAIT : universe_between(1, 500),
		        some_lease());
	else
		actor->act_at = red.now + think_us();
}

static void act_on_held(struct actor *actor, struct hf_lock *lock, int set, int32_t levels)
{
	int64_t choice = universe_between(0, 19);
	if (choice < 6 && levels < DEEPEST)
		acquire(actor, lock, set, -1, some_wait(actor), some_lease());
	else if (choice < 8)
		extend(actor, lock, set);
	else if (choice < 9)
		query(actor, lock, set);
	else if (choice < 12)
		actor->act_at = red.now + think_us();
	else
		release(actor, lock, set, -1);
}

static void act_on_free(struct actor *actor, struct hf_lock *lock, int set)
{
	int64_t choice = universe_between(0, 19);
	if (choice == 0)
		query(actor, lock, set);
	else if (choice == 1 && !has_something(actor))
		release(actor, lock, set, -1); /* of a lock that it does not hold */
	else
		acquire(actor, lock, set, -1, some_wait(actor), some_lease());
}

/* ---- the end: everything is given back, and the lock is had once more ---- */

/* Enough servers can be reached by this process. */
static bool has_quorum(const struct process *process, int set)
{
	int there = 0;
	for (int i = 0; i < red.set[set].n; i++) {
		int server = red.set[set].first + i;
		there += !process->node[server].closing && !red.world[server].server_up_at;
	}
	return there >= red.set[set].n / 2 + 1;
}

/* A member that is to be taken again, and can be, has not been yet. */
static bool waits_for_member(const struct actor *actor, int set)
{
	const struct hf__whole *whole = actor_whole(actor, set);
	for (int i = 0; whole && !whole->lost && whole->levels > 0 && i < red.set[set].n; i++) {
		int server = red.set[set].first + i;
		if (whole->stake[i].wanted && !actor->process->node[server].closing &&
		    !red.world[server].server_up_at)
			return true;
	}
	return false;
}

static bool leave_all(struct actor *actor)
{
	for (int i = 0; i < red.servers; i++)
		if (leave_direct(actor, i))
			return true;
	for (int i = 0; i < red.sets; i++) {
		struct hf_lock *lock = some_handle(actor->process, i);
		if (hf_lock_state(lock, &actor->owner) == HF_FREE)
			continue;
		if (waits_for_member(actor, i))
			actor->act_at = red.now + 50000;
		else
			release(actor, lock, i, -1);
		return true;
	}
	return false;
}

static void act_at_end(struct actor *actor)
{
	struct process *process = actor->process;
	for (int i = 0; i < red.sets; i++)
		if (!actor_several(process, i))
			open_handle(process, i, 0);
	/*
	 * A call that waits for ever, perhaps for a lock that is held here, does not keep that lock
	 * from being released.
	 */
	if (count_busy(actor) == ASKS || leave_all(actor) || !actor_is_idle(actor))
		return;
	if (!actor->asked && has_quorum(process, 0))
		acquire(actor, some_handle(process, 0), 0, -1, 0, 0);
	else
		actor->finished = true;
	actor->asked = true;
}

void actor_act(struct actor *actor)
{
	actor->act_at = HF__NEVER;
	if (red.ending) {
		act_at_end(actor);
		return;
	}
	int set = (int)universe_between(0, red.sets - 1);
	struct hf_lock *lock = some_handle(actor->process, set);
	const struct hf__whole *whole = actor_whole(actor, set);
	if (count_busy(actor) == ASKS)
		return;
	if (!lock)
		actor->act_at = red.now + think_us();
	else if (universe_between(0, 4) == 0)
		act_directly(actor);
	else if (whole && whole->levels > 0)
		act_on_held(actor, lock, set, whole->levels);
	else
		act_on_free(actor, lock, set);
}

void actor_cancel(struct ask *ask)
{
	ask->cancel_at = HF__NEVER;
	if (ask->busy && ask->cancel)
		hf_cancel_fire(ask->cancel);
}

/* ---- life ---- */

void actor_init(struct process *process)
{
	process->actors = (int)universe_between(1, ACTORS);
	for (int i = 0; i < process->actors; i++) {
		struct actor *actor = &process->actor[i];
		actor->process = process;
		actor->owner.number = (uint64_t)(process->index * ACTORS + i + 1);
		actor->act_at = red.now + universe_between(0, 200000);
	}
	for (int i = 0; i < red.sets; i++)
		for (int j = 0; j < HANDLES; j++)
			open_handle(process, i, j);
}

void actor_free(struct process *process)
{
	for (int i = 0; i < process->actors; i++)
		for (int j = 0; j < ASKS; j++)
			if (process->actor[i].ask[j].busy)
				watch_fail("finish", "process %d: a call was never completed",
				           process->index);
}
