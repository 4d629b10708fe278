/* Random numbers: from the kernel for identities, from a small generator for jitter. */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

int hf__random_bytes(void *ret_bytes, size_t length)
{
	unsigned char *at = ret_bytes;
	assert(ret_bytes || length == 0);
	while (length > 0) {
		ssize_t n = getrandom(at, length, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

int hf__random_uuid(char ret_uuid[HF__UUID_LENGTH + 1])
{
	unsigned char b[16];
	if (hf__random_bytes(b, sizeof b))
		return -1;
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	snprintf(ret_uuid, HF__UUID_LENGTH + 1,
	         "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
	         b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
	         b[15]);
	return 0;
}

uint64_t hf__random_next(struct hf__random *random)
{
	uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int64_t hf__random_between(struct hf__random *random, int64_t low, int64_t high)
{
	assert(low <= high);
	uint64_t span = (uint64_t)high - (uint64_t)low + 1;
	uint64_t n = hf__random_next(random);
	return (int64_t)((uint64_t)low + (span == 0 ? n : n % span));
}

int64_t hf__random_jitter(struct hf__random *random, int64_t ms)
{
	assert(ms >= 0);
	int64_t fifth = ms / 5;
	return ms + hf__random_between(random, -fifth, fifth);
}
