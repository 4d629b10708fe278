/*
 * The stories of a hold that all kinds of locks share: levels, leases, losses, queries, conflicts.
 */
#include "live/kinds.h"

/* ---- levels ---- */

static int64_t count_of(hf_lock *lock)
{
	int64_t count = -7;
	ASSERT_OK(hf_lock_hold_count(lock, NULL, &count));
	return count;
}

static void levels_are_counted_and_the_last_release_frees(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_lock *again = open_named(duel->one, duel->match->mine, "orders");
	assert_int_equal(count_of(duel->mine), 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	assert_int_equal(count_of(duel->mine), 1);
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(count_of(duel->mine), 2);
	assert_int_equal(count_of(duel->theirs), 0);
	ASSERT_OK(hf_lock_release(duel->mine));
	assert_int_equal(count_of(again), 1);
	assert_int_equal(hf_lock_state(again, NULL), HF_HELD);
	ASSERT_RC(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(again));
	assert_int_equal(count_of(again), 0);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	hf_lock_close(again);
	end(duel);
}

static void second_level_of_a_simple_lock_is_a_deadlock(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_lock *again = open_named(duel->one, duel->match->mine, "orders");
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	uint64_t commands = stats_of(duel->one).commands;
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(duel->mine, NULL), HF_EDEADLOCK);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	ASSERT_RC(hf_lock_acquire(duel->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = 9000)), HF_EDEADLOCK);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 2000);
	assert_int_equal(stats_of(duel->one).commands, commands);
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_HELD);
	assert_int_equal(count_of(duel->mine), 1);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	/* One release frees it, and then it can be taken again. */
	ASSERT_OK(hf_lock_release(again));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(again, NULL));
	/* Another owner of this client waits like any other. */
	struct waiter *waiter = waiter_start(duel->mine, NULL);
	WAIT_UNTIL(stats_of(duel->one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(again));
	waiter_finish(waiter);
	hf_lock_close(again);
	end(duel);
}

/* ---- leases ---- */

static void nested_level_never_shortens_the_lease(void **state)
{
	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 20000)));
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 500)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 15000, 20000);
	ASSERT_BETWEEN(hf_lock_remaining(duel->mine, NULL), 15000, 20000);
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 50000)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	ASSERT_BETWEEN(hf_lock_remaining(duel->mine, NULL), 45000, 50000);
	/* Releasing a level leaves the time as it is. */
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_lock_release(duel->mine));
		ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	}
	ASSERT_OK(hf_lock_release(duel->mine));
	end(duel);
}

static void extend_makes_a_lease_longer_and_never_shorter(void **state)
{
	struct duel *duel = begin(state, 0);
	ASSERT_RC(hf_lock_extend(duel->mine, NULL, 5000), HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 3000)));
	ASSERT_OK(hf_lock_extend(duel->mine, NULL, 40000));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 35000, 40000);
	ASSERT_BETWEEN(hf_lock_remaining(duel->mine, NULL), 35000, 40000);
	ASSERT_OK(hf_lock_extend(duel->mine, NULL, 1000));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 35000, 40000);
	ASSERT_BETWEEN(hf_lock_remaining(duel->mine, NULL), 35000, 40000);
	assert_int_equal(holds_of(duel->one), 1);
	ASSERT_OK(hf_lock_release(duel->mine));
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 60000)));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_RC(hf_lock_extend(duel->mine, NULL, 5000), HF_ELOST);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	raw_ok(live_raw, "FLUSHALL", NULL); /* what a reader has besides the lock */
	end(duel);
}

static void lease_that_expires_lets_the_next_one_in_and_is_reported(void **state)
{
	char uuid[37];
	char detail[400];

	struct duel *duel = begin(state, 0);
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 500)));
	ASSERT_BETWEEN(hf_lock_remaining(duel->mine, NULL), 1, 500);
	ASSERT_OK(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_BETWEEN(test_now_ms() - before, 500, 2100);
	assert_int_equal(hf_lock_remaining(duel->mine, NULL), 0);
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_LOST);
	WAIT_UNTIL(seen_count(&duel->seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(seen_count(&duel->seen, HF_AT_RISK), 1);
	/* With a fair lock that is free again Java calls this a success; here it never is. */
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	snprintf(detail, sizeof detail, "%s", hf_error_detail());
	ASSERT_OK(hf_client_uuid(duel->two, uuid));
	ASSERT_CONTAINS(detail, "500 ms");
	if (!is_half(duel)) {
		ASSERT_CONTAINS(detail, "now held by");
		ASSERT_CONTAINS(detail, uuid);
	}
	assert_int_equal(holds_of(duel->two), 1);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	ASSERT_OK(hf_lock_release(duel->theirs));
	end(duel);
}

/* ---- holds that are lost ---- */

static void lost_lock_is_reported_once_and_can_be_taken_again(void **state)
{
	char identity[128];

	struct duel *duel = begin(state, 750);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	ASSERT_OK(hf_lock_identity(duel->mine, NULL, identity, sizeof identity));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	WAIT_UNTIL(seen_count(&duel->seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(duel->seen.name, "orders");
	assert_string_equal(duel->seen.owner, identity);
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(duel->mine, NULL), 0);
	ASSERT_OK(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	assert_int_equal(holds_of(duel->two), 1);
	ASSERT_OK(hf_lock_release(duel->theirs));
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	uint64_t renewals = stats_of(duel->one).renewals;
	WAIT_UNTIL(stats_of(duel->one).renewals >= renewals + 1, SOON_MS);
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(duel->mine));
	assert_int_equal(stats_of(duel->one).losses, 1);
	/* What a reader had besides the lock expires on its own. */
	WAIT_UNTIL(nothing_is_left(), SOON_MS);
	end(duel);
}

/* ---- queries and counters ---- */

static void queries_return_what_the_server_has(void **state)
{
	char holder[128];
	char expected[64];
	char uuid[37];
	int64_t number = -7;
	int yes = -7;

	struct duel *duel = begin(state, 0);
	hf_lock *observer = open_named(duel->two, duel->match->mine, "orders");
	ASSERT_OK(hf_lock_is_locked(observer, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_ttl(observer, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_holder(observer, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_hold_count(duel->mine, NULL, &number));
	assert_int_equal(number, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *waiter = waiter_start(duel->theirs, NULL);
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	ASSERT_OK(hf_lock_is_locked(observer, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_ttl(observer, &number));
	ASSERT_BETWEEN(number, 28000, 30000);
	ASSERT_OK(hf_lock_is_held(duel->mine, NULL, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(observer, NULL, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_hold_count(duel->mine, NULL, &number));
	assert_int_equal(number, 1);
	ASSERT_OK(hf_lock_hold_count(observer, NULL, &number));
	assert_int_equal(number, 0);
	/* A waiter does not hold it. */
	hf_owner *owner = waiter->options.owner;
	ASSERT_OK(hf_lock_is_held(duel->theirs, owner, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_hold_count(duel->theirs, owner, &number));
	assert_int_equal(number, 0);
	assert_int_equal(hf_lock_state(duel->theirs, owner), HF_FREE);
	ASSERT_OK(hf_client_uuid(duel->one, uuid));
	snprintf(expected, sizeof expected, "%s:", uuid);
	ASSERT_OK(hf_lock_holder(observer, holder, sizeof holder));
	assert_memory_equal(holder, expected, strlen(expected));
	assert_int_equal(strspn(holder + 37, "0123456789"), strlen(holder + 37));
	if (!is_half(duel))
		assert_int_equal(raw_integer(live_raw, "HEXISTS", "orders", holder, NULL), 1);
	ASSERT_OK(hf_lock_holder(observer, holder, 10));
	assert_memory_equal(holder, expected, 9);
	assert_int_equal(holder[9], 0);
	ASSERT_OK(hf_lock_extend(duel->mine, NULL, 60000));
	ASSERT_OK(hf_lock_ttl(observer, &number));
	ASSERT_BETWEEN(number, 45000, 60000);
	ASSERT_OK(hf_lock_release(duel->mine));
	waiter_finish(waiter);
	ASSERT_OK(hf_lock_is_locked(observer, &yes));
	assert_int_equal(yes, 0);
	hf_lock_close(observer);
	end(duel);
}

static void counters_move_as_they_should(void **state)
{
	struct duel *duel = begin(state, 750);
	int levels = nests(duel) ? 2 : 1;
	for (int i = 0; i < levels; i++)
		ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	assert_int_equal(stats_of(duel->one).grants, levels);
	assert_int_equal(stats_of(duel->one).attempts, levels);
	assert_int_equal(stats_of(duel->one).held, 1);
	WAIT_UNTIL(stats_of(duel->one).renewals >= 1, SOON_MS);
	for (int i = 0; i < levels; i++)
		ASSERT_OK(hf_lock_release(duel->mine));
	hf_stats stats = stats_of(duel->one);
	assert_int_equal(stats.releases, levels);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.unknowns, 0);
	assert_int_equal(stats.renewal_failures, 0);
	assert_int_equal(stats.renewal_scripts, stats.renewals);
	end(duel);
}

static void forgotten_scripts_are_sent_again(void **state)
{
	int yes;

	struct duel *duel = begin(state, 750);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	WAIT_UNTIL(stats_of(duel->one).renewals >= 1, SOON_MS);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_is_locked(duel->mine, &yes));
	assert_int_equal(yes, 1);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_release(duel->mine));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_force_release(duel->mine, &yes));
	assert_int_equal(yes, 0);
	assert_int_equal(stats_of(duel->one).losses, 0);
	end(duel);
}

/* ---- asynchronous forms ---- */

/* Queries, and what they return about a hold of this owner. */
static void check_async_queries(struct duel *duel, hf_owner *owner)
{
	struct done done = {0};
	char uuid[37];

	check_async_hold(duel->mine, owner);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	ASSERT_OK(hf_lock_holder_async(duel->mine, note_done, &done));
	await_done(&done, 0);
	assert_true(done.had_text);
	ASSERT_OK(hf_client_uuid(duel->one, uuid));
	assert_memory_equal(done.text, uuid, 36);
	if (!is_half(duel))
		assert_int_equal(raw_integer(live_raw, "HEXISTS", "orders", done.text, NULL), 1);
}

/* Calls of another owner, which gets nothing. */
static void check_async_failures(struct duel *duel, hf_owner *owner)
{
	struct done done = {0};
	hf_cancel *cancel = new_cancel();
	hf_acquire_options *options = HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT);

	ASSERT_OK(hf_lock_acquire_async(duel->theirs, options, note_done, &done));
	expect_done(&done, HF_EBUSY, 0);
	ASSERT_CONTAINS(done.detail, "orders");
	hf_lock *patient = open_patient(duel->two, duel->match->theirs);
	options->wait_ms = 200;
	EXPECT_DONE(hf_lock_acquire_async(patient, options, DONE), HF_ETIMEDOUT, 0);
	EXPECT_DONE(hf_lock_release_async(patient, HF_RELEASE(.owner = owner), DONE), HF_ENOTHELD,
	            0);
	EXPECT_DONE(hf_lock_extend_async(patient, owner, 1000, DONE), HF_ENOTHELD, 0);
	*options = *HF_ACQUIRE(.owner = owner, .cancel = cancel);
	struct done waiting = {0};
	ASSERT_OK(hf_lock_acquire_async(patient, options, note_done, &waiting));
	WAIT_UNTIL(stats_of(duel->two).waiting == 1, SOON_MS);
	hf_cancel_fire(cancel);
	expect_done(&waiting, HF_ECANCELLED, 0);
	WAIT_UNTIL(!key_exists(live_raw, QUEUE), SOON_MS);
	ASSERT_RC(hf_lock_acquire_async(patient, NULL, note_done, &done), HF_EINVAL);
	hf_cancel_free(cancel);
	hf_lock_close(patient);
}

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct done done = {0}, waiting = {0};
	hf_owner *owner = new_owner();

	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire_async(duel->mine, HF_ACQUIRE(.owner = owner), note_done, &done));
	int64_t token = await_done(&done, 0);
	assert_true(duel->match->mine == HF_FENCED ? token > 0 : token == 0);
	check_async_queries(duel, owner);
	check_async_failures(duel, owner);
	uint64_t attempts = stats_of(duel->two).attempts;
	ASSERT_OK(hf_lock_acquire_async(duel->theirs, HF_ACQUIRE(.owner = owner), note_done,
	                                &waiting));
	WAIT_UNTIL(sleeps(duel) && stats_of(duel->two).attempts > attempts, SOON_MS);
	assert_int_equal(atomic_load(&waiting.calls), 0);
	EXPECT_DONE(hf_lock_release_async(duel->mine, HF_RELEASE(.owner = owner), DONE), 0, 0);
	await_done(&waiting, 0);
	assert_int_equal(hf_lock_state(duel->theirs, owner), HF_HELD);
	EXPECT_DONE(hf_lock_force_release_async(duel->theirs, DONE), 0, 1);
	EXPECT_DONE(hf_lock_force_release_async(duel->theirs, DONE), 0, 0);
	ASSERT_RC(hf_lock_release_with(duel->theirs, HF_RELEASE(.owner = owner)), HF_ELOST);
	hf_owner_free(owner);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	raw_ok(live_raw, "FLUSHALL", NULL); /* what a forced reader has besides the lock */
	end(duel);
}

/* ---- keys that are not locks ---- */

static void expect_conflict(hf_client *client, hf_kind kind, const char *why)
{
	char holder[64];
	int64_t number;
	int yes;
	struct raw_reply *before = raw_command(live_raw, "DUMP", "orders", NULL);
	hf_lock *lock = open_named(client, kind, "orders");

	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	if (rc != HF_ECONFLICT)
		fail_msg("kind %d on %s: %d, not a conflict", (int)kind, why, rc);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_force_release(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_is_locked(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_ttl(lock, &number), HF_ECONFLICT);
	ASSERT_RC(hf_lock_holder(lock, holder, sizeof holder), HF_ECONFLICT);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(lock, NULL, 1000), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	struct raw_reply *after = raw_command(live_raw, "DUMP", "orders", NULL);
	assert_int_equal(after->type, RAW_TEXT);
	assert_int_equal(after->length, before->length);
	assert_memory_equal(after->text, before->text, before->length);
	assert_int_equal(key_pttl(live_raw, "orders"), -1);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	raw_reply_free(before);
	raw_reply_free(after);
	hf_lock_close(lock);
}

static void key_that_is_not_a_lock_is_a_conflict_and_stays_untouched(void **state)
{
	const struct match *match = *state;
	hf_client *client = open_client(NULL);

	raw_ok(live_raw, "SET", "orders", "value", NULL);
	expect_conflict(client, match->mine, "a text");
	raw_ok(live_raw, "FLUSHALL", NULL);
	(void)raw_integer(live_raw, "RPUSH", "orders", "a", "b", NULL);
	expect_conflict(client, match->mine, "a list");
	raw_ok(live_raw, "FLUSHALL", NULL);
	(void)raw_integer(live_raw, "HSET", "orders", "colour", "red", NULL);
	expect_conflict(client, match->mine, "a hash of one field");
	(void)raw_integer(live_raw, "HSET", "orders", "size", "7", NULL);
	expect_conflict(client, match->mine, "a hash of two fields");
	ASSERT_OK(hf_client_close(client));
}

static void hash_with_a_mode_that_is_not_a_lock_stays_untouched(void **state)
{
	const struct match *match = *state;
	hf_client *client = open_client(NULL);

	(void)raw_integer(live_raw, "HSET", "orders", "mode", "dark", NULL);
	expect_conflict(client, match->mine, "a hash with only a mode");
	(void)raw_integer(live_raw, "HSET", "orders", "colour", "red", NULL);
	expect_conflict(client, match->mine, "a hash with a mode of its own");
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_NESTING(levels_are_counted_and_the_last_release_frees),
		OF_SIMPLE(second_level_of_a_simple_lock_is_a_deadlock),
		OF_NESTING(nested_level_never_shortens_the_lease),
		OF_EACH(extend_makes_a_lease_longer_and_never_shorter),
		OF_ALL(lease_that_expires_lets_the_next_one_in_and_is_reported),
		OF_EACH(lost_lock_is_reported_once_and_can_be_taken_again),
		OF_EACH(queries_return_what_the_server_has),
		OF_EACH(counters_move_as_they_should),
		OF_EACH(forgotten_scripts_are_sent_again),
		OF_ALL(every_verb_has_an_asynchronous_form),
		OF_EACH(key_that_is_not_a_lock_is_a_conflict_and_stays_untouched),
		OF_EACH(hash_with_a_mode_that_is_not_a_lock_stays_untouched),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
