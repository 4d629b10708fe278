/* The process-wide counters: numbers that are never given twice in this process. */
#ifndef HF_BASE_NUMBER_H
#define HF_BASE_NUMBER_H

#include <stdint.h>

/* For an owner. */
uint64_t hf__number_of_owner(void);

/* The calling thread's own, from the same counter; unlike a thread id it is never reused. */
uint64_t hf__number_of_thread(void);

/* The first of n in a row, for acquisitions. A counter of its own keeps those of threads together. */
uint64_t hf__number_on_wire(uint32_t n);

#endif
