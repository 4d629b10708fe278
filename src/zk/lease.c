/*
 * Semaphores as Curator has them. An acquire first takes the gate, a mutex in P/locks. Then it
 * creates its lease in P/leases, waits until there are no more leases than permits, and opens the
 * gate again. So one acquire at a time waits for a lease, and the others wait in order at the gate.
 * A simple mutex has one permit.
 */
#include "zk/zk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the gate ---- */

void hf__lease_pass_gate(struct hf__zk *zk, struct hf__node *node)
{
	char *gate = strdup(node->name);
	if (!gate) {
		hf__doubt_memory(zk);
		return;
	}
	hf__node_change(node, HF__ON_GATE_PASSED);
	node->gate = gate;
	node->guid[0] = 0;
}

bool hf__lease_return_to_gate(struct hf__node *node)
{
	if (!node->gate)
		return false;
	snprintf(node->name, sizeof node->name, "%s", node->gate);
	free(node->gate);
	node->gate = NULL;
	hf__node_change(node, HF__ON_LEASE_UNDONE);
	return true;
}

static void on_gate_opened(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	(void)now;
	if (hf__node_ignores(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__node_fail_rc(zk, node, request->rc);
		return;
	}
	free(node->gate);
	node->gate = NULL;
	hf__node_change(node, HF__ON_GATE_OPENED);
}

void hf__lease_open_gate(struct hf__zk *zk, struct hf__node *node)
{
	char folder[HF__ZK_PATH], path[HF__ZK_PATH + HF__QUEUE_NAME];
	assert(node->state == HF__ZNODE_LEASE_COUNTED && node->gate);
	struct hf__zk_request *request = hf__zk_request_new(zk, on_gate_opened, node);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	hf__node_gate_folder(zk, node->lock, folder);
	snprintf(path, sizeof path, "%s/%s", folder, node->gate);
	hf__zk_request_remove(request, path);
}

/* ---- the lease ---- */

static bool is_simple(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF_SIMPLE;
}

bool hf__lease_refuse(struct hf__zk *zk, struct hf__node *node)
{
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	if (is_simple(node) || (zk_lock && zk_lock->total_path && zk_lock->total_is_old))
		return false;
	int32_t total = zk_lock ? zk_lock->total : 0;
	if (total >= 1 && (uint32_t)total >= node->cmd->items)
		return false;
	char why[80] = "permits: their total is not set; call hf_permits_set first";
	if (total >= 1)
		snprintf(why, sizeof why, "permits: %u requested, but there are only %d",
		         (unsigned)node->cmd->items, (int)total);
	hf__node_fail(node, HF_EINVAL, why);
	return true;
}

/*
 * From here on the permit is ours, whatever becomes of the answer: once the gate is open another
 * acquire may create its lease before we hear of it, and if both counted again they would wait for
 * each other.
 */
static void take_permit(struct hf__zk *zk, struct hf__node *node)
{
	hf__node_change(node, HF__ON_COUNTED);
	hf__lease_open_gate(zk, node);
}

void hf__lease_check(struct hf__zk *zk, struct hf__node *node, const struct hf__zk_request *listed,
                     int64_t now)
{
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	if (!hf__zk_request_lists(listed, node->name)) {
		hf__node_start_over(node);
		return;
	}
	if (!is_simple(node) && hf__total_read(zk, node))
		return;
	if (hf__lease_refuse(zk, node))
		return;
	int32_t total = is_simple(node) || !zk_lock ? 1 : zk_lock->total;
	if (listed->count <= (size_t)total)
		take_permit(zk, node);
	else if (node->watcher)
		hf__node_wait(zk, node, now);
	else if (node->cmd->place_ms == 0)
		hf__node_refuse(zk, node, now);
	else if (!listed->watcher)
		hf__node_wait_unwatched(zk, node, now);
	/* Otherwise a lease was given back meanwhile, and the next step lists them again. */
}
