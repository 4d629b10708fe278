/* The records: what this client knows of each name, who waits for it here, and its watch. */
#include "core/core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct lock_key {
	const char *name;
	const char *values; /* of a group */
	size_t length;
	size_t n;
	int kind;
};

static bool same_lock(const struct hf__table_link *link, const void *key)
{
	const struct hf__lock *lock = hf__table_item(link, struct hf__lock, by_key);
	const struct lock_key *want = key;
	return lock->kind == want->kind && lock->length == want->length &&
	       lock->values == want->n && memcmp(lock->name, want->name, want->length) == 0 &&
	       (want->n == 0 ||
	        memcmp(lock->name + lock->length + 1, want->values, want->n * HF__VALUE_SIZE) == 0);
}

static struct hf__lock *new_lock(struct hf__core *core, const struct lock_key *key, uint32_t hash)
{
	struct hf__lock *lock =
		calloc(1, sizeof(*lock) + key->length + 1 + key->n * HF__VALUE_SIZE);
	if (!lock)
		return NULL;
	hf__list_init(&lock->holds);
	hf__list_init(&lock->queue);
	lock->kind = (uint8_t)key->kind;
	lock->length = (uint16_t)key->length;
	lock->values = (uint8_t)key->n;
	memcpy(lock->name, key->name, key->length + 1);
	if (key->n > 0)
		memcpy(lock->name + key->length + 1, key->values, key->n * HF__VALUE_SIZE);
	hf__table_add(&core->locks, &lock->by_key, hash);
	return lock;
}

static void free_cells(struct hf__lock *lock)
{
	struct hf__cell *cell = atomic_load(&lock->cell.next);
	while (cell) {
		struct hf__cell *next = atomic_load(&cell->next);
		free(cell);
		cell = next;
	}
}

bool hf__lock_held_here(const struct hf__lock *lock, int64_t now)
{
	const struct hf__hold *hold = lock->held;
	if (!hold)
		return false;
	/* One whose turn it is and that asks has it as good as got it. */
	return hold->state == HF__HOLD_RELEASING || now < hold->valid_until ||
	       (hold->state == HF__HOLD_ASKING && hold->cmd.in_flight);
}

const char *hf__lock_name(const struct hf__lock *lock)
{
	return lock->name;
}

size_t hf__lock_name_length(const struct hf__lock *lock)
{
	return lock->length;
}

int hf__lock_kind(const struct hf__lock *lock)
{
	return lock->kind;
}

const char *hf__lock_values(const struct hf__lock *lock, size_t *ret_n)
{
	*ret_n = lock->values;
	return lock->name + lock->length + 1;
}

static struct hf__lock *ref(struct hf__core *core, const struct lock_key *key)
{
	uint32_t hash = hf__table_hash(&core->locks, key->name, key->length);
	struct hf__table_link *link = hf__table_find(&core->locks, hash, same_lock, key);
	struct hf__lock *lock =
		link ? hf__table_item(link, struct hf__lock, by_key) : new_lock(core, key, hash);
	if (lock)
		lock->refs++;
	return lock;
}

struct hf__lock *hf__lock_ref(struct hf__core *core, int kind, const char *name)
{
	struct lock_key key = {.name = name, .length = strlen(name), .kind = kind};
	return ref(core, &key);
}

struct hf__lock *hf__lock_ref_group(struct hf__core *core, const char *name, const char *values,
                                    size_t n)
{
	struct lock_key key = {
		.name = name, .length = strlen(name), .kind = HF__GROUP, .values = values, .n = n};
	return ref(core, &key);
}

struct hf__lock *hf__lock_find(struct hf__core *core, int kind, const char *name)
{
	struct lock_key key = {.name = name, .length = strlen(name), .kind = kind};
	uint32_t hash = hf__table_hash(&core->locks, key.name, key.length);
	struct hf__table_link *link = hf__table_find(&core->locks, hash, same_lock, &key);
	return link ? hf__table_item(link, struct hf__lock, by_key) : NULL;
}

void hf__lock_unref(struct hf__core *core, struct hf__lock *lock)
{
	assert(lock->refs > 0);
	lock->refs--;
	hf__lock_drop_unused(core, lock);
}

void hf__lock_drop_unused(struct hf__core *core, struct hf__lock *lock)
{
	if (lock->refs > 0 || !hf__list_empty(&lock->holds) || !hf__list_empty(&lock->queue))
		return;
	hf__lock_unwatch(core, lock, NULL);
	if (core->backend_ops->forget)
		core->backend_ops->forget(core->backend, lock);
	hf__table_remove(&core->locks, &lock->by_key);
	free_cells(lock);
	free(lock);
}

/*
 * Readers come in whenever they like, so a writer would wait for a moment without any. Those of its own
 * process keep back a little instead: until it has had its turn, or HF__YIELD_MS.
 */
int64_t hf__lock_yields(struct hf__core *core, const struct hf__op *op, int64_t now)
{
	const struct hf__traits *traits = hf__kind_of(op->lock);
	if (!traits->half || traits->writes || traits->session)
		return 0;
	const struct hf__lock *writer = hf__lock_find(core, traits->half, op->lock->name);
	if (!writer)
		return 0;
	if (!hf__lock_held_here(writer, now))
		return hf__list_empty(&writer->queue) ? 0 : now + HF__YIELD_MS;
	if (writer->held->owner == op->want.owner)
		return 0;
	return now + hf__random_jitter(&core->random, HF__SLOW_POLL_MS);
}

/* Those who waited for somebody of this process ask for themselves now. */
static void let_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__list *link, *after;
	lock->refs++;
	hf__list_each_safe (link, after, &lock->queue) {
		struct hf__op *op = hf__list_item(link, struct hf__op, link);
		if (!op->here)
			continue;
		/* Its turn will be told by another process; if it cannot listen it asks once more. */
		if (hf__kind_of(lock)->ordered)
			(void)(hf__lock_watch(core, lock, HF__CHANNEL_LOCK, NULL) ||
			       hf__lock_watch(core, lock, HF__CHANNEL_WAITER, op->hold));
		hf__hold_resume(core, op->hold, now);
	}
	hf__lock_unref(core, lock);
}

/* The writer has had its turn: readers go on, and ask before the next writer does. */
static void let_read(struct hf__core *core, const struct hf__lock *writer, int64_t now)
{
	struct hf__lock *lock = hf__lock_find(core, hf__kind_of(writer)->half, writer->name);
	if (lock)
		let_all(core, lock, now);
}

void hf__lock_next(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	const struct hf__traits *traits = hf__kind_of(lock);
	if (traits->writes && !traits->session && !core->closed && !hf__lock_held_here(lock, now))
		let_read(core, lock, now);
	if (traits->ordered && !core->closed && !hf__lock_held_here(lock, now))
		let_all(core, lock, now);
	if (!traits->queues || hf__list_empty(&lock->queue) || core->closed)
		return;
	struct hf__op *op = hf__list_item(lock->queue.next, struct hf__op, link);
	struct hf__hold *hold = op->hold;
	if (hold->cmd.in_flight || op->rests)
		return;
	if (hf__lock_held_here(lock, now)) {
		/* The release wakes us. The poll is for a hold that was taken away unseen. */
		if (!hf__wheel_running(&op->retry))
			hf__wheel_start(&core->wheel, &op->retry,
			                now + hf__random_jitter(&core->random, HF__SLOW_POLL_MS));
		return;
	}
	hf__acquire_ask(core, hold, now);
}

bool hf__lock_waits_here(const struct hf__op *op, int64_t now)
{
	return op->active && op->hold && !hf__list_empty(&op->link) && !op->is_parked &&
	       !op->hold->cmd.in_flight &&
	       (op->here || (hf__kind_of(op->lock)->queues && hf__lock_held_here(op->lock, now)));
}

bool hf__lock_is_waiting(const struct hf__lock *lock)
{
	if (hf__list_empty(&lock->queue))
		return false;
	const struct hf__op *first = hf__list_item(lock->queue.next, struct hf__op, link);
	return hf__wheel_running(&first->retry);
}

void hf__lock_park(struct hf__core *core, struct hf__op *op)
{
	op->is_parked = true;
	op->lock->refs++;
	hf__list_add(&core->parked, &op->link);
}

void hf__lock_unpark(struct hf__core *core, struct hf__lock *lock, uint64_t owner, int64_t now)
{
	struct hf__list *link, *after;
	struct hf__list mine;
	if (hf__list_empty(&core->parked))
		return;
	hf__list_init(&mine);
	hf__list_each_safe (link, after, &core->parked) {
		struct hf__op *op = hf__list_item(link, struct hf__op, link);
		if (op->lock != lock || op->want.owner != owner)
			continue;
		hf__list_remove(link);
		hf__list_add(&mine, link);
	}
	while (!hf__list_empty(&mine)) {
		struct hf__op *op = hf__list_item(mine.next, struct hf__op, link);
		hf__list_remove(&op->link);
		op->is_parked = false;
		hf__core_start(core, op, now);
		hf__lock_unref(core, lock);
	}
}

bool hf__lock_is_watched(const struct hf__lock *lock, enum hf__channel channel,
                         const struct hf__hold *hold)
{
	const struct hf__watch *watch = lock->watches;
	while (watch && (watch->channel != channel || watch->hold != hold))
		watch = watch->next;
	return watch;
}

int hf__lock_watch(struct hf__core *core, struct hf__lock *lock, enum hf__channel channel,
                   struct hf__hold *hold)
{
	if (hf__lock_is_watched(lock, channel, hold))
		return 0;
	struct hf__watch *watch = calloc(1, sizeof(*watch));
	if (!watch)
		return HF_ENOMEM;
	watch->lock = lock;
	watch->hold = hold;
	watch->wire = hold ? hold->cmd.wire : 0;
	watch->channel = (uint8_t)channel;
	hf__wheel_timer_init(&watch->timer, HF__TIMER_WATCH);
	if (core->backend_ops->watch(core->backend, watch)) {
		free(watch);
		return HF_ENOMEM;
	}
	watch->next = lock->watches;
	lock->watches = watch;
	return 0;
}

void hf__lock_unwatch(struct hf__core *core, struct hf__lock *lock, const struct hf__hold *hold)
{
	struct hf__watch **at = &lock->watches;
	while (*at) {
		struct hf__watch *watch = *at;
		if (hold && watch->hold != hold) {
			at = &watch->next;
			continue;
		}
		*at = watch->next;
		hf__wheel_stop(&core->wheel, &watch->timer);
		core->backend_ops->unwatch(core->backend, watch);
		free(watch);
	}
}

void hf__lock_joined(struct hf__core *core, struct hf__lock *lock)
{
	for (struct hf__watch *watch = lock->watches; watch; watch = watch->next)
		hf__wheel_stop(&core->wheel, &watch->timer);
}

void hf__lock_left(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	if (!hf__list_empty(&lock->queue))
		return;
	for (struct hf__watch *watch = lock->watches; watch; watch = watch->next)
		hf__wheel_start(&core->wheel, &watch->timer, now + HF__WATCH_KEEP_MS);
}

void hf__lock_timer(struct hf__core *core, const struct hf__watch *watch)
{
	struct hf__lock *lock = watch->lock;
	if (hf__list_empty(&lock->queue))
		hf__lock_unwatch(core, lock, NULL);
	hf__lock_drop_unused(core, lock);
}

int64_t hf__lock_remaining(const struct hf__lock *lock, uint64_t owner, int64_t now,
                           hf_state *ret_state)
{
	hf_state state = HF_FREE;
	int64_t left = 0;
	for (const struct hf__cell *cell = &lock->cell; cell; cell = atomic_load(&cell->next)) {
		if (atomic_load(&cell->owner) != owner)
			continue;
		int64_t until = atomic_load(&cell->valid_until);
		int64_t risk_at = atomic_load(&cell->risk_at);
		if (atomic_load(&cell->owner) != owner)
			continue;
		left = until > now ? until - now : 0;
		state = left == 0 ? HF_LOST : now >= risk_at ? HF_AT_RISK : HF_HELD;
		break;
	}
	if (ret_state)
		*ret_state = state;
	return left;
}
