/* What watchers have seen, handed to whoever wants to know. */
#include "zk/zk.h"

static void notify_node(struct hf__zk *zk, struct hf__node *node, const struct hf__watcher *watcher,
                        int64_t now)
{
	node->ready = node->ready || watcher->created;
	if (!node->granted && node->waits) {
		node->waits = false;
		hf__core_wake_owner(zk->core, node->lock, node->asker, now);
	} else if (node->granted && watcher->deleted) {
		hf__node_gone(zk, node, now);
	} else if (node->granted) {
		node->guarded = false;
		hf__held_watch(zk, node, now);
	}
}

/* Who is told may wait for it again, so those lists are taken off before. */
static void notify_all(struct hf__zk *zk, struct hf__watcher *watcher, int64_t now)
{
	struct hf__list nodes, interests;
	hf__list_init(&nodes);
	hf__list_init(&interests);
	hf__list_move(&nodes, &watcher->nodes);
	hf__list_move(&interests, &watcher->interests);
	while (!hf__list_empty(&nodes)) {
		struct hf__node *node = hf__list_item(nodes.next, struct hf__node, in_watch);
		hf__watcher_leave(node);
		notify_node(zk, node, watcher, now);
	}
	while (!hf__list_empty(&interests)) {
		struct hf__interest *interest =
			hf__list_item(interests.next, struct hf__interest, in_watch);
		struct hf__zk_lock *zk_lock = interest->zk_lock;
		hf__watcher_end_interest(interest);
		zk_lock->total_is_old = true;
		hf__core_wake_all(zk->core, zk_lock->lock, now);
	}
}

void hf__notice_take(struct hf__zk *zk, struct hf__watcher *watcher, int64_t now)
{
	hf__list_remove(&watcher->notice);
	if (watcher->session != zk->session)
		return; /* what a session that is over had to say is of no interest */
	notify_all(zk, watcher, now);
	watcher->deleted = watcher->created = false;
	hf__watcher_tidy(zk, watcher);
}
