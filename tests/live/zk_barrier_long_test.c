/* Barriers whose connections break, whose sessions end, and whose folders are reaped. */
#include "live/barrier.h"
#include "live/zk_faults.h"

/* The first client, on a proxy, and the second one at one barrier. */
struct gate {
	struct world world;
	hf_barrier *mine;
	hf_barrier *theirs;
};

static void gate_begin(struct gate *gate, const struct test_zookeeper_options *options,
                       int64_t session_ms)
{
	world_begin(&gate->world, options, session_ms);
	gate->mine = open_barrier(gate->world.one, "a/gate");
	gate->theirs = open_barrier(gate->world.two, "a/gate");
}

static void gate_end(struct gate *gate)
{
	hf_barrier_close(gate->mine);
	hf_barrier_close(gate->theirs);
	world_end(&gate->world);
}

static long long watches(const struct gate *gate)
{
	return test_zookeeper_value(gate->world.zookeeper, 0, "zk_watch_count");
}

static struct waiter *sleeper(struct gate *gate)
{
	struct waiter *guest = guest_start(PASS, gate->mine, NULL);
	WAIT_UNTIL(watches(gate) == 1 && stats_of(gate->world.one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(gate->world.one, NULL));
	return guest;
}

/* ---- barriers ---- */

static void waiter_keeps_waiting_after_its_connection_broke(void **state)
{
	struct gate gate;

	(void)state;
	gate_begin(&gate, NULL, 10000);
	ASSERT_OK(hf_barrier_set(gate.theirs));
	struct waiter *guest = sleeper(&gate);
	proxy_cut(gate.world.proxy);
	WAIT_UNTIL(stats_of(gate.world.one).reconnects == 1, 10000);
	WAIT_UNTIL(watches(&gate) == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(gate.world.one, NULL));
	assert_false(waiter_is_over(guest));
	ASSERT_OK(hf_barrier_remove(gate.theirs));
	waiter_join(guest, 0);
	WAIT_UNTIL(watches(&gate) == 0, SOON_MS);
	gate_end(&gate);
}

static void removal_while_it_was_cut_off_is_noticed(void **state)
{
	struct gate gate;

	(void)state;
	gate_begin(&gate, NULL, 10000);
	ASSERT_OK(hf_barrier_set(gate.theirs));
	struct waiter *guest = sleeper(&gate);
	proxy_refuse(gate.world.proxy, true);
	proxy_cut(gate.world.proxy);
	ASSERT_OK(hf_barrier_remove(gate.theirs));
	assert_false(waiter_is_over(guest));
	proxy_refuse(gate.world.proxy, false);
	waiter_join(guest, 0);
	gate_end(&gate);
}

static void session_that_ends_while_it_waits_is_replaced(void **state)
{
	struct gate gate;

	(void)state;
	gate_begin(&gate, NULL, 6000);
	ASSERT_OK(hf_lock_acquire(gate.world.mine, NULL));
	int64_t session = first_owner(gate.world.eye, "/orders");
	ASSERT_OK(hf_barrier_set(gate.mine));
	struct waiter *guest = guest_start(PASS, gate.mine, NULL);
	/* Another one watches the lock. */
	WAIT_UNTIL(watches(&gate) == 2 && stats_of(gate.world.one).waiting == 1, SOON_MS);
	zk_raw_expire(test_zookeeper_host(gate.world.zookeeper, 0), session);
	WAIT_UNTIL(hf_lock_state(gate.world.mine, NULL) == HF_LOST, SOON_MS);
	/* The barrier was set by the session that is gone, and stays. */
	WAIT_UNTIL(watches(&gate) == 1, SOON_MS);
	assert_int_equal(is_set(gate.theirs), 1);
	assert_false(waiter_is_over(guest));
	ASSERT_OK(hf_barrier_remove(gate.theirs));
	waiter_join(guest, 0);
	gate_end(&gate);
}

static void server_that_starts_again_still_has_the_barrier(void **state)
{
	struct gate gate;

	(void)state;
	gate_begin(&gate, NULL, 10000);
	ASSERT_OK(hf_barrier_set(gate.theirs));
	struct waiter *guest = sleeper(&gate);
	test_zookeeper_kill(gate.world.zookeeper, 0);
	test_zookeeper_restart(gate.world.zookeeper, 0);
	WAIT_UNTIL(stats_of(gate.world.one).reconnects >= 1, 15000);
	assert_int_equal(is_set(gate.mine), 1);
	assert_false(waiter_is_over(guest));
	ASSERT_OK(hf_barrier_remove(gate.theirs));
	waiter_join(guest, 0);
	/* The eye's connection is useless now. */
	zk_raw_drop(gate.world.eye);
	gate.world.eye = zk_raw_open(test_zookeeper_host(gate.world.zookeeper, 0), 0);
	gate_end(&gate);
}

static int run_set(void *barrier)
{
	return hf_barrier_set(barrier);
}

static int run_remove(void *barrier)
{
	return hf_barrier_remove(barrier);
}

/* The server runs it, and its answer is lost. */
static void play_lost_reply(struct gate *gate, int (*run)(void *barrier), int rc_then, int result)
{
	proxy_hold_replies(gate->world.proxy, true);
	struct waiter *call = WAITER(.run = run, .arg = gate->mine);
	WAIT_UNTIL(zk_raw_exists(gate->world.eye, "/a/gate", NULL) == rc_then, SOON_MS);
	assert_false(waiter_is_over(call));
	proxy_cut(gate->world.proxy);
	proxy_hold_replies(gate->world.proxy, false);
	WAIT_UNTIL(waiter_is_over(call), 10000);
	waiter_join(call, result);
	WAIT_UNTIL(hf_client_ping(gate->world.one, NULL) == 0, 20000);
	assert_int_equal(zk_raw_exists(gate->world.eye, "/a/gate", NULL), rc_then);
}

/*
 * Setting it once more changes nothing; removing it again could remove what another client has set
 * since.
 */
static void set_without_an_answer_is_done_once_more_and_remove_is_unknown(void **state)
{
	struct gate gate;

	(void)state;
	gate_begin(&gate, NULL, 10000);
	assert_int_equal(zk_raw_create(gate.world.eye, "/a", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		play_lost_reply(&gate, run_set, 0, 0);
		play_lost_reply(&gate, run_remove, ZK_RAW_NO_NODE, HF_EUNKNOWN);
	}
	gate_end(&gate);
}

static void folders_above_are_reaped_but_never_the_barrier(void **state)
{
	struct gate gate;

	(void)state;
	gate_begin(&gate, &(struct test_zookeeper_options){.reaper_ms = 100}, 6000);
	struct zk_raw *eye = gate.world.eye;
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_barrier_set(gate.mine));
		/* An empty container that goes shows that the reaper was here. */
		assert_int_equal(zk_raw_create(eye, "/b", "", ZK_RAW_CONTAINER, NULL, NULL), 0);
		assert_int_equal(zk_raw_create(eye, "/b/c", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
		assert_int_equal(zk_raw_delete(eye, "/b/c", -1), 0);
		WAIT_UNTIL(zk_raw_exists(eye, "/b", NULL) == ZK_RAW_NO_NODE, 10000);
		assert_int_equal(is_set(gate.theirs), 1);
		ASSERT_OK(hf_barrier_remove(gate.theirs));
		WAIT_UNTIL(zk_raw_exists(eye, "/a", NULL) == ZK_RAW_NO_NODE, 10000);
		assert_int_equal(is_set(gate.theirs), 0);
	}
	gate_end(&gate);
}

/* ---- double barriers ---- */

struct phase {
	struct world world;
	hf_double_barrier *mine;
	hf_double_barrier *theirs;
};

static void phase_begin(struct phase *phase, int64_t session_ms)
{
	world_begin(&phase->world, NULL, session_ms);
	ASSERT_OK(hf_double_barrier_open(phase->world.one, "phase", 2, &phase->mine));
	ASSERT_OK(hf_double_barrier_open(phase->world.two, "phase", 2, &phase->theirs));
}

static void phase_end(struct phase *phase)
{
	hf_double_barrier_close(phase->mine);
	hf_double_barrier_close(phase->theirs);
	world_end(&phase->world);
}

static int inside(const struct phase *phase)
{
	return count_children(phase->world.eye, "/phase");
}

/* Both enter; returns the session of the first in *ret_session. */
static void both_enter(struct phase *phase, int64_t *ret_session)
{
	struct waiter *guest = guest_start(ENTER, phase->mine, NULL);
	WAIT_UNTIL(inside(phase) == 1, SOON_MS);
	*ret_session = first_owner(phase->world.eye, "/phase");
	ASSERT_OK(hf_double_barrier_enter(phase->theirs, HF_WAIT(.wait_ms = SOON_MS)));
	waiter_join(guest, 0);
	assert_int_equal(inside(phase), 3);
}

static void member_whose_session_ends_is_lost_and_the_others_get_out(void **state)
{
	struct phase phase;
	int64_t session;

	(void)state;
	phase_begin(&phase, 6000);
	for (int i = 0; i < 2; i++) {
		both_enter(&phase, &session);
		zk_raw_expire(test_zookeeper_host(phase.world.zookeeper, 0), session);
		WAIT_UNTIL(hf_double_barrier_state(phase.mine) == HF_LOST, SOON_MS);
		WAIT_UNTIL(seen_count(&phase.world.seen, HF_LOST) == i + 1, SOON_MS);
		assert_string_equal(phase.world.seen.name, "phase");
		assert_int_equal(hf_double_barrier_state(phase.theirs), HF_HELD);
		long long started_at = test_now_ms();
		ASSERT_RC(hf_double_barrier_leave(phase.mine, HF_WAIT(.wait_ms = SOON_MS)),
		          HF_ELOST);
		ASSERT_BETWEEN(test_now_ms() - started_at, 0, SOON_MS);
		ASSERT_RC(hf_double_barrier_leave(phase.mine, NULL), HF_ENOTHELD);
		ASSERT_OK(hf_double_barrier_leave(phase.theirs, HF_WAIT(.wait_ms = SOON_MS)));
		assert_int_equal(inside(&phase), 0);
	}
	phase_end(&phase);
}

static void member_whose_session_ends_at_the_exit_keeps_nobody(void **state)
{
	struct phase phase;
	int64_t session;

	(void)state;
	phase_begin(&phase, 6000);
	both_enter(&phase, &session);
	struct waiter *guest = guest_start(LEAVE, phase.theirs, NULL);
	WAIT_UNTIL(stats_of(phase.world.two).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(phase.world.two, NULL));
	assert_false(waiter_is_over(guest));
	zk_raw_expire(test_zookeeper_host(phase.world.zookeeper, 0), session);
	waiter_join(guest, 0);
	assert_int_equal(inside(&phase), 0);
	WAIT_UNTIL(hf_double_barrier_state(phase.mine) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_double_barrier_leave(phase.mine, HF_WAIT(.wait_ms = SOON_MS)), HF_ELOST);
	phase_end(&phase);
}

static void session_that_ends_while_it_comes_in_costs_nothing(void **state)
{
	struct phase phase;

	(void)state;
	phase_begin(&phase, 6000);
	struct waiter *guest = guest_start(ENTER, phase.mine, NULL);
	WAIT_UNTIL(inside(&phase) == 1, SOON_MS);
	int64_t session = first_owner(phase.world.eye, "/phase");
	zk_raw_expire(test_zookeeper_host(phase.world.zookeeper, 0), session);
	WAIT_UNTIL(inside(&phase) == 1 && first_owner(phase.world.eye, "/phase") != session, 10000);
	assert_false(waiter_is_over(guest));
	ASSERT_OK(hf_double_barrier_enter(phase.theirs, HF_WAIT(.wait_ms = SOON_MS)));
	waiter_join(guest, 0);
	guest = guest_start(LEAVE, phase.mine, NULL);
	ASSERT_OK(hf_double_barrier_leave(phase.theirs, HF_WAIT(.wait_ms = SOON_MS)));
	waiter_join(guest, 0);
	assert_int_equal(inside(&phase), 0);
	phase_end(&phase);
}

/*
 * Whether it comes in or goes out, and wherever the connection breaks, there is one node and no
 * more.
 */
static void connection_that_breaks_on_the_way_changes_nothing(void **state)
{
	struct phase phase;

	(void)state;
	phase_begin(&phase, 10000);
	for (int i = 0; i < 3; i++) {
		uint64_t reconnects = stats_of(phase.world.one).reconnects;
		struct waiter *guest = guest_start(ENTER, phase.mine, NULL);
		WAIT_UNTIL(inside(&phase) == 1, SOON_MS);
		if (i > 0)
			WAIT_UNTIL(stats_of(phase.world.one).waiting == 1, SOON_MS);
		proxy_cut(phase.world.proxy);
		WAIT_UNTIL(stats_of(phase.world.one).reconnects > reconnects, 10000);
		ASSERT_OK(hf_client_ping(phase.world.one, NULL));
		assert_int_equal(inside(&phase), 1);
		ASSERT_OK(hf_double_barrier_enter(phase.theirs, HF_WAIT(.wait_ms = SOON_MS)));
		waiter_join(guest, 0);
		reconnects = stats_of(phase.world.one).reconnects;
		guest = guest_start(LEAVE, phase.mine, NULL);
		if (i > 0)
			WAIT_UNTIL(stats_of(phase.world.one).waiting == 1, SOON_MS);
		proxy_cut(phase.world.proxy);
		WAIT_UNTIL(stats_of(phase.world.one).reconnects > reconnects, 10000);
		ASSERT_OK(hf_double_barrier_leave(phase.theirs, HF_WAIT(.wait_ms = SOON_MS)));
		waiter_join(guest, 0);
		WAIT_UNTIL(inside(&phase) == 0, SOON_MS);
	}
	phase_end(&phase);
}

/* Two of the members are on a connection that breaks again and again. */
static void rounds_continue_over_connections_that_break(void **state)
{
	struct players players;
	struct world world;

	(void)state;
	world_begin(&world, NULL, 20000);
	players_start(&players, (hf_client *[]){world.one, world.two}, 2, 80);
	for (uint64_t i = 1; atomic_load(&players.over) < PLAYERS && i <= 30; i++) {
		WAIT_UNTIL(stats_of(world.one).reconnects >= i - 1 ||
		                   atomic_load(&players.over) > 0,
		           20000);
		/* Another number of rounds is played in between each time. */
		uint64_t commands = stats_of(world.one).commands;
		WAIT_UNTIL(stats_of(world.one).commands > commands + i ||
		                   atomic_load(&players.over) > 0,
		           20000);
		proxy_cut(world.proxy);
	}
	players_expect(&players);
	assert_true(stats_of(world.one).reconnects > 3);
	WAIT_UNTIL(count_children(world.eye, "/phase") == 0, SOON_MS);
	world_end(&world);
}

/* Each member asks another server, and what one server knows the next may not know yet. */
static void rounds_continue_over_all_servers_of_an_ensemble(void **state)
{
	struct test_zookeeper *zookeeper =
		test_zookeeper_start(&(struct test_zookeeper_options){.servers = 3});
	hf_client *clients[3];
	hf_barrier *gates[3];
	struct waiter *guests[2];
	struct players players;

	(void)state;
	for (int i = 0; i < 3; i++) {
		clients[i] = open_url(test_zookeeper_url(zookeeper, i), NULL);
		gates[i] = open_barrier(clients[i], "gate");
	}
	players_start(&players, clients, 3, 60);
	players_expect(&players);
	/* And a barrier that is removed at one server is soon removed at the others. */
	for (int i = 0; i < 20; i++) {
		ASSERT_OK(hf_barrier_set(gates[i % 3]));
		WAIT_UNTIL(is_set(gates[(i + 1) % 3]) && is_set(gates[(i + 2) % 3]), SOON_MS);
		for (int j = 0; j < 2; j++)
			guests[j] = guest_start(PASS, gates[(i + j + 1) % 3], NULL);
		ASSERT_OK(hf_barrier_remove(gates[i % 3]));
		for (int j = 0; j < 2; j++)
			waiter_join(guests[j], 0);
	}
	for (int i = 0; i < 3; i++) {
		hf_barrier_close(gates[i]);
		ASSERT_OK(hf_client_close(clients[i]));
	}
	test_zookeeper_stop(zookeeper);
}

static void node_made_without_an_answer_is_found_again(void **state)
{
	struct phase phase;

	(void)state;
	phase_begin(&phase, 10000);
	assert_int_equal(
		zk_raw_create(phase.world.eye, "/phase", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	proxy_hold_replies(phase.world.proxy, true);
	struct waiter *guest = guest_start(ENTER, phase.mine, NULL);
	WAIT_UNTIL(inside(&phase) == 1, SOON_MS);
	proxy_cut(phase.world.proxy);
	proxy_hold_replies(phase.world.proxy, false);
	WAIT_UNTIL(stats_of(phase.world.one).reconnects == 1, 10000);
	ASSERT_OK(hf_client_ping(phase.world.one, NULL));
	assert_int_equal(inside(&phase), 1);
	assert_false(waiter_is_over(guest));
	ASSERT_OK(hf_double_barrier_enter(phase.theirs, HF_WAIT(.wait_ms = SOON_MS)));
	waiter_join(guest, 0);
	assert_int_equal(inside(&phase), 3);
	phase_end(&phase);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiter_keeps_waiting_after_its_connection_broke),
		cmocka_unit_test(removal_while_it_was_cut_off_is_noticed),
		cmocka_unit_test(session_that_ends_while_it_waits_is_replaced),
		cmocka_unit_test(server_that_starts_again_still_has_the_barrier),
		cmocka_unit_test(set_without_an_answer_is_done_once_more_and_remove_is_unknown),
		cmocka_unit_test(folders_above_are_reaped_but_never_the_barrier),
		cmocka_unit_test(member_whose_session_ends_is_lost_and_the_others_get_out),
		cmocka_unit_test(member_whose_session_ends_at_the_exit_keeps_nobody),
		cmocka_unit_test(session_that_ends_while_it_comes_in_costs_nothing),
		cmocka_unit_test(connection_that_breaks_on_the_way_changes_nothing),
		cmocka_unit_test(rounds_continue_over_connections_that_break),
		cmocka_unit_test(rounds_continue_over_all_servers_of_an_ensemble),
		cmocka_unit_test(node_made_without_an_answer_is_found_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
