/* A table of text in columns: it is printed when all of its rows are known. */
#include "table.h"

#include <stdio.h>
#include <string.h>

#define MOST_COLUMNS 16

static size_t count_characters(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void widen(size_t *width, const char *text)
{
	size_t own = count_characters(text);
	if (*width < own)
		*width = own;
}

static void print_cell(const struct table_column *column, size_t width, bool last, const char *text)
{
	size_t used = count_characters(text);
	int pad = used < width ? (int)(width - used) : 0;
	if (column->right)
		printf("%*s%s%c", pad, "", text, last ? '\n' : ' ');
	else if (last)
		printf("%s\n", text);
	else
		printf("%s%*s ", text, pad, "");
}

void table_write_cell(FILE *out, const char *text, size_t length)
{
	cli_write_plain(out, length ? text : "-", length ? length : 1);
	putc(0, out);
}

void table_print_row(const struct table_column *columns, size_t count, const size_t *widths,
                     const char *cells)
{
	for (size_t c = 0; c < count; c++, cells += strlen(cells) + 1)
		print_cell(&columns[c], widths[c], c + 1 == count, cells);
}

void table_print(const struct table_column *columns, size_t count, const char *const *rows,
                 size_t n)
{
	size_t width[MOST_COLUMNS] = {0};
	for (size_t c = 0; c < count; c++)
		widen(&width[c], columns[c].title);
	for (size_t r = 0; r < n; r++) {
		const char *cell = rows[r];
		for (size_t c = 0; c < count; c++, cell += strlen(cell) + 1)
			widen(&width[c], cell);
	}
	for (size_t c = 0; c < count && n > 0; c++)
		print_cell(&columns[c], width[c], c + 1 == count, columns[c].title);
	for (size_t r = 0; r < n; r++)
		table_print_row(columns, count, width, rows[r]);
}
