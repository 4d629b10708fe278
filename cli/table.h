/* A table of text in columns: it is printed when all of its rows are known. */
#ifndef HF_CLI_TABLE_H
#define HF_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct table_column {
	const char *title;
	bool right; /* aligned */
};

/* The rows belong to the caller: the cells of each row, every one with its NUL. */
void table_print(const struct table_column *columns, size_t count, const char *const *rows,
                 size_t n);

#endif
