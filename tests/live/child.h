/* Processes that use the server until they are killed. */
#ifndef TESTS_LIVE_CHILD_H
#define TESTS_LIVE_CHILD_H

#include "live/live.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Forks, which is safe only while this process has no threads. The child works with a client of its
 * own until it is killed, and does not outlive a failed test.
 */
static inline pid_t start_child(void (*work)(hf_client *client), int64_t watchdog_ms)
{
	hf_client *client;
	pid_t pid = fork();
	if (pid != 0) {
		assert_true(pid > 0);
		return pid;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hf_client_open(test_server_url(live_server), HF_CLIENT(.watchdog_ms = watchdog_ms),
	                   &client))
		_exit(1);
	work(client);
	for (;;)
		pause();
}

static inline void kill_child(pid_t pid)
{
	int status = 0;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* ---- a child that takes a lock, or waits for it ---- */

static hf_kind child_kind;
static const char *child_name;

static inline void take_child_lock(hf_client *client)
{
	hf_lock *lock;
	if (hf_lock_open(client, child_kind, child_name, &lock) || hf_lock_acquire(lock, NULL))
		_exit(1);
}

static inline pid_t start_holder(hf_kind kind, const char *name, int64_t watchdog_ms)
{
	child_kind = kind;
	child_name = name;
	return start_child(take_child_lock, watchdog_ms);
}

#endif
