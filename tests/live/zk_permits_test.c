/*
 * Permits on a real ZooKeeper: their nodes, their order, their waiters, and that nothing is left.
 */
#include "live/zk_permits.h"

/* ---- what they are on the server ---- */

static void permit_is_a_lease_as_curator_makes_it(void **state)
{
	static const char *const folders[] = {"/orders", GATES, LEASES};
	struct zk_raw_stat stat;
	char path[700];
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 0, &id);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(zk_raw_exists(zk_eye, folders[i], &stat), 0);
		assert_int_equal(stat.owner, 0);
		assert_int_equal(stat.length, 0);
	}
	assert_int_equal(count_children(zk_eye, "/orders"), 2);
	WAIT_NODES(0, 1);
	read_only_child(zk_eye, LEASES, path, sizeof path, &stat);
	check_name(strrchr(path, '/') + 1, "-lease-", "0000000000");
	assert_true(stat.owner != 0);
	int64_t session = stat.owner;
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 2);
	read_only_child(zk_eye, GATES, path, sizeof path, &stat);
	check_name(strrchr(path, '/') + 1, "-lock-", "0000000001");
	assert_true(stat.owner != 0 && stat.owner != session);
	newest_child(zk_eye, LEASES, path, sizeof path);
	check_name(strrchr(path, '/') + 1, "-lease-", "0000000001");
	ASSERT_OK(give(pair.mine, id));
	call_give(call);
	WAIT_NODES(0, 0);
	end();
}

static void every_node_has_a_guid_of_its_own(void **state)
{
	struct zk_raw_names names;
	hf_permit_id ids[3];

	(void)state;
	begin(3, 0);
	take(pair.mine, 3, 0, ids);
	assert_int_equal(zk_raw_children(zk_eye, LEASES, &names, NULL), 0);
	assert_int_equal(names.count, 3);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < i; j++)
			assert_true(strncmp(names.name[i] + 3, names.name[j] + 3, 36) != 0);
	zk_raw_names_clear(&names);
	assert_string_not_equal(ids[0], ids[1]);
	assert_string_not_equal(ids[1], ids[2]);
	/* One after the other, each through the gate. */
	ASSERT_OK(give_all(pair.mine, ids, 3));
	take(pair.mine, 1, 0, ids);
	assert_int_equal(zk_raw_children(zk_eye, LEASES, &names, NULL), 0);
	check_name(names.name[0], "-lease-", "0000000003");
	zk_raw_names_clear(&names);
	ASSERT_OK(give(pair.mine, ids[0]));
	end();
}

static void description_is_the_data_of_the_lease(void **state)
{
	struct zk_raw_data data;
	char path[700];
	hf_permit_id id;
	hf_client *client = open_at(test_zookeeper_url(zk_server, 0), "",
	                            HF_CLIENT(.describe = "nightly report"));
	hf_permits *permits = open_permits(client, "orders");

	(void)state;
	ASSERT_OK(hf_permits_set(permits, 1));
	take(permits, 1, 0, &id);
	read_only_child(zk_eye, LEASES, path, sizeof path, NULL);
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	ASSERT_CONTAINS(data.bytes, "nightly report");
	free(data.bytes);
	hf_permits_close(permits);
	ASSERT_OK(hf_client_close(client));
	/* Closing gives back what is held. */
	WAIT_NODES(0, 0);
}

/* ---- holders ---- */

static void as_many_as_the_total_are_held_at_once(void **state)
{
	hf_permit_id mine[2], theirs, one_more;

	(void)state;
	begin(3, 0);
	take(pair.mine, 2, 0, mine);
	take(pair.theirs, 1, 0, &theirs);
	ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EBUSY);
	ASSERT_RC(try_take(pair.mine, 1, HF_NOWAIT), HF_EBUSY);
	WAIT_NODES(0, 3);
	struct waiter *call = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(1, 4);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	assert_false(waiter_is_over(call));
	ASSERT_WAKES(give(pair.theirs, theirs), call, ZK_WOKEN_MS);
	WAIT_NODES(0, 3);
	assert_int_equal(hf_permits_state(pair.mine, call->ids[0]), HF_HELD);
	/* A call that waited for nothing has to return nothing. */
	ASSERT_OK(give(pair.mine, mine[0]));
	ASSERT_OK(hf_permits_acquire(pair.theirs, 1, HF_PERMITS(.wait_ms = HF_NOWAIT), &one_more));
	ASSERT_OK(give(pair.theirs, one_more));
	ASSERT_OK(give(pair.mine, mine[1]));
	call_give(call);
	assert_int_equal(leases(), 0);
	end();
}

#define QUEUE 10

static void waiters_of_two_clients_are_served_in_order(void **state)
{
	struct waiter *calls[QUEUE];
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 0, &id);
	for (int i = 0; i < QUEUE; i++) {
		calls[i] = WAITER(.permits = i % 2 ? pair.mine : pair.theirs, .n = 1);
		WAIT_NODES(i + 1, 2);
	}
	ASSERT_OK(give(pair.mine, id));
	for (int i = 0; i < QUEUE; i++) {
		waiter_expect(calls[i], 0);
		for (int j = i + 1; j < QUEUE; j++)
			assert_false(waiter_is_over(calls[j]));
		call_give(calls[i]);
	}
	WAIT_NODES(0, 0);
	end();
}

/* The results of many completions: how many there were, and of which kind. */
struct crowd {
	hf_permits *permits;
	atomic_int over, granted, given, closed;
};

static void on_given(void *arg, int result, int64_t number, const char *text)
{
	struct crowd *crowd = arg;
	(void)number;
	(void)text;
	if (result == 0)
		atomic_fetch_add(&crowd->given, 1);
}

static void on_taken(void *arg, int result, int64_t number, const char *text)
{
	struct crowd *crowd = arg;
	hf_permit_id id;
	(void)number;
	if (result == 0) {
		snprintf(id, sizeof id, "%s", text);
		atomic_fetch_add(&crowd->granted, 1);
		(void)hf_permits_release_async(crowd->permits, (const hf_permit_id *)&id, 1,
		                               on_given, crowd);
	}
	if (result == HF_ECLOSED)
		atomic_fetch_add(&crowd->closed, 1);
	atomic_fetch_add(&crowd->over, 1);
}

#define MANY 50

static void one_lease_at_most_is_too_many_while_fifty_wait(void **state)
{
	struct crowd crowd = {0};
	hf_permit_id ids[2];

	(void)state;
	begin(2, 0);
	crowd.permits = pair.mine;
	take(pair.theirs, 2, 0, ids);
	for (int i = 0; i < MANY; i++)
		ASSERT_OK(hf_permits_acquire_async(pair.mine, 1, NULL, on_taken, &crowd));
	WAIT_UNTIL(gates() == MANY, 10000);
	/* The first waits at the leases and the others each for the one before. */
	WAIT_NODES(MANY, 3);
	assert_true(test_zookeeper_value(zk_server, 0, "zk_watch_count") <= MANY + 2);
	ASSERT_OK(give_all(pair.theirs, ids, 2));
	long long ends_at = test_now_ms() + 30000;
	while (atomic_load(&crowd.given) < MANY) {
		int seen = leases();
		if (seen > 3)
			fail_msg("%d leases of 2 permits", seen);
		assert_true(test_now_ms() < ends_at);
	}
	assert_int_equal(crowd.granted, MANY);
	WAIT_NODES(0, 0);
	end();
}

static void closing_a_client_ends_fifty_waiters(void **state)
{
	struct crowd crowd = {0};
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	crowd.permits = pair.theirs;
	take(pair.mine, 1, 0, &id);
	for (int i = 0; i < MANY; i++)
		ASSERT_OK(hf_permits_acquire_async(pair.theirs, 1, NULL, on_taken, &crowd));
	WAIT_UNTIL(gates() == MANY, 10000);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_client_close(pair.two));
	pair.two = NULL;
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 6000);
	assert_int_equal(crowd.over, MANY);
	assert_int_equal(crowd.closed, MANY);
	WAIT_NODES(0, 1);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_HELD);
	ASSERT_OK(give(pair.mine, id));
	end();
}

/* ---- several at once ---- */

static void several_are_taken_one_by_one_and_all_or_none(void **state)
{
	hf_permit_id mine[3], theirs;

	(void)state;
	begin(3, 0);
	take(pair.theirs, 1, 0, &theirs);
	struct waiter *call = WAITER(.permits = pair.mine, .n = 3, .wait_ms = 1000);
	/* Two of them exist, and the third is one too many. */
	WAIT_NODES(1, 4);
	waiter_expect(call, HF_ETIMEDOUT);
	ASSERT_BETWEEN(call->ended_at - call->started_at, 995, 3000);
	WAIT_NODES(0, 1);
	assert_int_equal(hf_permits_state(pair.mine, call->ids[0]), HF_FREE);
	waiter_free(call);
	assert_int_equal(stats_of(pair.one).held, 0);
	ASSERT_RC(try_take(pair.mine, 3, HF_NOWAIT), HF_EBUSY);
	WAIT_NODES(0, 1);
	ASSERT_OK(give(pair.theirs, theirs));
	take(pair.mine, 3, 0, mine);
	assert_int_equal(leases(), 3);
	assert_int_equal(stats_of(pair.one).held, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hf_permits_state(pair.mine, mine[i]), HF_HELD);
	/* They are each for itself from now on. */
	ASSERT_OK(give(pair.mine, mine[1]));
	assert_int_equal(leases(), 2);
	assert_int_equal(hf_permits_state(pair.mine, mine[1]), HF_FREE);
	assert_int_equal(hf_permits_state(pair.mine, mine[2]), HF_HELD);
	ASSERT_OK(give(pair.mine, mine[0]));
	ASSERT_OK(give(pair.mine, mine[2]));
	assert_int_equal(leases(), 0);
	assert_int_equal(stats_of(pair.one).held, 0);
	end();
}

#define HEAP 300

static void hundreds_are_taken_and_given_back_in_one_call(void **state)
{
	hf_permit_id *ids = check_alloc(HEAP * sizeof(*ids));

	(void)state;
	command_timeout_ms = 20000; /* a busy machine takes some seconds to remove 300 nodes */
	begin(HEAP, 0);
	take(pair.mine, HEAP, 0, ids);
	assert_int_equal(leases(), HEAP);
	assert_int_equal(acquired(pair.theirs), HEAP);
	assert_int_equal(stats_of(pair.one).grants, HEAP);
	ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EBUSY);
	ASSERT_OK(give_all(pair.mine, ids, HEAP));
	WAIT_NODES(0, 0);
	assert_int_equal(stats_of(pair.one).losses, 0);
	free(ids);
	end();
}

static void waiter_for_several_takes_them_as_they_come(void **state)
{
	hf_permit_id ids[3];

	(void)state;
	begin(3, 0);
	take(pair.mine, 3, 0, ids);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 2);
	WAIT_NODES(1, 4);
	ASSERT_OK(give(pair.mine, ids[0]));
	WAIT_NODES(1, 4);
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	assert_false(waiter_is_over(call));
	ASSERT_OK(give(pair.mine, ids[1]));
	waiter_expect(call, 0);
	WAIT_NODES(0, 3);
	assert_string_not_equal(call->ids[0], call->ids[1]);
	call_give(call);
	ASSERT_OK(give(pair.mine, ids[2]));
	end();
}

static void more_than_there_are_is_refused(void **state)
{
	(void)state;
	begin(2, 0);
	ASSERT_RC(try_take(pair.mine, 3, 0), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "permits: 3 requested, but there are only 2");
	WAIT_NODES(0, 0);
	ASSERT_RC(try_take(pair.mine, 3, HF_NOWAIT), HF_EINVAL);
	WAIT_NODES(0, 0);
	assert_int_equal(stats_of(pair.one).held, 0);
	end();
}

static void missing_total_is_an_error(void **state)
{
	hf_permit_id id;

	(void)state;
	begin(0, 0);
	ASSERT_RC(try_take(pair.mine, 1, 0), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "hf_permits_set");
	WAIT_NODES(0, 0);
	/* A total that one client has set is not known to another. */
	ASSERT_OK(hf_permits_set(pair.theirs, 1));
	ASSERT_RC(try_take(pair.mine, 1, HF_NOWAIT), HF_EINVAL);
	take(pair.theirs, 1, 0, &id);
	/* Nor does it wait for a turn that is of no use. */
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 2);
	ASSERT_RC(try_take(pair.mine, 1, SOON_MS), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "hf_permits_set");
	ASSERT_OK(give(pair.theirs, id));
	call_give(call);
	end();
}

/* ---- giving back ---- */

static void permit_is_given_back_once_and_by_its_client_only(void **state)
{
	hf_permit_id ids[2];

	(void)state;
	begin(3, 0);
	take(pair.mine, 2, 0, ids);
	ASSERT_RC(give(pair.theirs, ids[0]), HF_ENOTHELD);
	assert_int_equal(leases(), 2);
	ASSERT_OK(give(pair.mine, ids[0]));
	assert_int_equal(leases(), 1);
	ASSERT_RC(give(pair.mine, ids[0]), HF_ENOTHELD);
	ASSERT_RC(give(pair.mine, UNKNOWN), HF_ENOTHELD);
	ASSERT_RC(give(pair.mine, "not by any means 32 hex digits ..."), HF_EINVAL);
	assert_int_equal(leases(), 1);
	assert_int_equal(hf_permits_state(pair.mine, ids[1]), HF_HELD);
	ASSERT_OK(give(pair.mine, ids[1]));
	assert_int_equal(stats_of(pair.one).losses, 0);
	assert_int_equal(stats_of(pair.one).releases, 2);
	end();
}

static void release_with_a_wrong_one_gives_the_others_back(void **state)
{
	hf_permit_id ids[3];

	(void)state;
	begin(2, 0);
	take(pair.mine, 2, 0, ids);
	snprintf(ids[2], sizeof ids[2], "%s", UNKNOWN);
	ASSERT_RC(give_all(pair.mine, ids, 3), HF_ENOTHELD);
	assert_int_equal(hf_permits_remaining(pair.mine, ids[0]), 0);
	WAIT_NODES(0, 0);
	assert_int_equal(stats_of(pair.one).losses, 0);
	end();
}

/* ---- states and ends ---- */

static void permit_without_a_lease_lasts_as_the_session_does(void **state)
{
	int64_t lease = 0, left = 0;
	hf_permit_id ids[2];

	(void)state;
	begin(2, 4000);
	ASSERT_OK(hf_client_lease(pair.one, &lease));
	take(pair.mine, 2, 0, ids);
	ASSERT_BETWEEN(hf_permits_remaining(pair.mine, ids[0]), 1, lease);
	WAIT_UNTIL(stats_of(pair.one).renewals >= 8, 10000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hf_permits_state(pair.mine, ids[i]), HF_HELD);
		ASSERT_OK(hf_permits_lease(pair.mine, ids[i], &left));
		assert_int_equal(left, -1);
	}
	ASSERT_RC(hf_permits_lease(pair.mine, UNKNOWN, &left), HF_ENOTHELD);
	ASSERT_RC(hf_permits_lease(pair.theirs, ids[0], &left), HF_ENOTHELD);
	assert_int_equal(hf_permits_state(pair.theirs, ids[0]), HF_FREE);
	ASSERT_OK(give_all(pair.mine, ids, 2));
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_FREE);
	assert_int_equal(hf_permits_remaining(pair.mine, ids[0]), 0);
	ASSERT_RC(hf_permits_lease(pair.mine, ids[0], &left), HF_ENOTHELD);
	assert_int_equal(seen_count(&pair.seen, HF_LOST), 0);
	end();
}

static void fixed_lease_expires_here_and_takes_its_node_along(void **state)
{
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	long long before = test_now_ms();
	take(pair.mine, 1, 2000, &id);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 2);
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 1, SOON_MS);
	ASSERT_BETWEEN(seen_at(&pair.seen, HF_LOST) - before, 1900, 3500);
	assert_int_equal(seen_count(&pair.seen, HF_AT_RISK), 1);
	assert_true(seen_at(&pair.seen, HF_AT_RISK) <= seen_at(&pair.seen, HF_LOST));
	assert_string_equal(pair.seen.name, "orders");
	assert_string_equal(pair.seen.owner, id);
	ASSERT_CONTAINS(pair.seen.detail, "lost");
	assert_int_equal(hf_permits_state(pair.mine, id), HF_LOST);
	assert_int_equal(hf_permits_remaining(pair.mine, id), 0);
	waiter_expect(call, 0);
	WAIT_NODES(0, 1);
	ASSERT_RC(hf_permits_extend(pair.mine, id, 1000), HF_ELOST);
	ASSERT_RC(give(pair.mine, id), HF_ELOST);
	ASSERT_RC(give(pair.mine, id), HF_ENOTHELD);
	call_give(call);
	assert_int_equal(leases(), 0);
	end();
}

static void fixed_lease_of_several_expires_for_each_of_them(void **state)
{
	hf_permit_id ids[3];

	(void)state;
	begin(3, 2000);
	/* Long enough that the session is renewed meanwhile. */
	take(pair.mine, 3, 1500, ids);
	WAIT_UNTIL(stats_of(pair.one).renewals > 0, SOON_MS);
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 3, SOON_MS);
	WAIT_NODES(0, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hf_permits_state(pair.mine, ids[i]), HF_LOST);
	end();
}

static void extend_makes_it_longer_and_shorter(void **state)
{
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 2000, &id);
	ASSERT_RC(hf_permits_extend(pair.theirs, id, 5000), HF_ENOTHELD);
	ASSERT_RC(hf_permits_extend(pair.mine, UNKNOWN, 5000), HF_ENOTHELD);
	long long before = test_now_ms();
	ASSERT_OK(hf_permits_extend(pair.mine, id, 8000));
	WAIT_UNTIL(hf_permits_remaining(pair.mine, id) > 4000, SOON_MS);
	WAIT_UNTIL(test_now_ms() - before > 2300, 3000);
	assert_int_equal(hf_permits_state(pair.mine, id), HF_HELD);
	assert_int_equal(leases(), 1);
	before = test_now_ms();
	ASSERT_OK(hf_permits_extend(pair.mine, id, 600));
	ASSERT_BETWEEN(hf_permits_remaining(pair.mine, id), 0, 600);
	WAIT_UNTIL(hf_permits_state(pair.mine, id) == HF_LOST, SOON_MS);
	ASSERT_BETWEEN(test_now_ms() - before, 500, 2000);
	WAIT_NODES(0, 0);
	end();
}

static void extended_permit_expires_although_it_had_no_lease(void **state)
{
	hf_permit_id ids[2];

	(void)state;
	begin(2, 0);
	take(pair.mine, 2, 0, ids);
	ASSERT_OK(hf_permits_extend(pair.mine, ids[1], 700));
	WAIT_UNTIL(hf_permits_state(pair.mine, ids[1]) == HF_LOST, SOON_MS);
	WAIT_NODES(0, 1);
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_HELD);
	ASSERT_OK(give(pair.mine, ids[0]));
	end();
}

/* ---- calls that leave nothing ---- */

/* First at the leases, then after another waiter at the gate. */
static void failed_attempt_leaves_nothing(void **state)
{
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 0, &id);
	struct waiter *waiter = NULL;
	for (int i = 0; i < 2; i++) {
		ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EBUSY);
		WAIT_NODES(i, 1 + i);
		long long started_at = test_now_ms();
		ASSERT_TIMES_OUT(500, try_take(pair.theirs, 1, within_ms));
		ASSERT_BETWEEN(test_now_ms() - started_at, 495, 2500);
		WAIT_NODES(i, 1 + i);
		hf_cancel *cancel = new_cancel();
		struct waiter *call = WAITER(.permits = pair.theirs, .n = 1, .cancel = cancel);
		WAIT_NODES(1 + i, 2);
		hf_cancel_fire(cancel);
		waiter_expect(call, HF_ECANCELLED);
		WAIT_NODES(i, 1 + i);
		waiter_free(call);
		hf_cancel_free(cancel);
		if (i == 0) {
			waiter = WAITER(.permits = pair.theirs, .n = 1);
			WAIT_NODES(1, 2);
		}
	}
	assert_int_equal(hf_permits_state(pair.mine, id), HF_HELD);
	ASSERT_OK(give(pair.mine, id));
	call_give(waiter);
	WAIT_NODES(0, 0);
	end();
}

static void waits_that_time_out_do_not_pile_up_watches(void **state)
{
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 0, &id);
	for (int i = 0; i < 8; i++)
		ASSERT_TIMES_OUT(400, try_take(pair.theirs, 1, within_ms));
	assert_true(test_zookeeper_value(zk_server, 0, "zk_watch_count") <= 4);
	uint64_t wakeups = stats_of(pair.two).wakeups;
	ASSERT_OK(give(pair.mine, id));
	ASSERT_OK(hf_client_ping(pair.two, NULL));
	assert_int_equal(stats_of(pair.two).wakeups, wakeups);
	end();
}

/* The first leaves, and the second must learn that it is at the gate now. */
static void waiter_at_the_leases_that_leaves_lets_the_next_one_in(void **state)
{
	hf_cancel *cancel = new_cancel();
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 0, &id);
	struct waiter *first = WAITER(.permits = pair.theirs, .n = 1, .cancel = cancel);
	WAIT_NODES(1, 2);
	struct waiter *second = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(2, 2);
	hf_cancel_fire(cancel);
	waiter_expect(first, HF_ECANCELLED);
	WAIT_NODES(1, 2);
	ASSERT_OK(give(pair.mine, id));
	call_give(second);
	waiter_free(first);
	hf_cancel_free(cancel);
	end();
}

/* ---- others in the folders ---- */

static void foreign_child_takes_a_permit(void **state)
{
	hf_permit_id ids[2];

	(void)state;
	begin(2, 0);
	take(pair.mine, 1, 0, &ids[0]);
	assert_int_equal(
		zk_raw_create(zk_eye, LEASES "/stranger", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	assert_int_equal(available(pair.theirs), 0);
	assert_int_equal(acquired(pair.theirs), 2);
	ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EBUSY);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 3);
	assert_int_equal(zk_raw_delete(zk_eye, LEASES "/stranger", -1), 0);
	call_give(call);
	ASSERT_OK(give(pair.mine, ids[0]));
	end();
}

static void stranger_at_the_gate_holds_nothing(void **state)
{
	hf_permit_id id;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 0, &id);
	ASSERT_OK(give(pair.mine, id));
	assert_int_equal(zk_raw_create(zk_eye, GATES "/0", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	take(pair.theirs, 1, 0, &id);
	WAIT_NODES(1, 1);
	ASSERT_OK(give(pair.theirs, id));
	end();
}

static void gate_made_by_hand_is_waited_for(void **state)
{
	hf_permit_id id;
	char *path = NULL;

	(void)state;
	begin(1, 0);
	take(pair.mine, 1, 0, &id);
	ASSERT_OK(give(pair.mine, id));
	assert_int_equal(
		zk_raw_create(zk_eye, GATES "/lock-", "", ZK_RAW_EPHEMERAL_SEQUENTIAL, &path, NULL),
		0);
	ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EBUSY);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(2, 0);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	call_give(call);
	free(path);
	end();
}

/* ---- asynchronous forms ---- */

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct done *taken = check_alloc(sizeof(*taken));
	hf_permit_id ids[2];

	(void)state;
	begin(0, 0);
	EXPECT_DONE(hf_permits_try_set_async(pair.mine, 3, DONE), 0, 1);
	EXPECT_DONE(hf_permits_try_set_async(pair.mine, 9, DONE), 0, 0);
	EXPECT_DONE(hf_permits_total_async(pair.mine, DONE), 0, 3);
	ASSERT_OK(hf_permits_acquire_async(pair.mine, 2, HF_PERMITS(.wait_ms = SOON_MS), note_done,
	                                   taken));
	WAIT_UNTIL(atomic_load(&taken->calls) == 1, SOON_MS);
	assert_int_equal(taken->result, 0);
	assert_int_equal(sscanf(taken->text, "%32s %32s", ids[0], ids[1]), 2);
	assert_int_equal(hf_permits_state(pair.mine, ids[0]), HF_HELD);
	assert_int_equal(hf_permits_state(pair.mine, ids[1]), HF_HELD);
	assert_int_equal(leases(), 2);
	EXPECT_DONE(hf_permits_available_async(pair.mine, DONE), 0, 1);
	EXPECT_DONE(hf_permits_acquired_async(pair.mine, DONE), 0, 2);
	EXPECT_DONE(hf_permits_lease_async(pair.mine, ids[0], DONE), 0, -1);
	EXPECT_DONE(hf_permits_lease_async(pair.mine, UNKNOWN, DONE), HF_ENOTHELD, 0);
	EXPECT_DONE(hf_permits_extend_async(pair.mine, ids[0], 20000, DONE), 0, 0);
	EXPECT_DONE(hf_permits_release_async(pair.mine, (const hf_permit_id *)ids, 2, DONE), 0, 0);
	EXPECT_DONE(hf_permits_release_async(pair.mine, (const hf_permit_id *)ids, 1, DONE),
	            HF_ENOTHELD, 0);
	EXPECT_DONE(hf_permits_add_async(pair.mine, 2, DONE), 0, 1);
	EXPECT_DONE(hf_permits_total_async(pair.mine, DONE), 0, 5);
	EXPECT_DONE(hf_permits_set_async(pair.mine, 1, DONE), 0, 1);
	EXPECT_DONE(hf_permits_total_async(pair.mine, DONE), 0, 1);
	assert_int_equal(leases(), 0);
	free(taken);
	end();
}

/* ---- many at once ---- */

#define THREADS 6
#define ROUNDS  25

struct worker {
	pthread_t thread;
	hf_permits *permits;
	int n;
	int got;
	char *wrong;
};

static atomic_int inside, most_inside;

static bool were_two_inside(void *arg)
{
	(void)arg;
	return atomic_load(&most_inside) >= 2;
}

static void *take_and_give(void *arg)
{
	struct worker *worker = arg;
	hf_permit_id ids[2];
	for (int i = 0; i < ROUNDS && !worker->wrong; i++) {
		/* Each may have one of the two that it wants, so some give up. */
		int64_t wait_ms = worker->n > 1 ? 200 : 0;
		int rc = hf_permits_acquire(worker->permits, worker->n,
		                            HF_PERMITS(.wait_ms = wait_ms), ids);
		/* A server that is slow today has not even answered in time. */
		if ((rc == HF_ETIMEDOUT || rc == HF_EUNKNOWN) && worker->n > 1)
			continue;
		int now = atomic_fetch_add(&inside, worker->n) + worker->n;
		if (now > atomic_load(&most_inside))
			atomic_store(&most_inside, now);
		if (i % 4 == 0) {
			test_pause();
			(void)wait_until(were_two_inside, NULL, 200); /* for a slow machine */
		}
		atomic_fetch_sub(&inside, worker->n);
		worker->got++;
		if (!rc)
			rc = give_all(worker->permits, ids, worker->n);
		if (rc)
			worker->wrong = check_format("%d (%s)", rc, hf_error_detail());
	}
	return NULL;
}

static void threads_of_two_clients_never_have_more_than_there_are(void **state)
{
	struct worker workers[2 * THREADS] = {0};

	(void)state;
	begin(3, 0);
	atomic_store(&inside, 0);
	atomic_store(&most_inside, 0);
	for (int i = 0; i < 2 * THREADS; i++) {
		workers[i].permits = i % 2 ? pair.mine : pair.theirs;
		workers[i].n = i < 2 ? 2 : 1;
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, take_and_give, &workers[i]), 0);
	}
	for (int i = 0; i < 2 * THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		if (workers[i].wrong)
			fail_msg("%s", workers[i].wrong);
		if (workers[i].n == 1)
			assert_int_equal(workers[i].got, ROUNDS);
	}
	ASSERT_BETWEEN(atomic_load(&most_inside), 2, 3);
	WAIT_NODES(0, 0);
	assert_int_equal(stats_of(pair.one).losses, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PERMITS_STORY(permit_is_a_lease_as_curator_makes_it),
		PERMITS_STORY(every_node_has_a_guid_of_its_own),
		PERMITS_STORY(description_is_the_data_of_the_lease),
		PERMITS_STORY(as_many_as_the_total_are_held_at_once),
		PERMITS_STORY(waiters_of_two_clients_are_served_in_order),
		PERMITS_STORY(one_lease_at_most_is_too_many_while_fifty_wait),
		PERMITS_STORY(closing_a_client_ends_fifty_waiters),
		PERMITS_STORY(several_are_taken_one_by_one_and_all_or_none),
		PERMITS_STORY(hundreds_are_taken_and_given_back_in_one_call),
		PERMITS_STORY(waiter_for_several_takes_them_as_they_come),
		PERMITS_STORY(more_than_there_are_is_refused),
		PERMITS_STORY(missing_total_is_an_error),
		PERMITS_STORY(permit_is_given_back_once_and_by_its_client_only),
		PERMITS_STORY(release_with_a_wrong_one_gives_the_others_back),
		PERMITS_STORY(permit_without_a_lease_lasts_as_the_session_does),
		PERMITS_STORY(fixed_lease_expires_here_and_takes_its_node_along),
		PERMITS_STORY(fixed_lease_of_several_expires_for_each_of_them),
		PERMITS_STORY(extend_makes_it_longer_and_shorter),
		PERMITS_STORY(extended_permit_expires_although_it_had_no_lease),
		PERMITS_STORY(failed_attempt_leaves_nothing),
		PERMITS_STORY(waits_that_time_out_do_not_pile_up_watches),
		PERMITS_STORY(waiter_at_the_leases_that_leaves_lets_the_next_one_in),
		PERMITS_STORY(foreign_child_takes_a_permit),
		PERMITS_STORY(stranger_at_the_gate_holds_nothing),
		PERMITS_STORY(gate_made_by_hand_is_waited_for),
		PERMITS_STORY(every_verb_has_an_asynchronous_form),
		PERMITS_STORY(threads_of_two_clients_never_have_more_than_there_are),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
