/*
 * The stories of permits that expire: counting them, their ids, giving them back, and holders that
 * die.
 */
#include "live/permits.h"

#include "support/process.h"

#include <sched.h>

#define MOST INT64_C(2147483647)

/* ---- counting ---- */

static void permit_has_an_id_and_an_end_on_the_server(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 3, 0);
	long long before = server_now();
	take(pair.mine, 1, 20000, &id);
	assert_int_equal(strlen(id), 32);
	assert_int_equal(strspn(id, "0123456789abcdef"), 32);
	ASSERT_BETWEEN(end_of(id), before + 20000, server_now() + 20000);
	assert_int_equal(ends(), 1);
	assert_int_equal(number_at(live_raw, "orders"), 2);
	assert_int_equal(key_pttl(live_raw, ENDS), -1);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_HELD);
	ASSERT_BETWEEN(hf_permits_remaining(pair.mine, id), 10000, 20000);
	ASSERT_OK(give(pair.mine, id));
	assert_int_equal(number_at(live_raw, "orders"), 3);
	assert_false(key_exists(live_raw, ENDS));
	assert_int_equal(hf_permits_state(pair.mine, id), HF_FREE);
	assert_int_equal(hf_permits_remaining(pair.mine, id), 0);
	assert_int_equal(count_keys(live_raw), 1);
	end(&pair);
}

static void several_are_taken_all_or_none(void **state)
{
	hf_permit_id ids[3], more[3];
	struct pair pair;

	(void)state;
	begin(&pair, 5, 0);
	take(pair.mine, 3, 20000, ids);
	assert_string_not_equal(ids[0], ids[1]);
	assert_string_not_equal(ids[1], ids[2]);
	assert_int_equal(available(pair.mine), 2);
	memset(more, 'x', sizeof more);
	ASSERT_RC(hf_permits_acquire(pair.theirs, 3, HF_PERMITS(.wait_ms = HF_NOWAIT), more),
	          HF_EBUSY);
	assert_int_equal(more[0][0], 'x');
	assert_int_equal(available(pair.mine), 2);
	assert_int_equal(ends(), 3);
	take(pair.theirs, 2, 20000, more);
	assert_int_equal(available(pair.mine), 0);
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 2));
	assert_int_equal(available(pair.mine), 2);
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_FREE);
	assert_int_equal(hf_permits_state(pair.mine, ids[2]), HF_HELD);
	ASSERT_OK(give(pair.mine, ids[2]));
	ASSERT_OK(hf_permits_release(pair.theirs, (const hf_permit_id *)more, 2));
	assert_int_equal(available(pair.mine), 5);
	end(&pair);
}

static void a_thousand_at_once_are_the_most(void **state)
{
	hf_permit_id *ids = check_alloc(1001 * sizeof(*ids));
	struct pair pair;

	(void)state;
	begin(&pair, 1500, 0);
	ASSERT_RC(hf_permits_acquire(pair.mine, 1001, NULL, ids), HF_EINVAL);
	take(pair.mine, 1000, 0, ids);
	assert_int_equal(available(pair.theirs), 500);
	assert_int_equal(acquired(pair.theirs), 1000);
	assert_int_equal(stats_of(pair.one).held, 1000);
	ASSERT_RC(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 1001), HF_EINVAL);
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 1000));
	assert_int_equal(available(pair.theirs), 1500);
	assert_int_equal(stats_of(pair.one).held, 0);
	free(ids);
	end(&pair);
}

static void counts_follow_what_is_taken_and_what_expires(void **state)
{
	hf_permit_id ids[4];
	struct pair pair;

	(void)state;
	begin(&pair, -1, 0);
	assert_int_equal(available(pair.mine), 0);
	assert_int_equal(acquired(pair.mine), 0);
	assert_int_equal(total(pair.mine), 0);
	ASSERT_OK(hf_permits_try_set(pair.mine, 5, NULL));
	take(pair.mine, 2, 2000, ids);
	take(pair.theirs, 2, 2000, ids + 2);
	assert_int_equal(available(pair.mine), 1);
	assert_int_equal(acquired(pair.mine), 4);
	assert_int_equal(total(pair.mine), 5);
	ASSERT_RC(hf_permits_acquire(pair.mine, 2, HF_PERMITS(.wait_ms = HF_NOWAIT), ids),
	          HF_EBUSY);
	WAIT_UNTIL(acquired(pair.mine) == 0, SOON_MS);
	assert_int_equal(available(pair.mine), 5);
	assert_int_equal(total(pair.mine), 5);
	assert_false(key_exists(live_raw, ENDS));
	end(&pair);
}

static void total_is_set_once_changed_and_added_to(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;
	int done = -7;

	(void)state;
	begin(&pair, 2, 0);
	ASSERT_OK(hf_permits_try_set(pair.theirs, 9, &done));
	assert_int_equal(done, 0);
	assert_int_equal(total(pair.mine), 2);
	take(pair.mine, 2, 20000, ids);
	ASSERT_OK(hf_permits_set(pair.theirs, 5));
	assert_int_equal(available(pair.mine), 3);
	/* Less than there are in use. */
	ASSERT_OK(hf_permits_set(pair.theirs, 1));
	assert_int_equal(available(pair.mine), -1);
	assert_int_equal(total(pair.mine), 1);
	ASSERT_OK(hf_permits_add(pair.mine, 4));
	assert_int_equal(available(pair.mine), 3);
	ASSERT_OK(hf_permits_add(pair.mine, -5));
	assert_int_equal(available(pair.mine), -2);
	assert_int_equal(acquired(pair.mine), 2);
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 2));
	assert_int_equal(available(pair.mine), 0);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_OK(hf_permits_set(pair.mine, 4));
	assert_int_equal(available(pair.mine), 4);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_OK(hf_permits_add(pair.mine, 6));
	assert_int_equal(total(pair.mine), 6);
	end(&pair);
}

static void time_of_the_key_holds_for_the_ends_too(void **state)
{
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, 1, 0);
	assert_int_equal(raw_integer(live_raw, "PEXPIRE", "orders", "600", NULL), 1);
	take(pair.mine, 1, 20000, &id);
	ASSERT_BETWEEN(key_pttl(live_raw, ENDS), 1, 600);
	WAIT_UNTIL(count_keys(live_raw) == 0, SOON_MS);
	ASSERT_RC(give(pair.mine, id), HF_ELOST);
	assert_int_equal(available(pair.mine), 0);
	assert_int_equal(count_keys(live_raw), 0);
	end(&pair);
}

static void every_way_to_give_says_what_java_expects(void **state)
{
	struct raw *listener = listen_to(CHANNEL);
	hf_permit_id ids[3];
	struct pair pair;

	(void)state;
	begin(&pair, 5, 0);
	expect_message(listener, "5");
	take(pair.mine, 3, 20000, ids);
	ASSERT_OK(give(pair.mine, ids[0]));
	expect_message(listener, "3");
	/* Several: how many were given back. */
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)(ids + 1), 2));
	expect_message(listener, "2");
	ASSERT_OK(hf_permits_add(pair.mine, 4));
	expect_message(listener, "4");
	ASSERT_OK(hf_permits_add(pair.mine, -3));
	ASSERT_OK(hf_permits_set(pair.mine, 6));
	ASSERT_OK(hf_permits_try_set(pair.mine, 9, NULL));
	expect_silence(listener);
	ASSERT_OK(hf_permits_set(pair.mine, 8));
	expect_message(listener, "8");
	raw_close(listener);
	end(&pair);
}

/* ---- by the id ---- */

static void every_client_that_knows_the_id_may_give_the_permit_back(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;
	int64_t lease = 0;

	(void)state;
	begin(&pair, 2, 4500);
	take(pair.mine, 2, 0, ids);
	ASSERT_OK(hf_permits_lease(pair.theirs, ids[0], &lease));
	ASSERT_BETWEEN(lease, 1, 4500);
	/* What another client holds is not known here. */
	assert_int_equal(hf_permits_state(pair.theirs, ids[0]), HF_FREE);
	assert_int_equal(hf_permits_remaining(pair.theirs, ids[0]), 0);
	ASSERT_OK(give(pair.theirs, ids[0]));
	assert_int_equal(available(pair.theirs), 1);
	/* The holder learns of it by its next renewal. */
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(pair.seen.owner, ids[0]);
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_LOST);
	assert_int_equal(hf_permits_state(pair.mine, ids[1]), HF_HELD);
	ASSERT_RC(give(pair.mine, ids[0]), HF_ELOST);
	ASSERT_RC(give(pair.mine, ids[0]), HF_ENOTHELD);
	ASSERT_OK(give(pair.mine, ids[1]));
	assert_int_equal(available(pair.theirs), 2);
	end(&pair);
}

static void java_may_give_it_back_and_take_others(void **state)
{
	static const char theirs[] = "0123456789abcdef";
	hf_permit_id id;
	struct pair pair;
	int64_t lease = 0;

	(void)state;
	begin(&pair, 2, 0);
	assert_int_equal(raw_integer(live_raw, "DECRBY", "orders", "2", NULL), 0);
	assert_int_equal(
		raw_integer(live_raw, "ZADD", ENDS, "922337203685477", "fedcba9876543210", NULL),
		1);
	char end_at[32];
	snprintf(end_at, sizeof end_at, "%lld", server_now() + 30000);
	assert_int_equal(raw_integer(live_raw, "ZADD", ENDS, end_at, theirs, NULL), 1);
	for (int i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", (unsigned char)theirs[i]);
	ASSERT_OK(hf_permits_lease(pair.mine, id, &lease));
	ASSERT_BETWEEN(lease, 25000, 30000);
	ASSERT_OK(give(pair.mine, id));
	ASSERT_RC(hf_permits_lease(pair.mine, id, &lease), HF_ENOTHELD);
	assert_int_equal(available(pair.mine), 1);
	/* "fedcba9876543210" has no end. */
	ASSERT_OK(hf_permits_lease(pair.mine, "66656463626139383736353433323130", &lease));
	assert_int_equal(lease, -1);
	ASSERT_OK(hf_permits_extend(pair.mine, "66656463626139383736353433323130", 5000));
	ASSERT_OK(hf_permits_lease(pair.mine, "66656463626139383736353433323130", &lease));
	ASSERT_BETWEEN(lease, 1, 5000);
	ASSERT_OK(give(pair.mine, "66656463626139383736353433323130"));
	assert_int_equal(available(pair.mine), 2);
	end(&pair);
}

static void unknown_permit_is_not_held(void **state)
{
	struct pair pair;
	int64_t lease = -7;

	(void)state;
	begin(&pair, 1, 0);
	ASSERT_RC(give(pair.mine, UNKNOWN), HF_ENOTHELD);
	ASSERT_RC(hf_permits_extend(pair.mine, UNKNOWN, 1000), HF_ENOTHELD);
	ASSERT_RC(hf_permits_lease(pair.mine, UNKNOWN, &lease), HF_ENOTHELD);
	assert_int_equal(lease, -7);
	assert_int_equal(hf_permits_state(pair.mine, UNKNOWN), HF_FREE);
	assert_int_equal(available(pair.mine), 1);
	end(&pair);
}

static void list_with_an_unknown_permit_leaves_those_of_others(void **state)
{
	hf_permit_id ids[3];
	struct pair pair;

	(void)state;
	begin(&pair, 3, 0);
	take(pair.mine, 1, 20000, &ids[0]);
	take(pair.theirs, 1, 20000, &ids[1]);
	memcpy(ids[2], UNKNOWN, sizeof ids[2]);
	ASSERT_RC(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 3), HF_ENOTHELD);
	/* Our own is given back in the background, theirs stays. */
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_FREE);
	WAIT_UNTIL(available(pair.mine) == 2, SOON_MS);
	assert_int_not_equal(end_of(ids[1]), NO_NUMBER);
	assert_int_equal(hf_permits_state(pair.theirs, ids[1]), HF_HELD);
	ASSERT_OK(give(pair.theirs, ids[1]));
	assert_int_equal(available(pair.mine), 3);
	end(&pair);
}

static void list_with_one_lost_gives_back_the_others(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;

	(void)state;
	begin(&pair, 2, 0);
	take(pair.mine, 2, 20000, ids);
	ASSERT_OK(give(pair.theirs, ids[1]));
	ASSERT_RC(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 2), HF_ELOST);
	WAIT_UNTIL(available(pair.mine) == 2, SOON_MS);
	assert_int_equal(stats_of(pair.one).held, 0);
	end(&pair);
}

static void permit_named_twice_is_given_back_once(void **state)
{
	hf_permit_id ids[3];
	struct pair pair;

	(void)state;
	begin(&pair, 3, 0);
	take(pair.mine, 2, 20000, ids);
	memcpy(ids[2], ids[0], sizeof ids[2]);
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 3));
	assert_int_equal(available(pair.mine), 3);
	assert_int_equal(total(pair.mine), 3);
	assert_int_equal(stats_of(pair.one).held, 0);
	end(&pair);
}

static void giving_back_reclaims_what_has_expired(void **state)
{
	hf_permit_id alive, dead[2];
	struct pair pair;

	(void)state;
	begin(&pair, 3, 0);
	take(pair.mine, 1, 20000, &alive);
	take(pair.theirs, 2, 300, dead);
	WAIT_UNTIL(server_now() > end_of(dead[0]), SOON_MS);
	assert_int_equal(ends(), 3);
	ASSERT_OK(give(pair.mine, alive));
	assert_int_equal(number_at(live_raw, "orders"), 3);
	ASSERT_RC(hf_permits_release(pair.theirs, (const hf_permit_id *)dead, 2), HF_ELOST);
	assert_int_equal(available(pair.mine), 3);
	end(&pair);
}

static void ids_and_numbers_that_make_no_sense_are_refused(void **state)
{
	hf_permits *permits = NULL;
	struct pair pair;
	hf_permit_id id;
	hf_permit_id bad;

	(void)state;
	begin(&pair, -1, 0);
	ASSERT_RC(hf_permits_acquire(pair.mine, 0, NULL, &id), HF_EINVAL);
	ASSERT_RC(hf_permits_acquire(pair.mine, -1, NULL, &id), HF_EINVAL);
	ASSERT_RC(hf_permits_acquire(pair.mine, 1, NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_permits_acquire(pair.mine, 1, HF_PERMITS(.lease_ms = -1), &id), HF_EINVAL);
	ASSERT_RC(hf_permits_acquire(pair.mine, 1, HF_PERMITS(.wait_ms = -2), &id), HF_EINVAL);
	ASSERT_RC(hf_permits_release(pair.mine, NULL, 1), HF_EINVAL);
	ASSERT_RC(hf_permits_release(pair.mine, (const hf_permit_id *)UNKNOWN, 0), HF_EINVAL);
	memset(bad, 0, sizeof bad);
	memcpy(bad, UNKNOWN, 31);
	ASSERT_RC(give(pair.mine, bad), HF_EINVAL);
	bad[31] = 'g';
	ASSERT_RC(give(pair.mine, bad), HF_EINVAL);
	bad[31] = '0';
	bad[32] = '0';
	ASSERT_RC(give(pair.mine, bad), HF_EINVAL);
	ASSERT_RC(hf_permits_extend(pair.mine, UNKNOWN, 0), HF_EINVAL);
	ASSERT_RC(hf_permits_extend(pair.mine, UNKNOWN, -1), HF_EINVAL);
	ASSERT_RC(hf_permits_try_set(pair.mine, -1, NULL), HF_EINVAL);
	ASSERT_RC(hf_permits_set(pair.mine, -1), HF_EINVAL);
	ASSERT_RC(hf_permits_set(pair.mine, MOST + 1), HF_EINVAL);
	ASSERT_RC(hf_permits_add(pair.mine, MOST + 1), HF_EINVAL);
	ASSERT_RC(hf_permits_open(pair.one, "a{b", &permits), HF_EINVAL);
	ASSERT_RC(hf_permits_acquire(NULL, 1, NULL, &id), HF_EINVAL);
	bad[5] = 0;
	assert_int_equal(hf_permits_state(pair.mine, bad), HF_FREE);
	assert_int_equal(stats_of(pair.one).commands, 0);
	hf_permits_close(NULL);
	end(&pair);
}

/* ---- the rest ---- */

static void every_verb_has_an_asynchronous_form(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;

	(void)state;
	begin(&pair, -1, 0);
	EXPECT_DONE(hf_permits_try_set_async(pair.mine, 2, DONE), 0, 1);
	struct done *done = check_alloc(sizeof(*done));
	ASSERT_OK(hf_permits_acquire_async(pair.mine, 2, HF_PERMITS(.lease_ms = 20000), note_done,
	                                   done));
	expect_done(done, 0, 0);
	assert_true(done->had_text);
	assert_int_equal(strlen(done->text), 65);
	assert_int_equal(done->text[32], ' ');
	snprintf(ids[0], sizeof ids[0], "%.32s", done->text);
	snprintf(ids[1], sizeof ids[1], "%s", done->text + 33);
	free(done);
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_HELD);
	assert_int_equal(hf_permits_state(pair.mine, ids[1]), HF_HELD);
	EXPECT_DONE(hf_permits_available_async(pair.mine, DONE), 0, 0);
	EXPECT_DONE(hf_permits_acquired_async(pair.mine, DONE), 0, 2);
	EXPECT_DONE(hf_permits_total_async(pair.mine, DONE), 0, 2);
	done = check_alloc(sizeof(*done));
	ASSERT_OK(hf_permits_extend_async(pair.mine, ids[0], 60000, note_done, done));
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	assert_int_equal(done->result, 0);
	memset(done, 0, sizeof(*done));
	ASSERT_OK(hf_permits_lease_async(pair.mine, ids[0], note_done, done));
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	ASSERT_BETWEEN(done->number, 50000, 60000);
	memset(done, 0, sizeof(*done));
	ASSERT_OK(
		hf_permits_release_async(pair.mine, (const hf_permit_id *)ids, 2, note_done, done));
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	assert_int_equal(done->result, 0);
	memset(done, 0, sizeof(*done));
	ASSERT_OK(hf_permits_set_async(pair.mine, 7, note_done, done));
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	memset(done, 0, sizeof(*done));
	ASSERT_OK(hf_permits_add_async(pair.mine, -4, note_done, done));
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	free(done);
	assert_int_equal(available(pair.mine), 3);
	EXPECT_DONE(hf_permits_acquire_async(pair.mine, 4, HF_PERMITS(.wait_ms = HF_NOWAIT), DONE),
	            HF_EBUSY, 0);
	EXPECT_DONE(hf_permits_release_async(pair.mine, (const hf_permit_id *)ids, 1, DONE),
	            HF_ENOTHELD, 0);
	ASSERT_RC(hf_permits_acquire_async(pair.mine, 0, NULL, fail_on_done, NULL), HF_EINVAL);
	ASSERT_RC(hf_permits_acquire_async(pair.mine, 1, NULL, NULL, NULL), HF_EINVAL);
	end(&pair);
}

/* Which of the two keys has the wrong type. */
static void expect_conflicts(struct pair *pair, bool ends_too)
{
	hf_permit_id id;
	int64_t number;

	ASSERT_RC(hf_permits_acquire(pair->mine, 1, NULL, &id), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	ASSERT_RC(hf_permits_available(pair->mine, &number), HF_ECONFLICT);
	ASSERT_RC(hf_permits_acquired(pair->mine, &number), HF_ECONFLICT);
	ASSERT_RC(hf_permits_total(pair->mine, &number), HF_ECONFLICT);
	ASSERT_RC(hf_permits_set(pair->mine, 3), HF_ECONFLICT);
	ASSERT_RC(hf_permits_extend(pair->mine, UNKNOWN, 1000), HF_ECONFLICT);
	ASSERT_RC(hf_permits_lease(pair->mine, UNKNOWN, &number), HF_ECONFLICT);
	if (!ends_too)
		ASSERT_RC(hf_permits_add(pair->mine, 3), HF_ECONFLICT);
	else
		ASSERT_RC(give(pair->mine, UNKNOWN), HF_ECONFLICT);
}

static void keys_of_another_sort_are_left_alone(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair, -1, 0);
	raw_ok(live_raw, "SET", "orders", "many", NULL);
	expect_conflicts(&pair, false);
	char *text = raw_text(live_raw, "GET", "orders", NULL);
	assert_string_equal(text, "many");
	free(text);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	assert_int_equal(raw_integer(live_raw, "HSET", "orders", "a", "1", NULL), 1);
	expect_conflicts(&pair, false);
	assert_int_equal(raw_integer(live_raw, "HLEN", "orders", NULL), 1);
	raw_ok(live_raw, "SET", "orders", "2", NULL);
	raw_ok(live_raw, "SET", ENDS, "text", NULL);
	expect_conflicts(&pair, true);
	assert_int_equal(number_at(live_raw, "orders"), 2);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 2);
	end(&pair);
}

static void forgotten_scripts_are_sent_again(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;
	int64_t lease;

	(void)state;
	begin(&pair, 2, 1500);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	take(pair.mine, 2, 0, ids);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_permits_lease(pair.mine, ids[0], &lease));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	WAIT_UNTIL(stats_of(pair.one).renewals >= 2, SOON_MS);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_permits_extend(pair.mine, ids[0], 20000));
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 2));
	assert_int_equal(available(pair.mine), 2);
	assert_int_equal(stats_of(pair.one).losses, 0);
	end(&pair);
}

static void counters_move_as_they_should(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;

	(void)state;
	begin(&pair, 2, 0);
	take(pair.mine, 2, 20000, ids);
	assert_int_equal(stats_of(pair.one).attempts, 1);
	assert_int_equal(stats_of(pair.one).held, 2);
	ASSERT_TIMES_OUT(
		300, hf_permits_acquire(pair.mine, 1, HF_PERMITS(.wait_ms = within_ms), ids + 1));
	assert_int_equal(stats_of(pair.one).waits, 1);
	assert_int_equal(stats_of(pair.one).timeouts, 1);
	ASSERT_OK(give(pair.mine, ids[0]));
	assert_int_equal(stats_of(pair.one).held, 1);
	ASSERT_OK(give(pair.mine, ids[1]));
	hf_stats stats = stats_of(pair.one);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.waiting, 0);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.unknowns, 0);
	assert_int_equal(stats.renewals, 0);
	end(&pair);
}

/* They are holds, and giving one back is a release. */
static void releases_of_permits_are_counted(void **state)
{
	hf_permit_id ids[2];
	struct pair pair;

	(void)state;
	begin(&pair, 2, 0);
	take(pair.mine, 2, 20000, ids);
	ASSERT_OK(hf_permits_release(pair.mine, (const hf_permit_id *)ids, 2));
	assert_true(stats_of(pair.one).grants > 0);
	assert_int_equal(stats_of(pair.one).releases, stats_of(pair.one).grants);
	end(&pair);
}

/* ---- processes ---- */

static void take_two(hf_client *client)
{
	hf_permits *permits;
	hf_permit_id ids[2];
	if (hf_permits_open(client, "orders", &permits) ||
	    hf_permits_acquire(permits, 2, NULL, ids))
		_exit(1);
}

static void permits_of_a_killed_process_come_back_after_one_lease(void **state)
{
	struct pair pair;

	(void)state;
	raw_ok(live_raw, "SET", "orders", "2", NULL);
	pid_t holder = start_child(take_two, 1000);
	WAIT_UNTIL(ends() == 2, SOON_MS);
	pid_t waiter = start_child(take_two, 1000);
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1, SOON_MS);
	begin(&pair, -1, 0);
	/* They stay taken for more than a lease while the holder lives. */
	hf_permit_id ids[2];
	ASSERT_RC(hf_permits_acquire(pair.theirs, 1, HF_PERMITS(.wait_ms = 1100), ids),
	          HF_ETIMEDOUT);
	kill_child(waiter);
	struct waiter *call = sleeper(&pair, 2);
	kill_child(holder);
	long long killed_at = test_now_ms();
	waiter_expect(call, 0);
	ASSERT_BETWEEN(call->ended_at - killed_at, 0, 1000 + WOKEN_MS);
	assert_int_equal(total(pair.mine), 2);
	ASSERT_OK(hf_permits_release(pair.theirs, (const hf_permit_id *)call->ids, 2));
	assert_int_equal(available(pair.mine), 2);
	waiter_free(call);
	end(&pair);
}

/* ---- many at once ---- */

#define THREADS 6
#define ROUNDS  15

struct crowd {
	hf_permits *permits;
	int n;
	int *counter; /* protected by the permits only, or NULL */
	int result;
};

static void *count_alone(void *arg)
{
	struct crowd *crowd = arg;
	hf_permit_id ids[2];
	for (int i = 0; i < ROUNDS && !crowd->result; i++) {
		crowd->result = hf_permits_acquire(crowd->permits, crowd->n, NULL, ids);
		if (crowd->result)
			break;
		int before = crowd->counter ? *(volatile int *)crowd->counter : 0;
		sched_yield();
		if (crowd->counter)
			*(volatile int *)crowd->counter = before + 1;
		crowd->result =
			hf_permits_release(crowd->permits, (const hf_permit_id *)ids, crowd->n);
	}
	return NULL;
}

static void run_crowd(int64_t permits, const int *wanted, int *counter)
{
	struct crowd crowd[THREADS];
	pthread_t threads[THREADS];
	struct pair pair;

	begin(&pair, permits, 0);
	for (int i = 0; i < THREADS; i++) {
		crowd[i] = (struct crowd){i % 2 ? pair.mine : pair.theirs, wanted[i], counter, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, count_alone, &crowd[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(crowd[i].result, 0);
	}
	assert_int_equal(available(pair.mine), permits);
	assert_int_equal(acquired(pair.mine), 0);
	assert_int_equal(stats_of(pair.one).losses + stats_of(pair.two).losses, 0);
	end(&pair);
}

static void one_permit_excludes(void **state)
{
	int counter = 0;

	(void)state;
	run_crowd(1, (const int[THREADS]){1, 1, 1, 1, 1, 1}, &counter);
	assert_int_equal(counter, THREADS * ROUNDS);
}

static void both_of_two_permits_exclude(void **state)
{
	int counter = 0;

	(void)state;
	run_crowd(2, (const int[THREADS]){2, 2, 2, 2, 2, 2}, &counter);
	assert_int_equal(counter, THREADS * ROUNDS);
}

static void one_and_two_of_two_permits_pass_through_together(void **state)
{
	(void)state;
	run_crowd(2, (const int[THREADS]){1, 1, 2, 2, 1, 2}, NULL);
}

static struct pair forked;
static hf_permit_id forked_id;

static void use_inherited_handles(int pipe_fd)
{
	hf_permits *permits = NULL;
	hf_permit_id id;
	int64_t number;

	EXPECT_FORKED(hf_permits_open(forked.one, "other", &permits));
	EXPECT_FORKED(hf_permits_acquire(forked.mine, 1, NULL, &id));
	EXPECT_FORKED(give(forked.mine, forked_id));
	EXPECT_FORKED(hf_permits_extend(forked.mine, forked_id, 1000));
	EXPECT_FORKED(hf_permits_lease(forked.mine, forked_id, &number));
	EXPECT_FORKED(hf_permits_available(forked.mine, &number));
	EXPECT_FORKED(hf_permits_set(forked.mine, 1));
	EXPECT_FORKED(hf_permits_add(forked.mine, 1));
	EXPECT_FORKED(hf_permits_acquire_async(forked.mine, 1, NULL, fail_on_done, NULL));
	if (hf_permits_state(forked.mine, forked_id) != HF_FREE ||
	    hf_permits_remaining(forked.mine, forked_id))
		_exit(2);
	hf_permits_close(forked.mine);
	dprintf(pipe_fd, "all forked");
	_exit(0);
}

static void forked_child_gets_an_error_and_sends_nothing(void **state)
{
	char output[256];

	(void)state;
	begin(&forked, 1, 0);
	take(forked.mine, 1, 20000, &forked_id);
	long long before = info_number(live_raw, "stats", "total_commands_processed");
	int status = process_fork(use_inherited_handles, output, sizeof output);
	assert_string_equal(output, "all forked");
	assert_int_equal(status, 0);
	assert_int_equal(info_number(live_raw, "stats", "total_commands_processed"), before + 1);
	assert_int_equal(hf_permits_state(forked.mine, forked_id), HF_HELD);
	ASSERT_OK(give(forked.mine, forked_id));
	end(&forked);
}

static void wait_for_permits_whose_total_was_never_set_says_so(void **state)
{
	static const char not_set[] = "the number of permits was not set";
	hf_permit_id id;
	struct pair pair;

	(void)state;
	begin(&pair, -1, 0);
	ASSERT_RC(hf_permits_acquire(pair.mine, 1, HF_PERMITS(.wait_ms = HF_NOWAIT), &id),
	          HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), not_set);
	ASSERT_RC(hf_permits_acquire(pair.mine, 1, HF_PERMITS(.wait_ms = 500), &id), HF_ETIMEDOUT);
	ASSERT_CONTAINS(hf_error_detail(), not_set);
	ASSERT_OK(hf_permits_set(pair.mine, 0));
	ASSERT_RC(hf_permits_acquire(pair.mine, 1, HF_PERMITS(.wait_ms = HF_NOWAIT), &id),
	          HF_EBUSY);
	assert_null(strstr(hf_error_detail(), not_set));
	end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(permit_has_an_id_and_an_end_on_the_server),
		SYNC_STORY(several_are_taken_all_or_none),
		SYNC_STORY(a_thousand_at_once_are_the_most),
		SYNC_STORY(counts_follow_what_is_taken_and_what_expires),
		SYNC_STORY(total_is_set_once_changed_and_added_to),
		SYNC_STORY(time_of_the_key_holds_for_the_ends_too),
		SYNC_STORY(every_way_to_give_says_what_java_expects),
		SYNC_STORY(every_client_that_knows_the_id_may_give_the_permit_back),
		SYNC_STORY(java_may_give_it_back_and_take_others),
		SYNC_STORY(unknown_permit_is_not_held),
		SYNC_STORY(list_with_an_unknown_permit_leaves_those_of_others),
		SYNC_STORY(list_with_one_lost_gives_back_the_others),
		SYNC_STORY(permit_named_twice_is_given_back_once),
		SYNC_STORY(giving_back_reclaims_what_has_expired),
		SYNC_STORY(ids_and_numbers_that_make_no_sense_are_refused),
		SYNC_STORY(every_verb_has_an_asynchronous_form),
		SYNC_STORY(keys_of_another_sort_are_left_alone),
		SYNC_STORY(forgotten_scripts_are_sent_again),
		SYNC_STORY(counters_move_as_they_should),
		SYNC_STORY(releases_of_permits_are_counted),
		SYNC_STORY(permits_of_a_killed_process_come_back_after_one_lease),
		SYNC_STORY(one_permit_excludes),
		SYNC_STORY(both_of_two_permits_exclude),
		SYNC_STORY(one_and_two_of_two_permits_pass_through_together),
		SYNC_STORY(forked_child_gets_an_error_and_sends_nothing),
		SYNC_STORY(wait_for_permits_whose_total_was_never_set_says_so),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
