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
	/* This proves something only if the life allocates memory in many places. */
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

/* ---- releases ---- */

/* What one client holds of everything that can be given back, twice where it nests. */
struct holdings {
	hf_client *client;
	hf_lock *lock[10];
	size_t locks;
	hf_permits *permits;
	hf_permit_id ids[3];
	hf_semaphore *semaphore;
};

static hf_lock *hold_twice(struct holdings *has, hf_lock *lock)
{
	assert_int_equal(hf_lock_acquire(lock, NULL), 0);
	assert_int_equal(hf_lock_acquire(lock, NULL), 0);
	return has->lock[has->locks++] = lock;
}

static hf_lock *open_held(struct holdings *has, hf_kind kind, const char *name)
{
	hf_lock *lock = NULL;
	assert_int_equal(hf_lock_open(has->client, kind, name, &lock), 0);
	return hold_twice(has, lock);
}

static void hold_locks(struct holdings *has)
{
	static const char *const values[] = {"a", "b"};
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR,   HF_READ,
	                                HF_WRITE,     HF_FENCED, HF_SPIN};
	hf_lock *members[3], *group = NULL, *multi = NULL;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		(void)open_held(has, kinds[i], (char[]){'h', (char)('0' + kinds[i]), 0});
	assert_int_equal(hf_lock_open_group(has->client, "hg", values, 2, &group), 0);
	(void)hold_twice(has, group);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hf_lock_open(has->client, HF_REENTRANT,
		                              (char[]){'m', (char)('0' + i), 0}, &members[i]),
		                 0);
	assert_int_equal(hf_lock_open_multi(members, 3, &multi), 0);
	(void)hold_twice(has, multi);
	for (int i = 0; i < 3; i++)
		hf_lock_close(members[i]);
}

static void hold_counts(struct holdings *has)
{
	assert_int_equal(hf_permits_open(has->client, "hp", &has->permits), 0);
	assert_int_equal(hf_permits_set(has->permits, 3), 0);
	assert_int_equal(hf_permits_acquire(has->permits, 3, NULL, has->ids), 0);
	assert_int_equal(hf_semaphore_open(has->client, "hs", &has->semaphore), 0);
	assert_int_equal(hf_semaphore_try_set(has->semaphore, 2, 0, NULL), 0);
	assert_int_equal(hf_semaphore_acquire(has->semaphore, 2, NULL), 0);
}

static void give_all_back(struct holdings *has)
{
	for (size_t i = 0; i < has->locks; i++) {
		assert_int_equal(hf_lock_release(has->lock[i]), 0);
		assert_int_equal(hf_lock_release(has->lock[i]), 0);
	}
	assert_int_equal(hf_permits_release(has->permits, has->ids, 1), 0);
	assert_int_equal(hf_permits_release(has->permits, has->ids + 1, 2), 0);
	assert_int_equal(hf_semaphore_release(has->semaphore, 1), 0);
	assert_int_equal(hf_semaphore_release(has->semaphore, 1), 0);
}

/* A program that is short of memory must be able to give back what others wait for. */
static void releasing_needs_no_memory(void **state)
{
	struct holdings has = {0};
	int64_t permits = 0;
	struct raw *raw = raw_connect(server);
	(void)state;
	assert_int_equal(hf_client_open(test_server_unix_url(server), NULL, &has.client), 0);
	hold_locks(&has);
	hold_counts(&has);
	begin_counting(1, ALL_FAIL);
	give_all_back(&has);
	(void)end_watching();
	assert_int_equal(stats_at(has.client).held, 0);
	assert_int_equal(hf_permits_available(has.permits, &permits), 0);
	assert_int_equal(permits, 3);
	assert_int_equal(hf_semaphore_available(has.semaphore, &permits), 0);
	assert_int_equal(permits, 2);
	for (size_t i = 0; i < has.locks; i++)
		hf_lock_close(has.lock[i]);
	hf_permits_close(has.permits);
	hf_semaphore_close(has.semaphore);
	assert_int_equal(hf_client_close(has.client), 0);
	raw_ok(raw, "FLUSHALL", NULL);
	raw_close(raw);
}

#define GIVERS 8

/* One of the threads that give a permit back at the same time. */
struct giver {
	pthread_t thread;
	hf_permits *permits;
	const hf_permit_id *id;
	atomic_bool *may_begin;
	int result;
};

static void *give_one(void *arg)
{
	struct giver *giver = arg;
	while (!atomic_load(giver->may_begin))
		test_pause();
	giver->result = hf_permits_release(giver->permits, giver->id, 1);
	return NULL;
}

/* They share the memory that is kept for this, so they take turns. */
static void releasing_at_the_same_time_needs_no_memory(void **state)
{
	hf_client *client = NULL;
	hf_permits *permits = NULL;
	hf_permit_id ids[GIVERS];
	struct giver giver[GIVERS];
	atomic_bool may_begin = false;
	int64_t available = 0;
	(void)state;
	assert_int_equal(hf_client_open(test_server_url(server), NULL, &client), 0);
	assert_int_equal(hf_permits_open(client, "together", &permits), 0);
	assert_int_equal(hf_permits_set(permits, GIVERS), 0);
	assert_int_equal(hf_permits_acquire(permits, GIVERS, NULL, ids), 0);
	for (int i = 0; i < GIVERS; i++) {
		giver[i] =
			(struct giver){.permits = permits, .id = &ids[i], .may_begin = &may_begin};
		assert_int_equal(pthread_create(&giver[i].thread, NULL, give_one, &giver[i]), 0);
	}
	begin_counting(1, ALL_FAIL);
	atomic_store(&may_begin, true);
	for (int i = 0; i < GIVERS; i++)
		assert_int_equal(pthread_join(giver[i].thread, NULL), 0);
	(void)end_watching();
	for (int i = 0; i < GIVERS; i++)
		assert_int_equal(giver[i].result, 0);
	assert_int_equal(hf_permits_available(permits, &available), 0);
	assert_int_equal(available, GIVERS);
	hf_permits_close(permits);
	assert_int_equal(hf_client_close(client), 0);
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
		cmocka_unit_test(releasing_needs_no_memory),
		cmocka_unit_test(releasing_at_the_same_time_needs_no_memory),
	};
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
