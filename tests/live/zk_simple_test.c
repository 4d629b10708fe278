/* The simple mutex on a real ZooKeeper: a semaphore with one permit, as in Curator. */
#include "live/zk.h"

#include "support/counting.h"

#define GATES  "/orders/locks"
#define LEASES "/orders/leases"

static struct rivals *begin(hf_kind theirs)
{
	const char *url = test_zookeeper_url(zk_server, 0);
	struct rivals *rivals = open_clients(url, NULL, url, NULL);
	rivals->mine = open_named(rivals->one, HF_SIMPLE, "orders");
	rivals->theirs = open_named(rivals->two, theirs, "orders");
	return rivals;
}

#define SIMPLE_STORY(name) cmocka_unit_test_setup_teardown(name, zk_sweep, leave_rivals)

static int count_at(const char *path)
{
	int count = count_children(zk_eye, path);
	return count < 0 ? 0 : count;
}

#define WAIT_NODES(gates, leases)                                                                  \
	WAIT_UNTIL(count_at(GATES) == (gates) && count_at(LEASES) == (leases), ENDED_MS)

/* ---- what it is on the server ---- */

static void lock_is_a_lease_and_a_gate_while_it_is_waited_for(void **state)
{
	struct zk_raw_stat stat;
	char path[700], identity[100];

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE_FAIR);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	assert_int_equal(count_children(zk_eye, "/orders"), 2);
	WAIT_NODES(0, 1);
	read_only_child(zk_eye, LEASES, path, sizeof path, &stat);
	ASSERT_CONTAINS(path, "/_c_");
	ASSERT_CONTAINS(path, "-lease-0000000000");
	assert_true(stat.owner != 0);
	assert_int_equal(token_of(rivals->mine, NULL), stat.czxid);
	ASSERT_OK(hf_lock_identity(rivals->mine, NULL, identity, sizeof identity));
	assert_string_equal(identity, strrchr(path, '/') + 1);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_NODES(1, 2);
	read_only_child(zk_eye, GATES, path, sizeof path, &stat);
	ASSERT_CONTAINS(path, "/_c_");
	ASSERT_CONTAINS(path, "-lock-0000000001");
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(waiter, 0);
	WAIT_NODES(0, 1);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(count_at(LEASES), 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	waiter_free(waiter);
	close_rivals(rivals);
}

static void value_is_the_data_of_the_lease(void **state)
{
	struct zk_raw_data data;
	char path[700];

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "mine for now")));
	read_only_child(zk_eye, LEASES, path, sizeof path, NULL);
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	assert_string_equal(data.bytes, "mine for now");
	free(data.bytes);
	ASSERT_OK(hf_lock_release(rivals->mine));
	close_rivals(rivals);
}

/* ---- one holder ---- */

static void second_acquire_of_an_owner_is_a_deadlock(void **state)
{
	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_RC(hf_lock_acquire(rivals->mine, NULL), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EDEADLOCK);
	WAIT_NODES(0, 1);
	hf_lock *fair = open_named(rivals->one, HF_SIMPLE_FAIR, "orders");
	ASSERT_RC(hf_lock_acquire(fair, NULL), HF_EDEADLOCK);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(fair));
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	WAIT_NODES(0, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_release(rivals->mine));
	hf_lock_close(fair);
	close_rivals(rivals);
}

static void owners_and_clients_exclude_each_other(void **state)
{
	hf_owner *owner = new_owner();

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_RC(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .owner = owner)),
	          HF_EBUSY);
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 500, .owner = owner)),
	          HF_ETIMEDOUT);
	WAIT_NODES(0, 1);
	ASSERT_RC(hf_lock_release_with(rivals->mine, HF_RELEASE(.owner = owner)), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	hf_cancel *cancel = new_cancel();
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_NODES(1, 2);
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	WAIT_NODES(0, 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	waiter_free(waiter);
	hf_cancel_free(cancel);
	hf_owner_free(owner);
	close_rivals(rivals);
}

static void queries_return_what_the_server_has(void **state)
{
	char holder[200], identity[200];
	int64_t number;
	int flag;

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	ASSERT_OK(hf_lock_is_locked(rivals->mine, &flag));
	assert_int_equal(flag, 0);
	ASSERT_OK(hf_lock_ttl(rivals->mine, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_holder(rivals->mine, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_last_token(rivals->mine, &number));
	assert_int_equal(number, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_is_locked(rivals->theirs, &flag));
	assert_int_equal(flag, 1);
	ASSERT_OK(hf_lock_is_held(rivals->mine, NULL, &flag));
	assert_int_equal(flag, 1);
	ASSERT_OK(hf_lock_hold_count(rivals->mine, NULL, &number));
	assert_int_equal(number, 1);
	ASSERT_OK(hf_lock_is_held(rivals->theirs, NULL, &flag));
	assert_int_equal(flag, 0);
	ASSERT_OK(hf_lock_ttl(rivals->theirs, &number));
	assert_int_equal(number, -1);
	ASSERT_OK(hf_lock_holder(rivals->theirs, holder, sizeof holder));
	ASSERT_OK(hf_lock_identity(rivals->mine, NULL, identity, sizeof identity));
	assert_string_equal(holder, identity);
	ASSERT_OK(hf_lock_last_token(rivals->theirs, &number));
	assert_int_equal(number, token_of(rivals->mine, NULL));
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_is_locked(rivals->theirs, &flag));
	assert_int_equal(flag, 0);
	close_rivals(rivals);
}

/* The server lists children in no order, so it takes several rounds to be deceived. */
static void holder_is_not_mistaken_for_a_waiter(void **state)
{
	char holder[200], identity[200];

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	for (int i = 0; i < 8; i++) {
		ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
		struct waiter *waiter = waiter_start(rivals->theirs, NULL);
		WAIT_NODES(1, 2);
		ASSERT_OK(hf_lock_identity(rivals->mine, NULL, identity, sizeof identity));
		ASSERT_OK(hf_lock_holder(rivals->theirs, holder, sizeof holder));
		assert_string_equal(holder, identity);
		ASSERT_OK(hf_lock_release(rivals->mine));
		waiter_finish(waiter);
	}
	close_rivals(rivals);
}

static void token_grows_even_when_the_folders_are_made_again(void **state)
{
	int64_t last = 0;

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	for (int i = 0; i < 6; i++) {
		hf_lock *lock = i % 2 ? rivals->mine : rivals->theirs;
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		assert_true(token_of(lock, NULL) > last);
		last = token_of(lock, NULL);
		ASSERT_OK(hf_lock_release(lock));
		if (i == 2)
			assert_int_equal(zk_raw_delete_tree(zk_eye, "/orders"), 0);
	}
	close_rivals(rivals);
}

static void force_takes_the_lock_away_and_the_next_waiter_gets_the_lock(void **state)
{
	int was_held = -1;

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 1);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, 2000);
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, 1000);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	int64_t token = token_of(rivals->mine, NULL);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_NODES(1, 2);
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 1);
	waiter_expect(waiter, 0);
	assert_true(token_of(rivals->theirs, waiter->options.owner) > token);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, 2000);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	WAIT_NODES(0, 1);
	assert_int_equal(hf_lock_state(rivals->theirs, waiter->options.owner), HF_HELD);
	waiter_finish(waiter);
	close_rivals(rivals);
}

static void fixed_lease_expires_and_is_extended(void **state)
{
	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 1500)));
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_extend(rivals->mine, NULL, 3500));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_NODES(1, 2);
	WAIT_UNTIL(test_now_ms() - started_at > 2000, 3000);
	assert_int_not_equal(hf_lock_state(rivals->mine, NULL), HF_LOST);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, SOON_MS);
	ASSERT_BETWEEN(test_now_ms() - started_at, 3300, 5500);
	waiter_expect(waiter, 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	WAIT_NODES(0, 1);
	waiter_finish(waiter);
	close_rivals(rivals);
}

static void session_that_expires_loses_the_lock_and_the_next_waiter_gets_the_lock(void **state)
{
	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	int64_t token = token_of(rivals->mine, NULL);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_NODES(1, 2);
	/* First that of the waiter, which costs nothing but its place. */
	int64_t session = first_owner(zk_eye, GATES);
	zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
	WAIT_UNTIL(first_owner(zk_eye, GATES) != session, ENDED_MS);
	WAIT_NODES(1, 2);
	assert_false(waiter_is_over(waiter));
	zk_raw_expire(test_zookeeper_host(zk_server, 0), first_owner(zk_eye, LEASES));
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, ENDED_MS);
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, 1000);
	waiter_expect(waiter, 0);
	assert_true(token_of(rivals->theirs, waiter->options.owner) > token);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	WAIT_NODES(0, 1);
	ASSERT_OK(waiter_release(waiter));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = ENDED_MS)));
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_free(waiter);
	close_rivals(rivals);
}

/* ---- waiters ---- */

#define QUEUE 12

static void waiters_of_two_clients_are_served_in_order(void **state)
{
	struct waiter *waiters[QUEUE];

	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE_FAIR);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	for (int i = 0; i < QUEUE; i++) {
		waiters[i] = waiter_start(i % 2 ? rivals->mine : rivals->theirs, NULL);
		WAIT_NODES(i + 1, 2);
	}
	int64_t last = token_of(rivals->mine, NULL);
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < QUEUE; i++) {
		waiter_expect(waiters[i], 0);
		for (int j = i + 1; j < QUEUE; j++)
			assert_false(waiter_is_over(waiters[j]));
		int64_t token = token_of(waiters[i]->lock, waiters[i]->options.owner);
		assert_true(token > last);
		last = token;
		long long released_at = test_now_ms();
		ASSERT_OK(waiter_release(waiters[i]));
		if (i + 1 < QUEUE) {
			waiter_expect(waiters[i + 1], 0);
			ASSERT_BETWEEN(waiters[i + 1]->ended_at - released_at, -50, 1500);
		}
		waiter_free(waiters[i]);
	}
	WAIT_NODES(0, 0);
	close_rivals(rivals);
}

static void plain_lock_in_its_place_is_a_conflict(void **state)
{
	(void)state;
	struct rivals *rivals = begin(HF_PLAIN);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, NULL));
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 3000)), HF_ECONFLICT);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 3000)));
	ASSERT_OK(hf_lock_release(rivals->mine));
	close_rivals(rivals);
}

#define THREADS 5
#define ROUNDS  25

static void threads_of_two_clients_never_lose_a_count(void **state)
{
	(void)state;
	struct rivals *rivals = begin(HF_SIMPLE);
	hf_lock *locks[] = {rivals->mine, rivals->theirs};
	COUNT_TOGETHER(.locks = locks, .n = 2, .threads = 2 * THREADS, .rounds = ROUNDS,
	               .slow = true);
	WAIT_NODES(0, 0);
	close_rivals(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SIMPLE_STORY(lock_is_a_lease_and_a_gate_while_it_is_waited_for),
		SIMPLE_STORY(value_is_the_data_of_the_lease),
		SIMPLE_STORY(second_acquire_of_an_owner_is_a_deadlock),
		SIMPLE_STORY(owners_and_clients_exclude_each_other),
		SIMPLE_STORY(queries_return_what_the_server_has),
		SIMPLE_STORY(holder_is_not_mistaken_for_a_waiter),
		SIMPLE_STORY(token_grows_even_when_the_folders_are_made_again),
		SIMPLE_STORY(force_takes_the_lock_away_and_the_next_waiter_gets_the_lock),
		SIMPLE_STORY(fixed_lease_expires_and_is_extended),
		SIMPLE_STORY(session_that_expires_loses_the_lock_and_the_next_waiter_gets_the_lock),
		SIMPLE_STORY(waiters_of_two_clients_are_served_in_order),
		SIMPLE_STORY(plain_lock_in_its_place_is_a_conflict),
		SIMPLE_STORY(threads_of_two_clients_never_lose_a_count),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
