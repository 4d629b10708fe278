/* Random numbers that follow from a seed other than 0. */
#ifndef TESTS_SUPPORT_CHANCE_H
#define TESTS_SUPPORT_CHANCE_H

#include <stdint.h>

static inline uint64_t chance_draw(uint64_t *random)
{
	uint64_t x = *random;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *random = x;
}

#endif
