/* The settings of a client, gathered from its options, the URL and the environment. */
#ifndef HF_API_SETTINGS_H
#define HF_API_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/holdfast.h>

#include "redis/redis_settings.h"
#include "zk/zk_settings.h"

/* Owns all its texts; the parts for the backends point into them. */
struct hf__settings {
	/* The address. */
	char *shown;    /* the address without secrets, for messages: "redis://host:6379/0" */
	bool zookeeper; /* the URL names ZooKeeper, not Redis */
	bool tls;
	bool embedded;     /* Redis: the embedded server, with neither host nor socket path */
	char *host;        /* Redis; NULL for a unix socket and the embedded server */
	int port;          /* Redis; 0 without a host */
	char *socket_path; /* Redis; NULL for TCP */
	char *hosts;       /* ZooKeeper: host:port,host:port */
	enum hf__deployment deployment;           /* Redis */
	struct hf__host host_list[HF__HOSTS_MAX]; /* Redis with several hosts */
	int host_count;
	char *host_names;  /* what the names in the list point into */
	char *master_name; /* Redis with Sentinel */
	char *chroot;      /* ZooKeeper: "" or "/path", never NULL */

	/*
	 * One field for each row of the table; redis/redis_settings.h and zk/zk_settings.h say
	 * more.
	 */
	char *user;
	char *password;
	int database;
	char *client_name;
	char *tls_ca_file;
	char *tls_cert_file;
	char *tls_key_file;
	char *tls_server_name;
	bool tls_insecure;
	int64_t connect_timeout_ms;
	int64_t command_timeout_ms;
	int64_t subscribe_timeout_ms;
	int64_t watchdog_ms; /* on ZooKeeper always the same as session_ms */
	int64_t fair_wait_ms;
	int64_t peer_skew_ms;
	int replicas;
	int64_t sync_timeout_ms;
	char *name_prefix; /* NULL: none */
	char *history;     /* as given, or NULL */
	int watchdog_batch;
	bool lazy;
	bool metrics;
	char *sentinel_user;
	char *sentinel_password;
	char *sharded; /* as given, or NULL */
	char *nat;
	int64_t session_ms;
	char *auth;                    /* "user:password", or NULL */
	char *acl;                     /* as given, or NULL */
	bool acl_open;                 /* what acl and auth amount to */
	enum hf__sharded sharded_mode; /* what sharded means */
	int history_entries;           /* what history means; 0: none is kept */
	bool history_contended;

	/* What the backend gets; only that of the URL is filled in. */
	struct hf__redis_settings redis;
	struct hf__zk_settings zk;
};

/*
 * A NULL url takes $HOLDFAST_URL. Options may be NULL, and are of this release. Options win over
 * the URL, the URL over the environment.
 *
 * Returns 0, HF_EINVAL (the text names the setting), HF_ESYSTEM (the password file cannot be read)
 * or HF_ENOMEM. After a failure the struct is zeroed.
 */
int hf__settings_init(struct hf__settings *settings, const char *url,
                      const hf_client_options *options, char *why, size_t why_size);

/* Wipes the secrets and frees. A zeroed struct is allowed. */
void hf__settings_done(struct hf__settings *settings);

#endif
