/*
 * Experiment 2: a lease of 3 s, work of 5 s, two threads.
 *
 *   experiment2 [URL]      default: embedded:
 *
 * Both threads ask for the lock at the same time. Expected: the second one is granted the lock
 * after 3 s, when the lease of the first has expired; both releases, at 5 s and at 8 s, return
 * HF_ELOST; nothing else breaks: in the end the lock is free and can be acquired again. Exits
 * with 0 only if that happened.
 */
#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LEASE_MS 3000
#define WORK_S   5
#define SLACK_MS 500

struct worker {
	hf_lock *lock;
	const char *name;
	int64_t granted_at;
	int acquired;
	int released;
};

static struct timespec begun;

static int64_t elapsed_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
}

static void report(const char *who, const char *what, int rc)
{
	printf("%6.3f s  %s: %s", (double)elapsed_ms() / 1000, who, what);
	if (rc)
		printf(": %s (%s)", hf_strerror(rc), hf_error_detail());
	putchar('\n');
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	report(worker->name, "asks for the lock with a lease of 3 s", 0);
	worker->acquired =
		hf_lock_acquire(worker->lock, HF_ACQUIRE(.wait_ms = 20000, .lease_ms = LEASE_MS));
	worker->granted_at = elapsed_ms();
	report(worker->name, worker->acquired ? "acquire" : "holds the lock and works for 5 s",
	       worker->acquired);
	if (worker->acquired)
		return NULL;
	sleep(WORK_S);
	worker->released = hf_lock_release(worker->lock);
	report(worker->name, "release", worker->released);
	return NULL;
}

/* The lock must be free and usable again. */
static int use_once_more(hf_lock *lock)
{
	int locked = 1;
	int rc = hf_lock_is_locked(lock, &locked);
	report("main", locked ? "the lock is still held" : "the lock is free", rc);
	if (!rc)
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	if (!rc)
		rc = hf_lock_release(lock);
	report("main", rc ? "acquire and release again" : "acquired and released it again", rc);
	return rc || locked;
}

static int run(hf_lock *lock)
{
	struct worker a = {.lock = lock, .name = "thread A"};
	struct worker b = {.lock = lock, .name = "thread B"};
	pthread_t thread_a, thread_b;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	pthread_create(&thread_a, NULL, work, &a);
	pthread_create(&thread_b, NULL, work, &b);
	pthread_join(thread_a, NULL);
	pthread_join(thread_b, NULL);
	if (a.acquired || b.acquired)
		return 1;
	int64_t gap = a.granted_at < b.granted_at ? b.granted_at - a.granted_at
	                                          : a.granted_at - b.granted_at;
	printf("          the second was granted the lock %d ms after the first\n", (int)gap);
	int wrong = gap < LEASE_MS - SLACK_MS || gap > LEASE_MS + SLACK_MS;
	wrong |= a.released != HF_ELOST || b.released != HF_ELOST;
	return use_once_more(lock) || wrong;
}

int main(int argc, char **argv)
{
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	int rc = hf_client_open(argc > 1 ? argv[1] : "embedded:", NULL, &client);
	if (!rc)
		rc = hf_lock_open(client, HF_REENTRANT, "experiment2", &lock);
	if (rc)
		report("main", "open", rc);
	int wrong = rc || run(lock);
	hf_lock_close(lock);
	hf_client_close(client);
	report("main", wrong ? "NOT as expected" : "as expected", 0);
	return wrong;
}
