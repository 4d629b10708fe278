/* Fails every allocation of a client's life in turn; nothing may crash, hang, leak or be lost. */
#include "live/life.h"

#include "support/raw.h"
#include "support/server.h"

#define LOCKS 250
#define JAVA  "8743c9c0-0795-4907-87fd-6c719a6b4586"

/* ---- tests ----------------------------------------------------------------------------------- */

static struct test_server *server;

/* Locks of others that somebody waits for. */
static void put_waited_locks(struct raw *raw)
{
	static const char put[] = "local now = redis.call('time')[1] * 1000 for i = 1, 2 do local "
				  "name = 'waited:' .. i "
				  "redis.call('hset', name, '" JAVA ":1', 1) "
				  "redis.call('set', 'holdfast_waiter:{' .. name .. '}:" JAVA
				  ":2', 'read\\nhost\\n1 2 3\\nx') "
				  "redis.call('zadd', 'holdfast_waiter:{' .. name .. '}', "
				  "string.format('%.0f', now + 60000), "
				  "'" JAVA ":2') end return 1";
	assert_int_equal(raw_integer(raw, "EVAL", put, "0", NULL), 1);
}

static void live_until_nothing_fails(live_fn *live_so, const char *url, bool only_one)
{
	struct raw *raw = raw_connect(server);
	long from = 0, count;
	do {
		put_waited_locks(raw);
		count = live_short_of_memory(live_so, url, ++from, only_one);
		raw_ok(raw, "FLUSHALL", NULL);
		raw_ok(raw, "SCRIPT", "FLUSH", NULL);
	} while (count >= from);
	raw_close(raw);
	/* The life is worth its name only if it asks for memory all over the place. */
	assert_true(from > 20);
}

static void life_with_all_the_memory_there_is(void **state)
{
	(void)state;
	long count = live_short_of_memory(live, test_server_url(server), 0, true);
	assert_true(count > 20);
}

static void one_failed_allocation_is_survived_wherever_it_is(void **state)
{
	(void)state;
	live_until_nothing_fails(live, test_server_url(server), true);
	live_until_nothing_fails(live, test_server_unix_url(server), true);
}

static void end_of_memory_is_survived_wherever_it_comes(void **state)
{
	(void)state;
	live_until_nothing_fails(live, test_server_url(server), false);
	live_until_nothing_fails(live, test_server_unix_url(server), false);
}

static void failed_allocations_are_survived_by_durable_grants(void **state)
{
	(void)state;
	assert_true(live_short_of_memory(live_durably, test_server_url(server), 0, true) > 20);
	live_until_nothing_fails(live_durably, test_server_url(server), true);
	live_until_nothing_fails(live_durably, test_server_url(server), false);
}

static void failed_allocations_are_survived_by_every_kind(void **state)
{
	(void)state;
	assert_true(live_short_of_memory(live_with_all_kinds, test_server_unix_url(server), 0,
	                                 true) > 60);
	live_until_nothing_fails(live_with_all_kinds, test_server_unix_url(server), true);
	live_until_nothing_fails(live_with_all_kinds, test_server_unix_url(server), false);
}

static void failed_allocations_are_survived_by_lists(void **state)
{
	(void)state;
	live_until_nothing_fails(live_with_lists, test_server_unix_url(server), true);
	live_until_nothing_fails(live_with_lists, test_server_unix_url(server), false);
}

/* ---- waiters ---- */

static hf_stats stats_at(hf_client *client)
{
	hf_stats stats = {.size = sizeof(stats)};
	assert_int_equal(hf_client_stats(client, &stats), 0);
	return stats;
}

/* Any memory would be missing at the worst time: when many wait. */
static void a_note_of_a_waiter_needs_no_memory(void **state)
{
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	hf_owner *owner = NULL;
	struct done done = {0};
	struct raw *raw = raw_connect(server);
	(void)state;
	put_waited_locks(raw);
	assert_int_equal(
		hf_client_open(test_server_unix_url(server), HF_CLIENT(.describe = "it"), &client),
		0);
	assert_int_equal(hf_lock_open(client, HF_REENTRANT, "waited:1", &lock), 0);
	assert_int_equal(hf_owner_new(&owner), 0);
	assert_int_equal(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner, .wait_ms = 1500),
	                                       note_done, &done),
	                 0);
	/* It listens after its first ask. */
	WAIT_UNTIL(stats_at(client).attempts == 2, PATIENCE_MS);
	is_the_test = true;
	begin_counting(1, ALL_FAIL);
	WAIT_UNTIL(raw_integer(raw, "ZCARD", "holdfast_waiter:{waited:1}", NULL) == 2, PATIENCE_MS);
	WAIT_UNTIL(done.calls == 1, PATIENCE_MS);
	WAIT_UNTIL(raw_integer(raw, "ZCARD", "holdfast_waiter:{waited:1}", NULL) == 1, PATIENCE_MS);
	assert_int_equal(end_watching(), 0);
	is_the_test = false;
	assert_int_equal(done.result, HF_ETIMEDOUT);
	hf_lock_close(lock);
	hf_owner_free(owner);
	assert_int_equal(hf_client_close(client), 0);
	raw_ok(raw, "FLUSHALL", NULL);
	raw_close(raw);
}

/* ---- holders ---- */

struct holder {
	hf_client *client;
	hf_lock *locks[LOCKS];
};

/* Takes 250 locks whose names have at least `length` characters. */
static void begin_holding(struct holder *holder, int length, int64_t watchdog_ms)
{
	char name[513];
	assert_int_equal(hf_client_open(test_server_unix_url(server),
	                                HF_CLIENT(.watchdog_ms = watchdog_ms), &holder->client),
	                 0);
	for (int i = 0; i < LOCKS; i++) {
		(void)snprintf(name, sizeof name, "%0*d", length, i);
		assert_int_equal(
			hf_lock_open(holder->client, HF_REENTRANT, name, &holder->locks[i]), 0);
		assert_int_equal(hf_lock_acquire(holder->locks[i], NULL), 0);
	}
}

static hf_stats stats_of(const struct holder *holder)
{
	return stats_at(holder->client);
}

static void wait_for_renewals(const struct holder *holder, int times)
{
	uint64_t wanted = stats_of(holder).renewals + (uint64_t)times * LOCKS;
	WAIT_UNTIL(stats_of(holder).renewals >= wanted || stats_of(holder).losses > 0, PATIENCE_MS);
}

static void end_holding(struct holder *holder)
{
	hf_stats stats = stats_of(holder);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.held, LOCKS);
	for (int i = 0; i < LOCKS; i++) {
		assert_int_equal(hf_lock_state(holder->locks[i], NULL), HF_HELD);
		assert_int_equal(hf_lock_release(holder->locks[i]), 0);
		hf_lock_close(holder->locks[i]);
	}
	assert_int_equal(hf_client_close(holder->client), 0);
}

static void hold_without_memory(int length)
{
	struct holder holder;
	begin_holding(&holder, length, 3000);
	begin_counting(1, ALL_FAIL);
	wait_for_renewals(&holder, 4);
	long count = end_watching();
	assert_int_equal(stats_of(&holder).losses, 0);
	assert_int_equal(stats_of(&holder).renewal_failures, 0);
	assert_int_equal(count, 0);
	end_holding(&holder);
}

static void renewing_needs_no_memory(void **state)
{
	(void)state;
	hold_without_memory(1);
}

static void renewing_the_longest_names_needs_no_memory(void **state)
{
	(void)state;
	hold_without_memory(512);
}

static void reconnecting_to_renew_needs_no_memory(void **state)
{
	(void)state;
	struct holder holder;
	struct raw *raw = raw_connect(server);
	begin_holding(&holder, 1, 3000);
	is_the_test = true;
	begin_counting(1, ALL_FAIL);
	raw_reply_free(raw_command(raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
	WAIT_UNTIL(stats_of(&holder).reconnects == 1, PATIENCE_MS);
	wait_for_renewals(&holder, 2);
	(void)end_watching();
	is_the_test = false;
	raw_close(raw);
	end_holding(&holder);
}

/* Calls fail while there is no memory; holds stay held all the same. */
static void failing_calls_do_not_touch_the_holds(void **state)
{
	(void)state;
	struct holder holder;
	hf_lock *lock = NULL;
	hf_owner *owner = NULL;
	begin_holding(&holder, 1, 3000);
	begin_counting(1, ALL_FAIL);
	assert_int_equal(hf_lock_open(holder.client, HF_REENTRANT, "new", &lock), HF_ENOMEM);
	assert_int_equal(hf_owner_new(&owner), HF_ENOMEM);
	assert_int_equal(hf_lock_ttl(holder.locks[0], &(int64_t){0}), HF_ENOMEM);
	wait_for_renewals(&holder, 2);
	(void)end_watching();
	end_holding(&holder);
}

static int start_server(void **state)
{
	(void)state;
	server = test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	test_server_stop(server);
	return 0;
}

int main(void)
{
	prepare_shortage();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_with_all_the_memory_there_is),
		cmocka_unit_test(one_failed_allocation_is_survived_wherever_it_is),
		cmocka_unit_test(end_of_memory_is_survived_wherever_it_comes),
		cmocka_unit_test(failed_allocations_are_survived_by_durable_grants),
		cmocka_unit_test(failed_allocations_are_survived_by_every_kind),
		cmocka_unit_test(failed_allocations_are_survived_by_lists),
		cmocka_unit_test(a_note_of_a_waiter_needs_no_memory),
		cmocka_unit_test(renewing_needs_no_memory),
		cmocka_unit_test(renewing_the_longest_names_needs_no_memory),
		cmocka_unit_test(reconnecting_to_renew_needs_no_memory),
		cmocka_unit_test(failing_calls_do_not_touch_the_holds),
	};
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
