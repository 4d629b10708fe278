/* Watching over nodes: that ours is not deleted by others or asked for, and when its turn comes. */
#include "zk/zk.h"

#include <string.h>

static const char message[] = HF__REVOKE_MESSAGE;

static void note_message(struct hf__zk *zk, struct hf__node *node,
                         const struct hf__zk_request *request, int64_t now)
{
	bool asked = request->rc == ZOK && request->length == sizeof message - 1 &&
	             memcmp(request->text, message, sizeof message - 1) == 0;
	/* What was heard once is not told again because of a reconnect. */
	if (asked && request->stat.version != node->heard) {
		node->heard = request->stat.version;
		hf__core_asked(zk->core, node->lock, node->wire, now);
	}
}

static void guarded(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	node->guarded = request->rc == ZOK && node->granted;
	bool ours = request->rc == ZOK && request->stat.czxid == node->czxid;
	bool sure = request->rc == ZOK || request->rc == ZNONODE;
	if (!node->guarded)
		hf__watcher_leave(node);
	if (sure && !ours && node->granted)
		hf__node_gone(zk, node, now);
	else if (!node->guarded && zk->watch_held_at == HF__NEVER)
		zk->watch_held_at =
			now + HF__WATCH_HELD_MS; /* by then there is a connection again */
	else if (ours && node->granted && node->revocable)
		note_message(zk, node, request, now);
}

/* Where there is no room for another watch, the node is looked at this once. */
void hf__held_watch(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__node_path(zk, node, path);
	bool room = hf__watcher_has_room(zk);
	struct hf__watcher *watcher = room ? hf__watcher_at(zk, path, false) : NULL;
	struct hf__zk_request *request =
		watcher || !room ? hf__zk_request_new(zk, guarded, node) : NULL;
	if (!request) {
		zk->watch_held_at = now + HF__WATCH_HELD_MS;
		return;
	}
	node->guarded = true;
	if (watcher)
		hf__watcher_join(watcher, node);
	if (node->revocable)
		hf__zk_request_get(request, path, watcher);
	else
		hf__zk_request_exists(request, path, watcher);
}

void hf__held_watch_all(struct hf__zk *zk, int64_t now)
{
	struct hf__list *link;
	zk->watch_held_at = HF__NEVER;
	hf__list_each (link, &zk->held) {
		struct hf__node *node = hf__list_item(link, struct hf__node, link);
		if (!node->guarded && node->requests == 0)
			hf__held_watch(zk, node, now);
		else if (!node->guarded)
			zk->watch_held_at = now + HF__WATCH_HELD_MS;
	}
}
