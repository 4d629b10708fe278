/* Random numbers: the kernel's for identities, a small generator for jitter. */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* A seeded generator, not for secrets. Any seed is good. */
struct hf__random {
	uint64_t state;
};

/* Fills the buffer from the kernel; 0, or -1 if it refuses. There is no weaker fallback. */
int hf__random_bytes(void *ret_bytes, size_t length);

/* A random (version 4) UUID as text; 0 or -1. */
int hf__random_uuid(char ret_uuid[37]);

uint64_t hf__random_next(struct hf__random *random);

/* Uniform in [low, high], both included. */
int64_t hf__random_between(struct hf__random *random, int64_t low, int64_t high);

/* The duration, 20 % more or less. */
int64_t hf__random_jitter(struct hf__random *random, int64_t ms);

#endif
