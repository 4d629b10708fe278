/*
 * Threads that count under locks of a cluster, and notice whenever two of them are inside at once.
 */
#ifndef TESTS_LIVE_CLUSTER_LOAD_H
#define TESTS_LIVE_CLUSTER_LOAD_H

#include "live/cluster.h"

#define WORKERS 8
#define NAMES   4

/* What a lock protects: a count without atomics. */
struct counter {
	hf_kind kind;
	char *name;
	atomic_int inside;
	volatile long long count;
	long long expected;
};

struct load {
	struct counter counter[NAMES];
	atomic_bool is_over;
	atomic_int overlaps;
	atomic_llong rounds;
	struct worker *worker[WORKERS];
};

/* Each has a client of its own. */
struct worker {
	struct load *load;
	pthread_t thread;
	hf_client *client;
	int number;
	long long rounds[NAMES];
	int rc; /* of the call that failed, or 0 */
	char detail[400];
};

static inline void count_once(struct load *load, struct counter *counter)
{
	if (atomic_fetch_add(&counter->inside, 1) != 0)
		atomic_fetch_add(&load->overlaps, 1);
	long long count = counter->count;
	test_pause();
	counter->count = count + 1;
	atomic_fetch_sub(&counter->inside, 1);
	atomic_fetch_add(&load->rounds, 1);
}

/* Takes the locks one after the other, until a call fails. */
static inline void *count_under_locks(void *arg)
{
	struct worker *worker = arg;
	struct load *load = worker->load;
	for (int i = worker->number % NAMES; !worker->rc && !atomic_load(&load->is_over);
	     i = (i + 1) % NAMES) {
		hf_lock *lock = NULL;
		worker->rc = hf_lock_open(worker->client, load->counter[i].kind,
		                          load->counter[i].name, &lock);
		if (!worker->rc)
			worker->rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000));
		if (!worker->rc) {
			count_once(load, &load->counter[i]);
			worker->rounds[i]++;
			worker->rc = hf_lock_release_with(lock, HF_RELEASE(.wait_ms = 15000));
		}
		snprintf(worker->detail, sizeof worker->detail, "%s",
		         worker->rc ? hf_error_detail() : "");
		hf_lock_close(lock);
	}
	return NULL;
}

/* A lock of another kind for each name. The load frees the names. */
static inline struct load *load_start(char *const names[NAMES])
{
	static const hf_kind kinds[NAMES] = {HF_REENTRANT, HF_FAIR, HF_WRITE, HF_FENCED};
	struct load *load = check_alloc(sizeof(*load));
	for (int i = 0; i < NAMES; i++) {
		load->counter[i].kind = kinds[i];
		load->counter[i].name = names[i];
	}
	for (int i = 0; i < WORKERS; i++) {
		struct worker *worker = check_alloc(sizeof(*worker));
		worker->load = load;
		worker->number = i;
		worker->client = open_cluster(NULL);
		load->worker[i] = worker;
		assert_int_equal(pthread_create(&worker->thread, NULL, count_under_locks, worker),
		                 0);
	}
	return load;
}

/* Waits until the threads have counted this many more times. */
static inline void load_run(struct load *load, int rounds)
{
	long long before = atomic_load(&load->rounds);
	WAIT_UNTIL(atomic_load(&load->rounds) >= before + rounds, 30000);
}

/*
 * Stops the threads: no call failed, nobody was inside together with another, and no count is lost.
 */
static inline void load_finish(struct load *load)
{
	atomic_store(&load->is_over, true);
	for (int i = 0; i < WORKERS; i++) {
		struct worker *worker = load->worker[i];
		assert_int_equal(pthread_join(worker->thread, NULL), 0);
		for (int j = 0; j < NAMES; j++)
			load->counter[j].expected += worker->rounds[j];
		if (worker->rc)
			fail_msg("worker %d: %d (%s: %s)", i, worker->rc, hf_strerror(worker->rc),
			         worker->detail);
		ASSERT_OK(hf_client_close(worker->client));
		free(worker);
	}
	assert_int_equal(atomic_load(&load->overlaps), 0);
	for (int i = 0; i < NAMES; i++) {
		assert_int_equal(load->counter[i].count, load->counter[i].expected);
		free(load->counter[i].name);
	}
	free(load);
}

#endif
