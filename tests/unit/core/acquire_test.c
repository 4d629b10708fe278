/* Checks how a lock is asked for, waited for, and not granted. */
#include "fake.h"

/* ---- the first ask ---- */

static void free_lock_is_granted_by_one_ask(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	struct hf__cmd *cmd = check_sent(fake, HF__ASK, 1);
	assert_ptr_equal(cmd->lock, fake->lock[0]);
	assert_int_equal(cmd->lease_ms, FAKE_WATCHDOG);
	assert_int_equal(cmd->sent_at, FAKE_START);
	check_waits(op);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	check_nothing_sent(fake);
	assert_int_equal(fake->watches, 0);
	assert_int_equal(fake->core.stats.grants, 1);
	assert_int_equal(fake->core.stats.waits, 0);
}

static void ask_has_a_ninth_of_the_lease_but_not_more_than_any_command(void **state)
{
	struct fake *fake = *state;
	(void)fake_acquire_for(fake, 1, 9000);
	struct hf__cmd *cmd = fake_sent(fake, HF__ASK);
	assert_int_equal(cmd->lease_ms, 9000);
	assert_int_equal(cmd->answer_by, FAKE_START + 1000);
	fake_answer(fake, HF__GRANTED);
	fake_release_done(fake, 1, 0);
	(void)fake_acquire_for(fake, 1, 100);
	assert_int_equal(fake_sent(fake, HF__ASK)->answer_by, FAKE_START + 50);
	fake_answer(fake, HF__GRANTED);
	fake_release_done(fake, 1, 0);
	(void)fake_acquire_for(fake, 1, 600000);
	assert_int_equal(fake_sent(fake, HF__ASK)->answer_by, FAKE_START + FAKE_TIMEOUT);
}

static void every_acquisition_has_a_new_wire_number(void **state)
{
	struct fake *fake = *state;
	uint64_t first = fake_hold(fake, 1, 0)->cmd.wire;
	fake_release_done(fake, 1, 0);
	uint64_t second = fake_hold(fake, 1, 0)->cmd.wire;
	assert_true(first != second);
}

/* ---- busy ---- */

static void busy_lock_is_watched_and_asked_again_in_the_same_step(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	uint64_t wire = fake_sent(fake, HF__ASK)->wire;
	fake_answer_busy(fake, 10000);
	assert_int_equal(fake->watches, 1);
	struct hf__cmd *cmd = check_sent(fake, HF__ASK, 1);
	assert_true(cmd->wire == wire);
	fake_answer_busy(fake, 10000);
	check_nothing_sent(fake);
	check_waits(op);
	assert_int_equal(fake->core.stats.waits, 1);
}

/* Asked twice, and waiting for news. */
static struct hf__op *wait_for_it(struct fake *fake, uint64_t owner, int64_t ttl_ms)
{
	struct hf__op *op = fake_acquire(fake, owner);
	fake_answer_busy(fake, ttl_ms);
	if (fake_pending(fake))
		fake_answer_busy(fake, ttl_ms);
	check_nothing_sent(fake);
	check_waits(op);
	return op;
}

static void second_ask_may_be_granted(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	fake_answer_busy(fake, 10000);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

static void wake_up_asks_and_grants_nothing_on_its_own(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = wait_for_it(fake, 1, 10000);
	fake_wake(fake, fake->lock[0]);
	(void)check_sent(fake, HF__ASK, 1);
	check_waits(op);
	assert_int_equal(fake_remaining(fake, 1), 0);
	fake_wake(fake, fake->lock[0]);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer_busy(fake, 10000);
	check_nothing_sent(fake);
	fake_wake(fake, fake->lock[0]);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake->core.stats.wakeups, 3);
}

static void wake_up_for_nobody_sends_nothing(void **state)
{
	struct fake *fake = *state;
	fake_wake(fake, fake->lock[0]);
	(void)fake_hold(fake, 1, 0);
	fake_wake(fake, fake->lock[0]);
	check_nothing_sent(fake);
}

static void end_of_the_holders_lease_asks(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = wait_for_it(fake, 1, 700);
	fake_advance(fake, 700);
	check_nothing_sent(fake);
	fake_advance(fake, 1);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

/* The time until it asks on its own. */
static int64_t time_to_ask(struct fake *fake)
{
	int64_t from = fake->now;
	while (fake_pending(fake) == 0 && fake->now - from < 10000)
		fake_advance(fake, 1);
	return fake->now - from;
}

static void slow_poll_asks_after_3_seconds_more_or_less(void **state)
{
	struct fake *fake = *state;
	int64_t least = INT64_MAX, most = 0;
	(void)wait_for_it(fake, 1, -1);
	for (int i = 0; i < 100; i++) {
		int64_t ms = time_to_ask(fake);
		assert_in_range(ms, 2400, 3600);
		least = ms < least ? ms : least;
		most = ms > most ? ms : most;
		fake_answer_busy(fake, i % 2 ? -1 : 100000);
		check_nothing_sent(fake);
	}
	assert_true(most - least > 600);
}

static void attempt_without_waiting_is_busy_at_once(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, HF_NOWAIT);
	fake_answer_busy(fake, 1234);
	check_result(op, HF_EBUSY);
	check_detail(op, "1234 ms left");
	check_nothing_sent(fake);
	assert_int_equal(fake->watches, 0);
	assert_int_equal(fake->core.holds, 0);
}

static void watch_ends_a_second_after_the_last_waiter_left(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = wait_for_it(fake, 1, -1);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	fake_advance(fake, HF__WATCH_KEEP_MS - 1);
	assert_int_equal(fake->watches, 1);
	fake_advance(fake, 1);
	assert_int_equal(fake->watches, 0);
}

static void watch_is_kept_for_a_waiter_that_comes_soon(void **state)
{
	struct fake *fake = *state;
	hf__core_cancel(&fake->core, wait_for_it(fake, 1, -1), fake->now);
	fake_advance(fake, HF__WATCH_KEEP_MS / 2);
	(void)fake_acquire(fake, 1);
	fake_answer_busy(fake, -1);
	/* It was watched when the ask went out, so one ask is enough. */
	check_nothing_sent(fake);
	fake_advance(fake, HF__WATCH_KEEP_MS);
	assert_int_equal(fake->watches, 1);
}

static void watch_that_fails_ends_all_waiters(void **state)
{
	struct fake *fake = *state;
	struct hf__op *first = wait_for_it(fake, 1, -1);
	struct hf__op *second = fake_acquire(fake, 2);
	hf__core_on_watch_failed(&fake->core, fake->lock[0]->watches, HF_EDENIED, "NOPERM", 6,
	                         fake->now);
	check_result(first, HF_EDENIED);
	check_result(second, HF_EDENIED);
	check_detail(first, "orders: cannot wait: NOPERM");
	fake->watches--; /* The backend has forgotten it. */
}

static void no_memory_for_a_watch_ends_the_call(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	fake->watch_full = true;
	fake_answer_busy(fake, -1);
	check_result(op, HF_ENOMEM);
	assert_int_equal(fake->core.holds, 0);
}

/* The lock's link was replaced by another one, which is up already. */
static void ask_that_never_left_is_sent_on_another_link(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	fake_reply(fake, (struct hf__answer){.outcome = HF__UNSENT, .error = HF_EUNREACHABLE});
	check_waits(op);
	fake_advance(fake, 1000);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

/* ---- time runs out ---- */

static void call_that_waits_times_out_and_leaves_nothing(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, 500);
	fake_answer_busy(fake, -1);
	fake_answer_busy(fake, -1);
	fake_advance(fake, 499);
	check_waits(op);
	fake_advance(fake, 1);
	check_result(op, HF_ETIMEDOUT);
	check_detail(op, "waited 500 ms");
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 0);
	assert_int_equal(fake->core.stats.timeouts, 1);
	fake_advance(fake, 10000);
	check_nothing_sent(fake);
	assert_int_equal(fake->watches, 0);
}

static void deadline_with_an_ask_in_flight_is_unknown_and_the_late_grant_is_settled(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, 500);
	uint64_t wire = fake_sent(fake, HF__ASK)->wire;
	fake_advance(fake, 500);
	check_result(op, HF_EUNKNOWN);
	assert_int_equal(fake_remaining(fake, 1), 0);
	fake_advance(fake, 100);
	fake_answer(fake, HF__GRANTED);
	struct hf__cmd *cmd = check_sent(fake, HF__SETTLE, 0);
	assert_true(cmd->wire == wire);
	fake_answer(fake, HF__DONE);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 0);
	check_nothing_reported(fake);
}

static void late_busy_needs_no_clean_up(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, 500);
	fake_advance(fake, 500);
	check_result(op, HF_EUNKNOWN);
	fake_answer_busy(fake, 100);
	check_nothing_sent(fake);
	assert_int_equal(fake->core.holds, 0);
}

static void clean_up_is_repeated_until_the_lease_has_ended(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_start(fake, .action = HF__OP_ACQUIRE, .owner = 1, .wait_ms = 500,
	                               .lease_ms = 6000);
	fake_advance(fake, 500);
	check_result(op, HF_EUNKNOWN);
	fake_answer(fake, HF__GRANTED);
	for (int tries = 0; fake_pending(fake); tries++) {
		assert_true(tries < 20);
		(void)check_sent(fake, HF__SETTLE, 0);
		fake_answer(fake, HF__NOT_NOW);
		fake_advance(fake, 700);
	}
	assert_int_equal(fake->core.holds, 0);
	assert_in_range(fake->now, FAKE_START + 6000, FAKE_START + 6000 + 2 * 700);
}

static void next_call_of_the_owner_waits_for_the_clean_up(void **state)
{
	struct fake *fake = *state;
	(void)fake_acquire_within(fake, 1, 500);
	uint64_t wire = fake_sent(fake, HF__ASK)->wire;
	fake_advance(fake, 500);
	struct hf__op *op = fake_acquire(fake, 1);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer(fake, HF__GRANTED);
	(void)check_sent(fake, HF__SETTLE, 0);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer(fake, HF__DONE);
	assert_true(check_sent(fake, HF__ASK, 1)->wire != wire);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

static void attempt_without_waiting_and_without_an_answer_is_unknown(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, HF_NOWAIT);
	fake_advance(fake, FAKE_TIMEOUT - 1);
	check_waits(op);
	fake_advance(fake, 1);
	check_result(op, HF_EUNKNOWN);
}

/* ---- cancel ---- */

static void cancel_while_waiting_ends_the_call_at_once(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = wait_for_it(fake, 1, -1);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, HF_ECANCELLED);
	assert_int_equal(fake->core.holds, 0);
	fake_advance(fake, 5000);
	check_nothing_sent(fake);
}

static void cancel_that_loses_the_race_delivers_the_grant(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	hf__core_cancel(&fake->core, op, fake->now);
	check_waits(op);
	hf__core_cancel(&fake->core, op, fake->now);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_true(fake_remaining(fake, 1) > 0);
}

static void cancel_with_an_ask_in_flight_turns_busy_into_cancelled(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	hf__core_cancel(&fake->core, op, fake->now);
	fake_answer_busy(fake, -1);
	check_result(op, HF_ECANCELLED);
	check_nothing_sent(fake);
	assert_int_equal(fake->watches, 0);
	assert_int_equal(fake->core.holds, 0);
}

static void cancelled_ask_that_stays_unknown_is_settled_later(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	hf__core_cancel(&fake->core, op, fake->now);
	fake_link_down(fake);
	check_result(op, HF_ECANCELLED);
	fake_link_up(fake);
	(void)check_sent(fake, HF__SETTLE, 0);
	fake_answer(fake, HF__GONE);
	assert_int_equal(fake->core.holds, 0);
}

static void cancel_of_a_finished_call_changes_nothing(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	fake_answer(fake, HF__GRANTED);
	hf__core_cancel(&fake->core, op, fake->now);
	check_result(op, 0);
	assert_true(fake_remaining(fake, 1) > 0);
}

/* ---- connections ---- */

static void unknown_ask_is_repeated_with_the_same_wire_number(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	uint64_t wire = fake_sent(fake, HF__ASK)->wire;
	fake_link_down(fake);
	check_waits(op);
	fake_advance(fake, 200);
	check_nothing_sent(fake);
	fake_link_up(fake);
	struct hf__cmd *cmd = check_sent(fake, HF__ASK, 1);
	assert_true(cmd->wire == wire);
	assert_int_equal(cmd->sent_at, FAKE_START + 200);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake->core.stats.unknowns, 1);
	assert_int_equal(fake->core.stats.reconnects, 1);
}

static void unknown_ask_at_the_deadline_is_unknown(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, 500);
	fake_link_down(fake);
	fake_advance(fake, 500);
	check_result(op, HF_EUNKNOWN);
	fake_link_up(fake);
	(void)check_sent(fake, HF__SETTLE, 0);
}

static void ask_that_never_left_is_unreachable_at_the_deadline(void **state)
{
	struct fake *fake = *state;
	fake_link_down(fake);
	struct hf__op *op = fake_acquire_within(fake, 1, 500);
	assert_int_equal(fake->wants, 1);
	fake_advance(fake, 500);
	check_result(op, HF_EUNREACHABLE);
	check_detail(op, "reset by peer");
	assert_int_equal(fake->core.holds, 0);
}

static void waiter_asks_again_after_a_reconnect(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = wait_for_it(fake, 1, -1);
	fake_link_down(fake);
	fake_link_up(fake);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

static void first_contact_that_fails_ends_the_calls(void **state)
{
	struct fake *fake = *state;
	struct hf__op *first = fake_acquire(fake, 1);
	struct hf__op *second = fake_acquire(fake, 2);
	assert_true(fake->wants > 0);
	hf__core_on_link_failed(&fake->core, &fake->core.link, HF_EAUTH, "WRONGPASS", fake->now);
	check_result(first, HF_EAUTH);
	check_result(second, HF_EAUTH);
	check_detail(first, "WRONGPASS");
}

/* Each of many addresses has failed in its own way, and the caller learns all of it. */
static void a_long_reason_for_a_failed_connection_is_reported_in_full(void **state)
{
	struct fake *fake = *state;
	char why[480] = "";
	while (strlen(why) < 400)
		strcat(why, "[2001:db8::1]:6379: connection refused; ");
	strcat(why, "the last address");
	struct hf__op *op = fake_acquire(fake, 1);
	hf__core_on_link_failed(&fake->core, &fake->core.link, HF_EUNREACHABLE, why, fake->now);
	check_result(op, HF_EUNREACHABLE);
	check_detail(op, why);
}

static void later_contact_that_fails_ends_nothing(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	fake_link_down(fake);
	hf__core_on_link_failed(&fake->core, &fake->core.link, HF_EUNREACHABLE, "refused",
	                        fake->now);
	check_waits(op);
}

static void command_without_room_ends_the_call_in_the_next_turn(void **state)
{
	struct fake *fake = *state;
	fake->full = true;
	struct hf__op *op = fake_acquire(fake, 1);
	check_waits(op);
	assert_true(hf__core_due(&fake->core) <= fake->now);
	fake_turn(fake);
	check_result(op, HF_ENOMEM);
	assert_int_equal(fake->core.holds, 0);
}

/* ---- refusals ---- */

static void refusal_ends_the_call_with_the_servers_text(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	fake_reply(fake, (struct hf__answer){.outcome = HF__FAILED,
	                                     .error = HF_ECONFLICT,
	                                     .text = "WRONGTYPE of key",
	                                     .length = 9});
	check_result(op, HF_ECONFLICT);
	assert_string_equal(op->detail, "orders: WRONGTYPE");
	assert_int_equal(fake->core.holds, 0);
}

static void server_that_is_not_ready_is_asked_again_soon(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire(fake, 1);
	fake_answer(fake, HF__NOT_NOW);
	check_waits(op);
	assert_in_range(time_to_ask(fake), 80, 120);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
}

static void server_that_is_never_ready_is_named_at_the_deadline(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_acquire_within(fake, 1, 500);
	while (hf__op_is_active(op)) {
		if (fake_pending(fake))
			fake_reply(fake, (struct hf__answer){.outcome = HF__NOT_NOW,
			                                     .error = HF_ENOTNOW,
			                                     .text = "LOADING",
			                                     .length = 7});
		fake_advance(fake, 1);
	}
	check_result(op, HF_ENOTNOW);
	check_detail(op, "LOADING");
	assert_int_equal(fake->now, FAKE_START + 500);
	assert_int_equal(fake->core.holds, 0);
}

/* ---- the local queue ---- */

static void only_the_first_of_five_waiters_asks(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op[5];
	op[0] = wait_for_it(fake, 1, 20000);
	for (uint64_t i = 1; i < 5; i++)
		op[i] = fake_acquire(fake, i + 1);
	check_nothing_sent(fake);
	for (int i = 0; i < 10; i++) {
		(void)time_to_ask(fake);
		assert_int_equal(fake_pending(fake), 1);
		fake_answer_busy(fake, 20000);
	}
	fake_wake(fake, fake->lock[0]);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer(fake, HF__GRANTED);
	check_result(op[0], 0);
	check_nothing_sent(fake);
	for (int i = 1; i < 5; i++)
		check_waits(op[i]);
}

/* Nothing changed on the server when a waiter left, so the poll continues unchanged. */
static void waiter_that_gives_up_leaves_its_poll_to_the_next(void **state)
{
	struct fake *fake = *state;
	struct hf__op *first = wait_for_it(fake, 1, -1);
	struct hf__op *second = fake_acquire(fake, 2);
	hf__core_cancel(&fake->core, first, fake->now);
	check_result(first, HF_ECANCELLED);
	check_nothing_sent(fake);
	fake_advance(fake, HF__SLOW_POLL_MS * 6 / 5 + 1);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(second, 0);
}

static void waiters_whose_time_ends_together_all_time_out(void **state)
{
	struct fake *fake = *state;
	struct hf__op *first = wait_for_it(fake, 1, -1);
	struct hf__op *op[3];
	for (int i = 0; i < 3; i++)
		op[i] = fake_acquire_within(fake, (uint64_t)i + 2, 300);
	fake_advance(fake, 301);
	for (int i = 0; i < 3; i++)
		check_result(op[i], HF_ETIMEDOUT);
	check_nothing_sent(fake);
	hf__core_cancel(&fake->core, first, fake->now);
}

static void waiter_for_a_lost_hold_asks_when_the_hold_ends(void **state)
{
	struct fake *fake = *state;
	struct hf__hold *hold = fake_hold(fake, 1, 1000);
	int64_t until = hold->valid_until;
	struct hf__op *op = fake_acquire(fake, 2);
	fake_advance(fake, HF__LISTEN_MS);
	fake_answer_busy(fake, 5000);
	fake_advance(fake, until - fake->now - 1);
	check_nothing_sent(fake);
	fake_advance(fake, 1);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	CHECK_REPORTED(fake, HF_AT_RISK, HF_LOST);
}

/* A hold that was taken away unseen would otherwise hold its neighbours up for a whole lease. */
static void waiter_for_a_hold_of_this_process_polls_slowly(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 600000);
	(void)fake_acquire(fake, 2);
	assert_int_equal(fake->watches, 0);
	assert_int_equal(time_to_ask(fake), HF__LISTEN_MS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fake->watches, 1);
		fake_answer_busy(fake, 500000);
		check_nothing_sent(fake);
		assert_in_range(time_to_ask(fake), 2400, 3600);
		(void)check_sent(fake, HF__ASK, 1);
	}
}

static void waiter_for_a_hold_of_this_process_hears_that_it_was_taken_away(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 600000);
	struct hf__op *op = fake_acquire(fake, 2);
	fake_advance(fake, HF__LISTEN_MS);
	fake_answer_busy(fake, 500000);
	fake_wake(fake, fake->lock[0]);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	assert_int_equal(fake_state(fake, 1), HF_LOST);
}

/* Messages that arrived before are not lost, so nothing has to be asked. */
static void next_waiter_of_a_lock_that_is_listened_to_only_listens(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 600000);
	struct hf__op *op = fake_acquire_within(fake, 2, 1000);
	struct hf__op *next = fake_acquire(fake, 3);
	fake_advance(fake, HF__LISTEN_MS);
	fake_answer_busy(fake, 500000);
	fake_advance(fake, 1000 - HF__LISTEN_MS);
	check_result(op, HF_ETIMEDOUT);
	fake_advance(fake, HF__LISTEN_MS);
	check_nothing_sent(fake);
	assert_true(next->listens);
	fake_wake(fake, fake->lock[0]);
	(void)check_sent(fake, HF__ASK, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(next, 0);
}

static void short_wait_for_a_hold_of_this_process_sends_nothing(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	for (uint64_t owner = 2; owner < 10; owner++) {
		struct hf__op *op = fake_acquire(fake, owner);
		fake_advance(fake, HF__LISTEN_MS - 1);
		check_nothing_sent(fake);
		struct hf__op *release = fake_release(fake, owner - 1);
		bool moves = fake->sent.next &&
		             hf__list_item(fake->sent.next, struct hf__cmd, link)->verb == HF__MOVE;
		fake_answer(fake, moves ? HF__GRANTED : HF__DONE);
		if (!moves)
			fake_answer(fake, HF__GRANTED);
		check_result(release, 0);
		check_result(op, 0);
	}
	assert_int_equal(fake->watches, 0);
}

static void calls_of_one_owner_wait_for_each_other_in_order(void **state)
{
	struct fake *fake = *state;
	struct hf__op *first = fake_acquire(fake, 1);
	struct hf__op *second = fake_acquire(fake, 1);
	struct hf__op *third = fake_acquire(fake, 1);
	assert_int_equal(fake_pending(fake), 1);
	fake_answer(fake, HF__GRANTED);
	check_result(first, 0);
	(void)check_sent(fake, HF__ASK, 2);
	assert_int_equal(fake_pending(fake), 1);
	struct hf__op *release = fake_release(fake, 1);
	fake_answer(fake, HF__GRANTED);
	check_result(second, 0);
	(void)check_sent(fake, HF__ASK, 3);
	fake_answer(fake, HF__GRANTED);
	check_result(third, 0);
	(void)check_sent(fake, HF__SETTLE, 2);
	fake_answer(fake, HF__DONE);
	check_result(release, 0);
	check_nothing_sent(fake);
}

static void parked_call_times_out_and_can_be_cancelled(void **state)
{
	struct fake *fake = *state;
	struct hf__op *first = fake_acquire(fake, 1);
	struct hf__op *second = fake_acquire_within(fake, 1, 100);
	struct hf__op *third = fake_acquire(fake, 1);
	hf__core_cancel(&fake->core, third, fake->now);
	check_result(third, HF_ECANCELLED);
	fake_advance(fake, 100);
	check_result(second, HF_ETIMEDOUT);
	check_waits(first);
	fake_answer(fake, HF__GRANTED);
	check_result(first, 0);
	check_nothing_sent(fake);
}

static void locks_of_other_names_do_not_wait_for_each_other(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *other = fake_lock(fake, "invoices");
	(void)fake_acquire(fake, 1);
	(void)fake_start_on(fake, other, .action = HF__OP_ACQUIRE, .owner = 1);
	assert_int_equal(fake_pending(fake), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(free_lock_is_granted_by_one_ask),
		fake_test(ask_has_a_ninth_of_the_lease_but_not_more_than_any_command),
		fake_test(every_acquisition_has_a_new_wire_number),
		fake_test(busy_lock_is_watched_and_asked_again_in_the_same_step),
		fake_test(second_ask_may_be_granted),
		fake_test(wake_up_asks_and_grants_nothing_on_its_own),
		fake_test(wake_up_for_nobody_sends_nothing),
		fake_test(end_of_the_holders_lease_asks),
		fake_test(slow_poll_asks_after_3_seconds_more_or_less),
		fake_test(attempt_without_waiting_is_busy_at_once),
		fake_test(watch_ends_a_second_after_the_last_waiter_left),
		fake_test(watch_is_kept_for_a_waiter_that_comes_soon),
		fake_test(watch_that_fails_ends_all_waiters),
		fake_test(no_memory_for_a_watch_ends_the_call),
		fake_test(ask_that_never_left_is_sent_on_another_link),
		fake_test(call_that_waits_times_out_and_leaves_nothing),
		fake_test(deadline_with_an_ask_in_flight_is_unknown_and_the_late_grant_is_settled),
		fake_test(late_busy_needs_no_clean_up),
		fake_test(clean_up_is_repeated_until_the_lease_has_ended),
		fake_test(next_call_of_the_owner_waits_for_the_clean_up),
		fake_test(attempt_without_waiting_and_without_an_answer_is_unknown),
		fake_test(cancel_while_waiting_ends_the_call_at_once),
		fake_test(cancel_that_loses_the_race_delivers_the_grant),
		fake_test(cancel_with_an_ask_in_flight_turns_busy_into_cancelled),
		fake_test(cancelled_ask_that_stays_unknown_is_settled_later),
		fake_test(cancel_of_a_finished_call_changes_nothing),
		fake_test(unknown_ask_is_repeated_with_the_same_wire_number),
		fake_test(unknown_ask_at_the_deadline_is_unknown),
		fake_test(ask_that_never_left_is_unreachable_at_the_deadline),
		fake_test(waiter_asks_again_after_a_reconnect),
		fake_test_unlinked(first_contact_that_fails_ends_the_calls),
		fake_test_unlinked(a_long_reason_for_a_failed_connection_is_reported_in_full),
		fake_test(later_contact_that_fails_ends_nothing),
		fake_test(command_without_room_ends_the_call_in_the_next_turn),
		fake_test(refusal_ends_the_call_with_the_servers_text),
		fake_test(server_that_is_not_ready_is_asked_again_soon),
		fake_test(server_that_is_never_ready_is_named_at_the_deadline),
		fake_test(only_the_first_of_five_waiters_asks),
		fake_test(waiter_that_gives_up_leaves_its_poll_to_the_next),
		fake_test(waiters_whose_time_ends_together_all_time_out),
		fake_test(waiter_for_a_lost_hold_asks_when_the_hold_ends),
		fake_test(waiter_for_a_hold_of_this_process_polls_slowly),
		fake_test(waiter_for_a_hold_of_this_process_hears_that_it_was_taken_away),
		fake_test(next_waiter_of_a_lock_that_is_listened_to_only_listens),
		fake_test(short_wait_for_a_hold_of_this_process_sends_nothing),
		fake_test(calls_of_one_owner_wait_for_each_other_in_order),
		fake_test(parked_call_times_out_and_can_be_cancelled),
		fake_test(locks_of_other_names_do_not_wait_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
