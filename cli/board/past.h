/*
 * The past of a lock: its newest holds, if the server keeps a history of them. One thread reads,
 * and any thread can list what was read so far.
 */
#ifndef HF_CLI_PAST_H
#define HF_CLI_PAST_H

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAST_MOST 200 /* holds that are kept */

/* Points in time are in milliseconds since 1970 by the server's clock. */
struct past_hold {
	const char *name; /* with a NUL; it may contain anything, like all texts here */
	size_t length;
	const char *kind, *owner, *host, *text, *forced_by; /* never NULL */
	const char *end;                                    /* a word, such as "released" */
	bool is_held;                                       /* it has not ended */
	bool is_inferred;           /* no entry says how it ended: it had ended by ended_at */
	int64_t began_at, ended_at; /* 0: not known, or not ended */
	int64_t waited_ms, held_ms; /* -1: not known; if the end is inferred, held_ms is the most */
	int64_t token, pid, forced_by_pid; /* 0: none, or not known */
};

struct past;

/*
 * Of one lock; NULL: of all locks. since_ms: only what was recorded in the last since_ms
 * milliseconds; 0: all. Nothing is asked yet. NULL: out of memory.
 */
struct past *past_new(hf_client *client, const char *name, int64_t since_ms);
/* Not during a read. NULL is allowed. */
void past_free(struct past *past);

/* Reads what is new. Blocks, and returns 0 or HF_E…, with its detail. */
int past_read(struct past *past);
/* Makes the read in progress end as soon as it finds a hold; the next one continues. Any thread. */
void past_stop(struct past *past);

/* What was read so far; any thread. */
struct past_summary {
	bool is_read; /* all of it was read at least once */
	size_t n;     /* holds that are kept */
	size_t left_out;
	char why[256]; /* why the latest read has failed, or "" */
};
struct past_summary past_summarize(struct past *past);
/* Calls visit() for each hold, the newest first; past must not be used in it. */
void past_visit(struct past *past, void (*visit)(void *arg, const struct past_hold *hold),
                void *arg);

#endif
