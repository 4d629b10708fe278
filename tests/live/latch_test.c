/* The stories of latches: a count that goes down to zero, and the calls that wait for that. */
#include "live/sync.h"

#include "support/process.h"

#define CHANNEL "redisson_countdownlatch__channel__{orders}"
#define MOST    INT64_C(2147483647)

/* Two clients at one latch. */
struct pair {
	hf_client *one;
	hf_client *two;
	hf_latch *mine;
	hf_latch *theirs;
};

static hf_latch *open_latch(hf_client *client, const char *name)
{
	hf_latch *latch = NULL;
	ASSERT_OK(hf_latch_open(client, name, &latch));
	return latch;
}

static void begin(struct pair *pair, int64_t count)
{
	int done = -7;
	pair->one = sync_open(NULL);
	pair->two = sync_open(NULL);
	pair->mine = open_latch(pair->one, "orders");
	pair->theirs = open_latch(pair->two, "orders");
	if (count < 0)
		return;
	ASSERT_OK(hf_latch_try_set(pair->mine, count, &done));
	assert_int_equal(done, 1);
}

static void end(struct pair *pair)
{
	hf_latch_close(pair->mine);
	hf_latch_close(pair->theirs);
	sync_close_two(pair->one, pair->two);
}

static int64_t count_of(hf_latch *latch)
{
	int64_t count = NO_NUMBER;
	ASSERT_OK(hf_latch_count(latch, &count));
	return count;
}

static int is_open(hf_latch *latch)
{
	return hf_latch_wait(latch, HF_WAIT(.wait_ms = HF_NOWAIT));
}

/* Starts a waiter of the second client, and returns when it sleeps until it is woken. */
static struct waiter *sleeper(struct pair *pair)
{
	uint64_t attempts = stats_of(pair->two).attempts;
	struct waiter *call = WAITER(.latch = pair->theirs);
	await_sleep(pair->two, CHANNEL, attempts);
	return call;
}

/* ---- counting ---- */

static void latch_counts_down_to_nothing_and_no_further(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 3);
	assert_int_equal(number_at(live_raw, "orders"), 3);
	assert_int_equal(key_pttl(live_raw, "orders"), -1);
	assert_int_equal(count_of(pair.theirs), 3);
	ASSERT_RC(is_open(pair.theirs), HF_EBUSY);
	ASSERT_OK(hf_latch_count_down(pair.theirs));
	assert_int_equal(count_of(pair.mine), 2);
	ASSERT_OK(hf_latch_count_down(pair.mine));
	ASSERT_OK(hf_latch_count_down(pair.theirs));
	assert_int_equal(count_of(pair.mine), 0);
	assert_false(key_exists(live_raw, "orders"));
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_latch_count_down(pair.mine));
	assert_int_equal(count_of(pair.mine), 0);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_latch_wait(pair.mine, NULL));
	assert_int_equal(count_keys(live_raw), 0);
	end(&pair);
}

static void latch_that_does_not_exist_is_open(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, -1);
	assert_int_equal(count_of(pair.mine), 0);
	ASSERT_OK(is_open(pair.mine));
	ASSERT_OK(hf_latch_wait(pair.mine, NULL));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	assert_int_equal(keys_besides_records(live_raw), 0);
	end(&pair);
}

static void only_the_first_set_counts_until_it_is_open(void **state)
{
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair, 1);
	ASSERT_OK(hf_latch_try_set(pair.theirs, 5, &done));
	assert_int_equal(done, 0);
	assert_int_equal(count_of(pair.mine), 1);
	ASSERT_OK(hf_latch_count_down(pair.mine));
	ASSERT_OK(hf_latch_try_set(pair.theirs, 5, &done));
	assert_int_equal(done, 1);
	assert_int_equal(count_of(pair.mine), 5);
	ASSERT_OK(hf_latch_try_set(pair.theirs, 5, NULL));
	end(&pair);
}

static void delete_returns_whether_the_latch_existed(void **state)
{
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair, 2);
	ASSERT_OK(hf_latch_delete(pair.theirs, &done));
	assert_int_equal(done, 1);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_latch_delete(pair.theirs, &done));
	assert_int_equal(done, 0);
	ASSERT_OK(hf_latch_delete(pair.theirs, NULL));
	ASSERT_OK(is_open(pair.mine));
	end(&pair);
}

static void numbers_and_names_that_make_no_sense_are_refused(void **state)
{
	hf_latch *latch = NULL;
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair, -1);
	ASSERT_RC(hf_latch_try_set(pair.mine, -1, &done), HF_EINVAL);
	ASSERT_RC(hf_latch_try_set(pair.mine, MOST + 1, &done), HF_EINVAL);
	ASSERT_RC(hf_latch_try_set_async(pair.mine, -1, fail_on_done, NULL), HF_EINVAL);
	ASSERT_RC(hf_latch_wait(pair.mine, HF_WAIT(.wait_ms = -2)), HF_EINVAL);
	ASSERT_RC(hf_latch_wait(NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_latch_count_down(NULL), HF_EINVAL);
	ASSERT_RC(hf_latch_open(pair.one, "", &latch), HF_EINVAL);
	ASSERT_RC(hf_latch_open(pair.one, "a}b", &latch), HF_EINVAL);
	ASSERT_RC(hf_latch_open(NULL, "orders", &latch), HF_EINVAL);
	assert_null(latch);
	assert_int_equal(done, -7);
	assert_int_equal(stats_of(pair.one).commands, 0);
	hf_latch_close(NULL);
	end(&pair);
}

static void count_of_nothing_is_open_and_the_largest_is_2147483647(void **state)
{
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair, 0);
	assert_int_equal(count_of(pair.mine), 0);
	ASSERT_OK(is_open(pair.mine));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_latch_try_set(pair.mine, MOST, &done));
	assert_int_equal(done, 1);
	ASSERT_OK(hf_latch_count_down(pair.mine));
	assert_int_equal(count_of(pair.mine), MOST - 1);
	ASSERT_RC(is_open(pair.mine), HF_EBUSY);
	end(&pair);
}

static void number_below_zero_that_a_peer_left_counts_as_open(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, -1);
	raw_ok(live_raw, "SET", "orders", "-2", NULL);
	ASSERT_OK(is_open(pair.mine));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	assert_false(key_exists(live_raw, "orders"));
	end(&pair);
}

/* ---- waiting ---- */

static void messages_are_those_of_java(void **state)
{
	struct raw *listener = listen_to(CHANNEL);
	struct raw *braced = listen_to("redisson_countdownlatch__channel__{{a}:b}");
	struct pair pair;

	(void)state;
	begin(&pair, 2);
	expect_message(listener, "1");
	ASSERT_OK(hf_latch_try_set(pair.mine, 2, NULL));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	expect_message(listener, "0");
	ASSERT_OK(hf_latch_count_down(pair.mine));
	ASSERT_OK(hf_latch_delete(pair.mine, NULL));
	expect_silence(listener);
	ASSERT_OK(hf_latch_try_set(pair.mine, 1, NULL));
	expect_message(listener, "1");
	ASSERT_OK(hf_latch_delete(pair.mine, NULL));
	expect_message(listener, "1");
	/* The channel always has braces. */
	hf_latch *latch = open_latch(pair.one, "{a}:b");
	ASSERT_OK(hf_latch_try_set(latch, 1, NULL));
	expect_message(braced, "1");
	hf_latch_close(latch);
	raw_close(listener);
	raw_close(braced);
	end(&pair);
}

static void all_waiters_are_released_together(void **state)
{
	struct waiter *calls[8];
	struct pair pair;

	(void)state;
	begin(&pair, 2);
	for (int i = 0; i < 8; i++)
		calls[i] = WAITER(.latch = i % 2 ? pair.mine : pair.theirs);
	WAIT_UNTIL(stats_of(pair.one).waiting == 4 && stats_of(pair.two).waiting == 4 &&
	                   subscribers(live_raw, CHANNEL) == 2,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	for (int i = 0; i < 8; i++)
		assert_false(waiter_is_over(calls[i]));
	long long opened_at = test_now_ms();
	ASSERT_OK(hf_latch_count_down(pair.mine));
	for (int i = 0; i < 8; i++) {
		waiter_expect(calls[i], 0);
		ASSERT_BETWEEN(calls[i]->ended_at - opened_at, 0, WOKEN_MS);
		waiter_free(calls[i]);
	}
	assert_int_equal(stats_of(pair.one).waiting + stats_of(pair.two).waiting, 0);
	end(&pair);
}

static void delete_opens_it_for_the_waiters(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 5);
	struct waiter *call = sleeper(&pair);
	ASSERT_WAKES(hf_latch_delete(pair.mine, NULL), call, WOKEN_MS);
	waiter_free(call);
	end(&pair);
}

static void latch_that_is_set_again_stops_later_waiters(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 1);
	struct waiter *first = sleeper(&pair);
	ASSERT_OK(hf_latch_count_down(pair.mine));
	waiter_expect(first, 0);
	ASSERT_OK(hf_latch_try_set(pair.mine, 1, NULL));
	struct waiter *second = sleeper(&pair);
	assert_false(waiter_is_over(second));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	waiter_expect(second, 0);
	waiter_free(first);
	waiter_free(second);
	end(&pair);
}

static void wait_that_is_long_enough_succeeds(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 1);
	struct waiter *call = WAITER(.latch = pair.theirs, .wait_ms = 15000);
	WAIT_UNTIL(stats_of(pair.two).waiting == 1, SOON_MS);
	ASSERT_OK(hf_latch_count_down(pair.mine));
	waiter_expect(call, 0);
	ASSERT_BETWEEN(call->ended_at - call->started_at, 0, 14000);
	waiter_free(call);
	end(&pair);
}

static void try_asks_once_and_listens_to_nothing(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 1);
	ASSERT_RC(is_open(pair.theirs), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(pair.two).attempts, 1);
	assert_int_equal(channels(live_raw), 0);
	end(&pair);
}

static void close_answers_the_waiters_and_leaves_the_latch(void **state)
{
	struct pair pair;
	int64_t count;

	(void)state;
	begin(&pair, 1);
	struct waiter *call = sleeper(&pair);
	long long closed_at = test_now_ms();
	ASSERT_OK(sync_close(pair.two));
	ASSERT_BETWEEN(test_now_ms() - closed_at, 0, 900);
	waiter_expect(call, HF_ECLOSED);
	ASSERT_RC(hf_latch_wait(pair.theirs, NULL), HF_ECLOSED);
	ASSERT_RC(hf_latch_count_down(pair.theirs), HF_ECLOSED);
	ASSERT_RC(hf_latch_count(pair.theirs, &count), HF_ECLOSED);
	ASSERT_RC(hf_latch_wait_async(pair.theirs, NULL, fail_on_done, NULL), HF_ECLOSED);
	assert_int_equal(number_at(live_raw, "orders"), 1);
	waiter_free(call);
	pair.two = NULL;
	end(&pair);
}

/* ---- processes and threads ---- */

static void wait_for_it(hf_client *client)
{
	hf_latch *latch;
	if (hf_latch_open(client, "orders", &latch) || hf_latch_wait(latch, NULL))
		_exit(1);
}

static void killed_waiter_leaves_nothing(void **state)
{
	struct pair pair;

	(void)state;
	raw_ok(live_raw, "SET", "orders", "1", NULL);
	pid_t waiter = start_child(wait_for_it, 600);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	kill_child(waiter);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	assert_int_equal(number_at(live_raw, "orders"), 1);
	begin(&pair, -1);
	ASSERT_OK(hf_latch_count_down(pair.mine));
	ASSERT_OK(is_open(pair.mine));
	end(&pair);
}

#define THREADS 6
#define ROUNDS  20

static void *count_down_often(void *latch)
{
	for (int i = 0; i < ROUNDS; i++)
		if (hf_latch_count_down(latch))
			return "not counted";
	return NULL;
}

static void many_count_down_at_once_and_each_counts(void **state)
{
	pthread_t threads[THREADS];
	struct pair pair;

	(void)state;
	begin(&pair, THREADS * ROUNDS + 1);
	struct waiter *call = sleeper(&pair);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_down_often,
		                                i % 2 ? pair.mine : pair.theirs),
		                 0);
	for (int i = 0; i < THREADS; i++) {
		void *said;
		assert_int_equal(pthread_join(threads[i], &said), 0);
		assert_null(said);
	}
	assert_int_equal(count_of(pair.mine), 1);
	assert_false(waiter_is_over(call));
	ASSERT_OK(hf_latch_count_down(pair.mine));
	waiter_join(call, 0);
	end(&pair);
}

static struct pair forked;

static void use_inherited_handles(int pipe_fd)
{
	hf_latch *latch = NULL;
	int64_t count;
	int done;

	EXPECT_FORKED(hf_latch_open(forked.one, "other", &latch));
	EXPECT_FORKED(hf_latch_try_set(forked.mine, 1, &done));
	EXPECT_FORKED(hf_latch_count_down(forked.mine));
	EXPECT_FORKED(hf_latch_count(forked.mine, &count));
	EXPECT_FORKED(hf_latch_wait(forked.mine, NULL));
	EXPECT_FORKED(hf_latch_delete(forked.mine, &done));
	EXPECT_FORKED(hf_latch_wait_async(forked.mine, NULL, fail_on_done, NULL));
	hf_latch_close(forked.mine);
	dprintf(pipe_fd, "all forked");
	_exit(0);
}

static void forked_child_gets_an_error_and_sends_nothing(void **state)
{
	char output[256];

	(void)state;
	begin(&forked, 1);
	long long before = info_number(live_raw, "stats", "total_commands_processed");
	int status = process_fork(use_inherited_handles, output, sizeof output);
	assert_string_equal(output, "all forked");
	assert_int_equal(status, 0);
	assert_int_equal(info_number(live_raw, "stats", "total_commands_processed"), before + 1);
	ASSERT_OK(hf_latch_count_down(forked.mine));
	end(&forked);
}

/* ---- the rest ---- */

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct done *done[5];
	struct pair pair;

	(void)state;
	begin(&pair, -1);
	EXPECT_DONE(hf_latch_try_set_async(pair.mine, 2, DONE), 0, 1);
	EXPECT_DONE(hf_latch_try_set_async(pair.mine, 2, DONE), 0, 0);
	EXPECT_DONE(hf_latch_count_async(pair.mine, DONE), 0, 2);
	EXPECT_DONE(hf_latch_wait_async(pair.mine, HF_WAIT(.wait_ms = HF_NOWAIT), DONE), HF_EBUSY,
	            0);
	EXPECT_DONE(hf_latch_wait_async(pair.mine, HF_WAIT(.wait_ms = 300), DONE), HF_ETIMEDOUT, 0);
	for (int i = 0; i < 5; i++) {
		done[i] = check_alloc(sizeof(*done[i]));
		ASSERT_OK(hf_latch_wait_async(pair.theirs, NULL, note_done, done[i]));
	}
	WAIT_UNTIL(stats_of(pair.two).waiting == 5, SOON_MS);
	EXPECT_DONE(hf_latch_count_down_async(pair.mine, DONE), 0, 1);
	EXPECT_DONE(hf_latch_count_down_async(pair.mine, DONE), 0, 0);
	for (int i = 0; i < 5; i++) {
		expect_done(done[i], 0, 0);
		free(done[i]);
	}
	EXPECT_DONE(hf_latch_delete_async(pair.mine, DONE), 0, 0);
	ASSERT_OK(hf_latch_try_set(pair.mine, 1, NULL));
	EXPECT_DONE(hf_latch_delete_async(pair.mine, DONE), 0, 1);
	end(&pair);
}

static void keys_of_another_sort_are_left_alone(void **state)
{
	struct pair pair;
	int64_t count;
	int done = -7;

	(void)state;
	begin(&pair, -1);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			raw_ok(live_raw, "SET", "orders", "many", NULL);
		else
			assert_int_equal(raw_integer(live_raw, "HSET", "orders", "a", "1", NULL),
			                 1);
		ASSERT_RC(hf_latch_wait(pair.mine, NULL), HF_ECONFLICT);
		ASSERT_CONTAINS(hf_error_detail(), "orders");
		ASSERT_RC(hf_latch_count_down(pair.mine), HF_ECONFLICT);
		ASSERT_RC(hf_latch_count(pair.mine, &count), HF_ECONFLICT);
		ASSERT_RC(hf_latch_delete(pair.mine, &done), HF_ECONFLICT);
		ASSERT_OK(hf_latch_try_set(pair.mine, 1, &done));
		assert_int_equal(done, 0);
		assert_true(key_exists(live_raw, "orders"));
		assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	}
	assert_int_equal(keys_besides_records(live_raw), 0);
	end(&pair);
}

static void forgotten_scripts_are_sent_again(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 2);
	struct waiter *call = sleeper(&pair);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_latch_count_down(pair.mine));
	assert_int_equal(count_of(pair.mine), 1);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_latch_delete(pair.mine, NULL));
	waiter_join(call, 0);
	end(&pair);
}

static void counters_move_as_they_should(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, 1);
	ASSERT_TIMES_OUT(300, hf_latch_wait(pair.theirs, HF_WAIT(.wait_ms = within_ms)));
	ASSERT_OK(hf_latch_count_down(pair.theirs));
	ASSERT_OK(hf_latch_wait(pair.theirs, NULL));
	hf_stats stats = stats_of(pair.two);
	assert_int_equal(stats.attempts, 3);
	assert_int_equal(stats.waits, 1);
	assert_int_equal(stats.timeouts, 1);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.unknowns, 0);
	end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(latch_counts_down_to_nothing_and_no_further),
		SYNC_STORY(latch_that_does_not_exist_is_open),
		SYNC_STORY(only_the_first_set_counts_until_it_is_open),
		SYNC_STORY(delete_returns_whether_the_latch_existed),
		SYNC_STORY(numbers_and_names_that_make_no_sense_are_refused),
		SYNC_STORY(count_of_nothing_is_open_and_the_largest_is_2147483647),
		SYNC_STORY(number_below_zero_that_a_peer_left_counts_as_open),
		SYNC_STORY(messages_are_those_of_java),
		SYNC_STORY(all_waiters_are_released_together),
		SYNC_STORY(delete_opens_it_for_the_waiters),
		SYNC_STORY(latch_that_is_set_again_stops_later_waiters),
		SYNC_STORY(wait_that_is_long_enough_succeeds),
		SYNC_STORY(try_asks_once_and_listens_to_nothing),
		SYNC_STORY(close_answers_the_waiters_and_leaves_the_latch),
		SYNC_STORY(killed_waiter_leaves_nothing),
		SYNC_STORY(many_count_down_at_once_and_each_counts),
		SYNC_STORY(forked_child_gets_an_error_and_sends_nothing),
		SYNC_STORY(every_verb_has_an_asynchronous_form),
		SYNC_STORY(keys_of_another_sort_are_left_alone),
		SYNC_STORY(forgotten_scripts_are_sent_again),
		SYNC_STORY(counters_move_as_they_should),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
