/* The order of fair locks, with waiters in C and in Java one after another. */
#include "interop/interop.h"

#define WAITERS 8

/* One place in the line: a waiter in C, or a thread in Java. */
struct place {
	struct waiter *waiter; /* NULL: Java */
	char thread[32];
};

static long long queue_length(const struct subject *subject)
{
	char key[128];
	snprintf(key, sizeof key, "redisson_lock_queue:{%s}", subject->name);
	return raw_integer(live_raw, "LLEN", key, NULL);
}

/* Joins the line, and returns when it is the last of this many. */
static struct place place_take(struct subject *subject, bool in_java, long long position)
{
	static int threads;
	struct place place = {.waiter = NULL};
	if (in_java) {
		snprintf(place.thread, sizeof place.thread, "p%d", ++threads);
		peer_send(interop_peer, "%s lock %s %s %d", place.thread, subject->kind->name,
		          subject->java, LONG_MS);
	} else {
		place.waiter = waiter_start(subject->lock, NULL);
	}
	WAIT_UNTIL(queue_length(subject) == position, SOON_MS);
	return place;
}

static bool place_has_lock(struct place *place)
{
	return place->waiter ? atomic_load(&place->waiter->over)
	                     : peer_has_answered(interop_peer, place->thread);
}

static void place_release(struct subject *subject, struct place *place)
{
	if (place->waiter) {
		waiter_expect(place->waiter, 0);
		waiter_finish(place->waiter);
		return;
	}
	struct answer answer = peer_wait(interop_peer, place->thread, SOON_MS);
	if (!answer.ok)
		fail_msg("Java threw while it waited in the queue: %s", answer.text);
	java_releases(subject, place->thread);
}

/* Each in turn gets the lock, and while it holds the lock, later ones do not. */
static void check_order(struct subject *subject, struct place *places, int count, int within_ms)
{
	for (int i = 0; i < count; i++) {
		WAIT_UNTIL(place_has_lock(&places[i]), within_ms);
		for (int behind = i + 1; behind < count; behind++)
			if (place_has_lock(&places[behind]))
				fail_msg("number %d of %d in the queue overtook number %d", behind,
				         count, i);
		place_release(subject, &places[i]);
	}
}

/* ---- order ---- */

static void take_places(struct subject *subject, struct place *places, bool java_first)
{
	for (int i = 0; i < WAITERS; i++)
		places[i] = place_take(subject, (i % 2 == 0) == java_first, i + 1);
	let_settle();
}

static void c_and_java_are_served_in_turn_after_c(void **state)
{
	struct subject *subject = subject_open(*state);
	struct place places[WAITERS];
	c_takes(subject, LONG_MS);
	take_places(subject, places, true);
	c_releases(subject);
	check_order(subject, places, WAITERS, WOKEN_MS);
	subject_close(subject);
}

static void c_and_java_are_served_in_turn_after_java(void **state)
{
	struct subject *subject = subject_open(*state);
	struct place places[WAITERS];
	java_takes(subject, "t1", LONG_MS);
	take_places(subject, places, false);
	java_releases(subject, "t1");
	check_order(subject, places, WAITERS, WOKEN_MS);
	subject_close(subject);
}

static void nobody_jumps_the_line(void **state)
{
	struct subject *subject = subject_open(*state);
	struct place places[2];
	c_takes(subject, LONG_MS);
	places[0] = place_take(subject, true, 1);
	places[1] = place_take(subject, false, 2);
	assert_false(java_tries(subject, "t1", 0));
	hf_owner *owner = new_owner();
	ASSERT_RC(hf_lock_acquire(subject->lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .owner = owner)),
	          HF_EBUSY);
	hf_owner_free(owner);
	assert_int_equal(queue_length(subject), 2);
	let_settle();
	c_releases(subject);
	check_order(subject, places, 2, WOKEN_MS);
	subject_close(subject);
}

/* ---- waiters that leave the line ---- */

/* How long a waiter that gives up stays in line; the others must have joined by then. */
#define QUIT_MS 1500

static void waiter_that_gives_up_leaves_the_others_in_order(void **state)
{
	struct subject *subject = subject_open(*state);
	struct place places[3];
	c_takes(subject, LONG_MS);
	places[0] = place_take(subject, true, 1);
	struct waiter *c_quits = waiter_start(subject->lock, HF_ACQUIRE(.wait_ms = QUIT_MS));
	WAIT_UNTIL(queue_length(subject) == 2, SOON_MS);
	places[1] = place_take(subject, false, 3);
	peer_send(interop_peer, "q1 try %s %s %d %d", subject->kind->name, subject->java, QUIT_MS,
	          LONG_MS);
	WAIT_UNTIL(queue_length(subject) == 4, SOON_MS);
	places[2] = place_take(subject, true, 5);
	waiter_expect(c_quits, HF_ETIMEDOUT);
	waiter_free(c_quits);
	assert_string_equal(peer_wait(interop_peer, "q1", SOON_MS).text, "false");
	WAIT_UNTIL(queue_length(subject) == 3, SOON_MS);
	let_settle();
	c_releases(subject);
	check_order(subject, places, 3, WOKEN_MS);
	subject_close(subject);
}

/* How long a dead waiter keeps its place, and the lease of the holder meanwhile. */
#define DEAD_MS  1500
#define LEASE_MS 3000

/* A process in C that stands in line until it is killed. */
static int wait_until_killed(const char *url, const char *name)
{
	hf_client *client = open_url(url, HF_CLIENT(.fair_wait_ms = DEAD_MS));
	hf_lock *lock = open_kind(client, &fair_kind, name);
	victim_is_ready();
	return hf_lock_acquire(lock, NULL);
}

static void the_dead_do_not_hold_up_the_line(void **state)
{
	struct subject *subject = subject_open(&fair_kind);
	struct place places[2];
	(void)state;
	struct peer *java_victim = peer_start(test_server_url(live_server),
	                                      &(struct peer_options){.fair_wait_ms = DEAD_MS});
	java_takes(subject, "t1", LEASE_MS);
	peer_send(java_victim, "t1 lock fair %s %d", subject->java, LONG_MS);
	WAIT_UNTIL(queue_length(subject) == 1, SOON_MS);
	const char *argv[] = {"/proc/self/exe", "--wait", test_server_url(live_server),
	                      subject->name, NULL};
	pid_t c_victim = victim_start(argv);
	WAIT_UNTIL(queue_length(subject) == 2, SOON_MS);
	places[0] = place_take(subject, true, 3);
	places[1] = place_take(subject, false, 4);
	peer_kill(java_victim);
	victim_kill(c_victim);
	assert_int_equal(queue_length(subject), 4);
	check_order(subject, places, 2, LEASE_MS + 2 * DEAD_MS + LATE_MS);
	subject_close(subject);
}

/* ---- signs of life ---- */

#define ROUND  6 /* three in C, three in Java */
#define GRANTS 50

static bool is_java(int i)
{
	return i % 2 == 1;
}

/* Now and then the lock is held for longer than a silent waiter of ours is considered alive. */
static void hold_for_a_while(int grant)
{
	long long until = test_now_ms() + (grant % 17 == 8 ? 2500 : 20);
	while (test_now_ms() < until)
		test_pause();
}

static void the_living_keep_their_places_for_many_grants(void **state)
{
	struct subject *subject = subject_open(&fair_kind);
	struct subject ours = *subject; /* with waiters that count as dead after a second */
	struct place places[ROUND];
	(void)state;
	hf_client *client = open_url(test_server_url(live_server), HF_CLIENT(.watchdog_ms = 1000));
	ours.lock = open_kind(client, &fair_kind, subject->name);
	java_takes(subject, "t1", LONG_MS);
	for (int i = 0; i < ROUND; i++)
		places[i] = place_take(&ours, is_java(i), i + 1);
	java_releases(subject, "t1");
	for (int grant = 0; grant < GRANTS; grant++) {
		struct place *place = &places[grant % ROUND], *next = &places[(grant + 1) % ROUND];
		bool is_last_round = grant >= GRANTS - ROUND;
		WAIT_UNTIL(place_has_lock(place), SOON_MS);
		hold_for_a_while(grant);
		for (int i = 1; i < ROUND && (!is_last_round || grant + i < GRANTS); i++)
			if (place_has_lock(&places[(grant + i) % ROUND]))
				fail_msg("grant %d: somebody overtook", grant);
		assert_int_equal(queue_length(subject),
		                 is_last_round ? GRANTS - grant - 1 : ROUND - 1);
		place_release(&ours, place);
		if (is_last_round)
			continue;
		WAIT_UNTIL(place_has_lock(next), SOON_MS);
		*place = place_take(&ours, is_java(grant % ROUND), ROUND - 1);
	}
	hf_lock_close(ours.lock);
	ASSERT_OK(hf_client_close(client));
	subject_close(subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		STORY(c_and_java_are_served_in_turn_after_c, fair),
		STORY(c_and_java_are_served_in_turn_after_java, fair),
		STORY(nobody_jumps_the_line, fair),
		STORY(waiter_that_gives_up_leaves_the_others_in_order, fair),
		STORY(c_and_java_are_served_in_turn_after_c, simple_fair),
		STORY(c_and_java_are_served_in_turn_after_java, simple_fair),
		STORY(nobody_jumps_the_line, simple_fair),
		STORY(waiter_that_gives_up_leaves_the_others_in_order, simple_fair),
		TEST(the_dead_do_not_hold_up_the_line),
		TEST(the_living_keep_their_places_for_many_grants),
	};
	if (argc > 3 && strcmp(argv[1], "--wait") == 0)
		return wait_until_killed(argv[2], argv[3]);
	return INTEROP_RUN(tests, argc, argv);
}
