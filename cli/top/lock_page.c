/* The page of one lock: everything that is known about it. */
#include "lock_page.h"

#include "cells.h"
#include "history.h"
#include "put.h"

#include <curses.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Lines are counted as they come, and only those on the screen are drawn. */
struct page {
	struct top *top;
	int from, to; /* lines of the screen */
	size_t line;  /* the number of the next line */
	size_t holds; /* of the history, so far */
};

static void put_line(struct page *page, enum put_style style, const char *text)
{
	size_t line = page->line++;
	if (line < page->top->scrolled)
		return;
	size_t y = (size_t)page->from + line - page->top->scrolled;
	if (y < (size_t)page->to)
		put_text((int)y, 1, COLS - 2, style, text);
}

__attribute__((format(printf, 3, 4))) static void
print_line(struct page *page, enum put_style style, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) >= 0)
		put_line(page, style, text);
	va_end(args);
	free(text);
}

/* A name can be longer than a line, and all of it has to be typed to unlock it. */
static void put_name(struct page *page, const struct top_name *name)
{
	char *plain = cells_copy_plain(name->bytes, name->length);
	for (const char *at = plain; at && *at;) {
		size_t fits = put_fit(at, COLS - 2);
		print_line(page, PUT_BOLD, "%.*s", (int)fits, at);
		at += fits ? fits : strlen(at);
	}
	free(plain);
}

static void put_facts(struct page *page, const struct board_row *row)
{
	char age[CELLS_SIZE], left[CELLS_SIZE], lease[CELLS_SIZE];
	struct cells cells;
	if (cells_fill(row, &cells)) {
		print_line(page, PUT_PLAIN, "Kind     %s", cells.kind);
		print_line(page, row->state == BOARD_AT_RISK ? PUT_BAD : PUT_PLAIN, "State    %s",
		           cells.state);
		if (row->held_ms >= 0)
			print_line(page, PUT_PLAIN, "Held     %s%s%s",
			           row->held_longer ? "for at least " : "",
			           cells_format_age(row->held_ms, age),
			           row->held_longer ? "; its start is not known" : "");
		if (row->ttl_ms >= 0)
			print_line(page, PUT_PLAIN, "TTL      %s of %s",
			           cells_format_left(row->ttl_ms, left),
			           cells_format_left(row->lease_ms, lease));
		if (row->token > 0)
			print_line(page, PUT_PLAIN, "Token    %" PRId64, row->token);
		if (row->waiting >= 0)
			print_line(page, row->is_waited ? PUT_WAITED : PUT_PLAIN,
			           "Waiting  %" PRId64 " client%s", row->waiting,
			           row->waiting == 1 ? "" : "s");
	}
	cells_free(&cells);
}

static void put_party(struct page *page, const struct board_party *party, size_t number)
{
	char age[CELLS_SIZE], levels[32] = "";
	char *who = cells_describe_party(party);
	char *owner = cells_copy_plain(party->owner, strlen(party->owner));
	if (party->levels > 1)
		snprintf(levels, sizeof levels, "  %" PRId64 " levels", party->levels);
	print_line(page, PUT_PLAIN, "%4zu  %7s  %s%s%s%s", number,
	           cells_format_age(party->since_ms, age), who ? who : "", levels,
	           *party->host && owner ? "  " : "", *party->host && owner ? owner : "");
	free(who);
	free(owner);
}

static void put_parties(struct page *page, const char *title, const char *column,
                        const struct board_party *parties, size_t listed, size_t n)
{
	if (n == 0)
		return;
	put_line(page, PUT_PLAIN, "");
	print_line(page, PUT_BOLD, "%4zu  %7s  %s", n, column, title);
	for (size_t i = 0; i < listed; i++)
		put_party(page, &parties[i], i + 1);
	if (n > listed && listed > 0)
		print_line(page, PUT_DIM, "      and %zu more", n - listed);
}

/* ---- what was before ---- */

static const char *mark_most(const struct past_hold *hold, const char *age,
                             char ret_text[CELLS_SIZE + 2])
{
	snprintf(ret_text, CELLS_SIZE + 2, "%s%s", hold->is_inferred ? "<=" : "", age);
	return ret_text;
}

/* A hold that has not ended is as old as its beginning, and other ends are some time ago. */
static void put_hold(void *arg, const struct past_hold *hold)
{
	struct page *page = arg;
	int64_t now = page->top->shown.summary.server_ms, held_ms = hold->held_ms;
	char ended[CELLS_SIZE], held[CELLS_SIZE], waited[CELLS_SIZE], most[CELLS_SIZE + 2];
	struct board_party party = {
		.owner = hold->owner, .host = hold->host, .text = hold->text, .pid = hold->pid};
	char *who = cells_describe_party(&party);
	if (hold->is_held && hold->began_at > 0)
		held_ms = now > hold->began_at ? now - hold->began_at : 0;
	int64_t ago = hold->ended_at > 0 ? now - hold->ended_at : -1;
	cells_format_age(hold->ended_at > 0 && ago < 0 ? 0 : ago, ended);
	mark_most(hold, cells_format_age(held_ms, held), most);
	print_line(page, hold->is_held ? PUT_PLAIN : PUT_DIM, "%4zu  %9s  %8s  %-8s  %6s  %s",
	           ++page->holds, ended, most, hold->end, cells_format_age(hold->waited_ms, waited),
	           who ? who : "");
	free(who);
}

static void put_history(struct page *page)
{
	struct history *history = page->top->history;
	const struct top_name *name = &page->top->name;
	struct past_summary summary = history_visit(history, name, NULL, NULL);
	char *why = cells_copy_plain(summary.why, strlen(summary.why));
	if (summary.n > 0 || summary.is_read || *summary.why)
		put_line(page, PUT_PLAIN, "");
	if (summary.n > 0) {
		print_line(page, PUT_BOLD, "%4zu  %9s  %8s  %-8s  %6s  %s", summary.n, "ENDED AGO",
		           "HELD", "HOW", "WAITED", "HISTORY");
		(void)history_visit(history, name, put_hold, page);
		if (summary.left_out > 0)
			print_line(page, PUT_DIM, "      and %zu earlier", summary.left_out);
	}
	if (*summary.why)
		print_line(page, PUT_DIM, "History: %s", why ? why : "");
	else if (summary.is_read && summary.n == 0)
		put_line(page, PUT_DIM,
		         "No history: clients keep one if their URL says history=yes.");
	free(why);
}

void lock_page_draw(struct top *top, int from, int to)
{
	struct page page = {.top = top, .from = from, .to = to};
	const struct board_row *row = top->shown.n > 0 ? top->shown.rows : NULL;
	put_name(&page, &top->name);
	put_line(&page, PUT_PLAIN, "");
	if (!row) {
		put_line(&page, PUT_PLAIN,
		         "Nobody holds this lock, and nobody is known to wait for it.");
	} else {
		put_facts(&page, row);
		put_parties(&page, "HOLDERS", "HELD", row->parties, row->holders_listed,
		            row->holders);
		put_parties(&page, "WAITERS", "WAITED",
		            row->parties ? row->parties + row->holders_listed : NULL,
		            row->waiters_listed, row->waiters);
	}
	put_history(&page);
	top->lines = page.line;
}
