/*
 * The history of the lock whose page is open. A thread of its own reads it, again each second, and
 * with pauses so that the server spends at most a fiftieth of its time on it.
 */
#ifndef HF_CLI_TOP_HISTORY_H
#define HF_CLI_TOP_HISTORY_H

#include "board/past.h"
#include "top.h"

/* NULL: out of memory or threads. */
struct history *history_new(hf_client *client);
/* Waits for the request in progress, if there is one. NULL is allowed. */
void history_free(struct history *history);

/* From now on this lock's history is read; NULL: none is. */
void history_want(struct history *history, const struct top_name *name);
/*
 * Calls visit() for each hold of this lock that was read so far, the newest first, and returns what
 * is known of them as a whole. visit can be NULL.
 */
struct past_summary history_visit(struct history *history, const struct top_name *name,
                                  void (*visit)(void *arg, const struct past_hold *hold),
                                  void *arg);

#endif
