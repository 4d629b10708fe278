/*
 * A byte proxy between client and server that makes faults on live connections.
 *
 * It listens like its upstream does: on a unix socket for a unix socket, on a loopback port for a
 * port. The controls may be called from any thread; they hold for all connections, and for the
 * bytes that the proxy reads from then on. The end of a connection is kept back while bytes of that
 * direction are held or dropped, as a dead network would.
 */
#ifndef TESTS_SUPPORT_PROXY_H
#define TESTS_SUPPORT_PROXY_H

#include <stdbool.h>
#include <stddef.h>

struct proxy;

struct proxy *proxy_start(const char *upstream_url);

/* Closes all connections and frees the proxy. Takes NULL. */
void proxy_stop(struct proxy *proxy);

/* Where clients connect; the scheme is that of the upstream. */
const char *proxy_url(const struct proxy *proxy);

/* Keeps bytes back; they are passed on when this is switched off. */
void proxy_hold_requests(struct proxy *proxy, bool on);
void proxy_hold_replies(struct proxy *proxy, bool on);

/* Throws bytes away. Those that are held already are not touched. */
void proxy_drop_requests(struct proxy *proxy, bool on);
void proxy_drop_replies(struct proxy *proxy, bool on);

/*
 * Filters requests: if a piece of them contains one of these texts, up to NULL, it is thrown away,
 * and so is everything that its connection sends after it, as the kernel of the sender would repeat
 * the piece for ever. NULL: no filter. The texts must stay.
 */
void proxy_filter_requests(struct proxy *proxy, const char *const *texts);

/*
 * Overwrites these bytes by zeros in what clients send first on connections made from now on; 0
 * bytes: none.
 */
void proxy_blank_greeting(struct proxy *proxy, size_t start, size_t bytes);

/* Breaks all connections at both sides, by RST where it is TCP. Held bytes are lost. Returns when
 * it is done. */
void proxy_cut(struct proxy *proxy);

/*
 * Leaves the present connections to the server as they are: nothing passes, not even their end.
 * Their clients hear nothing either, or get an RST. New connections work. Returns when it is done.
 * Requests that are held stay with the proxy, and can be delivered late, each on the connection it
 * was sent on; that returns when the server has executed them and the connections have ended, or
 * when the server does not end one of them for a long time.
 */
void proxy_strand(struct proxy *proxy, bool reset_clients);
void proxy_deliver_stranded(struct proxy *proxy);

/* Closes new connections at once. */
void proxy_refuse(struct proxy *proxy, bool on);

/* Lets bytes arrive this much later, each way. 0 means no delay. */
void proxy_delay(struct proxy *proxy, int delay_ms);

/*
 * Passes on at most this many bytes at a time; 0 means no limit. On unix sockets the next piece
 * waits until the last one was read, so that the reader really sees the pieces.
 */
void proxy_slice(struct proxy *proxy, size_t bytes);

/* Connections that were accepted so far, the refused ones among them. */
int proxy_connections(struct proxy *proxy);

/* Bytes that were read so far from clients and from the server, whatever became of them. */
long long proxy_request_bytes(struct proxy *proxy);
long long proxy_reply_bytes(struct proxy *proxy);

#endif
