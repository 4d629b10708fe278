/* The screen of top: two lines about the server, the table, and a line at the bottom. */
#include "lock_page.h"
#include "top.h"

#include "cells.h"
#include "put.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_LINES    3 /* the server, the numbers, the titles of the columns */
#define FOOT_LINES    1
#define BAR_WIDTH     3
#define BAR_SIZE      (BAR_WIDTH * 3 + 4)
#define WIDEST_NAME   60
#define WIDEST_HOLDER 60

/* ---- the terminal ---- */

void screen_open(void)
{
	set_escdelay(25);
	initscr();
	cbreak();
	noecho();
	nonl();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	curs_set(0);
	put_start();
}

void screen_close(void)
{
	endwin();
}

void screen_forget(void)
{
	clearok(curscr, TRUE);
}

size_t screen_table_rows(void)
{
	int rows = LINES - HEAD_LINES - FOOT_LINES;
	return rows > 0 ? (size_t)rows : 0;
}

/* ---- the two lines about the server ---- */

static void draw_server(const struct board_summary *summary)
{
	char line[600], server[400], ping[48] = "";
	cells_format_server(summary, server, sizeof server);
	if (summary->ping_us >= 0)
		snprintf(ping, sizeof ping, "  ping %.1f ms", (double)summary->ping_us / 1000);
	snprintf(line, sizeof line, "holdfast %s  %s%s", hf_version(), server, ping);
	put_text(0, 0, COLS, PUT_BOLD, line);
}

/* Nothing else matters as long as the server does not answer. */
static bool draw_trouble(const struct board_summary *summary)
{
	char line[400], age[CELLS_SIZE], lost[BOARD_LOST_SIZE];
	if (summary->unreachable_ms <= 0)
		return false;
	char *why = cells_copy_plain(summary->why, strlen(summary->why));
	if (summary->unreachable_ms < 60000)
		snprintf(age, sizeof age, "%d s", (int)(summary->unreachable_ms / 1000));
	else
		cells_format_age(summary->unreachable_ms, age);
	snprintf(line, sizeof line, "%s unreachable for %s%s%s", board_name_lost(summary, lost),
	         age, why && *why ? ": " : "", why ? why : "");
	put_text(1, 0, COLS, PUT_BAD, line);
	free(why);
	return true;
}

static void draw_numbers(const struct top *top, const struct board_summary *summary)
{
	char line[700], counts[128], names[400], filter[80] = "";
	const char *pattern = top->options->pattern;
	char *plain = pattern ? cells_copy_plain(pattern, strlen(pattern)) : NULL;
	cells_format_counts(summary, counts, sizeof counts);
	cells_format_names(summary, plain, names, sizeof names);
	if (*top->filter)
		snprintf(filter, sizeof filter, "  filter: %zu", summary->matching);
	snprintf(line, sizeof line, "%s%s%s  %s%s", top->paused ? "PAUSED  " : "", counts, filter,
	         names, *summary->waits_refused ? "  waiters: the server refuses PUBSUB" : "");
	put_text(1, 0, COLS, summary->at_risk > 0 ? PUT_BAD : PUT_PLAIN, line);
	free(plain);
}

/* ---- the table ---- */

/* Where the columns are; 0 for those that the screen has no room for. */
struct layout {
	int name, kind, held, ttl, bar, wait, holder, state;
};

/* A column and the gap before it, or nothing if the screen is narrower than this. */
static int take_room(int *left, int narrowest, int width)
{
	if (COLS < narrowest)
		return 0;
	*left -= width + 1;
	return width;
}

static struct layout plan_columns(void)
{
	int left = COLS;
	struct layout to = {0};
	to.ttl = take_room(&left, 16, 6);
	to.wait = take_room(&left, 24, 5);
	to.state = take_room(&left, 32, COLS < 56 ? 8 : COLS < 110 ? 11 : 30);
	to.held = take_room(&left, 40, 7);
	to.bar = put_has_unicode() ? take_room(&left, 64, BAR_WIDTH) : 0;
	to.kind = take_room(&left, 76, 9);
	to.holder = COLS >= 56 ? (left - 1) / 2 : 0;
	to.name = left - to.holder - (to.holder > 0);
	/* On a wide screen, what belongs together stays together. */
	to.name = to.name < WIDEST_NAME ? to.name : WIDEST_NAME;
	to.holder = to.holder < WIDEST_HOLDER ? to.holder : WIDEST_HOLDER;
	return to;
}

/* How much of the lease is left, in eighths of a column. */
static void format_bar(const struct board_row *row, char text[BAR_SIZE])
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	*text = 0;
	if (row->ttl_ms >= 0 && row->lease_ms > 0) {
		int64_t parts = row->ttl_ms * BAR_WIDTH * 8 / row->lease_ms;
		parts = parts > BAR_WIDTH * 8 ? BAR_WIDTH * 8 : parts;
		for (int i = 0; i < parts / 8; i++)
			strcat(text, "█");
		strcat(text, eighths[parts % 8]);
	}
}

static const char *title_of(const struct top *top, enum board_order order, const char *title,
                            char ret_text[32])
{
	snprintf(ret_text, 32, "%s%s", title,
	         top->order != order ? ""
	         : put_has_unicode() ? "▾"
	                             : "*");
	return ret_text;
}

/* Writes the next cell of a line, if its column has room. */
static void put_cell(int y, int *x, int width, enum put_style style, const char *text)
{
	put_text(y, *x, width, style, text);
	*x += width > 0 ? width + 1 : 0;
}

static void put_number(int y, int *x, int width, enum put_style style, const char *text)
{
	put_right(y, *x, width, style, text);
	*x += width > 0 ? width + 1 : 0;
}

static void draw_titles(const struct top *top, const struct layout *to)
{
	char text[32];
	int y = HEAD_LINES - 1, x = 0;
	put_text(y, 0, COLS, PUT_BAR, "");
	put_cell(y, &x, to->name, PUT_BAR, title_of(top, BOARD_BY_NAME, "NAME", text));
	put_cell(y, &x, to->kind, PUT_BAR, "KIND");
	put_number(y, &x, to->held, PUT_BAR, title_of(top, BOARD_BY_HELD, "HELD", text));
	put_number(y, &x, to->ttl, PUT_BAR, title_of(top, BOARD_BY_TTL, "TTL", text));
	put_cell(y, &x, to->bar, PUT_BAR, "");
	put_number(y, &x, to->wait, PUT_BAR, title_of(top, BOARD_BY_WAITING, "WAIT", text));
	put_cell(y, &x, to->holder, PUT_BAR, "HOLDER");
	put_cell(y, &x, to->state, PUT_BAR, "STATE");
}

static enum put_style style_of_state(const struct board_row *row)
{
	switch (row->state) {
	case BOARD_AT_RISK: return PUT_BAD;
	case BOARD_FREE:
	case BOARD_ENDLESS:
	case BOARD_HELD: return PUT_DIM;
	default: return PUT_PLAIN;
	}
}

static void draw_row(int y, const struct layout *to, const struct board_row *row, bool selected)
{
	struct cells cells;
	char bar[BAR_SIZE];
	enum put_style plain = selected ? PUT_SELECTED : PUT_PLAIN;
	enum put_style waited = selected ? PUT_SELECTED : row->is_waited ? PUT_WAITED : PUT_PLAIN;
	enum put_style state = selected ? PUT_SELECTED : style_of_state(row);
	int x = 0;
	put_text(y, 0, COLS, plain, "");
	if (cells_fill(row, &cells)) {
		put_cell(y, &x, to->name, waited, cells.name);
		put_cell(y, &x, to->kind, plain, cells.kind);
		put_number(y, &x, to->held, plain, cells.held);
		put_number(y, &x, to->ttl, plain, cells.ttl);
		format_bar(row, bar);
		put_cell(y, &x, to->bar, state, bar);
		put_number(y, &x, to->wait, waited, cells.waiting);
		put_cell(y, &x, to->holder, plain, cells.holder);
		put_cell(y, &x, to->state, state, cells.state);
	}
	cells_free(&cells);
}

static void draw_table(const struct top *top)
{
	struct layout to = plan_columns();
	size_t rows = screen_table_rows();
	draw_titles(top, &to);
	for (size_t i = 0; i < rows && i < top->shown.n; i++)
		draw_row(HEAD_LINES + (int)i, &to, &top->shown.rows[i],
		         top->first + i == top->selected);
	if (top->shown.n == 0)
		put_text(HEAD_LINES + 1, 2, COLS - 2, PUT_DIM,
		         *top->filter                          ? "No name contains the filter."
		         : top->shown.summary.walk_age_ms >= 0 ? "No locks."
		                                               : "Looking for locks.");
}

/* ---- keys ---- */

static void draw_keys(void)
{
	static const char *const lines[] = {
		"Keys",
		"",
		"  Up Down PgUp PgDn Home End   select a lock",
		"  Enter    all about the lock: every holder and waiter, and its history",
		"  /        show only names that contain a text; Esc shows all again",
		"  s F6     next order: need, name, held, ttl, waiting",
		"  p        pause, and continue",
		"  u        take the lock away from its holder",
		"  r        ask its holder to release it (ZooKeeper)",
		"  q        quit",
		"",
		"Order need: locks with waiters first, then those at risk, then the oldest",
		"",
		"renewing     its holder renews the lease",
		"fixed lease  nobody has renewed it, and half of its lease has passed",
		"AT RISK      it used to be renewed, and less than a third of its lease is left",
		"no expiry    it lasts until it is released, or as long as a ZooKeeper session",
		"free         nobody holds it, but somebody is next in its queue",
		"",
		"HELD with >  how long is not known, but at least as long as top has seen it",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		put_text((int)i + 1, 1, COLS - 1, i == 0 ? PUT_BOLD : PUT_PLAIN, lines[i]);
}

/* ---- the bottom ---- */

static void draw_input(int y, const char *label, const char *input)
{
	char *plain = cells_copy_plain(input, strlen(input));
	const char *shown = plain ? plain : "";
	int room = COLS - put_width(label) - 1;
	/* The end is what one wants to see while typing. */
	while (put_width(shown) > room && *shown)
		shown += put_fit(shown, 1) ? put_fit(shown, 1) : put_fit(shown, 2);
	put_text(y, 0, COLS, PUT_BOLD, label);
	put_text(y, put_width(label), room, PUT_PLAIN, shown);
	move(y, put_width(label) + put_width(shown));
	curs_set(1);
	free(plain);
}

/* What is about to be done, to which lock. */
static void draw_target(const struct top *top, const char *question)
{
	char line[TOP_INPUT_SIZE * 4];
	char *name = cells_copy_plain(top->target.bytes, top->target.length);
	const struct board_row *row = NULL;
	for (size_t i = 0; i < top->shown.n; i++)
		if (top->shown.rows[i].length == top->target.length &&
		    memcmp(top->shown.rows[i].name, top->target.bytes, top->target.length) == 0)
			row = &top->shown.rows[i];
	char *holder = row ? cells_describe_party(&row->holder) : NULL;
	snprintf(line, sizeof line, "%.2000s  held by %.300s, %zu waiting", name ? name : "",
	         holder && *holder ? holder : "nobody",
	         row && row->waiting > 0 ? (size_t)row->waiting
	         : row                   ? row->waiters
	                                 : 0);
	put_text(LINES - 3, 0, COLS, PUT_BAD, question);
	put_text(LINES - 2, 0, COLS, PUT_PLAIN, line);
	free(name);
	free(holder);
}

static void draw_hints(const struct top *top)
{
	char line[200];
	const char *actions = top->options->read_only ? ""
	                      : top->zookeeper        ? "  u unlock  r revoke"
	                                              : "  u unlock";
	if (top->page == TOP_LOCK)
		snprintf(line, sizeof line, "Esc back  PgDn more%s  q quit", actions);
	else if (top->page == TOP_KEYS)
		snprintf(line, sizeof line, "any key: back");
	else
		snprintf(line, sizeof line,
		         "? keys  / filter%s%.40s  s order: %s  p %s  Enter more%s  q quit",
		         *top->filter ? ": " : "", top->filter, top_order_words[top->order],
		         top->paused ? "continue" : "pause", actions);
	put_text(LINES - 1, 0, COLS, PUT_BAR, line);
}

static void draw_foot(const struct top *top)
{
	curs_set(0);
	switch (top->prompt) {
	case TOP_FILTER: draw_input(LINES - 1, "Names that contain: ", top->input); return;
	case TOP_UNLOCK:
		draw_target(top, "Take this lock away? Its holder may continue without it for a "
		                 "while.");
		draw_input(LINES - 1, "Type the whole name, or Esc: ", top->input);
		return;
	case TOP_REVOKE:
		draw_target(top, "Ask the holder to release this lock?");
		draw_input(LINES - 1, "y or n: ", "");
		return;
	case TOP_NO_PROMPT: break;
	}
	if (*top->message)
		put_text(LINES - 1, 0, COLS, top->message_is_bad ? PUT_BAD : PUT_BOLD,
		         top->message);
	else
		draw_hints(top);
}

void screen_draw(struct top *top)
{
	const struct board_summary *summary = &top->shown.summary;
	erase();
	if (top->page == TOP_KEYS) {
		draw_keys();
	} else {
		draw_server(summary);
		if (!draw_trouble(summary))
			draw_numbers(top, summary);
		if (top->page == TOP_LOCK)
			lock_page_draw(top, HEAD_LINES - 1, LINES - FOOT_LINES);
		else
			draw_table(top);
	}
	draw_foot(top);
	refresh();
}
