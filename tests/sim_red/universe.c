/*
 * One run: all servers and processes from one seed, the earliest thing first, checks after every
 * step.
 */
#include "red.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPINS    200
#define END_MS   60000
#define EMPTY_MS 20000
#define CLOSE_MS 5000

struct red red;

/* ---- what the links and servers of tests/sim ask for ---- */

int64_t universe_between(int64_t low, int64_t high)
{
	return hf__random_between(&red.random, low, high);
}

int64_t world_between(struct world *world, int64_t low, int64_t high)
{
	(void)world;
	return universe_between(low, high);
}

static void print_line(const struct red_line *line)
{
	const long long *n = line->line.number;
	printf("%11.3f  ", (double)line->line.at / 1000);
	if (line->server >= 0)
		printf("server %d, ", line->server);
	printf(line->line.format, n[0], n[1], n[2], n[3], n[4], n[5]);
	printf("\n");
}

void universe_print_lines(void)
{
	uint64_t first = red.lines > RED_LINES ? red.lines - RED_LINES : 0;
	for (uint64_t i = first; i < red.lines; i++)
		print_line(&red.line[i % RED_LINES]);
}

static void add_line(int server, const struct trace_line *line)
{
	struct red_line *added = &red.line[red.lines++ % RED_LINES];
	*added = (struct red_line){server, *line};
	red.hash = trace_hash(red.hash, line);
	if (red.print)
		print_line(added);
}

void world_trace(struct world *world, const char *format, long long a, long long b, long long c,
                 long long d, long long e, long long f)
{
	add_line((int)(world - red.world),
	         &(struct trace_line){red.now, format, {a, b, c, d, e, f}});
}

void universe_note(const char *format, long long a, long long b, long long c, long long d)
{
	add_line(-1, &(struct trace_line){red.now, format, {a, b, c, d}});
}

int64_t client_now(const struct client *client)
{
	return clock_ms(&client->clock, red.now);
}

int64_t actor_now(const struct process *process)
{
	return clock_ms(&process->clock, red.now);
}

void client_turn(struct client *client)
{
	if (!client->over)
		hf__core_turn(&client->core, client_now(client));
}

/* Some call of some owner of the process is cancelled. */
void client_cancel_some(struct client *client)
{
	struct process *process = &red.process[client->index];
	struct actor *actor = &process->actor[universe_between(0, process->actors - 1)];
	for (int i = 0; i < ASKS; i++)
		if (actor->ask[i].busy && actor->ask[i].cancel)
			actor->ask[i].cancel_at = red.now;
}

void check_submit(struct client *client, const struct hf__cmd *cmd)
{
	if (client->over || !client->conn)
		watch_fail("submit", "process %d sends without a connection", client->index);
	if (cmd->wire >= WIRES || cmd->items > ITEMS)
		watch_fail("submit", "too many of something for the simulator");
}

/* ---- what may happen next ---- */

enum universe_event {
	NOTHING,
	ARRIVE,
	DELIVER,
	CUT,
	TURN,
	PATIENCE,
	CONNECT,
	DISPATCH,
	CLOSE,
	ACT,
	CANCEL,
	CHANGE,
	RESUME,
	KILL,
	FAULT,
	SERVER_UP,
	HEAL
};

struct next {
	int64_t at;
	enum universe_event event;
	struct conn *conn;
	struct node *node;
	struct process *process;
	struct actor *actor;
	struct ask *ask;
	int server;
};

static bool earlier(struct next *next, int64_t at, enum universe_event event)
{
	if (at >= next->at)
		return false;
	*next = (struct next){.at = at < red.now ? red.now : at, .event = event};
	return true;
}

static int64_t turn_at(const struct client *client)
{
	int64_t due = hf__core_due(&client->core);
	if (due <= client_now(client))
		return red.now;
	return due == HF__NEVER ? due : clock_when(&client->clock, due);
}

static int64_t in_at(const struct client *client)
{
	const struct conn *conn = client->conn;
	if (!conn || hf__list_empty(&conn->in))
		return HF__NEVER;
	return hf__list_item(conn->in.next, struct message, link)->at;
}

static void inspect_node(struct next *next, struct node *node)
{
	struct client *client = node->client;
	bool found = earlier(next, in_at(client), DELIVER);
	found |= earlier(next, client->conn ? link_patience(client) : HF__NEVER, PATIENCE);
	found |= earlier(next, turn_at(client), TURN);
	found |= earlier(next, client->conn ? client->conn->cut_at : HF__NEVER, CUT);
	found |= earlier(next, client->connect_at, CONNECT);
	found |= earlier(next, node->dispatch_at, DISPATCH);
	found |= earlier(next, node->close_at, CLOSE);
	if (found)
		next->node = node;
}

static void inspect_actor(struct next *next, struct actor *actor)
{
	if (earlier(next, actor->act_at, ACT))
		next->actor = actor;
	for (int i = 0; i < ASKS; i++)
		if (actor->ask[i].busy && earlier(next, actor->ask[i].cancel_at, CANCEL)) {
			next->actor = actor;
			next->ask = &actor->ask[i];
		}
}

static void inspect_process(struct next *next, struct process *process)
{
	if (process->over)
		return;
	for (int i = 0; i < red.servers; i++)
		if (earlier(next, process->node[i].client->kill_at, KILL))
			next->process = process;
	if (process->paused_until) {
		if (earlier(next, process->paused_until, RESUME))
			next->process = process;
		return;
	}
	for (int i = 0; i < red.servers; i++)
		inspect_node(next, &process->node[i]);
	for (int i = 0; i < process->actors; i++)
		inspect_actor(next, &process->actor[i]);
	if (earlier(next, process->handle_at, CHANGE))
		next->process = process;
}

/* A frozen server reads nothing until it runs again. */
static void inspect_server(struct next *next, int server)
{
	struct world *world = &red.world[server];
	struct hf__list *link;
	hf__list_each (link, &world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		if (hf__list_empty(&conn->out))
			continue;
		int64_t at = hf__list_item(conn->out.next, struct message, link)->at;
		if (at < red.frozen_until[server])
			at = red.frozen_until[server];
		if (earlier(next, at, ARRIVE)) {
			next->conn = conn;
			next->server = server;
		}
	}
	if (world->server_up_at && earlier(next, world->server_up_at, SERVER_UP))
		next->server = server;
	if (earlier(next, red.fault_at[server], FAULT))
		next->server = server;
}

static struct next find_next(void)
{
	struct next next = {.at = HF__NEVER};
	for (int i = 0; i < red.processes; i++)
		inspect_process(&next, &red.process[i]);
	for (int i = 0; i < red.servers; i++)
		inspect_server(&next, i);
	if (!red.ending)
		earlier(&next, red.heal_at, HEAL);
	return next;
}

/* ---- faults ---- */

/* Shorter than a lease, mostly, or longer. */
static int64_t some_outage(void)
{
	static const int64_t most[] = {50000, 500000, 2000000, LEASE_MAX * 2000};
	return 1 + universe_between(0, most[universe_between(0, 3)]);
}

/* The server goes down: its connections close, and what was in flight is lost with them. */
static void take_down(struct world *world, bool empty, int64_t until)
{
	world->restart_wanted = 0;
	world->server_up_at = until;
	model_restart(world, empty);
	for (int i = 0; i < red.processes; i++) {
		struct client *client = &world->client[i];
		if (client->conn)
			client->conn->cut_at = red.now + faults_latency(world);
	}
	link_mute_all(world);
}

static void befall(int server)
{
	struct world *world = &red.world[server];
	int64_t choice = universe_between(0, 9);
	red.fault_at[server] = red.now + universe_between(100000, 3000000);
	red.totals.faults++;
	if (choice < 4)
		red.frozen_until[server] = red.now + some_outage();
	else if (choice < 9)
		take_down(world, choice == 8, red.now + some_outage());
	else if (world->entry[0].there) /* by force, as an operator does it */
		model_run(world, &(struct conn){.live = false},
		          &(struct request){.verb = HF__FORCE});
	universe_note("something befalls server %lld: %lld", server, choice, 0, 0);
}

static void resume(struct process *process)
{
	universe_note("process %lld runs again", process->index, 0, 0, 0);
	process->paused_until = 0;
}

/* A process that has closed one of its clients may need all of the others. */
static bool has_closed_client(void)
{
	for (int i = 0; i < red.processes; i++)
		for (int j = 0; !red.process[i].over && j < red.servers; j++)
			if (red.process[i].node[j].closing)
				return true;
	return false;
}

/* Faults of links end; one of the servers may stay away, as long as the others are enough. */
static void heal(void)
{
	int away = has_closed_client() ? -1 : (int)universe_between(-1, red.servers - 1);
	universe_note("all is well, except for server %lld", away, 0, 0, 0);
	red.ending = true;
	for (int i = 0; i < red.servers; i++) {
		red.world[i].faults.on = false;
		red.world[i].restart_wanted = 0;
		red.fault_at[i] = HF__NEVER;
		red.frozen_until[i] = 0;
		if (i == away)
			take_down(&red.world[i], false, HF__NEVER - 1);
	}
	for (int i = 0; i < red.processes; i++) {
		struct process *process = &red.process[i];
		process->handle_at = HF__NEVER;
		if (process->paused_until)
			resume(process);
		for (int j = 0; j < red.servers; j++) {
			process->node[j].close_at = HF__NEVER;
			process->node[j].client->kill_at = HF__NEVER;
		}
		for (int j = 0; j < process->actors; j++)
			process->actor[j].act_at = red.now;
	}
}

/* What tests/sim does to a client happens to the whole process here. */
static void gather_faults(void)
{
	for (int i = 0; i < red.servers; i++) {
		struct world *world = &red.world[i];
		if (world->restart_wanted)
			take_down(world, world->restart_wanted == 2, red.now + some_outage());
		for (int j = 0; j < red.processes; j++) {
			int64_t until = world->client[j].paused_until;
			if (until > red.process[j].paused_until)
				red.process[j].paused_until = until;
			world->client[j].paused_until = 0;
		}
	}
}

/* ---- processes ---- */

static void drain(struct process *process)
{
	bool more = true;
	while (more) {
		more = false;
		for (int i = 0; i < red.servers; i++)
			while (host_is_waiting(&process->node[i])) {
				host_dispatch(&process->node[i]);
				more = true;
			}
	}
}

/* Frees what is left of it; nothing comes from its links any more. */
static void free_process(struct process *process)
{
	red.current = process;
	process->over = true;
	for (int i = 0; i < red.servers; i++) {
		process->node[i].client->over = true;
		link_forget(process->node[i].client);
		client_unlink(&process->node[i].client->core);
		host_close(&process->node[i]);
	}
	drain(process);
	actor_close_handles(process);
	drain(process);
	actor_free(process);
	for (int i = 0; i < red.servers; i++)
		hf__members_forget(&process->node[i].shell);
	for (int i = 0; i < red.servers; i++) {
		red.totals.grants += process->node[i].client->core.stats.grants;
		red.totals.releases += process->node[i].client->core.stats.releases;
		host_free(&process->node[i]);
	}
}

static void kill_process(struct process *process)
{
	universe_note("process %lld is killed", process->index, 0, 0, 0);
	free_process(process);
}

/* ---- making it happen ---- */

/* A client that is due again and again at the same time would burn a processor. */
static void turn(struct client *client)
{
	bool again = client->last_turn_at == red.now;
	client->spins = again ? client->spins + 1 : 0;
	client->last_turn_at = red.now;
	if (client->spins > SPINS)
		watch_fail("spin", "process %d is due for ever", client->index);
	client_turn(client);
}

static void happen_to_node(struct node *node, enum universe_event event)
{
	struct client *client = node->client;
	switch (event) {
	case DELIVER: link_deliver(client); break;
	case CUT: link_give_up(client, HF_EUNREACHABLE, "cut"); break;
	case PATIENCE: link_give_up(client, HF_EUNREACHABLE, "no answer in time"); break;
	case CONNECT: link_connect(client); break;
	case DISPATCH: host_dispatch(node); break;
	case CLOSE: host_close(node); break;
	default: turn(client);
	}
}

static void happen(const struct next *next)
{
	red.current = next->process ? next->process
	              : next->node  ? next->node->process
	              : next->actor ? next->actor->process
	                            : NULL;
	switch (next->event) {
	case ARRIVE: link_arrive(&red.world[next->server], next->conn); break;
	case ACT: actor_act(next->actor); break;
	case CANCEL: actor_cancel(next->ask); break;
	case CHANGE: actor_change_handles(next->process); break;
	case RESUME: resume(next->process); break;
	case KILL: kill_process(next->process); break;
	case FAULT: befall(next->server); break;
	case SERVER_UP: red.world[next->server].server_up_at = 0; break;
	case HEAL: heal(); break;
	default: happen_to_node(next->node, next->event);
	}
}

/* False if nothing is left to happen. */
static bool step(void)
{
	struct next next = find_next();
	if (next.event == NOTHING && !red.ending)
		return false;
	/* In the end leases may have to expire on their own, on servers that no client talks to. */
	red.now = next.event == NOTHING ? red.now + 100000 : next.at;
	red.totals.steps++;
	for (int i = 0; i < red.servers; i++) {
		red.world[i].now = red.now;
		model_expire(&red.world[i]);
	}
	if (next.event != NOTHING)
		happen(&next);
	gather_faults();
	for (int i = 0; i < red.servers; i++)
		link_sweep(&red.world[i]);
	watch_all();
	return true;
}

/* ---- the run ---- */

static void init_node(struct process *process, int server, int64_t watchdog_ms)
{
	struct node *node = &process->node[server];
	struct client *client = &red.world[server].client[process->index];
	struct hf__core_config config = {.watchdog_ms = watchdog_ms,
	                                 .watchdog_batch = (int)universe_between(1, 6),
	                                 .command_timeout_ms = universe_between(100, 1000)};
	snprintf(config.uuid, sizeof config.uuid, "client-%d", process->index);
	client->world = &red.world[server];
	client->index = process->index;
	client->clock = process->clock;
	hf__list_init(&client->news);
	link_init(client);
	client->kill_at = HF__NEVER;
	hf__core_init(&client->core, &config, hf__random_next(&red.random), client_now(client));
	node->client = client;
	node->process = process;
	node->close_at =
		universe_between(0, 29) ? HF__NEVER : universe_between(red.now, red.heal_at);
	host_init(node);
	if (universe_between(0, 3)) /* the others are lazy */
		client->connect_at = red.now + faults_latency(client->world);
}

static void init_process(int index)
{
	struct process *process = &red.process[index];
	process->index = index;
	process->clock.ppm = universe_between(-9000, 9000);
	process->clock.offset_us = universe_between(1, 1000000000);
	process->handle_at = red.now + universe_between(100000, 3000000);
	int64_t watchdog_ms = universe_between(300, LEASE_MAX);
	for (int i = 0; i < red.servers; i++)
		init_node(process, i, watchdog_ms);
	red.current = process;
	actor_init(process);
}

static void init_server(int index)
{
	struct world *world = &red.world[index];
	world->now = red.now;
	world->clock.offset_us = 5000000;
	world->names = 1;
	world->clients = red.processes;
	world->next_wire = 1;
	world->latency_us = universe_between(0, 3) == 0 ? 0 : universe_between(1, 2000);
	world->own_wake_first = universe_between(0, 1);
	hf__list_init(&world->conns);
	faults_choose(world);
	if (universe_between(0, 1)) /* then whole servers fail, and little else */
		world->faults = (struct faults){.on = true, .cut = 30, .cancel = 50};
	red.fault_at[index] =
		universe_between(0, 2) ? red.now + universe_between(0, 2000000) : HF__NEVER;
}

/* One red lock over all servers, or two that have one server in common. */
static void choose_sets(void)
{
	red.servers = (int)universe_between(3, SERVERS);
	bool two = red.servers == 5 && universe_between(0, 1);
	red.sets = two ? 2 : 1;
	red.set[0].first = 0;
	red.set[0].n = two ? 3 : red.servers;
	red.set[1].first = 2;
	red.set[1].n = two ? 3 : 0;
}

static void init(uint64_t seed, bool print)
{
	struct red *old = &red;
	uint64_t totals[sizeof old->totals / sizeof(uint64_t)];
	memcpy(totals, &red.totals, sizeof totals);
	memset(&red, 0, sizeof red);
	memcpy(&red.totals, totals, sizeof totals);
	red.seed = seed;
	red.print = print;
	red.random.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
	red.now = 1000000;
	red.next_wire = 1;
	red.processes = (int)universe_between(1, PROCESSES);
	red.heal_at = red.now + universe_between(3000000, 12000000);
	choose_sets();
	for (int i = 0; i < red.servers; i++)
		init_server(i);
	for (int i = 0; i < red.processes; i++)
		init_process(i);
}

static bool all_finished(void)
{
	for (int i = 0; i < red.processes; i++)
		for (int j = 0; !red.process[i].over && j < red.process[i].actors; j++)
			if (!red.process[i].actor[j].finished)
				return false;
	return true;
}

static bool all_empty(void)
{
	for (int i = 0; i < red.processes; i++)
		if (!red.process[i].over && !watch_is_empty(&red.process[i]))
			return false;
	return true;
}

static bool all_closed(void)
{
	for (int i = 0; i < red.processes; i++)
		for (int j = 0; !red.process[i].over && j < red.servers; j++)
			if (!red.process[i].node[j].closed)
				return false;
	return true;
}

static void run_until(bool (*is_so)(void), int64_t limit_ms, const char *what)
{
	int64_t until = red.now + limit_ms * 1000;
	while (!is_so())
		if (!step() || red.now > until)
			watch_fail("bound", "%s, although nothing has failed", what);
}

static void close_all(void)
{
	for (int i = 0; i < red.processes; i++) {
		red.current = &red.process[i];
		for (int j = 0; !red.process[i].over && j < red.servers; j++)
			host_close(&red.process[i].node[j]);
	}
}

void universe_run(uint64_t seed, bool print)
{
	init(seed, print);
	while (!red.ending && step())
		;
	run_until(all_finished, END_MS, "an owner does not get the lock");
	for (int i = 0; i < red.servers; i++)
		if (red.world[i].server_up_at)
			red.world[i].server_up_at = red.now;
	run_until(all_empty, EMPTY_MS, "the servers still have what nobody holds");
	close_all();
	run_until(all_closed, CLOSE_MS, "a client does not close");
	red.now += (int64_t)(LEASE_MAX + 2) * 1000;
	watch_end();
	for (int i = 0; i < red.processes; i++)
		if (!red.process[i].over)
			free_process(&red.process[i]);
	for (int i = 0; i < red.servers; i++)
		link_free_all(&red.world[i]);
	red.totals.seeds++;
}
