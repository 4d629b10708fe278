/*
 * The hashed wheel timer: a pure data structure, the caller passes the time.
 *
 * Start and stop are O(1). Entries live inside what they time. Due entries are collected first and
 * handed out one by one, so whatever runs for one of them may start and stop others: a stopped
 * entry never comes out.
 */
#ifndef HF_ENGINE_WHEEL_H
#define HF_ENGINE_WHEEL_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

#define HF__WHEEL_SLOTS 1024 /* of one millisecond each; later entries wait whole turns */

struct hf__timer {
	struct hf__list link; /* in a slot, or in the due list */
	int64_t at;           /* not handed out before; HF__NEVER when stopped */
	uint8_t tag;          /* the user's: what it times */
};

struct hf__wheel {
	struct hf__list slot[HF__WHEEL_SLOTS];
	struct hf__list due;
	uint64_t filled[HF__WHEEL_SLOTS / 64]; /* a bit per slot that may have entries */
	int64_t now;                           /* up to here all slots have been looked at */
	int64_t next;                          /* nothing is due before */
	uint32_t entries;
};

void hf__wheel_init(struct hf__wheel *wheel, int64_t now);

/* Must be done once before a timer is used. */
void hf__wheel_timer_init(struct hf__timer *timer, uint8_t tag);

/* Starts the timer, or moves it if it runs. A point in the past is due at the next advance. */
void hf__wheel_start(struct hf__wheel *wheel, struct hf__timer *timer, int64_t at);
void hf__wheel_stop(struct hf__wheel *wheel, struct hf__timer *timer);

static inline bool hf__wheel_running(const struct hf__timer *timer)
{
	return timer->at != INT64_MAX;
}

/*
 * A point in time before which nothing is due: exact after an advance, else it may be too early
 * because the timer it stands for was stopped.
 */
static inline int64_t hf__wheel_next(const struct hf__wheel *wheel)
{
	return wheel->next;
}

/* Moves time forward (never back) and collects what is due. */
void hf__wheel_advance(struct hf__wheel *wheel, int64_t now);

/* Takes the next due entry, stopped, or NULL. */
struct hf__timer *hf__wheel_take(struct hf__wheel *wheel);

#endif
