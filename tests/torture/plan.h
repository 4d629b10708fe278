/* What a run of torture consists of, as its command line says. */
#ifndef TESTS_TORTURE_PLAN_H
#define TESTS_TORTURE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "torture/site.h"

struct plan {
	double minutes;
	uint64_t seed;
	bool site[SITES];
	bool has_java;
	bool stops; /* at the first violation */
	int mutant, red_mutant;
	uint64_t kinds; /* which faults may happen, one bit each */
	int pause_ms;   /* the longest time between two of them; 0: it depends on the seed */
};

/* Ends the program if an argument is wrong. */
struct plan plan_read(int argc, char **argv);

/*
 * Selects the sites in the list, which are separated by commas; NULL: all of them. Those that this
 * build lacks are left out. Returns false, with the reason, if a name is unknown or none is left.
 */
bool plan_select_sites(struct plan *plan, const char *list, char *ret_why, size_t size);

#endif
