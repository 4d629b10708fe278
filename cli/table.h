/* A table of text in columns: it is printed when all of its rows are known. */
#ifndef HF_CLI_TABLE_H
#define HF_CLI_TABLE_H

#include "cli.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table_column {
	const char *title;
	bool right; /* aligned */
};

/* Writes a cell with its NUL: text from others, made safe to print; "-" stands for no text. */
void table_write_cell(FILE *out, const char *text, size_t length);
/* Prints one row with columns of these widths; a longer cell is printed as it is. */
void table_print_row(const struct table_column *columns, size_t count, const size_t *widths,
                     const char *cells);
/* The rows belong to the caller: the cells of each row, every one with its NUL. */
void table_print(const struct table_column *columns, size_t count, const char *const *rows,
                 size_t n);

#endif
