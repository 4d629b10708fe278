/* What the plans of multi and red locks share: the subcalls of a round, and what they answered. */
#include "api/several.h"

#include <assert.h>
#include <stdio.h>

int64_t hf__plan_time_left(const struct hf__work *work, int64_t now)
{
	return work->deadline == HF__NEVER ? HF__NEVER : work->deadline - now;
}

void hf__plan_add(struct hf__work *work, size_t member, const struct hf__want *want)
{
	assert(work->subs < work->several->n);
	struct hf__subcall *sub = &work->sub[work->subs++];
	*sub = (struct hf__subcall){.work = work, .member = member, .want = *want};
	if (want->action == HF__OP_RELEASE)
		sub->wire = work->wire[member];
	sub->want.owner = work->want.owner;
	sub->want.by_thread = work->want.by_thread;
}

void hf__plan_add_each(struct hf__work *work, uint64_t members, const struct hf__want *want)
{
	for (size_t i = 0; i < work->several->n; i++)
		if (members >> i & 1)
			hf__plan_add(work, i, want);
}

int64_t hf__plan_limit(const struct hf__work *work)
{
	const struct hf_client *client = work->several->member[0].lock.at.client;
	int64_t lease_ms = work->want.lease_ms ? work->want.lease_ms : client->settings.watchdog_ms;
	int64_t limit = lease_ms / 30;
	return limit < HF__LEAST_LIMIT_MS  ? HF__LEAST_LIMIT_MS
	       : limit > HF__MOST_LIMIT_MS ? HF__MOST_LIMIT_MS
	                                   : limit;
}

void hf__plan_undo(struct hf__work *work, enum hf__phase phase)
{
	struct hf__want want = {.action = HF__OP_RELEASE};
	work->phase = phase;
	hf__plan_add_each(work, work->got, &want);
	work->got = 0;
}

int hf__plan_worst(const struct hf__work *work)
{
	static const int order[] = {HF_ELOST, HF_EUNKNOWN};
	for (size_t o = 0; o < sizeof order / sizeof *order; o++)
		for (size_t i = 0; i < work->subs; i++)
			if (work->sub[i].result == order[o])
				return (int)i;
	for (size_t i = 0; i < work->subs; i++)
		if (work->sub[i].result)
			return (int)i;
	return -1;
}

void hf__plan_fail(struct hf__work *work, const struct hf__subcall *sub)
{
	work->result = sub->result;
	snprintf(work->detail, sizeof work->detail, "%s", sub->detail);
}
