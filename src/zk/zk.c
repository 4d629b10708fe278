/* The ZooKeeper backend as the core sees it. */
#include "zk/zk.h"
#include "zk/zk_kinds.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers ---- */

/* Adds what else belongs to an answer that was put off. */
static void complete(struct hf__zk *zk, const struct hf__cmd *cmd, struct hf__answer *answer)
{
	const struct hf__node *node = NULL;
	if (answer->outcome == HF__GRANTED)
		node = hf__node_find(zk, cmd->lock, cmd->wire);
	if (node)
		answer->token = node->czxid;
	if (answer->outcome == HF__GONE && cmd->verb != HF__SETTLE) {
		answer->text = (const char *)cmd->permit[cmd->count];
		answer->length = HF__PERMIT_SIZE;
	}
}

/* Why a command is refused without asking the server. */
static const char *explain(const struct hf__cmd *cmd, enum hf__outcome outcome, int *ret_error)
{
	if (outcome == HF__NOT_NOW) {
		*ret_error = HF_ENOTNOW;
		return "another call is releasing this permit";
	}
	switch (cmd->verb) {
	case HF__PERMITS_ADD: *ret_error = HF_EINVAL; return HF__TOTAL_RANGE;
	case HF__LIST:
		*ret_error = HF_ENOMEM;
		return "too many lists of locks are in progress; try again later";
	default: *ret_error = HF_ENOTSUP; return "this call is not implemented for ZooKeeper";
	}
}

static void answer_ready(struct hf__zk *zk, int64_t now)
{
	while (!hf__list_empty(&zk->ready)) {
		struct hf__cmd *cmd = hf__list_item(zk->ready.next, struct hf__cmd, link);
		struct hf__answer answer = {.outcome = (enum hf__outcome)cmd->backend.outcome,
		                            .count = cmd->count};
		complete(zk, cmd, &answer);
		if (answer.outcome == HF__FAILED || answer.outcome == HF__NOT_NOW) {
			answer.text = explain(cmd, answer.outcome, &answer.error);
			answer.length = strlen(answer.text);
		}
		if (cmd->verb == HF__RENEW)
			hf__beat_answer(zk, cmd, now);
		else
			hf__zk_answer(zk, cmd, &answer, now);
	}
}

/* ---- what the core calls ---- */

static void on_ping(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (hf__zk_request_is_answer(zk, request))
		hf__zk_answer_count(zk, request->cmd, 0, now);
}

static int ping(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__zk_request *request = hf__zk_request_new(zk, on_ping, NULL);
	if (!request)
		return HF_ENOMEM;
	request->cmd = cmd;
	hf__zk_request_beat(request, zk->config->chroot[0] ? zk->config->chroot : "/");
	return 0;
}

static bool is_barrier(const struct hf__lock *lock)
{
	return lock && (hf__lock_kind(lock) == HF__BARRIER || hf__lock_kind(lock) == HF__EXIT);
}

static int submit_verb(struct hf__zk *zk, struct hf__cmd *cmd)
{
	if (is_barrier(cmd->lock))
		return hf__zk_barrier_submit(zk, cmd);
	switch (cmd->verb) {
	case HF__ASK:
	case HF__SETTLE: return hf__steps_submit(zk, cmd);
	case HF__RENEW: hf__beat_renew(zk, cmd); return 0;
	case HF__PING: return ping(zk, cmd);
	case HF__LOOK:
	case HF__FORCE:
	case HF__REVOKE:
	case HF__DROP_WAITER:
	case HF__TOKEN: return hf__holders_submit(zk, cmd);
	case HF__LIST:
	case HF__INSPECT:
	case HF__FACTS: return hf__survey_submit(zk, cmd);
	case HF__PERMITS_RELEASE:
	case HF__PERMITS_EXTEND:
	case HF__PERMITS_LEASE: hf__steps_submit_ids(zk, cmd); return 0;
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

static int submit(void *backend, struct hf__link *link, struct hf__cmd *cmd)
{
	assert(backend && link && link->up && cmd && cmd->in_flight && cmd->verb < HF__VERBS);
	struct hf__zk *zk = backend;
	(void)link;
	hf__list_add(&zk->waiting, &cmd->link);
	if (cmd->answer_by < zk->answer_by)
		zk->answer_by = cmd->answer_by;
	int rc = submit_verb(zk, cmd);
	if (rc)
		hf__list_remove(&cmd->link);
	return rc;
}

/* Each waiter is woken up on its own, so there is no channel to listen to. */
static int watch(void *backend, struct hf__watch *watched)
{
	assert(backend && watched && watched->lock);
	(void)backend;
	(void)watched;
	return 0;
}

static void unwatch(void *backend, struct hf__watch *watched)
{
	assert(backend && watched && watched->lock);
	(void)backend;
	(void)watched;
}

static void want_link(void *backend, struct hf__link *link)
{
	assert(backend && link);
	(void)link;
	hf__session_want(backend, hf__clock_ms());
}

/* Names are paths here. */
static const char *find_fault(const char *name)
{
	assert(name);
	for (const char *part = name;; part = strchr(part, '/') + 1) {
		size_t length = strcspn(part, "/");
		if (length == 0)
			return "name: a path on ZooKeeper must not have an empty part";
		if (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.')))
			return "name: a path on ZooKeeper must not have a part '.' or '..'";
		if (!part[length])
			return NULL;
	}
}

static void forget(void *backend, const struct hf__lock *lock)
{
	assert(backend && lock);
	struct hf__zk *zk = backend;
	struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, lock);
	if (zk_lock)
		hf__zk_lock_free(zk, zk_lock);
}

static void write_identity(void *backend, const struct hf__lock *lock, uint64_t wire,
                           char *ret_text, size_t size)
{
	assert(backend && lock && wire && ret_text && size > 0);
	const struct hf__node *node = hf__node_find(backend, lock, wire);
	bool plain = hf__lock_kind(lock) == HF_PLAIN;
	snprintf(ret_text, size, "%s", !node ? "" : plain ? hf__lock_name(lock) : node->name);
}

static int64_t next_due(void *backend)
{
	assert(backend);
	const struct hf__zk *zk = backend;
	if (!hf__list_empty(&zk->inbox) || !hf__list_empty(&zk->notices) ||
	    !hf__list_empty(&zk->ready))
		return 0;
	int64_t at = hf__session_due(zk);
	if (zk->watch_held_at < at && zk->state == HF__SESSION_UP)
		at = zk->watch_held_at;
	if (zk->wake_at < at && zk->state == HF__SESSION_UP)
		at = zk->wake_at;
	if (zk->leftovers_at < at && zk->state == HF__SESSION_UP)
		at = zk->leftovers_at;
	if (zk->answer_by < at && !hf__list_empty(&zk->waiting))
		at = zk->answer_by;
	return at;
}

static bool is_busy(void *backend)
{
	assert(backend);
	const struct hf__zk *zk = backend;
	return (zk->state > HF__SESSION_NONE && zk->state < HF__SESSION_UP) ||
	       !hf__list_empty(&zk->waiting) || !hf__list_empty(&zk->ready);
}

static const struct hf__list *list_waiting(void *backend)
{
	assert(backend);
	return &((const struct hf__zk *)backend)->waiting;
}

/* ---- a turn ---- */

/* Any answer of the quorum proves that the session lived when the request was sent. */
static void note_proof(struct hf__zk *zk, const struct hf__zk_request *request, int64_t now)
{
	if (request->quorum_at && !hf__zk_request_is_lost(request->rc) &&
	    !hf__zk_request_is_dead(request->rc))
		hf__proof_note(&zk->proof, request->quorum_at, now);
}

/* A command may take many steps, and each has the full time of a command. */
static void note_progress(struct hf__zk *zk, const struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->node ? request->node->cmd : request->cmd;
	if (hf__zk_request_is_lost(request->rc) || hf__zk_request_is_dead(request->rc))
		return;
	zk->answered_at = now;
	if (cmd)
		hf__zk_answer_extend(zk, cmd);
}

static void take_results(struct hf__zk *zk, int64_t now)
{
	while (!hf__list_empty(&zk->inbox)) {
		struct hf__zk_request *request =
			hf__list_item(zk->inbox.next, struct hf__zk_request, link);
		hf__list_remove(&request->link);
		/*
		 * The results of a session that has ended are ignored; its watchers may be freed.
		 */
		bool current = request->session == zk->sessions;
		if (current)
			note_proof(zk, request, now);
		if (current && request->watcher)
			request->watcher->requests--;
		if (current)
			note_progress(zk, request, now);
		bool dead = request->node && hf__node_is_dead(request->node);
		if (current && (!dead || request->outlives_node))
			request->done(zk, request, now);
		if (current && request->watcher)
			hf__watcher_tidy(zk, request->watcher);
		if (request->node)
			hf__steps_end_request(zk, request->node, now);
		hf__zk_request_free(request);
	}
}

static void take_notices(struct hf__zk *zk, int64_t now)
{
	while (!hf__list_empty(&zk->notices))
		hf__notice_take(zk, hf__list_item(zk->notices.next, struct hf__watcher, notice),
		                now);
}

/*
 * If a command is not answered in time, the connection is not as good as it seems. A session's
 * answers come in the order of its requests, so while earlier ones arrive the others are only late:
 * giving the connection up would make all of them ask once more, and the same crowd would be late
 * again.
 */
static void check_overdue(struct hf__zk *zk, int64_t now)
{
	struct hf__list *link;
	char why[120];
	int64_t idle_until = zk->answered_at + hf__core_settings(zk->core)->command_timeout_ms;
	if (zk->answer_by < idle_until)
		zk->answer_by = idle_until;
	if (now < zk->answer_by)
		return;
	zk->answer_by = HF__NEVER;
	hf__list_each (link, &zk->waiting) {
		const struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->answer_by <= now) {
			snprintf(why, sizeof why, "the server has not answered in %" PRId64 " ms",
			         now - cmd->sent_at);
			hf__doubt_link(zk, why);
			return;
		}
		if (cmd->answer_by < zk->answer_by)
			zk->answer_by = cmd->answer_by;
	}
}

static void turn(void *backend, int64_t now)
{
	assert(backend);
	struct hf__zk *zk = backend;
	take_results(zk, now);
	take_notices(zk, now);
	answer_ready(zk, now);
	check_overdue(zk, now);
	hf__session_turn(zk, now);
	if (zk->state == HF__SESSION_UP && now >= zk->watch_held_at)
		hf__held_watch_all(zk, now);
	if (zk->state == HF__SESSION_UP && now >= zk->wake_at)
		hf__node_wake_unwatched(zk, now);
	if (zk->state == HF__SESSION_UP && now >= zk->leftovers_at)
		hf__leftover_turn(zk, now);
}

/* ---- life ---- */

static void free_requests(struct hf__zk *zk, struct hf__list *list)
{
	while (!hf__list_empty(list)) {
		struct hf__zk_request *request =
			hf__list_item(list->next, struct hf__zk_request, link);
		struct hf__node *node = request->node;
		hf__zk_request_free(request);
		if (node)
			hf__steps_end_request(zk, node, 0);
	}
}

/* The library is silent now, so its requests are ours again, unless a thread was abandoned. */
static void close_link(void *backend)
{
	assert(backend);
	struct hf__zk *zk = backend;
	hf__session_close(zk);
	hf__engine_lock(zk->engine);
	zk->doubted = true; /* so that no step is taken any more */
	if (!zk->left)
		free_requests(zk, &zk->requests);
	free_requests(zk, &zk->inbox);
	hf__survey_free_all(zk);
	hf__node_free_all(zk);
	hf__zk_lock_free_all(zk);
	zk->doubted = false;
	hf__engine_unlock(zk->engine);
}

/* The library does not show its descriptors; the child closes them when it exits. */
static void close_in_child(void *backend)
{
	assert(backend);
	(void)backend;
}

static void free_zk(void *backend)
{
	assert(backend);
	struct hf__zk *zk = backend;
	hf__zk_lock_free_all(zk);
	hf__table_done(&zk->nodes);
	hf__table_done(&zk->locks);
	hf__table_done(&zk->watchers);
	hf__opener_unref(zk);
}

static void init_acl(struct hf__zk *zk)
{
	static char world[] = "world", anyone[] = "anyone", auth[] = "auth", nobody[] = "";
	bool own = zk->config->auth && !zk->config->acl_open;
	zk->acl.perms = 31;
	zk->acl.id.scheme = own ? auth : world;
	zk->acl.id.id = own ? nobody : anyone;
	zk->acls.count = 1;
	zk->acls.data = &zk->acl;
}

static const struct hf__backend_ops ops = {
	.submit = submit,
	.watch = watch,
	.unwatch = unwatch,
	.want_link = want_link,
	.traits = hf__zk_kinds_traits,
	.find_fault = find_fault,
	.forget = forget,
	.write_identity = write_identity,
	.due = next_due,
	.turn = turn,
	.is_busy = is_busy,
	.list_waiting = list_waiting,
	.close = close_link,
	.close_in_child = close_in_child,
	.free = free_zk,
};

int hf__zk_new(struct hf__core *core, struct hf__engine *engine,
               const struct hf__zk_settings *config, char *why, size_t size)
{
	assert(core && engine && config && why);
	struct hf__zk *zk = calloc(1, sizeof(*zk));
	if (!zk)
		return HF_ENOMEM;
	int rc = hf__library_load(&zk->library, config, why, size);
	if (!rc)
		rc = hf__library_copy(&zk->servers, config);
	if (rc) {
		free(zk);
		return rc;
	}
	zk->core = core;
	zk->engine = engine;
	zk->config = config;
	pthread_mutex_init(&zk->door, NULL);
	zk->owners = 1;
	zk->watch_held_at = zk->wake_at = zk->leftovers_at = zk->answer_by = HF__NEVER;
	hf__list_init(&zk->waiting);
	hf__list_init(&zk->ready);
	hf__list_init(&zk->inbox);
	hf__list_init(&zk->notices);
	hf__list_init(&zk->requests);
	hf__list_init(&zk->held);
	hf__list_init(&zk->unwatched);
	hf__table_init(&zk->nodes, (uint32_t)hf__core_random(core));
	hf__table_init(&zk->locks, (uint32_t)hf__core_random(core));
	hf__table_init(&zk->watchers, (uint32_t)hf__core_random(core));
	init_acl(zk);
	hf__core_set_backend(core, &ops, zk);
	return 0;
}
