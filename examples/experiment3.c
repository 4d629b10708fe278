/*
 * Experiment 3: no lease, a wait of 6 s, work of 5 s, two threads.
 *
 *   experiment3 [URL]      default: embedded:
 *
 * Both threads ask for the lock at the same time and wait for at most 6 s. Expected: both are
 * granted the lock, the second one as soon as the first releases it, about 5 s later, and both
 * releases succeed. Exits with 0 only if that happened.
 */
#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS  6000
#define WORK_S   5
#define SLACK_MS 500

struct worker {
	hf_lock *lock;
	const char *name;
	int64_t granted_at;
	int64_t done_at; /* right before the release */
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
	report(worker->name, "asks for the lock and waits for at most 6 s", 0);
	worker->acquired = hf_lock_acquire(worker->lock, HF_ACQUIRE(.wait_ms = WAIT_MS));
	worker->granted_at = elapsed_ms();
	report(worker->name, worker->acquired ? "acquire" : "holds the lock and works for 5 s",
	       worker->acquired);
	if (worker->acquired)
		return NULL;
	sleep(WORK_S);
	worker->done_at = elapsed_ms();
	worker->released = hf_lock_release(worker->lock);
	report(worker->name, worker->released ? "release" : "has released the lock",
	       worker->released);
	return NULL;
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
	if (a.acquired || b.acquired || a.released || b.released)
		return 1;
	const struct worker *first = a.granted_at <= b.granted_at ? &a : &b;
	const struct worker *second = first == &a ? &b : &a;
	int64_t gap = second->granted_at - first->done_at;
	printf("          the second was granted the lock %d ms after the first began to release "
	       "it\n",
	       (int)gap);
	return gap < 0 || gap > SLACK_MS;
}

int main(int argc, char **argv)
{
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	int rc = hf_client_open(argc > 1 ? argv[1] : "embedded:", NULL, &client);
	if (!rc)
		rc = hf_lock_open(client, HF_REENTRANT, "experiment3", &lock);
	if (rc)
		report("main", "open", rc);
	int wrong = rc || run(lock);
	hf_lock_close(lock);
	hf_client_close(client);
	report("main", wrong ? "NOT as expected" : "as expected", 0);
	return wrong;
}
