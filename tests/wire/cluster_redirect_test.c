/*
 * What every call does when a cluster's node does not execute its request but says where or when to
 * send it.
 */
#include "wire/calls.h"

/* ---- MOVED ---- */

/* The slot has moved to the second node, and every node knows it. */
static void move_slot(void)
{
	set_all_replies(0, scene.moved[1]);
	set_map(1);
}

static void follow_move(const struct call *call)
{
	prepare_call(call);
	int before = sent_before(call);
	move_slot();
	expect_call(call, 0);
	/* Not even once if the map was read just before. */
	assert_in_range(responder_count(scene.node[0], call->rule) - before, 0, 1);
	expect_count(call->name, 1, call->rule, 1);
	expect_count(call->name, 1, ASKING, 0);
	expect_no_doubt(call);
	if (is_grant(call))
		assert_int_equal(stats_of(scene.client).grants, before + 1);
}

static void a_moved_request_is_sent_to_the_new_owner(void **state)
{
	(void)state;
	for_each_keyed_call(follow_move);
}

/* Other slots may have moved, too. The map is not asked for more than once a second. */
static void after_a_move_the_map_is_read_again(void **state)
{
	(void)state;
	open_scene(scene.url);
	int maps = count_everywhere(MAP);
	long long began_at = test_now_ms();
	for (int i = 0; i < 6; i++) {
		set_all_replies(i % 2, scene.moved[1 - i % 2]);
		set_all_replies(1 - i % 2, NULL);
		set_map(1 - i % 2);
		assert_int_equal(call_is_locked(), 0);
		assert_int_equal(call_available(), 0);
	}
	WAIT_UNTIL(count_everywhere(MAP) > maps, PATIENCE_MS);
	assert_in_range(count_everywhere(MAP) - maps, 1, (test_now_ms() - began_at) / 1000 + 2);
}

static void after_a_move_the_new_owner_is_asked_first(void **state)
{
	(void)state;
	open_scene(scene.url);
	move_slot();
	acquire();
	release();
	acquire();
	release();
	assert_in_range(count_all(0, ACQUIRE), 0, 1);
	assert_int_equal(count_all(0, RELEASE), 0);
	assert_int_equal(count_all(1, ACQUIRE), 2);
	assert_int_equal(count_all(1, RELEASE), 2);
	assert_int_equal(stats_of(scene.client).grants, 2);
}

/* A request that was moved says more than a map that another node has not updated yet. */
static void a_move_is_believed_before_the_map_says_so(void **state)
{
	(void)state;
	open_scene(scene.url);
	set_all_replies(0, scene.moved[1]);
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
	assert_int_equal(count_all(1, RELEASE), 1);
	assert_in_range(count_all(0, ACQUIRE) + count_all(0, RELEASE), 1, 2);
	assert_int_equal(stats_of(scene.client).grants, 1);
	assert_int_equal(losses, 0);
}

/* Each node has a script cache of its own. */
static void send_text_to_new_owner(const struct call *call)
{
	if (call->rule == TOKEN)
		return;
	prepare_call(call);
	move_slot();
	responder_set(scene.node[1], call->rule, NOSCRIPT);
	expect_call(call, 0);
	/* What is held is renewed as well, because the owner is new. */
	assert_in_range(responder_count(scene.node[1], call->rule), 1, is_renewal(call) ? 2 : 1);
	assert_in_range(responder_count(scene.node[1], call->rule + 1), 1,
	                is_renewal(call) ? 2 : 1);
	expect_count(call->name, 0, call->rule + 1, 0);
	expect_no_doubt(call);
}

static void a_new_owner_without_the_script_gets_its_text(void **state)
{
	(void)state;
	for_each_keyed_call(send_text_to_new_owner);
}

/* The third node has the slot by the time the second one is asked. */
static void follow_two_moves(const struct call *call)
{
	prepare_call(call);
	set_all_replies(0, scene.moved[1]);
	set_all_replies(1, scene.moved[2]);
	set_map(2);
	expect_call(call, 0);
	/* While the second node is not connected, the map may say where to go. */
	assert_in_range(responder_count(scene.node[1], call->rule), 0, 1);
	expect_count(call->name, 2, call->rule, 1);
	expect_no_doubt(call);
}

static void two_moves_in_a_row_are_followed(void **state)
{
	(void)state;
	for_each_keyed_call(follow_two_moves);
}

/* ---- ASK ---- */

static void follow_ask(const struct call *call)
{
	int locked = 0;
	prepare_call(call);
	int before = sent_before(call);
	set_all_replies(0, scene.ask[1]);
	set_all_replies(1, scene.moved[0]); /* without ASKING the slot is still the first node's */
	expect_call(call, 0);
	/* While the second node is not connected, the first one is asked again. */
	assert_in_range(responder_count(scene.node[0], call->rule) - before, 1, 5);
	expect_count(call->name, 0, ASKING, 0);
	expect_count(call->name, 1, ASKING, 1);
	expect_count(call->name, 1, asked_rule(call), 1);
	expect_count(call->name, 1, call->rule, 0);
	expect_no_doubt(call);
	if (is_grant(call))
		assert_int_equal(stats_of(scene.client).grants, before + 1);
	/* The map does not change, and the next request is for the first node again. */
	set_all_replies(0, NULL);
	assert_int_equal(hf_lock_is_locked(scene.lock, &locked), 0);
	assert_true(count_all(0, STATE) >= 1);
	assert_in_range(count_all(1, STATE), 0, call->rule == STATE);
}

static void an_ask_is_followed_once(void **state)
{
	(void)state;
	for_each_keyed_call(follow_ask);
}

static void send_text_after_ask(const struct call *call)
{
	if (call->rule == TOKEN)
		return;
	prepare_call(call);
	set_all_replies(0, scene.ask[1]);
	set_all_replies(1, scene.moved[0]);
	responder_set(scene.node[1], call->rule - 2, NOSCRIPT);
	expect_call(call, 0);
	expect_count(call->name, 1, ASKING, 2);
	expect_count(call->name, 1, call->rule - 2, 1);
	expect_count(call->name, 1, call->rule - 1, 1);
	expect_count(call->name, 1, call->rule + 1, 0);
	expect_no_doubt(call);
}

static void a_script_that_is_missing_after_an_ask_is_sent_with_asking(void **state)
{
	(void)state;
	for_each_keyed_call(send_text_after_ask);
}

/* A second round trip would let another request of this connection use up the ASKING. */
static void asking_and_the_request_are_sent_together(void **state)
{
	(void)state;
	open_scene(scene.url);
	set_all_replies(0, scene.ask[1]);
	responder_set(scene.node[1], ASKING, NULL); /* a client that waits for it waits for ever */
	struct waiter *waiter = waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
	WAIT_UNTIL(responder_count(scene.node[1], ASKED_ACQUIRE) == 1, PATIENCE_MS);
	responder_set(scene.node[1], ASKING, node_rules[ASKING].reply);
	set_all_replies(0, NULL);
	responder_drop(scene.node[1]);
	waiter_finish(waiter);
	assert_int_equal(losses, 0);
}

/*
 * The keys are on both sides: the second node cannot execute it either, until they have all
 * arrived.
 */
static void try_again_after_ask(const struct call *call)
{
	int asked = asked_rule(call);
	prepare_call(call);
	set_all_replies(0, scene.ask[1]);
	set_all_replies(1, scene.moved[0]);
	responder_set_next(scene.node[1], asked, 2, TRYAGAIN);
	expect_call(call, 0);
	expect_count(call->name, 1, asked, 3);
	expect_count(call->name, 1, ASKING, 3);
	expect_no_doubt(call);
}

static void a_request_that_must_be_tried_again_after_an_ask_is(void **state)
{
	(void)state;
	for_each_keyed_call(try_again_after_ask);
}

/* The slot was closed in the meantime. */
static void find_owner_after_ask(const struct call *call)
{
	prepare_call(call);
	int before = sent_before(call);
	responder_set_next(scene.node[0], call->rule, 1, scene.ask[1]);
	responder_set(scene.node[1], asked_rule(call), scene.moved[0]);
	expect_call(call, 0);
	expect_count(call->name, 0, call->rule, before + 2);
	expect_no_doubt(call);
}

static void a_move_after_an_ask_is_followed(void **state)
{
	(void)state;
	for_each_keyed_call(find_owner_after_ask);
}

/* ---- a reply that is lost after a redirection ---- */

static void lose_reply_after_ask(const struct call *call)
{
	int asked = asked_rule(call);
	prepare_call(call);
	set_all_replies(0, scene.ask[1]);
	responder_set_next(scene.node[1], asked, 1, responder_close);
	expect_call(call, is_once(call) ? HF_EUNKNOWN : 0);
	expect_count(call->name, 1, asked, is_once(call) ? 1 : 2);
	if (stats_of(scene.client).unknowns != 1 || losses)
		fail_msg("%s: %d outcomes were unknown, not 1", call->name,
		         (int)stats_of(scene.client).unknowns);
	if (is_grant(call))
		assert_int_equal(stats_of(scene.client).grants, call->before ? 2 : 1);
}

static void a_reply_that_is_lost_after_an_ask_is_reconciled(void **state)
{
	(void)state;
	for_each_keyed_call(lose_reply_after_ask);
}

static void lose_reply_after_move(const struct call *call)
{
	prepare_call(call);
	move_slot();
	responder_set_next(scene.node[1], call->rule, 1, responder_close);
	expect_call(call, is_once(call) ? HF_EUNKNOWN : 0);
	if (responder_count(scene.node[1], call->rule) < (is_once(call) ? 1 : 2))
		fail_msg("%s: it was not sent again", call->name);
	if (stats_of(scene.client).unknowns < 1 || losses)
		fail_msg("%s: no outcome was unknown", call->name);
}

static void a_reply_that_is_lost_after_a_move_is_reconciled(void **state)
{
	(void)state;
	for_each_keyed_call(lose_reply_after_move);
}

static void close_after_asking(const struct call *call)
{
	int asked = asked_rule(call);
	prepare_call(call);
	set_all_replies(0, scene.ask[1]);
	responder_set_next(scene.node[1], ASKING, 1, responder_close);
	/* The client cannot know that its request was not read. */
	expect_call(call, is_once(call) ? HF_EUNKNOWN : 0);
	expect_count(call->name, 1, asked, is_once(call) ? 0 : 1);
	assert_int_equal(losses, 0);
}

static void a_connection_that_closes_after_asking_is_survived(void **state)
{
	(void)state;
	for_each_keyed_call(close_after_asking);
}

/* The record makes the repeat of a release harmless, if both name the same one. */
static void a_repeat_after_an_ask_names_the_same_record(void **state)
{
	(void)state;
	open_scene(scene.url);
	set_all_replies(0, scene.ask[1]);
	responder_set_next(scene.node[1], ASKED_SEMAPHORE_RELEASE, 1, responder_close);
	assert_int_equal(call_semaphore_release(), 0);
	char *first = responder_last(scene.node[0], SEMAPHORE_RELEASE);
	char *second = responder_last(scene.node[1], ASKED_SEMAPHORE_RELEASE);
	assert_non_null(first);
	assert_non_null(second);
	assert_string_equal(first, second);
	free(first);
	free(second);
}

/* The map changes while the request is at the old owner, which never answers. */
static void a_request_in_flight_is_repeated_at_the_new_owner(void **state)
{
	char moved[80];
	hf_lock *delta = NULL; /* in a slot of the second node, which finds out about the move */
	int locked = 0;
	struct wire wire = {0};
	(void)state;
	scene.options.command_timeout_ms = 1500;
	open_scene(scene.url);
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, "delta", &delta));
	set_reply(0, ACQUIRE, NULL);
	struct waiter *waiter = waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
	WAIT_UNTIL(count_all(0, ACQUIRE) == 1, PATIENCE_MS);
	set_map(1);
	(void)snprintf(moved, sizeof moved, "-MOVED 9053 127.0.0.1:%d\r\n", scene.port[2]);
	set_reply(1, STATE, moved);
	EXPECT_RC(&wire, 0, hf_lock_is_locked(delta, &locked));
	waiter_expect(waiter, 0);
	assert_int_equal(count_all(0, ACQUIRE), 1);
	assert_int_equal(count_all(1, ACQUIRE), 1);
	assert_int_equal(stats_of(scene.client).unknowns, 1);
	assert_int_equal(stats_of(scene.client).grants, 1);
	waiter_finish(waiter);
	hf_lock_close(delta);
}

/* ---- many at once ---- */

#define MANY 24

struct crowd {
	hf_lock *lock[MANY];
	hf_owner *owner[MANY];
	struct done done[MANY];
};

/* Acquires this many locks of the slot at the same time. */
static struct crowd *start_crowd(void)
{
	struct crowd *crowd = check_alloc(sizeof *crowd);
	struct wire wire = {0};
	for (int i = 0; i < MANY; i++) {
		char *name = check_format("{orders}:%d", i);
		EXPECT_RC(&wire, 0,
		          hf_lock_open(scene.client, HF_REENTRANT, name, &crowd->lock[i]));
		crowd->owner[i] = new_owner();
		free(name);
	}
	for (int i = 0; i < MANY; i++)
		EXPECT_RC(&wire, 0,
		          hf_lock_acquire_async(
				  crowd->lock[i],
				  HF_ACQUIRE(.wait_ms = PATIENCE_MS, .owner = crowd->owner[i]),
				  note_done, &crowd->done[i]));
	return crowd;
}

static void finish_crowd(struct crowd *crowd)
{
	struct wire wire = {0};
	for (int i = 0; i < MANY; i++)
		WAIT_DONE(&wire, 0, &crowd->done[i]);
	assert_int_equal(stats_of(scene.client).grants, MANY);
	for (int i = 0; i < MANY; i++) {
		EXPECT_RC(
			&wire, 0,
			hf_lock_release_with(crowd->lock[i], HF_RELEASE(.owner = crowd->owner[i])));
		hf_lock_close(crowd->lock[i]);
		hf_owner_free(crowd->owner[i]);
	}
	expect_no_doubt(&calls[0]);
	free(crowd);
}

static void requests_that_are_moved_together_are_all_followed(void **state)
{
	(void)state;
	open_scene(scene.url);
	int maps = count_everywhere(MAP);
	move_slot();
	struct crowd *crowd = start_crowd();
	finish_crowd(crowd);
	assert_in_range(count_all(0, ACQUIRE), 0, MANY);
	assert_int_equal(count_all(1, ACQUIRE), MANY);
	assert_int_equal(count_all(1, RELEASE), MANY);
	assert_in_range(count_everywhere(MAP) - maps, 0, PATIENCE_MS / 1000);
}

/* Each ASKING is for the request that follows it, and for no other. */
static void requests_that_are_asked_together_are_all_followed(void **state)
{
	(void)state;
	open_scene(scene.url);
	set_all_replies(0, scene.ask[1]);
	set_all_replies(1, scene.moved[0]);
	struct crowd *crowd = start_crowd();
	finish_crowd(crowd);
	assert_int_equal(responder_count(scene.node[1], ASKED_ACQUIRE), MANY);
	assert_int_equal(responder_count(scene.node[1], ACQUIRE), 0);
	assert_int_equal(responder_count(scene.node[1], ASKING), 2 * MANY);
}

/* More addresses than a client remembers: those that lead nowhere are forgotten. */
static void redirections_to_many_addresses_are_survived(void **state)
{
	char ask[2][80];
	(void)state;
	open_scene(scene.url);
	(void)snprintf(ask[0], sizeof ask[0], "-ASK %d 127.0.0.2:1\r\n", SLOT);
	set_all_replies(0, ask[0]);
	struct crowd *crowd = start_crowd();
	for (int i = 1; i < 250; i++) {
		int sent = count_all(0, ACQUIRE);
		(void)snprintf(ask[i % 2], sizeof ask[0], "-ASK %d 127.0.%d.2:1\r\n", SLOT, i);
		set_all_replies(0, ask[i % 2]);
		WAIT_UNTIL(count_all(0, ACQUIRE) > sent, PATIENCE_MS);
	}
	set_all_replies(0, scene.ask[1]);
	finish_crowd(crowd);
	assert_int_equal(responder_count(scene.node[1], ASKED_ACQUIRE), MANY);
}

/* ---- hosts ---- */

static void an_empty_host_is_the_one_that_was_asked(void **state)
{
	char moved[80], ask[80];
	int port = 0;
	(void)state;
	set_styled_map(&(struct map_style){.host = ""}, 0);
	open_scene(scene.url);
	port = responder_port(scene.node[1]);
	(void)snprintf(moved, sizeof moved, "-MOVED %d :%d\r\n", SLOT, port);
	(void)snprintf(ask, sizeof ask, "-ASK %d :%d\r\n", SLOT, port);
	set_all_replies(0, ask);
	acquire();
	assert_int_equal(responder_count(scene.node[1], ASKED_ACQUIRE), 1);
	set_all_replies(0, moved);
	set_styled_map(&(struct map_style){.host = ""}, 1);
	release();
	assert_int_equal(responder_count(scene.node[1], RELEASE), 1);
	expect_no_doubt(&calls[0]);
}

/* Servers that should announce names, and have none, say '?'. The map still has the address. */
static void an_unknown_host_is_found_in_the_map(void **state)
{
	char moved[80];
	(void)state;
	open_scene(scene.url);
	(void)snprintf(moved, sizeof moved, "-MOVED %d ?:%d\r\n", SLOT,
	               responder_port(scene.node[1]));
	set_all_replies(0, moved);
	set_map(1);
	acquire();
	assert_int_equal(count_all(1, ACQUIRE), 1);
	expect_no_doubt(&calls[0]);
}

static void names_of_hosts_are_used(void **state)
{
	char moved[80];
	(void)state;
	set_styled_map(&(struct map_style){.host = "192.0.2.1", .name = ",localhost"}, 0);
	open_scene(scene.url);
	acquire();
	(void)snprintf(moved, sizeof moved, "-MOVED %d localhost:%d\r\n", SLOT,
	               responder_port(scene.node[1]));
	set_all_replies(0, moved);
	set_styled_map(&(struct map_style){.host = "192.0.2.1", .name = ",localhost"}, 1);
	release();
	assert_int_equal(responder_count(scene.node[1], RELEASE), 1);
	expect_no_doubt(&calls[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EVERY_CALL(a_moved_request_is_sent_to_the_new_owner),
		TEST(after_a_move_the_map_is_read_again),
		TEST(after_a_move_the_new_owner_is_asked_first),
		TEST(a_move_is_believed_before_the_map_says_so),
		EVERY_CALL(a_new_owner_without_the_script_gets_its_text),
		EVERY_CALL(two_moves_in_a_row_are_followed),
		EVERY_CALL(an_ask_is_followed_once),
		EVERY_CALL(a_script_that_is_missing_after_an_ask_is_sent_with_asking),
		TEST(asking_and_the_request_are_sent_together),
		EVERY_CALL(a_request_that_must_be_tried_again_after_an_ask_is),
		EVERY_CALL(a_move_after_an_ask_is_followed),
		EVERY_CALL(a_reply_that_is_lost_after_an_ask_is_reconciled),
		EVERY_CALL(a_reply_that_is_lost_after_a_move_is_reconciled),
		EVERY_CALL(a_connection_that_closes_after_asking_is_survived),
		TEST(a_repeat_after_an_ask_names_the_same_record),
		TEST(a_request_in_flight_is_repeated_at_the_new_owner),
		TEST(requests_that_are_moved_together_are_all_followed),
		TEST(requests_that_are_asked_together_are_all_followed),
		TEST(redirections_to_many_addresses_are_survived),
		TEST(an_empty_host_is_the_one_that_was_asked),
		TEST(an_unknown_host_is_found_in_the_map),
		TEST(names_of_hosts_are_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
