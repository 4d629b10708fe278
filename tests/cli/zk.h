/* One ZooKeeper for a test program of the command, and a session ("the eye") that inspects it. */
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

/* Setup of each story: the tree is empty. The eye's session is as long as the servers allow. */
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

/* The number of children; 0 if there is no such node. */
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

/* The path of the other child of two; free() it. */
static inline char *zk_other_child(const char *path, const char *known)
{
	struct zk_raw_names names = {0};
	assert_int_equal(zk_raw_children(zk_eye, path, &names, NULL), 0);
	assert_int_equal(names.count, 2);
	int other = strcmp(names.name[0], strrchr(known, '/') + 1) == 0;
	char *child = check_format("%s/%s", path, names.name[other]);
	zk_raw_names_clear(&names);
	return child;
}

static inline void zk_make(const char *path, const char *data, enum zk_raw_mode mode)
{
	assert_int_equal(zk_raw_create(zk_eye, path, data, mode, NULL, NULL), 0);
}

/* Makes a numbered node that lives as long as the eye; free() its path. */
static inline char *zk_make_numbered(const char *path, const char *data)
{
	char *made = NULL;
	assert_int_equal(
		zk_raw_create(zk_eye, path, data, ZK_RAW_EPHEMERAL_SEQUENTIAL, &made, NULL), 0);
	return made;
}

/* Starts a run without a command, and waits until it holds the lock. cli_finish() releases it. */
static inline struct cli *zk_hold(const char *name)
{
	char *path = check_format("/%s", name);
	struct cli *cli = cli_start(zk_url(), "run", name, NULL);
	WAIT_UNTIL(zk_count(path) == 1, CLI_SOON_MS);
	free(path);
	return cli;
}

/* The command waits for a node of Java's with this suffix, and runs when that is deleted. */
static inline void zk_expect_wait_for_java(const char *command, const char *suffix)
{
	char *path = check_format("/x/_c_" CLI_JAVA "%s", suffix);
	zk_make("/x", "", ZK_RAW_CONTAINER);
	char *node = zk_make_numbered(path, "java");
	struct cli *cli = cli_start(zk_url(), command, "x", "--", "echo", "mine", NULL);
	WAIT_UNTIL(zk_count("/x") == 2, CLI_SOON_MS);
	assert_string_equal(cli_output(cli), "");
	assert_int_equal(zk_raw_delete(zk_eye, node, -1), 0);
	CLI_EXPECT(cli, 0);
	assert_string_equal(cli_output(cli), "mine\n");
	cli_free(cli);
	free(node);
	free(path);
}

/* With this option, the token of a command is the czxid of its node. */
static inline void zk_expect_token(const char *command, const char *option)
{
	struct zk_raw_stat stat;
	struct cli *cli = cli_start(zk_url(), command, option, "x", "--", "sh", "-c",
	                            "echo $HOLDFAST_TOKEN; cat", NULL);
	WAIT_UNTIL(strchr(cli_output(cli), '\n') != NULL, CLI_SOON_MS);
	char *node = zk_only_child("/x");
	assert_int_equal(zk_raw_exists(zk_eye, node, &stat), 0);
	assert_int_equal(atoll(cli_output(cli)), stat.czxid);
	cli_finish(cli);
	free(node);
}

/* The data of a node must be this. */
static inline void expect_data(const char *path, const char *wanted)
{
	struct zk_raw_data data;
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	assert_string_equal(data.bytes, wanted);
	free(data.bytes);
}

#endif
