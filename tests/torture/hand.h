/* One thread of a process of torture, and one use that it makes of a thing. */
#ifndef TESTS_TORTURE_HAND_H
#define TESTS_TORTURE_HAND_H

#include <pthread.h>
#include <semaphore.h>

#include "torture/things.h"
#include "torture/worker.h"

#define MS      INT64_C(1000000)
#define FOREVER (INT64_MAX / 2)

/* The longest fixed lease, and what counts as a short one. */
#define LONGEST_MS 2500
#define SHORT_MS   600

struct worker;

struct hand {
	struct worker *worker;
	pthread_t thread;
	uint64_t random;
	hf_owner *owner;
	struct handle lasting; /* of the thread that holds one lock for long */
	struct handle sparse;  /* of the thread that asks when those of the other processes do */
	struct handle member[RED_SERVERS]; /* of MIXED_NAME, where there are red locks */
	const struct handle *moved;        /* the one that is handed over, among the handles */
	int handles;
	struct handle handle[THINGS];
};

struct worker {
	const struct worker_options *options;
	struct record record;
	int clients;
	hf_client *client[RED_SERVERS];
	bool is_zk;
	struct hand *hands;
};

/* What one acquisition asks for, and where its answer goes. */
struct use {
	struct hand *hand;
	const struct handle *handle;
	uint32_t number;
	int64_t wait_ms, lease_ms;
	int64_t asked_at;
	hf_owner *owner;
	int permits;
	hf_permit_id id[2];
	bool is_over; /* the library has said that it is not held any more */
};

#define ADD(use, ...)                                                                              \
	RECORD(&(use)->hand->worker->record, .hold = (use)->number,                                \
	       .process = (uint16_t)(use)->hand->worker->options->number, __VA_ARGS__)

/* By chance: a number from 0 to below the limit, and true once in this many calls. */
int hand_below(struct hand *hand, int limit);
bool hand_chance(struct hand *hand, int many);
bool hand_is_faulty(const struct hand *hand);
void hand_pause_ms(int ms);

/* Draws what is asked for. */
void use_draw(struct use *use, struct hand *hand, const struct handle *handle);
int64_t use_deadline(const struct use *use);
int use_acquire(struct use *use);
/* How long the library promises the hold from now on. */
int64_t use_remaining_ns(const struct use *use);
/* When that is, if it was asked for now. */
int64_t use_until(int64_t now, int64_t remaining);
uint64_t use_identity(const struct use *use);
/* Records whether the library says that it is held. */
void use_confirm(struct use *use);
/* Does that again and again. */
void use_hold_for(struct use *use, int ms);
int use_release(const struct use *use);

/* What an asynchronous call answers. */
struct answer {
	sem_t ready;
	int result;
};

void answer_deliver(void *arg, int result, int64_t number, const char *text);
int answer_await(struct answer *answer, int started);

#endif
