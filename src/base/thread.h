/* Starts threads of the library's own, and lets others know when one of the program's has ended. */
#ifndef HF_BASE_THREAD_H
#define HF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * No signal of the program's is ever handled on it. A stack of 0 is the system's default. 0,
 * HF_ENOMEM or HF_ESYSTEM.
 */
int hf__thread_start(pthread_t *ret_thread, void *(*body)(void *), void *arg, size_t stack);

struct hf__thread;

/* A reference to the calling thread's record, or NULL if there is no memory for one. */
struct hf__thread *hf__thread_ref(void);

/* NULL is allowed in both. */
void hf__thread_unref(struct hf__thread *thread);
bool hf__thread_has_ended(const struct hf__thread *thread);

#endif
