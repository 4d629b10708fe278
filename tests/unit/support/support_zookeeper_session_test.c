/* The ZooKeeper helpers in tests/support do what the other tests rely on, against real servers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/net.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/temp.h"
#include "support/zk_raw.h"
#include "support/zookeeper.h"

#define WAIT_MS 20000

/* One server for the tests that leave it as it was, and one ensemble whose lines can be cut. */
static struct test_zookeeper *alone;
static struct test_zookeeper *ensemble;

static const struct test_zookeeper_options alone_options = {.reaper_ms = 200};
static const struct test_zookeeper_options ensemble_options = {.servers = 3, .can_cut = true};

static struct zk_raw *open_alone(void)
{
	return zk_raw_open(test_zookeeper_host(alone, 0), 0);
}

static int clear_alone(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone();
	struct zk_raw_names names = {0};
	assert_int_equal(zk_raw_auth(raw, "digest", "app:secret"), 0);
	assert_int_equal(zk_raw_children(raw, "/", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		char *path = check_format("/%s", names.name[i]);
		if (strcmp(path, "/zookeeper") != 0)
			assert_int_equal(zk_raw_delete_tree(raw, path), 0);
		free(path);
	}
	zk_raw_names_clear(&names);
	zk_raw_close(raw);
	return 0;
}

static bool node_is_gone(struct zk_raw *raw, const char *path)
{
	return zk_raw_exists(raw, path, NULL) == ZK_RAW_NO_NODE;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void node_is_created_read_changed_and_deleted(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone();
	struct zk_raw_stat made, seen;
	struct zk_raw_data data;
	char *path = NULL;
	assert_int_equal(zk_raw_create(raw, "/x", "one", ZK_RAW_PERSISTENT, &path, &made), 0);
	assert_string_equal(path, "/x");
	assert_int_equal(zk_raw_create(raw, "/x", "", ZK_RAW_PERSISTENT, NULL, NULL),
	                 ZK_RAW_NODE_EXISTS);
	assert_int_equal(zk_raw_set(raw, "/x", "four", 1), ZK_RAW_BAD_VERSION);
	assert_int_equal(zk_raw_set(raw, "/x", "four", 0), 0);
	assert_int_equal(zk_raw_get(raw, "/x", &data, &seen), 0);
	assert_string_equal(data.bytes, "four");
	assert_int_equal(data.length, 4);
	assert_int_equal(seen.length, 4);
	assert_int_equal(seen.version, 1);
	assert_int_equal(seen.czxid, made.czxid);
	assert_true(seen.mzxid > made.mzxid);
	assert_int_equal(seen.owner, 0);
	assert_int_equal(zk_raw_delete(raw, "/x", 0), ZK_RAW_BAD_VERSION);
	assert_int_equal(zk_raw_delete(raw, "/x", -1), 0);
	assert_int_equal(zk_raw_delete(raw, "/x", -1), ZK_RAW_NO_NODE);
	assert_int_equal(zk_raw_get(raw, "/x", NULL, NULL), ZK_RAW_NO_NODE);
	free(data.bytes);
	free(path);
	zk_raw_close(raw);
}

static void data_may_be_empty_binary_or_none(void **state)
{
	(void)state;
	static const char bytes[] = {0, 0, 1, 2};
	struct zk_raw *raw = open_alone();
	struct zk_raw_data empty, binary, none;
	assert_int_equal(zk_raw_create(raw, "/empty", "", 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_create_bytes(raw, "/bytes", bytes, 4, 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(raw, "/none", NULL, 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_get(raw, "/empty", &empty, NULL), 0);
	assert_int_equal(zk_raw_get(raw, "/bytes", &binary, NULL), 0);
	assert_int_equal(zk_raw_get(raw, "/none", &none, NULL), 0);
	assert_int_equal(empty.length, 0);
	assert_int_equal(binary.length, 4);
	assert_memory_equal(binary.bytes, bytes, 4);
	assert_int_equal(none.length, -1);
	free(empty.bytes);
	free(binary.bytes);
	free(none.bytes);
	zk_raw_close(raw);
}

static void sequential_nodes_are_numbered_and_listed_in_order(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone();
	struct zk_raw_names names = {0};
	struct zk_raw_stat parent, first, second;
	char *path = NULL;
	assert_int_equal(zk_raw_create(raw, "/q", "", ZK_RAW_CONTAINER, NULL, NULL), 0);
	assert_int_equal(
		zk_raw_create(raw, "/q/n-", "", ZK_RAW_EPHEMERAL_SEQUENTIAL, &path, &first), 0);
	assert_string_equal(path, "/q/n-0000000000");
	free(path);
	assert_int_equal(
		zk_raw_create(raw, "/q/a-", "", ZK_RAW_PERSISTENT_SEQUENTIAL, &path, &second), 0);
	assert_string_equal(path, "/q/a-0000000001");
	free(path);
	assert_int_equal(first.owner, zk_raw_session(raw));
	assert_int_equal(second.owner, 0);
	assert_true(second.czxid > first.czxid);
	assert_int_equal(zk_raw_children(raw, "/q", &names, &parent), 0);
	assert_int_equal(names.count, 2);
	assert_int_equal(parent.children, 2);
	assert_string_equal(names.name[0], "a-0000000001");
	assert_string_equal(names.name[1], "n-0000000000");
	zk_raw_names_clear(&names);
	zk_raw_close(raw);
}

static void tree_lists_parents_first_and_goes_as_a_whole(void **state)
{
	(void)state;
	static const char *const expected[] = {"/", "/t", "/t/a", "/t/a/b", "/t/c"};
	struct zk_raw *raw = open_alone();
	struct zk_raw_names paths = {0};
	for (int i = 1; i < 5; i++)
		assert_int_equal(zk_raw_create(raw, expected[i], "", 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_tree(raw, "/", &paths), 0);
	assert_int_equal(paths.count, 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(paths.name[i], expected[i]);
	zk_raw_names_clear(&paths);
	assert_int_equal(zk_raw_delete(raw, "/t", -1), ZK_RAW_NOT_EMPTY);
	assert_int_equal(zk_raw_delete_tree(raw, "/t"), 0);
	assert_int_equal(zk_raw_tree(raw, "/t", &paths), ZK_RAW_NO_NODE);
	zk_raw_close(raw);
}

static void used_container_is_reaped_when_empty(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone();
	assert_int_equal(zk_raw_create(raw, "/c", "", ZK_RAW_CONTAINER, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(raw, "/p", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(raw, "/c/x", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(raw, "/p/x", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	assert_int_equal(zk_raw_delete(raw, "/c/x", -1), 0);
	assert_int_equal(zk_raw_delete(raw, "/p/x", -1), 0);
	WAIT_UNTIL(node_is_gone(raw, "/c"), WAIT_MS);
	assert_int_equal(zk_raw_exists(raw, "/p", NULL), 0);
	zk_raw_close(raw);
}

static void watch_reports_what_happened(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone(), *other = open_alone();
	char *path = NULL;
	assert_int_equal(zk_raw_watch(raw, "/w"), 0);
	assert_int_equal(zk_raw_next_event(raw, 0, NULL), ZK_RAW_NOTHING);
	assert_int_equal(zk_raw_create(other, "/w", "", 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_next_event(raw, WAIT_MS, &path), ZK_RAW_CREATED);
	assert_string_equal(path, "/w");
	free(path);
	assert_int_equal(zk_raw_watch(raw, "/w"), 0);
	assert_int_equal(zk_raw_watch_children(raw, "/w"), 0);
	assert_int_equal(zk_raw_create(other, "/w/x", "", 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_set(other, "/w", "new", -1), 0);
	/* The events arrive before this answer, and are kept. */
	assert_int_equal(zk_raw_sync(raw, "/w"), 0);
	assert_int_equal(zk_raw_next_event(raw, WAIT_MS, NULL), ZK_RAW_CHILD);
	assert_int_equal(zk_raw_next_event(raw, WAIT_MS, NULL), ZK_RAW_CHANGED);
	zk_raw_close(raw);
	zk_raw_close(other);
}

static void nodes_of_an_identity_are_closed_to_others(void **state)
{
	(void)state;
	struct zk_raw *owner = open_alone(), *other = open_alone();
	char *acl = NULL;
	zk_raw_use_acl(owner, "auth::cdrwa");
	assert_int_equal(zk_raw_create(owner, "/mine", "", 0, NULL, NULL), ZK_RAW_INVALID_ACL);
	assert_int_equal(zk_raw_auth(owner, "digest", "app:secret"), 0);
	assert_int_equal(zk_raw_create(owner, "/mine", "", 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_acl(owner, "/mine", &acl), 0);
	assert_string_equal(acl, "digest:app:F6Y+U5gIoCbNNoLQExmvxRFeatA=:cdrwa");
	free(acl);
	assert_int_equal(zk_raw_acl(owner, "/", &acl), 0);
	assert_string_equal(acl, "world:anyone:cdrwa");
	free(acl);
	assert_int_equal(zk_raw_children(other, "/mine", NULL, NULL), ZK_RAW_NO_AUTH);
	assert_int_equal(zk_raw_auth(other, "digest", "app:secret"), 0);
	assert_int_equal(zk_raw_children(other, "/mine", NULL, NULL), 0);
	zk_raw_close(owner);
	zk_raw_close(other);
}

/* ---- sessions ------------------------------------------------------------------------------- */

static void closed_session_takes_its_nodes_along(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone(), *other = open_alone();
	assert_int_equal(zk_raw_create(raw, "/e", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	zk_raw_close(raw);
	assert_int_equal(zk_raw_exists(other, "/e", NULL), ZK_RAW_NO_NODE);
	zk_raw_close(other);
}

/* The node outlives the connection, and is gone a tick after the session's time at the latest; the
 * rest is room for a machine that has more to do. */
static void dropped_session_lives_until_its_time_is_up(void **state)
{
	(void)state;
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(alone, 0), 1000);
	struct zk_raw *other = open_alone();
	assert_int_equal(zk_raw_session_ms(raw), 1000);
	assert_int_equal(zk_raw_session_ms(other), 60000);
	assert_int_equal(zk_raw_create(raw, "/e", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	long long pinged_at = test_now_ms();
	assert_int_equal(zk_raw_ping(raw), 0);
	zk_raw_drop(raw);
	assert_int_equal(zk_raw_exists(other, "/e", NULL), 0);
	WAIT_UNTIL(node_is_gone(other, "/e"), WAIT_MS);
	assert_true(test_now_ms() - pinged_at >= 1000);
	zk_raw_close(other);
}

static void resumed_session_is_the_same_and_ends_the_old_connection(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone();
	assert_int_equal(zk_raw_create(raw, "/e", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	struct zk_raw *thief = zk_raw_resume(test_zookeeper_host(alone, 0), zk_raw_session(raw));
	assert_non_null(thief);
	assert_int_equal(zk_raw_session(thief), zk_raw_session(raw));
	assert_int_equal(zk_raw_ping(raw), ZK_RAW_LOST);
	assert_int_equal(zk_raw_ping(raw), ZK_RAW_LOST);
	assert_int_equal(zk_raw_exists(thief, "/e", NULL), 0);
	zk_raw_drop(raw);
	zk_raw_close(thief);
}

static void session_is_expired_by_the_owner_of_its_node(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone(), *other = open_alone();
	struct zk_raw_stat stat;
	assert_int_equal(zk_raw_create(raw, "/e", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	assert_int_equal(zk_raw_exists(other, "/e", &stat), 0);
	zk_raw_expire(test_zookeeper_host(alone, 0), stat.owner);
	assert_int_equal(zk_raw_exists(other, "/e", NULL), ZK_RAW_NO_NODE);
	assert_null(zk_raw_resume(test_zookeeper_host(alone, 0), stat.owner));
	assert_int_equal(zk_raw_exists(raw, "/e", NULL), ZK_RAW_LOST);
	zk_raw_drop(raw);
	zk_raw_close(other);
}

/* ---- a server alone ------------------------------------------------------------------------- */

static void server_reports_its_numbers(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone();
	assert_int_equal(test_zookeeper_size(alone), 1);
	assert_int_equal(test_zookeeper_leader(alone), 0);
	assert_in_range(test_zookeeper_version(alone), 30500, 99999);
	assert_string_equal(test_zookeeper_hosts(alone), test_zookeeper_host(alone, 0));
	long long watches = test_zookeeper_value(alone, 0, "zk_watch_count");
	long long ephemerals = test_zookeeper_value(alone, 0, "zk_ephemerals_count");
	assert_int_equal(zk_raw_watch(raw, "/n1"), 0);
	assert_int_equal(zk_raw_watch(raw, "/n2"), 0);
	assert_int_equal(zk_raw_create(raw, "/e", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	assert_int_equal(test_zookeeper_value(alone, 0, "zk_watch_count"), watches + 2);
	assert_int_equal(test_zookeeper_value(alone, 0, "zk_ephemerals_count"), ephemerals + 1);
	assert_int_equal(test_zookeeper_value(alone, 0, "zk_outstanding_requests"), 0);
	char *answer = test_zookeeper_word(alone, 0, "ruok");
	assert_string_equal(answer, "imok");
	free(answer);
	zk_raw_close(raw);
}

static void options_reach_the_server(void **state)
{
	(void)state;
	static const char *const lines[] = {"maxClientCnxns=77", NULL};
	static const char *const properties[] = {"java.io.tmpdir=/tmp/blue", NULL};
	const struct test_zookeeper_options options = {.tick_ms = 300,
	                                               .min_session_ms = 700,
	                                               .max_session_ms = 5000,
	                                               .lines = lines,
	                                               .properties = properties};
	struct test_zookeeper *zookeeper = test_zookeeper_start(&options);
	char *conf = test_zookeeper_word(zookeeper, 0, "conf");
	assert_non_null(strstr(conf, "tickTime=300\n"));
	assert_non_null(strstr(conf, "minSessionTimeout=700\n"));
	assert_non_null(strstr(conf, "maxSessionTimeout=5000\n"));
	assert_non_null(strstr(conf, "maxClientCnxns=77\n"));
	free(conf);
	char *envi = test_zookeeper_word(zookeeper, 0, "envi");
	assert_non_null(strstr(envi, "java.io.tmpdir=/tmp/blue\n"));
	free(envi);
	struct zk_raw *raw = zk_raw_open(test_zookeeper_url(zookeeper, 0), 0);
	assert_int_equal(zk_raw_session_ms(raw), 5000);
	zk_raw_close(raw);
	test_zookeeper_stop(zookeeper);
}

static void killed_server_comes_back_with_its_data(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone();
	assert_int_equal(zk_raw_create(raw, "/kept", "data", 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(raw, "/held", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	int64_t session = zk_raw_session(raw);
	test_zookeeper_kill(alone, 0);
	assert_false(net_is_reachable(test_zookeeper_url(alone, 0)));
	assert_false(test_zookeeper_serves(alone, 0));
	assert_null(zk_raw_try_open(test_zookeeper_host(alone, 0), 0));
	assert_int_equal(zk_raw_ping(raw), ZK_RAW_LOST);
	zk_raw_drop(raw);
	test_zookeeper_restart(alone, 0);
	assert_true(test_zookeeper_serves(alone, 0));
	raw = zk_raw_resume(test_zookeeper_host(alone, 0), session);
	assert_non_null(raw);
	assert_int_equal(zk_raw_exists(raw, "/kept", NULL), 0);
	assert_int_equal(zk_raw_exists(raw, "/held", NULL), 0);
	zk_raw_close(raw);
}

static void frozen_server_answers_after_thaw_only(void **state)
{
	(void)state;
	struct zk_raw *raw = open_alone(), *patient = open_alone();
	test_zookeeper_freeze(alone, 0);
	test_zookeeper_freeze(alone, 0);
	assert_false(test_zookeeper_serves(alone, 0));
	zk_raw_set_timeout(raw, 100);
	assert_int_equal(zk_raw_exists(raw, "/", NULL), ZK_RAW_TIMEOUT);
	test_zookeeper_thaw(alone, 0);
	test_zookeeper_thaw(alone, 0);
	assert_int_equal(zk_raw_exists(patient, "/", NULL), 0);
	zk_raw_drop(raw);
	zk_raw_close(patient);
}

/*
 * The lost answer of a create: the node exists, and belongs to a session that knows nothing of it.
 */
static void proxy_loses_an_answer(void **state)
{
	(void)state;
	struct proxy *proxy = proxy_start(test_zookeeper_url(alone, 0));
	struct zk_raw *raw = zk_raw_open(proxy_url(proxy), 0), *other = open_alone();
	struct zk_raw_stat stat;
	proxy_drop_replies(proxy, true);
	zk_raw_set_timeout(raw, 200);
	assert_int_equal(zk_raw_create(raw, "/e", "", ZK_RAW_EPHEMERAL, NULL, NULL),
	                 ZK_RAW_TIMEOUT);
	assert_int_equal(zk_raw_exists(other, "/e", &stat), 0);
	assert_int_equal(stat.owner, zk_raw_session(raw));
	zk_raw_drop(raw);
	proxy_stop(proxy);
	zk_raw_expire(test_zookeeper_host(alone, 0), stat.owner);
	zk_raw_close(other);
}

/* ---- an ensemble ---------------------------------------------------------------------------- */

static int heal_ensemble(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		test_zookeeper_thaw(ensemble, i);
		test_zookeeper_isolate(ensemble, i, false);
	}
	assert_in_range(test_zookeeper_leader(ensemble), 0, 2);
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(ensemble, 0), 0);
	(void)zk_raw_delete_tree(raw, "/x");
	zk_raw_close(raw);
	return 0;
}

static void ensemble_has_one_leader_and_shares_its_data(void **state)
{
	(void)state;
	int leader = test_zookeeper_leader(ensemble), follower = test_zookeeper_follower(ensemble);
	assert_int_not_equal(leader, follower);
	assert_int_equal(test_zookeeper_value(ensemble, leader, "zk_synced_followers"), 2);
	char *hosts =
		check_format("%s,%s,%s", test_zookeeper_host(ensemble, 0),
	                     test_zookeeper_host(ensemble, 1), test_zookeeper_host(ensemble, 2));
	assert_string_equal(test_zookeeper_hosts(ensemble), hosts);
	free(hosts);
	struct zk_raw *one = zk_raw_open(test_zookeeper_host(ensemble, leader), 0);
	struct zk_raw *two = zk_raw_open(test_zookeeper_host(ensemble, follower), 0);
	assert_int_equal(zk_raw_create(one, "/x", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	assert_int_equal(zk_raw_sync(two, "/x"), 0);
	assert_int_equal(zk_raw_exists(two, "/x", NULL), 0);
	/* A session is ended through any server. */
	zk_raw_expire(test_zookeeper_host(ensemble, follower), zk_raw_session(one));
	assert_int_equal(zk_raw_exists(two, "/x", NULL), ZK_RAW_NO_NODE);
	zk_raw_drop(one);
	zk_raw_close(two);
}

static void killed_leader_is_followed_by_another_and_comes_back(void **state)
{
	(void)state;
	int leader = test_zookeeper_leader(ensemble), survivor = test_zookeeper_follower(ensemble);
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(ensemble, leader), 0);
	struct zk_raw_stat old, new;
	assert_int_equal(zk_raw_create(raw, "/x", "", 0, NULL, &old), 0);
	test_zookeeper_kill(ensemble, leader);
	zk_raw_drop(raw);
	assert_int_not_equal(test_zookeeper_leader(ensemble), leader);
	raw = zk_raw_open(test_zookeeper_host(ensemble, survivor), 0);
	assert_int_equal(zk_raw_create(raw, "/x/y", "", 0, NULL, &new), 0);
	/* The high half of a transaction's number counts the leaders. */
	assert_true(new.czxid >> 32 > old.czxid >> 32);
	zk_raw_close(raw);
	test_zookeeper_restart(ensemble, leader);
	raw = zk_raw_open(test_zookeeper_host(ensemble, leader), 0);
	assert_int_equal(zk_raw_sync(raw, "/x"), 0);
	assert_int_equal(zk_raw_exists(raw, "/x/y", NULL), 0);
	zk_raw_close(raw);
}

static void too_few_servers_do_not_serve_until_one_more_starts(void **state)
{
	(void)state;
	int last = test_zookeeper_leader(ensemble);
	int first = (last + 1) % 3, second = (last + 2) % 3;
	test_zookeeper_kill(ensemble, first);
	test_zookeeper_kill(ensemble, second);
	WAIT_UNTIL(!test_zookeeper_serves(ensemble, last), WAIT_MS);
	assert_null(zk_raw_try_open(test_zookeeper_host(ensemble, last), 0));
	test_zookeeper_kill(ensemble, last);
	test_zookeeper_restart(ensemble, last);
	assert_false(test_zookeeper_serves(ensemble, last));
	test_zookeeper_restart(ensemble, first);
	assert_true(test_zookeeper_serves(ensemble, last));
	assert_true(test_zookeeper_serves(ensemble, first));
	test_zookeeper_restart(ensemble, second);
}

/* It reads, but it does not see what the others agreed on meanwhile; then it stops serving. */
static void follower_cut_off_serves_stale_reads_for_a_while(void **state)
{
	(void)state;
	int leader = test_zookeeper_leader(ensemble), follower = test_zookeeper_follower(ensemble);
	struct zk_raw *near = zk_raw_open(test_zookeeper_host(ensemble, leader), 0);
	struct zk_raw *far = zk_raw_open(test_zookeeper_host(ensemble, follower), 0);
	test_zookeeper_isolate(ensemble, follower, true);
	assert_int_equal(zk_raw_create(near, "/x", "", 0, NULL, NULL), 0);
	assert_int_equal(zk_raw_exists(far, "/x", NULL), ZK_RAW_NO_NODE);
	assert_int_equal(test_zookeeper_leader(ensemble), leader);
	WAIT_UNTIL(!test_zookeeper_serves(ensemble, follower), WAIT_MS);
	assert_int_equal(zk_raw_ping(far), ZK_RAW_LOST);
	assert_int_equal(zk_raw_exists(near, "/x", NULL), 0);
	zk_raw_drop(far);
	test_zookeeper_isolate(ensemble, follower, false);
	assert_int_equal(test_zookeeper_leader(ensemble), leader);
	far = zk_raw_open(test_zookeeper_host(ensemble, follower), 0);
	assert_int_equal(zk_raw_sync(far, "/x"), 0);
	assert_int_equal(zk_raw_exists(far, "/x", NULL), 0);
	zk_raw_close(near);
	zk_raw_close(far);
}

/* It can no longer get anything agreed, but reports that only when it has noticed. */
static void leader_cut_off_loses_its_office(void **state)
{
	(void)state;
	int leader = test_zookeeper_leader(ensemble), follower = test_zookeeper_follower(ensemble);
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(ensemble, leader), 0);
	struct zk_raw *patient = zk_raw_open(test_zookeeper_host(ensemble, leader), 0);
	test_zookeeper_isolate(ensemble, leader, true);
	zk_raw_set_timeout(raw, 200);
	assert_int_equal(zk_raw_create(raw, "/x", "", 0, NULL, NULL), ZK_RAW_TIMEOUT);
	assert_int_not_equal(test_zookeeper_leader(ensemble), leader);
	WAIT_UNTIL(!test_zookeeper_serves(ensemble, leader), WAIT_MS);
	assert_int_equal(zk_raw_ping(patient), ZK_RAW_LOST);
	zk_raw_drop(raw);
	zk_raw_drop(patient);
	raw = zk_raw_open(test_zookeeper_host(ensemble, follower), 0);
	assert_int_equal(zk_raw_create(raw, "/x", "", 0, NULL, NULL), 0);
	zk_raw_close(raw);
}

static void frozen_leader_is_replaced(void **state)
{
	(void)state;
	int leader = test_zookeeper_leader(ensemble);
	test_zookeeper_freeze(ensemble, leader);
	assert_int_not_equal(test_zookeeper_leader(ensemble), leader);
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Where the killed process leaves its files. */
static char *left_dir;

static void print_url(int pipe_fd)
{
	if (setenv("TMPDIR", left_dir, 1))
		_exit(97);
	const char *url = test_zookeeper_url(test_zookeeper_start(NULL), 0);
	if (write(pipe_fd, url, strlen(url)) < 0)
		_exit(98);
	(void)raise(SIGKILL);
}

static void server_dies_with_its_test(void **state)
{
	(void)state;
	char url[64];
	left_dir = temp_dir_make();
	(void)process_fork(print_url, url, sizeof(url));
	assert_int_equal(strncmp(url, "zk://127.0.0.1:", 15), 0);
	WAIT_UNTIL(!net_is_reachable(url), WAIT_MS);
	temp_dir_remove(left_dir);
}

static void start_server(void **state)
{
	(void)state;
	test_zookeeper_stop(test_zookeeper_start(NULL));
}

static int run_one_test(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(start_server)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

static void program_ends_as_skipped_without_java(void **state)
{
	(void)state;
	char self[4096] = "", output[4096];
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	int status = process_call(output, sizeof(output), "env", "PATH=/nonexistent", self, "start",
	                          NULL);
	assert_int_equal(status, CHECK_SKIPPED);
	assert_non_null(strstr(output, "SKIPPED: cannot run java"));
}

/* ---- all ------------------------------------------------------------------------------------ */

static int start_all(void **state)
{
	(void)state;
	alone = test_zookeeper_start(&alone_options);
	ensemble = test_zookeeper_start(&ensemble_options);
	return 0;
}

static int stop_all(void **state)
{
	(void)state;
	test_zookeeper_stop(alone);
	test_zookeeper_stop(ensemble);
	return 0;
}

#define WITH_SERVER(test)   cmocka_unit_test_teardown(test, clear_alone)
#define WITH_ENSEMBLE(test) cmocka_unit_test_teardown(test, heal_ensemble)

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "start") == 0)
		return run_one_test();
	const struct CMUnitTest tests[] = {
		WITH_SERVER(node_is_created_read_changed_and_deleted),
		WITH_SERVER(data_may_be_empty_binary_or_none),
		WITH_SERVER(sequential_nodes_are_numbered_and_listed_in_order),
		WITH_SERVER(tree_lists_parents_first_and_goes_as_a_whole),
		WITH_SERVER(used_container_is_reaped_when_empty),
		WITH_SERVER(watch_reports_what_happened),
		WITH_SERVER(nodes_of_an_identity_are_closed_to_others),
		WITH_SERVER(closed_session_takes_its_nodes_along),
		WITH_SERVER(dropped_session_lives_until_its_time_is_up),
		WITH_SERVER(resumed_session_is_the_same_and_ends_the_old_connection),
		WITH_SERVER(session_is_expired_by_the_owner_of_its_node),
		WITH_SERVER(server_reports_its_numbers),
		WITH_SERVER(killed_server_comes_back_with_its_data),
		WITH_SERVER(frozen_server_answers_after_thaw_only),
		WITH_SERVER(proxy_loses_an_answer),
		WITH_ENSEMBLE(ensemble_has_one_leader_and_shares_its_data),
		WITH_ENSEMBLE(killed_leader_is_followed_by_another_and_comes_back),
		WITH_ENSEMBLE(too_few_servers_do_not_serve_until_one_more_starts),
		WITH_ENSEMBLE(follower_cut_off_serves_stale_reads_for_a_while),
		WITH_ENSEMBLE(leader_cut_off_loses_its_office),
		WITH_ENSEMBLE(frozen_leader_is_replaced),
		cmocka_unit_test(options_reach_the_server),
		cmocka_unit_test(server_dies_with_its_test),
		cmocka_unit_test(program_ends_as_skipped_without_java),
	};
	return cmocka_run_group_tests(tests, start_all, stop_all);
}
