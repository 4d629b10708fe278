/* The rows of the board. They know nothing about servers and threads: the time is passed in. */
#ifndef HF_CLI_ROWS_H
#define HF_CLI_ROWS_H

#include "board.h"

#define ROWS_MOST_GONE 1024 /* names that are remembered after they are gone */

/* What the server says about one lock. */
struct row_facts {
	const char *name;
	size_t length;
	const char *kind;
	int64_t server_ms; /* the server's clock when it said so */
	int64_t ttl_ms;    /* -1: does not expire; -2: free */
	int64_t token;
	int64_t waiting; /* clients; -1: not known */
	size_t holders, waiters;
	/* As many as are listed: the holders, then the waiters. Their since_ms are ages. */
	const struct board_party *parties;
	size_t holders_listed, waiters_listed;
};

/* One lock. Points in time are this host's, unless they say otherwise. */
struct row {
	struct row *next; /* in its bucket */
	char *name;
	char *holder; /* owner, host and text of the first holder, each with its NUL */
	void *detail; /* the parties, as hf_client_list() gave them; NULL: nobody asked */
	uint64_t change;
	int64_t server_ms; /* the server's clock when it was seen */
	int64_t seen_at;
	int64_t held_at; /* since when it has been held, or was first seen */
	int64_t on_screen_until, detail_until;
	int64_t token;
	int64_t waiting;
	int64_t pid, levels, holder_lease_ms;
	struct pulse pulse;
	uint32_t walk; /* the walk in which it was seen */
	uint32_t holders, waiters;
	uint32_t holders_listed, waiters_listed; /* in detail */
	uint16_t length;                         /* of the name */
	char kind[16];
	bool is_since_known; /* held_at is since when it has been held */
	bool is_odd;         /* it cannot be asked for by its name, and only a walk finds it */
};

struct row_gone {
	char *name;
	size_t length;
	uint64_t change;
};

struct rows {
	struct row **buckets; /* a power of two of them */
	size_t n_buckets;
	size_t n, most;
	size_t held, waited, at_risk;
	uint64_t change; /* the number of the latest change of anything */
	uint64_t seed;   /* of the hashes */
	uint32_t walk;   /* the number of the walk in progress, or of the latest one */
	size_t next_due; /* the bucket from which rows that may be at risk are looked for */
	bool is_cut;
	int64_t server_ahead_ms; /* the server's clock minus this host's */
	struct row_gone gone[ROWS_MOST_GONE];
	uint64_t n_gone; /* all that ever were; the latest ones are in the ring */
};

/* 0, or -1 without memory. */
int rows_init(struct rows *rows, size_t most, uint64_t seed);
void rows_done(struct rows *rows);

struct row *rows_find(const struct rows *rows, const char *name, size_t length);
/* Adds or changes the row of this lock. Without memory or room the row is left out. */
void rows_see(struct rows *rows, const struct row_facts *facts, int64_t now);
void rows_remove(struct rows *rows, const char *name, size_t length);

/* What was not seen between these two does not exist any more. */
void rows_begin_walk(struct rows *rows);
void rows_end_walk(struct rows *rows);

/*
 * Calls visit() for the rows that are to be asked for again, until it returns false: those on a
 * screen, those that somebody waits for, and then those that may be at risk.
 */
void rows_choose(struct rows *rows, int64_t now, bool (*visit)(void *arg, struct row *row),
                 void *arg);

static inline bool row_is_waited(const struct row *row)
{
	return row->waiting > 0 || row->waiters > 0;
}

#endif
