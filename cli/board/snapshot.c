/* Copies of rows in the order in which they are shown. */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- order ---- */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_names(const struct row *a, const struct row *b)
{
	size_t length = a->length < b->length ? a->length : b->length;
	int order = memcmp(a->name, b->name, length);
	return order ? order : compare_numbers(a->length, b->length);
}

static int64_t ttl_key(const struct row *row)
{
	return row->pulse.ends_ms > 0 ? row->pulse.ends_ms : INT64_MAX;
}

static int compare_ages(const struct row *a, const struct row *b)
{
	int order = compare_numbers(b->holders > 0, a->holders > 0);
	return order ? order : compare_numbers(a->held_at, b->held_at);
}

static int compare_needs(const struct row *a, const struct row *b)
{
	int order = compare_numbers(row_is_waited(b), row_is_waited(a));
	if (!order)
		order = compare_numbers(b->pulse.state == BOARD_AT_RISK,
		                        a->pulse.state == BOARD_AT_RISK);
	return order ? order : compare_ages(a, b);
}

static int64_t waiting_key(const struct row *row)
{
	return row->waiting > (int64_t)row->waiters ? row->waiting : (int64_t)row->waiters;
}

static int compare_rows(enum board_order by, const struct row *a, const struct row *b)
{
	int order = 0;
	switch (by) {
	case BOARD_BY_NEED: order = compare_needs(a, b); break;
	case BOARD_BY_NAME: break;
	case BOARD_BY_HELD: order = compare_ages(a, b); break;
	case BOARD_BY_TTL: order = compare_numbers(ttl_key(a), ttl_key(b)); break;
	case BOARD_BY_WAITING: order = compare_numbers(waiting_key(b), waiting_key(a)); break;
	}
	return order ? order : compare_names(a, b);
}

/* ---- the first rows of all: a heap whose root is the last one of them ---- */

struct heap {
	enum board_order by;
	struct row **rows;
	size_t n, most;
};

static void sift_down(struct heap *heap, size_t at)
{
	for (;;) {
		size_t last = at;
		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->n; child++)
			if (compare_rows(heap->by, heap->rows[child], heap->rows[last]) > 0)
				last = child;
		if (last == at)
			return;
		struct row *swap = heap->rows[at];
		heap->rows[at] = heap->rows[last];
		heap->rows[last] = swap;
		at = last;
	}
}

static void offer(struct heap *heap, struct row *row)
{
	if (heap->n < heap->most) {
		heap->rows[heap->n++] = row;
		if (heap->n == heap->most)
			for (size_t i = heap->n / 2 + 1; i-- > 0;)
				sift_down(heap, i);
	} else if (heap->most > 0 && compare_rows(heap->by, row, heap->rows[0]) < 0) {
		heap->rows[0] = row;
		sift_down(heap, 0);
	}
}

/* The heap becomes an array in order. */
static void sort(struct heap *heap)
{
	size_t n = heap->n;
	if (n < heap->most)
		for (size_t i = n / 2 + 1; i-- > 0;)
			sift_down(heap, i);
	while (heap->n > 1) {
		struct row *last = heap->rows[0];
		heap->rows[0] = heap->rows[--heap->n];
		heap->rows[heap->n] = last;
		sift_down(heap, 0);
	}
	heap->n = n;
}

/* ---- choice ---- */

static bool contains(const struct row *row, const char *text)
{
	size_t length = strlen(text);
	for (size_t i = 0; i + length <= row->length; i++)
		if (strncasecmp(row->name + i, text, length) == 0)
			return true;
	return false;
}

static bool matches(const struct row *row, const char *filter)
{
	return row->change > 0 && (!filter || !*filter || contains(row, filter));
}

/* Counts the rows that match, and puts the first ones of those that are wanted into the heap. */
static size_t choose(const struct rows *rows, const struct board_view *view, uint64_t after,
                     struct heap *heap)
{
	size_t matching = 0;
	for (size_t i = 0; i < rows->n_buckets; i++)
		for (struct row *row = rows->buckets[i]; row; row = row->next)
			if (matches(row, view->filter)) {
				matching++;
				if (row->change > after)
					offer(heap, row);
			}
	return matching;
}

/* ---- copies ---- */

static const char *text_after(const char *text)
{
	return text + strlen(text) + 1;
}

static size_t size_of_parties(const struct row *row)
{
	size_t n = row->holders_listed + row->waiters_listed, size = n * sizeof(struct board_party);
	const struct board_party *party = row->detail;
	for (size_t i = 0; i < n; i++)
		size += strlen(party[i].owner) + strlen(party[i].host) + strlen(party[i].text) + 3;
	return size;
}

/* Parties must be aligned; all texts follow them. */
static size_t size_of_texts(const struct row *row)
{
	const char *host = text_after(row->holder), *text = text_after(host);
	return row->length + 1u + (size_t)(text_after(text) - row->holder) + strlen(row->kind) + 1;
}

static const char *keep(char **at, const char *text, size_t length)
{
	char *kept = *at;
	memcpy(kept, text, length);
	kept[length] = 0;
	*at += length + 1;
	return kept;
}

static const char *keep_text(char **at, const char *text)
{
	return keep(at, text, strlen(text));
}

static int64_t age_after(int64_t age, int64_t passed)
{
	return age < 0 ? -1 : age + passed;
}

static void copy_parties(const struct row *row, struct board_party *to, char **at, int64_t now)
{
	const struct board_party *from = row->detail;
	for (size_t i = 0; i < row->holders_listed + row->waiters_listed; i++) {
		to[i] = from[i];
		to[i].owner = keep_text(at, from[i].owner);
		to[i].host = keep_text(at, from[i].host);
		to[i].text = keep_text(at, from[i].text);
		to[i].since_ms = age_after(from[i].since_ms, now - row->seen_at);
	}
}

static int64_t ttl_of(const struct rows *rows, const struct row *row, int64_t now)
{
	if (row->pulse.state == BOARD_FREE)
		return -2;
	if (row->pulse.ends_ms <= 0)
		return -1;
	int64_t left = row->pulse.ends_ms - (now + rows->server_ahead_ms);
	return left > 0 ? left : 0;
}

static struct board_row copy_row(const struct rows *rows, const struct row *row, char **at,
                                 int64_t now)
{
	const char *host = text_after(row->holder);
	struct board_row to = {
		.name = keep(at, row->name, row->length),
		.length = row->length,
		.change = row->change,
		.kind = keep_text(at, row->kind),
		.state = row->pulse.state,
		.is_waited = row_is_waited(row),
		.waiting = row->waiting,
		.held_ms = row->holders > 0 ? now - row->held_at : -1,
		.held_longer = !row->is_since_known,
		.ttl_ms = ttl_of(rows, row, now),
		.lease_ms = row->pulse.lease_ms,
		.token = row->token,
		.age_ms = now - row->seen_at,
		.holders = row->holders,
		.waiters = row->waiters,
		.holder = {.pid = row->pid,
	                   .levels = row->levels,
	                   .since_ms = -1,
	                   .lease_ms = row->holder_lease_ms},
	};
	to.holder.owner = keep_text(at, row->holder);
	to.holder.host = keep_text(at, host);
	to.holder.text = keep_text(at, text_after(host));
	if (row->is_since_known)
		to.holder.since_ms = to.held_ms;
	return to;
}

/* The names that are gone since this change; counts them first if `to` is NULL. */
static size_t copy_gone(const struct rows *rows, uint64_t after, struct board_name *to, char **at)
{
	size_t n = 0, kept = rows->n_gone < ROWS_MOST_GONE ? (size_t)rows->n_gone : ROWS_MOST_GONE;
	for (size_t i = 0; after > 0 && i < kept; i++) {
		const struct row_gone *gone = &rows->gone[(rows->n_gone - 1 - i) % ROWS_MOST_GONE];
		if (gone->change <= after)
			break;
		if (rows_find(rows, gone->name, gone->length))
			continue; /* it is here again */
		if (to)
			to[n] = (struct board_name){keep(at, gone->name, gone->length),
			                            gone->length};
		else
			*at += gone->length + 1;
		n++;
	}
	return n;
}

/* Whether the ring no longer has every removal since this change. */
static bool is_too_late(const struct rows *rows, uint64_t after)
{
	return after > 0 && rows->n_gone > ROWS_MOST_GONE &&
	       rows->gone[rows->n_gone % ROWS_MOST_GONE].change > after;
}

static void summarize(const struct rows *rows, size_t matching, struct board_summary *summary)
{
	summary->change = rows->change;
	summary->rows = rows->n;
	summary->matching = matching;
	summary->held = rows->held;
	summary->waited = rows->waited;
	summary->at_risk = rows->at_risk;
	summary->is_cut = rows->is_cut;
}

/* Copies these rows, and what is gone, into one block. */
static int copy_all(struct rows *rows, struct row *const *chosen, size_t n, uint64_t after,
                    int64_t now, struct board_snapshot *to)
{
	size_t texts = 0, parties = 0;
	char *counter = NULL;
	for (size_t i = 0; i < n; i++) {
		texts += size_of_texts(chosen[i]);
		parties += chosen[i]->detail ? size_of_parties(chosen[i]) + 16 : 0;
	}
	to->n_gone = copy_gone(rows, after, NULL, &counter);
	size_t fixed = n * sizeof *to->rows + to->n_gone * sizeof *to->gone;
	to->memory = malloc(fixed + parties + texts + (size_t)(uintptr_t)counter + 1);
	if (!to->memory)
		return HF_ENOMEM;
	to->rows = to->memory;
	to->n = n;
	to->gone = (struct board_name *)(to->rows + n);
	char *at = (char *)(to->gone + to->n_gone);
	for (size_t i = 0; i < n; i++) {
		struct board_party *all = (struct board_party *)at;
		size_t listed = chosen[i]->holders_listed + chosen[i]->waiters_listed;
		if (chosen[i]->detail) {
			at += listed * sizeof *all;
			copy_parties(chosen[i], all, &at, now);
			at += -(uintptr_t)at % 16;
		}
		to->rows[i].parties = chosen[i]->detail ? all : NULL;
	}
	for (size_t i = 0; i < n; i++) {
		const struct board_party *all = to->rows[i].parties;
		to->rows[i] = copy_row(rows, chosen[i], &at, now);
		to->rows[i].parties = all;
		to->rows[i].holders_listed = all ? chosen[i]->holders_listed : 0;
		to->rows[i].waiters_listed = all ? chosen[i]->waiters_listed : 0;
	}
	(void)copy_gone(rows, after, to->gone, &at);
	return 0;
}

int snapshot_take(struct rows *rows, const struct board_view *view, int64_t now,
                  struct board_snapshot *ret_snapshot)
{
	bool whole = view->after == 0 || is_too_late(rows, view->after);
	size_t most = view->first + view->count;
	struct heap heap = {.by = view->order, .most = most < rows->n ? most : rows->n};
	heap.rows = malloc((heap.most + 1) * sizeof *heap.rows);
	if (!heap.rows)
		return HF_ENOMEM;
	memset(ret_snapshot, 0, sizeof *ret_snapshot);
	size_t matching = choose(rows, view, whole ? 0 : view->after, &heap);
	sort(&heap);
	size_t first = view->first < heap.n ? view->first : heap.n;
	for (size_t i = first; view->on_screen && i < heap.n; i++)
		heap.rows[i]->on_screen_until = now + SNAPSHOT_FRESH_MS;
	int rc = copy_all(rows, heap.rows + first, heap.n - first, whole ? 0 : view->after, now,
	                  ret_snapshot);
	ret_snapshot->is_whole = whole;
	summarize(rows, matching, &ret_snapshot->summary);
	free(heap.rows);
	return rc;
}

int snapshot_take_one(struct rows *rows, const char *name, size_t length, int64_t now,
                      struct board_snapshot *ret_snapshot)
{
	struct row *row = rows_find(rows, name, length);
	memset(ret_snapshot, 0, sizeof *ret_snapshot);
	if (row)
		row->detail_until = now + SNAPSHOT_FRESH_MS;
	int rc = copy_all(rows, &row, row ? 1 : 0, 0, now, ret_snapshot);
	ret_snapshot->is_whole = true;
	summarize(rows, rows->n, &ret_snapshot->summary);
	return rc;
}

void board_drop(struct board_snapshot *snapshot)
{
	free(snapshot->memory);
	memset(snapshot, 0, sizeof *snapshot);
}
