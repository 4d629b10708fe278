/* Watching over nodes that are held: whether somebody else deletes them, or asks for them. */
#include "zk/zk.h"

#include <string.h>

static bool is_revocation(const struct hf__zk_request *request)
{
	static const char message[] = HF__REVOKE_MESSAGE;
	return request->rc == ZOK && request->length == sizeof message - 1 &&
	       memcmp(request->text, message, sizeof message - 1) == 0;
}

/* A message that was reported is not reported again because of a reconnect. */
static void report_revocation(struct hf__zk *zk, struct hf__node *node,
                              const struct hf__zk_request *request, int64_t now)
{
	if (!is_revocation(request) || request->stat.version == node->revoke_version)
		return;
	node->revoke_version = request->stat.version;
	hf__core_revoke(zk->core, node->lock, node->wire, now);
}

static void on_held_watched(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	bool granted = hf__node_is_granted(node);
	bool ours = request->rc == ZOK && request->stat.czxid == node->czxid;
	bool sure = request->rc == ZOK || request->rc == ZNONODE;
	node->watched = request->rc == ZOK && granted;
	if (!node->watched)
		hf__watcher_leave(node);
	if (sure && !ours && granted)
		hf__node_lose(zk, node, now);
	else if (!node->watched && zk->watch_held_at == HF__NEVER)
		zk->watch_held_at = now + HF__WATCH_HELD_MS; /* the link may be up again by then */
	else if (ours && granted && node->revocable)
		report_revocation(zk, node, request, now);
}

/* If there is no room for another watch, the node is only checked this once. */
void hf__held_watch(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__node_path(zk, node, path);
	bool room = hf__watcher_has_room(zk);
	struct hf__watcher *watcher = room ? hf__watcher_at(zk, path, false) : NULL;
	struct hf__zk_request *request =
		watcher || !room ? hf__zk_request_new(zk, on_held_watched, node) : NULL;
	if (!request) {
		node->watched = false;
		zk->watch_held_at = now + HF__WATCH_HELD_MS;
		return;
	}
	node->watched = true;
	if (watcher)
		hf__watcher_join(watcher, node);
	hf__zk_request_get(request, path, watcher); /* leaves no watch where the node is gone */
}

void hf__held_watch_all(struct hf__zk *zk, int64_t now)
{
	struct hf__list *link;
	zk->watch_held_at = HF__NEVER;
	hf__list_each (link, &zk->held) {
		struct hf__node *node = hf__list_item(link, struct hf__node, link);
		if (!node->watched && node->requests == 0)
			hf__held_watch(zk, node, now);
		else if (!node->watched)
			zk->watch_held_at = now + HF__WATCH_HELD_MS;
	}
}
