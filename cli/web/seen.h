/*
 * What this process has seen of the locks since it started: a record of holds, from which the page
 * draws the timeline of a lock. The newest SEEN_MOST are kept.
 */
#ifndef HF_CLI_WEB_SEEN_H
#define HF_CLI_WEB_SEEN_H

#include "../board/board.h"
#include "json.h"

#define SEEN_MOST 20000

struct seen;

/* NULL: out of memory. */
struct seen *seen_new(void);
void seen_free(struct seen *seen);

/* Takes the changes of a snapshot: those rows that are new or changed, and those that are gone. */
void seen_take(struct seen *seen, const struct board_snapshot *snapshot);

/* Writes the holds of one lock, the newest first, as an array under this key. */
void seen_write(const struct seen *seen, const char *name, size_t length, struct json *json,
                const char *key);
/* Whether there is any hold of this lock. */
bool seen_has(const struct seen *seen, const char *name, size_t length);

/* Milliseconds since the start. */
int64_t seen_age(const struct seen *seen);

#endif
