/* Checks queries and release by force: what is asked, trusted, repeated and given up. */
#include "fake.h"

static struct hf__op *ask(struct fake *fake, enum hf__op_action action, uint64_t owner)
{
	return fake_start(fake, .action = (uint8_t)action, .owner = owner);
}

static struct hf__op *query(struct fake *fake, enum hf__question question, uint64_t owner)
{
	return fake_start(fake, .action = HF__OP_QUERY, .question = (uint8_t)question,
	                  .owner = owner);
}

static void answer_query(struct fake *fake, int64_t ttl_ms, int64_t count, const char *holder)
{
	(void)fake_sent(fake, HF__LOOK);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE,
	                                     .ttl_ms = ttl_ms,
	                                     .count = count,
	                                     .text = holder,
	                                     .length = holder ? strlen(holder) : 0});
}

static void answer_force(struct fake *fake, int64_t was_there)
{
	(void)fake_sent(fake, HF__FORCE);
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .count = was_there});
}

static void answer_not_now(struct fake *fake)
{
	fake_reply(fake, (struct hf__answer){.outcome = HF__NOT_NOW,
	                                     .error = HF_ENOTNOW,
	                                     .text = "LOADING, wait",
	                                     .length = 7});
}

/* ---- answers ---- */

static void lock_is_locked_unless_the_server_has_no_such_key(void **state)
{
	static const struct {
		int64_t ttl_ms;
		int locked;
	} list[] = {{-2, 0}, {-1, 1}, {0, 1}, {30000, 1}};
	struct fake *fake = *state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct hf__op *op = query(fake, HF__QUERY_IS_LOCKED, 1);
		check_waits(op);
		answer_query(fake, list[i].ttl_ms, 0, NULL);
		check_result(op, 0);
		assert_int_equal(op->number, list[i].locked);
	}
}

static void ttl_is_what_the_server_says(void **state)
{
	static const int64_t list[] = {-2, -1, 0, 1, 29999, HF__LONGEST_MS};
	struct fake *fake = *state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct hf__op *op = query(fake, HF__QUERY_TTL, 1);
		answer_query(fake, list[i], 0, NULL);
		check_result(op, 0);
		assert_int_equal(op->number, list[i]);
	}
}

static void holder_is_copied_as_the_server_has_it(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = query(fake, HF__QUERY_HOLDER, 1);
	answer_query(fake, 1000, 0, "5c1e:7");
	check_result(op, 0);
	assert_string_equal(op->text, "5c1e:7");
	op = query(fake, HF__QUERY_HOLDER, 1);
	answer_query(fake, -2, 0, NULL);
	check_result(op, 0);
	assert_string_equal(op->text, "");
}

static void holder_too_long_for_the_text_is_cut(void **state)
{
	struct fake *fake = *state;
	char longest[2 * sizeof(((struct hf__op *)0)->text)];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	struct hf__op *op = query(fake, HF__QUERY_HOLDER, 1);
	answer_query(fake, 1000, 0, longest);
	check_result(op, 0);
	assert_int_equal(strlen(op->text), sizeof op->text - 1);
}

static void ping_is_done_by_any_answer(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, HF__OP_PING, 1);
	(void)fake_sent(fake, HF__PING);
	check_waits(op);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
}

/* ---- questions about an owner ---- */

static void owner_without_a_hold_needs_no_server(void **state)
{
	struct fake *fake = *state;
	struct hf__op *held = query(fake, HF__QUERY_IS_HELD, 1);
	struct hf__op *count = query(fake, HF__QUERY_COUNT, 1);
	check_result(held, 0);
	check_result(count, 0);
	assert_int_equal(held->number, 0);
	assert_int_equal(count->number, 0);
	check_nothing_sent(fake);
}

static void owner_with_a_hold_is_asked_for_by_its_name_on_the_wire(void **state)
{
	struct fake *fake = *state;
	struct hf__hold *hold = fake_hold(fake, 1, 0);
	struct hf__op *op = query(fake, HF__QUERY_IS_HELD, 1);
	assert_true(fake_sent(fake, HF__LOOK)->wire == hold->cmd.wire);
	answer_query(fake, 30000, 1, NULL);
	check_result(op, 0);
	assert_int_equal(op->number, 1);
	op = query(fake, HF__QUERY_COUNT, 1);
	answer_query(fake, 30000, 3, NULL);
	check_result(op, 0);
	assert_int_equal(op->number, 3);
}

static void hold_that_the_server_does_not_have_is_not_held(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *held = query(fake, HF__QUERY_IS_HELD, 1);
	answer_query(fake, -2, 0, NULL);
	check_result(held, 0);
	assert_int_equal(held->number, 0);
}

static void owner_that_waits_for_the_lock_holds_nothing(void **state)
{
	struct fake *fake = *state;
	struct hf__op *acquire = fake_acquire(fake, 1);
	struct hf__op *held = query(fake, HF__QUERY_IS_HELD, 1);
	check_result(held, 0);
	assert_int_equal(held->number, 0);
	fake_answer(fake, HF__GRANTED);
	check_result(acquire, 0);
}

/* ---- release by force ---- */

static void force_returns_whether_the_lock_existed(void **state)
{
	struct fake *fake = *state;
	for (int64_t there = 0; there <= 1; there++) {
		struct hf__op *op = ask(fake, HF__OP_FORCE, 1);
		answer_force(fake, there);
		check_result(op, 0);
		assert_int_equal(op->number, there);
	}
}

static void force_is_a_loss_for_our_own_holder(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	struct hf__op *op = ask(fake, HF__OP_FORCE, 2);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
	answer_force(fake, 1);
	check_result(op, 0);
	assert_int_equal(fake_remaining(fake, 1), 0);
	CHECK_REPORTED(fake, HF_LOST);
	struct hf__op *release = fake_release(fake, 1);
	fake_answer(fake, HF__GONE);
	check_result(release, HF_ELOST);
	check_detail(release, "released by force");
}

static void force_that_found_nothing_takes_nothing_from_our_holder(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 1, 0);
	struct hf__op *op = ask(fake, HF__OP_FORCE, 2);
	answer_force(fake, 0);
	check_result(op, 0);
	assert_int_equal(fake_state(fake, 1), HF_HELD);
}

static void force_without_an_answer_is_unknown_and_not_repeated(void **state)
{
	struct fake *fake = *state;
	uint64_t before = fake->core.stats.unknowns;
	struct hf__op *op = ask(fake, HF__OP_FORCE, 1);
	fake_link_down(fake);
	check_result(op, HF_EUNKNOWN);
	check_detail(op, "not answered");
	assert_int_equal(fake->core.stats.unknowns, before + 1);
	fake_link_up(fake);
	fake_advance(fake, FAKE_TIMEOUT);
	check_nothing_sent(fake);
}

static void force_that_never_left_is_sent_when_it_can_be(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, HF__OP_FORCE, 1);
	hf__core_on_link_down(&fake->core, &fake->core.link, HF_EUNREACHABLE, "reset by peer",
	                      fake->now);
	fake_answer(fake, HF__UNSENT);
	check_waits(op);
	fake_link_up(fake);
	answer_force(fake, 1);
	check_result(op, 0);
	assert_int_equal(op->number, 1);
}

/* Its connection was replaced by another one, which is up already. */
static void force_that_never_left_is_sent_on_another_link(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, HF__OP_FORCE, 1);
	fake_reply(fake, (struct hf__answer){.outcome = HF__UNSENT, .error = HF_EUNREACHABLE});
	check_waits(op);
	fake_advance(fake, 1000);
	answer_force(fake, 1);
	check_result(op, 0);
}

/* The first attempt may have been executed, whatever becomes of the second. */
static void repeat_that_fails_leaves_the_outcome_unknown(void **state)
{
	struct fake *fake = *state;
	static const struct hf__answer answers[] = {
		{.outcome = HF__UNSENT, .error = HF_ENOMEM, .text = "no memory", .length = 9},
		{.outcome = HF__FAILED, .error = HF_EDENIED, .text = "NOPERM no", .length = 9}};
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__SEMAPHORE, "pool");
	fake->lock[fake->locks++] = lock;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_COMMAND, .amount = 1,
		                                  .command = HF__SEMAPHORE_ADD);
		fake_link_down(fake);
		fake_link_up(fake);
		fake_reply(fake, answers[i]);
		check_result(op, HF_EUNKNOWN);
		check_detail(op, answers[i].text);
	}
}

/* Others wait for what it gives back. */
static void release_that_lacks_memory_is_sent_again(void **state)
{
	struct fake *fake = *state;
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF__SEMAPHORE, "pool");
	fake->lock[fake->locks++] = lock;
	struct hf__op *op = fake_start_on(fake, lock, .action = HF__OP_COMMAND, .amount = 1,
	                                  .command = HF__SEMAPHORE_RELEASE);
	fake_reply(fake, (struct hf__answer){.outcome = HF__UNSENT,
	                                     .error = HF_ENOMEM,
	                                     .text = "no memory",
	                                     .length = 9});
	fake_advance(fake, 200);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
}

static void force_past_its_deadline_is_unknown_and_its_late_answer_is_a_loss(void **state)
{
	struct fake *fake = *state;
	(void)fake_hold(fake, 2, 0);
	struct hf__op *op = ask(fake, HF__OP_FORCE, 1);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNKNOWN);
	check_detail(op, "no answer in 3000 ms");
	assert_int_equal(fake_state(fake, 2), HF_HELD);
	answer_force(fake, 1);
	check_result(op, HF_EUNKNOWN);
	assert_int_equal(fake_state(fake, 2), HF_LOST);
}

/* ---- connections ---- */

static void link_call_ends_as_soon_as_there_is_a_connection(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, HF__OP_LINK, 0);
	check_waits(op);
	assert_true(fake->wants > 0);
	assert_true(hf__core_needs_link(&fake->core, &fake->core.link));
	fake_link_up(fake);
	check_result(op, 0);
	check_nothing_sent(fake);
	assert_false(hf__core_needs_link(&fake->core, &fake->core.link));
	struct hf__op *again = ask(fake, HF__OP_LINK, 0);
	check_result(again, 0);
}

static void link_call_ends_when_the_first_contact_fails(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, HF__OP_LINK, 0);
	hf__core_on_link_failed(&fake->core, &fake->core.link, HF_EAUTH, "WRONGPASS", fake->now);
	check_result(op, HF_EAUTH);
	check_detail(op, "WRONGPASS");
}

static void link_call_ends_in_time_without_an_answer(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = fake_start(fake, .action = HF__OP_LINK, .wait_ms = 500);
	fake_advance(fake, 499);
	check_waits(op);
	fake_advance(fake, 1);
	check_result(op, HF_EUNREACHABLE);
	check_detail(op, "not connected");
}

static void question_waits_for_a_connection(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = query(fake, HF__QUERY_TTL, 1);
	check_waits(op);
	check_nothing_sent(fake);
	assert_true(fake->wants > 0);
	fake_link_up(fake);
	answer_query(fake, 77, 0, NULL);
	check_result(op, 0);
	assert_int_equal(op->number, 77);
}

static void questions_are_repeated_after_a_cut(void **state)
{
	static const struct hf__want list[] = {
		{.action = HF__OP_QUERY, .question = HF__QUERY_IS_LOCKED},
		{.action = HF__OP_QUERY, .question = HF__QUERY_TTL},
		{.action = HF__OP_QUERY, .question = HF__QUERY_HOLDER},
		{.action = HF__OP_PING},
	};
	struct fake *fake = *state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct hf__op *op = fake_call(fake, fake->lock[0], list[i]);
		fake_link_down(fake);
		check_waits(op);
		check_nothing_sent(fake);
		fake_link_up(fake);
		assert_int_equal(fake_pending(fake), 1);
		fake_answer(fake, HF__DONE);
		check_result(op, 0);
	}
}

static void command_without_room_is_out_of_memory(void **state)
{
	struct fake *fake = *state;
	fake->full = true;
	struct hf__op *op = query(fake, HF__QUERY_TTL, 1);
	check_waits(op);
	fake_turn(fake);
	check_result(op, HF_ENOMEM);
	check_detail(op, "no memory");
	fake->full = false;
}

/* ---- refusals and time ---- */

static void refused_query_passes_the_servers_text_on(void **state)
{
	struct fake *fake = *state;
	static const uint8_t list[] = {HF__OP_QUERY, HF__OP_FORCE, HF__OP_PING};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct hf__op *op = ask(fake, list[i], 1);
		fake_answer(fake, HF__FAILED);
		check_result(op, HF_EREFUSED);
		assert_string_equal(op->detail, "ERR no");
	}
}

static void not_now_is_asked_again_soon(void **state)
{
	struct fake *fake = *state;
	static const uint8_t list[] = {HF__OP_QUERY, HF__OP_FORCE};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct hf__op *op = ask(fake, list[i], 1);
		answer_not_now(fake);
		check_waits(op);
		check_nothing_sent(fake);
		fake_advance(fake, 2 * HF__NOT_NOW_MS);
		assert_int_equal(fake_pending(fake), 1);
		fake_answer(fake, HF__DONE);
		check_result(op, 0);
		assert_string_equal(op->detail, "");
	}
}

static void server_that_is_never_ready_is_named_at_the_deadline(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = query(fake, HF__QUERY_TTL, 1);
	int64_t end = fake->now + FAKE_TIMEOUT;
	while (fake->now < end - 1) {
		if (fake_pending(fake) > 0)
			answer_not_now(fake);
		fake_advance(fake, 1);
	}
	if (fake_pending(fake) > 0)
		answer_not_now(fake);
	check_waits(op);
	fake_advance(fake, 1);
	check_result(op, HF_ENOTNOW);
	assert_string_equal(op->detail, "LOADING");
}

static void query_ends_at_its_deadline_and_a_late_answer_is_ignored(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = query(fake, HF__QUERY_IS_LOCKED, 1);
	fake_advance(fake, FAKE_TIMEOUT - 1);
	check_waits(op);
	fake_advance(fake, 1);
	check_result(op, HF_EUNREACHABLE);
	check_detail(op, "no answer in 3000 ms");
	op->number = 42;
	answer_query(fake, 1000, 0, NULL);
	assert_int_equal(op->number, 42);
}

static void deadline_without_a_connection_says_why(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = ask(fake, HF__OP_PING, 1);
	fake_link_down(fake);
	fake_advance(fake, FAKE_TIMEOUT);
	check_result(op, HF_EUNREACHABLE);
	check_detail(op, "reset by peer");
	fake_link_up(fake);
	check_nothing_sent(fake);
}

static void close_finishes_queries_in_flight(void **state)
{
	struct fake *fake = *state;
	struct hf__op *op = query(fake, HF__QUERY_TTL, 1);
	(void)fake_start(fake, .action = HF__OP_CLOSE);
	check_result(op, HF_ECLOSED);
	answer_query(fake, 1000, 0, NULL);
	check_result(op, HF_ECLOSED);
	struct hf__op *late = query(fake, HF__QUERY_TTL, 1);
	check_result(late, HF_ECLOSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(lock_is_locked_unless_the_server_has_no_such_key),
		fake_test(ttl_is_what_the_server_says),
		fake_test(holder_is_copied_as_the_server_has_it),
		fake_test(holder_too_long_for_the_text_is_cut),
		fake_test(ping_is_done_by_any_answer),
		fake_test(owner_without_a_hold_needs_no_server),
		fake_test(owner_with_a_hold_is_asked_for_by_its_name_on_the_wire),
		fake_test(hold_that_the_server_does_not_have_is_not_held),
		fake_test(owner_that_waits_for_the_lock_holds_nothing),
		fake_test(force_returns_whether_the_lock_existed),
		fake_test(force_is_a_loss_for_our_own_holder),
		fake_test(force_that_found_nothing_takes_nothing_from_our_holder),
		fake_test(force_without_an_answer_is_unknown_and_not_repeated),
		fake_test(force_that_never_left_is_sent_when_it_can_be),
		fake_test(force_past_its_deadline_is_unknown_and_its_late_answer_is_a_loss),
		fake_test_unlinked(link_call_ends_as_soon_as_there_is_a_connection),
		fake_test_unlinked(link_call_ends_when_the_first_contact_fails),
		fake_test_unlinked(link_call_ends_in_time_without_an_answer),
		fake_test_unlinked(question_waits_for_a_connection),
		fake_test(questions_are_repeated_after_a_cut),
		fake_test(command_without_room_is_out_of_memory),
		fake_test(refused_query_passes_the_servers_text_on),
		fake_test(not_now_is_asked_again_soon),
		fake_test(force_that_never_left_is_sent_on_another_link),
		fake_test(repeat_that_fails_leaves_the_outcome_unknown),
		fake_test(release_that_lacks_memory_is_sent_again),
		fake_test(server_that_is_never_ready_is_named_at_the_deadline),
		fake_test(query_ends_at_its_deadline_and_a_late_answer_is_ignored),
		fake_test(deadline_without_a_connection_says_why),
		fake_test(close_finishes_queries_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
