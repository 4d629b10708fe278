/* The judgement of beliefs finds each kind of fault, and lets pass what the guarantees name. */
#include "support/beliefs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp.h"

#define SECOND 1000000

static struct beliefs *beliefs;
static char *dir;

static struct beliefs_failover failover = {100 * SECOND, 102 * SECOND};
static const struct beliefs_rules rules = {.failovers = 1,
                                           .failover = &failover,
                                           .leave_us = SECOND,
                                           .lease_us = 10 * SECOND,
                                           .report_us = SECOND};

static int begin(void **state)
{
	(void)state;
	dir = temp_dir_make();
	char *path = check_format("%s/beliefs", dir);
	beliefs = beliefs_map(path);
	free(path);
	beliefs->names = 1;
	beliefs->parties = 2;
	snprintf(beliefs->name[0].name, sizeof beliefs->name[0].name, "orders");
	return 0;
}

static int end(void **state)
{
	(void)state;
	beliefs_unmap(beliefs);
	temp_dir_remove(dir);
	return 0;
}

/* A belief that was released in time; times are in seconds. */
static struct belief *add(int party, int from, int to)
{
	struct beliefs_party *notes = &beliefs->party[party];
	int64_t count = atomic_load(&notes->count);
	struct belief *belief = &notes->belief[count];
	belief->granted_at = from * (int64_t)SECOND;
	belief->ended_at = to * (int64_t)SECOND;
	atomic_store(&belief->valid_until, (to + 5) * (int64_t)SECOND);
	atomic_store(&belief->end, BELIEF_RELEASED);
	belief->token = from;
	belief->is_counted = 1;
	atomic_fetch_add(&beliefs->name[0].counter, 1);
	snprintf(belief->identity, sizeof belief->identity, "%d:%d", party, (int)count);
	atomic_store(&notes->count, count + 1);
	return belief;
}

/* The same, and its loss was reported when it ended. */
static struct belief *add_lost(int party, int from, int to)
{
	struct belief *belief = add(party, from, to);
	atomic_store(&belief->end, BELIEF_LOST);
	belief->reported_at = belief->ended_at;
	return belief;
}

static struct beliefs_verdict judge(int faults)
{
	struct beliefs_verdict verdict = beliefs_judge(beliefs, &rules);
	assert_int_equal(beliefs_faults(&verdict), faults);
	return verdict;
}

static void holders_in_turn_are_in_order(void **state)
{
	(void)state;
	add(0, 10, 20);
	add(1, 20, 30);
	add(0, 30, 99);
	add(1, 99, 103)->kept = 1;
	add(0, 103, 110);
	struct beliefs_verdict verdict = judge(0);
	assert_int_equal(verdict.beliefs, 5);
	assert_int_equal(verdict.kept, 1);
}

static void an_overlap_outside_a_failover_is_a_fault(void **state)
{
	(void)state;
	add(0, 10, 20);
	add(1, 19, 30);
	struct beliefs_verdict verdict = judge(1);
	assert_int_equal(verdict.overlaps, 1);
	assert_int_equal(verdict.longest_us, SECOND);
}

static void a_short_belief_within_a_long_one_is_an_overlap(void **state)
{
	(void)state;
	add(0, 10, 90);
	add(1, 20, 21);
	add(1, 30, 31);
	assert_int_equal(judge(2).overlaps, 2);
}

static void the_lost_grant_of_a_failover_may_overlap(void **state)
{
	(void)state;
	add_lost(0, 99, 104);
	add(1, 103, 106);
	struct beliefs_verdict verdict = judge(0);
	assert_int_equal(verdict.excused, 1);
	assert_int_equal(verdict.longest_us, SECOND);
}

/* With replicas that acknowledge, the same is a fault. */
static void the_lost_grant_of_a_safe_name_is_a_fault(void **state)
{
	(void)state;
	beliefs->name[0].is_safe = 1;
	add_lost(0, 99, 104);
	add(1, 103, 106);
	assert_int_equal(judge(1).overlaps, 1);
}

/* Both were granted before the failover began, or the first one long after it. */
static void a_failover_does_not_excuse_what_it_cannot_cause(void **state)
{
	(void)state;
	add(0, 90, 99);
	add(1, 98, 101);
	add(0, 105, 108);
	add(1, 107, 109);
	assert_int_equal(judge(2).overlaps, 2);
}

static void an_overlap_that_outlasts_the_lease_is_a_fault(void **state)
{
	(void)state;
	add_lost(0, 99, 115);
	add(1, 104, 116);
	assert_int_equal(judge(1).overlaps, 1);
}

static void a_belief_after_valid_until_is_a_fault(void **state)
{
	(void)state;
	atomic_store(&add(0, 10, 20)->valid_until, 19 * SECOND);
	assert_int_equal(judge(1).late, 1);
}

static void a_loss_reported_after_valid_until_is_a_fault(void **state)
{
	(void)state;
	struct belief *belief = add_lost(0, 99, 104);
	atomic_store(&belief->valid_until, 105 * SECOND);
	belief->reported_at = 106 * SECOND;
	(void)judge(0);
	belief->reported_at++;
	assert_int_equal(judge(1).late, 1);
	belief->reported_at = 0;
	assert_int_equal(judge(1).late, 1);
}

static void a_loss_without_a_failover_is_a_fault(void **state)
{
	(void)state;
	add_lost(0, 10, 20);
	assert_int_equal(judge(1).late, 1);
}

static void a_belief_without_an_end_is_a_fault(void **state)
{
	(void)state;
	atomic_store(&add(0, 10, 20)->end, BELIEF_OPEN);
	assert_int_equal(judge(1).late, 1);
}

static void a_missing_hold_must_be_lost(void **state)
{
	(void)state;
	struct belief *belief = add(0, 99, 104);
	belief->missing_at = 103 * SECOND;
	belief->missing_until = 106 * SECOND;
	assert_int_equal(judge(1).forgotten, 1);
	atomic_store(&belief->end, BELIEF_LOST);
	belief->reported_at = 104 * SECOND;
	assert_int_equal(judge(0).missing, 1);
	beliefs->name[0].is_safe = 1;
	assert_int_equal(judge(1).forgotten, 1);
}

/* Somebody has confirmed a renewal of a hold that the master does not have. */
static void a_missing_hold_must_not_be_renewed(void **state)
{
	(void)state;
	struct belief *belief = add_lost(0, 99, 108);
	belief->missing_at = 103 * SECOND;
	belief->missing_until = 107 * SECOND;
	assert_int_equal(judge(1).forgotten, 1);
}

static void a_token_that_falls_is_a_fault(void **state)
{
	(void)state;
	add(0, 10, 20)->token = 7;
	add(1, 30, 40)->token = 9;
	add(0, 50, 60)->token = 8;
	assert_int_equal(judge(1).falls, 1);
	beliefs->party[0].belief[1].token = 9;
	assert_int_equal(judge(1).falls, 1);
	beliefs->party[0].belief[1].token = 10;
	(void)judge(0);
}

/* The last token that the new master knows is older than that of the lost grant. */
static void a_token_of_java_may_fall_after_a_lost_grant(void **state)
{
	(void)state;
	add(0, 101, 102)->token = 9;
	struct belief *belief = add(1, 110, 111);
	belief->token = 8;
	assert_int_equal(judge(1).falls, 1);
	atomic_store(&belief->valid_until, INT64_MAX);
	(void)judge(0);
	beliefs->party[0].belief[0].granted_at = 98 * SECOND;
	assert_int_equal(judge(1).falls, 1);
}

static void a_lost_update_without_an_overlap_is_a_fault(void **state)
{
	(void)state;
	add(0, 10, 20);
	add(1, 30, 40);
	atomic_fetch_sub(&beliefs->name[0].counter, 1);
	assert_int_equal(judge(1).miscounted, 1);
}

static void names_do_not_disturb_each_other(void **state)
{
	(void)state;
	beliefs->names = 2;
	add(0, 10, 20);
	struct belief *other = add(1, 15, 25);
	other->name = 1;
	atomic_fetch_sub(&beliefs->name[0].counter, 1);
	atomic_fetch_add(&beliefs->name[1].counter, 1);
	(void)judge(0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(holders_in_turn_are_in_order),
		STORY(an_overlap_outside_a_failover_is_a_fault),
		STORY(a_short_belief_within_a_long_one_is_an_overlap),
		STORY(the_lost_grant_of_a_failover_may_overlap),
		STORY(the_lost_grant_of_a_safe_name_is_a_fault),
		STORY(a_failover_does_not_excuse_what_it_cannot_cause),
		STORY(an_overlap_that_outlasts_the_lease_is_a_fault),
		STORY(a_belief_after_valid_until_is_a_fault),
		STORY(a_loss_reported_after_valid_until_is_a_fault),
		STORY(a_loss_without_a_failover_is_a_fault),
		STORY(a_belief_without_an_end_is_a_fault),
		STORY(a_missing_hold_must_be_lost),
		STORY(a_missing_hold_must_not_be_renewed),
		STORY(a_token_that_falls_is_a_fault),
		STORY(a_token_of_java_may_fall_after_a_lost_grant),
		STORY(a_lost_update_without_an_overlap_is_a_fault),
		STORY(names_do_not_disturb_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
