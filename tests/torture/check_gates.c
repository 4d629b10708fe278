/* The rule of torture's checker about gates: nobody passes one that is shut. */
#include "torture/sweep.h"

#include <stdlib.h>

#include "support/check.h"

/*
 * Whether the gate may have been open at some time of the wait. Where servers lag, one of them may
 * answer with an old state, and after a fault it is not known how old that is.
 */
static bool may_be_open(const struct sweep *sweep, const struct hold *shut, const struct hold *pass)
{
	const struct record_head *head = sweep->record->head;
	int64_t from = shut->granted_at - head->lease_ns;
	int64_t killed_at = sweep->process[shut->process].killed_at;
	int64_t open_at = shut->releasing_at ? shut->releasing_at : killed_at ? killed_at : FOREVER;
	bool may_be_old = head->lag_ns && sweep_has_fault(sweep, from, pass->granted_at, 0);
	return pass->asked_at <= shut->granted_at + head->lag_ns || pass->granted_at >= open_at ||
	       may_be_old ||
	       sweep_has_fault(sweep, from, pass->granted_at, LOSES_DATA | KEEPS_REQUESTS);
}

static void check_pass(struct sweep *sweep, const struct hold *shut, const struct hold *pass)
{
	if (may_be_open(sweep, shut, pass))
		return;
	sweep_violate(sweep, RULE_PASSED,
	              "%s: shut at %.6f s, but process %d passed between %.6f and %.6f s",
	              sweep_name(sweep, shut), sweep_seconds(sweep, shut->granted_at),
	              pass->process, sweep_seconds(sweep, pass->asked_at),
	              sweep_seconds(sweep, pass->granted_at));
}

static int compare_shut(const void *one, const void *two)
{
	const struct hold *const *a = one, *const *b = two;
	return (*a)->granted_at < (*b)->granted_at ? -1 : (*a)->granted_at > (*b)->granted_at;
}

/* The latest time that the gate was shut before the wait began; NULL: never. */
static const struct hold *find_shut(const struct hold **shut, size_t count, int64_t asked_at)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (shut[middle]->granted_at < asked_at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? shut[low - 1] : NULL;
}

void check_gate(struct sweep *sweep, int resource)
{
	const struct hold **shut = check_alloc((sweep->holds + 1) * sizeof(struct hold *));
	size_t count = 0;
	uint64_t covers = UINT64_C(1) << resource;
	for (uint32_t i = 1; i <= sweep->holds; i++) {
		const struct hold *hold = &sweep->hold[i];
		if (hold->covers == covers && hold->granted_at && (hold->flags & SHUTS))
			shut[count++] = hold;
	}
	qsort(shut, count, sizeof(struct hold *), compare_shut);
	for (uint32_t i = 1; i <= sweep->holds; i++) {
		const struct hold *pass = &sweep->hold[i];
		if (pass->covers != covers || !pass->granted_at || !(pass->flags & PASSES))
			continue;
		const struct hold *latest = find_shut(shut, count, pass->asked_at);
		sweep->verdict->judged[JUDGED_PASSES]++;
		if (latest)
			check_pass(sweep, latest, pass);
	}
	free(shut);
}
