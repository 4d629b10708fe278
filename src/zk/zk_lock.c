/* What the backend knows of a lock besides its nodes. */
#include "zk/zk.h"

#include <stdlib.h>

static bool is_same_lock(const struct hf__table_link *link, const void *key)
{
	return hf__table_item(link, struct hf__zk_lock, by_lock)->lock == key;
}

static uint32_t hash_lock(const struct hf__zk *zk, const struct hf__lock *lock)
{
	return hf__table_hash(&zk->locks, &lock, sizeof lock);
}

struct hf__zk_lock *hf__zk_lock_find(struct hf__zk *zk, const struct hf__lock *lock)
{
	struct hf__table_link *link =
		hf__table_find(&zk->locks, hash_lock(zk, lock), is_same_lock, lock);
	return link ? hf__table_item(link, struct hf__zk_lock, by_lock) : NULL;
}

struct hf__zk_lock *hf__zk_lock_get(struct hf__zk *zk, struct hf__lock *lock)
{
	struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, lock);
	if (zk_lock || !(zk_lock = calloc(1, sizeof(*zk_lock))))
		return zk_lock;
	zk_lock->lock = lock;
	hf__list_init(&zk_lock->interests);
	hf__table_add(&zk->locks, &zk_lock->by_lock, hash_lock(zk, lock));
	return zk_lock;
}

void hf__zk_lock_free(struct hf__zk *zk, struct hf__zk_lock *zk_lock)
{
	hf__table_remove(&zk->locks, &zk_lock->by_lock);
	hf__watcher_leave_lock(zk_lock);
	free(zk_lock->total_path);
	free(zk_lock);
}

void hf__zk_lock_free_all(struct hf__zk *zk)
{
	struct hf__table_link *at;
	while ((at = hf__table_next(&zk->locks, NULL)))
		hf__zk_lock_free(zk, hf__table_item(at, struct hf__zk_lock, by_lock));
}
