/* Every kind of lock that excludes, shared by C and Java, with the same stories for each. */
#include "interop/interop.h"

/* ---- waiting for the other side ---- */

static void java_is_woken_when_c_releases(void **state)
{
	struct subject *subject = subject_open(*state);
	c_takes(subject, LONG_MS);
	assert_false(java_tries(subject, "t1", 0));
	java_starts_waiting(subject, "t1");
	long long released_at = test_now_ms();
	c_releases(subject);
	java_is_woken("t1", released_at);
	c_is_kept_out(subject);
	java_releases(subject, "t1");
	subject_close(subject);
}

static void c_is_woken_when_java_releases(void **state)
{
	struct subject *subject = subject_open(*state);
	java_takes(subject, "t1", LONG_MS);
	c_is_kept_out(subject);
	struct waiter *waiter = c_starts_waiting(subject);
	let_settle();
	assert_false(atomic_load(&waiter->over));
	long long released_at = test_now_ms();
	java_releases(subject, "t1");
	c_is_woken(waiter, released_at);
	assert_false(java_tries(subject, "t1", 0));
	waiter_finish(waiter);
	subject_close(subject);
}

static void java_gives_up_in_time_and_leaves_nothing(void **state)
{
	struct subject *subject = subject_open(*state);
	c_takes(subject, LONG_MS);
	long long started_at = test_now_ms();
	assert_false(java_tries(subject, "t1", 400));
	ASSERT_BETWEEN(test_now_ms() - started_at, 400, 400 + LATE_MS);
	c_releases(subject);
	subject_close(subject);
}

static void c_gives_up_in_time_and_leaves_nothing(void **state)
{
	struct subject *subject = subject_open(*state);
	java_takes(subject, "t1", LONG_MS);
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(subject->lock, HF_ACQUIRE(.wait_ms = 400)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(test_now_ms() - started_at, 400, 400 + LATE_MS);
	java_releases(subject, "t1");
	subject_close(subject);
}

/* ---- nesting ---- */

static void c_does_not_nest(struct subject *subject)
{
	c_takes(subject, LONG_MS);
	ASSERT_RC(hf_lock_acquire(subject->lock, HF_ACQUIRE(.wait_ms = SOON_MS)), HF_EDEADLOCK);
	assert_false(java_tries(subject, "t1", 0));
	c_releases(subject);
}

static void java_stays_out_until_c_has_left_every_level(void **state)
{
	struct subject *subject = subject_open(*state);
	if (subject->kind->does_not_nest) {
		c_does_not_nest(subject);
	} else {
		c_takes(subject, LONG_MS);
		c_takes(subject, LONG_MS);
		assert_false(java_tries(subject, "t1", 0));
		c_releases(subject);
		assert_false(java_tries(subject, "t1", 0));
		c_releases(subject);
	}
	assert_true(java_tries(subject, "t1", 0));
	java_releases(subject, "t1");
	subject_close(subject);
}

static void java_does_not_nest(struct subject *subject)
{
	java_takes(subject, "t1", LONG_MS);
	peer_throws(interop_peer, "IllegalMonitorStateException", "t1 lock %s %s %d",
	            subject->kind->name, subject->java, LONG_MS);
	c_is_kept_out(subject);
	java_releases(subject, "t1");
}

static void c_stays_out_until_java_has_left_every_level(void **state)
{
	struct subject *subject = subject_open(*state);
	if (subject->kind->does_not_nest) {
		java_does_not_nest(subject);
	} else {
		java_takes(subject, "t1", LONG_MS);
		java_takes(subject, "t1", LONG_MS);
		c_is_kept_out(subject);
		java_releases(subject, "t1");
		c_is_kept_out(subject);
		java_releases(subject, "t1");
	}
	c_takes(subject, LONG_MS);
	c_releases(subject);
	subject_close(subject);
}

/* ---- leases that end ---- */

#define SHORT_MS 1000

static void java_gets_in_when_the_lease_of_c_has_ended(void **state)
{
	struct subject *subject = subject_open(*state);
	long long taken_at = test_now_ms();
	c_takes(subject, SHORT_MS);
	java_takes(subject, "t1", LONG_MS);
	ASSERT_BETWEEN(test_now_ms() - taken_at, SHORT_MS - 1, SHORT_MS + LATE_MS);
	ASSERT_RC(hf_lock_release(subject->lock), HF_ELOST);
	c_is_kept_out(subject);
	java_releases(subject, "t1");
	subject_close(subject);
}

static void c_gets_in_when_the_lease_of_java_has_ended(void **state)
{
	struct subject *subject = subject_open(*state);
	long long taken_at = test_now_ms();
	java_takes(subject, "t1", SHORT_MS);
	c_takes(subject, LONG_MS);
	ASSERT_BETWEEN(test_now_ms() - taken_at, SHORT_MS - 1, SHORT_MS + LATE_MS);
	java_does_not_hold(subject, "t1");
	assert_false(java_tries(subject, "t2", 0));
	c_releases(subject);
	subject_close(subject);
}

/* ---- owners ---- */

static void neither_side_releases_what_the_other_holds(void **state)
{
	struct subject *subject = subject_open(*state);
	c_takes(subject, LONG_MS);
	java_does_not_hold(subject, "t1");
	assert_false(java_tries(subject, "t1", 0));
	c_releases(subject);
	java_takes(subject, "t1", LONG_MS);
	ASSERT_RC(hf_lock_release(subject->lock), HF_ENOTHELD);
	c_is_kept_out(subject);
	java_releases(subject, "t1");
	subject_close(subject);
}

static void both_sides_see_who_holds(void **state)
{
	struct subject *subject = subject_open(*state);
	int locked = -1;
	if (subject->kind->shape != MULTI)
		assert_false(peer_is_true(interop_peer, "t1 locked %s %s", subject->kind->name,
		                          subject->java));
	ASSERT_OK(hf_lock_is_locked(subject->lock, &locked));
	assert_int_equal(locked, 0);
	c_takes(subject, LONG_MS);
	if (subject->kind->shape != MULTI)
		assert_true(peer_is_true(interop_peer, "t1 locked %s %s", subject->kind->name,
		                         subject->java));
	assert_false(
		peer_is_true(interop_peer, "t1 held %s %s", subject->kind->name, subject->java));
	c_releases(subject);
	java_takes(subject, "t1", LONG_MS);
	ASSERT_OK(hf_lock_is_locked(subject->lock, &locked));
	assert_int_equal(locked, 1);
	if (subject->kind->shape == ONE_KEY) {
		char holder[80];
		ASSERT_OK(hf_lock_holder(subject->lock, holder, sizeof holder));
		ASSERT_CONTAINS(holder, peer_uuid(interop_peer));
	}
	java_releases(subject, "t1");
	subject_close(subject);
}

static void both_sides_see_count_and_time_left(void **state)
{
	struct subject *subject = subject_open(*state);
	const char *kind = subject->kind->name;
	int64_t ttl_ms = 0;
	c_takes(subject, LONG_MS);
	ASSERT_BETWEEN(peer_number(interop_peer, "t1 ttl %s %s", kind, subject->java),
	               LONG_MS - LATE_MS, LONG_MS);
	assert_int_equal(peer_number(interop_peer, "t1 holds %s %s", kind, subject->java), 0);
	c_releases(subject);
	java_takes(subject, "t1", LONG_MS);
	assert_int_equal(peer_number(interop_peer, "t1 holds %s %s", kind, subject->java), 1);
	ASSERT_OK(hf_lock_ttl(subject->lock, &ttl_ms));
	ASSERT_BETWEEN(ttl_ms, LONG_MS - LATE_MS, LONG_MS);
	java_releases(subject, "t1");
	subject_close(subject);
}

/* ---- force ---- */

static void c_takes_the_lock_away_from_java(void **state)
{
	struct subject *subject = subject_open(*state);
	int was_held = -1;
	java_takes(subject, "t1", LONG_MS);
	java_starts_waiting(subject, "t2");
	long long forced_at = test_now_ms();
	ASSERT_OK(hf_lock_force_release(subject->lock, &was_held));
	assert_int_equal(was_held, 1);
	java_is_woken("t2", forced_at);
	java_does_not_hold(subject, "t1");
	java_releases(subject, "t2");
	subject_close(subject);
}

/* Redisson cannot force a multi lock, but each of its members. */
static void java_forces(struct subject *subject)
{
	if (subject->kind->shape == MULTI) {
		(void)peer_ok(interop_peer, "t1 force reentrant %s:a", subject->name);
		(void)peer_ok(interop_peer, "t1 force reentrant %s:b", subject->name);
	} else {
		(void)peer_ok(interop_peer, "t1 force %s %s", subject->kind->name, subject->java);
	}
}

static void java_takes_the_lock_away_from_c(void **state)
{
	struct subject *subject = subject_open(*state);
	c_takes(subject, 0);
	struct waiter *waiter = c_starts_waiting(subject);
	let_settle();
	long long forced_at = test_now_ms();
	java_forces(subject);
	c_is_woken(waiter, forced_at);
	WAIT_UNTIL(hf_lock_state(subject->lock, NULL) == HF_LOST, WATCHDOG_MS + LATE_MS);
	ASSERT_RC(hf_lock_release(subject->lock), HF_ELOST);
	waiter_finish(waiter);
	subject_close(subject);
}

/* ---- stories of some kinds only ---- */

static hf_lock *open_group(const char *name, const char *first, const char *second)
{
	const char *const values[] = {first, second};
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open_group(interop_client, name, values, 2, &lock));
	return lock;
}

static void groups_exclude_only_where_their_values_meet(void **state)
{
	char name[64];
	(void)state;
	make_name(name, sizeof name, "group");
	hf_lock *lock = open_group(name, "b", "a");
	hf_lock *other = open_group(name, "c", "été");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = LONG_MS)));
	assert_false(peer_is_true(interop_peer, "t1 try group %s/a,c 0 %d", name, LONG_MS));
	assert_true(peer_is_true(interop_peer, "t1 try group %s/c,d 0 %d", name, LONG_MS));
	ASSERT_RC(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(lock));
	(void)peer_ok(interop_peer, "t1 unlock group %s/c,d", name);
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.lease_ms = LONG_MS)));
	assert_false(peer_is_true(interop_peer, "t1 try group %s/été 0 %d", name, LONG_MS));
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(lock);
	hf_lock_close(other);
	assert_int_equal(leftovers(name, true), 0);
}

/* By how many milliseconds the hash of a group lasts longer than the last hold in it. */
static long long group_outlives_holds(const char *name)
{
	static const char *const script =
		"local time, last = redis.call('time'), 0 "
		"for _, field in ipairs(redis.call('hkeys', KEYS[1])) do "
		"  if string.find(field, ':expire_time$') then "
		"    last = math.max(last, tonumber(redis.call('hget', KEYS[1], field))) "
		"  end "
		"end "
		"local now = time[1] * 1000 + math.floor(time[2] / 1000) "
		"return redis.call('pttl', KEYS[1]) - (last - now)";
	return raw_integer(live_raw, "EVAL", script, "1", name, NULL);
}

/*
 * Java comes in the very millisecond in which a hold of C ends, and does not prolong a hash that
 * has no time left. If the hash ended together with the hold it would take Java's new hold with it.
 */
static void java_keeps_the_group_that_it_takes_over_from_c(void **state)
{
	struct subject *subject = subject_open(&group_kind);
	(void)state;
	for (int i = 0; i < 20; i++) {
		c_takes(subject, 50);
		ASSERT_BETWEEN(group_outlives_holds(subject->name), 2, LONG_MS);
		java_takes(subject, "t1", LONG_MS);
		ASSERT_RC(hf_lock_release(subject->lock), HF_ELOST);
		ASSERT_BETWEEN(key_pttl(live_raw, subject->name), LONG_MS - LATE_MS,
		               LONG_MS + LATE_MS);
		java_releases(subject, "t1");
	}
	subject_close(subject);
}

static void multi_lock_and_its_members_exclude_each_other(void **state)
{
	struct subject *subject = subject_open(&multi_kind);
	(void)state;
	(void)peer_ok(interop_peer, "t1 lock reentrant %s:b %d", subject->name, LONG_MS);
	c_is_kept_out(subject);
	/* The member that was free has been given back. */
	assert_true(
		peer_is_true(interop_peer, "t2 try reentrant %s:a 0 %d", subject->name, LONG_MS));
	(void)peer_ok(interop_peer, "t1 unlock reentrant %s:b", subject->name);
	(void)peer_ok(interop_peer, "t2 unlock reentrant %s:a", subject->name);
	c_takes(subject, LONG_MS);
	assert_false(
		peer_is_true(interop_peer, "t1 try reentrant %s:a 0 %d", subject->name, LONG_MS));
	assert_false(
		peer_is_true(interop_peer, "t1 try reentrant %s:b 0 %d", subject->name, LONG_MS));
	c_releases(subject);
	subject_close(subject);
}

static int64_t c_gets_a_token(struct subject *subject)
{
	int64_t token = 0;
	c_takes(subject, LONG_MS);
	ASSERT_OK(hf_lock_token(subject->lock, NULL, &token));
	c_releases(subject);
	return token;
}

static long long java_gets_a_token(struct subject *subject)
{
	long long token = peer_number(interop_peer, "t1 locktoken fenced %s", subject->java);
	java_releases(subject, "t1");
	return token;
}

static void tokens_grow_across_both_sides(void **state)
{
	struct subject *subject = subject_open(&fenced_kind);
	int64_t last = 0;
	int64_t seen = 0;
	(void)state;
	for (int i = 0; i < 40; i++) {
		int64_t token = i % 3 == 0 ? java_gets_a_token(subject) : c_gets_a_token(subject);
		if (token <= last)
			fail_msg("token %lld came after %lld", (long long)token, (long long)last);
		last = token;
		assert_int_equal(peer_number(interop_peer, "t2 token fenced %s", subject->java),
		                 last);
		ASSERT_OK(hf_lock_last_token(subject->lock, &seen));
		assert_int_equal(seen, last);
	}
	subject_close(subject);
}

#define STORIES(kind)                                                                              \
	STORY(java_is_woken_when_c_releases, kind), STORY(c_is_woken_when_java_releases, kind),    \
		STORY(java_gives_up_in_time_and_leaves_nothing, kind),                             \
		STORY(c_gives_up_in_time_and_leaves_nothing, kind),                                \
		STORY(java_stays_out_until_c_has_left_every_level, kind),                          \
		STORY(c_stays_out_until_java_has_left_every_level, kind),                          \
		STORY(java_gets_in_when_the_lease_of_c_has_ended, kind),                           \
		STORY(c_gets_in_when_the_lease_of_java_has_ended, kind),                           \
		STORY(neither_side_releases_what_the_other_holds, kind),                           \
		STORY(both_sides_see_who_holds, kind),                                             \
		STORY(c_takes_the_lock_away_from_java, kind),                                      \
		STORY(java_takes_the_lock_away_from_c, kind)

/* Redisson answers these for locks with a key of their own only. */
#define ONE_KEY_STORIES(kind) STORIES(kind), STORY(both_sides_see_count_and_time_left, kind)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ONE_KEY_STORIES(reentrant),
		ONE_KEY_STORIES(fair),
		ONE_KEY_STORIES(write),
		ONE_KEY_STORIES(fenced),
		ONE_KEY_STORIES(spin),
		ONE_KEY_STORIES(simple),
		ONE_KEY_STORIES(simple_fair),
		STORIES(group),
		STORIES(multi),
		TEST(groups_exclude_only_where_their_values_meet),
		TEST(java_keeps_the_group_that_it_takes_over_from_c),
		TEST(multi_lock_and_its_members_exclude_each_other),
		TEST(tokens_grow_across_both_sides),
	};
	return INTEROP_RUN(tests, argc, argv);
}
