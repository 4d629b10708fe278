/*
 * The stories of the reentrant lock that the table of kinds does not have: its keys, owners and
 * messages.
 */
#include "live/rivals.h"

#define CHANNEL "redisson_lock__channel:{orders}"

static void lock_is_a_hash_with_the_owner_until_it_is_released(void **state)
{
	char field[128];
	char uuid[37];
	char *rest;
	long long count;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct raw_reply *type = raw_command(live_raw, "TYPE", "orders", NULL);
	assert_string_equal(type->text, "hash");
	raw_reply_free(type);
	read_hold(live_raw, "orders", field, sizeof field, &count);
	assert_int_equal(count, 1);
	ASSERT_OK(hf_client_uuid(client, uuid));
	assert_memory_equal(field, uuid, 36);
	assert_int_equal(field[36], ':');
	assert_true(strtoull(field + 37, &rest, 10) > 0);
	assert_string_equal(rest, "");
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 28000, 30000);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	close_both(lock, client);
}

static void reentering_counts_on_the_server(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_lock *again = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(held_count(live_raw, "orders"), 2);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	hf_lock_close(again);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void every_acquisition_has_a_number_of_its_own(void **state)
{
	char first[128];
	char second[128];
	long long count;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_hold(live_raw, "orders", first, sizeof first, &count);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_hold(live_raw, "orders", second, sizeof second, &count);
	ASSERT_OK(hf_lock_release(lock));
	assert_string_not_equal(first, second);
	close_both(lock, client);
}

static void waiter_of_another_client_is_woken_by_the_message(void **state)
{
	struct rivals *rivals = open_rivals(HF_REENTRANT, NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1 && stats_of(rivals->two).attempts == 2,
	           SOON_MS);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 1500);
	assert_int_equal(stats_of(rivals->two).wakeups, 1);
	assert_int_equal(stats_of(rivals->two).attempts, 3);
	assert_true(is_held_by(live_raw, "orders", rivals->two));
	waiter_finish(waiter);
	close_rivals(rivals);
}

static void lost_lock_can_be_taken_again(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 100)));
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release(lock));
	assert_false(key_exists(live_raw, "orders"));
	close_both(lock, client);
}

static void nested_acquire_of_a_lock_taken_away_reports_the_loss(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_RC(hf_lock_acquire(lock, NULL), HF_ELOST);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	close_both(lock, client);
}

static void another_thread_or_client_cannot_release(void **state)
{
	struct rivals *rivals = open_rivals(HF_REENTRANT, NULL);

	(void)state;
	struct waiter *holder = waiter_start(rivals->mine, HF_ACQUIRE(.wait_ms = 1000));
	waiter_expect(holder, 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	ASSERT_RC(hf_lock_release(rivals->theirs), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(rivals->mine, NULL, 60000), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(rivals->theirs, NULL, 60000), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 28000, 30000);
	waiter_finish(holder);
	close_rivals(rivals);
}

static void *acquire_in_thread(void *lock)
{
	return hf_lock_acquire(lock, NULL) ? "not acquired" : NULL;
}

static void release_in_another_thread_names_the_owner(void **state)
{
	char field[128];
	long long count;
	int64_t token;
	pthread_t thread;
	void *said;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	assert_string_equal(hf_error_detail(), "orders: not held by this owner");
	assert_int_equal(pthread_create(&thread, NULL, acquire_in_thread, lock), 0);
	assert_int_equal(pthread_join(thread, &said), 0);
	assert_null(said);
	read_hold(live_raw, "orders", field, sizeof field, &count);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	ASSERT_CONTAINS(hf_error_detail(), field);
	ASSERT_CONTAINS(hf_error_detail(), "another thread");
	ASSERT_CONTAINS(hf_error_detail(), "hf_owner");
	ASSERT_RC(hf_lock_extend(lock, NULL, 60000), HF_ENOTHELD);
	ASSERT_CONTAINS(hf_error_detail(), field);
	ASSERT_RC(hf_lock_token(lock, NULL, &token), HF_ENOTHELD);
	ASSERT_CONTAINS(hf_error_detail(), field);
	ASSERT_RC(hf_lock_identity(lock, NULL, field, sizeof field), HF_ENOTHELD);
	ASSERT_CONTAINS(hf_error_detail(), "hf_owner");
	close_both(lock, client);
}

static void release_without_the_owner_that_acquired_asks_for_it(void **state)
{
	char identity[128];
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_owner *owner = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.owner = owner)));
	ASSERT_OK(hf_lock_identity(lock, owner, identity, sizeof identity));
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	ASSERT_CONTAINS(hf_error_detail(), identity);
	ASSERT_CONTAINS(hf_error_detail(), "pass the hf_owner");
	ASSERT_OK(hf_lock_release_with(lock, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	close_both(lock, client);
}

static void hold_outlives_the_thread_that_took_it(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 1500));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	struct waiter *holder = waiter_start(lock, NULL);
	waiter_expect(holder, 0);
	hf_owner *owner = holder->options.owner;
	holder->options.owner = NULL;
	waiter_free(holder);
	WAIT_UNTIL(stats_of(client).renewals >= 2, SOON_MS);
	assert_int_equal(hf_lock_state(lock, owner), HF_HELD);
	ASSERT_OK(hf_lock_release_with(lock, HF_RELEASE(.owner = owner)));
	assert_false(key_exists(live_raw, "orders"));
	hf_owner_free(owner);
	close_both(lock, client);
}

/* ---- leases ---- */

static void given_lease_is_not_renewed(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 300));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 700)));
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, SOON_MS);
	assert_int_equal(stats_of(client).renewals, 0);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	close_both(lock, client);
}

static void hold_is_renewed_while_a_level_without_lease_is_open(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 1500));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 700)));
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	WAIT_UNTIL(stats_of(client).renewals >= 2, SOON_MS);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	/* The remaining level has a lease of its own, and expires with it. */
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	close_both(lock, client);
}

static void key_without_an_expiry_has_no_ttl(void **state)
{
	int64_t number = -7;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(raw_integer(live_raw, "PERSIST", "orders", NULL), 1);
	ASSERT_OK(hf_lock_ttl(lock, &number));
	assert_int_equal(number, -1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* ---- keys that are replaced, and bad names ---- */

static void key_replaced_while_held_stays_untouched(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	raw_ok(live_raw, "SET", "orders", "mine", NULL);
	ASSERT_RC(hf_lock_acquire(lock, NULL), HF_ECONFLICT);
	int rc = hf_lock_release(lock);
	assert_true(rc == HF_ECONFLICT || rc == HF_ELOST);
	char *text = raw_text(live_raw, "GET", "orders", NULL);
	assert_string_equal(text, "mine");
	free(text);
	close_both(lock, client);
}

static void bad_names_are_refused_with_the_reason(void **state)
{
	static const char *const bad[] = {"",     "a{b",      "a}b",    "{}x",
	                                  "a\nb", "\xff\xfe", "{a{b}}", "\x7f"};
	char longest[514];
	hf_client *client = open_client(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		hf_lock *lock = NULL;
		ASSERT_RC(hf_lock_open(client, HF_REENTRANT, bad[i], &lock), HF_EINVAL);
		assert_null(lock);
		ASSERT_CONTAINS(hf_error_detail(), "name");
	}
	memset(longest, 'x', sizeof longest);
	longest[513] = 0;
	hf_lock *lock = NULL;
	ASSERT_RC(hf_lock_open(client, HF_REENTRANT, longest, &lock), HF_EINVAL);
	longest[512] = 0;
	lock = open_lock(client, longest);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(held_count(live_raw, longest), 1);
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_RC(hf_lock_open(client, (hf_kind)99, "orders", &lock), HF_EINVAL);
	ASSERT_OK(hf_client_close(client));
}

/* ---- messages ---- */

static void expect_one_message(struct raw *ear, const char *channel)
{
	struct raw_reply *message = raw_next_message(ear, SOON_MS);
	assert_non_null(message);
	assert_string_equal(message->children[1]->text, channel);
	assert_string_equal(message->children[2]->text, "0");
	raw_reply_free(message);
	assert_null(raw_next_message(ear, 50));
}

static void check_message(hf_client *client, const char *name, const char *channel)
{
	struct raw *ear = raw_connect(live_server);
	hf_lock *lock = open_lock(client, name);

	raw_subscribe(ear, channel);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	assert_null(raw_next_message(ear, 50));
	ASSERT_OK(hf_lock_release(lock));
	expect_one_message(ear, channel);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_force_release(lock, NULL));
	expect_one_message(ear, channel);
	hf_lock_close(lock);
	raw_close(ear);
}

static void last_release_publishes_one_zero_on_the_channel_of_the_name(void **state)
{
	hf_client *client = open_client(NULL);

	(void)state;
	check_message(client, "orders", "redisson_lock__channel:{orders}");
	check_message(client, "{orders}:42", "redisson_lock__channel:{orders}:42");
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(lock_is_a_hash_with_the_owner_until_it_is_released),
		LIVE_STORY(reentering_counts_on_the_server),
		LIVE_STORY(every_acquisition_has_a_number_of_its_own),
		LIVE_STORY(waiter_of_another_client_is_woken_by_the_message),
		LIVE_STORY(lost_lock_can_be_taken_again),
		LIVE_STORY(nested_acquire_of_a_lock_taken_away_reports_the_loss),
		LIVE_STORY(another_thread_or_client_cannot_release),
		LIVE_STORY(release_in_another_thread_names_the_owner),
		LIVE_STORY(release_without_the_owner_that_acquired_asks_for_it),
		LIVE_STORY(hold_outlives_the_thread_that_took_it),
		LIVE_STORY(given_lease_is_not_renewed),
		LIVE_STORY(hold_is_renewed_while_a_level_without_lease_is_open),
		LIVE_STORY(key_without_an_expiry_has_no_ttl),
		LIVE_STORY(key_replaced_while_held_stays_untouched),
		LIVE_STORY(bad_names_are_refused_with_the_reason),
		LIVE_STORY(last_release_publishes_one_zero_on_the_channel_of_the_name),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
