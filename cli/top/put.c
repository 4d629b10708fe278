/* Text on the screen: exactly as wide as its place, whatever it contains. */
#include "put.h"

#include <curses.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define MOST_COLUMNS 1024

static bool has_unicode, has_colours;

void put_start(void)
{
	const char *no = getenv("NO_COLOR");
	has_unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	has_colours = !(no && *no) && has_colors();
	if (!has_colours)
		return;
	start_color();
	use_default_colors();
	init_pair(PUT_BAD, COLOR_RED, -1);
	init_pair(PUT_WAITED, COLOR_YELLOW, -1);
}

bool put_has_unicode(void)
{
	return has_unicode;
}

static attr_t attributes_of(enum put_style style)
{
	attr_t colour = has_colours ? (attr_t)COLOR_PAIR(style) : A_NORMAL;
	switch (style) {
	case PUT_PLAIN: return A_NORMAL;
	case PUT_BOLD: return A_BOLD;
	case PUT_DIM: return A_DIM;
	case PUT_BAR:
	case PUT_SELECTED: return A_REVERSE;
	case PUT_BAD: return A_BOLD | colour;
	case PUT_WAITED: return has_colours ? colour : A_BOLD;
	}
	return A_NORMAL;
}

/* The next character, and how wide it is. What the terminal cannot show becomes a question mark. */
static size_t next_character(const char *text, wchar_t *ret_character, int *ret_width)
{
	mbstate_t state;
	memset(&state, 0, sizeof state);
	size_t length = mbrtowc(ret_character, text, strlen(text), &state);
	bool good = length != (size_t)-1 && length != (size_t)-2 && length > 0;
	*ret_width = good ? wcwidth(*ret_character) : -1;
	if (*ret_width < 1) {
		*ret_character = L'?';
		*ret_width = 1;
	}
	return good ? length : 1;
}

int put_width(const char *text)
{
	int width = 0;
	while (*text) {
		wchar_t character;
		int own;
		text += next_character(text, &character, &own);
		width += own;
	}
	return width;
}

size_t put_fit(const char *text, int width)
{
	const char *at = text;
	while (*at) {
		wchar_t character;
		int own;
		size_t length = next_character(at, &character, &own);
		if (own > width)
			break;
		width -= own;
		at += length;
	}
	return (size_t)(at - text);
}

/* Copies what fits; the last column says if there is more. Returns how many columns are used. */
static int fill(wchar_t *cells, size_t *ret_n, const char *text, int width)
{
	bool is_cut = put_width(text) > width;
	int room = is_cut ? width - 1 : width, used = 0;
	size_t n = 0;
	while (*text) {
		wchar_t character;
		int own;
		size_t length = next_character(text, &character, &own);
		if (used + own > room)
			break;
		cells[n++] = character;
		used += own;
		text += length;
	}
	if (is_cut && width > 0) {
		cells[n++] = has_unicode ? L'…' : L'~';
		used++;
	}
	*ret_n = n;
	return used;
}

static void put(int y, int x, int width, enum put_style style, const char *text, bool right)
{
	wchar_t cells[MOST_COLUMNS + 1];
	size_t n;
	if (y < 0 || y >= LINES || x >= COLS || width <= 0)
		return;
	width = x + width > COLS ? COLS - x : width;
	width = width < MOST_COLUMNS ? width : MOST_COLUMNS;
	int used = fill(cells, &n, text, width);
	attr_t attributes = attributes_of(style);
	attron(attributes);
	mvhline(y, x, ' ' | attributes, width);
	mvaddnwstr(y, right ? x + width - used : x, cells, (int)n);
	attroff(attributes);
}

void put_text(int y, int x, int width, enum put_style style, const char *text)
{
	put(y, x, width, style, text, false);
}

void put_right(int y, int x, int width, enum put_style style, const char *text)
{
	put(y, x, width, style, text, true);
}
