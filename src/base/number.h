/* The process-wide counter: numbers that are never given twice in this process. */
#ifndef HF_BASE_NUMBER_H
#define HF_BASE_NUMBER_H

#include <stdint.h>

uint64_t hf__number_next(void);

/* The calling thread's own number, from the same counter; unlike a thread id it is never reused. */
uint64_t hf__number_of_thread(void);

#endif
