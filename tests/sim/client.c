/* The host of one core, and its owners: each acts, waits, works and gives up at random. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

#define DEEPEST 5

int64_t client_now(const struct client *client)
{
	return clock_ms(&client->clock, client->world->now);
}

void client_turn(struct client *client)
{
	if (client->over)
		return;
	hf__core_turn(&client->core, client_now(client));
}

/* ---- what the core calls ---- */

static int64_t think_us(struct world *world)
{
	static const int64_t most[] = {0, 3000, 50000, 200000, 1000000};
	int64_t choice = world_between(world, 0, 4);
	return world_between(world, 0, most[choice]);
}

static void count_level(struct levels *levels, const struct hf__op *op)
{
	if (op->want.action == HF__OP_ACQUIRE && op->result == 0) {
		if (levels->lost)
			*levels = (struct levels){0};
		if (op->want.lease_ms == 0)
			levels->watched |= 1u << levels->open;
		levels->open++;
	}
	/* A new attempt ended what was left of the lost hold. */
	if (op->want.action == HF__OP_ACQUIRE && op->result != HF_ELOST && levels->lost)
		*levels = (struct levels){0};
	if (op->want.action != HF__OP_RELEASE || levels->open == 0)
		return;
	if (op->result == HF_ENOTHELD && levels->lost)
		*levels = (struct levels){0};
	if (op->result == HF_ENOTHELD || op->result == HF_EBUSY)
		return;
	levels->open--;
	levels->watched &= (1u << levels->open) - 1;
	if (levels->open == 0)
		*levels = (struct levels){0};
}

static void finish_call(struct client *client, struct call *call)
{
	struct world *world = client->world;
	struct owner *owner = &client->owner[call->owner];
	world_trace(world,
	            "client %lld: owner %lld verb %lld name %lld ends with %lld, number %lld",
	            client->index, call->owner, call->op.want.action, call->name, call->op.result,
	            call->op.number);
	if (!call->busy)
		check_fail(world, "finish", "a call of client %d finished twice", client->index);
	call->busy = false;
	call->cancel_at = HF__NEVER;
	if (client->over)
		return;
	check_finish(client, owner, call);
	count_level(&owner->levels[call->name], &call->op);
	owner->act_at = world->now + (world->ending ? 0 : think_us(world));
}

static void on_finish(void *host, struct hf__op *op)
{
	struct client *client = host;
	if (op != &client->close_op) {
		finish_call(client, hf__list_item(op, struct call, op));
		return;
	}
	world_trace(client->world, "client %lld: closed", client->index, 0, 0, 0, 0, 0);
	if (client->closed)
		check_fail(client->world, "finish", "client %d closed twice", client->index);
	client->closed = true;
	if (!client->over)
		check_closed(client);
}

static void on_news(void *host, struct hf__hold *hold)
{
	struct client *client = host;
	struct world *world = client->world;
	if (client->over)
		return;
	if (hold->state == HF__HOLD_LOST)
		check_lost(client, hold);
	if (hf__list_empty(&hold->news))
		hf__list_add(&client->news, &hold->news);
	if (client->news_at == HF__NEVER)
		client->news_at = world->now + world_between(world, 0, 20000);
}

static void log_line(void *host, hf_log_level level, const char *line)
{
	struct client *client = host;
	if (client->world->print)
		printf("%12s client %d logs (%d): %s\n", "", client->index, level, line);
}

static uint64_t new_numbers(void *host, uint32_t n)
{
	struct client *client = host;
	uint64_t first = client->world->next_wire;
	client->world->next_wire += n;
	return first;
}

/* There are no threads here, so nothing needs to be woken. */
static void on_listen(void *host, struct hf__op *op)
{
	(void)host;
	(void)op;
}

static const struct hf__host_ops host_ops = {.on_finish = on_finish,
                                             .on_listen = on_listen,
                                             .on_idle = on_listen,
                                             .on_news = on_news,
                                             .log = log_line,
                                             .new_numbers = new_numbers};

void client_report_news(struct client *client)
{
	client->news_at = HF__NEVER;
	while (!hf__list_empty(&client->news)) {
		struct hf__hold *hold = hf__list_item(client->news.next, struct hf__hold, news);
		hf_state state;
		hf__list_remove(&hold->news);
		while (hf__hold_next_news(hold, &state))
			check_reported(client, hold, state);
		hf__hold_end_news(&client->core, hold);
	}
}

/* ---- calls ---- */

static struct call *free_call(struct owner *owner)
{
	for (int i = 0; i < CALLS; i++)
		if (!owner->call[i].busy)
			return &owner->call[i];
	return NULL;
}

static void start_want(struct client *client, struct owner *owner, int name, struct hf__want want)
{
	struct world *world = client->world;
	struct call *call = free_call(owner);
	struct levels *levels = &owner->levels[name];
	struct hf__hold *hold = hf__hold_find(client->lock[name], owner->id);
	*call = (struct call){
		.busy = true,
		.owner = (int)(owner - client->owner),
		.name = name,
		.wire = hold ? hold->cmd.wire : 0,
		.lost_before = levels->lost,
		.cancel_at = HF__NEVER,
		.began_at = world->now,
	};
	bool as_another = want.action == HF__OP_FORCE && world_between(world, 0, 1) == 0;
	call->op.lock = as_another ? client->alias[name] : client->lock[name];
	call->op.want = want;
	call->op.want.owner = owner->id;
	world_trace(world, "client %lld: owner %lld verb %lld name %lld wait %lld lease %lld",
	            client->index, call->owner, want.action, name, want.wait_ms, want.lease_ms);
	if (want.action == HF__OP_ACQUIRE && levels->lost)
		*levels = (struct levels){0};
	bool twice = world_between(world, 0, 9) == 0;
	owner->act_at = twice ? world->now + world_between(world, 0, 100000) : HF__NEVER;
	if (want.action == HF__OP_ACQUIRE && world_between(world, 0, 14) == 0)
		call->cancel_at = world->now + world_between(world, 0, 500000);
	hf__core_start(&client->core, &call->op, client_now(client));
}

static void start_call(struct client *client, struct owner *owner, uint8_t action, int name,
                       int64_t wait_ms, int64_t lease_ms)
{
	start_want(client, owner, name,
	           (struct hf__want){.action = action, .wait_ms = wait_ms, .lease_ms = lease_ms});
}

static int64_t some_lease(struct world *world)
{
	static const int64_t most[] = {0, 0, 0, 100, 1000, LEASE_MAX};
	int64_t choice = world_between(world, 0, 5);
	return most[choice] ? world_between(world, HF__LEAST_LEASE, most[choice]) : 0;
}

static int open_levels(const struct owner *owner)
{
	int open = 0;
	for (int i = 0; i < NAMES; i++)
		open += owner->levels[i].open;
	return open;
}

static bool has_acquire(const struct owner *owner)
{
	for (int i = 0; i < CALLS; i++)
		if (owner->call[i].busy && owner->call[i].op.want.action == HF__OP_ACQUIRE)
			return true;
	return false;
}

/*
 * An owner that holds something never waits for ever for something else: that could be a deadlock.
 */
static void acquire(struct client *client, struct owner *owner, int name)
{
	struct world *world = client->world;
	int64_t choice = world_between(world, 0, 9);
	int64_t wait_ms = world_between(world, 1, 1500);
	bool patient = open_levels(owner) == 0 && !has_acquire(owner);
	if (choice < 2)
		wait_ms = HF_NOWAIT;
	else if (choice < 6 && patient)
		wait_ms = 0;
	struct hf__want want = {
		.action = HF__OP_ACQUIRE, .wait_ms = wait_ms, .lease_ms = some_lease(world)};
	if (world->replicas)
		want.replicas = (int16_t)world_between(world, 0, world->replicas);
	start_want(client, owner, name, want);
}

static void query(struct client *client, struct owner *owner, int name)
{
	int64_t choice = world_between(client->world, 0, HF__QUERY_HOLDER + 1);
	struct hf__want want = {.action = HF__OP_QUERY, .question = (uint8_t)choice};
	if (choice > HF__QUERY_HOLDER)
		want = (struct hf__want){.action = HF__OP_PING};
	start_want(client, owner, name, want);
}

static void release(struct client *client, struct owner *owner, int name)
{
	struct world *world = client->world;
	bool hurry = world_between(world, 0, 4) == 0;
	int64_t wait_ms = hurry ? world_between(world, 1, 200) : 0;
	start_call(client, owner, HF__OP_RELEASE, name, wait_ms, 0);
}

static void act_on_held(struct client *client, struct owner *owner, int name)
{
	struct world *world = client->world;
	int64_t choice = world_between(world, 0, 19);
	if (choice < 4 && owner->levels[name].open < DEEPEST)
		acquire(client, owner, name);
	else if (choice < 6)
		start_call(client, owner, HF__OP_EXTEND, name, 0,
		           world_between(world, HF__LEAST_LEASE, LEASE_MAX));
	else if (choice < 8)
		query(client, owner, name);
	else if (choice < 9)
		owner->act_at = world->now + think_us(world);
	else
		release(client, owner, name);
}

static void act_on_free(struct client *client, struct owner *owner, int name)
{
	struct world *world = client->world;
	int64_t choice = world_between(world, 0, 19);
	if (faults_happens(world, client, world->faults.force))
		start_call(client, owner, HF__OP_FORCE, name, 0, 0);
	else if (choice == 0)
		query(client, owner, name);
	else if (choice == 1)
		release(client, owner, name); /* of a lock that it does not hold */
	else
		acquire(client, owner, name);
}

static int held_name(const struct owner *owner)
{
	for (int i = 0; i < NAMES; i++)
		if (owner->levels[i].open > 0)
			return i;
	return -1;
}

static bool releases(const struct owner *owner)
{
	for (int i = 0; i < CALLS; i++)
		if (owner->call[i].busy && owner->call[i].op.want.action == HF__OP_RELEASE)
			return true;
	return false;
}

static void act_at_end(struct client *client, struct owner *owner)
{
	int name = held_name(owner);
	if (name >= 0 && !releases(owner))
		start_call(client, owner, HF__OP_RELEASE, name, 0, 0);
}

void client_act(struct client *client, struct owner *owner)
{
	struct world *world = client->world;
	owner->act_at = HF__NEVER;
	if (client->closing || !free_call(owner))
		return;
	if (world->ending) {
		act_at_end(client, owner);
		client_turn(client);
		return;
	}
	int held = held_name(owner);
	int name = (int)world_between(world, 0, world->names - 1);
	bool stay = world_between(world, 0, 3) != 0;
	if (held >= 0 && stay)
		name = held;
	if (owner->levels[name].open > 0)
		act_on_held(client, owner, name);
	else
		act_on_free(client, owner, name);
	client_turn(client);
}

void client_cancel(struct client *client, struct call *call)
{
	call->cancel_at = HF__NEVER;
	if (!call->busy)
		return;
	world_trace(client->world, "client %lld: owner %lld cancels", client->index, call->owner, 0,
	            0, 0, 0);
	call->cancelled_at = client_now(client);
	hf__core_cancel(&client->core, &call->op, client_now(client));
	client_turn(client);
}

void client_cancel_some(struct client *client)
{
	struct world *world = client->world;
	int64_t which = world_between(world, 0, client->owners - 1);
	for (int i = 0; i < CALLS; i++) {
		struct call *call = &client->owner[which].call[i];
		if (call->busy && call->op.want.action == HF__OP_ACQUIRE)
			call->cancel_at = world->now;
	}
}

/* ---- life ---- */

static int64_t some_rate(struct world *world)
{
	static const int64_t edge[] = {-10000, -9900, 10000, 0};
	int64_t choice = world_between(world, 0, 4);
	return choice < 4 ? edge[choice] : world_between(world, -10000, 10000);
}

static void init_owners(struct client *client)
{
	struct world *world = client->world;
	client->owners = (int)world_between(world, 1, OWNERS);
	for (int i = 0; i < client->owners; i++) {
		client->owner[i].id = world->next_wire++;
		client->owner[i].act_at = world->now + world_between(world, 0, 200000);
		for (int j = 0; j < CALLS; j++)
			client->owner[i].call[j].cancel_at = HF__NEVER;
	}
}

void client_init(struct world *world, int index)
{
	struct client *client = &world->client[index];
	struct hf__core_config config = {.watchdog_batch = (int)world_between(world, 1, 6)};
	config.command_timeout_ms = world_between(world, 100, 1000);
	config.watchdog_ms = world_between(world, 300, LEASE_MAX);
	config.sync_timeout_ms = world_between(world, 20, 300);
	config.history = index % 2; /* then a loss is followed by a command */
	snprintf(config.uuid, sizeof config.uuid, "client-%d", index);
	client->world = world;
	client->index = index;
	client->clock.ppm = some_rate(world);
	client->clock.offset_us = world_between(world, 1, 1000000000);
	hf__list_init(&client->news);
	link_init(client);
	client->news_at = HF__NEVER;
	client->kill_at = HF__NEVER;
	client->close_at = HF__NEVER;
	uint64_t seed = hf__random_next(&world->random);
	hf__core_init(&client->core, &config, seed, client_now(client));
	client->core.host = client;
	client->core.host_ops = &host_ops;
	client->core.backend = client;
	client->core.backend_ops = &link_ops;
	for (int i = 0; i < world->names; i++) {
		char name[] = "lock-0";
		name[5] = (char)('0' + i);
		client->lock[i] = hf__lock_ref(&client->core, HF_REENTRANT, name);
		client->alias[i] = hf__lock_ref(&client->core, HF_FENCED, name);
	}
	init_owners(client);
	if (world_between(world, 0, 3) != 0)
		client->connect_at = world->now + faults_latency(world);
	if (world_between(world, 0, 9) == 0)
		client->close_at = world_between(world, 0, world->heal_at);
}

void client_close(struct client *client)
{
	client->close_at = HF__NEVER;
	if (client->closing)
		return;
	world_trace(client->world, "client %lld: closes", client->index, 0, 0, 0, 0, 0);
	client->closing = true;
	client->calm_close = client->conn != NULL;
	client->close_op.want.action = HF__OP_CLOSE;
	hf__core_start(&client->core, &client->close_op, client_now(client));
	client_turn(client);
}

static void free_core(struct client *client)
{
	for (int i = 0; i < client->world->names; i++) {
		hf__lock_unref(&client->core, client->lock[i]);
		hf__lock_unref(&client->core, client->alias[i]);
	}
	hf__core_done(&client->core);
}

static void add_totals(struct client *client)
{
	struct totals *totals = &client->world->totals;
	totals->grants += client->core.stats.grants;
	totals->renewals += client->core.stats.renewals;
	totals->losses += client->core.stats.losses;
	totals->releases += client->core.stats.releases;
	totals->waits += client->core.stats.waits;
}

void client_free(struct client *client)
{
	client_report_news(client);
	client->over = true;
	link_forget(client);
	add_totals(client);
	free_core(client);
	check_freed(client);
}

/* Nothing is sent to the server; these calls only make the core free its memory. */
void client_kill(struct client *client)
{
	world_trace(client->world, "client %lld: killed", client->index, 0, 0, 0, 0, 0);
	client_report_news(client);
	client->over = true;
	client->kill_at = HF__NEVER;
	link_forget(client);
	client_unlink(&client->core);
	if (!client->closing) {
		client->close_op.want.action = HF__OP_CLOSE;
		hf__core_start(&client->core, &client->close_op, client_now(client));
	}
	add_totals(client);
	free_core(client);
}

bool client_idle(const struct client *client)
{
	for (int i = 0; i < client->owners; i++) {
		if (open_levels(&client->owner[i]) > 0)
			return false;
		for (int j = 0; j < CALLS; j++)
			if (client->owner[i].call[j].busy)
				return false;
	}
	return true;
}
