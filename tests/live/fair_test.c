/* The stories of the fair lock and the simple fair one: taking them, waiting, losing, asking. */
#include "live/fair.h"

#include "support/proxy.h"

/* ---- taking and giving up ---- */

static void lock_is_a_hash_with_the_owner_until_it_is_released(void **state)
{
	char field[128];
	char uuid[37];
	long long count;
	struct world world;

	begin(&world, state, 0);
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(hf_lock_acquire(world.mine, NULL));
		read_hold(live_raw, "orders", field, sizeof field, &count);
		assert_int_equal(count, 1);
		ASSERT_OK(hf_client_uuid(world.one, uuid));
		assert_memory_equal(field, uuid, 36);
		assert_int_equal(field[36], ':');
		ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 28000, 30000);
		/* Who finds the lock free needs no place and no channel. */
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
		assert_int_equal(channels(live_raw), 0);
		assert_int_equal(hf_lock_state(world.mine, NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(world.mine));
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
		assert_int_equal(hf_lock_state(world.mine, NULL), HF_FREE);
	}
	assert_int_equal(stats_of(world.one).attempts, 3);
	ASSERT_RC(hf_lock_release(world.mine), HF_ENOTHELD);
	end(&world);
}

static void holder_reenters_past_the_queue_and_counts(void **state)
{
	struct world world;

	begin(&world, state, 0);
	hf_lock *again = open_fair(world.one, HF_FAIR, "orders");
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	struct waiter *waiter = queue_up(world.theirs, NULL, 1);
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = 2000)));
	assert_int_equal(held_count(live_raw, "orders"), 3);
	assert_int_equal(queued(live_raw), 1);
	ASSERT_OK(hf_lock_release(world.mine));
	ASSERT_OK(hf_lock_release(again));
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_false(waiter_is_over(waiter));
	assert_int_equal(stats_of(world.two).wakeups, 0);
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_lock_close(again);
	end(&world);
}

/* The release is answered with whose turn it is: each asks twice, and nobody listens. */
static void waiters_of_the_holders_client_need_no_messages(void **state)
{
	struct world world;
	struct waiter *waiters[3];

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	for (int i = 0; i < 3; i++)
		waiters[i] = queue_up(world.mine, NULL, i + 1);
	assert_int_equal(listening(live_raw), 0);
	ASSERT_OK(hf_lock_release(world.mine));
	for (int i = 0; i < 3; i++) {
		waiter_expect(waiters[i], 0);
		ASSERT_OK(waiter_release(waiters[i]));
		waiter_free(waiters[i]);
	}
	assert_int_equal(stats_of(world.one).attempts, 1 + 3 * 2);
	assert_int_equal(stats_of(world.one).wakeups, 0);
	end(&world);
}

static void nested_acquire_never_shortens_the_lease(void **state)
{
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 20000)));
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 500)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 15000, 20000);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 50000)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	ASSERT_OK(hf_lock_release(world.mine));
	ASSERT_OK(hf_lock_release(world.mine));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 45000, 50000);
	ASSERT_OK(hf_lock_release(world.mine));
	end(&world);
}

static void holder_of_a_simple_lock_that_asks_again_would_wait_for_itself(void **state)
{
	struct world world;

	begin(&world, state, 0);
	hf_lock *again = open_fair(world.one, HF_SIMPLE_FAIR, "orders");
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	uint64_t commands = stats_of(world.one).commands;
	ASSERT_RC(hf_lock_acquire(world.mine, NULL), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = 2000)), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(again, NULL), HF_EDEADLOCK);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(world.one).commands, commands);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_int_equal(queued(live_raw), 0);
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(world.mine));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_lock_acquire(again, NULL));
	ASSERT_OK(hf_lock_release(again));
	hf_lock_close(again);
	end(&world);
}

static void two_owners_of_one_client_exclude_each_other(void **state)
{
	struct world world;
	hf_owner *first = new_owner();
	hf_owner *second = new_owner();

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.owner = first)));
	ASSERT_RC(hf_lock_acquire(world.mine, HF_ACQUIRE(.owner = second, .wait_ms = HF_NOWAIT)),
	          HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	struct waiter *waiter = queue_up(world.mine, NULL, 1);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release_with(world.mine, HF_RELEASE(.owner = first)));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - released_at, 0, 1500);
	assert_int_equal(hf_lock_state(world.mine, first), HF_FREE);
	assert_int_equal(hf_lock_state(world.mine, waiter->options.owner), HF_HELD);
	/* Only who holds it gives it up. */
	ASSERT_RC(hf_lock_release(world.mine), HF_ENOTHELD);
	ASSERT_RC(hf_lock_release(world.theirs), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(world.theirs, NULL, 60000), HF_ENOTHELD);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_owner_free(first);
	hf_owner_free(second);
	end(&world);
}

/* ---- waiting ---- */

static void waiter_is_woken_by_the_message_on_a_channel_of_its_own(void **state)
{
	char owner[128];
	char channel[256];
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	struct waiter *waiter = queue_up(world.theirs, NULL, 1);
	WAIT_UNTIL(stats_of(world.two).attempts == 2, SOON_MS);
	read_place(0, owner, sizeof owner);
	snprintf(channel, sizeof channel, CHANNEL ":%s", owner);
	assert_int_equal(subscribers(live_raw, channel), 1);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_expect(waiter, 0);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_BETWEEN(waiter->ended_at - released_at, 0, 1500);
	assert_int_equal(stats_of(world.two).wakeups, 1);
	assert_int_equal(stats_of(world.two).attempts, 3);
	assert_true(is_held_by(live_raw, "orders", world.two));
	assert_false(key_exists(live_raw, QUEUE));
	assert_false(key_exists(live_raw, ENDS));
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	end(&world);
}

static void try_while_held_is_busy_at_once_and_takes_no_place(void **state)
{
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_RC(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(world.two).attempts, 1);
	assert_int_equal(channels(live_raw), 0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	ASSERT_OK(hf_lock_release(world.mine));
	ASSERT_OK(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(world.theirs));
	end(&world);
}

static void wait_ends_on_time_and_its_place_with_it(void **state)
{
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(test_now_ms() - started_at, 300, 900);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(world.two).timeouts, 1);
	assert_int_equal(stats_of(world.two).waiting, 0);
	WAIT_UNTIL(!key_exists(live_raw, QUEUE) && !key_exists(live_raw, ENDS), SOON_MS);
	/* The message finds nobody, and nothing is in the way of the next one. */
	ASSERT_OK(hf_lock_release(world.mine));
	ASSERT_OK(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(world.theirs));
	end(&world);
}

static void cancelled_wait_ends_at_once_and_its_place_with_it(void **state)
{
	struct world world;
	hf_cancel *cancel = new_cancel();

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	struct waiter *waiter = queue_up(world.theirs, HF_ACQUIRE(.cancel = cancel), 1);
	WAIT_UNTIL(stats_of(world.two).attempts == 2, SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 500);
	ASSERT_RC(hf_lock_acquire(world.theirs, HF_ACQUIRE(.cancel = cancel)), HF_ECANCELLED);
	WAIT_UNTIL(!key_exists(live_raw, QUEUE) && !key_exists(live_raw, ENDS), SOON_MS);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	/* It does not stay subscribed for long. */
	ASSERT_BETWEEN(test_now_ms() - fired_at, 0, 2500);
	assert_true(is_held_by(live_raw, "orders", world.one));
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_free(waiter);
	hf_cancel_free(cancel);
	end(&world);
}

static void cancel_that_loses_to_a_grant_delivers_the_grant(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), NULL);
	hf_lock *lock = open_fair(client, *(hf_kind *)*state, "orders");
	hf_cancel *cancel = new_cancel();

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
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	waiter_free(waiter);
	hf_cancel_free(cancel);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
}

/* ---- leases ---- */

static void lease_that_ends_lets_the_next_one_in_and_is_told(void **state)
{
	char uuid[37];
	struct world world;

	begin(&world, state, 0);
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 500)));
	ASSERT_BETWEEN(hf_lock_remaining(world.mine, NULL), 1, 500);
	ASSERT_OK(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_BETWEEN(test_now_ms() - before, 500, 2000);
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(world.mine, NULL), 0);
	WAIT_UNTIL(seen_count(world.seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(seen_count(world.seen, HF_AT_RISK), 1);
	/* Java calls this a success where nobody holds the lock; here it is never one. */
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	ASSERT_OK(hf_client_uuid(world.two, uuid));
	char detail[400];
	snprintf(detail, sizeof detail, "%s", hf_error_detail());
	ASSERT_CONTAINS(detail, "500 ms");
	ASSERT_CONTAINS(detail, uuid);
	assert_true(is_held_by(live_raw, "orders", world.two));
	ASSERT_OK(hf_lock_release(world.theirs));
	end(&world);
}

static void late_release_of_a_free_lock_is_told_too(void **state)
{
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 100)));
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = 2000)));
	ASSERT_OK(hf_lock_release(world.mine));
	end(&world);
}

static void watchdog_keeps_the_hold_and_lets_waiters_wait(void **state)
{
	struct world world;

	begin(&world, state, 900);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_RC(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = 1300)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(stats_of(world.one).renewals, 2, 7);
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_HELD);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_int_equal(stats_of(world.one).losses, 0);
	ASSERT_OK(hf_lock_release(world.mine));
	/* A lock that was given up is not renewed any more. */
	hf_stats before = stats_of(world.one);
	long long released_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - released_at >= 450, SOON_MS);
	assert_int_equal(stats_of(world.one).commands, before.commands);
	end(&world);
}

static void extend_makes_a_lease_longer_and_never_shorter(void **state)
{
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.lease_ms = 3000)));
	ASSERT_OK(hf_lock_extend(world.mine, NULL, 40000));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 35000, 40000);
	ASSERT_OK(hf_lock_extend(world.mine, NULL, 1000));
	ASSERT_BETWEEN(hf_lock_remaining(world.mine, NULL), 35000, 40000);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_RC(hf_lock_extend(world.mine, NULL, 5000), HF_ELOST);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	end(&world);
}

static void lock_that_was_taken_away_is_told_once(void **state)
{
	char field[128];
	long long count;
	struct world world;

	begin(&world, state, 900);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	read_hold(live_raw, "orders", field, sizeof field, &count);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	WAIT_UNTIL(seen_count(world.seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(world.seen->name, "orders");
	assert_string_equal(world.seen->owner, field);
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	assert_int_equal(stats_of(world.one).losses, 1);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	end(&world);
}

static void release_by_force_lets_the_first_waiter_in_and_tells_the_holder(void **state)
{
	int was_held = -7;
	struct world world;

	begin(&world, state, 3000);
	hf_client *opener = open_client(NULL);
	hf_lock *forced = open_fair(opener, world.kind, "orders");
	ASSERT_OK(hf_lock_force_release(forced, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	struct waiter *first = queue_up(world.theirs, NULL, 1);
	struct waiter *second = queue_up(world.theirs, NULL, 2);
	WAIT_UNTIL(stats_of(world.two).attempts >= 4, SOON_MS);
	long long forced_at = test_now_ms();
	ASSERT_OK(hf_lock_force_release(forced, &was_held));
	assert_int_equal(was_held, 1);
	waiter_expect(first, 0);
	ASSERT_BETWEEN(first->ended_at - forced_at, 0, 1500);
	assert_false(waiter_is_over(second));
	WAIT_UNTIL(seen_count(world.seen, HF_LOST) == 1, SOON_MS);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "now held by");
	ASSERT_OK(waiter_release(first));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	hf_lock_close(forced);
	ASSERT_OK(hf_client_close(opener));
	end(&world);
}

/* ---- questions, tokens, callbacks, numbers ---- */

static void queries_tell_what_the_server_has(void **state)
{
	char holder[128];
	char field[128];
	long long on_server;
	int64_t number = -7;
	int yes = -7;
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_is_locked(world.mine, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_ttl(world.mine, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_holder(world.mine, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	struct waiter *waiter = queue_up(world.theirs, NULL, 1);
	ASSERT_OK(hf_lock_is_locked(world.theirs, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(world.mine, NULL, &yes));
	assert_int_equal(yes, 1);
	/* Who waits does not hold. */
	ASSERT_OK(hf_lock_is_held(world.theirs, waiter->options.owner, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_hold_count(world.mine, NULL, &number));
	assert_int_equal(number, 1);
	ASSERT_OK(hf_lock_hold_count(world.theirs, waiter->options.owner, &number));
	assert_int_equal(number, 0);
	assert_int_equal(hf_lock_state(world.theirs, waiter->options.owner), HF_FREE);
	ASSERT_OK(hf_lock_ttl(world.theirs, &number));
	ASSERT_BETWEEN(number, 28000, 30000);
	read_hold(live_raw, "orders", field, sizeof field, &on_server);
	ASSERT_OK(hf_lock_holder(world.theirs, holder, sizeof holder));
	assert_string_equal(holder, field);
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	end(&world);
}

static void token_grows_with_every_grant(void **state)
{
	int64_t first = -7;
	int64_t second = -7;
	int64_t last = -7;
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.token = 1)));
	ASSERT_OK(hf_lock_token(world.mine, NULL, &first));
	assert_true(first > 0);
	struct waiter *waiter = queue_up(world.theirs, HF_ACQUIRE(.token = 1), 1);
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_expect(waiter, 0);
	ASSERT_OK(hf_lock_token(world.theirs, waiter->options.owner, &second));
	assert_true(second > first);
	ASSERT_OK(hf_lock_last_token(world.mine, &last));
	assert_int_equal(last, second);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	/* The number stays for good, and nothing else does. */
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	assert_int_equal(key_pttl(live_raw, "redisson_lock_token:{orders}"), -1);
	raw_ok(live_raw, "FLUSHALL", NULL);
	end(&world);
}

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct world world;
	struct done done = {0};
	hf_owner *owner = new_owner();

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire_async(world.mine, HF_ACQUIRE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	ASSERT_OK(hf_lock_is_locked_async(world.mine, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_OK(hf_lock_is_held_async(world.mine, owner, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_OK(hf_lock_hold_count_async(world.mine, owner, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_OK(hf_lock_extend_async(world.mine, owner, 50000, note_done, &done));
	await_done(&done, 0);
	ASSERT_OK(hf_lock_ttl_async(world.mine, note_done, &done));
	ASSERT_BETWEEN(await_done(&done, 0), 45000, 50000);
	ASSERT_OK(hf_lock_holder_async(world.mine, note_done, &done));
	await_done(&done, 0);
	assert_int_equal(raw_integer(live_raw, "HEXISTS", "orders", done.text, NULL), 1);
	ASSERT_OK(hf_lock_release_async(world.mine, HF_RELEASE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_OK(hf_lock_force_release_async(world.theirs, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	hf_owner_free(owner);
	end(&world);
}

static void asynchronous_wait_is_granted_times_out_and_is_cancelled(void **state)
{
	struct world world;
	struct done done = {0};
	hf_owner *owner = new_owner();
	hf_cancel *cancel = new_cancel();

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_OK(hf_lock_acquire_async(world.theirs, HF_ACQUIRE(.owner = owner, .wait_ms = 100),
	                                note_done, &done));
	await_done(&done, HF_ETIMEDOUT);
	ASSERT_OK(hf_lock_acquire_async(world.theirs, HF_ACQUIRE(.owner = owner, .cancel = cancel),
	                                note_done, &done));
	WAIT_UNTIL(stats_of(world.two).waiting == 1, SOON_MS);
	hf_cancel_fire(cancel);
	await_done(&done, HF_ECANCELLED);
	WAIT_UNTIL(queued(live_raw) == 0, SOON_MS);
	ASSERT_OK(
		hf_lock_acquire_async(world.theirs, HF_ACQUIRE(.owner = owner), note_done, &done));
	WAIT_UNTIL(queued(live_raw) == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(world.mine));
	await_done(&done, 0);
	assert_int_equal(hf_lock_state(world.theirs, owner), HF_HELD);
	ASSERT_OK(hf_lock_release_with(world.theirs, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	hf_cancel_free(cancel);
	end(&world);
}

static void second_wait_of_one_owner_for_a_simple_lock_is_told_in_the_end(void **state)
{
	struct world world;
	struct done first = {0};
	struct done second = {0};
	hf_owner *owner = new_owner();

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_OK(
		hf_lock_acquire_async(world.theirs, HF_ACQUIRE(.owner = owner), note_done, &first));
	ASSERT_OK(hf_lock_acquire_async(world.theirs, HF_ACQUIRE(.owner = owner), note_done,
	                                &second));
	WAIT_UNTIL(listening(live_raw) == 1, SOON_MS);
	/* One owner has one place. */
	assert_int_equal(queued(live_raw), 1);
	assert_int_equal(atomic_load(&second.calls), 0);
	ASSERT_OK(hf_lock_release(world.mine));
	await_done(&first, 0);
	await_done(&second, HF_EDEADLOCK);
	ASSERT_OK(hf_lock_release_with(world.theirs, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	end(&world);
}

static void counters_move_as_they_should(void **state)
{
	struct world world;

	begin(&world, state, 0);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	ASSERT_RC(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = 50)), HF_ETIMEDOUT);
	assert_int_equal(stats_of(world.two).waits, 1);
	assert_int_equal(stats_of(world.two).timeouts, 1);
	assert_int_equal(stats_of(world.two).grants, 0);
	WAIT_UNTIL(listening(live_raw) == 0 && queued(live_raw) == 0, SOON_MS);
	struct waiter *waiter = queue_up(world.theirs, NULL, 1);
	assert_int_equal(stats_of(world.two).waiting, 1);
	assert_int_equal(stats_of(world.two).held, 0);
	ASSERT_OK(hf_lock_release(world.mine));
	waiter_expect(waiter, 0);
	hf_stats stats = stats_of(world.two);
	assert_int_equal(stats.waits, 2);
	assert_int_equal(stats.grants, 1);
	assert_int_equal(stats.held, 1);
	assert_int_equal(stats.waiting, 0);
	ASSERT_OK(waiter_release(waiter));
	stats = stats_of(world.one);
	assert_int_equal(stats.attempts, 1);
	assert_int_equal(stats.releases, 1);
	assert_int_equal(stats.commands, 2);
	assert_int_equal(stats_of(world.two).held, 0);
	assert_int_equal(stats_of(world.two).unknowns, 0);
	waiter_free(waiter);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_STORIES(lock_is_a_hash_with_the_owner_until_it_is_released),
		FAIR_STORY(holder_reenters_past_the_queue_and_counts),
		FAIR_STORY(nested_acquire_never_shortens_the_lease),
		SIMPLE_FAIR_STORY(holder_of_a_simple_lock_that_asks_again_would_wait_for_itself),
		SIMPLE_FAIR_STORY(second_wait_of_one_owner_for_a_simple_lock_is_told_in_the_end),
		BOTH_STORIES(waiters_of_the_holders_client_need_no_messages),
		BOTH_STORIES(two_owners_of_one_client_exclude_each_other),
		BOTH_STORIES(waiter_is_woken_by_the_message_on_a_channel_of_its_own),
		BOTH_STORIES(try_while_held_is_busy_at_once_and_takes_no_place),
		BOTH_STORIES(wait_ends_on_time_and_its_place_with_it),
		BOTH_STORIES(cancelled_wait_ends_at_once_and_its_place_with_it),
		BOTH_STORIES(cancel_that_loses_to_a_grant_delivers_the_grant),
		BOTH_STORIES(lease_that_ends_lets_the_next_one_in_and_is_told),
		BOTH_STORIES(late_release_of_a_free_lock_is_told_too),
		BOTH_STORIES(watchdog_keeps_the_hold_and_lets_waiters_wait),
		BOTH_STORIES(extend_makes_a_lease_longer_and_never_shorter),
		BOTH_STORIES(lock_that_was_taken_away_is_told_once),
		BOTH_STORIES(release_by_force_lets_the_first_waiter_in_and_tells_the_holder),
		BOTH_STORIES(queries_tell_what_the_server_has),
		BOTH_STORIES(token_grows_with_every_grant),
		BOTH_STORIES(every_verb_has_an_asynchronous_form),
		BOTH_STORIES(asynchronous_wait_is_granted_times_out_and_is_cancelled),
		BOTH_STORIES(counters_move_as_they_should),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
