/* How many permits there are on ZooKeeper: a number of each client's own, or one that all read. */
#include "live/zk_permits.h"

#define SIZE "/size"

/* ---- a number of its own ---- */

static void total_is_this_clients_word(void **state)
{
	hf_permit_id id;
	int done = -7;

	(void)state;
	begin(0, 0);
	assert_int_equal(total(pair.mine), 0);
	assert_int_equal(available(pair.mine), 0);
	ASSERT_OK(hf_permits_try_set(pair.mine, 2, &done));
	assert_int_equal(done, 1);
	ASSERT_OK(hf_permits_try_set(pair.mine, 5, &done));
	assert_int_equal(done, 0);
	assert_int_equal(total(pair.mine), 2);
	assert_int_equal(total(pair.theirs), 0);
	ASSERT_OK(hf_permits_add(pair.mine, 3));
	assert_int_equal(total(pair.mine), 5);
	ASSERT_OK(hf_permits_add(pair.mine, -4));
	assert_int_equal(total(pair.mine), 1);
	ASSERT_OK(hf_permits_set(pair.mine, 4));
	assert_int_equal(total(pair.mine), 4);
	ASSERT_RC(hf_permits_set(pair.mine, -1), HF_EINVAL);
	ASSERT_OK(hf_permits_set(pair.theirs, 2));
	take(pair.mine, 1, 0, &id);
	assert_int_equal(available(pair.mine), 3);
	assert_int_equal(available(pair.theirs), 1);
	assert_int_equal(acquired(pair.mine), 1);
	assert_int_equal(acquired(pair.theirs), 1);
	/* A total below what is taken leaves none, and takes none away. */
	ASSERT_OK(hf_permits_set(pair.theirs, 0));
	assert_int_equal(available(pair.theirs), 0);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_HELD);
	ASSERT_OK(give(pair.mine, id));
	end();
}

static void total_of_all_handles_ends_with_the_last_of_them(void **state)
{
	(void)state;
	begin(0, 0);
	hf_permits *other = open_permits(pair.one, "orders");
	ASSERT_OK(hf_permits_set(other, 2));
	assert_int_equal(total(pair.mine), 2);
	hf_permits_close(other);
	assert_int_equal(total(pair.mine), 2);
	hf_permits_close(pair.mine);
	pair.mine = open_permits(pair.one, "orders");
	assert_int_equal(total(pair.mine), 0);
	end();
}

static void total_that_grows_here_lets_waiters_in(void **state)
{
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.theirs, 1, 0, &id);
	struct waiter *first = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(1, 2);
	struct waiter *second = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(2, 2);
	long long grown_at = test_now_ms();
	ASSERT_OK(hf_permits_set(pair.mine, 2));
	waiter_expect(first, 0);
	ASSERT_BETWEEN(first->ended_at - grown_at, 0, ZK_WOKEN_MS);
	WAIT_NODES(1, 3);
	grown_at = test_now_ms();
	ASSERT_OK(hf_permits_add(pair.mine, 1));
	waiter_expect(second, 0);
	ASSERT_BETWEEN(second->ended_at - grown_at, 0, ZK_WOKEN_MS);
	call_give(first);
	call_give(second);
	ASSERT_OK(give(pair.theirs, id));
	end();
}

static void total_beyond_what_a_number_can_be_is_refused(void **state)
{
	(void)state;
	begin(0, 0);
	ASSERT_OK(hf_permits_set(pair.mine, INT32_MAX));
	ASSERT_RC(hf_permits_add(pair.mine, 1), HF_EINVAL);
	assert_int_equal(total(pair.mine), INT32_MAX);
	ASSERT_OK(hf_permits_total_from(pair.theirs, "size"));
	ASSERT_OK(hf_permits_set(pair.theirs, INT32_MAX));
	ASSERT_RC(hf_permits_add(pair.theirs, 1), HF_EINVAL);
	assert_int_equal(total(pair.theirs), INT32_MAX);
	end();
}

/* ---- a number that all read ---- */

static void make_size(const char *path, const unsigned char bytes[4])
{
	assert_int_equal(zk_raw_create_bytes(zk_eye, path, bytes, 4, ZK_RAW_PERSISTENT, NULL, NULL),
	                 0);
}

static void set_size(const unsigned char bytes[4])
{
	assert_int_equal(zk_raw_set_bytes(zk_eye, SIZE, bytes, 4, -1, NULL), 0);
}

#define SIZE_BYTES(value)                                                                          \
	((const unsigned char[]){(unsigned)(value) >> 24 & 255, (unsigned)(value) >> 16 & 255,     \
	                         (unsigned)(value) >> 8 & 255, (unsigned)(value)&255})

/* Both clients read it from there. */
static void begin_shared(int64_t session_ms)
{
	begin(0, session_ms);
	ASSERT_OK(hf_permits_total_from(pair.mine, "size"));
	ASSERT_OK(hf_permits_total_from(pair.theirs, "size"));
}

static void check_size(const char *path, int32_t value)
{
	struct zk_raw_data data;
	struct zk_raw_stat stat;
	assert_int_equal(zk_raw_get(zk_eye, path, &data, &stat), 0);
	assert_int_equal(data.length, 4);
	assert_memory_equal(data.bytes, SIZE_BYTES(value), 4);
	assert_int_equal(stat.owner, 0);
	free(data.bytes);
}

static void total_is_what_the_node_says(void **state)
{
	hf_permit_id ids[2];

	(void)state;
	begin_shared(0);
	make_size(SIZE, SIZE_BYTES(0x01020304));
	assert_int_equal(total(pair.mine), 0x01020304);
	set_size(SIZE_BYTES(2));
	assert_int_equal(total(pair.mine), 2);
	take(pair.mine, 1, 0, &ids[0]);
	take(pair.theirs, 1, 0, &ids[1]);
	assert_int_equal(available(pair.theirs), 0);
	ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EBUSY);
	ASSERT_RC(try_take(pair.theirs, 3, SOON_MS), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "permits: 3 requested, but there are only 2");
	WAIT_NODES(0, 2);
	ASSERT_OK(give(pair.mine, ids[0]));
	ASSERT_OK(give(pair.theirs, ids[1]));
	end();
}

static void total_that_grows_on_the_server_lets_waiters_in(void **state)
{
	struct waiter *calls[4];
	hf_permit_id id;

	(void)state;
	begin_shared(0);
	make_size(SIZE, SIZE_BYTES(1));
	take(pair.mine, 1, 0, &id);
	for (int i = 0; i < 4; i++) {
		calls[i] = WAITER(.permits = i % 2 ? pair.mine : pair.theirs, .n = 1);
		WAIT_NODES(i + 1, 2);
	}
	/* By a stranger, by this client, by the other one; each time the first goes. */
	for (int i = 0; i < 3; i++) {
		long long grown_at = test_now_ms();
		if (i == 0)
			set_size(SIZE_BYTES(2));
		else if (i == 1)
			ASSERT_OK(hf_permits_set(pair.mine, 3));
		else
			ASSERT_OK(hf_permits_add(pair.theirs, 1));
		waiter_expect(calls[i], 0);
		ASSERT_BETWEEN(calls[i]->ended_at - grown_at, 0, ZK_WOKEN_MS);
		WAIT_NODES(3 - i, 3 + i);
		assert_false(waiter_is_over(calls[i + 1]));
	}
	/* And if it shrinks, that many must be given back first. */
	ASSERT_OK(hf_permits_set(pair.mine, 2));
	call_give(calls[0]);
	call_give(calls[1]);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	assert_false(waiter_is_over(calls[3]));
	WAIT_NODES(1, 3);
	ASSERT_OK(give(pair.mine, id));
	call_give(calls[3]);
	call_give(calls[2]);
	end();
}

static void total_is_set_for_all(void **state)
{
	int done = -7;

	(void)state;
	begin_shared(0);
	ASSERT_OK(hf_permits_try_set(pair.mine, 3, &done));
	assert_int_equal(done, 1);
	check_size(SIZE, 3);
	ASSERT_OK(hf_permits_try_set(pair.theirs, 9, &done));
	assert_int_equal(done, 0);
	check_size(SIZE, 3);
	assert_int_equal(total(pair.theirs), 3);
	ASSERT_OK(hf_permits_set(pair.theirs, 300));
	check_size(SIZE, 300);
	assert_int_equal(total(pair.mine), 300);
	ASSERT_OK(hf_permits_add(pair.mine, -298));
	check_size(SIZE, 2);
	assert_int_equal(total(pair.theirs), 2);
	assert_int_equal(available(pair.theirs), 2);
	/* The node exists for good, and one that is missing is made. */
	assert_int_equal(zk_raw_delete(zk_eye, SIZE, -1), 0);
	ASSERT_OK(hf_permits_set(pair.mine, 7));
	check_size(SIZE, 7);
	assert_int_equal(total(pair.theirs), 7);
	end();
}

static void node_of_the_total_is_made_with_its_folders(void **state)
{
	int done = -7;

	(void)state;
	begin(0, 0);
	ASSERT_OK(hf_permits_total_from(pair.mine, "sizes/of/orders"));
	ASSERT_OK(hf_permits_try_set(pair.mine, 2, &done));
	assert_int_equal(done, 1);
	check_size("/sizes/of/orders", 2);
	ASSERT_OK(hf_permits_total_from(pair.mine, "sizes/of/others"));
	ASSERT_OK(hf_permits_set(pair.mine, 4));
	check_size("/sizes/of/others", 4);
	check_size("/sizes/of/orders", 2);
	assert_int_equal(total(pair.mine), 4);
	end();
}

struct adder {
	pthread_t thread;
	hf_permits *permits;
	int rc;
};

static void *add_many(void *arg)
{
	struct adder *adder = arg;
	for (int i = 0; i < 25 && !adder->rc; i++)
		adder->rc = hf_permits_add(adder->permits, i % 5 == 4 ? -1 : 1);
	return NULL;
}

static void two_clients_that_add_at_once_lose_nothing(void **state)
{
	struct adder adders[4] = {0};

	(void)state;
	begin_shared(0);
	ASSERT_OK(hf_permits_set(pair.mine, 10));
	for (int i = 0; i < 4; i++) {
		adders[i].permits = i % 2 ? pair.mine : pair.theirs;
		assert_int_equal(pthread_create(&adders[i].thread, NULL, add_many, &adders[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(adders[i].thread, NULL), 0);
		assert_int_equal(adders[i].rc, 0);
	}
	check_size(SIZE, 10 + 4 * 15);
	assert_int_equal(total(pair.theirs), 10 + 4 * 15);
	end();
}

static void total_that_shrinks_below_what_is_wanted_is_reported(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_shared(0);
	make_size(SIZE, SIZE_BYTES(2));
	take(pair.theirs, 1, 0, &id);
	struct waiter *call = WAITER(.permits = pair.mine, .n = 2);
	/* One exists, and the other is one too many. */
	WAIT_NODES(1, 3);
	set_size(SIZE_BYTES(1));
	waiter_expect(call, HF_EINVAL);
	ASSERT_CONTAINS(call->detail, "permits: 2 requested, but there are only 1");
	waiter_free(call);
	WAIT_NODES(0, 1);
	assert_int_equal(stats_of(pair.one).held, 0);
	ASSERT_OK(give(pair.theirs, id));
	end();
}

static void total_is_below_the_chroot_and_after_the_prefix(void **state)
{
	hf_permit_id id;
	hf_client *client;

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/apps", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	client = open_zk("/apps?name_prefix=shop/");
	hf_permits *permits = open_permits(client, "orders");
	ASSERT_OK(hf_permits_total_from(permits, "size"));
	ASSERT_OK(hf_permits_set(permits, 3));
	check_size("/apps/shop/size", 3);
	take(permits, 1, 0, &id);
	assert_int_equal(count_at(zk_eye, "/apps/shop/orders/leases"), 1);
	assert_int_equal(available(permits), 2);
	ASSERT_OK(give(permits, id));
	hf_permits_close(permits);
	ASSERT_OK(hf_client_close(client));
}

/* ---- data that is not a number ---- */

static void total_without_a_node_is_refused(void **state)
{
	int64_t number;
	hf_permit_id id;

	(void)state;
	begin_shared(0);
	ASSERT_RC(try_take(pair.mine, 1, 0), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "hf_permits_try_set");
	WAIT_NODES(0, 0);
	ASSERT_RC(hf_permits_total(pair.mine, &number), HF_EINVAL);
	ASSERT_RC(hf_permits_available(pair.mine, &number), HF_EINVAL);
	ASSERT_RC(hf_permits_add(pair.mine, 1), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "hf_permits_try_set");
	assert_int_equal(zk_raw_exists(zk_eye, SIZE, NULL), ZK_RAW_NO_NODE);
	ASSERT_OK(hf_permits_acquired(pair.mine, &number));
	assert_int_equal(number, 0);
	ASSERT_OK(hf_permits_try_set(pair.theirs, 1, NULL));
	take(pair.mine, 1, 0, &id);
	ASSERT_OK(give(pair.mine, id));
	end();
}

static void total_of_wrong_bytes_is_refused(void **state)
{
	static const char *const wrong[] = {"", "3", "123", "12345"};
	int64_t number;
	hf_permit_id id;

	(void)state;
	begin_shared(0);
	make_size(SIZE, SIZE_BYTES(1));
	take(pair.mine, 1, 0, &id);
	ASSERT_OK(give(pair.mine, id));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(zk_raw_set(zk_eye, SIZE, wrong[i], -1), 0);
		ASSERT_RC(hf_permits_total(pair.mine, &number), HF_EINVAL);
		ASSERT_RC(try_take(pair.mine, 1, 0), HF_EINVAL);
		ASSERT_CONTAINS(hf_error_detail(), "four bytes");
		ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EINVAL);
		WAIT_NODES(0, 0);
	}
	set_size(SIZE_BYTES(1));
	take(pair.mine, 1, 0, &id);
	ASSERT_OK(give(pair.mine, id));
	take(pair.theirs, 1, 0, &id);
	ASSERT_OK(give(pair.theirs, id));
	end();
}

static void total_whose_node_vanishes_is_reported_to_waiters(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_shared(0);
	make_size(SIZE, SIZE_BYTES(1));
	take(pair.mine, 1, 0, &id);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 2);
	assert_int_equal(zk_raw_delete(zk_eye, SIZE, -1), 0);
	waiter_expect(call, HF_EINVAL);
	ASSERT_CONTAINS(call->detail, "hf_permits_try_set");
	waiter_free(call);
	WAIT_NODES(0, 1);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_HELD);
	ASSERT_OK(give(pair.mine, id));
	end();
}

static void total_from_no_path_is_refused(void **state)
{
	static const char *const names[] = {"a//b", "/a", "a/", "..", ""};

	(void)state;
	begin(2, 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		ASSERT_RC(hf_permits_total_from(pair.mine, names[i]), HF_EINVAL);
		ASSERT_CONTAINS(hf_error_detail(), "name");
	}
	ASSERT_RC(hf_permits_total_from(pair.mine, NULL), HF_EINVAL);
	assert_int_equal(total(pair.mine), 2);
	end();
}

/* A session that has ended leaves no watch: the number is read again. */
static void total_that_changes_between_sessions_is_noticed(void **state)
{
	struct zk_raw_stat stat;
	hf_permit_id ids[2];
	char path[700];

	(void)state;
	begin_shared(0);
	make_size(SIZE, SIZE_BYTES(1));
	take(pair.mine, 1, 0, &ids[0]);
	read_only_child(zk_eye, LEASES, path, sizeof path, &stat);
	zk_raw_expire(test_zookeeper_host(zk_server, 0), stat.owner);
	set_size(SIZE_BYTES(2));
	WAIT_UNTIL(hf_permits_state(pair.mine, ids[0]) == HF_LOST, ENDED_MS);
	take(pair.mine, 2, 0, ids);
	assert_int_equal(leases(), 2);
	struct waiter *call = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(1, 3);
	set_size(SIZE_BYTES(3));
	call_give(call);
	ASSERT_OK(give_all(pair.mine, ids, 2));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PERMITS_STORY(total_is_this_clients_word),
		PERMITS_STORY(total_of_all_handles_ends_with_the_last_of_them),
		PERMITS_STORY(total_that_grows_here_lets_waiters_in),
		PERMITS_STORY(total_beyond_what_a_number_can_be_is_refused),
		PERMITS_STORY(total_is_what_the_node_says),
		PERMITS_STORY(total_that_grows_on_the_server_lets_waiters_in),
		PERMITS_STORY(total_is_set_for_all),
		PERMITS_STORY(node_of_the_total_is_made_with_its_folders),
		PERMITS_STORY(two_clients_that_add_at_once_lose_nothing),
		PERMITS_STORY(total_that_shrinks_below_what_is_wanted_is_reported),
		PERMITS_STORY(total_is_below_the_chroot_and_after_the_prefix),
		PERMITS_STORY(total_without_a_node_is_refused),
		PERMITS_STORY(total_of_wrong_bytes_is_refused),
		PERMITS_STORY(total_whose_node_vanishes_is_reported_to_waiters),
		PERMITS_STORY(total_from_no_path_is_refused),
		PERMITS_STORY(total_that_changes_between_sessions_is_noticed),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
