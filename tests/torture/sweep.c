/* Every acquisition and every fault of a record, as the checker of torture needs them. */
#include "torture/sweep.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define PROCESSES 65536

/* The library counts in milliseconds. */
#define ROUNDING INT64_C(5000000)

/* For how long a client that is closed waits for its releases. */
#define CLOSE_NS INT64_C(1000000000)

void sweep_violate(struct sweep *sweep, enum check_rule rule, const char *format, ...)
{
	struct verdict *verdict = sweep->verdict;
	sweep->is_sound = false;
	if (verdict->violations[rule]++)
		return;
	va_list list;
	va_start(list, format);
	(void)vsnprintf(verdict->first[rule], sizeof verdict->first[rule], format, list);
	va_end(list);
}

const char *sweep_resource(const struct sweep *sweep, int resource)
{
	return sweep->record->head->resource[resource].name;
}

const char *sweep_name(const struct sweep *sweep, const struct hold *hold)
{
	return hold->covers ? sweep_resource(sweep, __builtin_ctzll(hold->covers)) : "nothing";
}

double sweep_seconds(const struct sweep *sweep, int64_t at)
{
	return (double)(at - sweep->record->events[0].at) / 1e9;
}

/* ---- faults ---- */

bool sweep_has_fault(const struct sweep *sweep, int64_t begin, int64_t end, int effects)
{
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		if ((!effects || (fault->effects & effects)) && fault->begin <= end &&
		    fault->end >= begin)
			return true;
	}
	return false;
}

bool sweep_is_calm(const struct sweep *sweep, int64_t begin, int64_t end)
{
	return !sweep_has_fault(sweep, begin - sweep->record->head->lease_ns, end, 0);
}

int64_t sweep_time_in_faults(const struct sweep *sweep, int64_t begin, int64_t end)
{
	int64_t sum = 0;
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		int64_t from = fault->begin > begin ? fault->begin : begin;
		int64_t to = fault->end < end ? fault->end : end;
		if (to >= from)
			sum += fault->effects & LOSES_DATA ? SHORT_FAULT : to - from;
	}
	return sum;
}

bool sweep_is_in_fault(const struct sweep *sweep, int64_t at)
{
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		if (!(fault->effects & OBSERVED) && fault->begin <= at && fault->end >= at)
			return true;
	}
	return false;
}

static void note_fault(struct sweep *sweep, const struct event *event)
{
	struct fault *fault = &sweep->fault[sweep->faults++];
	*fault = (struct fault){.begin = event->at,
	                        .stopped_at = event->at,
	                        .end = FOREVER,
	                        .continuing_at = FOREVER,
	                        .server = event->share,
	                        .effects = event->flags};
	assert(event->code >= 0 && event->code < RECORD_FAULTS);
	sweep->verdict->faults[event->code]++;
	for (uint64_t i = 0; i < sweep->events; i++) {
		const struct event *other = &sweep->record->events[i];
		if (other->hold != event->hold)
			continue;
		switch ((enum record_moment)other->moment) {
		case HEALED: fault->end = other->at; break;
		case STOPPED: fault->stopped_at = other->at; break;
		case CONTINUING: fault->continuing_at = other->at; break;
		default: break;
		}
	}
	if (fault->continuing_at > fault->end)
		fault->continuing_at = fault->end;
}

/* ---- forced releases ---- */

bool sweep_is_forced(const struct sweep *sweep, uint64_t covers, int64_t begin, int64_t end)
{
	for (size_t i = 0; i < sweep->forces; i++) {
		const struct force *force = &sweep->force[i];
		if ((force->covers & covers) && force->begin <= end && force->end >= begin)
			return true;
	}
	return false;
}

static void begin_force(struct sweep *sweep, const struct event *event)
{
	sweep->force[sweep->forces++] = (struct force){.begin = event->at,
	                                               .end = FOREVER,
	                                               .covers = event->covers,
	                                               .number = event->hold,
	                                               .process = event->process,
	                                               .client = event->client};
}

/* One that was not answered may have an effect until a lease later. */
static void end_force(struct sweep *sweep, const struct event *event)
{
	size_t i = sweep->forces;
	while (i > 0 && sweep->force[i - 1].number != event->hold)
		i--;
	if (i == 0)
		return;
	struct force *force = &sweep->force[i - 1];
	force->is_done = event->code == 0 && event->until;
	force->end = event->at + (event->code == 0 ? 0 : sweep->record->head->lease_ns);
}

/* What the client said before ends when the call returns. */
static void apply_force(struct sweep *sweep, const struct force *force)
{
	for (uint32_t i = 1; i <= sweep->holds && force->is_done; i++) {
		struct hold *hold = &sweep->hold[i];
		if (hold->process == force->process && hold->client == force->client &&
		    (hold->covers & force->covers) && hold->granted_at &&
		    hold->granted_at < force->begin &&
		    (!hold->forced_at || force->end < hold->forced_at))
			hold->forced_at = force->end;
	}
}

/* ---- clients that are closed ---- */

static void begin_closing(struct sweep *sweep, const struct event *event)
{
	sweep->closing[sweep->closings++] = (struct closing){.begin = event->at,
	                                                     .deadline = event->until,
	                                                     .end = FOREVER,
	                                                     .process = event->process,
	                                                     .client = event->client};
}

static void end_closing(struct sweep *sweep, const struct event *event)
{
	for (size_t i = 0; i < sweep->closings; i++)
		if (sweep->closing[i].process == event->process &&
		    sweep->closing[i].client == event->client)
			sweep->closing[i].end = event->at;
}

static void apply_closing(struct sweep *sweep, const struct closing *closing)
{
	for (uint32_t i = 1; i <= sweep->holds; i++) {
		struct hold *hold = &sweep->hold[i];
		if (hold->process != closing->process || hold->client != closing->client)
			continue;
		hold->closing_at = closing->begin;
		hold->closed_at = closing->end == FOREVER ? 0 : closing->end;
	}
}

bool sweep_has_given_up(const struct hold *hold)
{
	return hold->refused_at && (hold->code == HF_EBUSY || hold->code == HF_ETIMEDOUT ||
	                            hold->code == HF_ECANCELLED);
}

/*
 * A close that returned in less time has seen all its releases succeed, unless the client was not
 * connected, which only a fault leads to.
 */
int64_t sweep_gone_at(const struct sweep *sweep, const struct hold *hold)
{
	if (hold->released_at && hold->release_code == 0)
		return hold->released_at;
	bool is_released = hold->closed_at && hold->closed_at < hold->closing_at + CLOSE_NS &&
	                   sweep_is_calm(sweep, hold->closing_at, hold->closed_at);
	return is_released ? hold->closed_at : 0;
}

/* ---- from events to holds ---- */

static void note_grant(struct sweep *sweep, struct hold *hold, const struct event *event)
{
	hold->granted_at = event->at;
	hold->until = event->until;
	hold->token = event->token;
	hold->is_named = event->identity;
	if (event->share)
		hold->share = event->share;
	if (hold->flags & (PASSES | MEETS))
		return;
	sweep->verdict->grants++;
	for (int i = 0; i < RECORD_RESOURCES; i++)
		sweep->verdict->grants_of[i] += hold->covers >> i & 1;
	sweep->verdict->foreign_grants += (hold->flags & FOREIGN) != 0;
}

/* A red lock may lose members, and be valid for less than before. */
static void check_until(struct sweep *sweep, const struct hold *hold, const struct event *event)
{
	if (!(hold->flags & PARTS) && event->until < hold->until - ROUNDING)
		sweep_violate(sweep, RULE_SHRUNK,
		              "%s: at %.6f s the hold was valid until %.6f s, and before that "
		              "until %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, event->at),
		              sweep_seconds(sweep, event->until),
		              sweep_seconds(sweep, hold->until));
	if (hold->unwatched_at && event->until > hold->unwatched_until + ROUNDING)
		sweep_violate(sweep, RULE_RENEWED,
		              "%s: at %.6f s the hold was valid until %.6f s, but it is not "
		              "renewed since %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, event->at),
		              sweep_seconds(sweep, event->until),
		              sweep_seconds(sweep, hold->unwatched_at));
	if (hold->ended_at)
		sweep_violate(sweep, RULE_DENIED, "%s: not held at %.6f s, but held at %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->ended_at),
		              sweep_seconds(sweep, event->at));
}

static void note_confirmation(struct sweep *sweep, struct hold *hold, const struct event *event)
{
	check_until(sweep, hold, event);
	hold->confirmed_at = event->at;
	if (event->until > hold->until)
		hold->until = event->until;
}

/* A renewal that was in flight at that moment may still count. */
static void note_unwatched(const struct sweep *sweep, struct hold *hold, const struct event *event)
{
	int64_t renewed_until = event->at + sweep->record->head->watchdog_ns;
	hold->unwatched_at = event->at;
	hold->unwatched_until = event->until > renewed_until ? event->until : renewed_until;
}

/* A permit expires a lease after the call; what is promised is the lease without the drift. */
static bool is_too_long(const struct hold *hold, const struct event *event)
{
	int64_t promised = event->token - hold->extending_at;
	return (hold->flags & MOVABLE) && event->token &&
	       event->until > event->at + promised + promised / 50 + 2 * ROUNDING;
}

static void check_extension(struct sweep *sweep, const struct hold *hold, const struct event *event)
{
	if (event->until < event->token - ROUNDING || is_too_long(hold, event))
		sweep_violate(sweep, RULE_EXTENDED,
		              "%s: extended from %.6f to %.6f s, the hold is valid until %.6f s, "
		              "not %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->extending_at),
		              sweep_seconds(sweep, event->at), sweep_seconds(sweep, event->until),
		              sweep_seconds(sweep, event->token));
}

static void note_extending(struct hold *hold, const struct event *event)
{
	hold->extending_at = event->at;
	hold->extend_deadline = event->until;
}

/*
 * Of a permit the new lease counts, even if it is shorter, and it is not renewed any more. If that
 * is unknown, it may be renewed with a lease that is too short for any fault.
 */
static void note_extension(struct sweep *sweep, struct hold *hold, const struct event *event)
{
	bool is_movable = hold->flags & MOVABLE;
	if (event->at - hold->extending_at >= hold->slowest.ended_at - hold->slowest.begun_at) {
		hold->slowest.begun_at = hold->extending_at;
		hold->slowest.deadline = hold->extend_deadline;
		hold->slowest.ended_at = event->at;
	}
	if (event->code == 0 && event->until) {
		sweep->verdict->judged[JUDGED_EXTENSIONS]++;
		check_extension(sweep, hold, event);
	}
	if (event->until && (is_movable || event->until > hold->until))
		hold->until = event->until;
	if (event->code == 0 && is_movable)
		note_unwatched(sweep, hold, event);
	if ((event->code == 0 || event->code == HF_EUNKNOWN) && is_movable)
		hold->flags &= (uint16_t)~RENEWED;
}

static void note_ask(struct hold *hold, const struct event *event)
{
	hold->asked_at = event->at;
	hold->deadline = event->until;
	hold->covers = event->covers;
	hold->share = event->share;
	hold->process = event->process;
	hold->client = event->client;
	hold->flags = event->flags;
	hold->token = event->token;
}

static void note_call(struct sweep *sweep, const struct event *event)
{
	struct hold *hold = &sweep->hold[event->hold];
	switch ((enum record_moment)event->moment) {
	case ASKED: note_ask(hold, event); break;
	case GRANTED: note_grant(sweep, hold, event); break;
	case REFUSED:
		hold->refused_at = event->at;
		hold->code = event->code;
		break;
	case CANCELLING:
		hold->cancelled_at = event->at;
		hold->cancel_deadline = event->until;
		break;
	case CONFIRMED: note_confirmation(sweep, hold, event); break;
	case NAMED: hold->is_named = true; break;
	case ENDED: hold->ended_at = event->at; break;
	case EXTENDING: note_extending(hold, event); break;
	case EXTENDED: note_extension(sweep, hold, event); break;
	case UNWATCHED: note_unwatched(sweep, hold, event); break;
	case RELEASING:
		hold->releasing_at = event->at;
		hold->release_deadline = event->until;
		break;
	case RELEASED:
		hold->released_at = event->at;
		hold->release_code = event->code;
		break;
	default: break;
	}
}

static void note_event(struct sweep *sweep, const struct event *event)
{
	switch ((enum record_moment)event->moment) {
	case KILLED: sweep->process[event->process].killed_at = event->at; break;
	case FINISHED: sweep->process[event->process].is_finished = true; break;
	case FAULT: note_fault(sweep, event); break;
	case FORCING: begin_force(sweep, event); break;
	case FORCED: end_force(sweep, event); break;
	case CLOSING: begin_closing(sweep, event); break;
	case CLOSED: end_closing(sweep, event); break;
	case LEFT_BEHIND:
		sweep_violate(sweep, RULE_LEFTOVER, "%s is not as expected at the end",
		              event->process ? "a client"
		              : event->covers
		                      ? sweep_resource(sweep, __builtin_ctzll(event->covers))
		                      : "a key or a node");
		break;
	default:
		if (event->hold && event->hold <= sweep->holds)
			note_call(sweep, event);
	}
}

/* ---- names and losses ---- */

static int compare_names(const void *one, const void *two)
{
	const struct name *a = one, *b = two;
	if (a->identity != b->identity)
		return a->identity < b->identity ? -1 : 1;
	return a->hold < b->hold ? -1 : a->hold > b->hold;
}

/* An event may give a hold a name that it has already. */
static void sort_names(struct sweep *sweep)
{
	size_t count = 0;
	qsort(sweep->name, sweep->names, sizeof(struct name), compare_names);
	for (size_t i = 0; i < sweep->names; i++)
		if (count == 0 || compare_names(&sweep->name[count - 1], &sweep->name[i]) != 0)
			sweep->name[count++] = sweep->name[i];
	sweep->names = count;
}

const struct name *sweep_find(const struct sweep *sweep, uint64_t identity, size_t *ret_count)
{
	size_t low = 0, high = sweep->names;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (sweep->name[middle].identity < identity)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_count = 0;
	while (low + *ret_count < sweep->names &&
	       sweep->name[low + *ret_count].identity == identity)
		++*ret_count;
	return *ret_count ? &sweep->name[low] : NULL;
}

static int compare_losses(const void *one, const void *two)
{
	const struct loss *a = one, *b = two;
	if (a->identity != b->identity)
		return a->identity < b->identity ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/*
 * A loss of a hold whose grant was never returned has nobody to be reported to, and is passed over.
 */
static void note_loss(struct sweep *sweep, const struct loss *loss)
{
	size_t count;
	const struct name *name = sweep_find(sweep, loss->identity, &count);
	for (size_t i = 0; i < count; i++) {
		struct hold *hold = &sweep->hold[name[i].hold];
		if (!hold->losses++ || loss->at < hold->lost_at)
			hold->lost_at = loss->at;
	}
}

static void collect_names(struct sweep *sweep)
{
	sweep->name = check_alloc((sweep->events + 1) * sizeof(struct name));
	sweep->loss = check_alloc((sweep->events + 1) * sizeof(struct loss));
	for (uint64_t i = 0; i < sweep->events; i++) {
		const struct event *event = &sweep->record->events[i];
		bool is_name = event->moment == GRANTED || event->moment == NAMED;
		if (is_name && event->identity && event->hold && event->hold <= sweep->holds)
			sweep->name[sweep->names++] = (struct name){event->identity, event->hold};
		if (event->moment == LOST)
			sweep->loss[sweep->losses++] = (struct loss){event->identity, event->at,
			                                             event->process, event->client};
	}
	sort_names(sweep);
	qsort(sweep->loss, sweep->losses, sizeof(struct loss), compare_losses);
	sweep->verdict->losses += sweep->losses;
}

static void read_events(struct sweep *sweep)
{
	for (uint64_t i = 0; i < sweep->events; i++)
		note_event(sweep, &sweep->record->events[i]);
	collect_names(sweep);
	for (size_t i = 0; i < sweep->losses; i++)
		note_loss(sweep, &sweep->loss[i]);
	for (size_t i = 0; i < sweep->forces; i++)
		apply_force(sweep, &sweep->force[i]);
	for (size_t i = 0; i < sweep->closings; i++)
		apply_closing(sweep, &sweep->closing[i]);
}

static int64_t earlier(int64_t one, int64_t other)
{
	return other && other < one ? other : one;
}

int64_t sweep_belief_end(const struct sweep *sweep, const struct hold *hold)
{
	int64_t end = earlier(hold->until, hold->releasing_at);
	if (!(hold->flags & PARTS))
		end = earlier(end, hold->lost_at);
	end = earlier(end, hold->forced_at);
	end = earlier(end, hold->closing_at);
	return earlier(end, sweep->process[hold->process].killed_at);
}

bool sweep_is_belief(const struct sweep *sweep, const struct hold *hold)
{
	return hold->granted_at && sweep_belief_end(sweep, hold) > hold->granted_at;
}

void sweep_begin(struct sweep *sweep, const struct record *record, struct verdict *verdict)
{
	*sweep = (struct sweep){.record = record, .verdict = verdict, .is_sound = true};
	sweep->events = atomic_load(&record->head->used);
	sweep->holds = atomic_load(&record->head->holds);
	sweep->hold = check_alloc((sweep->holds + 1) * sizeof(struct hold));
	sweep->fault = check_alloc((sweep->events + 1) * sizeof(struct fault));
	sweep->force = check_alloc((sweep->events + 1) * sizeof(struct force));
	sweep->closing = check_alloc((sweep->events + 1) * sizeof(struct closing));
	sweep->process = check_alloc(PROCESSES * sizeof(struct process));
	read_events(sweep);
}

void sweep_end(struct sweep *sweep)
{
	free(sweep->hold);
	free(sweep->name);
	free(sweep->loss);
	free(sweep->fault);
	free(sweep->force);
	free(sweep->closing);
	free(sweep->process);
}
