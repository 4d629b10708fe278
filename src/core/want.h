/*
 * What a call is to do. The caller fills it in once, from checked arguments; the core reads it
 * and never changes it.
 */
#ifndef HF_CORE_WANT_H
#define HF_CORE_WANT_H

#include "core/backend.h"

#include <stdbool.h>
#include <stdint.h>

struct hf__buffer;
struct hf_cancel;

/* What a call does. */
enum hf__op_action {
	HF__OP_ACQUIRE,
	HF__OP_RELEASE,
	HF__OP_EXTEND,
	HF__OP_FORCE,
	HF__OP_QUERY,   /* reads the state of a lock; want.question says what is read from it */
	HF__OP_COMMAND, /* the command that want.command names */
	HF__OP_PING,
	HF__OP_NOTHING, /* succeeds at once */
	HF__OP_PAUSE,   /* succeeds when its time has passed */
	HF__OP_LINK,    /* succeeds as soon as there is a connection */
	HF__OP_CLOSE,
	HF__OP_ACTIONS
};

/* What a query wants to know. */
enum hf__question {
	HF__QUERY_IS_LOCKED,
	HF__QUERY_IS_HELD, /* by the owner, like the next one */
	HF__QUERY_COUNT,
	HF__QUERY_TTL,
	HF__QUERY_HOLDER,
	HF__QUERY_IS_SET, /* a barrier */
};

/* How a spin lock waits; all zero: with the defaults. */
struct hf__spin {
	uint16_t first_ms, most_ms, factor;
};

struct hf__want {
	/* The owner that the call is for. 0 for kinds without owners: the core picks a number. */
	uint64_t owner;
	int64_t wait_ms;  /* HF_NOWAIT; 0: without limit (acquire), or the default of the action */
	int64_t limit_ms; /* with HF_NOWAIT, if not 0: how long the one attempt may take */
	int64_t lease_ms; /* 0: the watchdog's */
	/* Published with the hold, or NULL. Belongs to the caller, until the call has finished. */
	const char *value;
	/* Of a command: `amount` strings, or `amount` valid permit ids. The core copies them. */
	const char *words;
	const hf_permit_id *permit;
	struct hf__buffer *rows;  /* rows of the answer go here, or NULL */
	uint64_t from;            /* the owner that wants to leave a double barrier */
	struct hf_cancel *cancel; /* the host's own, or NULL: the core does not read it */
	int32_t amount;           /* permits, counts */
	struct hf__spin spin;
	int16_t replicas; /* that must acknowledge a grant; 0: the default; negative: none */
	uint8_t action;   /* enum hf__op_action */
	uint8_t command;  /* enum hf__verb of HF__OP_COMMAND */
	uint8_t question; /* enum hf__question of HF__OP_QUERY */
	bool by_thread;   /* the owner is the calling thread */
	bool token;       /* the grant must come with a fencing token */
	bool revocable;   /* the owner wants to know when somebody asks for the hold */
	bool nested;      /* only as one more level of an existing hold */
};

/* A query about what the owner itself holds. */
static inline bool hf__want_is_about_owner(const struct hf__want *want)
{
	return want->action == HF__OP_QUERY &&
	       (want->question == HF__QUERY_IS_HELD || want->question == HF__QUERY_COUNT);
}

#endif
