/*
 * Slots that stay open for long, and a reshard of all slots, under locks that are held and waited
 * for.
 */
#include "live/cluster_crowd.h"

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(
		&(struct test_cluster_options){.replicas = NO_REPLICAS, .node_timeout_ms = 20000});
	return 0;
}

/* ---- a slot that is left open ---- */

#define OPEN_MS 40000

/* What happens to a slot while it is open, counted by the threads that work in it. */
struct traffic {
	int slot;
	hf_client *client;
	atomic_bool is_over;
	atomic_int rounds;
	atomic_int worst_ms; /* of one round */
};

/* Takes and releases locks of the slot, new ones and old ones, one after the other. */
static int take_turns(void *arg)
{
	struct traffic *traffic = arg;
	int rc = 0;
	for (int i = 0; !rc && !atomic_load(&traffic->is_over); i++) {
		char *prefix = check_format("turn-%d-", i % 20);
		char *name = test_slot_name(traffic->slot, prefix);
		hf_lock *lock = open_lock(traffic->client, name);
		long long before = test_now_ms();
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 20000));
		if (!rc)
			rc = hf_lock_release_with(lock, HF_RELEASE(.wait_ms = 20000));
		int took_ms = (int)(test_now_ms() - before);
		if (took_ms > atomic_load(&traffic->worst_ms))
			atomic_store(&traffic->worst_ms, took_ms);
		atomic_fetch_add(&traffic->rounds, 1);
		hf_lock_close(lock);
		free(name);
		free(prefix);
	}
	return rc;
}

/* One lock that a client holds and another one waits for, released while the slot is open. */
struct watched {
	hf_lock *mine;
	hf_lock *theirs;
	struct waiter *waiter;
};

static void begin_watched(struct watched *watched, const struct crowd *crowd, int number)
{
	char *prefix = check_format("released-%d-", number);
	char *name = test_slot_name(crowd->slot, prefix);
	watched->mine = open_lock(crowd->one, name);
	watched->theirs = open_lock(crowd->two, name);
	ASSERT_OK(hf_lock_acquire(watched->mine, HF_ACQUIRE(.wait_ms = 20000)));
	watched->waiter = waiter_start(watched->theirs, HF_ACQUIRE(.wait_ms = 60000));
	free(prefix);
	free(name);
}

/* Returns how long the waiter took. */
static long long end_watched(struct watched *watched)
{
	assert_int_equal(hf_lock_state(watched->mine, NULL), HF_HELD);
	assert_false(waiter_is_over(watched->waiter));
	ASSERT_OK(hf_lock_release_with(watched->mine, HF_RELEASE(.wait_ms = 20000)));
	long long released_at = test_now_ms();
	waiter_expect(watched->waiter, 0);
	long long took_ms = watched->waiter->ended_at - released_at;
	waiter_finish(watched->waiter);
	hf_lock_close(watched->mine);
	hf_lock_close(watched->theirs);
	return took_ms;
}

/*
 * Half of the time the keys are at the old master, half of it at the new one. Locks with one key
 * are taken, renewed, released and waited for; the others keep what they have, and are released
 * when the slot is closed.
 */
static void a_slot_can_stay_open_for_longer_than_a_lease(void **state)
{
	int slot = test_slot("left open for long");
	int from = test_cluster_owner(cluster, slot), to = another_master(from);
	struct crowd *crowd = begin_crowd(slot, 6000);
	struct traffic traffic = {.slot = slot, .client = open_cluster(NULL)};
	long long worst_ms = 0, opened_at, moved_at = 0;
	int released = 0;
	(void)state;
	await_all(crowd);
	test_cluster_open_slot(cluster, slot, from, to);
	opened_at = test_now_ms();
	struct waiter *turns = WAITER(.run = take_turns, .arg = &traffic);
	uint64_t before = stats_of(crowd->one).commands + stats_of(crowd->two).commands;
	while (test_now_ms() < opened_at + OPEN_MS) {
		struct watched watched;
		begin_watched(&watched, crowd, released++);
		let_pass(1000);
		long long took_ms = end_watched(&watched);
		worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
		if (!moved_at && test_now_ms() > opened_at + OPEN_MS / 2) {
			moved_at = test_now_ms();
			test_cluster_move_keys(cluster, slot, from, to);
		}
	}
	uint64_t commands = stats_of(crowd->one).commands + stats_of(crowd->two).commands - before;
	for (int i = 0; i < ROWS; i++)
		assert_int_equal(hf_lock_state(crowd->mine[i], NULL), HF_HELD);
	atomic_store(&traffic.is_over, true);
	waiter_join(turns, 0);
	test_cluster_move_keys(cluster, slot, from, to);
	test_cluster_close_slot(cluster, slot, from, to);
	print_message(
		"open for %lld ms: %d turns, the slowest of %d ms; %d releases, heard after at "
		"most %lld ms; %llu requests\n",
		test_now_ms() - opened_at, atomic_load(&traffic.rounds),
		atomic_load(&traffic.worst_ms), released, worst_ms, (unsigned long long)commands);
	/* Nobody asks without a pause, and each round was a matter of seconds. */
	assert_true(commands < 20000);
	assert_true(worst_ms < 5000);
	assert_true(atomic_load(&traffic.rounds) > 20);
	let_pass(500);
	release_locks(crowd, SOON_MS);
	release_synchronizers(crowd, SOON_MS);
	end_crowd(crowd);
	ASSERT_OK(hf_client_close(traffic.client));
}

/* ---- all slots ---- */

#define WAITERS 1000
#define LOCKS   100
#define CLIENTS 4

#define TOGETHER 100 /* slots that move one after the other, until it is another master's turn */

struct mover {
	struct raw *raw[MASTERS];
	int moved;
};

static void set_owner(struct mover *mover, int node, int slot, int owner)
{
	char number[8];
	(void)snprintf(number, sizeof number, "%d", slot);
	raw_ok(mover->raw[node], "CLUSTER", "SETSLOT", number, "NODE", cluster->id[owner], NULL);
}

static void move_one(struct mover *mover, int slot, int from, int to)
{
	test_cluster_open_slot(cluster, slot, from, to);
	test_cluster_move_keys(cluster, slot, from, to);
	set_owner(mover, to, slot, to);
	set_owner(mover, from, slot, to);
	for (int node = 0; node < MASTERS; node++)
		if (node != from && node != to)
			set_owner(mover, node, slot, to);
}

static int first_slot(int master)
{
	return CLUSTER_SLOTS * master / MASTERS;
}

/*
 * Moves slots of one master to the next one. Where the server can do that, it moves them together.
 */
static void move_range(struct mover *mover, int first, int last, int from)
{
	int to = (from + 1) % MASTERS;
	if (test_cluster_can_migrate(cluster))
		test_cluster_migrate(cluster, first, last, to);
	for (int slot = first; slot <= last && !test_cluster_can_migrate(cluster); slot++)
		move_one(mover, slot, from, to);
	mover->moved += last - first + 1;
}

/*
 * Every slot goes to the next master. The masters take turns, since one that has lost its last slot
 * would become a replica.
 */
static void reshard(struct mover *mover)
{
	for (int i = 0; i < MASTERS; i++) {
		assert_int_equal(test_cluster_owner(cluster, first_slot(i)), i);
		mover->raw[i] = test_cluster_connect(cluster, i);
	}
	for (int offset = 0; offset <= CLUSTER_SLOTS / MASTERS; offset += TOGETHER)
		for (int i = 0; i < MASTERS; i++) {
			int first = first_slot(i) + offset, last = first + TOGETHER - 1;
			if (last >= first_slot(i + 1))
				last = first_slot(i + 1) - 1;
			if (first <= last)
				move_range(mover, first, last, i);
		}
	for (int i = 0; i < MASTERS; i++)
		raw_close(mover->raw[i]);
}

/* A waiter's turn: it counts under the lock, so that one too many would be noticed. */
struct turn {
	hf_lock *lock;
	atomic_int *inside;
	atomic_int *served;
	atomic_int *overlaps;
};

static int serve(void *arg)
{
	struct turn *turn = arg;
	int rc = hf_lock_acquire(turn->lock, HF_ACQUIRE(.wait_ms = 300000));
	if (rc)
		return rc;
	if (atomic_fetch_add(turn->inside, 1))
		atomic_fetch_add(turn->overlaps, 1);
	test_pause();
	atomic_fetch_add(turn->served, 1);
	atomic_fetch_sub(turn->inside, 1);
	return hf_lock_release_with(turn->lock, HF_RELEASE(.wait_ms = 20000));
}

struct reshard {
	hf_client *holder;
	hf_owner *owner; /* of all that is held, which two threads release */
	hf_client *client[CLIENTS];
	hf_lock *mine[LOCKS];
	hf_lock *theirs[LOCKS][CLIENTS];
	atomic_int inside[LOCKS];
	atomic_int served[LOCKS];
	atomic_int overlaps;
	struct turn turn[WAITERS];
	struct waiter *waiter[WAITERS];
};

static void begin_reshard(struct reshard *all)
{
	all->holder = open_cluster(NULL);
	ASSERT_OK(hf_owner_new(&all->owner));
	for (int i = 0; i < CLIENTS; i++)
		all->client[i] = open_cluster(NULL);
	for (int i = 0; i < LOCKS; i++) {
		char *name = check_format("resharded-%d", i);
		all->mine[i] = open_lock(all->holder, name);
		ASSERT_OK(hf_lock_acquire(all->mine[i], HF_ACQUIRE(.owner = all->owner)));
		for (int n = 0; n < CLIENTS; n++)
			all->theirs[i][n] = open_lock(all->client[n], name);
		free(name);
	}
	for (int i = 0; i < WAITERS; i++) {
		int lock = i % LOCKS;
		all->turn[i] =
			(struct turn){all->theirs[lock][i / LOCKS % CLIENTS], &all->inside[lock],
		                      &all->served[lock], &all->overlaps};
		all->waiter[i] = WAITER(.run = serve, .arg = &all->turn[i]);
	}
}

static int count_waiting(const struct reshard *all)
{
	int count = 0;
	for (int i = 0; i < CLIENTS; i++)
		count += (int)stats_of(all->client[i]).waiting;
	return count;
}

static void end_reshard(struct reshard *all)
{
	for (int i = 0; i < LOCKS; i++) {
		hf_lock_close(all->mine[i]);
		for (int n = 0; n < CLIENTS; n++)
			hf_lock_close(all->theirs[i][n]);
	}
	assert_int_equal(stats_of(all->holder).losses, 0);
	ASSERT_OK(hf_client_close(all->holder));
	hf_owner_free(all->owner);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(stats_of(all->client[i]).losses, 0);
		ASSERT_OK(hf_client_close(all->client[i]));
	}
	free(all);
}

static int release_one(struct reshard *all, int i)
{
	return hf_lock_release_with(all->mine[i],
	                            HF_RELEASE(.owner = all->owner, .wait_ms = 20000));
}

/*
 * A third of the locks is released before the slots move, a third meanwhile, and a third
 * afterwards.
 */
static int release_meanwhile(void *arg)
{
	struct reshard *all = arg;
	for (int i = 0; i < LOCKS; i++) {
		if (i % 3 != 1)
			continue;
		int rc = release_one(all, i);
		if (rc)
			return rc;
		let_pass(100);
	}
	return 0;
}

static void release_third(struct reshard *all, int third)
{
	for (int i = third; i < LOCKS; i += 3)
		ASSERT_OK(release_one(all, i));
}

static void every_waiter_is_served_once_over_a_reshard_of_all_slots(void **state)
{
	struct reshard *all = check_alloc(sizeof(*all));
	struct mover mover = {.moved = 0};
	(void)state;
	begin_reshard(all);
	WAIT_UNTIL(count_waiting(all) == WAITERS, 60000);
	release_third(all, 0);
	long long began_at = test_now_ms();
	struct waiter *releaser = WAITER(.run = release_meanwhile, .arg = all);
	reshard(&mover);
	long long moved_at = test_now_ms();
	waiter_join(releaser, 0);
	release_third(all, 2);
	for (int i = 0; i < WAITERS; i++)
		waiter_join(all->waiter[i], 0);
	print_message("%d slots moved in %lld ms; the last waiter was served %lld ms after that\n",
	              mover.moved, moved_at - began_at, test_now_ms() - moved_at);
	assert_int_equal(mover.moved, CLUSTER_SLOTS);
	assert_int_equal(atomic_load(&all->overlaps), 0);
	for (int i = 0; i < LOCKS; i++)
		assert_int_equal(atomic_load(&all->served[i]), WAITERS / LOCKS);
	end_reshard(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_STORY(every_waiter_is_served_once_over_a_reshard_of_all_slots),
		CLUSTER_STORY(a_slot_can_stay_open_for_longer_than_a_lease),
	};
	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
