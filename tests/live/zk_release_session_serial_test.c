/* Releases on ZooKeeper that meet a deletion, and commands of many steps on a slow line. */
#include "live/zk_permits_faults.h"

/* ---- one server and one proxy for all stories ---- */

static int start(void **state)
{
	(void)state;
	start_all(NULL);
	return 0;
}

static void begin_here(int64_t total, int64_t session_ms)
{
	begin_at(proxy_url(proxy), test_zookeeper_url(zk_server, 0), total, session_ms);
}

/* What a failed story leaves must not disturb the next one. */
static int calm(void **state)
{
	proxy_hold_requests(proxy, false);
	proxy_hold_replies(proxy, false);
	proxy_delay(proxy, 0);
	return close_pair(state);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, zk_sweep, calm)

/* A mutex of the first client, besides the permits. */
struct held {
	hf_lock *lock;
	hf_owner *owner;
};

static struct held hold_lock(void)
{
	struct held held = {.lock = open_lock(pair.one, "mutex"), .owner = new_owner()};
	ASSERT_OK(hf_lock_acquire(held.lock, HF_ACQUIRE(.owner = held.owner)));
	return held;
}

static void let_lock_go(struct held *held)
{
	hf_lock_close(held->lock);
	hf_owner_free(held->owner);
}

static void delete_only_child(const char *folder)
{
	char path[700];
	read_only_child(zk_eye, folder, path, sizeof path, NULL);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
}

/* ---- releases that meet a deletion ---- */

/*
 * A while after a grant the node is watched. The session is so long that nothing else is sent on
 * its own, so what leaves now is the request for that.
 */
static void hold_back_guard(void)
{
	long long bytes = proxy_request_bytes(proxy);
	proxy_hold_requests(proxy, true);
	WAIT_UNTIL(proxy_request_bytes(proxy) > bytes, SOON_MS);
}

/* The same, but it has been answered. */
static void wait_for_guard(void)
{
	long long requests = proxy_request_bytes(proxy), replies = proxy_reply_bytes(proxy);
	WAIT_UNTIL(proxy_request_bytes(proxy) > requests && proxy_reply_bytes(proxy) > replies,
	           SOON_MS);
}

/* The release has begun when it returns. */
static struct done *start_release(const struct held *held)
{
	struct done *done = check_alloc(sizeof(*done));
	ASSERT_OK(hf_lock_release_async(held->lock, HF_RELEASE(.owner = held->owner), note_done,
	                                done));
	WAIT_UNTIL(hf_lock_remaining(held->lock, held->owner) == 0, SOON_MS);
	return done;
}

static struct done *start_give(const hf_permit_id id)
{
	struct done *done = check_alloc(sizeof(*done));
	ASSERT_OK(
		hf_permits_release_async(pair.mine, (const hf_permit_id *)id, 1, note_done, done));
	WAIT_UNTIL(hf_permits_remaining(pair.mine, id) == 0, SOON_MS);
	return done;
}

static void expect_release(struct done *done, int result)
{
	expect_done(done, result, 0);
	free(done);
}

static void lock_deleted_before_the_watch_on_it_arrives_is_not_released(void **state)
{
	(void)state;
	begin_here(0, 30000);
	struct held held = hold_lock();
	hold_back_guard();
	delete_only_child("/mutex");
	struct done *done = start_release(&held);
	proxy_hold_requests(proxy, false);
	expect_release(done, HF_ELOST);
	ASSERT_RC(hf_lock_release_with(held.lock, HF_RELEASE(.owner = held.owner)), HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(held.lock, HF_ACQUIRE(.owner = held.owner)));
	ASSERT_OK(hf_lock_release_with(held.lock, HF_RELEASE(.owner = held.owner)));
	let_lock_go(&held);
	end();
}

static void permit_deleted_before_the_watch_on_it_arrives_is_not_released(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_here(1, 30000);
	take(pair.mine, 1, 0, &id);
	hold_back_guard();
	delete_only_child(LEASES);
	struct done *done = start_give(id);
	proxy_hold_requests(proxy, false);
	expect_release(done, HF_ELOST);
	ASSERT_RC(give(pair.mine, id), HF_ENOTHELD);
	take(pair.mine, 1, 0, &id);
	ASSERT_OK(give(pair.mine, id));
	end();
}

/* The event of the deletion arrives right before the answer that there was nothing to delete. */
static void lock_whose_deletion_is_heard_during_its_release_is_not_released(void **state)
{
	(void)state;
	begin_here(0, 30000);
	struct held held = hold_lock();
	wait_for_guard();
	proxy_hold_replies(proxy, true);
	delete_only_child("/mutex");
	struct done *done = start_release(&held);
	proxy_hold_replies(proxy, false);
	expect_release(done, HF_ELOST);
	let_lock_go(&held);
	end();
}

static void permit_whose_deletion_is_heard_during_its_release_is_not_released(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_here(1, 30000);
	take(pair.mine, 1, 0, &id);
	wait_for_guard();
	proxy_hold_replies(proxy, true);
	delete_only_child(LEASES);
	struct done *done = start_give(id);
	proxy_hold_replies(proxy, false);
	expect_release(done, HF_ELOST);
	end();
}

/* Our own deletion is not a loss, whether it overtakes the watch or sets it off. */
static void release_that_nobody_disturbs_is_a_release(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_here(1, 30000);
	for (int i = 0; i < 2; i++) {
		struct held held = hold_lock();
		i ? wait_for_guard() : hold_back_guard();
		struct done *done = start_release(&held);
		proxy_hold_requests(proxy, false);
		expect_release(done, 0);
		assert_int_equal(count_at(zk_eye, "/mutex"), 0);
		let_lock_go(&held);
		take(pair.mine, 1, 0, &id);
		i ? wait_for_guard() : hold_back_guard();
		done = start_give(id);
		proxy_hold_requests(proxy, false);
		expect_release(done, 0);
		assert_int_equal(leases(), 0);
	}
	assert_int_equal(stats_of(pair.one).losses, 0);
	assert_int_equal(seen_count(&pair.seen, HF_LOST), 0);
	end();
}

/* ---- many steps on a slow line ---- */

/* The client has not doubted the connection, and does not within the time. */
static void expect_no_doubt(int quiet_ms)
{
	long long since = test_now_ms();
	WAIT_UNTIL(test_now_ms() - since >= quiet_ms || stats_of(pair.one).reconnects > 0,
	           quiet_ms + SOON_MS);
	assert_int_equal(stats_of(pair.one).reconnects, 0);
}

static void expect_lock_works(void)
{
	struct held held = hold_lock();
	ASSERT_OK(hf_lock_release_with(held.lock, HF_RELEASE(.owner = held.owner)));
	let_lock_go(&held);
}

/* Five deletions of 400 ms each are more than the second that a command has. */
static void release_of_several_may_take_longer_than_one_command(void **state)
{
	hf_permit_id ids[5];

	(void)state;
	command_timeout_ms = 1000;
	begin_here(5, 20000);
	take(pair.mine, 5, 0, ids);
	proxy_delay(proxy, 200);
	int rc = give_all(pair.mine, ids, 5);
	assert_true(rc == 0 || rc == HF_EUNKNOWN);
	WAIT_UNTIL(leases() == 0, 15000);
	expect_no_doubt(3000);
	proxy_delay(proxy, 0);
	expect_lock_works();
	assert_int_equal(stats_of(pair.one).reconnects, 0);
	end();
}

/*
 * Of a session of 3 s, 3/5 are relied on, and a ninth of that is what an ask has: 200 ms. The node
 * cannot be made without its folders, so it goes up four levels and down again: nine round trips of
 * 80 ms.
 */
static void acquire_in_missing_folders_takes_its_time(void **state)
{
	(void)state;
	begin_here(0, 3000);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	hf_lock *lock = open_lock(pair.one, "a/b/c/d");
	proxy_delay(proxy, 40);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 10000)));
	assert_int_equal(stats_of(pair.one).reconnects, 0);
	assert_int_equal(count_children(zk_eye, "/a/b/c/d"), 1);
	ASSERT_OK(hf_lock_release(lock));
	expect_no_doubt(0);
	proxy_delay(proxy, 0);
	hf_lock_close(lock);
	end();
}

/* However many there were when the wait ended: their deletions take 3 s, and a command has one. */
static void many_permits_left_on_a_slow_line_go_one_by_one(void **state)
{
	hf_permit_id ids[200];

	(void)state;
	command_timeout_ms = 1000;
	begin_here(200, 20000);
	proxy_delay(proxy, 4);
	ASSERT_RC(hf_permits_acquire(pair.mine, 200, HF_PERMITS(.wait_ms = 1500), ids),
	          HF_EUNKNOWN);
	int most = leases();
	ASSERT_BETWEEN(most, 6, 190);
	proxy_delay(proxy, 1500 / most);
	WAIT_UNTIL(gates() == 0 && leases() == 0, 20000);
	expect_no_doubt(1200);
	proxy_delay(proxy, 0);
	take(pair.mine, 3, 0, ids);
	ASSERT_OK(give_all(pair.mine, ids, 3));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(lock_deleted_before_the_watch_on_it_arrives_is_not_released),
		STORY(permit_deleted_before_the_watch_on_it_arrives_is_not_released),
		STORY(lock_whose_deletion_is_heard_during_its_release_is_not_released),
		STORY(permit_whose_deletion_is_heard_during_its_release_is_not_released),
		STORY(release_that_nobody_disturbs_is_a_release),
		STORY(release_of_several_may_take_longer_than_one_command),
		STORY(acquire_in_missing_folders_takes_its_time),
		STORY(many_permits_left_on_a_slow_line_go_one_by_one),
	};
	return cmocka_run_group_tests(tests, start, stop_all);
}
