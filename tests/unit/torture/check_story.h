/*
 * Records that tests of the checker write by hand, and what they expect of it.
 */
#ifndef TESTS_UNIT_TORTURE_CHECK_STORY_H
#define TESTS_UNIT_TORTURE_CHECK_STORY_H

#include "torture/check.h"

#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/temp.h"

#define MS      INT64_C(1000000)
#define AT(ms)  ((ms)*MS + 1)
#define LOCK    (UINT64_C(1) << 0)
#define PERMITS (UINT64_C(1) << 1)
#define LATCH   (UINT64_C(1) << 2)
#define RW      (UINT64_C(1) << 3)

/* A record that tests write by hand. */
struct story {
	char *dir;
	struct record record;
	struct verdict verdict;
};

static inline int begin(void **state)
{
	struct story *story = check_alloc(sizeof(*story));
	story->dir = temp_dir_make();
	char *path = check_format("%s/record", story->dir);
	story->record = record_create(path, 1000);
	free(path);
	struct record_head *head = story->record.head;
	head->watchdog_ns = 3000 * MS;
	head->lease_ns = 3000 * MS;
	head->quiet_ns = 2000 * MS;
	head->prompt_ns = 1000 * MS;
	head->patience_ns = 1000 * MS;
	head->resources = 4;
	head->resource[0] = (struct resource){"lock", 1, 0};
	head->resource[1] = (struct resource){"permits", 3, 3};
	head->resource[2] = (struct resource){"latch", 0, 100};
	head->resource[3] = (struct resource){"rw", 1000, 0};
	*state = story;
	return 0;
}

static inline int end(void **state)
{
	struct story *story = *state;
	record_close(&story->record);
	temp_dir_remove(story->dir);
	free(story);
	return 0;
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* ---- sentences ---- */

#define ADD(...) RECORD(&story->record, __VA_ARGS__)

/*
 * A process acquires what it covers, and its hold is valid until the given time. Returns the hold.
 */
static inline uint32_t acquire(struct story *story, uint16_t process, uint64_t covers,
                               uint16_t share, long at, long until)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(at - 1), .until = AT(at + 500), .hold = hold,
	    .process = process, .covers = covers, .share = share);
	ADD(.moment = GRANTED, .at = AT(at), .until = AT(until), .hold = hold, .process = process,
	    .identity = 1000 + hold);
	return hold;
}

static inline uint32_t acquire_lock(struct story *story, uint16_t process, long at)
{
	return acquire(story, process, LOCK, 1, at, at + 1000);
}

static inline void release(struct story *story, uint32_t hold, long at, int code)
{
	ADD(.moment = RELEASING, .at = AT(at), .until = AT(at + 500), .hold = hold);
	ADD(.moment = RELEASED, .at = AT(at + 1), .hold = hold, .code = (int16_t)code);
}

/* An acquire that returns an error. */
static inline void refuse(struct story *story, long asked, long deadline, long returned, int code)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(asked), .until = AT(deadline), .hold = hold, .process = 1,
	    .covers = LOCK, .share = 1);
	ADD(.moment = REFUSED, .at = AT(returned), .hold = hold, .code = (int16_t)code);
}

static inline void lose(struct story *story, uint32_t hold, long at)
{
	ADD(.moment = LOST, .at = AT(at), .identity = 1000 + hold);
}

/* A process holds the lock, renews it, and loses it. */
static inline void lose_a_renewed_hold(struct story *story, long at)
{
	uint32_t hold = record_new_hold(&story->record);
	ADD(.moment = ASKED, .at = AT(9), .hold = hold, .process = 1, .covers = LOCK, .share = 1,
	    .flags = RENEWED);
	ADD(.moment = GRANTED, .at = AT(10), .until = AT(at), .hold = hold,
	    .identity = 1000 + hold);
	lose(story, hold, at);
	release(story, hold, at + 10, HF_ELOST);
}

static inline void finish(struct story *story)
{
	for (uint16_t i = 1; i <= 3; i++)
		ADD(.moment = FINISHED, .at = AT(100000), .process = i);
}

static inline void add_fault(struct story *story, long begin_ms, long end_ms, uint16_t effects)
{
	uint32_t number = record_new_hold(&story->record);
	ADD(.moment = FAULT, .at = AT(begin_ms), .hold = number, .flags = effects);
	ADD(.moment = HEALED, .at = AT(end_ms), .hold = number);
}

/* ---- what is expected of the checker ---- */

static inline void expect_sound(struct story *story)
{
	finish(story);
	bool is_sound = check_record(&story->record, &story->verdict);
	for (int i = 0; i < RULES; i++)
		if (story->verdict.violations[i])
			fail_msg("%s: %s", rule_names[i], story->verdict.first[i]);
	assert_true(is_sound);
}

static inline void expect_only(struct story *story, enum check_rule rule)
{
	finish(story);
	assert_false(check_record(&story->record, &story->verdict));
	for (int i = 0; i < RULES; i++)
		if (story->verdict.violations[i] != (i == (int)rule))
			fail_msg("%s: %d violations: %s", rule_names[i],
			         (int)story->verdict.violations[i], story->verdict.first[i]);
}

#endif
