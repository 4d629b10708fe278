/*
 * A hash table whose links live inside its members.
 *
 * Adding cannot fail: if there is no memory to grow, the chains get longer.
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
	struct hf__table_link *first; /* the only bucket until the table grows */
	uint32_t buckets;             /* a power of two */
	uint32_t entries;
	uint32_t seed;
};

#define hf__table_item(link, type, field) ((type *)(void *)((char *)(link)-offsetof(type, field)))

typedef bool hf__table_same_fn(const struct hf__table_link *link, const void *key);

void hf__table_init(struct hf__table *table, uint32_t seed);
/* The caller still owns the members. */
void hf__table_done(struct hf__table *table);

uint32_t hf__table_hash(const struct hf__table *table, const void *bytes, size_t length);
struct hf__table_link *hf__table_find(const struct hf__table *table, uint32_t hash,
                                      hf__table_same_fn *same, const void *key);
/* The next member like this one, which was found with the same arguments; NULL after the last. */
struct hf__table_link *hf__table_find_next(const struct hf__table_link *link,
                                           hf__table_same_fn *same, const void *key);
void hf__table_add(struct hf__table *table, struct hf__table_link *link, uint32_t hash);
void hf__table_remove(struct hf__table *table, struct hf__table_link *link);

/*
 * Visits all members in no particular order: NULL as link returns the first, and after the last one
 * NULL is returned. A member can be removed once its successor is known; none may be added before
 * the end.
 */
struct hf__table_link *hf__table_next(const struct hf__table *table,
                                      const struct hf__table_link *link);

#endif
