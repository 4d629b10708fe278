/* Red locks some of whose servers are dead or frozen when they are taken. */
#include "live/red.h"

#include "support/proxy.h"

static void frozen_minority_is_not_waited_for(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 6000);
	test_server_freeze(server[1]);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	/* A thirtieth of the lease, and some time for a loaded machine. */
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 2500);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_BETWEEN(hf_lock_remaining(side.red, NULL), 1, 6000 - 62);
	/* As soon as it can it joins. */
	test_server_thaw(server[1]);
	WAIT_UNTIL(servers_held(&side) == 3, 10000);
	WAIT_UNTIL(waiting_of(&side) == 0, SOON_MS);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

static void dead_minority_is_not_waited_for(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 5, 6000);
	test_server_kill(server[0]);
	test_server_freeze(server[3]);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 2500);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	assert_true(is_ours(&side, 1));
	assert_true(is_ours(&side, 2));
	assert_true(is_ours(&side, 4));
	restart_server(server[0], &raw[0]);
	test_server_thaw(server[3]);
	WAIT_UNTIL(servers_held(&side) == 5, 10000);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

/* Lets the side use this server through the proxy. */
static void reopen_member(struct side *side, int i, const char *url)
{
	close_both(side->member[i], side->client[i]);
	side->client[i] = open_url(url, HF_CLIENT(.watchdog_ms = 6000, EVENTS_TO(&side->seen)));
	side->member[i] = open_lock(side->client[i], NAME);
}

static void await_renewals_of_slow(struct side *side, uint64_t more)
{
	uint64_t first = stats_of(side->client[0]).renewals;
	uint64_t second = stats_of(side->client[1]).renewals;
	WAIT_UNTIL(stats_of(side->client[0]).renewals >= first + more &&
	                   stats_of(side->client[1]).renewals >= second + more,
	           10000);
}

/* They take twice as long as an answer may take, which is a thirtieth of the lease. */
static void slow_minority_joins_later(void **state)
{
	struct side side;
	struct proxy *proxy[2];

	(void)state;
	open_side(&side, 5, 6000);
	hf_lock_close(side.red);
	for (int i = 0; i < 2; i++) {
		proxy[i] = proxy_start(test_server_url(server[i]));
		reopen_member(&side, i, proxy_url(proxy[i]));
		proxy_delay(proxy[i], 200);
	}
	ASSERT_OK(hf_lock_open_red(side.member, 5, &side.red));
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	for (int i = 2; i < 5; i++)
		assert_true(is_ours(&side, i));
	WAIT_UNTIL(holds_of(&side) == 5 && servers_held(&side) == 5, 10000);
	/* They are renewed like the others, and keep the lock together with one quick server. */
	await_renewals_of_slow(&side, 1);
	give_away(2);
	give_away(3);
	await_renewals_of_slow(&side, 2);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(side.red));
	for (int i = 0; i < 2; i++) {
		proxy_delay(proxy[i], 0);
		assert_int_equal(raw_integer(raw[2 + i], "DEL", NAME, NULL), 1);
	}
	expect_nothing_left(&side);
	close_side(&side);
	for (int i = 0; i < 2; i++)
		proxy_stop(proxy[i]);
}

static void released_while_a_server_is_away_it_is_not_taken_there(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	test_server_freeze(server[1]);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_OK(hf_lock_release_with(side.red, HF_RELEASE(.wait_ms = 300)));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	long long thawed_at = test_now_ms();
	test_server_thaw(server[1]);
	expect_nothing_left(&side);
	/* What the frozen server was asked for expires with its lease at the latest. */
	ASSERT_BETWEEN(test_now_ms() - thawed_at, 0, 3000 + 1500);
	close_side(&side);
}

static void unreachable_majority_is_not_a_quorum(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 3000);
	test_server_freeze(server[0]);
	test_server_kill(server[2]);
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ENOQUORUM);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1000);
	ASSERT_CONTAINS(hf_error_detail(), NAME);
	assert_int_equal(raw_integer(raw[1], "DBSIZE", NULL), 0);
	started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 600)), HF_ENOQUORUM);
	ASSERT_BETWEEN(test_now_ms() - started_at, 550, 1600);
	assert_int_equal(raw_integer(raw[1], "DBSIZE", NULL), 0);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
	restart_server(server[2], &raw[2]);
	test_server_thaw(server[0]);
	/* A lease at most after that, nothing of the attempts is left. */
	WAIT_UNTIL(keys_left() == 0 && holds_of(&side) == 0, 6000);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

/* One attempt with a lease that is shorter than a frozen server is waited for. */
static int try_short_lease(struct side *side, hf_owner *owner)
{
	struct done done = {0};
	ASSERT_OK(hf_lock_acquire_async(
		side->red, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT, .lease_ms = 15),
		note_done, &done));
	WAIT_UNTIL(done.calls == 1, SOON_MS);
	if (done.result == 0)
		(void)hf_lock_release_with(side->red, HF_RELEASE(.owner = owner, .wait_ms = 500));
	return done.result;
}

static void lease_that_ends_before_all_were_asked_is_refused(void **state)
{
	struct side side;
	hf_owner *owner = new_owner();
	int result = 0;

	(void)state;
	open_side(&side, 3, 6000);
	/* So that the scripts are known. */
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(side.red));
	test_server_freeze(server[2]);
	/* A thread that does not run for a while may ask the others later, and be right. */
	for (int i = 0; i < 5 && result == 0; i++)
		result = try_short_lease(&side, owner);
	assert_int_not_equal(result, 0);
	assert_int_equal(hf_lock_state(side.red, owner), HF_FREE);
	test_server_thaw(server[2]);
	expect_nothing_left(&side);
	hf_owner_free(owner);
	close_side(&side);
}

static void waiter_gets_the_lock_when_the_majority_is_back(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 6000);
	test_server_kill(server[0]);
	test_server_kill(server[1]);
	struct waiter *waiter = waiter_start(side.red, HF_ACQUIRE(.wait_ms = 20000));
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= 3, SOON_MS);
	restart_server(server[1], &raw[1]);
	waiter_expect(waiter, 0);
	assert_true(is_ours(&side, 1));
	assert_true(is_ours(&side, 2));
	restart_server(server[0], &raw[0]);
	WAIT_UNTIL(servers_held(&side) == 3, 10000);
	waiter_finish(waiter);
	expect_nothing_left(&side);
	close_side(&side);
}

static void cancel_does_not_wait_for_frozen_servers(void **state)
{
	struct side side;
	hf_cancel *cancel = new_cancel();

	(void)state;
	open_side(&side, 3, 6000);
	test_server_freeze(server[0]);
	test_server_freeze(server[1]);
	struct waiter *waiter = waiter_start(side.red, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= 2, SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 1500);
	test_server_thaw(server[0]);
	test_server_thaw(server[1]);
	WAIT_UNTIL(keys_left() == 0 && holds_of(&side) == 0, 8000);
	waiter_free(waiter);
	hf_cancel_free(cancel);
	close_side(&side);
}

static void server_that_was_never_there_costs_nothing(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 30000);
	hf_lock_close(side.red);
	hf_lock_close(side.member[0]);
	ASSERT_OK(hf_client_close(side.client[0]));
	test_server_kill(server[0]);
	side.client[0] = open_url(test_server_url(server[0]), HF_CLIENT(.lazy = 1));
	side.member[0] = open_lock(side.client[0], NAME);
	ASSERT_OK(hf_lock_open_red(side.member, 3, &side.red));
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	assert_true(is_ours(&side, 1));
	assert_true(is_ours(&side, 2));
	ASSERT_OK(hf_lock_release_with(side.red, HF_RELEASE(.wait_ms = 500)));
	restart_server(server[0], &raw[0]);
	expect_nothing_left(&side);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000)));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(side.red));
	expect_nothing_left(&side);
	close_side(&side);
}

/* ---- sides that each get a part of the servers ---- */

#define SIDES  3
#define GRANTS 20 /* of each side */

struct contest {
	struct side side[SIDES];
	struct proxy *proxy[SIDES][SERVERS]; /* or NULL: the server is near */
	pthread_barrier_t start;
	atomic_int next;
	atomic_int failures;
};

static void *compete(void *arg)
{
	struct contest *contest = arg;
	hf_lock *lock = contest->side[atomic_fetch_add(&contest->next, 1)].red;
	for (int i = 0; i < GRANTS; i++) {
		pthread_barrier_wait(&contest->start);
		if (hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 30000)) || hf_lock_release(lock))
			contest->failures++;
	}
	return NULL;
}

/* Each side is near to servers of its own, and far from the others. */
static void open_contest(struct contest *contest)
{
	pthread_barrier_init(&contest->start, NULL, SIDES);
	for (int i = 0; i < SIDES; i++) {
		struct side *side = &contest->side[i];
		open_side(side, SERVERS, 6000);
		hf_lock_close(side->red);
		for (int j = 0; j < SERVERS; j++) {
			if (j % SIDES == i)
				continue;
			contest->proxy[i][j] = proxy_start(test_server_url(server[j]));
			reopen_member(side, j, proxy_url(contest->proxy[i][j]));
			proxy_delay(contest->proxy[i][j], 10);
		}
		ASSERT_OK(hf_lock_open_red(side->member, SERVERS, &side->red));
	}
}

static void close_contest(struct contest *contest)
{
	for (int i = 0; i < SIDES; i++) {
		expect_nothing_left(&contest->side[i]);
		close_side(&contest->side[i]);
		for (int j = 0; j < SERVERS; j++)
			proxy_stop(contest->proxy[i][j]);
	}
	pthread_barrier_destroy(&contest->start);
}

/*
 * They ask at the same moment, so that each gets the servers near to it first, and none has a
 * majority.
 */
static void sides_that_split_the_servers_agree_after_few_rounds(void **state)
{
	static struct contest contest;
	pthread_t threads[SIDES];
	uint64_t rounds = 0;

	(void)state;
	open_contest(&contest);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, compete, &contest), 0);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(contest.failures, 0);
	for (int i = 0; i < SIDES; i++)
		rounds += stats_of(contest.side[i].client[0]).attempts;
	print_message("%.1f rounds for each grant\n", (double)rounds / (SIDES * GRANTS));
	/*
	 * More than one: they did compete. Two of three wait for a release at least, and ask again
	 * after it.
	 */
	ASSERT_BETWEEN(rounds, SIDES * GRANTS + 1, 10 * SIDES * GRANTS);
	close_contest(&contest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RED_STORY(frozen_minority_is_not_waited_for),
		RED_STORY(dead_minority_is_not_waited_for),
		RED_STORY(slow_minority_joins_later),
		RED_STORY(released_while_a_server_is_away_it_is_not_taken_there),
		RED_STORY(unreachable_majority_is_not_a_quorum),
		RED_STORY(lease_that_ends_before_all_were_asked_is_refused),
		RED_STORY(waiter_gets_the_lock_when_the_majority_is_back),
		RED_STORY(cancel_does_not_wait_for_frozen_servers),
		RED_STORY(server_that_was_never_there_costs_nothing),
		RED_STORY(sides_that_split_the_servers_agree_after_few_rounds),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
