/* The names of the kinds, as people read them. */
#include "core/backend.h"

#include <assert.h>

_Static_assert(HF__KINDS == 18, "every kind has a name here");

const char *hf__kind_word(int kind)
{
	static const char *const word[HF__KINDS] = {
		[HF_REENTRANT] = "reentrant", [HF_FAIR] = "fair",
		[HF_READ] = "read",           [HF_WRITE] = "write",
		[HF_FENCED] = "fenced",       [HF_SPIN] = "spin",
		[HF_SIMPLE] = "simple",       [HF_SIMPLE_FAIR] = "simple-fair",
		[HF_PLAIN] = "plain",         [HF_LEADER] = "leader",
		[HF__GROUP] = "group",        [HF__SEMAPHORE] = "semaphore",
		[HF__PERMITS] = "permits",    [HF__LATCH] = "latch",
		[HF__BARRIER] = "barrier",    [HF__MEMBER] = "member",
		[HF__EXIT] = "exit",
	};
	assert(kind >= HF_REENTRANT && kind < HF__KINDS);
	return word[kind];
}
