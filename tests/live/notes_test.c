/* What a note says: since when a lock is held, and with which lease. */
#include "live/notes.h"

#include "support/kinds.h"

#define JAVA "8743c9c0-0795-4907-87fd-6c719a6b4586:41"

/* ---- since when ---- */

static void expect_recent(const struct facts *facts, long long before, long long after)
{
	assert_int_equal(facts->found, 1);
	ASSERT_BETWEEN(facts->since[0], before, after);
	ASSERT_BETWEEN(facts->server_time, facts->since[0], server_now());
}

static void since_is_the_server_time_of_the_grant_for_every_kind(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "nightly"));
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__GROUP; kind++) {
		hf_lock *lock = NULL;
		if (!(KINDS_ON_REDIS & HF__BIT(kind)))
			continue;
		ASSERT_OK(hf_lock_open(client, (hf_kind)kind, "orders", &lock));
		long long before = server_now();
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 20000)));
		struct facts facts = inspect(client, "orders");
		expect_recent(&facts, before, server_now());
		assert_int_equal(facts.lease[0], 20000);
		assert_int_equal(facts.pid[0], getpid());
		assert_string_equal(facts.text[0], "nightly");
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
	ASSERT_OK(sync_close(client));
}

/* A note has four lines, and other programs read them. */
static void control_characters_of_a_text_become_spaces(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "a\033[2J\nb\tc\n"));
	hf_lock *lock = NULL;
	(void)state;
	ASSERT_OK(hf_lock_open(client, HF_REENTRANT, "orders", &lock));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 20000)));
	struct facts facts = inspect(client, "orders");
	assert_int_equal(facts.pid[0], getpid());
	assert_string_equal(facts.text[0], "a [2J b c ");
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static void since_is_known_of_permits(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "nightly"));
	hf_permits *permits = NULL;
	hf_permit_id ids[2];
	(void)state;
	ASSERT_OK(hf_permits_open(client, "orders", &permits));
	ASSERT_OK(hf_permits_set(permits, 3));
	long long before = server_now();
	ASSERT_OK(hf_permits_acquire(permits, 2, HF_PERMITS(.lease_ms = 20000), ids));
	struct facts facts = inspect(client, "orders");
	expect_recent(&facts, before, server_now());
	ASSERT_BETWEEN(facts.since[1], before, server_now());
	assert_int_equal(facts.lease[1], 20000);
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)ids, 2));
	hf_permits_close(permits);
	ASSERT_OK(sync_close(client));
}

static void a_nested_level_and_a_renewal_keep_since(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "nightly", .watchdog_ms = 1500));
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	int64_t since = inspect(client, "orders").since[0];
	uint64_t renewals = stats_of(client).renewals;
	WAIT_UNTIL(stats_of(client).renewals > renewals, SOON_MS);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 60000)));
	assert_int_equal(inspect(client, "orders").since[0], since);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static void a_hand_over_begins_a_new_hold(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "nightly"));
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	int64_t since = inspect(client, "orders").since[0];
	WAIT_UNTIL(server_now() > since, SOON_MS);
	struct waiter *next = waiter_start(lock, NULL);
	WAIT_UNTIL(stats_of(client).waits == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(lock));
	waiter_expect(next, 0);
	assert_true(inspect(client, "orders").since[0] > since);
	waiter_finish(next);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

/* ---- notes of others ---- */

static struct facts inspect_note(hf_client *client, const char *note)
{
	raw_integer(live_raw, "HSET", "orders", JAVA, "1", NULL);
	raw_ok(live_raw, "SET", "holdfast_holder:{orders}:" JAVA, note, NULL);
	return inspect(client, "orders");
}

static void a_holder_without_a_note_has_no_since(void **state)
{
	hf_client *client = sync_open(NULL);
	(void)state;
	raw_integer(live_raw, "HSET", "orders", JAVA, "1", NULL);
	struct facts facts = inspect(client, "orders");
	assert_int_equal(facts.found, 1);
	assert_int_equal(facts.since[0], 0);
	assert_int_equal(facts.lease[0], 0);
	assert_true(facts.server_time > 0);
	ASSERT_OK(sync_close(client));
}

static void a_note_of_an_older_version_is_read(void **state)
{
	hf_client *client = sync_open(NULL);
	(void)state;
	struct facts facts = inspect_note(client, "reentrant\ndb-1\n4711\nnightly");
	assert_string_equal(facts.host[0], "db-1");
	assert_int_equal(facts.pid[0], 4711);
	assert_string_equal(facts.text[0], "nightly");
	assert_int_equal(facts.since[0], 0);
	assert_int_equal(facts.lease[0], 0);
	ASSERT_OK(sync_close(client));
}

/* Version 0.1.0 reads the process id with strtoll(), and the text after the third line. */
static void an_older_version_reads_a_new_note(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "nightly"));
	hf_lock *lock = open_lock(client, "orders");
	char identity[128], key[256];
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_identity(lock, NULL, identity, sizeof identity));
	snprintf(key, sizeof key, "holdfast_holder:{orders}:%s", identity);
	char *note = raw_text(live_raw, "GET", key, NULL);
	assert_non_null(note);
	const char *pid = strchr(strchr(note, '\n') + 1, '\n') + 1;
	assert_int_equal(strtoll(pid, NULL, 10), getpid());
	assert_string_equal(strchr(pid, '\n') + 1, "nightly");
	free(note);
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static void a_note_that_makes_no_sense_is_not_known(void **state)
{
	static const char *const numbers[] = {
		"-1",      "-1 -2 -3", "x",    "", " ", "12x 34 56", "99999999999999999999",
		"- 1 2 3", "\t7",      "0 0 0"};
	hf_client *client = sync_open(NULL);
	char note[256];
	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		snprintf(note, sizeof note, "reentrant\ndb-1\n%s\na\nb\nc\nd\ne\nf\ng", numbers[i]);
		struct facts facts = inspect_note(client, note);
		assert_int_equal(facts.found, 1);
		assert_int_equal(facts.pid[0], 0);
		assert_int_equal(facts.since[0], 0);
		assert_int_equal(facts.lease[0], 0);
	}
	snprintf(note, sizeof note, "reentrant\ndb-1\n7 %lld 30000\nx", server_now() + 3600000);
	struct facts facts = inspect_note(client, note);
	assert_int_equal(facts.pid[0], 7);
	assert_int_equal(facts.since[0], 0);
	assert_int_equal(facts.lease[0], 30000);
	ASSERT_OK(sync_close(client));
}

/* ---- what it costs ---- */

static void without_a_description_the_scripts_do_nothing_more(void **state)
{
	hf_client *client = sync_open(NULL);
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	long long times = command_calls(live_raw, "time"), sets = command_calls(live_raw, "set");
	long long scripts = command_calls(live_raw, "evalsha");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(command_calls(live_raw, "time"), times);
	assert_int_equal(command_calls(live_raw, "set"), sets);
	assert_int_equal(command_calls(live_raw, "evalsha"), scripts + 2);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(since_is_the_server_time_of_the_grant_for_every_kind),
		SYNC_STORY(control_characters_of_a_text_become_spaces),
		SYNC_STORY(since_is_known_of_permits),
		SYNC_STORY(a_nested_level_and_a_renewal_keep_since),
		SYNC_STORY(a_hand_over_begins_a_new_hold),
		SYNC_STORY(a_holder_without_a_note_has_no_since),
		SYNC_STORY(a_note_of_an_older_version_is_read),
		SYNC_STORY(an_older_version_reads_a_new_note),
		SYNC_STORY(a_note_that_makes_no_sense_is_not_known),
		SYNC_STORY(without_a_description_the_scripts_do_nothing_more),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
