/* Two calls that release the same permit at the same time, while the connection breaks. */
#include "live/zk_permits.h"

#include "support/proxy.h"

static hf_permit_id ids[2];

static int release_both(void *arg)
{
	(void)arg;
	return give_all(pair.mine, ids, 2);
}

static int release_first(void *arg)
{
	(void)arg;
	return give(pair.mine, ids[0]);
}

static int release_second(void *arg)
{
	(void)arg;
	return give(pair.mine, ids[1]);
}

static struct proxy *proxy;

static void begin_proxied(void)
{
	proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	command_timeout_ms = 2000;
	begin_at(proxy_url(proxy), test_zookeeper_url(zk_server, 0), 2, 30000);
	take(pair.mine, 2, 0, ids);
}

/* A second release, and time for it to be answered or sent, though neither has to happen. */
static struct waiter *release_again(int (*release)(void *))
{
	long long bytes = proxy_request_bytes(proxy), began_at = test_now_ms();
	struct waiter *waiter = WAITER(.run = release);
	while (!waiter_is_over(waiter) && proxy_request_bytes(proxy) == bytes &&
	       test_now_ms() - began_at < 500)
		test_pause();
	return waiter;
}

/* Requests that are held are lost. Both calls end before the session is connected again. */
static void break_connection(struct waiter *first, struct waiter *second)
{
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	WAIT_UNTIL(waiter_is_over(first) && waiter_is_over(second), 10000);
	waiter_free(first);
	waiter_free(second);
	proxy_hold_requests(proxy, false);
	proxy_refuse(proxy, false);
}

static void end_proxied(void)
{
	end();
	proxy_stop(proxy);
	proxy = NULL;
}

static void permit_that_is_released_twice_leaves_no_lease(void **state)
{
	(void)state;
	begin_proxied();
	proxy_hold_requests(proxy, true);
	struct waiter *first = release_again(release_first);
	struct waiter *second = release_again(release_first);
	assert_int_equal(leases(), 2);
	break_connection(first, second);
	WAIT_UNTIL(leases() == 1, ENDED_MS);
	end_proxied();
}

/*
 * The first call deletes one lease, and then the request of either call for the other one is lost.
 */
static void permit_that_is_also_released_with_others_leaves_no_lease(void **state)
{
	(void)state;
	begin_proxied();
	proxy_hold_replies(proxy, true);
	struct waiter *first = WAITER(.run = release_both);
	WAIT_UNTIL(leases() == 1, SOON_MS);
	proxy_hold_requests(proxy, true);
	long long bytes = proxy_request_bytes(proxy);
	struct waiter *second = release_again(release_second);
	proxy_hold_replies(proxy, false);
	WAIT_UNTIL(proxy_request_bytes(proxy) > bytes, SOON_MS);
	break_connection(first, second);
	WAIT_UNTIL(leases() == 0, ENDED_MS);
	end_proxied();
}

/* Without a fault, the later call learns that the permit does not exist any more. */
static void second_release_of_a_permit_is_refused(void **state)
{
	(void)state;
	begin(2, 30000);
	for (int i = 0; i < 20; i++) {
		take(pair.mine, 2, 0, ids);
		struct waiter *first = WAITER(.run = release_first);
		struct waiter *second = WAITER(.run = release_first);
		WAIT_UNTIL(waiter_is_over(first) && waiter_is_over(second), 10000);
		assert_true(first->result == 0 || second->result == 0);
		assert_true(first->result == HF_ENOTHELD || second->result == HF_ENOTHELD);
		waiter_free(first);
		waiter_free(second);
		ASSERT_OK(give(pair.mine, ids[1]));
		assert_int_equal(leases(), 0);
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PERMITS_STORY(permit_that_is_released_twice_leaves_no_lease),
		PERMITS_STORY(permit_that_is_also_released_with_others_leaves_no_lease),
		PERMITS_STORY(second_release_of_a_permit_is_refused),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
