/*
 * Permits on ZooKeeper while sessions end, nodes are deleted, processes killed and servers
 * restarted.
 */
#include "live/zk_permits_faults.h"

#include <sys/prctl.h>

static void delete_newest(const char *folder)
{
	char path[700];
	newest_child(zk_eye, folder, path, sizeof path);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
}

/* ---- sessions that end ---- */

static void session_expired_while_held_is_reported_as_a_loss(void **state)
{
	hf_permit_id ids[2], theirs;

	(void)state;
	begin_proxied(NULL, 2, 4000);
	take(pair.mine, 2, 0, ids);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 3);
	char path[700];
	struct zk_raw_stat stat;
	int64_t session = first_owner(zk_eye, LEASES);
	zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
	WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 2, ENDED_MS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hf_permits_state(pair.mine, ids[i]), HF_LOST);
		assert_int_equal(hf_permits_remaining(pair.mine, ids[i]), 0);
	}
	waiter_expect(call, 0);
	ASSERT_RC(give(pair.mine, ids[0]), HF_ELOST);
	ASSERT_RC(give(pair.mine, ids[0]), HF_ENOTHELD);
	ASSERT_RC(hf_permits_extend(pair.mine, ids[1], 5000), HF_ELOST);
	/* The next session continues, and is kept alive. */
	take(pair.mine, 1, 0, &theirs);
	newest_child(zk_eye, LEASES, path, sizeof path);
	assert_int_equal(zk_raw_exists(zk_eye, path, &stat), 0);
	assert_true(stat.owner != session);
	uint64_t renewals = stats_of(pair.one).renewals;
	WAIT_UNTIL(stats_of(pair.one).renewals >= renewals + 3, 10000);
	assert_int_equal(hf_permits_state(pair.mine, theirs), HF_HELD);
	ASSERT_OK(give(pair.mine, theirs));
	call_give(call);
	WAIT_NODES(0, 0);
	end();
}

/* The first of two waiters is at the leases, the second at the gate. */
static void session_expired_while_waiting_costs_only_the_place(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_proxied(NULL, 1, 6000);
	take(pair.theirs, 1, 0, &id);
	struct waiter *first = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(1, 2);
	struct waiter *second = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(2, 2);
	for (int i = 0; i < 2; i++) {
		int64_t session = first_owner(zk_eye, GATES);
		zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
		WAIT_UNTIL(first_owner(zk_eye, GATES) != session, 10000);
		WAIT_NODES(2, 2);
		assert_false(waiter_is_over(first));
		assert_false(waiter_is_over(second));
	}
	ASSERT_OK(give(pair.theirs, id));
	WAIT_UNTIL(waiter_is_over(first) || waiter_is_over(second), SOON_MS);
	struct waiter *winner = waiter_is_over(first) ? first : second;
	WAIT_NODES(1, 2);
	call_give(winner);
	call_give(winner == first ? second : first);
	WAIT_NODES(0, 0);
	end();
}

/* It holds one of two permits already, which goes with the session. */
static void session_expired_between_two_permits_begins_again(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_proxied(NULL, 2, 6000);
	take(pair.theirs, 1, 0, &id);
	struct waiter *call = WAITER(.permits = pair.mine, .n = 2);
	WAIT_NODES(1, 3);
	int64_t session = first_owner(zk_eye, GATES);
	zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
	WAIT_UNTIL(first_owner(zk_eye, GATES) != session, 10000);
	WAIT_NODES(1, 3);
	assert_false(waiter_is_over(call));
	ASSERT_OK(give(pair.theirs, id));
	waiter_expect(call, 0);
	WAIT_NODES(0, 2);
	assert_int_equal(hf_permits_state(pair.mine, call->ids[0]), HF_HELD);
	assert_int_equal(hf_permits_state(pair.mine, call->ids[1]), HF_HELD);
	call_give(call);
	WAIT_NODES(0, 0);
	end();
}

/* ---- nodes that are deleted by hand ---- */

static void lease_deleted_by_somebody_is_lost(void **state)
{
	hf_permit_id ids[3];

	(void)state;
	begin_proxied(NULL, 3, 30000);
	for (int i = 0; i < 3; i++)
		take(pair.mine, 1, 0, &ids[i]);
	/* The last one at once, the first after it is watched. */
	for (int i = 2; i >= 0; i--) {
		assert_int_equal(hf_permits_state(pair.mine, ids[i]), HF_HELD);
		delete_newest(LEASES);
		WAIT_UNTIL(hf_permits_state(pair.mine, ids[i]) == HF_LOST, 2000);
		WAIT_UNTIL(seen_count(&pair.seen, HF_LOST) == 3 - i, 1000);
		assert_string_equal(pair.seen.owner, ids[i]);
		ASSERT_RC(give(pair.mine, ids[i]), HF_ELOST);
	}
	assert_int_equal(available(pair.mine), 3);
	end();
}

static void deleted_lease_in_a_release_of_several_is_reported(void **state)
{
	hf_permit_id ids[3];

	(void)state;
	begin_proxied(NULL, 3, 30000);
	take(pair.mine, 3, 0, ids);
	delete_newest(LEASES);
	WAIT_UNTIL(hf_permits_state(pair.mine, ids[2]) == HF_LOST, 2000);
	ASSERT_RC(give_all(pair.mine, ids, 3), HF_ELOST);
	WAIT_NODES(0, 0);
	assert_int_equal(stats_of(pair.one).losses, 1);
	end();
}

static void lease_of_a_waiter_deleted_by_somebody_is_made_again(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_proxied(NULL, 1, 30000);
	take(pair.theirs, 1, 0, &id);
	struct waiter *call = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(1, 2);
	for (int i = 0; i < 3; i++) {
		char before[700], after[700];
		newest_child(zk_eye, LEASES, before, sizeof before);
		assert_int_equal(zk_raw_delete(zk_eye, before, -1), 0);
		WAIT_NODES(1, 2);
		newest_child(zk_eye, LEASES, after, sizeof after);
		assert_string_not_equal(before, after);
		assert_false(waiter_is_over(call));
	}
	ASSERT_OK(give(pair.theirs, id));
	waiter_expect(call, 0);
	WAIT_NODES(0, 1);
	call_give(call);
	WAIT_NODES(0, 0);
	end();
}

static void gate_deleted_by_somebody_lets_nobody_in_too_many(void **state)
{
	hf_cancel *cancel = new_cancel();
	hf_permit_id id;

	(void)state;
	begin_proxied(NULL, 1, 30000);
	take(pair.theirs, 1, 0, &id);
	struct waiter *first = WAITER(.permits = pair.mine, .n = 1, .cancel = cancel);
	WAIT_NODES(1, 2);
	struct waiter *second = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(2, 2);
	/* That of the waiter at the gate: it queues again when its turn would have been. */
	delete_newest(GATES);
	WAIT_NODES(1, 2);
	/* That of the waiter at the leases: the next one moves up. */
	delete_newest(GATES);
	WAIT_NODES(1, 3);
	assert_false(waiter_is_over(first));
	assert_false(waiter_is_over(second));
	ASSERT_OK(give(pair.theirs, id));
	/*
	 * Both count as long as both exist, so neither holds the permit until one of them leaves.
	 */
	WAIT_NODES(1, 2);
	ASSERT_OK(hf_client_ping(pair.one, NULL));
	assert_false(waiter_is_over(first) || waiter_is_over(second));
	hf_cancel_fire(cancel);
	waiter_expect(first, HF_ECANCELLED);
	waiter_expect(second, 0);
	WAIT_NODES(0, 1);
	call_give(second);
	waiter_free(first);
	hf_cancel_free(cancel);
	end();
}

/* ---- processes that die ---- */

/* Holds a permit, or waits for one, until it is killed. */
static pid_t start_process(int total)
{
	hf_client *client;
	hf_permits *permits;
	hf_permit_id id;
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hf_client_open(test_zookeeper_url(zk_server, 0), HF_CLIENT(.session_ms = 2000),
	                   &client) ||
	    hf_permits_open(client, "orders", &permits) || hf_permits_set(permits, total) ||
	    hf_permits_acquire(permits, 1, NULL, &id))
		_exit(1);
	for (;;)
		pause();
}

static void killed_process_gives_up_its_permit_and_its_place(void **state)
{
	(void)state;
	zk_server = test_zookeeper_start(NULL);
	zk_eye = zk_raw_open(test_zookeeper_host(zk_server, 0), 0);
	pid_t holder = start_process(1);
	WAIT_NODES(0, 1);
	pid_t waiter = start_process(1);
	WAIT_NODES(1, 2);
	const char *url = test_zookeeper_url(zk_server, 0);
	begin_at(url, url, 1, 0);
	struct waiter *call = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(2, 2);
	kill_child(waiter);
	/* Its session ends, and ours is the one at the leases. */
	WAIT_UNTIL(gates() == 1 && leases() == 2, 10000);
	assert_false(waiter_is_over(call));
	kill_child(holder);
	waiter_expect(call, 0);
	WAIT_NODES(0, 1);
	call_give(call);
	end();
}

/* ---- servers that stop, folders that are reaped ---- */

static void server_that_is_restarted_keeps_permit_and_waiter(void **state)
{
	hf_permit_id id;

	(void)state;
	start_all(NULL);
	begin_at(proxy_url(proxy), proxy_url(proxy), 1, 40000);
	take(pair.mine, 1, 0, &id);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 2);
	zk_raw_drop(zk_eye);
	zk_eye = NULL;
	/*
	 * A client of a server that has just started may wait for most of a session to be answered.
	 */
	proxy_refuse(proxy, true);
	test_zookeeper_restart(zk_server, 0);
	zk_eye = zk_raw_open(test_zookeeper_host(zk_server, 0), 0);
	proxy_refuse(proxy, false);
	WAIT_UNTIL(stats_of(pair.one).reconnects >= 1 && stats_of(pair.two).reconnects >= 1, 22000);
	WAIT_UNTIL(hf_permits_state(pair.mine, id) == HF_HELD, SOON_MS);
	WAIT_NODES(1, 2);
	assert_false(waiter_is_over(call));
	ASSERT_OK(give(pair.mine, id));
	call_give(call);
	end();
}

static void empty_folders_are_reaped_and_made_again(void **state)
{
	int reaped = 0;
	hf_permit_id held, id;

	(void)state;
	begin_proxied(&(struct test_zookeeper_options){.reaper_ms = 100}, 2, 10000);
	take(pair.mine, 1, 0, &held);
	for (int i = 0; i < 3; i++) {
		/* That of the gates is nearly always empty, and the other one in use. */
		WAIT_UNTIL(count_children(zk_eye, GATES) < 0, 10000);
		reaped++;
		take(pair.theirs, 1, 0, &id);
		assert_int_equal(leases(), 2);
		ASSERT_RC(try_take(pair.theirs, 1, HF_NOWAIT), HF_EBUSY);
		ASSERT_OK(give(pair.theirs, id));
	}
	ASSERT_OK(give(pair.mine, held));
	assert_int_equal(reaped, 3);
	WAIT_UNTIL(zk_raw_exists(zk_eye, "/orders", NULL) == ZK_RAW_NO_NODE, 10000);
	take(pair.mine, 1, 0, &id);
	assert_int_equal(leases(), 1);
	ASSERT_OK(give(pair.mine, id));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAULT_STORY(killed_process_gives_up_its_permit_and_its_place),
		FAULT_STORY(session_expired_while_held_is_reported_as_a_loss),
		FAULT_STORY(session_expired_while_waiting_costs_only_the_place),
		FAULT_STORY(session_expired_between_two_permits_begins_again),
		FAULT_STORY(lease_deleted_by_somebody_is_lost),
		FAULT_STORY(deleted_lease_in_a_release_of_several_is_reported),
		FAULT_STORY(lease_of_a_waiter_deleted_by_somebody_is_made_again),
		FAULT_STORY(gate_deleted_by_somebody_lets_nobody_in_too_many),
		FAULT_STORY(server_that_is_restarted_keeps_permit_and_waiter),
		FAULT_STORY(empty_folders_are_reaped_and_made_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
