/* Blocking connections that speak just enough RESP for benchmarks, without the library. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct bytes {
	char *data; /* malloc'ed */
	size_t length;
};

/* A benchmark that cannot measure has nothing to say: it ends. */
_Noreturn static inline void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

static inline void *alloc_zeroed(size_t count, size_t size)
{
	void *memory = calloc(count, size);
	if (!memory)
		fail("out of memory");
	return memory;
}

/* Connects to a loopback port. Returns the descriptor or the negative errno. */
static inline int try_connect(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		int error = errno;
		close(fd);
		return -error;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static inline int connect_port(int port)
{
	int fd = try_connect(port);
	if (fd < 0)
		fail("cannot connect to port %d: %s", port, strerror(-fd));
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

/* Reads to the end of the line; the text has neither CR nor LF. */
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
