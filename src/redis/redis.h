/*
 * The Redis backend: verbs become scripts, scripts become bytes on one RESP3 connection, and answers
 * and release messages come back on it.
 *
 * Everything here runs under the engine's mutex, and all but the four hf__backend_ops only by whoever
 * drives.
 */
#ifndef HF_REDIS_REDIS_H
#define HF_REDIS_REDIS_H

#include "base/list.h"
#include "base/table.h"
#include "core/core.h"
#include "engine/engine.h"
#include "core/config.h"
#include "redis/embedded.h"
#include "redis/resp.h"
#include "redis/tls.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define HF__CONN_ADDRESSES 8

/* Verbs of the connection itself, beyond those of the core. */
enum hf__redis_verb {
	HF__REDIS_HELLO = 100,
	HF__REDIS_INFO,
	HF__REDIS_SELECT,
	HF__REDIS_KILL,
	HF__REDIS_SUBSCRIBE,
	HF__REDIS_UNSUBSCRIBE,
};

enum hf__conn_state {
	HF__CONN_IDLE,      /* nobody wants a connection */
	HF__CONN_WAITING,   /* until retry_at */
	HF__CONN_RESOLVING, /* there is no address yet */
	HF__CONN_NEXT, /* the last address failed; as soon as nobody sends to it, the next is tried */
	HF__CONN_CONNECTING,
	HF__CONN_SECURING, /* TLS handshake */
	HF__CONN_GREETING, /* HELLO and what goes with it */
	HF__CONN_UP,
};

struct hf__address {
	struct sockaddr_storage bytes;
	socklen_t length;
	int family;
};

/* One attempt: a round over all addresses, each of which has its share of the time. */
struct hf__round {
	int64_t limit_ms;
	int64_t end_at;
	int64_t share_ms; /* of the address under way, from connect() to the last word of the greeting */
	int64_t share_by;
	int first;     /* the address that it began with */
	int tried;     /* addresses that have had their turn, with the one under way */
	int error;     /* HF_E… */
	char why[320]; /* what became of each address */
};

/* A channel; exists while it is watched or the server has not confirmed its end. */
struct hf__sub {
	struct hf__table_link by_channel;
	struct hf__list watches;
	struct hf__cmd start; /* SUBSCRIBE under way */
	struct hf__cmd stop;  /* UNSUBSCRIBE under way */
	bool subscribed;      /* as far as the server knows, once it has answered all */
	bool is_late;         /* refused for now; to be tried again */
	size_t length;
	char channel[];
};

struct hf__redis {
	struct hf__core *core;
	struct hf__engine *engine;
	struct hf__config *config;
	struct hf__tls *tls; /* NULL: plain */
	struct hf__embedded embedded;
	struct hf__resp resp;
	struct hf__random random;
	struct hf__list waiting; /* commands without an answer, in wire order */
	struct hf__table subs;
	struct hf__cmd hello, info, select, kill;
	struct hf__resolve *resolve; /* a look-up under way, or its result; never more than one */
	bool resolve_is_old;         /* it was begun before the latest connection */
	bool has_name;               /* the host has to be looked up */
	struct hf__address address[HF__CONN_ADDRESSES];
	int addresses;
	struct hf__address worked; /* the latest address that led to a connection; length 0: none */
	struct hf__round round;
	enum hf__conn_state state;
	int64_t retry_at;
	int64_t answer_by;         /* no command's answer is due before */
	int64_t server_id;         /* what the server calls this connection; 0: not known */
	char seen_as[64];          /* our end of it, as the server sees it; empty: not known */
	int64_t given_up;          /* the number of the connection before; 0: none */
	char given_up_address[64]; /* and our end of that */
	int64_t subscribe_at;      /* subscriptions that were refused for now are tried again */
	bool answered;             /* a command on this connection was */
	uint32_t renewals;         /* families whose renewal was answered on this connection */
	size_t consumed;           /* bytes of the input handled in this turn */
	uint32_t failures;         /* attempts in a row */
	char why[200];
	char warned[200]; /* the latest warning of a script that was logged */
};

/* ---- redis.c ---- */
/* Makes it the core's backend; 0 or an error with why. */
int hf__redis_new(struct hf__core *core, struct hf__engine *engine, struct hf__config *config,
                  char *why, size_t size);
/* Where to write the next request, with room for so many bytes; NULL if there is no memory. */
char *hf__redis_room(struct hf__redis *redis, size_t bytes);
/* The request was written up to `end`: its command joins those that wait for an answer. */
void hf__redis_commit(struct hf__redis *redis, struct hf__cmd *cmd, const char *end);

/* ---- conn.c ---- */
static inline bool hf__conn_is_attempting(const struct hf__redis *redis)
{
	return redis->state >= HF__CONN_RESOLVING && redis->state < HF__CONN_UP;
}
/* Finds the address if nothing has to be looked up for it; 0 or HF_EINVAL. */
int hf__conn_init(struct hf__redis *redis, char *why, size_t size);
void hf__conn_want(struct hf__redis *redis, int64_t now);
/* When to call the next at the latest. */
int64_t hf__conn_due(const struct hf__redis *redis);
/* Moves the connection on: connecting, handshake, time limits. */
void hf__conn_step(struct hf__redis *redis, int64_t now);
/* Gives the connection up, or the address that an attempt is at. */
void hf__conn_drop(struct hf__redis *redis, int error, const char *why, int64_t now);
/* The server has answered all of the greeting. */
void hf__conn_up(struct hf__redis *redis, int64_t now);

/* ---- greet.c ---- */
/* Says hello, all in one write. */
void hf__greet_begin(struct hf__redis *redis, int64_t now);
/* An answer to a command of the greeting. */
void hf__greet_handle_reply(struct hf__redis *redis, struct hf__cmd *cmd, int64_t now);

/* ---- verbs.c ---- */
/* Adds the request; 0 or HF_ENOMEM. */
int hf__verbs_encode(struct hf__redis *redis, struct hf__cmd *cmd);
/* Reads the reply in redis->resp; false if it is none. `there` has room for HF__RENEW_MAX. */
bool hf__verbs_decode(struct hf__redis *redis, const struct hf__cmd *cmd, const char *bytes,
                      struct hf__answer *ret_answer, bool *there);

/* ---- subs.c ---- */
int hf__subs_watch(struct hf__redis *redis, struct hf__watch *watch);
void hf__subs_unwatch(struct hf__redis *redis, struct hf__watch *watch);
/* After a new connection: subscribes all again. */
void hf__subs_renew(struct hf__redis *redis);
void hf__subs_message(struct hf__redis *redis, const char *channel, size_t length, int64_t number,
                      int64_t now);
void hf__subs_handle_reply(struct hf__redis *redis, struct hf__cmd *cmd, const char *error,
                       size_t length, int64_t now);
/* The connection is gone: nothing is subscribed. */
void hf__subs_lose(struct hf__redis *redis);
void hf__subs_done(struct hf__redis *redis);

/* ---- resolve.c ---- */
struct hf__resolve;
/* The addresses of a host that is a number, at once: how many, 0 if it is a name. */
int hf__resolve_number(const char *host, int port, struct hf__address *ret_addresses);
/* Looks a name up, on a thread that kicks the descriptor when it is done. */
int hf__resolve_start(const char *host, int port, int kick_fd, struct hf__resolve **ret_resolve);
/* Starts the embedded server again, on such a thread. */
int hf__resolve_embedded(int64_t timeout_ms, int kick_fd, struct hf__resolve **ret_resolve);
bool hf__resolve_is_done(const struct hf__resolve *resolve);
/* It has found addresses, and this one is not among them. */
bool hf__resolve_lacks(const struct hf__resolve *resolve, const struct hf__address *address);
/*
 * -1: not yet; else how many addresses were found, which replace those of before. 0: none, those of before
 * stay, and why is filled.
 */
int hf__resolve_take(struct hf__redis *redis, char *why, size_t size);
bool hf__resolve_same(const struct hf__address *one, const struct hf__address *other);
/* "10.0.0.1:6379" or "[::1]:6379", as servers write it; empty if it is neither. */
void hf__resolve_show(const struct hf__address *address, char *ret_text, size_t size);
/* The address of a socket; false if its path is too long. */
bool hf__resolve_unix(const char *path, struct hf__address *ret_address);
/* Forgets it, if there is one; its thread ends by itself. */
void hf__resolve_drop(struct hf__redis *redis);

#endif
