/* The stories of the reentrant lock: taking it, waiting for it, and giving it up. */
#include "live/live.h"

#include "support/proxy.h"

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
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
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
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void waiter_of_another_client_is_woken_by_the_message(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1 && stats_of(two).attempts == 2, SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release(mine));
	waiter_expect(waiter, 0);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_BETWEEN(waiter->ended_at - released_at, 0, 1500);
	assert_int_equal(stats_of(two).wakeups, 1);
	assert_int_equal(stats_of(two).attempts, 3);
	assert_true(is_held_by(live_raw, "orders", two));
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void two_owners_of_one_client_exclude_each_other(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_owner *first = new_owner();
	hf_owner *second = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.owner = first)));
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.owner = second, .wait_ms = HF_NOWAIT)),
	          HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(stats_of(client).waiting == 1, SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release_with(lock, HF_RELEASE(.owner = first)));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - released_at, 0, 1500);
	assert_int_equal(hf_lock_state(lock, first), HF_FREE);
	assert_int_equal(hf_lock_state(lock, waiter->options.owner), HF_HELD);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_owner_free(first);
	hf_owner_free(second);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void try_while_held_is_busy_at_once(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(two).attempts, 1);
	assert_int_equal(channels(live_raw), 0);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release(mine));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(theirs));
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void wait_ends_on_time_and_leaves_nothing(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(test_now_ms() - started_at, 300, 800);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(two).timeouts, 1);
	assert_int_equal(stats_of(two).waiting, 0);
	assert_true(is_held_by(live_raw, "orders", one));
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 0, SOON_MS);
	ASSERT_OK(hf_lock_release(mine));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void cancelled_wait_ends_at_once_and_leaves_nothing(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");
	hf_cancel *cancel = new_cancel();

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(two).attempts == 2 && subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 200);
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.cancel = cancel)), HF_ECANCELLED);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 0, SOON_MS);
	/* It does not stay subscribed for long. */
	ASSERT_BETWEEN(test_now_ms() - fired_at, 0, 2500);
	ASSERT_OK(hf_lock_release(mine));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	waiter_free(waiter);
	hf_cancel_free(cancel);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void cancel_that_loses_to_a_grant_delivers_the_grant(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_cancel *cancel = new_cancel();

	(void)state;
	/* So that the reply held back is the grant, and not that the script is unknown. */
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	proxy_hold_replies(proxy, true);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	hf_cancel_fire(cancel);
	assert_false(waiter_is_over(waiter));
	proxy_hold_replies(proxy, false);
	waiter_expect(waiter, 0);
	assert_int_equal(hf_lock_state(lock, waiter->options.owner), HF_HELD);
	ASSERT_OK(waiter_release(waiter));
	assert_false(key_exists(live_raw, "orders"));
	waiter_free(waiter);
	hf_cancel_free(cancel);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
}

static void lease_that_ends_lets_the_next_one_in_and_is_told(void **state)
{
	char uuid[37];
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");

	(void)state;
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(mine, HF_ACQUIRE(.lease_ms = 400)));
	ASSERT_BETWEEN(hf_lock_remaining(mine, NULL), 1, 400);
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_BETWEEN(test_now_ms() - before, 400, 2000);
	assert_int_equal(hf_lock_remaining(mine, NULL), 0);
	assert_int_equal(hf_lock_state(mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(mine), HF_ELOST);
	ASSERT_OK(hf_client_uuid(two, uuid));
	char detail[400];
	snprintf(detail, sizeof detail, "%s", hf_error_detail());
	ASSERT_CONTAINS(detail, "400 ms");
	ASSERT_CONTAINS(detail, "now held by");
	ASSERT_CONTAINS(detail, uuid);
	assert_true(is_held_by(live_raw, "orders", two));
	ASSERT_RC(hf_lock_release(mine), HF_ENOTHELD);
	ASSERT_OK(hf_lock_release(theirs));
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void lost_lock_can_be_taken_anew(void **state)
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
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void nested_acquire_of_a_lock_taken_away_is_told(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_RC(hf_lock_acquire(lock, NULL), HF_ELOST);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void another_thread_or_client_cannot_release(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");

	(void)state;
	struct waiter *holder = waiter_start(mine, HF_ACQUIRE(.wait_ms = 1000));
	waiter_expect(holder, 0);
	ASSERT_RC(hf_lock_release(mine), HF_ENOTHELD);
	ASSERT_RC(hf_lock_release(theirs), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(mine, NULL, 60000), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(theirs, NULL, 60000), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(mine, NULL), HF_FREE);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 28000, 30000);
	ASSERT_OK(waiter_release(holder));
	waiter_free(holder);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
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
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

/* ---- leases ---- */

static void nested_acquire_never_shortens_the_lease(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 20000)));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 500)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 15000, 20000);
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 15000, 20000);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 50000)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 45000, 50000);
	/* Giving a level up leaves the time as it is. */
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	ASSERT_OK(hf_lock_release(lock));
	assert_false(key_exists(live_raw, "orders"));
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

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
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
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
	/* What is left has a lease of its own, and ends with it. */
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void extend_makes_a_lease_longer_and_never_shorter(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_RC(hf_lock_extend(lock, NULL, 5000), HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 2000)));
	ASSERT_OK(hf_lock_extend(lock, NULL, 40000));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 35000, 40000);
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 35000, 40000);
	ASSERT_OK(hf_lock_extend(lock, NULL, 1000));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 35000, 40000);
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 35000, 40000);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 60000)));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_RC(hf_lock_extend(lock, NULL, 5000), HF_ELOST);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

/* ---- questions ---- */

static void queries_tell_what_the_server_has(void **state)
{
	char holder[128];
	char field[128];
	long long on_server;
	int64_t number = -7;
	int yes = -7;
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");

	(void)state;
	ASSERT_OK(hf_lock_is_locked(mine, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_ttl(mine, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_holder(mine, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_hold_count(mine, NULL, &number));
	assert_int_equal(number, 0);

	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_OK(hf_lock_is_locked(theirs, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(mine, NULL, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(theirs, NULL, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_hold_count(mine, NULL, &number));
	assert_int_equal(number, 2);
	ASSERT_OK(hf_lock_hold_count(theirs, NULL, &number));
	assert_int_equal(number, 0);
	ASSERT_OK(hf_lock_ttl(theirs, &number));
	ASSERT_BETWEEN(number, 28000, 30000);
	read_hold(live_raw, "orders", field, sizeof field, &on_server);
	ASSERT_OK(hf_lock_holder(theirs, holder, sizeof holder));
	assert_string_equal(holder, field);
	ASSERT_OK(hf_lock_holder(theirs, holder, 10));
	assert_memory_equal(holder, field, 9);
	assert_int_equal(holder[9], 0);
	assert_int_equal(raw_integer(live_raw, "PERSIST", "orders", NULL), 1);
	ASSERT_OK(hf_lock_ttl(theirs, &number));
	assert_int_equal(number, -1);
	ASSERT_OK(hf_lock_release(mine));
	ASSERT_OK(hf_lock_release(mine));
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

/* ---- keys that are no locks, names that are none ---- */

static void expect_untouched(const char *key, const struct raw_reply *dump)
{
	struct raw_reply *now = raw_command(live_raw, "DUMP", key, NULL);
	assert_int_equal(now->type, RAW_TEXT);
	assert_int_equal(now->length, dump->length);
	assert_memory_equal(now->text, dump->text, dump->length);
	raw_reply_free(now);
	assert_int_equal(key_pttl(live_raw, key), -1);
}

static void expect_conflict(hf_client *client, const char *key)
{
	char holder[64];
	int64_t number;
	int yes;
	struct raw_reply *dump = raw_command(live_raw, "DUMP", key, NULL);
	hf_lock *lock = open_lock(client, key);

	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), key);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_force_release(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_is_locked(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_ttl(lock, &number), HF_ECONFLICT);
	ASSERT_RC(hf_lock_holder(lock, holder, sizeof holder), HF_ECONFLICT);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(lock, NULL, 1000), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	expect_untouched(key, dump);
	raw_reply_free(dump);
	hf_lock_close(lock);
}

static void key_that_is_no_lock_is_a_conflict_and_stays_untouched(void **state)
{
	hf_client *client = open_client(NULL);

	(void)state;
	raw_ok(live_raw, "SET", "text", "value", NULL);
	expect_conflict(client, "text");
	(void)raw_integer(live_raw, "RPUSH", "list", "a", "b", NULL);
	expect_conflict(client, "list");
	(void)raw_integer(live_raw, "HSET", "plain", "colour", "red", NULL);
	expect_conflict(client, "plain");
	(void)raw_integer(live_raw, "HSET", "many", "colour", "red", "size", "7", NULL);
	expect_conflict(client, "many");
	ASSERT_OK(hf_client_close(client));
}

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
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
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

/* ---- what others hear ---- */

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
		LIVE_STORY(two_owners_of_one_client_exclude_each_other),
		LIVE_STORY(try_while_held_is_busy_at_once),
		LIVE_STORY(wait_ends_on_time_and_leaves_nothing),
		LIVE_STORY(cancelled_wait_ends_at_once_and_leaves_nothing),
		LIVE_STORY(cancel_that_loses_to_a_grant_delivers_the_grant),
		LIVE_STORY(lease_that_ends_lets_the_next_one_in_and_is_told),
		LIVE_STORY(lost_lock_can_be_taken_anew),
		LIVE_STORY(nested_acquire_of_a_lock_taken_away_is_told),
		LIVE_STORY(another_thread_or_client_cannot_release),
		LIVE_STORY(hold_outlives_the_thread_that_took_it),
		LIVE_STORY(nested_acquire_never_shortens_the_lease),
		LIVE_STORY(given_lease_is_not_renewed),
		LIVE_STORY(hold_is_renewed_while_a_level_without_lease_is_open),
		LIVE_STORY(extend_makes_a_lease_longer_and_never_shorter),
		LIVE_STORY(queries_tell_what_the_server_has),
		LIVE_STORY(key_that_is_no_lock_is_a_conflict_and_stays_untouched),
		LIVE_STORY(key_replaced_while_held_stays_untouched),
		LIVE_STORY(bad_names_are_refused_with_the_reason),
		LIVE_STORY(last_release_publishes_one_zero_on_the_channel_of_the_name),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
