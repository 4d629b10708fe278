/* What the Redis backend needs to know about its server. Texts are borrowed from the client. */
#ifndef HF_REDIS_REDIS_SETTINGS_H
#define HF_REDIS_REDIS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#define HF__HOSTS_MAX 32

/* How the servers of one URL belong together. */
enum hf__deployment {
	HF__SINGLE,
	HF__REPLICATED, /* several servers; the one that is the master counts */
	HF__SENTINEL,   /* the hosts are Sentinels, which name the master */
	HF__CLUSTER,    /* the hosts are some nodes of a cluster, which name all masters */
};

struct hf__host {
	const char *name;
	int port;
};

/* How releases are announced on a cluster. */
enum hf__sharded {
	HF__SHARDED_AUTO, /* as the servers can */
	HF__SHARDED_ON,   /* to subscribers of the slot's shard */
	HF__SHARDED_OFF,  /* to subscribers at every node */
};

struct hf__redis_settings {
	const char *shown; /* the address without secrets, for messages */
	enum hf__deployment deployment;
	const struct hf__host *hosts;  /* if the deployment has several */
	int host_count;                /* 0 to HF__HOSTS_MAX */
	const char *master_name;       /* with Sentinel only */
	enum hf__sharded sharded;      /* with a cluster only */
	const char *nat;               /* rules for addresses that nodes name; NULL: none */
	const char *sentinel_user;     /* NULL: the Sentinels' default user */
	const char *sentinel_password; /* NULL: do not authenticate at Sentinels */
	bool embedded;                 /* the embedded server: neither host nor socket path */
	const char *host;              /* NULL without TCP, and with several hosts */
	int port;                      /* 0 without a host */
	const char *socket_path;       /* NULL for TCP */
	bool tls;
	const char *tls_ca_file;     /* NULL: the system's store */
	const char *tls_cert_file;   /* NULL: no client certificate */
	const char *tls_key_file;    /* set exactly if tls_cert_file is */
	const char *tls_server_name; /* NULL with several hosts: the name of each */
	bool tls_insecure;
	const char *user;        /* NULL: the server's default user */
	const char *password;    /* NULL: do not authenticate; never NULL if user is set */
	int database;            /* 0 to 65535 */
	const char *client_name; /* never NULL */
	int64_t connect_timeout_ms;
	int64_t subscribe_timeout_ms;
	int64_t watchdog_ms;
	int64_t sync_timeout_ms; /* how long WAIT waits for replicas */
	const char *name_prefix; /* before the name of the history; NULL: none */
};

#endif
