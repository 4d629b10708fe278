/* The watchdog: renews holds in batches, and learns which ones the server no longer has. */
#include "core/watchdog.h"
#include "core/cmd.h"
#include "core/core.h"
#include "core/mutants.h"

#include <assert.h>

/* How many holds that it cannot renew one command may skip, so that a search is short. */
#define MOST_SKIPPED 100

/*
 * A third of the lease after it was confirmed, rounded down to a thirtieth of the lease, so that
 * one command renews holds that were granted at about the same time.
 */
int64_t hf__watchdog_next(int64_t sent_at, int64_t lease_ms)
{
	int64_t at = sent_at + lease_ms / 3;
	int64_t grain = lease_ms / 30;
	return grain > 1 ? at - at % grain : at;
}

/* A hold whose thread has ended is renewed until the client closes, which is rarely intended. */
static void check_thread(struct hf__core *core, struct hf__hold *hold)
{
	if (!hf__thread_has_ended(hold->thread))
		return;
	hf__log_write(core, HF_LOG_WARN,
	              "%s: the thread that acquired it has ended; it is renewed until the client "
	              "is closed",
	              hold->cmd.lock->name);
	hf__thread_unref(hold->thread);
	hold->thread = NULL;
}

static void on_renewed(struct hf__core *core, struct hf__hold *hold,
                       const struct hf__renewal *renewal, int64_t now)
{
	int64_t lease_ms = renewal->item[hold->slot].lease_ms;
	hold->tries = 0;
	if (lease_ms == 0) {
		hf__hold_arm(core, hold);
		return;
	}
	int64_t left_ms = hold->valid_until - now;
	int64_t before_ms = hf__hold_lease(hold);
	if (!hf__hold_confirm(core, hold, renewal->cmd.sent_at, lease_ms, now)) {
		hf__hold_check(core, hold, now);
		return;
	}
	hold->renew_at = hf__watchdog_next(renewal->cmd.sent_at, lease_ms);
	core->stats.renewals++;
	if (core->metrics)
		hf__measure_count_renewal(core, renewal->due_at, left_ms, before_ms);
	check_thread(core, hold);
	if (now > renewal->due_at && (uint64_t)(now - renewal->due_at) > core->stats.renewal_lag_ms)
		core->stats.renewal_lag_ms = (uint64_t)(now - renewal->due_at);
	hf__hold_arm(core, hold);
}

/* If the link is down, the next connection renews all holds; otherwise this one is retried soon. */
static void on_missed(struct hf__core *core, struct hf__hold *hold, enum hf__outcome outcome,
                      int64_t now)
{
	bool cut = outcome == HF__UNKNOWN || outcome == HF__UNSENT;
	if (hold->tries < UINT8_MAX)
		hold->tries++;
	hold->renew_at = HF__NEVER;
	if (!HF__MUTANT(ONE_MISS_ENDS) && (!cut || hold->cmd.lock->link->up))
		hold->renew_at = now + hf__random_jitter(&core->random,
		                                         hf__hold_renew_lease(core, hold) / 12 + 1);
	if (HF__MUTANT(ONE_MISS_ENDS))
		hold->renewed_from = 0;
	hf__hold_arm(core, hold);
}

/* For one of the holds this was the first try since its last renewal. */
static bool has_first_try(const struct hf__renewal *renewal)
{
	for (uint16_t i = 0; i < renewal->holds; i++)
		if (renewal->hold[i] && renewal->hold[i]->tries == 0)
			return true;
	return false;
}

static void on_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                      int64_t now)
{
	struct hf__renewal *renewal = hf__list_item(cmd, struct hf__renewal, cmd);
	if (answer->outcome != HF__DONE)
		core->stats.renewal_failures++;
	/* The repeats are mostly refused for the same reason. */
	bool is_refused = answer->outcome == HF__NOT_NOW || answer->outcome == HF__FAILED;
	if (is_refused && has_first_try(renewal))
		hf__log_write(core, HF_LOG_WARN, "renewal refused and will be retried: %.*s",
		              (int)answer->length, answer->text);
	for (uint16_t i = 0; i < renewal->holds; i++) {
		struct hf__hold *hold = renewal->hold[i];
		if (!hold)
			continue;
		hold->renewal = 0;
		renewal->hold[i] = NULL;
		if (hold->state != HF__HOLD_HELD)
			continue;
		if (answer->outcome != HF__DONE)
			on_missed(core, hold, answer->outcome, now);
		else if (answer->there[i])
			on_renewed(core, hold, renewal, now);
		else
			hf__hold_lose(core, hold, HF__LOST_GONE, now);
	}
	uint16_t items = renewal->holds;
	renewal->holds = 0;
	for (uint16_t i = 0; i < items; i++)
		hf__lock_unref(core, renewal->item[i].lock);
	hf__watchdog_flush(core, now);
}

void hf__watchdog_init(struct hf__core *core)
{
	size_t used = 0;
	for (int i = 0; i < HF__RENEWALS; i++) {
		struct hf__renewal *renewal = &core->renewal[i];
		renewal->room = i < HF__RENEWALS_LARGE ? HF__RENEW_MAX : HF__RENEW_SMALL;
		renewal->hold = core->renewal_hold + used;
		renewal->item = core->renewal_item + used;
		used += renewal->room;
		hf__list_init(&renewal->cmd.link);
	}
	assert(used == HF__RENEW_ITEMS);
}

static uint32_t batch_of(const struct hf__core *core, const struct hf__hold *hold)
{
	const struct hf__backend_ops *ops = core->backend_ops;
	return ops->batch ? ops->batch(core->backend, hold->cmd.lock) : HF__BATCH_ANY;
}

/* If one command can renew all holds, it is better to wait for a free one and make it large. */
static struct hf__renewal *free_renewal(struct hf__core *core, const struct hf__hold *first)
{
	int count = batch_of(core, first) == HF__BATCH_ANY ? HF__RENEWALS_LARGE : HF__RENEWALS;
	for (int i = 0; i < count; i++)
		if (!core->renewal[i].cmd.in_flight && core->renewal[i].holds == 0)
			return &core->renewal[i];
	return NULL;
}

/* Whether one command can renew both holds. */
static bool go_together(const struct hf__core *core, const struct hf__hold *first,
                        const struct hf__hold *second)
{
	const struct hf__lock *one = first->cmd.lock, *other = second->cmd.lock;
	return first->renew_ms == second->renew_ms &&
	       one->traits->renew_group == other->traits->renew_group && one->link == other->link &&
	       one->slot == other->slot && batch_of(core, first) == batch_of(core, second);
}

/* The first hold to renew whose link is up, or NULL. */
static struct hf__hold *first_to_renew(const struct hf__core *core)
{
	struct hf__list *link;
	hf__list_each (link, &core->renew) {
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, renew);
		if (hold->cmd.lock->link->up)
			return hold;
	}
	return NULL;
}

/*
 * The first hold, and those after it that one command can renew together with it; the others wait
 * for the next. The links of all holds before the first are down.
 */
static void fill(struct hf__core *core, struct hf__renewal *renewal, struct hf__hold *first,
                 int64_t now)
{
	struct hf__list *after;
	size_t bytes = 0;
	int others = 0;
	renewal->due_at = now;
	for (struct hf__list *link = &first->renew; link != &core->renew; link = after) {
		after = link->next;
		struct hf__hold *hold = hf__list_item(link, struct hf__hold, renew);
		const struct hf__lock *lock = hold->cmd.lock;
		if (!go_together(core, first, hold)) {
			if (++others == MOST_SKIPPED)
				break;
			continue;
		}
		bytes += lock->length + lock->values * (HF__VALUE_SIZE + 8u);
		if (bytes > HF__RENEW_BYTES || renewal->holds == renewal->room ||
		    renewal->holds == core->config.watchdog_batch)
			break;
		uint16_t slot = renewal->holds++;
		hf__list_remove(&hold->renew);
		hold->renewal = (uint8_t)(renewal - core->renewal + 1);
		hold->slot = slot;
		hold->cmd.lock->refs++; /* the command names it even if the hold ends meanwhile */
		renewal->hold[slot] = hold;
		if (hold->renew_at < renewal->due_at)
			renewal->due_at = hold->renew_at;
		renewal->item[slot] = (struct hf__renew_item){
			.lock = hold->cmd.lock,
			.wire = hold->cmd.wire,
			.lease_ms =
				hf__hold_is_renewed(hold) ? hf__hold_renew_lease(core, hold) : 0,
		};
	}
}

void hf__watchdog_flush(struct hf__core *core, int64_t now)
{
	struct hf__hold *first;
	while ((first = first_to_renew(core))) {
		struct hf__renewal *renewal = free_renewal(core, first);
		if (!renewal)
			return;
		fill(core, renewal, first, now);
		int64_t limit_ms = hf__hold_renew_lease(core, first) / (first->tries ? 12 : 9);
		renewal->cmd.verb = HF__RENEW;
		renewal->cmd.user = HF__CMD_OF_RENEWAL;
		renewal->cmd.item = renewal->item;
		renewal->cmd.items = renewal->holds;
		renewal->cmd.on_answer = on_answer;
		core->stats.renewal_scripts++;
		hf__cmd_submit(core, first->cmd.lock->link, &renewal->cmd, now,
		               limit_ms > 50 ? limit_ms : 50);
	}
}
