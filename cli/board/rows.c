/* The rows of the board: a hash table of locks by their names. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 1024
#define LONGEST_NAME  65535
#define LONGEST_TEXT  160 /* of a holder's text in the table; one lock on its own shows all of it */

static size_t hash_of(const struct rows *rows, const char *name, size_t length)
{
	uint64_t hash = rows->seed ^ UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
	return (size_t)(hash ^ hash >> 32);
}

static struct row **find_place(const struct rows *rows, const char *name, size_t length)
{
	struct row **at = &rows->buckets[hash_of(rows, name, length) & (rows->n_buckets - 1)];
	while (*at && ((*at)->length != length || memcmp((*at)->name, name, length) != 0))
		at = &(*at)->next;
	return at;
}

int rows_init(struct rows *rows, size_t most, uint64_t seed)
{
	memset(rows, 0, sizeof *rows);
	rows->buckets = calloc(FIRST_BUCKETS, sizeof *rows->buckets);
	rows->n_buckets = FIRST_BUCKETS;
	rows->most = most;
	rows->seed = seed;
	return rows->buckets ? 0 : -1;
}

static void free_row(struct row *row)
{
	free(row->name);
	free(row->holder);
	free(row->detail);
	free(row);
}

void rows_done(struct rows *rows)
{
	for (size_t i = 0; i < rows->n_buckets && rows->buckets; i++)
		while (rows->buckets[i]) {
			struct row *row = rows->buckets[i];
			rows->buckets[i] = row->next;
			free_row(row);
		}
	for (size_t i = 0; i < ROWS_MOST_GONE; i++)
		free(rows->gone[i].name);
	free(rows->buckets);
	memset(rows, 0, sizeof *rows);
}

struct row *rows_find(const struct rows *rows, const char *name, size_t length)
{
	return *find_place(rows, name, length);
}

/* Without memory the chains only become longer. */
static void grow(struct rows *rows)
{
	size_t wider = 2 * rows->n_buckets;
	struct row **buckets = calloc(wider, sizeof *buckets);
	if (!buckets)
		return;
	for (size_t i = 0; i < rows->n_buckets; i++)
		while (rows->buckets[i]) {
			struct row *row = rows->buckets[i];
			struct row **at =
				&buckets[hash_of(rows, row->name, row->length) & (wider - 1)];
			rows->buckets[i] = row->next;
			row->next = *at;
			*at = row;
		}
	free(rows->buckets);
	rows->buckets = buckets;
	rows->n_buckets = wider;
}

static struct row *add_row(struct rows *rows, const char *name, size_t length, int64_t now)
{
	bool has_room = rows->n < rows->most && length <= LONGEST_NAME;
	struct row *row = has_room ? calloc(1, sizeof *row) : NULL;
	char *copy = row ? malloc(length + 1) : NULL;
	char *texts = copy ? calloc(3, 1) : NULL;
	if (!texts) {
		rows->is_cut = true;
		free(row);
		free(copy);
		return NULL;
	}
	if (rows->n >= rows->n_buckets)
		grow(rows);
	memcpy(copy, name, length);
	copy[length] = 0;
	struct row **at = find_place(rows, name, length);
	row->name = copy;
	row->holder = texts;
	row->length = (uint16_t)length;
	row->held_at = now;
	row->next = *at;
	*at = row;
	rows->n++;
	return row;
}

/* ---- counters ---- */

/* Adds the row to the counters, or takes it out of them again before it changes. */
static void count_row(struct rows *rows, const struct row *row, bool in)
{
	size_t one = in ? 1 : (size_t)-1;
	rows->held += row->holders > 0 ? one : 0;
	rows->waited += row_is_waited(row) ? one : 0;
	rows->at_risk += row->pulse.state == BOARD_AT_RISK ? one : 0;
}

static void note_gone(struct rows *rows, struct row *row)
{
	struct row_gone *gone = &rows->gone[rows->n_gone++ % ROWS_MOST_GONE];
	free(gone->name);
	*gone = (struct row_gone){row->name, row->length, ++rows->change};
	row->name = NULL;
}

static void remove_at(struct rows *rows, struct row **at)
{
	struct row *row = *at;
	*at = row->next;
	rows->n--;
	count_row(rows, row, false);
	note_gone(rows, row);
	free_row(row);
}

void rows_remove(struct rows *rows, const char *name, size_t length)
{
	struct row **at = find_place(rows, name, length);
	if (*at)
		remove_at(rows, at);
}

/* ---- what was seen ---- */

static size_t cut_length(const char *text)
{
	size_t length = strlen(text);
	return length < LONGEST_TEXT ? length : LONGEST_TEXT;
}

static char *put(char *at, const char *text, size_t length)
{
	memcpy(at, text, length);
	at[length] = 0;
	return at + length + 1;
}

static const struct board_party nobody = {.owner = "", .host = "", .text = "", .since_ms = -1};

/* Stores the texts of the first holder; false if they have not changed. */
static bool set_holder(struct row *row, const struct board_party *party)
{
	size_t owner = cut_length(party->owner), host = cut_length(party->host),
	       text = cut_length(party->text);
	size_t size = owner + host + text + 3;
	char *texts = malloc(size);
	if (!texts)
		return false;
	put(put(put(texts, party->owner, owner), party->host, host), party->text, text);
	/* Texts that differ in length differ at the NUL of the shorter one. */
	bool same = strcmp(row->holder, texts) == 0 &&
	            strcmp(row->holder + owner + 1, texts + owner + 1) == 0 &&
	            strcmp(row->holder + owner + host + 2, texts + owner + host + 2) == 0;
	if (same) {
		free(texts);
		return false;
	}
	free(row->holder);
	row->holder = texts;
	return true;
}

/* A block with the parties and their texts; NULL without memory. */
static void *copy_parties(const struct row_facts *facts)
{
	size_t n = facts->holders_listed + facts->waiters_listed,
	       size = n * sizeof(struct board_party);
	for (size_t i = 0; i < n; i++)
		size += strlen(facts->parties[i].owner) + strlen(facts->parties[i].host) +
		        strlen(facts->parties[i].text) + 3;
	struct board_party *parties = malloc(size ? size : 1);
	char *at = (char *)(parties + n);
	for (size_t i = 0; parties && i < n; i++) {
		const struct board_party *from = &facts->parties[i];
		parties[i] = *from;
		parties[i].owner = at;
		at = put(at, from->owner, strlen(from->owner));
		parties[i].host = at;
		at = put(at, from->host, strlen(from->host));
		parties[i].text = at;
		at = put(at, from->text, strlen(from->text));
	}
	return parties;
}

static void set_detail(struct row *row, const struct row_facts *facts, int64_t now)
{
	free(row->detail);
	row->detail = row->detail_until > now ? copy_parties(facts) : NULL;
	row->holders_listed = row->detail ? (uint32_t)facts->holders_listed : 0;
	row->waiters_listed = row->detail ? (uint32_t)facts->waiters_listed : 0;
}

static bool has_same_owner(const struct row *row, const struct board_party *party)
{
	return strncmp(row->holder, party->owner, LONGEST_TEXT) == 0;
}

static void set_since(struct row *row, const struct board_party *party, bool other, int64_t now)
{
	row->is_since_known = party->since_ms >= 0;
	if (row->is_since_known)
		row->held_at = now - party->since_ms;
	else if (other)
		row->held_at = now;
}

/* Fills in everything but the change; returns whether there is any that is worth showing. */
static bool set_row(struct row *row, const struct row_facts *facts, int64_t now)
{
	const struct board_party *first = facts->holders_listed > 0 ? facts->parties : &nobody;
	struct row before = *row;
	/* With several holders, another one may come first without any change of the expiry. */
	bool other = facts->holders <= 1 && before.holders <= 1 && !has_same_owner(row, first);
	if (other)
		row->pulse = (struct pulse){0};
	pulse_take(&row->pulse, &(struct pulse_beat){.server_ms = facts->server_ms,
	                                             .ttl_ms = facts->ttl_ms,
	                                             .lease_ms = first->lease_ms,
	                                             .held_ms = first->since_ms});
	set_since(row, first, other || row->change == 0, now);
	bool changed = set_holder(row, first);
	set_detail(row, facts, now);
	snprintf(row->kind, sizeof row->kind, "%s", facts->kind);
	row->server_ms = facts->server_ms;
	row->seen_at = now;
	row->token = facts->token;
	row->waiting = facts->waiting;
	row->pid = first->pid;
	row->levels = first->levels;
	row->holder_lease_ms = first->lease_ms;
	row->holders = (uint32_t)facts->holders;
	row->waiters = (uint32_t)facts->waiters;
	return changed || before.change == 0 || strcmp(before.kind, row->kind) != 0 ||
	       before.token != row->token || before.waiting != row->waiting ||
	       before.pid != row->pid || before.levels != row->levels ||
	       before.holders != row->holders || before.waiters != row->waiters ||
	       before.is_since_known != row->is_since_known ||
	       before.pulse.state != row->pulse.state ||
	       llabs(before.pulse.ends_ms - row->pulse.ends_ms) > 100;
}

void rows_see(struct rows *rows, const struct row_facts *facts, int64_t now)
{
	struct row *row = rows_find(rows, facts->name, facts->length);
	rows->server_ahead_ms = facts->server_ms - now;
	/* What the walk reports may be older than a later answer about the same lock. */
	if (row && row->change && facts->server_ms < row->server_ms) {
		row->walk = rows->walk;
		return;
	}
	if (!row)
		row = add_row(rows, facts->name, facts->length, now);
	else
		count_row(rows, row, false);
	if (!row)
		return;
	if (set_row(row, facts, now))
		row->change = ++rows->change;
	row->walk = rows->walk;
	count_row(rows, row, true);
}

/* ---- walks ---- */

void rows_begin_walk(struct rows *rows)
{
	rows->walk++;
}

void rows_end_walk(struct rows *rows)
{
	rows->is_cut = rows->n >= rows->most;
	for (size_t i = 0; i < rows->n_buckets; i++)
		for (struct row **at = &rows->buckets[i]; *at;)
			if ((*at)->walk != rows->walk)
				remove_at(rows, at);
			else
				at = &(*at)->next;
}

/* ---- what to ask for ---- */

static bool is_wanted(const struct row *row, int64_t now)
{
	return row->on_screen_until > now || row->detail_until > now;
}

typedef bool choose_fn(const struct rows *rows, const struct row *row, int64_t now);

static bool is_on_screen(const struct rows *rows, const struct row *row, int64_t now)
{
	(void)rows;
	return is_wanted(row, now);
}

static bool is_waited_for(const struct rows *rows, const struct row *row, int64_t now)
{
	(void)rows;
	return row_is_waited(row) && !is_wanted(row, now);
}

static bool may_be_at_risk(const struct rows *rows, const struct row *row, int64_t now)
{
	return pulse_is_due(&row->pulse, now + rows->server_ahead_ms) && !row_is_waited(row) &&
	       !is_wanted(row, now);
}

/* Begins at a bucket and goes round; returns where it stopped. */
static size_t choose(struct rows *rows, size_t from, int64_t now, choose_fn *wanted,
                     bool (*visit)(void *arg, struct row *row), void *arg)
{
	for (size_t i = 0; i < rows->n_buckets; i++) {
		size_t bucket = (from + i) & (rows->n_buckets - 1);
		for (struct row *row = rows->buckets[bucket]; row; row = row->next)
			if (!row->is_odd && wanted(rows, row, now) && !visit(arg, row))
				return bucket;
	}
	return from;
}

void rows_choose(struct rows *rows, int64_t now, bool (*visit)(void *arg, struct row *row),
                 void *arg)
{
	choose(rows, 0, now, is_on_screen, visit, arg);
	choose(rows, rows->next_due, now, is_waited_for, visit, arg);
	/* There may be more of these than can be asked for at once, so each time it continues. */
	rows->next_due = choose(rows, rows->next_due, now, may_be_at_risk, visit, arg);
}
