/* A tiny blocking RESP2 client that inspects the server without the library. */
#include "support/raw.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/complete.h"
#include "support/check.h"
#include "support/net.h"
#include "support/server.h"

#define MAX_WORDS  64
#define MAX_LENGTH (64L << 20)
#define MAX_DEPTH  16

struct raw {
	int fd;
	size_t start, end; /* the unread part of buffer */
	char buffer[16384];
};

struct words {
	size_t count;
	const char *text[MAX_WORDS];
	size_t lengths[MAX_WORDS];
};

static struct words collect_words(va_list list)
{
	struct words words = {0};
	const char *word;
	while ((word = va_arg(list, const char *))) {
		if (words.count == MAX_WORDS)
			check_fail("a raw command has at most %d words", MAX_WORDS);
		words.lengths[words.count] = strlen(word);
		words.text[words.count++] = word;
	}
	return words;
}

static bool send_all(struct raw *raw, const char *bytes, size_t length)
{
	while (length) {
		ssize_t count = send(raw->fd, bytes, length, MSG_NOSIGNAL);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return false;
		bytes += count;
		length -= (size_t)count;
	}
	return true;
}

static bool send_command(struct raw *raw, size_t count, const char *const *words,
                         const size_t *lengths)
{
	char *bytes = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&bytes, &size);
	if (!out)
		abort();
	(void)fprintf(out, "*%zu\r\n", count);
	for (size_t i = 0; i < count; i++) {
		(void)fprintf(out, "$%zu\r\n", lengths[i]);
		(void)fwrite(words[i], 1, lengths[i], out);
		(void)fputs("\r\n", out);
	}
	(void)fclose(out);
	bool is_sent = send_all(raw, bytes, size);
	free(bytes);
	return is_sent;
}

/* The next byte, or -1 when the connection is closed or nothing arrived in time. */
static int read_byte(struct raw *raw)
{
	while (raw->start == raw->end) {
		ssize_t count = recv(raw->fd, raw->buffer, sizeof(raw->buffer), 0);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return -1;
		raw->start = 0;
		raw->end = (size_t)count;
	}
	return (unsigned char)raw->buffer[raw->start++];
}

/* Reads up to and without CR LF. */
static char *read_line(struct raw *raw)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);
	if (!out)
		abort();
	int byte;
	while ((byte = read_byte(raw)) >= 0 && byte != '\r')
		(void)fputc(byte, out);
	(void)fclose(out);
	if (byte == '\r' && read_byte(raw) == '\n')
		return line;
	free(line);
	return NULL;
}

static bool read_text(struct raw *raw, struct raw_reply *reply, long long length)
{
	reply->text = check_alloc((size_t)length + 1);
	reply->length = (size_t)length;
	for (long long i = 0; i < length; i++) {
		int byte = read_byte(raw);
		if (byte < 0)
			return false;
		reply->text[i] = (char)byte;
	}
	return read_byte(raw) == '\r' && read_byte(raw) == '\n';
}

static struct raw_reply *read_reply(struct raw *raw, int depth);

static bool read_children(struct raw *raw, struct raw_reply *reply, long long count, int depth)
{
	reply->children = check_alloc((size_t)count * sizeof(struct raw_reply *));
	for (long long i = 0; i < count; i++) {
		reply->children[i] = read_reply(raw, depth + 1);
		if (!reply->children[i])
			return false;
		reply->length++;
	}
	return true;
}

static bool fill_reply(struct raw *raw, struct raw_reply *reply, char mark, char *line, int depth)
{
	long long number = atoll(line);
	switch (mark) {
	case '+':
	case '-':
		reply->type = mark == '+' ? RAW_STATUS : RAW_ERROR;
		reply->length = strlen(line);
		reply->text = check_copy(line, reply->length);
		return true;
	case ':':
		reply->type = RAW_INTEGER;
		reply->integer = number;
		return true;
	case '$':
	case '*':
		reply->type = number < 0 ? RAW_NULL : mark == '$' ? RAW_TEXT : RAW_ARRAY;
		if (number < 0)
			return true;
		if (number > MAX_LENGTH || depth >= MAX_DEPTH)
			return false;
		return mark == '$' ? read_text(raw, reply, number)
		                   : read_children(raw, reply, number, depth);
	default: return false;
	}
}

static struct raw_reply *read_reply(struct raw *raw, int depth)
{
	int mark = read_byte(raw);
	char *line = mark < 0 ? NULL : read_line(raw);
	if (!line)
		return NULL;
	struct raw_reply *reply = check_alloc(sizeof(*reply));
	bool is_whole = fill_reply(raw, reply, (char)mark, line, depth);
	free(line);
	if (is_whole)
		return reply;
	raw_reply_free(reply);
	return NULL;
}

static struct raw_reply *try_words(struct raw *raw, const struct words *words)
{
	if (!send_command(raw, words->count, words->text, words->lengths))
		return NULL;
	return read_reply(raw, 0);
}

static struct raw_reply *must_words(struct raw *raw, const struct words *words)
{
	struct raw_reply *reply = try_words(raw, words);
	if (!reply)
		check_fail("raw: no whole reply to %s within %d ms (%s)", words->text[0],
		           RAW_TIMEOUT_MS, strerror(errno));
	return reply;
}

static _Noreturn void fail_reply(const struct words *words, struct raw_reply *reply,
                                 const char *wanted)
{
	static const char *const names[] = {"status", "error", "integer", "text", "null", "array"};
	HF__LENGTH_IS(names, RAW_TYPES);
	check_fail("raw: %s must be answered by %s, got %s %s", words->text[0], wanted,
	           names[reply->type], reply->text ? reply->text : "");
}

struct raw *raw_try_connect_url(const char *url)
{
	int fd = net_connect(url);
	if (fd < 0)
		return NULL;
	struct timeval limit = {.tv_sec = RAW_TIMEOUT_MS / 1000};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	struct raw *raw = check_alloc(sizeof(*raw));
	raw->fd = fd;
	return raw;
}

struct raw *raw_connect_url(const char *url)
{
	struct raw *raw = raw_try_connect_url(url);
	if (!raw)
		check_fail("raw: cannot connect to %s", url);
	return raw;
}

struct raw *raw_connect(struct test_server *server)
{
	return raw_connect_url(test_server_unix_url(server));
}

struct raw *raw_connect_as(struct test_server *server, const char *user, const char *password)
{
	struct raw *raw = raw_connect(server);
	raw_ok(raw, "AUTH", user ? user : "default", password, NULL);
	return raw;
}

void raw_close(struct raw *raw)
{
	if (!raw)
		return;
	(void)close(raw->fd);
	free(raw);
}

struct raw_reply *raw_try_command(struct raw *raw, ...)
{
	va_list list;
	va_start(list, raw);
	struct words words = collect_words(list);
	va_end(list);
	return try_words(raw, &words);
}

struct raw_reply *raw_command(struct raw *raw, ...)
{
	va_list list;
	va_start(list, raw);
	struct words words = collect_words(list);
	va_end(list);
	return must_words(raw, &words);
}

struct raw_reply *raw_command_words(struct raw *raw, size_t count, const char *const *words,
                                    const size_t *lengths)
{
	struct raw_reply *reply = NULL;
	if (send_command(raw, count, words, lengths))
		reply = read_reply(raw, 0);
	if (!reply)
		check_fail("raw: no whole reply to %s within %d ms", words[0], RAW_TIMEOUT_MS);
	return reply;
}

void raw_reply_free(struct raw_reply *reply)
{
	if (!reply)
		return;
	for (size_t i = 0; reply->children && i < reply->length; i++)
		raw_reply_free(reply->children[i]);
	free(reply->children);
	free(reply->text);
	free(reply);
}

long long raw_integer(struct raw *raw, ...)
{
	va_list list;
	va_start(list, raw);
	struct words words = collect_words(list);
	va_end(list);
	struct raw_reply *reply = must_words(raw, &words);
	if (reply->type != RAW_INTEGER)
		fail_reply(&words, reply, "an integer");
	long long integer = reply->integer;
	raw_reply_free(reply);
	return integer;
}

char *raw_text(struct raw *raw, ...)
{
	va_list list;
	va_start(list, raw);
	struct words words = collect_words(list);
	va_end(list);
	struct raw_reply *reply = must_words(raw, &words);
	if (reply->type != RAW_TEXT && reply->type != RAW_STATUS && reply->type != RAW_NULL)
		fail_reply(&words, reply, "text");
	char *text = reply->text;
	reply->text = NULL;
	raw_reply_free(reply);
	return text;
}

void raw_ok(struct raw *raw, ...)
{
	va_list list;
	va_start(list, raw);
	struct words words = collect_words(list);
	va_end(list);
	struct raw_reply *reply = must_words(raw, &words);
	if (reply->type != RAW_STATUS || strcmp(reply->text, "OK") != 0)
		fail_reply(&words, reply, "+OK");
	raw_reply_free(reply);
}

void raw_subscribe(struct raw *raw, const char *channel)
{
	struct raw_reply *reply = raw_command(raw, "SUBSCRIBE", channel, NULL);
	if (reply->type != RAW_ARRAY || reply->length != 3 || !reply->children[0]->text ||
	    strcmp(reply->children[0]->text, "subscribe") != 0)
		check_fail("raw: not subscribed to %s", channel);
	raw_reply_free(reply);
}

struct raw_reply *raw_next_message(struct raw *raw, int timeout_ms)
{
	if (raw->start == raw->end) {
		struct pollfd ready = {.fd = raw->fd, .events = POLLIN};
		if (poll(&ready, 1, timeout_ms) <= 0)
			return NULL;
	}
	struct raw_reply *reply = read_reply(raw, 0);
	if (!reply)
		check_fail("raw: the connection broke while waiting for a message");
	return reply;
}
