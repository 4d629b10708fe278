/*
 * Barriers as Curator has them: a node that blocks everybody, and members that enter and leave
 * together.
 */
#include "zk/zk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ready[] = "ready";

static struct hf__zk_request *new_barrier_request(struct hf__zk *zk, struct hf__cmd *cmd,
                                                  hf__zk_request_fn *done)
{
	struct hf__zk_request *request = hf__zk_request_new(zk, done, NULL);
	if (request)
		request->cmd = cmd;
	return request;
}

static void answer_ask(struct hf__zk *zk, struct hf__cmd *cmd, bool granted, int64_t now)
{
	hf__zk_answer(zk, cmd,
	              &(struct hf__answer){.outcome = granted ? HF__GRANTED : HF__BUSY,
	                                   .ttl_ms = -1,
	                                   .channel = HF__CHANNEL_WAITER,
	                                   .watched = true},
	              now);
}

/* ---- the barrier, a single node ---- */

static void on_set(struct hf__zk *zk, struct hf__zk_request *request, int64_t now);

static int set_barrier(struct hf__zk *zk, struct hf__cmd *cmd)
{
	char path[HF__ZK_PATH];
	const char *text = hf__core_settings(zk->core)->description;
	struct hf__zk_request *request = new_barrier_request(zk, cmd, on_set);
	if (!request)
		return HF_ENOMEM;
	hf__node_holders_path(zk, cmd->lock, path);
	hf__zk_request_create(request, path, text, strlen(text), HF__MODE_PERSISTENT);
	return 0;
}

static void on_barrier_folders(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc != ZOK)
		hf__zk_answer_rc(zk, request->cmd, request->rc,
		                 "cannot create the folder of the barrier", now);
	else if (set_barrier(zk, request->cmd))
		hf__doubt_memory(zk);
}

static void on_set(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	char path[HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc == ZNONODE) {
		hf__node_holders_path(zk, cmd->lock, path);
		hf__folder_make(zk, NULL, cmd, path, on_barrier_folders, now);
	} else if (request->rc == ZOK || request->rc == ZNODEEXISTS) {
		hf__zk_answer_count(zk, cmd, request->rc == ZOK, now);
	} else {
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot create the barrier", now);
	}
}

static void on_barrier_removed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc == ZOK || request->rc == ZNONODE)
		hf__zk_answer_count(zk, request->cmd, request->rc == ZOK, now);
	else
		hf__zk_answer_rc(zk, request->cmd, request->rc, "cannot delete the barrier", now);
}

/*
 * A call asks whether the barrier exists, or waits until it does not. Get leaves no watch on a
 * missing node.
 */
static void on_read(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__zk_lock *zk_lock = request->watcher ? hf__zk_lock_get(zk, cmd->lock) : NULL;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot read the barrier", now);
	else if (cmd->verb != HF__ASK)
		hf__zk_answer_count(zk, cmd, request->rc == ZOK, now);
	else if (request->rc == ZOK &&
	         (!zk_lock || hf__watcher_join_lock(request->watcher, zk_lock)))
		hf__doubt_memory(zk);
	else
		answer_ask(zk, cmd, request->rc == ZNONODE, now);
}

static int read_barrier(struct hf__zk *zk, struct hf__cmd *cmd)
{
	char path[HF__ZK_PATH];
	hf__node_holders_path(zk, cmd->lock, path);
	bool waits = cmd->verb == HF__ASK;
	struct hf__watcher *watcher = waits ? hf__watcher_at(zk, path, false) : NULL;
	struct hf__zk_request *request =
		waits && !watcher ? NULL : new_barrier_request(zk, cmd, on_read);
	if (!request)
		return HF_ENOMEM;
	hf__zk_request_get(request, path, watcher);
	return 0;
}

static int remove_barrier(struct hf__zk *zk, struct hf__cmd *cmd)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = new_barrier_request(zk, cmd, on_barrier_removed);
	if (!request)
		return HF_ENOMEM;
	hf__node_holders_path(zk, cmd->lock, path);
	hf__zk_request_remove(request, path);
	return 0;
}

/* ---- entering together ---- */

/* The number of children except for "ready", and the first and the last of them by name. */
static size_t count_members(const struct hf__zk_request *listed, const char **ret_lowest,
                            const char **ret_highest)
{
	size_t n = 0;
	*ret_lowest = *ret_highest = "";
	for (size_t i = 0; i < listed->count; i++) {
		const char *name = listed->names[i];
		if (strcmp(name, ready) == 0)
			continue;
		if (n == 0 || strcmp(name, *ret_lowest) < 0)
			*ret_lowest = name;
		if (n == 0 || strcmp(name, *ret_highest) > 0)
			*ret_highest = name;
		n++;
	}
	return n;
}

static void on_ready_made(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_ignores(zk, request) || !hf__node_asks(node))
		return;
	if (request->rc == ZOK || request->rc == ZNODEEXISTS)
		hf__node_grant(zk, node, now);
	else
		hf__node_fail_rc(zk, node, request->rc);
}

static void on_ready_watched(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_ignores(zk, request) || !hf__node_asks(node))
		return;
	if (request->rc == ZOK)
		hf__node_grant(zk, node, now);
	else if (request->rc != ZNONODE)
		hf__node_fail_rc(zk, node, request->rc);
	else if (node->watcher)
		hf__node_wait(zk, node, now);
	/* Otherwise "ready" was created meanwhile, and the next step lists the members again. */
}

static void make_ready(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, on_ready_made, node);
	hf__node_child(zk, node, ready, path);
	if (request)
		hf__zk_request_create(request, path, "", 0, HF__MODE_PERSISTENT);
	else
		hf__doubt_memory(zk);
}

static void watch_ready(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	hf__node_child(zk, node, ready, path);
	struct hf__watcher *watcher = hf__watcher_at(zk, path, false);
	struct hf__zk_request *request =
		watcher ? hf__zk_request_new(zk, on_ready_watched, node) : NULL;
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	hf__watcher_join(watcher, node);
	hf__zk_request_exists(request, path, watcher);
}

void hf__zk_barrier_check(struct hf__zk *zk, struct hf__node *node,
                          const struct hf__zk_request *listed, int64_t now)
{
	const char *lowest, *highest;
	size_t members = count_members(listed, &lowest, &highest);
	if (!hf__zk_request_lists(listed, node->name))
		hf__node_start_over(node);
	else if (node->barrier_open || hf__zk_request_lists(listed, ready))
		hf__node_grant(zk, node, now);
	else if (members >= (size_t)node->cmd->count)
		make_ready(zk, node);
	else if (node->cmd->place_ms == 0)
		hf__node_refuse(zk, node, now);
	else
		watch_ready(zk, node);
}

/* ---- leaving together ---- */

static void on_ready_removed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc == ZOK || request->rc == ZNONODE)
		answer_ask(zk, request->cmd, true, now);
	else
		hf__zk_answer_rc(zk, request->cmd, request->rc, "cannot delete the node 'ready'",
		                 now);
}

static void remove_ready(struct hf__zk *zk, struct hf__cmd *cmd)
{
	char folder[HF__ZK_PATH], path[HF__ZK_PATH + sizeof ready];
	struct hf__zk_request *request = new_barrier_request(zk, cmd, on_ready_removed);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	hf__node_holders_path(zk, cmd->lock, folder);
	snprintf(path, sizeof path, "%s/%s", folder, ready);
	hf__zk_request_remove(request, path);
}

static void check_exit(struct hf__zk *zk, struct hf__cmd *cmd, const char *member);

static void on_member_watched(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__zk_lock *zk_lock = hf__zk_lock_get(zk, cmd->lock);
	if (request->rc == ZNONODE) {
		check_exit(zk, cmd, NULL);
	} else if (request->rc != ZOK) {
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot read a member's node", now);
	} else if (!zk_lock || hf__watcher_join_lock(request->watcher, zk_lock)) {
		hf__doubt_memory(zk);
	} else {
		answer_ask(zk, cmd, false, now);
	}
}

/*
 * The first member by name stays until the others have left, so that everybody can see that some
 * are inside. The others delete their nodes at once and then wait for the first. The last to leave
 * deletes "ready".
 */
static void on_exit_listed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	const char *lowest, *highest;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot list the members", now);
		return;
	}
	size_t members = count_members(request, &lowest, &highest);
	struct hf__lock *in = hf__lock_find(zk->core, HF__MEMBER, hf__lock_name(cmd->lock));
	const struct hf__node *own = in ? hf__node_find(zk, in, cmd->from) : NULL;
	bool lost = !own && cmd->from; /* its release will report that */
	/* Without "ready" the present members have entered the next round. */
	bool all_left = !own && !hf__zk_request_lists(request, ready);
	if (lost || all_left)
		answer_ask(zk, cmd, true, now);
	else if (!own && members == 0)
		remove_ready(zk, cmd);
	else if (!own)
		check_exit(zk, cmd, lowest);
	else if (members > 1 && strcmp(lowest, own->name) == 0)
		check_exit(zk, cmd, highest);
	else
		answer_ask(zk, cmd, true, now); /* its node can be deleted */
}

/* Watches this member, or lists all if it is NULL. */
static void check_exit(struct hf__zk *zk, struct hf__cmd *cmd, const char *member)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	hf__node_holders_path(zk, cmd->lock, folder);
	snprintf(path, sizeof path, "%s/%s", folder, member ? member : "");
	struct hf__watcher *watcher = member ? hf__watcher_at(zk, path, false) : NULL;
	struct hf__zk_request *request =
		member && !watcher
			? NULL
			: new_barrier_request(zk, cmd, member ? on_member_watched : on_exit_listed);
	if (!request)
		hf__doubt_memory(zk);
	else if (member)
		hf__zk_request_get(request, path, watcher);
	else
		hf__zk_request_list(request, folder, NULL);
}

/* ---- commands ---- */

int hf__zk_barrier_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	if (hf__lock_kind(cmd->lock) == HF__EXIT) {
		check_exit(zk, cmd, NULL);
		return 0;
	}
	switch (cmd->verb) {
	case HF__LATCH_SET: return set_barrier(zk, cmd);
	case HF__LATCH_DELETE: return remove_barrier(zk, cmd);
	default: return read_barrier(zk, cmd);
	}
}
