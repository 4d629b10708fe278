/*
 * The insides of an hf_client and of the handles that it hands out.
 *
 * The files of the room in the order in which to read them. Each calls only those above it, also
 * by exported names; tools/check-includes reads this list and checks that. In the other direction
 * there are only the functions of the core's host and of the engine's machine, and the completions
 * of calls.
 *
 *   error.c         error texts, and the detail of each thread's last error
 *   options.c       copies structs of any release, and checks what several options share
 *   setting.c       the table of settings
 *   draft.c         settings while they are gathered
 *   password.c      the password of a client
 *   address.c       the addresses of the servers
 *   settings.c      gathers a client's settings and checks them
 *   client.c        the life of a client: references, calls inside it, its process
 *   cancel.c        owners and cancel tokens
 *   call.c          runs calls: in a thread that waits, or with a callback
 *   host.c          what the core says to its client
 *   handle.c        handles: objects of a client, of any kind
 *   whole.c         what an owner holds of several locks as one
 *   members.c       the members of a multi or red lock, which its handles share
 *   repair.c        takes lost members again, and releases excess levels
 *   plan.c          what the plans of multi and red locks share
 *   multi.c         plans of multi locks, which need all of their members
 *   red.c           plans of red locks, which need a majority of independent servers
 *   several.c       runs calls on several locks, in rounds
 *   lock_open.c     opens and closes lock handles
 *   locks.c         calls on locks
 *   permits.c       permits that expire
 *   semaphore.c     semaphores
 *   latch.c         latches
 *   barrier.c       barriers and double barriers
 *   dispatch.c      the callbacks of a client
 *   heartbeat.c     the client as the engine sees it
 *   client_open.c   opens and closes clients
 *   client_info.c   what a client can say about itself and its servers
 *   exposition.c    writes metrics as text
 *   metrics.c       takes a snapshot of a client's metrics
 *   pattern.c       patterns for names
 *   rows.c          the rows of an answer
 *   inspect.c       lists locks, and facts about the server
 *   history_row.c   one row of the history, as a program reads it
 *   streams.c       finds the streams that are the history of a cluster
 *   history.c       reads the history
 */
#ifndef HF_API_CLIENT_H
#define HF_API_CLIENT_H

#include "api/call.h"
#include "api/settings.h"
#include "core/cmd.h"
#include "core/core.h"
#include "core/name.h"
#include "engine/engine.h"

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define HF__LOG_LINES 32
#define HF__LOG_SIZE  384
#define HF__NAME_SIZE 513

struct hf__log_line {
	hf_log_level level;
	char text[HF__LOG_SIZE];
};

/* Freed once the client and the last of its handles are closed. */
struct hf_client {
	struct hf__engine engine;
	struct hf__core core;
	struct hf__settings settings;
	const _Atomic bool *ours; /* on a page that a fork wipes, so it is false in the child */
	_Atomic uint32_t refs;   /* the client itself, its handles, calls that return without one */
	_Atomic uint32_t inside; /* calls in progress */
	_Atomic bool closing;    /* hf_client_close() waits for them to leave */
	struct hf__list done;    /* asynchronous calls whose completion is due */
	struct hf__list news;    /* holds with news to report */
	struct hf__list members; /* of red locks, which are notified of losses */
	struct hf__table several; /* multi and red locks whose first member is of this client */
	uint32_t async_calls;     /* that are not finished */
	hf_event_fn *on_event;
	void *event_arg;
	hf_name_fn *map_name;
	void *map_arg;
	hf_log_fn *on_log;
	void *log_arg;
	struct hf__log_line *log; /* a ring; NULL without on_log */
	uint32_t log_first, log_count, log_missed;
};

/* What all handles begin with: an object of a client. */
struct hf__handle {
	struct hf_client *client;
	struct hf__lock *lock;
};

/* Kept small, since a program may have one for each lock that it holds. */
struct hf_lock {
	struct hf__handle at; /* without a lock: a multi or red lock */
	union {
		struct hf__spin spin;        /* of a spin lock: how it waits */
		struct hf__several *several; /* of a multi or red lock: its members */
	};
};

/* The members of a multi or red lock; NULL for any other lock. */
static inline struct hf__several *hf__locks_several(const struct hf_lock *lock)
{
	return lock->at.lock ? NULL : lock->several;
}

struct hf_semaphore {
	struct hf__handle at;
};

struct hf_permits {
	struct hf__handle at;
};

struct hf_latch {
	struct hf__handle at;
};

struct hf_barrier {
	struct hf__handle at;
};

struct hf_double_barrier {
	struct hf__handle in, out;
	int members;
	pthread_mutex_t mutex;
	uint64_t inside; /* the owner that has entered; 0: none */
};

struct hf_owner {
	uint64_t number;
};

struct hf_cancel {
	pthread_mutex_t mutex;
	_Atomic bool fired;
	_Atomic pid_t process; /* that the mutex and the calls belong to */
	struct hf__list calls; /* in progress with this token */
};

/* ---- error.c ---- */
/* Sets the detail for this thread. */
void hf__error_explain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, and is the error: a macro, so that compilers and checkers see which error it is. */
#define hf__error(error, ...) (hf__error_explain(__VA_ARGS__), (error))
/* The error of a pointer that must not be NULL; `name` is NULL if all of them were given. */
static inline int hf__error_null(const char *name)
{
	return name ? hf__error(HF_EINVAL, "%s must not be NULL", name) : 0;
}
void hf__error_clear(void);

/* ---- options.c ---- */
/* Copies options of any release into ours, zero-filled; 0 or HF_EINVAL. NULL gives zeroes. */
int hf__options_copy(void *ret_ours, size_t our_size, const void *theirs, const char *macro);
/* Checks the size that the caller has set in the struct `name`, of this type; 0 or HF_EINVAL. */
int hf__options_check_size(size_t size, const char *name, const char *type);
/* Copies our struct into one of the caller's, of any release, whose size it keeps. */
void hf__options_give(const void *ours, size_t our_size, void *ret_theirs);
int hf__options_check_wait(int64_t wait_ms);
/* `name` is the argument, for the error text. */
int hf__options_check_lease(const char *name, int64_t lease_ms);
int hf__options_check_replicas(const struct hf_client *client, int64_t replicas);

/* ---- client.c ---- */
/* Reads the clock before the core is called, also for metrics. Mutex held. */
static inline int64_t hf__client_now(struct hf_client *client)
{
	struct hf__metrics *metrics = client->core.metrics;
	if (!metrics)
		return hf__clock_ms();
	metrics->now_us = hf__clock_us();
	return metrics->now_us / 1000;
}
/* The first reference, for this process only; 0 or HF_ESYSTEM. */
int hf__client_init(struct hf_client *client);
/* Frees the memory that only the client itself uses. */
void hf__client_done(struct hf_client *client);
/* 0, or HF_EFORKED in a forked child. To be called before any mutex is taken. */
int hf__client_check(const struct hf_client *client);
void hf__client_ref(struct hf_client *client);
void hf__client_unref(struct hf_client *client);
/* Bracket what takes the mutex and nothing else; unlock() takes what lock() returned. */
int hf__client_lock(struct hf_client *client);
void hf__client_unlock(struct hf_client *client, int before);
/*
 * Bracket whatever takes long: a close waits until all have left. leave() still uses the client
 * after the close may continue, so its caller needs a reference, such as that of a lock handle.
 */
void hf__client_enter(struct hf_client *client);
void hf__client_leave(struct hf_client *client);

/* ---- handle.c ---- */
/* Checks the pointers that every open function takes; `ret_name` names the last one. */
int hf__handle_check_open(const struct hf_client *client, const char *name, const void *ret,
                          const char *ret_name);
/*
 * Maps and checks the name, and takes a reference to the lock. HF_ENOTSUP if the backend does not
 * have the kind; `what` names the argument that gave the kind.
 */
int hf__handle_open(struct hf__handle *handle, struct hf_client *client, int kind, const char *what,
                    const char *name);
/* The same by the name on the server; HF_EINVAL if it is not valid there. */
int hf__handle_open_stored(struct hf__handle *handle, struct hf_client *client, int kind,
                           const char *name);
/* Likewise, a handle of its own, for objects that are nothing else; free() it when it is closed. */
int hf__handle_new(struct hf_client *client, int kind, const char *what, const char *name,
                   struct hf__handle **ret_handle);
/* The same for the values of a group: n of them, HF__VALUE_SIZE bytes each, sorted. */
int hf__handle_open_group(struct hf__handle *handle, struct hf_client *client, const char *name,
                          const char *values, size_t n);
/* What is wrong with this name on the server, or NULL. */
const char *hf__handle_find_fault(const struct hf_client *client, const char *name);
/* The name on the server, after map_name or name_prefix was applied. 0 or HF_EINVAL. */
int hf__handle_map_name(const struct hf_client *client, const char *name,
                        char ret_name[HF__NAME_SIZE]);
/* Makes one more handle of the same object. */
void hf__handle_copy(struct hf__handle *handle, const struct hf__handle *from);
void hf__handle_close(struct hf__handle *handle);
/* Describes a call of this action on the object; `what` is the argument that must not be NULL. */
struct hf__spec hf__handle_describe(const struct hf__handle *handle, const char *what,
                                    enum hf__op_action action);
struct hf__spec hf__handle_describe_command(const struct hf__handle *handle, const char *what,
                                            enum hf__verb verb);
/* Describes an acquire of one permit, or a wait. */
struct hf__spec hf__handle_describe_wait(const struct hf__handle *handle, const char *what,
                                         const hf_wait_options *options);
/* Sets the number that the caller gave as this argument, if it is within the limits. */
void hf__handle_set_amount(struct hf__spec *spec, const char *name, int64_t amount, int64_t least,
                           int64_t most);
/* Refuses the call if `ret`, where its result is to be written, is NULL; `name` is the argument. */
void hf__handle_need(struct hf__spec *spec, const void *ret, const char *name);

/* ---- permits.c ---- */
/* The id of a permit of this client, as users see it. */
void hf__permits_id(const struct hf_client *client, uint64_t wire, hf_permit_id ret_text);

/* ---- several locks as one: members.c, several.c, red.c ---- */
struct hf__several;
/* The client is closed: no handle that is opened later finds its multi and red locks. */
void hf__members_forget(struct hf_client *client);
/* Whether an acquire of these members can ask for acknowledgements of this many replicas. */
int hf__several_check_replicas(const struct hf__several *several, int64_t replicas);
int hf__several_run(struct hf__several *several, const struct hf__want *want, int64_t *ret_number);
int hf__several_start(struct hf__several *several, const struct hf__want *want, hf_done_fn *done,
                      void *arg);
/* The milliseconds that enough members guarantee. Sends nothing. */
int64_t hf__several_remaining(struct hf__several *several, uint64_t owner, int64_t now,
                              hf_state *ret_state);
/* This hold was lost. Red locks that contain it, and still have a majority, start a repair. */
void hf__red_handle_loss(struct hf_client *client, const struct hf__lock *lock, uint64_t owner,
                         uint64_t wire);

/* ---- host.c and heartbeat.c: the client as the core and the engine see it ---- */
extern const struct hf__host_ops hf__host;
extern const struct hf__machine_ops hf__heartbeat;

/* ---- dispatch.c ---- */
/* Runs the callbacks that are due and returns their number. Without the mutex. */
int hf__dispatch_run(void *client);

/* ---- pattern.c ---- */
/* The patterns of Redis: * ? [a-z] and backslash. The text can contain any bytes. */
bool hf__pattern_matches(const char *pattern, const char *text, size_t length);

/* ---- cancel.c ---- */
/* A token that is part of something else. No call uses it when it ends. */
void hf__cancel_init(struct hf_cancel *cancel);
void hf__cancel_done(struct hf_cancel *cancel);
/* False if the token has fired already. Both take NULL. */
bool hf__cancel_join(struct hf_cancel *cancel, struct hf__call *call);
void hf__cancel_leave(struct hf_cancel *cancel, struct hf__call *call);

#endif
