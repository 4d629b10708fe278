/* One URL for several servers that replicate each other: the one that is the master is used. */
#include "live/live.h"

#include "support/replica.h"

static struct test_server *first, *second;
static char url[100];

static bool has(struct test_server *server, const char *name)
{
	struct raw *raw = raw_connect(server);
	bool exists = raw_integer(raw, "EXISTS", name, NULL);
	raw_close(raw);
	return exists;
}

static int start_both(void **state)
{
	const char *extra[] = {"--repl-diskless-sync-delay", "0", NULL};
	const struct test_server_options options = {.kind = TEST_SERVER_TCP, .extra = extra};
	(void)state;
	first = test_server_start(&options);
	second = test_server_start(&options);
	snprintf(url, sizeof url, "redis://127.0.0.1:%d,127.0.0.1:%d", test_server_port(first),
	         test_server_port(second));
	return 0;
}

static int stop_both(void **state)
{
	(void)state;
	test_server_stop(first);
	test_server_stop(second);
	return 0;
}

static void the_master_is_used_wherever_it_is(void **state)
{
	(void)state;
	test_replica_follow(first, second);
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_true(has(second, "orders"));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* The master becomes a replica and stays connected: the next command finds out. */
static void a_hold_moves_with_the_master(void **state)
{
	(void)state;
	test_replica_lead(first);
	test_replica_follow(second, first);
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_lock *other = open_lock(client, "other");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	WAIT_UNTIL(has(second, "orders"), SOON_MS);
	test_replica_lead(second);
	test_replica_follow(first, second);
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = SOON_MS)));
	assert_true(has(second, "other"));
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(client));
}

static void a_dead_server_is_passed_over(void **state)
{
	(void)state;
	test_replica_lead(second);
	test_server_kill(first);
	hf_client *client = open_url(url, NULL);
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
	test_server_restart(first);
}

static void servers_without_a_master_are_named(void **state)
{
	hf_client *client = NULL;
	(void)state;
	test_replica_follow(first, second);
	test_replica_follow(second, first);
	assert_int_equal(hf_client_open(url, NULL, &client), HF_EUNREACHABLE);
	ASSERT_CONTAINS(hf_error_detail(), "no server is the master");
	ASSERT_CONTAINS(hf_error_detail(), "it is a replica, not the master; 127.0.0.1");
	test_replica_lead(first);
	test_replica_lead(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_master_is_used_wherever_it_is),
		cmocka_unit_test(a_hold_moves_with_the_master),
		cmocka_unit_test(a_dead_server_is_passed_over),
		cmocka_unit_test(servers_without_a_master_are_named),
	};
	return cmocka_run_group_tests(tests, start_both, stop_both);
}
