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

void hf__permit_write(const unsigned char id[HF__PERMIT_SIZE], hf_permit_id ret_text)
{
	static const char digits[] = "0123456789abcdef";
	assert(id && ret_text);
	for (size_t i = 0; i < HF__PERMIT_SIZE; i++) {
		ret_text[2 * i] = digits[id[i] >> 4];
		ret_text[2 * i + 1] = digits[id[i] & 15];
	}
	ret_text[2 * HF__PERMIT_SIZE] = 0;
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

bool hf__permit_read(const char *text, unsigned char ret_id[HF__PERMIT_SIZE])
{
	assert(text && ret_id);
	for (size_t i = 0; i < HF__PERMIT_SIZE; i++) {
		int high = digit(text[2 * i]);
		int low = high < 0 ? -1 : digit(text[2 * i + 1]);
		if (low < 0)
			return false;
		ret_id[i] = (unsigned char)(high << 4 | low);
	}
	return !text[2 * HF__PERMIT_SIZE];
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
