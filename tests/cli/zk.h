/* One ZooKeeper for a test program of the command, and a look into it. */
#ifndef TESTS_CLI_ZK_H
#define TESTS_CLI_ZK_H

#include "cli/cli.h"
#include "support/zk_raw.h"
#include "support/zookeeper.h"

static struct test_zookeeper *zk;
static struct zk_raw *zk_eye;

static inline const char *zk_url(void)
{
	return test_zookeeper_url(zk, 0);
}

static inline int zk_start(void **state)
{
	(void)state;
	zk = test_zookeeper_start(NULL);
	return 0;
}

static inline int zk_stop(void **state)
{
	(void)state;
	test_zookeeper_stop(zk);
	return 0;
}

/* Setup of each story: the tree is empty. The eye's session is as long as servers allow. */
static inline int zk_clear(void **state)
{
	struct zk_raw_names names = {0};
	(void)state;
	zk_eye = zk_raw_open(test_zookeeper_host(zk, 0), 0);
	assert_int_equal(zk_raw_children(zk_eye, "/", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		char *path = check_format("/%s", names.name[i]);
		if (strcmp(path, "/zookeeper") != 0)
			(void)zk_raw_delete_tree(zk_eye, path);
		free(path);
	}
	zk_raw_names_clear(&names);
	return 0;
}

static inline int zk_end(void **state)
{
	(void)state;
	zk_raw_close(zk_eye);
	return 0;
}

#define ZK_STORY(name) cmocka_unit_test_setup_teardown(name, zk_clear, zk_end)

/* How many children; 0 if there is no such node. */
static inline int zk_count(const char *path)
{
	struct zk_raw_names names = {0};
	if (zk_raw_children(zk_eye, path, &names, NULL))
		return 0;
	int n = names.count;
	zk_raw_names_clear(&names);
	return n;
}

/* The path of the only child; free() it. */
static inline char *zk_only_child(const char *path)
{
	struct zk_raw_names names = {0};
	assert_int_equal(zk_raw_children(zk_eye, path, &names, NULL), 0);
	assert_int_equal(names.count, 1);
	char *child = check_format("%s/%s", path, names.name[0]);
	zk_raw_names_clear(&names);
	return child;
}

static inline void zk_make(const char *path, const char *data, enum zk_raw_mode mode)
{
	assert_int_equal(zk_raw_create(zk_eye, path, data, mode, NULL, NULL), 0);
}

static inline void expect_in(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("no '%s' in '%s'", wanted, text);
}

/* Runs it to its end with an empty input: it prints nothing but a complaint with this text. */
static inline void expect_refusal(const char *url, int status, const char *wanted,
                                  const char *const *words)
{
	struct cli *cli = cli_start_words(url, words);
	cli_close_input(cli);
	CLI_EXPECT(cli, status);
	expect_in(cli_errors(cli), wanted);
	assert_string_equal(cli_output(cli), "");
	cli_free(cli);
}
#define EXPECT_REFUSAL(url, status, wanted, ...)                                                   \
	expect_refusal(url, status, wanted, (const char *const[]){__VA_ARGS__, NULL})

/* The command must not be stopped for that long. */
static inline void let_live(struct cli *cli, pid_t pid, long long ms)
{
	for (long long until = test_now_ms() + ms; test_now_ms() < until; test_pause())
		if (!cli_is_alive(pid) || cli_has_ended(cli))
			fail_msg("the command was stopped: %s", cli_errors(cli));
}

static inline long long time_to_death(pid_t pid)
{
	long long begun = test_now_ms();
	WAIT_UNTIL(!cli_is_alive(pid), CLI_SOON_MS);
	return test_now_ms() - begun;
}

/* What stands in a node is this. */
static inline void expect_data(const char *path, const char *wanted)
{
	struct zk_raw_data data;
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	assert_string_equal(data.bytes, wanted);
	free(data.bytes);
}

/* A command that ignores SIGTERM, tells its process and lasts as long as its input. */
#define UNTIL_INPUT_ENDS "trap '' TERM; echo $$; cat >/dev/null"

static inline void finish(struct cli *cli)
{
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	cli_free(cli);
}

static inline pid_t command_of(struct cli *cli)
{
	WAIT_UNTIL(strchr(cli_output(cli), '\n') != NULL, CLI_SOON_MS);
	return atoi(cli_output(cli));
}

#endif
