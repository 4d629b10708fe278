/* One process of torture: threads that use all things at random, and record what they believe. */
#ifndef TESTS_TORTURE_WORKER_H
#define TESTS_TORTURE_WORKER_H

#include <stdint.h>

/* Settings of the clients. */
#define WATCHDOG_MS 3000
#define COMMAND_MS  1000
#define CONNECT_MS  1000
#define SYNC_MS     500
#define SESSION_MS  4000

struct worker_options {
	const char *record;
	const char *urls; /* separated by spaces */
	const char *user; /* with the password of the same name; empty: the default user */
	int number;
	int place; /* among the processes that run at the same time */
	int threads;
	int replicas;
	uint64_t seed;
	int mutant;
	int red_mutant;
};

struct worker;

/* Opens the clients of the worker. */
void worker_open_clients(struct worker *worker);

/* The calling thread never lacks memory. */
void worker_exempt_thread(void);

/* Runs until the record says that it is over. Returns the exit status of the process. */
int run_worker(const struct worker_options *options);

#endif
