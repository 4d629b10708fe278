/* A survey in progress, and the rows that it collects. */
#ifndef HF_ZK_SURVEY_H
#define HF_ZK_SURVEY_H

#include "base/buffer.h"
#include "zk/zk.h"

#define HF__SURVEY_LISTED 200 /* holders, and also waiters, in one row */

/*
 * One command in progress, or a walk between two of its steps. Every request of it carries the
 * command, so a request that comes back without one belongs to a command that was answered as
 * unknown, and changes nothing.
 */
struct hf__survey {
	struct hf__survey *next; /* in zk->surveys */
	struct hf__cmd *cmd;
	uint32_t walk;           /* its number; 0: about one name, or about the servers */
	uint32_t visits;         /* in this step */
	char cursor[24];         /* the first row, if it is not empty */
	struct hf__buffer rows;  /* each after its length */
	size_t row_count;        /* without the cursor */
	struct hf__buffer paths; /* that a walk has to visit, each with its NUL; the last is next */
	struct hf__buffer fields; /* of the holders that were read */
	char path[HF__ZK_PATH];   /* the path that is being visited */
	char **names;             /* its children, in order */
	size_t count;
	size_t holders, waiters; /* holders first, then waiters, then strangers */
	size_t requested;        /* how many of them are read */
	size_t answered;         /* how many of those were answered */
	size_t listed;           /* how many of the holders are in the fields */
	size_t described;        /* how many of the waiters are in the fields, after the holders */
	size_t sessions;         /* how many sessions the described waiters belong to */
	int64_t session[HF__SURVEY_LISTED];
	bool visiting;    /* the visit is not finished */
	bool in_leases;   /* the path is a semaphore's folder of leases */
	bool no_memory;   /* there was none for one of the holders */
	bool not_members; /* what seemed to be members of a barrier are folders */
	int64_t token;
	const char *kind;
};

/* ---- survey_row.c; each is 0 or HF_ENOMEM ---- */
/* A node, as read by the request, that holds the lock or waits for it. Holders come first. */
int hf__survey_row_add_holder(const struct hf__zk *zk, struct hf__survey *at, const char *owner,
                              const struct hf__zk_request *request);
int hf__survey_row_add_waiter(const struct hf__zk *zk, struct hf__survey *at, const char *owner,
                              const struct hf__zk_request *request);
/* Everything about the path was added: makes a row of it. */
int hf__survey_row_finish(const struct hf__zk *zk, struct hf__survey *at);
/* The name of the lock at this path, as users give it. */
const char *hf__survey_row_name(const struct hf__zk *zk, const char *path);

#endif
