/* Checks the history of a round against what docs/guarantees.md promises. */
#include "torture/check.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define FOREVER   INT64_MAX
#define PROCESSES 65536

/* The library counts in milliseconds. */
#define ROUNDING INT64_C(5000000)

/* A fault that is shorter than this leaves time to renew a hold. */
#define SHORT  INT64_C(500000000)
#define ACTIVE 4096

const char *const rule_names[RULES] = {
	"exclusion",
	"tokens grow",
	"counts are exact",
	"losses are reported once",
	"losses are reported at all",
	"holds are not lost without need",
	"valid-until is kept",
	"replicas acknowledge",
	"lost is final",
	"waiters are served",
	"calls return by their deadlines",
	"calls return",
	"answers are possible",
	"nothing is left",
};

/* Everything that is known about one acquisition. Points in time are 0 if they never came. */
struct hold {
	int64_t asked_at, deadline;
	int64_t granted_at, until; /* the belief; until is the latest valid-until */
	int64_t refused_at;
	int64_t releasing_at, release_deadline;
	int64_t released_at;
	int64_t lost_at;
	int64_t token;
	uint64_t identity;
	uint64_t covers;
	int code, release_code;
	int losses;
	uint16_t process, share;
	uint8_t flags;
};

struct fault {
	int64_t begin, end;
	uint8_t effects;
};

struct process {
	int64_t killed_at; /* 0: never */
	bool is_finished;
};

struct name {
	uint64_t identity;
	uint32_t hold;
};

struct sweep {
	const struct record *record;
	struct verdict *verdict;
	uint64_t events;
	uint32_t holds; /* they are numbered from 1 */
	struct hold *hold;
	size_t names;
	struct name *name; /* sorted by identity */
	size_t faults;
	struct fault *fault;
	struct process *process;
	bool is_sound;
};

__attribute__((format(printf, 3, 4))) static void violate(struct sweep *sweep, enum rule rule,
                                                          const char *format, ...)
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

static const char *resource_name(const struct sweep *sweep, int resource)
{
	return sweep->record->head->resource[resource].name;
}

static const char *first_name(const struct sweep *sweep, const struct hold *hold)
{
	return hold->covers ? resource_name(sweep, __builtin_ctzll(hold->covers)) : "nothing";
}

/* In seconds since the first event, for the reader. */
static double seconds(const struct sweep *sweep, int64_t at)
{
	return (double)(at - sweep->record->events[0].at) / 1e9;
}

/* ---- faults ---- */

/* Whether a fault with one of the effects (0: any fault) touches the time from begin to end. */
static bool has_fault(const struct sweep *sweep, int64_t begin, int64_t end, int effects)
{
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		if ((!effects || (fault->effects & effects)) && fault->begin <= end &&
		    fault->end >= begin)
			return true;
	}
	return false;
}

static bool is_in_fault(const struct sweep *sweep, int64_t at)
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
	*fault = (struct fault){.begin = event->at, .end = FOREVER, .effects = event->flags};
	assert(event->code >= 0 && event->code < RECORD_FAULTS);
	sweep->verdict->faults[event->code]++;
	for (uint64_t i = 0; i < sweep->events; i++) {
		const struct event *other = &sweep->record->events[i];
		if (atomic_load(&other->moment) == HEALED && other->hold == event->hold)
			fault->end = other->at;
	}
}

/* ---- from events to holds ---- */

static void note_grant(struct sweep *sweep, struct hold *hold, const struct event *event)
{
	hold->granted_at = event->at;
	hold->until = event->until;
	hold->token = event->token;
	hold->identity = event->identity;
	sweep->verdict->grants++;
	for (int i = 0; i < RECORD_RESOURCES; i++)
		sweep->verdict->grants_of[i] += hold->covers >> i & 1;
	sweep->verdict->foreign_grants += (hold->flags & FOREIGN) != 0;
}

/* A whole may lose members, and be valid for less than before; it has no identity. */
static void note_confirmation(struct sweep *sweep, struct hold *hold, const struct event *event)
{
	if (hold->identity && event->until < hold->until - ROUNDING)
		violate(sweep, RULE_SHRUNK,
		        "%s: at %.6f s the hold was valid until %.6f s, and before that until %.6f "
		        "s",
		        first_name(sweep, hold), seconds(sweep, event->at),
		        seconds(sweep, event->until), seconds(sweep, hold->until));
	if (event->until > hold->until)
		hold->until = event->until;
}

static void note_ask(struct hold *hold, const struct event *event)
{
	hold->asked_at = event->at;
	hold->deadline = event->until;
	hold->covers = event->covers;
	hold->share = event->share;
	hold->process = event->process;
	hold->flags = event->flags;
}

static void note_call(struct sweep *sweep, const struct event *event)
{
	struct hold *hold = &sweep->hold[event->hold];
	switch ((enum moment)event->moment) {
	case ASKED: note_ask(hold, event); break;
	case GRANTED: note_grant(sweep, hold, event); break;
	case REFUSED:
		hold->refused_at = event->at;
		hold->code = event->code;
		break;
	case CONFIRMED: note_confirmation(sweep, hold, event); break;
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
	switch ((enum moment)event->moment) {
	case KILLED: sweep->process[event->process].killed_at = event->at; break;
	case FINISHED: sweep->process[event->process].is_finished = true; break;
	case FAULT: note_fault(sweep, event); break;
	case LEFT_BEHIND:
		violate(sweep, RULE_LEFTOVER, "%s is not as it should be at the end",
		        event->process  ? "a client"
		        : event->covers ? resource_name(sweep, __builtin_ctzll(event->covers))
		                        : "a key or a node");
		break;
	default:
		if (event->hold && event->hold <= sweep->holds)
			note_call(sweep, event);
	}
}

static int compare_names(const void *one, const void *two)
{
	const struct name *a = one, *b = two;
	return a->identity < b->identity ? -1 : a->identity > b->identity;
}

static void sort_names(struct sweep *sweep)
{
	sweep->name = check_alloc((sweep->holds + 1) * sizeof(struct name));
	for (uint32_t i = 1; i <= sweep->holds; i++)
		if (sweep->hold[i].identity)
			sweep->name[sweep->names++] = (struct name){sweep->hold[i].identity, i};
	qsort(sweep->name, sweep->names, sizeof(struct name), compare_names);
}

/* A loss of a hold whose grant was never returned has nobody to be reported to, and is passed over. */
static void note_loss(struct sweep *sweep, const struct event *event)
{
	struct name key = {event->identity, 0};
	struct name *found = bsearch(&key, sweep->name, sweep->names, sizeof(key), compare_names);
	sweep->verdict->losses++;
	if (!found)
		return;
	struct hold *hold = &sweep->hold[found->hold];
	if (!hold->losses++)
		hold->lost_at = event->at;
}

static void read_events(struct sweep *sweep)
{
	for (uint64_t i = 0; i < sweep->events; i++)
		note_event(sweep, &sweep->record->events[i]);
	sort_names(sweep);
	for (uint64_t i = 0; i < sweep->events; i++)
		if (atomic_load(&sweep->record->events[i].moment) == LOST)
			note_loss(sweep, &sweep->record->events[i]);
}

static int64_t earlier(int64_t one, int64_t other)
{
	return other && other < one ? other : one;
}

/* When the owner stopped believing that it holds the lock; not after granted_at if it never did. */
static int64_t belief_end(const struct sweep *sweep, const struct hold *hold)
{
	int64_t end = earlier(hold->until, hold->releasing_at);
	end = earlier(end, hold->lost_at);
	return earlier(end, sweep->process[hold->process].killed_at);
}

static bool is_belief(const struct sweep *sweep, const struct hold *hold)
{
	return hold->granted_at && belief_end(sweep, hold) > hold->granted_at;
}

/* ---- exclusion ---- */

struct point {
	int64_t at;
	uint32_t hold;
	bool is_begin;
};

static int compare_points(const void *one, const void *two)
{
	const struct point *a = one, *b = two;
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->is_begin - b->is_begin; /* what ends at this moment makes room */
}

static size_t collect_points(const struct sweep *sweep, int resource, struct point *points)
{
	size_t count = 0;
	for (uint32_t i = 1; i <= sweep->holds; i++) {
		const struct hold *hold = &sweep->hold[i];
		if (!(hold->covers >> resource & 1) || !is_belief(sweep, hold))
			continue;
		points[count++] = (struct point){hold->granted_at, i, true};
		points[count++] = (struct point){belief_end(sweep, hold), i, false};
	}
	qsort(points, count, sizeof(*points), compare_points);
	return count;
}

/* The holds of one resource at one moment. */
struct scene {
	int resource;
	int held;
	int count;
	uint32_t active[ACTIVE];
};

static void leave_scene(const struct sweep *sweep, struct scene *scene, uint32_t number)
{
	for (int i = 0; i < scene->count; i++)
		if (scene->active[i] == number) {
			scene->active[i] = scene->active[--scene->count];
			scene->held -= sweep->hold[number].share;
			return;
		}
}

/* The oldest of the others, and whether one of them is Java's. */
static const struct hold *find_oldest(const struct sweep *sweep, const struct scene *scene,
                                      bool *ret_foreign)
{
	const struct hold *oldest = &sweep->hold[scene->active[0]];
	*ret_foreign = false;
	for (int i = 0; i + 1 < scene->count; i++) {
		const struct hold *hold = &sweep->hold[scene->active[i]];
		*ret_foreign |= (hold->flags & FOREIGN) != 0;
		if (hold->granted_at < oldest->granted_at)
			oldest = hold;
	}
	return oldest;
}

/*
 * A grant may have been made a lease before its call returned. Permits without an owner that were forgotten are still
 * released, so that there are too many for good.
 */
static int64_t data_matters_from(const struct sweep *sweep, const struct hold *hold)
{
	return hold->flags & SETTLED ? 0 : hold->granted_at - sweep->record->head->lease_ns;
}

static void judge_overlap(struct sweep *sweep, const struct scene *scene, uint32_t number)
{
	bool is_foreign;
	const struct hold *late = &sweep->hold[number];
	const struct hold *oldest = find_oldest(sweep, scene, &is_foreign);
	int64_t from = data_matters_from(sweep, oldest);
	if (has_fault(sweep, from, late->granted_at, LOSES_DATA))
		sweep->verdict->overlaps_by_loss++;
	else if (is_foreign && has_fault(sweep, from, late->granted_at, 0))
		sweep->verdict->overlaps_with_java++;
	else
		violate(sweep, RULE_EXCLUSION,
		        "%s: granted to process %d at %.6f s, while process %d believed to hold it "
		        "from %.6f until %.6f s; %d of %d are held",
		        resource_name(sweep, scene->resource), late->process,
		        seconds(sweep, late->granted_at), oldest->process,
		        seconds(sweep, oldest->granted_at),
		        seconds(sweep, belief_end(sweep, oldest)), scene->held,
		        sweep->record->head->resource[scene->resource].capacity);
}

static void enter_scene(struct sweep *sweep, struct scene *scene, uint32_t number)
{
	assert(scene->count < ACTIVE);
	scene->active[scene->count++] = number;
	scene->held += sweep->hold[number].share;
	if (scene->held > sweep->record->head->resource[scene->resource].capacity)
		judge_overlap(sweep, scene, number);
}

static void check_exclusion(struct sweep *sweep, int resource, struct point *points)
{
	size_t count = collect_points(sweep, resource, points);
	struct scene *scene = check_alloc(sizeof(*scene));
	scene->resource = resource;
	for (size_t i = 0; i < count; i++)
		if (points[i].is_begin)
			enter_scene(sweep, scene, points[i].hold);
		else
			leave_scene(sweep, scene, points[i].hold);
	free(scene);
}

/* ---- tokens ---- */

static bool has_order(const struct sweep *sweep, const struct hold *hold, int resource)
{
	return hold->token && hold->covers == UINT64_C(1) << resource &&
	       hold->share == sweep->record->head->resource[resource].capacity &&
	       is_belief(sweep, hold);
}

/*
 * Holds that exclude each other are granted in the order in which the grants are returned. Where a second master may
 * have granted one of them, that is only certain if the second call began after the first grant. A server that has lost
 * its data goes by its clock, which must not have been set back.
 */
static bool is_ordered(const struct sweep *sweep, const struct hold *last, const struct hold *hold)
{
	int64_t from = last->granted_at - sweep->record->head->lease_ns;
	if (!has_fault(sweep, from, hold->granted_at, LOSES_DATA))
		return true;
	return hold->asked_at > last->granted_at &&
	       !has_fault(sweep, 0, hold->granted_at, TURNS_BACK);
}

static void check_tokens(struct sweep *sweep, int resource, struct point *points)
{
	size_t count = collect_points(sweep, resource, points);
	const struct hold *last = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct hold *hold = &sweep->hold[points[i].hold];
		if (!points[i].is_begin || !has_order(sweep, hold, resource))
			continue;
		if (last && hold->token <= last->token && is_ordered(sweep, last, hold))
			violate(sweep, RULE_TOKEN,
			        "%s: token %" PRId64 " at %.6f s came after %" PRId64 " at %.6f s",
			        resource_name(sweep, resource), hold->token,
			        seconds(sweep, hold->granted_at), last->token,
			        seconds(sweep, last->granted_at));
		last = hold;
	}
}

/* ---- counts ---- */

/* What the calls leave of a count: at least low, at most high. */
struct range {
	int64_t low, high;
};

/* A call that was not answered, or whose process was killed, may have counted or not. */
static struct range expect_countdown(const struct sweep *sweep, int resource)
{
	int64_t begun = 0, done = 0, failed = 0;
	for (uint64_t i = 0; i < sweep->events; i++) {
		const struct event *event = &sweep->record->events[i];
		if (!(event->covers >> resource & 1))
			continue;
		begun += event->moment == COUNTING;
		done += event->moment == COUNTED && event->code == 0;
		failed += event->moment == COUNTED && event->code && event->code != HF_EUNKNOWN;
	}
	int64_t total = sweep->record->head->resource[resource].total;
	return (struct range){total - begun + failed, total - done};
}

/* Whether a release may have had an effect or not, or an acquire that cannot be undone any more. */
static bool is_doubtful(const struct hold *hold, bool is_killed)
{
	if (hold->releasing_at)
		return !hold->released_at || hold->release_code == HF_EUNKNOWN;
	return is_killed && !hold->granted_at && (!hold->refused_at || hold->code == HF_EUNKNOWN);
}

/* Permits without an owner are gone if their process was killed; if it was killed in a call, they may be. */
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
		violate(sweep, RULE_COUNT, "%s: %" PRId64 " are left, not %" PRId64 " to %" PRId64,
		        resource_name(sweep, resource), event->until, range.low, range.high);
}

static void check_counts(struct sweep *sweep)
{
	if (has_fault(sweep, 0, FOREVER, LOSES_DATA))
		return;
	for (uint64_t i = 0; i < sweep->events; i++)
		if (sweep->record->events[i].moment == REMAINING)
			check_count(sweep, &sweep->record->events[i]);
}

/* ---- losses ---- */

/* How long faults lasted, in all, between the two times; data is lost in no time. */
static int64_t time_in_faults(const struct sweep *sweep, int64_t begin, int64_t end)
{
	int64_t sum = 0;
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		int64_t from = fault->begin > begin ? fault->begin : begin;
		int64_t to = fault->end < end ? fault->end : end;
		if (to >= from)
			sum += fault->effects & LOSES_DATA ? SHORT : to - from;
	}
	return sum;
}

static void check_need(struct sweep *sweep, const struct hold *hold)
{
	int64_t from = hold->lost_at - sweep->record->head->lease_ns;
	if (hold->losses && (hold->flags & RENEWED) &&
	    time_in_faults(sweep, from, hold->lost_at) < SHORT)
		violate(sweep, RULE_NEEDLESS, "%s: the hold of %.6f s was lost at %.6f s",
		        first_name(sweep, hold), seconds(sweep, hold->granted_at),
		        seconds(sweep, hold->lost_at));
}

static void check_replicas(struct sweep *sweep, const struct hold *hold)
{
	for (size_t i = 0; i < sweep->faults && hold->granted_at; i++) {
		const struct fault *fault = &sweep->fault[i];
		if ((fault->effects & STOPS_REPLICAS) && hold->asked_at > fault->begin &&
		    hold->granted_at < fault->end)
			violate(sweep, RULE_REPLICAS,
			        "%s: granted at %.6f s, but no replica answered from %.6f to %.6f "
			        "s",
			        first_name(sweep, hold), seconds(sweep, hold->granted_at),
			        seconds(sweep, fault->begin), seconds(sweep, fault->end));
	}
}

static void check_losses(struct sweep *sweep, const struct hold *hold)
{
	if (hold->losses > 1)
		violate(sweep, RULE_TWICE, "%s: %d losses of the hold of %.6f s",
		        first_name(sweep, hold), hold->losses, seconds(sweep, hold->granted_at));
	if (!hold->identity || !hold->released_at || !sweep->process[hold->process].is_finished)
		return;
	if (hold->release_code == HF_ELOST && !hold->losses)
		violate(sweep, RULE_SILENT,
		        "%s: no event for the hold of %.6f s, whose release at %.6f s said lost",
		        first_name(sweep, hold), seconds(sweep, hold->granted_at),
		        seconds(sweep, hold->released_at));
	if (hold->release_code == 0 && hold->losses && hold->lost_at < hold->releasing_at)
		violate(sweep, RULE_DENIED, "%s: lost at %.6f s, but released at %.6f s",
		        first_name(sweep, hold), seconds(sweep, hold->lost_at),
		        seconds(sweep, hold->released_at));
}

/* ---- calls ---- */

static void check_return(struct sweep *sweep, const struct hold *hold, int64_t began_at,
                         int64_t deadline, int64_t returned_at)
{
	if (!began_at || sweep->process[hold->process].killed_at)
		return;
	if (!returned_at)
		violate(sweep, RULE_RETURN, "%s: the call of %.6f s in process %d never returned",
		        first_name(sweep, hold), seconds(sweep, began_at), hold->process);
	else if (deadline && returned_at > deadline + sweep->record->head->patience_ns &&
	         !has_fault(sweep, began_at, returned_at, STOPS_CALLS))
		violate(sweep, RULE_DEADLINE,
		        "%s: the call of %.6f s returned at %.6f s, and its deadline was %.6f s",
		        first_name(sweep, hold), seconds(sweep, began_at),
		        seconds(sweep, returned_at), seconds(sweep, deadline));
}

static void check_calls(struct sweep *sweep, const struct hold *hold)
{
	check_return(sweep, hold, hold->asked_at, hold->deadline,
	             hold->granted_at ? hold->granted_at : hold->refused_at);
	check_return(sweep, hold, hold->releasing_at, hold->release_deadline, hold->released_at);
}

/* Nothing that the processes do, and no fault, leads to these. */
static bool is_impossible(int code)
{
	switch (code) {
	case HF_ENOTHELD:
	case HF_ECONFLICT:
	case HF_EDEADLOCK:
	case HF_EINVAL:
	case HF_EFORKED:
	case HF_ECLOSED:
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
	if (is_impossible(hold->code))
		violate(sweep, RULE_IMPOSSIBLE, "%s: the acquire of %.6f s returned \"%s\"",
		        first_name(sweep, hold), seconds(sweep, hold->asked_at),
		        hf_strerror(hold->code));
	if (is_impossible(hold->release_code))
		violate(sweep, RULE_IMPOSSIBLE, "%s: the release of %.6f s returned \"%s\"",
		        first_name(sweep, hold), seconds(sweep, hold->releasing_at),
		        hf_strerror(hold->release_code));
}

/* ---- waiters ---- */

/* Until when something of this acquisition may be on the servers; 0: nothing ever was. */
static int64_t occupied_until(const struct sweep *sweep, const struct hold *hold)
{
	int64_t lease = sweep->record->head->lease_ns;
	if (hold->released_at && hold->release_code == 0)
		return hold->released_at;
	if (hold->released_at)
		return hold->released_at + lease;
	if (hold->granted_at)
		return hold->until + lease;
	if (!hold->refused_at)
		return sweep->process[hold->process].killed_at + lease;
	if (hold->code == HF_EBUSY || hold->code == HF_ETIMEDOUT)
		return 0;
	return hold->refused_at + lease;
}

struct span {
	int64_t begin, end;
};

static int compare_spans(const void *one, const void *two)
{
	const struct span *a = one, *b = two;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Fills in when the resource is free for longer than a waiter may wait. Returns how often it is. */
static size_t find_gaps(const struct sweep *sweep, int resource, struct span *spans)
{
	size_t count = 0, gaps = 0;
	for (uint32_t i = 1; i <= sweep->holds; i++) {
		const struct hold *hold = &sweep->hold[i];
		int64_t end = occupied_until(sweep, hold);
		if (!(hold->covers >> resource & 1) || !end)
			continue;
		int64_t begin = hold->granted_at   ? hold->granted_at
		                : hold->refused_at ? hold->refused_at
		                                   : hold->asked_at;
		spans[count++] = (struct span){begin, end};
	}
	qsort(spans, count, sizeof(*spans), compare_spans);
	int64_t free_at = count ? spans[0].begin : 0;
	for (size_t i = 0; i < count; i++) {
		struct span span = spans[i];
		if (span.begin - free_at > sweep->record->head->quiet_ns)
			spans[gaps++] = (struct span){free_at, span.begin};
		if (span.end > free_at)
			free_at = span.end;
	}
	spans[gaps++] = (struct span){free_at, FOREVER};
	return gaps;
}

/* After a fault, connections and leases have this long to recover. */
static int64_t recovery_ns(const struct sweep *sweep)
{
	return 2 * sweep->record->head->lease_ns + INT64_C(4000000000);
}

/* The part of the wait in which the lock was free and no fault had any effect. */
static void check_wait(struct sweep *sweep, const struct hold *hold, struct span gap)
{
	int64_t returned_at = hold->granted_at ? hold->granted_at : hold->refused_at;
	int64_t begin = gap.begin > hold->asked_at ? gap.begin : hold->asked_at;
	int64_t end = gap.end < returned_at ? gap.end : returned_at;
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		int64_t over_at = fault->end == FOREVER ? FOREVER : fault->end + recovery_ns(sweep);
		if (fault->begin <= end && over_at > begin)
			begin = over_at;
	}
	if (end - begin > sweep->record->head->quiet_ns)
		violate(sweep, RULE_SERVED,
		        "%s: free from %.6f to %.6f s, while process %d waited from %.6f to %.6f s",
		        first_name(sweep, hold), seconds(sweep, begin), seconds(sweep, end),
		        hold->process, seconds(sweep, hold->asked_at), seconds(sweep, returned_at));
}

/*
 * Only of calls that want one resource: the others need several to be free at the same time. Java waits in ways of its
 * own.
 */
static void check_waits(struct sweep *sweep, int resource, struct span *spans)
{
	size_t gaps = find_gaps(sweep, resource, spans);
	for (uint32_t i = 1; i <= sweep->holds; i++) {
		const struct hold *hold = &sweep->hold[i];
		if (hold->covers != UINT64_C(1) << resource || (hold->flags & FOREIGN) ||
		    !(hold->granted_at || hold->code == HF_ETIMEDOUT))
			continue;
		for (size_t j = 0; j < gaps; j++)
			check_wait(sweep, hold, spans[j]);
	}
}

/* ---- all of it ---- */

static void begin_sweep(struct sweep *sweep, const struct record *record, struct verdict *verdict)
{
	*sweep = (struct sweep){.record = record, .verdict = verdict, .is_sound = true};
	sweep->events = atomic_load(&record->head->used);
	sweep->holds = atomic_load(&record->head->holds);
	sweep->hold = check_alloc((sweep->holds + 1) * sizeof(struct hold));
	sweep->fault = check_alloc((sweep->events + 1) * sizeof(struct fault));
	sweep->process = check_alloc(PROCESSES * sizeof(struct process));
}

static void end_sweep(struct sweep *sweep)
{
	free(sweep->hold);
	free(sweep->name);
	free(sweep->fault);
	free(sweep->process);
}

static void check_resources(struct sweep *sweep)
{
	struct point *points = check_alloc((2 * (size_t)sweep->holds + 1) * sizeof(*points));
	struct span *spans = check_alloc(((size_t)sweep->holds + 1) * sizeof(*spans));
	for (int i = 0; i < sweep->record->head->resources; i++) {
		if (!sweep->record->head->resource[i].capacity)
			continue;
		check_exclusion(sweep, i, points);
		check_tokens(sweep, i, points);
		check_waits(sweep, i, spans);
	}
	free(points);
	free(spans);
}

bool check_record(const struct record *record, struct verdict *verdict)
{
	struct sweep sweep;
	begin_sweep(&sweep, record, verdict);
	read_events(&sweep);
	check_resources(&sweep);
	check_counts(&sweep);
	for (uint32_t i = 1; i <= sweep.holds; i++) {
		const struct hold *hold = &sweep.hold[i];
		check_losses(&sweep, hold);
		check_need(&sweep, hold);
		check_replicas(&sweep, hold);
		check_calls(&sweep, hold);
		check_answers(&sweep, hold);
		if (hold->granted_at && is_in_fault(&sweep, hold->granted_at))
			verdict->grants_in_faults++;
	}
	end_sweep(&sweep);
	return sweep.is_sound;
}
