/*
 * What a lock is: calls, holds, waiters, the watchdog. No bytes, no sockets, no clock.
 *
 * The host (the client, or a simulation) owns the mutex and the clock: every function here is
 * called with the client's mutex held and is told the time. Calls (hf__op) belong to the host until
 * started and again once finished. Holds belong to the core.
 */
#ifndef HF_CORE_CORE_H
#define HF_CORE_CORE_H

#include "base/clock.h"
#include "base/buffer.h"
#include "base/list.h"
#include "base/random.h"
#include "core/backend.h"
#include "core/want.h"
#include "base/table.h"
#include "base/thread.h"
#include "engine/wheel.h"

#include <holdfast/holdfast.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HF__RENEWALS         4   /* renewal scripts under way at once */
#define HF__RENEW_MAX        100 /* holds per script */
#define HF__RENEW_BYTES      16384 /* of their names, so that a script fits into what is there to send */
#define HF__SLOW_POLL_MS     3000
#define HF__WATCHED_POLL_MS  60000 /* where the server tells each waiter by itself */
#define HF__WATCH_KEEP_MS    1000  /* a subscription outlives its last waiter by this */
#define HF__CLOSE_MS         1000
#define HF__NOT_NOW_MS       100 /* between tries while the server is not ready */
#define HF__LEAST_LEASE      10
#define HF__LONGEST_MS       INT64_C(315576000000) /* ten years */
#define HF__DETAIL_SIZE      320
#define HF__LATE_MS          30 /* an ask younger than this is waited for at the end of a wait */
#define HF__PLACE_MS         3600000 /* so long a place in a queue is tried to be given up */
#define HF__MOVES_MAX        64      /* hand-overs in a row inside this process */
#define HF__MOVES_MS         50      /* and how long they may go on, */
#define HF__MOVES_TRIPS      32      /* or so many round trips, if that is longer, */
#define HF__MOVES_MOST_MS    1000    /* but no longer than that */
#define HF__REST_MS          5       /* then others have this long to ask first */
#define HF__YIELD_MS         5       /* so long a reader lets a writer of its process go first */
#define HF__TURN_MS          100     /* between looks at a free lock that is another's turn */
#define HF__RECORD_MS        20000   /* how long the server remembers a request without an owner, */
#define HF__TAKEN_MS         3600000 /* and one that took permits, which may have to be given back */
#define HF__PERMITS_MAX      1000
#define HF__DESCRIPTION_SIZE 400
#define HF__VALUES_MAX       100
#define HF__WAITER_MAX       200  /* bytes of what names a waiter on the server */
#define HF__PUBLISHED_MAX    1000 /* of what a caller wants to be read beside its hold */

/* Kinds that hf_lock_open() does not know; they follow those of hf_kind. */
enum hf__kind {
	HF__GROUP = HF_LEADER + 1,
	HF__SEMAPHORE,
	HF__PERMITS,
	HF__LATCH,
	HF__BARRIER,
	HF__MEMBER, /* of a double barrier */
	HF__EXIT,   /* the way out of one */
	/* Nodes that last as long as the session of their maker. */
	HF__NODE_MUTEX,
	HF__NODE_READ,
	HF__NODE_WRITE,
	HF__NODE_SIMPLE,
	HF__NODE_PLAIN,
	HF__NODE_LEADER,
	HF__NODE_PERMITS,
	HF__NODE_BARRIER,
	HF__NODE_MEMBER,
	HF__NODE_EXIT,
	HF__KINDS
};

enum hf__cmd_user { HF__CMD_OF_HOLD = 1, HF__CMD_OF_LOOK, HF__CMD_OF_RENEWAL };

enum hf__timer_tag { HF__TIMER_DEADLINE = 1, HF__TIMER_RETRY, HF__TIMER_HOLD, HF__TIMER_WATCH };

/* What one owner may read of its hold without the mutex. Never freed before its lock record. */
struct hf__cell {
	_Atomic uint64_t owner; /* 0: unused */
	_Atomic int64_t valid_until;
	_Atomic int64_t risk_at;
	_Atomic(struct hf__cell *) next;
	struct hf__hold *hold; /* the user under the mutex, NULL if there is none */
};

/* What this client knows of one name; lives while a handle, a hold or a waiter needs it. */
struct hf__lock {
	struct hf__table_link by_key; /* in core->locks */
	struct hf__cell cell;         /* the first of its cells */
	struct hf__list holds;        /* all holds and attempts */
	struct hf__list queue;        /* acquires that wait; only the first asks */
	struct hf__hold *held;        /* exclusive: our hold, held or being released */
	struct hf__watch *watches;    /* channels listened to */
	uint32_t refs;  /* handles, commands under way, parked calls, holds with news */
	uint8_t values; /* of a group: how many there are, behind the name */
	uint8_t kind;
	uint16_t length;
	char name[];
};

enum hf__hold_state {
	HF__HOLD_ASKING = 1, /* not held; its call waits or asks */
	HF__HOLD_HELD,
	HF__HOLD_RELEASING, /* the last level is being given up */
	HF__HOLD_CLEANING,  /* nobody's: what may be left on the server is being removed */
	HF__HOLD_LOST,      /* kept until its owner has heard of it */
};

enum hf__lost_reason { HF__LOST_EXPIRED = 1, HF__LOST_UNREACHABLE, HF__LOST_GONE, HF__LOST_FORCED };

/* One acquisition: from the first ask to the end. */
struct hf__hold {
	struct hf__list link;   /* in lock->holds */
	struct hf__list renew;  /* in core->renew while a renewal is due */
	struct hf__list news;   /* in the host's queue while there is news */
	struct hf__timer timer; /* next renewal, risk or end, whatever is first */
	struct hf__cmd cmd; /* the one verb under way; its lock and wire are the hold's for good */
	struct hf__op *op;  /* the call it works for, or NULL */
	struct hf__cell *cell; /* its cell, or before the first ask one in reserve */
	struct hf__thread
		*thread; /* whose it is, if a thread took it and we were able to note it */
	uint64_t owner;
	int64_t lease_ms; /* the lease behind valid_until */
	int64_t valid_until;
	int64_t renew_at;     /* HF__NEVER: not renewed, or waiting for a connection */
	int64_t end_at;       /* of a session's: when it ends whatever the session does */
	int64_t leased_until; /* the latest end of its levels with a lease of their own */
	union {
		int64_t token;    /* held */
		int64_t ended_at; /* lost: since when; cleaning: given up then */
	};
	int32_t count;
	int32_t watched_from; /* the outermost level without a lease of its own; 0: none */
	union {
		uint32_t
			moving_since; /* when the first hold of a row of hand-overs was taken: low bits */
		uint32_t leased_ms; /* of a session's: the lease behind leased_until */
	};
	uint16_t slot;  /* its place in the renewal script it is in */
	uint8_t script; /* which one: 1 and up; 0: none */
	uint8_t state;
	uint8_t reason;
	uint8_t tries;  /* renewals missed in a row */
	uint8_t untold; /* states not told yet, oldest in the low bits, two bits each */
	uint8_t untold_n;
	uint8_t moves; /* hand-overs in a row until it had it */
	bool has_cell : 1;
	bool at_risk : 1;
	bool was_watched : 1; /* has had a level without a lease */
	bool doubtful : 1;    /* a verb of it may have run unanswered */
	bool placed : 1;      /* stands in a queue on the server */
	bool dead : 1;        /* over; kept only for its news */
	bool stays : 1;       /* lost, but the server may still have it */
	bool recorded : 1;    /* its asks use the record that cmd names */
};

/* A user's call. */
struct hf__op {
	struct hf__list link; /* in lock->queue or core->parked */
	struct hf__timer deadline;
	struct hf__timer retry; /* when to ask again */
	struct hf__want want;
	struct hf__lock *lock;
	struct hf__hold *hold;
	struct hf__look *look;     /* the command of a query */
	struct hf__thread *thread; /* of an acquire by the calling thread; its reference is ours */
	struct hf__list siblings;  /* holds of an acquire of several permits, but for the first */
	int64_t started_at;
	int64_t number; /* out */
	uint64_t owner; /* out: the owner of the hold that was granted, which may be a new number */
	int result;     /* out */
	int refusal;    /* the server was not ready: HF_E…, and the detail says why */
	uint32_t pauses;              /* of a spin lock, so far */
	uint32_t pause_ms;            /* the next one */
	bool active;                  /* started and not finished */
	bool is_parked;               /* waits for another verb of its hold */
	bool cancelled;               /* wanted; waits for an answer under way */
	bool waited;                  /* counted as a wait */
	bool rests;                   /* lets others ask first, until its retry */
	bool here;                    /* waits for somebody of this process to let it go on */
	bool late;                    /* its time is over, but an answer is about to come */
	char detail[HF__DETAIL_SIZE]; /* out: the facts of a failure */
	char text[128];               /* out: the holder */
};

/* A script of renewals; there is a fixed number of them, so renewing allocates nothing. */
struct hf__renewal {
	struct hf__cmd cmd;
	int64_t due_at; /* when the first of its holds was due */
	uint16_t holds;
	struct hf__hold *hold[HF__RENEW_MAX]; /* NULL: ended meanwhile */
	struct hf__renew_item item[HF__RENEW_MAX];
};

/* A query's command; outlives a call that gives up. */
struct hf__look {
	struct hf__cmd cmd;
	struct hf__op *op;
	struct hf__list link; /* in core->looks */
	bool was_watched;     /* the permit that is being extended */
	bool recorded;        /* it uses the record that cmd names, */
	int64_t known_until;  /* by which a repeat is recognised until then */
	union {
		char words[HF__PERMIT_SIZE];
		unsigned char permit[HF__PERMIT_SIZE];
	} given[]; /* by the caller */
};

struct hf__host_ops {
	/* The call is finished: result, number, detail and text are final. */
	void (*finish)(void *host, struct hf__op *op);
	/* The call waits for a message from now on; or it waits for a hold of this process only. */
	void (*listens)(void *host, struct hf__op *op);
	void (*idles)(void *host, struct hf__op *op);
	/* The hold has news: hf__hold_next_news() hands it out. */
	void (*news)(void *host, struct hf__hold *hold);
	void (*log)(void *host, hf_log_level level, const char *line);
	/* The first of n numbers in a row never given before in this process. */
	uint64_t (*number)(void *host, uint32_t n);
};

struct hf__core_config {
	int64_t command_timeout_ms;
	int64_t watchdog_ms;
	int64_t fair_wait_ms;
	int64_t peer_skew_ms;
	int watchdog_batch;
	char uuid[37];
	char description[HF__DESCRIPTION_SIZE]; /* of the client, for those who ask; empty: none */
};

struct hf__core {
	struct hf__core_config config;
	const struct hf__host_ops *host_ops;
	void *host;
	const struct hf__backend_ops *backend_ops;
	void *backend;
	struct hf__wheel wheel;
	struct hf__random random;
	struct hf__table locks;
	struct hf__list looks;  /* queries under way */
	struct hf__list parked; /* calls that wait for another verb of their hold */
	struct hf__list pauses; /* calls that only wait */
	struct hf__list renew;  /* holds to renew now */
	struct hf__list unsent; /* commands there was no room for; answered in the next turn */
	struct hf__renewal renewal[HF__RENEWALS];
	uint64_t last_request;               /* number of the latest request without an owner */
	int64_t record_free_at[HF__RECORDS]; /* HF__NEVER: in use */
	unsigned char permit_prefix[8];      /* of the ids of this client's permits */
	struct hf__op *closing;              /* the call that closes, until all is released */
	uint32_t holds;                      /* of any state but lost and dead */
	int64_t move_ms;                     /* what the latest hand-over took */
	bool linked;
	bool was_linked;
	bool closed;
	int link_error;
	char link_why[200];
	hf_stats stats;
};

/* ---- core.c: life, links and time ---- */
void hf__core_init(struct hf__core *core, const struct hf__core_config *config, uint64_t seed,
                   int64_t now);
/* Frees what is left; no call may be active. */
void hf__core_done(struct hf__core *core);
/* Begins a call. It may finish before this returns. */
void hf__core_start(struct hf__core *core, struct hf__op *op, int64_t now);
/* Asks the call to end early; it finishes now or with the answer under way. */
void hf__core_cancel(struct hf__core *core, struct hf__op *op, int64_t now);
/* Does all that is due. */
void hf__core_turn(struct hf__core *core, int64_t now);
/* Somebody waits for the server, or holds something on it. */
bool hf__core_needs_link(const struct hf__core *core);
/* The call that a command works for, or NULL. */
struct hf__op *hf__core_op_of(const struct hf__cmd *cmd);
/* When the next turn is due at the latest. */
int64_t hf__core_due(const struct hf__core *core);
void hf__core_succeed(struct hf__core *core, struct hf__op *op);
void hf__core_finish(struct hf__core *core, struct hf__op *op, int result, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void hf__core_log(struct hf__core *core, hf_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Ends it with the refusal noted before. */
void hf__core_finish_refused(struct hf__core *core, struct hf__op *op);
/* The server is not ready: notes why and tries the call again soon. */
void hf__core_not_now(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                      int64_t now);
/* Submits; where there is no room for it, it is answered in the next turn as never sent. */
void hf__core_submit(struct hf__core *core, struct hf__cmd *cmd, int64_t now, int64_t limit_ms);

/* ---- kind.c: what the kinds differ in ---- */
enum hf__nesting {
	HF__NEST_COUNTED, /* one hold per owner, counted on the server */
	HF__NEST_HERE,    /* one hold per owner, counted here only */
	HF__NEST_NEVER,   /* one hold per owner, which refuses a second level */
	HF__NEST_APART,   /* no owners: every acquire is a hold of its own */
};

enum hf__trace {
	HF__TRACE_LEASE, /* a grant is a hold, with an end */
	HF__TRACE_TAKEN, /* a grant takes something for good */
	HF__TRACE_NONE,  /* a grant changes nothing */
};

struct hf__traits {
	enum hf__nesting nesting;
	enum hf__trace trace;
	enum hf__channel channel; /* of its own */
	bool queues;              /* the waiters of a client queue here, and only the first asks */
	bool moves;               /* and who releases may hand it to the first of them */
	bool ordered;             /* each waiter has a place in a queue on the server */
	bool spins;               /* waits by asking, not by listening */
	bool session;             /* a hold lasts as long as the session, unless we end it */
	bool several;             /* one acquire may be for several holds */
	uint8_t half;             /* of a read-write lock: the kind of the other half */
	bool writes;              /* and this is the half that excludes */
	bool skewed;              /* its ends are compared with clocks of other hosts */
	uint8_t family;           /* holds of one family are renewed by one script */
};

extern const struct hf__traits hf__kind_traits[HF__KINDS];

static inline const struct hf__traits *hf__kind_of(const struct hf__lock *lock)
{
	return &hf__kind_traits[lock->kind];
}

/* Its name for people. */
const char *hf__kind_word(int kind);

/* The pause before the next attempt. */
int64_t hf__kind_pause(struct hf__core *core, struct hf__op *op);

/* ---- name.c ---- */
/* NULL if the name is good, else the reason. */
const char *hf__name_check(const char *name);

/* ---- lock.c: the records ---- */
/* The record of this name with one more reference, or NULL without memory. */
struct hf__lock *hf__lock_ref(struct hf__core *core, int kind, const char *name);
/* The same for values of a group: n of HF__VALUE_SIZE bytes, sorted. */
struct hf__lock *hf__lock_ref_group(struct hf__core *core, const char *name, const char *values,
                                    size_t n);
/* The record if there is one; no reference is taken. */
struct hf__lock *hf__lock_find(struct hf__core *core, int kind, const char *name);
void hf__lock_unref(struct hf__core *core, struct hf__lock *lock);
/* Frees the record if nothing needs it. */
void hf__lock_drop_unused(struct hf__core *core, struct hf__lock *lock);
/* Lets the first of the queue ask, unless a thread of this process is known to hold the lock. */
void hf__lock_next(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* The call waits for a hold of this process to end, and for nothing that comes from the server. */
bool hf__lock_waits_here(const struct hf__op *op, int64_t now);
/* Another owner of this process holds the lock, as far as we know. */
bool hf__lock_held_here(const struct hf__lock *lock, int64_t now);
/* Until when a reader lets a writer of its process go first; 0: there is none. */
int64_t hf__lock_yields(struct hf__core *core, const struct hf__op *op, int64_t now);
/* The first of the queue knows when to ask next. */
bool hf__lock_is_waiting(const struct hf__lock *lock);
/* Calls that waited for a verb of this owner start over. */
void hf__lock_unpark(struct hf__core *core, struct hf__lock *lock, uint64_t owner, int64_t now);
void hf__lock_park(struct hf__core *core, struct hf__op *op);
/* Listens to the channel; the hold is that of a waiter's own. 0 or HF_ENOMEM. */
int hf__lock_watch(struct hf__core *core, struct hf__lock *lock, enum hf__channel channel,
                   struct hf__hold *hold);
bool hf__lock_is_watched(const struct hf__lock *lock, enum hf__channel channel,
                         const struct hf__hold *hold);
/* Ends the watches of this hold's own; without a hold those of all. */
void hf__lock_unwatch(struct hf__core *core, struct hf__lock *lock, const struct hf__hold *hold);
/* The queue has a member: no watch ends. */
void hf__lock_joined(struct hf__core *core, struct hf__lock *lock);
/* The queue lost a member: the watches may end soon. */
void hf__lock_left(struct hf__core *core, struct hf__lock *lock, int64_t now);
void hf__lock_timer(struct hf__core *core, const struct hf__watch *watch);
/* Lock-free: the milliseconds left, 0 if this owner holds nothing valid; ret_state may be NULL. */
int64_t hf__lock_remaining(const struct hf__lock *lock, uint64_t owner, int64_t now,
                           hf_state *ret_state);

/* ---- hold.c ---- */
struct hf__hold *hf__hold_find(struct hf__lock *lock, uint64_t owner);
struct hf__hold *hf__hold_new(struct hf__core *core, struct hf__lock *lock, uint64_t owner);
/* Of the reading half: the wire owner of this owner's write hold, which lets it read inside; 0: it has none. */
uint64_t hf__hold_writer(struct hf__core *core, const struct hf__lock *lock, uint64_t owner);
/* One more of the same acquisition, not in the lock's list before it is granted; NULL without memory. */
struct hf__hold *hf__hold_new_sibling(const struct hf__hold *first, uint32_t number);
/* Frees one that was never granted. */
void hf__hold_drop_sibling(struct hf__hold *hold);
/* It was granted with the first. */
void hf__hold_join(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *first);
/* It is over: frees it and lets those who waited for that go on. */
void hf__hold_end(struct hf__core *core, struct hf__hold *hold, int64_t now);
static inline bool hf__hold_busy(const struct hf__hold *hold)
{
	return hold->op || hold->cmd.in_flight;
}
/* It is renewed until it is given up. */
static inline bool hf__hold_is_renewed(const struct hf__hold *hold)
{
	return hold->watched_from || hf__kind_of(hold->cmd.lock)->session;
}
/* A lost one that was heard of: it ends, or what is left of it on the server is removed. */
void hf__hold_forget(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* The call leaves the hold, which goes on. */
void hf__hold_idle(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Gives the hold a cell if it has none. */
void hf__hold_take_cell(struct hf__hold *hold);
/* When a lease granted by a request of this time ends for us. */
int64_t hf__hold_valid_until(int64_t sent_at, int64_t lease_ms);
/* A server confirmed the lease: believe it if it is still in time; false if not. */
bool hf__hold_confirm(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms, int64_t now);
/* It may end sooner than believed: at the end of this lease. */
void hf__hold_shorten(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms);
/* It has a new end, sooner or later than the old one. */
void hf__hold_set_lease(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                        int64_t lease_ms);
/* Lost, if its time is over; true if it is lost now. */
bool hf__hold_check(struct hf__core *core, struct hf__hold *hold, int64_t now);
void hf__hold_lose(struct hf__core *core, struct hf__hold *hold, enum hf__lost_reason reason,
                   int64_t now);
/* Somebody asks its owner to give it up. */
void hf__hold_asked(struct hf__core *core, struct hf__hold *hold);
/* Stops believing without a loss: the owner gave it up. */
void hf__hold_hide(struct hf__core *core, struct hf__hold *hold);
/* The lease behind valid_until: that of the session, or what ends the hold before. */
int64_t hf__hold_lease(const struct hf__hold *hold);
/* A level has a lease of its own, which ends then; of a session that is for us to know. */
void hf__hold_note_end(struct hf__hold *hold, int64_t end, int64_t lease_ms);
/* Sets the timer to whatever comes first. */
void hf__hold_arm(struct hf__core *core, struct hf__hold *hold);
void hf__hold_timer(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* The call leaves; what it may have left on the server is removed in the background. */
void hf__hold_abandon(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Sends what the hold waits to send. */
void hf__hold_resume(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Finishes a call about a lost hold with the reason. */
void hf__hold_finish_lost(struct hf__core *core, struct hf__op *op, const struct hf__hold *hold,
                          const char *holder, size_t length, int64_t now);
void hf__hold_explain(const struct hf__hold *hold, int64_t now, char *ret_text, size_t size);
/* The oldest news, false if there is none. */
bool hf__hold_next_news(struct hf__hold *hold, hf_state *ret_state);
/* The host has told all news: a dead hold is freed now. */
void hf__hold_told(struct hf__core *core, struct hf__hold *hold);

/* ---- acquire.c ---- */
void hf__acquire_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__acquire_ask(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* The lease it is to have. */
int64_t hf__acquire_lease(const struct hf__core *core, const struct hf__op *op);
/* Takes the lock over from a hold of this process that is being released. */
void hf__acquire_from(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *from,
                      int64_t now);
void hf__acquire_deadline(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__acquire_cancel(struct hf__core *core, struct hf__op *op, int64_t now);
/* Ends the call without the lock. */
void hf__acquire_give_up(struct hf__core *core, struct hf__op *op, int result, int64_t now);
/* The server may count a level that nobody has: puts that right if it can be done now. */
void hf__acquire_correct(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Frees the holds of permits that were not granted. */
void hf__acquire_drop_siblings(struct hf__op *op);
void hf__extend_start(struct hf__core *core, struct hf__op *op, int64_t now);

/* All of the queue may ask now. */
void hf__acquire_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* A message: so many may ask now. */
void hf__acquire_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                      int64_t now);

/* ---- release.c ---- */
void hf__release_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__release_settle(struct hf__core *core, struct hf__hold *hold, int64_t now);
void hf__release_deadline(struct hf__core *core, struct hf__op *op, int64_t now);
/* What became of handing the hold of this wire owner over. */
void hf__release_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
void hf__release_not_moved(struct hf__core *core, struct hf__lock *lock, uint64_t wire,
                           enum hf__outcome outcome, int64_t now);

/* ---- watchdog.c ---- */
/* Puts the hold on the list of those to renew. */
void hf__watchdog_want(struct hf__core *core, struct hf__hold *hold);
/* Takes it off, also out of a script under way. */
void hf__watchdog_drop(struct hf__core *core, struct hf__hold *hold);
/* Sends what is on the list. */
void hf__watchdog_flush(struct hf__core *core, int64_t now);
/* When a hold confirmed by a request of that time is renewed. */
int64_t hf__watchdog_next(int64_t sent_at, int64_t lease_ms);

/* ---- record.c ---- */
/* A record for a request that is about to be sent. */
uint16_t hf__record_take(struct hf__core *core, uint64_t request, int64_t now);
/* It may be used for another request from then on. */
void hf__record_free(struct hf__core *core, uint16_t record, int64_t at);

/* ---- query.c ---- */
void hf__query_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__query_resume(struct hf__core *core, struct hf__look *look, int64_t now);
/* The permit's id as it is on the server. */
void hf__query_permit_id(const struct hf__core *core, uint64_t wire,
                         unsigned char ret_id[HF__PERMIT_SIZE]);
/* The number of a permit taken by this client, 0 of any other. */
uint64_t hf__query_permit_wire(const struct hf__core *core,
                               const unsigned char id[HF__PERMIT_SIZE]);
/* The call ends without an answer. */
void hf__query_leave(struct hf__core *core, struct hf__op *op, int result, int64_t now);

/* ---- test-only breakage, off in the library ---- */
enum hf__mutant {
	HF__MUTANT_NONE,
	HF__MUTANT_REPLY_TIME,      /* valid-until counted from the reply */
	HF__MUTANT_REUSED_WIRE,     /* one wire owner for all acquisitions of an owner */
	HF__MUTANT_NO_SECOND_ASK,   /* sleeps right after subscribing */
	HF__MUTANT_DOUBLE_RELEASE,  /* a repeated release subtracts twice */
	HF__MUTANT_RENEW_RELEASED,  /* renews after release */
	HF__MUTANT_ONE_MISS_ENDS,   /* one failed renewal ends renewal */
	HF__MUTANT_NESTED_SHORTENS, /* a nested acquire shortens the lease */
	HF__MUTANT_NO_DRIFT,        /* no margin for clocks that run apart */
	HF__MUTANT_WAKE_IS_GRANT,   /* a wake-up is taken for a grant */
	HF__MUTANT_BLIND_MOVE,      /* a hand-over without an answer is taken for done */
	HF__MUTANTS
};

#ifdef HF_MUTANTS
extern enum hf__mutant hf__mutant;
#define HF__MUTANT(name) (hf__mutant == HF__MUTANT_##name)
#else
#define HF__MUTANT(name) 0
#endif

#endif
