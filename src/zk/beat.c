/* Renewals: a beat makes the quorum confirm that the session lives, and with it every node. */
#include "zk/zk.h"

#include <stdio.h>

#define BEAT_PART 12 /* what was proven less than a twelfth of a lease ago needs no beat */

static bool is_held(struct hf__zk *zk, const struct hf__renew_item *item)
{
	const struct hf__node *node = hf__node_find(zk, item->lock, item->wire);
	return node && hf__node_is_granted(node);
}

/*
 * The session was certain to live when the command was sent, or a little earlier; so was every node
 * of it.
 */
void hf__beat_answer(struct hf__zk *zk, struct hf__cmd *cmd, int64_t now)
{
	bool there[HF__RENEW_MAX];
	if (zk->proof.sure_at < cmd->sent_at)
		cmd->sent_at = zk->proof.sure_at;
	for (uint16_t i = 0; i < cmd->items; i++) {
		struct hf__renew_item item = hf__backend_item(cmd, i);
		there[i] = is_held(zk, &item);
	}
	hf__zk_answer(zk, cmd, &(struct hf__answer){.outcome = HF__DONE, .there = there}, now);
}

static struct hf__cmd *find_renewal(struct hf__zk *zk, uint64_t beat)
{
	struct hf__list *link;
	hf__list_each (link, &zk->waiting) {
		struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->verb == HF__RENEW && cmd->backend.beat == beat)
			return cmd;
	}
	return NULL;
}

static void send_beat(struct hf__zk *zk);

static void on_beat(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd;
	uint64_t beat = zk->beat; /* an answered renewal may send the next one */
	zk->beating = false;
	if (hf__zk_request_is_lost(request->rc) || hf__zk_request_is_dead(request->rc)) {
		hf__doubt_link(zk, zk->library.error(request->rc));
		return;
	}
	if (request->node && request->rc == ZNONODE && !hf__node_is_dead(request->node))
		hf__node_lose(zk, request->node, now);
	while ((cmd = find_renewal(zk, beat)))
		hf__beat_answer(zk, cmd, now);
	send_beat(zk);
}

/* A node of this renewal or, if there is none, any node that is held. */
static struct hf__node *pick_node(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	for (uint16_t i = 0; i < cmd->items; i++) {
		struct hf__renew_item item = hf__backend_item(cmd, i);
		struct hf__node *node = hf__node_find(zk, item.lock, item.wire);
		if (node && hf__node_is_granted(node))
			return node;
	}
	return hf__list_empty(&zk->held) ? NULL
	                                 : hf__list_item(zk->held.next, struct hf__node, link);
}

/* The time of a renewal that waited for an earlier beat starts now. */
static void restart_limits(struct hf__zk *zk)
{
	struct hf__list *link;
	int64_t now = hf__clock_ms();
	hf__list_each (link, &zk->waiting) {
		struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->verb == HF__RENEW && cmd->backend.beat == zk->beat)
			cmd->answer_by = hf__clock_after(now, cmd->answer_by - cmd->sent_at);
	}
}

/* One beat is enough for all renewals that were submitted before it. */
static void send_beat(struct hf__zk *zk)
{
	char path[HF__ZK_PATH];
	struct hf__cmd *cmd = zk->beating ? NULL : find_renewal(zk, zk->beat + 1);
	if (!cmd)
		return;
	struct hf__node *node = pick_node(zk, cmd);
	struct hf__zk_request *request = hf__zk_request_new(zk, on_beat, node);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	request->outlives_node = true;
	zk->beat++;
	zk->beating = true;
	restart_limits(zk);
	if (node)
		hf__node_path(zk, node, path);
	else
		snprintf(path, sizeof path, "%s", zk->config->chroot[0] ? zk->config->chroot : "/");
	hf__zk_request_beat(request, path);
}

/* What the quorum confirmed a moment ago is enough for a renewal, counted from then. */
void hf__beat_renew(struct hf__zk *zk, struct hf__cmd *cmd)
{
	if (cmd->sent_at - zk->proof.sure_at <
	    hf__core_settings(zk->core)->watchdog_ms / BEAT_PART) {
		hf__zk_answer_soon(zk, cmd, HF__DONE);
		return;
	}
	cmd->backend.beat = zk->beat + 1;
	send_beat(zk);
}
