/* One snapshot as text, for pipes and for terminals that cannot show more. */
#include "top.h"

#include "cells.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

static const struct table_column columns[] = {
	{"NAME", false}, {"KIND", false},   {"HELD", true},   {"TTL", true},
	{"WAIT", true},  {"HOLDER", false}, {"STATE", false},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static void put_cell(FILE *out, const char *text)
{
	fputs(*text ? text : "-", out);
	putc(0, out);
}

/* The cells of a row, each with its NUL; NULL without memory. */
static char *join_cells(const struct board_row *row)
{
	struct cells cells;
	char *text = NULL;
	size_t size;
	FILE *out = cells_fill(row, &cells) ? open_memstream(&text, &size) : NULL;
	if (out) {
		const char *const all[COLUMNS] = {cells.name, cells.kind,    cells.held,
		                                  cells.ttl,  cells.waiting, cells.holder,
		                                  cells.state};
		for (size_t i = 0; i < COLUMNS; i++)
			put_cell(out, all[i]);
		if (fclose(out)) {
			free(text);
			text = NULL;
		}
	}
	cells_free(&cells);
	return text;
}

static void print_summary(const struct board_summary *summary, const char *pattern)
{
	char server[400], counts[128], names[400];
	char *plain = pattern ? cells_copy_plain(pattern, strlen(pattern)) : NULL;
	cells_format_server(summary, server, sizeof server);
	cells_format_counts(summary, counts, sizeof counts);
	cells_format_names(summary, plain, names, sizeof names);
	printf("holdfast %s  %s  %s  %s\n", hf_version(), server, counts, names);
	free(plain);
}

static int print_rows(const struct board_snapshot *all)
{
	const char **rows = calloc(all->n + 1, sizeof *rows);
	size_t n = 0;
	for (; rows && n < all->n; n++)
		if (!(rows[n] = join_cells(&all->rows[n])))
			break;
	bool complete = rows && n == all->n;
	if (rows)
		table_print(columns, COLUMNS, rows, n);
	while (n > 0)
		free((void *)rows[--n]);
	free(rows);
	if (!complete)
		cli_complain("out of memory: the list is incomplete; try a narrower pattern");
	return complete ? 0 : EXIT_SYSTEM;
}

static void complain_about_rights(const struct board_summary *summary)
{
	if (*summary->walk_refused)
		cli_complain("only locks that somebody waits for are shown: %s",
		             summary->walk_refused);
	if (*summary->waits_refused)
		cli_complain("the right to list channels is missing, so locks that are waited for "
		             "may be shown late: %s",
		             summary->waits_refused);
}

int once_print(struct board *board, const struct top_options *options)
{
	struct board_snapshot all;
	int rc = board_fill(board);
	if (rc && rc != HF_EDENIED)
		return cli_report_failure(rc);
	struct board_view view = {.order = options->order, .count = SIZE_MAX};
	if (board_take(board, &view, &all)) {
		cli_complain("out of memory");
		return EXIT_SYSTEM;
	}
	print_summary(&all.summary, options->pattern);
	rc = print_rows(&all);
	complain_about_rights(&all.summary);
	board_drop(&all);
	return rc;
}
