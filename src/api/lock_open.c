/*
 * Lock handles: opening and closing, of one lock, of a group of values, and of several locks as
 * one. Handles with the same members share one set of them.
 */
#include "api/several.h"

#include "base/highway.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SPIN_MS 60000

/* ---- one lock ---- */

static int check_pause(const char *name, int64_t pause_ms)
{
	if (pause_ms >= 1 && pause_ms <= MOST_SPIN_MS)
		return 0;
	return hf__error(HF_EINVAL, "%s: %" PRId64 " is not between 1 and %d", name, pause_ms,
	                 MOST_SPIN_MS);
}

static int check_spin(const hf_lock_options *options, hf_kind kind, struct hf__spin *ret_spin)
{
	bool given = options->spin_ms || options->spin_max_ms || options->spin_factor;
	int64_t factor = options->spin_factor ? options->spin_factor : 2;
	int64_t first = options->spin_ms ? options->spin_ms : factor == 1 ? 64 : 1;
	int64_t most = options->spin_max_ms ? options->spin_max_ms : 128;
	if (!given)
		return 0;
	if (kind != HF_SPIN)
		return hf__error(HF_EINVAL,
		                 "spin_ms, spin_max_ms, spin_factor: only for HF_SPIN locks");
	if (factor < 1 || factor > 1000)
		return hf__error(HF_EINVAL, "spin_factor: %" PRId64 " is not between 1 and 1000",
		                 factor);
	int rc = check_pause("spin_ms", first);
	if (!rc)
		rc = check_pause("spin_max_ms", most);
	if (rc)
		return rc;
	*ret_spin = (struct hf__spin){.first_ms = (uint16_t)first,
	                              .most_ms = (uint16_t)(most < first ? first : most),
	                              .factor = (uint16_t)factor};
	return 0;
}

int hf_lock_open_with(hf_client *client, hf_kind kind, const char *name,
                      const hf_lock_options *options, hf_lock **ret_lock)
{
	hf_lock_options ours;
	int rc = hf__handle_check_open(client, name, ret_lock, "ret_lock");
	if (rc)
		return rc;
	if (kind < HF_REENTRANT || (int)kind >= (int)HF__GROUP)
		return hf__error(HF_EINVAL, "kind: %d is not an hf_kind", (int)kind);
	hf_lock *lock = calloc(1, sizeof(*lock));
	if (!lock)
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	rc = hf__options_copy(&ours, sizeof ours, options, "HF_LOCK");
	if (!rc)
		rc = check_spin(&ours, kind, &lock->spin);
	if (!rc)
		rc = hf__handle_open(&lock->at, client, (int)kind, "kind", name);
	if (rc) {
		free(lock);
		return rc;
	}
	*ret_lock = lock;
	return 0;
}

int hf_lock_open(hf_client *client, hf_kind kind, const char *name, hf_lock **ret_lock)
{
	return hf_lock_open_with(client, kind, name, NULL, ret_lock);
}

static int compare_values(const void *a, const void *b)
{
	return memcmp(a, b, HF__VALUE_SIZE);
}

/* The values as the server stores them: hashed, sorted, each once. Returns their number. */
static size_t hash_values(const char *const *values, size_t n,
                          char ret_hashed[HF__VALUES_MAX][HF__VALUE_SIZE])
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		char text[HF__VALUE_SIZE + 1];
		hf__highway_text(values[i], strlen(values[i]), text);
		memcpy(ret_hashed[i], text, HF__VALUE_SIZE);
	}
	qsort(ret_hashed, n, HF__VALUE_SIZE, compare_values);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || memcmp(ret_hashed[i], ret_hashed[kept - 1], HF__VALUE_SIZE) != 0)
			memmove(ret_hashed[kept++], ret_hashed[i], HF__VALUE_SIZE);
	return kept;
}

int hf_lock_open_group(hf_client *client, const char *group, const char *const *values, size_t n,
                       hf_lock **ret_lock)
{
	char hashed[HF__VALUES_MAX][HF__VALUE_SIZE];
	int rc = hf__error_null(!client     ? "client"
	                        : !group    ? "group"
	                        : !values   ? "values"
	                        : !ret_lock ? "ret_lock"
	                                    : NULL);
	if (rc)
		return rc;
	if (n < 1 || n > HF__VALUES_MAX)
		return hf__error(HF_EINVAL, "n: %zu is not between 1 and %d", n, HF__VALUES_MAX);
	for (size_t i = 0; i < n; i++)
		if (!values[i])
			return hf__error(HF_EINVAL, "values[%zu] must not be NULL", i);
	hf_lock *lock = calloc(1, sizeof(*lock));
	if (!lock)
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	n = hash_values(values, n, hashed);
	rc = hf__handle_open_group(&lock->at, client, group, hashed[0], n);
	if (rc) {
		free(lock);
		return rc;
	}
	*ret_lock = lock;
	return 0;
}

/* ---- several locks ---- */

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
			if (members[j]->at.lock == members[i]->at.lock)
				return hf__error(HF_EINVAL,
				                 "members[%zu] and members[%zu] are the same lock",
				                 j, i);
	}
	return 0;
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

static int open_several(hf_lock *const *members, size_t n, size_t need, hf_lock **ret_lock)
{
	hf_lock *lock = calloc(1, sizeof(*lock));
	struct hf__several *several = lock ? hf__members_make(members, n, need) : NULL;
	if (!several) {
		free(lock);
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	}
	int rc = need < n ? hf__red_check(several) : 0;
	int before = hf__thread_defer_cancel();
	if (!rc) {
		several = hf__members_share(several);
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
	hf__thread_restore_cancel(before);
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
		if (members[i]->at.lock->traits->session)
			rc = hf__error(
				HF_ENOTSUP,
				"members[%zu] is on ZooKeeper, where a majority of the servers "
				"grants every lock already",
				i);
	return rc ? rc : open_several(members, n, n / 2 + 1, ret_lock);
}

/* ---- closing ---- */

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

static void close_several(struct hf__several *several)
{
	if (hf__client_check(several->member[0].lock.at.client))
		return;
	int before = hf__thread_defer_cancel();
	remove_handle(several);
	hf__thread_restore_cancel(before);
}

void hf_lock_close(hf_lock *lock)
{
	if (!lock)
		return;
	if (hf__locks_several(lock))
		close_several(hf__locks_several(lock));
	else
		hf__handle_close(&lock->at);
	free(lock);
}
