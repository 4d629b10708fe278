/*
 * A world of several servers in one process: red locks as the library has them, on one virtual
 * clock.
 *
 * What runs is the library's own code from hf_lock_acquire_async() down to the core: plans, counts,
 * repairs, holds. The linker puts host.c in the place of what calls, threads and clocks there are
 * in between (see the list of --wrap in CMakeLists.txt). Below the core are the links and servers
 * of tests/sim, one world of these for each server. Everything follows from the seed.
 */
#ifndef HF_TESTS_RED_H
#define HF_TESTS_RED_H

#include "../sim/sim.h"

#include "api/several.h"

#define SERVERS   5
#define PROCESSES 3
#define ACTORS    2 /* owners of one process */
#define ASKS      2 /* calls of one owner at once */
#define SETS      2 /* red locks: each of its own servers */
#define HANDLES   2 /* of one process for each of these */
#define RED_LINES 128

/* One process's client of one server. */
struct node {
	struct hf_client shell; /* what the library sees of it; the core is that of `client` */
	struct process *process;
	struct client *client; /* as in tests/sim */
	struct hf_lock member;
	struct hf__list done; /* calls whose completions have not run yet */
	int64_t dispatch_at;
	struct hf__op close_op;
	int64_t close_at;
	bool closing;
	bool closed;
};

/* A call of an actor's. */
struct ask {
	struct actor *actor;
	bool busy;
	enum hf__op_action action;
	int set;    /* -1: of one server's lock alone */
	int server; /* which one */
	int64_t started_at, wait_ms;
	struct hf_cancel *cancel;
	int64_t cancel_at;
	bool was_lost; /* when it began */
};

/* What an actor believes of one red lock, and what is true of it. */
struct belief {
	uint32_t era;
	bool believed;
	bool was_lost;       /* in this era */
	bool had_gap;        /* in this era less than the majority was really held */
	int64_t doubt_since; /* since when the belief is wrong; HF__NEVER: it is not */
	int open;            /* levels as the results of calls count them */
	unsigned joined;     /* a bit per member that was taken again and counts */
};

struct actor {
	struct process *process;
	struct hf_owner owner;
	struct ask ask[ASKS];
	struct belief belief[SETS];
	int64_t act_at;
	int direct[SERVERS];           /* levels of a server's lock alone, */
	uint64_t direct_wire[SERVERS]; /* and the hold that they are of */
	bool mixed;    /* two calls at once: results alone do not say what is open */
	bool finished; /* at the end: has had the lock once more, and given all back */
	bool asked;    /* at the end: for that last time */
};

struct process {
	int index;
	struct clock clock;
	struct node node[SERVERS];
	struct hf_lock *handle[SETS][HANDLES];
	struct actor actor[ACTORS];
	int actors;
	int64_t paused_until; /* 0: it runs */
	int64_t handle_at;    /* when a handle is opened or closed next */
	bool over;
};

struct red_line {
	int server;
	struct trace_line line;
};

struct red {
	uint64_t seed;
	struct hf__random random;
	int64_t now;
	int64_t heal_at;
	bool ending;
	bool print;
	int servers, processes, sets;
	struct {
		int first, n;
	} set[SETS];
	struct world world[SERVERS];
	int64_t frozen_until[SERVERS];
	int64_t fault_at[SERVERS]; /* when the next fault of the server happens */
	struct process process[PROCESSES];
	uint64_t next_wire;
	struct red_line line[RED_LINES];
	uint64_t lines;
	uint64_t hash;
	struct process *current; /* whose clock the library reads */
	uint64_t last_wire;      /* of the hold whose acquire is being completed */
	struct {
		uint64_t seeds, steps, grants, retaken, losses, releases, faults;
	} totals;
};

extern struct red red;

/* ---- universe.c: time, events, faults of servers ---- */
void universe_run(uint64_t seed, bool print);
int64_t universe_between(int64_t low, int64_t high);
void universe_print_lines(void);
void universe_note(const char *format, long long a, long long b, long long c, long long d);

/* ---- host.c: what is around the library and the core ---- */
extern const struct hf__host_ops host_ops;
void host_init(struct node *node);
/* Runs one completion, or reports one loss. */
void host_dispatch(struct node *node);
void host_close(struct node *node);
void host_free(struct node *node);
bool host_is_waiting(const struct node *node);

/* ---- actor.c ---- */
void actor_init(struct process *process);
void actor_act(struct actor *actor);
void actor_cancel(struct ask *ask);
void actor_change_handles(struct process *process);
void actor_close_handles(struct process *process);
void actor_free(struct process *process);
bool actor_is_idle(const struct actor *actor);
struct hf__several *actor_several(const struct process *process, int set);
struct hf__whole *actor_whole(const struct actor *actor, int set);
int64_t actor_now(const struct process *process);

/* ---- watch.c: what must be true ---- */
void watch_all(void);
void watch_done(struct actor *actor, const struct ask *ask, int result);
/* Nothing may be left of a process whose owners have given everything back. */
bool watch_is_empty(const struct process *process);
void watch_end(void);
_Noreturn void watch_fail(const char *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
