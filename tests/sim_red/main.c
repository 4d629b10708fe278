/* Runs seeds, shows a failing one with the command that repeats it, and hunts the mutants. */
#include "red.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS          8
#define MUTANT_SEEDS  8000
#define HEALTHY_SEEDS 300

struct options {
	uint64_t seeds, first, seed;
	int jobs;
	bool one, trace, mutants;
};

/* What the processes report to each other. */
struct shared {
	uint64_t totals[JOBS][sizeof red.totals / sizeof(uint64_t)];
	uint64_t seed; /* the one that runs, or failed */
	char check[32];
};

static struct shared *shared;
static const char *program;
static bool quiet;

void red_failed(const char *check, const char *text)
{
	snprintf(shared->check, sizeof shared->check, "%s", check);
	shared->seed = red.seed;
	if (!quiet) {
		if (!red.print)
			universe_print_lines();
		printf("seed %llu: %s: %s\n", (unsigned long long)red.seed, check, text);
		printf("repeat with: %s --seed %llu --trace\n", program,
		       (unsigned long long)red.seed);
	}
	fflush(stdout);
	_exit(1);
}

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run_some(const struct options *options, int job)
{
	for (uint64_t i = (uint64_t)job; i < options->seeds; i += (uint64_t)options->jobs)
		universe_run(options->first + i, false);
	memcpy(shared->totals[job], &red.totals, sizeof red.totals);
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
	uint64_t sum[sizeof red.totals / sizeof(uint64_t)] = {0};
	for (int i = 0; i < options->jobs; i++)
		for (size_t j = 0; j < sizeof sum / sizeof *sum; j++)
			sum[j] += shared->totals[i][j];
	memcpy(&red.totals, sum, sizeof sum);
	printf("%llu seeds, %.0f per second, %llu steps: %llu grants, %llu releases, %llu members "
	       "taken again, %llu losses, %llu servers failed\n",
	       (unsigned long long)red.totals.seeds, (double)red.totals.seeds / took,
	       (unsigned long long)red.totals.steps, (unsigned long long)red.totals.grants,
	       (unsigned long long)red.totals.releases, (unsigned long long)red.totals.retaken,
	       (unsigned long long)red.totals.losses, (unsigned long long)red.totals.faults);
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
	universe_run(options->seed, options->trace);
	printf("seed %llu: trace hash %016llx, %llu lines\n", (unsigned long long)options->seed,
	       (unsigned long long)red.hash, (unsigned long long)red.lines);
	return 0;
}

#ifdef HF_MUTANTS
static const char *const mutant_names[HF__RED_MUTANTS] = {
	"none",     "extra retake",    "unchecked",    "kept",
	"forgiven", "foreign release", "busy release", "old levels",
};

static void run_mutant(int mutant, uint64_t first, uint64_t seeds)
{
	hf__red_mutant = (enum hf__red_mutant)mutant;
	quiet = mutant != HF__RED_MUTANT_NONE;
	for (uint64_t i = 0; i < seeds; i++) {
		shared->seed = first + i;
		universe_run(first + i, false);
	}
	exit(0);
}

/* A crash is a kill too, but of a lesser sort. */
static int hunt(int mutant, uint64_t first)
{
	uint64_t seeds = mutant == HF__RED_MUTANT_NONE ? HEALTHY_SEEDS : MUTANT_SEEDS;
	int status = 0;
	shared->check[0] = 0;
	fflush(stdout);
	if (fork() == 0)
		run_mutant(mutant, first, seeds);
	wait(&status);
	bool alive = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (alive)
		printf("%-16s survived %llu seeds\n", mutant_names[mutant],
		       (unsigned long long)seeds);
	else
		printf("%-16s killed by seed %llu: %s\n", mutant_names[mutant],
		       (unsigned long long)shared->seed,
		       WIFEXITED(status) ? shared->check : "it crashed");
	return alive != (mutant == HF__RED_MUTANT_NONE);
}

static int hunt_all(const struct options *options)
{
	int failed = 0;
	for (int i = 0; i < HF__RED_MUTANTS; i++)
		failed |= hunt(i, options->first);
	return failed;
}
#else
static int hunt_all(const struct options *options)
{
	(void)options;
	fprintf(stderr, "built without mutants\n");
	return 2;
}
#endif

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

int main(int argc, char **argv)
{
	struct options options = {.seeds = 1000, .first = 1, .jobs = 1};
	(void)argc;
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
