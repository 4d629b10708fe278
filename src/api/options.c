/* Copies structs from and to programs of any release, and checks what several options share. */
#include "api/client.h"

#include <inttypes.h>
#include <string.h>

#define MAX_REPLICAS 100 /* as the setting */

/* No release has a struct with a size of its own that is larger; a greater size is garbage. */
#define MOST_SIZE 4096

/*
 * A field that a later release appends must make the struct larger, or a program that was built
 * before would seem to set it. So no struct ends with padding. (Where pointers have 32 bits, that
 * depends on the platform.)
 */
#if UINTPTR_MAX > UINT32_MAX
#define CHECK_END(type, last)                                                                      \
	_Static_assert(sizeof(type) == offsetof(type, last) + sizeof(((type *)0)->last),           \
	               #type " ends with padding, or with another field")
CHECK_END(hf_client_options, history);
CHECK_END(hf_stats, syncs);
CHECK_END(hf_metrics_options, no_eof);
CHECK_END(hf_histogram, at_most);
CHECK_END(hf_lock_options, spin_factor);
CHECK_END(hf_acquire_options, replicas);
CHECK_END(hf_release_options, owner);
CHECK_END(hf_wait_options, replicas);
CHECK_END(hf_permits_options, replicas);
CHECK_END(hf_list_options, cancel);
CHECK_END(hf_history_options, after);
#endif

int hf__options_copy(void *ret_ours, size_t our_size, const void *theirs, const char *macro)
{
	size_t size;
	if (!theirs) {
		memset(ret_ours, 0, our_size);
		return 0;
	}
	memcpy(&size, theirs, sizeof size);
	if (size == our_size) {
		memcpy(ret_ours, theirs, size);
		return 0;
	}
	memset(ret_ours, 0, our_size);
	if (size < sizeof size || size > MOST_SIZE)
		return hf__error(HF_EINVAL, "options: the size is %zu; create them with %s(...)",
		                 size, macro);
	for (size_t i = our_size; i < size; i++)
		if (((const char *)theirs)[i])
			return hf__error(HF_EINVAL,
			                 "options: a field is set that this release does not know");
	memcpy(ret_ours, theirs, size < our_size ? size : our_size);
	return 0;
}

int hf__options_check_size(size_t size, const char *name, const char *type)
{
	if (size < sizeof size || size > MOST_SIZE)
		return hf__error(HF_EINVAL, "%s->size: %zu is wrong; set it to sizeof(%s)", name,
		                 size, type);
	return 0;
}

void hf__options_give(const void *ours, size_t our_size, void *ret_theirs)
{
	size_t size;
	memcpy(&size, ret_theirs, sizeof size);
	memset(ret_theirs, 0, size);
	memcpy(ret_theirs, ours, size < our_size ? size : our_size);
	memcpy(ret_theirs, &size, sizeof size);
}

int hf__options_check_wait(int64_t wait_ms)
{
	if (wait_ms < HF_NOWAIT)
		return hf__error(HF_EINVAL,
		                 "wait_ms: %" PRId64 " is negative; use HF_NOWAIT to try once",
		                 wait_ms);
	if (wait_ms > HF__LONGEST_MS)
		return hf__error(HF_EINVAL, "wait_ms: %" PRId64 " is more than %" PRId64, wait_ms,
		                 HF__LONGEST_MS);
	return 0;
}

int hf__options_check_lease(const char *name, int64_t lease_ms)
{
	if (lease_ms < HF__LEAST_LEASE || lease_ms > HF__LONGEST_MS)
		return hf__error(HF_EINVAL, "%s: %" PRId64 " is not between %d and %" PRId64, name,
		                 lease_ms, HF__LEAST_LEASE, HF__LONGEST_MS);
	return 0;
}

int hf__options_check_replicas(const struct hf_client *client, int64_t replicas)
{
	if (replicas < -1 || replicas > MAX_REPLICAS)
		return hf__error(HF_EINVAL,
		                 "replicas: %" PRId64 " is not between 0 and %d; use -1 for none",
		                 replicas, MAX_REPLICAS);
	if (replicas > 0 && client->settings.zookeeper)
		return hf__error(HF_ENOTSUP,
		                 "replicas: a majority of the ensemble acknowledges every grant on "
		                 "ZooKeeper, so there is nothing to ask for");
	return 0;
}
