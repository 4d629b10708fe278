/* One acquisition as a node: its record, what it is to do next, and its end. */
#include "zk/zk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static bool is_plain(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF__NODE_PLAIN;
}

void hf__node_part_folder(const struct hf__zk *zk, const struct hf__lock *lock, enum hf__part part,
                          char ret_path[HF__ZK_PATH])
{
	static const char *const below[] = {
		[HF__PART_LOCK] = "", [HF__PART_GATE] = "/locks", [HF__PART_LEASE] = "/leases"};
	snprintf(ret_path, HF__ZK_PATH, "%s/%s%s", zk->config->chroot, hf__lock_name(lock),
	         below[part]);
}

void hf__node_folder(const struct hf__zk *zk, const struct hf__lock *lock,
                     char ret_path[HF__ZK_PATH])
{
	hf__node_part_folder(zk, lock, hf__lease_is_kind(lock) ? HF__PART_LEASE : HF__PART_LOCK,
	                     ret_path);
}

void hf__node_child(const struct hf__zk *zk, const struct hf__node *node, const char *child,
                    char ret_path[HF__ZK_PATH])
{
	char folder[HF__ZK_PATH];
	hf__node_part_folder(zk, node->lock, (enum hf__part)node->part, folder);
	if (snprintf(ret_path, HF__ZK_PATH, "%s/%s", folder, child) >= HF__ZK_PATH)
		ret_path[0] = 0; /* no path: refused */
}

void hf__node_path(const struct hf__zk *zk, const struct hf__node *node, char ret_path[HF__ZK_PATH])
{
	if (is_plain(node))
		hf__node_folder(zk, node->lock, ret_path);
	else
		hf__node_child(zk, node, node->name, ret_path);
}

/* ---- records ---- */

struct node_key {
	const struct hf__lock *lock;
	uint64_t wire;
};

static bool same_node(const struct hf__table_link *link, const void *key)
{
	const struct hf__node *node = hf__table_item(link, struct hf__node, by_wire);
	const struct node_key *want = key;
	return node->wire == want->wire && node->lock == want->lock;
}

static uint32_t hash_of(const struct hf__zk *zk, uint64_t wire)
{
	return hf__table_hash(&zk->nodes, &wire, sizeof wire);
}

struct hf__node *hf__node_find(struct hf__zk *zk, const struct hf__lock *lock, uint64_t wire)
{
	struct node_key key = {.lock = lock, .wire = wire};
	struct hf__table_link *link =
		hf__table_find(&zk->nodes, hash_of(zk, wire), same_node, &key);
	return link ? hf__table_item(link, struct hf__node, by_wire) : NULL;
}

/* As before anything was made. */
static void reset(struct hf__node *node)
{
	free(node->gate);
	node->gate = NULL;
	node->part = hf__lease_is_kind(node->lock) ? HF__PART_GATE : HF__PART_LOCK;
	node->state = HF__ZNODE_NEW;
	node->granted = node->guarded = node->leased = node->ready = node->leaving = false;
	node->heard = -1;
	hf__watcher_leave(node);
}

struct hf__node *hf__node_of(struct hf__zk *zk, const struct hf__cmd *cmd, uint64_t wire)
{
	struct hf__node *node = hf__node_find(zk, cmd->lock, wire);
	if (node || !(node = calloc(1, sizeof(*node))))
		return node;
	hf__list_init(&node->link);
	hf__list_init(&node->in_watch);
	node->lock = cmd->lock;
	node->wire = wire;
	node->asker = cmd->wire;
	node->lock->refs++;
	reset(node);
	hf__table_add(&zk->nodes, &node->by_wire, hash_of(zk, node->wire));
	return node;
}

static void free_dead(struct hf__zk *zk, struct hf__node *node)
{
	if (!node->dead || node->requests > 0)
		return;
	struct hf__lock *lock = node->lock;
	free(node->gate);
	free(node);
	hf__lock_unref(zk->core, lock);
}

/* Nobody's from now on. */
static void bury(struct hf__zk *zk, struct hf__node *node)
{
	hf__table_remove(&zk->nodes, &node->by_wire);
	hf__list_remove(&node->link);
	hf__watcher_leave(node);
	node->cmd = NULL;
	node->dead = true;
	free_dead(zk, node);
}

void hf__node_gone(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	if (node->granted)
		hf__core_gone(zk->core, node->lock, node->wire, now);
	if (node->cmd) {
		node->taken = node->granted && node->cmd->verb != HF__ASK;
		hf__list_remove(&node->link);
		reset(node);
	} else {
		bury(zk, node);
	}
}

void hf__node_drop_all(struct hf__zk *zk, int64_t now)
{
	struct hf__table_link *at = hf__table_next(&zk->nodes, NULL);
	while (at) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		at = hf__table_next(&zk->nodes, at);
		hf__node_gone(zk, node, now);
	}
}

void hf__node_free_all(struct hf__zk *zk)
{
	struct hf__table_link *at;
	while ((at = hf__table_next(&zk->nodes, NULL))) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		node->requests = 0;
		bury(zk, node);
	}
}

/* ---- answers ---- */

struct hf__cmd *hf__node_take_cmd(struct hf__node *node)
{
	struct hf__cmd *cmd = node->cmd;
	node->cmd = NULL;
	return cmd;
}

/* A request came back without a result: the command is answered once the session is sure of itself. */
bool hf__node_is_over(struct hf__zk *zk, const struct hf__zk_request *request)
{
	if (!request->node->cmd)
		return true;
	if (!hf__zk_request_is_dead(request->rc) && !hf__zk_request_is_lost(request->rc))
		return false;
	hf__doubt_link(zk, zk->library.error(request->rc));
	return true;
}

/* The node must not stay behind, so it goes first. */
void hf__node_fail(struct hf__zk *zk, struct hf__node *node, int error, const char *why,
                   int64_t now)
{
	node->error = error;
	snprintf(node->why, sizeof node->why, "%s", why);
	hf__node_advance(zk, node, now);
}

void hf__node_fail_rc(struct hf__zk *zk, struct hf__node *node, int rc, int64_t now)
{
	bool conflict = rc == ZNOCHILDRENFOREPHEMERALS;
	bool auth = rc == ZNOAUTH || rc == ZINVALIDACL;
	bool path = rc == ZBADARGUMENTS;
	hf__node_fail(zk, node,
	              conflict ? HF_ECONFLICT
	              : path   ? HF_EINVAL
	                       : HF_EREFUSED,
	              conflict ? "the path is a node that cannot have children: a plain lock?"
	              : auth   ? "the server does not allow it: not authorized; see auth= and acl="
	              : path   ? "name: no path; none of its parts may be empty, '.' or '..'"
	                       : zk->library.error(rc),
	              now);
}

/* ---- grants ---- */

static void hold_on(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	node->granted = true;
	node->waits = false;
	if (!node->guarded)
		hf__watcher_leave(node);
	if (hf__list_empty(&node->link))
		hf__list_add(&zk->held, &node->link);
	if (!node->guarded && (zk->watch_held_at == HF__NEVER || node->revocable))
		zk->watch_held_at = now + (node->revocable ? 0 : HF__WATCH_HELD_MS);
}

void hf__node_grant(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	struct hf__cmd *cmd = hf__node_take_cmd(node);
	/* What only one server has said counts from when the session was last proven. */
	if (zk->proof.sure_at < cmd->sent_at)
		cmd->sent_at = zk->proof.sure_at;
	hold_on(zk, node, now);
	for (uint16_t i = 0; i < cmd->items; i++) {
		struct hf__node *other = hf__node_find(zk, cmd->lock, cmd->wire + i);
		if (other)
			hold_on(zk, other, now);
	}
	hf__zk_answer_soon(zk, cmd, HF__GRANTED);
}

void hf__node_busy(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	hf__zk_answer(zk, hf__node_take_cmd(node),
	              &(struct hf__answer){.outcome = HF__BUSY,
	                                   .ttl_ms = -1,
	                                   .channel = HF__CHANNEL_WAITER,
	                                   .watched = true},
	              now);
}

/* ---- the end of a node ---- */

/* A node of the same acquisition that is still there. */
static struct hf__node *another(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	struct hf__node *node = NULL;
	for (uint16_t i = 0; !node && i < cmd->items; i++)
		node = hf__node_find(zk, cmd->lock, cmd->wire + i);
	return node;
}

/* Its command goes on with the next node of the same acquisition, or is answered. */
static void end(struct hf__zk *zk, struct hf__node *node, bool lost, int64_t now)
{
	struct hf__cmd *cmd = hf__node_take_cmd(node);
	char why[sizeof node->why];
	int error = node->error;
	memcpy(why, node->why, sizeof why);
	bury(zk, node);
	if (!cmd)
		return;
	bool release = cmd->verb == HF__PERMITS_RELEASE;
	struct hf__node *next = release ? NULL : another(zk, cmd);
	if (next) {
		next->error = error;
		memcpy(next->why, why, sizeof why);
		hf__node_give(zk, next, cmd);
	} else if (release) {
		hf__total_removed(zk, cmd, lost);
	} else if (error) {
		hf__zk_answer_error(zk, cmd, error, why, now);
	} else {
		hf__zk_answer_soon(zk, cmd, lost ? HF__GONE : HF__DONE);
	}
}

/* The lease is gone or was never made; now the gate, if there is one. */
static bool go_back_to_gate(struct hf__node *node)
{
	if (!node->gate)
		return false;
	snprintf(node->name, sizeof node->name, "%s", node->gate);
	free(node->gate);
	node->gate = NULL;
	node->part = HF__PART_GATE;
	node->state = HF__ZNODE_THERE;
	return true;
}

static void removed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__zk_request_is_lost(request->rc) || hf__zk_request_is_dead(request->rc)) {
		(void)hf__node_is_over(zk, request);
	} else if (request->rc != ZOK && request->rc != ZNONODE) {
		if (node->cmd)
			hf__zk_answer_failed(zk, hf__node_take_cmd(node), request->rc,
			                     "the node cannot be removed", now);
	} else if (go_back_to_gate(node)) {
		hf__node_advance(zk, node, now);
	} else {
		hf__alone_note_removed(zk, node);
		if (request->rc == ZOK)
			hf__alone_note_write(zk, node);
		end(zk, node, request->rc == ZNONODE && (node->granted || node->taken), now);
	}
}

static void delete_node(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, removed, node);
	hf__node_path(zk, node, path);
	node->leaving = true;
	if (request)
		hf__zk_request_remove(request, path);
	else
		hf__doubt_memory(zk);
}

static void checked(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	if (request->rc == ZOK && request->stat.czxid == node->czxid) {
		delete_node(zk, node);
		return;
	}
	request->rc = ZNONODE;
	removed(zk, request, now);
}

/* The name of a plain lock is everybody's: what another has made there meanwhile must stay. */
static void remove_node(struct hf__zk *zk, struct hf__node *node)
{
	if (!is_plain(node)) {
		delete_node(zk, node);
		return;
	}
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, checked, node);
	hf__node_path(zk, node, path);
	if (request)
		hf__zk_request_exists(request, path, NULL);
	else
		hf__doubt_memory(zk);
}

/* ---- commands ---- */

/* There, and its command asks for more. */
static void go_on(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	if (node->leased)
		hf__lease_next(zk, node, now);
	else if (is_plain(node))
		hf__node_grant(zk, node, now);
	else
		hf__make_list(zk, node);
}

void hf__node_advance(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	bool asks = node->cmd && node->cmd->verb == HF__ASK && !node->error;
	if (!node->cmd || node->requests > 1)
		return;
	if (!asks && node->state == HF__ZNODE_NEW)
		(void)go_back_to_gate(node);
	switch ((enum hf__node_state)node->state) {
	case HF__ZNODE_NEW:
		if (asks)
			hf__make(zk, node);
		else
			end(zk, node, node->taken, now);
		break;
	case HF__ZNODE_MAKING: break;
	case HF__ZNODE_UNKNOWN: hf__make_search(zk, node); break;
	case HF__ZNODE_THERE:
		if (asks)
			go_on(zk, node, now);
		else
			remove_node(zk, node);
	}
}

/* A grant that came too late is asked for again: nothing is held before that is answered. */
static void take_back(struct hf__node *node)
{
	node->granted = node->guarded = false;
	hf__list_remove(&node->link);
	/* Others are listed; a plain one is looked for, since it may be gone. */
	if (is_plain(node) && node->state == HF__ZNODE_THERE)
		node->state = HF__ZNODE_UNKNOWN;
}

void hf__node_give(struct hf__zk *zk, struct hf__node *node, struct hf__cmd *cmd)
{
	if (node->cmd && node->cmd != cmd)
		hf__zk_answer_soon(zk, node->cmd, HF__UNKNOWN); /* nobody waits for it any more */
	if (cmd->verb == HF__ASK && node->granted)
		take_back(node);
	node->cmd = cmd;
	node->waits = false;
	if (!node->granted)
		hf__watcher_leave(node);
	if (cmd->verb == HF__ASK)
		node->revocable = cmd->revocable;
	if (node->requests == 0) {
		node->requests++; /* as inside a request's end */
		hf__node_advance(zk, node, 0);
		hf__node_release(zk, node, 0);
	}
}

/* The node that the command has to do with next: of several the first that is not ready. */
static struct hf__node *pick(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	bool asks = cmd->verb == HF__ASK;
	struct hf__node *node = NULL;
	for (uint16_t i = 0; i < cmd->items; i++) {
		node = hf__node_find(zk, cmd->lock, cmd->wire + i);
		if (!node && asks)
			return hf__node_of(zk, cmd, cmd->wire + i);
		if (node && !(asks && node->leased && !node->gate))
			return node;
	}
	if (cmd->items > 0)
		return node;
	return asks ? hf__node_of(zk, cmd, cmd->wire) : hf__node_find(zk, cmd->lock, cmd->wire);
}

int hf__node_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__node *node = pick(zk, cmd);
	if (node)
		hf__node_give(zk, node, cmd);
	else if (cmd->verb == HF__SETTLE)
		hf__zk_answer_soon(zk, cmd, HF__GONE);
	return node || cmd->verb == HF__SETTLE ? 0 : HF_ENOMEM;
}

void hf__node_release(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	node->requests--;
	if (node->dead) {
		free_dead(zk, node);
	} else if (node->requests == 0 && node->cmd && !zk->doubted) {
		node->requests++;
		hf__node_advance(zk, node, now);
		node->requests--;
		free_dead(zk, node);
	}
}
