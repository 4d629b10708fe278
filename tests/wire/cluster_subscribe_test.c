/* Waiters and holders in a cluster: subscriptions and renewals follow the slot. */
#include "wire/calls.h"

/* clang-format off */
#define PUSH_ON_CHANNEL(kind, rest) ">3\r\n+" kind "\r\n$31\r\n" CHANNEL "\r\n" rest
/* clang-format on */
#define LEFT     PUSH_ON_CHANNEL("sunsubscribe", ":0\r\n")
#define SMESSAGE PUSH_ON_CHANNEL("smessage", "$1\r\n0\r\n")
#define MSG      PUSH_ON_CHANNEL("message", "$1\r\n0\r\n")

#define SHORT_WATCHDOG_MS 3000

/* Somebody else holds the lock, and says so at every node. */
static struct waiter *start_waiter(void)
{
	for (int i = 0; i < NODES; i++)
		set_reply(i, ACQUIRE, HELD);
	return waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = 3 * PATIENCE_MS));
}

/* It has subscribed at this node, and has asked again after that. */
static void await_waiting(int node, int subscribe)
{
	WAIT_UNTIL(responder_count(scene.node[node], subscribe) >= 1, PATIENCE_MS);
	WAIT_UNTIL(count_all(node, ACQUIRE) >= 1 &&
	                   responder_matched_at(scene.node[node], ACQUIRE) >=
	                           responder_matched_at(scene.node[node], subscribe),
	           PATIENCE_MS);
}

static void expect_granted(struct waiter *waiter)
{
	waiter_finish(waiter);
	assert_int_equal(stats_of(scene.client).grants, 1);
	assert_int_equal(losses, 0);
}

/* ---- which messages ---- */

struct choice {
	const char *setting; /* in the URL */
	const char *probe;   /* the reply to it */
	bool is_sharded;
	bool is_probed;
};

static const struct choice choices[] = {
	{"", NULL, true, true},
	{"?sharded=auto", NULL, true, true},
	{"?sharded=auto", NO_PROBE, false, true},
	{"?sharded=auto",
         "-NOPERM this user has no permissions to run the 'pubsub|shardnumsub' command\r\n", false,
         true},
	{"?sharded=on", NO_PROBE, true, false},
	{"?sharded=off", NULL, false, false},
};

static int count_logged(const char *part)
{
	int count = 0;
	pthread_mutex_lock(&log_mutex);
	for (const char *at = log_text; (at = strstr(at, part)); at++)
		count++;
	pthread_mutex_unlock(&log_mutex);
	return count;
}

static void wait_by_choice(const struct choice *choice)
{
	int subscribe = choice->is_sharded ? SSUBSCRIBE : SUBSCRIBE;
	char *url = check_format("%s%s", scene.url, choice->setting);
	for (int i = 0; choice->probe && i < NODES; i++)
		responder_set(scene.node[i], PROBE, choice->probe);
	set_map(2);
	open_scene(url);
	struct waiter *waiter = start_waiter();
	await_waiting(2, subscribe);
	set_reply(2, ACQUIRE, GRANTED);
	responder_push(scene.node[2], subscribe, choice->is_sharded ? SMESSAGE : MSG);
	expect_granted(waiter);
	assert_int_equal(count_everywhere(choice->is_sharded ? SUBSCRIBE : SSUBSCRIBE), 0);
	assert_int_equal(count_everywhere(subscribe), 1);
	if (choice->is_probed)
		assert_int_equal(count_everywhere(PROBE), 1);
	free(url);
}

static void the_setting_and_the_servers_choose_the_messages(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
		wait_by_choice(&choices[i]);
		renew_scene();
	}
}

/* An old server is not worth a warning, nor is what the program has chosen itself. */
static void a_user_without_the_right_to_probe_is_warned_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
		const struct choice *choice = &choices[i];
		wait_by_choice(choice);
		bool is_denied = choice->probe && strstr(choice->probe, "NOPERM");
		if (is_denied)
			WAIT_UNTIL(was_logged("+pubsub|shardnumsub"), PATIENCE_MS);
		/* Another connection of the same client does not repeat it. */
		for (int n = 0; n < NODES; n++)
			responder_drop(scene.node[n]);
		WAIT_UNTIL(call_is_locked() == 0, PATIENCE_MS);
		close_client();
		assert_int_equal(count_logged("+pubsub|shardnumsub"), is_denied ? 1 : 0);
		renew_scene();
	}
}

/* Waiters hear only what is published in the same way. */
static void releases_publish_as_waiters_listen(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
		char *url = check_format("%s%s", scene.url, choices[i].setting);
		for (int n = 0; choices[i].probe && n < NODES; n++)
			responder_set(scene.node[n], PROBE, choices[i].probe);
		open_scene(url);
		acquire();
		release();
		char *sent = responder_last(scene.node[0], RELEASE);
		assert_non_null(sent);
		assert_int_equal(strstr(sent, " SPUBLISH") != NULL, choices[i].is_sharded);
		free(sent);
		free(url);
		renew_scene();
	}
}

/* Otherwise one busy server would decide about the messages for as long as the client lives. */
static void a_busy_server_does_not_choose_the_messages(void **state)
{
	(void)state;
	responder_set_next(
		scene.node[0], PROBE, 1,
		"-BUSY Redis is busy running a script. You can only call SCRIPT KILL.\r\n");
	open_scene(scene.url);
	acquire();
	release();
	char *sent = responder_last(scene.node[0], RELEASE);
	assert_non_null(sent);
	assert_non_null(strstr(sent, " SPUBLISH"));
	free(sent);
}

/* ---- the end of a subscription ---- */

/* A wait in vain, until this node was asked to end the subscription. */
static void wait_and_leave(int unsubscribe)
{
	for (int i = 0; i < NODES; i++)
		set_reply(i, ACQUIRE, HELD);
	assert_int_equal(hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = 100)), HF_ETIMEDOUT);
	WAIT_UNTIL(responder_count(scene.node[0], unsubscribe) == 1, PATIENCE_MS);
}

static void a_refused_sunsubscribe_shifts_no_replies(void **state)
{
	(void)state;
	open_scene(scene.url);
	responder_set(scene.node[0], SUNSUBSCRIBE, "-NOPERM this user may not\r\n");
	wait_and_leave(FENCE);
	assert_int_equal(hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	set_reply(0, ACQUIRE, GRANTED);
	acquire();
	release();
	assert_int_equal(stats_of(scene.client).reconnects, 0);
}

/* The reply to the next request must not be mistaken for that of the fence. */
static void a_refused_fence_ends_the_connection(void **state)
{
	(void)state;
	open_scene(scene.url);
	responder_set_next(scene.node[0], FENCE, 1, "-MISCONF errors writing to the AOF file\r\n");
	wait_and_leave(FENCE);
	assert_int_equal(hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(stats_of(scene.client).reconnects, 1);
	assert_int_equal(stats_of(scene.client).grants, 0);
	set_reply(0, ACQUIRE, GRANTED);
	acquire();
	release();
}

static void a_refused_unsubscribe_is_not_repeated(void **state)
{
	char *url = check_format("%s?sharded=off", scene.url);
	(void)state;
	open_scene(url);
	free(url);
	responder_set(scene.node[0], UNSUBSCRIBE, "-NOPERM this user may not\r\n");
	wait_and_leave(UNSUBSCRIBE);
	for (int i = 0; i < 20; i++)
		assert_int_equal(call_is_locked(), 0);
	assert_int_equal(count_everywhere(UNSUBSCRIBE), 1);
}

/* A message that is not for the connection it arrives on, or for nobody, wakes up no one. */
static void messages_of_no_concern_are_ignored(void **state)
{
	(void)state;
	open_scene(scene.url);
	struct waiter *waiter = start_waiter();
	await_waiting(0, SSUBSCRIBE);
	responder_push(scene.node[0], SSUBSCRIBE,
	               ">3\r\n+smessage\r\n+other\r\n+0\r\n>1\r\n+smessage\r\n>0\r\n"
	               ">2\r\n+sunsubscribe\r\n+other\r\n>3\r\n+sunsubscribe\r\n+other\r\n:0\r\n"
	               ">3\r\n+smessage\r\n:5\r\n_\r\n");
	assert_int_equal(call_is_locked(), 0);
	assert_false(waiter_is_over(waiter));
	set_reply(0, ACQUIRE, GRANTED);
	responder_push(scene.node[0], SSUBSCRIBE, SMESSAGE);
	expect_granted(waiter);
}

/* ---- subscriptions follow the slot ---- */

/* The server ends the subscription when the slot leaves it; the lock is free by then. */
static void a_subscription_that_the_server_ends_is_made_at_the_owner(void **state)
{
	(void)state;
	open_scene(scene.url);
	struct waiter *waiter = start_waiter();
	await_waiting(0, SSUBSCRIBE);
	set_map(1);
	for (int i = 0; i < NODES; i++)
		set_all_replies(i, i == 1 ? NULL : scene.moved[1]);
	responder_set(scene.node[0], SSUBSCRIBE, scene.moved[1]);
	set_reply(1, ACQUIRE, HELD);
	set_next_reply(1, ACQUIRE, 1, HELD);
	long long before = test_now_ms();
	responder_push(scene.node[0], SSUBSCRIBE, LEFT);
	await_waiting(1, SSUBSCRIBE);
	assert_in_range(test_now_ms() - before, 0, 3000);
	set_reply(1, ACQUIRE, GRANTED);
	responder_push(scene.node[1], SSUBSCRIBE, SMESSAGE);
	expect_granted(waiter);
	assert_int_equal(responder_count(scene.node[1], RELEASE), 1);
}

/* The release was published between the move and the new subscription: nobody will say it again. */
static void after_a_new_subscription_the_waiter_asks_again(void **state)
{
	(void)state;
	open_scene(scene.url);
	struct waiter *waiter = start_waiter();
	await_waiting(0, SSUBSCRIBE);
	set_map(1);
	set_all_replies(0, scene.moved[1]);
	responder_set(scene.node[0], SSUBSCRIBE, scene.moved[1]);
	set_reply(1, ACQUIRE, GRANTED);
	responder_push(scene.node[0], SSUBSCRIBE, LEFT);
	expect_granted(waiter);
	assert_int_equal(responder_count(scene.node[1], ACQUIRE), 1);
	assert_int_equal(count_everywhere(SUNSUBSCRIBE) > 1, 0);
}

/* The server ended it, but the slot has not moved: it was taken back, or the map is old. */
static void a_subscription_that_ends_without_a_move_is_made_again(void **state)
{
	(void)state;
	open_scene(scene.url);
	struct waiter *waiter = start_waiter();
	await_waiting(0, SSUBSCRIBE);
	responder_push(scene.node[0], SSUBSCRIBE, LEFT);
	WAIT_UNTIL(responder_count(scene.node[0], SSUBSCRIBE) == 2, PATIENCE_MS);
	await_waiting(0, SSUBSCRIBE);
	set_reply(0, ACQUIRE, GRANTED);
	responder_push(scene.node[0], SSUBSCRIBE, SMESSAGE);
	expect_granted(waiter);
	assert_int_equal(responder_accepted(scene.node[0]) > 2, 0);
}

/* A server that ends each subscription at once is not subscribed to in a busy loop. */
static void subscriptions_that_never_last_are_made_with_pauses(void **state)
{
	(void)state;
	open_scene(scene.url);
	for (int i = 0; i < NODES; i++)
		responder_set(scene.node[i], SSUBSCRIBE, PUSHED("ssubscribe", ":1\r\n") LEFT);
	struct waiter *waiter = start_waiter();
	await_waiting(0, SSUBSCRIBE);
	long long before = test_now_ms();
	int count = count_everywhere(SSUBSCRIBE), asks = count_everywhere(ACQUIRE);
	WAIT_UNTIL(test_now_ms() - before >= 1500, PATIENCE_MS);
	long long took = test_now_ms() - before;
	assert_in_range(count_everywhere(SSUBSCRIBE) - count, 0, 2 + took / 50);
	assert_in_range(count_everywhere(ACQUIRE) - asks, 0, 2 + took / 50);
	/* It still asks now and then, since it does not hear anything. */
	set_reply(0, ACQUIRE, GRANTED);
	expect_granted(waiter);
}

static void a_subscription_that_is_moved_is_followed(void **state)
{
	(void)state;
	open_scene(scene.url);
	responder_set(scene.node[0], SSUBSCRIBE, scene.moved[1]);
	struct waiter *waiter = start_waiter();
	WAIT_UNTIL(responder_count(scene.node[0], SSUBSCRIBE) >= 1, PATIENCE_MS);
	set_all_replies(0, scene.moved[1]);
	set_map(1);
	await_waiting(1, SSUBSCRIBE);
	set_reply(1, ACQUIRE, GRANTED);
	responder_push(scene.node[1], SSUBSCRIBE, SMESSAGE);
	expect_granted(waiter);
}

/* The first ask was moved, so the subscription is made at the owner in the first place. */
static void the_second_ask_is_sent_where_the_first_one_was_answered(void **state)
{
	(void)state;
	open_scene(scene.url);
	struct waiter *waiter;
	set_map(1);
	for (int i = 0; i < NODES; i++)
		set_reply(i, ACQUIRE, i == 1 ? HELD : scene.moved[1]);
	waiter = waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = 3 * PATIENCE_MS));
	await_waiting(1, SSUBSCRIBE);
	assert_int_equal(responder_count(scene.node[0], SSUBSCRIBE), 0);
	set_reply(1, ACQUIRE, GRANTED);
	responder_push(scene.node[1], SSUBSCRIBE, SMESSAGE);
	expect_granted(waiter);
}

/* Only the second ask of the waiter meets the redirection. */
static void a_second_ask_is_redirected_like_any_request(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		open_scene(scene.url);
		set_next_reply(0, ACQUIRE, 1, HELD);
		set_reply(0, ACQUIRE, i ? scene.ask[1] : scene.moved[1]);
		if (!i)
			set_map(1);
		struct waiter *waiter =
			waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = 3 * PATIENCE_MS));
		waiter_expect(waiter, 0);
		assert_int_equal(responder_count(scene.node[1], i ? ASKED_ACQUIRE : ACQUIRE), 1);
		assert_int_equal(stats_of(scene.client).grants, 1);
		set_all_replies(0, NULL);
		waiter_finish(waiter);
		renew_scene();
	}
}

/* The connection that carried the subscription is lost, and the slot has another master by then. */
static void a_waiter_follows_after_a_failover(void **state)
{
	(void)state;
	open_scene(scene.url);
	struct waiter *waiter = start_waiter();
	await_waiting(0, SSUBSCRIBE);
	set_map(2);
	for (int i = 0; i < 2; i++)
		set_all_replies(i, scene.moved[2]);
	responder_drop(scene.node[0]);
	await_waiting(2, SSUBSCRIBE);
	set_reply(2, ACQUIRE, GRANTED);
	responder_push(scene.node[2], SSUBSCRIBE, SMESSAGE);
	expect_granted(waiter);
}

/* With plain messages, too, the waiter listens at the slot's master. */
static void plain_subscriptions_follow_the_slot(void **state)
{
	char *url = check_format("%s?sharded=off", scene.url);
	(void)state;
	open_scene(url);
	struct waiter *waiter = start_waiter();
	await_waiting(0, SUBSCRIBE);
	set_map(1);
	set_all_replies(0, scene.moved[1]);
	set_reply(1, STATE, node_rules[STATE].reply);
	assert_int_equal(call_is_locked(), 0); /* it learns of the move */
	await_waiting(1, SUBSCRIBE);
	set_reply(1, ACQUIRE, GRANTED);
	responder_push(scene.node[1], SUBSCRIBE, MSG);
	expect_granted(waiter);
	free(url);
}

/* ---- renewals follow the slot ---- */

static void open_with_watchdog(void)
{
	scene.options.watchdog_ms = SHORT_WATCHDOG_MS;
	open_scene(scene.url);
	acquire();
}

static const char *watchdog_reply; /* to the renewals at the first node; NULL: the one that moves */

static void renew_after(bool moves)
{
	open_with_watchdog();
	if (moves)
		set_map(1);
	set_reply(0, RENEW, watchdog_reply);
	WAIT_UNTIL(count_all(1, RENEW) >= 1, PATIENCE_MS);
	WAIT_UNTIL(stats_of(scene.client).renewals >= 1, PATIENCE_MS);
	assert_int_equal(losses, 0);
	assert_int_equal(hf_lock_state(scene.lock, NULL), HF_HELD);
	set_reply(0, RENEW, node_rules[RENEW].reply);
	release();
}

static void renewals_are_redirected_like_any_request(void **state)
{
	(void)state;
	watchdog_reply = scene.moved[1];
	renew_after(true);
	renew_scene();
	watchdog_reply = scene.ask[1];
	renew_after(false);
	assert_int_equal(responder_count(scene.node[1], ASKED_RENEW) +
	                         responder_count(scene.node[1], ASKED_WHOLE_RENEW),
	                 count_all(1, RENEW));
	renew_scene();
	watchdog_reply = READONLY;
	renew_after(true);
}

static void renewals_that_are_refused_for_now_are_repeated_in_time(void **state)
{
	static const char *const replies[] = {TRYAGAIN, CLUSTERDOWN, LOADING, MASTERDOWN};
	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		open_with_watchdog();
		set_next_reply(0, RENEW, 2, replies[i]);
		set_next_reply(0, WHOLE_RENEW, 2, replies[i]);
		WAIT_UNTIL(count_all(0, RENEW) >= 3, PATIENCE_MS);
		WAIT_UNTIL(stats_of(scene.client).renewals >= 1, PATIENCE_MS);
		assert_int_equal(losses, 0);
		assert_true(hf_lock_remaining(scene.lock, NULL) > 0);
		release();
		renew_scene();
	}
}

/* A call of somebody else finds out that the slot has moved: the hold is renewed there at once. */
static void a_new_owner_is_sent_the_renewal_at_once(void **state)
{
	(void)state;
	open_scene(scene.url); /* its holds are renewed after ten seconds */
	acquire();
	set_map(1);
	set_all_replies(0, scene.moved[1]);
	assert_int_equal(call_available(), 0);
	WAIT_UNTIL(count_all(1, RENEW) >= 1, 5000);
	assert_int_equal(count_all(0, RENEW), 0);
	release();
	assert_int_equal(responder_count(scene.node[1], RELEASE), 1);
	assert_int_equal(losses, 0);
}

/* The new master never got the hold. */
static void a_hold_that_the_new_owner_does_not_have_is_lost(void **state)
{
	(void)state;
	open_scene(scene.url);
	acquire();
	set_map(1);
	set_all_replies(0, scene.moved[1]);
	set_reply(1, RENEW, "*1\r\n:0\r\n");
	set_reply(1, RELEASE, GONE);
	assert_int_equal(call_available(), 0);
	WAIT_UNTIL(losses == 1, 5000);
	assert_int_equal(hf_lock_release(scene.lock), HF_ELOST);
}

/* The connection is lost, and the slot has another master by then. */
static void a_hold_follows_after_a_failover(void **state)
{
	(void)state;
	open_scene(scene.url);
	acquire();
	set_map(2);
	for (int i = 0; i < 2; i++)
		set_all_replies(i, scene.moved[2]);
	responder_drop(scene.node[0]);
	WAIT_UNTIL(count_all(2, RENEW) >= 1, PATIENCE_MS);
	release();
	assert_int_equal(count_all(2, RELEASE), 1);
	assert_int_equal(losses, 0);
	/* The number of the connection to the old master means nothing to the new one. */
	assert_int_equal(count_all(2, KILL), 0);
}

/* A script may name keys of one slot only. */
static void holds_of_different_slots_are_renewed_by_different_scripts(void **state)
{
	hf_lock *hello = NULL; /* in another slot of the same node */
	struct wire wire = {0};
	(void)state;
	open_with_watchdog();
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, "hello", &hello));
	EXPECT_RC(&wire, 0, hf_lock_acquire(hello, NULL));
	WAIT_UNTIL(stats_of(scene.client).renewals >= 4, PATIENCE_MS);
	assert_true(count_all(0, RENEW) >= 4);
	for (int rule = RENEW; rule <= WHOLE_RENEW; rule++) {
		char *sent = responder_last(scene.node[0], rule);
		assert_true(!sent || !strstr(sent, " hello") || !strstr(sent, " orders"));
		free(sent);
	}
	EXPECT_RC(&wire, 0, hf_lock_release(hello));
	hf_lock_close(hello);
	release();
	assert_int_equal(losses, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_setting_and_the_servers_choose_the_messages),
		TEST(a_user_without_the_right_to_probe_is_warned_once),
		TEST(releases_publish_as_waiters_listen),
		TEST(a_busy_server_does_not_choose_the_messages),
		TEST(a_refused_sunsubscribe_shifts_no_replies),
		TEST(a_refused_fence_ends_the_connection),
		TEST(a_refused_unsubscribe_is_not_repeated),
		TEST(messages_of_no_concern_are_ignored),
		TEST(a_subscription_that_the_server_ends_is_made_at_the_owner),
		TEST(after_a_new_subscription_the_waiter_asks_again),
		TEST(a_subscription_that_ends_without_a_move_is_made_again),
		TEST(subscriptions_that_never_last_are_made_with_pauses),
		TEST(a_subscription_that_is_moved_is_followed),
		TEST(the_second_ask_is_sent_where_the_first_one_was_answered),
		TEST(a_second_ask_is_redirected_like_any_request),
		TEST(a_waiter_follows_after_a_failover),
		TEST(plain_subscriptions_follow_the_slot),
		TEST(renewals_are_redirected_like_any_request),
		TEST(renewals_that_are_refused_for_now_are_repeated_in_time),
		TEST(a_new_owner_is_sent_the_renewal_at_once),
		TEST(a_hold_that_the_new_owner_does_not_have_is_lost),
		TEST(a_hold_follows_after_a_failover),
		TEST(holds_of_different_slots_are_renewed_by_different_scripts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
