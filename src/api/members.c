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
	int before = hf__thread_guard();
	unlist(several);
	free_several(several);
	hf__thread_unguard(before);
}

/* One order for all that name the same locks, whatever order they name them in. */
static int compare_members(const void *a, const void *b)
{
	const struct hf_lock *x = &((const struct hf__member *)a)->lock;
	const struct hf_lock *y = &((const struct hf__member *)b)->lock;
	int order = strcmp(x->at.record->name, y->at.record->name);
	if (order == 0)
		order = (int)x->at.record->kind - (int)y->at.record->kind;
	return order ? order : strcmp(x->at.client->settings.shown, y->at.client->settings.shown);
}

static int check_members(hf_lock *const *members, size_t n, hf_lock **ret_lock, size_t least,
                         size_t most)
{
	if (!members || !ret_lock)
		return hf__error_null(!members ? "members" : "ret_lock");
	if (n < least || n > most)
		return hf__error(HF_EINVAL, "n: %zu is not between %zu and %zu", n, least, most);
	for (size_t i = 0; i < n; i++) {
		if (!members[i])
			return hf__error(HF_EINVAL, "members[%zu] must not be NULL", i);
		if (hf__locks_several(members[i]))
			return hf__error(HF_EINVAL, "members[%zu] is itself a multi or red lock",
			                 i);
		int rc = hf__client_check(members[i]->at.client);
		if (rc)
			return rc;
		for (size_t j = 0; j < i; j++)
			if (members[j]->at.record == members[i]->at.record)
				return hf__error(HF_EINVAL,
				                 "members[%zu] and members[%zu] are the same lock",
				                 j, i);
	}
	return 0;
}

static struct hf__several *make(hf_lock *const *members, size_t n, size_t need)
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
		same = a->at.record == b->at.record && a->spin.first_ms == b->spin.first_ms &&
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
	const struct hf__lock *record[HF__MEMBERS_MAX];
	for (size_t i = 0; i < several->n; i++)
		record[i] = several->member[i].lock.at.record;
	return hf__table_hash(table, record, several->n * sizeof(record[0]));
}

/* An existing one with the same members, or else this one, which others find from now on. */
static struct hf__several *share(struct hf__several *several)
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

/* One more handle. With the first one of a red lock, losses begin to be reported. */
static int add_handle(struct hf__several *several)
{
	pthread_mutex_lock(&several->mutex);
	bool joins = several->handles == 0 && several->need < several->n;
	int rc = joins ? hf__red_join(several) : 0;
	bool was_kept = !rc && several->kept;
	several->handles += !rc;
	several->kept = several->kept && rc;
	pthread_mutex_unlock(&several->mutex);
	if (joins && !rc)
		hf__repair_review(several);
	if (was_kept)
		hf__members_unref(several);
	return rc;
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

static void remove_handle(struct hf__several *several)
{
	struct hf__list *link;
	pthread_mutex_lock(&several->mutex);
	if (--several->handles == 0) {
		if (several->need < several->n)
			hf__red_leave(several);
		hf__list_each (link, &several->wholes)
			hf__whole_stop_repairs(hf__list_item(link, struct hf__whole, link));
		hf__members_keep(several);
	}
	pthread_mutex_unlock(&several->mutex);
	hf__members_unref(several);
}

static int open_several(hf_lock *const *members, size_t n, size_t need, hf_lock **ret_lock)
{
	hf_lock *lock = calloc(1, sizeof(*lock));
	struct hf__several *several = lock ? make(members, n, need) : NULL;
	if (!several) {
		free(lock);
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	}
	int rc = need < n ? hf__red_check(several) : 0;
	int before = hf__thread_guard();
	if (!rc) {
		several = share(several);
		rc = add_handle(several);
	}
	if (rc) {
		hf__members_unref(several);
		free(lock);
	} else {
		lock->several = several;
		lock->at.client = several->member[0].lock.at.client;
		*ret_lock = lock;
	}
	hf__thread_unguard(before);
	return rc;
}

int hf_lock_open_multi(hf_lock *const *members, size_t n, hf_lock **ret_lock)
{
	int rc = check_members(members, n, ret_lock, 1, HF__MEMBERS_MAX);
	return rc ? rc : open_several(members, n, n, ret_lock);
}

int hf_lock_open_red(hf_lock *const *members, size_t n, hf_lock **ret_lock)
{
	int rc = check_members(members, n, ret_lock, HF__RED_LEAST, HF__RED_MOST);
	for (size_t i = 0; !rc && i < n; i++)
		if (members[i]->at.record->traits->session)
			rc = hf__error(
				HF_ENOTSUP,
				"members[%zu] is on ZooKeeper, where a majority of the servers "
				"grants every lock already",
				i);
	return rc ? rc : open_several(members, n, n / 2 + 1, ret_lock);
}

void hf__members_close(struct hf__several *several)
{
	if (hf__client_check(several->member[0].lock.at.client))
		return;
	int before = hf__thread_guard();
	remove_handle(several);
	hf__thread_unguard(before);
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
