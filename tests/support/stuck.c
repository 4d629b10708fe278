/* A pipe that is full, and that nothing reads until the test does. */
#include "support/stuck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

#define MOST_TEXT (1 << 20)

/* O_NONBLOCK belongs to the pipe's end and not to a process, so it is taken away again. */
struct stuck stuck_pipe(void)
{
	struct stuck stuck = {0};
	char bytes[4096];
	int fds[2];
	ssize_t n;
	memset(bytes, '#', sizeof bytes);
	if (pipe(fds) || fcntl(fds[0], F_SETFD, FD_CLOEXEC) || fcntl(fds[0], F_SETFL, O_NONBLOCK) ||
	    fcntl(fds[1], F_SETFL, O_NONBLOCK))
		check_fail("pipe: %s", strerror(errno));
	while ((n = write(fds[1], bytes, sizeof bytes)) > 0)
		stuck.filled += (size_t)n;
	if (errno != EAGAIN || fcntl(fds[1], F_SETFL, 0))
		check_fail("a pipe cannot be filled: %s", strerror(errno));
	stuck.reader = fds[0];
	stuck.fd = fds[1];
	stuck.text = check_alloc(MOST_TEXT);
	return stuck;
}

void stuck_drain(struct stuck *stuck)
{
	char bytes[4096];
	while (stuck->filled > 0) {
		size_t most = stuck->filled < sizeof bytes ? stuck->filled : sizeof bytes;
		ssize_t n = read(stuck->reader, bytes, most);
		if (n <= 0)
			check_fail("a full pipe is empty: %s", strerror(errno));
		stuck->filled -= (size_t)n;
	}
}

void stuck_read(struct stuck *stuck, char *ret_text, size_t size)
{
	ssize_t n;
	if (stuck->filled > 0)
		check_fail("the pipe was not drained");
	while ((n = read(stuck->reader, stuck->text + stuck->length,
	                 MOST_TEXT - 1 - stuck->length)) > 0)
		stuck->length += (size_t)n;
	size_t length = stuck->length < size - 1 ? stuck->length : size - 1;
	memcpy(ret_text, stuck->text, length);
	ret_text[length] = 0;
}

void stuck_close(struct stuck *stuck)
{
	(void)close(stuck->fd);
	(void)close(stuck->reader);
	free(stuck->text);
}
