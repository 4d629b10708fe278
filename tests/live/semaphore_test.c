/* The stories of semaphores: permits that any client can take and give. */
#include "live/semaphore.h"

#include "support/process.h"

static int64_t available(hf_semaphore *semaphore)
{
	int64_t permits = NO_NUMBER;
	ASSERT_OK(hf_semaphore_available(semaphore, &permits));
	return permits;
}

/* ---- counting ---- */

static void semaphore_is_a_number_that_anybody_changes(void **state)
{
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 10, 0, &done));
	assert_int_equal(done, 1);
	assert_int_equal(number_at(live_raw, "orders"), 10);
	assert_int_equal(key_pttl(live_raw, "orders"), -1);
	ASSERT_OK(hf_semaphore_acquire(pair.mine, 3, NULL));
	assert_int_equal(number_at(live_raw, "orders"), 7);
	ASSERT_OK(hf_semaphore_acquire(pair.theirs, 7, HF_WAIT(.wait_ms = 1000)));
	assert_int_equal(available(pair.mine), 0);
	/* A client that gives permits need not have taken them. */
	ASSERT_OK(hf_semaphore_release(pair.mine, 9));
	assert_int_equal(available(pair.theirs), 9);
	assert_int_equal(count_keys(live_raw), 1);
	end(&pair);
	assert_int_equal(number_at(live_raw, "orders"), 9);
}

static void only_the_first_set_counts_and_its_time_may_end(void **state)
{
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 10, 0, NULL));
	ASSERT_OK(hf_semaphore_try_set(pair.theirs, 5, 300, &done));
	assert_int_equal(done, 0);
	assert_int_equal(number_at(live_raw, "orders"), 10);
	assert_int_equal(key_pttl(live_raw, "orders"), -1);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 15, 400, &done));
	assert_int_equal(done, 1);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, 400);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	assert_int_equal(available(pair.mine), 0);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 0, 0, &done));
	assert_int_equal(done, 1);
	assert_int_equal(number_at(live_raw, "orders"), 0);
	ASSERT_RC(take(pair.mine, 1), HF_EBUSY);
	end(&pair);
}

static void release_makes_the_semaphore(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	assert_int_equal(available(pair.mine), 0);
	ASSERT_RC(take(pair.mine, 1), HF_EBUSY);
	assert_int_equal(count_keys(live_raw), 0);
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	assert_int_equal(available(pair.mine), 1);
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	ASSERT_OK(hf_semaphore_acquire(pair.theirs, 2, NULL));
	assert_int_equal(number_at(live_raw, "orders"), 0);
	end(&pair);
}

static void release_if_exists_makes_nothing(void **state)
{
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_release_if_exists(pair.mine, 2, &done));
	assert_int_equal(done, 0);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 1, 0, NULL));
	ASSERT_OK(hf_semaphore_release_if_exists(pair.mine, 2, &done));
	assert_int_equal(done, 1);
	ASSERT_OK(hf_semaphore_release_if_exists(pair.mine, 1, NULL));
	assert_int_equal(number_at(live_raw, "orders"), 4);
	end(&pair);
}

static void adding_goes_either_way_and_ends_the_time(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 10, 60000, NULL));
	ASSERT_OK(hf_semaphore_acquire(pair.mine, 1, NULL));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, 60000);
	ASSERT_OK(hf_semaphore_add(pair.mine, 5));
	assert_int_equal(available(pair.mine), 14);
	assert_int_equal(key_pttl(live_raw, "orders"), -1);
	ASSERT_OK(hf_semaphore_add(pair.mine, -19));
	assert_int_equal(available(pair.theirs), -5);
	ASSERT_OK(hf_semaphore_release(pair.mine, 5));
	ASSERT_RC(take(pair.mine, 1), HF_EBUSY);
	ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	ASSERT_OK(take(pair.mine, 1));
	end(&pair);
}

static void drain_takes_all_there_are(void **state)
{
	struct pair pair;
	int64_t permits = -7;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_drain(pair.mine, &permits));
	assert_int_equal(permits, 0);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 10, 60000, NULL));
	ASSERT_OK(hf_semaphore_acquire(pair.mine, 3, NULL));
	ASSERT_OK(hf_semaphore_drain(pair.theirs, &permits));
	assert_int_equal(permits, 7);
	assert_int_equal(number_at(live_raw, "orders"), 0);
	assert_int_equal(key_pttl(live_raw, "orders"), -1);
	ASSERT_OK(hf_semaphore_drain(pair.mine, NULL));
	ASSERT_OK(hf_semaphore_add(pair.mine, -2));
	ASSERT_OK(hf_semaphore_drain(pair.mine, &permits));
	assert_int_equal(permits, -2);
	assert_int_equal(number_at(live_raw, "orders"), 0);
	end(&pair);
}

/* ---- numbers at the edges ---- */

static void none_at_all_succeeds_and_sends_nothing(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_acquire(pair.mine, 0, NULL));
	ASSERT_OK(take(pair.mine, 0));
	ASSERT_OK(hf_semaphore_release(pair.mine, 0));
	EXPECT_DONE(hf_semaphore_acquire_async(pair.mine, 0, NULL, DONE), 0, 0);
	EXPECT_DONE(hf_semaphore_release_async(pair.mine, 0, DONE), 0, 0);
	assert_int_equal(stats_of(pair.one).commands, 0);
	assert_int_equal(keys_besides_records(live_raw), 0);
	end(&pair);
}

static void numbers_that_make_no_sense_are_refused(void **state)
{
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair);
	ASSERT_RC(hf_semaphore_acquire(pair.mine, -1, NULL), HF_EINVAL);
	ASSERT_RC(hf_semaphore_acquire(pair.mine, MOST + 1, NULL), HF_EINVAL);
	ASSERT_RC(hf_semaphore_acquire(pair.mine, 1, HF_WAIT(.wait_ms = -2)), HF_EINVAL);
	ASSERT_RC(hf_semaphore_release(pair.mine, -1), HF_EINVAL);
	ASSERT_RC(hf_semaphore_release(pair.mine, MOST + 1), HF_EINVAL);
	ASSERT_RC(hf_semaphore_release_if_exists(pair.mine, -1, &done), HF_EINVAL);
	ASSERT_RC(hf_semaphore_try_set(pair.mine, MOST + 1, 0, &done), HF_EINVAL);
	ASSERT_RC(hf_semaphore_try_set(pair.mine, 1, -1, &done), HF_EINVAL);
	ASSERT_RC(hf_semaphore_add(pair.mine, MOST + 1), HF_EINVAL);
	ASSERT_RC(hf_semaphore_add(pair.mine, -MOST - 2), HF_EINVAL);
	ASSERT_RC(hf_semaphore_acquire_async(pair.mine, -1, NULL, fail_on_done, NULL), HF_EINVAL);
	ASSERT_RC(hf_semaphore_acquire_async(pair.mine, 1, NULL, NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_semaphore_acquire(NULL, 1, NULL), HF_EINVAL);
	ASSERT_RC(hf_semaphore_release(NULL, 1), HF_EINVAL);
	assert_int_equal(done, -7);
	assert_int_equal(stats_of(pair.one).commands, 0);
	hf_semaphore_close(NULL);
	end(&pair);
}

static void semaphore_is_not_made_with_less_than_nothing(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_RC(hf_semaphore_try_set(pair.mine, -1, 0, NULL), HF_EINVAL);
	assert_false(key_exists(live_raw, "orders"));
	end(&pair);
}

static void names_that_make_no_sense_are_refused(void **state)
{
	struct pair pair;
	hf_semaphore *semaphore = NULL;

	(void)state;
	begin(&pair);
	ASSERT_RC(hf_semaphore_open(pair.one, "", &semaphore), HF_EINVAL);
	ASSERT_RC(hf_semaphore_open(pair.one, "a{b", &semaphore), HF_EINVAL);
	ASSERT_RC(hf_semaphore_open(pair.one, NULL, &semaphore), HF_EINVAL);
	ASSERT_RC(hf_semaphore_open(NULL, "orders", &semaphore), HF_EINVAL);
	assert_null(semaphore);
	end(&pair);
}

static void most_permits_are_2147483647_at_a_time(void **state)
{
	struct pair pair;
	int64_t permits = 0;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, MOST, 0, NULL));
	ASSERT_OK(take(pair.mine, MOST));
	ASSERT_RC(take(pair.mine, 1), HF_EBUSY);
	ASSERT_OK(hf_semaphore_release(pair.mine, MOST));
	ASSERT_OK(hf_semaphore_release(pair.mine, MOST));
	assert_int_equal(available(pair.mine), 2 * MOST);
	ASSERT_OK(hf_semaphore_drain(pair.mine, &permits));
	assert_int_equal(permits, 2 * MOST);
	ASSERT_OK(hf_semaphore_add(pair.mine, -MOST - 1));
	assert_int_equal(available(pair.mine), -MOST - 1);
	end(&pair);
}

/* ---- the rest ---- */

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	EXPECT_DONE(hf_semaphore_try_set_async(pair.mine, 5, 0, DONE), 0, 1);
	EXPECT_DONE(hf_semaphore_try_set_async(pair.mine, 5, 0, DONE), 0, 0);
	EXPECT_DONE(hf_semaphore_acquire_async(pair.mine, 2, NULL, DONE), 0, 0);
	EXPECT_DONE(hf_semaphore_available_async(pair.mine, DONE), 0, 3);
	struct done *done = check_alloc(sizeof(*done));
	ASSERT_OK(hf_semaphore_release_async(pair.mine, 1, note_done, done));
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	assert_int_equal(done->result, 0);
	free(done);
	EXPECT_DONE(hf_semaphore_release_if_exists_async(pair.mine, 1, DONE), 0, 1);
	assert_int_equal(number_at(live_raw, "orders"), 5);
	done = check_alloc(sizeof(*done));
	ASSERT_OK(hf_semaphore_add_async(pair.mine, -1, note_done, done));
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	assert_int_equal(done->result, 0);
	free(done);
	EXPECT_DONE(hf_semaphore_drain_async(pair.mine, DONE), 0, 4);
	EXPECT_DONE(hf_semaphore_acquire_async(pair.mine, 1, HF_WAIT(.wait_ms = HF_NOWAIT), DONE),
	            HF_EBUSY, 0);
	EXPECT_DONE(hf_semaphore_acquire_async(pair.mine, 1, HF_WAIT(.wait_ms = 300), DONE),
	            HF_ETIMEDOUT, 0);
	done = check_alloc(sizeof(*done));
	ASSERT_OK(hf_semaphore_acquire_async(pair.mine, 1, NULL, note_done, done));
	WAIT_UNTIL(stats_of(pair.one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_semaphore_release(pair.theirs, 1));
	expect_done(done, 0, 0);
	free(done);
	end(&pair);
}

static void keys_of_another_sort_are_left_alone(void **state)
{
	struct pair pair;
	int64_t permits;

	(void)state;
	begin(&pair);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			raw_ok(live_raw, "SET", "orders", "many", NULL);
		else
			assert_int_equal(raw_integer(live_raw, "HSET", "orders", "a", "1", NULL),
			                 1);
		ASSERT_RC(hf_semaphore_acquire(pair.mine, 1, NULL), HF_ECONFLICT);
		ASSERT_CONTAINS(hf_error_detail(), "orders");
		ASSERT_RC(hf_semaphore_release(pair.mine, 1), HF_ECONFLICT);
		ASSERT_RC(hf_semaphore_release_if_exists(pair.mine, 1, NULL), HF_ECONFLICT);
		ASSERT_RC(hf_semaphore_add(pair.mine, 1), HF_ECONFLICT);
		ASSERT_RC(hf_semaphore_drain(pair.mine, &permits), HF_ECONFLICT);
		ASSERT_RC(hf_semaphore_available(pair.mine, &permits), HF_ECONFLICT);
		int done = -7;
		ASSERT_OK(hf_semaphore_try_set(pair.mine, 1, 0, &done));
		assert_int_equal(done, 0);
		char *text = i == 0 ? raw_text(live_raw, "GET", "orders", NULL)
		                    : raw_text(live_raw, "HGET", "orders", "a", NULL);
		assert_string_equal(text, i == 0 ? "many" : "1");
		free(text);
		assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	}
	assert_int_equal(keys_besides_records(live_raw), 0);
	end(&pair);
}

static void forgotten_scripts_are_sent_again(void **state)
{
	struct pair pair;
	int64_t permits = 0;
	int done = 0;

	(void)state;
	begin(&pair);
	struct waiter *call = sleeper(&pair, 2);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 1, 0, &done));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_semaphore_release(pair.mine, 2));
	waiter_expect(call, 0);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_semaphore_add(pair.mine, 2));
	ASSERT_OK(hf_semaphore_available(pair.mine, &permits));
	assert_int_equal(permits, 3);
	ASSERT_OK(hf_semaphore_drain(pair.mine, &permits));
	assert_int_equal(permits, 3);
	waiter_free(call);
	end(&pair);
}

static void counters_move_as_they_should(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 1, 0, NULL));
	ASSERT_OK(hf_semaphore_acquire(pair.mine, 1, NULL));
	ASSERT_TIMES_OUT(300, hf_semaphore_acquire(pair.mine, 1, HF_WAIT(.wait_ms = within_ms)));
	hf_stats stats = stats_of(pair.one);
	assert_int_equal(stats.grants, 1);
	assert_int_equal(stats.attempts, 3);
	assert_int_equal(stats.waits, 1);
	assert_int_equal(stats.timeouts, 1);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.waiting, 0);
	assert_int_equal(stats.unknowns, 0);
	end(&pair);
}

/*
 * A request is remembered for a while, so that a repeat can be recognised; the memory is bounded.
 */
static void records_of_requests_expire(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	for (int i = 0; i < 1300; i++)
		ASSERT_OK(hf_semaphore_release(pair.mine, 1));
	assert_int_equal(number_at(live_raw, "orders"), 1300);
	struct raw_reply *reply = raw_command(live_raw, "KEYS", "holdfast_request:*", NULL);
	ASSERT_BETWEEN(reply->length, 1, 1024);
	for (size_t i = 0; i < reply->length; i += 100)
		ASSERT_BETWEEN(key_pttl(live_raw, reply->children[i]->text), 1, 20000);
	raw_reply_free(reply);
	end(&pair);
}

static struct pair forked;

static void use_inherited_handles(int pipe_fd)
{
	hf_semaphore *semaphore = NULL;
	int64_t permits;
	int done;

	EXPECT_FORKED(hf_semaphore_open(forked.one, "other", &semaphore));
	EXPECT_FORKED(hf_semaphore_acquire(forked.mine, 1, NULL));
	EXPECT_FORKED(hf_semaphore_acquire(forked.mine, 0, NULL));
	EXPECT_FORKED(hf_semaphore_release(forked.mine, 1));
	EXPECT_FORKED(hf_semaphore_release_if_exists(forked.mine, 1, &done));
	EXPECT_FORKED(hf_semaphore_try_set(forked.mine, 1, 0, &done));
	EXPECT_FORKED(hf_semaphore_add(forked.mine, 1));
	EXPECT_FORKED(hf_semaphore_drain(forked.mine, &permits));
	EXPECT_FORKED(hf_semaphore_available(forked.mine, &permits));
	EXPECT_FORKED(hf_semaphore_release_async(forked.mine, 1, fail_on_done, NULL));
	hf_semaphore_close(forked.mine);
	dprintf(pipe_fd, "all forked");
	_exit(0);
}

static void forked_child_gets_an_error_and_sends_nothing(void **state)
{
	char output[256];

	(void)state;
	begin(&forked);
	ASSERT_OK(hf_semaphore_try_set(forked.mine, 1, 0, NULL));
	long long before = info_number(live_raw, "stats", "total_commands_processed");
	int status = process_fork(use_inherited_handles, output, sizeof output);
	assert_string_equal(output, "all forked");
	assert_int_equal(status, 0);
	assert_int_equal(info_number(live_raw, "stats", "total_commands_processed"), before + 1);
	ASSERT_OK(take(forked.mine, 1));
	end(&forked);
}

/* ---- a semaphore that nobody has set ---- */

#define NOT_SET "the number of permits was not set"

static void wait_for_a_semaphore_that_was_never_set_says_so(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	ASSERT_RC(take(pair.mine, 1), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), NOT_SET);
	ASSERT_RC(hf_semaphore_acquire(pair.mine, 1, HF_WAIT(.wait_ms = 500)), HF_ETIMEDOUT);
	ASSERT_CONTAINS(hf_error_detail(), NOT_SET);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	ASSERT_OK(hf_semaphore_try_set(pair.mine, 1, 0, NULL));
	ASSERT_OK(take(pair.mine, 1));
	ASSERT_RC(hf_semaphore_acquire(pair.mine, 1, HF_WAIT(.wait_ms = 500)), HF_ETIMEDOUT);
	assert_null(strstr(hf_error_detail(), NOT_SET));
	end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(semaphore_is_a_number_that_anybody_changes),
		SYNC_STORY(only_the_first_set_counts_and_its_time_may_end),
		SYNC_STORY(release_makes_the_semaphore),
		SYNC_STORY(release_if_exists_makes_nothing),
		SYNC_STORY(adding_goes_either_way_and_ends_the_time),
		SYNC_STORY(drain_takes_all_there_are),
		SYNC_STORY(none_at_all_succeeds_and_sends_nothing),
		SYNC_STORY(numbers_that_make_no_sense_are_refused),
		SYNC_STORY(semaphore_is_not_made_with_less_than_nothing),
		SYNC_STORY(names_that_make_no_sense_are_refused),
		SYNC_STORY(most_permits_are_2147483647_at_a_time),
		SYNC_STORY(every_verb_has_an_asynchronous_form),
		SYNC_STORY(keys_of_another_sort_are_left_alone),
		SYNC_STORY(forgotten_scripts_are_sent_again),
		SYNC_STORY(counters_move_as_they_should),
		SYNC_STORY(records_of_requests_expire),
		SYNC_STORY(forked_child_gets_an_error_and_sends_nothing),
		SYNC_STORY(wait_for_a_semaphore_that_was_never_set_says_so),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
