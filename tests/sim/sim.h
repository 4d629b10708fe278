/*
 * A world in one process: a model of the server, clients that run the real core, one virtual clock.
 *
 * Everything follows from the seed. True time is in microseconds; each clock turns it into whole
 * milliseconds at its own rate. What happens next is always the earliest of all that is due.
 */
#ifndef HF_TESTS_SIM_H
#define HF_TESTS_SIM_H

#include "base/list.h"
#include "base/random.h"
#include "core/acquire.h"
#include "core/cmd.h"
#include "core/core.h"
#include "core/mutants.h"
#include "core/query.h"

#include <stdbool.h>
#include <stdint.h>

#define CLIENTS     4
#define OWNERS      4
#define NAMES       3
#define CALLS       2 /* of one owner at once */
#define ITEMS       16
#define WIRES       16384
#define TRACE_LINES 64
#define LEASE_MAX   3000
#define REPLICAS    2

enum { WATCH = 64, UNWATCH }; /* requests besides those of enum hf__verb */

struct clock {
	int64_t ppm; /* how much it is fast */
	int64_t offset_us;
};

/* A command as it travels. */
struct request {
	int verb;
	int client;
	int name;
	uint64_t wire;
	uint64_t from; /* of a move */
	int64_t lease_ms;
	uint64_t number; /* of a sync, by which its reply finds it */
	int64_t sent_at; /* by the client's clock; also the next field */
	int64_t answer_by;
	int32_t count;
	bool gave_up; /* a settle: its call waited in vain, which goes into the history */
	int items;
	struct {
		int name;
		uint64_t wire;
		int64_t lease_ms;
	} item[ITEMS];
};

enum reply_kind { REPLY_ANSWER, REPLY_WAKE, REPLY_NO_WATCH };

struct reply {
	enum reply_kind kind;
	int name;
	enum hf__outcome outcome;
	int error;
	int64_t ttl_ms;
	int64_t count;
	uint64_t number;  /* of a sync */
	int64_t delay_us; /* how long the server takes to send it */
	char text[64];
	bool there[ITEMS];
};

struct message {
	struct hf__list link;
	int64_t at;
	union {
		struct request request;
		struct reply reply;
	};
};

/* A connection; it outlives its client's interest until its last request has arrived. */
struct conn {
	struct hf__list link; /* in world->conns */
	struct hf__list out;  /* requests in flight */
	struct hf__list in;   /* replies in flight */
	int client;
	int64_t out_at; /* when the last one arrives: order is kept */
	int64_t in_at;
	int64_t cut_at; /* the client notices the end then */
	bool live;      /* the client's present one */
	bool mute_out;  /* nothing arrives any more */
	bool mute_in;
	bool watch[NAMES];
};

/* One lock on the server: kinds that exclude have one field at most. */
struct entry {
	bool there;
	int client;
	uint64_t wire;
	int64_t count;
	int64_t expires_ms; /* server's clock */
	int64_t free_since;
};

struct call {
	struct hf__op op;
	bool busy;
	int owner;
	bool lost_before; /* the hold was known to be lost when the call began */
	uint64_t wire;    /* of the hold then */
	int name;
	int64_t cancel_at;
	int64_t cancelled_at; /* client's clock; 0: not */
	int64_t began_at;     /* true time */
	int64_t synced_at;    /* client's clock: since when it syncs; 0: it does not */
};

/* The levels one owner has open on one name. */
struct levels {
	int open;
	uint32_t watched; /* a bit per level: taken without a lease */
	bool lost;
	int64_t valid_until; /* as last seen, to notice changes */
	uint64_t wire;
};

struct owner {
	uint64_t id;
	int64_t act_at;
	struct call call[CALLS];
	struct levels levels[NAMES];
};

struct client {
	struct hf__core core;
	struct world *world;
	int index;
	struct clock clock;
	struct conn *conn;       /* while there is one */
	struct hf__list pending; /* commands without an answer, in the order they left */
	struct conn *sync;       /* for syncs only, while there is one */
	struct hf__list syncs;   /* those without an answer */
	uint64_t last_sync;
	struct hf__list news; /* holds with news */
	struct hf__lock *lock[NAMES];
	struct hf__lock *alias[NAMES]; /* the same names as another kind, to force a release */
	struct hf__watch *watch[NAMES];
	struct owner owner[OWNERS];
	int owners;
	struct hf__op close_op;
	bool closing;
	bool closed; /* the call to close has finished */
	bool over;   /* closed and freed, or killed */
	bool calm_close;
	bool timers_first;
	int64_t connect_at;
	int64_t news_at;
	int64_t close_at;
	int64_t kill_at;
	int64_t paused_until; /* 0: not paused */
	int64_t resumed_at;
	int64_t stale_at;   /* a reply came late, or will */
	int64_t calm_since; /* no fault touched it since */
	int64_t last_turn_at;
	int spins;
};

/* What is known of every acquisition of the run. */
struct wire {
	bool revoked;  /* the server took it away: force, or restarted empty */
	bool expired;  /* its lease expired on the server */
	bool tainted;  /* a request of an abandoned connection may still touch it */
	bool doubt;    /* a call about its count ended without an answer from the server */
	bool denied;   /* its removal was refused, so only its lease ends it */
	bool lost;     /* the core said so */
	bool released; /* its last release answered 0 */
	bool gave_up;  /* the history says that its call waited in vain */
	int reported;  /* how many times its owner was notified that it is lost */
	/* When at least this many replicas last acknowledged it. */
	int64_t acknowledged_at[REPLICAS + 1];
};

/* How likely each fault is, in ten thousandths per step. */
struct faults {
	bool on;
	int lose_request;
	int lose_reply;
	int late_reply;
	int cut;
	int no_memory;
	int not_now;
	int failed;
	int pause;
	int kill;
	int restart;
	int restart_empty; /* of restarts */
	int arrives_late;  /* of what is in flight when a connection is given up */
	int kill_old;      /* of reconnects */
	int no_connect;    /* of attempts */
	int no_watch;
	int cancel;
	int force;
	int few_replicas;
};

struct totals {
	uint64_t seeds;
	uint64_t steps;
	uint64_t grants;
	uint64_t renewals;
	uint64_t losses;
	uint64_t releases;
	uint64_t faults;
	uint64_t waits;
};

struct trace_line {
	int64_t at;
	const char *format;
	long long number[6];
};

/* The hash of a run that has traced one more line. */
static inline uint64_t trace_hash(uint64_t hash, const struct trace_line *line)
{
	hash ^= (uint64_t)line->at;
	for (int i = 0; i < 6; i++)
		hash = (hash ^ (uint64_t)line->number[i]) * UINT64_C(0x100000001b3);
	return hash ^ (hash >> 29);
}

struct world {
	uint64_t seed;
	struct hf__random random;
	int64_t now;
	struct clock clock; /* the server's */
	struct entry entry[NAMES];
	struct hf__list conns;
	struct client client[CLIENTS];
	int clients;
	int names;
	struct faults faults;
	struct wire wire[WIRES];
	uint64_t next_wire;
	int64_t heal_at;
	int64_t server_up_at; /* 0: it is up */
	int replicas;
	int restart_wanted; /* 1: with data, 2: empty */
	int64_t latency_us; /* at most, per direction */
	bool own_wake_first;
	bool ending;
	bool print;
	struct trace_line line[TRACE_LINES];
	uint64_t lines;
	uint64_t hash;
	struct totals totals;
};

/* ---- clock.c ---- */
/* What the clock shows at this true time. */
int64_t clock_ms(const struct clock *clock, int64_t at);
/* The first point in true time at which the clock shows this. */
int64_t clock_when(const struct clock *clock, int64_t ms);

/* ---- world.c ---- */
void world_run(struct world *world, uint64_t seed, bool print);
int64_t world_between(struct world *world, int64_t low, int64_t high);
void world_trace(struct world *world, const char *format, long long a, long long b, long long c,
                 long long d, long long e, long long f);
void world_print_line(const struct trace_line *line);

/* ---- model.c: the server ---- */
/* Runs a request; replies and messages go into the connections. */
void model_run(struct world *world, struct conn *conn, const struct request *request);
void model_expire(struct world *world);
void model_restart(struct world *world, bool empty);

/* ---- link.c: the seam's other side, and connections ---- */
extern const struct hf__backend_ops link_ops;
void link_init(struct client *client);
void link_connect(struct client *client);
void link_deliver(struct client *client);
/* Gives the connection up, as a backend does. */
void link_give_up(struct client *client, int error, const char *why);
/* The same for the connection of syncs. */
void link_deliver_sync(struct client *client);
void link_give_up_sync(struct client *client);
/* When the backend loses its patience. */
int64_t link_patience(const struct client *client);
int64_t link_patience_sync(const struct client *client);
void link_reply(struct world *world, struct conn *conn, const struct request *request,
                const struct reply *reply);
void link_arrive(struct world *world, struct conn *conn);
void link_forget(struct client *client);
void link_sweep(struct world *world);
/* The server is gone: nothing passes any more, and what was in flight to it is lost. */
void link_mute_all(struct world *world);
void link_free_all(struct world *world);
int link_name(const struct hf__lock *lock);

/* ---- client.c: the host, and what its owners do ---- */
void client_init(struct world *world, int index);
void client_act(struct client *client, struct owner *owner);
void client_cancel(struct client *client, struct call *call);
void client_cancel_some(struct client *client);
void client_turn(struct client *client);
void client_report_news(struct client *client);
void client_close(struct client *client);
void client_kill(struct client *client);
/* Nothing comes from its link any more. */
static inline void client_unlink(struct hf__core *core)
{
	core->links_up -= core->link.up;
	core->link.up = false;
}
/* Frees what is left of a closed client. */
void client_free(struct client *client);
int64_t client_now(const struct client *client);
bool client_idle(const struct client *client);

/* ---- faults.c ---- */
void faults_choose(struct world *world);
bool faults_happens(struct world *world, struct client *client, int chance);
/* A step of the protocol was taken for this client: a fault may happen to it. */
void faults_step(struct world *world, struct client *client);
int64_t faults_latency(struct world *world);

/* ---- check.c ---- */
void check_all(struct world *world);
void check_submit(struct client *client, const struct hf__cmd *cmd);
void check_finish(struct client *client, struct owner *owner, struct call *call);
void check_lost(struct client *client, const struct hf__hold *hold);
void check_reported(struct client *client, const struct hf__hold *hold, hf_state state);
void check_closed(struct client *client);
void check_freed(struct client *client);
void check_end(struct world *world);
_Noreturn void check_fail(struct world *world, const char *check, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
