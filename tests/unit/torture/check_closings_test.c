/* What the checker of torture says about clients that are closed in the middle of a round. */
#include "unit/torture/check_story.h"

#define CLIENT 6

/* A call of the client, which returns an error. */
static void answer(struct story *story, long asked, long deadline, long returned, int code)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(asked), .until = AT(deadline), .hold = hold, .process = 1,
	    .client = CLIENT, .covers = LOCK, .share = 1);
	ADD(.moment = REFUSED, .at = AT(returned), .hold = hold, .code = (int16_t)code);
}

/* The client holds the lock. */
static uint32_t hold_at(struct story *story, long at)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(at - 1), .until = AT(at + 500), .hold = hold, .process = 1,
	    .client = CLIENT, .covers = LOCK, .share = 1);
	ADD(.moment = GRANTED, .at = AT(at), .until = AT(at + 1000), .hold = hold, .process = 1,
	    .client = CLIENT, .identity = 1000 + hold);
	return hold;
}

static void close_client(struct story *story, uint16_t client, long from, long until)
{
	ADD(.moment = CLOSING, .at = AT(from), .until = AT(from + 1000), .process = 1,
	    .client = client);
	if (until)
		ADD(.moment = CLOSED, .at = AT(until), .process = 1, .client = client);
}

static void see(struct story *story, uint32_t hold, long at)
{
	ADD(.moment = SEEN, .at = AT(at + 1), .until = AT(at), .process = 2, .covers = LOCK,
	    .identity = 1000 + hold);
}

/* ---- what it held ---- */

static void a_hold_ends_when_its_client_is_closed(void **state)
{
	struct story *story = *state;
	(void)hold_at(story, 10);
	close_client(story, CLIENT, 50, 60);
	release(story, acquire_lock(story, 2, 55), 70, 0);
	expect_sound(story);
}

static void a_hold_of_another_client_lasts_on(void **state)
{
	struct story *story = *state;
	(void)hold_at(story, 10);
	close_client(story, CLIENT + 1, 50, 60);
	(void)acquire_lock(story, 2, 55);
	expect_only(story, RULE_EXCLUSION);
}

static void a_hold_on_the_server_after_the_close_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	close_client(story, CLIENT, 50, 60);
	see(story, hold, 61);
	expect_only(story, RULE_GHOST);
}

static void a_fault_may_keep_the_release_of_a_close_back(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	add_fault(story, 45, 48, 0);
	close_client(story, CLIENT, 50, 60);
	see(story, hold, 61);
	expect_sound(story);
}

static void a_close_does_not_wait_for_long_for_its_releases(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	close_client(story, CLIENT, 50, 1055);
	see(story, hold, 1060);
	refuse(story, 1060, 3500, 3500, HF_ETIMEDOUT);
	expect_sound(story);
}

static void a_waiter_is_served_after_a_close(void **state)
{
	struct story *story = *state;
	(void)hold_at(story, 10);
	close_client(story, CLIENT, 50, 60);
	refuse(story, 55, 2500, 2500, HF_ETIMEDOUT);
	expect_only(story, RULE_SERVED);
}

/* ---- what its calls answer ---- */

static void calls_of_a_client_that_is_closed_say_so(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	answer(story, 40, 5000, 51, HF_ECLOSED);
	answer(story, 55, 5000, 56, HF_ECLOSED);
	answer(story, 61, 5000, 62, HF_ECLOSED);
	close_client(story, CLIENT, 50, 60);
	release(story, hold, 58, HF_ECLOSED);
	expect_sound(story);
	assert_int_equal(story->verdict.judged[JUDGED_CLOSED], 4);
}

static void a_client_that_says_too_early_that_it_is_closed_is_found(void **state)
{
	struct story *story = *state;
	answer(story, 40, 5000, 49, HF_ECLOSED);
	close_client(story, CLIENT, 50, 60);
	expect_only(story, RULE_IMPOSSIBLE);
}

static void a_client_that_is_not_closed_does_not_say_so(void **state)
{
	struct story *story = *state;
	release(story, hold_at(story, 10), 20, HF_ECLOSED);
	expect_only(story, RULE_IMPOSSIBLE);
}

static void a_call_that_outlasts_its_client_is_found(void **state)
{
	struct story *story = *state;
	close_client(story, CLIENT, 50, 60);
	answer(story, 40, 5000, 1059, HF_ECLOSED);
	expect_sound(story);
	answer(story, 40, 5000, 1061, HF_ECLOSED);
	expect_only(story, RULE_DEADLINE);
}

static void a_grant_of_a_closed_client_is_found(void **state)
{
	struct story *story = *state;
	close_client(story, CLIENT, 50, 60);
	(void)hold_at(story, 62);
	expect_only(story, RULE_CLOSED);
}

static void a_hold_of_a_closed_client_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	ADD(.moment = CONFIRMED, .at = AT(59), .until = AT(1010), .hold = hold);
	close_client(story, CLIENT, 50, 60);
	expect_sound(story);
	ADD(.moment = CONFIRMED, .at = AT(61), .until = AT(1010), .hold = hold);
	expect_only(story, RULE_CLOSED);
}

static void a_release_by_a_closed_client_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	close_client(story, CLIENT, 50, 60);
	release(story, hold, 61, 0);
	expect_only(story, RULE_CLOSED);
}

static void a_release_that_a_kill_interrupts_says_nothing(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	close_client(story, CLIENT, 50, 60);
	ADD(.moment = RELEASING, .at = AT(61), .until = AT(500), .hold = hold);
	ADD(.moment = KILLED, .at = AT(62), .process = 1);
	expect_sound(story);
}

static void a_closed_client_reports_no_losses(void **state)
{
	struct story *story = *state;
	ADD(.moment = LOST, .at = AT(55), .identity = 1, .process = 1, .client = CLIENT);
	ADD(.moment = LOST, .at = AT(70), .identity = 2, .process = 1, .client = CLIENT + 1);
	close_client(story, CLIENT, 50, 60);
	expect_sound(story);
	ADD(.moment = LOST, .at = AT(61), .identity = 3, .process = 1, .client = CLIENT);
	expect_only(story, RULE_CLOSED);
}

static void a_release_that_finds_the_client_closed_needs_no_event(void **state)
{
	struct story *story = *state;
	uint32_t hold = hold_at(story, 10);
	close_client(story, CLIENT, 50, 60);
	release(story, hold, 61, HF_ELOST);
	expect_sound(story);
}

static void a_forced_release_ends_the_holds_of_its_own_client_only(void **state)
{
	struct story *story = *state;
	uint32_t number = record_new_hold(&story->record), hold = hold_at(story, 10);
	ADD(.moment = FORCING, .at = AT(15), .hold = number, .process = 1, .covers = LOCK);
	ADD(.moment = FORCED, .at = AT(16), .hold = number, .process = 1, .until = 1);
	ADD(.moment = CONFIRMED, .at = AT(20), .until = AT(1010), .hold = hold);
	expect_sound(story);
}

/* ---- the close itself ---- */

static void a_close_that_takes_too_long_is_found(void **state)
{
	close_client(*state, CLIENT, 50, 2051);
	expect_only(*state, RULE_DEADLINE);
}

static void a_close_may_take_longer_while_the_process_stands_still(void **state)
{
	add_fault(*state, 60, 70, STOPS_CALLS);
	close_client(*state, CLIENT, 50, 2051);
	expect_sound(*state);
}

static void a_close_that_never_returns_is_found(void **state)
{
	close_client(*state, CLIENT, 50, 0);
	expect_only(*state, RULE_RETURN);
}

static void a_killed_process_closes_nothing(void **state)
{
	struct story *story = *state;
	(void)hold_at(story, 10);
	close_client(story, CLIENT, 50, 0);
	ADD(.moment = KILLED, .at = AT(55), .process = 1);
	refuse(story, 60, 2500, 2500, HF_ETIMEDOUT);
	expect_sound(story);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_hold_ends_when_its_client_is_closed),
		STORY(a_hold_of_another_client_lasts_on),
		STORY(a_hold_on_the_server_after_the_close_is_found),
		STORY(a_fault_may_keep_the_release_of_a_close_back),
		STORY(a_close_does_not_wait_for_long_for_its_releases),
		STORY(a_waiter_is_served_after_a_close),
		STORY(calls_of_a_client_that_is_closed_say_so),
		STORY(a_client_that_says_too_early_that_it_is_closed_is_found),
		STORY(a_client_that_is_not_closed_does_not_say_so),
		STORY(a_call_that_outlasts_its_client_is_found),
		STORY(a_grant_of_a_closed_client_is_found),
		STORY(a_hold_of_a_closed_client_is_found),
		STORY(a_release_by_a_closed_client_is_found),
		STORY(a_release_that_a_kill_interrupts_says_nothing),
		STORY(a_closed_client_reports_no_losses),
		STORY(a_release_that_finds_the_client_closed_needs_no_event),
		STORY(a_forced_release_ends_the_holds_of_its_own_client_only),
		STORY(a_close_that_takes_too_long_is_found),
		STORY(a_close_may_take_longer_while_the_process_stands_still),
		STORY(a_close_that_never_returns_is_found),
		STORY(a_killed_process_closes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
