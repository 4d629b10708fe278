/* One acquisition's node: its paths, its state, and the answers to its command. */
#include "zk/zk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNWATCHED_MS 3000 /* between two asks of a waiter without a watch */

/* ---- kinds ---- */

bool hf__node_is_plain(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF_PLAIN;
}

bool hf__node_is_member(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF__MEMBER;
}

bool hf__node_has_leases(const struct hf__lock *lock)
{
	int kind = hf__lock_kind(lock);
	return kind == HF_SIMPLE || kind == HF__PERMITS;
}

bool hf__node_is_lease(const struct hf__node *node)
{
	return hf__node_has_leases(node->lock) && hf__node_state_is_lease(node->state);
}

/* ---- paths ---- */

static void folder_below(const struct hf__zk *zk, const struct hf__lock *lock, const char *below,
                         char ret_path[HF__ZK_PATH])
{
	snprintf(ret_path, HF__ZK_PATH, "%s/%s%s", zk->config->chroot, hf__lock_name(lock), below);
}

void hf__node_gate_folder(const struct hf__zk *zk, const struct hf__lock *lock,
                          char ret_path[HF__ZK_PATH])
{
	folder_below(zk, lock, "/locks", ret_path);
}

void hf__node_holders_path(const struct hf__zk *zk, const struct hf__lock *lock,
                           char ret_path[HF__ZK_PATH])
{
	folder_below(zk, lock, hf__node_has_leases(lock) ? "/leases" : "", ret_path);
}

void hf__node_folder(const struct hf__zk *zk, const struct hf__node *node,
                     char ret_path[HF__ZK_PATH])
{
	if (hf__node_has_leases(node->lock) && !hf__node_is_lease(node))
		hf__node_gate_folder(zk, node->lock, ret_path);
	else
		hf__node_holders_path(zk, node->lock, ret_path);
}

void hf__node_child(const struct hf__zk *zk, const struct hf__node *node, const char *child,
                    char ret_path[HF__ZK_PATH])
{
	char folder[HF__ZK_PATH];
	hf__node_folder(zk, node, folder);
	if (snprintf(ret_path, HF__ZK_PATH, "%s/%s", folder, child) >= HF__ZK_PATH)
		ret_path[0] = 0; /* the library refuses an empty path */
}

void hf__node_path(const struct hf__zk *zk, const struct hf__node *node, char ret_path[HF__ZK_PATH])
{
	if (hf__node_is_plain(node))
		hf__node_folder(zk, node, ret_path);
	else
		hf__node_child(zk, node, node->name, ret_path);
}

/* ---- state ---- */

void hf__node_change(struct hf__node *node, enum hf__node_event event)
{
	node->state = hf__node_state_after(node->state, event);
	assert(!node->gate || hf__node_state_has_gate(node->state) ||
	       node->state == HF__ZNODE_LEASE_DELETING || node->state == HF__ZNODE_DEAD);
}

bool hf__node_is_granted(const struct hf__node *node)
{
	return hf__node_state_is_granted(node->state);
}

bool hf__node_is_dead(const struct hf__node *node)
{
	return node->state == HF__ZNODE_DEAD;
}

void hf__node_start_over(struct hf__node *node)
{
	hf__node_change(node, HF__ON_MISSED);
	node->guid[0] = 0;
}

/* ---- life ---- */

struct node_key {
	const struct hf__lock *lock;
	uint64_t wire;
};

static bool is_same_node(const struct hf__table_link *link, const void *key)
{
	const struct hf__node *node = hf__table_item(link, struct hf__node, by_wire);
	const struct node_key *want = key;
	return node->wire == want->wire && node->lock == want->lock;
}

static uint32_t hash_wire(const struct hf__zk *zk, uint64_t wire)
{
	return hf__table_hash(&zk->nodes, &wire, sizeof wire);
}

struct hf__node *hf__node_find(struct hf__zk *zk, const struct hf__lock *lock, uint64_t wire)
{
	struct node_key key = {.lock = lock, .wire = wire};
	struct hf__table_link *link =
		hf__table_find(&zk->nodes, hash_wire(zk, wire), is_same_node, &key);
	return link ? hf__table_item(link, struct hf__node, by_wire) : NULL;
}

struct hf__node *hf__node_get(struct hf__zk *zk, const struct hf__cmd *cmd, uint64_t wire)
{
	struct hf__node *node = hf__node_find(zk, cmd->lock, wire);
	if (node || !(node = calloc(1, sizeof(*node))))
		return node;
	hf__list_init(&node->link);
	hf__list_init(&node->in_watch);
	node->state = HF__ZNODE_ABSENT;
	node->lock = cmd->lock;
	node->wire = wire;
	node->asker = cmd->wire;
	node->revoke_version = -1;
	hf__lock_add_ref(node->lock);
	hf__table_add(&zk->nodes, &node->by_wire, hash_wire(zk, node->wire));
	return node;
}

void hf__node_free_dead(struct hf__zk *zk, struct hf__node *node)
{
	if (!hf__node_is_dead(node) || node->requests > 0)
		return;
	struct hf__lock *lock = node->lock;
	free(node->gate);
	free(node);
	hf__lock_unref(zk->core, lock);
}

void hf__node_bury(struct hf__zk *zk, struct hf__node *node)
{
	hf__table_remove(&zk->nodes, &node->by_wire);
	hf__list_remove(&node->link);
	hf__watcher_leave(node);
	node->cmd = NULL;
	hf__node_change(node, HF__ON_BURIED);
	hf__node_free_dead(zk, node);
}

void hf__node_lose(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	if (hf__node_is_granted(node))
		hf__core_lose(zk->core, node->lock, node->wire, now);
	if (!node->cmd) {
		hf__node_bury(zk, node);
		return;
	}
	hf__list_remove(&node->link);
	hf__watcher_leave(node);
	node->watched = node->barrier_open = false;
	node->revoke_version = -1;
	hf__node_change(node, HF__ON_GONE);
}

void hf__node_lose_all(struct hf__zk *zk, int64_t now)
{
	struct hf__table_link *at = hf__table_next(&zk->nodes, NULL);
	while (at) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		at = hf__table_next(&zk->nodes, at);
		assert(!node->cmd); /* the link is down, and all commands are answered */
		hf__node_lose(zk, node, now);
	}
}

void hf__node_free_all(struct hf__zk *zk)
{
	struct hf__table_link *at;
	while ((at = hf__table_next(&zk->nodes, NULL))) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		node->requests = 0;
		hf__node_bury(zk, node);
	}
}

/* ---- the command ---- */

bool hf__node_asks(const struct hf__node *node)
{
	return node->cmd && node->cmd->verb == HF__ASK && !node->error;
}

struct hf__cmd *hf__node_take_cmd(struct hf__node *node)
{
	struct hf__cmd *cmd = node->cmd;
	node->cmd = NULL;
	return cmd;
}

bool hf__node_ignores(struct hf__zk *zk, const struct hf__zk_request *request)
{
	if (!request->node->cmd)
		return true;
	if (!hf__zk_request_is_dead(request->rc) && !hf__zk_request_is_lost(request->rc))
		return false;
	hf__doubt_link(zk, zk->library.error(request->rc));
	return true;
}

void hf__node_fail(struct hf__node *node, int error, const char *why)
{
	node->error = error;
	snprintf(node->why, sizeof node->why, "%s", why);
}

void hf__node_fail_rc(const struct hf__zk *zk, struct hf__node *node, int rc)
{
	switch (rc) {
	case ZNOCHILDRENFOREPHEMERALS:
		hf__node_fail(node, HF_ECONFLICT,
		              "a node in its path cannot have children; it may be a plain lock, so "
		              "choose another name");
		break;
	case ZNOAUTH:
	case ZINVALIDACL:
		hf__node_fail(node, HF_EREFUSED,
		              "not authorized by the server; see auth= and acl=");
		break;
	case ZBADARGUMENTS:
		hf__node_fail(node, HF_EINVAL,
		              "name: not a valid path; no part may be empty, '.' or '..'");
		break;
	default: hf__node_fail(node, HF_EREFUSED, zk->library.error(rc));
	}
}

static void make_held(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	hf__node_change(node, HF__ON_GRANTED);
	if (!node->watched)
		hf__watcher_leave(node);
	if (hf__list_empty(&node->link))
		hf__list_add(&zk->held, &node->link);
	if (!node->watched && (zk->watch_held_at == HF__NEVER || node->revocable))
		zk->watch_held_at = now + (node->revocable ? 0 : HF__WATCH_HELD_MS);
}

void hf__node_grant(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	struct hf__cmd *cmd = hf__node_take_cmd(node);
	assert(cmd && cmd->verb == HF__ASK);
	/*
	 * A grant that only one server has confirmed counts from when the session was last proven.
	 */
	if (zk->proof.sure_at < cmd->sent_at)
		cmd->sent_at = zk->proof.sure_at;
	make_held(zk, node, now);
	for (uint16_t i = 0; i < cmd->items; i++) {
		struct hf__node *other = hf__node_find(zk, cmd->lock, cmd->wire + i);
		if (other)
			make_held(zk, other, now);
	}
	hf__zk_answer_soon(zk, cmd, HF__GRANTED);
}

void hf__node_refuse(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	hf__zk_answer(zk, hf__node_take_cmd(node),
	              &(struct hf__answer){.outcome = HF__BUSY,
	                                   .ttl_ms = -1,
	                                   .channel = HF__CHANNEL_WAITER,
	                                   .watched = true},
	              now);
}

void hf__node_wait(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	assert(node->watcher);
	hf__node_change(node, HF__ON_BUSY);
	hf__node_refuse(zk, node, now);
}

/* Its state does not change: the next ask does all it takes to find out whether it is the first. */
void hf__node_wait_unwatched(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	assert(!node->watcher);
	hf__list_remove(&node->in_watch);
	hf__list_add(&zk->unwatched, &node->in_watch);
	if (zk->wake_at == HF__NEVER)
		zk->wake_at = now + UNWATCHED_MS;
	hf__node_refuse(zk, node, now);
}

/* A waiter that is woken up may wait again at once, so the list is taken off first. */
void hf__node_wake_unwatched(struct hf__zk *zk, int64_t now)
{
	struct hf__list nodes;
	hf__list_init(&nodes);
	hf__list_move(&nodes, &zk->unwatched);
	zk->wake_at = HF__NEVER;
	while (!hf__list_empty(&nodes)) {
		struct hf__node *node = hf__list_item(nodes.next, struct hf__node, in_watch);
		hf__watcher_leave(node);
		hf__core_wake_owner(zk->core, node->lock, node->asker, now);
	}
}

/* ---- permits that are given back by their ids ---- */

struct hf__node *hf__node_of_permit(struct hf__zk *zk, const struct hf__cmd *cmd, int32_t i)
{
	uint64_t wire = hf__permit_wire(zk->core, cmd->permit[i]);
	return wire ? hf__node_find(zk, cmd->lock, wire) : NULL;
}

bool hf__node_claim_permits(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	struct hf__node *node;
	for (int32_t i = 0; i < cmd->items; i++)
		if ((node = hf__node_of_permit(zk, cmd, i)) && node->releaser &&
		    node->releaser != cmd)
			return false;
	for (int32_t i = 0; i < cmd->items; i++)
		if ((node = hf__node_of_permit(zk, cmd, i)))
			node->releaser = cmd;
	return true;
}

void hf__node_unclaim_permits(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	for (int32_t i = 0; i < cmd->items; i++) {
		struct hf__node *node = hf__node_of_permit(zk, cmd, i);
		if (node && node->releaser == cmd)
			node->releaser = NULL;
	}
}

/* ---- nodes that the server does not let us remove ---- */

static void mark_leftover(struct hf__node *node)
{
	if (node && !node->cmd)
		node->leftover = true;
}

/* Answering the command may submit the next one for the same nodes, so they are marked before. */
void hf__node_fail_leftover(struct hf__zk *zk, struct hf__node *node, int rc, const char *what,
                            int64_t now)
{
	struct hf__cmd *cmd = hf__node_take_cmd(node);
	assert(cmd);
	if (cmd->verb == HF__ASK || cmd->verb == HF__SETTLE) {
		mark_leftover(node);
		for (uint16_t i = 0; i < cmd->items; i++)
			mark_leftover(hf__node_find(zk, cmd->lock, cmd->wire + i));
		if (zk->leftovers_at == HF__NEVER)
			zk->leftovers_at = now + HF__LEFTOVER_MS;
	} else {
		hf__node_unclaim_permits(zk, cmd);
	}
	hf__zk_answer_rc(zk, cmd, rc, what, now);
}
