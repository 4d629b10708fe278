/*
 * The peer's side of the protocol with the harness: each line is a command, and is answered by one
 * line. Also what the workloads have in common: threads that start together and stop when the time
 * is over.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "histogram.h"

#define PEER_MAX_THREADS 1000
#define PEER_MAX_NAME    200

/* ---- the protocol ---- */

/* A command: a kind, then its numbers if it has any, then the prefix of the names to use. */
struct work {
	char kind[16];
	long count;     /* of threads, locks or requests in flight */
	double seconds; /* how long */
	char name[PEER_MAX_NAME + 1];
};

struct tally;
typedef void measure_fn(void *arg, const struct work *work, struct tally *ret_tally);

/* One thing that the program can do: one of the three, or, without them, why it cannot. */
struct job {
	const char *kind;
	void (*run)(void *arg, const struct work *work); /* prints the answer */
	measure_fn *pairs;                               /* counts pairs in times[0] */
	measure_fn *warm_up;                             /* of this measurement */
	const char *why;
};

static inline void say_ready(const char *peer, const char *version)
{
	printf("{\"ready\": true, \"peer\": \"%s\", \"version\": \"%s\"}\n", peer, version);
	fflush(stdout);
}

/* Parses the line: "kind", "kind name", "kind seconds name" or "kind count seconds name". */
static inline void parse_work(char *line, struct work *ret_work)
{
	char *words[4], *rest = NULL;
	int n = 0;
	memset(ret_work, 0, sizeof(*ret_work));
	for (char *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
		if (n == 4)
			fail("a command of more than 4 words");
		words[n++] = word;
	}
	if (n == 0)
		return;
	snprintf(ret_work->kind, sizeof(ret_work->kind), "%s", words[0]);
	if (n == 4)
		ret_work->count = strtol(words[1], NULL, 10);
	if (n >= 3)
		ret_work->seconds = strtod(words[n - 2], NULL);
	if (n >= 2 &&
	    snprintf(ret_work->name, sizeof(ret_work->name), "%s", words[n - 1]) > PEER_MAX_NAME)
		fail("a name of more than %d bytes", PEER_MAX_NAME);
	if ((n == 4 && ret_work->count < 1) || (n >= 3 && !(ret_work->seconds > 0)))
		fail("%s: count and seconds must be above 0", words[0]);
}

/* For --start, once the lock is held: prints that it is, and waits for a byte of input. */
_Noreturn static inline void stay_held(void)
{
	char byte;
	if (write(STDOUT_FILENO, "held\n", 5) != 5 || read(STDIN_FILENO, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

/* ---- threads ---- */

/* What one thread has done, or all of them together. */
struct tally {
	double seconds; /* of all threads: from the first start to the last end */
	uint64_t counts[2];
	struct histogram times[2];
};

/* Threads that do the same work. */
struct crew {
	void *arg;
	const char *name;
	pthread_barrier_t start; /* passed when all are connected and have opened their locks */
	atomic_bool is_over;
};

struct member {
	struct crew *crew;
	pthread_t thread;
	int index;
	int64_t begin_at, end_at; /* ns; the loop alone */
	struct tally tally;
};

static inline bool is_over(const struct member *member)
{
	return atomic_load_explicit(&member->crew->is_over, memory_order_relaxed);
}

/* Waits for all others. Returns the time at which the loop starts. */
static inline int64_t begin_member(struct member *member)
{
	pthread_barrier_wait(&member->crew->start);
	member->begin_at = now_ns();
	return member->begin_at;
}

/* Counts the time since begin_at. Returns the time now, at which the next lap begins. */
static inline int64_t add_lap(struct histogram *histogram, int64_t begin_at)
{
	int64_t now = now_ns();
	histogram_add(histogram, now - begin_at, 1);
	return now;
}

static inline void merge_tally(struct tally *into, const struct tally *from)
{
	for (int i = 0; i < 2; i++) {
		into->counts[i] += from->counts[i];
		histogram_merge(&into->times[i], &from->times[i]);
	}
}

static inline void join_members(struct member *members, long count, struct tally *ret_tally)
{
	int64_t begin_at = INT64_MAX, end_at = 0;
	memset(ret_tally, 0, sizeof(*ret_tally));
	for (long i = 0; i < count; i++) {
		pthread_join(members[i].thread, NULL);
		if (members[i].begin_at < begin_at)
			begin_at = members[i].begin_at;
		if (members[i].end_at > end_at)
			end_at = members[i].end_at;
		merge_tally(ret_tally, &members[i].tally);
	}
	ret_tally->seconds = (double)(end_at - begin_at) / 1e9;
}

/* Runs the body in work->count threads for work->seconds. */
static inline void run_crew(const struct work *work, void *(*body)(void *), void *arg,
                            struct tally *ret_tally)
{
	struct crew crew = {.arg = arg, .name = work->name};
	if (work->count > PEER_MAX_THREADS)
		fail("more than %d threads", PEER_MAX_THREADS);
	struct member *members = alloc_zeroed((size_t)work->count, sizeof(*members));
	pthread_barrier_init(&crew.start, NULL, (unsigned)work->count + 1);
	for (int i = 0; i < work->count; i++) {
		members[i].crew = &crew;
		members[i].index = i;
		if (pthread_create(&members[i].thread, NULL, body, &members[i]))
			fail("cannot start a thread");
	}
	pthread_barrier_wait(&crew.start);
	pause_seconds(work->seconds);
	atomic_store(&crew.is_over, true);
	join_members(members, work->count, ret_tally);
	pthread_barrier_destroy(&crew.start);
	free(members);
}

/* ---- workloads that are the same for all ---- */

/* Prints the number of pairs, and the latencies of those that were timed. */
static inline void print_pairs(const struct tally *tally, uint64_t pairs)
{
	printf("{\"pairs\": %llu, \"seconds\": %.6f", (unsigned long long)pairs, tally->seconds);
	print_us("p50", &tally->times[0], 0.5);
	print_us("p99", &tally->times[0], 0.99);
	print_us("p999", &tally->times[0], 0.999);
	printf("}\n");
}

static inline void answer_pairs(measure_fn *measure, void *arg, const struct work *work)
{
	struct tally tally;
	measure(arg, work, &tally);
	print_pairs(&tally, tally.times[0].count);
}

/* Half of the time with one thread and half of it with eight. */
static inline void warm_up(measure_fn *measure, void *arg, const struct work *work)
{
	struct tally tally;
	struct work half = *work;
	half.seconds = work->seconds / 2;
	for (half.count = 1; half.count <= 8; half.count += 7)
		measure(arg, &half, &tally);
	printf("{}\n");
}

/* ---- answering ---- */

static inline void run_job(const struct job *jobs, void *arg, const struct work *work)
{
	while (jobs->kind && strcmp(jobs->kind, work->kind) != 0)
		jobs++;
	if (jobs->run)
		jobs->run(arg, work);
	else if (jobs->pairs)
		answer_pairs(jobs->pairs, arg, work);
	else if (jobs->warm_up)
		warm_up(jobs->warm_up, arg, work);
	else
		printf("{\"unsupported\": \"%s\"}\n", jobs->why ? jobs->why : "unknown workload");
	fflush(stdout);
}

/* Answers commands until "quit" or the end of input. The last job has no kind. */
static inline int serve(const struct job *jobs, void *arg)
{
	char *line = NULL;
	size_t size = 0;
	struct work work;
	while (getline(&line, &size, stdin) > 0) {
		parse_work(line, &work);
		if (strcmp(work.kind, "quit") == 0)
			break;
		run_job(jobs, arg, &work);
	}
	free(line);
	return 0;
}

#endif
