/* Lets others know when a thread has ended. */
#ifndef HF_BASE_THREAD_H
#define HF_BASE_THREAD_H

#include <stdbool.h>

struct hf__thread;

/* A reference to the calling thread's record, or NULL if there is no memory for one. */
struct hf__thread *hf__thread_ref(void);

/* NULL is allowed in both. */
void hf__thread_unref(struct hf__thread *thread);
bool hf__thread_has_ended(const struct hf__thread *thread);

#endif
