/* A server without memory: what is held is renewed, and everything can be given back. */
#include "live/any_kind.h"
#include "live/sync.h"

#include "support/kinds.h"

#define WATCHDOG_MS 1800

static hf_client *client;

static int open_one(void **state)
{
	(void)live_flush(state);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	client = sync_open(HF_CLIENT(.watchdog_ms = WATCHDOG_MS, .describe = "a full test"));
	return 0;
}

static int close_one(void **state)
{
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	return sync_clean(state);
}

static void fill_server(void)
{
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	struct raw_reply *reply = raw_command(live_raw, "SET", "straw", "1", NULL);
	assert_int_equal(reply->type, RAW_ERROR);
	raw_reply_free(reply);
}

/* How many commands the server has refused because it is full. */
static int refusals(void)
{
	static const char field[] = "errorstat_OOM:count=";
	char *text = raw_text(live_raw, "INFO", "errorstats", NULL);
	const char *found = strstr(text, field);
	int count = found ? atoi(found + sizeof field - 1) : 0;
	free(text);
	return count;
}

/* By then every hold has been renewed, or has expired. */
static void wait_two_leases(void)
{
	int before = refusals();
	long long ends_at = test_now_ms() + 2 * WATCHDOG_MS;
	assert_true(before > 0); /* by fill_server() */
	while (test_now_ms() < ends_at)
		test_pause();
	assert_int_equal(refusals(), before);
}

/* ---- locks ---- */

static void play_kind(int kind)
{
	int locked = 1;
	hf_lock *lock = open_kind(client, kind);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	if (kind_nests(kind))
		ASSERT_OK(hf_lock_acquire(lock, NULL));
	fill_server();
	wait_two_leases();
	if (hf_lock_state(lock, NULL) != HF_HELD)
		fail_msg("kind %d: not held on a full server: %s", kind, hf_error_detail());
	/* A level, and then the rest. */
	if (kind_nests(kind))
		ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_is_locked(lock, &locked));
	assert_int_equal(locked, 0);
	/* A fair ask tidies its queue first, after which the server allows it everything. */
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 500));
	assert_true(rc == HF_EFULL || rc == 0);
	ASSERT_OK(hf_lock_is_locked(lock, &locked));
	assert_int_equal(locked, rc == 0);
	if (rc == 0)
		ASSERT_OK(hf_lock_release(lock));
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	hf_lock_close(lock);
}

static void locks_of_every_kind_are_kept_and_released(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++)
		if (kind != HF_PLAIN)
			play_kind(kind);
}

/*
 * The second reader's own lease is longer than the lock's, so that only its own key is to be
 * renewed.
 */
static void reader_is_renewed_next_to_one_with_a_longer_lease(void **state)
{
	hf_owner *other = new_owner();
	hf_lock *lock = open_kind(client, HF_READ);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.owner = other, .lease_ms = 60000)));
	fill_server();
	wait_two_leases();
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release_with(lock, HF_RELEASE(.owner = other)));
	assert_false(key_exists(live_raw, "orders"));
	hf_lock_close(lock);
	hf_owner_free(other);
}

static void writer_that_keeps_reading_is_renewed(void **state)
{
	hf_lock *write = open_kind(client, HF_WRITE), *read = open_kind(client, HF_READ);

	(void)state;
	ASSERT_OK(hf_lock_acquire(write, NULL));
	ASSERT_OK(hf_lock_acquire(read, NULL));
	fill_server();
	ASSERT_OK(hf_lock_release(write));
	wait_two_leases();
	assert_int_equal(hf_lock_state(read, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(read));
	assert_false(key_exists(live_raw, "orders"));
	hf_lock_close(write);
	hf_lock_close(read);
}

/* ---- objects without an owner ---- */

static void permits_are_kept_extended_and_given_back(void **state)
{
	hf_permits *permits = NULL;
	hf_permit_id ids[3];
	int64_t available = 0;

	(void)state;
	ASSERT_OK(hf_permits_open(client, "orders", &permits));
	ASSERT_OK(hf_permits_try_set(permits, 3, NULL));
	ASSERT_OK(hf_permits_acquire(permits, 3, NULL, ids));
	fill_server();
	wait_two_leases();
	for (int i = 0; i < 3; i++)
		assert_int_equal(hf_permits_state(permits, ids[i]), HF_HELD);
	ASSERT_OK(hf_permits_extend(permits, ids[2], 500));
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)ids, 2));
	WAIT_UNTIL(hf_permits_available(permits, &available) == 0 && available == 3, SOON_MS);
	ASSERT_RC(hf_permits_acquire(permits, 1, HF_PERMITS(.wait_ms = 500), ids), HF_EFULL);
	ASSERT_OK(hf_permits_available(permits, &available));
	assert_int_equal(available, 3);
	hf_permits_close(permits);
}

static void semaphore_and_latch_can_be_given_back(void **state)
{
	hf_semaphore *semaphore = NULL;
	hf_latch *latch = NULL;

	(void)state;
	ASSERT_OK(hf_semaphore_open(client, "orders", &semaphore));
	ASSERT_OK(hf_latch_open(client, "latch", &latch));
	ASSERT_OK(hf_semaphore_try_set(semaphore, 2, 0, NULL));
	ASSERT_OK(hf_semaphore_acquire(semaphore, 2, NULL));
	ASSERT_OK(hf_latch_try_set(latch, 2, NULL));
	fill_server();
	ASSERT_OK(hf_semaphore_release(semaphore, 1));
	ASSERT_OK(hf_semaphore_release_if_exists(semaphore, 1, NULL));
	assert_int_equal(number_at(live_raw, "orders"), 2);
	ASSERT_OK(hf_latch_count_down(latch));
	ASSERT_OK(hf_latch_count_down(latch));
	ASSERT_OK(hf_latch_wait(latch, HF_WAIT(.wait_ms = HF_NOWAIT)));
	ASSERT_RC(hf_semaphore_acquire(semaphore, 1, HF_WAIT(.wait_ms = 500)), HF_EFULL);
	assert_int_equal(number_at(live_raw, "orders"), 2);
	hf_semaphore_close(semaphore);
	hf_latch_close(latch);
}

/* A fair waiter's place is given up when it leaves. */
static void place_in_a_queue_is_given_up(void **state)
{
	hf_client *other = sync_open(NULL);
	hf_lock *theirs = NULL, *mine = open_kind(client, HF_FAIR);

	(void)state;
	ASSERT_OK(hf_lock_open(other, HF_FAIR, "orders", &theirs));
	ASSERT_OK(hf_lock_acquire(theirs, NULL));
	hf_cancel *cancel = new_cancel();
	struct waiter *waiter = waiter_start(mine, HF_ACQUIRE(.wait_ms = 0, .cancel = cancel));
	WAIT_UNTIL(raw_integer(live_raw, "LLEN", "redisson_lock_queue:{orders}", NULL) == 1,
	           SOON_MS);
	fill_server();
	hf_cancel_fire(cancel);
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	assert_true(waiter->result == HF_ECANCELLED || waiter->result == HF_EFULL);
	WAIT_UNTIL(raw_integer(live_raw, "LLEN", "redisson_lock_queue:{orders}", NULL) == 0,
	           SOON_MS);
	ASSERT_OK(hf_lock_release(theirs));
	waiter_free(waiter);
	hf_cancel_free(cancel);
	hf_lock_close(mine);
	hf_lock_close(theirs);
}

#define FULL_STORY(name) cmocka_unit_test_setup_teardown(name, open_one, close_one)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FULL_STORY(locks_of_every_kind_are_kept_and_released),
		FULL_STORY(reader_is_renewed_next_to_one_with_a_longer_lease),
		FULL_STORY(writer_that_keeps_reading_is_renewed),
		FULL_STORY(permits_are_kept_extended_and_given_back),
		FULL_STORY(semaphore_and_latch_can_be_given_back),
		FULL_STORY(place_in_a_queue_is_given_up),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
