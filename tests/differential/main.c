/*
 * Plays random sequences of calls on everything that is available, and compares what they leave.
 *
 * The library on the first server is compared with the library on each other server, with the core
 * on the simulator's model, and with Redisson. Each job is a process with servers of its own.
 */
#include "differential/differences.h"
#include "differential/side.h"

#include <holdfast/holdfast.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"

#define MAX_JOBS    16
#define MAX_SERVERS 4
#define MAX_SIDES   (MAX_SERVERS + 2)
/* A sequence that was late is played again, since the machine may have been busy. */
#define MAX_PLAYS 5

struct options {
	uint64_t first, seeds;
	int jobs;
	bool with_redisson;
	bool redisson_only; /* no model */
	bool prints;
	int servers;
	const char *server[MAX_SERVERS];
};

/* What one job counts. */
struct totals {
	uint64_t sequences;
	uint64_t calls;
	uint64_t compared[MAX_SIDES]; /* calls, with each side */
	uint64_t diverged;
	uint64_t late; /* sequences that were late each time, and are left out */
	uint64_t met[DIFFERENCES_MAX];
};

/* In memory that all jobs share. */
struct results {
	atomic_ullong taken;      /* seeds, from the first on */
	char name[MAX_SIDES][64]; /* of each side */
	struct totals totals[MAX_JOBS];
};

struct job {
	const struct options *options;
	const char *program;
	struct totals *totals;
	int sides;
	struct side *side[MAX_SIDES];
	enum differences_with with[MAX_SIDES];
};

/* ---- records ---- */

static const char *error_name(int rc)
{
	switch (rc) {
#define ERROR_NAME(name, number, text)                                                             \
	case name: return #name;
		HF_ERRORS(ERROR_NAME)
#undef ERROR_NAME
	default: return "0";
	}
}

void record_answer(struct record *record, int i, int rc, const long long *number)
{
	if (!rc && number)
		record->answer[i] = check_format("0 %lld", *number);
	else
		record->answer[i] = check_format("%s", error_name(rc));
}

void record_keys(struct record *record, int i, const struct sequence_call *call, char *keys)
{
	if (sequence_outlasts(call))
		keys[0] = 0;
	record->keys[i] = keys;
}

void record_clear(struct record *record)
{
	for (int i = 0; i < SEQUENCE_MAX; i++) {
		free(record->answer[i]);
		free(record->keys[i]);
	}
	*record = (struct record){0};
}

/* ---- one sequence ---- */

static bool can_play(const struct job *job, int i, const struct sequence *sequence)
{
	return job->side[i]->can_play(job->side[i], sequence);
}

/* Whether there is something to compare with. */
static bool is_wanted(const struct job *job, const struct sequence *sequence)
{
	bool found = false;
	for (int i = 1; i < job->sides; i++)
		found = found || can_play(job, i, sequence);
	return found;
}

static bool play_in_time(struct side *side, const struct sequence *sequence, struct record *record)
{
	for (int i = 0; i < MAX_PLAYS; i++) {
		record_clear(record);
		side->play(side, sequence, record);
		if (!record->is_late)
			return true;
	}
	return false;
}

static void print_moment(const char *name, const struct record *record, int i)
{
	printf("      %s: %s\n", name, record->answer[i]);
	for (const char *line = record->keys[i]; *line; line += strcspn(line, "\n") + 1)
		printf("        %.*s\n", (int)strcspn(line, "\n"), line);
}

static void print_calls(const struct sequence *sequence, int last, const struct record *record)
{
	char text[160];
	for (int i = 0; i <= last; i++) {
		sequence_describe(&sequence->call[i], text, sizeof text);
		printf("%4d  %-50s %s\n", i + 1, text, record->answer[i]);
	}
}

/* The calls before the first difference are the shortest prefix that shows it. */
static void report(const struct job *job, const struct sequence *sequence, int i,
                   const struct record *record, int other)
{
	printf("seed %llu: %s differs from %s after call %d of %d:\n",
	       (unsigned long long)sequence->seed, job->side[other]->name, job->side[0]->name,
	       i + 1, sequence->calls);
	print_calls(sequence, i, &record[0]);
	print_moment(job->side[0]->name, &record[0], i);
	print_moment(job->side[other]->name, &record[other], i);
	printf("repeat with: %s --seed %llu", job->program, (unsigned long long)sequence->seed);
	if (job->options->with_redisson)
		printf(" --redisson");
	for (int j = 0; j < job->options->servers; j++)
		printf(" %s", job->options->server[j]);
	printf("\n");
	fflush(stdout);
}

static struct moment moment_of(const struct record *record, int i)
{
	return (struct moment){record->answer[i], record->keys[i]};
}

static bool compare(struct job *job, const struct sequence *sequence, const struct record *record,
                    int other)
{
	struct comparison comparison = {.with = job->with[other], .met = job->totals->met};
	for (int i = 0; i < sequence->calls && !comparison.diverged; i++) {
		struct moment ours = moment_of(&record[0], i);
		struct moment theirs = moment_of(&record[other], i);
		job->totals->compared[other]++;
		if (!differences_accept(&comparison, &sequence->call[i], &ours, &theirs)) {
			report(job, sequence, i, record, other);
			return false;
		}
	}
	job->totals->diverged += comparison.diverged;
	return true;
}

static void count_sequence(struct totals *totals, const struct sequence *sequence, bool is_late)
{
	totals->late += is_late;
	totals->sequences += !is_late;
	totals->calls += is_late ? 0 : (uint64_t)sequence->calls;
}

static bool run_seed(struct job *job, uint64_t seed)
{
	struct sequence sequence;
	struct record record[MAX_SIDES] = {{0}};
	bool is_good = true;
	bool is_late = false;
	sequence_make(&sequence, seed);
	if (!is_wanted(job, &sequence))
		return true;
	for (int i = 0; i < job->sides && !is_late; i++)
		if (can_play(job, i, &sequence))
			is_late = !play_in_time(job->side[i], &sequence, &record[i]);
	for (int i = 1; i < job->sides && !is_late; i++)
		if (can_play(job, i, &sequence))
			is_good = compare(job, &sequence, record, i) && is_good;
	if (job->options->prints && !is_late && is_good)
		print_calls(&sequence, sequence.calls - 1, &record[0]);
	count_sequence(job->totals, &sequence, is_late);
	for (int i = 0; i < job->sides; i++)
		record_clear(&record[i]);
	return is_good;
}

/* ---- jobs ---- */

static void add_side(struct job *job, enum differences_with with, struct side *side)
{
	job->with[job->sides] = with;
	job->side[job->sides++] = side;
}

static void open_sides(struct job *job, bool is_first)
{
	const struct options *options = job->options;
	for (int i = 0; i < options->servers; i++)
		add_side(job, WITH_SERVER, library_open(options->server[i]));
	if (!options->redisson_only)
		add_side(job, WITH_MODEL, model_open());
	if (options->with_redisson)
		add_side(job, WITH_REDISSON, redisson_open(options->server[0], is_first));
}

/* Takes the next seed until there is none, or one has failed. */
static int run_job(const struct options *options, const char *program, int n,
                   struct results *results)
{
	struct job job = {.options = options, .program = program, .totals = &results->totals[n]};
	bool is_good = true;
	open_sides(&job, n == 0);
	for (int i = 0; n == 0 && i < job.sides; i++)
		snprintf(results->name[i], sizeof results->name[i], "%s", job.side[i]->name);
	while (is_good) {
		uint64_t taken = atomic_fetch_add(&results->taken, 1);
		if (taken >= options->seeds)
			break;
		is_good = run_seed(&job, options->first + taken);
	}
	for (int i = 0; i < job.sides; i++)
		job.side[i]->close(job.side[i]);
	return !is_good;
}

static int run_jobs(const struct options *options, const char *program, struct results *results)
{
	int failed = 0;
	for (int i = 0; i < options->jobs; i++) {
		fflush(stdout);
		if (fork() == 0)
			exit(run_job(options, program, i, results));
	}
	for (int i = 0; i < options->jobs; i++) {
		int status = 0;
		(void)wait(&status);
		int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		failed = failed == 1 || !code ? failed : code;
	}
	return failed;
}

/* ---- results ---- */

static struct totals sum_up(const struct totals *totals, int jobs)
{
	struct totals sum = {0};
	uint64_t *to = (uint64_t *)&sum;
	for (int i = 0; i < jobs; i++)
		for (size_t j = 0; j < sizeof sum / sizeof *to; j++)
			to[j] += ((const uint64_t *)&totals[i])[j];
	return sum;
}

static bool is_compared(const struct options *options, enum differences_with with)
{
	return with == WITH_REDISSON ? options->with_redisson : !options->redisson_only;
}

static void print_differences(const struct options *options, const struct totals *sum)
{
	for (int i = 0; i < differences_count(); i++)
		if (is_compared(options, differences_of(i)) && sum->met[i])
			printf("  %6llu times: %s\n", (unsigned long long)sum->met[i],
			       differences_name(i));
	for (int i = 0; i < differences_count(); i++)
		if (is_compared(options, differences_of(i)) && !sum->met[i])
			printf("  did not apply in this run: %s\n", differences_name(i));
}

/* Returns whether anything was compared. */
static bool print_results(const struct options *options, const struct results *results)
{
	struct totals sum = sum_up(results->totals, options->jobs);
	printf("%llu sequences, %llu calls with the library on %s\n",
	       (unsigned long long)sum.sequences, (unsigned long long)sum.calls, results->name[0]);
	for (int i = 1; i < MAX_SIDES; i++)
		if (sum.compared[i])
			printf("  %llu calls compared with %s\n",
			       (unsigned long long)sum.compared[i], results->name[i]);
	if (sum.diverged)
		printf("  %llu sequences were compared up to a difference after which both sides "
		       "go their own ways\n",
		       (unsigned long long)sum.diverged);
	if (sum.late)
		printf("  %llu sequences were left out, because the machine was too slow for "
		       "them\n",
		       (unsigned long long)sum.late);
	print_differences(options, &sum);
	if (!sum.sequences)
		printf("no sequence was compared\n");
	return sum.sequences > 0;
}

/* ---- the command line ---- */

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
			options->first = number_after(argv, &i);
			options->seeds = 1;
			options->prints = true;
		} else if (strcmp(argv[i], "--jobs") == 0) {
			options->jobs = (int)number_after(argv, &i);
		} else if (strcmp(argv[i], "--redisson") == 0) {
			options->with_redisson = true;
		} else if (strcmp(argv[i], "--redisson-only") == 0) {
			options->with_redisson = options->redisson_only = true;
		} else if (argv[i][0] != '-' && options->servers < MAX_SERVERS) {
			options->server[options->servers++] = argv[i];
		} else {
			return false;
		}
	}
	return options->jobs >= 1 && options->jobs <= MAX_JOBS && options->seeds;
}

int main(int argc, char **argv)
{
	struct options options = {.first = 1, .seeds = 100, .jobs = 1};
	(void)argc;
	if (!read_options(argv, &options)) {
		fprintf(stderr,
		        "usage: %s [--seeds N] [--first S] [--jobs N] [--redisson] [SERVER...]\n"
		        "       %s --seed S [--redisson] [SERVER...]\n",
		        argv[0], argv[0]);
		return 2;
	}
	if (!options.servers) {
		const char *server = getenv("HF_TEST_SERVER");
		options.server[options.servers++] = server ? server : "redis-server";
	}
	struct results *results = mmap(NULL, sizeof(*results), PROT_READ | PROT_WRITE,
	                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		return 1;
	/* A report is written at once, so that those of several jobs do not mix. */
	(void)setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	int failed = run_jobs(&options, argv[0], results);
	if (failed == CHECK_SKIPPED)
		return failed;
	return print_results(&options, results) ? failed : 1;
}
