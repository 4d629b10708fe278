/*
 * What the ZooKeeper backend needs to know about its servers. Texts are borrowed from the client.
 */
#ifndef HF_ZK_ZK_SETTINGS_H
#define HF_ZK_ZK_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct hf__zk_settings {
	const char *shown;  /* the address without secrets, for messages */
	const char *hosts;  /* host:port,host:port */
	const char *chroot; /* "" or "/path"; never NULL */
	bool tls;           /* the three files are set exactly with TLS */
	const char *tls_ca_file;
	const char *tls_cert_file;
	const char *tls_key_file;
	const char *auth;   /* "user:password", or NULL */
	bool acl_open;      /* everybody may use our nodes */
	int64_t session_ms; /* the session timeout to request */
	int64_t connect_timeout_ms;
};

#endif
