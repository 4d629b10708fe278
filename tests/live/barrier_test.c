/* The barrier on Redis: a latch of one, which any client can set and remove. */
#include "live/barrier.h"

#define CHANNEL "redisson_countdownlatch__channel__{gate}"

static struct barrier_pair begin(void)
{
	return open_gate(sync_open(NULL), sync_open(NULL));
}

static void end(struct barrier_pair *pair)
{
	close_gate(pair);
	sync_close_two(pair->one, pair->two);
}

/* Starts a waiter of the second client, and returns when it sleeps until it is woken. */
static struct waiter *sleeper(struct barrier_pair *pair, const hf_wait_options *options)
{
	uint64_t attempts = stats_of(pair->two).attempts;
	struct waiter *guest = guest_start(PASS, pair->theirs, options);
	await_sleep(pair->two, CHANNEL, attempts);
	return guest;
}

static int64_t latch_count(hf_client *client)
{
	hf_latch *latch = NULL;
	int64_t count = -7;
	ASSERT_OK(hf_latch_open(client, "gate", &latch));
	ASSERT_OK(hf_latch_count(latch, &count));
	hf_latch_close(latch);
	return count;
}

static void barrier_is_a_latch_of_one(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	assert_int_equal(latch_count(pair.two), 0);
	ASSERT_OK(hf_barrier_set(pair.mine));
	assert_int_equal(number_at(live_raw, "gate"), 1);
	assert_int_equal(key_pttl(live_raw, "gate"), -1);
	assert_int_equal(latch_count(pair.two), 1);
	assert_int_equal(is_set(pair.theirs), 1);
	ASSERT_OK(hf_barrier_remove(pair.theirs));
	assert_false(key_exists(live_raw, "gate"));
	assert_int_equal(latch_count(pair.two), 0);
	end(&pair);
}

static void count_down_of_a_peer_lets_everybody_pass(void **state)
{
	hf_latch *latch = NULL;
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_latch_open(pair.one, "gate", &latch));
	ASSERT_OK(hf_barrier_set(pair.mine));
	struct waiter *guest = sleeper(&pair, NULL);
	ASSERT_OK(hf_latch_count_down(latch));
	waiter_join(guest, 0);
	/* And the other way round: a latch of two is a barrier too. */
	ASSERT_OK(hf_latch_try_set(latch, 2, NULL));
	assert_int_equal(is_set(pair.mine), 1);
	ASSERT_OK(hf_barrier_set(pair.mine));
	assert_int_equal(number_at(live_raw, "gate"), 2);
	guest = sleeper(&pair, NULL);
	ASSERT_OK(hf_barrier_remove(pair.mine));
	waiter_join(guest, 0);
	hf_latch_close(latch);
	end(&pair);
}

static void set_and_remove_do_nothing_the_second_time(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	assert_int_equal(is_set(pair.mine), 0);
	ASSERT_OK(hf_barrier_remove(pair.mine));
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_barrier_set(pair.mine));
		ASSERT_OK(hf_barrier_set(pair.theirs));
		assert_int_equal(number_at(live_raw, "gate"), 1);
		ASSERT_OK(hf_barrier_remove(pair.theirs));
		ASSERT_OK(hf_barrier_remove(pair.mine));
		assert_int_equal(is_set(pair.theirs), 0);
	}
	ASSERT_RC(hf_barrier_is_set(pair.mine, NULL), HF_EINVAL);
	assert_int_equal(count_keys(live_raw), 0);
	end(&pair);
}

static void wait_ends_as_the_caller_wants(void **state)
{
	hf_cancel *cancel = new_cancel();
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_wait(pair.mine, NULL));
	ASSERT_OK(pass_now(pair.mine));
	ASSERT_OK(hf_barrier_set(pair.mine));
	ASSERT_RC(pass_now(pair.theirs), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "gate");
	long long started_at = test_now_ms();
	ASSERT_TIMES_OUT(200, hf_barrier_wait(pair.theirs, HF_WAIT(.wait_ms = within_ms)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 200, 2000);
	struct waiter *guest = sleeper(&pair, HF_WAIT(.cancel = cancel));
	hf_cancel_fire(cancel);
	waiter_join(guest, HF_ECANCELLED);
	assert_int_equal(is_set(pair.mine), 1);
	assert_int_equal(count_keys(live_raw), 1);
	hf_cancel_free(cancel);
	end(&pair);
}

#define GUESTS 12

static void removal_lets_all_waiters_pass(void **state)
{
	struct waiter *guests[GUESTS];
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	for (int i = 0; i < GUESTS; i++)
		guests[i] = guest_start(PASS, i % 2 ? pair.mine : pair.theirs, NULL);
	WAIT_UNTIL(stats_of(pair.one).waiting == GUESTS / 2 &&
	                   stats_of(pair.two).waiting == GUESTS / 2 &&
	                   subscribers(live_raw, CHANNEL) == 2,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	for (int i = 0; i < GUESTS; i++)
		assert_false(waiter_is_over(guests[i]));
	long long removed_at = test_now_ms();
	ASSERT_OK(hf_barrier_remove(pair.mine));
	for (int i = 0; i < GUESTS; i++)
		waiter_join(guests[i], 0);
	ASSERT_BETWEEN(test_now_ms() - removed_at, 0, WOKEN_MS);
	end(&pair);
}

static void barrier_outlives_its_maker_and_close_answers_waiters(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	ASSERT_OK(sync_close(pair.one));
	pair.one = NULL;
	assert_int_equal(is_set(pair.theirs), 1);
	struct waiter *guest = sleeper(&pair, NULL);
	ASSERT_OK(sync_close(pair.two));
	pair.two = NULL;
	waiter_join(guest, HF_ECLOSED);
	ASSERT_RC(hf_barrier_set(pair.theirs), HF_ECLOSED);
	assert_int_equal(number_at(live_raw, "gate"), 1);
	end(&pair);
}

static void key_of_another_sort_is_a_conflict(void **state)
{
	int set = -7;

	(void)state;
	struct barrier_pair pair = begin();
	assert_int_equal(raw_integer(live_raw, "SADD", "gate", "x", NULL), 1);
	ASSERT_RC(hf_barrier_set(pair.mine), HF_ECONFLICT);
	ASSERT_RC(pass_now(pair.mine), HF_ECONFLICT);
	ASSERT_RC(hf_barrier_is_set(pair.mine, &set), HF_ECONFLICT);
	assert_int_equal(set, -7);
	ASSERT_RC(hf_barrier_remove(pair.mine), HF_ECONFLICT);
	assert_int_equal(raw_integer(live_raw, "SCARD", "gate", NULL), 1);
	end(&pair);
}

static void asynchronous_forms_say_the_same(void **state)
{
	struct done done = {0}, set = {0}, removed = {0};
	(void)state;
	struct barrier_pair pair = begin();
	EXPECT_DONE(hf_barrier_is_set_async(pair.mine, DONE), 0, 0);
	ASSERT_OK(hf_barrier_set_async(pair.mine, note_done, &set));
	WAIT_UNTIL(atomic_load(&set.calls) == 1, SOON_MS);
	assert_int_equal(set.result, 0);
	EXPECT_DONE(hf_barrier_is_set_async(pair.theirs, DONE), 0, 1);
	EXPECT_DONE(hf_barrier_wait_async(pair.theirs, HF_WAIT(.wait_ms = HF_NOWAIT), DONE),
	            HF_EBUSY, 0);
	ASSERT_OK(hf_barrier_wait_async(pair.theirs, NULL, note_done, &done));
	WAIT_UNTIL(stats_of(pair.two).waiting == 1 && subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	assert_int_equal(atomic_load(&done.calls), 0);
	ASSERT_OK(hf_barrier_remove_async(pair.mine, note_done, &removed));
	expect_done(&done, 0, 0);
	WAIT_UNTIL(atomic_load(&removed.calls) == 1, SOON_MS);
	assert_int_equal(removed.result, 0);
	/* A latch with a higher count keeps its waiters back, too. */
	raw_ok(live_raw, "SET", "gate", "3", NULL);
	EXPECT_DONE(hf_barrier_is_set_async(pair.theirs, DONE), 0, 1);
	end(&pair);
}

static void what_makes_no_sense_is_refused(void **state)
{
	hf_barrier *barrier = NULL;
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_RC(hf_barrier_open(NULL, "gate", &barrier), HF_EINVAL);
	ASSERT_RC(hf_barrier_open(pair.one, "", &barrier), HF_EINVAL);
	ASSERT_RC(hf_barrier_open(pair.one, "a}b", &barrier), HF_EINVAL);
	assert_null(barrier);
	ASSERT_RC(hf_barrier_set(NULL), HF_EINVAL);
	ASSERT_RC(hf_barrier_wait(NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_barrier_wait(pair.mine, HF_WAIT(.wait_ms = -2)), HF_EINVAL);
	assert_int_equal(stats_of(pair.one).commands, 0);
	hf_barrier_close(NULL);
	end(&pair);
}

static void double_barrier_needs_sessions(void **state)
{
	hf_double_barrier *barrier = NULL;
	hf_client *client = sync_open(NULL);

	(void)state;
	ASSERT_RC(hf_double_barrier_open(client, "phase", 2, &barrier), HF_ENOTSUP);
	ASSERT_CONTAINS(hf_error_detail(), "ZooKeeper");
	assert_null(barrier);
	assert_int_equal(stats_of(client).commands, 0);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(barrier_is_a_latch_of_one),
		SYNC_STORY(count_down_of_a_peer_lets_everybody_pass),
		SYNC_STORY(set_and_remove_do_nothing_the_second_time),
		SYNC_STORY(wait_ends_as_the_caller_wants),
		SYNC_STORY(removal_lets_all_waiters_pass),
		SYNC_STORY(barrier_outlives_its_maker_and_close_answers_waiters),
		SYNC_STORY(key_of_another_sort_is_a_conflict),
		SYNC_STORY(asynchronous_forms_say_the_same),
		SYNC_STORY(what_makes_no_sense_is_refused),
		SYNC_STORY(double_barrier_needs_sessions),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
