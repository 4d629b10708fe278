/*
 * What the live tests of ZooKeeper's locks share: a server, an observer of its tree, and clients.
 */
#ifndef TESTS_LIVE_ZK_H
#define TESTS_LIVE_ZK_H

#include "live/rivals.h"

#include "support/zk_raw.h"
#include "support/zookeeper.h"

/*
 * How long it takes until a client whose session was ended knows of it, or has the next one. It is
 * mostly immediate; but a client that reconnects while the server ends the session may get no
 * answer, and its library waits for one for two thirds of the session. The session of a client that
 * was closed ends after 30 s if the server, on a busy machine, has not confirmed its end in time.
 */
#define ENDED_MS 45000

/* A waiter never asks on its own, so that it was woken needs no short limit. */
#define ZK_WOKEN_MS 5000

/* ---- one server for all tests of a program ---- */

static struct test_zookeeper *zk_server;
static struct zk_raw *zk_eye; /* queries, and interferes */

static inline int zk_start(void **state)
{
	(void)state;
	zk_server = test_zookeeper_start(NULL);
	zk_eye = zk_raw_open(test_zookeeper_host(zk_server, 0), 0);
	return 0;
}

static inline int zk_stop(void **state)
{
	(void)state;
	zk_raw_close(zk_eye);
	test_zookeeper_stop(zk_server);
	return 0;
}

/* Every test begins with an empty tree. */
static inline int zk_sweep(void **state)
{
	struct zk_raw_names names;
	char path[600];
	(void)state;
	assert_int_equal(zk_raw_children(zk_eye, "/", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		snprintf(path, sizeof path, "/%s", names.name[i]);
		if (strcmp(names.name[i], "zookeeper") != 0)
			(void)zk_raw_delete_tree(zk_eye, path);
	}
	zk_raw_names_clear(&names);
	return 0;
}

#define ZK_STORY(name) cmocka_unit_test_setup(name, zk_sweep)

/* ---- clients and handles ---- */

/* A client of the server; `more` is what follows the hosts in the URL. */
static inline hf_client *open_at(const char *host_url, const char *more,
                                 const hf_client_options *options)
{
	char url[400];
	snprintf(url, sizeof url, "%s%s", host_url, more);
	return open_url(url, options);
}

static inline hf_client *open_zk(const char *more)
{
	return open_at(test_zookeeper_url(zk_server, 0), more, NULL);
}

static inline struct rivals *open_zk_rivals(hf_kind kind, const char *name)
{
	const char *url = test_zookeeper_url(zk_server, 0);
	struct rivals *rivals = open_clients(url, NULL, url, NULL);
	take_handles(rivals, kind, name);
	return rivals;
}

/* ---- queries of the tree ---- */

/* How many children there are, -1 if there is not even the folder. */
static inline int count_children(struct zk_raw *raw, const char *path)
{
	struct zk_raw_stat stat;
	return zk_raw_exists(raw, path, &stat) == 0 ? stat.children : -1;
}

/* The path of the node's only child, and its state, which may be NULL. */
static inline void read_only_child(struct zk_raw *raw, const char *path, char *ret_path,
                                   size_t size, struct zk_raw_stat *ret_stat)
{
	struct zk_raw_names names;
	assert_int_equal(zk_raw_children(raw, path, &names, NULL), 0);
	assert_int_equal(names.count, 1);
	snprintf(ret_path, size, "%s/%s", path, names.name[0]);
	zk_raw_names_clear(&names);
	assert_int_equal(zk_raw_exists(raw, ret_path, ret_stat), 0);
}

/* The owner of the child that was made first; 0 if there is none. */
static inline int64_t first_owner(struct zk_raw *raw, const char *path)
{
	struct zk_raw_names names;
	struct zk_raw_stat stat, first = {0};
	char child[700];
	if (zk_raw_children(raw, path, &names, NULL) != 0)
		return 0;
	for (int i = 0; i < names.count; i++) {
		snprintf(child, sizeof child, "%s/%s", path, names.name[i]);
		if (zk_raw_exists(raw, child, &stat) == 0 &&
		    (first.czxid == 0 || stat.czxid < first.czxid))
			first = stat;
	}
	zk_raw_names_clear(&names);
	return first.owner;
}

static inline int64_t token_of(hf_lock *lock, hf_owner *owner)
{
	int64_t token = 0;
	ASSERT_OK(hf_lock_token(lock, owner, &token));
	return token;
}

#endif
