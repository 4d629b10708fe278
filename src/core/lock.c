/* Locks: what this client knows about each name, its waiters, and its watches. */
#include "core/lock.h"
#include "core/core.h"
#include "core/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct lock_key {
	const char *name;
	const char *values; /* of a group */
	size_t length;
	size_t n;
	int kind; /* that of the traits */
	const struct hf__traits *traits;
};

static bool is_same_lock(const struct hf__table_link *link, const void *key)
{
	const struct hf__lock *lock = hf__table_item(link, struct hf__lock, by_key);
	const struct lock_key *want = key;
	return lock->kind == want->kind && lock->length == want->length &&
	       lock->values == want->n && memcmp(lock->name, want->name, want->length) == 0 &&
	       (want->n == 0 ||
	        memcmp(lock->name + lock->length + 1, want->values, want->n * HF__VALUE_SIZE) == 0);
}

struct hf__link *hf__lock_route(struct hf__core *core, const char *name, size_t length)
{
	const struct hf__backend_ops *ops = core->backend_ops;
	return ops->route ? ops->route(core->backend, name, length) : &core->link;
}

void hf__lock_set_slot(struct hf__core *core, struct hf__lock *lock)
{
	const struct hf__backend_ops *ops = core->backend_ops;
	lock->slot = ops->slot ? ops->slot(core->backend, lock->name, lock->length) : 0;
	hf__list_remove(&lock->in_slot);
	hf__list_add(&core->slots[lock->slot % HF__SLOT_LISTS], &lock->in_slot);
}

static struct hf__lock *new_lock(struct hf__core *core, const struct lock_key *key, uint32_t hash)
{
	struct hf__link *link = hf__lock_route(core, key->name, key->length);
	size_t size = offsetof(struct hf__lock, name) + key->length + 1 + key->n * HF__VALUE_SIZE;
	struct hf__lock *lock = link ? calloc(1, size) : NULL;
	if (!lock)
		return NULL;
	lock->link = link;
	hf__list_init(&lock->in_slot);
	hf__list_init(&lock->holds);
	hf__list_init(&lock->queue);
	lock->traits = key->traits;
	lock->kind = key->traits->kind;
	lock->length = (uint16_t)key->length;
	lock->values = (uint8_t)key->n;
	memcpy(lock->name, key->name, key->length + 1);
	if (key->n > 0)
		memcpy(lock->name + key->length + 1, key->values, key->n * HF__VALUE_SIZE);
	hf__table_add(&core->locks, &lock->by_key, hash);
	hf__lock_set_slot(core, lock);
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

bool hf__lock_is_held_here(const struct hf__lock *lock, int64_t now)
{
	const struct hf__hold *hold = lock->held;
	if (!hold)
		return false;
	/* A waiter that is next and whose ask is in flight counts as the holder. */
	return hold->state == HF__HOLD_RELEASING || now < hold->valid_until ||
	       (hold->state == HF__HOLD_ASKING && hold->cmd.in_flight);
}

const char *hf__lock_name(const struct hf__lock *lock)
{
	assert(lock);
	return lock->name;
}

size_t hf__lock_name_length(const struct hf__lock *lock)
{
	assert(lock);
	return lock->length;
}

int hf__lock_kind(const struct hf__lock *lock)
{
	assert(lock);
	return lock->kind;
}

const struct hf__traits *hf__lock_traits(const struct hf__lock *lock)
{
	assert(lock);
	return lock->traits;
}

struct hf__link *hf__lock_link(const struct hf__lock *lock)
{
	assert(lock);
	return lock->link;
}

const char *hf__lock_values(const struct hf__lock *lock, size_t *ret_n)
{
	assert(lock && ret_n);
	*ret_n = lock->values;
	return lock->name + lock->length + 1;
}

static struct hf__lock *ref(struct hf__core *core, int kind, struct lock_key *key)
{
	const char *why = "";
	key->traits = core->backend_ops->traits(kind, &why);
	assert(key->traits); /* the caller has checked that the backend has this kind */
	key->kind = key->traits->kind;
	uint32_t hash = hf__table_hash(&core->locks, key->name, key->length);
	struct hf__table_link *link = hf__table_find(&core->locks, hash, is_same_lock, key);
	struct hf__lock *lock =
		link ? hf__table_item(link, struct hf__lock, by_key) : new_lock(core, key, hash);
	if (lock)
		lock->refs++;
	return lock;
}

struct hf__lock *hf__lock_ref(struct hf__core *core, int kind, const char *name)
{
	struct lock_key key = {.name = name, .length = strlen(name)};
	return ref(core, kind, &key);
}

struct hf__lock *hf__lock_ref_group(struct hf__core *core, const char *name, const char *values,
                                    size_t n)
{
	struct lock_key key = {.name = name, .length = strlen(name), .values = values, .n = n};
	return ref(core, HF__GROUP, &key);
}

struct hf__lock *hf__lock_find(struct hf__core *core, int kind, const char *name)
{
	assert(core && kind >= HF_REENTRANT && kind < HF__KINDS && name);
	struct lock_key key = {.name = name, .length = strlen(name), .kind = kind};
	uint32_t hash = hf__table_hash(&core->locks, key.name, key.length);
	struct hf__table_link *link = hf__table_find(&core->locks, hash, is_same_lock, &key);
	return link ? hf__table_item(link, struct hf__lock, by_key) : NULL;
}

static bool share_value(const struct hf__lock *one, const struct hf__lock *other)
{
	const char *mine = one->name + one->length + 1;
	const char *theirs = other->name + other->length + 1;
	for (int i = 0; i < one->values; i++)
		for (int k = 0; k < other->values; k++)
			if (memcmp(mine + (size_t)i * HF__VALUE_SIZE,
			           theirs + (size_t)k * HF__VALUE_SIZE, HF__VALUE_SIZE) == 0)
				return true;
	return false;
}

static bool is_rival(const struct hf__table_link *link, const void *key)
{
	const struct hf__lock *other = hf__table_item(link, struct hf__lock, by_key);
	const struct hf__lock *lock = key;
	return other != lock && other->traits->family == lock->traits->family &&
	       other->length == lock->length &&
	       memcmp(other->name, lock->name, lock->length) == 0 &&
	       (lock->values == 0 || share_value(lock, other));
}

struct hf__lock *hf__lock_rival(struct hf__core *core, const struct hf__lock *lock,
                                const struct hf__lock *after)
{
	if (!lock->traits->family)
		return NULL;
	struct hf__table_link *link =
		after ? hf__table_find_next(&after->by_key, is_rival, lock)
		      : hf__table_find(&core->locks, lock->by_key.hash, is_rival, lock);
	return link ? hf__table_item(link, struct hf__lock, by_key) : NULL;
}

void hf__lock_add_ref(struct hf__lock *lock)
{
	assert(lock && lock->refs < UINT32_MAX);
	lock->refs++;
}

void hf__lock_unref(struct hf__core *core, struct hf__lock *lock)
{
	assert(core && lock && lock->refs > 0);
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
	hf__list_remove(&lock->in_slot);
	free_cells(lock);
	free(lock);
}

/* The lock of the writers that this reader lets go first, or NULL. */
static const struct hf__lock *writers_of(struct hf__core *core, const struct hf__op *op)
{
	const struct hf__traits *traits = op->lock->traits;
	bool yields = traits->yields && !traits->writes;
	return yields ? hf__lock_find(core, traits->half, op->lock->name) : NULL;
}

/* Another owner of this client holds what the call waits for, as far as this client knows. */
static bool is_kept_out(struct hf__core *core, const struct hf__op *op, int64_t now)
{
	const struct hf__traits *traits = op->lock->traits;
	if (traits->queues || traits->ordered)
		return hf__lock_is_held_here(op->lock, now);
	const struct hf__lock *writers = writers_of(core, op);
	return writers && hf__lock_is_held_here(writers, now) &&
	       writers->held->owner != op->want.owner;
}

static bool is_first(const struct hf__op *op)
{
	return op->lock->queue.next == &op->link;
}

bool hf__lock_may_listen(struct hf__core *core, const struct hf__op *op, int64_t now)
{
	return op->hold && is_first(op) && !op->listens && !op->hold->cmd.in_flight &&
	       op->phase != HF__OP_RESTING && is_kept_out(core, op, now);
}

/*
 * A release by this client needs no message, so nothing is sent for a short wait. But the hold can
 * be taken away from elsewhere, which only a message would announce.
 */
void hf__lock_listen_soon(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__op *op = hf__lock_first_waiter(lock);
	if (!op || !hf__lock_may_listen(core, op, now))
		return;
	if (!hf__wheel_is_running(&op->retry) || op->retry.at > now + HF__LISTEN_MS)
		hf__wheel_start(&core->wheel, &op->retry, now + HF__LISTEN_MS);
}

/*
 * Readers share the lock, so a writer could wait for ever for a moment without any. Readers of its
 * own client therefore wait until it has held the lock, or for HF__YIELD_MS.
 */
int64_t hf__lock_yield_until(struct hf__core *core, const struct hf__op *op, int64_t now)
{
	const struct hf__lock *writers = writers_of(core, op);
	if (!writers)
		return 0;
	if (!hf__lock_is_held_here(writers, now))
		return hf__list_empty(&writers->queue) ? 0 : now + HF__YIELD_MS;
	if (writers->held->owner == op->want.owner)
		return 0;
	return now +
	       (is_first(op) ? HF__LISTEN_MS : hf__random_jitter(&core->random, HF__SLOW_POLL_MS));
}

/* The waiters that waited for another call of this client ask for themselves now. */
static void let_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__list *link, *after;
	lock->refs++;
	hf__list_each_safe (link, after, &lock->queue) {
		struct hf__op *op = hf__list_item(link, struct hf__op, link);
		if (op->phase != HF__OP_LOCAL)
			continue;
		/* Another client announces when it is next. If it cannot listen, it asks. */
		if (lock->traits->ordered)
			(void)(hf__lock_watch(core, lock, HF__CHANNEL_LOCK, NULL) ||
			       hf__lock_watch(core, lock, HF__CHANNEL_WAITER, op->hold));
		core->events->resume(core, op->hold, now);
	}
	hf__lock_unref(core, lock);
}

/* The writer has held the lock: the readers ask before the next writer does. */
static void let_read(struct hf__core *core, const struct hf__lock *writer, int64_t now)
{
	struct hf__lock *lock = hf__lock_find(core, writer->traits->half, writer->name);
	if (lock)
		let_all(core, lock, now);
}

void hf__lock_let_next(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	const struct hf__traits *traits = lock->traits;
	if (traits->writes && traits->yields && !core->closed && !hf__lock_is_held_here(lock, now))
		let_read(core, lock, now);
	if (traits->ordered && !core->closed && !hf__lock_is_held_here(lock, now))
		let_all(core, lock, now);
	if (!traits->queues || hf__list_empty(&lock->queue) || core->closed)
		return;
	struct hf__op *op = hf__list_item(lock->queue.next, struct hf__op, link);
	struct hf__hold *hold = op->hold;
	if (hold->cmd.in_flight || op->phase == HF__OP_RESTING)
		return;
	if (hf__lock_is_held_here(lock, now)) {
		/* The release wakes it up; it polls in case the hold was taken away unnoticed. */
		if (!hf__wheel_is_running(&op->retry))
			hf__wheel_start(&core->wheel, &op->retry,
			                now + hf__random_jitter(&core->random, HF__SLOW_POLL_MS));
		hf__lock_listen_soon(core, lock, now);
		return;
	}
	core->events->resume(core, hold, now);
}

bool hf__lock_waits_here(const struct hf__op *op, int64_t now)
{
	if (!hf__op_is_active(op) || op->phase == HF__OP_PARKED || !op->hold ||
	    hf__list_empty(&op->link) || op->hold->cmd.in_flight)
		return false;
	return op->phase == HF__OP_LOCAL ||
	       (op->lock->traits->queues && hf__lock_is_held_here(op->lock, now));
}

bool hf__lock_is_waiting(const struct hf__lock *lock)
{
	if (hf__list_empty(&lock->queue))
		return false;
	const struct hf__op *first = hf__list_item(lock->queue.next, struct hf__op, link);
	return hf__wheel_is_running(&first->retry);
}

struct hf__op *hf__lock_first_waiter(const struct hf__lock *lock)
{
	return hf__list_empty(&lock->queue) ? NULL
	                                    : hf__list_item(lock->queue.next, struct hf__op, link);
}

/* A message says that the call may ask. */
static void wake(struct hf__core *core, struct hf__op *op, int64_t now)
{
	if (!op->hold->cmd.in_flight)
		op->woken = true;
	core->events->resume(core, op->hold, now);
}

void hf__lock_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	struct hf__list *link, *after;
	lock->refs++;
	hf__list_each_safe (link, after, &lock->queue)
		wake(core, hf__list_item(link, struct hf__op, link), now);
	hf__lock_unref(core, lock);
}

void hf__lock_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                   int64_t now)
{
	struct hf__lock *lock = watch->lock;
	struct hf__list *link, *after;
	if (watch->hold) {
		if (watch->hold->op)
			wake(core, watch->hold->op, now);
		return;
	}
	/* All waiters of a read lock or a latch may ask; of permits, as many as became free. */
	bool counted = watch->channel == HF__CHANNEL_PERMITS;
	int64_t left = lock->traits->queues ? 1 : counted ? number : INT64_MAX;
	lock->refs++;
	hf__list_each_safe (link, after, &lock->queue) {
		struct hf__op *op = hf__list_item(link, struct hf__op, link);
		if (left <= 0 || op->phase == HF__OP_RESTING)
			break;
		/* A call that wants more permits than these must not keep the others waiting. */
		if (!counted || op->want.amount <= number)
			left--;
		wake(core, op, now);
	}
	hf__lock_unref(core, lock);
}

void hf__lock_park(struct hf__core *core, struct hf__op *op)
{
	op->phase = HF__OP_PARKED;
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
		op->phase = HF__OP_RUNNING;
		core->events->start(core, op, now);
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

void hf__lock_keep_watches(struct hf__core *core, struct hf__lock *lock)
{
	for (struct hf__watch *watch = lock->watches; watch; watch = watch->next)
		hf__wheel_stop(&core->wheel, &watch->timer);
}

void hf__lock_end_watches_soon(struct hf__core *core, struct hf__lock *lock, int64_t now)
{
	if (!hf__list_empty(&lock->queue))
		return;
	for (struct hf__watch *watch = lock->watches; watch; watch = watch->next)
		hf__wheel_start(&core->wheel, &watch->timer, now + HF__WATCH_KEEP_MS);
}

void hf__lock_on_timer(struct hf__core *core, const struct hf__watch *watch)
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
