/* A list of clean-ups that run at exit. */
#include "support/cleanup.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cleanup *all; /* under mutex */

/* A forked child that calls exit() must leave the servers of its parent alone. */
static void run_all(void)
{
	for (struct cleanup *cleanup = all; cleanup; cleanup = cleanup->next)
		if (cleanup->owner == getpid())
			cleanup->run(cleanup->arg);
}

static void register_all(void)
{
	(void)atexit(run_all);
}

void cleanup_add(struct cleanup *cleanup, void (*run)(void *arg), void *arg)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, register_all);
	(void)pthread_mutex_lock(&mutex);
	*cleanup = (struct cleanup){.next = all, .owner = getpid(), .run = run, .arg = arg};
	all = cleanup;
	(void)pthread_mutex_unlock(&mutex);
}

void cleanup_remove(struct cleanup *cleanup)
{
	(void)pthread_mutex_lock(&mutex);
	struct cleanup **link = &all;
	while (*link && *link != cleanup)
		link = &(*link)->next;
	if (*link)
		*link = cleanup->next;
	(void)pthread_mutex_unlock(&mutex);
}
