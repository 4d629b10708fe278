/*
 * A hash table whose links live inside its members.
 *
 * Adding cannot fail: where there is no memory to grow, the chains get longer.
 */
#ifndef HF_BASE_TABLE_H
#define HF_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__table_link {
	struct hf__table_link *next;
	uint32_t hash;
};

struct hf__table {
	struct hf__table_link **bucket;
	struct hf__table_link *first; /* the only bucket until the first growth */
	uint32_t buckets;             /* a power of two */
	uint32_t entries;
	uint32_t seed;
};

#define hf__table_item(link, type, field) ((type *)(void *)((char *)(link)-offsetof(type, field)))

typedef bool hf__table_same_fn(const struct hf__table_link *link, const void *key);

void hf__table_init(struct hf__table *table, uint32_t seed);
/* The members are the caller's. */
void hf__table_done(struct hf__table *table);

uint32_t hf__table_hash(const struct hf__table *table, const void *bytes, size_t length);
struct hf__table_link *hf__table_find(const struct hf__table *table, uint32_t hash,
                                      hf__table_same_fn *same, const void *key);
void hf__table_add(struct hf__table *table, struct hf__table_link *link, uint32_t hash);
void hf__table_remove(struct hf__table *table, struct hf__table_link *link);

/*
 * All members, in no order: pass NULL to get the first. The one at hand may be removed once its
 * successor has been taken; nothing may be added meanwhile.
 */
struct hf__table_link *hf__table_next(const struct hf__table *table,
                                      const struct hf__table_link *link);

#endif
