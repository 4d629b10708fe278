/* The recorded stories of ZooKeeper are complete, can be read, and are consistent. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "golden-zk/story.h"
#include "support/check.h"

static const char *const files[] = {
	"mutex", "rw",       "semaphore", "nonreentrant", "multi",
	"latch", "selector", "barrier",   "count",
};

static struct zk_stories stories;

static int read_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		zk_stories_read(&stories, HF_GOLDEN_ZK_DIR, files[i]);
	return 0;
}

static int clear_all(void **state)
{
	(void)state;
	zk_stories_clear(&stories);
	return 0;
}

static const struct zk_story *find_story(const char *title)
{
	for (int i = 0; i < stories.count; i++)
		if (strcmp(stories.story[i]->title, title) == 0)
			return stories.story[i];
	fail_msg("there is no story %s", title);
	return NULL;
}

static bool is_ephemeral(enum zk_raw_mode mode)
{
	return mode == ZK_RAW_EPHEMERAL || mode == ZK_RAW_EPHEMERAL_SEQUENTIAL;
}

/* ---- what is in them ---- */

static void all_stories_exist(void **state)
{
	(void)state;
	int steps = 0, makes = 0, nodes = 0;
	for (int i = 0; i < stories.count; i++) {
		const struct zk_story *story = stories.story[i];
		steps += story->steps;
		for (int k = 0; k < story->steps; k++) {
			makes += story->step[k].makes;
			nodes += story->step[k].nodes;
		}
	}
	assert_int_equal(stories.count, 22);
	assert_int_equal(steps, 253);
	assert_int_equal(makes, 124);
	assert_int_equal(nodes, 587);
}

static void step_is_read_word_by_word(void **state)
{
	(void)state;
	const struct zk_story *story = find_story("mutex: InterProcessMutex");
	const struct zk_story_step *step = &story->step[6];
	assert_string_equal(step->tag, "w");
	assert_string_equal(step->thread, "t9");
	assert_int_equal(step->words, 2);
	assert_string_equal(step->word[0], "acquire");
	assert_string_equal(step->word[1], "lb");
	assert_null(step->result);
	assert_int_equal(step->makes, 1);
	assert_string_equal(step->make[0].client, "b");
	assert_int_equal(step->make[0].mode, ZK_RAW_EPHEMERAL_SEQUENTIAL);
	assert_int_equal(step->nodes, 3);
	const struct zk_story_node *node =
		zk_story_find(step, "/orders/_c_<guid3>-lock-0000000002");
	assert_non_null(node);
	assert_string_equal(node->owner, "b");
	assert_int_equal(node->version, 0);
	assert_int_equal(node->born, 3);
	assert_string_equal(node->data.bytes, ZK_STORY_ADDRESS);
	assert_string_equal(node->acl, "world:anyone:cdrwa");
	assert_null(zk_story_find(step, "/orders/_c_<guid9>-lock-0000000002"));
	step = &story->step[8];
	assert_string_equal(step->result, "2");
	assert_int_equal(step->rows, 2);
	assert_string_equal(step->row[1], "_c_<guid3>-lock-0000000002");
	assert_int_equal(step->nodes, 3);
	assert_null(step->tag);
	assert_null(step->thread);
}

static void data_is_read_byte_by_byte(void **state)
{
	(void)state;
	const struct zk_story *count = find_story("count: SharedCount");
	assert_memory_equal(count->step[0].node[0].data.bytes, "\0\0\0\5", 4);
	assert_int_equal(count->step[0].node[0].data.length, 4);
	assert_memory_equal(count->step[3].node[0].data.bytes, "\377\377\377\376", 4);
	assert_string_equal(count->step[3].tell[0], "count cb -2");
	const struct zk_story *revoke =
		find_story("mutex: InterProcessMutex with makeRevocable and Revoker");
	assert_int_equal(revoke->step[3].node[1].data.length, 0);
	assert_string_equal(revoke->step[4].node[1].data.bytes, "__REVOKE__");
	assert_int_equal(revoke->step[4].node[1].version, 1);
}

static void nodes_of_an_identity_have_its_acl(void **state)
{
	(void)state;
	const struct zk_story *story = find_story(
		"mutex: InterProcessMutex in a namespace with a digest identity and CREATOR_ALL");
	const struct zk_story_step *step = &story->step[4];
	assert_int_equal(step->nodes, 3);
	for (int i = 0; i < step->nodes; i++)
		assert_string_equal(step->node[i].acl,
		                    "digest:app:F6Y+U5gIoCbNNoLQExmvxRFeatA=:cdrwa");
}

/* ---- whether they agree with themselves ---- */

static void check_parent(const struct zk_story_step *step, const struct zk_story_node *node)
{
	size_t length = (size_t)(strrchr(node->path, '/') - node->path);
	if (!length)
		return;
	char *path = check_copy(node->path, length);
	const struct zk_story_node *parent = zk_story_find(step, path);
	assert_non_null(parent);
	assert_false(is_ephemeral(parent->mode));
	assert_true(parent < node && parent->born < node->born);
	free(path);
}

static bool has_sequence(const char *path)
{
	size_t length = strlen(path);
	for (size_t i = 1; i <= 10; i++)
		if (length < 10 || !isdigit((unsigned char)path[length - i]))
			return false;
	return true;
}

static void check_step(const struct zk_story_step *step)
{
	for (int i = 0; i < step->nodes; i++) {
		const struct zk_story_node *node = &step->node[i];
		assert_int_equal(node->owner != NULL, is_ephemeral(node->mode));
		assert_true(node->mode != ZK_RAW_EPHEMERAL_SEQUENTIAL || has_sequence(node->path));
		check_parent(step, node);
		/* The first of that path is this one. */
		assert_ptr_equal(zk_story_find(step, node->path), node);
	}
	for (int i = 0; i < step->makes; i++) {
		const struct zk_story_make *make = &step->make[i];
		const struct zk_story_node *node = zk_story_find(step, make->path);
		assert_true(make->mode != ZK_RAW_EPHEMERAL_SEQUENTIAL || has_sequence(make->path));
		assert_true(!node || node->mode == make->mode);
	}
}

static void nodes_fit_their_parents_owners_and_modes(void **state)
{
	(void)state;
	for (int i = 0; i < stories.count; i++)
		for (int k = 0; k < stories.story[i]->steps; k++)
			check_step(&stories.story[i]->step[k]);
}

static bool is_joined(const struct zk_story *story, int from)
{
	for (int i = from + 1; i < story->steps; i++) {
		const struct zk_story_step *step = &story->step[i];
		if (step->words == 2 && strncmp(step->word[0], "join", 4) == 0 &&
		    strcmp(step->word[1], story->step[from].tag) == 0)
			return step->result;
	}
	return false;
}

static void every_call_that_may_block_ends_with_a_result(void **state)
{
	(void)state;
	int tags = 0;
	for (int i = 0; i < stories.count; i++) {
		for (int k = 0; k < stories.story[i]->steps; k++) {
			if (!stories.story[i]->step[k].tag)
				continue;
			assert_true(is_joined(stories.story[i], k));
			tags++;
		}
	}
	assert_int_equal(tags, 17);
}

/* ---- lines that are not understood ---- */

static void broken_lines_are_refused(void **state)
{
	(void)state;
	static const char *const broken[] = {
		" node /x container - 0 1",
		" node /x container - 0 one %",
		" node /x box - 0 1 %",
		" node x container - 0 1 %",
		" node /x container - 0 1 % world:anyone:r more",
		" makes a /x container",
		" sees x",
		" same",
		"do",
		"do t1:",
		"do 1 2 3 4 5 6 7 8 9",
		"",
	};
	struct zk_stories own = {0};
	assert_false(zk_stories_add(&own, "x", "do acquire la"));
	assert_true(zk_stories_add(&own, "x", "story broken"));
	assert_false(zk_stories_add(&own, "x", " gives true"));
	assert_true(zk_stories_add(&own, "x", "do acquire la"));
	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
		if (zk_stories_add(&own, "x", broken[i]))
			fail_msg("understood: %s", broken[i]);
	assert_true(zk_stories_add(&own, "x", " node /x container - 0 1 %\n"));
	zk_stories_clear(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_stories_exist),
		cmocka_unit_test(step_is_read_word_by_word),
		cmocka_unit_test(data_is_read_byte_by_byte),
		cmocka_unit_test(nodes_of_an_identity_have_its_acl),
		cmocka_unit_test(nodes_fit_their_parents_owners_and_modes),
		cmocka_unit_test(every_call_that_may_block_ends_with_a_result),
		cmocka_unit_test(broken_lines_are_refused),
	};
	return cmocka_run_group_tests(tests, read_all, clear_all);
}
