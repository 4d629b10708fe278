/* What the checker of torture says about calls: it accepts what is promised, and nothing else. */
#include "unit/torture/check_story.h"

/* ---- deadlines and answers ---- */

static void a_call_that_never_returns_is_found(void **state)
{
	struct story *story = *state;
	ADD(.moment = ASKED, .at = AT(10), .until = AT(20), .hold = record_new_hold(&story->record),
	    .process = 1, .covers = LOCK, .share = 1);
	expect_only(story, RULE_RETURN);
}

static void a_call_that_returns_late_is_found(void **state)
{
	struct story *story = *state;
	refuse(story, 10, 20, 1000, HF_EUNREACHABLE);
	refuse(story, 10, 20, 1030, HF_EUNREACHABLE);
	expect_only(story, RULE_DEADLINE);
}

static void a_process_that_was_stopped_may_return_late(void **state)
{
	struct story *story = *state;
	add_fault(story, 30, 1000, STOPS_CALLS);
	refuse(story, 10, 20, 1030, HF_EUNREACHABLE);
	expect_sound(story);
}

static void an_impossible_answer_is_found(void **state)
{
	struct story *story = *state;
	release(story, acquire_lock(story, 1, 10), 20, HF_ENOTHELD);
	expect_only(story, RULE_IMPOSSIBLE);
}

/* ---- cancels ---- */

/*
 * A process waits until 9000 ms, and is cancelled at 100 ms. Its call returns at the given time; if
 * a fault kept the answer back, it has until 2000 ms.
 */
static void cancel(struct story *story, long returned, int code)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(10), .until = AT(9000), .hold = hold, .process = 1,
	    .covers = LOCK, .share = 1);
	ADD(.moment = CANCELLING, .at = AT(100), .until = AT(2000), .hold = hold, .process = 1);
	ADD(.moment = REFUSED, .at = AT(returned), .hold = hold, .code = (int16_t)code);
}

static void a_cancelled_call_that_returns_soon_is_sound(void **state)
{
	struct story *story = *state;
	cancel(story, 110, HF_ECANCELLED);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_CANCELS], 1);
}

static void a_cancelled_call_that_returns_late_is_found(void **state)
{
	cancel(*state, 1110, HF_ECANCELLED);
	expect_only(*state, RULE_DEADLINE);
}

static void a_cancelled_call_may_wait_for_an_answer(void **state)
{
	add_fault(*state, 20, 30, 0);
	cancel(*state, 1110, HF_EUNKNOWN);
	expect_sound(*state);
}

static void a_cancelled_call_that_waits_for_ever_is_found(void **state)
{
	add_fault(*state, 20, 30, 0);
	cancel(*state, 3010, HF_EUNKNOWN);
	expect_only(*state, RULE_DEADLINE);
}

static void a_call_that_nobody_cancelled_is_found(void **state)
{
	refuse(*state, 10, 20, 15, HF_ECANCELLED);
	expect_only(*state, RULE_IMPOSSIBLE);
}

static void a_cancelled_call_leaves_nothing_that_others_wait_for(void **state)
{
	struct story *story = *state;
	cancel(story, 110, HF_ECANCELLED);
	refuse(story, 10, 2500, 2500, HF_ETIMEDOUT);
	expect_only(story, RULE_SERVED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_call_that_never_returns_is_found),
		STORY(a_call_that_returns_late_is_found),
		STORY(a_process_that_was_stopped_may_return_late),
		STORY(an_impossible_answer_is_found),
		STORY(a_cancelled_call_that_returns_soon_is_sound),
		STORY(a_cancelled_call_that_returns_late_is_found),
		STORY(a_cancelled_call_may_wait_for_an_answer),
		STORY(a_cancelled_call_that_waits_for_ever_is_found),
		STORY(a_call_that_nobody_cancelled_is_found),
		STORY(a_cancelled_call_leaves_nothing_that_others_wait_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
