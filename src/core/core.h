/*
 * The core: what a lock is. It knows calls, holds, waiters and the watchdog; it formats no
 * requests, and has no sockets and no clock.
 *
 * The host (the client, or a simulation) owns the mutex and the clock: it calls every function here
 * with the client's mutex held, and passes the time. Calls (struct hf__op) belong to the host until
 * they are started and again once they are finished. Holds belong to the core.
 *
 * The files of the core in the order in which to read them. Each calls only those above it;
 * tools/check-includes reads this list and checks that. What goes the other way is an event (struct
 * hf__core_events), or an answer that a command's own function takes.
 *
 *   name.c       which names a lock may have
 *   kind.c       the names of the kinds
 *   permit.c     the ids of permits
 *   record.c     the server's records of commands without an owner
 *   spin.c       how a spin lock waits
 *   log.c        log lines
 *   measure.c    histograms of durations
 *   cmd.c        commands: how they go down to the backend
 *   policy.c     how long a hold lasts: with a lease, or with a session
 *   lock.c       locks: references, wait queue, watches, parked calls
 *   op.c         calls: how they begin and finish
 *   note.c       when a waiting call leaves a note on the server
 *   hold.c       holds: how long one is valid, its news, its end
 *   entry.c      which commands leave an entry in the server's history
 *   watchdog.c   renews holds in batches
 *   release.c    releases levels and cleans up
 *   durable.c    lets replicas acknowledge a grant before it counts
 *   acquire.c    acquires and extends
 *   handover.c   hands a hold over to the next waiter of the same client
 *   query.c      queries, and every other command that holds nothing
 *   core.c       starts calls, and receives the events of the seam and of time
 */
#ifndef HF_CORE_CORE_H
#define HF_CORE_CORE_H

#include "base/clock.h"
#include "base/list.h"
#include "base/random.h"
#include "base/table.h"
#include "core/backend.h"
#include "core/hold.h"
#include "core/lock.h"
#include "core/measure.h"
#include "core/op.h"
#include "core/watchdog.h"
#include "engine/wheel.h"

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <stdint.h>

enum hf__timer_tag { HF__TIMER_DEADLINE = 1, HF__TIMER_RETRY, HF__TIMER_HOLD, HF__TIMER_WATCH };

struct hf__host_ops {
	/* The call is finished: result, number, detail and text are final. */
	void (*on_finish)(void *host, struct hf__op *op);
	/* The call waits for a message from now on. */
	void (*on_listen)(void *host, struct hf__op *op);
	/* The call waits for a hold of this client only. */
	void (*on_idle)(void *host, struct hf__op *op);
	/* The hold has news, which hf__hold_next_news() returns. */
	void (*on_news)(void *host, struct hf__hold *hold);
	void (*log)(void *host, hf_log_level level, const char *line);
	/* The first of n numbers in a row that were never used before in this process. */
	uint64_t (*new_numbers)(void *host, uint32_t n);
};

#define HF__SLOT_LISTS 512

/* The events that lower files hand up to core.c. */
struct hf__core_events {
	/* A parked call starts again. */
	void (*start)(struct hf__core *core, struct hf__op *op, int64_t now);
	/* The hold sends what it waits to send. */
	void (*resume)(struct hf__core *core, struct hf__hold *hold, int64_t now);
};

struct hf__core {
	struct hf__core_config config;
	const struct hf__host_ops *host_ops;
	void *host;
	const struct hf__core_events *events;
	const struct hf__backend_ops *backend_ops;
	void *backend;
	struct hf__wheel wheel;
	struct hf__random random;
	struct hf__table locks;
	struct hf__list slots[HF__SLOT_LISTS]; /* the same locks, by their slots */
	struct hf__list queries;               /* queries that are not answered */
	struct hf__list parked;  /* calls that wait for another command of their hold */
	struct hf__list pauses;  /* calls that only wait for their deadline */
	struct hf__list starved; /* calls that wait for the spare query */
	struct hf__query *spare; /* for a call that gives something back without memory, or NULL */
	bool spare_is_used;
	struct hf__list renew;  /* holds to renew now */
	struct hf__list unsent; /* commands the backend had no room for; answered next turn */
	struct hf__renewal renewal[HF__RENEWALS];
	struct hf__hold *renewal_hold[HF__RENEW_ITEMS];
	struct hf__renew_item renewal_item[HF__RENEW_ITEMS];
	uint64_t last_number;                /* number of the latest command without an owner */
	int64_t record_free_at[HF__RECORDS]; /* HF__NEVER: in use */
	unsigned char permit_prefix[8];      /* of the ids of this client's permits */
	struct hf__op *closing;              /* the call that closes, until all is released */
	uint32_t holds;                      /* in any state except lost and dead */
	int64_t move_ms;                     /* how long the latest hand-over took */
	struct hf__link link;                /* the only one, unless the backend has others */
	int links_up;
	bool closed;
	hf_stats stats;
	uint64_t losses[HF__LOST_REASONS]; /* stats.losses by reason */
	uint64_t recovered;                /* holds that were at risk and were renewed */
	uint64_t false_wakeups;            /* waiters that a message woke in vain */
	struct hf__metrics *metrics;       /* the host's; NULL: none are wanted */
};

void hf__core_init(struct hf__core *core, const struct hf__core_config *config, uint64_t seed,
                   int64_t now);
/* Frees what is left; no call may be active. */
void hf__core_done(struct hf__core *core);
/* Starts a call, which may finish before this returns. */
void hf__core_start(struct hf__core *core, struct hf__op *op, int64_t now);
/* Makes the call finish early: now, or with the answer that is in flight. */
void hf__core_cancel(struct hf__core *core, struct hf__op *op, int64_t now);
/* Does everything that is due. */
void hf__core_turn(struct hf__core *core, int64_t now);
/* When the next turn is due at the latest. */
int64_t hf__core_due(const struct hf__core *core);

#endif
