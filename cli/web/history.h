/* GET /api/history: the holds of a lock, from the history that the server keeps. */
#ifndef HF_CLI_WEB_HISTORY_H
#define HF_CLI_WEB_HISTORY_H

#include "web.h"

/* NULL: out of memory or threads. */
struct history *history_new(struct web *web);
/* Waits for the read in progress, if there is one. NULL is allowed, here and below. */
void history_stop(struct history *history);
/* After libevent has closed all connections. */
void history_free(struct history *history);

void history_reply(struct web *web, struct evhttp_request *req, const char *name);

#endif
