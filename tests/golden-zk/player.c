/* Plays a story with this library in the place of both its clients. */
#include "golden-zk/player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden-zk/calls.h"
#include "golden-zk/cast.h"
#include "golden-zk/snapshot.h"
#include "live/live.h"

/* How long to watch for changes where the story sleeps and nothing changes. */
#define QUIET_MS 400

/* Where in the story something went wrong, for messages. */
static char place[200];

static void name_place(const struct zk_story_step *step, int number)
{
	int at = snprintf(place, sizeof place, "step %d,", number);
	for (int i = 0; i < step->words && at < (int)sizeof place; i++)
		at += snprintf(place + at, sizeof place - (size_t)at, " %s", step->word[i]);
}

/* ---- answers ---- */

static void check_gives(const struct zk_story_step *step, const struct calls_answer *answer)
{
	bool same =
		step->result ? snapshot_is_same(step->result, answer->gives) : !answer->gives[0];
	if (!same)
		fail_msg("%s: gives %s (%s), not %s", place,
		         answer->gives[0] ? answer->gives : "nothing", answer->detail,
		         step->result ? step->result : "nothing");
}

static bool has_row(const struct calls_answer *answer, const char *row)
{
	for (int i = 0; i < answer->rows; i++)
		if (snapshot_is_same(row, answer->row[i]))
			return true;
	return false;
}

/* Java lists leases as the server does, in no order. */
static void check_rows(const struct zk_story_step *step, const struct calls_answer *answer)
{
	bool ordered = step->rows > 0 && !strstr(step->row[0], "-lease-");
	if (step->rows != answer->rows)
		fail_msg("%s: %d participants, not %d", place, answer->rows, step->rows);
	for (int i = 0; i < step->rows; i++)
		if (ordered ? !snapshot_is_same(step->row[i], answer->row[i])
		            : !has_row(answer, step->row[i]))
			fail_msg("%s: participant %d is %s, not %s", place, i, answer->row[i],
			         step->row[i]);
}

/* A loss is noticed soon, but not in the same moment. */
static void make_call(const struct zk_story_step *step)
{
	struct calls_answer answer;
	bool repeats = strcmp(step->word[0], "owned") == 0 && strcmp(step->result, "lost") == 0;
	long long ends_at = test_now_ms() + SOON_MS;
	for (;;) {
		bool last = test_now_ms() >= ends_at;
		calls_do(step, &answer);
		if (!repeats || last || strcmp(answer.gives, step->result) == 0)
			break;
		test_pause();
	}
	check_gives(step, &answer);
	check_rows(step, &answer);
}

/* ---- what comes of it ---- */

static void await_tree(const struct zk_story_step *step)
{
	long long ends_at = test_now_ms() + CAST_PATIENCE_MS;
	char why[300];
	for (;;) {
		bool last = test_now_ms() >= ends_at;
		snapshot_compare_tree(step, why, sizeof why);
		if (!*why)
			return;
		if (last)
			fail_msg("%s: %s", place, why);
		test_pause();
	}
}

static void await_makes(const struct zk_story_step *step)
{
	long long ends_at = test_now_ms() + SOON_MS;
	char why[300];
	for (;;) {
		bool last = test_now_ms() >= ends_at;
		bool complete = snapshot_compare_makes(step, why, sizeof why);
		if (complete && !*why)
			return;
		if (complete || last)
			fail_msg("%s: %s", place, why);
		test_pause();
	}
}

/* Two clients are notified at the same time, so in any order. */
static void await_reports(const struct zk_story_step *step)
{
	for (int i = 0; i < step->reports; i++) {
		long long ends_at = test_now_ms() + CAST_PATIENCE_MS;
		bool reports;
		while (!(reports = cast_take_report(step->tell[i])) && test_now_ms() < ends_at)
			test_pause();
		if (!reports)
			fail_msg("%s: nobody reports %s", place, step->tell[i]);
	}
	char *left = cast_left_reports();
	if (left)
		fail_msg("%s: reports %s", place, left);
}

static void keep_quiet(const struct zk_story_step *step)
{
	long long ends_at = test_now_ms() + QUIET_MS;
	while (step->nodes == step[-1].nodes && test_now_ms() < ends_at) {
		await_tree(step);
		test_pause();
	}
}

static bool is_ordered(const struct zk_story_step *step)
{
	return strcmp(cast_guid(step->word[1])->text, cast_guid(step->word[2])->text) < 0;
}

/* Returns false if the story has to begin again. */
static bool play_step(const struct zk_story_step *step)
{
	bool goes_on = true;
	if (strcmp(step->word[0], "sleep") == 0)
		keep_quiet(step);
	else if (strcmp(step->word[0], "ordered") == 0)
		goes_on = is_ordered(step);
	else
		make_call(step);
	if (step->is_unseen)
		return goes_on;
	await_tree(step);
	await_makes(step);
	await_reports(step);
	return goes_on;
}

/* ---- stories ---- */

void player_clear(void)
{
	if (!cast.eye)
		return;
	cast_close();
	calls_end();
	cast_end();
}

bool player_play(const struct zk_story *story, struct test_zookeeper *server)
{
	bool goes_on = true;
	cast_begin(server);
	for (int i = 0; i < story->steps && goes_on; i++) {
		name_place(&story->step[i], i);
		goes_on = play_step(&story->step[i]);
	}
	player_clear();
	return goes_on;
}
