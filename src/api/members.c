/*
 * The members of multi and red locks. All handles that name the same members share one set of
 * them. The set is kept while an owner holds it, and freed with the last reference.
 */
#include "api/several.h"

#include <stdlib.h>
#include <string.h>

struct hf__several *hf__members_ref(struct hf__several *several)
{
	atomic_fetch_add(&several->refs, 1);
	return several;
}

static void free_several(struct hf__several *several)
{
	for (size_t i = 0; i < several->n; i++)
		hf__handle_close(&several->member[i].lock.at);
	while (!hf__list_empty(&several->wholes))
		hf__whole_free(hf__list_item(several->wholes.next, struct hf__whole, link));
	pthread_mutex_destroy(&several->mutex);
	free(several);
}

/* From now on no new handle finds it. */
static void unlist(struct hf__several *several)
{
	struct hf_client *client = several->member[0].lock.at.client;
	hf__engine_lock(&client->engine);
	if (several->is_listed)
		hf__table_remove(&client->several, &several->by_members);
	several->is_listed = false;
	hf__engine_unlock(&client->engine);
}

void hf__members_unref(struct hf__several *several)
{
	if (atomic_fetch_sub(&several->refs, 1) != 1)
		return;
	int before = hf__thread_defer_cancel();
	unlist(several);
	free_several(several);
	hf__thread_restore_cancel(before);
}

/* One order for all that name the same locks, whatever order they name them in. */
static int compare_members(const void *a, const void *b)
{
	const struct hf_lock *x = &((const struct hf__member *)a)->lock;
	const struct hf_lock *y = &((const struct hf__member *)b)->lock;
	int order = strcmp(x->at.lock->name, y->at.lock->name);
	if (order == 0)
		order = (int)x->at.lock->kind - (int)y->at.lock->kind;
	return order ? order : strcmp(x->at.client->settings.shown, y->at.client->settings.shown);
}

struct hf__several *hf__members_make(hf_lock *const *members, size_t n, size_t need)
{
	struct hf__several *several = calloc(1, sizeof(*several) + n * sizeof(struct hf__member));
	if (!several)
		return NULL;
	atomic_init(&several->refs, 1);
	pthread_mutex_init(&several->mutex, NULL);
	hf__list_init(&several->wholes);
	several->n = n;
	several->need = need;
	for (size_t i = 0; i < n; i++) {
		struct hf__member *member = &several->member[i];
		member->lock.spin = members[i]->spin;
		hf__handle_copy(&member->lock.at, &members[i]->at);
	}
	qsort(several->member, n, sizeof(struct hf__member), compare_members);
	for (size_t i = 0; i < n; i++) {
		several->member[i].several = several;
		hf__list_init(&several->member[i].link);
	}
	return several;
}

static bool are_same(const struct hf__table_link *link, const void *key)
{
	const struct hf__several *other = key,
				 *one = hf__table_item(link, struct hf__several, by_members);
	bool same = one->n == other->n && one->need == other->need && atomic_load(&one->refs) > 0;
	for (size_t i = 0; same && i < one->n; i++) {
		const struct hf_lock *a = &one->member[i].lock, *b = &other->member[i].lock;
		same = a->at.lock == b->at.lock && a->spin.first_ms == b->spin.first_ms &&
		       a->spin.most_ms == b->spin.most_ms && a->spin.factor == b->spin.factor;
	}
	return same;
}

/* False if the last reference is gone and it is about to be freed. */
static bool ref_if_alive(struct hf__several *several)
{
	uint32_t refs = atomic_load(&several->refs);
	while (refs > 0)
		if (atomic_compare_exchange_weak(&several->refs, &refs, refs + 1))
			return true;
	return false;
}

static uint32_t hash_of(const struct hf__table *table, const struct hf__several *several)
{
	const struct hf__lock *lock[HF__MEMBERS_MAX];
	for (size_t i = 0; i < several->n; i++)
		lock[i] = several->member[i].lock.at.lock;
	return hf__table_hash(table, lock, several->n * sizeof(lock[0]));
}

struct hf__several *hf__members_share(struct hf__several *several)
{
	struct hf_client *client = several->member[0].lock.at.client;
	struct hf__table *table = &client->several;
	hf__engine_lock(&client->engine);
	uint32_t hash = hash_of(table, several);
	struct hf__table_link *link = hf__table_find(table, hash, are_same, several);
	struct hf__several *found =
		link ? hf__table_item(link, struct hf__several, by_members) : NULL;
	if (!found || !ref_if_alive(found)) {
		hf__table_add(table, &several->by_members, hash);
		several->is_listed = true;
		found = several;
	}
	hf__engine_unlock(&client->engine);
	if (found != several)
		hf__members_unref(several);
	return found;
}

static bool is_held(const struct hf__several *several)
{
	struct hf__list *link;
	hf__list_each (link, &several->wholes)
		if (hf__list_item(link, struct hf__whole, link)->levels > 0)
			return true;
	return false;
}

static bool is_open(struct hf_client *client)
{
	hf__engine_lock(&client->engine);
	bool open = !client->core.closed;
	hf__engine_unlock(&client->engine);
	return open;
}

void hf__members_keep(struct hf__several *several)
{
	if (several->handles > 0 || several->kept || !is_held(several) ||
	    !is_open(several->member[0].lock.at.client))
		return;
	several->kept = true;
	hf__members_ref(several);
}

/* Removes one from the client's table and returns a reference to it; NULL if there is none. */
static struct hf__several *take_listed(struct hf_client *client)
{
	struct hf__several *found = NULL;
	struct hf__table_link *link = NULL;
	hf__engine_lock(&client->engine);
	while (!found && (link = hf__table_next(&client->several, link))) {
		struct hf__several *one = hf__table_item(link, struct hf__several, by_members);
		found = ref_if_alive(one) ? one : NULL;
	}
	hf__engine_unlock(&client->engine);
	if (found)
		unlist(found);
	return found;
}

void hf__members_forget(struct hf_client *client)
{
	struct hf__several *several;
	while ((several = take_listed(client))) {
		pthread_mutex_lock(&several->mutex);
		bool was_kept = several->kept;
		several->kept = false;
		pthread_mutex_unlock(&several->mutex);
		if (was_kept)
			hf__members_unref(several);
		hf__members_unref(several);
	}
}

struct hf__spec hf__members_describe(const struct hf__member *member, const struct hf__want *want)
{
	const struct hf_lock *lock = &member->lock;
	struct hf__spec spec = {.client = lock->at.client, .lock = lock->at.lock, .want = *want};
	spec.want.spin = lock->spin;
	return spec;
}
