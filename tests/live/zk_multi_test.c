/* Multi locks whose members are on ZooKeeper, and on ZooKeeper and Redis together. */
#include "live/zk.h"

#include "support/counting.h"

/* ---- both servers, and the equivalent of two processes with a client at each ---- */

struct world {
	struct seen seen; /* by the first of each */
	hf_client *zk_one, *zk_two;
	hf_client *redis_one, *redis_two;
};

/* Not on the stack: what a failed test leaves open is closed after it. */
static struct world world;

static int start_both(void **state)
{
	(void)live_start(state);
	return zk_start(state);
}

static int stop_both(void **state)
{
	(void)zk_stop(state);
	return live_stop(state);
}

static int sweep_both(void **state)
{
	(void)live_flush(state);
	return zk_sweep(state);
}

static void begin(int64_t session_ms)
{
	const char *zk = test_zookeeper_url(zk_server, 0);
	memset(&world, 0, sizeof world);
	hf_client_options *options = HF_CLIENT(.watchdog_ms = session_ms, EVENTS_TO(&world.seen));
	world.zk_one = open_url(zk, options);
	world.redis_one = open_client(options);
	options->on_event = NULL;
	world.zk_two = open_url(zk, options);
	world.redis_two = open_client(options);
}

static int close_world(void **state)
{
	hf_client *clients[] = {world.zk_one, world.zk_two, world.redis_one, world.redis_two};
	(void)state;
	memset(&world, 0, sizeof world);
	for (int i = 0; i < 4; i++)
		(void)hf_client_close(clients[i]);
	return 0;
}

/* Nothing is held, waited for or left anywhere. */
static void end(void)
{
	hf_client *clients[] = {world.zk_one, world.zk_two, world.redis_one, world.redis_two};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(stats_of(clients[i]).held, 0);
		assert_int_equal(stats_of(clients[i]).waiting, 0);
	}
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	(void)close_world(NULL);
}

#define MULTI_STORY(name) cmocka_unit_test_setup_teardown(name, sweep_both, close_world)

/* Makes one lock of the members, and closes their handles, of which the multi lock has copies. */
static hf_lock *combine(hf_lock *first, hf_lock *second)
{
	hf_lock *multi = NULL;
	hf_lock *members[] = {first, second};
	ASSERT_OK(hf_lock_open_multi(members, 2, &multi));
	hf_lock_close(first);
	hf_lock_close(second);
	return multi;
}

/* Two names on ZooKeeper, in this order or the opposite. */
static hf_lock *open_two(hf_client *client, bool reversed)
{
	return combine(open_lock(client, reversed ? "b" : "a"),
	               open_lock(client, reversed ? "a" : "b"));
}

/* One name on each. */
static hf_lock *open_mixed(hf_client *zk, hf_client *redis, bool reversed)
{
	hf_lock *near = open_lock(zk, "a"), *far = open_lock(redis, "b");
	return reversed ? combine(far, near) : combine(near, far);
}

static int nodes(const char *folder)
{
	int count = count_children(zk_eye, folder);
	return count < 0 ? 0 : count;
}

/* ---- members on ZooKeeper ---- */

static void both_names_are_held_until_the_release(void **state)
{
	int yes = -7;
	int64_t number = -7;

	(void)state;
	begin(0);
	hf_lock *multi = open_two(world.zk_one, false);
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_int_equal(nodes("/a"), 1);
	assert_int_equal(nodes("/b"), 1);
	assert_int_equal(hf_lock_state(multi, NULL), HF_HELD);
	assert_true(hf_lock_remaining(multi, NULL) > 5000);
	ASSERT_OK(hf_lock_is_held(multi, NULL, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_lock_hold_count(multi, NULL, &number));
	assert_int_equal(number, 2);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(nodes("/a") + nodes("/b"), 2);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(nodes("/a") + nodes("/b"), 0);
	assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	ASSERT_RC(hf_lock_release(multi), HF_ENOTHELD);
	hf_lock_close(multi);
	end();
}

static void member_that_is_taken_leaves_the_others_free(void **state)
{
	(void)state;
	begin(0);
	hf_lock *multi = open_two(world.zk_one, false);
	/* The last one first, then the one that it would begin with. */
	for (int i = 0; i < 2; i++) {
		hf_lock *other = open_lock(world.zk_two, i ? "a" : "b");
		ASSERT_OK(hf_lock_acquire(other, NULL));
		ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
		WAIT_UNTIL(nodes("/a") + nodes("/b") == 1, SOON_MS);
		long long started_at = test_now_ms();
		ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 500)), HF_ETIMEDOUT);
		ASSERT_BETWEEN(test_now_ms() - started_at, 495, 2500);
		WAIT_UNTIL(nodes("/a") + nodes("/b") == 1, SOON_MS);
		assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
		assert_int_equal(hf_lock_state(other, NULL), HF_HELD);
		struct waiter *waiter = waiter_start(multi, NULL);
		WAIT_UNTIL(nodes(i ? "/a" : "/b") == 2, SOON_MS);
		ASSERT_OK(hf_lock_release(other));
		waiter_finish(waiter);
		hf_lock_close(other);
	}
	hf_lock_close(multi);
	end();
}

static void session_of_the_members_that_expires_loses_the_lock(void **state)
{
	(void)state;
	begin(6000);
	hf_lock *multi = open_two(world.zk_one, false);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	zk_raw_expire(test_zookeeper_host(zk_server, 0), first_owner(zk_eye, "/a"));
	WAIT_UNTIL(hf_lock_state(multi, NULL) == HF_LOST, ENDED_MS);
	assert_int_equal(hf_lock_remaining(multi, NULL), 0);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 2, 2000);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 10000)));
	assert_int_equal(hf_lock_state(multi, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(multi));
	hf_lock_close(multi);
	end();
}

static void reader_and_simple_mutex_are_held_as_one(void **state)
{
	(void)state;
	begin(0);
	hf_lock *mine = combine(open_named(world.zk_one, HF_READ, "a"),
	                        open_named(world.zk_one, HF_SIMPLE, "b"));
	hf_lock *theirs = combine(open_named(world.zk_two, HF_SIMPLE, "b"),
	                          open_named(world.zk_two, HF_READ, "a"));
	hf_lock *reader = open_named(world.zk_two, HF_READ, "a");
	hf_lock *writer = open_named(world.zk_two, HF_WRITE, "a");
	hf_lock *simple = open_named(world.zk_two, HF_SIMPLE, "b");
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	assert_int_equal(nodes("/a"), 1);
	assert_int_equal(nodes("/b/leases"), 1);
	ASSERT_OK(hf_lock_acquire(reader, HF_ACQUIRE(.wait_ms = 2000)));
	ASSERT_RC(hf_lock_acquire(simple, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(reader));
	ASSERT_RC(hf_lock_acquire(writer, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	/* It does not nest, and the level of the reader is given back. */
	ASSERT_RC(hf_lock_acquire(mine, HF_ACQUIRE(.wait_ms = 1000)), HF_EDEADLOCK);
	assert_int_equal(hf_lock_state(mine, NULL), HF_HELD);
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(nodes("/a") == 2 && nodes("/b/leases") == 2, SOON_MS);
	ASSERT_OK(hf_lock_release(mine));
	waiter_expect(waiter, 0);
	WAIT_UNTIL(nodes("/a") == 1 && nodes("/b/leases") == 1, SOON_MS);
	ASSERT_OK(waiter_release(waiter));
	WAIT_UNTIL(nodes("/a") == 0 && nodes("/b/leases") == 0 && nodes("/b/locks") == 0, SOON_MS);
	waiter_free(waiter);
	hf_lock *locks[] = {mine, theirs, reader, writer, simple};
	for (int i = 0; i < 5; i++)
		hf_lock_close(locks[i]);
	end();
}

/* ---- a member on each ---- */

static void member_on_each_server_is_held_until_the_release(void **state)
{
	int flag = -7;

	(void)state;
	begin(20000);
	hf_lock *multi = open_mixed(world.zk_one, world.redis_one, true);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_int_equal(nodes("/a"), 1);
	assert_true(is_held_by(live_raw, "b", world.redis_one));
	assert_int_equal(hf_lock_state(multi, NULL), HF_HELD);
	/* The least of both: of a session that is not all of it. */
	int64_t lease = 0;
	ASSERT_OK(hf_client_lease(world.zk_one, &lease));
	ASSERT_BETWEEN(hf_lock_remaining(multi, NULL), 1, lease);
	ASSERT_OK(hf_lock_release(multi));
	assert_int_equal(nodes("/a"), 0);
	assert_false(key_exists(live_raw, "b"));
	ASSERT_OK(hf_lock_is_locked(multi, &flag));
	assert_int_equal(flag, 0);
	hf_lock_close(multi);
	end();
}

static void member_taken_on_either_server_leaves_the_other_free(void **state)
{
	(void)state;
	begin(0);
	hf_lock *multi = open_mixed(world.zk_one, world.redis_one, false);
	for (int i = 0; i < 2; i++) {
		hf_lock *other = i ? open_lock(world.redis_two, "b") : open_lock(world.zk_two, "a");
		ASSERT_OK(hf_lock_acquire(other, NULL));
		ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
		ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 500)), HF_ETIMEDOUT);
		ASSERT_CONTAINS(hf_error_detail(), i ? "b:" : "a:");
		WAIT_UNTIL(nodes("/a") == !i, SOON_MS);
		assert_int_equal(key_exists(live_raw, "b"), i);
		if (i)
			assert_true(is_held_by(live_raw, "b", world.redis_two));
		/* With a lease it is kept alive while the other one is waited for. */
		ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 2000, .lease_ms = 1500)),
		          HF_ETIMEDOUT);
		WAIT_UNTIL(nodes("/a") == !i, SOON_MS);
		struct waiter *waiter = waiter_start(multi, NULL);
		WAIT_UNTIL(nodes("/a") == (i ? 1 : 2), SOON_MS);
		ASSERT_OK(hf_lock_release(other));
		waiter_finish(waiter);
		hf_lock_close(other);
	}
	hf_lock_close(multi);
	end();
}

static void loss_of_either_member_is_the_loss_of_all(void **state)
{
	(void)state;
	begin(6000);
	hf_lock *multi = open_mixed(world.zk_one, world.redis_one, false);
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 10000)));
		if (i)
			assert_int_equal(raw_integer(live_raw, "DEL", "b", NULL), 1);
		else
			zk_raw_expire(test_zookeeper_host(zk_server, 0), first_owner(zk_eye, "/a"));
		WAIT_UNTIL(hf_lock_state(multi, NULL) == HF_LOST, ENDED_MS);
		assert_int_equal(hf_lock_remaining(multi, NULL), 0);
		WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == i + 1, 2000);
		/* The member that is left is held until it is given back. */
		assert_int_equal(nodes("/a"), i);
		assert_int_equal(key_exists(live_raw, "b"), !i);
		ASSERT_RC(hf_lock_release(multi), HF_ELOST);
		assert_int_equal(nodes("/a"), 0);
		assert_false(key_exists(live_raw, "b"));
		assert_int_equal(hf_lock_state(multi, NULL), HF_FREE);
	}
	hf_lock_close(multi);
	end();
}

static void lease_of_both_expires_and_is_extended(void **state)
{
	(void)state;
	begin(0);
	hf_lock *multi = open_mixed(world.zk_one, world.redis_one, false);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.lease_ms = 2000)));
	ASSERT_BETWEEN(hf_lock_remaining(multi, NULL), 1, 2000);
	ASSERT_OK(hf_lock_extend(multi, NULL, 4000));
	WAIT_UNTIL(test_now_ms() - started_at > 2500, 3000);
	assert_int_not_equal(hf_lock_state(multi, NULL), HF_LOST);
	assert_int_equal(nodes("/a"), 1);
	assert_true(key_exists(live_raw, "b"));
	WAIT_UNTIL(hf_lock_state(multi, NULL) == HF_LOST, SOON_MS);
	WAIT_UNTIL(nodes("/a") == 0 && !key_exists(live_raw, "b"), SOON_MS);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	hf_lock_close(multi);
	end();
}

/* One name on both servers: whatever order they are given in, they are taken in one. */
static void same_name_on_both_servers_is_two_members(void **state)
{
	(void)state;
	begin(0);
	hf_lock *mine = combine(open_lock(world.zk_one, "a"), open_lock(world.redis_one, "a"));
	hf_lock *theirs = combine(open_lock(world.redis_two, "a"), open_lock(world.zk_two, "a"));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	assert_int_equal(nodes("/a"), 1);
	assert_true(is_held_by(live_raw, "a", world.redis_one));
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	WAIT_UNTIL(nodes("/a") == 1, SOON_MS);
	struct waiter *waiter = waiter_start(theirs, NULL);
	ASSERT_RC(hf_lock_acquire(mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .owner = NULL)), 0);
	ASSERT_OK(hf_lock_release(mine));
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(mine));
	waiter_finish(waiter);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	end();
}

static void asynchronous_acquire_takes_both(void **state)
{
	struct done taken = {0}, given = {0};
	hf_owner *owner = new_owner();

	(void)state;
	begin(0);
	hf_lock *multi = open_mixed(world.zk_one, world.redis_one, false);
	hf_lock *other = open_lock(world.redis_two, "b");
	ASSERT_OK(hf_lock_acquire(other, NULL));
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner), note_done, &taken));
	WAIT_UNTIL(nodes("/a") == 1, SOON_MS);
	assert_int_equal(atomic_load(&taken.calls), 0);
	ASSERT_OK(hf_lock_release(other));
	await_done(&taken, 0);
	assert_int_equal(hf_lock_state(multi, owner), HF_HELD);
	ASSERT_OK(hf_lock_release_async(multi, HF_RELEASE(.owner = owner), note_done, &given));
	await_done(&given, 0);
	assert_int_equal(nodes("/a"), 0);
	hf_lock_close(other);
	hf_lock_close(multi);
	hf_owner_free(owner);
	end();
}

/* ---- orders ---- */

#define THREADS 3
#define ROUNDS  25

static void run_against_each_other(hf_lock *mine, hf_lock *theirs)
{
	hf_lock *locks[] = {mine, theirs};
	COUNT_TOGETHER(.locks = locks, .n = 2, .threads = 2 * THREADS, .rounds = ROUNDS,
	               .slow = true);
	hf_lock_close(mine);
	hf_lock_close(theirs);
}

static void opposite_orders_do_not_wait_for_each_other(void **state)
{
	(void)state;
	begin(0);
	run_against_each_other(open_two(world.zk_one, false), open_two(world.zk_two, true));
	assert_int_equal(nodes("/a") + nodes("/b"), 0);
	end();
}

static void opposite_orders_on_both_servers_do_not_wait_for_each_other(void **state)
{
	(void)state;
	begin(0);
	run_against_each_other(open_mixed(world.zk_one, world.redis_one, false),
	                       open_mixed(world.zk_two, world.redis_two, true));
	assert_int_equal(nodes("/a"), 0);
	end();
}

static void opposite_orders_of_one_client_do_not_wait_for_each_other(void **state)
{
	(void)state;
	begin(0);
	run_against_each_other(combine(open_named(world.zk_one, HF_SIMPLE, "b"),
	                               open_named(world.zk_one, HF_WRITE, "a")),
	                       combine(open_named(world.zk_one, HF_WRITE, "a"),
	                               open_named(world.zk_one, HF_SIMPLE, "b")));
	assert_int_equal(nodes("/a") + nodes("/b/leases") + nodes("/b/locks"), 0);
	end();
}

static void red_lock_of_zookeeper_is_refused(void **state)
{
	hf_lock *red = NULL;
	hf_lock *members[3];

	(void)state;
	begin(0);
	members[0] = open_named(world.redis_one, HF_REENTRANT, "a");
	members[1] = open_named(world.zk_one, HF_REENTRANT, "a");
	members[2] = open_named(world.zk_two, HF_REENTRANT, "a");
	ASSERT_RC(hf_lock_open_red(members, 3, &red), HF_ENOTSUP);
	ASSERT_CONTAINS(hf_error_detail(), "members[1]");
	for (int i = 0; i < 3; i++)
		hf_lock_close(members[i]);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MULTI_STORY(both_names_are_held_until_the_release),
		MULTI_STORY(member_that_is_taken_leaves_the_others_free),
		MULTI_STORY(session_of_the_members_that_expires_loses_the_lock),
		MULTI_STORY(reader_and_simple_mutex_are_held_as_one),
		MULTI_STORY(member_on_each_server_is_held_until_the_release),
		MULTI_STORY(member_taken_on_either_server_leaves_the_other_free),
		MULTI_STORY(loss_of_either_member_is_the_loss_of_all),
		MULTI_STORY(lease_of_both_expires_and_is_extended),
		MULTI_STORY(same_name_on_both_servers_is_two_members),
		MULTI_STORY(asynchronous_acquire_takes_both),
		MULTI_STORY(opposite_orders_do_not_wait_for_each_other),
		MULTI_STORY(opposite_orders_on_both_servers_do_not_wait_for_each_other),
		MULTI_STORY(opposite_orders_of_one_client_do_not_wait_for_each_other),
		MULTI_STORY(red_lock_of_zookeeper_is_refused),
	};
	return cmocka_run_group_tests(tests, start_both, stop_both);
}
