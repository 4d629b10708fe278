/* Slots that move to another master while their locks are held and waited for. */
#include "live/cluster_crowd.h"
#include "live/cluster_load.h"

/* A release reaches every waiter within this time; a lost message would cost far more. */
#define WAKE_MS 1000

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(&(struct test_cluster_options){.node_timeout_ms = 10000});
	return 0;
}

/* ---- waiters and holders ---- */

static void waiters_follow_a_slot_that_is_moved_by_hand(void **state)
{
	(void)state;
	move_under_waiters(move_by_hand, WAKE_MS);
}

static void waiters_of_plain_channels_follow_a_slot(void **state)
{
	(void)state;
	cluster_setting = "?sharded=off";
	move_under_waiters(move_by_hand, WAKE_MS);
}

static void waiters_follow_a_slot_that_the_server_migrates(void **state)
{
	(void)state;
	if (!test_cluster_can_migrate(cluster)) {
		print_message("Left out: CLUSTER MIGRATESLOTS, which the server does not know\n");
		return;
	}
	move_under_waiters(move_by_server, WAKE_MS);
}

/* The lease of holds whose slot moves, and how late a renewal may be on a loaded machine. */
#define MOVED_LEASE_MS 3000
#define LATE_MS        800

/*
 * For a while, no hold has less left than the two thirds of a lease that are left when it is
 * renewed.
 */
static void watch_leases(const struct crowd *crowd, int node, long long ms)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	for (long long ends_at = test_now_ms() + ms; test_now_ms() < ends_at; test_pause())
		for (int i = 0; i < ROWS; i++)
			ASSERT_BETWEEN(key_pttl(raw, crowd->name[i]),
			               MOVED_LEASE_MS * 2 / 3 - LATE_MS, MOVED_LEASE_MS);
	raw_close(raw);
}

/* Of each kind, one hold lasts for several leases, during which the slot moves several times. */
static void holds_are_renewed_where_the_slot_is(void **state)
{
	int slot = test_slot("moved under holders");
	struct crowd *crowd = begin_crowd(slot, MOVED_LEASE_MS);
	(void)state;
	for (int round = 0; round < 4; round++) {
		int to = another_master(test_cluster_owner(cluster, slot));
		test_cluster_move_slot(cluster, slot, to);
		watch_leases(crowd, to, 1700);
		for (int i = 0; i < ROWS; i++) {
			assert_int_equal(hf_lock_state(crowd->mine[i], NULL), HF_HELD);
			assert_true(node_has(to, crowd->name[i]));
		}
		assert_int_equal(hf_permits_state(crowd->permits[0], crowd->id[0]), HF_HELD);
	}
	await_all(crowd);
	release_locks(crowd, WAKE_MS);
	release_synchronizers(crowd, WAKE_MS);
	end_crowd(crowd);
}

/* ---- a slot that stays open ---- */

/* The second client describes its holds, which takes one more key for each. */
struct open_slot {
	int slot;
	int from;
	int to;
	struct seen seen;
	hf_client *one;
	hf_client *two;
};

static struct open_slot *begin_open_slot(const char *name, int64_t watchdog_ms)
{
	struct open_slot *open = check_alloc(sizeof(*open));
	open->slot = test_slot(name);
	open->from = test_cluster_owner(cluster, open->slot);
	open->to = another_master(open->from);
	open->one = open_cluster(HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&open->seen)));
	open->two = open_cluster(HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&open->seen),
	                                   .describe = "the second"));
	return open;
}

static void end_open_slot(struct open_slot *open)
{
	assert_int_equal(seen_count(&open->seen, HF_AT_RISK), 0);
	assert_int_equal(seen_count(&open->seen, HF_LOST), 0);
	ASSERT_OK(hf_client_close(open->one));
	ASSERT_OK(hf_client_close(open->two));
	free(open);
}

static hf_lock *open_in_slot(struct open_slot *open, hf_client *client, const char *prefix)
{
	char *name = test_slot_name(open->slot, prefix);
	hf_lock *lock = open_lock(client, name);
	free(name);
	return lock;
}

enum move_phase { BEFORE, OPEN, MOVED, CLOSED, PHASES };

static void enter_phase(const struct open_slot *open, enum move_phase phase)
{
	if (phase == OPEN)
		test_cluster_open_slot(cluster, open->slot, open->from, open->to);
	else if (phase == MOVED)
		test_cluster_move_keys(cluster, open->slot, open->from, open->to);
	else if (phase == CLOSED)
		test_cluster_close_slot(cluster, open->slot, open->from, open->to);
}

/* A lock of each client that is held from one phase to another. */
struct span {
	hf_lock *lock[2];
};

static void begin_span(struct span *span, struct open_slot *open, enum move_phase begin,
                       enum move_phase end)
{
	hf_client *client[] = {open->one, open->two};
	for (int i = 0; i < 2; i++) {
		char *prefix = check_format("from-%d-to-%d-of-%d-", begin, end, i);
		span->lock[i] = open_in_slot(open, client[i], prefix);
		ASSERT_OK(hf_lock_acquire(span->lock[i], HF_ACQUIRE(.wait_ms = 5000)));
		free(prefix);
	}
}

static void end_span(struct span *span)
{
	for (int i = 0; i < 2; i++) {
		int locked = -1;
		assert_int_equal(hf_lock_state(span->lock[i], NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(span->lock[i]));
		ASSERT_OK(hf_lock_is_locked(span->lock[i], &locked));
		assert_int_equal(locked, 0);
		hf_lock_close(span->lock[i]);
	}
}

/*
 * A lock is taken in each phase and released in each later one; each phase lasts longer than a
 * lease.
 */
static void locks_are_held_and_released_in_every_phase_of_a_move(void **state)
{
	struct open_slot *open = begin_open_slot("left open", 2400);
	struct span span[PHASES][PHASES];
	(void)state;
	for (enum move_phase phase = BEFORE; phase < PHASES; phase++) {
		enter_phase(open, phase);
		for (enum move_phase end = phase; end < PHASES; end++)
			begin_span(&span[phase][end], open, phase, end);
		let_pass(2600);
		for (enum move_phase begin = BEFORE; begin <= phase; begin++)
			end_span(&span[begin][phase]);
	}
	end_open_slot(open);
}

/* Every release of an open slot is noticed, if need be by asking from time to time. */
static void waiters_are_served_in_every_phase_of_a_move(void **state)
{
	struct open_slot *open = begin_open_slot("left open for waiters", 0);
	hf_lock *mine[PHASES], *theirs[PHASES];
	struct waiter *waiter[PHASES];
	(void)state;
	for (enum move_phase phase = BEFORE; phase < PHASES; phase++) {
		char *prefix = check_format("awaited-%d-", phase);
		mine[phase] = open_in_slot(open, open->one, prefix);
		theirs[phase] = open_in_slot(open, open->two, prefix);
		ASSERT_OK(hf_lock_acquire(mine[phase], NULL));
		waiter[phase] = waiter_start(theirs[phase], HF_ACQUIRE(.wait_ms = 60000));
		free(prefix);
	}
	WAIT_UNTIL(stats_of(open->two).waiting == PHASES, SOON_MS);
	ASSERT_OK(hf_client_ping(open->two, NULL));
	for (enum move_phase phase = BEFORE; phase < PHASES; phase++) {
		enter_phase(open, phase);
		ASSERT_OK(hf_lock_release(mine[phase]));
		long long released_at = test_now_ms();
		waiter_expect(waiter[phase], 0);
		if (waiter[phase]->ended_at - released_at > (phase == MOVED ? SOON_MS : WAKE_MS))
			fail_msg("in phase %d: %lld ms", phase,
			         waiter[phase]->ended_at - released_at);
		waiter_finish(waiter[phase]);
		hf_lock_close(mine[phase]);
		hf_lock_close(theirs[phase]);
	}
	end_open_slot(open);
}

/*
 * Kinds with several keys have to wait for their keys to be together again, and nothing is lost by
 * that.
 */
static void kinds_with_several_keys_outlast_an_open_slot(void **state)
{
	int slot = test_slot("left open for all kinds");
	int from = test_cluster_owner(cluster, slot);
	int to = another_master(from);
	struct crowd *crowd = begin_crowd(slot, 4500);
	(void)state;
	await_all(crowd);
	test_cluster_open_slot(cluster, slot, from, to);
	uint64_t before = stats_of(crowd->one).commands + stats_of(crowd->two).commands;
	let_pass(5000);
	/* Nobody asks without a pause. */
	assert_true(stats_of(crowd->one).commands + stats_of(crowd->two).commands - before < 1000);
	for (int i = 0; i < ROWS; i++)
		assert_int_equal(hf_lock_state(crowd->mine[i], NULL), HF_HELD);
	test_cluster_move_keys(cluster, slot, from, to);
	let_pass(5000);
	/*
	 * Keys that were created again at the source meanwhile would keep the slot from being
	 * closed.
	 */
	test_cluster_move_keys(cluster, slot, from, to);
	test_cluster_close_slot(cluster, slot, from, to);
	let_pass(500);
	release_locks(crowd, WAKE_MS);
	release_synchronizers(crowd, WAKE_MS);
	end_crowd(crowd);
}

static long long count_waiters(int node, const char *lock)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	char *waiters = check_format("holdfast_waiter:{%s}", lock);
	long long count = raw_integer(raw, "ZCARD", waiters, NULL);
	free(waiters);
	raw_close(raw);
	return count;
}

/* Nobody gets the lock, and those that wait for it ask again. */
static void wake_waiters(int node, const char *lock)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	char *channel = check_format("redisson_lock__channel:{%s}", lock);
	raw_reply_free(raw_command(raw, is_sharded() ? "SPUBLISH" : "PUBLISH", channel, "0", NULL));
	free(channel);
	raw_close(raw);
}

/*
 * Of a lock that is held and waited for, only the lock itself has moved, and the rest is still at
 * the source. What is written again at the target would be refused by it as BUSYKEY when the rest
 * is moved.
 */
static void notes_do_not_stop_a_move(void **state)
{
	struct open_slot *open = begin_open_slot("noted", 30000);
	hf_lock *mine = open_lock(open->two, "noted");
	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(mine, HF_ACQUIRE(.owner = new_owner()));
	WAIT_UNTIL(count_waiters(open->from, "noted") == 1, 5000);
	test_cluster_open_slot(cluster, open->slot, open->from, open->to);
	test_cluster_move_key(cluster, "noted", open->from, open->to);
	/* The second one is not sent before the first is answered. */
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t before = stats_of(open->two).attempts;
		wake_waiters(open->from, "noted");
		WAIT_UNTIL(stats_of(open->two).attempts > before, 5000);
	}
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	test_cluster_move_keys(cluster, open->slot, open->from, open->to);
	test_cluster_close_slot(cluster, open->slot, open->from, open->to);
	WAIT_UNTIL(count_waiters(open->to, "noted") == 1, 5000);
	ASSERT_OK(hf_lock_release(mine));
	ASSERT_OK(hf_lock_release(mine));
	waiter_finish(waiter);
	hf_lock_close(mine);
	end_open_slot(open);
}

/* ---- many slots under load ---- */

#define SLOTS 100

/* The first of a number of slots that all belong to this master. */
static int slots_of(int master)
{
	int first = 0;
	while (test_cluster_owner(cluster, first) != master ||
	       test_cluster_owner(cluster, first + SLOTS - 1) != master)
		first += SLOTS;
	return first;
}

/* The server moves them where it can. */
static void move_all(int first, int to)
{
	if (test_cluster_can_migrate(cluster))
		test_cluster_migrate(cluster, first, first + SLOTS - 1, to);
	else
		test_cluster_move_slots(cluster, first, first + SLOTS - 1, to);
}

static void counts_are_exact_while_slots_move(void **state)
{
	int home = test_cluster_master(cluster, 1);
	int first = slots_of(home);
	char *names[NAMES];
	(void)state;
	for (int i = 0; i < NAMES; i++)
		names[i] = test_slot_name(first + i * 30, "loaded-");
	struct load *load = load_start(names);
	load_run(load, 100);
	test_cluster_move_slots(cluster, first, first + SLOTS - 1, another_master(home));
	load_run(load, 100);
	move_all(first, home);
	load_run(load, 100);
	load_finish(load);
}

/* Takes permits and gives them back, until the story is over. */
struct taker {
	hf_client *client;
	const char *name;
	atomic_bool *is_over;
	atomic_int rounds;
};

static int take_and_give(void *arg)
{
	struct taker *taker = arg;
	hf_semaphore *semaphore = NULL;
	int rc = hf_semaphore_open(taker->client, taker->name, &semaphore);
	for (int n = 1; !rc && !atomic_load(taker->is_over); n = n % 3 + 1) {
		rc = hf_semaphore_acquire(semaphore, n, HF_WAIT(.wait_ms = 60000));
		test_pause();
		if (!rc)
			rc = hf_semaphore_release(semaphore, n);
		atomic_fetch_add(&taker->rounds, 1);
	}
	hf_semaphore_close(semaphore);
	return rc;
}

/* Requests without an owner are done exactly once, however often they are redirected. */
static void no_permit_is_lost_or_made_while_slots_move(void **state)
{
	int home = test_cluster_master(cluster, 0);
	int slot = slots_of(home);
	char *name = test_slot_name(slot, "counted-");
	atomic_bool is_over = false;
	struct taker taker[WORKERS];
	struct waiter *call[WORKERS];
	hf_client *client = open_cluster(NULL);
	hf_semaphore *semaphore = NULL;
	int64_t left = -1;
	(void)state;
	ASSERT_OK(hf_semaphore_open(client, name, &semaphore));
	ASSERT_OK(hf_semaphore_try_set(semaphore, 5, 0, NULL));
	for (int i = 0; i < WORKERS; i++) {
		taker[i] = (struct taker){open_cluster(NULL), name, &is_over, 0};
		call[i] = WAITER(.run = take_and_give, .arg = &taker[i]);
	}
	for (int round = 0; round < 20; round++) {
		int rounds = atomic_load(&taker[0].rounds);
		test_cluster_move_slot(cluster, slot, round % 2 ? home : another_master(home));
		WAIT_UNTIL(atomic_load(&taker[0].rounds) > rounds + 2, 20000);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < WORKERS; i++) {
		waiter_join(call[i], 0);
		ASSERT_OK(hf_client_close(taker[i].client));
	}
	ASSERT_OK(hf_semaphore_available(semaphore, &left));
	assert_int_equal(left, 5);
	hf_semaphore_close(semaphore);
	ASSERT_OK(hf_client_close(client));
	free(name);
}

#define WAITERS 200

static int pass_through(void *arg)
{
	hf_lock *lock = arg;
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000));
	return rc ? rc : hf_lock_release(lock);
}

static void every_waiter_is_served_after_a_move(void **state)
{
	enum { LOCKS = SLOTS / 5 };
	int home = test_cluster_master(cluster, 1);
	int first = slots_of(home);
	hf_client *one = open_cluster(NULL);
	hf_client *two = open_cluster(NULL);
	hf_lock *mine[LOCKS], *theirs[LOCKS];
	struct waiter *waiter[WAITERS];
	(void)state;
	for (int i = 0; i < LOCKS; i++) {
		char *name = test_slot_name(first + i * 5, "served-");
		mine[i] = open_lock(one, name);
		theirs[i] = open_lock(two, name);
		ASSERT_OK(hf_lock_acquire(mine[i], NULL));
		free(name);
	}
	for (int i = 0; i < WAITERS; i++)
		waiter[i] = WAITER(.run = pass_through, .arg = theirs[i % LOCKS]);
	WAIT_UNTIL(stats_of(two).waiting == WAITERS, 20000);
	move_all(first, another_master(home));
	long long released_at = test_now_ms();
	for (int i = 0; i < LOCKS; i++)
		ASSERT_OK(hf_lock_release(mine[i]));
	for (int i = 0; i < WAITERS; i++)
		waiter_join(waiter[i], 0);
	assert_true(test_now_ms() - released_at < 10000);
	for (int i = 0; i < LOCKS; i++) {
		hf_lock_close(mine[i]);
		hf_lock_close(theirs[i]);
	}
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
	move_all(first, home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_STORY(waiters_follow_a_slot_that_is_moved_by_hand),
		CLUSTER_STORY(waiters_of_plain_channels_follow_a_slot),
		CLUSTER_STORY(waiters_follow_a_slot_that_the_server_migrates),
		CLUSTER_STORY(holds_are_renewed_where_the_slot_is),
		CLUSTER_STORY(locks_are_held_and_released_in_every_phase_of_a_move),
		CLUSTER_STORY(waiters_are_served_in_every_phase_of_a_move),
		CLUSTER_STORY(kinds_with_several_keys_outlast_an_open_slot),
		CLUSTER_STORY(notes_do_not_stop_a_move),
		CLUSTER_STORY(counts_are_exact_while_slots_move),
		CLUSTER_STORY(no_permit_is_lost_or_made_while_slots_move),
		CLUSTER_STORY(every_waiter_is_served_after_a_move),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
