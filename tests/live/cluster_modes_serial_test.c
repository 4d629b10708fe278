/*
 * Both ways to publish on a cluster, whose messages arrive in time, and grants that replicas
 * acknowledge.
 */
#include "live/cluster.h"

#define SYNC_MS 1000

/*
 * A message is heard within this time; a waiter that hears none asks after 2.4 s at the earliest.
 */
#define HEARD_MS 200
#define DEAF_MS  2000

/* ---- messages ---- */

#define ROUNDS 7

/* A lock that two clients hand to each other. */
struct relay {
	char *name;
	hf_client *client[2];
	hf_lock *lock[2];
	long long took_ms[ROUNDS];
};

static void begin_relay(struct relay *relay, int master)
{
	relay->name = name_on(master, "handed-over-");
	for (int i = 0; i < 2; i++) {
		relay->client[i] = open_cluster(NULL);
		relay->lock[i] = open_lock(relay->client[i], relay->name);
	}
}

static void end_relay(struct relay *relay)
{
	for (int i = 0; i < 2; i++) {
		close_both(relay->lock[i], relay->client[i]);
	}
	free(relay->name);
}

/*
 * Whether the waiter listens where the slot is. What it has asked before was answered before the
 * ping.
 */
static bool is_listening(const struct relay *relay)
{
	int node = test_cluster_owner_of(cluster, relay->name);
	return node >= 0 && is_awaited(&matches[REENTRANT], relay->name, node) &&
	       hf_client_ping(relay->client[1], NULL) == 0;
}

/*
 * Returns how long after the release the waiter was granted the lock. The slot may move before
 * that.
 */
static long long hand_over(struct relay *relay, int move_to)
{
	uint64_t attempts = stats_of(relay->client[1]).attempts;
	ASSERT_OK(hf_lock_acquire(relay->lock[0], NULL));
	struct waiter *waiter = waiter_start(relay->lock[1], HF_ACQUIRE(.wait_ms = 60000));
	/* It may still listen from the round before, and does not ask twice then. */
	WAIT_UNTIL(stats_of(relay->client[1]).attempts > attempts && is_listening(relay), SOON_MS);
	if (move_to >= 0) {
		test_cluster_move_slot(cluster, test_slot(relay->name), move_to);
		/* Plain messages cross the cluster, so nobody has to follow the slot for them. */
		WAIT_UNTIL(!is_sharded() || is_listening(relay), SOON_MS);
	}
	uint64_t wakeups = stats_of(relay->client[1]).wakeups;
	ASSERT_OK(hf_lock_release(relay->lock[0]));
	long long released_at = test_now_ms();
	waiter_expect(waiter, 0);
	long long took_ms = waiter->ended_at - released_at;
	assert_true(stats_of(relay->client[1]).wakeups > wakeups);
	waiter_finish(waiter);
	return took_ms;
}

static int compare_times(const void *left, const void *right)
{
	long long a = *(const long long *)left, b = *(const long long *)right;
	return (a > b) - (a < b);
}

/* A loaded machine may be late now and then, but not as late as a waiter that heard nothing. */
static void expect_heard(struct relay *relay)
{
	qsort(relay->took_ms, ROUNDS, sizeof(relay->took_ms[0]), compare_times);
	print_message("%s%s: %lld to %lld ms, median %lld ms\n", relay->name, cluster_setting,
	              relay->took_ms[0], relay->took_ms[ROUNDS - 1], relay->took_ms[ROUNDS / 2]);
	assert_true(relay->took_ms[ROUNDS / 2] <= HEARD_MS);
	assert_true(relay->took_ms[ROUNDS - 1] < DEAF_MS);
}

static void hand_over_by(const char *setting)
{
	cluster_setting = setting;
	for (int master = 0; master < MASTERS; master++) {
		struct relay relay;
		begin_relay(&relay, master);
		for (int i = 0; i < ROUNDS; i++)
			relay.took_ms[i] = hand_over(&relay, -1);
		expect_heard(&relay);
		end_relay(&relay);
	}
}

static void hand_over_where_the_slot_is(const char *setting)
{
	struct relay relay;
	cluster_setting = setting;
	begin_relay(&relay, 1);
	for (int i = 0; i < ROUNDS; i++) {
		int owner = test_cluster_owner_of(cluster, relay.name);
		relay.took_ms[i] = hand_over(&relay, another_master(owner));
	}
	expect_heard(&relay);
	end_relay(&relay);
}

static bool can_shard(void)
{
	if (is_sharded())
		return true;
	print_message("Left out: sharded=on, because the server is older than 7.0\n");
	return false;
}

static void a_sharded_message_is_heard_at_once(void **state)
{
	(void)state;
	if (can_shard())
		hand_over_by("?sharded=on");
}

static void a_plain_message_is_heard_at_once(void **state)
{
	(void)state;
	hand_over_by("?sharded=off");
}

static void a_sharded_message_is_heard_where_the_slot_is(void **state)
{
	(void)state;
	if (can_shard())
		hand_over_where_the_slot_is("?sharded=on");
}

static void a_plain_message_is_heard_where_the_slot_is(void **state)
{
	(void)state;
	hand_over_where_the_slot_is("?sharded=off");
}

/* ---- durable grants ---- */

static hf_client *open_durable(void)
{
	return open_cluster(HF_CLIENT(.replicas = 1, .sync_timeout_ms = SYNC_MS));
}

/* Whether a replica has the key, which it shows on a connection that may read there. */
static bool replica_has(int node, const char *key)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	raw_ok(raw, "READONLY", NULL);
	bool has = raw_integer(raw, "EXISTS", key, NULL) == 1;
	raw_close(raw);
	return has;
}

/* Its grant is acknowledged by the replica of its own shard. */
static void expect_durable(hf_client *client, const char *name)
{
	int node = test_cluster_owner_of(cluster, name);
	int replicas = -1;
	hf_lock *lock = open_lock(client, name);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_durability(lock, NULL, &replicas));
	assert_int_equal(replicas, 1);
	assert_true(replica_has(test_cluster_replica(cluster, node), name));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
}

static void grants_are_acknowledged_on_each_shard(void **state)
{
	hf_client *client = open_durable();
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "durable-");
		expect_durable(client, name);
		/* Also by the replica of another shard, once the slot has moved to it. */
		test_cluster_move_slot(cluster, test_slot(name),
		                       another_master(test_cluster_owner_of(cluster, name)));
		expect_durable(client, name);
		free(name);
	}
	ASSERT_OK(hf_client_close(client));
}

/* Without its replica one shard grants nothing durable, and others notice nothing of that. */
static void a_replica_that_stops_is_missed_on_its_own_shard(void **state)
{
	hf_client *client = open_durable();
	char *name[MASTERS];
	int home = test_cluster_master(cluster, 0);
	int replica = test_cluster_replica(cluster, home);
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		name[i] = name_on(i, "shard-");
		expect_durable(client, name[i]);
	}
	hf_lock *lock = open_lock(client, name[0]);
	test_server_freeze(cluster->node[replica]);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	WAIT_UNTIL(waiter_is_over(waiter) || node_has(home, name[0]), SOON_MS);
	for (int i = 1; i < MASTERS; i++)
		expect_durable(client, name[i]);
	waiter_expect(waiter, HF_ENOREPLICAS);
	ASSERT_CONTAINS(waiter->detail, "0 of 1 replicas");
	assert_true(waiter->ended_at - waiter->started_at >= SYNC_MS);
	waiter_free(waiter);
	WAIT_UNTIL(!node_has(home, name[0]), SOON_MS);
	/* Without replicas the same lock can be acquired. */
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = -1)));
	ASSERT_OK(hf_lock_release(lock));
	test_server_thaw(cluster->node[replica]);
	test_cluster_sync(cluster, home, 1);
	for (int i = 0; i < MASTERS; i++) {
		expect_durable(client, name[i]);
		free(name[i]);
	}
	close_both(lock, client);
}

/* Calls that need no replica do not wait for one, not even on the same shard. */
static void other_calls_are_not_held_up(void **state)
{
	hf_client *client = open_durable();
	int home = test_cluster_master(cluster, 0);
	int replica = test_cluster_replica(cluster, home);
	char *name = name_on(0, "durable-"), *other = name_on(0, "other-");
	hf_lock *lock = open_lock(client, name), *plain = open_lock(client, other);
	int rounds = 0;
	(void)state;
	expect_durable(client, name);
	test_server_freeze(cluster->node[replica]);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	WAIT_UNTIL(waiter_is_over(waiter) || node_has(home, name), SOON_MS);
	while (!waiter_is_over(waiter)) {
		ASSERT_OK(hf_lock_acquire(plain, HF_ACQUIRE(.replicas = -1)));
		ASSERT_OK(hf_lock_release(plain));
		rounds++;
	}
	waiter_join(waiter, HF_ENOREPLICAS);
	/* One that waits for the same replica would be the last. */
	assert_true(rounds > 5);
	hf_lock_close(lock);
	hf_lock_close(plain);
	free(name);
	free(other);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_STORY(a_sharded_message_is_heard_at_once),
		CLUSTER_STORY(a_plain_message_is_heard_at_once),
		CLUSTER_STORY(a_sharded_message_is_heard_where_the_slot_is),
		CLUSTER_STORY(a_plain_message_is_heard_where_the_slot_is),
		CLUSTER_STORY(grants_are_acknowledged_on_each_shard),
		CLUSTER_STORY(a_replica_that_stops_is_missed_on_its_own_shard),
		CLUSTER_STORY(other_calls_are_not_held_up),
	};
	return cmocka_run_group_tests(tests, start_patient_cluster, stop_cluster);
}
