/* Prints a record, for people who want to know what happened. */
#include "torture/dump.h"

#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "torture/record.h"

static const char *const moments[] = {
	[NOTHING] = "nothing",     [ASKED] = "asked",           [GRANTED] = "granted",
	[REFUSED] = "refused",     [CONFIRMED] = "confirmed",   [ENDED] = "ended",
	[UNWATCHED] = "unwatched", [RELEASING] = "releasing",   [RELEASED] = "released",
	[LOST] = "lost",           [COUNTING] = "counting",     [COUNTED] = "counted",
	[KILLED] = "KILLED",       [FINISHED] = "finished",     [FAULT] = "FAULT",
	[HEALED] = "HEALED",       [REMAINING] = "remaining",   [LEFT_BEHIND] = "left",
	[FORCING] = "FORCING",     [FORCED] = "FORCED",         [SEEN] = "seen",
	[STOPPED] = "stopped",     [CONTINUING] = "continuing", [NAMED] = "named",
	[TALLIED] = "tallied",     [CANCELLING] = "cancelling", [EXTENDING] = "extending",
	[EXTENDED] = "extended",   [LEVELS] = "levels",         [CLOSING] = "CLOSING",
	[CLOSED] = "CLOSED",
};

static int compare_events(const void *one, const void *two)
{
	const struct event *const *a = one;
	const struct event *const *b = two;
	return (*a)->at < (*b)->at ? -1 : (*a)->at > (*b)->at;
}

/* What the later events of a hold are about is only in its first one. */
static uint64_t *read_covers(const struct record *record, uint64_t used)
{
	uint64_t *covers = check_alloc((atomic_load(&record->head->holds) + 1) * sizeof(*covers));
	for (uint64_t i = 0; i < used; i++)
		if (record->events[i].covers)
			covers[record->events[i].hold] |= record->events[i].covers;
	return covers;
}

static uint64_t find_resource(const struct record *record, const char *name)
{
	for (int i = 0; name && i < record->head->resources; i++)
		if (strcmp(record->head->resource[i].name, name) == 0)
			return UINT64_C(1) << i;
	return UINT64_MAX;
}

static void print_event(const struct record *record, const struct event *event, int64_t start)
{
	int moment = event->moment;
	printf("%11.6f %-9s", (double)(event->at - start) / 1e9, moments[moment]);
	if (moment == FAULT)
		printf(" %s", record->head->fault[event->code].text);
	if (event->hold)
		printf(" #%" PRIu32, event->hold);
	if (event->process)
		printf(" process %d", event->process);
	if (event->until)
		printf(" until %.6f", (double)(event->until - start) / 1e9);
	if (event->token)
		printf(" token %" PRId64, event->token);
	if (event->identity)
		printf(" identity %" PRIx64, event->identity);
	if (event->code < 0)
		printf(" %s", hf_strerror(event->code));
	printf("%s\n", event->flags & RENEWED && moment == ASKED ? " renewed" : "");
}

void dump_record(const char *path, const char *name)
{
	struct record record = record_open(path);
	uint64_t used = atomic_load(&record.head->used), wanted = find_resource(&record, name);
	uint64_t *covers = read_covers(&record, used);
	const struct event **sorted = check_alloc((used + 1) * sizeof(*sorted));
	for (uint64_t i = 0; i < used; i++)
		sorted[i] = &record.events[i];
	qsort(sorted, used, sizeof(*sorted), compare_events);
	for (uint64_t i = 0; i < used; i++) {
		const struct event *event = sorted[i];
		bool is_for_all = event->moment == LOST ||
		                  (event->moment >= KILLED && event->moment <= HEALED);
		if (is_for_all || ((event->covers | covers[event->hold]) & wanted))
			print_event(&record, event, record.events[0].at);
	}
	free(sorted);
	free(covers);
	record_close(&record);
}
