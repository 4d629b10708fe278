/* TLS over a non-blocking socket, with OpenSSL and a BIO of our own that cannot raise SIGPIPE. */
#include "redis/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct hf__tls {
	pthread_mutex_t mutex; /* protects everything below */
	SSL_CTX *context;      /* immutable after hf__tls_new */
	BIO_METHOD *method;    /* immutable after hf__tls_new */
	char *server_name;     /* the name that the certificate must have */
	bool is_address;       /* server_name is an IP address */
	bool insecure;         /* any certificate is accepted */
	pid_t pid;             /* of the process that created it */
	SSL *ssl;              /* NULL between connections */
	int fd;
	bool is_at_end;   /* the peer has closed */
	int io_error;     /* errno of the last failed send or recv */
	char reason[256]; /* why TLS itself failed last */
};

__attribute__((format(printf, 4, 5))) static int refuse(int error, char *why, size_t why_size,
                                                        const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, why_size, format, args);
	va_end(args);
	return error;
}

/* ---- the socket, as OpenSSL sees it ---------------------------------------------------------- */

static int finish_io(struct hf__tls *tls, BIO *bio, ssize_t n, int retry_flag)
{
	if (n >= 0)
		return (int)n;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
		BIO_set_flags(bio, retry_flag | BIO_FLAGS_SHOULD_RETRY);
	else
		tls->io_error = errno;
	return -1;
}

static int bio_write(BIO *bio, const char *buf, int size)
{
	struct hf__tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	return finish_io(tls, bio, send(tls->fd, buf, (size_t)size, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static int bio_read(BIO *bio, char *buf, int size)
{
	struct hf__tls *tls = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	n = recv(tls->fd, buf, (size_t)size, 0);
	if (n == 0 && size > 0)
		tls->is_at_end = true;
	return finish_io(tls, bio, n, BIO_FLAGS_READ);
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	struct hf__tls *tls = BIO_get_data(bio);

	(void)number;
	(void)pointer;
	if (command == BIO_CTRL_EOF)
		return tls->is_at_end;
	return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

/* Type numbers come from a small pool that the whole process shares, so none is taken. */
static BIO_METHOD *make_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "holdfast socket");

	if (method && BIO_meth_set_write(method, bio_write) &&
	    BIO_meth_set_read(method, bio_read) && BIO_meth_set_ctrl(method, bio_ctrl) &&
	    BIO_meth_set_create(method, bio_create))
		return method;
	BIO_meth_free(method);
	return NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static bool is_out_of_memory(unsigned long code)
{
	return ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE ||
	       (ERR_SYSTEM_ERROR(code) && ERR_GET_REASON(code) == ENOMEM);
}

static void explain_error(unsigned long code, char *reason, size_t size)
{
	const char *text = ERR_reason_error_string(code);

	if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
	    (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER ||
	     ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST))
		text = "the server does not speak TLS on this port";
	errno = ERR_GET_REASON(code);
	if (ERR_SYSTEM_ERROR(code))
		(void)refuse(0, reason, size, "%m");
	else
		(void)refuse(0, reason, size, "%s", text ? text : "unknown reason");
}

/*
 * Empties OpenSSL's queue of errors. The first one is the reason, but a failed allocation may come
 * after the errors that it caused. Returns HF_ENOMEM or HF_ETLS.
 */
static int take_errors(char *reason, size_t size)
{
	unsigned long code = ERR_get_error();
	bool has_failed_allocation = false;

	explain_error(code, reason, size);
	for (; code; code = ERR_get_error())
		has_failed_allocation |= is_out_of_memory(code);
	return has_failed_allocation ? HF_ENOMEM : HF_ETLS;
}

static int refuse_file(char *why, size_t why_size, const char *setting, const char *file)
{
	char reason[256];

	if (take_errors(reason, sizeof(reason)) == HF_ENOMEM)
		return HF_ENOMEM;
	return refuse(HF_ETLS, why, why_size, "%s: cannot use '%.200s': %s", setting, file, reason);
}

/* Returns the result of a failed read or write as a negative errno; 0 at the end of the stream. */
static ssize_t classify(struct hf__tls *tls, int result)
{
	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE: return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN: return 0;
	case SSL_ERROR_SYSCALL: return tls->io_error ? -tls->io_error : -ECONNRESET;
	default: break;
	}
	return take_errors(tls->reason, sizeof(tls->reason)) == HF_ENOMEM ? -ENOMEM : -EPROTO;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* Without this OpenSSL would ask for a key's passphrase on the terminal. */
static int refuse_passphrase(char *buf, int size, int is_writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)is_writing;
	(void)arg;
	return -1;
}

static int load_trust(struct hf__tls *tls, const struct hf__redis_settings *cfg, char *why,
                      size_t why_size)
{
	if (tls->insecure) {
		SSL_CTX_set_verify(tls->context, SSL_VERIFY_NONE, NULL);
		return 0;
	}
	SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	if (cfg->tls_ca_file && !SSL_CTX_load_verify_file(tls->context, cfg->tls_ca_file))
		return refuse_file(why, why_size, "tls_ca", cfg->tls_ca_file);
	if (!cfg->tls_ca_file && !SSL_CTX_set_default_verify_paths(tls->context))
		return refuse_file(why, why_size, "tls_ca", "the system's store");
	return 0;
}

static int load_identity(struct hf__tls *tls, const struct hf__redis_settings *cfg, char *why,
                         size_t why_size)
{
	if (!cfg->tls_cert_file)
		return 0;
	if (SSL_CTX_use_certificate_chain_file(tls->context, cfg->tls_cert_file) != 1)
		return refuse_file(why, why_size, "tls_cert", cfg->tls_cert_file);
	/* This checks as well that the key belongs to the certificate. */
	if (SSL_CTX_use_PrivateKey_file(tls->context, cfg->tls_key_file, SSL_FILETYPE_PEM) != 1)
		return refuse_file(why, why_size, "tls_key", cfg->tls_key_file);
	return 0;
}

static int make_context(struct hf__tls *tls)
{
	tls->context = SSL_CTX_new(TLS_client_method());
	if (!tls->context)
		return HF_ENOMEM;
	if (!SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION))
		return HF_ENOMEM;
	/* RESP says where a reply ends, so a stream that is cut off cannot pass for a whole one. */
	SSL_CTX_set_options(tls->context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(tls->context,
	                 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_quiet_shutdown(tls->context, 1);
	SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_default_passwd_cb(tls->context, refuse_passphrase);
	return 0;
}

/* An empty name would switch the check off, one with a leading dot would match whole domains. */
static int take_name(struct hf__tls *tls, const char *name, char *why, size_t why_size)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (!name || !*name || *name == '.' || strlen(name) > TLSEXT_MAXLEN_host_name)
		return refuse(HF_ETLS, why, why_size,
		              "tls_server_name: expected the host name or address in the server's "
		              "certificate");
	char *copy = strdup(name);
	if (!copy)
		return HF_ENOMEM;
	free(tls->server_name);
	tls->server_name = copy;
	tls->is_address =
		inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
	return 0;
}

int hf__tls_name(struct hf__tls *tls, const char *name, char *why, size_t why_size)
{
	assert(tls && name);
	(void)pthread_mutex_lock(&tls->mutex);
	int rc = take_name(tls, name, why, why_size);
	(void)pthread_mutex_unlock(&tls->mutex);
	return rc;
}

static int set_up(struct hf__tls *tls, const struct hf__redis_settings *cfg, char *why,
                  size_t why_size)
{
	int rc = make_context(tls);

	tls->insecure = cfg->tls_insecure;
	tls->method = make_method();
	if (!tls->method)
		return HF_ENOMEM;
	if (rc == 0 && cfg->tls_server_name)
		rc = take_name(tls, cfg->tls_server_name, why, why_size);
	if (rc == 0)
		rc = load_trust(tls, cfg, why, why_size);
	if (rc == 0)
		rc = load_identity(tls, cfg, why, why_size);
	return rc;
}

static struct hf__tls *make(void)
{
	struct hf__tls *tls = calloc(1, sizeof(*tls));
	if (!tls)
		return NULL;
	if (pthread_mutex_init(&tls->mutex, NULL) != 0) {
		free(tls);
		return NULL;
	}
	tls->pid = getpid();
	tls->fd = -1;
	return tls;
}

int hf__tls_share(struct hf__tls *tls, struct hf__tls **ret_tls)
{
	struct hf__tls *other = make();
	if (!other)
		return HF_ENOMEM;
	other->insecure = tls->insecure;
	other->method = make_method();
	if (tls->server_name) {
		other->server_name = strdup(tls->server_name);
		other->is_address = tls->is_address;
	}
	if (!other->method || (tls->server_name && !other->server_name) ||
	    !SSL_CTX_up_ref(tls->context)) {
		hf__tls_free(other);
		return HF_ENOMEM;
	}
	other->context = tls->context;
	*ret_tls = other;
	return 0;
}

int hf__tls_new(const struct hf__redis_settings *cfg, struct hf__tls **ret_tls, char *why,
                size_t why_size)
{
	struct hf__tls *tls = make();
	int rc;

	assert(cfg && ret_tls);
	if (!tls)
		return HF_ENOMEM;
	ERR_clear_error();
	rc = set_up(tls, cfg, why, why_size);
	ERR_clear_error();
	if (rc < 0)
		hf__tls_free(tls);
	else
		*ret_tls = tls;
	return rc;
}

/* ---- connections ----------------------------------------------------------------------------- */

/*
 * If another thread held the mutex at a fork, it stays locked in the child, and the SSL is in an
 * unknown state. Then the child leaves the memory alone.
 */
static bool lock_to_stop(struct hf__tls *tls)
{
	if (tls->pid != getpid())
		return pthread_mutex_trylock(&tls->mutex) == 0;
	return pthread_mutex_lock(&tls->mutex) == 0;
}

/* mutex held */
static void drop(struct hf__tls *tls)
{
	SSL_free(tls->ssl);
	tls->ssl = NULL;
	tls->fd = -1;
	tls->is_at_end = false;
	tls->io_error = 0;
	tls->reason[0] = '\0';
}

static bool name_peer(struct hf__tls *tls, SSL *ssl)
{
	if (tls->is_address)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), tls->server_name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, tls->server_name) == 1 &&
	       SSL_set_tlsext_host_name(ssl, tls->server_name) == 1;
}

static SSL *make_ssl(struct hf__tls *tls)
{
	SSL *ssl = SSL_new(tls->context);
	BIO *bio = BIO_new(tls->method);

	if (!ssl || !bio || !name_peer(tls, ssl)) {
		SSL_free(ssl);
		(void)BIO_free(bio);
		return NULL;
	}
	BIO_set_data(bio, tls);
	SSL_set_bio(ssl, bio, bio);
	SSL_set_connect_state(ssl);
	return ssl;
}

int hf__tls_start(struct hf__tls *tls, int fd)
{
	bool is_made;

	assert(tls && fd >= 0 && tls->server_name);
	(void)pthread_mutex_lock(&tls->mutex);
	drop(tls);
	tls->fd = fd;
	ERR_clear_error();
	tls->ssl = make_ssl(tls);
	is_made = tls->ssl != NULL;
	ERR_clear_error();
	(void)pthread_mutex_unlock(&tls->mutex);
	return is_made ? 0 : HF_ENOMEM;
}

/* mutex held; errors of an earlier call would be taken for those of the next one */
static void clear_errors(struct hf__tls *tls)
{
	ERR_clear_error();
	tls->io_error = 0;
}

/* mutex held */
static int explain_handshake(struct hf__tls *tls, ssize_t result, char *why, size_t why_size)
{
	long verdict = SSL_get_verify_result(tls->ssl);
	const char *name = tls->server_name;

	if (result == -ENOMEM)
		return HF_ENOMEM;
	if (!tls->insecure && verdict != X509_V_OK)
		return refuse(HF_ETLS, why, why_size, "certificate of '%s' is not valid: %s", name,
		              X509_verify_cert_error_string(verdict));
	if (result == -EPROTO)
		return refuse(HF_ETLS, why, why_size, "TLS handshake with '%s' failed: %s", name,
		              tls->reason);
	if (result == 0)
		return refuse(HF_ETLS, why, why_size,
		              "'%s' closed the connection in the TLS handshake", name);
	errno = (int)-result;
	return refuse(HF_ETLS, why, why_size, "TLS handshake with '%s' failed: %m", name);
}

int hf__tls_handshake(struct hf__tls *tls, bool *ret_want_write, char *why, size_t why_size)
{
	ssize_t result;
	int done;
	int rc;

	(void)pthread_mutex_lock(&tls->mutex);
	assert(tls->ssl);
	clear_errors(tls);
	done = SSL_do_handshake(tls->ssl);
	result = done == 1 ? 1 : classify(tls, done);
	if (result == 1) {
		rc = 1;
	} else if (result == -EAGAIN) {
		*ret_want_write = SSL_want_write(tls->ssl);
		rc = 0;
	} else {
		rc = explain_handshake(tls, result, why, why_size);
	}
	ERR_clear_error();
	(void)pthread_mutex_unlock(&tls->mutex);
	return rc;
}

ssize_t hf__tls_recv(struct hf__tls *tls, void *buf, size_t n)
{
	size_t got = 0;
	ssize_t result = -ENOTCONN;

	assert(n > 0);
	(void)pthread_mutex_lock(&tls->mutex);
	if (tls->ssl) {
		clear_errors(tls);
		result = SSL_read_ex(tls->ssl, buf, n, &got) ? (ssize_t)got : classify(tls, 0);
		ERR_clear_error();
	}
	(void)pthread_mutex_unlock(&tls->mutex);
	return result;
}

ssize_t hf__tls_send(struct hf__tls *tls, const void *buf, size_t n)
{
	size_t sent = 0;
	ssize_t result = -ENOTCONN;

	assert(n > 0);
	(void)pthread_mutex_lock(&tls->mutex);
	if (tls->ssl) {
		clear_errors(tls);
		result = SSL_write_ex(tls->ssl, buf, n, &sent) ? (ssize_t)sent : classify(tls, 0);
		ERR_clear_error();
	}
	(void)pthread_mutex_unlock(&tls->mutex);
	return result == 0 ? -EPIPE : result;
}

void hf__tls_reason(struct hf__tls *tls, char *why, size_t why_size)
{
	(void)pthread_mutex_lock(&tls->mutex);
	(void)refuse(0, why, why_size, "%s", tls->reason);
	(void)pthread_mutex_unlock(&tls->mutex);
}

void hf__tls_stop(struct hf__tls *tls)
{
	assert(tls);
	if (!lock_to_stop(tls))
		return;
	drop(tls);
	(void)pthread_mutex_unlock(&tls->mutex);
}

void hf__tls_free(struct hf__tls *tls)
{
	if (!tls || !lock_to_stop(tls))
		return;
	drop(tls);
	(void)pthread_mutex_unlock(&tls->mutex);
	(void)pthread_mutex_destroy(&tls->mutex);
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	free(tls->server_name);
	free(tls);
}
