/* A server on a host whose clock or disk the test spoils. */
#ifndef TESTS_LIVE_ON_HOST_H
#define TESTS_LIVE_ON_HOST_H

#include "live/rivals.h"

#include "support/host.h"

static struct test_host *host;

/* The server of live.h, because children connect to that. */
static inline void begin_server(const struct test_server_options *options)
{
	struct test_server_options on_host = *options;
	host = test_host_new();
	on_host.host_file = test_host_file(host);
	live_server = test_server_start(&on_host);
	live_raw = raw_connect(live_server);
}

static inline void end(struct rivals *rivals)
{
	close_rivals(rivals);
	(void)live_stop(NULL);
	test_host_free(host);
}

static inline int64_t take_token(hf_lock *lock, const hf_acquire_options *options)
{
	int64_t token = 0;
	ASSERT_OK(hf_lock_acquire(lock, options));
	ASSERT_OK(hf_lock_token(lock, NULL, &token));
	return token;
}

#endif
