/* The process-wide counters, which never give a number twice. */
#include "base/number.h"

#include <assert.h>
#include <stdatomic.h>

static _Atomic uint64_t last_owner;
static _Atomic uint64_t last_on_wire;
static _Thread_local uint64_t mine;

uint64_t hf__number_of_owner(void)
{
	return atomic_fetch_add_explicit(&last_owner, 1, memory_order_relaxed) + 1;
}

uint64_t hf__number_of_thread(void)
{
	if (!mine)
		mine = hf__number_of_owner();
	return mine;
}

uint64_t hf__number_on_wire(uint32_t n)
{
	assert(n > 0);
	return atomic_fetch_add_explicit(&last_on_wire, n, memory_order_relaxed) + 1;
}
