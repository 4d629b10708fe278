/* Calls of the program, from start to finish. */
#ifndef HF_CORE_OP_H
#define HF_CORE_OP_H

#include "base/list.h"
#include "base/thread.h"
#include "core/want.h"
#include "engine/wheel.h"

#define HF__DETAIL_SIZE 768 /* room for a reason of HF__LINK_WHY_SIZE */
#define HF__PERMITS_MAX 1000
#define HF__VALUES_MAX  100
#define HF__WAITER_MAX  200 /* bytes of a waiter's name on the server */
#define HF__LEAST_LEASE 10
#define HF__LONGEST_MS  INT64_C(315576000000) /* ten years */

/* Where a call is between its start and its finish. */
enum hf__op_phase {
	HF__OP_IDLE,    /* not started, or finished */
	HF__OP_RUNNING, /* asks, or waits for the server or for its deadline */
	HF__OP_PARKED,  /* waits for another command of its hold to be answered */
	HF__OP_RESTING, /* lets waiters elsewhere ask first, until its retry */
	HF__OP_LOCAL,   /* waits for another call of this client to let it continue */
};

/* Whether the server has granted what replicas are still to acknowledge. */
enum hf__op_sync {
	HF__OP_UNSYNCED, /* not granted, or not to be acknowledged */
	HF__OP_SYNCING,  /* granted, but too few replicas are known to have the grant */
	HF__OP_OUTDATED, /* the same, and that grant is known to have ended meanwhile */
};

/* The host owns it until it starts and again once it is finished. */
struct hf__op {
	struct hf__list link; /* in lock->queue, core->parked or core->pauses */
	struct hf__timer deadline;
	struct hf__timer retry; /* when to ask again */
	struct hf__want want;
	struct hf__lock *lock;
	struct hf__hold *hold;
	struct hf__query *query; /* the command of a query */
	/* The calling thread, of an acquire; the op holds a reference. */
	struct hf__thread *thread;
	/* The holds of an acquire of several permits, except for the first. */
	struct hf__list siblings;
	int64_t started_at;
	int64_t started_us; /* the same, with metrics */
	int64_t granted_at; /* while it syncs: when the ask was sent that was granted */
	int64_t token;      /* while it syncs: that of the grant */
	int64_t number;     /* out */
	uint64_t owner; /* out: the owner of the hold that was granted, which may be a new number */
	int result;     /* out */
	int refusal;    /* HF_E…: why the server was not ready, with the reason in detail */
	uint32_t pauses;   /* of a spin lock, so far */
	uint32_t pause_ms; /* the next one */
	uint8_t phase;     /* enum hf__op_phase */
	uint8_t sync;      /* enum hf__op_sync */
	bool cancelled;    /* waits for the answer in flight, then finishes */
	bool waited;       /* counted as a wait */
	bool listens;      /* has waited for its own client long enough to listen as well */
	bool woken;        /* by a message, and has not been answered since */
	bool late;         /* its deadline has passed, but an answer is about to arrive */
	char detail[HF__DETAIL_SIZE]; /* out: the facts of a failure */
	char text[128];               /* out: the holder */
};

static inline bool hf__op_is_active(const struct hf__op *op)
{
	return op->phase != HF__OP_IDLE;
}

/* Makes the call active and starts its deadline. */
void hf__op_begin(struct hf__core *core, struct hf__op *op, int64_t now);
/* When the call finishes at the latest, by what it wants. */
int64_t hf__op_deadline(const struct hf__core *core, const struct hf__op *op);
/* The call has to wait, which counts once. */
void hf__op_count_wait(struct hf__core *core, struct hf__op *op);
void hf__op_succeed(struct hf__core *core, struct hf__op *op);
void hf__op_finish(struct hf__core *core, struct hf__op *op, int result, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Finishes the call with the refusal that was noted before. */
void hf__op_finish_refused(struct hf__core *core, struct hf__op *op);
/* The server is not ready: notes why, and tries the call again soon. */
void hf__op_retry_later(struct hf__core *core, struct hf__op *op, const struct hf__answer *answer,
                        int64_t now);

#endif
