/* Sessions that the server keeps alive, although none of their connections lasts. */
#include "live/zk.h"

#include "support/proxy.h"

#define HOLDS 120

/*
 * After a reconnect the library lists all its watches in one packet, and this server does not
 * accept such a long one.
 */
static void session_that_cannot_be_resumed_is_replaced(void **state)
{
	static const char *const properties[] = {"jute.maxbuffer=4096", NULL};
	struct test_zookeeper *zookeeper =
		test_zookeeper_start(&(struct test_zookeeper_options){.properties = properties});
	struct proxy *proxy = proxy_start(test_zookeeper_url(zookeeper, 0));
	hf_client *client = open_at(proxy_url(proxy), "?session=6s", NULL);
	hf_lock *locks[HOLDS];
	char name[40];

	(void)state;
	for (int i = 0; i < HOLDS; i++) {
		snprintf(name, sizeof name, "orders-%d", i);
		locks[i] = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire(locks[i], NULL));
	}
	WAIT_UNTIL(test_zookeeper_value(zookeeper, 0, "zk_watch_count") >= HOLDS, SOON_MS);
	proxy_cut(proxy);
	for (int i = 0; i < HOLDS; i++)
		WAIT_UNTIL(hf_lock_state(locks[i], NULL) == HF_LOST, ENDED_MS);
	/* The nodes of the old session last until it has timed out. */
	ASSERT_OK(hf_lock_acquire(locks[0], HF_ACQUIRE(.wait_ms = 2 * ENDED_MS)));
	ASSERT_OK(hf_lock_release(locks[0]));
	for (int i = 0; i < HOLDS; i++)
		hf_lock_close(locks[i]);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
	test_zookeeper_stop(zookeeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_that_cannot_be_resumed_is_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
