/*
 * Semaphores as Curator has them. Who wants a permit takes the gate, a mutex in P/locks, makes its lease in
 * P/leases, waits there until no more leases are left than there are permits, and opens the gate again. So
 * one at a time waits at the leases and the others in order at the gate. A simple mutex is one permit.
 */
#include "zk/zk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hf__lease_is_kind(const struct hf__lock *lock)
{
	int kind = hf__lock_kind(lock);
	return kind == HF__NODE_SIMPLE || kind == HF__NODE_PERMITS;
}

void hf__lease_enter(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	node->gate = strdup(node->name);
	if (!node->gate) {
		hf__doubt_link(zk, "no memory for a name");
		return;
	}
	node->part = HF__PART_LEASE;
	hf__make_anew(zk, node, now);
}

static void opened_gate(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__node_fail_rc(zk, node, request->rc, now);
		return;
	}
	free(node->gate);
	node->gate = NULL;
	hf__node_advance(zk, node, now);
}

/*
 * From here on the permit is ours, whatever becomes of the answer: behind the gate another may make its lease
 * before we hear of it, and to count again would be to wait for each other.
 */
static void open_gate(struct hf__zk *zk, struct hf__node *node)
{
	char folder[HF__ZK_PATH], path[HF__ZK_PATH + HF__QUEUE_NAME];
	struct hf__zk_request *request = hf__zk_request_new(zk, opened_gate, node);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	hf__node_part_folder(zk, node->lock, HF__PART_GATE, folder);
	snprintf(path, sizeof path, "%s/%s", folder, node->gate ? node->gate : "");
	node->leased = true;
	hf__zk_request_remove(request, path);
}

static bool is_listed(const struct hf__zk_request *listed, const char *name)
{
	for (size_t i = 0; i < listed->count; i++)
		if (strcmp(listed->names[i], name) == 0)
			return true;
	return false;
}

static bool is_simple(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF__NODE_SIMPLE;
}

bool hf__lease_refuse(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	if (is_simple(node) || (zk_lock && zk_lock->total_path && zk_lock->total_is_old))
		return false;
	int32_t total = zk_lock ? zk_lock->total : 0;
	if (total >= 1 && (uint32_t)total >= node->cmd->items)
		return false;
	hf__node_fail(zk, node, HF_EINVAL,
	              total < 1 ? "nobody has said how many permits there are; see hf_permits_set"
	                        : "more permits than there are",
	              now);
	return true;
}

void hf__lease_turn(struct hf__zk *zk, struct hf__node *node, const struct hf__zk_request *listed,
                    int64_t now)
{
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	if (!is_listed(listed, node->name)) {
		hf__make_anew(zk, node, now);
		return;
	}
	if (!is_simple(node) && hf__total_read(zk, node))
		return;
	if (hf__lease_refuse(zk, node, now))
		return;
	int32_t total = is_simple(node) || !zk_lock ? 1 : zk_lock->total;
	if (listed->count <= (size_t)total)
		open_gate(zk, node);
	else if (node->waits || node->cmd->place_ms == 0)
		hf__node_busy(zk, node, now);
	else
		hf__make_list(zk, node); /* one was given back meanwhile */
}

/* The node has its lease. Several permits are taken one after the other, as Curator does it. */
void hf__lease_next(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	struct hf__cmd *cmd = node->cmd;
	uint64_t index = node->wire - cmd->wire + 1;
	if (node->gate) {
		open_gate(zk, node);
		return;
	}
	if (index >= cmd->items) {
		if (hf__make_prove(zk, node))
			hf__node_grant(zk, node, now);
		return;
	}
	const struct hf__op *op = hf__core_op_of(cmd);
	if (!op || op->cancelled) {
		hf__node_busy(zk, node, now); /* nobody wants the rest; what is there is removed */
		return;
	}
	hf__zk_gets_on(zk, cmd);
	struct hf__node *next = hf__node_of(zk, cmd, cmd->wire + index);
	if (next)
		hf__node_give(zk, next, hf__node_take_cmd(node));
	else
		hf__doubt_link(zk, "no memory for a lease");
}
