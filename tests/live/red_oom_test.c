/*
 * Fails every allocation in the life of a red lock in turn; nothing may crash, hang, leak or stay
 * held.
 */
#include "base/thread.h"
#include "live/red.h"
#include "live/shortage.h"

#include <signal.h>
#include <unistd.h>

#define MEMBERS 3

/* One life, whatever of it there is. */
struct life {
	hf_client *client[MEMBERS];
	hf_lock *member[MEMBERS];
	hf_lock *red;
	hf_owner *owner;
	struct done done;
	int calls; /* whose completion is waited for */
};

static void wait_for_calls(struct life *life)
{
	while (life->done.calls < life->calls)
		test_pause();
}

static bool begin_life(struct life *life)
{
	for (int i = 0; i < MEMBERS; i++)
		if (hf_client_open(test_server_unix_url(server[i]),
		                   HF_CLIENT(.command_timeout_ms = 500, .watchdog_ms = 5000),
		                   &life->client[i]) ||
		    hf_lock_open(life->client[i], HF_REENTRANT, NAME, &life->member[i]))
			return false;
	return !hf_owner_new(&life->owner) && !hf_lock_open_red(life->member, MEMBERS, &life->red);
}

/* Queries the servers with memory of the test's own. */
static bool is_on_server(int i)
{
	is_the_test = true;
	bool is = key_exists(raw[i], NAME);
	is_the_test = false;
	return is;
}

static void live(struct life *life)
{
	hf_acquire_options *wait = HF_ACQUIRE(.owner = life->owner, .wait_ms = 1000);
	hf_release_options *owned = HF_RELEASE(.owner = life->owner);
	(void)hf_lock_acquire(life->red, wait);
	life->calls += !hf_lock_acquire_async(life->red, wait, note_done, &life->done);
	wait_for_calls(life);
	/* Lost here at once, as it is our own client, and taken again in the background. */
	(void)hf_lock_force_release(life->member[0], NULL);
	long long ends_at = test_now_ms() + 30;
	while (!is_on_server(0) && test_now_ms() < ends_at)
		test_pause();
	(void)hf_lock_acquire(life->red, wait);
	life->calls += !hf_lock_release_async(life->red, owned, note_done, &life->done);
	wait_for_calls(life);
	(void)hf_lock_release_with(life->red, owned);
}

/*
 * With memory again, what could not be released for lack of it is released, and then everything is
 * gone.
 */
static void expect_free(struct life *life)
{
	int rc = 0;
	for (int i = 0; i < 10 && rc != HF_ENOTHELD; i++)
		rc = hf_lock_release_with(life->red, HF_RELEASE(.owner = life->owner));
	assert_int_equal(rc, HF_ENOTHELD);
	long long ends_at = test_now_ms() + SOON_MS;
	for (int i = 0; i < MEMBERS; i++)
		while (is_on_server(i) || stats_of(life->client[i]).held > 0) {
			if (test_now_ms() > ends_at)
				fail_msg("server %d is still held", i);
			test_pause();
		}
}

static void end_life(struct life *life)
{
	hf_lock_close(life->red);
	hf_owner_free(life->owner);
	for (int i = 0; i < MEMBERS; i++) {
		hf_lock_close(life->member[i]);
		assert_int_equal(hf_client_close(life->client[i]), 0);
	}
}

/* A life with allocation `from` failing; returns how many it asked for. */
static long live_short_of_memory(long from, enum shortage how)
{
	struct life life = {0};
	(void)alarm(30);
	begin_watching(from, how);
	is_numbering = true;
	bool begun = begin_life(&life);
	if (begun)
		live(&life);
	long allocations = asked;
	failing_from = 0;
	if (begun)
		expect_free(&life);
	end_life(&life);
	(void)end_watching();
	(void)alarm(0);
	if (alive != 0)
		fail_msg("allocation %ld fails, %s: %ld not freed", from, shortage_names[how],
		         (long)alive);
	return allocations;
}

static void live_until_nothing_fails(enum shortage how)
{
	long from = 0, count;
	do
		count = live_short_of_memory(++from, how);
	while (count >= from);
	/* This proves something only if the life allocates memory in many places. */
	assert_true(from > 60);
}

static void one_failed_allocation_leaves_nothing_held(void **state)
{
	(void)state;
	live_until_nothing_fails(ONE_FAILS);
}

static void end_of_memory_leaves_nothing_held(void **state)
{
	(void)state;
	live_until_nothing_fails(ALL_FAIL);
}

/* The memory for a release is kept from the acquire on. */
static void releasing_needs_no_memory(void **state)
{
	struct life life = {0};
	(void)state;
	assert_true(begin_life(&life));
	for (int i = 0; i < 2; i++)
		assert_int_equal(hf_lock_acquire(life.red, HF_ACQUIRE(.owner = life.owner)), 0);
	begin_watching(1, ALL_FAIL);
	is_numbering = true;
	int first = hf_lock_release_with(life.red, HF_RELEASE(.owner = life.owner));
	int second = hf_lock_release_with(life.red, HF_RELEASE(.owner = life.owner));
	(void)end_watching();
	failing_from = 0;
	assert_int_equal(first, 0);
	assert_int_equal(second, 0);
	expect_free(&life);
	end_life(&life);
}

int main(void)
{
	/*
	 * This thread's record stays as long as the thread; it is made here, so as not to be
	 * counted.
	 */
	hf__thread_unref(hf__thread_ref());
	if (!__real_malloc || !__real_free || !__real_pthread_create)
		check_skip("linked without a way to let allocations fail");
	(void)signal(SIGALRM, report_hang);
	const struct CMUnitTest tests[] = {
		RED_STORY(one_failed_allocation_leaves_nothing_held),
		RED_STORY(end_of_memory_leaves_nothing_held),
		RED_STORY(releasing_needs_no_memory),
	};
	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
