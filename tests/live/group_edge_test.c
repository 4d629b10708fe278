/* Groups at their edges: killed processes and connections, odd keys, asynchronous calls, crowds. */
#include "live/child.h"
#include "live/group.h"

/* ---- processes that are killed ---- */

static void take_values(hf_client *client)
{
	static const char *const values[] = {"test1", "test2"};
	hf_lock *lock;
	if (hf_lock_open_group(client, "students", values, 2, &lock) || hf_lock_acquire(lock, NULL))
		_exit(1);
}

static void values_of_killed_processes_are_free_within_their_lease(void **state)
{
	pid_t holder = start_child(take_values, 2000);

	(void)state;
	WAIT_UNTIL(key_exists(live_raw, "students"), SOON_MS);
	pid_t waiter = start_child(take_values, 2000);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	kill_child(waiter);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	hf_client *client = open_client(NULL);
	hf_lock *lock = GROUP(client, "test2");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	kill_child(holder);
	long long killed_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 6000)));
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, 2000 + 1000);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* ---- connections and scripts ---- */

static void killed_connections_are_made_again(void **state)
{
	(void)state;
	struct rivals *rivals = begin(6000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	kill_connections(live_raw);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	WAIT_UNTIL(stats_of(rivals->one).reconnects == 1 && stats_of(rivals->one).renewals >= 1,
	           SOON_MS);
	WAIT_UNTIL(stats_of(rivals->two).reconnects == 1 && subscribers(live_raw, CHANNEL) == 1,
	           SOON_MS);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_false(waiter_is_over(waiter));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 1500);
	assert_int_equal(stats_of(rivals->one).losses, 0);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	waiter_finish(waiter);
	expect_no_keys();
	close_rivals(rivals);
}

static void close_releases_what_is_held_and_answers_the_waiters(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *mine = waiter_start(rivals->mine, NULL);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->one).waiting == 1 && stats_of(rivals->two).attempts == 2,
	           SOON_MS);
	ASSERT_WAKES(hf_client_close(rivals->one), waiter, 1500);
	waiter_expect(mine, HF_ECLOSED);
	ASSERT_RC(hf_lock_acquire(rivals->mine, NULL), HF_ECLOSED);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(mine);
	waiter_free(waiter);
	expect_nothing_left();
	rivals->one = NULL;
	close_rivals(rivals);
}

/* ---- questions ---- */

static void queries_return_what_the_server_has(void **state)
{
	char holder[128];
	int64_t number = -7;
	int yes = -7;

	(void)state;
	struct rivals *rivals = begin(30000);
	hf_lock *part = GROUP(rivals->two, "test2", "a");
	ASSERT_OK(hf_lock_is_locked(part, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_ttl(part, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_holder(part, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	/* Any of the values counts for is_locked, all of them for is_held. */
	ASSERT_OK(hf_lock_is_locked(part, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(part, NULL, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_is_held(rivals->mine, NULL, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(rivals->theirs, NULL, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_hold_count(rivals->mine, NULL, &number));
	assert_int_equal(number, 2);
	ASSERT_OK(hf_lock_hold_count(part, NULL, &number));
	assert_int_equal(number, 0);
	ASSERT_OK(hf_lock_ttl(part, &number));
	ASSERT_BETWEEN(number, 25000, 30000);
	ASSERT_OK(hf_lock_holder(part, holder, sizeof holder));
	char *field = field_of(TEST2);
	assert_string_equal(holder, field);
	free(field);
	ASSERT_RC(hf_lock_token(rivals->mine, NULL, &number), HF_EINVAL);
	ASSERT_RC(hf_lock_last_token(rivals->mine, &number), HF_EINVAL);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_release(rivals->mine));
	hf_stats stats = stats_of(rivals->one);
	assert_int_equal(stats.grants, 2);
	assert_int_equal(stats.releases, 2);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.losses, 0);
	hf_lock_close(part);
	close_rivals(rivals);
}

static void owners_of_one_client_exclude_each_other(void **state)
{
	hf_owner *owner = new_owner();

	(void)state;
	struct rivals *rivals = begin(30000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.owner = owner)));
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	assert_int_equal(hf_lock_state(rivals->mine, owner), HF_HELD);
	struct waiter *waiter = waiter_start(rivals->mine, NULL);
	WAIT_UNTIL(stats_of(rivals->one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_release_with(rivals->mine, HF_RELEASE(.owner = owner)));
	waiter_finish(waiter);
	hf_owner_free(owner);
	expect_no_keys();
	close_rivals(rivals);
}

/* ---- asynchronous forms ---- */

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct done done = {0};
	struct done other = {0};
	hf_owner *owner = new_owner();

	(void)state;
	struct rivals *rivals = begin(30000);
	ASSERT_OK(
		hf_lock_acquire_async(rivals->mine, HF_ACQUIRE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	assert_true(value_is_of(TEST1, rivals->one));
	ASSERT_OK(hf_lock_acquire_async(rivals->theirs, HF_ACQUIRE(.owner = owner), note_done,
	                                &other));
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	check_async_hold(rivals->mine, owner);
	ASSERT_OK(hf_lock_holder_async(rivals->mine, note_done, &done));
	await_done(&done, 0);
	char *field = field_of(TEST1);
	assert_string_equal(done.text, field);
	free(field);
	assert_int_equal(atomic_load(&other.calls), 0);
	ASSERT_OK(
		hf_lock_release_async(rivals->mine, HF_RELEASE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	await_done(&other, 0);
	ASSERT_OK(hf_lock_force_release_async(rivals->mine, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_OK(hf_lock_release_async(rivals->theirs, HF_RELEASE(.owner = owner), note_done,
	                                &other));
	await_done(&other, HF_ELOST);
	expect_no_keys();
	hf_owner_free(owner);
	close_rivals(rivals);
}

/* ---- keys that are not groups ---- */

static void expect_conflict(hf_lock *lock)
{
	int64_t number;
	int yes;
	struct raw_reply *before = raw_command(live_raw, "DUMP", "students", NULL);
	assert_int_equal(before->type, RAW_TEXT);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), "students");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_is_locked(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_ttl(lock, &number), HF_ECONFLICT);
	ASSERT_RC(hf_lock_force_release(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	struct raw_reply *after = raw_command(live_raw, "DUMP", "students", NULL);
	assert_int_equal(after->length, before->length);
	assert_memory_equal(after->text, before->text, before->length);
	raw_reply_free(before);
	raw_reply_free(after);
	assert_int_equal(raw_integer(live_raw, "DEL", "students", NULL), 1);
}

static void key_that_is_not_a_group_is_a_conflict_and_stays_untouched(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	hf_lock *plain = open_lock(rivals->two, "students");
	raw_ok(live_raw, "SET", "students", "value", NULL);
	expect_conflict(rivals->mine);
	(void)raw_integer(live_raw, "RPUSH", "students", "a", NULL);
	expect_conflict(rivals->mine);
	(void)raw_integer(live_raw, "HSET", "students", "mode", "read", "x:1", "1", "y:1", "1",
	                  NULL);
	expect_conflict(rivals->mine);
	(void)raw_integer(live_raw, "HSET", "students", "name", "x", "city", "y", "born", "1999",
	                  NULL);
	expect_conflict(rivals->mine);
	/* A field as long as a hashed value is not one, unless its value is a holder. */
	(void)raw_integer(live_raw, "HSET", "students", "abcdefghijklmnopqrstuv", "x", NULL);
	expect_conflict(rivals->mine);
	for (int i = 0; i < 100; i++) {
		char field[24];
		snprintf(field, sizeof field, "field-%d", i);
		(void)raw_integer(live_raw, "HSET", "students", field, "x", NULL);
	}
	expect_conflict(rivals->mine);
	ASSERT_OK(hf_lock_acquire(plain, NULL));
	expect_conflict(rivals->mine);
	ASSERT_RC(hf_lock_release(plain), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_RC(hf_lock_acquire(plain, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ECONFLICT);
	assert_int_equal(fields(), 6);
	ASSERT_OK(hf_lock_release(rivals->mine));
	hf_lock_close(plain);
	close_rivals(rivals);
}

static void what_java_leaves_of_a_lapsed_hold_is_not_a_conflict(void **state)
{
	(void)state;
	struct rivals *rivals = begin(30000);
	/* Another took the value after that, and gave it back: its own fields are gone again. */
	(void)raw_integer(live_raw, "HSET", "students", TEST1 ":gone:7:expire_time", "1000",
	                  TEST1 ":gone:7:lock_count", "1", NULL);
	assert_int_equal(raw_integer(live_raw, "PEXPIRE", "students", "60000", NULL), 1);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 1000)));
	assert_true(value_is_of(TEST1, rivals->one));
	ASSERT_OK(hf_lock_release(rivals->mine));
	close_rivals(rivals);
}

/* ---- many at once ---- */

#define CLIENTS 3
#define EACH    3
#define ROUNDS  15

struct crowd {
	hf_client *client[CLIENTS];
	hf_lock *lock[CLIENTS][3]; /* of two values each */
	long long counter[3];      /* of each value; only the lock protects it */
	atomic_int next;
	atomic_int failures;
	char detail[400];
};

static void *work(void *arg)
{
	struct crowd *crowd = arg;
	int number = atomic_fetch_add(&crowd->next, 1);
	for (int i = 0; i < ROUNDS; i++) {
		int first = (number + i) % 3;
		hf_lock *lock = crowd->lock[number % CLIENTS][first];
		int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000));
		if (!rc) {
			crowd->counter[first]++;
			crowd->counter[(first + 1) % 3]++;
			rc = hf_lock_release(lock);
		}
		if (rc && atomic_fetch_add(&crowd->failures, 1) == 0)
			snprintf(crowd->detail, sizeof crowd->detail, "%d: %s", rc,
			         hf_error_detail());
	}
	return NULL;
}

static void overlapping_values_lose_no_update(void **state)
{
	static const char *const value[] = {"test1", "test2", "a"};
	struct crowd crowd = {0};
	pthread_t thread[CLIENTS * EACH];

	(void)state;
	for (int i = 0; i < CLIENTS; i++) {
		crowd.client[i] = open_client(NULL);
		for (int j = 0; j < 3; j++)
			crowd.lock[i][j] = GROUP(crowd.client[i], value[j], value[(j + 1) % 3]);
	}
	for (int i = 0; i < CLIENTS * EACH; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &crowd), 0);
	for (int i = 0; i < CLIENTS * EACH; i++)
		pthread_join(thread[i], NULL);
	if (atomic_load(&crowd.failures))
		fail_msg("%d calls failed, the first with %s", atomic_load(&crowd.failures),
		         crowd.detail);
	assert_int_equal(crowd.counter[0] + crowd.counter[1] + crowd.counter[2],
	                 2 * CLIENTS * EACH * ROUNDS);
	expect_nothing_left();
	for (int i = 0; i < CLIENTS; i++) {
		for (int j = 0; j < 3; j++)
			hf_lock_close(crowd.lock[i][j]);
		assert_int_equal(stats_of(crowd.client[i]).held, 0);
		ASSERT_OK(hf_client_close(crowd.client[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(values_of_killed_processes_are_free_within_their_lease),
		LIVE_STORY(killed_connections_are_made_again),
		LIVE_STORY(close_releases_what_is_held_and_answers_the_waiters),
		LIVE_STORY(queries_return_what_the_server_has),
		LIVE_STORY(owners_of_one_client_exclude_each_other),
		LIVE_STORY(every_verb_has_an_asynchronous_form),
		LIVE_STORY(key_that_is_not_a_group_is_a_conflict_and_stays_untouched),
		LIVE_STORY(what_java_leaves_of_a_lapsed_hold_is_not_a_conflict),
		LIVE_STORY(overlapping_values_lose_no_update),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
