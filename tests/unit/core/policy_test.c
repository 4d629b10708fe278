/* How long a hold lasts: with leases that the server counts, and with a session. */
#include "fake.h"

static const struct hf__traits session_traits = {.kind = HF_REENTRANT,
                                                 .session = true,
                                                 .nesting = HF__NEST_HERE,
                                                 .channel = HF__CHANNEL_WAITER};

static const struct hf__traits *give_session_traits(int kind, const char **ret_why)
{
	(void)kind;
	(void)ret_why;
	return &session_traits;
}

/* Opens a lock whose holds last as long as the session. */
static struct hf__lock *open_session_lock(struct fake *fake)
{
	static struct hf__backend_ops ops;
	ops = *fake->core.backend_ops;
	ops.traits = give_session_traits;
	fake->core.backend_ops = &ops;
	return fake_lock(fake, "jobs");
}

static struct hf__op *acquire(struct fake *fake, struct hf__lock *lock, int64_t lease_ms)
{
	return fake_start_on(fake, lock, .action = HF__OP_ACQUIRE, .owner = 1,
	                     .lease_ms = lease_ms);
}

/* Opens such a lock and acquires it. */
static struct hf__lock *hold_session_lock(struct fake *fake, int64_t lease_ms)
{
	struct hf__lock *lock = open_session_lock(fake);
	struct hf__op *op = acquire(fake, lock, lease_ms);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	return lock;
}

static void valid_until_counts_from_the_request_less_the_drift(void **state)
{
	(void)state;
	assert_int_equal(hf__policy_valid_until(5000, 10000), 5000 + 10000 - 100 - 2);
}

static void an_ask_for_a_lease_carries_that_lease(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_for(fake, 1, 1234);
	assert_int_equal(fake_sent(fake, HF__ASK)->lease_ms, 1234);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	fake_release_done(fake, 1, 0);
}

static void an_ask_with_a_session_carries_the_lease_of_the_session(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = open_session_lock(fake);
	struct hf__op *op = acquire(fake, lock, 1234);
	assert_int_equal(fake_sent(fake, HF__ASK)->lease_ms, FAKE_WATCHDOG);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(hf__hold_lease(hf__hold_find(lock, 1)), 1234);
}

static void a_nested_level_with_a_session_sends_nothing(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hold_session_lock(fake, 0);
	struct hf__op *inner = acquire(fake, lock, 0);
	check_nothing_sent(fake);
	check_result(inner, 0);
	assert_int_equal(hf__hold_find(lock, 1)->count, 2);
}

/* The server does not know of the lease, so the client removes what is left of the hold. */
static void a_lease_ends_a_hold_while_its_session_lasts(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hold_session_lock(fake, 1000);
	fake_advance(fake, 900);
	assert_int_equal(hf__hold_find(lock, 1)->state, HF__HOLD_HELD);
	fake_advance(fake, 100);
	const struct hf__hold *hold = hf__hold_find(lock, 1);
	assert_int_equal(hold->state, HF__HOLD_LOST);
	assert_int_equal(hold->reason, HF__LOST_EXPIRED);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__DONE);
}

static void a_hold_of_a_session_that_is_not_confirmed_is_lost_with_the_session(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hold_session_lock(fake, 0);
	fake_link_down(fake);
	fake_advance(fake, FAKE_WATCHDOG);
	assert_int_equal(hf__hold_find(lock, 1)->state, HF__HOLD_LOST);
	assert_int_equal(hf__hold_find(lock, 1)->reason, HF__LOST_UNREACHABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_until_counts_from_the_request_less_the_drift),
		fake_test(an_ask_for_a_lease_carries_that_lease),
		fake_test(an_ask_with_a_session_carries_the_lease_of_the_session),
		fake_test(a_nested_level_with_a_session_sends_nothing),
		fake_test(a_lease_ends_a_hold_while_its_session_lasts),
		fake_test(a_hold_of_a_session_that_is_not_confirmed_is_lost_with_the_session),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
