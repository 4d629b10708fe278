/*
 * Nodes that nobody needs any more and that the server does not let us remove. They keep everybody
 * else waiting until their session ends, so it is ended as soon as nothing is held in it.
 */
#include "zk/zk.h"

static bool has_leftovers(const struct hf__zk *zk)
{
	struct hf__table_link *at = NULL;
	while ((at = hf__table_next(&zk->nodes, at)))
		if (hf__table_item(at, struct hf__node, by_wire)->leftover)
			return true;
	return false;
}

static bool has_holds(const struct hf__zk *zk)
{
	struct hf__list *link;
	hf__list_each (link, &zk->held)
		if (!hf__list_item(link, struct hf__node, link)->leftover)
			return true;
	return false;
}

static void delete_all(struct hf__zk *zk)
{
	struct hf__table_link *at = NULL;
	while ((at = hf__table_next(&zk->nodes, at))) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		if (node->leftover)
			hf__steps_delete_leftover(zk, node);
	}
}

/*
 * The end of the session costs waiters their places, and they may be waiting for the node that is
 * left over. But it must not cost a hold: while there is one, all that can be done is to try again,
 * since rights may change.
 */
void hf__leftover_turn(struct hf__zk *zk, int64_t now)
{
	zk->leftovers_at = HF__NEVER;
	if (!has_leftovers(zk))
		return;
	if (!has_holds(zk)) {
		hf__session_replace(zk, "the session is closed because a node could not be deleted",
		                    now);
		return;
	}
	delete_all(zk);
	zk->leftovers_at = now + HF__LEFTOVER_MS;
}
