/* Watching over nodes: that ours is not deleted by others, and that the one before it is. */
#include "zk/zk.h"

static void guarded(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__request_drop_watcher(request->watcher);
	node->guarded = request->rc == ZOK;
	bool ours = request->rc == ZOK && request->stat.czxid == node->czxid;
	bool sure = request->rc == ZOK || request->rc == ZNONODE;
	if (sure && !ours && node->granted)
		hf__node_gone(zk, node, now);
	else if (!node->guarded && zk->guard_at == HF__NEVER)
		zk->guard_at = now + HF__GUARD_MS; /* by then there is a connection again */
}

static void guard(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__watcher *watcher = hf__request_watcher(zk, node, true);
	struct hf__request *request = watcher ? hf__request_new(zk, guarded, node) : NULL;
	if (!request) {
		if (watcher)
			hf__request_drop_watcher(watcher);
		return; /* the next renewal finds out too */
	}
	node->guarded = true;
	hf__node_path(zk, node, path);
	hf__request_exists(request, path, watcher);
}

void hf__guard_all(struct hf__zk *zk, int64_t now)
{
	struct hf__list *link;
	zk->guard_at = HF__NEVER;
	hf__list_each (link, &zk->held) {
		struct hf__node *node = hf__list_item(link, struct hf__node, link);
		if (!node->guarded && node->requests == 0)
			guard(zk, node);
		else if (!node->guarded)
			zk->guard_at = now + HF__GUARD_MS;
	}
}

void hf__guard_noticed(struct hf__zk *zk, const struct hf__watcher *watcher, int64_t now)
{
	struct hf__node *node = hf__node_find(zk, watcher->lock, watcher->wire);
	if (!node)
		return;
	if (!watcher->own && node->waits) {
		node->waits = false;
		hf__core_wake_owner(zk->core, node->lock, node->wire, now);
	} else if (watcher->own && watcher->deleted) {
		hf__node_gone(zk, node, now);
	} else if (watcher->own) {
		node->guarded = false;
		guard(zk, node);
	}
}
