/* Watchers by path: which nodes and locks are notified when something happens there. */
#include "zk/zk.h"

#include <stdlib.h>
#include <string.h>

#define WATCH_BYTES    4             /* besides the path */
#define MOST_OF_HOLDS  (900 * 1024)  /* bytes of all watches, beyond which holds are not watched, */
#define MOST_OF_QUEUES (1000 * 1024) /* and neither is what waiters wait for */

struct watch_key {
	const char *path;
	bool children;
};

static bool is_same_watcher(const struct hf__table_link *link, const void *key)
{
	const struct hf__watcher *watcher = hf__table_item(link, struct hf__watcher, by_path);
	const struct watch_key *want = key;
	return watcher->children == want->children && strcmp(watcher->path, want->path) == 0;
}

static struct hf__watcher *new_watcher(struct hf__zk *zk, const struct watch_key *key,
                                       uint32_t hash)
{
	size_t size = strlen(key->path) + 1;
	struct hf__watcher *watcher = calloc(1, sizeof(*watcher) + size);
	if (!watcher)
		return NULL;
	memcpy(watcher->path, key->path, size);
	zk->watched_bytes += WATCH_BYTES + size;
	watcher->children = key->children;
	watcher->session = zk->session;
	hf__list_init(&watcher->notice);
	hf__list_init(&watcher->nodes);
	hf__list_init(&watcher->interests);
	hf__list_add(&zk->session->watchers, &watcher->link);
	hf__table_add(&zk->watchers, &watcher->by_path, hash);
	return watcher;
}

static struct hf__table_link *find_watcher(const struct hf__zk *zk, const struct watch_key *key,
                                           uint32_t *ret_hash)
{
	*ret_hash = hf__table_hash(&zk->watchers, key->path, strlen(key->path));
	return hf__table_find(&zk->watchers, *ret_hash, is_same_watcher, key);
}

struct hf__watcher *hf__watcher_at(struct hf__zk *zk, const char *path, bool children)
{
	struct watch_key key = {.path = path, .children = children};
	uint32_t hash;
	struct hf__table_link *link = find_watcher(zk, &key, &hash);
	if (link)
		return hf__table_item(link, struct hf__watcher, by_path);
	return zk->session ? new_watcher(zk, &key, hash) : NULL;
}

/*
 * After a reconnect the library lists all its watches in one packet, and servers accept packets of
 * up to a megabyte: with more, the session could never be resumed. What holds leave of it is
 * reserved for waiters, and what these leave for barriers and numbers of permits.
 */
bool hf__watcher_has_room(const struct hf__zk *zk)
{
	return zk->watched_bytes < MOST_OF_HOLDS;
}

bool hf__watcher_can_wait(const struct hf__zk *zk, const char *path, bool children)
{
	struct watch_key key = {.path = path, .children = children};
	uint32_t hash;
	return zk->watched_bytes < MOST_OF_QUEUES || find_watcher(zk, &key, &hash);
}

void hf__watcher_leave(struct hf__node *node)
{
	hf__list_remove(&node->in_watch);
	node->watcher = NULL;
}

void hf__watcher_end_interest(struct hf__interest *interest)
{
	hf__list_remove(&interest->in_watch);
	hf__list_remove(&interest->in_lock);
	free(interest);
}

void hf__watcher_leave_lock(struct hf__zk_lock *zk_lock)
{
	while (!hf__list_empty(&zk_lock->interests))
		hf__watcher_end_interest(
			hf__list_item(zk_lock->interests.next, struct hf__interest, in_lock));
}

void hf__watcher_join(struct hf__watcher *watcher, struct hf__node *node)
{
	hf__watcher_leave(node);
	hf__list_add(&watcher->nodes, &node->in_watch);
	node->watcher = watcher;
}

int hf__watcher_join_lock(struct hf__watcher *watcher, struct hf__zk_lock *zk_lock)
{
	struct hf__list *link;
	hf__list_each (link, &watcher->interests)
		if (hf__list_item(link, struct hf__interest, in_watch)->zk_lock == zk_lock)
			return 0;
	struct hf__interest *interest = malloc(sizeof(*interest));
	if (!interest)
		return HF_ENOMEM;
	interest->zk_lock = zk_lock;
	hf__list_add(&watcher->interests, &interest->in_watch);
	hf__list_add(&zk_lock->interests, &interest->in_lock);
	return 0;
}

/* Every watcher also gets the events of the session, which it ignores. */
void hf__watcher_on_event(zhandle_t *handle, int type, int state, const char *path, void *arg)
{
	struct hf__watcher *watcher = arg;
	struct hf__zk *zk = watcher->session->zk;
	(void)handle;
	(void)state;
	(void)path;
	if (type == HF__EVENT_SESSION || !hf__door_enter(zk))
		return;
	watcher->armed = false;
	watcher->deleted = watcher->deleted || type == HF__EVENT_DELETED;
	watcher->created = watcher->created || type == HF__EVENT_CREATED;
	if (hf__list_empty(&watcher->notice))
		hf__list_add(&zk->notices, &watcher->notice);
	hf__door_leave(zk);
}

void hf__watcher_tidy(struct hf__zk *zk, struct hf__watcher *watcher)
{
	if (watcher->armed || watcher->requests > 0 || !hf__list_empty(&watcher->notice) ||
	    !hf__list_empty(&watcher->nodes) || !hf__list_empty(&watcher->interests))
		return;
	hf__table_remove(&zk->watchers, &watcher->by_path);
	hf__list_remove(&watcher->link);
	zk->watched_bytes -= WATCH_BYTES + strlen(watcher->path) + 1;
	free(watcher);
}

void hf__watcher_drop_all(struct hf__zk *zk)
{
	struct hf__table_link *at;
	zk->watched_bytes = 0;
	while ((at = hf__table_next(&zk->watchers, NULL))) {
		struct hf__watcher *watcher = hf__table_item(at, struct hf__watcher, by_path);
		hf__table_remove(&zk->watchers, at);
		while (!hf__list_empty(&watcher->nodes))
			hf__watcher_leave(
				hf__list_item(watcher->nodes.next, struct hf__node, in_watch));
		while (!hf__list_empty(&watcher->interests)) {
			struct hf__interest *interest = hf__list_item(
				watcher->interests.next, struct hf__interest, in_watch);
			interest->zk_lock->total_is_old = true;
			hf__watcher_end_interest(interest);
		}
	}
}

void hf__watcher_free_all(struct hf__session *session)
{
	while (!hf__list_empty(&session->watchers)) {
		struct hf__watcher *watcher =
			hf__list_item(session->watchers.next, struct hf__watcher, link);
		hf__list_remove(&watcher->link);
		free(watcher);
	}
}
