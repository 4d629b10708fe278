/* Plays a story: every step at its recorded time, with a check of everything after each. */
#include "golden/player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "golden/calls.h"
#include "golden/snapshot.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/proxy.h"

#define MAX_HEARD 16
#define MAX_WIRES 16

/* How long a thing may take that took no time in the recording. */
#define PATIENCE_MS 1500
#define SLOW_MS     5000

/* After the last step nothing more may be published for this long. */
#define SILENCE_MS 100

/* A wait this long is for the watchdog, and can be shortened with a faster one. */
#define LONG_WAIT_S 10

#define WATCHDOG_MS  30000
#define FAIR_WAIT_MS 300000

struct player {
	struct story *story;
	struct story_step *step;
	struct cast cast;
	struct proxy *proxy; /* before the process that will be killed */
	struct snapshot_scale scale;
	long long origin; /* when the story began */
	int heard;
	struct story_message message[MAX_HEARD];
	int wires; /* commands of this step; a step lists equal ones once */
	struct seen_wire {
		int node;
		const char *command;
		const char *channel;
	} wire[MAX_WIRES];
	struct texts texts;
};

static long long lag_ms;

long long player_lag_ms(void)
{
	return lag_ms;
}

static void note_lag(long long due)
{
	long long lag = test_now_ms() - due;
	if (lag > lag_ms)
		lag_ms = lag;
}

__attribute__((format(printf, 2, 3))) static _Noreturn void fail_step(const struct player *player,
                                                                      const char *format, ...)
{
	va_list list;
	char *text = NULL;
	va_start(list, format);
	if (vasprintf(&text, format, list) < 0)
		abort();
	va_end(list);
	const struct story_step *step = player->step;
	check_fail("step %d (%s; %s), %lld ms late at most:\n  %s",
	           (int)(step - player->story->step) + 1, step->call, step->what, lag_ms, text);
}

/* ---- time and messages ---- */

static const char *keep(struct player *player, const char *text)
{
	return texts_keep(&player->texts, check_copy(text, strlen(text)));
}

static void keep_wire(struct player *player, int node, const char *command, const char *channel)
{
	for (int i = 0; i < player->wires; i++) {
		const struct seen_wire *wire = &player->wire[i];
		if (wire->node == node && strcmp(wire->command, command) == 0 &&
		    strcmp(wire->channel, channel) == 0)
			return;
	}
	if (player->wires == MAX_WIRES)
		fail_step(player, "more than %d commands", MAX_WIRES);
	player->wire[player->wires++] =
		(struct seen_wire){node, keep(player, command), keep(player, channel)};
}

static void hear(void *arg, int node, const char *command, const char *channel, const char *payload)
{
	struct player *player = arg;
	if (command)
		keep_wire(player, node, command, channel);
	if (!payload)
		return;
	if (player->heard == MAX_HEARD)
		fail_step(player, "more than %d messages", MAX_HEARD);
	player->message[player->heard++] =
		(struct story_message){keep(player, channel), keep(player, payload)};
}

/* Collects messages until then; with a call, until that is over. Returns whether it is. */
static bool listen_until(struct player *player, long long until, const struct call *call)
{
	struct stage *stage = &player->cast.stage;
	for (int i = 0;; i = (i + 1) % stage->nodes) {
		long long left = until - test_now_ms();
		bool is_over = call && atomic_load(&call->is_over);
		int patience = stage->nodes > 1 || call ? 2 : 20;
		if (left < patience)
			patience = left > 0 && !is_over ? (int)left : 0;
		bool has_heard = stage_listen(stage, i, patience, hear, player);
		if (has_heard || i < stage->nodes - 1 || (!is_over && left > 0))
			continue;
		if (!is_over)
			note_lag(until);
		return is_over;
	}
}

static long long due_at(const struct player *player, long long recorded_ms)
{
	return player->origin + recorded_ms / player->scale.scale;
}

/* When the step is over: the next one begins, or a while after the last. */
static long long end_of_step(const struct player *player)
{
	const struct story_step *next = player->step + 1;
	if (next < player->story->step + player->story->steps)
		return due_at(player, next->at_ms);
	long long soon = test_now_ms() + SILENCE_MS;
	long long due = due_at(player, player->step->at_ms) + SILENCE_MS;
	return soon > due ? soon : due;
}

static bool is_same_message(const struct player *player, const struct story_message *heard,
                            const struct story_message *expected)
{
	const char *near = heard->channel;
	char *channel = names_translate(&player->cast.names, near, heard->channel);
	bool is_same = strcmp(channel, expected->channel) == 0 &&
	               strcmp(heard->payload, expected->payload) == 0;
	free(channel);
	return is_same;
}

/* Returns the index of the message, for which it listens for a while; -1: it was not said. */
static int await_message(struct player *player, const struct story_message *expected)
{
	long long until = test_now_ms() + PATIENCE_MS;
	for (;;) {
		for (int i = 0; i < player->heard; i++)
			if (is_same_message(player, &player->message[i], expected))
				return i;
		if (test_now_ms() >= until)
			return -1;
		(void)listen_until(player, test_now_ms() + 10, NULL);
		note_lag(end_of_step(player));
	}
}

/* Their order means nothing where they belong to different locks. */
static void check_messages(struct player *player)
{
	const struct story_step *step = player->step;
	for (int i = 0; i < step->messages; i++) {
		int found = await_message(player, &step->message[i]);
		if (found < 0)
			fail_step(player, "%s was not published on %s", step->message[i].payload,
			          step->message[i].channel);
		player->message[found] = player->message[--player->heard];
	}
	if (player->heard)
		fail_step(player, "%s was said on %s", player->message[0].payload,
		          player->message[0].channel);
}

/* ---- commands ---- */

/* A server without sharded channels is given the plain commands. */
static bool is_same_command(const struct player *player, const char *seen, const char *expected)
{
	bool is_plain = !player->cast.stage.is_sharded && expected[0] == 'S' &&
	                strcmp(expected, "SUBSCRIBE") != 0;
	return strcmp(seen, is_plain ? expected + 1 : expected) == 0;
}

static bool is_same_wire(const struct player *player, const struct seen_wire *seen,
                         const struct story_wire *expected)
{
	const char *node = player->cast.stage.name[seen->node];
	char *channel = names_translate(&player->cast.names, seen->channel, seen->channel);
	bool is_same = node && strcmp(node, expected->node) == 0 &&
	               is_same_command(player, seen->command, expected->command) &&
	               strcmp(channel, expected->channel) == 0;
	free(channel);
	return is_same;
}

static bool has_wire(const struct player *player, const struct story_wire *expected)
{
	for (int i = 0; i < player->wires; i++)
		if (is_same_wire(player, &player->wire[i], expected))
			return true;
	return false;
}

static bool is_expected_wire(const struct player *player, const struct seen_wire *seen)
{
	for (int i = 0; i < player->step->wires; i++)
		if (is_same_wire(player, seen, &player->step->wire[i]))
			return true;
	return false;
}

/* They are given in time, or a little later where a client has to find its server first. */
static void check_wires(struct player *player)
{
	const struct story_step *step = player->step;
	long long until = test_now_ms() + (step->is_slow ? SLOW_MS : PATIENCE_MS);
	if (!player->cast.stage.monitors)
		return;
	for (int i = 0; i < step->wires; i++) {
		const struct story_wire *wire = &step->wire[i];
		while (!has_wire(player, wire) && test_now_ms() < until)
			(void)listen_until(player, test_now_ms() + 20, NULL);
		if (!has_wire(player, wire))
			fail_step(player, "%s was not given %s %s", wire->node, wire->command,
			          wire->channel);
	}
	for (int i = 0; i < player->wires; i++) {
		const struct seen_wire *wire = &player->wire[i];
		const char *node = player->cast.stage.name[wire->node];
		if (!is_expected_wire(player, wire))
			fail_step(player, "%s was given %s %s", node ? node : "a replica",
			          wire->command, wire->channel);
	}
	player->wires = 0;
}

/* ---- results ---- */

/* New permits get the names that the story has for them. */
static bool are_permits(struct player *player, char *text, const char *expected)
{
	char *rest, *more;
	char *names = texts_keep(&player->texts, check_copy(expected, strlen(expected)));
	char *id = strtok_r(text, " ", &rest);
	char *name = strtok_r(names, " ", &more);
	while (id && name) {
		if (strlen(id) != 32 || strspn(id, "0123456789abcdef") != 32)
			return false;
		names_add_permit(&player->cast.names, name, id);
		id = strtok_r(NULL, " ", &rest);
		name = strtok_r(NULL, " ", &more);
	}
	return !id && !name;
}

static bool is_last_token(struct player *player, const struct call *call, const char *text)
{
	char *key = check_format("redisson_lock_token:{%s}", call->word[3]);
	char *token = raw_text(player->cast.stage.raw[0], "GET", key, NULL);
	bool is_same = strcmp(text, token ? token : "0") == 0;
	free(token);
	free(key);
	return is_same;
}

static void check_result(struct player *player, struct call *call, const char *expected)
{
	char text[400];
	bool is_right;
	call_describe(call, text, sizeof text);
	char *said = texts_keep(&player->texts, check_copy(text, strlen(text)));
	if (*expected == '~')
		is_right = snapshot_is_near(atoll(text), atoll(expected + 1), &player->scale);
	else if (strcmp(expected, "<token>") == 0)
		is_right = is_last_token(player, call, text);
	else if (strncmp(expected, "<permit", 7) == 0)
		is_right = are_permits(player, text, expected);
	else
		is_right = strcmp(text, expected) == 0;
	if (!is_right)
		fail_step(player, "%s gave %s, not %s", call->line, said, expected);
}

static void await_result(struct player *player, struct call *call, const char *expected)
{
	long long now = test_now_ms();
	long long end = end_of_step(player);
	long long patience = player->step->is_slow ? SLOW_MS : PATIENCE_MS;
	if (!listen_until(player, (end > now ? end : now) + patience, call))
		fail_step(player, "%s still waits, but should return %s", call->line, expected);
	check_result(player, call, expected);
}

/* No other call may have returned. */
static void check_waiting(struct player *player)
{
	char text[400];
	for (int i = 0; i < player->cast.calls; i++) {
		struct call *call = player->cast.call[i];
		if (call->was_reported || !atomic_load(&call->is_over))
			continue;
		call_describe(call, text, sizeof text);
		fail_step(player, "%s returned %s, but should wait", call->line, text);
	}
}

/* ---- steps ---- */

static void kill_process(struct player *player)
{
	proxy_drop_requests(player->proxy, true);
	proxy_refuse(player->proxy, true);
	proxy_cut(player->proxy);
}

static void check_raw(struct player *player, const char *key, const char *expected)
{
	if (raw_integer(player->cast.stage.raw[0], "DEL", key, NULL) != atoll(expected))
		fail_step(player, "%s was not deleted", key);
}

static void make_step(struct player *player)
{
	struct story_step *step = player->step;
	double seconds;
	if (sscanf(step->call, "(wait %lf s)", &seconds) == 1) {
		long long until = due_at(player, step->at_ms) +
		                  (long long)(seconds * 1000) / player->scale.scale;
		(void)listen_until(player, until, NULL);
	} else if (stage_act(&player->cast.stage, step->call)) {
		step->is_slow = true;
	} else if (strncmp(step->call, "kill", 4) == 0) {
		kill_process(player);
	} else if (strncmp(step->call, "interrupt ", 10) == 0) {
		call_interrupt(&player->cast, step->call + 10);
	} else if (strncmp(step->call, "DEL ", 4) == 0) {
		check_raw(player, step->call + 4, step->result);
	} else {
		struct call *call = call_start(&player->cast, step->call);
		if (strcmp(step->result, "blocks") != 0)
			await_result(player, call, step->result);
	}
	for (int i = 0; i < step->ends; i++)
		await_result(player, call_find(&player->cast, step->end[i].call),
		             step->end[i].result);
}

static void check_keys(struct player *player)
{
	struct cast *cast = &player->cast;
	long long until = test_now_ms() + PATIENCE_MS;
	if (!player->step->is_slow)
		note_lag(end_of_step(player));
	for (;;) {
		char *wrong =
			snapshot_compare(&cast->stage, player->step, &cast->names, &player->scale);
		if (!wrong)
			return;
		if (test_now_ms() >= until)
			fail_step(player, "the keys differ\n%s", texts_keep(&player->texts, wrong));
		free(wrong);
		test_pause();
	}
}

/* What we do later on purpose delays everything that follows. */
static void put_off(struct player *player)
{
	long long over = test_now_ms() - end_of_step(player);
	if (!player->step->is_slow || over <= 0)
		return;
	player->origin += over;
	player->scale.origin_epoch += over;
}

static void play_step(struct player *player)
{
	struct story_step *step = player->step;
	(void)listen_until(player, due_at(player, step->at_ms), NULL);
	make_step(player);
	check_keys(player);
	put_off(player);
	(void)listen_until(player, end_of_step(player), NULL);
	check_messages(player);
	check_wires(player);
	check_waiting(player);
	names_forget(&player->cast.names, step);
}

/* ---- the whole ---- */

/* Stories in which all times are the watchdog's can be played faster. */
static int choose_scale(const struct story *story)
{
	double longest = 0;
	for (int i = 0; i < story->steps; i++) {
		const char *call = story->step[i].call;
		const char *last = strrchr(call, ' ');
		double seconds;
		if (sscanf(call, "(wait %lf s)", &seconds) == 1)
			longest = seconds > longest ? seconds : longest;
		else if (last && strspn(last, " 0123456789") == strlen(last))
			return 1;
	}
	return longest >= LONG_WAIT_S ? LOOK_FAST : 1;
}

static const char *url_for(struct player *player, char letter, int i)
{
	const char *url = player->cast.stage.url[i];
	char kill[40];
	snprintf(kill, sizeof kill, "kill -9 of client %c", letter);
	for (int j = 0; j < player->story->steps; j++) {
		if (strcmp(player->story->step[j].call, kill) != 0)
			continue;
		player->proxy = proxy_start(url);
		return proxy_url(player->proxy);
	}
	return url;
}

static int64_t fair_wait_of(const struct player *player, char letter)
{
	const struct story *story = player->story;
	if (story->hasty == letter)
		return story->hasty_ms;
	return FAIR_WAIT_MS / player->scale.scale;
}

static void open_actor(struct player *player, char letter)
{
	struct cast *cast = &player->cast;
	struct actor *actor = &cast->actor[cast->actors++];
	char uuid[37];
	actor->letter = letter;
	for (int i = 0; i < cast->stage.urls; i++) {
		int rc = hf_client_open(url_for(player, letter, i),
		                        HF_CLIENT(.watchdog_ms = WATCHDOG_MS / player->scale.scale,
		                                  .fair_wait_ms = fair_wait_of(player, letter)),
		                        &actor->client[i]);
		if (rc == 0)
			rc = hf_client_uuid(actor->client[i], uuid);
		if (rc)
			check_fail("process %c does not start: %s", letter, hf_error_detail());
		names_add_client(&cast->names, letter, uuid);
	}
}

static void begin(struct player *player)
{
	const struct story *story = player->story;
	struct timespec now;
	stage_open(&player->cast.stage, story->title);
	for (const char *letter = story->clients; *letter; letter++)
		open_actor(player, *letter);
	player->origin = test_now_ms();
	(void)clock_gettime(CLOCK_REALTIME, &now);
	player->scale.origin_epoch = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void end(struct player *player)
{
	struct cast *cast = &player->cast;
	for (int i = 0; i < cast->actors; i++)
		for (int j = 0; j < cast->stage.urls; j++)
			if (hf_client_close(cast->actor[i].client[j]))
				check_fail("process %c does not end", cast->actor[i].letter);
	call_clear(cast);
	proxy_stop(player->proxy);
	stage_close(&cast->stage);
	texts_clear(&player->texts);
}

void player_play(struct story *story)
{
	struct player *player = check_alloc(sizeof(*player));
	player->story = story;
	player->step = story->step;
	player->scale.scale = choose_scale(story);
	lag_ms = 0;
	begin(player);
	for (; player->step < story->step + story->steps; player->step++)
		play_step(player);
	end(player);
	free(player);
}
