/* What the library's events call a hold. */
#include "torture/names.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/several.h"
#include "base/number.h"
#include "core/hold.h"
#include "torture/record.h"

/* Those that are held, or lost without their owner having learned of it. */
static int add_names(const struct hf__handle *at, uint64_t owner, int count, uint64_t *ret_names)
{
	char text[64];
	struct hf_client *client = at->client;
	int before = hf__client_lock(client);
	const struct hf__list *link;
	hf__list_each (link, &at->lock->holds) {
		const struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		bool is_held = hold->state == HF__HOLD_HELD || hold->state == HF__HOLD_LOST;
		if (hold->owner != owner || !is_held || count == NAMES_MAX)
			continue;
		(void)snprintf(text, sizeof text, "%s:%" PRIu64, client->core.config.uuid,
		               hold->cmd.wire);
		ret_names[count++] = record_hash(text);
	}
	hf__client_unlock(client, before);
	return count;
}

int names_of_lock(const hf_lock *lock, const hf_owner *owner, uint64_t ret_names[NAMES_MAX])
{
	uint64_t number = owner ? owner->number : hf__number_of_thread();
	const struct hf__several *several = hf__locks_several(lock);
	int count = 0;
	if (!several)
		return add_names(&lock->at, number, 0, ret_names);
	for (size_t i = 0; i < several->n; i++)
		count = add_names(&several->member[i].lock.at, number, count, ret_names);
	return count;
}
