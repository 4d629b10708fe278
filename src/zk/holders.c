/*
 * Commands about the holders and waiters of a lock: look, force, revoke, drop a waiter, the latest
 * token.
 */
#include "zk/zk.h"

#include <stdio.h>
#include <string.h>

/* ---- look ---- */

/* All leases count as holders, though the last one may still be waiting. */
static size_t holders_of(const struct hf__lock *lock, struct hf__zk_request *listed)
{
	if (!hf__node_has_leases(lock))
		return hf__queue_holders(listed->names, listed->count);
	hf__queue_sort(listed->names, listed->count);
	return listed->count;
}

static void on_looked(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__answer answer = {.outcome = HF__DONE, .ttl_ms = -2};
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot read the lock's nodes", now);
		return;
	}
	const struct hf__node *own = hf__node_find(zk, cmd->lock, cmd->wire);
	answer.count = own && hf__node_is_granted(own);
	if (hf__lock_kind(cmd->lock) == HF_PLAIN) {
		answer.ttl_ms = request->rc == ZOK ? -1 : -2;
		answer.text = hf__lock_name(cmd->lock);
		answer.length = request->rc == ZOK ? hf__lock_name_length(cmd->lock) : 0;
	} else if (holders_of(cmd->lock, request) > 0) {
		answer.ttl_ms = -1;
		answer.text = request->names[0];
		answer.length = strlen(answer.text);
	}
	hf__zk_answer(zk, cmd, &answer, now);
}

/* Lists the lock's nodes, or reads the node of a plain lock. */
static int list_nodes(struct hf__zk *zk, struct hf__cmd *cmd, hf__zk_request_fn *done)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, done, NULL);
	if (!request)
		return HF_ENOMEM;
	request->cmd = cmd;
	hf__node_holders_path(zk, cmd->lock, path);
	if (hf__lock_kind(cmd->lock) == HF_PLAIN)
		hf__zk_request_exists(request, path, NULL);
	else
		hf__zk_request_list(request, path, NULL);
	return 0;
}

/* ---- force, revoke, drop a waiter ---- */

static void on_reached(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	request->cmd->backend.step |= request->rc == ZOK;
	if (!request->last)
		return;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__zk_answer_rc(zk, request->cmd, request->rc,
		                 request->cmd->verb == HF__REVOKE
		                         ? "cannot write to the holder's node"
		                         : "cannot delete the lock's node",
		                 now);
	else
		hf__zk_answer_count(zk, request->cmd, request->cmd->backend.step, now);
}

/* Force deletes the node; revoke writes the message that Curator knows into it. */
static void reach(struct hf__zk *zk, struct hf__cmd *cmd, const char *path, bool last)
{
	static const char message[] = HF__REVOKE_MESSAGE;
	struct hf__zk_request *request = hf__zk_request_new(zk, on_reached, NULL);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	request->cmd = cmd;
	request->last = last;
	if (cmd->verb == HF__REVOKE)
		hf__zk_request_set(request, path, message, sizeof message - 1, -1);
	else
		hf__zk_request_remove(request, path);
}

static void on_listed_to_reach(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	size_t holders = holders_of(cmd->lock, request);
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot read the lock's nodes", now);
		return;
	}
	if (holders == 0) {
		hf__zk_answer_count(zk, cmd, 0, now);
		return;
	}
	hf__node_holders_path(zk, cmd->lock, folder);
	for (size_t i = 0; i < holders; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, request->names[i]);
		reach(zk, cmd, path, i + 1 == holders);
	}
}

/* Drops a waiter only: if it holds the lock by now, it keeps it. */
static void on_listed_to_drop(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot read the lock's nodes", now);
		return;
	}
	size_t i = holders_of(cmd->lock, request);
	while (i < request->count && strcmp(request->names[i], cmd->words) != 0)
		i++;
	if (i == request->count) {
		hf__zk_answer_count(zk, cmd, 0, now);
		return;
	}
	hf__node_holders_path(zk, cmd->lock, folder);
	snprintf(path, sizeof path, "%s/%s", folder, request->names[i]);
	reach(zk, cmd, path, true);
}

/* A plain lock has no queue: all its waiters watch the same node. */
static int drop_waiter(struct hf__zk *zk, struct hf__cmd *cmd)
{
	if (hf__lock_kind(cmd->lock) != HF_PLAIN)
		return list_nodes(zk, cmd, on_listed_to_drop);
	hf__zk_answer_soon(zk, cmd, HF__FAILED);
	return 0;
}

/* ---- the latest token ---- */

static void on_token(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__zk_answer_rc(zk, request->cmd, request->rc, "cannot read the token", now);
	else
		hf__zk_answer_count(zk, request->cmd, request->rc == ZOK ? request->stat.czxid : 0,
		                    now);
}

/* The newest node, even a waiter's: no later holder has a lower token. */
static void on_listed_for_token(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	size_t n = request->count;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot read the token", now);
		return;
	}
	hf__queue_sort(request->names, n);
	while (n > 0 && !hf__node_has_leases(cmd->lock) &&
	       hf__queue_role(request->names[n - 1]) == HF__QUEUE_STRANGER)
		n--;
	struct hf__zk_request *next = n > 0 ? hf__zk_request_new(zk, on_token, NULL) : NULL;
	if (n == 0) {
		hf__zk_answer_count(zk, cmd, 0, now);
	} else if (!next) {
		hf__doubt_memory(zk);
	} else {
		next->cmd = cmd;
		hf__node_holders_path(zk, cmd->lock, folder);
		snprintf(path, sizeof path, "%s/%s", folder, request->names[n - 1]);
		hf__zk_request_exists(next, path, NULL);
	}
}

static int reach_holders(struct hf__zk *zk, struct hf__cmd *cmd)
{
	char path[HF__ZK_PATH];
	if (hf__lock_kind(cmd->lock) != HF_PLAIN)
		return list_nodes(zk, cmd, on_listed_to_reach);
	hf__node_holders_path(zk, cmd->lock, path);
	reach(zk, cmd, path, true);
	return 0;
}

int hf__holders_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	bool plain = hf__lock_kind(cmd->lock) == HF_PLAIN;
	switch (cmd->verb) {
	case HF__LOOK: return list_nodes(zk, cmd, on_looked);
	case HF__DROP_WAITER: return drop_waiter(zk, cmd);
	case HF__TOKEN: return list_nodes(zk, cmd, plain ? on_token : on_listed_for_token);
	default: return reach_holders(zk, cmd);
	}
}
