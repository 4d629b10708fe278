/* The pauses of the spin lock: how often it asks while it waits. */
#include "live/spin.h"

/* How many times it asks in this much time. */
static uint64_t asks_within(const hf_lock_options *options, int64_t wait_ms)
{
	struct rivals *rivals = begin(options);
	/* An ask may be in flight when the time has run out. */
	int rc = hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = wait_ms));
	assert_true(rc == HF_ETIMEDOUT || rc == HF_EUNKNOWN);
	uint64_t asks = stats_of(rivals->two).attempts;
	assert_int_equal(stats_of(rivals->two).waits, 1);
	end(rivals);
	return asks;
}

/* When the first asks were made, as seen in the counter: early ones may be seen late. */
static void see_asks(const hf_lock_options *options, long long *ret_at, int n)
{
	struct rivals *rivals = begin(options);
	hf_cancel *cancel = new_cancel();
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	for (int i = 0; i < n;) {
		uint64_t asks = stats_of(rivals->two).attempts;
		long long now = test_now_ms();
		while (i < n && (uint64_t)i < asks)
			ret_at[i++] = now;
		test_pause();
	}
	hf_cancel_fire(cancel);
	waiter_join(waiter, HF_ECANCELLED);
	hf_cancel_free(cancel);
	end(rivals);
}

/*
 * There are never more asks than the most, since a pause is never shorter than it should be. How
 * many fewer there are depends on the machine, so the least is about half of it, and one of a few
 * tries has to reach it.
 */
static void check_asks(const hf_lock_options *options, int64_t wait_ms, uint64_t least,
                       uint64_t most)
{
	uint64_t asks = 0;
	for (int i = 0; i < 5 && asks < least; i++) {
		asks = asks_within(options, wait_ms);
		ASSERT_BETWEEN((int64_t)asks, 1, (int64_t)most);
	}
	ASSERT_BETWEEN((int64_t)asks, (int64_t)least, (int64_t)most);
}

static void growing_pause_starts_small_and_stops_growing_at_the_most(void **state)
{
	(void)state;
	/* At 0, 10, 40, 130, and from then on every 100 ms up to 930. */
	check_asks(HF_LOCK(.spin_ms = 10, .spin_factor = 3, .spin_max_ms = 100), 1000, 6, 12);
}

static void pauses_grow_by_the_factor(void **state)
{
	long long at[4];

	(void)state;
	see_asks(HF_LOCK(.spin_ms = 50, .spin_factor = 4, .spin_max_ms = 60000), at, 4);
	/* 50, 200 and a bit, 800 and a bit; what delays one ask delays all that follow. */
	ASSERT_BETWEEN(at[1] - at[0], 25, 1000);
	ASSERT_BETWEEN(at[2] - at[0], 225, 2000);
	ASSERT_BETWEEN(at[3] - at[0], 1025, 4000);
	assert_true(at[3] - at[2] > at[1] - at[0]);
}

static void constant_pause_stays_as_it_is(void **state)
{
	(void)state;
	/* At 0, 30, 60 and so on up to 570, perhaps 600. */
	check_asks(HF_LOCK(.spin_ms = 30, .spin_factor = 1), 600, 9, 21);
}

static void constant_pause_is_64_ms_where_nothing_is_said(void **state)
{
	(void)state;
	/* At 0, 64, 128 and so on up to 640. */
	check_asks(HF_LOCK(.spin_factor = 1), 650, 5, 11);
}

static void usual_pause_doubles_from_1_to_128_ms(void **state)
{
	(void)state;
	/* At 0, 1, 3, 7, 15, 31, 63, 127, and from then on every 128 ms up to 895. */
	check_asks(NULL, 1000, 7, 14);
}

static void most_below_the_first_pause_is_the_first_pause(void **state)
{
	(void)state;
	check_asks(HF_LOCK(.spin_ms = 100, .spin_max_ms = 10), 550, 3, 6);
}

static void waiters_do_not_ask_more_often_together(void **state)
{
	struct waiter *waiter[8];
	hf_cancel *cancel = new_cancel();

	(void)state;
	struct rivals *rivals = begin(HF_LOCK(.spin_factor = 1, .spin_ms = 50));
	long long started_at = test_now_ms();
	for (int i = 0; i < 8; i++)
		waiter[i] = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(rivals->two).attempts >= 8, SOON_MS);
	/* Only one of them asks, so this took seven pauses. */
	ASSERT_BETWEEN(test_now_ms() - started_at, 7 * 50 - 10, SOON_MS);
	hf_cancel_fire(cancel);
	for (int i = 0; i < 8; i++) {
		waiter_join(waiter[i], HF_ECANCELLED);
	}
	hf_cancel_free(cancel);
	end(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(growing_pause_starts_small_and_stops_growing_at_the_most),
		LIVE_STORY(pauses_grow_by_the_factor),
		LIVE_STORY(constant_pause_stays_as_it_is),
		LIVE_STORY(constant_pause_is_64_ms_where_nothing_is_said),
		LIVE_STORY(usual_pause_doubles_from_1_to_128_ms),
		LIVE_STORY(most_below_the_first_pause_is_the_first_pause),
		LIVE_STORY(waiters_do_not_ask_more_often_together),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
