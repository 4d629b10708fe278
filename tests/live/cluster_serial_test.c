/* Masters of a cluster that die, are replaced, or are too few. */
#include "live/cluster_crowd.h"
#include "live/cluster_load.h"

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(NULL);
	return 0;
}

/* A client with a lock, and what it noticed. */
struct side {
	struct seen seen;
	hf_client *client;
	hf_lock *lock;
};

static struct side *open_side(const char *name, int64_t watchdog_ms)
{
	struct side *side = check_alloc(sizeof(*side));
	pthread_mutex_init(&side->seen.mutex, NULL);
	side->client = open_cluster(HF_CLIENT(.watchdog_ms = watchdog_ms, .on_event = see_event,
	                                      .event_arg = &side->seen));
	side->lock = open_lock(side->client, name);
	return side;
}

static void close_side(struct side *side)
{
	hf_lock_close(side->lock);
	ASSERT_OK(hf_client_close(side->client));
	free(side);
}

/* A lock that one client holds and another one waits for. */
struct pair {
	char *name;
	struct side *holder;
	struct side *other;
	struct waiter *waiter;
};

static void begin_pair(struct pair *pair, int node, const char *prefix, int64_t watchdog_ms)
{
	pair->name = test_cluster_name(cluster, node, prefix);
	pair->holder = open_side(pair->name, watchdog_ms);
	pair->other = open_side(pair->name, watchdog_ms);
	ASSERT_OK(hf_lock_acquire(pair->holder->lock, NULL));
	pair->waiter = waiter_start(pair->other->lock, HF_ACQUIRE(.wait_ms = 60000));
	WAIT_UNTIL(is_awaited(&matches[REENTRANT], pair->name, node), SOON_MS);
	ASSERT_OK(hf_client_ping(pair->other->client, NULL));
}

/* The release wakes the waiter soon, and nobody noticed anything before. */
static void end_pair(struct pair *pair)
{
	assert_int_equal(hf_lock_state(pair->holder->lock, NULL), HF_HELD);
	assert_false(waiter_is_over(pair->waiter));
	ASSERT_OK(hf_lock_release(pair->holder->lock));
	long long released_at = test_now_ms();
	waiter_expect(pair->waiter, 0);
	assert_true(pair->waiter->ended_at - released_at < 1000);
	waiter_finish(pair->waiter);
	assert_int_equal(seen_count(&pair->holder->seen, HF_AT_RISK), 0);
	assert_int_equal(seen_count(&pair->holder->seen, HF_LOST), 0);
	close_side(pair->holder);
	close_side(pair->other);
	free(pair->name);
}

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

/* Everything that can be waited for is found again at the new master, and its waiters are woken there. */
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

/* A master that does not answer any more delays nobody else, and knows nothing new when it wakes up. */
static void a_frozen_master_is_replaced(void **state)
{
	int victim = test_cluster_master(cluster, 2);
	struct pair struck, spared;
	(void)state;
	begin_pair(&struck, victim, "frozen-", 0);
	begin_pair(&spared, test_cluster_master(cluster, 0), "awake-", 9000);
	test_cluster_sync(cluster, victim, 1);
	test_server_freeze(cluster->node[victim]);
	int next = test_cluster_next_owner(cluster, test_slot(struck.name), victim);
	end_pair(&spared);
	WAIT_UNTIL(is_awaited(&matches[REENTRANT], struck.name, next), 20000);
	test_server_thaw(cluster->node[victim]);
	test_cluster_wait_ok(cluster);
	end_pair(&struck);
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
	waiter_expect(waiter, 0);
	waiter_finish(waiter);
	close_side(holder);
	close_side(other);
	free(name);
	test_cluster_bring_back(cluster, victim);
}

/* ---- masters that do not answer ---- */

#define MANY 200

struct hostage {
	atomic_int disturbed; /* events about holds of other masters */
};

static void note_disturbance(void *arg, const hf_event *event)
{
	struct hostage *hostage = arg;
	if (strstr(hf_event_name(event), "elsewhere-"))
		atomic_fetch_add(&hostage->disturbed, 1);
}

/* Each hold is in a slot of its own, so that each takes a request of its own to be renewed. */
static void many_holds_of_a_frozen_master_disturb_no_others(void **state)
{
	struct hostage *hostage = check_alloc(sizeof(*hostage));
	hf_client *client = open_cluster(
		HF_CLIENT(.watchdog_ms = 9000, .on_event = note_disturbance, .event_arg = hostage));
	int victim = test_cluster_master(cluster, 0);
	(void)state;
	for (int i = 0; i < MANY; i++) {
		char *prefix = check_format(i % 10 ? "here-%d-" : "elsewhere-%d-", i);
		char *name = name_on(i % 10 ? 0 : 1, prefix);
		hf_lock *lock = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		hf_lock_close(lock);
		free(name);
		free(prefix);
	}
	/* The master is not replaced: its holds will be lost. */
	test_cluster_set_timeout(cluster, 30000);
	test_server_freeze(cluster->node[victim]);
	let_pass(12000);
	assert_int_equal(atomic_load(&hostage->disturbed), 0);
	test_server_thaw(cluster->node[victim]);
	ASSERT_OK(hf_client_close(client));
	free(hostage);
}

/* Calls about a master that does not answer end in time, others are not delayed, and so is closing. */
static void calls_do_not_wait_for_a_frozen_master(void **state)
{
	int victim = test_cluster_master(cluster, 1);
	char *name = test_cluster_name(cluster, victim, "stuck-");
	char *other = test_cluster_name(cluster, test_cluster_master(cluster, 0), "quick-");
	struct side *side = open_side(name, 0);
	hf_lock *lock = open_lock(side->client, other);
	(void)state;
	ASSERT_OK(hf_lock_acquire(side->lock, NULL));
	ASSERT_OK(hf_lock_release(side->lock));
	test_server_freeze(cluster->node[victim]);
	struct waiter *waiter = waiter_start(side->lock, HF_ACQUIRE(.wait_ms = 1000));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 900)));
	ASSERT_OK(hf_lock_release(lock));
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	assert_int_not_equal(waiter->result, 0);
	ASSERT_BETWEEN(waiter->ended_at - waiter->started_at, 1000, 2000);
	waiter_free(waiter);
	long long before = test_now_ms();
	hf_lock_close(lock);
	close_side(side);
	assert_true(test_now_ms() - before < 3000);
	test_server_thaw(cluster->node[victim]);
	free(name);
	free(other);
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

/* ---- a cluster that is down ---- */

static bool is_down(int node)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	char *info = raw_text(raw, "CLUSTER", "INFO", NULL);
	bool is = strstr(info, "cluster_state:fail");
	free(info);
	raw_close(raw);
	return is;
}

/* A shard is gone, so no node accepts anything; the holds on the others outlast that. */
static void a_cluster_that_is_down_is_waited_for(void **state)
{
	int victim = test_cluster_master(cluster, 0);
	int replica = test_cluster_replica(cluster, victim);
	int node = test_cluster_master(cluster, 1);
	char *name = test_cluster_name(cluster, node, "down-");
	char *held = test_cluster_name(cluster, node, "held-");
	struct side *side = open_side(name, 0);
	struct side *holder = open_side(held, 0);
	(void)state;
	ASSERT_OK(hf_lock_acquire(holder->lock, NULL));
	test_server_kill(cluster->node[replica]);
	test_server_kill(cluster->node[victim]);
	WAIT_UNTIL(is_down(node), 20000);
	long long before = test_now_ms();
	int rc = hf_lock_acquire(side->lock, HF_ACQUIRE(.wait_ms = 1500));
	ASSERT_BETWEEN(test_now_ms() - before, 1500, 1500 + SOON_MS);
	assert_int_not_equal(rc, 0);
	ASSERT_CONTAINS(hf_error_detail(), "CLUSTERDOWN");
	assert_int_equal(hf_lock_acquire(side->lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ENOTNOW);
	struct waiter *waiter = waiter_start(side->lock, HF_ACQUIRE(.wait_ms = 60000));
	test_server_restart(cluster->node[victim]);
	test_server_restart(cluster->node[replica]);
	waiter_expect(waiter, 0);
	waiter_finish(waiter);
	test_cluster_wait_ok(cluster);
	assert_int_equal(hf_lock_state(holder->lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(holder->lock));
	assert_int_equal(seen_count(&holder->seen, HF_LOST), 0);
	close_side(side);
	close_side(holder);
	free(name);
	free(held);
}

/* All nodes go away and come back empty: what was held is lost, and the client works again. */
static void a_cluster_that_was_away_is_found_again(void **state)
{
	char *name = name_on(0, "away-");
	struct side *side = open_side(name, 0);
	(void)state;
	ASSERT_OK(hf_lock_acquire(side->lock, NULL));
	for (int i = 0; i < cluster->count; i++)
		test_server_kill(cluster->node[i]);
	for (int i = 0; i < cluster->count; i++)
		test_server_restart(cluster->node[i]);
	test_cluster_wait_ok(cluster);
	WAIT_UNTIL(hf_lock_state(side->lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_OK(hf_lock_acquire(side->lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(side->lock));
	close_side(side);
	free(name);
}

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
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
	test_cluster_bring_back(cluster, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_STORY(a_killed_master_leaves_other_masters_alone),
		CLUSTER_STORY(all_kinds_survive_a_killed_master),
		CLUSTER_STORY(a_frozen_master_is_replaced),
		CLUSTER_STORY(one_client_keeps_its_other_holds),
		CLUSTER_STORY(a_hold_that_was_not_replicated_is_reported_lost),
		CLUSTER_STORY(many_holds_of_a_frozen_master_disturb_no_others),
		CLUSTER_STORY(calls_do_not_wait_for_a_frozen_master),
		CLUSTER_STORY(waiters_follow_a_master_that_is_replaced),
		CLUSTER_STORY(counts_are_exact_while_masters_are_replaced),
		CLUSTER_STORY(a_cluster_that_is_down_is_waited_for),
		CLUSTER_STORY(a_cluster_that_was_away_is_found_again),
		CLUSTER_STORY(the_seed_is_not_needed_any_more),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
