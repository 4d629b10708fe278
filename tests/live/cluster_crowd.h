/*
 * A slot full of locks: one of each kind, and one synchronizer of each kind, all held and waited
 * for.
 */
#ifndef TESTS_LIVE_CLUSTER_CROWD_H
#define TESTS_LIVE_CLUSTER_CROWD_H

#include "live/cluster.h"

static inline void let_pass(long long ms)
{
	long long ends_at = test_now_ms() + ms;
	while (test_now_ms() < ends_at)
		test_pause();
}

#define ROWS (SIMPLE_FAIR + 1)

/* All of it is in one slot. The first client holds everything, and the second one waits for it. */
struct crowd {
	int slot;
	struct seen seen; /* by the first client */
	hf_client *one;
	hf_client *two;
	char *name[ROWS];
	hf_lock *mine[ROWS];
	hf_lock *theirs[ROWS];
	hf_semaphore *semaphore[2];
	hf_permits *permits[2];
	hf_latch *latch[2];
	hf_permit_id id[1];
	struct waiter *waiter[ROWS];
	struct waiter *others[3];
};

static inline void open_synchronizers(struct crowd *crowd)
{
	hf_client *clients[] = {crowd->one, crowd->two};
	char *name[] = {test_slot_name(crowd->slot, "semaphore-"),
	                test_slot_name(crowd->slot, "permits-"),
	                test_slot_name(crowd->slot, "latch-")};
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_semaphore_open(clients[i], name[0], &crowd->semaphore[i]));
		ASSERT_OK(hf_permits_open(clients[i], name[1], &crowd->permits[i]));
		ASSERT_OK(hf_latch_open(clients[i], name[2], &crowd->latch[i]));
	}
	for (int i = 0; i < 3; i++)
		free(name[i]);
}

static inline void hold_all(struct crowd *crowd)
{
	for (int i = 0; i < ROWS; i++)
		ASSERT_OK(hf_lock_acquire(crowd->mine[i], NULL));
	ASSERT_OK(hf_semaphore_try_set(crowd->semaphore[0], 0, 0, NULL));
	ASSERT_OK(hf_permits_try_set(crowd->permits[0], 1, NULL));
	ASSERT_OK(hf_permits_acquire(crowd->permits[0], 1, NULL, crowd->id));
	ASSERT_OK(hf_latch_try_set(crowd->latch[0], 1, NULL));
}

static inline void await_all(struct crowd *crowd)
{
	int node = test_cluster_owner(cluster, crowd->slot);
	for (int i = 0; i < ROWS; i++)
		crowd->waiter[i] = waiter_start(crowd->theirs[i], HF_ACQUIRE(.wait_ms = 60000));
	crowd->others[0] = WAITER(.semaphore = crowd->semaphore[1], .n = 1, .wait_ms = 60000);
	crowd->others[1] = WAITER(.permits = crowd->permits[1], .n = 1, .wait_ms = 60000);
	crowd->others[2] = WAITER(.latch = crowd->latch[1], .wait_ms = 60000);
	WAIT_UNTIL(stats_of(crowd->two).waiting == ROWS + 3, SOON_MS);
	for (int i = 0; i < ROWS; i++)
		WAIT_UNTIL(is_awaited(&matches[i], crowd->name[i], node), SOON_MS);
}

static inline struct crowd *begin_crowd(int slot, int64_t watchdog_ms)
{
	struct crowd *crowd = check_alloc(sizeof(*crowd));
	crowd->slot = slot;
	crowd->one = open_cluster(HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&crowd->seen)));
	crowd->two = open_cluster(HF_CLIENT(.watchdog_ms = watchdog_ms));
	for (int i = 0; i < ROWS; i++) {
		char *prefix = check_format("kind-%d-", i);
		crowd->name[i] = test_slot_name(slot, prefix);
		crowd->mine[i] = open_named(crowd->one, matches[i].mine, crowd->name[i]);
		crowd->theirs[i] = open_named(crowd->two, matches[i].theirs, crowd->name[i]);
		free(prefix);
	}
	open_synchronizers(crowd);
	hold_all(crowd);
	return crowd;
}

/* Each release wakes its waiter within this time. */
static inline void release_locks(struct crowd *crowd, long long wake_ms)
{
	for (int i = 0; i < ROWS; i++) {
		assert_false(waiter_is_over(crowd->waiter[i]));
		assert_int_equal(hf_lock_state(crowd->mine[i], NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(crowd->mine[i]));
		long long released_at = test_now_ms();
		waiter_expect(crowd->waiter[i], 0);
		if (crowd->waiter[i]->ended_at - released_at > wake_ms)
			fail_msg("%s waited for %lld ms", crowd->name[i],
			         crowd->waiter[i]->ended_at - released_at);
		waiter_finish(crowd->waiter[i]);
	}
}

static inline void release_synchronizers(struct crowd *crowd, long long wake_ms)
{
	for (int i = 0; i < 3; i++) {
		assert_false(waiter_is_over(crowd->others[i]));
		if (i == 0)
			ASSERT_OK(hf_semaphore_release(crowd->semaphore[0], 1));
		else if (i == 1)
			ASSERT_OK(hf_permits_release(crowd->permits[0],
			                             (const hf_permit_id *)crowd->id, 1));
		else
			ASSERT_OK(hf_latch_count_down(crowd->latch[0]));
		long long released_at = test_now_ms();
		waiter_expect(crowd->others[i], 0);
		if (crowd->others[i]->ended_at - released_at > wake_ms)
			fail_msg("synchronizer %d: %lld ms", i,
			         crowd->others[i]->ended_at - released_at);
		waiter_free(crowd->others[i]);
	}
}

static inline void end_crowd(struct crowd *crowd)
{
	assert_int_equal(seen_count(&crowd->seen, HF_AT_RISK), 0);
	assert_int_equal(seen_count(&crowd->seen, HF_LOST), 0);
	for (int i = 0; i < ROWS; i++) {
		hf_lock_close(crowd->mine[i]);
		hf_lock_close(crowd->theirs[i]);
		free(crowd->name[i]);
	}
	for (int i = 0; i < 2; i++) {
		hf_semaphore_close(crowd->semaphore[i]);
		hf_permits_close(crowd->permits[i]);
		hf_latch_close(crowd->latch[i]);
	}
	WAIT_UNTIL(count_channels() == 0, SOON_MS);
	ASSERT_OK(hf_client_close(crowd->one));
	ASSERT_OK(hf_client_close(crowd->two));
	free(crowd);
}

typedef void move_fn(int slot, int to);

static inline void move_by_hand(int slot, int to)
{
	test_cluster_move_slot(cluster, slot, to);
}

static inline void move_by_server(int slot, int to)
{
	test_cluster_migrate(cluster, slot, slot, to);
}

/* The slot moves twice: to a master that the clients are not connected to, and back. */
static inline void move_under_waiters(move_fn *move, long long wake_ms)
{
	int slot = test_slot("moved under waiters");
	int home = test_cluster_owner(cluster, slot);
	for (int round = 0; round < 2; round++) {
		struct crowd *crowd = begin_crowd(slot, 0);
		await_all(crowd);
		move(slot, round ? home : another_master(home));
		/* Nobody is awake who could find out by asking. */
		let_pass(round ? 0 : 500);
		release_locks(crowd, wake_ms);
		release_synchronizers(crowd, wake_ms);
		end_crowd(crowd);
		test_cluster_reset(cluster);
	}
}

#endif
