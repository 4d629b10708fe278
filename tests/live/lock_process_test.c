/*
 * Locks and processes: holders that are killed, forks, force, and scripts that the server forgot.
 */
#include "live/child.h"

#include "support/process.h"

/* ---- a holder that dies ---- */

static void lock_of_a_killed_holder_is_free_within_its_lease(void **state)
{
	pid_t holder = start_holder(HF_REENTRANT, "orders", 1200);

	(void)state;
	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	/* It stays held for more than a lease while the holder lives. */
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 1500)), HF_ETIMEDOUT);
	kill_child(holder);
	long long killed_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, 1200 + 500);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* What a process takes before it dies, and another one after that. */
enum taken { TAKES_LOCK, TAKES_GROUP, TAKES_PERMIT };

static struct brief_hold {
	enum taken taken;
	hf_kind kind; /* of a lock */
} brief;

/* Takes it with a client of its own, which closes nothing; 0 or an error. */
static int take_it(hf_client *client, int64_t wait_ms)
{
	static const char *const values[] = {"a", "b"};
	hf_lock *lock = NULL;
	hf_permits *permits = NULL;
	hf_permit_id id;
	int rc;
	if (brief.taken == TAKES_PERMIT) {
		rc = hf_permits_open(client, "brief", &permits);
		rc = rc ? rc : hf_permits_try_set(permits, 1, NULL);
		rc = rc ? rc : hf_permits_acquire(permits, 1, HF_PERMITS(.wait_ms = wait_ms), &id);
		hf_permits_close(permits);
		return rc;
	}
	rc = brief.taken == TAKES_GROUP ? hf_lock_open_group(client, "brief", values, 2, &lock)
	                                : hf_lock_open(client, brief.kind, "brief", &lock);
	rc = rc ? rc : hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = wait_ms));
	hf_lock_close(lock);
	return rc;
}

static void take_it_and_die(hf_client *client)
{
	if (take_it(client, HF_NOWAIT))
		_exit(1);
	(void)kill(getpid(), SIGKILL);
}

/* The grant itself sets the lease: the holder did not live to renew it once. */
static void hold_of_a_holder_killed_at_once_expires(void **state)
{
	enum { LEASE_MS = 1500 };
	int status = 0;
	brief = *(const struct brief_hold *)*state;
	pid_t holder = start_child(take_it_and_die, LEASE_MS);
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	long long killed_at = test_now_ms();
	if (brief.taken != TAKES_PERMIT) /* the number of permits stays */
		assert_true(raw_integer(live_raw, "PTTL", "brief", NULL) > 0);
	hf_client *client = open_client(NULL);
	if (brief.kind == HF_READ)
		brief.kind = HF_WRITE; /* readers do not wait for readers */
	ASSERT_OK(take_it(client, 5000));
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, LEASE_MS + 2000);
	ASSERT_OK(hf_client_close(client));
}

static struct brief_hold brief_holds[] = {
	{TAKES_LOCK, HF_REENTRANT}, {TAKES_LOCK, HF_FAIR},        {TAKES_LOCK, HF_READ},
	{TAKES_LOCK, HF_WRITE},     {TAKES_LOCK, HF_FENCED},      {TAKES_LOCK, HF_SPIN},
	{TAKES_LOCK, HF_SIMPLE},    {TAKES_LOCK, HF_SIMPLE_FAIR}, {TAKES_GROUP, 0},
	{TAKES_PERMIT, 0},
};

#define BRIEFLY(i, what)                                                                           \
	{                                                                                          \
		"hold_of_a_holder_killed_at_once_expires [" what "]",                              \
			hold_of_a_holder_killed_at_once_expires, live_flush, NULL, &brief_holds[i] \
	}

/* ---- fork ---- */

static hf_client *forked_client;
static hf_lock *forked_lock;
static hf_owner *forked_owner;

static void never_done(void *arg, int result, int64_t number, const char *text)
{
	(void)arg;
	(void)result;
	(void)number;
	(void)text;
	_exit(50);
}

static void use_inherited_handles(int pipe_fd)
{
	hf_stats stats = {.size = sizeof stats};
	hf_lock *lock;
	char holder[64];
	int64_t number;
	int yes;

	EXPECT_FORKED(hf_client_ping(forked_client, NULL));
	EXPECT_FORKED(hf_client_stats(forked_client, &stats));
	EXPECT_FORKED(hf_client_fd(forked_client));
	EXPECT_FORKED(hf_client_dispatch(forked_client));
	EXPECT_FORKED(hf_lock_open(forked_client, HF_REENTRANT, "other", &lock));
	EXPECT_FORKED(hf_lock_acquire(forked_lock, NULL));
	EXPECT_FORKED(hf_lock_release(forked_lock));
	EXPECT_FORKED(hf_lock_extend(forked_lock, NULL, 1000));
	EXPECT_FORKED(hf_lock_force_release(forked_lock, &yes));
	EXPECT_FORKED(hf_lock_is_locked(forked_lock, &yes));
	EXPECT_FORKED(hf_lock_is_held(forked_lock, NULL, &yes));
	EXPECT_FORKED(hf_lock_hold_count(forked_lock, NULL, &number));
	EXPECT_FORKED(hf_lock_ttl(forked_lock, &number));
	EXPECT_FORKED(hf_lock_holder(forked_lock, holder, sizeof holder));
	EXPECT_FORKED(hf_lock_acquire_async(forked_lock, HF_ACQUIRE(.owner = forked_owner),
	                                    never_done, NULL));
	EXPECT_FORKED(hf_lock_release_async(forked_lock, HF_RELEASE(.owner = forked_owner),
	                                    never_done, NULL));
	EXPECT_FORKED(hf_lock_extend_async(forked_lock, forked_owner, 1000, never_done, NULL));
	EXPECT_FORKED(hf_lock_force_release_async(forked_lock, never_done, NULL));
	EXPECT_FORKED(hf_lock_is_locked_async(forked_lock, never_done, NULL));
	EXPECT_FORKED(hf_lock_is_held_async(forked_lock, forked_owner, never_done, NULL));
	EXPECT_FORKED(hf_lock_hold_count_async(forked_lock, forked_owner, never_done, NULL));
	EXPECT_FORKED(hf_lock_ttl_async(forked_lock, never_done, NULL));
	EXPECT_FORKED(hf_lock_holder_async(forked_lock, never_done, NULL));
	if (hf_lock_state(forked_lock, NULL) != HF_FREE || hf_lock_remaining(forked_lock, NULL))
		_exit(2);
	hf_lock_close(forked_lock);
	if (hf_client_close(forked_client))
		_exit(3);
	dprintf(pipe_fd, "all forked");
	_exit(0);
}

static void forked_child_gets_an_error_and_sends_nothing(void **state)
{
	char output[256];
	forked_client = open_client(NULL);
	forked_lock = open_lock(forked_client, "orders");
	forked_owner = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(forked_lock, NULL));
	long long before = info_number(live_raw, "stats", "total_commands_processed");
	int status = process_fork(use_inherited_handles, output, sizeof output);
	assert_string_equal(output, "all forked");
	assert_int_equal(status, 0);
	/* One more command: our own question. */
	assert_int_equal(info_number(live_raw, "stats", "total_commands_processed"), before + 1);
	assert_int_equal(hf_lock_state(forked_lock, NULL), HF_HELD);
	ASSERT_OK(hf_client_ping(forked_client, NULL));
	ASSERT_OK(hf_lock_acquire(forked_lock, NULL));
	assert_int_equal(held_count(live_raw, "orders"), 2);
	ASSERT_OK(hf_lock_release(forked_lock));
	ASSERT_OK(hf_lock_release(forked_lock));
	assert_false(key_exists(live_raw, "orders"));
	hf_owner_free(forked_owner);
	close_both(forked_lock, forked_client);
}

/* ---- force ---- */

static void release_by_force_lets_the_waiter_in_and_the_holder_learns_of_it(void **state)
{
	struct seen seen = {0};
	int was_held = -7;
	hf_client *one = open_client(HF_CLIENT(.watchdog_ms = 900, EVENTS_TO(&seen)));
	hf_client *two = open_client(NULL);
	hf_client *opener = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");
	hf_lock *forced = open_lock(opener, "orders");

	(void)state;
	ASSERT_OK(hf_lock_force_release(forced, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(stats_of(two).attempts == 2, SOON_MS);
	long long forced_at = test_now_ms();
	ASSERT_OK(hf_lock_force_release(forced, &was_held));
	assert_int_equal(was_held, 1);
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - forced_at, 0, 1500);
	WAIT_UNTIL(seen_count(&seen, HF_LOST) == 1, SOON_MS);
	ASSERT_BETWEEN(seen_at(&seen, HF_LOST) - forced_at, 0, 1200);
	ASSERT_RC(hf_lock_release(mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "now held by");
	assert_true(is_held_by(live_raw, "orders", two));
	waiter_finish(waiter);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	hf_lock_close(forced);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
	ASSERT_OK(hf_client_close(opener));
}

static void force_in_the_holders_own_client_is_reported_at_once(void **state)
{
	int was_held = -7;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_force_release(lock, &was_held));
	assert_int_equal(was_held, 1);
	assert_int_equal(hf_lock_state(lock, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "by force");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* ---- scripts ---- */

static void forgotten_scripts_are_sent_again(void **state)
{
	char holder[64];
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 900));
	hf_client *other = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_lock *theirs = open_lock(other, "orders");

	(void)state;
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(held_count(live_raw, "orders"), 2);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_holder(lock, holder, sizeof holder));
	uint64_t renewals = stats_of(client).renewals;
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	WAIT_UNTIL(stats_of(client).renewals >= renewals + 2, SOON_MS);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_release(lock));
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(stats_of(other).attempts == 2, SOON_MS);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_release(lock));
	waiter_expect(waiter, 0);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_force_release(lock, NULL));
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(stats_of(client).losses, 0);
	waiter_free(waiter);
	hf_lock_close(lock);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(lock_of_a_killed_holder_is_free_within_its_lease),
		BRIEFLY(0, "reentrant"),
		BRIEFLY(1, "fair"),
		BRIEFLY(2, "read"),
		BRIEFLY(3, "write"),
		BRIEFLY(4, "fenced"),
		BRIEFLY(5, "spin"),
		BRIEFLY(6, "simple"),
		BRIEFLY(7, "simple fair"),
		BRIEFLY(8, "group"),
		BRIEFLY(9, "permit"),
		LIVE_STORY(forked_child_gets_an_error_and_sends_nothing),
		LIVE_STORY(release_by_force_lets_the_waiter_in_and_the_holder_learns_of_it),
		LIVE_STORY(force_in_the_holders_own_client_is_reported_at_once),
		LIVE_STORY(forgotten_scripts_are_sent_again),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
