/* The command line of a simulator: runs seeds in one process or several, and hunts mutants. */
#ifndef TESTS_SIM_RUNNER_H
#define TESTS_SIM_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#define RUNNER_TOTALS 16

struct runner {
	void (*run)(uint64_t seed, bool print); /* fails with runner_fail() */
	void (*print_lines)(void); /* the end of the trace, unless it was printed already */
	/*
	 * What is counted over all seeds of this process, and how the sum of all processes is
	 * printed.
	 */
	const uint64_t *totals;
	int totals_count;
	void (*print_totals)(const uint64_t *sum, double seconds);
	/* Of the seed that ran last. */
	const uint64_t *hash;
	const uint64_t *lines;
	/* Deliberate faults, of which number 0 is none at all. */
	const char *const *mutants; /* their names; NULL in a build without them */
	int mutants_count;
	void (*set_mutant)(int mutant);
	/* Seeds at which to begin, for mutants that few notice; NULL, or 0 for the usual one. */
	const uint64_t *mutant_firsts;
	uint64_t mutant_seeds;  /* each must be noticed within this many */
	uint64_t healthy_seeds; /* without a fault this many must pass */
};

int runner_main(const struct runner *runner, char **argv);

/* Reports the seed with the command that repeats it, and ends the process. */
_Noreturn void runner_fail(uint64_t seed, const char *check, const char *text);

#endif
