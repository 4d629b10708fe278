/* The options of holdfast top, which the command checks and the program holdfast-top obeys. */
#ifndef HF_CLI_TOP_OPTIONS_H
#define HF_CLI_TOP_OPTIONS_H

#include "board/board.h"
#include "cli.h"

struct top_options {
	struct cli_settings settings;
	const char *pattern; /* NULL: all locks */
	int64_t delay_ms;
	enum board_order order;
	bool once;
	bool read_only;
};

/* Returns 0, or EXIT_USAGE with an error printed. */
int top_read_options(int argc, char **argv, struct top_options *ret_options);

/* The words for orders, in the order of enum board_order. */
#define TOP_ORDERS 5
extern const char *const top_order_words[TOP_ORDERS];

#endif
