/* A hashed timing wheel: a pure data structure, to which the caller passes the time. */
#include "engine/wheel.h"

#include "base/clock.h"

#include <assert.h>

static unsigned slot_of(int64_t at)
{
	return (unsigned)((uint64_t)at % HF__WHEEL_SLOTS);
}

static void collect_slot(struct hf__wheel *wheel, unsigned slot, int64_t now)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &wheel->slot[slot]) {
		struct hf__timer *timer = hf__list_item(link, struct hf__timer, link);
		if (timer->at > now)
			continue;
		hf__list_remove(link);
		hf__list_add(&wheel->due, link);
	}
	if (hf__list_empty(&wheel->slot[slot]))
		wheel->filled[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

/* How many of the `count` slots from `from` on are empty before the first that may have timers. */
static unsigned skip_empty(const struct hf__wheel *wheel, unsigned from, unsigned count)
{
	unsigned done = 0;
	while (done < count) {
		unsigned slot = (from + done) % HF__WHEEL_SLOTS;
		uint64_t word = wheel->filled[slot / 64] >> (slot % 64);
		if (word)
			return done + (unsigned)__builtin_ctzll(word);
		done += 64 - slot % 64;
	}
	return count;
}

static int64_t earliest_in_slot(const struct hf__wheel *wheel, unsigned slot)
{
	int64_t earliest = HF__NEVER;
	const struct hf__list *link;
	hf__list_each (link, &wheel->slot[slot]) {
		int64_t at = hf__list_item(link, struct hf__timer, link)->at;
		if (at < earliest)
			earliest = at;
	}
	return earliest;
}

/* A timer of the current revolution ends the search; without one, the earliest of all counts. */
static int64_t find_next(const struct hf__wheel *wheel)
{
	if (!hf__list_empty(&wheel->due))
		return wheel->now;
	int64_t earliest = HF__NEVER;
	unsigned from = slot_of(wheel->now);
	for (unsigned i = 0; i < HF__WHEEL_SLOTS; i++) {
		i += skip_empty(wheel, (from + i) % HF__WHEEL_SLOTS, HF__WHEEL_SLOTS - i);
		if (i >= HF__WHEEL_SLOTS)
			break;
		int64_t at = earliest_in_slot(wheel, (from + i) % HF__WHEEL_SLOTS);
		if (at < earliest)
			earliest = at;
		if (earliest <= wheel->now + i)
			break;
	}
	return earliest;
}

void hf__wheel_init(struct hf__wheel *wheel, int64_t now)
{
	*wheel = (struct hf__wheel){.now = now, .next = HF__NEVER};
	hf__list_init(&wheel->due);
	for (unsigned i = 0; i < HF__WHEEL_SLOTS; i++)
		hf__list_init(&wheel->slot[i]);
}

void hf__wheel_timer_init(struct hf__timer *timer, uint8_t tag)
{
	hf__list_init(&timer->link);
	timer->at = HF__NEVER;
	timer->tag = tag;
}

void hf__wheel_start(struct hf__wheel *wheel, struct hf__timer *timer, int64_t at)
{
	assert(wheel && timer);
	hf__wheel_stop(wheel, timer);
	if (at == HF__NEVER)
		return;
	/* A time in the past goes into the slot that the next advance checks first. */
	unsigned slot = slot_of(at > wheel->now ? at : wheel->now);
	timer->at = at;
	hf__list_add(&wheel->slot[slot], &timer->link);
	wheel->filled[slot / 64] |= UINT64_C(1) << (slot % 64);
	wheel->entries++;
	if (at < wheel->next)
		wheel->next = at;
}

void hf__wheel_stop(struct hf__wheel *wheel, struct hf__timer *timer)
{
	if (!hf__wheel_is_running(timer))
		return;
	assert(wheel->entries > 0);
	hf__list_remove(&timer->link);
	timer->at = HF__NEVER;
	wheel->entries--;
}

void hf__wheel_advance(struct hf__wheel *wheel, int64_t now)
{
	if (now < wheel->now)
		now = wheel->now;
	if (wheel->next <= now) {
		int64_t span = now - wheel->now + 1;
		unsigned count = span < HF__WHEEL_SLOTS ? (unsigned)span : HF__WHEEL_SLOTS;
		unsigned from = slot_of(wheel->now);
		for (unsigned i = 0; i < count; i++) {
			i += skip_empty(wheel, (from + i) % HF__WHEEL_SLOTS, count - i);
			if (i >= count)
				break;
			collect_slot(wheel, (from + i) % HF__WHEEL_SLOTS, now);
		}
		wheel->now = now;
		wheel->next = find_next(wheel);
	}
	wheel->now = now;
}

struct hf__timer *hf__wheel_take(struct hf__wheel *wheel)
{
	if (hf__list_empty(&wheel->due))
		return NULL;
	struct hf__timer *timer = hf__list_item(wheel->due.next, struct hf__timer, link);
	hf__list_remove(&timer->link);
	timer->at = HF__NEVER;
	assert(wheel->entries > 0);
	wheel->entries--;
	if (hf__list_empty(&wheel->due))
		wheel->next = find_next(wheel);
	return timer;
}
