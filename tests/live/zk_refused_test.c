/*
 * A server that refuses us, because of its chroot or our credentials, until somebody changes that.
 */
#include "live/zk_fake.h"

#include "support/proxy.h"

/* What a call may take beyond its limit. */
#define LATE_MS 1000

static void make(const char *path)
{
	assert_int_equal(zk_raw_create(zk_eye, path, "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
}

/* The call fails by its limit, and for the right reason. */
static void expect_failure(hf_lock *lock, int64_t wait_ms, int error, const char *why)
{
	long long began_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = wait_ms)), error);
	ASSERT_BETWEEN(test_now_ms() - began_at, 0, wait_ms + LATE_MS);
	ASSERT_CONTAINS(hf_error_detail(), why);
}

/* ---- the chroot ---- */

static void chroot_made_later_is_found_by_the_next_call(void **state)
{
	hf_client *client = open_zk("/apps?lazy=yes");
	hf_lock *lock = open_lock(client, "orders");
	long long began_at = test_now_ms();

	(void)state;
	/* A client that was never connected is answered at once. */
	for (int i = 0; i < 3; i++)
		expect_failure(lock, 20000, HF_EINVAL, "node /apps does not exist");
	ASSERT_BETWEEN(test_now_ms() - began_at, 0, 10000);
	make("/apps");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	assert_int_equal(count_children(zk_eye, "/apps/orders"), 1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void chroot_that_is_gone_is_waited_for(void **state)
{
	make("/apps");
	hf_client *client = open_zk("/apps?session=6s");
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	int64_t session = first_owner(zk_eye, "/apps/orders");
	assert_int_equal(zk_raw_delete_tree(zk_eye, "/apps"), 0);
	zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, ENDED_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	/* Until the new session has been refused, the reason is another. */
	WAIT_UNTIL(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 200)) == HF_EINVAL, ENDED_MS);
	expect_failure(lock, 1500, HF_EINVAL, "node /apps does not exist");
	struct waiter *waiter = waiter_start(lock, NULL);
	make("/apps");
	waiter_finish(waiter);
	close_both(lock, client);
}

static void chroot_that_may_not_be_read_is_tried_again(void **state)
{
	struct zk_fake fake;
	hf_client *client = NULL;
	char url[100];

	(void)state;
	fake_start(&fake);
	snprintf(url, sizeof url, "zk://127.0.0.1:%d/apps", fake.port);
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "chroot");
	ASSERT_CONTAINS(hf_error_detail(), "not authorized");
	client = open_url(url, HF_CLIENT(.lazy = true));
	ASSERT_RC(hf_client_ping(client, NULL), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "chroot");
	atomic_store(&fake.refuses, false);
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
	fake_stop(&fake);
}

/*
 * A waiter has the server asked again, but not all the time; and while there is no waiter, not at
 * all.
 */
static void refusal_is_examined_with_growing_pauses(void **state)
{
	struct zk_fake fake;
	char url[100];

	(void)state;
	fake_start(&fake);
	atomic_store(&fake.refuses, false);
	snprintf(url, sizeof url, "zk://127.0.0.1:%d/apps", fake.port);
	struct proxy *proxy = proxy_start(url);
	snprintf(url, sizeof url, "%s/apps", proxy_url(proxy));
	hf_client *client = open_url(url, HF_CLIENT(.command_timeout_ms = 4000));
	int checks = atomic_load(&fake.checks);
	atomic_store(&fake.refuses, true);
	proxy_cut(proxy);
	WAIT_UNTIL(atomic_load(&fake.checks) > checks, SOON_MS);
	checks = atomic_load(&fake.checks);
	ASSERT_RC(hf_client_ping(client, NULL), HF_EREFUSED);
	ASSERT_BETWEEN(atomic_load(&fake.checks) - checks, 2, 6);
	checks = atomic_load(&fake.checks);
	long long now = test_now_ms();
	WAIT_UNTIL(test_now_ms() > now + 2500, 5000);
	assert_int_equal(atomic_load(&fake.checks), checks);
	atomic_store(&fake.refuses, false);
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
	fake_stop(&fake);
}

/* ---- credentials ---- */

static const char *const with_digest[] = {NULL};
static const char *const without_digest[] = {"zookeeper.DigestAuthenticationProvider.enabled=false",
                                             NULL};

static void credentials_accepted_later_are_good_for_the_next_call(void **state)
{
	struct test_zookeeper *zookeeper = test_zookeeper_start(
		&(struct test_zookeeper_options){.properties = without_digest});
	hf_client *client = NULL;
	char url[200];

	(void)state;
	snprintf(url, sizeof url, "%s?auth=digest:me:secret", test_zookeeper_url(zookeeper, 0));
	long long began_at = test_now_ms();
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EAUTH);
	ASSERT_BETWEEN(test_now_ms() - began_at, 0, 4000);
	ASSERT_CONTAINS(hf_error_detail(), "credentials");
	assert_null(strstr(hf_error_detail(), "secret"));
	client = open_url(url, HF_CLIENT(.lazy = true));
	hf_lock *lock = open_lock(client, "orders");
	for (int i = 0; i < 3; i++)
		expect_failure(lock, 20000, HF_EAUTH, "credentials");
	ASSERT_BETWEEN(test_now_ms() - began_at, 0, 15000);
	test_zookeeper_set_properties(zookeeper, 0, with_digest);
	test_zookeeper_restart(zookeeper, 0);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 20000)));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	test_zookeeper_stop(zookeeper);
}

static void credentials_refused_in_the_middle_cost_the_hold_and_no_more(void **state)
{
	struct test_zookeeper *zookeeper = test_zookeeper_start(NULL);
	char url[200];

	(void)state;
	snprintf(url, sizeof url, "%s?auth=digest:me:secret&session=6s",
	         test_zookeeper_url(zookeeper, 0));
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	test_zookeeper_set_properties(zookeeper, 0, without_digest);
	test_zookeeper_restart(zookeeper, 0);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, ENDED_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	/* Until the server has started, nobody refuses anything. */
	WAIT_UNTIL(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 1000)) == HF_EAUTH, ENDED_MS);
	expect_failure(lock, 3000, HF_EAUTH, "credentials");
	struct waiter *waiter = waiter_start(lock, NULL);
	test_zookeeper_set_properties(zookeeper, 0, with_digest);
	test_zookeeper_restart(zookeeper, 0);
	/* The node of the session that was refused stays until that has ended. */
	waiter_finish(waiter);
	close_both(lock, client);
	test_zookeeper_stop(zookeeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(chroot_made_later_is_found_by_the_next_call),
		ZK_STORY(chroot_that_is_gone_is_waited_for),
		ZK_STORY(chroot_that_may_not_be_read_is_tried_again),
		ZK_STORY(refusal_is_examined_with_growing_pauses),
		ZK_STORY(credentials_accepted_later_are_good_for_the_next_call),
		ZK_STORY(credentials_refused_in_the_middle_cost_the_hold_and_no_more),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
