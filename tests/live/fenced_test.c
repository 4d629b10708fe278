/*
 * The stories of tokens: they grow with every grant, whichever client is granted the lock and
 * whatever its kind.
 */
#include "live/rivals.h"

#include "support/kinds.h"
#include "support/proxy.h"

#define TOKEN_KEY "redisson_lock_token:{orders}"
#define CLIENTS   3
#define ROUNDS    20

/* All kinds that can have a token. */
static const hf_kind kinds[] = {HF_FENCED, HF_REENTRANT, HF_FAIR,       HF_WRITE,
                                HF_SPIN,   HF_SIMPLE,    HF_SIMPLE_FAIR};
#define KINDS (sizeof kinds / sizeof *kinds)

static int64_t token_of(hf_lock *lock)
{
	int64_t token = -7;
	ASSERT_OK(hf_lock_token(lock, NULL, &token));
	return token;
}

static int64_t last_token(hf_lock *lock)
{
	int64_t token = -7;
	ASSERT_OK(hf_lock_last_token(lock, &token));
	return token;
}

static int64_t stored_token(void)
{
	char *text = raw_text(live_raw, "GET", TOKEN_KEY, NULL);
	assert_non_null(text);
	int64_t token = atoll(text);
	free(text);
	return token;
}

/* Takes the lock with a token, gives it up, and returns the token. */
static int64_t take_one(hf_lock *lock)
{
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.token = 1, .wait_ms = 5000)));
	int64_t token = token_of(lock);
	ASSERT_OK(hf_lock_release(lock));
	return token;
}

/* ---- growing ---- */

static void grant_has_a_token_that_stays_when_the_lock_is_gone(void **state)
{
	int64_t token = -7;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_named(client, HF_FENCED, "orders");

	(void)state;
	assert_int_equal(last_token(lock), 0);
	ASSERT_RC(hf_lock_token(lock, NULL, &token), HF_ENOTHELD);
	assert_int_equal(token, -7);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	token = token_of(lock);
	assert_true(token > 0);
	assert_int_equal(stored_token(), token);
	assert_int_equal(last_token(lock), token);
	assert_int_equal(key_pttl(live_raw, TOKEN_KEY), -1);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 20000, 30000);
	ASSERT_OK(hf_lock_release(lock));
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(stored_token(), token);
	assert_int_equal(last_token(lock), token);
	ASSERT_RC(hf_lock_token(lock, NULL, &token), HF_ENOTHELD);
	close_both(lock, client);
}

static void token_grows_with_every_grant_across_clients_and_kinds(void **state)
{
	hf_client *client[CLIENTS];
	int64_t before = 0;

	(void)state;
	for (int i = 0; i < CLIENTS; i++)
		client[i] = open_client(NULL);
	for (size_t i = 0; i < 3 * KINDS; i++) {
		hf_lock *lock = open_named(client[i % CLIENTS], kinds[i % KINDS], "orders");
		int64_t token = take_one(lock);
		if (token <= before)
			fail_msg("%lld after %lld, kind %d", (long long)token, (long long)before,
			         (int)kinds[i % KINDS]);
		assert_int_equal(last_token(lock), token);
		assert_int_equal(key_pttl(live_raw, TOKEN_KEY), -1);
		before = token;
		hf_lock_close(lock);
	}
	for (int i = 0; i < CLIENTS; i++)
		ASSERT_OK(hf_client_close(client[i]));
}

static void levels_share_the_token_of_the_outermost(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 900));

	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		hf_lock *lock = open_named(client, kinds[i], "orders");
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.token = 1)));
		int64_t token = token_of(lock);
		assert_true(token > 0);
		if (kind_nests(kinds[i])) {
			ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.token = 1)));
			assert_int_equal(token_of(lock), token);
			ASSERT_OK(hf_lock_acquire(lock, NULL));
			assert_int_equal(token_of(lock), token);
			assert_int_equal(stored_token(), token);
			ASSERT_OK(hf_lock_release(lock));
			ASSERT_OK(hf_lock_release(lock));
		}
		assert_int_equal(token_of(lock), token);
		ASSERT_OK(hf_lock_extend(lock, NULL, 5000));
		assert_int_equal(token_of(lock), token);
		assert_int_equal(stored_token(), token);
		ASSERT_OK(hf_lock_release(lock));
		assert_int_equal(stored_token(), token);
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

static void renewal_changes_no_token(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 900));
	hf_lock *lock = open_named(client, HF_FENCED, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	int64_t token = token_of(lock);
	WAIT_UNTIL(stats_of(client).renewals >= 2, SOON_MS);
	assert_int_equal(token_of(lock), token);
	assert_int_equal(stored_token(), token);
	assert_int_equal(key_pttl(live_raw, TOKEN_KEY), -1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void kinds_have_a_token_only_where_one_is_asked_for(void **state)
{
	hf_client *client = open_client(NULL);

	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		if (kinds[i] == HF_FENCED)
			continue;
		hf_lock *lock = open_named(client, kinds[i], "orders");
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		assert_int_equal(token_of(lock), 0);
		ASSERT_OK(hf_lock_release(lock));
		assert_int_equal(last_token(lock), 0);
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
		hf_lock_close(lock);
	}
	/* A level that wants a token of a hold without one gets none, not even an old one. */
	hf_lock *fenced = open_named(client, HF_FENCED, "orders");
	int64_t old = take_one(fenced);
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.token = 1)));
	assert_int_equal(token_of(lock), 0);
	assert_int_equal(stored_token(), old);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(fenced);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void token_belongs_to_its_owner(void **state)
{
	int64_t token = -7;
	struct rivals *rivals = open_rivals(HF_FENCED, NULL);
	hf_owner *owner = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.owner = owner)));
	ASSERT_OK(hf_lock_token(rivals->mine, owner, &token));
	assert_true(token > 0);
	assert_int_equal(last_token(rivals->theirs), token);
	ASSERT_RC(hf_lock_token(rivals->mine, NULL, &token), HF_ENOTHELD);
	ASSERT_RC(hf_lock_token(rivals->theirs, NULL, &token), HF_ENOTHELD);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	/* An ask that finds the lock busy uses no token. */
	assert_int_equal(stored_token(), token);
	ASSERT_OK(hf_lock_release_with(rivals->mine, HF_RELEASE(.owner = owner)));
	waiter_expect(waiter, 0);
	int64_t next = -7;
	ASSERT_OK(hf_lock_token(rivals->theirs, waiter->options.owner, &next));
	assert_true(next > token);
	waiter_finish(waiter);
	hf_owner_free(owner);
	close_rivals(rivals);
}

/* ---- after losses ---- */

static void token_grows_after_the_lock_was_deleted_or_forced_or_has_ended(void **state)
{
	int64_t token = -7;
	struct rivals *rivals = open_rivals(HF_FENCED, NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	int64_t first = token_of(rivals->mine);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	int64_t second = take_one(rivals->theirs);
	assert_true(second > first);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	int64_t third = token_of(rivals->mine);
	assert_true(third > second);
	ASSERT_OK(hf_lock_force_release(rivals->mine, NULL));
	ASSERT_RC(hf_lock_token(rivals->mine, NULL, &token), HF_ENOTHELD);
	int64_t fourth = take_one(rivals->theirs);
	assert_true(fourth > third);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 100)));
	int64_t fifth = token_of(rivals->mine);
	assert_true(fifth > fourth);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_token(rivals->mine, NULL, &token), HF_ENOTHELD);
	assert_true(take_one(rivals->theirs) > fifth);
	close_rivals(rivals);
}

static void token_grows_also_where_the_server_has_lost_the_last_one(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_named(client, HF_FENCED, "orders");
	int64_t before = 0;

	(void)state;
	for (int i = 0; i < 5; i++) {
		int64_t token = take_one(lock);
		assert_true(token > before);
		before = token;
		raw_ok(live_raw, "FLUSHALL", NULL);
	}
	assert_int_equal(last_token(lock), 0);
	close_both(lock, client);
}

static void repeat_after_a_lost_answer_is_the_same_grant(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), HF_CLIENT(.watchdog_ms = 9000));
	hf_lock *lock = open_named(client, HF_FENCED, "orders");

	(void)state;
	int64_t before = take_one(lock);
	proxy_drop_replies(proxy, true);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	int64_t granted = stored_token();
	assert_true(granted > before);
	proxy_drop_replies(proxy, false);
	proxy_cut(proxy);
	waiter_expect(waiter, 0);
	int64_t token = -7;
	ASSERT_OK(hf_lock_token(lock, waiter->options.owner, &token));
	assert_int_equal(token, granted);
	assert_int_equal(stored_token(), granted);
	waiter_finish(waiter);
	close_both(lock, client);
	proxy_stop(proxy);
}

/* ---- what is stored ---- */

/* Sets what is stored and checks the token of the next grant, for each kind. */
static void expect_next(const char *stored, int64_t next)
{
	hf_client *client = open_client(NULL);
	for (size_t i = 0; i < KINDS; i++) {
		hf_lock *lock = open_named(client, kinds[i], "orders");
		raw_ok(live_raw, "SET", TOKEN_KEY, stored, NULL);
		assert_int_equal(last_token(lock), atoll(stored));
		int64_t token = take_one(lock);
		if (token != next)
			fail_msg("kind %d: %lld after %s", (int)kinds[i], (long long)token, stored);
		assert_int_equal(stored_token(), next);
		assert_int_equal(take_one(lock), next + 1);
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

static void stored_number_of_16_digits_is_raised_by_exactly_one(void **state)
{
	(void)state;
	expect_next("8000000000000001", INT64_C(8000000000000002));
	expect_next("9007199254740990", INT64_C(9007199254740991));
}

static void stored_number_past_the_exact_doubles_is_raised_by_exactly_one(void **state)
{
	(void)state;
	expect_next("9007199254740993", INT64_C(9007199254740994));
	expect_next("9999999999999998", INT64_C(9999999999999999));
	expect_next("123456789012345678", INT64_C(123456789012345679));
}

static void numbers_as_java_counts_them_are_overtaken(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_named(client, HF_FENCED, "orders");

	(void)state;
	raw_ok(live_raw, "SET", TOKEN_KEY, "41", NULL);
	assert_int_equal(last_token(lock), 41);
	int64_t token = take_one(lock);
	assert_true(token > 41);
	/* Java counts on from there. */
	assert_int_equal(raw_integer(live_raw, "INCR", TOKEN_KEY, NULL), token + 1);
	assert_int_equal(last_token(lock), token + 1);
	assert_true(take_one(lock) > token + 1);
	close_both(lock, client);
}

static void end_that_somebody_gave_the_token_is_taken_off(void **state)
{
	hf_client *client = open_client(NULL);

	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		hf_lock *lock = open_named(client, kinds[i], "orders");
		(void)take_one(lock);
		assert_int_equal(raw_integer(live_raw, "PEXPIRE", TOKEN_KEY, "60000", NULL), 1);
		(void)take_one(lock);
		assert_int_equal(key_pttl(live_raw, TOKEN_KEY), -1);
		/* Also if it was far in the future. */
		raw_ok(live_raw, "SET", TOKEN_KEY, "8000000000000001", "PX", "60000", NULL);
		(void)take_one(lock);
		assert_int_equal(key_pttl(live_raw, TOKEN_KEY), -1);
		raw_ok(live_raw, "FLUSHALL", NULL);
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

static void token_key_of_another_type_is_a_conflict_and_takes_no_lock(void **state)
{
	int64_t token;
	hf_client *client = open_client(NULL);

	(void)state;
	(void)raw_integer(live_raw, "RPUSH", TOKEN_KEY, "a", NULL);
	for (size_t i = 0; i < KINDS; i++) {
		hf_lock *lock = open_named(client, kinds[i], "orders");
		ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.token = 1, .wait_ms = 2000)),
		          HF_ECONFLICT);
		ASSERT_RC(hf_lock_last_token(lock, &token), HF_ECONFLICT);
		assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
		assert_int_equal(raw_integer(live_raw, "LLEN", TOKEN_KEY, NULL), 1);
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

static void token_key_with_a_text_is_a_conflict_and_stays(void **state)
{
	int64_t token;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_named(client, HF_FENCED, "orders");

	(void)state;
	raw_ok(live_raw, "SET", TOKEN_KEY, "a text", NULL);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_last_token(lock, &token), HF_ECONFLICT);
	char *text = raw_text(live_raw, "GET", TOKEN_KEY, NULL);
	assert_string_equal(text, "a text");
	free(text);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	close_both(lock, client);
}

/* ---- asynchronous forms, crowds ---- */

static void asynchronous_acquire_returns_the_token(void **state)
{
	struct done done = {0};
	hf_client *client = open_client(NULL);
	hf_owner *owner = new_owner();

	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		int64_t token = -7;
		hf_lock *lock = open_named(client, kinds[i], "orders");
		ASSERT_OK(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner, .token = 1),
		                                note_done, &done));
		int64_t returned = await_done(&done, 0);
		ASSERT_OK(hf_lock_token(lock, owner, &token));
		assert_int_equal(returned, token);
		assert_int_equal(stored_token(), token);
		ASSERT_OK(hf_lock_last_token_async(lock, note_done, &done));
		assert_int_equal(await_done(&done, 0), token);
		ASSERT_OK(
			hf_lock_release_async(lock, HF_RELEASE(.owner = owner), note_done, &done));
		await_done(&done, 0);
		hf_lock_close(lock);
	}
	hf_owner_free(owner);
	ASSERT_OK(hf_client_close(client));
}

/* What the lock protects: it accepts only writes with a greater token than all before. */
struct store {
	hf_lock *lock[CLIENTS];
	_Atomic int64_t latest;
	atomic_int next;
	atomic_int refused;
	atomic_int failed;
};

static void *write_with_token(void *arg)
{
	struct store *store = arg;
	hf_lock *lock = store->lock[atomic_fetch_add(&store->next, 1) % CLIENTS];
	for (int i = 0; i < ROUNDS; i++) {
		int64_t token = 0;
		if (hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000, .token = 1)) ||
		    hf_lock_token(lock, NULL, &token))
			atomic_fetch_add(&store->failed, 1);
		if (token <= atomic_exchange(&store->latest, token))
			atomic_fetch_add(&store->refused, 1);
		if (hf_lock_release(lock))
			atomic_fetch_add(&store->failed, 1);
	}
	return NULL;
}

static void crowd_of_several_kinds_writes_with_growing_tokens(void **state)
{
	const hf_kind kind[CLIENTS] = {HF_FENCED, HF_REENTRANT, HF_SIMPLE};
	struct store store = {.latest = 0};
	hf_client *client[CLIENTS];
	pthread_t thread[2 * CLIENTS];

	(void)state;
	for (int i = 0; i < CLIENTS; i++) {
		client[i] = open_client(NULL);
		store.lock[i] = open_named(client[i], kind[i], "orders");
	}
	for (int i = 0; i < 2 * CLIENTS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_with_token, &store), 0);
	for (int i = 0; i < 2 * CLIENTS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(atomic_load(&store.failed), 0);
	assert_int_equal(atomic_load(&store.refused), 0);
	assert_int_equal(stored_token(), atomic_load(&store.latest));
	for (int i = 0; i < CLIENTS; i++) {
		close_both(store.lock[i], client[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(grant_has_a_token_that_stays_when_the_lock_is_gone),
		LIVE_STORY(token_grows_with_every_grant_across_clients_and_kinds),
		LIVE_STORY(levels_share_the_token_of_the_outermost),
		LIVE_STORY(renewal_changes_no_token),
		LIVE_STORY(kinds_have_a_token_only_where_one_is_asked_for),
		LIVE_STORY(token_belongs_to_its_owner),
		LIVE_STORY(token_grows_after_the_lock_was_deleted_or_forced_or_has_ended),
		LIVE_STORY(token_grows_also_where_the_server_has_lost_the_last_one),
		LIVE_STORY(repeat_after_a_lost_answer_is_the_same_grant),
		LIVE_STORY(stored_number_of_16_digits_is_raised_by_exactly_one),
		LIVE_STORY(stored_number_past_the_exact_doubles_is_raised_by_exactly_one),
		LIVE_STORY(numbers_as_java_counts_them_are_overtaken),
		LIVE_STORY(end_that_somebody_gave_the_token_is_taken_off),
		LIVE_STORY(token_key_of_another_type_is_a_conflict_and_takes_no_lock),
		LIVE_STORY(token_key_with_a_text_is_a_conflict_and_stays),
		LIVE_STORY(asynchronous_acquire_returns_the_token),
		LIVE_STORY(crowd_of_several_kinds_writes_with_growing_tokens),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
