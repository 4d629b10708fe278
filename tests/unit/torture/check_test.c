/*
 * The checker of torture's records accepts a history without fault, and each of its rules can fail.
 */
#include "unit/torture/check_story.h"

/* ---- exclusion ---- */

static void holds_one_after_the_other_are_sound(void **state)
{
	struct story *story = *state;
	for (uint16_t i = 0; i < 10; i++)
		release(story, acquire_lock(story, 1 + i % 3, 10 + i * 100), 50 + i * 100, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.grants, 10);
}

static void two_holders_at_once_are_found(void **state)
{
	struct story *story = *state;
	uint32_t first = acquire_lock(story, 1, 10);
	uint32_t second = acquire_lock(story, 2, 20);
	release(story, first, 30, 0);
	release(story, second, 40, 0);
	expect_only(story, RULE_EXCLUSION);
}

static void a_belief_ends_at_valid_until(void **state)
{
	struct story *story = *state;
	(void)acquire(story, 1, LOCK, 1, 10, 60);
	release(story, acquire_lock(story, 2, 60), 70, 0);
	expect_sound(story);
}

static void a_confirmed_hold_lasts_longer(void **state)
{
	struct story *story = *state;
	uint32_t first = acquire(story, 1, LOCK, 1, 10, 60);
	ADD(.moment = CONFIRMED, .at = AT(50), .until = AT(80), .hold = first);
	release(story, acquire_lock(story, 2, 60), 70, 0);
	expect_only(story, RULE_EXCLUSION);
}

static void a_killed_process_believes_nothing(void **state)
{
	struct story *story = *state;
	(void)acquire_lock(story, 1, 10);
	ADD(.moment = KILLED, .at = AT(15), .process = 1);
	release(story, acquire_lock(story, 2, 20), 30, 0);
	expect_sound(story);
}

static void overlaps_after_lost_data_are_only_counted(void **state)
{
	struct story *story = *state;
	uint32_t first = acquire_lock(story, 1, 10);
	add_fault(story, 12, 14, LOSES_DATA);
	uint32_t second = acquire_lock(story, 2, 20);
	release(story, first, 30, 0);
	release(story, second, 40, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.overlaps_by_loss, 1);
}

static void other_faults_excuse_no_overlap(void **state)
{
	struct story *story = *state;
	uint32_t first = acquire_lock(story, 1, 10);
	add_fault(story, 12, 14, STOPS_CALLS);
	uint32_t second = acquire_lock(story, 2, 20);
	release(story, first, 30, 0);
	release(story, second, 40, 0);
	expect_only(story, RULE_EXCLUSION);
}

/* Java believes that it holds the lock until 30 ms, but another process is granted it at 20 ms. */
static void overlap_with_java(struct story *story, uint16_t first_flags, uint16_t second_flags)
{
	uint32_t first = record_new_hold(&story->record), second = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = first, .process = 1, .covers = LOCK, .share = 1,
	    .flags = first_flags);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(9000), .hold = first);
	ADD(.moment = ASKED, .at = AT(19), .hold = second, .process = 2, .covers = LOCK, .share = 1,
	    .flags = second_flags);
	ADD(.moment = GRANTED, .at = AT(20), .until = AT(9000), .hold = second);
	release(story, first, 30, 0);
	release(story, second, 40, 0);
}

static void an_overlap_with_a_late_java_holder_is_only_counted(void **state)
{
	struct story *story = *state;
	add_fault(story, 2, 8, DELAYS_JAVA);
	overlap_with_java(story, FOREIGN, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.overlaps_with_java, 1);
}

static void an_overlap_with_java_after_another_fault_is_found(void **state)
{
	struct story *story = *state;
	add_fault(story, 2, 8, STOPS_CALLS);
	overlap_with_java(story, FOREIGN, 0);
	expect_only(story, RULE_EXCLUSION);
}

static void java_that_is_granted_what_another_holds_is_found(void **state)
{
	struct story *story = *state;
	add_fault(story, 2, 8, DELAYS_JAVA);
	overlap_with_java(story, 0, FOREIGN);
	expect_only(story, RULE_EXCLUSION);
}

static void one_permit_too_many_is_found(void **state)
{
	struct story *story = *state;
	uint32_t two = acquire(story, 1, PERMITS, 2, 10, 1000);
	uint32_t one = acquire(story, 2, PERMITS, 1, 20, 1000);
	uint32_t more = acquire(story, 3, PERMITS, 1, 30, 1000);
	release(story, two, 40, 0);
	release(story, one, 41, 0);
	release(story, more, 42, 0);
	expect_only(story, RULE_EXCLUSION);
}

static void readers_share_and_writers_do_not(void **state)
{
	struct story *story = *state;
	uint32_t one = acquire(story, 1, RW, 1, 10, 1000);
	uint32_t two = acquire(story, 2, RW, 1, 20, 1000);
	release(story, one, 30, 0);
	release(story, two, 40, 0);
	expect_sound(story);
	uint32_t reader = acquire(story, 1, RW, 1, 50, 1000);
	uint32_t writer = acquire(story, 2, RW, 1000, 60, 1000);
	release(story, reader, 70, 0);
	release(story, writer, 80, 0);
	expect_only(story, RULE_EXCLUSION);
}

static void a_hold_of_several_names_excludes_on_each(void **state)
{
	struct story *story = *state;
	uint32_t both = acquire(story, 1, LOCK | PERMITS, 1, 10, 1000);
	uint32_t one = acquire_lock(story, 2, 20);
	release(story, both, 30, 0);
	release(story, one, 40, 0);
	expect_only(story, RULE_EXCLUSION);
}

/* ---- tokens ---- */

static void hold_with_token(struct story *story, long at, int64_t token)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(at), .hold = hold, .process = 1, .covers = LOCK, .share = 1);
	ADD(.moment = GRANTED, .at = AT(at + 1), .until = AT(at + 500), .hold = hold,
	    .token = token);
	release(story, hold, at + 2, 0);
}

static void growing_tokens_are_sound(void **state)
{
	struct story *story = *state;
	hold_with_token(story, 10, 7);
	hold_with_token(story, 20, 8);
	expect_sound(story);
}

static void a_token_that_comes_twice_is_found(void **state)
{
	struct story *story = *state;
	hold_with_token(story, 10, 7);
	hold_with_token(story, 20, 7);
	expect_only(story, RULE_TOKEN);
}

/* ---- valid-until ---- */

static void a_hold_that_is_held_again_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire(story, 1, LOCK, 1, 10, 20);
	ADD(.moment = ENDED, .at = AT(20), .hold = hold);
	ADD(.moment = CONFIRMED, .at = AT(21), .until = AT(90), .hold = hold);
	release(story, hold, 30, HF_ELOST);
	ADD(.moment = LOST, .at = AT(31), .identity = 1000 + hold);
	expect_only(story, RULE_DENIED);
}

/*
 * The last level that is renewed is released at 100 ms; the hold is valid until a second later, and
 * until this time.
 */
static void confirm_after_watch(struct story *story, long until)
{
	uint32_t hold = acquire(story, 1, LOCK, 1, 10, 1100);
	ADD(.moment = UNWATCHED, .at = AT(100), .until = AT(1100), .hold = hold);
	ADD(.moment = CONFIRMED, .at = AT(900), .until = AT(until), .hold = hold);
	release(story, hold, 1000, 0);
}

static void a_renewal_in_flight_at_the_end_is_sound(void **state)
{
	confirm_after_watch(*state, 3090);
	expect_sound(*state);
}

static void a_renewal_after_the_end_is_found(void **state)
{
	confirm_after_watch(*state, 3800);
	expect_only(*state, RULE_RENEWED);
}

static void a_valid_until_that_comes_nearer_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_lock(story, 1, 10);
	ADD(.moment = CONFIRMED, .at = AT(20), .until = AT(900), .hold = hold);
	release(story, hold, 30, 0);
	expect_only(story, RULE_SHRUNK);
}

static void a_grant_without_replicas_is_found(void **state)
{
	struct story *story = *state;
	release(story, acquire_lock(story, 1, 5), 20, 0);
	add_fault(story, 2, 90, STOPS_REPLICAS);
	release(story, acquire_lock(story, 1, 100), 120, 0);
	expect_only(story, RULE_REPLICAS);
}

static void a_grant_before_replicas_have_stopped_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t number = record_new_hold(&story->record);
	ADD(.moment = FAULT, .at = AT(2), .hold = number, .flags = STOPS_REPLICAS);
	ADD(.moment = STOPPED, .at = AT(12), .hold = number);
	release(story, acquire_lock(story, 1, 10), 20, 0);
	ADD(.moment = HEALED, .at = AT(90), .hold = number);
	expect_sound(story);
}

static void a_grant_after_replicas_continue_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t number = record_new_hold(&story->record);
	ADD(.moment = FAULT, .at = AT(2), .hold = number, .flags = STOPS_REPLICAS);
	ADD(.moment = CONTINUING, .at = AT(40), .hold = number);
	release(story, acquire_lock(story, 1, 42), 50, 0);
	ADD(.moment = HEALED, .at = AT(90), .hold = number);
	expect_sound(story);
}

/* ---- waiters ---- */

static void a_waiter_of_a_free_lock_must_be_served(void **state)
{
	struct story *story = *state;
	release(story, acquire_lock(story, 1, 10), 20, 0);
	refuse(story, 15, 2500, 2500, HF_ETIMEDOUT);
	expect_only(story, RULE_SERVED);
}

static void a_waiter_that_is_served_late_is_found(void **state)
{
	struct story *story = *state;
	release(story, acquire_lock(story, 1, 10), 20, 0);
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(15), .hold = hold, .process = 2, .covers = LOCK, .share = 1);
	ADD(.moment = GRANTED, .at = AT(2500), .until = AT(2600), .hold = hold);
	release(story, hold, 2501, 0);
	expect_only(story, RULE_SERVED);
}

static void a_waiter_of_a_sparse_lock_is_served_sooner(void **state)
{
	struct story *story = *state;
	story->record.head->sparse = LOCK;
	story->record.head->prompt_ns = 1000 * MS;
	release(story, acquire_lock(story, 1, 10), 20, 0);
	refuse(story, 15, 1030, 1030, HF_ETIMEDOUT);
	expect_only(story, RULE_SERVED);
}

static void a_lease_that_nobody_ended_is_waited_for(void **state)
{
	struct story *story = *state;
	release(story, acquire_lock(story, 1, 10), 20, HF_EUNKNOWN);
	refuse(story, 15, 2500, 2500, HF_ETIMEDOUT);
	expect_sound(story);
}

static void a_waiter_has_time_to_recover_from_a_fault(void **state)
{
	struct story *story = *state;
	release(story, acquire_lock(story, 1, 10), 20, 0);
	add_fault(story, 30, 40, 0);
	refuse(story, 15, 2500, 2500, HF_ETIMEDOUT);
	expect_sound(story);
}

/* ---- forced releases ---- */

/* The process forces a release; whether the server had a hold. */
static void force(struct story *story, uint16_t process, long at, int was_held)
{
	uint32_t number = record_new_hold(&story->record);
	ADD(.moment = FORCING, .at = AT(at), .hold = number, .process = process, .covers = LOCK);
	ADD(.moment = FORCED, .at = AT(at + 1), .hold = number, .process = process,
	    .until = was_held);
}

static void an_overlap_after_a_forced_release_is_only_counted(void **state)
{
	struct story *story = *state;
	uint32_t first = acquire_lock(story, 1, 10);
	force(story, 2, 15, 1);
	uint32_t second = acquire_lock(story, 2, 20);
	release(story, first, 30, 0);
	release(story, second, 40, 0);
	expect_sound(story);
	assert_int_equal(story->verdict.overlaps_by_force, 1);
}

static void a_loss_after_a_forced_release_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_lock(story, 1, 10);
	force(story, 2, 15, 1);
	lose(story, hold, 20);
	release(story, hold, 30, HF_ELOST);
	expect_sound(story);
}

/* The process that forces a release holds the lock, and says so once more at the given time. */
static void force_own_hold(struct story *story, long at, int was_held)
{
	uint32_t hold = acquire_lock(story, 1, 10);
	force(story, 1, 15, was_held);
	ADD(.moment = CONFIRMED, .at = AT(at), .until = AT(1010), .hold = hold);
	release(story, hold, 30, 0);
}

static void a_hold_that_lasts_through_a_forced_release_is_found(void **state)
{
	force_own_hold(*state, 20, 1);
	expect_only(*state, RULE_FORCED);
}

static void a_process_that_forces_a_release_believes_nothing(void **state)
{
	struct story *story = *state;
	uint32_t first = acquire_lock(story, 1, 10);
	force(story, 1, 15, 1);
	release(story, acquire_lock(story, 2, 20), 30, 0);
	release(story, first, 40, HF_ELOST);
	lose(story, first, 35);
	expect_sound(story);
	assert_int_equal(story->verdict.overlaps_by_force, 0);
}

static void a_renewed_hold_may_be_forced_away(void **state)
{
	struct story *story = *state;
	force(story, 2, 3000, 1);
	lose_a_renewed_hold(story, 3500);
	expect_sound(story);
}

static void tokens_of_a_forced_lock_may_be_returned_in_any_order(void **state)
{
	struct story *story = *state;
	uint32_t late = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(5), .hold = late, .process = 2, .covers = LOCK, .share = 1);
	hold_with_token(story, 10, 8);
	force(story, 1, 12, 1);
	ADD(.moment = GRANTED, .at = AT(20), .until = AT(500), .hold = late, .token = 7);
	release(story, late, 22, 0);
	expect_sound(story);
}

static void a_hold_may_last_until_the_forced_release_returns(void **state)
{
	force_own_hold(*state, 15, 1);
	expect_sound(*state);
}

static void a_forced_release_of_nothing_ends_no_hold(void **state)
{
	force_own_hold(*state, 20, 0);
	expect_sound(*state);
}

/* ---- holds that end too late, or that come back ---- */

/*
 * The first hold is said to be held until the given time, although the second one was granted at 20
 * ms.
 */
static void outlive(struct story *story, long until)
{
	story->record.head->one_master = 1;
	uint32_t first = acquire_lock(story, 1, 10);
	add_fault(story, 12, 14, LOSES_DATA);
	release(story, acquire_lock(story, 2, 20), 30, 0);
	ADD(.moment = CONFIRMED, .at = AT(50), .until = AT(until), .hold = first);
	release(story, first, until - 1, 0);
}

static void a_forgotten_hold_that_ends_within_its_lease_is_sound(void **state)
{
	outlive(*state, 3000);
	expect_sound(*state);
}

static void a_forgotten_hold_that_lasts_is_found(void **state)
{
	outlive(*state, 3100);
	expect_only(*state, RULE_OUTLIVED);
}

static void see(struct story *story, uint32_t hold, long asked, long at)
{
	ADD(.moment = SEEN, .until = AT(asked), .at = AT(at), .identity = 1000 + hold,
	    .covers = LOCK);
}

static void a_hold_that_is_seen_before_its_release_returns_is_sound(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_lock(story, 1, 10);
	release(story, hold, 20, 0);
	see(story, hold, 20, 25);
	expect_sound(story);
}

static void a_hold_that_is_seen_after_its_release_is_found(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_lock(story, 1, 10);
	release(story, hold, 20, 0);
	see(story, hold, 22, 25);
	expect_only(story, RULE_GHOST);
}

static void a_request_that_was_kept_may_bring_a_hold_back(void **state)
{
	struct story *story = *state;
	uint32_t hold = acquire_lock(story, 1, 10);
	add_fault(story, 12, 21, KEEPS_REQUESTS);
	release(story, hold, 20, 0);
	see(story, hold, 22, 25);
	expect_sound(story);
}

/* ---- most servers ---- */

/*
 * Faults of two servers, and of one more at the given time; the hold of most servers ends at 9 s.
 */
static void lose_the_whole(struct story *story, long third_at)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = LOCK, .share = 1,
	    .flags = RENEWED | MAJORITY);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(9000), .hold = hold);
	for (uint16_t server = 1; server <= 3; server++) {
		uint32_t number = record_new_hold(&story->record);
		long at = server == 3 ? third_at : 7000;
		ADD(.moment = FAULT, .at = AT(at), .hold = number, .share = server,
		    .flags = LOSES_DATA);
		ADD(.moment = HEALED, .at = AT(at + 10), .hold = number);
	}
	ADD(.moment = ENDED, .at = AT(9000), .hold = hold);
	release(story, hold, 9001, HF_ELOST);
}

static void a_loss_of_most_servers_is_sound(void **state)
{
	lose_the_whole(*state, 7500);
	expect_sound(*state);
}

static void a_loss_of_few_servers_is_found(void **state)
{
	lose_the_whole(*state, 2000);
	expect_only(*state, RULE_MINORITY);
}

static void a_whole_needs_time_to_become_complete(void **state)
{
	struct story *story = *state;
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = LOCK, .share = 1,
	    .flags = RENEWED | MAJORITY);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(9000), .hold = hold);
	ADD(.moment = ENDED, .at = AT(4000), .hold = hold);
	release(story, hold, 4001, HF_ELOST);
	expect_sound(story);
}

/* ---- leftovers ---- */

static void something_left_on_the_server_is_found(void **state)
{
	struct story *story = *state;
	ADD(.moment = LEFT_BEHIND, .at = AT(10));
	expect_only(story, RULE_LEFTOVER);
}

/* ---- activity ---- */

/* Two grants of the library, and one of Java. */
static void grant_three_times(struct story *story)
{
	release(story, acquire_lock(story, 1, 10), 20, 0);
	release(story, acquire_lock(story, 2, 30), 40, 0);
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(49), .hold = hold, .process = 3, .covers = LOCK, .share = 1,
	    .flags = FOREIGN);
	ADD(.moment = GRANTED, .at = AT(50), .until = AT(9000), .hold = hold);
	release(story, hold, 60, 0);
}

static void a_round_with_enough_grants_is_sound(void **state)
{
	struct story *story = *state;
	story->record.head->least_grants = 2;
	grant_three_times(story);
	expect_sound(story);
}

static void a_round_with_hardly_any_grants_is_found(void **state)
{
	struct story *story = *state;
	story->record.head->least_grants = 3;
	grant_three_times(story);
	expect_only(story, RULE_IDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(holds_one_after_the_other_are_sound),
		STORY(two_holders_at_once_are_found),
		STORY(a_belief_ends_at_valid_until),
		STORY(a_confirmed_hold_lasts_longer),
		STORY(a_killed_process_believes_nothing),
		STORY(overlaps_after_lost_data_are_only_counted),
		STORY(other_faults_excuse_no_overlap),
		STORY(an_overlap_with_a_late_java_holder_is_only_counted),
		STORY(an_overlap_with_java_after_another_fault_is_found),
		STORY(java_that_is_granted_what_another_holds_is_found),
		STORY(one_permit_too_many_is_found),
		STORY(readers_share_and_writers_do_not),
		STORY(a_hold_of_several_names_excludes_on_each),
		STORY(growing_tokens_are_sound),
		STORY(a_token_that_comes_twice_is_found),
		STORY(a_hold_that_is_held_again_is_found),
		STORY(a_renewal_in_flight_at_the_end_is_sound),
		STORY(a_renewal_after_the_end_is_found),
		STORY(a_valid_until_that_comes_nearer_is_found),
		STORY(a_grant_without_replicas_is_found),
		STORY(a_grant_before_replicas_have_stopped_is_sound),
		STORY(a_grant_after_replicas_continue_is_sound),
		STORY(a_waiter_of_a_free_lock_must_be_served),
		STORY(a_waiter_that_is_served_late_is_found),
		STORY(a_waiter_of_a_sparse_lock_is_served_sooner),
		STORY(a_lease_that_nobody_ended_is_waited_for),
		STORY(a_waiter_has_time_to_recover_from_a_fault),
		STORY(an_overlap_after_a_forced_release_is_only_counted),
		STORY(a_loss_after_a_forced_release_is_sound),
		STORY(a_hold_that_lasts_through_a_forced_release_is_found),
		STORY(a_process_that_forces_a_release_believes_nothing),
		STORY(a_renewed_hold_may_be_forced_away),
		STORY(tokens_of_a_forced_lock_may_be_returned_in_any_order),
		STORY(a_hold_may_last_until_the_forced_release_returns),
		STORY(a_forced_release_of_nothing_ends_no_hold),
		STORY(a_forgotten_hold_that_ends_within_its_lease_is_sound),
		STORY(a_forgotten_hold_that_lasts_is_found),
		STORY(a_hold_that_is_seen_before_its_release_returns_is_sound),
		STORY(a_hold_that_is_seen_after_its_release_is_found),
		STORY(a_request_that_was_kept_may_bring_a_hold_back),
		STORY(a_loss_of_most_servers_is_sound),
		STORY(a_loss_of_few_servers_is_found),
		STORY(a_whole_needs_time_to_become_complete),
		STORY(something_left_on_the_server_is_found),
		STORY(a_round_with_enough_grants_is_sound),
		STORY(a_round_with_hardly_any_grants_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
