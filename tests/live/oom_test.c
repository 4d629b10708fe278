/* Fails every allocation of a client's life in turn; nothing may crash, hang, leak or be lost. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
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
#include "support/raw.h"
#include "support/server.h"

#define PATIENCE_MS 10000
#define LOCKS       250

/* From now on allocation `from` fails, or all from there on; 0 only counts. */
static void begin_counting(long from, enum shortage how)
{
	begin_watching(from, how);
	is_numbering = true;
}

static void report_hang(int signal_number)
{
	char text[100];
	(void)signal_number;
	int length = snprintf(text, sizeof text, "hung with allocation %ld failing, %s\n",
	                      (long)failing_from, shortage_names[shortage]);
	(void)!write(STDERR_FILENO, text, (size_t)length);
	abort();
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
	char wrong[200]; /* the first surprise */
};

static void ignore_event(void *arg, const hf_event *event)
{
	(void)arg;
	(void)hf_event_detail(event);
}

static void ignore_line(void *arg, hf_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

/* What a call may answer when memory is short: what it would answer anyway, or why it cannot. */
static int check_answer(struct life *life, const char *call, int rc, int usual, int unusual)
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

static void wait_done(struct life *life, struct done *done, const char *what, int usual,
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

static bool begin_life(struct life *life, const char *url)
{
	if (CALL(0, 0,
	         hf_client_open(url,
	                        HF_CLIENT(.on_event = ignore_event, .on_log = ignore_line,
	                                  .command_timeout_ms = 500, .watchdog_ms = 5000,
	                                  .sync_timeout_ms = 1),
	                        &life->client)))
		return false;
	return !CALL(0, 0, hf_owner_new(&life->owner)) && !CALL(0, 0, hf_owner_new(&life->third)) &&
	       !CALL(0, 0, hf_cancel_new(&life->cancel)) &&
	       !CALL(0, 0, hf_lock_open(life->client, HF_REENTRANT, "oom", &life->lock)) &&
	       !CALL(0, 0, hf_lock_open(life->client, HF_REENTRANT, "{oom}2", &life->other_lock));
}

static void contend(struct life *life)
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

static void ask_everything(struct life *life)
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
	if (CALL(0, 0, hf_lock_ttl_async(life->lock, note_done, &life->asked)) == 0)
		wait_done(life, &life->asked, "hf_lock_ttl_async", 0, 0);
}

static void give_back(struct life *life)
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

static void end_life(struct life *life)
{
	hf_lock_close(life->lock);
	hf_lock_close(life->other_lock);
	int rc = hf_client_close(life->client);
	if (rc && !life->wrong[0])
		(void)snprintf(life->wrong, sizeof life->wrong, "hf_client_close: %d", rc);
	hf_cancel_free(life->cancel);
	hf_owner_free(life->owner);
	hf_owner_free(life->third);
}

static void live(struct life *life, const char *url)
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

/* One owner takes it, another waits until its time is over, and both give back what they got. */
static void meet(struct life *life, hf_lock *lock)
{
	(void)CALL(0, 0, hf_lock_acquire(lock, HF_ACQUIRE(.owner = life->owner, .wait_ms = 2000)));
	(void)CALL(HF_ETIMEDOUT, 0,
	           hf_lock_acquire(lock, HF_ACQUIRE(.owner = life->third, .wait_ms = 10)));
	(void)CALL(0, HF_ENOTHELD, hf_lock_release_with(lock, HF_RELEASE(.owner = life->owner)));
	(void)CALL(HF_ENOTHELD, 0, hf_lock_release_with(lock, HF_RELEASE(.owner = life->third)));
}

static void meet_at_each_kind(struct life *life)
{
	static const hf_kind kinds[] = {HF_FAIR, HF_READ, HF_WRITE, HF_FENCED, HF_SPIN, HF_SIMPLE};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		hf_lock *lock = NULL;
		if (CALL(0, 0, hf_lock_open(life->client, kinds[i], "kind", &lock)) == 0)
			meet(life, lock);
		hf_lock_close(lock);
	}
}

static void meet_at_several(struct life *life)
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

static void count_up_and_down(struct life *life)
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

static void take_permits(struct life *life)
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

static int ignore_info(void *arg, const hf_info *info)
{
	(void)arg;
	return hf_info_holders(info) > 200;
}

static void ignore_fact(void *arg, const char *name, const char *value)
{
	(void)arg, (void)name, (void)value;
}

static void live_with_all_kinds(struct life *life, const char *url)
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

/* The server has no replicas, so each grant is released again. */
static void live_durably(struct life *life, const char *url)
{
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

/* ---- tests ----------------------------------------------------------------------------------- */

typedef void live_fn(struct life *life, const char *url);

static struct test_server *server;

/* A life with allocation `from` failing; returns how many it asked for. */
static long live_short_of_memory(live_fn *live_so, const char *url, long from, bool only_one)
{
	struct life life = {0};
	(void)alarm(20);
	begin_counting(from, only_one ? ONE_FAILS : ALL_FAIL);
	live_so(&life, url);
	long allocations = end_watching();
	(void)alarm(0);
	if (life.wrong[0])
		fail_msg("allocation %ld fails, %s: %s", from, only_one ? "alone" : "and all after",
		         life.wrong);
	if (alive != 0)
		fail_msg("allocation %ld fails, %s: %ld not freed", from,
		         only_one ? "alone" : "and all after", (long)alive);
	return allocations;
}

static void live_until_nothing_fails(live_fn *live_so, const char *url, bool only_one)
{
	struct raw *raw = raw_connect(server);
	long from = 0, count;
	do {
		count = live_short_of_memory(live_so, url, ++from, only_one);
		raw_ok(raw, "FLUSHALL", NULL);
		raw_ok(raw, "SCRIPT", "FLUSH", NULL);
	} while (count >= from);
	raw_close(raw);
	/* The life is worth its name only if it asks for memory all over the place. */
	assert_true(from > 20);
}

static void life_with_all_the_memory_there_is(void **state)
{
	(void)state;
	long count = live_short_of_memory(live, test_server_url(server), 0, true);
	assert_true(count > 20);
}

static void one_failed_allocation_is_survived_wherever_it_is(void **state)
{
	(void)state;
	live_until_nothing_fails(live, test_server_url(server), true);
	live_until_nothing_fails(live, test_server_unix_url(server), true);
}

static void end_of_memory_is_survived_wherever_it_comes(void **state)
{
	(void)state;
	live_until_nothing_fails(live, test_server_url(server), false);
	live_until_nothing_fails(live, test_server_unix_url(server), false);
}

static void failed_allocations_are_survived_by_durable_grants(void **state)
{
	(void)state;
	assert_true(live_short_of_memory(live_durably, test_server_url(server), 0, true) > 20);
	live_until_nothing_fails(live_durably, test_server_url(server), true);
	live_until_nothing_fails(live_durably, test_server_url(server), false);
}

static void failed_allocations_are_survived_by_every_kind(void **state)
{
	(void)state;
	assert_true(live_short_of_memory(live_with_all_kinds, test_server_unix_url(server), 0,
	                                 true) > 60);
	live_until_nothing_fails(live_with_all_kinds, test_server_unix_url(server), true);
	live_until_nothing_fails(live_with_all_kinds, test_server_unix_url(server), false);
}

/* ---- holders ---- */

struct holder {
	hf_client *client;
	hf_lock *locks[LOCKS];
};

/* Takes 250 locks whose names have at least `length` characters. */
static void begin_holding(struct holder *holder, int length, int64_t watchdog_ms)
{
	char name[513];
	assert_int_equal(hf_client_open(test_server_unix_url(server),
	                                HF_CLIENT(.watchdog_ms = watchdog_ms), &holder->client),
	                 0);
	for (int i = 0; i < LOCKS; i++) {
		(void)snprintf(name, sizeof name, "%0*d", length, i);
		assert_int_equal(
			hf_lock_open(holder->client, HF_REENTRANT, name, &holder->locks[i]), 0);
		assert_int_equal(hf_lock_acquire(holder->locks[i], NULL), 0);
	}
}

static hf_stats stats_of(const struct holder *holder)
{
	hf_stats stats = {.size = sizeof(stats)};
	assert_int_equal(hf_client_stats(holder->client, &stats), 0);
	return stats;
}

static void wait_for_renewals(const struct holder *holder, int times)
{
	uint64_t wanted = stats_of(holder).renewals + (uint64_t)times * LOCKS;
	WAIT_UNTIL(stats_of(holder).renewals >= wanted || stats_of(holder).losses > 0, PATIENCE_MS);
}

static void end_holding(struct holder *holder)
{
	hf_stats stats = stats_of(holder);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.held, LOCKS);
	for (int i = 0; i < LOCKS; i++) {
		assert_int_equal(hf_lock_state(holder->locks[i], NULL), HF_HELD);
		assert_int_equal(hf_lock_release(holder->locks[i]), 0);
		hf_lock_close(holder->locks[i]);
	}
	assert_int_equal(hf_client_close(holder->client), 0);
}

static void hold_without_memory(int length)
{
	struct holder holder;
	begin_holding(&holder, length, 3000);
	begin_counting(1, ALL_FAIL);
	wait_for_renewals(&holder, 4);
	long count = end_watching();
	assert_int_equal(stats_of(&holder).losses, 0);
	assert_int_equal(stats_of(&holder).renewal_failures, 0);
	assert_int_equal(count, 0);
	end_holding(&holder);
}

static void renewing_needs_no_memory(void **state)
{
	(void)state;
	hold_without_memory(1);
}

static void renewing_the_longest_names_needs_no_memory(void **state)
{
	(void)state;
	hold_without_memory(512);
}

static void reconnecting_to_renew_needs_no_memory(void **state)
{
	(void)state;
	struct holder holder;
	struct raw *raw = raw_connect(server);
	begin_holding(&holder, 1, 3000);
	is_the_test = true;
	begin_counting(1, ALL_FAIL);
	raw_reply_free(raw_command(raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
	WAIT_UNTIL(stats_of(&holder).reconnects == 1, PATIENCE_MS);
	wait_for_renewals(&holder, 2);
	(void)end_watching();
	is_the_test = false;
	raw_close(raw);
	end_holding(&holder);
}

/* Calls fail while there is no memory; holds stay held all the same. */
static void failing_calls_do_not_touch_the_holds(void **state)
{
	(void)state;
	struct holder holder;
	hf_lock *lock = NULL;
	hf_owner *owner = NULL;
	begin_holding(&holder, 1, 3000);
	begin_counting(1, ALL_FAIL);
	assert_int_equal(hf_lock_open(holder.client, HF_REENTRANT, "new", &lock), HF_ENOMEM);
	assert_int_equal(hf_owner_new(&owner), HF_ENOMEM);
	assert_int_equal(hf_lock_ttl(holder.locks[0], &(int64_t){0}), HF_ENOMEM);
	wait_for_renewals(&holder, 2);
	(void)end_watching();
	end_holding(&holder);
}

static int start_server(void **state)
{
	(void)state;
	server = test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	test_server_stop(server);
	return 0;
}

int main(void)
{
	/* This thread's record stays as long as the thread; it is made here, so as not to be counted. */
	hf__thread_unref(hf__thread_ref());
	if (!__real_malloc || !__real_free || !__real_pthread_create)
		check_skip("linked without a way to let allocations fail");
	(void)signal(SIGALRM, report_hang);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_with_all_the_memory_there_is),
		cmocka_unit_test(one_failed_allocation_is_survived_wherever_it_is),
		cmocka_unit_test(end_of_memory_is_survived_wherever_it_comes),
		cmocka_unit_test(failed_allocations_are_survived_by_durable_grants),
		cmocka_unit_test(failed_allocations_are_survived_by_every_kind),
		cmocka_unit_test(renewing_needs_no_memory),
		cmocka_unit_test(renewing_the_longest_names_needs_no_memory),
		cmocka_unit_test(reconnecting_to_renew_needs_no_memory),
		cmocka_unit_test(failing_calls_do_not_touch_the_holds),
	};
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
