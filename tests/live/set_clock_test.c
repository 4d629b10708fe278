/* A server whose wall clock is set, or runs fast, while locks are held and waited for. */
#include "live/child.h"
#include "live/on_host.h"

#define LEASE_MS 6000

static struct rivals *begin(void)
{
	begin_server(&(struct test_server_options){0});
	return open_rivals(HF_REENTRANT, HF_CLIENT(.watchdog_ms = LEASE_MS));
}

/*
 * The other client has the lock with a greater token, and keeps it when the first one learns of its
 * loss.
 */
static void expect_given_away(struct rivals *rivals, int64_t first)
{
	int64_t next = take_token(rivals->theirs, HF_ACQUIRE(.token = 1, .wait_ms = LEASE_MS));
	assert_true(next > first);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, LEASE_MS);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "the server no longer had the hold");
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, SOON_MS);
	assert_true(is_held_by(live_raw, "orders", rivals->two));
}

/* ---- a clock that is set ---- */

static void clock_set_forward_costs_the_hold_at_its_next_renewal(void **state)
{
	(void)state;
	struct rivals *rivals = begin();
	int64_t first = take_token(rivals->mine, HF_ACQUIRE(.token = 1));
	test_host_step(host, LEASE_MS + 1000);
	expect_given_away(rivals, first);
	/*
	 * The clock is right again, and the other hold continues with more of its lease than
	 * before.
	 */
	test_host_step(host, -LEASE_MS - 1000);
	uint64_t renewals = stats_of(rivals->two).renewals;
	WAIT_UNTIL(stats_of(rivals->two).renewals > renewals, LEASE_MS);
	assert_int_equal(hf_lock_state(rivals->theirs, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	assert_int_equal(seen_count(&rivals->seen, HF_LOST), 1);
	end(rivals);
}

/* The holder was killed, so that nothing but its lease, or an operator, frees the lock. */
static void clock_set_back_keeps_the_lock_of_a_dead_holder(void **state)
{
	(void)state;
	begin_server(&(struct test_server_options){0});
	pid_t holder = start_holder(HF_REENTRANT, "orders", 1200);
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	test_host_step(host, -60000);
	kill_child(holder);
	struct rivals *rivals = open_rivals(HF_REENTRANT, HF_CLIENT(.watchdog_ms = LEASE_MS));
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 3000)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 10000, 61200);
	struct waiter *waiter = waiter_start(rivals->mine, NULL);
	WAIT_UNTIL(stats_of(rivals->one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_force_release(rivals->theirs, NULL));
	waiter_finish(waiter);
	end(rivals);
}

static void clock_set_back_does_not_make_tokens_smaller(void **state)
{
	(void)state;
	struct rivals *rivals = begin();
	int64_t first = take_token(rivals->mine, HF_ACQUIRE(.token = 1));
	test_host_step(host, -60000);
	uint64_t renewals = stats_of(rivals->one).renewals;
	WAIT_UNTIL(stats_of(rivals->one).renewals > renewals, LEASE_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(take_token(rivals->theirs, HF_ACQUIRE(.token = 1)), first + 1);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	assert_int_equal(seen_count(&rivals->seen, HF_LOST), 0);
	end(rivals);
}

/* ---- a clock that is fast ---- */

/*
 * A fixed lease, so that nothing but the margin keeps the holder from believing in it for too long.
 */
static void hold_ends_in_time_where_the_clock_gains_1_percent(void **state)
{
	(void)state;
	struct rivals *rivals = begin();
	test_host_gain(host, 10000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 2000)));
	bool is_there = true;
	while (is_there) {
		is_there = key_exists(live_raw, "orders");
		if (!is_there)
			assert_int_equal(hf_lock_remaining(rivals->mine, NULL), 0);
	}
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	end(rivals);
}

/*
 * docs/guarantees.md excludes this clock. A hold that is renewed does not notice it; a fixed lease
 * is given away.
 */
static void renewals_are_in_time_where_the_clock_gains_50_percent(void **state)
{
	(void)state;
	struct rivals *rivals = begin();
	test_host_gain(host, 500000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	hf_lock *fixed = open_lock(rivals->one, "fixed");
	ASSERT_OK(hf_lock_acquire(fixed, HF_ACQUIRE(.lease_ms = LEASE_MS)));
	WAIT_UNTIL(!key_exists(live_raw, "fixed"), LEASE_MS);
	ASSERT_BETWEEN(hf_lock_remaining(fixed, NULL), 0, LEASE_MS / 3);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_true(is_held_by(live_raw, "orders", rivals->one));
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_RC(hf_lock_release(fixed), HF_ELOST);
	hf_lock_close(fixed);
	end(rivals);
}

/* A lease of this server ends before a third of it has passed, which is when it is renewed. */
static void clock_that_is_too_fast_for_renewals_costs_the_hold(void **state)
{
	(void)state;
	struct rivals *rivals = begin();
	int64_t first = take_token(rivals->mine, HF_ACQUIRE(.token = 1));
	test_host_gain(host, 9000000);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), LEASE_MS);
	test_host_gain(host, 0);
	expect_given_away(rivals, first);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	end(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* It forks, so it runs first, before any thread is started. */
		cmocka_unit_test(clock_set_back_keeps_the_lock_of_a_dead_holder),
		cmocka_unit_test(clock_set_back_does_not_make_tokens_smaller),
		cmocka_unit_test(clock_set_forward_costs_the_hold_at_its_next_renewal),
		cmocka_unit_test(hold_ends_in_time_where_the_clock_gains_1_percent),
		cmocka_unit_test(renewals_are_in_time_where_the_clock_gains_50_percent),
		cmocka_unit_test(clock_that_is_too_fast_for_renewals_costs_the_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
