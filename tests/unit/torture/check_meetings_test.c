/* What the checker of torture says about double barriers: all enter and leave together. */
#include "unit/torture/check_story.h"

/* A process comes to the barrier of three members with this number. */
static uint32_t come(struct story *story, uint16_t process, int64_t number, long at)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(at), .until = AT(at + 3000), .hold = hold, .process = process,
	    .covers = LATCH, .share = 3, .token = number, .flags = MEETS);
	return hold;
}

static void enter(struct story *story, uint32_t hold, long at)
{
	ADD(.moment = GRANTED, .at = AT(at), .until = AT(99000), .hold = hold, .token = 1);
}

static void give_up(struct story *story, uint32_t hold, long at)
{
	ADD(.moment = REFUSED, .at = AT(at), .hold = hold, .code = HF_ETIMEDOUT);
}

static void leave(struct story *story, uint32_t hold, long from, long until, int code)
{
	ADD(.moment = RELEASING, .at = AT(from), .hold = hold);
	ADD(.moment = RELEASED, .at = AT(until), .hold = hold, .code = (int16_t)code);
}

/* Three processes come by 30 ms and enter at 31 ms; the last one leaves from 50 ms on. */
static void meet(struct story *story, long first_left_at, int first_code)
{
	uint32_t one = come(story, 1, 1, 10), two = come(story, 2, 1, 20);
	uint32_t three = come(story, 3, 1, 30);
	enter(story, one, 31);
	enter(story, two, 31);
	enter(story, three, 31);
	leave(story, one, 40, first_left_at, first_code);
	leave(story, two, 41, 51, 0);
	leave(story, three, 50, 51, 0);
}

static void members_that_enter_and_leave_together_are_sound(void **state)
{
	struct story *story = *state;
	meet(story, 51, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_MEETINGS], 3);
	assert_int_equal(story->verdict.grants, 0);
}

static void a_member_that_leaves_first_is_found(void **state)
{
	meet(*state, 49, 0);
	expect_only(*state, RULE_TOGETHER);
}

static void a_member_that_did_not_leave_in_time_is_sound(void **state)
{
	meet(*state, 49, HF_ETIMEDOUT);
	expect_sound(*state);
}

static void a_member_that_enters_while_others_leave_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t one = come(story, 1, 1, 10), two = come(story, 2, 1, 20);
	uint32_t three = come(story, 3, 1, 30);
	enter(story, one, 31);
	enter(story, two, 31);
	leave(story, two, 40, 49, 0);
	leave(story, one, 40, 49, 0);
	enter(story, three, 45);
	leave(story, three, 60, 70, 0);
	expect_sound(story);
}

static void a_killed_member_is_not_left_behind(void **state)
{
	struct story *story = *state;
	uint32_t one = come(story, 1, 1, 10), two = come(story, 2, 1, 20);
	uint32_t three = come(story, 3, 1, 30);
	enter(story, one, 31);
	enter(story, two, 31);
	enter(story, three, 31);
	ADD(.moment = KILLED, .at = AT(35), .process = 3);
	leave(story, two, 40, 49, 0);
	leave(story, one, 40, 49, 0);
	expect_sound(story);
}

static void a_long_fault_may_end_the_session_of_another_member(void **state)
{
	add_fault(*state, -600, 5, 0);
	meet(*state, 49, 0);
	expect_sound(*state);
}

static void a_short_fault_ends_no_session(void **state)
{
	add_fault(*state, -100, 5, 0);
	meet(*state, 49, 0);
	expect_only(*state, RULE_TOGETHER);
}

static void a_member_that_leaves_in_vain_is_found(void **state)
{
	meet(*state, 1200, HF_ETIMEDOUT);
	expect_only(*state, RULE_SERVED);
}

static void a_member_that_still_waits_keeps_the_others_inside(void **state)
{
	struct story *story = *state;
	uint32_t one = come(story, 1, 1, 10), two = come(story, 2, 1, 20);
	uint32_t three = come(story, 3, 1, 30);
	enter(story, one, 31);
	enter(story, two, 31);
	leave(story, one, 40, 1800, HF_ETIMEDOUT);
	leave(story, two, 40, 1800, HF_ETIMEDOUT);
	give_up(story, three, 900);
	expect_sound(story);
}

/* Two processes come, and one of them enters at 40 ms. */
static uint32_t enter_early(struct story *story)
{
	uint32_t one = come(story, 1, 1, 10);
	give_up(story, come(story, 2, 1, 20), 500);
	enter(story, one, 40);
	leave(story, one, 50, 60, 0);
	return one;
}

static void a_member_that_enters_too_early_is_found(void **state)
{
	(void)enter_early(*state);
	expect_only(*state, RULE_TOGETHER);
}

static void a_member_that_comes_later_does_not_count(void **state)
{
	struct story *story = *state;
	(void)enter_early(story);
	give_up(story, come(story, 3, 1, 41), 500);
	expect_only(story, RULE_TOGETHER);
}

static void a_member_of_another_barrier_does_not_count(void **state)
{
	struct story *story = *state;
	(void)enter_early(story);
	give_up(story, come(story, 3, 2, 30), 500);
	expect_only(story, RULE_TOGETHER);
}

static void a_member_that_has_given_up_does_not_count(void **state)
{
	struct story *story = *state;
	give_up(story, come(story, 3, 1, -1100), -1000);
	(void)enter_early(story);
	expect_only(story, RULE_TOGETHER);
}

static void a_member_that_has_just_given_up_may_count(void **state)
{
	struct story *story = *state;
	give_up(story, come(story, 3, 1, -100), -50);
	(void)enter_early(story);
	expect_sound(story);
}

static void a_fault_may_keep_a_member_that_has_given_up(void **state)
{
	struct story *story = *state;
	give_up(story, come(story, 3, 1, -1100), -1000);
	add_fault(story, -1050, -1020, 0);
	(void)enter_early(story);
	expect_sound(story);
}

static void a_killed_member_counts_until_its_session_ends(void **state)
{
	struct story *story = *state;
	(void)come(story, 3, 1, 5);
	ADD(.moment = KILLED, .at = AT(8), .process = 3);
	(void)enter_early(story);
	expect_sound(story);
}

static void a_member_that_waits_although_all_have_come_is_found(void **state)
{
	struct story *story = *state;
	uint32_t one = come(story, 1, 1, 10), two = come(story, 2, 1, 20);
	uint32_t three = come(story, 3, 1, 30);
	enter(story, one, 40);
	enter(story, two, 40);
	give_up(story, three, 1040);
	leave(story, one, 1050, 1060, 0);
	leave(story, two, 1050, 1060, 0);
	expect_only(story, RULE_SERVED);
}

static void a_member_that_comes_when_another_gives_up_may_wait(void **state)
{
	struct story *story = *state;
	give_up(story, come(story, 1, 1, 10), 40);
	give_up(story, come(story, 2, 1, 20), 3020);
	give_up(story, come(story, 3, 1, 39), 3039);
	expect_sound(story);
}

static void a_member_whose_call_is_cancelled_does_not_stay(void **state)
{
	struct story *story = *state;
	uint32_t one = come(story, 1, 1, 10);
	ADD(.moment = CANCELLING, .at = AT(50), .until = AT(2000), .hold = one);
	ADD(.moment = REFUSED, .at = AT(1040), .hold = one, .code = HF_ECANCELLED);
	give_up(story, come(story, 2, 1, 20), 3020);
	give_up(story, come(story, 3, 1, 30), 3030);
	expect_sound(story);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(members_that_enter_and_leave_together_are_sound),
		STORY(a_member_that_leaves_first_is_found),
		STORY(a_member_that_did_not_leave_in_time_is_sound),
		STORY(a_member_that_enters_while_others_leave_is_sound),
		STORY(a_killed_member_is_not_left_behind),
		STORY(a_long_fault_may_end_the_session_of_another_member),
		STORY(a_short_fault_ends_no_session),
		STORY(a_member_that_leaves_in_vain_is_found),
		STORY(a_member_that_still_waits_keeps_the_others_inside),
		STORY(a_member_that_enters_too_early_is_found),
		STORY(a_member_that_comes_later_does_not_count),
		STORY(a_member_of_another_barrier_does_not_count),
		STORY(a_member_that_has_given_up_does_not_count),
		STORY(a_member_that_has_just_given_up_may_count),
		STORY(a_fault_may_keep_a_member_that_has_given_up),
		STORY(a_killed_member_counts_until_its_session_ends),
		STORY(a_member_that_waits_although_all_have_come_is_found),
		STORY(a_member_that_comes_when_another_gives_up_may_wait),
		STORY(a_member_whose_call_is_cancelled_does_not_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
