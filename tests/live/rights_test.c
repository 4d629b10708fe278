/*
 * Users that lack one right: whatever a script cannot do, no answer is wrong, and nothing is left.
 *
 * Every verb of every kind is played by a user that may run all commands except one.
 */
#include "live/any_kind.h"
#include "live/sync.h"

#include "support/kinds.h"

#define SECRET "s3cr3t-word"

/* What the scripts call. */
static const char *const commands[] = {
	"exists", "hset",       "hget",    "hdel",    "hlen",   "hkeys",   "hgetall",
	"time",   "hrandfield", "pexpire", "pttl",    "del",    "publish", "hexists",
	"incr",   "set",        "get",     "persist", "lindex", "lpop",    "rpush",
	"lrange", "lrem",       "zadd",    "zscore",  "zrem",   "zrange",  "zrangebyscore",
	"incrby", "decrby",     "decr",    "zcount",
};

static hf_client *admin; /* may do everything */
static struct seen seen;

static int start(void **state)
{
	(void)live_start(state);
	admin = open_client(NULL);
	return 0;
}

static int stop(void **state)
{
	ASSERT_OK(hf_client_close(admin));
	return live_stop(state);
}

/* A client of a user that may do everything except this. */
static hf_client *open_without(const char *command)
{
	char rule[32];
	snprintf(rule, sizeof rule, "-%s", command);
	raw_ok(live_raw, "FLUSHALL", NULL);
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "reset", "on", ">" SECRET, "~*", "&*",
	       "+@all", rule, NULL);
	return sync_open(HF_CLIENT(.user = "limited", .password = SECRET, .describe = "limited",
	                           .watchdog_ms = 3000, LINES_TO(&seen)));
}

/* ---- locks ---- */

static bool is_locked(hf_lock *lock)
{
	int locked = -1;
	ASSERT_OK(hf_lock_is_locked(lock, &locked));
	return locked;
}

static bool has_end(void)
{
	return key_pttl(live_raw, "orders") > 0;
}

/* It is free by now, or soon will be on its own. */
static void expect_free(hf_lock *lock, const char *command, int kind, const char *when)
{
	long long ends_at = test_now_ms() + 1000;
	while (is_locked(lock) && test_now_ms() < ends_at)
		test_pause();
	if (is_locked(lock) && !has_end())
		fail_msg("without %s, kind %d, %s: the lock is held by nobody, for ever", command,
		         kind, when);
}

static void play_lock(hf_client *client, const char *command, int kind, bool token)
{
	hf_lock *lock = open_kind(client, kind), *observer = open_kind(admin, kind);
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 1000, .token = token));
	if (rc && rc != HF_EDENIED)
		fail_msg("without %s, kind %d: acquire: %d (%s)", command, kind, rc,
		         hf_error_detail());
	if (rc == 0 && !(is_locked(observer) && has_end()))
		fail_msg("without %s, kind %d: granted, but not held", command, kind);
	if (rc == 0 && kind_nests(kind) && hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 1000)) == 0)
		(void)hf_lock_release(lock);
	int released = rc ? rc : hf_lock_release(lock);
	if (released && released != HF_EDENIED)
		fail_msg("without %s, kind %d: release: %d (%s)", command, kind, released,
		         hf_error_detail());
	if (rc == 0 && released == 0 && is_locked(observer))
		fail_msg("without %s, kind %d: released, but held", command, kind);
	expect_free(observer, command, kind, released ? "after a refusal" : "in the end");
	hf_lock_close(lock);
	hf_lock_close(observer);
	raw_ok(live_raw, "FLUSHALL", NULL);
}

static void locks_are_honest_without_any_one_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		hf_client *client = open_without(commands[i]);
		for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++)
			if (kind != HF_PLAIN)
				play_lock(client, commands[i], kind,
				          kind == HF_REENTRANT || kind == HF_FAIR ||
				                  kind == HF_WRITE);
		ASSERT_OK(sync_close(client));
	}
	assert_false(seen_in_log(&seen, SECRET));
}

/* ---- objects without an owner ---- */

static void check_total(const char *command, const char *what, long long wanted)
{
	long long ends_at = test_now_ms() + 1000;
	while (number_at(live_raw, "orders") != wanted && test_now_ms() < ends_at)
		test_pause();
	if (number_at(live_raw, "orders") != wanted)
		fail_msg("without %s: %s leaves %lld, not %lld", command, what,
		         number_at(live_raw, "orders"), wanted);
}

static void play_semaphore(hf_client *client, const char *command)
{
	hf_semaphore *semaphore = NULL;
	ASSERT_OK(hf_semaphore_open(client, "orders", &semaphore));
	raw_ok(live_raw, "SET", "orders", "5", NULL);
	int rc = hf_semaphore_acquire(semaphore, 2, HF_WAIT(.wait_ms = 1000));
	assert_true(rc == 0 || rc == HF_EDENIED);
	check_total(command, "an acquire", rc ? 5 : 3);
	raw_ok(live_raw, "SET", "orders", "3", NULL);
	rc = hf_semaphore_release(semaphore, 2);
	assert_true(rc == 0 || rc == HF_EDENIED);
	check_total(command, "a release", rc ? 3 : 5);
	hf_semaphore_close(semaphore);
	raw_ok(live_raw, "FLUSHALL", NULL);
}

static void play_latch(hf_client *client, const char *command)
{
	hf_latch *latch = NULL;
	ASSERT_OK(hf_latch_open(client, "orders", &latch));
	raw_ok(live_raw, "SET", "orders", "5", NULL);
	int rc = hf_latch_count_down(latch);
	assert_true(rc == 0 || rc == HF_EDENIED);
	check_total(command, "a count-down", rc ? 5 : 4);
	hf_latch_close(latch);
	raw_ok(live_raw, "FLUSHALL", NULL);
}

/* Those taken and those left are always five. */
static void play_permits(hf_client *client, const char *command)
{
	hf_permits *permits = NULL, *observer = NULL;
	hf_permit_id ids[2];
	int64_t total = 0;
	ASSERT_OK(hf_permits_open(client, "orders", &permits));
	ASSERT_OK(hf_permits_open(admin, "orders", &observer));
	raw_ok(live_raw, "SET", "orders", "5", NULL);
	int rc = hf_permits_acquire(permits, 2, HF_PERMITS(.wait_ms = 1000), ids);
	assert_true(rc == 0 || rc == HF_EDENIED);
	if (rc == 0) {
		int released = hf_permits_release(permits, (const hf_permit_id *)ids, 2);
		assert_true(released == 0 || released == HF_EDENIED);
	}
	WAIT_UNTIL(hf_permits_total(observer, &total) == 0 && total == 5, SOON_MS);
	hf_permits_close(permits);
	hf_permits_close(observer);
	raw_ok(live_raw, "FLUSHALL", NULL);
	(void)command;
}

static void counts_are_exact_without_any_one_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		hf_client *client = open_without(commands[i]);
		play_semaphore(client, commands[i]);
		play_latch(client, commands[i]);
		play_permits(client, commands[i]);
		ASSERT_OK(sync_close(client));
	}
}

/* ---- rights that are taken away while something is held ---- */

static void name_that_may_not_be_touched_any_more_does_not_cost_the_others(void **state)
{
	hf_client *client = open_without("flushall");
	hf_lock *orders = NULL, *stock = NULL;

	(void)state;
	ASSERT_OK(hf_lock_open(client, HF_REENTRANT, "orders", &orders));
	ASSERT_OK(hf_lock_open(client, HF_REENTRANT, "stock", &stock));
	ASSERT_OK(hf_lock_acquire(orders, NULL));
	ASSERT_OK(hf_lock_acquire(stock, NULL));
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "resetkeys", "~*orders*", NULL);
	WAIT_UNTIL(hf_lock_state(stock, NULL) == HF_LOST, 6000);
	uint64_t renewals = stats_of(client).renewals;
	WAIT_UNTIL(stats_of(client).renewals >= renewals + 2, 6000);
	assert_int_not_equal(hf_lock_state(orders, NULL), HF_LOST);
	ASSERT_OK(hf_lock_release(orders));
	hf_lock_close(orders);
	hf_lock_close(stock);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(locks_are_honest_without_any_one_right),
		SYNC_STORY(counts_are_exact_without_any_one_right),
		SYNC_STORY(name_that_may_not_be_touched_any_more_does_not_cost_the_others),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
