/* Red locks: C and Java hold the majority of the same three servers. */
#include "interop/interop.h"

#define SERVERS 3

/* Java asks one server after the other, and each for its share of the time. */
#define JAVA_WAIT_MS 600

static struct test_server *servers[SERVERS];
static hf_client *clients[SERVERS];

static int red_start(void **state)
{
	const struct test_server_options options = {.kind = TEST_SERVER_TCP};
	const char *more_urls[SERVERS] = {NULL};
	(void)state;
	for (int i = 0; i < SERVERS; i++) {
		servers[i] = test_server_start(&options);
		clients[i] = open_interop_client(test_server_url(servers[i]));
		if (i > 0)
			more_urls[i - 1] = test_server_url(servers[i]);
	}
	interop_peer = peer_start(
		test_server_url(servers[0]),
		&(struct peer_options){.watchdog_ms = WATCHDOG_MS, .more_urls = more_urls});
	return 0;
}

static int red_stop(void **state)
{
	(void)state;
	peer_kill(interop_peer);
	for (int i = 0; i < SERVERS; i++) {
		ASSERT_OK(hf_client_close(clients[i]));
		test_server_stop(servers[i]);
	}
	return 0;
}

static hf_lock *open_red(char *ret_name, size_t size)
{
	hf_lock *members[SERVERS];
	hf_lock *lock = NULL;
	make_name(ret_name, size, "red");
	for (int i = 0; i < SERVERS; i++)
		members[i] = open_lock(clients[i], ret_name);
	ASSERT_OK(hf_lock_open_red(members, SERVERS, &lock));
	for (int i = 0; i < SERVERS; i++)
		hf_lock_close(members[i]);
	return lock;
}

static bool java_tries_red(const char *name)
{
	return peer_is_true(interop_peer, "t1 try red %s %d %d", name, JAVA_WAIT_MS, LONG_MS);
}

/* With a long lease each server has long enough to answer. */
static void c_is_refused(hf_lock *lock, hf_owner *owner)
{
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .lease_ms = LONG_MS,
	                                           .owner = owner)),
	          HF_EBUSY);
}

static void either_side_keeps_the_other_out(void **state)
{
	char name[64];
	hf_lock *lock = open_red(name, sizeof name);
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = LONG_MS)));
	assert_false(java_tries_red(name));
	ASSERT_OK(hf_lock_release(lock));
	assert_true(java_tries_red(name));
	c_is_refused(lock, NULL);
	(void)peer_ok(interop_peer, "t1 unlock red %s", name);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
}

static void each_side_gets_in_when_the_other_leaves(void **state)
{
	char name[64];
	hf_lock *lock = open_red(name, sizeof name);
	(void)state;
	(void)peer_ok(interop_peer, "t1 lock red %s %d", name, LONG_MS);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.wait_ms = LONG_MS));
	long long released_at = test_now_ms();
	(void)peer_ok(interop_peer, "t1 unlock red %s", name);
	c_is_woken(waiter, released_at);
	peer_send(interop_peer, "t1 lock red %s %d", name, LONG_MS);
	released_at = test_now_ms();
	waiter_finish(waiter);
	java_is_woken("t1", released_at);
	(void)peer_ok(interop_peer, "t1 unlock red %s", name);
	hf_lock_close(lock);
}

/* Another owner holds the lock of the last server only. */
static void two_of_three_servers_are_enough_for_both(void **state)
{
	char name[64];
	hf_lock *lock = open_red(name, sizeof name);
	hf_lock *last = open_lock(clients[SERVERS - 1], name);
	(void)state;
	(void)peer_ok(interop_peer, "t2 lock last %s %d", name, LONG_MS);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	assert_false(java_tries_red(name));
	ASSERT_OK(hf_lock_release(lock));
	(void)peer_ok(interop_peer, "t2 unlock last %s", name);
	ASSERT_OK(hf_lock_acquire(last, HF_ACQUIRE(.wait_ms = SOON_MS, .lease_ms = LONG_MS)));
	assert_true(java_tries_red(name));
	hf_owner *owner = new_owner();
	c_is_refused(lock, owner);
	hf_owner_free(owner);
	(void)peer_ok(interop_peer, "t1 unlock red %s", name);
	ASSERT_OK(hf_lock_release(last));
	hf_lock_close(last);
	hf_lock_close(lock);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_side_keeps_the_other_out),
		cmocka_unit_test(each_side_gets_in_when_the_other_leaves),
		cmocka_unit_test(two_of_three_servers_are_enough_for_both),
	};
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, red_start, red_stop);
}
