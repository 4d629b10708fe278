/* Runs blocking calls in threads, and reports how they went. */
#include "support/waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/clock.h"

#define PATIENCE_MS 60000

static int make_call(struct waiter *waiter)
{
	if (waiter->run)
		return waiter->run(waiter->arg);
	if (waiter->lock)
		return hf_lock_acquire(waiter->lock, &waiter->options);
	if (waiter->releases)
		return hf_lock_release_with(
			waiter->releases,
			HF_RELEASE(.owner = waiter->owner, .wait_ms = waiter->wait_ms));
	if (waiter->permits)
		return hf_permits_acquire(waiter->permits, waiter->n,
		                          HF_PERMITS(.wait_ms = waiter->wait_ms,
		                                     .lease_ms = waiter->lease_ms,
		                                     .cancel = waiter->cancel),
		                          waiter->ids);
	const hf_wait_options *wait = HF_WAIT(.wait_ms = waiter->wait_ms, .cancel = waiter->cancel);
	return waiter->latch     ? hf_latch_wait(waiter->latch, wait)
	       : waiter->barrier ? hf_barrier_wait(waiter->barrier, wait)
	       : waiter->enters  ? hf_double_barrier_enter(waiter->enters, wait)
	       : waiter->leaves  ? hf_double_barrier_leave(waiter->leaves, wait)
	                         : hf_semaphore_acquire(waiter->semaphore, waiter->n, wait);
}

static void *run_waiter(void *arg)
{
	struct waiter *waiter = arg;
	waiter->started_at = test_now_ms();
	waiter->result = make_call(waiter);
	waiter->ended_at = test_now_ms();
	snprintf(waiter->detail, sizeof waiter->detail, "%s", hf_error_detail());
	atomic_store(&waiter->over, true);
	return NULL;
}

struct waiter *waiter_start_call(const struct waiter *wanted)
{
	struct waiter *waiter = check_alloc(sizeof(*waiter));
	memcpy(waiter, wanted, sizeof(*waiter));
	assert_int_equal(pthread_create(&waiter->thread, NULL, run_waiter, waiter), 0);
	return waiter;
}

struct waiter *waiter_start(hf_lock *lock, const hf_acquire_options *options)
{
	struct waiter wanted = {.lock = lock,
	                        .options = options ? *options : *HF_ACQUIRE(.wait_ms = 0)};
	if (!wanted.options.owner)
		assert_int_equal(hf_owner_new(&wanted.options.owner), 0);
	return waiter_start_call(&wanted);
}

bool waiter_is_over(struct waiter *waiter)
{
	return atomic_load(&waiter->over);
}

void waiter_expect(struct waiter *waiter, int result)
{
	WAIT_UNTIL(waiter_is_over(waiter), PATIENCE_MS);
	if (waiter->result != result)
		fail_msg("the waiter got %d (%s: %s), not %d", waiter->result,
		         hf_strerror(waiter->result), waiter->detail, result);
}

int waiter_release(struct waiter *waiter)
{
	return hf_lock_release_with(waiter->lock, HF_RELEASE(.owner = waiter->options.owner));
}

void waiter_free(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	hf_owner_free(waiter->options.owner);
	free(waiter);
}

void waiter_finish(struct waiter *waiter)
{
	waiter_expect(waiter, 0);
	int rc = waiter_release(waiter);
	if (rc)
		fail_msg("the waiter's release got %d (%s: %s)", rc, hf_strerror(rc),
		         hf_error_detail());
	waiter_free(waiter);
}

void waiter_join(struct waiter *waiter, int result)
{
	waiter_expect(waiter, result);
	waiter_free(waiter);
}
