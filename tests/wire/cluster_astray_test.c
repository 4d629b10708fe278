/*
 * Redirections of a cluster that lead nowhere: the client neither spins nor hangs, and says what
 * happened.
 */
#include "wire/vain.h"

/* ---- loops ---- */

static void loop_between_two(const struct call *call)
{
	prepare_in_vain(call);
	set_all_replies(0, scene.moved[1]);
	set_all_replies(1, scene.moved[0]);
	expect_in_vain(call, "MOVED");
	if (!call->before)
		expect_recovery();
}

static void a_loop_between_two_nodes_ends_at_the_deadline(void **state)
{
	(void)state;
	for (size_t i = 0; i < VAIN_CALLS; i++) {
		loop_between_two(&vain_calls[i]);
		renew_scene();
	}
}

static void loop_at_one(const struct call *call)
{
	prepare_in_vain(call);
	set_all_replies(0, scene.moved[0]);
	expect_in_vain(call, "MOVED");
	if (!call->before)
		expect_recovery();
}

static void a_node_that_moves_to_itself_is_not_asked_in_a_busy_loop(void **state)
{
	(void)state;
	for (size_t i = 0; i < VAIN_CALLS; i++) {
		loop_at_one(&vain_calls[i]);
		renew_scene();
	}
}

static void loop_of_asks(const struct call *call)
{
	prepare_in_vain(call);
	set_all_replies(0, scene.ask[1]);
	set_all_replies(1, scene.ask[0]);
	for (int i = 0; i < 2; i++) {
		responder_set(scene.node[i], asked_rule(call), scene.ask[1 - i]);
		if (call->rule != TOKEN)
			responder_set(scene.node[i], asked_rule(call) + 1, scene.ask[1 - i]);
	}
	expect_in_vain(call, "ASK");
}

static void a_loop_of_asks_ends_at_the_deadline(void **state)
{
	(void)state;
	for (size_t i = 0; i < VAIN_CALLS; i++) {
		loop_of_asks(&vain_calls[i]);
		renew_scene();
	}
}

static void a_node_that_says_tryagain_for_ever_is_not_asked_in_a_busy_loop(void **state)
{
	(void)state;
	for (size_t i = 0; i < VAIN_CALLS; i++) {
		prepare_in_vain(&vain_calls[i]);
		set_all_replies(0, TRYAGAIN);
		expect_in_vain(&vain_calls[i], "TRYAGAIN");
		if (!vain_calls[i].before)
			expect_recovery();
		renew_scene();
	}
}

/* Each of these makes the client leave the connection, and it must not come back in a busy loop. */
static void a_master_that_refuses_for_ever_is_not_asked_in_a_busy_loop(void **state)
{
	static const char *const replies[] = {
		READONLY, MASTERDOWN, LOADING, CLUSTERDOWN,
		"-UNBLOCKED force unblock from blocking operation, instance state changed\r\n"};
	(void)state;
	for (size_t i = 0; i < VAIN_CALLS; i++) {
		prepare_in_vain(&vain_calls[i]);
		int accepted = responder_accepted(scene.node[0]);
		set_all_replies(0, replies[i % (sizeof replies / sizeof *replies)]);
		expect_in_vain(&vain_calls[i], NULL);
		assert_in_range(responder_accepted(scene.node[0]) - accepted, 0, MOST);
		renew_scene();
	}
}

/* The same node again, a few times, until it knows that it has the slot. */
static void recover_from_own_move(const struct call *call)
{
	prepare_call(call);
	responder_set_next(scene.node[0], call->rule, 8, scene.moved[0]);
	expect_call(call, 0);
	expect_no_doubt(call);
}

static void moves_to_the_same_node_may_end(void **state)
{
	(void)state;
	for_each_keyed_call(recover_from_own_move);
}

/*
 * Renewals, too, must not be sent in a busy loop, and the hold is reported when its time has run
 * out.
 */
static void renewals_in_a_loop_end_with_the_lease(void **state)
{
	(void)state;
	scene.options.watchdog_ms = 2000;
	open_scene(scene.url);
	acquire();
	long long before = test_now_ms();
	for (int i = 0; i < 2; i++)
		set_reply(i, RENEW, scene.moved[1 - i]);
	WAIT_UNTIL(losses == 1, PATIENCE_MS);
	long long took = test_now_ms() - before;
	assert_in_range(took, 1200, PATIENCE_MS);
	assert_in_range(count_everywhere(RENEW), 2, MOST * (took + 1000) / 1000);
	assert_int_equal(hf_lock_state(scene.lock, NULL), HF_LOST);
}

/* ---- targets that do not answer ---- */

/* The node's own map is right, so the request is executed there in the end. */
static void return_from_dead_target(const struct call *call)
{
	char moved[80];
	(void)snprintf(moved, sizeof moved, "-MOVED %d 127.0.0.1:%d\r\n", SLOT, net_dead_port());
	scene.options.connect_timeout_ms = 1000;
	prepare_call(call);
	int before = sent_before(call);
	responder_set_next(scene.node[0], call->rule, 1, moved);
	expect_call(call, 0);
	expect_count(call->name, 0, call->rule, before + 2);
	expect_no_doubt(call);
}

static void a_move_to_a_dead_address_is_given_up_for_the_map(void **state)
{
	(void)state;
	for_each_keyed_call(return_from_dead_target);
}

static void a_dead_target_in_the_map_is_an_error_at_the_deadline(void **state)
{
	(void)state;
	for (size_t i = 0; i < VAIN_CALLS; i++) {
		char moved[80];
		prepare_in_vain(&vain_calls[i]);
		(void)snprintf(moved, sizeof moved, "-MOVED %d 127.0.0.1:%d\r\n", SLOT,
		               net_dead_port());
		set_all_replies(0, moved);
		expect_in_vain(&vain_calls[i], NULL);
		if (!vain_calls[i].before)
			expect_recovery();
		renew_scene();
	}
}

static void return_from_dead_ask(const struct call *call)
{
	char ask[80];
	(void)snprintf(ask, sizeof ask, "-ASK %d 127.0.0.1:%d\r\n", SLOT, net_dead_port());
	scene.options.connect_timeout_ms = 1000;
	prepare_call(call);
	int before = sent_before(call);
	responder_set_next(scene.node[0], call->rule, 1, ask);
	expect_call(call, 0);
	expect_count(call->name, 0, call->rule, before + 2);
	expect_no_doubt(call);
}

static void an_ask_for_a_dead_address_is_sent_to_the_owner_again(void **state)
{
	(void)state;
	for_each_keyed_call(return_from_dead_ask);
}

static void return_from_hung_target(const struct call *call)
{
	scene.options.connect_timeout_ms = 500;
	for (int asks = 0; asks < 2; asks++) {
		prepare_call(call);
		int before = sent_before(call);
		responder_set(scene.node[1], HELLO, NULL);
		responder_set_next(scene.node[0], call->rule, 1,
		                   asks ? scene.ask[1] : scene.moved[1]);
		expect_call(call, 0);
		assert_int_equal(count_all(1, call->rule), 0);
		assert_true(sent_before(call) > before + 1);
		expect_no_doubt(call);
		renew_scene();
		scene.options.connect_timeout_ms = 500;
	}
}

static void a_target_that_hangs_is_given_up_for_the_map(void **state)
{
	(void)state;
	for_each_keyed_call(return_from_hung_target);
}

/* Only names that belong to it wait for a node that hangs. */
static void a_hung_node_does_not_hold_up_the_others(void **state)
{
	hf_lock *delta = NULL; /* of the second node */
	struct wire wire = {0};
	(void)state;
	open_scene(scene.first_url);
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, "delta", &delta));
	responder_set(scene.node[1], HELLO, NULL);
	struct waiter *waiter = waiter_start(delta, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
	WAIT_UNTIL(responder_accepted(scene.node[1]) >= 1, PATIENCE_MS);
	long long before = test_now_ms();
	for (int i = 0; i < 5; i++) {
		acquire();
		release();
	}
	assert_in_range(test_now_ms() - before, 0, 2000);
	assert_false(waiter_is_over(waiter));
	responder_set(scene.node[1], HELLO, node_rules[HELLO].reply);
	responder_drop(scene.node[1]);
	waiter_finish(waiter);
	hf_lock_close(delta);
}

/* A node that answers its greeting and nothing else is lost like any other. */
static void a_node_that_falls_silent_is_noticed(void **state)
{
	struct wire wire = {0};
	(void)state;
	scene.options.command_timeout_ms = LIMIT_MS;
	open_scene(scene.url);
	for (int rule = FIRST_SCRIPT; rule < RULES; rule++)
		responder_set(scene.node[0], rule, NULL);
	EXPECT_RC(&wire, HF_EUNKNOWN, call_semaphore_release());
	set_map(1);
	for (int rule = FIRST_SCRIPT; rule < RULES; rule++)
		responder_set(scene.node[0], rule, scene.moved[1]);
	EXPECT_RC(&wire, 0, call_acquire());
	assert_int_equal(count_all(1, ACQUIRE), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_loop_between_two_nodes_ends_at_the_deadline),
		TEST(a_node_that_moves_to_itself_is_not_asked_in_a_busy_loop),
		TEST(a_loop_of_asks_ends_at_the_deadline),
		TEST(a_node_that_says_tryagain_for_ever_is_not_asked_in_a_busy_loop),
		TEST(a_master_that_refuses_for_ever_is_not_asked_in_a_busy_loop),
		EVERY_CALL(moves_to_the_same_node_may_end),
		TEST(renewals_in_a_loop_end_with_the_lease),
		EVERY_CALL(a_move_to_a_dead_address_is_given_up_for_the_map),
		TEST(a_dead_target_in_the_map_is_an_error_at_the_deadline),
		EVERY_CALL(an_ask_for_a_dead_address_is_sent_to_the_owner_again),
		EVERY_CALL(a_target_that_hangs_is_given_up_for_the_map),
		TEST(a_hung_node_does_not_hold_up_the_others),
		TEST(a_node_that_falls_silent_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
