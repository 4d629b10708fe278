/* Runs seeds, shows a failing one with the command that repeats it, and hunts the mutants. */
#include "runner.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS 8

struct options {
	uint64_t seeds;
	uint64_t first;
	uint64_t seed;
	int jobs;
	bool one;
	bool trace;
	bool mutants;
};

/* What the processes report to each other. */
struct shared {
	uint64_t totals[JOBS][RUNNER_TOTALS];
	uint64_t seed; /* the one that runs, or failed */
	char check[32];
};

static const struct runner *sim;
static struct shared *shared;
static const char *program;
static bool quiet;

void runner_fail(uint64_t seed, const char *check, const char *text)
{
	snprintf(shared->check, sizeof shared->check, "%s", check);
	shared->seed = seed;
	if (!quiet) {
		sim->print_lines();
		printf("seed %llu: %s: %s\n", (unsigned long long)seed, check, text);
		printf("repeat with: %s --seed %llu --trace\n", program, (unsigned long long)seed);
	}
	fflush(stdout);
	_exit(1);
}

/* ---- many seeds ---- */

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run_some(const struct options *options, int job)
{
	bool show = job == 0 && isatty(STDERR_FILENO);
	for (uint64_t i = (uint64_t)job; i < options->seeds; i += (uint64_t)options->jobs) {
		sim->run(options->first + i, false);
		if (show && i % 64 == 0)
			fprintf(stderr, "\r%llu of %llu", (unsigned long long)i,
			        (unsigned long long)options->seeds);
	}
	if (show)
		fprintf(stderr, "\r%*s\r", 40, "");
	memcpy(shared->totals[job], sim->totals, (size_t)sim->totals_count * sizeof(uint64_t));
}

static int wait_for_all(int jobs)
{
	int failed = 0;
	for (int i = 0; i < jobs; i++) {
		int status = 0;
		wait(&status);
		failed |= !WIFEXITED(status) || WEXITSTATUS(status);
	}
	return failed;
}

static void print_totals(const struct options *options, double took)
{
	uint64_t sum[RUNNER_TOTALS] = {0};
	for (int i = 0; i < options->jobs; i++)
		for (int j = 0; j < sim->totals_count; j++)
			sum[j] += shared->totals[i][j];
	sim->print_totals(sum, took);
}

static int run_all(const struct options *options)
{
	double began = seconds();
	int failed = 0;
	fflush(stdout);
	for (int i = 0; i < options->jobs && options->jobs > 1; i++) {
		if (fork() != 0)
			continue;
		run_some(options, i);
		exit(0);
	}
	if (options->jobs > 1)
		failed = wait_for_all(options->jobs);
	else
		run_some(options, 0);
	if (!failed)
		print_totals(options, seconds() - began);
	return failed;
}

static int run_one(const struct options *options)
{
	sim->run(options->seed, options->trace);
	printf("seed %llu: trace hash %016llx, %llu lines\n", (unsigned long long)options->seed,
	       (unsigned long long)*sim->hash, (unsigned long long)*sim->lines);
	return 0;
}

/* ---- mutants ---- */

static void run_mutant(int mutant, uint64_t first, uint64_t seeds)
{
	sim->set_mutant(mutant);
	quiet = mutant != 0;
	for (uint64_t i = 0; i < seeds; i++) {
		shared->seed = first + i;
		sim->run(first + i, false);
	}
	exit(0);
}

/* A crash is a kill too, but of a lesser sort. */
static int hunt(int mutant, uint64_t first)
{
	if (sim->mutant_firsts && sim->mutant_firsts[mutant] > first)
		first = sim->mutant_firsts[mutant];
	uint64_t seeds = mutant == 0 ? sim->healthy_seeds : sim->mutant_seeds;
	int status = 0;
	shared->check[0] = 0;
	fflush(stdout);
	if (fork() == 0)
		run_mutant(mutant, first, seeds);
	wait(&status);
	bool alive = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (alive)
		printf("%-16s survived %llu seeds\n", sim->mutants[mutant],
		       (unsigned long long)seeds);
	else
		printf("%-16s killed by seed %llu: %s\n", sim->mutants[mutant],
		       (unsigned long long)shared->seed,
		       WIFEXITED(status) ? shared->check : "it crashed");
	return alive != (mutant == 0);
}

static int hunt_all(const struct options *options)
{
	int failed = 0;
	if (!sim->mutants) {
		fprintf(stderr, "built without mutants\n");
		return 2;
	}
	for (int i = 0; i < sim->mutants_count; i++)
		failed |= hunt(i, options->first);
	return failed;
}

/* ---- options ---- */

static uint64_t number_after(char **argv, int *at)
{
	return argv[*at + 1] ? strtoull(argv[++*at], NULL, 10) : 0;
}

static bool read_options(char **argv, struct options *options)
{
	for (int i = 1; argv[i]; i++) {
		if (strcmp(argv[i], "--seeds") == 0) {
			options->seeds = number_after(argv, &i);
		} else if (strcmp(argv[i], "--first") == 0) {
			options->first = number_after(argv, &i);
		} else if (strcmp(argv[i], "--seed") == 0) {
			options->seed = number_after(argv, &i);
			options->one = true;
		} else if (strcmp(argv[i], "--jobs") == 0) {
			options->jobs = (int)number_after(argv, &i);
		} else if (strcmp(argv[i], "--trace") == 0) {
			options->trace = true;
		} else if (strcmp(argv[i], "--mutants") == 0) {
			options->mutants = true;
		} else {
			return false;
		}
	}
	return options->jobs >= 1 && options->jobs <= JOBS;
}

int runner_main(const struct runner *runner, char **argv)
{
	struct options options = {.seeds = 1000, .first = 1, .jobs = 1};
	assert(runner->totals_count <= RUNNER_TOTALS);
	sim = runner;
	program = argv[0];
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (shared == MAP_FAILED || !read_options(argv, &options)) {
		fprintf(stderr,
		        "usage: %s [--seeds N] [--first S] [--jobs N]\n"
		        "       %s --seed S [--trace]\n"
		        "       %s --mutants [--first S]\n",
		        program, program, program);
		return 2;
	}
	if (options.mutants)
		return hunt_all(&options);
	return options.one ? run_one(&options) : run_all(&options);
}
