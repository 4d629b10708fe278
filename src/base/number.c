/* The process-wide counter: numbers that are never given twice in this process. */
#include "base/number.h"

#include <stdatomic.h>

static _Atomic uint64_t last;
static _Thread_local uint64_t mine;

uint64_t hf__number_next(void)
{
	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

uint64_t hf__number_of_thread(void)
{
	if (!mine)
		mine = hf__number_next();
	return mine;
}
