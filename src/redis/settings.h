/* What the Redis backend needs to know about its server. Texts are borrowed from the client. */
#ifndef HF_REDIS_SETTINGS_H
#define HF_REDIS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct hf__redis_settings {
	const char *shown;       /* the address without secrets, for messages */
	bool embedded;           /* the embedded server: neither host nor socket path */
	const char *host;        /* NULL for a unix socket and the embedded server */
	int port;                /* 0 without a host */
	const char *socket_path; /* NULL for TCP */
	bool tls;
	const char *tls_ca_file;     /* NULL: the system's store */
	const char *tls_cert_file;   /* NULL: no client certificate */
	const char *tls_key_file;    /* set exactly if tls_cert_file is */
	const char *tls_server_name; /* never NULL with TLS */
	bool tls_insecure;
	const char *user;        /* NULL: the server's default user */
	const char *password;    /* NULL: do not authenticate; never NULL if user is set */
	int database;            /* 0 to 65535 */
	const char *client_name; /* never NULL */
	int64_t connect_timeout_ms;
	int64_t subscribe_timeout_ms;
	int64_t watchdog_ms;
};

#endif
