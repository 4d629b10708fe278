/* What the checker of torture says about extensions: it accepts what they promise. */
#include "unit/torture/check_story.h"

/* ---- extensions ---- */

/* A hold with these traits that is granted at 10 ms, until 1000 ms. */
static uint32_t acquire_as(struct story *story, uint16_t flags)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = LOCK, .share = 1,
	    .flags = flags);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(1000), .hold = hold, .identity = 11);
	return hold;
}

/* An extension from 20 ms on that promises to last until 2000 ms. */
static void extend(struct story *story, uint32_t hold, long returned, long until, int code)
{
	ADD(.moment = EXTENDING, .at = AT(20), .until = AT(500), .hold = hold);
	ADD(.moment = EXTENDED, .at = AT(returned), .until = AT(until), .token = AT(2000),
	    .code = (int16_t)code, .hold = hold);
}

static void an_extension_that_lasts_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, 0);
	extend(story, hold, 25, 2010, 0);
	ADD(.moment = CONFIRMED, .at = AT(1500), .until = AT(2010), .hold = hold);
	release(story, hold, 1600, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_EXTENSIONS], 1);
}

static void an_extension_that_is_too_short_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, 0);
	extend(story, hold, 25, 1990, 0);
	release(story, hold, 30, 0);
	expect_only(story, RULE_EXTENDED);
}

static void an_extension_that_failed_promises_nothing(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, 0);
	extend(story, hold, 25, 1000, HF_EUNKNOWN);
	release(story, hold, 30, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_EXTENSIONS], 0);
}

static void an_extension_that_returns_late_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, 0);
	extend(story, hold, 1600, 2010, HF_EUNKNOWN);
	extend(story, hold, 1601, 2010, HF_EUNKNOWN);
	release(story, hold, 1605, 0);
	expect_only(story, RULE_DEADLINE);
}

static void nobody_else_is_granted_what_was_extended(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, 0);
	extend(story, hold, 25, 2010, 0);
	release(story, acquire_lock(story, 2, 1500), 1510, 0);
	release(story, hold, 1600, 0);
	expect_only(story, RULE_EXCLUSION);
}

/* ---- extensions of permits ---- */

static void a_permit_may_end_sooner_than_before(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, MOVABLE);
	ADD(.moment = EXTENDING, .at = AT(20), .until = AT(500), .hold = hold);
	ADD(.moment = EXTENDED, .at = AT(25), .until = AT(300), .token = AT(295), .hold = hold);
	ADD(.moment = CONFIRMED, .at = AT(200), .until = AT(300), .hold = hold);
	release(story, acquire_lock(story, 2, 300), 310, 0);
	release(story, hold, 320, HF_ELOST);
	ADD(.moment = LOST, .at = AT(300), .identity = 11);
	expect_sound(story);
}

static void a_permit_that_lasts_too_long_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, MOVABLE);
	extend(story, hold, 25, 2090, 0);
	release(story, hold, 30, 0);
	expect_only(story, RULE_EXTENDED);
}

static void another_hold_must_not_end_sooner(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, 0);
	ADD(.moment = EXTENDING, .at = AT(20), .until = AT(500), .hold = hold);
	ADD(.moment = EXTENDED, .at = AT(25), .until = AT(300), .token = AT(295), .hold = hold);
	ADD(.moment = CONFIRMED, .at = AT(200), .until = AT(300), .hold = hold);
	release(story, hold, 250, 0);
	expect_only(story, RULE_SHRUNK);
}

static void a_permit_that_is_renewed_after_its_extension_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_as(story, MOVABLE | RENEWED);
	extend(story, hold, 25, 2010, 0);
	ADD(.moment = CONFIRMED, .at = AT(1900), .until = AT(4900), .hold = hold);
	release(story, hold, 2000, 0);
	expect_only(story, RULE_RENEWED);
}

/* Its extension returned this, and it is lost although no fault kept anybody from renewing it. */
static void lose_after_extension(struct story *story, int code)
{
	uint32_t hold = acquire_as(story, MOVABLE | RENEWED);
	extend(story, hold, 25, 2010, code);
	ADD(.moment = LOST, .at = AT(2010), .identity = 11);
	release(story, hold, 2100, HF_ELOST);
}

static void a_permit_that_was_extended_ends(void **state)
{
	lose_after_extension(*state, 0);
	expect_sound(*state);
}

static void a_permit_whose_extension_was_refused_is_still_renewed(void **state)
{
	lose_after_extension(*state, HF_EDENIED);
	expect_only(*state, RULE_NEEDLESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(an_extension_that_lasts_is_sound),
		STORY(an_extension_that_is_too_short_is_found),
		STORY(an_extension_that_failed_promises_nothing),
		STORY(an_extension_that_returns_late_is_found),
		STORY(nobody_else_is_granted_what_was_extended),
		STORY(a_permit_may_end_sooner_than_before),
		STORY(a_permit_that_lasts_too_long_is_found),
		STORY(another_hold_must_not_end_sooner),
		STORY(a_permit_that_is_renewed_after_its_extension_is_found),
		STORY(a_permit_that_was_extended_ends),
		STORY(a_permit_whose_extension_was_refused_is_still_renewed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
