/* What is known of a record beside its nodes. */
#include "zk/zk.h"

#include <stdlib.h>

static bool same_place(const struct hf__table_link *link, const void *key)
{
	return hf__table_item(link, struct hf__place, by_lock)->lock == key;
}

static uint32_t hash_of(const struct hf__zk *zk, const struct hf__lock *lock)
{
	return hf__table_hash(&zk->places, &lock, sizeof lock);
}

struct hf__place *hf__place_find(struct hf__zk *zk, const struct hf__lock *lock)
{
	struct hf__table_link *link =
		hf__table_find(&zk->places, hash_of(zk, lock), same_place, lock);
	return link ? hf__table_item(link, struct hf__place, by_lock) : NULL;
}

struct hf__place *hf__place_of(struct hf__zk *zk, struct hf__lock *lock)
{
	struct hf__place *place = hf__place_find(zk, lock);
	if (place || !(place = calloc(1, sizeof(*place))))
		return place;
	place->lock = lock;
	hf__list_init(&place->interests);
	hf__table_add(&zk->places, &place->by_lock, hash_of(zk, lock));
	return place;
}

void hf__place_free(struct hf__zk *zk, struct hf__place *place)
{
	hf__table_remove(&zk->places, &place->by_lock);
	hf__watch_leave_place(place);
	free(place->total_path);
	free(place);
}

void hf__place_free_all(struct hf__zk *zk)
{
	struct hf__table_link *at;
	while ((at = hf__table_next(&zk->places, NULL)))
		hf__place_free(zk, hf__table_item(at, struct hf__place, by_lock));
}

/* ---- alone in the folder ---- */

static uint64_t *own_writes(struct hf__zk *zk, const struct hf__lock *lock)
{
	uint32_t hash =
		hf__table_hash(&zk->places, hf__lock_name(lock), hf__lock_name_length(lock));
	return &zk->own_writes[hash % HF__OWN_WRITES];
}

/* What this client has written so far, but for what may have been in the lock's own folder. */
static uint64_t own_elsewhere(struct hf__zk *zk, const struct hf__lock *lock)
{
	return zk->all_own_writes - *own_writes(zk, lock);
}

/* Only what is made in the folder of its name itself, so that there is no doubt which folder it was. */
void hf__place_note_own(struct hf__zk *zk, const struct hf__node *node)
{
	int kind = hf__lock_kind(node->lock);
	if (kind != HF_REENTRANT && kind != HF_READ && kind != HF_WRITE)
		return;
	zk->all_own_writes++;
	(*own_writes(zk, node->lock))++;
}

void hf__place_set_alone(struct hf__zk *zk, const struct hf__node *node, bool alone)
{
	int64_t number;
	struct hf__place *place =
		alone ? hf__place_of(zk, node->lock) : hf__place_find(zk, node->lock);
	if (!place)
		return;
	place->alone_session = 0;
	place->alone_left = false;
	if (!alone || !hf__queue_number(node->name, &number)) {
		place->crowded = false;
		return;
	}
	place->alone_session = zk->sessions;
	place->alone_number = number;
	place->alone_czxid = node->czxid;
	place->alone_own = own_elsewhere(zk, node->lock);
}

void hf__place_note_removed(struct hf__zk *zk, const struct hf__node *node)
{
	struct hf__place *place = hf__place_find(zk, node->lock);
	if (place && place->alone_czxid == node->czxid)
		place->alone_left = true;
}

static bool is_empty(const struct hf__zk *zk, const struct hf__place *place)
{
	return place && place->alone_left && place->alone_session == zk->sessions;
}

bool hf__place_was_alone(struct hf__zk *zk, const struct hf__lock *lock)
{
	const struct hf__place *place = hf__place_find(zk, lock);
	return is_empty(zk, place) && !place->crowded;
}

/*
 * A folder counts what is made in it. If the last node of ours stood alone there and is removed, and this
 * one has the next number, nothing can stand before it. But a folder that is removed and made again counts
 * from nothing: then, in one epoch, as many transactions lie between the two as were needed to come to the
 * same number again, and the nodes' czxids tell that there were fewer. (No recipe makes lock nodes many at
 * once, in one transaction.) What this client did in other folders meanwhile does not count: a session's
 * answers come in the order of its transactions.
 */
bool hf__place_is_alone(struct hf__zk *zk, const struct hf__node *node)
{
	int64_t number;
	struct hf__place *place = hf__place_find(zk, node->lock);
	if (!is_empty(zk, place) || !hf__queue_number(node->name, &number) ||
	    number != place->alone_number + 1 || node->czxid >> 32 != place->alone_czxid >> 32)
		return false;
	int64_t between = node->czxid - place->alone_czxid -
	                  (int64_t)(own_elsewhere(zk, node->lock) - place->alone_own);
	place->crowded = between <= 0 || between > number + 1;
	return !place->crowded;
}
