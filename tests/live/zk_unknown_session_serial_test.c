/* Answers that are lost or come late on ZooKeeper, while the nodes that they are about change. */
#include "live/barrier.h"
#include "live/zk_permits_faults.h"

#define MESSAGE "__REVOKE__"

#define SESSION_MS 10000

/* Shorter than any answer here, and longer than those to some pings. */
#define ANSWER_BYTES 70

/* Calls last longer than it takes to connect again: what can be repeated is. */
static void begin_patient(void)
{
	command_timeout_ms = 15000;
	begin_proxied(NULL, 0, SESSION_MS);
}

/* Until the answer to a question is in the proxy, which holds it. */
static void wait_for_answer(long long bytes_before)
{
	WAIT_UNTIL(proxy_reply_bytes(proxy) - bytes_before >= ANSWER_BYTES, SOON_MS);
}

/* The answers so far are lost for good. The client does not reconnect before answers pass again. */
static void cut_and_mend(void)
{
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	proxy_drop_replies(proxy, false);
	proxy_refuse(proxy, false);
}

/* The call returns this. */
static void expect_end(struct done *done, int result, int64_t number)
{
	WAIT_UNTIL(atomic_load(&done->calls) == 1, 20000);
	expect_done(done, result, number);
	free(done);
}

static bool has_message(const char *path)
{
	struct zk_raw_data data;
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	bool has = strcmp(data.bytes, MESSAGE) == 0;
	free(data.bytes);
	return has;
}

/* ---- a node of our own ---- */

static void plain_node_with_other_data_is_still_our_own(void **state)
{
	(void)state;
	begin_patient();
	hf_lock *lock = open_named(pair.one, HF_PLAIN, "orders");
	proxy_drop_replies(proxy, true);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.wait_ms = 15000));
	WAIT_UNTIL(zk_raw_exists(zk_eye, "/orders", NULL) == 0, SOON_MS);
	assert_int_equal(zk_raw_set(zk_eye, "/orders", MESSAGE, -1), 0);
	cut_and_mend();
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(zk_raw_exists(zk_eye, "/orders", NULL), ZK_RAW_NO_NODE);
	waiter_free(waiter);
	hf_lock_close(lock);
	end();
}

/* ---- requests that must not be repeated ---- */

/* Asks for the lock. Where the holders are listed first, that answer arrives; the next does not. */
static struct done *ask_unanswered(hf_lock *lock, hf_kind kind)
{
	struct done *done = check_alloc(sizeof(*done));
	long long bytes = proxy_reply_bytes(proxy);
	proxy_hold_replies(proxy, kind != HF_PLAIN);
	proxy_drop_replies(proxy, kind == HF_PLAIN);
	ASSERT_OK(hf_lock_revoke_async(lock, note_done, done));
	if (kind != HF_PLAIN)
		wait_for_answer(bytes);
	proxy_drop_replies(proxy, true);
	proxy_hold_replies(proxy, false);
	return done;
}

static void take_it(hf_lock *lock, hf_kind kind, const char *value, char *ret_path, size_t size)
{
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.value = value, .revocable = 1)));
	if (kind == HF_PLAIN)
		snprintf(ret_path, size, "/orders");
	else
		read_only_child(zk_eye, "/orders", ret_path, size, NULL);
}

static void check_lost_answer_to_a_revoke(hf_kind kind)
{
	char path[700];
	begin_patient();
	hf_lock *asks = open_named(pair.one, kind, "orders");
	hf_lock *holds = open_named(pair.two, kind, "orders");
	take_it(holds, kind, "first", path, sizeof path);
	struct done *done = ask_unanswered(asks, kind);
	WAIT_UNTIL(has_message(path), SOON_MS);
	ASSERT_OK(hf_lock_release(holds));
	take_it(holds, kind, "second", path, sizeof path);
	cut_and_mend();
	expect_end(done, HF_EUNKNOWN, 0);
	WAIT_UNTIL(hf_client_ping(pair.one, NULL) == 0, 20000);
	assert_false(has_message(path));
	ASSERT_OK(hf_lock_release(holds));
	hf_lock_close(asks);
	hf_lock_close(holds);
	end();
}

static void next_holder_is_not_revoked_because_an_answer_was_lost(void **state)
{
	(void)state;
	check_lost_answer_to_a_revoke(HF_REENTRANT);
}

static void next_holder_of_a_plain_lock_is_not_revoked_because_an_answer_was_lost(void **state)
{
	(void)state;
	check_lost_answer_to_a_revoke(HF_PLAIN);
}

static void barrier_that_was_set_again_is_not_removed_because_an_answer_was_lost(void **state)
{
	struct done *done = check_alloc(sizeof(*done));

	(void)state;
	begin_patient();
	hf_barrier *mine = open_barrier(pair.one, "gate");
	hf_barrier *theirs = open_barrier(pair.two, "gate");
	ASSERT_OK(hf_barrier_set(theirs));
	proxy_drop_replies(proxy, true);
	ASSERT_OK(hf_barrier_remove_async(mine, note_done, done));
	WAIT_UNTIL(zk_raw_exists(zk_eye, "/gate", NULL) == ZK_RAW_NO_NODE, SOON_MS);
	ASSERT_OK(hf_barrier_set(theirs));
	cut_and_mend();
	expect_end(done, HF_EUNKNOWN, 0);
	WAIT_UNTIL(hf_client_ping(pair.one, NULL) == 0, 20000);
	assert_int_equal(is_set(theirs), 1);
	ASSERT_OK(hf_barrier_remove(mine));
	assert_int_equal(is_set(theirs), 0);
	hf_barrier_close(mine);
	hf_barrier_close(theirs);
	end();
}

/* ---- holders that vanish ---- */

/* This many of two readers, the last first, leave between the list and the force. */
static void check_vanishing_readers(int vanish)
{
	struct done *done = check_alloc(sizeof(*done));
	hf_owner *owners[] = {new_owner(), new_owner()};
	char path[700];
	begin_patient();
	hf_lock *forces = open_named(pair.one, HF_READ, "orders");
	hf_lock *reads = open_named(pair.two, HF_READ, "orders");
	for (int i = 0; i < 2; i++)
		ASSERT_OK(hf_lock_acquire(reads, HF_ACQUIRE(.owner = owners[i])));
	long long bytes = proxy_reply_bytes(proxy);
	proxy_hold_replies(proxy, true);
	ASSERT_OK(hf_lock_force_release_async(forces, note_done, done));
	wait_for_answer(bytes);
	for (int i = 0; i < vanish; i++) {
		newest_child(zk_eye, "/orders", path, sizeof path);
		assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	}
	proxy_hold_replies(proxy, false);
	expect_end(done, 0, vanish < 2);
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	for (int i = 0; i < 2; i++) {
		WAIT_UNTIL(hf_lock_state(reads, owners[i]) == HF_LOST, SOON_MS);
		ASSERT_RC(hf_lock_release_with(reads, HF_RELEASE(.owner = owners[i])), HF_ELOST);
		hf_owner_free(owners[i]);
	}
	hf_lock_close(forces);
	hf_lock_close(reads);
	end();
}

static void reader_that_vanishes_before_the_force_does_not_hide_the_other(void **state)
{
	(void)state;
	check_vanishing_readers(1);
}

static void lock_whose_readers_all_vanish_before_the_force_was_not_held(void **state)
{
	(void)state;
	check_vanishing_readers(2);
}

/* ---- a number that comes too late ---- */

static void make_size(const char *path, unsigned char size)
{
	const unsigned char bytes[] = {0, 0, 0, size};
	assert_int_equal(zk_raw_create_bytes(zk_eye, path, bytes, sizeof bytes, ZK_RAW_PERSISTENT,
	                                     NULL, NULL),
	                 0);
}

static void total_of_the_node_before_does_not_count_any_more(void **state)
{
	struct done *done = check_alloc(sizeof(*done));
	hf_permit_id id;

	(void)state;
	begin_proxied(NULL, 0, SESSION_MS);
	make_size("/large", 5);
	make_size("/small", 1);
	ASSERT_OK(hf_permits_total_from(pair.mine, "large"));
	long long bytes = proxy_reply_bytes(proxy);
	proxy_hold_replies(proxy, true);
	ASSERT_OK(hf_permits_total_async(pair.mine, note_done, done));
	wait_for_answer(bytes);
	ASSERT_OK(hf_permits_total_from(pair.mine, "small"));
	proxy_hold_replies(proxy, false);
	/* It may report either of the two. */
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	assert_int_equal(done->result, 0);
	take(pair.mine, 1, 0, &id);
	ASSERT_RC(try_take(pair.mine, 1, HF_NOWAIT), HF_EBUSY);
	assert_int_equal(total(pair.mine), 1);
	ASSERT_OK(give(pair.mine, id));
	free(done);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAULT_STORY(plain_node_with_other_data_is_still_our_own),
		FAULT_STORY(next_holder_is_not_revoked_because_an_answer_was_lost),
		FAULT_STORY(next_holder_of_a_plain_lock_is_not_revoked_because_an_answer_was_lost),
		FAULT_STORY(barrier_that_was_set_again_is_not_removed_because_an_answer_was_lost),
		FAULT_STORY(reader_that_vanishes_before_the_force_does_not_hide_the_other),
		FAULT_STORY(lock_whose_readers_all_vanish_before_the_force_was_not_held),
		FAULT_STORY(total_of_the_node_before_does_not_count_any_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
