/* A holder some of whose threads cannot run, or which gets very little processor time. */
#include "live/stopped.h"

#include <dirent.h>
#include <sys/ptrace.h>
#include <time.h>

#define MOST_THREADS 16

/* ---- threads that the kernel freezes ---- */

/* A process tracer stops single threads, which signals cannot do. */
static bool freeze_thread(pid_t thread)
{
	int status = 0;
	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL))
		return false;
	assert_int_equal(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
	assert_int_equal(waitpid(thread, &status, __WALL), thread);
	assert_true(WIFSTOPPED(status));
	return true;
}

/*
 * All threads of the library; the main thread is the one that asks. Returns how many, -1 if it is
 * forbidden.
 */
static int freeze_others(pid_t process, pid_t *ret_threads)
{
	int count = 0;
	char *path = check_format("/proc/%d/task", (int)process);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry; count >= 0 && (entry = readdir(dir));) {
		pid_t thread = (pid_t)atoi(entry->d_name);
		if (thread <= 0 || thread == process)
			continue;
		assert_true(count < MOST_THREADS);
		ret_threads[count] = thread;
		count = freeze_thread(thread) ? count + 1 : -1;
	}
	closedir(dir);
	free(path);
	return count;
}

static void query_needs_no_thread_that_is_frozen(void **state)
{
	pid_t threads[MOST_THREADS];

	(void)state;
	pid_t holder = start_asker(test_server_url(live_server), 1500, false);
	int count = freeze_others(holder, threads);
	if (count < 0) {
		kill_child(holder);
		print_message("left out: this system does not let a process trace its child\n");
		skip();
	}
	assert_true(count >= 1);
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 10000)));
	long long given_at = test_now_ms();
	WAIT_UNTIL(atomic_load(&diary->says_lost), SOON_MS);
	assert_true(atomic_load(&diary->held_at) < given_at);
	for (int i = 0; i < count; i++)
		assert_int_equal(ptrace(PTRACE_DETACH, threads[i], NULL, NULL), 0);
	expect_loss_of(holder, given_at, lock);
	close_both(lock, client);
}

/* ---- a process with a quota ---- */

static void sleep_ms(int ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	(void)nanosleep(&pause, NULL);
}

/*
 * As the kernel does it to a control group with a quota: the process runs for a part of each
 * period. The periods become longer until the lock is lost.
 */
static void starved_holder_loses_its_lock_rather_than_sharing_it(void **state)
{
	(void)state;
	pid_t holder = start_asker(test_server_url(live_server), 1200, false);
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_owner *owner = new_owner();
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.owner = owner));
	for (int period_ms = 100; !atomic_load(&diary->says_lost); period_ms += 100) {
		assert_true(period_ms < 5000);
		assert_int_equal(kill(holder, SIGSTOP), 0);
		sleep_ms(period_ms);
		assert_int_equal(kill(holder, SIGCONT), 0);
		sleep_ms(2);
	}
	waiter_expect(waiter, 0);
	assert_true(atomic_load(&diary->held_at) < waiter->ended_at);
	WAIT_UNTIL(atomic_load(&diary->released) <= 0, SOON_MS);
	assert_int_equal(atomic_load(&diary->released), HF_ELOST);
	assert_int_equal(hf_lock_state(lock, owner), HF_HELD);
	ASSERT_OK(waiter_release(waiter));
	kill_child(holder);
	assert_int_equal(munmap(diary, sizeof *diary), 0);
	waiter_free(waiter);
	close_both(lock, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(query_needs_no_thread_that_is_frozen),
		LIVE_STORY(starved_holder_loses_its_lock_rather_than_sharing_it),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
