/* What must be true after every step, whatever went wrong before. */
#include "sim.h"

#include "runner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CALM_US 200000

void check_fail(struct world *world, const char *check, const char *format, ...)
{
	char text[300];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	runner_fail(world->seed, check, text);
}

static int64_t believed(struct client *client, const struct owner *owner, int name)
{
	return hf__lock_remaining(client->lock[name], owner->id, client_now(client), NULL);
}

static struct hf__hold *hold_of_wire(struct client *client, int name, uint64_t wire)
{
	struct hf__list *link;
	hf__list_each (link, &client->lock[name]->holds) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->cmd.wire == wire)
			return hold;
	}
	return NULL;
}

/* Connected, and nothing went wrong for this long. */
static bool calm(const struct client *client, int64_t us)
{
	const struct conn *conn = client->conn;
	return conn && !conn->mute_in && !conn->mute_out && conn->cut_at == HF__NEVER &&
	       client->world->now - client->calm_since >= us;
}

/* ---- belief ---- */

/* The server keeps the lock at least as long as its holder believes, in true time. */
static void check_expiry(struct client *client, struct levels *levels, int name,
                         const struct hf__hold *hold)
{
	struct world *world = client->world;
	const struct entry *entry = &world->entry[name];
	if (levels->wire == hold->cmd.wire && levels->valid_until == hold->valid_until)
		return;
	if (levels->wire == hold->cmd.wire && hold->valid_until < levels->valid_until)
		check_fail(world, "shortened",
		           "client %d: wire %llu was valid until %lld, now %lld", client->index,
		           (unsigned long long)hold->cmd.wire, (long long)levels->valid_until,
		           (long long)hold->valid_until);
	int64_t end = clock_when(&client->clock, hold->valid_until) - 1;
	if (clock_ms(&world->clock, end) >= entry->expires_ms)
		check_fail(world, "validity",
		           "client %d: wire %llu is trusted until %lld, %lld us too long",
		           client->index, (unsigned long long)hold->cmd.wire,
		           (long long)hold->valid_until,
		           (long long)(end - clock_when(&world->clock, entry->expires_ms) + 1));
	levels->wire = hold->cmd.wire;
	levels->valid_until = hold->valid_until;
}

static void check_believer(struct client *client, struct owner *owner, int name, int *believers)
{
	struct world *world = client->world;
	const struct entry *entry = &world->entry[name];
	struct hf__hold *hold = hf__hold_find(client->lock[name], owner->id);
	if (!hold || hold->state != HF__HOLD_HELD)
		check_fail(world, "belief",
		           "client %d: an owner without a hold believes it has one", client->index);
	if (world->wire[hold->cmd.wire].revoked)
		return;
	if (++*believers > 1)
		check_fail(world, "exclusion", "name %d: %d owners believe that they hold it", name,
		           *believers);
	if (!entry->there || entry->client != client->index || entry->wire != hold->cmd.wire)
		check_fail(world, "belief",
		           "client %d: wire %llu is trusted, but the server does not have it",
		           client->index, (unsigned long long)hold->cmd.wire);
	check_expiry(client, &owner->levels[name], name, hold);
}

static void check_name(struct world *world, int name)
{
	int believers = 0;
	for (int i = 0; i < world->clients; i++) {
		struct client *client = &world->client[i];
		for (int j = 0; !client->over && j < client->owners; j++)
			if (believed(client, &client->owner[j], name) > 0)
				check_believer(client, &client->owner[j], name, &believers);
	}
}

/* ---- counts ---- */

static bool calls_on(const struct owner *owner, int name)
{
	for (int i = 0; i < CALLS; i++)
		if (owner->call[i].busy && owner->call[i].name == name)
			return true;
	return false;
}

static void check_levels(struct client *client, struct owner *owner, int name)
{
	struct world *world = client->world;
	const struct levels *levels = &owner->levels[name];
	struct hf__hold *hold = hf__hold_find(client->lock[name], owner->id);
	if (calls_on(owner, name) || levels->lost)
		return;
	int count = hold && hold->state == HF__HOLD_HELD ? hold->count : 0;
	if (count != levels->open)
		check_fail(world, "count", "client %d: %d levels are open, the core counts %d",
		           client->index, levels->open, count);
	if (!count || hf__hold_is_busy(hold))
		return;
	const struct wire *wire = &world->wire[hold->cmd.wire];
	const struct entry *entry = &world->entry[name];
	if (wire->revoked || wire->tainted || wire->doubt || !entry->there ||
	    entry->wire != hold->cmd.wire)
		return;
	if (entry->count != count)
		check_fail(world, "count", "client %d: %d levels are open, the server counts %lld",
		           client->index, count, (long long)entry->count);
}

/* ---- bounds ---- */

static int64_t limit_of(const struct client *client, const struct call *call)
{
	const struct hf__op *op = &call->op;
	int64_t timeout_ms = client->core.config.command_timeout_ms;
	if (op->want.action == HF__OP_ACQUIRE && op->want.wait_ms == 0)
		return call->cancelled_at ? call->cancelled_at + timeout_ms : HF__NEVER;
	int64_t late = op->want.action == HF__OP_ACQUIRE ? HF__LATE_MS : 0;
	int64_t end =
		op->started_at + (op->want.wait_ms > 0 ? op->want.wait_ms : timeout_ms) + late;
	int64_t synced = call->synced_at + 2 * client->core.config.sync_timeout_ms + timeout_ms;
	return call->synced_at && synced > end ? synced : end;
}

static void check_call(struct client *client, struct call *call)
{
	if (!call->op.sync)
		call->synced_at = 0;
	int64_t limit = limit_of(client, call);
	if (limit < HF__NEVER && client_now(client) > limit + 2)
		check_fail(client->world, "bound", "client %d: verb %d is %lld ms past its bound",
		           client->index, call->op.want.action,
		           (long long)(client_now(client) - limit));
}

/* A waiter whose lock is free must be asking; nobody else will wake it. */
static void check_waiter(struct client *client, int name)
{
	struct world *world = client->world;
	const struct entry *entry = &world->entry[name];
	const struct hf__lock *lock = client->lock[name];
	if (entry->there || world->now - entry->free_since < CALM_US || !calm(client, CALM_US) ||
	    hf__list_empty(&lock->queue))
		return;
	const struct hf__op *op = hf__list_item(lock->queue.next, struct hf__op, link);
	if (op->refusal || op->hold->cmd.in_flight || lock->held)
		return;
	/* After a delay it may go by a time to live that it read too late. */
	bool stale = world->now - client->stale_at < LEASE_MAX * 1000;
	if (stale && world->wire[entry->wire].expired)
		return;
	check_fail(world, "waiter", "client %d: sleeps although name %d is free for %lld ms",
	           client->index, name, (long long)((world->now - entry->free_since) / 1000));
}

/* A release that is handed over waits for the command of the hold it goes to. */
static bool is_moving(const struct hf__op *op)
{
	struct hf__list *link;
	if (op->want.action != HF__OP_RELEASE || !op->hold)
		return false;
	hf__list_each (link, &op->lock->holds) {
		const struct hf__cmd *cmd = &hf__list_item(link, struct hf__hold, link)->cmd;
		if (cmd->in_flight && cmd->verb == HF__MOVE && cmd->from == op->hold->cmd.wire)
			return true;
	}
	return false;
}

/* With a connection, every call has a command in flight, a timer, or another call to wait for. */
static void check_stuck(struct client *client, const struct call *call)
{
	const struct hf__op *op = &call->op;
	const struct hf__cmd *cmd = op->query ? &op->query->cmd : op->hold ? &op->hold->cmd : NULL;
	bool queued = !op->query && !hf__list_empty(&op->link);
	if (client->conn && cmd && !cmd->in_flight && !queued &&
	    !hf__wheel_is_running(&op->retry) && !is_moving(op))
		check_fail(client->world, "stuck", "client %d: verb %d waits for nothing",
		           client->index, op->want.action);
}

/* A watch without waiters is ended by its timer. */
static void check_watch(struct client *client, int name)
{
	const struct hf__lock *lock = client->lock[name];
	if (client->watch[name] && !client->closing && hf__list_empty(&lock->queue) &&
	    !hf__wheel_is_running(&lock->watches->timer))
		check_fail(client->world, "watch", "client %d: name %d is watched for nobody",
		           client->index, name);
}

/* What the server has for a client in good health is known to that client. */
static void check_orphan(struct client *client, int name)
{
	struct world *world = client->world;
	const struct entry *entry = &world->entry[name];
	if (!entry->there || entry->client != client->index || !calm(client, CALM_US))
		return;
	const struct wire *wire = &world->wire[entry->wire];
	if (!wire->tainted && !wire->lost && !wire->denied &&
	    !hold_of_wire(client, name, entry->wire))
		check_fail(world, "orphan", "client %d: wire %llu was left on the server",
		           client->index, (unsigned long long)entry->wire);
}

static void check_client(struct client *client)
{
	/* A client that has just been resumed has its turn yet to come. */
	bool awake = !client->paused_until && client->resumed_at < client->world->now;
	for (int i = 0; i < client->owners; i++) {
		for (int j = 0; j < client->world->names && !client->closing; j++)
			check_levels(client, &client->owner[i], j);
		for (int j = 0; j < CALLS && awake; j++)
			if (client->owner[i].call[j].busy) {
				check_call(client, &client->owner[i].call[j]);
				check_stuck(client, &client->owner[i].call[j]);
			}
	}
	for (int i = 0; i < client->world->names && awake; i++) {
		check_waiter(client, i);
		check_orphan(client, i);
		check_watch(client, i);
	}
}

void check_all(struct world *world)
{
	for (int i = 0; i < world->names; i++)
		check_name(world, i);
	for (int i = 0; i < world->clients; i++)
		if (!world->client[i].over)
			check_client(&world->client[i]);
}

/* ---- single events ---- */

static void check_renewals(struct client *client, const struct hf__cmd *cmd)
{
	if (cmd->user == HF__CMD_OF_HOLD) {
		const struct hf__hold *hold = hf__list_item(cmd, const struct hf__hold, cmd);
		if (hold->state != HF__HOLD_HELD && hold->state != HF__HOLD_LOST)
			check_fail(client->world, "renewal",
			           "client %d extends wire %llu in state %d", client->index,
			           (unsigned long long)hold->cmd.wire, hold->state);
		return;
	}
	for (int i = 0; i < HF__RENEWALS; i++) {
		const struct hf__renewal *renewal = &client->core.renewal[i];
		if (&renewal->cmd != cmd)
			continue;
		for (int j = 0; j < renewal->holds; j++)
			if (renewal->hold[j] && renewal->hold[j]->state != HF__HOLD_HELD)
				check_fail(client->world, "renewal",
				           "client %d renews wire %llu in state %d", client->index,
				           (unsigned long long)renewal->hold[j]->cmd.wire,
				           renewal->hold[j]->state);
	}
}

void check_submit(struct client *client, const struct hf__cmd *cmd)
{
	struct world *world = client->world;
	if (client->over || !client->conn)
		check_fail(world, "submit", "client %d sends without a connection", client->index);
	if (cmd->wire >= WIRES || cmd->items > ITEMS)
		check_fail(world, "submit", "too many of something for the simulator");
	if (cmd->verb == HF__RENEW)
		check_renewals(client, cmd);
	if (cmd->verb != HF__ASK && cmd->verb != HF__MOVE)
		return;
	/* A count of 1 may take a free lock, so it must never be asked for a hold. */
	if (cmd->count == 1 &&
	    hf__list_item(cmd, const struct hf__hold, cmd)->state != HF__HOLD_ASKING)
		check_fail(world, "ask", "client %d: wire %llu is held, but asks as if it were not",
		           client->index, (unsigned long long)cmd->wire);
	/* A number that is used again, as one mutant does, begins a new life. */
	struct wire *wire = &world->wire[cmd->wire];
	if (cmd->count == 1 && (wire->released || wire->lost || wire->gave_up))
		*wire = (struct wire){0};
}

static void check_acquired(struct client *client, struct owner *owner, struct call *call)
{
	struct world *world = client->world;
	int result = call->op.result;
	if (result == 0 && believed(client, owner, call->name) <= 0)
		check_fail(world, "grant", "client %d: acquired, but no time is left",
		           client->index);
	int wanted = call->op.want.replicas;
	const struct hf__hold *hold = hf__hold_find(client->lock[call->name], owner->id);
	if (result == 0 && wanted > 0 &&
	    (hold->replicas < wanted ||
	     world->wire[hold->cmd.wire].acknowledged_at[wanted] < call->began_at))
		check_fail(world, "replicas", "client %d: acquired without %d replicas",
		           client->index, wanted);
	if (result == HF_ENOREPLICAS && wanted == 0)
		check_fail(world, "replicas",
		           "client %d: too few replicas, but none were requested", client->index);
	if (result == HF_EBUSY && call->op.want.wait_ms != HF_NOWAIT)
		check_fail(world, "result", "client %d: busy, although it waited", client->index);
	if (result == HF_ETIMEDOUT && call->op.want.wait_ms == 0)
		check_fail(world, "result", "client %d: timed out without a time limit",
		           client->index);
	if (result == HF_ECANCELLED && !call->cancelled_at)
		check_fail(world, "result", "client %d: cancelled, but nobody cancelled it",
		           client->index);
}

static void check_released(struct client *client, struct owner *owner, struct call *call)
{
	struct world *world = client->world;
	const struct levels *levels = &owner->levels[call->name];
	struct wire *wire = &world->wire[call->wire];
	int result = call->op.result;
	bool alone = true;
	for (int i = 0; i < CALLS; i++)
		alone = alone && !owner->call[i].busy;
	if (!alone || result == HF_ECLOSED || result == HF_EBUSY)
		return;
	if (call->lost_before && levels->open > 0 && result != HF_ELOST)
		check_fail(world, "release", "client %d: release of a lost hold answers %d",
		           client->index, result);
	if (result == HF_ENOTHELD && levels->open > 0)
		check_fail(world, "release", "client %d: not held, with %d levels open",
		           client->index, levels->open);
	if (result == 0 && levels->open == 1)
		wire->released = true;
	if (result == 0 && levels->open == 1 && wire->lost)
		check_fail(world, "release", "client %d: wire %llu is lost and released",
		           client->index, (unsigned long long)call->wire);
	if (result == 0 && call->op.number != levels->open - 1)
		check_fail(world, "release", "client %d: %lld levels left of %d", client->index,
		           (long long)call->op.number, levels->open);
}

/* Answers arrive in order, so nothing that is trusted now was granted after the forced release. */
static void check_forced(struct client *client, const struct call *call)
{
	for (int i = 0; i < client->owners && call->op.result == 0 && call->op.number; i++)
		if (believed(client, &client->owner[i], call->name) > 0)
			check_fail(client->world, "forced",
			           "client %d: name %d is trusted after a forced release",
			           client->index, call->name);
}

void check_finish(struct client *client, struct owner *owner, struct call *call)
{
	int verb = call->op.want.action;
	int result = call->op.result;
	struct hf__hold *hold = hf__hold_find(client->lock[call->name], owner->id);
	bool exact = verb == HF__OP_ACQUIRE || verb == HF__OP_RELEASE;
	if (hold && exact)
		client->world->wire[hold->cmd.wire].doubt = result != 0;
	if (result > 0)
		check_fail(client->world, "result", "a call ended with %d", result);
	if (verb == HF__OP_ACQUIRE)
		check_acquired(client, owner, call);
	if (verb == HF__OP_RELEASE)
		check_released(client, owner, call);
	if (verb == HF__OP_FORCE)
		check_forced(client, call);
}

static struct owner *owner_of(struct client *client, uint64_t id)
{
	for (int i = 0; i < client->owners; i++)
		if (client->owner[i].id == id)
			return &client->owner[i];
	check_fail(client->world, "owner", "client %d: an owner that does not exist",
	           client->index);
}

void check_lost(struct client *client, const struct hf__hold *hold)
{
	struct world *world = client->world;
	struct wire *wire = &world->wire[hold->cmd.wire];
	struct owner *owner = owner_of(client, hold->owner);
	int name = link_name(hold->cmd.lock);
	struct levels *levels = &owner->levels[name];
	int64_t patience_us = client->core.config.watchdog_ms * 1000 / 4 + 100000;
	bool timed = hold->reason == HF__LOST_EXPIRED || hold->reason == HF__LOST_UNREACHABLE;
	if (wire->lost || wire->released)
		check_fail(world, "lost", "client %d: wire %llu is lost a second time",
		           client->index, (unsigned long long)hold->cmd.wire);
	wire->lost = true;
	levels->lost = levels->open > 0;
	if (!timed && !wire->revoked && !wire->tainted && !wire->doubt && !wire->expired)
		check_fail(world, "lost", "client %d: wire %llu was taken by nobody", client->index,
		           (unsigned long long)hold->cmd.wire);
	if (timed && levels->watched && !calls_on(owner, name) && !wire->revoked &&
	    calm(client, patience_us))
		check_fail(world, "renewal",
		           "client %d: wire %llu was not renewed although nothing has failed",
		           client->index, (unsigned long long)hold->cmd.wire);
}

void check_reported(struct client *client, const struct hf__hold *hold, hf_state state)
{
	struct world *world = client->world;
	struct wire *wire = &world->wire[hold->cmd.wire];
	if (state != HF_LOST)
		return;
	wire->reported++;
	if (wire->reported > 1 || !wire->lost || wire->released)
		check_fail(world, "report", "client %d: loss of wire %llu is reported wrongly",
		           client->index, (unsigned long long)hold->cmd.wire);
}

/* A close on a good connection removes all its holds. */
void check_closed(struct client *client)
{
	struct world *world = client->world;
	int64_t began = clock_when(&client->clock, client->close_op.started_at);
	if (!client->calm_close || client->calm_since >= began || client->paused_until)
		return;
	for (int i = 0; i < world->names; i++) {
		const struct entry *entry = &world->entry[i];
		const struct wire *wire = &world->wire[entry->wire];
		if (entry->there && entry->client == client->index && !wire->tainted &&
		    !wire->lost && !wire->denied)
			check_fail(world, "close", "client %d: wire %llu outlives its client",
			           client->index, (unsigned long long)entry->wire);
	}
}

void check_freed(struct client *client)
{
	struct world *world = client->world;
	const struct hf__core *core = &client->core;
	bool watches = false;
	for (int i = 0; i < world->names; i++)
		watches = watches || client->watch[i];
	if (core->holds || core->wheel.entries || core->locks.entries || watches ||
	    !hf__list_empty(&core->queries) || !hf__list_empty(&core->unsent))
		check_fail(world, "leftover",
		           "client %d: %u holds, %u timers, %u locks, watches %d are left",
		           client->index, core->holds, core->wheel.entries, core->locks.entries,
		           watches);
}

void check_end(struct world *world)
{
	model_expire(world);
	for (int i = 0; i < world->names; i++)
		if (world->entry[i].there)
			check_fail(world, "leftover", "name %d is locked for ever", i);
	for (uint64_t i = 0; i < world->next_wire && i < WIRES; i++)
		if (world->wire[i].lost && world->wire[i].reported == 0)
			check_fail(world, "report", "the loss of wire %llu was never reported",
			           (unsigned long long)i);
}
