/*
 * A hashed timing wheel: a pure data structure, to which the caller passes the time.
 *
 * Start and stop take constant time. Timers live inside what they time. Due timers are collected
 * first and handed out one by one, so that the code that runs for one of them can start and stop
 * others: a timer that was stopped is never handed out.
 */
#ifndef HF_ENGINE_WHEEL_H
#define HF_ENGINE_WHEEL_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

/* Slots of one millisecond each; a timer that is further away waits for several revolutions. */
#define HF__WHEEL_SLOTS 1024

struct hf__timer {
	struct hf__list link; /* in a slot, or in the due list */
	int64_t at;           /* it is not handed out before; HF__NEVER when stopped */
	uint8_t tag;          /* the user's: what it times */
};

struct hf__wheel {
	struct hf__list slot[HF__WHEEL_SLOTS];
	struct hf__list due;
	uint64_t filled[HF__WHEEL_SLOTS / 64]; /* a bit for each slot that may have timers */
	int64_t now;                           /* all slots up to here have been checked */
	int64_t next;                          /* nothing is due before */
	uint32_t entries;
};

void hf__wheel_init(struct hf__wheel *wheel, int64_t now);

/* Must be called once before a timer is used. */
void hf__wheel_timer_init(struct hf__timer *timer, uint8_t tag);

/* Starts the timer, or moves it if it runs. A time in the past is due at the next advance. */
void hf__wheel_start(struct hf__wheel *wheel, struct hf__timer *timer, int64_t at);
void hf__wheel_stop(struct hf__wheel *wheel, struct hf__timer *timer);

static inline bool hf__wheel_is_running(const struct hf__timer *timer)
{
	return timer->at != INT64_MAX;
}

/*
 * Nothing is due before this time. It is exact after an advance; otherwise it may be too early,
 * because the timer that it stands for was stopped.
 */
static inline int64_t hf__wheel_next(const struct hf__wheel *wheel)
{
	return wheel->next;
}

/* Moves time forward (never back) and collects the timers that are due. */
void hf__wheel_advance(struct hf__wheel *wheel, int64_t now);

/* Takes the next due timer and stops it; NULL if there is none. */
struct hf__timer *hf__wheel_take(struct hf__wheel *wheel);

#endif
