/*
 * The seam between what a lock is and how a server stores it.
 *
 * A command goes down and exactly one answer comes back, later, never from inside submit(). The
 * core and its backends know each other only through this header. Everything happens with the
 * client's mutex held, unless a comment says otherwise.
 */
#ifndef HF_CORE_BACKEND_H
#define HF_CORE_BACKEND_H

#include "base/list.h"
#include "base/random.h"
#include "engine/wheel.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__PERMIT_SIZE      16    /* bytes of a permit's id */
#define HF__RECORDS          1024  /* of one client on the server, see HF__SEMAPHORE_RELEASE */
#define HF__RECORD_MS        20000 /* how long the server keeps such a record */
#define HF__VALUE_SIZE       22    /* bytes of a group's value, hashed */
#define HF__RENEW_MAX        100   /* holds that one command renews at most */
#define HF__BATCH_ANY        UINT32_MAX
#define HF__NOT_NOW_MS       100  /* between attempts while the server is not ready */
#define HF__DESCRIPTION_SIZE 400  /* of a client, with its NUL */
#define HF__PUBLISHED_MAX    1000 /* bytes of the value that a caller publishes with its hold */

struct hf__core;
struct hf__lock;
struct hf__hold;
struct hf__cmd;

/* Room for what went wrong with each of several addresses. */
#define HF__LINK_WHY_SIZE    640
#define HF__LINK_SERVER_SIZE 300

/*
 * A link: one connection, or one session, as the core sees it. Everything about one name goes over
 * one link. Most backends have only the core's own; others make one for each node.
 */
struct hf__link {
	bool up;
	bool was_up;                       /* it has been up before */
	bool is_awaited;                   /* calls wait for it even if it has never been up */
	uint32_t holds;                    /* of its locks, in any state except lost and dead */
	uint32_t reconnects;               /* how many times it came up again */
	uint64_t commands;                 /* that were sent over it */
	int64_t up_at;                     /* while it is up: since when */
	int error;                         /* HF_E… */
	char why[HF__LINK_WHY_SIZE];       /* why it is down */
	char server[HF__LINK_SERVER_SIZE]; /* while it is up: its other end; empty: not known */
};

/* The kinds that hf_lock_open() does not offer. Their numbers follow those of hf_kind. */
enum hf__kind {
	HF__GROUP = HF_LEADER + 1,
	HF__SEMAPHORE,
	HF__PERMITS,
	HF__LATCH,
	HF__BARRIER,
	HF__MEMBER, /* a member of a double barrier */
	HF__EXIT,   /* the way out of a double barrier */
	HF__KINDS
};

/* What a command does, and the outcomes of its answer. */
enum hf__verb {
	/*
	 * Make the wire owner's count exactly `count`, and let the lock last for at least
	 * `lease_ms`. A repeat changes nothing. A count of 1 can take a free lock; a higher count
	 * needs an existing hold. For kinds without owners: take `count` permits, or find out
	 * whether the latch is open. GRANTED, BUSY (only if count is 1), GONE (only if it is
	 * higher).
	 */
	HF__ASK,
	/*
	 * Make the count exactly `count`, lower than it was. 0 removes the hold, its place in the
	 * server's queue, and everything else that an ask may have left. DONE, with the number of
	 * clients that were notified as count, and perhaps more that were not counted; GONE.
	 */
	HF__SETTLE,
	/*
	 * Move the hold of wire owner `from` to the command's wire owner, with a count of 1 and the
	 * command's lease. A repeat changes nothing. GRANTED; GONE if neither holds the lock.
	 */
	HF__MOVE,
	/*
	 * Let each of `items` last for at least its lease; without items, the command's own hold.
	 * DONE, with a result for each item.
	 */
	HF__RENEW,
	/*
	 * Renew the command's own hold, with a write in any case, and wait until `count` replicas
	 * have acknowledged that, but not longer than the sync timeout. DONE, with the number that
	 * has, which may be lower; GONE if the hold no longer exists. UNKNOWN if that cannot be
	 * found out, UNSENT and NOT_NOW if it cannot be found out now.
	 */
	HF__SYNC,
	/* Remove the lock, even if another client holds it. DONE, with count 1 if it existed. */
	HF__FORCE,
	/* Ask the holder to give the lock up. DONE, with count 1 if there is a holder. */
	HF__REVOKE,
	/* Read the lock. DONE, with ttl_ms, the wire owner's count, and the holder's identity. */
	HF__LOOK,
	/* Make a round trip. DONE. */
	HF__PING,
	/* Identify the server. DONE, with a text that differs for independent servers. */
	HF__IDENTIFY,
	/*
	 * List the locks, step by step. `words` are a cursor, "0" for the first step, and a pattern
	 * that the backend can use to leave rows out; the caller matches every row again. DONE,
	 * with rows: first the cursor of the next step, "0" after the last, then one for each lock.
	 */
	HF__LIST,
	/*
	 * List the names of locks that somebody waits for, step by step, with `words` as for LIST.
	 * DONE, with rows: first the cursor of the next step, then names. FAILED on a backend
	 * without `finds_waiters`.
	 */
	HF__LIST_WAITED,
	/* Inspect one lock. DONE, with rows: "0", then the lock if it exists. */
	HF__INSPECT,
	/* Inspect the locks that `words` name, all on one link. DONE, with rows as INSPECT. */
	HF__INSPECT_MANY,
	/*
	 * Read a page of the history. `words` are the position after which it begins and a name, or
	 * "" for all names. DONE, with rows: the position after the page, "1" if others may follow,
	 * the server's time in ms since 1970, and then one for each entry.
	 */
	HF__HISTORY,
	/*
	 * Find out which holds the server still has. `words` are kind, name and owner of each, all
	 * on one link. DONE, with rows: the server's time, and then "1" or "0" for each hold.
	 */
	HF__HISTORY_HELD,
	/*
	 * On a cluster, find the histories of single names, step by step. `words` are a cursor as
	 * for LIST, and "find", or "slots" to leave the histories out. DONE, with rows: the cursor
	 * of the next step; the number of slots of this master, "1" if one is being moved, and a
	 * text that differs if its slots do; then for each history the id of its last entry, or
	 * "-", and its key. FAILED on a backend that has no slots.
	 */
	HF__HISTORY_STREAMS,
	/*
	 * Report facts about the server. `words` can be the address of one of the client's servers.
	 * DONE, with rows "name=value".
	 */
	HF__FACTS,
	/* Remove the history. DONE, with the number of entries that it had as count. */
	HF__HISTORY_CLEAR,
	/*
	 * Remove the waiter that `words` name from the server's queue. DONE, with count 1 if it was
	 * in the queue.
	 */
	HF__DROP_WAITER,
	/* Read the latest token of the name. DONE, with count. */
	HF__TOKEN,
	/*
	 * The remaining commands are about semaphores, permits and latches. DONE, with count; GONE
	 * if a permit does not exist. Where a repeat would change more than the first execution,
	 * `wire` numbers the command, `record` is the number of the record in which the server
	 * notes that it has run, and `again` is set if it may have run before.
	 */
	HF__SEMAPHORE_RELEASE,
	HF__SEMAPHORE_RELEASE_IF,
	HF__SEMAPHORE_ADD,
	HF__SEMAPHORE_SET,
	HF__SEMAPHORE_DRAIN,
	HF__PERMITS_RELEASE,
	HF__PERMITS_EXTEND,
	HF__PERMITS_LEASE,
	HF__PERMITS_AVAILABLE,
	HF__PERMITS_ACQUIRED,
	HF__PERMITS_TOTAL,
	HF__PERMITS_TRY_SET,
	HF__PERMITS_SET,
	HF__PERMITS_ADD,
	HF__PERMITS_FROM, /* take the total from the node that `words` name */
	HF__LATCH_SET,
	HF__LATCH_DOWN,
	HF__LATCH_DELETE,
	HF__VERBS
};

/* Where the message arrives that a lock may be free. */
enum hf__channel {
	HF__CHANNEL_LOCK,
	HF__CHANNEL_RW,
	HF__CHANNEL_WAITER, /* each waiter has a channel of its own */
	HF__CHANNEL_PERMITS,
	HF__CHANNEL_LATCH,
};

enum hf__nesting {
	HF__NEST_COUNTED, /* each owner has one hold, whose levels the server counts */
	HF__NEST_HERE,    /* each owner has one hold, whose levels are counted only here */
	HF__NEST_NEVER,   /* each owner has one hold, which refuses a second level */
	HF__NEST_APART,   /* there are no owners: every acquire makes a hold of its own */
};

enum hf__trace {
	HF__TRACE_LEASE, /* a grant is a hold, which ends */
	HF__TRACE_TAKEN, /* a grant takes something for good */
	HF__TRACE_NONE,  /* a grant changes nothing on the server */
};

/* How locks of one kind behave on one backend. */
struct hf__traits {
	/* Kinds with the same number here are one lock on this backend, and in the core. */
	uint8_t kind;
	/* The kind of the other half of a read-write lock; 0 for every other kind. */
	uint8_t half;
	/*
	 * Kinds with the same number here are stored in the same place under one name: a holder of
	 * one keeps the others waiting, and a forced release of one ends all. 0: no other kind is.
	 */
	uint8_t family;
	/* One command renews holds of one group only. The backend chooses the numbers. */
	uint8_t renew_group;
	enum hf__nesting nesting;
	enum hf__trace trace;
	enum hf__channel channel; /* where its releases are announced */
	bool queues;     /* waiters of one client queue here, and only the first of them asks */
	bool moves;      /* a release may hand the hold over to the first of that queue */
	bool ordered;    /* each waiter has a place in a queue on the server */
	bool spins;      /* waits by asking again, not by listening */
	bool session;    /* a hold lasts as long as the session, unless this client ends it */
	bool several;    /* one acquire can be for several holds */
	bool writes;     /* the half of a read-write lock that excludes */
	bool yields;     /* readers of a client let its writers go first */
	bool skewed;     /* its expiry is compared with the clocks of other hosts */
	bool tokens;     /* a grant can carry a token */
	bool notes;      /* a waiter can leave a note on the server */
	bool unrecorded; /* the server keeps no record of its commands: a removal is not repeated */
};

enum hf__outcome {
	HF__GRANTED,
	HF__BUSY, /* another owner holds it */
	HF__DONE,
	HF__GONE,    /* the server has no such hold */
	HF__UNSENT,  /* the command was never sent */
	HF__UNKNOWN, /* it was sent, and no answer will arrive */
	HF__NOT_NOW, /* refused and not executed; a later attempt may succeed */
	HF__FAILED,  /* refused and not executed */
};

/* As ttl_ms of a semaphore or of permits: their number was not set. */
#define HF__TTL_UNSET (-3)

struct hf__answer {
	enum hf__outcome outcome;
	/* UNSENT, UNKNOWN, NOT_NOW, FAILED: HF_E… */
	int error;
	/*
	 * BUSY: how long the holder's lease lasts at most; negative if it does not expire, -2 if
	 * the lock is free but another waiter is next, or HF__TTL_UNSET. LOOK: the same, but
	 * -2 if it is free.
	 */
	int64_t ttl_ms;
	/* DONE: what the verb says. */
	int64_t count;
	/* GRANTED: 0 without a token. */
	int64_t token;
	/* SETTLE: the wire owner of this client that is next in the queue, or 0. */
	uint64_t next;
	/* SETTLE: more clients than `count` may have been notified. */
	bool uncounted;
	/* BUSY: the channel to watch. */
	enum hf__channel channel;
	/* BUSY: hf__core_wake_owner() will wake the waiter, so there is nothing to watch. */
	bool watched;
	/* The holder, or the server's error message. May lack a NUL, or be NULL if it is empty. */
	const char *text;
	size_t length;
	/* RENEW: for each item, whether the hold still exists. */
	const bool *there;
	/*
	 * LIST, LIST_WAITED, INSPECT, INSPECT_MANY, HISTORY, HISTORY_HELD, HISTORY_STREAMS, FACTS:
	 * the number of rows, and how to read them.
	 */
	size_t rows;
	const char *(*row)(const struct hf__answer *answer, size_t i, size_t *ret_length);
	/* The backend's: where the rows come from. */
	const void *source;
};

/* One hold to renew. A lease of 0 only finds out whether the hold still exists. */
struct hf__renew_item {
	struct hf__lock *lock;
	uint64_t wire;
	int64_t lease_ms;
};

typedef void hf__answer_fn(struct hf__core *core, struct hf__cmd *cmd,
                           const struct hf__answer *answer, int64_t now);

/* The core owns it; the backend uses it from submit() until it answers. */
struct hf__cmd {
	/* In a list of the backend's. */
	struct hf__list link;
	/* Where the answer goes. The core fills in this field and all that follow. */
	hf__answer_fn *on_answer;
	struct hf__lock *lock;
	uint64_t wire; /* the wire owner, or the number of a command without an owner */
	int64_t lease_ms;
	int64_t sent_at;   /* never later than the first byte */
	int64_t answer_by; /* when the backend gives the connection up */
	/* The backend's own fields of a command in flight; the core clears them when it submits. */
	struct {
		union {
			uint64_t offset; /* where in the output its request begins */
			uint64_t beat;   /* the number of the heartbeat whose answer it waits for */
		};
		uint32_t step;   /* how many of its parts have been dealt with */
		uint8_t outcome; /* enum hf__outcome of an answer that is handed up next turn */
		uint8_t redirections;
		bool whole_text : 1;  /* the script itself was sent, not its hash */
		bool asks : 1;        /* it is sent to a node that does not own its slot yet */
		bool has_asked : 1;   /* and that node has answered the word that announces this */
		bool starts_over : 1; /* a list whose cursor is of no use any more */
		bool is_refused : 1;  /* the first of its two replies was an error */
	} backend;
	union {
		/* RENEW: the holds to renew; NULL: the command's own. */
		const struct hf__renew_item *item;
		/* Commands about permits: their ids. */
		const unsigned char (*permit)[HF__PERMIT_SIZE];
		/*
		 * LIST, LIST_WAITED, INSPECT_MANY, HISTORY, HISTORY_HELD, HISTORY_STREAMS,
		 * DROP_WAITER, PERMITS_FROM: texts, each with its NUL.
		 */
		const char *words;
		/*
		 * Another wire owner. MOVE: the holder before; an ask to leave a double barrier:
		 * the member that leaves; an ask to read: the write hold of the same owner, or 0.
		 */
		uint64_t from;
	};
	int32_t count;
	uint16_t items;     /* how many items, permits or words; of an ask: permits, from wire on */
	uint16_t record;    /* of a command without an owner: which record it uses */
	uint32_t place_ms;  /* of an ask: how long to keep its place in the queue; 0: wants none */
	uint32_t sent_us;   /* the core's, with metrics: the low bits of when it was submitted */
	uint8_t verb;       /* enum hf__verb */
	uint8_t user;       /* the core's: enum hf__cmd_user */
	bool in_flight;     /* submitted and not answered */
	bool again : 1;     /* the same command may have run unanswered */
	bool token : 1;     /* a grant needs a token */
	bool revocable : 1; /* the holder wants to know when another client asks for the lock */
	bool synced : 1;    /* of an ask: a grant is expected at once, and a SYNC follows it */
	bool kept : 1;      /* of a hold: its grant goes into the history, and so does its end */
	/*
	 * Of an ask: if not 0, the call has waited for this long and leaves a note on the server
	 * that says so, which lasts for three polls; a grant removes it. The settle after such an
	 * ask removes it as well.
	 */
	uint32_t waited_ms;
};

/* One interest in a channel. The core owns it; the backend uses it from watch() to unwatch(). */
struct hf__watch {
	struct hf__list link;   /* in a list of the backend's */
	void *sub;              /* the backend's */
	struct hf__watch *next; /* the core's */
	struct hf__lock *lock;
	struct hf__hold *hold; /* of a waiter's own channel: the waiter; else NULL */
	uint64_t wire;         /* of that hold */
	uint8_t channel;
	struct hf__timer timer; /* the core's: when to end it */
};

/* Whether the command is a step of a walk over all servers, whose first word is a cursor. */
static inline bool hf__backend_is_walk(const struct hf__cmd *cmd)
{
	return cmd->verb == HF__LIST || cmd->verb == HF__LIST_WAITED ||
	       cmd->verb == HF__HISTORY_STREAMS;
}

/* One item of a RENEW. */
static inline struct hf__renew_item hf__backend_item(const struct hf__cmd *cmd, uint16_t i)
{
	assert(cmd && cmd->verb == HF__RENEW && i < cmd->items);
	struct hf__renew_item own = {
		.lock = cmd->lock, .wire = cmd->wire, .lease_ms = cmd->lease_ms};
	return cmd->item ? cmd->item[i] : own;
}

/* What the core and its backend need to know of the client's settings. */
struct hf__core_config {
	int64_t command_timeout_ms;
	int64_t watchdog_ms;
	int64_t fair_wait_ms;
	int64_t peer_skew_ms;
	int64_t sync_timeout_ms; /* how long replicas have to acknowledge a grant */
	int replicas;            /* that must acknowledge a grant, unless the call says otherwise */
	int watchdog_batch;
	int history; /* about how many entries the history keeps; 0: there is none */
	/* The history has only holds that were waited for, losses and forced releases. */
	bool history_contended;
	char uuid[HF__UUID_LENGTH + 1];
	char description[HF__DESCRIPTION_SIZE]; /* shown with its locks; empty: none */
};

struct hf__backend_ops {
	/*
	 * Takes the command for this link, which is up; 0, or HF_ENOMEM if there is no room: then
	 * no answer will come.
	 */
	int (*submit)(void *backend, struct hf__link *link, struct hf__cmd *cmd);
	/*
	 * Nobody waits for this SYNC any more. True: no answer will come, and the command is the
	 * core's again. False: the answer arrives soon. May be missing.
	 */
	bool (*withdraw)(void *backend, struct hf__cmd *cmd);
	/*
	 * Start and stop reporting the messages on this channel with hf__core_wake(). A watch takes
	 * effect before any command that is submitted later, and again after each reconnect before
	 * hf__core_on_link_up(). 0 or HF_ENOMEM.
	 */
	int (*watch)(void *backend, struct hf__watch *watch);
	void (*unwatch)(void *backend, struct hf__watch *watch);
	/* The core needs this link: connects now if it is not up. */
	void (*want_link)(void *backend, struct hf__link *link);
	/*
	 * The link for everything about this name; without a name, for commands about none. May be
	 * missing: then it is always the core's own. NULL without memory.
	 */
	struct hf__link *(*route)(void *backend, const char *name, size_t length);
	/*
	 * The i-th of all links that can have locks, and what messages call the server at its other
	 * end; NULL after the last. May be missing: then there is only the core's own.
	 */
	const struct hf__link *(*link_at)(void *backend, int i, const char **ret_shown);
	/*
	 * The slot of this name: names of one slot always have the same link. May be missing, and
	 * is 0 while it is not known that there are slots.
	 */
	uint16_t (*slot)(void *backend, const char *name, size_t length);
	/* Whether one command can name several locks, whatever their slots. May be missing: no. */
	bool (*asks_together)(void *backend);
	/* It has LIST_WAITED. Without that, waiters are found by a walk over all locks. */
	bool finds_waiters;
	/*
	 * Holds are renewed by one command only if this number is the same; HF__BATCH_ANY if it is
	 * the same for all, as it also is if this is missing.
	 */
	uint32_t (*batch)(void *backend, const struct hf__lock *lock);

	/* How locks of this kind behave; NULL and the reason if the backend has no such locks. */
	const struct hf__traits *(*traits)(int kind, const char **ret_why);
	/* What is wrong with the name on this backend only, or NULL. May be missing. */
	const char *(*find_fault)(const char *name);
	/* The lock is about to be freed. May be missing. */
	void (*forget)(void *backend, const struct hf__lock *lock);
	/* What the hold of this wire owner is called on the server; empty if that is not known. */
	void (*write_identity)(void *backend, const struct hf__lock *lock, uint64_t wire,
	                       char *ret_text, size_t size);
	/* When the next turn is due at the latest. */
	int64_t (*due)(void *backend);
	/* Input was read or time has passed: does everything that is due. Driver only. */
	void (*turn)(void *backend, int64_t now);
	/* It is connecting, or waits for an answer. */
	bool (*is_busy)(void *backend);
	/* The commands in flight, in the order in which answers arrive. */
	const struct hf__list *(*list_waiting)(void *backend);

	/* Closes the connection, after the engine's threads have ended. Without the mutex. */
	void (*close)(void *backend);
	/* In a forked child: closes descriptors and touches nothing else. Without the mutex. */
	void (*close_in_child)(void *backend);
	/* Without the mutex. */
	void (*free)(void *backend);
};

/* ---- what a backend calls, with the client's mutex held ---- */

/* Makes it the core's backend; once, before the first call starts. */
void hf__core_set_backend(struct hf__core *core, const struct hf__backend_ops *ops, void *backend);
const struct hf__core_config *hf__core_settings(const struct hf__core *core);
/* A random number, for seeds. */
uint64_t hf__core_random(struct hf__core *core);
void hf__log_write(struct hf__core *core, hf_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The core's own link. */
struct hf__link *hf__core_link(struct hf__core *core);
/* A link that has never been up. */
void hf__core_link_init(struct hf__link *link);
/* A call waits for this link, or something is held on it. */
bool hf__core_needs_link(const struct hf__core *core, const struct hf__link *link);

/* Hands an answer up; the command is the core's again. */
void hf__core_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now);

/* The link is up: the core can submit commands. */
void hf__core_on_link_up(struct hf__core *core, struct hf__link *link, int64_t now);
/*
 * The link is down. Right after this, the backend answers the commands in flight: as UNKNOWN, or as
 * UNSENT if it is certain that they were never sent.
 */
void hf__core_on_link_down(struct hf__core *core, struct hf__link *link, int error, const char *why,
                           int64_t now);
/* An attempt to connect failed. */
void hf__core_on_link_failed(struct hf__core *core, struct hf__link *link, int error,
                             const char *why, int64_t now);
/*
 * Names have other links now: everything about them that is not in flight continues there, and what
 * is held is renewed. Commands in flight keep their connection.
 */
void hf__core_reroute(struct hf__core *core, int64_t now);
/* The same if only the names of one slot have another link. */
void hf__core_reroute_slot(struct hf__core *core, uint16_t slot, int64_t now);
/* Visits the watches of all locks of this slot; none may be added or removed meanwhile. */
void hf__core_each_watch(struct hf__core *core, uint16_t slot,
                         void (*visit)(void *arg, struct hf__watch *watch), void *arg);
/* A message on this watch: the lock may be free, or this number of permits. */
void hf__core_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                   int64_t now);
/* The lock may be free for this waiter, which was answered BUSY with `watched`. */
void hf__core_wake_owner(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
/* The lock may be free for any of its waiters. */
void hf__core_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* Another client asks the owner of this hold to give it up. */
void hf__core_revoke(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
/* The value that the caller of an ask publishes with its hold, or NULL. */
const char *hf__core_value(const struct hf__cmd *cmd);
/* A call still waits for this command, and has not been cancelled. */
bool hf__core_is_wanted(const struct hf__cmd *cmd);
/* The server no longer has this hold. */
void hf__core_lose(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
/*
 * The earliest valid-until of the holds that are renewed over this link; HF__NEVER if there are
 * none. Holds with a fixed lease do not count, since no renewal would make them last longer.
 */
int64_t hf__core_nearest_end(const struct hf__core *core, const struct hf__link *link);
/* Sets the lease of holds without a lease of their own: the server has granted a session. */
void hf__core_set_watchdog(struct hf__core *core, int64_t watchdog_ms);
/* The server refuses this watch, which belongs to the core alone again. */
void hf__core_on_watch_failed(struct hf__core *core, struct hf__watch *watch, int error,
                              const char *text, size_t length, int64_t now);

enum hf__gave_up { HF__GAVE_UP_NOT, HF__GAVE_UP_TIMED_OUT, HF__GAVE_UP_CANCELLED };

/* What the history says about a command. Times are -1 if they are not known. */
struct hf__entry {
	int64_t ms;      /* a grant: how long its call has waited; an end: how long it was held */
	int64_t from_ms; /* MOVE: how long the hold was held that ends */
	bool is_lost;    /* SETTLE: the hold was lost, not released */
	/* SETTLE: the loss gets its entry even if the server no longer has the hold. */
	bool says_gone;
	/*
	 * SETTLE: if there is no such hold, the entry says that the call waited in vain, for how
	 * long, and how long ago it gave up.
	 */
	enum hf__gave_up gave_up;
	uint32_t waited_ms;
	int64_t ago_ms;
};

/* Whether the command leaves an entry in the history if it changes something, and which. */
bool hf__entry_make(const struct hf__core *core, const struct hf__cmd *cmd,
                    struct hf__entry *ret_entry);

/* The id of a permit of this client, as it is stored on the server. */
void hf__permit_id(const struct hf__core *core, uint64_t wire,
                   unsigned char ret_id[HF__PERMIT_SIZE]);
/* The same id as users see it, and back; false if the text is not 32 hexadecimal digits. */
void hf__permit_write(const unsigned char id[HF__PERMIT_SIZE], hf_permit_id ret_text);
bool hf__permit_read(const char *text, unsigned char ret_id[HF__PERMIT_SIZE]);
/* The wire owner of a permit that this client took; 0 for any other. */
uint64_t hf__permit_wire(const struct hf__core *core, const unsigned char id[HF__PERMIT_SIZE]);

/* The kind as users write it. */
const char *hf__kind_word(int kind);

/* ---- what a backend can know about a lock ---- */

/* The lock if it is known; no reference is taken. The kind is one that traits name. */
struct hf__lock *hf__lock_find(struct hf__core *core, int kind, const char *name);
void hf__lock_add_ref(struct hf__lock *lock);
void hf__lock_unref(struct hf__core *core, struct hf__lock *lock);
const char *hf__lock_name(const struct hf__lock *lock);
size_t hf__lock_name_length(const struct hf__lock *lock);
/* The kind that its traits name. */
int hf__lock_kind(const struct hf__lock *lock);
const struct hf__traits *hf__lock_traits(const struct hf__lock *lock);
/* Where its commands go. */
struct hf__link *hf__lock_link(const struct hf__lock *lock);
/* The values of a group, HF__VALUE_SIZE bytes each, one after the other. */
const char *hf__lock_values(const struct hf__lock *lock, size_t *ret_n);

#endif
