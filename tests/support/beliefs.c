/*
 * What many processes believe about the locks they hold, recorded in shared memory, and how these
 * beliefs are judged.
 */
#include "support/beliefs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"

/* Java computes the place of a record from these. */
_Static_assert(sizeof(struct belief) == 152, "Believer.java knows this size");
_Static_assert(offsetof(struct beliefs_party, belief) == 8, "and that the count precedes");

/* Faults of one kind beyond this number are counted, but not printed. */
#define MOST_PRINTED 10

/* How long before the end of a master its replicas may have heard of it for the last time. */
#define LAG_US 1000000

int64_t beliefs_now(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * (int64_t)1000000 + now.tv_nsec / 1000;
}

struct beliefs *beliefs_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(struct beliefs)))
		check_fail("%s: %s", path, strerror(errno));
	void *memory =
		mmap(NULL, sizeof(struct beliefs), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		check_fail("%s: %s", path, strerror(errno));
	(void)close(fd);
	return memory;
}

void beliefs_unmap(struct beliefs *beliefs)
{
	(void)munmap(beliefs, sizeof(*beliefs));
}

struct belief *beliefs_open_one(struct beliefs *beliefs, int party)
{
	struct beliefs_party *notes = &beliefs->party[party];
	int64_t count = atomic_load(&notes->count);
	struct belief *belief = count ? &notes->belief[count - 1] : NULL;
	return belief && atomic_load(&belief->end) == BELIEF_OPEN ? belief : NULL;
}

/* ---- the beliefs of one name ---- */

struct trial {
	const struct beliefs_rules *rules;
	const struct beliefs_name *name;
	size_t count;
	struct belief **by_grant; /* in the order of granted_at */
	struct belief **by_end;   /* in the order of ended_at */
	struct beliefs_verdict verdict;
};

static int compare_times(int64_t one, int64_t other)
{
	return (one > other) - (one < other);
}

static int compare_grants(const void *one, const void *other)
{
	const struct belief *const *a = one, *const *b = other;
	return compare_times((*a)->granted_at, (*b)->granted_at);
}

static int compare_ends(const void *one, const void *other)
{
	const struct belief *const *a = one, *const *b = other;
	return compare_times((*a)->ended_at, (*b)->ended_at);
}

static void collect(struct trial *trial, struct beliefs *beliefs, int name)
{
	size_t all = 0;
	for (int i = 0; i < beliefs->parties; i++)
		all += (size_t)atomic_load(&beliefs->party[i].count);
	trial->by_grant = check_alloc((all + 1) * sizeof(struct belief *));
	trial->by_end = check_alloc((all + 1) * sizeof(struct belief *));
	for (int i = 0; i < beliefs->parties; i++)
		for (int64_t j = 0; j < atomic_load(&beliefs->party[i].count); j++)
			if (beliefs->party[i].belief[j].name == name)
				trial->by_grant[trial->count++] = &beliefs->party[i].belief[j];
	memcpy(trial->by_end, trial->by_grant, trial->count * sizeof(struct belief *));
	qsort(trial->by_grant, trial->count, sizeof(struct belief *), compare_grants);
	qsort(trial->by_end, trial->count, sizeof(struct belief *), compare_ends);
}

static void print_belief(const struct belief *belief)
{
	print_message("    %s from %" PRId64 " to %" PRId64 ", valid until %" PRId64
	              ", end %" PRId64 ", token %" PRId64 "\n",
	              belief->identity, belief->granted_at, belief->ended_at,
	              atomic_load(&belief->valid_until), atomic_load(&belief->end), belief->token);
}

static void add_fault(struct trial *trial, int *fault, const char *text,
                      const struct belief *belief, const struct belief *other)
{
	if (++*fault > MOST_PRINTED)
		return;
	print_message("  %s: %s\n", trial->name->name, text);
	print_belief(belief);
	if (other)
		print_belief(other);
}

/* ---- the rules ---- */

/* Redisson does not know how long its holds are valid. */
static bool is_of_java(const struct belief *belief)
{
	return atomic_load(&belief->valid_until) == INT64_MAX;
}

/* A loss has a cause: a master was replaced during the hold, or shortly before it. */
static bool is_loss_explained(const struct trial *trial, const struct belief *belief)
{
	const struct beliefs_rules *rules = trial->rules;
	for (int i = 0; i < rules->failovers; i++)
		if (rules->failover[i].begun_at <= belief->ended_at &&
		    belief->granted_at <= rules->failover[i].announced_at + rules->leave_us)
			return true;
	return false;
}

/* No lock is said to be held after its valid-until, and every loss is reported by then. */
static void judge_end(struct trial *trial, const struct belief *belief)
{
	struct beliefs_verdict *verdict = &trial->verdict;
	int64_t end = atomic_load(&belief->end), until = atomic_load(&belief->valid_until);
	verdict->losses += end == BELIEF_LOST;
	verdict->unknowns += end == BELIEF_UNKNOWN;
	if (end == BELIEF_OPEN)
		add_fault(trial, &verdict->late, "a belief has no end", belief, NULL);
	else if (belief->ended_at > until)
		add_fault(trial, &verdict->late, "held after valid-until", belief, NULL);
	if (end != BELIEF_LOST)
		return;
	if (!belief->reported_at)
		add_fault(trial, &verdict->late, "a loss was not reported", belief, NULL);
	else if (!is_of_java(belief) && belief->reported_at > until + trial->rules->report_us)
		add_fault(trial, &verdict->late, "a loss was reported late", belief, NULL);
	if (!is_loss_explained(trial, belief))
		add_fault(trial, &verdict->late, "lost without a failover", belief, NULL);
}

/* A hold that a new master lacks is lost by the valid-until that was known when this was seen. */
static void judge_missing(struct trial *trial, const struct belief *belief)
{
	int *fault = &trial->verdict.forgotten;
	trial->verdict.kept += belief->kept > 0;
	trial->verdict.missing += belief->missing_at > 0;
	if (!belief->missing_at)
		return;
	if (atomic_load(&belief->end) != BELIEF_LOST)
		add_fault(trial, fault, "missing at the new master, but not lost", belief, NULL);
	else if (belief->ended_at > belief->missing_until)
		add_fault(trial, fault, "missing at the new master, but renewed", belief, NULL);
	else if (trial->name->is_safe)
		add_fault(trial, fault, "all replicas had the hold, but the new master did not",
		          belief, NULL);
}

/*
 * The old master granted the first one, and the new master, which lacks it, the second; or in the
 * opposite order. The first holder learns of it when it renews at the new master, at the latest at
 * valid-until.
 */
static bool is_overlap_explained(const struct trial *trial, const struct belief *older,
                                 const struct belief *younger, int64_t until)
{
	const struct beliefs_rules *rules = trial->rules;
	for (int i = 0; i < rules->failovers && !trial->name->is_safe; i++) {
		int64_t left_at = rules->failover[i].announced_at + rules->leave_us;
		if (older->granted_at <= left_at &&
		    younger->granted_at >= rules->failover[i].begun_at &&
		    until <= left_at + rules->lease_us)
			return true;
	}
	return false;
}

static void judge_overlap(struct trial *trial, const struct belief *older,
                          const struct belief *younger)
{
	struct beliefs_verdict *verdict = &trial->verdict;
	int64_t until = older->ended_at < younger->ended_at ? older->ended_at : younger->ended_at;
	int64_t lasted = until - younger->granted_at;
	verdict->longest_us = lasted > verdict->longest_us ? lasted : verdict->longest_us;
	if (is_overlap_explained(trial, older, younger, until))
		verdict->excused++;
	else
		add_fault(trial, &verdict->overlaps, "two holders at once", older, younger);
}

static void judge_overlaps(struct trial *trial)
{
	for (size_t i = 0; i < trial->count; i++)
		for (size_t j = i + 1; j < trial->count && trial->by_grant[j]->granted_at <
		                                                   trial->by_grant[i]->ended_at;
		     j++)
			judge_overlap(trial, trial->by_grant[i], trial->by_grant[j]);
}

/*
 * Java only adds one to the last token that the server knows, which is not that of a grant that a
 * failover has lost. Holdfast's tokens are never below the server's time.
 */
static bool is_fall_explained(const struct trial *trial, const struct belief *greatest,
                              const struct belief *belief)
{
	const struct beliefs_rules *rules = trial->rules;
	for (int i = 0; i < rules->failovers && is_of_java(belief); i++)
		if (greatest->granted_at >= rules->failover[i].begun_at - LAG_US &&
		    greatest->granted_at <= rules->failover[i].announced_at + rules->leave_us)
			return true;
	return false;
}

/* A grant has a greater token than every grant that had ended before it. */
static void judge_tokens(struct trial *trial)
{
	const struct belief *greatest = NULL;
	size_t ended = 0;
	for (size_t i = 0; i < trial->count; i++) {
		const struct belief *belief = trial->by_grant[i];
		for (; ended < trial->count && trial->by_end[ended]->ended_at < belief->granted_at;
		     ended++)
			if (!greatest || trial->by_end[ended]->token > greatest->token)
				greatest = trial->by_end[ended];
		if (greatest && belief->token && belief->token <= greatest->token &&
		    !is_fall_explained(trial, greatest, belief))
			add_fault(trial, &trial->verdict.falls, "a token falls", greatest, belief);
	}
}

/* Without overlaps, no update of the counter is lost. */
static void judge_counter(struct trial *trial)
{
	struct beliefs_verdict *verdict = &trial->verdict;
	long counted = 0, counter = atomic_load(&trial->name->counter);
	for (size_t i = 0; i < trial->count; i++)
		counted += (long)trial->by_grant[i]->is_counted;
	if (counted == counter || verdict->overlaps || verdict->excused)
		return;
	print_message("  %s: counted %ld times, but the counter is at %ld\n", trial->name->name,
	              counted, counter);
	verdict->miscounted++;
}

/* ---- the verdict ---- */

static struct beliefs_verdict judge_name(struct beliefs *beliefs, int name,
                                         const struct beliefs_rules *rules)
{
	struct trial trial = {.rules = rules, .name = &beliefs->name[name]};
	collect(&trial, beliefs, name);
	trial.verdict.beliefs = (int)trial.count;
	for (size_t i = 0; i < trial.count; i++) {
		judge_end(&trial, trial.by_grant[i]);
		judge_missing(&trial, trial.by_grant[i]);
	}
	judge_overlaps(&trial);
	judge_tokens(&trial);
	judge_counter(&trial);
	free(trial.by_grant);
	free(trial.by_end);
	return trial.verdict;
}

static void add_verdict(struct beliefs_verdict *sum, const struct beliefs_verdict *verdict)
{
	sum->late += verdict->late;
	sum->forgotten += verdict->forgotten;
	sum->overlaps += verdict->overlaps;
	sum->falls += verdict->falls;
	sum->miscounted += verdict->miscounted;
	sum->beliefs += verdict->beliefs;
	sum->losses += verdict->losses;
	sum->unknowns += verdict->unknowns;
	sum->kept += verdict->kept;
	sum->missing += verdict->missing;
	sum->excused += verdict->excused;
	if (verdict->longest_us > sum->longest_us)
		sum->longest_us = verdict->longest_us;
}

static void print_verdict(const char *name, const struct beliefs_verdict *verdict)
{
	print_message("  %-12s %6d grants, %3d kept, %3d missing, %3d lost, %3d unknown, "
	              "%3d overlaps, longest %" PRId64 ".%03" PRId64 " ms\n",
	              name, verdict->beliefs, verdict->kept, verdict->missing, verdict->losses,
	              verdict->unknowns, verdict->excused + verdict->overlaps,
	              verdict->longest_us / 1000, verdict->longest_us % 1000);
}

struct beliefs_verdict beliefs_judge(struct beliefs *beliefs, const struct beliefs_rules *rules)
{
	struct beliefs_verdict sum = {0};
	for (int i = 0; i < beliefs->names; i++) {
		struct beliefs_verdict verdict = judge_name(beliefs, i, rules);
		print_verdict(beliefs->name[i].name, &verdict);
		add_verdict(&sum, &verdict);
	}
	return sum;
}

int beliefs_faults(const struct beliefs_verdict *verdict)
{
	return verdict->late + verdict->forgotten + verdict->overlaps + verdict->falls +
	       verdict->miscounted;
}
