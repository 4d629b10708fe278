/*
 * Hand-overs whose request or reply gets lost: both ends learn the truth, and one holds the lock.
 */
#include "live/handover.h"

#include "support/proxy.h"

/* How long a call waits that is not answered. */
#define UNANSWERED_MS 250

/* Whether the script that moves a hold has run when the connection breaks. */
enum handover_fault { REHEARSAL, REPLY_LOST, REQUEST_LOST, CUT_AT_ONCE, FAULTS };

/* A holder and two waiters on a proxy; the release is in a thread of its own. */
struct world {
	struct test_server *server;
	struct proxy *proxy;
	struct raw *raw;
	hf_client *client;
	hf_kind kind;
	struct row row;
	int64_t release_ms; /* how long the release waits */
	struct waiter *releaser;
};

static void begin(struct world *world, struct test_server *server, hf_kind kind)
{
	memset(world, 0, sizeof(*world));
	world->server = server;
	world->raw = raw_connect(server);
	raw_ok(world->raw, "FLUSHALL", NULL);
	world->proxy = proxy_start(test_server_url(server));
	world->client = open_url(proxy_url(world->proxy), NULL);
	world->kind = kind;
	world->release_ms = 10000;
	row_begin(&world->row, world->client, kind);
}

static void end(struct world *world)
{
	WAIT_UNTIL(!key_exists(world->raw, "orders"), SOON_MS);
	assert_int_equal(raw_integer(world->raw, "DBSIZE", NULL), keys_left(world->kind));
	WAIT_UNTIL(stats_of(world->client).held == 0, SOON_MS);
	row_end(&world->row);
	ASSERT_OK(hf_client_close(world->client));
	raw_close(world->raw);
	proxy_stop(world->proxy);
}

static void start_release(struct world *world)
{
	world->releaser = WAITER(.releases = world->row.lock, .owner = world->row.owner,
	                         .wait_ms = world->release_ms);
}

static void expect_released(struct world *world, int result)
{
	waiter_join(world->releaser, result);
}

/* Whether the hold of the first owner is no longer on the server: it was moved, or released. */
static bool has_moved(struct world *world, const char *identity)
{
	return raw_integer(world->raw, "HEXISTS", "orders", identity, NULL) == 0;
}

static void identify(struct world *world, char *ret_identity, size_t size)
{
	ASSERT_OK(hf_lock_identity(world->row.lock, world->row.owner, ret_identity, size));
}

/* The server has one hold: this waiter's, with the newest token where there are any. */
static void expect_holder(struct world *world, struct waiter *waiter)
{
	int64_t token = 0;
	waiter_expect(waiter, 0);
	expect_hold_of(world->raw, world->row.lock, waiter->options.owner);
	ASSERT_OK(hf_lock_token(world->row.lock, waiter->options.owner, &token));
	if (world->kind == HF_FENCED)
		assert_int_equal(number_at(world->raw, TOKEN_KEY), token);
	assert_int_equal(stats_of(world->client).losses, 0);
}

/* ---- one hand-over that is disturbed ---- */

/* The connection breaks after the server ran the script, before it arrived, or at any time. */
static void lose(struct world *world, enum handover_fault fault, const char *identity)
{
	long long bytes = proxy_request_bytes(world->proxy);
	if (fault == REPLY_LOST)
		proxy_hold_replies(world->proxy, true);
	else if (fault == REQUEST_LOST)
		proxy_hold_requests(world->proxy, true);
	start_release(world);
	if (fault == REPLY_LOST)
		WAIT_UNTIL(has_moved(world, identity), SOON_MS);
	else
		WAIT_UNTIL(proxy_request_bytes(world->proxy) > bytes, SOON_MS);
	if (fault == REQUEST_LOST)
		assert_false(has_moved(world, identity));
	proxy_cut(world->proxy);
	proxy_hold_replies(world->proxy, false);
	proxy_hold_requests(world->proxy, false);
}

/*
 * Returns whether it was a hand-over: on a busy machine the release may have come so late that it
 * was an ordinary one. Then the reply to that was lost, which ends the same way.
 */
static bool play(hf_kind kind, enum handover_fault fault)
{
	struct world world;
	char identity[128];
	begin(&world, live_server, kind);
	row_take(&world.row, 0);
	struct waiter *next = row_add(&world.row, NULL);
	struct waiter *last = row_add(&world.row, NULL);
	identify(&world, identity, sizeof identity);
	uint64_t attempts = stats_of(world.client).attempts;
	if (fault == REHEARSAL)
		start_release(&world);
	else
		lose(&world, fault, identity);
	expect_released(&world, 0);
	expect_holder(&world, next);
	assert_false(waiter_is_over(last));
	/* A hold that was moved counts as one attempt, and as two after a loss. */
	bool moved = fault == REHEARSAL ? handovers(world.client) > 0
	                                : stats_of(world.client).attempts > attempts + 1;
	ASSERT_OK(waiter_release(next));
	expect_holder(&world, last);
	ASSERT_OK(waiter_release(last));
	end(&world);
	return moved;
}

static void play_until_moved(hf_kind kind, enum handover_fault fault)
{
	int i = 0;
	while (!play(kind, fault))
		if (++i == 50)
			fail_msg("never a hand-over, kind %d, fault %d", (int)kind, (int)fault);
}

static void play_kinds(enum handover_fault fault)
{
	for (size_t i = 0; i < MOVING_KINDS; i++) {
		play_until_moved(moving_kinds[i], REHEARSAL);
		play_until_moved(moving_kinds[i], fault);
	}
}

static void lost_reply_ends_both_calls_well(void **state)
{
	(void)state;
	play_kinds(REPLY_LOST);
}

static void lost_request_ends_both_calls_well(void **state)
{
	(void)state;
	play_kinds(REQUEST_LOST);
}

static void connection_cut_right_after_the_request_ends_both_calls_well(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		play_kinds(CUT_AT_ONCE);
}

/* ---- answers that do not arrive while a call waits for them ---- */

/*
 * A hand-over that is done but unanswered; the waiter that gets the lock waits for this long.
 * Returns false if there was no hand-over: then all ends well, and it has to be played again.
 */
static bool begin_unanswered(struct world *world, const hf_acquire_options *options)
{
	char identity[128];
	begin(world, live_server, HF_REENTRANT);
	for (int i = 0; i < 50; i++) {
		row_take(&world->row, 0);
		identify(world, identity, sizeof identity);
		(void)row_add(&world->row, options);
		proxy_hold_replies(world->proxy, true);
		uint64_t attempts = stats_of(world->client).attempts;
		start_release(world);
		WAIT_UNTIL(has_moved(world, identity), SOON_MS);
		if (stats_of(world->client).attempts > attempts)
			return true;
		proxy_hold_replies(world->proxy, false);
		expect_released(world, 0);
		struct waiter *waiter = world->row.waiters[--world->row.count];
		WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
		if (!waiter->result)
			waiter_finish(waiter);
		WAIT_UNTIL(!key_exists(world->raw, "orders"), SOON_MS);
	}
	return false;
}

/* One more gets the lock soon, whatever became of those before. */
static void expect_next_gets_in(struct world *world, struct waiter *next)
{
	expect_holder(world, next);
	ASSERT_OK(waiter_release(next));
	end(world);
}

static void late_answer_after_the_waiter_has_left_frees_the_lock(void **state)
{
	struct world world;

	(void)state;
	assert_true(begin_unanswered(&world, HF_ACQUIRE(.wait_ms = UNANSWERED_MS)));
	struct waiter *next = row_add(&world.row, NULL);
	waiter_expect(world.row.waiters[0], HF_EUNKNOWN);
	proxy_hold_replies(world.proxy, false);
	expect_released(&world, 0);
	expect_next_gets_in(&world, next);
}

static void lost_answer_after_the_waiter_has_left_frees_the_lock(void **state)
{
	struct world world;

	(void)state;
	assert_true(begin_unanswered(&world, HF_ACQUIRE(.wait_ms = UNANSWERED_MS)));
	struct waiter *next = row_add(&world.row, NULL);
	waiter_expect(world.row.waiters[0], HF_EUNKNOWN);
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	expect_released(&world, 0);
	expect_next_gets_in(&world, next);
}

static void late_answer_after_the_release_has_left_is_a_grant(void **state)
{
	struct world world;

	(void)state;
	begin(&world, live_server, HF_REENTRANT);
	row_take(&world.row, 0);
	struct waiter *waiter = row_add(&world.row, NULL);
	world.release_ms = UNANSWERED_MS;
	proxy_hold_replies(world.proxy, true);
	start_release(&world);
	expect_released(&world, HF_EUNKNOWN);
	assert_int_equal(hf_lock_state(world.row.lock, world.row.owner), HF_FREE);
	proxy_hold_replies(world.proxy, false);
	expect_next_gets_in(&world, waiter);
}

static void both_may_leave_and_nothing_stays(void **state)
{
	struct world world;

	(void)state;
	for (int cut = 0; cut < 2; cut++) {
		begin(&world, live_server, HF_FENCED);
		row_take(&world.row, 0);
		struct waiter *waiter = row_add(&world.row, HF_ACQUIRE(.wait_ms = UNANSWERED_MS));
		world.release_ms = UNANSWERED_MS;
		proxy_hold_replies(world.proxy, true);
		start_release(&world);
		expect_released(&world, HF_EUNKNOWN);
		WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
		/* If it was an ordinary release the waiter has never asked. */
		assert_true(waiter->result == HF_EUNKNOWN || waiter->result == HF_ETIMEDOUT);
		if (cut)
			proxy_cut(world.proxy);
		proxy_hold_replies(world.proxy, false);
		end(&world);
	}
}

static void cancel_that_comes_before_a_late_answer_loses_to_the_grant(void **state)
{
	struct world world;
	hf_cancel *cancel = new_cancel();

	(void)state;
	assert_true(begin_unanswered(&world, HF_ACQUIRE(.cancel = cancel)));
	hf_cancel_fire(cancel);
	proxy_hold_replies(world.proxy, false);
	expect_released(&world, 0);
	expect_next_gets_in(&world, world.row.waiters[0]);
	hf_cancel_free(cancel);
}

static void cancel_that_comes_before_a_lost_answer_frees_the_lock(void **state)
{
	struct world world;
	hf_cancel *cancel = new_cancel();

	(void)state;
	assert_true(begin_unanswered(&world, HF_ACQUIRE(.cancel = cancel)));
	struct waiter *next = row_add(&world.row, NULL);
	hf_cancel_fire(cancel);
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	waiter_expect(world.row.waiters[0], HF_ECANCELLED);
	expect_released(&world, 0);
	expect_next_gets_in(&world, next);
	hf_cancel_free(cancel);
}

/* A hold that was moved without an answer and then taken away is not trusted. */
static void hold_forced_before_a_lost_answer_is_asked_for_again(void **state)
{
	struct world world;
	hf_client *peer = open_client(NULL);
	hf_lock *theirs = open_lock(peer, "orders");
	hf_owner *owner = new_owner();

	(void)state;
	assert_true(begin_unanswered(&world, NULL));
	ASSERT_OK(hf_lock_force_release(theirs, NULL));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.owner = owner, .wait_ms = SOON_MS)));
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	expect_released(&world, 0);
	expect_hold_of(world.raw, theirs, owner);
	assert_false(waiter_is_over(world.row.waiters[0]));
	ASSERT_OK(hf_lock_release_with(theirs, HF_RELEASE(.owner = owner)));
	expect_next_gets_in(&world, world.row.waiters[0]);
	hf_owner_free(owner);
	close_both(theirs, peer);
}

/* ---- servers that die with it ---- */

/* It is stopped, so the request is on its way when it dies, and never done. */
static void hand_over_to_a_dead_server_is_done_when_it_is_back(void **state)
{
	struct world world;
	struct test_server *server =
		test_server_start(&(struct test_server_options){.appendonly = true});

	(void)state;
	begin(&world, server, HF_FENCED);
	row_take(&world.row, 0);
	struct waiter *waiter = row_add(&world.row, NULL);
	test_server_freeze(server);
	long long bytes = proxy_request_bytes(world.proxy);
	start_release(&world);
	WAIT_UNTIL(proxy_request_bytes(world.proxy) > bytes, SOON_MS);
	restart_server(server, &world.raw);
	expect_released(&world, 0);
	expect_next_gets_in(&world, waiter);
	test_server_stop(server);
}

/* ---- all at once ---- */

/* Breaks the connection in one way or another, and lets it heal. */
static void disturb(struct proxy *proxy, int number)
{
	if (number % 3 == 1)
		proxy_hold_replies(proxy, true);
	else if (number % 3 == 2)
		proxy_hold_requests(proxy, true);
	test_pause();
	proxy_cut(proxy);
	proxy_hold_replies(proxy, false);
	proxy_hold_requests(proxy, false);
}

static void crew_on_a_bad_line_stays_alone(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), NULL);
	struct crew *crew =
		CREW_NEW(.lock = open_named(client, HF_FENCED, "orders"), .rough = true);

	(void)state;
	crew_start(crew);
	for (int i = 0; i < 60; i++) {
		uint64_t before = handovers(client);
		WAIT_UNTIL(handovers(client) >= before + 5, 20000);
		disturb(proxy, i);
	}
	crew_stop(crew);
	hf_stats stats = stats_of(client);
	print_message("%lld turns, %llu hand-overs, %llu requests without an answer\n", crew->turns,
	              (unsigned long long)stats.handovers, (unsigned long long)stats.unknowns);
	assert_int_equal(atomic_load(&crew->lost), 0);
	assert_int_equal(atomic_load(&crew->unknown), 0);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.held, 0);
	assert_true(stats.reconnects >= 60);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	assert_int_equal(number_at(live_raw, TOKEN_KEY), atomic_load(&crew->newest));
	crew_free(crew);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(lost_reply_ends_both_calls_well),
		LIVE_STORY(lost_request_ends_both_calls_well),
		LIVE_STORY(connection_cut_right_after_the_request_ends_both_calls_well),
		LIVE_STORY(late_answer_after_the_waiter_has_left_frees_the_lock),
		LIVE_STORY(lost_answer_after_the_waiter_has_left_frees_the_lock),
		LIVE_STORY(late_answer_after_the_release_has_left_is_a_grant),
		LIVE_STORY(both_may_leave_and_nothing_stays),
		LIVE_STORY(cancel_that_comes_before_a_late_answer_loses_to_the_grant),
		LIVE_STORY(cancel_that_comes_before_a_lost_answer_frees_the_lock),
		LIVE_STORY(hold_forced_before_a_lost_answer_is_asked_for_again),
		LIVE_STORY(hand_over_to_a_dead_server_is_done_when_it_is_back),
		LIVE_STORY(crew_on_a_bad_line_stays_alone),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
