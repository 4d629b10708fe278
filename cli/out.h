/*
 * Output that never blocks its writer.
 *
 * A pipe that nobody reads, or a terminal stopped by Ctrl-S, blocks whoever writes to it, and O_NONBLOCK is
 * not ours to set: it would change the same file for everyone who has inherited it. So a thread writes,
 * and may hang; what it cannot get rid of in time is dropped as a whole.
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
	bool started; /* the thread, with the first text */
	bool writing; /* the thread is at it, or hangs */
	bool late;    /* somebody has waited in vain: nobody waits again before all is written */
	size_t length;
	char text[OUT_SIZE]; /* what the thread writes next */
};

/* Prepares a stream to a descriptor, which stays the caller's. It is never freed: its thread may hang. */
void out_open(struct out *out, int fd);

/*
 * Has a text written, whole or not at all. In general it is written when this returns,
 * so that it keeps its place among what others write; a thread that hangs is waited for only briefly,
 * and only once. False: there is no room for the text.
 */
bool out_put(struct out *out, const char *text, size_t length);

/* Whether all is written. */
bool out_is_idle(struct out *out);

/* Waits until all is written, but no longer than that while the descriptor takes nothing. */
void out_flush(struct out *out, int64_t timeout_ms);

#endif
