/*
 * Which unfinished lists of locks are kept for their next step, with a library that answers nothing
 * itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "support/check.h"
#include "zk/zk.h"

#define KEPT    256  /* walks between two steps */
#define LATE_MS 1000 /* after this time a step ends with the visit in progress */

struct bench {
	struct hf__core core;
	struct hf__zk_settings config;
	struct hf__session session;
	struct hf__zk zk;
	struct hf__zk_request *request; /* in flight */
	char cursor[40];                /* of the last answer */
	char words[40];
};

static struct bench *bench;

static int fake_exists(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                       stat_completion_t done, const void *arg)
{
	(void)handle, (void)path, (void)watcher, (void)context, (void)done;
	bench->request = (struct hf__zk_request *)(uintptr_t)arg;
	return ZOK;
}

static int fake_list(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                     strings_completion_t done, const void *arg)
{
	(void)handle, (void)path, (void)watcher, (void)context, (void)done;
	bench->request = (struct hf__zk_request *)(uintptr_t)arg;
	return ZOK;
}

static void note_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                        int64_t now)
{
	size_t length = 0;
	(void)core, (void)cmd, (void)now;
	assert_int_equal(answer->outcome, HF__DONE);
	const char *row = answer->row(answer, 0, &length);
	snprintf(bench->cursor, sizeof bench->cursor, "%.*s", (int)length, row);
}

static int set_up(void **state)
{
	static char chroot[] = "";
	(void)state;
	bench = check_alloc(sizeof(*bench));
	struct hf__zk *zk = &bench->zk;
	bench->config.chroot = chroot;
	bench->session.zk = zk;
	bench->session.handle = (zhandle_t *)&bench->session;
	zk->core = &bench->core;
	zk->config = &bench->config;
	zk->session = &bench->session;
	zk->sessions = 1;
	zk->state = HF__SESSION_UP;
	zk->library.exists = fake_exists;
	zk->library.list = fake_list;
	hf__list_init(&zk->waiting);
	hf__list_init(&zk->ready);
	hf__list_init(&zk->requests);
	return 0;
}

static int tear_down(void **state)
{
	struct hf__zk *zk = &bench->zk;
	(void)state;
	while (!hf__list_empty(&zk->requests))
		hf__zk_request_free(hf__list_item(zk->requests.next, struct hf__zk_request, link));
	hf__survey_free_all(zk);
	free(bench);
	return 0;
}

static void answer(struct hf__zk_request *request)
{
	hf__list_remove(&request->link);
	request->done(&bench->zk, request, LATE_MS);
	hf__zk_request_free(request);
}

static void submit(struct hf__cmd *cmd, const char *cursor)
{
	*cmd = (struct hf__cmd){.verb = HF__LIST, .on_answer = note_answer, .in_flight = true};
	snprintf(bench->words, sizeof bench->words, "%s", cursor);
	cmd->words = bench->words;
	hf__list_add(&bench->zk.waiting, &cmd->link);
	assert_int_equal(hf__survey_submit(&bench->zk, cmd), 0);
}

/* The first step of a walk, which finds one folder to visit in the next; its cursor is noted. */
static void begin_walk(void)
{
	struct hf__cmd cmd;
	submit(&cmd, "0");
	bench->request->stat.numChildren = 1;
	answer(bench->request);
	bench->request->names = check_alloc(sizeof *bench->request->names);
	bench->request->names[0] = strdup("folder");
	assert_non_null(bench->request->names[0]);
	bench->request->count = 1;
	answer(bench->request);
	assert_string_not_equal(bench->cursor, "0");
}

/* The last step finds an empty folder, unless the walk was given up. */
static bool end_walk(const char *cursor)
{
	struct hf__cmd cmd;
	submit(&cmd, cursor);
	if (!hf__list_empty(&bench->zk.ready)) {
		assert_int_equal(cmd.backend.outcome, HF__FAILED);
		hf__list_remove(&cmd.link);
		return false;
	}
	answer(bench->request);
	assert_string_equal(bench->cursor, "0");
	return true;
}

static void walks_are_kept_for_their_next_step(void **state)
{
	char cursors[KEPT][40];
	(void)state;
	for (int i = 0; i < KEPT; i++) {
		begin_walk();
		memcpy(cursors[i], bench->cursor, sizeof cursors[i]);
	}
	for (int i = 0; i < KEPT; i++)
		assert_true(end_walk(cursors[i]));
	assert_null(bench->zk.surveys);
}

static void walk_that_was_left_for_the_longest_time_is_given_up_first(void **state)
{
	char first[40], second[40];
	(void)state;
	begin_walk();
	memcpy(first, bench->cursor, sizeof first);
	begin_walk();
	memcpy(second, bench->cursor, sizeof second);
	for (int i = 0; i < KEPT; i++)
		begin_walk();
	assert_false(end_walk(first));
	assert_true(end_walk(second));
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(walks_are_kept_for_their_next_step),
		STORY(walk_that_was_left_for_the_longest_time_is_given_up_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
