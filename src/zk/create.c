/* Creating a node. */
#include "zk/zk.h"

#include <stdio.h>
#include <string.h>

static enum hf__queue_role role_of(const struct hf__node *node)
{
	if (hf__node_is_lease(node))
		return HF__QUEUE_LEASE;
	switch (hf__lock_kind(node->lock)) {
	case HF_READ: return HF__QUEUE_READ;
	case HF_WRITE: return HF__QUEUE_WRITE;
	case HF_LEADER: return HF__QUEUE_LATCH;
	default: return HF__QUEUE_MUTEX;
	}
}

/* ---- the answer ---- */

static void note_created(struct hf__node *node, const struct hf__zk_request *request)
{
	const char *slash = strrchr(request->text, '/');
	snprintf(node->name, sizeof node->name, "%s", slash ? slash + 1 : request->text);
	node->czxid = request->stat.czxid;
	hf__node_change(node, HF__ON_CREATED);
}

static void finish_created(struct hf__zk *zk, struct hf__node *node,
                           const struct hf__zk_request *request, int64_t now)
{
	bool lone = node->state == HF__ZNODE_CREATING_LONE;
	note_created(node, request);
	bool alone = hf__alone_is_certain(zk, node);
	hf__alone_note_write(zk, node);
	if (alone && lone && hf__node_asks(node) && !hf__admit_is_used_up(node))
		hf__admit_let_in(zk, node, true, now);
}

/*
 * A missing folder is not a failure: the list that follows finds out, or the next step creates it.
 */
static void finish_refused(struct hf__zk *zk, struct hf__node *node, int rc)
{
	bool blocked = rc == ZNOCHILDRENFOREPHEMERALS && !hf__node_is_lease(node) &&
	               !hf__node_is_plain(node);
	hf__node_change(node, blocked ? HF__ON_BLOCKED : HF__ON_REFUSED);
	hf__alone_set(zk, node, false);
	if (!node->cmd)
		return;
	if (hf__zk_request_is_dead(rc))
		hf__doubt_link(zk, zk->library.error(rc));
	else if (rc != ZNONODE && !blocked)
		hf__node_fail_rc(zk, node, rc);
}

static void on_created(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (request->rc == ZOK) {
		finish_created(zk, node, request, now);
	} else if (!hf__zk_request_is_lost(request->rc)) {
		finish_refused(zk, node, request->rc);
	} else {
		hf__node_change(node, HF__ON_LOST);
		if (node->cmd)
			hf__doubt_link(zk, zk->library.error(request->rc));
	}
}

/* The node is the lock itself, and others create it under the same name. */
static void on_created_plain(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	char path[HF__ZK_PATH];
	if (request->rc == ZNODEEXISTS) {
		hf__node_change(node, HF__ON_REFUSED);
		if (!hf__node_asks(node))
			return;
		hf__node_path(zk, node, path);
		if (node->cmd->place_ms > 0)
			hf__admit_watch(zk, node, path, now);
		else
			hf__node_refuse(zk, node, now);
		return;
	}
	on_created(zk, request, now);
	if (hf__node_asks(node) && request->rc == ZNONODE)
		hf__admit_make_folders(zk, node, now);
}

/* ---- the request ---- */

/*
 * The node's data, for others to read: the caller's text or our description. In a plain node the
 * GUID comes first.
 */
static size_t describe(const struct hf__zk *zk, const struct hf__node *node, char *ret_data,
                       size_t size)
{
	const char *value = hf__core_value(node->cmd);
	const char *text = value ? value : hf__core_settings(zk->core)->description;
	int n = hf__node_is_plain(node)
	                ? snprintf(ret_data, size, "%s%s%s", node->guid, text[0] ? "\n" : "", text)
	                : snprintf(ret_data, size, "%s", text);
	return (size_t)n < size ? (size_t)n : size - 1;
}

/* The write hold inside of which the node's owner reads, or NULL. */
static const struct hf__node *find_writer(struct hf__zk *zk, const struct hf__node *node)
{
	struct hf__lock *writes =
		hf__lock_kind(node->lock) == HF_READ
			? hf__lock_find(zk->core, HF_WRITE, hf__lock_name(node->lock))
			: NULL;
	const struct hf__node *writer = writes ? hf__node_find(zk, writes, node->cmd->from) : NULL;
	return writer && writer->state == HF__ZNODE_HELD ? writer : NULL;
}

static enum hf__mode name_node(struct hf__zk *zk, struct hf__node *node)
{
	if (hf__node_is_plain(node) || hf__node_is_member(node)) {
		snprintf(node->name, sizeof node->name, "%s", node->guid);
		return HF__MODE_EPHEMERAL;
	}
	hf__queue_name(node->name, node->guid, role_of(node));
	const struct hf__node *writer = find_writer(zk, node);
	if (!writer)
		return HF__MODE_NUMBERED;
	/* A writer that continues as a reader keeps its place in the queue. */
	size_t length = strlen(node->name);
	snprintf(node->name + length, sizeof node->name - length, "%s",
	         hf__queue_suffix(writer->name));
	return HF__MODE_EPHEMERAL;
}

/* Only nodes of the lock's own folder are ever alone. */
static bool is_lone(struct hf__zk *zk, const struct hf__node *node, enum hf__mode mode)
{
	return !hf__node_has_leases(node->lock) && mode == HF__MODE_NUMBERED &&
	       hf__alone_is_likely(zk, node->lock);
}

void hf__create_node(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH], data[HF__PUBLISHED_MAX + HF__QUEUE_GUID + 2];
	bool plain = hf__node_is_plain(node);
	if (!node->guid[0] && hf__random_uuid(node->guid)) {
		hf__doubt_link(zk, "the system has no random numbers");
		return;
	}
	struct hf__zk_request *request =
		hf__zk_request_new(zk, plain ? on_created_plain : on_created, node);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	enum hf__mode mode = name_node(zk, node);
	bool lone = is_lone(zk, node, mode);
	hf__node_change(node, lone ? HF__ON_CREATE_LONE : HF__ON_CREATE);
	hf__node_path(zk, node, path);
	size_t length = describe(zk, node, data, sizeof data);
	hf__zk_request_create(request, path, data, length, mode);
	/* A session's requests keep their order, so the list needs no round trip of its own. */
	if (!lone && !plain)
		hf__admit_list(zk, node);
}
