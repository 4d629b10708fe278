/* Servers whose disk is full, or has lost the end of the append-only file. */
#include "live/on_host.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

/* A server with an append-only file, and two clients. */
static struct rivals *begin(const char *sync, int64_t watchdog_ms)
{
	const char *const extra[] = {"--appendfsync", sync, NULL};
	begin_server(&(struct test_server_options){.appendonly = true, .extra = extra});
	return open_rivals(HF_REENTRANT, HF_CLIENT(.watchdog_ms = watchdog_ms));
}

/* Whether a write is answered by this; NULL: by success. */
static bool is_answered_by(const char *code)
{
	struct raw_reply *reply = raw_command(live_raw, "SET", "filler", "1", NULL);
	bool is = code ? reply->type == RAW_ERROR && !strncmp(reply->text, code, strlen(code))
	               : reply->type == RAW_STATUS;
	raw_reply_free(reply);
	return is;
}

/* ---- a full disk ---- */

static void full_disk_refuses_locks_until_there_is_space(void **state)
{
	(void)state;
	struct rivals *rivals = begin("everysec", 20000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	test_host_fill_disk(host, true);
	/* The write that finds out is accepted, and those after it are not. */
	WAIT_UNTIL(is_answered_by("MISCONF"), SOON_MS);
	hf_lock *other = open_lock(rivals->two, "other");
	ASSERT_RC(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 2000)), HF_EREADONLY);
	ASSERT_CONTAINS(hf_error_detail(), "MISCONF");
	assert_false(key_exists(live_raw, "other"));
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	test_host_fill_disk(host, false);
	/* The server tries once a second. */
	WAIT_UNTIL(is_answered_by(NULL), SOON_MS);
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 2000)));
	ASSERT_OK(hf_lock_release(other));
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(seen_count(&rivals->seen, HF_LOST), 0);
	hf_lock_close(other);
	end(rivals);
}

/*
 * Renewals are refused as well, so the hold ends at valid-until, and not after the server could
 * give it away.
 */
static void full_disk_costs_the_hold_in_time(void **state)
{
	(void)state;
	struct rivals *rivals = begin("everysec", 1500);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	WAIT_UNTIL(stats_of(rivals->one).renewals >= 1, SOON_MS);
	test_host_fill_disk(host, true);
	bool is_there = true;
	while (is_there) {
		is_there = key_exists(live_raw, "orders");
		if (!is_there)
			assert_int_equal(hf_lock_remaining(rivals->mine, NULL), 0);
		test_pause();
	}
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, SOON_MS);
	assert_true(stats_of(rivals->one).renewal_failures >= 1);
	test_host_fill_disk(host, false);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	WAIT_UNTIL(is_answered_by(NULL), SOON_MS);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	end(rivals);
}

/* A server that must not answer before it has written exits instead. */
static void full_disk_ends_a_server_that_always_syncs(void **state)
{
	(void)state;
	struct rivals *rivals = begin("always", 20000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	test_host_fill_disk(host, true);
	hf_lock *other = open_lock(rivals->two, "other");
	int rc = hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 1000));
	assert_true(rc == HF_EUNREACHABLE || rc == HF_EUNKNOWN);
	assert_true(test_server_logged(live_server, "No space left on device"));
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	test_host_fill_disk(host, false);
	restart_server(live_server, &live_raw);
	WAIT_UNTIL(stats_of(rivals->one).renewals >= 1, 10000);
	assert_true(is_held_by(live_raw, "orders", rivals->one));
	WAIT_UNTIL(!key_exists(live_raw, "other"), 10000);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(seen_count(&rivals->seen, HF_LOST), 0);
	hf_lock_close(other);
	end(rivals);
}

/* ---- a file without its end ---- */

/* The file that the server appends to; Redis 7 has a folder of them. To be freed. */
static char *find_file(void)
{
	static const char *const patterns[] = {"%s/appendonlydir/*.incr.aof", "%s/appendonly.aof"};
	char *found = NULL;
	for (int i = 0; i < 2 && !found; i++) {
		glob_t files = {0};
		char *pattern = check_format(patterns[i], test_server_dir(live_server));
		if (!glob(pattern, 0, NULL, &files) && files.gl_pathc == 1)
			found = check_copy(files.gl_pathv[0], strlen(files.gl_pathv[0]));
		globfree(&files);
		free(pattern);
	}
	assert_non_null(found);
	return found;
}

static off_t size_of(const char *file)
{
	struct stat stat_;
	assert_int_equal(stat(file, &stat_), 0);
	return stat_.st_size;
}

/*
 * What a power failure does to a server that syncs once a second: the end of the file is missing or
 * incomplete.
 */
static void hold_whose_grant_is_missing_in_the_file_is_lost(void **state)
{
	(void)state;
	struct rivals *rivals = begin("everysec", 20000);
	hf_lock *early = open_lock(rivals->two, "early");
	ASSERT_OK(hf_lock_acquire(early, NULL));
	char *file = find_file();
	off_t before = size_of(file);
	int64_t token = take_token(rivals->mine, HF_ACQUIRE(.token = 1));
	off_t after = size_of(file);
	assert_true(after > before);
	raw_close(live_raw);
	test_server_kill(live_server);
	assert_int_equal(truncate(file, before + (after - before) / 2), 0);
	test_server_restart(live_server);
	live_raw = raw_connect(live_server);
	/* With its first renewal on the next connection. */
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, 10000);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "the server no longer had the hold");
	assert_true(take_token(rivals->theirs, HF_ACQUIRE(.token = 1, .wait_ms = SOON_MS)) > token);
	assert_true(is_held_by(live_raw, "early", rivals->two));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	ASSERT_OK(hf_lock_release(early));
	assert_int_equal(seen_count(&rivals->seen, HF_LOST), 1);
	free(file);
	hf_lock_close(early);
	end(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_disk_refuses_locks_until_there_is_space),
		cmocka_unit_test(full_disk_costs_the_hold_in_time),
		cmocka_unit_test(full_disk_ends_a_server_that_always_syncs),
		cmocka_unit_test(hold_whose_grant_is_missing_in_the_file_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
