/* Making a node, finding it again after a lost answer, and whose turn it is. */
#include "zk/zk.h"

#include <stdio.h>
#include <string.h>

static bool is_plain(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF__NODE_PLAIN;
}

static bool is_member(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF__NODE_MEMBER;
}

static bool asks(const struct hf__node *node)
{
	return node->cmd->verb == HF__ASK && !node->error;
}

static void folder_of(const struct hf__zk *zk, const struct hf__node *node,
                      char ret_path[HF__ZK_PATH])
{
	hf__node_part_folder(zk, node->lock, (enum hf__part)node->part, ret_path);
}

static enum hf__queue_role role_of(const struct hf__node *node)
{
	if (node->part == HF__PART_LEASE)
		return HF__QUEUE_LEASE;
	switch (hf__lock_kind(node->lock)) {
	case HF__NODE_READ: return HF__QUEUE_READ;
	case HF__NODE_WRITE: return HF__QUEUE_WRITE;
	case HF__NODE_LEADER: return HF__QUEUE_LATCH;
	default: return HF__QUEUE_MUTEX;
	}
}

/* ---- whose turn it is ---- */

/* Of leases the list changes when one is given back, so that is what is watched. */
static void list(struct hf__zk *zk, struct hf__node *node, hf__zk_request_fn *done)
{
	char path[HF__ZK_PATH];
	folder_of(zk, node, path);
	bool leases = node->part == HF__PART_LEASE;
	struct hf__watcher *watcher = leases ? hf__watcher_at(zk, path, true) : NULL;
	struct hf__zk_request *request =
		leases && !watcher ? NULL : hf__zk_request_new(zk, done, node);
	if (request)
		hf__zk_request_list(request, path, watcher);
	else
		hf__doubt_memory(zk);
	if (request && watcher) {
		hf__watcher_join(watcher, node);
		node->waits = true;
	}
}

/* The node before ours: it is gone already, or we are told when it goes. */
static void watched_before(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	node->waits = request->rc == ZOK && node->watcher;
	if (!asks(node) || !node->waits)
		hf__watcher_leave(node);
	if (!asks(node) || request->rc == ZNONODE)
		hf__node_advance(zk, node, now);
	else if (request->rc != ZOK)
		hf__node_fail_rc(zk, node, request->rc, now);
	else if (node->waits)
		hf__node_busy(zk, node, now);
	else
		hf__node_advance(zk, node,
		                 now); /* the event was there before the answer was heard */
}

static void watch_before(struct hf__zk *zk, struct hf__node *node, const char *path)
{
	struct hf__watcher *watcher = hf__watcher_at(zk, path, false);
	struct hf__zk_request *request =
		watcher ? hf__zk_request_new(zk, watched_before, node) : NULL;
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	hf__watcher_join(watcher, node);
	node->waits = false;
	hf__zk_request_get(request, path, watcher); /* which leaves no watch on nothing */
}

static bool is_used_up(const struct hf__node *node)
{
	int64_t number;
	return !hf__queue_number(node->name, &number) || number < 0 || number >= HF__QUEUE_LAST;
}

void hf__make_anew(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	node->state = HF__ZNODE_NEW;
	node->guid[0] = 0;
	hf__node_advance(zk, node, now);
}

static void my_turn(struct hf__zk *zk, struct hf__node *node, bool alone, int64_t now)
{
	if (node->part == HF__PART_LOCK)
		hf__alone_set(zk, node, alone);
	if (node->part == HF__PART_GATE)
		hf__lease_enter(zk, node, now);
	else
		hf__node_grant(zk, node, now);
}

static void wait_for(struct hf__zk *zk, struct hf__node *node, const char *before, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__alone_set(zk, node, false);
	if (node->cmd->place_ms == 0) {
		hf__node_busy(zk, node, now);
		return;
	}
	hf__node_child(zk, node, before, path);
	watch_before(zk, node, path);
}

static void take_turn(struct hf__zk *zk, struct hf__node *node, const struct hf__zk_request *listed,
                      int64_t now)
{
	size_t before;
	if (is_member(node)) {
		hf__zk_barrier_turn(zk, node, listed, now);
		return;
	}
	if (is_used_up(node)) {
		hf__node_fail(zk, node, HF_ECONFLICT,
		              "the numbers of its nodes are used up; stop all users and delete the "
		              "folder",
		              now);
		return;
	}
	if (node->part == HF__PART_LEASE) {
		hf__lease_turn(zk, node, listed, now);
		return;
	}
	if (node->part == HF__PART_GATE && hf__lease_refuse(zk, node, now))
		return;
	switch (hf__queue_turn(listed->names, listed->count, node->name, &before)) {
	case HF__TURN_MINE: my_turn(zk, node, listed->count == 1, now); break;
	case HF__TURN_MISSING: hf__make_anew(zk, node, now); break;
	case HF__TURN_WAIT: wait_for(zk, node, listed->names[before], now);
	}
}

/* ---- folders ---- */

static void made_folders(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	if (request->rc == ZOK)
		hf__node_advance(zk, node, now);
	else if (request->rc == ZNONODE)
		hf__node_fail(zk, node, HF_EINVAL, "the chroot is gone; it is never made by itself",
		              now);
	else
		hf__node_fail_rc(zk, node, request->rc, now);
}

static void make_folders(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__node_path(zk, node, path);
	hf__folder_make(zk, node, NULL, path, made_folders, now);
}

/* Somebody has the path as a plain lock: a node that can have no children. */
static void wait_for_plain(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	node->blocked = false;
	if (node->cmd->place_ms == 0) {
		hf__node_busy(zk, node, now);
		return;
	}
	hf__node_part_folder(zk, node->lock, HF__PART_LOCK, path);
	watch_before(zk, node, path);
}

/* The list that went out behind the creation, or later. */
static void listed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	if (!asks(node))
		hf__node_advance(zk, node, now);
	else if (request->rc != ZOK && request->rc != ZNONODE)
		hf__node_fail_rc(zk, node, request->rc, now);
	else if (node->blocked)
		wait_for_plain(zk, node, now);
	else if (node->state == HF__ZNODE_THERE && request->rc == ZOK)
		take_turn(zk, node, request, now);
	else if (node->state == HF__ZNODE_THERE)
		hf__make_anew(zk, node, now);
	else if (node->state == HF__ZNODE_NEW && request->rc == ZNONODE)
		make_folders(zk, node, now);
	else if (node->state == HF__ZNODE_NEW)
		hf__node_advance(zk, node, now); /* another has made the folder meanwhile */
}

/* ---- making ---- */

static void note_made(struct hf__node *node, const struct hf__zk_request *request)
{
	const char *slash = strrchr(request->text, '/');
	snprintf(node->name, sizeof node->name, "%s", slash ? slash + 1 : request->text);
	node->czxid = request->stat.czxid;
	node->state = HF__ZNODE_THERE;
	node->blocked = false;
}

static void made(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__zk_request_is_lost(request->rc)) {
		node->state = HF__ZNODE_UNKNOWN;
		if (node->cmd)
			hf__doubt_link(zk, zk->library.error(request->rc));
		return;
	}
	if (request->rc == ZOK) {
		note_made(node, request);
		bool alone = hf__alone_is_certain(zk, node);
		hf__alone_note_write(zk, node);
		if (alone && node->lone && node->cmd && asks(node) && !is_used_up(node))
			my_turn(zk, node, true, now);
		return;
	}
	node->state = HF__ZNODE_NEW;
	node->blocked = request->rc == ZNOCHILDRENFOREPHEMERALS;
	hf__alone_set(zk, node, false);
	if (node->cmd && hf__zk_request_is_dead(request->rc))
		hf__doubt_link(zk, zk->library.error(request->rc));
	if (node->cmd && request->rc != ZNONODE && !node->blocked &&
	    !hf__zk_request_is_dead(request->rc))
		hf__node_fail_rc(zk, node, request->rc, now);
}

/* One that others may make too: the lock is the node. */
static void made_plain(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	char path[HF__ZK_PATH];
	if (request->rc == ZNODEEXISTS) {
		node->state = HF__ZNODE_NEW;
		if (!node->cmd)
			return;
		hf__node_path(zk, node, path);
		if (!asks(node))
			hf__node_advance(zk, node, now);
		else if (node->cmd->place_ms > 0)
			watch_before(zk, node, path);
		else
			hf__node_busy(zk, node, now);
		return;
	}
	made(zk, request, now);
	if (node->dead || !node->cmd)
		return;
	if (node->state == HF__ZNODE_THERE)
		hf__node_advance(zk, node, now);
	else if (request->rc == ZNONODE)
		make_folders(zk, node, now);
}

/* What others may read there: the caller's own words, or who we are. A plain node begins with its GUID. */
static size_t describe(const struct hf__zk *zk, const struct hf__node *node, char *ret_data,
                       size_t size)
{
	const char *value = hf__core_value(node->cmd);
	const char *words = value ? value : zk->core->config.description;
	int n = is_plain(node) ? snprintf(ret_data, size, "%s%s%s", node->guid,
	                                  words[0] ? "\n" : "", words)
	                       : snprintf(ret_data, size, "%s", words);
	return (size_t)n < size ? (size_t)n : size - 1;
}

/* The write node of whoever reads inside its own write hold. */
static const struct hf__node *writer_of(struct hf__zk *zk, const struct hf__node *node)
{
	struct hf__lock *writes =
		hf__lock_kind(node->lock) == HF__NODE_READ
			? hf__lock_find(zk->core, HF__NODE_WRITE, hf__lock_name(node->lock))
			: NULL;
	const struct hf__node *writer = writes ? hf__node_find(zk, writes, node->cmd->from) : NULL;
	return writer && writer->granted && !writer->leaving ? writer : NULL;
}

static void name_node(struct hf__zk *zk, struct hf__node *node, int *ret_mode)
{
	const struct hf__node *writer = writer_of(zk, node);
	*ret_mode = HF__MODE_NUMBERED;
	if (is_plain(node) || is_member(node)) {
		*ret_mode = HF__MODE_EPHEMERAL;
		snprintf(node->name, sizeof node->name, "%s", node->guid);
		return;
	}
	hf__queue_name(node->name, node->guid, role_of(node));
	if (!writer)
		return;
	/* Who goes on reading inside its write hold keeps its place. */
	size_t length = strlen(node->name);
	snprintf(node->name + length, sizeof node->name - length, "%s",
	         hf__queue_suffix(writer->name));
	*ret_mode = HF__MODE_EPHEMERAL;
}

void hf__make(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH], data[HF__PUBLISHED_MAX + HF__QUEUE_GUID + 2];
	int mode;
	if (!node->guid[0] && hf__random_uuid(node->guid)) {
		hf__doubt_link(zk, "the system gives no random numbers");
		return;
	}
	struct hf__zk_request *request =
		hf__zk_request_new(zk, is_plain(node) ? made_plain : made, node);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	name_node(zk, node, &mode);
	node->state = HF__ZNODE_MAKING;
	node->lone = node->part == HF__PART_LOCK && mode == HF__MODE_NUMBERED &&
	             hf__alone_is_likely(zk, node->lock);
	hf__node_path(zk, node, path);
	size_t length = describe(zk, node, data, sizeof data);
	hf__zk_request_create(request, path, data, length, mode);
	if (!node->lone && !is_plain(node))
		list(zk, node, listed); /* on its heels: a session's requests keep their order */
}

/* ---- what may have been made ---- */

static void found_stat(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	bool ours = request->rc == ZOK && request->stat.ephemeralOwner == zk->session_id;
	node->czxid = request->stat.czxid;
	node->state = ours ? HF__ZNODE_THERE : HF__ZNODE_NEW;
	if (!ours)
		node->guid[0] = 0;
	hf__node_advance(zk, node, now);
}

static void ask_stat(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, found_stat, node);
	hf__node_path(zk, node, path);
	if (request)
		hf__zk_request_exists(request, path, NULL);
	else
		hf__doubt_memory(zk);
}

static bool is_own(const struct hf__node *node, const char *name)
{
	return is_member(node) ? strcmp(name, node->guid) == 0 : hf__queue_is_of(name, node->guid);
}

static void searched(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		hf__node_fail_rc(zk, node, request->rc, now);
		return;
	}
	for (size_t i = 0; i < request->count; i++) {
		if (!is_own(node, request->names[i]))
			continue;
		snprintf(node->name, sizeof node->name, "%s", request->names[i]);
		ask_stat(zk, node);
		return;
	}
	node->state = HF__ZNODE_NEW;
	hf__node_advance(zk, node, now);
}

/* What is in the plain lock's node begins with the GUID of this one. */
static bool is_signed(const struct hf__zk_request *got, const struct hf__node *node)
{
	size_t length = strlen(node->guid);
	return length > 0 && (size_t)got->length >= length &&
	       memcmp(got->text, node->guid, length) == 0;
}

/* The plain lock's node is that of another owner of this client. */
static bool is_anothers(struct hf__zk *zk, const struct hf__zk_request *got)
{
	struct hf__table_link *at = NULL;
	while ((at = hf__table_next(&zk->nodes, at))) {
		const struct hf__node *other = hf__table_item(at, struct hf__node, by_wire);
		bool has = other->state == HF__ZNODE_THERE && other->czxid == got->stat.czxid;
		if (other != got->node && other->lock == got->node->lock &&
		    (has || is_signed(got, other)))
			return true;
	}
	return false;
}

/* What it says may have been written over: then it is ours if its session is, and nobody else of us has it. */
static void searched_plain(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_is_over(zk, request))
		return;
	bool ours = request->rc == ZOK && request->stat.ephemeralOwner == zk->session_id &&
	            (is_signed(request, node) || !is_anothers(zk, request));
	node->czxid = request->stat.czxid;
	node->state = ours ? HF__ZNODE_THERE : HF__ZNODE_NEW;
	hf__node_advance(zk, node, now);
}

/* Nothing but what is behind it matters, and that it was answered. */
static void beaten(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	(void)now;
	(void)hf__node_is_over(zk, request);
}

static bool beat(struct hf__zk *zk, struct hf__node *node, const char *path)
{
	struct hf__zk_request *request = hf__zk_request_new(zk, beaten, node);
	if (request)
		hf__zk_request_beat(request, path);
	else
		hf__doubt_memory(zk);
	return request;
}

/*
 * An answer was lost. First something that only the quorum can answer, so that what is read behind it is
 * not older than that; then a look for our GUID.
 */
void hf__make_search(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	if (is_plain(node))
		hf__node_path(zk, node, path);
	else
		folder_of(zk, node, path);
	if (!beat(zk, node, path))
		return;
	if (!is_plain(node)) {
		list(zk, node, searched);
		return;
	}
	struct hf__zk_request *request = hf__zk_request_new(zk, searched_plain, node);
	if (request)
		hf__zk_request_get(request, path, NULL);
	else
		hf__doubt_memory(zk);
}

static bool is_proven(const struct hf__zk *zk, const struct hf__node *node)
{
	return node->cmd->sent_at - zk->proof.sure_at < zk->core->config.watchdog_ms / 3;
}

/* A list is the word of one server, which may be cut off: what is granted needs the quorum's too. */
void hf__make_list(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	hf__node_path(zk, node, path);
	if (is_proven(zk, node) || beat(zk, node, path))
		list(zk, node, listed);
}

static void proven(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__node_is_over(zk, request) && request->rc == ZNONODE)
		hf__node_gone(zk, request->node, now);
}

bool hf__make_prove(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	if (is_proven(zk, node))
		return true;
	struct hf__zk_request *request = hf__zk_request_new(zk, proven, node);
	hf__node_path(zk, node, path);
	if (request)
		hf__zk_request_beat(request, path);
	else
		hf__doubt_memory(zk);
	return false;
}
