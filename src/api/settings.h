/* What a client needs to know to connect, gathered from options, URL and environment. */
#ifndef HF_API_SETTINGS_H
#define HF_API_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/holdfast.h>

#include "redis/settings.h"
#include "zk/settings.h"

/* Owns all its texts. */
struct hf__settings {
	bool tls;
	bool embedded;     /* the address is that of the embedded server: no host, no socket path */
	char *host;        /* NULL for unix sockets and the embedded server */
	int port;          /* 0 where there is no host */
	char *socket_path; /* NULL for TCP */
	char *user;        /* NULL: the server's default user */
	char *password;    /* NULL: do not authenticate; never NULL if there is a user */
	int database;      /* 0 to 65535 */
	char *client_name; /* never NULL */
	char *tls_ca_file; /* NULL: the system's store; never with TLS to ZooKeeper, as the next two */
	char *tls_cert_file;   /* NULL: no client certificate */
	char *tls_key_file;    /* given exactly if tls_cert_file is */
	char *tls_server_name; /* never NULL with TLS to Redis, always to ZooKeeper */
	bool tls_insecure;
	int64_t connect_timeout_ms;
	int64_t command_timeout_ms;
	int64_t subscribe_timeout_ms;
	int64_t watchdog_ms;
	int64_t fair_wait_ms;
	int64_t peer_skew_ms;
	char *name_prefix; /* NULL: none */
	int watchdog_batch;
	bool lazy;
	bool zookeeper;
	char *hosts;                     /* of ZooKeeper: host:port,host:port */
	char *chroot;                    /* of ZooKeeper: "" or "/path"; never NULL */
	int64_t session_ms;              /* of ZooKeeper, as wished for */
	char *auth;                      /* of ZooKeeper: "user:password", or NULL */
	char *acl;                       /* as given, or NULL */
	bool acl_open;                   /* everybody may use our nodes */
	struct hf__redis_settings redis; /* what the backend of this URL gets; the other is empty */
	struct hf__zk_settings zk;
	char *shown; /* the address without secrets, for messages: "redis://host:6379/0" */
};

/*
 * A NULL url takes $HOLDFAST_URL; options may be NULL, and are of this release. Options win over the URL, the URL over the environment.
 *
 * Returns 0, HF_EINVAL (the text names the setting), HF_ESYSTEM (the password file cannot be read)
 * or HF_ENOMEM. After a failure the struct is zeroed.
 */
int hf__settings_init(struct hf__settings *cfg, const char *url, const hf_client_options *options,
                      char *why, size_t why_size);

/* Wipes the secrets and frees. A zeroed struct is allowed. */
void hf__settings_done(struct hf__settings *cfg);

#endif
