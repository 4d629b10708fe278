/* The seam's other side: commands become messages, connections break and come back. */
#include "redis/redis_kinds.h"
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct message *new_message(struct hf__list *queue, int64_t at)
{
	struct message *message = calloc(1, sizeof(*message));
	if (!message)
		abort();
	message->at = at;
	hf__list_add(queue, &message->link);
	return message;
}

static void free_messages(struct hf__list *queue)
{
	while (!hf__list_empty(queue)) {
		struct message *message = hf__list_item(queue->next, struct message, link);
		hf__list_remove(&message->link);
		free(message);
	}
}

int link_name(const struct hf__lock *lock)
{
	return hf__lock_name(lock)[hf__lock_name_length(lock) - 1] - '0';
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void send_request(struct client *client, struct conn *conn, const struct request *request)
{
	struct world *world = client->world;
	if (faults_happens(world, client, world->faults.lose_request))
		conn->mute_out = true;
	conn->out_at = later(conn->out_at, world->now + faults_latency(world));
	if (!conn->mute_out)
		new_message(&conn->out, conn->out_at)->request = *request;
}

/* ---- what the core calls ---- */

static void copy_items(const struct hf__cmd *cmd, struct request *request)
{
	request->items = cmd->items;
	for (int i = 0; i < cmd->items; i++) {
		struct hf__renew_item item = hf__backend_item(cmd, i);
		request->item[i].name = link_name(item.lock);
		request->item[i].wire = item.wire;
		request->item[i].lease_ms = item.lease_ms;
	}
}

static bool says_gave_up(const struct client *client, const struct hf__cmd *cmd)
{
	struct hf__entry entry;
	return cmd->verb == HF__SETTLE && hf__entry_make(&client->core, cmd, &entry) &&
	       entry.gave_up;
}

static struct request request_of(struct client *client, struct hf__cmd *cmd)
{
	struct request request = {
		.verb = cmd->verb,
		.client = client->index,
		.name = cmd->verb == HF__RENEW || !cmd->lock ? 0 : link_name(cmd->lock),
		.wire = cmd->verb == HF__RENEW ? 0 : cmd->wire,
		.from = cmd->verb == HF__MOVE ? cmd->from : 0,
		.lease_ms = cmd->lease_ms,
		.sent_at = cmd->sent_at,
		.answer_by = cmd->answer_by,
		.count = cmd->count,
		.gave_up = says_gave_up(client, cmd),
	};
	if (cmd->verb == HF__RENEW)
		copy_items(cmd, &request);
	return request;
}

static struct conn *new_conn(struct client *client);

/* It has a connection of its own, on which nothing else waits for it. */
static void submit_sync(struct client *client, struct hf__cmd *cmd)
{
	struct world *world = client->world;
	struct call *call = hf__list_item(hf__cmd_op(cmd), struct call, op);
	if (!call->synced_at)
		call->synced_at = client_now(client);
	if (!client->sync)
		client->sync = new_conn(client);
	struct conn *conn = client->sync;
	struct request request = request_of(client, cmd);
	request.number = cmd->backend.offset = ++client->last_sync;
	hf__list_add(&client->syncs, &cmd->link);
	world_trace(world, "client %lld: syncs name %lld wire %lld count %lld", client->index,
	            request.name, (long long)request.wire, request.count, 0, 0);
	send_request(client, conn, &request);
	if (faults_happens(world, client, world->faults.cut))
		conn->cut_at = world->now + world_between(world, 0, 100000);
}

/* One that is on its way cannot be taken back: that is decided by chance. */
static bool withdraw(void *backend, struct hf__cmd *cmd)
{
	struct client *client = backend;
	if (!cmd->backend.offset || world_between(client->world, 0, 1)) {
		/* The answer may be late on its own connection, and then so is the removal. */
		client->calm_since = later(client->calm_since, client->world->now);
		return false;
	}
	hf__list_remove(&cmd->link);
	return true;
}

static int submit(void *backend, struct hf__link *link, struct hf__cmd *cmd)
{
	struct client *client = backend;
	(void)link;
	struct world *world = client->world;
	check_submit(client, cmd);
	if (faults_happens(world, client, world->faults.no_memory)) {
		world_trace(world, "client %lld: no memory for verb %lld", client->index, cmd->verb,
		            0, 0, 0, 0);
		return HF_ENOMEM;
	}
	if (cmd->verb == HF__SYNC) {
		submit_sync(client, cmd);
		return 0;
	}
	hf__list_add(&client->pending, &cmd->link);
	struct request request = request_of(client, cmd);
	world_trace(world, "client %lld: sends verb %lld name %lld wire %lld count %lld items %lld",
	            client->index, cmd->verb, request.name, (long long)request.wire, request.count,
	            request.items);
	send_request(client, client->conn, &request);
	faults_step(world, client);
	return 0;
}

static void send_watch(struct client *client, int name, int verb)
{
	struct request request = {.verb = verb, .client = client->index, .name = name};
	if (client->conn)
		send_request(client, client->conn, &request);
}

static int watch(void *backend, struct hf__watch *watched)
{
	struct client *client = backend;
	struct world *world = client->world;
	int name = link_name(watched->lock);
	if (faults_happens(world, client, world->faults.no_memory))
		return HF_ENOMEM;
	client->watch[name] = watched;
	send_watch(client, name, WATCH);
	return 0;
}

static void unwatch(void *backend, struct hf__watch *watched)
{
	struct client *client = backend;
	int name = link_name(watched->lock);
	client->watch[name] = NULL;
	if (!client->over)
		send_watch(client, name, UNWATCH);
}

static void want_link(void *backend, struct hf__link *link)
{
	struct client *client = backend;
	(void)link;
	if (!client->over && !client->conn && client->connect_at == HF__NEVER)
		client->connect_at = client->world->now + faults_latency(client->world);
}

const struct hf__backend_ops link_ops = {
	.submit = submit,
	.withdraw = withdraw,
	.watch = watch,
	.unwatch = unwatch,
	.want_link = want_link,
	.traits = hf__redis_kinds_traits,
};

/* ---- answers ---- */

static void answer(struct client *client, struct hf__cmd *cmd, const struct hf__answer *words)
{
	hf__list_remove(&cmd->link);
	/* What a command refers to must live until its answer; this reads it. */
	if (cmd->verb != HF__RENEW && cmd->lock)
		(void)link_name(cmd->lock);
	for (int i = 0; cmd->verb == HF__RENEW && i < cmd->items; i++)
		(void)link_name(hf__backend_item(cmd, i).lock);
	hf__core_answer(&client->core, cmd, words, client_now(client));
}

static void answer_first(struct client *client, const struct reply *reply)
{
	struct hf__cmd *cmd = hf__list_item(client->pending.next, struct hf__cmd, link);
	struct hf__answer words = {
		.outcome = reply->outcome,
		.error = reply->error,
		.ttl_ms = reply->ttl_ms,
		.count = reply->count,
		.text = reply->text,
		.length = strlen(reply->text),
		.there = reply->there,
	};
	world_trace(client->world, "client %lld: verb %lld wire %lld is answered outcome %lld",
	            client->index, cmd->verb, cmd->verb == HF__RENEW ? 0 : (long long)cmd->wire,
	            reply->outcome, 0, 0);
	answer(client, cmd, &words);
}

static struct hf__cmd *find_sync(struct client *client, uint64_t number)
{
	struct hf__list *link;
	hf__list_each (link, &client->syncs) {
		struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->backend.offset == number)
			return cmd;
	}
	return NULL;
}

static void answer_sync(struct client *client, struct hf__cmd *cmd, const struct reply *reply)
{
	struct hf__answer words = {.outcome = reply->outcome,
	                           .error = reply->error,
	                           .count = reply->count,
	                           .text = reply->text,
	                           .length = strlen(reply->text)};
	world_trace(client->world, "client %lld: sync of wire %lld: outcome %lld count %lld",
	            client->index, (long long)cmd->wire, reply->outcome, reply->count, 0, 0);
	answer(client, cmd, &words);
}

void link_deliver_sync(struct client *client)
{
	struct message *message = hf__list_item(client->sync->in.next, struct message, link);
	struct reply reply = message->reply;
	struct hf__cmd *cmd = find_sync(client, reply.number);
	hf__list_remove(&message->link);
	free(message);
	if (cmd)
		answer_sync(client, cmd, &reply);
	faults_step(client->world, client);
	client_turn(client);
}

void link_deliver(struct client *client)
{
	struct conn *conn = client->conn;
	struct message *message = hf__list_item(conn->in.next, struct message, link);
	struct reply reply = message->reply;
	hf__list_remove(&message->link);
	free(message);
	if (reply.kind == REPLY_ANSWER) {
		answer_first(client, &reply);
	} else if (client->watch[reply.name]) {
		struct hf__watch *watched = client->watch[reply.name];
		int64_t now = client_now(client);
		world_trace(client->world, "client %lld: message %lld about name %lld",
		            client->index, reply.kind, reply.name, 0, 0, 0);
		if (reply.kind == REPLY_WAKE) {
			hf__core_wake(&client->core, watched, 0, now);
		} else {
			client->watch[reply.name] = NULL;
			hf__core_on_watch_failed(&client->core, watched, HF_EDENIED, "no", 2, now);
		}
	}
	faults_step(client->world, client);
	client_turn(client);
}

/* A reply arrives just in time, just too late, or long after its limit. */
static int64_t late_arrival(struct world *world, const struct client *client,
                            const struct request *request)
{
	int64_t choice = world_between(world, 0, 3);
	int64_t shift = world_between(world, -1, 1);
	int64_t fine = world_between(world, 0, 999);
	int64_t long_after = world_between(world, 0, 2000);
	int64_t until = hf__policy_valid_until(request->sent_at, request->lease_ms);
	int64_t ms = choice == 0                            ? request->answer_by + long_after
	             : choice == 1 && request->lease_ms > 0 ? until + shift
	                                                    : request->answer_by + shift;
	return clock_when(&client->clock, ms) + fine;
}

void link_reply(struct world *world, struct conn *conn, const struct request *request,
                const struct reply *reply)
{
	struct client *client = &world->client[conn->client];
	int64_t at = world->now + faults_latency(world) + reply->delay_us;
	if (!conn->live)
		return;
	if (request && faults_happens(world, client, world->faults.late_reply)) {
		at = later(at, late_arrival(world, client, request));
		client->calm_since = later(client->calm_since, at);
		client->stale_at = later(client->stale_at, at);
	}
	if (faults_happens(world, client, world->faults.lose_reply))
		conn->mute_in = true;
	conn->in_at = later(conn->in_at, at);
	if (!conn->mute_in)
		new_message(&conn->in, conn->in_at)->reply = *reply;
}

void link_arrive(struct world *world, struct conn *conn)
{
	struct message *message = hf__list_item(conn->out.next, struct message, link);
	struct request request = message->request;
	hf__list_remove(&message->link);
	free(message);
	model_run(world, conn, &request);
}

/* ---- connections ---- */

void link_init(struct client *client)
{
	hf__list_init(&client->pending);
	hf__list_init(&client->syncs);
	client->connect_at = HF__NEVER;
}

static struct conn *new_conn(struct client *client)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	if (!conn)
		abort();
	hf__list_init(&conn->out);
	hf__list_init(&conn->in);
	conn->client = client->index;
	conn->live = true;
	conn->cut_at = HF__NEVER;
	hf__list_add(&client->world->conns, &conn->link);
	return conn;
}

static void kill_old_conns(struct client *client)
{
	struct hf__list *link;
	hf__list_each (link, &client->world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		if (conn->client == client->index && !conn->live)
			free_messages(&conn->out);
	}
}

/* A client that wants nothing does not connect. */
static void connect_later(struct client *client, int64_t most_us)
{
	if (client->connect_at == HF__NEVER &&
	    hf__core_needs_link(&client->core, &client->core.link))
		client->connect_at =
			client->world->now + world_between(client->world, 100, most_us);
}

void link_connect(struct client *client)
{
	struct world *world = client->world;
	bool down = world->server_up_at > 0;
	client->connect_at = HF__NEVER;
	if (down || faults_happens(world, client, world->faults.no_connect)) {
		client->calm_since = world->now;
		client->connect_at = world->now + world_between(world, 1000, 100000);
		world_trace(world, "client %lld: cannot connect", client->index, 0, 0, 0, 0, 0);
		hf__core_on_link_failed(&client->core, &client->core.link, HF_EUNREACHABLE,
		                        "refused", client_now(client));
		client_turn(client);
		return;
	}
	if (faults_happens(world, client, world->faults.kill_old))
		kill_old_conns(client);
	client->conn = new_conn(client);
	for (int i = 0; i < world->names; i++)
		client->conn->watch[i] = client->watch[i] != NULL;
	client->calm_since = world->now;
	world_trace(world, "client %lld: connected", client->index, 0, 0, 0, 0, 0);
	hf__core_on_link_up(&client->core, &client->core.link, client_now(client));
	client_turn(client);
}

/* Of what is in flight, the last may never have left; the rest arrives late, or never. */
static int take_back_unsent(struct world *world, struct conn *conn)
{
	int unsent = 0;
	while (!hf__list_empty(&conn->out) && world_between(world, 0, 3) == 0) {
		struct message *message = hf__list_item(conn->out.prev, struct message, link);
		unsent += message->request.verb < WATCH;
		hf__list_remove(&message->link);
		free(message);
	}
	return unsent;
}

static void delay_out(struct world *world, struct client *client, struct conn *conn)
{
	if (!faults_happens(world, client, world->faults.arrives_late)) {
		free_messages(&conn->out);
		return;
	}
	int64_t wide = world_between(world, 0, 1);
	int64_t delay = world_between(world, 0, wide ? 2000000 : 100000);
	struct hf__list *link;
	hf__list_each (link, &conn->out)
		hf__list_item(link, struct message, link)->at += delay;
}

static void answer_all(struct client *client, int unsent)
{
	int count = 0;
	struct hf__list *link;
	hf__list_each (link, &client->pending)
		count++;
	for (; !hf__list_empty(&client->pending); count--) {
		struct reply reply = {.outcome = count > unsent ? HF__UNKNOWN : HF__UNSENT,
		                      .error = HF_EUNREACHABLE};
		snprintf(reply.text, sizeof reply.text, "connection lost");
		answer_first(client, &reply);
	}
}

/* The master may be another one from now on, or only this connection is broken. */
static void drop_sync(struct client *client)
{
	struct conn *conn = client->sync;
	struct reply reply = {.outcome = HF__UNKNOWN, .error = HF_EUNREACHABLE};
	if (!conn)
		return;
	conn->live = false;
	free_messages(&conn->in);
	delay_out(client->world, client, conn);
	client->sync = NULL;
	while (!hf__list_empty(&client->syncs))
		answer_sync(client, hf__list_item(client->syncs.next, struct hf__cmd, link),
		            &reply);
}

void link_give_up_sync(struct client *client)
{
	world_trace(client->world, "client %lld: gives up the connection of its syncs",
	            client->index, 0, 0, 0, 0, 0);
	client->calm_since = client->world->now;
	drop_sync(client);
	client_turn(client);
}

void link_give_up(struct client *client, int error, const char *why)
{
	struct world *world = client->world;
	struct conn *conn = client->conn;
	world_trace(world, "client %lld: gives its connection up", client->index, 0, 0, 0, 0, 0);
	conn->live = false;
	memset(conn->watch, 0, sizeof conn->watch);
	free_messages(&conn->in);
	int unsent = take_back_unsent(world, conn);
	delay_out(world, client, conn);
	client->calm_since = world->now;
	client->conn = NULL;
	hf__core_on_link_down(&client->core, &client->core.link, error, why, client_now(client));
	drop_sync(client);
	answer_all(client, unsent);
	connect_later(client, 50000);
	client_turn(client);
}

int64_t link_patience(const struct client *client)
{
	int64_t at = HF__NEVER;
	const struct hf__list *link;
	hf__list_each (link, &client->pending) {
		const struct hf__cmd *cmd = hf__list_item(link, const struct hf__cmd, link);
		if (cmd->answer_by < at)
			at = cmd->answer_by;
	}
	return at == HF__NEVER ? at : clock_when(&client->clock, at + 1);
}

int64_t link_patience_sync(const struct client *client)
{
	const struct hf__core_config *config = &client->core.config;
	int64_t at = HF__NEVER;
	const struct hf__list *link;
	hf__list_each (link, &client->syncs) {
		const struct hf__cmd *cmd = hf__list_item(link, const struct hf__cmd, link);
		int64_t by = cmd->sent_at + config->sync_timeout_ms + config->command_timeout_ms;
		at = by < at ? by : at;
	}
	return at == HF__NEVER ? at : clock_when(&client->clock, at + 1);
}

/* The client no longer exists: nothing is passed up from here. */
void link_forget(struct client *client)
{
	struct conn *conn = client->conn;
	client->connect_at = HF__NEVER;
	while (!hf__list_empty(&client->pending))
		hf__list_remove(client->pending.next);
	while (!hf__list_empty(&client->syncs))
		hf__list_remove(client->syncs.next);
	if (client->sync) {
		client->sync->live = false;
		free_messages(&client->sync->in);
		client->sync = NULL;
	}
	if (!conn)
		return;
	conn->live = false;
	memset(conn->watch, 0, sizeof conn->watch);
	free_messages(&conn->in);
	client->conn = NULL;
}

void link_sweep(struct world *world)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		if (conn->live || !hf__list_empty(&conn->out))
			continue;
		hf__list_remove(&conn->link);
		free_messages(&conn->in);
		free(conn);
	}
}

void link_mute_all(struct world *world)
{
	struct hf__list *link;
	hf__list_each (link, &world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		conn->mute_out = true;
		conn->mute_in = true;
		memset(conn->watch, 0, sizeof conn->watch);
		free_messages(&conn->out);
	}
}

void link_free_all(struct world *world)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		free_messages(&conn->out);
		conn->live = false;
	}
	link_sweep(world);
}
