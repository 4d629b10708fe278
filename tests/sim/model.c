/* The server, as the seam describes it: names, holders, expiry on its own clock, messages. */
#include "sim.h"

#include <stdio.h>

static int64_t server_now(const struct world *world)
{
	return clock_ms(&world->clock, world->now);
}

static struct client *client_of(struct world *world, int index)
{
	return &world->client[index];
}

static bool holds(const struct entry *entry, const struct request *request, uint64_t wire)
{
	return entry->there && entry->client == request->client && entry->wire == wire;
}

static void raise_expiry(struct world *world, struct entry *entry, int64_t lease_ms)
{
	int64_t until = server_now(world) + lease_ms;
	if (until > entry->expires_ms)
		entry->expires_ms = until;
}

static void remove_entry(struct world *world, struct entry *entry, int64_t at)
{
	world_trace(world, "server: wire %lld is removed from its lock", (long long)entry->wire, 0,
	            0, 0, 0, 0);
	entry->there = false;
	entry->free_since = at;
}

static void wake(struct world *world, int name)
{
	struct hf__list *link;
	hf__list_each (link, &world->conns) {
		struct conn *conn = hf__list_item(link, struct conn, link);
		struct reply reply = {.kind = REPLY_WAKE, .name = name};
		if (conn->watch[name])
			link_reply(world, conn, NULL, &reply);
	}
}

static void name_holder(const struct entry *entry, struct reply *reply)
{
	if (entry->there)
		snprintf(reply->text, sizeof reply->text, "client-%d:%llu", entry->client,
		         (unsigned long long)entry->wire);
}

static void ask(struct world *world, const struct request *request, struct reply *reply)
{
	struct entry *entry = &world->entry[request->name];
	if (!holds(entry, request, request->wire)) {
		if (request->count > 1) {
			reply->outcome = HF__GONE;
			name_holder(entry, reply);
			return;
		}
		if (entry->there) {
			reply->outcome = HF__BUSY;
			reply->ttl_ms = entry->expires_ms - server_now(world);
			return;
		}
		*entry = (struct entry){
			.there = true, .client = request->client, .wire = request->wire};
	}
	entry->count = request->count;
	raise_expiry(world, entry, request->lease_ms);
	reply->outcome = HF__GRANTED;
}

/* The history gets an entry for a call that waited in vain, whether or not this is a repeat. */
static void enter_wait(struct world *world, const struct request *request)
{
	struct wire *wire = &world->wire[request->wire];
	if (request->gave_up && wire->gave_up)
		check_fail(world, "history", "client %d: wire %llu is entered twice as given up",
		           request->client, (unsigned long long)request->wire);
	wire->gave_up = wire->gave_up || request->gave_up;
}

static bool settle(struct world *world, const struct request *request, struct reply *reply)
{
	struct entry *entry = &world->entry[request->name];
	if (!holds(entry, request, request->wire)) {
		reply->outcome = HF__GONE;
		name_holder(entry, reply);
		enter_wait(world, request);
		return false;
	}
	entry->count = request->count < 0 ? entry->count - 1 : request->count;
	reply->outcome = HF__DONE;
	if (entry->count > 0)
		return false;
	remove_entry(world, entry, world->now);
	struct hf__list *link;
	hf__list_each (link, &world->conns)
		reply->count += hf__list_item(link, struct conn, link)->watch[request->name];
	return true;
}

static void move(struct world *world, const struct request *request, struct reply *reply)
{
	struct entry *entry = &world->entry[request->name];
	reply->outcome = HF__GRANTED;
	if (holds(entry, request, request->from)) {
		*entry = (struct entry){.there = true,
		                        .client = request->client,
		                        .wire = request->wire,
		                        .count = 1,
		                        .expires_ms = server_now(world) + request->lease_ms};
	} else if (holds(entry, request, request->wire)) {
		raise_expiry(world, entry, request->lease_ms);
	} else {
		reply->outcome = HF__GONE;
		name_holder(entry, reply);
	}
}

static void renew(struct world *world, const struct request *request, struct reply *reply)
{
	reply->outcome = HF__DONE;
	for (int i = 0; i < request->items; i++) {
		struct entry *entry = &world->entry[request->item[i].name];
		reply->there[i] = holds(entry, request, request->item[i].wire);
		if (reply->there[i] && request->item[i].lease_ms > 0)
			raise_expiry(world, entry, request->item[i].lease_ms);
	}
}

/* A replica that lags, or is gone, keeps the server waiting for the whole time. */
static int64_t count_replicas(struct world *world, const struct request *request,
                              struct reply *reply)
{
	struct client *client = client_of(world, request->client);
	int64_t count = world->replicas;
	if (faults_happens(world, client, world->faults.few_replicas))
		count = world_between(world, 0, world->replicas);
	bool enough = count >= request->count;
	int64_t most_ms = enough ? 5 : client->core.config.sync_timeout_ms;
	reply->delay_us = enough ? world_between(world, 0, most_ms * 1000) : most_ms * 1000;
	return count;
}

static void run_sync(struct world *world, const struct request *request, struct reply *reply)
{
	struct entry *entry = &world->entry[request->name];
	if (!holds(entry, request, request->wire)) {
		reply->outcome = HF__GONE;
		return;
	}
	raise_expiry(world, entry, request->lease_ms);
	reply->outcome = HF__DONE;
	reply->count = count_replicas(world, request, reply);
	for (int i = 0; i <= reply->count; i++)
		world->wire[request->wire].acknowledged_at[i] = world->now;
}

static bool force(struct world *world, const struct request *request, struct reply *reply)
{
	struct entry *entry = &world->entry[request->name];
	reply->outcome = HF__DONE;
	reply->count = entry->there;
	if (!entry->there)
		return false;
	world->wire[entry->wire].revoked = true;
	remove_entry(world, entry, world->now);
	return true;
}

static void answer_look(struct world *world, const struct request *request, struct reply *reply)
{
	struct entry *entry = &world->entry[request->name];
	reply->outcome = HF__DONE;
	reply->ttl_ms = entry->there ? entry->expires_ms - server_now(world) : -2;
	reply->count = holds(entry, request, request->wire) ? entry->count : 0;
	name_holder(entry, reply);
}

static bool refuse(struct world *world, struct client *client, struct reply *reply)
{
	if (faults_happens(world, client, world->faults.not_now)) {
		reply->outcome = HF__NOT_NOW;
		reply->error = HF_ENOTNOW;
	} else if (faults_happens(world, client, world->faults.failed)) {
		reply->outcome = HF__FAILED;
		reply->error = HF_EREFUSED;
	} else {
		return false;
	}
	snprintf(reply->text, sizeof reply->text, "refused by the model");
	return true;
}

static bool watch(struct world *world, struct conn *conn, const struct request *request)
{
	if (request->verb != WATCH && request->verb != UNWATCH)
		return false;
	conn->watch[request->name] = request->verb == WATCH;
	struct client *client = client_of(world, request->client);
	if (request->verb == WATCH && faults_happens(world, client, world->faults.no_watch)) {
		struct reply reply = {.kind = REPLY_NO_WATCH, .name = request->name};
		conn->watch[request->name] = false;
		link_reply(world, conn, NULL, &reply);
	}
	return true;
}

/* True if the lock became free, and its waiters are to be notified. */
static bool run_verb(struct world *world, const struct request *request, struct reply *reply)
{
	switch (request->verb) {
	case HF__ASK: ask(world, request, reply); return false;
	case HF__SETTLE: return settle(world, request, reply);
	case HF__MOVE: move(world, request, reply); return false;
	case HF__RENEW: renew(world, request, reply); return false;
	case HF__SYNC: run_sync(world, request, reply); return false;
	case HF__FORCE: return force(world, request, reply);
	case HF__LOOK: answer_look(world, request, reply); return false;
	default: reply->outcome = HF__DONE; return false;
	}
}

void model_expire(struct world *world)
{
	for (int i = 0; i < world->names; i++) {
		struct entry *entry = &world->entry[i];
		if (!entry->there || server_now(world) < entry->expires_ms)
			continue;
		world->wire[entry->wire].expired = true;
		remove_entry(world, entry, clock_when(&world->clock, entry->expires_ms));
	}
}

void model_run(struct world *world, struct conn *conn, const struct request *request)
{
	struct client *client = client_of(world, request->client);
	struct reply reply = {
		.kind = REPLY_ANSWER, .name = request->name, .number = request->number};
	model_expire(world);
	if (!conn->live && request->verb != HF__LOOK)
		world->wire[request->wire].tainted = world->wire[request->from].tainted = true;
	if (watch(world, conn, request))
		return;
	bool freed = false;
	if (!refuse(world, client, &reply))
		freed = run_verb(world, request, &reply);
	else if (request->verb == HF__SETTLE && reply.outcome == HF__FAILED)
		world->wire[request->wire].denied = true;
	world_trace(world,
	            "server: client %lld verb %lld name %lld wire %lld count %lld -> outcome %lld",
	            request->client, request->verb, request->name, (long long)request->wire,
	            request->count, reply.outcome);
	if (freed && world->own_wake_first)
		wake(world, request->name);
	link_reply(world, conn, request, &reply);
	if (freed && !world->own_wake_first)
		wake(world, request->name);
	faults_step(world, client);
}

void model_restart(struct world *world, bool empty)
{
	world_trace(world, "server: restarts, empty %lld", empty, 0, 0, 0, 0, 0);
	for (int i = 0; empty && i < world->names; i++) {
		if (!world->entry[i].there)
			continue;
		world->wire[world->entry[i].wire].revoked = true;
		remove_entry(world, &world->entry[i], world->now);
	}
}
