/* The rules of torture's checker about clients that are closed: by when, and what may follow. */
#include "torture/sweep.h"

#include <holdfast/holdfast.h>

/* ---- the call that closes it ---- */

static void check_closing(struct sweep *sweep, const struct closing *closing)
{
	bool is_killed = sweep->process[closing->process].killed_at;
	if (closing->end == FOREVER && !is_killed)
		sweep_violate(
			sweep, RULE_RETURN, "client %d of process %d was never closed after %.6f s",
			closing->client, closing->process, sweep_seconds(sweep, closing->begin));
	if (closing->end != FOREVER &&
	    closing->end > closing->deadline + sweep->record->head->patience_ns &&
	    !sweep_has_fault(sweep, closing->begin, closing->end, STOPS_CALLS))
		sweep_violate(sweep, RULE_DEADLINE,
		              "client %d of process %d was closed from %.6f to %.6f s, and the "
		              "deadline was %.6f s",
		              closing->client, closing->process,
		              sweep_seconds(sweep, closing->begin),
		              sweep_seconds(sweep, closing->end),
		              sweep_seconds(sweep, closing->deadline));
}

/* All callbacks that were due have run by then. */
static void check_events(struct sweep *sweep, const struct closing *closing)
{
	for (size_t i = 0; i < sweep->losses; i++) {
		const struct loss *loss = &sweep->loss[i];
		if (loss->process == closing->process && loss->client == closing->client &&
		    loss->at > closing->end)
			sweep_violate(sweep, RULE_CLOSED,
			              "client %d of process %d was closed at %.6f s, and reported "
			              "a loss at %.6f s",
			              closing->client, closing->process,
			              sweep_seconds(sweep, closing->end),
			              sweep_seconds(sweep, loss->at));
	}
}

void check_closings(struct sweep *sweep)
{
	for (size_t i = 0; i < sweep->closings; i++) {
		check_closing(sweep, &sweep->closing[i]);
		check_events(sweep, &sweep->closing[i]);
	}
}

/* ---- the calls of its threads ---- */

void check_closed(struct sweep *sweep, const struct hold *hold)
{
	if (!hold->closed_at)
		return;
	sweep->verdict->judged[JUDGED_CLOSED] +=
		hold->code == HF_ECLOSED || hold->release_code == HF_ECLOSED;
	if (hold->granted_at && hold->asked_at > hold->closed_at)
		sweep_violate(sweep, RULE_CLOSED,
		              "%s: granted at %.6f s, but the client was closed at %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
		              sweep_seconds(sweep, hold->closed_at));
	if (hold->confirmed_at > hold->closed_at)
		sweep_violate(sweep, RULE_CLOSED,
		              "%s: held at %.6f s, but the client was closed at %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->confirmed_at),
		              sweep_seconds(sweep, hold->closed_at));
	if (hold->released_at && hold->releasing_at > hold->closed_at && hold->release_code == 0)
		sweep_violate(sweep, RULE_CLOSED,
		              "%s: released at %.6f s, but the client was closed at %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->released_at),
		              sweep_seconds(sweep, hold->closed_at));
}
