/* Finding out whether a node was created, after the answer was lost. */
#include "zk/zk.h"

#include <stdio.h>
#include <string.h>

static bool is_of_session(const struct hf__zk *zk, const struct hf__zk_request *request)
{
	return request->rc == ZOK && request->stat.ephemeralOwner == zk->session_id;
}

/* The server does not let us find out, and asking again would not help: the command fails. */
static bool is_refused(struct hf__zk *zk, const struct hf__zk_request *request, int64_t now)
{
	if (request->rc == ZOK || request->rc == ZNONODE)
		return false;
	hf__node_fail_leftover(zk, request->node, request->rc,
	                       "cannot find out whether the lock's node exists", now);
	return true;
}

/* ---- by its name in the folder ---- */

static void on_search_stat(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_ignores(zk, request) || is_refused(zk, request, now))
		return;
	node->czxid = request->stat.czxid;
	if (is_of_session(zk, request))
		hf__node_change(node, HF__ON_FOUND);
	else
		hf__node_start_over(node);
}

static void request_stat(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, on_search_stat, node);
	hf__node_path(zk, node, path);
	if (request)
		hf__zk_request_exists(request, path, NULL);
	else
		hf__doubt_memory(zk);
}

static bool is_own(const struct hf__node *node, const char *name)
{
	return hf__node_is_member(node) ? strcmp(name, node->guid) == 0
	                                : hf__queue_is_of(name, node->guid);
}

static void on_search_listed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_ignores(zk, request) || is_refused(zk, request, now))
		return;
	for (size_t i = 0; i < request->count; i++) {
		if (!is_own(node, request->names[i]))
			continue;
		snprintf(node->name, sizeof node->name, "%s", request->names[i]);
		request_stat(zk, node);
		return;
	}
	hf__node_change(node, HF__ON_MISSED);
}

/* ---- a plain lock's, by what is in it ---- */

/* The data starts with the GUID of this node. */
static bool is_signed(const struct hf__zk_request *read, const struct hf__node *node)
{
	size_t length = strlen(node->guid);
	return length > 0 && (size_t)read->length >= length &&
	       memcmp(read->text, node->guid, length) == 0;
}

/* The node belongs to another owner of this client. */
static bool is_anothers(struct hf__zk *zk, const struct hf__zk_request *read)
{
	struct hf__table_link *at = NULL;
	while ((at = hf__table_next(&zk->nodes, at))) {
		const struct hf__node *other = hf__table_item(at, struct hf__node, by_wire);
		bool same = hf__node_state_exists(other->state) && other->czxid == read->stat.czxid;
		if (other != read->node && other->lock == read->node->lock &&
		    (same || is_signed(read, other)))
			return true;
	}
	return false;
}

/*
 * Its data may have been overwritten: then it is ours if the session is ours and no other owner
 * holds it.
 */
static void on_read_plain(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	if (hf__node_ignores(zk, request) || is_refused(zk, request, now))
		return;
	bool ours = is_of_session(zk, request) &&
	            (is_signed(request, node) || !is_anothers(zk, request));
	node->czxid = request->stat.czxid;
	hf__node_change(node, ours ? HF__ON_FOUND : HF__ON_MISSED);
}

static void read_plain(struct hf__zk *zk, struct hf__node *node, const char *path)
{
	struct hf__zk_request *request = hf__zk_request_new(zk, on_read_plain, node);
	if (request)
		hf__zk_request_get(request, path, NULL);
	else
		hf__doubt_memory(zk);
}

/* Only the quorum can answer a beat, so what is read after it is not older than that. */
void hf__search_node(struct hf__zk *zk, struct hf__node *node)
{
	char path[HF__ZK_PATH];
	hf__node_folder(zk, node, path);
	if (!hf__admit_beat(zk, node, path))
		return;
	if (hf__node_is_plain(node))
		read_plain(zk, node, path);
	else
		hf__admit_send_list(zk, node, on_search_listed);
}
