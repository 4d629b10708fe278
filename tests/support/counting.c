/* Runs threads that raise a counter under a lock, and checks that none got in another's way. */
#include "support/counting.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/clock.h"

#define STACK_SIZE ((size_t)256 * 1024)

struct crowd {
	const struct counting *wanted;
	long long counter; /* unprotected on purpose */
	atomic_int next;   /* the number of the next thread */
	atomic_int failures;
	char detail[400]; /* of the first failure */
};

static int count_once(struct crowd *crowd, hf_lock *lock, int round)
{
	int64_t lease_ms = round % 2 ? crowd->wanted->lease_ms : 0;
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000, .lease_ms = lease_ms));
	if (rc)
		return rc;
	long long seen = crowd->counter;
	if (crowd->wanted->slow && round % 8 == 0)
		test_pause();
	crowd->counter = seen + 1;
	return hf_lock_release(lock);
}

static void *run_thread(void *arg)
{
	struct crowd *crowd = arg;
	const struct counting *wanted = crowd->wanted;
	hf_lock *lock = wanted->locks[atomic_fetch_add(&crowd->next, 1) % wanted->n];
	for (int i = 0; i < wanted->rounds; i++) {
		int rc = count_once(crowd, lock, i);
		if (rc && atomic_fetch_add(&crowd->failures, 1) == 0)
			snprintf(crowd->detail, sizeof crowd->detail, "%d (%s: %s)", rc,
			         hf_strerror(rc), hf_error_detail());
	}
	return NULL;
}

void count_together(const struct counting *counting)
{
	struct crowd crowd = {.wanted = counting};
	pthread_t *threads = check_alloc(sizeof(*threads) * (size_t)counting->threads);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (int i = 0; i < counting->threads; i++)
		assert_int_equal(pthread_create(&threads[i], &attr, run_thread, &crowd), 0);
	for (int i = 0; i < counting->threads; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_attr_destroy(&attr);
	free(threads);
	if (atomic_load(&crowd.failures))
		fail_msg("%d calls failed, the first with %s", atomic_load(&crowd.failures),
		         crowd.detail);
	assert_int_equal(crowd.counter, counting->threads * counting->rounds);
}
