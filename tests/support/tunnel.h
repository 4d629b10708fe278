/* A local tunnel that speaks TLS to a server, for clients that do not: what stunnel and socat are. */
#ifndef TESTS_SUPPORT_TUNNEL_H
#define TESTS_SUPPORT_TUNNEL_H

struct tunnel;

/* All are needed. The server's certificate must be signed by ca and have the name. */
struct tunnel_options {
	const char *upstream_url; /* as net_connect takes it */
	const char *ca;
	const char *cert, *key;
	const char *name;
};

struct tunnel *tunnel_start(const struct tunnel_options *options);

/* Ends all connections and frees the tunnel. Takes NULL. */
void tunnel_stop(struct tunnel *tunnel);

/* Where clients connect: 127.0.0.1:port. */
const char *tunnel_host(const struct tunnel *tunnel);

/* Connections whose handshake has worked so far, and those whose has not. */
int tunnel_connections(struct tunnel *tunnel);
int tunnel_failures(struct tunnel *tunnel);

#endif
