/* One acquisition as a node: made, found again, waited for, removed. */
#include "zk/zk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As the library has them, but constants. */
enum { MODE_EPHEMERAL = 1, MODE_NUMBERED = 3, MODE_CONTAINER = 4 };

static void advance(struct hf__zk *zk, struct hf__node *node, int64_t now);

/* ---- names ---- */

static bool is_plain(const struct hf__node *node)
{
	return hf__lock_kind(node->lock) == HF__NODE_PLAIN;
}

static enum hf__queue_role role_of(const struct hf__node *node)
{
	int kind = hf__lock_kind(node->lock);
	return kind == HF__NODE_READ    ? HF__QUEUE_READ
	       : kind == HF__NODE_WRITE ? HF__QUEUE_WRITE
	                                : HF__QUEUE_MUTEX;
}

void hf__node_folder(const struct hf__zk *zk, const struct hf__lock *lock,
                     char ret_path[HF__ZK_PATH])
{
	snprintf(ret_path, HF__ZK_PATH, "%s/%s", zk->config->chroot, hf__lock_name(lock));
}

static void path_of(const struct hf__zk *zk, const struct hf__lock *lock, const char *child,
                    char ret_path[HF__ZK_PATH])
{
	snprintf(ret_path, HF__ZK_PATH, "%s/%s/%s", zk->config->chroot, hf__lock_name(lock), child);
}

void hf__node_path(const struct hf__zk *zk, const struct hf__node *node, char ret_path[HF__ZK_PATH])
{
	if (is_plain(node))
		hf__node_folder(zk, node->lock, ret_path);
	else
		path_of(zk, node->lock, node->name, ret_path);
}

/* ---- records ---- */

struct node_key {
	const struct hf__lock *lock;
	uint64_t wire;
};

static bool same_node(const struct hf__table_link *link, const void *key)
{
	const struct hf__node *node = hf__table_item(link, struct hf__node, by_wire);
	const struct node_key *want = key;
	return node->wire == want->wire && node->lock == want->lock;
}

static uint32_t hash_of(const struct hf__zk *zk, uint64_t wire)
{
	return hf__table_hash(&zk->nodes, &wire, sizeof wire);
}

struct hf__node *hf__node_find(struct hf__zk *zk, const struct hf__lock *lock, uint64_t wire)
{
	struct node_key key = {.lock = lock, .wire = wire};
	struct hf__table_link *link =
		hf__table_find(&zk->nodes, hash_of(zk, wire), same_node, &key);
	return link ? hf__table_item(link, struct hf__node, by_wire) : NULL;
}

/* The write node of whoever reads inside its own write hold. */
static bool same_writer(const struct hf__table_link *link, const void *key)
{
	const struct hf__node *node = hf__table_item(link, struct hf__node, by_wire);
	const struct hf__node *reader = key;
	return node->wire == reader->wire && hf__lock_kind(node->lock) == HF__NODE_WRITE &&
	       node->granted && strcmp(hf__lock_name(node->lock), hf__lock_name(reader->lock)) == 0;
}

static const struct hf__node *writer_of(const struct hf__zk *zk, const struct hf__node *node)
{
	if (hf__lock_kind(node->lock) != HF__NODE_READ)
		return NULL;
	struct hf__table_link *link =
		hf__table_find(&zk->nodes, hash_of(zk, node->wire), same_writer, node);
	return link ? hf__table_item(link, struct hf__node, by_wire) : NULL;
}

static struct hf__node *new_node(struct hf__zk *zk, const struct hf__cmd *cmd)
{
	struct hf__node *node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	hf__list_init(&node->link);
	node->lock = cmd->lock;
	node->wire = cmd->wire;
	node->lock->refs++;
	hf__table_add(&zk->nodes, &node->by_wire, hash_of(zk, node->wire));
	return node;
}

static void free_dead(struct hf__zk *zk, struct hf__node *node)
{
	if (!node->dead || node->requests > 0)
		return;
	struct hf__lock *lock = node->lock;
	free(node);
	hf__lock_unref(zk->core, lock);
}

/* Nobody's from now on. */
static void bury(struct hf__zk *zk, struct hf__node *node)
{
	hf__table_remove(&zk->nodes, &node->by_wire);
	hf__list_remove(&node->link);
	node->cmd = NULL;
	node->dead = true;
	free_dead(zk, node);
}

void hf__node_gone(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	if (node->granted)
		hf__core_gone(zk->core, node->lock, node->wire, now);
	if (node->cmd) {
		hf__list_remove(&node->link);
		node->granted = node->guarded = false;
		node->state = HF__NODE_NEW;
	} else {
		bury(zk, node);
	}
}

void hf__node_drop_all(struct hf__zk *zk, int64_t now)
{
	struct hf__table_link *at = hf__table_next(&zk->nodes, NULL);
	while (at) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		at = hf__table_next(&zk->nodes, at);
		hf__node_gone(zk, node, now);
	}
}

void hf__node_free_all(struct hf__zk *zk)
{
	struct hf__table_link *at;
	while ((at = hf__table_next(&zk->nodes, NULL))) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		node->requests = 0;
		bury(zk, node);
	}
}

/* ---- answers ---- */

/* Takes the command off the node, which goes on without. */
static struct hf__cmd *take_cmd(struct hf__node *node)
{
	struct hf__cmd *cmd = node->cmd;
	node->cmd = NULL;
	return cmd;
}

static void answer(struct hf__zk *zk, struct hf__node *node, struct hf__answer reply, int64_t now)
{
	hf__zk_answer(zk, take_cmd(node), &reply, now);
}

/* A request came back without a result: the command is answered once the session is sure of itself. */
static bool is_over(struct hf__zk *zk, const struct hf__request *request)
{
	if (!hf__request_is_dead(request->rc) && !hf__request_is_lost(request->rc))
		return false;
	hf__session_doubt(zk, zk->library.error(request->rc));
	return true;
}

/* The node must not stay behind, so it goes first. */
static void fail(struct hf__zk *zk, struct hf__node *node, int error, const char *why, int64_t now)
{
	node->error = error;
	snprintf(node->why, sizeof node->why, "%s", why);
	if (node->state == HF__NODE_THERE) {
		advance(zk, node, now);
		return;
	}
	struct hf__answer reply = {.outcome = HF__FAILED,
	                           .error = error,
	                           .text = node->why,
	                           .length = strlen(node->why)};
	struct hf__cmd *cmd = take_cmd(node);
	node->requests++;
	if (cmd)
		hf__zk_answer(zk, cmd, &reply, now);
	node->requests--;
	bury(zk, node);
}

static void fail_rc(struct hf__zk *zk, struct hf__node *node, int rc, int64_t now)
{
	bool conflict = rc == ZNOCHILDRENFOREPHEMERALS;
	bool auth = rc == ZNOAUTH || rc == ZINVALIDACL;
	bool path = rc == ZBADARGUMENTS;
	fail(zk, node,
	     conflict ? HF_ECONFLICT
	     : path   ? HF_EINVAL
	              : HF_EREFUSED,
	     conflict ? "the path is a node that cannot have children: a plain lock?"
	     : auth   ? "the server does not allow it: not authorized; see auth= and acl="
	     : path   ? "name: no path; none of its parts may be empty, '.' or '..'"
	              : zk->library.error(rc),
	     now);
}

static void grant(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	node->granted = true;
	node->waits = false;
	/* What only one server has said counts from when the quorum was last heard of. */
	if (zk->quorum_at < node->cmd->sent_at)
		node->cmd->sent_at = zk->quorum_at;
	if (hf__list_empty(&node->link))
		hf__list_add(&zk->held, &node->link);
	if (!node->guarded && zk->guard_at == HF__NEVER)
		zk->guard_at = now + HF__GUARD_MS;
	answer(zk, node, (struct hf__answer){.outcome = HF__GRANTED, .token = node->czxid}, now);
}

static void busy(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	answer(zk, node,
	       (struct hf__answer){.outcome = HF__BUSY,
	                           .ttl_ms = -1,
	                           .channel = HF__CHANNEL_WAITER,
	                           .watched = true},
	       now);
}

/* ---- steps ---- */

static void list(struct hf__zk *zk, struct hf__node *node, hf__request_fn *done)
{
	char path[HF__ZK_PATH];
	struct hf__request *request = hf__request_new(zk, done, node);
	hf__node_folder(zk, node->lock, path);
	if (request)
		hf__request_list(request, path);
	else
		hf__session_doubt(zk, "no memory for a request");
}

/* The node before ours: it is gone already, or we are told when it goes. */
static void watched_before(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__request_drop_watcher(request->watcher);
	else if (request->rc == ZNONODE && !is_plain(node))
		hf__request_drop_watcher(request->watcher); /* a get leaves no watch on nothing */
	if (!node->cmd || is_over(zk, request))
		return;
	node->waits = request->rc == ZOK;
	if (request->rc == ZOK)
		busy(zk, node, now);
	else if (request->rc == ZNONODE)
		advance(zk, node, now);
	else
		fail_rc(zk, node, request->rc, now);
}

static void watch_before(struct hf__zk *zk, struct hf__node *node, const char *path)
{
	struct hf__watcher *watcher = hf__request_watcher(zk, node, false);
	struct hf__request *request = watcher ? hf__request_new(zk, watched_before, node) : NULL;
	if (!request) {
		if (watcher)
			hf__request_drop_watcher(watcher);
		hf__session_doubt(zk, "no memory for a request");
	} else if (is_plain(node)) {
		hf__request_exists(request, path, watcher);
	} else {
		hf__request_get(request, path, watcher);
	}
}

static bool is_used_up(const struct hf__node *node)
{
	int64_t number;
	return !hf__queue_number(node->name, &number) || number < 0 || number >= HF__QUEUE_LAST;
}

/* Somebody has deleted our node: at the end of the queue with a new one. */
static void start_anew(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	node->state = HF__NODE_NEW;
	node->guid[0] = 0;
	advance(zk, node, now);
}

static void take_turn(struct hf__zk *zk, struct hf__node *node, const struct hf__request *listed,
                      int64_t now)
{
	char path[HF__ZK_PATH];
	size_t before;
	if (is_used_up(node)) {
		fail(zk, node, HF_ECONFLICT,
		     "the numbers of its nodes are used up; stop all users and delete the folder",
		     now);
		return;
	}
	switch (hf__queue_turn(listed->names, listed->count, node->name, &before)) {
	case HF__TURN_MINE: grant(zk, node, now); break;
	case HF__TURN_MISSING: start_anew(zk, node, now); break;
	case HF__TURN_WAIT:
		if (node->cmd->place_ms == 0) {
			busy(zk, node, now);
			break;
		}
		path_of(zk, node->lock, listed->names[before], path);
		watch_before(zk, node, path);
	}
}

static void make_folder(struct hf__zk *zk, struct hf__node *node, size_t length);

static void made_folder(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	char path[HF__ZK_PATH];
	if (!node->cmd || is_over(zk, request))
		return;
	hf__node_folder(zk, node->lock, path);
	size_t length = node->made;
	if (request->rc == ZNONODE) {
		size_t up = length;
		while (up > 0 && path[up - 1] != '/')
			up--;
		if (up <= strlen(zk->config->chroot) + 1)
			fail(zk, node, HF_EINVAL, "the chroot is gone; it is never made by itself",
			     now);
		else
			make_folder(zk, node, up - 1);
	} else if (request->rc != ZOK && request->rc != ZNODEEXISTS) {
		fail_rc(zk, node, request->rc, now);
	} else {
		const char *next = path[length] ? strchr(path + length + 1, '/') : NULL;
		size_t whole = strlen(path);
		if (is_plain(node)) /* the last part is the lock itself */
			whole = (size_t)(strrchr(path, '/') - path);
		size_t down = next ? (size_t)(next - path) : strlen(path);
		if (length >= whole)
			advance(zk, node, now);
		else
			make_folder(zk, node, down < whole ? down : whole);
	}
}

static void make_folder(struct hf__zk *zk, struct hf__node *node, size_t length)
{
	char path[HF__ZK_PATH];
	struct hf__request *request = hf__request_new(zk, made_folder, node);
	if (!request) {
		hf__session_doubt(zk, "no memory for a request");
		return;
	}
	hf__node_folder(zk, node->lock, path);
	path[length] = 0;
	node->made = (uint16_t)length;
	hf__request_create(request, path, "", MODE_CONTAINER);
}

static void make_parents(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	hf__node_folder(zk, node->lock, path);
	if (is_plain(node))
		*strrchr(path, '/') = 0;
	if (strlen(path) <= strlen(zk->config->chroot))
		fail(zk, node, HF_EINVAL, "the chroot is gone; it is never made by itself", now);
	else
		make_folder(zk, node, strlen(path));
}

/* Somebody has the path as a plain lock: a node that can have no children. */
static void wait_for_plain(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	char path[HF__ZK_PATH];
	node->blocked = false;
	if (node->cmd->place_ms == 0) {
		busy(zk, node, now);
		return;
	}
	hf__node_folder(zk, node->lock, path);
	watch_before(zk, node, path);
}

/* The list that went out behind the creation. */
static void listed_first(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (!node->cmd || is_over(zk, request))
		return;
	if (node->cmd->verb != HF__ASK || node->error)
		advance(zk, node, now);
	else if (request->rc != ZOK && request->rc != ZNONODE)
		fail_rc(zk, node, request->rc, now);
	else if (node->blocked)
		wait_for_plain(zk, node, now);
	else if (node->state == HF__NODE_THERE && request->rc == ZOK)
		take_turn(zk, node, request, now);
	else if (node->state == HF__NODE_THERE)
		start_anew(zk, node, now);
	else if (node->state == HF__NODE_NEW && request->rc == ZNONODE)
		make_parents(zk, node, now);
	else if (node->state == HF__NODE_NEW)
		advance(zk, node, now); /* another has made the folder meanwhile */
}

static void note_made(struct hf__node *node, const struct hf__request *request)
{
	const char *slash = strrchr(request->text, '/');
	snprintf(node->name, sizeof node->name, "%s", slash ? slash + 1 : request->text);
	node->czxid = request->stat.czxid;
	node->state = HF__NODE_THERE;
}

static void made(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__request_is_lost(request->rc)) {
		node->state = HF__NODE_UNKNOWN;
		if (node->cmd)
			hf__session_doubt(zk, zk->library.error(request->rc));
	} else if (request->rc == ZOK) {
		note_made(node, request);
	} else {
		node->state = HF__NODE_NEW;
		node->blocked = request->rc == ZNOCHILDRENFOREPHEMERALS;
		if (node->cmd && request->rc != ZNONODE && !node->blocked &&
		    !hf__request_is_dead(request->rc))
			fail_rc(zk, node, request->rc, now);
	}
}

/* One that others may make too: the lock is the node. */
static void made_plain(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	char path[HF__ZK_PATH];
	if (request->rc == ZNODEEXISTS) {
		node->state = HF__NODE_NEW;
		if (!node->cmd)
			return;
		hf__node_folder(zk, node->lock, path);
		if (node->cmd->verb == HF__ASK && node->cmd->place_ms > 0)
			watch_before(zk, node, path);
		else if (node->cmd->verb == HF__ASK)
			busy(zk, node, now);
		else
			advance(zk, node, now);
		return;
	}
	made(zk, request, now);
	if (node->dead || !node->cmd)
		return;
	if (node->state == HF__NODE_THERE && node->cmd->verb == HF__ASK)
		grant(zk, node, now);
	else if (node->state == HF__NODE_THERE)
		advance(zk, node, now);
	else if (request->rc == ZNONODE)
		make_parents(zk, node, now);
}

/* Who we are, for those who ask; the GUID tells our plain node from another's. */
static void describe(const struct hf__zk *zk, const struct hf__node *node, char *ret_data,
                     size_t size)
{
	const char *words = zk->core->config.description;
	if (is_plain(node))
		snprintf(ret_data, size, "%s%s%s", node->guid, words[0] ? "\n" : "", words);
	else
		snprintf(ret_data, size, "%s", words);
}

static void make(struct hf__zk *zk, struct hf__node *node)
{
	char folder[HF__ZK_PATH], path[HF__ZK_PATH + HF__QUEUE_NAME];
	char data[HF__DESCRIPTION_SIZE + HF__QUEUE_GUID + 2];
	const struct hf__node *writer = writer_of(zk, node);
	if (!node->guid[0] && hf__random_uuid(node->guid)) {
		hf__session_doubt(zk, "the system gives no random numbers");
		return;
	}
	struct hf__request *request = hf__request_new(zk, is_plain(node) ? made_plain : made, node);
	if (!request) {
		hf__session_doubt(zk, "no memory for a request");
		return;
	}
	node->state = HF__NODE_MAKING;
	hf__node_folder(zk, node->lock, folder);
	describe(zk, node, data, sizeof data);
	if (is_plain(node)) {
		hf__request_create(request, folder, data, MODE_EPHEMERAL);
		return;
	}
	hf__queue_name(node->name, node->guid, role_of(node));
	/* Who goes on reading inside its write hold keeps its place. */
	snprintf(path, sizeof path, "%s/%s%s", folder, node->name,
	         writer ? hf__queue_suffix(writer->name) : "");
	hf__request_create(request, path, data, writer ? MODE_EPHEMERAL : MODE_NUMBERED);
	list(zk, node, listed_first); /* on its heels: a session's requests keep their order */
}

/* ---- what may have been made ---- */

static void found_stat(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (!node->cmd || is_over(zk, request))
		return;
	bool ours = request->rc == ZOK && request->stat.ephemeralOwner == zk->session_id;
	node->czxid = request->stat.czxid;
	node->state = ours ? HF__NODE_THERE : HF__NODE_NEW;
	if (!ours)
		node->guid[0] = 0;
	advance(zk, node, now);
}

static void ask_stat(struct hf__zk *zk, struct hf__node *node, hf__request_fn *done)
{
	char path[HF__ZK_PATH];
	struct hf__request *request = hf__request_new(zk, done, node);
	hf__node_path(zk, node, path);
	if (request)
		hf__request_exists(request, path, NULL);
	else
		hf__session_doubt(zk, "no memory for a request");
}

static void searched(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (!node->cmd || is_over(zk, request))
		return;
	if (request->rc != ZOK && request->rc != ZNONODE) {
		fail_rc(zk, node, request->rc, now);
		return;
	}
	for (size_t i = 0; i < request->count; i++) {
		if (!hf__queue_is_of(request->names[i], node->guid))
			continue;
		snprintf(node->name, sizeof node->name, "%s", request->names[i]);
		ask_stat(zk, node, found_stat);
		return;
	}
	node->state = HF__NODE_NEW;
	advance(zk, node, now);
}

static void searched_plain(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	size_t length = strlen(node->guid);
	if (!node->cmd || is_over(zk, request))
		return;
	bool ours = request->rc == ZOK && request->stat.ephemeralOwner == zk->session_id &&
	            (size_t)request->length >= length &&
	            memcmp(request->text, node->guid, length) == 0;
	node->czxid = request->stat.czxid;
	node->state = ours ? HF__NODE_THERE : HF__NODE_NEW;
	if (ours && node->cmd->verb == HF__ASK)
		grant(zk, node, now);
	else
		advance(zk, node, now);
}

/* Nothing but the search behind it matters, and that it was answered. */
static void beaten(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	(void)now;
	if (hf__request_is_lost(request->rc) && request->node->cmd)
		hf__session_doubt(zk, zk->library.error(request->rc));
}

/*
 * An answer was lost. First something that only the quorum can answer, so that what is read behind it is
 * not older than that; then a look for our GUID.
 */
static void search(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__request *beat = hf__request_new(zk, beaten, node);
	if (!beat) {
		hf__session_doubt(zk, "no memory for a request");
		return;
	}
	hf__node_folder(zk, node->lock, path);
	hf__request_beat(beat, path);
	if (!is_plain(node)) {
		list(zk, node, searched);
		return;
	}
	struct hf__request *request = hf__request_new(zk, searched_plain, node);
	if (request)
		hf__request_get(request, path, NULL);
	else
		hf__session_doubt(zk, "no memory for a request");
}

/* ---- the end of a node ---- */

static void removed(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__request_is_lost(request->rc) || hf__request_is_dead(request->rc)) {
		(void)is_over(zk, request);
		return;
	}
	if (request->rc != ZOK && request->rc != ZNONODE && node->cmd) {
		hf__zk_answer_failed(zk, take_cmd(node), request->rc, "the node cannot be removed",
		                     now);
		return;
	}
	node->state = HF__NODE_NEW;
	if (node->error && node->cmd) {
		fail(zk, node, node->error, node->why, now);
		return;
	}
	bool lost = request->rc == ZNONODE && node->granted;
	struct hf__cmd *cmd = take_cmd(node);
	bury(zk, node);
	if (cmd)
		hf__zk_answer(zk, cmd, &(struct hf__answer){.outcome = lost ? HF__GONE : HF__DONE},
		              now);
}

static void delete_node(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__request *request = hf__request_new(zk, removed, node);
	hf__node_path(zk, node, path);
	if (request)
		hf__request_remove(request, path);
	else
		hf__session_doubt(zk, "no memory for a request");
}

static void checked(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (!node->cmd || is_over(zk, request))
		return;
	if (request->rc == ZOK && request->stat.czxid == node->czxid) {
		delete_node(zk, node);
		return;
	}
	request->rc = ZNONODE;
	removed(zk, request, now);
}

/* The name of a plain lock is everybody's: what another has made there meanwhile must stay. */
static void remove_node(struct hf__zk *zk, struct hf__node *node)
{
	if (is_plain(node))
		ask_stat(zk, node, checked);
	else
		delete_node(zk, node);
}

static void end(struct hf__zk *zk, struct hf__node *node)
{
	struct hf__cmd *cmd = take_cmd(node);
	bury(zk, node);
	hf__zk_answer_soon(zk, cmd, HF__DONE);
}

/* A list is the word of one server, which may be cut off: what is granted needs the quorum's too. */
static void list_again(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	bool proven = node->cmd->sent_at - zk->quorum_at < zk->core->config.watchdog_ms / 3;
	struct hf__request *beat = proven ? NULL : hf__request_new(zk, beaten, node);
	hf__node_path(zk, node, path);
	if (beat)
		hf__request_beat(beat, path);
	else if (!proven)
		hf__session_doubt(zk, "no memory for a request");
	if (beat || proven)
		list(zk, node, listed_first);
}

/* Does the next thing for the node's command, unless an earlier one is under way. */
static void advance(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	bool asks = node->cmd && node->cmd->verb == HF__ASK && !node->error;
	if (!node->cmd || node->requests > 1)
		return;
	switch ((enum hf__node_state)node->state) {
	case HF__NODE_NEW:
		if (asks)
			make(zk, node);
		else
			end(zk, node);
		break;
	case HF__NODE_MAKING: break;
	case HF__NODE_UNKNOWN: search(zk, node); break;
	case HF__NODE_THERE:
		if (!asks)
			remove_node(zk, node);
		else if (is_plain(node))
			grant(zk, node, now);
		else
			list_again(zk, node);
	}
}

int hf__node_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__node *node = hf__node_find(zk, cmd->lock, cmd->wire);
	if (!node && cmd->verb == HF__SETTLE) {
		hf__zk_answer_soon(zk, cmd, HF__GONE);
		return 0;
	}
	if (!node && !(node = new_node(zk, cmd)))
		return HF_ENOMEM;
	node->cmd = cmd;
	node->waits = false;
	if (node->requests == 0) {
		node->requests++; /* as inside a request's end */
		advance(zk, node, 0);
		hf__node_release(zk, node, 0);
	}
	return 0;
}

void hf__node_release(struct hf__zk *zk, struct hf__node *node, int64_t now)
{
	node->requests--;
	if (node->dead) {
		free_dead(zk, node);
	} else if (node->requests == 0 && node->cmd && !zk->doubted) {
		node->requests++;
		advance(zk, node, now);
		node->requests--;
		free_dead(zk, node);
	}
}
