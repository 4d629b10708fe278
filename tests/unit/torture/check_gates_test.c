/* What the checker of torture says about gates: when a wait may end, and when it must. */
#include "unit/torture/check_story.h"

/* A process shuts the gate, whose call returns at the first time, and opens it at the second. */
static uint32_t shut(struct story *story, long from, long until)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(from - 1), .hold = hold, .process = 1, .covers = LOCK,
	    .share = 1, .flags = SHUTS);
	ADD(.moment = GRANTED, .at = AT(from), .until = AT(99000), .hold = hold, .process = 1);
	if (until)
		release(story, hold, until, 0);
	return hold;
}

/* Another process waits at it between these times, and passes. */
static void pass(struct story *story, long from, long until)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(from), .until = AT(until + 100), .hold = hold, .process = 2,
	    .covers = LOCK, .flags = PASSES);
	ADD(.moment = GRANTED, .at = AT(until), .until = AT(until), .hold = hold, .process = 2);
}

static void a_wait_ends_when_the_gate_opens(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	pass(story, 20, 50);
	pass(story, 20, 52);
	pass(story, 60, 61);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_PASSES], 3);
	assert_int_equal(story->verdict.grants, 1);
}

static void a_wait_that_ends_while_the_gate_is_shut_is_found(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	pass(story, 20, 49);
	expect_only(story, RULE_PASSED);
}

static void a_wait_that_began_before_may_have_passed_before(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	pass(story, 5, 20);
	expect_sound(story);
}

static void a_gate_that_is_shut_again_is_judged_again(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	(void)shut(story, 60, 90);
	pass(story, 40, 70);
	expect_sound(story);
	pass(story, 65, 70);
	expect_only(story, RULE_PASSED);
}

static void nobody_knows_what_a_killed_keeper_did(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 0);
	ADD(.moment = KILLED, .at = AT(30), .process = 1);
	pass(story, 20, 31);
	expect_sound(story);
	pass(story, 20, 29);
	expect_only(story, RULE_PASSED);
}

static void a_server_that_lost_its_data_has_no_gate(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	add_fault(story, 15, 18, LOSES_DATA);
	pass(story, 20, 30);
	expect_sound(story);
}

static void another_fault_opens_no_gate(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	add_fault(story, 15, 18, STOPS_CALLS);
	pass(story, 20, 30);
	expect_only(story, RULE_PASSED);
}

static void an_old_answer_is_possible_where_servers_lag(void **state)
{
	struct story *story = *state;
	story->record.head->lag_ns = 20 * MS;
	(void)shut(story, 10, 90);
	pass(story, 29, 35);
	expect_sound(story);
	pass(story, 31, 35);
	expect_only(story, RULE_PASSED);
}

static void after_a_fault_an_answer_may_be_older(void **state)
{
	struct story *story = *state;
	story->record.head->lag_ns = 20 * MS;
	(void)shut(story, 10, 90);
	add_fault(story, 1, 2, 0);
	pass(story, 60, 65);
	expect_sound(story);
}

static void a_request_that_was_kept_back_may_open_the_next_gate(void **state)
{
	struct story *story = *state;
	add_fault(story, 1, 15, KEEPS_REQUESTS);
	(void)shut(story, 10, 50);
	pass(story, 20, 30);
	expect_sound(story);
}

static void replicas_need_not_acknowledge_a_gate(void **state)
{
	struct story *story = *state;
	add_fault(story, 2, 90, STOPS_REPLICAS);
	(void)shut(story, 10, 50);
	pass(story, 20, 50);
	expect_sound(story);
}

static void a_waiter_at_an_open_gate_must_be_served(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	pass(story, 20, 2100);
	expect_only(story, RULE_SERVED);
}

static void other_waiters_do_not_shut_a_gate(void **state)
{
	struct story *story = *state;
	(void)shut(story, 10, 50);
	pass(story, 20, 51);
	pass(story, 20, 1900);
	pass(story, 1800, 3900);
	expect_only(story, RULE_SERVED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_wait_ends_when_the_gate_opens),
		STORY(a_wait_that_ends_while_the_gate_is_shut_is_found),
		STORY(a_wait_that_began_before_may_have_passed_before),
		STORY(a_gate_that_is_shut_again_is_judged_again),
		STORY(nobody_knows_what_a_killed_keeper_did),
		STORY(a_server_that_lost_its_data_has_no_gate),
		STORY(another_fault_opens_no_gate),
		STORY(an_old_answer_is_possible_where_servers_lag),
		STORY(after_a_fault_an_answer_may_be_older),
		STORY(a_request_that_was_kept_back_may_open_the_next_gate),
		STORY(replicas_need_not_acknowledge_a_gate),
		STORY(a_waiter_at_an_open_gate_must_be_served),
		STORY(other_waiters_do_not_shut_a_gate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
