/* Red locks: the majority of independent servers, all of which answer. */
#include "live/red.h"

#include "support/proxy.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a process that is killed ---- */

/* Holds the lock until it is killed. Forked while there are no threads. */
static pid_t start_holder(int64_t watchdog_ms)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	hf_client *client;
	hf_lock *member[3];
	hf_lock *red;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 3; i++)
		if (hf_client_open(test_server_url(server[i]),
		                   HF_CLIENT(.watchdog_ms = watchdog_ms), &client) ||
		    hf_lock_open(client, HF_REENTRANT, NAME, &member[i]))
			_exit(1);
	if (hf_lock_open_red(member, 3, &red) || hf_lock_acquire(red, NULL))
		_exit(2);
	for (;;)
		pause();
}

static void lock_of_a_killed_process_is_free_within_its_lease(void **state)
{
	struct side side;
	pid_t holder = start_holder(2000);

	(void)state;
	assert_true(holder > 0);
	WAIT_UNTIL(keys_left() >= 2, SOON_MS);
	open_side(&side, 3, 30000);
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(kill(holder, SIGKILL), 0);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	long long killed_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 6000)));
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, 2000 + 1000);
	ASSERT_OK(hf_lock_release(side.red));
	close_side(&side);
}

/* ---- taking ---- */

static void check_whole_life(int n)
{
	struct side side;
	int64_t number = -7;
	int yes = -7;

	open_side(&side, n, 30000);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	ASSERT_OK(hf_lock_is_locked(side.red, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.lease_ms = 20000)));
	assert_int_equal(servers_held(&side), n);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_BETWEEN(hf_lock_remaining(side.red, NULL), 15000, 20000 - 202);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(held_count(raw[0], NAME), 2);
	assert_int_equal(held_count(raw[n - 1], NAME), 2);
	ASSERT_OK(hf_lock_is_held(side.red, NULL, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_locked(side.red, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_hold_count(side.red, NULL, &number));
	assert_int_equal(number, 2);
	ASSERT_OK(hf_lock_release(side.red));
	assert_int_equal(servers_held(&side), n);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_extend(side.red, NULL, 50000));
	ASSERT_OK(hf_lock_ttl(side.red, &number));
	ASSERT_BETWEEN(number, 40000, 50000);
	ASSERT_OK(hf_lock_release(side.red));
	assert_int_equal(keys_left(), 0);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	ASSERT_RC(hf_lock_release(side.red), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(side.red, NULL, 1000), HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(side.red, NULL));
	ASSERT_OK(hf_lock_force_release(side.red, &yes));
	assert_int_equal(yes, 1);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

/*
 * The two servers that answer have lost the lock, and the other three are asked still, so a
 * majority seems to hold it. Members that are gone must not be taken again then.
 */
static void forced_release_is_not_repaired(void **state)
{
	struct side side;
	struct done done = {0};

	(void)state;
	open_side(&side, SERVERS, 30000);
	take_everywhere(&side);
	for (int i = 2; i < SERVERS; i++)
		test_server_freeze(server[i]);
	ASSERT_OK(hf_lock_force_release_async(side.red, note_done, &done));
	WAIT_UNTIL(!is_ours(&side, 0) && !is_ours(&side, 1), SOON_MS);
	for (int i = 0; i < 100; i++) {
		assert_false(is_ours(&side, 0));
		assert_false(is_ours(&side, 1));
		test_pause();
	}
	for (int i = 2; i < SERVERS; i++)
		test_server_thaw(server[i]);
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	expect_nothing_left(&side);
	close_side(&side);
}

static void lock_is_on_all_servers_until_it_is_released(void **state)
{
	(void)state;
	check_whole_life(3);
	check_whole_life(5);
}

static void check_majority(int n, int taken, bool enough)
{
	struct side side;
	struct side other;

	open_side(&side, n, 30000);
	open_side(&other, n, 30000);
	for (int i = 0; i < taken; i++)
		ASSERT_OK(hf_lock_acquire(other.member[i], NULL));
	if (enough) {
		ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
		assert_int_equal(servers_held(&side), n - taken);
		assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(side.red));
	} else {
		ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
		ASSERT_CONTAINS(hf_error_detail(), NAME);
		assert_int_equal(servers_held(&side), 0);
		long long started_at = test_now_ms();
		ASSERT_TIMES_OUT(300, hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = within_ms)));
		ASSERT_BETWEEN(test_now_ms() - started_at, 300, 1300);
		assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	}
	/*
	 * What it got is given back; after an attempt that was cut short by the timeout, a moment
	 * later.
	 */
	WAIT_UNTIL(keys_left() == taken && holds_of(&side) == 0, SOON_MS);
	assert_int_equal(servers_held(&other), taken);
	for (int i = 0; i < taken; i++)
		ASSERT_OK(hf_lock_release(other.member[i]));
	close_side(&side);
	close_side(&other);
}

static void majority_decides(void **state)
{
	(void)state;
	check_majority(3, 1, true);
	check_majority(3, 2, false);
	check_majority(5, 2, true);
	check_majority(5, 3, false);
}

static void waiter_gets_the_lock_soon_after_the_release(void **state)
{
	struct side side;
	struct side other;

	(void)state;
	open_side(&side, 3, 30000);
	open_side(&other, 3, 30000);
	ASSERT_OK(hf_lock_acquire(side.red, NULL));
	struct waiter *waiter = waiter_start(other.red, NULL);
	WAIT_UNTIL(stats_of(other.client[0]).attempts >= 3, SOON_MS);
	assert_false(waiter_is_over(waiter));
	/* The lease had 30 s to go. */
	ASSERT_WAKES(hf_lock_release(side.red), waiter, 2000);
	/* Two of the releases were enough. */
	assert_true(servers_held(&other) >= 2);
	waiter_finish(waiter);
	expect_nothing_left(&other);
	close_side(&side);
	close_side(&other);
}

static void owners_of_the_same_clients_exclude_each_other(void **state)
{
	struct side side;
	hf_owner *owner = new_owner();

	(void)state;
	open_side(&side, 3, 30000);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.owner = owner)));
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_lock_release(side.red), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	struct waiter *waiter = waiter_start(side.red, NULL);
	ASSERT_OK(hf_lock_release_with(side.red, HF_RELEASE(.owner = owner)));
	waiter_expect(waiter, 0);
	assert_int_equal(hf_lock_state(side.red, waiter->options.owner), HF_HELD);
	waiter_finish(waiter);
	hf_owner_free(owner);
	expect_nothing_left(&side);
	close_side(&side);
}

static void cancelled_wait_ends_and_leaves_nothing(void **state)
{
	struct side side;
	hf_cancel *cancel = new_cancel();

	(void)state;
	open_side(&side, 3, 30000);
	give_away(0);
	give_away(1);
	struct waiter *waiter = waiter_start(side.red, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= 3, SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 1000);
	assert_int_equal(keys_left(), 2);
	assert_int_equal(holds_of(&side), 0);
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.cancel = cancel)), HF_ECANCELLED);
	assert_int_equal(keys_left(), 2);
	waiter_free(waiter);
	hf_cancel_free(cancel);
	close_side(&side);
}

/* ---- leases ---- */

/* A side whose servers are reached by proxies. */
static void open_far_side(struct side *side, struct proxy **proxy)
{
	memset(side, 0, sizeof(*side));
	side->n = 3;
	for (int i = 0; i < 3; i++) {
		proxy[i] = proxy_start(test_server_url(server[i]));
		side->client[i] = open_url(proxy_url(proxy[i]), NULL);
		side->member[i] = open_lock(side->client[i], NAME);
	}
	ASSERT_OK(hf_lock_open_red(side->member, 3, &side->red));
	/* So that the script is delayed, and not the check whether it is known. */
	ASSERT_OK(hf_lock_acquire(side->red, NULL));
	ASSERT_OK(hf_lock_release(side->red));
}

static void delay(struct proxy **proxy, int delay_ms)
{
	for (int i = 0; i < 3; i++)
		proxy_delay(proxy[i], delay_ms);
}

static void close_far_side(struct side *side, struct proxy **proxy)
{
	close_side(side);
	for (int i = 0; i < 3; i++)
		proxy_stop(proxy[i]);
}

static void time_that_passed_meanwhile_is_not_part_of_the_lease(void **state)
{
	struct side side;
	struct proxy *proxy[3];

	(void)state;
	open_far_side(&side, proxy);
	delay(proxy, 100);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 10000, .lease_ms = 30000)));
	ASSERT_BETWEEN(hf_lock_remaining(side.red, NULL), 20000, 30000 - 302 - 190);
	ASSERT_OK(hf_lock_release(side.red));
	/* Nothing of such a lease is left when the answers arrive. */
	assert_int_not_equal(
		hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .lease_ms = 150)), 0);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
	int rc = hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 700, .lease_ms = 150));
	assert_true(rc == HF_ENOQUORUM || rc == HF_ETIMEDOUT);
	WAIT_UNTIL(keys_left() == 0 && holds_of(&side) == 0, SOON_MS);
	close_far_side(&side, proxy);
}

static void timeout_of_the_wait_is_not_a_lack_of_answers(void **state)
{
	struct side side;
	struct proxy *proxy[3];

	(void)state;
	open_far_side(&side, proxy);
	give_away(0);
	give_away(1);
	delay(proxy, 20);
	/* The last attempt has less time than an answer takes. */
	for (int i = 0; i < 4; i++)
		ASSERT_TIMES_OUT(
			220, hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = within_ms + 10 * i)));
	delay(proxy, 0);
	WAIT_UNTIL(keys_left() == 2 && holds_of(&side) == 0, SOON_MS);
	close_far_side(&side, proxy);
}

static void given_lease_expires_everywhere(void **state)
{
	struct side side;
	struct side other;

	(void)state;
	open_side(&side, 3, 300);
	open_side(&other, 3, 30000);
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 2000, .lease_ms = 900)));
	ASSERT_OK(hf_lock_acquire(other.red, HF_ACQUIRE(.wait_ms = 8000)));
	ASSERT_BETWEEN(test_now_ms() - before, 890, 4000); /* clocks are cut to milliseconds */
	assert_int_equal(hf_lock_state(side.red, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	assert_true(servers_held(&other) >= 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(stats_of(side.client[i]).renewals, 0);
	ASSERT_OK(hf_lock_release(other.red));
	expect_nothing_left(&side);
	close_side(&side);
	close_side(&other);
}

static void members_are_renewed_until_they_are_released(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000)));
	WAIT_UNTIL(stats_of(side.client[0]).renewals >= 3 && stats_of(side.client[2]).renewals >= 3,
	           SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	assert_int_equal(servers_held(&side), 3);
	ASSERT_OK(hf_lock_release(side.red));
	assert_int_equal(seen_count(&side.seen, HF_LOST), 0);
	assert_int_equal(keys_left(), 0);
	close_side(&side);
}

/* ---- servers that are not independent ---- */

static void expect_refused(hf_client *const *client, int n)
{
	hf_lock *member[SERVERS] = {0};
	hf_lock *red = NULL;
	for (int i = 0; i < n; i++)
		member[i] = open_lock(client[i], NAME);
	ASSERT_RC(hf_lock_open_red(member, (size_t)n, &red), HF_EINVAL);
	assert_null(red);
	for (int i = 0; i < n; i++)
		hf_lock_close(member[i]);
}

static void two_members_on_one_server_are_refused(void **state)
{
	int before = process_threads();
	hf_client *one = open_url(test_server_url(server[0]), NULL);
	hf_client *two = open_url(test_server_url(server[1]), NULL);
	hf_client *again = open_url(test_server_url(server[0]), NULL);
	hf_client *database = open_url(test_server_url(server[0]), HF_CLIENT(.database = 1));

	(void)state;
	expect_refused((hf_client *[]){one, two, again}, 3);
	ASSERT_CONTAINS(hf_error_detail(), "one server");
	expect_refused((hf_client *[]){one, two, database}, 3);
	expect_refused((hf_client *[]){database, two, again}, 3);
	hf_lock *first = open_lock(one, "first");
	hf_lock *second = open_lock(one, "second");
	hf_lock *third = open_lock(two, NAME);
	hf_lock *red = NULL;
	ASSERT_RC(hf_lock_open_red((hf_lock *[]){first, second, third}, 3, &red), HF_EINVAL);
	ASSERT_RC(hf_lock_open_red((hf_lock *[]){first, third}, 2, &red), HF_EINVAL);
	ASSERT_RC(hf_lock_open_red((hf_lock *[]){first, third, NULL}, 3, &red), HF_EINVAL);
	ASSERT_RC(hf_lock_open_red(NULL, 3, &red), HF_EINVAL);
	assert_null(red);
	hf_lock_close(first);
	hf_lock_close(second);
	hf_lock_close(third);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
	ASSERT_OK(hf_client_close(again));
	ASSERT_OK(hf_client_close(database));
	assert_int_equal(process_threads(), before);
}

static bool replicates(struct raw *replica)
{
	char *info = raw_text(replica, "INFO", "replication", NULL);
	bool is_up = strstr(info, "master_link_status:up");
	free(info);
	return is_up;
}

static void server_and_its_replica_are_refused(void **state)
{
	struct test_server *master =
		test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	const char *port = strrchr(test_server_url(master), ':') + 1;

	(void)state;
	struct raw *to_master = raw_connect(master);
	raw_ok(to_master, "CONFIG", "SET", "repl-diskless-sync-delay", "0", NULL);
	raw_close(to_master);
	raw_ok(raw[4], "REPLICAOF", "127.0.0.1", port, NULL);
	WAIT_UNTIL(replicates(raw[4]), 15000);
	hf_client *client[] = {open_url(test_server_url(master), NULL),
	                       open_url(test_server_url(server[0]), NULL),
	                       open_url(test_server_url(server[4]), NULL)};
	expect_refused(client, 3);
	ASSERT_CONTAINS(hf_error_detail(), "replica");
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_client_close(client[i]));
	raw_ok(raw[4], "REPLICAOF", "NO", "ONE", NULL);
	test_server_stop(master);
	restart_server(server[4], &raw[4]);
}

static void combined_locks_cannot_be_members(void **state)
{
	struct side side;
	hf_lock *lock = NULL;
	char holder[64];
	int64_t token;

	(void)state;
	open_side(&side, 3, 30000);
	ASSERT_RC(hf_lock_open_multi((hf_lock *[]){side.red}, 1, &lock), HF_EINVAL);
	ASSERT_RC(
		hf_lock_open_red((hf_lock *[]){side.member[0], side.member[1], side.red}, 3, &lock),
		HF_EINVAL);
	assert_null(lock);
	ASSERT_RC(hf_lock_holder(side.red, holder, sizeof holder), HF_ENOTSUP);
	ASSERT_RC(hf_lock_token(side.red, NULL, &token), HF_EINVAL);
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.token = 1)), HF_EINVAL);
	close_side(&side);
}

/* ---- answers that no waiting changes ---- */

static void key_that_is_not_a_lock_is_a_conflict(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 30000);
	/* A minority of them does not matter. */
	raw_ok(raw[0], "SET", NAME, "value", NULL);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(side.red));
	raw_ok(raw[1], "SET", NAME, "value", NULL);
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 1000)), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), NAME);
	assert_int_equal(keys_left(), 2);
	char *text = raw_text(raw[1], "GET", NAME, NULL);
	assert_string_equal(text, "value");
	free(text);
	close_side(&side);
}

static void lock_that_does_not_nest_is_a_deadlock(void **state)
{
	struct side side;
	hf_lock *member[3];
	hf_lock *red = NULL;

	(void)state;
	open_side(&side, 3, 30000);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_lock_open(side.client[i], HF_SIMPLE, "simple", &member[i]));
	ASSERT_OK(hf_lock_open_red(member, 3, &red));
	ASSERT_OK(hf_lock_acquire(red, NULL));
	ASSERT_RC(hf_lock_acquire(red, HF_ACQUIRE(.wait_ms = 1000)), HF_EDEADLOCK);
	assert_int_equal(hf_lock_state(red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(red));
	assert_int_equal(keys_left(), 0);
	for (int i = 0; i < 3; i++)
		hf_lock_close(member[i]);
	hf_lock_close(red);
	close_side(&side);
}

/* ---- many at once ---- */

#define ROUNDS 60

struct crowd {
	struct side side[2];
	pthread_barrier_t start;
	long long counter; /* only the lock protects it */
	atomic_int next;
	atomic_int failures;
	char detail[400];
};

static void *work(void *arg)
{
	struct crowd *crowd = arg;
	int number = atomic_fetch_add(&crowd->next, 1);
	hf_lock *lock = crowd->side[number % 2].red;
	pthread_barrier_wait(&crowd->start);
	for (int i = 0; i < ROUNDS; i++) {
		int rc;
		int64_t lease_ms = i % 2 ? 0 : 20000;
		while ((rc = hf_lock_acquire(lock,
		                             HF_ACQUIRE(.wait_ms = 4000, .lease_ms = lease_ms))) ==
		       HF_ETIMEDOUT)
			continue;
		if (!rc) {
			crowd->counter++;
			rc = hf_lock_release(lock);
		}
		if (rc && atomic_fetch_add(&crowd->failures, 1) == 0)
			snprintf(crowd->detail, sizeof crowd->detail, "%d: %s", rc,
			         hf_error_detail());
	}
	return NULL;
}

static void sides_that_compete_lose_no_update(void **state)
{
	struct crowd crowd;
	pthread_t thread[4];
	int before = process_threads();

	(void)state;
	memset(&crowd, 0, sizeof crowd);
	assert_int_equal(pthread_barrier_init(&crowd.start, NULL, 4), 0);
	open_side(&crowd.side[0], 3, 30000);
	open_side(&crowd.side[1], 3, 30000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &crowd), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&crowd.start);
	if (atomic_load(&crowd.failures))
		fail_msg("%d calls failed, the first with %s", atomic_load(&crowd.failures),
		         crowd.detail);
	assert_int_equal(crowd.counter, 4 * ROUNDS);
	expect_nothing_left(&crowd.side[0]);
	expect_nothing_left(&crowd.side[1]);
	close_side(&crowd.side[0]);
	close_side(&crowd.side[1]);
	WAIT_UNTIL(process_threads() == before, SOON_MS);
}

/* ---- clients that are closed ---- */

static void close_answers_the_waiters(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 30000);
	give_away(0);
	give_away(1);
	struct waiter *waiter = waiter_start(side.red, NULL);
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= 2, SOON_MS);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_client_close(side.client[i]));
	waiter_expect(waiter, HF_ECLOSED);
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 1000)), HF_ECLOSED);
	assert_int_equal(keys_left(), 2);
	waiter_free(waiter);
	hf_lock_close(side.red);
	for (int i = 0; i < 3; i++)
		hf_lock_close(side.member[i]);
}

/* Without the other two there is no majority, whichever one is left. */
static void close_all_but(int left)
{
	struct side side;
	struct side other;

	open_side(&side, 3, 30000);
	open_side(&other, 3, 30000);
	ASSERT_OK(hf_lock_acquire(other.red, NULL));
	/* Limited, so that a waiter that is forgotten does not hang the test. */
	struct waiter *waiter = waiter_start(side.red, HF_ACQUIRE(.wait_ms = 3000));
	WAIT_UNTIL(stats_of(side.client[left]).attempts >= 2, SOON_MS);
	for (int i = 0; i < 3; i++)
		if (i != left)
			ASSERT_OK(hf_client_close(side.client[i]));
	waiter_join(waiter, HF_ECLOSED);
	ASSERT_OK(hf_lock_release(other.red));
	hf_lock_close(side.red);
	for (int i = 0; i < 3; i++)
		hf_lock_close(side.member[i]);
	ASSERT_OK(hf_client_close(side.client[left]));
	close_side(&other);
}

static void close_of_the_majority_answers_the_waiters(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		close_all_but(i);
}

static void close_of_a_minority_costs_nothing(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_client_close(side.client[0]));
	assert_int_equal(raw_integer(raw[0], "DBSIZE", NULL), 0);
	WAIT_UNTIL(stats_of(side.client[1]).renewals >= 2, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(side.red));
	ASSERT_OK(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = 5000)));
	assert_int_equal(keys_left(), 2);
	/* And without the majority it is lost. */
	ASSERT_OK(hf_client_close(side.client[1]));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(side.red, NULL), 0);
	assert_int_not_equal(hf_lock_release(side.red), 0);
	assert_int_equal(keys_left(), 0);
	hf_lock_close(side.red);
	for (int i = 0; i < 3; i++)
		hf_lock_close(side.member[i]);
	ASSERT_OK(hf_client_close(side.client[2]));
}

/* ---- asynchronous forms ---- */

static void every_verb_has_an_asynchronous_form(void **state)
{
	struct side side;
	struct done done = {0};
	hf_owner *owner = new_owner();
	hf_cancel *cancel = new_cancel();

	(void)state;
	open_side(&side, 3, 30000);
	ASSERT_RC(hf_lock_acquire_async(side.red, NULL, note_done, &done), HF_EINVAL);
	ASSERT_OK(hf_lock_acquire_async(side.red, HF_ACQUIRE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	assert_int_equal(servers_held(&side), 3);
	check_async_hold(side.red, owner);
	ASSERT_RC(hf_lock_holder_async(side.red, note_done, &done), HF_ENOTSUP);
	ASSERT_OK(hf_lock_release_async(side.red, HF_RELEASE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	assert_int_equal(keys_left(), 0);
	ASSERT_OK(hf_lock_force_release_async(side.red, note_done, &done));
	assert_int_equal(await_done(&done, 0), 0);
	give_away(0);
	give_away(1);
	ASSERT_OK(hf_lock_acquire_async(side.red, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT),
	                                note_done, &done));
	await_done(&done, HF_EBUSY);
	ASSERT_OK(hf_lock_acquire_async(side.red, HF_ACQUIRE(.owner = owner, .wait_ms = 200),
	                                note_done, &done));
	await_done(&done, HF_ETIMEDOUT);
	uint64_t attempts = stats_of(side.client[2]).attempts;
	ASSERT_OK(hf_lock_acquire_async(side.red, HF_ACQUIRE(.owner = owner, .cancel = cancel),
	                                note_done, &done));
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= attempts + 2, SOON_MS);
	hf_cancel_fire(cancel);
	await_done(&done, HF_ECANCELLED);
	WAIT_UNTIL(keys_left() == 2 && holds_of(&side) == 0, SOON_MS);
	hf_cancel_free(cancel);
	hf_owner_free(owner);
	close_side(&side);
}

static void handle_may_be_closed_while_a_call_is_in_progress(void **state)
{
	struct side side;
	struct done done = {0};
	hf_owner *owner = new_owner();

	(void)state;
	open_side(&side, 3, 30000);
	give_away(0);
	give_away(1);
	ASSERT_OK(hf_lock_acquire_async(side.red, HF_ACQUIRE(.owner = owner), note_done, &done));
	WAIT_UNTIL(stats_of(side.client[2]).attempts >= 2, SOON_MS);
	hf_lock_close(side.red);
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	await_done(&done, 0);
	ASSERT_OK(hf_lock_open_red(side.member, 3, &side.red));
	assert_int_equal(hf_lock_state(side.red, owner), HF_HELD);
	ASSERT_OK(hf_lock_release_with(side.red, HF_RELEASE(.owner = owner)));
	assert_int_equal(keys_left(), 1);
	hf_owner_free(owner);
	close_side(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RED_STORY(lock_of_a_killed_process_is_free_within_its_lease),
		RED_STORY(lock_is_on_all_servers_until_it_is_released),
		RED_STORY(forced_release_is_not_repaired),
		RED_STORY(majority_decides),
		RED_STORY(waiter_gets_the_lock_soon_after_the_release),
		RED_STORY(owners_of_the_same_clients_exclude_each_other),
		RED_STORY(cancelled_wait_ends_and_leaves_nothing),
		RED_STORY(time_that_passed_meanwhile_is_not_part_of_the_lease),
		RED_STORY(timeout_of_the_wait_is_not_a_lack_of_answers),
		RED_STORY(given_lease_expires_everywhere),
		RED_STORY(members_are_renewed_until_they_are_released),
		RED_STORY(two_members_on_one_server_are_refused),
		RED_STORY(server_and_its_replica_are_refused),
		RED_STORY(combined_locks_cannot_be_members),
		RED_STORY(key_that_is_not_a_lock_is_a_conflict),
		RED_STORY(lock_that_does_not_nest_is_a_deadlock),
		RED_STORY(sides_that_compete_lose_no_update),
		RED_STORY(close_answers_the_waiters),
		RED_STORY(close_of_the_majority_answers_the_waiters),
		RED_STORY(close_of_a_minority_costs_nothing),
		RED_STORY(every_verb_has_an_asynchronous_form),
		RED_STORY(handle_may_be_closed_while_a_call_is_in_progress),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
