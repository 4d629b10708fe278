/*
 * The board: a live table of the locks on a server, for programs that show it. Threads of its own
 * talk to the server, and everybody else reads snapshots.
 *
 * Each second it asks for the locks that somebody waits for, and for at most BOARD_MOST_ASKED that
 * are on a screen, waited for, or may be at risk. A walk over all keys in the background finds the
 * others. Both together use at most BOARD_DUTY per cent of the server's time.
 */
#ifndef HF_CLI_BOARD_H
#define HF_CLI_BOARD_H

#include "pulse.h"

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOARD_DUTY       5
#define BOARD_MOST_ROWS  200000
#define BOARD_MOST_ASKED 200

struct board;

struct board_options {
	/*
	 * The board does not close it. Open it with .map_name = board_keep_name, because the board
	 * uses the names on the server.
	 */
	hf_client *client;
	bool zookeeper;
	const char *pattern; /* copied; NULL: all locks */
	int64_t refresh_ms;  /* 0: each second */
	size_t most_rows;    /* 0: BOARD_MOST_ROWS */
};

/* For hf_client_options: names are used as they are. */
int board_keep_name(void *arg, const char *name, char *ret_name, size_t size);

/* Returns 0 or HF_E…, with its detail. Nothing is asked yet. */
int board_new(const struct board_options *options, struct board **ret_board);
/* Starts the threads. Returns 0 or HF_E…. */
int board_start(struct board *board);
/* Walks over all locks once, at full speed and in this thread. Returns 0 or HF_E…. */
int board_fill(struct board *board);
/* Stops the threads, also in the middle of a request, and frees the board. NULL is allowed. */
void board_free(struct board *board);

/* ---- changes ---- */

/* Readable when something has changed since board_clear_fd(); -1 before board_start(). */
int board_fd(const struct board *board);
void board_clear_fd(struct board *board);

/* ---- snapshots; any thread ---- */

enum board_order {
	BOARD_BY_NEED, /* waited for, then at risk, then by age */
	BOARD_BY_NAME,
	BOARD_BY_HELD, /* the longest first */
	BOARD_BY_TTL,  /* the shortest first */
	BOARD_BY_WAITING,
};

/* Which rows a snapshot has. */
struct board_view {
	enum board_order order;
	const char *filter;  /* only names that contain this text, in any case; NULL: all */
	size_t first, count; /* of the rows in this order */
	bool on_screen;      /* these rows are asked for again each second for some seconds */
	uint64_t after;      /* only rows that changed after this number; 0: all */
};

/* A holder or a waiter. Its texts come from others and may contain anything. */
struct board_party {
	const char *owner, *host, *text; /* never NULL */
	int64_t pid;                     /* 0: not known */
	int64_t levels;                  /* of a holder */
	int64_t since_ms;                /* for how long; -1: not known */
	int64_t lease_ms;                /* of a holder; 0: not known */
};

struct board_row {
	const char *name; /* with a NUL; may contain anything */
	size_t length;
	uint64_t change; /* the number of its latest change */
	const char *kind;
	enum board_state state;
	bool is_waited;   /* somebody waits for it */
	int64_t waiting;  /* clients that wait; -1: not known */
	int64_t held_ms;  /* for how long it has been held; -1: not held */
	bool held_longer; /* it may have been held for longer than this */
	int64_t ttl_ms;   /* as it should be by now; -1: does not expire, -2: free */
	int64_t lease_ms; /* as noted, or the longest TTL seen; 0: not known */
	int64_t token;    /* 0: none */
	int64_t age_ms;   /* since the server said so */
	size_t holders, waiters;
	struct board_party holder; /* the first one; texts are "" without one */
	/* Of board_take_one(), once they are known: the holders, then the waiters. */
	const struct board_party *parties;
	size_t holders_listed, waiters_listed;
};

/* What is known about all of it. */
struct board_summary {
	uint64_t change;        /* the number of the latest change */
	size_t rows;            /* on the board */
	size_t matching;        /* of these, that match the filter */
	size_t held, waited;    /* of all rows */
	size_t at_risk;         /* of all rows */
	bool is_cut;            /* the server has more locks than the board may have rows */
	bool is_walking;        /* a walk is in progress */
	int64_t walk_age_ms;    /* since the latest complete walk began; -1: there was none yet */
	int64_t walk_took_ms;   /* how long that took */
	int64_t unreachable_ms; /* 0: the server answers */
	int64_t ping_us;        /* the latest round trip; -1: none yet */
	/* The server's clock, in ms since 1970; until it is known, that of this host. */
	int64_t server_ms;
	int nodes, nodes_down;   /* on a Cluster its masters; as of the latest request */
	char why[256];           /* why the server is unreachable, or refuses */
	char walk_refused[256];  /* why there is no walk, or "" */
	char waits_refused[256]; /* why waiters are not known, or "" */
	char server[64];         /* "redis 7.0.15", or "" */
	char address[256];
};

/* One block of memory; board_drop() frees it. */
struct board_snapshot {
	struct board_summary summary;
	struct board_row *rows;
	size_t n;
	/* With .after: names that are gone since then. */
	struct board_name {
		const char *name;
		size_t length;
	} * gone;
	size_t n_gone;
	/* With .after: too much has changed since then, so these are all rows that there are. */
	bool is_whole;
	void *memory;
};

/* Returns 0 or HF_ENOMEM. */
int board_take(struct board *board, const struct board_view *view,
               struct board_snapshot *ret_snapshot);
/*
 * The same with one row, or none if there is no such lock. The holders and waiters of a name that
 * was asked for in this way are kept for some seconds.
 */
int board_take_one(struct board *board, const char *name, size_t length,
                   struct board_snapshot *ret_snapshot);
void board_drop(struct board_snapshot *snapshot);

/* A word for the state, such as "AT RISK". */
const char *board_state_word(enum board_state state);
/* What cannot be reached: "server", or "1 of 3 masters". */
#define BOARD_LOST_SIZE 48
const char *board_name_lost(const struct board_summary *summary, char ret_text[BOARD_LOST_SIZE]);

#endif
