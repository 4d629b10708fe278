/* Locks: what one client knows about each name and kind. */
#ifndef HF_CORE_LOCK_H
#define HF_CORE_LOCK_H

#include "base/list.h"
#include "base/table.h"
#include "core/backend.h"

#include <stdatomic.h>

#define HF__YIELD_MS      5    /* how long a reader lets a writer of its process go first */
#define HF__WATCH_KEEP_MS 1000 /* how long a subscription outlives its last waiter */
#define HF__SLOW_POLL_MS  3000 /* how often a waiter asks if nothing wakes it up */
#define HF__LISTEN_MS     100  /* after this long a waiter for its own client listens too */

struct hf__op;

/* The part of a hold that its owner can read without the mutex. Freed with its lock. */
struct hf__cell {
	_Atomic uint64_t owner; /* 0: unused */
	_Atomic int64_t valid_until;
	_Atomic int64_t risk_at;
	_Atomic(struct hf__cell *) next;
	struct hf__hold *hold; /* whose cell it is, NULL if it is free; needs the mutex */
};

/* Lives while a handle, a hold, a waiter or a command needs it. */
struct hf__lock {
	struct hf__table_link by_key; /* in core->locks */
	struct hf__list in_slot;      /* in one of core->slots */
	struct hf__cell cell;         /* the first of its cells */
	struct hf__list holds;        /* all acquisitions, held or not */
	struct hf__list queue;        /* calls that wait to acquire; only the first asks */
	struct hf__hold *held;        /* of an exclusive lock: the hold of this client, or NULL */
	struct hf__watch *watches;    /* the channels it listens to */
	const struct hf__traits *traits;
	struct hf__link *link; /* where its commands go */
	uint32_t rested_at;    /* when a waiter last let other clients ask first */
	uint32_t refs;         /* handles, commands in flight, parked calls, holds with news */
	uint8_t values;        /* of a group: how many values follow the name */
	uint8_t kind;          /* that of the traits */
	uint16_t length;
	uint16_t slot;  /* of its name, if the backend has slots */
	bool contended; /* its latest grant was waited for */
	char name[];
};

/* The lock of this name with one more reference, or NULL without memory. */
struct hf__lock *hf__lock_ref(struct hf__core *core, int kind, const char *name);
/* The same for a group of n values, HF__VALUE_SIZE bytes each, sorted. */
struct hf__lock *hf__lock_ref_group(struct hf__core *core, const char *name, const char *values,
                                    size_t n);
/* Notes the slot of the lock's name, which may have become known only now. */
void hf__lock_set_slot(struct hf__core *core, struct hf__lock *lock);
/* The link that this name has now; NULL without memory. Without a name, any link. */
struct hf__link *hf__lock_route(struct hf__core *core, const char *name, size_t length);
/*
 * Another lock of the same name and family, and of groups with a value in common; `after` NULL
 * returns the first, and after the last one NULL is returned.
 */
struct hf__lock *hf__lock_rival(struct hf__core *core, const struct hf__lock *lock,
                                const struct hf__lock *after);
/* Frees the lock if nothing needs it. */
void hf__lock_drop_unused(struct hf__core *core, struct hf__lock *lock);

/* Lets the first of the wait queue ask, unless this client is known to hold the lock. */
void hf__lock_let_next(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* The call waits for a hold of this client to end, and for nothing from the server. */
bool hf__lock_waits_here(const struct hf__op *op, int64_t now);
/* This client holds the lock, as far as it knows. */
bool hf__lock_is_held_here(const struct hf__lock *lock, int64_t now);
/* The call is the first that waits for a hold of this client, and does not listen yet. */
bool hf__lock_may_listen(struct hf__core *core, const struct hf__op *op, int64_t now);
/* The first of the wait queue listens soon if it waits for a hold of this client. */
void hf__lock_listen_soon(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* Until when a reader lets a writer of its client go first; 0 if there is none. */
int64_t hf__lock_yield_until(struct hf__core *core, const struct hf__op *op, int64_t now);
/* The first of the wait queue knows when to ask next. */
bool hf__lock_is_waiting(const struct hf__lock *lock);

/* The first of the wait queue, or NULL. */
struct hf__op *hf__lock_first_waiter(const struct hf__lock *lock);
/* Lets every waiter ask. */
void hf__lock_wake_all(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* Lets as many waiters ask as the message on this watch is for. */
void hf__lock_wake(struct hf__core *core, const struct hf__watch *watch, int64_t number,
                   int64_t now);

/* Parks the call until a command of the same hold has been answered. */
void hf__lock_park(struct hf__core *core, struct hf__op *op);
/* Starts the parked calls of this owner again. */
void hf__lock_unpark(struct hf__core *core, struct hf__lock *lock, uint64_t owner, int64_t now);

/* Listens to the channel; a waiter's own channel belongs to its hold. 0 or HF_ENOMEM. */
int hf__lock_watch(struct hf__core *core, struct hf__lock *lock, enum hf__channel channel,
                   struct hf__hold *hold);
bool hf__lock_is_watched(const struct hf__lock *lock, enum hf__channel channel,
                         const struct hf__hold *hold);
/* Ends the watches that belong to this hold; without a hold, all watches of the lock. */
void hf__lock_unwatch(struct hf__core *core, struct hf__lock *lock, const struct hf__hold *hold);
/* A call has joined the wait queue: the watches stay. */
void hf__lock_keep_watches(struct hf__core *core, struct hf__lock *lock);
/* A call has left the wait queue: if it was the last, the watches end soon. */
void hf__lock_end_watches_soon(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* The timer of a watch has fired. */
void hf__lock_on_timer(struct hf__core *core, const struct hf__watch *watch);

/* The milliseconds left, 0 if this owner holds nothing valid. Any thread; ret_state may be NULL. */
int64_t hf__lock_remaining(const struct hf__lock *lock, uint64_t owner, int64_t now,
                           hf_state *ret_state);

#endif
