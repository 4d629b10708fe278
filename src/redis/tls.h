/* TLS over a non-blocking socket that the caller opens, polls and closes. */
#ifndef HF_REDIS_TLS_H
#define HF_REDIS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <holdfast/holdfast.h>

#include "redis/redis_settings.h"

struct hf__tls;

/*
 * Loads certificates and keys, once for all connections of a client. Returns 0, HF_ENOMEM, or
 * HF_ETLS with a text that names the setting.
 */
int hf__tls_new(const struct hf__redis_settings *cfg, struct hf__tls **ret_tls, char *why,
                size_t why_size);

/* Another one, for another connection, with the same certificates and keys; 0 or HF_ENOMEM. */
int hf__tls_share(struct hf__tls *tls, struct hf__tls **ret_tls);

/*
 * The name that the certificate must have, from the next hf__tls_start() on. Only needed if the
 * settings do not name it. Returns 0, HF_ENOMEM or HF_ETLS.
 */
int hf__tls_name(struct hf__tls *tls, const char *name, char *why, size_t why_size);

/* NULL is allowed. */
void hf__tls_free(struct hf__tls *tls);

/*
 * Begins a new connection over fd, which must be O_NONBLOCK and stays the caller's. An earlier
 * connection is dropped as by hf__tls_stop(). Returns 0, HF_ENOMEM or HF_ETLS.
 */
int hf__tls_start(struct hf__tls *tls, int fd);

/*
 * Returns 1 when done. Returns 0 if it must be called again once the socket can be read, or written
 * if *ret_want_write is set. Returns HF_ETLS with a text such as "certificate of 'cache1' is not
 * valid: certificate has expired", or HF_ENOMEM.
 */
int hf__tls_handshake(struct hf__tls *tls, bool *ret_want_write, char *why, size_t why_size);

/*
 * Returns bytes received, 0 at the end of the stream, -EAGAIN, or another negative errno; -EPROTO
 * if TLS itself failed. OpenSSL may hold data that poll() does not see, so read until -EAGAIN. Any
 * thread; one may receive while another sends.
 */
ssize_t hf__tls_recv(struct hf__tls *tls, void *buf, size_t n);

/*
 * Returns bytes sent, -EAGAIN or another negative errno. After -EAGAIN the next call must begin
 * with the same bytes and offer no fewer of them. Never raises SIGPIPE. Any thread.
 */
ssize_t hf__tls_send(struct hf__tls *tls, const void *buf, size_t n);

/*
 * Why the last call returned -EPROTO; empty if none did. With TLS 1.3 the server's refusal of a
 * client certificate is only reported here, after the first hf__tls_recv().
 */
void hf__tls_reason(struct hf__tls *tls, char *why, size_t why_size);

/* Drops the connection without sending anything: it may be dead, or belong to a parent process. */
void hf__tls_stop(struct hf__tls *tls);

#endif
