/* Permits on ZooKeeper while answers are lost and connections break. */
#include "live/zk_permits_faults.h"

/* ---- answers that are lost ---- */

/* How far the server is when the connection breaks, before its answers have arrived. */
struct step {
	const char *what;
	int gates, leases;
};

static const struct step steps[] = {
	{"gate made", 1, 0}, {"lease made", 1, 1}, {"gate opened", 0, 1}};

#define STEPS ((int)(sizeof steps / sizeof *steps))

static void wait_for_step(const struct step *step)
{
	long long ends_at = test_now_ms() + SOON_MS;
	while (gates() != step->gates || leases() != step->leases)
		if (test_now_ms() > ends_at)
			fail_msg("%s: not seen", step->what);
}

static void lost_answer_at_any_step_leaves_one_lease(void **state)
{
	(void)state;
	begin_proxied(NULL, 1, 10000);
	make_folders();
	for (int i = 0; i < STEPS; i++) {
		proxy_delay(proxy, 150);
		struct waiter *call = WAITER(.permits = pair.mine, .n = 1);
		wait_for_step(&steps[i]);
		proxy_cut(proxy);
		proxy_delay(proxy, 0);
		waiter_expect(call, 0);
		WAIT_NODES(0, 1);
		assert_int_equal(hf_permits_state(pair.mine, call->ids[0]), HF_HELD);
		call_give(call);
		WAIT_NODES(0, 0);
	}
	assert_int_equal(stats_of(pair.one).losses, 0);
	end();
}

static void lost_answer_that_nobody_waits_for_leaves_nothing(void **state)
{
	(void)state;
	begin_proxied(NULL, 1, 10000);
	make_folders();
	for (int i = 0; i < STEPS; i++) {
		proxy_delay(proxy, 100);
		hf_cancel *cancel = new_cancel();
		struct waiter *call =
			WAITER(.permits = pair.mine, .n = 1, .wait_ms = 4000, .cancel = cancel);
		wait_for_step(&steps[i]);
		proxy_refuse(proxy, true);
		proxy_cut(proxy);
		proxy_delay(proxy, 0);
		hf_cancel_fire(cancel);
		WAIT_UNTIL(waiter_is_over(call), 6000);
		assert_true(call->result == HF_ECANCELLED || call->result == HF_EUNKNOWN);
		proxy_refuse(proxy, false);
		WAIT_NODES(0, 0);
		waiter_free(call);
		hf_cancel_free(cancel);
		assert_int_equal(stats_of(pair.one).held, 0);
	}
	end();
}

static void lost_request_at_any_step_is_sent_again(void **state)
{
	(void)state;
	begin_proxied(NULL, 1, 10000);
	make_folders();
	for (int i = 0; i < STEPS - 1; i++) {
		proxy_delay(proxy, 100);
		struct waiter *call = WAITER(.permits = pair.mine, .n = 1);
		wait_for_step(&steps[i]);
		/* The answers arrive, and what is sent then does not. */
		proxy_drop_requests(proxy, true);
		long long bytes = proxy_request_bytes(proxy);
		WAIT_UNTIL(proxy_request_bytes(proxy) > bytes, SOON_MS);
		proxy_cut(proxy);
		proxy_drop_requests(proxy, false);
		proxy_delay(proxy, 0);
		waiter_expect(call, 0);
		WAIT_NODES(0, 1);
		call_give(call);
		WAIT_NODES(0, 0);
	}
	end();
}

static int release_three(void *ids)
{
	return give_all(pair.mine, ids, 3);
}

/* Of three the server has deleted one, or two, or all, when the connection breaks. */
static void lost_answer_to_a_release_of_several_is_a_release(void **state)
{
	hf_permit_id ids[3];

	(void)state;
	command_timeout_ms = 10000;
	begin_proxied(NULL, 3, 20000);
	for (int left = 2; left >= 0; left--) {
		take(pair.mine, 3, 0, ids);
		proxy_delay(proxy, 60);
		struct waiter *release = WAITER(.run = release_three, .arg = ids);
		long long ends_at = test_now_ms() + SOON_MS;
		while (leases() > left)
			assert_true(test_now_ms() < ends_at);
		proxy_cut(proxy);
		proxy_delay(proxy, 0);
		waiter_join(release, 0);
		assert_int_equal(leases(), 0);
		assert_int_equal(stats_of(pair.one).held, 0);
	}
	assert_int_equal(stats_of(pair.one).losses, 0);
	end();
}

static void release_that_cannot_be_sent_is_done_later(void **state)
{
	hf_permit_id ids[2];

	(void)state;
	begin_proxied(NULL, 2, 20000);
	take(pair.mine, 2, 0, ids);
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	/* It did not even leave, but is given up from the call on. */
	ASSERT_RC(give_all(pair.mine, ids, 2), HF_EUNREACHABLE);
	assert_int_equal(hf_permits_remaining(pair.mine, ids[0]), 0);
	assert_int_equal(leases(), 2);
	proxy_refuse(proxy, false);
	WAIT_UNTIL(leases() == 0, 10000);
	end();
}

/* ---- connections that break ---- */

static void connection_cut_while_waiting_leaves_one_lease(void **state)
{
	hf_permit_id id;

	(void)state;
	begin_proxied(NULL, 1, 10000);
	take(pair.theirs, 1, 0, &id);
	struct waiter *first = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(1, 2);
	struct waiter *second = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(2, 2);
	for (int i = 0; i < 3; i++) {
		uint64_t reconnects = stats_of(pair.one).reconnects;
		proxy_cut(proxy);
		WAIT_UNTIL(stats_of(pair.one).reconnects > reconnects, 10000);
		ASSERT_OK(hf_client_ping(pair.one, NULL));
		assert_int_equal(gates(), 2);
		assert_int_equal(leases(), 2);
	}
	assert_false(waiter_is_over(first) || waiter_is_over(second));
	ASSERT_OK(give(pair.theirs, id));
	waiter_expect(first, 0);
	WAIT_NODES(1, 2);
	call_give(first);
	waiter_expect(second, 0);
	WAIT_NODES(0, 1);
	call_give(second);
	WAIT_NODES(0, 0);
	end();
}

static void permit_given_back_during_a_broken_connection_is_heard_of(void **state)
{
	hf_permit_id ids[2];

	(void)state;
	begin_proxied(NULL, 2, 20000);
	take(pair.theirs, 2, 0, ids);
	struct waiter *first = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(1, 3);
	struct waiter *second = WAITER(.permits = pair.mine, .n = 1);
	WAIT_NODES(2, 3);
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	ASSERT_OK(give_all(pair.theirs, ids, 2));
	assert_int_equal(leases(), 1);
	assert_false(waiter_is_over(first));
	proxy_refuse(proxy, false);
	waiter_expect(first, 0);
	waiter_expect(second, 0);
	WAIT_NODES(0, 2);
	call_give(first);
	call_give(second);
	end();
}

static void long_partition_costs_the_permit_before_it_is_given_away(void **state)
{
	hf_permit_id id;
	char path[700];

	(void)state;
	begin_proxied(NULL, 1, 4000);
	take(pair.mine, 1, 0, &id);
	newest_child(zk_eye, LEASES, path, sizeof path);
	struct waiter *call = WAITER(.permits = pair.theirs, .n = 1);
	WAIT_NODES(1, 2);
	proxy_hold_requests(proxy, true);
	proxy_hold_replies(proxy, true);
	long long ends_at = test_now_ms() + 8000;
	while (hf_permits_state(pair.mine, id) != HF_LOST) {
		bool gone = zk_raw_exists(zk_eye, path, NULL) == ZK_RAW_NO_NODE;
		if (gone && hf_permits_remaining(pair.mine, id) > 0)
			fail_msg("the server has given it away, and it is still trusted");
		assert_true(test_now_ms() < ends_at);
		test_pause();
	}
	waiter_expect(call, 0);
	proxy_hold_requests(proxy, false);
	proxy_hold_replies(proxy, false);
	ASSERT_RC(give(pair.mine, id), HF_ELOST);
	ASSERT_RC(try_take(pair.mine, 1, 1500), HF_ETIMEDOUT);
	call_give(call);
	WAIT_NODES(0, 0);
	end();
}

/*
 * Each permit takes four round trips: as long as they continue, the client does not doubt the
 * connection.
 */
static void many_permits_on_a_slow_line_take_their_time(void **state)
{
	enum { WANTED = 40 };
	hf_permit_id ids[WANTED];

	(void)state;
	begin_proxied(NULL, WANTED, 20000);
	proxy_delay(proxy, 15);
	ASSERT_OK(hf_permits_acquire(pair.mine, WANTED, HF_PERMITS(.wait_ms = 20000), ids));
	assert_int_equal(stats_of(pair.one).reconnects, 0);
	assert_int_equal(leases(), WANTED);
	proxy_delay(proxy, 0);
	ASSERT_OK(give_all(pair.mine, ids, WANTED));
	assert_int_equal(leases(), 0);
	end();
}

/* A waiter that has left takes no more of them. */
static void many_permits_on_a_slow_line_are_left_half_way(void **state)
{
	hf_permit_id ids[200];
	hf_cancel *cancel = new_cancel();

	(void)state;
	begin_proxied(NULL, 200, 20000);
	for (int i = 0; i < 2; i++) {
		proxy_delay(proxy, 15);
		struct done *done = check_alloc(sizeof(*done));
		ASSERT_OK(hf_permits_acquire_async(
			pair.mine, 200,
			HF_PERMITS(.wait_ms = i ? 1000 : 0, .cancel = i ? NULL : cancel), note_done,
			done));
		WAIT_UNTIL(leases() >= 3, SOON_MS);
		long long left_at = test_now_ms();
		hf_cancel_fire(cancel);
		WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
		ASSERT_BETWEEN(test_now_ms() - left_at, 0, 2000);
		assert_true(done->result == (i ? HF_EUNKNOWN : HF_ECANCELLED));
		int most = leases();
		proxy_delay(proxy, 0);
		while (leases() > 0) {
			assert_true(leases() <= most + 2);
			assert_true(test_now_ms() - left_at < 15000);
		}
		WAIT_NODES(0, 0);
		free(done);
	}
	take(pair.mine, 3, 0, ids);
	ASSERT_OK(give_all(pair.mine, ids, 3));
	hf_cancel_free(cancel);
	end();
}

/* ---- all of it at once ---- */

#define WORKERS 8
#define TOTAL   3

struct worker {
	pthread_t thread;
	hf_permits *permits;
	int n;
	int got;
	char *wrong;
};

static atomic_bool over;
static atomic_int inside, most_inside;

/*
 * A permit that was not taken, or may have been, is not a failure here; one that was taken must be
 * ours alone.
 */
static void *take_and_give(void *arg)
{
	struct worker *worker = arg;
	hf_permit_id ids[2];
	while (!atomic_load(&over) && !worker->wrong) {
		int rc = hf_permits_acquire(worker->permits, worker->n, HF_PERMITS(.wait_ms = 1500),
		                            ids);
		if (rc && rc != HF_ETIMEDOUT && rc != HF_EUNKNOWN && rc != HF_EUNREACHABLE)
			worker->wrong = check_format("acquire: %d (%s)", rc, hf_error_detail());
		if (rc)
			continue;
		int now = atomic_fetch_add(&inside, worker->n) + worker->n;
		if (now > atomic_load(&most_inside))
			atomic_store(&most_inside, now);
		test_pause();
		atomic_fetch_sub(&inside, worker->n);
		worker->got++;
		rc = give_all(worker->permits, ids, worker->n);
		if (rc && rc != HF_EUNKNOWN && rc != HF_EUNREACHABLE)
			worker->wrong = check_format("release: %d (%s)", rc, hf_error_detail());
	}
	return NULL;
}

/* The sessions outlive all of it, so there is never a permit too many, and nothing is left. */
static void connections_that_break_all_the_time_cost_nobody_a_permit(void **state)
{
	struct worker workers[WORKERS] = {0};
	int got = 0;

	(void)state;
	atomic_store(&over, false);
	atomic_store(&inside, 0);
	atomic_store(&most_inside, 0);
	start_all(NULL);
	begin_at(proxy_url(proxy), proxy_url(proxy), TOTAL, 30000);
	for (int i = 0; i < WORKERS; i++) {
		workers[i].permits = i % 2 ? pair.mine : pair.theirs;
		workers[i].n = i < 2 ? 2 : 1;
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, take_and_give, &workers[i]), 0);
	}
	for (int i = 0; i < 25; i++) {
		long long cut_at = test_now_ms();
		proxy_delay(proxy, i % 3 * 4);
		WAIT_UNTIL(test_now_ms() - cut_at > 200 + i * 37 % 100, SOON_MS);
		proxy_cut(proxy);
	}
	atomic_store(&over, true);
	for (int i = 0; i < WORKERS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		if (workers[i].wrong)
			fail_msg("%s", workers[i].wrong);
		got += workers[i].got;
	}
	assert_true(got >= 10);
	ASSERT_BETWEEN(atomic_load(&most_inside), 1, TOTAL);
	proxy_delay(proxy, 0);
	WAIT_UNTIL(gates() == 0 && leases() == 0, 10000);
	assert_int_equal(stats_of(pair.one).held + stats_of(pair.two).held, 0);
	assert_int_equal(stats_of(pair.one).losses + stats_of(pair.two).losses, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAULT_STORY(lost_answer_at_any_step_leaves_one_lease),
		FAULT_STORY(lost_answer_that_nobody_waits_for_leaves_nothing),
		FAULT_STORY(lost_request_at_any_step_is_sent_again),
		FAULT_STORY(lost_answer_to_a_release_of_several_is_a_release),
		FAULT_STORY(release_that_cannot_be_sent_is_done_later),
		FAULT_STORY(connection_cut_while_waiting_leaves_one_lease),
		FAULT_STORY(permit_given_back_during_a_broken_connection_is_heard_of),
		FAULT_STORY(long_partition_costs_the_permit_before_it_is_given_away),
		FAULT_STORY(many_permits_on_a_slow_line_take_their_time),
		FAULT_STORY(many_permits_on_a_slow_line_are_left_half_way),
		FAULT_STORY(connections_that_break_all_the_time_cost_nobody_a_permit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
