/* A local tunnel that speaks TLS for clients, or a server, that do not, as stunnel and socat do. */
#ifndef TESTS_SUPPORT_TUNNEL_H
#define TESTS_SUPPORT_TUNNEL_H

#include <stdbool.h>

struct tunnel;

struct tunnel_options {
	const char *upstream_url; /* as net_connect takes it */
	const char *cert, *key;
	const char *ca, *name; /* the server's certificate must be signed by ca and have the name */
	bool faces_clients; /* TLS is on the side of the clients; then ca and name are not used */
};

struct tunnel *tunnel_start(const struct tunnel_options *options);

/* Closes all connections and frees the tunnel. Takes NULL. */
void tunnel_stop(struct tunnel *tunnel);

/* Where clients connect: 127.0.0.1:port. */
const char *tunnel_host(const struct tunnel *tunnel);

/* How many handshakes have succeeded so far, and how many have failed. */
int tunnel_connections(struct tunnel *tunnel);
int tunnel_failures(struct tunnel *tunnel);

#endif
