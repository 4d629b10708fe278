/* Whether a node of ours is alone in its folder, so that the folder does not have to be listed. */
#include "zk/zk.h"

static uint64_t *own_writes(struct hf__zk *zk, const struct hf__lock *lock)
{
	uint32_t hash = hf__table_hash(&zk->locks, hf__lock_name(lock), hf__lock_name_length(lock));
	return &zk->own_writes[hash % HF__OWN_WRITES];
}

/* What this client has written so far, except for what may have been in the lock's own folder. */
static uint64_t own_elsewhere(struct hf__zk *zk, const struct hf__lock *lock)
{
	return zk->all_own_writes - *own_writes(zk, lock);
}

/*
 * Counts only nodes directly in the folder of the lock's name, so that it is certain which folder
 * it was.
 */
void hf__alone_note_write(struct hf__zk *zk, const struct hf__node *node)
{
	int kind = hf__lock_kind(node->lock);
	if (kind != HF_REENTRANT && kind != HF_READ && kind != HF_WRITE)
		return;
	zk->all_own_writes++;
	(*own_writes(zk, node->lock))++;
}

void hf__alone_set(struct hf__zk *zk, const struct hf__node *node, bool alone)
{
	int64_t number;
	struct hf__zk_lock *zk_lock =
		alone ? hf__zk_lock_get(zk, node->lock) : hf__zk_lock_find(zk, node->lock);
	if (!zk_lock)
		return;
	zk_lock->alone_session = 0;
	zk_lock->alone_left = false;
	if (!alone || !hf__queue_number(node->name, &number)) {
		zk_lock->crowded = false;
		return;
	}
	zk_lock->alone_session = zk->sessions;
	zk_lock->alone_number = number;
	zk_lock->alone_czxid = node->czxid;
	zk_lock->alone_own = own_elsewhere(zk, node->lock);
}

void hf__alone_note_removed(struct hf__zk *zk, const struct hf__node *node)
{
	struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	if (zk_lock && zk_lock->alone_czxid == node->czxid)
		zk_lock->alone_left = true;
}

static bool is_empty(const struct hf__zk *zk, const struct hf__zk_lock *zk_lock)
{
	return zk_lock && zk_lock->alone_left && zk_lock->alone_session == zk->sessions;
}

bool hf__alone_is_likely(struct hf__zk *zk, const struct hf__lock *lock)
{
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, lock);
	return is_empty(zk, zk_lock) && !zk_lock->crowded;
}

/*
 * A folder numbers the nodes that are created in it. If our last node was alone there and is
 * deleted, and this one has the next number, no other node can come before it. But a folder that
 * was deleted and created again starts at zero. To reach the same number again it needs at least as
 * many transactions as that number, and the difference of the nodes' czxids, within one epoch,
 * shows that there were fewer. (No recipe creates several lock nodes in one transaction.) What this
 * client wrote in other folders meanwhile is subtracted: the answers of a session arrive in the
 * order of its transactions.
 */
bool hf__alone_is_certain(struct hf__zk *zk, const struct hf__node *node)
{
	int64_t number;
	struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	if (!is_empty(zk, zk_lock) || !hf__queue_number(node->name, &number) ||
	    number != zk_lock->alone_number + 1 || node->czxid >> 32 != zk_lock->alone_czxid >> 32)
		return false;
	int64_t between = node->czxid - zk_lock->alone_czxid -
	                  (int64_t)(own_elsewhere(zk, node->lock) - zk_lock->alone_own);
	zk_lock->crowded = between <= 0 || between > number + 1;
	return !zk_lock->crowded;
}
