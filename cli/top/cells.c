/* What is shown of a row, as text that a terminal shows and does nothing else. */
#include "cells.h"

#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SECOND   INT64_C(1000)
#define MINUTE   (60 * SECOND)
#define HOUR     (60 * MINUTE)
#define DAY      (24 * HOUR)
#define UUID     36 /* characters */
#define OLD_MS   5000
#define HEAD_LEN 8 /* of an owner without a note */

char *cells_copy_plain(const char *text, size_t length)
{
	char *plain = NULL;
	size_t size;
	FILE *out = open_memstream(&plain, &size);
	if (!out)
		return NULL;
	cli_write_plain(out, text, length);
	if (fclose(out) == 0)
		return plain;
	free(plain);
	return NULL;
}

/* ---- times ---- */

static const char *format_long(int64_t ms, char ret_text[CELLS_SIZE])
{
	if (ms < HOUR)
		snprintf(ret_text, CELLS_SIZE, "%" PRId64 "m%02" PRId64 "s", ms / MINUTE,
		         ms % MINUTE / SECOND);
	else if (ms < DAY)
		snprintf(ret_text, CELLS_SIZE, "%" PRId64 "h%02" PRId64 "m", ms / HOUR,
		         ms % HOUR / MINUTE);
	else
		snprintf(ret_text, CELLS_SIZE, "%" PRId64 "d%02" PRId64 "h", ms / DAY,
		         ms % DAY / HOUR);
	return ret_text;
}

/* Rounded down, so that nothing seems to last longer than it does. */
static const char *format_tenths(int64_t ms, char ret_text[CELLS_SIZE])
{
	snprintf(ret_text, CELLS_SIZE, "%" PRId64 ".%" PRId64 "s", ms / SECOND, ms % SECOND / 100);
	return ret_text;
}

const char *cells_format_age(int64_t ms, char ret_text[CELLS_SIZE])
{
	if (ms < 0)
		return strcpy(ret_text, "-");
	if (ms < 10 * SECOND)
		return format_tenths(ms, ret_text);
	if (ms >= MINUTE)
		return format_long(ms, ret_text);
	snprintf(ret_text, CELLS_SIZE, "%" PRId64 "s", ms / SECOND);
	return ret_text;
}

const char *cells_format_left(int64_t ms, char ret_text[CELLS_SIZE])
{
	if (ms < 0)
		return strcpy(ret_text, "-");
	return ms < MINUTE ? format_tenths(ms, ret_text) : format_long(ms, ret_text);
}

/* ---- a row ---- */

/* An owner is a UUID and a number; the beginning distinguishes two of them. */
static char *shorten_owner(const char *owner)
{
	size_t length = strlen(owner);
	char *text = NULL;
	if (length > UUID && owner[UUID] == ':') {
		if (asprintf(&text, "%.*s..%s", HEAD_LEN, owner, owner + UUID) < 0)
			return NULL;
		char *plain = cells_copy_plain(text, strlen(text));
		free(text);
		return plain;
	}
	return cells_copy_plain(owner, length);
}

char *cells_describe_party(const struct board_party *party)
{
	char *text = NULL;
	if (!*party->host)
		return shorten_owner(party->owner);
	if (asprintf(&text, "%s %" PRId64 "%s%s", party->host, party->pid, *party->text ? " " : "",
	             party->text) < 0)
		return NULL;
	char *plain = cells_copy_plain(text, strlen(text));
	free(text);
	return plain;
}

static char *describe_holders(const struct board_row *row)
{
	char *first = cells_describe_party(&row->holder), *all = NULL;
	if (!first || row->holders <= 1)
		return first;
	if (asprintf(&all, "%s (+%zu)", first, row->holders - 1) < 0)
		all = NULL;
	free(first);
	return all;
}

static char *describe_state(const struct board_row *row)
{
	char since[CELLS_SIZE], *text = NULL;
	int n;
	if (row->age_ms > OLD_MS)
		n = asprintf(&text, "%s, %s ago", board_state_word(row->state),
		             cells_format_age(row->age_ms, since));
	else if (row->state == BOARD_AT_RISK)
		n = asprintf(&text, "%s, not renewed for %s", board_state_word(row->state),
		             cells_format_age(row->lease_ms - row->ttl_ms, since));
	else
		n = asprintf(&text, "%s", board_state_word(row->state));
	return n < 0 ? NULL : text;
}

/* Known clients may be fewer than known waiters, of which a client can have several. */
static void format_waiting(const struct board_row *row, char ret_text[CELLS_SIZE])
{
	if (row->waiting < 0 && row->waiters == 0)
		strcpy(ret_text, "-");
	else if (row->waiting > (int64_t)row->waiters)
		snprintf(ret_text, CELLS_SIZE, "%" PRId64, row->waiting);
	else
		snprintf(ret_text, CELLS_SIZE, "%zu", row->waiters);
}

bool cells_fill(const struct board_row *row, struct cells *ret_cells)
{
	struct cells cells = {
		.name = cells_copy_plain(row->name, row->length),
		.kind = cells_copy_plain(row->kind, strlen(row->kind)),
		.holder = describe_holders(row),
		.state = describe_state(row),
	};
	char age[CELLS_SIZE];
	bool more = row->held_longer && row->held_ms >= 0;
	/* "At least 0 s" says nothing. */
	int64_t held_ms = more && row->held_ms < SECOND ? -1 : row->held_ms;
	snprintf(cells.held, sizeof cells.held, "%s%.22s", more && held_ms >= 0 ? ">" : "",
	         cells_format_age(held_ms, age));
	cells_format_left(row->ttl_ms, cells.ttl);
	format_waiting(row, cells.waiting);
	*ret_cells = cells;
	return cells.name && cells.kind && cells.holder && cells.state;
}

void cells_free(struct cells *cells)
{
	free(cells->name);
	free(cells->kind);
	free(cells->holder);
	free(cells->state);
}

/* ---- all of it ---- */

void cells_format_counts(const struct board_summary *summary, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%zu held  %zu waited for  %zu at risk", summary->held,
	         summary->waited, summary->at_risk);
}

void cells_format_names(const struct board_summary *summary, const char *pattern, char *ret_text,
                        size_t size)
{
	char age[CELLS_SIZE];
	int64_t old = summary->walk_age_ms;
	if (*summary->walk_refused)
		snprintf(ret_text, size,
		         "names: only those waited for, because the server refuses SCAN");
	else if (old < 0)
		snprintf(ret_text, size, "names: still looking");
	else
		snprintf(ret_text, size, "names: %s%s%s%s",
		         summary->is_cut ? "too many to show all"
		         : pattern       ? pattern
		                         : "all",
		         old < OLD_MS ? "" : ", ", old < OLD_MS ? "" : cells_format_age(old, age),
		         old < OLD_MS ? "" : " old");
}

void cells_format_server(const struct board_summary *summary, char *ret_text, size_t size)
{
	const char *scheme = strstr(summary->address, "://");
	const char *address = scheme ? scheme + 3 : summary->address;
	char *plain = cells_copy_plain(address, strlen(address));
	char *database = plain ? strrchr(plain, '/') : NULL;
	if (database && database != plain && strcmp(database, "/0") == 0)
		*database = 0;
	snprintf(ret_text, size, "%s%s%s", summary->server, *summary->server ? " " : "",
	         plain ? plain : "");
	free(plain);
}
