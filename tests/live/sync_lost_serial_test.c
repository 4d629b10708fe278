/* Every verb of semaphores, permits and latches: nothing is taken or given twice. */
#include "live/lost.h"

#define ENDS "{orders}:timeout"

/* Each story works on one of them. */
static void open_all(struct world *world)
{
	ASSERT_OK(hf_semaphore_open(world->client, "orders", &world->semaphore));
	ASSERT_OK(hf_permits_open(world->client, "orders", &world->permits));
	ASSERT_OK(hf_latch_open(world->client, "orders", &world->latch));
}

static void open_none(struct world *world)
{
	(void)world;
}

/* ---- semaphores ---- */

static int set_semaphore(struct world *world)
{
	return hf_semaphore_try_set(world->semaphore, 5, 0, &world->done);
}

static void five_free(struct world *world)
{
	ASSERT_OK(set_semaphore(world));
}

static int acquire_semaphore(struct world *world)
{
	return hf_semaphore_acquire(world->semaphore, 2, HF_WAIT(.wait_ms = world->wait_ms));
}

static int release_semaphore(struct world *world)
{
	return hf_semaphore_release(world->semaphore, 2);
}

static int release_if_exists(struct world *world)
{
	int rc = hf_semaphore_release_if_exists(world->semaphore, 2, &world->done);
	return rc ? rc : world->done == 1 ? 0 : WRONG;
}

static int add_to_semaphore(struct world *world)
{
	return hf_semaphore_add(world->semaphore, -1);
}

static int drain_semaphore(struct world *world)
{
	int rc = hf_semaphore_drain(world->semaphore, &world->number);
	return rc ? rc : world->number == 5 ? 0 : WRONG;
}

static int query_semaphore(struct world *world)
{
	int rc = hf_semaphore_available(world->semaphore, &world->number);
	return rc ? rc : world->number == 5 ? 0 : WRONG;
}

static long long read_number(struct world *world)
{
	(void)world;
	return number_at(live_raw, "orders");
}

/* ---- permits ---- */

static int set_permits(struct world *world)
{
	return hf_permits_try_set(world->permits, 5, &world->done);
}

static void five_permits(struct world *world)
{
	ASSERT_OK(set_permits(world));
}

static int acquire_permits(struct world *world)
{
	return hf_permits_acquire(world->permits, 2, HF_PERMITS(.wait_ms = world->wait_ms),
	                          world->ids);
}

static void two_of_five_permits(struct world *world)
{
	five_permits(world);
	ASSERT_OK(acquire_permits(world));
}

static int release_permits(struct world *world)
{
	return hf_permits_release(world->permits, (const hf_permit_id *)world->ids, 2);
}

static int extend_permit(struct world *world)
{
	return hf_permits_extend(world->permits, world->ids[1], 50000);
}

static int set_total(struct world *world)
{
	return hf_permits_set(world->permits, 9);
}

static int add_permits(struct world *world)
{
	return hf_permits_add(world->permits, 3);
}

static int query_permits(struct world *world)
{
	int rc = hf_permits_acquired(world->permits, &world->number);
	return rc ? rc : world->number == 2 ? 0 : WRONG;
}

static int query_lease(struct world *world)
{
	int rc = hf_permits_lease(world->permits, world->ids[0], &world->number);
	return rc ? rc : world->number > 0 && world->number <= 30000 ? 0 : WRONG;
}

/* The available ones times a thousand, and those in use. */
static long long read_permits(struct world *world)
{
	(void)world;
	return number_at(live_raw, "orders") * 1000 + raw_integer(live_raw, "ZCARD", ENDS, NULL);
}

/* ---- latches ---- */

static int set_latch(struct world *world)
{
	return hf_latch_try_set(world->latch, 3, &world->done);
}

static void three_to_go(struct world *world)
{
	ASSERT_OK(set_latch(world));
}

static int count_down(struct world *world)
{
	return hf_latch_count_down(world->latch);
}

static int delete_latch(struct world *world)
{
	int rc = hf_latch_delete(world->latch, &world->done);
	return rc ? rc : world->done == 1 ? 0 : WRONG;
}

static int query_latch(struct world *world)
{
	int rc = hf_latch_count(world->latch, &world->number);
	return rc ? rc : world->number == 3 ? 0 : WRONG;
}

static int wait_for_latch(struct world *world)
{
	return hf_latch_wait(world->latch, HF_WAIT(.wait_ms = world->wait_ms));
}

/* ---- the stories ---- */

static const struct story semaphore_stories[] = {
	{"set", NULL, set_semaphore, read_number, NO_NUMBER, 5, 5, HF_EUNKNOWN},
	{"acquire", five_free, acquire_semaphore, read_number, 5, 3, 5, HF_EUNKNOWN},
	{"release", five_free, release_semaphore, read_number, 5, 7, 7, HF_EUNKNOWN},
	{"release if exists", five_free, release_if_exists, read_number, 5, 7, 7, HF_EUNKNOWN},
	{"add", five_free, add_to_semaphore, read_number, 5, 4, 4, HF_EUNKNOWN},
	{"drain", five_free, drain_semaphore, read_number, 5, 0, 0, HF_EUNKNOWN},
	{"available", five_free, query_semaphore, read_number, 5, 5, 5, HF_EUNREACHABLE},
};

static const struct story permit_stories[] = {
	{"set once", NULL, set_permits, read_permits, NO_NUMBER * 1000, 5000, 5000, HF_EUNKNOWN},
	{"acquire", five_permits, acquire_permits, read_permits, 5000, 3002, 5000, HF_EUNKNOWN},
	{"release", two_of_five_permits, release_permits, read_permits, 3002, 5000, 5000,
         HF_EUNKNOWN},
	{"extend", two_of_five_permits, extend_permit, read_permits, 3002, 3002, 3002, HF_EUNKNOWN},
	{"set", two_of_five_permits, set_total, read_permits, 3002, 7002, 7002, HF_EUNKNOWN},
	{"add", two_of_five_permits, add_permits, read_permits, 3002, 6002, 6002, HF_EUNKNOWN},
	{"acquired", two_of_five_permits, query_permits, read_permits, 3002, 3002, 3002,
         HF_EUNREACHABLE},
	{"lease", two_of_five_permits, query_lease, read_permits, 3002, 3002, 3002,
         HF_EUNREACHABLE},
};

static const struct story latch_stories[] = {
	{"set", NULL, set_latch, read_number, NO_NUMBER, 3, 3, HF_EUNKNOWN},
	{"count down", three_to_go, count_down, read_number, 3, 2, 2, HF_EUNKNOWN},
	{"delete", three_to_go, delete_latch, read_number, 3, NO_NUMBER, NO_NUMBER, HF_EUNKNOWN},
	{"count", three_to_go, query_latch, read_number, 3, 3, 3, HF_EUNREACHABLE},
	{"wait", NULL, wait_for_latch, read_number, NO_NUMBER, NO_NUMBER, NO_NUMBER, HF_ETIMEDOUT},
};

static void semaphore_is_changed_once(void **state)
{
	(void)state;
	play_all(semaphore_stories, COUNT(semaphore_stories), open_all, NULL);
}

static void permits_are_changed_once(void **state)
{
	(void)state;
	play_all(permit_stories, COUNT(permit_stories), open_all, NULL);
}

static void latch_is_changed_once(void **state)
{
	(void)state;
	play_all(latch_stories, COUNT(latch_stories), open_all, NULL);
}
/* ---- many at once ---- */

struct tally {
	atomic_int done;
	atomic_int unknown;
	atomic_int failed;
};

static void count_result(void *arg, int result, int64_t number, const char *text)
{
	struct tally *tally = arg;
	(void)number;
	(void)text;
	atomic_fetch_add(result == 0             ? &tally->done
	                 : result == HF_EUNKNOWN ? &tally->unknown
	                                         : &tally->failed,
	                 1);
}

static int tally_sum(struct tally *tally)
{
	return tally->done + tally->unknown + tally->failed;
}

/* More than the server remembers requests of one client at a time. */
#define MANY 1500

static void very_many_unanswered_releases_give_once_each(void **state)
{
	struct tally tally = {0};
	struct world world;

	(void)state;
	begin(&world, open_all, REPLY_LOST);
	five_free(&world);
	ASSERT_OK(release_semaphore(&world));
	proxy_hold_replies(world.proxy, true);
	for (int i = 0; i < MANY; i++)
		ASSERT_OK(hf_semaphore_release_async(world.semaphore, 1, count_result, &tally));
	WAIT_UNTIL(number_at(live_raw, "orders") == MANY + 7, SOON_MS);
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(tally_sum(&tally) == MANY, SOON_MS);
	assert_int_equal(tally.failed, 0);
	end(&world);
	assert_int_equal(number_at(live_raw, "orders"), MANY + 7);
}

/* ---- connections that break all the time ---- */

#define THREADS 4
#define ROUNDS  25

struct crowd {
	struct world *world;
	int result; /* out: the first failure */
	atomic_bool over;
};

static int use_everything(struct world *world)
{
	hf_permit_id id;
	int rc = hf_semaphore_acquire(world->semaphore, 1, NULL);
	if (!rc)
		rc = hf_permits_acquire(world->permits, 1, NULL, &id);
	if (!rc)
		rc = hf_latch_count_down(world->latch);
	if (!rc)
		rc = hf_permits_release(world->permits, (const hf_permit_id *)&id, 1);
	return rc ? rc : hf_semaphore_release(world->semaphore, 1);
}

static void *run_rounds(void *arg)
{
	struct crowd *crowd = arg;
	for (int i = 0; i < ROUNDS && !crowd->result; i++)
		crowd->result = use_everything(crowd->world);
	atomic_store(&crowd->over, true);
	return NULL;
}

static bool all_are_over(struct crowd *crowd)
{
	for (int i = 0; i < THREADS; i++)
		if (!atomic_load(&crowd[i].over))
			return false;
	return true;
}

static void nothing_is_counted_twice_when_connections_break_all_the_time(void **state)
{
	struct crowd crowd[THREADS];
	pthread_t threads[THREADS];
	struct world world;

	(void)state;
	begin(&world, open_none, REPLY_LOST);
	ASSERT_OK(hf_semaphore_open(world.client, "semaphore", &world.semaphore));
	ASSERT_OK(hf_permits_open(world.client, "permits", &world.permits));
	ASSERT_OK(hf_latch_open(world.client, "latch", &world.latch));
	ASSERT_OK(hf_semaphore_try_set(world.semaphore, 2, 0, NULL));
	ASSERT_OK(hf_permits_try_set(world.permits, 2, NULL));
	ASSERT_OK(hf_latch_try_set(world.latch, THREADS * ROUNDS + 1, NULL));
	proxy_hold_replies(world.proxy, true); /* before the threads, or fast ones never see it */
	for (int i = 0; i < THREADS; i++) {
		crowd[i] = (struct crowd){.world = &world};
		assert_int_equal(pthread_create(&threads[i], NULL, run_rounds, &crowd[i]), 0);
	}
	while (!all_are_over(crowd)) {
		for (int i = 0; i < 3; i++)
			test_pause();
		proxy_cut(world.proxy);
		proxy_hold_replies(world.proxy, false);
		for (int i = 0; i < 8; i++)
			test_pause();
		proxy_hold_replies(world.proxy, true);
	}
	proxy_hold_replies(world.proxy, false);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(crowd[i].result, 0);
	}
	assert_true(stats_of(world.client).unknowns > 0);
	assert_int_equal(number_at(live_raw, "semaphore"), 2);
	assert_int_equal(number_at(live_raw, "permits"), 2);
	assert_false(key_exists(live_raw, "{permits}:timeout"));
	assert_int_equal(number_at(live_raw, "latch"), 1);
	end(&world);
}

/* ---- calls that leave before the answer ---- */

/* No call waits for it any more when it arrives, so it must take nothing for good. */
static void request_that_arrives_after_it_was_undone_takes_nothing(void **state)
{
	struct world world;

	(void)state;
	begin(&world, open_all, NEVER_ANSWERED);
	five_free(&world);
	ASSERT_OK(acquire_semaphore(&world)); /* so that the script is known */
	long long bytes = proxy_request_bytes(world.proxy);
	proxy_hold_requests(world.proxy, true);
	ASSERT_RC(acquire_semaphore(&world), HF_EUNKNOWN);
	assert_true(proxy_request_bytes(world.proxy) > bytes);
	long long undone = command_calls(live_raw, "eval") + command_calls(live_raw, "evalsha");
	proxy_strand(world.proxy, true);
	proxy_hold_requests(world.proxy, false);
	WAIT_UNTIL(command_calls(live_raw, "eval") + command_calls(live_raw, "evalsha") > undone,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(world.client, NULL));
	proxy_deliver_stranded(world.proxy);
	assert_int_equal(number_at(live_raw, "orders"), 3);
	end(&world);
}

/* The outage lasts longer than the server remembers other requests. */
static void permits_taken_before_a_long_outage_are_given_back_after_it(void **state)
{
	struct world world;

	(void)state;
	begin(&world, open_all, NEVER_ANSWERED);
	five_free(&world);
	proxy_hold_replies(world.proxy, true);
	ASSERT_RC(acquire_semaphore(&world), HF_EUNKNOWN);
	WAIT_UNTIL(number_at(live_raw, "orders") == 3, SOON_MS);
	/* The records expire as if this time had passed. */
	struct raw_reply *keys = raw_command(live_raw, "KEYS", "holdfast_request:*", NULL);
	assert_true(keys->length > 0);
	for (size_t i = 0; i < keys->length; i++) {
		long long left = key_pttl(live_raw, keys->children[i]->text) - 30000;
		char text[24];
		snprintf(text, sizeof text, "%lld", left);
		(void)raw_integer(live_raw, "PEXPIRE", keys->children[i]->text, text, NULL);
	}
	raw_reply_free(keys);
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(number_at(live_raw, "orders") == 5, SOON_MS);
	end(&world);
}

static void requests_one_after_the_other_share_one_record(void **state)
{
	struct world world;

	(void)state;
	begin(&world, open_all, REPLY_LOST);
	five_free(&world);
	for (int i = 0; i < 100; i++) {
		ASSERT_OK(acquire_semaphore(&world));
		ASSERT_OK(release_semaphore(&world));
	}
	struct raw_reply *keys = raw_command(live_raw, "KEYS", "holdfast_request:*", NULL);
	assert_int_equal(keys->length, 1);
	raw_reply_free(keys);
	end(&world);
}

static void cancelled_while_unanswered_is_given_back(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		hf_cancel *cancel = new_cancel();
		struct world world;
		begin(&world, open_all, REPLY_LOST);
		five_permits(&world);
		struct waiter wanted = {.n = 2, .cancel = cancel};
		if (i == 0)
			wanted.semaphore = world.semaphore;
		else
			wanted.permits = world.permits;
		/* So that the script is known. */
		ASSERT_RC(
			i ? hf_permits_acquire(world.permits, 6, HF_PERMITS(.wait_ms = HF_NOWAIT),
		                               world.ids)
			  : hf_semaphore_acquire(world.semaphore, 6, HF_WAIT(.wait_ms = HF_NOWAIT)),
			HF_EBUSY);
		proxy_hold_replies(world.proxy, true);
		struct waiter *call = waiter_start_call(&wanted);
		WAIT_UNTIL(number_at(live_raw, "orders") == 3, SOON_MS);
		hf_cancel_fire(cancel);
		proxy_cut(world.proxy);
		proxy_hold_replies(world.proxy, false);
		waiter_expect(call, HF_ECANCELLED);
		WAIT_UNTIL(number_at(live_raw, "orders") == 5, SOON_MS);
		assert_false(key_exists(live_raw, ENDS));
		waiter_free(call);
		end(&world);
		hf_cancel_free(cancel);
		assert_int_equal(number_at(live_raw, "orders"), 5);
	}
}

static void closed_while_unanswered_is_given_back(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct world world;
		begin(&world, open_all, REPLY_LOST);
		five_permits(&world);
		ASSERT_OK(hf_client_ping(world.client, NULL));
		proxy_delay(world.proxy, 60);
		struct waiter *call = i ? WAITER(.permits = world.permits, .n = 2)
		                        : WAITER(.semaphore = world.semaphore, .n = 2);
		WAIT_UNTIL(number_at(live_raw, "orders") == 3, SOON_MS);
		end(&world);
		WAIT_UNTIL(waiter_is_over(call), SOON_MS);
		assert_true(call->result == HF_ECLOSED || call->result == 0);
		/* A semaphore that was granted in time keeps what it gave. */
		long long wanted = i == 0 && call->result == 0 ? 3 : 5;
		assert_int_equal(number_at(live_raw, "orders"), wanted);
		assert_false(key_exists(live_raw, ENDS));
		waiter_free(call);
	}
}

/* ---- servers that do it later, or come back ---- */

static void frozen_server_takes_nothing_in_the_end(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct test_server *server = test_server_start(&(struct test_server_options){
			.kind = i ? TEST_SERVER_TCP : TEST_SERVER_UNIX});
		struct raw *raw = raw_connect(server);
		hf_client *client = open_url(test_server_url(server), NULL);
		hf_semaphore *semaphore = NULL;
		hf_permits *permits = NULL;
		hf_permit_id id;
		ASSERT_OK(hf_semaphore_open(client, "orders", &semaphore));
		ASSERT_OK(hf_permits_open(client, "stock", &permits));
		ASSERT_OK(hf_semaphore_try_set(semaphore, 1, 0, NULL));
		ASSERT_OK(hf_permits_try_set(permits, 1, NULL));
		test_server_freeze(server);
		ASSERT_RC(hf_semaphore_acquire(semaphore, 1, HF_WAIT(.wait_ms = 200)), HF_EUNKNOWN);
		ASSERT_RC(hf_permits_acquire(permits, 1, HF_PERMITS(.wait_ms = 200), &id),
		          HF_EUNKNOWN);
		test_server_thaw(server);
		/* What was sent is executed first, and then undone. */
		ASSERT_OK(hf_semaphore_acquire(semaphore, 1, HF_WAIT(.wait_ms = SOON_MS)));
		ASSERT_OK(hf_permits_acquire(permits, 1, HF_PERMITS(.wait_ms = SOON_MS), &id));
		assert_int_equal(number_at(raw, "orders"), 0);
		assert_int_equal(number_at(raw, "stock"), 0);
		assert_int_equal(stats_of(client).held, 1);
		hf_semaphore_close(semaphore);
		hf_permits_close(permits);
		ASSERT_OK(hf_client_close(client));
		assert_int_equal(number_at(raw, "stock"), 1);
		raw_close(raw);
		test_server_stop(server);
	}
}

static void server_that_comes_back_with_its_data_remembers_requests(void **state)
{
	struct test_server *server =
		test_server_start(&(struct test_server_options){.appendonly = true});
	struct raw *raw = raw_connect(server);
	struct proxy *proxy = proxy_start(test_server_url(server));
	hf_client *client = open_url(proxy_url(proxy), HF_CLIENT(.command_timeout_ms = 15000));
	hf_semaphore *semaphore = NULL;
	struct done *done = check_alloc(sizeof(*done));

	(void)state;
	ASSERT_OK(hf_semaphore_open(client, "orders", &semaphore));
	ASSERT_OK(hf_semaphore_release(semaphore, 1));
	proxy_hold_replies(proxy, true);
	ASSERT_OK(hf_semaphore_release_async(semaphore, 1, note_done, done));
	WAIT_UNTIL(number_at(raw, "orders") == 2, SOON_MS);
	raw_close(raw);
	test_server_kill(server);
	proxy_cut(proxy);
	proxy_hold_replies(proxy, false);
	test_server_restart(server);
	raw = raw_connect(server);
	WAIT_UNTIL(atomic_load(&done->calls) == 1, 15000);
	assert_int_equal(done->result, 0);
	assert_int_equal(number_at(raw, "orders"), 2);
	free(done);
	hf_semaphore_close(semaphore);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
	raw_close(raw);
	test_server_stop(server);
}

static void empty_server_lets_waiters_wait_on(void **state)
{
	struct test_server *server = test_server_start(NULL);
	hf_client *client = open_url(test_server_url(server), NULL);
	hf_client *other = open_url(test_server_url(server), NULL);
	hf_semaphore *semaphore = NULL, *theirs = NULL;
	hf_latch *latch = NULL;

	(void)state;
	ASSERT_OK(hf_semaphore_open(client, "orders", &semaphore));
	ASSERT_OK(hf_semaphore_open(other, "orders", &theirs));
	ASSERT_OK(hf_latch_open(client, "latch", &latch));
	ASSERT_OK(hf_latch_try_set(latch, 1, NULL));
	struct waiter *taker = WAITER(.semaphore = semaphore, .n = 1);
	struct waiter *waiter = WAITER(.latch = latch);
	WAIT_UNTIL(stats_of(client).waiting == 2, SOON_MS);
	test_server_kill(server);
	test_server_restart(server);
	/* The latch is gone and therefore open; the semaphore does not exist yet. */
	waiter_expect(waiter, 0);
	assert_false(waiter_is_over(taker));
	ASSERT_OK(hf_semaphore_try_set(theirs, 1, 0, NULL));
	waiter_join(taker, 0);
	waiter_free(waiter);
	hf_semaphore_close(semaphore);
	hf_semaphore_close(theirs);
	hf_latch_close(latch);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
	test_server_stop(server);
}

/* ---- permits ---- */

#define UNKNOWN_ID "00112233445566778899aabbccddeeff"

/* A peer that does not use the proxy. */
static hf_permits *open_peer(hf_client **ret_client)
{
	hf_permits *permits = NULL;
	*ret_client = sync_open(NULL);
	ASSERT_OK(hf_permits_open(*ret_client, "orders", &permits));
	return permits;
}

static void permit_made_shorter_without_an_answer_is_not_believed_too_long(void **state)
{
	hf_client *peer;
	struct world world;
	hf_permit_id id, theirs;
	struct done *done = check_alloc(sizeof(*done));

	(void)state;
	begin(&world, open_all, REPLY_LOST);
	hf_permits *permits = open_peer(&peer);
	ASSERT_OK(hf_permits_try_set(world.permits, 1, NULL));
	ASSERT_OK(hf_permits_acquire(world.permits, 1, NULL, &id));
	ASSERT_RC(hf_permits_extend(permits, UNKNOWN_ID, 400), HF_ENOTHELD);
	proxy_hold_replies(world.proxy, true);
	ASSERT_OK(hf_permits_extend_async(world.permits, id, 400, note_done, done));
	ASSERT_OK(hf_permits_acquire(permits, 1, HF_PERMITS(.wait_ms = SOON_MS), &theirs));
	/* Another client holds it: the former holder must no longer believe that it does. */
	int64_t left = hf_permits_remaining(world.permits, id);
	hf_state believed = hf_permits_state(world.permits, id);
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	free(done);
	hf_permits_close(permits);
	ASSERT_OK(sync_close(peer));
	end(&world);
	assert_int_equal(left, 0);
	assert_int_equal(believed, HF_LOST);
}

static void permit_extended_without_an_answer_is_still_renewed(void **state)
{
	struct done *done = check_alloc(sizeof(*done));
	struct world world = {.proxy = proxy_start(test_server_url(live_server))};
	hf_permit_id id;

	(void)state;
	world.client = open_url(proxy_url(world.proxy),
	                        HF_CLIENT(.watchdog_ms = 6000, .command_timeout_ms = 500));
	open_all(&world);
	ASSERT_OK(hf_permits_try_set(world.permits, 1, NULL));
	ASSERT_OK(hf_permits_acquire(world.permits, 1, NULL, &id));
	long long bytes = proxy_request_bytes(world.proxy);
	proxy_hold_replies(world.proxy, true);
	ASSERT_OK(hf_permits_extend_async(world.permits, id, 60000, note_done, done));
	WAIT_UNTIL(proxy_request_bytes(world.proxy) > bytes, SOON_MS);
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	assert_int_equal(done->result, HF_EUNKNOWN);
	assert_int_equal(stats_of(world.client).renewals, 0);
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(stats_of(world.client).renewals >= 2, SOON_MS);
	assert_int_equal(hf_permits_state(world.permits, id), HF_HELD);
	ASSERT_OK(hf_permits_release(world.permits, (const hf_permit_id *)id, 1));
	free(done);
	end(&world);
}

/* Loses the request of a release on its way, and returns what its repeat made of it. */
static int release_after_a_lost_request(struct world *world, const hf_permit_id *ids, int n)
{
	struct done *done = check_alloc(sizeof(*done));
	long long bytes = proxy_request_bytes(world->proxy);
	proxy_hold_requests(world->proxy, true);
	ASSERT_OK(hf_permits_release_async(world->permits, ids, n, note_done, done));
	WAIT_UNTIL(proxy_request_bytes(world->proxy) > bytes, SOON_MS);
	proxy_cut(world->proxy);
	proxy_hold_requests(world->proxy, false);
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	int result = done->result;
	free(done);
	return result;
}

static void list_that_could_not_be_given_back_is_not_a_success(void **state)
{
	struct world world;
	hf_permit_id ids[2];

	(void)state;
	begin(&world, open_all, REQUEST_LOST);
	five_permits(&world);
	ASSERT_OK(hf_permits_acquire(world.permits, 1, NULL, &ids[0]));
	memcpy(ids[1], UNKNOWN_ID, sizeof ids[1]);
	int result = release_after_a_lost_request(&world, (const hf_permit_id *)ids, 2);
	/* Whatever the answer, our own is given back. */
	long long ends_at = test_now_ms() + 2000;
	while (number_at(live_raw, "orders") != 5 && test_now_ms() < ends_at)
		test_pause();
	long long available = number_at(live_raw, "orders");
	end(&world);
	assert_int_not_equal(result, 0);
	assert_int_equal(available, 5);
}

static void permit_that_never_was_is_not_given_back_by_a_repeat(void **state)
{
	struct world world;

	(void)state;
	begin(&world, open_all, REQUEST_LOST);
	five_permits(&world);
	hf_permit_id id = UNKNOWN_ID;
	int result = release_after_a_lost_request(&world, (const hf_permit_id *)&id, 1);
	end(&world);
	assert_true(result == HF_ENOTHELD || result == HF_EUNKNOWN);
}

/* Half of what an unanswered acquire took was taken away before its repeat. */
static void permits_of_which_one_is_gone_are_not_granted(void **state)
{
	struct world world;

	(void)state;
	begin(&world, open_all, REPLY_LOST);
	five_permits(&world);
	ASSERT_RC(hf_permits_acquire(world.permits, 6, HF_PERMITS(.wait_ms = HF_NOWAIT), world.ids),
	          HF_EBUSY);
	proxy_hold_replies(world.proxy, true);
	struct waiter *call = WAITER(.permits = world.permits, .n = 2, .wait_ms = 8000);
	WAIT_UNTIL(read_permits(&world) == 3002, SOON_MS);
	assert_int_equal(raw_integer(live_raw, "ZREMRANGEBYRANK", ENDS, "0", "0", NULL), 1);
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	WAIT_UNTIL(waiter_is_over(call), 10000);
	long long ends_at = test_now_ms() + 2000;
	while (key_exists(live_raw, ENDS) && test_now_ms() < ends_at)
		test_pause();
	long long seen = read_permits(&world);
	int result = call->result;
	waiter_free(call);
	end(&world);
	/* Either all are taken again, or none and the rest are given back. */
	if (result == 0)
		assert_int_equal(seen % 1000, 2);
	else
		assert_int_equal(seen, 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(semaphore_is_changed_once),
		SYNC_STORY(permits_are_changed_once),
		SYNC_STORY(latch_is_changed_once),
		SYNC_STORY(very_many_unanswered_releases_give_once_each),
		SYNC_STORY(nothing_is_counted_twice_when_connections_break_all_the_time),
		SYNC_STORY(request_that_arrives_after_it_was_undone_takes_nothing),
		SYNC_STORY(permits_taken_before_a_long_outage_are_given_back_after_it),
		SYNC_STORY(requests_one_after_the_other_share_one_record),
		SYNC_STORY(cancelled_while_unanswered_is_given_back),
		SYNC_STORY(closed_while_unanswered_is_given_back),
		SYNC_STORY(frozen_server_takes_nothing_in_the_end),
		SYNC_STORY(server_that_comes_back_with_its_data_remembers_requests),
		SYNC_STORY(empty_server_lets_waiters_wait_on),
		SYNC_STORY(permit_made_shorter_without_an_answer_is_not_believed_too_long),
		SYNC_STORY(permit_extended_without_an_answer_is_still_renewed),
		SYNC_STORY(list_that_could_not_be_given_back_is_not_a_success),
		SYNC_STORY(permit_that_never_was_is_not_given_back_by_a_repeat),
		SYNC_STORY(permits_of_which_one_is_gone_are_not_granted),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
