/* Threads that count with a counter which only a lock protects. */
#ifndef TESTS_SUPPORT_COUNTING_H
#define TESTS_SUPPORT_COUNTING_H

#include <holdfast/holdfast.h>

#include <stdbool.h>

struct counting {
	hf_lock *const *locks; /* handles of one lock; the threads take them in turns */
	int n;                 /* how many handles */
	int threads;
	int rounds;       /* of each thread */
	int64_t lease_ms; /* of every second round; 0: the watchdog's, as in the other rounds */
	bool slow;        /* every eighth round takes a while */
};

/* Runs the threads to their end. Fails the test if a call failed or a count was lost. */
void count_together(const struct counting *counting);
#define COUNT_TOGETHER(...) count_together(&(struct counting){__VA_ARGS__})

#endif
