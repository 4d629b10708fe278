/* What the tests of permits under faults share: a server for each story, and a proxy. */
#ifndef TESTS_LIVE_ZK_PERMITS_FAULTS_H
#define TESTS_LIVE_ZK_PERMITS_FAULTS_H

#include "live/zk_permits.h"

#include "support/proxy.h"

static struct proxy *proxy; /* before the first client */

static inline void start_all(const struct test_zookeeper_options *options)
{
	zk_server = test_zookeeper_start(options);
	zk_eye = zk_raw_open(test_zookeeper_host(zk_server, 0), 0);
	proxy = proxy_start(test_zookeeper_url(zk_server, 0));
}

static inline void begin_proxied(const struct test_zookeeper_options *options, int64_t total,
                                 int64_t session_ms)
{
	start_all(options);
	begin_at(proxy_url(proxy), test_zookeeper_url(zk_server, 0), total, session_ms);
}

static inline int stop_all(void **state)
{
	(void)close_pair(state);
	proxy_stop(proxy);
	zk_raw_close(zk_eye);
	test_zookeeper_stop(zk_server);
	proxy = NULL;
	zk_eye = NULL;
	zk_server = NULL;
	return 0;
}

#define FAULT_STORY(name) cmocka_unit_test_teardown(name, stop_all)

/* So that an acquire has nothing but its two nodes to make. */
static inline void make_folders(void)
{
	static const char *const folders[] = {"/orders", GATES, LEASES};
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			zk_raw_create(zk_eye, folders[i], "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
}

#endif
