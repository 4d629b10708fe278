/* A lock of any kind, and a group among them, for loops over all of them. */
#ifndef TESTS_LIVE_ANY_KIND_H
#define TESTS_LIVE_ANY_KIND_H

#include "live/live.h"

#include "core/backend.h"

/* The lock "orders"; the kind is an hf_kind, or HF__GROUP. */
static inline hf_lock *open_kind(hf_client *client, int kind)
{
	static const char *const values[] = {"a", "b"};
	hf_lock *lock = NULL;
	if (kind == HF__GROUP)
		ASSERT_OK(hf_lock_open_group(client, "orders", values, 2, &lock));
	else
		ASSERT_OK(hf_lock_open(client, (hf_kind)kind, "orders", &lock));
	return lock;
}

#endif
