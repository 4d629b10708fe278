/* The rules of torture's checker about losses: they are needed, and reported once. */
#include "torture/sweep.h"

#include <holdfast/holdfast.h>

#include <inttypes.h>

/* A loss that is reported this long before valid-until is not the end of the lease. */
#define EARLY INT64_C(100000000)

/* ---- whether it had to be lost ---- */

/* The longest time without a fault between the two times. */
static int64_t longest_calm(const struct sweep *sweep, int64_t begin, int64_t end)
{
	int64_t longest = 0;
	while (begin < end) {
		int64_t next = end, over_at = end;
		for (size_t i = 0; i < sweep->faults; i++) {
			const struct fault *fault = &sweep->fault[i];
			if (fault->end < begin || fault->begin >= next)
				continue;
			next = fault->begin > begin ? fault->begin : begin;
			over_at = fault->end == FOREVER ? end : fault->end + 1;
		}
		if (next - begin > longest)
			longest = next - begin;
		begin = over_at;
	}
	return longest;
}

/*
 * A hold is renewed when a third of its lease is over, and if that fails, twelve times per lease
 * from then on. So it is not lost if half of the lease is without a fault after that, or if all
 * faults are short.
 */
static bool could_be_renewed(const struct sweep *sweep, const struct hold *hold)
{
	int64_t watchdog = sweep->record->head->watchdog_ns;
	int64_t due_at = hold->lost_at - watchdog * 2 / 3;
	int64_t from = hold->lost_at - sweep->record->head->lease_ns;
	if (sweep_is_forced(sweep, hold->covers, hold->granted_at - sweep->record->head->lease_ns,
	                    hold->lost_at))
		return false;
	return sweep_time_in_faults(sweep, from, hold->lost_at) < SHORT_FAULT ||
	       (longest_calm(sweep, due_at, hold->lost_at) >= watchdog / 2 &&
	        !sweep_has_fault(sweep, from, hold->lost_at, LOSES_DATA));
}

/* Only a server that has lost its data says that a hold is gone whose lease is not over. */
static bool is_lost_early(const struct sweep *sweep, const struct hold *hold)
{
	int64_t from = hold->granted_at - sweep->record->head->lease_ns;
	return hold->until > hold->lost_at + EARLY &&
	       !sweep_has_fault(sweep, from, hold->lost_at, LOSES_DATA) &&
	       !sweep_is_forced(sweep, hold->covers, from, hold->lost_at);
}

static void check_need(struct sweep *sweep, const struct hold *hold)
{
	if (is_lost_early(sweep, hold) ||
	    ((hold->flags & RENEWED) && could_be_renewed(sweep, hold)))
		sweep_violate(
			sweep, RULE_NEEDLESS,
			"%s: the hold of %.6f s was lost at %.6f s, and was valid until %.6f s",
			sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
			sweep_seconds(sweep, hold->lost_at), sweep_seconds(sweep, hold->until));
}

/* ---- each of them is reported ---- */

static void check_events(struct sweep *sweep, const struct hold *hold)
{
	bool is_finished = sweep->process[hold->process].is_finished;
	if (!hold->is_named || !hold->released_at || !is_finished)
		return;
	/* Nothing is reported of what a closed client had. */
	if (hold->release_code == HF_ELOST && !hold->losses && !hold->closing_at)
		sweep_violate(
			sweep, RULE_SILENT,
			"%s: no event for the hold of %.6f s, whose release at %.6f s said lost",
			sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
			sweep_seconds(sweep, hold->released_at));
	if (hold->release_code == 0 && hold->losses && hold->lost_at < hold->releasing_at &&
	    !(hold->flags & PARTS))
		sweep_violate(sweep, RULE_DENIED, "%s: lost at %.6f s, but released at %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->lost_at),
		              sweep_seconds(sweep, hold->released_at));
}

void check_loss(struct sweep *sweep, const struct hold *hold)
{
	check_events(sweep, hold);
	if (hold->losses && !(hold->flags & PARTS))
		check_need(sweep, hold);
}

/* ---- and only once ---- */

/* Identities are never used again, whatever they are of. */
static void check_repeats(struct sweep *sweep)
{
	for (size_t i = 1; i < sweep->losses; i++) {
		const struct loss *first = &sweep->loss[i - 1], *second = &sweep->loss[i];
		if (first->identity == second->identity)
			sweep_violate(sweep, RULE_TWICE,
			              "process %d reported the loss of %.6f s again at %.6f s",
			              second->process, sweep_seconds(sweep, first->at),
			              sweep_seconds(sweep, second->at));
	}
}

static void check_tally(struct sweep *sweep, const struct event *tally)
{
	int64_t reported = 0;
	for (size_t i = 0; i < sweep->losses; i++)
		reported += sweep->loss[i].process == tally->process &&
		            sweep->loss[i].client == tally->client;
	if (reported != tally->until)
		sweep_violate(sweep, reported < tally->until ? RULE_SILENT : RULE_TWICE,
		              "client %d of process %d counted %" PRId64
		              " losses, and reported %" PRId64,
		              tally->client, tally->process, tally->until, reported);
}

void check_losses(struct sweep *sweep)
{
	check_repeats(sweep);
	for (uint64_t i = 0; i < sweep->events; i++)
		if (sweep->record->events[i].moment == TALLIED)
			check_tally(sweep, &sweep->record->events[i]);
}
