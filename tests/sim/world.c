/* One run: everything from one seed, the earliest thing first, checks after every step. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPINS    100
#define END_MS   20000
#define CLOSE_MS 3000

int64_t world_between(struct world *world, int64_t low, int64_t high)
{
	return hf__random_between(&world->random, low, high);
}

void world_print_line(const struct trace_line *line)
{
	const long long *n = line->number;
	printf("%11.3f  ", (double)line->at / 1000);
	printf(line->format, n[0], n[1], n[2], n[3], n[4], n[5]);
	printf("\n");
}

void world_trace(struct world *world, const char *format, long long a, long long b, long long c,
                 long long d, long long e, long long f)
{
	struct trace_line *line = &world->line[world->lines++ % TRACE_LINES];
	*line = (struct trace_line){world->now, format, {a, b, c, d, e, f}};
	world->hash = trace_hash(world->hash, line);
	if (world->print)
		world_print_line(line);
}

/* ---- what may happen next ---- */

enum world_event {
	NOTHING,
	ARRIVE,
	DELIVER,
	DELIVER_SYNC,
	CUT,
	CUT_SYNC,
	TURN,
	PATIENCE,
	CONNECT,
	NEWS,
	ACT,
	CANCEL,
	CLOSE,
	KILL,
	RESUME,
	SERVER_UP,
	HEAL
};

struct next {
	int64_t at;
	enum world_event event;
	struct conn *conn;
	struct client *client;
	struct owner *owner;
	struct call *call;
};

static bool earlier(struct next *next, int64_t at, enum world_event event)
{
	if (at >= next->at)
		return false;
	next->at = at;
	next->event = event;
	return true;
}

static void inspect_owner(struct next *next, struct client *client, struct owner *owner)
{
	bool found = earlier(next, owner->act_at, ACT);
	if (found)
		next->call = NULL;
	for (int i = 0; i < CALLS; i++) {
		if (!owner->call[i].busy || !earlier(next, owner->call[i].cancel_at, CANCEL))
			continue;
		next->call = &owner->call[i];
		found = true;
	}
	if (!found)
		return;
	next->owner = owner;
	next->client = client;
}

static int64_t in_at(const struct conn *conn)
{
	if (!conn || hf__list_empty(&conn->in))
		return HF__NEVER;
	return hf__list_item(conn->in.next, struct message, link)->at;
}

static int64_t turn_at(const struct client *client)
{
	int64_t due = hf__core_due(&client->core);
	if (due <= client_now(client))
		return client->world->now;
	return due == HF__NEVER ? due : clock_when(&client->clock, due);
}

static void inspect_client(struct next *next, struct client *client)
{
	bool found = false;
	if (client->over)
		return;
	found |= earlier(next, client->kill_at, KILL);
	if (client->paused_until) {
		found |= earlier(next, client->paused_until, RESUME);
	} else {
		if (!client->timers_first)
			found |= earlier(next, in_at(client->conn), DELIVER);
		found |= earlier(next, client->conn ? link_patience(client) : HF__NEVER, PATIENCE);
		found |= earlier(next, turn_at(client), TURN);
		found |= earlier(next, in_at(client->conn), DELIVER);
		found |= earlier(next, in_at(client->sync), DELIVER_SYNC);
		found |= earlier(next, client->conn ? client->conn->cut_at : HF__NEVER, CUT);
		found |= earlier(next, client->sync ? client->sync->cut_at : HF__NEVER, CUT_SYNC);
		found |= earlier(next, client->sync ? link_patience_sync(client) : HF__NEVER,
		                 CUT_SYNC);
		found |= earlier(next, client->connect_at, CONNECT);
		found |= earlier(next, client->news_at, NEWS);
		found |= earlier(next, client->close_at, CLOSE);
		for (int i = 0; i < client->owners; i++)
			inspect_owner(next, client, &client->owner[i]);
	}
	if (found && !(next->client == client))
		next->client = client;
}

static struct next find_next(struct world *world)
{
	struct next next = {.at = HF__NEVER};
	struct hf__list *link;
	for (int i = 0; i < world->clients; i++)
		inspect_client(&next, &world->client[i]);
	hf__list_each (link, &world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		if (hf__list_empty(&conn->out))
			continue;
		if (earlier(&next, hf__list_item(conn->out.next, struct message, link)->at, ARRIVE))
			next.conn = conn;
	}
	if (world->server_up_at)
		earlier(&next, world->server_up_at, SERVER_UP);
	if (!world->ending)
		earlier(&next, world->heal_at, HEAL);
	return next;
}

/* ---- making it happen ---- */

/* The server goes down: its connections close, and what was in flight is lost with them. */
static void restart_server(struct world *world)
{
	bool empty = world->restart_wanted == 2;
	world->restart_wanted = 0;
	world->server_up_at = world->now + 1 + world_between(world, 0, 300000);
	model_restart(world, empty);
	for (int i = 0; i < world->clients; i++) {
		struct client *client = &world->client[i];
		client->calm_since = world->now;
		if (client->conn)
			client->conn->cut_at = world->now + faults_latency(world);
		if (client->sync)
			client->sync->cut_at = world->now + faults_latency(world);
	}
	link_mute_all(world);
}

static void resume(struct client *client)
{
	struct world *world = client->world;
	world_trace(world, "client %lld: runs again", client->index, 0, 0, 0, 0, 0);
	client->paused_until = 0;
	client->resumed_at = world->now;
	if (client->stale_at < world->now)
		client->stale_at = world->now;
	if (client->calm_since < world->now)
		client->calm_since = world->now;
	client->timers_first = world_between(world, 0, 1);
}

static void heal(struct world *world)
{
	world_trace(world, "all faults are healed", 0, 0, 0, 0, 0, 0);
	world->ending = true;
	world->faults.on = false;
	world->restart_wanted = 0;
	for (int i = 0; i < world->clients; i++) {
		struct client *client = &world->client[i];
		if (client->over)
			continue;
		client->kill_at = HF__NEVER;
		if (client->calm_since < world->now)
			client->calm_since = world->now;
		if (client->paused_until)
			resume(client);
		for (int j = 0; j < client->owners; j++)
			client->owner[j].act_at = world->now;
	}
}

/* A client that is due again and again at the same time would burn a processor. */
static void turn(struct client *client)
{
	struct world *world = client->world;
	bool again = client->last_turn_at == world->now;
	client->spins = again ? client->spins + 1 : 0;
	client->last_turn_at = world->now;
	if (client->spins > SPINS)
		check_fail(world, "spin", "client %d is due for ever at %lld", client->index,
		           (long long)hf__core_due(&client->core));
	client_turn(client);
}

static void happen(struct world *world, const struct next *next)
{
	struct client *client = next->client;
	switch (next->event) {
	case ARRIVE: link_arrive(world, next->conn); break;
	case DELIVER: link_deliver(client); break;
	case DELIVER_SYNC: link_deliver_sync(client); break;
	case CUT_SYNC: link_give_up_sync(client); break;
	case CUT: link_give_up(client, HF_EUNREACHABLE, "cut"); break;
	case TURN: turn(client); break;
	case PATIENCE: link_give_up(client, HF_EUNREACHABLE, "no answer in time"); break;
	case CONNECT: link_connect(client); break;
	case NEWS: client_report_news(client); break;
	case ACT: client_act(client, next->owner); break;
	case CANCEL: client_cancel(client, next->call); break;
	case CLOSE: client_close(client); break;
	case KILL: client_kill(client); break;
	case RESUME: resume(client); break;
	case SERVER_UP: world->server_up_at = 0; break;
	case HEAL: heal(world); break;
	default: break;
	}
}

/* False if nothing is left to happen. */
static bool step(struct world *world)
{
	struct next next = find_next(world);
	if (next.event == NOTHING)
		return false;
	if (next.at > world->now)
		world->now = next.at;
	world->totals.steps++;
	model_expire(world);
	happen(world, &next);
	if (world->restart_wanted)
		restart_server(world);
	for (int i = 0; i < world->clients; i++)
		if (world->client[i].closed && !world->client[i].over)
			client_free(&world->client[i]);
	link_sweep(world);
	check_all(world);
	return true;
}

/* ---- the run ---- */

static void init_world(struct world *world, uint64_t seed, bool print)
{
	struct totals totals = world->totals;
	memset(world, 0, sizeof(*world));
	world->totals = totals;
	world->seed = seed;
	world->print = print;
	world->random.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
	world->now = 1000000;
	world->clock.offset_us = 5000000;
	world->next_wire = 1;
	hf__list_init(&world->conns);
	world->clients = (int)world_between(world, 2, CLIENTS);
	world->names = (int)world_between(world, 1, NAMES);
	world->heal_at = world->now + world_between(world, 3000000, 10000000);
	world->latency_us = world_between(world, 0, 3) == 0 ? 0 : world_between(world, 1, 2000);
	world->own_wake_first = world_between(world, 0, 1);
	world->replicas = world_between(world, 0, 1) ? (int)world_between(world, 1, REPLICAS) : 0;
	faults_choose(world);
	for (int i = 0; i < world->clients; i++)
		client_init(world, i);
}

static bool all_idle(const struct world *world)
{
	for (int i = 0; i < world->clients; i++) {
		const struct client *client = &world->client[i];
		if (!client->over && !client->closing && !client_idle(client))
			return false;
	}
	return true;
}

static bool all_over(const struct world *world)
{
	for (int i = 0; i < world->clients; i++)
		if (!world->client[i].over)
			return false;
	return true;
}

void world_run(struct world *world, uint64_t seed, bool print)
{
	init_world(world, seed, print);
	while (!world->ending && step(world))
		;
	while (!all_idle(world)) {
		if (!step(world) || world->now > world->heal_at + END_MS * 1000)
			check_fail(world, "bound",
			           "a call did not end although nothing has failed");
	}
	int64_t close_at = world->now;
	for (int i = 0; i < world->clients; i++)
		if (!world->client[i].over && !world->client[i].closing)
			client_close(&world->client[i]);
	while (!all_over(world)) {
		if (!step(world) || world->now > close_at + CLOSE_MS * 1000)
			check_fail(world, "bound",
			           "a client did not close although nothing has failed");
	}
	while (!hf__list_empty(&world->conns) && step(world))
		;
	world->now += (int64_t)(LEASE_MAX + 2) * 1000;
	check_end(world);
	link_free_all(world);
	world->totals.seeds++;
}
