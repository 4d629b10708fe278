/* A spin lock that is held, and a client that keeps asking for it. */
#ifndef TESTS_LIVE_SPIN_H
#define TESTS_LIVE_SPIN_H

#include "live/rivals.h"

/* The options are those of the client that asks. */
static inline struct rivals *begin(const hf_lock_options *options)
{
	const char *url = test_server_url(live_server);
	struct rivals *rivals = open_clients(url, NULL, url, NULL);
	rivals->mine = open_named(rivals->one, HF_SPIN, "orders");
	ASSERT_OK(hf_lock_open_with(rivals->two, HF_SPIN, "orders", options, &rivals->theirs));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	return rivals;
}

static inline void end(struct rivals *rivals)
{
	ASSERT_OK(hf_lock_release(rivals->mine));
	close_rivals(rivals);
}

#endif
