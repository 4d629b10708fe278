/*
 * A free lock taken again is granted by the answer to its creation; whatever came between is
 * noticed.
 */
#include "live/zk_requests.h"

enum { QUICK = 2, LISTED = 3 }; /* requests for an acquire and its release */

/* How many nodes have been created in the folder, which is the number of the next one. */
static int next_number(const char *folder)
{
	struct zk_raw_stat stat;
	assert_int_equal(zk_raw_exists(zk_eye, folder, &stat), 0);
	return (stat.cversion + stat.children) / 2;
}

static void make(const char *path, enum zk_raw_mode mode, char **ret_path)
{
	assert_int_equal(zk_raw_create(zk_eye, path, "", mode, ret_path, NULL), 0);
}

static void delete_and_free(char *path)
{
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	free(path);
}

static void expect_busy(struct taker *taker)
{
	ASSERT_RC(hf_lock_acquire(taker->lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
}

/* ---- what it saves ---- */

#define TIMES 50

static void free_lock_taken_again_costs_two_requests(void **state)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR,  HF_FENCED,
	                                HF_READ,      HF_WRITE, HF_LEADER};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct taker taker;
		char name[20];
		snprintf(name, sizeof name, "orders%zu", i);
		taker_begin(&taker, kinds[i], name, 1);
		taker_rest(&taker);
		long long before = requests_of(zk_server, taker.session);
		long long started_at = test_now_ms();
		for (int j = 0; j < TIMES; j++) {
			ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
			ASSERT_OK(hf_lock_release(taker.lock));
		}
		/* Every half second, the lock that is held at that moment is checked. */
		long long checks = (test_now_ms() - started_at) / GUARD_MS + 1;
		ASSERT_BETWEEN(requests_of(zk_server, taker.session) - before, QUICK * TIMES,
		               QUICK * TIMES + checks);
		taker_end(&taker);
	}
}

/* The kinds that are more than one node are never quick: each has a gate. */
static void quick_grant_is_a_hold_like_any_other(void **state)
{
	char path[700];
	struct zk_raw_stat stat;
	struct taker taker;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 2);
	int64_t last = 0;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(taker_cost(&taker), QUICK);
		ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
		read_only_child(zk_eye, "/orders", path, sizeof path, &stat);
		assert_int_equal(token_of(taker.lock, NULL), stat.czxid);
		assert_true(stat.czxid > last);
		last = stat.czxid;
		assert_true(hf_lock_remaining(taker.lock, NULL) > 0);
		ASSERT_OK(hf_lock_release(taker.lock));
		taker.granted_at = test_now_ms();
	}
	/* A deletion by somebody else is still noticed. */
	ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, &stat);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	WAIT_UNTIL(hf_lock_state(taker.lock, NULL) == HF_LOST, 2000);
	ASSERT_RC(hf_lock_release(taker.lock), HF_ELOST);
	taker_end(&taker);
}

/* ---- other clients ---- */

static void other_client_in_between_is_noticed(void **state)
{
	struct taker taker;
	hf_client *client = open_zk("");
	hf_lock *theirs = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(taker_cost(&taker), QUICK);
		ASSERT_OK(hf_lock_acquire(theirs, NULL));
		expect_busy(&taker);
		ASSERT_OK(hf_lock_release(theirs));
		assert_int_equal(taker_cost(&taker), LISTED);
		assert_int_equal(taker_cost(&taker), QUICK);
		ASSERT_OK(hf_lock_acquire(theirs, NULL));
		ASSERT_OK(hf_lock_release(theirs));
		assert_int_equal(taker_cost(&taker), LISTED);
	}
	close_both(theirs, client);
	taker_end(&taker);
}

static void other_owner_of_the_same_client_is_kept_out(void **state)
{
	struct taker taker;
	hf_owner *other = new_owner();

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 2);
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
		ASSERT_RC(hf_lock_acquire(taker.lock,
		                          HF_ACQUIRE(.owner = other, .wait_ms = HF_NOWAIT)),
		          HF_EBUSY);
		ASSERT_TIMES_OUT(300,
		                 hf_lock_acquire(taker.lock,
		                                 HF_ACQUIRE(.owner = other, .wait_ms = within_ms)));
		ASSERT_OK(hf_lock_release(taker.lock));
		ASSERT_OK(hf_lock_acquire(taker.lock, HF_ACQUIRE(.owner = other)));
		ASSERT_RC(hf_lock_acquire(taker.lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
		ASSERT_OK(hf_lock_release_with(taker.lock, HF_RELEASE(.owner = other)));
	}
	hf_owner_free(other);
	taker_end(&taker);
}

/* Both ask at once, so that the second is sent before the first is answered. */
struct pair {
	atomic_int granted, over;
};

static void on_pair(void *arg, int result, int64_t number, const char *text)
{
	struct pair *pair = arg;
	(void)number;
	(void)text;
	pair->granted += result == 0;
	pair->over++;
}

static void two_owners_that_ask_at_once_get_it_one_by_one(void **state)
{
	struct taker taker;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 2);
	for (int i = 0; i < 20; i++) {
		struct pair pair = {0};
		hf_owner *owners[2] = {new_owner(), new_owner()};
		ASSERT_OK(hf_lock_acquire(taker.lock, NULL));
		ASSERT_OK(hf_lock_release(taker.lock));
		for (int j = 0; j < 2; j++)
			ASSERT_OK(hf_lock_acquire_async(
				taker.lock, HF_ACQUIRE(.owner = owners[j], .wait_ms = 60), on_pair,
				&pair));
		WAIT_UNTIL(pair.over == 2, SOON_MS);
		assert_int_equal(pair.granted, 1);
		for (int j = 0; j < 2; j++) {
			bool held = hf_lock_state(taker.lock, owners[j]) != HF_FREE;
			ASSERT_RC(hf_lock_release_with(taker.lock, HF_RELEASE(.owner = owners[j])),
			          held ? 0 : HF_ENOTHELD);
			hf_owner_free(owners[j]);
		}
		WAIT_UNTIL(count_children(zk_eye, "/orders") == 0, SOON_MS);
	}
	taker_end(&taker);
}

/* ---- other nodes in the folder ---- */

static void node_made_by_hand_in_between_is_waited_for(void **state)
{
	struct taker taker;
	char *path = NULL;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 3);
	assert_int_equal(taker_cost(&taker), QUICK);
	make("/orders/lock-", ZK_RAW_EPHEMERAL_SEQUENTIAL, &path);
	expect_busy(&taker);
	struct waiter *waiter = waiter_start(taker.lock, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	delete_and_free(path);
	waiter_finish(waiter);
	/* The list that let the waiter in has seen it alone. */
	assert_int_equal(taker_cost(&taker), QUICK);
	/* Made and deleted again: the folder is empty, but the client has to see that. */
	make("/orders/lock-", ZK_RAW_EPHEMERAL_SEQUENTIAL, &path);
	delete_and_free(path);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	taker_end(&taker);
}

static void stranger_in_between_is_seen(void **state)
{
	struct taker taker;
	char *path = NULL;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 3);
	make("/orders/paid-", ZK_RAW_PERSISTENT_SEQUENTIAL, &path);
	/* As long as it exists, the client is not alone. */
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), LISTED);
	delete_and_free(path);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	taker_end(&taker);
}

static void node_without_a_number_of_its_own_in_between_is_seen(void **state)
{
	struct taker taker;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 3);
	make("/orders/paid", ZK_RAW_EPHEMERAL, NULL);
	assert_int_equal(zk_raw_delete(zk_eye, "/orders/paid", -1), 0);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	/* One that claims the first place, as a reader inside its write hold does. */
	make("/orders/_c_11111111-1111-4111-8111-111111111111-lock-0000000000", ZK_RAW_EPHEMERAL,
	     NULL);
	expect_busy(&taker);
	assert_int_equal(
		zk_raw_delete(zk_eye,
	                      "/orders/_c_11111111-1111-4111-8111-111111111111-lock-0000000000",
	                      -1),
		0);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	taker_end(&taker);
}

static void nodes_of_other_kinds_in_between_are_seen(void **state)
{
	struct taker taker;
	hf_client *client = open_zk("");
	hf_lock *leader = open_named(client, HF_LEADER, "orders");
	hf_lock *simple = open_named(client, HF_SIMPLE, "orders");
	hf_lock *reader = open_named(client, HF_READ, "orders");

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 3);
	ASSERT_OK(hf_lock_acquire(leader, NULL));
	expect_busy(&taker);
	ASSERT_OK(hf_lock_release(leader));
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	ASSERT_OK(hf_lock_acquire(reader, NULL));
	expect_busy(&taker);
	ASSERT_OK(hf_lock_release(reader));
	assert_int_equal(taker_cost(&taker), LISTED);
	/* A semaphore's folders are two nodes that hold nothing here. */
	ASSERT_OK(hf_lock_acquire(simple, NULL));
	assert_int_equal(taker_cost(&taker), LISTED);
	ASSERT_OK(hf_lock_release(simple));
	hf_lock_close(leader);
	hf_lock_close(simple);
	hf_lock_close(reader);
	ASSERT_OK(hf_client_close(client));
	taker_end(&taker);
}

static void readers_and_writers_of_a_client_see_each_other(void **state)
{
	struct taker taker;
	hf_owner *one = new_owner(), *two = new_owner();

	(void)state;
	taker_begin(&taker, HF_WRITE, "orders", 3);
	hf_lock *reads = open_named(taker.client, HF_READ, "orders");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(taker_cost(&taker), QUICK);
		/* A reader: writers are kept out, and another reader is let in. */
		ASSERT_OK(hf_lock_acquire(reads, HF_ACQUIRE(.owner = one)));
		ASSERT_RC(
			hf_lock_acquire(taker.lock, HF_ACQUIRE(.owner = two, .wait_ms = HF_NOWAIT)),
			HF_EBUSY);
		ASSERT_OK(hf_lock_acquire(reads, HF_ACQUIRE(.owner = two, .wait_ms = HF_NOWAIT)));
		ASSERT_OK(hf_lock_release_with(reads, HF_RELEASE(.owner = one)));
		expect_busy(&taker);
		ASSERT_OK(hf_lock_release_with(reads, HF_RELEASE(.owner = two)));
		assert_int_equal(taker_cost(&taker), LISTED);
		/* A writer that reads too, and keeps reading. */
		ASSERT_OK(hf_lock_acquire(taker.lock, HF_ACQUIRE(.owner = one)));
		ASSERT_OK(hf_lock_acquire(reads, HF_ACQUIRE(.owner = one)));
		ASSERT_OK(hf_lock_release_with(taker.lock, HF_RELEASE(.owner = one)));
		expect_busy(&taker);
		ASSERT_OK(hf_lock_acquire(reads, HF_ACQUIRE(.owner = two, .wait_ms = HF_NOWAIT)));
		ASSERT_OK(hf_lock_release_with(reads, HF_RELEASE(.owner = two)));
		ASSERT_OK(hf_lock_release_with(reads, HF_RELEASE(.owner = one)));
		assert_int_equal(taker_cost(&taker), LISTED);
	}
	hf_owner_free(one);
	hf_owner_free(two);
	hf_lock_close(reads);
	taker_end(&taker);
}

/* ---- folders that are made again ---- */

/*
 * The folder is deleted and made again, with as many nodes in it as the old one had seen; so the
 * next number is again the one that the client expects. The first of them is a lock node, and holds
 * it.
 */
static void make_again(const char *folder, int nodes, char **ret_holder)
{
	char path[100];
	assert_int_equal(zk_raw_delete(zk_eye, folder, -1), 0);
	make(folder, ZK_RAW_PERSISTENT, NULL);
	snprintf(path, sizeof path, "%s/lock-", folder);
	make(path, ZK_RAW_EPHEMERAL_SEQUENTIAL, ret_holder);
	for (int i = 1; i < nodes; i++) {
		snprintf(path, sizeof path, "%s/lock-", folder);
		make(path, ZK_RAW_EPHEMERAL_SEQUENTIAL, NULL);
	}
	assert_int_equal(next_number(folder), nodes);
}

/*
 * This many transactions of the client in each of this many other folders, except for the two that
 * make each.
 */
static void write_elsewhere(struct taker *taker, int folders, int times)
{
	for (int i = 0; i < folders; i++) {
		char name[32];
		snprintf(name, sizeof name, "elsewhere%d", i);
		hf_lock *other = open_lock(taker->client, name);
		for (int j = 0; j < times / 2; j++) {
			ASSERT_OK(hf_lock_acquire(other, NULL));
			ASSERT_OK(hf_lock_release(other));
		}
		hf_lock_close(other);
	}
}

/* Also if the client itself has written as much elsewhere as it took, before and after. */
static void folder_made_again_up_to_the_same_number_is_not_taken_for_the_old_one(void **state)
{
	static const int times[] = {1, 2, 3, 6, 20, 60};

	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		struct taker taker;
		char name[20], folder[21], *holder = NULL;
		snprintf(name, sizeof name, "orders%zu", i);
		snprintf(folder, sizeof folder, "/%s", name);
		taker_begin(&taker, HF_REENTRANT, name, times[i]);
		assert_int_equal(next_number(folder), times[i]);
		write_elsewhere(&taker, 4, 40);
		make_again(folder, times[i], &holder);
		write_elsewhere(&taker, 4, 40);
		expect_busy(&taker);
		/* Its node was made and had the number that it waited for. */
		assert_int_equal(next_number(folder), times[i] + 1);
		WAIT_UNTIL(count_children(zk_eye, folder) == times[i], SOON_MS);
		struct waiter *waiter = waiter_start(taker.lock, NULL);
		WAIT_UNTIL(count_children(zk_eye, folder) == times[i] + 1, SOON_MS);
		assert_false(waiter_is_over(waiter));
		struct zk_raw_names names;
		assert_int_equal(zk_raw_children(zk_eye, folder, &names, NULL), 0);
		for (int j = 0; j < names.count; j++) {
			char path[700];
			snprintf(path, sizeof path, "%s/%s", folder, names.name[j]);
			if (strncmp(names.name[j], "lock-", 5) == 0)
				assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
		}
		zk_raw_names_clear(&names);
		waiter_finish(waiter);
		free(holder);
		taker_end(&taker);
	}
}

/*
 * The same with only the holder left of them, and while the client's node is still expected there.
 */
static void folder_made_again_with_one_holder_left_is_listed(void **state)
{
	struct taker taker;
	char *holder = NULL, path[100];

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 6);
	assert_int_equal(taker_cost(&taker), QUICK);
	int number = next_number("/orders");
	make_again("/orders", number, &holder);
	for (int i = 1; i < number; i++) {
		snprintf(path, sizeof path, "/orders/lock-%010d", i);
		assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	}
	expect_busy(&taker);
	assert_int_equal(next_number("/orders"), number + 1);
	delete_and_free(holder);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	taker_end(&taker);
}

static void empty_folder_made_again_is_listed_once(void **state)
{
	struct taker taker;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 4);
	assert_int_equal(zk_raw_delete(zk_eye, "/orders", -1), 0);
	make("/orders", ZK_RAW_PERSISTENT, NULL);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	/* And one that is gone is made. */
	assert_int_equal(zk_raw_delete(zk_eye, "/orders", -1), 0);
	assert_true(taker_cost(&taker) > LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	taker_end(&taker);
}

/* ---- traffic elsewhere ---- */

/* Its own transactions are known. */
static void own_traffic_elsewhere_costs_nothing(void **state)
{
	struct taker taker;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 20);
	write_elsewhere(&taker, 16, 2); /* so that the folders exist */
	assert_int_equal(taker_cost(&taker), LISTED);
	/*
	 * Some names may share a count with ours, so that one in 256 of the transactions seems to
	 * be another's.
	 */
	write_elsewhere(&taker, 16, 6);
	assert_int_equal(taker_cost(&taker), LISTED);
	write_elsewhere(&taker, 16, 6);
	assert_int_equal(taker_cost(&taker), QUICK);
	taker_end(&taker);
}

/*
 * Transactions of others look like a folder that was made again; then it is listed, and nothing is
 * lost. As long as that lasts, the list is requested together with the node.
 */
static void busy_server_costs_the_advantage_and_no_more(void **state)
{
	struct taker taker;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 2);
	make("/elsewhere", ZK_RAW_PERSISTENT, NULL);
	for (int i = 0; i < 40; i++)
		assert_int_equal(zk_raw_set(zk_eye, "/elsewhere", "x", -1), 0);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), LISTED);
	assert_int_equal(taker_cost(&taker), QUICK);
	taker_end(&taker);
}

/* ---- sessions ---- */

/*
 * How many requests a session has made when it has its first lock: the cost for a client that knows
 * nothing. A lock that takes long is checked, and costs more than it must; then it is not known.
 */
#define NOT_KNOWN (-1LL)

static long long cost_of_session(struct taker *taker, long long began_at)
{
	taker_take(taker, zk_eye, "/orders");
	long long cost = requests_of(zk_server, taker->session);
	ASSERT_OK(hf_lock_release(taker->lock));
	return test_now_ms() < began_at + GUARD_MS ? cost : NOT_KNOWN;
}

static long long cost_of_new_client(void)
{
	struct taker fresh = {.zookeeper = zk_server, .client = open_zk("")};
	fresh.lock = open_named(fresh.client, HF_REENTRANT, "orders");
	long long cost = cost_of_session(&fresh, test_now_ms());
	taker_end(&fresh);
	return cost;
}

/* The same for the session that replaces this one, which ends while it holds a lock. */
static long long cost_after_replacement(struct taker *taker, hf_lock *held)
{
	int64_t ended = taker->session;
	ASSERT_OK(hf_lock_acquire(held, NULL));
	zk_raw_expire(test_zookeeper_host(zk_server, 0), ended);
	WAIT_UNTIL(hf_lock_state(held, NULL) == HF_LOST, ENDED_MS);
	ASSERT_RC(hf_lock_release(held), HF_ELOST);
	long long cost = cost_of_session(taker, test_now_ms());
	assert_true(taker->session != ended);
	return cost;
}

static void session_that_was_replaced_starts_over(void **state)
{
	struct taker taker;
	long long first = NOT_KNOWN, cost;

	(void)state;
	taker_begin(&taker, HF_REENTRANT, "orders", 10);
	hf_lock *sign = open_named(taker.client, HF_REENTRANT, "sign");
	WAIT_UNTIL((first = cost_of_new_client()) != NOT_KNOWN, SOON_MS);
	for (int i = 0; i < 2; i++) {
		WAIT_UNTIL((cost = cost_after_replacement(&taker, sign)) != NOT_KNOWN, ENDED_MS);
		assert_int_equal(cost, first);
		assert_int_equal(taker_cost(&taker), QUICK);
	}
	hf_lock_close(sign);
	taker_end(&taker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(free_lock_taken_again_costs_two_requests),
		ZK_STORY(quick_grant_is_a_hold_like_any_other),
		ZK_STORY(other_client_in_between_is_noticed),
		ZK_STORY(other_owner_of_the_same_client_is_kept_out),
		ZK_STORY(two_owners_that_ask_at_once_get_it_one_by_one),
		ZK_STORY(node_made_by_hand_in_between_is_waited_for),
		ZK_STORY(stranger_in_between_is_seen),
		ZK_STORY(node_without_a_number_of_its_own_in_between_is_seen),
		ZK_STORY(nodes_of_other_kinds_in_between_are_seen),
		ZK_STORY(readers_and_writers_of_a_client_see_each_other),
		ZK_STORY(folder_made_again_up_to_the_same_number_is_not_taken_for_the_old_one),
		ZK_STORY(folder_made_again_with_one_holder_left_is_listed),
		ZK_STORY(empty_folder_made_again_is_listed_once),
		ZK_STORY(own_traffic_elsewhere_costs_nothing),
		ZK_STORY(busy_server_costs_the_advantage_and_no_more),
		ZK_STORY(session_that_was_replaced_starts_over),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
