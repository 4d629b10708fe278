/* Readers and writers of one lock, some in C and some in Java. */
#include "interop/interop.h"

/* Both halves of one lock. */
struct halves {
	struct subject *read;
	struct subject *write;
};

static struct halves halves_open(void)
{
	struct halves halves = {.write = subject_open(&write_kind)};
	halves.read = subject_open_named(&read_kind, halves.write->name);
	return halves;
}

static void halves_close(struct halves *halves)
{
	subject_close(halves->read);
	subject_close(halves->write);
}

/* ---- readers together, writers alone ---- */

static void readers_share_and_writers_stay_out(void **state)
{
	struct halves lock = halves_open();
	hf_owner *writer = new_owner();
	(void)state;
	c_takes(lock.read, LONG_MS);
	java_takes(lock.read, "t1", LONG_MS);
	java_takes(lock.read, "t2", LONG_MS);
	assert_false(java_tries(lock.write, "t3", 0));
	ASSERT_RC(hf_lock_acquire(lock.write->lock,
	                          HF_ACQUIRE(.wait_ms = HF_NOWAIT, .owner = writer)),
	          HF_EBUSY);
	java_releases(lock.read, "t1");
	c_releases(lock.read);
	java_releases(lock.read, "t2");
	assert_true(java_tries(lock.write, "t3", 0));
	c_is_kept_out(lock.read);
	java_releases(lock.write, "t3");
	hf_owner_free(writer);
	halves_close(&lock);
}

static void writer_in_java_is_woken_by_the_last_reader_in_c(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	c_takes(lock.read, LONG_MS);
	java_takes(lock.read, "t1", LONG_MS);
	java_starts_waiting(lock.write, "t2");
	java_releases(lock.read, "t1");
	let_settle();
	assert_false(peer_has_answered(interop_peer, "t2"));
	long long released_at = test_now_ms();
	c_releases(lock.read);
	java_is_woken("t2", released_at);
	java_releases(lock.write, "t2");
	halves_close(&lock);
}

static void writer_in_c_is_woken_by_the_last_reader_in_java(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	java_takes(lock.read, "t1", LONG_MS);
	c_takes(lock.read, LONG_MS);
	struct waiter *writer = c_starts_waiting(lock.write);
	let_settle();
	c_releases(lock.read);
	let_settle();
	assert_false(atomic_load(&writer->over));
	long long released_at = test_now_ms();
	java_releases(lock.read, "t1");
	c_is_woken(writer, released_at);
	waiter_finish(writer);
	halves_close(&lock);
}

/* ---- a writer leaves, and all readers enter ---- */

#define READERS 3

static void readers_start_waiting(struct halves *lock, struct waiter **ret_readers)
{
	for (int i = 0; i < READERS; i++) {
		peer_send(interop_peer, "r%d lock read %s %d", i, lock->read->java, LONG_MS);
		ret_readers[i] = waiter_start(lock->read->lock, NULL);
	}
	WAIT_UNTIL(stats_of(interop_client).waiting == READERS, SOON_MS);
	WAIT_UNTIL(has_subscribers(lock->read->name), SOON_MS);
	let_settle();
}

/* None releases the lock before all hold it. */
static void readers_are_woken(struct halves *lock, struct waiter **readers, long long since)
{
	char thread[32];
	for (int i = 0; i < READERS; i++) {
		snprintf(thread, sizeof thread, "r%d", i);
		java_is_woken(thread, since);
		c_is_woken(readers[i], since);
	}
	for (int i = 0; i < READERS; i++) {
		snprintf(thread, sizeof thread, "r%d", i);
		java_releases(lock->read, thread);
		waiter_finish(readers[i]);
	}
}

static void all_readers_enter_when_the_writer_in_c_leaves(void **state)
{
	struct halves lock = halves_open();
	struct waiter *readers[READERS];
	(void)state;
	c_takes(lock.write, LONG_MS);
	readers_start_waiting(&lock, readers);
	long long released_at = test_now_ms();
	c_releases(lock.write);
	readers_are_woken(&lock, readers, released_at);
	halves_close(&lock);
}

static void all_readers_enter_when_the_writer_in_java_leaves(void **state)
{
	struct halves lock = halves_open();
	struct waiter *readers[READERS];
	(void)state;
	java_takes(lock.write, "t1", LONG_MS);
	readers_start_waiting(&lock, readers);
	long long released_at = test_now_ms();
	java_releases(lock.write, "t1");
	readers_are_woken(&lock, readers, released_at);
	halves_close(&lock);
}

/* ---- levels ---- */

static void writer_in_c_may_continue_as_a_reader(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	c_takes(lock.write, LONG_MS);
	c_takes(lock.read, LONG_MS);
	assert_false(java_tries(lock.read, "t1", 0));
	c_releases(lock.write);
	assert_false(java_tries(lock.write, "t1", 0));
	assert_true(java_tries(lock.read, "t1", 0));
	java_releases(lock.read, "t1");
	assert_false(java_tries(lock.write, "t1", 0));
	c_releases(lock.read);
	assert_true(java_tries(lock.write, "t1", 0));
	java_releases(lock.write, "t1");
	halves_close(&lock);
}

static void writer_in_java_may_continue_as_a_reader(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	java_takes(lock.write, "t1", LONG_MS);
	java_takes(lock.read, "t1", LONG_MS);
	c_is_kept_out(lock.read);
	java_releases(lock.write, "t1");
	c_is_kept_out(lock.write);
	c_takes(lock.read, LONG_MS);
	c_releases(lock.read);
	c_is_kept_out(lock.write);
	java_releases(lock.read, "t1");
	c_takes(lock.write, LONG_MS);
	c_releases(lock.write);
	halves_close(&lock);
}

static void nested_reads_of_both_sides_keep_writers_out(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	c_takes(lock.read, LONG_MS);
	java_takes(lock.read, "t1", LONG_MS);
	c_takes(lock.read, LONG_MS);
	java_takes(lock.read, "t1", LONG_MS);
	c_releases(lock.read);
	java_releases(lock.read, "t1");
	assert_false(java_tries(lock.write, "t2", 0));
	java_releases(lock.read, "t1");
	assert_false(java_tries(lock.write, "t2", 0));
	java_does_not_hold(lock.read, "t1");
	c_releases(lock.read);
	assert_true(java_tries(lock.write, "t2", 0));
	java_releases(lock.write, "t2");
	halves_close(&lock);
}

/* ---- leases that end ---- */

static void writer_enters_after_the_longer_lease_of_java(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	c_takes(lock.read, 1000);
	long long taken_at = test_now_ms();
	java_takes(lock.read, "t1", 2000);
	struct waiter *writer = waiter_start(lock.write->lock, NULL);
	waiter_expect(writer, 0);
	ASSERT_BETWEEN(writer->ended_at - taken_at, 1999, 2000 + LATE_MS);
	ASSERT_RC(hf_lock_release(lock.read->lock), HF_ELOST);
	java_does_not_hold(lock.read, "t1");
	waiter_finish(writer);
	halves_close(&lock);
}

static void writer_enters_after_the_longer_lease_of_c(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	java_takes(lock.read, "t1", 1000);
	long long taken_at = test_now_ms();
	c_takes(lock.read, 2000);
	java_takes(lock.write, "t2", LONG_MS);
	ASSERT_BETWEEN(test_now_ms() - taken_at, 1999, 2000 + LATE_MS);
	ASSERT_RC(hf_lock_release(lock.read->lock), HF_ELOST);
	java_does_not_hold(lock.read, "t1");
	java_releases(lock.write, "t2");
	halves_close(&lock);
}

/* A reader that leaves gives the lock the time that the others still have. */
static void leaving_reader_does_not_shorten_the_lease_of_the_others(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	java_takes(lock.read, "t1", LONG_MS);
	c_takes(lock.read, 1000);
	c_releases(lock.read);
	ASSERT_BETWEEN(key_pttl(live_raw, lock.read->name), LONG_MS - LATE_MS, LONG_MS);
	c_takes(lock.read, LONG_MS);
	java_releases(lock.read, "t1");
	ASSERT_BETWEEN(key_pttl(live_raw, lock.read->name), LONG_MS - LATE_MS, LONG_MS);
	c_releases(lock.read);
	halves_close(&lock);
}

static void leaving_reader_leaves_the_others_no_more_than_their_lease(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	c_takes(lock.read, LONG_MS);
	long long taken_at = test_now_ms();
	java_takes(lock.read, "t1", 1500);
	c_releases(lock.read);
	java_takes(lock.write, "t2", LONG_MS);
	ASSERT_BETWEEN(test_now_ms() - taken_at, 1499, 1500 + LATE_MS);
	java_does_not_hold(lock.read, "t1");
	java_releases(lock.write, "t2");
	halves_close(&lock);
}

/* ---- readers that are killed ---- */

static void living_reader_in_c_stays_and_the_dead_one_in_java_goes(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	struct peer *victim = start_interop_peer();
	(void)peer_ok(victim, "t1 lock read %s 0", lock.read->java);
	c_takes(lock.read, 0);
	peer_kill(victim);
	assert_false(java_tries(lock.write, "t1", WATCHDOG_MS + WATCHDOG_MS / 2));
	/* A reader that leaves removes those that it considers dead. */
	java_takes(lock.read, "t1", LONG_MS);
	java_releases(lock.read, "t1");
	assert_false(java_tries(lock.write, "t1", 0));
	long long released_at = test_now_ms();
	c_releases(lock.read);
	java_takes(lock.write, "t1", LONG_MS);
	ASSERT_BETWEEN(test_now_ms() - released_at, 0, WOKEN_MS / 2);
	java_releases(lock.write, "t1");
	halves_close(&lock);
}

/* A process in C that reads until it is killed. */
static int read_until_killed(const char *url, const char *name)
{
	hf_client *client = open_interop_client(url);
	if (hf_lock_acquire(open_kind(client, &read_kind, name), NULL))
		return 1;
	victim_is_ready();
	for (;;)
		pause();
}

/*
 * Redisson before 4.4 renews the holds of all readers, the dead ones' too; they go one lease later.
 */
static void living_reader_in_java_stays_and_the_dead_one_in_c_goes(void **state)
{
	struct halves lock = halves_open();
	int within_ms =
		peer_supports(interop_peer, "simple") ? WOKEN_MS / 2 : WATCHDOG_MS + LATE_MS;
	(void)state;
	const char *argv[] = {"/proc/self/exe", "--read", test_server_url(live_server),
	                      lock.read->name, NULL};
	pid_t victim = victim_start(argv);
	java_takes(lock.read, "t1", 0);
	victim_kill(victim);
	ASSERT_RC(hf_lock_acquire(lock.write->lock,
	                          HF_ACQUIRE(.wait_ms = WATCHDOG_MS + WATCHDOG_MS / 2)),
	          HF_ETIMEDOUT);
	c_takes(lock.read, LONG_MS);
	c_releases(lock.read);
	c_is_kept_out(lock.write);
	long long released_at = test_now_ms();
	java_releases(lock.read, "t1");
	ASSERT_OK(hf_lock_acquire(lock.write->lock,
	                          HF_ACQUIRE(.wait_ms = 2LL * WATCHDOG_MS + LATE_MS)));
	ASSERT_BETWEEN(test_now_ms() - released_at, 0, within_ms);
	c_releases(lock.write);
	halves_close(&lock);
}

/* ---- force ---- */

static void c_forces_readers_in_java_out(void **state)
{
	struct halves lock = halves_open();
	int was_held = -1;
	(void)state;
	java_takes(lock.read, "t1", WATCHDOG_MS);
	ASSERT_OK(hf_lock_force_release(lock.write->lock, &was_held));
	assert_int_equal(was_held, 0);
	c_is_kept_out(lock.write);
	ASSERT_OK(hf_lock_force_release(lock.read->lock, &was_held));
	assert_int_equal(was_held, 1);
	c_takes(lock.write, LONG_MS);
	java_does_not_hold(lock.read, "t1");
	c_releases(lock.write);
	halves_close(&lock);
}

static void java_forces_readers_in_c_out(void **state)
{
	struct halves lock = halves_open();
	(void)state;
	c_takes(lock.read, 0);
	assert_false(peer_is_true(interop_peer, "t1 force write %s", lock.write->java));
	assert_true(peer_is_true(interop_peer, "t1 force read %s", lock.read->java));
	java_takes(lock.write, "t1", LONG_MS);
	WAIT_UNTIL(hf_lock_state(lock.read->lock, NULL) == HF_LOST, WATCHDOG_MS + LATE_MS);
	ASSERT_RC(hf_lock_release(lock.read->lock), HF_ELOST);
	java_releases(lock.write, "t1");
	halves_close(&lock);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(readers_share_and_writers_stay_out),
		TEST(writer_in_java_is_woken_by_the_last_reader_in_c),
		TEST(writer_in_c_is_woken_by_the_last_reader_in_java),
		TEST(all_readers_enter_when_the_writer_in_c_leaves),
		TEST(all_readers_enter_when_the_writer_in_java_leaves),
		TEST(writer_in_c_may_continue_as_a_reader),
		TEST(writer_in_java_may_continue_as_a_reader),
		TEST(nested_reads_of_both_sides_keep_writers_out),
		TEST(writer_enters_after_the_longer_lease_of_java),
		TEST(writer_enters_after_the_longer_lease_of_c),
		TEST(leaving_reader_does_not_shorten_the_lease_of_the_others),
		TEST(leaving_reader_leaves_the_others_no_more_than_their_lease),
		TEST(living_reader_in_c_stays_and_the_dead_one_in_java_goes),
		TEST(living_reader_in_java_stays_and_the_dead_one_in_c_goes),
		TEST(c_forces_readers_in_java_out),
		TEST(java_forces_readers_in_c_out),
	};
	if (argc > 3 && strcmp(argv[1], "--read") == 0)
		return read_until_killed(argv[2], argv[3]);
	return INTEROP_RUN(tests, argc, argv);
}
