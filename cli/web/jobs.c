/* Jobs: one thread that makes the calls that wait, and a way back into the event loop. */
#include "jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct job {
	void (*work)(void *arg);
	void (*on_done)(void *arg);
	void *arg;
};

struct queue {
	struct job jobs[JOBS_MOST];
	size_t first, n;
};

struct jobs {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct event *ready;
	int fd; /* an eventfd that wakes the loop */
	/* mutex held: */
	struct queue waiting, finished;
	bool running; /* the thread has a job in hand, whose place in finished is kept free */
	bool ending;
};

static bool put(struct queue *queue, struct job job)
{
	if (queue->n == JOBS_MOST)
		return false;
	queue->jobs[(queue->first + queue->n++) % JOBS_MOST] = job;
	return true;
}

static bool take(struct queue *queue, struct job *ret_job)
{
	if (queue->n == 0)
		return false;
	*ret_job = queue->jobs[queue->first];
	queue->first = (queue->first + 1) % JOBS_MOST;
	queue->n--;
	return true;
}

static void *run(void *arg)
{
	struct jobs *jobs = arg;
	struct job job;
	pthread_mutex_lock(&jobs->mutex);
	while (!jobs->ending) {
		if (!take(&jobs->waiting, &job)) {
			(void)pthread_cond_wait(&jobs->changed, &jobs->mutex);
			continue;
		}
		jobs->running = true;
		pthread_mutex_unlock(&jobs->mutex);
		job.work(job.arg);
		pthread_mutex_lock(&jobs->mutex);
		jobs->running = false;
		(void)put(&jobs->finished, job);
		(void)eventfd_write(jobs->fd, 1);
	}
	pthread_mutex_unlock(&jobs->mutex);
	return NULL;
}

static void on_ready(evutil_socket_t fd, short events, void *arg)
{
	struct jobs *jobs = arg;
	struct job job;
	eventfd_t count;
	(void)events;
	(void)eventfd_read(fd, &count);
	for (;;) {
		pthread_mutex_lock(&jobs->mutex);
		bool found = take(&jobs->finished, &job);
		pthread_mutex_unlock(&jobs->mutex);
		if (!found)
			return;
		job.on_done(job.arg);
	}
}

struct jobs *jobs_new(struct event_base *base)
{
	struct jobs *jobs = calloc(1, sizeof *jobs);
	if (!jobs)
		return NULL;
	jobs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	jobs->ready = event_new(base, jobs->fd, EV_READ | EV_PERSIST, on_ready, jobs);
	(void)pthread_mutex_init(&jobs->mutex, NULL);
	(void)pthread_cond_init(&jobs->changed, NULL);
	if (jobs->fd >= 0 && jobs->ready && event_add(jobs->ready, NULL) == 0 &&
	    pthread_create(&jobs->thread, NULL, run, jobs) == 0)
		return jobs;
	if (jobs->ready)
		event_free(jobs->ready);
	if (jobs->fd >= 0)
		(void)close(jobs->fd);
	free(jobs);
	return NULL;
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs)
		return;
	pthread_mutex_lock(&jobs->mutex);
	jobs->ending = true;
	(void)pthread_cond_signal(&jobs->changed);
	pthread_mutex_unlock(&jobs->mutex);
	(void)pthread_join(jobs->thread, NULL);
	event_free(jobs->ready);
	(void)close(jobs->fd);
	free(jobs);
}

bool jobs_add(struct jobs *jobs, void (*work)(void *arg), void (*on_done)(void *arg), void *arg)
{
	struct job job = {work, on_done, arg};
	pthread_mutex_lock(&jobs->mutex);
	/* So that there is room for each of them when it is finished. */
	bool fits = jobs->waiting.n + jobs->running + jobs->finished.n < JOBS_MOST;
	if (fits)
		fits = put(&jobs->waiting, job);
	(void)pthread_cond_signal(&jobs->changed);
	pthread_mutex_unlock(&jobs->mutex);
	return fits;
}
