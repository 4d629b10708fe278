/* One thread of a process of torture, which uses things at random. */
#ifndef TESTS_TORTURE_HAND_H
#define TESTS_TORTURE_HAND_H

#include <pthread.h>
#include <stdatomic.h>

#include "torture/things.h"
#include "torture/worker.h"

#define MS      INT64_C(1000000)
#define FOREVER (INT64_MAX / 2)

/* The longest fixed lease, and what counts as a short one. */
#define LONGEST_MS 2500
#define SHORT_MS   600

/* How long a client needs to give up what nobody holds any more, or to recover from a fault. */
#define LEFT_MS 10000

struct use;
struct worker;

/* The token that a call of a thread is given. */
struct cancel {
	pthread_mutex_t mutex; /* protects what follows */
	hf_cancel *token;      /* NULL: none */
	const struct use *use; /* what the call is for */
	int64_t due_at;
};

struct hand {
	struct worker *worker;
	pthread_t thread;
	uint64_t random;
	hf_owner *owner;
	struct cancel cancel;
	struct handle lasting; /* of the thread that holds one lock for long */
	struct handle awaited; /* held for long elsewhere, so that waits for it are cancelled */
	struct handle sparse;  /* of the thread that asks when those of the other processes do */
	struct handle member[RED_SERVERS]; /* of MIXED_NAME, where there are red locks */
	int64_t meeting;                   /* the number of the last one that it attended */
	const struct handle *gate;  /* of the thread that keeps one, among the handles; else NULL */
	const struct handle *moved; /* the one that is handed over, among the handles */
	int handles;
	struct handle handle[THINGS];
};

/* What the events of a client are recorded with. */
struct line {
	struct worker *worker;
	uint16_t client; /* its number */
};

struct worker {
	const struct worker_options *options;
	struct record record;
	int clients;
	hf_client *client[RED_SERVERS];
	struct line line[RED_SERVERS];
	bool is_zk;
	int threads;
	struct hand *hands;
	pthread_t guests;       /* the thread that has guests */
	uint16_t guest;         /* of a guest: the number of its clients in events; else 0 */
	atomic_bool is_leaving; /* the threads are to finish before the round is over */
};

/* By chance: a number from 0 to below the limit, and true once in this many calls. */
int hand_below(struct hand *hand, int limit);
bool hand_chance(struct hand *hand, int many);
bool hand_is_faulty(const struct hand *hand);
/* Whether the thread is to finish. */
bool hand_is_over(const struct hand *hand);
void hand_pause_ms(int ms);

/* Asks the server who holds each lock, until it does not answer. */
void hand_look_at_all(struct hand *hand);

/* Start the threads of the worker, and end them when they are over. */
void hand_start_all(struct worker *worker);
void hand_end_all(struct worker *worker);

#endif
