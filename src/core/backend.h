/*
 * The seam between what a lock is and how a server stores it.
 *
 * A command goes down, one answer comes up, exactly once, later, never from inside submit(). The
 * core speaks to a backend only through this header; a backend calls the hf__core_… functions
 * named here. Everything happens under the client's mutex.
 */
#ifndef HF_CORE_BACKEND_H
#define HF_CORE_BACKEND_H

#include "base/list.h"
#include "engine/wheel.h"

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__PERMIT_SIZE      16    /* bytes of a permit's id */
#define HF__RECORDS          1024  /* of one client on the server, see HF__SEMAPHORE_RELEASE */
#define HF__RECORD_MS        20000 /* how long the server keeps such a record */
#define HF__VALUE_SIZE       22    /* bytes of a group's value, hashed */
#define HF__RENEW_MAX        100   /* holds that one command renews at most */
#define HF__NOT_NOW_MS       100   /* between attempts while the server is not ready */
#define HF__DESCRIPTION_SIZE 400   /* of a client, with its NUL */
#define HF__PUBLISHED_MAX    1000  /* bytes of the value that a caller publishes with its hold */

struct hf__core;
struct hf__lock;
struct hf__hold;
struct hf__cmd;

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

enum hf__verb {
	/*
	 * Make the wire owner's count exactly `count` and let the lock last at least `lease_ms`. A
	 * repeat changes nothing. 1 may take a free lock; more than 1 needs a hold that is there.
	 * Of kinds without owners: take `count` permits, or see whether the latch is open.
	 * GRANTED, BUSY (1 only), GONE (more than 1).
	 */
	HF__ASK,
	/*
	 * Make the count exactly `count`, lower than it was; 0 removes the hold, its place in a queue,
	 * and all else that an ask may have left. DONE, with count: how many were told that it is free.
	 * GONE.
	 */
	HF__SETTLE,
	/*
	 * Move the hold of wire owner `from` to the wire owner, count 1, for the lease. A repeat changes
	 * nothing. GRANTED, GONE if neither holds it.
	 */
	HF__MOVE,
	/*
	 * Let each of `items` last at least its lease; without items the command's own lock. DONE
	 * with a result per item.
	 */
	HF__RENEW,
	/* Remove the lock, whoever holds it. DONE with count 1 if it was there, else 0. */
	HF__FORCE,
	/* Ask whoever holds it to give it up. DONE with count 1 if there was somebody, else 0. */
	HF__REVOKE,
	/* Read: DONE with ttl_ms, the wire owner's count and the holder's identity. */
	HF__LOOK,
	/* A round trip. DONE. */
	HF__PING,
	/* Who the server is. DONE with a text: words that two servers share if they are not apart. */
	HF__IDENTIFY,
	/* What is there: all locks step by step, one of them, the server itself. DONE with rows. */
	HF__LIST,
	HF__INSPECT,
	HF__FACTS,
	/* Remove the waiter that `words` name from the lock's queue. DONE with count 1 if it was there, else 0. */
	HF__DROP_WAITER,
	/* The latest token of the name. DONE with count. */
	HF__TOKEN,
	/*
	 * What semaphores, permits and latches know beyond that: DONE with count. Where a second
	 * execution would change more than the first, `wire` numbers the request and `record` says
	 * where the server notes that it has run; `again`: it may have run before. GONE: a permit is
	 * not there.
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
	HF__PERMITS_FROM, /* the total is what the node says that `words` name */
	HF__LATCH_SET,
	HF__LATCH_DOWN,
	HF__LATCH_DELETE,
	HF__VERBS
};

/* Where a sign comes from that a lock may be free. */
enum hf__channel {
	HF__CHANNEL_LOCK,
	HF__CHANNEL_RW,
	HF__CHANNEL_WAITER, /* of a waiter's own */
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
	/* Kinds with the same number here are one lock on this backend and share its records. */
	uint8_t kind;
	/* The kind of the other half of a read-write lock; 0 for every other kind. */
	uint8_t half;
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
	bool unrecorded; /* the server keeps no record of its requests: a removal is not repeated */
};

enum hf__outcome {
	HF__GRANTED,
	HF__BUSY, /* another holds it; ttl_ms tells for how long at most, < 0 without end */
	HF__DONE,
	HF__GONE,    /* the server has no such hold; text names the present holder, if any */
	HF__UNSENT,  /* the command never left */
	HF__UNKNOWN, /* it left, and no answer will come */
	HF__NOT_NOW, /* refused and not executed; a later try may do */
	HF__FAILED,  /* refused and not executed */
};

struct hf__answer {
	enum hf__outcome outcome;
	int error;                /* UNSENT, UNKNOWN, NOT_NOW, FAILED: HF_E… */
	int64_t ttl_ms;           /* BUSY, LOOK; BUSY: -2 if it is free, but another's turn */
	int64_t count;            /* FORCE, LOOK and the rest */
	int64_t token;            /* GRANTED: 0 without one */
	uint64_t next;            /* SETTLE: the wire owner of ours whose turn it is now, or 0 */
	enum hf__channel channel; /* BUSY: what to watch */
	bool watched; /* BUSY: hf__core_wake_owner() will tell, there is nothing to watch */
	const char
		*text; /* the holder, or the server's words; may lack a NUL, or be NULL if empty */
	size_t length; /* of the text */
	const bool *there; /* RENEW: for each item, whether the hold was there */
	size_t rows;       /* LIST, INSPECT, FACTS */
	const char *(*row)(const struct hf__answer *answer, size_t i, size_t *ret_length);
	const void *source; /* the backend's: where the rows come from */
};

/* One hold to renew; lease 0 only asks whether it is still there. */
struct hf__renew_item {
	struct hf__lock *lock;
	uint64_t wire;
	int64_t lease_ms;
};

typedef void hf__answered_fn(struct hf__core *core, struct hf__cmd *cmd,
                             const struct hf__answer *answer, int64_t now);

/* Owned by the core; the backend has it from submit() until it answers. */
struct hf__cmd {
	struct hf__list link;      /* the backend's */
	hf__answered_fn *answered; /* filled in by the core, as all below */
	struct hf__lock *lock;
	uint64_t wire; /* number of the wire owner */
	int64_t lease_ms;
	int64_t sent_at;   /* never later than the first byte */
	int64_t answer_by; /* past this the backend gives the connection up */
	/* The backend's notes about a command in flight; the core clears them when it submits. */
	struct {
		uint64_t offset; /* where in the output its request begins */
		uint64_t beat;   /* the number of the heartbeat whose answer it waits for */
		uint32_t step;   /* how many of its parts have been dealt with */
		uint8_t outcome; /* enum hf__outcome of an answer that is handed up next turn */
		bool whole_text; /* the script itself was sent, not its hash */
	} backend;
	union {
		const struct hf__renew_item *item;
		const unsigned char (*permit)[HF__PERMIT_SIZE]; /* permits given by their ids */
		const char *words;                              /* LIST: each with its NUL */
		/*
		 * Another wire owner. MOVE: whose hold it was; an ask to leave: who leaves; an ask to
		 * read: the same owner's writer, or 0.
		 */
		uint64_t from;
	};
	int32_t count;
	uint16_t items;  /* renewals, or permits: of an ask those from wire on */
	uint16_t record; /* of a request without an owner: which of the client's records it uses */
	uint8_t verb;
	uint8_t user;       /* the core's: what it is part of */
	uint32_t place_ms;  /* a fair ask: how long its place in the queue is kept; 0: wants none */
	bool in_flight;     /* submitted and not answered */
	bool again : 1;     /* one like it may have run unanswered */
	bool token : 1;     /* a grant is to have a token */
	bool revocable : 1; /* who holds it wants to know when it is asked for */
};

/* One interest in a channel. The core's; the backend has it from watch() to unwatch(). */
struct hf__watch {
	struct hf__list link;   /* the backend's */
	void *sub;              /* the backend's */
	struct hf__watch *next; /* the core's */
	struct hf__lock *lock;
	struct hf__hold *hold; /* whose waiter channel it is, or NULL */
	uint64_t wire;         /* of that hold */
	uint8_t channel;
	struct hf__timer timer; /* the core's: ends it */
};

/* One item of a renewal. */
static inline struct hf__renew_item hf__backend_item(const struct hf__cmd *cmd, uint16_t i)
{
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
	int watchdog_batch;
	char uuid[37];
	char description[HF__DESCRIPTION_SIZE]; /* for those who inspect its locks; empty: none */
};

struct hf__backend_ops {
	/* 0, or HF_ENOMEM if there is no room for it: then nothing was taken and no answer comes. */
	int (*submit)(void *backend, struct hf__cmd *cmd);
	/*
	 * Begin or end to report what comes on this channel by hf__core_wake(). Takes effect before
	 * any command submitted later, and again after each reconnect before hf__core_link_up(). 0 or
	 * HF_ENOMEM.
	 */
	int (*watch)(void *backend, struct hf__watch *watch);
	void (*unwatch)(void *backend, struct hf__watch *watch);
	/* The core wants a connection: connect now if there is none. */
	void (*want_link)(void *backend);

	/* How locks of this kind behave here; NULL and the reason if this backend has none. */
	const struct hf__traits *(*traits)(int kind, const char **ret_why);
	/* What is wrong with the name beyond what is wrong everywhere, or NULL. */
	const char *(*fault)(const char *name);
	/* The record is freed: what is known of it can go. */
	void (*forget)(void *backend, const struct hf__lock *lock);
	/* What the hold of this wire owner is called on the server; empty if it is not known. */
	void (*identity)(void *backend, const struct hf__lock *lock, uint64_t wire, char *ret_text,
	                 size_t size);
	/* When it must be turned at the latest. */
	int64_t (*due)(void *backend);
	/* Input was read or time has passed: does all there is to do. Driver only. */
	void (*turn)(void *backend, int64_t now);
	/* Connecting, or waiting for an answer. */
	bool (*busy)(void *backend);
	/* The commands under way, in the order in which answers come. */
	const struct hf__list *(*waiting)(void *backend);
	/* Closes the connection; the engine's threads have ended. Without the mutex, as the next two. */
	void (*close)(void *backend);
	/* In a forked child: closes descriptors, touches nothing else. */
	void (*forked)(void *backend);
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
/* A call waits for the server, or something is held on it. */
bool hf__core_needs_link(const struct hf__core *core);
/* The client has been connected before. */
bool hf__core_was_linked(const struct hf__core *core);

/* Hands an answer up; the command is the core's again. */
void hf__core_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now);

/* The connection works: commands may be submitted. */
void hf__core_link_up(struct hf__core *core, int64_t now);
/*
 * It does not any more. The commands under way are answered right after this, as UNKNOWN, or as
 * UNSENT where it is certain that they never left.
 */
void hf__core_link_down(struct hf__core *core, int error, const char *why, int64_t now);
/* An attempt to connect failed. */
void hf__core_link_failed(struct hf__core *core, int error, const char *why, int64_t now);
/* The lock may have become free, or so many permits. */
void hf__core_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                   int64_t now);
/* The same for one who was answered BUSY with `watched`. */
void hf__core_wake_owner(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
/* The same for all who wait for the lock. */
void hf__core_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* Somebody asks for this hold. */
void hf__core_asked(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
/* The value that the caller of an ask publishes with its hold, or NULL. */
const char *hf__core_value(const struct hf__cmd *cmd);
/* A call still waits for this command, and has not been cancelled. */
bool hf__core_is_wanted(const struct hf__cmd *cmd);
/* The server has this hold no more. */
void hf__core_gone(struct hf__core *core, struct hf__lock *lock, uint64_t wire, int64_t now);
/*
 * When the first of the holds ends that are being renewed; HF__NEVER if there are none. Those with a fixed
 * lease end then whatever is done about it.
 */
int64_t hf__core_nearest_end(const struct hf__core *core);
/* What a hold without a lease of its own lasts from now on: a session was agreed upon. */
void hf__core_set_watchdog(struct hf__core *core, int64_t watchdog_ms);
/* The channel cannot be listened to; the watch is the core's again. */
void hf__core_watch_failed(struct hf__core *core, struct hf__watch *watch, int error,
                           const char *text, size_t length, int64_t now);

/* The id of a permit of this client, as it is stored on the server. */
void hf__permit_id(const struct hf__core *core, uint64_t wire,
                   unsigned char ret_id[HF__PERMIT_SIZE]);
/* The wire owner of a permit that this client took; 0 for any other. */
uint64_t hf__permit_wire(const struct hf__core *core, const unsigned char id[HF__PERMIT_SIZE]);

/* The kind's name for people. */
const char *hf__kind_word(int kind);

/* What a backend may know of a lock. */
/* The record if there is one; no reference is taken. The kind is one that traits name. */
struct hf__lock *hf__lock_find(struct hf__core *core, int kind, const char *name);
void hf__lock_add_ref(struct hf__lock *lock);
void hf__lock_unref(struct hf__core *core, struct hf__lock *lock);
const char *hf__lock_name(const struct hf__lock *lock);
size_t hf__lock_name_length(const struct hf__lock *lock);
/* The kind that its traits name. */
int hf__lock_kind(const struct hf__lock *lock);
const struct hf__traits *hf__lock_traits(const struct hf__lock *lock);
/* Of a group: its values, HF__VALUE_SIZE bytes each, one behind the other. */
const char *hf__lock_values(const struct hf__lock *lock, size_t *ret_n);

#endif
