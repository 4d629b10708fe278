/*
 * Output that never blocks its writer.
 *
 * Writing to a pipe that nobody reads, or to a terminal stopped by Ctrl-S, blocks. O_NONBLOCK is
 * not ours to set, since it would affect every process that inherited the same file. So a thread
 * does the writing, and may hang; a text that cannot be queued is dropped as a whole.
 */
#ifndef HF_CLI_OUT_H
#define HF_CLI_OUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUT_SIZE 20480 /* the longest complaint fits */

struct out {
	int fd;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* mutex held: */
	bool started; /* the thread is started with the first text */
	bool writing; /* the thread is writing, or hangs in it */
	bool late;    /* a writer has waited in vain: none waits again until all is written */
	size_t length;
	char text[OUT_SIZE]; /* what the thread writes next */
};

/*
 * Prepares a stream for a descriptor, which stays the caller's. Never freed, as its thread may
 * hang.
 */
void out_open(struct out *out, int fd);

/*
 * Writes a text as a whole or not at all. Normally it is written when this returns, so that it
 * keeps its order among what others write; a thread that hangs is waited for only briefly, and only
 * once. False: the text does not fit.
 */
bool out_put(struct out *out, const char *text, size_t length);

/* Whether everything is written. */
bool out_is_idle(struct out *out);

/* Waits until everything is written, but only this long while the descriptor accepts nothing. */
void out_flush(struct out *out, int64_t timeout_ms);

#endif
