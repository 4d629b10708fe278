/* Read-write locks and time: leases that end, renewals, and readers that die. */
#include "live/child.h"
#include "live/rw.h"

#define WATCHDOG_MS 1200
#define JAVA_KEY    "{orders}:" JAVA ":rwlock_timeout:1"
#define CLIENTS     5
#define EACH        10

/* Lets this many renewal periods of the client pass, and checks that nothing was lost in them. */
static void pass_periods(hf_client *client, int periods)
{
	long long ends_at = test_now_ms() + periods * WATCHDOG_MS / 3;
	uint64_t renewals = stats_of(client).renewals;
	WAIT_UNTIL(test_now_ms() >= ends_at &&
	                   stats_of(client).renewals >= renewals + (uint64_t)periods - 1,
	           SOON_MS);
	assert_int_equal(stats_of(client).losses, 0);
}

/* The same, and the key exists all the time. */
static void watch_key(hf_client *client, const char *key, int periods)
{
	uint64_t enough = stats_of(client).renewals + (uint64_t)periods;
	long long ends_at = test_now_ms() + SOON_MS;
	while (stats_of(client).renewals < enough) {
		long long ttl = key_pttl(live_raw, key);
		if (ttl < 0)
			fail_msg("%s is gone", key);
		assert_true(test_now_ms() < ends_at);
		test_pause();
	}
	assert_int_equal(stats_of(client).losses, 0);
}

/* ---- leases ---- */

static void writer_enters_when_the_longest_reader_has_ended(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);

	(void)state;
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(one.read, HF_ACQUIRE(.lease_ms = 800)));
	long long after = test_now_ms();
	ASSERT_OK(hf_lock_acquire(two.read, HF_ACQUIRE(.lease_ms = 300)));
	hf_owner *writer = new_owner();
	ASSERT_OK(hf_lock_acquire(two.write, HF_ACQUIRE(.owner = writer, .wait_ms = 9000)));
	assert_true(test_now_ms() >= before + 800);
	ASSERT_BETWEEN(test_now_ms() - after, 750, 800 + 1500);
	ASSERT_RC(hf_lock_release(one.read), HF_ELOST);
	ASSERT_RC(hf_lock_release(two.read), HF_ELOST);
	ASSERT_OK(hf_lock_release_with(two.write, HF_RELEASE(.owner = writer)));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	hf_owner_free(writer);
	close_halves(&one);
	close_halves(&two);
}

static void reader_that_leaves_gives_the_lock_back_the_time_of_the_others(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);

	(void)state;
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(one.read, HF_ACQUIRE(.lease_ms = 1000)));
	long long after = test_now_ms();
	/* Its 30 s are the lock's time only as long as it reads. */
	ASSERT_OK(hf_lock_acquire(two.read, NULL));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 20000, 30000);
	ASSERT_OK(hf_lock_release(two.read));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, 1000);
	ASSERT_OK(hf_lock_acquire(two.write, HF_ACQUIRE(.wait_ms = 9000)));
	assert_true(test_now_ms() >= before + 1000);
	ASSERT_BETWEEN(test_now_ms() - after, 950, 1000 + 1500);
	ASSERT_RC(hf_lock_release(one.read), HF_ELOST);
	ASSERT_OK(hf_lock_release(two.write));
	close_halves(&one);
	close_halves(&two);
}

static void second_reader_enters_at_once_and_the_first_can_leave(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(one.read, HF_ACQUIRE(.lease_ms = 20000)));
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(two.read, NULL));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1000);
	ASSERT_OK(hf_lock_release(one.read));
	ASSERT_OK(hf_lock_release(two.read));
	close_halves(&one);
	close_halves(&two);
}

static void readers_enter_when_the_lease_of_a_writer_ends(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);

	(void)state;
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(one.write, HF_ACQUIRE(.lease_ms = 500)));
	long long after = test_now_ms();
	struct waiter *first = waiter_start(two.read, NULL);
	struct waiter *second = waiter_start(two.read, NULL);
	waiter_expect(first, 0);
	waiter_expect(second, 0);
	assert_true(first->ended_at >= before + 500 && second->ended_at >= before + 500);
	ASSERT_BETWEEN(first->ended_at - after, 450, 500 + 1500);
	ASSERT_BETWEEN(second->ended_at - after, 450, 500 + 1500);
	assert_int_equal(hf_lock_state(one.write, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(one.write), HF_ELOST);
	ASSERT_OK(waiter_release(first));
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	close_halves(&one);
	close_halves(&two);
}

static void nested_write_with_a_short_lease_ends_with_the_outer_one(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(one.write, HF_ACQUIRE(.lease_ms = 1000)));
	long long after = test_now_ms();
	ASSERT_OK(hf_lock_acquire(one.write, HF_ACQUIRE(.lease_ms = 100)));
	ASSERT_TIMES_OUT(300, hf_lock_acquire(two.write, HF_ACQUIRE(.wait_ms = within_ms)));
	/* Nor does it add to it. */
	ASSERT_OK(hf_lock_acquire(two.write, HF_ACQUIRE(.wait_ms = 9000)));
	ASSERT_BETWEEN(test_now_ms() - after, 900, 1000 + 1500);
	ASSERT_RC(hf_lock_release(one.write), HF_ELOST);
	ASSERT_RC(hf_lock_release(one.write), HF_ELOST);
	ASSERT_OK(hf_lock_release(two.write));
	close_halves(&one);
	close_halves(&two);
}

static void nested_reads_end_together_and_let_a_writer_in(void **state)
{
	struct halves one = open_halves(NULL);
	struct halves two = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(one.read, HF_ACQUIRE(.lease_ms = 300)));
	ASSERT_OK(hf_lock_acquire(one.read, HF_ACQUIRE(.lease_ms = 700)));
	long long after = test_now_ms();
	ASSERT_OK(hf_lock_release(one.read));
	ASSERT_OK(hf_lock_acquire(two.write, HF_ACQUIRE(.wait_ms = 9000)));
	ASSERT_BETWEEN(test_now_ms() - after, 600, 700 + 1500);
	ASSERT_RC(hf_lock_release(one.read), HF_ELOST);
	ASSERT_OK(hf_lock_release(two.write));
	close_halves(&one);
	close_halves(&two);
}

/* ---- renewals ---- */

static void reader_renews_its_own_key_and_no_other(void **state)
{
	char key[200];
	struct halves me = open_halves(HF_CLIENT(.watchdog_ms = 900));
	struct halves other = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	own_key(me.read, key, sizeof key);
	ASSERT_OK(hf_lock_acquire(other.read, HF_ACQUIRE(.lease_ms = 700)));
	(void)raw_integer(live_raw, "HSET", "orders", JAVA, "1", NULL);
	raw_ok(live_raw, "SET", JAVA_KEY, "1", "PX", "700", NULL);
	watch_key(me.client, key, 4);
	/* The others had only one lease. */
	WAIT_UNTIL(!key_exists(live_raw, JAVA_KEY), SOON_MS);
	ASSERT_BETWEEN(key_pttl(live_raw, key), 1, 900);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, 900);
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == 2, SOON_MS);
	assert_int_equal(hf_lock_state(me.read, NULL), HF_HELD);
	assert_int_equal(hf_lock_state(other.read, NULL), HF_LOST);
	/* Their fields are still there, but nothing keeps the lock when we leave. */
	ASSERT_OK(hf_lock_release(me.read));
	assert_false(key_exists(live_raw, "orders"));
	close_halves(&me);
	close_halves(&other);
}

static void renewal_never_shortens_the_lease_of_another_reader(void **state)
{
	struct halves me = open_halves(HF_CLIENT(.watchdog_ms = WATCHDOG_MS));
	struct halves other = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(other.read, HF_ACQUIRE(.lease_ms = 40000)));
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	pass_periods(me.client, 3);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 20000, 40000);
	ASSERT_OK(hf_lock_release(me.read));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 20000, 40000);
	ASSERT_OK(hf_lock_release(other.read));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	close_halves(&me);
	close_halves(&other);
}

static void releasing_a_nested_read_never_ends_the_renewal_of_the_write_hold(void **state)
{
	struct seen seen = {0};
	struct halves me = open_halves(HF_CLIENT(.watchdog_ms = WATCHDOG_MS, EVENTS_TO(&seen)));
	struct halves other = open_halves(NULL);

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_acquire(me.read, try_once()));
	ASSERT_OK(hf_lock_release(me.read));
	/* Three leases are nine periods. */
	pass_periods(me.client, 9);
	assert_int_equal(hf_lock_state(me.write, NULL), HF_HELD);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, WATCHDOG_MS);
	ASSERT_RC(hf_lock_acquire(other.read, try_once()), HF_EBUSY);
	ASSERT_OK(hf_lock_release(me.write));
	assert_int_equal(seen_count(&seen, HF_LOST), 0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	close_halves(&me);
	close_halves(&other);
}

static void both_halves_are_renewed_and_the_read_half_also_alone(void **state)
{
	char key[200];
	struct halves me = open_halves(HF_CLIENT(.watchdog_ms = 900));

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.write, NULL));
	ASSERT_OK(hf_lock_acquire(me.read, try_once()));
	own_key(me.read, key, sizeof key);
	/* Two holds are renewed in each. */
	watch_key(me.client, key, 8);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, 900);
	ASSERT_BETWEEN(key_pttl(live_raw, key), 1, 900);
	ASSERT_OK(hf_lock_release(me.write));
	watch_key(me.client, key, 4);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, 900);
	ASSERT_BETWEEN(key_pttl(live_raw, key), 1, 900);
	assert_int_equal(hf_lock_state(me.read, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(me.read));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	close_halves(&me);
}

static void many_readers_hold_longer_than_a_lease_and_leave_without_error(void **state)
{
	struct halves halves[CLIENTS];
	hf_owner *owner[CLIENTS][EACH];

	(void)state;
	for (int i = 0; i < CLIENTS; i++) {
		halves[i] = open_halves(HF_CLIENT(.watchdog_ms = 1200));
		for (int j = 0; j < EACH; j++) {
			owner[i][j] = new_owner();
			ASSERT_OK(
				hf_lock_acquire(halves[i].read, HF_ACQUIRE(.owner = owner[i][j])));
		}
	}
	assert_int_equal(raw_integer(live_raw, "HLEN", "orders", NULL), CLIENTS * EACH + 1);
	for (int i = 0; i < CLIENTS; i++)
		WAIT_UNTIL(stats_of(halves[i].client).renewals >= 4 * EACH, SOON_MS);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), CLIENTS * EACH + 1);
	for (int i = 0; i < CLIENTS; i++) {
		/* One script renews all readers of a client. */
		ASSERT_BETWEEN(stats_of(halves[i].client).renewal_scripts, 4, 20);
		for (int j = 0; j < EACH; j++) {
			ASSERT_OK(hf_lock_release_with(halves[i].read,
			                               HF_RELEASE(.owner = owner[i][j])));
			hf_owner_free(owner[i][j]);
		}
		assert_int_equal(stats_of(halves[i].client).losses, 0);
		close_halves(&halves[i]);
	}
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

static void level_without_lease_keeps_a_read_hold_and_its_own_lease_ends_it(void **state)
{
	struct halves me = open_halves(HF_CLIENT(.watchdog_ms = WATCHDOG_MS));

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, HF_ACQUIRE(.lease_ms = 300)));
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	pass_periods(me.client, 4);
	assert_int_equal(hf_lock_state(me.read, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(me.read));
	WAIT_UNTIL(hf_lock_state(me.read, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(me.read), HF_ELOST);
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == 0, SOON_MS);
	close_halves(&me);
}

static void reader_whose_field_is_gone_is_lost_although_others_keep_reading(void **state)
{
	struct seen seen = {0};
	char holder[128];
	struct halves other = open_halves(NULL);
	struct halves me = open_halves(HF_CLIENT(.watchdog_ms = WATCHDOG_MS, EVENTS_TO(&seen)));

	(void)state;
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	ASSERT_OK(hf_lock_holder(me.read, holder, sizeof holder));
	ASSERT_OK(hf_lock_acquire(other.read, NULL));
	assert_int_equal(raw_integer(live_raw, "HDEL", "orders", holder, NULL), 1);
	WAIT_UNTIL(seen_count(&seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(seen.owner, holder);
	ASSERT_RC(hf_lock_release(me.read), HF_ELOST);
	assert_int_equal(hf_lock_state(other.read, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(other.read));
	assert_false(key_exists(live_raw, "orders"));
	close_halves(&me);
	close_halves(&other);
}

/* ---- readers that die ---- */

static void dead_reader_does_not_keep_the_lock_while_another_reads_on(void **state)
{
	pid_t reader = start_holder(HF_READ, "orders", WATCHDOG_MS);

	(void)state;
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	struct halves me = open_halves(HF_CLIENT(.watchdog_ms = WATCHDOG_MS));
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	assert_int_equal(raw_integer(live_raw, "HLEN", "orders", NULL), 3);
	kill_child(reader);
	hf_owner *writer = new_owner();
	struct waiter *waiter = waiter_start(me.write, HF_ACQUIRE(.owner = writer));
	pass_periods(me.client, 4);
	/* The key of the dead reader is gone; ours and the lock still exist. */
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == 2, SOON_MS);
	assert_false(waiter_is_over(waiter));
	ASSERT_WAKES(hf_lock_release(me.read), waiter, 1500);
	waiter_finish(waiter);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	close_halves(&me);
}

static void dead_reader_that_was_the_last_lets_the_writer_in_after_its_lease(void **state)
{
	pid_t reader = start_holder(HF_READ, "orders", WATCHDOG_MS);

	(void)state;
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	struct halves me = open_halves(NULL);
	/* A reader that comes and goes does not bring the dead one's time back. */
	ASSERT_OK(hf_lock_acquire(me.read, NULL));
	kill_child(reader);
	long long killed_at = test_now_ms();
	ASSERT_OK(hf_lock_release(me.read));
	ASSERT_OK(hf_lock_acquire(me.write, HF_ACQUIRE(.wait_ms = 9000)));
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, WATCHDOG_MS + 1500);
	ASSERT_OK(hf_lock_release(me.write));
	close_halves(&me);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(writer_enters_when_the_longest_reader_has_ended),
		LIVE_STORY(reader_that_leaves_gives_the_lock_back_the_time_of_the_others),
		LIVE_STORY(second_reader_enters_at_once_and_the_first_can_leave),
		LIVE_STORY(readers_enter_when_the_lease_of_a_writer_ends),
		LIVE_STORY(nested_write_with_a_short_lease_ends_with_the_outer_one),
		LIVE_STORY(nested_reads_end_together_and_let_a_writer_in),
		LIVE_STORY(reader_renews_its_own_key_and_no_other),
		LIVE_STORY(renewal_never_shortens_the_lease_of_another_reader),
		LIVE_STORY(releasing_a_nested_read_never_ends_the_renewal_of_the_write_hold),
		LIVE_STORY(both_halves_are_renewed_and_the_read_half_also_alone),
		LIVE_STORY(many_readers_hold_longer_than_a_lease_and_leave_without_error),
		LIVE_STORY(level_without_lease_keeps_a_read_hold_and_its_own_lease_ends_it),
		LIVE_STORY(reader_whose_field_is_gone_is_lost_although_others_keep_reading),
		LIVE_STORY(dead_reader_does_not_keep_the_lock_while_another_reads_on),
		LIVE_STORY(dead_reader_that_was_the_last_lets_the_writer_in_after_its_lease),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
