/*
 * The connections of the browsers: how many there may be, and how long each may take to send a
 * request.
 */
#ifndef HF_CLI_WEB_CONNECTIONS_H
#define HF_CLI_WEB_CONNECTIONS_H

#include "web.h"

#include <event2/listener.h>

#define CONNECTIONS_MOST     32
#define CONNECTIONS_GAP_MS   5000 /* to send a request, and between two requests */
#define CONNECTIONS_SHORT_MS 1000 /* the same while there is no room for another connection */

struct connections;

/* Takes the connections that arrive at the listener; NULL: out of memory. */
struct connections *connections_new(struct event_base *base, struct evhttp *http,
                                    struct evconnlistener *listener);
/* To be called before libevent closes the listener and all connections, and free after that. */
void connections_stop(struct connections *connections);
void connections_free(struct connections *connections);

/* The request has arrived: from now on its connection waits for us. */
void connections_begin(struct connections *connections, struct evhttp_request *req);

/*
 * Calls this when the connection of the request is closed before the answer is complete; false:
 * it cannot be watched.
 */
bool connections_watch(struct connections *connections, struct evhttp_request *req,
                       void (*on_close)(void *arg), void *arg);

#endif
