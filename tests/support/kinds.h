/*
 * The kinds of lock, as the tables of the tests need them. After a new one was added, the tests do
 * not compile until its row is in each of those tables.
 */
#ifndef TESTS_SUPPORT_KINDS_H
#define TESTS_SUPPORT_KINDS_H

#include "base/complete.h"
#include "core/backend.h"

#include <stdbool.h>

/* Sets for HF__ROWS_ARE: what hf_lock_open() knows, and what is a lock of its own on Redis. */
#define KINDS_OF_LOCKS (HF__BITS_BEFORE(HF__GROUP) & ~HF__BIT(0))
#define KINDS_ON_REDIS (KINDS_OF_LOCKS & ~HF__BIT(HF_PLAIN) & ~HF__BIT(HF_LEADER))

/* Of a kind that hf_lock_open() knows, or of HF__GROUP. */
static inline bool kind_nests(int kind)
{
	switch ((hf_kind)kind) {
	case HF_SIMPLE:
	case HF_SIMPLE_FAIR:
	case HF_PLAIN: return false;
	case HF_REENTRANT:
	case HF_FAIR:
	case HF_READ:
	case HF_WRITE:
	case HF_FENCED:
	case HF_SPIN:
	case HF_LEADER: break;
	}
	return true;
}

#endif
