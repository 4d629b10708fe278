/* A local tunnel with TLS on one side: one thread that accepts, and one for each connection. */
#include "support/tunnel.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/net.h"

#define MAX_LINKS    64
#define HANDSHAKE_MS 5000

struct link {
	struct tunnel *tunnel;
	pthread_t thread;
	int accepted; /* the descriptor on the clients' side */
};

struct tunnel {
	char *host;
	char *upstream_url;
	SSL_CTX *context;
	bool faces_clients; /* TLS is on their side */
	int listen_fd;
	int stop_fd; /* readable from the stop on, and never read */
	pthread_t thread;
	struct link links[MAX_LINKS]; /* of the accepting thread, until it has ended */
	int link_count;
	atomic_int connections, failures;
};

/* ---- one connection ---- */

/* Returns false at the end of the plain side's bytes. */
static bool send_on(int plain, SSL *ssl)
{
	char bytes[16384];
	ssize_t count = read(plain, bytes, sizeof(bytes));
	return count > 0 && SSL_write(ssl, bytes, (int)count) == (int)count;
}

static bool write_all(int fd, const char *bytes, int count)
{
	while (count > 0) {
		ssize_t written = write(fd, bytes, (size_t)count);
		if (written <= 0)
			return false;
		bytes += written;
		count -= (int)written;
	}
	return true;
}

/* What TLS sends for its own purposes is neither an answer nor the end of the connection. */
static bool send_back(int plain, SSL *ssl)
{
	char bytes[16384];
	int count;
	do {
		count = SSL_read(ssl, bytes, sizeof(bytes));
		if (count <= 0)
			return SSL_get_error(ssl, count) == SSL_ERROR_WANT_READ;
		if (!write_all(plain, bytes, count))
			return false;
	} while (SSL_pending(ssl) > 0);
	return true;
}

static void pass_on(const struct link *link, int plain, SSL *ssl)
{
	enum { PLAIN, SECURE, STOP, COUNT };
	struct pollfd polled[COUNT] = {
		[PLAIN] = {.fd = plain, .events = POLLIN},
		[SECURE] = {.fd = SSL_get_fd(ssl), .events = POLLIN},
		[STOP] = {.fd = link->tunnel->stop_fd, .events = POLLIN},
	};
	for (;;) {
		if (poll(polled, COUNT, -1) < 0 || polled[STOP].revents)
			return;
		if (polled[PLAIN].revents && !send_on(plain, ssl))
			return;
		if (polled[SECURE].revents && !send_back(plain, ssl))
			return;
	}
}

/* A silent peer must not keep the tunnel from closing. */
static SSL *shake_hands(const struct tunnel *tunnel, int fd)
{
	struct timeval limit = {.tv_sec = HANDSHAKE_MS / 1000};
	SSL *ssl = SSL_new(tunnel->context);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (ssl && SSL_set_fd(ssl, fd) == 1 &&
	    (tunnel->faces_clients ? SSL_accept(ssl) : SSL_connect(ssl)) == 1)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

static void *link_main(void *arg)
{
	struct link *link = arg;
	struct tunnel *tunnel = link->tunnel;
	int fd = net_connect(tunnel->upstream_url);
	int secure = tunnel->faces_clients ? link->accepted : fd;
	SSL *ssl = fd < 0 ? NULL : shake_hands(tunnel, secure);
	atomic_fetch_add(ssl ? &tunnel->connections : &tunnel->failures, 1);
	if (ssl)
		pass_on(link, tunnel->faces_clients ? fd : link->accepted, ssl);
	SSL_free(ssl);
	if (fd >= 0)
		(void)close(fd);
	(void)shutdown(link->accepted, SHUT_RDWR);
	return NULL;
}

/* ---- all of them ---- */

static void accept_link(struct tunnel *tunnel)
{
	struct link *link = &tunnel->links[tunnel->link_count];
	int fd = accept4(tunnel->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || tunnel->link_count == MAX_LINKS) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	net_set_nodelay(fd);
	*link = (struct link){.tunnel = tunnel, .accepted = fd};
	if (pthread_create(&link->thread, NULL, link_main, link))
		(void)close(fd);
	else
		tunnel->link_count++;
}

static void *accept_main(void *arg)
{
	struct tunnel *tunnel = arg;
	struct pollfd polled[] = {{.fd = tunnel->listen_fd, .events = POLLIN},
	                          {.fd = tunnel->stop_fd, .events = POLLIN}};
	while (poll(polled, 2, -1) >= 0 && !polled[1].revents)
		accept_link(tunnel);
	return NULL;
}

static bool trust_server(SSL_CTX *context, const struct tunnel_options *options)
{
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	return SSL_CTX_load_verify_locations(context, options->ca, NULL) == 1 &&
	       X509_VERIFY_PARAM_set1_host(SSL_CTX_get0_param(context), options->name, 0) == 1;
}

static SSL_CTX *make_context(const struct tunnel_options *options)
{
	SSL_CTX *context =
		SSL_CTX_new(options->faces_clients ? TLS_server_method() : TLS_client_method());
	if (!context || SSL_CTX_use_certificate_chain_file(context, options->cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1 ||
	    (!options->faces_clients && !trust_server(context, options)))
		check_fail("the files of the tunnel cannot be used");
	(void)SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
	return context;
}

/* Its threads write to connections that may be gone. */
static void start_thread(struct tunnel *tunnel)
{
	sigset_t all, before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&tunnel->thread, NULL, accept_main, tunnel);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		check_fail("pthread_create: %s", strerror(rc));
}

struct tunnel *tunnel_start(const struct tunnel_options *options)
{
	struct tunnel *tunnel = check_alloc(sizeof(*tunnel));
	int port = 0;
	tunnel->context = make_context(options);
	tunnel->faces_clients = options->faces_clients;
	tunnel->upstream_url = check_copy(options->upstream_url, strlen(options->upstream_url));
	tunnel->listen_fd = net_listen_tcp(&port);
	tunnel->host = check_format("127.0.0.1:%d", port);
	tunnel->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (tunnel->stop_fd < 0)
		check_fail("eventfd failed");
	start_thread(tunnel);
	return tunnel;
}

void tunnel_stop(struct tunnel *tunnel)
{
	if (!tunnel)
		return;
	(void)eventfd_write(tunnel->stop_fd, 1);
	(void)pthread_join(tunnel->thread, NULL);
	for (int i = 0; i < tunnel->link_count; i++) {
		(void)pthread_join(tunnel->links[i].thread, NULL);
		(void)close(tunnel->links[i].accepted);
	}
	(void)close(tunnel->listen_fd);
	(void)close(tunnel->stop_fd);
	SSL_CTX_free(tunnel->context);
	free(tunnel->upstream_url);
	free(tunnel->host);
	free(tunnel);
}

const char *tunnel_host(const struct tunnel *tunnel)
{
	return tunnel->host;
}

int tunnel_connections(struct tunnel *tunnel)
{
	return atomic_load(&tunnel->connections);
}

int tunnel_failures(struct tunnel *tunnel)
{
	return atomic_load(&tunnel->failures);
}
