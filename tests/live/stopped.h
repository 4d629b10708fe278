/* A holder in a process of its own whose threads the test keeps from running. */
#ifndef TESTS_LIVE_STOPPED_H
#define TESTS_LIVE_STOPPED_H

#include "live/child.h"

#include "api/client.h"

#include <sys/mman.h>

/* What the child reports; shared with it. */
static struct diary {
	_Atomic bool holds;
	_Atomic long long held_at; /* when the latest call began that said "held" */
	_Atomic int lost_events;
	_Atomic bool says_lost;
	_Atomic int released; /* what the release returned; 1: nothing yet */
} * diary;

static inline void count_losses(void *arg, const hf_event *event)
{
	(void)arg;
	if (hf_event_state(event) == HF_LOST)
		atomic_fetch_add(&diary->lost_events, 1);
}

static inline void ask_until_lost(hf_lock *lock)
{
	for (;;) {
		long long now = test_now_ms();
		if (hf_lock_state(lock, NULL) == HF_LOST)
			break;
		atomic_store(&diary->held_at, now);
		atomic_store(&diary->holds, true);
	}
	atomic_store(&diary->says_lost, true);
}

/*
 * In the child: asks whether the lock is held until it is not. If it takes the client's mutex
 * meanwhile, no thread of the library can renew the lock or notice the loss first.
 */
static inline void hold_and_ask(const char *url, int64_t watchdog_ms, bool takes_mutex)
{
	hf_client *client;
	hf_lock *lock;
	if (hf_client_open(url, HF_CLIENT(.watchdog_ms = watchdog_ms, .on_event = count_losses),
	                   &client) ||
	    hf_lock_open(client, HF_REENTRANT, "orders", &lock) || hf_lock_acquire(lock, NULL))
		_exit(1);
	if (takes_mutex)
		hf__engine_lock(&client->engine);
	ask_until_lost(lock);
	if (takes_mutex)
		hf__engine_unlock(&client->engine);
	atomic_store(&diary->released, hf_lock_release(lock));
	for (;;)
		pause();
}

/*
 * Forks, which is safe only while this process has no threads. Returns when the child holds the
 * lock.
 */
static inline pid_t start_asker(const char *url, int64_t watchdog_ms, bool takes_mutex)
{
	diary = mmap(NULL, sizeof *diary, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	             0);
	assert_true(diary != MAP_FAILED);
	atomic_store(&diary->released, 1);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold_and_ask(url, watchdog_ms, takes_mutex);
	}
	WAIT_UNTIL(atomic_load(&diary->holds), SOON_MS);
	return pid;
}

/*
 * The lock was given to this client at the latest at that time. The call that said "held" may have
 * begun before it, but none may begin after it. The child runs freely now, reports its loss once,
 * and does not touch the other hold.
 */
static inline void expect_loss_of(pid_t holder, long long given_at, hf_lock *lock)
{
	int is_held = 0;
	WAIT_UNTIL(atomic_load(&diary->says_lost), SOON_MS);
	assert_true(atomic_load(&diary->held_at) < given_at);
	WAIT_UNTIL(atomic_load(&diary->released) <= 0, SOON_MS);
	assert_int_equal(atomic_load(&diary->released), HF_ELOST);
	WAIT_UNTIL(atomic_load(&diary->lost_events) == 1, SOON_MS);
	ASSERT_OK(hf_lock_is_held(lock, NULL, &is_held));
	assert_true(is_held);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	kill_child(holder);
	assert_int_equal(atomic_load(&diary->lost_events), 1);
	assert_int_equal(munmap(diary, sizeof *diary), 0);
}

/* Stops the whole process until its lock was given to another client. */
static inline void check_stopped_holder(const char *url, int64_t watchdog_ms)
{
	pid_t holder = start_asker(url, watchdog_ms, true);
	assert_int_equal(kill(holder, SIGSTOP), 0);
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 30000)));
	long long continued_at = test_now_ms();
	assert_int_equal(kill(holder, SIGCONT), 0);
	expect_loss_of(holder, continued_at, lock);
	close_both(lock, client);
}

#endif
