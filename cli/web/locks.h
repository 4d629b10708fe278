/* The locks of the board as JSON. */
#ifndef HF_CLI_WEB_LOCKS_H
#define HF_CLI_WEB_LOCKS_H

#include "../board/board.h"
#include "json.h"

#define LOCKS_MOST 50000 /* rows of one answer */

/*
 * Takes at most this number of rows: those that changed after this number, or all if it is 0.
 * False: out of memory.
 */
bool locks_take(struct web *web, uint64_t after, size_t most, struct board_snapshot *ret_snapshot);

/* Writes a snapshot as one object: {"all":…,"status":{…},"locks":[…],"gone":[…]}. */
void locks_write(const struct web *web, const struct board_snapshot *snapshot, bool is_whole,
                 struct json *json);

/* Answer GET /api/locks and GET /api/locks/NAME. */
void locks_reply(struct web *web, struct evhttp_request *req, const char *name);
void locks_reply_one(struct web *web, struct evhttp_request *req, const char *name);

#endif
