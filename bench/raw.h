/* Blocking connections that speak just enough RESP for benchmarks, without the library. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common.h"

struct bytes {
	char *data; /* malloc'ed */
	size_t length;
};

/*
 * The port in "redis://127.0.0.1:PORT", of several servers that of the first; every server of the
 * benchmark is on this machine.
 */
static inline int url_port(const char *url)
{
	const char *host = strstr(url, "://"), *colon = host ? strchr(host + 3, ':') : NULL;
	long port = colon ? strtol(colon + 1, NULL, 10) : 0;
	if (port < 1 || port > 65535)
		fail("no port in %s", url);
	return (int)port;
}

static inline int connect_port(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("cannot connect to port %d: %s", port, strerror(errno));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static inline void send_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);
		if (sent < 0 && errno != EINTR)
			fail("cannot send: %s", strerror(errno));
		if (sent > 0) {
			data += sent;
			length -= (size_t)sent;
		}
	}
}

static inline void recv_all(int fd, char *data, size_t length)
{
	while (length > 0) {
		ssize_t got = recv(fd, data, length, 0);
		if (got == 0)
			fail("the server closed the connection");
		if (got < 0 && errno != EINTR)
			fail("cannot receive: %s", strerror(errno));
		if (got > 0) {
			data += got;
			length -= (size_t)got;
		}
	}
}

/* Reads a reply that must be exactly this text. */
static inline void expect_reply(int fd, const char *text, size_t length)
{
	char reply[64];
	recv_all(fd, reply, length);
	if (memcmp(reply, text, length) != 0)
		fail("expected %.*s, got %.*s", (int)length - 2, text, (int)length, reply);
}

/* Reads to the end of the line. The text that it returns has neither CR nor LF. */
static inline void recv_line(int fd, char *line, size_t size)
{
	size_t length = 0;
	do {
		if (length + 1 == size)
			fail("a line of more than %zu bytes", size);
		recv_all(fd, line + length, 1);
	} while (line[length++] != '\n');
	line[length >= 2 ? length - 2 : 0] = '\0';
}

/* Sends a line as an inline command. */
static inline void send_line(int fd, const char *line)
{
	send_all(fd, line, strlen(line));
	send_all(fd, "\r\n", 2);
}

/* Encodes a command. */
static inline struct bytes encode_words(size_t count, char *const *words)
{
	struct bytes out = {0};
	FILE *stream = open_memstream(&out.data, &out.length);
	if (!stream)
		fail("out of memory");
	fprintf(stream, "*%zu\r\n", count);
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
	if (fclose(stream))
		fail("out of memory");
	return out;
}

#endif
