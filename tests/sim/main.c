/* Runs seeds, shows a failing one with the command that repeats it, and hunts the mutants. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS          8
#define SHOWN_LINES   40
#define MUTANT_SEEDS  5000
#define HEALTHY_SEEDS 500

struct options {
	uint64_t seeds;
	uint64_t first;
	uint64_t seed;
	int jobs;
	bool one;
	bool trace;
	bool mutants;
};

/* What the processes tell each other. */
struct shared {
	struct totals totals[JOBS];
	uint64_t seed; /* the one that runs, or failed */
	char check[32];
};

static struct shared *shared;
static const char *program;
static bool quiet;
static struct world world;

static void print_last_lines(const struct world *at)
{
	uint64_t first = at->lines > SHOWN_LINES ? at->lines - SHOWN_LINES : 0;
	for (uint64_t i = first; i < at->lines; i++)
		world_print_line(&at->line[i % TRACE_LINES]);
}

void main_failed(const struct world *at, const char *check, const char *text)
{
	snprintf(shared->check, sizeof shared->check, "%s", check);
	shared->seed = at->seed;
	if (!quiet) {
		if (!at->print)
			print_last_lines(at);
		printf("seed %llu: %s: %s\n", (unsigned long long)at->seed, check, text);
		printf("repeat with: %s --seed %llu --trace\n", program,
		       (unsigned long long)at->seed);
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
	bool show = job == 0 && isatty(STDERR_FILENO);
	for (uint64_t i = (uint64_t)job; i < options->seeds; i += (uint64_t)options->jobs) {
		world_run(&world, options->first + i, false);
		if (show && i % 64 == 0)
			fprintf(stderr, "\r%llu of %llu", (unsigned long long)i,
			        (unsigned long long)options->seeds);
	}
	if (show)
		fprintf(stderr, "\r%*s\r", 40, "");
	shared->totals[job] = world.totals;
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
	struct totals sum = {0};
	for (int i = 0; i < options->jobs; i++) {
		const struct totals *part = &shared->totals[i];
		sum.seeds += part->seeds;
		sum.steps += part->steps;
		sum.grants += part->grants;
		sum.renewals += part->renewals;
		sum.losses += part->losses;
		sum.releases += part->releases;
		sum.faults += part->faults;
		sum.waits += part->waits;
	}
	printf("%llu seeds, %.0f per second, %llu steps: %llu grants, %llu releases, %llu waits, "
	       "%llu renewals, %llu losses, %llu faults\n",
	       (unsigned long long)sum.seeds, (double)sum.seeds / took,
	       (unsigned long long)sum.steps, (unsigned long long)sum.grants,
	       (unsigned long long)sum.releases, (unsigned long long)sum.waits,
	       (unsigned long long)sum.renewals, (unsigned long long)sum.losses,
	       (unsigned long long)sum.faults);
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
	world_run(&world, options->seed, options->trace);
	printf("seed %llu: trace hash %016llx, %llu lines\n", (unsigned long long)options->seed,
	       (unsigned long long)world.hash, (unsigned long long)world.lines);
	return 0;
}

#ifdef HF_MUTANTS
static const char *const mutant_names[HF__MUTANTS] = {
	"none",           "reply time",     "reused wire", "no second ask",
	"double release", "renew released", "one miss",    "nested shortens",
	"no drift",       "wake is grant",  "blind move",
};

static void run_mutant(int mutant, uint64_t first, uint64_t seeds)
{
	hf__mutant = (enum hf__mutant)mutant;
	quiet = mutant != HF__MUTANT_NONE;
	for (uint64_t i = 0; i < seeds; i++) {
		shared->seed = first + i;
		world_run(&world, first + i, false);
	}
	exit(0);
}

/* A crash is a kill too, but of a lesser sort. */
static int hunt(int mutant, uint64_t first)
{
	uint64_t seeds = mutant == HF__MUTANT_NONE ? HEALTHY_SEEDS : MUTANT_SEEDS;
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
	return alive != (mutant == HF__MUTANT_NONE);
}

static int hunt_all(const struct options *options)
{
	int failed = 0;
	for (int i = 0; i < HF__MUTANTS; i++)
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
	if (!argv[*at + 1])
		return 0;
	return strtoull(argv[++*at], NULL, 10);
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
