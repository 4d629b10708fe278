/* Starts threads, knows when one has ended, and keeps one from being cancelled. */
#include "base/thread.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* One thread of the program. Freed with the last reference, one of which is the thread's own. */
struct hf__thread {
	_Atomic uint32_t refs;
	_Atomic bool ended;
};

/* The process has one key, and because of its destructor the library is never unloaded. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void end_thread(void *arg)
{
	struct hf__thread *thread = arg;
	atomic_store(&thread->ended, true);
	hf__thread_unref(thread);
}

static void make_key(void)
{
	has_key = pthread_key_create(&key, end_thread) == 0;
}

static struct hf__thread *new_thread(void)
{
	struct hf__thread *thread = malloc(sizeof(*thread));
	if (!thread)
		return NULL;
	atomic_init(&thread->refs, 1);
	atomic_init(&thread->ended, false);
	if (pthread_setspecific(key, thread)) {
		free(thread);
		return NULL;
	}
	return thread;
}

int hf__thread_defer_cancel(void)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

void hf__thread_restore_cancel(int before)
{
	pthread_setcancelstate(before, NULL);
}

int hf__thread_start(pthread_t *ret_thread, void *(*body)(void *), void *arg, size_t stack)
{
	sigset_t all, before;
	pthread_attr_t attr;
	assert(ret_thread && body);
	if (pthread_attr_init(&attr)) {
		errno = ENOMEM;
		return HF_ENOMEM;
	}
	if (stack)
		(void)pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(ret_thread, stack ? &attr : NULL, body, arg);
	if (rc == EINVAL && stack) /* the program's thread-local data does not fit */
		rc = pthread_create(ret_thread, NULL, body, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		return 0;
	errno = rc;
	return HF_ESYSTEM;
}

struct hf__thread *hf__thread_ref(void)
{
	pthread_once(&once, make_key);
	if (!has_key)
		return NULL;
	struct hf__thread *thread = pthread_getspecific(key);
	if (!thread)
		thread = new_thread();
	if (thread)
		atomic_fetch_add(&thread->refs, 1);
	return thread;
}

void hf__thread_unref(struct hf__thread *thread)
{
	if (thread && atomic_fetch_sub(&thread->refs, 1) == 1)
		free(thread);
}

bool hf__thread_has_ended(const struct hf__thread *thread)
{
	return thread && atomic_load(&thread->ended);
}
