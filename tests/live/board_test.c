/* The board of the command, with a real server. */
#include "board/board.h"

#include "live/sync.h"

/* The board asks once a second, and less often if the server takes its time. */
#define LATER_MS (6 * SOON_MS)

static hf_client *watcher;
static struct board *board;

static void start_board(const char *pattern)
{
	watcher = sync_open(HF_CLIENT(.map_name = board_keep_name));
	ASSERT_OK(board_new(
		&(struct board_options){.client = watcher, .pattern = pattern, .refresh_ms = 100},
		&board));
	ASSERT_OK(board_start(board));
}

static void stop_board(void)
{
	board_free(board);
	ASSERT_OK(sync_close(watcher));
}

static struct board_snapshot take_all(void)
{
	struct board_snapshot snapshot;
	ASSERT_OK(board_take(board, &(struct board_view){.count = 100, .on_screen = true},
	                     &snapshot));
	return snapshot;
}

static size_t count_rows(void)
{
	struct board_snapshot snapshot = take_all();
	size_t n = snapshot.n;
	board_drop(&snapshot);
	return n;
}

static size_t count_waited(void)
{
	struct board_snapshot snapshot = take_all();
	size_t n = snapshot.summary.waited;
	board_drop(&snapshot);
	return n;
}

static bool is_unreachable(void)
{
	struct board_snapshot snapshot = take_all();
	bool unreachable = snapshot.summary.unreachable_ms > 0;
	board_drop(&snapshot);
	return unreachable;
}

static void locks_come_and_go(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "me", .name_prefix = "its:"));
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	start_board(NULL);
	assert_true(board_fd(board) >= 0);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	WAIT_UNTIL(count_rows() == 1, LATER_MS);
	struct board_snapshot all = take_all();
	assert_string_equal(all.rows[0].name, "its:orders");
	assert_string_equal(all.rows[0].kind, "reentrant");
	assert_string_equal(all.rows[0].holder.text, "me");
	assert_int_equal(all.rows[0].holder.pid, getpid());
	assert_int_equal(all.summary.held, 1);
	assert_true(all.rows[0].held_ms >= 0 && !all.rows[0].held_longer);
	assert_true(all.rows[0].ttl_ms > 0 && all.rows[0].lease_ms >= all.rows[0].ttl_ms);
	board_drop(&all);
	ASSERT_OK(hf_lock_release(lock));
	WAIT_UNTIL(count_rows() == 0, LATER_MS);
	stop_board();
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static bool has_waiter(const char *name)
{
	struct board_snapshot one;
	ASSERT_OK(board_take_one(board, name, strlen(name), &one));
	bool found = one.n == 1 && one.rows[0].parties && one.rows[0].waiters_listed == 1;
	if (found)
		assert_string_equal(one.rows[0].parties[1].text, "other");
	board_drop(&one);
	return found;
}

static void waiters_are_found(void **state)
{
	hf_client *client = sync_open(NULL), *other = sync_open(HF_CLIENT(.describe = "other"));
	hf_lock *held = open_lock(client, "orders"), *wanted = open_lock(other, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(held, NULL));
	start_board(NULL);
	struct waiter *waiter = waiter_start(wanted, NULL);
	WAIT_UNTIL(count_waited() == 1, LATER_MS);
	WAIT_UNTIL(has_waiter("orders"), LATER_MS);
	ASSERT_OK(hf_lock_release(held));
	waiter_expect(waiter, 0);
	WAIT_UNTIL(count_waited() == 0, LATER_MS);
	stop_board();
	waiter_finish(waiter);
	hf_lock_close(held);
	hf_lock_close(wanted);
	ASSERT_OK(sync_close(client));
	ASSERT_OK(sync_close(other));
}

static void name_that_the_library_refuses_is_shown(void **state)
{
	(void)state;
	raw_reply_free(raw_command(live_raw, "HSET", "odd}",
	                           "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1", NULL));
	raw_reply_free(raw_command(live_raw, "HSET", "even",
	                           "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1", NULL));
	start_board(NULL);
	WAIT_UNTIL(count_rows() == 2, LATER_MS);
	raw_reply_free(raw_command(live_raw, "DEL", "even", NULL));
	WAIT_UNTIL(count_rows() == 1, LATER_MS);
	raw_reply_free(raw_command(live_raw, "DEL", "odd}", NULL));
	WAIT_UNTIL(count_rows() == 0, LATER_MS);
	stop_board();
}

static void missing_rights_are_said(void **state)
{
	(void)state;
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "reset", "on", ">s3cr3t", "~*", "&*", "+@all",
	       "-scan", "-pubsub", "+pubsub|numsub", NULL);
	watcher = sync_open(
		HF_CLIENT(.user = "limited", .password = "s3cr3t", .map_name = board_keep_name));
	ASSERT_OK(board_new(&(struct board_options){.client = watcher, .refresh_ms = 100}, &board));
	ASSERT_OK(board_start(board));
	struct board_snapshot all = take_all();
	while (!*all.summary.walk_refused || !*all.summary.waits_refused) {
		board_drop(&all);
		test_pause();
		all = take_all();
	}
	assert_int_equal(all.summary.unreachable_ms, 0);
	board_drop(&all);
	stop_board();
}

static void lost_server_is_said_until_it_is_back(void **state)
{
	hf_client *client = sync_open(NULL);
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	start_board(NULL);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	WAIT_UNTIL(count_rows() == 1, LATER_MS);
	assert_false(is_unreachable());
	test_server_freeze(live_server);
	WAIT_UNTIL(is_unreachable(), 20000);
	assert_int_equal(count_rows(), 1);
	test_server_thaw(live_server);
	WAIT_UNTIL(!is_unreachable(), 20000);
	stop_board();
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(locks_come_and_go),
		LIVE_STORY(waiters_are_found),
		LIVE_STORY(name_that_the_library_refuses_is_shown),
		LIVE_STORY(missing_rights_are_said),
		LIVE_STORY(lost_server_is_said_until_it_is_back),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
