/* What is shown of a row, as text that a terminal shows and does nothing else. */
#ifndef HF_CLI_CELLS_H
#define HF_CLI_CELLS_H

#include "board/board.h"

#define CELLS_SIZE 24

struct cells {
	char *name, *kind, *holder, *state; /* allocated */
	char held[CELLS_SIZE], ttl[CELLS_SIZE], waiting[CELLS_SIZE];
};

/* Returns false without memory. cells_free() takes both. */
bool cells_fill(const struct board_row *row, struct cells *ret_cells);
void cells_free(struct cells *cells);

/* A copy of any text that is safe to show; NULL without memory. */
char *cells_copy_plain(const char *text, size_t length);
/* 3.1s, 42s, 12m05s, 4h12m, 3d04h. */
const char *cells_format_age(int64_t ms, char ret_text[CELLS_SIZE]);
/* 0.8s, 28.7s, 12m05s: more exact than an age, because it counts down. */
const char *cells_format_left(int64_t ms, char ret_text[CELLS_SIZE]);
/* Host, process id and command of a holder or waiter, or a short form of its owner; allocated. */
char *cells_describe_party(const struct board_party *party);

/* "2 held  1 waited for  0 at risk". */
void cells_format_counts(const struct board_summary *summary, char *ret_text, size_t size);
/* How much of the server the rows are, and how old that is. `pattern` is NULL or plain text. */
void cells_format_names(const struct board_summary *summary, const char *pattern, char *ret_text,
                        size_t size);
/* "redis 7.0.15 127.0.0.1:6379". */
void cells_format_server(const struct board_summary *summary, char *ret_text, size_t size);

#endif
