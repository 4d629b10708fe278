/* What the checker of torture says about losses: it accepts what is promised, and nothing else. */
#include "unit/torture/check_story.h"

/* ---- losses that are reported, and needed ---- */

static void a_loss_that_is_reported_once_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire(story, 1, LOCK, 1, 10, 20);
	lose(story, hold, 20);
	release(story, hold, 30, HF_ELOST);
	expect_sound(story);
	assert_int_equal(story->verdict.losses, 1);
}

static void a_loss_that_is_reported_twice_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire(story, 1, LOCK, 1, 10, 20);
	lose(story, hold, 20);
	lose(story, hold, 21);
	release(story, hold, 30, HF_ELOST);
	expect_only(story, RULE_TWICE);
}

static void a_loss_without_an_event_is_found(void **state)
{
	struct story *story = *state;
	release(story, acquire_lock(story, 1, 10), 30, HF_ELOST);
	expect_only(story, RULE_SILENT);
}

static void a_release_after_a_loss_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire(story, 1, LOCK, 1, 10, 20);
	lose(story, hold, 20);
	release(story, hold, 30, 0);
	expect_only(story, RULE_DENIED);
}

static void a_loss_after_a_long_fault_is_sound(void **state)
{
	struct story *story = *state;
	add_fault(story, 2000, 3000, 0);
	lose_a_renewed_hold(story, 3500);
	expect_sound(story);
}

static void a_loss_after_a_short_fault_is_found(void **state)
{
	struct story *story = *state;
	add_fault(story, 2000, 2100, 0);
	lose_a_renewed_hold(story, 3500);
	expect_only(story, RULE_NEEDLESS);
}

static void a_loss_after_time_to_renew_is_found(void **state)
{
	struct story *story = *state;
	add_fault(story, 1000, 1600, 0);
	add_fault(story, 3200, 3300, 0);
	lose_a_renewed_hold(story, 3500);
	expect_only(story, RULE_NEEDLESS);
}

static void a_loss_before_valid_until_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_lock(story, 1, 10);
	add_fault(story, 15, 25, 0);
	lose(story, hold, 20);
	release(story, hold, 30, HF_ELOST);
	expect_only(story, RULE_NEEDLESS);
}

static void a_loss_after_lost_data_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_lock(story, 1, 10);
	add_fault(story, 15, 25, LOSES_DATA);
	lose(story, hold, 20);
	release(story, hold, 30, HF_ELOST);
	expect_sound(story);
}

/* ---- losses of parts ---- */

/* A hold of which events report two parts, with the identities 11 and 12. */
static uint32_t acquire_parts(struct story *story, uint16_t flags)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = LOCK, .share = 1,
	    .flags = flags);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(20), .hold = hold, .process = 1);
	ADD(.moment = NAMED, .at = AT(10), .hold = hold, .process = 1, .identity = 11);
	ADD(.moment = NAMED, .at = AT(10), .hold = hold, .process = 1, .identity = 12);
	return hold;
}

static void lose_part(struct story *story, uint64_t identity, long at)
{
	ADD(.moment = LOST, .at = AT(at), .process = 1, .client = 1, .identity = identity);
}

static void a_loss_of_each_part_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_parts(story, 0);
	lose_part(story, 11, 20);
	lose_part(story, 12, 20);
	release(story, hold, 30, HF_ELOST);
	expect_sound(story);
	assert_int_equal(story->verdict.losses, 2);
}

static void a_part_that_is_named_again_has_one_loss(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_parts(story, 0);
	ADD(.moment = NAMED, .at = AT(15), .hold = hold, .process = 1, .identity = 12);
	lose_part(story, 12, 20);
	release(story, hold, 30, HF_ELOST);
	expect_sound(story);
}

static void a_loss_of_a_part_that_is_reported_twice_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_parts(story, 0);
	lose_part(story, 12, 20);
	lose_part(story, 12, 21);
	release(story, hold, 30, HF_ELOST);
	expect_only(story, RULE_TWICE);
}

static void a_loss_of_an_unknown_hold_that_is_reported_twice_is_found(void **state)
{
	struct story *story = *state;
	lose_part(story, 77, 20);
	lose_part(story, 77, 21);
	expect_only(story, RULE_TWICE);
}

static void a_loss_of_parts_without_an_event_is_found(void **state)
{
	struct story *story = *state;
	release(story, acquire_parts(story, 0), 30, HF_ELOST);
	expect_only(story, RULE_SILENT);
}

static void a_red_lock_may_be_released_after_the_loss_of_a_part(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_parts(story, PARTS);
	lose_part(story, 12, 12);
	release(story, hold, 15, 0);
	expect_sound(story);
}

static void a_multi_lock_that_is_released_after_the_loss_of_a_part_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_parts(story, 0);
	lose_part(story, 12, 20);
	release(story, hold, 30, 0);
	expect_only(story, RULE_DENIED);
}

/* ---- what clients count ---- */

static void tally(struct story *story, uint16_t client, int losses)
{
	ADD(.moment = TALLIED, .at = AT(90), .process = 1, .client = client, .until = losses);
}

static void losses_that_were_counted_and_reported_are_sound(void **state)
{
	struct story *story = *state;
	lose_part(story, 11, 20);
	lose_part(story, 12, 20);
	tally(story, 1, 2);
	tally(story, 2, 0);
	expect_sound(story);
}

static void a_loss_that_was_counted_and_not_reported_is_found(void **state)
{
	struct story *story = *state;
	lose_part(story, 11, 20);
	tally(story, 1, 2);
	expect_only(story, RULE_SILENT);
}

static void a_loss_that_another_client_counted_is_found(void **state)
{
	struct story *story = *state;
	tally(story, 1, 0);
	lose_part(story, 11, 20);
	expect_only(story, RULE_TWICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_loss_that_is_reported_once_is_sound),
		STORY(a_loss_that_is_reported_twice_is_found),
		STORY(a_loss_without_an_event_is_found),
		STORY(a_release_after_a_loss_is_found),
		STORY(a_loss_after_a_long_fault_is_sound),
		STORY(a_loss_after_a_short_fault_is_found),
		STORY(a_loss_after_time_to_renew_is_found),
		STORY(a_loss_before_valid_until_is_found),
		STORY(a_loss_after_lost_data_is_sound),
		STORY(a_loss_of_each_part_is_sound),
		STORY(a_part_that_is_named_again_has_one_loss),
		STORY(a_loss_of_a_part_that_is_reported_twice_is_found),
		STORY(a_loss_of_an_unknown_hold_that_is_reported_twice_is_found),
		STORY(a_loss_of_parts_without_an_event_is_found),
		STORY(a_red_lock_may_be_released_after_the_loss_of_a_part),
		STORY(a_multi_lock_that_is_released_after_the_loss_of_a_part_is_found),
		STORY(losses_that_were_counted_and_reported_are_sound),
		STORY(a_loss_that_was_counted_and_not_reported_is_found),
		STORY(a_loss_that_another_client_counted_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
