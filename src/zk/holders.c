/* Verbs that are not about one acquisition: renewal, looking, force, a round trip. */
#include "zk/zk.h"

#include <stdio.h>
#include <string.h>

#define BEAT_PART 12 /* of a lease: so long a beat serves whatever is to be renewed */

/* ---- renewal ---- */

static bool is_there(struct hf__zk *zk, const struct hf__renew_item *item)
{
	const struct hf__node *node = hf__node_find(zk, item->lock, item->wire);
	return node && node->granted && node->state == HF__ZNODE_THERE;
}

/* The session lives, as of when the command was sent or it was last sure to; so does every node of it. */
void hf__beat_answer(struct hf__zk *zk, struct hf__cmd *cmd, int64_t now)
{
	bool there[HF__RENEW_MAX];
	if (zk->proof.sure_at < cmd->sent_at)
		cmd->sent_at = zk->proof.sure_at;
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

static void beaten(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd;
	uint64_t beat = zk->beat; /* an answered renewal may send the next one */
	zk->beating = false;
	if (hf__zk_request_is_lost(request->rc) || hf__zk_request_is_dead(request->rc)) {
		hf__session_doubt(zk, zk->library.error(request->rc));
		return;
	}
	if (request->node && request->rc == ZNONODE && !request->node->dead)
		hf__node_gone(zk, request->node, now);
	while ((cmd = renewal_of(zk, beat)))
		hf__beat_answer(zk, cmd, now);
	hf__beat_send(zk);
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

/* A renewal that had to wait for the beat before its own has its time from now on. */
static void restart_limits(struct hf__zk *zk)
{
	struct hf__list *link;
	int64_t now = hf__clock_ms();
	hf__list_each (link, &zk->waiting) {
		struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->verb == HF__RENEW && cmd->place == zk->beat)
			cmd->answer_by = hf__clock_after(now, cmd->answer_by - cmd->sent_at);
	}
}

/* One beat serves all renewals that were sent before it. */
void hf__beat_send(struct hf__zk *zk)
{
	char path[HF__ZK_PATH];
	struct hf__cmd *cmd = zk->beating ? NULL : renewal_of(zk, zk->beat + 1);
	if (!cmd)
		return;
	struct hf__node *node = beat_node(zk, cmd);
	struct hf__zk_request *request = hf__zk_request_new(zk, beaten, node);
	if (!request) {
		hf__session_doubt(zk, "no memory for a request");
		return;
	}
	request->of_all = true;
	zk->beat++;
	zk->beating = true;
	restart_limits(zk);
	if (node)
		hf__node_path(zk, node, path);
	else
		snprintf(path, sizeof path, "%s", zk->config->chroot[0] ? zk->config->chroot : "/");
	hf__zk_request_beat(request, path);
}

/* What the quorum has said a moment ago is good for all that is renewed now, counted from then. */
static void renew(struct hf__zk *zk, struct hf__cmd *cmd)
{
	if (cmd->sent_at - zk->proof.sure_at < zk->core->config.watchdog_ms / BEAT_PART) {
		hf__zk_answer_soon(zk, cmd, HF__DONE);
		return;
	}
	cmd->place = zk->beat + 1;
	hf__beat_send(zk);
}

/* ---- looking ---- */

/* Of leases all count; who waits at them has made the last one. */
static size_t holders_of(const struct hf__lock *lock, struct hf__zk_request *listed)
{
	if (!hf__lease_is_kind(lock))
		return hf__queue_holders(listed->names, listed->count);
	hf__queue_sort(listed->names, listed->count);
	return listed->count;
}

static void looked(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__answer answer = {.outcome = HF__DONE, .ttl_ms = -2};
	if (!hf__zk_request_is_answer(zk, request))
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
	} else if (holders_of(cmd->lock, request) > 0) {
		answer.ttl_ms = -1;
		answer.text = request->names[0];
		answer.length = strlen(answer.text);
	}
	hf__zk_answer(zk, cmd, &answer, now);
}

/* Lists the lock's nodes; of a plain lock it looks at the one. */
static int ask_about(struct hf__zk *zk, struct hf__cmd *cmd, hf__zk_request_fn *done)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, done, NULL);
	if (!request)
		return HF_ENOMEM;
	request->cmd = cmd;
	hf__node_folder(zk, cmd->lock, path);
	if (hf__lock_kind(cmd->lock) == HF__NODE_PLAIN)
		hf__zk_request_exists(request, path, NULL);
	else
		hf__zk_request_list(request, path, NULL);
	return 0;
}

/* ---- what holders are made to do, or asked ---- */

static void reached(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	request->cmd->place |= request->rc == ZOK;
	if (!request->last)
		return;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__zk_answer_failed(zk, request->cmd, request->rc,
		                     request->cmd->verb == HF__REVOKE
		                             ? "the holder cannot be asked"
		                             : "the node cannot be removed",
		                     now);
	else
		hf__zk_answer_count(zk, request->cmd, (int64_t)request->cmd->place, now);
}

/* Force removes the node; to revoke is to write the message that Curator knows into it. */
static void reach(struct hf__zk *zk, struct hf__cmd *cmd, const char *path, bool last)
{
	static const char message[] = HF__REVOKE_MESSAGE;
	struct hf__zk_request *request = hf__zk_request_new(zk, reached, NULL);
	if (!request) {
		hf__session_doubt(zk, "no memory for a request");
		return;
	}
	request->cmd = cmd;
	request->last = last;
	if (cmd->verb == HF__REVOKE)
		hf__zk_request_set(request, path, message, sizeof message - 1, -1);
	else
		hf__zk_request_remove(request, path);
}

static void listed_to_reach(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	size_t holders = holders_of(cmd->lock, request);
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_failed(zk, cmd, request->rc, "the lock cannot be looked at", now);
		return;
	}
	if (holders == 0) {
		hf__zk_answer_count(zk, cmd, 0, now);
		return;
	}
	hf__node_folder(zk, cmd->lock, folder);
	for (size_t i = 0; i < holders; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, request->names[i]);
		reach(zk, cmd, path, i + 1 == holders);
	}
}

/* Only those who wait: who holds the lock by now keeps it. */
static void listed_to_drop(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_failed(zk, cmd, request->rc, "the lock cannot be looked at", now);
		return;
	}
	size_t i = holders_of(cmd->lock, request);
	while (i < request->count && strcmp(request->names[i], cmd->words) != 0)
		i++;
	if (i == request->count) {
		hf__zk_answer_count(zk, cmd, 0, now);
		return;
	}
	hf__node_folder(zk, cmd->lock, folder);
	snprintf(path, sizeof path, "%s/%s", folder, request->names[i]);
	reach(zk, cmd, path, true);
}

/* A plain lock has no queue: all who wait for it watch its node. */
static int drop_waiter(struct hf__zk *zk, struct hf__cmd *cmd)
{
	if (hf__lock_kind(cmd->lock) != HF__NODE_PLAIN)
		return ask_about(zk, cmd, listed_to_drop);
	hf__zk_answer_soon(zk, cmd, HF__FAILED);
	return 0;
}

/* ---- the latest token ---- */

static void got_token(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__zk_answer_failed(zk, request->cmd, request->rc, "the token cannot be read",
		                     now);
	else
		hf__zk_answer_count(zk, request->cmd, request->rc == ZOK ? request->stat.czxid : 0,
		                    now);
}

/* The newest node, who waits included: no later holder has a lower number. */
static void listed_for_token(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	char folder[HF__ZK_PATH], path[2 * HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__cmd *cmd = request->cmd;
	size_t n = request->count;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__zk_answer_failed(zk, cmd, request->rc, "the token cannot be read", now);
		return;
	}
	hf__queue_sort(request->names, n);
	while (n > 0 && !hf__lease_is_kind(cmd->lock) &&
	       hf__queue_role(request->names[n - 1]) == HF__QUEUE_STRANGER)
		n--;
	struct hf__zk_request *next = n > 0 ? hf__zk_request_new(zk, got_token, NULL) : NULL;
	if (n == 0) {
		hf__zk_answer_count(zk, cmd, 0, now);
	} else if (!next) {
		hf__session_doubt(zk, "no memory for a request");
	} else {
		next->cmd = cmd;
		hf__node_folder(zk, cmd->lock, folder);
		snprintf(path, sizeof path, "%s/%s", folder, request->names[n - 1]);
		hf__zk_request_exists(next, path, NULL);
	}
}

static void pinged(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (hf__zk_request_is_answer(zk, request))
		hf__zk_answer_count(zk, request->cmd, 0, now);
}

static int ping(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__zk_request *request = hf__zk_request_new(zk, pinged, NULL);
	if (!request)
		return HF_ENOMEM;
	request->cmd = cmd;
	hf__zk_request_beat(request, zk->config->chroot[0] ? zk->config->chroot : "/");
	return 0;
}

static int reach_holders(struct hf__zk *zk, struct hf__cmd *cmd)
{
	char path[HF__ZK_PATH];
	if (hf__lock_kind(cmd->lock) != HF__NODE_PLAIN)
		return ask_about(zk, cmd, listed_to_reach);
	hf__node_folder(zk, cmd->lock, path);
	reach(zk, cmd, path, true);
	return 0;
}

static bool is_barrier(const struct hf__lock *lock)
{
	return lock &&
	       (hf__lock_kind(lock) == HF__NODE_BARRIER || hf__lock_kind(lock) == HF__NODE_EXIT);
}

int hf__holders_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	if (is_barrier(cmd->lock))
		return hf__zk_barrier_submit(zk, cmd);
	switch (cmd->verb) {
	case HF__ASK:
	case HF__SETTLE: return hf__node_submit(zk, cmd);
	case HF__RENEW: renew(zk, cmd); return 0;
	case HF__LOOK: return ask_about(zk, cmd, looked);
	case HF__FORCE:
	case HF__REVOKE: return reach_holders(zk, cmd);
	case HF__DROP_WAITER: return drop_waiter(zk, cmd);
	case HF__PING: return ping(zk, cmd);
	case HF__LIST:
	case HF__INSPECT:
	case HF__FACTS: return hf__survey_submit(zk, cmd);
	case HF__TOKEN:
		return ask_about(zk, cmd,
		                 hf__lock_kind(cmd->lock) == HF__NODE_PLAIN ? got_token
		                                                            : listed_for_token);
	case HF__PERMITS_RELEASE:
	case HF__PERMITS_EXTEND:
	case HF__PERMITS_LEASE:
	case HF__PERMITS_AVAILABLE:
	case HF__PERMITS_ACQUIRED:
	case HF__PERMITS_TOTAL:
	case HF__PERMITS_TRY_SET:
	case HF__PERMITS_SET:
	case HF__PERMITS_ADD:
	case HF__PERMITS_FROM: return hf__total_submit(zk, cmd);
	default: hf__zk_answer_soon(zk, cmd, HF__FAILED); return 0;
	}
}
