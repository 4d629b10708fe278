/* What the tests of read-write locks share: both halves of one lock. */
#ifndef TESTS_LIVE_RW_H
#define TESTS_LIVE_RW_H

#include "live/live.h"

#define JAVA "0f2d1a7c-0000-4000-8000-0123456789ab:51" /* an owner in another process */

/* Both halves of one lock in one client. */
struct halves {
	hf_client *client;
	hf_lock *read;
	hf_lock *write;
};

static inline struct halves open_halves(const hf_client_options *options)
{
	struct halves halves = {.client = open_client(options)};
	ASSERT_OK(hf_lock_open(halves.client, HF_READ, "orders", &halves.read));
	ASSERT_OK(hf_lock_open(halves.client, HF_WRITE, "orders", &halves.write));
	return halves;
}

static inline void close_halves(struct halves *halves)
{
	hf_lock_close(halves->read);
	hf_lock_close(halves->write);
	ASSERT_OK(hf_client_close(halves->client));
}

static inline const hf_acquire_options *try_once(void)
{
	static const hf_acquire_options options = {.size = sizeof options, .wait_ms = HF_NOWAIT};
	return &options;
}

/* The name of the reader's own key. */
static inline void own_key(hf_lock *lock, char *ret_key, size_t size)
{
	char holder[128];
	ASSERT_OK(hf_lock_holder(lock, holder, sizeof holder));
	snprintf(ret_key, size, "{orders}:%s:rwlock_timeout:1", holder);
}

#endif
