/* The ids of permits: a prefix of the client's own, then the wire owner. */
#include "core/core.h"

#include <assert.h>
#include <string.h>

void hf__permit_id(const struct hf__core *core, uint64_t wire,
                   unsigned char ret_id[HF__PERMIT_SIZE])
{
	assert(core && wire != 0 && ret_id);
	memcpy(ret_id, core->permit_prefix, 8);
	for (int i = 0; i < 8; i++)
		ret_id[8 + i] = (unsigned char)(wire >> (56 - 8 * i));
}

uint64_t hf__permit_wire(const struct hf__core *core, const unsigned char id[HF__PERMIT_SIZE])
{
	assert(core && id);
	uint64_t wire = 0;
	if (memcmp(id, core->permit_prefix, 8) != 0)
		return 0;
	for (int i = 0; i < 8; i++)
		wire = wire << 8 | id[8 + i];
	return wire;
}
