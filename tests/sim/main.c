/* The simulator of the core as a program. */
#include "sim.h"

#include "runner.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_LINES 40

static struct world world;

static void run(uint64_t seed, bool print)
{
	world_run(&world, seed, print);
}

static void print_lines(void)
{
	uint64_t first = world.lines > SHOWN_LINES ? world.lines - SHOWN_LINES : 0;
	if (world.print)
		return;
	for (uint64_t i = first; i < world.lines; i++)
		world_print_line(&world.line[i % TRACE_LINES]);
}

static void print_totals(const uint64_t *sum, double seconds)
{
	struct totals totals;
	memcpy(&totals, sum, sizeof totals);
	printf("%llu seeds, %.0f per second, %llu steps: %llu grants, %llu releases, %llu waits, "
	       "%llu renewals, %llu losses, %llu faults\n",
	       (unsigned long long)totals.seeds, (double)totals.seeds / seconds,
	       (unsigned long long)totals.steps, (unsigned long long)totals.grants,
	       (unsigned long long)totals.releases, (unsigned long long)totals.waits,
	       (unsigned long long)totals.renewals, (unsigned long long)totals.losses,
	       (unsigned long long)totals.faults);
}

#ifdef HF_MUTANTS
static const char *const mutant_names[] = {
	"none",           "reply time",   "reused wire",     "no second ask",  "double release",
	"renew released", "one miss",     "nested shortens", "no drift",       "wake is grant",
	"blind move",     "few replicas", "blind sync",      "force one kind", "enter twice",
};
_Static_assert(sizeof mutant_names / sizeof *mutant_names == HF__MUTANTS, "each has a name");

static void set_mutant(int mutant)
{
	hf__mutant = (enum hf__mutant)mutant;
}
#endif

int main(int argc, char **argv)
{
	(void)argc;
	return runner_main(
		&(struct runner){
			.run = run,
			.print_lines = print_lines,
			.totals = &world.totals.seeds,
			.totals_count = sizeof world.totals / sizeof(uint64_t),
			.print_totals = print_totals,
			.hash = &world.hash,
			.lines = &world.lines,
#ifdef HF_MUTANTS
			.mutants = mutant_names,
			.mutants_count = HF__MUTANTS,
			.set_mutant = set_mutant,
			.mutant_seeds = 5000,
			.healthy_seeds = 500,
#endif
		},
		argv);
}
