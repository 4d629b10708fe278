/*
 * The rules of torture's checker that are about each hold alone: replicas, calls, answers, most
 * servers.
 */
#include "torture/sweep.h"

#include <holdfast/holdfast.h>

/* ---- most servers ---- */

/*
 * Which servers a fault had an effect on at that time, one bit each; all bits if it was none in
 * particular.
 */
static uint64_t servers_at_fault(const struct sweep *sweep, int64_t at)
{
	uint64_t servers = 0;
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		int64_t lasts = fault->server ? sweep->record->head->watchdog_ns
		                              : sweep->record->head->lease_ns;
		if (fault->begin <= at && (fault->end == FOREVER || fault->end + lasts >= at))
			servers |= fault->server ? UINT64_C(1) << fault->server : UINT64_MAX;
	}
	return servers;
}

static bool did_most_fail(const struct sweep *sweep, int64_t begin, int64_t end)
{
	const uint64_t few = 2;
	if ((uint64_t)__builtin_popcountll(servers_at_fault(sweep, begin)) > few)
		return true;
	for (size_t i = 0; i < sweep->faults; i++) {
		int64_t at = sweep->fault[i].begin;
		if (at >= begin && at <= end &&
		    (uint64_t)__builtin_popcountll(servers_at_fault(sweep, at)) > few)
			return true;
	}
	return false;
}

/*
 * Members that come back are acquired again within the lease of the others, as are those that
 * somebody else had at the time of the grant.
 */
static void check_majority(struct sweep *sweep, const struct hold *hold)
{
	int64_t at = hold->ended_at                   ? hold->ended_at
	             : hold->release_code == HF_ELOST ? hold->released_at
	                                              : 0;
	const struct record_head *head = sweep->record->head;
	int64_t complete_at = hold->granted_at + head->watchdog_ns / 2;
	if (!(hold->flags & MAJORITY) || !at || complete_at > at - head->lease_ns ||
	    did_most_fail(sweep, at - head->lease_ns, at))
		return;
	sweep_violate(sweep, RULE_MINORITY,
	              "%s: the hold of %.6f s was lost by %.6f s, but a majority of the servers "
	              "was healthy",
	              sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
	              sweep_seconds(sweep, at));
}

/* ---- forced releases ---- */

static void check_forced(struct sweep *sweep, const struct hold *hold)
{
	if (hold->forced_at && hold->confirmed_at > hold->forced_at)
		sweep_violate(
			sweep, RULE_FORCED,
			"%s: the hold of %.6f s was forced away at %.6f s, but held at %.6f s",
			sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
			sweep_seconds(sweep, hold->forced_at),
			sweep_seconds(sweep, hold->confirmed_at));
}

/* ---- replicas ---- */

static void check_replicas(struct sweep *sweep, const struct hold *hold)
{
	bool is_grant = hold->granted_at && !(hold->flags & (DRAINS | SHUTS | PASSES));
	for (size_t i = 0; i < sweep->faults && is_grant; i++) {
		const struct fault *fault = &sweep->fault[i];
		if ((fault->effects & STOPS_REPLICAS) && hold->asked_at > fault->stopped_at &&
		    hold->granted_at < fault->continuing_at)
			sweep_violate(
				sweep, RULE_REPLICAS,
				"%s: granted at %.6f s, but no replica answered from %.6f to %.6f "
				"s",
				sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
				sweep_seconds(sweep, fault->begin),
				sweep_seconds(sweep, fault->end));
	}
}

/* ---- calls ---- */

/* All calls of a client have returned when it is closed. */
static int64_t call_deadline(const struct hold *hold, int64_t began_at, int64_t deadline)
{
	int64_t closed_at = hold->closed_at > began_at ? hold->closed_at : began_at;
	return hold->closed_at && (!deadline || closed_at < deadline) ? closed_at : deadline;
}

static void check_return(struct sweep *sweep, const struct hold *hold, int64_t began_at,
                         int64_t deadline, int64_t returned_at)
{
	deadline = call_deadline(hold, began_at, deadline);
	if (!began_at || sweep->process[hold->process].killed_at)
		return;
	if (!returned_at)
		sweep_violate(
			sweep, RULE_RETURN, "%s: the call of %.6f s in process %d never returned",
			sweep_name(sweep, hold), sweep_seconds(sweep, began_at), hold->process);
	else if (deadline && returned_at > deadline + sweep->record->head->patience_ns &&
	         !sweep_has_fault(sweep, began_at, returned_at, STOPS_CALLS))
		sweep_violate(
			sweep, RULE_DEADLINE,
			"%s: the call of %.6f s returned at %.6f s, and its deadline was %.6f s",
			sweep_name(sweep, hold), sweep_seconds(sweep, began_at),
			sweep_seconds(sweep, returned_at), sweep_seconds(sweep, deadline));
}

/* A cancelled call returns at once, unless a fault keeps the answer back that it waits for. */
static int64_t acquire_deadline(const struct sweep *sweep, const struct hold *hold,
                                int64_t ended_at)
{
	int64_t lease = sweep->record->head->lease_ns;
	if (!hold->cancelled_at)
		return hold->deadline;
	if (!sweep_has_fault(sweep, hold->cancelled_at - lease, ended_at, 0))
		return hold->cancelled_at;
	return hold->cancel_deadline < hold->deadline ? hold->cancel_deadline : hold->deadline;
}

static void check_calls(struct sweep *sweep, const struct hold *hold)
{
	int64_t ended_at = hold->granted_at ? hold->granted_at : hold->refused_at;
	check_return(sweep, hold, hold->asked_at, acquire_deadline(sweep, hold, ended_at),
	             ended_at);
	check_return(sweep, hold, hold->releasing_at, hold->release_deadline, hold->released_at);
	check_return(sweep, hold, hold->slowest.begun_at, hold->slowest.deadline,
	             hold->slowest.ended_at);
}

/* Nothing that the processes do, and no fault, leads to these. */
static bool is_impossible(const struct hold *hold, int code, int64_t answered_at)
{
	switch (code) {
	case HF_ECLOSED: return !hold->closing_at || answered_at < hold->closing_at;
	case HF_ENOTHELD:
	case HF_ECONFLICT:
	case HF_EDEADLOCK:
	case HF_EINVAL:
	case HF_EFORKED:
	case HF_EPROTOCOL:
	case HF_ETLS:
	case HF_ENOTSUP: return true;
	default: return code > 0;
	}
}

static void check_answers(struct sweep *sweep, const struct hold *hold)
{
	if (hold->flags & FOREIGN)
		return;
	bool is_cancelled = hold->code == HF_ECANCELLED;
	sweep->verdict->judged[JUDGED_CANCELS] += is_cancelled;
	if (is_impossible(hold, hold->code, hold->refused_at) ||
	    (is_cancelled && !hold->cancelled_at))
		sweep_violate(sweep, RULE_IMPOSSIBLE, "%s: the acquire of %.6f s returned \"%s\"",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->asked_at),
		              hf_strerror(hold->code));
	if (is_impossible(hold, hold->release_code, hold->released_at) ||
	    hold->release_code == HF_ECANCELLED)
		sweep_violate(sweep, RULE_IMPOSSIBLE, "%s: the release of %.6f s returned \"%s\"",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->releasing_at),
		              hf_strerror(hold->release_code));
}

void check_hold(struct sweep *sweep, const struct hold *hold)
{
	check_majority(sweep, hold);
	check_forced(sweep, hold);
	check_replicas(sweep, hold);
	check_calls(sweep, hold);
	check_answers(sweep, hold);
}
