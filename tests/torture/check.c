/* Checks the history of a round against what docs/guarantees.md promises. */
#include "torture/check.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "support/check.h"
#include "torture/sweep.h"

#define ACTIVE 4096

const char *const rule_names[RULES] = {
	"exclusion",
	"nobody passes a gate that is shut",
	"members enter and leave together",
	"tokens grow",
	"counts are exact",
	"levels are exact",
	"losses are reported once",
	"losses are reported at all",
	"holds are not lost without need",
	"valid-until is kept",
	"extensions are exact",
	"leases end",
	"replicas acknowledge",
	"lost is final",
	"waiters are served",
	"calls return by their deadlines",
	"calls return",
	"released holds are gone",
	"a closed client has nothing",
	"a hold ends when another is granted",
	"a hold ends when it is forced away",
	"a majority is enough",
	"answers are possible",
	"nothing is left",
	"enough is granted",
};

const char *const judged_names[JUDGED] = {
	[JUDGED_COUNTS] = "rounds with counts",
	[JUDGED_LEVELS] = "levels",
	[JUDGED_CANCELS] = "cancelled calls",
	[JUDGED_EXTENSIONS] = "extensions",
	[JUDGED_PASSES] = "passes of gates",
	[JUDGED_MEETINGS] = "entries of double barriers",
	[JUDGED_CLOSED] = "calls of closed clients",
};

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
		if (!(hold->covers >> resource & 1) || !sweep_is_belief(sweep, hold))
			continue;
		points[count++] = (struct point){hold->granted_at, i, true};
		points[count++] = (struct point){sweep_belief_end(sweep, hold), i, false};
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
 * A grant may have been made a lease before its call returned. Permits without an owner that were
 * forgotten are still released, so that there are too many for good.
 */
static int64_t data_matters_from(const struct sweep *sweep, const struct hold *hold)
{
	return hold->flags & SETTLED ? 0 : hold->granted_at - sweep->record->head->lease_ns;
}

/*
 * A hold that a server has forgotten is not renewed any more, so it is lost within one lease after
 * somebody else was granted the lock. That is certain only if that call began after the grant, and
 * if there is no second master which may have made one of the two grants.
 */
static void check_outlived(struct sweep *sweep, const struct scene *scene, const struct hold *old,
                           const struct hold *late)
{
	const struct record_head *head = sweep->record->head;
	int64_t end = sweep_belief_end(sweep, old);
	if (!head->one_master || head->resource[scene->resource].capacity != 1 ||
	    (old->flags & FOREIGN) || late->asked_at <= old->granted_at ||
	    end <= late->granted_at + head->watchdog_ns)
		return;
	sweep_violate(sweep, RULE_OUTLIVED,
	              "%s: process %d believed that it held it until %.6f s, but process %d was "
	              "granted it at %.6f s",
	              sweep_resource(sweep, scene->resource), old->process,
	              sweep_seconds(sweep, end), late->process,
	              sweep_seconds(sweep, late->granted_at));
}

static void judge_overlap(struct sweep *sweep, const struct scene *scene, uint32_t number)
{
	bool is_foreign;
	const struct hold *late = &sweep->hold[number];
	const struct hold *oldest = find_oldest(sweep, scene, &is_foreign);
	int64_t from = data_matters_from(sweep, oldest);
	uint64_t covers = UINT64_C(1) << scene->resource;
	bool is_by_loss = sweep_has_fault(sweep, from, late->granted_at, LOSES_DATA);
	bool is_by_force = sweep_is_forced(sweep, covers, from, late->granted_at);
	if (is_by_loss || is_by_force)
		check_outlived(sweep, scene, oldest, late);
	if (is_by_loss)
		sweep->verdict->overlaps_by_loss++;
	else if (is_by_force)
		sweep->verdict->overlaps_by_force++;
	else if (is_foreign && sweep_has_fault(sweep, from, late->granted_at, DELAYS_JAVA))
		sweep->verdict->overlaps_with_java++;
	else
		sweep_violate(sweep, RULE_EXCLUSION,
		              "%s: granted to process %d at %.6f s, while process %d believed that "
		              "it held it "
		              "from %.6f until %.6f s; %d of %d are held",
		              sweep_resource(sweep, scene->resource), late->process,
		              sweep_seconds(sweep, late->granted_at), oldest->process,
		              sweep_seconds(sweep, oldest->granted_at),
		              sweep_seconds(sweep, sweep_belief_end(sweep, oldest)), scene->held,
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
	       sweep_is_belief(sweep, hold);
}

/*
 * Holds that exclude each other are granted in the order in which the grants are returned. Where a
 * second master may have granted one of them, that is only certain if the second call began after
 * the first grant. A server that has lost its data goes by its clock, which must not have been set
 * back.
 */
static bool is_ordered(const struct sweep *sweep, const struct hold *last, const struct hold *hold)
{
	int64_t from = last->granted_at - sweep->record->head->lease_ns;
	if (!sweep_has_fault(sweep, from, hold->granted_at, LOSES_DATA) &&
	    !sweep_is_forced(sweep, hold->covers, from, hold->granted_at))
		return true;
	return hold->asked_at > last->granted_at &&
	       !sweep_has_fault(sweep, 0, hold->granted_at, TURNS_BACK);
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
			sweep_violate(sweep, RULE_TOKEN,
			              "%s: token %" PRId64 " at %.6f s came after %" PRId64
			              " at %.6f s",
			              sweep_resource(sweep, resource), hold->token,
			              sweep_seconds(sweep, hold->granted_at), last->token,
			              sweep_seconds(sweep, last->granted_at));
		last = hold;
	}
}

/* ---- waiters ---- */

/* Until when something of this acquisition may be on the servers; 0: nothing ever was. */
static int64_t occupied_until(const struct sweep *sweep, const struct hold *hold)
{
	int64_t lease = sweep->record->head->lease_ns, gone_at = sweep_gone_at(sweep, hold);
	if ((hold->flags & PASSES) || (!hold->released_at && sweep_has_given_up(hold)))
		return 0;
	if (gone_at)
		return gone_at;
	if (hold->closed_at)
		return hold->closed_at + lease;
	if (hold->released_at)
		return hold->released_at + lease;
	if (hold->granted_at)
		return hold->until + lease;
	if (!hold->refused_at)
		return sweep->process[hold->process].killed_at + lease;
	if (hold->flags & DRAINS)
		return FOREVER;
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

/* How long a waiter of a free lock may wait. */
static int64_t most_ns(const struct sweep *sweep, int resource)
{
	const struct record_head *head = sweep->record->head;
	return head->sparse >> resource & 1 ? head->prompt_ns : head->quiet_ns;
}

/*
 * Fills in when the resource is free for longer than a waiter may wait. Returns how many times it
 * is.
 */
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
		if (span.begin - free_at > most_ns(sweep, resource))
			spans[gaps++] = (struct span){free_at, span.begin};
		if (span.end > free_at)
			free_at = span.end;
	}
	spans[gaps++] = (struct span){free_at, FOREVER};
	return gaps;
}

/*
 * After a fault, connections and leases have this long to recover; nobody leaves a lease of a
 * sparse resource.
 */
static int64_t recovery_ns(const struct sweep *sweep, int resource)
{
	const struct record_head *head = sweep->record->head;
	return (head->sparse >> resource & 1 ? head->lease_ns : 2 * head->lease_ns) +
	       INT64_C(4000000000);
}

/* The part of the wait in which the lock was free and no fault had any effect. */
static void check_wait(struct sweep *sweep, const struct hold *hold, struct span gap)
{
	int64_t returned_at = hold->granted_at ? hold->granted_at : hold->refused_at;
	int64_t begin = gap.begin > hold->asked_at ? gap.begin : hold->asked_at;
	int64_t end = gap.end < returned_at ? gap.end : returned_at;
	int resource = __builtin_ctzll(hold->covers);
	for (size_t i = 0; i < sweep->faults; i++) {
		const struct fault *fault = &sweep->fault[i];
		int64_t over_at =
			fault->end == FOREVER ? FOREVER : fault->end + recovery_ns(sweep, resource);
		if (fault->begin <= end && over_at > begin)
			begin = over_at;
	}
	if (end - begin > most_ns(sweep, resource))
		sweep_violate(
			sweep, RULE_SERVED,
			"%s: free from %.6f to %.6f s, while process %d waited from %.6f to %.6f s",
			sweep_name(sweep, hold), sweep_seconds(sweep, begin),
			sweep_seconds(sweep, end), hold->process,
			sweep_seconds(sweep, hold->asked_at), sweep_seconds(sweep, returned_at));
}

/*
 * Only of calls that want one resource: the others need several to be free at the same time. Java
 * waits in ways of its own.
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

/* ---- what queries show ---- */

/* Another master may lack the release, and a request that was repeated may arrive once more. */
static void check_seen(struct sweep *sweep, const struct event *event)
{
	size_t count;
	const struct name *name = sweep_find(sweep, event->identity, &count);
	for (size_t i = 0; i < count; i++) {
		const struct hold *hold = &sweep->hold[name[i].hold];
		int64_t from = hold->granted_at - sweep->record->head->lease_ns;
		int64_t gone_at = sweep_gone_at(sweep, hold);
		if (!gone_at || gone_at >= event->until ||
		    sweep_has_fault(sweep, from, event->at, LOSES_DATA | KEEPS_REQUESTS))
			continue;
		sweep_violate(sweep, RULE_GHOST,
		              "%s: the hold of %.6f s was released by %.6f s, and is on the server "
		              "at %.6f s",
		              sweep_name(sweep, hold), sweep_seconds(sweep, hold->granted_at),
		              sweep_seconds(sweep, gone_at), sweep_seconds(sweep, event->at));
	}
}

static void check_all_seen(struct sweep *sweep)
{
	for (uint64_t i = 0; i < sweep->events; i++)
		if (atomic_load(&sweep->record->events[i].moment) == SEEN)
			check_seen(sweep, &sweep->record->events[i]);
}

/* ---- all of it ---- */

/* Java may be granted locks although the library is not. */
static void check_activity(struct sweep *sweep)
{
	const struct verdict *verdict = sweep->verdict;
	int least = sweep->record->head->least_grants;
	if (verdict->grants - verdict->foreign_grants < (uint64_t)least)
		sweep_violate(sweep, RULE_IDLE,
		              "the library was granted %" PRIu64 " locks, not at least %d",
		              verdict->grants - verdict->foreign_grants, least);
}

static void check_resources(struct sweep *sweep)
{
	struct point *points = check_alloc((2 * (size_t)sweep->holds + 1) * sizeof(*points));
	struct span *spans = check_alloc(((size_t)sweep->holds + 1) * sizeof(*spans));
	for (int i = 0; i < sweep->record->head->resources; i++) {
		if (!sweep->record->head->resource[i].capacity)
			continue;
		check_exclusion(sweep, i, points);
		check_gate(sweep, i);
		check_tokens(sweep, i, points);
		check_waits(sweep, i, spans);
	}
	free(points);
	free(spans);
}

bool check_record(const struct record *record, struct verdict *verdict)
{
	struct sweep sweep;
	sweep_begin(&sweep, record, verdict);
	check_resources(&sweep);
	check_counts(&sweep);
	check_levels(&sweep);
	check_meetings(&sweep);
	check_all_seen(&sweep);
	check_losses(&sweep);
	check_closings(&sweep);
	check_activity(&sweep);
	for (uint32_t i = 1; i <= sweep.holds; i++) {
		const struct hold *hold = &sweep.hold[i];
		check_loss(&sweep, hold);
		check_hold(&sweep, hold);
		check_closed(&sweep, hold);
		if (hold->granted_at && sweep_is_in_fault(&sweep, hold->granted_at))
			verdict->grants_in_faults++;
	}
	sweep_end(&sweep);
	return sweep.is_sound;
}
