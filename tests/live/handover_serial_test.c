/* While threads of one process hand a lock around, others get their turn, and servers may die. */
#include "live/handover.h"

#define TURNS 50

/*
 * A series of hand-overs lasts 50 ms; a machine that is busy with other tests may make that much
 * longer.
 */
#define WORST_MS 6000

static void finish(struct crew *crew, hf_client *client, long long keys)
{
	crew_stop(crew);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), keys);
	crew_free(crew);
	ASSERT_OK(sync_close(client));
}

/* ---- others ---- */

/* Takes turns, each against a crew that is busy again, and returns the longest wait. */
static long long take_turns(struct crew *crew, hf_lock *lock, int turns)
{
	long long worst = 0;
	for (int i = 0; i < turns; i++) {
		long long started_at = test_now_ms();
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000)));
		long long waited = test_now_ms() - started_at;
		assert_int_equal(atomic_fetch_add(&crew->inside, 1), 0);
		crew->turns++;
		atomic_fetch_sub(&crew->inside, 1);
		atomic_fetch_add(&crew->taken, 1);
		ASSERT_OK(hf_lock_release(lock));
		worst = waited > worst ? waited : worst;
		long long taken = atomic_load(&crew->taken);
		WAIT_UNTIL(atomic_load(&crew->taken) >= taken + CREW, 20000);
	}
	return worst;
}

static void waiter_of_another_process_gets_its_turns(void **state)
{
	(void)state;
	for (size_t i = 0; i < MOVING_KINDS; i++) {
		hf_client *client = sync_open(NULL);
		hf_client *peer = sync_open(NULL);
		struct crew *crew = CREW_NEW(.lock = open_named(client, moving_kinds[i], "orders"));
		hf_lock *theirs = open_named(peer, moving_kinds[i], "orders");
		crew_start(crew);
		WAIT_UNTIL(handovers(client) > 0, 20000);
		long long started_at = test_now_ms();
		long long worst = take_turns(crew, theirs, TURNS);
		long long took = test_now_ms() - started_at;
		hf_stats stats = stats_of(client);
		print_message("%d turns in %lld ms, the longest after %lld ms; "
		              "%llu of the crew, %llu handed over\n",
		              TURNS, took, worst, (unsigned long long)stats.grants,
		              (unsigned long long)stats.handovers);
		ASSERT_BETWEEN(worst, 0, WORST_MS);
		ASSERT_BETWEEN(took, 0, TURNS * 600);
		/* And it did have a crowd to get through. */
		ASSERT_BETWEEN(stats.handovers, TURNS, INT64_MAX);
		hf_lock_close(theirs);
		ASSERT_OK(sync_close(peer));
		finish(crew, client, keys_left(moving_kinds[i]));
		raw_ok(live_raw, "FLUSHALL", NULL);
	}
}

/* Half of the threads are of one client, half of another. */
static void two_clients_share_the_lock(void **state)
{
	hf_client *client[2] = {sync_open(NULL), sync_open(NULL)};
	struct crew *crew = CREW_NEW(.lock = open_named(client[0], HF_REENTRANT, "orders"),
	                             .second = open_named(client[1], HF_REENTRANT, "orders"));

	(void)state;
	crew_start(crew);
	for (uint64_t round = 1; round <= 10; round++)
		for (int i = 0; i < 2; i++)
			WAIT_UNTIL(stats_of(client[i]).grants >= 50 * round, 20000);
	crew_stop(crew);
	crew_free(crew);
	for (int i = 0; i < 2; i++) {
		hf_stats stats = stats_of(client[i]);
		print_message("%llu turns, %llu handed over\n", (unsigned long long)stats.grants,
		              (unsigned long long)stats.handovers);
		assert_true(stats.handovers > 0);
		assert_int_equal(stats.losses, 0);
		ASSERT_OK(sync_close(client[i]));
	}
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

static void listen_to_crew(bool slow)
{
	hf_client *client = sync_open(NULL);
	struct crew *crew =
		CREW_NEW(.lock = open_named(client, HF_REENTRANT, "orders"), .slow = slow);
	struct raw *listener = listen_to(CHANNEL);
	crew_start(crew);
	WAIT_UNTIL(handovers(client) >= 10, 20000);
	long long started_at = test_now_ms();
	for (int i = 0; i < TURNS; i++) {
		struct raw_reply *message = raw_next_message(listener, WORST_MS);
		if (!message)
			fail_msg("%d messages, and then none", i);
		assert_string_equal(message->children[2]->text, "0");
		raw_reply_free(message);
	}
	print_message("%d messages in %lld ms, %llu hand-overs\n", TURNS,
	              test_now_ms() - started_at, (unsigned long long)handovers(client));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, TURNS * 600);
	raw_close(listener);
	crew_stop(crew);
	/* Turns of 2 ms each: at most this many fit into the 50 ms of a series. */
	hf_stats stats = stats_of(client);
	ASSERT_BETWEEN(stats.handovers, 0, (stats.releases - stats.handovers) * (slow ? 26 : 64));
	crew_free(crew);
	ASSERT_OK(sync_close(client));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

/* A waiter that relies on messages alone, as a Java process does, is notified again and again. */
static void release_is_published_every_so_often(void **state)
{
	(void)state;
	listen_to_crew(false);
}

/* Here the time ends a series, not the number of hand-overs. */
static void release_is_published_in_time_by_a_slow_crew(void **state)
{
	(void)state;
	listen_to_crew(true);
}

/* A client that only tries, as often as it can, finds the lock free in between. */
static void single_tries_of_another_process_get_in(void **state)
{
	hf_client *client = sync_open(NULL);
	hf_client *peer = sync_open(NULL);
	struct crew *crew = CREW_NEW(.lock = open_named(client, HF_REENTRANT, "orders"));
	struct raw *listener = listen_to(CHANNEL);
	hf_lock *theirs = open_lock(peer, "orders");
	int got = 0;

	(void)state;
	crew_start(crew);
	long long ends_at = test_now_ms() + 60000;
	while (got < 5 && test_now_ms() < ends_at) {
		int rc = hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
		if (rc == HF_EBUSY)
			continue;
		ASSERT_OK(rc);
		got++;
		ASSERT_OK(hf_lock_release(theirs));
	}
	assert_int_equal(got, 5);
	raw_close(listener);
	hf_lock_close(theirs);
	ASSERT_OK(sync_close(peer));
	finish(crew, client, 0);
}

/* Nobody else is subscribed, so the crew does not pause. */
static void crew_alone_does_not_rest(void **state)
{
	hf_client *client = sync_open(NULL);
	struct crew *crew = CREW_NEW(.lock = open_named(client, HF_REENTRANT, "orders"));

	(void)state;
	crew_start(crew);
	WAIT_UNTIL(handovers(client) >= 3000, 60000);
	crew_stop(crew);
	hf_stats stats = stats_of(client);
	/*
	 * One release in 65 is an ordinary one at least, and on a slow machine series are shorter.
	 */
	ASSERT_BETWEEN(stats.handovers, stats.grants / 2, stats.grants * 64 / 65 + 1);
	crew_free(crew);
	ASSERT_OK(sync_close(client));
}

/* ---- servers that die ---- */

static void await_handovers(hf_client *client, uint64_t more)
{
	uint64_t before = handovers(client);
	WAIT_UNTIL(handovers(client) >= before + more, 30000);
}

/* With its data the server knows each hold, so there is never more than one. */
static void crew_continues_when_the_server_comes_back_with_its_data(void **state)
{
	struct test_server *server =
		test_server_start(&(struct test_server_options){.appendonly = true});
	struct raw *raw = raw_connect(server);
	hf_client *client = open_url(test_server_url(server), NULL);
	struct crew *crew =
		CREW_NEW(.lock = open_named(client, HF_FENCED, "orders"), .rough = true);

	(void)state;
	crew_start(crew);
	for (int i = 0; i < 4; i++) {
		await_handovers(client, 50);
		restart_server(server, &raw);
	}
	await_handovers(client, 50);
	crew_stop(crew);
	print_message("%lld turns, %d unknown\n", crew->turns, atomic_load(&crew->unknown));
	assert_int_equal(atomic_load(&crew->lost), 0);
	assert_int_equal(stats_of(client).losses, 0);
	WAIT_UNTIL(!key_exists(raw, "orders"), SOON_MS);
	assert_int_equal(raw_integer(raw, "DBSIZE", NULL), 1);
	assert_int_equal(number_at(raw, TOKEN_KEY), atomic_load(&crew->newest));
	crew_free(crew);
	ASSERT_OK(hf_client_close(client));
	raw_close(raw);
	test_server_stop(server);
}

/* An empty server may grant twice; a hold that was lost is reported, and the crew continues. */
static void crew_continues_when_the_server_comes_back_empty(void **state)
{
	struct test_server *server = test_server_start(NULL);
	struct raw *raw = raw_connect(server);
	hf_client *client = open_url(test_server_url(server), NULL);
	struct crew *crew =
		CREW_NEW(.lock = open_named(client, HF_FENCED, "orders"), .rough = true);

	(void)state;
	atomic_store(&crew->broken, true);
	crew_start(crew);
	for (int i = 0; i < 3; i++) {
		await_handovers(client, 50);
		restart_server(server, &raw);
	}
	await_handovers(client, 50);
	crew_stop(crew);
	ASSERT_BETWEEN(atomic_load(&crew->lost), 0, 3 * CREW);
	WAIT_UNTIL(!key_exists(raw, "orders"), SOON_MS);
	assert_int_equal(stats_of(client).held, 0);
	crew_free(crew);
	ASSERT_OK(hf_client_close(client));
	raw_close(raw);
	test_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(waiter_of_another_process_gets_its_turns),
		SYNC_STORY(two_clients_share_the_lock),
		SYNC_STORY(release_is_published_every_so_often),
		SYNC_STORY(release_is_published_in_time_by_a_slow_crew),
		SYNC_STORY(single_tries_of_another_process_get_in),
		SYNC_STORY(crew_alone_does_not_rest),
		SYNC_STORY(crew_continues_when_the_server_comes_back_with_its_data),
		SYNC_STORY(crew_continues_when_the_server_comes_back_empty),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
