/* Queries, and every other command that holds nothing. */
#ifndef HF_CORE_QUERY_H
#define HF_CORE_QUERY_H

#include "base/list.h"
#include "core/backend.h"

struct hf__op;

/* The command of such a call; it outlives a call that gives up. */
struct hf__query {
	struct hf__cmd cmd;
	struct hf__op *op;
	struct hf__list link_in_core; /* in core->queries */
	struct hf__link *any_link;    /* where it is sent if it is about no lock */
	bool has_begun;               /* an extension: no other one of its permit is in progress */
	bool was_renewed;             /* the permit that is being extended was renewed before */
	bool recorded;                /* it uses the record that cmd names */
	int64_t known_until;          /* until when the server recognises a repeat by that record */
	union {
		char words[HF__PERMIT_SIZE];
		unsigned char permit[HF__PERMIT_SIZE];
	} given[]; /* by the caller */
};

/* Where it is sent. */
static inline struct hf__link *hf__query_link(const struct hf__query *query)
{
	return query->cmd.lock ? hf__lock_link(query->cmd.lock) : query->any_link;
}

/* Keeps the memory with which something of this lock is given back; false if there is none. */
bool hf__query_reserve(struct hf__core *core, const struct hf__lock *lock);
void hf__query_start(struct hf__core *core, struct hf__op *op, int64_t now);
void hf__query_resume(struct hf__core *core, struct hf__query *query, int64_t now);
/* Finishes the call without an answer. */
void hf__query_leave(struct hf__core *core, struct hf__op *op, int result, int64_t now);
/* Frees all, when nothing runs any more. */
void hf__query_done(struct hf__core *core);

#endif
