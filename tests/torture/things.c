/* What the processes of torture use: locks of every kind, and what counts. */
#include "torture/things.h"

#include <string.h>

const struct resource resources[RESOURCES] = {
	[REENTRANT_0] = {"reentrant-0", 1, 0},
	[REENTRANT_1] = {"reentrant-1", 1, 0},
	[FAIR_0] = {"fair-0", 1, 0},
	[RW_0] = {"rw-0", READERS, 0},
	[FENCED_0] = {"fenced-0", 1, 0},
	[SPIN_0] = {"spin-0", 1, 0},
	[SIMPLE_0] = {"simple-0", 1, 0},
	[SIMPLE_FAIR_0] = {"simple-fair-0", 1, 0},
	[LEADER_0] = {"leader-0", 1, 0},
	[PLAIN_0] = {"plain-0", 1, 0},
	[GROUP_A] = {"group-0.a", 1, 0},
	[GROUP_B] = {"group-0.b", 1, 0},
	[GROUP_C] = {"group-0.c", 1, 0},
	[SEMAPHORE_0] = {"semaphore-0", PERMITS, PERMITS},
	[PERMITS_0] = {"permits-0", PERMITS, PERMITS},
	[LATCH_0] = {"latch-0", 0, LATCH_COUNT},
	[RED_0] = {"red-0", 1, 0},
	[RED_1] = {"red-1", 1, 0},
	[LONG_0] = {"long-0", 1, 0},
	[LONG_1] = {"long-1", 1, 0},
	[LONG_2] = {"long-2", 1, 0},
	[SHARED_0] = {"shared-0", 1, 0},
	[SPARSE_0] = {"sparse-0", 1, 0},
	[MOVED_0] = {"moved-0", 1, 0},
	[RED_2] = {"red-2", 1, 0},
	[MEMBER_0] = {"member-0", 1, 0},
	[MEMBER_1] = {"member-1", 1, 0},
	[MEMBER_2] = {"member-2", 1, 0},
	[MEMBER_3] = {"member-3", 1, 0},
	[MEMBER_4] = {"member-4", 1, 0},
	[GATE_0] = {"gate-0", 1, 0},
	[GATE_1] = {"gate-1", 1, 0},
	[GATE_2] = {"gate-2", 1, 0},
	[MEETING_0] = {"meeting", 0, 0},
};

const struct thing things[THINGS] = {
	{THING_LOCK, "reentrant-0", HF_REENTRANT, BIT(REENTRANT_0), 1, false, true, "reentrant",
         "mutex"},
	{THING_LOCK, "reentrant-1", HF_REENTRANT, BIT(REENTRANT_1), 1, true, true, "reentrant",
         "mutex"},
	{THING_LOCK, "fair-0", HF_FAIR, BIT(FAIR_0), 1, false, true, "fair", "mutex"},
	{THING_LOCK, "rw-0", HF_READ, BIT(RW_0), 1, false, true, "read", "read"},
	{THING_LOCK, "rw-0", HF_WRITE, BIT(RW_0), READERS, false, true, "write", "write"},
	{THING_LOCK, "fenced-0", HF_FENCED, BIT(FENCED_0), 1, true, true, "fenced", NULL},
	{THING_LOCK, "spin-0", HF_SPIN, BIT(SPIN_0), 1, false, true, "spin", NULL},
	{THING_LOCK, "simple-0", HF_SIMPLE, BIT(SIMPLE_0), 1, false, false, "simple",
         "semaphore_mutex"},
	{THING_LOCK, "simple-fair-0", HF_SIMPLE_FAIR, BIT(SIMPLE_FAIR_0), 1, false, false,
         "simple_fair", NULL},
	{THING_LOCK, "leader-0", HF_LEADER, BIT(LEADER_0), 1, false, false, NULL, NULL},
	{THING_LOCK, "plain-0", HF_PLAIN, BIT(PLAIN_0), 1, false, true, NULL, NULL},
	{THING_GROUP, "a", 0, BIT(GROUP_A), 1, false, true, NULL, NULL},
	{THING_GROUP, "abc", 0, BIT(GROUP_A) | BIT(GROUP_B) | BIT(GROUP_C), 1, false, true, NULL,
         NULL},
	{THING_MULTI, "multi", 0, BIT(REENTRANT_0) | BIT(FENCED_0), 1, false, true, NULL, NULL},
	{THING_RED, "red-0", 0, BIT(RED_0), 1, false, true, "red", NULL},
	{THING_RED, "red-1", 0, BIT(RED_1), 1, false, true, "red", NULL},
	{THING_SEMAPHORE, "semaphore-0", 0, BIT(SEMAPHORE_0), 1, false, false, NULL, NULL},
	{THING_PERMITS, "permits-0", 0, BIT(PERMITS_0), 1, false, false, NULL, NULL},
	{THING_LATCH, "latch-0", 0, BIT(LATCH_0), 1, false, false, NULL, NULL},
	{THING_GATE, "gate-0", 0, BIT(GATE_0), 1, false, false, NULL, NULL},
	{THING_GATE, "gate-1", 0, BIT(GATE_1), 1, false, false, NULL, NULL},
	{THING_GATE, "gate-2", 0, BIT(GATE_2), 1, false, false, NULL, NULL},
	{THING_LOCK, "shared-0", HF_REENTRANT, BIT(SHARED_0), 1, false, true, NULL, NULL},
	{THING_LOCK, "shared-0", HF_FENCED, BIT(SHARED_0), 1, false, true, NULL, NULL},
	{THING_LOCK, "moved-0", HF_REENTRANT, BIT(MOVED_0), 1, false, false, NULL, NULL},
	{THING_RED, "red-2", 0, BIT(RED_2), 1, false, true, NULL, NULL},
};

const struct thing *const long_red = &things[THINGS - 1];

const struct thing sparse_thing = {THING_LOCK, "sparse-0", HF_REENTRANT, BIT(SPARSE_0), 1,
                                   false,      false,      NULL,         NULL};

#define MEMBER(server)                                                                             \
	{                                                                                          \
		THING_LOCK, MIXED_NAME, HF_REENTRANT, BIT(MEMBER_0 + (server)), 1, false, false,   \
			NULL, NULL                                                                 \
	}
const struct thing member_things[RED_SERVERS] = {MEMBER(0), MEMBER(1), MEMBER(2), MEMBER(3),
                                                 MEMBER(4)};

const struct thing long_things[LONG_THINGS] = {
	{THING_LOCK, "long-0", HF_REENTRANT, BIT(LONG_0), 1, false, false, NULL, NULL},
	{THING_LOCK, "long-1", HF_REENTRANT, BIT(LONG_1), 1, false, false, NULL, NULL},
	{THING_LOCK, "long-2", HF_REENTRANT, BIT(LONG_2), 1, false, false, NULL, NULL},
};

static int open_group(const struct thing *thing, hf_client *client, hf_lock **ret_lock)
{
	static const char *const values[] = {"a", "b", "c"};
	return hf_lock_open_group(client, "group-0", values, strlen(thing->name), ret_lock);
}

/* The members are those of other things, so that they exclude each other. */
static int open_multi(hf_client *client, hf_lock **ret_lock)
{
	hf_lock *members[2] = {NULL, NULL};
	int rc = hf_lock_open(client, HF_REENTRANT, "reentrant-0", &members[0]);
	if (!rc)
		rc = hf_lock_open(client, HF_FENCED, "fenced-0", &members[1]);
	if (!rc)
		rc = hf_lock_open_multi(members, 2, ret_lock);
	hf_lock_close(members[0]);
	hf_lock_close(members[1]);
	return rc;
}

static int open_red(const struct thing *thing, hf_client *const *clients, hf_lock **ret_lock)
{
	hf_lock *members[RED_SERVERS] = {NULL};
	int rc = 0;
	for (int i = 0; i < RED_SERVERS && !rc; i++)
		rc = hf_lock_open(clients[i], HF_REENTRANT, thing->name, &members[i]);
	if (!rc)
		rc = hf_lock_open_red(members, RED_SERVERS, ret_lock);
	for (int i = 0; i < RED_SERVERS; i++)
		hf_lock_close(members[i]);
	return rc;
}

/* ZooKeeper has no latches. */
static int open_gate(const struct thing *thing, hf_client *client, struct handle *ret_handle)
{
	int rc = HF_ENOTSUP;
	if (thing->covers != BIT(GATE_2))
		rc = hf_latch_open(client, thing->name, &ret_handle->latch);
	return rc == HF_ENOTSUP ? hf_barrier_open(client, thing->name, &ret_handle->barrier) : rc;
}

int thing_open(const struct thing *thing, hf_client *const *clients, int count,
               struct handle *ret_handle)
{
	*ret_handle = (struct handle){.thing = thing};
	if ((thing->sort == THING_RED) != (count == RED_SERVERS))
		return HF_ENOTSUP;
	switch (thing->sort) {
	case THING_LOCK:
		return hf_lock_open(clients[0], thing->kind, thing->name, &ret_handle->lock);
	case THING_GROUP: return open_group(thing, clients[0], &ret_handle->lock);
	case THING_MULTI: return open_multi(clients[0], &ret_handle->lock);
	case THING_RED: return open_red(thing, clients, &ret_handle->lock);
	case THING_SEMAPHORE:
		return hf_semaphore_open(clients[0], thing->name, &ret_handle->semaphore);
	case THING_PERMITS: return hf_permits_open(clients[0], thing->name, &ret_handle->permits);
	case THING_GATE: return open_gate(thing, clients[0], ret_handle);
	case THING_LATCH: return hf_latch_open(clients[0], thing->name, &ret_handle->latch);
	}
	return HF_ENOTSUP;
}

void thing_close(struct handle *handle)
{
	hf_lock_close(handle->lock);
	hf_semaphore_close(handle->semaphore);
	hf_permits_close(handle->permits);
	hf_latch_close(handle->latch);
	hf_barrier_close(handle->barrier);
}
