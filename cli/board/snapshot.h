/* Copies of rows in the order in which they are shown. */
#ifndef HF_CLI_SNAPSHOT_H
#define HF_CLI_SNAPSHOT_H

#include "rows.h"

/* Fill in all of the snapshot but what only the board itself knows. 0 or HF_ENOMEM. */
int snapshot_take(struct rows *rows, const struct board_view *view, int64_t now,
                  struct board_snapshot *ret_snapshot);
int snapshot_take_one(struct rows *rows, const char *name, size_t length, int64_t now,
                      struct board_snapshot *ret_snapshot);

/* For how long rows are asked for after they were on a screen. */
#define SNAPSHOT_FRESH_MS 4000

#endif
