/*
 * The server's records of commands without an owner: which one a command uses.
 *
 * A record holds the number of a command and its result. With it, a repeat has no second effect,
 * and the server recognises a command that arrives after a later one in the same record. A record
 * is not used again before its command was answered or the server has forgotten it.
 */
#include "core/record.h"
#include "core/core.h"

#include <assert.h>

uint16_t hf__record_take(struct hf__core *core, uint64_t number, int64_t now)
{
	for (uint16_t i = 0; i < HF__RECORDS; i++) {
		if (core->record_free_at[i] > now)
			continue;
		core->record_free_at[i] = HF__NEVER;
		return i;
	}
	/* All are in use. A repeat may find a later command in its record: then it is refused. */
	return (uint16_t)(number % HF__RECORDS);
}

void hf__record_free(struct hf__core *core, uint16_t record, int64_t at)
{
	assert(record < HF__RECORDS);
	core->record_free_at[record] = at;
}
