/*
 * What a node's command does next. A step sends requests or answers the command; the answers to
 * requests only change the node's state, and when none is in flight any more the next step follows
 * from that.
 */
#include "base/complete.h"
#include "zk/zk.h"

#include <assert.h>
#include <string.h>

typedef void step_fn(struct hf__zk *zk, struct hf__node *node, int64_t now);

static void give(struct hf__zk *zk, struct hf__node *node, struct hf__cmd *cmd);

/* ---- permits that are given back by their ids ---- */

/* A node that another command works on is lost and being removed. */
static struct hf__node *find_permit(struct hf__zk *zk, const struct hf__cmd *cmd, int32_t i)
{
	struct hf__node *node = hf__node_of_permit(zk, cmd, i);
	bool ours = node && hf__node_is_granted(node) && (!node->cmd || node->cmd == cmd);
	return ours ? node : NULL;
}

/* The index of the first permit that is not held any more, or -1. */
static int32_t find_missing(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	for (int32_t i = 0; i < cmd->items; i++)
		if (!find_permit(zk, cmd, i))
			return i;
	return -1;
}

/* The command's count is 1 more than the index of a permit that was lost, or 0. */
static void release_next(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__node *node = NULL;
	while (!node && cmd->backend.step < cmd->items)
		node = find_permit(zk, cmd, (int32_t)cmd->backend.step++);
	hf__zk_answer_extend(zk, cmd);
	if (node) {
		give(zk, node, cmd);
		return;
	}
	bool lost = cmd->count > 0;
	cmd->count -= lost;
	hf__node_unclaim_permits(zk, cmd);
	hf__zk_answer_soon(zk, cmd, lost ? HF__GONE : HF__DONE);
}

/*
 * All of them are released or none, except that a repeat may find some that were released before.
 */
void hf__steps_submit_ids(struct hf__zk *zk, struct hf__cmd *cmd)
{
	int32_t i = find_missing(zk, cmd);
	bool releases = cmd->verb == HF__PERMITS_RELEASE;
	if (releases && !hf__node_claim_permits(zk, cmd)) {
		hf__zk_answer_soon(zk, cmd, HF__NOT_NOW);
		return;
	}
	if (releases && cmd->again) {
		cmd->count = i + 1;
		release_next(zk, cmd);
		return;
	}
	/* The lease of a permit lasts as long as the session, so it is reported as -1. */
	cmd->count = i >= 0 ? i : cmd->verb == HF__PERMITS_LEASE ? -1 : 0;
	if (i < 0 && releases) {
		release_next(zk, cmd);
		return;
	}
	if (releases)
		hf__node_unclaim_permits(zk, cmd);
	hf__zk_answer_soon(zk, cmd, i >= 0 ? HF__GONE : HF__DONE);
}

/* ---- the end of a node ---- */

/* A node of the same acquisition that is left. */
static struct hf__node *find_another(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	struct hf__node *node = NULL;
	for (uint16_t i = 0; !node && i < cmd->items; i++)
		node = hf__node_find(zk, cmd->lock, cmd->wire + i);
	return node;
}

/* Answers a command whose last node is gone. */
static void answer_end(struct hf__zk *zk, struct hf__cmd *cmd, const struct hf__node *was,
                       bool lost, int64_t now)
{
	if (was->error)
		hf__zk_answer_error(zk, cmd, was->error, was->why, now);
	else
		hf__zk_answer_soon(zk, cmd, lost ? HF__GONE : HF__DONE);
}

/*
 * The node is gone. Its command continues with the next one of the same acquisition, or is
 * answered.
 */
static void end_node(struct hf__zk *zk, struct hf__node *node, bool lost, int64_t now)
{
	struct hf__cmd *cmd = hf__node_take_cmd(node);
	const struct hf__node was = *node; /* burying the node may free it */
	hf__node_bury(zk, node);
	if (!cmd)
		return;
	if (cmd->verb == HF__PERMITS_RELEASE) {
		if (lost)
			cmd->count = (int32_t)cmd->backend.step;
		release_next(zk, cmd);
		return;
	}
	struct hf__node *next = find_another(zk, cmd);
	if (!next) {
		answer_end(zk, cmd, &was, lost, now);
		return;
	}
	hf__node_fail(next, was.error, was.why);
	give(zk, next, cmd);
}

static void finish_absent(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	end_node(zk, node, node->state == HF__ZNODE_TAKEN_AWAY, now);
}

/* ---- removal ---- */

static void finish_removed(struct hf__zk *zk, struct hf__node *node, bool by_us, int64_t now)
{
	bool held = hf__node_is_granted(node) || node->state == HF__ZNODE_TAKEN_AWAY;
	if (hf__lease_return_to_gate(node))
		return;
	hf__alone_note_removed(zk, node);
	if (by_us)
		hf__alone_note_write(zk, node);
	end_node(zk, node, !by_us && held, now);
}

static void on_node_removed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__zk_request_is_lost(request->rc) || hf__zk_request_is_dead(request->rc))
		(void)hf__node_ignores(zk, request);
	else if (request->rc == ZOK || request->rc == ZNONODE)
		finish_removed(zk, node, request->rc == ZOK, now);
	else if (node->cmd)
		hf__node_fail_leftover(zk, node, request->rc, "cannot delete the lock's node", now);
}

static void delete_node(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, on_node_removed, node);
	hf__node_path(zk, node, path);
	hf__node_change(node, HF__ON_DELETE);
	if (request)
		hf__zk_request_remove(request, path);
	else
		hf__doubt_memory(zk);
}

static void on_plain_checked(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_ignores(zk, request))
		return;
	if (request->rc == ZOK && request->stat.czxid == node->czxid)
		delete_node(zk, node);
	else if (request->rc == ZOK || request->rc == ZNONODE)
		finish_removed(zk, node, false, now);
	else
		hf__node_fail_leftover(zk, node, request->rc,
		                       "cannot find out whether the lock's node exists", now);
}

/* Another client may have created a node at a plain lock's path by now, and that one must stay. */
static void remove_node(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	(void)now;
	if (!hf__node_is_plain(node)) {
		delete_node(zk, node);
		return;
	}
	struct hf__zk_request *request = hf__zk_request_new(zk, on_plain_checked, node);
	hf__node_path(zk, node, path);
	if (request)
		hf__zk_request_exists(request, path, NULL);
	else
		hf__doubt_memory(zk);
}

void hf__steps_delete_leftover(struct hf__zk *zk, struct hf__node *node)
{
	assert(node->leftover && !node->cmd);
	if (node->requests > 0 || !hf__node_state_exists(node->state) || hf__node_is_plain(node))
		return;
	if (hf__node_state_is_waiting(node->state))
		hf__node_change(node, HF__ON_RESUMED);
	delete_node(zk, node);
}

static void remove_gate(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	(void)hf__lease_return_to_gate(node);
	remove_node(zk, node, now);
}

/* ---- steps of an ask ---- */

static void create(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	(void)now;
	hf__create_node(zk, node);
}

static void search(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	(void)now;
	hf__search_node(zk, node);
}

static void list(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	if (hf__node_is_plain(node))
		hf__node_grant(zk, node, now); /* there is no queue: the node is the lock */
	else
		hf__admit_list_proven(zk, node);
}

static void open_gate(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	(void)now;
	hf__lease_open_gate(zk, node);
}

/* Several permits are taken one after the other, as Curator does it. */
static void take_next(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	struct hf__cmd *cmd = node->cmd;
	uint64_t taken = node->wire - cmd->wire + 1;
	if (taken >= cmd->items) {
		if (hf__admit_prove(zk, node))
			hf__node_grant(zk, node, now);
		return;
	}
	if (!hf__core_is_wanted(cmd)) {
		hf__node_refuse(zk, node, now); /* the core then removes what was taken */
		return;
	}
	hf__zk_answer_extend(zk, cmd);
	struct hf__node *next = hf__node_get(zk, cmd, cmd->wire + taken);
	if (next)
		give(zk, next, hf__node_take_cmd(node));
	else
		hf__doubt_memory(zk);
}

static void await(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	(void)zk;
	(void)node;
	(void)now;
}

/* ---- which step is next ---- */

/*
 * By the node's state: what an ask does, and what a command does that gives the node up. A state
 * without steps never has a command: one ends the wait, and an ask takes a grant back.
 */
/* clang-format off */
#define STEP_ROWS(ROW)                                                                             \
	ROW(HF__ZNODE_ABSENT, {create, finish_absent})                                             \
	ROW(HF__ZNODE_BLOCKED, {create, finish_absent})                                            \
	ROW(HF__ZNODE_CREATING, {await, await})                                                    \
	ROW(HF__ZNODE_CREATING_LONE, {await, await})                                               \
	ROW(HF__ZNODE_UNKNOWN, {search, search})                                                   \
	ROW(HF__ZNODE_QUEUED, {list, remove_node})                                                 \
	ROW(HF__ZNODE_DELETING, {NULL, remove_node})                                               \
	ROW(HF__ZNODE_LEASE_ABSENT, {create, remove_gate})                                         \
	ROW(HF__ZNODE_LEASE_CREATING, {await, await})                                              \
	ROW(HF__ZNODE_LEASE_UNKNOWN, {search, search})                                             \
	ROW(HF__ZNODE_LEASE_QUEUED, {list, remove_node})                                           \
	ROW(HF__ZNODE_LEASE_COUNTED, {open_gate, remove_node})                                     \
	ROW(HF__ZNODE_LEASE_TAKEN, {take_next, remove_node})                                       \
	ROW(HF__ZNODE_LEASE_DELETING, {NULL, remove_node})                                         \
	ROW(HF__ZNODE_HELD, {NULL, remove_node})                                                   \
	ROW(HF__ZNODE_RELEASING, {NULL, remove_node})                                              \
	ROW(HF__ZNODE_TAKEN_AWAY, {NULL, finish_absent})
/* clang-format on */

static const struct {
	step_fn *ask, *give_up;
} steps[HF__ZNODE_STATES] = {STEP_ROWS(HF__ROW)};

HF__ROWS_ARE(STEP_ROWS, HF__BITS_BEFORE(HF__ZNODE_DEAD) & ~HF__BIT(HF__ZNODE_NONE) &
                                ~HF__BIT(HF__ZNODE_OUTSIDE) & ~HF__BIT(HF__ZNODE_WAITING) &
                                ~HF__BIT(HF__ZNODE_LEASE_WAITING));

/* Takes the next step for the node's command; no other request for the node is in flight. */
static void advance(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	step_fn *step = hf__node_asks(node) ? steps[node->state].ask : steps[node->state].give_up;
	assert(node->cmd && step);
	node->requests++; /* keeps it until the step is done */
	step(zk, node, now);
	node->requests--;
	hf__node_free_dead(zk, node);
}

void hf__steps_end_request(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	assert(node->requests > 0);
	node->requests--;
	if (hf__node_is_dead(node))
		hf__node_free_dead(zk, node);
	else if (node->requests == 0 && node->cmd && !zk->doubted)
		advance(zk, node, now);
}

/* ---- commands ---- */

/* A grant that came too late is asked for again: nothing is held before that is answered. */
static void take_back(struct hf__node *node)
{
	node->watched = false;
	hf__list_remove(&node->link);
	hf__node_change(node, hf__node_is_plain(node)           ? HF__ON_RETRY_PLAIN
	                      : hf__node_has_leases(node->lock) ? HF__ON_RETRY_LEASE
	                                                        : HF__ON_RETRY);
}

/* The node works for the command from now on. */
static void give(struct hf__zk *zk, struct hf__node *node, struct hf__cmd *cmd)
{
	if (node->cmd && node->cmd != cmd) {
		if (node->cmd->verb == HF__PERMITS_RELEASE)
			hf__node_unclaim_permits(zk, node->cmd);
		hf__zk_answer_soon(zk, node->cmd, HF__UNKNOWN); /* nobody waits for it any more */
	}
	node->cmd = cmd;
	node->leftover = false;
	if (hf__node_state_is_waiting(node->state))
		hf__node_change(node, HF__ON_RESUMED);
	if (cmd->verb == HF__ASK && hf__node_is_granted(node))
		take_back(node);
	if (!hf__node_is_granted(node))
		hf__watcher_leave(node);
	if (cmd->verb == HF__ASK)
		node->revocable = cmd->revocable;
	if (node->requests == 0)
		advance(zk, node, 0);
}

/* An ask has nothing more to do for this node. */
static bool is_ready(const struct hf__node *node)
{
	return node->state == HF__ZNODE_LEASE_TAKEN || node->state == HF__ZNODE_HELD;
}

/* The node that the command has to do with next: of several the first that is not ready. */
static struct hf__node *pick(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	bool asks = cmd->verb == HF__ASK;
	struct hf__node *node = NULL;
	for (uint16_t i = 0; i < cmd->items; i++) {
		node = hf__node_find(zk, cmd->lock, cmd->wire + i);
		if (!node && asks)
			return hf__node_get(zk, cmd, cmd->wire + i);
		if (node && !(asks && is_ready(node)))
			return node;
	}
	if (cmd->items > 0)
		return node;
	return asks ? hf__node_get(zk, cmd, cmd->wire) : hf__node_find(zk, cmd->lock, cmd->wire);
}

int hf__steps_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__node *node = pick(zk, cmd);
	if (node)
		give(zk, node, cmd);
	else if (cmd->verb == HF__SETTLE)
		hf__zk_answer_soon(zk, cmd, HF__GONE);
	return node || cmd->verb == HF__SETTLE ? 0 : HF_ENOMEM;
}
