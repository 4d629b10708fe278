/*
 * Fails every allocation of a client's life on a cluster in turn, while masters share the work and
 * slots move.
 */
#include "live/life.h"

#include "support/cluster.h"
#include "support/raw.h"
#include "support/server.h"

/* The last master gets its first slot, and loses its last one, in each life that moves a slot. */
enum { HOME, OTHER, SPARE, NODES };

static struct test_cluster *cluster;
static struct raw *raw[NODES];
static char spare_name[40]; /* of a lock in the slot that moves */

/* ---- a slot that moves ---- */

static void set_slot(int node, int slot, const char *state, int peer)
{
	char number[8];
	(void)snprintf(number, sizeof number, "%d", slot);
	raw_ok(raw[node], "CLUSTER", "SETSLOT", number, state, cluster->id[peer], NULL);
}

/* A node believes an old message of the owner before, if that one had the later epoch. */
static void settle_slot(int slot, int owner)
{
	while (test_cluster_owner(cluster, slot) != owner) {
		for (int i = 0; i < NODES; i++)
			set_slot(i, slot, "NODE", owner);
		test_pause();
	}
}

/* In less time than test_cluster_move_slot(), which waits until all nodes have learned of it. */
static void move_slot(int slot, int from, int to)
{
	is_the_test = true;
	settle_slot(slot, from);
	set_slot(to, slot, "IMPORTING", from);
	set_slot(from, slot, "MIGRATING", to);
	test_cluster_move_keys(cluster, slot, from, to);
	set_slot(to, slot, "NODE", to);
	set_slot(from, slot, "NODE", to);
	set_slot(OTHER, slot, "NODE", to);
	is_the_test = false;
}

/*
 * Lets the first master have all slots of the last one, so that clients do not know that one. Redis
 * 6.2 would make it a replica.
 */
static void give_away(void)
{
	if (test_server_version(cluster->node[0]) < 70000)
		return;
	for (int i = 0; i < NODES; i++)
		raw_ok(raw[i], "CONFIG", "SET", "cluster-allow-replica-migration", "no", NULL);
	/* The first one is moved by the rules, after which the nodes believe the new owner. */
	int first = CLUSTER_SLOTS * SPARE / NODES;
	move_slot(first, SPARE, HOME);
	for (int slot = first + 1; slot < CLUSTER_SLOTS; slot++)
		for (int i = 0; i < NODES; i++)
			set_slot(i, slot, "NODE", HOME);
	test_cluster_wait_ok(cluster);
}

/*
 * While all memory is gone there is none for a connection to the new node either. Then the calls
 * end in time, and the release is repeated in the background.
 */
static void check_moved(struct life *life, const char *call, int rc, int usual)
{
	bool is_late = shortage == ALL_FAIL && (rc == HF_EUNKNOWN || rc == HF_ETIMEDOUT);
	(void)check_answer(life, call, is_late ? usual : rc, usual, HF_ENOTHELD);
}

/*
 * A hold is released, and waited for, after its slot has moved to a node that the client did not
 * know.
 */
static void follow_slot(struct life *life, hf_lock *lock)
{
	int64_t wait_ms = shortage == ALL_FAIL ? 300 : 5000;
	int rc = CALL(0, 0,
	              hf_lock_acquire_async(lock,
	                                    HF_ACQUIRE(.owner = life->owner, .wait_ms = wait_ms),
	                                    note_done, &life->acquired));
	move_slot(test_slot(spare_name), HOME, SPARE);
	check_moved(life, "release", hf_lock_release(lock), 0);
	while (!rc && life->acquired.calls == 0)
		test_pause();
	if (!rc)
		check_moved(life, "acquire", life->acquired.result, 0);
	move_slot(test_slot(spare_name), SPARE, HOME);
	check_moved(life, "list", hf_client_list(life->client, "*", ignore_info, NULL), 0);
	check_moved(life, "release again",
	            hf_lock_release_with(lock, HF_RELEASE(.owner = life->owner)), 0);
}

static void live_with_a_slot_that_moves(struct life *life, const char *url)
{
	hf_lock *lock = NULL;
	if (begin_life(life, url) &&
	    !CALL(0, 0, hf_lock_open(life->client, HF_FAIR, spare_name, &lock))) {
		(void)CALL(0, 0, hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)));
		/* It is granted if the first one was not, for lack of memory. */
		(void)CALL(HF_ETIMEDOUT, 0,
		           hf_lock_acquire(lock, HF_ACQUIRE(.owner = life->third, .wait_ms = 30)));
		(void)CALL(HF_ENOTHELD, 0,
		           hf_lock_release_with(lock, HF_RELEASE(.owner = life->third)));
		follow_slot(life, lock);
	}
	hf_lock_close(lock);
	end_life(life);
}

/* Members of a multi lock are on different masters, and a list is collected from all of them. */
static void live_on_several_masters(struct life *life, const char *url)
{
	if (begin_life(life, url)) {
		meet_at_several(life);
		(void)CALL(0, 0, hf_client_list(life->client, "*", ignore_info, NULL));
		(void)CALL(0, 0, hf_client_inspect(life->client, "kind", ignore_info, NULL));
		(void)CALL(0, 0,
		           hf_client_inspect_many(life->client,
		                                  (const char *const[]){"a", "b", "c"}, 3,
		                                  ignore_info, NULL));
		(void)CALL(0, 0, hf_client_facts(life->client, ignore_fact, NULL));
	}
	end_life(life);
}

/* ---- tests ---- */

static void clear_nodes(void)
{
	for (int i = 0; i < NODES; i++) {
		raw_ok(raw[i], "FLUSHALL", NULL);
		raw_ok(raw[i], "SCRIPT", "FLUSH", NULL);
	}
}

static void live_until_nothing_fails(live_fn *live_so, bool only_one)
{
	long from = 0, count;
	do {
		count = live_short_of_memory(live_so, cluster->url, ++from, only_one);
		clear_nodes();
	} while (count >= from);
	print_message("%ld allocations failed\n", from - 1);
	/* This proves something only if the life allocates memory in many places. */
	assert_true(from > 40);
}

static void survive(live_fn *live_so)
{
	assert_true(live_short_of_memory(live_so, cluster->url, 0, true) > 40);
	clear_nodes();
	live_until_nothing_fails(live_so, true);
	live_until_nothing_fails(live_so, false);
}

static void failed_allocations_are_survived_on_a_cluster(void **state)
{
	(void)state;
	survive(live);
}

static void failed_allocations_are_survived_on_several_masters(void **state)
{
	(void)state;
	survive(live_on_several_masters);
}

static void failed_allocations_are_survived_by_durable_grants(void **state)
{
	(void)state;
	survive(live_durably);
}

static void failed_allocations_are_survived_while_a_slot_moves(void **state)
{
	(void)state;
	survive(live_with_a_slot_that_moves);
}

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .node_timeout_ms = 15000});
	for (int i = 0; i < NODES; i++)
		raw[i] = test_cluster_connect(cluster, i);
	give_away();
	char *name = test_cluster_name(cluster, HOME, "moving-");
	(void)snprintf(spare_name, sizeof spare_name, "%s", name);
	free(name);
	return 0;
}

static int stop_cluster(void **state)
{
	(void)state;
	for (int i = 0; i < NODES; i++)
		raw_close(raw[i]);
	test_cluster_stop(cluster);
	return 0;
}

int main(void)
{
	prepare_shortage();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failed_allocations_are_survived_on_a_cluster),
		cmocka_unit_test(failed_allocations_are_survived_on_several_masters),
		cmocka_unit_test(failed_allocations_are_survived_by_durable_grants),
		cmocka_unit_test(failed_allocations_are_survived_while_a_slot_moves),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
