/*
 * Experiment 1: a lock without a lease that is never released.
 *
 *   experiment1 [URL [WATCHDOG-MS]]      default: embedded: and 6000
 *
 * A process acquires the lock and never releases it. Expected: the watchdog keeps the lock for as
 * long as the process lives, here for two leases; after the process is killed, the lock is free
 * within one lease. Exits with 0 only if that happened.
 */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME     "experiment1"
#define SLACK_MS 500

static struct timespec begun;

static int64_t elapsed_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
}

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
	va_list args;
	printf("%6.3f s  ", (double)elapsed_ms() / 1000);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static int report_failure(const char *what, int rc)
{
	report("%s: %s (%s)", what, hf_strerror(rc), hf_error_detail());
	return 1;
}

static int open_lock(const char *url, int64_t watchdog_ms, hf_client **client, hf_lock **lock)
{
	int rc = hf_client_open(url, HF_CLIENT(.watchdog_ms = watchdog_ms), client);
	if (rc)
		return report_failure("open", rc);
	rc = hf_lock_open(*client, HF_REENTRANT, NAME, lock);
	return rc ? report_failure("open", rc) : 0;
}

/* Runs in the child process. */
static int hold_for_ever(const char *url, int64_t watchdog_ms, int ready_fd)
{
	hf_client *client;
	hf_lock *lock;
	if (open_lock(url, watchdog_ms, &client, &lock))
		return 1;
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2 * watchdog_ms));
	if (rc)
		return report_failure("holder: acquire", rc);
	report("holder: holds the lock without a lease and never releases it");
	if (write(ready_fd, "!", 1) != 1)
		return 1;
	for (;;)
		pause();
}

static pid_t start_holder(const char *url, int64_t watchdog_ms)
{
	int fds[2];
	char byte;
	if (pipe(fds))
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(hold_for_ever(url, watchdog_ms, fds[1]));
	close(fds[1]);
	int ready = pid > 0 && read(fds[0], &byte, 1) == 1;
	close(fds[0]);
	return ready ? pid : -1;
}

/* The lock must be held whenever the server is asked. */
static int check_it_stays(hf_lock *lock, int64_t watchdog_ms)
{
	int64_t until = elapsed_ms() + 2 * watchdog_ms;
	while (elapsed_ms() < until) {
		int64_t ttl;
		int rc = hf_lock_ttl(lock, &ttl);
		if (rc)
			return report_failure("watcher: ttl", rc);
		if (ttl < 0) {
			report("watcher: the lock is free, but should be held");
			return 1;
		}
		report("watcher: held; the server keeps it for another %d ms", (int)ttl);
		usleep((useconds_t)(watchdog_ms / 6 * 1000));
	}
	return 0;
}

static int wait_until_free(hf_lock *lock, int64_t watchdog_ms)
{
	int64_t killed_at = elapsed_ms();
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2 * watchdog_ms));
	if (rc)
		return report_failure("watcher: acquire", rc);
	int64_t took = elapsed_ms() - killed_at;
	report("watcher: got the lock %d ms after the holder died", (int)took);
	rc = hf_lock_release(lock);
	if (rc)
		return report_failure("watcher: release", rc);
	return took > watchdog_ms + SLACK_MS;
}

int main(int argc, char **argv)
{
	const char *url = argc > 1 ? argv[1] : "embedded:";
	int64_t watchdog_ms = argc > 2 ? atoll(argv[2]) : 6000;
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	pid_t holder = start_holder(url, watchdog_ms);
	if (holder < 0)
		return 1;
	int wrong = open_lock(url, watchdog_ms, &client, &lock);
	if (!wrong)
		wrong = check_it_stays(lock, watchdog_ms);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	report("the holder was killed");
	if (!wrong)
		wrong = wait_until_free(lock, watchdog_ms);
	hf_lock_close(lock);
	hf_client_close(client);
	report("%s", wrong ? "NOT as expected" : "as expected");
	return wrong;
}
