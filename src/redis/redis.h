/*
 * The Redis backend: it turns verbs into scripts and scripts into requests on one RESP3 connection,
 * which also carries the replies and the release messages.
 *
 * Everything here runs with the engine's mutex held. Only the driver calls it, except for the
 * hf__backend_ops that the core calls: submit, watch, unwatch and want_link.
 *
 * The files in the order in which to read them. Each calls only those above it, and
 * tools/check-includes reads this list and checks that. Results go the other way, and events: a
 * connection reports to its user (struct hf__conn_user).
 *
 *   tls_none.c     replaces TLS in a build without OpenSSL
 *   tls.c          TLS, with OpenSSL
 *   tls_module.c   TLS as a module that is loaded when it is needed
 *   tls_load.c     loads that module
 *   embedded.c     the private server of "embedded:" URLs
 *   resp.c         reads replies
 *   request.c      writes requests
 *   refusal.c      what error replies mean
 *   keys.c         names of keys and channels
 *   recipe.c       which script serves which verb, with which keys and arguments
 *   redis_kinds.c  how each kind behaves on Redis
 *   nat.c          translates addresses of nodes
 *   slots.c        the slot of a key, and replies that name masters
 *   resolve.c      looks up addresses
 *   conn.c         a connection, from the first attempt to its end
 *   greet.c        the first requests on a connection
 *   input.c        one turn of a connection: what has arrived, what is overdue, the next step
 *   verbs.c        commands as requests, and replies as answers
 *   map.c          a cluster's masters, their slots, and the connections to them
 *   subs.c         subscriptions
 *   seek.c         the search for a server that answers
 *   sentinel.c     asks Sentinels who the master is
 *   scout.c        asks nodes of a cluster for the map
 *   cluster.c      which master a command is for, and what redirections and answers change
 *   sync.c         waits until replicas have acknowledged grants
 *   master.c       the connection to a server that holds locks
 *   redis.c        the backend as the core and the engine see it
 */
#ifndef HF_REDIS_REDIS_H
#define HF_REDIS_REDIS_H

#include "base/clock.h"
#include "base/list.h"
#include "base/random.h"
#include "base/table.h"
#include "core/backend.h"
#include "engine/engine.h"
#include "redis/redis_settings.h"
#include "redis/embedded.h"
#include "redis/resp.h"
#include "redis/tls.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define HF__CONN_ADDRESSES 8

/* Verbs of the connection itself, in addition to those of the core. */
enum hf__redis_verb {
	HF__REDIS_HELLO = 100,
	HF__REDIS_INFO,
	HF__REDIS_SELECT,
	HF__REDIS_KILL,
	HF__REDIS_SUBSCRIBE,
	HF__REDIS_UNSUBSCRIBE,
	HF__REDIS_SENTINEL, /* a question that only Sentinels answer */
	HF__REDIS_CLUSTER,  /* a question about the cluster */
	HF__REDIS_WAIT,
};

_Static_assert((int)HF__VERBS <= (int)HF__REDIS_HELLO, "the verbs of the core come first");

enum hf__conn_state {
	HF__CONN_IDLE,      /* nobody wants a connection */
	HF__CONN_WAITING,   /* until retry_at */
	HF__CONN_RESOLVING, /* no address is known yet */
	/* The last address failed; the next is tried as soon as no thread sends to the old one. */
	HF__CONN_NEXT,
	HF__CONN_CONNECTING,
	HF__CONN_SECURING, /* TLS handshake */
	HF__CONN_READY,    /* nothing was sent yet; the same turn begins the greeting */
	HF__CONN_GREETING, /* HELLO and the requests that go with it */
	HF__CONN_UP,
};

struct hf__address {
	struct sockaddr_storage bytes;
	socklen_t length;
	int family;
};

/* One attempt to connect: a round over all addresses, each of which has its share of the time. */
struct hf__round {
	int64_t limit_ms;
	int64_t end_at;
	/* The share of the current address, from connect() to the last reply of the greeting. */
	int64_t share_ms;
	int64_t share_by;
	int first;     /* the address that the round began with */
	int tried;     /* how many addresses were tried, the current one included */
	int error;     /* HF_E… */
	char why[320]; /* why each address failed */
};

/* A channel. It exists while it is watched or the server has not confirmed the unsubscription. */
struct hf__sub {
	struct hf__table_link by_channel;
	struct hf__list watches;
	struct hf__list moved; /* in a list of those whose slot has another master now */
	struct hf__cmd start;  /* SUBSCRIBE */
	struct hf__cmd stop;   /* UNSUBSCRIBE */
	bool subscribed;       /* what the server confirmed last */
	bool is_late;          /* refused for now; to be tried again */
	int64_t ended_at;      /* when the server last ended it */
	struct hf__conn *conn;
	size_t length;
	char channel[];
};

struct hf__conn;
struct hf__cluster;
struct hf__sentinel;
struct hf__sync;

/* What the greeting says, and which server it expects. */
struct hf__login {
	const char *user;     /* NULL: the server's default user */
	const char *password; /* NULL: do not authenticate */
	int database;
	bool is_sentinel;  /* the other side must be a Sentinel, and not a server */
	bool is_master;    /* it must be a master */
	bool is_clustered; /* it must be a node of a cluster */
};

/* What a connection is used for: its user is notified of what becomes of it. */
struct hf__conn_user {
	/* All requests of the greeting have been answered. */
	void (*on_up)(struct hf__conn *conn, int64_t now);
	/* It was up and is closed. Its commands that wait for a reply are answered after this. */
	void (*on_down)(struct hf__conn *conn, int error, const char *why, int64_t now);
	/* No address could be connected to. */
	void (*on_failed)(struct hf__conn *conn, int error, const char *why, int64_t now);
	/* Whether to try again after either of these. */
	bool (*is_wanted)(const struct hf__conn *conn);
	/* The reply in conn->resp is for this command, which is not one of the greeting. */
	void (*on_reply)(struct hf__conn *conn, struct hf__cmd *cmd, const char *bytes,
	                 int64_t now);
	/* A message that is not a reply is in conn->resp. */
	void (*on_push)(struct hf__conn *conn, const char *bytes, int64_t now);
};

/* One connection, to one node. */
struct hf__conn {
	struct hf__redis *redis;
	const struct hf__conn_user *user;
	struct hf__link *link; /* what depends on it, as the core sees it */
	const char *shown;     /* the address without secrets, for messages */
	struct hf__login login;
	int64_t limit_ms; /* for one attempt; 0: as the settings say */
	struct hf__port port;
	const char *host;    /* NULL for a unix socket and the embedded server */
	int port_number;     /* 0 without a host */
	struct hf__tls *tls; /* NULL: plain */
	struct hf__resp resp;
	struct hf__list waiting; /* commands without an answer, in the order of their requests */
	struct hf__cmd hello, info, select, kill;
	struct hf__resolve *resolve; /* a look-up in progress, or its result; at most one */
	bool resolve_is_old;         /* it was started before the latest connection */
	bool has_name;               /* the host must be looked up */
	struct hf__address address[HF__CONN_ADDRESSES];
	int addresses;
	struct hf__address worked; /* the address of the latest connection; length 0: none */
	struct hf__round round;
	enum hf__conn_state state;
	int64_t retry_at;
	int64_t answer_by;         /* no reply is overdue before this time */
	int64_t server_id;         /* the server's number for this connection; 0: not known */
	char seen_as[64];          /* our address as the server sees it; empty: not known */
	int64_t given_up;          /* the number of the previous connection; 0: none */
	char given_up_address[64]; /* our address on it */
	int64_t subscribe_at;      /* when subscriptions that were refused are tried again */
	bool answered;             /* a command was answered on this connection */
	uint32_t renewals;         /* groups whose renewal was answered on this connection */
	size_t consumed;           /* bytes of the input that this turn has handled */
	uint32_t failures;         /* attempts in a row that failed */
	bool abandoned;            /* it is being closed because it is not wanted any more */
	struct hf__sync *sync;     /* of a master: the second connection to it; NULL: none yet */
	char why[200];
};

struct hf__redis {
	struct hf__core *core;
	struct hf__engine *engine;
	const struct hf__redis_settings *config;
	struct hf__embedded embedded;
	struct hf__random random;
	struct hf__table subs;
	struct hf__conn master;        /* where everything is sent */
	struct hf__sentinel *sentinel; /* NULL: another deployment */
	struct hf__cluster *cluster;   /* likewise; it has connections to all masters in use */
	bool is_clustered;             /* a single server has turned out to be a node of one */
	bool is_sharded;               /* releases are announced in the slot's shard only */
	int host;                      /* of a replicated deployment: the one in use */
	int hosts_failed;              /* and how many failed one after the other */
	char hosts_why[400];           /* why these failed */
	int hosts_error;               /* the first that is not HF_EUNREACHABLE, if any */
	char warned[200];              /* the last warning of a script that was logged */
};

/* ---- redis.c ---- */
/* Creates the core's backend; 0, or an error with why. */
int hf__redis_new(struct hf__core *core, struct hf__engine *engine,
                  const struct hf__redis_settings *config, char *why, size_t size);
/* ---- conn.c ---- */
static inline bool hf__conn_is_attempting(const struct hf__conn *conn)
{
	return conn->state >= HF__CONN_RESOLVING && conn->state < HF__CONN_UP;
}
/* Returns where to write the next request of at most `bytes`; NULL without memory. */
char *hf__conn_room(struct hf__conn *conn, size_t bytes);
/* Appends the request, which was written up to `end`, to the output; `cmd` waits for its reply. */
void hf__conn_commit(struct hf__conn *conn, struct hf__cmd *cmd, const char *end);
/* Sends a question of these words, whose answer has this much time; 0 or HF_ENOMEM. */
int hf__conn_ask(struct hf__conn *conn, struct hf__cmd *cmd, int64_t limit_ms,
                 const char *const *words, int n);
/* Without an address yet; 0 or HF_ENOMEM. */
int hf__conn_init(struct hf__conn *conn, struct hf__redis *redis, const struct hf__conn_user *user);
void hf__conn_done(struct hf__conn *conn);
/* Where to connect to: a unix socket, 0 or HF_EINVAL; or a host, whose text the caller keeps. */
int hf__conn_set_path(struct hf__conn *conn, const char *path, char *why, size_t size);
void hf__conn_set_host(struct hf__conn *conn, const char *host, int port);
/* Closes the connection for good. */
void hf__conn_close(struct hf__conn *conn);
/* Connects after a pause, if it is idle and attempts have failed. */
void hf__conn_want(struct hf__conn *conn, int64_t now);
/* Connects at once. It is idle. */
void hf__conn_start(struct hf__conn *conn, int64_t now);
/* The next connection is to another server, so what is known about the latest one is dropped. */
void hf__conn_forget(struct hf__conn *conn);
/* Gives up the connection, or the attempt, because another address is the right one. */
void hf__conn_abandon(struct hf__conn *conn, const char *why, int64_t now);
/* When the next turn is due at the latest. */
int64_t hf__conn_due(const struct hf__conn *conn);
/* Takes the next step towards a connection, up to HF__CONN_READY, and checks time limits. */
void hf__conn_step(struct hf__conn *conn, int64_t now);
/* Gives up the connection, or the address that is being tried. */
void hf__conn_drop(struct hf__conn *conn, int error, const char *why, int64_t now);
/* The server that it leads to, without secrets. */
void hf__conn_show_server(const struct hf__conn *conn, char *ret_text, size_t size);
/* All requests of the greeting have been answered. */
void hf__conn_on_greeted(struct hf__conn *conn, int64_t now);

/* ---- greet.c ---- */
/* Sends all requests of the greeting at once. */
void hf__greet_begin(struct hf__conn *conn, int64_t now);
/* Handles the reply to a request of the greeting. */
void hf__greet_handle_reply(struct hf__conn *conn, struct hf__cmd *cmd, int64_t now);

/* ---- input.c ---- */
/*
 * Handles everything that has arrived, and what is overdue. Then takes the next step towards a
 * connection.
 */
void hf__input_turn(struct hf__conn *conn, int64_t now);
/* The command that the next reply is for, or NULL. */
struct hf__cmd *hf__input_first_cmd(const struct hf__conn *conn);
/* The command has its reply. */
void hf__input_finish_cmd(struct hf__conn *conn, struct hf__cmd *cmd);

/* ---- master.c ---- */
extern const struct hf__conn_user hf__master;
/* Sends a command of the core's; 0 or HF_ENOMEM. */
int hf__master_submit(struct hf__conn *conn, struct hf__cmd *cmd);
/* These include the second connection to the same server. */
int64_t hf__master_due(const struct hf__conn *conn);
void hf__master_turn(struct hf__conn *conn, int64_t now);
bool hf__master_is_busy(const struct hf__conn *conn);
void hf__master_close(struct hf__conn *conn);
void hf__master_done(struct hf__conn *conn);

/* ---- verbs.c ---- */
/* Appends the command's request to the output; 0 or HF_ENOMEM. */
int hf__verbs_encode(struct hf__conn *conn, struct hf__cmd *cmd);
/*
 * Reads the reply in conn->resp; false if it does not fit the command. `there` has room for
 * HF__RENEW_MAX.
 */
bool hf__verbs_decode(struct hf__conn *conn, const struct hf__cmd *cmd, const char *bytes,
                      struct hf__answer *ret_answer, bool *there);

/* ---- subs.c ---- */
int hf__subs_watch(struct hf__redis *redis, struct hf__watch *watch);
void hf__subs_unwatch(struct hf__redis *redis, struct hf__watch *watch);
/* Subscribes to every channel that is watched and not subscribed to. */
void hf__subs_renew(struct hf__conn *conn);
/* Tries those again that were refused for now, if it is time. */
void hf__subs_turn(struct hf__conn *conn, int64_t now);
/* Slots have other masters now: their channels are subscribed to there. */
void hf__subs_reroute(struct hf__redis *redis);
void hf__subs_reroute_slot(struct hf__redis *redis, uint16_t slot);
/* A node has ended a subscription to a channel of a shard, asked to or not. */
void hf__subs_on_ended(struct hf__conn *conn, const char *channel, size_t length, int64_t now);
void hf__subs_on_message(struct hf__conn *conn, const char *channel, size_t length, int64_t number,
                         int64_t now);
/* The server has confirmed a SUBSCRIBE or UNSUBSCRIBE. */
void hf__subs_confirm(struct hf__conn *conn, struct hf__cmd *cmd, int64_t now);
/* The server has refused it. True: for now, or because another node has the slot. */
bool hf__subs_refuse(struct hf__conn *conn, struct hf__cmd *cmd, const char *error, size_t length,
                     int64_t now);
/* The connection is gone, and all subscriptions with it. */
void hf__subs_lose(struct hf__conn *conn);
void hf__subs_done(struct hf__redis *redis);

/* ---- resolve.c ---- */
struct hf__resolve;
/* The addresses of a host that is given as a number; how many, 0 if the host is a name. */
int hf__resolve_number(const char *host, int port, struct hf__address *ret_addresses);
/* Looks up a name on a thread, which kicks the descriptor when it has finished; 0 or an error. */
int hf__resolve_start(const char *host, int port, int kick_fd, struct hf__resolve **ret_resolve);
/* Starts the embedded server again, on such a thread; 0 or an error. */
int hf__resolve_embedded(int64_t timeout_ms, int kick_fd, struct hf__resolve **ret_resolve);
bool hf__resolve_is_done(const struct hf__resolve *resolve);
/* Whether it has found addresses, and this one is not among them. */
bool hf__resolve_lacks(const struct hf__resolve *resolve, const struct hf__address *address);
/*
 * Takes the result and frees the look-up. Returns -1 if it is not finished, otherwise how many
 * addresses were found. They replace the old ones; if there are none, the old ones stay and why is
 * filled.
 */
int hf__resolve_take(struct hf__conn *conn, char *why, size_t size);
bool hf__resolve_is_same(const struct hf__address *one, const struct hf__address *other);
/* "10.0.0.1:6379" or "[::1]:6379", as servers write it; empty for other families. */
void hf__resolve_show(const struct hf__address *address, char *ret_text, size_t size);
/* The address of a unix socket; false if its path is too long. */
bool hf__resolve_unix(const char *path, struct hf__address *ret_address);
/* Drops the look-up, if there is one; its thread finishes on its own. */
void hf__resolve_drop(struct hf__conn *conn);

#endif
