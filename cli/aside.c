/* Runs a call that may block on a thread of its own. */
#include "aside.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct aside {
	void (*call)(void *arg);
	void *arg;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool done; /* mutex held */
};

static bool any_left;

static void *run_call(void *arg)
{
	struct aside *aside = arg;
	aside->call(aside->arg);
	pthread_mutex_lock(&aside->mutex);
	aside->done = true;
	(void)pthread_cond_signal(&aside->changed);
	pthread_mutex_unlock(&aside->mutex);
	return NULL;
}

static struct aside *make_aside(void (*call)(void *arg), void *arg)
{
	pthread_condattr_t attributes;
	struct aside *aside = calloc(1, sizeof(*aside));
	if (!aside)
		return NULL;
	aside->call = call;
	aside->arg = arg;
	(void)pthread_mutex_init(&aside->mutex, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&aside->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return aside;
}

static void free_aside(struct aside *aside)
{
	(void)pthread_cond_destroy(&aside->changed);
	(void)pthread_mutex_destroy(&aside->mutex);
	free(aside);
}

static bool wait_done(struct aside *aside, int64_t timeout_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t ns = until.tv_nsec + timeout_ms % 1000 * 1000000;
	until.tv_sec += timeout_ms / 1000 + ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	pthread_mutex_lock(&aside->mutex);
	while (!aside->done)
		if (pthread_cond_timedwait(&aside->changed, &aside->mutex, &until))
			break;
	bool done = aside->done;
	pthread_mutex_unlock(&aside->mutex);
	return done;
}

bool aside_call(void (*call)(void *arg), void *arg, int64_t timeout_ms)
{
	pthread_t thread;
	struct aside *aside = make_aside(call, arg);
	if (!aside || pthread_create(&thread, NULL, run_call, aside)) {
		if (aside)
			free_aside(aside);
		call(arg);
		return true;
	}
	if (!wait_done(aside, timeout_ms)) {
		(void)pthread_detach(thread);
		any_left = true;
		return false;
	}
	(void)pthread_join(thread, NULL);
	free_aside(aside);
	return true;
}

bool aside_has_running(void)
{
	return any_left;
}
