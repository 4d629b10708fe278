/* Waiters for a hold of their own process, which somebody else takes away. */
#include "live/any_kind.h"
#include "live/child.h"

/* A waiter that nothing wakes up asks after 2.4 s at the earliest. */
#define WOKEN_MS 2300

struct row {
	int held, wanted; /* hf_kind, or HF__GROUP */
};

static const struct row rows[] = {
	{HF_REENTRANT, HF_REENTRANT}, {HF_FENCED, HF_FENCED}, {HF_SIMPLE, HF_SIMPLE},
	{HF_SPIN, HF_SPIN},           {HF_FAIR, HF_FAIR},     {HF_SIMPLE_FAIR, HF_SIMPLE_FAIR},
	{HF_WRITE, HF_WRITE},         {HF_WRITE, HF_READ},    {HF__GROUP, HF__GROUP},
};

/* The release is forced when the first waiter has waited for this long. */
static void force_after(const struct row *row, int64_t wait_ms)
{
	hf_client *one = open_client(NULL), *two = open_client(NULL);
	hf_lock *held = open_kind(one, row->held), *wanted = open_kind(one, row->wanted);
	hf_lock *theirs = open_kind(two, row->held);
	struct waiter *waiter[2];

	ASSERT_OK(hf_lock_acquire(held, NULL));
	for (int i = 0; i < 2; i++) {
		waiter[i] = waiter_start(wanted, NULL);
		WAIT_UNTIL(stats_of(one).waiting == (uint64_t)i + 1, SOON_MS);
	}
	long long began_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - began_at >= wait_ms, SOON_MS);
	long long forced_at = test_now_ms();
	ASSERT_OK(hf_lock_force_release(theirs, NULL));
	for (int i = 0; i < 2; i++) {
		/* Which of them is the first is not certain, except for fair locks. */
		WAIT_UNTIL(waiter_is_over(waiter[0]) || waiter_is_over(waiter[1]), SOON_MS);
		int which = waiter_is_over(waiter[0]) ? 0 : 1;
		waiter_expect(waiter[which], 0);
		if (waiter[which]->ended_at - forced_at > WOKEN_MS)
			fail_msg("kind %d: woken %lld ms after the forced release", row->wanted,
			         waiter[which]->ended_at - forced_at);
		waiter_finish(waiter[which]);
		waiter[which] = waiter[1 - which];
	}
	ASSERT_RC(hf_lock_release(held), HF_ELOST);
	hf_lock_close(held);
	hf_lock_close(wanted);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void waiter_notices_a_forced_release_from_elsewhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		force_after(&rows[i], 300);
}

static void waiter_notices_a_forced_release_right_after_it_began_to_wait(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		force_after(&rows[i], 0);
}

static void *take_turns(void *arg)
{
	for (int i = 0; i < 50; i++) {
		ASSERT_OK(hf_lock_acquire(arg, NULL));
		test_pause();
		ASSERT_OK(hf_lock_release(arg));
	}
	return NULL;
}

static void short_waits_need_no_subscription(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_kind(client, HF_WRITE);
	pthread_t thread[4];

	(void)state;
	uint64_t before = stats_of(client).commands;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_turns, lock), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	/* A stall of the machine may make a waiter listen, which costs one command. */
	ASSERT_BETWEEN(stats_of(client).commands - before, 2 * 4 * 50, 2 * 4 * 50 + 10);
	close_both(lock, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(waiter_notices_a_forced_release_from_elsewhere),
		LIVE_STORY(waiter_notices_a_forced_release_right_after_it_began_to_wait),
		LIVE_STORY(short_waits_need_no_subscription),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
