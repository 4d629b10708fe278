/*
 * Starts the library's own threads, knows when one of the program's threads has ended, and keeps
 * these from being cancelled in between.
 */
#ifndef HF_BASE_THREAD_H
#define HF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Starts a thread that never handles signals of the program. A stack of 0 bytes means the system's
 * default, and so does one that is too small for the program's thread-local data. 0, or HF_ENOMEM
 * or HF_ESYSTEM with errno set.
 */
int hf__thread_start(pthread_t *ret_thread, void *(*body)(void *), void *arg, size_t stack);

/*
 * Bracket everything that takes a mutex, because a thread that is cancelled there would keep it,
 * and everything that blocks or has descriptors, memory or threads to give back. They nest:
 * hf__thread_restore_cancel() takes what hf__thread_defer_cancel() returned.
 */
int hf__thread_defer_cancel(void);
void hf__thread_restore_cancel(int before);

struct hf__thread;

/* A reference to the calling thread, or NULL if there is no memory for one. */
struct hf__thread *hf__thread_ref(void);

/* NULL is allowed in both. */
void hf__thread_unref(struct hf__thread *thread);
bool hf__thread_has_ended(const struct hf__thread *thread);

#endif
