/* The mutex on a real ZooKeeper: its nodes, its order, its waiters, and what is left behind. */
#include "live/zk.h"

#include "support/process.h"

#include <unistd.h>

/* ---- what it is on the server ---- */

/* _c_<uuid>-lock-<ten digits> */
static void check_protected_name(const char *name)
{
	static const char shape[] = "_c_xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx-lock-dddddddddd";
	assert_int_equal(strlen(name), strlen(shape));
	for (size_t i = 3; shape[i]; i++) {
		const char *set = shape[i] == 'x'              ? "0123456789abcdef"
		                  : shape[i] == 'd' && i >= 45 ? "0123456789"
		                                               : (char[]){shape[i], 0};
		if (!strchr(set, name[i]))
			fail_msg("%s: not %s", name, shape);
	}
	assert_int_equal(strncmp(name, "_c_", 3), 0);
}

static void lock_is_a_protected_node_of_the_session(void **state)
{
	char path[700];
	struct zk_raw_stat stat;
	struct zk_raw_data data;
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "a/b/c");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	static const char *const parents[] = {"/a", "/a/b", "/a/b/c"};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(zk_raw_exists(zk_eye, parents[i], &stat), 0);
		assert_int_equal(stat.owner, 0);
		assert_int_equal(stat.length, 0);
	}
	read_only_child(zk_eye, "/a/b/c", path, sizeof path, &stat);
	check_protected_name(strrchr(path, '/') + 1);
	assert_string_equal(path + strlen(path) - 10, "0000000000");
	assert_true(stat.owner != 0);
	assert_int_equal(stat.version, 0);
	assert_true(stat.czxid > 0);
	assert_int_equal(token_of(lock, NULL), stat.czxid);
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	assert_string_not_equal(data.bytes, "__REVOKE__");
	free(data.bytes);
	char *acl = NULL;
	assert_int_equal(zk_raw_acl(zk_eye, path, &acl), 0);
	assert_string_equal(acl, "world:anyone:cdrwa");
	free(acl);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(count_children(zk_eye, "/a/b/c"), 0);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	close_both(lock, client);
}

static void every_kind_of_mutex_is_the_same_node(void **state)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR, HF_FENCED};
	char path[700];
	struct zk_raw_stat stat;
	hf_client *client = open_zk("");

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		hf_lock *lock = open_named(client, kinds[i], "orders");
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		read_only_child(zk_eye, "/orders", path, sizeof path, &stat);
		check_protected_name(strrchr(path, '/') + 1);
		assert_int_equal(token_of(lock, NULL), stat.czxid);
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

static void what_has_no_meaning_here_is_refused(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *lock = NULL;

	(void)state;
	ASSERT_RC(hf_lock_open(client, HF_SPIN, "orders", &lock), HF_ENOTSUP);
	ASSERT_CONTAINS(hf_error_detail(), "spin");
	assert_null(lock);
	ASSERT_OK(hf_client_close(client));
}

/* A majority has every grant, so there is nothing to ask for. */
static void replicas_are_refused(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *lock = open_lock(client, "orders"), *multi = NULL;
	hf_permits *permits = NULL;
	hf_permit_id id;
	int replicas;

	(void)state;
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1)), HF_ENOTSUP);
	ASSERT_CONTAINS(hf_error_detail(), "majority of the ensemble");
	ASSERT_OK(hf_lock_open_multi(&lock, 1, &multi));
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.replicas = 1)), HF_ENOTSUP);
	ASSERT_OK(hf_permits_open(client, "permits", &permits));
	ASSERT_OK(hf_permits_set(permits, 1));
	ASSERT_RC(hf_permits_acquire(permits, 1, HF_PERMITS(.replicas = 1), &id), HF_ENOTSUP);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = -1)));
	ASSERT_RC(hf_lock_durability(lock, NULL, &replicas), HF_ENOTSUP);
	ASSERT_OK(hf_lock_release(lock));
	hf_permits_close(permits);
	hf_lock_close(multi);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void description_is_the_nodes_data(void **state)
{
	char path[700];
	struct zk_raw_data data;
	hf_client *client = open_at(test_zookeeper_url(zk_server, 0), "",
	                            HF_CLIENT(.describe = "nightly report"));
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	ASSERT_CONTAINS(data.bytes, "nightly report");
	free(data.bytes);
	close_both(lock, client);
}

static void token_grows_even_when_the_folder_begins_anew(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_FENCED, "orders");
	int64_t last = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		assert_true(token_of(lock, NULL) > last);
		last = token_of(lock, NULL);
		ASSERT_OK(hf_lock_release(lock));
		if (i == 1)
			assert_int_equal(zk_raw_delete_tree(zk_eye, "/orders"), 0);
	}
	close_both(lock, client);
}

/* ---- one holder ---- */

static void nested_levels_send_nothing(void **state)
{
	char before[700], after[700];
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_only_child(zk_eye, "/orders", before, sizeof before, NULL);
	uint64_t commands = stats_of(client).commands;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(stats_of(client).commands, commands);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	read_only_child(zk_eye, "/orders", after, sizeof after, NULL);
	assert_string_equal(before, after);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(stats_of(client).commands, commands + 1);
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	close_both(lock, client);
}

static void queries_report_what_the_server_has(void **state)
{
	int flag;
	int64_t number;
	char holder[200], identity[200], path[700];
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_is_locked(rivals->mine, &flag));
	assert_int_equal(flag, 0);
	ASSERT_OK(hf_lock_ttl(rivals->mine, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_holder(rivals->mine, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_is_locked(rivals->theirs, &flag));
	assert_int_equal(flag, 1);
	ASSERT_OK(hf_lock_is_held(rivals->theirs, NULL, &flag));
	assert_int_equal(flag, 0);
	ASSERT_OK(hf_lock_is_held(rivals->mine, NULL, &flag));
	assert_int_equal(flag, 1);
	ASSERT_OK(hf_lock_ttl(rivals->theirs, &number));
	assert_int_equal(number, -1);
	ASSERT_OK(hf_lock_holder(rivals->theirs, holder, sizeof holder));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	assert_string_equal(holder, strrchr(path, '/') + 1);
	ASSERT_OK(hf_lock_identity(rivals->mine, NULL, identity, sizeof identity));
	assert_true(identity[0] != 0);
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	close_rivals(rivals);
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
}

static void forced_release_is_reported_to_the_holder(void **state)
{
	int was_held = -1;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 1);
	waiter_expect(waiter, 0);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, 2000);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	close_rivals(rivals);
}

static void extend_outlives_the_first_lease_and_never_shortens(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_RC(hf_lock_extend(lock, NULL, 5000), HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 6000)));
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 3000, 6000);
	ASSERT_OK(hf_lock_extend(lock, NULL, 1000));
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 3000, 6000);
	ASSERT_OK(hf_lock_extend(lock, NULL, 12000));
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 9000, 12000);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	close_both(lock, client);
}

/* ---- waiters ---- */

static void one_attempt_and_a_short_wait_leave_no_node(void **state)
{
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	hf_cancel *cancel = new_cancel();

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_RC(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 1, SOON_MS);
	long long started_at = test_now_ms();
	ASSERT_TIMES_OUT(200, hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = within_ms)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 195, 2000);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 1, SOON_MS);
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 1, SOON_MS);
	waiter_free(waiter);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	hf_cancel_free(cancel);
	close_rivals(rivals);
}

#define QUEUE 20

static void twenty_waiters_of_two_clients_are_served_in_order(void **state)
{
	struct waiter *waiters[QUEUE];
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	for (int i = 0; i < QUEUE; i++) {
		waiters[i] = waiter_start(i % 2 ? rivals->mine : rivals->theirs, NULL);
		WAIT_UNTIL(count_children(zk_eye, "/orders") == i + 2, SOON_MS);
	}
	int64_t last = token_of(rivals->mine, NULL);
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < QUEUE; i++) {
		waiter_expect(waiters[i], 0);
		for (int j = i + 1; j < QUEUE; j++)
			assert_false(atomic_load(&waiters[j]->over));
		int64_t token = token_of(waiters[i]->lock, waiters[i]->options.owner);
		assert_true(token > last);
		last = token;
		ASSERT_OK(waiter_release(waiters[i]));
		waiter_free(waiters[i]);
	}
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	close_rivals(rivals);
}

static void waiter_in_the_middle_that_leaves_wakes_nobody_early(void **state)
{
	hf_cancel *cancel = new_cancel();
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct waiter *second = waiter_start(lock, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	struct waiter *third = waiter_start(lock, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 3, SOON_MS);
	/* The holder's node, and that of the second. */
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == 2, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_expect(second, HF_ECANCELLED);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	/* The third is woken by that, and has to see that the first still holds it. */
	WAIT_UNTIL(stats_of(client).wakeups >= 1, SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	assert_false(atomic_load(&third->over));
	ASSERT_OK(hf_lock_release(lock));
	waiter_expect(third, 0);
	ASSERT_OK(waiter_release(third));
	waiter_free(second);
	waiter_free(third);
	hf_cancel_free(cancel);
	close_both(lock, client);
}

/* A loop that tries for a moment again and again must not accumulate watches. */
static void waits_that_end_in_vain_do_not_pile_up_watches(void **state)
{
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	for (int i = 0; i < 12; i++)
		ASSERT_TIMES_OUT(150,
		                 hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = within_ms)));
	assert_true(test_zookeeper_value(zk_server, 0, "zk_watch_count") <= 3);
	uint64_t wakeups = stats_of(rivals->two).wakeups;
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_client_ping(rivals->two, NULL));
	assert_int_equal(stats_of(rivals->two).wakeups, wakeups);
	close_rivals(rivals);
}

/* ---- others on the path ---- */

static void strangers_in_the_folder_hold_nothing(void **state)
{
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/orders", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/orders/0", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/orders/paid", "x", ZK_RAW_EPHEMERAL, NULL, NULL),
	                 0);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 3000)));
	assert_int_equal(count_children(zk_eye, "/orders"), 3);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(count_children(zk_eye, "/orders"), 2);
	assert_int_equal(zk_raw_delete(zk_eye, "/orders/paid", -1), 0);
	close_both(lock, client);
}

static void node_made_by_hand_is_waited_for(void **state)
{
	char *path = NULL;
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/orders", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/orders/lock-", "by hand",
	                               ZK_RAW_EPHEMERAL_SEQUENTIAL, &path, NULL),
	                 0);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	/* A change of the data wakes the waiter, which must not trust that. */
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == 1, SOON_MS);
	assert_int_equal(zk_raw_set(zk_eye, path, "__REVOKE__", -1), 0);
	WAIT_UNTIL(stats_of(client).wakeups == 1, SOON_MS);
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == 1, SOON_MS);
	assert_false(atomic_load(&waiter->over));
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	free(path);
	close_both(lock, client);
}

/* ---- where it is ---- */

static void chroot_is_put_before_every_path(void **state)
{
	assert_int_equal(zk_raw_create(zk_eye, "/apps", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/apps/shop", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	hf_client *client = open_zk("/apps/shop");
	hf_lock *lock = open_named(client, HF_REENTRANT, "a/orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(count_children(zk_eye, "/apps/shop/a/orders"), 1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void missing_chroot_is_named_and_not_made(void **state)
{
	char url[200];
	hf_client *client = NULL;

	(void)state;
	snprintf(url, sizeof url, "%s/nowhere/at/all", test_zookeeper_url(zk_server, 0));
	ASSERT_RC(hf_client_open(url, NULL, &client), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "chroot");
	ASSERT_CONTAINS(hf_error_detail(), "/nowhere/at/all");
	assert_int_equal(zk_raw_exists(zk_eye, "/nowhere", NULL), ZK_RAW_NO_NODE);
}

static void chroot_that_vanishes_is_not_made_again(void **state)
{
	assert_int_equal(zk_raw_create(zk_eye, "/apps", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	hf_client *client = open_zk("/apps");
	hf_lock *lock = open_named(client, HF_REENTRANT, "a/orders");

	(void)state;
	assert_int_equal(zk_raw_delete(zk_eye, "/apps", -1), 0);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 3000)), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "chroot");
	assert_int_equal(zk_raw_exists(zk_eye, "/apps", NULL), ZK_RAW_NO_NODE);
	close_both(lock, client);
}

static void name_that_is_not_a_path_is_refused(void **state)
{
	static const char *const names[] = {"a//b", "/a", "a/", "a/./b", "../a", "."};
	hf_client *client = open_zk("");

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		hf_lock *lock = NULL;
		int rc = hf_lock_open(client, HF_REENTRANT, names[i], &lock);
		if (rc == 0)
			rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 3000));
		if (rc != HF_EINVAL)
			fail_msg("%s: %d (%s)", names[i], rc, hf_error_detail());
		ASSERT_CONTAINS(hf_error_detail(), "name");
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

static void digest_keeps_others_out(void **state)
{
	char path[700];
	char *acl = NULL;
	hf_client *mine = open_zk("?auth=digest:me:secret");
	hf_client *wrong = open_zk("?auth=digest:me:wrong");
	hf_lock *lock = open_named(mine, HF_REENTRANT, "orders");
	hf_lock *other = open_named(wrong, HF_REENTRANT, "orders");
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(zk_server, 0), 0);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(zk_raw_auth(raw, "digest", "me:secret"), 0);
	read_only_child(raw, "/orders", path, sizeof path, NULL);
	assert_int_equal(zk_raw_acl(raw, path, &acl), 0);
	ASSERT_CONTAINS(acl, "digest:me:");
	ASSERT_CONTAINS(acl, ":cdrwa");
	free(acl);
	assert_int_equal(zk_raw_acl(raw, "/orders", &acl), 0);
	ASSERT_CONTAINS(acl, "digest:me:");
	free(acl);
	int rc = hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 3000));
	assert_true(rc == HF_EREFUSED || rc == HF_EDENIED || rc == HF_EAUTH);
	ASSERT_CONTAINS(hf_error_detail(), "auth");
	assert_int_equal(count_children(raw, "/orders"), 1);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(zk_raw_delete(raw, "/orders", -1), 0);
	zk_raw_close(raw);
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(mine));
	ASSERT_OK(hf_client_close(wrong));
}

static void open_acl_lets_everybody_in(void **state)
{
	hf_client *mine = open_zk("?auth=digest:me:secret&acl=open");
	hf_client *wrong = open_zk("?auth=digest:me:wrong&acl=open");
	hf_lock *lock = open_named(mine, HF_REENTRANT, "orders");
	hf_lock *other = open_named(wrong, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_RC(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 3000)));
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(mine));
	ASSERT_OK(hf_client_close(wrong));
}

/* ---- processes and threads ---- */

static hf_client *parent_client;
static hf_lock *parent_lock;

static void use_in_child(int pipe_fd)
{
	char line[100];
	int length =
		snprintf(line, sizeof line, "%d %d %d", hf_lock_acquire(parent_lock, NULL),
	                 hf_lock_release(parent_lock), (int)hf_lock_remaining(parent_lock, NULL));
	(void)!write(pipe_fd, line, (size_t)length);
	hf_lock_close(parent_lock);
	(void)hf_client_close(parent_client);
	_exit(0);
}

static void forked_child_touches_nothing(void **state)
{
	char output[200], expected[100];
	parent_client = open_zk("");
	parent_lock = open_named(parent_client, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(parent_lock, NULL));
	assert_int_equal(process_fork(use_in_child, output, sizeof output), 0);
	snprintf(expected, sizeof expected, "%d %d 0", HF_EFORKED, HF_EFORKED);
	assert_string_equal(output, expected);
	ASSERT_OK(hf_client_ping(parent_client, NULL));
	assert_int_equal(hf_lock_state(parent_lock, NULL), HF_HELD);
	assert_int_equal(count_children(zk_eye, "/orders"), 1);
	ASSERT_OK(hf_lock_release(parent_lock));
	close_both(parent_lock, parent_client);
}

#define THREADS 8
#define ROUNDS  40

static long counted; /* without protection but the lock's */

/* Returns what went wrong, or NULL. */
static char *explain(const char *verb, int rc)
{
	return check_format("%s: %d (%s: %s)", verb, rc, hf_strerror(rc), hf_error_detail());
}

static void *count_up(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int rc = hf_lock_acquire(arg, NULL);
		if (rc)
			return explain("acquire", rc);
		long seen = counted;
		if (i % 8 == 0)
			test_pause();
		counted = seen + 1;
		rc = hf_lock_release(arg);
		if (rc)
			return explain("release", rc);
	}
	return NULL;
}

static void threads_of_two_clients_never_lose_a_count(void **state)
{
	pthread_t threads[2 * THREADS];
	hf_client *clients[2];
	hf_lock *locks[2];

	(void)state;
	counted = 0;
	for (int i = 0; i < 2; i++) {
		clients[i] = open_zk("");
		locks[i] = open_named(clients[i], i ? HF_FAIR : HF_REENTRANT, "orders");
	}
	for (int i = 0; i < 2 * THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_up, locks[i % 2]), 0);
	for (int i = 0; i < 2 * THREADS; i++) {
		void *wrong;
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		if (wrong)
			fail_msg("%s", (char *)wrong);
	}
	assert_int_equal(counted, 2 * THREADS * ROUNDS);
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	for (int i = 0; i < 2; i++) {
		close_both(locks[i], clients[i]);
	}
}

/* Holds are watched a little after their grant; a watch on a node that is gone would stay. */
static void deleted_holds_leave_no_watches(void **state)
{
	enum { HOLDS = 20 };
	hf_lock *locks[HOLDS];
	char folder[40], path[700];
	hf_client *client = open_zk("");

	(void)state;
	for (int i = 0; i < HOLDS; i++) {
		snprintf(folder, sizeof folder, "/orders-%d", i);
		locks[i] = open_named(client, HF_REENTRANT, folder + 1);
		ASSERT_OK(hf_lock_acquire(locks[i], NULL));
		read_only_child(zk_eye, folder, path, sizeof path, NULL);
		assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	}
	for (int i = 0; i < HOLDS; i++) {
		WAIT_UNTIL(hf_lock_state(locks[i], NULL) == HF_LOST, SOON_MS);
		ASSERT_RC(hf_lock_release(locks[i]), HF_ELOST);
		hf_lock_close(locks[i]);
	}
	assert_int_equal(test_zookeeper_value(zk_server, 0, "zk_watch_count"), 0);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(lock_is_a_protected_node_of_the_session),
		ZK_STORY(every_kind_of_mutex_is_the_same_node),
		ZK_STORY(what_has_no_meaning_here_is_refused),
		ZK_STORY(replicas_are_refused),
		ZK_STORY(description_is_the_nodes_data),
		ZK_STORY(token_grows_even_when_the_folder_begins_anew),
		ZK_STORY(nested_levels_send_nothing),
		ZK_STORY(queries_report_what_the_server_has),
		ZK_STORY(forced_release_is_reported_to_the_holder),
		ZK_STORY(extend_outlives_the_first_lease_and_never_shortens),
		ZK_STORY(one_attempt_and_a_short_wait_leave_no_node),
		ZK_STORY(twenty_waiters_of_two_clients_are_served_in_order),
		ZK_STORY(waiter_in_the_middle_that_leaves_wakes_nobody_early),
		ZK_STORY(waits_that_end_in_vain_do_not_pile_up_watches),
		ZK_STORY(strangers_in_the_folder_hold_nothing),
		ZK_STORY(node_made_by_hand_is_waited_for),
		ZK_STORY(chroot_is_put_before_every_path),
		ZK_STORY(missing_chroot_is_named_and_not_made),
		ZK_STORY(chroot_that_vanishes_is_not_made_again),
		ZK_STORY(name_that_is_not_a_path_is_refused),
		ZK_STORY(digest_keeps_others_out),
		ZK_STORY(open_acl_lets_everybody_in),
		ZK_STORY(forked_child_touches_nothing),
		ZK_STORY(threads_of_two_clients_never_lose_a_count),
		ZK_STORY(deleted_holds_leave_no_watches),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
