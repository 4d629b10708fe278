/* What the checker of torture says about counts: it accepts what is promised, and nothing else. */
#include "unit/torture/check_story.h"

/* ---- what is left at the end ---- */

static void count_down(struct story *story, long at, int code)
{
	ADD(.moment = COUNTING, .at = AT(at), .covers = LATCH, .process = 1);
	ADD(.moment = COUNTED, .at = AT(at + 1), .covers = LATCH, .process = 1,
	    .code = (int16_t)code);
}

static void an_exact_count_is_sound(void **state)
{
	struct story *story = *state;
	count_down(story, 10, 0);
	count_down(story, 20, HF_EUNKNOWN);
	count_down(story, 30, HF_EUNREACHABLE);
	count_down(story, 35, HF_ECLOSED);
	ADD(.moment = REMAINING, .at = AT(40), .covers = LATCH, .until = 97);
	ADD(.moment = REMAINING, .at = AT(40), .covers = LATCH, .until = 98);
	ADD(.moment = REMAINING, .at = AT(40), .covers = LATCH, .until = 99);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_COUNTS], 1);
}

static void a_count_that_is_off_by_one_is_found(void **state)
{
	struct story *story = *state;
	count_down(story, 10, 0);
	ADD(.moment = REMAINING, .at = AT(40), .covers = LATCH, .until = 98);
	expect_only(story, RULE_COUNT);
}

static void a_permit_that_did_not_come_back_is_found(void **state)
{
	struct story *story = *state;
	release(story, acquire(story, 1, PERMITS, 1, 10, 1000), 20, 0);
	ADD(.moment = REMAINING, .at = AT(40), .covers = PERMITS, .until = 2);
	expect_only(story, RULE_COUNT);
}

static void permits_of_a_killed_process_are_gone(void **state)
{
	struct story *story = *state;
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = PERMITS, .share = 2,
	    .flags = SETTLED);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(9000), .hold = hold);
	ADD(.moment = KILLED, .at = AT(15), .process = 1);
	ADD(.moment = REMAINING, .at = AT(40), .covers = PERMITS, .until = 1);
	expect_sound(story);
	ADD(.moment = REMAINING, .at = AT(40), .covers = PERMITS, .until = 3);
	expect_only(story, RULE_COUNT);
}

/* A process wants three permits of a semaphore; its call is refused, or granted less. */
static uint32_t want_all(struct story *story, uint16_t flags, uint16_t granted, int code)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = PERMITS, .share = 3,
	    .flags = SETTLED | flags);
	if (code)
		ADD(.moment = REFUSED, .at = AT(10), .hold = hold, .code = (int16_t)code);
	else
		ADD(.moment = GRANTED, .at = AT(10), .until = AT(9000), .hold = hold,
		    .share = granted);
	return hold;
}

static void expect_permits(struct story *story, int remaining)
{
	ADD(.moment = REMAINING, .at = AT(40), .covers = PERMITS, .until = remaining);
}

static void a_drain_without_an_answer_may_have_taken_all(void **state)
{
	struct story *story = *state;
	(void)want_all(story, DRAINS, 0, HF_EUNKNOWN);
	expect_permits(story, 0);
	expect_permits(story, 3);
	expect_sound(story);
}

static void an_acquire_without_an_answer_must_be_undone(void **state)
{
	struct story *story = *state;
	(void)want_all(story, 0, 0, HF_EUNKNOWN);
	expect_permits(story, 0);
	expect_only(story, RULE_COUNT);
}

static void a_drain_takes_what_was_granted(void **state)
{
	struct story *story = *state;
	(void)want_all(story, DRAINS, 2, 0);
	ADD(.moment = KILLED, .at = AT(15), .process = 1);
	expect_permits(story, 1);
	expect_sound(story);
	expect_permits(story, 0);
	expect_only(story, RULE_COUNT);
}

static void a_drain_leaves_permits_of_others_alone(void **state)
{
	struct story *story = *state;
	uint32_t other = acquire(story, 2, PERMITS, 1, 5, 1000);
	release(story, want_all(story, DRAINS, 2, 0), 20, 0);
	release(story, other, 30, 0);
	expect_sound(story);
}

static void a_drain_that_takes_too_many_is_found(void **state)
{
	struct story *story = *state;
	uint32_t other = acquire(story, 2, PERMITS, 1, 5, 1000);
	release(story, want_all(story, DRAINS, 3, 0), 20, 0);
	release(story, other, 30, 0);
	expect_only(story, RULE_EXCLUSION);
}

static void a_count_after_lost_data_is_not_judged(void **state)
{
	struct story *story = *state;
	add_fault(story, 12, 14, LOSES_DATA);
	ADD(.moment = REMAINING, .at = AT(40), .covers = LATCH, .until = 7);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_COUNTS], 0);
}

/* ---- levels ---- */

/* A hold with these traits has two levels, and a query at 20 ms returns this number. */
static uint32_t count_levels(struct story *story, uint16_t flags, int levels)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = LOCK, .share = 1,
	    .flags = flags);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(1000), .hold = hold);
	ADD(.moment = LEVELS, .at = AT(20), .until = levels, .share = 2, .hold = hold);
	release(story, hold, 30, 0);
	return hold;
}

static void levels_that_were_acquired_are_sound(void **state)
{
	struct story *story = *state;
	(void)count_levels(story, 0, 2);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_LEVELS], 1);
}

static void a_level_that_is_missing_is_found(void **state)
{
	(void)count_levels(*state, 0, 1);
	expect_only(*state, RULE_LEVELS);
}

static void a_level_too_many_is_found(void **state)
{
	(void)count_levels(*state, 0, 3);
	expect_only(*state, RULE_LEVELS);
}

static void levels_of_a_hold_that_is_over_are_not_judged(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire(story, 1, LOCK, 1, 10, 15);
	ADD(.moment = LEVELS, .at = AT(20), .until = 0, .share = 2, .hold = hold);
	release(story, hold, 30, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_LEVELS], 0);
}

static void levels_after_lost_data_are_not_judged(void **state)
{
	struct story *story = *state;
	add_fault(story, 12, 14, LOSES_DATA);
	(void)count_levels(story, 0, 0);
	expect_sound(story);
}

static void a_fault_explains_a_missing_level_of_a_red_lock(void **state)
{
	struct story *story = *state;
	add_fault(story, 12, 14, 0);
	(void)count_levels(story, PARTS, 1);
	expect_sound(story);
}

static void a_fault_explains_no_missing_level_of_another_lock(void **state)
{
	struct story *story = *state;
	add_fault(story, 12, 14, 0);
	(void)count_levels(story, 0, 1);
	expect_only(story, RULE_LEVELS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(an_exact_count_is_sound),
		STORY(a_count_that_is_off_by_one_is_found),
		STORY(a_permit_that_did_not_come_back_is_found),
		STORY(permits_of_a_killed_process_are_gone),
		STORY(a_drain_without_an_answer_may_have_taken_all),
		STORY(an_acquire_without_an_answer_must_be_undone),
		STORY(a_drain_takes_what_was_granted),
		STORY(a_drain_leaves_permits_of_others_alone),
		STORY(a_drain_that_takes_too_many_is_found),
		STORY(a_count_after_lost_data_is_not_judged),
		STORY(levels_that_were_acquired_are_sound),
		STORY(a_level_that_is_missing_is_found),
		STORY(a_level_too_many_is_found),
		STORY(levels_of_a_hold_that_is_over_are_not_judged),
		STORY(levels_after_lost_data_are_not_judged),
		STORY(a_fault_explains_a_missing_level_of_a_red_lock),
		STORY(a_fault_explains_no_missing_level_of_another_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
