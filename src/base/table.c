/* A hash table whose links live inside its members. */
#include "base/table.h"

#include <assert.h>
#include <stdlib.h>

static struct hf__table_link **bucket_of(const struct hf__table *table, uint32_t hash)
{
	return &table->bucket[hash & (table->buckets - 1)];
}

static void grow(struct hf__table *table)
{
	uint32_t buckets = table->buckets * 2;
	struct hf__table_link **bucket = calloc(buckets, sizeof(*bucket));
	if (!bucket)
		return;
	for (uint32_t i = 0; i < table->buckets; i++) {
		struct hf__table_link *link = table->bucket[i];
		while (link) {
			struct hf__table_link *next = link->next;
			struct hf__table_link **home = &bucket[link->hash & (buckets - 1)];
			link->next = *home;
			*home = link;
			link = next;
		}
	}
	if (table->bucket != &table->first)
		free(table->bucket);
	table->bucket = bucket;
	table->buckets = buckets;
}

void hf__table_init(struct hf__table *table, uint32_t seed)
{
	*table = (struct hf__table){.buckets = 1, .seed = seed};
	table->bucket = &table->first;
}

void hf__table_done(struct hf__table *table)
{
	if (table->bucket != &table->first)
		free(table->bucket);
	table->bucket = &table->first;
	table->first = NULL;
	table->buckets = 1;
	table->entries = 0;
}

uint32_t hf__table_hash(const struct hf__table *table, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ table->seed;
	assert(bytes || length == 0);
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)(hash ^ (hash >> 32));
}

struct hf__table_link *hf__table_find(const struct hf__table *table, uint32_t hash,
                                      hf__table_same_fn *same, const void *key)
{
	assert(table->bucket && same);
	struct hf__table_link *link = *bucket_of(table, hash);
	while (link && (link->hash != hash || !same(link, key)))
		link = link->next;
	return link;
}

struct hf__table_link *hf__table_find_next(const struct hf__table_link *link,
                                           hf__table_same_fn *same, const void *key)
{
	assert(link && same);
	uint32_t hash = link->hash;
	struct hf__table_link *next = link->next;
	while (next && (next->hash != hash || !same(next, key)))
		next = next->next;
	return next;
}

void hf__table_add(struct hf__table *table, struct hf__table_link *link, uint32_t hash)
{
	assert(table->bucket && link);
	if (table->entries >= table->buckets && table->buckets < UINT32_C(1) << 30)
		grow(table);
	struct hf__table_link **home = bucket_of(table, hash);
	link->hash = hash;
	link->next = *home;
	*home = link;
	table->entries++;
}

void hf__table_remove(struct hf__table *table, struct hf__table_link *link)
{
	struct hf__table_link **at = bucket_of(table, link->hash);
	assert(table->entries > 0);
	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	link->next = NULL;
	table->entries--;
}

struct hf__table_link *hf__table_next(const struct hf__table *table,
                                      const struct hf__table_link *link)
{
	if (link && link->next)
		return link->next;
	uint32_t i = link ? (link->hash & (table->buckets - 1)) + 1 : 0;
	for (; i < table->buckets; i++)
		if (table->bucket[i])
			return table->bucket[i];
	return NULL;
}
