/*
 * Late answers about something that has meanwhile been given back, deleted, or taken by another
 * client.
 */
#include "live/zk_faults.h"

#define SESSION_MS 6000

/*
 * More than the lease, so that a grant is late; less than the silence after which the library
 * reconnects.
 */
#define LATE_MS 3750

static void pass_time(long long ms)
{
	long long ends_at = test_now_ms() + ms;
	WAIT_UNTIL(test_now_ms() >= ends_at, ms + SOON_MS);
}

/* ---- readers next to their own writers ---- */

#define NAMES 8

/* One name: a client writes and wants to keep reading, another waits to write. */
struct reading {
	hf_lock *write, *read, *theirs;
	hf_owner *owner;
	struct waiter *reader, *writer;
};

static void reading_begin(struct world *world, struct reading *reading, int number)
{
	char name[20], path[24];
	snprintf(name, sizeof name, "late%d", number);
	snprintf(path, sizeof path, "/%s", name);
	reading->write = open_named(world->one, HF_WRITE, name);
	reading->read = open_named(world->one, HF_READ, name);
	reading->theirs = open_named(world->two, HF_WRITE, name);
	reading->owner = new_owner();
	ASSERT_OK(hf_lock_acquire(reading->write, HF_ACQUIRE(.owner = reading->owner)));
	reading->writer = waiter_start(reading->theirs, NULL);
	WAIT_UNTIL(count_children(world->eye, path) == 2, SOON_MS);
}

static bool reads(const struct reading *reading)
{
	return waiter_is_over(reading->reader) && reading->reader->result == 0;
}

static bool writes(const struct reading *reading)
{
	return waiter_is_over(reading->writer) && reading->writer->result == 0;
}

/* The first one leaves, and then the other. */
static void reading_end(struct reading *reading)
{
	struct waiter *first = writes(reading) ? reading->writer : reading->reader;
	struct waiter *second = writes(reading) ? reading->reader : reading->writer;
	waiter_expect(first, 0);
	ASSERT_OK(waiter_release(first));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	ASSERT_RC(hf_lock_release_with(reading->write, HF_RELEASE(.owner = reading->owner)),
	          HF_ELOST);
	waiter_free(reading->writer);
	waiter_free(reading->reader);
	hf_lock_close(reading->write);
	hf_lock_close(reading->read);
	hf_lock_close(reading->theirs);
}

/* For a while, in which all have had their answers. */
static void expect_readers_or_writers(const struct reading *readings)
{
	long long ends_at = test_now_ms() + 1000;
	while (test_now_ms() < ends_at) {
		for (int i = 0; i < NAMES; i++)
			if (writes(&readings[i]) && reads(&readings[i]))
				fail_msg("name %d is read while a writer holds it", i);
		test_pause();
	}
}

static void reader_does_not_take_the_place_of_a_write_hold_that_is_given_back(void **state)
{
	struct world world;
	struct reading readings[NAMES];

	(void)state;
	world_begin(&world, NULL, SESSION_MS);
	for (int i = 0; i < NAMES; i++)
		reading_begin(&world, &readings[i], i);
	uint64_t renewals = stats_of(world.one).renewals;
	WAIT_UNTIL(stats_of(world.one).renewals >= renewals + NAMES, SESSION_MS);
	world_part(&world, true);
	for (int i = 0; i < NAMES; i++)
		readings[i].reader =
			waiter_start(readings[i].read, HF_ACQUIRE(.owner = readings[i].owner));
	for (int i = 0; i < NAMES; i++)
		WAIT_UNTIL(hf_lock_state(readings[i].write, readings[i].owner) == HF_LOST,
		           SESSION_MS);
	proxy_cut(world.proxy);
	proxy_delay(world.proxy, 50);
	world_part(&world, false);
	for (int i = 0; i < NAMES; i++)
		WAIT_UNTIL(reads(&readings[i]) || writes(&readings[i]), 2 * SESSION_MS);
	expect_readers_or_writers(readings);
	for (int i = 0; i < NAMES; i++)
		reading_end(&readings[i]);
	for (int i = 0; i < NAMES; i++) {
		char path[24];
		snprintf(path, sizeof path, "/late%d", i);
		WAIT_UNTIL(count_children(world.eye, path) <= 0, SOON_MS);
	}
	world_end(&world);
}

/* ---- grants that come too late ---- */

static void plain_lock_granted_too_late_is_granted_again(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, SESSION_MS);
	hf_lock *lock = open_named(world.one, HF_PLAIN, "plain");
	ASSERT_OK(hf_client_ping(world.one, NULL));
	proxy_hold_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(lock, NULL);
	pass_time(LATE_MS);
	assert_false(waiter_is_over(waiter));
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	waiter_expect(waiter, 0);
	assert_int_equal(hf_lock_state(lock, waiter->options.owner), HF_HELD);
	assert_int_equal(zk_raw_exists(world.eye, "/plain", NULL), 0);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(zk_raw_exists(world.eye, "/plain", NULL), ZK_RAW_NO_NODE);
	waiter_free(waiter);
	hf_lock_close(lock);
	world_end(&world);
}

#define LONG_SESSION_MS 9000
#define TRIP_MS         200 /* each way, so that there is time to step in before an answer */

/* A client that once it was answered waits for the rest for long. */
static void make_patient(struct world *world)
{
	close_both(world->mine, world->one);
	world->one =
		open_url(proxy_url(world->proxy), HF_CLIENT(.watchdog_ms = LONG_SESSION_MS,
	                                                    .command_timeout_ms = LONG_SESSION_MS));
	world->mine = open_lock(world->one, "orders");
}

/*
 * One name: its grant is late, its node was deleted meanwhile, and another client holds the lock.
 */
struct late {
	const char *folder;
	hf_lock *mine, *theirs;
	struct waiter *waiter;
};

static void late_begin(struct world *world, struct late *late, const char *folder)
{
	late->folder = folder;
	late->mine = open_lock(world->one, folder + 1);
	late->theirs = open_lock(world->two, folder + 1);
	late->waiter = waiter_start(late->mine, NULL);
}

static void late_take_away(struct world *world, struct late *late)
{
	char path[700];
	read_only_child(world->eye, late->folder, path, sizeof path, NULL);
	assert_int_equal(zk_raw_delete(world->eye, path, -1), 0);
	ASSERT_OK(hf_lock_acquire(late->theirs, HF_ACQUIRE(.wait_ms = SOON_MS)));
}

static void late_end(struct world *world, struct late *late)
{
	assert_false(waiter_is_over(late->waiter));
	ASSERT_OK(hf_lock_release(late->theirs));
	WAIT_UNTIL(waiter_is_over(late->waiter), SOON_MS);
	waiter_expect(late->waiter, 0);
	assert_int_equal(count_children(world->eye, late->folder), 1);
	assert_int_equal(hf_lock_state(late->mine, late->waiter->options.owner), HF_HELD);
	ASSERT_OK(waiter_release(late->waiter));
	assert_int_equal(count_children(world->eye, late->folder), 0);
	waiter_free(late->waiter);
	hf_lock_close(late->mine);
	hf_lock_close(late->theirs);
}

static void node_deleted_before_its_late_grant_is_made_again(void **state)
{
	struct world world;
	struct late soon, later;

	(void)state;
	world_begin(&world, NULL, LONG_SESSION_MS);
	make_patient(&world);
	ASSERT_OK(hf_client_ping(world.one, NULL));
	proxy_delay(world.proxy, TRIP_MS);
	late_begin(&world, &soon, "/soon");
	late_begin(&world, &later, "/later");
	/* The folders were answered, the nodes not yet. */
	WAIT_UNTIL(count_children(world.eye, "/soon") == 1 &&
	                   count_children(world.eye, "/later") == 1,
	           SOON_MS);
	proxy_hold_replies(world.proxy, true);
	long long held_at = test_now_ms();
	proxy_delay(world.proxy, 0);
	late_take_away(&world, &soon);
	late_take_away(&world, &later);
	WAIT_UNTIL(test_now_ms() - held_at >= LONG_SESSION_MS * 5 / 9, LONG_SESSION_MS);
	proxy_hold_replies(world.proxy, false);
	/* One lets go while the other client finds out, one when that waits already. */
	late_end(&world, &soon);
	WAIT_UNTIL(count_children(world.eye, "/later") == 2, SOON_MS);
	pass_time(1000);
	late_end(&world, &later);
	world_end(&world);
}

/* ---- a plain lock that existed when an answer was lost ---- */

static void waiter_forgets_a_plain_lock_that_is_gone(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, SESSION_MS);
	assert_int_equal(zk_raw_create(world.eye, "/orders", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	uint64_t unknowns = stats_of(world.one).unknowns;
	ASSERT_OK(hf_client_ping(world.one, NULL));
	proxy_hold_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(stats_of(world.one).unknowns > unknowns, SESSION_MS);
	assert_int_equal(zk_raw_delete(world.eye, "/orders", -1), 0);
	ASSERT_OK(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = SOON_MS)));
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, 2 * SESSION_MS);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release(world.theirs));
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	waiter_expect(waiter, 0);
	assert_int_equal(count_children(world.eye, "/orders"), 1);
	waiter_finish(waiter);
	world_end(&world);
}

/* ---- force ---- */

static int was_held;

static int force_release(void *lock)
{
	return hf_lock_force_release(lock, &was_held);
}

/* Force hits the holders that it has found; nothing of later ones may be left. */
static void readers_that_arrive_during_a_force_leave_nothing(void **state)
{
	struct world world;
	struct waiter *readers[2];

	(void)state;
	world_begin(&world, NULL, SESSION_MS);
	hf_lock *theirs = open_named(world.two, HF_READ, "rows");
	hf_lock *mine = open_named(world.one, HF_READ, "rows");
	ASSERT_OK(hf_lock_acquire(theirs, NULL));
	ASSERT_OK(hf_client_ping(world.one, NULL));
	proxy_hold_replies(world.proxy, true);
	long long sent = proxy_request_bytes(world.proxy);
	struct waiter *force = WAITER(.run = force_release, .arg = mine);
	WAIT_UNTIL(proxy_request_bytes(world.proxy) > sent, SOON_MS);
	for (int i = 0; i < 2; i++)
		readers[i] = waiter_start(mine, NULL);
	WAIT_UNTIL(count_children(world.eye, "/rows") == 3, SOON_MS);
	proxy_hold_replies(world.proxy, false);
	waiter_join(force, 0);
	assert_int_equal(was_held, 1);
	for (int i = 0; i < 2; i++) {
		hf_owner *owner = readers[i]->options.owner;
		waiter_expect(readers[i], 0);
		bool held = hf_lock_state(mine, owner) == HF_HELD;
		/* One takes it again before it gives it back. */
		if (i == 1) {
			ASSERT_OK(hf_lock_acquire(mine,
			                          HF_ACQUIRE(.owner = owner, .wait_ms = SOON_MS)));
			ASSERT_OK(waiter_release(readers[i]));
		}
		if (i == 0 || held)
			ASSERT_RC(waiter_release(readers[i]), held ? 0 : HF_ELOST);
	}
	WAIT_UNTIL(count_children(world.eye, "/rows") == 0, SOON_MS);
	ASSERT_RC(hf_lock_release(theirs), HF_ELOST);
	for (int i = 0; i < 2; i++)
		waiter_free(readers[i]);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	world_end(&world);
}

/* ---- renewals one after another ---- */

/*
 * Long enough that the first beat is too old for the second renewal, and shorter than a renewal may
 * take.
 */
#define SLOW_MS 265

static void note_extended(void *arg, int result, int64_t number, const char *text)
{
	(void)number;
	(void)text;
	assert_int_equal(result, 0);
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void second_renewal_is_answered_by_a_beat_of_its_own(void **state)
{
	struct world world;
	atomic_int done = 0;
	hf_owner *owner = new_owner();

	(void)state;
	world_begin(&world, NULL, LONG_SESSION_MS);
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.owner = owner)));
	pass_time(2 * SLOW_MS); /* until what proved the acquire is too old for a renewal */
	proxy_delay(world.proxy, SLOW_MS);
	for (int i = 0; i < 2; i++)
		ASSERT_OK(hf_lock_extend_async(world.mine, owner, 60000, note_extended, &done));
	WAIT_UNTIL(atomic_load(&done) == 2, SOON_MS);
	/* What it proves is as old as its beat. */
	assert_true(hf_lock_remaining(world.mine, owner) <= LONG_SESSION_MS * 3 / 5 - 2 * SLOW_MS);
	proxy_delay(world.proxy, 0);
	ASSERT_OK(hf_lock_release_with(world.mine, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_does_not_take_the_place_of_a_write_hold_that_is_given_back),
		cmocka_unit_test(plain_lock_granted_too_late_is_granted_again),
		cmocka_unit_test(node_deleted_before_its_late_grant_is_made_again),
		cmocka_unit_test(waiter_forgets_a_plain_lock_that_is_gone),
		cmocka_unit_test(readers_that_arrive_during_a_force_leave_nothing),
		cmocka_unit_test(second_renewal_is_answered_by_a_beat_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
