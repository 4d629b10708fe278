/* Sockets for the helpers: addresses as URLs, listening, connecting and resetting. */
#ifndef TESTS_SUPPORT_NET_H
#define TESTS_SUPPORT_NET_H

#include <stdbool.h>

/* Whether the URL names a unix socket (redis+unix://). */
bool net_url_is_unix(const char *url);

/* Its path. */
const char *net_unix_path(const char *url);

/* Whether a program listens there. */
bool net_is_reachable(const char *url);

/*
 * Connects to redis+unix:///path, redis://host:port or rediss://host:port (the bare TCP stream;
 * host is always the loopback address). Returns a blocking descriptor or the negative errno.
 */
int net_connect(const char *url);

/* Listens on a unix socket, or on a free loopback port that is written to *ret_port. */
int net_listen_unix(const char *path);
int net_listen_tcp(int *ret_port);

/*
 * A loopback TCP port that nobody else gets until *ret_fd is closed. It is below those that the
 * kernel gives to outgoing connections: one of those could take the port while its server is down,
 * even the connection of a client that tries to reach that very server.
 */
int net_reserve_port(int *ret_fd);

/* Such a port that was free a moment ago. The caller must be ready to find it taken. */
int net_free_port(void);

/*
 * A loopback TCP port that refuses connections, and that nobody else gets, until the process ends.
 */
int net_dead_port(void);

/* The same for a cluster node: the port 10000 above it, for the cluster bus, was free as well. */
int net_free_bus_port(void);

/* Switches Nagle's delay off; does nothing on unix sockets. */
void net_set_nodelay(int fd);

/* Closes with an RST. A unix socket has none: there it is a plain close. */
void net_reset(int fd);

#endif
