/* The streams that are the history of a whole cluster: how they are found. */
#include "api/streams.h"
#include "api/client.h"
#include "api/rows.h"
#include "base/random.h"
#include "redis/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_STREAMS 65536
#define MOST_WALKS   4 /* in one read, while slots move */
#define PAUSE_MS     250
#define CURSOR_SIZE  40
#define FACTS_SIZE   80

static const char key_start[] = "holdfast_history:";

/* What all masters say about their slots. */
struct coverage {
	uint64_t digest; /* differs if a slot has another master */
	int64_t owned;   /* slots that have a master */
	bool is_moving;  /* a slot is being moved */
};

void hf__streams_init(struct hf__streams *streams, const char *prefix, const char *start)
{
	uint64_t seed = 0;
	(void)hf__random_bytes(&seed, sizeof seed);
	hf__table_init(&streams->table, (uint32_t)seed);
	streams->prefix = prefix;
	snprintf(streams->start, sizeof streams->start, "%s", start);
	streams->digest = 0;
	streams->walks = 0;
}

void hf__streams_done(struct hf__streams *streams)
{
	struct hf__table_link *link, *after = hf__table_next(&streams->table, NULL);
	while ((link = after)) {
		after = hf__table_next(&streams->table, link);
		hf__table_remove(&streams->table, link);
		free(hf__table_item(link, struct hf__stream, by_key));
	}
	hf__table_done(&streams->table);
}

/* ---- one stream ---- */

static bool has_key(const struct hf__table_link *link, const void *key)
{
	return strcmp(hf__table_item(link, struct hf__stream, by_key)->key, key) == 0;
}

static struct hf__stream *find_stream(const struct hf__streams *streams, const char *key)
{
	uint32_t hash = hf__table_hash(&streams->table, key, strlen(key));
	struct hf__table_link *link = hf__table_find(&streams->table, hash, has_key, key);
	return link ? hf__table_item(link, struct hf__stream, by_key) : NULL;
}

struct hf__stream *hf__streams_of(const struct hf__streams *streams, const char *name)
{
	char key[HF__KEYS_MAX];
	hf__keys_make(key, KEY_HISTORY, name, "", 0);
	return find_stream(streams, key);
}

struct hf__stream *hf__streams_next(const struct hf__streams *streams,
                                    const struct hf__stream *stream)
{
	struct hf__table_link *link =
		hf__table_next(&streams->table, stream ? &stream->by_key : NULL);
	return link ? hf__table_item(link, struct hf__stream, by_key) : NULL;
}

/* Names without braces have some in the key. */
static void name_of(const char *key, char ret_name[HF__KEYS_MAX])
{
	const char *rest = key + sizeof key_start - 1;
	size_t length = strlen(rest);
	bool is_braced =
		length > 2 && *rest == '{' && rest[length - 1] == '}' && !strchr(rest + 1, '{');
	snprintf(ret_name, HF__KEYS_MAX, "%.*s", (int)(is_braced ? length - 2 : length),
	         rest + is_braced);
}

void hf__streams_name(const struct hf__stream *stream, char ret_name[HF__KEYS_MAX])
{
	name_of(stream->key, ret_name);
}

static struct hf__stream *add_stream(struct hf__streams *streams, const char *key)
{
	size_t length = strlen(key);
	struct hf__stream *stream = calloc(1, sizeof(*stream) + length + 1);
	if (!stream)
		return NULL;
	memcpy(stream->key, key, length + 1);
	memcpy(stream->position, streams->start, sizeof stream->position);
	hf__table_add(&streams->table, &stream->by_key,
	              hf__table_hash(&streams->table, key, length));
	return stream;
}

/* Others can have keys that look like ours. */
static bool is_ours(const struct hf__streams *streams, const struct hf_client *client,
                    const char *key)
{
	char name[HF__KEYS_MAX], made[HF__KEYS_MAX];
	if (strncmp(key, key_start, sizeof key_start - 1) != 0)
		return false;
	name_of(key, name);
	if (strncmp(name, streams->prefix, strlen(streams->prefix)) != 0 ||
	    hf__handle_find_fault(client, name))
		return false;
	hf__keys_make(made, KEY_HISTORY, name, "", 0);
	return strcmp(made, key) == 0;
}

/* The row is the id of the last entry, a space, and the key. */
static int note_stream(struct hf__streams *streams, const struct hf_client *client, char *row,
                       size_t length)
{
	char *key = memchr(row, ' ', length);
	if (!key || key - row + 1 > HF__POSITION_SIZE)
		return hf__error(HF_EPROTOCOL, "the server's list of histories was not understood");
	*key++ = 0;
	if (strlen(key) != length - (size_t)(key - row) || !is_ours(streams, client, key))
		return 0;
	struct hf__stream *stream = find_stream(streams, key);
	if (!stream && streams->table.entries >= MOST_STREAMS)
		return hf__error(HF_ENOMEM,
		                 "more than %d names have a history; read that of one name",
		                 MOST_STREAMS);
	if (!stream && !(stream = add_stream(streams, key)))
		return hf__error(HF_ENOMEM, "no memory for a name");
	memcpy(stream->last, row, (size_t)(key - row));
	stream->found = streams->walks;
	return 0;
}

/* ---- walks ---- */

static int take_streams(struct hf__streams *streams, const struct hf_client *client,
                        struct hf__buffer *rows, size_t at)
{
	char text[HF__POSITION_SIZE + HF__KEYS_MAX];
	struct hf__rows_cursor row;
	int rc = 0;
	while (!rc && hf__rows_next(rows, &at, &row)) {
		size_t length = (size_t)(row.end - row.at);
		if (length >= sizeof text)
			continue; /* longer than any key of ours */
		memcpy(text, row.at, length);
		text[length] = 0;
		rc = note_stream(streams, client, text, length);
	}
	return rc;
}

static void add_facts(const struct hf__streams *streams, const char *facts,
                      struct coverage *coverage)
{
	char *end;
	coverage->owned += strtoll(facts, &end, 10);
	coverage->is_moving = coverage->is_moving || strncmp(end, " 0", 2) != 0;
	coverage->digest =
		coverage->digest * 31 + hf__table_hash(&streams->table, facts, strlen(facts));
}

/* Asks each master for its streams, or only for its slots, which is one step. */
static int walk(struct hf__streams *streams, struct hf_client *client, struct hf__buffer *rows,
                bool finds, struct coverage *coverage)
{
	char cursor[CURSOR_SIZE] = "0", words[CURSOR_SIZE + 8], facts[FACTS_SIZE];
	int rc;
	*coverage = (struct coverage){0};
	do {
		size_t at = 0;
		snprintf(words, sizeof words, "%s%c%s", cursor, 0, finds ? "find" : "slots");
		rc = hf__rows_ask(client, rows, HF__HISTORY_STREAMS, NULL, words, 2, NULL);
		if (rc)
			return rc;
		if (!hf__rows_copy(rows, &at, cursor, sizeof cursor) ||
		    !hf__rows_copy(rows, &at, facts, sizeof facts))
			return hf__error(HF_EPROTOCOL,
			                 "the server's list of histories was not understood");
		add_facts(streams, facts, coverage);
		rc = finds ? take_streams(streams, client, rows, at) : 0;
	} while (!rc && strcmp(cursor, "0") != 0);
	return rc;
}

/* The walk was complete: what it did not find has expired or was removed. */
static void drop_others(struct hf__streams *streams)
{
	struct hf__stream *stream, *after = hf__streams_next(streams, NULL);
	while ((stream = after)) {
		after = hf__streams_next(streams, stream);
		if (stream->found == streams->walks)
			continue;
		hf__table_remove(&streams->table, &stream->by_key);
		free(stream);
	}
}

static void pause_for_slots(void)
{
	int before = hf__thread_defer_cancel();
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
	hf__thread_restore_cancel(before);
}

static int report_slots(const struct coverage *coverage)
{
	if (coverage->owned != HF__SLOTS)
		return hf__error(
			HF_ENOTNOW,
			"%lld of the cluster's %d slots have no master that answers; names "
			"may be missing",
			(long long)(HF__SLOTS - coverage->owned), HF__SLOTS);
	return hf__error(HF_ENOTNOW, "slots of the cluster are being moved; names may be missing");
}

/*
 * A stream whose slot moves to a master that was asked before would be missed. So the walk is
 * repeated if the slots have other masters after it.
 */
int hf__streams_find(struct hf__streams *streams, struct hf_client *client, struct hf__buffer *rows)
{
	struct coverage coverage, found;
	int rc = streams->walks ? 0 : walk(streams, client, rows, false, &coverage);
	if (!rc && !streams->walks)
		streams->digest = coverage.digest;
	for (int i = 0; !rc && i < MOST_WALKS; i++) {
		if (i > 0)
			pause_for_slots();
		streams->walks++;
		rc = walk(streams, client, rows, true, &found);
		if (!rc)
			rc = walk(streams, client, rows, false, &coverage);
		if (rc)
			return rc;
		bool is_same = coverage.digest == streams->digest;
		streams->digest = coverage.digest;
		if (is_same && !coverage.is_moving && coverage.owned == HF__SLOTS) {
			drop_others(streams);
			return 0;
		}
		if (is_same && coverage.is_moving)
			break; /* this can take long */
	}
	return rc ? rc : report_slots(&coverage);
}
