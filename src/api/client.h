/* What is behind an hf_client, and the calls that run on it. */
#ifndef HF_API_CLIENT_H
#define HF_API_CLIENT_H

#include "core/core.h"
#include "engine/engine.h"
#include "redis/redis.h"

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define HF__LOG_LINES 32
#define HF__LOG_SIZE  384

struct hf__log_line {
	hf_log_level level;
	char text[HF__LOG_SIZE];
};

/* Freed when it is closed and its last lock handle is. */
struct hf_client {
	struct hf__engine engine;
	struct hf__core core;
	struct hf__redis redis;
	struct hf__config config;
	const _Atomic bool *ours; /* on a page that a fork wipes: false in the child */
	_Atomic uint32_t refs;    /* the client itself and its lock handles */
	_Atomic uint32_t inside;  /* calls under way */
	_Atomic bool closing;     /* somebody waits for them to leave */
	struct hf__list done;     /* asynchronous calls to complete */
	struct hf__list news;     /* holds with news */
	uint32_t async_calls;     /* not finished yet */
	hf_event_fn *on_event;
	void *event_arg;
	hf_log_fn *on_log;
	void *log_arg;
	struct hf__log_line *log; /* a ring; NULL without on_log */
	uint32_t log_first, log_count, log_missed;
};

struct hf_lock {
	struct hf_client *client;
	struct hf__lock *record;
};

struct hf_owner {
	uint64_t number;
};

struct hf_cancel {
	pthread_mutex_t mutex;
	_Atomic bool fired;
	struct hf__list calls; /* under way with this token */
};

/* A call under way: on its thread's stack, or of its own if it is asynchronous. */
struct hf__call {
	struct hf__op op;
	struct hf__task task;
	struct hf_client *client;
	struct hf_cancel *cancel;
	struct hf__list in_cancel;
	struct hf__list in_done;
	hf_done_fn *done; /* NULL: synchronous */
	void *arg;
};

/* ---- error.c ---- */
/* Notes the detail for this thread and returns the number. */
int hf__error(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hf__error_clear(void);

/* ---- options.c ---- */
/* Copies options of any release into ours, zero-filled; 0 or HF_EINVAL. NULL gives zeroes. */
int hf__options_copy(void *ret_ours, size_t our_size, const void *theirs, const char *macro);
int hf__options_check_wait(int64_t wait_ms);
int hf__options_check_lease(int64_t lease_ms);

/* ---- client.c ---- */
/* 0, or HF_EFORKED in a child; comes before any lock is taken. */
int hf__client_check(const struct hf_client *client);
void hf__client_ref(struct hf_client *client);
void hf__client_unref(struct hf_client *client);

/* ---- call.c ---- */
/* Around everything that takes the mutex: a thread that is cancelled there would keep it. */
int hf__call_guard(void);
void hf__call_unguard(int before);
/*
 * Around what takes long: a close waits for it. Whoever leaves needs the client for a moment after
 * that, so it must have a reference, as lock handles do.
 */
void hf__call_enter(struct hf_client *client);
void hf__call_leave(struct hf_client *client);
/* Fills in what all calls have in common. */
void hf__call_init(struct hf__call *call, struct hf_client *client, enum hf__op_verb verb);
/* Runs it and waits; its result. */
int hf__call_run(struct hf__call *call);
/* Starts a copy of it that completes by callback; 0 or an error, then nothing was started. */
int hf__call_start(const struct hf__call *call, hf_done_fn *done, void *arg);

/* ---- dispatch.c ---- */
extern const struct hf__host_ops hf__dispatch_host;
extern const struct hf__machine_ops hf__dispatch_machine;

/* ---- cancel.c ---- */
/* False if the token has fired already. NULL is allowed in both. */
bool hf__cancel_join(struct hf_cancel *cancel, struct hf__call *call);
void hf__cancel_leave(struct hf_cancel *cancel, struct hf__call *call);

#endif
