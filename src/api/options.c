/* Copies options of any release, and checks what several of them have in common. */
#include "api/client.h"

#include <inttypes.h>
#include <string.h>

#define MAX_SIZE 4096 /* larger than the options of any release; a greater size is garbage */

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
	if (size < sizeof size || size > MAX_SIZE)
		return hf__error(HF_EINVAL, "options: the size is %zu; create them with %s(...)",
		                 size, macro);
	for (size_t i = our_size; i < size; i++)
		if (((const char *)theirs)[i])
			return hf__error(HF_EINVAL,
			                 "options: a field is set that this release does not know");
	memcpy(ret_ours, theirs, size < our_size ? size : our_size);
	return 0;
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
