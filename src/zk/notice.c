/* Notices: a watcher has fired, and the nodes and locks that wanted to know are notified. */
#include "zk/zk.h"

static void notify_node(struct hf__zk *zk, struct hf__node *node, const struct hf__watcher *watcher,
                        int64_t now)
{
	node->barrier_open = node->barrier_open || watcher->created;
	if (hf__node_state_is_waiting(node->state)) {
		hf__node_change(node, HF__ON_RESUMED);
		hf__core_wake_owner(zk->core, node->lock, node->asker, now);
	} else if (hf__node_is_granted(node) && watcher->deleted) {
		hf__node_lose(zk, node, now);
	} else if (hf__node_is_granted(node)) {
		hf__held_watch(zk, node, now);
	}
}

static void notify_lock(struct hf__zk *zk, struct hf__zk_lock *zk_lock, int64_t now)
{
	zk_lock->total_is_old = true;
	hf__core_wake_all(zk->core, zk_lock->lock, now);
}

/* A node or lock that is notified may join the watcher again, so both lists are taken off first. */
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
		notify_lock(zk, zk_lock, now);
	}
}

void hf__notice_take(struct hf__zk *zk, struct hf__watcher *watcher, int64_t now)
{
	hf__list_remove(&watcher->notice);
	if (watcher->session != zk->session)
		return; /* what happened in a session that has ended does not matter */
	notify_all(zk, watcher, now);
	watcher->deleted = watcher->created = false;
	hf__watcher_tidy(zk, watcher);
}
