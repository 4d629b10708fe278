/* The rules of torture's checker about counts: of semaphores and latches, and of levels. */
#include "torture/sweep.h"

#include <holdfast/holdfast.h>

#include <inttypes.h>

/* ---- what is left at the end ---- */

/* What the calls leave of a count: at least low, at most high. */
struct range {
	int64_t low, high;
};

/*
 * A call that was not answered, or whose client was closed or process was killed, may have counted
 * or not.
 */
static struct range expect_countdown(const struct sweep *sweep, int resource)
{
	int64_t begun = 0, done = 0, failed = 0;
	for (uint64_t i = 0; i < sweep->events; i++) {
		const struct event *event = &sweep->record->events[i];
		if (!(event->covers >> resource & 1))
			continue;
		begun += event->moment == COUNTING;
		done += event->moment == COUNTED && event->code == 0;
		failed += event->moment == COUNTED && event->code && event->code != HF_EUNKNOWN &&
		          event->code != HF_ECLOSED;
	}
	int64_t total = sweep->record->head->resource[resource].total;
	return (struct range){total - begun + failed, total - done};
}

/* Whether a release may have had an effect or not, or an acquire that cannot be undone any more. */
static bool is_doubtful(const struct hold *hold, bool is_killed)
{
	bool is_unknown = !hold->refused_at || hold->code == HF_EUNKNOWN;
	if (hold->releasing_at)
		return !hold->released_at || hold->release_code == HF_EUNKNOWN;
	return (is_killed || (hold->flags & DRAINS)) && !hold->granted_at && is_unknown;
}

/*
 * Permits without an owner are gone if their process was killed; if it was killed in a call, they
 * may be.
 */
static struct range expect_permits(const struct sweep *sweep, int resource)
{
	int64_t total = sweep->record->head->resource[resource].total, gone = 0, doubtful = 0;
	for (uint32_t i = 1; i <= sweep->holds; i++) {
		const struct hold *hold = &sweep->hold[i];
		if (!(hold->covers >> resource & 1) || !(hold->flags & SETTLED))
			continue;
		bool is_killed = sweep->process[hold->process].killed_at;
		if (is_doubtful(hold, is_killed))
			doubtful += hold->share;
		else if (is_killed && hold->granted_at && !hold->releasing_at)
			gone += hold->share;
	}
	return (struct range){total - gone - doubtful, total - gone};
}

static void check_count(struct sweep *sweep, const struct event *event)
{
	int resource = __builtin_ctzll(event->covers);
	struct range range = sweep->record->head->resource[resource].capacity
	                             ? expect_permits(sweep, resource)
	                             : expect_countdown(sweep, resource);
	if (event->until < range.low || event->until > range.high)
		sweep_violate(sweep, RULE_COUNT,
		              "%s: %" PRId64 " are left, not %" PRId64 " to %" PRId64,
		              sweep_resource(sweep, resource), event->until, range.low, range.high);
}

void check_counts(struct sweep *sweep)
{
	if (sweep_has_fault(sweep, 0, FOREVER, LOSES_DATA))
		return;
	for (uint64_t i = 0; i < sweep->events; i++)
		if (sweep->record->events[i].moment == REMAINING) {
			check_count(sweep, &sweep->record->events[i]);
			sweep->verdict->judged[JUDGED_COUNTS] = 1;
		}
}

/* ---- levels ---- */

/*
 * A request that was repeated may arrive once more, and set the count that it was for. Of a red
 * lock, the servers that answer need not be those that have the latest level.
 */
static bool may_differ(const struct sweep *sweep, const struct hold *hold, int64_t at)
{
	int64_t from = hold->granted_at - sweep->record->head->lease_ns;
	return sweep_has_fault(sweep, from, at, LOSES_DATA | KEEPS_REQUESTS) ||
	       sweep_is_forced(sweep, hold->covers, from, at) ||
	       ((hold->flags & PARTS) && sweep_has_fault(sweep, from, at, 0));
}

static void check_level(struct sweep *sweep, const struct event *event)
{
	const struct hold *hold = &sweep->hold[event->hold];
	if (sweep_belief_end(sweep, hold) <= event->at || may_differ(sweep, hold, event->at))
		return;
	sweep->verdict->judged[JUDGED_LEVELS]++;
	if (event->until != event->share)
		sweep_violate(sweep, RULE_LEVELS,
		              "%s: the hold of %.6f s has %" PRId64 " levels at %.6f s, not %d",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
		              event->until, sweep_seconds(sweep, event->at), event->share);
}

void check_levels(struct sweep *sweep)
{
	for (uint64_t i = 0; i < sweep->events; i++) {
		const struct event *event = &sweep->record->events[i];
		if (event->moment == LEVELS && event->hold <= sweep->holds)
			check_level(sweep, event);
	}
}
