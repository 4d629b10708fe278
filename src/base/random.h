/* Random numbers: from the kernel for identities, from a small generator for jitter. */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#define HF__UUID_LENGTH 36 /* of a UUID as text, without its NUL */

/* A seeded generator, which must not be used for secrets. Any seed will do. */
struct hf__random {
	uint64_t state;
};

/* Fills the buffer from the kernel; 0, or -1 on failure. There is no weaker fallback. */
int hf__random_bytes(void *ret_bytes, size_t length);

/* Writes a random (version 4) UUID as text; 0 or -1. */
int hf__random_uuid(char ret_uuid[HF__UUID_LENGTH + 1]);

uint64_t hf__random_next(struct hf__random *random);

/* Uniform in [low, high], both included. */
int64_t hf__random_between(struct hf__random *random, int64_t low, int64_t high);

/* The duration, changed at random by up to 20 %. */
int64_t hf__random_jitter(struct hf__random *random, int64_t ms);

#endif
