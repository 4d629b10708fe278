/*
 * The golden traces of ZooKeeper: what Curator 5.9.0 did in the stories of golden-zk, played with
 * this library in the place of both its clients. After every step the same nodes exist with the
 * same names, owners, versions, data and rights, the same nodes were made since, and the answers
 * and reports are the same, except for the table of differences.
 *
 * An argument plays only the stories with that in their title.
 */
#include "golden-zk/differences.h"
#include "golden-zk/player.h"
#include "golden-zk/story.h"
#include "live/live.h"
#include "support/zookeeper.h"

#define MAX_STORIES 64

/*
 * How many times a story is played that needs two UUIDs in order, which happens every second time
 * by chance.
 */
#define MAX_TRIES 40

static const char *const files[] = {
	"mutex", "rw",       "semaphore", "nonreentrant", "multi",
	"latch", "selector", "barrier",   "count",
};

static struct test_zookeeper *server;
static struct zk_stories stories;
static int met[DIFFERENCES_MAX];

static void goes_as_recorded(void **state)
{
	const struct zk_story *story = *state;
	for (int tries = 0; !player_play(story, server); tries++)
		if (tries == MAX_TRIES)
			fail_msg("the UUIDs are never in order");
}

static int clear_story(void **state)
{
	(void)state;
	player_clear();
	return 0;
}

static void every_difference_is_met(void **state)
{
	(void)state;
	for (int i = 0; i < differences_count(); i++) {
		print_message("in %d steps: %s (%s)\n", met[i], differences_name(i),
		              differences_harmless(i));
		if (!met[i])
			fail_msg("no story shows it");
	}
}

static void only_the_number_of_java_is_not_played(void **state)
{
	int left_out = 0;
	(void)state;
	for (int i = 0; i < stories.count; i++) {
		const char *why = differences_why_not(stories.story[i]);
		left_out += why != NULL;
		if (why)
			print_message("not played: %s (%s)\n", stories.story[i]->title, why);
	}
	assert_int_equal(left_out, 1);
	/* Of those that were recorded; one is played in two ways. */
	assert_int_equal(stories.count - left_out, 22);
}

/* A build without ZooKeeper cannot play. */
static void require_zookeeper(void)
{
	hf_client *client = NULL;
	int rc = hf_client_open("zk://127.0.0.1:1", HF_CLIENT(.lazy = 1), &client);
	if (rc == HF_ENOTSUP)
		check_skip("%s", hf_error_detail());
	ASSERT_OK(rc);
	ASSERT_OK(hf_client_close(client));
}

static int start(void **state)
{
	(void)state;
	require_zookeeper();
	/* The reaper would take an empty folder out of a story. */
	server = test_zookeeper_start(&(struct test_zookeeper_options){.reaper_ms = 3600000});
	return 0;
}

static int stop(void **state)
{
	(void)state;
	test_zookeeper_stop(server);
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[MAX_STORIES + 2] = {
		cmocka_unit_test(every_difference_is_met),
		cmocka_unit_test(only_the_number_of_java_is_not_played),
	};
	size_t count = 2;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		zk_stories_read(&stories, HF_GOLDEN_ZK_DIR, files[i]);
	differences_apply(&stories, met);
	if (stories.count > MAX_STORIES)
		abort();
	for (int i = 0; i < stories.count; i++) {
		struct zk_story *story = stories.story[i];
		if (!differences_why_not(story) && (argc < 2 || strstr(story->title, argv[1])))
			tests[count++] = (struct CMUnitTest){story->title, goes_as_recorded, NULL,
			                                     clear_story, story};
	}
	int failed = _cmocka_run_group_tests("golden-zk", tests, count, start, stop);
	zk_stories_clear(&stories);
	return failed;
}
