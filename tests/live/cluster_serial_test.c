/* Masters of a cluster that die or are replaced. */
#include "live/cluster_crowd.h"
#include "live/cluster_load.h"
#include "live/cluster_pair.h"

/* ---- masters that are killed ---- */

/*
 * The hold was replicated, so the new master knows it. Holds of other masters are not even at risk,
 * although all nodes refuse to work until the new master is elected.
 */
static void a_killed_master_leaves_other_masters_alone(void **state)
{
	int victim = test_cluster_master(cluster, 0);
	struct pair struck, spared;
	(void)state;
	begin_pair(&struck, victim, "struck-", 0);
	begin_pair(&spared, test_cluster_master(cluster, 1), "spared-", 9000);
	test_cluster_sync(cluster, victim, 1);
	test_server_kill(cluster->node[victim]);
	int next = test_cluster_next_owner(cluster, test_slot(struck.name), victim);
	WAIT_UNTIL(is_awaited(&matches[REENTRANT], struck.name, next), SOON_MS);
	assert_int_equal(stats_of(spared.other->client).reconnects, 0);
	assert_int_equal(stats_of(spared.holder->client).losses, 0);
	end_pair(&spared);
	end_pair(&struck);
	test_cluster_bring_back(cluster, victim);
}

/*
 * Everything that can be waited for is found again at the new master, and its waiters are woken
 * there.
 */
static void all_kinds_survive_a_killed_master(void **state)
{
	int victim = test_cluster_master(cluster, 1);
	char *name = test_cluster_name(cluster, victim, "survivors-");
	struct crowd *crowd = begin_crowd(test_slot(name), 0);
	(void)state;
	await_all(crowd);
	test_cluster_sync(cluster, victim, 1);
	test_server_kill(cluster->node[victim]);
	int next = test_cluster_next_owner(cluster, crowd->slot, victim);
	WAIT_UNTIL(is_awaited(&matches[REENTRANT], crowd->name[REENTRANT], next), SOON_MS);
	release_locks(crowd, 1000);
	release_synchronizers(crowd, 1000);
	test_cluster_bring_back(cluster, victim);
	end_crowd(crowd);
	free(name);
}

/* One client has holds on all masters, and loses one of these. */
static void one_client_keeps_its_other_holds(void **state)
{
	int victim = test_cluster_master(cluster, 1);
	struct side *side = open_side("unused", 9000);
	hf_lock *lock[MASTERS];
	char *name[MASTERS];
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		name[i] = name_on(i, "spread-");
		lock[i] = open_lock(side->client, name[i]);
		/* Without renewals the hold on the victim is long enough for the election. */
		ASSERT_OK(hf_lock_acquire(lock[i], i == 1 ? HF_ACQUIRE(.lease_ms = 60000) : NULL));
	}
	test_cluster_sync(cluster, victim, 1);
	test_server_kill(cluster->node[victim]);
	long long killed_at = test_now_ms();
	test_cluster_next_owner(cluster, test_slot(name[1]), victim);
	while (test_now_ms() - killed_at < 6000)
		test_pause();
	for (int i = 0; i < MASTERS; i++) {
		assert_int_equal(hf_lock_state(lock[i], NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(lock[i]));
		hf_lock_close(lock[i]);
		free(name[i]);
	}
	assert_int_equal(seen_count(&side->seen, HF_AT_RISK), 0);
	assert_int_equal(seen_count(&side->seen, HF_LOST), 0);
	close_side(side);
	test_cluster_bring_back(cluster, victim);
}

/* The replica never had the hold: it is reported lost, and a waiter gets the lock. */
static void a_hold_that_was_not_replicated_is_reported_lost(void **state)
{
	int victim = test_cluster_master(cluster, 2);
	int replica = test_cluster_replica(cluster, victim);
	char *name = test_cluster_name(cluster, victim, "unknown-there-");
	struct side *holder = open_side(name, 0);
	struct side *other = open_side(name, 0);
	(void)state;
	test_server_freeze(cluster->node[replica]);
	/* What is sent to a stopped replica would still be in its socket later. */
	struct raw *raw = test_cluster_connect(cluster, victim);
	assert_int_equal(raw_integer(raw, "CLIENT", "KILL", "TYPE", "replica", NULL), 1);
	raw_close(raw);
	ASSERT_OK(hf_lock_acquire(holder->lock, NULL));
	struct waiter *waiter = waiter_start(other->lock, HF_ACQUIRE(.wait_ms = 60000));
	WAIT_UNTIL(is_awaited(&matches[REENTRANT], name, victim), SOON_MS);
	test_server_kill(cluster->node[victim]);
	test_server_thaw(cluster->node[replica]);
	assert_int_equal(test_cluster_next_owner(cluster, test_slot(name), victim), replica);
	WAIT_UNTIL(seen_count(&holder->seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(holder->lock, NULL), HF_LOST);
	/* The waiter asks the new master without being woken. */
	waiter_finish(waiter);
	close_side(holder);
	close_side(other);
	free(name);
	test_cluster_bring_back(cluster, victim);
}

/* ---- masters that are replaced with their consent ---- */

static void waiters_follow_a_master_that_is_replaced(void **state)
{
	int before = test_cluster_master(cluster, 0);
	struct pair pair;
	(void)state;
	begin_pair(&pair, before, "replaced-", 0);
	test_cluster_promote(cluster, test_cluster_replica(cluster, before));
	test_cluster_wait_ok(cluster);
	end_pair(&pair);
}

static void counts_are_exact_while_masters_are_replaced(void **state)
{
	char *names[NAMES];
	(void)state;
	for (int i = 0; i < NAMES; i++) {
		char *prefix = check_format("counted-%d-", i);
		names[i] = name_on(i % MASTERS, prefix);
		free(prefix);
	}
	struct load *load = load_start(names);
	for (int i = 0; i < 2 * MASTERS; i++) {
		load_run(load, 50);
		int master = test_cluster_owner_of(cluster, names[1 + i % MASTERS]);
		test_cluster_promote(cluster, test_cluster_replica(cluster, master));
		test_cluster_wait_ok(cluster);
	}
	load_run(load, 100);
	load_finish(load);
}

/* ---- nodes that are not masters ---- */

/* The node that the client was given is gone: what it learnt from that is enough. */
static void the_seed_is_not_needed_any_more(void **state)
{
	int seed = test_cluster_replica(cluster, test_cluster_master(cluster, 0));
	char url[100];
	(void)state;
	snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d",
	         test_server_port(cluster->node[seed]));
	hf_client *client = open_url(url, NULL);
	test_server_kill(cluster->node[seed]);
	int slot = test_slot("seedless");
	test_cluster_move_slot(cluster, slot, another_master(test_cluster_owner(cluster, slot)));
	hf_lock *lock = open_lock(client, "seedless");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	test_cluster_bring_back(cluster, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_STORY(a_killed_master_leaves_other_masters_alone),
		CLUSTER_STORY(all_kinds_survive_a_killed_master),
		CLUSTER_STORY(one_client_keeps_its_other_holds),
		CLUSTER_STORY(a_hold_that_was_not_replicated_is_reported_lost),
		CLUSTER_STORY(waiters_follow_a_master_that_is_replaced),
		CLUSTER_STORY(counts_are_exact_while_masters_are_replaced),
		CLUSTER_STORY(the_seed_is_not_needed_any_more),
	};
	return cmocka_run_group_tests(tests, start_hasty_cluster, stop_cluster);
}
