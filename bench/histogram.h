/* Counts durations in 64 steps per power of two: adding is cheap, and values are exact to 1 %. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include "common.h"

#define HISTOGRAM_BITS  6
#define HISTOGRAM_STEPS (1 << HISTOGRAM_BITS)
/* Up to 2^42 ns, which is more than an hour; longer durations count as that. */
#define HISTOGRAM_SLOTS ((42 - HISTOGRAM_BITS + 1) * HISTOGRAM_STEPS)

struct histogram {
	uint64_t count;
	int64_t longest; /* ns, exact */
	uint32_t slots[HISTOGRAM_SLOTS];
};

static inline size_t histogram_slot(uint64_t ns)
{
	if (ns < HISTOGRAM_STEPS)
		return ns;
	int shift = 63 - __builtin_clzll(ns) - HISTOGRAM_BITS;
	size_t slot = ((size_t)shift << HISTOGRAM_BITS) + (ns >> shift);
	return slot < HISTOGRAM_SLOTS ? slot : HISTOGRAM_SLOTS - 1;
}

/* The middle of the durations that fall into the slot. */
static inline double histogram_value(size_t slot)
{
	if (slot < HISTOGRAM_STEPS)
		return (double)slot;
	int shift = (int)(slot >> HISTOGRAM_BITS) - 1;
	uint64_t low = (HISTOGRAM_STEPS + (slot & (HISTOGRAM_STEPS - 1))) << shift;
	return (double)low + (double)((uint64_t)1 << shift) / 2;
}

/* Adds the same duration this many times. */
static inline void histogram_add(struct histogram *histogram, int64_t ns, uint32_t times)
{
	histogram->slots[histogram_slot(ns > 0 ? (uint64_t)ns : 0)] += times;
	histogram->count += times;
	if (ns > histogram->longest)
		histogram->longest = ns;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (size_t i = 0; i < HISTOGRAM_SLOTS; i++)
		into->slots[i] += from->slots[i];
	into->count += from->count;
	if (from->longest > into->longest)
		into->longest = from->longest;
}

/* The microseconds that this part of all durations does not exceed. There must be at least one. */
static inline double histogram_us(const struct histogram *histogram, double part)
{
	uint64_t seen = 0;
	for (size_t i = 0; i < HISTOGRAM_SLOTS; i++) {
		seen += histogram->slots[i];
		if (histogram->slots[i] > 0 && (double)seen >= part * (double)histogram->count)
			return histogram_value(i) / 1000;
	}
	return (double)histogram->longest / 1000;
}

/* Prints a field of an answer, with a comma before it. */
static inline void print_us(const char *field, const struct histogram *histogram, double part)
{
	if (histogram->count > 0)
		printf(", \"%s\": %.2f", field, histogram_us(histogram, part));
	else
		printf(", \"%s\": null", field);
}

#endif
