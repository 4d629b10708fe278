/* The barrier on a real ZooKeeper: a node that keeps all clients waiting until it is removed. */
#include "live/barrier.h"
#include "live/zk.h"

#include "support/process.h"

#include <malloc.h>
#include <unistd.h>

static struct barrier_pair begin(void)
{
	return open_gate(open_zk(""), open_zk(""));
}

static void end(struct barrier_pair *pair)
{
	close_gate(pair);
	ASSERT_OK(hf_client_close(pair->one));
	ASSERT_OK(hf_client_close(pair->two));
}

static long long watches(void)
{
	return test_zookeeper_value(zk_server, 0, "zk_watch_count");
}

/* Starts a waiter of the second client, and returns when it has a watch. */
static struct waiter *sleeper(struct barrier_pair *pair, const hf_wait_options *options)
{
	struct waiter *guest = guest_start(PASS, pair->theirs, options);
	WAIT_UNTIL(watches() == 1, SOON_MS);
	WAIT_UNTIL(stats_of(pair->two).waiting == 1, SOON_MS);
	return guest;
}

/* ---- what it is on the server ---- */

static void barrier_is_a_persistent_node(void **state)
{
	struct zk_raw_stat stat;
	struct zk_raw_data data;
	hf_client *client = open_at(test_zookeeper_url(zk_server, 0), "",
	                            HF_CLIENT(.describe = "closed for repairs"));
	hf_barrier *barrier = open_barrier(client, "a/b/gate");

	(void)state;
	ASSERT_OK(hf_barrier_set(barrier));
	static const char *const parents[] = {"/a", "/a/b"};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(zk_raw_exists(zk_eye, parents[i], &stat), 0);
		assert_int_equal(stat.owner, 0);
		assert_int_equal(stat.length, 0);
		assert_int_equal(stat.children, 1);
	}
	assert_int_equal(zk_raw_get(zk_eye, "/a/b/gate", &data, &stat), 0);
	assert_int_equal(stat.owner, 0);
	assert_int_equal(stat.version, 0);
	ASSERT_CONTAINS(data.bytes, "closed for repairs");
	free(data.bytes);
	ASSERT_OK(hf_barrier_remove(barrier));
	assert_int_equal(zk_raw_exists(zk_eye, "/a/b/gate", NULL), ZK_RAW_NO_NODE);
	hf_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
}

static void set_and_remove_do_nothing_the_second_time(void **state)
{
	struct zk_raw_stat first, second;
	(void)state;
	struct barrier_pair pair = begin();
	assert_int_equal(is_set(pair.mine), 0);
	ASSERT_OK(hf_barrier_remove(pair.mine));
	ASSERT_OK(hf_barrier_set(pair.mine));
	assert_int_equal(zk_raw_exists(zk_eye, "/gate", &first), 0);
	ASSERT_OK(hf_barrier_set(pair.mine));
	ASSERT_OK(hf_barrier_set(pair.theirs));
	assert_int_equal(zk_raw_exists(zk_eye, "/gate", &second), 0);
	assert_int_equal(first.czxid, second.czxid);
	assert_int_equal(first.mzxid, second.mzxid);
	assert_int_equal(is_set(pair.mine), 1);
	assert_int_equal(is_set(pair.theirs), 1);
	ASSERT_OK(hf_barrier_remove(pair.theirs));
	ASSERT_OK(hf_barrier_remove(pair.theirs));
	ASSERT_OK(hf_barrier_remove(pair.mine));
	assert_int_equal(is_set(pair.theirs), 0);
	ASSERT_RC(hf_barrier_is_set(pair.mine, NULL), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "ret_set must not be NULL");
	assert_int_equal(zk_raw_exists(zk_eye, "/gate", NULL), ZK_RAW_NO_NODE);
	end(&pair);
}

static void barrier_below_a_chroot_exists(void **state)
{
	assert_int_equal(zk_raw_create(zk_eye, "/apps", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	hf_client *client = open_zk("/apps");
	hf_barrier *barrier = open_barrier(client, "x/gate");

	(void)state;
	ASSERT_OK(hf_barrier_set(barrier));
	assert_int_equal(zk_raw_exists(zk_eye, "/apps/x/gate", NULL), 0);
	assert_int_equal(is_set(barrier), 1);
	ASSERT_OK(hf_barrier_remove(barrier));
	assert_int_equal(count_children(zk_eye, "/apps/x"), 0);
	hf_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
}

static void barrier_outlives_its_maker(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	ASSERT_OK(hf_client_close(pair.one));
	ASSERT_RC(pass_now(pair.theirs), HF_EBUSY);
	assert_int_equal(is_set(pair.theirs), 1);
	ASSERT_RC(hf_barrier_remove(pair.mine), HF_ECLOSED);
	ASSERT_OK(hf_barrier_remove(pair.theirs));
	ASSERT_OK(pass_now(pair.theirs));
	pair.one = NULL;
	end(&pair);
}

/* ---- refused calls ---- */

static void node_with_children_is_not_removed_and_says_why(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	assert_int_equal(zk_raw_create(zk_eye, "/gate/x", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	ASSERT_RC(hf_barrier_remove(pair.mine), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "not empty");
	assert_int_equal(is_set(pair.mine), 1);
	assert_int_equal(zk_raw_delete(zk_eye, "/gate/x", -1), 0);
	ASSERT_OK(hf_barrier_remove(pair.mine));
	end(&pair);
}

static void node_that_can_have_no_children_refuses_a_barrier_below(void **state)
{
	hf_client *client = open_zk("");
	hf_barrier *barrier = open_barrier(client, "lock/gate");

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/lock", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	int rc = hf_barrier_set(barrier);
	assert_true(rc == HF_EREFUSED || rc == HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), "children");
	assert_int_equal(is_set(barrier), 0);
	assert_int_equal(zk_raw_delete(zk_eye, "/lock", -1), 0);
	ASSERT_OK(hf_barrier_set(barrier));
	hf_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
}

static void digest_keeps_others_from_removing_it(void **state)
{
	hf_client *mine = open_zk("?auth=digest:me:secret");
	hf_client *other = open_zk("");
	hf_barrier *barrier = open_barrier(mine, "a/gate");
	hf_barrier *wrong = open_barrier(other, "a/gate");
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(zk_server, 0), 0);
	int set = -7;

	(void)state;
	ASSERT_OK(hf_barrier_set(barrier));
	ASSERT_RC(hf_barrier_remove(wrong), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "auth");
	ASSERT_RC(hf_barrier_is_set(wrong, &set), HF_EREFUSED);
	ASSERT_RC(hf_barrier_wait(wrong, HF_WAIT(.wait_ms = SOON_MS)), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "auth");
	assert_int_equal(is_set(barrier), 1);
	ASSERT_OK(hf_barrier_remove(barrier));
	assert_int_equal(zk_raw_auth(raw, "digest", "me:secret"), 0);
	assert_int_equal(zk_raw_delete(raw, "/a", -1), 0);
	zk_raw_close(raw);
	hf_barrier_close(barrier);
	hf_barrier_close(wrong);
	ASSERT_OK(hf_client_close(mine));
	ASSERT_OK(hf_client_close(other));
}

static void what_makes_no_sense_is_refused(void **state)
{
	hf_client *client = open_zk("");
	hf_barrier *barrier = NULL;
	hf_latch *latch = NULL;
	int set = -7;

	(void)state;
	ASSERT_RC(hf_barrier_open(NULL, "gate", &barrier), HF_EINVAL);
	ASSERT_RC(hf_barrier_open(client, NULL, &barrier), HF_EINVAL);
	ASSERT_RC(hf_barrier_open(client, "gate", NULL), HF_EINVAL);
	ASSERT_RC(hf_barrier_open(client, "", &barrier), HF_EINVAL);
	ASSERT_RC(hf_barrier_open(client, "a//b", &barrier), HF_EINVAL);
	assert_null(barrier);
	ASSERT_RC(hf_barrier_set(NULL), HF_EINVAL);
	ASSERT_RC(hf_barrier_remove(NULL), HF_EINVAL);
	ASSERT_RC(hf_barrier_is_set(NULL, &set), HF_EINVAL);
	ASSERT_RC(hf_barrier_wait(NULL, NULL), HF_EINVAL);
	barrier = open_barrier(client, "gate");
	ASSERT_RC(hf_barrier_wait(barrier, HF_WAIT(.wait_ms = -2)), HF_EINVAL);
	assert_int_equal(set, -7);
	/* And a latch that counts is of the other servers. */
	ASSERT_RC(hf_latch_open(client, "gate", &latch), HF_ENOTSUP);
	ASSERT_CONTAINS(hf_error_detail(), "hf_barrier");
	hf_barrier_close(NULL);
	hf_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
}

/* ---- waiting ---- */

static void wait_without_a_barrier_returns_at_once(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_wait(pair.mine, NULL));
	ASSERT_OK(pass_now(pair.mine));
	ASSERT_OK(hf_barrier_wait(pair.mine, HF_WAIT(.wait_ms = 5000)));
	assert_int_equal(stats_of(pair.one).waits, 0);
	assert_int_equal(watches(), 0);
	assert_int_equal(zk_raw_exists(zk_eye, "/gate", NULL), ZK_RAW_NO_NODE);
	end(&pair);
}

static void one_attempt_and_a_short_wait_change_nothing(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	ASSERT_RC(pass_now(pair.theirs), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "gate");
	long long started_at = test_now_ms();
	ASSERT_TIMES_OUT(200, hf_barrier_wait(pair.theirs, HF_WAIT(.wait_ms = within_ms)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 200, 2000);
	ASSERT_CONTAINS(hf_error_detail(), "gate");
	assert_int_equal(stats_of(pair.two).timeouts, 1);
	assert_int_equal(stats_of(pair.two).waiting, 0);
	assert_int_equal(is_set(pair.mine), 1);
	assert_int_equal(count_children(zk_eye, "/gate"), 0);
	end(&pair);
}

static void removal_lets_the_waiter_pass(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	struct waiter *guest = sleeper(&pair, NULL);
	assert_false(waiter_is_over(guest));
	long long removed_at = test_now_ms();
	ASSERT_OK(hf_barrier_remove(pair.mine));
	waiter_join(guest, 0);
	ASSERT_BETWEEN(test_now_ms() - removed_at, 0, ZK_WOKEN_MS);
	assert_int_equal(stats_of(pair.two).waits, 1);
	assert_int_equal(stats_of(pair.two).waiting, 0);
	assert_int_equal(watches(), 0);
	end(&pair);
}

static void removal_by_hand_lets_the_waiter_pass(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	assert_int_equal(zk_raw_create(zk_eye, "/gate", "by hand", ZK_RAW_PERSISTENT, NULL, NULL),
	                 0);
	struct waiter *guest = sleeper(&pair, HF_WAIT(.wait_ms = 15000));
	/* A change of the data wakes the waiter, and is not a removal. */
	assert_int_equal(zk_raw_set(zk_eye, "/gate", "still closed", -1), 0);
	WAIT_UNTIL(stats_of(pair.two).wakeups == 1, SOON_MS);
	WAIT_UNTIL(watches() == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	assert_false(waiter_is_over(guest));
	assert_int_equal(zk_raw_delete(zk_eye, "/gate", -1), 0);
	waiter_join(guest, 0);
	end(&pair);
}

#define GUESTS 24

static void all_waiters_pass_together_by_one_watch_each_client(void **state)
{
	struct waiter *guests[GUESTS];
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	for (int i = 0; i < GUESTS; i++)
		guests[i] = guest_start(PASS, i % 2 ? pair.mine : pair.theirs, NULL);
	WAIT_UNTIL(stats_of(pair.one).waiting == GUESTS / 2 &&
	                   stats_of(pair.two).waiting == GUESTS / 2 && watches() == 2,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	assert_int_equal(watches(), 2);
	for (int i = 0; i < GUESTS; i++)
		assert_false(waiter_is_over(guests[i]));
	ASSERT_OK(hf_barrier_remove(pair.mine));
	for (int i = 0; i < GUESTS; i++)
		waiter_join(guests[i], 0);
	assert_int_equal(stats_of(pair.one).waiting + stats_of(pair.two).waiting, 0);
	assert_int_equal(watches(), 0);
	end(&pair);
}

static void cancelled_wait_ends_at_once(void **state)
{
	hf_cancel *cancel = new_cancel();
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	struct waiter *guest = sleeper(&pair, HF_WAIT(.cancel = cancel));
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_join(guest, HF_ECANCELLED);
	ASSERT_BETWEEN(test_now_ms() - fired_at, 0, ZK_WOKEN_MS);
	assert_int_equal(stats_of(pair.two).waiting, 0);
	assert_int_equal(is_set(pair.theirs), 1);
	ASSERT_RC(hf_barrier_wait(pair.theirs, HF_WAIT(.cancel = cancel)), HF_ECANCELLED);
	hf_cancel_free(cancel);
	end(&pair);
}

static void closing_answers_the_waiters_and_leaves_the_barrier(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	struct waiter *guest = sleeper(&pair, NULL);
	long long closed_at = test_now_ms();
	ASSERT_OK(hf_client_close(pair.two));
	ASSERT_BETWEEN(test_now_ms() - closed_at, 0, 4000);
	waiter_join(guest, HF_ECLOSED);
	ASSERT_RC(hf_barrier_wait(pair.theirs, NULL), HF_ECLOSED);
	ASSERT_RC(hf_barrier_set(pair.theirs), HF_ECLOSED);
	ASSERT_RC(hf_barrier_wait_async(pair.theirs, NULL, fail_on_done, NULL), HF_ECLOSED);
	assert_int_equal(is_set(pair.mine), 1);
	pair.two = NULL;
	end(&pair);
}

static void handle_closed_while_others_wait_takes_nothing_away(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	hf_barrier *another = open_barrier(pair.two, "gate");
	ASSERT_OK(hf_barrier_set(pair.mine));
	struct waiter *guest = sleeper(&pair, NULL);
	hf_barrier_close(another);
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	ASSERT_OK(hf_barrier_remove(pair.mine));
	waiter_join(guest, 0);
	end(&pair);
}

/* A waiter that checks at that moment passes, and the others keep waiting: none is forgotten. */
static void barrier_set_again_at_once_forgets_nobody(void **state)
{
	struct waiter *guests[GUESTS];
	int over = 0;

	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	for (int i = 0; i < GUESTS; i++)
		guests[i] = guest_start(PASS, i % 2 ? pair.mine : pair.theirs, NULL);
	WAIT_UNTIL(watches() == 2, SOON_MS);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(zk_raw_delete(zk_eye, "/gate", -1), 0);
		assert_int_equal(zk_raw_create(zk_eye, "/gate", "", ZK_RAW_PERSISTENT, NULL, NULL),
		                 0);
	}
	/* A waiter that has not passed by now sees it set, and has a watch on it. */
	for (int i = 0; i < GUESTS; i++)
		over += waiter_is_over(guests[i]);
	if (over < GUESTS)
		WAIT_UNTIL(watches() > 0 ||
		                   stats_of(pair.one).waiting + stats_of(pair.two).waiting == 0,
		           SOON_MS);
	assert_int_equal(zk_raw_delete(zk_eye, "/gate", -1), 0);
	for (int i = 0; i < GUESTS; i++)
		waiter_join(guests[i], 0);
	end(&pair);
}

static void barrier_set_again_stops_later_waiters(void **state)
{
	(void)state;
	struct barrier_pair pair = begin();
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(hf_barrier_set(pair.mine));
		struct waiter *guest = sleeper(&pair, NULL);
		ASSERT_RC(pass_now(pair.theirs), HF_EBUSY);
		assert_false(waiter_is_over(guest));
		ASSERT_OK(hf_barrier_remove(pair.mine));
		waiter_join(guest, 0);
	}
	end(&pair);
}

/* A loop that waits for a moment again and again must accumulate neither watches nor memory. */
static void waits_that_time_out_do_not_pile_up(void **state)
{
	size_t used = 0;

	(void)state;
	struct barrier_pair pair = begin();
	ASSERT_OK(hf_barrier_set(pair.mine));
	for (int i = 0; i < 240; i++) {
		ASSERT_TIMES_OUT(5, hf_barrier_wait(pair.theirs, HF_WAIT(.wait_ms = within_ms)));
		if (i == 40)
			used = mallinfo2().uordblks;
	}
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	ASSERT_BETWEEN((long long)mallinfo2().uordblks - (long long)used, -1000000, 30000);
	assert_int_equal(watches(), 1);
	uint64_t wakeups = stats_of(pair.two).wakeups;
	ASSERT_OK(hf_barrier_remove(pair.mine));
	WAIT_UNTIL(watches() == 0, SOON_MS);
	WAIT_UNTIL(stats_of(pair.two).wakeups == wakeups + 1, SOON_MS);
	ASSERT_OK(hf_barrier_wait(pair.theirs, NULL));
	end(&pair);
}

/* ---- asynchronous forms ---- */

static void asynchronous_forms_say_the_same(void **state)
{
	struct done done = {0};
	(void)state;
	struct barrier_pair pair = begin();
	EXPECT_DONE(hf_barrier_is_set_async(pair.mine, DONE), 0, 0);
	EXPECT_DONE(hf_barrier_wait_async(pair.mine, NULL, DONE), 0, 0);
	struct done set = {0};
	ASSERT_OK(hf_barrier_set_async(pair.mine, note_done, &set));
	WAIT_UNTIL(atomic_load(&set.calls) == 1, SOON_MS);
	assert_int_equal(set.result, 0);
	EXPECT_DONE(hf_barrier_is_set_async(pair.theirs, DONE), 0, 1);
	EXPECT_DONE(hf_barrier_wait_async(pair.theirs, HF_WAIT(.wait_ms = HF_NOWAIT), DONE),
	            HF_EBUSY, 0);
	EXPECT_DONE(hf_barrier_wait_async(pair.theirs, HF_WAIT(.wait_ms = 100), DONE), HF_ETIMEDOUT,
	            0);
	ASSERT_OK(hf_barrier_wait_async(pair.theirs, NULL, note_done, &done));
	WAIT_UNTIL(stats_of(pair.two).waiting == 1 && watches() == 1, SOON_MS);
	assert_int_equal(atomic_load(&done.calls), 0);
	struct done removed = {0};
	ASSERT_OK(hf_barrier_remove_async(pair.mine, note_done, &removed));
	expect_done(&done, 0, 0);
	WAIT_UNTIL(atomic_load(&removed.calls) == 1, SOON_MS);
	assert_int_equal(removed.result, 0);
	assert_int_equal(is_set(pair.mine), 0);
	end(&pair);
}

/* ---- another process ---- */

static struct {
	hf_client *client;
	hf_barrier *barrier;
	hf_double_barrier *in, *out;
} parent;

static void use_in_child(int pipe_fd)
{
	char line[200];
	int set = -7;
	int length = snprintf(
		line, sizeof line, "%d %d %d %d %d %d %d %d", hf_barrier_set(parent.barrier),
		hf_barrier_remove(parent.barrier), hf_barrier_is_set(parent.barrier, &set),
		hf_barrier_wait(parent.barrier, NULL), hf_double_barrier_enter(parent.out, NULL),
		hf_double_barrier_leave(parent.out, NULL), hf_double_barrier_leave(parent.in, NULL),
		(int)hf_double_barrier_state(parent.in));
	(void)!write(pipe_fd, line, (size_t)length);
	hf_barrier_close(parent.barrier);
	hf_double_barrier_close(parent.in);
	hf_double_barrier_close(parent.out);
	(void)hf_client_close(parent.client);
	_exit(0);
}

static void forked_child_touches_nothing(void **state)
{
	char output[200], expected[200];

	(void)state;
	parent.client = open_zk("");
	parent.barrier = open_barrier(parent.client, "gate");
	ASSERT_OK(hf_double_barrier_open(parent.client, "phase", 1, &parent.in));
	ASSERT_OK(hf_double_barrier_open(parent.client, "phase", 1, &parent.out));
	ASSERT_OK(hf_barrier_set(parent.barrier));
	ASSERT_OK(hf_double_barrier_enter(parent.in, NULL));
	assert_int_equal(process_fork(use_in_child, output, sizeof output), 0);
	snprintf(expected, sizeof expected, "%d %d %d %d %d %d %d %d", HF_EFORKED, HF_EFORKED,
	         HF_EFORKED, HF_EFORKED, HF_EFORKED, HF_EFORKED, HF_EFORKED, HF_FREE);
	assert_string_equal(output, expected);
	ASSERT_OK(hf_client_ping(parent.client, NULL));
	assert_int_equal(is_set(parent.barrier), 1);
	assert_int_equal(hf_double_barrier_state(parent.in), HF_HELD);
	ASSERT_OK(hf_double_barrier_leave(parent.in, NULL));
	hf_barrier_close(parent.barrier);
	hf_double_barrier_close(parent.in);
	hf_double_barrier_close(parent.out);
	ASSERT_OK(hf_client_close(parent.client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(barrier_is_a_persistent_node),
		ZK_STORY(set_and_remove_do_nothing_the_second_time),
		ZK_STORY(barrier_below_a_chroot_exists),
		ZK_STORY(barrier_outlives_its_maker),
		ZK_STORY(node_with_children_is_not_removed_and_says_why),
		ZK_STORY(node_that_can_have_no_children_refuses_a_barrier_below),
		ZK_STORY(digest_keeps_others_from_removing_it),
		ZK_STORY(what_makes_no_sense_is_refused),
		ZK_STORY(wait_without_a_barrier_returns_at_once),
		ZK_STORY(one_attempt_and_a_short_wait_change_nothing),
		ZK_STORY(removal_lets_the_waiter_pass),
		ZK_STORY(removal_by_hand_lets_the_waiter_pass),
		ZK_STORY(all_waiters_pass_together_by_one_watch_each_client),
		ZK_STORY(cancelled_wait_ends_at_once),
		ZK_STORY(closing_answers_the_waiters_and_leaves_the_barrier),
		ZK_STORY(handle_closed_while_others_wait_takes_nothing_away),
		ZK_STORY(barrier_set_again_at_once_forgets_nobody),
		ZK_STORY(barrier_set_again_stops_later_waiters),
		ZK_STORY(waits_that_time_out_do_not_pile_up),
		ZK_STORY(asynchronous_forms_say_the_same),
		ZK_STORY(forked_child_touches_nothing),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
