/* The board of the command, with ZooKeeper: the walk finds locks and waiters alike. */
#include "board/board.h"

#include "live/zk.h"

static struct board_snapshot take_all(struct board *board)
{
	struct board_snapshot snapshot;
	ASSERT_OK(
		board_take(board, &(struct board_view){.count = 10, .on_screen = true}, &snapshot));
	return snapshot;
}

static bool shows(struct board *board, size_t held, size_t waited)
{
	struct board_snapshot all = take_all(board);
	bool same = all.summary.held == held && all.summary.waited == waited;
	board_drop(&all);
	return same;
}

static void locks_and_waiters_come_and_go(void **state)
{
	hf_client *client = open_zk(""), *other = open_zk(""), *watcher = open_zk("");
	hf_lock *held = open_lock(client, "orders"), *wanted = open_lock(other, "orders");
	struct board *board;

	(void)state;
	ASSERT_OK(board_new(
		&(struct board_options){.client = watcher, .zookeeper = true, .refresh_ms = 100},
		&board));
	ASSERT_OK(board_start(board));
	ASSERT_OK(hf_lock_acquire(held, NULL));
	WAIT_UNTIL(shows(board, 1, 0), SOON_MS);
	struct waiter *waiter = waiter_start(wanted, NULL);
	WAIT_UNTIL(shows(board, 1, 1), SOON_MS);
	struct board_snapshot all = take_all(board);
	assert_string_equal(all.rows[0].name, "orders");
	assert_int_equal(all.rows[0].state, BOARD_ENDLESS);
	assert_true(all.rows[0].held_ms >= 0 && !all.rows[0].held_longer);
	assert_string_equal(all.summary.server, "zookeeper");
	board_drop(&all);
	ASSERT_OK(hf_lock_release(held));
	waiter_expect(waiter, 0);
	WAIT_UNTIL(shows(board, 1, 0), SOON_MS);
	waiter_finish(waiter);
	WAIT_UNTIL(shows(board, 0, 0), SOON_MS);
	board_free(board);
	hf_lock_close(held);
	hf_lock_close(wanted);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
	ASSERT_OK(hf_client_close(watcher));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(locks_and_waiters_come_and_go),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
