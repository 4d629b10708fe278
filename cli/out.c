/* Output that never blocks its writer: a thread writes, and what does not fit is dropped. */
#include "out.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOMENT_MS 10   /* how long a writer waits for the thread */
#define PLAIN_MAX 4096 /* without a thread: what a writable pipe takes without blocking */
#define LATEST_MS 5000 /* at the end, for a slow thread whose descriptor is writable */

void out_open(struct out *out, int fd)
{
	pthread_condattr_t attributes;
	*out = (struct out){.fd = fd};
	(void)pthread_mutex_init(&out->mutex, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&out->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

/* Writes everything; a descriptor that accepts nothing any more is not worth a complaint. */
static void write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = write(fd, text, length);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd polled = {.fd = fd, .events = POLLOUT};
			(void)poll(&polled, 1, -1); /* someone else has set O_NONBLOCK */
		} else if (n < 0 && errno != EINTR) {
			return;
		} else if (n > 0) {
			text += n;
			length -= (size_t)n;
		}
	}
}

static void *write_for_ever(void *arg)
{
	struct out *out = arg;
	char text[OUT_SIZE];
	pthread_mutex_lock(&out->mutex);
	for (;;) {
		while (out->length == 0)
			(void)pthread_cond_wait(&out->changed, &out->mutex);
		size_t length = out->length;
		memcpy(text, out->text, length);
		out->length = 0;
		out->writing = true;
		pthread_mutex_unlock(&out->mutex);
		write_all(out->fd, text, length);
		pthread_mutex_lock(&out->mutex);
		out->writing = false;
		out->late = out->late && out->length > 0;
		(void)pthread_cond_broadcast(&out->changed);
	}
	return NULL;
}

/* mutex held */
static bool start_thread(struct out *out)
{
	pthread_t thread;
	if (!out->started && pthread_create(&thread, NULL, write_for_ever, out) == 0) {
		(void)pthread_detach(thread);
		out->started = true;
	}
	return out->started;
}

static bool is_ready(const struct out *out)
{
	struct pollfd polled = {.fd = out->fd, .events = POLLOUT};
	return poll(&polled, 1, 0) == 1 && (polled.revents & POLLOUT);
}

/*
 * Another writer may fill the pipe first and make this block, so it is used only without a thread.
 */
static bool put_plainly(const struct out *out, const char *text, size_t length)
{
	if (length > PLAIN_MAX || !is_ready(out))
		return false;
	return write(out->fd, text, length) == (ssize_t)length;
}

/* mutex held */
static bool is_written(const struct out *out)
{
	return out->length == 0 && !out->writing;
}

/* mutex held; returns whether everything was written in time */
static bool wait_written(struct out *out, int64_t timeout_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += timeout_ms % 1000 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!is_written(out))
		if (pthread_cond_timedwait(&out->changed, &out->mutex, &until))
			break;
	return is_written(out);
}

bool out_put(struct out *out, const char *text, size_t length)
{
	pthread_mutex_lock(&out->mutex);
	if (!start_thread(out)) {
		pthread_mutex_unlock(&out->mutex);
		return put_plainly(out, text, length);
	}
	bool fits = length <= OUT_SIZE - out->length;
	if (fits) {
		memcpy(out->text + out->length, text, length);
		out->length += length;
		(void)pthread_cond_broadcast(&out->changed);
	}
	if (!out->late)
		out->late = !wait_written(out, MOMENT_MS);
	pthread_mutex_unlock(&out->mutex);
	return fits;
}

bool out_is_idle(struct out *out)
{
	pthread_mutex_lock(&out->mutex);
	bool idle = is_written(out);
	pthread_mutex_unlock(&out->mutex);
	return idle;
}

/* On a loaded machine the thread may not have run yet, and the last message must not be lost. */
void out_flush(struct out *out, int64_t timeout_ms)
{
	int64_t waited = timeout_ms;
	pthread_mutex_lock(&out->mutex);
	bool written = wait_written(out, timeout_ms);
	for (; !written && waited < LATEST_MS && is_ready(out); waited += MOMENT_MS)
		written = wait_written(out, MOMENT_MS);
	pthread_mutex_unlock(&out->mutex);
}
