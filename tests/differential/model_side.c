/*
 * Plays a sequence with the core on the simulator's model of a server, without faults.
 *
 * The links and the model are those of tests/sim. Instead of its random owners there is one call at
 * a time, and the clock only moves while a call waits and during a pause.
 */
#include "differential/keys.h"
#include "differential/side.h"

#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model {
	struct side side;
	struct world world;
	struct hf__lock *lock[SEQUENCE_CLIENTS][KINDS][SEQUENCE_NAMES];
	int caller[WIRES]; /* the owner in whose call the wire owner was first seen, plus 1 */
};

/* ---- what the links and the model use of the simulator ---- */

int64_t world_between(struct world *world, int64_t low, int64_t high)
{
	return hf__random_between(&world->random, low, high);
}

void world_trace(struct world *world, const char *format, long long a, long long b, long long c,
                 long long d, long long e, long long f)
{
	(void)world, (void)format, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
}

void check_submit(struct client *client, const struct hf__cmd *cmd)
{
	(void)client, (void)cmd;
}

void client_cancel_some(struct client *client)
{
	(void)client;
}

int64_t client_now(const struct client *client)
{
	return clock_ms(&client->clock, client->world->now);
}

void client_turn(struct client *client)
{
	hf__core_turn(&client->core, client_now(client));
}

/* ---- what the core calls ---- */

static void on_finish(void *host, struct hf__op *op)
{
	struct client *client = host;
	if (op == &client->close_op)
		client->closed = true;
	else
		hf__list_item(op, struct call, op)->busy = false;
}

static void ignore(void *host, struct hf__op *op)
{
	(void)host, (void)op;
}

static void on_news(void *host, struct hf__hold *hold)
{
	struct client *client = host;
	if (hf__list_empty(&hold->news))
		hf__list_add(&client->news, &hold->news);
}

static void ignore_line(void *host, hf_log_level level, const char *line)
{
	(void)host, (void)level, (void)line;
}

static uint64_t new_numbers(void *host, uint32_t n)
{
	struct world *world = ((struct client *)host)->world;
	uint64_t first = world->next_wire;
	world->next_wire += n;
	if (world->next_wire > WIRES)
		abort();
	return first;
}

static const struct hf__host_ops host_ops = {.on_finish = on_finish,
                                             .on_listen = ignore,
                                             .on_idle = ignore,
                                             .on_news = on_news,
                                             .log = ignore_line,
                                             .new_numbers = new_numbers};

static void take_news(struct client *client)
{
	while (!hf__list_empty(&client->news)) {
		struct hf__hold *hold = hf__list_item(client->news.next, struct hf__hold, news);
		hf_state state;
		hf__list_remove(&hold->news);
		while (hf__hold_next_news(hold, &state))
			;
		hf__hold_end_news(&client->core, hold);
	}
}

/* ---- time ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t first_at(const struct hf__list *messages)
{
	return hf__list_empty(messages) ? HF__NEVER
	                                : hf__list_item(messages->next, struct message, link)->at;
}

static int64_t turn_at(const struct client *client)
{
	int64_t due = hf__core_due(&client->core);
	return due == HF__NEVER ? due : clock_when(&client->clock, due);
}

static int64_t next_at(struct world *world)
{
	int64_t at = HF__NEVER;
	struct hf__list *link;
	for (int i = 0; i < world->clients; i++) {
		struct client *client = &world->client[i];
		at = earlier(at, earlier(client->connect_at, turn_at(client)));
		at = client->conn ? earlier(at, first_at(&client->conn->in)) : at;
	}
	hf__list_each (link, &world->conns)
		at = earlier(at, first_at(&hf__list_item(link, struct conn, link)->out));
	return at;
}

static void step_client(struct client *client)
{
	int64_t now = client->world->now;
	if (client->connect_at <= now)
		link_connect(client);
	while (client->conn && first_at(&client->conn->in) <= now)
		link_deliver(client);
	if (turn_at(client) <= now)
		client_turn(client);
	take_news(client);
}

/* Everything that happens at the next point in time; false if that is later than this. */
static bool step(struct world *world, int64_t until)
{
	int64_t at = next_at(world);
	struct hf__list *link;
	if (at > until)
		return false;
	world->now = at > world->now ? at : world->now;
	model_expire(world);
	hf__list_each (link, &world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		while (first_at(&conn->out) <= world->now)
			link_arrive(world, conn);
	}
	for (int i = 0; i < world->clients; i++)
		step_client(&world->client[i]);
	return true;
}

static void pause_world(struct world *world)
{
	int64_t until = world->now + SEQUENCE_PAUSE_MS * 1000;
	while (step(world, until))
		;
	world->now = until;
	model_expire(world);
}

/* ---- clients ---- */

static void open_client(struct model *model, int index)
{
	struct client *client = &model->world.client[index];
	struct hf__core_config config = {.watchdog_batch = 100,
	                                 .command_timeout_ms = 3000,
	                                 .watchdog_ms = SEQUENCE_WATCHDOG_MS,
	                                 .peer_skew_ms = 1};
	snprintf(config.uuid, sizeof config.uuid, "client-%d", index);
	client->world = &model->world;
	client->index = index;
	hf__list_init(&client->news);
	link_init(client);
	hf__core_init(&client->core, &config, (uint64_t)index + 1, client_now(client));
	client->core.host = client;
	client->core.host_ops = &host_ops;
	client->core.backend = client;
	client->core.backend_ops = &link_ops;
	for (int i = 0; i < SEQUENCE_OWNERS; i++)
		client->owner[i].id = model->world.next_wire++;
}

static void open_world(struct model *model, uint64_t seed)
{
	struct world *world = &model->world;
	memset(world, 0, sizeof *world);
	memset(model->lock, 0, sizeof model->lock);
	memset(model->caller, 0, sizeof model->caller);
	world->random.state = seed + 1;
	world->now = 1000000;
	world->next_wire = 1;
	world->clients = SEQUENCE_CLIENTS;
	world->names = SEQUENCE_NAMES;
	hf__list_init(&world->conns);
	for (int i = 0; i < world->clients; i++)
		open_client(model, i);
}

static void close_client(struct model *model, struct client *client)
{
	client->close_op.want.action = HF__OP_CLOSE;
	hf__core_start(&client->core, &client->close_op, client_now(client));
	client_turn(client);
	while (!client->closed && step(&model->world, HF__NEVER - 1))
		;
	take_news(client);
	client->over = true;
	link_forget(client);
	for (int i = 0; i < KINDS; i++)
		for (int j = 0; j < SEQUENCE_NAMES; j++)
			if (model->lock[client->index][i][j])
				hf__lock_unref(&client->core, model->lock[client->index][i][j]);
	hf__core_done(&client->core);
}

static void close_world(struct model *model)
{
	for (int i = 0; i < model->world.clients; i++)
		close_client(model, &model->world.client[i]);
	link_free_all(&model->world);
}

/* ---- calls ---- */

static struct hf__lock *open_lock(struct model *model, const struct sequence_call *call)
{
	static const int kinds[] = {[KIND_REENTRANT] = HF_REENTRANT,
	                            [KIND_FENCED] = HF_FENCED,
	                            [KIND_SPIN] = HF_SPIN,
	                            [KIND_SIMPLE] = HF_SIMPLE};
	char name[] = "orders0";
	struct hf__lock **lock = &model->lock[call->client][call->kind][call->name];
	name[6] = (char)('0' + call->name);
	if (!*lock)
		*lock = hf__lock_ref(&model->world.client[call->client].core, kinds[call->kind],
		                     name);
	return *lock;
}

static struct hf__want want_of(const struct sequence_call *call)
{
	static const uint8_t actions[VERBS] = {
		[VERB_ACQUIRE] = HF__OP_ACQUIRE, [VERB_RELEASE] = HF__OP_RELEASE,
		[VERB_EXTEND] = HF__OP_EXTEND,   [VERB_FORCE] = HF__OP_FORCE,
		[VERB_LOCKED] = HF__OP_QUERY,    [VERB_HELD] = HF__OP_QUERY,
		[VERB_COUNT] = HF__OP_QUERY,     [VERB_TTL] = HF__OP_QUERY};
	static const uint8_t questions[VERBS] = {[VERB_LOCKED] = HF__QUERY_IS_LOCKED,
	                                         [VERB_HELD] = HF__QUERY_IS_HELD,
	                                         [VERB_COUNT] = HF__QUERY_COUNT,
	                                         [VERB_TTL] = HF__QUERY_TTL};
	return (struct hf__want){.action = actions[call->verb],
	                         .question = questions[call->verb],
	                         .wait_ms = call->wait_ms,
	                         .lease_ms = call->lease_ms};
}

static void make_call(struct model *model, const struct sequence_call *made, struct record *record,
                      int i)
{
	struct world *world = &model->world;
	struct client *client = &world->client[made->client];
	struct call *call = &client->owner[made->owner].call[0];
	*call = (struct call){.busy = true};
	call->op.lock = open_lock(model, made);
	call->op.want = want_of(made);
	call->op.want.owner = client->owner[made->owner].id;
	hf__core_start(&client->core, &call->op, client_now(client));
	client_turn(client);
	while (call->busy && step(world, HF__NEVER - 1))
		;
	while (step(world, world->now))
		;
	long long number = call->op.number;
	bool has_number = call->op.want.action == HF__OP_QUERY || made->verb == VERB_FORCE;
	if (made->verb == VERB_TTL)
		number = keys_round_ms(number);
	record_answer(record, i, call->op.result, has_number ? &number : NULL);
}

/* ---- keys ---- */

static char *describe_keys(struct model *model, const struct sequence_call *call)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		abort();
	for (int i = 0; i < SEQUENCE_NAMES; i++) {
		const struct entry *entry = &model->world.entry[i];
		if (!entry->there)
			continue;
		int *caller = &model->caller[entry->wire];
		if (!*caller)
			*caller = call->owner + 1;
		int64_t ttl = entry->expires_ms - clock_ms(&model->world.clock, model->world.now);
		(void)fprintf(out, "orders%d hash %lld %c.%d=%lld \n", i, keys_round_ms(ttl),
		              'A' + entry->client, *caller, (long long)entry->count);
	}
	(void)fclose(out);
	return text;
}

/* ---- the side ---- */

static bool can_play(struct side *side, const struct sequence *sequence)
{
	(void)side;
	return sequence->flavour == FLAVOUR_MODEL;
}

static void play(struct side *side, const struct sequence *sequence, struct record *ret_record)
{
	struct model *model = (struct model *)side;
	open_world(model, sequence->seed);
	for (int i = 0; i < sequence->calls; i++) {
		const struct sequence_call *call = &sequence->call[i];
		if (call->verb == VERB_PAUSE) {
			pause_world(&model->world);
			record_answer(ret_record, i, 0, NULL);
		} else {
			make_call(model, call, ret_record, i);
		}
		record_keys(ret_record, i, call, describe_keys(model, call));
	}
	close_world(model);
}

static void close_model(struct side *side)
{
	free(side);
}

struct side *model_open(void)
{
	struct model *model = calloc(1, sizeof *model);
	if (!model)
		abort();
	snprintf(model->side.name, sizeof model->side.name, "the model");
	model->side.can_play = can_play;
	model->side.play = play;
	model->side.close = close_model;
	return &model->side;
}
