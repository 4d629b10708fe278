/* The loads that foundation compares: lock and unlock of free locks, bare and with the library. */
#ifndef BENCH_LOADS_H
#define BENCH_LOADS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "pair.h"
#include "server.h"

#define LOADS_IN_FLIGHT 64

/* What every load needs. */
struct bench {
	struct server server;
	char url[64];
	struct pair pair;
	hf_client *client;   /* shared by all of the library's loads */
	double seconds;      /* of one load */
	unsigned long pairs; /* of the last load with threads */
};

struct load {
	struct bench *bench;
	pthread_barrier_t start; /* everybody is connected */
	atomic_bool stopped;
};

struct worker {
	pthread_t thread;
	struct load *load;
	int index;
	unsigned long pairs;
	double begin_at, end_at; /* the loop alone, without connecting */
};

static inline double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void name_lock(char name[32], int n)
{
	snprintf(name, 32, "bench:%07d", n);
}

static inline void begin_worker(struct worker *worker)
{
	pthread_barrier_wait(&worker->load->start);
	worker->begin_at = now();
}

/* A connection of its own, and the commands made beforehand: as fast as threads can be. */
static inline void *run_bare_worker(void *arg)
{
	struct worker *worker = arg;
	struct bench *bench = worker->load->bench;
	char name[32];
	name_lock(name, worker->index);
	struct bytes acquire = make_bytes(&bench->pair, &bench->pair.acquire, name, worker->index);
	struct bytes release = make_bytes(&bench->pair, &bench->pair.release, name, worker->index);
	int fd = connect_port(bench->server.port);
	begin_worker(worker);
	while (!atomic_load_explicit(&worker->load->stopped, memory_order_relaxed)) {
		send_all(fd, acquire.data, acquire.length);
		expect_reply(fd, PAIR_GRANTED, strlen(PAIR_GRANTED));
		send_all(fd, release.data, release.length);
		expect_reply(fd, PAIR_RELEASED, strlen(PAIR_RELEASED));
		worker->pairs++;
	}
	worker->end_at = now();
	close(fd);
	free(acquire.data);
	free(release.data);
	return NULL;
}

static inline void *run_library_worker(void *arg)
{
	struct worker *worker = arg;
	char name[32];
	hf_lock *lock;
	name_lock(name, worker->index);
	check(hf_lock_open(worker->load->bench->client, HF_REENTRANT, name, &lock), "open");
	begin_worker(worker);
	while (!atomic_load_explicit(&worker->load->stopped, memory_order_relaxed)) {
		check(hf_lock_acquire(lock, NULL), "acquire");
		check(hf_lock_release(lock), "release");
		worker->pairs++;
	}
	worker->end_at = now();
	hf_lock_close(lock);
	return NULL;
}

/* Joins all, and returns their pairs per second from the first to begin to the last to end. */
static inline double join_workers(struct bench *bench, struct worker *workers, int count)
{
	double begin_at = 0, end_at = 0;
	bench->pairs = 0;
	for (int i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		bench->pairs += workers[i].pairs;
		if (i == 0 || workers[i].begin_at < begin_at)
			begin_at = workers[i].begin_at;
		if (i == 0 || workers[i].end_at > end_at)
			end_at = workers[i].end_at;
	}
	return (double)bench->pairs / (end_at - begin_at);
}

/* Pairs per second of so many threads, each with its own lock. */
static inline double run_threads(struct bench *bench, int count, void *(*body)(void *))
{
	struct load load = {.bench = bench};
	struct worker *workers = alloc_zeroed((size_t)count, sizeof(*workers));
	pthread_barrier_init(&load.start, NULL, (unsigned)count + 1);
	for (int i = 0; i < count; i++) {
		workers[i].load = &load;
		workers[i].index = i;
		if (pthread_create(&workers[i].thread, NULL, body, &workers[i]))
			fail("cannot start a thread");
	}
	pthread_barrier_wait(&load.start);
	pause_ms((long)(bench->seconds * 1000));
	atomic_store(&load.stopped, true);
	double rate = join_workers(bench, workers, count);
	pthread_barrier_destroy(&load.start);
	free(workers);
	return rate;
}

/* One command of each owner, in one piece. */
static inline struct bytes join_commands(const struct pair *pair, const struct command *command)
{
	struct bytes all = {0};
	FILE *stream = open_memstream(&all.data, &all.length);
	if (!stream)
		fail("out of memory");
	for (int i = 0; i < LOADS_IN_FLIGHT; i++) {
		char name[32];
		name_lock(name, i);
		struct bytes one = make_bytes(pair, command, name, i);
		fwrite(one.data, 1, one.length, stream);
		free(one.data);
	}
	fclose(stream);
	return all;
}

/* Writes the commands of all owners at once and reads all their replies. */
static inline void run_batch(int fd, const struct bytes *commands, const char *reply)
{
	char replies[LOADS_IN_FLIGHT * 8];
	size_t length = strlen(reply);
	send_all(fd, commands->data, commands->length);
	recv_all(fd, replies, LOADS_IN_FLIGHT * length);
	for (size_t i = 0; i < LOADS_IN_FLIGHT; i++) {
		if (memcmp(replies + i * length, reply, length) != 0)
			fail("an unexpected reply in a batch");
	}
}

/* Pairs per second of one connection with all owners in flight, written by hand. */
static inline double run_pipelined(struct bench *bench)
{
	struct bytes acquires = join_commands(&bench->pair, &bench->pair.acquire);
	struct bytes releases = join_commands(&bench->pair, &bench->pair.release);
	int fd = connect_port(bench->server.port);
	unsigned long pairs = 0;
	double begin_at = now(), elapsed;
	do {
		run_batch(fd, &acquires, PAIR_GRANTED);
		run_batch(fd, &releases, PAIR_RELEASED);
		pairs += LOADS_IN_FLIGHT;
		elapsed = now() - begin_at;
	} while (elapsed < bench->seconds);
	close(fd);
	free(acquires.data);
	free(releases.data);
	return (double)pairs / elapsed;
}

/* All owners of the asynchronous load. Completions run on one thread, so pairs is theirs. */
struct flight {
	atomic_bool stopped;
	unsigned long pairs;
	int running;
	sem_t landed;
};

/* One owner that takes and releases its lock in a chain of completions. */
struct chain {
	struct flight *flight;
	hf_lock *lock;
	hf_owner *owner;
};

static inline void acquire_next(struct chain *chain);

static inline void on_released(void *arg, int result, int64_t number, const char *text)
{
	struct chain *chain = arg;
	struct flight *flight = chain->flight;
	(void)number;
	(void)text;
	check(result, "asynchronous release");
	flight->pairs++;
	if (!atomic_load_explicit(&flight->stopped, memory_order_relaxed))
		acquire_next(chain);
	else if (--flight->running == 0)
		sem_post(&flight->landed);
}

static inline void on_acquired(void *arg, int result, int64_t number, const char *text)
{
	struct chain *chain = arg;
	(void)number;
	(void)text;
	check(result, "asynchronous acquire");
	check(hf_lock_release_async(chain->lock, HF_RELEASE(.owner = chain->owner), on_released,
	                            chain),
	      "release");
}

static inline void acquire_next(struct chain *chain)
{
	check(hf_lock_acquire_async(chain->lock, HF_ACQUIRE(.owner = chain->owner), on_acquired,
	                            chain),
	      "acquire");
}

/* Pairs per second of the asynchronous form with all owners in flight. */
static inline double run_async(struct bench *bench)
{
	struct flight flight = {.running = LOADS_IN_FLIGHT};
	struct chain chains[LOADS_IN_FLIGHT];
	char name[32];
	sem_init(&flight.landed, 0, 0);
	for (int i = 0; i < LOADS_IN_FLIGHT; i++) {
		name_lock(name, i);
		chains[i].flight = &flight;
		check(hf_lock_open(bench->client, HF_REENTRANT, name, &chains[i].lock), "open");
		check(hf_owner_new(&chains[i].owner), "owner");
	}
	double begin_at = now();
	for (int i = 0; i < LOADS_IN_FLIGHT; i++)
		acquire_next(&chains[i]);
	pause_ms((long)(bench->seconds * 1000));
	atomic_store(&flight.stopped, true);
	while (sem_wait(&flight.landed))
		continue;
	double elapsed = now() - begin_at;
	for (int i = 0; i < LOADS_IN_FLIGHT; i++) {
		hf_lock_close(chains[i].lock);
		hf_owner_free(chains[i].owner);
	}
	sem_destroy(&flight.landed);
	return (double)flight.pairs / elapsed;
}

#endif
