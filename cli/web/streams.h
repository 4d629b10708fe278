/* The streams of changes: server-sent events, one for each open page. */
#ifndef HF_CLI_WEB_STREAMS_H
#define HF_CLI_WEB_STREAMS_H

#include "web.h"

#define STREAMS_MOST 16 /* so that there are connections left for everything else */

/* NULL: out of memory. */
struct streams *streams_new(struct web *web);
/* To be called once libevent has closed all connections. */
void streams_free(struct streams *streams);

/* Answers GET /events. */
void streams_reply(struct web *web, struct evhttp_request *req, const char *name);

#endif
