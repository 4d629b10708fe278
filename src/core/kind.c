/* The names of the kinds, as people read them. */
#include "base/complete.h"
#include "core/backend.h"

#include <assert.h>

/* clang-format off */
#define WORD_ROWS(ROW)                                                                             \
	ROW(HF_REENTRANT, "reentrant") ROW(HF_FAIR, "fair")                                        \
	ROW(HF_READ, "read") ROW(HF_WRITE, "write")                                                \
	ROW(HF_FENCED, "fenced") ROW(HF_SPIN, "spin")                                              \
	ROW(HF_SIMPLE, "simple") ROW(HF_SIMPLE_FAIR, "simple-fair")                                \
	ROW(HF_PLAIN, "plain") ROW(HF_LEADER, "leader")                                            \
	ROW(HF__GROUP, "group") ROW(HF__SEMAPHORE, "semaphore")                                    \
	ROW(HF__PERMITS, "permits") ROW(HF__LATCH, "latch")                                        \
	ROW(HF__BARRIER, "barrier") ROW(HF__MEMBER, "member")                                      \
	ROW(HF__EXIT, "exit")
/* clang-format on */

HF__ROWS_ARE(WORD_ROWS, HF__BITS_BEFORE(HF__KINDS) & ~HF__BIT(0));

const char *hf__kind_word(int kind)
{
	static const char *const word[HF__KINDS] = {WORD_ROWS(HF__ROW)};
	assert(kind >= HF_REENTRANT && kind < HF__KINDS);
	return word[kind];
}
