/*
 * Calls. A function describes each call: it checks the arguments and says what is wanted. Then the
 * calling thread runs it and waits, or it is started and completes by callback.
 */
#ifndef HF_API_CALL_H
#define HF_API_CALL_H

#include "base/thread.h"
#include "core/core.h"
#include "engine/engine.h"

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <stdint.h>

struct hf__several;

/* A call that is described and not started yet. */
struct hf__spec {
	/* HF_E… if an argument is wrong, with its detail set; running the call returns it. */
	int error;
	struct hf_client *client;
	struct hf__lock *lock;       /* the object that the call is about, or NULL */
	struct hf__several *several; /* the members, if that is a multi or red lock */
	struct hf__want want;
	/* Not 0: the call is about the owner's hold of this wire owner, and about no other. */
	uint64_t only;
	uint64_t *ret_wire; /* where the wire owner of the granted hold is stored, or NULL */
	bool returns_ids;   /* an asynchronous acquire of permits completes with their ids */
};

/* A call in progress: on the stack of its thread, or allocated if it completes by callback. */
struct hf__call {
	struct hf__task task;
	struct hf_client *client;
	struct hf__list in_cancel; /* among the calls of its cancel token */
	struct hf__list in_done;   /* in client->done once it has finished */
	hf_done_fn *done;          /* of an asynchronous call */
	/* Of a call inside another one: finishes and frees it under the mutex. */
	void (*finish_inner)(struct hf__call *call);
	void *arg;
	uint64_t only;
	uint64_t *ret_wire;
	char *ids;        /* room for the ids of permits; owned, like the next field */
	char *value;      /* the copy that want.value points to */
	struct hf__op op; /* comes last: its texts need no initialisation */
};

/* A thread waits for it. The others complete by callback. */
static inline bool hf__call_has_thread(const struct hf__call *call)
{
	return !call->done && !call->finish_inner;
}

/* Makes the call ready to be started. */
void hf__call_init(struct hf__call *call, const struct hf__spec *spec);
/* Frees an allocated call that has finished, or was not started. */
void hf__call_free(struct hf__call *call);
/* Runs the call, waits for it, and returns its result; the other results are in call->op. */
int hf__call_run(struct hf__call *call, const struct hf__spec *spec);
/* The same with the number of the result; ret may be NULL. */
int hf__call_number(struct hf__spec spec, int64_t *ret);
int hf__call_int(struct hf__spec spec, int *ret);
/* Starts a call that completes by callback. 0, or an error; then nothing was started. */
int hf__call_start(struct hf__spec spec, hf_done_fn *done, void *arg);
/*
 * The same, but `finish_inner` finishes the call, in whichever thread that happens, under the
 * client's mutex, and frees it. The cancel token is ignored, and the lock must outlive the call.
 */
int hf__call_start_inner(struct hf__spec spec, void (*finish_inner)(struct hf__call *call),
                         void *arg);
/*
 * The hold that the owner has, or has lost and not released yet; not what is left of earlier
 * ones. NULL if there is none. Mutex held.
 */
const struct hf__hold *hf__call_hold(const struct hf__lock *lock, uint64_t owner);
/*
 * The detail of HF_ENOTHELD: if another owner of this client holds the lock, it names that owner,
 * since the usual cause is a release in another thread. Mutex held.
 */
void hf__call_explain_not_held(struct hf_client *client, const struct hf__lock *lock,
                               uint64_t owner, char *ret_text, size_t size);

#endif
