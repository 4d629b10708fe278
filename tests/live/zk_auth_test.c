/* Credentials: that the server has them before anything else. */
#include "live/zk.h"

#include "support/net.h"
#include "support/proxy.h"

/* The library refuses credentials in the moment in which it goes from one server to the next. */
static void credentials_reach_the_server_though_another_is_down(void **state)
{
	enum { ROUNDS = 150 };
	char url[200];

	(void)state;
	snprintf(url, sizeof url, "zk://127.0.0.1:%d,%s?auth=digest:me:secret", net_dead_port(),
	         test_zookeeper_host(zk_server, 0));
	for (int i = 0; i < ROUNDS; i++) {
		hf_client *client = open_url(url, NULL);
		hf_lock *lock = open_lock(client, "orders");
		int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS));
		if (rc)
			fail_msg("round %d: %s: %s", i, hf_strerror(rc), hf_error_detail());
		ASSERT_OK(hf_lock_release(lock));
		close_both(lock, client);
	}
	assert_int_equal(zk_raw_auth(zk_eye, "digest", "me:secret"), 0);
	assert_int_equal(zk_raw_delete_tree(zk_eye, "/orders"), 0);
}

/* The server forgets the credentials with each connection, and the library sends them again. */
static void credentials_are_given_again_after_a_reconnect(void **state)
{
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	hf_client *client = open_at(proxy_url(proxy), "?auth=digest:me:secret", NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t reconnects = stats_of(client).reconnects;
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
		proxy_cut(proxy);
		WAIT_UNTIL(stats_of(client).reconnects > reconnects, SOON_MS);
		ASSERT_OK(hf_lock_release(lock));
	}
	close_both(lock, client);
	proxy_stop(proxy);
	assert_int_equal(zk_raw_delete_tree(zk_eye, "/orders"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(credentials_reach_the_server_though_another_is_down),
		ZK_STORY(credentials_are_given_again_after_a_reconnect),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
