/* A client of plain bytes, for tests that send and receive exactly what is on the wire. */
#include "support/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/check.h"
#include "support/net.h"

#define TIMEOUT_MS 15000

int talk_open(const char *url)
{
	int fd = net_connect(url);
	if (fd < 0)
		check_fail("cannot connect to %s: %s", url, strerror(-fd));
	return fd;
}

void talk_say(int fd, const char *text)
{
	size_t length = strlen(text);
	ssize_t count = send(fd, text, length, MSG_NOSIGNAL);
	if (count != (ssize_t)length)
		check_fail("cannot say %s: %s", text, strerror(errno));
}

void talk_hear(int fd, const char *text)
{
	size_t length = strlen(text), fill = 0;
	char *heard = check_alloc(length + 1);
	while (fill < length) {
		ssize_t count = -1;
		if (talk_has_input(fd, TIMEOUT_MS))
			count = recv(fd, heard + fill, length - fill, 0);
		if (count <= 0)
			break;
		fill += (size_t)count;
	}
	if (fill != length || memcmp(heard, text, length) != 0)
		check_fail("expected to hear %s but heard %s", text, heard);
	free(heard);
}

bool talk_has_input(int fd, int timeout_ms)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	return poll(&polled, 1, timeout_ms) == 1;
}

int talk_hear_end(int fd)
{
	char byte;
	if (!talk_has_input(fd, TIMEOUT_MS))
		check_fail("the connection does not end");
	ssize_t count = recv(fd, &byte, 1, 0);
	return count < 0 ? -errno : (int)count;
}
