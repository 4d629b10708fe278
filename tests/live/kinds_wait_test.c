/*
 * The stories of contention that all kinds of locks share: trying, waiting, giving up, owners,
 * crowds.
 */
#include "live/kinds.h"

#include "support/counting.h"
#include "support/proxy.h"

#define TASKS  3
#define ROUNDS 10

/* ---- waiting ---- */

static void try_while_held_is_busy_at_once(void **state)
{
	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	long long keys = raw_integer(live_raw, "DBSIZE", NULL);
	ASSERT_RC(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(duel->two).attempts, 1);
	assert_int_equal(stats_of(duel->two).waits, 0);
	assert_int_equal(channels(live_raw), 0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), keys);
	assert_int_equal(holds_of(duel->one), 1);
	assert_int_equal(holds_of(duel->two), 0);
	ASSERT_OK(hf_lock_release(duel->mine));
	ASSERT_OK(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	ASSERT_OK(hf_lock_release(duel->theirs));
	end(duel);
}

static void waiter_gets_the_lock_soon_after_the_release(void **state)
{
	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *waiter = waiter_start(duel->theirs, NULL);
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	assert_int_equal(stats_of(duel->two).waiting, 1);
	assert_int_equal(stats_of(duel->two).held, 0);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_WAKES(hf_lock_release(duel->mine), waiter, 1500);
	hf_stats stats = stats_of(duel->two);
	assert_int_equal(stats.wakeups, duel->match->channel || duel->match->queues ? 1 : 0);
	assert_int_equal(stats.waits, 1);
	assert_int_equal(stats.grants, 1);
	assert_int_equal(stats.held, 1);
	assert_int_equal(stats.waiting, 0);
	assert_int_equal(holds_of(duel->two), 1);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(stats_of(duel->two).held, 0);
	assert_int_equal(stats_of(duel->two).unknowns, 0);
	stats = stats_of(duel->one);
	assert_int_equal(stats.attempts, 1);
	assert_int_equal(stats.releases, 1);
	assert_int_equal(stats.commands, 2);
	waiter_free(waiter);
	end(duel);
}

static void wait_ends_on_time_and_leaves_nothing(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_lock *patient = open_patient(duel->two, duel->match->theirs);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	long long started_at = test_now_ms();
	ASSERT_TIMES_OUT(200, hf_lock_acquire(patient, HF_ACQUIRE(.wait_ms = within_ms)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 200, 700);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(duel->two).timeouts, 1);
	assert_int_equal(stats_of(duel->two).waits, 1);
	assert_int_equal(stats_of(duel->two).waiting, 0);
	assert_int_equal(stats_of(duel->two).grants, 0);
	assert_int_equal(holds_of(duel->one), 1);
	assert_int_equal(holds_of(duel->two), 0);
	WAIT_UNTIL(!key_exists(live_raw, QUEUE), SOON_MS);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	/* The message reaches nobody, and nothing is in the way of the next attempt. */
	ASSERT_OK(hf_lock_release(duel->mine));
	ASSERT_OK(hf_lock_acquire(patient, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(patient));
	hf_lock_close(patient);
	end(duel);
}

/* The one that stops being first must not make the next one ask when its time has run out too. */
static void waiters_whose_time_ends_together_all_time_out(void **state)
{
	struct waiter *waiter[TASKS];

	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	hf_lock *patient = open_patient(duel->two, duel->match->theirs);
	for (int i = 0; i < TASKS; i++)
		waiter[i] = waiter_start(patient, HF_ACQUIRE(.wait_ms = 200));
	for (int i = 0; i < TASKS; i++)
		waiter_join(waiter[i], HF_ETIMEDOUT);
	assert_int_equal(stats_of(duel->two).timeouts, TASKS);
	ASSERT_OK(hf_lock_release(duel->mine));
	hf_lock_close(patient);
	end(duel);
}

static void cancelled_wait_ends_at_once_and_leaves_nothing(void **state)
{
	hf_cancel *cancel = new_cancel();

	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *waiter = waiter_start(duel->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 500);
	ASSERT_RC(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.cancel = cancel)), HF_ECANCELLED);
	WAIT_UNTIL(!key_exists(live_raw, QUEUE) && channels(live_raw) == 0, SOON_MS);
	/* It does not stay subscribed for long. */
	ASSERT_BETWEEN(test_now_ms() - fired_at, 0, 2500);
	assert_int_equal(holds_of(duel->one), 1);
	ASSERT_OK(hf_lock_release(duel->mine));
	waiter_free(waiter);
	hf_cancel_free(cancel);
	end(duel);
}

static void cancel_that_loses_to_a_grant_delivers_the_grant(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_cancel *cancel = new_cancel();

	struct duel *duel = begin_at(state, proxy_url(proxy), 0);
	/* Afterwards the server knows the script, and the reply that is held back is the grant. */
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	ASSERT_OK(hf_lock_release(duel->mine));
	proxy_hold_replies(proxy, true);
	struct waiter *waiter = waiter_start(duel->mine, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	hf_cancel_fire(cancel);
	assert_false(waiter_is_over(waiter));
	proxy_hold_replies(proxy, false);
	waiter_expect(waiter, 0);
	assert_int_equal(hf_lock_state(duel->mine, waiter->options.owner), HF_HELD);
	ASSERT_OK(waiter_release(waiter));
	assert_false(key_exists(live_raw, "orders"));
	waiter_free(waiter);
	hf_cancel_free(cancel);
	end(duel);
	proxy_stop(proxy);
}

/* ---- owners, force, and clients that close ---- */

static void owners_of_one_client_exclude_each_other(void **state)
{
	hf_owner *first = new_owner();
	hf_owner *second = new_owner();

	struct duel *duel = begin(state, 0);
	hf_lock *same = open_named(duel->one, duel->match->theirs, "orders");
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.owner = first)));
	ASSERT_RC(hf_lock_acquire(same, HF_ACQUIRE(.owner = second, .wait_ms = HF_NOWAIT)),
	          HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(same, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_release_with(duel->mine, HF_RELEASE(.owner = second)), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(duel->mine, second, 60000), HF_ENOTHELD);
	struct waiter *waiter = waiter_start(same, HF_ACQUIRE(.owner = second));
	WAIT_UNTIL(stats_of(duel->one).waiting == 1, SOON_MS);
	ASSERT_WAKES(hf_lock_release_with(duel->mine, HF_RELEASE(.owner = first)), waiter, 1500);
	assert_int_equal(hf_lock_state(duel->mine, first), HF_FREE);
	assert_int_equal(hf_lock_state(same, second), HF_HELD);
	/* Only its holder can release it. */
	ASSERT_RC(hf_lock_release(same), HF_ENOTHELD);
	ASSERT_RC(hf_lock_release(duel->theirs), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(duel->theirs, NULL, 60000), HF_ENOTHELD);
	assert_int_equal(holds_of(duel->one), 1);
	waiter_finish(waiter);
	hf_owner_free(first);
	hf_lock_close(same);
	end(duel);
}

static void force_lets_the_waiter_in_and_the_holder_learns_of_it(void **state)
{
	int was_held = -7;

	struct duel *duel = begin(state, 750);
	hf_lock *tool = open_named(duel->two, duel->match->mine, "orders");
	ASSERT_OK(hf_lock_force_release(tool, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *waiter = waiter_start(duel->theirs, NULL);
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	ASSERT_WAKES(hf_lock_force_release(tool, &was_held), waiter, 1500);
	assert_int_equal(was_held, 1);
	WAIT_UNTIL(seen_count(&duel->seen, HF_LOST) == 1, SOON_MS);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	assert_int_equal(holds_of(duel->two), 1);
	waiter_finish(waiter);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	ASSERT_OK(hf_lock_force_release(duel->mine, &was_held));
	assert_int_equal(was_held, 1);
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "by force");
	hf_lock_close(tool);
	WAIT_UNTIL(nothing_is_left(), SOON_MS);
	end(duel);
}

static void close_releases_the_hold_and_answers_the_waiter(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_client *three = open_client(NULL);
	hf_lock *last = open_named(three, duel->match->theirs, "orders");
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *loser = waiter_start(duel->theirs, NULL);
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	ASSERT_OK(hf_client_close(duel->two));
	waiter_join(loser, HF_ECLOSED);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	assert_int_equal(holds_of(duel->one), 1);
	struct waiter *waiter = waiter_start(last, NULL);
	WAIT_UNTIL(stats_of(three).attempts >= 2, SOON_MS);
	ASSERT_WAKES(hf_client_close(duel->one), waiter, 1500);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ECLOSED);
	waiter_finish(waiter);
	hf_lock_close(last);
	hf_lock_close(duel->mine);
	hf_lock_close(duel->theirs);
	ASSERT_OK(hf_client_close(three));
	expect_nothing_left(duel->match);
	free(duel);
}

/* ---- crowds ---- */

static void threads_of_several_clients_lose_no_update(void **state)
{
	const struct match *match = *state;
	hf_client *client[TASKS];
	hf_lock *lock[TASKS];

	for (int i = 0; i < TASKS; i++) {
		client[i] = open_client(NULL);
		lock[i] = open_named(client[i], match->mine, "orders");
	}
	COUNT_TOGETHER(.locks = lock, .n = TASKS, .threads = TASKS * TASKS, .rounds = ROUNDS);
	for (int i = 0; i < TASKS; i++) {
		close_both(lock[i], client[i]);
	}
	expect_nothing_left(match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_ALL(try_while_held_is_busy_at_once),
		OF_ALL(waiter_gets_the_lock_soon_after_the_release),
		OF_ALL(wait_ends_on_time_and_leaves_nothing),
		OF_ALL(waiters_whose_time_ends_together_all_time_out),
		OF_ALL(cancelled_wait_ends_at_once_and_leaves_nothing),
		OF_ALL(cancel_that_loses_to_a_grant_delivers_the_grant),
		OF_ALL(owners_of_one_client_exclude_each_other),
		OF_ALL(force_lets_the_waiter_in_and_the_holder_learns_of_it),
		OF_ALL(close_releases_the_hold_and_answers_the_waiter),
		OF_EXCLUSIVE(threads_of_several_clients_lose_no_update),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
