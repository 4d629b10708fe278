/* The process-wide counters, which never give a number twice. */
#ifndef HF_BASE_NUMBER_H
#define HF_BASE_NUMBER_H

#include <stdint.h>

/* A number for an owner. */
uint64_t hf__number_of_owner(void);

/* The calling thread's number, from the same counter; unlike a thread id it is never reused. */
uint64_t hf__number_of_thread(void);

/* The first of n consecutive wire owners. They have a counter of their own. */
uint64_t hf__number_on_wire(uint32_t n);

#endif
