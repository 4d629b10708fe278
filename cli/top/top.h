/* The parts of holdfast-top. */
#ifndef HF_CLI_TOP_H
#define HF_CLI_TOP_H

#include "board/board.h"
#include "top_options.h"

#define TOP_INPUT_SIZE 1200 /* bytes that can be typed: a whole name, escaped */

struct history;

enum top_page { TOP_TABLE, TOP_LOCK, TOP_KEYS };
enum top_prompt { TOP_NO_PROMPT, TOP_FILTER, TOP_UNLOCK, TOP_REVOKE };

/* A copy of a lock's name. */
struct top_name {
	char bytes[TOP_INPUT_SIZE];
	size_t length; /* 0: none */
};

struct top {
	const struct top_options *options;
	hf_client *client;
	struct board *board;
	struct history *history;
	bool zookeeper;

	enum board_order order;
	char filter[TOP_INPUT_SIZE];
	bool paused;
	enum top_page page;

	struct board_snapshot shown; /* the rows on the screen; of TOP_LOCK at most one */
	size_t first;                /* the number of the first of them */
	size_t selected;             /* the number of the selected one */
	bool has_moved;       /* the user has selected it, so the selection follows its name */
	struct top_name name; /* of the selected row, or of the lock on the page */
	size_t scrolled;      /* lines of TOP_LOCK above the screen */
	size_t lines;         /* of TOP_LOCK in all */

	enum top_prompt prompt;
	struct top_name target;     /* what the prompt is about */
	char input[TOP_INPUT_SIZE]; /* what was typed so far */
	char message[512];          /* shown until the next key */
	bool message_is_bad;
	bool quits;
};

/* ---- once.c ---- */
/* Returns the exit status, with an error printed. */
int once_print(struct board *board, const struct top_options *options);

/* ---- terminal.c ---- */
/* Whether there is a terminal, and it can show a live view. */
bool terminal_is_able(void);

/* ---- screen.c ---- */
void screen_open(void);
void screen_close(void);
/* How many rows of the table fit on the screen. */
size_t screen_table_rows(void);
void screen_draw(struct top *top);
/* Draws everything again, because somebody else may have written on the terminal. */
void screen_forget(void);

/* ---- keys.c ---- */
/* Takes everything that was typed. */
void keys_take(struct top *top);

/* ---- act.c ---- */
/* Whether what was typed is the whole name, as it is or as it is shown. */
bool act_is_name(const struct top_name *name, const char *typed);
/* Unlocks or revokes the target; leaves a message. */
void act_unlock(struct top *top);
void act_revoke(struct top *top);

#endif
