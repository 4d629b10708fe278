/* Waiters on ZooKeeper that an operator removes from their queue. */
#include "live/zk.h"

struct search {
	size_t place;
	char *name;
};

static int note_waiter(void *arg, const hf_info *info)
{
	struct search *search = arg;
	const char *name = hf_info_waiter(info, search->place);
	search->name = check_copy(name, strlen(name));
	return 0;
}

/* The server's name for the waiter at this place; free() it. */
static char *find_waiter_name(hf_client *client, const char *name, size_t place)
{
	struct search search = {.place = place};
	ASSERT_OK(hf_client_inspect(client, name, note_waiter, &search));
	assert_non_null(search.name);
	return search.name;
}

/* The one that is removed lives, so it joins the queue again at the end. */
static void waiter_can_be_removed_by_hand(void **state)
{
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	char path[700];
	int removed = -1;

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	/* The holder is not a waiter. */
	ASSERT_OK(hf_lock_remove_waiter(rivals->theirs, strrchr(path, '/') + 1, &removed));
	assert_int_equal(removed, 0);
	struct waiter *first = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	char *waiting = find_waiter_name(rivals->one, "orders", 0);
	struct waiter *second = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 3, SOON_MS);
	ASSERT_OK(hf_lock_remove_waiter(rivals->mine, waiting, &removed));
	assert_int_equal(removed, 1);
	ASSERT_OK(hf_lock_remove_waiter(rivals->mine, waiting, &removed));
	assert_int_equal(removed, 0);
	free(waiting);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	waiter_finish(first);
	waiter_free(second);
	hf_lock *plain = open_named(rivals->one, HF_PLAIN, "plain");
	ASSERT_RC(hf_lock_remove_waiter(plain, "x", &removed), HF_ENOTSUP);
	hf_lock_close(plain);
	close_rivals(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(waiter_can_be_removed_by_hand),
	};

	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
