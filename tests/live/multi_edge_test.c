/*
 * Multi locks at their edges: opposite orders, all kinds, clients and servers that go away,
 * callbacks.
 */
#include "live/child.h"
#include "live/multi.h"

#include "support/counting.h"
#include "support/process.h"
#include "support/proxy.h"

#include <poll.h>

/* ---- processes that are killed ---- */

static void take_members(hf_client *client)
{
	hf_lock *member[2];
	hf_lock *multi;
	if (hf_lock_open(client, HF_REENTRANT, "b", &member[0]) ||
	    hf_lock_open(client, HF_REENTRANT, "a", &member[1]) ||
	    hf_lock_open_multi(member, 2, &multi) || hf_lock_acquire(multi, NULL))
		_exit(1);
}

static void members_of_killed_processes_are_free_within_their_lease(void **state)
{
	pid_t holder = start_child(take_members, 2000);

	(void)state;
	WAIT_UNTIL(key_exists(live_raw, "b"), SOON_MS);
	pid_t waiter = start_child(take_members, 2000);
	WAIT_UNTIL(channels(live_raw) == 1, SOON_MS);
	kill_child(waiter);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	struct world world;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	kill_child(holder);
	long long killed_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 6000)));
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, 2000 + 1000);
	ASSERT_OK(hf_lock_release(multi));
	expect_no_keys();
	hf_lock_close(multi);
	end(&world);
}

/* ---- fork ---- */

static hf_lock *forked_multi;
static hf_lock *forked_member;

static void use_inherited_handles(int pipe_fd)
{
	hf_lock *multi;
	int yes;
	bool forked = hf_lock_acquire(forked_multi, NULL) == HF_EFORKED &&
	              hf_lock_release(forked_multi) == HF_EFORKED &&
	              hf_lock_extend(forked_multi, NULL, 1000) == HF_EFORKED &&
	              hf_lock_is_locked(forked_multi, &yes) == HF_EFORKED &&
	              hf_lock_force_release(forked_multi, &yes) == HF_EFORKED &&
	              hf_lock_open_multi(&forked_member, 1, &multi) == HF_EFORKED &&
	              hf_lock_state(forked_multi, NULL) == HF_FREE &&
	              hf_lock_remaining(forked_multi, NULL) == 0;
	hf_lock_close(forked_multi);
	dprintf(pipe_fd, forked ? "forked" : "not forked");
	_exit(0);
}

static void forked_child_gets_an_error_and_sends_nothing(void **state)
{
	struct world world;
	char output[64];

	(void)state;
	begin(&world, 30000);
	forked_multi = open_spread(world.one, world.far_one, false);
	forked_member = open_lock(world.one, "a");
	ASSERT_OK(hf_lock_acquire(forked_multi, NULL));
	long long before = info_number(other_raw, "stats", "total_commands_processed");
	assert_int_equal(process_fork(use_inherited_handles, output, sizeof output), 0);
	assert_string_equal(output, "forked");
	/* One more command: our own question. */
	assert_int_equal(info_number(other_raw, "stats", "total_commands_processed"), before + 1);
	assert_int_equal(hf_lock_state(forked_multi, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(forked_multi));
	expect_no_keys();
	hf_lock_close(forked_member);
	hf_lock_close(forked_multi);
	end(&world);
}

/* ---- opening ---- */

static void members_that_cannot_be_combined_are_refused(void **state)
{
	struct world world;
	hf_lock *many[65];
	hf_lock *multi = NULL;

	(void)state;
	begin(&world, 30000);
	for (int i = 0; i < 65; i++) {
		char name[32];
		snprintf(name, sizeof name, "member-%d", i);
		many[i] = open_lock(world.one, name);
	}
	ASSERT_RC(hf_lock_open_multi(many, 0, &multi), HF_EINVAL);
	ASSERT_RC(hf_lock_open_multi(many, 65, &multi), HF_EINVAL);
	ASSERT_RC(hf_lock_open_multi(NULL, 2, &multi), HF_EINVAL);
	ASSERT_RC(hf_lock_open_multi(many, 2, NULL), HF_EINVAL);
	hf_lock *twice = open_lock(world.one, "member-1");
	ASSERT_RC(hf_lock_open_multi((hf_lock *[]){many[0], many[1], twice}, 3, &multi), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "members[1] and members[2]");
	ASSERT_RC(hf_lock_open_multi((hf_lock *[]){many[0], NULL}, 2, &multi), HF_EINVAL);
	assert_null(multi);
	ASSERT_OK(hf_lock_open_multi(many, 64, &multi));
	hf_lock *nested = NULL;
	ASSERT_RC(hf_lock_open_multi((hf_lock *[]){many[0], multi}, 2, &nested), HF_EINVAL);
	assert_null(nested);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 64);
	ASSERT_OK(hf_lock_release(multi));
	expect_no_keys();
	hf_lock_close(multi);
	hf_lock_close(twice);
	for (int i = 0; i < 65; i++)
		hf_lock_close(many[i]);
	/* One alone is a multi lock too. */
	hf_lock *alone = open_lock(world.one, "a");
	ASSERT_OK(hf_lock_open_multi(&alone, 1, &multi));
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.lease_ms = 5000)));
	assert_int_equal(held_count(live_raw, "a"), 1);
	ASSERT_OK(hf_lock_release(multi));
	hf_lock_close(alone);
	hf_lock_close(multi);
	end(&world);
}

/* ---- kinds ---- */

static hf_lock *open_kinds(hf_client *client, bool reversed)
{
	static const hf_kind kinds[] = {HF_SIMPLE, HF_FAIR, HF_WRITE,      HF_REENTRANT,
	                                HF_SPIN,   HF_READ, HF_SIMPLE_FAIR};
	static const char *const values[] = {"x", "y"};
	hf_lock *members[8];
	for (int i = 0; i < 7; i++) {
		char name[16];
		int at = reversed ? 7 - i : i;
		snprintf(name, sizeof name, "kind-%d", (int)kinds[i]);
		ASSERT_OK(hf_lock_open(client, kinds[i], name, &members[at]));
	}
	ASSERT_OK(hf_lock_open_group(client, "group", values, 2, &members[reversed ? 0 : 7]));
	return combine(members, 8);
}

static void members_may_be_of_all_kinds(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *mine = open_kinds(world.one, false);
	hf_lock *theirs = open_kinds(world.two, true);
	ASSERT_OK(hf_lock_acquire(mine, HF_ACQUIRE(.lease_ms = 20000)));
	assert_int_equal(raw_integer(live_raw, "EXISTS", "kind-1", "kind-2", "kind-3", "kind-4",
	                             "kind-6", "kind-7", "kind-8", "group", NULL),
	                 8);
	assert_int_equal(hf_lock_state(mine, NULL), HF_HELD);
	/* Two of them do not nest, so the whole does not, and nothing is changed. */
	ASSERT_RC(hf_lock_acquire(mine, NULL), HF_EDEADLOCK);
	assert_int_equal(held_count(live_raw, "kind-1"), 1);
	assert_int_equal(hf_lock_state(mine, NULL), HF_HELD);
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(stats_of(world.two).waiting == 1, SOON_MS);
	ASSERT_WAKES(hf_lock_release(mine), waiter, 2000);
	ASSERT_RC(hf_lock_acquire(mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_TIMES_OUT(100, hf_lock_acquire(mine, HF_ACQUIRE(.wait_ms = within_ms)));
	waiter_finish(waiter);
	expect_nothing_left();
	hf_lock_close(mine);
	hf_lock_close(theirs);
	end(&world);
}

static void members_that_exclude_each_other_are_a_deadlock(void **state)
{
	struct world world;
	hf_lock *members[2];

	(void)state;
	begin(&world, 30000);
	ASSERT_OK(hf_lock_open(world.one, HF_WRITE, "page", &members[0]));
	ASSERT_OK(hf_lock_open(world.one, HF_READ, "page", &members[1]));
	hf_lock *multi = combine(members, 2);
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 3000)), HF_EDEADLOCK);
	expect_no_keys();
	hf_lock_close(multi);
	end(&world);
}

static void member_that_is_not_a_lock_is_a_conflict_and_stays_untouched(void **state)
{
	struct world world;
	int yes;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_three(world.one);
	raw_ok(live_raw, "SET", "c", "value", NULL);
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 2000)), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), "c:");
	ASSERT_RC(hf_lock_is_locked(multi, &yes), HF_ECONFLICT);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	char *text = raw_text(live_raw, "GET", "c", NULL);
	assert_string_equal(text, "value");
	free(text);
	hf_lock_close(multi);
	end(&world);
}

/* ---- opposite orders ---- */

#define EACH   2
#define ROUNDS 40

static void opposite_orders_never_wait_for_each_other(void **state)
{
	struct world world;
	hf_lock *lock[2];

	(void)state;
	begin(&world, 30000);
	lock[0] = open_spread(world.one, world.far_one, false);
	lock[1] = open_spread(world.two, world.far_two, true);
	COUNT_TOGETHER(.locks = lock, .n = 2, .threads = 2 * EACH, .rounds = ROUNDS,
	               .lease_ms = 20000);
	expect_nothing_left();
	hf_lock_close(lock[0]);
	hf_lock_close(lock[1]);
	end(&world);
}

static void messages_do_not_end_a_wait_early(void **state)
{
	struct world world;
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), NULL);
	hf_lock *members[] = {open_lock(client, "a"), open_lock(client, "b")};
	hf_lock *multi = combine(members, 2);

	(void)state;
	begin(&world, 30000);
	hf_lock *taken = open_lock(world.two, "b");
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_lock_release(multi));
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	proxy_delay(proxy, 20);
	struct waiter *waiter = waiter_start(multi, HF_ACQUIRE(.wait_ms = 2000, .lease_ms = 1800));
	/* Each message makes it ask, so an ask is nearly always in flight. */
	while (!waiter_is_over(waiter)) {
		(void)raw_integer(live_raw, "PUBLISH", "redisson_lock__channel:{b}", "0", NULL);
		test_pause();
	}
	assert_true(waiter->result == HF_ETIMEDOUT || waiter->result == HF_EUNKNOWN);
	ASSERT_BETWEEN(waiter->ended_at - waiter->started_at, 2000, 4000);
	proxy_delay(proxy, 0);
	WAIT_UNTIL(!key_exists(live_raw, "a") && stats_of(client).held == 0, SOON_MS);
	ASSERT_OK(hf_lock_release(taken));
	waiter_free(waiter);
	expect_no_keys();
	hf_lock_close(taken);
	hf_lock_close(multi);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
	end(&world);
}

/* ---- clients and connections that are closed ---- */

static void close_answers_the_waiters_and_frees_the_rest(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	hf_lock *taken = open_lock(world.far_two, "b");
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	struct waiter *waiter = waiter_start(multi, NULL);
	WAIT_UNTIL(is_held_by(live_raw, "a", world.one) && channels(other_raw) == 1, SOON_MS);
	ASSERT_OK(hf_client_close(world.far_one));
	waiter_expect(waiter, HF_ECLOSED);
	/* What was taken with the client that is still open is given back. */
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 1000)), HF_ECLOSED);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	ASSERT_OK(hf_lock_release(taken));
	waiter_free(waiter);
	expect_nothing_left();
	hf_lock_close(taken);
	hf_lock_close(multi);
	world.far_one = open_url(test_server_url(other_server), NULL);
	end(&world);
}

static void close_releases_its_own_members_of_a_hold(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_client_close(world.far_one));
	assert_int_equal(raw_integer(other_raw, "DBSIZE", NULL), 0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 2);
	assert_int_equal(hf_lock_state(multi, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(multi, NULL), 0);
	assert_int_not_equal(hf_lock_release(multi), 0);
	expect_no_keys();
	hf_lock_close(multi);
	world.far_one = open_url(test_server_url(other_server), NULL);
	end(&world);
}

static void killed_connections_are_made_again(void **state)
{
	struct world world;

	(void)state;
	begin(&world, 6000);
	hf_lock *mine = open_spread(world.one, world.far_one, false);
	hf_lock *theirs = open_spread(world.two, world.far_two, true);
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(channels(live_raw) == 1, SOON_MS);
	kill_connections(live_raw);
	kill_connections(other_raw);
	WAIT_UNTIL(stats_of(world.one).renewals >= 2 && stats_of(world.far_one).renewals >= 2,
	           SOON_MS);
	WAIT_UNTIL(stats_of(world.two).reconnects == 1 && channels(live_raw) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(mine, NULL), HF_HELD);
	assert_false(waiter_is_over(waiter));
	ASSERT_WAKES(hf_lock_release(mine), waiter, 1500);
	waiter_finish(waiter);
	expect_nothing_left();
	hf_lock_close(mine);
	hf_lock_close(theirs);
	end(&world);
}

static void server_that_is_away_leaves_nothing_on_the_others(void **state)
{
	struct world world;
	struct test_server *third = test_server_start(NULL);
	hf_client *client = open_url(test_server_url(third), NULL);

	(void)state;
	begin(&world, 30000);
	hf_lock *members[] = {open_lock(world.one, "a"), open_lock(client, "b")};
	hf_lock *multi = combine(members, 2);
	test_server_kill(third);
	long long started_at = test_now_ms();
	int rc = hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 500));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1500);
	assert_true(rc == HF_EUNREACHABLE || rc == HF_EUNKNOWN);
	expect_no_keys();
	test_server_restart(third);
	ASSERT_OK(hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = 10000)));
	/* Its data is gone, so the whole is lost; what is left is given back. */
	test_server_restart(third);
	WAIT_UNTIL(hf_lock_state(multi, NULL) == HF_LOST, 10000);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	expect_no_keys();
	close_both(multi, client);
	test_server_stop(third);
	end(&world);
}

/* ---- asynchronous forms ---- */

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct world world;
	struct done done = {0};
	hf_owner *owner = new_owner();

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	ASSERT_RC(hf_lock_acquire_async(multi, NULL, note_done, &done), HF_EINVAL);
	ASSERT_RC(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner), NULL, NULL), HF_EINVAL);
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner, .lease_ms = 9000),
	                                note_done, &done));
	await_done(&done, 0);
	assert_true(is_held_by(live_raw, "a", world.one));
	assert_true(is_held_by(other_raw, "c", world.far_one));
	check_async_hold(multi, owner);
	ASSERT_RC(hf_lock_holder_async(multi, note_done, &done), HF_ENOTSUP);
	ASSERT_RC(hf_lock_last_token_async(multi, note_done, &done), HF_EINVAL);
	ASSERT_OK(hf_lock_release_async(multi, HF_RELEASE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	expect_no_keys();
	ASSERT_OK(hf_lock_release_async(multi, HF_RELEASE(.owner = owner), note_done, &done));
	await_done(&done, HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	ASSERT_OK(hf_lock_force_release_async(multi, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_RC(hf_lock_release(multi), HF_ELOST);
	hf_owner_free(owner);
	hf_lock_close(multi);
	end(&world);
}

static void asynchronous_waits_end_as_the_others_do(void **state)
{
	struct world world;
	struct done done = {0};
	hf_owner *owner = new_owner();
	hf_cancel *cancel = new_cancel();

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	hf_lock *taken = open_lock(world.far_two, "b");
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT),
	                                note_done, &done));
	await_done(&done, HF_EBUSY);
	ASSERT_CONTAINS(done.detail, "b:");
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner, .wait_ms = 200),
	                                note_done, &done));
	await_done(&done, HF_ETIMEDOUT);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner, .cancel = cancel),
	                                note_done, &done));
	WAIT_UNTIL(stats_of(world.far_one).waiting == 1, SOON_MS);
	hf_cancel_fire(cancel);
	await_done(&done, HF_ECANCELLED);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner, .lease_ms = 3000),
	                                note_done, &done));
	WAIT_UNTIL(stats_of(world.far_one).waiting == 1, SOON_MS);
	/* The call has the members itself, so the handle can be closed. */
	hf_lock_close(multi);
	ASSERT_OK(hf_lock_release(taken));
	await_done(&done, 0);
	multi = open_spread(world.one, world.far_one, true);
	assert_int_equal(hf_lock_state(multi, owner), HF_HELD);
	ASSERT_OK(hf_lock_release_with(multi, HF_RELEASE(.owner = owner)));
	expect_nothing_left();
	hf_cancel_free(cancel);
	hf_owner_free(owner);
	hf_lock_close(taken);
	hf_lock_close(multi);
	end(&world);
}

/* Runs the callbacks of both clients here until the call is over. */
static void dispatch_both(struct world *world, struct done *done)
{
	struct pollfd fds[] = {{.fd = hf_client_fd(world->one), .events = POLLIN},
	                       {.fd = hf_client_fd(world->far_one), .events = POLLIN}};
	long long ends_at = test_now_ms() + SOON_MS;
	while (atomic_load(&done->calls) == 0) {
		assert_true(test_now_ms() < ends_at);
		assert_true(poll(fds, 2, 1000) >= 0);
		assert_true(hf_client_dispatch(world->one) >= 0);
		assert_true(hf_client_dispatch(world->far_one) >= 0);
	}
}

static void callbacks_may_run_in_an_event_loop(void **state)
{
	struct world world;
	struct done done = {0};
	hf_owner *owner = new_owner();

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	assert_true(hf_client_fd(world.one) >= 0);
	assert_true(hf_client_fd(world.far_one) >= 0);
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner, .lease_ms = 9000),
		                                note_done, &done));
		dispatch_both(&world, &done);
		await_done(&done, 0);
		assert_true(is_held_by(other_raw, "c", world.far_one));
		ASSERT_OK(
			hf_lock_release_async(multi, HF_RELEASE(.owner = owner), note_done, &done));
		dispatch_both(&world, &done);
		await_done(&done, 0);
	}
	expect_no_keys();
	hf_owner_free(owner);
	hf_lock_close(multi);
	end(&world);
}

static void close_of_a_client_ends_asynchronous_waits(void **state)
{
	struct world world;
	struct done done = {0};
	hf_owner *owner = new_owner();

	(void)state;
	begin(&world, 30000);
	hf_lock *multi = open_spread(world.one, world.far_one, false);
	hf_lock *taken = open_lock(world.far_two, "b");
	ASSERT_OK(hf_lock_acquire(taken, NULL));
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner), note_done, &done));
	WAIT_UNTIL(stats_of(world.far_one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_close(world.far_one));
	await_done(&done, HF_ECLOSED);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	/* The first round too: its client is the one that is closed. */
	hf_lock *first = open_lock(world.two, "a");
	ASSERT_OK(hf_lock_acquire(first, NULL));
	ASSERT_OK(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner), note_done, &done));
	WAIT_UNTIL(stats_of(world.one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_close(world.one));
	await_done(&done, HF_ECLOSED);
	ASSERT_RC(hf_lock_acquire_async(multi, HF_ACQUIRE(.owner = owner), note_done, &done),
	          HF_ECLOSED);
	ASSERT_OK(hf_lock_release(first));
	ASSERT_OK(hf_lock_release(taken));
	expect_no_keys();
	hf_owner_free(owner);
	hf_lock_close(first);
	hf_lock_close(taken);
	hf_lock_close(multi);
	world.one = open_client(NULL);
	world.far_one = open_url(test_server_url(other_server), NULL);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MULTI_STORY(members_of_killed_processes_are_free_within_their_lease),
		MULTI_STORY(forked_child_gets_an_error_and_sends_nothing),
		MULTI_STORY(members_that_cannot_be_combined_are_refused),
		MULTI_STORY(members_may_be_of_all_kinds),
		MULTI_STORY(members_that_exclude_each_other_are_a_deadlock),
		MULTI_STORY(member_that_is_not_a_lock_is_a_conflict_and_stays_untouched),
		MULTI_STORY(opposite_orders_never_wait_for_each_other),
		MULTI_STORY(messages_do_not_end_a_wait_early),
		MULTI_STORY(close_answers_the_waiters_and_frees_the_rest),
		MULTI_STORY(close_releases_its_own_members_of_a_hold),
		MULTI_STORY(killed_connections_are_made_again),
		MULTI_STORY(server_that_is_away_leaves_nothing_on_the_others),
		MULTI_STORY(every_verb_has_an_asynchronous_form),
		MULTI_STORY(asynchronous_waits_end_as_the_others_do),
		MULTI_STORY(callbacks_may_run_in_an_event_loop),
		MULTI_STORY(close_of_a_client_ends_asynchronous_waits),
	};

	return cmocka_run_group_tests(tests, start_both, stop_both);
}
