/* Verbs that are not about one acquisition: renewal, looking, force, a round trip. */
#include "zk/zk.h"

#include <stdio.h>
#include <string.h>

/* ---- renewal ---- */

static bool is_there(struct hf__zk *zk, const struct hf__renew_item *item)
{
	const struct hf__node *node = hf__node_find(zk, item->lock, item->wire);
	return node && node->granted && node->state == HF__NODE_THERE;
}

/* The session lives, as of when the command was sent; so does every node of it that we know of. */
static void answer_renewal(struct hf__zk *zk, struct hf__cmd *cmd, int64_t now)
{
	bool there[HF__RENEW_MAX];
	for (uint16_t i = 0; i < cmd->items; i++) {
		struct hf__renew_item item = hf__backend_item(cmd, i);
		there[i] = is_there(zk, &item);
	}
	hf__zk_answer(zk, cmd, &(struct hf__answer){.outcome = HF__DONE, .there = there}, now);
}

static struct hf__cmd *renewal_of(struct hf__zk *zk, uint64_t beat)
{
	struct hf__list *link;
	hf__list_each (link, &zk->waiting) {
		struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->verb == HF__RENEW && cmd->place == beat)
			return cmd;
	}
	return NULL;
}

static void beaten(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__cmd *cmd;
	zk->beating = false;
	if (hf__request_is_lost(request->rc) || hf__request_is_dead(request->rc)) {
		hf__session_doubt(zk, zk->library.error(request->rc));
		return;
	}
	if (request->node && request->rc == ZNONODE && !request->node->dead)
		hf__node_gone(zk, request->node, now);
	while ((cmd = renewal_of(zk, zk->beat)))
		answer_renewal(zk, cmd, now);
	hf__verbs_beat(zk);
}

/* A node of the renewal's, or else any that is held. */
static struct hf__node *beat_node(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	for (uint16_t i = 0; i < cmd->items; i++) {
		struct hf__renew_item item = hf__backend_item(cmd, i);
		struct hf__node *node = hf__node_find(zk, item.lock, item.wire);
		if (node && node->granted)
			return node;
	}
	return hf__list_empty(&zk->held) ? NULL
	                                 : hf__list_item(zk->held.next, struct hf__node, link);
}

/* One beat serves all renewals that were sent before it. */
void hf__verbs_beat(struct hf__zk *zk)
{
	char path[HF__ZK_PATH];
	struct hf__cmd *cmd = zk->beating ? NULL : renewal_of(zk, zk->beat + 1);
	if (!cmd)
		return;
	struct hf__node *node = beat_node(zk, cmd);
	struct hf__request *request = hf__request_new(zk, beaten, node);
	if (!request) {
		hf__session_doubt(zk, "no memory for a request");
		return;
	}
	zk->beat++;
	zk->beating = true;
	if (node)
		hf__node_path(zk, node, path);
	else
		snprintf(path, sizeof path, "%s", zk->config->chroot[0] ? zk->config->chroot : "/");
	hf__request_beat(request, path);
}

/* ---- looking ---- */

/* Whether the answer belongs to a command that still waits for it, and is one. */
static bool is_answer(struct hf__zk *zk, const struct hf__request *request)
{
	if (!request->cmd)
		return false;
	if (!hf__request_is_lost(request->rc) && !hf__request_is_dead(request->rc))
		return true;
	hf__session_doubt(zk, zk->library.error(request->rc));
	return false;
}

static void looked(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__answer answer = {.outcome = HF__DONE, .ttl_ms = -2};
	if (!is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_failed(zk, cmd, request->rc, "the lock cannot be looked at", now);
		return;
	}
	const struct hf__node *own = hf__node_find(zk, cmd->lock, cmd->wire);
	answer.count = own && own->granted;
	if (hf__lock_kind(cmd->lock) == HF__NODE_PLAIN) {
		answer.ttl_ms = request->rc == ZOK ? -1 : -2;
		answer.text = hf__lock_name(cmd->lock);
		answer.length = request->rc == ZOK ? hf__lock_name_length(cmd->lock) : 0;
	} else if (hf__queue_holders(request->names, request->count) > 0) {
		answer.ttl_ms = -1;
		answer.text = request->names[0];
		answer.length = strlen(answer.text);
	}
	hf__zk_answer(zk, cmd, &answer, now);
}

/* ---- force ---- */

static void forced(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	if (!is_answer(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__zk_answer_failed(zk, request->cmd, request->rc, "the node cannot be removed",
		                     now);
	else
		hf__zk_answer(
			zk, request->cmd,
			&(struct hf__answer){.outcome = HF__DONE, .count = request->rc == ZOK},
			now);
}

static void force_path(struct hf__zk *zk, struct hf__cmd *cmd, const char *path, bool last)
{
	struct hf__request *request = hf__request_new(zk, forced, NULL);
	if (!request) {
		hf__session_doubt(zk, "no memory for a request");
		return;
	}
	request->cmd = last ? cmd : NULL;
	hf__request_remove(request, path);
}

static void listed_to_force(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	if (!is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	size_t holders = hf__queue_holders(request->names, request->count);
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_failed(zk, cmd, request->rc, "the lock cannot be looked at", now);
		return;
	}
	if (holders == 0) {
		hf__zk_answer(zk, cmd, &(struct hf__answer){.outcome = HF__DONE}, now);
		return;
	}
	hf__node_folder(zk, cmd->lock, folder);
	for (size_t i = 0; i < holders; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, request->names[i]);
		force_path(zk, cmd, path, i + 1 == holders);
	}
}

static void pinged(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	if (is_answer(zk, request))
		hf__zk_answer(zk, request->cmd, &(struct hf__answer){.outcome = HF__DONE}, now);
}

static int ask_about(struct hf__zk *zk, struct hf__cmd *cmd, hf__request_fn *done)
{
	char path[HF__ZK_PATH];
	struct hf__request *request = hf__request_new(zk, done, NULL);
	if (!request)
		return HF_ENOMEM;
	request->cmd = cmd;
	hf__node_folder(zk, cmd->lock, path);
	if (hf__lock_kind(cmd->lock) == HF__NODE_PLAIN)
		hf__request_exists(request, path, NULL);
	else
		hf__request_list(request, path);
	return 0;
}

static int ping(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__request *request = hf__request_new(zk, pinged, NULL);
	if (!request)
		return HF_ENOMEM;
	request->cmd = cmd;
	hf__request_beat(request, zk->config->chroot[0] ? zk->config->chroot : "/");
	return 0;
}

int hf__verbs_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	switch (cmd->verb) {
	case HF__ASK:
	case HF__SETTLE: return hf__node_submit(zk, cmd);
	case HF__RENEW:
		cmd->place = zk->beat + 1;
		hf__verbs_beat(zk);
		return 0;
	case HF__LOOK: return ask_about(zk, cmd, looked);
	case HF__FORCE:
		if (hf__lock_kind(cmd->lock) != HF__NODE_PLAIN)
			return ask_about(zk, cmd, listed_to_force);
		char path[HF__ZK_PATH];
		hf__node_folder(zk, cmd->lock, path);
		force_path(zk, cmd, path, true);
		return 0;
	case HF__PING: return ping(zk, cmd);
	case HF__LIST:
	case HF__INSPECT:
	case HF__FACTS:
	case HF__TOKEN: return hf__inspect_submit(zk, cmd);
	default: hf__zk_answer_soon(zk, cmd, HF__FAILED); return 0;
	}
}
