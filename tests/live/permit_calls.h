/* What all live tests of permits share: two clients, and calls that must succeed. */
#ifndef TESTS_LIVE_PERMIT_CALLS_H
#define TESTS_LIVE_PERMIT_CALLS_H

#include "live/sync.h"

/* Two clients at the permits of one name; the first one's events are noted. */
struct pair {
	struct seen seen;
	hf_client *one;
	hf_client *two;
	hf_permits *mine;
	hf_permits *theirs;
};

static inline hf_permits *open_permits(hf_client *client, const char *name)
{
	hf_permits *permits = NULL;
	ASSERT_OK(hf_permits_open(client, name, &permits));
	return permits;
}

static inline int64_t available(hf_permits *permits)
{
	int64_t number = NO_NUMBER;
	ASSERT_OK(hf_permits_available(permits, &number));
	return number;
}

static inline int64_t acquired(hf_permits *permits)
{
	int64_t number = NO_NUMBER;
	ASSERT_OK(hf_permits_acquired(permits, &number));
	return number;
}

static inline int64_t total(hf_permits *permits)
{
	int64_t number = NO_NUMBER;
	ASSERT_OK(hf_permits_total(permits, &number));
	return number;
}

/* Takes n of them at once, or fails the test. On ZooKeeper hundreds of nodes are made for that. */
static inline void take(hf_permits *permits, int n, int64_t lease_ms, hf_permit_id *ids)
{
	ASSERT_OK(hf_permits_acquire(
		permits, n, HF_PERMITS(.wait_ms = 6 * SOON_MS, .lease_ms = lease_ms), ids));
}

#endif
