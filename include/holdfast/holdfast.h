/*
 * Holdfast: distributed locks and synchronizers on Redis, Valkey or ZooKeeper. They are
 * wire-compatible with Java's Redisson and Curator, so C and Java processes share the same locks.
 *
 * Read these caveats first.
 *
 * - A lock is a lease. It is yours from the moment a call grants it until its valid-until, a point
 *   in time on this host's CLOCK_BOOTTIME. hf_lock_remaining() returns how much of that time is
 *   left. From valid-until on, the library never says that you hold the lock. It cannot stop code
 *   that was paused after it had checked.
 * - A server that loses its data (flushed, restarted empty, failed over to a replica that lagged)
 *   may grant a lock twice. The first holder is notified as soon as the library finds out.
 * - A request that was sent but not answered has an unknown outcome. The library resolves it on its
 *   own where it can. If the time runs out first, the result is HF_EUNKNOWN, never a guess.
 * - In the child of a fork() the parent's handles return HF_EFORKED and send nothing. The child has
 *   to open a client of its own.
 * - A hold belongs to its client. It outlives the thread and the lock handle that acquired it, and
 *   is renewed until it is released or lost, or the client is closed.
 *
 * Conventions.
 *
 * - Functions return 0 or a negative HF_E… number. hf_strerror() returns the text for that number,
 *   and hf_error_detail() describes the calling thread's last failure.
 * - Output parameters come last, are named ret_…, and are written on success only. They must not be
 *   NULL unless the comment allows it.
 * - Durations are in milliseconds. 0 means the default, and so does a field that is left out.
 * - A function marked "Local" sends nothing and never waits for the server. Any other function on a
 *   handle blocks until the server has answered. It blocks for at most command_timeout, unless it
 *   has a wait_ms of its own. Opening and closing a lock or another object is local, too.
 * - Every function can be called from any thread, but none from a signal handler. A blocking call
 *   is not a cancellation point. Callbacks must return; they must not longjmp() out. Nor may a
 *   signal handler siglongjmp() out of a call that it has interrupted: no thread could use the
 *   client after that, and none of its holds would be renewed.
 * - Strings and arrays that are passed in are copied. Strings that are returned belong to the
 *   library; the comment says how long they are valid. All …_close and …_free functions accept
 *   NULL.
 * - Options are structs that carry their own size, so that later releases can add fields. Create
 *   them with the macros: HF_ACQUIRE(.wait_ms = 5000). NULL stands for all defaults.
 * - "Redis" includes Valkey. Opening an object of a kind that the server in use does not have
 *   returns HF_ENOTSUP, and the detail says what to use instead.
 *
 * Licence: Apache-2.0.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#else
#define HF_API
#endif

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0

/* The version of the library that is loaded, as "0.1.0". Local. */
HF_API const char *hf_version(void);

/* ---- errors --------------------------------------------------------------------------------- */

/*
 * The numbers are permanent. They are grouped by who can act on them: -1 to -19 are about the lock,
 * -20 to -39 come from the server or the network, -40 to -59 are about the call itself.
 */
#define HF_ERRORS(X)                                                                               \
	X(HF_EBUSY, -1, "held by someone else")                                                    \
	X(HF_ETIMEDOUT, -2, "not acquired in time")                                                \
	X(HF_ECANCELLED, -3, "cancelled")                                                          \
	X(HF_ENOTHELD, -4, "not held by this owner")                                               \
	X(HF_ELOST, -5, "the lock was lost")                                                       \
	X(HF_EUNKNOWN, -6, "the outcome is unknown")                                               \
	X(HF_ECONFLICT, -7, "the key is not a lock of this kind")                                  \
	X(HF_EDEADLOCK, -8, "the owner would wait for itself")                                     \
	X(HF_EUNREACHABLE, -20, "the server cannot be reached")                                    \
	X(HF_EREFUSED, -21, "refused by the server")                                               \
	X(HF_EAUTH, -22, "user or password not accepted")                                          \
	X(HF_EDENIED, -23, "not permitted by the server's access rules")                           \
	X(HF_EREADONLY, -24, "the server is read-only")                                            \
	X(HF_ENOTNOW, -25, "the server is not ready")                                              \
	X(HF_EFULL, -26, "the server is out of memory")                                            \
	X(HF_EPROTOCOL, -27, "the server does not speak the protocol")                             \
	X(HF_ETLS, -28, "TLS failed")                                                              \
	X(HF_ENOQUORUM, -29, "too few servers answered for a majority")                            \
	X(HF_ENOREPLICAS, -30, "too few replicas acknowledged the grant")                          \
	X(HF_EINVAL, -40, "invalid argument")                                                      \
	X(HF_EFORKED, -41, "the handle belongs to the parent process")                             \
	X(HF_ECLOSED, -42, "the client is closed")                                                 \
	X(HF_ENOMEM, -43, "out of memory")                                                         \
	X(HF_ESYSTEM, -44, "the operating system refused a request")                               \
	X(HF_ENOTSUP, -45, "not supported")

enum hf_error {
#define HF__ENUM(name, number, text) name = (number),
	HF_ERRORS(HF__ENUM)
#undef HF__ENUM
};

/* The fixed text of an error number; never NULL. Local. */
HF_API const char *hf_strerror(int error);

/*
 * One line that describes a failure, such as "lost: lease of 3000 ms ended 2012 ms ago; now held by
 * 5c1e…:7". Read it right after a call has failed, in the same thread. In a completion callback it
 * describes the call that completed. It is never NULL, and valid until this thread's next call.
 * Local.
 */
HF_API const char *hf_error_detail(void);

/* ---- clients -------------------------------------------------------------------------------- */

/* A client is one connection to a server, or one session. Its identity is a UUID. */
typedef struct hf_client hf_client;
typedef struct hf_lock hf_lock;
typedef struct hf_owner hf_owner;
typedef struct hf_cancel hf_cancel;
typedef struct hf_event hf_event;
typedef struct hf_semaphore hf_semaphore;
typedef struct hf_permits hf_permits;
typedef struct hf_latch hf_latch;
typedef struct hf_barrier hf_barrier;
typedef struct hf_double_barrier hf_double_barrier;

/* The state of a hold, as far as this process can know. */
typedef enum hf_state {
	HF_FREE = 0,    /* not held by this owner */
	HF_HELD = 1,    /* held */
	HF_AT_RISK = 2, /* held, but less than a third of the lease is left */
	HF_LOST = 3,    /* no longer held, and not because its owner released it */
	HF_REVOKED = 4  /* only in events: held, and somebody asks the owner to give it up */
} hf_state;

/*
 * Called on every change of a hold's state, and with HF_REVOKED when somebody asks for the hold.
 * Runs on the dispatcher thread; see hf_client_fd().
 */
typedef void hf_event_fn(void *arg, const hf_event *event);

typedef enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARN, HF_LOG_ERROR } hf_log_level;

/* Called with one line, without a newline. Runs on the dispatcher thread. */
typedef void hf_log_fn(void *arg, hf_log_level level, const char *line);

/*
 * Maps a name that the program uses to the name on the server. Writes the latter, with a NUL, to
 * ret_name and returns 0; any other result rejects the name. The new name must be valid, and must
 * always be the same for the same name. Runs in the thread that made the call.
 */
typedef int hf_name_fn(void *arg, const char *name, char *ret_name, size_t size);

/*
 * Every field is optional. A field takes precedence over the URL, and the URL takes precedence over
 * the environment.
 *
 * In the comments below, the word before the colon is the name of the setting in the URL's query.
 * There a duration can have a unit (ms, s or m), and a flag is yes or no. docs/settings.md has a
 * table of all settings, with their ranges.
 */
typedef struct hf_client_options {
	size_t size; /* filled in by HF_CLIENT */
	/*
	 * user: User name for the login; the user part of the URL can give it too. Default: the
	 * server's default user. Environment: HOLDFAST_USER. Only for Redis.
	 */
	const char *user;
	/*
	 * password: Password; in a URL it belongs in the user part, not in the query. Default:
	 * none. Environment: HOLDFAST_PASSWORD. Only for Redis.
	 */
	const char *password;
	/*
	 * password_file: File whose first line is the password. Default: none. Environment:
	 * HOLDFAST_PASSWORD_FILE. Only for Redis.
	 */
	const char *password_file;
	/*
	 * db: Number of the database; the path of the URL can give it too. Default: 0. Only for
	 * Redis.
	 */
	int database;
	/*
	 * client_name: Name of the connection in the server's CLIENT LIST. Default: holdfast. Only
	 * for Redis.
	 */
	const char *client_name;
	/*
	 * tls_ca: File with the certificates to trust. Default: the system's store. Environment:
	 * HOLDFAST_TLS_CA. Only with TLS.
	 */
	const char *tls_ca_file;
	/*
	 * tls_cert: File with the client certificate. Default: none. Environment:
	 * HOLDFAST_TLS_CERT. Only with TLS.
	 */
	const char *tls_cert_file;
	/*
	 * tls_key: File with the key of the client certificate. Default: none. Environment:
	 * HOLDFAST_TLS_KEY. Only with TLS.
	 */
	const char *tls_key_file;
	/*
	 * tls_server_name: Host name that the server's certificate must contain. Default: the host
	 * that the client connects to. Only with TLS to Redis.
	 */
	const char *tls_server_name;
	/*
	 * tls_insecure: Encrypt the connection, but accept any certificate. Default: no. Only with
	 * TLS to Redis.
	 */
	int tls_insecure;
	/*
	 * connect_timeout: Time limit for one connection attempt, until the connection is ready for
	 * use. Default: 5000 ms.
	 */
	int64_t connect_timeout_ms;
	/* command_timeout: Time limit for the reply to one command. Default: 3000 ms. */
	int64_t command_timeout_ms;
	/*
	 * subscribe_timeout: Time limit for the reply to one subscription. Default: 7500 ms. Only
	 * for Redis.
	 */
	int64_t subscribe_timeout_ms;
	/*
	 * watchdog: Lease of locks that are acquired without one; it is renewed whenever a third of
	 * it has passed. Default: 30000 ms.
	 */
	int64_t watchdog_ms;
	/*
	 * watchdog_batch: Largest number of locks that one renewal script renews. Default: 100.
	 */
	int watchdog_batch;
	/* lazy: Connect on first use, not when the client is opened. Default: no. */
	int lazy;
	/* Called with event_arg when the state of a hold changes. */
	hf_event_fn *on_event;
	void *event_arg;
	/* Called with log_arg and a line to log. The library never prints anything itself. */
	hf_log_fn *on_log;
	void *log_arg;
	/* Leave a note with this text next to each hold; see hf_info. */
	const char *describe;
	/*
	 * name_prefix: Text that is put before every name; a program can set map_name instead.
	 * Default: none.
	 */
	const char *name_prefix;
	/*
	 * Called with map_arg to map each name. This is Redisson's NameMapper. If it is set,
	 * name_prefix is ignored.
	 */
	hf_name_fn *map_name;
	void *map_arg;
	/*
	 * fair_wait: How long a fair waiter without a deadline keeps its place among Java's waiters
	 * once its turn is overdue. Default: 300000 ms. Only for Redis.
	 */
	int64_t fair_wait_ms;
	/*
	 * peer_skew: How far the clocks of Java peers may be off; this time, but at most a quarter
	 * of the lease, is subtracted from the validity of permits and groups. Default: 1000 ms.
	 * Only for Redis.
	 */
	int64_t peer_skew_ms;
	/*
	 * session: Session timeout to request from the servers; watchdog, if given, takes
	 * precedence. Default: 30000 ms. Only for ZooKeeper.
	 */
	int64_t session_ms;
	/*
	 * auth: Credentials, as digest:user:password. Default: none. Environment: HOLDFAST_AUTH.
	 * Only for ZooKeeper.
	 */
	const char *auth;
	/*
	 * acl: Who may use the nodes that this client creates: creator or open. Default: creator
	 * with auth, otherwise open. Only for ZooKeeper.
	 */
	const char *acl;
	/*
	 * sentinel_user: User name for the login at the Sentinels. Default: the Sentinels' default
	 * user. Environment: HOLDFAST_SENTINEL_USER. Only for Sentinel.
	 */
	const char *sentinel_user;
	/*
	 * sentinel_password: Password for the Sentinels; in a URL, use sentinel_password_file
	 * instead. Default: none. Environment: HOLDFAST_SENTINEL_PASSWORD. Only for Sentinel.
	 */
	const char *sentinel_password;
	/*
	 * sentinel_password_file: File whose first line is the password for the Sentinels. Default:
	 * none. Environment: HOLDFAST_SENTINEL_PASSWORD_FILE. Only for Sentinel.
	 */
	const char *sentinel_password_file;
	/*
	 * sharded: How releases are announced on a cluster: auto, on (with SPUBLISH) or off (with
	 * PUBLISH); must match Java's setting. Default: auto. Only for Redis.
	 */
	const char *sharded;
	/*
	 * nat: Addresses to use instead of those that Sentinels or a cluster report, as from:to or
	 * from:port:to:port, separated by commas. Default: none. Only for Redis.
	 */
	const char *nat;
	/*
	 * replicas: Number of replicas that must acknowledge a grant before it counts, unless the
	 * call gives one. Default: 0. Only for Redis.
	 */
	int replicas;
	/*
	 * sync_timeout: Time limit for replicas to acknowledge a grant. Default: 1000 ms. Only for
	 * Redis.
	 */
	int64_t sync_timeout_ms;
	/*
	 * metrics: Measure how long locks are waited for and held; hf_client_metrics() writes the
	 * results. Default: no.
	 */
	int64_t metrics;
	/*
	 * history: Keep a history of holds on the server: no, yes, contended, or the number of
	 * entries to keep. Default: no. Only for Redis.
	 */
	const char *history;
} hf_client_options;

#define HF_CLIENT(...) (&(hf_client_options){.size = sizeof(hf_client_options), __VA_ARGS__})

/*
 * Opens a client for the server that the URL names, and connects to it. If the URL is NULL,
 * $HOLDFAST_URL is used.
 *
 *   redis://[[user]:password@]host[:6379][/db][?option=value&…]   TCP
 *   rediss://…                                                    TLS; certificate, name checked
 *   valkey://…, valkeys://…                                       same as redis://, rediss://
 *   redis://host[:6379],host[:6379]…                              replicas; the master is used
 *   redis+sentinel://host[:26379][,host…]/mymaster[/db][?…]       the master these Sentinels name
 *   redis+cluster://host[:6379][,host…][?…]                       the Redis Cluster of these nodes
 *   redis+unix:///path/to/socket[?…]                              unix socket
 *   embedded:                                                     this user's private server
 *   zk://host[:2181][,host[:2181]…][/chroot][?option=value&…]     ZooKeeper; the chroot must exist
 *   zks://host[:2281]…                                            the same with TLS
 *
 * Several hosts, +sentinel and +cluster are also possible with rediss, valkey and valkeys. The
 * client asks the Sentinels for the master every second, and they also announce each new one. When
 * the master changes, the connection to the old one is closed at once, and holds that are missing
 * at the new one are reported as lost.
 *
 * The client asks the nodes of a cluster which master serves which slot. It has one connection to
 * each master that it uses, 128 at most, and follows redirections. A cluster has only database 0. A
 * URL with one host is treated as redis+cluster://host if that host turns out to be a node of a
 * cluster.
 *
 * zks:// needs tls_ca, tls_cert and tls_key, and a libzookeeper_mt that was built with OpenSSL.
 * Debian's was not; with it, zks:// returns HF_ENOTSUP. libzookeeper_mt trusts the system's store
 * in addition to tls_ca, and does not check host names. If that is not secure enough, use zk:// to
 * a local tunnel that checks them, such as stunnel or socat.
 *
 * Blocks until the connection is ready for use, for at most connect_timeout. With lazy it does not
 * connect. It starts one thread, the keeper. The caller owns the client and closes it.
 *
 * HF_EINVAL: a part of the URL or an option is wrong; the detail names it. HF_EUNREACHABLE,
 * HF_EAUTH, HF_ETLS, HF_EPROTOCOL, HF_EREFUSED: there is no usable connection; the detail says why.
 * HF_ENOMEM, HF_ESYSTEM.
 */
HF_API int hf_client_open(const char *url, const hf_client_options *options,
                          hf_client **ret_client);

/*
 * Releases all holds, completes every waiting call with HF_ECLOSED, stops the client's threads and
 * runs the callbacks that are still due. Waits for the releases for at most one second, and on
 * ZooKeeper for at most two more seconds until the session is closed. Handles that were opened on
 * the client stay valid: their functions return HF_ECLOSED, and they are closed as usual.
 *
 * Inside one of the client's own callbacks it does nothing and returns HF_EINVAL. In a forked child
 * it only closes descriptors.
 */
HF_API int hf_client_close(hf_client *client);

/* The identity of this client in owner names on the server: 36 characters and a NUL. Local. */
HF_API int hf_client_uuid(hf_client *client, char ret_uuid[37]);

/*
 * Makes one round trip to the server. ret_us receives its duration in microseconds; it can be NULL.
 */
HF_API int hf_client_ping(hf_client *client, int64_t *ret_us);

/*
 * Returns the lease of locks that are acquired without one. On Redis this is the setting watchdog.
 * On ZooKeeper it is the part of the negotiated session timeout that can be relied on; before there
 * is a session, it is computed from the timeout that will be requested. Local.
 */
HF_API int hf_client_lease(hf_client *client, int64_t *ret_ms);

/*
 * For event loops: returns a descriptor that becomes readable when callbacks are due, or an error.
 * From the first call on, callbacks run only inside hf_client_dispatch(), and there is no
 * dispatcher thread. The descriptor belongs to the client. Returns HF_EINVAL inside a callback.
 * Local.
 */
HF_API int hf_client_fd(hf_client *client);

/*
 * Runs all callbacks that are due, in the calling thread. Returns the number of callbacks that it
 * ran, or an error. HF_EINVAL: hf_client_fd() has not been called yet. Local.
 */
HF_API int hf_client_dispatch(hf_client *client);

typedef struct hf_stats {
	size_t size;               /* set by the caller to sizeof(hf_stats) */
	uint64_t attempts;         /* asks sent for a lock */
	uint64_t grants;           /* locks granted, nested levels included */
	uint64_t releases;         /* releases confirmed */
	uint64_t waits;            /* acquires that were not granted at once */
	uint64_t timeouts;         /* acquires that returned HF_ETIMEDOUT */
	uint64_t renewals;         /* holds renewed */
	uint64_t renewal_scripts;  /* scripts sent to renew them */
	uint64_t renewal_failures; /* renewal scripts that failed or were not answered */
	uint64_t renewal_lag_ms;   /* longest time from when a renewal was due to its reply */
	uint64_t at_risk;          /* times a hold became at risk */
	uint64_t losses;           /* holds lost */
	uint64_t unknowns;         /* requests that were never answered */
	uint64_t wakeups;          /* release messages received */
	uint64_t reconnects;       /* connections made after the first */
	uint64_t commands;         /* commands sent, of all kinds */
	uint64_t held;             /* holds now */
	uint64_t waiting;          /* calls waiting for a lock now */
	uint64_t handovers;        /* grants handed over by a release in this process */
	uint64_t syncs;            /* times a grant waited for replicas to acknowledge it */
} hf_stats;

/*
 * A snapshot of the client's counters. Writes ret_stats->size bytes; a counter that this release
 * does not have is 0. Local.
 */
HF_API int hf_client_stats(hf_client *client, hf_stats *ret_stats);

typedef struct hf_node {
	size_t size;       /* set by the caller to sizeof(hf_node) */
	char address[256]; /* "10.0.0.1:6379", or the URL without secrets if there is one server */
	int connected;     /* 1: requests can be sent */
	int64_t connected_ms; /* for how long it has been connected; 0 if it is not */
	uint64_t reconnects;  /* connections made after the first */
	uint64_t commands;    /* commands sent to it, of all kinds */
	uint64_t held;        /* holds of its locks now */
	uint64_t waiting;     /* calls waiting for its locks now */
} hf_node;

/*
 * Describes the client's connection to one of its servers. On a Cluster these are the masters;
 * elsewhere there is only the one server that is used. Returns the number of servers, or an error.
 * If i is less than that number, ret_node->size bytes about the i-th server are written. The
 * masters of a Cluster may change between two calls. Local.
 *
 *     hf_node node = {.size = sizeof node};
 *     for (int i = 0; i < hf_client_node(client, i, &node); i++)
 *             printf("%s %s\n", node.address, node.connected ? "up" : "down");
 */
HF_API int hf_client_node(hf_client *client, int i, hf_node *ret_node);

/* ---- metrics -------------------------------------------------------------------------------- */

/*
 * A client that was opened with .metrics measures how long its calls wait and how long its locks
 * are held. The functions below write the results, and what the client holds now, as text for
 * Prometheus and every other collector that reads OpenMetrics. docs/metrics.md describes each
 * metric family. The library only measures and writes text: it starts no thread and opens no socket
 * for that.
 */
typedef enum hf_metrics_format {
	HF_OPENMETRICS = 0, /* application/openmetrics-text; version=1.0.0; charset=utf-8 */
	HF_PROMETHEUS = 1   /* text/plain; version=0.0.4; charset=utf-8 */
} hf_metrics_format;

typedef struct hf_metrics_options {
	size_t size;    /* filled in by HF_METRICS */
	int64_t format; /* enum hf_metrics_format */
	/* Labels for every sample, as app="orders",zone="a", 4000 bytes at most; NULL: none. */
	const char *labels;
	/*
	 * Split the gauges holdfast_held, holdfast_waiting and holdfast_hold_oldest_seconds by the
	 * names of locks. Only this many names are shown, 1000 at most: those for which most calls
	 * wait now. All others are combined under name="". 0: the gauges are not split.
	 */
	int64_t per_name;
	/* Not 0: leave out "# EOF", the last line of OpenMetrics, to add families of your own. */
	int64_t no_eof;
} hf_metrics_options;

#define HF_METRICS(...) (&(hf_metrics_options){.size = sizeof(hf_metrics_options), __VA_ARGS__})

/*
 * Called with one piece of the text, in the calling thread. Any result other than 0 ends the
 * output.
 */
typedef int hf_text_fn(void *arg, const char *bytes, size_t length);

/*
 * Passes the metrics of the client to write(), in pieces. Returns 0, or the result of write() if
 * that was not 0, or an error. HF_EINVAL: the client was opened without .metrics, or an option is
 * wrong. HF_ENOMEM. Local.
 */
HF_API int hf_client_metrics(hf_client *client, const hf_metrics_options *options,
                             hf_text_fn *write, void *arg);

/*
 * Writes the metrics into a file, for the textfile collector of node_exporter. The format is always
 * HF_PROMETHEUS, whatever the options say. Readers see the old file or the new one, never a part:
 * the text is written to a temporary file in the same folder, with mode 0644, which is then
 * renamed. HF_ESYSTEM: the file cannot be written, and the detail says why; the old file is
 * unchanged.
 */
HF_API int hf_client_metrics_file(hf_client *client, const char *path,
                                  const hf_metrics_options *options);

/* What a histogram measures. The histograms of acquires and holds combine all kinds of lock. */
typedef enum hf_histogram_id {
	HF_HISTOGRAM_WAIT = 1,    /* acquires that were granted: seconds waited */
	HF_HISTOGRAM_WAIT_FAILED, /* all other acquires: seconds waited */
	HF_HISTOGRAM_HOLD,        /* holds that have ended: seconds held */
	HF_HISTOGRAM_RENEWAL_LAG, /* renewals: seconds from when one was due to its confirmation */
	HF_HISTOGRAM_RENEWAL_MARGIN, /* renewals: the part of the lease that was left, 0 to 1 */
	HF_HISTOGRAM_ROUND_TRIP      /* commands: seconds until the answer */
} hf_histogram_id;

#define HF_HISTOGRAM_BOUNDS 32

typedef struct hf_histogram {
	size_t size;                           /* set by the caller to sizeof(hf_histogram) */
	uint64_t count;                        /* the number of values */
	double sum;                            /* their sum */
	uint64_t bounds;                       /* how many of the following are used */
	double bound[HF_HISTOGRAM_BOUNDS];     /* ascending */
	uint64_t at_most[HF_HISTOGRAM_BOUNDS]; /* the number of values not above that bound */
} hf_histogram;

/*
 * One histogram, for other systems. Writes ret_histogram->size bytes. HF_EINVAL: the client was
 * opened without .metrics. Local.
 */
HF_API int hf_histogram_get(hf_client *client, hf_histogram_id id, hf_histogram *ret_histogram);

/* ---- owners and cancel tokens --------------------------------------------------------------- */

/*
 * Inside this process, every hold belongs to an owner. By default that is the calling thread.
 * Create an owner of your own for tasks that move between threads and for asynchronous calls. It
 * works with every client. The caller frees it, which releases nothing. Local.
 */
HF_API int hf_owner_new(hf_owner **ret_owner);
HF_API void hf_owner_free(hf_owner *owner);

/*
 * A token that cancels the calls to which it is passed. Once fired it stays fired: later calls with
 * it return HF_ECANCELLED at once. The caller owns it, and it must outlive the calls that use it.
 * It can be fired in any thread, and also in callbacks. In the child of a fork(), a token that the
 * parent created cancels only the child's calls. Local.
 */
HF_API int hf_cancel_new(hf_cancel **ret_cancel);
HF_API void hf_cancel_fire(hf_cancel *cancel);
HF_API void hf_cancel_free(hf_cancel *cancel);

/* ---- locks ---------------------------------------------------------------------------------- */

/*
 * The kinds of locks, with Redisson's name for each. All except HF_READ are exclusive: among
 * Holdfast processes they exclude every other hold of the same name, whatever its kind. Java's
 * read-write lock does not see the other kinds, so if Java programs take part, use each name for
 * one kind only. An owner that already holds a name as another kind gets HF_EDEADLOCK, because it
 * would wait for itself.
 *
 * On ZooKeeper, HF_REENTRANT, HF_FAIR and HF_FENCED are the same lock, Curator's InterProcessMutex.
 * HF_READ and HF_WRITE are Curator's InterProcessReadWriteLock. HF_SIMPLE and HF_SIMPLE_FAIR are
 * its InterProcessSemaphoreMutex, which does not see the other kinds. HF_SPIN does not exist there.
 * Waiters are served in order, except those of HF_PLAIN.
 *
 * The owner of a counted lock can acquire it again; each acquire needs a release of its own.
 */
typedef enum hf_kind {
	/* getLock(): counted, waiters in no particular order. */
	HF_REENTRANT = 1,
	/* getFairLock(): counted, first come, first served across all processes. */
	HF_FAIR = 2,
	/* getReadWriteLock().readLock(): counted, any number of readers at once. */
	HF_READ = 3,
	/*
	 * getReadWriteLock().writeLock(): counted. Its owner may also read, and keep the read hold
	 * when it releases the write hold. A reader that tries to write gets HF_EDEADLOCK.
	 */
	HF_WRITE = 4,
	/* getFencedLock(): counted, and every grant has a token. */
	HF_FENCED = 5,
	/* getSpinLock(): counted; a waiter polls, and a release publishes nothing. */
	HF_SPIN = 6,
	/* getNonReentrantLock(): an owner that acquires it again gets HF_EDEADLOCK. */
	HF_SIMPLE = 7,
	/* getNonReentrantFairLock(): the same, first come, first served. */
	HF_SIMPLE_FAIR = 8,
	/* ZooKeeper only: the node of that name itself, as created by hand with `create -e`. */
	HF_PLAIN = 9,
	/*
	 * Leadership: an acquire makes its caller a candidate until it is elected, and a release
	 * resigns. Curator's LeaderLatch; on Redis a fair lock. A candidate can identify itself
	 * with .value, and hf_client_inspect() reports all candidates.
	 */
	HF_LEADER = 10
} hf_kind;

typedef struct hf_lock_options {
	size_t size; /* filled in by HF_LOCK */
	/*
	 * HF_SPIN only. The first pause between two attempts is spin_ms long (default 1). Each
	 * further pause is spin_factor times as long (default 2), plus a random part, up to
	 * spin_max_ms (default 128). With a factor of 1 every pause is spin_ms long (default 64).
	 */
	int64_t spin_ms;
	int64_t spin_max_ms;
	int64_t spin_factor;
} hf_lock_options;

#define HF_LOCK(...) (&(hf_lock_options){.size = sizeof(hf_lock_options), __VA_ARGS__})

/*
 * Opens a handle for one lock. Handles of the same kind and name on one client are the same lock,
 * and any number of threads can share a handle. The caller owns the handle and closes it. Local.
 *
 * A name is 1 to 512 bytes of UTF-8 without control characters. Braces are allowed only as a
 * closed, non-empty tag: "orders" and "{orders}:42" are valid. On ZooKeeper the name is a path
 * below the chroot, such as "shop/orders". Any other name returns HF_EINVAL, and the detail says
 * why.
 */
HF_API int hf_lock_open(hf_client *client, hf_kind kind, const char *name, hf_lock **ret_lock);
HF_API int hf_lock_open_with(hf_client *client, hf_kind kind, const char *name,
                             const hf_lock_options *options, hf_lock **ret_lock);

/*
 * Opens a handle for several values of one group, which are locked together or not at all. They are
 * stored in one hash. This is Redisson's getMultiLock(group, values) in a Java client that uses
 * StringCodec. The lock is counted. There can be 1 to 100 values; their order does not matter, and
 * duplicates count once. HF_ENOTSUP on ZooKeeper. Local.
 */
HF_API int hf_lock_open_group(hf_client *client, const char *group, const char *const *values,
                              size_t n, hf_lock **ret_lock);

/*
 * Opens a multi lock, which combines several locks of any kinds and on any clients. An acquire
 * takes all of them or none, within one deadline. It takes them in the order of their names,
 * whatever the order of the array, so two multi locks over the same locks cannot wait for each
 * other. Locks with equal names are taken in the order of their servers' URLs, which must then be
 * the same everywhere.
 *
 * 1 to 64 members, none of them a multi or red lock. The members' handles are copied and can be
 * closed. Local.
 *
 * All functions work on it except hf_lock_holder(), hf_lock_identity(), hf_lock_revoke(),
 * hf_lock_remove_waiter() and those for tokens. If a call fails for one member, either its effect
 * on the others is undone, or the failure is that of the whole lock; the detail names the member.
 * hf_lock_remaining() and hf_lock_ttl() return the smallest value of all members, and
 * hf_lock_is_locked() is 1 if any member is locked.
 */
HF_API int hf_lock_open_multi(hf_lock *const *members, size_t n, hf_lock **ret_lock);

/*
 * Opens a red lock: one lock on several independent servers, which is held while a majority of them
 * holds it. It survives a server that is down or loses its data. Pass one lock for each server, 3
 * to 15 in total, each opened on a client of its own. Their handles are copied and can be closed.
 *
 * An acquire asks all servers at once and gives each of them only a short time. It returns 0 if a
 * majority granted the lock and the lease, less the time that this took and the drift of the
 * clocks, has not expired. hf_lock_remaining() returns how long the majority guarantees the lock.
 * While a level without a lease is open, a member that was lost is acquired again, and a member
 * that could not be reached is acquired once its server can be reached. If a member is lost, the
 * event is about that member; hf_lock_state() says whether the red lock is lost. Handles with the
 * same members are the same lock.
 *
 * Blocks for at most one second, to find out from the servers whether they are independent. A
 * server that does not answer counts as independent. HF_EINVAL: two members are on the same server,
 * or on a server and its replica. HF_EDENIED: a server does not allow INFO. HF_ENOTSUP: a member is
 * on ZooKeeper. An acquire returns HF_ENOQUORUM if too few servers answered.
 */
HF_API int hf_lock_open_red(hf_lock *const *members, size_t n, hf_lock **ret_lock);

/* Frees the handle. Its holds remain, because they belong to the client. Local. */
HF_API void hf_lock_close(hf_lock *lock);

/* As wait_ms: try once, and do not wait for the lock. */
#define HF_NOWAIT ((int64_t)-1)

typedef struct hf_acquire_options {
	size_t size; /* filled in by HF_ACQUIRE */
	/* How long to wait; 0: without limit. HF_NOWAIT: try once. */
	int64_t wait_ms;
	/* 0: the watchdog's lease, which is renewed. Otherwise a fixed lease, 10 at least. */
	int64_t lease_ms;
	/* NULL: the calling thread. Asynchronous calls need an owner. */
	hf_owner *owner;
	/* Cancels the wait. */
	hf_cancel *cancel;
	/*
	 * 1: the hold gets a token even if the kind is not HF_FENCED. HF_EINVAL for HF_READ,
	 * groups, multi and red locks. On Redis it leaves a key that never expires. On ZooKeeper
	 * every hold has a token.
	 */
	int token;
	/*
	 * 1: each time that hf_lock_revoke() or a Java program asks for the hold, an event
	 * HF_REVOKED reports it. The first level decides this for the whole hold. HF_ENOTSUP on
	 * Redis, and for multi and red locks.
	 */
	int revocable;
	/*
	 * A text that others can read with hf_info_text(), 1000 bytes at most. On ZooKeeper it is
	 * stored in the node from the start of the wait, and is the id of Curator's LeaderLatch
	 * (HF_LEADER) or LeaderSelector (HF_REENTRANT). On Redis it needs a client with .describe,
	 * and replaces that text while the lock is held. HF_EINVAL for multi and red locks.
	 */
	const char *value;
	/*
	 * Redis only: the number of replicas, 100 at most, that must acknowledge the grant before
	 * it counts. 0: the client's setting; -1: none. The replicas have sync_timeout for that, in
	 * addition to wait_ms, or twice that time if other grants are already being acknowledged.
	 * If too few acknowledge it in that time, the call returns HF_ENOREPLICAS, even if the
	 * server does not have that many replicas. This covers the grant but not later renewals;
	 * docs/guarantees.md says how much it is worth. HF_ENOTSUP for red locks, and on ZooKeeper,
	 * where a majority of the ensemble acknowledges every grant.
	 */
	int64_t replicas;
} hf_acquire_options;

#define HF_ACQUIRE(...) (&(hf_acquire_options){.size = sizeof(hf_acquire_options), __VA_ARGS__})

/*
 * Acquires the lock, or one more level of it if this owner holds it already. Blocks for at most
 * wait_ms.
 *
 * 0: held, and valid now. A nested level never shortens the lease. If the owner's previous hold was
 * lost, this is the first level of a new hold, and the levels of the old one need not be released
 * any more.
 * HF_EBUSY (HF_NOWAIT only), HF_ETIMEDOUT, HF_ECANCELLED: not held; nothing stays on the server.
 * HF_ELOST: a nested acquire found that the outer hold is gone, or the lease had expired by the
 * time this thread ran again.
 * HF_EDEADLOCK: this owner already holds the lock in a way that excludes the new hold; see hf_kind.
 * HF_EUNKNOWN: an attempt was sent but not answered in time. Whatever it left on the server is
 * removed in the background or expires with its lease. This owner does not hold the lock.
 * HF_ECONFLICT: the key exists but is not a lock, or is another kind of lock; nothing was changed.
 * HF_ENOREPLICAS: the lock was granted, but too few replicas acknowledged that in time, so it was
 * released. The detail has both numbers. If the replicas could not be asked, the result can also be
 * HF_EUNKNOWN.
 * HF_EUNREACHABLE: there was no connection during the whole wait.
 * Other errors mean what hf_strerror() says.
 */
HF_API int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *options);

typedef struct hf_release_options {
	size_t size; /* filled in by HF_RELEASE */
	/* How long to wait for the server's reply; 0: command_timeout. Not HF_NOWAIT. */
	int64_t wait_ms;
	/* NULL: the calling thread. Asynchronous calls need an owner. */
	hf_owner *owner;
} hf_release_options;

#define HF_RELEASE(...) (&(hf_release_options){.size = sizeof(hf_release_options), __VA_ARGS__})

/*
 * Releases one level. From the start of the call that level counts as released, whatever the result
 * is. Once the release of the last level has begun, the lock is never renewed again. Blocks for at
 * most wait_ms.
 *
 * 0: released.
 * HF_ENOTHELD: this owner does not hold the lock. If another owner of this client does, the detail
 * names it. The usual reason is that the lock was acquired in another thread, without an hf_owner.
 * HF_EBUSY: another call of this owner on this lock was in progress the whole time. Nothing was
 * released.
 * HF_ELOST: the lock had already been lost; the detail says why and who holds it now. Each level
 * returns this, until all are released or this owner has acquired the lock again.
 * HF_EUNKNOWN: no reply within wait_ms. The library keeps trying in the background until the lease
 * has expired.
 *
 * A blocking release allocates no memory, unless it is for a multi or red lock whose members were
 * acquired one by one. An asynchronous release needs memory. If it returns HF_ENOMEM or
 * HF_ESYSTEM, nothing was released, except that a multi or red lock is then released in the
 * background.
 */
HF_API int hf_lock_release(hf_lock *lock);
HF_API int hf_lock_release_with(hf_lock *lock, const hf_release_options *options);

/*
 * Extends the hold so that it lasts at least lease_ms from now; never shortens it.
 * HF_ENOTHELD, HF_ELOST: as for a release. HF_EUNKNOWN: there was no answer; the hold continues as
 * before.
 */
HF_API int hf_lock_extend(hf_lock *lock, hf_owner *owner, int64_t lease_ms);

/*
 * For operators: takes the lock away from its holder, whichever owner that is, and wakes the
 * waiters. The holder finds out at its next renewal, or on ZooKeeper within half a second.
 * ret_was_held receives 1 if the lock was held, otherwise 0; it can be NULL.
 */
HF_API int hf_lock_force_release(hf_lock *lock, int *ret_was_held);

/*
 * For operators: removes one waiter from the server's queue. hf_info_waiter() returns its name.
 * This is for Java waiters, which keep their place for minutes after they have died; a waiter that
 * is alive joins the queue again. ret_removed receives 1, or 0 if there was no such waiter; it can
 * be NULL. HF_ENOTSUP: the lock has no queue on the server; on Redis only fair locks and leaders
 * have one.
 */
HF_API int hf_lock_remove_waiter(hf_lock *lock, const char *waiter, int *ret_removed);

/*
 * Asks the current holders to give the lock up. This is Curator's Revoker. Holders that acquired
 * the lock as revocable, Java holders included, are notified by every call, and decide for
 * themselves; others do not notice. The request overwrites the text that the holder left for others
 * (.value, .describe). ret_asked receives 1, or 0 if nobody holds the lock; it can be NULL.
 * HF_ENOTSUP on Redis, and for multi and red locks.
 */
HF_API int hf_lock_revoke(hf_lock *lock, int *ret_asked);

/*
 * These ask the server: whether anybody holds the lock, whether this owner does, and how many
 * levels this owner holds.
 */
HF_API int hf_lock_is_locked(hf_lock *lock, int *ret_locked);
HF_API int hf_lock_is_held(hf_lock *lock, hf_owner *owner, int *ret_held);
HF_API int hf_lock_hold_count(hf_lock *lock, hf_owner *owner, int64_t *ret_count);

/*
 * Returns the time until the server lets the lock expire: -2 if it is free, -1 if it does not
 * expire.
 */
HF_API int hf_lock_ttl(hf_lock *lock, int64_t *ret_ttl_ms);

/*
 * The holder's identity on the server: "<uuid>:<number>", or on ZooKeeper the name of its node. It
 * is empty if the lock is free. If there are several holders, it is that of one of them. It is
 * truncated to size, NUL included. HF_ENOTSUP for multi and red locks.
 */
HF_API int hf_lock_holder(hf_lock *lock, char *ret_holder, size_t size);

/*
 * The token of this owner's hold: a number that grows with every grant of the name, to any owner,
 * so that the protected resource can check it. 0 if the hold has no token. HF_ENOTHELD without a
 * hold. HF_EINVAL for HF_READ, groups, multi and red locks. Local.
 */
HF_API int hf_lock_token(hf_lock *lock, hf_owner *owner, int64_t *ret_token);

/*
 * The number of replicas that have acknowledged this owner's hold. It belongs to the latest acquire
 * with .replicas, and is at least the number requested there; 0 if there was no such acquire.
 * HF_ENOTHELD without a hold. HF_ENOTSUP for multi and red locks, and on ZooKeeper. Local.
 */
HF_API int hf_lock_durability(hf_lock *lock, hf_owner *owner, int *ret_replicas);

/*
 * The identity of this owner's hold, in the form of hf_lock_holder(). HF_ENOTHELD without a hold.
 * HF_ENOTSUP for multi and red locks. Local.
 */
HF_API int hf_lock_identity(hf_lock *lock, hf_owner *owner, char *ret_identity, size_t size);

/* The latest token granted on this name, to any owner; 0 if there has been none. */
HF_API int hf_lock_last_token(hf_lock *lock, int64_t *ret_token);

/*
 * How long this owner can still rely on the lock: the milliseconds until valid-until, or 0 if it
 * does not hold the lock, has lost it or has begun to release it. Local, and cheap enough to call
 * before every write. It takes no mutex, except on multi and red locks.
 */
HF_API int64_t hf_lock_remaining(hf_lock *lock, hf_owner *owner);

/* The same, as a state. */
HF_API hf_state hf_lock_state(hf_lock *lock, hf_owner *owner);

/* ---- asynchronous forms --------------------------------------------------------------------- */

/*
 * The completion of an asynchronous call. `result` is what the blocking form would return. `number`
 * is what that would write to its ret_ parameter; hf_lock_acquire_async() passes the token. `text`
 * is NULL except for hf_lock_holder_async(), which passes the holder, and
 * hf_permits_acquire_async(), which passes the ids, separated by spaces. It is valid during the
 * callback.
 *
 * A function whose name ends in _async starts what the function without that suffix does, and
 * returns without waiting for the result. If it returns 0, the completion runs exactly once, on the
 * dispatcher thread and never inside the call. Otherwise it never runs. If a cancel comes too late
 * to prevent a grant, the grant is delivered.
 */
typedef void hf_done_fn(void *arg, int result, int64_t number, const char *text);

HF_API int hf_lock_acquire_async(hf_lock *lock, const hf_acquire_options *options, hf_done_fn *done,
                                 void *arg);
HF_API int hf_lock_release_async(hf_lock *lock, const hf_release_options *options, hf_done_fn *done,
                                 void *arg);
HF_API int hf_lock_extend_async(hf_lock *lock, hf_owner *owner, int64_t lease_ms, hf_done_fn *done,
                                void *arg);
HF_API int hf_lock_force_release_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_remove_waiter_async(hf_lock *lock, const char *waiter, hf_done_fn *done,
                                       void *arg);
HF_API int hf_lock_revoke_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_is_locked_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_is_held_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg);
HF_API int hf_lock_hold_count_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg);
HF_API int hf_lock_ttl_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_holder_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_last_token_async(hf_lock *lock, hf_done_fn *done, void *arg);

/* ---- semaphores ----------------------------------------------------------------------------- */

/* How long to wait, and what can cancel it. */
typedef struct hf_wait_options {
	size_t size; /* filled in by HF_WAIT */
	/* How long to wait; 0: without limit. HF_NOWAIT: try once. */
	int64_t wait_ms;
	/* Cancels the wait. */
	hf_cancel *cancel;
	/* Semaphores only: as in hf_acquire_options. Without effect on latches and barriers. */
	int64_t replicas;
} hf_wait_options;

#define HF_WAIT(...) (&(hf_wait_options){.size = sizeof(hf_wait_options), __VA_ARGS__})

/*
 * A semaphore is a number of permits that anybody can acquire and anybody can release. It is
 * Redisson's getSemaphore(); HF_ENOTSUP on ZooKeeper. Permits have no owner: if a process dies, its
 * permits are lost. Use hf_permits if they must come back.
 *
 * A request that is repeated after a lost reply never counts twice. If the library cannot find out
 * in time whether a request was executed, the result is HF_EUNKNOWN. A number of permits is 0 to
 * 2147483647. Acquiring or releasing 0 permits succeeds and sends nothing.
 */
HF_API int hf_semaphore_open(hf_client *client, const char *name, hf_semaphore **ret_semaphore);
HF_API void hf_semaphore_close(hf_semaphore *semaphore);

/*
 * Acquires this many permits, all or none. Blocks for at most wait_ms.
 * HF_EBUSY (HF_NOWAIT only), HF_ETIMEDOUT, HF_ECANCELLED: none were acquired. With the first two,
 * the detail says so if the semaphore does not exist.
 * HF_EUNKNOWN: if they were acquired after all, they are released in the background.
 */
HF_API int hf_semaphore_acquire(hf_semaphore *semaphore, int64_t permits,
                                const hf_wait_options *options);
/* Releases permits, and creates the semaphore if it does not exist. */
HF_API int hf_semaphore_release(hf_semaphore *semaphore, int64_t permits);
/*
 * Releases permits if the semaphore exists. ret_done receives 1 if it does, otherwise 0; it can be
 * NULL.
 */
HF_API int hf_semaphore_release_if_exists(hf_semaphore *semaphore, int64_t permits, int *ret_done);
/*
 * Creates the semaphore with this many permits if it does not exist. ret_done receives 1 if it was
 * created, otherwise 0; it can be NULL. The semaphore expires after ttl_ms; 0: never.
 */
HF_API int hf_semaphore_try_set(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                int *ret_done);
/* Adds to the available permits; a negative number takes away, even below zero. */
HF_API int hf_semaphore_add(hf_semaphore *semaphore, int64_t permits);
/*
 * Acquires all available permits. ret_permits receives their number; it can be NULL. Replicas are
 * not asked to acknowledge this, whatever the client's setting.
 */
HF_API int hf_semaphore_drain(hf_semaphore *semaphore, int64_t *ret_permits);
/* The number of available permits. */
HF_API int hf_semaphore_available(hf_semaphore *semaphore, int64_t *ret_permits);

HF_API int hf_semaphore_acquire_async(hf_semaphore *semaphore, int64_t permits,
                                      const hf_wait_options *options, hf_done_fn *done, void *arg);
HF_API int hf_semaphore_release_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                                      void *arg);
HF_API int hf_semaphore_release_if_exists_async(hf_semaphore *semaphore, int64_t permits,
                                                hf_done_fn *done, void *arg);
HF_API int hf_semaphore_try_set_async(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                      hf_done_fn *done, void *arg);
HF_API int hf_semaphore_add_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                                  void *arg);
HF_API int hf_semaphore_drain_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg);
HF_API int hf_semaphore_available_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg);

/* ---- permits that expire -------------------------------------------------------------------- */

/*
 * A semaphore whose permits expire: Redisson's getPermitExpirableSemaphore(). Each permit has an id
 * of 32 hexadecimal digits. Any process that knows the id, Java processes included, can release or
 * extend the permit. If a permit is acquired without a lease, the watchdog renews it until it is
 * released, so the permits of a process that dies come back. States and events are those of locks;
 * the owner in an event is the id.
 *
 * On ZooKeeper this is Curator's InterProcessSemaphoreV2. The server stores which permits are
 * acquired, but not how many there are in total; every process has to know that. To set the total
 * for this client, call hf_permits_set(), hf_permits_try_set() or hf_permits_add(). It is kept for
 * as long as the client has a handle with that name. To read the total from a node that all
 * processes share, call hf_permits_total_from(). An acquire returns HF_EINVAL if the total is not
 * known, or if it asks for more than the total. Only the client that acquired a permit can release
 * or extend it. If a caller wants several permits, they are acquired one by one, and released again
 * if not all of them were granted in time, so two such callers can keep each other waiting.
 */
typedef char hf_permit_id[33];

HF_API int hf_permits_open(hf_client *client, const char *name, hf_permits **ret_permits);
HF_API void hf_permits_close(hf_permits *permits);

typedef struct hf_permits_options {
	size_t size; /* filled in by HF_PERMITS */
	/* How long to wait; 0: without limit. HF_NOWAIT: try once. */
	int64_t wait_ms;
	/* 0: the watchdog's lease, which is renewed. Otherwise a fixed lease, 10 at least. */
	int64_t lease_ms;
	/* Cancels the wait. */
	hf_cancel *cancel;
	/* As in hf_acquire_options. */
	int64_t replicas;
} hf_permits_options;

#define HF_PERMITS(...) (&(hf_permits_options){.size = sizeof(hf_permits_options), __VA_ARGS__})

/*
 * Acquires n permits, 1 to 1000, all or none. ret_ids must have room for n ids. Blocks for at most
 * wait_ms. The errors are those of hf_lock_acquire().
 */
HF_API int hf_permits_acquire(hf_permits *permits, int n, const hf_permits_options *options,
                              hf_permit_id *ret_ids);
/*
 * Releases n permits.
 * HF_ENOTHELD: one of them does not exist or has expired.
 * HF_ELOST: the same, for a permit that this client held, or this client had lost the permit
 * before.
 * HF_EUNKNOWN: there was no reply in time.
 * HF_ENOMEM: memory is exhausted, and the memory that is reserved for releases was in use by other
 * calls for too long. Nothing was released.
 * After the first three, the permits that this client acquired are released in the background, and
 * those of others stay as they are.
 */
HF_API int hf_permits_release(hf_permits *permits, const hf_permit_id *ids, int n);
/*
 * Lets the permit expire lease_ms from now, whether that is sooner or later than before. After
 * success the watchdog no longer renews it. After an error the watchdog continues; after
 * HF_EUNKNOWN it does so with the shorter of the two leases. HF_ELOST: this client held the permit
 * and has lost it.
 */
HF_API int hf_permits_extend(hf_permits *permits, const hf_permit_id id, int64_t lease_ms);
/*
 * Returns the time until the server lets the permit expire; -1: it does not expire. HF_ENOTHELD: it
 * does not exist.
 */
HF_API int hf_permits_lease(hf_permits *permits, const hf_permit_id id, int64_t *ret_ms);
/* As hf_lock_remaining() and hf_lock_state(), for a permit acquired by this client. Local. */
HF_API int64_t hf_permits_remaining(hf_permits *permits, const hf_permit_id id);
HF_API hf_state hf_permits_state(hf_permits *permits, const hf_permit_id id);
/* The number of available permits, of acquired permits, and of both together. */
HF_API int hf_permits_available(hf_permits *permits, int64_t *ret_permits);
HF_API int hf_permits_acquired(hf_permits *permits, int64_t *ret_permits);
HF_API int hf_permits_total(hf_permits *permits, int64_t *ret_permits);
/*
 * Sets the total if there is none. ret_done receives 1 if it was set, otherwise 0; it can be NULL.
 */
HF_API int hf_permits_try_set(hf_permits *permits, int64_t total, int *ret_done);
/* Sets the total, whatever it was. */
HF_API int hf_permits_set(hf_permits *permits, int64_t total);
/*
 * ZooKeeper only: from now on the total is read from the node with this name, which is Curator's
 * SharedCount, and the client notices when it changes. hf_permits_try_set() creates the node, and
 * hf_permits_set() and hf_permits_add() change it for everybody. The node must not be below the
 * name of the permits. HF_ENOTSUP on Redis.
 */
HF_API int hf_permits_total_from(hf_permits *permits, const char *name);
/* Adds to the total; a negative number takes away. */
HF_API int hf_permits_add(hf_permits *permits, int64_t n);

HF_API int hf_permits_acquire_async(hf_permits *permits, int n, const hf_permits_options *options,
                                    hf_done_fn *done, void *arg);
HF_API int hf_permits_release_async(hf_permits *permits, const hf_permit_id *ids, int n,
                                    hf_done_fn *done, void *arg);
HF_API int hf_permits_extend_async(hf_permits *permits, const hf_permit_id id, int64_t lease_ms,
                                   hf_done_fn *done, void *arg);
HF_API int hf_permits_lease_async(hf_permits *permits, const hf_permit_id id, hf_done_fn *done,
                                  void *arg);
HF_API int hf_permits_available_async(hf_permits *permits, hf_done_fn *done, void *arg);
HF_API int hf_permits_acquired_async(hf_permits *permits, hf_done_fn *done, void *arg);
HF_API int hf_permits_total_async(hf_permits *permits, hf_done_fn *done, void *arg);
HF_API int hf_permits_try_set_async(hf_permits *permits, int64_t total, hf_done_fn *done,
                                    void *arg);
HF_API int hf_permits_set_async(hf_permits *permits, int64_t total, hf_done_fn *done, void *arg);
HF_API int hf_permits_add_async(hf_permits *permits, int64_t n, hf_done_fn *done, void *arg);

/* ---- latches -------------------------------------------------------------------------------- */

/*
 * A latch has a count that is counted down, and calls can wait until it is zero. It is Redisson's
 * getCountDownLatch(); HF_ENOTSUP on ZooKeeper. On a cluster with sharded pub/sub, calls on a latch
 * whose name contains braces return HF_EINVAL, because nobody would receive its messages.
 */
HF_API int hf_latch_open(hf_client *client, const char *name, hf_latch **ret_latch);
HF_API void hf_latch_close(hf_latch *latch);

/*
 * Sets the count if the latch does not exist. ret_done receives 1 if it was set, otherwise 0; it
 * can be NULL.
 */
HF_API int hf_latch_try_set(hf_latch *latch, int64_t count, int *ret_done);
/*
 * Counts down by one. At zero the latch opens and no longer exists. A request that is repeated
 * after a lost reply counts once.
 */
HF_API int hf_latch_count_down(hf_latch *latch);
/* The count; 0 if the latch does not exist. */
HF_API int hf_latch_count(hf_latch *latch, int64_t *ret_count);
/*
 * Waits until the latch does not exist. Blocks for at most wait_ms. HF_EBUSY (HF_NOWAIT only),
 * HF_ETIMEDOUT, HF_ECANCELLED: it still exists.
 */
HF_API int hf_latch_wait(hf_latch *latch, const hf_wait_options *options);
/*
 * Deletes the latch, which opens it. ret_done receives 1, or 0 if there was no latch; it can be
 * NULL.
 */
HF_API int hf_latch_delete(hf_latch *latch, int *ret_done);

HF_API int hf_latch_try_set_async(hf_latch *latch, int64_t count, hf_done_fn *done, void *arg);
HF_API int hf_latch_count_down_async(hf_latch *latch, hf_done_fn *done, void *arg);
HF_API int hf_latch_count_async(hf_latch *latch, hf_done_fn *done, void *arg);
HF_API int hf_latch_wait_async(hf_latch *latch, const hf_wait_options *options, hf_done_fn *done,
                               void *arg);
HF_API int hf_latch_delete_async(hf_latch *latch, hf_done_fn *done, void *arg);

/* ---- barriers ------------------------------------------------------------------------------- */

/*
 * While a barrier is set, every caller waits at it; when anybody removes it, all of them continue.
 * It has no owner and outlives the process that set it. It is Curator's DistributedBarrier, and on
 * Redis a latch with a count of 1.
 */
HF_API int hf_barrier_open(hf_client *client, const char *name, hf_barrier **ret_barrier);
HF_API void hf_barrier_close(hf_barrier *barrier);

/* Sets and removes the barrier. The result is 0 even if it was already set or removed. */
HF_API int hf_barrier_set(hf_barrier *barrier);
HF_API int hf_barrier_remove(hf_barrier *barrier);
/* 1 if the barrier is set, otherwise 0. */
HF_API int hf_barrier_is_set(hf_barrier *barrier, int *ret_set);
/*
 * Waits until the barrier is not set. Blocks for at most wait_ms. HF_EBUSY (HF_NOWAIT only),
 * HF_ETIMEDOUT, HF_ECANCELLED: it is still set.
 */
HF_API int hf_barrier_wait(hf_barrier *barrier, const hf_wait_options *options);

HF_API int hf_barrier_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg);
HF_API int hf_barrier_remove_async(hf_barrier *barrier, hf_done_fn *done, void *arg);
HF_API int hf_barrier_is_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg);
HF_API int hf_barrier_wait_async(hf_barrier *barrier, const hf_wait_options *options,
                                 hf_done_fn *done, void *arg);

/*
 * The members of a double barrier enter together and leave together. It is Curator's
 * DistributedDoubleBarrier; HF_ENOTSUP on Redis. Each handle is one member, whichever thread uses
 * it.
 */
HF_API int hf_double_barrier_open(hf_client *client, const char *name, int members,
                                  hf_double_barrier **ret_barrier);
/* Frees the handle. A member that is inside stays inside until its client is closed. */
HF_API void hf_double_barrier_close(hf_double_barrier *barrier);

/*
 * Enters, and waits until all members have arrived. Blocks for at most wait_ms.
 * HF_EBUSY (HF_NOWAIT only), HF_ETIMEDOUT, HF_ECANCELLED: the member is not inside. Others may
 * count it for a moment longer, or without a connection until the session has ended.
 * HF_EDEADLOCK: this handle is already inside, or another call is entering or leaving with it.
 */
HF_API int hf_double_barrier_enter(hf_double_barrier *barrier, const hf_wait_options *options);
/*
 * Leaves, and waits until all members have left. Blocks for at most wait_ms.
 * HF_ENOTHELD: this handle is not inside.
 * HF_ELOST: the session expired while it was inside.
 * HF_EBUSY, HF_ETIMEDOUT, HF_ECANCELLED: not all members have left in time. If
 * hf_double_barrier_state() says that this member is still inside, it has to leave again.
 */
HF_API int hf_double_barrier_leave(hf_double_barrier *barrier, const hf_wait_options *options);
/* Whether this handle is inside, as hf_lock_state(). Local. */
HF_API hf_state hf_double_barrier_state(hf_double_barrier *barrier);

/* ---- who holds what ------------------------------------------------------------------------- */

/*
 * Holders can identify themselves. A client that is opened with .describe leaves a note next to
 * each hold of a lock or permit: a key HF_HOLDER_PREFIX:{<name>}:<owner>, which expires with the
 * hold. The note has four lines: the kind; the host; the process id, the server's time of the grant
 * and the lease in milliseconds, separated by spaces; and the text of .describe. On ZooKeeper the
 * note is the data of the node: the host, the process id and the text.
 *
 * After a second of waiting, such a client also leaves a note about the wait. It has the same form,
 * with the start of the wait as its time, and its key is HF_WAITER_PREFIX:{<name>}:<owner>. The
 * owner is also entered in a sorted set, HF_WAITER_PREFIX:{<name>}. Both are removed when the wait
 * is over, and expire 9 seconds after the process has died. If several threads of a client wait for
 * one lock, only the first of them asks the server and leaves a note. Waiters for groups and
 * semaphores do not leave notes.
 */
#define HF_HOLDER_PREFIX "holdfast_holder"
#define HF_WAITER_PREFIX "holdfast_waiter"

/*
 * One lock on the server, whichever client acquired it, Java clients included. An hf_info and its
 * texts are valid only during the callback. The functions below are local.
 */
typedef struct hf_info hf_info;

/* The name, with a NUL; it can contain any bytes. ret_length can be NULL. */
HF_API const char *hf_info_name(const hf_info *info, size_t *ret_length);
/*
 * "reentrant", "fair", "read", "write", "group", "permits", "leader", "plain" or "double-barrier".
 * On Redis the holder's note can be more exact. On ZooKeeper a simple lock is "permits".
 */
HF_API const char *hf_info_kind(const hf_info *info);
/* Milliseconds until the lock expires; -1: never, -2: it is free, but there are waiters. */
HF_API int64_t hf_info_ttl(const hf_info *info);
/* The latest token; 0: none. */
HF_API int64_t hf_info_token(const hf_info *info);
/*
 * The number of holders, and for each of the first 200 its owner on the server, the number of its
 * levels, and the host, process id and text of its note. Without a note the last three are "", 0
 * and "".
 */
HF_API size_t hf_info_holders(const hf_info *info);
HF_API const char *hf_info_owner(const hf_info *info, size_t i);
HF_API int64_t hf_info_count(const hf_info *info, size_t i);
HF_API const char *hf_info_host(const hf_info *info, size_t i);
HF_API int64_t hf_info_pid(const hf_info *info, size_t i);
HF_API const char *hf_info_text(const hf_info *info, size_t i);
/*
 * The time of the grant, in milliseconds since 1970 by the server's clock, and the lease with which
 * it was granted, in milliseconds; 0: not known. Both come from the note, so they are not known for
 * a Java holder. On ZooKeeper the time is known for every holder; the lease is the timeout of the
 * session, and is known only for holds of this client.
 */
HF_API int64_t hf_info_since(const hf_info *info, size_t i);
HF_API int64_t hf_info_lease(const hf_info *info, size_t i);
/*
 * The server's clock when it answered, in milliseconds since 1970; 0 on ZooKeeper, where it is not
 * known. The age of a hold is this time minus hf_info_since(), whatever the clock of this host
 * says.
 */
HF_API int64_t hf_info_server_time(const hf_info *info);
/*
 * The number of known waiters, and the owner on the server of each of the first 200. First come
 * those in the server's queue, in their order. Fair locks have such a queue, and on ZooKeeper all
 * locks except permits have one. Then come the other waiters that left a note, the longest wait
 * first. For each waiter there are the host, process id and text of its note, and the time when it
 * began to wait, in the form of hf_info_since(). Without a note these are "", 0, "" and 0.
 */
HF_API size_t hf_info_waiters(const hf_info *info);
HF_API const char *hf_info_waiter(const hf_info *info, size_t i);
HF_API const char *hf_info_waiter_host(const hf_info *info, size_t i);
HF_API int64_t hf_info_waiter_pid(const hf_info *info, size_t i);
HF_API const char *hf_info_waiter_text(const hf_info *info, size_t i);
HF_API int64_t hf_info_waiter_since(const hf_info *info, size_t i);
/*
 * The number of clients that wait for the lock, Java's included; -1: not known. On Redis these are
 * the clients that listen for its release, so a process counts once, however many of its threads
 * wait, and is still counted for a second after its wait. On a cluster without sharded pub/sub,
 * clients that listen at a node other than the name's master are not counted. The number is not
 * known if the user lacks the right to PUBSUB NUMSUB, or to PUBSUB SHARDNUMSUB on a cluster with
 * sharded pub/sub. On ZooKeeper it is not known for permits, nor if there are more than 200 holders
 * and waiters.
 */
HF_API int64_t hf_info_waiting_clients(const hf_info *info);

/* Called in the calling thread. Any result other than 0 ends the list and is returned. */
typedef int hf_info_fn(void *arg, const hf_info *info);

/*
 * Reports all locks whose names on the server match the pattern, which has the syntax of SCAN;
 * NULL: all locks. It walks over all keys in small steps, so a lock that appears or disappears
 * meanwhile may be reported, left out, or reported twice. While slots move, this is true of any
 * lock of a Cluster. Each step blocks for at most command_timeout.
 */
HF_API int hf_client_list(hf_client *client, const char *pattern, hf_info_fn *report, void *arg);

typedef struct hf_list_options {
	size_t size; /* filled in by HF_LIST */
	/* As for hf_client_list(). */
	const char *pattern;
	/*
	 * The largest share of the server's time to use, in percent, 1 to 100: after each request
	 * the call pauses in proportion to the time that the answer took. 0: it does not pause.
	 */
	int64_t duty_percent;
	/*
	 * Not 0: report only locks that somebody waits for. On Redis they are found by the channels
	 * that clients listen to, without a walk over all keys; at most 1000 per master are
	 * reported. Spin locks are missing, because their waiters do not listen.
	 */
	int64_t waited;
	/* NULL: the call cannot be cancelled. */
	hf_cancel *cancel;
} hf_list_options;

#define HF_LIST(...) (&(hf_list_options){.size = sizeof(hf_list_options), __VA_ARGS__})

/*
 * The same with options. HF_EDENIED with .waited: the user lacks the right to PUBSUB CHANNELS, or
 * to PUBSUB SHARDCHANNELS on a cluster with sharded pub/sub.
 */
HF_API int hf_client_list_with(hf_client *client, const hf_list_options *options,
                               hf_info_fn *report, void *arg);
/* Reports one lock, of any kind. If it is free and nobody waits for it, report() is not called. */
HF_API int hf_client_inspect(hf_client *client, const char *name, hf_info_fn *report, void *arg);
/*
 * Reports several locks in the order of the array, as hf_client_inspect() does. One request is sent
 * for up to 100 of them; on a cluster and on ZooKeeper, one for each. Each request blocks for at
 * most command_timeout. HF_EINVAL: one of the names is not valid; then none is reported.
 */
HF_API int hf_client_inspect_many(hf_client *client, const char *const *names, size_t n,
                                  hf_info_fn *report, void *arg);

/*
 * Reports facts about the server that matter to locks. If the server has a name for a fact, that
 * name is used, as in "maxmemory_policy", "allkeys-lru". On a cluster the facts are those of one
 * master. The callback runs in the calling thread, and its texts are valid only while it runs.
 */
typedef void hf_fact_fn(void *arg, const char *name, const char *value);
HF_API int hf_client_facts(hf_client *client, hf_fact_fn *report, void *arg);
/*
 * The same for the server with this address, which hf_client_node() reports; on a cluster this is
 * one of the masters. Blocks for at most command_timeout. HF_EINVAL: the client has no such server.
 */
HF_API int hf_client_facts_of(hf_client *client, const char *address, hf_fact_fn *report,
                              void *arg);

/* ---- the history ---------------------------------------------------------------------------- */

/*
 * With the setting history, a client records in a stream on the server when each of its holds
 * begins and ends, and which of its calls waited in vain; docs/history.md says what that costs. A
 * reader reports one row for each hold, and one for each call that waited and ended without the
 * lock. The stream is "holdfast_history", with name_prefix before it. On a cluster each name has a
 * stream of its own, "holdfast_history:{name}". There is no history of semaphores and latches, and
 * none on ZooKeeper, where these functions return HF_ENOTSUP.
 */
typedef enum hf_history_end {
	HF_HISTORY_HELD = 0,     /* not ended: the server had the hold when it was asked */
	HF_HISTORY_RELEASED = 1, /* by its owner */
	HF_HISTORY_MOVED = 2,    /* handed over to the next waiter of the same client */
	HF_HISTORY_LOST = 3,     /* the holder has learned that it no longer holds the lock */
	HF_HISTORY_FORCED = 4,   /* another client took it away */
	/*
	 * No entry says how it ended: it expired, or a program without a history ended it.
	 * hf_history_row_ended_at() is the latest time at which that can have happened: the time
	 * when the lock was granted again, or when the server was asked and no longer had the hold.
	 */
	HF_HISTORY_INFERRED = 5,
	/*
	 * There was no hold: a call waited until its deadline passed, or until it was cancelled.
	 * Such a row has no beginning. Its end is that of the call, and its owner is the caller.
	 */
	HF_HISTORY_TIMED_OUT = 6,
	HF_HISTORY_CANCELLED = 7
	/* Later releases may add others. */
} hf_history_end;

/*
 * One hold, or one wait in vain. A row and its texts are valid only during the callback. The
 * functions below are local.
 */
typedef struct hf_history_row hf_history_row;

/* The name on the server, with a NUL; it can contain any bytes. ret_length can be NULL. */
HF_API const char *hf_history_row_name(const hf_history_row *row, size_t *ret_length);
/* As hf_info_kind(), but always exact. */
HF_API const char *hf_history_row_kind(const hf_history_row *row);
/* The owner on the server, as hf_info_owner(). It is never used again, so it names the hold. */
HF_API const char *hf_history_row_owner(const hf_history_row *row);
HF_API hf_history_end hf_history_row_end(const hf_history_row *row);
/* In milliseconds since 1970 by the server's clock; 0: not known, or not ended. */
HF_API int64_t hf_history_row_began_at(const hf_history_row *row);
HF_API int64_t hf_history_row_ended_at(const hf_history_row *row);
/*
 * For how long the caller waited for the lock, and for how long the lock was held, or has been held
 * so far. Both are in milliseconds; -1: not known. If the end is inferred, the time held is an
 * upper bound.
 */
HF_API int64_t hf_history_row_waited(const hf_history_row *row);
HF_API int64_t hf_history_row_held(const hf_history_row *row);
/* The token of the grant; 0: none. */
HF_API int64_t hf_history_row_token(const hf_history_row *row);
/* Host, process id and text of an owner whose client has .describe; otherwise "", 0 and "". */
HF_API const char *hf_history_row_host(const hf_history_row *row);
HF_API int64_t hf_history_row_pid(const hf_history_row *row);
HF_API const char *hf_history_row_text(const hf_history_row *row);
/*
 * Host and process id of the client that took the lock away, if it has .describe; otherwise "", 0.
 */
HF_API const char *hf_history_row_forced_by_host(const hf_history_row *row);
HF_API int64_t hf_history_row_forced_by_pid(const hf_history_row *row);

/* Called in the calling thread. Any result other than 0 ends the read and is returned. */
typedef int hf_history_fn(void *arg, const hf_history_row *row);

typedef struct hf_history_options {
	size_t size;      /* filled in by HF_HISTORY */
	const char *name; /* only this name; NULL: all names */
	/*
	 * Only entries since this time, in ms since 1970 by the server's clock. A negative number
	 * means this long before now.
	 */
	int64_t since_ms;
	/*
	 * Only entries after this position; see hf_history_position(). On a cluster it needs a
	 * name: HF_EINVAL without one.
	 */
	const char *after;
} hf_history_options;

#define HF_HISTORY(...) (&(hf_history_options){.size = sizeof(hf_history_options), __VA_ARGS__})

/*
 * A reader, which only one thread may use at a time. Each read reports every hold that has begun or
 * ended since the last read: first those that have ended, in the order of their ends. So a hold is
 * reported again when it ends, and once more if its end was inferred and it then turns out to be
 * lost; hf_history_row_owner() identifies it. A reader remembers the beginnings of holds that have
 * not ended yet. Each request reads up to 500 entries, and blocks for at most command_timeout.
 *
 * On a cluster without a name, each read walks over the keys of all masters to find the streams, as
 * hf_client_list() does, and then reads those that have new entries, one after the other. The rows
 * of one name are in order, those of different names are not.
 * HF_ENOTNOW: slots were moved while they were read, or have no master. What was found is reported,
 * but some names may be missing; a later read reports them. After any other error, too, what was
 * found until then has been reported. HF_ENOMEM: more than 65 536 names have a history.
 *
 * HF_ECONFLICT: the key of the history holds something else. HF_EDENIED: the user lacks +xrange, or
 * a pattern for the stream.
 */
typedef struct hf_history hf_history;
HF_API int hf_history_open(hf_client *client, const hf_history_options *options,
                           hf_history **ret_history);
HF_API int hf_history_read(hf_history *history, hf_history_fn *report, void *arg);
/*
 * The position after everything that was read. A reader that is opened later, even in another
 * process, can continue there. If a hold began before this position, that reader knows only what
 * the entry of its end says. Valid until the next read. It is "" on a cluster without a name,
 * because each name has a position of its own there.
 */
HF_API const char *hf_history_position(const hf_history *history);
/*
 * The key of the stream that is read; on a cluster without a name, the pattern for all their keys.
 */
HF_API const char *hf_history_stream(const hf_history *history);
HF_API void hf_history_close(hf_history *history);

/*
 * Removes the history. On a cluster this is the history of one name, which expires on its own 7
 * days after its last entry. Elsewhere it is that of all names, and the name must be NULL.
 * ret_entries receives the number of entries; it can be NULL. HF_EINVAL: the name is NULL on a
 * cluster, or not NULL elsewhere. HF_ECONFLICT: the key holds something else, which is not changed.
 */
HF_API int hf_client_clear_history(hf_client *client, const char *name, int64_t *ret_entries);

/* ---- the embedded server -------------------------------------------------------------------- */

/*
 * The private server of "embedded:". There is one for each user and host. hf_embedded_status()
 * returns 1 if it is running, 0 if not, or an error. ret_directory and ret_pid receive the
 * directory of its data and its process id; both can be NULL. hf_embedded_stop() shuts the server
 * down and waits until it has ended, for at most 10 seconds. Its locks are kept for the next start.
 * It returns 1 if the server was running, 0 if not, or an error.
 */
HF_API int hf_embedded_status(char *ret_directory, size_t size, int64_t *ret_pid);
HF_API int hf_embedded_stop(void);

/* ---- events --------------------------------------------------------------------------------- */

/*
 * The hold that changed: its new state, the name of its lock on the server, its owner, and one line
 * that describes the change. An event and its texts are valid only during the callback. The owner
 * is "<uuid>:<number>", which on Redis is also its name on the server; the owner of a permit is its
 * id. All of these functions are local.
 */
HF_API hf_state hf_event_state(const hf_event *event);
HF_API const char *hf_event_name(const hf_event *event);
HF_API const char *hf_event_owner(const hf_event *event);
HF_API const char *hf_event_detail(const hf_event *event);
/* Milliseconds until valid-until when the event was created; 0 when lost. */
HF_API int64_t hf_event_remaining(const hf_event *event);

#ifdef __cplusplus
}
#endif

#endif
