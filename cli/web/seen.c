/* What this process has seen of the locks since it started. */
#include "seen.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS 8192 /* a power of two */

/*
 * One hold. Holds are numbered from 1; number n is in the place n % SEEN_MOST until n + SEEN_MOST
 * takes it. Those of a bucket form a list from the newest to the oldest.
 */
struct hold {
	uint64_t number, older; /* of this hold, and of the next one in its bucket */
	uint64_t hash;          /* of the name */
	char *texts;            /* name, owner, host and command, each with a NUL */
	size_t length;          /* of the name */
	int64_t pid;
	int64_t from_at, to_at; /* to_at 0: it has not ended yet */
	uint64_t pass;          /* the latest snapshot with this hold */
	bool has_start;         /* from_at is when it began, not only when it was first seen */
};

struct seen {
	int64_t started_at;
	uint64_t n;    /* how many holds there ever were */
	uint64_t pass; /* how many snapshots there were */
	uint64_t newest[BUCKETS];
	struct hold holds[SEEN_MOST];
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct seen *seen_new(void)
{
	struct seen *seen = calloc(1, sizeof *seen);
	if (seen)
		seen->started_at = now_ms();
	return seen;
}

void seen_free(struct seen *seen)
{
	for (size_t i = 0; seen && i < SEEN_MOST; i++)
		free(seen->holds[i].texts);
	free(seen);
}

int64_t seen_age(const struct seen *seen)
{
	return now_ms() - seen->started_at;
}

static uint64_t hash_name(const char *name, size_t length)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
	return hash;
}

/* Returns the newest hold of this name with this number or an older one, or NULL. */
static const struct hold *find_hold(const struct seen *seen, uint64_t number, uint64_t hash,
                                    const char *name, size_t length)
{
	while (number > 0) {
		const struct hold *hold = &seen->holds[number % SEEN_MOST];
		if (hold->number != number)
			return NULL; /* its place was taken, and those of all older ones too */
		if (hold->hash == hash && hold->length == length &&
		    memcmp(hold->texts, name, length) == 0)
			return hold;
		number = hold->older;
	}
	return NULL;
}

static const struct hold *find_newest(const struct seen *seen, const char *name, size_t length)
{
	uint64_t hash = hash_name(name, length);
	return find_hold(seen, seen->newest[hash % BUCKETS], hash, name, length);
}

/* Returns name, owner, host and command in one block; NULL without memory. */
static char *copy_texts(const struct board_row *row)
{
	const char *const parts[] = {row->holder.owner, row->holder.host, row->holder.text};
	size_t size = row->length + 1;
	for (size_t i = 0; i < 3; i++)
		size += strlen(parts[i]) + 1;
	char *texts = malloc(size), *at = texts;
	if (!texts)
		return NULL;
	memcpy(at, row->name, row->length);
	at += row->length;
	*at++ = 0;
	for (size_t i = 0; i < 3; i++)
		at = stpcpy(at, parts[i]) + 1;
	return texts;
}

static const char *get_owner(const struct hold *hold)
{
	return hold->texts + hold->length + 1;
}

static void begin_hold(struct seen *seen, const struct board_row *row, int64_t now)
{
	char *texts = copy_texts(row);
	uint64_t hash = hash_name(row->name, row->length);
	if (!texts)
		return;
	uint64_t number = ++seen->n;
	struct hold *hold = &seen->holds[number % SEEN_MOST];
	free(hold->texts);
	*hold = (struct hold){
		.number = number,
		.older = seen->newest[hash % BUCKETS],
		.hash = hash,
		.texts = texts,
		.length = row->length,
		.pid = row->holder.pid,
		.from_at = now - (row->held_ms > 0 ? row->held_ms : 0),
		.has_start = !row->held_longer,
		.pass = seen->pass,
	};
	seen->newest[hash % BUCKETS] = number;
}

static void end_hold(struct seen *seen, const struct hold *hold, int64_t now)
{
	if (hold && hold->to_at == 0)
		seen->holds[hold->number % SEEN_MOST].to_at = now;
}

static void take_row(struct seen *seen, const struct board_row *row, int64_t now)
{
	const struct hold *hold = find_newest(seen, row->name, row->length);
	bool is_held = row->holders > 0;
	bool is_same = hold && hold->to_at == 0 && strcmp(get_owner(hold), row->holder.owner) == 0;
	if (is_held && is_same) {
		seen->holds[hold->number % SEEN_MOST].pass = seen->pass;
		return;
	}
	end_hold(seen, hold, now);
	if (is_held)
		begin_hold(seen, row, now);
}

/* A whole snapshot does not say what is gone: that is what it does not have. */
static void end_missing(struct seen *seen, int64_t now)
{
	for (size_t i = 0; i < SEEN_MOST; i++)
		if (seen->holds[i].number && seen->holds[i].pass != seen->pass)
			end_hold(seen, &seen->holds[i], now);
}

void seen_take(struct seen *seen, const struct board_snapshot *snapshot)
{
	int64_t now = now_ms();
	seen->pass++;
	for (size_t i = 0; i < snapshot->n; i++)
		take_row(seen, &snapshot->rows[i], now);
	if (snapshot->is_whole)
		end_missing(seen, now);
	for (size_t i = 0; i < snapshot->n_gone; i++) {
		const struct board_name *gone = &snapshot->gone[i];
		end_hold(seen, find_newest(seen, gone->name, gone->length), now);
	}
}

static void write_hold(const struct hold *hold, struct json *json, int64_t now)
{
	const char *owner = get_owner(hold);
	const char *host = owner + strlen(owner) + 1;
	json_begin(json, NULL, '{');
	json_text(json, "owner", owner);
	json_known(json, "host", host);
	json_least(json, "pid", hold->pid, 1);
	json_known(json, "command", host + strlen(host) + 1);
	json_number(json, "from_ms", now - hold->from_at);
	json_least(json, "to_ms", hold->to_at ? now - hold->to_at : -1, 0);
	json_flag(json, "seen_start", hold->has_start);
	json_end(json, '}');
}

bool seen_has(const struct seen *seen, const char *name, size_t length)
{
	return find_newest(seen, name, length) != NULL;
}

void seen_write(const struct seen *seen, const char *name, size_t length, struct json *json,
                const char *key)
{
	const struct hold *hold = find_newest(seen, name, length);
	int64_t now = now_ms();
	int left = 200;
	json_begin(json, key, '[');
	for (; hold && left > 0; left--) {
		write_hold(hold, json, now);
		hold = find_hold(seen, hold->older, hold->hash, name, length);
	}
	json_end(json, ']');
}
