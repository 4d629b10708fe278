/* The rules of torture's checker about double barriers: all enter together, and leave together. */
#include "torture/sweep.h"

#include <holdfast/holdfast.h>

#include <stdlib.h>

#include "support/check.h"

/* Those that came to one barrier. */
struct meeting {
	const struct hold **member;
	size_t count;
};

/* ---- entering ---- */

/*
 * Until when the servers may have counted the member. The node of one that gives up is deleted
 * right after the call has returned, unless a fault prevents that: then it is gone when the session
 * ends.
 */
static int64_t counted_until(const struct sweep *sweep, const struct hold *hold)
{
	const struct record_head *head = sweep->record->head;
	int64_t killed_at = sweep->process[hold->process].killed_at;
	if (sweep_has_given_up(hold)) {
		int64_t deleted_at = hold->refused_at + head->prompt_ns;
		bool is_calm = sweep_is_calm(sweep, hold->refused_at, deleted_at);
		return is_calm ? deleted_at : hold->refused_at + head->lease_ns;
	}
	return killed_at ? killed_at + head->lease_ns : FOREVER;
}

/* Whether as many members may have been counted at some time until then as the barrier needs. */
static bool may_be_complete(const struct sweep *sweep, const struct meeting *meeting,
                            const struct hold *member, int64_t before)
{
	for (size_t i = 0; i < meeting->count; i++) {
		int64_t at = meeting->member[i]->asked_at;
		int count = 0;
		for (size_t j = 0; j < meeting->count && at <= before; j++)
			count += meeting->member[j]->asked_at <= at &&
			         counted_until(sweep, meeting->member[j]) >= at;
		if (count >= member->share)
			return true;
	}
	return false;
}

/*
 * Until when the member surely waits or is inside, if no fault has an effect. A barrier that
 * somebody has entered stays open until all members have left.
 */
static int64_t stays_until(const struct hold *hold)
{
	if (hold->granted_at)
		return hold->released_at ? hold->released_at : FOREVER;
	if (!hold->refused_at)
		return hold->asked_at;
	int64_t until = hold->refused_at;
	if (hold->deadline < until)
		until = hold->deadline;
	return hold->cancelled_at && hold->cancelled_at < until ? hold->cancelled_at : until;
}

/*
 * Since when as many members stayed there as the barrier needs, for long enough that all must have
 * entered; 0: never while this one waited.
 */
static int64_t surely_complete_at(const struct sweep *sweep, const struct meeting *meeting,
                                  const struct hold *member)
{
	int64_t prompt = sweep->record->head->prompt_ns, first = 0;
	for (size_t i = 0; i < meeting->count; i++) {
		int64_t at = meeting->member[i]->asked_at;
		int count = 0;
		for (size_t j = 0; j < meeting->count; j++)
			count += meeting->member[j]->asked_at <= at &&
			         stays_until(meeting->member[j]) > at + prompt;
		if (at >= member->asked_at && stays_until(member) > at + prompt &&
		    count >= member->share && (!first || at < first))
			first = at;
	}
	return first;
}

static void check_entry(struct sweep *sweep, const struct meeting *meeting,
                        const struct hold *member)
{
	int64_t all_at = surely_complete_at(sweep, meeting, member);
	if (member->granted_at && !may_be_complete(sweep, meeting, member, member->granted_at))
		sweep_violate(sweep, RULE_TOGETHER,
		              "%s: process %d entered at %.6f s, before all had come",
		              sweep_name(sweep, member), member->process,
		              sweep_seconds(sweep, member->granted_at));
	if (member->code == HF_ETIMEDOUT && all_at &&
	    sweep_is_calm(sweep, all_at, member->refused_at))
		sweep_violate(sweep, RULE_SERVED,
		              "%s: process %d waited until %.6f s, and all had come by %.6f s",
		              sweep_name(sweep, member), member->process,
		              sweep_seconds(sweep, member->refused_at),
		              sweep_seconds(sweep, all_at));
}

/* ---- leaving ---- */

/*
 * Whether the other one had entered before this member began to leave, and was still inside when
 * that had succeeded. Its node is gone if its session has ended.
 */
static bool is_left_behind(const struct sweep *sweep, const struct hold *other,
                           const struct hold *member)
{
	int64_t left_at = member->released_at;
	int64_t killed_at = sweep->process[other->process].killed_at;
	int64_t from = left_at - sweep->record->head->lease_ns;
	return other->granted_at && other->granted_at < member->releasing_at &&
	       (!other->releasing_at || other->releasing_at > left_at) &&
	       !(killed_at && killed_at < left_at) &&
	       sweep_time_in_faults(sweep, from, left_at) < SHORT_FAULT;
}

/* When all had begun to leave, or had given up. */
static int64_t all_leave_at(const struct meeting *meeting)
{
	int64_t all_at = 0;
	for (size_t i = 0; i < meeting->count; i++) {
		const struct hold *other = meeting->member[i];
		int64_t leaves_at = other->granted_at ? other->releasing_at : other->refused_at;
		if (!leaves_at)
			return FOREVER;
		if (leaves_at > all_at)
			all_at = leaves_at;
	}
	return all_at;
}

static void check_exit(struct sweep *sweep, const struct meeting *meeting,
                       const struct hold *member)
{
	int64_t all_at = all_leave_at(meeting);
	for (size_t i = 0; i < meeting->count && member->release_code == 0; i++)
		if (is_left_behind(sweep, meeting->member[i], member))
			sweep_violate(sweep, RULE_TOGETHER,
			              "%s: process %d left at %.6f s, while process %d was inside",
			              sweep_name(sweep, member), member->process,
			              sweep_seconds(sweep, member->released_at),
			              meeting->member[i]->process);
	if (member->release_code == HF_ETIMEDOUT &&
	    member->released_at - sweep->record->head->prompt_ns > all_at &&
	    sweep_is_calm(sweep, all_at, member->released_at))
		sweep_violate(sweep, RULE_SERVED,
		              "%s: process %d left in vain until %.6f s, and all others had left "
		              "by %.6f s",
		              sweep_name(sweep, member), member->process,
		              sweep_seconds(sweep, member->released_at),
		              sweep_seconds(sweep, all_at));
}

/* ---- all of them ---- */

static void check_meeting(struct sweep *sweep, const struct meeting *meeting)
{
	for (size_t i = 0; i < meeting->count; i++) {
		const struct hold *member = meeting->member[i];
		sweep->verdict->judged[JUDGED_MEETINGS] += member->granted_at != 0;
		if (member->granted_at || member->refused_at)
			check_entry(sweep, meeting, member);
		if (member->released_at)
			check_exit(sweep, meeting, member);
	}
}

static int compare_numbers(const void *one, const void *two)
{
	const struct hold *const *a = one, *const *b = two;
	return (*a)->token < (*b)->token ? -1 : (*a)->token > (*b)->token;
}

void check_meetings(struct sweep *sweep)
{
	const struct hold **all = check_alloc((sweep->holds + 1) * sizeof(struct hold *));
	size_t count = 0, end;
	for (uint32_t i = 1; i <= sweep->holds; i++)
		if (sweep->hold[i].flags & MEETS)
			all[count++] = &sweep->hold[i];
	qsort(all, count, sizeof(struct hold *), compare_numbers);
	for (size_t i = 0; i < count; i = end) {
		for (end = i; end < count && all[end]->token == all[i]->token; end++)
			;
		struct meeting meeting = {all + i, end - i};
		check_meeting(sweep, &meeting);
	}
	free(all);
}
