/* Admits the first node of a queue: lists its folder, and then grants, waits or starts over. */
#include "zk/zk.h"

#include <stdio.h>

static void on_queue_listed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now);

/* ---- requests ---- */

/* A lease waits for any other lease to be given back, so it watches the list itself. */
void hf__admit_send_list(struct hf__zk *zk, struct hf__node *node, hf__zk_request_fn *done)
{
	char path[HF__ZK_PATH];
	hf__node_folder(zk, node, path);
	bool watches = hf__node_is_lease(node) && hf__watcher_can_wait(zk, path, true);
	struct hf__watcher *watcher = watches ? hf__watcher_at(zk, path, true) : NULL;
	struct hf__zk_request *request =
		watches && !watcher ? NULL : hf__zk_request_new(zk, done, node);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	hf__zk_request_list(request, path, watcher);
	if (watcher)
		hf__watcher_join(watcher, node);
}

void hf__admit_list(struct hf__zk *zk, struct hf__node *node)
{
	hf__admit_send_list(zk, node, on_queue_listed);
}

static void on_before_watched(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_ignores(zk, request))
		return;
	bool watches = request->rc == ZOK && node->watcher; /* the event may have arrived first */
	if (watches && hf__node_asks(node)) {
		hf__node_wait(zk, node, now);
		return;
	}
	hf__watcher_leave(node);
	if (hf__node_asks(node) && request->rc != ZOK && request->rc != ZNONODE)
		hf__node_fail_rc(zk, node, request->rc);
}

void hf__admit_watch(struct hf__zk *zk, struct hf__node *node, const char *path, int64_t now)
{
	if (!hf__watcher_can_wait(zk, path, false)) {
		hf__node_wait_unwatched(zk, node, now);
		return;
	}
	struct hf__watcher *watcher = hf__watcher_at(zk, path, false);
	struct hf__zk_request *request =
		watcher ? hf__zk_request_new(zk, on_before_watched, node) : NULL;
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	hf__watcher_join(watcher, node);
	hf__zk_request_get(request, path,
	                   watcher); /* unlike exists, it leaves no watch on nothing */
}

/* ---- folders ---- */

static void on_node_folders(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	(void)now;
	if (hf__node_ignores(zk, request) || request->rc == ZOK)
		return;
	if (request->rc == ZNONODE)
		hf__node_fail(node, HF_EINVAL,
		              "chroot: it was deleted; create it, since Holdfast never does");
	else
		hf__node_fail_rc(zk, node, request->rc);
}

void hf__admit_make_folders(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__node_path(zk, node, path);
	hf__folder_make(zk, node, NULL, path, on_node_folders, now);
}

/* ---- the list ---- */

bool hf__admit_is_used_up(const struct hf__node *node)
{
	int64_t number;
	return !hf__queue_number(node->name, &number) || number < 0 || number >= HF__QUEUE_LAST;
}

void hf__admit_let_in(struct hf__zk *zk, struct hf__node *node, bool alone, int64_t now)
{
	if (hf__node_has_leases(node->lock)) {
		hf__lease_pass_gate(zk, node);
		return;
	}
	hf__alone_set(zk, node, alone);
	hf__node_grant(zk, node, now);
}

/* Waits for one node to be deleted, unless the caller does not want a place in the queue. */
static void wait_for(struct hf__zk *zk, struct hf__node *node, const char *path, int64_t now)
{
	if (node->cmd->place_ms == 0)
		hf__node_refuse(zk, node, now);
	else
		hf__admit_watch(zk, node, path, now);
}

static void wait_for_plain(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__node_folder(zk, node, path);
	wait_for(zk, node, path, now);
}

static void wait_in_queue(struct hf__zk *zk, struct hf__node *node, const char *before, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__alone_set(zk, node, false);
	hf__node_child(zk, node, before, path);
	wait_for(zk, node, path, now);
}

static void check_queue(struct hf__zk *zk, struct hf__node *node,
                        const struct hf__zk_request *listed, int64_t now)
{
	size_t before;
	switch (hf__queue_position(listed->names, listed->count, node->name, &before)) {
	case HF__QUEUE_FIRST: hf__admit_let_in(zk, node, listed->count == 1, now); break;
	case HF__QUEUE_MISSING: hf__node_start_over(node); break;
	case HF__QUEUE_NOT_FIRST: wait_in_queue(zk, node, listed->names[before], now);
	}
}

static void check_position(struct hf__zk *zk, struct hf__node *node,
                           const struct hf__zk_request *listed, int64_t now)
{
	if (hf__node_is_member(node))
		hf__zk_barrier_check(zk, node, listed, now);
	else if (hf__admit_is_used_up(node))
		hf__node_fail(node, HF_ECONFLICT,
		              "the folder of this lock has used up its sequence numbers; stop all "
		              "users and delete the folder");
	else if (hf__node_is_lease(node))
		hf__lease_check(zk, node, listed, now);
	else if (!hf__node_has_leases(node->lock) || !hf__lease_refuse(zk, node))
		check_queue(zk, node, listed, now);
}

/* The list was requested together with the creation, or later. */
static void on_queue_listed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	bool no_folder = request->rc == ZNONODE;
	if (hf__node_ignores(zk, request) || !hf__node_asks(node))
		return;
	if (request->rc != ZOK && !no_folder) {
		hf__node_fail_rc(zk, node, request->rc);
		return;
	}
	switch (node->state) {
	case HF__ZNODE_BLOCKED: wait_for_plain(zk, node, now); break;
	case HF__ZNODE_ABSENT:
	case HF__ZNODE_LEASE_ABSENT:
		if (no_folder) /* otherwise somebody has created it meanwhile */
			hf__admit_make_folders(zk, node, now);
		break;
	case HF__ZNODE_QUEUED:
	case HF__ZNODE_LEASE_QUEUED:
		if (no_folder)
			hf__node_start_over(node);
		else
			check_position(zk, node, request, now);
		break;
	default: break;
	}
}

/* ---- the quorum ---- */

static bool is_proven(const struct hf__zk *zk, const struct hf__node *node)
{
	return node->cmd->sent_at - zk->proof.sure_at <
	       hf__core_settings(zk->core)->watchdog_ms / 3;
}

/* What matters is only that the quorum answered it, and its order among the requests. */
static void on_quorum_answered(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	(void)now;
	(void)hf__node_ignores(zk, request);
}

static bool request_beat(struct hf__zk *zk, struct hf__node *node, const char *path,
                         hf__zk_request_fn *done)
{
	struct hf__zk_request *request = hf__zk_request_new(zk, done, node);
	if (request)
		hf__zk_request_beat(request, path);
	else
		hf__doubt_memory(zk);
	return request;
}

bool hf__admit_beat(struct hf__zk *zk, struct hf__node *node, const char *path)
{
	return request_beat(zk, node, path, on_quorum_answered);
}

/* A list comes from one server, which may be cut off, so a grant also needs the quorum's answer. */
void hf__admit_list_proven(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	hf__node_path(zk, node, path);
	if (is_proven(zk, node) || hf__admit_beat(zk, node, path))
		hf__admit_list(zk, node);
}

static void on_proven(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__node_ignores(zk, request) && request->rc == ZNONODE)
		hf__node_lose(zk, request->node, now);
}

bool hf__admit_prove(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	if (is_proven(zk, node))
		return true;
	hf__node_path(zk, node, path);
	(void)request_beat(zk, node, path, on_proven);
	return false;
}
