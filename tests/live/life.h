/*
 * The life of a client, in which every allocation can fail: what it does, and what its calls may
 * answer then. The programs of different deployments share it.
 */
#ifndef TESTS_LIVE_LIFE_H
#define TESTS_LIVE_LIFE_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/holdfast.h>

#include "base/thread.h"
#include "live/shortage.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/done.h"

#define PATIENCE_MS 10000

/* From now on allocation `from` fails, or all from there on; 0 only counts. */
static inline void begin_counting(long from, enum shortage how)
{
	begin_watching(from, how);
	is_numbering = true;
}

/* ---- a client's life ------------------------------------------------------------------------- */

/* One life, and what was wrong with it. */
struct life {
	hf_client *client;
	hf_lock *lock, *other_lock;
	hf_owner *owner, *third;
	hf_cancel *cancel;
	struct done acquired, released, asked;
	bool is_waiting;
	int64_t sync_timeout_ms;
	const char *describe;
	long allocations; /* until there was memory again */
	char wrong[500];  /* the first surprise */
};

static inline int ignore_text(void *arg, const char *bytes, size_t length)
{
	(void)arg;
	(void)bytes;
	return length == 0;
}

/* What a call may answer when memory is short: what it would answer anyway, or why it cannot. */
static inline int check_answer(struct life *life, const char *call, int rc, int usual, int unusual)
{
	/* A wait of a few milliseconds may end before its first answer. */
	bool too_short = usual == HF_ETIMEDOUT && rc == HF_EUNKNOWN;
	bool is_fine = rc == usual || rc == unusual || rc == HF_ENOMEM || rc == HF_ESYSTEM ||
	               rc == HF_EUNREACHABLE || too_short;
	if (!is_fine && !life->wrong[0])
		(void)snprintf(life->wrong, sizeof life->wrong, "%s: %d (%s: %.80s)", call, rc,
		               hf_strerror(rc), hf_error_detail());
	return rc;
}

/* usual: with memory. unusual: a call before it failed. */
#define CALL(usual, unusual, call) check_answer(life, #call, call, usual, unusual)

static inline void wait_done(struct life *life, struct done *done, const char *what, int usual,
                             int unusual)
{
	long long ends_at = test_now_ms() + PATIENCE_MS;
	while (done->calls == 0 && test_now_ms() < ends_at)
		test_pause();
	if (done->calls == 0)
		(void)snprintf(life->wrong, sizeof life->wrong, "%s: never completed", what);
	else
		(void)check_answer(life, what, done->result, usual, unusual);
}

static inline bool begin_life(struct life *life, const char *url)
{
	if (CALL(0, 0,
	         hf_client_open(url,
	                        HF_CLIENT(.on_event = ignore_event, .on_log = ignore_line,
	                                  .command_timeout_ms = 1500, .watchdog_ms = 5000,
	                                  .sync_timeout_ms = life->sync_timeout_ms,
	                                  .describe = life->describe, .metrics = 1),
	                        &life->client)))
		return false;
	return !CALL(0, 0, hf_owner_new(&life->owner)) && !CALL(0, 0, hf_owner_new(&life->third)) &&
	       !CALL(0, 0, hf_cancel_new(&life->cancel)) &&
	       !CALL(0, 0, hf_lock_open(life->client, HF_REENTRANT, "oom", &life->lock)) &&
	       !CALL(0, 0, hf_lock_open(life->client, HF_REENTRANT, "{oom}2", &life->other_lock));
}

static inline void contend(struct life *life)
{
	int rc = CALL(0, 0,
	              hf_lock_acquire_async(life->lock,
	                                    HF_ACQUIRE(.owner = life->owner, .wait_ms = 2000,
	                                               .cancel = life->cancel),
	                                    note_done, &life->acquired));
	life->is_waiting = rc == 0;
	/*
	 * If the lock was not taken before, the wait is over at once; then there is a hold to
	 * release.
	 */
	rc = CALL(HF_ETIMEDOUT, 0,
	          hf_lock_acquire(life->lock, HF_ACQUIRE(.owner = life->third, .wait_ms = 20)));
	if (rc == 0)
		(void)CALL(0, 0,
		           hf_lock_release_with(life->lock, HF_RELEASE(.owner = life->third)));
}

static inline void ask_everything(struct life *life)
{
	int flag;
	int64_t number;
	char text[64];
	(void)CALL(0, 0, hf_lock_is_locked(life->lock, &flag));
	(void)CALL(0, 0, hf_lock_is_held(life->lock, NULL, &flag));
	(void)CALL(0, 0, hf_lock_hold_count(life->lock, NULL, &number));
	(void)CALL(0, 0, hf_lock_ttl(life->lock, &number));
	(void)CALL(0, 0, hf_lock_holder(life->lock, text, sizeof text));
	(void)CALL(0, 0, hf_client_ping(life->client, NULL));
	(void)CALL(0, 0,
	           hf_client_metrics(life->client, HF_METRICS(.per_name = 5), ignore_text, NULL));
	if (CALL(0, 0, hf_lock_ttl_async(life->lock, note_done, &life->asked)) == 0)
		wait_done(life, &life->asked, "hf_lock_ttl_async", 0, 0);
}

static inline void give_back(struct life *life)
{
	(void)CALL(0, HF_ENOTHELD, hf_lock_release(life->lock));
	(void)CALL(0, HF_ENOTHELD, hf_lock_release(life->lock));
	if (!life->is_waiting)
		return;
	wait_done(life, &life->acquired, "hf_lock_acquire_async", 0, 0);
	if (life->acquired.calls && life->acquired.result == 0 &&
	    CALL(0, 0,
	         hf_lock_release_async(life->lock, HF_RELEASE(.owner = life->owner), note_done,
	                               &life->released)) == 0)
		wait_done(life, &life->released, "hf_lock_release_async", 0, 0);
}

/* With memory again, the client is as good as new. */
static inline void expect_works(struct life *life)
{
	hf_lock *lock = NULL;
	int rc = hf_lock_open(life->client, HF_REENTRANT, "afterwards", &lock);
	if (!rc)
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
	if (!rc)
		rc = hf_lock_release_with(lock, HF_RELEASE(.wait_ms = PATIENCE_MS));
	if (rc && !life->wrong[0])
		(void)snprintf(life->wrong, sizeof life->wrong, "afterwards: %d (%s: %.80s)", rc,
		               hf_strerror(rc), hf_error_detail());
	hf_lock_close(lock);
}

static inline void end_life(struct life *life)
{
	life->allocations = asked;
	failing_from = 0;
	if (life->client)
		expect_works(life);
	hf_lock_close(life->lock);
	hf_lock_close(life->other_lock);
	int rc = hf_client_close(life->client);
	if (rc && !life->wrong[0])
		(void)snprintf(life->wrong, sizeof life->wrong, "hf_client_close: %d", rc);
	hf_cancel_free(life->cancel);
	hf_owner_free(life->owner);
	hf_owner_free(life->third);
}

static inline void live(struct life *life, const char *url)
{
	int flag;
	if (begin_life(life, url)) {
		(void)CALL(0, 0, hf_lock_acquire(life->lock, HF_ACQUIRE(.wait_ms = 2000)));
		(void)CALL(0, 0, hf_lock_acquire(life->lock, HF_ACQUIRE(.wait_ms = 2000)));
		contend(life);
		(void)CALL(0, HF_ENOTHELD, hf_lock_extend(life->lock, NULL, 6000));
		ask_everything(life);
		give_back(life);
		(void)CALL(0, 0, hf_lock_acquire(life->other_lock, HF_ACQUIRE(.lease_ms = 5000)));
		int rc = CALL(0, 0, hf_lock_force_release(life->other_lock, &flag));
		(void)CALL(rc ? 0 : HF_ELOST, HF_ENOTHELD, hf_lock_release(life->other_lock));
	}
	end_life(life);
}

/* ---- a life with all kinds ------------------------------------------------------------------- */

/*
 * One owner takes it, another waits until its time has run out, and both give back what they got.
 */
static inline void meet(struct life *life, hf_lock *lock)
{
	(void)CALL(0, 0, hf_lock_acquire(lock, HF_ACQUIRE(.owner = life->owner, .wait_ms = 2000)));
	(void)CALL(HF_ETIMEDOUT, 0,
	           hf_lock_acquire(lock, HF_ACQUIRE(.owner = life->third, .wait_ms = 10)));
	(void)CALL(0, HF_ENOTHELD, hf_lock_release_with(lock, HF_RELEASE(.owner = life->owner)));
	(void)CALL(HF_ENOTHELD, 0, hf_lock_release_with(lock, HF_RELEASE(.owner = life->third)));
}

static inline void meet_at_each_kind(struct life *life)
{
	static const hf_kind kinds[] = {HF_FAIR, HF_READ, HF_WRITE, HF_FENCED, HF_SPIN, HF_SIMPLE};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		hf_lock *lock = NULL;
		if (CALL(0, 0, hf_lock_open(life->client, kinds[i], "kind", &lock)) == 0)
			meet(life, lock);
		hf_lock_close(lock);
	}
}

static inline void meet_at_several(struct life *life)
{
	static const char *const values[] = {"a", "b"};
	hf_lock *group = NULL, *both = NULL;
	if (CALL(0, 0, hf_lock_open_group(life->client, "group", values, 2, &group)) == 0)
		meet(life, group);
	if (CALL(0, 0, hf_lock_open_multi((hf_lock *[]){life->lock, life->other_lock}, 2, &both)) ==
	    0) {
		meet(life, both);
		if (CALL(0, 0,
		         hf_lock_acquire_async(both, HF_ACQUIRE(.owner = life->owner), note_done,
		                               &life->acquired)) == 0)
			wait_done(life, &life->acquired, "of a multi lock", 0, 0);
		(void)CALL(0, HF_ENOTHELD,
		           hf_lock_release_with(both, HF_RELEASE(.owner = life->owner)));
	}
	hf_lock_close(both);
	hf_lock_close(group);
}

static inline void count_up_and_down(struct life *life)
{
	hf_semaphore *semaphore = NULL;
	hf_latch *latch = NULL;
	if (CALL(0, 0, hf_semaphore_open(life->client, "semaphore", &semaphore)) == 0) {
		(void)CALL(0, 0, hf_semaphore_try_set(semaphore, 1, 0, NULL));
		(void)CALL(0, HF_EBUSY,
		           hf_semaphore_acquire(semaphore, 1, HF_WAIT(.wait_ms = HF_NOWAIT)));
		(void)CALL(HF_ETIMEDOUT, 0,
		           hf_semaphore_acquire(semaphore, 1, HF_WAIT(.wait_ms = 10)));
		(void)CALL(0, 0, hf_semaphore_release(semaphore, 1));
	}
	if (CALL(0, 0, hf_latch_open(life->client, "latch", &latch)) == 0) {
		(void)CALL(0, 0, hf_latch_try_set(latch, 1, NULL));
		(void)CALL(HF_ETIMEDOUT, 0, hf_latch_wait(latch, HF_WAIT(.wait_ms = 10)));
		(void)CALL(0, 0, hf_latch_count_down(latch));
	}
	hf_semaphore_close(semaphore);
	hf_latch_close(latch);
}

static inline void take_permits(struct life *life)
{
	hf_permits *permits = NULL;
	hf_permit_id ids[3];
	if (CALL(0, 0, hf_permits_open(life->client, "permits", &permits)) == 0) {
		(void)CALL(0, 0, hf_permits_set(permits, 3));
		int rc =
			CALL(0, HF_EBUSY,
		             hf_permits_acquire(permits, 3, HF_PERMITS(.wait_ms = HF_NOWAIT), ids));
		if (rc == 0) {
			(void)CALL(0, 0, hf_permits_extend(permits, ids[0], 5000));
			(void)CALL(0, 0, hf_permits_release(permits, ids, 3));
		}
	}
	hf_permits_close(permits);
}

static inline int ignore_info(void *arg, const hf_info *info)
{
	(void)arg;
	return hf_info_holders(info) > 200;
}

static inline void ignore_fact(void *arg, const char *name, const char *value)
{
	(void)arg, (void)name, (void)value;
}

static inline void live_with_all_kinds(struct life *life, const char *url)
{
	if (begin_life(life, url)) {
		meet_at_each_kind(life);
		meet_at_several(life);
		count_up_and_down(life);
		take_permits(life);
		(void)CALL(0, 0, hf_client_list(life->client, "*", ignore_info, NULL));
		(void)CALL(0, 0, hf_client_inspect(life->client, "kind", ignore_info, NULL));
		(void)CALL(0, 0, hf_client_facts(life->client, ignore_fact, NULL));
	}
	end_life(life);
}

static inline int count_waiters(void *arg, const hf_info *info)
{
	*(size_t *)arg += hf_info_waiters(info);
	return 0;
}

/* What is reported as complete is complete: there are two such names, each with one waiter. */
static inline void live_with_lists(struct life *life, const char *url)
{
	static const char *const names[] = {"waited:1", "free", "waited:2"};
	size_t listed = 0, inspected = 0;
	life->describe = "short of memory";
	if (begin_life(life, url)) {
		int rc = CALL(0, 0,
		              hf_client_list(life->client, "waited:*", count_waiters, &listed));
		int rc_many = CALL(
			0, 0,
			hf_client_inspect_many(life->client, names, 3, count_waiters, &inspected));
		if (((rc == 0 && listed != 2) || (rc_many == 0 && inspected != 2)) &&
		    !life->wrong[0])
			(void)snprintf(life->wrong, sizeof life->wrong,
			               "%zu and %zu waiters, not 2", listed, inspected);
		(void)CALL(0, 0, hf_lock_acquire(life->lock, HF_ACQUIRE(.wait_ms = 2000)));
		(void)CALL(0, HF_ENOTHELD, hf_lock_release(life->lock));
	}
	end_life(life);
}

/* The server has no replicas, so each grant is released again. */
static inline void live_durably(struct life *life, const char *url)
{
	life->sync_timeout_ms = 1;
	if (begin_life(life, url)) {
		for (int i = 0; i < 2; i++)
			(void)CALL(HF_ENOREPLICAS, 0,
			           hf_lock_acquire(life->lock, HF_ACQUIRE(.replicas = 1)));
		(void)CALL(0, 0, hf_lock_acquire(life->lock, HF_ACQUIRE(.wait_ms = 2000)));
		(void)CALL(HF_ENOREPLICAS, 0,
		           hf_lock_acquire(life->lock, HF_ACQUIRE(.replicas = 1)));
		(void)CALL(0, HF_ENOTHELD, hf_lock_release(life->lock));
	}
	end_life(life);
}

/* ---- lives short of memory ---- */

typedef void live_fn(struct life *life, const char *url);

/* A life with allocation `from` failing; returns how many it asked for. */
static inline long live_short_of_memory(live_fn *live_so, const char *url, long from, bool only_one)
{
	struct life life = {0};
	(void)alarm(20);
	begin_counting(from, only_one ? ONE_FAILS : ALL_FAIL);
	live_so(&life, url);
	(void)end_watching();
	(void)alarm(0);
	if (life.wrong[0])
		fail_msg("allocation %ld fails, %s: %s", from, only_one ? "alone" : "and all after",
		         life.wrong);
	if (alive != 0)
		fail_msg("allocation %ld fails, %s: %ld not freed", from,
		         only_one ? "alone" : "and all after", (long)alive);
	return life.allocations;
}

static inline void prepare_shortage(void)
{
	/*
	 * This thread's record stays as long as the thread; it is made here, so as not to be
	 * counted.
	 */
	hf__thread_unref(hf__thread_ref());
	if (!__real_malloc || !__real_free || !__real_pthread_create)
		check_skip("linked without a way to let allocations fail");
	(void)signal(SIGALRM, report_hang);
}

#endif
