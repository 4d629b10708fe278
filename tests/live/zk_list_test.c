/* Lists of many locks, which take several steps each, and several of them at once. */
#include "live/zk.h"

#define NODES   700 /* more than one step visits */
#define LISTERS 12

static void make_locks(void)
{
	char path[40];
	for (int i = 0; i < NODES; i++) {
		snprintf(path, sizeof path, "/lock-%04d", i);
		assert_int_equal(zk_raw_create(zk_eye, path, "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	}
}

struct lister {
	hf_client *client;
	atomic_bool *go_on;
	atomic_int seen;
};

/* Nobody asks for the second step of a list before all of them have finished their first one. */
static int count_slowly(void *arg, const hf_info *info)
{
	struct lister *lister = arg;
	(void)info;
	atomic_fetch_add(&lister->seen, 1);
	while (!atomic_load(lister->go_on))
		test_pause();
	return 0;
}

static int list_slowly(void *arg)
{
	struct lister *lister = arg;
	return hf_client_list(lister->client, "lock-*", count_slowly, lister);
}

static void many_lists_at_once_are_all_complete(void **state)
{
	struct lister lister[LISTERS];
	struct waiter *waiter[LISTERS];
	atomic_bool go_on = false;
	hf_client *client = open_zk("");

	(void)state;
	make_locks();
	for (int i = 0; i < LISTERS; i++) {
		lister[i] = (struct lister){.client = client, .go_on = &go_on};
		waiter[i] = WAITER(.run = list_slowly, .arg = &lister[i]);
		WAIT_UNTIL(atomic_load(&lister[i].seen) > 0, SOON_MS);
	}
	atomic_store(&go_on, true);
	for (int i = 0; i < LISTERS; i++) {
		waiter_expect(waiter[i], 0);
		waiter_free(waiter[i]);
		assert_int_equal(lister[i].seen, NODES);
	}
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(many_lists_at_once_are_all_complete),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
